//! Which operations happen before which: by their stream, and by flags.
//!
//! Every operation gets a clock, one count for each stream: how many operations of that stream have ended when it begins, as far as streams and flags
//! say. The rule is Lamport's; it knows nothing of times, so what it orders is ordered on every machine. A part of a
//! collective begins when its own stream has come to it, and ends when the streams of all parts have.

use super::error::Fault;
use super::program::{Action, Program};

/// The order of a program's operations.
pub(super) struct Order {
    /// The operations in one order that respects all others.
    pub(super) sequence: Vec<usize>,
    /// Of each operation, its stream among all and its number there, from 1.
    place: Vec<(usize, u32)>,
    /// Of each operation, how far every stream is for certain when it begins.
    begins: Vec<Vec<u32>>,
}

impl Order {
    /// Whether `first` has ended when `second` begins.
    pub(super) fn before(&self, first: usize, second: usize) -> bool {
        let (stream, number) = self.place[first];
        first != second && self.begins[second][stream] >= number
    }

    /// Orders the operations of a program whose devices, streams and flags exist.
    pub(super) fn of(program: &Program) -> Result<Self, Fault> {
        let streams = program.devices * program.streams;
        let mut queues = vec![Vec::new(); streams];
        for (index, op) in program.ops.iter().enumerate() {
            queues[op.device * program.streams + op.stream].push(index);
        }
        let mut order = Self {
            sequence: Vec::new(),
            place: vec![(0, 0); program.ops.len()],
            begins: vec![Vec::new(); program.ops.len()],
        };
        let mut next = vec![0; streams];
        let mut now = vec![vec![0_u32; streams]; streams];
        let mut set: Vec<Option<Vec<u32>>> = vec![None; program.flags];
        let parts = program.parts();
        let stream_of = |index: usize| {
            let op = &program.ops[index];
            op.device * program.streams + op.stream
        };
        loop {
            let mut moved = false;
            for stream in 0..streams {
                while let Some(&index) = queues[stream].get(next[stream]) {
                    let action = &program.ops[index].action;
                    if let Action::Wait(flag) = action {
                        let Some(clock) = &set[*flag] else { break };
                        join(&mut now[stream], clock);
                    }
                    let together = match action {
                        Action::Collective(part) => &parts[&part.number][..],
                        _ => std::slice::from_ref(&index),
                    };
                    let here = |&part: &usize| {
                        let stream = stream_of(part);
                        queues[stream].get(next[stream]) == Some(&part)
                    };
                    if !together.iter().all(here) {
                        break;
                    }
                    let mut met = now[stream].clone();
                    for &part in together {
                        join(&mut met, &now[stream_of(part)]);
                    }
                    moved = true;
                    for &part in together {
                        let stream = stream_of(part);
                        // A part begins when its own stream has come to it; when it ends, all others have begun.
                        order.begins[part].clone_from(&now[stream]);
                        now[stream].clone_from(&met);
                        next[stream] += 1;
                        now[stream][stream] = next[stream] as u32;
                        order.place[part] = (stream, next[stream] as u32);
                        order.sequence.push(part);
                    }
                    if let Action::Set(flag) = action {
                        if set[*flag].is_some() {
                            return Err(Fault::FlagTwice { flag: *flag });
                        }
                        set[*flag] = Some(now[stream].clone());
                    }
                }
            }
            if !moved {
                break;
            }
        }
        let waiting: Vec<String> = (0..streams)
            .filter_map(|stream| queues[stream].get(next[stream]))
            .map(|&index| program.ops[index].to_string())
            .collect();
        if waiting.is_empty() {
            Ok(order)
        } else {
            Err(Fault::Deadlock { waiting })
        }
    }
}

/// What both clocks have seen.
fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
