//! Which configurations exist, and why others don't. What a problem asks for is looked at where a configuration is specialised.

use layout_codegen::Arch;

use super::{Config, Mainloop, Order, Scheduler, Wgmma};
use crate::gemm::{DataType, PlanError};

/// Stages, at least and at most: one is filled while another is multiplied, and no tile leaves room for more.
pub(crate) const STAGES: std::ops::RangeInclusive<u32> = 2..=32;

/// The largest size of a tile that is looked at: products of larger ones have no 32 bits.
const LARGEST: u32 = 1 << 12;

/// The most columns of `wgmma`.
const MOST_COLUMNS: u32 = 256;

/// The most warpgroups that multiply: registers of a thread suffice for no more.
const WARPGROUPS: u32 = 3;

/// Blocks of a cluster, at most: what every launch may have.
const CLUSTER: u32 = 8;

impl Config {
    /// Whether there is such a kernel.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    ///
    /// let config: Config = "wgmma-f16-128x256x64+persistent".parse()?;
    /// let square = Config { cluster: [2, 2], ..config };
    /// let error = square.validate().expect_err("no such kernel").to_string();
    /// assert!(error.contains("take 2x1 or 1x2"), "{error}");
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Unsupported`] with what would work.
    pub fn validate(&self) -> Result<(), PlanError> {
        match self.mainloop {
            Mainloop::Maxas(kernel) => self.is_exactly(&kernel.into()),
            Mainloop::OuterProduct(kernel) => self.is_exactly(&kernel.into()),
            Mainloop::Simt { .. } | Mainloop::MmaSync { .. } => {
                self.has_stages()?;
                self.is_of_warps()
            }
            Mainloop::Wgmma(kind) => {
                self.has_stages()?;
                self.is_of_wgmma(kind)?;
                self.has_shape(kind)?;
                self.has_scheduler(kind)?;
                self.has_cluster()
            }
        }
    }

    fn refuse<T>(&self, what: String, instead: &str) -> Result<T, PlanError> {
        Err(PlanError::Unsupported {
            plan: self.to_string(),
            what,
            instead: instead.to_owned(),
        })
    }

    fn is_exactly(&self, only: &Self) -> Result<(), PlanError> {
        if self == only {
            return Ok(());
        }
        self.refuse(
            "a change of a published kernel".to_owned(),
            "take it as `tilewright plans` lists it",
        )
    }

    fn has_stages(&self) -> Result<(), PlanError> {
        if STAGES.contains(&self.stages) {
            return Ok(());
        }
        let instead = format!("take {} to {}", STAGES.start(), STAGES.end());
        self.refuse(format!("{} stages", self.stages), &instead)
    }

    /// Tiles of warps are those of the table, with any number of stages.
    fn is_of_warps(&self) -> Result<(), PlanError> {
        if Self::table().any(|listed| self.is_but_for_stages(&listed)) {
            return Ok(());
        }
        if self.cluster != [1, 1] {
            let [rows, columns] = self.cluster;
            let instead = format!(
                "wgmma kernels have clusters of 2, 4 or {CLUSTER} blocks along one side of C; take 2x1 or 1x2 of them"
            );
            return self.refuse(format!("a cluster of {rows}x{columns} blocks"), &instead);
        }
        if self.scheduler != Scheduler::Grid || self.swap_ab {
            return self.refuse(
                "a persistent kernel or swapped operands".to_owned(),
                "take a wgmma kernel, or leave it out",
            );
        }
        let alike = |c: &Self| c.data_type == self.data_type && !c.is_wgmma();
        let tiles = Self::table().filter(alike).map(|c| c.to_string());
        let instead = format!("take {}", tiles.collect::<Vec<_>>().join(", "));
        self.refuse("such a tile or such warps".to_owned(), &instead)
    }

    /// Its type, and what is done with its sums, is something that `wgmma` kernels have.
    fn is_of_wgmma(&self, kind: Wgmma) -> Result<(), PlanError> {
        let of_type = self.data_type;
        let types = [
            DataType::F16,
            DataType::Bf16,
            DataType::Tf32,
            DataType::S8,
            DataType::E4m3,
            DataType::E5m2,
        ];
        if !types.contains(&of_type) {
            return self.refuse(
                format!("{of_type} by wgmma"),
                "take f16, bf16, tf32, s8, e4m3 or e5m2",
            );
        }
        if kind == Wgmma::Promoted && !matches!(of_type, DataType::E4m3 | DataType::E5m2) {
            return self.refuse(format!("promoted sums of {of_type}"), "take e4m3 or e5m2");
        }
        if self.swap_ab && kind != Wgmma::Cooperative {
            return self.refuse(
                "swapped operands in a ping-pong schedule or with promoted sums".to_owned(),
                "leave one of them out",
            );
        }
        Ok(())
    }

    /// Its tile is one of the instruction.
    fn has_shape(&self, kind: Wgmma) -> Result<(), PlanError> {
        let [m, n, k] = self.tile;
        if self.tile.iter().any(|&size| size > LARGEST) {
            return self.refuse(
                format!("a tile of {m}x{n}x{k}"),
                "take at most 256 rows or columns, and a k of 128 or 256 bytes",
            );
        }
        let bytes = k * self.data_type.bytes();
        if ![128, 256].contains(&bytes) {
            return self.refuse(
                format!("a stage of {bytes} bytes along k"),
                "take a k of 128 or 256 bytes",
            );
        }
        // Rows of the instruction are m, or n where A and B are swapped; the other size is its columns.
        let (rows, columns) = if self.swap_ab { (n, m) } else { (m, n) };
        let warpgroups = rows / 64;
        let whole = rows.is_multiple_of(64) && warpgroups > 0;
        let fits = match kind {
            Wgmma::PingPong => [128, 256].contains(&rows),
            Wgmma::Cooperative | Wgmma::Promoted => warpgroups <= WARPGROUPS,
        };
        if !whole || !fits {
            return self.refuse(
                format!("{rows} rows of its instructions"),
                "take 64, 128 or 192; of a ping-pong schedule 128 or 256",
            );
        }
        // The instruction takes multiples of 8, of s8 from 32 on of 16; the epilogue of A·B takes 16 columns at a time.
        let by_eights = self.swap_ab && self.data_type != DataType::S8;
        let step = if by_eights { 8 } else { 16 };
        if !columns.is_multiple_of(step) || !(16..=MOST_COLUMNS).contains(&columns) {
            return self.refuse(
                format!("{columns} columns of its instructions"),
                "take a multiple of 16 from 16 to 256; of 8 where operands are swapped and not s8",
            );
        }
        let at_once = (self.warp_count() / 4 / self.parts_of_tile()).max(1);
        let sums = rows * columns / self.parts_of_tile() / (128 * at_once);
        let most = match kind {
            Wgmma::PingPong => 144,
            _ if warpgroups > 2 => 96,
            _ => 128,
        };
        if sums > most {
            return self.refuse(
                format!("{sums} sums a thread"),
                "take a smaller tile: 128 sums a thread, 96 of three warpgroups, 144 of a ping-pong schedule",
            );
        }
        Ok(())
    }

    fn has_scheduler(&self, kind: Wgmma) -> Result<(), PlanError> {
        match (kind, self.scheduler) {
            (Wgmma::PingPong, Scheduler::Grid) => self.refuse(
                "a ping-pong schedule of blocks with one tile each".to_owned(),
                "take a persistent scheduler",
            ),
            (Wgmma::Promoted, Scheduler::Persistent(_)) => self.refuse(
                "promoted sums in a persistent kernel".to_owned(),
                "leave one of them out",
            ),
            (_, Scheduler::Persistent(Order::Linear)) if self.cluster != [1, 1] => self.refuse(
                "a linear tile scheduler with clusters".to_owned(),
                "take blocks without clusters, or rectangles of them",
            ),
            _ => Ok(()),
        }
    }

    fn has_cluster(&self) -> Result<(), PlanError> {
        let [rows, columns] = self.cluster;
        let blocks = rows.max(columns);
        if rows.min(columns) != 1 || blocks > CLUSTER || !blocks.is_power_of_two() {
            let instead = format!(
                "wgmma kernels have clusters of 2, 4 or {CLUSTER} blocks along one side of C; take 2x1 or 1x2"
            );
            return self.refuse(format!("a cluster of {rows}x{columns} blocks"), &instead);
        }
        if blocks > 1 && self.is_through_registers() {
            return self.refuse(
                "a cluster where an operand goes through registers".to_owned(),
                "take it without clusters, or without swapped operands",
            );
        }
        Ok(())
    }

    /// The same tile with any number of stages, one tile a block and without clusters or anything that needs a persistent kernel; the first of its type where
    /// the table does not have that.
    pub(crate) fn plain(&self) -> Self {
        let mainloop = match self.mainloop {
            Mainloop::Wgmma(_) => Mainloop::Wgmma(Wgmma::Cooperative),
            other => other,
        };
        let same = Self {
            mainloop,
            scheduler: Scheduler::Grid,
            cluster: [1, 1],
            ..*self
        };
        let is_plain = |c: &Self| {
            c.data_type == self.data_type
                && c.min_arch() >= Arch(80)
                && c.scheduler == Scheduler::Grid
                && c.cluster == [1, 1]
        };
        let found = Self::table().find(|c| is_plain(c) && same.is_but_for_stages(c));
        let found = found.or_else(|| Self::table().find(is_plain));
        found.unwrap_or(same)
    }
}
