//! Compact layouts in a given order.
//!
//! [`Layout::compact`] counts the first mode fastest and [`Layout::compact_row_major`] the last; [`make_ordered_layout`]
//! takes the order as numbers, the least fastest, and [`Layout::compact_like`] takes it from the strides of another layout.

use crate::error::LayoutError;
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::profile::{MAX_MODES, Node};

/// The compact layout of `shape` whose strides grow in the order of the numbers in `order`. An integer of `order` may stand
/// for a whole mode, which is then compact inside, first leaf fastest. Equal numbers go by position, and never share
/// strides. Modes of extent 1 get stride 0.
///
/// ```
/// use layout_core::{IntTuple, make_ordered_layout};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// let layout = make_ordered_layout(&t("(3,(4,5))"), &t("(2,(3,1))")).unwrap();
/// assert_eq!(layout.to_string(), "(3,(4,5)):(5,(15,1))");
/// ```
///
/// # Errors
///
/// [`LayoutError::InvalidOrder`] where `order` has a tuple that the shape does not have; the errors of [`Layout::new`].
pub const fn make_ordered_layout(
    shape: &IntTuple,
    order: &IntTuple,
) -> Result<Layout, LayoutError> {
    // The subtree of the shape that each leaf of the order stands for.
    let mut nodes = [shape.root(); MAX_MODES];
    if let Err(error) = match_order(&mut nodes, shape, shape.root(), order, order.root()) {
        return Err(error);
    }
    let mut sequence = [0usize; MAX_MODES];
    let mut i = 0;
    while i < order.leaves() {
        let mut at = i;
        while at > 0 && order.values[sequence[at - 1]] > order.values[i] {
            sequence[at] = sequence[at - 1];
            at -= 1;
        }
        sequence[at] = i;
        i += 1;
    }
    // The extents in the order of their strides, made compact, and put back.
    let mut position = [0usize; MAX_MODES];
    let mut extents = *shape;
    let mut len = 0;
    i = 0;
    while i < order.leaves() {
        let node = nodes[sequence[i]];
        let mut leaf = node.start;
        while leaf < node.end {
            position[leaf] = len;
            extents.values[len] = shape.values[leaf];
            len += 1;
            leaf += 1;
        }
        i += 1;
    }
    let compact = match Layout::compact(extents) {
        Ok(compact) => compact,
        Err(LayoutError::InvalidExtent { mode, extent }) => {
            let mut leaf = 0;
            while position[leaf] != mode {
                leaf += 1;
            }
            return Err(LayoutError::InvalidExtent { mode: leaf, extent });
        }
        Err(error) => return Err(error),
    };
    let mut stride = [[0]; MAX_MODES];
    i = 0;
    while i < shape.leaves() {
        stride[i] = [compact.step(position[i])];
        i += 1;
    }
    Layout::from_parts(*shape, stride)
}

const fn match_order(
    nodes: &mut [Node; MAX_MODES],
    shape: &IntTuple,
    node: Node,
    order: &IntTuple,
    at: Node,
) -> Result<(), LayoutError> {
    if order.profile.is_leaf(at) {
        nodes[at.start] = node;
        return Ok(());
    }
    if shape.profile.is_leaf(node) || shape.profile.rank(node) != order.profile.rank(at) {
        return Err(LayoutError::InvalidOrder { mode: at.start });
    }
    let mut mode = Some(shape.profile.first(node));
    let mut element = Some(order.profile.first(at));
    while let (Some(m), Some(e)) = (mode, element) {
        if let Err(error) = match_order(nodes, shape, m, order, e) {
            return Err(error);
        }
        mode = shape.profile.next(node, m);
        element = order.profile.next(at, e);
    }
    Ok(())
}

impl Layout {
    /// The compact layout of the same shape with strides in the same order (by size, sign apart). Modes of stride 0 keep it:
    /// the result has one element for each coordinate of the other modes (CuTe's `make_layout_like`).
    ///
    /// ```
    /// use layout_core::Layout;
    /// let padded = Layout::parse("(8,(4,2),3):(20,(1,0),200)").unwrap();
    /// assert_eq!(padded.compact_like().to_string(), "(8,(4,2),3):(4,(1,0),32)");
    /// ```
    #[must_use]
    pub const fn compact_like(&self) -> Self {
        let (order, len) = crate::complement::sorted_leaves(self);
        let mut result = *self;
        result.stride = [[0]; MAX_MODES];
        let mut running = 1;
        let mut i = 0;
        while i < len {
            result.stride[order[i]] = [running];
            running *= self.shape[order[i]];
            i += 1;
        }
        result
    }
}
