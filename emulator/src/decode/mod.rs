//! From syntax tree to program: names resolved, sizes checked, operands turned into rows.
//!
//! One statement becomes one [`Inst`], and one more for each operand that is a sum ([`Decoder::operand_sums`]), so that a program counter is an index into the
//! program's instructions and a label is such an index. The program has the kernel's body first, then those of the functions that it may call. Rows are allotted on first use: `.reg .b32 %r<100000>` costs nothing. Each decoder in the submodules takes the
//! modifiers it knows out of [`Mods`]; what is left over at the end is an error that names it, so that no modifier is ever
//! silently ignored.

mod arith;
mod bits;
mod bulk;
mod cluster;
mod convert;
mod flow;
mod functions;
mod known;
mod layout;
mod memory;
mod mma;
mod multimem;
mod operands;
mod packed;
mod select;
mod special;
mod stack;
mod texture;
mod warp;
mod wgmma;
mod wmma;

use std::collections::HashMap;

use crate::ast::{InstrAst, KernelAst, ModuleAst, OperandAst, OperandKind, Registers, Space, Stmt};
use crate::cfg;
use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::ir::{Body, BulkSide, Function, Inst, Meta, NONE, Op, Program, Reg, Row, RowInit, Slot};
use crate::lexer::Span;
use crate::module::{Kernel, Param};
use crate::types::{File, ScalarType};
use layout::Places;

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
    /// A vector register and its elements.
    Vector(ScalarType, u8),
    /// A variable or parameter in the frame of the body.
    Frame {
        offset: u32,
        bytes: u32,
    },
    /// A module variable by its number.
    Module(u32),
    /// A function by its number in the module.
    Function(u32),
}

#[derive(Debug, Default)]
struct Scope<'a> {
    id: u32,
    names: HashMap<&'a str, Symbol>,
    /// `%r<100>`: prefix to what each is, and the count.
    ranges: HashMap<&'a str, (Symbol, u32)>,
    /// Bytes of an element and dimensions of each variable.
    arrays: HashMap<&'a str, (u32, u8)>,
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

    /// An error: PTX has no such form.
    fn invalid<T>(&self, what: &str) -> Result<T> {
        Err(self
            .span
            .error(Kind::Invalid(format!("`{}`: {what}", self.instruction))))
    }

    /// An error: this form is not supported.
    fn unsupported<T>(&self, what: &str) -> Result<T> {
        Err(self
            .span
            .error(Kind::Unsupported(format!("`{}`: {what}", self.instruction))))
    }
}

/// Decodes `k` and the functions that it may call.
pub(crate) fn kernel<'a>(module: &'a ModuleAst<'a>, k: &'a KernelAst<'a>) -> Result<Kernel> {
    let (params, param_bytes, program) = program(module, Some(k), &[])?;
    Ok(Kernel {
        name: k.name.to_owned(),
        params,
        param_bytes,
        max_threads: k.max_threads,
        required_threads: k.required_threads,
        required_cluster: k.required_cluster,
        max_cluster: k.max_cluster,
        program,
    })
}

/// Decodes the functions that no kernel calls, for their errors: returns those of instructions that the emulator lacks.
pub(crate) fn uncalled<'a>(module: &'a ModuleAst<'a>) -> Result<Vec<ParseError>> {
    let mut called = vec![false; module.functions.len()];
    for k in &module.kernels {
        for (f, _) in functions::reached(module, &k.body, &[]) {
            called[f] = true;
        }
    }
    let rest: Vec<usize> = (0..called.len()).filter(|&f| !called[f]).collect();
    Ok(program(module, None, &rest)?.2.missing)
}

/// The program of kernel `k`, or of no kernel, with functions `roots` and all that these may call.
fn program<'a>(
    module: &'a ModuleAst<'a>,
    k: Option<&'a KernelAst<'a>>,
    roots: &[usize],
) -> Result<(Vec<Param>, u32, Program)> {
    let kernel_body: &'a [Stmt<'a>] = k.map_or(&[], |k| &k.body);
    let reached = functions::reached(module, kernel_body, roots);
    let mut bodies = vec![kernel_body];
    for (f, _) in &reached {
        bodies.push(module.functions[*f].body.as_deref().unwrap_or(&[]));
    }
    let mut d = Decoder::new(module);
    let mut places = Places::default();
    d.module_names(module, &bodies, &mut places)?;
    d.lay_out(0, kernel_body, &mut places)?;
    d.program.local_bytes = (places.frame as u32).next_multiple_of(16);
    for (index, (f, recursive)) in reached.iter().enumerate() {
        let function = &module.functions[*f];
        places.frame = 0;
        d.lay_out(index + 1, bodies[index + 1], &mut places)?;
        let root = d.roots[index + 1];
        let returns = d.formal_slots(&function.returns, root, &mut places)?;
        let params = d.formal_slots(&function.params, root, &mut places)?;
        d.program.functions.push(Function {
            name: function.name.to_owned(),
            entry: 0,
            frame: (places.frame as u32).next_multiple_of(16).max(16),
            returns,
            params,
            registers: Vec::new(),
            tracked: Vec::new(),
            addresses: Vec::new(),
            recursive: *recursive,
            number: *f as u32,
        });
    }
    d.finish_layout(places);
    let mut kernel_params = (Vec::new(), 0);
    for (number, body) in bodies.iter().enumerate() {
        let start = d.program.insts.len() as u32;
        let rows = d.row_counts();
        d.scopes.truncate(1);
        d.scopes.push(Scope {
            id: d.roots[number],
            ..Scope::default()
        });
        d.function = number.checked_sub(1).map(|f| f as u32);
        let mut defined = Vec::new();
        let mut span = Span::default();
        match (d.function, k) {
            (None, Some(k)) => {
                d.frame = d.program.local_bytes;
                kernel_params = d.params(k)?;
                span = k.span;
            }
            (None, None) => {}
            (Some(f), _) => {
                let f = &d.program.functions[f as usize];
                let ast = &module.functions[f.number as usize];
                let slots: Vec<Slot> = f.returns.iter().chain(&f.params).copied().collect();
                d.frame = f.frame;
                for slot in &f.params {
                    if let Slot::Register { reg, .. } = slot {
                        defined.push(*reg);
                    }
                }
                d.formal_names(ast, &slots)?;
                span = ast.span;
            }
        }
        d.body(number, body)?;
        // Control that runs off the end leaves the kernel or returns.
        let op = if d.function.is_some() {
            Op::Ret
        } else {
            Op::Exit
        };
        d.push(op, NONE, false);
        let (line, column) = match d.program.meta.last() {
            Some(m) if d.program.meta.len() as u32 > start => (m.line, m.column),
            _ => (span.line, span.column),
        };
        d.program.meta.push(Meta {
            line,
            column,
            opcode: END.to_owned(),
        });
        d.uses.push((Vec::new(), Vec::new()));
        d.program.bodies.push(Body {
            start,
            end: d.program.insts.len() as u32,
            defined,
        });
        if let Some(f) = d.function {
            d.finish_function(f as usize, start, rows);
        }
    }
    d.program.short_addresses = module.short_addresses;
    d.program.relaxes |= d.strong && d.orders;
    exit_early(&mut d.program);
    d.program.communicates = d.program.uses_heap || d.program.insts.iter().any(communicates);
    cfg::analyse(&mut d.program, d.uses);
    spins(&mut d.program);
    let (params, param_bytes) = kernel_params;
    Ok((params, param_bytes, d.program))
}

/// The opcode of the exit or return at the end of a body, which is not in the text.
pub(crate) const END: &str = "(end)";

/// Whether the outcome of `inst` may depend on what other blocks have done, or that of their instructions on it, in a kernel without data races: it is a strong
/// load of global memory, or an atomic whose result is used or for which the order matters (sums of floats).
fn communicates(inst: &Inst) -> bool {
    let is_global = |space: Space| matches!(space, Space::Global | Space::Generic);
    match &inst.op {
        Op::Ld(a) => a.strong && is_global(a.space),
        Op::Atom(a) => is_global(a.space) && (a.d.row != NONE || !a.op.commutes()),
        Op::Atoms(list) => list
            .iter()
            .any(|a| is_global(a.space) && (a.d.row != NONE || !a.op.commutes())),
        Op::Atom128(_) => true,
        Op::Bulk(b) => b.to == BulkSide::Global && b.reduction.is_some_and(|r| !r.op.commutes()),
        // The tensor map has the type.
        Op::Tensor(t) => t.store && t.reduction.is_some(),
        _ => false,
    }
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
        let inst = &p.insts[pc];
        if let Op::Bra { target, uni } = inst.op
            && (!uni || inst.guard == NONE)
            && leaves(p, target)
        {
            p.insts[pc].op = Op::Exit;
        }
    }
}

/// Makes every branch back over an instruction that looks at memory, or over a call of a function that may, a [`Op::Spin`].
fn spins(p: &mut Program) {
    let looks = |inst: &Inst| match &inst.op {
        Op::Ld(a) => a.strong,
        Op::Atom(a) => a.d.row != NONE,
        Op::Atoms(_) | Op::Atom128(_) => true,
        _ => false,
    };
    if !p.insts.iter().any(looks) {
        return;
    }
    let mut last = None;
    for (pc, inst) in p.insts.iter_mut().enumerate() {
        if looks(inst) || matches!(inst.op, Op::Call(_)) {
            last = Some(pc as u32);
        }
        if let Op::Bra { target, uni } = inst.op
            && last >= Some(target)
            && target <= pc as u32
        {
            inst.op = Op::Spin { target, uni };
        }
    }
}

/// State while a kernel is decoded.
pub(crate) struct Decoder<'a> {
    module: &'a ModuleAst<'a>,
    /// The module's scope, the body's and those in it.
    scopes: Vec<Scope<'a>>,
    scope_id: u32,
    parents: Vec<u32>,
    /// The outermost scope of each body.
    roots: Vec<u32>,
    labels: HashMap<(u32, &'a str), u32>,
    tables: HashMap<(u32, &'a str), Vec<u32>>,
    /// Offsets of the variables by body and statement.
    placed: HashMap<(usize, usize), u32>,
    /// Numbers of the `.global` and `.const` variables by their address in the syntax tree.
    statics: HashMap<usize, u32>,
    /// Rows of registers by scope, name and element.
    rows: HashMap<(u32, &'a str, u8), Reg>,
    constants: HashMap<(File, RowInit), Row>,
    /// The function whose body is decoded; `None` for the kernel.
    function: Option<u32>,
    /// Bytes of the frame of the body.
    frame: u32,
    has_vectors: bool,
    /// Whether there are strong accesses of memory that may be shared, and whether fences or other strong accesses order anything.
    strong: bool,
    orders: bool,
    /// The registers that each body declares.
    declared: Vec<Vec<(&'a str, Option<u32>)>>,
    /// The body whose instructions are decoded.
    number: usize,
    /// What has been computed for [`OperandKind::Computed`].
    computed: Vec<(Reg, ScalarType)>,
    program: Program,
    /// Registers read and written by each instruction.
    uses: Vec<(Vec<Reg>, Vec<Reg>)>,
    read: Vec<Reg>,
    written: Vec<Reg>,
}

impl<'a> Decoder<'a> {
    fn new(module: &'a ModuleAst<'a>) -> Self {
        Self {
            module,
            scopes: vec![Scope::default()],
            scope_id: 0,
            parents: vec![0],
            roots: Vec::new(),
            labels: HashMap::new(),
            tables: HashMap::new(),
            placed: HashMap::new(),
            statics: layout::static_numbers(module),
            rows: HashMap::new(),
            constants: HashMap::new(),
            function: None,
            frame: 0,
            has_vectors: false,
            strong: false,
            orders: false,
            declared: Vec::new(),
            number: 0,
            computed: Vec::new(),
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

    /// A new scope inside `parent`.
    fn open_scope(&mut self, parent: u32) -> u32 {
        self.parents.push(parent);
        self.parents.len() as u32 - 1
    }

    fn row_counts(&self) -> [usize; 3] {
        let p = &self.program;
        [p.rows32.len(), p.rows64.len(), p.rows_pred.len()]
    }

    /// Appends an operation without its [`Meta`].
    fn push(&mut self, op: Op, guard: Row, negated: bool) {
        self.program.insts.push(Inst {
            op,
            guard,
            negated,
            watch: 0,
            checks: (0, 0),
            marks: (0, 0),
        });
    }

    /// Second pass over body `number`.
    fn body(&mut self, number: usize, body: &'a [Stmt<'a>]) -> Result<()> {
        self.number = number;
        // Scopes are numbered in the order in which they open, here as in the layout.
        let mut opened = self.roots[number];
        self.scope_id = opened;
        let mut stack = vec![opened];
        for (index, stmt) in body.iter().enumerate() {
            match stmt {
                Stmt::Open => {
                    opened += 1;
                    self.scope_id = opened;
                    stack.push(opened);
                    self.scopes.push(Scope {
                        id: opened,
                        ..Scope::default()
                    });
                }
                Stmt::Close => {
                    stack.pop();
                    self.scope_id = stack.last().copied().unwrap_or(0);
                    self.scopes.pop();
                }
                Stmt::Label(..) | Stmt::CallShape => {}
                Stmt::BranchTargets(name, span, targets) => {
                    let pcs = targets
                        .iter()
                        .map(|(l, s)| self.label(l, self.scope_id, *s))
                        .collect::<Result<Vec<_>>>()?;
                    if self.tables.insert((self.scope_id, name), pcs).is_some() {
                        return Err(span.error(Kind::Redeclared((*name).to_owned())));
                    }
                }
                Stmt::Registers(r) => self.declare_registers(r)?,
                Stmt::Variable(v) => self.declare((number, index), v)?,
                Stmt::Instr(i) => self.instruction(i)?,
            }
        }
        Ok(())
    }

    fn declare_registers(&mut self, r: &Registers<'a>) -> Result<()> {
        let symbol = if r.vector > 1 {
            self.has_vectors = true;
            Symbol::Vector(r.ty, r.vector)
        } else {
            Symbol::Register(r.ty)
        };
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let redeclared = |name: String| Err(r.span.error(Kind::Redeclared(name)));
        let Some(n) = r.count else {
            // `%r5` may be one of `%r<9>` already.
            let digits = r.name.bytes().rev().take_while(u8::is_ascii_digit).count();
            let (prefix, number) = r.name.split_at(r.name.len() - digits);
            let covered = scope.ranges.get(prefix).is_some_and(|(_, count)| {
                let canonical = digits == 1 || !number.starts_with('0');
                canonical && number.parse::<u32>().is_ok_and(|k| k < *count)
            });
            if covered {
                return redeclared(r.name.to_owned());
            }
            return self.declare_name(r.name, symbol, r.span);
        };
        let covers = |name: &str| {
            let number = name.strip_prefix(r.name).unwrap_or("");
            let canonical = number.len() == 1 || !number.starts_with('0');
            canonical && number.parse::<u32>().is_ok_and(|k| k < n)
        };
        if let Some(name) = scope.names.keys().find(|name| covers(name)) {
            return redeclared((*name).to_owned());
        }
        if scope.ranges.insert(r.name, (symbol, n)).is_some() {
            return redeclared(r.name.to_owned());
        }
        Ok(())
    }

    /// Notes where function `f` starts and which registers are its own: the rows made since there were `rows` of them.
    fn finish_function(&mut self, f: usize, start: u32, rows: [usize; 3]) {
        let mut registers = Vec::new();
        let mut addresses = Vec::new();
        let tables = [
            (File::R32, &self.program.rows32, rows[0]),
            (File::R64, &self.program.rows64, rows[1]),
            (File::Pred, &self.program.rows_pred, rows[2]),
        ];
        for (file, table, first) in tables {
            for (row, init) in table.iter().enumerate().skip(first) {
                let reg = Reg {
                    file,
                    row: row as Row,
                };
                match init {
                    RowInit::Register => registers.push(reg),
                    RowInit::Frame(_, offset) => addresses.push((reg, *offset)),
                    _ => {}
                }
            }
        }
        let function = &mut self.program.functions[f];
        // Register parameters were given their rows by the layout.
        for slot in function.returns.iter().chain(&function.params) {
            if let Slot::Register { reg, .. } = slot {
                registers.push(*reg);
            }
        }
        function.entry = start;
        function.registers = registers;
        function.addresses = addresses;
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

    fn instruction(&mut self, i: &'a InstrAst<'a>) -> Result<()> {
        let sums: Vec<_> = self.operand_sums(self.number, i).collect();
        if sums.is_empty() {
            return self.single(i);
        }
        let mut own = i.clone();
        for (k, o) in sums {
            own.operands[k] = self.sum(i, o)?;
        }
        self.single(&own)
    }

    /// An instruction as it is.
    fn single(&mut self, i: &InstrAst<'a>) -> Result<()> {
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
        let expanded = self.has_vectors.then(|| self.expand_vectors(i));
        let i = expanded.as_ref().unwrap_or(i);
        let guard_reads = self.read.len();
        let decoded = self.decode(i, &mut mods).and_then(|op| {
            mods.finish()?;
            Ok(op)
        });
        let op = match decoded {
            Ok(op) => op,
            Err(error) if known::is_lacking(&error, i.name) => {
                self.read.truncate(guard_reads);
                self.written.clear();
                self.program.missing.push(error);
                Op::Missing(self.program.missing.len() as u32 - 1)
            }
            Err(error) => return Err(error),
        };
        // A destination that is also guarded keeps its old value in the other lanes.
        self.push(op, guard, negated);
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
                        None => match self.warp(i, m)? {
                            Some(op) => Some(op),
                            None => match self.cluster(i, m)? {
                                Some(op) => Some(op),
                                None => match self.texture(i, m)? {
                                    Some(op) => Some(op),
                                    None => self.video(i, m)?,
                                },
                            },
                        },
                    },
                },
            },
        };
        found.ok_or_else(|| {
            i.span.error(if known::is_texture(i.name) {
                Kind::Unsupported(format!("textures and surfaces (`{}`)", m.instruction))
            } else if known::is_instruction(i.name) {
                Kind::Unsupported(format!("`{}`", m.instruction))
            } else {
                Kind::UnknownInstruction(m.instruction.clone())
            })
        })
    }
}
