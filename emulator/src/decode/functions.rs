//! Functions: which of them a kernel may call, and the decoding of `call` (PTX ISA, chapter 7 and section 9.7.12.5).
//!
//! The functions that a kernel may call become bodies of its own program, behind the kernel's: those that it names, directly or
//! through others, and, if there is an indirect call, every function of the module whose address is taken anywhere. A function
//! that may be active twice at once is *recursive*; its calls save its registers. Example: in `k → f → g → f` both `f` and `g` are.

use super::layout::names;
use super::{Decoder, Mods, Result, Symbol};
use crate::ast::{Init, InstrAst, ModuleAst, OperandAst, OperandKind, Stmt};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Call, Callee, Op, Reg, Service, Slot};
use crate::types::ScalarType;

/// The operand of a `call` that says whom, by its place: the first that is no list.
fn callee_at(i: &InstrAst<'_>) -> Option<usize> {
    i.operands
        .iter()
        .position(|o| !matches!(o.kind, OperandKind::List(_)))
}

/// What a body refers to.
struct References {
    /// Functions called by name.
    called: Vec<usize>,
    /// Functions whose address is taken.
    taken: Vec<usize>,
    /// There is a call through a register.
    indirect: bool,
}

fn references<'a>(module: &ModuleAst<'a>, body: &[Stmt<'a>]) -> References {
    let mut r = References {
        called: Vec::new(),
        taken: Vec::new(),
        indirect: false,
    };
    for s in body {
        let Stmt::Instr(i) = s else { continue };
        let callee = (i.name == "call").then(|| callee_at(i)).flatten();
        for (k, o) in i.operands.iter().enumerate() {
            let is_callee = Some(k) == callee;
            let mut found = false;
            names(o, &mut |name| {
                if let Some(number) = module.function(name) {
                    found = true;
                    let list = if is_callee {
                        &mut r.called
                    } else {
                        &mut r.taken
                    };
                    if !list.contains(&number) {
                        list.push(number);
                    }
                }
            });
            r.indirect |= is_callee && !found;
        }
    }
    r
}

/// Functions whose address is taken in the module: in an initialiser or by an instruction.
fn address_taken(module: &ModuleAst<'_>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for v in module.statics() {
        for (_, init) in &v.init {
            if let Init::Symbol { name, .. } = init {
                taken.extend(module.function(name));
            }
        }
    }
    let bodies = module
        .kernels
        .iter()
        .map(|k| &k.body)
        .chain(module.functions.iter().filter_map(|f| f.body.as_ref()));
    for body in bodies {
        taken.extend(references(module, body).taken);
    }
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// The defined functions that a program with `body` and `roots` may call, each with whether it may call itself.
pub(super) fn reached(
    module: &ModuleAst<'_>,
    body: &[Stmt<'_>],
    roots: &[usize],
) -> Vec<(usize, bool)> {
    let defined = |f: &usize| module.functions[*f].body.is_some();
    let mut taken: Option<Vec<usize>> = None;
    let mut callees = |body: &[Stmt<'_>]| {
        let r = references(module, body);
        let mut all = r.called;
        if r.indirect {
            all.extend(taken.get_or_insert_with(|| address_taken(module)).iter());
        }
        all.retain(defined);
        all
    };
    let mut order: Vec<usize> = roots.iter().copied().filter(|f| defined(f)).collect();
    for f in callees(body) {
        if !order.contains(&f) {
            order.push(f);
        }
    }
    let mut edges: Vec<Vec<usize>> = Vec::new();
    let mut next = 0;
    while let Some(&f) = order.get(next) {
        next += 1;
        let to = module.functions[f]
            .body
            .as_ref()
            .map_or(Vec::new(), |b| callees(b));
        for &g in &to {
            if !order.contains(&g) {
                order.push(g);
            }
        }
        edges.push(to);
    }
    let place = |f: usize| order.iter().position(|&g| g == f);
    let recursive = |start: usize| {
        let mut seen = vec![false; order.len()];
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            for &g in &edges[at] {
                let Some(to) = place(g) else { continue };
                if to == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push(to);
                }
            }
        }
        false
    };
    (0..order.len())
        .map(|at| (order[at], recursive(at)))
        .collect()
}

/// The functions of the system that the emulator offers, by name, with the bytes of their return value and parameters.
fn service(name: &str) -> Option<(Service, Option<u32>, &'static [u32])> {
    Some(match name {
        "vprintf" => (Service::Printf, Some(4), &[8, 8]),
        "malloc" => (Service::Malloc, Some(8), &[8]),
        "free" => (Service::Free, None, &[8]),
        "__assertfail" => (Service::Assert, None, &[8, 8, 4, 8, 8]),
        _ => return None,
    })
}

impl<'a> Decoder<'a> {
    /// `call`.
    pub(super) fn call(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let _ = m.take("uni");
        let Some(at) = callee_at(i).filter(|at| *at <= 1) else {
            return m.unsupported("a call without a function");
        };
        let empty: &[OperandAst<'a>] = &[];
        let list = |k: usize| match i.operands.get(k).map(|o| &o.kind) {
            Some(OperandKind::List(l)) => l.as_slice(),
            _ => empty,
        };
        // Vector registers pass their elements.
        let flat = |list: &[OperandAst<'a>]| -> Vec<OperandAst<'a>> {
            let each = list.iter().flat_map(|o| match &o.kind {
                OperandKind::Vector(parts) => parts.clone(),
                _ => vec![o.clone()],
            });
            each.collect()
        };
        let returns = flat(if at == 1 { list(0) } else { empty });
        let args = flat(list(at + 1));
        let target = &i.operands[at];
        let OperandKind::Name { name, .. } = target.kind else {
            return Self::type_error(
                target,
                "a function or a register that holds the address of one",
            );
        };
        let mut shape: Option<(Vec<u32>, Vec<u32>)> = None;
        let callee = match self.lookup(name) {
            Some((_, Symbol::Function(number))) => {
                let f = &self.module.functions[number as usize];
                if f.body.is_some() {
                    let index = self.function_index(number);
                    let f = &self.program.functions[index as usize];
                    let bytes = |s: &[Slot]| s.iter().map(|s| s.bytes()).collect();
                    shape = Some((bytes(&f.returns), bytes(&f.params)));
                    Callee::Function(index)
                } else if let Some((service, result, params)) = service(f.name) {
                    self.program.uses_heap |= matches!(service, Service::Malloc | Service::Free);
                    shape = Some((result.into_iter().collect(), params.to_vec()));
                    Callee::Service(service)
                } else {
                    return m.unsupported(&format!(
                        "`{name}` is declared and not defined in this file; known without a definition are vprintf, malloc, free and __assertfail"
                    ));
                }
            }
            Some((_, Symbol::Register(ty))) if ty.bits() >= 32 => {
                let (reg, _) = self.register(name, target.span)?;
                self.read.push(reg);
                Callee::Register(reg)
            }
            Some(_) => {
                return Self::type_error(
                    target,
                    "a function or a register that holds the address of one",
                );
            }
            None => return Err(target.span.error(Kind::Undeclared(name.to_owned()))),
        };
        if let Some((r, p)) = &shape {
            if r.len() != returns.len() {
                return Err(i.span.error(Kind::OperandCount {
                    instruction: format!("{} {name}", m.instruction),
                    expected: format!("{} returned", r.len()),
                    found: returns.len(),
                }));
            }
            if p.len() != args.len() {
                return Err(i.span.error(Kind::OperandCount {
                    instruction: format!("{} {name}", m.instruction),
                    expected: p.len().to_string(),
                    found: args.len(),
                }));
            }
        }
        let (r, p) = shape.unwrap_or_default();
        let args = self.slots(&args, &p, false)?;
        let returns = self.slots(&returns, &r, true)?;
        Ok(Op::Call(Box::new(Call {
            callee,
            returns,
            args,
            frame: self.frame,
            live: None,
        })))
    }

    /// The slots of the operands of a call; `bytes` has the sizes of the formal parameters if they are known.
    fn slots(&mut self, list: &[OperandAst<'a>], bytes: &[u32], write: bool) -> Result<Vec<Slot>> {
        let mut slots = Vec::new();
        for (k, o) in list.iter().enumerate() {
            let expected = bytes.get(k).copied();
            let slot = self.slot(o, expected, write)?;
            if expected.is_some_and(|e| e != slot.bytes()) {
                return Self::type_error(o, &format!("{} bytes, found {}", bytes[k], slot.bytes()));
            }
            slots.push(slot);
        }
        Ok(slots)
    }

    fn slot(&mut self, o: &OperandAst<'a>, expected: Option<u32>, write: bool) -> Result<Slot> {
        if let OperandKind::Name {
            name, dim: None, ..
        } = o.kind
        {
            match self.lookup(name) {
                Some((_, Symbol::Frame { offset, bytes })) => {
                    return Ok(Slot::Memory { offset, bytes });
                }
                Some((_, Symbol::Register(ty))) if ty != ScalarType::Pred => {
                    let (reg, ty): (Reg, _) = self.register(name, o.span)?;
                    if write {
                        self.written.push(reg);
                    } else {
                        self.read.push(reg);
                    }
                    return Ok(Slot::Register {
                        reg,
                        bytes: ty.bytes(),
                    });
                }
                _ => {}
            }
        }
        if let OperandKind::Component(..) = o.kind
            && let Some((reg, ty)) = self.plain(o)?
        {
            let used = if write {
                &mut self.written
            } else {
                &mut self.read
            };
            used.push(reg);
            return Ok(Slot::Register {
                reg,
                bytes: ty.bytes(),
            });
        }
        if write {
            return Self::type_error(o, "a register or a .param variable");
        }
        let ty = match expected.unwrap_or(4) {
            1 => ScalarType::B8,
            2 => ScalarType::B16,
            4 => ScalarType::B32,
            _ => ScalarType::B64,
        };
        Ok(Slot::Register {
            reg: self.src_reg(o, ty, false)?,
            bytes: ty.bytes(),
        })
    }

    /// The place of function `number` in the program.
    fn function_index(&self, number: u32) -> u32 {
        let at = self
            .program
            .functions
            .iter()
            .position(|f| f.number == number);
        at.unwrap_or(0) as u32
    }
}
