//! The plain layout: strides and offsets are integers.

use core::str::FromStr;

use crate::basis::Basis;
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::parse::{ParseError, Scanner};
use crate::profile::{MAX_MODES, Node, Profile};
use crate::strided::{Strided, compact_step};

/// A function from coordinates to integer offsets, such as `(4,(2,3)):(2,(1,8))`. Units are the user's (elements, bytes,
/// threads).
///
/// ```
/// use layout_core::Layout;
/// let layout = Layout::parse("(4,(2,3)):(2,(1,8))").unwrap();
/// assert_eq!((layout.size(), layout.cosize()), (24, 24));
/// assert_eq!(layout.index(4), 1); // coordinate (0,(1,0))
/// ```
pub type Layout = Strided<1>;

impl Strided<1> {
    /// `1:0`: one coordinate, offset 0.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::UNIT.to_string(), "1:0");
    /// ```
    pub const UNIT: Self = {
        let mut shape = [0; MAX_MODES];
        shape[0] = 1;
        Self {
            profile: Profile::LEAF,
            shape,
            stride: [[0]; MAX_MODES],
            basis: Basis::Integers,
        }
    };

    /// The layout `shape:stride`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let t = |s: &str| IntTuple::parse(s).unwrap();
    /// assert_eq!(Layout::new(t("(4,8)"), t("(8,1)")).unwrap().to_string(), "(4,8):(8,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Different parentheses, an extent below 1, a size or offsets that do not fit in 64 bits.
    pub const fn new(shape: IntTuple, stride: IntTuple) -> Result<Self, LayoutError> {
        if let Some(leaf) = shape.profile.difference(&stride.profile) {
            return Err(LayoutError::NotCongruent {
                leaf,
                left: shape.leaves(),
                right: stride.leaves(),
            });
        }
        let mut strides = [[0]; MAX_MODES];
        let mut i = 0;
        while i < stride.leaves() {
            strides[i] = [stride.values[i]];
            i += 1;
        }
        Self::from_parts(shape, strides)
    }

    /// The mode `extent:stride`, without parentheses.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::mode(8, 2).unwrap().to_string(), "8:2");
    /// ```
    ///
    /// # Errors
    ///
    /// An extent below 1, offsets that do not fit in 64 bits.
    pub const fn mode(extent: i64, stride: i64) -> Result<Self, LayoutError> {
        Self::new(IntTuple::int(extent), IntTuple::int(stride))
    }

    /// The flat layout `(s0,s1,…):(d0,d1,…)`; one mode gives `(s0):(d0)`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::flat(&[4, 8], &[8, 1]).unwrap().to_string(), "(4,8):(8,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Slices of different lengths or empty, and the errors of [`Layout::new`].
    pub const fn flat(shape: &[i64], stride: &[i64]) -> Result<Self, LayoutError> {
        Self::new(
            attempt!(IntTuple::flat(shape)),
            attempt!(IntTuple::flat(stride)),
        )
    }

    /// The compact layout of a flat shape, first mode fastest. Modes of extent 1 get stride 0.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::col_major(&[4, 8]).unwrap().to_string(), "(4,8):(1,4)");
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn col_major(shape: &[i64]) -> Result<Self, LayoutError> {
        Self::compact(attempt!(IntTuple::flat(shape)))
    }

    /// The compact layout of a flat shape, last mode fastest. Modes of extent 1 get stride 0.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::row_major(&[4, 8]).unwrap().to_string(), "(4,8):(8,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn row_major(shape: &[i64]) -> Result<Self, LayoutError> {
        Self::compact_row_major(attempt!(IntTuple::flat(shape)), 1)
    }

    /// The compact layout of a nested shape, first leaf fastest (CuTe's `make_layout(shape)`).
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(Layout::compact(shape).unwrap().to_string(), "(4,(2,3)):(1,(4,8))");
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn compact(shape: IntTuple) -> Result<Self, LayoutError> {
        Self::compact_col_major(shape, 1)
    }

    /// The compact layout of a nested shape, first leaf fastest, whose strides start at `start` (CuTe's
    /// `compact_col_major(shape, start)`).
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(Layout::compact_col_major(shape, 16).unwrap().to_string(), "(4,(2,3)):(16,(64,128))");
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn compact_col_major(shape: IntTuple, start: i64) -> Result<Self, LayoutError> {
        let mut stride = [[0]; MAX_MODES];
        let mut running = start;
        let mut i = 0;
        while i < shape.leaves() {
            running = attempt!(compact_step(&shape, &mut stride, running, i));
            i += 1;
        }
        Self::from_parts(shape, stride)
    }

    /// The compact layout of a nested shape, last leaf fastest, whose strides start at `start` (CuTe's
    /// `compact_row_major(shape, start)`).
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(Layout::compact_row_major(shape, 1).unwrap().to_string(), "(4,(2,3)):(6,(3,1))");
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn compact_row_major(shape: IntTuple, start: i64) -> Result<Self, LayoutError> {
        let mut stride = [[0]; MAX_MODES];
        let mut running = start;
        let mut i = shape.leaves();
        while i > 0 {
            i -= 1;
            running = attempt!(compact_step(&shape, &mut stride, running, i));
        }
        Self::from_parts(shape, stride)
    }

    pub(crate) const fn from_parts(
        shape: IntTuple,
        stride: [[i64; 1]; MAX_MODES],
    ) -> Result<Self, LayoutError> {
        Self {
            profile: shape.profile,
            shape: shape.values,
            stride,
            basis: Basis::Integers,
        }
        .checked()
    }

    /// Reads CuTe's notation, `(4,(2,2)):(2,(1,8))`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(8,1)").unwrap().at(&[1, 2]), 10);
    /// assert_eq!(Layout::parse("(4,8:(8,1)").unwrap_err().span, (4, 5));
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.layout() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// The strides.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(8,1)").unwrap().stride().to_string(), "(8,1)");
    /// ```
    pub const fn stride(&self) -> IntTuple {
        let mut values = [0; MAX_MODES];
        let mut i = 0;
        while i < self.leaves() {
            values[i] = self.stride[i][0];
            i += 1;
        }
        IntTuple {
            profile: self.profile,
            values,
        }
    }

    /// Extent and stride of leaf `i` in order of writing; `(1, 0)` for `i` out of range.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let layout = Layout::parse("(4,8):(8,1)").unwrap();
    /// assert_eq!((layout.leaf(1), layout.leaf(2)), ((8, 1), (1, 0)));
    /// ```
    pub const fn leaf(&self, i: usize) -> (i64, i64) {
        if i < self.leaves() {
            (self.shape[i], self.stride[i][0])
        } else {
            (1, 0)
        }
    }

    /// Stride of leaf `i`, which must exist.
    pub(crate) const fn step(&self, i: usize) -> i64 {
        self.stride[i][0]
    }

    /// Number of offsets from the least to the greatest that occur, both included; for positive strides that is the
    /// greatest offset plus 1. Memory for the layout needs this many elements.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(16,1)").unwrap().cosize(), 56);
    /// ```
    pub const fn cosize(&self) -> i64 {
        let (min, max) = self.offset_range();
        max - min + 1
    }

    /// Least and greatest offset. Offset 0 always occurs, so the least is at most 0.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,3):(-2,10)").unwrap().offset_range(), (-6, 20));
    /// ```
    pub const fn offset_range(&self) -> (i64, i64) {
        let mut min = 0;
        let mut max = 0;
        let mut i = 0;
        while i < self.leaves() {
            let reach = (self.shape[i] - 1) * self.stride[i][0];
            if reach < 0 {
                min += reach;
            } else {
                max += reach;
            }
            i += 1;
        }
        (min, max)
    }

    /// The offset at linear coordinate `i`, first leaf fastest. The last leaf never wraps, and a negative `i` continues it
    /// downwards. Never overflows for `0 <= i < size()`; far outside it wraps around (see
    /// [`checked_index`](Self::checked_index)).
    ///
    /// ```
    /// use layout_core::Layout;
    /// let layout = Layout::parse("(4,8):(8,1)").unwrap();
    /// assert_eq!([0, 1, 4, 32].map(|i| layout.index(i)), [0, 8, 1, 8]);
    /// ```
    pub const fn index(&self, i: i64) -> i64 {
        self.node_index(self.root(), i)
    }

    /// [`index`](Self::index), or an error where the offset does not fit in 64 bits.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let layout = Layout::parse("4:1000").unwrap();
    /// assert_eq!(layout.checked_index(3), Ok(3000));
    /// assert_eq!(layout.checked_index(i64::MAX).unwrap_err().code(), "overflow");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow, which needs a coordinate far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<i64, LayoutError> {
        Ok(attempt!(self.checked_node_index(self.root(), i))[0])
    }

    /// The offset at one linear coordinate for each top-level mode. In each mode the last leaf never wraps.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,(2,2)):(2,(1,8))").unwrap().at(&[3, 2]), 14);
    /// ```
    ///
    /// # Panics
    ///
    /// Unless there is exactly one coordinate for each top-level mode, as indexing an array out of range does; for
    /// coordinates from outside use [`at_coord`](Self::at_coord).
    #[track_caller]
    pub const fn at(&self, coordinates: &[i64]) -> i64 {
        let root = self.root();
        let mut child = Some(self.profile.first(root));
        let mut offset = 0i64;
        let mut i = 0;
        while let Some(node) = child {
            assert!(i < coordinates.len(), "fewer coordinates than modes");
            offset = offset.wrapping_add(self.node_index(node, coordinates[i]));
            child = self.profile.next(root, node);
            i += 1;
        }
        assert!(i == coordinates.len(), "more coordinates than modes");
        offset
    }

    /// The offset at a coordinate, natural (`(1,(0,2))`), linear (`9`) or partly linear (`(1,4)`): an integer may stand
    /// for a whole mode, a tuple never for an integer. In each mode so addressed the last leaf never wraps.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let layout = Layout::parse("(4,(2,2)):(2,(1,8))").unwrap();
    /// for coordinate in ["7", "(3,1)", "(3,(1,0))"] {
    ///     assert_eq!(layout.at_coord(&IntTuple::parse(coordinate).unwrap()), Ok(7));
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// A coordinate that does not fit the shape; overflow far outside the domain.
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<i64, LayoutError> {
        Ok(attempt!(self.vector_at(coordinate))[0])
    }

    /// Offset of the linear coordinate `i` of a subtree, wrapping around far outside the domain.
    const fn node_index(&self, node: Node, i: i64) -> i64 {
        let mut offset = 0i64;
        let mut rest = i;
        let mut k = node.start;
        while k + 1 < node.end {
            let extent = self.shape[k];
            offset = offset.wrapping_add(rest.rem_euclid(extent).wrapping_mul(self.stride[k][0]));
            rest = rest.div_euclid(extent);
            k += 1;
        }
        offset.wrapping_add(rest.wrapping_mul(self.stride[k][0]))
    }
}

impl FromStr for Strided<1> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// `tuple ":" tuple`.
    pub(crate) const fn layout(&mut self) -> Result<Layout, ParseError> {
        self.peek();
        let start = self.at;
        let shape = match self.tuple() {
            Ok(shape) => shape,
            Err(error) => return Err(error),
        };
        if let Err(error) = self.require(b':') {
            return Err(error);
        }
        let stride = match self.tuple() {
            Ok(stride) => stride,
            Err(error) => return Err(error),
        };
        match Layout::new(shape, stride) {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}
