//! The decoded program: what the interpreter runs.
//!
//! Every operand is a *row*: an index into one of the warp's three register files. Immediates, symbol addresses and special
//! registers are rows as well, filled once when a warp starts, so that no instruction ever asks what kind of operand it has.
//! Example: `add.u32 %r1, %tid.x, 4` becomes `Op::I32 { f: Add, d: 0, a: 1, b: 2, .. }` with row 1 a special row and row 2 a
//! constant row.

mod asynchronous;
mod calls;
mod kinds;
mod op;
mod operands;
mod sparse;
mod sums;
mod texture;

use crate::types::File;

pub(crate) use asynchronous::{
    Bulk, BulkSide, Fence, MapField, Mbarrier, MbarrierKind, Multiplicand, Reduction, Scope,
    StoreAsync, TensorCopy, TensormapReplace, Wgmma,
};
pub(crate) use calls::{Call, Callee, Function, Service, Slot, Stack, function_address};
pub(crate) use kinds::{
    AtomOp, BarKind, Bool, Cmp, CmpType, FloatMode, FloatOp, Format, IntOp, Join, MmaType, Packed,
    Rounding, Shuffle, TestP, VideoOp, Vote,
};
pub(crate) use op::Op;
pub(crate) use operands::{
    Access, Address, Atom, Atom128, Bar, Compare, Convert, CpAsync, Fragment, Lop3Pred, Matrix,
    Mma, Order, Video, WmmaMemory, WmmaMultiply,
};
pub(crate) use sparse::{Sparse, metadata_bits};
pub(crate) use sums::{Kept, Sums};
pub(crate) use texture::{Outside, TextureAction, TextureOp, TextureQuery};

/// An index into a register file of the warp.
pub(crate) type Row = u32;

/// No row: a `_` destination or an absent operand.
pub(crate) const NONE: Row = u32::MAX;

/// How a row is filled when a warp starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowInit {
    /// A register of the kernel: undefined.
    Register,
    /// A constant, the same in all lanes.
    Const(u64),
    /// A special register.
    Special(Special),
    /// The address of this byte of the executing block's shared memory.
    Shared(i64),
    /// The address of module variable `0` plus an offset.
    Variable(u32, i64),
    /// An address in the frame of function `0`: set at each call.
    Frame(u32, u32),
}

/// Special registers (PTX ISA, chapter 10). `dim` is 0, 1, 2 for x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    TotalSmem,
    DynamicSmem,
    /// What a driver sets for itself (`%envreg0` and the like): nothing here.
    Zero,
    /// Half of the address of a cooperative launch's workspace: `%envreg2` and, high, `%envreg1`.
    Workspace {
        high: bool,
    },
}

/// A register of any file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    pub(crate) file: File,
    pub(crate) row: Row,
}

/// The instructions of one body, which control flow does not leave but by calls and exits.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Registers that hold parameters and are defined on entry.
    pub(crate) defined: Vec<Reg>,
}

/// An operation with its guard.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// Predicate row of the guard, or [`NONE`].
    pub(crate) guard: Row,
    pub(crate) negated: bool,
    /// The modes of warps that look at it before it is executed: see `exec/undefined.rs`.
    pub(crate) watch: u8,
    /// Range in [`Program::checks`].
    pub(crate) checks: (u32, u32),
    /// Range in [`Program::marks`].
    pub(crate) marks: (u32, u32),
}

/// What messages and counters say of an instruction.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// `ld.shared.v4.f32`.
    pub(crate) opcode: String,
}

/// A decoded kernel.
#[derive(Debug, Clone, Default)]
// Each flag is a fact of its own.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Program {
    /// The kernel's own, then those of the functions that it may call.
    pub(crate) insts: Vec<Inst>,
    pub(crate) meta: Vec<Meta>,
    /// The kernel's body first.
    pub(crate) bodies: Vec<Body>,
    pub(crate) functions: Vec<Function>,
    /// Whether some instruction calls `malloc` or `free`.
    pub(crate) uses_heap: bool,
    /// What is wrong with each [`Op::Missing`].
    pub(crate) missing: Vec<crate::error::ParseError>,
    pub(crate) rows32: Vec<RowInit>,
    pub(crate) rows64: Vec<RowInit>,
    pub(crate) rows_pred: Vec<RowInit>,
    /// Names of the register rows, for messages.
    pub(crate) names: Vec<(Reg, String)>,
    /// For each instruction the instruction where its divergent paths meet; `u32::MAX` if only at the end.
    pub(crate) reconverge: Vec<u32>,
    /// Registers to check for being defined, by the ranges in [`Inst::checks`].
    pub(crate) checks: Vec<Reg>,
    /// Registers to mark as defined.
    pub(crate) marks: Vec<Reg>,
    /// The registers with reads to check, for which it is known in which lanes they were written.
    pub(crate) tracked: Vec<Reg>,
    /// Registers read and written by each instruction.
    pub(crate) uses: Vec<(Vec<Reg>, Vec<Reg>)>,
    /// Bytes of static shared memory, and where the dynamic part starts (from the start of the block's window).
    pub(crate) shared_static: u32,
    pub(crate) shared_dynamic: u32,
    /// Pointers have 32 bits.
    pub(crate) short_addresses: bool,
    /// Bytes of local memory a thread.
    pub(crate) local_bytes: u32,
    /// Whether some instruction belongs to the asynchronous proxy.
    pub(crate) uses_async: bool,
    /// There are tensor copies.
    pub(crate) has_tensor_copies: bool,
    /// Whether mbarriers or the barrier of the cluster have relaxed operations, of which fences make more.
    pub(crate) relaxes: bool,
    /// Whether what a block does may depend on what others have done: strong loads and atomics on global memory that do not commute, and the heap.
    pub(crate) communicates: bool,
    /// By instruction: registers that it touches and some `wgmma` uses.
    pub(crate) touches: std::collections::HashMap<u32, Vec<Reg>>,
    /// Smallest shared and global access in bytes: the grain of race detection.
    pub(crate) shared_grain: u32,
    pub(crate) global_grain: u32,
}
