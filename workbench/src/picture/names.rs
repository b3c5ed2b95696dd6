//! Instructions by name, those of any N included.

use tilewright::atoms::tcgen05::{CtaGroup, accumulator};
use tilewright::atoms::{Scalar, wgmma};

use crate::Refusal;
pub(crate) use crate::calculator::instructions::{Atom, all};
use crate::calculator::instructions::{Named, find, mma_name, unknown};

/// The atom of that name.
pub(crate) fn atom_named(text: &str) -> Result<Named, Refusal> {
    let name = text.trim();
    if name.starts_with("wgmma.") {
        return wgmma_named(name).map_err(|error| error.at((0, text.len()), text));
    }
    if name.starts_with("tcgen05.mma.") {
        return accumulator_named(name).map_err(|error| error.at((0, text.len()), text));
    }
    let list = all();
    if let Some(found) = find(&list, name) {
        return Ok(found.clone());
    }
    Err(Refusal::usage("unknown_atom", unknown(&list, name)).at((0, text.len()), text))
}

/// `tcgen05.mma.m128n256`, then `.cta2`, `.cta2.sp` or `.ws`.
fn accumulator_named(name: &str) -> Result<Named, Refusal> {
    let form =
        "expected tcgen05.mma.mMnN, then .cta2, .cta2.sp or .ws, such as tcgen05.mma.m128n256";
    let usage = || Refusal::usage("unknown_atom", form.to_owned());
    let rest = name.strip_prefix("tcgen05.mma.m").ok_or_else(usage)?;
    let (shape, group) = rest.split_once('.').unwrap_or((rest, ""));
    let group = match group {
        "" => CtaGroup::One,
        "ws" => CtaGroup::OneWs,
        "cta2" => CtaGroup::Two,
        "cta2.sp" => CtaGroup::TwoSparse,
        _ => return Err(usage()),
    };
    let (m, n) = shape.split_once('n').ok_or_else(usage)?;
    let (Ok(m), Ok(n)) = (m.parse(), n.parse()) else {
        return Err(usage());
    };
    let atom = accumulator(group, m, n)
        .map_err(|error| Refusal::usage(error.code(), error.to_string()))?;
    Ok(Named {
        name: name.to_owned(),
        others: Vec::new(),
        atom: Atom::Accumulator(Box::new(atom), group),
    })
}

/// `wgmma.m64n128k16.bf16` or `wgmma.m64n128.f16.f16`.
fn wgmma_named(name: &str) -> Result<Named, Refusal> {
    let usage = |message: String| Refusal::usage("unknown_atom", message);
    let form = "expected wgmma.m64nNkK.TYPE or wgmma.m64nNkK.TYPE.ACCUMULATOR, such as wgmma.m64n128k16.bf16";
    let parts: Vec<&str> = name.split('.').collect();
    let (["wgmma", shape, operand] | ["wgmma", shape, operand, _]) = parts.as_slice() else {
        return Err(usage(form.to_owned()));
    };
    let scalar = |text: &str| {
        Scalar::ALL
            .iter()
            .copied()
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
        .map_err(|error| Refusal::usage(error.code(), error.to_string()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_own_instruction() {
        let list = all();
        for one in &list {
            for name in one.others.iter().chain([&one.name]) {
                let found = atom_named(name).unwrap_or_else(|_| panic!("{name} is not found"));
                assert_eq!(found.name, one.name, "{name}");
            }
        }
        let mut names: Vec<&String> = list.iter().map(|one| &one.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list.len());
    }

    #[test]
    fn types_may_be_written_out() {
        for (name, short) in [
            ("mma.m16n8k16.f16.f32", "mma.m16n8k16.f16"),
            ("mma.m16n8k32.s8.s32", "mma.m16n8k32.s8"),
            ("mma.m16n8k16.f16.f16", "mma.m16n8k16.f16.f16"),
        ] {
            assert_eq!(atom_named(name).unwrap().name, short);
        }
    }

    #[test]
    fn names_nearby_are_offered() {
        let message = |name: &str| unknown(&all(), name);
        assert_eq!(
            message("ldmatrx.x4"),
            "there is no such instruction; did you mean ldmatrix.x4, ldmatrix.x1 or ldmatrix.x2?"
        );
        assert!(
            message("mma.m16n8")
                .starts_with("mma.m16n8 is not the whole name; there are mma.m16n8k")
        );
        assert!(message("mma").ends_with("more: show --atom list"));
        assert!(message("mma.m16n8k17.f16").contains("mma.m16n8k16.f16"));
        assert!(message("mfma_f32_32x32x8_f61").contains("mfma_f32_32x32x8_f16"));
        assert!(message("hello").contains("show --atom list"));
    }

    #[test]
    fn accumulators_of_any_n_have_names() {
        for good in [
            "m128n256",
            "m64n8",
            "m64n64.ws",
            "m256n16.cta2",
            "m128n32.cta2.sp",
        ] {
            assert!(atom_named(&format!("tcgen05.mma.{good}")).is_ok(), "{good}");
        }
        for bad in [
            "",
            "m128",
            "m128n7",
            "m256n16",
            "m128n16.cta3",
            "m128n16.cta2.ws",
            "mxn8",
        ] {
            assert!(atom_named(&format!("tcgen05.mma.{bad}")).is_err(), "{bad}");
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
