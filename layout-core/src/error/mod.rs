//! What can go wrong, with the numbers that made it go wrong.
//!
//! Every operation of the algebra returns `Result<_, LayoutError>`. An error names the offending mode, carries the
//! extents and strides involved, has a stable [`code`](LayoutError::code) for programs, and says what to change for
//! people. The text is written by a formatter that works in `const fn` ([`Message`](crate::message::Message)), so a failing constant shows the
//! numbers in the compiler's message:
//!
//! ```compile_fail
//! use layout_core::{Layout, expect};
//! const A: Layout = expect(Layout::flat(&[4, 6], &[1, 10]));
//! // error: mode 0 of the right-hand layout, 4:3, does not compose: …
//! const R: Layout = expect(A.compose(&expect(Layout::mode(4, 3))));
//! # fn main() { let _ = R; }
//! ```

mod text;

use core::fmt;

use crate::f2::F2Error;
use crate::parameter::Parameter;

/// Why an operation of the algebra refused. Modes are counted from 0; "mode" means the leaf (in order of writing) unless
/// the text says otherwise.
///
/// ```
/// use layout_core::{Layout, LayoutError};
/// let error = Layout::flat(&[4, 0], &[1, 4]).unwrap_err();
/// assert_eq!(error, LayoutError::InvalidExtent { mode: 1, extent: 0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutError {
    /// More leaves than [`MAX_MODES`](crate::MAX_MODES).
    TooManyModes,
    /// More basis strides in one layout than there is room for.
    TooManyTerms {
        /// How many there are at most.
        limit: usize,
    },
    /// More nested parentheses than [`MAX_DEPTH`](crate::MAX_DEPTH).
    TooDeep,
    /// `()` where a tuple needs at least one element.
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
    /// A number that an operation takes besides the layout is out of range.
    InvalidNumber {
        /// What was being computed.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
        /// The values that are accepted.
        accepted: &'static str,
    },
    /// A number that an operation takes besides the layout lies outside a range.
    NumberOutOfRange {
        /// What was being computed.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
        /// The least value that is accepted.
        least: i64,
        /// The greatest.
        most: i64,
    },
    /// A number that another one determines is not that number.
    NumberMismatch {
        /// What was being computed.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
        /// The value that is accepted.
        expected: i64,
    },
    /// A choice that an operation does not offer, such as a pair of types.
    Unsupported {
        /// What was being computed.
        operation: &'static str,
        /// The value given.
        given: &'static str,
        /// What is offered.
        accepted: &'static str,
    },
    /// A result does not fit in 64 bits.
    Overflow {
        /// What was being computed.
        operation: &'static str,
    },
    /// A mode number at or beyond the rank.
    ModeOutOfRange {
        /// The mode given.
        mode: usize,
        /// How many there are.
        rank: usize,
    },
    /// A range of modes that is empty or ends beyond the rank.
    InvalidRange {
        /// First mode.
        begin: usize,
        /// One past the last mode.
        end: usize,
        /// How many modes there are.
        rank: usize,
    },
    /// A number at or beyond how many there are, of something other than modes.
    OutOfRange {
        /// What is counted.
        what: &'static str,
        /// The index given.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A layout of another rank than an operation needs.
    WrongRank {
        /// What has the rank.
        what: &'static str,
        /// The rank it needs.
        expected: usize,
        /// The rank it has.
        found: usize,
    },
    /// A profile that has not one element for each mode.
    WrongProfile {
        /// What was being computed.
        operation: &'static str,
        /// Modes there are.
        modes: usize,
        /// Elements of the profile.
        elements: usize,
    },
    /// A tuple where the other operand has an integer.
    TupleForInteger {
        /// What was being computed.
        operation: &'static str,
        /// The leaf of the other operand.
        mode: usize,
        /// Elements of the tuple.
        elements: usize,
    },
    /// An integer where the other operand has a tuple.
    IntegerForTuple {
        /// What was being computed.
        operation: &'static str,
        /// Elements of the tuple.
        elements: usize,
    },
    /// Two ranks that must agree do not.
    RankMismatch {
        /// What was being computed.
        operation: &'static str,
        /// Rank of the first operand.
        left: usize,
        /// Rank of the second operand.
        right: usize,
    },
    /// A tiler, profile or block has more elements than there are modes.
    TilerRank {
        /// What was being computed.
        operation: &'static str,
        /// Modes there are.
        modes: usize,
        /// Elements that were given.
        tiles: usize,
    },
    /// A slicer leaves no element open, or fixes none, where a tuple needs one.
    NothingLeft {
        /// What was being computed.
        operation: &'static str,
        /// What to change.
        accepted: &'static str,
    },
    /// A coordinate does not fit the shape: a tuple on an integer mode, or a wrong number of elements.
    CoordinateMismatch {
        /// First leaf of the shape that the coordinate does not fit.
        mode: usize,
        /// Elements that the shape has there; 0 for an integer.
        expected: usize,
        /// Elements that the coordinate has there.
        found: usize,
    },
    /// A negative linear coordinate where coordinates count from 0.
    NegativeIndex {
        /// The coordinate.
        index: i64,
    },
    /// A thread that takes no part.
    NoSuchThread {
        /// The thread given.
        thread: i64,
        /// How many there are.
        threads: i64,
    },
    /// A thread without a coordinate in the layout of threads.
    ThreadWithoutPlace {
        /// The thread asked for.
        thread: i64,
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
        /// Whether it overflows into a last mode of extent 1, which takes the rest.
        unit_last: bool,
    },
    /// A right-hand mode reaches below coordinate 0, where the left-hand layout is not linear.
    NegativeCoordinates {
        /// Leaf of the right-hand layout.
        mode: usize,
        /// Its extent.
        extent: i64,
        /// Its stride.
        stride: i64,
    },
    /// The offset of the right-hand layout carries into its modes.
    OffsetCarries {
        /// The offset.
        offset: i64,
    },
    /// In a divide the tile composes, but where the other tiles are does not.
    TilesNotComposable {
        /// Elements of the tile.
        tile: i64,
        /// Elements of the mode.
        size: i64,
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
        /// Whether it overflows into a last mode of extent 1, which takes the rest.
        unit_last: bool,
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
    /// An extent that must be a multiple of something is not.
    NotDivisible {
        /// What was being computed.
        operation: &'static str,
        /// The mode.
        mode: usize,
        /// Its extent.
        value: i64,
        /// What should divide it.
        divisor: i64,
    },
    /// A stride that must be a multiple of something is not.
    StrideNotDivisible {
        /// What was being computed.
        operation: &'static str,
        /// The leaf.
        mode: usize,
        /// Its stride.
        stride: i64,
        /// What should divide it.
        divisor: i64,
    },
    /// A number that an operation takes must be a multiple of something and is not.
    NotMultiple {
        /// What was being computed.
        operation: &'static str,
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: i64,
        /// What should divide it.
        divisor: i64,
    },
    /// In `shape_div` neither the element nor what is left of the divisor divides the other.
    ShapeNotDivisible {
        /// Leaf of the shape.
        mode: usize,
        /// The integer there.
        value: i64,
        /// The divisor.
        divisor: i64,
        /// What the elements before leave of it.
        rest: i64,
    },
    /// A mode that does not fill whole units of a wider element.
    StraddlesUnit {
        /// What was being computed.
        operation: &'static str,
        /// The leaf.
        mode: usize,
        /// Its extent.
        extent: i64,
        /// Its stride.
        stride: i64,
        /// Elements in a unit.
        n: i64,
    },
    /// A number must divide a size and does not.
    SizeNotDivisible {
        /// What was being computed.
        operation: &'static str,
        /// The size.
        size: i64,
        /// What should divide it.
        divisor: i64,
    },
    /// Modes that overlap within one unit of a wider element.
    UnitOverlap {
        /// What was being computed.
        operation: &'static str,
        /// The leaf at which they do.
        mode: usize,
        /// Elements in a unit.
        n: i64,
    },
    /// An offset that must be a multiple of something is not.
    OffsetNotDivisible {
        /// What was being computed.
        operation: &'static str,
        /// The offset.
        offset: i64,
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
    /// Two modes count one by one where only one can be split into smaller units.
    TwoUnitModes {
        /// What was being computed.
        operation: &'static str,
        /// The first such leaf.
        first: usize,
        /// The second.
        second: usize,
    },
    /// Two coordinates have the same offset.
    NotInjective {
        /// What was being computed.
        operation: &'static str,
        /// The lesser linear coordinate.
        first: i64,
        /// The greater one.
        second: i64,
        /// Their offset.
        offset: i64,
    },
    /// An injective layout that no layout undoes.
    NoLeftInverse {
        /// Number of offsets.
        size: i64,
        /// The greatest of them.
        max: i64,
    },
    /// A layout that must have each of `0..size` as an offset once does not.
    NotBijective {
        /// What was being computed.
        operation: &'static str,
        /// Number of coordinates.
        size: i64,
        /// Number of offsets from the least to the greatest.
        cosize: i64,
    },
    /// A negative stride where only positive strides have a meaning.
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
    /// A search stopped before it had an answer.
    SearchLimit {
        /// What was being computed.
        operation: &'static str,
    },
    /// `Swizzle<B,M,S>` that is not a bijection (`S = 0` with `B > 0`) or leaves the 62 low bits.
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
    /// More steps than a composition holds.
    TooManySteps {
        /// How many it holds.
        limit: usize,
    },
    /// A composition that is not one swizzled layout, where one is needed.
    SeveralSteps,
    /// A composition that begins with a function on all integers has no shape.
    NoShape {
        /// What was being computed.
        operation: &'static str,
    },
    /// A matrix over F2 where only functions on integers can stand.
    MatrixOperand {
        /// What was being computed.
        operation: &'static str,
    },
    /// Two matrices whose inner dimensions differ.
    MatrixMismatch {
        /// Columns of the left one.
        columns: u32,
        /// Rows of the right one.
        rows: u32,
    },
    /// An index with bits beyond those of a matrix.
    OutsideMatrix {
        /// The index.
        index: i64,
        /// Bits of the matrix.
        bits: u32,
    },
    /// A layout that is not linear over F2 where one is needed.
    NotLinear {
        /// What was being computed.
        operation: &'static str,
        /// Why there is no matrix.
        cause: F2Error,
    },
    /// Order numbers that do not name an order of the modes.
    InvalidOrder {
        /// Leaf of the order.
        mode: usize,
    },
    /// A stride name that is empty, too long, or has other characters than letters, digits and `_`.
    InvalidName {
        /// Length of the name.
        length: usize,
    },
    /// One stride name too many.
    TooManyNames {
        /// How many there are at most.
        limit: usize,
    },
    /// A layout with named strides was evaluated without a value for one of them.
    UnboundName {
        /// The name.
        name: Parameter,
    },
    /// Named strides where only integers have an answer.
    NamedStrides {
        /// What was being computed.
        operation: &'static str,
    },
    /// Strides that are coordinates where only integers have an answer.
    CoordinateStrides {
        /// What was being computed.
        operation: &'static str,
    },
    /// A mode that moves along several axes at once.
    DiagonalStride {
        /// What was being computed.
        operation: &'static str,
        /// The leaf.
        mode: usize,
    },
    /// A basis stride of an axis that coordinates can't have.
    InvalidAxis {
        /// The axis.
        axis: i64,
        /// Axes there are at most.
        limit: usize,
    },
    /// A stride without an axis among basis strides.
    MissingAxis,
    /// A basis stride of a tuple of axes.
    TupleAxis,
    /// A basis stride whose axis lies too deep.
    DeepAxis {
        /// How many levels there are at most.
        limit: usize,
    },
    /// More axes than coordinates can have.
    TooManyAxes {
        /// Axes needed.
        axes: usize,
        /// How many there are at most.
        limit: usize,
    },
    /// Coordinates of differently nested shapes in one layout.
    DifferentAxes {
        /// Axes of the first.
        left: usize,
        /// Axes of the second.
        right: usize,
    },
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
/// use layout_core::{Layout, expect};
/// const TILE: Layout = expect(
///     expect(Layout::flat(&[4, 6], &[1, 10])).compose(&expect(Layout::mode(8, 1))),
/// );
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

impl LayoutError {
    /// The same refusal under the name of the operation that was asked for, where another one is a step of it.
    pub(crate) const fn of(self, operation: &'static str) -> Self {
        match self {
            Self::NegativeStride { mode, stride, .. } => Self::NegativeStride {
                operation,
                mode,
                stride,
            },
            Self::InvalidNumber {
                argument,
                value,
                accepted,
                ..
            } => Self::InvalidNumber {
                operation,
                argument,
                value,
                accepted,
            },
            Self::NotChained {
                mode,
                stride,
                covered,
                ..
            } => Self::NotChained {
                operation,
                mode,
                stride,
                covered,
            },
            Self::DiagonalStride { mode, .. } => Self::DiagonalStride { operation, mode },
            Self::NamedStrides { .. } => Self::NamedStrides { operation },
            Self::Overflow { .. } => Self::Overflow { operation },
            other => other,
        }
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
        return Err(LayoutError::InvalidNumber {
            operation,
            argument,
            value,
            accepted: "at least 1",
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
