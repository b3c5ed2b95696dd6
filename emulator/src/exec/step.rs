//! The main loop: one warp, until it waits, ends or has used up its slice.
//!
//! The loop is compiled twice from one source: plainly, and for machines with AVX2 and FMA, where a row of 32 lanes is four vector
//! registers and f32 `fma` is one instruction. Both give the same bits: the plain version computes a fused multiply-add exactly
//! in f64 ([`crate::float::fma32`]).

use super::alu::{bfi, count64, int16, int32, int64, lop3, put, shift64};
use super::warp::{State, Warp};
use super::{Context, Env, Site};
use super::{barrier, copies, cvt, fp, lanes, matrix, mem, mma};
use crate::ast::Space;
use crate::ir::{Bool, CmpType, Compare, Inst, IntOp, NONE, Op, Reg};
use crate::report::FindingKind;
use crate::shared::{WINDOW, generic_base};
use crate::types::File;

/// Whether the fast version can run here.
pub(crate) fn simd_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("lzcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Lets `w` run for up to `slice` instructions.
pub(crate) fn run_warp(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    #[cfg(target_arch = "x86_64")]
    if cx.simd {
        // SAFETY: `simd` is `simd_available()`, which has found every feature that `run_simd` is compiled for.
        #[allow(unsafe_code)]
        unsafe {
            run_simd(cx, env, w, slice);
        }
        return;
    }
    run_plain(cx, env, w, slice);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
fn run_simd(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    run::<true>(cx, env, w, slice);
}

fn run_plain(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    run::<false>(cx, env, w, slice);
}

/// Runs splits of `w` in turn.
#[inline(always)]
fn run<const FUSED: bool>(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    let mut left = slice;
    loop {
        let runnable = w
            .splits
            .get(w.current)
            .is_some_and(|s| s.mask != 0 && s.state == State::Running);
        if !runnable && !w.rotate() && !(w.serve_warp_sync() && w.rotate()) {
            return;
        }
        // Once lanes have parted each split gets a short turn, so that lanes spinning for others do
        // not starve them.
        let turn = if w.nodes.len() > 1 {
            left.min(1024)
        } else {
            left
        };
        let polls = w.polls;
        let used = run_split::<FUSED>(cx, env, w, turn);
        w.steps += u64::from(used);
        left = left.saturating_sub(used.max(1));
        if left == 0 || env.abort || w.steps > cx.step_limit {
            return;
        }
        if used >= turn {
            if w.polls != polls {
                w.let_waiting_go();
            }
            w.rotate();
        }
    }
}

/// What the current split does after an instruction.
enum Next {
    /// Goes on with the next instruction.
    On,
    /// The splits have changed: look again.
    Stop,
}

/// Runs the current split until it stops or has executed `budget` instructions; returns how many it executed.
#[inline(always)]
fn run_split<const FUSED: bool>(cx: &Context<'_>, env: &mut Env, w: &mut Warp, budget: u32) -> u32 {
    let split = w.splits[w.current];
    let meet = w.nodes[split.node as usize].meet;
    let mask = split.mask;
    let mut pc = split.pc as usize;
    let mut used = 0;
    loop {
        if pc as u32 == meet {
            w.splits[w.current].pc = meet;
            w.arrive();
            return used;
        }
        if used >= budget {
            w.splits[w.current].pc = pc as u32;
            return used;
        }
        used += 1;
        let inst = &cx.program.insts[pc];
        let mut active = mask;
        if inst.guard != NONE {
            let p = w.p[inst.guard as usize];
            active &= if inst.negated { !p } else { p };
            if cx.sanitize && inst.checks.0 != inst.checks.1 {
                check_defined(cx, env, w, pc, inst, mask, active);
            }
            if active == 0 {
                pc += 1;
                continue;
            }
        } else if cx.sanitize && inst.checks.0 != inst.checks.1 {
            check_defined(cx, env, w, pc, inst, mask, active);
        }
        let count = &mut env.counts[pc];
        count.warps += 1;
        count.lanes += u64::from(active.count_ones());
        match &inst.op {
            Op::F32 {
                f,
                mode,
                d,
                a,
                b,
                c,
            } => {
                let out = fp::float32::<FUSED>(
                    *f,
                    *mode,
                    &w.r32[*a as usize],
                    &w.r32[*b as usize],
                    &w.r32[*c as usize],
                );
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::I32 { f, d, a, b, c } => {
                let out = int32(
                    *f,
                    &w.r32[*a as usize],
                    &w.r32[*b as usize],
                    &w.r32[*c as usize],
                );
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::I64 { f, d, a, b, c } => {
                let out = int64(
                    *f,
                    &w.r64[*a as usize],
                    &w.r64[*b as usize],
                    &w.r64[*c as usize],
                );
                put(&mut w.r64[*d as usize], &out, active);
            }
            Op::Mov32 { d, a } => {
                let out = w.r32[*a as usize];
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::Mov64 { d, a } => {
                let out = w.r64[*a as usize];
                put(&mut w.r64[*d as usize], &out, active);
            }
            Op::Lop3 { lut, d, a, b, c } => {
                let out = lop3(
                    *lut,
                    &w.r32[*a as usize],
                    &w.r32[*b as usize],
                    &w.r32[*c as usize],
                );
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::Wide { signed, d, a, b, c } => wide(w, *signed, [*d, *a, *b, *c], active),
            Op::Shift64 { f, d, a, b, c } => {
                let out = shift64(
                    *f,
                    &w.r64[*a as usize],
                    &w.r32[*b as usize],
                    &w.r32[*c as usize],
                );
                put(&mut w.r64[*d as usize], &out, active);
            }
            Op::Setp { cmp, p, q } => {
                let holds = comparison(w, cmp, false);
                setp(w, cmp, holds, *p, *q, active);
            }
            Op::Selp32 { d, a, b, p } => {
                let (yes, no, p) = (w.r32[*a as usize], w.r32[*b as usize], w.p[*p as usize]);
                let mut out = no;
                put(&mut out, &yes, p);
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::Ld(a) => mem::access(cx, env, w, pc, a, active, false),
            Op::St(a) => mem::access(cx, env, w, pc, a, active, true),
            Op::LdMatrix(m) => matrix::load(cx, env, w, pc, m, active),
            Op::Mma(m) => {
                lanes::whole_warp(cx, env, w, pc, active);
                mma::mma(w, m, active);
            }
            Op::Bra { target } => {
                if active == mask {
                    pc = *target as usize;
                } else {
                    w.diverge(active, *target, pc as u32 + 1, cx.program.reconverge[pc]);
                    return used;
                }
                continue;
            }
            _ => {
                if let Next::Stop = rare(cx, env, w, pc, inst, mask, active) {
                    return used;
                }
            }
        }
        if inst.marks.0 != inst.marks.1 {
            mark_defined(cx, w, inst, active);
        }
        pc += 1;
    }
}

/// Reports sources that were never written, in lanes that execute the instruction (for the guard: that reach it).
#[inline(never)]
fn check_defined(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    inst: &Inst,
    mask: u32,
    active: u32,
) {
    for i in inst.checks.0..inst.checks.1 {
        let r = cx.program.checks[i as usize];
        let is_guard = r.file == File::Pred && r.row == inst.guard;
        let mut needed = if is_guard { mask } else { active };
        // A selection needs only what it selects.
        if let Op::Selp32 { a, b, p, .. } | Op::Selp64 { a, b, p, .. } = &inst.op {
            if r.file != File::Pred && a != b {
                let p = w.p[*p as usize];
                needed &= if r.row == *a { p } else { !p };
            }
        }
        let missing = needed & !w.defined(r.file, r.row);
        if missing != 0 {
            let site = Site {
                pc,
                warp: w.index,
                lanes: missing,
                address: None,
            };
            env.report(cx, FindingKind::UndefinedRegister, site, || {
                let name = cx
                    .program
                    .names
                    .iter()
                    .find(|(reg, _)| *reg == r)
                    .map_or("?", |(_, n)| n.as_str());
                format!(
                    "register {name} is used but was never written in lanes {}",
                    barrier::lane_list(missing)
                )
            });
            // Once is enough for each value.
            w.define(r.file, r.row, missing);
        }
    }
}

#[inline(never)]
fn mark_defined(cx: &Context<'_>, w: &mut Warp, inst: &Inst, active: u32) {
    for i in inst.marks.0..inst.marks.1 {
        let r = cx.program.marks[i as usize];
        w.define(r.file, r.row, active);
    }
}

#[inline(always)]
fn wide(w: &mut Warp, signed: bool, rows: [u32; 4], active: u32) {
    let [d, a, b, c] = rows;
    let (x, y) = (&w.r32[a as usize], &w.r32[b as usize]);
    let mut out = [0u64; 32];
    for i in 0..32 {
        out[i] = if signed {
            (i64::from(x[i] as i32) * i64::from(y[i] as i32)) as u64
        } else {
            u64::from(x[i]) * u64::from(y[i])
        };
    }
    if c != NONE {
        let z = &w.r64[c as usize];
        for i in 0..32 {
            out[i] = out[i].wrapping_add(z[i]);
        }
    }
    put(&mut w.r64[d as usize], &out, active);
}

/// Lanes in which the comparison holds (of the upper halves if `upper`).
#[inline(always)]
fn comparison(w: &Warp, c: &Compare, upper: bool) -> u32 {
    match c.ty {
        CmpType::U64 | CmpType::S64 | CmpType::F64 => {
            fp::compare64(c.cmp, c.ty, &w.r64[c.a as usize], &w.r64[c.b as usize])
        }
        _ => fp::compare32(
            c.cmp,
            c.ty,
            &w.r32[c.a as usize],
            &w.r32[c.b as usize],
            upper,
        ),
    }
}

/// The comparison combined with its predicate.
#[inline(always)]
fn combined(w: &Warp, c: &Compare, holds: u32) -> u32 {
    let Some((op, row, negated)) = c.combine else {
        return holds;
    };
    let other = w.p[row as usize] ^ if negated { u32::MAX } else { 0 };
    match op {
        Bool::And => holds & other,
        Bool::Or => holds | other,
        Bool::Xor => holds ^ other,
    }
}

#[inline(always)]
fn setp(w: &mut Warp, c: &Compare, holds: u32, p: u32, q: u32, active: u32) {
    let (first, second) = (combined(w, c, holds), combined(w, c, !holds));
    set_pred(w, p, first, active);
    set_pred(w, q, second, active);
}

#[inline(always)]
fn set_pred(w: &mut Warp, p: u32, value: u32, active: u32) {
    if p != NONE {
        let old = &mut w.p[p as usize];
        *old = (*old & !active) | (value & active);
    }
}

fn get(w: &Warp, r: Reg, lane: usize) -> u64 {
    match r.file {
        File::R64 => w.r64[r.row as usize][lane],
        _ => u64::from(w.r32[r.row as usize][lane]),
    }
}

fn set(w: &mut Warp, r: Reg, lane: usize, value: u64) {
    match r.file {
        _ if r.row == NONE => {}
        File::R64 => w.r64[r.row as usize][lane] = value,
        _ => w.r32[r.row as usize][lane] = value as u32,
    }
}

/// Everything that does not need to be in the hot loop.
#[inline(never)]
fn rare(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    inst: &Inst,
    mask: u32,
    active: u32,
) -> Next {
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
            let out = fp::float64(
                *f,
                *mode,
                &w.r64[*a as usize],
                &w.r64[*b as usize],
                &w.r64[*c as usize],
            );
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
            let out = fp::half(
                *f,
                *bf16,
                *packed,
                *mode,
                &w.r32[*a as usize],
                &w.r32[*b as usize],
                &w.r32[*c as usize],
            );
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::Mov16 { d, a } => {
            let out = w.r32[*a as usize].map(|x| x & 0xffff);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::MovPred { d, a } => {
            let value = w.p[*a as usize];
            set_pred(w, *d, value, active);
        }
        Op::Pack { d, bits, parts } => {
            for l in mem::lanes_of(active) {
                let field = (1u64 << bits) - 1;
                let value = parts
                    .iter()
                    .rev()
                    .fold(0u64, |v, r| v << bits | (get(w, *r, l) & field));
                set(w, *d, l, value);
            }
        }
        Op::Unpack { a, bits, parts } => {
            for l in mem::lanes_of(active) {
                let value = get(w, *a, l);
                for (k, r) in parts.iter().enumerate() {
                    set(
                        w,
                        *r,
                        l,
                        value >> (k as u32 * u32::from(*bits)) & ((1u64 << bits) - 1),
                    );
                }
            }
        }
        Op::Clock { d } => {
            for l in mem::lanes_of(active) {
                // Time is the number of instructions of this warp, in steps that differ.
                let now = w.steps + env.counts[pc].warps;
                set(w, *d, l, now);
            }
        }
        Op::Cvt(c) => cvt::convert(w, c, active),
        Op::Set { cmp, d, truth } => {
            let holds = comparison(w, cmp, false);
            let holds = combined(w, cmp, holds);
            let mut out = [0; 32];
            put(&mut out, &[*truth; 32], holds);
            put(&mut w.r32[*d as usize], &out, active);
        }
        Op::SetHalf2 { cmp, d, truth } => {
            let (low, high) = (comparison(w, cmp, false), comparison(w, cmp, true));
            let (low, high) = (combined(w, cmp, low), combined(w, cmp, high));
            for l in mem::lanes_of(active) {
                let bits = |m: u32| if m >> l & 1 == 1 { truth & 0xffff } else { 0 };
                w.r32[*d as usize][l] = bits(low) | bits(high) << 16;
            }
        }
        Op::SetpHalf2 { cmp, p, q } => {
            let (low, high) = (comparison(w, cmp, false), comparison(w, cmp, true));
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
            d,
            a,
            b,
            c,
        } => {
            for l in mem::lanes_of(active) {
                let c = w.r32[*c as usize][l];
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
        Op::PredLogic { f, d, a, b } => {
            let (a, b) = (w.p[*a as usize], w.p[*b as usize]);
            let value = match f {
                IntOp::And => a & b,
                IntOp::Or => a | b,
                IntOp::Xor => a ^ b,
                _ => !a,
            };
            set_pred(w, *d, value, active);
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
        Op::Atom(a) => mem::atom(cx, env, w, pc, a, active),
        Op::Cvta { to, space, d, a } => {
            let base = generic_base(*space);
            let out = w.r64[*a as usize].map(|x| {
                if *to {
                    x.wrapping_sub(base)
                } else {
                    x.wrapping_add(base)
                }
            });
            put(&mut w.r64[*d as usize], &out, active);
        }
        Op::Isspacep { space, d, a } => {
            let row = &w.r64[*a as usize];
            let inside = |x: u64, s: Space| x.wrapping_sub(generic_base(s)) < WINDOW;
            let mut value = 0;
            for (l, x) in row.iter().enumerate() {
                let special = [Space::Shared, Space::Local, Space::Param]
                    .into_iter()
                    .find(|s| inside(*x, *s));
                let is = match space {
                    Space::Global => special.is_none(),
                    s => special == Some(*s),
                };
                value |= u32::from(is) << l;
            }
            set_pred(w, *d, value, active);
        }
        Op::Brx { index, targets } => return brx(cx, env, w, pc, *index, targets, mask, active),
        Op::Exit => {
            w.splits[w.current].pc = pc as u32 + 1;
            w.exit(active);
            return Next::Stop;
        }
        Op::Trap => {
            let site = Site {
                pc,
                warp: w.index,
                lanes: active,
                address: None,
            };
            env.report(cx, FindingKind::Trap, site, || {
                "the kernel trapped".to_owned()
            });
            env.abort = true;
            return Next::Stop;
        }
        Op::Bar(bar) => {
            if barrier::arrive(cx, env, w, pc, bar, active) {
                if active != mask {
                    // Lanes whose guard is false go on; the others wait on their own.
                    let at = w.current;
                    w.diverge(
                        mask & !active,
                        pc as u32 + 1,
                        pc as u32 + 1,
                        cx.program.reconverge[pc],
                    );
                    w.current = at;
                }
                if inst.marks.0 != inst.marks.1 {
                    mark_defined(cx, w, inst, active);
                }
                let s = &mut w.splits[w.current];
                s.pc = pc as u32 + 1;
                s.state = State::Barrier;
                return Next::Stop;
            }
        }
        Op::BarWarp { mask: row } => {
            let lane = active.trailing_zeros() as usize & 31;
            let named = w.r32[*row as usize][lane];
            if let Some(shadow) = &mut env.shadow {
                shadow.tick(w.index as usize);
            }
            if named & w.live & !active != 0 {
                let s = &mut w.splits[w.current];
                s.pc = pc as u32 + 1;
                s.state = State::WarpSync(named);
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
        Op::Elect { d, p, mask } => lanes::elect(cx, env, w, pc, [*d, *p, *mask], active),
        Op::StMatrix(m) => matrix::store(cx, env, w, pc, m, active),
        Op::MovMatrix { d, a } => matrix::transpose(cx, env, w, pc, *d, *a, active),
        Op::CpAsync(c) => copies::issue(cx, env, w, pc, c, active),
        Op::CpCommit => copies::commit(w, active),
        Op::CpWait(n) => copies::wait(env, w, Some(*n), active),
        Op::CpWaitAll => copies::wait(env, w, None, active),
        // The others are in the hot loop, or do nothing.
        _ => {}
    }
    Next::On
}

/// `brx.idx`: lanes go where their index says.
#[allow(clippy::too_many_arguments)] // it needs all of the instruction's surroundings
fn brx(
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
        env.report(cx, FindingKind::BadOperand, site, || {
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

/// Extended-precision arithmetic through the carry flag (PTX ISA, section 9.7.2).
fn carry(w: &mut Warp, op: &Op, active: u32) {
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
                let c = if *carry_in { flag } else { 0 };
                // A subtraction borrows: the flag holds the borrow.
                let r = if *sub {
                    x.wrapping_sub(y).wrapping_sub(c)
                } else {
                    x + y + c
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
