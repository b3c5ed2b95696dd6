//! Which registers a recursive call must preserve.
//!
//! A function's registers have one place, so a call of a function that may be active puts its registers aside ([`crate::exec`]). Where a function calls
//! itself by name, those that no path behind the call reads before it writes them need not be kept. Example: of the 58 registers of a quicksort, the
//! pointer and the bounds of the part still to sort are kept at each of its two calls.
//!
//! What a function reads before it writes it, which is an error that the sanitizer reports, is kept at all calls, so that even then the values are those of
//! a call that keeps everything. A function with an instruction that looks at other lanes' registers keeps everything.

use crate::cfg::{Block, Numbering};
use crate::ir::{Callee, NONE, Op, Program, Reg, Slot};

type Bits = Vec<u64>;

/// Fills [`crate::ir::Call::live`].
pub(crate) fn analyse(p: &mut Program, graphs: &[Vec<Block>], uses: &[(Vec<Reg>, Vec<Reg>)]) {
    let numbering = Numbering::of(p);
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
        for (pc, live) in at_calls(p, f as u32, blocks, uses, numbering) {
            let all = p.functions[f].registers.iter().copied();
            let kept = all.filter(|r| has(&live, numbering.id(*r))).collect();
            if let Op::Call(call) = &mut p.insts[pc].op {
                call.live = Some(kept);
            }
        }
    }
}

fn has(bits: &Bits, id: usize) -> bool {
    bits[id / 64] >> (id % 64) & 1 != 0
}

/// The places at which function `f` calls itself, with the registers that are live behind each or at its start.
fn at_calls(
    p: &Program,
    f: u32,
    blocks: &[Block],
    uses: &[(Vec<Reg>, Vec<Reg>)],
    numbering: Numbering,
) -> Vec<(usize, Bits)> {
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
        if let Op::St(a) = &inst.op {
            // Arguments need not be defined, so that `uses` leaves them out.
            for r in a.regs.iter().filter(|r| r.row != NONE) {
                add(bits, r);
            }
        }
        if matches!(inst.op, Op::Ret) {
            // A return reads the registers of results.
            for slot in &p.functions[f as usize].returns {
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
            if let Op::Call(call) = &p.insts[pc].op
                && call.callee == Callee::Function(f)
            {
                let at_start = live.first().into_iter().flatten();
                let kept = bits.iter().zip(at_start).map(|(x, y)| x | y);
                calls.push((pc, kept.collect()));
            }
            step(&mut bits, pc);
        }
    }
    calls
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

    /// What each call of a function by itself keeps, by name, in the order of the text.
    fn kept(text: &str, kernel: &str) -> Vec<Option<Vec<String>>> {
        let module = crate::Module::parse(text).expect("valid PTX");
        let p = &module.kernel(kernel).expect("the kernel").program;
        let name = |r: &Reg| {
            let found = p.names.iter().find(|(reg, _)| reg == r);
            found.map_or_else(String::new, |(_, name)| name.clone())
        };
        let inside = |pc: usize| {
            p.bodies
                .iter()
                .skip(1)
                .any(|b| (b.start as usize..b.end as usize).contains(&pc))
        };
        let calls = p.insts.iter().enumerate().filter(|(pc, _)| inside(*pc));
        let of = |live: &Vec<Reg>| {
            let mut names: Vec<String> = live.iter().map(name).collect();
            names.sort();
            names
        };
        calls
            .filter_map(|(_, inst)| match &inst.op {
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
