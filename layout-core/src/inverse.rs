//! Inverses: from offsets back to linear coordinates.
//!
//! ```text
//! right_inverse   L(R(i)) = i            for i in 0..size(R): the offsets from 0 on whose coordinates are a layout
//! left_inverse    X(L(i)) = i            for every i, when L is injective (L(X(L(i))) = L(i) with modes of stride 0)
//! nullspace       L(N(i)) = 0            the coordinates along which L does not move
//! preimage        L(i) = offset          one offset; an offset that does not occur is an error
//! ```
//!
//! Worked example, `L = (4,2):(1,5)`, offsets `0 1 2 3 5 6 7 8`: the right inverse is `4:1` (offset 4 does not occur). The
//! left inverse takes offsets in the mixed radix `(5,2)`: `(5,2):(1,4)`, which sends 5 to 4 and 8 to 7.
//!
//! The inverse of a layout of coordinates takes a coordinate: its shape is a box of them.

use crate::basis::Basis;
use crate::chain::Chain;
use crate::complement::sorted_leaves;
use crate::error::{LayoutError, attempt, fits};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::profile::{MAX_MODES, Node, Profile};
use crate::radix;
use crate::search::Search;
use crate::strided::{LayoutBuilder, Strided};
use crate::swizzled::Swizzled;

/// Products of the extents before each leaf: the linear coordinate at which it starts to count.
pub(crate) const fn leaf_steps(layout: &Layout) -> [i64; MAX_MODES] {
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
        let (extent, stride) = (layout.shape[order[i]], layout.step(order[i]));
        if stride < 1 {
            continue;
        }
        // Cannot overflow: the layout reaches (extent - 1)·stride, and the sum with stride is bounded by twice that.
        end[i] = extent.saturating_mul(stride);
        let mut j = i + 1;
        while j < len {
            let other = layout.step(order[j]);
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
        if layout.step(order[i]) == 1 && (best == MAX_MODES || end[i] > end[best]) {
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
            layout.step(order[follower]) / layout.step(leaf)
        } else {
            layout.shape[leaf]
        };
        modes.push_coalesced(extent, [steps[leaf]]);
        used[leaf] = extent;
        best = follower;
    }
    (modes, used)
}

/// The chain of modes: a right inverse whatever the strides that it does not use.
pub(crate) const fn chain(layout: &Layout) -> Result<Layout, LayoutError> {
    let (modes, _) = contiguous(layout);
    modes.into_layout()
}

/// Coordinates up to which the longest right inverse is searched.
const SEARCHED: i64 = 1 << 10;

/// Elements that this search compares, at most.
const COMPARED: i64 = 1 << 20;

/// One mode of a right inverse under construction: the coordinate that it steps by, and how far it may go.
#[derive(Clone, Copy)]
struct Choice {
    stride: i64,
    extent: i64,
}

/// The longest right inverse of a small layout, at least as long as `known`: depth first over the coordinates at which the next
/// offset lies, and over the extents up to which stepping by such a coordinate goes on counting.
const fn longest(layout: &Layout, known: Modes<1>, known_size: i64) -> Modes<1> {
    let size = layout.size();
    // The offsets from 0 on that occur: no right inverse is longer.
    let mut offsets = known_size;
    while layout.preimage(offsets).is_ok() {
        offsets += 1;
    }
    let mut best = known;
    let mut most = known_size;
    let mut compared = 0;
    let mut chosen = [Choice {
        stride: 0,
        extent: 1,
    }; 16];
    // What the modes chosen so far reach: offsets 0..reached[depth].
    let mut reached = [1i64; 17];
    let mut depth = 0;
    let mut descend = true;
    loop {
        if most == offsets || compared > COMPARED {
            return best;
        }
        if descend {
            // The next mode begins with the first coordinate of the next offset.
            chosen[depth] = Choice {
                stride: 0,
                extent: 1,
            };
        }
        // The next candidate at this depth: a smaller extent, or the next coordinate.
        if chosen[depth].extent > 2 {
            chosen[depth].extent -= 1;
        } else {
            let mut stride = chosen[depth].stride + 1;
            while stride < size && layout.index(stride) != reached[depth] {
                stride += 1;
                compared += 1;
            }
            if stride >= size {
                if depth == 0 {
                    return best;
                }
                depth -= 1;
                descend = false;
                continue;
            }
            chosen[depth] = Choice { stride, extent: 1 };
            chosen[depth].extent = counts(layout, &chosen, depth, reached[depth], &mut compared);
            if chosen[depth].extent < 2 {
                descend = false;
                continue;
            }
        }
        let total = reached[depth] * chosen[depth].extent;
        if total > most {
            most = total;
            best = Modes::EMPTY;
            let mut k = 0;
            while k <= depth {
                best.push_coalesced(chosen[k].extent, [chosen[k].stride]);
                k += 1;
            }
        }
        reached[depth + 1] = total;
        descend = total < offsets && depth + 1 < chosen.len();
        if descend {
            depth += 1;
        }
    }
}

/// How many steps of the last choice go on counting after the modes before it, which reach `reached` offsets.
const fn counts(
    layout: &Layout,
    chosen: &[Choice; 16],
    depth: usize,
    reached: i64,
    compared: &mut i64,
) -> i64 {
    let size = layout.size();
    let mut n = 1;
    loop {
        let mut j = 0;
        while j < reached {
            let mut at = n * chosen[depth].stride;
            let mut rest = j;
            let mut k = 0;
            while k < depth {
                at += rest % chosen[k].extent * chosen[k].stride;
                rest /= chosen[k].extent;
                k += 1;
            }
            *compared += 1;
            if at >= size || layout.index(at) != n * reached + j {
                return n;
            }
            j += 1;
        }
        n += 1;
    }
}

const fn right(layout: &Layout) -> Result<Layout, LayoutError> {
    let (modes, _) = contiguous(layout);
    let inverse = attempt!(modes.into_layout());
    // Nothing is longer if the next offset does not occur. Among upward modes that do not overlap, nothing is in any case.
    if layout.size() > SEARCHED
        || inverse.size() == layout.size()
        || layout.preimage(inverse.size()).is_err()
    {
        return Ok(inverse);
    }
    longest(layout, modes, inverse.size()).into_layout()
}

const fn left(layout: &Layout) -> Result<Layout, LayoutError> {
    let steps = leaf_steps(layout);
    let (order, len) = sorted_leaves(layout);
    let mut modes = Modes::<1>::EMPTY;
    // Offsets below the first stride do not occur: their digit counts nothing.
    let mut below = (1i64, 0i64);
    let mut covered = 1i64;
    let mut i = 0;
    while i < len {
        let mode = order[i];
        let (extent, stride) = (layout.shape[mode], layout.step(mode));
        let size = stride.unsigned_abs() as i64;
        let unit = if i == 0 { 1 } else { layout.step(order[i - 1]) };
        // Only the largest stride may be negative, each must be a multiple of the one before and beyond its reach.
        if (stride < 0 && i + 1 < len) || size % unit != 0 || size < covered {
            return radix::left_inverse(layout, &steps);
        }
        // The digit between the stride before and this one.
        modes.push_coalesced(size / unit, [below.1]);
        let step = if stride < 0 {
            -steps[mode]
        } else {
            steps[mode]
        };
        below = (size, step);
        covered = attempt!(fits(extent.checked_mul(size), "left_inverse"));
        if i + 1 == len {
            modes.push_coalesced(extent, [below.1]);
        }
        i += 1;
    }
    modes.into_layout()
}

impl<const K: usize> Strided<K> {
    /// The layout `R` with `L(R(i)) = i` for all `i` in `0..size(R)`, coalesced; `1:0` where 1 does not occur. It is the longest
    /// such layout of coordinates of `L`: of any layout of integers with at most 2¹⁰ coordinates, and beyond if the strides are
    /// not negative and no offset occurs twice (modes of stride 0 aside, which are skipped). Of other layouts it is the longest
    /// chain of modes, each of which begins where the one before ends. Of a layout with named strides it is such a chain, and
    /// right for every value of the names; of a layout of coordinates it takes a coordinate of the box that is its shape.
    ///
    /// ```
    /// use layout_core::{Affine, CoordLayout, Layout};
    /// assert_eq!(Layout::parse("(4,3,2):(6,0,1)").unwrap().right_inverse().unwrap().to_string(), "2:12");
    /// assert_eq!(Layout::parse("(4,2):(2,1)").unwrap().right_inverse().unwrap().to_string(), "(2,4):(4,1)");
    /// assert_eq!(Layout::parse("(2,2):(2,-1)").unwrap().right_inverse().unwrap().to_string(), "2:3");
    /// assert_eq!(Affine::parse("(8,64):(ld,1)").unwrap().right_inverse().unwrap().to_string(), "64:8");
    /// let transposed = CoordLayout::parse("(4,8):(1@1,1@0)").unwrap();
    /// assert_eq!(transposed.right_inverse().unwrap().to_string(), "(8,4):(4,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// A stride along several axes; overflow.
    pub const fn right_inverse(&self) -> Result<Layout, LayoutError> {
        match self.basis {
            Basis::Axes(codomain) => self.by_axes(&codomain, "right_inverse", true),
            _ => match self.integers() {
                Some(layout) => right(&layout),
                None => chain(&self.without_names()),
            },
        }
    }

    /// The inverse `X` on the left: `X(L(i)) = i` for all `i` if `L` is injective, and `L(X(L(i))) = L(i)` if it is injective
    /// but for modes of stride 0. Offsets that `L` leaves out go anywhere. Of a layout of coordinates it takes a coordinate.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let inverse = |text: &str| Layout::parse(text).unwrap().left_inverse();
    /// assert_eq!(inverse("(4,2):(1,5)").unwrap().to_string(), "(5,2):(1,4)");
    /// assert_eq!(inverse("(5,3):(3,13)").unwrap().to_string(), "(3,13):(1,1)");
    /// assert_eq!(inverse("(4,3):(1,2)").unwrap_err().code(), "not_injective");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NotInjective`]; [`LayoutError::NoLeftInverse`] where no layout undoes it;
    /// [`LayoutError::TooLarge`] or [`LayoutError::SearchLimit`] where the search for one stops; named strides; a stride along several axes; overflow.
    pub const fn left_inverse(&self) -> Result<Layout, LayoutError> {
        const OPERATION: &str = "left_inverse";
        match self.basis {
            Basis::Axes(codomain) => self.by_axes(&codomain, OPERATION, false),
            _ => match self.integers() {
                Some(layout) => left(&layout),
                None => Err(LayoutError::NamedStrides {
                    operation: OPERATION,
                }),
            },
        }
    }

    /// The layout of integers with stride 0 wherever the stride has a name.
    const fn without_names(&self) -> Layout {
        let mut layout = self.component(0);
        let mut i = 0;
        while i < self.leaves() {
            let mut k = 1;
            while k < K {
                if self.stride[i][k] != 0 {
                    layout.stride[i] = [0];
                }
                k += 1;
            }
            i += 1;
        }
        layout
    }

    /// The inverses along each axis, with the parentheses of the coordinates.
    const fn by_axes(
        &self,
        codomain: &Profile,
        operation: &'static str,
        to_the_right: bool,
    ) -> Result<Layout, LayoutError> {
        attempt!(self.along_single_axes(operation));
        let mut builder = LayoutBuilder::new();
        attempt!(self.axis_node(&mut builder, codomain, codomain.root(), to_the_right));
        builder.finish()
    }

    const fn axis_node(
        &self,
        builder: &mut LayoutBuilder<1>,
        codomain: &Profile,
        node: Node,
        to_the_right: bool,
    ) -> Result<(), LayoutError> {
        if codomain.is_leaf(node) {
            let axis = self.component(node.start);
            let inverse = if to_the_right {
                attempt!(chain(&axis))
            } else {
                attempt!(left(&axis))
            };
            builder.append(&inverse, inverse.root());
            return Ok(());
        }
        builder.open();
        let mut child = Some(codomain.first(node));
        while let Some(c) = child {
            attempt!(self.axis_node(builder, codomain, c, to_the_right));
            child = codomain.next(node, c);
        }
        builder.close();
        Ok(())
    }
}

impl Layout {
    /// A linear coordinate `i` in `0..size` with `L(i) = offset`: the one whose modes with large strides are greatest. For an
    /// injective layout it is the only one.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = Layout::parse("(4,2):(1,5)").unwrap();
    /// assert_eq!(l.preimage(7), Ok(6));
    /// assert_eq!(l.preimage(4).unwrap_err().code(), "not_in_image");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NotInImage`] where there is none; [`LayoutError::SearchLimit`] if the search stops (only on layouts
    /// with many overlapping modes).
    pub const fn preimage(&self, offset: i64) -> Result<i64, LayoutError> {
        let steps = leaf_steps(self);
        let (order, len) = sorted_leaves(self);
        let mut search = Search::EMPTY;
        let mut k = 0;
        while k < len {
            search.push(self.step(order[k]), 0, self.shape[order[k]] - 1);
            k += 1;
        }
        match attempt!(search.solve("preimage", offset)) {
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
}

impl Swizzled {
    /// The inverse on the right, `y -> R(Sw⁻¹(y) − offset)`: `S(inverse(y)) = y` for every offset `y` with
    /// `0 <= Sw⁻¹(y) − offset < size(R)`, where `R` is the right inverse of the layout inside.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// let inverse = tile.right_inverse().unwrap();
    /// assert_eq!(inverse.to_string(), "(4,4):(4,1) o Sw<2,0,2>");
    /// assert!((0..16).all(|y| tile.index(inverse.index(y)) == y));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::right_inverse`].
    pub const fn right_inverse(&self) -> Result<Chain, LayoutError> {
        self.inverse_by(attempt!(self.layout.right_inverse()))
    }

    /// The inverse on the left: `inverse(S(i)) = i` for every `i` (if the layout inside has no modes of stride 0).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o 3 o (4,2):(1,5)").unwrap();
    /// let inverse = tile.left_inverse().unwrap();
    /// assert!((0..8).all(|i| inverse.index(tile.index(i)) == i));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::left_inverse`].
    pub const fn left_inverse(&self) -> Result<Chain, LayoutError> {
        self.inverse_by(attempt!(self.layout.left_inverse()))
    }

    const fn inverse_by(&self, inner: Layout) -> Result<Chain, LayoutError> {
        Chain::inverse(inner, -self.offset[0], self.swizzle)
    }

    /// A linear coordinate whose offset is `y`; see [`Layout::preimage`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// assert_eq!(tile.preimage(14), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::preimage`].
    pub const fn preimage(&self, y: i64) -> Result<i64, LayoutError> {
        let x = self.swizzle.inverse_apply(y).checked_sub(self.offset[0]);
        match self.layout.preimage(attempt!(fits(x, "preimage"))) {
            // The offset asked for, not the one inside.
            Err(LayoutError::NotInImage { .. }) => Err(LayoutError::NotInImage { offset: y }),
            other => other,
        }
    }
}
