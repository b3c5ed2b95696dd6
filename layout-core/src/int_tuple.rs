//! Nested tuples of integers: shapes, strides and coordinates.
//!
//! An [`IntTuple`] is an integer or a tuple of them, `4` or `(4,(2,2))`. `4` is not `(4)`: the parentheses (the *profile*)
//! are part of the value, since they decide which coordinates fit. Values may be any 64-bit integers; that extents are at
//! least 1 is a rule of [`Layout`](crate::Layout).
//!
//! ```
//! use layout_core::IntTuple;
//! let shape = IntTuple::parse("(4,(2,3))").unwrap();
//! assert_eq!((shape.rank(), shape.depth(), shape.leaves()), (2, 2, 3));
//! assert_eq!(shape.size(), Ok(24));
//! assert_eq!(shape.get(1).unwrap().to_string(), "(2,3)");
//! ```

use core::fmt;
use core::str::FromStr;

use crate::error::{LayoutError, attempt};
use crate::parse::{ParseError, Scanner};
use crate::profile::{MAX_MODES, Node, Profile, ProfileBuilder};

/// An integer, or a tuple of them, nested as deep as [`MAX_DEPTH`](crate::MAX_DEPTH), of at most [`MAX_MODES`] leaves.
///
/// ```
/// use layout_core::IntTuple;
/// let shape = IntTuple::parse("(4,(2,3))").unwrap();
/// assert_eq!((shape.rank(), shape.leaves(), shape.size()), (2, 3, Ok(24)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntTuple {
    pub(crate) profile: Profile,
    pub(crate) values: [i64; MAX_MODES],
}

impl IntTuple {
    /// The bare integer `value` (rank 1, depth 0).
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::int(4).to_string(), "4");
    /// ```
    pub const fn int(value: i64) -> Self {
        let mut values = [0; MAX_MODES];
        values[0] = value;
        Self {
            profile: Profile::LEAF,
            values,
        }
    }

    /// The flat tuple `(v0,v1,…)`; one value gives `(v0)`.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::flat(&[4, 8]).unwrap().to_string(), "(4,8)");
    /// ```
    ///
    /// # Errors
    ///
    /// An empty slice, or more than [`MAX_MODES`] values.
    pub const fn flat(values: &[i64]) -> Result<Self, LayoutError> {
        if values.is_empty() {
            return Err(LayoutError::EmptyTuple);
        }
        if values.len() > MAX_MODES {
            return Err(LayoutError::TooManyModes);
        }
        let mut array = [0; MAX_MODES];
        let mut i = 0;
        while i < values.len() {
            array[i] = values[i];
            i += 1;
        }
        Ok(Self {
            profile: Profile::flat(values.len()),
            values: array,
        })
    }

    /// The tuple of the given elements.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// let pair = IntTuple::flat(&[2, 3]).unwrap();
    /// assert_eq!(IntTuple::tuple(&[IntTuple::int(4), pair]).unwrap().to_string(), "(4,(2,3))");
    /// ```
    ///
    /// # Errors
    ///
    /// An empty slice, or a result with too many leaves or too deep.
    pub const fn tuple(elements: &[Self]) -> Result<Self, LayoutError> {
        let mut builder = TupleBuilder::new();
        builder.open();
        let mut i = 0;
        while i < elements.len() {
            builder.append(&elements[i], elements[i].root());
            i += 1;
        }
        builder.close();
        builder.finish()
    }

    /// Reads CuTe's notation, `(4,(2,2))`. Spaces are allowed, and CuTe's `_4` for a static 4.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("( _4, (2,3) )").unwrap().to_string(), "(4,(2,3))");
    /// assert_eq!(IntTuple::parse("(4,x)").unwrap_err().span, (3, 4));
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let tuple = match scanner.tuple() {
            Ok(tuple) => tuple,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(tuple),
            Err(error) => Err(error),
        }
    }

    /// Number of elements; 1 for an integer.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,3))").unwrap().rank(), 2);
    /// ```
    pub const fn rank(&self) -> usize {
        self.profile.rank(self.root())
    }

    /// Deepest nesting: 0 for an integer, 1 for `(4,8)`.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,3))").unwrap().depth(), 2);
    /// ```
    pub const fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// Number of integers.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,3))").unwrap().leaves(), 3);
    /// ```
    pub const fn leaves(&self) -> usize {
        self.profile.leaves()
    }

    /// Integer `i` in order of writing; 0 if `i` is out of range.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,3))").unwrap().leaf(2), 3);
    /// ```
    pub const fn leaf(&self, i: usize) -> i64 {
        if i < self.leaves() { self.values[i] } else { 0 }
    }

    /// Whether this is a bare integer.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert!(IntTuple::int(4).is_int());
    /// assert!(!IntTuple::parse("(4)").unwrap().is_int());
    /// ```
    pub const fn is_int(&self) -> bool {
        self.profile.is_leaf(self.root())
    }

    /// Element `i` of a tuple; element 0 of an integer is the integer.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(shape.get(1).unwrap().to_string(), "(2,3)");
    /// assert_eq!(shape.get(2).unwrap_err().code(), "out_of_range");
    /// ```
    ///
    /// # Errors
    ///
    /// `i` at or beyond the rank.
    pub const fn get(&self, i: usize) -> Result<Self, LayoutError> {
        match self.profile.child(self.root(), i) {
            Some(node) => self.extract(node),
            None => Err(LayoutError::OutOfRange {
                what: "element",
                index: i,
                count: self.rank(),
            }),
        }
    }

    /// Product of all integers (CuTe's `size` and `product`).
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// assert_eq!(IntTuple::parse("(4,(2,3))").unwrap().size(), Ok(24));
    /// ```
    ///
    /// # Errors
    ///
    /// A product that does not fit.
    pub const fn size(&self) -> Result<i64, LayoutError> {
        let mut size = 1i64;
        let mut i = 0;
        while i < self.leaves() {
            match size.checked_mul(self.values[i]) {
                Some(product) => size = product,
                None => return Err(LayoutError::Overflow { operation: "size" }),
            }
            i += 1;
        }
        Ok(size)
    }

    /// Whether two tuples are the same, in `const`.
    ///
    /// ```
    /// use layout_core::IntTuple;
    /// const SAME: bool = IntTuple::int(4).equals(&IntTuple::int(4));
    /// assert!(SAME);
    /// assert!(!IntTuple::int(4).equals(&IntTuple::parse("(4)").unwrap()));
    /// ```
    pub const fn equals(&self, other: &Self) -> bool {
        if self.profile.difference(&other.profile).is_some() {
            return false;
        }
        let mut i = 0;
        while i < self.leaves() {
            if self.values[i] != other.values[i] {
                return false;
            }
            i += 1;
        }
        true
    }

    pub(crate) const fn root(&self) -> Node {
        self.profile.root()
    }

    pub(crate) const fn extract(&self, node: Node) -> Result<Self, LayoutError> {
        let mut builder = TupleBuilder::new();
        builder.append(self, node);
        builder.finish()
    }
}

impl fmt::Display for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.profile, |f, i| write!(f, "{}", self.values[i]))
    }
}

impl fmt::Debug for IntTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for IntTuple {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl From<i64> for IntTuple {
    fn from(value: i64) -> Self {
        Self::int(value)
    }
}

/// Writes a nested tuple, one call of `leaf` for each integer.
pub(crate) fn write_tuple(
    f: &mut fmt::Formatter<'_>,
    profile: &Profile,
    leaf: impl Fn(&mut fmt::Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    for i in 0..profile.leaves() {
        if i > 0 {
            f.write_str(",")?;
        }
        for _ in 0..profile.opens(i) {
            f.write_str("(")?;
        }
        leaf(f, i)?;
        for _ in 0..profile.closes(i) {
            f.write_str(")")?;
        }
    }
    Ok(())
}

/// Builds a tuple from left to right; errors are reported by `finish`.
#[derive(Clone, Copy)]
pub(crate) struct TupleBuilder {
    profile: ProfileBuilder,
    values: [i64; MAX_MODES],
}

impl TupleBuilder {
    pub(crate) const fn new() -> Self {
        Self {
            profile: ProfileBuilder::new(),
            values: [0; MAX_MODES],
        }
    }

    pub(crate) const fn error(&self) -> Option<LayoutError> {
        self.profile.error()
    }

    pub(crate) const fn open(&mut self) {
        self.profile.open();
    }

    pub(crate) const fn close(&mut self) {
        self.profile.close();
    }

    pub(crate) const fn leaf(&mut self, value: i64) {
        if let Some(at) = self.profile.leaf() {
            self.values[at] = value;
        }
    }

    /// Appends a subtree of `tuple`, with its own parentheses.
    pub(crate) const fn append(&mut self, tuple: &IntTuple, node: Node) {
        let from = self.profile.leaves();
        self.profile.append(&tuple.profile, node);
        let mut to = from;
        while to < self.profile.leaves() {
            self.values[to] = tuple.values[node.start + to - from];
            to += 1;
        }
    }

    pub(crate) const fn finish(&self) -> Result<IntTuple, LayoutError> {
        let profile = attempt!(self.profile.finish());
        Ok(IntTuple {
            profile,
            values: self.values,
        })
    }
}
