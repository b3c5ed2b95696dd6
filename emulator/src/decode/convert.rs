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
        let float_to_int = !dty.is_int() || aty.is_int();
        if !float_to_int && !rounding.is_some_and(|r| r.1) {
            return m.invalid("float to integer needs .rni, .rzi, .rmi or .rpi");
        }
        let int_to_float = dty.is_float() && aty.is_int();
        if int_to_float && rounding.is_none_or(|r| r.1) {
            return m.invalid("integer to float needs .rn, .rz, .rm or .rp");
        }
        let narrowing = dty.is_float()
            && aty.is_float()
            && !is_pair(aty)
            && dty != ScalarType::F32
            && dty != ScalarType::F64
            && aty != dty
            && !(aty == ScalarType::F16 && dty == ScalarType::Bf16 && rounding.is_some());
        let narrowing = narrowing || (dty == ScalarType::F32 && aty == ScalarType::F64);
        if narrowing && rounding.is_none() {
            return m.invalid("a narrowing conversion needs a rounding");
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
        let relaxed = aty.is_int() || aty == ScalarType::F16;
        let a = self.src_reg(&i.operands[1], aty, relaxed)?;
        let b = if n == 3 {
            self.src_reg(&i.operands[2], aty, relaxed)?
        } else {
            a
        };
        let d = self.dst_reg(&i.operands[0], dty, dty.is_int() || packed == Packed::No)?;
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
