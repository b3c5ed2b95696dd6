//! The kernels whose mutants are tried: one of each family, type and schedule of the GEMM plans, and one of each example.
//!
//! [`Subject::problems`] catch most mutants; [`Subject::others`] are tried on what survives. `complete.rs` holds the list to the registry and to the examples.

mod examples;
mod plans;

use tilewright::emulator::{Options, Report};
use tilewright::host::{
    Arg, Launches, On, Outcome, Param, RunError, RunOptions, Runnable, Scalars, run_with,
};
use tilewright::kernels::gemm::Schedule;

use crate::common::emulated::strict;
use plans::Family;

/// How a text is run: warp instructions at most, and the order of blocks and warps ([`Options::schedule`]).
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) limit: u64,
    pub(crate) schedule: u64,
}

/// Runs a text in place of the kernel's: the report and the bytes of the results.
pub(crate) type Runs = Box<dyn Fn(&str, How) -> Result<(Report, Vec<Vec<u8>>), String>>;

/// A kernel with its problems.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) problems: Vec<Runs>,
    /// Problems for what survives these.
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

fn options(how: How) -> RunOptions {
    RunOptions {
        emulator: Options {
            step_limit: how.limit,
            total_step_limit: 64 * how.limit,
            schedule: how.schedule,
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
    how: How,
) -> Result<Outcome, String> {
    let changed = Changed { kernel, text };
    run_with(&changed, On::Emulator, args, &options(how)).map_err(|e| e.to_string())
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

const PLAIN: Schedule = Schedule {
    split: 1,
    pack: false,
};

const PACKED: Schedule = Schedule {
    pack: true,
    ..PLAIN
};

const SPLIT: Schedule = Schedule { split: 2, ..PLAIN };

/// A kernel of a plan.
macro_rules! plan {
    ($plan:literal, $operands:literal, $schedule:expr, $width:literal, $problems:expr) => {
        || {
            Family {
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

/// A plan whose blocks take tile after tile.
fn in_turns(plan: &'static str, problems: [[u64; 3]; 2]) -> Subject {
    Family {
        plan,
        operands: "nt",
        schedule: PLAIN,
        width: 16,
        problems,
    }
    .of_one_block()
}

fn persistent() -> Subject {
    in_turns(
        "wgmma-f16-128x256x64+persistent",
        [[136, 264, 72], [264, 128, 200]],
    )
}

fn ping_pong() -> Subject {
    in_turns(
        "wgmma-f16-256x128x64+pingpong",
        [[264, 136, 72], [136, 264, 456]],
    )
}

fn dealt() -> Subject {
    in_turns(
        "wgmma-e4m3-256x144x128+pingpong+linear",
        [[264, 152, 144], [136, 280, 912]],
    )
}

/// All kernels.
pub(crate) const ALL: &[fn() -> Subject] = &[
    plan!(
        "sgemm-maxas-64",
        "tn",
        PLAIN,
        4,
        [[68, 64, 20], [35, 66, 36]]
    ),
    plan!(
        "sgemm-64x64x16",
        "nt",
        PLAIN,
        4,
        [[67, 64, 36], [35, 66, 84]]
    ),
    plan!("dgemm-4x4", "nn", PLAIN, 8, [[40, 36, 20], [36, 67, 36]]),
    plan!(
        "sgemm-r700-64",
        "nt",
        PLAIN,
        16,
        [[64, 64, 8], [128, 64, 16]]
    ),
    plan!(
        "mma-f16-64x64x32",
        "nn",
        PLAIN,
        16,
        [[72, 72, 40], [72, 40, 232]]
    ),
    plan!(
        "mma-bf16-64x64x32",
        "tt",
        PLAIN,
        16,
        [[72, 64, 40], [40, 72, 232]]
    ),
    plan!(
        "mma-f16acc16-64x64x32",
        "tn",
        PLAIN,
        16,
        [[64, 72, 40], [40, 72, 232]]
    ),
    plan!(
        "mma-tf32-64x64x16",
        "nt",
        PLAIN,
        16,
        [[72, 64, 20], [40, 72, 116]]
    ),
    plan!(
        "mma-e4m3-64x64x32",
        "tn",
        PLAIN,
        16,
        [[80, 64, 48], [48, 80, 240]]
    ),
    plan!(
        "mma-e5m2-64x64x32",
        "nn",
        PLAIN,
        16,
        [[80, 64, 48], [48, 80, 240]]
    ),
    plan!(
        "mma-s8-64x64x64",
        "nt",
        PLAIN,
        16,
        [[80, 64, 80], [48, 80, 464]]
    ),
    plan!(
        "mma-f64-64x64x16",
        "tn",
        PLAIN,
        16,
        [[66, 64, 18], [34, 66, 114]]
    ),
    plan!(
        "mma-f16-64x64x32+sm75",
        "nt",
        PLAIN,
        16,
        [[72, 72, 40], [72, 40, 136]]
    ),
    plan!(
        "mma-f16acc16-64x64x32+sm75",
        "tn",
        PLAIN,
        16,
        [[64, 72, 40], [40, 72, 136]]
    ),
    plan!(
        "mma-f16-64x64x32",
        "nn",
        PLAIN,
        2,
        [[67, 69, 37], [35, 69, 229]]
    ),
    plan!(
        "mma-f16-64x64x32",
        "tn",
        PACKED,
        2,
        [[67, 69, 50], [35, 69, 230]]
    ),
    plan!(
        "mma-bf16-64x64x32",
        "nt",
        SPLIT,
        16,
        [[72, 80, 56], [40, 72, 232]]
    ),
    plan!(
        "wgmma-f16-64x128x64",
        "tn",
        PLAIN,
        16,
        [[72, 136, 72], [64, 128, 392]]
    ),
    plan!(
        "wgmma-bf16-64x128x64",
        "nt",
        PLAIN,
        16,
        [[72, 128, 72], [64, 136, 392]]
    ),
    plan!(
        "wgmma-tf32-64x128x32",
        "tn",
        PLAIN,
        16,
        [[68, 128, 36], [64, 132, 196]]
    ),
    plan!(
        "wgmma-e4m3-64x128x128",
        "tn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    plan!(
        "wgmma-e5m2-64x128x128",
        "nn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    plan!(
        "wgmma-s8-64x128x128",
        "tn",
        PLAIN,
        16,
        [[80, 128, 144], [64, 144, 784]]
    ),
    plan!(
        "wgmma-e4m3-128x128x128+promoted",
        "nt",
        PLAIN,
        16,
        [[144, 128, 144], [128, 144, 784]]
    ),
    plan!(
        "wgmma-e5m2-128x128x128+promoted",
        "nt",
        PLAIN,
        16,
        [[144, 128, 144], [128, 144, 784]]
    ),
    plan!(
        "wgmma-tf32-256x128x32+swapab",
        "nn",
        PLAIN,
        16,
        [[264, 128, 36], [40, 136, 196]]
    ),
    plan!(
        "wgmma-f16-16x64x128+swapab+stages4",
        "tn",
        PLAIN,
        16,
        [[16, 136, 72], [24, 64, 648]]
    ),
    plan!(
        "wgmma-s8-32x64x256+swapab+stages4",
        "nt",
        PLAIN,
        16,
        [[56, 80, 272], [16, 64, 1296]]
    ),
    plan!(
        "wgmma-f16-128x128x64+cluster2x1",
        "nt",
        PLAIN,
        16,
        [[144, 128, 72], [128, 144, 392]]
    ),
    persistent,
    ping_pong,
    dealt,
    examples::transposed,
    examples::normalised,
    examples::normalised_by_root,
    examples::multiplied_by_few_rows,
    examples::multiplied_by_groups,
    examples::multiplied_by_masked_groups,
    examples::normalised_backward,
    examples::normalised_backward_of_long_rows,
    examples::normalised_by_root_backward,
    examples::normalised_and_quantised,
    examples::normalised_and_quantised_by_blocks,
    examples::combined,
    examples::gathered,
    examples::routed,
    examples::quantised_by_rows,
    examples::quantised_in_order,
    examples::quantised_by_squares,
    examples::softened,
    examples::multiplied_with_scales,
    examples::multiplied_with_weights_of_4_bits,
    examples::multiplied_with_weights_in_registers,
    examples::repacked,
    examples::softened_by_clusters,
    examples::entropy_by_clusters,
    examples::summed,
    examples::attended,
    examples::attended_by_all,
    examples::attended_on_hopper,
    examples::attended_on_hopper_by_three,
    examples::attended_on_hopper_by_one,
    examples::attended_by_sequences,
    examples::tiled,
    examples::quantized,
    examples::gated,
    examples::plain,
    examples::ping_pong,
    examples::cluster,
];
