//! `atom` and `red` (PTX ISA, sections 9.7.13.5 and 9.7.13.6): lane after lane, in order.

use super::cluster;
use super::gmem::check_global;
use super::mem::{addresses, get_lane, lanes_of, set_lane};
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::traffic;
use super::warp::Warp;
use super::{Context, Env};
use crate::ast::Space;
use crate::banks::SharedAccess;
use crate::ir::{Atom, Atom128, AtomOp, FloatMode, FloatOp, NONE, Row};
use crate::shared::Who;
use crate::windows::{SHARED_WINDOW, WINDOW};

pub(super) fn combine(op: AtomOp, bytes: u32, old: u64, b: u64, c: u64) -> u64 {
    let signed = |x: u64| {
        if bytes == 4 {
            i64::from(x as u32 as i32)
        } else {
            x as i64
        }
    };
    let halves = |f: FloatOp, bf16: bool, x: u64, y: u64, packed: bool| {
        let part = |shift: u32| {
            let [x, y] = [x, y].map(|x| (x >> shift) as u32 & 0xffff);
            u64::from(super::fp::scalar16(f, bf16, FloatMode::PLAIN, x, y, 0)) << shift
        };
        part(0) | if packed { part(16) } else { 0 }
    };
    let half = |bf16, x, y, packed| halves(FloatOp::Add, bf16, x, y, packed);
    match op {
        AtomOp::MinF16 => halves(FloatOp::Min, false, old, b, false),
        AtomOp::MaxF16 => halves(FloatOp::Max, false, old, b, false),
        AtomOp::MinBf16 => halves(FloatOp::Min, true, old, b, false),
        AtomOp::MaxBf16 => halves(FloatOp::Max, true, old, b, false),
        AtomOp::AddF32Ftz => {
            let mode = FloatMode {
                ftz: true,
                ..FloatMode::PLAIN
            };
            let sum = super::fp::scalar32(FloatOp::Add, mode, old as u32, b as u32, 0);
            u64::from(sum)
        }
        AtomOp::Add => old.wrapping_add(b),
        AtomOp::MinU => old.min(b),
        AtomOp::MaxU => old.max(b),
        AtomOp::MinS => {
            if signed(old) <= signed(b) {
                old
            } else {
                b
            }
        }
        AtomOp::MaxS => {
            if signed(old) >= signed(b) {
                old
            } else {
                b
            }
        }
        AtomOp::And => old & b,
        AtomOp::Or => old | b,
        AtomOp::Xor => old ^ b,
        AtomOp::Exch => b,
        AtomOp::Cas => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomOp::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomOp::AddF32 => u64::from(super::fp::scalar32(
            FloatOp::Add,
            FloatMode::PLAIN,
            old as u32,
            b as u32,
            0,
        )),
        AtomOp::AddF64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        AtomOp::AddF16x2 => half(false, old, b, true),
        AtomOp::AddBf16x2 => half(true, old, b, true),
        AtomOp::AddF16 => half(false, old, b, false),
        AtomOp::AddBf16 => half(true, old, b, false),
    }
}

/// `atom` and `red`: lane after lane.
#[inline(never)]
pub(crate) fn atom(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    active: u32,
) {
    w.polls += 1;
    let bytes = u32::from(a.bytes);
    let at = addresses(w, a.address);
    let in_window = |l: usize| at[l].wrapping_sub(SHARED_WINDOW) < WINDOW;
    let to_shared = match a.space {
        Space::Shared | Space::Cluster => active,
        Space::Generic => lanes_of(active)
            .filter(|&l| in_window(l))
            .fold(0, |m, l| m | 1 << l),
        _ => 0,
    };
    let base = if a.space == Space::Generic {
        SHARED_WINDOW
    } else {
        0
    };
    let groups = match a.space {
        _ if to_shared == 0 => Vec::new(),
        Space::Shared => vec![(None, to_shared)],
        _ => cluster::by_rank(&at, to_shared, base),
    };
    let mask = if bytes == 8 {
        u64::MAX
    } else {
        (1 << (8 * bytes)) - 1
    };
    for (rank, lanes) in groups {
        match rank {
            None => shared(cx, env, w, pc, a, lanes, base),
            Some(r) if r == env.rank => {
                shared(cx, env, w, pc, a, lanes, cluster::window_of(r, base));
            }
            Some(r) => {
                let space = a.space;
                for l in lanes_of(lanes) {
                    let address = (l, at[l]);
                    let place = cluster::remote_place(cx, env, w, pc, address, bytes, r, space);
                    let Some(offset) = place else { continue };
                    cluster::observe(cx, env, w, pc, l, r, (offset, bytes), true, true);
                    let (b, c) = (get_lane(w, a.b, l) & mask, get_lane(w, a.c, l) & mask);
                    let old = env.within(r, |env| {
                        let old = env.shared.load(offset, bytes);
                        let new = combine(a.op, bytes, old, b, c) & mask;
                        env.shared.store(offset, bytes, new);
                        env.effects += u64::from(new != old);
                        old
                    });
                    set_lane(w, a.d, l, old, bytes, false);
                }
            }
        }
    }
    let rest = active & !to_shared;
    if rest == 0 {
        return;
    }
    let (lanes, _) = check_global(cx, env, w, pc, &at, bytes, rest);
    traffic::global(env, pc, &at, bytes, lanes);
    let guard = (bytes == 8).then(|| cx.atomic_lock.lock());
    let mut hint = env.hints[pc];
    for l in lanes_of(lanes) {
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let (b, c) = (get_lane(w, a.b, l) & mask, get_lane(w, a.c, l) & mask);
        let offset = at[l] - alloc.base;
        let old = alloc.update(offset, bytes, |old| combine(a.op, bytes, old, b, c) & mask);
        env.effects += u64::from(combine(a.op, bytes, old, b, c) & mask != old);
        if cx.undefined_global {
            alloc.mark_written(offset, bytes);
        }
        set_lane(w, a.d, l, old, bytes, false);
    }
    drop(guard);
}

/// `atom` of 128 bits, on global memory: lane after lane.
#[inline(never)]
pub(crate) fn atom128(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom128,
    active: u32,
) {
    w.polls += 1;
    let at = addresses(w, a.address);
    let (lanes, _) = check_global(cx, env, w, pc, &at, 16, active);
    traffic::global(env, pc, &at, 16, lanes);
    let guard = cx.atomic_lock.lock();
    let mut hint = env.hints[pc];
    for l in lanes_of(lanes) {
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let offset = at[l] - alloc.base;
        let get = |rows: [Row; 2]| rows.map(|row| w.r64[row as usize][l]);
        let old = [alloc.load(offset, 8), alloc.load(offset + 8, 8)];
        let new = get(a.value);
        if a.expected.is_none_or(|rows| get(rows) == old) {
            env.effects += u64::from(new != old);
            alloc.store(offset, 8, new[0]);
            alloc.store(offset + 8, 8, new[1]);
        }
        if cx.undefined_global {
            alloc.mark_written(offset, 16);
        }
        for (row, half) in a.d.iter().zip(old) {
            if *row != NONE {
                w.r64[*row as usize][l] = half;
            }
        }
    }
    drop(guard);
}

/// `atom` and `red` on the block's own shared memory, in the window that starts at `base`.
fn shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    active: u32,
    base: u64,
) {
    let bytes = u32::from(a.bytes);
    let mask = if bytes == 8 {
        u64::MAX
    } else {
        (1 << (8 * bytes)) - 1
    };
    let offsets = shared_offsets(w, a.address, active, base);
    let lanes = check_shared(cx, env, w, pc, &offsets, bytes, active);
    count_wavefronts(env, pc, SharedAccess::Store { bytes }, &offsets, lanes);
    let lane = lanes.trailing_zeros();
    let (first, who) = (
        offsets[lane as usize & 31],
        Who::new(pc, w.index, lane & 31),
    );
    let clear = match (&env.shadow, env.patterns.get(pc)) {
        (Some(shadow), Some(pattern)) if lanes != 0 => {
            shadow.may_write::<true>(first, pattern.runs(), who)
        }
        _ => false,
    };
    for l in lanes_of(lanes) {
        let who = Who::new(pc, w.index, l as u32).atomic();
        let mut conflict = None;
        if let (true, Some(shadow)) = (clear, &mut env.shadow) {
            shadow.set_writer(offsets[l], bytes, who);
        } else if let Some(shadow) = &mut env.shadow {
            let first = (offsets[l] >> shadow.grain) as usize;
            for u in first..first + (bytes >> shadow.grain).max(1) as usize {
                conflict = conflict
                    .or(shadow.read_strong(u, who))
                    .or(shadow.write(u, who));
            }
        }
        if let Some(c) = conflict {
            report_conflict(cx, env, who, offsets[l], c, true);
        }
        let old = env.shared.load(offsets[l], bytes);
        let new = combine(
            a.op,
            bytes,
            old,
            get_lane(w, a.b, l) & mask,
            get_lane(w, a.c, l) & mask,
        );
        env.effects += u64::from(new & mask != old);
        env.shared.store(offsets[l], bytes, new & mask);
        set_lane(w, a.d, l, old, bytes, false);
    }
}
