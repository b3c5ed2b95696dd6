//! Bytes of global memory that asynchronous copies read: from their issue until somebody has waited for them.
//!
//! Here a copy reads its source when it is issued; on hardware it may do so at any time before it is waited for. So a store to these bytes before that
//! is a finding, by whichever thread of the cluster. Other clusters are the business of the check for races between blocks ([`super::global`]).
//!
//! Example: `cp.async` of 16 bytes of y, a store of zeros to them, `cp.async.wait_all`: the tile may hold the zeros.

use std::collections::BTreeMap;

use super::mem::lanes_of;
use super::{Context, Env, Site};
use crate::memory::Allocation;
use crate::report::FindingKind;

/// What one instruction of a warp reads.
#[derive(Debug)]
struct Read {
    pc: usize,
    warp: u32,
    /// Lanes whose copies nobody has waited for.
    pending: u32,
    /// Lane, address and bytes.
    ranges: Vec<(usize, u64, u32)>,
    /// The first byte of them, and the one behind the last.
    span: (u64, u64),
}

/// The reads of global memory that are under way in a cluster.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    reads: BTreeMap<u32, Read>,
    last: u32,
}

impl Sources {
    /// Nothing is under way any more: another cluster begins.
    pub(crate) fn reset(&mut self) {
        self.reads.clear();
    }

    /// Whether a store has to look.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Begins the reading of ranges, each by a lane; returns its number, 0 if it reads nothing.
    pub(crate) fn begin(&mut self, pc: usize, warp: u32, ranges: Vec<(usize, u64, u32)>) -> u32 {
        let Some(first) = ranges.iter().map(|r| r.1).min() else {
            return 0;
        };
        let end = ranges.iter().map(|r| r.1 + u64::from(r.2)).max();
        self.last = self.last.wrapping_add(1).max(1);
        let read = Read {
            pc,
            warp,
            pending: ranges.iter().fold(0, |lanes, r| lanes | 1 << r.0),
            ranges,
            span: (first, end.unwrap_or(first)),
        };
        self.reads.insert(self.last, read);
        self.last
    }

    /// Somebody has waited for what the lanes `lanes` of a read copy.
    pub(crate) fn end(&mut self, number: u32, lanes: u32) {
        if let Some(read) = self.reads.get_mut(&number) {
            read.pending &= !lanes;
            if read.pending == 0 {
                self.reads.remove(&number);
            }
        }
    }

    /// A copy under way that reads some of `bytes` bytes at `address`: its instruction, its warp and a lane.
    fn of(&self, address: u64, bytes: u32) -> Option<(usize, u32, usize)> {
        let meets = |from: u64, to: u64| from < address + u64::from(bytes) && address < to;
        let mut near = self.reads.values().filter(|r| meets(r.span.0, r.span.1));
        near.find_map(|read| {
            let mut pending = read.ranges.iter().filter(|r| read.pending >> r.0 & 1 == 1);
            let found = pending.find(|r| meets(r.1, r.1 + u64::from(r.2)));
            found.map(|r| (read.pc, read.warp, r.0))
        })
    }
}

/// `site` stores to `bytes` bytes at `offset` of an allocation: counts that, and reports a copy that still reads them.
pub(crate) fn stored(
    cx: &Context<'_>,
    env: &mut Env,
    site: Site,
    alloc: &Allocation,
    (offset, bytes): (u64, u32),
) {
    if cx.counts_stores {
        alloc.count_store(offset, bytes);
    }
    if !env.sources.any() {
        return;
    }
    if let Some((pc, warp, by)) = env.sources.of(alloc.base + offset, bytes) {
        let line = cx.program.meta.get(pc).map_or(0, |m| m.line);
        let lane = lanes_of(site.lanes).next().unwrap_or(0);
        env.report(cx, FindingKind::SourceOverwritten, site, &|| {
            format!(
                "lane {lane} stores to byte {offset} of an allocation, which the copy that warp {warp} lane {by} issued at line {line} may still read: nothing has waited for it"
            )
        });
    }
}
