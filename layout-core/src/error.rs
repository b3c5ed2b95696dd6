//! What can go wrong, with the numbers that made it go wrong.
//!
//! Every operation of the algebra returns `Result<_, LayoutError>`. An error names the offending mode, carries the
//! extents and strides involved, has a stable [`code`](LayoutError::code) for programs, and says what to change for
//! people. The text is written by a formatter that works in `const fn` ([`Message`]), so a failing constant shows the
//! numbers in the compiler's message:
//!
//! ```compile_fail
//! use layout_core::{Layout, composition, expect};
//! const A: Layout = expect(Layout::flat(&[4, 6], &[1, 10]));
//! // error: mode 0 of the right-hand layout, 4:3, does not compose: …
//! const R: Layout = expect(composition(&A, &expect(Layout::mode(4, 3))));
//! # fn main() { let _ = R; }
//! ```

use core::fmt;

use crate::message::Message;

/// Why an operation of the algebra refused. Modes are counted from 0; "mode" means the leaf (in order of writing) unless
/// the text says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutError {
    /// More leaves than [`MAX_MODES`](crate::MAX_MODES).
    TooManyModes,
    /// More nested parentheses than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep,
    /// `()` where a tuple needs at least one element, or unbalanced parentheses.
    EmptyTuple,
    /// Two tuples that must have the same parentheses do not.
    NotCongruent {
        /// First leaf (in order of writing) at which the two differ.
        leaf: usize,
        /// Leaves of the first tuple.
        left: usize,
        /// Leaves of the second tuple.
        right: usize,
    },
    /// An extent below 1.
    InvalidExtent {
        /// Leaf that has the extent.
        mode: usize,
        /// The extent.
        extent: i64,
    },
    /// A number that an operation takes besides the layout, below 1.
    InvalidArgument {
        /// What was being computed.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
    },
    /// A result does not fit in 64 bits.
    Overflow {
        /// What was being computed.
        operation: &'static str,
    },
    /// A mode number at or beyond the rank.
    ModeOutOfRange {
        /// The mode asked for.
        mode: usize,
        /// How many there are.
        rank: usize,
    },
    /// Two ranks that must agree (or fit) do not.
    RankMismatch {
        /// What was being computed.
        operation: &'static str,
        /// Rank of the first operand.
        left: usize,
        /// Rank of the second operand.
        right: usize,
    },
    /// A coordinate does not fit the shape: a tuple on an integer mode, or a wrong number of elements.
    CoordinateMismatch {
        /// First leaf of the shape that the coordinate does not fit.
        mode: usize,
        /// Elements that the shape has there (1 for an integer).
        expected: usize,
        /// Elements that the coordinate has there.
        found: usize,
    },
    /// A coordinate outside the shape, or a negative index.
    CoordinateOutOfRange {
        /// Leaf (0 for a linear index).
        mode: usize,
        /// The coordinate.
        coordinate: i64,
        /// Coordinates run from 0 to this, exclusive.
        extent: i64,
    },
    /// `A ∘ s:d` has no layout: a multiple of `d` carries out of a mode of `A` before `s` is used up evenly.
    NotComposable {
        /// Leaf of the right-hand layout.
        mode: usize,
        /// Its extent.
        extent: i64,
        /// Its stride.
        stride: i64,
        /// Mode of the left-hand layout, coalesced, that overflows.
        lhs_mode: usize,
        /// The extent of that mode.
        lhs_extent: i64,
        /// Steps of the right-hand mode (or of its remaining factor) that fit before the carry.
        run: i64,
    },
    /// The steps of a right-hand mode carry into each other, or into those of the modes before it.
    ModesCarry {
        /// Leaf of the right-hand layout at which the sum goes over.
        mode: usize,
        /// Its extent.
        extent: i64,
        /// Its stride.
        stride: i64,
        /// Mode of the left-hand layout, coalesced, that overflows.
        lhs_mode: usize,
        /// The extent of that mode.
        lhs_extent: i64,
    },
    /// A strict composition reaches outside the left-hand layout.
    OutOfDomain {
        /// Least offset of the right-hand layout.
        min: i64,
        /// Greatest offset of the right-hand layout.
        max: i64,
        /// Size of the left-hand layout.
        size: i64,
    },
    /// One number must divide another and does not.
    NotDivisible {
        /// What was being computed.
        operation: &'static str,
        /// Leaf, or element of the tuple.
        mode: usize,
        /// The number to divide.
        value: i64,
        /// What should divide it.
        divisor: i64,
    },
    /// Strides sorted upwards do not form a chain in which each is a multiple of the extent covered before it.
    NotChained {
        /// What was being computed.
        operation: &'static str,
        /// The leaf whose stride breaks the chain.
        mode: usize,
        /// Its stride.
        stride: i64,
        /// What the stride must be a multiple of, and not less than.
        covered: i64,
    },
    /// A negative stride where only strides upwards have a meaning.
    NegativeStride {
        /// What was being computed.
        operation: &'static str,
        /// The leaf.
        mode: usize,
        /// Its stride.
        stride: i64,
    },
    /// No coordinate has this offset.
    NotInImage {
        /// The offset looked up.
        offset: i64,
    },
    /// A tile does not divide what it tiles: the result reaches beyond it and needs a predicate.
    Overhang {
        /// Elements there are.
        size: i64,
        /// Elements that the tiles cover.
        covered: i64,
    },
    /// A search would look at too many elements.
    TooLarge {
        /// What was being computed.
        operation: &'static str,
        /// Elements to look at.
        size: i64,
        /// Elements that it looks at, at most.
        limit: i64,
    },
    /// `Swizzle<B,M,S>` that is no bijection (`S = 0` with `B > 0`) or leaves the 62 low bits.
    InvalidSwizzle {
        /// Number of bits.
        b: u32,
        /// Least bit left alone.
        m: u32,
        /// Shift, relative.
        s: i32,
    },
    /// A swizzle cannot be expressed in the other unit.
    SwizzleUnit {
        /// What was being computed.
        operation: &'static str,
        /// Number of bits.
        b: u32,
        /// Least bit left alone.
        m: u32,
        /// Shift, relative.
        s: i32,
        /// The ratio of the units.
        ratio: i64,
    },
    /// Order numbers that do not name an order of the modes.
    InvalidOrder {
        /// Leaf of the order.
        mode: usize,
    },
    /// A parameter name that is empty, too long, or one too many.
    InvalidParameter {
        /// How many parameters there are at most.
        limit: usize,
    },
    /// A layout with named strides was evaluated without a value for one of them.
    UnboundParameter {
        /// Which parameter, in order of first use.
        parameter: usize,
    },
    /// A combination that does not exist, in hardware or here.
    Unsupported {
        /// What was asked for.
        operation: &'static str,
        /// What was given.
        given: &'static str,
        /// What exists.
        accepted: &'static str,
    },
    /// A number outside those that an operation takes.
    InvalidNumber {
        /// What was asked for.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
        /// The numbers that are taken.
        accepted: &'static str,
    },
}

impl LayoutError {
    /// A stable name for programs, in `snake_case`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooManyModes => "too_many_modes",
            Self::TooDeep => "too_deep",
            Self::EmptyTuple => "empty_tuple",
            Self::NotCongruent { .. } => "not_congruent",
            Self::InvalidExtent { .. } => "invalid_extent",
            Self::Overflow { .. } => "overflow",
            Self::ModeOutOfRange { .. } => "mode_out_of_range",
            Self::RankMismatch { .. } => "rank_mismatch",
            Self::CoordinateMismatch { .. } => "coordinate_mismatch",
            Self::CoordinateOutOfRange { .. } => "coordinate_out_of_range",
            Self::NotComposable { .. } | Self::ModesCarry { .. } => "not_composable",
            Self::OutOfDomain { .. } => "out_of_domain",
            Self::NotDivisible { .. } => "not_divisible",
            Self::NotChained { .. } => "not_chained",
            Self::NegativeStride { .. } => "negative_stride",
            Self::NotInImage { .. } => "not_in_image",
            Self::Overhang { .. } => "overhang",
            Self::TooLarge { .. } => "too_large",
            Self::InvalidSwizzle { .. } => "invalid_swizzle",
            Self::SwizzleUnit { .. } => "swizzle_unit",
            Self::InvalidOrder { .. } => "invalid_order",
            Self::InvalidArgument { .. } | Self::InvalidParameter { .. } => "invalid_parameter",
            Self::UnboundParameter { .. } => "unbound_parameter",
            Self::Unsupported { .. } => "unsupported",
            Self::InvalidNumber { .. } => "invalid_argument",
        }
    }

    /// The message for people, written without allocation so that it also works in `const`.
    pub const fn message(&self) -> Message {
        let m = Message::new();
        match *self {
            Self::TooManyModes => m.text("more than 32 modes; coalesce the layout or split it into several"),
            Self::TooDeep => m.text("more than 32 nested parentheses; flatten the tuple"),
            Self::EmptyTuple => m.text("an empty tuple; a tuple needs at least one element"),
            Self::NotCongruent { leaf, left, right } => m
                .text("the parentheses differ from element ")
                .index(leaf)
                .text(" on (")
                .index(left)
                .text(" and ")
                .index(right)
                .text(" elements in all); write both with the same nesting"),
            Self::InvalidExtent { mode, extent } => m
                .text("mode ")
                .index(mode)
                .text(" has the extent ")
                .int(extent)
                .text("; extents are at least 1"),
            Self::InvalidArgument { operation, argument, value } => {
                m.text(operation).text(": ").text(argument).text(" is ").int(value).text("; give at least 1")
            }
            Self::Overflow { operation } => {
                m.text("overflow of 64 bits in ").text(operation).text("; use smaller extents or strides")
            }
            Self::ModeOutOfRange { mode, rank } => {
                m.text("there is no mode ").index(mode).text(": the rank is ").index(rank)
            }
            Self::RankMismatch { operation, left, right } => m
                .text(operation)
                .text(": the first operand has ")
                .index(left)
                .text(" modes and the second ")
                .index(right)
                .text("; give as many as the first has"),
            Self::CoordinateMismatch { mode, expected, found } => m
                .text("the coordinate has ")
                .index(found)
                .text(" elements where the shape has ")
                .index(expected)
                .text(" (from mode ")
                .index(mode)
                .text(" on); an integer may stand for a whole mode, a tuple never for an integer"),
            Self::CoordinateOutOfRange { mode, coordinate, extent } => m
                .text("coordinate ")
                .int(coordinate)
                .text(" of mode ")
                .index(mode)
                .text(" is outside 0..")
                .int(extent),
            Self::NotComposable { mode, extent, stride, lhs_mode, lhs_extent, run } => m
                .text("mode ")
                .index(mode)
                .text(" of the right-hand layout, ")
                .int(extent)
                .text(":")
                .int(stride)
                .text(", does not compose: after ")
                .int(run)
                .text(" steps it carries over mode ")
                .index(lhs_mode)
                .text(" (extent ")
                .int(lhs_extent)
                .text(") of the coalesced left-hand layout; its extent must be at most ")
                .int(run)
                .text(" or split evenly there"),
            Self::ModesCarry { mode, extent, stride, lhs_mode, lhs_extent } => m
                .text("mode ")
                .index(mode)
                .text(" of the right-hand layout, ")
                .int(extent)
                .text(":")
                .int(stride)
                .text(", does not compose: its steps and those of the modes before it together carry over mode ")
                .index(lhs_mode)
                .text(" (extent ")
                .int(lhs_extent)
                .text(") of the coalesced left-hand layout; choose a tile that divides that mode, or swap the modes"),
            Self::OutOfDomain { min, max, size } => m
                .text("the right-hand layout reaches from ")
                .int(min)
                .text(" to ")
                .int(max)
                .text(", outside the left-hand layout's 0..")
                .int(size),
            Self::NotDivisible { operation, mode, value, divisor } => m
                .text(operation)
                .text(": ")
                .int(divisor)
                .text(" does not divide ")
                .int(value)
                .text(" in mode ")
                .index(mode),
            Self::NotChained { operation, mode, stride, covered } => m
                .text(operation)
                .text(": the stride ")
                .int(stride)
                .text(" of mode ")
                .index(mode)
                .text(" is not a multiple of the ")
                .int(covered)
                .text(" covered by the smaller strides; pad it to a multiple"),
            Self::NegativeStride { operation, mode, stride } => m
                .text(operation)
                .text(": mode ")
                .index(mode)
                .text(" has the negative stride ")
                .int(stride)
                .text("; reverse that mode first"),
            Self::NotInImage { offset } => m.text("no coordinate of the layout has the offset ").int(offset),
            Self::Overhang { size, covered } => m
                .text("the tiles cover ")
                .int(covered)
                .text(" elements of ")
                .int(size)
                .text("; choose a tile that divides, or round up and predicate"),
            Self::TooLarge { operation, size, limit } => m
                .text(operation)
                .text(" would look at ")
                .int(size)
                .text(" elements, more than ")
                .int(limit),
            Self::InvalidSwizzle { b, m: bit, s } => {
                let m = m.text("Sw<").int(b as i64).text(",").int(bit as i64).text(",").int(s as i64);
                if s == 0 && b > 0 {
                    m.text("> is not injective: S must not be 0")
                } else {
                    m.text("> uses bits beyond 62: B + M + |S| must be at most 62")
                }
            }
            Self::SwizzleUnit { operation, b, m: bit, s, ratio } => m
                .text(operation)
                .text(" by ")
                .int(ratio)
                .text(": Sw<")
                .int(b as i64)
                .text(",")
                .int(bit as i64)
                .text(",")
                .int(s as i64)
                .text("> (or its offset) has no exact form in that unit; keep the swizzle's bits above the unit"),
            Self::InvalidOrder { mode } => {
                m.text("element ").index(mode).text(" of the order does not fit the shape; give one number a mode")
            }
            Self::InvalidParameter { limit } => {
                m.text("at most ").index(limit).text(" stride names, each of 1 to 15 letters, digits or _")
            }
            Self::UnboundParameter { parameter } => {
                m.text("no value for the stride name number ").index(parameter)
            }
            Self::Unsupported { operation, given, accepted } => m
                .text(operation)
                .text(": ")
                .text(given)
                .text(" is not supported; use ")
                .text(accepted),
            Self::InvalidNumber { operation, argument, value, accepted } => m
                .text(operation)
                .text(": ")
                .text(argument)
                .text(" is ")
                .int(value)
                .text("; use ")
                .text(accepted),
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl core::error::Error for LayoutError {}

/// The value of a result, or a panic whose message shows the numbers: for constants, where the panic is the compiler's
/// error. At run time, handle the error instead.
///
/// ```
/// use layout_core::{Layout, composition, expect};
/// const TILE: Layout = expect(composition(
///     &expect(Layout::flat(&[4, 6], &[1, 10])),
///     &expect(Layout::mode(8, 1)),
/// ));
/// assert_eq!(TILE, expect(Layout::flat(&[4, 2], &[1, 10])));
/// ```
///
/// # Panics
///
/// When the result is an error.
#[track_caller]
pub const fn expect<T: Copy>(result: Result<T, LayoutError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{}", error.message().as_str()),
    }
}

/// A checked result, or the overflow of `operation`.
pub(crate) const fn fits(value: Option<i64>, operation: &'static str) -> Result<i64, LayoutError> {
    match value {
        Some(value) => Ok(value),
        None => Err(LayoutError::Overflow { operation }),
    }
}

/// Refuses a number below 1 that an operation takes besides the layout.
pub(crate) const fn at_least_one(
    operation: &'static str,
    argument: &'static str,
    value: i64,
) -> Result<(), LayoutError> {
    if value < 1 {
        return Err(LayoutError::InvalidArgument {
            operation,
            argument,
            value,
        });
    }
    Ok(())
}

/// `?` for `const fn`, where the operator is not available yet.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(crate) use attempt;
