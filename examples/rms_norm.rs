//! RMS norm of each row of a matrix: yᵢⱼ = xᵢⱼ·wⱼ / √(Σⱼ xᵢⱼ² / cols + ε). Rows of 1 to 131,072 elements; f32, f16 or bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──▶ squares ──reduce──▶ 1/√(mean + ε) ─┐
//! w: cols, along the columns of the tile ──▶ fragment 1 × cols ────────────────────────────────────┴──broadcast──▶ y
//! ```
//!
//! The weights are read while the row is stored, one vector of each thread ahead. Rows beyond 32,768 elements are read twice.
//!
//! NaN and infinities as the formula has them, and PyTorch on a CPU: a row with NaN gives NaN, and ∞ gives NaN where it stands and 0 elsewhere. PyTorch's
//! kernel for GPUs does the same in rows whose length is a multiple of 4, and gives NaN in the whole row otherwise.
//!
//! `cargo run --release --example rms_norm -- --dtype bf16 --rows 4096 --cols 1000`

pub(crate) mod common;

use std::process::ExitCode;

use clap::Parser;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::value::{F32, S32};
use tilewright::codegen::view::{Combine, Fragment, View, ViewError};

use common::rows::{Built, EPS, MOST_ROWS, Plan, RowFlags, RowKernel};

/// The kernel.
pub(crate) fn rms_norm(element: Element, plan: &Plan, arch: Arch) -> Built {
    let mut k = Kernel::new(&format!("rms_norm_{element}"), plan.threads);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", plan.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[rows, cols]);
    let w = k.input("w", element, &[cols]);
    let eps: F32 = k.argument("eps");
    let (i, thread) = (k.tiles(Axis::X, rows, plan.rows)?, k.thread());
    let zero = k.constant(0);

    let share = |k: &mut Kernel, j| {
        x.tile(k, &[plan.rows, plan.cols], &[i, j])?
            .partition(k, &plan.shares, thread)?
            .vectors(k, plan.vector)
    };
    let load = |k: &mut Kernel, j| -> Result<Fragment, ViewError> {
        let x = share(k, j)?;
        k.load_fragment(&x)?.convert(k, Element::F32)
    };
    // Where this thread stores vector `step` of tile j, and the weights for it.
    let part = |k: &mut Kernel, j, step: usize| {
        let (first, step) = (k.scale(j, plan.steps), k.constant(step as i64));
        let at = k.add(first, step);
        let width = plan.cols / plan.steps;
        let tile: View = y.tile(k, &[plan.rows, width], &[i, at])?;
        let to = tile
            .partition(k, &plan.step, thread)?
            .vectors(k, plan.vector)?;
        let w = w.tile(k, &[width], &[at])?;
        let w = to.along(k, 1, &w)?.vectors(k, plan.vector)?;
        Ok::<_, ViewError>((to, k.load_fragment(&w)?))
    };
    let store = |k: &mut Kernel, j, x: &Fragment, scale: &Fragment| -> Result<(), ViewError> {
        let parts = x.split(1, plan.steps as usize)?;
        let mut next = part(k, j, 0)?;
        for (step, x) in parts.iter().enumerate() {
            let (to, w) = next.clone();
            if step + 1 < parts.len() {
                next = part(k, j, step + 1)?;
            }
            let w = w.convert(k, Element::F32)?;
            let value = x
                .zip(k, scale, |k, x, scale| x.mul(k, scale))?
                .zip(k, &w, |k, x, w| x.mul(k, w))?;
            let value = value.convert(k, element)?;
            k.store_fragment(&to, &value)?;
        }
        Ok(())
    };
    // From the sum of the squares.
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let scale = |k: &mut Kernel, sum: F32| sum.fma(k, inverse, eps).rsqrt(k);
    if plan.fits() {
        let x = load(&mut k, zero)?;
        let squares = x.map(&mut k, |k, x| x.mul(k, x))?;
        let scale = squares
            .reduce(&mut k, 1, Combine::Add)?
            .map(&mut k, scale)?;
        store(&mut k, zero, &x, &scale)?;
        return Ok(k.build(arch)?);
    }
    let first = share(&mut k, zero)?;
    let squares = k.fragment_of(&first, 0.0)?;
    k.for_loop("column", 0, plan.cols, cols, |k, column| {
        let j = k.div(column, plan.cols);
        let x = load(k, j)?;
        squares.update_with(k, &x, |k, sum, x| x.fma(k, x, sum))
    })?;
    let scale = squares
        .reduce(&mut k, 1, Combine::Add)?
        .map(&mut k, scale)?;
    k.for_loop("column", 0, plan.cols, cols, |k, column| {
        let j = k.div(column, plan.cols);
        let x = load(k, j)?;
        store(k, j, &x, &scale)
    })?;
    Ok(k.build(arch)?)
}

/// The kernel of this example.
pub(crate) enum RmsNorm {}

impl RowKernel for RmsNorm {
    const VECTORS: &'static [&'static str] = &["w"];
    const EPS: bool = true;

    fn build(element: Element, plan: &Plan, arch: Arch) -> Built {
        rms_norm(element, plan, arch)
    }

    fn reference(x: &[f64], vectors: &[Vec<f64>], unit: f64) -> Vec<(f64, f64)> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let scale = (mean + f64::from(EPS)).sqrt().recip();
        // Squares and their sum round along a tree, halved by the root; 1/cols and 1/√ have 2⁻²³ each; two products; the result once.
        let relative = unit + f64::powi(0.5, 24) * 32.0;
        let tiny = unit * f64::powi(0.5, if unit > 1e-6 { 13 } else { 125 });
        x.iter()
            .zip(&vectors[0])
            .map(|(x, w)| {
                let y = x * scale * w;
                (y, relative * y.abs() + tiny)
            })
            .collect()
    }
}

/// RMS norm of the rows of a matrix with a kernel of one's own, proven, and checked
#[derive(Parser, Debug)]
#[command(name = "rms_norm")]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) on: RowFlags,
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.on.flags.json, command.on.run::<RmsNorm>()))
}
