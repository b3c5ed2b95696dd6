//! Selection: which plan, cut how, for a problem on a machine.
//!
//! ```text
//! problem ──▶ candidates: plans of the type × split × pack ──▶ estimate of each ──▶ the fastest that serves
//!                                                     findings (tune, shipped) ──▶ or the fastest that was measured
//! ```
//!
//! [`estimate`] is an analytic model of a kernel's time, its formula in [`model`]; it needs a [`Machine`], which is a row of a table or what the
//! driver says. [`candidates`] are all plans of a type with every way to split their sums and to pack their operands that makes sense, in
//! order of their estimates; each is asked whether it serves the problem before it counts. [`choose`] takes the first of them, unless
//! [`Findings`] of measurements on the same device speak for the problem: what was measured goes before what was estimated.
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::gemm::{DataType, Gemm, Operands};
//! use tilewright_kernels::select::{Machine, choose};
//!
//! let h200 = Machine::for_arch(Arch(90));
//! let nn: Operands = "nn".parse()?;
//! let large = Gemm::packed(4096, 4096, 4096, nn);
//! let choice = choose(DataType::F16, &large, Arch(90), &h200, None)?;
//! assert_eq!(choice.schedule.split, 1);
//! assert!(choice.reason.to_string().starts_with("estimated at 0.2"), "{}", choice.reason);
//! let kernel = choice.config.specialize(&large, choice.schedule)?.emit(nn, Arch(90))?;
//! assert!(kernel.ptx.contains("wgmma.mma_async"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod findings;
mod gains;
mod machine;
pub mod model;
mod shipped;
mod shortlist;
use std::fmt;

use layout_codegen::Arch;

use crate::gemm::{Config, DataType, Gemm, PlanError, Schedule};
pub use findings::{Finding, Findings, NEAR, ProblemClass, Timed};
use gains::gains_nothing;
pub use machine::{Machine, Rates};
use model::LINE;
pub use model::{Bound, Demands, Estimate, estimate};
pub use shipped::shipped;
pub use shortlist::shortlist;

/// Into how many parts sums are split.
const SPLITS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Estimates that differ by less count as equal on a machine that was not measured. Of such candidates the one whose blocks copy fewest bytes is chosen: it depends
/// least on the cache, of which little is published.
const UNSURE: f64 = 0.15;

/// Elements that a block copies for each multiply-accumulate.
fn copied(c: &Candidate) -> f64 {
    let [m, n, _] = c.config.tile;
    1.0 / f64::from(m) + 1.0 / f64::from(n)
}

/// One way to compute a problem.
pub struct Candidate {
    /// The configuration.
    pub config: Config,
    /// How it is cut.
    pub schedule: Schedule,
    /// What the model says.
    pub estimate: Estimate,
}

/// What was chosen.
pub struct Choice {
    /// The configuration.
    pub config: Config,
    /// How it is cut.
    pub schedule: Schedule,
    /// Why this one.
    pub reason: Reason,
}

/// Why a plan was chosen.
#[derive(Clone, PartialEq, Debug)]
pub enum Reason {
    /// It was the fastest that was measured.
    Measured {
        /// The device and the class on which it was measured, and the day.
        finding: Finding,
        /// Its time there.
        milliseconds: f64,
        /// Whether that is the problem's own class, not one near it.
        exact: bool,
    },
    /// The model says that it is the fastest.
    Estimated(Estimate),
}

/// Why nothing was chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SelectError {
    /// No plan computes in this type on this architecture.
    NoPlan {
        /// The type.
        data_type: DataType,
        /// The architecture.
        arch: Arch,
        /// The first architecture on which one does, if there is any.
        needs: Option<Arch>,
    },
    /// Plans there are, but none serves the problem; what the first of them says.
    Plan(PlanError),
}

impl SelectError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPlan { .. } => "no_plan",
            Self::Plan(e) => e.code(),
        }
    }
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlan {
                data_type,
                arch,
                needs,
            } => {
                write!(f, "no plan computes in {data_type} on {arch}")?;
                match needs {
                    Some(needs) => write!(f, "; it takes {needs} or later"),
                    None => Ok(()),
                }
            }
            Self::Plan(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for SelectError {}

impl From<PlanError> for SelectError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured {
                finding,
                milliseconds,
                exact,
            } => {
                let c = &finding.class;
                let what = if *exact { "" } else { "near it, " };
                let of = match finding.candidates.len() {
                    1 => String::new(),
                    n => format!("of {n} "),
                };
                write!(
                    f,
                    "the fastest {of}measured {what}at {}x{}x{} on {} ({}): {milliseconds:.4} ms",
                    c.m, c.n, c.k, finding.device, finding.date
                )
            }
            Self::Estimated(e) => write!(
                f,
                "estimated at {:.4} ms: {} blocks, {:.2} waves of {} a multiprocessor, bound by {}",
                e.seconds * 1e3,
                e.blocks,
                e.waves,
                e.resident,
                e.bound
            ),
        }
    }
}

/// What is already decided: plan, split, pack; what is none is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// The configuration.
    pub config: Option<Config>,
    /// Into how many parts sums are split.
    pub split: Option<u32>,
    /// Whether operands are packed.
    pub pack: Option<bool>,
}

/// All ways to compute `problem` on `arch`, the one that the model says is fastest on `machine` first; plans that were measured to gain nothing over simpler
/// ones, such as clusters where rows begin with sectors, are behind the others. Each serves the problem: its plan adapts to it and fits the architecture's shared
/// memory.
///
/// # Errors
///
/// [`SelectError::NoPlan`], or why the plans that there are do not serve.
pub fn candidates(
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
    machine: &Machine,
) -> Result<Vec<Candidate>, SelectError> {
    Wanted::default().candidates(data_type, problem, arch, machine)
}

/// The plan for `problem`: the fastest that was measured, if `findings`, or those that come with Tilewright ([`shipped`]), speak for it on `machine`, else the first of [`candidates`].
///
/// # Errors
///
/// As [`candidates`].
pub fn choose(
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
    machine: &Machine,
    findings: Option<&Findings>,
) -> Result<Choice, SelectError> {
    Wanted::default().choose(data_type, problem, arch, machine, findings)
}

impl Wanted {
    /// As [`candidates`](self::candidates()), of what is wanted.
    ///
    /// # Errors
    ///
    /// As there, and a plan that does not exist, computes in another type or needs a later architecture.
    pub fn candidates(
        &self,
        data_type: DataType,
        problem: &Gemm,
        arch: Arch,
        machine: &Machine,
    ) -> Result<Vec<Candidate>, SelectError> {
        let mut refusals = Refusals::default();
        let configs = self.configs(data_type, arch)?;
        let mut all = self.ranked(&configs, problem, machine);
        all.retain(|c| refusals.accept(c, problem, arch));
        if all.is_empty() {
            return Err(refusals.error(data_type, arch));
        }
        Ok(all)
    }

    /// As [`choose`](self::choose()), of what is wanted.
    ///
    /// # Errors
    ///
    /// As [`Wanted::candidates`].
    pub fn choose(
        &self,
        data_type: DataType,
        problem: &Gemm,
        arch: Arch,
        machine: &Machine,
        findings: Option<&Findings>,
    ) -> Result<Choice, SelectError> {
        // What is wanted and does not exist is refused before anything is looked up.
        let configs = self.configs(data_type, arch)?;
        let class = ProblemClass::of(data_type, problem);
        let own = findings.and_then(|f| f.lookup(&machine.name, &class));
        let mut known = own.into_iter().chain(shipped(machine, &class));
        if let Some(choice) = known.find_map(|f| self.measured(f, &class, problem, arch)) {
            return Ok(choice);
        }
        let ranked = self.ranked(&configs, problem, machine);
        let mut refusals = Refusals::default();
        ranked
            .into_iter()
            .find(|c| refusals.accept(c, problem, arch))
            .map(|c| Choice {
                config: c.config,
                schedule: c.schedule,
                reason: Reason::Estimated(c.estimate),
            })
            .ok_or_else(|| refusals.error(data_type, arch))
    }

    /// The fastest plan of a finding that serves the problem. A neighbour's plan is taken only if the problem has no more tiles of it than the measured one: 128 rows are one tile of
    /// 128 rows, 130 rows are two.
    fn measured(
        &self,
        finding: &Finding,
        class: &ProblemClass,
        problem: &Gemm,
        arch: Arch,
    ) -> Option<Choice> {
        let exact = finding.class == *class;
        finding.candidates.iter().find_map(|timed| {
            let config: Config = timed.plan.parse().ok()?;
            let schedule = timed.schedule;
            let [tm, tn, _] = config.tile;
            let tiles = |of: &ProblemClass| {
                let [down, across] = [(of.m, tm), (of.n, tn)].map(|(n, t)| n.div_ceil(t.into()));
                down.saturating_mul(across)
            };
            let allowed = self.config.is_none_or(|wanted| wanted == config)
                && self.split.is_none_or(|split| split == schedule.split)
                && self.pack.is_none_or(|pack| pack == schedule.pack)
                && config.data_type == class.data_type
                && config.runs_on(arch)
                && (exact || tiles(class) <= tiles(&finding.class))
                && serves(config, schedule, problem, arch).is_ok();
            allowed.then(|| Choice {
                config,
                schedule,
                reason: Reason::Measured {
                    finding: finding.clone(),
                    milliseconds: timed.milliseconds,
                    exact,
                },
            })
        })
    }

    /// The plans of these names with every schedule, in order of the estimates, not yet asked whether they serve; at least one.
    fn ranked(&self, configs: &[Config], problem: &Gemm, machine: &Machine) -> Vec<Candidate> {
        let mut all = Vec::new();
        for &config in configs {
            for schedule in self.schedules(&config, problem, machine) {
                all.push(Candidate {
                    config,
                    schedule,
                    estimate: estimate(&config, schedule, problem, machine),
                });
            }
        }
        // Equal times: fewer kernels first, then the order of the list of plans.
        all.sort_by(|a, b| {
            let simple = |c: &Candidate| (c.schedule.split, c.schedule.pack);
            let behind = |c: &Candidate| gains_nothing(&c.config, c.schedule, problem);
            let seconds = |c: &Candidate| c.estimate.seconds;
            behind(a)
                .cmp(&behind(b))
                .then(seconds(a).total_cmp(&seconds(b)))
                .then(simple(a).cmp(&simple(b)))
        });
        if let Some(first) = all.first().filter(|_| !machine.is_measured()) {
            let (limit, split) = (
                (1.0 + UNSURE) * first.estimate.seconds,
                first.schedule.split,
            );
            let is_near = |c: &&Candidate| {
                let simple = !gains_nothing(&c.config, c.schedule, problem);
                simple && c.estimate.seconds <= limit
            };
            let near = all.iter().take_while(is_near).count();
            let more_parts = |c: &Candidate| c.schedule.split > split;
            all[..near].sort_by(|a, b| {
                let parts = more_parts(a).cmp(&more_parts(b));
                parts.then(copied(a).total_cmp(&copied(b)))
            });
        }
        all
    }

    /// The configurations that compute in the type on the architecture.
    fn configs(&self, data_type: DataType, arch: Arch) -> Result<Vec<Config>, SelectError> {
        if let Some(config) = self.config {
            config.validate()?;
            let plan = config.to_string();
            if config.data_type != data_type {
                return Err(SelectError::Plan(PlanError::WrongType {
                    plan,
                    asked: data_type,
                    serves: config.data_type,
                }));
            }
            if config.min_arch() > arch {
                return Err(SelectError::Plan(PlanError::ArchTooOld {
                    plan,
                    asked: arch,
                    needs: config.min_arch(),
                }));
            }
            if !config.runs_on(arch) {
                return Err(SelectError::Plan(PlanError::OtherArch {
                    plan,
                    asked: arch,
                    only: config.min_arch(),
                }));
            }
            return Ok(vec![config]);
        }
        let of_type = || Config::table().filter(|c| c.data_type == data_type);
        let mut able: Vec<_> = of_type()
            .filter(|c| c.runs_on(arch) && !c.is_promoted())
            .collect();
        // What copies through registers gives way to what has `cp.async`: at 4096³ in f16 an H200 takes 0.82 ms instead of 0.30.
        if able.iter().any(Config::is_asynchronous) {
            able.retain(Config::is_asynchronous);
        }
        if able.is_empty() {
            return Err(SelectError::NoPlan {
                data_type,
                arch,
                needs: of_type().map(|c| c.min_arch()).min(),
            });
        }
        Ok(able)
    }

    /// The schedules that make sense: sums split only while that leaves each part two steps and adds blocks that run at the same time, and
    /// operands packed only if there is one whose rows are aligned to less than 16 bytes; neither in a batch, which has blocks enough and
    /// is not packed.
    fn schedules(&self, config: &Config, problem: &Gemm, machine: &Machine) -> Vec<Schedule> {
        let single = problem.batch.count == 1;
        let plain = estimate(config, Schedule::default(), problem, machine);
        let splits: Vec<u32> = match self.split {
            Some(split) => vec![split.max(1)],
            None => SPLITS
                .into_iter()
                .filter(|&s| {
                    let (waves, parts) = (plain.waves * f64::from(s), u64::from(s));
                    s == 1 || (single && waves <= 4.0 && 2 * parts <= plain.steps)
                })
                .collect(),
        };
        let [a, b, _] = problem.widths(config.data_type);
        let in_lines = [problem.lda, problem.ldb]
            .into_iter()
            .all(|ld| ld.is_multiple_of(LINE / u64::from(config.data_type.bytes())));
        let packs: &[bool] = match self.pack {
            Some(true) => &[true],
            // Plans of warpgroups copy no narrow rows.
            None if single && a.min(b) < 16 && config.is_wgmma() => &[true],
            None if single && a.min(b) < 16 => &[false, true],
            // Boxes of TMA are slower where rows do not begin lines.
            None if single && config.is_wgmma() && !in_lines => &[false, true],
            Some(false) | None => &[false],
        };
        splits
            .into_iter()
            .flat_map(|split| packs.iter().map(move |&pack| Schedule { split, pack }))
            .collect()
    }
}

/// Whether a plan adapts to a problem, can be launched, and fits the architecture.
fn serves(config: Config, schedule: Schedule, problem: &Gemm, arch: Arch) -> Result<(), PlanError> {
    let kernel = config.specialize(problem, schedule)?;
    // An empty product has no launch, and yet its kernel is to be emitted.
    let needs = kernel.shared_bytes(problem.operands)?;
    if needs > arch.shared_limit() {
        return Err(PlanError::SharedMemory {
            plan: config.to_string(),
            needs,
            arch,
        });
    }
    kernel.launch(problem).map(drop)
}

/// Why candidates were passed over.
#[derive(Default)]
struct Refusals {
    all: Vec<(Schedule, PlanError)>,
}

impl Refusals {
    /// Whether the candidate serves; if not, its reason is kept.
    fn accept(&mut self, c: &Candidate, problem: &Gemm, arch: Arch) -> bool {
        match serves(c.config, c.schedule, problem, arch) {
            Ok(()) => true,
            Err(e) => {
                self.all.push((c.schedule, e));
                false
            }
        }
    }

    /// The reason that says most: that of the plainest schedule, for a split or a packing is nothing that anybody asked for.
    fn error(self, data_type: DataType, arch: Arch) -> SelectError {
        let plainest = self.all.into_iter().min_by_key(|(s, _)| (s.split, s.pack));
        plainest.map_or(
            SelectError::NoPlan {
                data_type,
                arch,
                needs: None,
            },
            |(_, e)| e.into(),
        )
    }
}
