//! The options of quantised matrices.

use clap::{Args, ValueEnum};
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{Problem, Quantized, RowOperation, Rows};
use tilewright::kernels::norm::RmsNorm;
use tilewright::kernels::quantize::{self, Quantize, Scales, Source};
use tilewright::kernels::{KernelError, rows};

use super::options::{Options, one_of};
use crate::gemm::size;

#[derive(Clone, Copy, ValueEnum)]
enum ScalesName {
    /// For each row and 128 of k, as operand a of `block_scaled`
    #[value(name = "1x128")]
    Rows128,
    /// For 128 rows and 128 of k, as operand b
    #[value(name = "128x128")]
    Squares,
    /// For each row
    #[value(name = "row")]
    Rows,
}

#[derive(Clone, Copy, ValueEnum)]
enum NormName {
    /// x·w/√(mean of x² + eps)
    Rms,
}

#[derive(Args)]
pub(in crate::kernel) struct QuantizeArgs {
    /// Type of x
    #[arg(long, default_value = "bf16", value_parser = one_of(&rows::ELEMENTS))]
    dtype: Element,
    /// Type of y
    #[arg(long, default_value = "e4m3", value_parser = one_of(&quantize::RESULTS))]
    to: Element,
    /// Which elements have a scale in common
    #[arg(long, value_enum, default_value = "1x128")]
    scales: ScalesName,
    /// Quantise the norm of each row
    #[arg(long, value_enum, conflicts_with_all = ["swiglu", "ld_scale"])]
    norm: Option<NormName>,
    /// Norm h = x + r, and store h
    #[arg(long, requires = "norm")]
    residual: bool,
    /// x is m × 2k: quantise silu of its first half times its second
    #[arg(long)]
    swiglu: bool,
    /// Gather the m rows from so many rows of x by the tensor `token_of_row`
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, value_parser = size, conflicts_with_all = ["swiglu", "norm"])]
    gather: Option<u64>,
    /// Rows
    #[arg(long, default_value_t = 200, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Columns of y
    #[arg(long, default_value_t = 400, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// Elements from one row of scales in memory to the next; packed if it is not given
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    ld_scale: Option<u64>,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl QuantizeArgs {
    pub(in crate::kernel) fn problem(&self) -> Result<Box<dyn Problem>, KernelError> {
        let scales = match self.scales {
            ScalesName::Rows128 => Scales::Rows128,
            ScalesName::Squares => Scales::Squares,
            ScalesName::Rows => Scales::Rows,
        };
        if self.norm.is_some() {
            if scales == Scales::Squares {
                return Err(KernelError::Number {
                    what: "scales of a quantised norm",
                    given: scales.to_string(),
                    accepted: "1x128 or row",
                });
            }
            let norm = RowOperation::RmsNorm(RmsNorm {
                residual: self.residual,
                quantized: Some(self.to),
                blocks: scales == Scales::Rows128,
            });
            return Ok(Box::new(Rows::new(norm, self.dtype, self.m, self.k)));
        }
        let kernel = Quantize {
            source: match (self.swiglu, self.gather) {
                (true, _) => Source::Swiglu,
                (_, Some(_)) => Source::Gathered,
                _ => Source::Matrix,
            },
            ..Quantize::new(self.dtype, self.to, scales)
        };
        let packed = Quantized::new(kernel, [self.m, self.k]);
        Ok(Box::new(Quantized {
            tokens: self.gather.unwrap_or(packed.tokens),
            ld_scale: self.ld_scale.unwrap_or(packed.ld_scale),
            ..packed
        }))
    }
}
