//! Layouts with strides known by name until run time: `(8,64):(ld,1)`.
//!
//! An [`Affine`] layout is an integer combination of static layouts of one shape, `Σ value(p)·L_p`, where the first term has
//! the constant value 1 and the others are named: `(8,64):(2*ld,1)` is `1·((8,64):(0,1)) + ld·((8,64):(2,0))`. A stride is
//! written as a sum of terms, `2*ld+1`.
//!
//! Operations distribute over the terms, so what they return is right for *every* value of the names. A composition that
//! exists only for some values is refused.
//!
//! ```
//! use layout_core::{Affine, Layout};
//! let tile = Affine::parse("(8,64):(ld,1)").unwrap();
//! let part = tile.compose(&Layout::parse("(4,2):(2,16)").unwrap()).unwrap();
//! assert_eq!(part.to_string(), "(4,2):(2*ld,2)");
//! assert_eq!(part.bind(&[100]).unwrap().to_string(), "(4,2):(200,2)");
//! ```

use core::str::FromStr;

use crate::basis::{Basis, Names};
use crate::dynamic::IndexInt;
use crate::error::{LayoutError, attempt};
use crate::form::{LinearForm, TERMS, bound};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parameter::Parameter;
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::profile::{MAX_MODES, ProfileBuilder};
use crate::strided::Strided;
use crate::swizzled::Swizzled;

/// A layout whose strides are integer combinations of 1 and up to [`MAX_PARAMETERS`](crate::MAX_PARAMETERS) names.
///
/// ```
/// use layout_core::Affine;
/// let matrix = Affine::parse("(128,64):(ld,1)").unwrap();
/// assert_eq!(matrix.parameter(0).unwrap().as_str(), "ld");
/// ```
pub type Affine = Strided<TERMS>;

impl Strided<TERMS> {
    /// The static layout.
    ///
    /// ```
    /// use layout_core::{Affine, Layout};
    /// let layout = Layout::parse("(4,8):(8,1)").unwrap();
    /// assert_eq!(Affine::constant(&layout).as_static(), Some(layout));
    /// ```
    pub const fn constant(layout: &Layout) -> Self {
        let mut stride = [[0; TERMS]; MAX_MODES];
        let mut i = 0;
        while i < layout.leaves() {
            stride[i][0] = layout.stride[i][0];
            i += 1;
        }
        Self {
            profile: layout.profile,
            shape: layout.shape,
            stride,
            basis: Basis::Names(Names::NONE),
        }
    }

    /// Reads `(8,64):(2*ld,1)`. Each stride is an integer, a name, or a sum of `integer*name`, names and integers.
    ///
    /// ```
    /// use layout_core::Affine;
    /// assert_eq!(Affine::parse("(8,4):(1+ld*2,-ld)").unwrap().to_string(), "(8,4):(2*ld+1,-ld)");
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.affine() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// How many names there are.
    ///
    /// ```
    /// use layout_core::Affine;
    /// assert_eq!(Affine::parse("(8,64):(ld,1)").unwrap().parameters(), 1);
    /// ```
    pub const fn parameters(&self) -> usize {
        self.basis.names().len
    }

    /// Name `p`, in order of first use.
    ///
    /// ```
    /// use layout_core::Affine;
    /// assert_eq!(Affine::parse("(8,64):(ld,1)").unwrap().parameter(0).unwrap().as_str(), "ld");
    /// ```
    ///
    /// # Errors
    ///
    /// `p` at or beyond [`parameters`](Self::parameters).
    pub const fn parameter(&self, p: usize) -> Result<Parameter, LayoutError> {
        let names = self.basis.names();
        if p < names.len {
            Ok(names.name[p])
        } else {
            Err(LayoutError::OutOfRange {
                what: "stride name",
                index: p,
                count: names.len,
            })
        }
    }

    /// The layout that the constant is multiplied with: the strides without the named terms.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,64):(2*ld+3,1)").unwrap();
    /// assert_eq!(layout.constant_term().to_string(), "(8,64):(3,1)");
    /// ```
    pub const fn constant_term(&self) -> Layout {
        self.term(0)
    }

    /// The layout that the value of name `p` is multiplied with.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,64):(2*ld+3,1)").unwrap();
    /// assert_eq!(layout.named_term(0).unwrap().to_string(), "(8,64):(2,0)");
    /// ```
    ///
    /// # Errors
    ///
    /// `p` at or beyond [`parameters`](Self::parameters).
    pub const fn named_term(&self, p: usize) -> Result<Layout, LayoutError> {
        let _ = attempt!(self.parameter(p));
        Ok(self.term(p + 1))
    }

    const fn term(&self, k: usize) -> Layout {
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

    /// The static layout for given values of the names, in order of first use. Values beyond the names are ignored.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,64):(2*ld,1)").unwrap();
    /// assert_eq!(layout.bind(&[50]).unwrap().to_string(), "(8,64):(100,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnboundName`] for a missing value; strides or offsets that do not fit.
    pub const fn bind(&self, values: &[i64]) -> Result<Layout, LayoutError> {
        let names = self.basis.names();
        let mut stride = [[0]; MAX_MODES];
        let mut i = 0;
        while i < self.leaves() {
            stride[i] = [attempt!(bound(&names, &self.stride[i], values, "a stride"))];
            i += 1;
        }
        Layout::from_parts(self.shape(), stride)
    }

    /// The layout, if no stride has a name in it.
    ///
    /// ```
    /// use layout_core::Affine;
    /// assert!(Affine::parse("(8,64):(64,1)").unwrap().as_static().is_some());
    /// assert!(Affine::parse("(8,64):(ld,1)").unwrap().as_static().is_none());
    /// ```
    pub const fn as_static(&self) -> Option<Layout> {
        self.integers()
    }

    /// The offset at linear coordinate `i`, as a sum with names; the last leaf never wraps.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,64):(ld,1)").unwrap();
    /// assert_eq!(layout.checked_index(10).unwrap().to_string(), "2*ld+1");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<LinearForm, LayoutError> {
        Ok(self.form(attempt!(self.checked_node_index(self.root(), i))))
    }

    /// The offset at a coordinate, natural, linear or partly linear; see [`Layout::at_coord`].
    ///
    /// ```
    /// use layout_core::{Affine, IntTuple};
    /// let layout = Affine::parse("(8,64):(2*ld,1)").unwrap();
    /// let offset = layout.at_coord(&IntTuple::flat(&[3, 4]).unwrap()).unwrap();
    /// assert_eq!(offset.to_string(), "6*ld+4");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::at_coord`].
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<LinearForm, LayoutError> {
        Ok(self.form(attempt!(self.vector_at(coordinate))))
    }

    /// The offset at linear coordinate `i`, in any arithmetic (see [`IndexInt`]): `values` are the names' values in order of
    /// first use.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let layout = Affine::parse("(8,64):(ld,1)").unwrap();
    /// assert_eq!(layout.index_with(&10u64, &[100]), Ok(201));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnboundName`] for a missing value.
    pub fn index_with<T: IndexInt>(&self, i: &T, values: &[T]) -> Result<T, LayoutError> {
        let names = self.basis.names();
        if let Some(name) = names.name[..names.len].get(values.len()) {
            return Err(LayoutError::UnboundName { name: *name });
        }
        let mut sum = crate::dynamic::Sum::new();
        let mut rest = i.clone();
        for k in 0..self.leaves() {
            let (digit, next) = crate::dynamic::digit(rest, self.shape[k], k + 1 == self.leaves());
            rest = next;
            for (term, &factor) in self.stride[k].iter().enumerate().take(names.len + 1) {
                if factor == 0 {
                    continue;
                }
                let scaled = digit.clone().scale(factor);
                sum.add(if term == 0 {
                    scaled
                } else {
                    scaled * values[term - 1].clone()
                });
            }
        }
        Ok(sum.finish())
    }
}

impl Swizzled<TERMS> {
    /// The static layout for given values of the names; see [`Affine::bind`].
    ///
    /// ```
    /// use layout_core::{Affine, Slicer};
    /// let tile = Affine::parse("(8,64):(ld,1)").unwrap();
    /// let row = tile.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.to_string(), "3*ld o (64):(1)");
    /// assert_eq!(row.bind(&[100]).unwrap().to_string(), "300 o (64):(1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Affine::bind`].
    pub const fn bind(&self, values: &[i64]) -> Result<Swizzled, LayoutError> {
        let names = self.layout.basis.names();
        let offset = attempt!(bound(&names, &self.offset, values, "an offset"));
        Swizzled::new(self.swizzle, offset, attempt!(self.layout.bind(values)))
    }

    /// The static layout, if no stride and no offset has a name in it.
    ///
    /// ```
    /// use layout_core::{Affine, Slicer};
    /// let row = Affine::parse("(8,64):(ld,1)").unwrap().slice(&Slicer::parse("(0,_)").unwrap()).unwrap();
    /// assert_eq!(row.as_static().unwrap().to_string(), "(64):(1)");
    /// ```
    pub const fn as_static(&self) -> Option<Swizzled> {
        match (self.layout.integers(), self.offset_form().as_int()) {
            (Some(layout), Some(offset)) => match Swizzled::new(self.swizzle, offset, layout) {
                Ok(layout) => Some(layout),
                Err(_) => None,
            },
            _ => None,
        }
    }

    /// The layout moved by a sum with names; the offset is added before the swizzle.
    ///
    /// ```
    /// use layout_core::{Affine, Swizzled};
    /// let tile = Affine::parse("(8,64):(ld,1)").unwrap();
    /// let below = Swizzled::plain(tile).moved_by(&tile.checked_index(3).unwrap()).unwrap();
    /// assert_eq!(below.to_string(), "3*ld o (8,64):(ld,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// More names than a layout has; overflow.
    pub const fn moved_by(&self, by: &LinearForm) -> Result<Self, LayoutError> {
        let merged = attempt!(self.layout.basis.merge::<TERMS>(&Basis::Names(by.names)));
        let mut layout = self.layout;
        layout.basis = merged.basis;
        self.moved(&merged.adapt(&by.value), layout)
    }

    /// What is added before the swizzle, a sum with names.
    ///
    /// ```
    /// use layout_core::{Affine, Slicer};
    /// let row = Affine::parse("(8,64):(ld,1)").unwrap().slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.offset_form().to_string(), "3*ld");
    /// ```
    pub const fn offset_form(&self) -> LinearForm {
        self.layout.form(self.offset)
    }
}

/// A layout with named strides under a swizzle and an offset, both of which may be missing.
///
/// ```
/// use layout_core::{Function, SwizzledAffine};
/// let Function::Affine(tile) = Function::parse("Sw<3,3,3> o (8,64):(ld,1)").unwrap() else { panic!() };
/// let tile: SwizzledAffine = tile;
/// assert_eq!(tile.bind(&[64]).unwrap().to_string(), "Sw<3,3,3> o (8,64):(64,1)");
/// ```
pub type SwizzledAffine = Swizzled<TERMS>;

impl From<Swizzled> for SwizzledAffine {
    fn from(layout: Swizzled) -> Self {
        let mut offset = [0; TERMS];
        offset[0] = layout.offset();
        Self {
            swizzle: layout.swizzle,
            offset,
            layout: Affine::constant(&layout.layout),
        }
    }
}

impl From<Layout> for Affine {
    fn from(layout: Layout) -> Self {
        Self::constant(&layout)
    }
}

impl FromStr for Strided<TERMS> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// A layout whose strides may be sums with names.
    pub(crate) const fn affine(&mut self) -> Result<Affine, ParseError> {
        self.peek();
        let start = self.at;
        let shape = match self.tuple() {
            Ok(shape) => shape,
            Err(error) => return Err(error),
        };
        let mut layout = match Layout::compact(shape) {
            Ok(layout) => Affine::constant(&layout),
            Err(error) => return Err(self.error_since(start, error)),
        };
        if let Err(error) = self.require(b':') {
            return Err(error);
        }
        self.peek();
        let stride_start = self.at;
        let mut names = Names::NONE;
        let mut profile = ProfileBuilder::new();
        let mut depth = 0usize;
        loop {
            while self.take(b'(') {
                depth += 1;
                profile.open();
                if let Some(error) = profile.error() {
                    return Err(self.error_since(stride_start, error));
                }
            }
            let sum = match self.linear_form(&mut names) {
                Ok(sum) => sum,
                Err(error) => return Err(error),
            };
            match profile.leaf() {
                Some(at) if at < shape.leaves() => layout.stride[at] = sum,
                Some(_) => {}
                // The parentheses were in range, so the leaf was one too many.
                None => return Err(self.error_since(stride_start, LayoutError::TooManyModes)),
            }
            while depth > 0 && self.take(b')') {
                depth -= 1;
                profile.close();
            }
            if depth == 0 {
                break;
            }
            if !self.take(b',') {
                return Err(self.error(ParseErrorKind::ExpectedCommaOrClose));
            }
        }
        let profile = match profile.finish() {
            Ok(profile) => profile,
            Err(error) => return Err(self.error_since(stride_start, error)),
        };
        if let Some(leaf) = shape.profile.difference(&profile) {
            let (left, right) = (shape.leaves(), profile.leaves());
            return Err(self.error_since(start, LayoutError::NotCongruent { leaf, left, right }));
        }
        layout.basis = Basis::Names(names);
        match layout.checked() {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.error_since(start, error)),
        }
    }

    /// `2*ld - n + 1`.
    pub(crate) const fn linear_form(
        &mut self,
        names: &mut Names,
    ) -> Result<[i64; TERMS], ParseError> {
        const OVERFLOW: LayoutError = LayoutError::Overflow {
            operation: "a stride",
        };
        self.peek();
        let start = self.at;
        let mut sum = [0i64; TERMS];
        let mut first = true;
        loop {
            let negative = if self.take(b'-') {
                true
            } else if self.take(b'+') || first {
                false
            } else {
                return Ok(sum);
            };
            first = false;
            let mut factor = 1;
            let mut term = 0;
            if self.at_integer() {
                factor = match self.integer() {
                    Ok(factor) => factor,
                    Err(error) => return Err(error),
                };
                if self.take(b'*') {
                    term = match self.parameter(names) {
                        Ok(p) => p + 1,
                        Err(error) => return Err(error),
                    };
                }
            } else {
                term = match self.parameter(names) {
                    Ok(p) => p + 1,
                    Err(error) => return Err(error),
                };
                if self.take(b'*') {
                    factor = match self.integer() {
                        Ok(factor) => factor,
                        Err(error) => return Err(error),
                    };
                }
            }
            let next = if negative {
                sum[term].checked_sub(factor)
            } else {
                sum[term].checked_add(factor)
            };
            sum[term] = match next {
                Some(next) => next,
                None => return Err(self.error_since(start, OVERFLOW)),
            };
        }
    }

    /// A stride name; its number.
    const fn parameter(&mut self, names: &mut Names) -> Result<usize, ParseError> {
        self.peek();
        let start = self.at;
        let name = self.identifier();
        if name.is_empty() {
            return Err(self.error(ParseErrorKind::ExpectedStride));
        }
        let name = match Parameter::from_bytes(name) {
            Ok(name) => name,
            Err(error) => return Err(self.error_since(start, error)),
        };
        match names.intern(name) {
            Ok(p) => Ok(p),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}
