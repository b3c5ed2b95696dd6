//! Rows in the order of the experts.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::MOST_TOKENS;
use crate::KernelError;
use crate::quantize::MOST;

/// The element types of rows.
pub const ELEMENTS: [Element; 4] = [Element::F32, Element::F16, Element::Bf16, Element::E4m3];

/// Threads of a row with their vectors, and threads of a block.
const LANES: i64 = 32;
const VECTORS: i64 = 2;
const THREADS: i64 = 256;

/// A gather of rows: y\[r\] = x\[`token_of_row`\[r\]\].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// The type of x and y.
    pub element: Element,
}

/// The kernel `gather_rows_<element>(tokens, rows, k, x, token_of_row, y)`: x is tokens × k, y is rows × k. The row of a token that there is not is of zeros.
///
/// # Errors
///
/// [`KernelError::Element`] for other types.
pub fn gather(what: Gather, arch: Arch) -> Result<Proven, KernelError> {
    KernelError::unless_among(what.element, &ELEMENTS)?;
    let vector = 16 / i64::from(what.element.bytes());
    let at_once = THREADS / LANES;
    let mut k = Kernel::new(&format!("gather_rows_{}", what.element), THREADS as u32);
    let tokens = k.size("tokens", MOST_TOKENS);
    let (rows, cols) = (k.size("rows", 1 << 22), k.size("k", MOST));
    let x = k.input("x", what.element, &[tokens, cols]);
    let token_of_row = k.input("token_of_row", Element::S32, &[rows]);
    let y = k.output("y", what.element, &[rows, cols]);
    let width = VECTORS * LANES * vector;
    let i = k.tiles(Axis::X, rows, at_once)?;
    let j = k.tiles(Axis::Y, cols, width)?;
    let (lane, warp, zero) = (k.lane(), k.warp(), k.constant(0));
    let row = k.linear(&[(at_once, i), (1, warp)], 0);
    let token = token_of_row.load::<u32>(&mut k, &[row])?.to_index(&mut k);
    let shares = Layout::tuple(&[
        Layout::mode(LANES, vector)?,
        Layout::flat(&[vector, VECTORS], &[1, LANES * vector])?,
    ])?;
    let from = x
        .at(&mut k, &[token, zero])?
        .tile(&mut k, &[1, width], &[zero, j])?;
    let from = from.partition(&mut k, &shares, lane)?.vectors(&k, vector)?;
    let to = y
        .at(&mut k, &[row, zero])?
        .tile(&mut k, &[1, width], &[zero, j])?;
    let to = to.partition(&mut k, &shares, lane)?.vectors(&k, vector)?;
    let values = k.load_fragment(&from)?;
    k.store_fragment(&to, &values)?;
    Ok(k.build(arch)?)
}
