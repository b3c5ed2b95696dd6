//! How wide an access may be: common vectors, alignment, and taking elements from a domain.

use crate::coalesce::coalesce;
use crate::composition::composition;
use crate::error::{LayoutError, at_least_one, attempt};
use crate::int_tuple::IntTuple;
use crate::inverse::{contiguous, right_inverse};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::search::greatest_common_divisor;
use crate::swizzled::Swizzled;

/// Factors tried for the last mode of a common layout.
const FACTOR_LIMIT: i64 = 1 << 16;

/// The layout `C` of coordinates over which both layouts run through the same offsets one by one:
/// `A(C(i)) = B(C(i)) = i`. It is the longest prefix of `B`'s right inverse with that property.
///
/// ```
/// use layout_core::{Layout, max_common_layout};
/// let l = |s: &str| Layout::parse(s).unwrap();
/// // Both are contiguous along the second mode.
/// let common = max_common_layout(&l("(4,8):(8,1)"), &l("(4,8):(16,1)")).unwrap();
/// assert_eq!(common.to_string(), "8:4");
/// ```
///
/// # Errors
///
/// Overflow.
pub const fn max_common_layout(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let inverse = attempt!(right_inverse(b));
    let mut prefix = Modes::<1>::EMPTY;
    let mut i = 0;
    while i < inverse.leaves() {
        let (extent, stride) = inverse.leaf(i);
        // The largest factor of the mode that still counts one by one.
        let mut divisor = 1;
        loop {
            if divisor > extent || divisor > FACTOR_LIMIT {
                return prefix.into_layout();
            }
            if extent % divisor == 0 {
                let mut longer = prefix;
                longer.push_coalesced(extent / divisor, [stride]);
                if counts(a, &attempt!(longer.into_layout())) {
                    prefix = longer;
                    break;
                }
            }
            divisor += 1;
        }
        if divisor > 1 {
            break;
        }
        i += 1;
    }
    prefix.into_layout()
}

/// Whether `a ∘ c` is `0, 1, 2, …`.
const fn counts(a: &Layout, c: &Layout) -> bool {
    match composition(a, c) {
        Ok(r) => {
            let r = coalesce(&r);
            r.leaves() == 1 && (r.stride[0] == 1 || r.shape[0] == 1)
        }
        Err(_) => false,
    }
}

/// How many elements one vector access can move between the two layouts: the size of [`max_common_layout`].
///
/// # Errors
///
/// As [`max_common_layout`].
pub const fn max_common_vector(a: &Layout, b: &Layout) -> Result<i64, LayoutError> {
    Ok(attempt!(max_common_layout(a, b)).size())
}

/// The largest `V` such that the offsets fall into aligned runs of `V`: the elements of one vector access.
///
/// ```
/// use layout_core::{Layout, max_alignment};
/// assert_eq!(max_alignment(&Layout::parse("(8,4):(1,20)").unwrap()), 4);
/// ```
pub const fn max_alignment(layout: &Layout) -> i64 {
    let (run, used) = contiguous(layout);
    let mut alignment = 1i128;
    let mut i = 0;
    while i < run.len {
        alignment *= run.extent[i] as i128;
        i += 1;
    }
    i = 0;
    while i < layout.leaves() {
        if layout.shape[i] > used[i] {
            let step = layout.stride[i].unsigned_abs() as i128 * used[i] as i128;
            alignment = greatest_common_divisor(alignment, step);
        }
        i += 1;
    }
    alignment as i64
}

/// [`max_alignment`] of a composed layout: also bounded by the offset and by the bits that the swizzle leaves alone.
pub const fn max_alignment_swizzled(layout: &Swizzled) -> i64 {
    let inner = max_alignment(&layout.layout()) as i128;
    let inner = greatest_common_divisor(inner, layout.offset().unsigned_abs() as i128);
    if layout.swizzle().is_identity() {
        inner as i64
    } else {
        greatest_common_divisor(inner, 1 << layout.swizzle().m()) as i64
    }
}

/// A layout that takes `n` coordinates of a shape, in rising order, evenly from each mode, so that the shape can be divided
/// by it.
///
/// ```
/// use layout_core::{IntTuple, domain_distribute};
/// let shape = IntTuple::parse("(15,14)").unwrap();
/// assert_eq!(domain_distribute(&shape, 6).unwrap().to_string(), "(3,2):(1,15)");
/// ```
///
/// # Errors
///
/// [`LayoutError::NotDivisible`] where `n` has a factor that the extents lack (CuTe returns fewer coordinates then).
pub const fn domain_distribute(shape: &IntTuple, n: i64) -> Result<Layout, LayoutError> {
    attempt!(at_least_one("domain_distribute", "n", n));
    let domain = attempt!(Layout::compact(*shape));
    let mut modes = Modes::<1>::EMPTY;
    let mut rest = n;
    let mut i = 0;
    while i < domain.leaves() {
        let common = greatest_common_divisor(domain.shape[i] as i128, rest as i128) as i64;
        modes.push_coalesced(common, [domain.stride[i]]);
        rest /= common;
        i += 1;
    }
    if rest != 1 {
        return Err(LayoutError::NotDivisible {
            operation: "domain_distribute",
            mode: domain.leaves() - 1,
            value: domain.size(),
            divisor: n,
        });
    }
    modes.into_layout()
}
