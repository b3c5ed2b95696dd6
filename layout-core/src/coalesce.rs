//! The same function with fewer modes.
//!
//! `coalesce` merges neighbouring modes `s0:d0, s1:d1` with `d1 = s0·d0` into `s0·s1:d0` and drops extents of 1; the result
//! is the same function of the linear coordinate, and it is the *only* such flat layout: two layouts are equal as functions
//! exactly if they coalesce to the same one.
//!
//! ```
//! use layout_core::{Layout, coalesce};
//! let layout = Layout::parse("((2,2),(1,3)):((1,2),(7,5))").unwrap();
//! assert_eq!(coalesce(&layout).to_string(), "(4,3):(1,5)");
//! ```

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::{Layout, LayoutBuilder};
use crate::modes::Modes;
use crate::profile::Node;

/// The flat layout with the fewest modes that is the same function on `0..size`; a layout of extents 1 gives `1:0`.
pub const fn coalesce(layout: &Layout) -> Layout {
    let mut modes = Modes::<1>::EMPTY;
    let mut i = 0;
    while i < layout.leaves() {
        modes.push_coalesced(layout.shape[i], [layout.stride[i]]);
        i += 1;
    }
    match modes.into_layout() {
        Ok(layout) => layout,
        // Unreachable: merging changes neither size nor offsets.
        Err(_) => *layout,
    }
}

/// Coalesces each mode that the profile keeps apart: a tuple in `profile` is entered, an integer says "coalesce this mode
/// as a whole". Modes beyond the profile's rank stay as they are.
///
/// ```
/// use layout_core::{IntTuple, Layout, coalesce_by_profile};
/// let layout = Layout::parse("((2,2),(2,3)):((1,2),(4,8))").unwrap();
/// let modes = IntTuple::parse("(1,1)").unwrap();
/// assert_eq!(coalesce_by_profile(&layout, &modes).unwrap().to_string(), "(4,6):(1,4)");
/// ```
///
/// # Errors
///
/// A profile of higher rank than the layout has at that place.
pub const fn coalesce_by_profile(
    layout: &Layout,
    profile: &IntTuple,
) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    attempt!(coalesce_node(
        &mut builder,
        layout,
        layout.root(),
        profile,
        profile.root()
    ));
    builder.finish()
}

const fn coalesce_node(
    builder: &mut LayoutBuilder,
    layout: &Layout,
    node: Node,
    profile: &IntTuple,
    at: Node,
) -> Result<(), LayoutError> {
    if profile.profile.is_leaf(at) {
        let merged = coalesce(&attempt!(layout.extract(node)));
        builder.append(&merged, merged.root());
        return Ok(());
    }
    let (left, right) = (layout.profile.rank(node), profile.profile.rank(at));
    if layout.profile.is_leaf(node) || right > left {
        return Err(LayoutError::RankMismatch {
            operation: "coalesce by profile",
            left,
            right,
        });
    }
    builder.open();
    let mut mode = Some(layout.profile.first(node));
    let mut element = Some(profile.profile.first(at));
    while let Some(m) = mode {
        match element {
            Some(e) => {
                attempt!(coalesce_node(builder, layout, m, profile, e));
                element = profile.profile.next(at, e);
            }
            None => builder.append(layout, m),
        }
        mode = layout.profile.next(node, m);
    }
    builder.close();
    Ok(())
}

/// The layout without its modes of stride 0 or extent 1, coalesced: each offset's distinct part (CuTe's `filter`).
pub const fn filter(layout: &Layout) -> Layout {
    let mut modes = Modes::<1>::EMPTY;
    let mut i = 0;
    while i < layout.leaves() {
        if layout.stride[i] != 0 {
            modes.push_coalesced(layout.shape[i], [layout.stride[i]]);
        }
        i += 1;
    }
    match modes.into_layout() {
        Ok(layout) => layout,
        // Unreachable: dropping modes cannot make anything larger.
        Err(_) => *layout,
    }
}

/// The layout with extent 1 wherever the stride is 0; parentheses stay (CuTe's `filter_zeros`).
pub const fn filter_zeros(layout: &Layout) -> Layout {
    let mut result = *layout;
    let mut i = 0;
    while i < layout.leaves() {
        if layout.stride[i] == 0 {
            result.shape[i] = 1;
        }
        i += 1;
    }
    result
}
