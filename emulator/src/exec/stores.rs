//! `st.async` and `red.async` (PTX ISA, sections 9.7.9.12 and 9.7.13.7): stores into a block of the cluster that an mbarrier there counts.

use super::bulk::{Landing, Source, send, shared_side};
use super::mem::{addresses, get_lane, lanes_of};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::StoreAsync;
use crate::report::FindingKind;

/// Issues the stores of the active lanes.
pub(crate) fn issue(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    s: &StoreAsync,
    active: u32,
) {
    let (to, bars) = (addresses(w, s.address), addresses(w, s.mbarrier));
    let (each, total) = (u32::from(s.bytes), u32::from(s.bytes) * u32::from(s.count));
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(to[l]),
        };
        if !to[l].is_multiple_of(u64::from(total)) {
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!(
                    "lane {l} stores {total} bytes at address {:#x}, not a multiple of {total}",
                    to[l]
                )
            });
            continue;
        }
        let place = shared_side(cx, env, site, s.space, (l, to[l]), total);
        let bar = shared_side(cx, env, site, s.space, (l, bars[l]), 8);
        let (Some(place), Some(bar)) = (place, bar) else {
            continue;
        };
        let mut data = Vec::new();
        for reg in s.regs.iter().take(usize::from(s.count)) {
            data.extend(&get_lane(w, *reg, l).to_le_bytes()[..each as usize]);
        }
        let landing = Landing {
            pc,
            warp: w.index,
            lanes: 1 << l,
            bytes: total,
            source: Source::Data(data),
            to: vec![(place.1, total)],
            reduction: s.reduction,
            proxy: false,
            from: Vec::new(),
            read: 0,
        };
        send(cx, env, w, site, place.0, bar, landing);
    }
}
