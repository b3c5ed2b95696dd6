//! What is true of a layout as a function: decided exactly, without looking at every element where strides tell.
//!
//! * *Onto*: sorted, each stride must be at most one more than all the smaller modes reach together; otherwise the offset
//!   after that reach is missing. So `is_surjective_onto` needs one pass over the modes.
//! * *Injective*: two coordinates meet exactly if `Σ δₖ·tₖ = 0` for some `|δₖ| < nₖ`, not all 0: a search with strong bounds,
//!   one pass when every stride is greater than what the smaller modes reach.
//! * *Equal*: two layouts are the same function exactly if they coalesce to the same one.
//!
//! A swizzle is a bijection on all integers, so it changes neither injectivity nor how many offsets there are.

use crate::coalesce::{coalesce, filter};
use crate::complement::sorted_leaves;
use crate::error::{LayoutError, attempt};
use crate::inverse::preimage;
use crate::layout::Layout;
use crate::modes::SEARCH_LIMIT;
use crate::search::Search;
use crate::swizzled::Swizzled;

/// Whether no two coordinates have the same offset.
///
/// # Errors
///
/// [`LayoutError::TooLarge`] if the search gives up, which takes many overlapping modes.
pub const fn is_injective(layout: &Layout) -> Result<bool, LayoutError> {
    let mut i = 0;
    while i < layout.leaves() {
        if layout.stride[i] == 0 && layout.shape[i] > 1 {
            return Ok(false);
        }
        i += 1;
    }
    let (order, len) = sorted_leaves(layout);
    let mut search = Search::EMPTY;
    let mut apart = true;
    // What the smaller modes reach; the sum is at most the span of the layout.
    let mut reach = 0;
    i = 0;
    while i < len {
        let (last, size) = (
            layout.shape[order[i]] - 1,
            layout.stride[order[i]].unsigned_abs() as i64,
        );
        search.push(size, -last, last);
        apart = apart && size > reach;
        reach += last * size;
        i += 1;
    }
    if apart {
        return Ok(true);
    }
    match attempt!(search.solve("is_injective", 0, true)) {
        Some(_) => Ok(false),
        None => Ok(true),
    }
}

/// Whether the offsets are exactly `0..n`, each at least once.
pub const fn is_surjective_onto(layout: &Layout, n: i64) -> bool {
    let (min, max) = layout.offset_range();
    min == 0 && max == n - 1 && has_no_gaps(layout)
}

/// Whether the offsets are exactly `0..size`, each once.
pub const fn is_bijective(layout: &Layout) -> bool {
    is_surjective_onto(layout, layout.size())
}

/// Whether every offset from the least to the greatest occurs, each once; strides may be negative.
pub const fn is_compact(layout: &Layout) -> bool {
    layout.cosize() == layout.size() && has_no_gaps(layout)
}

/// Whether every offset from the least to the greatest occurs.
const fn has_no_gaps(layout: &Layout) -> bool {
    let (order, len) = sorted_leaves(layout);
    let mut reach = 0;
    let mut i = 0;
    while i < len {
        let size = layout.stride[order[i]].unsigned_abs() as i64;
        if size > reach + 1 {
            return false;
        }
        reach += (layout.shape[order[i]] - 1) * size;
        i += 1;
    }
    true
}

/// Whether two layouts have the same size and the same offset at every linear coordinate.
pub const fn equal_as_functions(a: &Layout, b: &Layout) -> bool {
    a.size() == b.size() && coalesce(a).equals(&coalesce(b))
}

/// [`is_injective`] for composed layouts.
///
/// # Errors
///
/// As [`is_injective`].
pub const fn is_injective_swizzled(layout: &Swizzled) -> Result<bool, LayoutError> {
    is_injective(&layout.layout())
}

/// [`is_surjective_onto`] for composed layouts.
///
/// # Errors
///
/// [`LayoutError::TooLarge`] where the offsets inside overlap and there are more than 2²⁰ to look up.
pub const fn is_surjective_onto_swizzled(layout: &Swizzled, n: i64) -> Result<bool, LayoutError> {
    let (min, max) = layout.offset_range();
    if min != 0 || max != n - 1 {
        return Ok(false);
    }
    // As many different offsets as 0..n has room for: then they are all there.
    let distinct = filter(&layout.layout());
    if distinct.size() < n {
        return Ok(false);
    }
    if attempt!(is_injective(&distinct)) {
        return Ok(distinct.size() == n);
    }
    if n > SEARCH_LIMIT {
        return Err(LayoutError::TooLarge {
            operation: "is_surjective_onto",
            size: n,
            limit: SEARCH_LIMIT,
        });
    }
    let mut offset = 0;
    while offset < n {
        match preimage(
            &distinct,
            layout.swizzle().inverse_apply(offset) - layout.offset(),
        ) {
            Ok(_) => offset += 1,
            Err(LayoutError::NotInImage { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// [`is_bijective`] for composed layouts.
///
/// # Errors
///
/// As [`is_surjective_onto_swizzled`].
pub const fn is_bijective_swizzled(layout: &Swizzled) -> Result<bool, LayoutError> {
    is_surjective_onto_swizzled(layout, layout.size())
}

/// [`is_compact`] for composed layouts.
///
/// # Errors
///
/// As [`is_injective`].
pub const fn is_compact_swizzled(layout: &Swizzled) -> Result<bool, LayoutError> {
    let (min, max) = layout.offset_range();
    Ok(max - min + 1 == layout.size() && attempt!(is_injective_swizzled(layout)))
}

/// [`equal_as_functions`] for composed layouts: by their parts where swizzle and offset agree, else element by element.
///
/// # Errors
///
/// [`LayoutError::TooLarge`] where more than 2²⁰ elements would have to be compared.
pub const fn equal_as_functions_swizzled(a: &Swizzled, b: &Swizzled) -> Result<bool, LayoutError> {
    let size = a.size();
    if size != b.size() || a.index(0) != b.index(0) {
        return Ok(false);
    }
    if a.swizzle().equals(&b.swizzle()) && equal_as_functions(&a.layout(), &b.layout()) {
        // The swizzle is injective, so equal first elements mean equal offsets.
        return Ok(true);
    }
    let mut i = 0;
    while i < size {
        if i == SEARCH_LIMIT {
            return Err(LayoutError::TooLarge {
                operation: "equal",
                size,
                limit: SEARCH_LIMIT,
            });
        }
        if a.index(i) != b.index(i) {
            return Ok(false);
        }
        i += 1;
    }
    Ok(true)
}
