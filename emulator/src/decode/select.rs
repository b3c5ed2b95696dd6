//! Decoding of comparisons, selections and moves (PTX ISA, sections 9.7.6, 9.7.7, 9.7.9.3 and 9.7.9.4).

use super::{Decoder, Mods, Result, special};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Bool, Cmp, CmpType, Compare, NONE, Op, Reg, Row, TestP};
use crate::types::{File, ScalarType};

impl<'a> Decoder<'a> {
    pub(super) fn testp(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let what = m.find(|s| {
            Some(match s {
                "finite" => TestP::Finite,
                "infinite" => TestP::Infinite,
                "number" => TestP::Number,
                "notanumber" => TestP::NotANumber,
                "normal" => TestP::Normal,
                "subnormal" => TestP::Subnormal,
                _ => return None,
            })
        });
        let ty = m.ty()?;
        let (Some(what), ScalarType::F32 | ScalarType::F64) = (what, ty) else {
            return m.invalid("this form");
        };
        Self::count(i, 2..=2)?;
        let a = self.src(&i.operands[1], ty)?;
        let d = self.dst_some(&i.operands[0], ScalarType::Pred)?;
        Ok(Op::Testp {
            what,
            wide: ty == ScalarType::F64,
            d,
            a,
        })
    }

    /// `setp` and `set`.
    pub(super) fn set(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let unsigned_only = m
            .list
            .iter()
            .any(|(s, _)| matches!(*s, "lo" | "ls" | "hi" | "hs"));
        let cmp = m.find(|s| {
            Some(match s {
                "eq" => Cmp::Eq,
                "ne" => Cmp::Ne,
                "lt" | "lo" => Cmp::Lt,
                "le" | "ls" => Cmp::Le,
                "gt" | "hi" => Cmp::Gt,
                "ge" | "hs" => Cmp::Ge,
                "equ" => Cmp::Equ,
                "neu" => Cmp::Neu,
                "ltu" => Cmp::Ltu,
                "leu" => Cmp::Leu,
                "gtu" => Cmp::Gtu,
                "geu" => Cmp::Geu,
                "num" => Cmp::Num,
                "nan" => Cmp::Nan,
                _ => return None,
            })
        });
        let Some(cmp) = cmp else {
            return m.invalid("a comparison operator is needed");
        };
        let combine = m.find(|s| {
            Some(match s {
                "and" => Bool::And,
                "or" => Bool::Or,
                "xor" => Bool::Xor,
                _ => return None,
            })
        });
        let ftz = m.take("ftz");
        let is_set = i.name == "set";
        let dtype = if is_set { Some(m.ty()?) } else { None };
        let ty = m.ty()?;
        let packed = matches!(ty, ScalarType::F16x2 | ScalarType::Bf16x2);
        let cty = match ty {
            ScalarType::U16 | ScalarType::B16 => CmpType::U16,
            ScalarType::S16 => CmpType::S16,
            ScalarType::U32 | ScalarType::B32 => CmpType::U32,
            ScalarType::S32 => CmpType::S32,
            ScalarType::U64 | ScalarType::B64 => CmpType::U64,
            ScalarType::S64 => CmpType::S64,
            ScalarType::F16 | ScalarType::F16x2 if ftz => CmpType::F16Ftz,
            ScalarType::F16 | ScalarType::F16x2 => CmpType::F16,
            ScalarType::Bf16 | ScalarType::Bf16x2 => CmpType::Bf16,
            ScalarType::F32 if ftz => CmpType::F32Ftz,
            ScalarType::F32 => CmpType::F32,
            ScalarType::F64 => CmpType::F64,
            _ => return m.invalid("this type"),
        };
        let ordered_only = matches!(
            cmp,
            Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan
        );
        let is_unsigned = ty.is_int() && !ty.is_signed();
        let equality = matches!(cmp, Cmp::Eq | Cmp::Ne);
        if (unsigned_only && !is_unsigned) || (ty.is_untyped() && !equality) {
            return m.invalid("this comparison does not go with this type");
        }
        if ordered_only && !ty.is_float() {
            return m.invalid("this comparison needs a float type");
        }
        let n = 3 + usize::from(combine.is_some());
        Self::count(i, n..=n)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let combine = match combine {
            Some(op) => {
                let (row, negated) = self.src_pred(&i.operands[3])?;
                Some((op, row, negated))
            }
            None => None,
        };
        let cmp = Box::new(Compare {
            cmp,
            ty: cty,
            a,
            b,
            combine,
        });
        if let Some(dtype) = dtype {
            let (truth, ok) = match dtype {
                ScalarType::F32 => (1.0f32.to_bits(), ty.is_plain()),
                ScalarType::U32 | ScalarType::S32 => (u32::MAX, true),
                ScalarType::U16 | ScalarType::S16 => (0xffff, !packed && ty.is_float()),
                ScalarType::F16 => (0x3c00, !packed),
                ScalarType::Bf16 => (0x3f80, !packed),
                ScalarType::F16x2 => (0x3c00, packed),
                ScalarType::Bf16x2 => (0x3f80, packed),
                _ => (0, false),
            };
            if !ok {
                return m.invalid("this destination type");
            }
            let d = self.dst_some(&i.operands[0], dtype)?;
            return Ok(if packed {
                Op::SetHalf2 { cmp, d, truth }
            } else {
                Op::Set { cmp, d, truth }
            });
        }
        let (p, q) = self.predicates(&i.operands[0])?;
        Ok(if packed {
            Op::SetpHalf2 { cmp, p, q }
        } else {
            Op::Setp { cmp, p, q }
        })
    }

    /// Destination `p` or `p|q`.
    pub(super) fn predicates(&mut self, o: &OperandAst<'a>) -> Result<(Row, Row)> {
        match &o.kind {
            OperandKind::Pair(p, q) => Ok((
                self.dst(p, ScalarType::Pred)?,
                self.dst(q, ScalarType::Pred)?,
            )),
            _ => Ok((self.dst(o, ScalarType::Pred)?, NONE)),
        }
    }

    pub(super) fn selp(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if !ty.is_plain() || !(16..=64).contains(&ty.bits()) {
            return m.invalid("this type");
        }
        Self::count(i, 4..=4)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let (p, negated) = self.src_pred(&i.operands[3])?;
        let (a, b) = if negated { (b, a) } else { (a, b) };
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(if ty.bits() == 64 {
            Op::Selp64 { d, a, b, p }
        } else {
            Op::Selp32 { d, a, b, p }
        })
    }

    pub(super) fn slct(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ftz = m.take("ftz");
        let (ty, cty) = (m.ty()?, m.ty()?);
        let float = cty == ScalarType::F32;
        if !ty.is_plain() || !(16..=64).contains(&ty.bits()) || !(float || cty == ScalarType::S32) {
            return m.invalid("this type");
        }
        Self::count(i, 4..=4)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let c = self.src(&i.operands[3], cty)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Slct {
            wide: ty.bits() == 64,
            float,
            ftz,
            d,
            a,
            b,
            c,
        })
    }

    pub(super) fn mov(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let vector = m.find(|s| match s {
            "v2" => Some(2),
            "v4" => Some(4),
            _ => None,
        });
        let ty = m.ty()?;
        Self::count(i, 2..=2)?;
        let (dst, src) = (&i.operands[0], &i.operands[1]);
        if ty == ScalarType::B128 {
            let a = self.wide_source(src)?;
            let d = self.wide_destination(dst)?;
            let reg = |row| Reg {
                file: File::R64,
                row,
            };
            let moves = d.into_iter().zip(a).map(|(d, a)| (reg(d), reg(a)));
            return Ok(Op::Moves(moves.collect()));
        }
        if let Some(n) = vector {
            let (OperandKind::Vector(to), OperandKind::Vector(from)) = (&dst.kind, &src.kind)
            else {
                return Self::type_error(src, "vector registers");
            };
            if to.len() != n || from.len() != n {
                return Self::type_error(src, &format!("vectors of {n} registers"));
            }
            let moves = to.iter().zip(from).map(|(d, a)| {
                let a = self.src_reg(a, ty, false)?;
                Ok((self.dst_reg(d, ty, false)?, a))
            });
            return Ok(Op::Moves(moves.collect::<Result<_>>()?));
        }
        if let Some(element) = self.element(src)? {
            let a = self.src(&element, ty)?;
            let d = self.dst_some(dst, ty)?;
            return Ok(if ty.bits() == 64 {
                Op::Mov64 { d, a }
            } else {
                Op::Mov32 { d, a }
            });
        }
        if let (OperandKind::Not(_), ScalarType::Pred) = (&src.kind, ty) {
            let (a, _) = self.src_pred(src)?;
            let d = self.dst_some(dst, ty)?;
            let lut = 0b0011;
            return Ok(Op::PredLogic { lut, d, a, b: a });
        }
        if let OperandKind::Vector(parts) = &src.kind {
            let (part, bits) = Self::part_type(i, ty, parts.len())?;
            let parts = parts
                .iter()
                .map(|p| self.src_reg(p, part, false))
                .collect::<Result<Box<[Reg]>>>()?;
            let d = self.dst_reg(dst, ty, false)?;
            if d.row == NONE {
                return Self::type_error(dst, "a destination register");
            }
            return Ok(Op::Pack { d, bits, parts });
        }
        if let OperandKind::Vector(parts) = &dst.kind {
            let (part, bits) = Self::part_type(i, ty, parts.len())?;
            let a = self.src_reg(src, ty, false)?;
            let parts = parts
                .iter()
                .map(|p| self.dst_reg(p, part, false))
                .collect::<Result<Box<[Reg]>>>()?;
            return Ok(Op::Unpack { a, bits, parts });
        }
        if let OperandKind::Name {
            name,
            dim: None,
            offset: 0,
        } = src.kind
            && let Some((bits, shift)) = special::is_clock(name)
        {
            if ty.bits() != bits {
                return Self::type_error(src, &format!("a {bits}-bit move"));
            }
            let d = self.dst_reg(dst, ty, false)?;
            return Ok(Op::Clock { d, shift });
        }
        if ty != ScalarType::Pred && (ty.bits() < 16 || !ty.is_plain()) {
            return m.invalid("this type");
        }
        let a = self.src(src, ty)?;
        let d = self.dst_some(dst, ty)?;
        Ok(match ty.file() {
            Some(File::Pred) => Op::MovPred { d, a },
            Some(File::R64) => Op::Mov64 { d, a },
            _ if ty.bits() == 16 => Op::Mov16 { d, a },
            _ => Op::Mov32 { d, a },
        })
    }

    /// The low and high halves of a 128-bit source: a register, or two of 64 bits in braces.
    pub(super) fn wide_source(&mut self, o: &OperandAst<'a>) -> Result<[Row; 2]> {
        if let OperandKind::Vector(parts) = &o.kind
            && let [low, high] = parts.as_slice()
        {
            return Ok([
                self.src(low, ScalarType::B64)?,
                self.src(high, ScalarType::B64)?,
            ]);
        }
        let Some(halves) = self.halves(o) else {
            return Self::type_error(o, "a .b128 register or {low, high}");
        };
        self.read.extend(halves);
        Ok(halves.map(|r| r.row))
    }

    /// The low and high halves of a 128-bit destination.
    pub(super) fn wide_destination(&mut self, o: &OperandAst<'a>) -> Result<[Row; 2]> {
        if let OperandKind::Vector(parts) = &o.kind
            && let [low, high] = parts.as_slice()
        {
            return Ok([
                self.dst(low, ScalarType::B64)?,
                self.dst(high, ScalarType::B64)?,
            ]);
        }
        let Some(halves) = self.halves(o) else {
            return Self::type_error(o, "a .b128 register or {low, high}");
        };
        self.written.extend(halves);
        Ok(halves.map(|r| r.row))
    }

    /// Type and bits of one of `n` parts of `ty`.
    pub(super) fn part_type(
        i: &InstrAst<'a>,
        ty: ScalarType,
        n: usize,
    ) -> Result<(ScalarType, u8)> {
        let part = match (ty.bits(), n) {
            (64, 2) => ScalarType::B32,
            (64, 4) | (32, 2) => ScalarType::B16,
            (64, 8) | (32, 4) | (16, 2) => ScalarType::B8,
            _ => {
                let what = format!("`mov` of {n} parts to {} bits", ty.bits());
                return Err(i.span.error(Kind::Invalid(what)));
            }
        };
        Ok((part, part.bits() as u8))
    }
}
