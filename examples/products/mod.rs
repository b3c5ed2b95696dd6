//! What the examples of matrix products share: sizes and types on the command line, the choice of a plan, and which elements of C are checked.

use clap::{Args, ValueEnum};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{GemmKernel, tolerance};
use tilewright::kernels::gemm::{
    Config, DataType, Gemm, Operands, PlanError, Schedule, Specialized,
};

use super::common::{self, Failure, Number};

/// The sizes and types of a product.
#[derive(Args, Clone, Debug)]
pub(crate) struct Product {
    /// Element type of the operands
    #[arg(long, value_enum, default_value = "bf16")]
    pub(crate) dtype: Operand,
    /// Rows of A
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = common::size)]
    pub(crate) m: u64,
    /// Columns of B
    #[arg(long, default_value_t = 200, allow_negative_numbers = true, value_parser = common::size)]
    pub(crate) n: u64,
    /// Columns of A and rows of B
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = common::size)]
    pub(crate) k: u64,
    /// How A and B lie in memory: nn, nt, tn or tt; with nt, B has a row for each column of C, as the weights of a linear layer
    #[arg(long, default_value = "nt")]
    pub(crate) trans: Operands,
    /// The tile of the plan, as in `128x256x64`, instead of the one that fills the GPU
    #[arg(long)]
    pub(crate) tile: Option<String>,
    /// What the kernel is made for: `sm_80` and later GPUs, or `sm_90` alone, with its products of warpgroups
    #[arg(long, default_value = "sm_80", value_parser = arch)]
    pub(crate) arch: Arch,
}

/// The element types of the operands.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Operand {
    F16,
    Bf16,
}

/// Tiles of the plans that are tried, the fastest first.
const TILES: [&str; 3] = ["128x256x64", "64x128x64", "64x64x32"];

/// The same of plans of warpgroups.
const HOPPER_TILES: [&str; 2] = ["128x256x64", "128x128x64"];

/// Blocks that fill a GPU well enough to take the larger tile.
const FILLED: u64 = 100;

/// Elements of C that are checked at most, in a product that is too large to check all of it.
const CHECKED: usize = 1 << 16;

impl Product {
    /// The problem, with C of this type.
    pub(crate) fn problem(&self, output: Element) -> Gemm {
        let mut problem = Gemm::packed(self.m, self.n, self.k, self.trans);
        problem.output = Some(output);
        problem
    }

    fn data_type(&self) -> DataType {
        match self.dtype {
            Operand::F16 => DataType::F16,
            Operand::Bf16 => DataType::Bf16,
        }
    }

    /// The kernel for the problem of the first tile that serves it and has blocks enough.
    ///
    /// # Errors
    ///
    /// A problem that no tile serves.
    pub(crate) fn kernel(
        &self,
        problem: &Gemm,
        fuse: impl Fn(Config) -> Result<Specialized, PlanError>,
    ) -> Result<GemmKernel<'static>, Failure> {
        let none = self.tile.as_deref().unwrap_or_default();
        let (tiles, main_loop) = if self.arch == Arch(90) {
            (&HOPPER_TILES[..], "wgmma")
        } else {
            (&TILES[..], "mma")
        };
        let unknown = format!(
            "there is no tile `{none}`: give one of {}",
            tiles.join(", ")
        );
        let mut chosen = Err(Failure::new("unknown_tile", unknown));
        for &tile in tiles {
            let named = format!("{main_loop}-{}-{tile}", self.data_type());
            if self.tile.as_deref().is_some_and(|own| own != tile) {
                continue;
            }
            let plan = fuse(named.parse().map_err(refused)?).map_err(refused)?;
            let [rows, columns, _] = plan.tile();
            let blocks = problem.m.div_ceil(rows.into()) * problem.n.div_ceil(columns.into());
            match plan.specialize(problem, Schedule::default()) {
                Ok(adapted) => chosen = Ok(adapted),
                Err(e) => {
                    chosen = chosen.or(Err(refused(e)));
                    continue;
                }
            }
            if blocks >= FILLED {
                break;
            }
        }
        let plan = chosen?;
        let kernel = GemmKernel::new(plan, problem, Schedule::default(), self.arch);
        kernel.map_err(refused)
    }

    /// The products whose sums make element (row, column) of C, in double precision, and the sum of their absolute values.
    pub(crate) fn sum<T: Number>(&self, a: &[T], b: &[T], [row, column]: [usize; 2]) -> [f64; 2] {
        let (m, n, k) = (self.m as usize, self.n as usize, self.k as usize);
        let [across, along] = self
            .trans
            .to_string()
            .chars()
            .map(|c| c == 't')
            .collect::<Vec<_>>()[..]
        else {
            return [f64::NAN; 2];
        };
        (0..k).fold([0.0, 0.0], |[sum, size], p| {
            let x = a[if across { p * m + row } else { row * k + p }].into();
            let y = b[if along {
                column * k + p
            } else {
                p * n + column
            }]
            .into();
            let product: f64 = x * y;
            [sum + product, size + product.abs()]
        })
    }

    /// How far a sum in f32 may be from the exact one, relative to the sum of absolute values: [`tolerance`] says why.
    pub(crate) fn tolerance(&self) -> f64 {
        tolerance(&self.problem(Element::F32), self.data_type())
    }

    /// The elements of C that are checked: all, or [`CHECKED`] of them at random and the last.
    pub(crate) fn checked(&self, seed: u64) -> Vec<[usize; 2]> {
        let (m, n) = (self.m as usize, self.n as usize);
        let count = m * n;
        let at = |i: usize| [i / n, i % n];
        if count <= CHECKED {
            return (0..count).map(at).collect();
        }
        // A number in [-1, 1) to an element.
        let random = f32::random(2 * CHECKED, seed ^ 0x5eed);
        let within = |x: f32, size: usize| (f64::midpoint(x.into(), 1.0) * size as f64) as usize;
        let pairs = random
            .chunks_exact(2)
            .map(|p| [within(p[0], m), within(p[1], n)]);
        pairs.chain([at(count - 1)]).collect()
    }
}

/// |x - y|: 0 of equal infinities and of two NaN, infinite if one of them is NaN.
pub(crate) fn distance(x: f64, y: f64) -> f64 {
    let alike = x.is_nan() && y.is_nan() || x.is_infinite() && x.total_cmp(&y).is_eq();
    let d = (x - y).abs();
    if alike {
        0.0
    } else if d.is_nan() {
        f64::INFINITY
    } else {
        d
    }
}

fn arch(text: &str) -> Result<Arch, String> {
    match text {
        "sm_80" => Ok(Arch(80)),
        "sm_90" => Ok(Arch(90)),
        other => Err(format!("`{other}` is none of sm_80 and sm_90")),
    }
}

fn refused(error: PlanError) -> Failure {
    Failure::new(error.code(), error)
}
