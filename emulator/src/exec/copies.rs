//! `cp.async` (PTX ISA, section 9.7.9.25.3), as late as the rules permit.
//!
//! The source is read when the copy is issued, the destination is written when the issuing lane *waits* for its group, and in between
//! the bytes are in flight: reading or writing the destination is a finding, and a kernel that does so computes with old data. So is a store to the source
//! ([`super::sources`]). Groups are counted by lane:
//! a copy issued when a lane has committed g groups belongs to group g, and `wait_group n` lands all groups below committed − n.

use super::gmem::{observe_global, report_unwritten};
use super::mem::{addresses, lanes_of};
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::traffic;
use super::warp::{PendingCopy, Warp};
use super::{Context, Env, Site};
use crate::banks::SharedAccess;
use crate::ir::{CpAsync, NONE};
use crate::report::FindingKind;
use crate::shared::Who;

/// Issues copies.
#[inline(never)]
pub(crate) fn issue(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    c: &CpAsync,
    active: u32,
) {
    let bytes = u32::from(c.bytes);
    let to = shared_offsets(w, c.dst, active, u64::from(env.start()));
    let from = addresses(w, c.src);
    let lanes = check_shared(cx, env, w, pc, &to, bytes, active);
    count_wavefronts(env, pc, SharedAccess::Store { bytes }, &to, lanes);
    let mut ignored = 0;
    if c.ignore.0 != NONE {
        ignored = w.p[c.ignore.0 as usize] ^ if c.ignore.1 { u32::MAX } else { 0 };
    }
    traffic::global(env, pc, &from, bytes, lanes & !ignored);
    let mut hint = env.hints[pc];
    let (mut reads, issued) = (Vec::new(), w.copies.len());
    for l in lanes_of(lanes) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(from[l]),
        };
        let mut n = if ignored >> l & 1 == 1 { 0 } else { bytes };
        if c.src_bytes != NONE {
            let asked = w.r32[c.src_bytes as usize][l];
            if asked > bytes {
                env.report(cx, FindingKind::BadOperand, site, &|| {
                    format!("a source size of {asked} for a copy of {bytes} bytes")
                });
            }
            n = asked.min(bytes);
        }
        let mut data = [0u32; 4];
        if n > 0 {
            let x = from[l];
            let alloc = cx
                .memory
                .locate(x, &mut hint)
                .filter(|a| a.len - (x - a.base) >= u64::from(n));
            let Some(alloc) = alloc else {
                env.report(cx, FindingKind::OutOfBounds, site, &|| match cx.memory.nearest(x) {
                    Some(a) => {
                        let (offset, len) = (x.wrapping_sub(a.base) as i64, a.len);
                        format!("lane {l} copies {n} bytes from byte {offset} of an allocation of {len} bytes")
                    }
                    None => format!("lane {l} copies {n} bytes of global memory, and nothing is allocated"),
                });
                continue;
            };
            if !x.is_multiple_of(u64::from(bytes)) {
                env.report(cx, FindingKind::Misaligned, site, &|| {
                    format!("lane {l} copies {bytes} bytes from global address {x:#x}, not a multiple of {bytes}")
                });
                continue;
            }
            if cx.observes() {
                let unwritten = observe_global(cx, env, w, pc, None, &from, n, 1 << l, false);
                report_unwritten(cx, env, w, pc, &from, unwritten);
            }
            if cx.sanitize {
                reads.push((l, x, n));
            }
            let offset = x - alloc.base;
            for (k, word) in data.iter_mut().enumerate().take(n.div_ceil(4) as usize) {
                *word = alloc.word(offset + 4 * k as u64);
                let valid = n - 4 * k as u32;
                if valid < 4 {
                    *word &= (1 << (8 * valid)) - 1;
                }
            }
        }
        let who = Who::new(pc, w.index, l as u32);
        let mut conflict = None;
        if let Some(shadow) = &mut env.shadow {
            let first = (to[l] >> shadow.grain) as usize;
            for u in first..first + (bytes >> shadow.grain) as usize {
                conflict = shadow.begin_copy(u, who).or(conflict);
            }
        }
        if let Some(found) = conflict {
            report_conflict(cx, env, who, (env.rank, to[l]), found, true);
        }
        w.copies.push(PendingCopy {
            pc: pc as u32,
            lane: l as u8,
            bytes: c.bytes,
            to: to[l],
            data,
            group: w.groups[l],
            serial: w.issued,
            read: 0,
        });
        w.issued += 1;
    }
    env.hints[pc] = hint;
    let read = env.sources.begin(pc, w.index, reads);
    for copy in w.copies.iter_mut().skip(issued) {
        copy.read = read;
    }
}

/// `cp.async.commit_group`.
pub(crate) fn commit(w: &mut Warp, active: u32) {
    for l in lanes_of(active) {
        w.groups[l] += 1;
    }
}

/// `cp.async.wait_group n`, or `wait_all` for `None`.
#[inline(never)]
pub(crate) fn wait(env: &mut Env, w: &mut Warp, pending: Option<u32>, active: u32) {
    let groups = w.groups;
    land(env, w, |c| {
        let lane = usize::from(c.lane);
        active >> lane & 1 == 1 && pending.is_none_or(|n| c.group < groups[lane].saturating_sub(n))
    });
}

/// Lands the copies that `lands` says.
pub(crate) fn land(env: &mut Env, w: &mut Warp, lands: impl Fn(&PendingCopy) -> bool) {
    let Env {
        shared,
        shadow,
        sources,
        ..
    } = env;
    let warp = w.index;
    w.copies.retain(|c| {
        let lane = usize::from(c.lane);
        let lands = lands(c);
        if lands {
            sources.end(c.read, 1 << lane);
            for k in 0..u32::from(c.bytes) / 4 {
                shared.set_word(c.to + 4 * k, c.data[k as usize]);
            }
            if let Some(shadow) = shadow {
                let who = Who::new(c.pc as usize, warp, lane as u32);
                let first = (c.to >> shadow.grain) as usize;
                for u in first..first + (u32::from(c.bytes) >> shadow.grain) as usize {
                    shadow.land_copy(u, who);
                }
            }
        }
        !lands
    });
}
