//! The complement of a layout in a range: the offsets that it leaves out, as a layout.
//!
//! `L.complement(n)` is the layout `C` such that `(L, C)` covers `0..n`: every offset of `0..n` is `L(i) + C(j)` for exactly
//! one pair of a distinct offset `L(i)` and a `j`, and no two copies `L + C(j)` meet, before `n` or beyond. Where `n` is not a
//! multiple of the part that repeats, the last repetition reaches beyond `n`.
//!
//! ```text
//! complement(4:2, 24)          4:2 takes 0 2 4 6       ->  (2,3):(1,8): the odd neighbours, and the next blocks of 8
//! complement((2,2):(1,6), 24)  takes 0 1 6 7           ->  (3,2):(2,12)
//! complement((4,2):(1,6), 24)  takes 0..3 and 6..9     ->  refused: 6 is not a multiple of 4, so 4 and 5 are left over
//! complement((3,2):(2,7), 4)   takes 0 2 4 7 9 11      ->  2:1: the stride 7 does not matter below 4
//! ```
//!
//! # Existence
//!
//! The copies are forced: what covers the least free offset must begin there. Sort the modes by stride. Those with a stride
//! below `n` must chain: each stride is a multiple of what the smaller modes cover, or a copy would lie across it. Modes with
//! larger strides have no other offset than 0 in `0..n`. They only must not bring copies together beyond `n`. If the strides
//! chain to the end, the gaps below all of them are filled, as in CuTe, and so maybe more than `0..n`.
//!
//! # Padding
//!
//! Products and [`complement_partial`](Strided::complement_partial) require less: repetitions of the block must be disjoint,
//! but need not fill the range. There a gap that is not a multiple of what lies below it is padding; see [`Padding`].
//!
//! Coordinates are filled axis by axis, in colexicographic order: the box of the block first, then along the last axis.

use crate::basis::Basis;
use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::profile::MAX_MODES;
use crate::strided::{Strided, is_zero};
use crate::swizzled::Swizzled;

const OPERATION: &str = "complement";

/// The leaves of a layout with an extent above 1 and a stride other than 0, sorted by the size of the stride (ties in order
/// of writing): their positions and how many they are.
pub(crate) const fn sorted_leaves(layout: &Layout) -> ([usize; MAX_MODES], usize) {
    let mut order = [0; MAX_MODES];
    let mut sizes = [0; MAX_MODES];
    let mut len = 0;
    let mut i = 0;
    let leaves = layout.leaves();
    while i < leaves {
        let stride = layout.step(i);
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

/// What to do with a gap that is not a multiple of the part below it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Refuse it: the complement would not cover the range.
    Refuse,
    /// Use as much of it as holds whole copies (CuTe's rule).
    Fill,
    /// Leave every gap to the block: repetitions begin after it.
    Skip,
}

/// The modes that fill the gaps of a layout of integers, and how far the layout and they reach.
struct Gaps {
    modes: Modes<1>,
    covered: i64,
}

const fn gaps(layout: &Layout, padding: Padding) -> Result<Gaps, LayoutError> {
    let (order, len) = sorted_leaves(layout);
    let mut gaps = Gaps {
        modes: Modes::EMPTY,
        covered: 1,
    };
    let mut i = 0;
    while i < len {
        let mode = order[i];
        let (extent, stride) = (layout.shape[mode], layout.step(mode));
        if stride < 0 {
            return Err(LayoutError::NegativeStride {
                operation: OPERATION,
                mode,
                stride,
            });
        }
        let covered = gaps.covered;
        let divides = stride % covered == 0;
        if stride < covered || (!divides && matches!(padding, Padding::Refuse)) {
            return Err(LayoutError::NotChained {
                operation: OPERATION,
                mode,
                stride,
                covered,
            });
        }
        if !matches!(padding, Padding::Skip) {
            gaps.modes.push_coalesced(stride / covered, [covered]);
        }
        gaps.covered = attempt!(fits(extent.checked_mul(stride), OPERATION));
        i += 1;
    }
    Ok(gaps)
}

/// The complement in `0..n` of a layout whose strides do not all chain: of its modes with strides below `n`, if these chain and
/// the others keep the copies apart.
const fn complement_below(layout: &Layout, n: i64) -> Result<Option<Modes<1>>, LayoutError> {
    let (order, len) = sorted_leaves(layout);
    let mut low = *layout;
    // The modes from `n` up, and the stretch that the others and the complement fill.
    let mut high = Modes::<1>::EMPTY;
    let mut i = 0;
    while i < len {
        let mode = order[i];
        let stride = layout.step(mode);
        if stride < 0 {
            return Ok(None);
        }
        if stride >= n {
            low.shape[mode] = 1;
            high.push(layout.shape[mode], [stride]);
        }
        i += 1;
    }
    let mut gaps = match gaps(&low, Padding::Refuse) {
        Ok(gaps) => gaps,
        Err(LayoutError::NotChained { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let blocks = (n - 1) / gaps.covered + 1;
    let filled = attempt!(fits(blocks.checked_mul(gaps.covered), OPERATION));
    if filled > 1 {
        if high.len == MAX_MODES {
            return Err(LayoutError::TooManyModes);
        }
        high.push(filled, [1]);
    }
    let apart = attempt!(attempt!(high.into_layout()).collision(OPERATION)).is_none();
    gaps.modes.push_coalesced(blocks, [gaps.covered]);
    Ok(if apart { Some(gaps.modes) } else { None })
}

impl<const K: usize> Strided<K> {
    /// The layout that, next to this one, covers `0..n`: every offset of `0..n` is `L(i) + C(j)` for exactly one distinct offset
    /// `L(i)` and one `j`, and the copies `L + C(j)` do not meet. Modes of stride 0 or extent 1 do not count. For coordinates,
    /// the first `n` of them with the last axis unbounded.
    ///
    /// ```
    /// use layout_core::{CoordLayout, Layout};
    /// let l = |text: &str| Layout::parse(text).unwrap();
    /// assert_eq!(l("(2,2):(1,6)").complement(24).unwrap().to_string(), "(3,2):(2,12)");
    /// // 4 and 5 stay free: an error, where CuTe gives a layout that does not cover. It has another name here.
    /// assert_eq!(l("(4,2):(1,6)").complement(24).unwrap_err().code(), "not_chained");
    /// assert_eq!(l("(4,2):(1,6)").complement_partial(24).unwrap().to_string(), "2:12");
    /// let half = CoordLayout::parse("(4,8):(2@0,1@1)").unwrap();
    /// assert_eq!(half.complement(128).unwrap().to_string(), "(2,2):(1@0,8@1)");
    /// ```
    ///
    /// # Errors
    ///
    /// `n` below 1; a negative stride; strides below `n` that, sorted, are not each a multiple of what the smaller ones cover;
    /// copies that would meet beyond `n`; named strides; a stride along several axes.
    pub const fn complement(&self, n: i64) -> Result<Self, LayoutError> {
        match self.complement_with(n, Padding::Refuse) {
            Err(error @ LayoutError::NotChained { .. }) => {
                let Some(layout) = self.integers() else {
                    return Err(error);
                };
                match attempt!(complement_below(&layout, n)) {
                    Some(modes) => self.with_integers(&modes),
                    None => Err(error),
                }
            }
            other => other,
        }
    }

    /// The copies of this layout that fit into `0..n` by CuTe's rule, whether or not they cover it: each gap takes as many whole
    /// copies of what lies below it as fit, and the next copies begin behind the layout and its padding. The copies
    /// `L + C(j)` are disjoint and in order. Where [`complement`](Self::complement) exists for an `n` that is no less than the
    /// cosize, this is the same layout.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let padded = Layout::parse("(64,64):(72,1)").unwrap();
    /// assert_eq!(padded.complement(4600).unwrap_err().code(), "not_chained");
    /// assert_eq!(padded.complement_partial(4600).unwrap().to_string(), "1:0");
    /// assert_eq!(padded.complement_partial(3 * 4608).unwrap().to_string(), "3:4608");
    /// ```
    ///
    /// # Errors
    ///
    /// `n` below 1; a negative stride; a stride below what the smaller ones cover; named strides; a stride along several axes.
    pub const fn complement_partial(&self, n: i64) -> Result<Self, LayoutError> {
        match self.complement_with(n, Padding::Fill) {
            Ok(copies) => Ok(copies.coalesce()),
            Err(error) => Err(error.of("complement_partial")),
        }
    }

    /// The complement under a rule for padding. With padding the last mode is kept even if its extent is 1, since it says
    /// where further copies go.
    pub(crate) const fn complement_with(
        &self,
        n: i64,
        padding: Padding,
    ) -> Result<Self, LayoutError> {
        attempt!(at_least_one(OPERATION, "n", n));
        if let Basis::Names(_) = self.basis
            && self.integers().is_none()
        {
            return Err(LayoutError::NamedStrides {
                operation: OPERATION,
            });
        }
        let axes = match self.basis {
            Basis::Axes(profile) => profile.leaves(),
            _ => 1,
        };
        attempt!(self.along_single_axes(OPERATION));
        let mut modes = Modes::<K>::EMPTY;
        let mut total = 1i64;
        let mut k = 0;
        while k < axes {
            let gaps = attempt!(gaps(&self.component(k), padding));
            let mut i = 0;
            while i < gaps.modes.len {
                modes.push_coalesced(gaps.modes.extent[i], unit(k, gaps.modes.stride[i][0]));
                i += 1;
            }
            total = attempt!(fits(total.checked_mul(gaps.covered), OPERATION));
            if k + 1 == axes {
                let blocks = (n - 1) / total + 1;
                let last = unit(k, gaps.covered);
                if blocks == 1 && !matches!(padding, Padding::Refuse) {
                    modes.push(1, last);
                } else {
                    modes.push_coalesced(blocks, last);
                }
            }
            k += 1;
        }
        self.with_modes(&modes)
    }

    /// A flat layout of integer strides with the strides of this kind.
    const fn with_integers(&self, modes: &Modes<1>) -> Result<Self, LayoutError> {
        let mut wide = Modes::<K>::EMPTY;
        let mut i = 0;
        while i < modes.len {
            wide.push(modes.extent[i], unit(0, modes.stride[i][0]));
            i += 1;
        }
        self.with_modes(&wide)
    }

    /// The strides' component `k` as a layout of integers.
    pub(crate) const fn component(&self, k: usize) -> Layout {
        let mut stride = [[0]; MAX_MODES];
        let mut i = 0;
        while i < self.leaves() {
            stride[i] = [self.stride[i][k]];
            i += 1;
        }
        // Fits, as checked for each component when the layout was made.
        Layout {
            profile: self.profile,
            shape: self.shape,
            stride,
            basis: Basis::Integers,
        }
    }

    /// Refuses a mode of a coordinate layout that moves along several axes.
    pub(crate) const fn along_single_axes(
        &self,
        operation: &'static str,
    ) -> Result<(), LayoutError> {
        if let Basis::Axes(_) = self.basis {
            let mut i = 0;
            while i < self.leaves() {
                let mut parts = 0;
                let mut k = 0;
                while k < K {
                    if self.stride[i][k] != 0 {
                        parts += 1;
                    }
                    k += 1;
                }
                if parts > 1 && self.shape[i] > 1 {
                    return Err(LayoutError::DiagonalStride { operation, mode: i });
                }
                i += 1;
            }
        }
        Ok(())
    }
}

/// `length` along axis `k`.
const fn unit<const K: usize>(k: usize, length: i64) -> [i64; K] {
    let mut vector = [0; K];
    vector[k] = length;
    vector
}

impl Swizzled {
    /// The complement of the layout inside, under the same swizzle: every offset of `Sw(0..n)` is `Sw(L(i) + C(j))` for
    /// exactly one pair. See [`Layout::complement`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o 4:4").unwrap();
    /// assert_eq!(tile.complement(16).unwrap().to_string(), "Sw<2,0,2> o 4:1");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::complement`].
    pub const fn complement(&self, n: i64) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.complement(n)))
    }

    /// The copies of the layout inside that fit into `0..n`, under the same swizzle; see [`Layout::complement_partial`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,2):(1,6)").unwrap();
    /// assert_eq!(tile.complement_partial(24).unwrap().to_string(), "Sw<2,0,2> o 2:12");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::complement_partial`].
    pub const fn complement_partial(&self, n: i64) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.complement_partial(n)))
    }

    /// The coordinates along which the offset does not change; see [`Layout::nullspace`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,3):(4,0)").unwrap().nullspace().to_string(), "3:4");
    /// ```
    pub const fn nullspace(&self) -> Layout {
        self.layout.nullspace()
    }
}

impl<const K: usize> Strided<K> {
    /// The coordinates along which the layout does not move: `N` with `L(N(i)) = 0`, made of the modes of stride 0. `1:0` if
    /// the layout has no such mode.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,3,2):(1,0,4)").unwrap().nullspace().to_string(), "3:4");
    /// ```
    pub const fn nullspace(&self) -> Layout {
        let mut modes = Modes::<1>::EMPTY;
        let mut running = 1;
        let mut i = 0;
        while i < self.leaves() {
            if is_zero(&self.stride[i]) {
                modes.push_coalesced(self.shape[i], [running]);
            }
            running *= self.shape[i];
            i += 1;
        }
        match modes.into_layout() {
            Ok(layout) => layout,
            // Unreachable: the offsets are linear coordinates of `self`, which fit.
            Err(_) => Layout::UNIT,
        }
    }
}
