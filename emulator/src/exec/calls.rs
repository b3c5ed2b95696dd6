//! Calls and returns (PTX ISA, chapter 7).
//!
//! A call moves a split to the function under a node of its own, at which its lanes meet again when they return; everything else
//! about it is by lane. The callee's frame starts where the caller's ends in the lane's local memory. Arguments are copied into
//! it, results out of it. A function's registers have one place in the warp, so a call of a recursive function puts those of the
//! calling lanes on a stack, and the return takes them back.
//!
//! Lanes that call different functions through a register part, and meet behind the call.

use super::local::{chunk, set_chunk};
use super::mem::{get_lane, lanes_of, set_lane};
use super::services;
use super::step::{Next, mark_defined};
use super::warp::Warp;
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
            env.report(cx, FindingKind::BadOperand, site, &|| match found {
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
        env.report(cx, FindingKind::StackOverflow, site, &|| {
            format!(
                "calling `{}` needs a stack of {end} bytes; a thread has {STACK}",
                f.name
            )
        });
        env.abort = true;
        return;
    }
    w.reserve_local(end);
    // Arguments are read before the callee's registers change: in a recursion they are the caller's.
    let args = Slots::of(w, &call.args);
    let node = w.enter(split, f.entry, pc as u32);
    if f.recursive {
        save(w, f, call, node, lanes);
    }
    for r in &f.tracked {
        w.undefine(r.file, r.row, lanes);
    }
    let saved = saved_bytes(f);
    for l in lanes_of(lanes) {
        let (caller, top) = w.frames[l];
        w.callers[l].push(caller);
        let base = top + saved;
        // Both frames are there while the arguments are copied.
        w.frames[l] = (base, base + f.frame);
        for (k, (to, from)) in f.params.iter().zip(&call.args).enumerate() {
            copy(w, l, (*to, base), (*from, caller), args.get(k));
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
            Slot::Register { reg, .. } => std::array::from_fn(|l| get_lane(w, *reg, l)),
            Slot::Memory { .. } => [0; 32],
        });
        Self(values.collect())
    }

    fn get(&self, k: usize) -> &[u64; 32] {
        self.0.get(k).unwrap_or(&[0; 32])
    }
}

/// Copies slot `from` to slot `to`, each with the start of its frame; `values` are those of a register.
fn copy(w: &mut Warp, lane: usize, to: (Slot, u32), from: (Slot, u32), values: &[u64; 32]) {
    match (to.0, from.0) {
        (Slot::Memory { offset, bytes }, Slot::Memory { offset: source, .. }) => {
            let size = w.local.len() / 32;
            let start = lane * size + (from.1 + source) as usize;
            let target = lane * size + (to.1 + offset) as usize;
            match bytes {
                4 => copy_word::<4>(&mut w.local, start, target),
                8 => copy_word::<8>(&mut w.local, start, target),
                _ => w.local.copy_within(start..start + bytes as usize, target),
            }
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

/// Copies `N` bytes, the usual size of an argument.
#[inline(always)]
fn copy_word<const N: usize>(local: &mut [u8], from: usize, to: usize) {
    if let Some(word) = chunk::<N>(local, from) {
        set_chunk(local, to, word);
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
    let results = Slots::of(w, &f.returns);
    if f.recursive {
        restore(w, f, call, node, active);
    }
    let saved = saved_bytes(f);
    for l in lanes_of(active) {
        let base = w.frames[l].0;
        let top = base - saved;
        let caller = w.callers[l].pop().unwrap_or(0);
        for (k, (to, from)) in call.returns.iter().zip(&f.returns).enumerate() {
            copy(w, l, (*to, caller), (*from, base), results.get(k));
        }
        w.frames[l] = (caller, top);
    }
    if inst.marks.0 != inst.marks.1 {
        mark_defined(cx, w, inst, active);
    }
    w.return_lanes(active);
}

/// Registers that a call of a recursive function has put aside: for each the lanes in which it is defined, and its values in the calling lanes.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    lanes: u32,
    words: Vec<u32>,
}

/// The registers of `f` that `call` must preserve.
fn kept<'a>(f: &'a Function, call: &'a Call) -> impl Iterator<Item = Reg> + 'a {
    let addresses = f.addresses.iter().map(|(r, _)| *r);
    let registers = call.live.as_ref().unwrap_or(&f.registers);
    registers.iter().copied().chain(addresses)
}

/// Puts the registers of `f` in `lanes` aside for the call that `node` is.
fn save(w: &mut Warp, f: &Function, call: &Call, node: usize, lanes: u32) {
    if w.saved.len() <= node {
        w.saved.resize_with(node + 1, Saved::default);
    }
    let mut to = std::mem::take(&mut w.saved[node]);
    to.lanes = lanes;
    to.words.clear();
    for r in kept(f, call) {
        let row = r.row as usize;
        to.words.push(w.defined(r.file, r.row));
        match r.file {
            File::Pred => to.words.push(w.p[row]),
            File::R32 => {
                let row = &w.r32[row];
                lanes_of(lanes).for_each(|l| to.words.push(row[l]));
            }
            File::R64 => {
                let row = &w.r64[row];
                for l in lanes_of(lanes) {
                    to.words.push(row[l] as u32);
                    to.words.push((row[l] >> 32) as u32);
                }
            }
        }
    }
    w.saved[node] = to;
}

/// Takes them back in `lanes`, some of those that were saved.
fn restore(w: &mut Warp, f: &Function, call: &Call, node: usize, lanes: u32) {
    let Some(saved) = w.saved.get_mut(node).map(std::mem::take) else {
        return;
    };
    let all = saved.lanes.count_ones() as usize;
    // The place of each lane among those that were saved.
    let places =
        || lanes_of(lanes).map(|l| (l, (saved.lanes & ((1 << l) - 1)).count_ones() as usize));
    let mut rest = saved.words.as_slice();
    for r in kept(f, call) {
        let row = r.row as usize;
        let size = match r.file {
            File::Pred => 1,
            File::R32 => all,
            File::R64 => 2 * all,
        };
        let Some((head, tail)) = rest.split_at_checked(1 + size) else {
            break;
        };
        rest = tail;
        let (defined, values) = (head[0], &head[1..]);
        match r.file {
            File::Pred => w.p[row] = (w.p[row] & !lanes) | (values[0] & lanes),
            File::R32 => {
                for (l, k) in places() {
                    w.r32[row][l] = values[k];
                }
            }
            File::R64 => {
                for (l, k) in places() {
                    w.r64[row][l] = u64::from(values[2 * k]) | u64::from(values[2 * k + 1]) << 32;
                }
            }
        }
        w.undefine(r.file, r.row, lanes);
        w.define(r.file, r.row, lanes & defined);
    }
    w.saved[node] = saved;
}
