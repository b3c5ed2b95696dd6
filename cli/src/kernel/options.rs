//! The options of each kernel.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{
    CrossEntropy, Design, FewRows, Heads, NormBackward, RowOperation, Rows, Transposed, Varlen,
};
use tilewright::kernels::KernelError;
use tilewright::kernels::attention::{self, Align, Attention, Mask, Order, Tile, hopper};
use tilewright::kernels::gemm::{Epilogue, ProblemError};
use tilewright::kernels::gemv::{self, Gemv};
use tilewright::kernels::norm::{self, Norm, RmsNorm};
use tilewright::kernels::{rows, transpose};

use super::block_scaled::BlockScaledArgs;
use super::experts::{CombineArgs, GatherArgs, RouteArgs};
use super::grouped::GroupedArgs;
use super::quantize::QuantizeArgs;
use super::weight_only::{RepackArgs, WeightOnlyArgs};
use crate::gemm::select::Device;
use crate::gemm::size;

/// Run a kernel that comes with Tilewright: attention, products of few rows, with scales, with 4-bit weights and of groups, routing to experts, quantised matrices, softmax, cross entropy, norms, sums of rows, a transpose
#[derive(Args)]
pub(crate) struct KernelArgs {
    #[command(subcommand)]
    pub(super) kernel: Kernel,
}

#[derive(Subcommand)]
#[command(rename_all = "snake_case")]
pub(super) enum Kernel {
    /// List the kernels
    List {
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Attention, forward: softmax(q·kᵀ/√d)·v of each head, and the logarithms of the sums
    Attention(AttentionArgs),
    /// Products of 8-bit floats with scales of blocks or of rows
    BlockScaled(BlockScaledArgs),
    /// Weighted sums of rows, as a mixture of experts has them behind its products
    CombineRows(CombineArgs),
    /// Cross entropy of each row of logits, and its gradient
    CrossEntropy(RowArgs),
    /// Rows in the order of the experts of their tokens
    GatherRows(GatherArgs),
    /// The product of up to 16 rows with a large matrix: y = activation(α·x·wᵀ + β·y + bias)
    Gemv(GemvArgs),
    /// Products of rows with the matrix of their group, as a mixture of experts has them
    Grouped(GroupedArgs),
    /// Layer norm of each row: (x − mean)·w/√(variance + eps) + b, and its backward
    LayerNorm(LayerNormArgs),
    /// A matrix in an 8-bit type with a scale for each row or block, also of a norm or of SwiGLU
    Quantize(QuantizeArgs),
    /// RMS norm of each row: x·w/√(mean of x² + eps), also with a residual, also quantised, and its backward
    RmsNorm(RmsNormArgs),
    /// The experts of each token, their weights, and the order of rows by experts
    Route(RouteArgs),
    /// The sum of each row
    RowSums(RowArgs),
    /// Softmax of each row
    Softmax(RowArgs),
    /// The transpose of a matrix
    Transpose(TransposeArgs),
    /// Products with 4-bit weights: c = a·wᵀ, with scales of groups along k
    WeightOnly(WeightOnlyArgs),
    /// 4-bit weights of a checkpoint in the order of those products
    WeightOnlyRepack(RepackArgs),
}

/// What every kernel takes.
#[derive(Args)]
pub(super) struct Options {
    /// The architecture to generate for: one such as `sm_80`, or auto (the GPU's; without one the first that has what the kernel needs)
    #[arg(long, default_value = "auto")]
    pub(super) arch: String,
    /// Write the kernel's text to this file
    #[arg(long, value_name = "FILE")]
    pub(super) emit: Option<PathBuf>,
    /// Write the launch for a host of your own: rust, cudarc, c or python, and the file
    #[arg(long, num_args = 2, value_names = ["LANGUAGE", "FILE"])]
    pub(super) emit_host: Option<Vec<String>>,
    /// Where to run: auto takes a GPU if there is one
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) on: Device,
    /// Seed of the random tensors
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Print one JSON value
    #[arg(long)]
    pub(super) json: bool,
}

/// An element type by its name, one of those that a kernel takes.
pub(super) fn one_of(elements: &'static [Element]) -> impl TypedValueParser<Value = Element> {
    let names = PossibleValuesParser::new(elements.iter().map(ToString::to_string));
    names.try_map(|name| {
        let named = elements.iter().find(|e| e.to_string() == name);
        named.copied().ok_or("unknown element type")
    })
}

#[derive(Args)]
pub(super) struct GemvArgs {
    /// Type of x and w
    #[arg(long, default_value = "bf16", value_parser = one_of(&gemv::ELEMENTS))]
    dtype: Element,
    /// Type of y and of the bias; that of x, and of e4m3 bf16, if it is not given
    #[arg(long, value_parser = one_of(&gemv::RESULTS))]
    ctype: Option<Element>,
    /// Add a vector: none, row (m elements), column (n elements)
    #[arg(long, default_value = "none")]
    bias: String,
    /// Apply a function to the result: none, relu, gelu
    #[arg(long, default_value = "none")]
    activation: String,
    /// Factor of the product
    #[arg(long, allow_negative_numbers = true)]
    alpha: Option<f32>,
    /// Factor of what y held
    #[arg(long, allow_negative_numbers = true)]
    beta: Option<f32>,
    /// Rows of x and y, 16 at most
    #[arg(long, default_value_t = 3, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Rows of w, columns of y
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Columns of x and w
    #[arg(long, default_value_t = 700, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// Rows of w of a block: 16 or 32
    #[arg(long, allow_negative_numbers = true)]
    tile_n: Option<i64>,
    #[command(flatten)]
    pub(super) options: Options,
}

impl GemvArgs {
    pub(super) fn problem(&self) -> Result<FewRows, ProblemError> {
        let auto = Gemv::new(self.dtype, self.n);
        let kernel = Gemv {
            result: self.ctype.unwrap_or(auto.result),
            rows: self.tile_n.unwrap_or(auto.rows),
            epilogue: Epilogue {
                bias: self.bias.parse()?,
                activation: self.activation.parse()?,
            },
            scaled: self.alpha.is_some() || self.beta.is_some(),
            ..auto
        };
        Ok(FewRows {
            scalars: [self.alpha.unwrap_or(1.0), self.beta.unwrap_or(0.0)],
            ..FewRows::new(kernel, [self.m, self.n, self.k])
        })
    }
}

#[derive(Args)]
struct Shape {
    /// Rows of x
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = size)]
    rows: u64,
    /// Columns of x
    #[arg(long, default_value_t = 700, allow_negative_numbers = true, value_parser = size)]
    cols: u64,
}

#[derive(Args)]
pub(super) struct RowArgs {
    /// Element type
    #[arg(long, default_value = "f32", value_parser = one_of(&rows::ELEMENTS))]
    dtype: Element,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    pub(super) options: Options,
}

impl RowArgs {
    pub(super) fn cross_entropy(&self) -> CrossEntropy {
        CrossEntropy {
            element: self.dtype,
            rows: self.shape.rows,
            cols: self.shape.cols,
        }
    }

    pub(super) fn layer_norm(&self) -> Rows {
        self.of(RowOperation::LayerNorm)
    }

    pub(super) fn row_sums(&self) -> Rows {
        self.of(RowOperation::RowSums)
    }

    pub(super) fn softmax(&self) -> Rows {
        self.of(RowOperation::Softmax)
    }

    fn gradient_of(&self, norm: Norm, blocks: Option<u32>) -> NormBackward {
        let auto = NormBackward::new(norm, self.dtype, self.shape.rows, self.shape.cols);
        NormBackward {
            blocks: blocks.unwrap_or(auto.blocks),
            ..auto
        }
    }

    fn of(&self, operation: RowOperation) -> Rows {
        Rows::new(operation, self.dtype, self.shape.rows, self.shape.cols)
    }
}

#[derive(Args)]
pub(super) struct RmsNormArgs {
    #[command(flatten)]
    pub(super) rows: RowArgs,
    /// Norm h = x + r, and store h
    #[arg(long)]
    residual: bool,
    /// Quantise the result to this type, with a scale a row
    #[arg(long, value_name = "TYPE", value_parser = one_of(&norm::QUANTIZED))]
    quantize: Option<Element>,
    /// The gradients instead: dx and dw from x, w and dy
    #[arg(long, conflicts_with_all = ["residual", "quantize"])]
    pub(super) backward: bool,
    /// Blocks that add the rows of dw, 1 to 4096 (backward)
    #[arg(long, requires = "backward")]
    blocks: Option<u32>,
}

#[derive(Args)]
pub(super) struct LayerNormArgs {
    #[command(flatten)]
    pub(super) rows: RowArgs,
    /// The gradients instead: dx, dw and db from x, w and dy
    #[arg(long)]
    pub(super) backward: bool,
    /// Blocks that add the rows of dw and db, 1 to 4096 (backward)
    #[arg(long, requires = "backward")]
    blocks: Option<u32>,
}

impl LayerNormArgs {
    pub(super) fn gradient(&self) -> NormBackward {
        self.rows.gradient_of(Norm::Layer, self.blocks)
    }
}

impl RmsNormArgs {
    pub(super) fn gradient(&self) -> NormBackward {
        self.rows.gradient_of(Norm::Rms, self.blocks)
    }

    pub(super) fn problem(&self) -> Rows {
        self.rows.of(RowOperation::RmsNorm(RmsNorm {
            residual: self.residual,
            quantized: self.quantize,
            blocks: false,
        }))
    }
}

#[derive(Args)]
pub(super) struct TransposeArgs {
    /// Element type
    #[arg(long, default_value = "f32", value_parser = one_of(&transpose::ELEMENTS))]
    dtype: Element,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    pub(super) options: Options,
}

impl TransposeArgs {
    pub(super) fn problem(&self) -> Transposed {
        Transposed {
            element: self.dtype,
            rows: self.shape.rows,
            cols: self.shape.cols,
        }
    }
}

/// Kernels of attention.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DesignName {
    /// That of the architecture
    Auto,
    /// mma.sync
    Portable,
    /// TMA and wgmma
    Hopper,
}

/// Where a query is among the keys.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum AlignName {
    /// Query i at key i
    TopLeft,
    /// The last query at the last key
    BottomRight,
}

/// The order of the tensors' modes.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum OrderName {
    /// (batch, head, sequence, d)
    Bhsd,
    /// (batch, sequence, head, d)
    Bshd,
}

/// Keys of a window before and after a query; `None` for −1, which is all of them.
fn window(sides: &str) -> Result<[Option<i64>; 2], String> {
    let both = sides.split_once(',');
    let both = both.and_then(|(left, right)| {
        let side = |text: &str| text.trim().parse().ok().filter(|keys: &i64| *keys >= -1);
        Some([side(left)?, side(right)?])
    });
    let both = both.ok_or_else(|| {
        "a window is two numbers of keys, such as 128,0, and -1 for all keys of a side".to_owned()
    })?;
    Ok(both.map(|keys| (keys >= 0).then_some(keys)))
}

#[derive(Args)]
#[allow(clippy::struct_excessive_bools)] // independent options
pub(super) struct AttentionArgs {
    /// Element type
    #[arg(long, default_value = "f16", value_parser = one_of(&attention::ELEMENTS))]
    dtype: Element,
    /// Sequences
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = size)]
    batch: u64,
    /// Heads of queries
    #[arg(long, default_value_t = 4, allow_negative_numbers = true, value_parser = size)]
    heads: u64,
    /// Heads of keys and values, a divisor of the heads; as many if it is not given
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    kv_heads: Option<u64>,
    /// Queries of a head
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    queries: u64,
    /// Keys of a head
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    keys: u64,
    /// Elements of a head of q and k: 64 or 128, on Hopper also 96, 192 and 256
    #[arg(long, default_value_t = 64, allow_negative_numbers = true)]
    head_dim: i64,
    /// Elements of a head of v and o; as many as of k if it is not given
    #[arg(long, allow_negative_numbers = true)]
    value_dim: Option<i64>,
    /// A query sees no keys after its position
    #[arg(long)]
    causal: bool,
    /// The position of a query: the first query at the first key, or the last query at the last key
    #[arg(long, value_enum, default_value = "top-left")]
    align: AlignName,
    /// A query sees LEFT keys before its position and RIGHT keys after it, -1 for all
    #[arg(long, value_name = "LEFT,RIGHT", allow_hyphen_values = true, value_parser = window)]
    window: Option<[Option<i64>; 2]>,
    /// Scores s become X·tanh(s/X)
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    softcap: Option<f32>,
    /// A tensor `sinks` with a score for each head, which joins the sum of its weights
    #[arg(long)]
    sinks: bool,
    /// Store the logarithm of each row's sum, the tensor `lse`
    #[arg(long)]
    lse: bool,
    /// Sequences of any lengths one after another: tensors of (token, head, d), queries and keys of all sequences, whose ends on the device are uneven by the seed (Hopper)
    #[arg(long, conflicts_with_all = ["layout", "tune", "warps"])]
    pub(super) varlen: bool,
    /// The order of the modes of q, k, v and o
    #[arg(long, value_enum, default_value = "bhsd")]
    layout: OrderName,
    /// The kernel: auto takes the one for Hopper on `sm_90` unless options of the portable one's tile are given
    #[arg(long, value_enum, default_value = "auto")]
    design: DesignName,
    /// Queries of a block: a multiple of 16 for each warp (portable), 64 for each warpgroup (Hopper)
    #[arg(long, allow_negative_numbers = true)]
    tile_queries: Option<i64>,
    /// Keys of a step, a multiple of 16
    #[arg(long, allow_negative_numbers = true)]
    tile_keys: Option<i64>,
    /// Warps of a block (portable)
    #[arg(long, allow_negative_numbers = true)]
    warps: Option<i64>,
    /// Stages of the rings of keys and values
    #[arg(long, allow_negative_numbers = true)]
    stages: Option<i64>,
    /// Whether consumer warpgroups have a ping-pong schedule (Hopper)
    #[arg(long, value_name = "BOOL")]
    ping_pong: Option<bool>,
    /// Measure the tiles of the kernel on the GPU and print the options that choose them, the fastest first
    #[arg(long, conflicts_with_all = ["tile_queries", "tile_keys", "warps", "stages", "ping_pong", "emit", "emit_host"])]
    pub(super) tune: bool,
    #[command(flatten)]
    pub(super) options: Options,
}

/// The options that choose a kernel of attention and its tile.
pub(super) fn of_design(design: Design) -> String {
    match design {
        Design::Auto => "--design auto".to_owned(),
        Design::Portable(tile) => format!(
            "--design portable --tile-queries {} --tile-keys {} --warps {} --stages {}",
            tile.queries, tile.keys, tile.warps, tile.stages
        ),
        Design::Hopper(tile) => format!(
            "--design hopper --tile-queries {} --tile-keys {} --stages {} --ping-pong {}",
            64 * tile.warpgroups,
            tile.keys,
            tile.stages,
            tile.ping_pong
        ),
    }
}

impl AttentionArgs {
    pub(super) fn problem(&self) -> Result<Heads, KernelError> {
        let kv_heads = self.kv_heads.unwrap_or(self.heads);
        let group = self.heads.checked_div(kv_heads).unwrap_or(0).max(1);
        if group.saturating_mul(kv_heads) != self.heads {
            return Err(KernelError::Number {
                what: "kv-heads",
                given: kv_heads.to_string(),
                accepted: "a divisor of the heads",
            });
        }
        let [left, right] = self.window.unwrap_or_default();
        let what = Attention {
            element: self.dtype,
            head_dim: self.head_dim,
            value_dim: self.value_dim.unwrap_or(self.head_dim),
            group: group as i64,
            mask: Mask {
                left,
                right: if self.causal { Some(0) } else { right },
                align: match self.align {
                    AlignName::TopLeft => Align::TopLeft,
                    AlignName::BottomRight => Align::BottomRight,
                },
            },
            softcap: self.softcap,
            sinks: self.sinks,
            lse: self.lse,
            order: match self.layout {
                OrderName::Bhsd => Order::BatchHeadSequence,
                OrderName::Bshd => Order::BatchSequenceHead,
            },
        };
        Ok(Heads {
            what,
            design: self.design_of(what),
            batch: self.batch,
            kv_heads,
            queries: self.queries,
            keys: self.keys,
        })
    }

    /// The problem for sequences of any lengths.
    pub(super) fn varlen(&self) -> Result<Varlen, KernelError> {
        let Heads {
            what,
            batch,
            kv_heads,
            queries,
            keys,
            ..
        } = self.problem()?;
        if self.design == DesignName::Portable {
            return Err(KernelError::Number {
                what: "design for sequences of any lengths",
                given: "portable".to_owned(),
                accepted: "hopper",
            });
        }
        let tile = self.tile(hopper::Tile::of_varlen(what));
        Ok(Varlen {
            what,
            tile,
            sequences: batch,
            kv_heads,
            queries,
            keys,
        })
    }

    /// The tile for Hopper, with the options that are given.
    fn tile(&self, tile: hopper::Tile) -> hopper::Tile {
        // What is no multiple of 64 is no number of warpgroups, and refused.
        let groups = |m: i64| if m % 64 == 0 { m / 64 } else { -1 };
        hopper::Tile {
            warpgroups: self.tile_queries.map_or(tile.warpgroups, groups),
            keys: self.tile_keys.unwrap_or(tile.keys),
            stages: self.stages.unwrap_or(tile.stages),
            ping_pong: self.ping_pong.unwrap_or(tile.ping_pong),
        }
    }

    fn design_of(&self, what: Attention) -> Design {
        let tile = [self.tile_queries, self.tile_keys, self.warps, self.stages];
        let given = tile.iter().any(Option::is_some);
        match self.design {
            DesignName::Auto if self.ping_pong.is_none() && !given => Design::Auto,
            DesignName::Auto if self.ping_pong.is_none() => self.portable(what),
            DesignName::Portable => self.portable(what),
            _ => Design::Hopper(self.tile(hopper::Tile::of(what))),
        }
    }

    fn portable(&self, what: Attention) -> Design {
        let tile = Tile::of(what);
        Design::Portable(Tile {
            queries: self.tile_queries.unwrap_or(tile.queries),
            keys: self.tile_keys.unwrap_or(tile.keys),
            warps: self.warps.unwrap_or(tile.warps),
            stages: self.stages.unwrap_or(tile.stages),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: AttentionArgs,
    }

    #[test]
    fn options_of_a_design_choose_it() {
        let portable = Tile::candidates().map(Design::Portable);
        let designs = portable.chain(hopper::Tile::candidates().map(Design::Hopper));
        for design in designs.chain([Design::Auto]) {
            let line = format!("attention {}", of_design(design));
            let line = Line::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(line.args.problem().expect("a problem").design, design);
        }
    }
}
