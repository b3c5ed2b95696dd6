//! The plans that are listed: one line each.
//!
//! A tile that fits is a compromise: a larger one reads less of A and B for each product, a smaller one leaves fewer multiprocessors idle, needs
//! fewer registers and runs on architectures with less shared memory.

use super::{Depth, MmaPlan, Variant};
use crate::gemm::raster::TURNS_BLOCKS;
use crate::gemm::{DataType, Form, Turns};

/// Stages of a plan, at least and at most: one is filled while another is multiplied, and no tile leaves room for more.
pub(super) const STAGES: std::ops::RangeInclusive<i64> = 2..=32;

const fn plan(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    warps: (i64, i64),
    stages: i64,
    arch: u32,
) -> MmaPlan {
    MmaPlan {
        data_type,
        tile,
        depth,
        warps,
        stages,
        arch,
        variant: Variant::aligned(data_type),
        warpgroups: false,
        turns: Turns::One,
        form: Form::Plain,
        cluster: (1, 1),
    }
}

pub(super) const fn of_warpgroups(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    stages: i64,
) -> MmaPlan {
    MmaPlan {
        warpgroups: true,
        ..plan(data_type, tile, depth, (tile.0 / 16, 1), stages, 90)
    }
}

/// The same, of blocks that take tile after tile.
pub(super) const fn persistent(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    stages: i64,
) -> MmaPlan {
    let plan = of_warpgroups(data_type, tile, depth, stages);
    MmaPlan {
        turns: Turns::Rectangle,
        variant: Variant {
            depth: Depth::Turns(16, 8),
            ..plan.variant
        },
        ..plan
    }
}

/// The same, whose sums of a stage are added to sums of their own in f32.
pub(super) const fn promoted(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    stages: i64,
) -> MmaPlan {
    MmaPlan {
        form: Form::Promoted,
        ..of_warpgroups(data_type, tile, depth, stages)
    }
}

/// The same with the roles of A and B exchanged: warps side by side.
const fn swapped(data_type: DataType, tile: (i64, i64), depth: i64, stages: i64) -> MmaPlan {
    MmaPlan {
        form: Form::Swapped,
        warps: (1, tile.1 / 16),
        ..of_warpgroups(data_type, tile, depth, stages)
    }
}

/// The same of tf32, of blocks that take tile after tile.
const fn swapped_persistent(tile: (i64, i64), depth: i64, stages: i64) -> MmaPlan {
    MmaPlan {
        form: Form::Swapped,
        warps: (1, tile.1 / 16),
        ..persistent(DataType::Tf32, tile, depth, stages)
    }
}

/// The same, of two warpgroups that take turns, each with half of the rows.
pub(super) const fn ping_pong(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    stages: i64,
) -> MmaPlan {
    MmaPlan {
        form: Form::PingPong,
        warps: (tile.0 / 32, 1),
        ..persistent(data_type, tile, depth, stages)
    }
}

/// The same, whose tiles are dealt out one by one.
pub(super) const fn dealt(plan: MmaPlan) -> MmaPlan {
    MmaPlan {
        turns: Turns::Dealt,
        variant: Variant {
            depth: Depth::Dealt(TURNS_BLOCKS, [32, 57]),
            ..plan.variant
        },
        ..plan
    }
}

/// The same, of blocks that share operands: so many one below the other and side by side.
const fn clustered(plan: MmaPlan, cluster: (i64, i64)) -> MmaPlan {
    MmaPlan { cluster, ..plan }
}

/// The plans of warpgroups.
pub const WARPGROUP_PLANS: &[MmaPlan] = &[
    of_warpgroups(DataType::F16, (128, 256), 64, 4),
    of_warpgroups(DataType::F16, (128, 128), 64, 6),
    of_warpgroups(DataType::F16, (64, 128), 64, 4),
    of_warpgroups(DataType::F16, (64, 128), 128, 4),
    of_warpgroups(DataType::F16, (64, 64), 128, 6),
    of_warpgroups(DataType::Bf16, (128, 256), 64, 4),
    of_warpgroups(DataType::Bf16, (128, 128), 64, 6),
    of_warpgroups(DataType::Bf16, (64, 128), 64, 4),
    of_warpgroups(DataType::Bf16, (64, 128), 128, 4),
    of_warpgroups(DataType::Bf16, (64, 64), 128, 6),
    of_warpgroups(DataType::Tf32, (128, 256), 32, 4),
    of_warpgroups(DataType::Tf32, (128, 128), 32, 6),
    of_warpgroups(DataType::Tf32, (64, 128), 32, 4),
    of_warpgroups(DataType::Tf32, (64, 128), 64, 4),
    of_warpgroups(DataType::Tf32, (64, 64), 64, 6),
    of_warpgroups(DataType::S8, (128, 256), 128, 4),
    of_warpgroups(DataType::S8, (128, 128), 128, 6),
    of_warpgroups(DataType::S8, (64, 128), 128, 4),
    of_warpgroups(DataType::S8, (64, 128), 256, 4),
    of_warpgroups(DataType::S8, (64, 64), 256, 6),
    of_warpgroups(DataType::E4m3, (128, 256), 128, 4),
    of_warpgroups(DataType::E4m3, (128, 128), 128, 6),
    of_warpgroups(DataType::E4m3, (64, 128), 128, 4),
    of_warpgroups(DataType::E4m3, (64, 128), 256, 4),
    of_warpgroups(DataType::E4m3, (64, 64), 256, 6),
    of_warpgroups(DataType::E5m2, (128, 256), 128, 4),
    of_warpgroups(DataType::E5m2, (128, 128), 128, 6),
    of_warpgroups(DataType::E5m2, (64, 128), 128, 4),
    of_warpgroups(DataType::E5m2, (64, 128), 256, 4),
    of_warpgroups(DataType::E5m2, (64, 64), 256, 6),
    // Behind those that are as fast with fewer columns.
    of_warpgroups(DataType::F16, (128, 192), 64, 4),
    of_warpgroups(DataType::Bf16, (128, 192), 64, 4),
    of_warpgroups(DataType::Tf32, (128, 192), 32, 4),
    of_warpgroups(DataType::S8, (128, 192), 128, 4),
    of_warpgroups(DataType::E4m3, (128, 192), 128, 4),
    of_warpgroups(DataType::E5m2, (128, 192), 128, 4),
    persistent(DataType::F16, (128, 256), 64, 4),
    persistent(DataType::Bf16, (128, 256), 64, 4),
    persistent(DataType::Tf32, (128, 256), 32, 4),
    persistent(DataType::S8, (128, 256), 128, 4),
    persistent(DataType::E4m3, (128, 256), 128, 4),
    persistent(DataType::E5m2, (128, 256), 128, 4),
    promoted(DataType::E4m3, (128, 128), 128, 4),
    promoted(DataType::E5m2, (128, 128), 128, 4),
    swapped(DataType::Tf32, (256, 128), 32, 4),
    swapped(DataType::Tf32, (192, 128), 32, 4),
    swapped(DataType::Tf32, (64, 128), 64, 4),
    swapped_persistent((256, 128), 32, 4),
    clustered(of_warpgroups(DataType::F16, (128, 256), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::F16, (128, 192), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::F16, (128, 128), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::F16, (64, 128), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::F16, (64, 192), 64, 6), (8, 1)),
    clustered(persistent(DataType::F16, (128, 256), 64, 4), (2, 1)),
    clustered(persistent(DataType::F16, (128, 256), 64, 4), (1, 2)),
    clustered(of_warpgroups(DataType::Bf16, (128, 256), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::Bf16, (128, 192), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::Bf16, (128, 128), 64, 4), (2, 1)),
    clustered(of_warpgroups(DataType::Bf16, (64, 128), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::Bf16, (64, 192), 64, 6), (8, 1)),
    clustered(persistent(DataType::Bf16, (128, 256), 64, 4), (2, 1)),
    clustered(persistent(DataType::Bf16, (128, 256), 64, 4), (1, 2)),
    clustered(persistent(DataType::Tf32, (128, 256), 32, 4), (2, 1)),
    clustered(of_warpgroups(DataType::S8, (128, 256), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::S8, (128, 192), 128, 4), (2, 1)),
    clustered(persistent(DataType::S8, (128, 256), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::E4m3, (128, 256), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::E4m3, (128, 192), 128, 4), (2, 1)),
    clustered(persistent(DataType::E4m3, (128, 256), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::E5m2, (128, 256), 128, 4), (2, 1)),
    clustered(of_warpgroups(DataType::E5m2, (128, 192), 128, 4), (2, 1)),
    clustered(persistent(DataType::E5m2, (128, 256), 128, 4), (2, 1)),
    // With fewer stages, blocks that read the same rows and columns stay closer to each other and read less from the cache: for products at the power limit.
    clustered(persistent(DataType::F16, (128, 256), 64, 3), (2, 1)),
    clustered(persistent(DataType::Bf16, (128, 256), 64, 3), (2, 1)),
    swapped_persistent((256, 128), 32, 3),
    // Tiles between those, which fill waves that others leave half empty.
    persistent(DataType::F16, (128, 96), 64, 6),
    persistent(DataType::F16, (128, 144), 64, 5),
    persistent(DataType::F16, (128, 160), 64, 5),
    persistent(DataType::F16, (192, 128), 64, 5),
    persistent(DataType::F16, (192, 160), 64, 4),
    persistent(DataType::F16, (192, 192), 64, 4),
    clustered(persistent(DataType::F16, (192, 192), 64, 4), (2, 1)),
    persistent(DataType::Bf16, (128, 96), 64, 6),
    persistent(DataType::Bf16, (128, 144), 64, 5),
    persistent(DataType::Bf16, (128, 160), 64, 5),
    persistent(DataType::Bf16, (192, 128), 64, 5),
    persistent(DataType::Bf16, (192, 160), 64, 4),
    persistent(DataType::Bf16, (192, 192), 64, 4),
    clustered(persistent(DataType::Bf16, (192, 192), 64, 4), (2, 1)),
    // Those that store half of a tile while they multiply the other.
    ping_pong(DataType::F16, (256, 128), 64, 6),
    ping_pong(DataType::Bf16, (256, 128), 64, 6),
    ping_pong(DataType::Tf32, (256, 128), 32, 6),
    ping_pong(DataType::S8, (256, 128), 128, 6),
    ping_pong(DataType::E4m3, (256, 128), 128, 6),
    ping_pong(DataType::E5m2, (256, 128), 128, 6),
    // On all multiprocessors, where rectangles of blocks leave some out.
    dealt(ping_pong(DataType::S8, (256, 144), 128, 6)),
    dealt(ping_pong(DataType::E4m3, (256, 144), 128, 6)),
    dealt(ping_pong(DataType::E5m2, (256, 144), 128, 6)),
    // For few rows: the time is that of reading B.
    swapped(DataType::F16, (16, 64), 128, 10),
    swapped(DataType::F16, (32, 64), 128, 8),
    swapped(DataType::Bf16, (16, 64), 128, 10),
    swapped(DataType::Bf16, (32, 64), 128, 8),
    swapped(DataType::S8, (16, 64), 256, 10),
    swapped(DataType::S8, (32, 64), 256, 8),
    swapped(DataType::E4m3, (16, 64), 256, 10),
    swapped(DataType::E4m3, (32, 64), 256, 8),
    swapped(DataType::E5m2, (16, 64), 256, 10),
    swapped(DataType::E5m2, (32, 64), 256, 8),
];

/// The plans that are listed.
///
/// ```
/// use tilewright_kernels::gemm::{Plan, mma_sync::PLANS};
///
/// let named = PLANS.iter().find(|plan| plan.name() == "mma-f16-128x128x32");
/// assert_eq!(named.map(|plan| plan.stages), Some(4));
/// ```
pub const PLANS: &[MmaPlan] = &[
    plan(DataType::F16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::F16, (256, 128), 64, (4, 2), 3, 80),
    plan(DataType::F16, (128, 128), 64, (2, 2), 3, 80),
    plan(DataType::F16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::F16, (64, 128), 64, (2, 2), 4, 80),
    plan(DataType::F16, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::F16, (128, 128), 32, (2, 4), 2, 75),
    plan(DataType::F16, (64, 64), 32, (2, 2), 2, 75),
    plan(DataType::F16Acc16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::F16Acc16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::F16Acc16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::F16Acc16, (128, 128), 32, (2, 4), 2, 75),
    plan(DataType::F16Acc16, (64, 64), 32, (2, 2), 2, 75),
    plan(DataType::Bf16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::Bf16, (256, 128), 64, (4, 2), 3, 80),
    plan(DataType::Bf16, (128, 128), 64, (2, 2), 3, 80),
    plan(DataType::Bf16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 128), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::Tf32, (256, 128), 32, (4, 2), 4, 90),
    plan(DataType::Tf32, (128, 256), 32, (2, 4), 3, 80),
    plan(DataType::Tf32, (128, 128), 16, (2, 2), 4, 80),
    plan(DataType::Tf32, (64, 128), 32, (2, 4), 3, 80),
    plan(DataType::Tf32, (64, 64), 16, (2, 2), 4, 80),
    plan(DataType::F32, (128, 256), 8, (2, 4), 4, 80),
    plan(DataType::F32, (256, 128), 8, (4, 2), 4, 80),
    plan(DataType::F32, (128, 128), 16, (4, 2), 3, 80),
    plan(DataType::F32, (64, 64), 16, (2, 2), 3, 80),
    plan(DataType::F32, (16, 128), 32, (1, 4), 4, 80),
    plan(DataType::F32, (128, 32), 16, (4, 1), 4, 80),
    plan(DataType::S8, (128, 128), 64, (2, 4), 4, 80),
    plan(DataType::S8, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::S8, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::E4m3, (128, 64), 64, (4, 2), 3, 89),
    plan(DataType::E4m3, (64, 64), 64, (2, 2), 3, 89),
    plan(DataType::E4m3, (64, 64), 32, (2, 2), 4, 89),
    plan(DataType::E5m2, (128, 64), 64, (4, 2), 3, 89),
    plan(DataType::E5m2, (64, 64), 64, (2, 2), 3, 89),
    plan(DataType::E5m2, (64, 64), 32, (2, 2), 4, 89),
    plan(DataType::F64, (128, 128), 8, (4, 2), 4, 90),
    plan(DataType::F64, (64, 128), 16, (2, 4), 3, 90),
    plan(DataType::F64, (64, 64), 32, (2, 2), 3, 90),
    plan(DataType::F64, (64, 64), 16, (2, 2), 3, 80),
    plan(DataType::F64, (16, 64), 32, (1, 4), 4, 90),
    plan(DataType::F64, (16, 128), 16, (1, 4), 4, 90),
    plan(DataType::F64, (32, 64), 16, (2, 2), 3, 90),
];
