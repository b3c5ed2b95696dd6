//! The operations of the decoded program, one variant each. Example: `selp.b32 %r1, %r2, %r3, %p1` is `Op::Selp32 { d: 1, a: 2, b: 3, p: 1 }`.

use super::{
    Access, Address, Atom, Atom128, Bar, Bulk, Call, Compare, Convert, CpAsync, Fence, FloatMode,
    FloatOp, IntOp, Lop3Pred, Matrix, Mbarrier, Mma, Reg, Row, Shuffle, Stack, StoreAsync,
    TensorCopy, TensormapReplace, TestP, TextureOp, Video, Vote, Wgmma, WmmaMemory, WmmaMultiply,
};
use crate::ast::Space;

/// One decoded operation. Rows `d` are destinations; the file of each row follows from the operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// No effect here: cache hints, fences of other proxies, `nanosleep`.
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
    /// Moves of several registers, each to its own: of 128 bits, or of a vector.
    Moves(Box<[(Reg, Reg)]>),
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
        /// [`NONE`] where the instruction has two sources.
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
    /// Logic of predicates, by its truth table: bit (a·2 + b) of `lut`.
    PredLogic {
        lut: u8,
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
    /// `bra` back in a loop that looks at memory which others may change: its lanes may wait for others.
    Spin {
        target: u32,
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
    /// `fence` and `membar` between threads: of use behind and before relaxed operations alone.
    Fence(Fence),
    /// `fence.proxy.async`, unless for global memory only.
    FenceProxy,
    /// `fence.mbarrier_init`.
    FenceMbarrierInit,
    /// Textures and surfaces.
    Texture(Box<TextureOp>),
    /// `fence.proxy.tensormap::generic.release`.
    MapRelease,
    /// `fence.proxy.tensormap::generic.acquire` of the map at an address.
    MapAcquire(Address),
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
