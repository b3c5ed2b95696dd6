//! The table of configurations that [`select`](crate::select) chooses from: shapes × types.
//!
//! A tile that fits is a compromise: a larger one reads less of A and B for each product, a smaller one leaves fewer multiprocessors idle, needs
//! fewer registers and runs on architectures with less shared memory. Of two rows that the model finds as fast, the first is taken.
//!
//! A new tile is a row here; any other valid configuration can be named all the same ([`name`](super::name)).

use layout_codegen::Arch;

use super::{Config, Mainloop, Order, Scheduler, Wgmma};
use crate::gemm::DataType;
use crate::sources::maxas::Maxas;
use crate::sources::outer::OuterProduct;

use DataType::{Bf16, E4m3, E5m2, F16, F16Acc16, F32, F64, S8, Tf32};

/// A shape and the types that have it.
#[derive(Clone, Copy)]
struct Row {
    types: &'static [DataType],
    mainloop: Mainloop,
    /// Rows and columns of C.
    tile: [u32; 2],
    /// Bytes along k of a stage.
    k_bytes: u32,
    stages: u32,
    scheduler: Scheduler,
    cluster: [u32; 2],
    swap_ab: bool,
}

const WGMMA: &[DataType] = &[F16, Bf16, Tf32, S8, E4m3, E5m2];
const BITS_16: &[DataType] = &[F16, Bf16];
const BITS_8: &[DataType] = &[S8, E4m3, E5m2];
const BITS_16_AND_8: &[DataType] = &[F16, Bf16, S8, E4m3, E5m2];
const FLOATS_8: &[DataType] = &[E4m3, E5m2];
const BY_MMA: &[DataType] = &[F16, F16Acc16, Bf16];

const fn wgmma(types: &'static [DataType], tile: [u32; 2], k_bytes: u32, stages: u32) -> Row {
    Row {
        types,
        mainloop: Mainloop::Wgmma(Wgmma::Cooperative),
        tile,
        k_bytes,
        stages,
        scheduler: Scheduler::Grid,
        cluster: [1, 1],
        swap_ab: false,
    }
}

const fn persistent(types: &'static [DataType], tile: [u32; 2], k_bytes: u32, stages: u32) -> Row {
    Row {
        scheduler: Scheduler::Persistent(Order::Rectangle),
        ..wgmma(types, tile, k_bytes, stages)
    }
}

const fn swap_ab(row: Row) -> Row {
    Row {
        swap_ab: true,
        ..row
    }
}

const fn cluster(cluster: [u32; 2], row: Row) -> Row {
    Row { cluster, ..row }
}

const fn mma(
    types: &'static [DataType],
    tile: [u32; 2],
    k_bytes: u32,
    warps: [u32; 2],
    stages: u32,
    arch: u32,
) -> Row {
    let arch = Arch(arch);
    Row {
        mainloop: Mainloop::MmaSync { warps, arch },
        ..wgmma(types, tile, k_bytes, stages)
    }
}

const fn simt(tile: [u32; 2], k_bytes: u32, warps: [u32; 2], stages: u32) -> Row {
    Row {
        mainloop: Mainloop::Simt { warps },
        ..wgmma(&[F32], tile, k_bytes, stages)
    }
}

const ROWS: &[Row] = &[
    wgmma(WGMMA, [128, 256], 128, 4),
    wgmma(WGMMA, [128, 128], 128, 6),
    wgmma(WGMMA, [64, 128], 128, 4),
    wgmma(WGMMA, [64, 128], 256, 4),
    wgmma(WGMMA, [64, 64], 256, 6),
    // Behind those that are as fast with fewer columns.
    wgmma(WGMMA, [128, 192], 128, 4),
    persistent(WGMMA, [128, 256], 128, 4),
    Row {
        mainloop: Mainloop::Wgmma(Wgmma::Promoted),
        ..wgmma(FLOATS_8, [128, 128], 128, 4)
    },
    swap_ab(wgmma(&[Tf32], [256, 128], 128, 4)),
    swap_ab(wgmma(&[Tf32], [192, 128], 128, 4)),
    swap_ab(wgmma(&[Tf32], [64, 128], 256, 4)),
    swap_ab(persistent(&[Tf32], [256, 128], 128, 4)),
    cluster([2, 1], wgmma(BITS_16_AND_8, [128, 256], 128, 4)),
    cluster([2, 1], wgmma(BITS_16_AND_8, [128, 192], 128, 4)),
    cluster([2, 1], wgmma(BITS_16, [128, 128], 128, 4)),
    cluster([2, 1], wgmma(BITS_16, [64, 128], 256, 4)),
    cluster([8, 1], wgmma(BITS_16, [64, 192], 128, 6)),
    cluster([2, 1], persistent(WGMMA, [128, 256], 128, 4)),
    cluster([1, 2], persistent(BITS_16, [128, 256], 128, 4)),
    // With fewer stages, blocks that read the same rows and columns stay closer to each other and read less from the cache: for products at the power limit.
    cluster([2, 1], persistent(BITS_16, [128, 256], 128, 3)),
    swap_ab(persistent(&[Tf32], [256, 128], 128, 3)),
    // Tiles between those, which fill waves that others leave half empty.
    persistent(BITS_16, [128, 96], 128, 6),
    persistent(BITS_16, [128, 144], 128, 5),
    persistent(BITS_16, [128, 160], 128, 5),
    persistent(BITS_16, [192, 128], 128, 5),
    persistent(BITS_16, [192, 160], 128, 4),
    persistent(BITS_16, [192, 192], 128, 4),
    cluster([2, 1], persistent(BITS_16, [192, 192], 128, 4)),
    // Half of a tile is stored while the other is multiplied.
    Row {
        mainloop: Mainloop::Wgmma(Wgmma::PingPong),
        ..persistent(WGMMA, [256, 128], 128, 6)
    },
    // On all multiprocessors, where rectangles of blocks leave some out.
    Row {
        mainloop: Mainloop::Wgmma(Wgmma::PingPong),
        scheduler: Scheduler::Persistent(Order::Linear),
        ..persistent(BITS_8, [256, 144], 128, 6)
    },
    // For few rows: the time is that of reading B.
    swap_ab(wgmma(BITS_16_AND_8, [16, 64], 256, 10)),
    swap_ab(wgmma(BITS_16_AND_8, [32, 64], 256, 8)),
    mma(BY_MMA, [128, 256], 128, [2, 4], 3, 80),
    mma(BITS_16, [256, 128], 128, [4, 2], 3, 80),
    mma(BITS_16, [128, 128], 128, [2, 2], 3, 80),
    mma(BY_MMA, [128, 128], 64, [2, 2], 4, 80),
    mma(BITS_16, [64, 128], 128, [2, 2], 4, 80),
    mma(BITS_16, [128, 64], 128, [2, 2], 4, 80),
    mma(BITS_16, [64, 64], 128, [2, 2], 4, 80),
    mma(BY_MMA, [64, 64], 64, [2, 2], 4, 80),
    mma(&[F16, F16Acc16], [128, 128], 64, [2, 4], 2, 75),
    mma(&[F16, F16Acc16], [64, 64], 64, [2, 2], 2, 75),
    mma(&[Tf32], [256, 128], 128, [4, 2], 4, 90),
    mma(&[Tf32], [128, 256], 128, [2, 4], 3, 80),
    mma(&[Tf32], [128, 128], 64, [2, 2], 4, 80),
    mma(&[Tf32], [64, 128], 128, [2, 4], 3, 80),
    mma(&[Tf32], [64, 64], 64, [2, 2], 4, 80),
    simt([128, 256], 32, [2, 4], 4),
    simt([256, 128], 32, [4, 2], 4),
    simt([128, 128], 64, [4, 2], 3),
    simt([64, 64], 64, [2, 2], 3),
    simt([16, 128], 128, [1, 4], 4),
    simt([128, 32], 64, [4, 1], 4),
    mma(&[S8], [128, 128], 64, [2, 4], 4, 80),
    mma(&[S8], [128, 64], 64, [2, 2], 4, 80),
    mma(&[S8], [64, 64], 64, [2, 2], 4, 80),
    mma(FLOATS_8, [128, 64], 64, [4, 2], 3, 89),
    mma(FLOATS_8, [64, 64], 64, [2, 2], 3, 89),
    mma(FLOATS_8, [64, 64], 32, [2, 2], 4, 89),
    mma(&[F64], [128, 128], 64, [4, 2], 4, 90),
    mma(&[F64], [64, 128], 128, [2, 4], 3, 90),
    mma(&[F64], [64, 64], 256, [2, 2], 3, 90),
    mma(&[F64], [64, 64], 128, [2, 2], 3, 80),
    mma(&[F64], [16, 64], 256, [1, 4], 4, 90),
    mma(&[F64], [16, 128], 128, [1, 4], 4, 90),
    mma(&[F64], [32, 64], 128, [2, 2], 3, 90),
];

impl Row {
    fn config(self, data_type: DataType) -> Config {
        let [m, n] = self.tile;
        Config {
            data_type,
            mainloop: self.mainloop,
            tile: [m, n, self.k_bytes / data_type.bytes()],
            stages: self.stages,
            scheduler: self.scheduler,
            cluster: self.cluster,
            swap_ab: self.swap_ab,
        }
    }
}

impl Config {
    /// The configurations that are chosen from, the kernels of the sources first.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    ///
    /// let listed = |name: &str| Config::table().any(|config| config.to_string() == name);
    /// assert!(listed("sgemm-maxas-128") && listed("mma-f16-128x128x32"));
    /// ```
    pub fn table() -> impl Iterator<Item = Self> {
        let maxas = Maxas::ALL.into_iter().map(Self::from);
        let outer = OuterProduct::ALL.into_iter().map(Self::from);
        let of_row = |row: &Row| {
            row.types.iter().map({
                let row = *row;
                move |&data_type| row.config(data_type)
            })
        };
        maxas.chain(outer).chain(ROWS.iter().flat_map(of_row))
    }
}
