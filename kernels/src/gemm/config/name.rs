//! Names of configurations. A name says everything: what it leaves out is what the table has, or what fits.
//!
//! ```text
//! wgmma-bf16-152x128x64+swapab+persistent+cluster2x1+stages3
//! main loop, type, tile m×n×k, and what differs from one tile a block, A·B, no cluster, as many stages as fit
//!
//! mma-f16-128x128x32+sm75       sgemm-128x128x16+stages4       sgemm-maxas-128
//! ```
//!
//! | part | means |
//! |---|---|
//! | `+swapab` | Cᵀ = Bᵀ·Aᵀ |
//! | `+promoted` | two-level accumulation: sums of a stage are added to sums in f32 |
//! | `+pingpong` | persistent kernel with a ping-pong schedule: two consumer warpgroups have half of a tile each |
//! | `+persistent` | persistent kernel: the tile scheduler steps by a rectangle of blocks |
//! | `+linear` | persistent kernel with a linear tile scheduler |
//! | `+cluster2x1` | clusters of two blocks along the rows of C, which share tiles of B |
//! | `+sm75` | copies through registers, for architectures without `cp.async` |
//! | `+stages3` | three stages |
//!
//! ```
//! use tilewright_kernels::gemm::{Config, PlanError};
//!
//! let shallow: Config = "wgmma-f16-128x128x64+stages5".parse()?;
//! assert_eq!((shallow.stages, shallow.to_string().as_str()), (5, "wgmma-f16-128x128x64+stages5"));
//! let code = |name: &str| name.parse::<Config>().map_err(|e| e.code());
//! assert_eq!(code("sgemm-maxas-129"), Err("unknown_plan"));
//! assert_eq!(code("wgmma-f16-100x128x64"), Err("unsupported"));
//! # Ok::<(), PlanError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use layout_codegen::Arch;

use super::{Config, Mainloop, Order, STAGES, Scheduler, Wgmma};
use crate::gemm::{DataType, PlanError};

/// Bytes of shared memory for stages where a name does not say how many there are: the rest is for the epilogue and mbarriers.
const STAGES_BYTES: u32 = 192 << 10;

/// The most stages where a name does not say how many there are.
const ENOUGH_STAGES: u32 = 10;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.tile;
        match self.mainloop {
            Mainloop::Maxas(kernel) => return kernel.fmt(f),
            Mainloop::OuterProduct(kernel) => return kernel.fmt(f),
            Mainloop::Simt { .. } => write!(f, "sgemm-{m}x{n}x{k}")?,
            Mainloop::MmaSync { arch, .. } => {
                write!(f, "mma-{}-{m}x{n}x{k}", self.data_type)?;
                if arch < Arch(80) {
                    f.write_str("+sm75")?;
                }
            }
            Mainloop::Wgmma(kind) => {
                write!(f, "wgmma-{}-{m}x{n}x{k}", self.data_type)?;
                if self.swap_ab {
                    f.write_str("+swapab")?;
                }
                f.write_str(match kind {
                    Wgmma::Cooperative => "",
                    Wgmma::Promoted => "+promoted",
                    Wgmma::PingPong => "+pingpong",
                })?;
            }
        }
        f.write_str(match self.scheduler {
            Scheduler::Grid => "",
            // Ping-pong schedules are persistent.
            Scheduler::Persistent(Order::Rectangle) if self.is_ping_pong() => "",
            Scheduler::Persistent(Order::Rectangle) => "+persistent",
            Scheduler::Persistent(Order::Linear) => "+linear",
        })?;
        if self.cluster != [1, 1] {
            let [rows, columns] = self.cluster;
            write!(f, "+cluster{rows}x{columns}")?;
        }
        if self.stages != self.default_stages() {
            write!(f, "+stages{}", self.stages)?;
        }
        Ok(())
    }
}

impl FromStr for Config {
    type Err = PlanError;

    /// The configuration of a name; the parts behind the tile may come in any order.
    ///
    /// # Errors
    ///
    /// [`PlanError::UnknownPlan`] for what is no name, and those of [`Config::validate`].
    fn from_str(name: &str) -> Result<Self, PlanError> {
        let config = Self::read(name).ok_or_else(|| PlanError::UnknownPlan {
            asked: name.to_owned(),
            known: Self::table().map(|config| config.to_string()).collect(),
        })?;
        config.validate()?;
        Ok(config)
    }
}

impl Config {
    /// The stages that it has if its name does not say so: those of the table, or as many as fit.
    fn default_stages(&self) -> u32 {
        let mut alike = Self::table().filter(|listed| self.is_but_for_stages(listed));
        if let Some(listed) = alike.next() {
            return listed.stages;
        }
        let [m, n, k] = self.tile.map(u64::from);
        let rows = m / u64::from(self.parts_of_tile()) + n;
        let stage = rows.saturating_mul(k * u64::from(self.data_type.bytes()));
        let fitting = u64::from(STAGES_BYTES) / stage.max(1);
        fitting.clamp((*STAGES.start()).into(), ENOUGH_STAGES.into()) as u32
    }

    /// Whether this is `other` with another number of stages.
    pub(super) fn is_but_for_stages(&self, other: &Self) -> bool {
        let same = Self {
            stages: other.stages,
            ..*self
        };
        same == *other
    }

    /// The configuration that a name says, valid or not; none for what is no name.
    fn read(name: &str) -> Option<Self> {
        let mut parts = name.split('+');
        let first = parts.next()?;
        let mut config = Self::read_tile(first)?;
        let (mut stages, mut old) = (None, false);
        let mut seen = Vec::new();
        for part in parts {
            let digits = part.find(|c: char| c.is_ascii_digit());
            let (word, value) = part.split_at(digits.unwrap_or(part.len()));
            // What is said twice, or of one kind, has no meaning.
            let kind = match word {
                "promoted" => "pingpong",
                "linear" => "persistent",
                other => other,
            };
            if seen.contains(&kind) {
                return None;
            }
            seen.push(kind);
            match (word, value) {
                ("swapab", "") => config.swap_ab = true,
                ("promoted", "") => config.set_wgmma(Wgmma::Promoted)?,
                ("pingpong", "") => {
                    config.set_wgmma(Wgmma::PingPong)?;
                    if config.scheduler == Scheduler::Grid {
                        config.scheduler = Scheduler::Persistent(Order::Rectangle);
                    }
                }
                ("persistent", "") => config.scheduler = Scheduler::Persistent(Order::Rectangle),
                ("linear", "") => config.scheduler = Scheduler::Persistent(Order::Linear),
                ("cluster", shape) => {
                    let (rows, columns) = shape.split_once('x')?;
                    config.cluster = [number(rows)?, number(columns)?];
                }
                ("sm", "75") => old = true,
                ("stages", count) => stages = Some(number_or_most(count)?),
                _ => return None,
            }
        }
        config.take_from_table(old)?;
        config.stages = stages.unwrap_or_else(|| config.default_stages());
        Some(config)
    }

    /// What the first part of a name says: a kernel of the sources, or main loop, type and tile.
    fn read_tile(first: &str) -> Option<Self> {
        let mut sources = Self::table()
            .filter(|c| matches!(c.mainloop, Mainloop::Maxas(_) | Mainloop::OuterProduct(_)));
        if let Some(source) = sources.find(|c| c.to_string() == first) {
            return Some(source);
        }
        let (mainloop, rest) = first.split_once('-')?;
        let warps = [1, 1];
        let (data_type, mainloop, tile) = match mainloop {
            "sgemm" => (DataType::F32, Mainloop::Simt { warps }, rest),
            "mma" | "wgmma" => {
                let (of_type, tile) = rest.split_once('-')?;
                let mut types = DataType::ALL.into_iter();
                let data_type = types.find(|t| t.to_string() == of_type)?;
                let mainloop = if mainloop == "mma" {
                    let arch = Arch(80);
                    Mainloop::MmaSync { warps, arch }
                } else {
                    Mainloop::Wgmma(Wgmma::Cooperative)
                };
                (data_type, mainloop, tile)
            }
            _ => return None,
        };
        let sizes: Vec<u32> = tile.split('x').map(number).collect::<Option<_>>()?;
        Some(Self {
            data_type,
            mainloop,
            tile: sizes.try_into().ok()?,
            stages: 0,
            scheduler: Scheduler::Grid,
            cluster: [1, 1],
            swap_ab: false,
        })
    }

    fn set_wgmma(&mut self, kind: Wgmma) -> Option<()> {
        if let Mainloop::Wgmma(own) = &mut self.mainloop {
            *own = kind;
            return Some(());
        }
        None
    }

    /// Warps, and the first architecture, of main loops whose names don't say them: those that the table has for the tile. A tile that it does not have is left
    /// to [`validate`](Config::validate).
    fn take_from_table(&mut self, old: bool) -> Option<()> {
        match self.mainloop {
            Mainloop::Simt { .. } if !old => {}
            Mainloop::MmaSync { .. } => {}
            Mainloop::Wgmma(_) | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) if !old => {
                return Some(());
            }
            _ => return None,
        }
        let same = |c: &Self| {
            let kind = (
                c.is_mma_sync(),
                c.data_type,
                c.tile,
                c.min_arch() < Arch(80),
            );
            !c.is_wgmma() && kind == (self.is_mma_sync(), self.data_type, self.tile, old)
        };
        let of_tile = Self::table()
            .filter(|c| matches!(c.mainloop, Mainloop::Simt { .. } | Mainloop::MmaSync { .. }));
        if let Some(listed) = of_tile.into_iter().find(same) {
            self.mainloop = listed.mainloop;
        } else if let (Mainloop::MmaSync { arch, .. }, true) = (&mut self.mainloop, old) {
            *arch = Arch(75);
        }
        Some(())
    }
}

/// A number as names have it: digits that begin with no zero.
fn number(text: &str) -> Option<u32> {
    let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// A number of stages; one that is too long is too large as well.
fn number_or_most(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}
