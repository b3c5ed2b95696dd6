//! The weighted sums of what the experts of each token give.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::{LOGITS, MOST_TOKENS, choices};
use crate::KernelError;
use crate::quantize::MOST;

const LANES: i64 = 32;
const THREADS: i64 = 256;

/// Weighted sums of rows: y\[t\] = Σⱼ weight\[t, j\]·z\[`row_of_choice`\[t, j\]\].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Combine {
    /// The type of z and y.
    pub element: Element,
    /// Experts of a token: 1 to 16.
    pub top: i64,
}

/// The kernel `combine_rows_<element>_<top>(tokens, rows, n, z, row_of_choice, weight, y)`: z is rows × n, y is tokens × n.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields do not allow.
pub fn combine(what: Combine, arch: Arch) -> Result<Proven, KernelError> {
    let Combine { element, top } = what;
    KernelError::unless_among(element, &LOGITS)?;
    choices(top)?;
    let vector = 16 / i64::from(element.bytes());
    let at_once = THREADS / LANES;
    let mut k = Kernel::new(&format!("combine_rows_{element}_{top}"), THREADS as u32);
    let tokens = k.size("tokens", MOST_TOKENS);
    let (rows, n) = (k.size("rows", 1 << 24), k.size("n", MOST));
    let of_token = k.constant(top);
    let z = k.input("z", element, &[rows, n]);
    let row_of_choice = k.input("row_of_choice", Element::S32, &[tokens, of_token]);
    let weight = k.input("weight", Element::F32, &[tokens, of_token]);
    let y = k.output("y", element, &[tokens, n]);
    let width = LANES * vector;
    let i = k.tiles(Axis::X, tokens, at_once)?;
    let j = k.tiles(Axis::Y, n, width)?;
    let (lane, warp, zero) = (k.lane(), k.warp(), k.constant(0));
    let token = k.linear(&[(at_once, i), (1, warp)], 0);
    let shares = Layout::tuple(&[Layout::mode(LANES, vector)?, Layout::mode(vector, 1)?])?;
    let to = y
        .at(&mut k, &[token, zero])?
        .tile(&mut k, &[1, width], &[zero, j])?;
    let to = to.partition(&mut k, &shares, lane)?.vectors(&k, vector)?;
    // The names first, then all rows: each load is on its way before what it gives is used.
    let (mut named, mut parts) = (Vec::new(), Vec::new());
    for choice in 0..top {
        let choice = k.constant(choice);
        let row = row_of_choice.load::<u32>(&mut k, &[token, choice])?;
        let weight = weight.load::<f32>(&mut k, &[token, choice])?;
        named.push((row.to_index(&mut k), weight));
    }
    for (row, weight) in named {
        let from = z.at(&mut k, &[row, zero])?;
        let from = from.tile(&mut k, &[1, width], &[zero, j])?;
        let from = from.partition(&mut k, &shares, lane)?.vectors(&k, vector)?;
        parts.push((k.load_fragment(&from)?, weight));
    }
    let sum = k.fragment_of(&to, 0.0)?;
    for (part, weight) in parts {
        let part = part.convert(&mut k, Element::F32)?;
        sum.update_with(&mut k, &part, |k, sum, z| z.fma(k, weight, sum))?;
    }
    let sum = sum.convert(&mut k, element)?;
    k.store_fragment(&to, &sum)?;
    Ok(k.build(arch)?)
}
