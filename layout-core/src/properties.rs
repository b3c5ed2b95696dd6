//! What is true of a layout as a function: decided exactly, without looking at every element where strides tell.
//!
//! * *Onto*: sorted, each stride must be at most one more than all the smaller modes reach together; otherwise the offset
//!   after that reach is missing. So `is_surjective_onto` needs one pass over the modes.
//! * *Injective*: two coordinates meet exactly if `Σ δₖ·tₖ = 0` for some `|δₖ| < nₖ`, not all 0: a search with strong bounds,
//!   one pass when every stride is greater than what the smaller modes reach.
//! * *Equal*: two layouts are the same function exactly if they coalesce to the same one.
//!
//! A swizzle is a bijection on all integers, so it changes neither injectivity nor how many offsets there are.

use crate::complement::sorted_leaves;
use crate::error::{LayoutError, attempt};
use crate::inverse::leaf_steps;
use crate::layout::Layout;
use crate::modes::SEARCH_LIMIT;
use crate::profile::MAX_MODES;
use crate::search::Search;
use crate::strided::{Strided, is_zero};
use crate::swizzled::Swizzled;

impl<const K: usize> Strided<K> {
    /// Whether no two coordinates have the same offset.
    ///
    /// ```
    /// use layout_core::{CoordLayout, Layout};
    /// assert_eq!(Layout::parse("(4,3):(1,4)").unwrap().is_injective(), Ok(true));
    /// assert_eq!(Layout::parse("(4,3):(1,2)").unwrap().is_injective(), Ok(false));
    /// assert_eq!(CoordLayout::parse("(4,3):(1@0,1@1)").unwrap().is_injective(), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// Named strides; [`LayoutError::SearchLimit`] if the search stops, which takes many overlapping modes.
    pub const fn is_injective(&self) -> Result<bool, LayoutError> {
        const OPERATION: &str = "is_injective";
        let mut i = 0;
        while i < self.leaves() {
            if self.shape[i] > 1 && is_zero(&self.stride[i]) {
                return Ok(false);
            }
            i += 1;
        }
        let layout = attempt!(self.linearized(OPERATION));
        Ok(attempt!(layout.collision(OPERATION)).is_none())
    }

    /// Whether two layouts have the same size and the same offset at every linear coordinate; with named strides, for every
    /// value of the names.
    ///
    /// ```
    /// use layout_core::{Affine, Layout};
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert!(l("(2,2):(1,2)").equal_as_functions(&l("4:1")));
    /// let a = |s: &str| Affine::parse(s).unwrap();
    /// assert!(a("(2,2):(ld,2*ld)").equal_as_functions(&a("4:ld")));
    /// ```
    pub const fn equal_as_functions(&self, other: &Self) -> bool {
        self.size() == other.size() && self.coalesce().equals(&other.coalesce())
    }
}

impl Layout {
    /// Two coordinates with the same offset, as an error, if there are any; modes of stride 0 aside.
    pub(crate) const fn collision(
        &self,
        operation: &'static str,
    ) -> Result<Option<LayoutError>, LayoutError> {
        let steps = leaf_steps(self);
        let (order, len) = sorted_leaves(self);
        let mut search = Search::EMPTY;
        let mut apart = true;
        // What the smaller modes reach; the sum is at most the span of the layout.
        let mut reach = 0;
        let mut i = 0;
        while i < len {
            let last = self.shape[order[i]] - 1;
            let stride = self.step(order[i]);
            search.push(stride, -last, last);
            apart = apart && stride.abs() > reach;
            reach += last * stride.abs();
            i += 1;
        }
        if apart {
            return Ok(None);
        }
        // A solution other than that of zeros alone.
        let mut walk = search.walk(0);
        let digits = loop {
            match attempt!(search.next(&mut walk, operation)) {
                Some(digits) if all_zero(&digits, len) => {}
                Some(digits) => break digits,
                None => return Ok(None),
            }
        };
        let (mut first, mut second, mut offset) = (0, 0, 0);
        i = 0;
        while i < len {
            let step = steps[order[i]];
            if digits[i] > 0 {
                first += digits[i] * step;
                offset += digits[i] * self.step(order[i]);
            } else {
                second -= digits[i] * step;
            }
            i += 1;
        }
        if first > second {
            (first, second) = (second, first);
        }
        Ok(Some(LayoutError::NotInjective {
            operation,
            first,
            second,
            offset,
        }))
    }

    /// Whether the offsets are exactly `0..n`, each at least once.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = Layout::parse("(4,3):(1,2)").unwrap();
    /// assert!(l.is_surjective_onto(8) && !l.is_surjective_onto(9));
    /// ```
    pub const fn is_surjective_onto(&self, n: i64) -> bool {
        let (min, max) = self.offset_range();
        min == 0 && max == n - 1 && self.has_no_gaps()
    }

    /// Whether the offsets are exactly `0..size`, each once.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert!(Layout::parse("(4,8):(8,1)").unwrap().is_bijective());
    /// assert!(!Layout::parse("(4,8):(16,1)").unwrap().is_bijective());
    /// ```
    pub const fn is_bijective(&self) -> bool {
        self.is_surjective_onto(self.size())
    }

    /// Whether every offset from the least to the greatest occurs, each once; strides may be negative.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert!(Layout::parse("(4,8):(-8,1)").unwrap().is_compact());
    /// ```
    pub const fn is_compact(&self) -> bool {
        self.cosize() == self.size() && self.has_no_gaps()
    }

    /// Whether every offset from the least to the greatest occurs.
    pub(crate) const fn has_no_gaps(&self) -> bool {
        let (order, len) = sorted_leaves(self);
        let mut reach = 0;
        let mut i = 0;
        while i < len {
            let size = self.step(order[i]).unsigned_abs() as i64;
            if size > reach + 1 {
                return false;
            }
            reach += (self.shape[order[i]] - 1) * size;
            i += 1;
        }
        true
    }
}

impl Swizzled {
    /// Whether no two coordinates have the same offset; see [`Layout::is_injective`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 9:1").unwrap().is_injective(), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::is_injective`].
    pub const fn is_injective(&self) -> Result<bool, LayoutError> {
        self.layout.is_injective()
    }

    /// Whether the offsets are exactly `0..n`, each at least once.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().is_surjective_onto(16), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::TooLarge`] where the offsets inside overlap and there are more than [`SEARCH_LIMIT`] to look up.
    pub const fn is_surjective_onto(&self, n: i64) -> Result<bool, LayoutError> {
        let (min, max) = self.offset_range();
        if min != 0 || max != n - 1 {
            return Ok(false);
        }
        // As many different offsets as 0..n has room for: then they are all there.
        let distinct = self.layout.filter();
        if distinct.size() < n {
            return Ok(false);
        }
        if attempt!(distinct.is_injective()) {
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
            match self.preimage(offset) {
                Ok(_) => offset += 1,
                Err(LayoutError::NotInImage { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether the offsets are exactly `0..size`, each once.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<3,3,3> o (8,64):(64,1)").unwrap().is_bijective(), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`is_surjective_onto`](Self::is_surjective_onto).
    pub const fn is_bijective(&self) -> Result<bool, LayoutError> {
        self.is_surjective_onto(self.size())
    }

    /// Whether every offset from the least to the greatest occurs, each once.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 16 o 16:1").unwrap().is_compact(), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::is_injective`].
    pub const fn is_compact(&self) -> Result<bool, LayoutError> {
        let (min, max) = self.offset_range();
        Ok(max - min + 1 == self.size() && attempt!(self.is_injective()))
    }

    /// Whether two swizzled layouts are the same function: by their parts where swizzle and offset agree, else element by
    /// element.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// assert_eq!(s("Sw<2,0,2> o 4:1").equal_as_functions(&s("4:1")), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::TooLarge`] where more than [`SEARCH_LIMIT`] elements would have to be compared.
    pub const fn equal_as_functions(&self, other: &Self) -> Result<bool, LayoutError> {
        let size = self.size();
        if size != other.size() || self.index(0) != other.index(0) {
            return Ok(false);
        }
        if self.swizzle.equals(&other.swizzle) && self.layout.equal_as_functions(&other.layout) {
            // The swizzle is injective, so equal first elements mean equal offsets.
            return Ok(true);
        }
        let mut i = 0;
        while i < size {
            if i == SEARCH_LIMIT {
                return Err(LayoutError::TooLarge {
                    operation: "equal_as_functions",
                    size,
                    limit: SEARCH_LIMIT,
                });
            }
            if self.index(i) != other.index(i) {
                return Ok(false);
            }
            i += 1;
        }
        Ok(true)
    }
}

const fn all_zero(digits: &[i64; MAX_MODES], len: usize) -> bool {
    let mut i = 0;
    while i < len {
        if digits[i] != 0 {
            return false;
        }
        i += 1;
    }
    true
}
