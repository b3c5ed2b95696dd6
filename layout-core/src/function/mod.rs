//! Any operand of `∘` as one value, and the composition of any two.
//!
//! `A.compose(&B)` on layouts is the case of a plain layout on the right. A [`Function`] is any operand of a
//! composition: a swizzle, an offset, a layout of any kind, several steps, a matrix over F2. [`Function::compose`] returns the
//! simplest value that is the composition:
//!
//! | left | right | result |
//! |---|---|---|
//! | `Sw` or an offset | `offset o L` | `Sw o offset o L` |
//! | layout | `offset o B` | a layout with an offset, where one exists |
//! | swizzle or layout | `Sw o B` | one swizzle of a layout where one exists, else a [`Chain`] |
//! | layout with named strides, coordinates | `offset o B` | the same kind, its offset a sum with names or a coordinate |
//! | layout linear in its coordinate | any kind | that kind with strides multiplied |
//! | layout over a shape | coordinates of that shape | a layout |
//! | matrix | matrix or linear layout | a matrix |
//!
//! ```
//! use layout_core::Function;
//! let f = |text: &str| Function::parse(text).unwrap().to_string();
//! assert_eq!(f("8:2 o Sw<2,0,2> o 16:1"), "Sw<2,1,2> o 16:2");
//! assert_eq!(f("Sw<2,0,2> o Sw<2,0,2> o 16:1"), "16:1");
//! assert_eq!(f("(8,64):(ld,1) o 1 o 2:2"), "ld o 2:2*ld");
//! ```
//!
//! The command's calculator, the macro `layout!` and [`typed::Compose`](crate::typed::Compose) all compose here.

mod simplify;

use core::fmt;

use crate::affine::Affine;
use crate::chain::{Chain, Step};
use crate::coords::MAX_AXES;
use crate::error::{LayoutError, attempt, fits};
use crate::f2::LinearMap;
use crate::form::TERMS;
use crate::layout::Layout;
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::strided::{Strided, add_scaled};
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

use simplify::{from_values, simplest};

const COMPOSITION: &str = "composition";

/// An operand of a composition.
///
/// ```
/// use layout_core::{Function, Layout, Swizzle};
/// let rows = Function::from(Layout::parse("(8,64):(64,1)").unwrap());
/// let tile = Function::Swizzle(Swizzle::new(3, 3, 3).unwrap()).compose(&rows).unwrap();
/// assert_eq!(tile.to_string(), "Sw<3,3,3> o (8,64):(64,1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack only, and there is no heap"
)]
pub enum Function {
    /// A swizzle alone.
    Swizzle(Swizzle),
    /// An offset that is added.
    Offset(i64),
    /// A layout, plain or swizzled.
    Layout(Swizzled),
    /// A layout with named strides.
    Affine(Swizzled<TERMS>),
    /// A layout whose offsets are coordinates.
    Coords(Swizzled<MAX_AXES>),
    /// Several steps.
    Chain(Chain),
    /// A matrix over F2.
    Matrix(LinearMap),
}

impl From<Layout> for Function {
    fn from(layout: Layout) -> Self {
        Self::Layout(Swizzled::plain(layout))
    }
}

impl From<Swizzled> for Function {
    fn from(layout: Swizzled) -> Self {
        Self::Layout(layout)
    }
}

impl From<Affine> for Function {
    fn from(layout: Affine) -> Self {
        Self::Affine(Swizzled::plain(layout))
    }
}

impl From<crate::CoordLayout> for Function {
    fn from(layout: crate::CoordLayout) -> Self {
        Self::Coords(Swizzled::plain(layout))
    }
}

impl From<Swizzle> for Function {
    fn from(swizzle: Swizzle) -> Self {
        Self::Swizzle(swizzle)
    }
}

impl From<LinearMap> for Function {
    fn from(matrix: LinearMap) -> Self {
        Self::Matrix(matrix)
    }
}

impl Function {
    /// Reads operands with `o` between them and composes them from right to left.
    ///
    /// ```
    /// use layout_core::Function;
    /// let f = |text: &str| Function::parse(text).unwrap().to_string();
    /// assert_eq!(f("(8,64):(64,1) o (2,4):(4,8)"), "(2,4):(256,1)");
    /// assert_eq!(f("(4,4):(4,1) o -3 o Sw<2,0,2>"), "(4,4):(4,1) o -3 o Sw<2,0,2>");
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text; a composition that is refused, with the span of its operands.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        /// Operands in one text, at most.
        const LIMIT: usize = 16;
        let mut scanner = Scanner::new(text.as_bytes());
        // A function takes 1.5 KiB, and the code must work without an allocator and in a `const`.
        #[expect(clippy::large_stack_arrays, reason = "24 KiB, and no allocator")]
        let mut operand = [Self::Offset(0); LIMIT];
        let mut start = [0; LIMIT];
        let mut len = 0;
        loop {
            scanner.peek();
            if len == LIMIT {
                return Err(scanner.error(ParseErrorKind::TooManyOperands { limit: LIMIT }));
            }
            start[len] = scanner.at;
            operand[len] = match scanner.operand() {
                Ok(operand) => operand,
                Err(error) => return Err(error),
            };
            len += 1;
            if !scanner.word(b"o") {
                break;
            }
        }
        let end = scanner.at;
        if let Err(error) = scanner.end() {
            return Err(error);
        }
        let mut result = operand[len - 1];
        let mut i = len - 1;
        while i > 0 {
            i -= 1;
            result = match operand[i].compose(&result) {
                Ok(result) => result,
                Err(error) => {
                    return Err(ParseError {
                        span: (start[i], end),
                        kind: ParseErrorKind::Layout(error),
                    });
                }
            };
        }
        Ok(result)
    }

    /// The swizzled layout that this is, if it is one.
    ///
    /// ```
    /// use layout_core::Function;
    /// assert!(Function::parse("Sw<2,0,2> o 16:1").unwrap().as_layout().is_some());
    /// assert!(Function::parse("16:ld").unwrap().as_layout().is_none());
    /// ```
    pub const fn as_layout(&self) -> Option<Swizzled> {
        match self {
            Self::Layout(layout) => Some(*layout),
            Self::Affine(layout) => layout.as_static(),
            Self::Chain(chain) => chain.as_layout(),
            _ => None,
        }
    }

    /// The value at linear coordinate `i` of a function with integer values.
    ///
    /// ```
    /// use layout_core::Function;
    /// assert_eq!(Function::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().index(7), Ok(14));
    /// assert_eq!(Function::parse("4:ld").unwrap().index(1).unwrap_err().code(), "named_strides");
    /// ```
    ///
    /// # Errors
    ///
    /// Named strides, coordinates; overflow; an index outside a matrix.
    pub const fn index(&self, i: i64) -> Result<i64, LayoutError> {
        const OPERATION: &str = "index";
        match self {
            Self::Swizzle(swizzle) => Ok(swizzle.apply(i)),
            Self::Offset(offset) => fits(offset.checked_add(i), OPERATION),
            Self::Layout(layout) => layout.checked_index(i),
            Self::Chain(chain) => chain.checked_index(i),
            Self::Affine(_) => Err(LayoutError::NamedStrides {
                operation: OPERATION,
            }),
            Self::Coords(_) => Err(LayoutError::CoordinateStrides {
                operation: OPERATION,
            }),
            Self::Matrix(matrix) => {
                let bits = matrix.in_bits();
                if i < 0 || (bits < 63 && i >> bits != 0) {
                    return Err(LayoutError::OutsideMatrix { index: i, bits });
                }
                Ok(matrix.apply(i as u64) as i64)
            }
        }
    }

    /// `self ∘ inner`, the simplest value that it is.
    ///
    /// ```
    /// use layout_core::Function;
    /// let f = |text: &str| Function::parse(text).unwrap();
    /// assert_eq!(f("8:1").compose(&f("Sw<1,0,1> o 4:1")).unwrap(), f("Sw<1,0,1> o 4:1"));
    /// ```
    ///
    /// # Errors
    ///
    /// Operands whose kinds do not meet; a composition of layouts that is not a layout ([`LayoutError::NotComposable`]); more
    /// than [`MAX_STEPS`](crate::MAX_STEPS) steps.
    pub const fn compose(&self, inner: &Self) -> Result<Self, LayoutError> {
        match (self, inner) {
            (_, Self::Chain(chain)) => attempt!(self.as_steps()).after_chain(chain),
            (_, Self::Layout(layout)) => self.after_layout(layout),
            (_, Self::Matrix(matrix)) => self.after_matrix(matrix),
            (Self::Layout(outer), Self::Affine(inner)) => match linear_factor(outer) {
                Some(factor) => Ok(Self::Affine(attempt!(
                    inner.multiplied(factor, COMPOSITION)
                ))),
                None => Err(LayoutError::NamedStrides {
                    operation: "composition with named strides on the right",
                }),
            },
            (Self::Swizzle(swizzle), Self::Affine(inner)) if inner.swizzle.is_identity() => {
                Ok(Self::Affine(Swizzled {
                    swizzle: *swizzle,
                    ..*inner
                }))
            }
            (Self::Offset(offset), Self::Affine(inner)) if inner.swizzle.is_identity() => {
                let mut moved = [0; TERMS];
                moved[0] = *offset;
                Ok(Self::Affine(attempt!(inner.moved(&moved, inner.layout))))
            }
            (Self::Layout(outer), Self::Coords(inner)) => match outer.over_coordinates(inner) {
                Ok(layout) => Ok(Self::Layout(layout)),
                Err(error) => Err(error),
            },
            (Self::Affine(outer), Self::Coords(inner)) => match outer.over_coordinates(inner) {
                Ok(layout) => Ok(Self::Affine(layout)),
                Err(error) => Err(error),
            },
            (Self::Coords(outer), Self::Coords(inner)) => match outer.over_coordinates(inner) {
                Ok(layout) => Ok(Self::Coords(layout)),
                Err(error) => Err(error),
            },
            // A step on integers after another: a function without a shape.
            (_, Self::Swizzle(swizzle)) => {
                let begin = attempt!(Chain::of(None).then(Step::Swizzle(*swizzle)));
                attempt!(self.as_steps()).after_chain(&begin)
            }
            (_, Self::Offset(offset)) => {
                let begin = attempt!(Chain::of(None).then(Step::Offset(*offset)));
                attempt!(self.as_steps()).after_chain(&begin)
            }
            (_, Self::Affine(_)) => Err(LayoutError::NamedStrides {
                operation: "composition with named strides on the right",
            }),
            (_, Self::Coords(_)) => Err(LayoutError::CoordinateStrides {
                operation: "composition with coordinates on the right",
            }),
        }
    }

    /// The steps that this is, for the left side of a chain.
    const fn as_steps(&self) -> Result<Chain, LayoutError> {
        const OPERATION: &str = "composition after a swizzle";
        match self {
            Self::Swizzle(swizzle) => Chain::of(None).then(Step::Swizzle(*swizzle)),
            Self::Offset(offset) => Chain::of(None).then(Step::Offset(*offset)),
            Self::Layout(layout) => layout.as_steps(),
            Self::Chain(chain) => match &chain.inner() {
                Some(inner) => {
                    let mut steps = attempt!(inner.as_steps());
                    let mut k = chain.steps().len();
                    while k > 0 {
                        k -= 1;
                        steps = attempt!(steps.then(chain.steps()[k]));
                    }
                    Ok(steps)
                }
                None => Ok(*chain),
            },
            Self::Affine(_) => Err(LayoutError::NamedStrides {
                operation: OPERATION,
            }),
            Self::Coords(_) => Err(LayoutError::CoordinateStrides {
                operation: OPERATION,
            }),
            Self::Matrix(_) => Err(LayoutError::MatrixOperand {
                operation: OPERATION,
            }),
        }
    }

    /// `self ∘ layout`.
    const fn after_layout(&self, layout: &Swizzled) -> Result<Self, LayoutError> {
        match self {
            Self::Swizzle(swizzle) => {
                if layout.swizzle.is_identity() {
                    return Ok(Self::Layout(attempt!(Swizzled::new(
                        *swizzle,
                        layout.offset(),
                        layout.layout
                    ))));
                }
                if swizzle.is_identity() {
                    return Ok(Self::Layout(*layout));
                }
                if swizzle.equals(&layout.swizzle) && swizzle.s().unsigned_abs() >= swizzle.b() {
                    return Ok(Self::Layout(attempt!(Swizzled::new(
                        Swizzle::IDENTITY,
                        layout.offset(),
                        layout.layout
                    ))));
                }
                let chain = attempt!(Chain::of(Some(*layout)).then(Step::Swizzle(*swizzle)));
                Ok(simplest(&chain))
            }
            Self::Offset(offset) => {
                if layout.swizzle.is_identity() {
                    let moved = attempt!(layout.moved(&[*offset], layout.layout));
                    return Ok(Self::Layout(moved));
                }
                let chain = attempt!(Chain::of(Some(*layout)).then(Step::Offset(*offset)));
                Ok(simplest(&chain))
            }
            Self::Layout(outer) => outer.after(layout),
            Self::Affine(outer) => {
                if !layout.swizzle.is_identity() {
                    return Err(LayoutError::NamedStrides {
                        operation: "composition after a swizzle",
                    });
                }
                Ok(Self::Affine(attempt!(outer.after_offset(layout))))
            }
            Self::Coords(outer) => {
                if !layout.swizzle.is_identity() {
                    return Err(LayoutError::CoordinateStrides {
                        operation: "composition after a swizzle",
                    });
                }
                Ok(Self::Coords(attempt!(outer.after_offset(layout))))
            }
            Self::Chain(_) => match self.as_steps() {
                Ok(chain) => chain.after_chain(&Chain::of(Some(*layout))),
                Err(error) => Err(error),
            },
            Self::Matrix(matrix) => match LinearMap::of_layout(layout) {
                Ok(inner) => match matrix.compose_padded(&inner) {
                    Ok(product) => Ok(Self::Matrix(product)),
                    Err(_) => Err(LayoutError::MatrixMismatch {
                        columns: matrix.in_bits(),
                        rows: inner.out_bits(),
                    }),
                },
                Err(cause) => Err(LayoutError::NotLinear {
                    operation: "composition of a matrix with a layout",
                    cause,
                }),
            },
        }
    }

    /// `self ∘ matrix`.
    const fn after_matrix(&self, matrix: &LinearMap) -> Result<Self, LayoutError> {
        const OPERATION: &str = "composition with a matrix on the right";
        let steps = match self {
            Self::Matrix(outer) => {
                return match outer.compose_padded(matrix) {
                    Ok(product) => Ok(Self::Matrix(product)),
                    Err(_) => Err(LayoutError::MatrixMismatch {
                        columns: outer.in_bits(),
                        rows: matrix.out_bits(),
                    }),
                };
            }
            _ => attempt!(self.as_steps()),
        };
        let mut map = *matrix;
        let mut k = steps.steps().len();
        while k > 0 {
            k -= 1;
            map = match map.followed_by(&steps.steps()[k]) {
                Ok(map) => map,
                Err(cause) => {
                    return Err(LayoutError::NotLinear {
                        operation: OPERATION,
                        cause,
                    });
                }
            };
        }
        Ok(Self::Matrix(map))
    }
}

/// `d` if `layout` is `x -> d·x` on all integers.
const fn linear_factor(layout: &Swizzled) -> Option<i64> {
    let modes = layout.layout.modes().coalesced_unbounded();
    match &layout.as_plain() {
        Some(_) if modes.len == 1 => Some(modes.stride[0][0]),
        _ => None,
    }
}

impl Chain {
    /// These steps, which begin with none, after another chain; simplified.
    const fn after_chain(&self, inner: &Self) -> Result<Function, LayoutError> {
        let mut chain = *inner;
        let mut k = self.steps().len();
        while k > 0 {
            k -= 1;
            // What stands below may have become one layout again.
            let step = &self.steps()[k];
            let next = match (chain.as_layout(), as_function(step)) {
                (Some(layout), Some(step)) => attempt!(step.after_layout(&layout)),
                _ => simplest(&attempt!(chain.then(*step))),
            };
            chain = match next {
                Function::Layout(layout) => Self::of(Some(layout)),
                Function::Chain(chain) => chain,
                other => return Ok(other),
            };
        }
        Ok(simplest(&chain))
    }
}

/// The step as a function of its own. [`Function`] has no variant for an undone swizzle.
const fn as_function(step: &Step) -> Option<Function> {
    match step {
        Step::Swizzle(swizzle) => Some(Function::Swizzle(*swizzle)),
        Step::Offset(offset) => Some(Function::Offset(*offset)),
        Step::Layout(layout) => Some(Function::Layout(Swizzled::plain(*layout))),
        Step::InverseSwizzle(_) => None,
    }
}

impl Swizzled {
    /// The layout's steps, to stand after something else.
    const fn as_steps(&self) -> Result<Chain, LayoutError> {
        let mut chain = attempt!(Chain::of(None).then(Step::Layout(self.layout)));
        chain = attempt!(chain.then(Step::Offset(self.offset[0])));
        chain.then(Step::Swizzle(self.swizzle))
    }

    /// `self ∘ inner`.
    const fn after(&self, inner: &Self) -> Result<Function, LayoutError> {
        if inner.swizzle.is_identity() {
            return match self.after_offset(inner) {
                Ok(layout) => Ok(Function::Layout(layout)),
                Err(error) => {
                    // The offset's own digits carry: the values may be a layout all the same.
                    let steps = attempt!(Chain::of(Some(*inner)).then(Step::Layout(self.layout)));
                    match from_values(&steps, &inner.layout) {
                        Some(layout) => match self.around(&layout) {
                            Ok(function) => Ok(function),
                            Err(error) => Err(error),
                        },
                        None => Err(error),
                    }
                }
            };
        }
        let modes = self.layout.modes().coalesced_unbounded();
        let factor = modes.stride[0][0];
        if modes.len == 1 && factor > 0 && factor & (factor - 1) == 0 {
            // A shift of all bits: it shifts the swizzle too.
            let swizzle = Swizzle::new(
                inner.swizzle.b(),
                inner.swizzle.m() + factor.trailing_zeros(),
                inner.swizzle.s(),
            );
            if let (Ok(swizzle), Ok(moved)) = (swizzle, inner.multiplied(factor, COMPOSITION)) {
                return self.around(&Self { swizzle, ..moved });
            }
        }
        let chain = attempt!(Chain::of(Some(*inner)).then(Step::Layout(self.layout)));
        if let Function::Layout(layout) = simplest(&chain) {
            return self.around(&layout);
        }
        let chain = attempt!(chain.then(Step::Offset(self.offset[0])));
        let chain = attempt!(chain.then(Step::Swizzle(self.swizzle)));
        Ok(simplest(&chain))
    }

    /// The swizzle and offset of `self` after `layout`.
    const fn around(&self, layout: &Self) -> Result<Function, LayoutError> {
        let moved = if self.offset[0] == 0 {
            Function::Layout(*layout)
        } else {
            attempt!(Function::Offset(self.offset[0]).after_layout(layout))
        };
        if self.swizzle.is_identity() {
            return Ok(moved);
        }
        match &moved {
            Function::Layout(layout) => Function::Swizzle(self.swizzle).after_layout(layout),
            Function::Chain(chain) => {
                Ok(simplest(&attempt!(chain.then(Step::Swizzle(self.swizzle)))))
            }
            _ => Ok(moved),
        }
    }
}

impl<const K: usize> Swizzled<K> {
    /// `self ∘ (offset o B)`, where `B` is plain: `L(offset + B(c)) = L(offset) + L(B(c))` if their digits do not carry.
    const fn after_offset(&self, inner: &Swizzled) -> Result<Self, LayoutError> {
        let offset = inner.offset[0];
        if offset == 0 {
            return self.compose(&inner.layout);
        }
        // Then B and a mode 2:offset compose together.
        let start = attempt!(Layout::mode(2, offset));
        let both = attempt!(Layout::tuple(&[inner.layout, start]));
        let both = match self.layout.compose(&both) {
            Err(
                LayoutError::NotComposable { mode, .. }
                | LayoutError::ModesCarry { mode, .. }
                | LayoutError::NegativeCoordinates { mode, .. },
            ) if mode == inner.layout.leaves() => {
                return Err(LayoutError::OffsetCarries { offset });
            }
            other => attempt!(other),
        };
        let moved = attempt!(self.layout.checked_node_index(self.layout.root(), offset));
        self.moved(&moved, attempt!(both.get(0)))
    }

    /// Every offset times `factor`.
    pub(crate) const fn multiplied(
        &self,
        factor: i64,
        operation: &'static str,
    ) -> Result<Self, LayoutError> {
        let layout = attempt!(self.layout.scaled(factor, operation));
        let offset = attempt!(add_scaled(&[0; K], factor, &self.offset, operation));
        Self::plain(layout).moved(&offset, layout)
    }

    /// `self ∘ coordinates`: the layout at the coordinates, which are those of its shape.
    const fn over_coordinates(&self, inner: &Swizzled<MAX_AXES>) -> Result<Self, LayoutError> {
        const OPERATION: &str = "composition with coordinates on the right";
        let inner = attempt!(inner.within(&self.layout.profile));
        let mut stride = [[0; K]; crate::MAX_MODES];
        let mut i = 0;
        while i < inner.layout.leaves() {
            stride[i] = attempt!(self.at_axes(&inner.layout.stride[i], OPERATION));
            i += 1;
        }
        let layout = attempt!(
            Strided {
                profile: inner.layout.profile,
                shape: inner.layout.shape,
                stride,
                basis: self.layout.basis,
            }
            .checked()
        );
        self.moved(&attempt!(self.at_axes(&inner.offset, OPERATION)), layout)
    }

    /// The sum of the strides, each times its coordinate.
    const fn at_axes(
        &self,
        vector: &[i64; MAX_AXES],
        operation: &'static str,
    ) -> Result<[i64; K], LayoutError> {
        let mut sum = [0; K];
        let mut axis = 0;
        while axis < self.layout.leaves() && axis < MAX_AXES {
            sum = attempt!(add_scaled(
                &sum,
                vector[axis],
                &self.layout.stride[axis],
                operation
            ));
            axis += 1;
        }
        Ok(sum)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swizzle(swizzle) => write!(f, "{swizzle}"),
            Self::Offset(offset) => write!(f, "{offset}"),
            Self::Layout(layout) => write!(f, "{layout}"),
            Self::Affine(layout) => write!(f, "{layout}"),
            Self::Coords(layout) => write!(f, "{layout}"),
            Self::Chain(chain) => write!(f, "{chain}"),
            Self::Matrix(matrix) => write!(f, "{matrix}"),
        }
    }
}

impl core::str::FromStr for Function {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// One operand of a composition.
    const fn operand(&mut self) -> Result<Function, ParseError> {
        if self.peek() == b'S' {
            let swizzle = match self.swizzle() {
                Ok(swizzle) => swizzle,
                Err(error) => return Err(error),
            };
            if self.take(b'^') {
                self.peek();
                let power = *self;
                if let Ok(-1) = self.integer()
                    && let Ok(chain) = Chain::of(None).then(Step::undo(swizzle))
                {
                    return Ok(Function::Chain(chain));
                }
                return Err(power.error(ParseErrorKind::ExpectedInverse));
            }
            return Ok(Function::Swizzle(swizzle));
        }
        if self.at_integer() {
            // An offset unless a stride follows.
            let before = *self;
            let number = match self.integer() {
                Ok(number) => number,
                Err(error) => return Err(error),
            };
            if self.peek() != b':' {
                return Ok(Function::Offset(number));
            }
            *self = before;
        }
        match self.stride_kind() {
            StrideKind::Integers => match self.layout() {
                Ok(layout) => Ok(Function::Layout(Swizzled::plain(layout))),
                Err(error) => Err(error),
            },
            StrideKind::Names => match self.affine() {
                Ok(layout) => Ok(Function::Affine(Swizzled::plain(layout))),
                Err(error) => Err(error),
            },
            StrideKind::Axes => match self.coord_layout() {
                Ok(layout) => Ok(Function::Coords(Swizzled::plain(layout))),
                Err(error) => Err(error),
            },
        }
    }

    /// What the strides of the operand here are made of, by what is written up to the next `o`.
    const fn stride_kind(&self) -> StrideKind {
        let mut ahead = *self;
        let mut kind = StrideKind::Integers;
        let mut strides = false;
        while ahead.peek() != 0 {
            if ahead.word(b"o") {
                return kind;
            }
            let word = ahead.identifier();
            if strides && !word.is_empty() && !word[0].is_ascii_digit() && word[0] != b'_' {
                kind = StrideKind::Names;
                if word.len() == 1 && word[0] == b'E' && ahead.peek() == b'<' {
                    return StrideKind::Axes;
                }
            } else if word.is_empty() {
                let byte = ahead.peek();
                if strides && byte == b'@' {
                    return StrideKind::Axes;
                }
                strides = strides || byte == b':';
                let _ = ahead.take(byte);
            }
        }
        kind
    }
}

/// What strides are made of.
enum StrideKind {
    Integers,
    Names,
    Axes,
}
