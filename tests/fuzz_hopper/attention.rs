//! What attention has beyond products of scores: a stage of q that a role holds, products in turns and in flight, and numbers that the threads of a role exchange.

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Cmp, Kernel};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::{Fragment, View, ViewError};

use crate::mistakes::Mistake;
use crate::scores::{Consumer, Done, Exchange, Queries, Setting, Turn};

impl Setting<'_> {
    /// The use of the ring of q.
    fn use_of_q(&self, k: &mut Kernel, turn: Turn) -> Expr {
        let by = self.p.by(|m| match m {
            Mistake::HeldUse(by) => Some(*by),
            _ => None,
        });
        by.map_or(turn.number, |by| k.linear(&[(1, turn.number)], by))
    }

    /// Waits for q, tile `row` of it.
    pub(crate) fn hold(
        &self,
        k: &mut Kernel,
        (turn, row): (Turn, Expr),
        role: Consumer,
    ) -> Result<Queries, ViewError> {
        let part = if self.p.has(Mistake::HeldOther) {
            0
        } else {
            role.part
        };
        let (ring, at) = (&self.of_q[part as usize], self.use_of_q(k, turn));
        let [q] = k.arrived(ring, at, row)?;
        if self.p.has(Mistake::HeldBefore) {
            k.release(ring, turn.number)?;
        }
        Ok(Queries::Stage(q))
    }

    /// What an author does with q within the loop.
    pub(crate) fn in_step(
        &self,
        k: &mut Kernel,
        turn: Turn,
        sums: &Fragment,
        role: Consumer,
    ) -> Done {
        let p = self.p;
        if p.exchange == Exchange::EachStep {
            k.wait_wgmma(0);
            self.exchange(k, sums, role)?;
        }
        let Some(ring) = self.of_q.get(role.part as usize) else {
            return Ok(());
        };
        if p.has(Mistake::HeldAgain) {
            k.arrived(ring, turn.number, turn.number)?;
        }
        if p.has(Mistake::HeldInLoop) {
            k.wait_wgmma(0);
            k.release(ring, turn.number)?;
        }
        Ok(())
    }

    /// Releases q, behind the loop.
    pub(crate) fn give_back(
        &self,
        k: &mut Kernel,
        turn: Turn,
        (q, sums): (&Queries, &Fragment),
        role: Consumer,
    ) -> Done {
        let (Some(ring), p) = (self.of_q.get(role.part as usize), self.p) else {
            return Ok(());
        };
        let kept = [Mistake::HeldKept, Mistake::HeldBefore, Mistake::HeldInLoop];
        if !kept.iter().any(|m| p.has(*m)) {
            k.release(ring, turn.number)?;
        }
        if let (Queries::Stage(q), true) = (q, p.has(Mistake::HeldStale)) {
            // Rows of q as the second factor: of the widths that fit.
            k.gemm(&self.mma[1], q, q, sums)?;
            k.wait_wgmma(0);
        }
        Ok(())
    }

    pub(crate) fn scores(
        &self,
        k: &mut Kernel,
        q: &Queries,
        keys: &View,
        scores: &Fragment,
    ) -> Done {
        match q {
            Queries::Registers(q) => k.gemm(&self.mma[0], &**q, keys, scores),
            Queries::Stage(q) => k.gemm(&self.mma[0], q, keys, scores),
        }
    }

    /// Issues products, in the role's turn if there are turns.
    pub(crate) fn in_turn(
        &self,
        k: &mut Kernel,
        role: Consumer,
        mut body: impl FnMut(&mut Kernel) -> Done,
    ) -> Done {
        let (p, Some(order)) = (self.p, &self.order) else {
            return body(k);
        };
        let first = role.part == 0;
        if p.has(Mistake::OrderNone) && first {
            return body(k);
        }
        let number = if p.has(Mistake::OrderOther) {
            0
        } else {
            role.part as u32
        };
        if p.has(Mistake::OrderTwice) && first {
            k.in_order(order, number, |_| Done::Ok(()))?;
        }
        k.in_order(order, number, body)
    }

    /// The loop over keys with the scores of the next step issued ahead of the sums of this one.
    pub(crate) fn steps_ahead(
        &self,
        k: &mut Kernel,
        (turn, [before, steps]): (Turn, [Expr; 2]),
        (q, sums): (&Queries, &Fragment),
        role: Consumer,
    ) -> Done {
        let (p, zero, thread) = (self.p, k.constant(0), role.thread);
        let [first, second] = &self.mma;
        let [of_keys, of_values] = &self.rings;
        let element = p.form.element();
        let shape = [p.rows(), p.keys];
        let more = p.by(|m| match m {
            Mistake::InFlight(more) => Some(*more),
            _ => None,
        });
        let more = more.unwrap_or(0);

        let scores = k.accumulators(first, shape, thread)?;
        let [tile] = k.arrived(of_keys, before, zero)?;
        self.in_turn(k, role, |k| self.scores(k, q, &tile, &scores))?;
        k.wait_wgmma(0);
        k.release(of_keys, before)?;
        let weights = k.convert_fragment(&scores, element)?;
        k.for_loop("keys", 0, 1, steps, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            let [here, then] = [step, next].map(|step| k.add(before, step));
            let scores = k.accumulators(first, shape, thread)?;
            let [tile] = k.arrived(of_keys, then, next)?;
            let in_turn = p.has(Mistake::OrderStage);
            let mut values = None;
            if !in_turn {
                values = Some(k.arrived(of_values, here, step)?);
            }
            self.in_turn(k, role, |k| {
                self.scores(k, q, &tile, &scores)?;
                let [values] = match &values {
                    Some(values) => values.clone(),
                    None => k.arrived(of_values, here, step)?,
                };
                k.gemm(second, &weights, &values.transposed(), sums)
            })?;
            if p.has(Mistake::KeysEarly) {
                k.release(of_keys, then)?;
            }
            k.wait_wgmma(1 + more);
            if !p.has(Mistake::KeysEarly) {
                k.release(of_keys, then)?;
            }
            if p.has(Mistake::ValuesEarly) {
                k.release(of_values, here)?;
            }
            let new = k.convert_fragment(&scores, element)?;
            if p.has(Mistake::FactorEarly) {
                weights.assign(k, &new)?;
            }
            if !p.has(Mistake::NoWait) {
                k.wait_wgmma(0);
            }
            if p.has(Mistake::ReadSums) {
                sums.update(k, |k, x| x.add(k, 1.0))?;
            }
            if !p.has(Mistake::ValuesEarly) && !p.has(Mistake::Keep) {
                k.release(of_values, here)?;
            }
            if !p.has(Mistake::FactorEarly) {
                weights.assign(k, &new)?;
            }
            self.in_step(k, turn, sums, role)
        })?;
        let last = k.add(before, steps);
        let [values] = k.arrived(of_values, last, steps)?;
        k.gemm(second, &weights, &values.transposed(), sums)?;
        k.wait_wgmma(0);
        k.release(of_values, last)
    }

    /// Adds 1 to the sums, the number that another thread of the role has written.
    pub(crate) fn exchange(&self, k: &mut Kernel, sums: &Fragment, role: Consumer) -> Done {
        let (p, thread) = (self.p, role.thread);
        let which = if p.has(Mistake::MeetShared) {
            0
        } else {
            role.part
        };
        let own = &self.own[which as usize];
        let last = 128 * p.groups - 1;
        let meet = |k: &mut Kernel| {
            if p.has(Mistake::MeetWarp) {
                k.warp_barrier();
            } else if p.has(Mistake::MeetHalf) && role.part == 0 {
                let half = k.constant(64);
                let some = Predicate::of(k, thread, Cmp::Lt, half);
                k.when(some, |k| {
                    k.barrier();
                    Done::Ok(())
                })?;
            } else {
                k.barrier();
            }
            Done::Ok(())
        };
        own.store(k, &[thread], F32::from(1.0))?;
        if !p.has(Mistake::NoMeet) {
            meet(k)?;
        }
        let other = k.linear(&[(-1, thread)], last);
        let other = k.bounded(other, last);
        let number = own.load::<f32>(k, &[other])?;
        sums.update(k, |k, x| x.add(k, number))?;
        if !p.has(Mistake::NoMeetAgain) {
            meet(k)?;
        }
        Ok(())
    }
}
