//! Collective operations in the proof of a program.

use layout_core::devices::Block;

use super::{Held, Value};
use crate::devices::block::{intersection, is_empty, length, stacked};
use crate::devices::error::Fault;
use crate::devices::program::{Action, Collective, CollectiveKind, Op, Operand, Program, Region};
use crate::gemm::Epilogue;

impl Program {
    /// A device's part of a collective.
    fn part(&self, index: usize) -> Option<(&Op, &Collective)> {
        let op = self.ops.get(index)?;
        match &op.action {
            Action::Collective(part) => Some((op, part)),
            _ => None,
        }
    }

    /// Every device has one part of each collective, and the blocks are those of one.
    pub(super) fn collectives_fit(&self) -> Result<(), Fault> {
        for indices in self.parts().values() {
            let mut parts: Vec<_> = indices.iter().filter_map(|&i| self.part(i)).collect();
            parts.sort_by_key(|(op, _)| op.device);
            let Some(&(op, first)) = parts.first() else {
                continue;
            };
            let malformed = |reason: String| Fault::Malformed {
                op: op.to_string(),
                reason,
            };
            let devices: Vec<usize> = parts.iter().map(|(op, _)| op.device).collect();
            if !devices.iter().copied().eq(0..self.devices) {
                return Err(malformed(format!(
                    "devices {devices:?} take part in collective {}; each of the {} must, once",
                    first.number, self.devices
                )));
            }
            // Libraries match the parts of devices by the order in which they are enqueued, which one stream fixes.
            let stream_of = |device: usize| {
                let mut all = self.ops.iter().filter(|op| op.device == device);
                let first = all.find(|op| matches!(op.action, Action::Collective(_)));
                first.map(|op| op.stream)
            };
            let elsewhere = parts
                .iter()
                .find(|(op, _)| stream_of(op.device) != Some(op.stream));
            if let Some((op, _)) = elsewhere {
                return Err(Fault::Malformed {
                    op: op.to_string(),
                    reason: "the device's collectives are on several streams; put them on one"
                        .to_owned(),
                });
            }
            let operand = |region: &Region| self.buffers[region.buffer].operand;
            let of_one = |(_, part): &(&Op, &Collective)| {
                let matrices = [operand(&part.from), operand(&part.to)];
                part.kind == first.kind && matrices == [operand(&first.from); 2]
            };
            if !parts.iter().all(of_one) {
                return Err(malformed(
                    "its parts are of different kinds or matrices".to_owned(),
                ));
            }
            if first.kind == CollectiveKind::ReduceScatter && operand(&first.from) != Operand::C {
                return Err(malformed("only terms of C are added".to_owned()));
            }
            // The side that is cut, and the side that is whole.
            let sides = |part: &Collective| match part.kind {
                CollectiveKind::AllGather => [part.from.block.clone(), part.to.block.clone()],
                CollectiveKind::ReduceScatter => [part.to.block.clone(), part.from.block.clone()],
            };
            let whole = sides(first)[1].clone();
            let cut: Vec<_> = parts
                .iter()
                .map(|(_, part)| sides(part)[0].clone())
                .collect();
            let same = parts.iter().all(|(_, part)| sides(part)[1] == whole);
            if !same || !stacked(&cut, &whole) {
                return Err(Fault::Wrong {
                    op: op.to_string(),
                    reason: "the devices' blocks are not one whole, cut in equal parts in the order of the devices".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The elements that a device gets in its part of a collective, by the device that gives them.
    pub fn received(&self, device: usize, part: &Collective) -> Vec<(usize, u64)> {
        let others = (0..self.ops.len())
            .filter_map(|index| self.part(index))
            .filter(|(op, other)| op.device != device && other.number == part.number);
        others
            .map(|(op, other)| match part.kind {
                CollectiveKind::AllGather => (op.device, other.from.elements()),
                // Of a term, the device's own chunk alone.
                CollectiveKind::ReduceScatter => (op.device, part.to.elements()),
            })
            .collect()
    }

    /// What a collective leaves.
    pub(super) fn collect(&self, held: &mut [Held], indices: &[usize]) -> Result<(), Fault> {
        let parts = || indices.iter().filter_map(|&i| self.part(i));
        let mut written = Vec::new();
        for (op, part) in parts() {
            let read = |op: &Op, region: &Region| {
                let found = held[region.buffer].read(&region.block);
                found.map_err(|element| Fault::Unwritten {
                    op: op.to_string(),
                    buffer: self.named(region.buffer),
                    element,
                })
            };
            match part.kind {
                CollectiveKind::AllGather => {
                    for (giver, other) in parts() {
                        for (block, value) in read(giver, &other.from)? {
                            written.push((part.to.buffer, block, value));
                        }
                    }
                }
                CollectiveKind::ReduceScatter => {
                    let nothing = Value::Sum {
                        depth: Vec::new(),
                        old: false,
                        finished: false,
                    };
                    let mut sum = vec![(part.to.block.clone(), nothing)];
                    for (giver, other) in parts() {
                        let region = Region {
                            buffer: other.from.buffer,
                            block: part.to.block.clone(),
                        };
                        let term = read(giver, &region)?;
                        sum = sums(&sum, &term).map_err(|reason| Fault::Wrong {
                            op: op.to_string(),
                            reason,
                        })?;
                    }
                    for (block, value) in sum {
                        written.push((part.to.buffer, block, self.ended(value)));
                    }
                }
            }
        }
        for (buffer, block, value) in written {
            held[buffer].write(&block, value);
        }
        Ok(())
    }

    /// The sum, finished if the problem has neither bias nor activation.
    fn ended(&self, value: Value) -> Value {
        match value {
            Value::Sum { depth, old, .. } if self.problem.epilogue == Epilogue::default() => {
                Value::Sum {
                    depth,
                    old,
                    finished: true,
                }
            }
            value => value,
        }
    }
}

/// Two terms of the same block, added rectangle by rectangle.
fn sums(one: &[(Block, Value)], other: &[(Block, Value)]) -> Result<Vec<(Block, Value)>, String> {
    let mut sums = Vec::new();
    for (block, value) in one {
        for (other_block, other_value) in other {
            let common = intersection(block, other_block);
            if !is_empty(&common) {
                sums.push((common, added(value, other_value)?));
            }
        }
    }
    Ok(sums)
}

/// The sum of two terms of the same elements.
fn added(one: &Value, other: &Value) -> Result<Value, String> {
    let (
        Value::Sum {
            depth,
            old,
            finished: false,
        },
        Value::Sum {
            depth: more,
            old: other_old,
            finished: false,
        },
    ) = (one, other)
    else {
        return Err("it adds the old C, or a term that has its bias and activation".to_owned());
    };
    if *old && *other_old {
        return Err("the old C is added twice".to_owned());
    }
    let mut depth: Vec<_> = depth.iter().chain(more).cloned().collect();
    depth.sort_by_key(|range| range.start);
    if let Some(twice) = depth.windows(2).find(|pair| pair[1].start < pair[0].end) {
        let (from, to) = (twice[1].start, twice[0].end.min(twice[1].end));
        return Err(format!("indices {from}..{to} of the sums are added twice"));
    }
    depth.retain(|range| length(range) > 0);
    Ok(Value::Sum {
        depth,
        old: *old || *other_old,
        finished: false,
    })
}
