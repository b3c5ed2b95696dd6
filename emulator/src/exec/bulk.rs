//! Bulk copies of the asynchronous proxy (PTX ISA, sections 9.7.9.25.4 to 9.7.9.25.6), as late as the rules permit.
//!
//! A copy that an mbarrier tracks reads global memory when it is issued and writes shared memory when somebody waits at that mbarrier for the
//! phase ([`Landing`]). A copy of a bulk group reads shared memory and writes global memory when its thread waits for the group, for its
//! reading or in full, or when the block ends ([`Store`]). Until then the bytes are in flight, and whoever touches them is reported.
//!
//! Both know their bytes as [`Piece`]s: runs of at least 1 byte that are contiguous on both sides.

use super::bulk_groups::{Store, begin_store};
use super::cluster::units;
use super::combine::combine;
use super::gmem::{observe_global, report_unwritten};
use super::in_flight::{begin_reading, begin_writing, end_reading};
use super::mbarrier;
use super::mem::{addresses, lanes_of};
use super::traffic;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::ir::{Bulk, BulkSide, NONE, Reduction};
use crate::report::FindingKind;
use crate::shared::{Cell, Who};
use crate::windows::{SHARED_WINDOW, WINDOW};

/// Bytes in a row on both sides of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// Offset in the block's shared memory.
    pub(crate) shared: u32,
    /// Global address; `None` for bytes that lie outside the tensor.
    pub(crate) global: Option<u64>,
    pub(crate) bytes: u32,
}

/// Where the data of a landing comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Bytes read at issue, one piece after the other.
    Data(Vec<u8>),
    /// Shared memory of block `rank` from `offset` on, read when it lands.
    Shared { rank: usize, offset: u32 },
}

/// A copy into shared memory that has not landed.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) pc: usize,
    /// Warp and lanes that issued it, in its own block.
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    /// Bytes that it completes at its mbarrier.
    pub(crate) bytes: u32,
    pub(crate) source: Source,
    /// Offsets in shared memory and lengths.
    pub(crate) to: Vec<(u32, u32)>,
    pub(crate) reduction: Option<Reduction>,
    /// Whether it writes by the asynchronous proxy.
    pub(crate) proxy: bool,
    /// What it reads in global memory: address and bytes; then the number of that read.
    pub(crate) from: Vec<(u64, u32)>,
    pub(crate) read: u32,
}

impl Landing {
    /// Writes into the shared memory of the current block, at `clock` of the mbarrier's `actor`.
    pub(crate) fn land(&self, _cx: &Context<'_>, env: &mut Env, actor: u32, clock: u32) {
        env.sources.end(self.read, self.lanes);
        let total: u32 = self.to.iter().map(|t| t.1).sum();
        let data = match &self.source {
            Source::Data(data) => data.clone(),
            Source::Shared { rank, offset } => {
                let mut data = vec![0; total as usize];
                let (rank, offset, warp) = (*rank, *offset, self.warp as usize);
                env.within(rank, |env| {
                    env.shared.read_bytes(offset, &mut data);
                    end_reading(env, warp, &[(offset, total)]);
                });
                data
            }
        };
        let mut at = 0;
        for (offset, bytes) in &self.to {
            let piece = &data[at..at + *bytes as usize];
            at += *bytes as usize;
            match self.reduction {
                None => env.shared.write_bytes(*offset, piece),
                Some(r) => {
                    for (k, x) in piece.chunks_exact(usize::from(r.bytes)).enumerate() {
                        let place = offset + k as u32 * u32::from(r.bytes);
                        let bytes = u32::from(r.bytes);
                        let old = env.shared.load(place, bytes);
                        let new = combine(r.op, bytes, old, little(x), 0);
                        env.shared.store(place, bytes, cut(new, bytes));
                    }
                }
            }
            if let Some(shadow) = &mut env.shadow {
                let mut who = Who::new(self.pc, actor, self.warp);
                if self.reduction.is_some() {
                    who = who.atomic();
                }
                let units = units(shadow, *offset, *bytes);
                shadow.cells[units].fill(Cell { clock, who });
            }
        }
    }
}

pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

pub(super) fn cut(x: u64, bytes: u32) -> u64 {
    if bytes == 8 {
        x
    } else {
        x & ((1 << (8 * bytes)) - 1)
    }
}

/// Reads `piece`s of global memory, fills what lies outside the tensor by repeating `fill`; reports what is not there.
pub(crate) fn read_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    lane: usize,
    pieces: &[Piece],
    fill: &[u8],
) -> Vec<u8> {
    let mut data = Vec::new();
    let mut hint = 0;
    for p in pieces {
        let Some(address) = p.global else {
            data.extend((0..p.bytes as usize).map(|k| fill[k % fill.len()]));
            continue;
        };
        let Some(offset) = global_place(cx, env, w, pc, lane, address, p.bytes, &mut hint) else {
            data.resize(data.len() + p.bytes as usize, 0);
            continue;
        };
        observe(cx, env, w, pc, lane, address, p.bytes, false);
        copied(env, pc, p.bytes);
        let Some(alloc) = cx.memory.locate(address, &mut hint) else {
            continue;
        };
        let start = data.len();
        data.resize(start + p.bytes as usize, 0);
        alloc.read_bytes(offset, &mut data[start..]);
    }
    data
}

/// Counts bytes that a copy moves between shared and global memory.
pub(super) fn copied(env: &mut Env, pc: usize, bytes: u32) {
    traffic::count(env, pc, |t| {
        t.global_bytes += u64::from(bytes);
        t.shared_bytes += u64::from(bytes);
    });
}

/// The optional checks of global memory, for each word.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(super) fn observe(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    lane: usize,
    address: u64,
    bytes: u32,
    store: bool,
) {
    if !(cx.observes() || store && env.sources.any()) {
        return;
    }
    let mut at = [0; 32];
    for k in (0..bytes).step_by(16) {
        at[lane] = address + u64::from(k);
        let piece = (bytes - k).min(16);
        let unwritten = observe_global(cx, env, w, pc, None, &at, piece, 1 << lane, store);
        report_unwritten(cx, env, w, pc, &at, unwritten);
    }
}

/// The offset of `bytes` at `address` in their allocation; reports it if they are not in one.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(super) fn global_place(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    lane: usize,
    address: u64,
    bytes: u32,
    hint: &mut u32,
) -> Option<u64> {
    let alloc = cx.memory.locate(address, hint);
    let fits = alloc.filter(|a| a.len - (address - a.base) >= u64::from(bytes));
    if let Some(a) = fits {
        return Some(address - a.base);
    }
    let site = Site {
        pc,
        warp: w.index,
        lanes: 1 << lane,
        address: Some(address),
    };
    env.report(cx, FindingKind::OutOfBounds, site, &|| match cx.memory.nearest(address) {
        Some(a) => {
            let (offset, len) = (address.wrapping_sub(a.base) as i64, a.len);
            format!("the copy accesses {bytes} bytes at byte {offset} of an allocation of {len} bytes")
        }
        None => format!("the copy accesses {bytes} bytes of global memory, and nothing is allocated"),
    });
    None
}

/// `cp.async.bulk` and `cp.reduce.async.bulk`.
pub(crate) fn issue(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    b: &Bulk,
    active: u32,
) {
    let (dst, src) = (addresses(w, b.dst), addresses(w, b.src));
    for l in lanes_of(active) {
        let size = w.r32[b.size as usize][l];
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(src[l]),
        };
        let crooked = [dst[l], src[l]].into_iter().find(|a| !a.is_multiple_of(16));
        if let Some(a) = crooked {
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!("lane {l} copies from or to address {a:#x}, not a multiple of 16")
            });
            continue;
        }
        if !size.is_multiple_of(16) {
            env.report(cx, FindingKind::BadOperand, site, &|| {
                format!("a bulk copy of {size} bytes; the size is a multiple of 16")
            });
            continue;
        }
        if size == 0 {
            continue;
        }
        if b.to == BulkSide::Global {
            let Some((_, offset)) = shared_side(cx, env, site, Space::Shared, (l, src[l]), size)
            else {
                continue;
            };
            let pieces = vec![Piece {
                shared: offset,
                global: Some(dst[l]),
                bytes: size,
            }];
            let store = Store {
                pc,
                lane: l as u8,
                group: w.bulk_groups[l],
                pieces,
                reduction: b.reduction,
            };
            begin_store(cx, env, w, store);
            continue;
        }
        let space = if b.to == BulkSide::Block {
            Space::Shared
        } else {
            Space::Cluster
        };
        let Some(to) = shared_side(cx, env, site, space, (l, dst[l]), size) else {
            continue;
        };
        let Some(bar) = b.mbarrier.map(|a| addresses(w, a)[l]) else {
            continue;
        };
        let Some(bar) = shared_side(cx, env, site, space, (l, bar), 8) else {
            continue;
        };
        if b.from == BulkSide::Block {
            let Some((_, offset)) = shared_side(cx, env, site, Space::Shared, (l, src[l]), size)
            else {
                continue;
            };
            let from = std::iter::once((offset, size));
            begin_reading(cx, env, w, pc, (w.index, 1 << l), from);
            let rank = env.rank;
            let landing = Landing {
                pc,
                warp: w.index,
                lanes: 1 << l,
                bytes: size,
                source: Source::Shared { rank, offset },
                to: vec![(to.1, size)],
                reduction: b.reduction,
                proxy: true,
                from: Vec::new(),
                read: 0,
            };
            send(cx, env, w, site, to.0, bar, landing);
            continue;
        }
        let piece = Piece {
            shared: to.1,
            global: Some(src[l]),
            bytes: size,
        };
        let data = read_global(cx, env, w, pc, l, &[piece], &[0]);
        let mask = (b.mask != NONE).then(|| w.r32[b.mask as usize][l]);
        spread(
            cx,
            env,
            w,
            site,
            mask,
            to.0,
            bar,
            (&[(to.1, size)], &[piece]),
            size,
            &data,
        );
    }
}

/// Where pieces of a copy lie in global memory.
fn inside(pieces: &[Piece]) -> Vec<(u64, u32)> {
    let inside = pieces.iter().filter_map(|p| Some((p.global?, p.bytes)));
    inside.collect()
}

/// Sends the same data, read from `from`, to each block of `mask`, or to block `rank`.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn spread(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    site: Site,
    mask: Option<u32>,
    rank: usize,
    bar: (usize, u32),
    (to, from): (&[(u32, u32)], &[Piece]),
    bytes: u32,
    data: &[u8],
) {
    let blocks = env.blocks;
    let targets: Vec<(usize, (usize, u32))> = match mask {
        None => vec![(rank, bar)],
        Some(m) => {
            if m == 0 || m >> blocks != 0 {
                env.report(cx, FindingKind::BadOperand, site, &|| {
                    format!("a mask of destination blocks of {m:#x} in a cluster of {blocks}")
                });
            }
            (0..blocks)
                .filter(|r| m >> r & 1 == 1)
                .map(|r| (r, (r, bar.1)))
                .collect()
        }
    };
    for (rank, bar) in targets {
        if !env.check_alive(cx, site, rank) {
            continue;
        }
        let landing = Landing {
            pc: site.pc,
            warp: w.index,
            lanes: site.lanes,
            bytes,
            source: Source::Data(data.to_vec()),
            to: to.to_vec(),
            reduction: None,
            proxy: true,
            from: inside(from),
            read: 0,
        };
        send(cx, env, w, site, rank, bar, landing);
    }
}

/// Sends a landing to the mbarrier at `bar`.
pub(crate) fn send(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    site: Site,
    rank: usize,
    bar: (usize, u32),
    mut landing: Landing,
) {
    if rank != bar.0 {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            format!("the destination is in block {rank} of the cluster and the mbarrier in block {}; they must be in the same", bar.0)
        });
        return;
    }
    if !bar.1.is_multiple_of(8) {
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!("an mbarrier at shared byte {}, not a multiple of 8", bar.1)
        });
        return;
    }
    let proxy = landing.proxy;
    if !env.check_alive(cx, site, rank) || !mbarrier::check_target(cx, env, w, site, bar, proxy) {
        return;
    }
    let actor = env.within(rank, |env| env.mbarriers.get_mut(bar.1).map(|o| o.actor));
    let Some(actor) = actor else { return };
    begin_writing(cx, env, w, site.pc, (rank, actor), &landing);
    if cx.sanitize {
        let lane = landing.lanes.trailing_zeros() as usize & 31;
        let ranges = std::mem::take(&mut landing.from).into_iter();
        let ranges = ranges.map(|(address, bytes)| (lane, address, bytes));
        landing.read = env.sources.begin(site.pc, w.index, ranges.collect());
    }
    env.within(rank, |env| mbarrier::track(env, bar.1, landing));
    env.events += 1;
}

/// Resolves the shared-memory address of lane `l`, and reports an invalid one. Generic addresses are valid where the instruction names no
/// state space.
pub(crate) fn shared_side(
    cx: &Context<'_>,
    env: &mut Env,
    site: Site,
    space: Space,
    (l, address): (usize, u64),
    bytes: u32,
) -> Option<(usize, u32)> {
    let within = address.wrapping_sub(SHARED_WINDOW);
    let (space, address) = match (within < WINDOW, space) {
        (true, Space::Generic) => (Space::Cluster, within),
        (true, _) => (space, within),
        _ => (space, address),
    };
    let found = env.place(space, address, bytes);
    if found.is_none() {
        let place = env.describe(space, address);
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("lane {l} names {bytes} bytes at {place}")
        });
    }
    found
}
