//! What all shared-memory accesses have in common: offsets, bounds, wavefronts, and the message of a conflict.
//!
//! The common case, all lanes inside, is found by one pass over the offsets; only if something is wrong are the culprits sought and
//! left out.

use super::mem::{addresses, lanes_of};
use super::traffic;
use super::undefined::described;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::banks::SharedAccess;
use crate::ir::{Address, Op, Reg};
use crate::proxies::WARPGROUPS;
use crate::report::FindingKind;
use crate::shared::Who;
use crate::shared_conflicts::Conflict;
use crate::types::File;
use crate::windows::{WINDOW, shared_start};

/// Offsets in the block's shared memory, whose byte 0 has address `start`, of all lanes; beyond the window it is `u32::MAX`, in inactive lanes 0.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(crate) fn shared_offsets(w: &Warp, a: Address, active: u32, start: u64) -> [u32; 32] {
    let (window, first) = (start & !(WINDOW - 1), start as u32);
    let mut out = [0u32; 32];
    match a.base {
        // 32-bit registers are the common case: stay in 32 bits.
        Some(Reg {
            file: File::R32,
            row,
        }) if window == 0 && i32::try_from(a.offset).is_ok() => {
            let r = &w.r32[row as usize];
            let add = (a.offset as u32).wrapping_sub(first);
            for l in 0..32 {
                let on = if (active >> l) & 1 != 0 { u32::MAX } else { 0 };
                out[l] = r[l].wrapping_add(add) & on;
            }
        }
        _ => {
            let row = addresses(w, a);
            let mut beyond = 0;
            for l in 0..32 {
                let x = row[l].wrapping_sub(window);
                let on = if (active >> l) & 1 != 0 { u32::MAX } else { 0 };
                out[l] = (x as u32).wrapping_sub(first) & on;
                beyond |= (x >> 32) as u32 & on;
            }
            if beyond != 0 {
                for l in lanes_of(active).filter(|l| row[*l].wrapping_sub(window) >> 32 != 0) {
                    out[l] = u32::MAX;
                }
            }
        }
    }
    out
}

/// Checks offsets into shared memory: reports lanes out of bounds or misaligned, and returns the lanes that may go on.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(crate) fn check_shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &[u32; 32],
    bytes: u32,
    active: u32,
) -> u32 {
    // Eight at a time, as they lie in vector registers.
    let (mut worst, mut low) = ([0u32; 8], [0u32; 8]);
    for eight in at.as_chunks::<8>().0 {
        for i in 0..8 {
            worst[i] = worst[i].max(eight[i]);
            low[i] |= eight[i];
        }
    }
    let worst = worst.into_iter().fold(0, u32::max);
    let low = low.into_iter().fold(0, |all, a| all | a);
    let fits = env
        .shared
        .size
        .checked_sub(bytes)
        .is_some_and(|limit| worst <= limit);
    if fits && low & (bytes - 1) == 0 {
        return active;
    }
    sort_out_shared(cx, env, w, pc, at, bytes, active)
}

#[cold]
#[inline(never)]
pub(super) fn sort_out_shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &[u32; 32],
    bytes: u32,
    active: u32,
) -> u32 {
    let (size, start) = (env.shared.size, env.start());
    let bad = |test: &dyn Fn(u32) -> bool| {
        lanes_of(active)
            .filter(|&l| test(at[l]))
            .fold(0u32, |m, l| m | 1 << l)
    };
    let outside = bad(&|a| u64::from(a) + u64::from(bytes) > u64::from(size));
    let crooked = bad(&|a| a & (bytes - 1) != 0) & !outside;
    if outside != 0 {
        let lane = outside.trailing_zeros();
        let a = u64::from(at[lane as usize].wrapping_add(start));
        let site = Site {
            pc,
            warp: w.index,
            lanes: outside,
            address: Some(a),
        };
        let place = env.describe(Space::Shared, a);
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("lane {lane} accesses {bytes} bytes at {place}")
        });
    }
    if crooked != 0 {
        let lane = crooked.trailing_zeros();
        let a = u64::from(at[lane as usize].wrapping_add(start));
        let site = Site {
            pc,
            warp: w.index,
            lanes: crooked,
            address: Some(a),
        };
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!("lane {lane} accesses {bytes} bytes at shared address {a:#x}, not a multiple of {bytes}")
        });
    }
    active & !outside & !crooked
}

/// Counts the wavefronts of a shared access.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(crate) fn count_wavefronts(
    env: &mut Env,
    pc: usize,
    kind: SharedAccess,
    at: &[u32; 32],
    active: u32,
) {
    let Some(pattern) = env.patterns.get_mut(pc) else {
        return;
    };
    let n = pattern.count(kind, at, active);
    let bytes = match kind {
        SharedAccess::Load { bytes } | SharedAccess::Store { bytes } => bytes * active.count_ones(),
        SharedAccess::Matrix { matrices } => 128 * matrices,
    };
    traffic::count(env, pc, |t| t.shared_bytes += u64::from(bytes));
    let count = &mut env.counts[pc];
    count.wavefronts += u64::from(n.taken);
    count.ideal += u64::from(n.ideal);
    count.max = count.max.max(n.taken);
    count.min = if count.min == 0 || (n.taken != 0 && n.taken < count.min) {
        n.taken
    } else {
        count.min
    };
}

/// Reports a conflict found by the shadow at byte `offset` of the shared memory of block `rank`.
#[cold]
#[inline(never)]
pub(crate) fn report_conflict(
    cx: &Context<'_>,
    env: &mut Env,
    who: Who,
    (rank, offset): (usize, u32),
    conflict: Conflict,
    store: bool,
) {
    let address = u64::from(shared_start(rank) + offset);
    let site = Site {
        pc: who.pc(),
        warp: who.warp() & 31,
        lanes: 1 << who.lane(),
        address: Some(address),
    };
    let byte = env.byte(rank, offset);
    let verb = if store { "writes" } else { "reads" };
    let (lane, meta) = (who.lane(), &cx.program.meta);
    let line = |w: Who| meta.get(w.pc()).map_or(0, |m| m.line);
    let reader = |actor: u32| {
        if (actor as usize) < WARPGROUPS {
            format!("warp {actor}")
        } else {
            format!("the wgmma of warpgroup {}", actor as usize - WARPGROUPS)
        }
    };
    let (kind, text) = match conflict {
        Conflict::Undefined => (
            FindingKind::UndefinedShared,
            format!("lane {lane} {verb} {byte}, which nothing has written"),
        ),
        Conflict::HoldsUndefined(from) => {
            let (kind, _, source) = described(cx, env, from);
            (
                kind,
                format!(
                    "lane {lane} {verb} {byte}, which holds an undefined value; it comes from {source}"
                ),
            )
        }
        Conflict::AfterWrite(o) if o.warp() as usize >= WARPGROUPS => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, filled by the copy that warp {} issued at line {}: the warp has not waited for it at its mbarrier",
                o.lane(),
                line(o)
            ),
        ),
        Conflict::AfterWrite(o) => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, written by warp {} lane {} at line {} with no barrier between",
                o.warp(),
                o.lane(),
                line(o)
            ),
        ),
        Conflict::AfterRead { warp, who: Some(o) } => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, read by {} at line {} with no barrier between",
                reader(warp),
                line(o)
            ),
        ),
        Conflict::AfterRead { warp, who: None } => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, read by {} with no barrier between",
                reader(warp)
            ),
        ),
        Conflict::InFlight(o) if o.warp() as usize >= WARPGROUPS => (
            FindingKind::ReadBeforeWait,
            format!(
                "lane {lane} {verb} {byte} while the copy that warp {} issued at line {} fills it: {}",
                o.lane(),
                line(o),
                match env.mbarriers.tracker(offset, who.warp()) {
                    None => "nothing has waited for it at its mbarrier".to_owned(),
                    Some((at, phase, last)) => format!(
                        "nothing has waited at its mbarrier (shared byte {at}) for phase {phase}, which it completes{}",
                        last.map_or(String::new(), |p| format!(
                            "; the last wait of this warp there was for phase {p}"
                        ))
                    ),
                }
            ),
        ),
        Conflict::InFlight(o) => (
            FindingKind::ReadBeforeWait,
            format!(
                "lane {lane} {verb} {byte} before cp.async.wait_group: the copy by warp {} lane {} at line {} is in flight",
                o.warp(),
                o.lane(),
                line(o)
            ),
        ),
        Conflict::NoBarrierAfterWait(o) => (
            FindingKind::MissingBarrierAfterWait,
            format!(
                "lane {lane} {verb} {byte}, copied by lane {} at line {}, with no barrier after its wait",
                o.lane(),
                line(o)
            ),
        ),
        Conflict::Elsewhere { other, wrote } => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, {} by warp {} of block {} of the cluster at line {} with nothing that orders the two",
                if wrote { "written" } else { "read" },
                other.who.warp(),
                other.rank,
                line(other.who)
            ),
        ),
        Conflict::AfterLane(o) | Conflict::AfterLaneRead(o) => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte}, {} by lane {} of the same warp at line {} with no bar.warp.sync between",
                if matches!(conflict, Conflict::AfterLane(_)) {
                    "written"
                } else {
                    "read"
                },
                o.lane(),
                line(o)
            ),
        ),
        Conflict::NoProxyFence(o) => (
            FindingKind::MissingProxyFence,
            format!(
                "it {verb} {byte} by the asynchronous proxy, written by warp {} lane {} at line {} by the generic proxy, with no fence.proxy.async between",
                o.warp(),
                o.lane(),
                line(o)
            ),
        ),
        Conflict::BeingRead(o) => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} {byte} while {} at line {} reads it: nothing has waited for its end",
                if o.warp() < WARPGROUPS as u32 {
                    format!("the bulk copy by warp {}", o.warp())
                } else {
                    format!("the wgmma of warpgroup {}", o.warp() - WARPGROUPS as u32)
                },
                line(o)
            ),
        ),
    };
    if is_allowed(cx, who.pc(), conflict) {
        env.note(cx, kind, site, &|| text.clone());
    } else {
        env.report(cx, kind, site, &|| text.clone());
    }
}

/// Whether hardware allows the conflict of the instruction `pc`, and programs in wide use have it: `wgmma` that reads what `cp.async` has brought, without a
/// fence between the proxies (kernels of Triton, and CUTLASS's main loops with `cp.async`).
pub(super) fn is_allowed(cx: &Context<'_>, pc: usize, conflict: Conflict) -> bool {
    let op = |pc: usize| cx.program.insts.get(pc).map(|i| &i.op);
    match conflict {
        Conflict::NoProxyFence(writer) => {
            matches!(op(pc), Some(Op::Wgmma(_))) && matches!(op(writer.pc()), Some(Op::CpAsync(_)))
        }
        _ => false,
    }
}
