//! The first kernel of one's own: y ← xᵀ for a row-major matrix of any size, in f32, f16 or s8.
//!
//! ```text
//! x: rows × cols, tile (i, j) ──words of a row──▶ shared tile ──elements of a column──▶ y: cols × rows, tile (j, i)
//! ```
//!
//! Every access of global memory takes 128 bytes in a row, also those of y: that is what the shared tile is for. Its layout is derived from
//! the two accesses, so that neither has bank conflicts; the prover counts their wavefronts again, from the addresses.
//!
//! `cargo run --release --example transpose -- --dtype f16 --rows 1000 --cols 700`

mod common;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::Value;
use tilewright::Layout;
use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::view::Use;
use tilewright::host::Arg;

use common::{Failure, Flags, Number, Report};

/// The most rows and columns of a matrix: addresses are proven not to overflow up to here.
pub(crate) const MOST: i64 = 1 << 30;

/// Threads of a block: 8 warps, each with a row of 128 bytes at a time.
const THREADS: u32 = 256;

/// A kernel, or what cannot be proven of it.
type Built = Result<Proven, Box<dyn Error>>;

/// The kernel. `tall` matrices, with more rows than columns, count their rows along x of the grid, which has room for 2³¹ - 1 blocks; y has
/// room for 65,535.
pub(crate) fn transpose(element: Element, tall: bool, arch: Arch) -> Built {
    let bytes = i64::from(element.bytes());
    let v = 4 / bytes; // elements of a word: 1, 2 or 4
    let n = 32 * v.max(2); // a tile is n × n: 64 for f32 and f16, 128 for s8
    let mut k = Kernel::new(&format!("transpose_{element}"), THREADS);
    let (rows, cols) = (k.size("rows", MOST), k.size("cols", MOST));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[cols, rows]);

    // Block (i, j) of the grid has tile (i, j) of x, which is tile (j, i) of y.
    let axes = [Axis::X, Axis::Y];
    let (down, across) = (axes[usize::from(!tall)], axes[usize::from(tall)]);
    let (i, j) = (k.tiles(down, rows, n)?, k.tiles(across, cols, n)?);

    // (thread, value) -> row + n·column. A warp has 32 words of a row; the 8 warps have 8 rows at once.
    let (passes, parts, word, part) = (n / 8, n / (32 * v), v * n, 32 * v * n);
    let shares = format!("((32,8),({v},{passes},{parts})):(({word},1),({n},8,{part}))");
    let (shares, thread) = (Layout::parse(&shares)?, k.thread());

    // The tile is written a word a lane along a row, and read an element a lane down a column: its layout follows.
    let uses = [
        Use::store(&shares).vectors(v),
        Use::load(&shares).transposed(),
    ];
    let tile = k.shared_for("tile", element, [n, n], &uses)?;

    let from = x
        .tile(&mut k, &[n, n], &[i, j])?
        .partition(&mut k, &shares, thread)?
        .vectors(&k, v)?;
    let put = tile.partition(&mut k, &shares, thread)?.vectors(&k, v)?;
    k.copy(&from, &put)?;
    k.barrier();
    let take = tile.transposed().partition(&mut k, &shares, thread)?;
    let to = y
        .tile(&mut k, &[n, n], &[j, i])?
        .partition(&mut k, &shares, thread)?
        .vectors(&k, v)?;
    k.copy(&take, &to)?;
    Ok(k.build(arch)?)
}

/// Transpose a matrix with a kernel of one's own, proven, and check it
#[derive(Parser, Debug)]
#[command(name = "transpose")]
pub(crate) struct Command {
    /// Element type
    #[arg(long, value_enum, default_value = "f32")]
    dtype: DataType,
    /// Rows of x
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = common::size)]
    rows: u64,
    /// Columns of x
    #[arg(long, default_value_t = 700, allow_negative_numbers = true, value_parser = common::size)]
    cols: u64,
    #[command(flatten)]
    flags: Flags,
}

/// The element types.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DataType {
    F32,
    F16,
    S8,
}

impl Command {
    /// Builds the kernel, runs it and reports.
    ///
    /// # Errors
    ///
    /// Sizes that the kernel was not proven for, and whatever keeps it from running.
    pub(crate) fn run(&self) -> Result<Value, Failure> {
        match self.dtype {
            DataType::F32 => self.run_in::<f32>(Element::F32),
            DataType::F16 => self.run_in::<half::f16>(Element::F16),
            DataType::S8 => self.run_in::<i8>(Element::S8),
        }
    }

    fn run_in<T: Number>(&self, element: Element) -> Result<Value, Failure> {
        let kernel =
            transpose(element, self.rows >= self.cols, Arch(75)).map_err(Failure::unproven)?;
        let (rows, cols) = (self.rows, self.cols);
        let sizes = [common::extent("rows", rows), common::extent("cols", cols)];
        let mut report = Report::new(&kernel, &self.flags, &sizes)?;
        if self.flags.runs() {
            // On the host x, y and what y should be; once more on the device.
            let count = common::fits(&[rows, cols], 6 * T::TYPE.bytes())?;
            let x = T::random(count, self.flags.seed);
            let outcome = self.flags.launch(
                &kernel,
                [
                    ("rows", Arg::from(rows as u32)),
                    ("cols", Arg::from(cols as u32)),
                    ("x", Arg::input(&x)),
                    ("y", Arg::output::<T>(count)),
                ],
            )?;
            let y: Vec<T> = outcome.get("y")?;
            let (rows, cols) = (rows as usize, cols as usize);
            let error = (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c)));
            let error = error.map(|(r, c)| x[r * cols + c].distance(y[c * rows + r]));
            report.ran(&outcome, error.fold(0.0, f64::max), 0.0);
        }
        Ok(report.to_json())
    }
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.flags.json, command.run()))
}
