//! Instructions by name: one list, which pictures and the calculator share.
//!
//! Names are short forms of what the manual says:
//!
//! | name | instruction |
//! |---|---|
//! | `ldmatrix.x4.trans`, `stmatrix.m16n8.x2.trans.b8`, `cp.async.16` | copies |
//! | `mma.m16n8k16.f16`, `mma.m16n8k32.e4m3.e5m2.f16` | type of A, of B where it differs, of the accumulator where it is not the usual one |
//! | `mma.m8n8k4.row.col.f16` | Volta's, with the layouts of A and B |
//! | `mma.m16n8k32.f8f6f4.e3m2.e2m1`, `mma.m16n8k64.mxf4` | a kind |
//! | `mma.sp.m16n8k32.f16`, `mma.sp.ordered.m16n8k32.f16` | sparse, with plain and with ordered metadata |
//! | `wgmma.m64n128k16.bf16` | any N |
//! | `tcgen05.mma.m128n256`, and `.cta2`, `.cta2.sp`, `.ws` | the accumulator in tensor memory; any N |
//! | `tcgen05.ld.16x256b.x2`, `tcgen05.st.…` | lanes and columns of each register |
//! | `mfma_f32_32x32x8_f16`, `wmma_f32_16x16x16_f16.wave64` | AMD's |
//!
//! The manuals' own names work too.

use tilewright::atoms::tcgen05::{Accumulator, CtaGroup, TmemCopy, TmemShape, tmem_copy};
use tilewright::atoms::{
    BYTE_MATRIX_ATOMS, COPY_ATOMS, CopyAtom, E2M1_ATOMS, MFMA_ATOMS, MFMA_CDNA2_NAMES, MMA_ATOMS,
    MmaAtom, QUAD_PAIR_ATOMS, SPARSE_E2M1_ATOMS, SPARSE_MMA_ATOMS, Scalar, SparseMmaAtom,
    WMMA_ATOMS, mma_f8f6f4_atoms, mma_sp_f8f6f4_atoms,
};
use tilewright::banks::Access;

use super::functions::distance;

/// Names that are offered for one that means nothing.
const NEAREST: usize = 3;

/// An instruction that has a picture.
#[derive(Clone, Debug)]
pub(crate) enum Atom {
    /// A copy.
    Copy(Box<CopyAtom>),
    /// A matrix instruction.
    Mma(Box<MmaAtom>),
    /// A sparse matrix instruction.
    Sparse(Box<SparseMmaAtom>),
    /// A copy between tensor memory and registers.
    TmemCopy(Box<TmemCopy>),
    /// An accumulator in tensor memory.
    Accumulator(Box<Accumulator>, CtaGroup),
}

/// An instruction and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The short name.
    pub(crate) name: String,
    /// The manual's names.
    pub(crate) others: Vec<String>,
    /// The instruction.
    pub(crate) atom: Atom,
}

impl Named {
    pub(crate) fn new(name: String, other: &str, atom: Atom) -> Self {
        Self {
            name,
            others: vec![other.to_owned()],
            atom,
        }
    }
}

/// Every instruction that the list has: all but those of any N.
pub(crate) fn all() -> Vec<Named> {
    let mut list = Vec::new();
    for atom in COPY_ATOMS.iter().chain(BYTE_MATRIX_ATOMS) {
        list.push(Named::new(
            copy_name(atom),
            atom.name,
            Atom::Copy(Box::new(**atom)),
        ));
    }
    let dense = [MMA_ATOMS, QUAD_PAIR_ATOMS, E2M1_ATOMS].concat();
    for atom in dense.into_iter().copied().chain(mma_f8f6f4_atoms()) {
        list.push(Named::new(
            mma_name(&atom),
            atom.name,
            Atom::Mma(Box::new(atom)),
        ));
    }
    let sparse = [SPARSE_MMA_ATOMS, SPARSE_E2M1_ATOMS].concat();
    for atom in sparse.into_iter().copied().chain(mma_sp_f8f6f4_atoms()) {
        list.push(Named::new(
            sparse_name(&atom),
            atom.mma.name,
            Atom::Sparse(Box::new(atom)),
        ));
    }
    for shape in TmemShape::ALL {
        let repeats = (0..8).map(|bit| 1 << bit);
        for copy in
            repeats.filter_map(|repeat| tmem_copy(shape, repeat, half_split(shape, repeat)).ok())
        {
            let end = format!("{}.x{}", shape.name(), copy.repeat);
            let mut named = Named::new(
                format!("tcgen05.ld.{end}"),
                &format!("tcgen05.st.{end}"),
                Atom::TmemCopy(Box::new(copy)),
            );
            named
                .others
                .extend(["ld", "st"].map(|way| format!("tcgen05.{way}.sync.aligned.{end}.b32")));
            list.push(named);
        }
    }
    for (atom, cdna2) in MFMA_ATOMS.iter().zip(MFMA_CDNA2_NAMES) {
        let mut named = Named::new(without_v(atom.name), atom.name, Atom::Mma(Box::new(**atom)));
        if !cdna2.is_empty() {
            named.others.extend([(*cdna2).to_owned(), without_v(cdna2)]);
        }
        list.push(named);
    }
    for atom in WMMA_ATOMS {
        let mut named = Named::new(
            mma_name(atom),
            &format!("{}.wave{}", atom.name, atom.threads),
            Atom::Mma(Box::new(**atom)),
        );
        if atom.threads == 32 {
            named.others.push(atom.name.to_owned());
        }
        list.push(named);
    }
    list
}

/// The halves of `.16x32bx2` are drawn side by side.
fn half_split(shape: TmemShape, repeat: i64) -> i64 {
    if shape == TmemShape::L16x32bx2 {
        repeat
    } else {
        0
    }
}

fn without_v(mnemonic: &str) -> String {
    mnemonic.trim_start_matches("v_").to_owned()
}

/// `ldmatrix.x4.trans`, `ldmatrix.m8n16.x2.b4x16_p64`, `cp.async.16`.
pub(crate) fn copy_name(atom: &CopyAtom) -> String {
    if let Some(bytes) = atom
        .name
        .strip_prefix("cp.async")
        .and_then(|rest| rest.rsplit(' ').next())
    {
        return format!("cp.async.{bytes}");
    }
    let unsaid = ["sync", "aligned", "m8n8", "shared", "b16", "b8x16"];
    let parts: Vec<&str> = atom
        .name
        .split('.')
        .filter(|part| !unsaid.contains(part))
        .collect();
    parts.join(".")
}

/// `mma.m16n8k16.f16`: the accumulator's type where it is not the usual one of the operands, the type of B where it is not A's.
pub(crate) fn mma_name(atom: &MmaAtom) -> String {
    if atom.threads == 128 {
        return format!(
            "wgmma.m{}n{}k{}.{}.{}",
            atom.m,
            atom.n,
            atom.k,
            atom.a_type.name(),
            atom.c_type.name()
        );
    }
    if atom.name.starts_with("v_") {
        let wave = if atom.name.contains("wmma") && atom.threads == 64 {
            ".wave64"
        } else {
            ""
        };
        return without_v(atom.name) + wave;
    }
    let shape = format!("m{}n{}k{}", atom.m, atom.n, atom.k);
    if atom.blocks == 4 {
        // mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32
        let layouts: Vec<&str> = atom.name.split('.').skip(4).take(2).collect();
        let types = match (atom.d_type, atom.c_type) {
            (Scalar::F32, Scalar::F32) => "f16",
            (Scalar::F32, _) => "f32.f16.f16.f16",
            _ => "f16.f16",
        };
        return format!("mma.{shape}.{}.{types}", layouts.join("."));
    }
    format!("mma.{shape}.{}", types_name(atom))
}

/// `mma.sp.m16n8k32.f16`, `mma.sp.ordered.m16n8k32.f16`.
pub(crate) fn sparse_name(atom: &SparseMmaAtom) -> String {
    let order = if atom.ordered { "sp.ordered" } else { "sp" };
    let mma = &atom.mma;
    format!(
        "mma.{order}.m{}n{}k{}.{}",
        mma.m,
        mma.n,
        mma.k,
        types_name(mma)
    )
}

/// `f16`, `e4m3.e5m2.f16`, `f8f6f4.e3m2.e2m1`, `mxf4`, `b1.xor`.
fn types_name(atom: &MmaAtom) -> String {
    let (a, b, d) = (atom.a_type, atom.b_type, atom.d_type);
    let kind = atom
        .name
        .split('.')
        .find_map(|part| part.strip_prefix("kind::"));
    match kind {
        Some("mxf4") => return "mxf4".to_owned(),
        Some("mxf4nvf4") => return "nvf4".to_owned(),
        _ => {}
    }
    let mut parts = Vec::new();
    if let Some(kind) = kind {
        parts.push(kind);
    }
    parts.push(a.name());
    if a != b || kind.is_some() {
        parts.push(b.name());
    }
    if d == Scalar::F16 {
        parts.push(d.name());
    }
    parts.extend(
        atom.name
            .split('.')
            .filter(|part| ["xor", "and"].contains(part)),
    );
    parts.join(".")
}

/// The instruction with that name, one of the manual's names, or the short name with all types written out.
pub(crate) fn find<'a>(list: &'a [Named], name: &str) -> Option<&'a Named> {
    let exact = list
        .iter()
        .find(|one| one.name == name || one.others.iter().any(|other| other == name));
    exact.or_else(|| {
        list.iter()
            .find(|one| written_out(one).iter().any(|long| long == name))
    })
}

/// `mma.m16n8k16.f16.f32`: A's type and the accumulator's.
fn written_out(one: &Named) -> Option<String> {
    match &one.atom {
        Atom::Mma(mma)
            if mma.blocks == 1 && mma.a_type == mma.b_type && one.name.starts_with("mma.") =>
        {
            Some(format!(
                "mma.m{}n{}k{}.{}.{}",
                mma.m,
                mma.n,
                mma.k,
                mma.a_type.name(),
                mma.d_type.name()
            ))
        }
        _ => None,
    }
}

/// Letters of a beginning of a name, and names that it is answered with at most.
const SHORTEST: usize = 3;
const MOST_SHOWN: usize = 24;

/// What is said of a name that means nothing: the nearest names, or what names look like.
pub(crate) fn unknown(list: &[Named], name: &str) -> String {
    let short: String = name.chars().take(60).collect();
    // A name without its types, or without its qualifiers, is the beginning of others.
    let begins: Vec<&str> = list
        .iter()
        .map(|one| one.name.as_str())
        .filter(|known| {
            known
                .strip_prefix(&*short)
                .is_some_and(|rest| rest.starts_with('.') || short.len() >= SHORTEST)
        })
        .collect();
    if !begins.is_empty() {
        let shown = &begins[..begins.len().min(MOST_SHOWN)];
        let more = match begins.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more: show --atom list"),
        };
        return format!(
            "{short} is not the whole name; there are {}{more}",
            shown.join(", ")
        );
    }
    let mut near: Vec<(usize, &str)> = list
        .iter()
        .map(|one| (distance(&short, &one.name), one.name.as_str()))
        .filter(|(edits, known)| *edits <= 2.max(known.len() / 4))
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near
        .into_iter()
        .take(NEAREST)
        .map(|(_, known)| known)
        .collect();
    match near.split_last() {
        None => "there is no such instruction; give one such as mma.m16n8k16.f16, mma.sp.m16n8k32.f16, ldmatrix.x4, wgmma.m64n128k16.bf16, \
                 tcgen05.mma.m128n256, tcgen05.ld.32x32b.x8, mfma_f32_32x32x8_f16 or wmma_f32_16x16x16_f16; \
                 `show --atom list` names all"
            .to_owned(),
        Some((last, [])) => format!("there is no such instruction; did you mean {last}?"),
        Some((last, others)) => format!("there is no such instruction; did you mean {} or {last}?", others.join(", ")),
    }
}

/// A shared-memory access by its name, or by a name of the copy instruction that makes it.
///
/// # Errors
///
/// Says which names are near and which there are.
pub(crate) fn access(name: &str) -> Result<Access, String> {
    let name = name.trim();
    if let Ok(access) = name.parse() {
        return Ok(access);
    }
    let list = all();
    if let Some(known) = find(&list, name)
        && let Ok(access) = known.name.parse()
    {
        return Ok(access);
    }
    let known: Vec<&str> = Access::all().map(Access::name).collect();
    let lower = name.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|known| (distance(&lower, known), *known))
        .filter(|(edits, known)| *edits <= (known.len() / 4).clamp(1, 3))
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.iter().take(NEAREST).map(|(_, name)| *name).collect();
    let near = if near.is_empty() {
        "known are".to_owned()
    } else {
        format!("did you mean {}? Known are", near.join(" or "))
    };
    let name: String = name.chars().take(40).collect();
    Err(format!(
        "there is no access `{name}`; {near} {}",
        known.join(", ")
    ))
}
