//! What each kernel's options ask for: an arm a kernel.

use tilewright::host::kernels::Problem;
use tilewright::kernels::KernelError;

use super::options::{Kernel, Options};
use crate::error::CliError;

/// The problem that options state, or why there is none.
type Stated = Result<Box<dyn Problem>, CliError>;

impl Kernel {
    /// What the kernel computes and what every kernel takes; `None` for the list.
    pub(super) fn asked(&self) -> Option<(Stated, &Options)> {
        let refused = |e: KernelError| CliError::new(e.code(), e.to_string());
        Some(match self {
            Self::List { .. } => return None,
            Self::Attention(args) if args.varlen => {
                (args.varlen().map_err(refused).map(boxed), &args.options)
            }
            Self::Attention(args) => (args.problem().map_err(refused).map(boxed), &args.options),
            Self::BlockScaled(args) => (Ok(boxed(args.problem())), &args.options),
            Self::CombineRows(args) => (Ok(boxed(args.problem())), &args.options),
            Self::CrossEntropy(args) => (Ok(boxed(args.cross_entropy())), &args.options),
            Self::GatherRows(args) => (Ok(boxed(args.problem())), &args.options),
            Self::Gemv(args) => {
                let problem = args.problem();
                let problem = problem.map_err(|e| CliError::usage(e.code(), e.to_string()));
                (problem.map(boxed), &args.options)
            }
            Self::Grouped(args) => (Ok(boxed(args.problem())), &args.options),
            Self::LayerNorm(args) if args.backward => {
                (Ok(boxed(args.gradient())), &args.rows.options)
            }
            Self::LayerNorm(args) => (Ok(boxed(args.rows.layer_norm())), &args.rows.options),
            Self::Quantize(args) => (args.problem().map_err(refused), &args.options),
            Self::RmsNorm(args) if args.backward => {
                (Ok(boxed(args.gradient())), &args.rows.options)
            }
            Self::RmsNorm(args) => (Ok(boxed(args.problem())), &args.rows.options),
            Self::Route(args) => (Ok(boxed(args.problem())), &args.options),
            Self::RowSums(args) => (Ok(boxed(args.row_sums())), &args.options),
            Self::Softmax(args) => (Ok(boxed(args.softmax())), &args.options),
            Self::Transpose(args) => (Ok(boxed(args.problem())), &args.options),
            Self::WeightOnly(args) => (Ok(boxed(args.problem())), &args.options),
            Self::WeightOnlyRepack(args) => (Ok(boxed(args.problem())), &args.options),
        })
    }
}

fn boxed<P: Problem + 'static>(problem: P) -> Box<dyn Problem> {
    Box::new(problem)
}
