//! Decoding of instructions in which lanes meet: shuffles, votes, reductions and matrix instructions (PTX ISA, sections 9.7.9.6,
//! 9.7.13.9 to 9.7.13.14 and 9.7.14).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{IntOp, Matrix, Mma, MmaType, NONE, Op, Row, Shuffle, Sums, Vote};
use crate::types::ScalarType;

/// The accepted shapes and types of `mma`: (m, k, A types, accumulator types).
fn mma_is_known(m: u8, k: u16, a: MmaType, b: MmaType, c: MmaType, d: MmaType) -> bool {
    use MmaType as T;
    let float8 = |t| matches!(t, T::E4m3 | T::E5m2);
    let int8 = |t| matches!(t, T::S8 | T::U8);
    let int4 = |t| matches!(t, T::S4 | T::U4);
    let half_or_single = |t| matches!(t, T::F16 | T::F32);
    match (m, k) {
        (16, 8 | 16) if a == T::F16 && b == T::F16 => half_or_single(c) && half_or_single(d),
        (16, 8 | 16) if a == T::Bf16 && b == T::Bf16 => c == T::F32 && d == T::F32,
        (16, 4 | 8) if a == T::Tf32 && b == T::Tf32 => c == T::F32 && d == T::F32,
        (16, 16 | 32) if float8(a) && float8(b) => half_or_single(c) && half_or_single(d),
        (16, 16 | 32) | (8, 16) if int8(a) && int8(b) => c == T::S32 && d == T::S32,
        (8, 32) | (16, 32 | 64) if int4(a) && int4(b) => c == T::S32 && d == T::S32,
        (8, 128) | (16, 128 | 256) => [a, b, c, d] == [T::B1, T::B1, T::S32, T::S32],
        (8, 4) | (16, 4 | 8 | 16) => [a, b, c, d] == [T::F64; 4],
        _ => false,
    }
}

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn warp(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let op = match i.name {
            "shfl" => self.shfl(i, m)?,
            "vote" => self.vote(i, m)?,
            "activemask" => {
                if m.ty()? != ScalarType::B32 {
                    return m.invalid("the type is .b32");
                }
                Self::count(i, 1..=1)?;
                Op::ActiveMask {
                    d: self.dst_some(&i.operands[0], ScalarType::B32)?,
                }
            }
            "redux" => self.redux(i, m)?,
            "wmma" => self.wmma(i, m)?,
            "match" => self.match_sync(i, m)?,
            "elect" => {
                Self::sync(m)?;
                Self::count(i, 2..=2)?;
                let mask = self.src(&i.operands[1], ScalarType::B32)?;
                let OperandKind::Pair(d, p) = &i.operands[0].kind else {
                    return Self::type_error(&i.operands[0], "a pair d|p");
                };
                let (d, p) = (
                    self.dst(d, ScalarType::B32)?,
                    self.dst(p, ScalarType::Pred)?,
                );
                Op::Elect { d, p, mask }
            }
            "ldmatrix" | "stmatrix" => self.matrix(i, m)?,
            "movmatrix" => {
                Self::aligned(m)?;
                if !(m.take("m8n8") && m.take("trans") && m.ty()? == ScalarType::B16) {
                    return m.unsupported("this form");
                }
                Self::count(i, 2..=2)?;
                let a = self.src(&i.operands[1], ScalarType::B32)?;
                Op::MovMatrix {
                    d: self.dst_some(&i.operands[0], ScalarType::B32)?,
                    a,
                }
            }
            "mma" => self.mma(i, m)?,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    fn sync(m: &mut Mods<'a>) -> Result<()> {
        if m.take("sync") {
            Ok(())
        } else {
            m.unsupported("the form without .sync")
        }
    }

    fn aligned(m: &mut Mods<'a>) -> Result<()> {
        Self::sync(m)?;
        if m.take("aligned") {
            Ok(())
        } else {
            m.unsupported("the form without .aligned")
        }
    }

    fn shfl(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::sync(m)?;
        let mode = m.find(|s| {
            Some(match s {
                "up" => Shuffle::Up,
                "down" => Shuffle::Down,
                "bfly" => Shuffle::Bfly,
                "idx" => Shuffle::Idx,
                _ => return None,
            })
        });
        let Some(mode) = mode else {
            return m.invalid("this mode");
        };
        if m.ty()? != ScalarType::B32 {
            return m.invalid("the type is .b32");
        }
        Self::count(i, 5..=5)?;
        let ty = ScalarType::B32;
        let [a, b, c, mask] = [1, 2, 3, 4].map(|k| self.src(&i.operands[k], ty));
        let (a, b, c, mask) = (a?, b?, c?, mask?);
        let (d, p) = match &i.operands[0].kind {
            OperandKind::Pair(d, p) => (self.dst(d, ty)?, self.dst(p, ScalarType::Pred)?),
            _ => (self.dst(&i.operands[0], ty)?, NONE),
        };
        Ok(Op::Shfl {
            mode,
            d,
            p,
            a,
            b,
            c,
            mask,
        })
    }

    fn vote(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::sync(m)?;
        let mode = m.find(|s| {
            Some(match s {
                "all" => Vote::All,
                "any" => Vote::Any,
                "uni" => Vote::Uni,
                "ballot" => Vote::Ballot,
                _ => return None,
            })
        });
        let Some(mode) = mode else {
            return m.invalid("this mode");
        };
        let ty = m.ty()?;
        let expected = if mode == Vote::Ballot {
            ScalarType::B32
        } else {
            ScalarType::Pred
        };
        if ty != expected {
            return m.unsupported("this type");
        }
        Self::count(i, 3..=3)?;
        let (a, negated) = self.src_pred(&i.operands[1])?;
        let mask = self.src(&i.operands[2], ScalarType::B32)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Vote {
            mode,
            d,
            a,
            negated,
            mask,
        })
    }

    fn redux(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::sync(m)?;
        let name =
            m.find(|s| matches!(s, "add" | "min" | "max" | "and" | "or" | "xor").then_some(s));
        let ty = m.ty()?;
        let f = match (name, ty) {
            (Some("add"), ScalarType::U32 | ScalarType::S32) => IntOp::Add,
            (Some("min"), ScalarType::U32) => IntOp::MinU,
            (Some("min"), ScalarType::S32) => IntOp::MinS,
            (Some("max"), ScalarType::U32) => IntOp::MaxU,
            (Some("max"), ScalarType::S32) => IntOp::MaxS,
            (Some("and"), ScalarType::B32) => IntOp::And,
            (Some("or"), ScalarType::B32) => IntOp::Or,
            (Some("xor"), ScalarType::B32) => IntOp::Xor,
            _ => return m.unsupported("this operation on this type"),
        };
        Self::count(i, 3..=3)?;
        let a = self.src(&i.operands[1], ty)?;
        let mask = self.src(&i.operands[2], ScalarType::B32)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Redux { f, d, a, mask })
    }

    fn match_sync(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let all = m.take("all");
        if !all && !m.take("any") {
            return m.invalid("one of .any, .all is needed");
        }
        Self::sync(m)?;
        let ty = m.ty()?;
        if !matches!(ty, ScalarType::B32 | ScalarType::B64) {
            return m.unsupported("this type");
        }
        Self::count(i, 3..=3)?;
        let a = self.src(&i.operands[1], ty)?;
        let mask = self.src(&i.operands[2], ScalarType::B32)?;
        let (d, p) = match &i.operands[0].kind {
            OperandKind::Pair(d, p) if all => (
                self.dst(d, ScalarType::B32)?,
                self.dst(p, ScalarType::Pred)?,
            ),
            _ => (self.dst_some(&i.operands[0], ScalarType::B32)?, NONE),
        };
        Ok(Op::Match {
            all,
            wide: ty.bits() == 64,
            d,
            p,
            a,
            mask,
        })
    }

    fn matrix(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::aligned(m)?;
        let load = i.name == "ldmatrix";
        let count = m.find(|s| match s {
            "x1" => Some(1u8),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        let shape = m.take("m8n8");
        let transposed = m.take("trans");
        let generic = !(m.take("shared") || m.take("shared::cta"));
        let ty = m.ty()?;
        let (Some(count), true, ScalarType::B16) = (count, shape, ty) else {
            return m.unsupported("only .m8n8 of .b16 with .x1, .x2 or .x4");
        };
        Self::count(i, 2..=2)?;
        let (r, p) = if load { (0, 1) } else { (1, 0) };
        let address = self.address(&i.operands[p])?;
        let rows = self.fragment(&i.operands[r], ScalarType::B32, usize::from(count), load)?;
        let mut regs = [NONE; 4];
        regs[..rows.len()].copy_from_slice(&rows);
        self.program.shared_grain = self.program.shared_grain.min(16);
        let spec = Box::new(Matrix {
            generic,
            address,
            count,
            transposed,
            regs,
        });
        Ok(if load {
            Op::LdMatrix(spec)
        } else {
            Op::StMatrix(spec)
        })
    }

    /// `n` registers in braces, or one bare.
    fn fragment(
        &mut self,
        o: &OperandAst<'a>,
        ty: ScalarType,
        n: usize,
        write: bool,
    ) -> Result<Vec<Row>> {
        let list = match &o.kind {
            OperandKind::Vector(v) => v.as_slice(),
            _ => std::slice::from_ref(o),
        };
        if list.len() != n {
            return Self::type_error(o, &format!("{n} registers in braces"));
        }
        let ty = self.vector_type(list, ty);
        list.iter()
            .map(|e| {
                if write {
                    self.dst_some(e, ty)
                } else {
                    self.src(e, ty)
                }
            })
            .collect()
    }

    fn mma(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::aligned(m)?;
        let shape = m.find(|s| {
            Some(match s {
                "m8n8k4" => (8u8, 4u16),
                "m8n8k16" => (8, 16),
                "m8n8k32" => (8, 32),
                "m8n8k128" => (8, 128),
                "m16n8k4" => (16, 4),
                "m16n8k8" => (16, 8),
                "m16n8k16" => (16, 16),
                "m16n8k32" => (16, 32),
                "m16n8k64" => (16, 64),
                "m16n8k128" => (16, 128),
                "m16n8k256" => (16, 256),
                _ => return None,
            })
        });
        let Some((rows, k)) = shape else {
            return m.unsupported("this shape");
        };
        let mut layout = || m.find(|s| matches!(s, "row" | "col").then_some(s));
        if (layout(), layout()) != (Some("row"), Some("col")) {
            return m.unsupported("only row-major A and column-major B (.row.col)");
        }
        let satfinite = m.take("satfinite");
        let mut ty = || -> Result<MmaType> {
            let first = m.list.first().map(|(word, _)| *word);
            let small = match first {
                Some("s4") => Some(MmaType::S4),
                Some("u4") => Some(MmaType::U4),
                Some("b1") => Some(MmaType::B1),
                _ => None,
            };
            if let Some(small) = small {
                m.list.remove(0);
                return Ok(small);
            }
            Ok(match m.ty()? {
                ScalarType::F16 => MmaType::F16,
                ScalarType::Bf16 => MmaType::Bf16,
                ScalarType::Tf32 => MmaType::Tf32,
                ScalarType::F64 => MmaType::F64,
                ScalarType::F32 => MmaType::F32,
                ScalarType::E4m3 => MmaType::E4m3,
                ScalarType::E5m2 => MmaType::E5m2,
                ScalarType::S8 => MmaType::S8,
                ScalarType::U8 => MmaType::U8,
                ScalarType::S32 => MmaType::S32,
                _ => return m.unsupported("this type"),
            })
        };
        let (d_ty, a_ty, b_ty, c_ty) = (ty()?, ty()?, ty()?, ty()?);
        if !mma_is_known(rows, k, a_ty, b_ty, c_ty, d_ty) || (satfinite && d_ty != MmaType::S32) {
            return m.unsupported("this combination of shape and types");
        }
        let xor = m.take("xor");
        let is_bits = a_ty == MmaType::B1;
        if is_bits && !((xor || m.take("and")) && m.take("popc")) {
            return m.invalid("`.and.popc` or `.xor.popc` is needed");
        }
        if (xor && !is_bits) || (is_bits && satfinite) {
            return m.invalid(".xor is for single bits, which have no .satfinite");
        }
        if m.find(|s| matches!(s, "rn" | "rz" | "rm" | "rp").then_some(s))
            .is_some_and(|r| r != "rn" || d_ty != MmaType::F64)
        {
            return m.unsupported("this rounding");
        }
        Self::count(i, 4..=4)?;
        let bits = |t: MmaType| match t {
            MmaType::F64 => 64,
            MmaType::F32 | MmaType::S32 | MmaType::Tf32 => 32,
            MmaType::F16 | MmaType::Bf16 => 16,
            MmaType::E4m3 | MmaType::E5m2 | MmaType::S8 | MmaType::U8 => 8,
            MmaType::S4 | MmaType::U4 => 4,
            MmaType::B1 => 1,
        };
        // Registers of 32 bits, or 64 for f64, that hold `elements` spread over 32 lanes.
        let regs = |elements: usize, t: MmaType| {
            elements / 32 * bits(t) / if t == MmaType::F64 { 64 } else { 32 }
        };
        let reg_ty = |t: MmaType| match t {
            MmaType::F64 => ScalarType::F64,
            MmaType::F32 => ScalarType::F32,
            MmaType::F16 => ScalarType::F16x2,
            MmaType::Bf16 => ScalarType::Bf16x2,
            MmaType::Tf32 => ScalarType::Tf32,
            MmaType::S32 => ScalarType::S32,
            _ => ScalarType::B32,
        };
        let (rows_n, k_n) = (usize::from(rows), usize::from(k));
        let a = self.fragment(
            &i.operands[1],
            reg_ty(a_ty),
            regs(rows_n * k_n, a_ty),
            false,
        )?;
        let b = self.fragment(&i.operands[2], reg_ty(b_ty), regs(8 * k_n, b_ty), false)?;
        let c = self.fragment(&i.operands[3], reg_ty(c_ty), regs(rows_n * 8, c_ty), false)?;
        let d = self.fragment(&i.operands[0], reg_ty(d_ty), regs(rows_n * 8, d_ty), true)?;
        Ok(Op::Mma(Box::new(Mma {
            m: rows,
            k,
            a_ty,
            b_ty,
            c_ty,
            d_ty,
            satfinite,
            xor,
            sums: self.sums([a_ty, b_ty], d_ty, false),
            d,
            a,
            b,
            c,
        })))
    }

    /// How the tensor cores of the module's target add.
    pub(super) fn sums(&self, factors: [MmaType; 2], sum: MmaType, wgmma: bool) -> Sums {
        let digits = self
            .module
            .target
            .trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let arch = digits[..end.unwrap_or(digits.len())].parse();
        Sums::of(arch.unwrap_or(90), factors, sum, wgmma)
    }
}
