//! Copy instructions: the elements that each thread reads and writes.
//!
//! A copy moves a small block of elements between memory and registers. Both sides are thread-value layouts into the same
//! numbering of the block, so that addresses and received values are related by composition alone. For `ldmatrix` the
//! block is 8×8 halves for each matrix, numbered `8·row + col + 64·matrix` (a row is the 16 contiguous bytes at one
//! address):
//!
//! ```text
//! src  ((8,4),8):((8,64),1)          lane 8j + r points at row r of matrix j, which is 8 elements
//! dst  ((4,8),(2,4)):((2,8),(1,64))  lane 4g + t gets row g, columns 2t and 2t+1, of each matrix
//!                                    .trans: rows 2t and 2t+1, column g: ((4,8),(2,4)):((16,1),(8,64))
//! ```
//!
//! With fewer than four matrices the upper lanes' addresses are not used; they repeat the lower ones here (stride 0), as the
//! PTX ISA advises for `sm_75`. `stmatrix` is the inverse: source and destination change places. The matrices of bytes of
//! `sm_100a` are described at [`LDMATRIX_M16N16_X1`](super::LDMATRIX_M16N16_X1).

use super::{Scalar, Target, tv};
use crate::error::{LayoutError, at_least_one, attempt};
use crate::layout::Layout;

/// A copy instruction of `threads` threads.
///
/// ```
/// use layout_core::atoms::LDMATRIX_X4;
/// // Lane 9 points at row 1 of matrix 1. Lane 5 gets columns 2 and 3 of row 1 of matrix 0.
/// assert_eq!(LDMATRIX_X4.src.at(&[9, 0]), 64 + 8);
/// assert_eq!([0, 1].map(|value| LDMATRIX_X4.dst.at(&[5, value])), [8 + 2, 8 + 3]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct CopyAtom {
    /// The instruction in PTX, without state space for plain loads and stores.
    pub name: &'static str,
    /// Threads that execute it together: 32 or 1.
    pub threads: i64,
    /// Bits of an element of the two layouts.
    pub element_bits: i64,
    /// `(thread, value) -> element` of the block: the elements of the thread's source operand.
    pub src: Layout,
    /// `(thread, value) -> element` of the block: the elements of the thread's destination operand.
    pub dst: Layout,
    /// Whether memory is the destination (a store, or shared memory's side of `cp.async`) rather than the source.
    pub stores: bool,
    /// Rows and columns of one matrix as it lies in memory: element `column + COLUMNS·row + ROWS·COLUMNS·matrix`. One row for
    /// a copy by one thread.
    pub matrix: [i64; 2],
    /// Bits of an element in memory: those of the layouts, or 4 or 6 where the copy widens elements to bytes. Such elements are
    /// packed at the start of their row of 16 bytes.
    pub memory_bits: i64,
    /// The processors that have the instruction.
    pub target: Target,
}

impl CopyAtom {
    /// A copy whose matrices have `matrix` rows and columns in memory. Threads are counted by the layouts, which must agree.
    ///
    /// ```
    /// use layout_core::atoms::{CopyAtom, Target};
    /// use layout_core::{Layout, expect};
    /// // Each of 32 lanes loads four neighbouring bytes.
    /// const LANES: Layout = expect(Layout::flat(&[32, 4], &[4, 1]));
    /// const LOAD: CopyAtom =
    ///     expect(CopyAtom::new("ld.shared.b32", 8, LANES, LANES, false, [1, 128], Target::Sm(50)));
    /// assert_eq!((LOAD.threads, LOAD.elements()), (32, 128));
    /// ```
    ///
    /// # Errors
    ///
    /// A source and a destination of different numbers of threads; registers that do not hold each element of the block exactly
    /// once; addresses that reach other elements, or miss some; matrices that do not divide the block.
    pub const fn new(
        name: &'static str,
        element_bits: i64,
        src: Layout,
        dst: Layout,
        stores: bool,
        matrix: [i64; 2],
        target: Target,
    ) -> Result<Self, LayoutError> {
        const OPERATION: &str = "a copy atom";
        let threads = attempt!(src.get(0)).size();
        let atom = Self {
            name,
            threads,
            element_bits,
            src,
            dst,
            stores,
            matrix,
            memory_bits: element_bits,
            target,
        };
        let other = attempt!(dst.get(0)).size();
        if other != threads {
            return Err(LayoutError::NumberMismatch {
                operation: OPERATION,
                argument: "the number of threads of the destination",
                value: other,
                expected: threads,
            });
        }
        if element_bits < 1 || element_bits > 128 {
            return Err(LayoutError::InvalidNumber {
                operation: OPERATION,
                argument: "the width of an element in bits",
                value: element_bits,
                accepted: "1 to 128",
            });
        }
        let (registers, memory) = (atom.registers(), atom.memory());
        let elements = registers.size();
        let (least, most) = memory.offset_range();
        if !registers.is_bijective()
            || least < 0
            || most >= elements
            || !memory.is_surjective_onto(elements)
        {
            return Err(LayoutError::Unsupported {
                operation: OPERATION,
                given: "a pair of layouts that do not hold the same elements once each",
                accepted: "layouts (thread, value) -> element of one block",
            });
        }
        if matrix[0] < 1
            || matrix[1] < 1
            || matrix[0] > elements / matrix[1]
            || elements % (matrix[0] * matrix[1]) != 0
        {
            return Err(LayoutError::InvalidNumber {
                operation: OPERATION,
                argument: "the number of elements",
                value: elements,
                accepted: "a multiple of the rows times the columns of a matrix, both at least 1",
            });
        }
        Ok(atom)
    }

    /// Elements in the block that the atom moves.
    ///
    /// ```
    /// use layout_core::atoms::LDMATRIX_X4;
    /// assert_eq!(LDMATRIX_X4.elements(), 4 * 64);
    /// ```
    pub const fn elements(&self) -> i64 {
        if self.stores {
            self.src.size()
        } else {
            self.dst.size()
        }
    }

    /// The side in registers; for `cp.async`, which does not use registers, either side.
    ///
    /// ```
    /// use layout_core::atoms::{LDMATRIX_X4, STMATRIX_X4};
    /// assert_eq!(LDMATRIX_X4.registers(), LDMATRIX_X4.dst);
    /// assert_eq!(STMATRIX_X4.registers(), STMATRIX_X4.src);
    /// ```
    pub const fn registers(&self) -> Layout {
        if self.stores { self.src } else { self.dst }
    }

    /// The side in memory that lanes address.
    ///
    /// ```
    /// use layout_core::atoms::{LDMATRIX_X4, STMATRIX_X4};
    /// assert_eq!(LDMATRIX_X4.memory(), LDMATRIX_X4.src);
    /// assert_eq!(STMATRIX_X4.memory(), STMATRIX_X4.dst);
    /// ```
    pub const fn memory(&self) -> Layout {
        if self.stores { self.dst } else { self.src }
    }

    /// The same instruction on elements of another width: `ldmatrix` moves pairs of bytes, or halves of `tf32`, as well.
    ///
    /// ```
    /// use layout_core::atoms;
    /// assert_eq!(atoms::CP_ASYNC_16.recast(16).unwrap().elements(), 8);
    /// assert_eq!(atoms::LDMATRIX_X4.recast(32).unwrap().dst.to_string(), "((4,8),(1,4)):((1,4),(1,32))");
    /// assert!(atoms::LDMATRIX_X4_TRANS.recast(8).is_err()); // would split pairs of bytes
    /// ```
    ///
    /// # Errors
    ///
    /// An element width that is neither a multiple nor a divisor of the instruction's unit, or an element split between lanes.
    pub const fn recast(&self, element_bits: i64) -> Result<Self, LayoutError> {
        let (old, new) = (self.element_bits, element_bits);
        if self.memory_bits != old {
            return Err(LayoutError::Unsupported {
                operation: "recast of a copy atom",
                given: self.name,
                accepted: "a copy that does not widen its elements",
            });
        }
        let src = attempt!(self.src.recast(old, new));
        let dst = attempt!(self.dst.recast(old, new));
        let lanes = [attempt!(src.get(0)).size(), attempt!(dst.get(0)).size()];
        let mut side = 0;
        while side < 2 {
            if lanes[side] != self.threads {
                return Err(LayoutError::InvalidNumber {
                    operation: "recast of a copy atom",
                    argument: "the width of an element in bits",
                    value: new,
                    accepted: "a width at which no element is torn apart between threads",
                });
            }
            side += 1;
        }
        Ok(Self {
            element_bits,
            src,
            dst,
            matrix: [self.matrix[0], self.matrix[1] * old / new],
            memory_bits: new,
            ..*self
        })
    }
}

const ROWS_X1: Layout = tv("((8,4),8):((8,0),1)");
const ROWS_X2: Layout = tv("((8,2,2),8):((8,64,0),1)");
const ROWS_X4: Layout = tv("((8,4),8):((8,64),1)");
const FRAGMENT_X1: Layout = tv("((4,8),2):((2,8),1)");
const FRAGMENT_X2: Layout = tv("((4,8),(2,2)):((2,8),(1,64))");
const FRAGMENT_X4: Layout = tv("((4,8),(2,4)):((2,8),(1,64))");
const FRAGMENT_X1_TRANS: Layout = tv("((4,8),2):((16,1),8)");
const FRAGMENT_X2_TRANS: Layout = tv("((4,8),(2,2)):((16,1),(8,64))");
const FRAGMENT_X4_TRANS: Layout = tv("((4,8),(2,4)):((16,1),(8,64))");

/// Declares `ldmatrix` or `stmatrix` atoms.
macro_rules! matrix_copies {
    ($($name:ident, $ptx:literal, $src:ident, $dst:ident, $stores:literal, $arch:literal;)*) => {
        $(
            #[doc = concat!("`", $ptx, "`.")]
            pub const $name: CopyAtom = CopyAtom {
                name: $ptx,
                threads: 32,
                element_bits: 16,
                src: $src,
                dst: $dst,
                stores: $stores,
                matrix: [8, 8],
                memory_bits: 16,
                target: Target::Sm($arch),
            };
        )*
    };
}

matrix_copies! {
    LDMATRIX_X1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16", ROWS_X1, FRAGMENT_X1, false, 75;
    LDMATRIX_X2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16", ROWS_X2, FRAGMENT_X2, false, 75;
    LDMATRIX_X4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", ROWS_X4, FRAGMENT_X4, false, 75;
    LDMATRIX_X1_TRANS, "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", ROWS_X1, FRAGMENT_X1_TRANS, false, 75;
    LDMATRIX_X2_TRANS, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", ROWS_X2, FRAGMENT_X2_TRANS, false, 75;
    LDMATRIX_X4_TRANS, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", ROWS_X4, FRAGMENT_X4_TRANS, false, 75;
    STMATRIX_X1, "stmatrix.sync.aligned.m8n8.x1.shared.b16", FRAGMENT_X1, ROWS_X1, true, 90;
    STMATRIX_X2, "stmatrix.sync.aligned.m8n8.x2.shared.b16", FRAGMENT_X2, ROWS_X2, true, 90;
    STMATRIX_X4, "stmatrix.sync.aligned.m8n8.x4.shared.b16", FRAGMENT_X4, ROWS_X4, true, 90;
    STMATRIX_X1_TRANS, "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16", FRAGMENT_X1_TRANS, ROWS_X1, true, 90;
    STMATRIX_X2_TRANS, "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16", FRAGMENT_X2_TRANS, ROWS_X2, true, 90;
    STMATRIX_X4_TRANS, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", FRAGMENT_X4_TRANS, ROWS_X4, true, 90;
}

/// A copy by one thread of `values` contiguous elements.
const fn contiguous(
    name: &'static str,
    values: i64,
    element_bits: i64,
    stores: bool,
    min_arch: u32,
) -> Result<CopyAtom, LayoutError> {
    let thread = attempt!(Layout::mode(1, 0));
    let block = attempt!(Layout::tuple(&[thread, attempt!(Layout::mode(values, 1))]));
    Ok(CopyAtom {
        name,
        threads: 1,
        element_bits,
        src: block,
        dst: block,
        stores,
        matrix: [1, values],
        memory_bits: element_bits,
        target: Target::Sm(min_arch),
    })
}

/// `cp.async` of 4 bytes a thread, elements being bytes.
///
/// ```
/// use layout_core::atoms::CP_ASYNC_4;
/// assert_eq!(CP_ASYNC_4.recast(32).unwrap().elements(), 1);
/// ```
pub const CP_ASYNC_4: CopyAtom =
    crate::expect(contiguous("cp.async.ca.shared.global 4", 4, 8, true, 80));
/// `cp.async` of 8 bytes a thread, elements being bytes.
///
/// ```
/// use layout_core::atoms::CP_ASYNC_8;
/// assert_eq!((CP_ASYNC_8.threads, CP_ASYNC_8.elements()), (1, 8));
/// ```
pub const CP_ASYNC_8: CopyAtom =
    crate::expect(contiguous("cp.async.ca.shared.global 8", 8, 8, true, 80));
/// `cp.async` of 16 bytes a thread past L1, elements being bytes.
///
/// ```
/// use layout_core::atoms::CP_ASYNC_16;
/// assert_eq!(CP_ASYNC_16.recast(16).unwrap().elements(), 8);
/// ```
pub const CP_ASYNC_16: CopyAtom =
    crate::expect(contiguous("cp.async.cg.shared.global 16", 16, 8, true, 80));

/// A plain load or store of `values` contiguous elements by one thread, as a vector of at most 16 bytes.
///
/// ```
/// use layout_core::atoms::{Scalar, vector_copy};
/// assert_eq!(vector_copy(4, Scalar::F32, false).unwrap().elements(), 4); // ld.v4.b32
/// assert!(vector_copy(8, Scalar::F32, false).is_err()); // 32 bytes
/// ```
///
/// # Errors
///
/// Fewer than one value, or a width that is not 1, 2, 4, 8 or 16 bytes.
pub const fn vector_copy(
    values: i64,
    scalar: Scalar,
    stores: bool,
) -> Result<CopyAtom, LayoutError> {
    attempt!(at_least_one(
        "a vector copy",
        "the number of values",
        values
    ));
    let bits = values.saturating_mul(scalar.bits());
    let name = match (bits, stores) {
        (8, false) => "ld.b8",
        (16, false) => "ld.b16",
        (32, false) => "ld.b32",
        (64, false) => "ld.v2.b32",
        (128, false) => "ld.v4.b32",
        (8, true) => "st.b8",
        (16, true) => "st.b16",
        (32, true) => "st.b32",
        (64, true) => "st.v2.b32",
        (128, true) => "st.v4.b32",
        _ => {
            return Err(LayoutError::InvalidNumber {
                operation: "a vector copy",
                argument: "the width of the vector in bits",
                value: bits,
                accepted: "8, 16, 32, 64 or 128",
            });
        }
    };
    contiguous(name, values, scalar.bits(), stores, 50)
}

/// Every warp-wide or asynchronous copy atom of elements that keep their width, apart from those of
/// [`BYTE_MATRIX_ATOMS`](super::BYTE_MATRIX_ATOMS).
///
/// ```
/// use layout_core::atoms::{COPY_ATOMS, LDMATRIX_X4};
/// let name = "ldmatrix.sync.aligned.m8n8.x4.shared.b16";
/// assert_eq!(COPY_ATOMS.iter().find(|atom| atom.name == name), Some(&&LDMATRIX_X4));
/// ```
pub const COPY_ATOMS: &[&CopyAtom] = &[
    &LDMATRIX_X1,
    &LDMATRIX_X2,
    &LDMATRIX_X4,
    &LDMATRIX_X1_TRANS,
    &LDMATRIX_X2_TRANS,
    &LDMATRIX_X4_TRANS,
    &STMATRIX_X1,
    &STMATRIX_X2,
    &STMATRIX_X4,
    &STMATRIX_X1_TRANS,
    &STMATRIX_X2_TRANS,
    &STMATRIX_X4_TRANS,
    &CP_ASYNC_4,
    &CP_ASYNC_8,
    &CP_ASYNC_16,
];
