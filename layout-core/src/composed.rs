//! The algebra on composed layouts `Sw o offset o L`.
//!
//! Whatever only rearranges coordinates acts on the inner layout: `(Sw o offset o L) ∘ B = Sw o offset o (L ∘ B)`, and so do
//! the divides. Slicing and recasting, which touch offsets, are with their plain kin in `slice.rs` and `recast.rs`.
//!
//! The inverse goes the other way round: if `y = Sw(offset + L(i))`, then `i = L⁻¹(Sw⁻¹(y) − offset)`, a layout *after* a
//! swizzle, which is a type of its own, [`SwizzledInverse`].

use core::fmt;

use crate::composition::{Tiler, composition, composition_by_mode};
use crate::divide::{Divided, flat_divide, logical_divide, tiled_divide, zipped_divide};
use crate::error::{LayoutError, attempt, fits};
use crate::inverse::{left_inverse, preimage, right_inverse};
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// `(Sw o offset o L) ∘ B`.
///
/// ```
/// use layout_core::{Layout, Swizzled, composition_swizzled};
/// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
/// let column = composition_swizzled(&tile, &Layout::parse("4:1").unwrap()).unwrap();
/// assert_eq!(column.to_string(), "Sw<2,0,2> o 4:4");
/// assert_eq!([0, 1, 2, 3].map(|i| column.index(i)), [0, 5, 10, 15]);
/// ```
///
/// # Errors
///
/// As [`composition`].
pub const fn composition_swizzled(a: &Swizzled, b: &Layout) -> Result<Swizzled, LayoutError> {
    a.with_layout(attempt!(composition(&a.layout(), b)))
}

/// Composition mode by mode; see [`composition_by_mode`].
///
/// # Errors
///
/// As [`composition_by_mode`].
pub const fn composition_by_mode_swizzled(
    a: &Swizzled,
    tiler: &Tiler<'_>,
) -> Result<Swizzled, LayoutError> {
    a.with_layout(attempt!(composition_by_mode(&a.layout(), tiler)))
}

const fn around(outer: &Swizzled, divided: &Divided) -> Result<Divided<Swizzled>, LayoutError> {
    Ok(divided.with_layout(attempt!(outer.with_layout(divided.rounded_up()))))
}

/// [`logical_divide`] of a composed layout.
///
/// # Errors
///
/// As [`logical_divide`].
pub const fn logical_divide_swizzled(
    layout: &Swizzled,
    tiler: &Tiler<'_>,
) -> Result<Divided<Swizzled>, LayoutError> {
    around(layout, &attempt!(logical_divide(&layout.layout(), tiler)))
}

/// [`zipped_divide`] of a composed layout.
///
/// # Errors
///
/// As [`zipped_divide`].
pub const fn zipped_divide_swizzled(
    layout: &Swizzled,
    tiler: &Tiler<'_>,
) -> Result<Divided<Swizzled>, LayoutError> {
    around(layout, &attempt!(zipped_divide(&layout.layout(), tiler)))
}

/// [`tiled_divide`] of a composed layout.
///
/// # Errors
///
/// As [`tiled_divide`].
pub const fn tiled_divide_swizzled(
    layout: &Swizzled,
    tiler: &Tiler<'_>,
) -> Result<Divided<Swizzled>, LayoutError> {
    around(layout, &attempt!(tiled_divide(&layout.layout(), tiler)))
}

/// [`flat_divide`] of a composed layout.
///
/// # Errors
///
/// As [`flat_divide`].
pub const fn flat_divide_swizzled(
    layout: &Swizzled,
    tiler: &Tiler<'_>,
) -> Result<Divided<Swizzled>, LayoutError> {
    around(layout, &attempt!(flat_divide(&layout.layout(), tiler)))
}

/// The inverse of a composed layout, `y -> L⁻¹(Sw⁻¹(y) − offset)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SwizzledInverse {
    layout: Layout,
    offset: i64,
    swizzle: Swizzle,
}

impl SwizzledInverse {
    /// The layout applied last: the inverse of the one inside.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// What is added between swizzle and layout: the offset of the composed layout, negated.
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// The swizzle that is undone first.
    pub const fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// The linear coordinate for offset `y`. Meaningful for offsets that occur; see [`preimage_swizzled`] for one that tells.
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn checked_index(&self, y: i64) -> Result<i64, LayoutError> {
        let x = self.swizzle.inverse_apply(y).checked_add(self.offset);
        self.layout
            .checked_index(attempt!(fits(x, "evaluation of an inverse")))
    }

    /// [`checked_index`](Self::checked_index), wrapping around far outside the domain.
    pub const fn index(&self, y: i64) -> i64 {
        self.layout
            .index(self.swizzle.inverse_apply(y).wrapping_add(self.offset))
    }
}

impl fmt::Display for SwizzledInverse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        if self.offset != 0 {
            write!(f, " o {}", self.offset)?;
        }
        if !self.swizzle.is_identity() {
            // A swizzle with |S| >= B undoes itself.
            let undo = if self.swizzle.s().unsigned_abs() >= self.swizzle.b() {
                ""
            } else {
                "^-1"
            };
            write!(f, " o {}{undo}", self.swizzle)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SwizzledInverse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The inverse on the right: `S(R(y)) = y` for every offset `y` with `0 <= Sw⁻¹(y) − offset < size(R.layout())`.
///
/// ```
/// use layout_core::{Swizzled, right_inverse_swizzled};
/// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
/// let inverse = right_inverse_swizzled(&tile).unwrap();
/// assert_eq!(inverse.to_string(), "(4,4):(4,1) o Sw<2,0,2>");
/// assert!((0..16).all(|y| tile.index(inverse.index(y)) == y));
/// ```
///
/// # Errors
///
/// As [`right_inverse`].
pub const fn right_inverse_swizzled(layout: &Swizzled) -> Result<SwizzledInverse, LayoutError> {
    let inner = attempt!(right_inverse(&layout.layout()));
    Ok(SwizzledInverse {
        layout: inner,
        offset: -layout.offset(),
        swizzle: layout.swizzle(),
    })
}

/// The inverse on the left: `X(S(i)) = i` for every `i` (if the layout inside has no modes of stride 0).
///
/// # Errors
///
/// As [`left_inverse`].
pub const fn left_inverse_swizzled(layout: &Swizzled) -> Result<SwizzledInverse, LayoutError> {
    let inner = attempt!(left_inverse(&layout.layout()));
    Ok(SwizzledInverse {
        layout: inner,
        offset: -layout.offset(),
        swizzle: layout.swizzle(),
    })
}

/// A linear coordinate whose offset is `y`; see [`preimage`].
///
/// # Errors
///
/// As [`preimage`].
pub const fn preimage_swizzled(layout: &Swizzled, y: i64) -> Result<i64, LayoutError> {
    let x = layout
        .swizzle()
        .inverse_apply(y)
        .checked_sub(layout.offset());
    match preimage(&layout.layout(), attempt!(fits(x, "preimage"))) {
        // The offset asked for, not the one inside.
        Err(LayoutError::NotInImage { .. }) => Err(LayoutError::NotInImage { offset: y }),
        other => other,
    }
}
