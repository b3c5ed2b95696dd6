//! Calls and returns (PTX ISA, chapter 7).
//!
//! A call moves a split to the function under a node of its own, at which its lanes meet again when they return; everything else
//! about it is by lane. The callee's frame starts where the caller's ends in the lane's local memory. Arguments are copied into
//! it, results out of it. A function's registers have one place in the warp, so a call of a recursive function puts those of the
//! calling lanes on a stack, and the return takes them back.
//!
//! Lanes that call different functions through a register part, and meet behind the call.

use super::alu::{Row32, Row64, put};
use super::compare::mask_of;
use super::mem::{get_lane, lanes_of, set_lane};
use super::services;
use super::step::{Next, mark_defined};
use super::undefined::{ALL, Passed};
use super::warp::Warp;
use super::wide::{set_wide, wide};
use super::{Context, Env, Site};
use crate::ir::{Call, Callee, Function, Op, Reg, Slot};
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
            env.effects += 1;
            services::serve(cx, env, w, pc, service, call, active);
            return if env.abort { Next::Stop } else { Next::On };
        }
        Callee::Function(index) => {
            let after = pc as u32 + 1;
            let split = if active == mask {
                w.current
            } else {
                w.diverge(active, after, after, after)
            };
            w.current = split;
            (env.code.enter)(cx, env, w, pc, call, index, split, active);
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
            .enumerate()
            .find(|(_, f)| crate::ir::function_address(f.number) == target);
        let Some((number, _)) = found.filter(|(_, f)| fits(f, call)) else {
            let site = Site {
                pc,
                warp: w.index,
                lanes,
                address: Some(target),
            };
            env.report(cx, FindingKind::BadOperand, site, &|| match found {
                Some((_, f)) => format!("calls `{}` with other parameters than it has", f.name),
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
        (env.code.enter)(cx, env, w, pc, call, number as u32, split, lanes);
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

/// Split `split`, which is the lanes `lanes`, enters function `number`.
#[allow(clippy::too_many_arguments)] // a call is that much
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn enter(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    call: &Call,
    number: u32,
    split: usize,
    lanes: u32,
) {
    let f = &cx.program.functions[number as usize];
    let need = f.frame + saved_bytes(f);
    // Mostly the stack has been as deep before.
    let is_deep = w.local.bytes().checked_sub(need).is_none_or(|room| {
        let deep = mask_of(|l| w.ends[l] > room);
        lanes & deep != 0
    });
    if is_deep && !deepen(cx, env, w, pc, f, need, lanes) {
        return;
    }
    // Arguments are read before the callee's registers change: in a recursion they are the caller's.
    let args = Slots::of(w, &call.args);
    let undefined = Passed::of(w, &mut env.origins, pc, &call.args);
    let node = w.enter(split, f.entry, pc as u32);
    save(w, f, number, call, node);
    for r in &f.tracked {
        w.undefine(r.file, r.row, lanes);
    }
    // Both frames are there while the arguments are copied.
    let callers = w.frames;
    let bases = above(&w.ends, saved_bytes(f));
    put(&mut w.frames, &bases, lanes);
    put(&mut w.ends, &above(&bases, f.frame), lanes);
    w.active[node].callers = callers;
    let frames = Frames::of(&callers, &bases, lanes);
    for (k, (to, from)) in f.params.iter().zip(&call.args).enumerate() {
        copy(w, &frames, (*to, &bases), (*from, &callers), args.get(k));
        if let Some(undefined) = &undefined {
            undefined.pass(w, k, lanes, (*to, &bases), (*from, &callers));
        }
    }
    for (r, offset) in &f.addresses {
        let places = above(&bases, *offset);
        if r.file == File::R32 {
            put(&mut w.r32[r.row as usize], &places, lanes);
            continue;
        }
        let mut wide = [0; 32];
        for l in 0..32 {
            wide[l] = u64::from(places[l]);
        }
        put(&mut w.r64[r.row as usize], &wide, lanes);
    }
    for slot in f.params.iter().filter(|_| undefined.is_none()) {
        if let Slot::Register { reg, .. } = slot {
            w.define(reg.file, reg.row, lanes);
        }
    }
}

/// What is so many bytes above `row`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn above(row: &Row32, bytes: u32) -> Row32 {
    let mut out = *row;
    for x in &mut out {
        *x = x.wrapping_add(bytes);
    }
    out
}

/// Makes the stack `need` bytes larger, for a call of `f`; false, and a finding, if it may not be that large.
#[cold]
#[inline(never)]
fn deepen(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    f: &Function,
    need: u32,
    lanes: u32,
) -> bool {
    let end = lanes_of(lanes).fold(0, |deepest, l| w.ends[l].max(deepest)) + need;
    if end <= STACK {
        w.local.reserve(end);
        return true;
    }
    let site = Site {
        pc,
        warp: w.index,
        lanes,
        address: None,
    };
    env.report(cx, FindingKind::StackOverflow, site, &|| {
        format!(
            "calling `{}` needs a stack of {end} bytes; a thread has {STACK}",
            f.name
        )
    });
    env.abort = true;
    false
}

/// The values of register slots before a call or return changes registers.
struct Slots(Vec<[u64; 32]>);

impl Slots {
    /// Those of `slots`; nothing is kept if all are memory, as compilers have it.
    fn of(w: &Warp, slots: &[Slot]) -> Self {
        let is_register = |s: &Slot| matches!(s, Slot::Register { .. });
        if !slots.iter().any(is_register) {
            return Self(Vec::new());
        }
        let values = slots.iter().map(|slot| match slot {
            Slot::Register { reg, .. } => wide(w, *reg),
            Slot::Memory { .. } => [0; 32],
        });
        Self(values.collect())
    }

    fn get(&self, k: usize) -> &[u64; 32] {
        self.0.get(k).unwrap_or(&[0; 32])
    }
}

/// The lanes of a call, and whether their frames, the callers' and the callee's, start in one place each.
struct Frames {
    lanes: u32,
    together: bool,
}

impl Frames {
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn of(callers: &Row32, bases: &Row32, lanes: u32) -> Self {
        let first = lanes.trailing_zeros() as usize & 31;
        let (caller, base) = (callers[first], bases[first]);
        let apart = mask_of(|l| (callers[l] ^ caller) | (bases[l] ^ base) != 0);
        Self {
            lanes,
            together: lanes & apart == 0,
        }
    }
}

/// Copies slot `from` to slot `to`, each with the starts of its frames; `values` are those of a register.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn copy(w: &mut Warp, f: &Frames, to: (Slot, &Row32), from: (Slot, &Row32), values: &Row64) {
    let lanes = f.lanes;
    match (to.0, from.0) {
        (Slot::Memory { offset, bytes }, Slot::Memory { offset: source, .. }) => {
            let (to, from) = ((to.1, offset), (from.1, source));
            if !(f.together && w.local.copy_rows(lanes, to, from, bytes)) {
                w.local.copy(lanes, to, from, bytes);
            }
        }
        (Slot::Memory { offset, bytes }, Slot::Register { .. }) => {
            for l in lanes_of(lanes) {
                let at = u64::from(to.1[l] + offset);
                w.local_store(l, at, bytes.min(8), values[l]);
            }
        }
        (Slot::Register { reg, bytes }, Slot::Memory { offset, .. }) => {
            for l in lanes_of(lanes) {
                let at = u64::from(from.1[l] + offset);
                let value = w.local.load(l, at, bytes.min(8));
                set_lane(w, reg, l, value, 8, false);
            }
        }
        (Slot::Register { reg, .. }, Slot::Register { .. }) => {
            set_wide(w, reg, values, lanes);
        }
    }
}

/// `ret` in a function.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn ret(cx: &Context<'_>, env: &mut Env, w: &mut Warp, active: u32) {
    let Some((node, at)) = w.innermost_call() else {
        w.exit(active);
        return;
    };
    let inst = &cx.program.insts[at as usize];
    let number = w.active[node].function as usize;
    let (Op::Call(call), Some(f)) = (&inst.op, cx.program.functions.get(number)) else {
        w.exit(active);
        return;
    };
    let results = Slots::of(w, &f.returns);
    let pc = w.splits[w.current].pc as usize - 1;
    let undefined = Passed::of(w, &mut env.origins, pc, &f.returns);
    restore(w, f, call, node, active);
    let saved = saved_bytes(f);
    let callers = w.active[node].callers;
    let bases = w.frames;
    put(&mut w.frames, &callers, active);
    put(&mut w.ends, &above(&bases, saved.wrapping_neg()), active);
    let frames = Frames::of(&callers, &bases, active);
    for (k, (to, from)) in call.returns.iter().zip(&f.returns).enumerate() {
        copy(w, &frames, (*to, &callers), (*from, &bases), results.get(k));
        if let Some(undefined) = &undefined {
            undefined.pass(w, k, active, (*to, &callers), (*from, &bases));
        }
    }
    if inst.marks.0 != inst.marks.1 {
        mark_defined(cx, w, inst, active);
    }
    w.return_lanes(active);
}

/// A call that has not returned in all its lanes.
#[derive(Debug, Default)]
pub(crate) struct Activation {
    /// The callee, by its place in [`crate::ir::Program::functions`].
    function: u32,
    /// Where the callers' frames start, by lane.
    callers: Row32,
    /// The registers that the call of a recursive function has put aside, whole rows in the order of [`kept`]: the lanes in which each is defined, and
    /// what predicates and the others hold.
    defined: Vec<u32>,
    predicates: Vec<u32>,
    r32: Vec<Row32>,
    r64: Vec<Row64>,
}

impl Activation {
    /// Adds what it holds to a digest.
    pub(super) fn digest(&self, add: &mut impl FnMut(u64)) {
        add(u64::from(self.function));
        self.callers.iter().for_each(|x| add(u64::from(*x)));
        self.predicates.iter().for_each(|x| add(u64::from(*x)));
        self.r32.iter().flatten().for_each(|x| add(u64::from(*x)));
        self.r64.iter().flatten().for_each(|x| add(*x));
    }
}

/// The registers of `f` that `call` must preserve.
fn kept<'a>(f: &'a Function, call: &'a Call) -> impl Iterator<Item = Reg> + 'a {
    let addresses = f.addresses.iter().map(|(r, _)| *r);
    let registers = call.live.as_ref().unwrap_or(&f.registers);
    let all = registers.iter().copied().chain(addresses);
    all.filter(|_| f.recursive)
}

/// Starts the activation of `f` that `node` is, and puts the registers of `f` aside.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn save(w: &mut Warp, f: &Function, number: u32, call: &Call, node: usize) {
    if w.active.len() <= node {
        w.active.resize_with(node + 1, Activation::default);
    }
    let to = &mut w.active[node];
    to.function = number;
    to.defined.clear();
    to.predicates.clear();
    to.r32.clear();
    to.r64.clear();
    for r in kept(f, call) {
        let row = r.row as usize;
        match r.file {
            File::Pred => {
                to.defined.push(w.def_p[row]);
                to.predicates.push(w.p[row]);
            }
            File::R32 => {
                to.defined.push(w.def32[row]);
                to.r32.push(w.r32[row]);
            }
            File::R64 => {
                to.defined.push(w.def64[row]);
                to.r64.push(w.r64[row]);
            }
        }
    }
    if w.watch == ALL {
        let mut defined = std::mem::take(&mut to.defined);
        defined.clear();
        defined.extend(kept(f, call).map(|r| w.defined(r.file, r.row)));
        w.active[node].defined = defined;
    }
}

/// Takes them back in `lanes`, some of those that called.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn restore(w: &mut Warp, f: &Function, call: &Call, node: usize, lanes: u32) {
    if w.watch == ALL {
        let defined = std::mem::take(&mut w.active[node].defined);
        for (r, defined) in kept(f, call).zip(&defined) {
            w.define(r.file, r.row, lanes & defined);
            w.undefine(r.file, r.row, lanes & !defined);
        }
        w.active[node].defined = defined;
    }
    let from = &w.active[node];
    let mut predicates = from.predicates.iter();
    let (mut rows32, mut rows64) = (from.r32.iter(), from.r64.iter());
    let choose = |old: &mut u32, new: u32| *old = (*old & !lanes) | (new & lanes);
    for (r, defined) in kept(f, call).zip(&from.defined) {
        let row = r.row as usize;
        match r.file {
            File::Pred => {
                choose(&mut w.def_p[row], *defined);
                if let Some(p) = predicates.next() {
                    choose(&mut w.p[row], *p);
                }
            }
            File::R32 => {
                choose(&mut w.def32[row], *defined);
                if let Some(from) = rows32.next() {
                    put(&mut w.r32[row], from, lanes);
                }
            }
            File::R64 => {
                choose(&mut w.def64[row], *defined);
                if let Some(from) = rows64.next() {
                    put(&mut w.r64[row], from, lanes);
                }
            }
        }
    }
}
