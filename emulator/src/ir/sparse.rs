//! The operands that only products with a sparse A have.

use super::{MmaType, Row};

/// The metadata of a sparse A.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sparse {
    /// Row of the metadata.
    pub(crate) meta: Row,
    /// The sparsity selector: which lanes of four give metadata.
    pub(crate) selector: u8,
    /// The text promises that the places in a chunk ascend.
    pub(crate) ordered: bool,
}

/// Bits of metadata to a row of A of full depth `k`.
pub(crate) fn metadata_bits(t: MmaType, k: u32) -> u32 {
    match t {
        MmaType::Tf32 => 2 * k,
        MmaType::S4 | MmaType::U4 => k / 2,
        _ => k,
    }
}
