//! The sum of each row of a matrix: yᵢ = Σⱼ xᵢⱼ. Rows of 1 to 131,072 elements; f32, f16 or bf16; summed in f32, and y is of f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment rows × cols ──reduce──▶ fragment rows × 1 ──▶ y
//! ```
//!
//! The fragment of the sums has the layout that the reduction leaves: every thread that had a part of a row has its sum, and the first of them stores it.
//!
//! NaN and infinities as in PyTorch: NaN in a row, or ∞ and −∞ in one, give NaN.
//!
//! `cargo run --release --example row_sums -- --dtype bf16 --rows 4096 --cols 1000`

pub(crate) mod common;

use std::process::ExitCode;

use clap::Parser;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::view::Combine;

use common::rows::{Built, MOST_ROWS, Plan, RowFlags, RowKernel};

/// The kernel.
pub(crate) fn row_sums(element: Element, plan: &Plan, arch: Arch) -> Built {
    let mut k = Kernel::new(&format!("row_sums_{element}"), plan.threads);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", plan.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows]);
    let (i, thread) = (k.tiles(Axis::X, rows, plan.rows)?, k.thread());
    let share = |k: &mut Kernel, j| {
        x.tile(k, &[plan.rows, plan.cols], &[i, j])?
            .partition(k, &plan.shares, thread)?
            .vectors(k, plan.vector)
    };
    let zero = k.constant(0);
    let first = share(&mut k, zero)?;
    let y = y.tile(&mut k, &[plan.rows], &[i])?;
    let y = first.along(&mut k, 0, &y)?;
    let sums = if plan.fits() {
        k.load_fragment(&first)?.convert(&mut k, Element::F32)?
    } else {
        // Tile upon tile, and one sum of a row in the end.
        let sums = k.fragment_of(&first, 0.0)?;
        k.for_loop("column", 0, plan.cols, cols, |k, column| {
            let j = k.div(column, plan.cols);
            let x = share(k, j)?;
            let x = k.load_fragment(&x)?.convert(k, Element::F32)?;
            sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
        })?;
        sums
    };
    let sums = sums.reduce(&mut k, 1, Combine::Add)?;
    k.store_fragment(&y, &sums)?;
    Ok(k.build(arch)?)
}

/// The kernel of this example.
pub(crate) enum RowSums {}

impl RowKernel for RowSums {
    const SUMS: bool = true;

    fn build(element: Element, plan: &Plan, arch: Arch) -> Built {
        row_sums(element, plan, arch)
    }

    fn reference(x: &[f64], _: &[Vec<f64>], unit: f64) -> Vec<(f64, f64)> {
        let (sum, size) = x
            .iter()
            .fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
        // Up to 8 tiles one after the other, a tree of 32 values, five shuffles, a tree of 32 warps.
        vec![(sum, unit * 24.0 * size)]
    }
}

/// Sums of the rows of a matrix with a kernel of one's own, proven, and checked
#[derive(Parser, Debug)]
#[command(name = "row_sums")]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) on: RowFlags,
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.on.flags.json, command.on.run::<RowSums>()))
}
