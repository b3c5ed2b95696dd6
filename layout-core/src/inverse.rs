//! Inverses: from offsets back to linear coordinates.
//!
//! ```text
//! right_inverse   L(R(i)) = i            for i in 0..size(R): the part of L that is contiguous from 0
//! left_inverse    X(L(i)) = i            for every i, when L tells its coordinates apart (L(X(L(i))) = L(i) otherwise)
//! nullspace       L(N(i)) = 0            the coordinates along which L stands still
//! preimage        L(i) = offset          one offset; an offset that does not occur is an error
//! ```
//!
//! Worked example, `L = (4,2):(1,5)`, offsets `0 1 2 3 5 6 7 8`: the right inverse is `4:1` (offset 4 does not occur). The
//! left inverse takes offsets in the mixed radix `(5,2)`: `(5,2):(1,4)`, which sends 5 to 4 and 8 to 7.

use crate::complement::sorted_leaves;
use crate::error::{LayoutError, attempt, fits};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::profile::MAX_MODES;
use crate::search::Search;

/// Products of the extents before each leaf: the linear coordinate at which it starts to count.
const fn leaf_steps(layout: &Layout) -> [i64; MAX_MODES] {
    let mut steps = [0; MAX_MODES];
    let mut running = 1;
    let mut i = 0;
    while i < layout.leaves() {
        steps[i] = running;
        running *= layout.shape[i];
        i += 1;
    }
    steps
}

/// The layout `R` with `L(R(i)) = i` for all `i` in `0..size(R)`, coalesced. For a layout with strides upwards that tells its
/// coordinates apart (modes of stride 0 aside, which are skipped) it is the largest such; `1:0` where 1 does not occur.
///
/// ```
/// use layout_core::{Layout, right_inverse};
/// let l = Layout::parse("(4,3,2):(6,0,1)").unwrap();
/// assert_eq!(right_inverse(&l).unwrap().to_string(), "2:12");
/// let l = Layout::parse("(4,2):(2,1)").unwrap();
/// assert_eq!(right_inverse(&l).unwrap().to_string(), "(2,4):(4,1)");
/// ```
///
/// # Errors
///
/// Overflow.
pub const fn right_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    let (modes, _) = contiguous(layout);
    modes.into_layout()
}

/// The modes of the right inverse, and for each leaf of `layout` how much of its extent they use (1 for none).
///
/// A chain of modes is chosen, each of which starts where the one before ends: mode `k` of stride `t` may be used up to an
/// extent `q` that divides it, if a mode of stride `t·q` follows. The longest chain wins.
pub(crate) const fn contiguous(layout: &Layout) -> (Modes<1>, [i64; MAX_MODES]) {
    let steps = leaf_steps(layout);
    let (order, len) = sorted_leaves(layout);
    // From the largest stride down: end[i] is where the longest chain from mode order[i] ends, next[i] its successor.
    let mut end = [0i64; MAX_MODES];
    let mut next = [MAX_MODES; MAX_MODES];
    let mut i = len;
    while i > 0 {
        i -= 1;
        let (extent, stride) = (layout.shape[order[i]], layout.stride[order[i]]);
        if stride < 1 {
            continue;
        }
        // Cannot overflow: the layout reaches (extent - 1)·stride, and the sum with stride is bounded by twice that.
        end[i] = extent.saturating_mul(stride);
        let mut j = i + 1;
        while j < len {
            let other = layout.stride[order[j]];
            if other > stride
                && other % stride == 0
                && extent % (other / stride) == 0
                && end[j] > end[i]
            {
                end[i] = end[j];
                next[i] = j;
            }
            j += 1;
        }
    }
    let mut best = MAX_MODES;
    i = 0;
    while i < len {
        if layout.stride[order[i]] == 1 && (best == MAX_MODES || end[i] > end[best]) {
            best = i;
        }
        i += 1;
    }
    let mut modes = Modes::EMPTY;
    let mut used = [1; MAX_MODES];
    while best < MAX_MODES {
        let leaf = order[best];
        let follower = next[best];
        let extent = if follower < MAX_MODES {
            layout.stride[order[follower]] / layout.stride[leaf]
        } else {
            layout.shape[leaf]
        };
        modes.push_coalesced(extent, [steps[leaf]]);
        used[leaf] = extent;
        best = follower;
    }
    (modes, used)
}

/// The quasi-inverse `X` of `L`: `L(X(L(i))) = L(i)` for all `i`, and `X(L(i)) = i` if `L` has no modes of stride 0. Offsets
/// that `L` leaves out go anywhere.
///
/// The strides, sorted, must form a chain: each a multiple of the one before and not less than what that one covers. Only
/// the largest may be negative.
///
/// ```
/// use layout_core::{Layout, left_inverse};
/// let l = Layout::parse("(4,2):(1,5)").unwrap();
/// assert_eq!(left_inverse(&l).unwrap().to_string(), "(5,2):(1,4)");
/// assert!(left_inverse(&Layout::parse("(4,2):(3,4)").unwrap()).is_err());
/// ```
///
/// # Errors
///
/// [`LayoutError::NotChained`] where the strides do not divide or overlap, [`LayoutError::NegativeStride`], overflow.
pub const fn left_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    let steps = leaf_steps(layout);
    let (order, len) = sorted_leaves(layout);
    let mut modes = Modes::<1>::EMPTY;
    // Offsets below the first stride do not occur: their digit counts nothing.
    let mut below = (1i64, 0i64);
    let mut covered = 1i64;
    let mut i = 0;
    while i < len {
        let mode = order[i];
        let (extent, stride) = (layout.shape[mode], layout.stride[mode]);
        if stride < 0 && i + 1 < len {
            return Err(LayoutError::NegativeStride {
                operation: "left_inverse",
                mode,
                stride,
            });
        }
        let size = stride.unsigned_abs() as i64;
        let unit = if i == 0 {
            1
        } else {
            layout.stride[order[i - 1]]
        };
        if size % unit != 0 || size < covered {
            return Err(LayoutError::NotChained {
                operation: "left_inverse",
                mode,
                stride,
                covered,
            });
        }
        // The digit between the stride before and this one.
        modes.push_coalesced(size / unit, [below.1]);
        below = (
            size,
            if stride < 0 {
                -steps[mode]
            } else {
                steps[mode]
            },
        );
        covered = attempt!(fits(extent.checked_mul(size), "left_inverse"));
        if i + 1 == len {
            modes.push_coalesced(extent, [below.1]);
        }
        i += 1;
    }
    modes.into_layout()
}

/// The coordinates along which `layout` stands still: `N` with `L(N(i)) = 0`, made of the modes of stride 0. `1:0` if there
/// are none.
///
/// ```
/// use layout_core::{Layout, nullspace};
/// let l = Layout::parse("(4,3,2):(1,0,4)").unwrap();
/// assert_eq!(nullspace(&l).to_string(), "3:4");
/// ```
pub const fn nullspace(layout: &Layout) -> Layout {
    let steps = leaf_steps(layout);
    let mut modes = Modes::<1>::EMPTY;
    let mut i = 0;
    while i < layout.leaves() {
        if layout.stride[i] == 0 {
            modes.push_coalesced(layout.shape[i], [steps[i]]);
        }
        i += 1;
    }
    match modes.into_layout() {
        Ok(layout) => layout,
        // Unreachable: the offsets are linear coordinates of `layout`, which fit.
        Err(_) => Layout::UNIT,
    }
}

/// A linear coordinate `i` in `0..size` with `L(i) = offset`: the one whose modes with large strides are greatest. For a
/// layout that tells its coordinates apart it is the only one.
///
/// ```
/// use layout_core::{Layout, preimage};
/// let l = Layout::parse("(4,2):(1,5)").unwrap();
/// assert_eq!(preimage(&l, 7), Ok(6));
/// assert_eq!(preimage(&l, 4).unwrap_err().code(), "not_in_image");
/// ```
///
/// # Errors
///
/// [`LayoutError::NotInImage`] where there is none; [`LayoutError::TooLarge`] if the search gives up (only on layouts with
/// many overlapping modes).
pub const fn preimage(layout: &Layout, offset: i64) -> Result<i64, LayoutError> {
    let steps = leaf_steps(layout);
    let (order, len) = sorted_leaves(layout);
    let mut search = Search::EMPTY;
    let mut k = 0;
    while k < len {
        search.push(layout.stride[order[k]], 0, layout.shape[order[k]] - 1);
        k += 1;
    }
    match attempt!(search.solve("preimage", offset, false)) {
        Some(digits) => {
            let mut found = 0;
            k = 0;
            while k < len {
                found += digits[k] * steps[order[k]];
                k += 1;
            }
            Ok(found)
        }
        None => Err(LayoutError::NotInImage { offset }),
    }
}
