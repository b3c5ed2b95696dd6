//! Programs in which A and B move: every device collects what its block of C needs.
//!
//! A block that the device has is multiplied at once. The shards of the others are copied in the order of the rotation, so that in each step every
//! device sends one shard and receives one; a flag follows each step's copies, and the products that need them wait for it. A shard that takes long to
//! multiply comes in two parts on two devices, so that its first half is multiplied while the second is on its way.

use layout_core::devices::{Block, Redistribution, Rotation};

use super::block::{BUSY, contains, cut, intersection, is_empty, length};
use super::error::DevicesError;
use super::placement::Placement;
use super::program::{Action, Addend, COPIES, Content, Operand, Product, Program, Region};
use crate::gemm::Gemm;

/// Parts of a shard that comes from another device, at most: with more, more products are small. A factor comes in four parts or more in all, which hides its copies
/// (of 16384×28672×4096 on four H100s, shards in halves took 12 % longer than the products alone).
fn most_parts(devices: usize) -> usize {
    (4 / devices).max(1)
}

/// The steps of the copies: of each step of the rotation, one for every part.
fn steps(devices: usize) -> usize {
    1 + (devices - 1) * most_parts(devices)
}

/// Where a device has a factor.
struct Factor {
    /// The buffer that its products read.
    whole: usize,
    /// The buffer that holds its own shard.
    shard: usize,
    /// What it needs.
    need: Block,
    /// What comes from where: the step ([`steps`]), the source, the block. Step 0 is the device itself.
    parts: Vec<(usize, usize, Block)>,
}

pub(super) fn program(problem: &Gemm, placement: &Placement) -> Result<Program, DevicesError> {
    let moves = placement.movements()?;
    let devices = placement.devices();
    let rotation = Rotation::new(devices)?;
    let mut program = Program::new(problem, devices);
    let mut factors = Vec::new();
    for device in 0..devices {
        let c = placement.block(Operand::C, device)?;
        let need_a = Block {
            rows: c.rows.clone(),
            columns: 0..problem.k,
        };
        let need_b = Block {
            rows: 0..problem.k,
            columns: c.columns.clone(),
        };
        let idle = is_empty(&c);
        let of = |program: &mut Program, operand, need: Block, moves: &Redistribution| {
            let need = if idle {
                Block {
                    rows: 0..0,
                    columns: 0..0,
                }
            } else {
                need
            };
            let beside = match operand {
                Operand::A => length(&c.columns),
                _ => length(&c.rows),
            };
            factor(
                program,
                placement,
                (operand, device),
                (need, beside),
                if idle { None } else { Some(moves) },
                &rotation,
            )
        };
        let a = of(&mut program, Operand::A, need_a, &moves.a)?;
        let b = of(&mut program, Operand::B, need_b, &moves.b)?;
        let content = if problem.beta == 0.0 {
            Content::Nothing
        } else {
            Content::Everything
        };
        let result = program.buffer(device, "C", Operand::C, c.clone(), content);
        program.results.push(Region {
            buffer: result,
            block: c,
        });
        factors.push([a, b]);
    }
    // Of each device, the flag behind the copies of each step; none for a step without copies.
    let mut arrived = vec![vec![None; steps(devices)]; devices];
    let mut products = vec![0; devices];
    for step in 0..steps(devices) {
        for (device, arrived) in arrived.iter_mut().enumerate() {
            arrived[step] = copies(&mut program, &factors, device, step);
        }
        for (device, count) in products.iter_mut().enumerate() {
            let (factors, arrived) = (&factors[device], &arrived[device]);
            multiply(&mut program, factors, device, step, arrived, count);
        }
    }
    Ok(program)
}

/// The buffers of a factor on a device, and what arrives in them. `beside` is how many columns of C a row of A makes, or rows a column of B.
fn factor(
    program: &mut Program,
    placement: &Placement,
    (operand, device): (Operand, usize),
    (need, beside): (Block, u64),
    moves: Option<&Redistribution>,
    rotation: &Rotation,
) -> Result<Factor, DevicesError> {
    let own = placement.block(operand, device)?;
    let in_place = !is_empty(&need) && contains(&need, &own);
    let (whole, shard) = if in_place {
        let content = if own == need {
            Content::Everything
        } else {
            Content::Given(own.clone())
        };
        let whole = program.buffer(device, operand.to_string(), operand, need.clone(), content);
        (whole, whole)
    } else {
        // The shard stays where it is; what the product needs of it is copied beside what arrives.
        let whole = program.buffer(
            device,
            operand.to_string(),
            operand,
            need.clone(),
            Content::Nothing,
        );
        let name = format!("{operand} shard");
        let shard = program.buffer(device, name, operand, own.clone(), Content::Everything);
        (whole, shard)
    };
    let mut parts = Vec::new();
    let kept = intersection(&own, &need);
    if !is_empty(&kept) {
        parts.push((0, device, kept));
    }
    for piece in moves.map_or(&[][..], |moves| moves.pieces()) {
        if piece.to != device {
            continue;
        }
        let block = piece.shard.block().ok_or_else(|| {
            DevicesError::unsupported(format!(
                "what device {device} gets of {operand} from device {} is not one rectangle; give blocks, not cyclic rows or columns",
                piece.from
            ))
        })?;
        if is_empty(&block) {
            continue;
        }
        let most = most_parts(placement.devices());
        let first = 1 + (rotation.step(device, piece.from) - 1) * most;
        let parts_of = cut_block(&block, &need, (operand, beside), most);
        for (number, part) in parts_of.into_iter().enumerate() {
            parts.push((first + number, piece.from, part));
        }
    }
    Ok(Factor {
        whole,
        shard,
        need,
        parts,
    })
}

/// A block in as many parts as are worth a product each. One that is a part of the sums stays whole: nothing is multiplied before all has arrived.
fn cut_block(
    block: &Block,
    need: &Block,
    (operand, beside): (Operand, u64),
    most: usize,
) -> Vec<Block> {
    let (free, whole) = match operand {
        Operand::A => (&block.rows, block.columns == need.columns),
        _ => (&block.columns, block.rows == need.rows),
    };
    let elements = length(free).saturating_mul(beside);
    let count = if whole {
        (elements / BUSY).clamp(1, most as u64)
    } else {
        1
    };
    let of = |part| match operand {
        Operand::A => Block {
            rows: part,
            columns: block.columns.clone(),
        },
        _ => Block {
            rows: block.rows.clone(),
            columns: part,
        },
    };
    cut(free, count).into_iter().map(of).collect()
}

/// The copies of one step, and the flag behind them.
fn copies(
    program: &mut Program,
    factors: &[[Factor; 2]],
    device: usize,
    step: usize,
) -> Option<usize> {
    let mut any = false;
    for (which, factor) in factors[device].iter().enumerate() {
        if step == 0 && factor.shard == factor.whole {
            continue;
        }
        for (_, source, block) in factor.parts.iter().filter(|(at, ..)| *at == step) {
            let region = |buffer| Region {
                buffer,
                block: block.clone(),
            };
            let from = region(factors[*source][which].shard);
            let to = region(factor.whole);
            program.push(device, COPIES, Action::Copy { from, to });
            any = true;
        }
    }
    any.then(|| program.set(device, COPIES))
}

/// The parts of a factor along its free axis: the step in which they are there, and the block. If a part is cut along k there is one, when the last
/// has arrived: sums are not cut, so that their rounding is that of one device.
fn segments(factor: &Factor, k: u64, operand: Operand) -> Vec<(usize, Block)> {
    let cut = factor.parts.iter().any(|(_, _, block)| {
        let depth = match operand {
            Operand::A => &block.columns,
            _ => &block.rows,
        };
        *depth != (0..k)
    });
    if cut || factor.parts.is_empty() {
        let last = factor.parts.iter().map(|(step, ..)| *step).max();
        return vec![(last.unwrap_or(0), factor.need.clone())];
    }
    let of = |(step, _, block): &(usize, usize, Block)| (*step, block.clone());
    factor.parts.iter().map(of).collect()
}

/// The products of one step: those whose last factor has arrived.
fn multiply(
    program: &mut Program,
    [a, b]: &[Factor; 2],
    device: usize,
    step: usize,
    arrived: &[Option<usize>],
    count: &mut usize,
) {
    let k = program.problem.k;
    let result = program.results[device].clone();
    if is_empty(&result.block) {
        return;
    }
    let addend = if program.problem.beta == 0.0 {
        Addend::Nothing
    } else {
        Addend::Old
    };
    for (step_a, block_a) in segments(a, k, Operand::A) {
        for (step_b, block_b) in segments(b, k, Operand::B) {
            if step_a.max(step_b) != step {
                continue;
            }
            let stream = *count % COPIES;
            *count += 1;
            // Copies are in order: the last flag so far stands for all.
            if let Some(flag) = arrived[..=step].iter().flatten().next_back() {
                program.push(device, stream, Action::Wait(*flag));
            }
            let product = Product {
                a: Region {
                    buffer: a.whole,
                    block: block_a.clone(),
                },
                b: Region {
                    buffer: b.whole,
                    block: block_b.clone(),
                },
                c: Region {
                    buffer: result.buffer,
                    block: Block {
                        rows: block_a.rows.clone(),
                        columns: block_b.columns.clone(),
                    },
                },
                addend,
                finishes: true,
            };
            program.push(device, stream, Action::Product(Box::new(product)));
        }
    }
}
