//! Decoding of `cvt` (PTX ISA, section 9.7.9.21).

use super::{Decoder, Mods, Result};
use crate::ast::InstrAst;
use crate::ir::{Convert, Format, Op, Packed, Rounding};
use crate::types::ScalarType;

fn format(ty: ScalarType) -> Option<Format> {
    use ScalarType as T;
    Some(match ty {
        T::U8 | T::U16 | T::U32 | T::U64 => Format::U(ty.bits() as u8),
        T::S8 | T::S16 | T::S32 | T::S64 => Format::S(ty.bits() as u8),
        T::F16 | T::F16x2 => Format::F16,
        T::Bf16 | T::Bf16x2 => Format::Bf16,
        T::Tf32 => Format::Tf32,
        T::F32 => Format::F32,
        T::F64 => Format::F64,
        T::E4m3x2 => Format::E4m3,
        T::E5m2x2 => Format::E5m2,
        _ => return None,
    })
}

fn is_pair(ty: ScalarType) -> bool {
    matches!(
        ty,
        ScalarType::F16x2 | ScalarType::Bf16x2 | ScalarType::E4m3x2 | ScalarType::E5m2x2
    )
}

/// The integers that a type holds: the power of two of the largest, and whether there are negative ones.
fn holds(ty: ScalarType) -> (u32, bool) {
    (ty.bits() - u32::from(ty.is_signed()), ty.is_signed())
}

/// Why a conversion of single values between these types does not have these modifiers, or `None` (PTX ISA, section 9.7.9.21, with
/// the verdicts of ptxas where it is silent). `.ftz` and `.sat` are still among `m`.
fn misfit(
    m: &Mods<'_>,
    d: ScalarType,
    a: ScalarType,
    rounding: Option<(Rounding, bool)>,
) -> Option<&'static str> {
    use ScalarType as T;
    let has = |name: &str| m.list.iter().any(|(s, _)| *s == name);
    let (ftz, sat) = (has("ftz"), has("sat"));
    let integral = rounding.is_some_and(|r| r.1);
    let bf16 = d == T::Bf16 || a == T::Bf16;
    match (d.is_int(), a.is_int()) {
        (true, true) => {
            let ((width, negative), (source, source_negative)) = (holds(d), holds(a));
            let always_fits = source <= width && (negative || !source_negative);
            if rounding.is_some() || ftz {
                Some("integers are not rounded")
            } else if sat && always_fits {
                Some(".sat where every value fits")
            } else {
                None
            }
        }
        (true, false) if !integral => Some("float to integer needs .rni, .rzi, .rmi or .rpi"),
        (false, true) if rounding.is_none() || integral => {
            Some("integer to float needs .rn, .rz, .rm or .rp")
        }
        (true, false) | (false, true) => {
            let integer = if d.is_int() { d } else { a };
            let float = if d.is_int() { a } else { d };
            if ftz && float != T::F32 {
                Some(".ftz without .f32")
            } else if bf16 && (sat || integer.bits() < 16) {
                Some(".bf16 with .sat or 8 bits")
            } else {
                None
            }
        }
        (false, false) if !matches!(d, T::F16 | T::Bf16 | T::F32 | T::F64) => {
            let narrow = d != a && !is_pair(a);
            (narrow && rounding.is_none()).then_some("a narrowing conversion needs a rounding")
        }
        (false, false) => {
            let narrows = matches!(
                (d, a),
                (T::F16 | T::Bf16, T::F32 | T::F64) | (T::F32, T::F64)
            );
            let may_round = narrows
                || matches!(
                    (d, a),
                    (T::F16 | T::F32 | T::F64, T::Bf16) | (T::Bf16, T::F16)
                );
            if integral && d != a {
                Some("rounding to an integer keeps the type")
            } else if narrows && rounding.is_none() {
                Some("a narrowing conversion needs a rounding")
            } else if rounding.is_some() && !integral && !may_round {
                Some("this conversion is exact and takes no rounding")
            } else if ftz && d != T::F32 && a != T::F32 {
                Some(".ftz without .f32")
            } else if sat && bf16 {
                Some(".sat with .bf16")
            } else {
                None
            }
        }
    }
}

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is `cvt`.
    pub(super) fn convert(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        if i.name != "cvt" {
            return Ok(None);
        }
        if m.take("pack") {
            return self.cvt_pack(i, m).map(Some);
        }
        let (dty, aty) = (m.ty()?, m.ty()?);
        let (Some(to), Some(from)) = (format(dty), format(aty)) else {
            return m.invalid("these types");
        };
        let rounding = m.find(|s| {
            Some(match s {
                "rn" => (Rounding::Nearest, false),
                "rna" => (Rounding::NearestAway, false),
                "rz" => (Rounding::Zero, false),
                "rm" => (Rounding::Down, false),
                "rp" => (Rounding::Up, false),
                "rni" => (Rounding::Nearest, true),
                "rzi" => (Rounding::Zero, true),
                "rmi" => (Rounding::Down, true),
                "rpi" => (Rounding::Up, true),
                _ => return None,
            })
        });
        if let Some(what) = misfit(m, dty, aty, rounding) {
            return m.invalid(what);
        }
        let (rounding, integral) = rounding.unwrap_or((Rounding::Nearest, false));
        let packed = match (is_pair(dty), is_pair(aty)) {
            (false, false) => Packed::No,
            (true, false) if aty == ScalarType::F32 => Packed::Join,
            (true, true) => Packed::Both,
            _ => return m.invalid("these types"),
        };
        let (ftz, sat, satfinite, relu) = (
            m.take("ftz"),
            m.take("sat"),
            m.take("satfinite"),
            m.take("relu"),
        );
        if matches!(to, Format::E4m3 | Format::E5m2) && !satfinite {
            return m.invalid(".satfinite is needed");
        }
        if (satfinite || relu)
            && (!dty.is_float() || matches!(dty, ScalarType::F32 | ScalarType::F64))
        {
            return m.invalid(".satfinite or .relu with this type");
        }
        let n = if packed == Packed::Join { 3 } else { 2 };
        Self::count(i, n..=n)?;
        let relaxed = packed == Packed::No;
        // Registers may be wider than their types, but not in conversions from and to .bf16.
        let relaxed = relaxed && dty != ScalarType::Bf16 && aty != ScalarType::Bf16;
        let a = self.src_reg(&i.operands[1], aty, relaxed)?;
        let b = if n == 3 {
            self.src_reg(&i.operands[2], aty, relaxed)?
        } else {
            a
        };
        let d = self.dst_reg(&i.operands[0], dty, relaxed)?;
        if d.row == crate::ir::NONE {
            return Self::type_error(&i.operands[0], "a destination register");
        }
        let c = Convert {
            to,
            from,
            rounding,
            integral,
            ftz,
            sat,
            satfinite,
            relu,
            packed,
            d,
            a,
            b,
        };
        Ok(Some(Op::Cvt(Box::new(c))))
    }
}
