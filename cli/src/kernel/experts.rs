//! The options of what a mixture of experts does around its products.

use clap::Args;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{CombinedRows, GatheredRows, Routing};
use tilewright::kernels::experts::{self, Combine, Gather, Route};

use super::options::{Options, one_of};
use crate::gemm::size;

#[derive(Args)]
pub(in crate::kernel) struct RouteArgs {
    /// Type of the logits
    #[arg(long, default_value = "bf16", value_parser = one_of(&experts::LOGITS))]
    dtype: Element,
    /// Tokens: rows of the logits
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    tokens: u64,
    /// Experts: columns of the logits, 512 at most
    #[arg(long, default_value_t = 64, allow_negative_numbers = true, value_parser = size)]
    experts: u64,
    /// Experts of a token, 1 to 16
    #[arg(long, default_value_t = 4, allow_negative_numbers = true)]
    top: i64,
    /// Leave the weights of a token as the softmax over all experts gives them, not divided by their sum
    #[arg(long)]
    softmax: bool,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl RouteArgs {
    pub(in crate::kernel) fn problem(&self) -> Routing {
        let kernel = Route {
            normalized: !self.softmax,
            ..Route::new(self.dtype, self.experts, self.top)
        };
        Routing::new(kernel, self.tokens)
    }
}

#[derive(Args)]
pub(in crate::kernel) struct GatherArgs {
    /// Type of x and y
    #[arg(long, default_value = "bf16", value_parser = one_of(&experts::GATHERED))]
    dtype: Element,
    /// Rows of x
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = size)]
    tokens: u64,
    /// Rows of y
    #[arg(long, default_value_t = 400, allow_negative_numbers = true, value_parser = size)]
    rows: u64,
    /// Columns
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl GatherArgs {
    pub(in crate::kernel) fn problem(&self) -> GatheredRows {
        GatheredRows {
            kernel: Gather {
                element: self.dtype,
            },
            tokens: self.tokens,
            rows: self.rows,
            k: self.k,
        }
    }
}

#[derive(Args)]
pub(in crate::kernel) struct CombineArgs {
    /// Type of z and y
    #[arg(long, default_value = "bf16", value_parser = one_of(&experts::LOGITS))]
    dtype: Element,
    /// Rows of y
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = size)]
    tokens: u64,
    /// Rows of z that a row of y is the sum of, 1 to 16
    #[arg(long, default_value_t = 4, allow_negative_numbers = true)]
    top: i64,
    /// Rows of z; as many as all tokens have if it is not given
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    rows: Option<u64>,
    /// Columns
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl CombineArgs {
    pub(in crate::kernel) fn problem(&self) -> CombinedRows {
        let all = self.tokens.saturating_mul(self.top.max(0) as u64);
        CombinedRows {
            kernel: Combine {
                element: self.dtype,
                top: self.top,
            },
            tokens: self.tokens,
            rows: self.rows.unwrap_or(all),
            n: self.n,
        }
    }
}
