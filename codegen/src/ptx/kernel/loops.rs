//! Loops, and what they carry from turn to turn: a counter, addresses that advance by one addition, buffers that alternate by one
//! exclusive or.
//!
//! The text of a loop is its scope: initial values before the label, what is computed in each turn, and at the end the
//! advances. `stage0 = base; L: … ; stage0 ^= 4096; k += 8; @p bra L`.

use super::{Kernel, LoopHandle, Scope, spell};
use crate::index::Expr;
use crate::index::code::{Operand, Ty, type_of};
use crate::ptx::Space;
use crate::ptx::text::{Class, Reg, class_of};

impl Kernel {
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

    pub(in crate::ptx) fn address_register(&mut self, space: Space, e: Expr) -> Reg {
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

    pub(in crate::ptx) fn induction_register(
        &mut self,
        space: Space,
        e: Expr,
        of: &LoopHandle,
    ) -> Reg {
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
    pub(in crate::ptx) fn bind_level(
        &mut self,
        name: &str,
        reg: Reg,
        e: Expr,
        of: &LoopHandle,
    ) -> Expr {
        let (hi, ty) = (self.pool.facts(e).hi, type_of(&self.pool, e));
        self.bind(name, reg, ty);
        self.pool
            .var(name, 0, i64::try_from(hi).unwrap_or(i64::MAX / 2), of.level)
    }

    pub(in crate::ptx) fn alternating_register(
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
}
