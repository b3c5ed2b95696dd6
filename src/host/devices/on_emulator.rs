//! A program over devices on the emulator: every device has memory of its own, and a seed draws the schedule.
//!
//! Of the streams whose next operation can happen, one is drawn, until all are done. So copies run late or early, products of different devices mix,
//! and what no flag orders happens in either order. Kernels run one at a time, each with all checks of the emulator; between operations the accesses
//! are checked for races ([`watch`](super::watch)). Memory that nobody wrote is NaN, which a product that comes too early multiplies.

use tilewright_kernels::devices::{Action, CollectiveKind, Op, Region};

use super::collective::runs;
use super::jobs::Job;
use super::watch::Watch;
use super::{DeviceGemm, DevicesRun, DevicesRunError};
use crate::host::matrix::{add, next};
use crate::host::run::bind::bind;
use crate::host::run::on_emulator::emulate;
use crate::host::{Arg, Inputs, Matrix, Role, RunOptions, Runnable};

/// How to emulate.
///
/// ```
/// use tilewright::host::devices::Emulation;
/// let other_schedule = Emulation { seed: 7, ..Emulation::default() };
/// assert_ne!(other_schedule.seed, Emulation::default().seed);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Emulation {
    /// Draws the order in which streams go on.
    pub seed: u64,
    /// What the emulator looks for in each kernel.
    pub options: RunOptions,
}

impl DeviceGemm {
    /// Runs the program on as many emulated devices as it has.
    ///
    /// # Errors
    ///
    /// A matrix that is not what the problem says, or a kernel that the emulator refuses. What goes wrong in a kernel or between operations is a
    /// finding of the run.
    pub fn emulate(
        &self,
        inputs: &Inputs,
        emulation: &Emulation,
    ) -> Result<DevicesRun, DevicesRunError> {
        inputs.fit(&self.program.problem, self.data_type)?;
        let mut memory: Vec<Vec<u8>> = (0..self.program.buffers.len())
            .map(|buffer| self.initial(buffer, inputs))
            .collect();
        let program = &self.program;
        let streams = program.devices * program.streams;
        let mut queues = vec![Vec::new(); streams];
        for (index, op) in program.ops.iter().enumerate() {
            queues[op.device * program.streams + op.stream].push(index);
        }
        let parts = program.parts();
        let stream_of = |index: usize| {
            let op = &program.ops[index];
            op.device * program.streams + op.stream
        };
        let here = |part: usize, done: &[usize]| {
            let stream = stream_of(part);
            queues[stream].get(done[stream]) == Some(&part)
        };
        let mut done = vec![0; streams];
        let mut watch = Watch::new(program);
        let mut findings = Vec::new();
        let mut state = emulation.seed;
        loop {
            let ready: Vec<usize> = (0..streams)
                .filter(|&stream| {
                    let index = queues[stream].get(done[stream]);
                    index.is_some_and(|&index| match &program.ops[index].action {
                        Action::Collective(part) => {
                            parts[&part.number].iter().all(|&part| here(part, &done))
                        }
                        _ => watch.ready(&program.ops[index]),
                    })
                })
                .collect();
            let Some(&stream) = ready.get(draw(&mut state, ready.len())) else {
                break;
            };
            let index = queues[stream][done[stream]];
            let op = &program.ops[index];
            if let Action::Collective(part) = &op.action {
                let together = &parts[&part.number];
                let parts = together.iter();
                let parts: Vec<_> = parts
                    .map(|&part| (stream_of(part), &program.ops[part]))
                    .collect();
                watch.meet(program, &parts);
                for (stream, _) in parts {
                    done[stream] += 1;
                }
                self.collected(&mut memory, together);
                continue;
            }
            done[stream] += 1;
            watch.happens(program, stream, op);
            match (&op.action, &self.jobs[index]) {
                (Action::Copy { from, to }, _) => self.copied(&mut memory, from, to),
                (Action::Product(_), Some(job)) => {
                    self.multiplied(&mut memory, op, job, inputs, emulation, &mut findings)?;
                }
                _ => {}
            }
        }
        // A proven program ends; one that does not would leave results unwritten.
        for (stream, queue) in queues.iter().enumerate() {
            if let Some(&index) = queue.get(done[stream]) {
                findings.push(format!("{} never ends", program.ops[index]));
            }
        }
        findings.extend(watch.findings);
        let (c, differing) = self.collect(inputs, &memory);
        findings.extend(differing);
        Ok(DevicesRun {
            c,
            findings,
            time_ms: None,
        })
    }

    fn copied(&self, memory: &mut [Vec<u8>], from: &Region, to: &Region) {
        let source = self.storage[from.buffer].span(&from.block);
        let target = self.storage[to.buffer].span(&to.block);
        let rows: Vec<Vec<u8>> = source
            .starts()
            .map(|start| memory[from.buffer][start..][..source.width].to_vec())
            .collect();
        for (start, row) in target.starts().zip(rows) {
            memory[to.buffer][start..][..target.width].copy_from_slice(&row);
        }
    }

    /// A collective: what all devices give is read, and then everything is written. Sums are rounded after each addition, in the order of the devices.
    fn collected(&self, memory: &mut [Vec<u8>], parts: &[usize]) {
        let mut parts: Vec<_> = parts.iter().map(|&part| &self.program.ops[part]).collect();
        parts.sort_by_key(|op| op.device);
        let parts: Vec<_> = parts
            .into_iter()
            .filter_map(|op| match &op.action {
                Action::Collective(part) => Some((part, runs(part, &self.storage)?)),
                _ => None,
            })
            .collect();
        let mut results = Vec::new();
        for (device, (part, (_, bytes))) in parts.iter().enumerate() {
            let taken = |from: usize, start: usize| &memory[from][start..][..*bytes];
            let given = parts
                .iter()
                .map(|(giver, ([gives, _], _))| match part.kind {
                    CollectiveKind::AllGather => taken(giver.from.buffer, *gives),
                    CollectiveKind::ReduceScatter => {
                        taken(giver.from.buffer, gives + device * bytes)
                    }
                });
            results.push(match part.kind {
                CollectiveKind::AllGather => given.collect::<Vec<_>>().concat(),
                CollectiveKind::ReduceScatter => {
                    let element = self.storage[part.to.buffer].element;
                    let sum = given.map(<[u8]>::to_vec).reduce(|a, b| add(element, a, &b));
                    sum.unwrap_or_default()
                }
            });
        }
        for ((part, ([_, gets], _)), result) in parts.iter().zip(results) {
            memory[part.to.buffer][*gets..][..result.len()].copy_from_slice(&result);
        }
    }

    fn multiplied(
        &self,
        memory: &mut [Vec<u8>],
        op: &Op,
        job: &Job,
        inputs: &Inputs,
        emulation: &Emulation,
        findings: &mut Vec<String>,
    ) -> Result<(), DevicesRunError> {
        let matrix = |which: usize| {
            let (buffer, span) = (job.buffers[which], job.spans[which]);
            let storage = &self.storage[buffer];
            let size = storage.element.bytes() as usize;
            Matrix {
                element: storage.element,
                rows: span.rows,
                cols: span.width / size,
                ld: storage.ld as usize,
                count: 1,
                stride: 0,
                bytes: memory[buffer][span.offset..][..span.len()].to_vec(),
            }
        };
        let [a, b, c] = [matrix(0), matrix(1), matrix(2)];
        let bias = job.bias.as_ref().and_then(|range| {
            let whole = inputs.bias.as_ref()?;
            let size = whole.element.bytes() as usize;
            let (start, end) = (range.start as usize, range.end as usize);
            Some(Matrix {
                rows: 1,
                cols: end - start,
                ld: end - start,
                bytes: whole.bytes[start * size..end * size].to_vec(),
                ..whole.clone()
            })
        });
        let alignment = job.problem.alignment;
        let mut args = vec![
            (
                "A",
                Arg::matrix(&a, Role::Input).aligned_to(alignment.a.into()),
            ),
            (
                "B",
                Arg::matrix(&b, Role::Input).aligned_to(alignment.b.into()),
            ),
            (
                "C",
                Arg::matrix(&c, Role::InOut).aligned_to(alignment.c.into()),
            ),
        ];
        if let Some(bias) = &bias {
            let element = bias.element.bytes();
            args.push((
                "bias",
                Arg::matrix(bias, Role::Input).aligned_to(element.into()),
            ));
        }
        let bound = bind(job.kernel.as_ref(), args)?;
        if bound.steps.is_empty() {
            return Ok(());
        }
        let mut run = emulate(job.kernel.ptx(), &bound, &emulation.options.emulator)?;
        for finding in &run.report.findings {
            findings.push(format!("{op}: {finding}"));
        }
        let after = Matrix {
            bytes: run.buffers.swap_remove(crate::host::GemmKernel::C),
            ..c.clone()
        };
        if !after.gaps_untouched(&c) {
            findings.push(format!("{op}: wrote outside of its block of C"));
        }
        let span = job.spans[2];
        for start in span.starts() {
            let row = &after.bytes[start - span.offset..][..span.width];
            memory[job.buffers[2]][start..][..span.width].copy_from_slice(row);
        }
        Ok(())
    }
}

/// A number below `count`, or 0.
fn draw(state: &mut u64, count: usize) -> usize {
    (next(state) % count.max(1) as u64) as usize
}
