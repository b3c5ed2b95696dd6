//! From syntax tree to program: names resolved, sizes checked, operands turned into rows.
//!
//! One statement becomes exactly one [`Inst`], so that a program counter is an index into the kernel's instructions and a label is
//! such an index. Rows are allotted on first use: `.reg .b32 %r<100000>` costs nothing. Each decoder in the submodules takes the
//! modifiers it knows out of [`Mods`]; what is left over at the end is an error that names it, so that no modifier is ever
//! silently ignored.

mod arith;
mod convert;
mod flow;
mod memory;
mod special;
mod warp;

use std::collections::HashMap;

use crate::ast::{InstrAst, KernelAst, ModuleAst, OperandAst, OperandKind, Space, Stmt, Variable};
use crate::cfg;
use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::ir::{Address, Inst, Meta, NONE, Op, Program, Reg, Row, RowInit};
use crate::lexer::Span;
use crate::module::{Kernel, Param};
use crate::types::{File, ScalarType};

type Result<T> = std::result::Result<T, ParseError>;

/// Upper limit of shared memory that one variable layout may reach; far above any device.
const MAX_SHARED: u64 = 1 << 24;

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
enum Symbol {
    Register(ScalarType),
    /// A variable with its place in its window.
    Variable {
        space: Space,
        offset: u32,
    },
    /// A module variable by its number.
    Module(u32),
}

#[derive(Debug, Default)]
struct Scope<'a> {
    id: u32,
    names: HashMap<&'a str, Symbol>,
    /// `%r<100>`: prefix to type and count.
    ranges: HashMap<&'a str, (ScalarType, u32)>,
}

/// The modifiers of an instruction, each to be taken once.
pub(crate) struct Mods<'a> {
    list: Vec<(&'a str, Span)>,
    instruction: String,
    span: Span,
}

impl<'a> Mods<'a> {
    /// Takes modifier `name` if it is there.
    fn take(&mut self, name: &str) -> bool {
        let at = self.list.iter().position(|(m, _)| *m == name);
        if let Some(i) = at {
            self.list.remove(i);
        }
        at.is_some()
    }

    /// Takes the first modifier for which `f` gives a value.
    fn find<T>(&mut self, f: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let at = self.list.iter().position(|(m, _)| f(m).is_some())?;
        f(self.list.remove(at).0)
    }

    /// Takes the next modifier that is a type.
    fn ty(&mut self) -> Result<ScalarType> {
        let found = self.find(ScalarType::from_name);
        let instruction = &self.instruction;
        let missing = || Kind::Unexpected {
            expected: format!("a type on `{instruction}`"),
            found: "none".to_owned(),
        };
        found.ok_or_else(|| self.span.error(missing()))
    }

    /// Every modifier must have been taken.
    fn finish(&self) -> Result<()> {
        match self.list.first() {
            None => Ok(()),
            Some((m, span)) => {
                let kind = Kind::UnknownModifier {
                    modifier: format!(".{m}"),
                    instruction: self.instruction.clone(),
                };
                Err(span.error(kind))
            }
        }
    }

    /// An error: this form is not supported.
    fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(self
            .span
            .error(Kind::Unsupported(format!("`{}`: {what}", self.instruction))))
    }
}

/// Decodes `k`.
pub(crate) fn kernel<'a>(module: &'a ModuleAst<'a>, k: &'a KernelAst<'a>) -> Result<Kernel> {
    let mut d = Decoder::new(module);
    let (params, param_bytes) = d.params(k)?;
    d.lay_out(module, k)?;
    let mut pc_scope = 0u32;
    let mut opened = 0u32;
    let mut stack = vec![0u32];
    for (index, stmt) in k.body.iter().enumerate() {
        match stmt {
            Stmt::Open => {
                opened += 1;
                pc_scope = opened;
                stack.push(pc_scope);
                d.scopes.push(Scope {
                    id: pc_scope,
                    ..Scope::default()
                });
            }
            Stmt::Close => {
                stack.pop();
                pc_scope = stack.last().copied().unwrap_or(0);
                d.scopes.pop();
            }
            Stmt::Label(..) => {}
            Stmt::BranchTargets(name, span, targets) => {
                let pcs = targets
                    .iter()
                    .map(|(l, s)| d.label(l, pc_scope, *s))
                    .collect::<Result<Vec<_>>>()?;
                if d.tables.insert((pc_scope, name), pcs).is_some() {
                    return Err(span.error(Kind::Redeclared((*name).to_owned())));
                }
            }
            Stmt::Registers(r) => {
                let scope = d
                    .scopes
                    .last_mut()
                    .expect("the kernel's scope is never popped");
                let fresh = match r.count {
                    Some(n) => scope.ranges.insert(r.name, (r.ty, n)).is_none(),
                    None => scope.names.insert(r.name, Symbol::Register(r.ty)).is_none(),
                };
                if !fresh {
                    return Err(r.span.error(Kind::Redeclared(r.name.to_owned())));
                }
            }
            Stmt::Variable(v) => d.declare(index, v)?,
            Stmt::Instr(i) => {
                d.scope_id = pc_scope;
                d.instruction(i)?;
            }
        }
    }
    // Control that runs off the end leaves the kernel.
    d.program.insts.push(Inst {
        op: Op::Exit,
        guard: NONE,
        negated: false,
        checks: (0, 0),
        marks: (0, 0),
    });
    let (line, column) = d
        .program
        .meta
        .last()
        .map_or((k.span.line, k.span.column), |m| (m.line, m.column));
    d.program.meta.push(Meta {
        line,
        column,
        opcode: "(end)".to_owned(),
    });
    d.uses.push((Vec::new(), Vec::new()));
    cfg::analyse(&mut d.program, &d.uses);
    Ok(Kernel {
        name: k.name.to_owned(),
        params,
        param_bytes,
        max_threads: k.max_threads,
        required_threads: k.required_threads,
        required_cluster: k.required_cluster,
        program: d.program,
    })
}

/// State while a kernel is decoded.
pub(crate) struct Decoder<'a> {
    scopes: Vec<Scope<'a>>,
    scope_id: u32,
    parents: Vec<u32>,
    labels: HashMap<(u32, &'a str), u32>,
    tables: HashMap<(u32, &'a str), Vec<u32>>,
    /// Offsets of the variables declared by statement number.
    placed: HashMap<usize, u32>,
    rows: HashMap<(u32, &'a str), Reg>,
    constants: HashMap<(File, RowInit), Row>,
    functions: &'a [&'a str],
    program: Program,
    /// Registers read and written by each instruction.
    uses: Vec<(Vec<Reg>, Vec<Reg>)>,
    read: Vec<Reg>,
    written: Vec<Reg>,
}

/// Rounds `x` up to a multiple of `align`, a power of two.
fn align_up(x: u64, align: u32) -> u64 {
    x.next_multiple_of(u64::from(align.max(1)))
}

impl<'a> Decoder<'a> {
    fn new(module: &'a ModuleAst<'a>) -> Self {
        Self {
            scopes: vec![Scope::default()],
            scope_id: 0,
            parents: vec![0],
            labels: HashMap::new(),
            tables: HashMap::new(),
            placed: HashMap::new(),
            rows: HashMap::new(),
            constants: HashMap::new(),
            functions: &module.functions,
            program: Program {
                shared_grain: 16,
                global_grain: 16,
                ..Program::default()
            },
            uses: Vec::new(),
            read: Vec::new(),
            written: Vec::new(),
        }
    }

    fn params(&mut self, k: &'a KernelAst<'a>) -> Result<(Vec<Param>, u32)> {
        let mut params = Vec::new();
        let mut at = 0u64;
        for p in &k.params {
            let size = p.size.unwrap_or(0);
            at = align_up(at, p.align);
            let offset = at as u32;
            at += size;
            if at > 32_764 {
                return Err(p.span.error(Kind::OutOfRange(
                    "more than 32764 bytes of parameters".to_owned(),
                )));
            }
            params.push(Param {
                name: p.name.to_owned(),
                ty: p.ty,
                size: size as u32,
                align: p.align,
                offset,
                is_pointer: p.is_pointer,
            });
            let symbol = Symbol::Variable {
                space: Space::Param,
                offset,
            };
            if self.scopes[0].names.insert(p.name, symbol).is_some() {
                return Err(p.span.error(Kind::Redeclared(p.name.to_owned())));
            }
        }
        Ok((params, at as u32))
    }

    /// First pass: labels to instruction numbers, shared and local variables to offsets.
    fn lay_out(&mut self, module: &'a ModuleAst<'a>, k: &'a KernelAst<'a>) -> Result<()> {
        let (mut shared, mut local, mut pc) = (0u64, 0u64, 0u32);
        let mut dynamic: Vec<(usize, u32)> = Vec::new();
        let mut stack = vec![0u32];
        let place = |at: &mut u64, v: &Variable<'_>| -> Result<u32> {
            *at = align_up(*at, v.align);
            let offset = *at as u32;
            *at += v.size.unwrap_or(0);
            if *at > MAX_SHARED {
                return Err(v.span.error(Kind::OutOfRange(format!(
                    "`{}` does not fit in its memory",
                    v.name
                ))));
            }
            Ok(offset)
        };
        let mut number = 0u32;
        let mut module_dynamic = Vec::new();
        for v in &module.variables {
            let symbol = match v.space {
                Space::Shared if v.size.is_none() => {
                    module_dynamic.push((v.name, v.align));
                    Symbol::Variable {
                        space: Space::Shared,
                        offset: 0,
                    }
                }
                Space::Shared if mentions(k, v.name) => Symbol::Variable {
                    space: Space::Shared,
                    offset: place(&mut shared, v)?,
                },
                Space::Shared => continue,
                _ => {
                    number += 1;
                    Symbol::Module(number - 1)
                }
            };
            self.scopes[0].names.entry(v.name).or_insert(symbol);
        }
        for (index, stmt) in k.body.iter().enumerate() {
            match stmt {
                Stmt::Open => {
                    let parent = stack.last().copied().unwrap_or(0);
                    self.parents.push(parent);
                    stack.push(self.parents.len() as u32 - 1);
                }
                Stmt::Close => {
                    stack.pop();
                }
                Stmt::Label(name, span) => {
                    let scope = stack.last().copied().unwrap_or(0);
                    if self.labels.insert((scope, name), pc).is_some() {
                        return Err(span.error(Kind::Redeclared((*name).to_owned())));
                    }
                }
                Stmt::Instr(_) => pc += 1,
                Stmt::Variable(v) => match (v.space, v.size) {
                    (Space::Shared, None) => dynamic.push((index, v.align)),
                    (Space::Shared, Some(_)) => {
                        let offset = place(&mut shared, v)?;
                        self.placed.insert(index, offset);
                    }
                    (Space::Local, Some(_)) => {
                        let offset = place(&mut local, v)?;
                        self.placed.insert(index, offset);
                    }
                    _ => {
                        let what =
                            format!("`{}`: this space is not supported inside a kernel", v.name);
                        return Err(v.span.error(Kind::Unsupported(what)));
                    }
                },
                Stmt::Registers(_) | Stmt::BranchTargets(..) => {}
            }
        }
        let align = dynamic
            .iter()
            .map(|d| d.1)
            .chain(module_dynamic.iter().map(|d| d.1))
            .max()
            .unwrap_or(16);
        let start = align_up(shared, align) as u32;
        for (index, _) in dynamic {
            self.placed.insert(index, start);
        }
        for (name, _) in module_dynamic {
            self.scopes[0].names.insert(
                name,
                Symbol::Variable {
                    space: Space::Shared,
                    offset: start,
                },
            );
        }
        self.program.shared_static = shared as u32;
        self.program.shared_dynamic = start;
        self.program.local_bytes = align_up(local, 16) as u32;
        Ok(())
    }

    fn declare(&mut self, index: usize, v: &'a Variable<'a>) -> Result<()> {
        let offset = self.placed.get(&index).copied().unwrap_or(0);
        let symbol = Symbol::Variable {
            space: v.space,
            offset,
        };
        let scope = self
            .scopes
            .last_mut()
            .expect("the kernel's scope is never popped");
        match scope.names.insert(v.name, symbol) {
            // `.extern .shared` may be declared at module level and again here.
            Some(Symbol::Variable {
                space: Space::Shared,
                ..
            }) if v.is_extern => Ok(()),
            Some(_) => Err(v.span.error(Kind::Redeclared(v.name.to_owned()))),
            None => Ok(()),
        }
    }

    /// The instruction that `name` labels, seen from scope `from`.
    fn label(&self, name: &str, from: u32, span: Span) -> Result<u32> {
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
    fn lookup(&self, name: &str) -> Option<(u32, Symbol)> {
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

    fn fresh_row(&mut self, file: File, init: RowInit) -> Row {
        let rows = match file {
            File::R32 => &mut self.program.rows32,
            File::R64 => &mut self.program.rows64,
            File::Pred => &mut self.program.rows_pred,
        };
        rows.push(init);
        rows.len() as Row - 1
    }

    /// The row that holds `init` in every lane.
    fn constant(&mut self, file: File, init: RowInit) -> Row {
        if let Some(row) = self.constants.get(&(file, init)) {
            return *row;
        }
        let row = self.fresh_row(file, init);
        self.constants.insert((file, init), row);
        row
    }

    /// The register called `name` and its type.
    fn register(&mut self, name: &'a str, span: Span) -> Result<(Reg, ScalarType)> {
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

    fn type_error<T>(o: &OperandAst<'_>, expected: &str) -> Result<T> {
        Err(o.span.error(Kind::OperandType {
            operand: o.describe(),
            expected: expected.to_owned(),
        }))
    }

    /// The bits of immediate `o` as type `ty`, or `None` if it is no immediate.
    fn immediate(o: &OperandAst<'_>, ty: ScalarType) -> Result<Option<u64>> {
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
    fn src(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        Ok(self.src_reg(o, ty, false)?.row)
    }

    /// Like [`Self::src`], and with `relaxed` a register may be wider than `ty`.
    fn src_reg(&mut self, o: &OperandAst<'a>, ty: ScalarType, relaxed: bool) -> Result<Reg> {
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
    fn dst(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        Ok(self.dst_reg(o, ty, false)?.row)
    }

    /// Like [`Self::dst`]; `relaxed` lets the register be wider; `_` gives [`NONE`].
    fn dst_reg(&mut self, o: &OperandAst<'a>, ty: ScalarType, relaxed: bool) -> Result<Reg> {
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
    fn dst_some(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<Row> {
        match self.dst(o, ty)? {
            NONE => Self::type_error(o, "a destination register"),
            row => Ok(row),
        }
    }

    /// A source predicate, perhaps negated.
    fn src_pred(&mut self, o: &OperandAst<'a>) -> Result<(Row, bool)> {
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
    fn address(&mut self, o: &OperandAst<'a>) -> Result<Address> {
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

    /// Fails unless the instruction has as many operands as `allowed` says.
    fn count(i: &InstrAst<'_>, allowed: std::ops::RangeInclusive<usize>) -> Result<()> {
        if allowed.contains(&i.operands.len()) {
            return Ok(());
        }
        let (lo, hi) = (*allowed.start(), *allowed.end());
        let expected = if lo == hi {
            lo.to_string()
        } else {
            format!("{lo} to {hi}")
        };
        Err(i.span.error(Kind::OperandCount {
            instruction: i.name.to_owned(),
            expected,
            found: i.operands.len(),
        }))
    }

    fn instruction(&mut self, i: &InstrAst<'a>) -> Result<()> {
        let mut opcode = i.name.to_owned();
        for (m, _) in &i.mods {
            opcode.push('.');
            opcode.push_str(m);
        }
        self.read.clear();
        self.written.clear();
        let (mut guard, mut negated) = (NONE, false);
        if let Some((name, not, span)) = i.guard {
            let o = OperandAst {
                span,
                kind: OperandKind::Name {
                    name,
                    dim: None,
                    offset: 0,
                },
            };
            guard = self.src(&o, ScalarType::Pred)?;
            negated = not;
        }
        let mut mods = Mods {
            list: i.mods.clone(),
            instruction: opcode,
            span: i.span,
        };
        let op = self.decode(i, &mut mods)?;
        mods.finish()?;
        // A destination that is also guarded keeps its old value in the other lanes.
        self.program.insts.push(Inst {
            op,
            guard,
            negated,
            checks: (0, 0),
            marks: (0, 0),
        });
        self.program.meta.push(Meta {
            line: i.span.line,
            column: i.span.column,
            opcode: mods.instruction,
        });
        self.uses.push((
            std::mem::take(&mut self.read),
            std::mem::take(&mut self.written),
        ));
        Ok(())
    }

    fn decode(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let found = match self.arith(i, m)? {
            Some(op) => Some(op),
            None => match self.memory(i, m)? {
                Some(op) => Some(op),
                None => match self.flow(i, m)? {
                    Some(op) => Some(op),
                    None => match self.convert(i, m)? {
                        Some(op) => Some(op),
                        None => self.warp(i, m)?,
                    },
                },
            },
        };
        found.ok_or_else(|| {
            i.span
                .error(Kind::UnknownInstruction(m.instruction.clone()))
        })
    }
}

/// Whether any operand of `k` names `name`.
fn mentions(k: &KernelAst<'_>, name: &str) -> bool {
    fn operand(o: &OperandAst<'_>, name: &str) -> bool {
        match &o.kind {
            OperandKind::Name { name: n, .. } | OperandKind::Not(n) => *n == name,
            OperandKind::Address { base, coords, .. } => {
                *base == Some(name) || coords.iter().any(|c| operand(c, name))
            }
            OperandKind::Vector(v) | OperandKind::List(v) => v.iter().any(|c| operand(c, name)),
            OperandKind::Pair(a, b) => operand(a, name) || operand(b, name),
            _ => false,
        }
    }
    k.body
        .iter()
        .any(|s| matches!(s, Stmt::Instr(i) if i.operands.iter().any(|o| operand(o, name))))
}
