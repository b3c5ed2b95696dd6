//! The kernels whose mutants are tried: one of each family of the GEMM plans, and the examples' own.
//!
//! Each runs on small problems, ragged where the kernel takes that; the second has a longer sum, so that rings of stages come round. What survives both runs on two
//! others: less than a tile with a longer sum, in which the rings come round several times, and more tiles.

#![allow(clippy::duplicate_mod)] // Each example is a program of its own, with what they share.

#[path = "../../examples/attention.rs"]
#[allow(dead_code)]
mod attention;
#[path = "../../examples/gemm_tile.rs"]
#[allow(dead_code)]
mod gemm_tile;
#[path = "../../examples/layer_norm.rs"]
#[allow(dead_code)]
mod layer_norm;
#[path = "../../examples/softmax.rs"]
#[allow(dead_code)]
mod softmax;
#[path = "../../examples/transpose.rs"]
#[allow(dead_code)]
mod transpose;

use half::f16;
use tilewright::codegen::gemm::{Alignment, DataType, Emitted, Gemm, Schedule};
use tilewright::codegen::ir::Element;
use tilewright::codegen::registry::plan_named;
use tilewright::codegen::{Arch, Proven};
use tilewright::emulator::{Options, Report};
use tilewright::host::{
    Arg, GemmKernel, Inputs, Launches, On, Outcome, Param, RunError, RunOptions, Runnable, Scalars,
    run_with,
};

use crate::common::emulated::strict;

/// Runs a text in place of the kernel's, for so many steps: the report and the bytes of the results.
pub(crate) type Runs = Box<dyn Fn(&str, u64) -> Result<(Report, Vec<Vec<u8>>), String>>;

/// A kernel with its problems.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) problems: Vec<Runs>,
    /// Problems for what survives these: less than a tile with a sum three times as long, and more tiles.
    pub(crate) others: Vec<Runs>,
}

/// A kernel with another text.
struct Changed<'a, K: Runnable + ?Sized> {
    kernel: &'a K,
    text: &'a str,
}

impl<K: Runnable + ?Sized> Runnable for Changed<'_, K> {
    fn ptx(&self) -> &str {
        self.text
    }

    fn entry(&self) -> &str {
        self.kernel.entry()
    }

    fn params(&self) -> Vec<Param> {
        self.kernel.params()
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        self.kernel.launches(scalars)
    }
}

fn options(limit: u64) -> RunOptions {
    RunOptions {
        emulator: Options {
            step_limit: limit,
            total_step_limit: 64 * limit,
            workers: 1,
            lane_races: true,
            ..strict()
        },
        ..RunOptions::default()
    }
}

/// Runs `kernel` with the text `text`.
fn outcome<K: Runnable + ?Sized>(
    kernel: &K,
    text: &str,
    args: Vec<(&str, Arg<'_>)>,
    limit: u64,
) -> Result<Outcome, String> {
    let changed = Changed { kernel, text };
    run_with(&changed, On::Emulator, args, &options(limit)).map_err(|e| e.to_string())
}

/// The report and these results.
fn seen(outcome: Outcome, results: &[&str]) -> Result<(Report, Vec<Vec<u8>>), String> {
    let bytes = results.iter().map(|name| {
        let bytes = outcome.bytes(name).map_err(|e| e.to_string())?;
        Ok(bytes.to_vec())
    });
    let bytes = bytes.collect::<Result<_, String>>()?;
    Ok((outcome.report.ok_or("no report")?, bytes))
}

/// A plan of a GEMM family (plans that are emitted by the same code), its operands, how it is scheduled, bytes of alignment, and two problems.
struct Family {
    kind: &'static str,
    plan: &'static str,
    operands: &'static str,
    schedule: Schedule,
    width: u32,
    problems: [[u64; 3]; 2],
}

const PLAIN: Schedule = Schedule {
    split: 1,
    pack: false,
};

impl Family {
    fn problem(&self, [m, n, k]: [u64; 3], bytes: u32) -> Gemm {
        let operands = self.operands.parse().expect("operands");
        let packed = Gemm::packed(m, n, k, operands);
        let whole = u64::from(self.width / bytes).max(1);
        let ld = |ld: u64| ld.next_multiple_of(whole) + u64::from(self.width < 16) * whole;
        Gemm {
            lda: ld(packed.lda),
            ldb: ld(packed.ldb),
            ldc: packed.ldc.next_multiple_of(16) + 16,
            alpha: 1.25,
            beta: -0.75,
            alignment: Alignment {
                a: self.width,
                b: self.width,
                c: 16,
            },
            ..packed
        }
    }

    fn subject(self) -> Subject {
        let listed = plan_named(self.plan).expect("there is such a plan");
        let bytes = listed.data_type().bytes();
        let problem = |size| {
            let problem = self.problem(size, bytes);
            // Integers have no fractions.
            if listed.data_type() == DataType::S8 {
                return Gemm {
                    alpha: 2.0,
                    beta: -1.0,
                    ..problem
                };
            }
            problem
        };
        let [first, second] = self.problems.map(&problem);
        let [[m, n, short], [_, _, long]] = self.problems;
        let others = match self.kind {
            // Whole tiles only.
            "outer" => vec![[m, n, 3 * long]],
            "wgmma" => vec![[48, 80, 3 * long], [m + 48, n + 32, short]],
            _ => vec![[48, 48, 3 * long], [m + 48, n + 32, short]],
        };
        let others: Vec<Gemm> = others.into_iter().map(&problem).collect();
        let plan = listed
            .adapt(&first, self.schedule)
            .unwrap_or_else(|e| panic!("{}: {e}", self.plan));
        let kernel = plan
            .emit(first.operands, plan.min_arch())
            .expect("the plan proves");
        let text = kernel.ptx.clone();
        let runs = |problem: Gemm| {
            let plan = listed.adapt(&first, self.schedule).expect("as before");
            let inputs = Inputs::random(&problem, plan.data_type(), 9);
            let kernel: Emitted = kernel.clone();
            let runs: Runs = Box::new(move |text, limit| {
                let kernel = GemmKernel::emitted(plan.as_ref(), &kernel, &problem);
                let kernel = kernel.map_err(|e| e.to_string())?;
                seen(outcome(&kernel, text, kernel.args(&inputs), limit)?, &["C"])
            });
            runs
        };
        Subject {
            name: format!(
                "{}-{}{}",
                self.plan,
                self.operands,
                match self.schedule {
                    Schedule { pack: true, .. } => "-pack",
                    Schedule { split: 2.., .. } => "-split",
                    _ if self.width == 2 => "-unaligned",
                    _ => "",
                }
            ),
            text,
            problems: vec![runs(first), runs(second)],
            others: others.into_iter().map(runs).collect(),
        }
    }
}

/// One kernel of a family.
macro_rules! family {
    ($family:literal, $plan:literal, $operands:literal, $schedule:expr, $width:literal, $problems:expr) => {
        || {
            Family {
                kind: $family,
                plan: $plan,
                operands: $operands,
                schedule: $schedule,
                width: $width,
                problems: $problems,
            }
            .subject()
        }
    };
}

/// All kernels.
pub(crate) const ALL: &[fn() -> Subject] = &[
    family!(
        "simt",
        "sgemm-maxas-64",
        "tn",
        PLAIN,
        4,
        [[68, 64, 20], [35, 66, 36]]
    ),
    family!(
        "simt",
        "sgemm-64x64x16",
        "nt",
        PLAIN,
        4,
        [[67, 64, 36], [35, 66, 84]]
    ),
    family!(
        "simt",
        "dgemm-4x4",
        "nn",
        PLAIN,
        8,
        [[40, 36, 20], [36, 67, 36]]
    ),
    family!(
        "outer",
        "sgemm-r700-64",
        "nt",
        PLAIN,
        16,
        [[64, 64, 8], [128, 64, 16]]
    ),
    family!(
        "mma",
        "mma-f16-64x64x32",
        "nn",
        PLAIN,
        16,
        [[72, 72, 40], [72, 40, 232]]
    ),
    family!(
        "mma",
        "mma-bf16-64x64x32",
        "tt",
        PLAIN,
        16,
        [[72, 64, 40], [40, 72, 232]]
    ),
    family!(
        "mma",
        "mma-f16acc16-64x64x32",
        "tn",
        PLAIN,
        16,
        [[64, 72, 40], [40, 72, 232]]
    ),
    family!(
        "mma",
        "mma-tf32-64x64x16",
        "nt",
        PLAIN,
        16,
        [[72, 64, 20], [40, 72, 116]]
    ),
    family!(
        "mma",
        "mma-e4m3-64x64x32",
        "tn",
        PLAIN,
        16,
        [[80, 64, 48], [48, 80, 240]]
    ),
    family!(
        "mma",
        "mma-e5m2-64x64x32",
        "nn",
        PLAIN,
        16,
        [[80, 64, 48], [48, 80, 240]]
    ),
    family!(
        "mma",
        "mma-s8-64x64x64",
        "nt",
        PLAIN,
        16,
        [[80, 64, 80], [48, 80, 464]]
    ),
    family!(
        "mma",
        "mma-f64-64x64x16",
        "tn",
        PLAIN,
        16,
        [[66, 64, 18], [34, 66, 114]]
    ),
    family!(
        "mma",
        "mma-f16-64x64x32",
        "nn",
        PLAIN,
        2,
        [[67, 69, 37], [35, 69, 229]]
    ),
    family!(
        "mma",
        "mma-f16-64x64x32",
        "tn",
        Schedule {
            split: 1,
            pack: true
        },
        2,
        [[67, 69, 50], [35, 69, 230]]
    ),
    family!(
        "mma",
        "mma-bf16-64x64x32",
        "nt",
        Schedule {
            split: 2,
            pack: false
        },
        16,
        [[72, 80, 56], [40, 72, 232]]
    ),
    family!(
        "wgmma",
        "wgmma-f16-64x128x64",
        "tn",
        PLAIN,
        16,
        [[72, 136, 72], [64, 128, 392]]
    ),
    family!(
        "wgmma",
        "wgmma-bf16-64x128x64",
        "nt",
        PLAIN,
        16,
        [[72, 128, 72], [64, 136, 392]]
    ),
    family!(
        "wgmma",
        "wgmma-tf32-64x128x32",
        "tn",
        PLAIN,
        16,
        [[68, 128, 36], [64, 132, 196]]
    ),
    family!(
        "wgmma",
        "wgmma-e4m3-64x128x128",
        "tn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    family!(
        "wgmma",
        "wgmma-e5m2-64x128x128",
        "nn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    family!(
        "wgmma",
        "wgmma-s8-64x128x128",
        "tn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    transposed,
    normalised,
    softened,
    attended,
    tiled,
];

/// A kernel of an example, with runs of it.
fn example(name: &str, kernel: &Proven, problems: Vec<Runs>) -> Subject {
    Subject {
        name: name.to_owned(),
        text: kernel.ptx.clone(),
        problems,
        others: Vec::new(),
    }
}

fn transposed() -> Subject {
    let kernel = transpose::transpose(Element::F32, true, Arch(80)).expect("proven");
    let problem = |rows: usize, cols: usize| -> Runs {
        let x: Vec<f32> = random(rows * cols);
        let kernel = kernel.clone();
        Box::new(move |text, limit| {
            let args = vec![
                ("rows", Arg::from(rows as u32)),
                ("cols", Arg::from(cols as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(rows * cols)),
            ];
            seen(outcome(&kernel, text, args, limit)?, &["y"])
        })
    };
    example(
        "transpose",
        &kernel,
        vec![problem(67, 65), problem(130, 33)],
    )
}

/// Numbers from -1 to 1 of which no two neighbours are alike.
fn random(n: usize) -> Vec<f32> {
    let word = |i: usize| (i as u32).wrapping_mul(0x9e37_79b1) >> 8;
    (0..n).map(|i| word(i) as f32 / 8_388_608.0 - 1.0).collect()
}

/// An example on rows of f32.
macro_rules! rows {
    ($function:ident, $name:literal, $room:ident, $kernel:ident) => {
        fn $function() -> Subject {
            use $room::common::rows::{arguments, kernel, vectors};
            use $room::$kernel as K;
            let built = kernel::<K>(Element::F32, 70, Arch(80)).expect("proven");
            let problem = |rows: usize, cols: usize| -> Runs {
                let x = random(rows * cols);
                let vectors = vectors::<K, f32>(cols, 7);
                let kernel = built.clone();
                Box::new(move |text, limit| {
                    let args = arguments::<K, f32>(rows, cols, &x, &vectors);
                    seen(outcome(&kernel, text, args, limit)?, &["y"])
                })
            };
            example($name, &built, vec![problem(5, 70), problem(9, 67)])
        }
    };
}

rows!(normalised, "layer_norm", layer_norm, LayerNorm);
rows!(softened, "softmax", softmax, Softmax);

fn attended() -> Subject {
    use attention::{Attention, Schedule, Sizes, attention, outputs};
    let what = Attention {
        element: Element::F16,
        d: 64,
        causal: true,
    };
    let how = Schedule {
        queries: 64,
        keys: 32,
        warps: 4,
        stages: 2,
    };
    let kernel = attention(what, how, Arch(80)).expect("proven");
    let problem = |queries: usize, keys: usize| -> Runs {
        let halves = |n: usize, shift: usize| -> Vec<f16> {
            let all = random(n + shift);
            all[shift..].iter().map(|x| f16::from_f32(*x)).collect()
        };
        let inputs = [
            halves(queries * 64, 0),
            halves(keys * 64, 5),
            halves(keys * 64, 9),
        ];
        let sizes = Sizes {
            sets: 1,
            group: 1,
            queries,
            keys,
        };
        let kernel = kernel.clone();
        Box::new(move |text, limit| {
            let [q, k, v] = &inputs;
            let mut kept = Err("not run".to_owned());
            let launch = |args: Vec<_>| {
                let outcome = run_with(
                    &Changed {
                        kernel: &kernel,
                        text,
                    },
                    On::Emulator,
                    args,
                    &options(limit),
                )?;
                kept = seen(outcome.clone(), &["o", "lse"]);
                Ok(outcome)
            };
            let _ = outputs(what, sizes, [&q[..], &k[..], &v[..]], launch);
            kept
        })
    };
    example(
        "attention",
        &kernel,
        vec![problem(67, 41), problem(66, 130)],
    )
}

fn tiled() -> Subject {
    let kernel = gemm_tile::gemm(Arch(80)).expect("proven");
    let problem = |m: usize, n: usize, k: usize| -> Runs {
        let (a, b) = (gemm_tile::numbers(1, m * k), gemm_tile::numbers(2, k * n));
        let kernel = kernel.clone();
        Box::new(move |text, limit| {
            let args = vec![
                ("m", Arg::from(m as u32)),
                ("n", Arg::from(n as u32)),
                ("k", Arg::from(k as u32)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<f16>(m * n)),
            ];
            seen(outcome(&kernel, text, args, limit)?, &["c"])
        })
    };
    example(
        "gemm_tile",
        &kernel,
        vec![problem(72, 72, 40), problem(64, 72, 168)],
    )
}
