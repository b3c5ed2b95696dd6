//! Instructions in which lanes exchange values (PTX ISA, sections 9.7.9.6 and 9.7.13.9 to 9.7.13.14).
//!
//! Each names its members by a mask. A member that lives but is not here is reported: on hardware the instruction would wait for it,
//! perhaps for ever. Values of absent lanes are not specified; here they are whatever the register holds.

use super::alu::put;
use super::barrier::lane_list;
use super::mem::lanes_of;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{IntOp, NONE, Row, Shuffle, Vote};
use crate::report::FindingKind;

/// The members of the instruction that are here; reports those that are not.
fn members(cx: &Context<'_>, env: &mut Env, w: &Warp, pc: usize, mask: Row, active: u32) -> u32 {
    let lane = active.trailing_zeros() as usize & 31;
    let row = &w.r32[mask as usize];
    let named = row[lane];
    let missing = named & w.live & !active;
    let uninvited = active & !named;
    let differ = lanes_of(active)
        .filter(|&l| row[l] != named)
        .fold(0u32, |m, l| m | 1 << l);
    if missing | uninvited | differ != 0 {
        let site = Site {
            pc,
            warp: w.index,
            lanes: missing | uninvited | differ,
            address: None,
        };
        env.report(cx, FindingKind::MemberMask, site, || {
            if missing != 0 {
                format!("the mask {named:#010x} names lanes {} which do not execute this with the others", lane_list(missing))
            } else if uninvited != 0 {
                format!("lanes {} execute this but are not in the mask {named:#010x}", lane_list(uninvited))
            } else {
                format!("lanes give different masks, {named:#010x} and another in lanes {}", lane_list(differ))
            }
        });
    }
    named & active
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
    let here = members(cx, env, w, pc, mask, active);
    let (a, b, c) = (w.r32[a as usize], w.r32[b as usize], w.r32[c as usize]);
    let (mut out, mut valid, mut absent) = ([0u32; 32], 0u32, 0u32);
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
        let j = if ok { j as u32 & 31 } else { lane };
        valid |= u32::from(ok) << lane;
        out[lane as usize] = a[j as usize];
        absent |= u32::from(active >> lane & 1 == 1 && here >> j & 1 == 0) << lane;
    }
    if absent != 0 {
        let site = Site {
            pc,
            warp: w.index,
            lanes: absent,
            address: None,
        };
        env.report(cx, FindingKind::MemberMask, site, || {
            format!(
                "lanes {} read from lanes that are not here",
                lane_list(absent)
            )
        });
    }
    set_row(w, d, &out, active);
    set_pred(w, p, valid, active);
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
    let here = members(cx, env, w, pc, mask, active);
    let p = (w.p[a as usize] ^ if negated { u32::MAX } else { 0 }) & here;
    let truth = match mode {
        Vote::All => p == here,
        Vote::Any => p != 0,
        Vote::Uni => p == 0 || p == here,
        Vote::Ballot => return set_row(w, d, &[p; 32], active),
    };
    set_pred(w, d, if truth { u32::MAX } else { 0 }, active);
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
    let here = members(cx, env, w, pc, mask, active);
    let row = w.r32[a as usize];
    let all = lanes_of(here).map(|l| row[l]).reduce(|x, y| match f {
        IntOp::Add => x.wrapping_add(y),
        IntOp::MinU => x.min(y),
        IntOp::MaxU => x.max(y),
        IntOp::MinS => (x as i32).min(y as i32) as u32,
        IntOp::MaxS => (x as i32).max(y as i32) as u32,
        IntOp::And => x & y,
        IntOp::Or => x | y,
        _ => x ^ y,
    });
    set_row(w, d, &[all.unwrap_or(0); 32], active);
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
    let here = members(cx, env, w, pc, mask, active);
    let value = |l: usize| {
        if wide {
            w.r64[a as usize][l]
        } else {
            u64::from(w.r32[a as usize][l])
        }
    };
    let mut out = [0u32; 32];
    for l in lanes_of(here) {
        out[l] = lanes_of(here)
            .filter(|&k| value(k) == value(l))
            .fold(0, |m, k| m | 1 << k);
    }
    let same = lanes_of(here).all(|l| out[l] == here);
    if all {
        out = [if same { here } else { 0 }; 32];
    }
    set_row(w, d, &out, active);
    set_pred(w, p, if same { u32::MAX } else { 0 }, active);
}

/// `elect.sync`: the lowest member is elected.
pub(crate) fn elect(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    rows: [Row; 3],
    active: u32,
) {
    let [d, p, mask] = rows;
    let here = members(cx, env, w, pc, mask, active);
    let leader = here.trailing_zeros();
    set_row(w, d, &[leader; 32], active);
    set_pred(w, p, here & here.wrapping_neg(), active);
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
    env.report(cx, FindingKind::Divergent, site, || {
        format!(
            "executed by lanes {} only; it needs the whole warp, and lanes {} are elsewhere",
            lane_list(active),
            lane_list(elsewhere)
        )
    });
}
