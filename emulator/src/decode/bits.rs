//! Decoding of logic, shifts, bit fields and byte operations (PTX ISA, sections 9.7.1.14 to 9.7.1.24 and 9.7.8).

use super::arith::by_sign;
use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{IntOp, Lop3Pred, Op};
use crate::types::ScalarType;

impl<'a> Decoder<'a> {
    pub(super) fn logic(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let (f, n) = match i.name {
            "and" => (IntOp::And, 2),
            "or" => (IntOp::Or, 2),
            "xor" => (IntOp::Xor, 2),
            "not" => (IntOp::Not, 1),
            _ => (IntOp::Cnot, 1),
        };
        if ty == ScalarType::Pred {
            if f == IntOp::Cnot {
                return m.invalid("this type");
            }
            Self::count(i, n + 1..=n + 1)?;
            let (a, not_a) = self.src_pred(&i.operands[1])?;
            let (b, not_b) = match n {
                2 => self.src_pred(&i.operands[2])?,
                _ => (a, false),
            };
            let d = self.dst_some(&i.operands[0], ty)?;
            // The columns of `a` and of `b`, negated or not.
            let x = if not_a { 0b0011 } else { 0b1100 };
            let y = if not_b { 0b0101 } else { 0b1010 };
            let lut = match f {
                IntOp::And => x & y,
                IntOp::Or => x | y,
                IntOp::Xor => x ^ y,
                _ => !x & 0xf,
            };
            return Ok(Op::PredLogic { lut, d, a, b });
        }
        if !ty.is_untyped() {
            return m.invalid("logic needs an untyped .b16, .b32 or .b64");
        }
        self.int_op(i, m, f, ty, n)
    }

    pub(super) fn shift(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let f = match i.name {
            "shl" => IntOp::Shl,
            "shr" => by_sign(ty, IntOp::ShrU, IntOp::ShrS),
            _ => by_sign(ty, IntOp::BfeU, IntOp::BfeS),
        };
        let n = if i.name == "bfe" { 4 } else { 3 };
        if i.name == "shl" && !ty.is_untyped() {
            return m.invalid("the type is .b16, .b32 or .b64");
        }
        if ty.is_float() || ty == ScalarType::Pred || (n == 4 && (ty.bits() < 32 || !ty.is_int())) {
            return m.invalid("this type");
        }
        Self::count(i, n..=n)?;
        let a = self.src(&i.operands[1], ty)?;
        if n == 4 {
            Self::field(&i.operands[2..])?;
        }
        let b = self.src(&i.operands[2], ScalarType::U32)?;
        let c = if n == 4 {
            self.src(&i.operands[3], ScalarType::U32)?
        } else {
            b
        };
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(match ty.bits() {
            16 => Op::I16 {
                f,
                signed: ty.is_signed(),
                wide: false,
                d,
                a,
                b,
                c,
            },
            32 => Op::I32 { f, d, a, b, c },
            64 => Op::Shift64 { f, d, a, b, c },
            _ => return m.invalid("this width"),
        })
    }

    pub(super) fn funnel(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let left = m.take("l");
        if !left && !m.take("r") {
            return m.invalid("one of .l, .r is needed");
        }
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return m.invalid("one of .clamp, .wrap is needed");
        }
        let f = match (left, clamp) {
            (true, true) => IntOp::ShfLClamp,
            (true, false) => IntOp::ShfLWrap,
            (false, true) => IntOp::ShfRClamp,
            (false, false) => IntOp::ShfRWrap,
        };
        let ty = m.ty()?;
        if ty != ScalarType::B32 {
            return m.invalid("this type");
        }
        self.int_op(i, m, f, ty, 3)
    }

    pub(super) fn bfi(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if !matches!(ty, ScalarType::B32 | ScalarType::B64) {
            return m.invalid("this type");
        }
        Self::count(i, 5..=5)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        Self::field(&i.operands[3..])?;
        let pos = self.src(&i.operands[3], ScalarType::U32)?;
        let len = self.src(&i.operands[4], ScalarType::U32)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Bfi {
            wide: ty.bits() == 64,
            d,
            a,
            b,
            pos,
            len,
        })
    }

    /// Constants for the start and the length of a field of bits are from 0 to 255.
    fn field(operands: &[OperandAst<'a>]) -> Result<()> {
        let out = operands
            .iter()
            .find(|o| matches!(o.kind, OperandKind::Int(v) if !(0..=255).contains(&v)));
        match out {
            Some(o) => Self::type_error(o, "a constant from 0 to 255 or a register"),
            None => Ok(()),
        }
    }

    pub(super) fn count_bits(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let f = match (i.name, m.take("shiftamt")) {
            ("popc", false) => IntOp::Popc,
            ("clz", false) => IntOp::Clz,
            ("bfind", false) => by_sign(ty, IntOp::BfindU, IntOp::BfindS),
            ("bfind", true) => by_sign(ty, IntOp::BfindShiftU, IntOp::BfindShiftS),
            _ => return m.invalid(".shiftamt"),
        };
        let fits = if i.name == "bfind" {
            ty.is_int()
        } else {
            ty.is_untyped()
        };
        if !fits || ty.bits() < 32 {
            return m.invalid("this type");
        }
        Self::count(i, 2..=2)?;
        let a = self.src(&i.operands[1], ty)?;
        let d = self.dst_some(&i.operands[0], ScalarType::U32)?;
        Ok(if ty.bits() == 64 {
            Op::Count64 { f, d, a }
        } else {
            Op::I32 {
                f,
                d,
                a,
                b: a,
                c: a,
            }
        })
    }

    pub(super) fn mask_extend(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return m.invalid("one of .clamp, .wrap is needed");
        }
        let ty = m.ty()?;
        let f = match (i.name, clamp) {
            ("bmsk", true) => IntOp::BmskClamp,
            ("bmsk", false) => IntOp::BmskWrap,
            (_, true) => by_sign(ty, IntOp::SzextClampU, IntOp::SzextClampS),
            (_, false) => by_sign(ty, IntOp::SzextWrapU, IntOp::SzextWrapS),
        };
        if ty.bits() != 32 || ty.is_untyped() != (i.name == "bmsk") {
            return m.invalid("this type");
        }
        self.int_op(i, m, f, ty, 2)
    }

    pub(super) fn prmt(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let f = m.find(|s| {
            Some(match s {
                "f4e" => IntOp::PrmtF4e,
                "b4e" => IntOp::PrmtB4e,
                "rc8" => IntOp::PrmtRc8,
                "ecl" => IntOp::PrmtEcl,
                "ecr" => IntOp::PrmtEcr,
                "rc16" => IntOp::PrmtRc16,
                _ => return None,
            })
        });
        if ty != ScalarType::B32 {
            return m.invalid("this type");
        }
        self.int_op(i, m, f.unwrap_or(IntOp::Prmt), ty, 3)
    }

    pub(super) fn lop3(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let or = m.take("or");
        let with = or || m.take("and");
        if m.ty()? != ScalarType::B32 {
            return m.invalid("this type");
        }
        let n = 5 + usize::from(with);
        Self::count(i, n..=n)?;
        let OperandKind::Int(lut @ 0..=255) = i.operands[4].kind else {
            return Self::type_error(&i.operands[4], "a truth table from 0 to 0xff");
        };
        let a = self.src(&i.operands[1], ScalarType::B32)?;
        let b = self.src(&i.operands[2], ScalarType::B32)?;
        let c = self.src(&i.operands[3], ScalarType::B32)?;
        if with {
            let (q, negated) = self.src_pred(&i.operands[5])?;
            let OperandKind::Pair(d, p) = &i.operands[0].kind else {
                return Self::type_error(&i.operands[0], "a pair d|p");
            };
            return Ok(Op::Lop3Pred(Box::new(Lop3Pred {
                lut: lut as u8,
                or,
                d: self.dst(d, ScalarType::B32)?,
                p: self.dst(p, ScalarType::Pred)?,
                sources: [a, b, c],
                q,
                negated,
            })));
        }
        let d = self.dst_some(&i.operands[0], ScalarType::B32)?;
        Ok(Op::Lop3 {
            lut: lut as u8,
            d,
            a,
            b,
            c,
        })
    }

    pub(super) fn dot(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let (hi, lo) = (m.take("hi"), m.take("lo"));
        let (a, b) = (m.ty()?, m.ty()?);
        let four = i.name == "dp4a";
        let f = match (four, hi, lo, a.is_signed(), b.is_signed()) {
            (true, false, false, false, false) => IntOp::Dp4aUU,
            (true, false, false, false, true) => IntOp::Dp4aUS,
            (true, false, false, true, false) => IntOp::Dp4aSU,
            (true, false, false, true, true) => IntOp::Dp4aSS,
            (false, false, true, false, false) => IntOp::Dp2aLoUU,
            (false, false, true, false, true) => IntOp::Dp2aLoUS,
            (false, false, true, true, false) => IntOp::Dp2aLoSU,
            (false, false, true, true, true) => IntOp::Dp2aLoSS,
            (false, true, false, false, false) => IntOp::Dp2aHiUU,
            (false, true, false, false, true) => IntOp::Dp2aHiUS,
            (false, true, false, true, false) => IntOp::Dp2aHiSU,
            (false, true, false, true, true) => IntOp::Dp2aHiSS,
            _ => return m.invalid("this form"),
        };
        if a.bits() != 32 || b.bits() != 32 || !a.is_int() || !b.is_int() {
            return m.invalid("this type");
        }
        self.int_op(i, m, f, ScalarType::B32, 3)
    }
}
