//! Decoding of arithmetic, logic, comparison and move instructions (PTX ISA, sections 9.7.1 to 9.7.8 and `mov`).

use super::{Decoder, Mods, Result};
use crate::ast::InstrAst;
use crate::ir::{FloatMode, FloatOp, IntOp, NONE, Op, Rounding, Row};
use crate::types::ScalarType;

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
pub(super) fn by_sign(ty: ScalarType, u: IntOp, s: IntOp) -> IntOp {
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
                if !ty.is_int() {
                    return m.invalid("this type");
                }
                self.int_op(i, m, by_sign(ty, IntOp::SadU, IntOp::SadS), ty, 3)?
            }
            "and" | "or" | "xor" | "not" | "cnot" => self.logic(i, m)?,
            "shl" | "shr" | "bfe" => self.shift(i, m)?,
            "shf" => self.funnel(i, m)?,
            "bfi" => self.bfi(i, m)?,
            "brev" => {
                let ty = m.ty()?;
                if !matches!(ty, ScalarType::B32 | ScalarType::B64) {
                    return m.invalid("the type is .b32 or .b64");
                }
                self.int_op(i, m, IntOp::Brev, ty, 1)?
            }
            "popc" | "clz" | "bfind" => self.count_bits(i, m)?,
            "fns" => {
                let ty = m.ty()?;
                if ty != ScalarType::B32 {
                    return m.invalid("the type is .b32");
                }
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
    pub(super) fn operands(
        &mut self,
        i: &InstrAst<'a>,
        ty: ScalarType,
        n: usize,
    ) -> Result<(Row, [Row; 3])> {
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
    pub(super) fn int_op(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        f: IntOp,
        ty: ScalarType,
        n: usize,
    ) -> Result<Op> {
        if ty.is_float() || ty == ScalarType::Pred {
            return m.invalid("this type");
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
            _ => return m.invalid("this width"),
        })
    }

    /// A float operation with `n` sources of one type.
    pub(super) fn float_op(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        f: FloatOp,
        mode: FloatMode,
        ty: ScalarType,
        n: usize,
    ) -> Result<Op> {
        if ty == ScalarType::F64 && (mode.ftz || mode.sat) {
            return m.invalid(".ftz and .sat are not for .f64");
        }
        let bf16 = matches!(ty, ScalarType::Bf16 | ScalarType::Bf16x2);
        if bf16 && (mode.sat || (mode.ftz && f != FloatOp::Ex2)) {
            return m.invalid(".ftz and .sat are not for .bf16");
        }
        if ty.bits() < 64 && ty != ScalarType::F32 && mode.rounding != Rounding::Nearest {
            return m.invalid("halves round to nearest");
        }
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
            _ => return m.invalid("this type"),
        })
    }

    /// Whether a rounding is written.
    fn is_rounded(m: &Mods<'_>) -> bool {
        m.list
            .iter()
            .any(|(s, _)| matches!(*s, "rn" | "rz" | "rm" | "rp"))
    }

    pub(super) fn mode(m: &mut Mods<'a>) -> FloatMode {
        let rounding = rounding(m).unwrap_or(Rounding::Nearest);
        FloatMode {
            rounding,
            ftz: m.take("ftz"),
            sat: m.take("sat"),
        }
    }

    fn add_sub(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if let Some(op) = self.packed16(i, m)? {
            return Ok(op);
        }
        let sub = i.name.starts_with("sub");
        let carry_in = i.name.ends_with('c');
        let carry_out = m.take("cc");
        let ty = m.ty()?;
        if ty.is_float() {
            if carry_in || carry_out {
                return m.invalid("this type");
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
                return m.invalid("this type");
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
        if !ty.is_int() {
            return m.invalid("this type");
        }
        let f = match (m.take("sat"), ty, sub) {
            (false, _, false) => IntOp::Add,
            (false, _, true) => IntOp::Sub,
            (true, ScalarType::S32, false) => IntOp::AddSat,
            (true, ScalarType::S32, true) => IntOp::SubSat,
            _ => return m.invalid(".sat is for .s32"),
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
                _ => return m.invalid("this form"),
            };
            let f = match (f, m.take("oob")) {
                (f, false) => f,
                (FloatOp::Fma, true)
                    if i.name == "fma" && ty.bits() != 64 && ty != ScalarType::F32 =>
                {
                    FloatOp::FmaOob
                }
                (FloatOp::FmaRelu, true) => FloatOp::FmaOobRelu,
                _ => return m.invalid(".oob is for fma of f16 and bf16"),
            };
            if f != FloatOp::Mul && !Self::is_rounded(m) {
                return m.invalid("a rounding is needed: .rn, .rz, .rm or .rp");
            }
            let mode = Self::mode(m);
            if mode.ftz && matches!(f, FloatOp::FmaOob | FloatOp::FmaOobRelu) {
                return m.invalid(".ftz with .oob");
            }
            return self.float_op(i, m, f, mode, ty, n);
        }
        if i.name == "fma" || !ty.is_int() {
            return m.invalid("this type");
        }
        let (hi, lo, wide) = (m.take("hi"), m.take("lo"), m.take("wide"));
        if u8::from(hi) + u8::from(lo) + u8::from(wide) != 1 {
            return m.invalid("one of .lo, .hi, .wide is needed");
        }
        let (carry_in, carry_out) = (i.name == "madc", m.take("cc"));
        if carry_in || carry_out {
            if wide || n == 2 || ty.bits() < 32 {
                return m.invalid("this form with a carry");
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
            _ => return m.invalid(".sat here"),
        };
        self.int_op(i, m, f, ty, n)
    }

    fn mul_wide(&mut self, i: &InstrAst<'a>, m: &Mods<'a>, ty: ScalarType, n: usize) -> Result<Op> {
        let signed = ty.is_signed();
        let double = match ty.bits() {
            16 => ScalarType::B32,
            32 => ScalarType::B64,
            _ => return m.invalid(".wide of 64 bits"),
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
            return m.invalid("one of .lo, .hi is needed");
        }
        let (n, f) = match (i.name, hi) {
            ("mul24", false) => (2, by_sign(ty, IntOp::Mul24LoU, IntOp::Mul24LoS)),
            ("mul24", true) => (2, by_sign(ty, IntOp::Mul24HiU, IntOp::Mul24HiS)),
            (_, false) => (3, by_sign(ty, IntOp::Mad24LoU, IntOp::Mad24LoS)),
            (_, true) if ty == ScalarType::S32 && m.take("sat") => (3, IntOp::Mad24HiSat),
            (_, true) => (3, by_sign(ty, IntOp::Mad24HiU, IntOp::Mad24HiS)),
        };
        if ty.bits() != 32 || !ty.is_int() {
            return m.invalid("this type");
        }
        self.int_op(i, m, f, ty, n)
    }

    fn simple(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if let Some(op) = self.packed16(i, m)? {
            return Ok(op);
        }
        let ty = m.ty()?;
        if ty.is_float() {
            let (f, n) = match i.name {
                "div" => (FloatOp::Div, 2),
                "min" | "max" => {
                    let (nan, xorsign) = (m.take("NaN"), m.take("xorsign"));
                    if xorsign && !m.take("abs") {
                        return m.invalid(".xorsign goes with .abs");
                    }
                    let f = match (i.name, nan, xorsign) {
                        ("min", false, false) => FloatOp::Min,
                        ("min", true, false) => FloatOp::MinNan,
                        ("min", false, true) => FloatOp::MinXorsign,
                        ("min", true, true) => FloatOp::MinNanXorsign,
                        (_, false, false) => FloatOp::Max,
                        (_, true, false) => FloatOp::MaxNan,
                        (_, false, true) => FloatOp::MaxXorsign,
                        (_, true, true) => FloatOp::MaxNanXorsign,
                    };
                    (f, 2)
                }
                "neg" => (FloatOp::Neg, 1),
                "abs" => (FloatOp::Abs, 1),
                _ => return m.invalid("this type"),
            };
            if f == FloatOp::Div {
                if !matches!(ty, ScalarType::F32 | ScalarType::F64) {
                    return m.invalid("this type");
                }
                // The approximate forms are computed exactly rounded, which their error bound permits.
                let approximate = m.take("approx") || m.take("full");
                if approximate == Self::is_rounded(m) || (approximate && ty == ScalarType::F64) {
                    return m.invalid(
                        "one of .rn, .rz, .rm, .rp is needed, or .approx or .full of .f32",
                    );
                }
            }
            if ty == ScalarType::F64
                && matches!(
                    f,
                    FloatOp::MinNan
                        | FloatOp::MaxNan
                        | FloatOp::MinNanXorsign
                        | FloatOp::MaxNanXorsign
                )
            {
                return m.invalid(".NaN is not for .f64");
            }
            if f == FloatOp::Neg && ty == ScalarType::F64 && m.take("ftz") {
                return m.invalid(".ftz is not for .f64");
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
        let signed_only = matches!(f, IntOp::Neg | IntOp::Abs);
        if !ty.is_int() || (signed_only && !ty.is_signed()) {
            return m.invalid("this type");
        }
        if matches!(f, IntOp::MinS | IntOp::MaxS) && ty == ScalarType::S32 && m.take("relu") {
            let f = if f == IntOp::MinS {
                IntOp::MinRelu
            } else {
                IntOp::MaxRelu
            };
            return self.int_op(i, m, f, ty, n);
        }
        self.int_op(i, m, f, ty, n)
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
            return m.invalid("this type");
        }
        let approximate = m.take("approx");
        let ftz = m.list.iter().any(|(s, _)| *s == "ftz");
        let fine = match f {
            FloatOp::Copysign => !approximate,
            // Of .f64 there are rounded forms, and an approximate one of rcp and rsqrt.
            FloatOp::Rcp | FloatOp::Sqrt if approximate => {
                !Self::is_rounded(m) && (ty == ScalarType::F32 || (f == FloatOp::Rcp && ftz))
            }
            FloatOp::Rcp | FloatOp::Sqrt => Self::is_rounded(m),
            FloatOp::Tanh => approximate && !ftz,
            FloatOp::Ex2 => {
                let bf16 = matches!(ty, ScalarType::Bf16 | ScalarType::Bf16x2);
                approximate && (ty == ScalarType::F32 || ftz == bf16)
            }
            _ => approximate,
        };
        if !fine {
            return m.invalid("another rounding, .approx or .ftz is needed with this type");
        }
        let mut mode = Self::mode(m);
        // The approximate instructions of .f64 flush, which is not a mode of the exact ones.
        mode.ftz &= ty != ScalarType::F64 || !approximate;
        self.float_op(i, m, f, mode, ty, n)
    }
}
