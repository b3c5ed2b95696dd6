//! What each kernel's options ask for: an arm a kernel.

use tilewright::host::kernels::Problem;

use super::options::{Kernel, Options};
use crate::error::CliError;

/// The problem that options state, or why there is none.
type Stated = Result<Box<dyn Problem>, CliError>;

impl Kernel {
    /// What the kernel computes and what every kernel takes; `None` for the list.
    pub(super) fn asked(&self) -> Option<(Stated, &Options)> {
        let stated: (Stated, _) = match self {
            Self::List { .. } => return None,
            Self::Attention(args) => match args.problem() {
                Ok(problem) => (Ok(Box::new(problem)), &args.options),
                Err(e) => (Err(CliError::new(e.code(), e.to_string())), &args.options),
            },
            Self::BlockScaled(args) => (Ok(Box::new(args.problem())), &args.options),
            Self::CrossEntropy(args) => (Ok(Box::new(args.cross_entropy())), &args.options),
            Self::Gemv(args) => match args.problem() {
                Ok(problem) => (Ok(Box::new(problem)), &args.options),
                Err(e) => (Err(CliError::usage(e.code(), e.to_string())), &args.options),
            },
            Self::Grouped(args) => (Ok(Box::new(args.problem())), &args.options),
            Self::LayerNorm(args) if args.backward => {
                (Ok(Box::new(args.gradient())), &args.rows.options)
            }
            Self::LayerNorm(args) => (Ok(Box::new(args.rows.layer_norm())), &args.rows.options),
            Self::RmsNorm(args) if args.backward => {
                (Ok(Box::new(args.gradient())), &args.rows.options)
            }
            Self::RmsNorm(args) => (Ok(Box::new(args.problem())), &args.rows.options),
            Self::RowSums(args) => (Ok(Box::new(args.row_sums())), &args.options),
            Self::Softmax(args) => (Ok(Box::new(args.softmax())), &args.options),
            Self::Transpose(args) => (Ok(Box::new(args.problem())), &args.options),
        };
        Some(stated)
    }
}
