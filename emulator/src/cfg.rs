//! Control flow analysis: where divergent lanes meet again, and which register reads need no check.
//!
//! **Reconvergence.** Lanes that part at a branch meet at its immediate post-dominator: the first instruction that every path
//! from the branch to the end passes. Example: `@p bra ELSE; …; bra END; ELSE: …; END:` reconverges at `END`. Post-dominators are
//! found on basic blocks by the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001),
//! run on the reversed graph from the kernel's last exit. Paths that leave at an earlier exit do not count: their lanes are gone, and
//! the others should still meet.
//!
//! **Definite assignment.** A forward must-analysis finds, for every read, whether all paths to it have written the register
//! without a guard. Only the other reads are checked while the kernel runs, and only registers with such reads are tracked, which
//! makes the check for undefined registers nearly free and still exact. What becomes of an undefined value once it is read is for
//! `exec/transfer.rs` to say.

use crate::exec::{ALL, READS};
use crate::ir::{Body, Inst, Multiplicand, NONE, Op, Program, Reg, RowInit};
use crate::types::File;

/// A basic block: instructions `[start, end)`, successors by number, and whether lanes may leave at its end.
pub(crate) struct Block {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) succs: Vec<u32>,
    leaves: bool,
}

/// Fills `reconverge`, `checks` and `marks` of `p`; `uses` has the registers read and written by each instruction.
///
/// Each body is a graph of its own: a call is an instruction like any other, which comes back behind itself.
pub(crate) fn analyse(p: &mut Program, uses: Vec<(Vec<Reg>, Vec<Reg>)>) {
    let graphs: Vec<Vec<Block>> = p.bodies.iter().map(|b| blocks(p, b)).collect();
    p.reconverge = vec![u32::MAX; p.insts.len()];
    for blocks in &graphs {
        reconvergence(&mut p.reconverge, blocks);
    }
    definite_assignment(p, &graphs, &uses);
    crate::liveness::analyse(p, &graphs, &uses);
    for inst in &mut p.insts {
        let checked = inst.checks.0 != inst.checks.1;
        inst.watch = if checked { READS } else { 0 } | (ALL & !READS);
    }
    p.uses = uses;
}

fn blocks(p: &Program, body: &Body) -> Vec<Block> {
    let (start, n) = (body.start as usize, body.end as usize);
    let mut leader = vec![false; n - start];
    leader[0] = true;
    for pc in start..n {
        let inst = &p.insts[pc];
        let ends = match &inst.op {
            Op::Bra { target, .. } => {
                leader[*target as usize - start] = true;
                true
            }
            Op::Brx { targets, .. } => {
                for t in targets {
                    leader[*t as usize - start] = true;
                }
                true
            }
            Op::Exit | Op::Ret | Op::Trap => true,
            _ => false,
        };
        if ends && pc + 1 < n {
            leader[pc + 1 - start] = true;
        }
    }
    let mut block_of = vec![0u32; n - start];
    let mut starts = Vec::new();
    for (i, is_leader) in leader.iter().enumerate() {
        if *is_leader {
            starts.push((start + i) as u32);
        }
        block_of[i] = starts.len() as u32 - 1;
    }
    let block_of = |pc: u32| block_of[pc as usize - start];
    starts
        .iter()
        .enumerate()
        .map(|(b, &start)| {
            let end = starts.get(b + 1).copied().unwrap_or(n as u32);
            let last = &p.insts[end as usize - 1];
            let guarded = last.guard != NONE;
            let fall = (end as usize) < n;
            let mut succs = Vec::new();
            match &last.op {
                Op::Bra { target, .. } => succs.push(block_of(*target)),
                Op::Brx { targets, .. } => {
                    succs.extend(targets.iter().map(|t| block_of(*t)));
                }
                _ => {}
            }
            let transfers = matches!(
                last.op,
                Op::Bra { .. } | Op::Brx { .. } | Op::Exit | Op::Ret | Op::Trap
            );
            if (!transfers || guarded) && fall {
                succs.push(b as u32 + 1);
            }
            succs.sort_unstable();
            succs.dedup();
            Block {
                start,
                end,
                succs,
                leaves: matches!(last.op, Op::Exit | Op::Ret | Op::Trap),
            }
        })
        .collect()
}

/// The last block in the text that the entry reaches and that leaves the kernel; one that some lanes leave, if there is no other: a loop whose only
/// way out is a guarded exit.
fn last_exit(blocks: &[Block]) -> Option<usize> {
    let mut seen = vec![false; blocks.len()];
    let mut stack = vec![0usize];
    seen[0] = true;
    while let Some(b) = stack.pop() {
        for &s in &blocks[b].succs {
            if !std::mem::replace(&mut seen[s as usize], true) {
                stack.push(s as usize);
            }
        }
    }
    let last = |leaves: &dyn Fn(&Block) -> bool| {
        (0..blocks.len())
            .rev()
            .find(|&b| seen[b] && leaves(&blocks[b]))
    };
    last(&|b| b.succs.is_empty()).or_else(|| last(&|b| b.leaves))
}

/// A depth-first walk over the edges `preds` from `start`: what it comes to, in postorder.
fn walk(start: usize, preds: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    let mut stack = vec![(start, 0usize)];
    seen[start] = true;
    while let Some((b, k)) = stack.pop() {
        if let Some(&next) = preds[b].get(k) {
            stack.push((b, k + 1));
            if !seen[next] {
                seen[next] = true;
                stack.push((next, 0));
            }
        } else {
            order.push(b);
        }
    }
}

/// The immediate post-dominators of the blocks in `order`, all of which come to the block `end`, where lanes leave; `number` has their places in it.
fn dominators(
    ipdom: &mut [usize],
    blocks: &[Block],
    (order, number): (&[usize], &[usize]),
    end: usize,
) {
    let exit = blocks.len();
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().rev() {
            let mut new = usize::MAX;
            let succs = blocks[b].succs.iter().map(|&s| s as usize);
            for s in succs.chain((b == end).then_some(exit)) {
                if ipdom[s] == usize::MAX {
                    continue;
                }
                if new == usize::MAX {
                    new = s;
                    continue;
                }
                let (mut x, mut y) = (s, new);
                while x != y {
                    while number[x] < number[y] {
                        x = ipdom[x];
                    }
                    while number[y] < number[x] {
                        y = ipdom[y];
                    }
                }
                new = x;
            }
            if ipdom[b] != new {
                ipdom[b] = new;
                changed = true;
            }
        }
    }
}

/// For every instruction, the first instruction of its block's immediate post-dominator, into `out`.
fn reconvergence(out: &mut [u32], blocks: &[Block]) {
    let n = blocks.len();
    let exit = n;
    let Some(last_exit) = last_exit(blocks) else {
        return;
    };
    // Predecessors in the reversed graph are successors here; order by a depth-first walk from the exit over the reversed edges.
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
    for (b, block) in blocks.iter().enumerate() {
        for &s in &block.succs {
            preds[s as usize].push(b);
        }
    }
    let mut seen = vec![false; n + 1];
    seen[exit] = true;
    let mut number = vec![usize::MAX; n + 1];
    let mut ipdom = vec![usize::MAX; n + 1];
    ipdom[exit] = exit;
    let mut next_exit = Some(last_exit);
    while let Some(end) = next_exit {
        let mut order = Vec::with_capacity(n);
        walk(end, &preds, &mut seen, &mut order);
        for (i, &b) in order.iter().enumerate() {
            number[b] = i;
        }
        number[exit] = order.len();
        dominators(&mut ipdom, blocks, (&order, &number), end);
        // Blocks that never come to the last exit meet on the way to their own: roles of warps that end apart from each other.
        next_exit = (0..n).rev().find(|&b| !seen[b] && blocks[b].leaves);
    }
    for (b, block) in blocks.iter().enumerate() {
        let d = ipdom[b];
        if d < n {
            out[block.start as usize..block.end as usize].fill(blocks[d].start);
        }
    }
}

/// A set of registers as bits.
type Bits = Vec<u64>;

/// The registers of one program, numbered through all files.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    n32: usize,
    n64: usize,
    /// Words of a bit for each.
    pub(crate) words: usize,
}

impl Numbering {
    pub(crate) fn of(p: &Program) -> Self {
        let (n32, n64) = (p.rows32.len(), p.rows64.len());
        let words = (n32 + n64 + p.rows_pred.len()).div_ceil(64);
        Self { n32, n64, words }
    }

    /// The registers of a set.
    fn registers(self, set: &Bits) -> Vec<Reg> {
        let ids = (0..64 * self.words).filter(|id| set[id / 64] >> (id % 64) & 1 != 0);
        let reg = |id: usize| {
            let (file, first) = if id < self.n32 {
                (File::R32, 0)
            } else if id < self.n32 + self.n64 {
                (File::R64, self.n32)
            } else {
                (File::Pred, self.n32 + self.n64)
            };
            let row = (id - first) as u32;
            Reg { file, row }
        };
        ids.map(reg).collect()
    }

    pub(crate) fn id(self, r: Reg) -> usize {
        match r.file {
            File::R32 => r.row as usize,
            File::R64 => self.n32 + r.row as usize,
            File::Pred => self.n32 + self.n64 + r.row as usize,
        }
    }
}

fn definite_assignment(p: &mut Program, graphs: &[Vec<Block>], uses: &[(Vec<Reg>, Vec<Reg>)]) {
    let numbering = Numbering::of(p);
    let mut tracked = vec![0u64; numbering.words];
    let mut checks = Vec::new();
    for (g, blocks) in graphs.iter().enumerate() {
        let mut defined = vec![0; numbering.words];
        for r in &p.bodies[g].defined {
            defined[numbering.id(*r) / 64] |= 1 << (numbering.id(*r) % 64);
        }
        assignments(
            p,
            blocks,
            uses,
            numbering,
            &defined,
            &mut tracked,
            &mut checks,
        );
    }
    p.checks = checks;
    let id = |r: &Reg| numbering.id(*r);
    let asynchronous = wgmma_registers(p);
    for r in &asynchronous {
        tracked[id(r) / 64] |= 1 << (id(r) % 64);
    }
    p.tracked = numbering.registers(&tracked);
    watch(p, uses, &asynchronous);
    for (inst, (_, written)) in p.insts.iter_mut().zip(uses) {
        let first = p.marks.len() as u32;
        p.marks.extend(
            written
                .iter()
                .filter(|r| tracked[id(r) / 64] >> (id(r) % 64) & 1 != 0),
        );
        inst.marks = (first, p.marks.len() as u32);
    }
    for f in &mut p.functions {
        let all = f.registers.iter().copied();
        f.tracked = all
            .filter(|r| tracked[id(r) / 64] >> (id(r) % 64) & 1 != 0)
            .collect();
    }
}

/// The registers that some `wgmma` uses until it is waited for.
fn wgmma_registers(p: &Program) -> Vec<Reg> {
    let mut rows = Vec::new();
    for inst in &p.insts {
        if let Op::Wgmma(m) = &inst.op {
            rows.extend(&m.d);
            if let Multiplicand::Registers { rows: a, .. } = &m.a {
                rows.extend(a);
            }
        }
    }
    rows.sort_unstable();
    rows.dedup();
    let file = File::R32;
    rows.into_iter().map(|row| Reg { file, row }).collect()
}

/// Notes which instructions touch `registers` besides `wgmma`, and gives each a check, which is when the interpreter looks at them.
fn watch(p: &mut Program, uses: &[(Vec<Reg>, Vec<Reg>)], registers: &[Reg]) {
    if registers.is_empty() {
        return;
    }
    let always = p.rows32.iter().position(|r| matches!(r, RowInit::Const(_)));
    for (pc, (read, written)) in uses.iter().enumerate().take(p.insts.len()) {
        if matches!(p.insts[pc].op, Op::Wgmma(_)) {
            continue;
        }
        let touched: Vec<Reg> = read
            .iter()
            .chain(written)
            .filter(|r| {
                registers
                    .binary_search_by_key(&(r.row, 0), |x| (x.row, 0))
                    .is_ok()
            })
            .filter(|r| r.file == File::R32)
            .copied()
            .collect();
        if touched.is_empty() {
            continue;
        }
        p.touches.insert(pc as u32, touched);
        let inst = &mut p.insts[pc];
        if let (true, Some(row)) = (inst.checks.0 == inst.checks.1, always) {
            let first = p.checks.len() as u32;
            p.checks.push(Reg {
                file: File::R32,
                row: row as u32,
            });
            inst.checks = (first, first + 1);
        }
    }
}

/// What `inst` does to the registers that are certainly defined: those that it writes without a guard become so. What it makes of undefined sources is
/// for the interpreter to find out, which watches every instruction from the first read of one on.
fn assign(bits: &mut Bits, inst: &Inst, written: &[Reg], id: &impl Fn(&Reg) -> usize) {
    if inst.guard == NONE {
        for r in written {
            bits[id(r) / 64] |= 1 << (id(r) % 64);
        }
    }
}

/// The checks of one body, which has `defined` on entry.
fn assignments(
    p: &mut Program,
    blocks: &[Block],
    uses: &[(Vec<Reg>, Vec<Reg>)],
    numbering: Numbering,
    defined: &Bits,
    tracked: &mut Bits,
    checks: &mut Vec<Reg>,
) {
    let id = |r: &Reg| numbering.id(*r);
    // out[b] = all registers certainly written when b ends; None while unknown (all).
    let mut out: Vec<Option<Bits>> = vec![None; blocks.len()];
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (b, block) in blocks.iter().enumerate() {
        for &s in &block.succs {
            preds[s as usize].push(b);
        }
    }
    let entry = |b: usize, out: &[Option<Bits>]| -> Option<Bits> {
        if b == 0 {
            return Some(defined.clone());
        }
        let mut known = preds[b].iter().filter_map(|&q| out[q].as_ref());
        let mut bits = known.next()?.clone();
        for other in known {
            for (x, y) in bits.iter_mut().zip(other) {
                *x &= y;
            }
        }
        Some(bits)
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (b, block) in blocks.iter().enumerate() {
            let Some(mut bits) = entry(b, &out) else {
                continue;
            };
            for pc in block.start as usize..block.end as usize {
                assign(&mut bits, &p.insts[pc], &uses[pc].1, &id);
            }
            if out[b].as_ref() != Some(&bits) {
                out[b] = Some(bits);
                changed = true;
            }
        }
    }
    for (b, block) in blocks.iter().enumerate() {
        let Some(mut bits) = entry(b, &out) else {
            continue;
        };
        for pc in block.start as usize..block.end as usize {
            let first = checks.len() as u32;
            for r in &uses[pc].0 {
                let k = id(r);
                if bits[k / 64] >> (k % 64) & 1 == 0 && !checks[first as usize..].contains(r) {
                    tracked[k / 64] |= 1 << (k % 64);
                    checks.push(*r);
                }
            }
            p.insts[pc].checks = (first, checks.len() as u32);
            assign(&mut bits, &p.insts[pc], &uses[pc].1, &id);
        }
    }
}
