//! What a program does, element by element, in a schedule that a seed draws.

use std::collections::BTreeMap;

use tilewright_kernels::devices::{
    Action, Addend, CollectiveKind, Content, Op, Operand, Program, Region,
};
use tilewright_kernels::gemm::Gemm;

/// splitmix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

type Cells = BTreeMap<(u64, u64), i64>;

/// What nobody wrote: any product with it is wrong.
const GARBAGE: i64 = 1 << 40;

fn element(operand: Operand, row: u64, column: u64) -> i64 {
    let salt = match operand {
        Operand::A => 3,
        Operand::B => 5,
        Operand::C => 7,
    };
    ((row * 31 + column * 17 + salt) % 23) as i64 - 11
}

const ALPHA: i64 = 2;
const BETA: i64 = 3;
/// What the epilogue adds: it must be applied once, at the end.
const EPILOGUE: i64 = 1_000_003;

fn cells(region: &Region) -> impl Iterator<Item = (u64, u64)> {
    let columns = region.block.columns.clone();
    let rows = region.block.rows.clone();
    rows.flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// The queues that a driver puts operations into, in the order of the program: one that waits holds up those behind it.
#[derive(Clone, Copy)]
pub(crate) enum Queues {
    /// Each stream has its own.
    Streams,
    /// What leaves a device for another one shares a queue: what four H100s do.
    Copies,
    /// That, and the streams of a device share this many.
    Few(usize),
}

impl Queues {
    /// Numbers of the queues besides its stream's own that an operation is in.
    fn of(self, op: &Op, program: &Program) -> Vec<usize> {
        let leaves = match &op.action {
            Action::Copy { from, .. } => Some(program.buffers[from.buffer].device),
            _ => None,
        };
        let leaves = leaves.filter(|&source| source != op.device);
        match self {
            Self::Streams => Vec::new(),
            Self::Copies => leaves.into_iter().collect(),
            Self::Few(count) => {
                let shared = program.devices + op.device * count + op.stream % count;
                leaves.into_iter().chain([shared]).collect()
            }
        }
    }
}

/// What went wrong in one schedule, if anything.
pub(crate) fn interpret(program: &Program, seed: u64) -> Result<(), String> {
    let queues = match seed % 4 {
        0 => Queues::Streams,
        1 => Queues::Copies,
        few => Queues::Few(few as usize - 1),
    };
    interpret_in(program, seed, queues)
}

/// The same with these queues.
pub(crate) fn interpret_in(program: &Program, seed: u64, shared: Queues) -> Result<(), String> {
    let mut rng = Rng(seed);
    let mut memory: Vec<Cells> = Vec::new();
    for buffer in &program.buffers {
        let given = match &buffer.content {
            Content::Nothing => Cells::new(),
            Content::Given(block) => all(block, buffer.operand),
            Content::Everything => all(&buffer.block, buffer.operand),
        };
        memory.push(given);
    }
    let streams = program.devices * program.streams;
    let mut queues = vec![Vec::new(); streams];
    // Of each operation of a stream, its places in shared queues; of each of those, how many have left it.
    let mut places = vec![Vec::new(); streams];
    let (mut lengths, mut left) = (BTreeMap::new(), BTreeMap::new());
    for op in &program.ops {
        let stream = op.device * program.streams + op.stream;
        queues[stream].push(op);
        let at = shared.of(op, program).into_iter().map(|queue| {
            let length = lengths.entry(queue).or_insert(0_usize);
            *length += 1;
            (queue, *length - 1)
        });
        places[stream].push(at.collect::<Vec<_>>());
    }
    let mut next = vec![0; streams];
    let mut set = vec![false; program.flags];
    // Of each stream, how likely it is to be held back: some schedules have slow links, others slow kernels.
    let slow: Vec<usize> = (0..streams).map(|_| rng.below(4)).collect();
    loop {
        // The streams whose next operation is at the head of its queues.
        let at_head: Vec<bool> = (0..streams)
            .map(|s| {
                let places = places[s].get(next[s]);
                places.is_some_and(|all| {
                    all.iter()
                        .all(|(queue, place)| left.get(queue).copied().unwrap_or(0) == *place)
                })
            })
            .collect();
        let ready: Vec<usize> = (0..streams)
            .filter(|&s| {
                at_head[s]
                    && queues[s].get(next[s]).is_some_and(|op| match &op.action {
                        Action::Wait(flag) => set[*flag],
                        Action::Collective(part) => {
                            let here = (0..streams).filter(|&s| {
                                let head = queues[s].get(next[s]).map(|op| &op.action);
                                at_head[s]
                                    && matches!(head, Some(Action::Collective(p)) if p.number == part.number)
                            });
                            here.count() == program.devices
                        }
                        _ => true,
                    })
            })
            .collect();
        let mut leave = |stream: usize, next: usize| {
            for (queue, _) in &places[stream][next] {
                *left.entry(*queue).or_insert(0) += 1;
            }
        };
        if ready.is_empty() {
            break;
        }
        let mut stream = ready[rng.below(ready.len())];
        for _ in 0..slow[stream] {
            stream = ready[rng.below(ready.len())];
        }
        let op = queues[stream][next[stream]];
        if matches!(op.action, Action::Collective(_)) {
            let heads: Vec<&Op> = (0..streams)
                .filter_map(|s| queues[s].get(next[s]).copied())
                .collect();
            for s in collect(&heads, &mut memory, op, program) {
                leave(s, next[s]);
                next[s] += 1;
            }
            continue;
        }
        leave(stream, next[stream]);
        next[stream] += 1;
        match &op.action {
            Action::Set(flag) => set[*flag] = true,
            Action::Wait(_) | Action::Collective(_) => {}
            Action::Copy { from, to } => {
                for cell in cells(from) {
                    let value = memory[from.buffer].get(&cell).copied().unwrap_or(GARBAGE);
                    memory[to.buffer].insert(cell, value);
                }
            }
            Action::Product(product) => {
                for (row, column) in cells(&product.c) {
                    let get =
                        |buffer: usize, cell| memory[buffer].get(&cell).copied().unwrap_or(GARBAGE);
                    let old = get(product.c.buffer, (row, column));
                    let mut sum = match product.addend {
                        Addend::Nothing => 0,
                        Addend::Old => BETA * old,
                        Addend::Partial => old,
                    };
                    for k in product.depth().clone() {
                        let a = get(product.a.buffer, (row, k));
                        let b = get(product.b.buffer, (k, column));
                        sum = sum.wrapping_add(ALPHA.wrapping_mul(a).wrapping_mul(b));
                    }
                    if product.finishes {
                        sum = sum.wrapping_add(EPILOGUE);
                    }
                    memory[product.c.buffer].insert((row, column), sum);
                }
            }
        }
    }
    if (0..streams).any(|s| next[s] < queues[s].len()) {
        return Err("hangs".to_owned());
    }
    let Gemm { k, beta, .. } = program.problem;
    for (device, result) in program.results.iter().enumerate() {
        for (row, column) in cells(result) {
            let mut expected = EPILOGUE;
            for at in 0..k {
                expected += ALPHA * element(Operand::A, row, at) * element(Operand::B, at, column);
            }
            if beta != 0.0 {
                expected += BETA * element(Operand::C, row, column);
            }
            let found = memory[result.buffer].get(&(row, column)).copied();
            if found != Some(expected) {
                return Err(format!(
                    "C({row}, {column}) on device {device} is {found:?}, not {expected}"
                ));
            }
        }
    }
    Ok(())
}

/// The collective that `op` is a part of: what all devices give is read, and then everything is written. Gives the streams that it was on.
fn collect(heads: &[&Op], memory: &mut [Cells], op: &Op, program: &Program) -> Vec<usize> {
    let part = |op: &Op| match &op.action {
        Action::Collective(part) => Some(part.clone()),
        _ => None,
    };
    let number = part(op).map(|part| part.number);
    let parts: Vec<_> = heads
        .iter()
        .filter_map(|op| Some((op.device * program.streams + op.stream, part(op)?)))
        .filter(|(_, part)| Some(part.number) == number)
        .collect();
    let get = |buffer: usize, cell| memory[buffer].get(&cell).copied().unwrap_or(GARBAGE);
    let mut written = Vec::new();
    for (_, part) in &parts {
        match part.kind {
            CollectiveKind::AllGather => {
                for (_, giver) in &parts {
                    for cell in cells(&giver.from) {
                        written.push((part.to.buffer, cell, get(giver.from.buffer, cell)));
                    }
                }
            }
            CollectiveKind::ReduceScatter => {
                for cell in cells(&part.to) {
                    let terms = parts.iter().map(|(_, giver)| get(giver.from.buffer, cell));
                    // Nothing is applied behind a sum: the epilogue of such a problem is none, which stands here for being applied once.
                    let sum = terms.fold(EPILOGUE, i64::wrapping_add);
                    written.push((part.to.buffer, cell, sum));
                }
            }
        }
    }
    for (buffer, cell, value) in written {
        memory[buffer].insert(cell, value);
    }
    parts.into_iter().map(|(stream, _)| stream).collect()
}

fn all(block: &layout_core::devices::Block, operand: Operand) -> Cells {
    let region = Region {
        buffer: 0,
        block: block.clone(),
    };
    cells(&region)
        .map(|(row, column)| ((row, column), element(operand, row, column)))
        .collect()
}
