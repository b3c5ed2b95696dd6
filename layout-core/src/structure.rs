//! Rearranging modes: by number, without looking at extents or strides.
//!
//! The same operations act on tuples, on layouts of every kind and on swizzled layouts. They are written once, on
//! [`Strided`]: a tuple is the shape of a layout without strides (`K = 0`), and a swizzled layout rearranges the layout
//! inside it.
//!
//! ```text
//! (a,b,c,d)   group(1,3)    (a,(b,c),d)        append(x)     (a,b,c,d,x)
//!             take(1,3)     (b,c)              prepend(x)    (x,a,b,c,d)
//!             select(3,0)   (d,a)              replace(1,x)  (a,x,c,d)
//!             reverse()     (d,c,b,a)          zip((p,q,r,s)) ((a,p),(b,q),(c,r),(d,s))
//! (a,(b,c))   flatten()     (a,b,c)            unflatten((a,b,c), (1,(1,1)))  (a,(b,c))
//! ```

use crate::basis::Basis;
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::profile::{MAX_MODES, Node};
use crate::strided::{LayoutBuilder, Strided};

/// Which mode of which operand comes next; see [`Strided::picked`].
type Pick = (usize, usize);

impl<const K: usize> Strided<K> {
    const fn child(&self, mode: usize) -> Result<Node, LayoutError> {
        match self.profile.child(self.root(), mode) {
            Some(node) => Ok(node),
            None => Err(LayoutError::ModeOutOfRange {
                mode,
                rank: self.rank(),
            }),
        }
    }

    /// The modes that `picks` names, of this layout (0) or of `other` (1; as a whole), in one tuple; those from `group.0` up
    /// to but without `group.1` in a tuple of their own.
    const fn picked(
        &self,
        other: &Self,
        picks: &[Pick],
        group: (usize, usize),
    ) -> Result<Self, LayoutError> {
        if picks.is_empty() {
            return Err(LayoutError::EmptyTuple);
        }
        let mut builder = LayoutBuilder::like(self);
        builder.open();
        let mut i = 0;
        while i < picks.len() {
            if i == group.0 && group.0 < group.1 {
                builder.open();
            }
            if picks[i].0 == 0 {
                builder.append(self, attempt!(self.child(picks[i].1)));
            } else {
                attempt!(builder.append_other(other, other.root()));
            }
            i += 1;
            if i == group.1 && group.0 < group.1 {
                builder.close();
            }
        }
        builder.close();
        builder.finish_unchecked()
    }

    /// All modes of this layout in order, with room for one more.
    const fn all(&self) -> ([Pick; MAX_MODES + 1], usize) {
        let mut picks = [(0, 0); MAX_MODES + 1];
        let rank = self.rank();
        let mut i = 0;
        while i < rank {
            picks[i] = (0, i);
            i += 1;
        }
        (picks, rank)
    }

    const fn in_range(&self, begin: usize, end: usize) -> Result<(), LayoutError> {
        let rank = self.rank();
        if begin < end && end <= rank {
            Ok(())
        } else {
            Err(LayoutError::InvalidRange { begin, end, rank })
        }
    }

    pub(crate) const fn group_unchecked(
        &self,
        begin: usize,
        end: usize,
    ) -> Result<Self, LayoutError> {
        attempt!(self.in_range(begin, end));
        let (picks, rank) = self.all();
        self.picked(self, picks.split_at(rank).0, (begin, end))
    }

    pub(crate) const fn take_unchecked(
        &self,
        begin: usize,
        end: usize,
    ) -> Result<Self, LayoutError> {
        attempt!(self.in_range(begin, end));
        let (picks, _) = self.all();
        self.picked(self, picks.split_at(end).0.split_at(begin).1, (0, 0))
    }

    pub(crate) const fn select_unchecked(&self, modes: &[usize]) -> Result<Self, LayoutError> {
        if modes.len() > MAX_MODES {
            return Err(LayoutError::TooManyModes);
        }
        let mut picks = [(0, 0); MAX_MODES];
        let mut i = 0;
        while i < modes.len() {
            picks[i] = (0, modes[i]);
            i += 1;
        }
        self.picked(self, picks.split_at(modes.len()).0, (0, 0))
    }

    pub(crate) const fn append_unchecked(&self, mode: &Self) -> Result<Self, LayoutError> {
        let (mut picks, rank) = self.all();
        picks[rank] = (1, 0);
        self.picked(mode, picks.split_at(rank + 1).0, (0, 0))
    }

    pub(crate) const fn prepend_unchecked(&self, mode: &Self) -> Result<Self, LayoutError> {
        let (mut picks, rank) = self.all();
        let mut i = rank;
        while i > 0 {
            picks[i] = picks[i - 1];
            i -= 1;
        }
        picks[0] = (1, 0);
        self.picked(mode, picks.split_at(rank + 1).0, (0, 0))
    }

    pub(crate) const fn replace_unchecked(
        &self,
        mode: usize,
        with: &Self,
    ) -> Result<Self, LayoutError> {
        attempt!(self.child(mode));
        if self.profile.is_leaf(self.root()) {
            return Ok(*with);
        }
        let (mut picks, rank) = self.all();
        picks[mode] = (1, 0);
        self.picked(with, picks.split_at(rank).0, (0, 0))
    }

    pub(crate) const fn reverse_unchecked(&self) -> Result<Self, LayoutError> {
        if self.profile.is_leaf(self.root()) {
            return Ok(*self);
        }
        let (mut picks, rank) = self.all();
        let mut i = 0;
        while i < rank {
            picks[i] = (0, rank - 1 - i);
            i += 1;
        }
        self.picked(self, picks.split_at(rank).0, (0, 0))
    }

    pub(crate) const fn zip_unchecked(&self, other: &Self) -> Result<Self, LayoutError> {
        let (x, y) = (self.root(), other.root());
        let leaf = (self.profile.is_leaf(x), other.profile.is_leaf(y));
        let (left, right) = (self.rank(), other.rank());
        if leaf.0 != leaf.1 {
            return Err(LayoutError::IntegerForTuple {
                operation: "zip",
                elements: if leaf.0 { right } else { left },
            });
        }
        if left != right {
            return Err(LayoutError::RankMismatch {
                operation: "zip",
                left,
                right,
            });
        }
        let mut builder = LayoutBuilder::like(self);
        if !leaf.0 {
            builder.open();
        }
        let mut mode = Some(self.profile.first(x));
        let mut partner = Some(other.profile.first(y));
        while let (Some(m), Some(n)) = (mode, partner) {
            builder.open();
            builder.append(self, m);
            attempt!(builder.append_other(other, n));
            builder.close();
            mode = self.profile.next(x, m);
            partner = other.profile.next(y, n);
        }
        if !leaf.0 {
            builder.close();
        }
        builder.finish_unchecked()
    }

    pub(crate) const fn unflatten_unchecked(
        &self,
        profile: &IntTuple,
    ) -> Result<Self, LayoutError> {
        let (modes, elements) = (self.rank(), profile.leaves());
        if modes != elements {
            return Err(LayoutError::WrongProfile {
                operation: "unflatten",
                modes,
                elements,
            });
        }
        if profile.is_int() {
            return self.extract_unchecked(attempt!(self.child(0)));
        }
        let mut builder = LayoutBuilder::like(self);
        attempt!(self.unflatten_node(&mut builder, profile, profile.root()));
        builder.finish_unchecked()
    }

    const fn unflatten_node(
        &self,
        builder: &mut LayoutBuilder<K>,
        profile: &IntTuple,
        at: Node,
    ) -> Result<(), LayoutError> {
        if profile.profile.is_leaf(at) {
            builder.append(self, attempt!(self.child(at.start)));
            return Ok(());
        }
        builder.open();
        let mut element = Some(profile.profile.first(at));
        while let Some(e) = element {
            attempt!(self.unflatten_node(builder, profile, e));
            element = profile.profile.next(at, e);
        }
        builder.close();
        Ok(())
    }

    const fn extract_unchecked(&self, node: Node) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::like(self);
        builder.append(self, node);
        builder.finish_unchecked()
    }

    /// Top-level mode `i`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let layout = Layout::parse("(4,(2,3)):(1,(4,8))").unwrap();
    /// assert_eq!(layout.get(1).unwrap().to_string(), "(2,3):(4,8)");
    /// ```
    ///
    /// # Errors
    ///
    /// `i` at or beyond the rank.
    pub const fn get(&self, i: usize) -> Result<Self, LayoutError> {
        self.extract_unchecked(attempt!(self.child(i)))
    }

    /// The same modes without inner parentheses; a bare mode stays.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,(2,2)):(ld,(1,2))").unwrap();
    /// assert_eq!(layout.flatten().to_string(), "(8,2,2):(ld,1,2)");
    /// ```
    #[must_use]
    pub const fn flatten(&self) -> Self {
        let mut result = *self;
        if !self.profile.is_leaf(self.root()) {
            result.profile = crate::profile::Profile::flat(self.leaves());
        }
        result
    }
}

/// Declares the rearranging operations on a type. `$raw` turns a value into its modes, `$done` turns modes back.
macro_rules! rearranging {
    ([$($generics:tt)*] $Type:ty, $Mode:ty, $mode:ident => $modes:expr, $self:ident => $raw:expr, $result:ident => $done:expr, $new:literal) => {
        impl $($generics)* $Type {
            /// Modes `begin..end` as one mode.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3,4)").unwrap();
            /// assert_eq!(shape.group(1, 3).unwrap().to_string(), "(2,(3,4))");
            /// assert_eq!(x.group(0, 2).unwrap().rank(), 2);
            /// ```
            ///
            /// # Errors
            ///
            /// A range that is empty or ends beyond the rank.
            pub const fn group(&$self, begin: usize, end: usize) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.group_unchecked(begin, end));
                $done
            }

            /// Modes `begin..end` alone.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3,4)").unwrap();
            /// assert_eq!(shape.take(1, 3).unwrap().to_string(), "(3,4)");
            /// assert_eq!(x.take(0, 2).unwrap().rank(), 2);
            /// ```
            ///
            /// # Errors
            ///
            /// A range that is empty or ends beyond the rank.
            pub const fn take(&$self, begin: usize, end: usize) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.take_unchecked(begin, end));
                $done
            }

            /// The modes with these numbers, in this order.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3,4)").unwrap();
            /// assert_eq!(shape.select(&[2, 0]).unwrap().to_string(), "(4,2)");
            /// assert_eq!(x.select(&[2]).unwrap().rank(), 1);
            /// ```
            ///
            /// # Errors
            ///
            /// No number at all, or one at or beyond the rank.
            pub const fn select(&$self, modes: &[usize]) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.select_unchecked(modes));
                $done
            }

            /// The modes followed by one more.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3)").unwrap();
            /// assert_eq!(shape.append(&IntTuple::int(5)).unwrap().to_string(), "(2,3,5)");
            /// assert_eq!(x.reverse().unwrap().rank(), 3);
            /// ```
            ///
            /// # Errors
            ///
            /// A result beyond the capacity; coordinates with different axes.
            pub const fn append(&$self, $mode: &$Mode) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.append_unchecked($modes));
                $done
            }

            /// One mode followed by the modes.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3)").unwrap();
            /// assert_eq!(shape.prepend(&IntTuple::int(5)).unwrap().to_string(), "(5,2,3)");
            /// assert_eq!(x.rank(), 3);
            /// ```
            ///
            /// # Errors
            ///
            /// As [`append`](Self::append).
            pub const fn prepend(&$self, $mode: &$Mode) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.prepend_unchecked($modes));
                $done
            }

            /// The modes with another one in place of mode `i`.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,3)").unwrap();
            /// assert_eq!(shape.replace(1, &IntTuple::int(5)).unwrap().to_string(), "(2,5)");
            /// assert_eq!(x.rank(), 3);
            /// ```
            ///
            /// # Errors
            ///
            /// `i` at or beyond the rank, and as [`append`](Self::append).
            pub const fn replace(&$self, i: usize, $mode: &$Mode) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.replace_unchecked(i, $modes));
                $done
            }

            /// The top-level modes from the last to the first.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let shape = IntTuple::parse("(2,(3,4))").unwrap();
            /// assert_eq!(shape.reverse().unwrap().to_string(), "((3,4),2)");
            /// assert_eq!(x.reverse().unwrap().reverse().unwrap(), x);
            /// ```
            ///
            /// # Errors
            ///
            /// None that rearranging alone can meet.
            pub const fn reverse(&$self) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.reverse_unchecked());
                $done
            }

            /// Pairs of modes, `((a0,b0),(a1,b1),…)`; of bare modes, `(a,b)`.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let t = |s: &str| IntTuple::parse(s).unwrap();
            /// assert_eq!(t("(2,3)").zip(&t("(4,5)")).unwrap().to_string(), "((2,4),(3,5))");
            /// assert_eq!(x.rank(), 3);
            /// ```
            ///
            /// # Errors
            ///
            /// Different ranks, and as [`append`](Self::append).
            pub const fn zip(&$self, $mode: &$Mode) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.zip_unchecked($modes));
                $done
            }

            /// The top-level modes with the parentheses of `profile`, which has as many leaves: the inverse of `flatten`.
            ///
            /// ```
            #[doc = concat!("use layout_core::{IntTuple, Layout, Swizzled};\nlet x = ", $new, ";")]
            /// let t = |s: &str| IntTuple::parse(s).unwrap();
            /// assert_eq!(t("(2,3,4)").unflatten(&t("(1,(1,1))")).unwrap().to_string(), "(2,(3,4))");
            /// assert_eq!(x.unflatten(&t("(1,(1,1))")).unwrap().rank(), 2);
            /// ```
            ///
            /// # Errors
            ///
            /// As many modes as leaves are needed.
            pub const fn unflatten(&$self, profile: &IntTuple) -> Result<Self, LayoutError> {
                let $result = attempt!($raw.unflatten_unchecked(profile));
                $done
            }
        }
    };
}
pub(crate) use rearranging;

rearranging!([<const K: usize>] Strided<K>, Strided<K>, mode => mode, self => self, result => result.checked(),
    "Layout::parse(\"(2,3,4):(1,2,6)\").unwrap()");

rearranging!([] IntTuple, IntTuple, mode => &mode.as_modes(), self => self.as_modes(),
    result => Ok(IntTuple { profile: result.profile, values: result.shape }),
    "IntTuple::parse(\"(2,3,4)\").unwrap()");

impl IntTuple {
    /// The tuple as a shape without strides.
    const fn as_modes(&self) -> Strided<0> {
        Strided {
            profile: self.profile,
            shape: self.values,
            stride: [[]; MAX_MODES],
            basis: Basis::Integers,
        }
    }

    /// The integers without inner parentheses: `(4,(2,2))` gives `(4,2,2)`; an integer stays.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,2))").unwrap().flatten().to_string(), "(4,2,2)");
    /// ```
    #[must_use]
    pub const fn flatten(&self) -> Self {
        let flat = self.as_modes().flatten();
        Self {
            profile: flat.profile,
            values: flat.shape,
        }
    }
}
