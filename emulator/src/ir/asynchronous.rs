//! Operations of clusters and of the asynchronous proxy: mbarriers, bulk and tensor copies, `wgmma`.

use super::{Address, AtomOp, MmaType, Reg, Row, Sparse, Sums};
use crate::ast::Space;

/// What an `mbarrier` instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MbarrierKind {
    Init,
    Inval,
    ExpectTx,
    CompleteTx,
    Arrive {
        /// One fewer arrival in the phases that follow.
        drop: bool,
        /// The operand is a count of bytes to expect, and one arrives.
        expect_tx: bool,
        /// Must not complete the phase.
        no_complete: bool,
    },
    /// `test_wait` and `try_wait`, of a state or of a parity.
    Wait {
        parity: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    CopyArrive {
        no_increment: bool,
    },
}

/// An `mbarrier` instruction on an object in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mbarrier {
    pub(crate) kind: MbarrierKind,
    pub(crate) space: Space,
    pub(crate) address: Address,
    /// State, or the predicate of a wait; row [`super::NONE`] for `_`.
    pub(crate) d: Reg,
    /// Count, bytes, parity or state; row [`super::NONE`] if absent.
    pub(crate) a: Reg,
    /// Orders nothing without a fence; with one, for threads of this scope.
    pub(crate) relaxed: Option<Scope>,
}

/// Threads that synchronise. Beyond a cluster the emulator records no order, so that wider scopes are this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// `.cta`.
    Block,
    Cluster,
}

/// `fence` and `membar` between threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) scope: Scope,
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
}

/// The side of a bulk copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BulkSide {
    Global,
    /// `.shared::cta`.
    Block,
    /// `.shared::cluster`.
    Cluster,
}

/// A reduction instead of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub(crate) op: AtomOp,
    /// Bytes of an element.
    pub(crate) bytes: u8,
}

/// `cp.async.bulk` and `cp.reduce.async.bulk` of bytes in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bulk {
    pub(crate) to: BulkSide,
    pub(crate) from: BulkSide,
    pub(crate) dst: Address,
    pub(crate) src: Address,
    /// Row of the size in bytes.
    pub(crate) size: Row,
    /// The mbarrier, unless the destination is global memory.
    pub(crate) mbarrier: Option<Address>,
    /// Row of the mask of destination blocks, or [`super::NONE`].
    pub(crate) mask: Row,
    pub(crate) reduction: Option<Reduction>,
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
#[allow(clippy::struct_excessive_bools)] // the instruction's own modifiers
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TensorCopy {
    /// From shared to global memory.
    pub(crate) store: bool,
    /// To `.shared::cluster` rather than `.shared::cta`.
    pub(crate) cluster: bool,
    /// Only fetches into the cache.
    pub(crate) prefetch: bool,
    pub(crate) im2col: bool,
    /// Address of the tensor map, generic.
    pub(crate) map: Address,
    /// Rows of the coordinates, innermost first.
    pub(crate) coords: Vec<Row>,
    /// Rows of the offsets of im2col.
    pub(crate) offsets: Vec<Row>,
    /// The side in shared memory.
    pub(crate) shared: Address,
    pub(crate) mbarrier: Option<Address>,
    pub(crate) mask: Row,
    /// The operation of a reduction; the tensor map has the type.
    pub(crate) reduction: Option<AtomOp>,
}

/// `tensormap.replace`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TensormapReplace {
    pub(crate) field: MapField,
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) value: Reg,
}

/// A field of a tensor map, with its dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapField {
    Address,
    Rank,
    Box(u8),
    Size(u8),
    Stride(u8),
    Step(u8),
    Element,
    Interleave,
    Swizzle,
    Atomicity,
    Fill,
}

/// `st.async` and `red.async`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StoreAsync {
    pub(crate) address: Address,
    pub(crate) mbarrier: Address,
    pub(crate) space: Space,
    pub(crate) bytes: u8,
    pub(crate) count: u8,
    pub(crate) regs: [Reg; 4],
    pub(crate) reduction: Option<Reduction>,
}

/// An operand of `wgmma.mma_async`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Multiplicand {
    /// Row of the descriptor; whether the outer dimension is contiguous; whether elements are negated.
    Shared {
        descriptor: Row,
        transposed: bool,
        negated: bool,
    },
    /// Rows of the fragment, of A only.
    Registers { rows: Vec<Row>, negated: bool },
}

/// `wgmma.mma_async`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wgmma {
    /// Columns of D.
    pub(crate) n: u16,
    /// Depth: 32 bytes of elements of A, 64 of B if A is sparse.
    pub(crate) k: u16,
    pub(crate) a_ty: MmaType,
    pub(crate) b_ty: MmaType,
    pub(crate) d_ty: MmaType,
    pub(crate) satfinite: bool,
    /// How floating-point products are added.
    pub(crate) sums: Sums,
    /// Row of the accumulator, 32 bits each.
    pub(crate) d: Vec<Row>,
    pub(crate) a: Multiplicand,
    pub(crate) b: Multiplicand,
    /// Where the elements of a sparse A belong.
    pub(crate) sparse: Option<Sparse>,
    /// Predicate row of `scale-d` and its negation.
    pub(crate) scale: (Row, bool),
}

impl Wgmma {
    /// Columns of A as it is stored: half the depth if A is sparse.
    pub(crate) fn a_depth(&self) -> u32 {
        u32::from(self.k) / if self.sparse.is_some() { 2 } else { 1 }
    }
}
