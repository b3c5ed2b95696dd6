//! `wgmma` (PTX ISA, section 9.7.15): D = A·B + D by a warpgroup, four warps from a multiple of four on, asynchronously.
//!
//! Each warp issues the instruction for itself; when all four have, it is one operation of the warpgroup. It is carried out when the first of them
//! waits for it, in the order of issue, with the shared memory of that moment: as late as the rules permit. A fragment of A in
//! registers is read at issue.
//!
//! **Matrices in shared memory.** A descriptor has the address, a leading and a stride offset and the swizzle. They place the runs of 16 bytes
//! (*chunks*) of the matrix; with W chunks to the width of the swizzle (1 without):
//!
//! | order | swizzle | chunk c of row r (8 rows to a group) |
//! |---|---|---|
//! | K-major | none | 16·(r%8) + stride·(r/8) + leading·c |
//! | K-major | W | 16·W·(r%8) + stride·(r/8) + 16·c |
//! | MN-major (r counts along K) | none | 16·(r%8) + leading·(r/8) + stride·c |
//! | MN-major | W | 16·W·(r%8) + stride·(r/8) + 16·(c%W) + leading·(c/W) |
//!
//! and the swizzle exchanges chunks by the bits of the address above 7. Accumulator element i of a lane of warp w is row 16w + g + 8·(i/2%2),
//! column 8·(i/4) + 2t + i%2, with g = lane / 4 and t = lane % 4.
//!
//! **Arithmetic**: [`super::wgmma_product`]; integers as in [`super::mma`], floating point as [`super::sums`] says.

use std::collections::VecDeque;

use super::barrier::lane_list;
use super::cluster::units;
use super::in_flight::{Writes, begin_reading};
use super::lanes::whole_warp;
use super::mem::lanes_of;
use super::sparse::Pattern;
use super::step::Next;
use super::warp::{State, Warp};
use super::{Context, Env, Site};
use crate::ir::{MmaType, Multiplicand, Op, Reg, Wgmma};
use crate::proxies::WARPGROUPS;
use crate::report::FindingKind;
use crate::shared::IN_FLIGHT;
use crate::types::File;
use crate::windows::SHARED_BASE;

/// What a warp has done with its warpgroup.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    /// Operations issued.
    issued: u64,
    /// Operations issued before each commit.
    commits: Vec<u64>,
    /// By register: the operation that it belongs to and that the warp has not waited for, by its number and instruction.
    flight: Vec<Option<(u64, usize)>>,
    /// Registers touched since the last fence.
    touched: Vec<bool>,
    /// Has executed a fence.
    fenced: bool,
}

impl Pipeline {
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The operation in flight that register `row` belongs to.
    fn flight(&self, row: u32) -> Option<(u64, usize)> {
        self.flight.get(row as usize).copied().flatten()
    }

    fn fly(&mut self, row: u32, operation: (u64, usize)) {
        let row = row as usize;
        self.flight.resize(self.flight.len().max(row + 1), None);
        self.flight[row] = Some(operation);
    }

    fn is_touched(&self, row: u32) -> bool {
        self.touched.get(row as usize).is_some_and(|t| *t)
    }

    fn touch(&mut self, row: u32) {
        let row = row as usize;
        self.touched.resize(self.touched.len().max(row + 1), false);
        self.touched[row] = true;
    }
}

/// Bytes of shared memory, by offset and length.
type Runs = Vec<(u32, u32)>;

/// The shared memory that an operation reads, all of it inside.
#[derive(Debug, Default)]
struct Reads {
    /// Of A, by the warp whose rows they are.
    a: [Runs; 4],
    b: Runs,
    /// The first chunk that is not inside.
    outside: Option<u32>,
    /// The writes that the first warp has found and that it knows of.
    writes: Option<Box<Writes>>,
}

/// An operation of a warpgroup.
#[derive(Debug)]
pub(crate) struct Operation {
    pc: usize,
    pub(super) descriptors: [u64; 2],
    pub(super) scale: bool,
    /// Registers of A, by warp.
    pub(super) a: [Option<Box<[[u32; 32]]>>; 4],
    /// Metadata of a sparse A, by warp.
    pub(super) meta: [Box<[u32; 32]>; 4],
    /// Warps that have issued it.
    issued: u8,
    reads: Reads,
}

/// An instruction with an operation of it.
pub(crate) type Issued<'i> = (&'i Wgmma, Operation);

impl Operation {
    /// The shared memory that the warps read that have issued it.
    fn runs(&self) -> impl Iterator<Item = (u32, u32)> {
        let own = self.reads.a.iter().enumerate();
        let own = own.filter(|(warp, _)| self.issued >> warp & 1 == 1);
        own.flat_map(|(_, runs)| runs).chain(&self.reads.b).copied()
    }
}

/// The operations of one warpgroup.
#[derive(Debug, Default)]
struct Group {
    queue: VecDeque<Operation>,
    /// Operations carried out, and the clock of the group when each was.
    done: u64,
    clocks: Vec<u32>,
}

/// The warpgroups of a block.
#[derive(Debug, Default)]
pub(crate) struct Warpgroups {
    list: [Group; 8],
}

impl Warpgroups {
    pub(crate) fn reset(&mut self) {
        for group in &mut self.list {
            group.queue.clear();
            group.done = 0;
            group.clocks.clear();
        }
    }
}

/// A matrix in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    start: u32,
    leading: u32,
    stride: u32,
    /// Chunks to the width of the swizzle.
    width: u32,
    base: u32,
    /// Rows of the pattern run along K.
    transposed: bool,
}

impl Layout {
    pub(super) fn of(descriptor: u64, transposed: bool) -> Self {
        let field = |bit: u32| ((descriptor >> bit & 0x3fff) << 4) as u32;
        // Addresses are 18 bits in a descriptor, fewer than they may have here.
        let start = field(0).wrapping_sub(SHARED_BASE) & 0x3_ffff;
        Self {
            start,
            leading: field(16),
            stride: field(32),
            width: [1, 8, 4, 2][(descriptor >> 62) as usize & 3],
            base: (descriptor >> 49) as u32 & 7,
            transposed,
        }
    }

    /// Whether rows of the pattern run along K.
    pub(super) fn is_transposed(self) -> bool {
        self.transposed
    }

    /// The byte of shared memory where chunk `c` of row `r` is.
    #[inline(always)]
    pub(super) fn chunk(self, r: u32, c: u32) -> u32 {
        let (w, leading, stride) = (self.width, self.leading, self.stride);
        let linear = match (self.transposed, w) {
            (false, 1) => 16 * (r % 8) + stride * (r / 8) + leading * c,
            (false, _) => 16 * w * (r % 8) + stride * (r / 8) + 16 * c,
            (true, 1) => 16 * (r % 8) + leading * (r / 8) + stride * c,
            (true, _) => 16 * w * (r % 8) + stride * (r / 8) + 16 * (c % w) + leading * (c / w),
        };
        let x = self.start.wrapping_add(linear) & 0x3_ffff;
        let row = (x >> 7).wrapping_sub(self.base);
        x ^ ((row & (w - 1)) << 4)
    }
}

/// Bits of an element.
pub(super) fn bits(t: MmaType) -> u32 {
    match t {
        MmaType::F16 | MmaType::Bf16 => 16,
        MmaType::Tf32 | MmaType::F32 | MmaType::S32 => 32,
        MmaType::B1 => 1,
        _ => 8,
    }
}

/// Rows and chunks a row of a matrix with `outer` rows or columns and depth `k`.
pub(super) fn extents(outer: u32, k: u32, t: MmaType, transposed: bool) -> (u32, u32) {
    if transposed {
        (k, outer * bits(t) / 128)
    } else {
        (outer, (k * bits(t)).div_ceil(128))
    }
}

/// The chunks of shared memory in `map`, a bit for each, as runs.
fn runs(map: &[u64]) -> Runs {
    let mut runs: Runs = Vec::new();
    for (word, at) in map.iter().zip((0..).step_by(64 * 16)) {
        let mut left = *word;
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            left &= u64::MAX.checked_shl(first + count).unwrap_or(0);
            let (offset, bytes) = (at + 16 * first, 16 * count);
            match runs.last_mut() {
                Some((start, length)) if *start + *length == offset => *length += bytes,
                _ => runs.push((offset, bytes)),
            }
        }
    }
    runs
}

impl Reads {
    /// Those of `m`, with the layouts of A and B where they are in shared memory, which has `size` bytes.
    fn of(m: &Wgmma, a: Option<Layout>, b: Option<Layout>, size: u32) -> Self {
        let mut outside = None;
        let mut map = vec![0; size as usize / 16 / 64 + 1];
        let mut note = |map: &mut [u64], chunk: u32| {
            if chunk + 16 <= size {
                map[chunk as usize / 16 / 64] |= 1 << (chunk / 16 % 64);
            } else {
                outside = outside.or(Some(chunk));
            }
        };
        let a = a.map_or_else(Default::default, |layout| {
            let (rows, each) = extents(64, m.a_depth(), m.a_ty, layout.transposed);
            let per = 128 / bits(m.a_ty);
            let mut maps: [_; 4] = std::array::from_fn(|_| map.clone());
            for (r, c) in (0..rows).flat_map(|r| (0..each).map(move |c| (r, c))) {
                let warp = if layout.transposed { c * per } else { r } / 16;
                note(&mut maps[warp as usize & 3], layout.chunk(r, c));
            }
            maps.map(|map| runs(&map))
        });
        let b = b.map_or_else(Default::default, |layout| {
            let (rows, each) = extents(m.n.into(), m.k.into(), m.b_ty, layout.transposed);
            for (r, c) in (0..rows).flat_map(|r| (0..each).map(move |c| (r, c))) {
                note(&mut map, layout.chunk(r, c));
            }
            runs(&map)
        });
        Self {
            a,
            b,
            outside,
            writes: None,
        }
    }
}

/// `wgmma.mma_async` by one warp.
pub(crate) fn issue(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Wgmma,
    active: u32,
) {
    whole_warp(cx, env, w, pc, active);
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    let (group, place) = (w.index as usize / 4, w.index as usize % 4);
    if group * 4 + 4 > cx.warps() {
        let warps = cx.warps();
        env.report(cx, FindingKind::Divergent, site, &|| {
            format!(
                "a warpgroup is four warps, 4·n to 4·n + 3, and the block has only {warps} warps"
            )
        });
        return;
    }
    let lane = active.trailing_zeros() as usize & 31;
    let mut uniform = true;
    let mut descriptor = |m: &Multiplicand| match m {
        Multiplicand::Shared { descriptor, .. } => {
            let row = &w.r64[*descriptor as usize];
            uniform &= lanes_of(active).all(|l| row[l] == row[lane]);
            row[lane]
        }
        Multiplicand::Registers { .. } => 0,
    };
    let descriptors = [descriptor(&m.a), descriptor(&m.b)];
    let p = w.p[m.scale.0 as usize] ^ if m.scale.1 { u32::MAX } else { 0 };
    uniform &= p & active == 0 || p & active == active;
    if !uniform {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            "lanes of the warp give different descriptors or different values of scale-d".to_owned()
        });
    }
    let scale = p >> lane & 1 == 1;
    if cx.sanitize {
        check_registers(cx, env, w, m, scale, site);
    }
    let fragment: Box<[[u32; 32]]> = match &m.a {
        Multiplicand::Registers { rows, .. } => rows.iter().map(|r| w.r32[*r as usize]).collect(),
        Multiplicand::Shared { .. } => Box::default(),
    };
    let meta: Box<[u32; 32]> = m.sparse.as_ref().map_or_else(Box::default, |s| {
        let meta = w.r32[s.meta as usize];
        Pattern::of(m.a_ty, m.k, s).check(cx, env, &meta, 16 * place as u32, site);
        Box::new(meta)
    });
    let number = w.wgmma.issued;
    w.wgmma.issued += 1;
    let used = m.d.iter().chain(match &m.a {
        Multiplicand::Registers { rows, .. } => rows.as_slice(),
        Multiplicand::Shared { .. } => &[],
    });
    for row in used {
        w.wgmma.fly(*row, (number, pc));
    }
    let layout = |m: &Multiplicand, d: u64| match m {
        Multiplicand::Shared { transposed, .. } => Some(Layout::of(d, *transposed)),
        Multiplicand::Registers { .. } => None,
    };
    let (a, b) = (layout(&m.a, descriptors[0]), layout(&m.b, descriptors[1]));
    if m.sparse.is_some() && b.is_some_and(|b| b.width == 2 && !b.transposed) {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            "the swizzle of B is 32 bytes wide and a row of B has 64: where the second half lies is not defined".to_owned()
        });
    }
    let size = env.shared.size;
    let g = &mut env.groups.list[group];
    let index = (number - g.done.min(number)) as usize;
    // The warps of a group read the same matrices, unless there is a bug.
    let earlier = g.queue.get_mut(index);
    let earlier = earlier.filter(|op| op.pc == pc && op.descriptors == descriptors);
    let mut reads = match earlier {
        Some(op) => std::mem::take(&mut op.reads),
        None => Reads::of(m, a, b, size),
    };
    if let Some(c) = reads.outside {
        let site = Site {
            address: Some(u64::from(c + env.start())),
            ..site
        };
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("a matrix reaches byte {c} of the block's {size} bytes of shared memory")
        });
    }
    if let Some(shadow) = &env.shadow {
        let reader = (WARPGROUPS + group) as u32;
        let warp = w.index as usize & 31;
        let known = reads.writes.as_ref();
        let known = known.is_some_and(|writes| writes.are_known(shadow, warp, env.rank));
        // Each warp reads its own rows of A, and all of B.
        let of_b: &[_] = if known { &[] } else { &reads.b };
        let list = reads.a[place].iter().chain(of_b).copied();
        let writes = begin_reading(cx, env, w, pc, (reader, u32::MAX), list);
        if !known {
            reads.writes = writes.map(Box::new);
        }
    }
    let g = &mut env.groups.list[group];
    if index >= g.queue.len() {
        g.queue.push_back(Operation {
            pc,
            descriptors,
            scale,
            a: [None, None, None, None],
            meta: std::array::from_fn(|_| Box::default()),
            issued: 0,
            reads: Reads::default(),
        });
    }
    let Some(op) = g.queue.get_mut(index) else {
        return;
    };
    if op.issued == 0 || op.pc == pc && op.descriptors == descriptors {
        op.reads = reads;
    }
    op.issued |= 1 << place;
    op.a[place] = Some(fragment);
    op.meta[place] = meta;
    let differs = if op.pc != pc {
        Some("another instruction")
    } else if op.descriptors != descriptors {
        Some("other descriptors")
    } else if op.scale != scale {
        Some("another value of scale-d")
    } else {
        None
    };
    if let Some(what) = differs {
        let line = cx.program.meta[op.pc].line;
        env.report(cx, FindingKind::Divergent, site, &|| {
            format!("the warps of warpgroup {group} issue different wgmma: another warp has issued {what} at line {line}")
        });
    }
    env.attention = true;
}

/// Registers of `m` that are in flight, or touched since the last fence.
fn check_registers(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    m: &Wgmma,
    scale: bool,
    site: Site,
) {
    let name = |row: u32| {
        let reg = Reg {
            file: File::R32,
            row,
        };
        let found = cx.program.names.iter().find(|(r, _)| *r == reg);
        found.map_or("?", |(_, n)| n.as_str())
    };
    let fragment: &[u32] = match &m.a {
        Multiplicand::Registers { rows, .. } => rows,
        Multiplicand::Shared { .. } => &[],
    };
    // The accumulator may go from one wgmma to the next of the same shape.
    let mut same = None;
    let chained = m.d.iter().find_map(|row| {
        let (_, other) = w.wgmma.flight(*row)?;
        // Most registers belong to one instruction.
        if same.replace(other) == Some(other) {
            return None;
        }
        match &cx.program.insts[other].op {
            Op::Wgmma(o) if (o.n, o.d_ty, &o.d) == (m.n, m.d_ty, &m.d) => None,
            _ => Some((*row, other)),
        }
    });
    let read = fragment.iter().find_map(|row| {
        let (_, other) = w.wgmma.flight(*row)?;
        match &cx.program.insts[other].op {
            Op::Wgmma(o) if o.d.contains(row) => Some((*row, other)),
            _ => None,
        }
    });
    if let Some((row, other)) = chained.or(read) {
        let (name, line) = (name(row), cx.program.meta[other].line);
        env.report(cx, FindingKind::WgmmaInFlight, site, &|| {
            format!("register {name} belongs to the wgmma at line {line} of another shape, for which no wgmma.wait_group has waited")
        });
    }
    let touched = m.d.iter().chain(fragment).find(|r| w.wgmma.is_touched(**r));
    if !w.wgmma.fenced {
        env.report(cx, FindingKind::MissingWgmmaFence, site, &|| {
            "no wgmma.fence before the first wgmma of the warpgroup".to_owned()
        });
        w.wgmma.fenced = true;
    } else if let Some(row) = touched {
        let name = name(*row);
        env.report(cx, FindingKind::MissingWgmmaFence, site, &|| {
            format!("register {name} was used since the last wgmma.fence; another must lie between that and this wgmma")
        });
    }
    w.wgmma.touched.clear();
    if scale {
        let undefined = m.d.iter().find(|r| {
            let defined = w.defined(File::R32, **r);
            w.wgmma.flight(**r).is_none() && defined & w.launched != w.launched
        });
        if let Some(row) = undefined {
            let lanes = w.launched & !w.defined(File::R32, *row);
            let name = name(*row);
            let site = Site { lanes, ..site };
            env.report(cx, FindingKind::UndefinedRegister, site, &|| {
                format!(
                    "register {name} is accumulated to but was never written in lanes {}",
                    lane_list(lanes)
                )
            });
        }
    }
    for row in &m.d {
        w.define(File::R32, *row, u32::MAX);
    }
}

/// Records the registers that an instruction other than `wgmma` accesses, and reports those that a `wgmma` in flight uses.
pub(crate) fn touch(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, active: u32) {
    let Some(regs) = cx.program.touches.get(&(pc as u32)) else {
        return;
    };
    for r in regs {
        w.wgmma.touch(r.row);
        let flight = w.wgmma.flight.get_mut(r.row as usize);
        if let Some((_, other)) = flight.and_then(Option::take) {
            let site = Site {
                pc,
                warp: w.index,
                lanes: active,
                address: None,
            };
            let line = cx.program.meta[other].line;
            let found = cx.program.names.iter().find(|(reg, _)| reg == r);
            let name = found.map_or("?", |(_, n)| n.as_str());
            env.report(cx, FindingKind::WgmmaInFlight, site, &|| {
                format!("register {name} is used while the wgmma at line {line} is in flight: no wgmma.wait_group has waited for it")
            });
        }
    }
}

/// `wgmma.fence`.
pub(crate) fn fence(w: &mut Warp) {
    w.wgmma.fenced = true;
    w.wgmma.touched.clear();
}

/// `wgmma.commit_group`.
pub(crate) fn commit(w: &mut Warp) {
    let issued = w.wgmma.issued;
    w.wgmma.commits.push(issued);
}

/// `wgmma.wait_group`.
pub(crate) fn wait(env: &mut Env, w: &mut Warp, pc: usize, pending: u32) -> Next {
    let commits = &w.wgmma.commits;
    let Some(last) = commits.len().checked_sub(pending as usize + 1) else {
        return Next::On;
    };
    let target = commits[last];
    let group = &env.groups.list[(w.index as usize / 4) & 7];
    if group.done < target {
        let s = &mut w.splits[w.current];
        s.pc = pc as u32;
        s.state = State::Wgmma(target);
        env.attention = true;
        return Next::Stop;
    }
    for flight in &mut w.wgmma.flight {
        *flight = flight.filter(|(number, _)| *number >= target);
    }
    if let (Some(shadow), Some(last)) = (&mut env.shadow, target.checked_sub(1)) {
        let clock = group.clocks.get(last as usize).copied().unwrap_or(0);
        let warp = w.index as usize & 31;
        let seen = &mut shadow.seen[warp][WARPGROUPS + warp / 4];
        *seen = (*seen).max(clock);
    }
    Next::On
}

/// Carries out the operations of the current block that somebody waits for, if all four warps have issued them.
pub(crate) fn serve(cx: &Context<'_>, env: &mut Env, warps: &mut [Warp]) {
    for group in 0..warps.len() / 4 {
        let own = &warps[4 * group..4 * group + 4];
        let target = own
            .iter()
            .flat_map(|w| &w.splits)
            .filter(|s| s.mask != 0)
            .filter_map(|s| match s.state {
                State::Wgmma(n) => Some(n),
                _ => None,
            })
            .max();
        let Some(target) = target else { continue };
        let own = &mut warps[4 * group..4 * group + 4];
        let g = &mut env.groups.list[group & 7];
        let mut ops = Vec::new();
        while g.done + (ops.len() as u64) < target {
            let Some(op) = g.queue.pop_front_if(|op| op.issued == 15) else {
                break;
            };
            if let Op::Wgmma(m) = &cx.program.insts[op.pc].op {
                ops.push((&**m, op));
            }
        }
        // Operations in a row on the same accumulators.
        for chain in ops.chunk_by(|(x, _), (y, _)| (x.n, x.d_ty, &x.d) == (y.n, y.d_ty, &y.d)) {
            (env.code.wgmma)(chain, &env.shared, own);
        }
        end_reading(env, group, &ops);
        let done = env.groups.list[group & 7].done;
        for s in own.iter_mut().flat_map(|w| &mut w.splits) {
            if matches!(s.state, State::Wgmma(n) if n <= done) {
                s.state = State::Running;
            }
        }
    }
}

/// The operations have read their matrices, one after the other.
fn end_reading(env: &mut Env, group: usize, ops: &[Issued<'_>]) {
    let g = &mut env.groups.list[group & 7];
    let actor = WARPGROUPS + (group & 7);
    g.done += ops.len() as u64;
    let Some(shadow) = &mut env.shadow else {
        g.clocks.resize(g.clocks.len() + ops.len(), 0);
        return;
    };
    for (_, op) in ops {
        let clock = shadow.clocks.advance(actor as u32);
        g.clocks.push(clock);
        for (offset, bytes) in op.runs() {
            shadow.mark_all_read(units(shadow, offset, bytes), actor, clock);
        }
    }
    // What the operations behind them still read stays in flight.
    for (offset, bytes) in g.queue.iter().flat_map(Operation::runs) {
        shadow.mark_all_read(units(shadow, offset, bytes), actor, IN_FLIGHT);
    }
}
