//! `tilewright kernel attention --tune`: every tile of the kernel on one problem, the fastest first.
//!
//! A tile without a kernel, because it does not fit registers or shared memory, is left out. Every result is compared with float64, and a wrong one comes last.

use std::fmt::Write as _;
use std::process::ExitCode;

use indicatif::ProgressIterator as _;
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::gpu::Gpu;
use tilewright::host::kernels::{Heads, Problem as _};
use tilewright::host::{Matrix, On, RunOptions, run_with};

use super::{REPEATS, arch, memory_of};
use crate::error::{CliError, Outcome};
use crate::kernel::options::{Options, of_design};
use crate::output;

/// What was measured of a tile.
struct Measured {
    options: String,
    /// The median of the runs, and whether the result is right.
    run: Result<(f64, bool), CliError>,
}

impl Measured {
    fn passed(&self) -> bool {
        matches!(self.run, Ok((_, true)))
    }

    /// What tiles are sorted by: those with a right result, by their times, before the others.
    fn key(&self) -> f64 {
        match self.run {
            Ok((ms, true)) => ms,
            _ => f64::INFINITY,
        }
    }

    fn to_json(&self) -> Value {
        match &self.run {
            Ok((ms, passed)) => json!({"options": self.options, "time_ms": ms, "passed": passed}),
            Err(error) => json!({
                "options": self.options, "time_ms": null, "passed": false, "error": error.to_string(),
            }),
        }
    }

    fn to_text(&self) -> String {
        match &self.run {
            Ok((ms, true)) => format!("{ms:>10.4} ms  {}", self.options),
            Ok((ms, false)) => format!(
                "{ms:>10.4} ms  {}: FAILED, the result is wrong",
                self.options
            ),
            Err(error) => format!("{:>13}  {}: {error}", "-", self.options),
        }
    }
}

pub(super) fn tune(problem: &Heads, options: &Options) -> Outcome {
    let gpu = Gpu::open(0)
        .map_err(|e| CliError::new(e.code(), format!("--tune measures on a GPU: {e}")))?;
    let arch = arch(&options.arch, Some(&gpu), problem.least_arch())?;
    let device = gpu.info().name.clone();
    // What no tile can mend is one error.
    let kernel = problem.kernel(arch);
    kernel.map_err(|e| CliError::new(e.code(), e.to_string()))?;
    memory_of(problem)?;
    let inputs = problem.random(options.seed);
    let run = RunOptions {
        repeats: REPEATS,
        gpu: Some(gpu),
        ..RunOptions::default()
    };
    let tiles = problem.tiles(arch);
    let tiles = tiles.into_iter().progress();
    let mut all: Vec<_> = tiles
        .filter_map(|tile| {
            let (options, run) = (
                of_design(tile.design),
                measured(&tile, arch, &inputs, &run)?,
            );
            Some(Measured { options, run })
        })
        .collect();
    all.sort_by(|a, b| a.key().total_cmp(&b.key()));
    if options.json {
        let tiles: Vec<_> = all.iter().map(Measured::to_json).collect();
        output::print_json(&json!({"device": device, "arch": arch.to_string(), "tiles": tiles}));
    } else {
        let mut text = format!("{device}, {arch}; the median of {REPEATS} runs");
        for tile in &all {
            let _ = write!(text, "\n{}", tile.to_text());
        }
        output::print_line(&text);
    }
    let passed = !all.is_empty() && all.iter().all(Measured::passed);
    Ok(ExitCode::from(u8::from(!passed)))
}

/// The time of a tile and whether its result is right; `None` if it has no kernel.
fn measured(
    tile: &Heads,
    arch: Arch,
    inputs: &[Matrix],
    options: &RunOptions,
) -> Option<Result<(f64, bool), CliError>> {
    let kernel = tile.kernel(arch).ok()?;
    let run = || {
        let outcome = run_with(&kernel, On::Gpu, tile.args(inputs), options);
        let outcome = outcome.map_err(|e| CliError::new(e.code(), e.to_string()))?;
        let compared = tile.compare(inputs, &outcome);
        let compared = compared.map_err(|e| CliError::new("outcome", e.to_string()))?;
        let passed = compared.passed() && outcome.findings().is_empty();
        Ok((outcome.time_ms.unwrap_or_default(), passed))
    };
    Some(run())
}
