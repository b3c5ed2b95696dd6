//! The order of 4-bit weights in memory, derived.
//!
//! Three layouts say what a lane does with the 32 values of 4 bits of one 16-byte load:
//!
//! ```text
//! loaded     (lane, nibble) → nibble in memory      (32,32):(32,1)                      a lane's 16 bytes
//! decoded    value → nibble                         (2,4,4):(4,1,8)                     a mask takes nibbles j and j + 4 of a word into the halves of one register
//! operand    (lane, value) → (row, k)               A of mma.m16n8k16, four along k     which weights the instruction wants where
//! ```
//!
//! The order in memory is what makes them agree: nibble → (lane, value) → (row, k), which is `operand ∘ (loaded ∘ decoded)⁻¹`, a composition with an inverse. No value moves between lanes,
//! as the lane that loads a nibble is the one whose operand it is.

use layout_codegen::ir::Element;
use layout_core::atoms::{self, MmaAtom};
use layout_core::{Layout, LayoutError, Operand, TiledMma};

/// Rows of weights of a piece: the load of a warp.
pub const PIECE_ROWS: i64 = 16;

/// Weights of a row of a piece.
pub const PIECE_K: i64 = 64;

/// Words of 32 bits of a piece.
pub const PIECE_WORDS: i64 = PIECE_ROWS * PIECE_K / NIBBLES;

/// Values of 4 bits of a word.
pub(super) const NIBBLES: i64 = 8;

/// Words of a lane.
pub(super) const LANE_WORDS: i64 = 4;

/// The instruction.
pub(super) fn atom(element: Element) -> MmaAtom {
    match element {
        Element::F16 => atoms::MMA_M16N8K16_F16,
        _ => atoms::MMA_M16N8K16_BF16,
    }
}

/// The product of a warp: 16 rows of weights by `n` rows of a, `k` deep. A lane has two rows of weights that are neighbours, and with them their scales.
pub(super) fn product(element: Element, [n, k]: [i64; 2]) -> Result<TiledMma, LayoutError> {
    let rows = Layout::flat(&[8, 2], &[2, 1])?;
    let one = Layout::flat(&[1, 1, 1], &[0, 0, 0])?;
    TiledMma::with_tile(
        atom(element),
        &one,
        &[rows, Layout::mode(n, 1)?, Layout::mode(k, 1)?],
    )
}

/// (lane, value) → row + 16·k: the weights that a lane has of a piece, in the order of its registers.
///
/// # Errors
///
/// None for these numbers.
pub fn operand() -> Result<Layout, LayoutError> {
    let piece = Layout::col_major(&[PIECE_ROWS, PIECE_K])?;
    let tv = product(Element::Bf16, [8, 16])?.tensor_tv(Operand::A, &piece)?;
    Layout::tuple(&[tv.get(0)?.coalesce(), tv.get(1)?.coalesce()])
}

/// (lane, value) → nibble of a piece: where a lane finds its values.
fn decoded() -> Result<Layout, LayoutError> {
    let lane = LANE_WORDS * NIBBLES;
    let loaded = Layout::flat(&[32, lane], &[lane, 1])?;
    let values = Layout::flat(&[2, NIBBLES / 2, LANE_WORDS], &[NIBBLES / 2, 1, NIBBLES])?;
    Layout::tuple(&[loaded.get(0)?, loaded.get(1)?.compose(&values)?])
}

/// The order of a piece: nibble → row + 16·k.
///
/// ```
/// use tilewright_kernels::weight_only::order;
///
/// let piece = order::piece()?;
/// assert_eq!(piece.to_string(), "(2,2,2,4,4,8):(1,128,16,256,32,2)");
/// # Ok::<(), layout_core::LayoutError>(())
/// ```
///
/// # Errors
///
/// None for these numbers.
pub fn piece() -> Result<Layout, LayoutError> {
    Ok(operand()?.compose(&decoded()?.right_inverse()?)?.coalesce())
}

/// (row, k) → nibble, of the packed weights for `rows` rows of `depth` weights: pieces of 16 × 64, those of the same rows one behind the other. Both extents are rounded up to whole pieces.
///
/// ```
/// use tilewright_kernels::weight_only::order;
///
/// // Weights 0 and 1 along k, and weights 0 and 1 along the rows.
/// let packed = order::packed(48, 128)?;
/// assert_eq!([[0, 0], [0, 1], [1, 0], [16, 0], [0, 64]].map(|at| packed.at(&at)), [0, 4, 1, 2048, 1024]);
/// assert!(packed.is_bijective());
/// # Ok::<(), layout_core::LayoutError>(())
/// ```
///
/// # Errors
///
/// [`LayoutError`] for extents whose product overflows.
pub fn packed(rows: i64, depth: i64) -> Result<Layout, LayoutError> {
    let nibbles = PIECE_ROWS * PIECE_K;
    let along_k = pieces(depth, PIECE_K);
    let along_rows = pieces(rows, PIECE_ROWS);
    let of_piece = decoded()?.compose(&operand()?.right_inverse()?)?;
    let of_piece = of_piece.compose(&Layout::col_major(&[PIECE_ROWS, PIECE_K])?)?;
    let mode = |within: usize, count: i64, stride: i64| {
        Layout::tuple(&[of_piece.get(within)?, Layout::mode(count, stride)?])
    };
    let stride = along_k.checked_mul(nibbles).unwrap_or(i64::MAX);
    Layout::tuple(&[mode(0, along_rows, stride)?, mode(1, along_k, nibbles)?])
}

/// Pieces that cover an extent; one at least, for a layout has no empty mode.
pub(super) fn pieces(extent: i64, piece: i64) -> i64 {
    (extent.max(1) - 1) / piece + 1
}
