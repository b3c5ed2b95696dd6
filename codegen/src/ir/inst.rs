//! Instructions: what a kernel does, as an enum over typed values. Text exists only in [`print`](crate::print).

use std::sync::Arc;

use layout_core::atoms::{MmaAtom, Scalar};

use super::address::Address;
use super::hopper::Hopper;
use super::param::ParamKind;
use super::value::{Class, Cmp, Logic, Pred, Reg, Src, Type};
use crate::index::code::{Op, Operand, Ty};

/// A special register: the identity of a thread, or of its block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Special {
    /// The thread within its block, along an axis.
    Thread(Axis),
    /// The block within the grid, along an axis.
    Block(Axis),
}

/// An axis of a block or a grid.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel};
///
/// let mut k = Kernel::new("k", 32);
/// let block = k.block_index(Axis::Z, 10);
/// assert_eq!(k.range(block), (0, 9));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    /// The fastest.
    X,
    /// The second.
    Y,
    /// The slowest.
    Z,
}

impl Axis {
    /// The axes in order.
    ///
    /// ```
    /// use layout_codegen::ir::Axis;
    ///
    /// assert_eq!(Axis::ALL.map(|axis| axis as usize), [0, 1, 2]);
    /// ```
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
}

/// Arithmetic of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// a + b; floats round to nearest even.
    Add,
    /// a − b
    Sub,
    /// a·b; the low half for integers.
    Mul,
    /// The high half of a·b, of integers.
    MulHi,
    /// a / b rounded down, of integers without a sign; any number where b is 0.
    Div,
    /// What a / b leaves, of integers without a sign; any number where b is 0.
    Rem,
    /// The smaller; if one float is NaN, the other.
    Min,
    /// The larger; if one float is NaN, the other.
    Max,
    /// The smaller; NaN if one float is. From `sm_80`.
    MinNan,
    /// The larger; NaN if one float is. From `sm_80`.
    MaxNan,
    /// Bits shifted left.
    Shl,
    /// Bits shifted right, with zeros for an unsigned type.
    Shr,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one of the two.
    Xor,
}

/// A function of one operand, as the hardware approximates it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unary {
    /// 2 to the power a, with subnormal results flushed to 0.
    Exp2,
    /// 1/a, with subnormal results flushed to 0.
    Reciprocal,
    /// 1/√a, with subnormal results flushed to 0.
    ReciprocalSqrt,
    /// √a, rounded to nearest even.
    Sqrt,
    /// The logarithm of a to base 2, with subnormal arguments taken as 0.
    Log2,
    /// The hyperbolic tangent, with a relative error of at most 2⁻¹¹.
    Tanh,
    /// −a
    Neg,
    /// |a|
    Abs,
}

/// How a float becomes an integer.
///
/// ```
/// use layout_codegen::ir::{Kernel, Rounding};
/// use layout_codegen::value::F32;
///
/// let mut k = Kernel::new("k", 32);
/// let down = F32::from(-2.5).to_s32(&mut k, Rounding::Down); // -3
/// # let _ = down;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// To the nearest integer, halves to the even one.
    Nearest,
    /// Towards 0.
    Zero,
    /// Towards −∞.
    Down,
    /// Towards +∞.
    Up,
}

/// How the lanes of a warp exchange a register.
///
/// ```
/// use layout_codegen::ir::{Kernel, Shuffle};
/// use layout_codegen::value::F32;
///
/// // What lane 0 has, in every lane.
/// let mut k = Kernel::new("k", 32);
/// let x: F32 = k.argument("x");
/// let first = x.shuffle(&mut k, Shuffle::Index, 0);
/// assert_ne!(first, x);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// Lane `l` gets the value of lane `l ^ operand`.
    Butterfly,
    /// Lane `l` gets the value of lane `operand`.
    Index,
    /// Lane `l` gets the value of lane `l − operand`, or its own where no such lane exists.
    Up,
    /// Lane `l` gets the value of lane `l + operand`, or its own where no such lane exists.
    Down,
}

/// Which caches a load of global memory passes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cache {
    /// All of them, coherently.
    Coherent,
    /// The path for data that no thread of the kernel writes.
    ReadOnly,
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Inst {
    /// Integer arithmetic of an index expression: `to = op(args)`; the first argument is of type `from`.
    Index {
        /// The operation.
        op: Op,
        /// The type that it is done in.
        ty: Ty,
        /// The type of the first argument.
        from: Ty,
        /// The result.
        to: Reg,
        /// One to three arguments.
        args: Vec<Operand>,
    },
    /// `to = register`
    Special {
        /// The result, 32 bits.
        to: Reg,
        /// The special register.
        register: Special,
    },
    /// `to = parameter`
    Param {
        /// The result.
        to: Reg,
        /// The parameter's type.
        kind: ParamKind,
        /// Its name.
        name: String,
    },
    /// A generic address as one of global memory.
    ToGlobal {
        /// The result, 64 bits.
        to: Reg,
        /// The generic address.
        from: Reg,
    },
    /// The address of the kernel's shared memory.
    SharedBase {
        /// The result, 32 bits.
        to: Reg,
    },
    /// `to = from`
    Move {
        /// The type.
        ty: Type,
        /// The result.
        to: Reg,
        /// A register or a literal.
        from: Src,
    },
    /// `to = a cmp b`, and `and` if given.
    Compare {
        /// The comparison.
        cmp: Cmp,
        /// The type of `a` and `b`.
        ty: Type,
        /// The result, a predicate.
        to: Reg,
        /// The left side.
        a: Src,
        /// The right side.
        b: Src,
        /// A predicate that must hold as well.
        and: Option<Reg>,
    },
    /// `to = a op b` of predicates.
    Logic {
        /// The operation.
        op: Logic,
        /// The result.
        to: Reg,
        /// The left side.
        a: Reg,
        /// The right side.
        b: Reg,
    },
    /// `to = a` where `p` holds, else `b`.
    Select {
        /// The type of the values.
        ty: Type,
        /// The result.
        to: Reg,
        /// The value where `p` holds.
        a: Src,
        /// The value where it does not.
        b: Src,
        /// The predicate.
        p: Reg,
    },
    /// `to = a op b`
    Binary {
        /// The operation.
        op: Binary,
        /// The type.
        ty: Type,
        /// The result.
        to: Reg,
        /// The left side.
        a: Src,
        /// The right side.
        b: Src,
    },
    /// `to = a·b + c`: fused for floats, the low half for integers.
    MulAdd {
        /// The type.
        ty: Type,
        /// The result.
        to: Reg,
        /// A factor.
        a: Src,
        /// A factor.
        b: Src,
        /// What is added.
        c: Src,
    },
    /// `to = op(a)`
    Unary {
        /// The operation.
        op: Unary,
        /// The type: `f32` for the approximations.
        ty: Type,
        /// The result.
        to: Reg,
        /// The argument.
        a: Src,
    },
    /// `to` = what `from` holds, converted: exact, or rounded to nearest even.
    Convert {
        /// The type of the result.
        to_ty: Type,
        /// The type of the argument.
        from_ty: Type,
        /// The result.
        to: Reg,
        /// The argument.
        from: Reg,
    },
    /// An `f32` as an integer, saturated to the range of its type; NaN becomes 0.
    Round {
        /// The type of the result: [`Type::S32`], [`Type::U32`] or [`Type::S8`].
        to_ty: Type,
        /// The rounding.
        rounding: Rounding,
        /// The result: 32 bits.
        to: Reg,
        /// The argument.
        from: Reg,
    },
    /// Two `f32` rounded to narrower floats in one register. To 8-bit floats it saturates: what is too large becomes the largest finite number.
    ConvertPair {
        /// The type of the result: [`Type::F16x2`], [`Type::Bf16x2`], [`Type::E4m3x2`] or [`Type::E5m2x2`].
        to_ty: Type,
        /// The result: 32 bits, or 16 of two 8-bit floats.
        to: Reg,
        /// What goes to the high half.
        high: Reg,
        /// What goes to the low half.
        low: Reg,
    },
    /// Registers side by side in a wider one, the first in the lowest bits.
    Pack {
        /// The result.
        to: Reg,
        /// The parts.
        parts: Vec<Reg>,
    },
    /// A register taken apart, the lowest bits first.
    Unpack {
        /// The parts.
        to: Vec<Reg>,
        /// The register.
        from: Reg,
    },
    /// Four bytes chosen out of the eight of `a` (0 to 3) and `b` (4 to 7), a hexadecimal digit each, the lowest byte last.
    Permute {
        /// The result.
        to: Reg,
        /// Bytes 0 to 3.
        a: Reg,
        /// Bytes 4 to 7.
        b: Reg,
        /// The digits.
        selector: u16,
    },
    /// Exchange of a 32-bit register between the lanes of a warp; all 32 take part.
    Shuffle {
        /// The pattern.
        mode: Shuffle,
        /// The result.
        to: Reg,
        /// What each lane gives.
        from: Reg,
        /// The pattern's operand.
        lane: Src,
    },
    /// `to = memory`: 1, 2 or 4 registers.
    Load {
        /// Where from.
        at: Address,
        /// Which caches.
        cache: Cache,
        /// The type of each register.
        ty: Type,
        /// The results.
        to: Vec<Reg>,
    },
    /// `memory = registers`: 1, 2 or 4 of them.
    Store {
        /// Where to.
        at: Address,
        /// The type of each register.
        ty: Type,
        /// The values.
        from: Vec<Reg>,
        /// How an atomic operation combines the value with what is there; none where it takes its place.
        atomic: Option<Binary>,
    },
    /// An asynchronous copy from global to shared memory: `bytes` bytes are written, of which `size` come from `from` and the rest are 0.
    CopyAsync {
        /// Where to, in shared memory.
        to: Address,
        /// Where from, in global memory.
        from: Address,
        /// 4, 8 or 16.
        bytes: u32,
        /// Whether the lines stay in the first-level cache.
        cached: bool,
        /// Bytes that are read, at most `bytes`; none for all.
        size: Option<Reg>,
    },
    /// Closes a group of asynchronous copies.
    CommitGroup,
    /// Waits until all groups but the youngest `pending` have arrived.
    WaitGroup {
        /// How many may be in flight.
        pending: u32,
    },
    /// Waits until every asynchronous copy has arrived.
    WaitAll,
    /// Four 8×8 matrices of 16-bit elements from shared memory to the fragments of a warp.
    LoadMatrix {
        /// The row that this lane points at.
        at: Address,
        /// Four registers.
        to: Vec<Reg>,
        /// Each matrix transposed.
        trans: bool,
    },
    /// The fragments of a warp to four 8×8 matrices of 16-bit elements in shared memory.
    StoreMatrix {
        /// The row that this lane points at.
        at: Address,
        /// Four registers.
        from: Vec<Reg>,
        /// Each matrix transposed.
        trans: bool,
    },
    /// `d = a·b + c` by a warp.
    Mma {
        /// The atom.
        atom: Arc<MmaAtom>,
        /// The registers of the result.
        d: Vec<Reg>,
        /// The registers of A.
        a: Vec<Reg>,
        /// The registers of B.
        b: Vec<Reg>,
        /// The registers of C.
        c: Vec<Reg>,
        /// What a sparse A stores.
        metadata: Option<Metadata>,
    },
    /// All threads of the block arrive before any goes on.
    Barrier,
    /// All lanes of the warp arrive before any goes on.
    WarpBarrier,
    /// An instruction of Hopper.
    Hopper(Box<Hopper>),
}

/// The metadata of a sparse A.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Metadata {
    /// The lane's word, of which the instruction reads those of some lanes.
    pub(crate) register: Reg,
    /// Which lanes.
    pub(crate) selector: u8,
}

/// An instruction in its place: with the guard under which it is executed, and a name that reports call it by.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Statement {
    /// The instruction.
    pub(crate) inst: Inst,
    /// Threads where this does not hold leave it out.
    pub(crate) guard: Option<Pred>,
    /// The access's name in proofs and counters.
    pub(crate) tag: Option<String>,
}

impl From<Inst> for Statement {
    fn from(inst: Inst) -> Self {
        Self {
            inst,
            guard: None,
            tag: None,
        }
    }
}

impl Binary {
    /// The first architecture and the lowest PTX version that have it for a type.
    fn needs(self, ty: Type) -> (u32, &'static str) {
        let pair = matches!(ty, Type::F16x2 | Type::Bf16x2);
        match self {
            Binary::MinNan | Binary::MaxNan => (80, "7.0"),
            Binary::Min | Binary::Max if pair => (80, "7.0"),
            Binary::Add | Binary::Sub | Binary::Mul if ty == Type::Bf16x2 => (90, "7.8"),
            _ => (75, "6.3"),
        }
    }
}

impl Unary {
    /// The first architecture and the lowest PTX version that have it for a type.
    fn needs(self, ty: Type) -> (u32, &'static str) {
        match (self, ty) {
            (Unary::Exp2 | Unary::Tanh, Type::Bf16x2) => (90, "7.8"),
            (Unary::Neg | Unary::Abs, Type::Bf16x2) => (80, "7.0"),
            (Unary::Exp2, Type::F16x2) | (Unary::Tanh, _) => (75, "7.0"),
            (Unary::Abs, Type::F16x2) => (75, "6.5"),
            _ => (75, "6.3"),
        }
    }
}

impl Inst {
    /// Whether Hopper alone has it: a text with it is for `sm_90a`, and runs on no other architecture.
    pub(crate) fn is_of_hopper_alone(&self) -> bool {
        let Inst::Hopper(inst) = self else {
            return false;
        };
        matches!(
            **inst,
            Hopper::Wgmma { .. }
                | Hopper::WgmmaFence
                | Hopper::WgmmaCommit
                | Hopper::WgmmaWait { .. }
                | Hopper::SetRegisters { .. }
        )
    }

    /// The first architecture that has it (`sm_N`), and the lowest PTX version; none for a matrix instruction that only some architectures have.
    pub(crate) fn needs(&self) -> Option<(u32, &'static str)> {
        Some(match self {
            // sm_90 had them first, with PTX 7.8.
            Inst::ConvertPair {
                to_ty: Type::E4m3x2 | Type::E5m2x2,
                ..
            }
            | Inst::Convert {
                from_ty: Type::E4m3x2 | Type::E5m2x2,
                ..
            } => (89, "8.1"),
            Inst::CopyAsync { .. }
            | Inst::CommitGroup
            | Inst::WaitGroup { .. }
            | Inst::WaitAll
            | Inst::ConvertPair { .. }
            | Inst::Convert {
                to_ty: Type::Bf16, ..
            }
            | Inst::MulAdd {
                ty: Type::Bf16x2 | Type::Bf16,
                ..
            } => (80, "7.0"),
            Inst::Mma { atom, .. } => {
                let arch = atom.target.min_sm()?;
                let sparse = atom.name.starts_with("mma.sp");
                let version = match (arch, atom.a_type) {
                    _ if atom.name.starts_with("mma.sp::ordered_metadata") => "8.5",
                    (_, Scalar::E4m3 | Scalar::E5m2) => "8.4",
                    _ if sparse => "7.1",
                    (90.., _) => "7.8",
                    (80.., _) => "7.0",
                    _ => "6.5",
                };
                (arch, version)
            }
            Inst::LoadMatrix { .. } => (75, "6.5"),
            // Its arrival is relaxed.
            Inst::Hopper(inst) if matches!(**inst, Hopper::ArriveAt { .. }) => (90, "8.6"),
            Inst::Hopper(_) => (90, "8.0"),
            Inst::StoreMatrix { .. }
            | Inst::Convert {
                from_ty: Type::Bf16,
                ..
            } => (90, "7.8"),
            Inst::Binary { op, ty, .. } => op.needs(*ty),
            Inst::Unary { op, ty, .. } => op.needs(*ty),
            _ => (75, "6.3"),
        })
    }

    /// The registers that it reads, those of its addresses too.
    pub(crate) fn sources(&self) -> Vec<Reg> {
        let reg = |s: &Src| match s {
            Src::Reg(r) => Some(*r),
            _ => None,
        };
        match self {
            Inst::Index { args, .. } => args
                .iter()
                .filter_map(|a| match a {
                    Operand::Reg(id, ty) => Some(Reg {
                        class: class_of(*ty),
                        id: *id,
                    }),
                    Operand::Imm(_) => None,
                })
                .collect(),
            Inst::ToGlobal { from, .. }
            | Inst::Convert { from, .. }
            | Inst::Round { from, .. }
            | Inst::Unpack { from, .. } => vec![*from],
            Inst::Move { from, .. } => reg(from).into_iter().collect(),
            Inst::Compare { a, b, and, .. } => {
                [reg(a), reg(b), *and].into_iter().flatten().collect()
            }
            Inst::Logic { a, b, .. } | Inst::Permute { a, b, .. } => vec![*a, *b],
            Inst::Select { a, b, p, .. } => {
                [reg(a), reg(b), Some(*p)].into_iter().flatten().collect()
            }
            Inst::Binary { a, b, .. } => [reg(a), reg(b)].into_iter().flatten().collect(),
            Inst::MulAdd { a, b, c, .. } => {
                [reg(a), reg(b), reg(c)].into_iter().flatten().collect()
            }
            Inst::Unary { a, .. } => reg(a).into_iter().collect(),
            Inst::ConvertPair { high, low, .. } => vec![*high, *low],
            Inst::Pack { parts, .. } => parts.clone(),
            Inst::Shuffle { from, lane, .. } => {
                [Some(*from), reg(lane)].into_iter().flatten().collect()
            }
            Inst::Load { at, .. } | Inst::LoadMatrix { at, .. } => vec![at.base()],
            Inst::Store { at, from, .. } | Inst::StoreMatrix { at, from, .. } => {
                let mut all = from.clone();
                all.push(at.base());
                all
            }
            Inst::CopyAsync { to, from, size, .. } => {
                let mut all = vec![to.base(), from.base()];
                all.extend(size);
                all
            }
            Inst::Mma {
                a, b, c, metadata, ..
            } => {
                let mut all = [&a[..], &b[..], &c[..]].concat();
                all.extend(metadata.map(|m| m.register));
                all
            }
            Inst::Hopper(inst) => inst.sources(),
            Inst::Special { .. }
            | Inst::Param { .. }
            | Inst::SharedBase { .. }
            | Inst::CommitGroup
            | Inst::WaitGroup { .. }
            | Inst::WaitAll
            | Inst::Barrier
            | Inst::WarpBarrier => Vec::new(),
        }
    }

    /// The registers that it writes.
    pub(crate) fn results(&self) -> Vec<Reg> {
        match self {
            Inst::Index { to, .. }
            | Inst::Special { to, .. }
            | Inst::Param { to, .. }
            | Inst::ToGlobal { to, .. }
            | Inst::SharedBase { to }
            | Inst::Move { to, .. }
            | Inst::Compare { to, .. }
            | Inst::Logic { to, .. }
            | Inst::Select { to, .. }
            | Inst::Binary { to, .. }
            | Inst::MulAdd { to, .. }
            | Inst::Unary { to, .. }
            | Inst::Convert { to, .. }
            | Inst::Round { to, .. }
            | Inst::ConvertPair { to, .. }
            | Inst::Pack { to, .. }
            | Inst::Permute { to, .. }
            | Inst::Shuffle { to, .. } => vec![*to],
            Inst::Unpack { to, .. } | Inst::Load { to, .. } | Inst::LoadMatrix { to, .. } => {
                to.clone()
            }
            Inst::Mma { d, .. } => d.clone(),
            Inst::Hopper(inst) => inst.results(),
            Inst::Store { .. }
            | Inst::StoreMatrix { .. }
            | Inst::CopyAsync { .. }
            | Inst::CommitGroup
            | Inst::WaitGroup { .. }
            | Inst::WaitAll
            | Inst::Barrier
            | Inst::WarpBarrier => Vec::new(),
        }
    }
}

/// The class of registers that hold values of an index type.
pub(crate) fn class_of(ty: Ty) -> Class {
    if ty.wide() { Class::B64 } else { Class::B32 }
}

/// An index operand as a source.
pub(crate) fn source(v: Operand) -> Src {
    match v {
        Operand::Imm(k) => Src::Int(k),
        Operand::Reg(id, ty) => Src::Reg(Reg {
            class: class_of(ty),
            id,
        }),
    }
}
