//! First pass over the bodies of a program: where parameters and variables lie, and which instruction each label names.
//!
//! Static shared variables follow each other, each aligned; the dynamic part starts after them, aligned to the strictest `.extern`
//! declaration. Module-level shared variables take space only in kernels that mention them, as assemblers do it.
//!
//! `.local` variables and the `.param` variables that pass arguments lie in the *frame* of their body, which is local memory. The
//! kernel's frame starts at local address 0, those of functions where the caller's ends.

use std::collections::HashMap;

use super::{Decoder, Result, Symbol};
use crate::ast::{
    Formal, FunctionAst, InstrAst, KernelAst, ModuleAst, OperandAst, OperandKind, Space, Stmt,
    Variable,
};
use crate::error::ParseErrorKind as Kind;
use crate::ir::Slot;
use crate::module::Param;
use crate::types::File;

/// Upper limit of shared memory that one variable layout may reach; far above any device.
const MAX_SHARED: u64 = 1 << 24;

/// Rounds `x` up to a multiple of `align`, a power of two.
fn align_up(x: u64, align: u32) -> u64 {
    x.next_multiple_of(u64::from(align.max(1)))
}

/// Puts `v` behind `at` and returns its offset.
fn place(at: &mut u64, v: &Variable<'_>) -> Result<u32> {
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
}

/// How far the layout has come.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// Bytes of static shared memory so far.
    shared: u64,
    /// Declarations of dynamic shared memory, by body and statement.
    dynamic: Vec<((usize, usize), u32)>,
    module_dynamic: Vec<(&'a str, u32)>,
    /// Bytes of the frame of the body that is laid out.
    pub(super) frame: u64,
    pc: u32,
}

impl<'a> Decoder<'a> {
    /// The kernel's parameters, as names of the innermost scope.
    pub(super) fn params(&mut self, k: &'a KernelAst<'a>) -> Result<(Vec<Param>, u32)> {
        let mut params = Vec::new();
        let mut at = 0u64;
        for p in &k.params {
            let Some(size) = p.size else {
                return Err(p.span.error(Kind::Missing("the size of the array")));
            };
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
            self.note_array(p);
            self.declare_name(p.name, symbol, p.span)?;
        }
        Ok((params, at as u32))
    }

    /// The names of the module, in the outermost scope. `bodies` are those that the program has.
    pub(super) fn module_names(
        &mut self,
        module: &'a ModuleAst<'a>,
        bodies: &[&'a [Stmt<'a>]],
        places: &mut Places<'a>,
    ) -> Result<()> {
        for v in &module.variables {
            let mentioned = || bodies.iter().any(|b| mentions(b, v.name));
            let symbol = match v.space {
                Space::Shared if v.size.is_none() => {
                    places.module_dynamic.push((v.name, v.align));
                    Symbol::Variable {
                        space: Space::Shared,
                        offset: 0,
                    }
                }
                Space::Shared if mentioned() => Symbol::Variable {
                    space: Space::Shared,
                    offset: place(&mut places.shared, v)?,
                },
                Space::Local if mentioned() => Symbol::Variable {
                    space: Space::Local,
                    offset: place(&mut places.frame, v)?,
                },
                Space::Shared | Space::Local => continue,
                _ => Symbol::Module(self.static_number(v)),
            };
            self.note_array(v);
            let names = &mut self.scopes[0].names;
            // A definition takes the place of its `.extern` declaration.
            if !v.is_extern || !names.contains_key(v.name) {
                names.insert(v.name, symbol);
            }
        }
        for (number, f) in module.functions.iter().enumerate() {
            self.scopes[0]
                .names
                .insert(f.name, Symbol::Function(number as u32));
        }
        for (alias, _) in &module.aliases {
            if let Some(number) = module.function(alias) {
                let symbol = Symbol::Function(number as u32);
                self.scopes[0].names.insert(alias, symbol);
            }
        }
        Ok(())
    }

    /// The number of the `.global` or `.const` variable `v`.
    pub(super) fn static_number(&self, v: &Variable<'_>) -> u32 {
        self.statics
            .get(&std::ptr::from_ref(v).addr())
            .copied()
            .unwrap_or(0)
    }

    /// First pass over body `number`: labels to instruction numbers, shared variables and the frame to offsets.
    pub(super) fn lay_out(
        &mut self,
        number: usize,
        body: &'a [Stmt<'a>],
        places: &mut Places<'a>,
    ) -> Result<()> {
        self.declared.push(registers_of(body));
        let mut stack = vec![self.open_scope(0)];
        self.roots.push(stack[0]);
        for (index, stmt) in body.iter().enumerate() {
            match stmt {
                Stmt::Open => {
                    let parent = stack.last().copied().unwrap_or(0);
                    stack.push(self.open_scope(parent));
                }
                Stmt::Close => {
                    stack.pop();
                }
                Stmt::Label(name, span) => {
                    let scope = stack.last().copied().unwrap_or(0);
                    if self.labels.insert((scope, name), places.pc).is_some() {
                        return Err(span.error(Kind::Redeclared((*name).to_owned())));
                    }
                }
                Stmt::Instr(i) => places.pc += 1 + self.operand_sums(number, i).count() as u32,
                Stmt::Variable(v) => match (v.space, v.size) {
                    (Space::Shared, None) => places.dynamic.push(((number, index), v.align)),
                    (Space::Shared, Some(_)) => {
                        let offset = place(&mut places.shared, v)?;
                        self.placed.insert((number, index), offset);
                    }
                    (Space::Local, Some(_)) | (Space::Param, _) => {
                        let offset = place(&mut places.frame, v)?;
                        self.placed.insert((number, index), offset);
                    }
                    (Space::Global | Space::Const, _) => {}
                    _ => {
                        let what = format!("`{}`: an array without a size", v.name);
                        return Err(v.span.error(Kind::Unsupported(what)));
                    }
                },
                Stmt::Registers(_) | Stmt::BranchTargets(..) | Stmt::CallShape => {}
            }
        }
        // The exit or return that every body ends with.
        places.pc += 1;
        Ok(())
    }

    /// The slots of the formal parameters `formals` of the body that was begun last.
    pub(super) fn formal_slots(
        &mut self,
        formals: &'a [Formal<'a>],
        root: u32,
        places: &mut Places<'a>,
    ) -> Result<Vec<Slot>> {
        let mut slots = Vec::new();
        for f in formals {
            match f {
                Formal::Param(v) => slots.push(Slot::Memory {
                    offset: place(&mut places.frame, v)?,
                    bytes: v.size.unwrap_or(0) as u32,
                }),
                Formal::Register(r) => {
                    let Some(file) = r.ty.file().filter(|f| *f != File::Pred) else {
                        let what = format!("`{}`: a register parameter of this type", r.name);
                        return Err(r.span.error(Kind::Unsupported(what)));
                    };
                    // One slot for each element of a vector.
                    for k in 0..r.vector {
                        let reg = self.row_of(root, r.name, k, file);
                        let bytes = r.ty.bytes();
                        slots.push(Slot::Register { reg, bytes });
                    }
                }
            }
        }
        Ok(slots)
    }

    /// The names of the formal parameters of function `f`, in the innermost scope.
    pub(super) fn formal_names(&mut self, f: &'a FunctionAst<'a>, slots: &[Slot]) -> Result<()> {
        let mut slots = slots.iter();
        for formal in f.returns.iter().chain(&f.params) {
            let (name, span, symbol) = match formal {
                Formal::Param(v) => {
                    let Some(Slot::Memory { offset, bytes }) = slots.next().copied() else {
                        continue;
                    };
                    self.note_array(v);
                    (v.name, v.span, Symbol::Frame { offset, bytes })
                }
                Formal::Register(r) => {
                    slots.nth(usize::from(r.vector) - 1);
                    let symbol = if r.vector > 1 {
                        self.has_vectors = true;
                        Symbol::Vector(r.ty, r.vector)
                    } else {
                        Symbol::Register(r.ty)
                    };
                    (r.name, r.span, symbol)
                }
            };
            if name != "_" {
                self.declare_name(name, symbol, span)?;
            }
        }
        Ok(())
    }

    /// Ends the layout: dynamic shared memory goes behind all static variables.
    pub(super) fn finish_layout(&mut self, places: Places<'a>) {
        let align = places
            .dynamic
            .iter()
            .map(|d| d.1)
            .chain(places.module_dynamic.iter().map(|d| d.1))
            .max()
            .unwrap_or(16);
        let start = align_up(places.shared, align) as u32;
        for (at, _) in places.dynamic {
            self.placed.insert(at, start);
        }
        for (name, _) in places.module_dynamic {
            self.scopes[0].names.insert(
                name,
                Symbol::Variable {
                    space: Space::Shared,
                    offset: start,
                },
            );
        }
        self.program.shared_static = places.shared as u32;
        self.program.shared_dynamic = start;
    }

    /// Declares variable `v`, statement `at`, in the innermost scope.
    pub(super) fn declare(&mut self, at: (usize, usize), v: &'a Variable<'a>) -> Result<()> {
        let offset = self.placed.get(&at).copied().unwrap_or(0);
        let bytes = v.size.unwrap_or(0) as u32;
        let symbol = match v.space {
            Space::Local | Space::Param => Symbol::Frame { offset, bytes },
            Space::Global | Space::Const => Symbol::Module(self.static_number(v)),
            space => Symbol::Variable { space, offset },
        };
        self.note_array(v);
        self.declare_name(v.name, symbol, v.span)
    }

    pub(super) fn declare_name(
        &mut self,
        name: &'a str,
        symbol: Symbol,
        span: crate::lexer::Span,
    ) -> Result<()> {
        let known = match self.scopes.last_mut() {
            Some(scope) => scope.names.insert(name, symbol).is_some(),
            None => false,
        };
        if known {
            return Err(span.error(Kind::Redeclared(name.to_owned())));
        }
        Ok(())
    }
}

/// The names and ranges of the registers that a body declares, in whatever scope.
fn registers_of<'a>(body: &'a [Stmt<'a>]) -> Vec<(&'a str, Option<u32>)> {
    let declared = body.iter().filter_map(|s| match s {
        Stmt::Registers(r) => Some((r.name, r.count)),
        _ => None,
    });
    declared.collect()
}

impl<'a> Decoder<'a> {
    /// Remembers the size of the elements of `v`, of the innermost scope, if it is an array.
    fn note_array(&mut self, v: &Variable<'a>) {
        if let Some(scope) = self.scopes.last_mut() {
            let bytes = v.ty.bytes() * u32::from(v.vector);
            scope.arrays.insert(v.name, (bytes, v.dims));
        }
    }

    /// The operands of `i`, an instruction of body `number`, that need an instruction of their own: `%r + 4` and `array[%r]`.
    pub(super) fn operand_sums(
        &self,
        number: usize,
        i: &'a InstrAst<'a>,
    ) -> impl Iterator<Item = (usize, &'a OperandAst<'a>)> {
        let declared = &self.declared[number];
        let is_register = move |name: &str| {
            declared.iter().any(|(known, count)| match count {
                None => *known == name,
                Some(n) => name
                    .strip_prefix(known)
                    .and_then(|digits| digits.parse::<u32>().ok())
                    .is_some_and(|k| k < *n),
            })
        };
        let operands = i.operands.iter().enumerate();
        operands.filter(move |(_, o)| match &o.kind {
            OperandKind::Name {
                name,
                dim: None,
                offset,
            } => *offset != 0 && is_register(name),
            OperandKind::Element { index, .. } => index.is_some(),
            _ => false,
        })
    }
}

/// Whether any operand of `body` names `name`.
fn mentions(body: &[Stmt<'_>], name: &str) -> bool {
    let mut found = false;
    for s in body {
        if let Stmt::Instr(i) = s {
            for o in &i.operands {
                names(o, &mut |n| found |= n == name);
            }
        }
    }
    found
}

/// Calls `see` with every name in `o`.
pub(super) fn names<'a>(o: &OperandAst<'a>, see: &mut impl FnMut(&'a str)) {
    match &o.kind {
        OperandKind::Name { name, .. }
        | OperandKind::Not(name)
        | OperandKind::Component(name, _) => see(name),
        OperandKind::Element { array, index, .. } => {
            see(array);
            if let Some(index) = index {
                see(index);
            }
        }
        OperandKind::Address { base, coords, .. } => {
            if let Some(base) = base {
                see(base);
            }
            for c in coords {
                names(c, see);
            }
        }
        OperandKind::Vector(v) | OperandKind::List(v) => {
            for c in v {
                names(c, see);
            }
        }
        OperandKind::Pair(a, b) => {
            names(a, see);
            names(b, see);
        }
        OperandKind::Int(_)
        | OperandKind::F32(_)
        | OperandKind::F64(_)
        | OperandKind::Computed(_)
        | OperandKind::Sink => {}
    }
}

/// The number of each `.global` and `.const` variable by its place in the syntax tree.
pub(super) fn static_numbers(module: &ModuleAst<'_>) -> HashMap<usize, u32> {
    module
        .statics()
        .into_iter()
        .enumerate()
        .map(|(number, v)| (std::ptr::from_ref(v).addr(), number as u32))
        .collect()
}
