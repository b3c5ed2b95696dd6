//! Layer norm of each row of a matrix: yᵢⱼ = (xᵢⱼ − μᵢ)·wⱼ / √(σᵢ² + ε) + bⱼ, μᵢ and σᵢ² the mean and the variance of row i. Rows of 1 to 131,072 elements; f32, f16 or
//! bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──reduce──▶ μ ──▶ x − μ ──▶ squares, masked ──reduce──▶ 1/√(σ² + ε) ─┐
//! w, b: cols, along the columns of the tile ──▶ fragments 1 × cols ──────────────────────────────────────────────────────────────┴──broadcast──▶ y
//! ```
//!
//! The variance is the mean of (x − μ)², in a second pass over the registers: no difference of large numbers. Beyond the end of a row, x − μ is no element and
//! is masked out by its coordinate. Rows beyond 32,768 elements are read three times.
//!
//! NaN and infinities as in PyTorch: a row with NaN or ∞ gives NaN.
//!
//! `cargo run --release --example layer_norm -- --dtype bf16 --rows 4096 --cols 1000`

pub(crate) mod common;

use std::process::ExitCode;

use clap::Parser;
use tilewright::codegen::Arch;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::value::{F32, Predicate, S32};
use tilewright::codegen::view::{Combine, Fragment, View, ViewError};

use common::rows::{Built, EPS, MOST_ROWS, Plan, RowFlags, RowKernel};

/// The kernel.
pub(crate) fn layer_norm(element: Element, plan: &Plan, arch: Arch) -> Built {
    let mut k = Kernel::new(&format!("layer_norm_{element}"), plan.threads);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", plan.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[rows, cols]);
    let [w, b] = ["w", "b"].map(|name| k.input(name, element, &[cols]));
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
    // Where this thread stores vector `at` of a row, and that with the weights and the offsets for it.
    let width = plan.cols / plan.steps;
    let place = |k: &mut Kernel, at| {
        y.tile(k, &[plan.rows, width], &[i, at])?
            .partition(k, &plan.step, thread)?
            .vectors(k, plan.vector)
    };
    let part = |k: &mut Kernel, j, step: usize| {
        let (first, step) = (k.scale(j, plan.steps), k.constant(step as i64));
        let at = k.add(first, step);
        let to = place(k, at)?;
        let mut along = |of: &View| {
            let of = of.tile(k, &[width], &[at])?;
            let of = to.along(k, 1, &of)?.vectors(k, plan.vector)?;
            k.load_fragment(&of)
        };
        let (w, b) = (along(&w)?, along(&b)?);
        Ok::<_, ViewError>((to, w, b))
    };
    let store = |k: &mut Kernel, j, x: &Fragment, scale: &Fragment| -> Result<(), ViewError> {
        let parts = x.split(1, plan.steps as usize)?;
        let mut next = part(k, j, 0)?;
        for (step, x) in parts.iter().enumerate() {
            let (to, w, b) = next.clone();
            if step + 1 < parts.len() {
                next = part(k, j, step + 1)?;
            }
            let (w, b) = (w.convert(k, Element::F32)?, b.convert(k, Element::F32)?);
            let value = x
                .zip(k, scale, |k, x, scale| x.mul(k, scale))?
                .zip(k, &w, |k, x, w| x.mul(k, w))?
                .zip(k, &b, |k, x, b| x.add(k, b))?
                .convert(k, element)?;
            k.store_fragment(&to, &value)?;
        }
        Ok(())
    };
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let mean = |k: &mut Kernel, sum: F32| sum.mul(k, inverse);
    let scale = |k: &mut Kernel, sum: F32| sum.fma(k, inverse, eps).rsqrt(k);
    let centred =
        |k: &mut Kernel, x: &Fragment, mean: &Fragment| x.zip(k, mean, |k, x, mean| x.sub(k, mean));
    // The squares of what is inside the row, in tile j: one vector of each thread, to which the others are added.
    let squares = |k: &mut Kernel, x: &Fragment, j: Expr| -> Result<Fragment, ViewError> {
        let (first, like) = (k.scale(j, plan.cols), place(k, zero)?);
        let sums = k.fragment_of(&like, 0.0)?;
        for (step, x) in (0..).zip(x.split(1, plan.steps as usize)?) {
            let x = x.map_at(k, |k, x, [_, column]| {
                let before = k.constant(step * width);
                let (before, square) = (k.add(first, before), x.mul(k, x));
                let column = k.add(before, column);
                Predicate::of(k, column, Cmp::Lt, cols).select(k, square, 0.0)
            })?;
            sums.update_with(k, &x, |k, sum, x| sum.add(k, x))?;
        }
        Ok(sums)
    };
    if plan.fits() {
        let x = load(&mut k, zero)?;
        let mean = x.reduce(&mut k, 1, Combine::Add)?.map(&mut k, mean)?;
        let x = centred(&mut k, &x, &mean)?;
        let scale = squares(&mut k, &x, zero)?
            .reduce(&mut k, 1, Combine::Add)?
            .map(&mut k, scale)?;
        store(&mut k, zero, &x, &scale)?;
        return Ok(k.build(arch)?);
    }
    let first = share(&mut k, zero)?;
    let each = |k: &mut Kernel,
                f: &mut dyn FnMut(&mut Kernel, Fragment, Expr) -> Result<(), ViewError>|
     -> Result<(), ViewError> {
        k.for_loop("column", 0, plan.cols, cols, |k, column| {
            let j = k.div(column, plan.cols);
            let x = load(k, j)?;
            f(k, x, j)
        })
    };
    let sums = k.fragment_of(&first, 0.0)?;
    each(&mut k, &mut |k, x, _| {
        sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
    })?;
    let mean = sums.reduce(&mut k, 1, Combine::Add)?.map(&mut k, mean)?;
    let like = place(&mut k, zero)?;
    let sums = k.fragment_of(&like, 0.0)?;
    each(&mut k, &mut |k, x, j| {
        let x = centred(k, &x, &mean)?;
        let squares = squares(k, &x, j)?;
        sums.update_with(k, &squares, |k, sum, x| sum.add(k, x))
    })?;
    let scale = sums.reduce(&mut k, 1, Combine::Add)?.map(&mut k, scale)?;
    each(&mut k, &mut |k, x, j| {
        let x = centred(k, &x, &mean)?;
        store(k, j, &x, &scale)
    })?;
    Ok(k.build(arch)?)
}

/// The kernel of this example.
pub(crate) enum LayerNorm {}

impl RowKernel for LayerNorm {
    const VECTORS: &'static [&'static str] = &["w", "b"];
    const EPS: bool = true;

    fn build(element: Element, plan: &Plan, arch: Arch) -> Built {
        layer_norm(element, plan, arch)
    }

    fn reference(x: &[f64], vectors: &[Vec<f64>], unit: f64) -> Vec<(f64, f64)> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let size = x.iter().map(|x| x.abs()).sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let scale = (variance + f64::from(EPS)).sqrt().recip();
        // The mean has the error of a sum of n numbers along a tree, x − μ that error and its own rounding; the rest as in the RMS norm. An error of the mean adds to the
        // variance with its square only.
        let ulp = f64::powi(0.5, 24);
        let tiny = unit * f64::powi(0.5, if unit > 1e-6 { 13 } else { 125 });
        let vectors = vectors[0].iter().zip(&vectors[1]);
        x.iter()
            .zip(vectors)
            .map(|(x, (w, b))| {
                let scaled = (x - mean) * scale * w;
                let y = scaled + b;
                let shift = 24.0 * ulp * (size + x.abs()) * scale * w.abs();
                (
                    y,
                    unit * y.abs() + 32.0 * ulp * (scaled.abs() + b.abs()) + shift + tiny,
                )
            })
            .collect()
    }
}

/// Layer norm of the rows of a matrix with a kernel of one's own, proven, and checked
#[derive(Parser, Debug)]
#[command(name = "layer_norm")]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) on: RowFlags,
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.on.flags.json, command.on.run::<LayerNorm>()))
}
