//! Programs of one collective operation and one product a device, one after the other.
//!
//! Nothing overlaps, and only the collective orders the devices: two calls a run and device, where a program of copies and flags makes seven and more. A
//! product that is small is over before so many are made. (With the product of the device's own shard beside the all-gather, NCCL's blocks and the
//! product's wait for each other: on two H200 2048³ in bf16 took 0.062 instead of 0.047 ms.)

use layout_codegen::ir::Element;
use layout_core::devices::{Block, Movement, Redistribution};

use super::alone;
use super::block::stacked;
use super::error::DevicesError;
use super::placement::Placement;
use super::program::{
    Action, Addend, Collective, CollectiveKind, Content, Op, Operand, Program, Region,
};
use crate::gemm::{DataType, Epilogue, Gemm, Trans};

/// Bytes over the busiest link up to which an all-gather with a product behind it takes no longer than copies that overlap with products (two H200 and four
/// H100 over `NVLink`).
const GATHER_UP_TO: u64 = 6 << 20;

/// The same for a reduce-scatter, against products that store terms into the next device's memory.
const REDUCE_UP_TO: u64 = 5 << 20;

/// The same for such products, against copies.
const DIRECT_UP_TO: u64 = 20 << 20;

/// Which matrix moves, if one collective of equal runs of stored rows moves it.
fn moved(problem: &Gemm, placement: &Placement) -> Result<Option<Operand>, DevicesError> {
    let moves = placement.movements()?;
    let trans = problem.operands;
    let movements = [&moves.a, &moves.b, &moves.c].map(Redistribution::movement);
    let (operand, possible) = match movements {
        [Movement::AllGather, Movement::Nothing, Movement::Nothing] => {
            (Operand::A, trans.a == Trans::N)
        }
        [Movement::Nothing, Movement::AllGather, Movement::Nothing] => {
            (Operand::B, trans.b == Trans::T)
        }
        [
            Movement::Nothing,
            Movement::Nothing,
            Movement::ReduceScatter,
        ] => {
            // Nothing is added behind the collective.
            let plain = problem.beta == 0.0 && problem.epilogue == Epilogue::default();
            (Operand::C, plain)
        }
        _ => return Ok(None),
    };
    let Gemm { m, n, k, .. } = *problem;
    let [rows, columns] = match operand {
        Operand::A => [m, k],
        Operand::B => [k, n],
        Operand::C => [m, n],
    };
    let whole = Block {
        rows: 0..rows,
        columns: 0..columns,
    };
    let shards = (0..placement.devices())
        .map(|device| placement.block(operand, device))
        .collect::<Result<Vec<_>, _>>()?;
    // Rows as they are stored.
    let by_rows = shards.iter().all(|shard| match operand {
        Operand::B => shard.rows == whole.rows,
        Operand::A | Operand::C => shard.columns == whole.columns,
    });
    Ok((possible && by_rows && stacked(&shards, &whole)).then_some(operand))
}

/// The program, if one collective moves everything.
pub(super) fn program(
    problem: &Gemm,
    placement: &Placement,
) -> Result<Option<Program>, DevicesError> {
    let Some(operand) = moved(problem, placement)? else {
        return Ok(None);
    };
    // The products alone are those behind an all-gather, or before a reduce-scatter.
    let mut program = alone::program(problem, placement)?;
    program.streams = 1;
    let shards = (0..program.devices)
        .map(|device| placement.block(operand, device))
        .collect::<Result<Vec<_>, _>>()?;
    if operand == Operand::C {
        reduce(&mut program, &shards);
    } else {
        gather(&mut program, operand, &shards);
    }
    Ok(Some(program))
}

/// Before the products, an all-gather in place.
fn gather(program: &mut Program, operand: Operand, shards: &[Block]) {
    let mut parts = Vec::new();
    for (device, shard) in shards.iter().enumerate() {
        let found = program.buffers.iter_mut().enumerate();
        let mut mine = found.filter(|(_, b)| b.device == device && b.operand == operand);
        let Some((buffer, described)) = mine.next() else {
            continue;
        };
        described.content = Content::Given(shard.clone());
        let region = |block: &Block| Region {
            buffer,
            block: block.clone(),
        };
        let (from, to) = (region(shard), region(&described.block));
        parts.push(part(device, CollectiveKind::AllGather, from, to));
    }
    program.ops.splice(0..0, parts);
}

/// Behind the products, which leave terms, a reduce-scatter.
fn reduce(program: &mut Program, shards: &[Block]) {
    for op in &mut program.ops {
        if let Action::Product(product) = &mut op.action {
            product.finishes = false;
            product.addend = Addend::Nothing;
        }
    }
    for (device, shard) in shards.iter().enumerate() {
        let name = Operand::C.to_string();
        let Some(term) = program.find(device, &name) else {
            continue;
        };
        "term".clone_into(&mut program.buffers[term].name);
        let from = Region {
            buffer: term,
            block: program.buffers[term].block.clone(),
        };
        let buffer = program.buffer(device, name, Operand::C, shard.clone(), Content::Nothing);
        let to = Region {
            buffer,
            block: shard.clone(),
        };
        program.results.push(to.clone());
        let part = part(device, CollectiveKind::ReduceScatter, from, to);
        program.ops.push(part);
    }
}

fn part(device: usize, kind: CollectiveKind, from: Region, to: Region) -> Op {
    Op {
        device,
        stream: 0,
        action: Action::Collective(Box::new(Collective {
            number: 0,
            kind,
            from,
            to,
        })),
    }
}

/// The ways in which a program may move what a product over devices needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Collective,
    Direct,
    Copies,
}

/// The way that takes the least time, by the bytes that the busiest link carries.
pub(super) fn quickest(
    problem: &Gemm,
    placement: &Placement,
    data_type: DataType,
) -> Result<Way, DevicesError> {
    let moves = placement.movements()?;
    let sums = placement.sums_move();
    let (most, element) = if sums {
        (moves.c.busiest_link(), problem.result(data_type))
    } else {
        let most = moves.a.busiest_link().max(moves.b.busiest_link());
        (most, data_type.operand())
    };
    let bytes = most.saturating_mul(element.bytes().into());
    // NCCL does not add them.
    let narrow = matches!(element, Element::S8 | Element::E4m3 | Element::E5m2);
    Ok(match (sums, bytes) {
        (true, ..=REDUCE_UP_TO) if !narrow => Way::Collective,
        (true, ..=DIRECT_UP_TO) => Way::Direct,
        (false, ..=GATHER_UP_TO) => Way::Collective,
        _ => Way::Copies,
    })
}
