//! The kernel under construction: scopes, variables, loops and the finished text.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Display, Write as _};

use super::Address;
use super::address::Space;
use super::text::{Class, Pred, Reg, class_of, mnemonic, vector};
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

    fn bind(&mut self, name: &str, reg: Reg, ty: Ty) {
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

    /// The predicate `a <comparison> k`, `and` another if given, computed right here: for paths that are rarely taken, whose
    /// predicates must not occupy registers elsewhere.
    pub fn compare_here(
        &mut self,
        comparison: &'static str,
        a: Expr,
        k: i64,
        and: Option<Reg>,
    ) -> Reg {
        let ty = match type_of(&self.pool, a) {
            Ty::U32 => "u32",
            Ty::S32 => "s32",
            Ty::U64 => "u64",
            Ty::S64 => "s64",
        };
        let a = self.value(a);
        let p = self.reg(Class::Pred);
        let line = match and {
            None => format!("setp.{comparison}.{ty} {p}, {a}, {k};"),
            Some(q) => format!("setp.{comparison}.and.{ty} {p}, {a}, {k}, {q};"),
        };
        self.scope().body.push(line);
        p
    }

    /// The predicate `a and b`, right here.
    pub fn and_here(&mut self, a: Reg, b: Reg) -> Reg {
        let p = self.reg(Class::Pred);
        self.scope().body.push(format!("and.pred {p}, {a}, {b};"));
        p
    }

    /// Marks the instruction written last, so that it can be found in the finished text.
    pub fn tag(&mut self, name: &str) {
        if let Some(line) = self.scope().body.last_mut() {
            line.push_str(" // ");
            line.push_str(name);
        }
    }

    /// A register of `class` with a constant, at the kernel's entry: `text` is the literal.
    pub fn literal(&mut self, class: Class, text: &str) -> Reg {
        let reg = self.reg(class);
        let home = self.home(0);
        let ty = class.type_name();
        self.scopes[home]
            .top
            .push(format!("mov{ty} {reg}, {text};"));
        reg
    }

    /// An instruction that touches no memory.
    pub fn ins(&mut self, text: impl Display) {
        self.scope().body.push(format!("{text};"));
    }

    /// A guarded instruction that touches no memory.
    pub fn ins_if(&mut self, p: impl Into<Pred>, text: impl Display) {
        let p = p.into();
        self.scope().body.push(format!("{p} {text};"));
    }

    /// A comment line in the text.
    pub fn comment(&mut self, text: impl Display) {
        self.scope().body.push(format!("// {text}"));
    }

    /// Loads `regs` (1, 2 or 4 of one class) from `at`. `kind` is what stands between the space and the type, such as `.nc`.
    pub fn load(&mut self, guard: Option<Pred>, kind: &str, ty: &str, regs: &[Reg], at: Address) {
        let guard = guard.map_or(String::new(), |p| format!("{p} "));
        let v = if regs.len() == 1 {
            String::new()
        } else {
            format!(".v{}", regs.len())
        };
        self.scope().body.push(format!(
            "{guard}ld.{}{kind}{v}.{ty} {}, {at};",
            at.space().suffix(),
            vector(regs)
        ));
    }

    /// Stores `regs` (1, 2 or 4 of one class) to `at`.
    pub fn store(&mut self, guard: Option<Pred>, ty: &str, regs: &[Reg], at: Address) {
        let guard = guard.map_or(String::new(), |p| format!("{p} "));
        let v = if regs.len() == 1 {
            String::new()
        } else {
            format!(".v{}", regs.len())
        };
        self.scope().body.push(format!(
            "{guard}st.{}{v}.{ty} {at}, {};",
            at.space().suffix(),
            vector(regs)
        ));
    }

    /// An instruction with memory operands: `{0}`, `{1}`, … in `text` stand for them.
    pub fn memory_ins(&mut self, guard: Option<Pred>, text: &str, at: &[Address]) {
        let mut line = guard.map_or(String::new(), |p| format!("{p} "));
        line.push_str(text);
        for (i, a) in at.iter().enumerate() {
            line = line.replace(&format!("{{{i}}}"), &a.to_string());
        }
        line.push(';');
        self.scope().body.push(line);
    }

    /// A label that was not used before.
    pub fn label(&mut self, stem: &str) -> String {
        self.labels += 1;
        format!("{stem}_{}", self.labels)
    }

    /// Places a label here.
    pub fn place(&mut self, label: &str) {
        self.scope().body.push(format!("{label}:"));
    }

    /// Branches to `label` where `p` holds; all threads of a block agree if `uniform`.
    pub fn branch(&mut self, p: Option<Pred>, label: &str, uniform: bool) {
        let guard = p.map_or(String::new(), |p| format!("{p} "));
        let uni = if uniform { ".uni" } else { "" };
        self.scope().body.push(format!("{guard}bra{uni} {label};"));
    }

    /// Opens a loop that goes on where another ended: its counter starts with the other's last value.
    pub fn resume_loop(
        &mut self,
        name: &str,
        after: &LoopHandle,
        step: i64,
        limit_hi: i64,
    ) -> LoopHandle {
        let handle = self.open_loop(name, 0, step, limit_hi);
        self.scope().before = vec![format!("mov.u32 {}, {};", handle.register, after.register)];
        handle
    }

    /// Opens a loop whose counter takes the values `start`, `start + step`, … below the limit that [`Kernel::close_loop`] gets, which
    /// is at most `limit_hi`.
    pub fn open_loop(&mut self, name: &str, start: i64, step: i64, limit_hi: i64) -> LoopHandle {
        let register = self.reg(Class::B32);
        let label = self.label(name);
        self.scopes.push(Scope::default());
        let level = self.level();
        let align = start.trailing_zeros().min(step.trailing_zeros());
        let counter = self
            .pool
            .var_aligned(name, limit_hi.max(start), align, level);
        self.bind(name, register, Ty::U32);
        self.scope()
            .before
            .push(format!("mov.u32 {register}, {start};"));
        LoopHandle {
            counter,
            start,
            step,
            name: name.to_owned(),
            register,
            label,
            level,
        }
    }

    /// Closes a loop: counts, and turns back while the counter is below `limit`. A loop of no turns is jumped over, with
    /// everything it carries set to its initial value.
    ///
    /// # Panics
    ///
    /// Without an open loop: a mistake of the emitter, not of its input.
    pub fn close_loop(&mut self, handle: &LoopHandle, limit: Expr) {
        let limit = self.operand(limit);
        let (again, none) = (self.reg(Class::Pred), self.reg(Class::Pred));
        let end = format!("{}_end", handle.label);
        let inner = self.scopes.pop().expect("a loop's scope is open");
        let outer = &mut self.scope().body;
        outer.extend(inner.before);
        outer.push(format!("setp.ge.u32 {none}, {}, {limit};", handle.register));
        outer.push(format!("@{none} bra.uni {end};"));
        outer.push(format!("{}:", handle.label));
        outer.extend(inner.top);
        outer.extend(inner.body);
        outer.extend(inner.advance);
        outer.push(format!(
            "add.s32 {0}, {0}, {1};",
            handle.register, handle.step
        ));
        outer.push(format!(
            "setp.lt.u32 {again}, {}, {limit};",
            handle.register
        ));
        outer.push(format!("@{again} bra.uni {};", handle.label));
        outer.push(format!("{end}:"));
        self.variables.remove(&handle.name);
    }

    /// Closes a loop that runs at least once and turns back while `again`, computed in its body, holds.
    ///
    /// # Panics
    ///
    /// Without an open loop: a mistake of the emitter, not of its input.
    pub fn close_loop_while(&mut self, handle: &LoopHandle, again: Reg) {
        let inner = self.scopes.pop().expect("a loop's scope is open");
        let outer = &mut self.scope().body;
        outer.extend(inner.before);
        outer.push(format!("{}:", handle.label));
        outer.extend(inner.top);
        outer.extend(inner.body);
        outer.extend(inner.advance);
        outer.push(format!(
            "add.s32 {0}, {0}, {1};",
            handle.register, handle.step
        ));
        outer.push(format!("@{again} bra.uni {};", handle.label));
        self.variables.remove(&handle.name);
    }

    /// Closes a loop that is left by a branch from its body.
    ///
    /// # Panics
    ///
    /// Without an open loop: a mistake of the emitter, not of its input.
    pub fn close_endless_loop(&mut self, handle: &LoopHandle) {
        let inner = self.scopes.pop().expect("a loop's scope is open");
        let outer = &mut self.scope().body;
        outer.extend(inner.before);
        outer.push(format!("{}:", handle.label));
        outer.extend(inner.top);
        outer.extend(inner.body);
        outer.extend(inner.advance);
        outer.push(format!(
            "add.s32 {0}, {0}, {1};",
            handle.register, handle.step
        ));
        outer.push(format!("bra.uni {};", handle.label));
        self.variables.remove(&handle.name);
    }

    fn initial(&mut self, e: Expr, of: &LoopHandle) -> Reg {
        let start = self.emit_expr(e);
        let ty = type_of(&self.pool, e);
        let class = match start {
            Operand::Reg(_, ty) => class_of(ty),
            Operand::Imm(_) => class_of(ty),
        };
        let reg = self.reg(class);
        let suffix = if class == Class::B64 { "u64" } else { "u32" };
        self.scopes[usize::from(of.level)]
            .before
            .push(format!("mov.{suffix} {reg}, {};", spell(start)));
        reg
    }

    pub(super) fn address_register(&mut self, space: Space, e: Expr) -> Reg {
        let reg = self.value(e);
        match (space, reg.class) {
            (Space::Global, Class::B32) => {
                let level = self.home(self.pool.facts(e).level);
                let wide = self.reg(Class::B64);
                self.scopes[level]
                    .top
                    .push(format!("cvt.u64.u32 {wide}, {reg};"));
                wide
            }
            _ => reg,
        }
    }

    pub(super) fn induction_register(&mut self, space: Space, e: Expr, of: &LoopHandle) -> Reg {
        let start = self.pool.constant(of.start);
        let one = self.pool.constant(of.step);
        let next = self.pool.add(of.counter, one);
        let stepped = self.pool.substitute(e, &of.name, next);
        let step = self.pool.sub(stepped, e);
        if self.pool.facts(step).level >= of.level {
            // Not linear in the counter: computed anew in each turn.
            return self.address_register(space, e);
        }
        let key = (e, of.name.clone());
        if let Some(&reg) = self.scopes[usize::from(of.level)].carried.get(&key) {
            return reg;
        }
        let start = self.pool.substitute(e, &of.name, start);
        let reg = self.initial(start, of);
        self.scopes[usize::from(of.level)].carried.insert(key, reg);
        let wide = reg.class == Class::B64;
        // A wide pointer advances by a narrow stride in one instruction, and the step needs no register of its own.
        let (terms, k) = self.pool.terms(step);
        if let ([(c @ 1..=0x7fff_ffff, x)], 0, true) = (&terms[..], k, wide)
            && type_of(&self.pool, *x) == Ty::U32
        {
            let x = self.value(*x);
            self.scopes[usize::from(of.level)]
                .advance
                .push(format!("mad.wide.u32 {reg}, {x}, {c}, {reg};"));
            return reg;
        }
        let step = self.widened(step, wide);
        let suffix = if wide { "s64" } else { "s32" };
        self.scopes[usize::from(of.level)]
            .advance
            .push(format!("add.{suffix} {reg}, {reg}, {step};"));
        reg
    }

    /// A variable of the loop that is held by `reg` and has the range of `e`.
    pub(super) fn bind_level(&mut self, name: &str, reg: Reg, e: Expr, of: &LoopHandle) -> Expr {
        let (hi, ty) = (self.pool.facts(e).hi, type_of(&self.pool, e));
        self.bind(name, reg, ty);
        self.pool
            .var(name, 0, i64::try_from(hi).unwrap_or(i64::MAX / 2), of.level)
    }

    pub(super) fn alternating_register(
        &mut self,
        e: Expr,
        stage: &str,
        of: &LoopHandle,
    ) -> Option<Reg> {
        let (zero, one) = (self.pool.constant(0), self.pool.constant(1));
        let first = self.pool.substitute(e, stage, zero);
        let second = self.pool.substitute(e, stage, one);
        let difference = self.pool.xor(first, second);
        let difference = self.pool.as_const(difference)?;
        let key = (e, stage.to_owned());
        if let Some(&reg) = self.scopes[usize::from(of.level)].carried.get(&key) {
            return Some(reg);
        }
        let reg = self.initial(first, of);
        self.scopes[usize::from(of.level)].carried.insert(key, reg);
        let suffix = if reg.class == Class::B64 {
            "b64"
        } else {
            "b32"
        };
        self.scopes[usize::from(of.level)]
            .advance
            .push(format!("xor.{suffix} {reg}, {reg}, {difference};"));
        Some(reg)
    }

    /// The complete module text for `target` (such as `sm_80`), at PTX version `version`.
    pub fn finish(mut self, version: &str, target: &str) -> String {
        let scope = self.scopes.pop().unwrap_or_default();
        let mut out = String::new();
        for line in &self.comments {
            let _ = writeln!(out, "// {line}");
        }
        let _ = write!(
            out,
            ".version {version}\n.target {target}\n.address_size 64\n\n"
        );
        if let Some((None, align)) = self.shared {
            let _ = writeln!(out, ".extern .shared .align {align} .b8 smem[];\n");
        }
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
