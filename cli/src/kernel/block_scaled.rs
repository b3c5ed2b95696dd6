//! The options of products with scales.

use clap::{Args, ValueEnum};
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::ScaledProduct;
use tilewright::kernels::block_scaled::{self, BlockScaled, Scales, Tile};

use super::options::{Options, one_of};
use crate::gemm::size;

#[derive(Clone, Copy, ValueEnum)]
enum ScalesName {
    /// For each row and 128 of k of a, and for 128 rows and 128 of k of b
    #[value(name = "1x128,128x128")]
    Blocks,
    /// For each row and 128 of k of both
    #[value(name = "1x128,1x128")]
    Rows128,
    /// For each row of both
    #[value(name = "row,row")]
    Rows,
}

#[derive(Args)]
pub(in crate::kernel) struct BlockScaledArgs {
    /// Type of a and b
    #[arg(long, default_value = "e4m3", value_parser = one_of(&block_scaled::ELEMENTS))]
    dtype: Element,
    /// Type of c
    #[arg(long, default_value = "bf16", value_parser = one_of(&block_scaled::RESULTS))]
    ctype: Element,
    /// Which elements have a scale in common
    #[arg(long, value_enum, default_value = "1x128,128x128")]
    scales: ScalesName,
    /// Rows of a and c
    #[arg(long, default_value_t = 200, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Rows of b, columns of c
    #[arg(long, default_value_t = 264, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Columns of a and b: a multiple of 16
    #[arg(long, default_value_t = 400, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// Rows of a block's tile: 64 or 128
    #[arg(long, allow_negative_numbers = true)]
    tile_m: Option<i64>,
    /// Columns of a block's tile: 64 or 128
    #[arg(long, allow_negative_numbers = true)]
    tile_n: Option<i64>,
    /// Stages of the ring of tiles, 2 to 12
    #[arg(long, allow_negative_numbers = true)]
    stages: Option<i64>,
    /// Whether two blocks of a cluster load their common tile of b together
    #[arg(long, value_name = "BOOL")]
    multicast: Option<bool>,
    /// Whether c is stored by TMA: bf16 and n a multiple of 8
    #[arg(long, value_name = "BOOL")]
    tma_store: Option<bool>,
    /// Blocks along rows of tiles; even with multicast
    #[arg(long, allow_negative_numbers = true)]
    blocks_m: Option<u32>,
    /// Blocks along columns of tiles
    #[arg(long, allow_negative_numbers = true)]
    blocks_n: Option<u32>,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl BlockScaledArgs {
    pub(in crate::kernel) fn problem(&self) -> ScaledProduct {
        let scales = match self.scales {
            ScalesName::Blocks => Scales::Blocks,
            ScalesName::Rows128 => Scales::Rows128,
            ScalesName::Rows => Scales::Rows,
        };
        let auto = BlockScaled::new(self.dtype, scales, [self.m, self.n]);
        let kernel = BlockScaled {
            result: self.ctype,
            tile: Tile {
                m: self.tile_m.unwrap_or(auto.tile.m),
                n: self.tile_n.unwrap_or(auto.tile.n),
                stages: self.stages.unwrap_or(auto.tile.stages),
                multicast: self.multicast.unwrap_or(auto.tile.multicast),
                tma_store: self
                    .tma_store
                    .unwrap_or(auto.tile.tma_store && self.ctype == Element::Bf16),
            },
            grid: [
                self.blocks_m.unwrap_or(auto.grid[0]),
                self.blocks_n.unwrap_or(auto.grid[1]),
            ],
            ..auto
        };
        ScaledProduct::new(kernel, [self.m, self.n, self.k])
    }
}
