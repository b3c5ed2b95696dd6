//! Programs over devices against brute force.
//!
//! The interpreter knows nothing of the prover: devices have integer matrices, a seed draws which stream goes on, and at the end C must be what
//! one device computes. Programs that the prover takes are right in every schedule that is tried; mutated ones that are wrong in some schedule must
//! be refused.

mod interpret;
mod mutate;

use std::collections::BTreeMap;

use interpret::{Queues, Rng, interpret, interpret_in};
use layout_core::devices::Block;
use mutate::{KINDS, mutate};
use tilewright_kernels::devices::{
    Action, Addend, Buffer, Content, DevicesError, Fault, Op, Operand, Placement, Program, Region,
};
use tilewright_kernels::gemm::{Gemm, Operands};

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

/// Programs whose products store terms into other devices' memory.
fn direct(count: usize) -> Vec<(String, Program)> {
    let mut rng = Rng(43);
    let mut made = Vec::new();
    while made.len() < count {
        let problem = Gemm {
            beta: 0.0,
            ..problem(&mut rng)
        };
        let devices = [2, 3, 4][rng.below(3)];
        let text = [
            "columns,rows,rows",
            "columns,rows,replicas",
            "columns,rows,columns",
        ][rng.below(3)];
        let placement = Placement::parse(text, &problem, devices).unwrap();
        // A part of k that a single device has is no sum.
        let Some(program) = Program::direct(&problem, &placement).unwrap() else {
            continue;
        };
        let Gemm { m, n, k, .. } = problem;
        made.push((format!("{m}x{n}x{k} {text} on {devices}, direct"), program));
    }
    made
}

/// All kinds of programs.
fn all(count: usize) -> impl Iterator<Item = (String, Program)> {
    let small = count / 3;
    programs(count)
        .into_iter()
        .chain(collectives(small))
        .chain(direct(small))
}

/// Programs of one collective: sizes are multiples of the number of devices.
fn collectives(count: usize) -> Vec<(String, Program)> {
    let mut rng = Rng(61);
    let mut made = Vec::new();
    while made.len() < count {
        let devices = [1, 2, 3, 4][rng.below(4)];
        let size = |rng: &mut Rng| (devices * (1 + rng.below(4))) as u64;
        let (m, n, k) = (size(&mut rng), size(&mut rng), size(&mut rng));
        let mut problem = Gemm::packed(m, n, k, Operands::ALL[rng.below(4)]);
        problem.beta = [0.0, 0.0, 0.5][rng.below(3)];
        let text = [
            "rows,columns,columns",
            "rows,columns,rows",
            "columns,rows,rows",
        ][rng.below(3)];
        let placement = Placement::parse(text, &problem, devices).unwrap();
        let Some(program) = Program::collective(&problem, &placement).unwrap() else {
            continue;
        };
        let beta = problem.beta;
        made.push((
            format!("{m}x{n}x{k} β={beta} {text} on {devices}, collective"),
            program,
        ));
    }
    made
}

#[test]
fn proven_programs_are_right_in_every_schedule() {
    for (name, program) in all(200) {
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

#[test]
fn mutants_are_refused_or_right() {
    let mut rng = Rng(99);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = 0;
    let mut equivalent: BTreeMap<String, usize> = BTreeMap::new();
    for (name, program) in all(150) {
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

/// Two runs of a program with a barrier between them: each device joins its streams, and none goes on before all have. The operations of a run are submitted
/// together, or each device submits both runs by itself.
fn two_runs(program: &Program, by_device: bool) -> Program {
    let mut runs = program.clone();
    runs.ops.clear();
    let op = |device, stream, action| Op {
        device,
        stream,
        action,
    };
    let (devices, streams) = (program.devices, program.streams);
    // Flags of a run: the program's, then for each device one that it is done, one to go on, and one of each other stream.
    let each = 1 + streams;
    let count = program.flags + devices * each;
    runs.flags = 2 * count;
    for run in 0..2 {
        let barrier =
            |device: usize, which: usize| run * count + program.flags + device * each + which;
        runs.ops.extend(program.ops.iter().cloned().map(|mut op| {
            if let Action::Set(flag) | Action::Wait(flag) = &mut op.action {
                *flag += run * count;
            }
            op
        }));
        let mut push = |device, stream, action| runs.ops.push(op(device, stream, action));
        for device in 0..devices {
            for stream in 1..streams {
                push(device, stream, Action::Set(barrier(device, 1 + stream)));
                push(device, 0, Action::Wait(barrier(device, 1 + stream)));
            }
            push(device, 0, Action::Set(barrier(device, 0)));
        }
        for device in 0..devices {
            for other in (0..devices).filter(|&other| other != device) {
                push(device, 0, Action::Wait(barrier(other, 0)));
            }
            push(device, 0, Action::Set(barrier(device, 1)));
            for stream in 1..streams {
                push(device, stream, Action::Wait(barrier(device, 1)));
            }
        }
    }
    if by_device {
        runs.ops.sort_by_key(|op| op.device);
    }
    runs
}

/// The schedule that hung on three and four GPUs, and not on two: each device submitted its runs by itself, and copies of a second run, which wait for the
/// barrier, held up those of another device's first.
#[test]
fn devices_that_submit_on_their_own_are_refused_where_they_hang() {
    let problem = Gemm::packed(16, 16, 4, Operands::ALL[0]);
    for (devices, hangs) in [(2, false), (3, true), (4, true)] {
        let placement = Placement::parse("rows,columns,columns", &problem, devices).unwrap();
        let program = Program::derive(&problem, &placement).unwrap();
        let together = two_runs(&program, false);
        together
            .prove()
            .unwrap_or_else(|e| panic!("{devices}: {e}"));
        let apart = two_runs(&program, true);
        let error = apart.prove().unwrap_err().to_string();
        assert!(error.contains("is submitted before"), "{error}");
        for seed in 0..8 {
            let run = |program| interpret_in(program, seed, Queues::Copies);
            run(&together).unwrap();
            // Without shared queues it is right, which is what the emulator saw.
            interpret_in(&apart, seed, Queues::Streams).unwrap();
            assert_eq!(run(&apart).is_err(), hangs, "{devices} devices, {seed}");
            interpret_in(&together, seed, Queues::Few(1)).unwrap();
        }
    }
}

/// A part of a collective reads what its device gives as soon as its own stream has come to it, not when the others have.
#[test]
fn a_part_of_a_collective_does_not_wait_to_begin() {
    let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    let placement = Placement::parse("rows,columns,columns", &problem, 2).unwrap();
    let mut program = Program::collective(&problem, &placement).unwrap().unwrap();
    let given = program.find(0, "A").unwrap();
    let half = Block {
        rows: 0..4,
        columns: 0..8,
    };
    program.buffers[given].content = Content::Nothing;
    program.buffers.push(Buffer {
        device: 1,
        name: "late".to_owned(),
        operand: Operand::A,
        block: half.clone(),
        content: Content::Everything,
    });
    let region = |buffer| Region {
        buffer,
        block: half.clone(),
    };
    // Device 1 writes what device 0 gives, and then comes to the collective.
    let (from, to) = (region(program.buffers.len() - 1), region(given));
    program.ops.insert(
        0,
        Op {
            device: 1,
            stream: 0,
            action: Action::Copy { from, to },
        },
    );
    let Err(DevicesError::Fault(fault)) = program.prove() else {
        panic!("accepted")
    };
    assert!(matches!(*fault, Fault::Race { .. }), "{fault}");
}

/// Two collectives, which devices may enqueue in different orders.
#[test]
fn collectives_of_a_device_are_on_one_stream() {
    let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    let placement = Placement::parse("rows,columns,columns", &problem, 2).unwrap();
    let mut program = Program::collective(&problem, &placement).unwrap().unwrap();
    program.streams = 2;
    let mut again: Vec<Op> = program.ops[..2].to_vec();
    for op in &mut again {
        op.stream = 1;
        if let Action::Collective(part) = &mut op.action {
            part.number = 1;
        }
    }
    program.ops.extend(again);
    let error = program.prove().unwrap_err().to_string();
    assert!(error.contains("put them on one"), "{error}");
}

#[test]
fn products_only_overwrite_what_is_on_other_devices() {
    let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    let placement = Placement::parse("columns,rows,rows", &problem, 2).unwrap();
    let program = Program::direct(&problem, &placement).unwrap().unwrap();
    assert_eq!(program.prove().unwrap().copies, 0);
    let refused = |change: &dyn Fn(&mut tilewright_kernels::devices::Product)| {
        let mut mutant = program.clone();
        let Action::Product(product) = &mut mutant.ops[0].action else {
            panic!("{}", program.ops[0]);
        };
        change(product);
        mutant.prove().unwrap_err().to_string()
    };
    // Sums over the link would be read back over it.
    let added = refused(&|product| product.addend = Addend::Partial);
    assert!(
        added.contains("where a product may only overwrite"),
        "{added}"
    );
    let elsewhere = program.find(1, "A").unwrap();
    let read = refused(&|product| {
        product.a.buffer = elsewhere;
        product.a.block.columns = 4..8;
    });
    assert!(
        read.contains("where a product may only overwrite"),
        "{read}"
    );
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
