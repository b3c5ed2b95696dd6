//! The same function with fewer modes.
//!
//! `coalesce` merges neighbouring modes `s0:d0, s1:d1` with `d1 = s0·d0` into `s0·s1:d0` and drops extents of 1; the result
//! is the same function of the linear coordinate, and it is the *only* such flat layout: two layouts are equal as functions
//! exactly if they coalesce to the same one.
//!
//! ```
//! use layout_core::Layout;
//! let layout = Layout::parse("((2,2),(1,3)):((1,2),(7,5))").unwrap();
//! assert_eq!(layout.coalesce().to_string(), "(4,3):(1,5)");
//! ```

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::modes::Modes;
use crate::profile::Node;
use crate::strided::{LayoutBuilder, Strided, is_zero};
use crate::swizzled::Swizzled;

impl<const K: usize> Strided<K> {
    /// The flat layout with the fewest modes that is the same function on `0..size`; a layout of extents 1 gives `1:0`.
    ///
    /// ```
    /// use layout_core::{Affine, Layout};
    /// assert_eq!(Layout::parse("((2,4),5):((1,2),8)").unwrap().coalesce().to_string(), "40:1");
    /// assert_eq!(Affine::parse("(8,2,4):(ld,8*ld,1)").unwrap().coalesce().to_string(), "(16,4):(ld,1)");
    /// ```
    #[must_use]
    pub const fn coalesce(&self) -> Self {
        self.merged(&self.modes().coalesced())
    }

    /// A list of modes that are no larger than this layout's.
    const fn merged(&self, modes: &Modes<K>) -> Self {
        match self.with_modes(modes) {
            Ok(layout) => layout,
            // Unreachable: merging or dropping modes makes neither size nor offsets larger.
            Err(_) => *self,
        }
    }

    /// Coalesces each mode that the profile keeps apart: a tuple in `profile` is entered, an integer says "coalesce this
    /// mode as a whole". Modes beyond the profile's rank stay as they are.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let layout = Layout::parse("((2,2),(2,3)):((1,2),(4,8))").unwrap();
    /// let modes = IntTuple::parse("(1,1)").unwrap();
    /// assert_eq!(layout.coalesce_by_profile(&modes).unwrap().to_string(), "(4,6):(1,4)");
    /// ```
    ///
    /// # Errors
    ///
    /// A profile of higher rank than the layout has at that place.
    pub const fn coalesce_by_profile(&self, profile: &IntTuple) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::like(self);
        attempt!(self.coalesce_node(&mut builder, self.root(), profile, profile.root()));
        builder.finish()
    }

    const fn coalesce_node(
        &self,
        builder: &mut LayoutBuilder<K>,
        node: Node,
        profile: &IntTuple,
        at: Node,
    ) -> Result<(), LayoutError> {
        if profile.profile.is_leaf(at) {
            let merged = attempt!(self.extract(node)).coalesce();
            builder.append(&merged, merged.root());
            return Ok(());
        }
        let modes = self.profile.rank(node);
        let tiles = profile.profile.rank(at);
        if self.profile.is_leaf(node) {
            return Err(LayoutError::TupleForInteger {
                operation: "coalesce by profile",
                mode: node.start,
                elements: tiles,
            });
        }
        if tiles > modes {
            return Err(LayoutError::TilerRank {
                operation: "coalesce by profile",
                modes,
                tiles,
            });
        }
        builder.open();
        let mut mode = Some(self.profile.first(node));
        let mut element = Some(profile.profile.first(at));
        while let Some(m) = mode {
            match element {
                Some(e) => {
                    attempt!(self.coalesce_node(builder, m, profile, e));
                    element = profile.profile.next(at, e);
                }
                None => builder.append(self, m),
            }
            mode = self.profile.next(node, m);
        }
        builder.close();
        Ok(())
    }

    /// The layout without its modes of stride 0 or extent 1, coalesced: one coordinate for each offset that such modes
    /// repeat (CuTe's `filter`).
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,3,2):(1,0,4)").unwrap().filter().to_string(), "8:1");
    /// ```
    #[must_use]
    pub const fn filter(&self) -> Self {
        let mut modes = Modes::EMPTY;
        let mut i = 0;
        while i < self.leaves() {
            if !is_zero(&self.stride[i]) {
                modes.push_coalesced(self.shape[i], self.stride[i]);
            }
            i += 1;
        }
        self.merged(&modes)
    }

    /// The layout with extent 1 wherever the stride is 0; parentheses stay (CuTe's `filter_zeros`).
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,3,2):(1,0,4)").unwrap().filter_zeros().to_string(), "(4,1,2):(1,0,4)");
    /// ```
    #[must_use]
    pub const fn filter_zeros(&self) -> Self {
        let mut result = *self;
        let mut i = 0;
        while i < self.leaves() {
            if is_zero(&self.stride[i]) {
                result.shape[i] = 1;
            }
            i += 1;
        }
        result
    }
}

impl<const K: usize> Swizzled<K> {
    /// The layout inside coalesced; see [`Layout::coalesce`](crate::Layout::coalesce).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(1,4)").unwrap();
    /// assert_eq!(tile.coalesce().to_string(), "Sw<2,0,2> o 16:1");
    /// ```
    #[must_use]
    pub const fn coalesce(&self) -> Self {
        Self {
            layout: self.layout.coalesce(),
            ..*self
        }
    }

    /// The modes of the layout inside coalesced; see [`Layout::coalesce_by_profile`](crate::Layout::coalesce_by_profile).
    ///
    /// ```
    /// use layout_core::{IntTuple, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o ((2,2),4):((1,2),4)").unwrap();
    /// let modes = IntTuple::parse("(1,1)").unwrap();
    /// assert_eq!(tile.coalesce_by_profile(&modes).unwrap().to_string(), "Sw<2,0,2> o (4,4):(1,4)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::coalesce_by_profile`](crate::Layout::coalesce_by_profile).
    pub const fn coalesce_by_profile(&self, profile: &IntTuple) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.coalesce_by_profile(profile)))
    }

    /// The layout inside without modes of stride 0 or extent 1; see [`Layout::filter`](crate::Layout::filter).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,3):(4,0)").unwrap().filter().to_string(), "Sw<2,0,2> o 4:4");
    /// ```
    #[must_use]
    pub const fn filter(&self) -> Self {
        Self {
            layout: self.layout.filter(),
            ..*self
        }
    }

    /// Extent 1 wherever the stride is 0; see [`Layout::filter_zeros`](crate::Layout::filter_zeros).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,3):(4,0)").unwrap();
    /// assert_eq!(tile.filter_zeros().to_string(), "Sw<2,0,2> o (4,1):(4,0)");
    /// ```
    #[must_use]
    pub const fn filter_zeros(&self) -> Self {
        Self {
            layout: self.layout.filter_zeros(),
            ..*self
        }
    }
}
