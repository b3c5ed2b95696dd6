//! Which registers a recursive call must preserve.
//!
//! A function's registers have one place, so a call of a function that may be active puts its registers aside ([`crate::exec`]). Where functions call each
//! other by name, those that no path behind the call reads before it writes them need not be kept:
//!
//! - If a function calls itself, those that are read behind this call. Example: of the 58 registers of a quicksort, the pointer and the bounds of the part
//!   still to sort are kept at each of its two calls.
//! - If it is called by another that it may have called itself, those that are read behind any of its calls that may come back to it. Example: of `even`,
//!   which returns what `odd` returns and the other way round, none.
//! - If its caller is never called by it, none: in the lanes that call it is not active.
//!
//! What a function reads before it writes it, which is an error that the sanitizer reports, is kept at all calls, so that even then the values are those of
//! a call that keeps everything. A function with an instruction that looks at other lanes' registers keeps everything.

use crate::cfg::{Block, Numbering};
use crate::ir::{Callee, NONE, Op, Program, Reg, Slot};

type Bits = Vec<u64>;

/// Fills [`crate::ir::Call::live`].
pub(crate) fn analyse(p: &mut Program, graphs: &[Vec<Block>], uses: &[(Vec<Reg>, Vec<Reg>)]) {
    if p.functions.iter().all(|f| !f.recursive) {
        return;
    }
    let numbering = Numbering::of(p);
    let reached: Vec<Vec<bool>> = (0..p.functions.len()).map(|f| reached(p, f)).collect();
    for f in 0..p.functions.len() {
        // The kernel's body comes first.
        let (Some(body), Some(blocks)) = (p.bodies.get(f + 1), graphs.get(f + 1)) else {
            continue;
        };
        let (start, end) = (body.start as usize, body.end as usize);
        let is_lane_wise = p.insts[start..end].iter().all(|i| is_lane_wise(&i.op));
        if !p.functions[f].recursive || !is_lane_wise {
            continue;
        }
        let (mut at_start, behind) = live(p, f, blocks, uses, numbering);
        for r in &body.defined {
            // The call itself writes it.
            let id = numbering.id(*r);
            at_start[id / 64] &= !(1 << (id % 64));
        }
        let union = |all: Bits, some: &Bits| all.iter().zip(some).map(|(x, y)| x | y).collect();
        let comes_back = |pc: usize| match &p.insts[pc].op {
            Op::Call(call) => match call.callee {
                Callee::Function(g) => reached[g as usize][f],
                Callee::Register(_) => true,
                Callee::Service(_) => false,
            },
            _ => false,
        };
        let any = behind.iter().filter(|(pc, _)| comes_back(*pc));
        let any = any.fold(at_start.clone(), |all, (_, live)| union(all, live));
        let registers = p.functions[f].registers.clone();
        for (g, body) in p.bodies.iter().enumerate() {
            for pc in body.start as usize..body.end as usize {
                let Op::Call(call) = &mut p.insts[pc].op else {
                    continue;
                };
                if call.callee != Callee::Function(f as u32) {
                    continue;
                }
                let own = behind.iter().find(|(at, _)| *at == pc);
                let live = match (g.checked_sub(1), own) {
                    (_, Some((_, live))) => union(at_start.clone(), live),
                    (Some(g), None) if reached[f][g] => any.clone(),
                    _ => at_start.clone(),
                };
                let all = registers.iter().copied();
                call.live = Some(all.filter(|r| has(&live, numbering.id(*r))).collect());
            }
        }
    }
}

/// Which functions may be active because function `f` is: `f`, those that it calls, those that they call. Through a register any may be called.
fn reached(p: &Program, f: usize) -> Vec<bool> {
    let mut reached = vec![false; p.functions.len()];
    let mut left = vec![f];
    while let Some(f) = left.pop() {
        if std::mem::replace(&mut reached[f], true) {
            continue;
        }
        let body = p.bodies.get(f + 1);
        let range = body.map_or(0..0, |b| b.start as usize..b.end as usize);
        for inst in &p.insts[range] {
            if let Op::Call(call) = &inst.op {
                match call.callee {
                    Callee::Function(g) => left.push(g as usize),
                    Callee::Register(_) => left.extend(0..p.functions.len()),
                    Callee::Service(_) => {}
                }
            }
        }
    }
    reached
}

fn has(bits: &Bits, id: usize) -> bool {
    bits[id / 64] >> (id % 64) & 1 != 0
}

/// The registers that are live at the start of function `f`, and the places of its calls with those that are live behind each.
fn live(
    p: &Program,
    f: usize,
    blocks: &[Block],
    uses: &[(Vec<Reg>, Vec<Reg>)],
    numbering: Numbering,
) -> (Bits, Vec<(usize, Bits)>) {
    let id = |r: &Reg| numbering.id(*r);
    let add = |bits: &mut Bits, r: &Reg| bits[id(r) / 64] |= 1 << (id(r) % 64);
    // From behind instruction `pc` to before it.
    let step = |bits: &mut Bits, pc: usize| {
        let (inst, (read, written)) = (&p.insts[pc], &uses[pc]);
        if inst.guard == NONE {
            for r in written {
                bits[id(r) / 64] &= !(1 << (id(r) % 64));
            }
        }
        for r in read {
            add(bits, r);
        }
        if matches!(inst.op, Op::Ret) {
            // A return reads the registers of results.
            for slot in &p.functions[f].returns {
                if let Slot::Register { reg, .. } = slot {
                    add(bits, reg);
                }
            }
        }
    };
    // What is live at the start of each block.
    let mut live: Vec<Bits> = vec![vec![0; numbering.words]; blocks.len()];
    let behind = |live: &[Bits], b: usize| {
        let mut bits = vec![0; numbering.words];
        for s in &blocks[b].succs {
            for (to, from) in bits.iter_mut().zip(&live[*s as usize]) {
                *to |= from;
            }
        }
        bits
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (b, block) in blocks.iter().enumerate().rev() {
            let mut bits = behind(&live, b);
            for pc in (block.start..block.end).rev() {
                step(&mut bits, pc as usize);
            }
            changed |= bits != live[b];
            live[b] = bits;
        }
    }
    let mut calls = Vec::new();
    for (b, block) in blocks.iter().enumerate() {
        let mut bits = behind(&live, b);
        for pc in (block.start as usize..block.end as usize).rev() {
            if matches!(p.insts[pc].op, Op::Call(_)) {
                calls.push((pc, bits.clone()));
            }
            step(&mut bits, pc);
        }
    }
    let at_start = live.first().cloned();
    (at_start.unwrap_or_else(|| vec![0; numbering.words]), calls)
}

/// Whether an instruction reads and writes registers of the lanes that execute it only, and of each destination all.
fn is_lane_wise(op: &Op) -> bool {
    matches!(
        op,
        Op::Nop
            | Op::I32 { .. }
            | Op::I64 { .. }
            | Op::Shift64 { .. }
            | Op::Wide { .. }
            | Op::Bfi { .. }
            | Op::Lop3 { .. }
            | Op::F32 { .. }
            | Op::F64 { .. }
            | Op::Mov32 { .. }
            | Op::Mov64 { .. }
            | Op::MovPred { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::Cvt(_)
            | Op::Setp { .. }
            | Op::Selp32 { .. }
            | Op::Selp64 { .. }
            | Op::PredLogic { .. }
            | Op::Ld(_)
            | Op::St(_)
            | Op::Atom(_)
            | Op::Cvta { .. }
            | Op::Bra { .. }
            | Op::Exit
            | Op::Call(_)
            | Op::Ret
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each call of a function that the kernel does not make itself keeps, by name, in the order of the text.
    fn kept(text: &str, kernel: &str) -> Vec<Option<Vec<String>>> {
        calls(text, kernel, 1..)
    }

    /// What each call that the kernel makes itself keeps.
    fn kept_by_kernel(text: &str, kernel: &str) -> Vec<Option<Vec<String>>> {
        calls(text, kernel, 0..1)
    }

    /// What the calls in these bodies keep.
    fn calls(
        text: &str,
        kernel: &str,
        which: impl std::ops::RangeBounds<usize>,
    ) -> Vec<Option<Vec<String>>> {
        let module = crate::Module::parse(text).expect("valid PTX");
        let p = &module.kernel(kernel).expect("the kernel").program;
        let name = |r: &Reg| {
            let found = p.names.iter().find(|(reg, _)| reg == r);
            found.map_or_else(String::new, |(_, name)| name.clone())
        };
        let of = |live: &Vec<Reg>| {
            let mut names: Vec<String> = live.iter().map(name).collect();
            names.sort();
            names
        };
        let bodies = p.bodies.iter().enumerate();
        let bodies = bodies.filter(|(k, _)| which.contains(k));
        let insts = bodies.flat_map(|(_, b)| &p.insts[b.start as usize..b.end as usize]);
        insts
            .filter_map(|inst| match &inst.op {
                Op::Call(call) => Some(call.live.as_ref().map(of)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_quicksort_keeps_the_pointer_and_the_bounds() {
        let text = include_str!("../corpus/quicksort.sm_75.ptx");
        let keeps = |names: [&str; 4]| Some(names.map(str::to_owned).to_vec());
        assert_eq!(
            kept(text, "run"),
            [
                keeps(["%r27", "%r29", "%rd3", "%rd4"]),
                keeps(["%r26", "%r28", "%rd3", "%rd4"]),
            ]
        );
    }

    /// `even` and `odd` return what they get from each other; the kernel is never called by them.
    #[test]
    fn functions_that_call_each_other_keep_nothing_to_return_the_others_result() {
        let text = include_str!("../corpus/mutual_recursion.sm_75.ptx");
        assert_eq!(kept(text, "run"), [Some(vec![]), Some(vec![])]);
        assert_eq!(kept_by_kernel(text, "run"), [Some(vec![])]);
    }

    /// `f` reads `%r1` behind its call of `g`, which calls `f`: so `g` keeps it, and `f`, which is entered anew, does not keep the registers of `g`, none of
    /// which is read behind its call. The kernel keeps nothing.
    #[test]
    fn another_function_keeps_what_the_calls_that_come_back_need() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
             .func g(.reg .b32 %n);\n\
             .func f(.reg .b32 %m)\n{\n.reg .b32 %r<3>;\n.reg .pred %p;\n\
             sub.u32 %r1, %m, 1;\n setp.eq.u32 %p, %m, 0;\n @%p ret;\n\
             call g, (%r1);\n mov.u32 %r2, 0;\n st.local.u32 [%r2], %r1;\n ret;\n}\n\
             .func g(.reg .b32 %n)\n{\n.reg .b32 %q<2>;\n add.u32 %q1, %n, 0;\n call f, (%q1);\n ret;\n}\n\
             .visible .entry k()\n{\n.reg .b32 %a;\n mov.u32 %a, 3;\n call f, (%a);\n ret;\n}\n";
        assert_eq!(
            kept(text, "k"),
            [Some(vec![]), Some(vec!["%r1".to_owned()])]
        );
        assert_eq!(kept_by_kernel(text, "k"), [Some(vec![])]);
    }

    /// `%r3` is read before it is written, so that each call keeps it; `%r2` is dead behind the call; `shfl` looks at other lanes.
    #[test]
    fn what_may_be_read_is_kept() {
        let text = |extra: &str| {
            format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n\
                 .func f(.reg .b32 %n)\n{{\n.reg .b32 %r<5>;\n.reg .pred %p;\n\
                 add.u32 %r1, %n, %r3;\n mov.u32 %r3, 1;\n sub.u32 %r2, %n, 1;\n setp.eq.u32 %p, %n, 0;\n {extra}\n @%p ret;\n\
                 call f, (%r2);\n add.u32 %r4, %r1, 1;\n st.local.u32 [%r4], %n;\n ret;\n}}\n\
                 .visible .entry k()\n{{\n.reg .b32 %a;\n mov.u32 %a, 3;\n call f, (%a);\n ret;\n}}\n"
            )
        };
        let names = ["%n", "%r1", "%r3"].map(str::to_owned).to_vec();
        assert_eq!(kept(&text(""), "k"), [Some(names)]);
        let shuffle = "shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;";
        assert_eq!(kept(&text(shuffle), "k"), [None]);
    }
}
