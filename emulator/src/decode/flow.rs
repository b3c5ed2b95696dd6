//! Decoding of control flow, barriers and fences (PTX ISA, sections 9.7.12, 9.7.13 and 9.7.19).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandKind};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Bar, BarKind, NONE, Op, Reg, RowInit};
use crate::types::{File, ScalarType};

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn flow(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let op = match i.name {
            "bra" => {
                let uni = m.take("uni");
                Self::count(i, 1..=1)?;
                let OperandKind::Name {
                    name,
                    dim: None,
                    offset: 0,
                } = i.operands[0].kind
                else {
                    return Self::type_error(&i.operands[0], "a label");
                };
                Op::Bra {
                    target: self.label(name, self.scope_id, i.operands[0].span)?,
                    uni,
                }
            }
            "brx" => self.brx(i, m)?,
            "call" => self.call(i, m)?,
            "ret" if self.function.is_some() => {
                let _ = m.take("uni");
                Self::count(i, 0..=0)?;
                Op::Ret
            }
            "ret" | "exit" => {
                let _ = i.name == "ret" && m.take("uni");
                Self::count(i, 0..=0)?;
                Op::Exit
            }
            "trap" | "brkpt" => {
                Self::count(i, 0..=0)?;
                Op::Trap
            }
            "bar" | "barrier" => self.bar(i, m)?,
            "nanosleep" => {
                if m.ty()? != ScalarType::U32 {
                    return m.invalid("the type is .u32");
                }
                Self::count(i, 1..=1)?;
                self.src(&i.operands[0], ScalarType::U32)?;
                Op::Nop
            }
            "griddepcontrol" => {
                if !m.take("wait") && !m.take("launch_dependents") {
                    return m.unsupported("this form");
                }
                Self::count(i, 0..=0)?;
                Op::Nop
            }
            "pmevent" => Op::Nop,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    fn brx(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if !m.take("idx") {
            return m.unsupported("this form");
        }
        let _ = m.take("uni");
        Self::count(i, 2..=2)?;
        let index = self.src(&i.operands[0], ScalarType::U32)?;
        let OperandKind::Name {
            name,
            dim: None,
            offset: 0,
        } = i.operands[1].kind
        else {
            return Self::type_error(&i.operands[1], "a .branchtargets label");
        };
        let mut scope = self.scope_id;
        loop {
            if let Some(targets) = self.tables.get(&(scope, name)) {
                return Ok(Op::Brx {
                    index,
                    targets: targets.clone().into_boxed_slice(),
                });
            }
            if scope == 0 {
                return Err(i.operands[1]
                    .span
                    .error(Kind::UnknownLabel(name.to_owned())));
            }
            scope = self.parents[scope as usize];
        }
    }

    fn bar(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if m.take("cluster") {
            return self.cluster_barrier(i, m);
        }
        let _ = m.take("cta");
        if m.take("warp") {
            if !m.take("sync") {
                return m.unsupported("this form");
            }
            Self::count(i, 1..=1)?;
            return Ok(Op::BarWarp {
                mask: self.src(&i.operands[0], ScalarType::U32)?,
            });
        }
        let aligned = m.take("aligned") || i.name == "bar";
        let kind = m.find(|s| match s {
            "sync" => Some(BarKind::Sync),
            "arrive" => Some(BarKind::Arrive),
            "red" => Some(BarKind::RedPopc),
            _ => None,
        });
        let Some(mut kind) = kind else {
            return m.unsupported("this form");
        };
        let none = Reg {
            file: File::R32,
            row: NONE,
        };
        let mut bar = Bar {
            kind,
            aligned,
            id: 0,
            count: NONE,
            d: none,
            p: NONE,
            negated: false,
        };
        let mut first = 0;
        if kind == BarKind::RedPopc {
            kind = if m.take("and") {
                BarKind::RedAnd
            } else if m.take("or") {
                BarKind::RedOr
            } else if m.take("popc") {
                BarKind::RedPopc
            } else {
                return m.invalid("this reduction");
            };
            bar.kind = kind;
            let ty = m.ty()?;
            let fits = if kind == BarKind::RedPopc {
                ty.bits() == 32
            } else {
                ty == ScalarType::Pred
            };
            if !fits {
                return m.unsupported("this type");
            }
            Self::count(i, 3..=4)?;
            first = 1;
            let last = i.operands.len() - 1;
            (bar.p, bar.negated) = self.src_pred(&i.operands[last])?;
            if last == 3 {
                bar.count = self.src(&i.operands[2], ScalarType::U32)?;
            }
            bar.d = self.dst_reg(&i.operands[0], ty, false)?;
        } else {
            let least = if kind == BarKind::Arrive { 2 } else { 1 };
            Self::count(i, least..=2)?;
            if i.operands.len() == 2 {
                bar.count = self.src(&i.operands[1], ScalarType::U32)?;
            }
        }
        bar.id = self.src(&i.operands[first], ScalarType::U32)?;
        if bar.count != NONE
            && let RowInit::Const(n) = self.program.rows32[bar.count as usize]
            && (n == 0 || n % 32 != 0)
        {
            return Err(i.span.error(Kind::OutOfRange(format!(
                "{n} threads at a barrier; the number is a positive multiple of 32"
            ))));
        }
        if let RowInit::Const(id @ 16..) = self.program.rows32[bar.id as usize] {
            return Err(i.operands[first]
                .span
                .error(Kind::OutOfRange(format!("barrier {id}; there are 0 to 15"))));
        }
        Ok(Op::Bar(Box::new(bar)))
    }
}
