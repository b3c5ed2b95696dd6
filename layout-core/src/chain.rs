//! Compositions of several steps: swizzles, offsets and layouts after a swizzled layout.
//!
//! Most compositions are layouts again, or one swizzle of a layout. Those that are not, such as a layout after a swizzle
//! whose strides do not only move bits, are kept step by step in a [`Chain`]. It has a shape, an exact index function, and a
//! matrix over F2 if all its steps are linear there. Steps are written from the last to the first, as compositions are:
//!
//! ```
//! use layout_core::Function;
//! let chain = Function::parse("(3,4):(4,1) o Sw<1,0,1> o 12:1").unwrap();
//! let values: Vec<i64> = (0..4).map(|i| chain.index(i).unwrap()).collect();
//! // 0 1 3 2 by the swizzle, then 0 4 1 8 by the layout.
//! assert_eq!(values, [0, 4, 1, 8]);
//! ```
//!
//! The inverse of a swizzled layout is a chain too: `y -> L⁻¹(Sw⁻¹(y) − offset)`. It begins with a step on all integers and
//! so has no shape.

use core::fmt;

use crate::error::{LayoutError, attempt};
use crate::f2::{F2Error, LinearMap};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::modes::SEARCH_LIMIT;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// Steps that a [`Chain`] holds after the layout that it begins with.
///
/// ```
/// assert_eq!(layout_core::MAX_STEPS, 8);
/// ```
pub const MAX_STEPS: usize = 8;

/// One step of a [`Chain`], a function on integers.
///
/// ```
/// use layout_core::{Step, Swizzle};
/// let swizzle = Swizzle::new(2, 0, 1).unwrap();
/// let (there, back) = (Step::Swizzle(swizzle), Step::InverseSwizzle(swizzle));
/// assert!((0..16).all(|x| back.checked_apply(there.checked_apply(x).unwrap()) == Ok(x)));
/// assert_eq!(back.to_string(), "Sw<2,0,1>^-1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack only, and there is no heap"
)]
pub enum Step {
    /// A swizzle.
    Swizzle(Swizzle),
    /// The inverse of a swizzle with `0 < |S| < B`; the others are their own inverses.
    InverseSwizzle(Swizzle),
    /// An offset that is added.
    Offset(i64),
    /// A layout, by its linear coordinate; the last mode is unbounded.
    Layout(Layout),
}

impl Step {
    /// The value at `x`.
    ///
    /// ```
    /// use layout_core::{Layout, Step};
    /// let rows = Layout::parse("(4,8):(8,1)").unwrap();
    /// assert_eq!(Step::Layout(rows).checked_apply(5), Ok(9));
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow.
    pub const fn checked_apply(&self, x: i64) -> Result<i64, LayoutError> {
        match self {
            Self::Offset(offset) => match offset.checked_add(x) {
                Some(sum) => Ok(sum),
                None => Err(LayoutError::Overflow {
                    operation: "evaluation of a composition",
                }),
            },
            Self::Layout(layout) => layout.checked_index(x),
            _ => Ok(self.apply(x)),
        }
    }

    /// The value at `x`, wrapping around far outside the domain.
    const fn apply(&self, x: i64) -> i64 {
        match self {
            Self::Swizzle(swizzle) => swizzle.apply(x),
            Self::InverseSwizzle(swizzle) => swizzle.inverse_apply(x),
            Self::Offset(offset) => offset.wrapping_add(x),
            Self::Layout(layout) => layout.index(x),
        }
    }

    /// The step that undoes a swizzle.
    pub(crate) const fn undo(swizzle: Swizzle) -> Self {
        if swizzle.s().unsigned_abs() >= swizzle.b() {
            Self::Swizzle(swizzle)
        } else {
            Self::InverseSwizzle(swizzle)
        }
    }

    /// Whether the step changes nothing.
    const fn is_identity(&self) -> bool {
        match self {
            Self::Swizzle(swizzle) | Self::InverseSwizzle(swizzle) => swizzle.is_identity(),
            Self::Offset(offset) => *offset == 0,
            Self::Layout(_) => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swizzle(swizzle) => write!(f, "{swizzle}"),
            Self::InverseSwizzle(swizzle) => write!(f, "{swizzle}^-1"),
            Self::Offset(offset) => write!(f, "{offset}"),
            Self::Layout(layout) => write!(f, "{layout}"),
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Steps after a swizzled layout, or steps alone.
///
/// ```
/// use layout_core::Swizzled;
/// let tile = Swizzled::parse("Sw<2,0,2> o 3 o (4,4):(4,1)").unwrap();
/// let inverse = tile.left_inverse().unwrap();
/// assert_eq!(inverse.to_string(), "(4,4):(4,1) o -3 o Sw<2,0,2>");
/// assert_eq!(inverse.steps().len(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The last step first.
    step: [Step; MAX_STEPS],
    len: usize,
    inner: Option<Swizzled>,
}

impl Chain {
    /// No steps after a layout, or at all.
    pub(crate) const fn of(inner: Option<Swizzled>) -> Self {
        Self {
            step: [Step::Offset(0); MAX_STEPS],
            len: 0,
            inner,
        }
    }

    /// The chain with one more step after it.
    pub(crate) const fn then(&self, step: Step) -> Result<Self, LayoutError> {
        if step.is_identity() {
            return Ok(*self);
        }
        let mut chain = *self;
        // Steps that undo each other or add up.
        if self.len > 0 {
            match (&step, &self.step[0]) {
                (Step::Offset(a), Step::Offset(b)) => {
                    if let Some(sum) = a.checked_add(*b) {
                        chain.drop_last();
                        return chain.then(Step::Offset(sum));
                    }
                }
                (Step::Swizzle(a), Step::Swizzle(b))
                    if a.equals(b) && a.s().unsigned_abs() >= a.b() =>
                {
                    chain.drop_last();
                    return Ok(chain);
                }
                (Step::Swizzle(a), Step::InverseSwizzle(b))
                | (Step::InverseSwizzle(a), Step::Swizzle(b))
                    if a.equals(b) =>
                {
                    chain.drop_last();
                    return Ok(chain);
                }
                _ => {}
            }
        }
        if self.len == MAX_STEPS {
            return Err(LayoutError::TooManySteps { limit: MAX_STEPS });
        }
        let mut i = self.len;
        while i > 0 {
            chain.step[i] = chain.step[i - 1];
            i -= 1;
        }
        chain.step[0] = step;
        chain.len += 1;
        Ok(chain)
    }

    const fn drop_last(&mut self) {
        self.len -= 1;
        let mut i = 0;
        while i < self.len {
            self.step[i] = self.step[i + 1];
            i += 1;
        }
        self.step[self.len] = Step::Offset(0);
    }

    /// `layout ∘ offset ∘ undo(swizzle)`, or the layout alone where the others change nothing.
    pub(crate) const fn inverse(
        layout: Layout,
        offset: i64,
        swizzle: Swizzle,
    ) -> Result<Self, LayoutError> {
        if offset == 0 && swizzle.is_identity() {
            return Ok(Self::of(Some(Swizzled::plain(layout))));
        }
        let undone = attempt!(Self::of(None).then(Step::undo(swizzle)));
        attempt!(undone.then(Step::Offset(offset))).then(Step::Layout(layout))
    }

    /// The steps after the layout that the chain begins with, the last one first.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let inverse = Swizzled::parse("Sw<2,0,2> o 16:1").unwrap().right_inverse().unwrap();
    /// assert_eq!(inverse.steps()[0].to_string(), "16:1");
    /// ```
    pub const fn steps(&self) -> &[Step] {
        self.step.split_at(self.len).0
    }

    /// The layout that the chain begins with; none if it begins with a step on all integers.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert!(Swizzled::parse("Sw<2,0,2> o 16:1").unwrap().right_inverse().unwrap().inner().is_none());
    /// assert!(Swizzled::parse("16:1").unwrap().right_inverse().unwrap().inner().is_some());
    /// ```
    pub const fn inner(&self) -> Option<Swizzled> {
        self.inner
    }

    /// The same steps after another layout. Rearranging a chain's coordinates is rearranging those of the layout that it
    /// begins with.
    ///
    /// ```
    /// use layout_core::{Function, Layout};
    /// let Function::Chain(chain) = Function::parse("(3,4):(4,1) o Sw<1,0,1> o 12:1").unwrap() else { panic!() };
    /// let first = chain.inner().unwrap().compose(&Layout::mode(3, 1).unwrap()).unwrap();
    /// assert_eq!(chain.with_inner(first).to_string(), "(3,4):(4,1) o Sw<1,0,1> o 3:1");
    /// ```
    #[must_use]
    pub const fn with_inner(&self, inner: Swizzled) -> Self {
        Self {
            inner: Some(inner),
            ..*self
        }
    }

    /// The chain as one swizzled layout, if it has no steps.
    pub(crate) const fn as_layout(&self) -> Option<Swizzled> {
        if self.len == 0 { self.inner } else { None }
    }

    /// The value at linear coordinate `i`, wrapping around far outside the domain.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// let inverse = tile.right_inverse().unwrap();
    /// assert!((0..16).all(|y| tile.index(inverse.index(y)) == y));
    /// ```
    pub const fn index(&self, i: i64) -> i64 {
        let mut x = match &self.inner {
            Some(inner) => inner.index(i),
            None => i,
        };
        let mut k = self.len;
        while k > 0 {
            k -= 1;
            x = self.step[k].apply(x);
        }
        x
    }

    /// [`index`](Self::index), or an error where the value does not fit in 64 bits.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let inverse = Swizzled::parse("Sw<2,0,2> o 16:1").unwrap().right_inverse().unwrap();
    /// assert_eq!(inverse.checked_index(5), Ok(4));
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<i64, LayoutError> {
        self.at_coord(&IntTuple::int(i))
    }

    /// The value at a coordinate of the layout that the chain begins with; see [`Layout::at_coord`].
    ///
    /// ```
    /// use layout_core::{Function, IntTuple};
    /// let Function::Chain(chain) = Function::parse("(3,4):(4,1) o Sw<1,0,1> o (6,2):(2,1)").unwrap() else { panic!() };
    /// assert_eq!(chain.at_coord(&IntTuple::flat(&[1, 1]).unwrap()), chain.checked_index(7));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::at_coord`]; a tuple where the chain takes an integer.
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<i64, LayoutError> {
        let mut x = match &self.inner {
            Some(inner) => attempt!(inner.at_coord(coordinate)),
            None if coordinate.is_int() => coordinate.leaf(0),
            None => {
                return Err(LayoutError::NoShape {
                    operation: "evaluation at a tuple",
                });
            }
        };
        let mut k = self.len;
        while k > 0 {
            k -= 1;
            x = attempt!(self.step[k].checked_apply(x));
        }
        Ok(x)
    }

    /// Number of coordinates; an error if the chain is a function on all integers.
    ///
    /// ```
    /// use layout_core::Function;
    /// let Function::Chain(chain) = Function::parse("(3,4):(4,1) o Sw<1,0,1> o 12:1").unwrap() else { panic!() };
    /// assert_eq!(chain.size(), Ok(12));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NoShape`].
    pub const fn size(&self) -> Result<i64, LayoutError> {
        match &self.inner {
            Some(inner) => Ok(inner.size()),
            None => Err(LayoutError::NoShape { operation: "size" }),
        }
    }

    /// Least and greatest value that occur.
    ///
    /// ```
    /// use layout_core::Function;
    /// let Function::Chain(chain) = Function::parse("(3,4):(4,1) o Sw<1,0,1> o 12:1").unwrap() else { panic!() };
    /// assert_eq!(chain.offset_range(), Ok((0, 11)));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NoShape`]; [`LayoutError::TooLarge`] beyond [`SEARCH_LIMIT`] coordinates, each of which is looked at.
    pub const fn offset_range(&self) -> Result<(i64, i64), LayoutError> {
        let size = attempt!(self.size());
        if size > SEARCH_LIMIT {
            return Err(LayoutError::TooLarge {
                operation: "the offsets of a composition",
                size,
                limit: SEARCH_LIMIT,
            });
        }
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        let mut i = 0;
        while i < size {
            let value = attempt!(self.checked_index(i));
            if value < min {
                min = value;
            }
            if value > max {
                max = value;
            }
            i += 1;
        }
        Ok((min, max))
    }

    /// `self ∘ b`: composition acts on the layout that the chain begins with.
    ///
    /// ```
    /// use layout_core::{Function, Layout};
    /// let Function::Chain(chain) = Function::parse("(3,4):(4,1) o Sw<1,0,1> o 12:1").unwrap() else { panic!() };
    /// let part = chain.compose(&Layout::parse("4:3").unwrap()).unwrap();
    /// assert_eq!(part.to_string(), "(3,4):(4,1) o Sw<1,0,1> o 4:3");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::compose`].
    pub const fn compose(&self, b: &Layout) -> Result<Self, LayoutError> {
        let inner = match &self.inner {
            Some(inner) => attempt!(inner.compose(b)),
            None => Swizzled::plain(*b),
        };
        Ok(self.with_inner(inner))
    }

    /// The matrix over F2 of a chain whose steps are all linear there.
    ///
    /// ```
    /// use layout_core::Function;
    /// let text = "Sw<1,0,2> o Sw<1,0,1> o (2,2,2):(2,4,1)"; // two source bits for one target
    /// let Function::Chain(chain) = Function::parse(text).unwrap() else { panic!() };
    /// assert_eq!(chain.matrix().unwrap().columns(), [3, 5, 1]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::matrix`] for a step that is not linear; an offset.
    pub const fn matrix(&self) -> Result<LinearMap, F2Error> {
        let mut map = match &self.inner {
            Some(inner) => match LinearMap::of_layout(inner) {
                Ok(map) => map,
                Err(error) => return Err(error),
            },
            None => return Err(F2Error::NoShape),
        };
        let mut k = self.len;
        while k > 0 {
            k -= 1;
            map = match map.followed_by(&self.step[k]) {
                Ok(map) => map,
                Err(error) => return Err(error),
            };
        }
        Ok(map)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps().iter().enumerate() {
            if i > 0 {
                f.write_str(" o ")?;
            }
            write!(f, "{step}")?;
        }
        match &self.inner {
            Some(inner) if self.len == 0 => write!(f, "{inner}"),
            Some(inner) => write!(f, " o {inner}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
