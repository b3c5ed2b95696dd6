//! Programs in which terms of C move: every device has a part of k, and multiplies all of C.
//!
//! The devices of a group pass partial sums around a ring. In step s the device of place j multiplies the chunk that belongs to place j - s - 1, adds
//! it to what place j - 1 sent, and sends the sum on; in the last step the chunk is its own. So every link carries each chunk once, as in a ring's
//! reduce-scatter, and no kernel is needed that only adds: a product with β = 1 adds. Each chunk is cut in parts, so that one travels while the
//! next is multiplied.
//!
//! ```text
//! group of 3, chunk of place 0:   place 1: A B ──▶ place 2: A B + · ──▶ place 0: A B + ·   (bias, activation)
//! ```
//!
//! The old C enters with the first term: the owner's chunk is copied to where the sum begins. Where C belongs to all (replicas), the owners of the
//! chunks send them to the others at the end, which makes it an all-reduce.
//!
//! A sum begins with a product that reads no C. In a *direct* program that product writes its term straight into the memory of the next device, over the
//! link, and no copy follows. Between two devices nothing is copied then. It pays where a copy's latency counts; a large product is faster with copies,
//! since its blocks do not wait for the link.

use std::collections::BTreeMap;
use std::ops::Range;

use layout_core::devices::Block;

use super::block::{self, BUSY, contains, is_empty, length};
use super::error::DevicesError;
use super::placement::Placement;
use super::program::{Action, Addend, COPIES, Content, Operand, Product, Program, Region};
use crate::gemm::Gemm;

/// Most parts of a chunk. More of them hide no more, and each costs a launch and two flags.
const MOST_PARTS: u64 = 4;

/// The devices that add to the same block of C.
struct Group {
    /// The devices, in the order of the ring.
    members: Vec<usize>,
    /// The block.
    block: Block,
    /// Of each member, the rectangle of C whose sum ends there.
    chunks: Vec<Block>,
    /// Every member gets the whole block in the end.
    replicated: bool,
}

/// The buffers of one device.
struct Memory {
    a: usize,
    b: usize,
    c: usize,
    /// What the device multiplies in each step but the last, or receives.
    partial: Vec<usize>,
}

impl Memory {
    /// Where the sum of a step is, of as many steps as there are partial sums and one more.
    fn sum(&self, step: usize) -> usize {
        self.partial.get(step).copied().unwrap_or(self.c)
    }
}

/// How the first term of a sum gets to the device that adds to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Into the device's own memory, and from there by a copy.
    Copied,
    /// Straight into the memory of the next device.
    Stored,
}

pub(super) fn program(
    problem: &Gemm,
    placement: &Placement,
    first: First,
) -> Result<Program, DevicesError> {
    // The movement is derived first: it proves that each element of C has an owner.
    placement.movements()?;
    let mut program = Program::new(problem, placement.devices());
    let groups = groups(placement)?;
    let mut memories: BTreeMap<usize, Memory> = BTreeMap::new();
    for group in &groups {
        for (place, &device) in group.members.iter().enumerate() {
            let memory = memory(&mut program, placement, group, (place, first))?;
            memories.insert(device, memory);
        }
    }
    // Results in the order of the devices.
    for device in 0..program.devices {
        let buffer = memories[&device].c;
        let block = program.buffers[buffer].block.clone();
        program.results.push(Region { buffer, block });
    }
    for group in &groups {
        ring(&mut program, group, &memories, first);
    }
    Ok(program)
}

fn groups(placement: &Placement) -> Result<Vec<Group>, DevicesError> {
    let mut by_block: Vec<(Block, Vec<usize>)> = Vec::new();
    for device in 0..placement.devices() {
        placement.block(Operand::A, device)?;
        placement.block(Operand::B, device)?;
        // A device whose part of k is empty has a term nevertheless: it adds nothing and passes on.
        let rows = placement.a.indices(device, 0).as_range();
        let columns = placement.b.indices(device, 1).as_range();
        let block = Block {
            rows: rows.unwrap_or(0..0),
            columns: columns.unwrap_or(0..0),
        };
        match by_block.iter_mut().find(|(known, _)| *known == block) {
            Some((_, members)) => members.push(device),
            None => by_block.push((block, vec![device])),
        }
    }
    let of = |(block, members): (Block, Vec<usize>)| {
        let owned: Vec<Block> = members
            .iter()
            .map(|&device| placement.block(Operand::C, device))
            .collect::<Result<_, _>>()?;
        let replicated = members.len() > 1 && owned.iter().all(|own| *own == block);
        let total: u64 = owned.iter().map(block::elements).sum();
        let fits = owned.iter().all(|own| contains(&block, own));
        if !fits || (!replicated && total != block::elements(&block)) {
            let Block { rows, columns } = &block;
            return Err(DevicesError::unsupported(format!(
                "devices {members:?} add up C[{}..{}, {}..{}] together, and their blocks of C are not just that; let C have the rows of A and the \
                 columns of B, cut among the devices that share them, or be there in full on each of them",
                rows.start, rows.end, columns.start, columns.end
            )));
        }
        let chunks = if replicated {
            let rows = even(&block.rows, members.len() as u64).into_iter();
            let columns = || block.columns.clone();
            rows.map(|rows| Block {
                rows,
                columns: columns(),
            })
            .collect()
        } else {
            owned
        };
        Ok(Group {
            members,
            block,
            chunks,
            replicated,
        })
    };
    by_block.into_iter().map(of).collect()
}

/// A range in equal parts, the last ones shorter.
fn even(range: &Range<u64>, parts: u64) -> Vec<Range<u64>> {
    let step = length(range).div_ceil(parts);
    let at = |part: u64| (range.start + part * step).min(range.end);
    (0..parts).map(|part| at(part)..at(part + 1)).collect()
}

fn memory(
    program: &mut Program,
    placement: &Placement,
    group: &Group,
    (place, first): (usize, First),
) -> Result<Memory, DevicesError> {
    let device = group.members[place];
    let factor = |program: &mut Program, operand: Operand| {
        let block = placement.block(operand, device)?;
        let name = operand.to_string();
        Ok::<_, DevicesError>(program.buffer(device, name, operand, block, Content::Everything))
    };
    let a = factor(program, Operand::A)?;
    let b = factor(program, Operand::B)?;
    let content = if program.problem.beta == 0.0 {
        Content::Nothing
    } else {
        Content::Everything
    };
    let block = if group.replicated {
        group.block.clone()
    } else {
        group.chunks[place].clone()
    };
    let c = program.buffer(device, "C", Operand::C, block, content);
    let steps = group.members.len();
    let partial = (0..steps - 1)
        .map(|step| {
            // Nobody writes the first one if its term goes straight to the next device.
            if step == 0 && first == First::Stored {
                return c;
            }
            let block = group.chunks[chunk(steps, place, step)].clone();
            let name = format!("partial {step}");
            program.buffer(device, name, Operand::C, block, Content::Nothing)
        })
        .collect();
    Ok(Memory { a, b, c, partial })
}

/// The chunk that a place multiplies in a step.
fn chunk(places: usize, place: usize, step: usize) -> usize {
    (place + 2 * places - 1 - step) % places
}

/// A chunk in parts. Small chunks are cut too, so that every program has the same form; of a single row nothing is left to cut. What is stored directly has
/// two parts: it does not wait for copies.
fn parts(chunk: &Block, first: First) -> Vec<Block> {
    let count = match first {
        First::Copied => (block::elements(chunk) / BUSY).clamp(2, MOST_PARTS),
        First::Stored => 2,
    };
    let of = |rows: Range<u64>| Block {
        rows,
        columns: chunk.columns.clone(),
    };
    let parts = block::cut(&chunk.rows, count).into_iter().map(of);
    parts.filter(|part| !is_empty(part)).collect()
}

fn ring(program: &mut Program, group: &Group, memories: &BTreeMap<usize, Memory>, first: First) {
    let places = group.members.len();
    let memory = |place: usize| &memories[&group.members[place]];
    let old = program.problem.beta != 0.0;
    // The flag behind the arrival of each part at each place.
    let mut arrived: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    let mut count = vec![0; places];
    for step in 0..places {
        let mut sent = BTreeMap::new();
        // Flags of this step's stores: what is there before the next step.
        let mut stored = BTreeMap::new();
        for (place, &device) in group.members.iter().enumerate() {
            let owner = chunk(places, place, step);
            let last = step + 1 == places;
            let next = (place + 1) % places;
            let stores = first == First::Stored && step == 0 && !last;
            for part in parts(&group.chunks[owner], first) {
                let target = if stores {
                    memory(next).sum(1)
                } else {
                    memory(place).sum(step)
                };
                let region = |buffer| Region {
                    buffer,
                    block: part.clone(),
                };
                if old && step == 0 && !last {
                    let from = region(memory(owner).c);
                    let to = region(target);
                    program.push(device, COPIES, Action::Copy { from, to });
                    let flag = program.set(device, COPIES);
                    arrived.insert((place, part.rows.start), flag);
                }
                let stream = count[place] % COPIES;
                count[place] += 1;
                if let Some(flag) = arrived.remove(&(place, part.rows.start)) {
                    program.push(device, stream, Action::Wait(flag));
                }
                let a = memory(place).a;
                let b = memory(place).b;
                let product = Product {
                    a: Region {
                        buffer: a,
                        block: Block {
                            rows: part.rows.clone(),
                            columns: program.buffers[a].block.columns.clone(),
                        },
                    },
                    b: Region {
                        buffer: b,
                        block: Block {
                            rows: program.buffers[b].block.rows.clone(),
                            columns: part.columns.clone(),
                        },
                    },
                    c: region(target),
                    addend: match (step, old) {
                        (0, false) => Addend::Nothing,
                        (0, true) => Addend::Old,
                        _ => Addend::Partial,
                    },
                    finishes: last,
                };
                program.push(device, stream, Action::Product(Box::new(product)));
                if stores {
                    let flag = program.set(device, stream);
                    stored.insert((next, part.rows.start), flag);
                } else if !last || (group.replicated && places > 1) {
                    let flag = program.set(device, stream);
                    sent.insert((place, part.rows.start), (flag, part.clone()));
                }
            }
        }
        for (&(place, _), (flag, part)) in &sent {
            if step + 1 == places {
                send_to_all(program, group, memories, place, *flag, part);
                continue;
            }
            // The next place fetches the sum.
            let next = (place + 1) % places;
            let device = group.members[next];
            let target = memory(next).sum(step + 1);
            let region = |buffer| Region {
                buffer,
                block: part.clone(),
            };
            program.push(device, COPIES, Action::Wait(*flag));
            let from = region(memory(place).sum(step));
            let to = region(target);
            program.push(device, COPIES, Action::Copy { from, to });
            let flag = program.set(device, COPIES);
            arrived.insert((next, part.rows.start), flag);
        }
        arrived.append(&mut stored);
    }
}

/// A finished part goes to all other members, in the order of the rotation.
fn send_to_all(
    program: &mut Program,
    group: &Group,
    memories: &BTreeMap<usize, Memory>,
    place: usize,
    flag: usize,
    part: &Block,
) {
    let places = group.members.len();
    for step in 1..places {
        let device = group.members[(place + step) % places];
        let region = |device: usize| Region {
            buffer: memories[&device].c,
            block: part.clone(),
        };
        program.push(device, COPIES, Action::Wait(flag));
        let from = region(group.members[place]);
        let to = region(device);
        program.push(device, COPIES, Action::Copy { from, to });
    }
}
