//! The rest of a range: what a layout leaves out, as a layout.
//!
//! `complement(L, n)` is the layout `C` such that `(L, C)` covers `0..n`: every offset of `0..n` is `L(i) + C(j)` for exactly
//! one pair of a distinct offset `L(i)` and a `j`. Where `n` is no multiple of the part that repeats, the last repetition
//! reaches beyond `n`.
//!
//! ```text
//! complement(4:2, 24)          4:2 takes 0 2 4 6       ->  (2,3):(1,8): the odd neighbours, and the next blocks of 8
//! complement((2,2):(1,6), 24)  takes 0 1 6 7           ->  (3,2):(2,12)
//! complement((4,2):(1,6), 24)  takes 0..3 and 6..9     ->  refused: 6 is no multiple of 4, so 4 and 5 are left over
//! ```

use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::profile::MAX_MODES;

/// The leaves of a layout that are neither of extent 1 nor of stride 0, sorted by the size of the stride (ties in order of
/// writing): their positions and how many they are.
pub(crate) const fn sorted_leaves(layout: &Layout) -> ([usize; MAX_MODES], usize) {
    let mut order = [0; MAX_MODES];
    let mut sizes = [0; MAX_MODES];
    let mut len = 0;
    let mut i = 0;
    let leaves = layout.leaves();
    while i < leaves {
        let stride = layout.stride[i];
        if layout.shape[i] > 1 && stride != 0 {
            // Not i64::MIN: a mode of extent 2 and more reaches at least as far as its stride.
            let size = if stride < 0 { -stride } else { stride };
            let mut at = len;
            while at > 0 && sizes[at - 1] > size {
                order[at] = order[at - 1];
                sizes[at] = sizes[at - 1];
                at -= 1;
            }
            order[at] = i;
            sizes[at] = size;
            len += 1;
        }
        i += 1;
    }
    (order, len)
}

/// The layout that, next to `layout`, covers `0..n`. Modes of stride 0 or extent 1 of `layout` do not count.
///
/// ```
/// use layout_core::{Layout, complement};
/// let tile = Layout::parse("(2,2):(1,6)").unwrap();
/// assert_eq!(complement(&tile, 24).unwrap().to_string(), "(3,2):(2,12)");
/// ```
///
/// # Errors
///
/// `n` below 1; a negative stride; strides that, sorted, are not each a multiple of what the smaller ones cover.
pub const fn complement(layout: &Layout, n: i64) -> Result<Layout, LayoutError> {
    attempt!(at_least_one("complement", "n", n));
    let (order, len) = sorted_leaves(layout);
    let mut modes = Modes::<1>::EMPTY;
    // Offsets 0..covered are those of the modes so far and of the complement's so far.
    let mut covered = 1i64;
    let mut i = 0;
    while i < len {
        let mode = order[i];
        let (extent, stride) = (layout.shape[mode], layout.stride[mode]);
        if stride < 0 {
            return Err(LayoutError::NegativeStride {
                operation: "complement",
                mode,
                stride,
            });
        }
        if stride % covered != 0 {
            return Err(LayoutError::NotChained {
                operation: "complement",
                mode,
                stride,
                covered,
            });
        }
        modes.push_coalesced(stride / covered, [covered]);
        covered = attempt!(fits(extent.checked_mul(stride), "complement"));
        i += 1;
    }
    let blocks = attempt!(ceil_div_int(n, covered));
    modes.push_coalesced(blocks, [covered]);
    modes.into_layout()
}

/// `⌈a / b⌉` of positive integers.
const fn ceil_div_int(a: i64, b: i64) -> Result<i64, LayoutError> {
    if b < 1 {
        return Err(LayoutError::InvalidExtent { mode: 0, extent: b });
    }
    Ok((a - 1) / b + 1)
}
