//! Calls and returns (PTX ISA, chapter 7).
//!
//! A call moves a split to the function under a node of its own, at which its lanes meet again when they return; everything else
//! about it is by lane. The callee's frame starts where the caller's ends in the lane's local memory. Arguments are copied into
//! it, results out of it. A function's registers have one place in the warp, so a call of a recursive function puts those of the
//! calling lanes on a stack, and the return takes them back.
//!
//! Lanes that call different functions through a register part, and meet behind the call.

use super::mem::{get_lane, lanes_of, set_lane};
use super::services;
use super::step::{Next, mark_defined};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Call, Callee, Function, Op, Slot};
use crate::report::FindingKind;
use crate::types::File;

/// Bytes of a lane's stack: frames and saved registers. The most local memory that a thread of a GPU can have.
pub(super) const STACK: u32 = 512 << 10;

/// `call`.
#[inline(never)]
pub(super) fn call(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    call: &Call,
    mask: u32,
    active: u32,
) -> Next {
    let reg = match call.callee {
        Callee::Service(service) => {
            services::serve(cx, env, w, pc, service, call, active);
            return if env.abort { Next::Stop } else { Next::On };
        }
        Callee::Function(index) => {
            let f = &cx.program.functions[index as usize];
            let after = pc as u32 + 1;
            let split = if active == mask {
                w.current
            } else {
                w.diverge(active, after, after, after)
            };
            w.current = split;
            enter(cx, env, w, pc, call, f, split, active);
            return Next::Stop;
        }
        Callee::Register(reg) => reg,
    };
    let after = pc as u32 + 1;
    let mut left = active;
    let here = w.current;
    w.splits[here].pc = after;
    while left != 0 {
        let target = get_lane(w, reg, left.trailing_zeros() as usize);
        let lanes = lanes_of(left)
            .filter(|&l| get_lane(w, reg, l) == target)
            .fold(0u32, |m, l| m | 1 << l);
        left &= !lanes;
        let functions = &cx.program.functions;
        let found = functions
            .iter()
            .find(|f| crate::ir::function_address(f.number) == target);
        let Some(f) = found.filter(|f| fits(f, call)) else {
            let site = Site {
                pc,
                warp: w.index,
                lanes,
                address: Some(target),
            };
            env.report(cx, FindingKind::BadOperand, site, || match found {
                Some(f) => format!("calls `{}` with other parameters than it has", f.name),
                None => format!("calls {target:#x}, which is no function"),
            });
            env.abort = true;
            return Next::Stop;
        };
        w.current = here;
        let split = if lanes == w.splits[here].mask {
            here
        } else {
            w.diverge(lanes, after, after, after)
        };
        w.current = split;
        enter(cx, env, w, pc, call, f, split, lanes);
        if env.abort {
            return Next::Stop;
        }
    }
    Next::Stop
}

/// Whether `f` has parameters and results of the sizes that `call` passes.
fn fits(f: &Function, call: &Call) -> bool {
    let same = |a: &[Slot], b: &[Slot]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes())
    };
    same(&f.params, &call.args) && same(&f.returns, &call.returns)
}

/// Bytes that `f` takes of the stack besides its frame.
fn saved_bytes(f: &Function) -> u32 {
    if f.recursive {
        // Frames stay aligned to 16 bytes.
        (8 * (f.registers.len() + f.addresses.len()) as u32 + 16).next_multiple_of(16)
    } else {
        0
    }
}

#[allow(clippy::too_many_arguments)] // a call is that much
fn enter(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    call: &Call,
    f: &Function,
    split: usize,
    lanes: u32,
) {
    let mut deepest = 0;
    for l in lanes_of(lanes) {
        deepest = deepest.max(w.frames[l].1);
    }
    let end = deepest + f.frame + saved_bytes(f);
    if end > STACK {
        let site = Site {
            pc,
            warp: w.index,
            lanes,
            address: None,
        };
        env.report(cx, FindingKind::StackOverflow, site, || {
            format!(
                "calling `{}` needs a stack of {end} bytes; a thread has {STACK}",
                f.name
            )
        });
        env.abort = true;
        return;
    }
    w.reserve_local(end);
    if f.recursive && w.saved.is_empty() {
        w.saved = vec![Vec::new(); 32];
    }
    // Arguments are read before the callee's registers change: in a recursion they are the caller's.
    let args: Vec<[u64; 32]> = call.args.iter().map(|s| registers(w, *s)).collect();
    for l in lanes_of(lanes) {
        let (caller, top) = w.frames[l];
        w.callers[l].push(caller);
        let base = top + saved_bytes(f);
        if f.recursive {
            save_all(w, f, l);
        }
        for r in &f.registers {
            w.undefine(r.file, r.row, 1 << l);
        }
        // Both frames are there while the arguments are copied.
        w.frames[l] = (base, base + f.frame);
        for ((to, from), values) in f.params.iter().zip(&call.args).zip(&args) {
            copy(w, l, (*to, base), (*from, caller), values);
        }
        for (r, offset) in &f.addresses {
            set_lane(w, *r, l, u64::from(base.wrapping_add(*offset)), 8, false);
        }
    }
    for slot in &f.params {
        if let Slot::Register { reg, .. } = slot {
            w.define(reg.file, reg.row, lanes);
        }
    }
    w.enter(split, f.entry, pc as u32);
}

/// The values of a register slot; zeros for memory.
fn registers(w: &Warp, slot: Slot) -> [u64; 32] {
    let mut out = [0; 32];
    if let Slot::Register { reg, .. } = slot {
        for (l, value) in out.iter_mut().enumerate() {
            *value = get_lane(w, reg, l);
        }
    }
    out
}

/// Copies slot `from` to slot `to`, each with the start of its frame; `values` are those of a register.
fn copy(w: &mut Warp, lane: usize, to: (Slot, u32), from: (Slot, u32), values: &[u64; 32]) {
    match (to.0, from.0) {
        (Slot::Memory { offset, bytes }, Slot::Memory { offset: source, .. }) => {
            let size = w.local.len() / 32;
            let start = lane * size + (from.1 + source) as usize;
            let target = lane * size + (to.1 + offset) as usize;
            w.local.copy_within(start..start + bytes as usize, target);
        }
        (Slot::Memory { offset, bytes }, Slot::Register { .. }) => {
            w.local_store(lane, u64::from(to.1 + offset), bytes.min(8), values[lane]);
        }
        (Slot::Register { reg, bytes }, Slot::Memory { offset, .. }) => {
            let size = w.local.len() / 32;
            let start = lane * size + (from.1 + offset) as usize;
            let value = super::local::little(&w.local[start..start + bytes.min(8) as usize]);
            set_lane(w, reg, lane, value, 8, false);
        }
        (Slot::Register { reg, .. }, Slot::Register { .. }) => {
            set_lane(w, reg, lane, values[lane], 8, false);
        }
    }
}

/// `ret` in a function.
#[inline(never)]
pub(super) fn ret(cx: &Context<'_>, w: &mut Warp, active: u32) {
    let Some(at) = w.innermost_call() else {
        w.exit(active);
        return;
    };
    let inst = &cx.program.insts[at as usize];
    let Op::Call(call) = &inst.op else {
        w.exit(active);
        return;
    };
    let pc = w.splits[w.current].pc - 1;
    let body = cx
        .program
        .bodies
        .iter()
        .position(|b| (b.start..b.end).contains(&pc));
    let function = body.and_then(|b| b.checked_sub(1));
    let Some(f) = function.and_then(|f| cx.program.functions.get(f)) else {
        w.exit(active);
        return;
    };
    let results: Vec<[u64; 32]> = f.returns.iter().map(|s| registers(w, *s)).collect();
    for l in lanes_of(active) {
        let base = w.frames[l].0;
        let top = base - saved_bytes(f);
        let caller = w.callers[l].pop().unwrap_or(0);
        if f.recursive {
            restore_all(w, f, l);
        }
        for ((to, from), values) in call.returns.iter().zip(&f.returns).zip(&results) {
            copy(w, l, (*to, caller), (*from, base), values);
        }
        w.frames[l] = (caller, top);
    }
    if inst.marks.0 != inst.marks.1 {
        mark_defined(cx, w, inst, active);
    }
    w.return_lanes(active);
}

/// Puts the registers of `f` in one lane on its stack: each its value and whether it is defined.
fn save_all(w: &mut Warp, f: &Function, lane: usize) {
    for r in f.registers.iter().chain(f.addresses.iter().map(|(r, _)| r)) {
        let value = match r.file {
            File::Pred => u64::from(w.p[r.row as usize] >> lane & 1),
            _ => get_lane(w, *r, lane),
        };
        let defined = w.defined(r.file, r.row) >> lane & 1;
        w.saved[lane].push(value);
        w.saved[lane].push(u64::from(defined));
    }
}

/// Takes them back.
fn restore_all(w: &mut Warp, f: &Function, lane: usize) {
    for r in f
        .registers
        .iter()
        .chain(f.addresses.iter().map(|(r, _)| r))
        .rev()
    {
        let defined = w.saved[lane].pop().unwrap_or(0);
        let value = w.saved[lane].pop().unwrap_or(0);
        match r.file {
            File::Pred => {
                let p = &mut w.p[r.row as usize];
                *p = (*p & !(1 << lane)) | (value as u32 & 1) << lane;
            }
            _ => set_lane(w, *r, lane, value, 8, false),
        }
        w.undefine(r.file, r.row, 1 << lane);
        w.define(r.file, r.row, (defined as u32) << lane);
    }
}
