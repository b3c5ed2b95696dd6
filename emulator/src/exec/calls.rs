//! Calls and returns (PTX ISA, chapter 7).
//!
//! A call moves a split to the function under a node of its own, at which its lanes meet again when they return; everything else
//! about it is by lane. The callee's frame starts where the caller's ends in the lane's local memory. Arguments are copied into
//! it, results out of it. A function's registers have one place in the warp, so a call of a recursive function puts those of the
//! calling lanes on a stack, and the return takes them back.
//!
//! Lanes that call different functions through a register part, and meet behind the call.

use super::alu::{Row32, Row64, put_lanes};
use super::mem::{get_lane, lanes_of, set_lane};
use super::services;
use super::step::{Next, mark_defined};
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
            enter(cx, env, w, pc, call, index, split, active);
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
        enter(cx, env, w, pc, call, number as u32, split, lanes);
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
    number: u32,
    split: usize,
    lanes: u32,
) {
    let f = &cx.program.functions[number as usize];
    let deepest = lanes_of(lanes).fold(0, |deepest, l| w.ends[l].max(deepest));
    let end = deepest + f.frame + saved_bytes(f);
    if end > STACK {
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
        return;
    }
    w.local.reserve(end);
    // Arguments are read before the callee's registers change: in a recursion they are the caller's.
    let args = Slots::of(w, &call.args);
    let node = w.enter(split, f.entry, pc as u32);
    save(w, f, number, call, node);
    for r in &f.tracked {
        w.undefine(r.file, r.row, lanes);
    }
    let saved = saved_bytes(f);
    let callers = w.frames;
    // Both frames are there while the arguments are copied.
    let mut bases = [0; 32];
    put_lanes(&mut bases, lanes, |l| w.ends[l].wrapping_add(saved));
    put_lanes(&mut w.frames, lanes, |l| bases[l]);
    put_lanes(&mut w.ends, lanes, |l| bases[l].wrapping_add(f.frame));
    w.active[node].callers = callers;
    for (k, (to, from)) in f.params.iter().zip(&call.args).enumerate() {
        copy(w, lanes, (*to, &bases), (*from, &callers), args.get(k));
    }
    for (r, offset) in &f.addresses {
        let place = |l: usize| bases[l].wrapping_add(*offset);
        match r.file {
            File::R64 => put_lanes(&mut w.r64[r.row as usize], lanes, |l| place(l).into()),
            _ => put_lanes(&mut w.r32[r.row as usize], lanes, place),
        }
    }
    for slot in &f.params {
        if let Slot::Register { reg, .. } = slot {
            w.define(reg.file, reg.row, lanes);
        }
    }
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

/// Copies slot `from` to slot `to` in `lanes`, each with the starts of its frames; `values` are those of a register.
fn copy(w: &mut Warp, lanes: u32, to: (Slot, &Row32), from: (Slot, &Row32), values: &Row64) {
    match (to.0, from.0) {
        (Slot::Memory { offset, bytes }, Slot::Memory { offset: source, .. }) => {
            w.local.copy(lanes, (to.1, offset), (from.1, source), bytes);
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
#[inline(never)]
pub(super) fn ret(cx: &Context<'_>, w: &mut Warp, active: u32) {
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
    restore(w, f, call, node, active);
    let saved = saved_bytes(f);
    let callers = w.active[node].callers;
    let bases = w.frames;
    put_lanes(&mut w.frames, active, |l| callers[l]);
    put_lanes(&mut w.ends, active, |l| bases[l].wrapping_sub(saved));
    for (k, (to, from)) in call.returns.iter().zip(&f.returns).enumerate() {
        copy(w, active, (*to, &callers), (*from, &bases), results.get(k));
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

/// The registers of `f` that `call` must preserve.
fn kept<'a>(f: &'a Function, call: &'a Call) -> impl Iterator<Item = Reg> + 'a {
    let addresses = f.addresses.iter().map(|(r, _)| *r);
    let registers = call.live.as_ref().unwrap_or(&f.registers);
    let all = registers.iter().copied().chain(addresses);
    all.filter(|_| f.recursive)
}

/// Starts the activation of `f` that `node` is, and puts the registers of `f` aside.
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
}

/// Takes them back in `lanes`, some of those that called.
fn restore(w: &mut Warp, f: &Function, call: &Call, node: usize, lanes: u32) {
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
                let to = &mut w.r32[row];
                if let Some(from) = rows32.next() {
                    put_lanes(to, lanes, |l| from[l]);
                }
            }
            File::R64 => {
                choose(&mut w.def64[row], *defined);
                let to = &mut w.r64[row];
                if let Some(from) = rows64.next() {
                    put_lanes(to, lanes, |l| from[l]);
                }
            }
        }
    }
}
