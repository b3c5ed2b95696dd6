//! Instructions by name: one list and one way to read a name, which pictures and the calculator share.
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
//! | `wgmma.m64n128k16.bf16`, `wgmma.m64n128k16.f16.f16` | any N; the accumulator's type where it is not f32 (integers: s32) |
//! | `tcgen05.mma.m128n256`, and `.cta2`, `.cta2.sp`, `.ws` | the accumulator in tensor memory; any N |
//! | `tcgen05.ld.16x256b.x2`, `tcgen05.st.…` | lanes and columns of each register |
//! | `mfma_f32_32x32x8_f16`, `wmma_f32_16x16x16_f16.wave64` | AMD's |
//!
//! The manuals' own names work too.

use tilewright::atoms::tcgen05::{
    Accumulator, CtaGroup, TmemCopy, TmemShape, accumulator, tmem_copy,
};
use tilewright::atoms::{
    BYTE_MATRIX_ATOMS, COPY_ATOMS, CopyAtom, E2M1_ATOMS, MFMA_ATOMS, MFMA_CDNA2_NAMES, MMA_ATOMS,
    MmaAtom, QUAD_PAIR_ATOMS, SPARSE_E2M1_ATOMS, SPARSE_MMA_ATOMS, Scalar, SparseMmaAtom,
    WMMA_ATOMS, mma_f8f6f4_atoms, mma_sp_f8f6f4_atoms, wgmma,
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

/// The instructions of any N: `wgmma`, and accumulators of `tcgen05.mma`.
const WGMMA: &str = "wgmma.";
const TCGEN05_MMA: &str = "tcgen05.mma.";

/// What a name ends with for each way to issue `tcgen05.mma`.
const GROUPS: [(&str, CtaGroup); 4] = [
    ("", CtaGroup::One),
    (".ws", CtaGroup::OneWs),
    (".cta2", CtaGroup::Two),
    (".cta2.sp", CtaGroup::TwoSparse),
];

/// Types of A, of which `wgmma` takes some.
const WGMMA_TYPES: [(Scalar, Scalar); 10] = [
    (Scalar::F16, Scalar::F32),
    (Scalar::F16, Scalar::F16),
    (Scalar::Bf16, Scalar::F32),
    (Scalar::Tf32, Scalar::F32),
    (Scalar::E4m3, Scalar::F32),
    (Scalar::E4m3, Scalar::F16),
    (Scalar::E5m2, Scalar::F32),
    (Scalar::E5m2, Scalar::F16),
    (Scalar::S8, Scalar::S32),
    (Scalar::U8, Scalar::S32),
];

/// The short name of every instruction, those of any N included.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = all().into_iter().map(|one| one.name).collect();
    let sizes = || (1..=32).map(|n| 8 * n);
    for (operand, accumulator) in WGMMA_TYPES {
        let atoms = sizes().filter_map(|n| wgmma(n, operand, accumulator).ok());
        names.extend(atoms.map(|atom| mma_name(&atom)));
    }
    for (end, group) in GROUPS {
        for m in [32, 64, 128, 256] {
            let fits = sizes().filter(|&n| accumulator(group, m, n).is_ok());
            names.extend(fits.map(|n| format!("{TCGEN05_MMA}m{m}n{n}{end}")));
        }
    }
    names
}

/// The instruction of that name, or the code and the text of an error.
pub(crate) fn named(name: &str) -> Result<Named, (&'static str, String)> {
    if name.starts_with(WGMMA) {
        return wgmma_named(name);
    }
    if name.starts_with(TCGEN05_MMA) {
        return accumulator_named(name);
    }
    let list = all();
    match find(&list, name) {
        Some(found) => Ok(found.clone()),
        None => Err((UNKNOWN, unknown(name))),
    }
}

/// The code of an error about a name.
pub(crate) const UNKNOWN: &str = "unknown_atom";

/// `tcgen05.mma.m128n256`, then `.cta2`, `.cta2.sp` or `.ws`.
fn accumulator_named(name: &str) -> Result<Named, (&'static str, String)> {
    let form = || {
        let text =
            "expected tcgen05.mma.mMnN, then .cta2, .cta2.sp or .ws, such as tcgen05.mma.m128n256";
        (UNKNOWN, text.to_owned())
    };
    let rest = name.strip_prefix("tcgen05.mma.m").ok_or_else(form)?;
    let (shape, end) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let group = GROUPS.iter().find(|group| group.0 == end);
    let (_, group) = *group.ok_or_else(form)?;
    let (m, n) = shape.split_once('n').ok_or_else(form)?;
    let (Ok(m), Ok(n)) = (m.parse(), n.parse()) else {
        return Err(form());
    };
    let atom = accumulator(group, m, n).map_err(|error| (error.code(), error.to_string()))?;
    Ok(Named {
        name: format!("{TCGEN05_MMA}m{m}n{n}{end}"),
        others: Vec::new(),
        atom: Atom::Accumulator(Box::new(atom), group),
    })
}

/// `wgmma.m64n128k16.bf16` or `wgmma.m64n128.f16.f16`.
fn wgmma_named(name: &str) -> Result<Named, (&'static str, String)> {
    let form = "expected wgmma.m64nNkK.TYPE or wgmma.m64nNkK.TYPE.ACCUMULATOR, such as wgmma.m64n128k16.bf16";
    let usage = |message: String| (UNKNOWN, message);
    let parts: Vec<&str> = name.split('.').collect();
    let (["wgmma", shape, operand] | ["wgmma", shape, operand, _]) = parts.as_slice() else {
        return Err(usage(form.to_owned()));
    };
    let scalar = |text: &str| {
        Scalar::ALL
            .iter()
            .copied()
            .find(|scalar| scalar.name() == text)
            .ok_or_else(|| usage(format!("{form}; '{text}' is not a type")))
    };
    let operand = scalar(operand)?;
    let accumulator = match parts.get(3) {
        Some(text) => scalar(text)?,
        None if matches!(operand, Scalar::S8 | Scalar::U8) => Scalar::S32,
        None => Scalar::F32,
    };
    let numbers = shape.strip_prefix("m64n").map(|rest| {
        let (n, k) = rest.split_once('k').unwrap_or((rest, ""));
        let k = if k.is_empty() {
            Some(None)
        } else {
            k.parse::<i64>().ok().map(Some)
        };
        (n.parse::<i64>().ok(), k)
    });
    let Some((Some(n), Some(k))) = numbers else {
        return Err(usage(form.to_owned()));
    };
    let atom = wgmma(n, operand, accumulator).map_err(|error| (error.code(), error.to_string()))?;
    if k.is_some_and(|k| k != atom.k) {
        return Err(usage(format!(
            "wgmma of {} has k = {}",
            operand.name(),
            atom.k
        )));
    }
    Ok(Named::new(
        mma_name(&atom),
        atom.name,
        Atom::Mma(Box::new(atom)),
    ))
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
pub(crate) fn unknown(name: &str) -> String {
    let list = names();
    let short: String = name.chars().take(60).collect();
    // A name without its types, or without its qualifiers, is the beginning of others.
    let begins: Vec<&str> = list
        .iter()
        .map(String::as_str)
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
        .map(|known| (distance(&short, known), known.as_str()))
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
