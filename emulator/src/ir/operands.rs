//! Operands of operations that have many: what [`Op`](super::Op) holds in a box or by value.

use super::{
    AtomOp, BarKind, Bool, Cmp, CmpType, Format, Join, MmaType, Packed, Reg, Rounding, Row, Sparse,
    Sums, VideoOp,
};
use crate::ast::Space;

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
    pub(crate) order: Order,
    /// Registers of the elements; row [`NONE`](super::NONE) for `_`.
    pub(crate) regs: [Reg; 8],
}

/// What a strong access orders by itself. `.volatile` and `.relaxed` order nothing without a fence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
}

/// `atom` and `red`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Atom {
    pub(crate) order: Order,
    pub(crate) op: AtomOp,
    pub(crate) space: Space,
    pub(crate) bytes: u8,
    pub(crate) address: Address,
    /// Destination, [`NONE`](super::NONE) for `red`.
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
    /// Row of the thread count, or [`NONE`](super::NONE).
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
    /// Row of the source size, or [`NONE`](super::NONE).
    pub(crate) src_bytes: Row,
    /// Predicate to ignore the source, and its negation; [`NONE`](super::NONE) if absent.
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
    /// Row of the leading dimension in elements, or [`NONE`](super::NONE) for the least.
    pub(crate) stride: Row,
    /// One element of each lane. Addresses and data are in rows of their own, as many of data as 16 bytes take.
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
