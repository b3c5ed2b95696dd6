//! `mma.sp`: A with half of its elements left out, and the metadata that says which half.
//!
//! A row of A is cut into *chunks* of adjacent elements, of which half are stored: 2 of 4 for 16- and 8-bit types, 1 of 2 for
//! `tf32`, two adjacent pairs of 8 for 4-bit types. The stored elements, in order, are the *compressed* A, M×K/2; its fragment is
//! that of the dense instruction of half the K. The 4-bit *field* of a chunk says which were stored:
//!
//! | type | field |
//! |---|---|
//! | 16 and 8 bits | bits 0 and 1: where in the chunk the first stored element was; bits 2 and 3: the second |
//! | 4 bits | the same of pairs of elements |
//! | `tf32` | `0b0100` the first element of the two, `0b1110` the second |
//!
//! A lane has one 32-bit metadata register, so eight fields, the first in the lowest bits. Not all lanes' registers are read: of
//! each quad (four lanes with the same `g = lane >> 2`) the *selector*, an immediate of the instruction, says which *providers*
//! are. With f the number of the field and `chunks = K / chunk`:
//!
//! | instruction | providers of a quad | field f of provider p is of |
//! |---|---|---|
//! | 16-bit k16, `tf32` k8 | lane `selector` | row g + 8·(f >> 2), chunk f & 3 |
//! | 16-bit k32, `tf32` k16 | lanes `2·selector + p`, p < 2 | row g + 8·(f >> 2), chunk 4p + (f & 3) |
//! | 8-bit k32, 4-bit k64 | lanes `2·selector + p`, p < 2 | row g + 8p, chunk f |
//! | 8-bit k64, 4-bit k128 | all: p < 4 | row g + 8·(p & 1), chunk 8·(p >> 1) + f |
//!
//! ```
//! use layout_core::atoms;
//! let atom = atoms::MMA_SP_ORDERED_M16N8K16_F16;
//! // Whose register says which two of columns 4..8 of row 11 were stored, with selector 2?
//! let (row, chunk) = (11, 1);
//! let (lane, field) = atom.metadata_of(row, chunk, 2).unwrap();
//! assert_eq!((lane, field), (4 * 3 + 2, 5)); // lane 14, bits 20 to 23
//! ```
//!
//! Sources: PTX ISA 9.0, sections 9.7.14.6.1 to 9.7.14.6.3, whose figures 119 to 147 show the metadata; CuTe's
//! `mma_traits_sm120_sparse.hpp`. The table was measured on an H100 for every row of it, by changing one field at a time.

use super::kinds::{F8F6F4, SM_120A, accumulator_number, f8f6f4_number, f8f6f4_table};
use super::mma_sync::{
    A_16X4, A_16X8_B16, A_16X8_B32, A_16X16_B8, A_16X16_B16, A_16X32_B4, A_16X32_B8, A_16X64_B4,
    B_8X8_B32, B_8X16_B16, B_8X16_B32, B_8X32_B8, B_8X32_B16, B_8X64_B4, B_8X64_B8, B_8X128_B4,
    C_16X8,
};
use super::{MmaAtom, Scalar, Target, tv};
use crate::error::{LayoutError, attempt, fits};
use crate::layout::Layout;

/// A sparse matrix instruction: A is stored with half of its elements.
///
/// ```
/// use layout_core::atoms::MMA_SP_ORDERED_M16N8K32_F16;
/// let atom = MMA_SP_ORDERED_M16N8K32_F16;
/// assert_eq!((atom.mma.k, atom.mma.a.size()), (32, 16 * 16)); // half of A is stored
/// assert_eq!((atom.chunk, atom.stored()), (4, 2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct SparseMmaAtom {
    /// The instruction. Its K is that of the whole A, with the elements that are left out; its `a` is the compressed A,
    /// `(thread, value) -> m + M·(compressed column)`, K/2 columns.
    pub mma: MmaAtom,
    /// Whether the positions of a field must ascend: `mma.sp::ordered_metadata`, which runs faster on recent processors.
    pub ordered: bool,
    /// Adjacent elements of a row that share a field of metadata.
    pub chunk: i64,
    /// Elements that are stored or left out together: 2 for 4-bit types, otherwise 1.
    pub unit: i64,
    /// `(provider, field) -> row + M·chunk`. A field is 4 bits of the provider's register, field 0 the lowest.
    pub metadata: Layout,
    /// `(selector, provider) -> lane`: whose register is read.
    pub providers: Layout,
}

impl SparseMmaAtom {
    /// An atom for an instruction of which this crate has no table. `chunk`, `unit`, `metadata` and `providers` are those of
    /// the fields.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_SP_M16N8K16_F16, SparseMmaAtom};
    /// let atom = MMA_SP_M16N8K16_F16;
    /// let same = SparseMmaAtom::new(atom.mma, false, [4, 1], atom.metadata, atom.providers);
    /// assert_eq!(same, Ok(atom));
    /// let chunks_of_3 = SparseMmaAtom::new(atom.mma, false, [3, 1], atom.metadata, atom.providers);
    /// assert!(chunks_of_3.is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// A chunk that does not divide K or is not twice a multiple of the unit; a compressed A that does not hold each stored
    /// element; metadata that does not have exactly one field for each chunk; another number of providers, or providers that are not
    /// lanes of the atom; the errors of [`MmaAtom::checked`] for B, C and D.
    pub const fn new(
        mma: MmaAtom,
        ordered: bool,
        [chunk, unit]: [i64; 2],
        metadata: Layout,
        providers: Layout,
    ) -> Result<Self, LayoutError> {
        let atom = Self {
            mma,
            ordered,
            chunk,
            unit,
            metadata,
            providers,
        };
        atom.checked()
    }

    /// The atom, if its parts fit each other.
    ///
    /// ```
    /// use layout_core::atoms::MMA_SP_M16N8K16_F16;
    /// let mut atom = MMA_SP_M16N8K16_F16;
    /// assert!(atom.checked().is_ok());
    /// atom.chunk = 3;
    /// assert!(atom.checked().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub const fn checked(self) -> Result<Self, LayoutError> {
        const OPERATION: &str = "a sparse mma atom";
        let (chunk, unit, mma) = (self.chunk, self.unit, self.mma);
        attempt!(mma.check_numbers());
        if unit < 1
            || chunk < 2
            || unit > chunk / 2
            || chunk % (2 * unit) != 0
            || mma.k % chunk != 0
        {
            return Err(LayoutError::InvalidNumber {
                operation: OPERATION,
                argument: "the chunk",
                value: chunk,
                accepted: "a divisor of K that is twice a multiple of the unit",
            });
        }
        // B, C and D are those of a dense atom; A is dense in half the columns.
        let mut compressed = mma;
        compressed.k = mma.k / 2;
        compressed.b = attempt!(Layout::tuple(&[
            attempt!(Layout::mode(mma.threads, 0)),
            attempt!(Layout::mode(mma.n * mma.k / 2, 1)),
        ]));
        let _compressed = attempt!(compressed.checked());
        let mut dense = mma;
        dense.a = attempt!(Layout::tuple(&[
            attempt!(Layout::mode(mma.threads, 0)),
            attempt!(Layout::mode(mma.m * mma.k, 1)),
        ]));
        let _dense = attempt!(dense.checked());
        let fields = mma.m * mma.k / chunk;
        if self.metadata.size() != fields || !self.metadata.is_bijective() {
            return Err(LayoutError::Unsupported {
                operation: OPERATION,
                given: "metadata that has not exactly one field for each chunk",
                accepted: "a bijective layout (provider, field) -> row + M*chunk",
            });
        }
        let providers = attempt!(self.metadata.get(0)).size();
        let (least, most) = self.providers.offset_range();
        if self.providers.rank() != 2
            || attempt!(self.providers.get(1)).size() != providers
            || least < 0
            || most >= mma.threads
        {
            return Err(LayoutError::Unsupported {
                operation: OPERATION,
                given: "a layout of providers that does not name a lane for each provider of the metadata",
                accepted: "a layout (selector, provider) -> lane",
            });
        }
        Ok(self)
    }

    /// Selectors that the instruction takes: 0 up to this, exclusive.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K64_S8};
    /// let atoms = [MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K64_S8];
    /// assert_eq!(atoms.map(|atom| atom.selectors()), [4, 2, 1]);
    /// ```
    pub const fn selectors(&self) -> i64 {
        match self.providers.get(0) {
            Ok(mode) => mode.size(),
            Err(_) => 0,
        }
    }

    /// Stored elements of a chunk.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_SP_M16N8K16_F16, MMA_SP_M16N8K8_TF32};
    /// assert_eq!((MMA_SP_M16N8K16_F16.stored(), MMA_SP_M16N8K8_TF32.stored()), (2, 1));
    /// ```
    pub const fn stored(&self) -> i64 {
        self.chunk / 2
    }

    /// Columns of A, of the whole, that a register of metadata of all lanes describes: those of one atom for each selector.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K8_TF32};
    /// let atoms = [MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K8_TF32];
    /// assert_eq!(atoms.map(|atom| atom.metadata_k()), [Ok(64), Ok(64), Ok(32)]);
    /// ```
    ///
    /// # Errors
    ///
    /// A number that overflows.
    pub const fn metadata_k(&self) -> Result<i64, LayoutError> {
        fits(
            self.selectors().checked_mul(self.mma.k),
            "the columns that metadata describes",
        )
    }

    /// What a register of metadata holds: `(field, lane) -> row + M·chunk` over [`metadata_k`](Self::metadata_k) columns. Atom `selector` of
    /// those along K reads its part of it. It follows from [`metadata`](Self::metadata) and [`providers`](Self::providers), and it is the
    /// order of metadata in memory from which each lane loads a word: instructions of one type that differ in K share it.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K64_S8};
    /// let words = [MMA_SP_M16N8K16_F16, MMA_SP_M16N8K32_F16, MMA_SP_M16N8K64_S8].map(|atom| atom.metadata_word().unwrap());
    /// assert_eq!(words[0].to_string(), "((4,2),(4,8)):((16,8),(64,1))");
    /// assert_eq!(words[0], words[1]);
    /// assert_eq!(words[2].to_string(), "(8,(2,2,8)):(16,(8,128,1))");
    /// ```
    ///
    /// # Errors
    ///
    /// Selectors whose providers are not all lanes, each once.
    pub const fn metadata_word(&self) -> Result<Layout, LayoutError> {
        // (selector, provider) -> lane, inverted.
        let of_lane = attempt!(self.providers.right_inverse());
        if of_lane.size() != self.mma.threads || self.providers.size() != self.mma.threads {
            return Err(LayoutError::NotBijective {
                operation: "the providers of a sparse mma atom",
                size: self.providers.size(),
                cosize: self.mma.threads,
            });
        }
        // (selector, provider) -> row + M·chunk of the provider's first field: chunks of an atom lie behind those of the one before.
        let per_atom = self.mma.m * (self.mma.k / self.chunk);
        let selectors = attempt!(Layout::mode(self.selectors(), per_atom));
        let places = attempt!(Layout::tuple(&[selectors, attempt!(self.metadata.get(0))]));
        Layout::tuple(&[
            attempt!(self.metadata.get(1)).coalesce(),
            attempt!(places.compose(&of_lane)).coalesce(),
        ])
    }

    /// A word of metadata as it lies in memory: of row `at[0]` of atoms (M rows of A each), word `at[1]`. A row of atoms has as many words for
    /// each [`metadata_k`](Self::metadata_k) columns as the atom has lanes. `field` gives the field of a row and a chunk of A.
    ///
    /// ```
    /// use layout_core::atoms::MMA_SP_ORDERED_M16N8K32_F16;
    /// // Every chunk stores its elements 1 and 3, except chunk 5 of row 9, which stores 0 and 1.
    /// let field = |row: i64, chunk: i64| if (row, chunk) == (9, 5) { 0b0100 } else { 0b1101 };
    /// let words = [4, 5].map(|word| MMA_SP_ORDERED_M16N8K32_F16.metadata_in_memory([0, word], field).unwrap());
    /// // Lane 4·1 + 1 has chunks 4 to 7 of rows 1 and 9.
    /// assert_eq!(words, [0xdddd_dddd, 0xdd4d_dddd]);
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`metadata_word`](Self::metadata_word).
    pub fn metadata_in_memory(
        &self,
        [row, word]: [i64; 2],
        field: impl Fn(i64, i64) -> u32,
    ) -> Result<u32, LayoutError> {
        let (layout, lanes, m) = (self.metadata_word()?, self.mma.threads, self.mma.m);
        let chunks = self.metadata_k()? / self.chunk;
        let (block, lane) = (word / lanes, word % lanes);
        Ok((0..layout.size() / lanes).fold(0, |sum, number| {
            let at = layout.at(&[number, lane]);
            let bits = field(m * row + at % m, chunks * block + at / m) & 0xf;
            sum | bits << (4 * number)
        }))
    }

    /// The lane and the field (4 bits, the lowest being field 0) that say which elements of a chunk of A are stored.
    ///
    /// ```
    /// use layout_core::atoms::MMA_SP_M16N8K16_F16;
    /// // Chunk 1 of row 11 with selector 2: lane 4·3 + 2, field 4 + 1.
    /// assert_eq!(MMA_SP_M16N8K16_F16.metadata_of(11, 1, 2), Ok((14, 5)));
    /// assert!(MMA_SP_M16N8K16_F16.metadata_of(16, 0, 0).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// A row, chunk or selector out of range.
    pub const fn metadata_of(
        &self,
        row: i64,
        chunk: i64,
        selector: i64,
    ) -> Result<(i64, i64), LayoutError> {
        let bounds = [
            ("the row", row, self.mma.m),
            ("the chunk", chunk, self.mma.k / self.chunk),
            ("the selector", selector, self.selectors()),
        ];
        let mut i = 0;
        while i < bounds.len() {
            let (argument, value, extent) = bounds[i];
            if value < 0 || value >= extent {
                return Err(LayoutError::NumberOutOfRange {
                    operation: self.mma.name,
                    argument,
                    value,
                    least: 0,
                    most: extent - 1,
                });
            }
            i += 1;
        }
        let providers = attempt!(self.metadata.get(0)).size();
        let fields = attempt!(self.metadata.get(1)).size();
        let mut provider = 0;
        while provider < providers {
            let mut field = 0;
            while field < fields {
                if self.metadata.at(&[provider, field]) == row + self.mma.m * chunk {
                    return Ok((self.providers.at(&[selector, provider]), field));
                }
                field += 1;
            }
            provider += 1;
        }
        Err(LayoutError::Unsupported {
            operation: self.mma.name,
            given: "metadata without a field for this row and chunk",
            accepted: "an atom that `checked` accepts",
        })
    }
}

/// `(selector, provider) -> lane` and `(provider, field) -> row + 16·chunk`.
type Metadata = [Layout; 2];

/// One lane of each quad has the fields of rows g and g + 8.
const ONE: Metadata = [tv("(4,8):(1,4)"), tv("(8,(4,2)):(1,(16,8))")];
/// Two lanes, each half of the columns of both rows.
const PAIR_BY_COLUMNS: Metadata = [
    tv("(2,(2,8)):(2,(1,4))"),
    tv("((2,8),(4,2)):((64,1),(16,8))"),
];
/// Two lanes, each one of the rows.
const PAIR_BY_ROWS: Metadata = [tv("(2,(2,8)):(2,(1,4))"), tv("((2,8),8):((8,1),16)")];
/// All four lanes, each half of the columns of one of the rows.
const QUAD: Metadata = [tv("(1,32):(0,1)"), tv("((2,2,8),8):((8,128,1),16)")];

/// An atom of m16n8.
const fn sparse(
    name: &'static str,
    ordered: bool,
    k: i64,
    types: [Scalar; 3],
    [a, b]: [Layout; 2],
    [providers, metadata]: Metadata,
    target: Target,
) -> SparseMmaAtom {
    let [chunk, unit] = match types[0].bits() {
        32 => [2, 1],
        4 => [8, 2],
        _ => [4, 1],
    };
    SparseMmaAtom {
        mma: MmaAtom::unchecked(name, [16, 8, k, 1], 32, types, [a, b, C_16X8], target),
        ordered,
        chunk,
        unit,
        metadata,
        providers,
    }
}

/// Declares each atom with plain and with ordered metadata, and the list of all.
macro_rules! atoms {
    ($($doc:literal, $plain:ident $ordered:ident: $k:literal, $ptx:literal,
       $d:ident $a:ident $b:ident, $la:ident $lb:ident $meta:ident, $arch:literal;)*) => {
        $(
            #[doc = concat!($doc, ".")]
            pub const $plain: SparseMmaAtom = sparse(
                concat!("mma.sp", $ptx),
                false,
                $k,
                [Scalar::$a, Scalar::$b, Scalar::$d],
                [$la, $lb],
                $meta,
                Target::Sm($arch),
            );
            #[doc = concat!($doc, ", positions in ascending order.")]
            pub const $ordered: SparseMmaAtom = sparse(
                concat!("mma.sp::ordered_metadata", $ptx),
                true,
                $k,
                [Scalar::$a, Scalar::$b, Scalar::$d],
                [$la, $lb],
                $meta,
                Target::Sm($arch),
            );
        )*

        /// Every `mma.sp` atom whose types have no `.kind`.
        ///
        /// ```
        /// use layout_core::atoms::SPARSE_MMA_ATOMS;
        /// // Each instruction with plain and with ordered metadata.
        /// let ordered = SPARSE_MMA_ATOMS.iter().filter(|atom| atom.ordered);
        /// assert_eq!(2 * ordered.count(), SPARSE_MMA_ATOMS.len());
        /// ```
        pub const SPARSE_MMA_ATOMS: &[&SparseMmaAtom] = &[$(&$plain, &$ordered),*];
    };
}

atoms! {
    "`f16` into `f32`, 16×8×16", MMA_SP_M16N8K16_F16 MMA_SP_ORDERED_M16N8K16_F16: 16, ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        F32 F16 F16, A_16X8_B16 B_8X16_B16 ONE, 80;
    "`f16` into `f16`, 16×8×16", MMA_SP_M16N8K16_F16_F16 MMA_SP_ORDERED_M16N8K16_F16_F16: 16, ".sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        F16 F16 F16, A_16X8_B16 B_8X16_B16 ONE, 80;
    "`bf16` into `f32`, 16×8×16", MMA_SP_M16N8K16_BF16 MMA_SP_ORDERED_M16N8K16_BF16: 16, ".sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        F32 Bf16 Bf16, A_16X8_B16 B_8X16_B16 ONE, 80;
    "`f16` into `f32`, 16×8×32", MMA_SP_M16N8K32_F16 MMA_SP_ORDERED_M16N8K32_F16: 32, ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        F32 F16 F16, A_16X16_B16 B_8X32_B16 PAIR_BY_COLUMNS, 80;
    "`f16` into `f16`, 16×8×32", MMA_SP_M16N8K32_F16_F16 MMA_SP_ORDERED_M16N8K32_F16_F16: 32, ".sync.aligned.m16n8k32.row.col.f16.f16.f16.f16",
        F16 F16 F16, A_16X16_B16 B_8X32_B16 PAIR_BY_COLUMNS, 80;
    "`bf16` into `f32`, 16×8×32", MMA_SP_M16N8K32_BF16 MMA_SP_ORDERED_M16N8K32_BF16: 32, ".sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
        F32 Bf16 Bf16, A_16X16_B16 B_8X32_B16 PAIR_BY_COLUMNS, 80;
    "`tf32` into `f32`, 16×8×8", MMA_SP_M16N8K8_TF32 MMA_SP_ORDERED_M16N8K8_TF32: 8, ".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        F32 Tf32 Tf32, A_16X4 B_8X8_B32 ONE, 80;
    "`tf32` into `f32`, 16×8×16", MMA_SP_M16N8K16_TF32 MMA_SP_ORDERED_M16N8K16_TF32: 16, ".sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
        F32 Tf32 Tf32, A_16X8_B32 B_8X16_B32 PAIR_BY_COLUMNS, 80;
    "`s8` into `s32`, 16×8×32", MMA_SP_M16N8K32_S8 MMA_SP_ORDERED_M16N8K32_S8: 32, ".sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X16_B8 B_8X32_B8 PAIR_BY_ROWS, 80;
    "`s8` times `u8` into `s32`, 16×8×32", MMA_SP_M16N8K32_S8_U8 MMA_SP_ORDERED_M16N8K32_S8_U8: 32, ".sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
        S32 S8 U8, A_16X16_B8 B_8X32_B8 PAIR_BY_ROWS, 80;
    "`u8` times `s8` into `s32`, 16×8×32", MMA_SP_M16N8K32_U8_S8 MMA_SP_ORDERED_M16N8K32_U8_S8: 32, ".sync.aligned.m16n8k32.row.col.s32.u8.s8.s32",
        S32 U8 S8, A_16X16_B8 B_8X32_B8 PAIR_BY_ROWS, 80;
    "`u8` into `s32`, 16×8×32", MMA_SP_M16N8K32_U8 MMA_SP_ORDERED_M16N8K32_U8: 32, ".sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X16_B8 B_8X32_B8 PAIR_BY_ROWS, 80;
    "`s8` into `s32`, 16×8×64", MMA_SP_M16N8K64_S8 MMA_SP_ORDERED_M16N8K64_S8: 64, ".sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X32_B8 B_8X64_B8 QUAD, 80;
    "`s8` times `u8` into `s32`, 16×8×64", MMA_SP_M16N8K64_S8_U8 MMA_SP_ORDERED_M16N8K64_S8_U8: 64, ".sync.aligned.m16n8k64.row.col.s32.s8.u8.s32",
        S32 S8 U8, A_16X32_B8 B_8X64_B8 QUAD, 80;
    "`u8` times `s8` into `s32`, 16×8×64", MMA_SP_M16N8K64_U8_S8 MMA_SP_ORDERED_M16N8K64_U8_S8: 64, ".sync.aligned.m16n8k64.row.col.s32.u8.s8.s32",
        S32 U8 S8, A_16X32_B8 B_8X64_B8 QUAD, 80;
    "`u8` into `s32`, 16×8×64", MMA_SP_M16N8K64_U8 MMA_SP_ORDERED_M16N8K64_U8: 64, ".sync.aligned.m16n8k64.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X32_B8 B_8X64_B8 QUAD, 80;
    "`s4` into `s32`, 16×8×64", MMA_SP_M16N8K64_S4 MMA_SP_ORDERED_M16N8K64_S4: 64, ".sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        S32 S4 S4, A_16X32_B4 B_8X64_B4 PAIR_BY_ROWS, 80;
    "`s4` times `u4` into `s32`, 16×8×64", MMA_SP_M16N8K64_S4_U4 MMA_SP_ORDERED_M16N8K64_S4_U4: 64, ".sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
        S32 S4 U4, A_16X32_B4 B_8X64_B4 PAIR_BY_ROWS, 80;
    "`u4` times `s4` into `s32`, 16×8×64", MMA_SP_M16N8K64_U4_S4 MMA_SP_ORDERED_M16N8K64_U4_S4: 64, ".sync.aligned.m16n8k64.row.col.s32.u4.s4.s32",
        S32 U4 S4, A_16X32_B4 B_8X64_B4 PAIR_BY_ROWS, 80;
    "`u4` into `s32`, 16×8×64", MMA_SP_M16N8K64_U4 MMA_SP_ORDERED_M16N8K64_U4: 64, ".sync.aligned.m16n8k64.row.col.s32.u4.u4.s32",
        S32 U4 U4, A_16X32_B4 B_8X64_B4 PAIR_BY_ROWS, 80;
    "`s4` into `s32`, 16×8×128", MMA_SP_M16N8K128_S4 MMA_SP_ORDERED_M16N8K128_S4: 128, ".sync.aligned.m16n8k128.row.col.s32.s4.s4.s32",
        S32 S4 S4, A_16X64_B4 B_8X128_B4 QUAD, 80;
    "`s4` times `u4` into `s32`, 16×8×128", MMA_SP_M16N8K128_S4_U4 MMA_SP_ORDERED_M16N8K128_S4_U4: 128, ".sync.aligned.m16n8k128.row.col.s32.s4.u4.s32",
        S32 S4 U4, A_16X64_B4 B_8X128_B4 QUAD, 80;
    "`u4` times `s4` into `s32`, 16×8×128", MMA_SP_M16N8K128_U4_S4 MMA_SP_ORDERED_M16N8K128_U4_S4: 128, ".sync.aligned.m16n8k128.row.col.s32.u4.s4.s32",
        S32 U4 S4, A_16X64_B4 B_8X128_B4 QUAD, 80;
    "`u4` into `s32`, 16×8×128", MMA_SP_M16N8K128_U4 MMA_SP_ORDERED_M16N8K128_U4: 128, ".sync.aligned.m16n8k128.row.col.s32.u4.u4.s32",
        S32 U4 U4, A_16X64_B4 B_8X128_B4 QUAD, 80;
    "`e4m3` into `f32`, 16×8×64", MMA_SP_M16N8K64_E4M3 MMA_SP_ORDERED_M16N8K64_E4M3: 64, ".sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32",
        F32 E4m3 E4m3, A_16X32_B8 B_8X64_B8 QUAD, 89;
    "`e4m3` times `e5m2` into `f32`, 16×8×64", MMA_SP_M16N8K64_E4M3_E5M2 MMA_SP_ORDERED_M16N8K64_E4M3_E5M2: 64, ".sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32",
        F32 E4m3 E5m2, A_16X32_B8 B_8X64_B8 QUAD, 89;
    "`e5m2` times `e4m3` into `f32`, 16×8×64", MMA_SP_M16N8K64_E5M2_E4M3 MMA_SP_ORDERED_M16N8K64_E5M2_E4M3: 64, ".sync.aligned.m16n8k64.row.col.f32.e5m2.e4m3.f32",
        F32 E5m2 E4m3, A_16X32_B8 B_8X64_B8 QUAD, 89;
    "`e5m2` into `f32`, 16×8×64", MMA_SP_M16N8K64_E5M2 MMA_SP_ORDERED_M16N8K64_E5M2: 64, ".sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32",
        F32 E5m2 E5m2, A_16X32_B8 B_8X64_B8 QUAD, 89;
}

macro_rules! into_f32 {
    ($a:literal, $b:literal) => {
        concat!(
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.",
            $a,
            ".",
            $b,
            ".f32"
        )
    };
}
macro_rules! into_f16 {
    ($a:literal, $b:literal) => {
        concat!(
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f16.",
            $a,
            ".",
            $b,
            ".f16"
        )
    };
}

/// Names by accumulator (`f32`, `f16`), A and B.
const NAMES: [[[&str; 5]; 5]; 2] = [f8f6f4_table!(into_f32), f8f6f4_table!(into_f16)];

/// `mma.sp::ordered_metadata.m16n8k64` of `kind::f8f6f4`: 8-bit slots, chunks of four elements.
///
/// ```
/// use layout_core::atoms::{Scalar, mma_sp_f8f6f4};
/// let atom = mma_sp_f8f6f4(Scalar::E4m3, Scalar::E2m1, Scalar::F32).unwrap();
/// assert_eq!((atom.mma.k, atom.chunk, atom.ordered), (64, 4, true));
/// ```
///
/// # Errors
///
/// A type that is not one of the five of `kind::f8f6f4`, or an accumulator that is neither `f32` nor `f16`.
pub const fn mma_sp_f8f6f4(
    a: Scalar,
    b: Scalar,
    accumulator: Scalar,
) -> Result<SparseMmaAtom, LayoutError> {
    const OPERATION: &str = "mma.sp of kind::f8f6f4";
    let row = attempt!(f8f6f4_number(OPERATION, a));
    let column = attempt!(f8f6f4_number(OPERATION, b));
    let table = attempt!(accumulator_number(OPERATION, accumulator));
    let mut atom = sparse(
        NAMES[table][row][column],
        true,
        64,
        [a, b, accumulator],
        [A_16X32_B8, B_8X64_B8],
        QUAD,
        SM_120A,
    );
    atom.mma.slot_bits[0] = 8;
    atom.mma.slot_bits[1] = 8;
    (atom.chunk, atom.unit) = (4, 1);
    Ok(atom)
}

/// Every `kind::f8f6f4` atom: 25 pairs of types into `f32`, then into `f16`.
///
/// ```
/// use layout_core::atoms::mma_sp_f8f6f4_atoms;
/// assert_eq!(mma_sp_f8f6f4_atoms().count(), 50);
/// ```
pub fn mma_sp_f8f6f4_atoms() -> impl Iterator<Item = SparseMmaAtom> {
    [Scalar::F32, Scalar::F16]
        .into_iter()
        .flat_map(|accumulator| {
            F8F6F4.into_iter().flat_map(move |a| {
                F8F6F4
                    .into_iter()
                    .filter_map(move |b| mma_sp_f8f6f4(a, b, accumulator).ok())
            })
        })
}

/// `m16n8k128` of packed `e2m1` with scales.
const fn e2m1(name: &'static str) -> SparseMmaAtom {
    sparse(
        name,
        true,
        128,
        [Scalar::E2m1, Scalar::E2m1, Scalar::F32],
        [A_16X64_B4, B_8X128_B4],
        QUAD,
        SM_120A,
    )
}

/// `e2m1` with two `ue8m0` scales along k.
///
/// ```
/// use layout_core::atoms::MMA_SP_ORDERED_M16N8K128_MXF4;
/// assert_eq!((MMA_SP_ORDERED_M16N8K128_MXF4.chunk, MMA_SP_ORDERED_M16N8K128_MXF4.unit), (8, 2));
/// ```
pub const MMA_SP_ORDERED_M16N8K128_MXF4: SparseMmaAtom = e2m1(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
);
/// `e2m1` with four `ue4m3` scales along k.
///
/// ```
/// use layout_core::atoms::MMA_SP_ORDERED_M16N8K128_NVF4;
/// assert_eq!(MMA_SP_ORDERED_M16N8K128_NVF4.mma.k, 128);
/// ```
pub const MMA_SP_ORDERED_M16N8K128_NVF4: SparseMmaAtom = e2m1(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
);

/// The sparse atoms of packed `e2m1`. Their scales' registers are not described here.
///
/// ```
/// use layout_core::atoms::SPARSE_E2M1_ATOMS;
/// assert!(SPARSE_E2M1_ATOMS.iter().all(|atom| atom.ordered && atom.mma.k == 128));
/// ```
pub const SPARSE_E2M1_ATOMS: &[&SparseMmaAtom] = &[
    &MMA_SP_ORDERED_M16N8K128_MXF4,
    &MMA_SP_ORDERED_M16N8K128_NVF4,
];
