//! Loops, and what they carry from iteration to iteration: a counter, addresses that advance by one addition, buffers that alternate by one
//! exclusive or.
//!
//! A loop is its scope: initial values before it, what is computed in each iteration, and at the end of an iteration the advances.
//! `stage0 = base; loop { … ; stage0 ^= 4096; k += 8 }`.

use super::{Kernel, Scope};
use crate::index::code::{Op, Operand, Ty, type_of};
use crate::index::{Expr, Level};
use crate::ir::Space;
use crate::ir::inst::{Inst, class_of, source};
use crate::ir::node::{Counts, Loop, LoopEnd, Node};
use crate::ir::value::{Class, Reg, Src, Type};

/// An open loop.
#[derive(Debug)]
pub struct LoopHandle {
    /// The counter: `start`, `start + step`, …
    pub counter: Expr,
    from: Src,
    start: i64,
    step: i64,
    most: i64,
    name: String,
    stem: String,
    register: Reg,
    level: Level,
}

/// The deepest nest of loops and regions.
pub(super) const DEEPEST: Level = 64;

impl Kernel {
    /// A loop whose counter takes the values `start`, `start + step`, … below `limit`. It may have no iteration. Where `limit` is not the same for all threads of a
    /// block, as the length of a thread's own row, they go through it apart: no barrier, shuffle or asynchronous copy may stand in it.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::{S32, Variable};
    /// use layout_codegen::view::ViewError;
    ///
    /// // The sum of the numbers below n.
    /// let mut k = Kernel::new("example", 32);
    /// let n = k.size("n", 100);
    /// let sum = k.variable(S32::from(0));
    /// k.for_loop("i", 0, 1, n, |k, i| {
    ///     let i = S32::index(k, i);
    ///     let more = sum.get(k).add(k, i);
    ///     sum.set(k, more);
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// # Ok::<(), ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`. A counter that is negative, does not grow or would pass 2³² is a mistake that [`Kernel::build`] reports.
    #[track_caller]
    pub fn for_loop<E>(
        &mut self,
        name: &str,
        start: i64,
        step: i64,
        limit: Expr,
        body: impl FnOnce(&mut Self, Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let facts = self.pool.facts(limit);
        let last = facts.hi.max(start.into()).saturating_add(step.into());
        let name = self.checked_name("the loop", name);
        if start < 0 || step < 1 || facts.lo < 0 || last > u32::MAX.into() {
            self.mistake(format!(
                "the loop `{name}` from {start} by {step} below {} to {}: a counter begins at 0 or above, grows, and stays below 2^32 with its last step",
                facts.lo, facts.hi
            ));
            return Ok(());
        }
        if self.level() >= DEEPEST {
            self.mistake(format!(
                "the loop `{name}` is nested deeper than {DEEPEST} loops and branches: nest fewer"
            ));
            return Ok(());
        }
        let most = last as i64 - step;
        // The limit is computed before the loop, where its variables have the values that it is meant for.
        let iteration = self.open_loop(&name, start, step, most);
        self.counts_alike(&iteration, limit);
        let counter = iteration.counter;
        let (done, same) = self.around(|k| body(k, counter));
        if same {
            let uniform = self.agrees(limit);
            self.close_loop_below(&iteration, limit, uniform);
        }
        done
    }

    /// Where all threads of a block agree on a loop's limit, they agree on its counter.
    pub(crate) fn counts_alike(&mut self, iteration: &LoopHandle, limit: Expr) {
        if self.agrees(limit) {
            self.note_uniform(&iteration.name);
        }
    }

    /// Opens a loop that goes on where another ended: its counter starts with the other's last value.
    pub(crate) fn resume_loop(
        &mut self,
        name: &str,
        after: &LoopHandle,
        step: i64,
        limit_hi: i64,
    ) -> LoopHandle {
        LoopHandle {
            from: after.register.into(),
            ..self.open_loop(name, 0, step, limit_hi)
        }
    }

    /// Opens a loop whose counter takes the values `start`, `start + step`, … below the limit that [`Kernel::close_loop`] gets, which
    /// is at most `limit_hi`.
    pub(crate) fn open_loop(
        &mut self,
        stem: &str,
        start: i64,
        step: i64,
        limit_hi: i64,
    ) -> LoopHandle {
        let register = self.reg(Class::B32);
        let name = self.unique(stem);
        self.scopes.push(Scope::default());
        self.open.enter_loop();
        let level = self.level();
        let align = start.trailing_zeros().min(step.trailing_zeros());
        let counter = self
            .pool
            .var_aligned(&name, limit_hi.max(start), align, level);
        self.bind_in(level, &name, register, Ty::U32);
        LoopHandle {
            counter,
            from: start.into(),
            start,
            step,
            most: limit_hi.max(start),
            name,
            stem: stem.to_owned(),
            register,
            level,
        }
    }

    /// Closes a loop: counts, and repeats while the counter is below `limit`. A loop of no iterations is jumped over, with
    /// everything it carries set to its initial value.
    pub(crate) fn close_loop(&mut self, handle: &LoopHandle, limit: Expr) {
        self.close_loop_below(handle, limit, true);
    }

    fn close_loop_below(&mut self, handle: &LoopHandle, limit: Expr, uniform: bool) {
        let limit = self.operand(limit);
        let (again, none) = (self.reg(Class::Pred), self.reg(Class::Pred));
        self.end_loop(
            handle,
            LoopEnd::Below {
                limit,
                none,
                again,
                uniform,
            },
        );
    }

    /// Closes a loop that runs at least once and repeats while `again`, computed in its body, holds.
    pub(crate) fn close_loop_while(&mut self, handle: &LoopHandle, again: Reg) {
        self.end_loop(handle, LoopEnd::While { again });
    }

    /// Closes a loop that only [`Kernel::leave_loop`] leaves; the text calls the place behind it so.
    pub(crate) fn close_endless_loop(&mut self, handle: &LoopHandle, behind: &'static str) {
        self.end_loop(handle, LoopEnd::Left);
        if let Some(Node::Loop(l)) = self.scope().body.last_mut() {
            l.behind = Some(behind);
        }
    }

    fn end_loop(&mut self, handle: &LoopHandle, end: LoopEnd) {
        let inner = self.pop_scope();
        let mut body = inner.top;
        body.extend(inner.body);
        body.extend(inner.advance);
        let limit = match end {
            LoopEnd::Below { limit, .. } => Some(limit),
            _ => None,
        };
        let meant = Counts {
            start: handle.from,
            step: handle.step,
            limit,
        };
        self.scope().body.push(Node::Loop(Box::new(Loop {
            name: handle.stem.clone(),
            behind: None,
            counter: handle.register,
            start: handle.from,
            step: handle.step,
            most: handle.most,
            entry: inner.before,
            body,
            end,
            meant,
        })));
    }

    fn advance(&mut self, level: Level, op: Op, ty: Ty, to: Reg, args: &[Operand]) {
        let inst = Inst::Index {
            op,
            ty,
            from: ty,
            to,
            args: args.to_vec(),
        };
        self.scopes[usize::from(level)]
            .advance
            .push(Node::Inst(inst.into()));
    }

    fn initial(&mut self, e: Expr, of: &LoopHandle) -> Reg {
        let start = self.emit_expr(e);
        let ty = type_of(&self.pool, e);
        let class = match start {
            Operand::Reg(_, ty) => class_of(ty),
            Operand::Imm(_) => class_of(ty),
        };
        let reg = self.reg(class);
        let ty = if class == Class::B64 {
            Type::U64
        } else {
            Type::U32
        };
        let inst = Inst::Move {
            ty,
            to: reg,
            from: source(start),
        };
        self.scopes[usize::from(of.level)]
            .before
            .push(Node::Inst(inst.into()));
        reg
    }

    pub(in crate::ir) fn address_register(&mut self, space: Space, e: Expr) -> Reg {
        let reg = self.value(e);
        match (space, reg.class) {
            (Space::Global, Class::B32) => {
                let wide = self.reg(Class::B64);
                let inst = Inst::Convert {
                    to_ty: Type::U64,
                    from_ty: Type::U32,
                    to: wide,
                    from: reg,
                };
                let level = self.pool.facts(e).level;
                self.at_top(level, inst);
                wide
            }
            _ => reg,
        }
    }

    pub(in crate::ir) fn induction_register(
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
            // Not linear in the counter: computed anew in each iteration.
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
            let x = Operand::Reg(self.value(*x).id, Ty::U32);
            let args = [x, Operand::Imm(*c), Operand::Reg(reg.id, Ty::U64)];
            self.advance(of.level, Op::MadWide, Ty::U32, reg, &args);
            return reg;
        }
        let ty = if wide { Ty::S64 } else { Ty::S32 };
        let step = match self.widened(step, wide) {
            Src::Reg(r) => Operand::Reg(r.id, ty),
            Src::Int(k) => Operand::Imm(k),
            Src::F32(_) | Src::F64(_) => unreachable!("an index is an integer"),
        };
        self.advance(
            of.level,
            Op::Add,
            ty,
            reg,
            &[Operand::Reg(reg.id, ty), step],
        );
        reg
    }

    /// A variable of the loop that is held by `reg` and has the range of `e`.
    pub(in crate::ir) fn bind_level(
        &mut self,
        name: &str,
        reg: Reg,
        e: Expr,
        of: &LoopHandle,
    ) -> Expr {
        let (hi, ty) = (self.pool.facts(e).hi, type_of(&self.pool, e));
        self.bind_in(of.level, name, reg, ty);
        self.pool
            .var(name, 0, i64::try_from(hi).unwrap_or(i64::MAX / 2), of.level)
    }

    pub(in crate::ir) fn alternating_register(
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
        let ty = if reg.class == Class::B64 {
            Ty::U64
        } else {
            Ty::U32
        };
        let args = [Operand::Reg(reg.id, ty), Operand::Imm(difference)];
        self.advance(of.level, Op::Xor, ty, reg, &args);
        Some(reg)
    }
}
