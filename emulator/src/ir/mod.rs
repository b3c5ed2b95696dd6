//! The decoded program: what the interpreter runs.
//!
//! Every operand is a *row*: an index into one of the warp's three register files. Immediates, symbol addresses and special
//! registers are rows as well, filled once when a warp starts, so that no instruction ever asks what kind of operand it has.
//! Example: `add.u32 %r1, %tid.x, 4` becomes `Op::I32 { f: Add, d: 0, a: 1, b: 2, .. }` with row 1 a special row and row 2 a
//! constant row.

mod asynchronous;
mod calls;
mod kinds;
mod sparse;
mod sums;

use crate::ast::Space;
use crate::types::File;

pub(crate) use asynchronous::{
    Bulk, BulkSide, MapField, Mbarrier, MbarrierKind, Multiplicand, Reduction, StoreAsync,
    TensorCopy, TensormapReplace, Wgmma,
};
pub(crate) use calls::{Call, Callee, Function, Service, Slot, Stack, function_address};
pub(crate) use kinds::{
    AtomOp, BarKind, Bool, Cmp, CmpType, FloatMode, FloatOp, Format, IntOp, Join, MmaType, Packed,
    Rounding, Shuffle, TestP, VideoOp, Vote,
};

pub(crate) use sparse::{Sparse, metadata_bits};
pub(crate) use sums::{Kept, Sums};

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
}

/// A register of any file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    pub(crate) file: File,
    pub(crate) row: Row,
}

/// A comparison with its combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compare {
    pub(crate) cmp: Cmp,
    pub(crate) ty: CmpType,
    pub(crate) a: Row,
    pub(crate) b: Row,
    /// Combination with a predicate, and whether that is negated.
    pub(crate) combine: Option<(Bool, Row, bool)>,
}

#[allow(clippy::struct_excessive_bools)] // the instruction's own modifiers
/// A conversion. `packed` conversions take two values in (`a` to the upper half) or unpack two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Convert {
    pub(crate) to: Format,
    pub(crate) from: Format,
    pub(crate) rounding: Rounding,
    /// Round to an integer (`.rni` and the like).
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) satfinite: bool,
    pub(crate) relu: bool,
    pub(crate) packed: Packed,
    pub(crate) d: Reg,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
}

/// An address operand: an optional register row and an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// `None` for an absolute address.
    pub(crate) base: Option<Reg>,
    pub(crate) offset: i64,
}

/// A load or store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) address: Address,
    /// Bytes of one element: 1, 2, 4 or 8.
    pub(crate) bytes: u8,
    /// Elements: 1, 2, 4 or 8.
    pub(crate) count: u8,
    /// Sign-extend into a wider register.
    pub(crate) signed: bool,
    /// `.volatile`, `.relaxed`, `.acquire`, `.release`: no data race among such accesses.
    pub(crate) strong: bool,
    /// Registers of the elements; row [`NONE`] for `_`.
    pub(crate) regs: [Reg; 8],
}

/// `atom` and `red`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Atom {
    pub(crate) op: AtomOp,
    pub(crate) space: Space,
    pub(crate) bytes: u8,
    pub(crate) address: Address,
    /// Destination, [`NONE`] for `red`.
    pub(crate) d: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
}

/// `atom.exch` and `atom.cas` of 128 bits: low and high halves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Atom128 {
    pub(crate) address: Address,
    pub(crate) d: [Row; 2],
    /// The new value, and what must be there for it to be stored.
    pub(crate) value: [Row; 2],
    pub(crate) expected: Option<[Row; 2]>,
}

/// `bar` and `barrier`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub(crate) kind: BarKind,
    pub(crate) aligned: bool,
    /// Row of the barrier number.
    pub(crate) id: Row,
    /// Row of the thread count, or [`NONE`].
    pub(crate) count: Row,
    /// Destination of a reduction.
    pub(crate) d: Reg,
    /// Source predicate of a reduction and its negation.
    pub(crate) p: Row,
    pub(crate) negated: bool,
}

/// `ldmatrix` and `stmatrix` of 8×8 matrices of 16-bit elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) generic: bool,
    pub(crate) address: Address,
    /// 1, 2 or 4.
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) regs: [Row; 4],
}

/// `cp.async`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpAsync {
    pub(crate) dst: Address,
    pub(crate) src: Address,
    /// 4, 8 or 16.
    pub(crate) bytes: u8,
    /// Row of the source size, or [`NONE`].
    pub(crate) src_bytes: Row,
    /// Predicate to ignore the source, and its negation; [`NONE`] if absent.
    pub(crate) ignore: (Row, bool),
}

/// `mma.sync` and `mma.sp.sync`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mma {
    /// Rows: 8 or 16 (columns are always 8).
    pub(crate) m: u8,
    /// Depth.
    pub(crate) k: u16,
    pub(crate) a_ty: MmaType,
    pub(crate) b_ty: MmaType,
    /// Type of C.
    pub(crate) c_ty: MmaType,
    /// Type of D.
    pub(crate) d_ty: MmaType,
    pub(crate) satfinite: bool,
    /// Of single bits: the exclusive or takes the place of the product.
    pub(crate) xor: bool,
    /// How floating-point products are added.
    pub(crate) sums: Sums,
    /// Whether A and B are column-major.
    pub(crate) by_columns: [bool; 2],
    /// Where the elements of a sparse A belong.
    pub(crate) sparse: Option<Sparse>,
    pub(crate) d: Vec<Row>,
    pub(crate) a: Vec<Row>,
    pub(crate) b: Vec<Row>,
    pub(crate) c: Vec<Row>,
}

/// One decoded operation. Rows `d` are destinations; the file of each row follows from the operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// No effect here: cache hints, fences (single-block memory is sequentially consistent), `nanosleep`.
    Nop,
    /// 32-bit integers.
    I32 {
        f: IntOp,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// 16-bit integers: operands extended, result cut (unless `wide`).
    I16 {
        f: IntOp,
        signed: bool,
        wide: bool,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// 64-bit integers.
    I64 {
        f: IntOp,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// `shl`, `shr`, `bfe` of 64 bits with 32-bit `b` and `c`.
    Shift64 {
        f: IntOp,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// `popc`, `clz`, `bfind` of 64 bits to 32.
    Count64 {
        f: IntOp,
        d: Row,
        a: Row,
    },
    /// `mul.wide` and `mad.wide` (with `c`) of 32 bits to 64.
    Wide {
        signed: bool,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// `bfi` of 32 or 64 bits: insert `len` bits of `a` into `b` at `pos`.
    Bfi {
        wide: bool,
        d: Row,
        a: Row,
        b: Row,
        pos: Row,
        len: Row,
    },
    /// `add{c}{.cc}`, `sub{c}{.cc}`.
    Carry {
        sub: bool,
        wide: bool,
        carry_in: bool,
        carry_out: bool,
        d: Row,
        a: Row,
        b: Row,
    },
    /// `mad{c}.{lo,hi}{.cc}` of 32 or 64 bits.
    MadCarry {
        hi: bool,
        signed: bool,
        wide: bool,
        carry_in: bool,
        carry_out: bool,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// `lop3.b32` with its truth table.
    Lop3 {
        lut: u8,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    Lop3Pred(Box<Lop3Pred>),
    F32 {
        f: FloatOp,
        mode: FloatMode,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    F64 {
        f: FloatOp,
        mode: FloatMode,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    /// f16 and bf16, one or two to a register.
    Half {
        f: FloatOp,
        bf16: bool,
        packed: bool,
        mode: FloatMode,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    Mov32 {
        d: Row,
        a: Row,
    },
    /// A move that keeps only the low 16 bits.
    Mov16 {
        d: Row,
        a: Row,
    },
    Mov64 {
        d: Row,
        a: Row,
    },
    MovPred {
        d: Row,
        a: Row,
    },
    /// A move of 128 bits, low halves first.
    Mov128 {
        d: [Row; 2],
        a: [Row; 2],
    },
    /// Joins `parts` (low first), each of `bits`, into `d`.
    Pack {
        d: Reg,
        bits: u8,
        parts: Box<[Reg]>,
    },
    /// Splits `a` into `parts` (low first), each of `bits`.
    Unpack {
        a: Reg,
        bits: u8,
        parts: Box<[Reg]>,
    },
    /// `%clock`, `%clock64`, `%globaltimer`: the instructions that the block's warps have executed so far.
    Clock {
        d: Reg,
        /// Bits of the count to drop: 32 for the `_hi` registers.
        shift: u8,
    },
    Cvt(Box<Convert>),
    /// `cvt.pack`: `a` and `b` saturated to `bits`, `b` lowest, above them the low bits of `c`.
    CvtPack {
        signed: bool,
        bits: u8,
        d: Row,
        a: Row,
        b: Row,
        /// [`NONE`] if there is none.
        c: Row,
    },
    /// `add`, `sub`, `min`, `max` and `neg` of two 16-bit integers in a register.
    Packed16 {
        f: IntOp,
        signed: bool,
        d: Row,
        a: Row,
        b: Row,
    },
    Video(Box<Video>),
    WmmaMemory(Box<WmmaMemory>),
    WmmaMultiply(Box<WmmaMultiply>),
    /// `setp`: `p` gets the combination, `q` that of the negated comparison.
    Setp {
        cmp: Box<Compare>,
        p: Row,
        q: Row,
    },
    /// `set`: all ones or 1.0 for true.
    Set {
        cmp: Box<Compare>,
        d: Row,
        truth: u32,
    },
    /// `set` and `setp` on packed halves.
    SetHalf2 {
        cmp: Box<Compare>,
        d: Row,
        truth: u32,
    },
    SetpHalf2 {
        cmp: Box<Compare>,
        p: Row,
        q: Row,
    },
    Selp32 {
        d: Row,
        a: Row,
        b: Row,
        p: Row,
    },
    Selp64 {
        d: Row,
        a: Row,
        b: Row,
        p: Row,
    },
    /// `slct`: a if c ≥ 0.
    Slct {
        wide: bool,
        float: bool,
        ftz: bool,
        d: Row,
        a: Row,
        b: Row,
        c: Row,
    },
    PredLogic {
        f: IntOp,
        d: Row,
        a: Row,
        b: Row,
    },
    /// `testp.f32`/`.f64`.
    Testp {
        what: TestP,
        wide: bool,
        d: Row,
        a: Row,
    },
    Ld(Box<Access>),
    St(Box<Access>),
    Atom(Box<Atom>),
    Atom128(Box<Atom128>),
    /// `atom` and `red` of a vector: element after element.
    Atoms(Box<[Atom]>),
    TensormapReplace(Box<TensormapReplace>),
    /// `tensormap.cp_fenceproxy`: copies a tensor map from shared to global memory.
    TensormapCopy {
        dst: Address,
        src: Address,
    },
    /// `cvta` to generic: adds the window base; `to` subtracts it.
    Cvta {
        to: bool,
        space: Space,
        d: Row,
        a: Row,
    },
    Isspacep {
        space: Space,
        d: Row,
        a: Reg,
    },
    Bra {
        target: u32,
        /// `.uni`: no lane that is here goes the other way.
        uni: bool,
    },
    /// `brx.idx` through a table.
    Brx {
        index: Row,
        targets: Box<[u32]>,
    },
    Exit,
    /// Calls a function, or a service of the system.
    Call(Box<Call>),
    /// Goes back to the caller.
    Ret,
    /// An instruction of PTX that the emulator lacks: the number of the error in [`Program::missing`].
    Missing(u32),
    Trap,
    Bar(Box<Bar>),
    BarWarp {
        mask: Row,
    },
    Shfl {
        mode: Shuffle,
        d: Row,
        p: Row,
        a: Row,
        b: Row,
        c: Row,
        mask: Row,
    },
    Vote {
        mode: Vote,
        d: Row,
        a: Row,
        negated: bool,
        mask: Row,
    },
    ActiveMask {
        d: Row,
    },
    Redux {
        f: IntOp,
        d: Row,
        a: Row,
        mask: Row,
    },
    /// `stacksave`, `stackrestore`, `alloca`.
    Stack(Stack),
    /// `match.any` and `match.all` (with `p`).
    Match {
        all: bool,
        wide: bool,
        d: Row,
        p: Row,
        a: Row,
        mask: Row,
    },
    Elect {
        d: Row,
        p: Row,
        mask: Row,
    },
    LdMatrix(Box<Matrix>),
    StMatrix(Box<Matrix>),
    /// `movmatrix.sync.aligned.m8n8.trans.b16`.
    MovMatrix {
        d: Row,
        a: Row,
    },
    Mma(Box<Mma>),
    CpAsync(Box<CpAsync>),
    CpCommit,
    /// Waits until at most `0` groups are pending.
    CpWait(u32),
    CpWaitAll,
    Mbarrier(Box<Mbarrier>),
    /// `mbarrier.pending_count`.
    PendingCount {
        d: Row,
        a: Row,
    },
    /// `fence.proxy.async`, unless for global memory only.
    FenceProxy,
    /// `fence.mbarrier_init`.
    FenceMbarrierInit,
    /// `mapa`: the address of `a` in block `rank`.
    Mapa {
        generic: bool,
        d: Reg,
        a: Reg,
        rank: Row,
    },
    /// `getctarank`.
    CtaRank {
        generic: bool,
        d: Row,
        a: Reg,
    },
    ClusterArrive {
        aligned: bool,
        relaxed: bool,
    },
    ClusterWait {
        aligned: bool,
    },
    Bulk(Box<Bulk>),
    Tensor(Box<TensorCopy>),
    StoreAsync(Box<StoreAsync>),
    BulkCommit,
    /// Waits until at most `pending` groups are; `read` only for their reading.
    BulkWait {
        pending: u32,
        read: bool,
    },
    Wgmma(Box<Wgmma>),
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait(u32),
    /// An instruction for the whole warp that does nothing here (`setmaxnreg`).
    WholeWarp,
}

/// `lop3` with a predicate: whether the result is not 0, and or or another predicate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lop3Pred {
    pub(crate) lut: u8,
    pub(crate) or: bool,
    pub(crate) d: Row,
    pub(crate) p: Row,
    pub(crate) sources: [Row; 3],
    pub(crate) q: Row,
    pub(crate) negated: bool,
}

/// A video instruction, scalar or of 2 or 4 elements (PTX ISA, section 9.7.18).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Video {
    pub(crate) op: VideoOp,
    /// Elements: 1, 2 or 4.
    pub(crate) count: u8,
    /// Signedness of result and sources.
    pub(crate) signed: [bool; 3],
    pub(crate) saturate: bool,
    pub(crate) join: Join,
    /// The part of `a` and `b` that each element is: for one element byte 0 to 3 or half 4 or 5 or all (6); else the element of
    /// the pair (b, a).
    pub(crate) select: [[u8; 4]; 2],
    /// For one element the part of the destination; else a bit for each element that is written.
    pub(crate) part: u8,
    pub(crate) d: Row,
    pub(crate) a: Row,
    pub(crate) b: Row,
    pub(crate) c: Row,
}

/// The fragment of a matrix that `wmma` keeps in the registers of a warp. How its elements lie in them is not specified; here
/// lane l holds the run of `rows·columns/32` elements from element l of that length on, row by row, and registers that are left
/// over repeat them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fragment {
    pub(crate) rows: u8,
    pub(crate) columns: u8,
    pub(crate) ty: MmaType,
    pub(crate) regs: Vec<Row>,
}

/// `wmma.load` and `wmma.store`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WmmaMemory {
    pub(crate) store: bool,
    pub(crate) fragment: Fragment,
    pub(crate) column_major: bool,
    pub(crate) address: Address,
    /// Row of the leading dimension in elements, or [`NONE`] for the least.
    pub(crate) stride: Row,
    /// One element of each lane: addresses and data in rows of their own.
    pub(crate) element: Access,
}

/// `wmma.mma`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WmmaMultiply {
    pub(crate) a: Fragment,
    pub(crate) b: Fragment,
    pub(crate) c: Fragment,
    pub(crate) d: Fragment,
    pub(crate) satfinite: bool,
    /// How floating-point products are added.
    pub(crate) sums: Sums,
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
    /// A backward branch, which counts against the time slice.
    pub(crate) checks: (u32, u32),
    /// Range in [`Program::marks`].
    pub(crate) marks: (u32, u32),
}

impl Op {
    /// Whether it only carries bits from one register to another: bits that nobody wrote are not used by this, and stay undefined.
    pub(crate) fn carries(&self) -> bool {
        matches!(
            self,
            Op::Mov16 { .. }
                | Op::Mov32 { .. }
                | Op::Mov64 { .. }
                | Op::Mov128 { .. }
                | Op::MovPred { .. }
                | Op::Pack { .. }
                | Op::Unpack { .. }
        )
    }
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
    /// Bytes of static shared memory, and where the dynamic part starts (from the start of the block's window).
    pub(crate) shared_static: u32,
    pub(crate) shared_dynamic: u32,
    /// Bytes of local memory a thread.
    pub(crate) local_bytes: u32,
    /// Whether some instruction belongs to the asynchronous proxy.
    pub(crate) uses_async: bool,
    /// By instruction: registers that it touches and some `wgmma` uses.
    pub(crate) touches: std::collections::HashMap<u32, Vec<Reg>>,
    /// Smallest shared and global access in bytes: the grain of race detection.
    pub(crate) shared_grain: u32,
    pub(crate) global_grain: u32,
}
