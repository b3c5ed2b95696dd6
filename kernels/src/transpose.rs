//! The transpose of a row-major matrix of any size: y = xᵀ, in f32, f16 or s8.
//!
//! ```text
//! x: rows × cols, tile (i, j) ──words of a row──▶ shared tile ──elements of a column──▶ y: cols × rows, tile (j, i)
//! ```
//!
//! Every access of global memory takes 128 bytes in a row, also those of y: that is what the shared tile is for. Its layout is derived from
//! the two accesses, so that neither has bank conflicts; the prover counts their wavefronts again, from the addresses. Elements are moved as they are, bit by bit.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::Use;
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use crate::KernelError;

/// The element types.
pub const ELEMENTS: [Element; 3] = [Element::F32, Element::F16, Element::S8];

/// The most rows and columns of a matrix: addresses are proven not to overflow up to here.
pub const MOST: i64 = 1 << 30;

/// Threads of a block: 8 warps, each with a row of 128 bytes at a time.
const THREADS: u32 = 256;

/// The kernel `transpose_<element>(rows, cols, x, y)`. `tall` matrices, with more rows than columns, count their rows along x of the grid, which has room for 2³¹ - 1 blocks; y has
/// room for 65,535.
///
/// # Errors
///
/// [`KernelError::Element`] for other types than [`ELEMENTS`].
pub fn transpose(element: Element, tall: bool, arch: Arch) -> Result<Proven, KernelError> {
    KernelError::unless_among(element, &ELEMENTS)?;
    let bytes = i64::from(element.bytes());
    let v = 4 / bytes; // elements of a word: 1, 2 or 4
    let n = 32 * v.max(2); // a tile is n × n: 64 for f32 and f16, 128 for s8
    let mut k = Kernel::new(&format!("transpose_{element}"), THREADS);
    let (rows, cols) = (k.size("rows", MOST), k.size("cols", MOST));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[cols, rows]);

    // Block (i, j) of the grid has tile (i, j) of x, which is tile (j, i) of y.
    let axes = [Axis::X, Axis::Y];
    let (down, across) = (axes[usize::from(!tall)], axes[usize::from(tall)]);
    let (i, j) = (k.tiles(down, rows, n)?, k.tiles(across, cols, n)?);

    // (thread, value) -> row + n·column. A warp has 32 words of a row; the 8 warps have 8 rows at once.
    let (passes, parts, word, part) = (n / 8, n / (32 * v), v * n, 32 * v * n);
    let threads = Layout::flat(&[32, 8], &[word, 1])?;
    let values = Layout::flat(&[v, passes, parts], &[n, 8, part])?;
    let (shares, thread) = (Layout::tuple(&[threads, values])?, k.thread());

    // The tile is written a word a lane along a row, and read an element a lane down a column: its layout follows.
    let uses = [
        Use::store(&shares).vectors(v),
        Use::load(&shares).transposed(),
    ];
    let tile = k.shared_for("tile", element, [n, n], &uses)?;

    let from = x
        .tile(&mut k, &[n, n], &[i, j])?
        .partition(&mut k, &shares, thread)?
        .vectors(&k, v)?;
    let put = tile.partition(&mut k, &shares, thread)?.vectors(&k, v)?;
    k.copy(&from, &put)?;
    k.barrier();
    let take = tile.transposed().partition(&mut k, &shares, thread)?;
    let to = y
        .tile(&mut k, &[n, n], &[j, i])?
        .partition(&mut k, &shares, thread)?
        .vectors(&k, v)?;
    k.copy(&take, &to)?;
    Ok(k.build(arch)?)
}
