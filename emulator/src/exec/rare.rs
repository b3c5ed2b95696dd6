//! Everything that does not need to be in the hot loop: one operation a case.

use super::alu::{Row32, bfi, count64, int16, lop3, put};
use super::step::{Next, combined, comparison, divergent_uni, mark_defined, set_pred};
use super::warp::{State, Warp};
use super::wide::{set_wide, wide};
use super::{Context, Env, Site};
use super::{atomics, barrier, bulk, bulk_groups, cluster, copies, fp, lanes, matrix, mbarrier};
use super::{mem, packed, places, stack, stores, tensor, texture, wgmma};
use crate::ast::Space;
use crate::ir::{Inst, NONE, Op, Reg, Scope};
use crate::report::FindingKind;
use crate::types::File;
use crate::windows::{WINDOW, generic_base};

pub(super) fn get(w: &Warp, r: Reg, lane: usize) -> u64 {
    match r.file {
        File::R64 => w.r64[r.row as usize][lane],
        _ => u64::from(w.r32[r.row as usize][lane]),
    }
}

pub(super) fn set(w: &mut Warp, r: Reg, lane: usize, value: u64) {
    match r.file {
        _ if r.row == NONE => {}
        File::R64 => w.r64[r.row as usize][lane] = value,
        _ => w.r32[r.row as usize][lane] = value as u32,
    }
}

/// Everything that does not need to be in the hot loop.
#[inline(never)]
pub(super) fn rare(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    inst: &Inst,
    mask: u32,
    active: u32,
) -> Next {
    let parted = active != w.live || w.cleared | w.apart != 0;
    if parted && waits(cx, env, w, pc, inst, mask, active) {
        return Next::Stop;
    }
    match &inst.op {
        Op::I16 {
            f,
            signed,
            wide,
            d,
            a,
            b,
            c,
        } => {
            let out = int16(
                *f,
                *signed,
                *wide,
                &w.r32[*a as usize],
                &w.r32[*b as usize],
                &w.r32[*c as usize],
            );
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Count64 { f, d, a } => {
            let out = count64(*f, &w.r64[*a as usize]);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Bfi {
            wide,
            d,
            a,
            b,
            pos,
            len,
        } => {
            for l in mem::lanes_of(active) {
                let (pos, len) = (w.r32[*pos as usize][l], w.r32[*len as usize][l]);
                if *wide {
                    w.r64[*d as usize][l] =
                        bfi(w.r64[*a as usize][l], w.r64[*b as usize][l], pos, len, 64);
                } else {
                    let (a, b) = (w.r32[*a as usize][l], w.r32[*b as usize][l]);
                    w.r32[*d as usize][l] = bfi(u64::from(a), u64::from(b), pos, len, 32) as u32;
                }
            }
        }
        Op::Carry { .. } | Op::MadCarry { .. } => carry(w, &inst.op, active),
        Op::F64 {
            f,
            mode,
            d,
            a,
            b,
            c,
        } => {
            let x = [a, b, c].map(|row| &w.r64[*row as usize]);
            let out = (env.code.float64)(*f, *mode, x);
            put(&mut w.r64[*d as usize], &out, active);
        }
        Op::Half {
            f,
            bf16,
            packed,
            mode,
            d,
            a,
            b,
            c,
        } => {
            let x = [a, b, c].map(|row| &w.r32[*row as usize]);
            let out = (env.code.float16)(*f, *bf16, *packed, *mode, x);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Lop3Pred(x) => {
            let [a, b, c] = x.sources.map(|row| w.r32[row as usize]);
            let out = lop3(x.lut, &a, &b, &c);
            let mut some = 0;
            for (l, v) in out.iter().enumerate() {
                some |= u32::from(*v != 0) << l;
            }
            let q = w.p[x.q as usize] ^ if x.negated { u32::MAX } else { 0 };
            let value = if x.or { some | q } else { some & q };
            if x.d != NONE {
                put(&mut w.r32[x.d as usize], &out, active);
            }
            set_pred(w, x.p, value, active);
        }
        Op::Mov16 { d, a } => {
            let out = w.r32[*a as usize].map(|x| x & 0xffff);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Moves(moves) => {
            let values: Vec<_> = moves.iter().map(|(_, a)| wide(w, *a)).collect();
            for ((d, _), value) in moves.iter().zip(&values) {
                set_wide(w, *d, value, active);
            }
        }
        Op::Pack { d, bits, parts } => (env.code.pack)(w, *d, *bits, parts, active),
        Op::Unpack { a, bits, parts } => (env.code.unpack)(w, *a, *bits, parts, active),
        Op::Clock { d, shift } => {
            let now = (env.clock + u64::from(env.turn)) >> shift;
            for l in mem::lanes_of(active) {
                set(w, *d, l, now);
            }
        }
        Op::CvtPack {
            signed,
            bits,
            d,
            a,
            b,
            c,
        } => packed::cvt_pack(w, *signed, *bits, [*d, *a, *b, *c], active),
        Op::Packed16 { f, signed, d, a, b } => {
            packed::packed16(w, *f, *signed, [*d, *a, *b], active);
        }
        Op::Video(v) => packed::video(w, v, active),
        Op::WmmaMemory(m) => (env.code.wmma_memory)(cx, env, w, pc, m, active),
        Op::WmmaMultiply(m) => {
            lanes::whole_warp(cx, env, w, pc, active);
            (env.code.wmma_multiply)(w, m, active);
        }
        Op::Set { cmp, d, truth } => {
            let holds = comparison(env, w, cmp, false);
            let holds = combined(w, cmp, holds);
            let mut out = [0; 32];
            put(&mut out, &[*truth; 32], holds);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::SetHalf2 { cmp, d, truth } => {
            let (low, high) = (
                comparison(env, w, cmp, false),
                comparison(env, w, cmp, true),
            );
            let (low, high) = (combined(w, cmp, low), combined(w, cmp, high));
            for l in mem::lanes_of(active) {
                let bits = |m: u32| if m >> l & 1 == 1 { truth & 0xffff } else { 0 };
                w.r32[*d as usize][l] = bits(low) | bits(high) << 16;
            }
        }
        Op::SetpHalf2 { cmp, p, q } => {
            let (low, high) = (
                comparison(env, w, cmp, false),
                comparison(env, w, cmp, true),
            );
            let (low, high) = (combined(w, cmp, low), combined(w, cmp, high));
            set_pred(w, *p, low, active);
            set_pred(w, *q, high, active);
        }
        Op::Selp64 { d, a, b, p } => {
            let mut out = w.r64[*b as usize];
            put(&mut out, &w.r64[*a as usize], w.p[*p as usize]);
            put(&mut w.r64[*d as usize], &out, active);
        }
        Op::Slct {
            wide,
            float,
            ftz,
            d,
            a,
            b,
            c,
        } => {
            for l in mem::lanes_of(active) {
                let c = w.r32[*c as usize][l];
                let c = if *ftz { crate::float::flush32(c) } else { c };
                // Minus zero is not below zero; NaN selects b.
                let first = if *float {
                    f32::from_bits(c) >= 0.0
                } else {
                    c as i32 >= 0
                };
                let from = if first { *a } else { *b };
                if *wide {
                    w.r64[*d as usize][l] = w.r64[from as usize][l];
                } else {
                    w.r32[*d as usize][l] = w.r32[from as usize][l];
                }
            }
        }
        Op::Testp { what, wide, d, a } => {
            let mut value = 0;
            for l in 0..32 {
                let x = if *wide {
                    f64::from_bits(w.r64[*a as usize][l])
                } else {
                    f64::from(f32::from_bits(w.r32[*a as usize][l]))
                };
                value |= u32::from(fp::testp(*what, x, *wide)) << l;
            }
            set_pred(w, *d, value, active);
        }
        Op::Atom(a) => (env.code.atom)(cx, env, w, pc, a, active),
        Op::Atom128(a) => atomics::atom128(cx, env, w, pc, a, active),
        Op::Atoms(list) => {
            for a in list {
                (env.code.atom)(cx, env, w, pc, a, active);
            }
        }
        Op::Texture(t) => texture::execute(cx, env, w, pc, t, active),
        Op::TensormapReplace(r) => tensor::replace(cx, env, w, pc, r, active),
        Op::TensormapCopy { dst, src } => tensor::copy_map(cx, env, w, pc, (*dst, *src), active),
        Op::Isspacep { space, d, a } => {
            let row: [u64; 32] = std::array::from_fn(|l| get(w, *a, l));
            let inside = |x: u64, s: Space| x.wrapping_sub(generic_base(s)) < WINDOW;
            let mut value = 0;
            for (l, x) in row.iter().enumerate() {
                let special = [Space::Shared, Space::Local, Space::Param]
                    .into_iter()
                    .find(|s| inside(*x, *s));
                let is = match space {
                    Space::Global => special.is_none(),
                    Space::Shared => {
                        special == Some(Space::Shared) && {
                            places::rank_of(*x, true) as usize == env.rank
                        }
                    }
                    Space::Cluster => special == Some(Space::Shared),
                    s => special == Some(*s),
                };
                value |= u32::from(is) << l;
            }
            set_pred(w, *d, value, active);
        }
        Op::Spin { target, uni } => {
            if active == mask {
                w.splits[w.current].pc = *target;
            } else {
                if *uni {
                    divergent_uni(cx, env, w, pc, mask, active);
                }
                w.diverge(active, *target, pc as u32 + 1, cx.program.reconverge[pc]);
            }
            w.come_round();
            return Next::Stop;
        }
        Op::Brx { index, targets } => return brx(cx, env, w, pc, *index, targets, mask, active),
        Op::Exit => {
            w.splits[w.current].pc = pc as u32 + 1;
            w.exit(active);
            return Next::Stop;
        }
        Op::Missing(number) => {
            let first = env.lacking.map_or(u64::MAX, |(block, _)| block);
            if env.block < first {
                env.lacking = Some((env.block, *number));
            }
            env.full = true;
            env.abort = true;
            return Next::Stop;
        }
        Op::Trap => {
            let site = Site {
                pc,
                warp: w.index,
                lanes: active,
                address: None,
            };
            env.report(cx, FindingKind::Trap, site, &|| {
                "the kernel trapped".to_owned()
            });
            env.abort = true;
            return Next::Stop;
        }
        Op::Bar(bar) if barrier::arrive(cx, env, w, pc, bar, active) => {
            part(cx, w, pc, mask, active);
            if inst.marks.0 != inst.marks.1 {
                mark_defined(cx, w, inst, active);
            }
            let s = &mut w.splits[w.current];
            s.pc = pc as u32 + 1;
            s.state = State::Barrier;
            return Next::Stop;
        }
        Op::BarWarp { mask: row } => {
            let masks = &w.r32[*row as usize];
            let strangers = mem::lanes_of(active)
                .filter(|l| masks[*l] >> l & 1 == 0)
                .fold(0u32, |m, l| m | 1 << l);
            if strangers != 0 {
                let site = Site {
                    pc,
                    warp: w.index,
                    lanes: strangers,
                    address: None,
                };
                let given = masks[strangers.trailing_zeros() as usize & 31];
                env.report(cx, FindingKind::MemberMask, site, &|| {
                    format!(
                        "lanes {} execute this but are not in their mask {given:#010x}",
                        barrier::lane_list(strangers)
                    )
                });
            }
            if warp_sync(cx, env, w, pc, *row, mask, active) {
                return Next::Stop;
            }
        }
        Op::Shfl {
            mode,
            d,
            p,
            a,
            b,
            c,
            mask,
        } => lanes::shfl(cx, env, w, pc, *mode, [*d, *p, *a, *b, *c, *mask], active),
        Op::Vote {
            mode,
            d,
            a,
            negated,
            mask,
        } => lanes::vote(cx, env, w, pc, *mode, [*d, *a, *mask], *negated, active),
        Op::ActiveMask { d } => put(&mut w.r32[*d as usize], &[active; 32], active),
        Op::Redux { f, d, a, mask } => lanes::redux(cx, env, w, pc, *f, [*d, *a, *mask], active),
        Op::Match {
            all,
            wide,
            d,
            p,
            a,
            mask,
        } => {
            lanes::match_sync(cx, env, w, pc, *all, *wide, [*d, *p, *a, *mask], active);
        }
        Op::Stack(op) => stack::stack(cx, env, w, pc, *op, active),
        Op::Elect { d, p, mask } => lanes::elect(cx, env, w, pc, [*d, *p, *mask], active),
        Op::StMatrix(m) => matrix::store(cx, env, w, pc, m, active),
        Op::MovMatrix { d, a } => matrix::transpose(cx, env, w, pc, *d, *a, active),
        Op::CpAsync(c) => copies::issue(cx, env, w, pc, c, active),
        Op::CpCommit => copies::commit(w, active),
        Op::CpWait(n) => copies::wait(env, w, Some(*n), active),
        Op::CpWaitAll => copies::wait(env, w, None, active),
        Op::Mbarrier(m) => return mbarrier::execute(cx, env, w, pc, m, active),
        Op::PendingCount { d, a } => {
            let out = w.r64[*a as usize].map(|x| x as u32 & 0xf_ffff);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Fence(fence) => {
            if let Some(shadow) = &mut env.shadow {
                shadow.fence(w.index as usize, *fence, active);
            }
            if let (Some(shadow), Scope::Cluster) = (&cx.global_shadow, fence.scope) {
                shadow.fence(env.block);
            }
        }
        Op::FenceProxy => {
            env.mbarriers.publish(w.index);
            if let Some(shadow) = &mut env.shadow {
                shadow.fence_proxies(w.index as usize);
            }
        }
        Op::MapRelease => {
            if let Some(fences) = &cx.map_fences {
                fences.release(cx.memory, env.block, w.index);
            }
        }
        Op::MapAcquire(map) => {
            if let Some(fences) = &cx.map_fences {
                let maps = mem::addresses(w, *map);
                for l in mem::lanes_of(active) {
                    fences.acquire(cx.memory, maps[l], env.block);
                }
            }
        }
        Op::FenceMbarrierInit => env.mbarriers.release_inits(w.index, active),
        Op::Mapa {
            generic,
            d,
            a,
            rank,
        } => {
            for l in mem::lanes_of(active) {
                let rank = w.r32[*rank as usize][l];
                let address = places::map(get(w, *a, l), *generic, rank);
                set(w, *d, l, address);
            }
        }
        Op::CtaRank { generic, d, a } => {
            for l in mem::lanes_of(active) {
                let rank = places::rank_of(get(w, *a, l), *generic);
                w.r32[*d as usize][l] = rank;
            }
        }
        Op::ClusterArrive { aligned, relaxed } => {
            cluster::arrive(cx, env, w, pc, (*aligned, *relaxed), active);
        }
        Op::ClusterWait { aligned } if cluster::wait(cx, env, w, pc, *aligned, active) => {
            let s = &mut w.splits[w.current];
            s.pc = pc as u32;
            s.state = State::Cluster;
            return Next::Stop;
        }
        Op::Bulk(b) => bulk::issue(cx, env, w, pc, b, active),
        Op::Tensor(t) => tensor::issue(cx, env, w, pc, t, active),
        Op::StoreAsync(s) => stores::issue(cx, env, w, pc, s, active),
        Op::BulkCommit => {
            for l in mem::lanes_of(active) {
                w.bulk_groups[l] += 1;
            }
        }
        Op::BulkWait { pending, .. } => bulk_groups::wait(cx, env, w, Some(*pending), active),
        Op::Wgmma(m) => wgmma::issue(cx, env, w, pc, m, active),
        Op::WgmmaFence => {
            lanes::whole_warp(cx, env, w, pc, active);
            wgmma::fence(w);
        }
        Op::WgmmaCommit => {
            lanes::whole_warp(cx, env, w, pc, active);
            wgmma::commit(w);
        }
        Op::WgmmaWait(n) => return wgmma::wait(env, w, pc, *n),
        Op::WholeWarp => lanes::whole_warp(cx, env, w, pc, active),
        // The others are in the hot loop, or do nothing.
        _ => {}
    }
    Next::On
}

/// `brx.idx`: lanes go where their index says.
#[allow(clippy::too_many_arguments)] // it needs all of the instruction's surroundings
pub(super) fn brx(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    index: u32,
    targets: &[u32],
    mask: u32,
    active: u32,
) -> Next {
    let row = w.r32[index as usize];
    let outside = mem::lanes_of(active)
        .filter(|&l| row[l] as usize >= targets.len())
        .fold(0u32, |m, l| m | 1 << l);
    if outside != 0 {
        let site = Site {
            pc,
            warp: w.index,
            lanes: outside,
            address: None,
        };
        let n = targets.len();
        env.report(cx, FindingKind::BadOperand, site, &|| {
            format!("an index outside the {n} branch targets")
        });
        env.abort = true;
        return Next::Stop;
    }
    // The current split keeps the lanes not yet sent anywhere.
    let here = w.current;
    w.splits[here].pc = pc as u32 + 1;
    let mut left = mask;
    for (k, target) in targets.iter().enumerate() {
        let go = mem::lanes_of(active & left)
            .filter(|&l| row[l] as usize == k)
            .fold(0u32, |m, l| m | 1 << l);
        if go == 0 {
            continue;
        }
        if go == left {
            w.splits[here].pc = *target;
            return Next::Stop;
        }
        w.diverge(go, *target, pc as u32 + 1, cx.program.reconverge[pc]);
        left &= !go;
    }
    Next::Stop
}

/// Lanes `active` of a split with lanes `mask` come to `bar.warp.sync` with the masks in `row`. Whether some must wait.
fn warp_sync(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    row: u32,
    mask: u32,
    active: u32,
) -> bool {
    for l in mem::lanes_of(active) {
        w.members[l] = w.r32[row as usize][l];
    }
    let complete = w.synchronised(w.at_warp_sync() | active);
    if let Some(shadow) = &mut env.shadow {
        let mut left = complete & active;
        while left != 0 {
            let members = w.members[left.trailing_zeros() as usize & 31];
            shadow.order_lanes_of(w.index as usize, members, w.live);
            left &= !members & !(left & left.wrapping_neg());
        }
    }
    w.meet(complete);
    let waiting = active & !complete;
    if waiting != 0 {
        part(cx, w, pc, mask, waiting);
        let s = &mut w.splits[w.current];
        s.pc = pc as u32 + 1;
        s.state = State::WarpSync;
    }
    waiting != 0
}

/// The mask of the lanes that execute an instruction together, [`NONE`] for the whole warp; nothing if lanes need no others.
fn members(op: &Op) -> Option<u32> {
    match op {
        Op::Bar(bar) => bar.aligned.then_some(NONE),
        Op::ClusterArrive { aligned, .. } | Op::ClusterWait { aligned } => aligned.then_some(NONE),
        Op::Shfl { mask, .. }
        | Op::Vote { mask, .. }
        | Op::Redux { mask, .. }
        | Op::Match { mask, .. }
        | Op::Elect { mask, .. } => Some(*mask),
        Op::LdMatrix(_)
        | Op::StMatrix(_)
        | Op::MovMatrix { .. }
        | Op::Mma(_)
        | Op::WmmaMemory(_)
        | Op::WmmaMultiply(_)
        | Op::Wgmma(_)
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::TensormapCopy { .. }
        | Op::WholeWarp => Some(NONE),
        _ => None,
    }
}

/// Whether lanes `active` of a split with lanes `mask` must wait for others with whom they are to execute the instruction; they stand before it then.
#[cold]
#[inline(never)]
pub(super) fn waits(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    inst: &Inst,
    mask: u32,
    active: u32,
) -> bool {
    let Some((named, barrier)) = awaited(w, inst) else {
        return false;
    };
    if !w.wait_for_others(active, &named, skipping(barrier, mask, active)) {
        return false;
    }
    // It counts when they execute it.
    let count = &mut env.counts[pc];
    count.warps -= 1;
    count.lanes -= u64::from(active.count_ones());
    part(cx, w, pc, mask, active);
    w.stand(pc as u32, barrier);
    true
}

/// What [`waits`] is about to say.
pub(super) fn will_wait(w: &mut Warp, inst: &Inst, mask: u32, active: u32) -> bool {
    active != w.live
        && awaited(w, inst).is_some_and(|(named, barrier)| {
            w.must_wait(active, &named, skipping(barrier, mask, active))
        })
}

/// With whom each lane is to execute an instruction, and whether that is a barrier; nothing if lanes need no others.
fn awaited(w: &Warp, inst: &Inst) -> Option<(Row32, bool)> {
    let named = match members(&inst.op)? {
        NONE => [u32::MAX; 32],
        row => w.r32[row as usize],
    };
    let barrier = matches!(
        inst.op,
        Op::Bar(_) | Op::ClusterArrive { .. } | Op::ClusterWait { .. }
    );
    Some((named, barrier))
}

/// Those of lanes `mask` that are not waited for: the guard keeps them from the instruction. Barriers wait for all the same: another one may be next.
fn skipping(barrier: bool, mask: u32, active: u32) -> u32 {
    if barrier { 0 } else { mask & !active }
}

/// Of lanes `mask` at `pc`, all but the lanes `active` go on; these are the current split.
fn part(cx: &Context<'_>, w: &mut Warp, pc: usize, mask: u32, active: u32) {
    if active != mask {
        let (at, next) = (w.current, pc as u32 + 1);
        w.diverge(mask & !active, next, next, cx.program.reconverge[pc]);
        w.current = at;
    }
}

/// Extended-precision arithmetic through the carry flag (PTX ISA, section 9.7.2).
pub(super) fn carry(w: &mut Warp, op: &Op, active: u32) {
    for l in mem::lanes_of(active) {
        let flag = u128::from(w.carry >> l & 1);
        let out = match op {
            Op::Carry {
                sub,
                wide,
                carry_in,
                carry_out,
                d,
                a,
                b,
            } => {
                let file = if *wide { File::R64 } else { File::R32 };
                let reg = |row: u32| Reg { file, row };
                let bits = if *wide { 64 } else { 32 };
                let mask = (1u128 << bits) - 1;
                let (x, y) = (
                    u128::from(get(w, reg(*a), l)),
                    u128::from(get(w, reg(*b), l)),
                );
                // The hardware subtracts by adding the complement, so the flag after a subtraction is the carry of x + !y + 1: 1
                // without a borrow and 0 with one (seen on an H200 by `addc` after `sub.cc`).
                let r = if *sub {
                    x + (!y & mask) + if *carry_in { flag } else { 1 }
                } else {
                    x + y + if *carry_in { flag } else { 0 }
                };
                set(w, reg(*d), l, (r & mask) as u64);
                carry_out.then_some(r >> bits & 1 == 1)
            }
            Op::MadCarry {
                hi,
                signed,
                wide,
                carry_in,
                carry_out,
                d,
                a,
                b,
                c,
            } => {
                let file = if *wide { File::R64 } else { File::R32 };
                let reg = |row: u32| Reg { file, row };
                let bits = if *wide { 64 } else { 32 };
                let mask = (1u128 << bits) - 1;
                let extend = |v: u64| {
                    if *signed {
                        (v << (64 - bits)) as i64 as i128 >> (64 - bits)
                    } else {
                        i128::from(v)
                    }
                };
                let product =
                    extend(get(w, reg(*a), l)).wrapping_mul(extend(get(w, reg(*b), l))) as u128;
                let part = if *hi {
                    product >> bits & mask
                } else {
                    product & mask
                };
                let r = part + u128::from(get(w, reg(*c), l)) + if *carry_in { flag } else { 0 };
                set(w, reg(*d), l, (r & mask) as u64);
                carry_out.then_some(r >> bits & 1 == 1)
            }
            _ => None,
        };
        if let Some(bit) = out {
            w.carry = (w.carry & !(1 << l)) | u32::from(bit) << l;
        }
    }
}
