//! What a kernel is made for beside its configuration: the widths of its copies and stores, the type of C, the epilogue, and which tiles a block computes.
//!
//! [`Config::kernel`] is made for operands aligned to 16 bytes. [`Config::specialize`] finds the variant for one problem: the widest copies that the rows, the
//! batch's strides and the addresses allow,
//!
//! ```text
//! 16, 8, 4 bytes   cp.async
//! 2, 1 bytes       ld.global into registers, put together to words, st.shared
//! ```
//!
//! and all of them through registers where there is no `cp.async` (before `sm_80`).
//!
//! Copies of 16 bytes pass by the first-level cache if every row begins a sector of 32 bytes. Otherwise a row of a tile ends within a
//! sector that the next tile, or the next eight lanes, need as well, and the cache saves fetching it twice.

use std::fmt;

use layout_codegen::ir::Element;

use super::scheduler::{Order, PERSISTENT_BLOCKS, Scheduler, TileSchedule};
use super::{Activation, Bias, Config, Epilogue, Mainloop};

/// What a kernel is made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Variant {
    /// How many products a block computes of its rows of A: 1, or 2 in a dual product, A·B and A·B2.
    pub(crate) products: i64,
    /// Bytes of one copy of A and of B from global memory.
    pub(crate) copies: [i64; 2],
    /// Whether copies of 16 bytes leave their lines in the first-level cache.
    pub(crate) cached: [bool; 2],
    /// Bytes of one store of C.
    pub(crate) store: i64,
    /// The element type of C.
    pub(crate) output: Element,
    /// Bias and activation.
    pub(crate) epilogue: Epilogue,
    /// Which tiles a block computes.
    pub(crate) tiles: TileSchedule,
    /// For A and B: bytes of one load by the kernel that first copies it to aligned rows; none if it is taken as it lies.
    pub(crate) pack: [Option<i64>; 2],
}

impl Variant {
    /// What a configuration is made for where its problem is not known: operands aligned to 16 bytes, and some number of tiles.
    pub(super) fn aligned(config: &Config) -> Self {
        let tiles = match (config.scheduler, config.mainloop) {
            (Scheduler::Persistent(Order::Rectangle), _) => TileSchedule::Rectangle([16, 8]),
            (Scheduler::Persistent(Order::Linear), _) => TileSchedule::Linear {
                blocks: PERSISTENT_BLOCKS,
                tiles: [32, 57],
            },
            (Scheduler::Grid, Mainloop::Maxas(_)) => TileSchedule::Columns,
            (Scheduler::Grid, _) => TileSchedule::Groups,
        };
        Self {
            products: 1,
            copies: [16; 2],
            cached: [false; 2],
            store: 16,
            output: config.data_type.result(),
            epilogue: Epilogue {
                bias: Bias::None,
                activation: Activation::Identity,
            },
            tiles,
            pack: [None; 2],
        }
    }

    /// What the kernel's entry is called after the configuration and the transposes: nothing where it is made for aligned operands.
    pub(super) fn suffix(&self, config: &Config) -> String {
        let own = Self::aligned(config);
        let mut parts = Vec::new();
        if self.products != own.products {
            parts.push("dual".to_owned());
        }
        for (letter, i) in [("a", 0), ("b", 1)] {
            if self.copies[i] != own.copies[i] {
                parts.push(format!("{letter}{}", self.copies[i]));
            }
            if self.cached[i] {
                parts.push(format!("{letter}cached"));
            }
            if let Some(bytes) = self.pack[i] {
                parts.push(format!("{letter}pack{bytes}"));
            }
        }
        if self.store != own.store {
            parts.push(format!("c{}", self.store));
        }
        if self.output != own.output {
            parts.push(self.output.to_string());
        }
        if self.epilogue.bias != Bias::None {
            parts.push(format!("bias_{}", self.epilogue.bias));
        }
        if self.epilogue.activation != Activation::Identity {
            parts.push(self.epilogue.activation.to_string());
        }
        match self.tiles {
            TileSchedule::Groups | TileSchedule::Columns => {}
            TileSchedule::Batch => parts.push("batch".to_owned()),
            TileSchedule::SplitK(_) => parts.push("split".to_owned()),
            TileSchedule::Rectangle([rows, columns]) => parts.push(format!("by{rows}x{columns}")),
            TileSchedule::Linear { blocks, tiles } => {
                let [down, across] = tiles;
                parts.push(format!("{down}x{across}by{blocks}"));
            }
        }
        // A leading empty entry: each part follows an underscore.
        parts.insert(0, String::new());
        parts.join("_")
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |i: usize| if self.cached[i] { ", cached" } else { "" };
        let [a, b] = self.copies;
        write!(
            f,
            "copies of {a} (A{}) and {b} (B{}) bytes, C in {} by {} bytes",
            how(0),
            how(1),
            self.output,
            self.store
        )?;
        if self.products == 2 {
            f.write_str(", two products")?;
        }
        if self.epilogue.bias != Bias::None {
            write!(f, ", bias by {}", self.epilogue.bias)?;
        }
        if self.epilogue.activation != Activation::Identity {
            write!(f, ", {}", self.epilogue.activation)?;
        }
        match self.tiles {
            TileSchedule::Groups | TileSchedule::Columns => Ok(()),
            TileSchedule::Batch => f.write_str(", a batch"),
            TileSchedule::SplitK(parts) => write!(f, ", at most {parts} splits of k"),
            TileSchedule::Rectangle([rows, columns]) => {
                write!(f, ", a persistent grid of {rows}x{columns} blocks")
            }
            TileSchedule::Linear { blocks, tiles } => {
                let [down, across] = tiles;
                write!(
                    f,
                    ", a persistent grid of {blocks} blocks, a linear tile scheduler over {down}x{across} tiles"
                )
            }
        }
    }
}
