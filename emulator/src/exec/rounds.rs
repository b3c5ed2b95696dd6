//! Loops without end: a warp that is back where it was, with the same registers, while no memory has changed.
//!
//! Looked for only in warps that have executed [`EARLIEST`] instructions, at the end of each of their turns: a digest of the registers and places of
//! the lanes is compared with one taken earlier (Brent's method: the older digest is replaced after twice as many turns each time). A change that
//! others could see counts as an effect and starts anew. When every warp of a cluster goes round and nothing has an effect, only other blocks could let them go; if all
//! clusters that run are in that state for [`PATIENCE`] instructions, they stay there for ever.
//!
//! Example: `L: ld.volatile.u32 r, [flag]; setp.eq.u32 p, r, 0; @p bra L;` with a flag that nobody sets is found within milliseconds.

use std::sync::atomic::Ordering::Relaxed;

use super::warp::{State, Warp};
use super::{Context, Env, Site};
use crate::ir::Op;
use crate::report::FindingKind;

/// Instructions of a warp before which nobody looks.
const EARLIEST: u64 = 1 << 20;
/// Instructions for which clusters go round before it is for ever: other blocks may be about to start.
const PATIENCE: u64 = 1 << 23;

/// What a warp was at some time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mark {
    digest: u64,
    effects: u64,
    /// Turns since the mark, and after how many of them it is replaced.
    turns: u32,
    span: u32,
    /// Turns after which the warp was at its mark again.
    period: u32,
    /// The warp has been at its mark again, and no effect since.
    pub(crate) round: bool,
}

/// Whether an instruction can change nothing but registers, or says itself what it changes (`atom`).
pub(super) fn is_silent(op: &Op) -> bool {
    !matches!(
        op,
        Op::St(_)
            | Op::StMatrix(_)
            | Op::Atoms(_)
            | Op::Texture(_)
            | Op::TensormapReplace(_)
            | Op::TensormapCopy { .. }
            | Op::WmmaMemory(_)
            | Op::Clock { .. }
            | Op::Exit
            | Op::Call(_)
            | Op::Ret
            | Op::Bar(_)
            | Op::CpAsync(_)
            | Op::CpCommit
            | Op::CpWait(_)
            | Op::CpWaitAll
            | Op::Mbarrier(_)
            | Op::ClusterArrive { .. }
            | Op::ClusterWait { .. }
            | Op::Bulk(_)
            | Op::Tensor(_)
            | Op::StoreAsync(_)
            | Op::BulkCommit
            | Op::BulkWait { .. }
            | Op::Wgmma(_)
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait(_)
    )
}

/// A number that differs, in all likelihood, if registers or places of the lanes differ.
fn digest(w: &Warp) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |x: u64| {
        sum = (sum ^ x)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    };
    for row in w.r32.iter() {
        for pair in row.chunks_exact(2) {
            add(u64::from(pair[0]) | (u64::from(pair[1]) << 32));
        }
    }
    w.r64.iter().flatten().for_each(|x| add(*x));
    w.p.iter().for_each(|x| add(u64::from(*x)));
    add(u64::from(w.carry) | (w.current as u64) << 32);
    for split in &w.splits {
        add(u64::from(split.pc) | u64::from(split.mask) << 32);
    }
    sum
}

/// Looks at a warp after its turn.
pub(super) fn look(env: &Env, w: &mut Warp) {
    if w.steps < EARLIEST {
        return;
    }
    let (now, mark) = (digest(w), &mut w.mark);
    mark.turns += 1;
    let same = env.effects == mark.effects;
    if same && now == mark.digest {
        (mark.round, mark.period, mark.turns) = (true, mark.turns, 0);
        return;
    }
    // Turns end anywhere in the loop: the mark comes again after some of them.
    mark.round &= same && mark.turns < mark.period;
    if !mark.round && (!same || mark.turns >= mark.span) {
        *mark = Mark {
            digest: now,
            effects: env.effects,
            turns: 0,
            span: (if same { 2 * mark.span } else { mark.span }).clamp(1, 1 << 20),
            period: 0,
            round: false,
        };
    }
}

/// How long a cluster has been going round.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Counted among the clusters that are idle.
    idle: bool,
    since: u64,
}

impl Rounds {
    /// Whether the cluster goes round for ever. `steps` are the instructions that it has executed.
    pub(super) fn forever(
        &mut self,
        cx: &Context<'_>,
        env: &mut Env,
        warps: &[Warp],
        steps: u64,
    ) -> bool {
        let mut going = warps.iter().filter(|w| w.live != 0 && w.is_runnable());
        let round = |w: &Warp| w.mark.round && w.mark.effects == env.effects;
        let idle = going.clone().next().is_some() && going.all(round);
        if idle != self.idle {
            self.set(cx, idle);
            self.since = steps;
        }
        if !idle || cx.idle.load(Relaxed) < cx.busy.load(Relaxed) {
            self.since = steps;
            return false;
        }
        if steps - self.since < PATIENCE && cx.clusters() > 1 {
            return false;
        }
        let Some(w) = warps.iter().find(|w| w.live != 0 && w.is_runnable()) else {
            return false;
        };
        let running = w.splits.iter().filter(|s| s.state == State::Running);
        let site = Site {
            pc: w.current_pc(),
            warp: w.index,
            lanes: running.fold(0, |m, s| m | s.mask),
            address: None,
        };
        env.report(cx, FindingKind::EndlessLoop, site, &|| {
            "the lanes come back here with the same registers, and nobody changes the memory that they read: the loop never ends".to_owned()
        });
        true
    }

    fn set(&mut self, cx: &Context<'_>, idle: bool) {
        self.idle = idle;
        if idle {
            cx.idle.fetch_add(1, Relaxed);
        } else {
            cx.idle.fetch_sub(1, Relaxed);
        }
    }

    /// The cluster has ended.
    pub(super) fn end(&mut self, cx: &Context<'_>) {
        if self.idle {
            self.set(cx, false);
        }
    }
}
