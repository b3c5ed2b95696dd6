//! The rank formula: wavefronts of an access whose lanes are linear over F2.
//!
//! Example: a column of `f32`s, rows of 128 bytes. Lane bit `j` goes to offset bit `7 + j`: the words have rank 5, the banks rank 0,
//! so a phase costs `2^5 = 32` wavefronts.

use crate::banks::{Access, NVIDIA};
use crate::f2::{LinearMap, Span};

/// Wavefronts (NVIDIA shared memory) and their ideal, where `lanes` maps the lane's bits to byte-offset bits. The lanes of a phase span a
/// subspace, and so do its words and its banks: each bank that is used at all serves `2^(rank of words - rank of banks)` words.
///
/// ```
/// use layout_core::{banks::Access, f2::LinearMap, proof::wavefronts_by_rank};
/// // A column: lane bit j goes to offset bit 7 + j.
/// let column = LinearMap::from_columns(&[1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11], 12).unwrap();
/// assert_eq!(wavefronts_by_rank(Access::Ld32, &column), (32, 1));
/// ```
pub const fn wavefronts_by_rank(access: Access, lanes: &LinearMap) -> (u32, u32) {
    let lane_bits = lanes.in_bits();
    let mut phase_bits = if access.matrices().is_some() {
        3
    } else {
        NVIDIA.phase_lanes[access.bytes().trailing_zeros() as usize].trailing_zeros()
    };
    // The pair rule: neighbours agree exactly if their bit maps to 0.
    if access.has_pair_rule()
        && ((lane_bits > 0 && lanes.column(0) == 0) || (lane_bits > 1 && lanes.column(1) == 0))
    {
        phase_bits += 1;
    }
    if phase_bits > lane_bits {
        phase_bits = lane_bits;
    }
    let mut words = Span::new();
    let mut banks = Span::new();
    let mut bit = 0;
    while bit < phase_bits {
        words.insert(lanes.column(bit) >> 2);
        banks.insert(lanes.column(bit) >> 2 & 31);
        bit += 1;
    }
    // The words inside a wide access.
    let mut byte = 4;
    while byte < access.bytes() {
        words.insert(byte as u64 >> 2);
        banks.insert(byte as u64 >> 2);
        byte *= 2;
    }
    let phases = 1 << (lane_bits - phase_bits);
    let ideal = if words.dimension() > 5 {
        1 << (words.dimension() - 5)
    } else {
        1
    };
    (
        phases << (words.dimension() - banks.dimension()),
        phases * ideal,
    )
}
