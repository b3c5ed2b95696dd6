//! What the examples on rows of a matrix share: how rows are shared out, flags, and the comparison with a reference in f64.

use std::error::Error;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tilewright::Layout;
use tilewright::codegen::ir::Element;
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Arg, Outcome, Scalar};

use super::{Failure, Flags, Number, Report, extent, fits, size};

/// The most rows of a matrix.
pub(crate) const MOST_ROWS: i64 = 1 << 30;

/// The longest row.
pub(crate) const LONGEST: i64 = 131_072;

/// A kernel, or what cannot be proven of it.
pub(crate) type Built = Result<Proven, Box<dyn Error>>;

/// How a block shares out rows among its threads: a tile of `rows × cols`, whose rows are each in `across` threads.
///
/// A thread has vectors of 16 bytes, `across` vectors apart, so that neighbouring threads touch neighbouring vectors. Rows of up to 1024 elements are in a warp
/// or less, longer ones in several warps; up to 32,768 elements, a row is in the registers of a block. Longer rows are read tile by tile, twice or more often.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Rows of a tile.
    pub(crate) rows: i64,
    /// Columns of a tile.
    pub(crate) cols: i64,
    /// The longest row that a kernel by this plan takes.
    pub(crate) most: i64,
    /// Elements of a vector.
    pub(crate) vector: i64,
    /// Vectors of a thread.
    pub(crate) steps: i64,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// (thread, value) → row + rows·column of the tile.
    pub(crate) shares: Layout,
    /// The same of one vector a thread.
    pub(crate) step: Layout,
}

impl Plan {
    /// The plan for rows of `cols` elements.
    pub(crate) fn new(element: Element, cols: u64) -> Result<Self, Box<dyn Error>> {
        let cols = i64::try_from(cols).unwrap_or(i64::MAX).clamp(1, LONGEST);
        let vector = 16 / i64::from(element.bytes());
        let ceil = |a: i64, b: i64| (a + b - 1) / b;
        let power = |n: i64| (n as u64).next_power_of_two() as i64;
        // Up to a warp one vector a thread, and then four.
        let across = match cols {
            ..=1024 => power(ceil(cols, vector)).min(32),
            _ => power(ceil(cols, 4 * vector)).clamp(32, 1024),
        };
        let long = cols > 32_768;
        let steps = if long { 4 } else { ceil(cols, across * vector) };
        let rows = (128 / across).max(1);
        let tile = across * vector * steps;
        let thread = format!("({across},{rows}):({},1)", vector * rows);
        let layout = |steps: i64| {
            let value = format!("({vector},{steps}):({rows},{})", vector * across * rows);
            let layout = |text: &str| Layout::parse(text);
            Ok::<_, Box<dyn Error>>(Layout::tuple(&[layout(&thread)?, layout(&value)?])?)
        };
        Ok(Self {
            rows,
            cols: tile,
            most: if long { LONGEST } else { tile },
            vector,
            steps,
            threads: (across * rows) as u32,
            shares: layout(steps)?,
            step: layout(1)?,
        })
    }

    /// Whether a whole row is in the registers of a block.
    pub(crate) fn fits(&self) -> bool {
        self.most == self.cols
    }

    /// Thread → its group: all threads of the block have one row.
    pub(crate) fn block(&self) -> Result<Layout, Box<dyn Error>> {
        Ok(Layout::mode(self.threads.into(), 0)?)
    }
}

/// The element types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DataType {
    F32,
    F16,
    Bf16,
}

/// The flags of examples on rows.
#[derive(Args, Clone, Debug)]
pub(crate) struct RowFlags {
    /// Element type
    #[arg(long, value_enum, default_value = "f32")]
    pub(crate) dtype: DataType,
    /// Rows of x
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = size)]
    pub(crate) rows: u64,
    /// Columns of x: 1 to 131072
    #[arg(long, default_value_t = 700, allow_negative_numbers = true, value_parser = size)]
    pub(crate) cols: u64,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// A kernel on rows: how it is built, and what it computes.
pub(crate) trait RowKernel {
    /// The kernel.
    fn build(element: Element, plan: &Plan, arch: Arch) -> Built;

    /// Names of the vectors of `cols` elements that it takes beside x.
    const VECTORS: &'static [&'static str] = &[];

    /// Whether y has one f32 for each row.
    const SUMS: bool = false;

    /// Whether it takes `eps`.
    const EPS: bool = false;

    /// A row of y in f64, and for each element the error that rounding allows; `unit` is half a unit in the last place of y's elements at 1.
    fn reference(x: &[f64], vectors: &[Vec<f64>], unit: f64) -> Vec<(f64, f64)>;
}

/// The ε of the norms.
pub(crate) const EPS: f32 = 1e-5;

impl RowFlags {
    /// Builds the kernel, runs it and reports.
    pub(crate) fn run<K: RowKernel>(&self) -> Result<Value, Failure> {
        match self.dtype {
            DataType::F32 => self.run_in::<K, f32>(Element::F32),
            DataType::F16 => self.run_in::<K, half::f16>(Element::F16),
            DataType::Bf16 => self.run_in::<K, half::bf16>(Element::Bf16),
        }
    }

    fn run_in<K: RowKernel, T: Number>(&self, element: Element) -> Result<Value, Failure> {
        let kernel = kernel::<K>(element, self.cols, Arch(80)).map_err(Failure::unproven)?;
        let mut scalars = vec![extent("rows", self.rows), extent("cols", self.cols)];
        if kernel.params().iter().any(|p| p.name == "eps") {
            scalars.push(("eps", Scalar::F32(EPS)));
        }
        let mut report = Report::new(&kernel, &self.flags, &scalars)?;
        if self.flags.runs() {
            // On the host x and y, once more on the device.
            let count = fits(&[self.rows, self.cols], 4 * T::TYPE.bytes())?;
            let x = T::random(count, self.flags.seed);
            let vectors = vectors::<K, T>(self.cols as usize, self.flags.seed);
            let args = arguments::<K, T>(self.rows as usize, self.cols as usize, &x, &vectors);
            let outcome = self.flags.launch(&kernel, args)?;
            let (worst, ratio) = compared::<K, T>(&outcome, self.cols as usize, &x, &vectors)?;
            report.ran_within(&outcome, worst, ratio <= 1.0);
        }
        Ok(report.to_json())
    }
}

/// The kernel for rows of `cols` elements.
pub(crate) fn kernel<K: RowKernel>(element: Element, cols: u64, arch: Arch) -> Built {
    K::build(element, &Plan::new(element, cols)?, arch)
}

/// The vectors that a kernel takes beside x.
pub(crate) fn vectors<K: RowKernel, T: Number>(cols: usize, seed: u64) -> Vec<Vec<T>> {
    let seeds = (seed + 1..).zip(K::VECTORS);
    seeds.map(|(seed, _)| T::random(cols, seed)).collect()
}

/// The arguments of a launch.
pub(crate) fn arguments<'a, K: RowKernel, T: Number>(
    rows: usize,
    cols: usize,
    x: &'a [T],
    vectors: &'a [Vec<T>],
) -> Vec<(&'static str, Arg<'a>)> {
    let mut all = vec![
        ("rows", Arg::from(rows as u32)),
        ("cols", Arg::from(cols as u32)),
        ("x", Arg::input(x)),
    ];
    let y = if K::SUMS {
        Arg::output::<f32>(rows)
    } else {
        Arg::output::<T>(rows * cols)
    };
    all.push(("y", y));
    for (&name, vector) in K::VECTORS.iter().zip(vectors) {
        all.push((name, Arg::input(vector)));
    }
    if K::EPS {
        all.push(("eps", Arg::from(EPS)));
    }
    all
}

/// The largest error of y, and the largest in units of what rounding allows. NaN and infinities must be where the reference has them.
pub(crate) fn compared<K: RowKernel, T: Number>(
    outcome: &Outcome,
    cols: usize,
    x: &[T],
    vectors: &[Vec<T>],
) -> Result<(f64, f64), Failure> {
    let wide = |v: &[T]| -> Vec<f64> { v.iter().map(|&x| x.into()).collect() };
    let vectors: Vec<Vec<f64>> = vectors.iter().map(|v| wide(v)).collect();
    let (y, unit): (Vec<f64>, f64) = if K::SUMS {
        let y: Vec<f32> = outcome.get("y")?;
        (y.into_iter().map(f64::from).collect(), f64::powi(0.5, 24))
    } else {
        let y: Vec<T> = outcome.get("y")?;
        (wide(&y), T::ROUNDOFF)
    };
    let mut y = y.into_iter();
    let (mut worst, mut ratio) = (0.0f64, 0.0f64);
    for row in x.chunks(cols.max(1)) {
        for (wanted, allowed) in K::reference(&wide(row), &vectors, unit) {
            let got = y.next().unwrap_or(f64::NAN);
            let error = (got - wanted).abs();
            let (error, relative) =
                if got.to_bits() == wanted.to_bits() || (got.is_nan() && wanted.is_nan()) {
                    (0.0, 0.0)
                } else if error.is_nan() || error.is_infinite() {
                    (f64::INFINITY, f64::INFINITY)
                } else {
                    (error, error / allowed)
                };
            worst = worst.max(error);
            ratio = ratio.max(relative);
        }
    }
    Ok((worst, ratio))
}
