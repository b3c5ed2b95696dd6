//! SwiGLU in one kernel: C ← silu(A·B) ⊙ (A·B2) for f16 or bf16 matrices of any size, sums and activation in f32.
//!
//! ```text
//! A: m × k  ──▶ stage ──▶ fragments ──┬▶ mma.sync ──▶ gate ──┐
//! B: n × k  ──▶ stage ──▶ fragments ──┘                      ├▶ silu(gate)·up ──▶ C: m × n
//! B2: n × k ──▶ stage ──▶ fragments of A and B2 ──▶ up ──────┘
//! ```
//!
//! It is a plan with an epilogue of one's own: [`Config::with_dual_epilogue`] gives half of a block's sums to a second product of the same A, and
//! the function gets both sums at the same coordinates. Neither product is ever in memory, A is copied once for both, and the main loop is that
//! of the listed plan. (B, B2 and C are as in LLaMA: `gate_proj`, `up_proj` and what `down_proj` reads.)
//!
//! As in PyTorch, silu(x) is x / (1 + exp(-x)): NaN stays NaN, silu(∞) = ∞, and silu(-∞) is NaN. PyTorch rounds both products to the type of C first,
//! which is less accurate, and makes them infinite where f16 has no room; here only C is rounded.
//!
//! `cargo run --release --example gemm_swiglu -- --m 4096 --n 14336 --k 4096`

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

/// The kernel: silu(x)·y of the sums x of A·B and y of A·B2.
pub(crate) fn swiglu(config: Config) -> Result<Specialized, PlanError> {
    config.with_dual_epilogue(Function::new("swiglu", |k, c| {
        let sums = c.values::<f32>(k)?.into_iter().zip(c.second(k)?);
        for (j, (x, y)) in sums.enumerate() {
            // x / (1 + 2^(-x·log2 e)) · y
            let e = x.mul(k, -std::f32::consts::LOG2_E).exp2(k);
            let sigmoid = e.add(k, 1.0).reciprocal(k);
            let out = x.mul(k, sigmoid).mul(k, y);
            c.set(k, j, out)?;
        }
        Ok(())
    }))
}

/// The same in double precision.
pub(crate) fn exact(x: f64, y: f64) -> f64 {
    x / (1.0 + (-x).exp()) * y
}

/// How far C may be from the exact value. Both sums are off by at most `sum` (the relative tolerance of a sum in f32) of the sums of absolute values X and Y.
/// The slope of silu is below 1.1, and its own evaluation is off by less than 8 roundings of f32, relative to |x|, as that of GELU
/// (`tilewright::host::tolerance`); |silu(x)| is at most X. Then come one rounding of the product in f32, and one to C's type, whose subnormal
/// numbers round by half their spacing.
pub(crate) fn allowed(sum: f64, [x, y]: [f64; 2], exact: f64, output: Element) -> f64 {
    let u = f64::powi(0.5, 24);
    let silu = 1.1 * sum + 8.0 * u;
    let spacing = if output == Element::F16 {
        f64::powi(0.5, 25)
    } else {
        0.0
    };
    ((1.0 + silu) * (1.0 + sum) - 1.0 + u) * x * y
        + 1.01 * output.unit_roundoff() * exact.abs()
        + spacing
}

/// SwiGLU with a kernel of one's own, proven, and check it
#[derive(Parser, Debug)]
#[command(name = "gemm_swiglu")]
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
            Operand::F16 => self.run_in::<half::f16>(Element::F16),
            Operand::Bf16 => self.run_in::<half::bf16>(Element::Bf16),
        }
    }

    fn run_in<T: Number>(&self, element: Element) -> Result<Value, Failure> {
        let of = &self.product;
        let kernel = of.kernel(&of.problem(element), swiglu)?;
        let mut report = Report::new(&kernel, &self.flags, &[])?;
        if self.flags.runs() {
            let seed = self.flags.seed.wrapping_mul(3);
            let [a, b, c] = [[of.m, of.k], [of.n, of.k], [of.m, of.n]]
                .map(|size| common::fits(&size, 4 * T::TYPE.bytes()));
            let (a, b, c) = (a?, b?, c?);
            let a = T::random(a, seed);
            let [gate, up] = [1, 2].map(|i| T::random(b, seed.wrapping_add(i)));
            let outcome = self.flags.launch(
                &kernel,
                [
                    ("A", Arg::input(&a)),
                    ("B", Arg::input(&gate)),
                    ("B2", Arg::input(&up)),
                    ("C", Arg::output::<T>(c)),
                ],
            )?;
            let c: Vec<T> = outcome.get("C")?;
            let (mut worst, mut near) = (0.0f64, true);
            for at in of.checked(seed) {
                let ([x, size_x], [y, size_y]) = (of.sum(&a, &gate, at), of.sum(&a, &up, at));
                let exact = exact(x, y);
                let error = distance(c[at[0] * of.n as usize + at[1]].into(), exact);
                worst = worst.max(error);
                near &= error <= allowed(of.tolerance(), [size_x, size_y], exact, element);
            }
            report.ran_within(&outcome, worst, near);
        }
        Ok(report.to_json())
    }
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.flags.json, command.run()))
}
