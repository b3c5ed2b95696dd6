//! Programs over devices against brute force.
//!
//! The interpreter below knows nothing of the prover: devices have integer matrices, a seed draws which stream goes on, and at the end C must be what
//! one device computes. Programs that the prover takes are right in every schedule that is tried; mutated ones that are wrong in some schedule must
//! be refused.

use std::collections::BTreeMap;

use layout_codegen::devices::{
    Action, Addend, Content, DevicesError, Fault, Operand, Placement, Program, Region,
};
use layout_codegen::gemm::{Gemm, Operands};

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
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

/// What went wrong in one schedule, if anything.
fn interpret(program: &Program, seed: u64) -> Result<(), String> {
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
    for op in &program.ops {
        queues[op.device * program.streams + op.stream].push(op);
    }
    let mut next = vec![0; streams];
    let mut set = vec![false; program.flags];
    // Of each stream, how likely it is to be held back: some schedules have slow links, others slow kernels.
    let slow: Vec<usize> = (0..streams).map(|_| rng.below(4)).collect();
    loop {
        let ready: Vec<usize> = (0..streams)
            .filter(|&s| {
                queues[s].get(next[s]).is_some_and(|op| match op.action {
                    Action::Wait(flag) => set[flag],
                    _ => true,
                })
            })
            .collect();
        if ready.is_empty() {
            break;
        }
        let mut stream = ready[rng.below(ready.len())];
        for _ in 0..slow[stream] {
            stream = ready[rng.below(ready.len())];
        }
        let op = queues[stream][next[stream]];
        next[stream] += 1;
        match &op.action {
            Action::Set(flag) => set[*flag] = true,
            Action::Wait(_) => {}
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

fn all(block: &layout_core::devices::Block, operand: Operand) -> Cells {
    let region = Region {
        buffer: 0,
        block: block.clone(),
    };
    cells(&region)
        .map(|(row, column)| ((row, column), element(operand, row, column)))
        .collect()
}

/// Placements that there are programs for.
const PLACEMENTS: [&str; 12] = [
    "rows,columns,columns",
    "rows,columns,rows",
    "rows,replicas,rows",
    "replicas,columns,columns",
    "columns,columns,rows",
    "rows,rows,columns",
    "columns,rows,rows",
    "columns,rows,columns",
    "columns,rows,replicas",
    "rows,columns,replicas",
    "columns,columns,columns",
    "replicas,replicas,rows",
];

fn problem(rng: &mut Rng) -> Gemm {
    let size = |rng: &mut Rng| 1 + rng.below(14) as u64;
    let mut problem = Gemm::packed(size(rng), size(rng), size(rng), Operands::ALL[rng.below(4)]);
    problem.beta = [0.0, 0.5][rng.below(2)];
    problem
}

fn programs(count: usize) -> Vec<(String, Program)> {
    let mut rng = Rng(16);
    let mut made = Vec::new();
    for number in 0..count {
        let problem = problem(&mut rng);
        let devices = [1, 2, 3, 4, 8][rng.below(5)];
        let text = match PLACEMENTS.get(number % (PLACEMENTS.len() + 2)) {
            Some(text) => (*text).to_owned(),
            None => match devices {
                4 => "2x2,2x2,2x2".to_owned(),
                8 => "2x4,4x2,2x4".to_owned(),
                p => format!("{p}x1,1x{p},{p}x1"),
            },
        };
        let placement = Placement::parse(&text, &problem, devices).unwrap();
        let program = Program::derive(&problem, &placement)
            .unwrap_or_else(|e| panic!("{text} on {devices}: {e}"));
        let Gemm { m, n, k, beta, .. } = problem;
        made.push((format!("{m}x{n}x{k} β={beta} {text} on {devices}"), program));
    }
    made
}

#[test]
fn proven_programs_are_right_in_every_schedule() {
    for (name, program) in programs(200) {
        program.prove().unwrap_or_else(|e| panic!("{name}: {e}"));
        for seed in 0..12 {
            interpret(&program, seed).unwrap_or_else(|e| panic!("{name}, seed {seed}: {e}"));
        }
    }
}

#[test]
fn links_carry_what_the_movement_says() {
    let mut rng = Rng(5);
    for number in 0..60 {
        let problem = problem(&mut rng);
        let devices = 2 + rng.below(3);
        let text = PLACEMENTS[number % PLACEMENTS.len()];
        let placement = Placement::parse(text, &problem, devices).unwrap();
        let moves = placement.movements().unwrap();
        let program = Program::derive(&problem, &placement).unwrap();
        let proof = program.prove().unwrap();
        let carried: u64 = proof.links.values().sum();
        if placement.sums_move() {
            // A ring sends each chunk past all others once; with β, the old chunk first goes to where the sum begins; replicas get the result.
            let Gemm { m, n, beta, .. } = problem;
            let p = devices as u64;
            let mut expected = m * n * (p - 1);
            if beta != 0.0 {
                // A chunk of the ring that begins at its own owner's successor.
                expected += m * n;
            }
            if text.ends_with("replicas") {
                expected += m * n * (p - 1);
            }
            assert_eq!(carried, expected, "{text} {problem:?} on {devices}");
        } else {
            let idle = |device: usize| placement.c.shard(device).is_empty();
            let used: u64 = [&moves.a, &moves.b]
                .iter()
                .flat_map(|moved| moved.pieces())
                .filter(|piece| !idle(piece.to))
                .map(|piece| piece.shard.elements())
                .sum();
            assert_eq!(carried, used, "{text} {problem:?} on {devices}");
        }
    }
}

/// A program with one mistake, and what it is; none if there is no place for it.
fn mutate(program: &Program, kind: usize, rng: &mut Rng) -> Option<(String, Program)> {
    let mut mutant = program.clone();
    let of = |wanted: fn(&Action) -> bool| -> Vec<usize> {
        let ops = program.ops.iter().enumerate();
        ops.filter(|(_, op)| wanted(&op.action))
            .map(|(i, _)| i)
            .collect()
    };
    let pick = |from: Vec<usize>, rng: &mut Rng| -> Option<usize> {
        (!from.is_empty()).then(|| from[rng.below(from.len())])
    };
    let is_wait = |action: &Action| matches!(action, Action::Wait(_));
    let is_copy = |action: &Action| matches!(action, Action::Copy { .. });
    let is_product = |action: &Action| matches!(action, Action::Product(_));
    let name = match kind {
        0 => {
            let at = pick(of(is_wait), rng)?;
            mutant.ops.remove(at);
            "a wait dropped"
        }
        1 => {
            // A flag early: before the copy or product that it announces.
            let sets = of(|action| matches!(action, Action::Set(_)));
            let at = pick(sets, rng)?;
            let before = (0..at).rev().find(|&i| {
                let (a, b) = (&program.ops[i], &program.ops[at]);
                a.device == b.device && a.stream == b.stream && !is_wait(&a.action)
            })?;
            mutant.ops.swap(before, at);
            "a flag early"
        }
        2 => {
            let at = pick(of(is_copy), rng)?;
            mutant.ops.remove(at);
            "a copy dropped"
        }
        3 => {
            // The shard of another device: a rotation off by one.
            let at = pick(of(is_copy), rng)?;
            let Action::Copy { from, .. } = &mut mutant.ops[at].action else {
                return None;
            };
            let buffer = &program.buffers[from.buffer];
            let other = (0..program.buffers.len()).find(|&i| {
                let b = &program.buffers[i];
                b.name == buffer.name && b.device == (buffer.device + 1) % program.devices
            })?;
            from.buffer = other;
            "a rotation off by one"
        }
        4 => {
            let at = pick(of(is_product), rng)?;
            mutant.ops.remove(at);
            "a product dropped"
        }
        5 => {
            let at = pick(of(is_product), rng)?;
            let again = mutant.ops[at].clone();
            mutant.ops.insert(at + 1, again);
            "a product twice"
        }
        6 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            product.addend = match product.addend {
                Addend::Nothing | Addend::Old => Addend::Partial,
                Addend::Partial => Addend::Nothing,
            };
            "an addend mistaken"
        }
        7 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            product.finishes = !product.finishes;
            "the epilogue at the wrong time"
        }
        8 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            if product.c.block.rows.end - product.c.block.rows.start < 2 {
                return None;
            }
            product.c.block.rows.end -= 1;
            product.a.block.rows.end -= 1;
            "a row forgotten"
        }
        9 => {
            let at = pick(of(is_wait), rng)?;
            let Action::Wait(flag) = &mut mutant.ops[at].action else {
                return None;
            };
            *flag = rng.below(program.flags);
            "a wait for another flag"
        }
        10 => {
            let at = pick(of(is_copy), rng)?;
            let Action::Copy { from, to } = &mut mutant.ops[at].action else {
                return None;
            };
            if from.block.columns.end - from.block.columns.start < 2 {
                return None;
            }
            from.block.columns.end -= 1;
            to.block.columns.end -= 1;
            "a column forgotten"
        }
        11 => {
            // The copy on another stream than the flag behind it.
            let at = pick(of(is_copy), rng)?;
            mutant.ops[at].stream = (mutant.ops[at].stream + 1) % program.streams;
            "a copy on another stream"
        }
        12 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            if product.depth().end - product.depth().start < 2 {
                return None;
            }
            product.a.block.columns.end -= 1;
            product.b.block.rows.end -= 1;
            "an index of the sums forgotten"
        }
        _ => {
            let buffer = pick((0..program.buffers.len()).collect(), rng)?;
            if program.buffers[buffer].content == Content::Nothing {
                return None;
            }
            mutant.buffers[buffer].content = Content::Nothing;
            "a shard that is not there"
        }
    };
    (mutant != *program).then(|| (name.to_owned(), mutant))
}

const KINDS: usize = 14;

#[test]
fn mutants_are_refused_or_right() {
    let mut rng = Rng(99);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = 0;
    let mut equivalent: BTreeMap<String, usize> = BTreeMap::new();
    for (name, program) in programs(150) {
        for kind in 0..KINDS {
            let Some((mistake, mutant)) = mutate(&program, kind, &mut rng) else {
                continue;
            };
            let shown = (0..12).find_map(|seed| interpret(&mutant, seed).err());
            match (mutant.prove(), shown) {
                (Ok(_), Some(why)) => panic!("{name}: {mistake} was proven, and {why}"),
                (Ok(_), None) => {
                    for seed in 100..140 {
                        interpret(&mutant, seed)
                            .unwrap_or_else(|e| panic!("{name}: {mistake} was proven: {e}"));
                    }
                    *equivalent.entry(mistake).or_default() += 1;
                }
                (Err(DevicesError::Fault(_)), Some(_)) => {
                    *refused.entry(mistake).or_default() += 1;
                    wrong += 1;
                }
                (Err(DevicesError::Fault(_)), None) => *refused.entry(mistake).or_default() += 1,
                (Err(e), _) => panic!("{name}: {mistake}: {e}"),
            }
        }
    }
    // Most mistakes show in some schedule, and each kind is found.
    assert_eq!(refused.len(), KINDS, "{refused:?}");
    assert!(wrong > 900, "{wrong} of {refused:?}");
    // Right all the same: a product without an addend twice, a wait that another one implies, a copy whose stream orders it too, a replica of the
    // same shard, a product over no index at all.
    let proven: usize = equivalent.values().sum();
    assert!(proven * 5 < wrong, "{equivalent:?}");
}

#[test]
fn faults_are_named() {
    let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    let program = |text: &str| {
        Program::derive(&problem, &Placement::parse(text, &problem, 2).unwrap()).unwrap()
    };
    let fault = |program: &Program| match program.prove() {
        Err(DevicesError::Fault(fault)) => fault.to_string(),
        other => panic!("{other:?}"),
    };
    let mut waits = program("rows,columns,columns");
    waits.ops.retain(|op| !matches!(op.action, Action::Set(_)));
    assert_eq!(
        fault(&waits),
        "nothing can go on: device 0, stream 1: wait for flag 0; device 1, stream 1: wait for flag 1; no stream sets these flags before it waits \
         itself"
    );
    let mut early = program("rows,columns,columns");
    early.ops.retain(|op| !matches!(op.action, Action::Wait(_)));
    assert_eq!(
        fault(&early),
        "device 0, stream 2: copy [4..8, 0..8] and device 0, stream 1: multiply C[4..8, 0..4] over k 0..8 use the same elements of device 0's A, and \
         no stream or flag orders them"
    );
    let mut lost = program("rows,columns,columns");
    lost.ops
        .retain(|op| !matches!(op.action, Action::Copy { .. }));
    assert_eq!(
        fault(&lost),
        "device 0, stream 1: multiply C[4..8, 0..4] over k 0..8 reads element (4, 0) of device 0's A, which nobody has written"
    );
    let mut twice = program("columns,rows,rows");
    let Some(Action::Product(last)) = twice
        .ops
        .iter_mut()
        .rev()
        .map(|op| &mut op.action)
        .find(|a| matches!(a, Action::Product(_)))
    else {
        panic!("no product");
    };
    last.addend = Addend::Nothing;
    assert!(
        fault(&twice).ends_with("its sum has 4 of 8 indices"),
        "{}",
        fault(&twice)
    );
    assert!(matches!(program("columns,rows,rows").prove(), Ok(proof) if proof.copies == 4));
    let race = Fault::FlagTwice { flag: 3 };
    assert!(race.to_string().contains("flag 3 is set twice"));
}

#[test]
fn placements_that_have_no_program_are_refused_by_name() {
    let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    let refused = |text: &str, devices| {
        Placement::parse(text, &problem, devices)
            .and_then(|placement| Program::derive(&problem, &placement))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused("rows,columns", 2),
        "`rows,columns` is not a placement: it has 2 parts; give three, of A, B and C, such as rows,columns,columns"
    );
    assert!(
        refused("rows,columns,diagonal", 2)
            .contains("`diagonal` is neither rows, columns, replicas or RxC")
    );
    assert!(refused("2x2,columns,columns", 2).contains("a grid of 2x2 is not one of 2 devices"));
    assert!(
        refused("(4,(2,8)):(2@0,(1@0,1@1)),columns,columns", 2)
            .contains("over 4 devices, and there are 2")
    );
    // Rows dealt out in turn.
    let cyclic = "(2,(4,8)):(1@0,(2@0,1@1))";
    assert!(refused(&format!("rows,columns,{cyclic}"), 2).contains("not a single range"));
    let mut batch = problem;
    batch.batch.count = 3;
    let placement = Placement::parse("rows,columns,columns", &problem, 2).unwrap();
    assert!(
        Program::derive(&batch, &placement)
            .unwrap_err()
            .to_string()
            .contains("a batch of 3 products")
    );
}
