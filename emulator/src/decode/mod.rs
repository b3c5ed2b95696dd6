//! From syntax tree to program: names resolved, sizes checked, operands turned into rows.
//!
//! One statement becomes exactly one [`Inst`], so that a program counter is an index into the kernel's instructions and a label is
//! such an index. Rows are allotted on first use: `.reg .b32 %r<100000>` costs nothing. Each decoder in the submodules takes the
//! modifiers it knows out of [`Mods`]; what is left over at the end is an error that names it, so that no modifier is ever
//! silently ignored.

mod arith;
mod bits;
mod convert;
mod flow;
mod layout;
mod memory;
mod operands;
mod select;
mod special;
mod warp;

use std::collections::HashMap;

use crate::ast::{InstrAst, KernelAst, ModuleAst, OperandAst, OperandKind, Space, Stmt};
use crate::cfg;
use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::ir::{Inst, Meta, NONE, Op, Program, Reg, Row, RowInit};
use crate::lexer::Span;
use crate::module::Kernel;
use crate::types::{File, ScalarType};

type Result<T> = std::result::Result<T, ParseError>;

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
    exit_early(&mut d.program);
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

/// Makes every branch to an unguarded exit an exit: `@p bra END; bar.sync 0; …; END: ret;` is an early `ret`, whose lanes are gone,
/// and not a branch whose lanes wait at `END` for the others while these wait for them at the barrier.
fn exit_early(p: &mut Program) {
    let leaves = |p: &Program, pc: u32| {
        let inst = &p.insts[pc as usize];
        inst.guard == NONE && inst.op == Op::Exit
    };
    // From the back, so that a branch to a branch to an exit is seen as well.
    for pc in (0..p.insts.len()).rev() {
        if let Op::Bra { target } = p.insts[pc].op
            && leaves(p, target)
        {
            p.insts[pc].op = Op::Exit;
        }
    }
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
