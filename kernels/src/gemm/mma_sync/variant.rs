//! What a plan's kernel is made for beside its tile: the widths of its copies and stores, the type of C, the epilogue, and what the
//! third axis of the grid counts.
//!
//! A listed plan is made for operands aligned to 16 bytes. [`Plan::adapt`](crate::gemm::Plan::adapt) turns it into the variant for one
//! problem: the widest copies that the rows, the batch's strides and the addresses allow,
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

use crate::gemm::{Activation, Bias, DataType, Epilogue};

/// What the third axis of the grid counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Depth {
    /// Groups of rows of tiles.
    Groups,
    /// Products of a batch.
    Batch,
    /// Parts of the sums, with their largest number.
    Split(u32),
    /// Nothing: blocks take tile after tile, and so many of them have tiles one below the other and side by side.
    Turns(u32, u32),
    /// Nothing: so many blocks take tile after tile, one by one in the order of all tiles, of which there are so many below each other and side by side.
    Dealt(u32, [u32; 2]),
}

/// What a kernel is made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Variant {
    /// How many products a block computes of its rows of A: 1, or 2 in a dual product, A·B and A·B2.
    pub products: i64,
    /// Bytes of one copy of A and of B from global memory.
    pub copies: [i64; 2],
    /// Whether copies of 16 bytes leave their lines in the first-level cache.
    pub cached: [bool; 2],
    /// Bytes of one store of C.
    pub store: i64,
    /// The element type of C.
    pub output: Element,
    /// Bias and activation.
    pub epilogue: Epilogue,
    /// The third axis of the grid.
    pub depth: Depth,
    /// For A and B: bytes of one load by the kernel that first copies it to aligned rows; none if it is taken as it lies.
    pub pack: [Option<i64>; 2],
}

impl Variant {
    /// What listed plans are made for.
    pub const fn aligned(data_type: DataType) -> Self {
        Self {
            products: 1,
            copies: [16; 2],
            cached: [false; 2],
            store: 16,
            output: data_type.result(),
            epilogue: Epilogue {
                bias: Bias::None,
                activation: Activation::Identity,
            },
            depth: Depth::Groups,
            pack: [None; 2],
        }
    }

    /// What the kernel's entry is called after the plan and the transposes: nothing for a listed plan.
    pub(super) fn suffix(&self, data_type: DataType) -> String {
        let own = Self::aligned(data_type);
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
        match self.depth {
            Depth::Groups => {}
            Depth::Batch => parts.push("batch".to_owned()),
            Depth::Split(_) => parts.push("split".to_owned()),
            Depth::Turns(rows, columns) => parts.push(format!("by{rows}x{columns}")),
            Depth::Dealt(blocks, [down, across]) => {
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
        match self.depth {
            Depth::Groups => Ok(()),
            Depth::Batch => f.write_str(", a batch"),
            Depth::Split(parts) => write!(f, ", at most {parts} splits of k"),
            Depth::Turns(rows, columns) => {
                write!(f, ", a persistent grid of {rows}x{columns} blocks")
            }
            Depth::Dealt(blocks, [down, across]) => write!(
                f,
                ", a persistent grid of {blocks} blocks, a linear tile scheduler over {down}x{across} tiles"
            ),
        }
    }
}
