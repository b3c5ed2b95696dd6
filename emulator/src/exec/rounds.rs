//! Loops without end: a warp that is back where it was, with the same registers, while no memory has changed.
//!
//! Looked for only in warps that have executed [`EARLIEST`] instructions or are to be watched, at the end of each of their turns: a digest of the registers and
//! places of the lanes is compared with one taken earlier (Brent's method: the older digest is replaced after twice as many turns each time). A change that
//! others could see counts as an effect and starts anew; calls and local memory are part of the digest. When every warp of a cluster that can run goes round and
//! nothing has an effect, only other clusters could let them go, and if they have not looked at global memory, nobody. [`super::residents`] knows the others.
//!
//! Example: `L: ld.volatile.u32 r, [flag]; setp.eq.u32 p, r, 0; @p bra L;` with a flag that nobody sets is found within milliseconds.

use super::warp::{NOWHERE, State, Warp};
use super::{Context, Env, Site};
use crate::ir::Op;
use crate::report::FindingKind;

/// Instructions of a warp before which nobody looks.
const EARLIEST: u64 = 1 << 20;

/// What a warp was at some time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mark {
    digest: u64,
    effects: u64,
    polls: u64,
    /// Accesses of global memory.
    touches: u64,
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
    // What calls have put aside, and local memory.
    let calls = w.nodes.iter().zip(&w.active);
    for (node, call) in calls.filter(|(n, _)| n.total != 0 && n.call != NOWHERE) {
        add(u64::from(node.call));
        call.digest(&mut add);
    }
    if w.local.bytes() > 0 {
        w.frames.iter().for_each(|x| add(u64::from(*x)));
        for row in w.local.rows.iter().take(w.local.bytes() as usize / 4) {
            for x in row {
                add(u64::from(*x));
            }
        }
    }
    sum
}

/// Looks at a warp after its turn.
pub(super) fn look(env: &Env, w: &mut Warp, watched: bool) {
    if w.steps < EARLIEST && !watched {
        return;
    }
    // Lanes that may yet be let go would end the loop.
    let is_open = w.polls != w.mark.polls && w.keeps_lanes();
    let (now, mark) = (digest(w), &mut w.mark);
    mark.turns += 1;
    let same = env.effects == mark.effects;
    if same && now == mark.digest && !is_open {
        (mark.round, mark.period, mark.turns) = (true, mark.turns, 0);
        return;
    }
    // Turns end anywhere in the loop: the mark comes again after some of them.
    mark.round &= same && mark.turns < mark.period;
    if !mark.round && (!same || mark.turns >= mark.span) {
        *mark = Mark {
            digest: now,
            effects: env.effects,
            polls: w.polls,
            touches: env.touches,
            turns: 0,
            span: (if same { 2 * mark.span } else { mark.span }).clamp(1, 1 << 20),
            period: 0,
            round: false,
        };
    }
}

/// If all of `warps` that can run go round: the first of them, and whether other clusters may let them go.
pub(super) fn all<'a>(env: &Env, warps: &'a [Warp]) -> Option<(&'a Warp, bool)> {
    let going = || warps.iter().filter(|w| w.live != 0 && w.is_runnable());
    let round = |w: &Warp| w.mark.round && w.mark.effects == env.effects;
    let first = going().next().filter(|_| going().all(round))?;
    Some((first, going().any(|w| w.mark.touches != env.touches)))
}

/// Reports that `w` goes round `forever`, or that there have been too many steps; the run is given up.
pub(super) fn report(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    forever: bool,
    message: &dyn Fn() -> String,
) {
    let running = w.splits.iter().filter(|s| s.state == State::Running);
    let site = Site {
        pc: w.current_pc(),
        warp: w.index,
        lanes: if forever {
            running.fold(0, |m, s| m | s.mask)
        } else {
            w.live
        },
        address: None,
    };
    let kind = if forever {
        FindingKind::EndlessLoop
    } else {
        FindingKind::StepLimit
    };
    env.report(cx, kind, site, message);
    (env.full, env.abort) = (true, true);
}
