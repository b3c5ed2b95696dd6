//! Instructions by name.
//!
//! Names are short forms of what PTX says: `ldmatrix.x4.trans`, `cp.async.16`, `mma.m16n8k16.f16` (operand type, then the
//! accumulator's if another atom has a wider one), `wgmma.m64n128k16.bf16`. PTX's own names work too.

use tilewright::atoms::{COPY_ATOMS, CopyAtom, MMA_ATOMS, MmaAtom, Scalar, wgmma};

use crate::error::CliError;

const SCALARS: [Scalar; 10] = [
    Scalar::F16,
    Scalar::Bf16,
    Scalar::Tf32,
    Scalar::F32,
    Scalar::F64,
    Scalar::S8,
    Scalar::U8,
    Scalar::E4m3,
    Scalar::E5m2,
    Scalar::S32,
];

/// An instruction that has a picture.
pub(crate) enum Atom {
    /// A copy.
    Copy(&'static CopyAtom),
    /// A matrix instruction.
    Mma(Box<MmaAtom>),
}

/// `ldmatrix.x4.trans`, `cp.async.16`.
pub(crate) fn copy_name(atom: &CopyAtom) -> String {
    if let Some(bytes) = atom
        .name
        .strip_prefix("cp.async")
        .and_then(|rest| rest.rsplit(' ').next())
    {
        return format!("cp.async.{bytes}");
    }
    let parts: Vec<&str> = atom
        .name
        .split('.')
        .filter(|part| part.ends_with("matrix") || part.starts_with('x') || *part == "trans")
        .collect();
    parts.join(".")
}

/// `mma.m16n8k16.f16`, with the accumulator's type where another atom has a wider one.
pub(crate) fn mma_name(atom: &MmaAtom) -> String {
    let same = |other: &&&MmaAtom| {
        (other.m, other.n, other.k, other.a_type) == (atom.m, atom.n, atom.k, atom.a_type)
    };
    let shape = format!(
        "mma.m{}n{}k{}.{}",
        atom.m,
        atom.n,
        atom.k,
        atom.a_type.name()
    );
    match MMA_ATOMS.iter().find(same) {
        Some(first) if first.c_type != atom.c_type => format!("{shape}.{}", atom.c_type.name()),
        _ => shape,
    }
}

/// The atom of that name.
pub(crate) fn atom_named(text: &str) -> Result<Atom, CliError> {
    let name = text.trim();
    for atom in COPY_ATOMS {
        if atom.name == name || copy_name(atom) == name {
            return Ok(Atom::Copy(atom));
        }
    }
    for atom in MMA_ATOMS {
        let full = format!("{}.{}", mma_shape(atom), atom.a_type.name());
        let with_accumulator = format!("{full}.{}", atom.c_type.name());
        if [atom.name, &mma_name(atom), &with_accumulator].contains(&name) {
            return Ok(Atom::Mma(Box::new(**atom)));
        }
    }
    if name.starts_with("wgmma") {
        return wgmma_named(name).map_err(|error| error.at((0, text.len()), text));
    }
    let copies = COPY_ATOMS.iter().map(|atom| copy_name(atom));
    let known: Vec<String> = copies
        .chain(MMA_ATOMS.iter().map(|atom| mma_name(atom)))
        .collect();
    Err(CliError::usage(
        "unknown_atom",
        format!(
            "no such instruction; one of {}, wgmma.m64nNkK.TYPE",
            known.join(", ")
        ),
    )
    .at((0, text.len()), text))
}

fn mma_shape(atom: &MmaAtom) -> String {
    format!("mma.m{}n{}k{}", atom.m, atom.n, atom.k)
}

/// `wgmma.m64n128k16.bf16` or `wgmma.m64n128.f16.f16`.
fn wgmma_named(name: &str) -> Result<Atom, CliError> {
    let usage = |message: String| CliError::usage("unknown_atom", message);
    let form = "expected wgmma.m64nNkK.TYPE or wgmma.m64nNkK.TYPE.ACCUMULATOR, such as wgmma.m64n128k16.bf16";
    let parts: Vec<&str> = name.split('.').collect();
    let (["wgmma", shape, operand] | ["wgmma", shape, operand, _]) = parts.as_slice() else {
        return Err(usage(form.to_owned()));
    };
    let scalar = |text: &str| {
        SCALARS
            .into_iter()
            .find(|scalar| scalar.name() == text)
            .ok_or_else(|| usage(format!("{form}; '{text}' is no type")))
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
    let atom = wgmma(n, operand, accumulator)
        .map_err(|error| CliError::usage(error.code(), error.to_string()))?;
    if k.is_some_and(|k| k != atom.k) {
        return Err(usage(format!(
            "wgmma of {} has k = {}",
            operand.name(),
            atom.k
        )));
    }
    Ok(Atom::Mma(Box::new(atom)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_name_finds_its_own_atom() {
        for atom in COPY_ATOMS {
            for name in [atom.name.to_owned(), copy_name(atom)] {
                let Ok(Atom::Copy(found)) = atom_named(&name) else {
                    panic!("{name} is not found");
                };
                assert_eq!(found.name, atom.name);
            }
        }
        for atom in MMA_ATOMS {
            for name in [atom.name.to_owned(), mma_name(atom)] {
                let Ok(Atom::Mma(found)) = atom_named(&name) else {
                    panic!("{name} is not found");
                };
                assert_eq!(found.name, atom.name);
            }
        }
    }

    #[test]
    fn wgmma_names_are_checked() {
        for good in [
            "wgmma.m64n8k16.f16",
            "wgmma.m64n256.bf16.f32",
            "wgmma.m64n32k32.s8",
        ] {
            assert!(atom_named(good).is_ok(), "{good}");
        }
        for bad in [
            "wgmma",
            "wgmma.m64n8k16",
            "wgmma.m64n7k16.f16",
            "wgmma.m64n8k8.f16",
            "wgmma.m64n264k16.f16",
            "wgmma.m64n-8k16.f16",
            "wgmma.m64n8k16.f64",
            "wgmma.m32n8k16.f16",
            "wgmma.m64n8k16.f16.f32.x",
        ] {
            assert!(atom_named(bad).is_err(), "{bad}");
        }
    }
}
