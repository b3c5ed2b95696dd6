//! The main loop: one warp, until it waits, ends or has used up its slice.
//!
//! The loop is compiled twice from one source: plainly, and for machines with AVX2 and FMA, where a row of 32 lanes is four vector
//! registers and f32 `fma` is one instruction. Both give the same bits: the plain version computes a fused multiply-add exactly
//! in f64 ([`crate::float::fma32`]).

use super::alu::{int32, int64, lop3, put, shift64, wide};
use super::rare::{self, rare};
use super::rounds;
use super::transfer::before;
use super::undefined::ALL;
use super::warp::{NOWHERE, State, Warp};
use super::{Context, Env, Site};
use super::{barrier, calls, fp32, lanes, matrix, mem, sparse};
use crate::ast::Space;
use crate::ir::{Bool, CmpType, Compare, Inst, NONE, Op};
use crate::report::FindingKind;
use crate::windows::generic_base;

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
    env.code = super::code::simd();
    run::<true>(cx, env, w, slice);
}

fn run_plain(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    run::<false>(cx, env, w, slice);
}

/// Runs splits of `w` in turn.
#[inline(always)]
fn run<const FUSED: bool>(cx: &Context<'_>, env: &mut Env, w: &mut Warp, slice: u32) {
    let mut left = slice;
    let mut effects = env.effects;
    loop {
        let runnable = w
            .splits
            .get(w.current)
            .is_some_and(|s| s.mask != 0 && s.state == State::Running);
        if !runnable && w.is_stopped() {
            return;
        }
        if !(runnable
            || w.rotate()
            || w.serve_warp_sync() && w.rotate()
            || w.give_up_others(false) && w.rotate())
        {
            return;
        }
        let joint = w.begin_joint();
        let (used, over) = run_split::<FUSED>(cx, env, w, left);
        if joint {
            w.end_joint();
        }
        w.steps += u64::from(used);
        env.clock += u64::from(used);
        left = left.saturating_sub(used.max(1));
        let effect = std::mem::replace(&mut effects, env.effects) != env.effects;
        let waits = w.spin(used, effect);
        if over {
            w.rotate();
        }
        if waits || left == 0 || env.abort || w.steps > cx.step_limit {
            return;
        }
    }
}

/// What the current split does after an instruction.
pub(super) enum Next {
    /// Goes on with the next instruction.
    On,
    /// The splits have changed: look again.
    Stop,
}

/// Instructions that a split runs before another gets its turn, once lanes have parted: those that spin for others do not starve them.
const TURN: u32 = 1024;

/// Runs the current split until it stops or its turn is over, after `left` instructions at most. Returns how many it executed, and whether its turn is over.
#[inline(always)]
fn run_split<const FUSED: bool>(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    left: u32,
) -> (u32, bool) {
    let split = w.splits[w.current];
    let mut meet = w.nodes[split.node as usize].meet;
    let mut mask = split.mask;
    let mut pc = split.pc as usize;
    let mut used = 0;
    let mut turn = if w.nodes.len() > 1 {
        left.min(TURN)
    } else {
        left
    };
    if w.joint != 0 {
        (meet, turn) = (NOWHERE, 1);
    }
    loop {
        if pc as u32 == meet {
            w.splits[w.current].pc = meet;
            w.arrive();
            return (used, used >= turn);
        }
        if used >= turn {
            w.splits[w.current].pc = pc as u32;
            return (used, true);
        }
        used += 1;
        let inst = &cx.program.insts[pc];
        let mut active = mask;
        if inst.guard != NONE {
            let p = w.p[inst.guard as usize];
            active &= if inst.negated { !p } else { p };
            if inst.watch & w.watch != 0 {
                before(cx, env, w, pc, mask, active);
            }
            if active == 0 {
                pc += 1;
                continue;
            }
        } else if inst.watch & w.watch != 0 {
            before(cx, env, w, pc, mask, active);
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
                let x = [a, b, c].map(|row| &w.r32[*row as usize]);
                let out = fp32::common::<FUSED>(*f, *mode, x, env.code.float32);
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::I32 { f, d, a, b, c } => int32(*f, &mut w.r32, [*d, *a, *b, *c], active),
            Op::I64 { f, d, a, b, c } => int64(*f, &mut w.r64, [*d, *a, *b, *c], active),
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
            Op::Wide { signed, d, a, b, c } => {
                wide(w, *signed, [*d, *a, *b, *c], active);
            }
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
                let holds = comparison(env, w, cmp, false);
                setp(w, cmp, holds, *p, *q, active);
            }
            Op::Selp32 { d, a, b, p } => {
                let (yes, no, p) = (w.r32[*a as usize], w.r32[*b as usize], w.p[*p as usize]);
                let mut out = no;
                put(&mut out, &yes, p);
                put(&mut w.r32[*d as usize], &out, active);
            }
            Op::Cvt(c) => (env.code.convert)(w, c, active),
            Op::PredLogic { lut, d, a, b } => {
                let (a, b) = (w.p[*a as usize], w.p[*b as usize]);
                let on = |k: u8| if lut >> k & 1 == 1 { u32::MAX } else { 0 };
                let value =
                    (on(3) & a & b) | (on(2) & a & !b) | (on(1) & !a & b) | (on(0) & !a & !b);
                set_pred(w, *d, value, active);
            }
            Op::MovPred { d, a } => {
                let value = w.p[*a as usize];
                set_pred(w, *d, value, active);
            }
            Op::Cvta { to, space, d, a } => {
                let base = generic_base(*space);
                let add = if *to { base.wrapping_neg() } else { base };
                let mut out = w.r64[*a as usize];
                for x in &mut out {
                    *x = x.wrapping_add(add);
                }
                put(&mut w.r64[*d as usize], &out, active);
            }
            Op::Ld(a) => mem::access(cx, env, w, pc, a, active, false),
            Op::St(a) => {
                env.effects += u64::from(!matches!(a.space, Space::Local | Space::Generic));
                mem::access(cx, env, w, pc, a, active, true);
            }
            Op::LdMatrix(_) | Op::Mma(_)
                if active != u32::MAX && rare::waits(cx, env, w, pc, inst, mask, active) =>
            {
                return (used, used >= turn);
            }
            Op::LdMatrix(m) => matrix::load(cx, env, w, pc, m, active),
            Op::Mma(m) => {
                lanes::whole_warp(cx, env, w, pc, active);
                match &m.sparse {
                    Some(s) => sparse::mma(cx, env, w, pc, m, s, active),
                    None => (env.code.mma)(w, m, active),
                }
            }
            Op::Bra { target, uni } => {
                if active == mask {
                    pc = *target as usize;
                    continue;
                }
                if *uni {
                    divergent_uni(cx, env, w, pc, mask, active);
                }
                let (next, join) = (pc as u32 + 1, cx.program.reconverge[pc]);
                let (gone, on) = if next == join {
                    (mask & !active, *target)
                } else if *target == join {
                    (active, next)
                } else {
                    w.diverge(active, *target, next, join);
                    return (used, used >= turn);
                };
                w.leave(gone, join);
                mask &= !gone;
                meet = join;
                pc = on as usize;
                turn = turn.min(used + TURN);
                continue;
            }
            Op::Call(call) => {
                env.turn = used;
                if let Next::Stop = calls::call(cx, env, w, pc, call, mask, active) {
                    return (used, used >= turn);
                }
            }
            Op::Ret => {
                w.splits[w.current].pc = pc as u32 + 1;
                (env.code.ret)(cx, env, w, active);
                return (used, used >= turn);
            }
            _ => {
                env.effects += u64::from(!rounds::is_silent(&inst.op));
                env.turn = used;
                if let Next::Stop = rare(cx, env, w, pc, inst, mask, active) {
                    return (used, used >= turn);
                }
            }
        }
        if inst.marks.0 != inst.marks.1 {
            mark_defined(cx, w, inst, active);
        }
        pc += 1;
    }
}

/// A branch that says that its lanes do not part, and they do.
#[cold]
#[inline(never)]
pub(super) fn divergent_uni(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    mask: u32,
    active: u32,
) {
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    env.report(cx, FindingKind::Divergent, site, &|| {
        format!(
            ".uni, and lanes {} branch while lanes {} do not",
            barrier::lane_list(active),
            barrier::lane_list(mask & !active)
        )
    });
}

/// Notes that the registers of `inst` are written.
#[inline(never)]
pub(super) fn mark_defined(cx: &Context<'_>, w: &mut Warp, inst: &Inst, active: u32) {
    // A warp that watches all has carried undefined bits along.
    if w.watch == ALL {
        return;
    }
    for r in &cx.program.marks[inst.marks.0 as usize..inst.marks.1 as usize] {
        w.define(r.file, r.row, active);
    }
}

/// Lanes in which the comparison holds (of the upper halves if `upper`).
#[inline(always)]
pub(super) fn comparison(env: &Env, w: &Warp, c: &Compare, upper: bool) -> u32 {
    match c.ty {
        CmpType::U64 | CmpType::S64 | CmpType::F64 => {
            let x = [c.a, c.b].map(|row| &w.r64[row as usize]);
            (env.code.compare64)(c.cmp, c.ty, x)
        }
        _ => {
            let x = [c.a, c.b].map(|row| &w.r32[row as usize]);
            (env.code.compare32)(c.cmp, c.ty, x, upper)
        }
    }
}

/// The comparison combined with its predicate.
#[inline(always)]
pub(super) fn combined(w: &Warp, c: &Compare, holds: u32) -> u32 {
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
pub(super) fn set_pred(w: &mut Warp, p: u32, value: u32, active: u32) {
    if p != NONE {
        let old = &mut w.p[p as usize];
        *old = (*old & !active) | (value & active);
    }
}
