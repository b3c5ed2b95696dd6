//! The codes and the messages of the errors: every text in one place, to be read as a whole.

use super::LayoutError;
use crate::message::Message;

/// The end of the message about a carry into a last mode of extent 1, which `coalesce` would drop.
const INTO_UNIT: &str = " into its last mode, whose extent is 1 and which takes the rest; coalesce the left-hand layout to drop that mode, or end \
     the tile there";

impl LayoutError {
    /// A stable name for programs, in `snake_case`.
    ///
    /// ```
    /// use layout_core::{Layout, LayoutError};
    /// assert_eq!(Layout::flat(&[], &[]).unwrap_err().code(), "empty_tuple");
    /// assert_eq!(LayoutError::TooManyModes.code(), "too_many_modes");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooManyModes => "too_many_modes",
            Self::TooManyTerms { .. } => "too_many_terms",
            Self::TooDeep => "too_deep",
            Self::EmptyTuple => "empty_tuple",
            Self::NotCongruent { .. } => "not_congruent",
            Self::InvalidExtent { .. } => "invalid_extent",
            Self::Overflow { .. } => "overflow",
            Self::ModeOutOfRange { .. } => "mode_out_of_range",
            Self::InvalidRange { .. } => "invalid_range",
            Self::OutOfRange { .. } => "out_of_range",
            Self::RankMismatch { .. }
            | Self::WrongRank { .. }
            | Self::WrongProfile { .. }
            | Self::TupleForInteger { .. }
            | Self::IntegerForTuple { .. }
            | Self::TilerRank { .. } => "rank_mismatch",
            Self::NothingLeft { .. } => "nothing_left",
            Self::NegativeIndex { .. } => "negative_index",
            Self::CoordinateMismatch { .. } => "coordinate_mismatch",
            Self::NoSuchThread { .. } | Self::ThreadWithoutPlace { .. } => {
                "coordinate_out_of_range"
            }
            Self::NotComposable { .. }
            | Self::ModesCarry { .. }
            | Self::NegativeCoordinates { .. }
            | Self::OffsetCarries { .. }
            | Self::TilesNotComposable { .. } => "not_composable",
            Self::OutOfDomain { .. } => "out_of_domain",
            Self::NotDivisible { .. }
            | Self::StrideNotDivisible { .. }
            | Self::NotMultiple { .. }
            | Self::ShapeNotDivisible { .. }
            | Self::StraddlesUnit { .. }
            | Self::SizeNotDivisible { .. }
            | Self::UnitOverlap { .. }
            | Self::OffsetNotDivisible { .. } => "not_divisible",
            Self::TwoUnitModes { .. } => "two_unit_modes",
            Self::NotInjective { .. } => "not_injective",
            Self::NoLeftInverse { .. } => "no_left_inverse",
            Self::NotBijective { .. } => "not_bijective",
            Self::NotChained { .. } => "not_chained",
            Self::NegativeStride { .. } => "negative_stride",
            Self::NotInImage { .. } => "not_in_image",
            Self::Overhang { .. } => "overhang",
            Self::TooLarge { .. } => "too_large",
            Self::SearchLimit { .. } => "search_limit",
            Self::InvalidSwizzle { .. } => "invalid_swizzle",
            Self::SwizzleUnit { .. } => "swizzle_unit",
            Self::InvalidOrder { .. } => "invalid_order",
            Self::InvalidNumber { .. }
            | Self::NumberOutOfRange { .. }
            | Self::NumberMismatch { .. }
            | Self::InvalidName { .. }
            | Self::TooManyNames { .. } => "invalid_parameter",
            Self::Unsupported { .. } => "unsupported",
            Self::TooManySteps { .. } => "too_many_steps",
            Self::SeveralSteps => "several_steps",
            Self::NoShape { .. } => "no_shape",
            Self::MatrixOperand { .. } => "matrix_operand",
            Self::MatrixMismatch { .. } => "matrix_mismatch",
            Self::OutsideMatrix { .. } => "outside_matrix",
            Self::NotLinear { .. } => "not_linear",
            Self::UnboundName { .. } => "unbound_parameter",
            Self::NamedStrides { .. } => "named_strides",
            Self::CoordinateStrides { .. } => "coordinate_strides",
            Self::DiagonalStride { .. } => "diagonal_stride",
            Self::InvalidAxis { .. }
            | Self::MissingAxis
            | Self::TupleAxis
            | Self::DeepAxis { .. } => "invalid_axis",
            Self::TooManyAxes { .. } => "too_many_axes",
            Self::DifferentAxes { .. } => "different_axes",
        }
    }

    /// The message for people, written without allocation so that it also works in `const`.
    ///
    /// ```
    /// use layout_core::LayoutError;
    /// let message = LayoutError::TooDeep.message();
    /// assert_eq!(message.as_str(), "more than 32 nested parentheses; flatten the tuple");
    /// ```
    pub const fn message(&self) -> Message {
        let m = Message::new();
        match *self {
            Self::TooManyModes => m.text("more than 32 modes; coalesce the layout or split it into several"),
            Self::TooManyTerms { limit } => m
                .text("more than ")
                .index(limit)
                .text(" basis strides in one layout; write fewer modes or fewer axes in each"),
            Self::TooDeep => m.text("more than 32 nested parentheses; flatten the tuple"),
            Self::EmptyTuple => m.text("an empty tuple; a tuple needs at least one element"),
            Self::NotCongruent { leaf, left, right } => m
                .text("the parentheses differ from element ")
                .index(leaf)
                .text(" on (")
                .count(left, "element", "elements")
                .text(" in the first tuple and ")
                .index(right)
                .text(" in the second); write both with the same nesting"),
            Self::InvalidExtent { mode, extent } => m
                .text("mode ")
                .index(mode)
                .text(" has the extent ")
                .int(extent)
                .text("; extents are at least 1"),
            Self::InvalidNumber { operation, argument, value, accepted } => m
                .text(operation)
                .text(": ")
                .text(argument)
                .text(" is ")
                .int(value)
                .text("; use ")
                .text(accepted),
            Self::NumberOutOfRange { operation, argument, value, least, most } => m
                .text(operation)
                .text(": ")
                .text(argument)
                .text(" is ")
                .int(value)
                .text("; use ")
                .int(least)
                .text(" to ")
                .int(most),
            Self::NumberMismatch { operation, argument, value, expected } => m
                .text(operation)
                .text(": ")
                .text(argument)
                .text(" is ")
                .int(value)
                .text("; use ")
                .int(expected),
            Self::Unsupported { operation, given, accepted } => m
                .text(operation)
                .text(": ")
                .text(given)
                .text(" is not supported; use ")
                .text(accepted),
            Self::Overflow { operation } => {
                m.text(operation).text(": the result does not fit in 64 bits; use smaller numbers")
            }
            Self::ModeOutOfRange { mode, rank } => {
                let m = m.text("there is no mode ").index(mode).text(": the rank is ").index(rank);
                if rank == 1 { m.text("; use 0") } else { m.text("; use 0 to ").index(rank.saturating_sub(1)) }
            }
            Self::InvalidRange { begin, end, rank } => {
                let m = m.text("modes ").index(begin).text("..").index(end);
                if begin < end {
                    m.text(" end beyond the rank; use an end of at most ").index(rank)
                } else {
                    m.text(": the range is empty; the end must be greater than the beginning")
                }
            }
            Self::OutOfRange { what, index, count } => {
                let m = m.text("there is no ").text(what).text(" ").index(index);
                match count {
                    0 => m.text(": there are none"),
                    1 => m.text(": there is one, number 0"),
                    _ => m.text(": use 0 to ").index(count - 1),
                }
            }
            Self::RankMismatch { operation, left, right } => m
                .text(operation)
                .text(": the first operand has rank ")
                .index(left)
                .text(" and the second has rank ")
                .index(right)
                .text("; give both the same rank"),
            Self::WrongRank { what, expected, found } => m
                .text(what)
                .text(" has rank ")
                .index(found)
                .text("; give it ")
                .count(expected, "mode", "modes"),
            Self::WrongProfile { operation, modes, elements } => m
                .text(operation)
                .text(": the profile has ")
                .count(elements, "element", "elements")
                .text(" and the layout has ")
                .count(modes, "mode", "modes")
                .text("; give one element for each mode"),
            Self::TupleForInteger { operation, mode, elements } => m
                .text(operation)
                .text(": a tuple of ")
                .count(elements, "element", "elements")
                .text(" stands where element ")
                .index(mode)
                .text(" of the first operand is an integer; give an integer there"),
            Self::IntegerForTuple { operation, elements } => m
                .text(operation)
                .text(": an integer stands where the other operand has a tuple of ")
                .count(elements, "element", "elements")
                .text("; give both the same parentheses"),
            Self::TilerRank { operation, modes, tiles } => m
                .text(operation)
                .text(": ")
                .count(tiles, "element", "elements")
                .text(" for ")
                .count(modes, "mode", "modes")
                .text("; give at most ")
                .index(modes),
            Self::NothingLeft { operation, accepted } => m
                .text(operation)
                .text(": nothing is left, and there is no empty tuple; ")
                .text(accepted),
            Self::CoordinateMismatch { mode, expected, found } => {
                let m = m
                    .text("the coordinate has ")
                    .count(found, "element", "elements")
                    .text(" where the shape has ");
                if expected == 0 {
                    m.text("an integer, mode ").index(mode).text("; give an integer there")
                } else {
                    m.index(expected)
                        .text(", from mode ")
                        .index(mode)
                        .text(" on; give as many elements, or one integer for all of them")
                }
            }
            Self::NegativeIndex { index } => {
                m.text("the linear coordinate ").int(index).text(" is negative; coordinates count from 0")
            }
            Self::NoSuchThread { thread, threads } => m
                .text("thread ")
                .int(thread)
                .text(" does not exist; use 0 to ")
                .int(threads.saturating_sub(1)),
            Self::ThreadWithoutPlace { thread } => m
                .text("thread ")
                .int(thread)
                .text(" has no coordinate in the layout of threads; use a thread that occurs in it"),
            Self::NotComposable { mode, extent, stride, lhs_mode, lhs_extent, run, unit_last } => {
                let m = m
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
                    .text(") of the coalesced left-hand layout");
                if unit_last {
                    return m.text(INTO_UNIT);
                }
                m.text(", and ")
                    .int(run)
                    .text(" does not divide what is left of its extent; end the tile there, or choose one that divides the mode")
            }
            Self::NegativeCoordinates { mode, extent, stride } => m
                .text("mode ")
                .index(mode)
                .text(" of the right-hand layout, ")
                .int(extent)
                .text(":")
                .int(stride)
                .text(", reaches coordinates below 0, where the left-hand layout is not linear; give it an offset that keeps it above"),
            Self::OffsetCarries { offset } => m
                .text("the offset ")
                .int(offset)
                .text(" of the right-hand layout and its strides carry over a mode of the left-hand layout; no layout is the composition"),
            Self::TilesNotComposable { tile, size } => m
                .text("divide: the tiles of ")
                .int(tile)
                .text(" after the first do not repeat evenly in a mode of ")
                .int(size)
                .text(" elements; choose a tile that divides the parts of the mode"),
            Self::ModesCarry { mode, extent, stride, lhs_mode, lhs_extent, unit_last } => {
                let m = m
                    .text("mode ")
                    .index(mode)
                    .text(" of the right-hand layout, ")
                    .int(extent)
                    .text(":")
                    .int(stride)
                    .text(if mode == 0 {
                        ", does not compose: its steps together carry over mode "
                    } else {
                        ", does not compose: its steps and those of the modes before it together carry over mode "
                    })
                    .index(lhs_mode)
                    .text(" (extent ")
                    .int(lhs_extent)
                    .text(") of the coalesced left-hand layout");
                m.text(if unit_last { INTO_UNIT } else { "; choose a tile that divides that mode" })
            }
            Self::OutOfDomain { min, max, size } => m
                .text("the right-hand layout reaches from ")
                .int(min)
                .text(" to ")
                .int(max)
                .text(", outside the domain 0..")
                .int(size)
                .text(" of the left-hand layout; use compose to go beyond it"),
            Self::NotDivisible { operation, mode, value, divisor } => m
                .text(operation)
                .text(": ")
                .int(divisor)
                .text(" does not divide ")
                .int(value)
                .text(", the extent of mode ")
                .index(mode)
                .text("; use a multiple of ")
                .int(divisor),
            Self::StrideNotDivisible { operation, mode, stride, divisor } => m
                .text(operation)
                .text(": ")
                .int(divisor)
                .text(" does not divide ")
                .int(stride)
                .text(", the stride of mode ")
                .index(mode)
                .text("; use a multiple of ")
                .int(divisor),
            Self::NotMultiple { operation, argument, value, divisor } => m
                .text(operation)
                .text(": ")
                .text(argument)
                .text(" is ")
                .int(value)
                .text("; use a multiple of ")
                .int(divisor),
            Self::ShapeNotDivisible { mode, value, divisor, rest } => {
                let m = m.text("shape_div: element ").index(mode).text(" of the shape is ").int(value);
                let m = if rest == divisor {
                    m.text(" and the divisor ").int(divisor)
                } else {
                    m.text(" and the elements before it leave ").int(rest).text(" of the divisor ").int(divisor)
                };
                m.text("; one of the two must divide the other")
            }
            Self::StraddlesUnit { operation, mode, extent, stride, n } => {
                let m = m
                    .text(operation)
                    .text(": mode ")
                    .index(mode)
                    .text(", ")
                    .int(extent)
                    .text(":")
                    .int(stride)
                    .text(", does not fill whole units of ")
                    .int(n)
                    .text(" elements; ");
                if n % stride != 0 {
                    m.text("use a stride that divides ").int(n).text(" or is a multiple of it")
                } else {
                    m.text("use an extent that is a multiple of ").int(n / stride)
                }
            }
            Self::SizeNotDivisible { operation, size, divisor } => m
                .text(operation)
                .text(": ")
                .int(divisor)
                .text(" does not split over the modes of a domain of ")
                .int(size)
                .text(" elements; use a product of divisors of the extents, or domain_distribute_partial, which takes fewer coordinates"),
            Self::UnitOverlap { operation, mode, n } => m
                .text(operation)
                .text(": mode ")
                .index(mode)
                .text(" overlaps the modes before it within one unit of ")
                .int(n)
                .text(" elements; use modes with different offsets inside a unit"),
            Self::OffsetNotDivisible { operation, offset, divisor } => m
                .text(operation)
                .text(": ")
                .int(divisor)
                .text(" does not divide the offset ")
                .int(offset)
                .text("; use a multiple of ")
                .int(divisor),
            Self::TwoUnitModes { operation, first, second } => m
                .text(operation)
                .text(": modes ")
                .index(first)
                .text(" and ")
                .index(second)
                .text(" both have stride 1; only one mode can run through the parts of a unit"),
            Self::NotInjective { operation, first, second, offset } => m
                .text(operation)
                .text(": coordinates ")
                .int(first)
                .text(" and ")
                .int(second)
                .text(" both have the offset ")
                .int(offset),
            Self::NoLeftInverse { size, max } => m
                .text("left_inverse: no layout sends each of the ")
                .int(size)
                .text(" offsets up to ")
                .int(max)
                .text(" back to its coordinate; use preimage for single offsets"),
            Self::NotBijective { operation, size, cosize } => m
                .text(operation)
                .text(": ")
                .int(size)
                .text(" coordinates reach over ")
                .int(cosize)
                .text(" offsets; each of 0..")
                .int(size)
                .text(" must occur exactly once"),
            Self::NotChained { operation, mode, stride, covered } => {
                let m = m.text(operation).text(": the stride ").int(stride).text(" of mode ").index(mode);
                if stride < covered {
                    m.text(" is less than the ")
                        .int(covered)
                        .text(" that the smaller strides cover, so that the modes overlap; use a multiple of ")
                        .int(covered)
                } else {
                    let m = m
                        .text(" is not a multiple of the ")
                        .int(covered)
                        .text(" covered by the smaller strides; pad it to a multiple");
                    if same(operation, "complement") {
                        m.text(", or take complement_partial, which leaves such gaps open")
                    } else {
                        m
                    }
                }
            }
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
                .text(" elements, more than the limit of ")
                .int(limit)
                .text("; use a smaller layout"),
            Self::SearchLimit { operation } => {
                m.text(operation).text(": the search stopped before it had an answer; use a smaller layout")
            }
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
                .text("> has no exact form in that unit; use a power of two that leaves the swizzle's bits whole"),
            Self::TooManySteps { limit } => {
                m.text("a composition of more than ").index(limit).text(" steps that no single layout replaces; use fewer steps")
            }
            Self::SeveralSteps => {
                m.text("the composition takes several steps and is not one swizzled layout; use Function::compose, which keeps them")
            }
            Self::NoShape { operation } => m
                .text(operation)
                .text(": a composition that begins with a function on all integers has no shape; compose it with a layout"),
            Self::MatrixOperand { operation } => {
                m.text(operation).text(": a matrix over F2 composes with matrices and linear layouts only")
            }
            Self::MatrixMismatch { columns, rows } => m
                .text("a matrix of ")
                .int(columns as i64)
                .text(" columns does not compose with one of ")
                .int(rows as i64)
                .text(" rows; give as many columns as rows"),
            Self::OutsideMatrix { index, bits } if bits < 63 => m
                .text("index ")
                .int(index)
                .text(" is outside the matrix, which has ")
                .count(bits as usize, "index bit", "index bits")
                .text("; use 0 to ")
                .int((1 << bits) - 1),
            Self::OutsideMatrix { index, bits } => m
                .text("index ")
                .int(index)
                .text(" is outside the matrix, which has ")
                .int(bits as i64)
                .text(" index bits"),
            Self::NotLinear { operation, cause } => cause.append_to(m.text(operation).text(": ")),
            Self::InvalidOrder { mode } => {
                m.text("element ").index(mode).text(" of the order does not fit the shape; give one number for each mode")
            }
            Self::InvalidName { length } => {
                let m = m.text("a stride name has 1 to 15 letters, digits or _ and does not begin with a digit");
                match length {
                    0 => m.text("; this one is empty"),
                    1..=15 => m,
                    _ => m.text("; this one has ").index(length).text(" characters"),
                }
            }
            Self::TooManyNames { limit } => m
                .text("more than ")
                .index(limit)
                .text(" stride names in one layout; use the same names again"),
            Self::UnboundName { name } => m
                .text("no value for the stride name ")
                .text(name.as_str())
                .text("; give one value for each name"),
            Self::NamedStrides { operation } => {
                m.text(operation).text(": the answer depends on the named strides; bind them first")
            }
            Self::CoordinateStrides { operation } => m
                .text(operation)
                .text(": the offsets are coordinates; take one axis, or compose a layout with the coordinates"),
            Self::DiagonalStride { operation, mode } => m
                .text(operation)
                .text(": mode ")
                .index(mode)
                .text(" moves along several axes at once; give each mode one axis"),
            Self::InvalidAxis { axis, limit } => m
                .text("there is no axis ")
                .int(axis)
                .text("; use 0 to ")
                .index(limit - 1)
                .text(", as in 2@1 or E<1>"),
            Self::MissingAxis => m.text("a stride without an axis among basis strides; name its axis, as in 2@1 or E<1>"),
            Self::TupleAxis => {
                m.text("a basis stride names a whole tuple of axes; name one axis in it, as 1@0@1 does")
            }
            Self::DeepAxis { limit } => m
                .text("an axis more than ")
                .index(limit)
                .text(" levels deep; use fewer @ in one basis stride"),
            Self::TooManyAxes { axes, limit } => {
                m.index(axes).text(" axes; coordinates have at most ").index(limit)
            }
            Self::DifferentAxes { left, right } => m
                .text("coordinates of ")
                .index(left)
                .text(" and of ")
                .index(right)
                .text(" axes, nested differently; use layouts over the same coordinates"),
        }
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
