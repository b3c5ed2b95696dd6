//! The options of products with 4-bit weights, and of putting weights in their order.

use clap::{Args, ValueEnum};
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{Repacked, WeightOnlyProduct};
use tilewright::kernels::weight_only::repack::Order;
use tilewright::kernels::weight_only::{self, Design, Tile, Weights, WgmmaTile};

use super::options::{Options, one_of};
use crate::gemm::size;

#[derive(Clone, Copy, ValueEnum)]
enum WeightsName {
    /// Integers of 4 bits, less 8 or a zero point
    Int4,
    /// e2m1, with a power of two for 32 weights
    Mxfp4,
    /// e2m1, with a scale in e4m3 for 16 weights
    Nvfp4,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DesignName {
    /// The one for these sizes and the architecture; `mma-sync` if an option of a tile is given
    Auto,
    /// From `sm_80` on
    MmaSync,
    /// Weights in registers, a by TMA: on Hopper, int4, k a multiple of 8
    Wgmma,
}

#[derive(Args)]
pub(in crate::kernel) struct WeightOnlyArgs {
    /// Type of a, c and the scales
    #[arg(long, default_value = "bf16", value_parser = one_of(&weight_only::ELEMENTS))]
    dtype: Element,
    /// How weights are numbers
    #[arg(long, value_enum, default_value = "int4")]
    weights: WeightsName,
    /// Weights along k that have a scale in common: 32, 64 or 128 (int4, which takes 128 if it is not given), 32 (mxfp4) or 16 (nvfp4)
    #[arg(long, allow_negative_numbers = true)]
    group_size: Option<i64>,
    /// Each group has a zero point too (int4)
    #[arg(long)]
    zero_points: bool,
    /// Rows of a and c
    #[arg(long, default_value_t = 16, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Rows of w, columns of c
    #[arg(long, default_value_t = 264, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Columns of a, weights of a row of w
    #[arg(long, default_value_t = 512, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// How a block computes the product
    #[arg(long, value_enum, default_value = "auto")]
    design: DesignName,
    /// Rows of a in a block's tile: 8, 16, 32 or 64; by wgmma 32, 64, 128, 192 or 256
    #[arg(long, allow_negative_numbers = true)]
    tile_m: Option<i64>,
    /// Rows of w in a block's tile: 32, 64, 128 or 256; by wgmma 64 or 128
    #[arg(long, allow_negative_numbers = true)]
    tile_n: Option<i64>,
    /// Weights along k of a stage: 128, 256 or 512; by wgmma 128 or 256
    #[arg(long, allow_negative_numbers = true)]
    tile_k: Option<i64>,
    /// Warps of a block that share the rows of w (`mma-sync`)
    #[arg(long, allow_negative_numbers = true)]
    warps_n: Option<i64>,
    /// Warps of a block that share k (`mma-sync`)
    #[arg(long, allow_negative_numbers = true)]
    warps_k: Option<i64>,
    /// Stages of the ring of tiles, 2 to 8
    #[arg(long, allow_negative_numbers = true)]
    stages: Option<i64>,
    /// Blocks of a cluster, which share k (`mma-sync`; more than 1 from `sm_90` on) or load their rows of a together (wgmma)
    #[arg(long, allow_negative_numbers = true)]
    cluster: Option<u32>,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl WeightOnlyArgs {
    pub(in crate::kernel) fn problem(&self) -> WeightOnlyProduct {
        let weights = match self.weights {
            WeightsName::Int4 => Weights::Int4,
            WeightsName::Mxfp4 => Weights::Mxfp4,
            WeightsName::Nvfp4 => Weights::Nvfp4,
        };
        let largest = weights.groups().iter().copied().max().unwrap_or(0);
        let group = self.group_size.unwrap_or(largest);
        let size = [self.m, self.n, self.k];
        WeightOnlyProduct {
            zero_points: self.zero_points,
            design: self.design(),
            ..WeightOnlyProduct::new(self.dtype, weights, group, size)
        }
    }

    /// The design with the tile that the options give, if they do.
    fn design(&self) -> Option<Design> {
        let given = [
            self.tile_m,
            self.tile_n,
            self.tile_k,
            self.warps_n,
            self.warps_k,
            self.stages,
        ];
        if self.design == DesignName::Wgmma {
            let auto = WgmmaTile::new(self.m, self.n);
            return Some(Design::Wgmma(WgmmaTile {
                m: self.tile_m.unwrap_or(auto.m),
                n: self.tile_n.unwrap_or(auto.n),
                k: self.tile_k.unwrap_or(auto.k),
                stages: self.stages.unwrap_or(auto.stages),
                cluster: self.cluster.unwrap_or(auto.cluster),
            }));
        }
        let any = self.cluster.is_some() || given.iter().any(Option::is_some);
        if self.design == DesignName::Auto && !any {
            return None;
        }
        // Beside what is given, the tile is the one of the architectures that have no clusters.
        let auto = Tile::new(self.m, self.n, weight_only::ARCH);
        Some(Design::MmaSync(Tile {
            m: self.tile_m.unwrap_or(auto.m),
            n: self.tile_n.unwrap_or(auto.n),
            k: self.tile_k.unwrap_or(auto.k),
            warps: [
                self.warps_n.unwrap_or(auto.warps[0]),
                self.warps_k.unwrap_or(auto.warps[1]),
            ],
            stages: self.stages.unwrap_or(auto.stages),
            cluster: self.cluster.unwrap_or(auto.cluster),
        }))
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderName {
    /// n × k/8 words of eight weights along k
    RowMajor,
    /// k/8 × n words of eight weights along k
    Gptq,
    /// k × n/8 words of eight weights along n: 0, 2, 4, 6, 1, 3, 5, 7
    Awq,
}

#[derive(Args)]
pub(in crate::kernel) struct RepackArgs {
    /// How the checkpoint has the weights
    #[arg(long, value_enum, default_value = "gptq")]
    order: OrderName,
    /// Rows of weights
    #[arg(long, default_value_t = 264, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Weights of a row
    #[arg(long, default_value_t = 512, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    #[command(flatten)]
    pub(in crate::kernel) options: Options,
}

impl RepackArgs {
    pub(in crate::kernel) fn problem(&self) -> Repacked {
        let order = match self.order {
            OrderName::RowMajor => Order::RowMajor,
            OrderName::Gptq => Order::Gptq,
            OrderName::Awq => Order::Awq,
        };
        Repacked {
            order,
            n: self.n,
            k: self.k,
        }
    }
}
