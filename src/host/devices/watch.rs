//! The race check of a run: every access of an operation against all before it on the same memory.
//!
//! It goes by what happened, where the prover goes by the program: each stream carries a clock, a flag the clock of the stream that set it, and two
//! accesses to the same elements are in order if the later one's stream had seen the earlier one.

use tilewright_kernels::devices::{Action, Op, Program, Region};

/// An access that has happened.
struct Access {
    region: Region,
    writes: bool,
    stream: usize,
    number: u32,
    op: String,
}

/// Clocks and accesses of a run.
pub(super) struct Watch {
    clocks: Vec<Vec<u32>>,
    flags: Vec<Option<Vec<u32>>>,
    accesses: Vec<Access>,
    pub(super) findings: Vec<String>,
}

impl Watch {
    pub(super) fn new(program: &Program) -> Self {
        let streams = program.devices * program.streams;
        Self {
            clocks: vec![vec![0; streams]; streams],
            flags: vec![None; program.flags],
            accesses: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Whether an operation can happen now: a wait needs its flag.
    pub(super) fn ready(&self, op: &Op) -> bool {
        match op.action {
            Action::Wait(flag) => self.flags[flag].is_some(),
            _ => true,
        }
    }

    /// The parts of a collective happen, each on its stream: a part touches memory as soon as its own stream has come to it, and when it ends its stream has
    /// seen what all have done before.
    pub(super) fn meet(&mut self, program: &Program, parts: &[(usize, &Op)]) {
        let mut met = vec![0; self.clocks.len()];
        for (stream, _) in parts {
            for (seen, own) in met.iter_mut().zip(&self.clocks[*stream]) {
                *seen = (*seen).max(*own);
            }
        }
        for (stream, op) in parts {
            self.happens(program, *stream, op);
            for (seen, met) in self.clocks[*stream].iter_mut().zip(&met) {
                *seen = (*seen).max(*met);
            }
        }
    }

    /// An operation happens on a stream.
    pub(super) fn happens(&mut self, program: &Program, stream: usize, op: &Op) {
        self.clocks[stream][stream] += 1;
        match &op.action {
            Action::Wait(flag) => {
                if let Some(clock) = &self.flags[*flag] {
                    for (mine, theirs) in self.clocks[stream].iter_mut().zip(clock) {
                        *mine = (*mine).max(*theirs);
                    }
                }
            }
            Action::Set(flag) => self.flags[*flag] = Some(self.clocks[stream].clone()),
            Action::Copy { from, to } => {
                self.touches(program, stream, op, from, false);
                self.touches(program, stream, op, to, true);
            }
            Action::Collective(part) => {
                self.touches(program, stream, op, &part.from, false);
                self.touches(program, stream, op, &part.to, true);
            }
            Action::Product(product) => {
                self.touches(program, stream, op, &product.a, false);
                self.touches(program, stream, op, &product.b, false);
                self.touches(program, stream, op, &product.c, true);
            }
        }
    }

    fn touches(
        &mut self,
        program: &Program,
        stream: usize,
        op: &Op,
        region: &Region,
        writes: bool,
    ) {
        let clock = &self.clocks[stream];
        let racing = self.accesses.iter().find(|earlier| {
            earlier.region.buffer == region.buffer
                && (earlier.writes || writes)
                && earlier.region.meets(region)
                && clock[earlier.stream] < earlier.number
        });
        if let Some(earlier) = racing {
            let buffer = &program.buffers[region.buffer];
            let finding = format!(
                "race on device {}'s {}: {} and {op} touch the same elements, and no flag orders them",
                buffer.device, buffer.name, earlier.op
            );
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
        self.accesses.push(Access {
            region: region.clone(),
            writes,
            stream,
            number: self.clocks[stream][stream],
            op: op.to_string(),
        });
    }
}
