//! Measuring many problems: what the host has to do for a problem is done while the GPU runs those before it.
//!
//! ```text
//! candidates of all problems ──▶ their kernels, each once ──▶ emitted and assembled by as many threads as there are cores ─┐
//!                                operands, a problem at a time, by a few threads ───────────────────────────────────────────┴─▶ GPU
//! ```
//!
//! The GPU is left to one thread: it waits for the kernels of its next problem, which were begun in the order in which problems need them.
//! Without ptxas the driver compiles, one kernel at a time, when a problem needs it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tilewright::codegen::Arch;
use tilewright::gpu::{Gpu, TimeOptions};
use tilewright::host::{Trial, Tried};
use tilewright::kernels::gemm::{DataType, Emitted, Gemm, PlanError, Specialized};
use tilewright::kernels::select::{Candidate, Machine, candidates};

use super::table::{Measured, Row, Table};
use crate::error::CliError;
use crate::gemm::select;
use crate::memory;

/// How long the candidates of a problem run before their times are taken. They alternate, so that a rising clock affects all equally.
pub(super) const WARM_FOR: Duration = Duration::from_millis(10);

/// Threads that draw operands, and problems that each may be ahead.
const DRAWING: usize = 3;
const AHEAD: usize = 1;

/// How to measure.
pub(super) struct Measurement<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) arch: Arch,
    pub(super) machine: &'a Machine,
    pub(super) options: TimeOptions,
    pub(super) seed: u64,
    /// No problem is begun after this.
    pub(super) until: Option<Instant>,
}

/// One candidate of a problem.
struct Way {
    candidate: Candidate,
    /// The plan for the problem, and its kernel's place in the list of all.
    adapted: Result<(Specialized, usize), CliError>,
}

/// A problem and the candidates to measure.
struct Job {
    data_type: DataType,
    problem: Gemm,
    ways: Vec<Way>,
}

/// All problems, and their kernels: each by the first problem and candidate that has it.
pub(super) struct Work {
    jobs: Vec<Job>,
    kernels: Vec<(usize, usize)>,
}

impl Work {
    /// The number of candidates of all problems.
    pub(super) fn candidates(&self) -> usize {
        self.jobs.iter().map(|job| job.ways.len()).sum()
    }
}

fn refused(error: &PlanError) -> CliError {
    CliError::new(error.code(), error.to_string())
}

impl Measurement<'_> {
    /// The candidates of each problem, of which `choose` keeps some, and the kernels that they need.
    pub(super) fn prepare(
        &self,
        problems: Vec<(DataType, Gemm)>,
        choose: impl Fn(Vec<Candidate>) -> Vec<Candidate> + Sync,
    ) -> Result<Work, CliError> {
        let adapted = in_parallel(&problems, |(data_type, problem)| {
            let all = candidates(*data_type, problem, self.arch, self.machine)
                .map_err(|e| select::refused(&e))?;
            let adapt = |c: Candidate| {
                let plan = c.config.specialize(problem, c.schedule);
                (c, plan.map_err(|e| refused(&e)))
            };
            Ok(choose(all).into_iter().map(adapt).collect::<Vec<_>>())
        });
        let (mut jobs, mut kernels) = (Vec::new(), Vec::new());
        // An entry is named by its plan and all that its text depends on.
        let mut known = HashMap::new();
        for ((data_type, problem), adapted) in problems.into_iter().zip(adapted) {
            let mut ways = Vec::new();
            for (candidate, adapted) in adapted? {
                let adapted = adapted.map(|plan| {
                    let entry = plan.entry_name(problem.operands);
                    let kernel = *known.entry((data_type, entry)).or_insert_with(|| {
                        kernels.push((jobs.len(), ways.len()));
                        kernels.len() - 1
                    });
                    (plan, kernel)
                });
                ways.push(Way { candidate, adapted });
            }
            jobs.push(Job {
                data_type,
                problem,
                ways,
            });
        }
        Ok(Work { jobs, kernels })
    }

    /// Measures every problem and hands its table over, one after the other.
    pub(super) fn run(
        &self,
        work: &Work,
        mut each: impl FnMut(Table) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let emitted: Vec<OnceLock<_>> = work.kernels.iter().map(|_| OnceLock::new()).collect();
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let emit = || {
            while !stopped.load(Relaxed) {
                let at = next.fetch_add(1, Relaxed);
                let Some(&(job, way)) = work.kernels.get(at) else {
                    break;
                };
                // Whoever waits for the kernel must get an answer.
                let emit = || self.emit(&work.jobs[job], way);
                let lost = |_| Err(CliError::new("internal", "the kernel's generator panicked"));
                emitted[at]
                    .get_or_init(|| catch_unwind(AssertUnwindSafe(emit)).unwrap_or_else(lost));
            }
        };
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..DRAWING).map(|_| sync_channel(AHEAD)).unzip();
        thread::scope(|scope| {
            for _ in 0..threads() {
                scope.spawn(emit);
            }
            for (first, sender) in senders.into_iter().enumerate() {
                let mine = work.jobs.iter().skip(first).step_by(DRAWING);
                scope.spawn(move || self.draw(mine, &sender));
            }
            let outcome = self.interleave(work, &emitted, &receivers, &mut each);
            // Those that still work for it stop.
            stopped.store(true, Relaxed);
            drop(receivers);
            outcome
        })
    }

    /// The text of a kernel, assembled if there is ptxas.
    fn emit(&self, job: &Job, way: usize) -> Result<Emitted, CliError> {
        let (plan, _) = job.ways[way].adapted.as_ref().map_err(Clone::clone)?;
        let emitted = plan.emit(job.problem.operands, self.arch);
        let emitted = emitted.map_err(|e| refused(&e))?;
        self.gpu.prepare_ptx(&emitted.ptx);
        Ok(emitted)
    }

    /// Draws the operands of some problems until nobody takes them.
    fn draw<'j>(
        &self,
        jobs: impl Iterator<Item = &'j Job>,
        sender: &SyncSender<Result<Trial, CliError>>,
    ) {
        for job in jobs {
            let trial = memory::for_rows(&job.problem, job.data_type).and_then(|()| {
                Trial::new(&job.problem, job.data_type, self.seed)
                    .map_err(|e| CliError::new("gpu", e.to_string()))
            });
            if sender.send(trial).is_err() {
                break;
            }
        }
    }

    /// Runs the problems on the GPU.
    fn interleave(
        &self,
        work: &Work,
        emitted: &[OnceLock<Result<Emitted, CliError>>],
        trials: &[Receiver<Result<Trial, CliError>>],
        each: &mut impl FnMut(Table) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        for (job, drawn) in work.jobs.iter().zip(trials.iter().cycle()) {
            if self.until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            let Ok(trial) = drawn.recv() else { break };
            let outcomes = self.measure(job, emitted, trial);
            let row = |(way, outcome): (&Way, _)| Row {
                plan: way.candidate.config.to_string(),
                schedule: way.candidate.schedule,
                estimated: way.candidate.estimate.seconds * 1e3,
                outcome,
            };
            let rows = job.ways.iter().zip(outcomes).map(row).collect();
            each(Table::new(job.data_type, job.problem, rows))?;
        }
        Ok(())
    }

    /// The outcome of each candidate of a problem.
    fn measure(
        &self,
        job: &Job,
        emitted: &[OnceLock<Result<Emitted, CliError>>],
        trial: Result<Trial, CliError>,
    ) -> Vec<Result<Measured, CliError>> {
        let kernels = job.ways.iter().map(|way| match &way.adapted {
            Ok((plan, kernel)) => match emitted[*kernel].wait() {
                Ok(kernel) => Ok((plan, kernel)),
                Err(error) => Err(error.clone()),
            },
            Err(error) => Err(error.clone()),
        });
        let kernels: Vec<_> = kernels.collect();
        let ready: Vec<_> = kernels
            .iter()
            .filter_map(|k| k.as_ref().ok().copied())
            .collect();
        let tried = trial.and_then(|trial| {
            trial
                .run(self.gpu, &ready, self.options)
                .map_err(|e| CliError::new("gpu", e.to_string()))
        });
        let mut tried = tried.map(Vec::into_iter);
        let outcome = |kernel: &Result<_, CliError>| {
            kernel.as_ref().map_err(Clone::clone)?;
            let next = tried.as_mut().map_err(|e| e.clone())?.next();
            let lost = || CliError::new("gpu", "it was not run");
            let tried = next.ok_or_else(lost)?;
            tried
                .map(|tried| measured(&tried))
                .map_err(|e| CliError::new("gpu", e.to_string()))
        };
        kernels.iter().map(outcome).collect()
    }
}

fn measured(tried: &Tried) -> Measured {
    Measured {
        milliseconds: tried.timing.median(),
        quartiles: tried.timing.quartiles(),
        max_rel_err: tried.check.max_rel_err,
        tolerance: tried.check.tolerance,
        passed: tried.check.passed,
    }
}

/// Threads that emit kernels: cores are left to the one that has the GPU, which must not wait for one, and to those that draw operands.
fn threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(3).max(1)
}

/// The results for all items, in their order, by all threads.
fn in_parallel<T: Sync, R: Send + Sync>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let (Some(item), Some(result)) = (items.get(at), results.get(at)) else {
                        break;
                    };
                    result.get_or_init(|| work(item));
                }
            });
        }
    });
    results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}
