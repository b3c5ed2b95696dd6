//! A product whose rows are scaled and rounded to 8-bit integers: C ← s8(A·B · scale of the row), for f16 or bf16 matrices of any size, sums in f32.
//!
//! ```text
//! sum of element (i, j) ──▶ times scale[i] ──▶ to the nearest integer, ties to even ──▶ at least -128, at most 127 ──▶ C
//! ```
//!
//! It is a plan with an epilogue of one's own: [`Config::with_epilogue`] takes the function and what it reads, a scale for each row of C, and the
//! type of C. Everything else is the plan's: alignment, edges, the stores of 8 neighbours at once.
//!
//! Infinite sums become -128 or 127, and NaN 0, as a float of PyTorch on a GPU that is clamped and converted to `int8`.
//!
//! `cargo run --release --example gemm_quantize -- --m 4096 --n 4096 --k 4096`

#[allow(dead_code)] // what kernels need that are no plans
mod common;
mod products;

use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;
use tilewright::codegen::ir::Element;
use tilewright::host::Arg;
use tilewright::kernels::gemm::epilogue::Function;
use tilewright::kernels::gemm::{Config, PlanError, Specialized};

use common::{Failure, Flags, Number, Report};
use products::{Operand, Product, distance};

/// The kernel.
pub(crate) fn quantized(config: Config) -> Result<Specialized, PlanError> {
    let scaled = Function::new("quantized", |k, c| {
        for (j, x) in c.values::<f32>(k)?.into_iter().enumerate() {
            let scale = c.vector(k, "scale", j)?;
            let scaled = x.mul(k, scale);
            c.set(k, j, scaled)?;
        }
        Ok(())
    });
    config.with_epilogue(scaled.by_row("scale", Element::F32).output(Element::S8))
}

/// The same in double precision, before it is rounded.
pub(crate) fn exact(sum: f64, scale: f32) -> f64 {
    let scaled = sum * f64::from(scale);
    if scaled.is_nan() {
        0.0
    } else {
        scaled.clamp(-128.0, 127.0)
    }
}

/// How far C may be from the exact value: half a unit for the rounding, and what the sum in f32 may be off (`sum`, relative to the sum `size` of absolute
/// values) and the rounding of the scaled sum make of it.
pub(crate) fn allowed(sum: f64, size: f64, scale: f32) -> f64 {
    let u = f64::powi(0.5, 24);
    0.5 + (sum + (1.0 + sum) * u) * size * f64::from(scale.abs())
}

/// A product quantised by rows with a kernel of one's own, proven, and check it
#[derive(Parser, Debug)]
#[command(name = "gemm_quantize")]
pub(crate) struct Command {
    #[command(flatten)]
    product: Product,
    #[command(flatten)]
    flags: Flags,
}

impl Command {
    /// Builds the kernel, runs it and reports.
    ///
    /// # Errors
    ///
    /// Sizes that the kernel does not serve, and whatever keeps it from running.
    pub(crate) fn run(&self) -> Result<Value, Failure> {
        match self.product.dtype {
            Operand::F16 => self.run_in::<half::f16>(),
            Operand::Bf16 => self.run_in::<half::bf16>(),
        }
    }

    fn run_in<T: Number>(&self) -> Result<Value, Failure> {
        let of = &self.product;
        let kernel = of.kernel(&of.problem(Element::S8), quantized)?;
        let mut report = Report::new(&kernel, &self.flags, &[])?;
        if self.flags.runs() {
            let seed = self.flags.seed.wrapping_mul(3);
            let [a, b, c] = [[of.m, of.k], [of.n, of.k], [of.m, of.n]]
                .map(|size| common::fits(&size, 4 * T::TYPE.bytes()));
            let (a, b, c) = (T::random(a?, seed), T::random(b?, seed.wrapping_add(1)), c?);
            // Sums are of the order of the root of k: some are beyond what 8 bits hold.
            let unit = 150.0 / (of.k.max(1) as f32).sqrt();
            let mut scale = f32::random(of.m as usize, seed.wrapping_add(2));
            for s in &mut scale {
                *s *= unit;
            }
            let outcome = self.flags.launch(
                &kernel,
                [
                    ("A", Arg::input(&a)),
                    ("B", Arg::input(&b)),
                    ("C", Arg::output::<i8>(c)),
                    ("scale", Arg::input(&scale)),
                ],
            )?;
            let c: Vec<i8> = outcome.get("C")?;
            let (mut worst, mut near) = (0.0f64, true);
            for [row, column] in of.checked(seed) {
                let [sum, size] = of.sum(&a, &b, [row, column]);
                let exact = exact(sum, scale[row]);
                let error = distance(c[row * of.n as usize + column].into(), exact);
                worst = worst.max(error);
                near &= error <= allowed(of.tolerance(), size, scale[row]);
            }
            report.ran_within(&outcome, worst, near);
        }
        Ok(report.to_json())
    }
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.flags.json, command.run()))
}
