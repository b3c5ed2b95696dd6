//! The subjects of the examples.

#![allow(clippy::duplicate_mod)] // Each example is a program of its own, with what they share.

#[path = "../../../examples/attention.rs"]
#[allow(dead_code)]
mod attention;
#[path = "../../../examples/gemm_quantize.rs"]
#[allow(dead_code)]
mod gemm_quantize;
#[path = "../../../examples/gemm_swiglu.rs"]
#[allow(dead_code)]
mod gemm_swiglu;
#[path = "../../../examples/gemm_tile.rs"]
#[allow(dead_code)]
mod gemm_tile;
#[path = "../../../examples/layer_norm.rs"]
#[allow(dead_code)]
mod layer_norm;
#[path = "../../../examples/rms_norm.rs"]
#[allow(dead_code)]
mod rms_norm;
#[path = "../../../examples/row_sums.rs"]
#[allow(dead_code)]
mod row_sums;
#[path = "../../../examples/softmax.rs"]
#[allow(dead_code)]
mod softmax;
#[path = "../../../examples/transpose.rs"]
#[allow(dead_code)]
mod transpose;

use half::f16;
use tilewright::codegen::Arch;
use tilewright::codegen::gemm::mma_sync::{MmaPlan, PLANS};
use tilewright::codegen::gemm::{FusedPlan, Gemm, Plan, PlanError, Schedule};
use tilewright::codegen::ir::Element;
use tilewright::host::{Arg, GemmKernel, On, run_with};

use super::{Changed, Runs, Subject, options, outcome, seen};

/// A kernel of an example, with runs of it: the first two are its problems.
fn example(name: &str, text: &str, mut problems: Vec<Runs>) -> Subject {
    let others = problems.split_off(2);
    Subject {
        name: name.to_owned(),
        text: text.to_owned(),
        problems,
        others,
    }
}

pub(super) fn transposed() -> Subject {
    let kernel = transpose::transpose(Element::F32, true, Arch(80)).expect("proven");
    let problem = |rows: usize, cols: usize| -> Runs {
        let x: Vec<f32> = random(rows * cols);
        let kernel = kernel.clone();
        Box::new(move |text, how| {
            let args = vec![
                ("rows", Arg::from(rows as u32)),
                ("cols", Arg::from(cols as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(rows * cols)),
            ];
            seen(outcome(&kernel, text, args, how)?, &["y"])
        })
    };
    // The last row in every eighth of a tile, the last column in both halves.
    let eighths = (0..16).map(|i| problem(8 * (i % 8) + 3 + i / 4, 32 * (i / 8) + 9 + i));
    let first = [problem(67, 65), problem(130, 33)];
    example(
        "transpose",
        &kernel.ptx,
        first.into_iter().chain(eighths).collect(),
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
        pub(super) fn $function() -> Subject {
            use $room::common::rows::{arguments, kernel, vectors};
            use $room::$kernel as K;
            let built = kernel::<K>(Element::F32, 70, Arch(80)).expect("proven");
            let problem = |rows: usize, cols: usize| -> Runs {
                let x = random(rows * cols);
                let vectors = vectors::<K, f32>(cols, 7);
                let kernel = built.clone();
                Box::new(move |text, how| {
                    let args = arguments::<K, f32>(rows, cols, &x, &vectors);
                    seen(outcome(&kernel, text, args, how)?, &["y"])
                })
            };
            // Every length, but for a few.
            let lengths = (1..70).step_by(3).map(|cols| problem(1 + cols % 19, cols));
            let first = [problem(5, 70), problem(9, 67)];
            example(
                $name,
                &built.ptx,
                first.into_iter().chain(lengths).collect(),
            )
        }
    };
}

rows!(normalised, "layer_norm", layer_norm, LayerNorm);
rows!(normalised_by_root, "rms_norm", rms_norm, RmsNorm);
rows!(summed, "row_sums", row_sums, RowSums);
rows!(softened, "softmax", softmax, Softmax);

fn attend(causal: bool) -> Subject {
    use attention::{Attention, Schedule, Sizes, attention, outputs};
    let what = Attention {
        element: Element::F16,
        d: 64,
        causal,
    };
    let how = Schedule {
        queries: 64,
        keys: 32,
        warps: 4,
        stages: 2,
    };
    let kernel = attention(what, how, Arch(80)).expect("proven");
    let problem = |queries: usize, keys: usize| -> Runs {
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
        Box::new(move |text, how| {
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
                    &options(how),
                )?;
                kept = seen(outcome.clone(), &["o", "lse"]);
                Ok(outcome)
            };
            let _ = outputs(what, sizes, [&q[..], &k[..], &v[..]], launch);
            kept
        })
    };
    let sizes = [
        [67, 41],
        [66, 130],
        [1, 1],
        [64, 64],
        [130, 199],
        [129, 100],
        [200, 200],
        [16, 33],
        [33, 160],
        [70, 97],
        [191, 31],
        [48, 300],
        [65, 65],
        [257, 257],
        [100, 36],
        // More queries than keys, and the last keys in a tile of an even number: the bound of the keys is not that of the queries.
        [110, 71],
    ];
    let name = if causal { "attention" } else { "attention-all" };
    let problems = sizes.map(|[queries, keys]| problem(queries, keys));
    example(name, &kernel.ptx, problems.into())
}

pub(super) fn attended() -> Subject {
    attend(true)
}

pub(super) fn attended_by_all() -> Subject {
    attend(false)
}

pub(super) fn tiled() -> Subject {
    let kernel = gemm_tile::gemm(Arch(80)).expect("proven");
    let problem = |m: usize, n: usize, k: usize| -> Runs {
        let (a, b) = (gemm_tile::numbers(1, m * k), gemm_tile::numbers(2, k * n));
        let kernel = kernel.clone();
        Box::new(move |text, how| {
            let args = vec![
                ("m", Arg::from(m as u32)),
                ("n", Arg::from(n as u32)),
                ("k", Arg::from(k as u32)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<f16>(m * n)),
            ];
            seen(outcome(&kernel, text, args, how)?, &["c"])
        })
    };
    let sizes = (0..16).map(|i| {
        let tiles = 64 * usize::from(i % 5 == 4);
        problem(
            8 * (1 + i % 8) + tiles,
            8 * (1 + (3 * i + 1) % 8) + tiles,
            8 * (1 + 3 * i),
        )
    });
    let more = [problem(72, 72, 40), problem(64, 72, 168)];
    example(
        "gemm_tile",
        &kernel.ptx,
        more.into_iter().chain(sizes).collect(),
    )
}

/// A plan with an epilogue of an example, and its arguments beside C.
fn fused(
    name: &str,
    fuse: impl Fn(MmaPlan) -> Result<FusedPlan, PlanError>,
    output: Element,
    inputs: impl Fn([usize; 3]) -> Vec<(&'static str, Arg<'static>)> + Copy + 'static,
) -> Subject {
    let plan = PLANS.iter().find(|p| p.name() == "mma-f16-64x64x32");
    let plan = fuse(*plan.expect("there is such a plan")).expect("it takes the epilogue");
    let operands = "nt".parse().expect("operands");
    let of = |[m, n, k]: [u64; 3]| Gemm {
        output: Some(output),
        ..Gemm::packed(m, n, k, operands)
    };
    let first = of([72, 80, 40]);
    let adapted = || plan.adapt(&first, Schedule::default()).expect("it serves");
    let kernel = adapted().emit(operands, Arch(80)).expect("the plan proves");
    let problem = |size: [u64; 3]| -> Runs {
        let (plan, kernel, problem) = (adapted(), kernel.clone(), of(size));
        Box::new(move |text, how| {
            let kernel = GemmKernel::emitted(plan.as_ref(), &kernel, &problem);
            let kernel = kernel.map_err(|e| e.to_string())?;
            let [m, n, k] = size.map(|s| s as usize);
            let mut args = inputs([m, n, k]);
            args.push(match output {
                Element::S8 => ("C", Arg::output::<i8>(m * n)),
                _ => ("C", Arg::output::<f32>(m * n)),
            });
            seen(outcome(&kernel, text, args, how)?, &["C"])
        })
    };
    let sizes = (0..16).map(|i| {
        let tiles = 64 * u64::from(i % 5 == 4);
        let (m, n) = (5 * i + 3 + tiles, 8 * (1 + (3 * i + 1) % 8) + tiles);
        problem([m, n, 32 * ((i + 4) % 8) + 8 * (1 + i % 4)])
    });
    let first = [[72, 80, 40], [40, 72, 232]].map(problem);
    example(name, &kernel.ptx, first.into_iter().chain(sizes).collect())
}

/// f16 numbers from -1 to 1.
fn halves(n: usize, shift: usize) -> Vec<f16> {
    let all = random(n + shift);
    all[shift..].iter().map(|x| f16::from_f32(*x)).collect()
}

pub(super) fn quantized() -> Subject {
    let inputs = |[m, n, k]: [usize; 3]| {
        // Sums are of the order of the root of k: some are beyond what 8 bits hold.
        let unit = 250.0 / (k as f32).sqrt();
        let scale: Vec<f32> = random(m).iter().map(|x| unit * x).collect();
        vec![
            ("A", Arg::input(&halves(m * k, 0))),
            ("B", Arg::input(&halves(n * k, 5))),
            ("scale", Arg::input(&scale)),
        ]
    };
    fused(
        "gemm_quantize",
        gemm_quantize::quantized,
        Element::S8,
        inputs,
    )
}

pub(super) fn gated() -> Subject {
    let inputs = |[m, n, k]: [usize; 3]| {
        vec![
            ("A", Arg::input(&halves(m * k, 0))),
            ("B", Arg::input(&halves(n * k, 5))),
            ("B2", Arg::input(&halves(n * k, 9))),
        ]
    };
    // In f32, whose last bits C shows.
    fused("gemm_swiglu", gemm_swiglu::swiglu, Element::F32, inputs)
}
