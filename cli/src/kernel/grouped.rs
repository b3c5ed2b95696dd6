//! The options of grouped products.

use clap::{Args, ValueEnum};
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::GroupedProduct;
use tilewright::kernels::block_scaled::Scales;
use tilewright::kernels::grouped::{self, Grouped, Kind, Tile};

use super::options::{Options, one_of};
use crate::gemm::size;

#[derive(Clone, Copy, ValueEnum)]
enum KindName {
    /// The rows of the groups one after another, and the end of each group
    Offsets,
    /// A matrix for each group, and the number of its valid rows
    Masked,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScalesName {
    /// Results are sums
    None,
    /// A scale for each row of a, and for each row of each matrix of b
    #[value(name = "row,row")]
    Rows,
    /// For each row and 128 of k of a, and for 128 rows and 128 of k of each matrix of b
    #[value(name = "1x128,128x128")]
    Blocks,
}

#[derive(Args)]
pub(in crate::kernel) struct GroupedArgs {
    /// Type of a and b
    #[arg(long, default_value = "bf16", value_parser = one_of(&grouped::ELEMENTS))]
    dtype: Element,
    /// Type of c
    #[arg(long, default_value = "bf16", value_parser = one_of(&grouped::RESULTS))]
    ctype: Element,
    /// Where the groups are
    #[arg(long, value_enum, default_value = "offsets")]
    kind: KindName,
    /// Which elements have a scale in common; row,row for e4m3 and none for bf16 if it is not given
    #[arg(long, value_enum)]
    scales: Option<ScalesName>,
    /// Groups, 512 at most; their rows are uneven by the seed
    #[arg(long, default_value_t = 5, allow_negative_numbers = true, value_parser = size)]
    groups: u64,
    /// Rows of a: of all groups (offsets), or of each (masked)
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Rows of each matrix of b, columns of c
    #[arg(long, default_value_t = 264, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Columns of a and b: rows are multiples of 16 bytes
    #[arg(long, default_value_t = 192, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// Rows of a block's tile: 64 or 128
    #[arg(long, allow_negative_numbers = true)]
    tile_m: Option<i64>,
    /// Columns of a block's tile: 64, 128, 192 or 256; at most 128 with scales of blocks
    #[arg(long, allow_negative_numbers = true)]
    tile_n: Option<i64>,
    /// Stages of the ring of tiles, 3 to 8
    #[arg(long, allow_negative_numbers = true)]
    stages: Option<i64>,
    /// Blocks of the grid, 1 to 4096: one for each multiprocessor
    #[arg(long, default_value_t = grouped::BLOCKS, allow_negative_numbers = true)]
    blocks: u32,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl GroupedArgs {
    pub(in crate::kernel) fn problem(&self) -> GroupedProduct {
        let (kind, rows) = match self.kind {
            KindName::Offsets => (Kind::Offsets, self.m),
            KindName::Masked => (Kind::Masked, self.m.saturating_mul(self.groups)),
        };
        let scales = match self.scales {
            None if self.dtype == Element::E4m3 => Some(Scales::Rows),
            None | Some(ScalesName::None) => None,
            Some(ScalesName::Rows) => Some(Scales::Rows),
            Some(ScalesName::Blocks) => Some(Scales::Blocks),
        };
        let auto = Grouped::new(self.dtype, scales, kind, [rows, self.groups]);
        let kernel = Grouped {
            result: self.ctype,
            tile: Tile {
                m: self.tile_m.unwrap_or(auto.tile.m),
                n: self.tile_n.unwrap_or(auto.tile.n),
                stages: self.stages.unwrap_or(auto.tile.stages),
            },
            blocks: self.blocks,
            ..auto
        };
        GroupedProduct::new(kernel, self.groups, [self.m, self.n, self.k])
    }
}
