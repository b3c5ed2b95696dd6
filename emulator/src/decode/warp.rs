//! Decoding of instructions in which lanes meet: shuffles, votes, reductions and matrix instructions (PTX ISA, sections 9.7.9.6,
//! 9.7.13.9 to 9.7.13.14 and 9.7.14).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{IntOp, Matrix, NONE, Op, Row, Shuffle, Vote};
use crate::types::ScalarType;

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

    pub(super) fn aligned(m: &mut Mods<'a>) -> Result<()> {
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
    pub(super) fn fragment(
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
}
