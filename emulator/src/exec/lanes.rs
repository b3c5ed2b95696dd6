//! Instructions in which lanes exchange values (PTX ISA, sections 9.7.9.6 and 9.7.13.9 to 9.7.13.14).
//!
//! Each names its members by a mask, and lanes wait for the others ([`super::warp::Warp::wait_for_others`]). A member that lives and never comes is reported: on
//! hardware the instruction would wait for it for ever. Values of absent lanes are not specified; here they are whatever the register holds.

use super::alu::put;
use super::barrier::lane_list;
use super::compare::mask_of;
use super::mem::lanes_of;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{IntOp, NONE, Row, Shuffle, Vote};
use crate::report::FindingKind;

/// Lanes that execute an instruction together, because they give the same member mask.
struct Group {
    /// Lanes that execute it with this mask.
    lanes: u32,
    /// Those of them that the mask names.
    here: u32,
}

/// The group of the lowest lane of `left`, a subset of the `active` lanes; reports members that are not in it.
///
/// Lanes may give different masks as long as each mask names exactly the lanes that give it: `255 << (tid & 24)` makes four groups
/// of eight lanes, which exchange values among themselves.
fn group(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    mask: Row,
    left: u32,
    active: u32,
) -> Group {
    let row = &w.r32[mask as usize];
    let named = row[left.trailing_zeros() as usize & 31];
    let mut same = 0u32;
    for l in 0..32 {
        same |= u32::from(row[l] == named) << l;
    }
    let lanes = same & left;
    let missing = named & w.live & !active;
    let uninvited = lanes & !named;
    let differ = named & active & !same;
    if missing | uninvited | differ != 0 {
        let site = Site {
            pc,
            warp: w.index,
            lanes: missing | uninvited | differ,
            address: None,
        };
        env.report(cx, FindingKind::MemberMask, site, &|| {
            if missing != 0 {
                format!("the mask {named:#010x} names lanes {} which do not execute this with the others", lane_list(missing))
            } else if uninvited != 0 {
                format!("lanes {} execute this but are not in the mask {named:#010x}", lane_list(uninvited))
            } else {
                format!("the mask {named:#010x} names lanes {} which give another mask", lane_list(differ))
            }
        });
    }
    Group {
        lanes,
        here: named & lanes,
    }
}

fn set_pred(w: &mut Warp, p: Row, value: u32, active: u32) {
    if p != NONE {
        let old = &mut w.p[p as usize];
        *old = (*old & !active) | (value & active);
    }
}

fn set_row(w: &mut Warp, d: Row, value: &[u32; 32], active: u32) {
    if d != NONE {
        put(&mut w.r32[d as usize], value, active);
    }
}

/// `shfl.sync`.
#[inline(never)]
#[allow(clippy::too_many_arguments)] // the instruction has that many operands
pub(crate) fn shfl(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    mode: Shuffle,
    rows: [Row; 6],
    active: u32,
) {
    let [d, p, a, b, c, mask] = rows;
    // The members that are here, of each lane's own group.
    let mut here = [0u32; 32];
    let mut left = active;
    while left != 0 {
        let g = group(cx, env, w, pc, mask, left, active);
        for l in 0..32 {
            here[l] = if g.lanes >> l & 1 == 1 {
                g.here
            } else {
                here[l]
            };
        }
        left &= !g.lanes;
    }
    let (from, valid) = shuffled(mode, &w.r32[b as usize], &w.r32[c as usize]);
    let (mut out, mut absent) = ([0u32; 32], 0u32);
    for (lane, &j) in from.iter().enumerate() {
        out[lane] = w.r32[a as usize][j];
        absent |= u32::from(active >> lane & 1 == 1 && here[lane] >> j & 1 == 0) << lane;
    }
    if absent != 0 {
        let site = Site {
            pc,
            warp: w.index,
            lanes: absent,
            address: None,
        };
        env.report(cx, FindingKind::MemberMask, site, &|| {
            format!(
                "lanes {} read from lanes that are not here",
                lane_list(absent)
            )
        });
    }
    set_row(w, d, &out, active);
    set_pred(w, p, valid, active);
}

/// The lane from which `shfl` with operands `b` and `c` gives each lane its value, and the lanes for which it is in range.
pub(super) fn shuffled(mode: Shuffle, b: &[u32; 32], c: &[u32; 32]) -> ([usize; 32], u32) {
    let (mut from, mut valid) = ([0; 32], 0u32);
    for lane in 0..32u32 {
        let (bval, cval, segmask) = (
            b[lane as usize] & 31,
            c[lane as usize] & 31,
            c[lane as usize] >> 8 & 31,
        );
        let max_lane = (lane & segmask) | (cval & !segmask);
        let min_lane = lane & segmask;
        let (j, ok) = match mode {
            Shuffle::Up => (
                lane as i32 - bval as i32,
                lane as i32 - bval as i32 >= max_lane as i32,
            ),
            Shuffle::Down => ((lane + bval) as i32, lane + bval <= max_lane),
            Shuffle::Bfly => ((lane ^ bval) as i32, lane ^ bval <= max_lane),
            Shuffle::Idx => {
                let j = min_lane | (bval & !segmask);
                (j as i32, j <= max_lane)
            }
        };
        valid |= u32::from(ok) << lane;
        from[lane as usize] = if ok { j as u32 & 31 } else { lane } as usize;
    }
    (from, valid)
}

/// `vote.sync`.
#[inline(never)]
#[allow(clippy::too_many_arguments)] // the instruction has that many operands
pub(crate) fn vote(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    mode: Vote,
    rows: [Row; 3],
    negated: bool,
    active: u32,
) {
    let [d, a, mask] = rows;
    let source = w.p[a as usize] ^ if negated { u32::MAX } else { 0 };
    let mut left = active;
    while left != 0 {
        let Group { lanes, here } = group(cx, env, w, pc, mask, left, active);
        left &= !lanes;
        let p = source & here;
        let truth = match mode {
            Vote::All => p == here,
            Vote::Any => p != 0,
            Vote::Uni => p == 0 || p == here,
            Vote::Ballot => {
                set_row(w, d, &[p; 32], lanes);
                continue;
            }
        };
        set_pred(w, d, if truth { u32::MAX } else { 0 }, lanes);
    }
}

/// `redux.sync`.
#[inline(never)]
pub(crate) fn redux(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    f: IntOp,
    rows: [Row; 3],
    active: u32,
) {
    let [d, a, mask] = rows;
    let row = w.r32[a as usize];
    let combine = |here: u32| {
        lanes_of(here).map(|l| row[l]).reduce(|x, y| match f {
            IntOp::Add => x.wrapping_add(y),
            IntOp::MinU => x.min(y),
            IntOp::MaxU => x.max(y),
            IntOp::MinS => (x as i32).min(y as i32) as u32,
            IntOp::MaxS => (x as i32).max(y as i32) as u32,
            IntOp::And => x & y,
            IntOp::Or => x | y,
            _ => x ^ y,
        })
    };
    let mut left = active;
    while left != 0 {
        let Group { lanes, here } = group(cx, env, w, pc, mask, left, active);
        left &= !lanes;
        set_row(w, d, &[combine(here).unwrap_or(0); 32], lanes);
    }
}

/// `match.any.sync` and `match.all.sync`.
#[inline(never)]
#[allow(clippy::too_many_arguments)] // the instruction has that many operands
pub(crate) fn match_sync(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    all: bool,
    wide: bool,
    rows: [Row; 4],
    active: u32,
) {
    let [d, p, a, mask] = rows;
    let values: [u64; 32] = if wide {
        w.r64[a as usize]
    } else {
        w.r32[a as usize].map(u64::from)
    };
    let mut left = active;
    while left != 0 {
        let Group { lanes, here } = group(cx, env, w, pc, mask, left, active);
        left &= !lanes;
        let mut out = [0u32; 32];
        let mut rest = here;
        while rest != 0 {
            let value = values[rest.trailing_zeros() as usize];
            let equal = here & mask_of(|l| values[l] == value);
            put(&mut out, &[equal; 32], equal);
            rest &= !equal;
        }
        let same = lanes_of(here).all(|l| out[l] == here);
        if all {
            out = [if same { here } else { 0 }; 32];
        }
        set_row(w, d, &out, lanes);
        set_pred(w, p, if same { u32::MAX } else { 0 }, lanes);
    }
}

/// `elect.sync`: the lowest member of each mask is elected.
pub(crate) fn elect(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    rows: [Row; 3],
    active: u32,
) {
    let [d, p, mask] = rows;
    let mut left = active;
    while left != 0 {
        let Group { lanes, here } = group(cx, env, w, pc, mask, left, active);
        left &= !lanes;
        set_row(w, d, &[here.trailing_zeros(); 32], lanes);
        set_pred(w, p, here & here.wrapping_neg(), lanes);
    }
}

/// An `.aligned` instruction that the whole warp must execute. Reports if it does not.
pub(crate) fn whole_warp(cx: &Context<'_>, env: &mut Env, w: &Warp, pc: usize, active: u32) {
    if active == u32::MAX {
        return;
    }
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    let elsewhere = !active;
    env.report(cx, FindingKind::Divergent, site, &|| {
        format!(
            "executed by lanes {} only; it needs the whole warp, and lanes {} are elsewhere",
            lane_list(active),
            lane_list(elsewhere)
        )
    });
}
