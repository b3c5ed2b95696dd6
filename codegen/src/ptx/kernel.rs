//! The kernel under construction: scopes, variables, loops and the finished text.

mod instructions;
mod loops;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use super::text::{Class, Reg, class_of, mnemonic};
use crate::index::code::{Memo, Op, Operand, Sink, Ty, emit, type_of};
use crate::index::{Expr, Level, Pool};

/// The type of a kernel parameter, as the launch contract names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    /// A pointer to global memory, 64 bits.
    Pointer,
    /// An unsigned 32-bit integer.
    U32,
    /// An unsigned 64-bit integer.
    U64,
    /// A signed 32-bit integer.
    S32,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
}

impl ParamKind {
    fn ptx(self) -> &'static str {
        match self {
            ParamKind::Pointer | ParamKind::U64 => ".u64",
            ParamKind::U32 => ".u32",
            ParamKind::S32 => ".s32",
            ParamKind::F32 => ".f32",
            ParamKind::F64 => ".f64",
        }
    }

    /// Its size, which is also its alignment in the parameter buffer.
    pub const fn bytes(self) -> u32 {
        match self {
            ParamKind::Pointer | ParamKind::U64 | ParamKind::F64 => 8,
            ParamKind::U32 | ParamKind::S32 | ParamKind::F32 => 4,
        }
    }

    /// Its name in the launch contract.
    pub fn name(self) -> &'static str {
        match self {
            ParamKind::Pointer => "ptr",
            ParamKind::U64 => "u64",
            ParamKind::U32 => "u32",
            ParamKind::S32 => "s32",
            ParamKind::F32 => "f32",
            ParamKind::F64 => "f64",
        }
    }
}

/// A parameter of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
}

/// One region of text: the kernel's, or a loop body's.
#[derive(Default, Debug)]
struct Scope {
    /// What must stand before the region: the initial values of what its loop carries.
    before: Vec<String>,
    /// Values that depend on nothing inside the region.
    top: Vec<String>,
    /// The region's own instructions.
    body: Vec<String>,
    /// What a loop does at the end of each turn.
    advance: Vec<String>,
    memo: Memo,
    compared: HashMap<(Expr, Expr, &'static str), Reg>,
    carried: HashMap<(Expr, String), Reg>,
    /// A region without a loop: values of outer levels that are first asked for in it stay in it.
    region: bool,
}

/// An open loop.
#[derive(Debug)]
pub struct LoopHandle {
    /// The counter: `start`, `start + step`, …
    pub counter: Expr,
    start: i64,
    step: i64,
    name: String,
    register: Reg,
    label: String,
    level: Level,
}

/// A PTX kernel being written.
#[derive(Debug)]
pub struct Kernel {
    /// The index expressions of this kernel.
    pub pool: Pool,
    name: String,
    comments: Vec<String>,
    directives: Vec<String>,
    params: Vec<Param>,
    shared: Option<(Option<u64>, u32)>,
    scopes: Vec<Scope>,
    variables: HashMap<String, Operand>,
    next: HashMap<Class, u32>,
    labels: u32,
    compiled: BTreeSet<String>,
}

/// The sink that places instructions in the scope of their level.
struct Placer<'a> {
    scopes: &'a mut Vec<Scope>,
    floor: usize,
    next: &'a mut HashMap<Class, u32>,
    variables: &'a HashMap<String, Operand>,
}

fn fresh(next: &mut HashMap<Class, u32>, class: Class) -> Reg {
    let id = next.entry(class).or_insert(0);
    *id += 1;
    Reg { class, id: *id - 1 }
}

fn spell(v: Operand) -> String {
    match v {
        Operand::Imm(k) => k.to_string(),
        Operand::Reg(id, ty) => Reg {
            class: class_of(ty),
            id,
        }
        .to_string(),
    }
}

impl Sink for Placer<'_> {
    fn op(&mut self, level: Level, ty: Ty, op: Op, args: &[Operand]) -> Operand {
        let result = match op {
            Op::MulWide | Op::MadWide if ty.signed() => Ty::S64,
            Op::MulWide | Op::MadWide => Ty::U64,
            _ => ty,
        };
        let reg = fresh(self.next, class_of(result));
        let from = match args {
            [Operand::Reg(_, from), ..] => *from,
            _ => ty,
        };
        let mnemonic = mnemonic(op, ty, from);
        let args = args
            .iter()
            .map(|&a| spell(a))
            .collect::<Vec<_>>()
            .join(", ");
        self.scopes[usize::from(level).max(self.floor)]
            .top
            .push(format!("{mnemonic} {reg}, {args};"));
        Operand::Reg(reg.id, result)
    }

    fn var(&mut self, name: &str, _: Ty) -> Operand {
        self.variables[name]
    }
}

impl Kernel {
    /// An empty kernel.
    pub fn new(name: &str) -> Self {
        Self {
            pool: Pool::new(),
            name: name.to_owned(),
            comments: Vec::new(),
            directives: Vec::new(),
            params: Vec::new(),
            shared: None,
            scopes: vec![Scope::default()],
            variables: HashMap::new(),
            next: HashMap::new(),
            labels: 0,
            compiled: BTreeSet::new(),
        }
    }

    /// A line of the comment above the kernel.
    pub fn describe(&mut self, line: impl Into<String>) {
        self.comments.push(line.into());
    }

    /// A performance directive such as `.maxntid 256, 1, 1`.
    pub fn directive(&mut self, text: impl Into<String>) {
        self.directives.push(text.into());
    }

    /// The parameters so far.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The registers that hold addresses made by the index compiler, by name: what a reader of the text may check.
    pub fn address_registers(&self) -> &BTreeSet<String> {
        &self.compiled
    }

    /// The kernel's name with its address registers: an entry of [`Emitted::address_registers`](crate::plan::Emitted).
    pub(crate) fn addresses(&self) -> (String, Vec<String>) {
        (self.name.clone(), self.compiled.iter().cloned().collect())
    }

    pub(super) fn record_address(&mut self, reg: Reg) {
        self.compiled.insert(reg.to_string());
    }

    /// A new register.
    pub fn reg(&mut self, class: Class) -> Reg {
        fresh(&mut self.next, class)
    }

    /// `n` new registers.
    pub fn regs(&mut self, class: Class, n: usize) -> Vec<Reg> {
        (0..n).map(|_| self.reg(class)).collect()
    }

    pub(super) fn bind(&mut self, name: &str, reg: Reg, ty: Ty) {
        self.variables
            .insert(name.to_owned(), Operand::Reg(reg.id, ty));
    }

    /// A special register such as `%tid.x`, as a variable in `0..=hi`.
    pub fn special(&mut self, register: &str, hi: i64) -> Expr {
        if !self.variables.contains_key(register) {
            let reg = self.reg(Class::B32);
            self.scopes[0]
                .top
                .push(format!("mov.u32 {reg}, {register};"));
            self.bind(register, reg, Ty::U32);
        }
        self.pool.var(register, 0, hi, 0)
    }

    /// An unsigned 32-bit parameter in `0..=hi`, as a variable.
    pub fn param_u32(&mut self, name: &str, hi: i64) -> Expr {
        let reg = self.param_reg(name, ParamKind::U32, Class::B32);
        self.bind(name, reg, Ty::U32);
        self.pool.var(name, 0, hi, 0)
    }

    /// A pointer parameter, as the variable of its address in the global state space.
    pub fn param_pointer(&mut self, name: &str) -> Expr {
        let generic = self.param_reg(name, ParamKind::Pointer, Class::B64);
        let reg = self.reg(Class::B64);
        self.scopes[0]
            .top
            .push(format!("cvta.to.global.u64 {reg}, {generic};"));
        self.bind(name, reg, Ty::U64);
        self.pool.var(name, 0, i64::MAX / 4, 0)
    }

    /// A parameter that takes no part in addresses, such as α.
    pub fn param_scalar(&mut self, name: &str, kind: ParamKind) -> Reg {
        let class = match kind {
            ParamKind::F32 => Class::F32,
            ParamKind::F64 => Class::F64,
            ParamKind::U32 | ParamKind::S32 => Class::B32,
            ParamKind::Pointer | ParamKind::U64 => Class::B64,
        };
        self.param_reg(name, kind, class)
    }

    fn param_reg(&mut self, name: &str, kind: ParamKind, class: Class) -> Reg {
        self.params.push(Param {
            name: name.to_owned(),
            kind,
        });
        let reg = self.reg(class);
        self.scopes[0]
            .top
            .push(format!("ld.param{} {reg}, [{name}];", kind.ptx()));
        reg
    }

    /// The kernel's static shared memory, as the variable of its base address (a multiple of `align`, in bytes).
    pub fn shared_memory(&mut self, bytes: u64, align: u32) -> Expr {
        self.shared = Some((Some(bytes), align));
        self.shared_base(align)
    }

    /// The kernel's dynamic shared memory, whose size the launch gives, as the variable of its base address.
    pub fn dynamic_shared_memory(&mut self, align: u32) -> Expr {
        self.shared = Some((None, align));
        self.shared_base(align)
    }

    fn shared_base(&mut self, align: u32) -> Expr {
        let reg = self.reg(Class::B32);
        self.scopes[0].top.push(format!("mov.u32 {reg}, smem;"));
        self.bind("smem", reg, Ty::U32);
        self.pool
            .var_aligned("smem", 232_448, align.trailing_zeros(), 0)
    }

    fn level(&self) -> Level {
        (self.scopes.len() - 1) as Level
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("the kernel's own scope is never closed")
    }

    /// The innermost open region: nothing is placed outside it any more.
    fn floor(&self) -> usize {
        self.scopes.iter().rposition(|s| s.region).unwrap_or(0)
    }

    /// The scope in which a value of `level` is placed now.
    fn home(&self, level: Level) -> usize {
        usize::from(level).max(self.floor())
    }

    fn placer(&mut self) -> Placer<'_> {
        let floor = self.floor();
        Placer {
            scopes: &mut self.scopes,
            floor,
            next: &mut self.next,
            variables: &self.variables,
        }
    }

    fn emit_expr(&mut self, e: Expr) -> Operand {
        let floor = self.floor();
        if let Some(&v) = self.scopes.iter().rev().find_map(|s| s.memo.get(&e)) {
            return v;
        }
        // Each scope remembers what was computed in it or around it.
        let mut memo = Memo::new();
        for scope in &self.scopes {
            memo.extend(scope.memo.iter().map(|(&e, &v)| (e, v)));
        }
        let before: Vec<Expr> = memo.keys().copied().collect();
        let mut placer = Placer {
            scopes: &mut self.scopes,
            floor,
            next: &mut self.next,
            variables: &self.variables,
        };
        let v = emit(&mut self.pool, e, &mut memo, &mut placer);
        for e in before {
            memo.remove(&e);
        }
        for (e, v) in memo {
            let at = usize::from(self.pool.facts(e).level).max(floor);
            self.scopes[at].memo.insert(e, v);
        }
        v
    }

    /// Opens a region in the text: from here on, new values are computed at its top and not at the kernel's entry, so that
    /// what only the end of a kernel needs does not occupy registers through its main loop.
    pub fn open_region(&mut self) {
        self.scopes.push(Scope {
            region: true,
            ..Scope::default()
        });
    }

    /// Closes the innermost region.
    ///
    /// # Panics
    ///
    /// Without an open region: a mistake of the emitter, not of its input.
    pub fn close_region(&mut self) {
        let inner = self.scopes.pop().expect("a region is open");
        let outer = &mut self.scope().body;
        outer.extend(inner.before);
        outer.extend(inner.top);
        outer.extend(inner.body);
    }

    /// The register that holds `e`, computed as far out as its variables allow.
    pub fn value(&mut self, e: Expr) -> Reg {
        let level = self.home(self.pool.facts(e).level);
        match self.emit_expr(e) {
            Operand::Reg(id, ty) => Reg {
                class: class_of(ty),
                id,
            },
            Operand::Imm(k) => {
                let class = class_of(type_of(&self.pool, e));
                let reg = self.reg(class);
                let suffix = if class == Class::B64 { "u64" } else { "u32" };
                self.scopes[level]
                    .top
                    .push(format!("mov.{suffix} {reg}, {k};"));
                reg
            }
        }
    }

    /// `e` as a register or an immediate.
    pub fn operand(&mut self, e: Expr) -> String {
        spell(self.emit_expr(e))
    }

    /// The predicate `a < b`, `a >= b`, … (`comparison` as PTX names it), computed as far out as possible.
    pub fn compare(&mut self, comparison: &'static str, a: Expr, b: Expr) -> Reg {
        let level = self.home(self.pool.facts(a).level.max(self.pool.facts(b).level));
        if let Some(&p) = self.scopes[..=level]
            .iter()
            .find_map(|s| s.compared.get(&(a, b, comparison)))
        {
            return p;
        }
        let (ta, tb) = (type_of(&self.pool, a), type_of(&self.pool, b));
        let wide = ta.wide() || tb.wide();
        let signed = ta.signed() || tb.signed();
        let (mut x, mut y) = (self.emit_expr(a), self.emit_expr(b));
        for v in [&mut x, &mut y] {
            if let Operand::Reg(_, from) = *v
                && wide
                && !from.wide()
            {
                let ty = if signed { Ty::S64 } else { Ty::U64 };
                *v = self.placer().op(level as Level, ty, Op::Widen, &[*v]);
            }
        }
        let p = self.reg(Class::Pred);
        let ty = match (signed, wide) {
            (false, false) => "u32",
            (true, false) => "s32",
            (false, true) => "u64",
            (true, true) => "s64",
        };
        self.scopes[level].top.push(format!(
            "setp.{comparison}.{ty} {p}, {}, {};",
            spell(x),
            spell(y)
        ));
        self.scopes[level].compared.insert((a, b, comparison), p);
        p
    }

    /// The predicate `a <comparison> literal` of a floating-point register, at the kernel's entry.
    pub fn compare_float(&mut self, comparison: &str, a: Reg, literal: &str) -> Reg {
        let p = self.reg(Class::Pred);
        let ty = if a.class == Class::F64 { "f64" } else { "f32" };
        let home = self.home(0);
        self.scopes[home]
            .top
            .push(format!("setp.{comparison}.{ty} {p}, {a}, {literal};"));
        p
    }

    /// The predicate `a <comparison> k` of a 32-bit integer register, at the kernel's entry.
    pub fn compare_register(&mut self, comparison: &str, a: Reg, k: i64) -> Reg {
        let p = self.reg(Class::Pred);
        let home = self.home(0);
        self.scopes[home]
            .top
            .push(format!("setp.{comparison}.s32 {p}, {a}, {k};"));
        p
    }

    /// A predicate computed at `level` from two others: `op` is `and`, `or` or `xor`.
    pub fn combine(&mut self, op: &str, a: Reg, b: Reg, level: Level) -> Reg {
        let p = self.reg(Class::Pred);
        let home = self.home(level);
        self.scopes[home]
            .top
            .push(format!("{op}.pred {p}, {a}, {b};"));
        p
    }

    /// The variable that equals `a` where `p` holds and `b` elsewhere, at the kernel's entry.
    pub fn select(&mut self, name: &str, p: Reg, a: Expr, b: Expr) -> Expr {
        let (fa, fb) = (self.pool.facts(a), self.pool.facts(b));
        if a == b {
            return a;
        }
        if self.variables.contains_key(name) {
            return self.pool.var(name, 0, 0, 0);
        }
        let wide = type_of(&self.pool, a).wide() || type_of(&self.pool, b).wide();
        let (x, y) = (self.widened(a, wide), self.widened(b, wide));
        let reg = self.reg(if wide { Class::B64 } else { Class::B32 });
        let suffix = if wide { "b64" } else { "b32" };
        let home = self.home(0);
        self.scopes[home]
            .top
            .push(format!("selp.{suffix} {reg}, {x}, {y}, {p};"));
        let (lo, hi) = (
            fa.lo.min(fb.lo),
            i64::try_from(fa.hi.max(fb.hi)).unwrap_or(i64::MAX / 4),
        );
        let e = match i64::try_from(lo) {
            Ok(lo) if lo < 0 => self.pool.var(name, lo, hi, 0),
            _ => self
                .pool
                .var_aligned(name, hi, (fa.bits | fb.bits).trailing_zeros().min(32), 0),
        };
        self.bind(name, reg, type_of(&self.pool, e));
        e
    }

    fn widened(&mut self, e: Expr, wide: bool) -> String {
        let v = self.emit_expr(e);
        match v {
            Operand::Reg(_, from) if wide && !from.wide() => {
                spell(self.placer().op(0, Ty::U64, Op::Widen, &[v]))
            }
            _ => spell(v),
        }
    }

    /// The variable that equals `e`, which what is launched keeps in `0..=hi` where the expression alone does not show it.
    pub fn bounded(&mut self, name: &str, e: Expr, hi: i64) -> Expr {
        if self.variables.contains_key(name) {
            return self.pool.var(name, 0, hi, 0);
        }
        let reg = self.value(e);
        let wide = hi > i64::from(u32::MAX);
        let reg = if reg.class == Class::B64 && !wide {
            let narrow = self.reg(Class::B32);
            let home = self.home(0);
            self.scopes[home]
                .top
                .push(format!("cvt.u32.u64 {narrow}, {reg};"));
            narrow
        } else {
            reg
        };
        let ty = if reg.class == Class::B64 {
            Ty::U64
        } else {
            Ty::U32
        };
        self.bind(name, reg, ty);
        self.pool.var(name, 0, hi, 0)
    }

    /// The complete module text of this kernel alone.
    pub fn finish(self, version: &str, target: &str) -> String {
        module(vec![self], version, target)
    }

    /// The text of the entry, from its parameters to its last brace.
    fn entry(mut self) -> String {
        let scope = self.scopes.pop().unwrap_or_default();
        let mut out = String::new();
        let _ = writeln!(out, ".visible .entry {}(", self.name);
        let params: Vec<_> = self
            .params
            .iter()
            .map(|p| format!("    .param {} {}", p.kind.ptx(), p.name))
            .collect();
        let _ = writeln!(out, "{}\n)", params.join(",\n"));
        for d in &self.directives {
            let _ = writeln!(out, "{d}");
        }
        out.push_str("{\n");
        for class in Class::ALL {
            if let Some(n) = self.next.get(&class) {
                let _ = writeln!(
                    out,
                    "    .reg {} {}<{n}>;",
                    class.type_name(),
                    class.prefix()
                );
            }
        }
        if let Some((Some(bytes), align)) = self.shared {
            let _ = writeln!(out, "    .shared .align {align} .b8 smem[{bytes}];");
        }
        for line in scope.top.iter().chain(&scope.body) {
            let indent = if line.ends_with(':') { "" } else { "    " };
            let _ = writeln!(out, "{indent}{line}");
        }
        out.push_str("}\n");
        out
    }
}

/// The text of a module of several kernels for `target` (such as `sm_80`), at PTX version `version`.
pub fn module(kernels: Vec<Kernel>, version: &str, target: &str) -> String {
    let mut out = String::new();
    for line in kernels.iter().flat_map(|k| &k.comments) {
        let _ = writeln!(out, "// {line}");
    }
    let _ = write!(
        out,
        ".version {version}\n.target {target}\n.address_size 64\n"
    );
    let aligns = kernels.iter().filter_map(|k| match k.shared {
        Some((None, align)) => Some(align),
        _ => None,
    });
    if let Some(align) = aligns.max() {
        let _ = writeln!(out, "\n.extern .shared .align {align} .b8 smem[];");
    }
    for kernel in kernels {
        out.push('\n');
        out.push_str(&kernel.entry());
    }
    out
}
