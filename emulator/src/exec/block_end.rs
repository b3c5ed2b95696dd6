//! What a block leaves behind when it ends: copies that it has not waited for, accesses of other blocks of the cluster that may come too late, and mbarriers whose
//! bytes do not add up.

use super::bulk_groups::{perform, wait};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::proxies::Remote;
use crate::report::FindingKind;

/// All warps of the current block, `warps`, have exited: copies to global memory end, and what still uses its shared memory is reported.
pub(crate) fn end_block(cx: &Context<'_>, env: &mut Env, warps: &mut [Warp]) {
    env.ended = true;
    for w in warps.iter_mut() {
        if let Some(s) = w.stores.first() {
            let site = Site {
                pc: s.pc,
                warp: w.index,
                lanes: 1 << s.lane,
                address: None,
            };
            // CUTLASS's epilogues end so. Hardware keeps the shared memory until the copy has read it; the ISA promises nothing.
            env.note(cx, FindingKind::BlockExited, site, &|| {
                "the block exits while this copy reads its shared memory: only a wait of its thread for the group (cp.async.bulk.wait_group) keeps that memory alive by the ISA".to_owned()
            });
        }
        wait(cx, env, w, None, u32::MAX);
        for s in std::mem::take(&mut w.stores) {
            perform(cx, env, w, &s);
        }
    }
    let first = env.mbarriers.in_flight().next();
    let first = first.map(|l| (l.pc, l.warp, l.lanes));
    if let Some((pc, warp, lanes)) = first {
        let site = Site {
            pc,
            warp,
            lanes,
            address: None,
        };
        env.report(cx, FindingKind::BlockExited, site, &|| {
            "the block whose shared memory this copy fills exits without having waited for it at the mbarrier".to_owned()
        });
    } else {
        report_unbalanced(cx, env);
    }
    report_early_exit(cx, env, warps);
}

/// Reports accesses of other blocks that the exit of the current one, of `warps`, is not ordered after: another time they may come too late.
fn report_early_exit(cx: &Context<'_>, env: &mut Env, warps: &[Warp]) {
    let Some(shadow) = &env.shadow else { return };
    let unseen = |r: &Remote| {
        !warps
            .iter()
            .any(|w| shadow.clocks.has_seen(w.index as usize & 31, r))
    };
    let grain = shadow.grain;
    let data = shadow.remote_writes.iter().chain(&shadow.remote_reads);
    let data = data.map(|(u, r)| ((*u as u32) << grain, r));
    let first = env
        .mbarriers
        .remote()
        .chain(data)
        .filter(|(_, r)| unseen(r))
        .min_by_key(|(at, r)| (r.who.pc(), *at, r.rank));
    let Some((offset, r)) = first.map(|(at, r)| (at, *r)) else {
        return;
    };
    let site = Site {
        pc: r.who.pc(),
        warp: r.who.warp() & 31,
        lanes: 1 << r.who.lane(),
        address: Some(u64::from(offset + env.start())),
    };
    let exiting = env.rank;
    env.within(r.rank as usize, |env| {
        env.report(cx, FindingKind::BlockExited, site, &|| {
            format!("access to shared byte {offset} of block {exiting} of the cluster, whose exit nothing orders after it: the block may be gone; a barrier.cluster before its exit keeps it alive")
        });
    });
}

/// Reports mbarriers of the current block whose bytes do not add up.
pub(crate) fn report_unbalanced(cx: &Context<'_>, env: &mut Env) {
    for (offset, tx, pc) in env.mbarriers.unbalanced() {
        let site = Site {
            pc,
            address: Some(u64::from(offset + env.start())),
            ..Site::default()
        };
        env.report(cx, FindingKind::TransactionCount, site, &|| {
            if tx > 0 {
                format!("the mbarrier at shared byte {offset} expects {tx} bytes that no copy brings")
            } else {
                format!("copies bring {} bytes more to the mbarrier at shared byte {offset} than it expects", -tx)
            }
        });
    }
}
