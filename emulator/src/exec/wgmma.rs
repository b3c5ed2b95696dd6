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
//! **Arithmetic**: integers as in [`super::mma`], floating point as [`super::sums`] says.

use std::collections::{HashMap, HashSet, VecDeque};

use super::barrier::lane_list;
use super::cluster::units;
use super::in_flight::begin_reading;
use super::lanes::whole_warp;
use super::mem::lanes_of;
use super::mma::element;
use super::rounding::half_of;
use super::sparse::{self, Pattern};
use super::step::Next;
use super::sums::{self, Row};
use super::warp::{State, Warp};
use super::{Context, Env, Site};
use crate::float::NAN32;
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
    /// Registers of operations that it has not waited for: the number of the operation, and its instruction.
    flight: HashMap<u32, (u64, usize)>,
    /// Registers touched since the last fence.
    touched: HashSet<u32>,
    /// Has executed a fence.
    fenced: bool,
}

impl Pipeline {
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// An operation of a warpgroup.
#[derive(Debug)]
struct Operation {
    pc: usize,
    descriptors: [u64; 2],
    scale: bool,
    /// Registers of A, by warp.
    a: [Option<Box<[[u32; 32]]>>; 4],
    /// Metadata of a sparse A, by warp.
    meta: [Box<[u32; 32]>; 4],
    /// Warps that have issued it.
    issued: u8,
    /// The chunks of shared memory that it reads.
    chunks: Vec<u32>,
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
        *self = Self::default();
    }
}

/// A matrix in shared memory.
#[derive(Debug, Clone, Copy)]
struct Layout {
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
    fn of(descriptor: u64, transposed: bool) -> Self {
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

    /// The byte of shared memory where chunk `c` of row `r` is.
    fn chunk(self, r: u32, c: u32) -> u32 {
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
fn bits(t: MmaType) -> u32 {
    match t {
        MmaType::F16 | MmaType::Bf16 => 16,
        MmaType::Tf32 | MmaType::F32 | MmaType::S32 => 32,
        MmaType::B1 => 1,
        _ => 8,
    }
}

/// Rows and chunks a row of a matrix with `outer` rows or columns and depth `k`.
fn extents(outer: u32, k: u32, t: MmaType, transposed: bool) -> (u32, u32) {
    if transposed {
        (k, outer * bits(t) / 128)
    } else {
        (outer, (k * bits(t)).div_ceil(128))
    }
}

/// The chunks of a matrix.
fn chunks(layout: Layout, outer: u32, k: u32, t: MmaType) -> impl Iterator<Item = u32> {
    let (rows, each) = extents(outer, k, t, layout.transposed);
    (0..rows).flat_map(move |r| (0..each).map(move |c| layout.chunk(r, c)))
}

/// The chunks of A that hold the 16 rows of warp `warp` of the group.
fn rows_of(layout: Layout, warp: u32, k: u32, t: MmaType) -> impl Iterator<Item = u32> {
    let (rows, each) = extents(64, k, t, layout.transposed);
    let per = 128 / bits(t);
    (0..rows)
        .flat_map(move |r| (0..each).map(move |c| (r, c)))
        .filter(move |(r, c)| warp == if layout.transposed { c * per } else { *r } / 16)
        .map(move |(r, c)| layout.chunk(r, c))
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
        w.wgmma.flight.insert(*row, (number, pc));
    }
    let layout = |m: &Multiplicand, d: u64| match m {
        Multiplicand::Shared { transposed, .. } => Some(Layout::of(d, *transposed)),
        Multiplicand::Registers { .. } => None,
    };
    let (a, b) = (layout(&m.a, descriptors[0]), layout(&m.b, descriptors[1]));
    let (k, a_depth) = (u32::from(m.k), m.a_depth());
    let of_b = || {
        b.into_iter()
            .flat_map(|b| chunks(b, u32::from(m.n), k, m.b_ty))
    };
    let all = || {
        let of_a = a.into_iter().flat_map(|a| chunks(a, 64, a_depth, m.a_ty));
        of_a.chain(of_b())
    };
    if m.sparse.is_some() && b.is_some_and(|b| b.width == 2 && !b.transposed) {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            "the swizzle of B is 32 bytes wide and a row of B has 64: where the second half lies is not defined".to_owned()
        });
    }
    let size = env.shared.size;
    if let Some(c) = all().find(|c| c + 16 > size) {
        let site = Site {
            address: Some(u64::from(c + env.start())),
            ..site
        };
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("a matrix reaches byte {c} of the block's {size} bytes of shared memory")
        });
    }
    let inside = |c: &u32| c + 16 <= size;
    if cx.sanitize {
        let reader = (WARPGROUPS + group) as u32;
        // Each warp reads its own rows of A, and all of B.
        let own = a
            .into_iter()
            .flat_map(|a| rows_of(a, place as u32, a_depth, m.a_ty));
        let list: Vec<_> = own.chain(of_b()).filter(inside).map(|c| (c, 16)).collect();
        begin_reading(cx, env, w, pc, (reader, u32::MAX), list.into_iter());
    }
    let g = &mut env.groups.list[group];
    let index = (number - g.done.min(number)) as usize;
    if index >= g.queue.len() {
        g.queue.push_back(Operation {
            pc,
            descriptors,
            scale,
            a: [None, None, None, None],
            meta: std::array::from_fn(|_| Box::default()),
            issued: 0,
            chunks: all().filter(inside).collect(),
        });
    }
    let Some(op) = g.queue.get_mut(index) else {
        return;
    };
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
    let chained = m.d.iter().find_map(|row| {
        let (_, other) = w.wgmma.flight.get(row)?;
        match &cx.program.insts[*other].op {
            Op::Wgmma(o) if (o.n, o.d_ty, &o.d) == (m.n, m.d_ty, &m.d) => None,
            _ => Some((*row, *other)),
        }
    });
    let read = fragment.iter().find_map(|row| {
        let (_, other) = w.wgmma.flight.get(row)?;
        match &cx.program.insts[*other].op {
            Op::Wgmma(o) if o.d.contains(row) => Some((*row, *other)),
            _ => None,
        }
    });
    if let Some((row, other)) = chained.or(read) {
        let (name, line) = (name(row), cx.program.meta[other].line);
        env.report(cx, FindingKind::WgmmaInFlight, site, &|| {
            format!("register {name} belongs to the wgmma at line {line} of another shape, for which no wgmma.wait_group has waited")
        });
    }
    let touched =
        m.d.iter()
            .chain(fragment)
            .find(|r| w.wgmma.touched.contains(r));
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
            !w.wgmma.flight.contains_key(r) && defined & w.launched != w.launched
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
        w.wgmma.touched.insert(r.row);
        if let Some((_, other)) = w.wgmma.flight.remove(&r.row) {
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
    w.wgmma.flight.retain(|_, (number, _)| *number >= target);
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
        while env.groups.list[group & 7].done < target {
            let g = &mut env.groups.list[group & 7];
            let Some(op) = g.queue.pop_front_if(|op| op.issued == 15) else {
                break;
            };
            multiply(cx, env, &mut warps[4 * group..4 * group + 4], &op);
            end_reading(env, group, &op);
        }
        let done = env.groups.list[group & 7].done;
        for s in warps[4 * group..4 * group + 4]
            .iter_mut()
            .flat_map(|w| &mut w.splits)
        {
            if matches!(s.state, State::Wgmma(n) if n <= done) {
                s.state = State::Running;
            }
        }
    }
}

/// The operation has read its matrices.
fn end_reading(env: &mut Env, group: usize, op: &Operation) {
    let g = &mut env.groups.list[group & 7];
    g.done += 1;
    let actor = WARPGROUPS + (group & 7);
    let Some(shadow) = &mut env.shadow else {
        g.clocks.push(0);
        return;
    };
    let clock = shadow.clocks.advance(actor as u32);
    g.clocks.push(clock);
    let mut mark = |chunk: u32, value: u32| {
        for u in units(shadow, chunk, 16) {
            shadow.mark_read(u, actor, value);
        }
    };
    for c in &op.chunks {
        mark(*c, clock);
    }
    // What the operations behind it still read.
    for c in g.queue.iter().flat_map(|op| &op.chunks) {
        mark(*c, IN_FLIGHT);
    }
}

/// The values of a matrix in shared memory: `outer` rows (of A) or columns (of B) of depth `k`.
fn load(env: &Env, layout: Layout, outer: u32, k: u32, t: MmaType) -> Vec<f64> {
    let (rows, each) = extents(outer, k, t, layout.transposed);
    let per = 128 / bits(t);
    let mut out = vec![0.0; (outer * k) as usize];
    for r in 0..rows {
        for c in 0..each {
            let at = layout.chunk(r, c);
            for e in 0..per {
                let bit = e * bits(t);
                let word = env.shared.word(at + bit / 32 * 4);
                let x = element(word, (bit % 32 / bits(t)) as usize, t);
                let (i, j) = if layout.transposed {
                    (c * per + e, r)
                } else {
                    (r, c * per + e)
                };
                if let Some(place) = out.get_mut((i * k + j) as usize).filter(|_| j < k) {
                    *place = x;
                }
            }
        }
    }
    out
}

/// A from the fragments of four warps.
fn from_registers(op: &Operation, k: u32, t: MmaType) -> Vec<f64> {
    let e = (32 / bits(t)) as usize;
    let k = k as usize;
    let mut out = vec![0.0; 64 * k];
    for (warp, fragment) in op.a.iter().enumerate() {
        let Some(fragment) = fragment else { continue };
        for (r, row) in fragment.iter().enumerate().take(4) {
            for (lane, word) in row.iter().enumerate() {
                let (g, q) = (lane / 4, lane % 4);
                for i in 0..e {
                    let (m, c) = (16 * warp + g + 8 * (r % 2), e * q + i + 4 * e * (r / 2));
                    out[m * k + c] = element(*word, i, t);
                }
            }
        }
    }
    out
}

fn multiply(cx: &Context<'_>, env: &Env, warps: &mut [Warp], op: &Operation) {
    let Op::Wgmma(m) = &cx.program.insts[op.pc].op else {
        return;
    };
    let (n, k) = (usize::from(m.n), usize::from(m.k));
    let matrix = |x: &Multiplicand, d: u64, outer: u32, k: u32, t: MmaType| match x {
        Multiplicand::Shared {
            transposed,
            negated,
            ..
        } => (load(env, Layout::of(d, *transposed), outer, k, t), *negated),
        Multiplicand::Registers { negated, .. } => (from_registers(op, k, t), *negated),
    };
    let a_depth = m.a_depth() as usize;
    let (a, minus_a) = matrix(&m.a, op.descriptors[0], 64, a_depth as u32, m.a_ty);
    let (b, minus_b) = matrix(&m.b, op.descriptors[1], m.n.into(), k as u32, m.b_ty);
    let sign = if minus_a == minus_b { 1.0 } else { -1.0 };
    let mut by_k = vec![0.0; k * n];
    for (j, column) in b.chunks_exact(k).enumerate() {
        for (l, x) in column.iter().enumerate() {
            by_k[l * n + j] = *x;
        }
    }
    let [ea, eb] = sums::exponents(m.sums, [&a, &by_k]);
    let mut sum = vec![0.0; n];
    for row in 0..64 {
        let (w, r) = (&mut warps[row / 16], row % 16);
        for (j, s) in sum.iter_mut().enumerate() {
            let (register, lane, half) = place(m.d_ty, r, j);
            let word = w.r32[m.d[register] as usize][lane];
            *s = if op.scale {
                element(word, half, m.d_ty)
            } else {
                0.0
            };
        }
        let values: Vec<f64> = a[row * a_depth..][..a_depth]
            .iter()
            .map(|x| x * sign)
            .collect();
        if let Some(s) = &m.sparse {
            let columns = Pattern::of(m.a_ty, m.k, s).columns(&op.meta[row / 16], r);
            sparse::add(m.sums, m.d_ty, &values, &columns, &by_k, &mut sum);
        } else if m.d_ty == MmaType::S32 {
            for (x, column) in values.iter().zip(by_k.chunks_exact(n)) {
                for (s, y) in sum.iter_mut().zip(column) {
                    *s += x * y;
                }
            }
        } else {
            let a = Row {
                values: &values,
                exponents: &ea[row * k..][..k],
            };
            let b = Row {
                values: &by_k,
                exponents: &eb,
            };
            (env.code.adder)(m.sums, &a, &b, &mut sum);
        }
        for (j, s) in sum.iter().enumerate() {
            let (register, lane, half) = place(m.d_ty, r, j);
            let word = &mut w.r32[m.d[register] as usize][lane];
            *word = match m.d_ty {
                MmaType::F16 => {
                    let h = half_of(*s);
                    (*word & !(0xffff << (16 * half))) | h << (16 * half)
                }
                MmaType::S32 if m.satfinite => {
                    s.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32
                }
                MmaType::S32 => *s as i64 as u32,
                _ if s.is_nan() => NAN32,
                _ => (*s as f32).to_bits(),
            };
        }
    }
}

/// Register, lane and half of the accumulator's element (r, j) within a warp's 16 rows.
fn place(d: MmaType, r: usize, j: usize) -> (usize, usize, usize) {
    let i = 4 * (j / 8) + 2 * (r / 8) + j % 2;
    let lane = 4 * (r % 8) + j % 8 / 2;
    if d == MmaType::F16 {
        (i / 2, lane, i % 2)
    } else {
        (i, lane, 0)
    }
}
