//! Operands to rows: names looked up through the scopes, sizes checked, immediates and symbols made constant rows.
//!
//! Every register that an instruction reads or writes passes through here, which is how the decoder knows them all.

use super::{Decoder, Result, Symbol, special};
use crate::ast::{InstrAst, OperandAst, OperandKind, Space};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Address, IntOp, Meta, NONE, Op, Reg, Row, RowInit};
use crate::lexer::Span;
use crate::types::{File, ScalarType};

impl<'a> Decoder<'a> {
    /// Whether the address `o` is in the frame of the body: a local variable, a parameter of a function or of a call.
    pub(super) fn is_frame(&self, o: &OperandAst<'a>) -> bool {
        let (OperandKind::Address {
            base: Some(name), ..
        }
        | OperandKind::Element { array: name, .. }) = o.kind
        else {
            return false;
        };
        matches!(self.lookup(name), Some((_, Symbol::Frame { .. })))
    }

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
                let Some((symbol, count)) = scope.ranges.get(&name[..split]) else {
                    continue;
                };
                let number = &name[split..];
                let canonical = number.len() == 1 || !number.starts_with('0');
                if canonical && number.parse::<u32>().is_ok_and(|n| n < *count) {
                    return Some((scope.id, *symbol));
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
                let Some(file) = ty.file() else {
                    return Err(span.error(Kind::OperandType {
                        operand: name.to_owned(),
                        expected: "a register of up to 64 bits, found .b128".to_owned(),
                    }));
                };
                Ok((self.row_of(scope, name, 0, file), ty))
            }
            Some(_) => Err(span.error(Kind::OperandType {
                operand: name.to_owned(),
                expected: "a register".to_owned(),
            })),
            None => Err(span.error(Kind::Undeclared(name.to_owned()))),
        }
    }

    /// The row of element `k` of the register `name` of scope `scope`, made on first use.
    pub(super) fn row_of(&mut self, scope: u32, name: &'a str, k: u8, file: File) -> Reg {
        if let Some(reg) = self.rows.get(&(scope, name, k)) {
            return *reg;
        }
        let row = self.fresh_row(file, RowInit::Register);
        let reg = Reg { file, row };
        self.rows.insert((scope, name, k), reg);
        self.program.names.push((reg, name.to_owned()));
        reg
    }

    /// The two halves, low first, of the 128-bit register `o`; `None` if it is no such register.
    pub(super) fn halves(&mut self, o: &OperandAst<'a>) -> Option<[Reg; 2]> {
        let OperandKind::Name {
            name,
            dim: None,
            offset: 0,
        } = o.kind
        else {
            return None;
        };
        let Some((scope, Symbol::Register(ScalarType::B128))) = self.lookup(name) else {
            return None;
        };
        Some([0, 1].map(|k| self.row_of(scope, name, k, File::R64)))
    }

    /// Element `k` of the vector register `name`.
    fn component(&mut self, name: &'a str, k: u8, span: Span) -> Result<(Reg, ScalarType)> {
        match self.lookup(name) {
            Some((scope, Symbol::Vector(ty, n))) if k < n && ty.file().is_some() => {
                let file = ty.file().unwrap_or(File::R32);
                Ok((self.row_of(scope, name, k, file), ty))
            }
            _ => Err(span.error(Kind::OperandType {
                operand: name.to_owned(),
                expected: format!("a vector register with an element {k}"),
            })),
        }
    }

    /// `i` with its vector registers as the elements that they have: `%v` as `{%v.x, %v.y}`.
    pub(super) fn expand_vectors(&self, i: &InstrAst<'a>) -> InstrAst<'a> {
        InstrAst {
            span: i.span,
            guard: i.guard,
            name: i.name,
            mods: i.mods.clone(),
            operands: i.operands.iter().map(|o| self.expand(o)).collect(),
        }
    }

    fn expand(&self, o: &OperandAst<'a>) -> OperandAst<'a> {
        let list = |l: &[OperandAst<'a>]| l.iter().map(|o| self.expand(o)).collect();
        let kind = match &o.kind {
            OperandKind::Name { name, dim, .. } => match (self.lookup(name), *dim) {
                (Some((_, Symbol::Vector(_, n))), None) => OperandKind::Vector(
                    (0..n)
                        .map(|k| OperandAst {
                            span: o.span,
                            kind: OperandKind::Component(name, k),
                        })
                        .collect(),
                ),
                (Some((_, Symbol::Vector(..))), Some(dim)) => {
                    let k = "xyzwrgba".find(dim).filter(|_| dim.len() == 1).unwrap_or(4);
                    OperandKind::Component(name, k as u8 % 4)
                }
                _ => o.kind.clone(),
            },
            OperandKind::Vector(l) => OperandKind::Vector(list(l)),
            OperandKind::List(l) => OperandKind::List(list(l)),
            _ => o.kind.clone(),
        };
        OperandAst { span: o.span, kind }
    }

    /// A register operand: its place and type, or `None` if `o` is none.
    pub(super) fn plain(&mut self, o: &OperandAst<'a>) -> Result<Option<(Reg, ScalarType)>> {
        match o.kind {
            OperandKind::Component(name, k) => self.component(name, k, o.span).map(Some),
            OperandKind::Computed(k) => Ok(self.computed.get(k).copied()),
            OperandKind::Name {
                name,
                dim: None,
                offset: 0,
            } if matches!(self.lookup(name), Some((_, Symbol::Register(_)))) => {
                self.register(name, o.span).map(Some)
            }
            _ => Ok(None),
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
            // Any number but 0 is true.
            OperandKind::Int(v) if ty == ScalarType::Pred => u64::from(v != 0),
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
                ScalarType::F32 => u64::from((v as f32).to_bits()),
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
        if let Some((reg, actual)) = self.plain(o)? {
            Self::fits(o, reg, actual, ty, relaxed)?;
            self.read.push(reg);
            return Ok(reg);
        }
        if let Some(bits) = Self::immediate(o, ty)? {
            if is_half(ty) {
                return Self::type_error(
                    o,
                    &format!("a register, as .{} has no constants", ty.name()),
                );
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
            Some((_, Symbol::Register(_) | Symbol::Vector(..))) => {
                Self::type_error(o, "a register without an offset")
            }
            Some((_, symbol)) => {
                if file == File::Pred || ty.bits() < 32 {
                    return Self::type_error(o, &format!("a .{} operand", ty.name()));
                }
                let init = match symbol {
                    Symbol::Variable { space, offset: at } => {
                        let at = i64::from(at).wrapping_add(offset);
                        if is_shared(space) {
                            RowInit::Shared(at)
                        } else {
                            RowInit::Const(at as u64)
                        }
                    }
                    Symbol::Module(number) => RowInit::Variable(number, offset),
                    Symbol::Frame { offset: at, .. } => self.frame_address(at, offset),
                    Symbol::Function(number) => RowInit::Const(crate::ir::function_address(number)),
                    Symbol::Register(_) | Symbol::Vector(..) => {
                        return Self::type_error(o, "an address");
                    }
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
        if let OperandKind::Sink = o.kind {
            return Ok(Reg { file, row: NONE });
        }
        if matches!(o.kind, OperandKind::Computed(_)) {
            return Self::type_error(o, "a destination register");
        }
        if let Some((reg, actual)) = self.plain(o)? {
            Self::fits(o, reg, actual, ty, relaxed)?;
            self.written.push(reg);
            return Ok(reg);
        }
        if let OperandKind::Name { name, .. } = o.kind
            && self.lookup(name).is_none()
        {
            return Err(o.span.error(Kind::Undeclared(name.to_owned())));
        }
        Self::type_error(o, "a destination register")
    }

    /// The type that the elements of a vector operand of type `ty` must agree with: one untyped register makes all of it untyped.
    pub(super) fn vector_type(&self, list: &[OperandAst<'a>], ty: ScalarType) -> ScalarType {
        let untyped = list.len() > 1
            && list.iter().any(|o| match o.kind {
                OperandKind::Name {
                    name, dim: None, ..
                } => {
                    matches!(self.lookup(name), Some((_, Symbol::Register(t))) if t.is_untyped())
                }
                _ => false,
            });
        match ty.bits() {
            8 if untyped => ScalarType::B8,
            16 if untyped => ScalarType::B16,
            32 if untyped => ScalarType::B32,
            64 if untyped => ScalarType::B64,
            _ => ty,
        }
    }

    /// Whether the registers among `list` have one size.
    pub(super) fn is_uniform(&self, list: &[OperandAst<'a>]) -> bool {
        let mut sizes = list.iter().filter_map(|o| match o.kind {
            OperandKind::Name {
                name, dim: None, ..
            } => match self.lookup(name) {
                Some((_, Symbol::Register(t))) => Some(t.bits()),
                _ => None,
            },
            _ => None,
        });
        let first = sizes.next();
        sizes.all(|s| Some(s) == first)
    }

    /// Fails unless register `reg` of type `actual` can be an operand of type `ty`.
    fn fits(
        o: &OperandAst<'_>,
        reg: Reg,
        actual: ScalarType,
        ty: ScalarType,
        relaxed: bool,
    ) -> Result<()> {
        let fits = if relaxed {
            actual.bits() >= ty.bits()
        } else {
            actual.bits() == ty.bits()
        };
        if fits && (reg.file == File::Pred) == (ty == ScalarType::Pred) {
            if ty.agrees_with(actual) {
                return Ok(());
            }
            let (name, found) = (ty.name(), actual.name());
            return Self::type_error(
                o,
                &format!("a register of a type that .{name} goes with, found .{found}"),
            );
        }
        let (bits, name, found) = (ty.bits(), ty.name(), actual.name());
        Self::type_error(o, &format!("{bits} bits (.{name}), found .{found}"))
    }

    /// How the row is filled that holds the address `at + offset` in the frame of the body.
    fn frame_address(&self, at: u32, offset: i64) -> RowInit {
        let at = i64::from(at).wrapping_add(offset);
        match self.function {
            Some(f) => RowInit::Frame(f, at as u32),
            None => RowInit::Const(at as u64),
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

    /// The variable and byte that `array[offset]` names, as `array + bytes`.
    pub(super) fn element(&self, o: &OperandAst<'a>) -> Result<Option<OperandAst<'a>>> {
        let OperandKind::Element {
            array,
            index: None,
            offset,
        } = o.kind
        else {
            return Ok(None);
        };
        let kind = OperandKind::Name {
            name: array,
            dim: None,
            offset: offset.wrapping_mul(self.element_bytes(array, o)?.into()),
        };
        Ok(Some(OperandAst { span: o.span, kind }))
    }

    /// Bytes of an element of `array`, which operand `o` indexes.
    fn element_bytes(&self, array: &str, o: &OperandAst<'a>) -> Result<u32> {
        let known = self
            .scopes
            .iter()
            .rev()
            .find_map(|s| s.arrays.get(array).filter(|_| s.names.contains_key(array)));
        match known {
            Some((bytes, 1)) => Ok(*bytes),
            Some((_, 0)) => Self::type_error(o, "an array"),
            Some(_) => Err(o.span.error(Kind::Unsupported(format!(
                "`{array}[…]`: an index of an array of several dimensions"
            )))),
            None if self.lookup(array).is_some() => Self::type_error(o, "an array"),
            None => Err(o.span.error(Kind::Undeclared(array.to_owned()))),
        }
    }

    /// Computes operand `o` of `i`, which is a sum, before the instruction: `%r + 4`, or the address `array[%r + 4]`.
    pub(super) fn sum(&mut self, i: &InstrAst<'a>, o: &OperandAst<'a>) -> Result<OperandAst<'a>> {
        self.read.clear();
        self.written.clear();
        let plain = |name: &'a str| OperandAst {
            span: o.span,
            kind: OperandKind::Name {
                name,
                dim: None,
                offset: 0,
            },
        };
        let (op, reg, ty) = match o.kind {
            OperandKind::Name { name, offset, .. } => {
                let (a, ty) = self.register(name, o.span)?;
                if ty.is_float() || ty == ScalarType::Pred || ty.bits() < 16 {
                    return Self::type_error(o, "a register of integers before the offset");
                }
                self.read.push(a);
                let bits = offset as u64 & (u64::MAX >> (64 - ty.bits()));
                let b = self.constant(a.file, RowInit::Const(bits));
                let d = self.fresh_row(a.file, RowInit::Register);
                let (a, f) = (a.row, IntOp::Add);
                let op = match ty.bits() {
                    64 => Op::I64 { f, d, a, b, c: b },
                    32 => Op::I32 { f, d, a, b, c: b },
                    _ => Op::I16 {
                        f,
                        signed: false,
                        wide: false,
                        d,
                        a,
                        b,
                        c: b,
                    },
                };
                let file = ty.file().unwrap_or(File::R32);
                (op, Reg { file, row: d }, ty)
            }
            OperandKind::Element {
                array,
                index: Some(index),
                offset,
            } => {
                let bytes = self.element_bytes(array, o)?;
                let start = OperandAst {
                    span: o.span,
                    kind: OperandKind::Name {
                        name: array,
                        dim: None,
                        offset: offset.wrapping_mul(bytes.into()),
                    },
                };
                // A move to 32 bits gets an address of 32.
                let short = i.name == "mov" && i.mods.iter().any(|(m, _)| m.ends_with("32"));
                let (index, ty) = self.register(index, o.span)?;
                if ty.is_float() || !matches!(ty.bits(), 32 | 64) || (short && ty.bits() == 64) {
                    return Self::type_error(&plain(array), "an index of 32 or 64 bits");
                }
                self.read.push(index);
                let (f, a, size) = (IntOp::MadLo, index.row, RowInit::Const(bytes.into()));
                let own = if short {
                    ScalarType::U32
                } else {
                    ScalarType::U64
                };
                let file = if short { File::R32 } else { File::R64 };
                let c = self.src(&start, own)?;
                let d = self.fresh_row(file, RowInit::Register);
                let b = self.constant(index.file, size);
                let op = match (short, ty.bits()) {
                    (true, _) => Op::I32 { f, d, a, b, c },
                    (false, 64) => Op::I64 { f, d, a, b, c },
                    _ => Op::Wide {
                        signed: ty.is_signed(),
                        d,
                        a,
                        b,
                        c,
                    },
                };
                (op, Reg { file, row: d }, own)
            }
            _ => return Ok(o.clone()),
        };
        self.written.push(reg);
        self.program.names.push((reg, o.describe()));
        self.push(op, NONE, false);
        self.program.meta.push(Meta {
            line: i.span.line,
            column: o.span.column,
            opcode: o.describe(),
        });
        let used = (
            std::mem::take(&mut self.read),
            std::mem::take(&mut self.written),
        );
        self.uses.push(used);
        self.computed.push((reg, ty));
        Ok(OperandAst {
            span: o.span,
            kind: OperandKind::Computed(self.computed.len() - 1),
        })
    }

    /// Address operand `[…]`, or an array element.
    pub(super) fn address(&mut self, o: &OperandAst<'a>) -> Result<Address> {
        if let OperandKind::Computed(k) = o.kind
            && let Some((reg, ScalarType::U64)) = self.computed.get(k).copied()
        {
            self.read.push(reg);
            return Ok(Address {
                base: Some(reg),
                offset: 0,
            });
        }
        if let Some(element) = self.element(o)?
            && let OperandKind::Name { name, offset, .. } = element.kind
        {
            let kind = OperandKind::Address {
                base: Some(name),
                offset,
                coords: Vec::new(),
            };
            return self.address(&OperandAst { span: o.span, kind });
        }
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
            Some((_, Symbol::Vector(..) | Symbol::Function(_))) => {
                Self::type_error(o, "an address register or a variable")
            }
            Some((_, Symbol::Frame { offset: at, .. })) => {
                let at = i64::from(at).wrapping_add(*offset);
                let Some(f) = self.function else {
                    return Ok(Address {
                        base: None,
                        offset: at,
                    });
                };
                let row = self.constant(File::R64, RowInit::Frame(f, 0));
                Ok(Address {
                    base: Some(Reg {
                        file: File::R64,
                        row,
                    }),
                    offset: at,
                })
            }
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
                let base = is_shared(space).then(|| Reg {
                    file: File::R32,
                    row: self.constant(File::R32, RowInit::Shared(0)),
                });
                Ok(Address {
                    base,
                    offset: i64::from(at).wrapping_add(*offset),
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

/// Whether addresses of variables in `space` depend on the block.
fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::Cluster)
}

/// Whether `ty` is a half or a pair of 16-bit numbers, for which PTX has no constants.
fn is_half(ty: ScalarType) -> bool {
    use ScalarType as T;
    matches!(ty, T::F16 | T::Bf16 | T::F16x2 | T::Bf16x2)
}
