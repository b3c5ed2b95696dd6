//! Decoding of arithmetic, logic, comparison and move instructions (PTX ISA, sections 9.7.1 to 9.7.8 and `mov`).

use super::{Decoder, Mods, Result, special};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{
    Bool, Cmp, CmpType, Compare, FloatMode, FloatOp, IntOp, NONE, Op, Reg, Rounding, Row, TestP,
};
use crate::types::{File, ScalarType};

/// The rounding modifier of a float result, if there.
pub(super) fn rounding(m: &mut Mods<'_>) -> Option<Rounding> {
    m.find(|s| match s {
        "rn" => Some(Rounding::Nearest),
        "rz" => Some(Rounding::Zero),
        "rm" => Some(Rounding::Down),
        "rp" => Some(Rounding::Up),
        _ => None,
    })
}

/// Signed and unsigned variants of an operation by the signedness of the type.
fn by_sign(ty: ScalarType, u: IntOp, s: IntOp) -> IntOp {
    if ty.is_signed() { s } else { u }
}

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn arith(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let op = match i.name {
            "add" | "sub" | "addc" | "subc" => self.add_sub(i, m)?,
            "mul" | "mad" | "fma" | "madc" => self.mul_mad(i, m)?,
            "mul24" | "mad24" => self.mul24(i, m)?,
            "div" | "rem" | "min" | "max" | "neg" | "abs" => self.simple(i, m)?,
            "sad" => {
                let ty = m.ty()?;
                self.int_op(i, m, by_sign(ty, IntOp::SadU, IntOp::SadS), ty, 3)?
            }
            "and" | "or" | "xor" | "not" | "cnot" => self.logic(i, m)?,
            "shl" | "shr" | "bfe" => self.shift(i, m)?,
            "shf" => self.funnel(i, m)?,
            "bfi" => self.bfi(i, m)?,
            "brev" => {
                let ty = m.ty()?;
                self.int_op(i, m, IntOp::Brev, ty, 1)?
            }
            "popc" | "clz" | "bfind" => self.count_bits(i, m)?,
            "fns" => {
                let ty = m.ty()?;
                self.int_op(i, m, IntOp::Fns, ty, 3)?
            }
            "bmsk" | "szext" => self.mask_extend(i, m)?,
            "prmt" => self.prmt(i, m)?,
            "lop3" => self.lop3(i, m)?,
            "dp4a" | "dp2a" => self.dot(i, m)?,
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" => {
                self.float_unary(i, m)?
            }
            "testp" => self.testp(i, m)?,
            "setp" | "set" => self.set(i, m)?,
            "selp" => self.selp(i, m)?,
            "slct" => self.slct(i, m)?,
            "mov" => self.mov(i, m)?,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    /// `n` sources of type `ty` and a destination, missing rows [`NONE`] replaced by the first source.
    fn operands(&mut self, i: &InstrAst<'a>, ty: ScalarType, n: usize) -> Result<(Row, [Row; 3])> {
        Self::count(i, n + 1..=n + 1)?;
        let mut rows = [0; 3];
        for (k, row) in rows.iter_mut().enumerate().take(n) {
            *row = self.src(&i.operands[k + 1], ty)?;
        }
        for k in n..3 {
            rows[k] = rows[0];
        }
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok((d, rows))
    }

    /// An integer operation with `n` sources of one type.
    fn int_op(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        f: IntOp,
        ty: ScalarType,
        n: usize,
    ) -> Result<Op> {
        if ty.is_float() || ty == ScalarType::Pred {
            return m.unsupported("this type");
        }
        let (d, [a, b, c]) = self.operands(i, ty, n)?;
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
            64 => Op::I64 { f, d, a, b, c },
            _ => return m.unsupported("this width"),
        })
    }

    /// A float operation with `n` sources of one type.
    fn float_op(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        f: FloatOp,
        mode: FloatMode,
        ty: ScalarType,
        n: usize,
    ) -> Result<Op> {
        let (d, [a, b, c]) = self.operands(i, ty, n)?;
        Ok(match ty {
            ScalarType::F32 => Op::F32 {
                f,
                mode,
                d,
                a,
                b,
                c,
            },
            ScalarType::F64 => Op::F64 {
                f,
                mode,
                d,
                a,
                b,
                c,
            },
            ScalarType::F16 => Op::Half {
                f,
                bf16: false,
                packed: false,
                mode,
                d,
                a,
                b,
                c,
            },
            ScalarType::F16x2 => Op::Half {
                f,
                bf16: false,
                packed: true,
                mode,
                d,
                a,
                b,
                c,
            },
            ScalarType::Bf16 => Op::Half {
                f,
                bf16: true,
                packed: false,
                mode,
                d,
                a,
                b,
                c,
            },
            ScalarType::Bf16x2 => Op::Half {
                f,
                bf16: true,
                packed: true,
                mode,
                d,
                a,
                b,
                c,
            },
            _ => return m.unsupported("this type"),
        })
    }

    fn mode(m: &mut Mods<'a>) -> FloatMode {
        let rounding = rounding(m).unwrap_or(Rounding::Nearest);
        FloatMode {
            rounding,
            ftz: m.take("ftz"),
            sat: m.take("sat"),
        }
    }

    fn add_sub(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let sub = i.name.starts_with("sub");
        let carry_in = i.name.ends_with('c');
        let carry_out = m.take("cc");
        let ty = m.ty()?;
        if ty.is_float() {
            if carry_in || carry_out {
                return m.unsupported("this type");
            }
            let mode = Self::mode(m);
            return self.float_op(
                i,
                m,
                if sub { FloatOp::Sub } else { FloatOp::Add },
                mode,
                ty,
                2,
            );
        }
        if carry_in || carry_out {
            if ty.bits() < 32 || !ty.is_int() {
                return m.unsupported("this type");
            }
            let (d, [a, b, _]) = self.operands(i, ty, 2)?;
            return Ok(Op::Carry {
                sub,
                wide: ty.bits() == 64,
                carry_in,
                carry_out,
                d,
                a,
                b,
            });
        }
        let f = match (m.take("sat"), ty, sub) {
            (false, _, false) => IntOp::Add,
            (false, _, true) => IntOp::Sub,
            (true, ScalarType::S32, false) => IntOp::AddSat,
            (true, ScalarType::S32, true) => IntOp::SubSat,
            _ => return m.unsupported(".sat is for .s32"),
        };
        self.int_op(i, m, f, ty, 2)
    }

    fn mul_mad(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let n = if i.name == "mul" { 2 } else { 3 };
        let ty = m.ty()?;
        if ty.is_float() {
            let f = match (i.name, m.take("relu")) {
                ("mul", false) => FloatOp::Mul,
                ("fma" | "mad", false) => FloatOp::Fma,
                ("fma", true) if ty.bits() != 64 && ty != ScalarType::F32 => FloatOp::FmaRelu,
                _ => return m.unsupported("this form"),
            };
            let mode = Self::mode(m);
            return self.float_op(i, m, f, mode, ty, n);
        }
        if i.name == "fma" || !ty.is_int() {
            return m.unsupported("this type");
        }
        let (hi, lo, wide) = (m.take("hi"), m.take("lo"), m.take("wide"));
        if u8::from(hi) + u8::from(lo) + u8::from(wide) != 1 {
            return m.unsupported("one of .lo, .hi, .wide is needed");
        }
        let (carry_in, carry_out) = (i.name == "madc", m.take("cc"));
        if carry_in || carry_out {
            if wide || n == 2 || ty.bits() < 32 {
                return m.unsupported("this form with a carry");
            }
            let (d, [a, b, c]) = self.operands(i, ty, 3)?;
            let signed = ty.is_signed();
            return Ok(Op::MadCarry {
                hi,
                signed,
                wide: ty.bits() == 64,
                carry_in,
                carry_out,
                d,
                a,
                b,
                c,
            });
        }
        if wide {
            return self.mul_wide(i, m, ty, n);
        }
        let sat = m.take("sat");
        let f = match (n, hi, sat) {
            (2, false, false) => IntOp::MulLo,
            (2, true, false) => by_sign(ty, IntOp::MulHiU, IntOp::MulHiS),
            (3, false, false) => IntOp::MadLo,
            (3, true, false) => by_sign(ty, IntOp::MadHiU, IntOp::MadHiS),
            (3, true, true) if ty == ScalarType::S32 => IntOp::MadHiSat,
            _ => return m.unsupported(".sat here"),
        };
        if hi && ty.bits() == 16 {
            return m.unsupported("the high half of 16-bit products; use .wide");
        }
        self.int_op(i, m, f, ty, n)
    }

    fn mul_wide(&mut self, i: &InstrAst<'a>, m: &Mods<'a>, ty: ScalarType, n: usize) -> Result<Op> {
        let signed = ty.is_signed();
        let double = match ty.bits() {
            16 => ScalarType::B32,
            32 => ScalarType::B64,
            _ => return m.unsupported(".wide of 64 bits"),
        };
        Self::count(i, n + 1..=n + 1)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let c = if n == 3 {
            self.src(&i.operands[3], double)?
        } else {
            NONE
        };
        let d = self.dst_some(&i.operands[0], double)?;
        if ty.bits() == 32 {
            return Ok(Op::Wide { signed, d, a, b, c });
        }
        let f = if n == 3 { IntOp::MadLo } else { IntOp::MulLo };
        Ok(Op::I16 {
            f,
            signed,
            wide: true,
            d,
            a,
            b,
            c: if n == 3 { c } else { a },
        })
    }

    fn mul24(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let hi = m.take("hi");
        if !hi && !m.take("lo") {
            return m.unsupported("one of .lo, .hi is needed");
        }
        let (n, f) = match (i.name, hi) {
            ("mul24", false) => (2, by_sign(ty, IntOp::Mul24LoU, IntOp::Mul24LoS)),
            ("mul24", true) => (2, by_sign(ty, IntOp::Mul24HiU, IntOp::Mul24HiS)),
            (_, false) => (3, by_sign(ty, IntOp::Mad24LoU, IntOp::Mad24LoS)),
            (_, true) => (3, by_sign(ty, IntOp::Mad24HiU, IntOp::Mad24HiS)),
        };
        if ty.bits() != 32 {
            return m.unsupported("this type");
        }
        self.int_op(i, m, f, ty, n)
    }

    fn simple(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if ty.is_float() {
            let (f, n) = match i.name {
                "div" => (FloatOp::Div, 2),
                "min" | "max" => {
                    let (nan, xorsign) = (m.take("NaN"), m.take("xorsign"));
                    if xorsign && (nan || !m.take("abs")) {
                        return m.unsupported(".xorsign without .abs, or with .NaN");
                    }
                    let f = match (i.name, nan, xorsign) {
                        ("min", false, false) => FloatOp::Min,
                        ("min", true, _) => FloatOp::MinNan,
                        ("min", ..) => FloatOp::MinXorsign,
                        (_, false, false) => FloatOp::Max,
                        (_, true, _) => FloatOp::MaxNan,
                        _ => FloatOp::MaxXorsign,
                    };
                    (f, 2)
                }
                "neg" => (FloatOp::Neg, 1),
                "abs" => (FloatOp::Abs, 1),
                _ => return m.unsupported("this type"),
            };
            if f == FloatOp::Div {
                if !matches!(ty, ScalarType::F32 | ScalarType::F64) {
                    return m.unsupported("this type");
                }
                // The approximate forms are computed exactly rounded, which their error bound permits.
                let _ = m.take("approx") || m.take("full");
            }
            let mode = Self::mode(m);
            return self.float_op(i, m, f, mode, ty, n);
        }
        let (f, n) = match i.name {
            "div" => (by_sign(ty, IntOp::DivU, IntOp::DivS), 2),
            "rem" => (by_sign(ty, IntOp::RemU, IntOp::RemS), 2),
            "min" => (by_sign(ty, IntOp::MinU, IntOp::MinS), 2),
            "max" => (by_sign(ty, IntOp::MaxU, IntOp::MaxS), 2),
            "neg" => (IntOp::Neg, 1),
            _ => (IntOp::Abs, 1),
        };
        if !ty.is_int() {
            return m.unsupported("this type");
        }
        self.int_op(i, m, f, ty, n)
    }

    fn logic(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
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
                return m.unsupported("this type");
            }
            let (d, [a, b, _]) = self.operands(i, ty, n)?;
            return Ok(Op::PredLogic { f, d, a, b });
        }
        if !ty.is_untyped() {
            return m.unsupported("logic needs an untyped .b16, .b32 or .b64");
        }
        self.int_op(i, m, f, ty, n)
    }

    fn shift(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let f = match i.name {
            "shl" => IntOp::Shl,
            "shr" => by_sign(ty, IntOp::ShrU, IntOp::ShrS),
            _ => by_sign(ty, IntOp::BfeU, IntOp::BfeS),
        };
        let n = if i.name == "bfe" { 4 } else { 3 };
        if ty.is_float() || ty == ScalarType::Pred || (n == 4 && (ty.bits() < 32 || !ty.is_int())) {
            return m.unsupported("this type");
        }
        Self::count(i, n..=n)?;
        let a = self.src(&i.operands[1], ty)?;
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
            _ => return m.unsupported("this width"),
        })
    }

    fn funnel(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let left = m.take("l");
        if !left && !m.take("r") {
            return m.unsupported("one of .l, .r is needed");
        }
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return m.unsupported("one of .clamp, .wrap is needed");
        }
        let f = match (left, clamp) {
            (true, true) => IntOp::ShfLClamp,
            (true, false) => IntOp::ShfLWrap,
            (false, true) => IntOp::ShfRClamp,
            (false, false) => IntOp::ShfRWrap,
        };
        let ty = m.ty()?;
        if ty != ScalarType::B32 {
            return m.unsupported("this type");
        }
        self.int_op(i, m, f, ty, 3)
    }

    fn bfi(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if !matches!(ty, ScalarType::B32 | ScalarType::B64) {
            return m.unsupported("this type");
        }
        Self::count(i, 5..=5)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
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

    fn count_bits(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let f = match (i.name, m.take("shiftamt")) {
            ("popc", false) => IntOp::Popc,
            ("clz", false) => IntOp::Clz,
            ("bfind", false) => by_sign(ty, IntOp::BfindU, IntOp::BfindS),
            ("bfind", true) => by_sign(ty, IntOp::BfindShiftU, IntOp::BfindShiftS),
            _ => return m.unsupported(".shiftamt"),
        };
        if ty.is_float() || ty.bits() < 32 {
            return m.unsupported("this type");
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

    fn mask_extend(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let clamp = m.take("clamp");
        if !clamp && !m.take("wrap") {
            return m.unsupported("one of .clamp, .wrap is needed");
        }
        let ty = m.ty()?;
        let f = match (i.name, clamp) {
            ("bmsk", true) => IntOp::BmskClamp,
            ("bmsk", false) => IntOp::BmskWrap,
            (_, true) => by_sign(ty, IntOp::SzextClampU, IntOp::SzextClampS),
            (_, false) => by_sign(ty, IntOp::SzextWrapU, IntOp::SzextWrapS),
        };
        if ty.bits() != 32 {
            return m.unsupported("this type");
        }
        self.int_op(i, m, f, ty, 2)
    }

    fn prmt(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
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
            return m.unsupported("this type");
        }
        self.int_op(i, m, f.unwrap_or(IntOp::Prmt), ty, 3)
    }

    fn lop3(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if m.ty()? != ScalarType::B32 {
            return m.unsupported("this type");
        }
        Self::count(i, 5..=5)?;
        let OperandKind::Int(lut @ 0..=255) = i.operands[4].kind else {
            return Self::type_error(&i.operands[4], "a truth table from 0 to 0xff");
        };
        let a = self.src(&i.operands[1], ScalarType::B32)?;
        let b = self.src(&i.operands[2], ScalarType::B32)?;
        let c = self.src(&i.operands[3], ScalarType::B32)?;
        let d = self.dst_some(&i.operands[0], ScalarType::B32)?;
        Ok(Op::Lop3 {
            lut: lut as u8,
            d,
            a,
            b,
            c,
        })
    }

    fn dot(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
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
            _ => return m.unsupported("this form"),
        };
        if a.bits() != 32 || b.bits() != 32 || !a.is_int() || !b.is_int() {
            return m.unsupported("this type");
        }
        self.int_op(i, m, f, ScalarType::B32, 3)
    }

    fn float_unary(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        let (f, n) = match i.name {
            "rcp" => (FloatOp::Rcp, 1),
            "sqrt" => (FloatOp::Sqrt, 1),
            "rsqrt" => (FloatOp::Rsqrt, 1),
            "sin" => (FloatOp::Sin, 1),
            "cos" => (FloatOp::Cos, 1),
            "lg2" => (FloatOp::Lg2, 1),
            "ex2" => (FloatOp::Ex2, 1),
            "tanh" => (FloatOp::Tanh, 1),
            _ => (FloatOp::Copysign, 2),
        };
        let half = ty.bits() == 16 || matches!(ty, ScalarType::F16x2 | ScalarType::Bf16x2);
        let supported = match f {
            FloatOp::Ex2 | FloatOp::Tanh => ty == ScalarType::F32 || (half && ty.is_float()),
            FloatOp::Sin | FloatOp::Cos | FloatOp::Lg2 => ty == ScalarType::F32,
            _ => matches!(ty, ScalarType::F32 | ScalarType::F64),
        };
        if !supported {
            return m.unsupported("this type");
        }
        let _ = m.take("approx");
        let mode = Self::mode(m);
        self.float_op(i, m, f, mode, ty, n)
    }

    fn testp(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
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
            return m.unsupported("this form");
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
    fn set(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
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
            return m.unsupported("a comparison operator is needed");
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
            ScalarType::F16 | ScalarType::F16x2 => CmpType::F16,
            ScalarType::Bf16 | ScalarType::Bf16x2 => CmpType::Bf16,
            ScalarType::F32 if ftz => CmpType::F32Ftz,
            ScalarType::F32 => CmpType::F32,
            ScalarType::F64 => CmpType::F64,
            _ => return m.unsupported("this type"),
        };
        let ordered_only = matches!(
            cmp,
            Cmp::Equ | Cmp::Neu | Cmp::Ltu | Cmp::Leu | Cmp::Gtu | Cmp::Geu | Cmp::Num | Cmp::Nan
        );
        if ordered_only && !ty.is_float() {
            return m.unsupported("this comparison needs a float type");
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
                ScalarType::F32 => (1.0f32.to_bits(), !packed),
                ScalarType::U32 | ScalarType::S32 => (u32::MAX, true),
                ScalarType::U16 | ScalarType::S16 => (0xffff, !packed),
                ScalarType::F16 => (0x3c00, !packed),
                ScalarType::Bf16 => (0x3f80, !packed),
                ScalarType::F16x2 => (0x3c00, packed),
                ScalarType::Bf16x2 => (0x3f80, packed),
                _ => (0, false),
            };
            if !ok {
                return m.unsupported("this destination type");
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

    fn selp(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if ty == ScalarType::Pred || ty.bits() < 16 {
            return m.unsupported("this type");
        }
        Self::count(i, 4..=4)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let p = self.src(&i.operands[3], ScalarType::Pred)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(if ty.bits() == 64 {
            Op::Selp64 { d, a, b, p }
        } else {
            Op::Selp32 { d, a, b, p }
        })
    }

    fn slct(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let _ = m.take("ftz");
        let (ty, cty) = (m.ty()?, m.ty()?);
        let float = cty == ScalarType::F32;
        if ty.bits() < 32 || ty == ScalarType::Pred || !(float || cty == ScalarType::S32) {
            return m.unsupported("this type");
        }
        Self::count(i, 4..=4)?;
        let (a, b) = (self.src(&i.operands[1], ty)?, self.src(&i.operands[2], ty)?);
        let c = self.src(&i.operands[3], cty)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Slct {
            wide: ty.bits() == 64,
            float,
            d,
            a,
            b,
            c,
        })
    }

    fn mov(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        Self::count(i, 2..=2)?;
        let (dst, src) = (&i.operands[0], &i.operands[1]);
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
        {
            if let Some(bits) = special::is_clock(name) {
                if ty.bits() != bits {
                    return Self::type_error(src, &format!("a {bits}-bit move"));
                }
                let d = self.dst_reg(dst, ty, false)?;
                return Ok(Op::Clock { d });
            }
        }
        if ty.bits() < 16 && ty != ScalarType::Pred {
            return m.unsupported("this type");
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

    /// Type and bits of one of `n` parts of `ty`.
    fn part_type(i: &InstrAst<'a>, ty: ScalarType, n: usize) -> Result<(ScalarType, u8)> {
        let part = match (ty.bits(), n) {
            (64, 2) => ScalarType::B32,
            (64, 4) | (32, 2) => ScalarType::B16,
            (64, 8) | (32, 4) | (16, 2) => ScalarType::B8,
            _ => {
                let what = format!("`mov` of {n} parts to {} bits", ty.bits());
                return Err(i.span.error(Kind::Unsupported(what)));
            }
        };
        Ok((part, part.bits() as u8))
    }
}
