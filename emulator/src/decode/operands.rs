//! Operands to rows: names looked up through the scopes, sizes checked, immediates and symbols made constant rows.
//!
//! Every register that an instruction reads or writes passes through here, which is how the decoder knows them all.

use super::{Decoder, Result, Symbol, special};
use crate::ast::{OperandAst, OperandKind};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Address, NONE, Reg, Row, RowInit};
use crate::lexer::Span;
use crate::types::{File, ScalarType};

impl<'a> Decoder<'a> {
    /// The instruction that `name` labels, seen from scope `from`.
    pub(super) fn label(&self, name: &str, from: u32, span: Span) -> Result<u32> {
        let mut scope = from;
        loop {
            if let Some(pc) = self.labels.get(&(scope, name)) {
                return Ok(*pc);
            }
            if scope == 0 {
                return Err(span.error(Kind::UnknownLabel(name.to_owned())));
            }
            scope = self.parents[scope as usize];
        }
    }

    /// What `name` stands for, innermost scope first, with the scope's number.
    pub(super) fn lookup(&self, name: &str) -> Option<(u32, Symbol)> {
        for scope in self.scopes.iter().rev() {
            if let Some(s) = scope.names.get(name) {
                return Some((scope.id, *s));
            }
            let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
            for split in name.len() - digits..name.len() {
                let Some((ty, count)) = scope.ranges.get(&name[..split]) else {
                    continue;
                };
                let number = &name[split..];
                let canonical = number.len() == 1 || !number.starts_with('0');
                if canonical && number.parse::<u32>().is_ok_and(|n| n < *count) {
                    return Some((scope.id, Symbol::Register(*ty)));
                }
            }
        }
        None
    }

    pub(super) fn fresh_row(&mut self, file: File, init: RowInit) -> Row {
        let rows = match file {
            File::R32 => &mut self.program.rows32,
            File::R64 => &mut self.program.rows64,
            File::Pred => &mut self.program.rows_pred,
        };
        rows.push(init);
        rows.len() as Row - 1
    }

    /// The row that holds `init` in every lane.
    pub(super) fn constant(&mut self, file: File, init: RowInit) -> Row {
        if let Some(row) = self.constants.get(&(file, init)) {
            return *row;
        }
        let row = self.fresh_row(file, init);
        self.constants.insert((file, init), row);
        row
    }

    /// The register called `name` and its type.
    pub(super) fn register(&mut self, name: &'a str, span: Span) -> Result<(Reg, ScalarType)> {
        match self.lookup(name) {
            Some((scope, Symbol::Register(ty))) => {
                if let Some(reg) = self.rows.get(&(scope, name)) {
                    return Ok((*reg, ty));
                }
                let Some(file) = ty.file() else {
                    return Err(span.error(Kind::Unsupported("128-bit registers".to_owned())));
                };
                let reg = Reg {
                    file,
                    row: self.fresh_row(file, RowInit::Register),
                };
                self.rows.insert((scope, name), reg);
                self.program.names.push((reg, name.to_owned()));
                Ok((reg, ty))
            }
            Some(_) => Err(span.error(Kind::OperandType {
                operand: name.to_owned(),
                expected: "a register".to_owned(),
            })),
            None => Err(span.error(Kind::Undeclared(name.to_owned()))),
        }
    }

    pub(super) fn type_error<T>(o: &OperandAst<'_>, expected: &str) -> Result<T> {
        Err(o.span.error(Kind::OperandType {
            operand: o.describe(),
            expected: expected.to_owned(),
        }))
    }

    /// The bits of immediate `o` as type `ty`, or `None` if it is no immediate.
    pub(super) fn immediate(o: &OperandAst<'_>, ty: ScalarType) -> Result<Option<u64>> {
        let bits = match o.kind {
            OperandKind::Int(v) => match ty {
                ScalarType::F32 | ScalarType::F64 | ScalarType::Tf32 => {
                    return Self::type_error(o, "a float literal");
                }
                _ => v as u64,
            },
            OperandKind::F32(b) => match ty {
                ScalarType::F64 => f64::from(f32::from_bits(b)).to_bits(),
                t if t.bits() == 32 && !t.is_int() => u64::from(b),
                _ => return Self::type_error(o, &format!("a .{} literal", ty.name())),
            },
            OperandKind::F64(v) => match ty {
                ScalarType::F32 | ScalarType::B32 => u64::from((v as f32).to_bits()),
                ScalarType::F64 | ScalarType::B64 => v.to_bits(),
                _ => return Self::type_error(o, &format!("a .{} literal", ty.name())),
            },
            _ => return Ok(None),
        };
        Ok(Some(if ty.bits() >= 64 {
            bits
        } else {
            bits & ((1u64 << ty.bits()) - 1)
        }))
    }

    /// Source operand `o` of type `ty`, exactly that size: a register, an immediate, a special register or an address.
    pub(super) fn src(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        Ok(self.src_reg(o, ty, false)?.row)
    }

    /// Like [`Self::src`], and with `relaxed` a register may be wider than `ty`.
    pub(super) fn src_reg(
        &mut self,
        o: &OperandAst<'a>,
        ty: ScalarType,
        relaxed: bool,
    ) -> Result<Reg> {
        let Some(file) = ty.file() else {
            return Err(o
                .span
                .error(Kind::Unsupported("128-bit operands".to_owned())));
        };
        if let Some(bits) = Self::immediate(o, ty)? {
            if file == File::Pred {
                return Self::type_error(o, "a predicate register");
            }
            return Ok(Reg {
                file,
                row: self.constant(file, RowInit::Const(bits)),
            });
        }
        let OperandKind::Name { name, dim, offset } = o.kind else {
            return Self::type_error(o, &format!("a register or immediate of .{}", ty.name()));
        };
        if name == "WARP_SZ" {
            return Ok(Reg {
                file,
                row: self.constant(file, RowInit::Const(32)),
            });
        }
        if let Some((special, bits)) = special::special_register(name, dim) {
            if file == File::Pred
                || (file == File::R32 && bits == 64)
                || dim.is_some_and(|d| d.len() != 1)
            {
                return Self::type_error(o, &format!("a .{} operand", ty.name()));
            }
            return Ok(Reg {
                file,
                row: self.constant(file, RowInit::Special(special)),
            });
        }
        if dim.is_some() {
            return Self::type_error(o, "a scalar operand");
        }
        match self.lookup(name) {
            Some((_, Symbol::Register(_))) => {
                if offset != 0 {
                    return Self::type_error(o, "a register without an offset");
                }
                let (reg, actual) = self.register(name, o.span)?;
                let fits = if relaxed {
                    actual.bits() >= ty.bits()
                } else {
                    actual.bits() == ty.bits()
                };
                if !fits || (reg.file == File::Pred) != (file == File::Pred) {
                    return Self::type_error(
                        o,
                        &format!(
                            "{} bits (.{}), found .{}",
                            ty.bits(),
                            ty.name(),
                            actual.name()
                        ),
                    );
                }
                self.read.push(reg);
                Ok(reg)
            }
            Some((_, symbol)) => {
                if file == File::Pred || ty.bits() < 32 {
                    return Self::type_error(o, &format!("a .{} operand", ty.name()));
                }
                let init = match symbol {
                    Symbol::Variable { space, offset: at } => RowInit::Const(
                        crate::shared::window_base(space)
                            .wrapping_add(u64::from(at))
                            .wrapping_add(offset as u64),
                    ),
                    Symbol::Module(number) => RowInit::Variable(number, offset),
                    Symbol::Register(_) => return Self::type_error(o, "an address"),
                };
                Ok(Reg {
                    file,
                    row: self.constant(file, init),
                })
            }
            None => Err(o.span.error(Kind::Undeclared(name.to_owned()))),
        }
    }

    /// Destination operand `o` of exactly the size of `ty`.
    pub(super) fn dst(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        Ok(self.dst_reg(o, ty, false)?.row)
    }

    /// Like [`Self::dst`]; `relaxed` lets the register be wider; `_` gives [`NONE`].
    pub(super) fn dst_reg(
        &mut self,
        o: &OperandAst<'a>,
        ty: ScalarType,
        relaxed: bool,
    ) -> Result<Reg> {
        let Some(file) = ty.file() else {
            return Err(o
                .span
                .error(Kind::Unsupported("128-bit operands".to_owned())));
        };
        match o.kind {
            OperandKind::Sink => Ok(Reg { file, row: NONE }),
            OperandKind::Name {
                name,
                dim: None,
                offset: 0,
            } => {
                let (reg, actual) = self.register(name, o.span)?;
                let fits = if relaxed {
                    actual.bits() >= ty.bits()
                } else {
                    actual.bits() == ty.bits()
                };
                if !fits || (reg.file == File::Pred) != (file == File::Pred) {
                    return Self::type_error(
                        o,
                        &format!(
                            "{} bits (.{}), found .{}",
                            ty.bits(),
                            ty.name(),
                            actual.name()
                        ),
                    );
                }
                self.written.push(reg);
                Ok(reg)
            }
            _ => Self::type_error(o, "a destination register"),
        }
    }

    /// A destination that must be a register.
    pub(super) fn dst_some(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        match self.dst(o, ty)? {
            NONE => Self::type_error(o, "a destination register"),
            row => Ok(row),
        }
    }

    /// A source predicate, perhaps negated.
    pub(super) fn src_pred(&mut self, o: &OperandAst<'a>) -> Result<(Row, bool)> {
        match o.kind {
            OperandKind::Not(name) => {
                let plain = OperandAst {
                    span: o.span,
                    kind: OperandKind::Name {
                        name,
                        dim: None,
                        offset: 0,
                    },
                };
                Ok((self.src(&plain, ScalarType::Pred)?, true))
            }
            _ => Ok((self.src(o, ScalarType::Pred)?, false)),
        }
    }

    /// Address operand `[…]`.
    pub(super) fn address(&mut self, o: &OperandAst<'a>) -> Result<Address> {
        let OperandKind::Address {
            base,
            offset,
            coords,
        } = &o.kind
        else {
            return Self::type_error(o, "an address in brackets");
        };
        if !coords.is_empty() {
            return Self::type_error(o, "an address without coordinates");
        }
        let Some(name) = *base else {
            return Ok(Address {
                base: None,
                offset: *offset,
            });
        };
        match self.lookup(name) {
            Some((_, Symbol::Register(_))) => {
                let (reg, ty) = self.register(name, o.span)?;
                if reg.file == File::Pred || ty.bits() < 32 {
                    return Self::type_error(o, "a 32-bit or 64-bit address register");
                }
                self.read.push(reg);
                Ok(Address {
                    base: Some(reg),
                    offset: *offset,
                })
            }
            Some((_, Symbol::Variable { space, offset: at })) => {
                let base = crate::shared::window_base(space).wrapping_add(u64::from(at)) as i64;
                Ok(Address {
                    base: None,
                    offset: base.wrapping_add(*offset),
                })
            }
            Some((_, Symbol::Module(number))) => {
                let row = self.constant(File::R64, RowInit::Variable(number, *offset));
                Ok(Address {
                    base: Some(Reg {
                        file: File::R64,
                        row,
                    }),
                    offset: 0,
                })
            }
            None => Err(o.span.error(Kind::Undeclared(name.to_owned()))),
        }
    }
}
