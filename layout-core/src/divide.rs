//! Divides: a layout cut into tiles, `(tile, which tile)`.
//!
//! `logical_divide(A, B) = A ∘ (B, complement(B, size(A)))`: the first mode walks one tile, the second walks the tiles. A
//! tiler of several modes divides mode by mode, and the other three divides only rearrange the modes:
//!
//! ```text
//! shape (M,N,L), tiler <tm,tn>
//! logical_divide   ((tm,rm),(tn,rn),L)
//! zipped_divide    ((tm,tn),(rm,rn,L))
//! tiled_divide     ((tm,tn),rm,rn,L)
//! flat_divide      (tm,tn,rm,rn,L)
//! ```
//!
//! # Tiles that do not divide
//!
//! `10:1` by a tile of 4 is `(4,3):(1,4)`: three tiles, the last of which reaches two elements beyond the end. The result
//! is therefore a [`Divided`], not a bare layout: [`Divided::exact`] gives the layout only if nothing hangs over,
//! [`Divided::rounded_up`] gives it in any case to a caller who says so by that name, and [`Divided::contains`] and
//! [`Divided::guard`] are the predicate.

use crate::complement::complement;
use crate::composition::{Ask, Tiler, composition};
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, TupleBuilder};
use crate::layout::{Layout, LayoutBuilder};
use crate::profile::Node;

/// A layout cut into tiles, which may reach beyond the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divided<L = Layout> {
    layout: L,
    guard: Layout,
    extents: IntTuple,
    covered: IntTuple,
}

impl<L: Copy> Divided<L> {
    /// The divided layout, if the tiles cover exactly what there is.
    ///
    /// # Errors
    ///
    /// [`LayoutError::Overhang`] if a tile reaches beyond the end.
    pub const fn exact(&self) -> Result<L, LayoutError> {
        let mut i = 0;
        while i < self.extents.leaves() {
            let (size, covered) = (self.extents.values[i], self.covered.values[i]);
            if size != covered {
                return Err(LayoutError::Overhang { size, covered });
            }
            i += 1;
        }
        Ok(self.layout)
    }

    /// The divided layout, overhang included: whoever walks it must ask [`contains`](Self::contains).
    pub const fn rounded_up(&self) -> L {
        self.layout
    }

    /// Whether the tiles cover exactly what there is.
    pub const fn is_exact(&self) -> bool {
        self.exact().is_ok()
    }

    /// Elements that the tiles cover beyond those there are.
    pub const fn overhang(&self) -> i64 {
        let mut size = 1;
        let mut covered = 1;
        let mut i = 0;
        while i < self.extents.leaves() {
            size *= self.extents.values[i];
            covered *= self.covered.values[i];
            i += 1;
        }
        covered - size
    }

    /// Whether linear coordinate `i` of the divided layout is an element that there is.
    pub const fn contains(&self, i: i64) -> bool {
        let mut rest = self.guard.index(i);
        let mut k = 0;
        while k < self.extents.leaves() {
            let covered = self.covered.values[k];
            if rest.rem_euclid(covered) >= self.extents.values[k] {
                return false;
            }
            rest = rest.div_euclid(covered);
            k += 1;
        }
        rest == 0
    }

    /// The predicate as a layout: nested as the divided one, it gives the position in the box [`covered`](Self::covered)
    /// (first extent fastest). The element exists if every coordinate there is below [`extents`](Self::extents).
    pub const fn guard(&self) -> Layout {
        self.guard
    }

    /// Size of each mode that was divided (or kept), a flat tuple.
    pub const fn extents(&self) -> IntTuple {
        self.extents
    }

    /// What the tiles cover in each of those modes: at least the extent.
    pub const fn covered(&self) -> IntTuple {
        self.covered
    }

    /// The same division of a layout around or beside this one.
    pub(crate) const fn with_layout<M: Copy>(&self, layout: M) -> Divided<M> {
        Divided {
            layout,
            guard: self.guard,
            extents: self.extents,
            covered: self.covered,
        }
    }
}

/// `A` cut into tiles, mode by mode: `((tile0,rest0),(tile1,rest1),…)`; one layout as tiler gives `(tile,rest)`.
///
/// ```
/// use layout_core::{Layout, Tiler, logical_divide};
/// let a = Layout::parse("(4,2,3):(2,1,8)").unwrap();
/// let tile = Layout::parse("4:2").unwrap();
/// let divided = logical_divide(&a, &Tiler::Layout(&tile)).unwrap();
/// assert_eq!(divided.exact().unwrap().to_string(), "((2,2),(2,3)):((4,1),(2,8))");
///
/// let ragged = logical_divide(&Layout::parse("10:1").unwrap(), &Tiler::Int(4)).unwrap();
/// assert_eq!(ragged.rounded_up().to_string(), "(4,3):(1,4)");
/// assert_eq!(ragged.exact().unwrap_err().code(), "overhang");
/// assert!(ragged.contains(9) && !ragged.contains(10));
/// ```
///
/// # Errors
///
/// Those of [`complement`] and [`composition`] in each mode; a tiler of higher rank than the layout.
pub const fn logical_divide(layout: &Layout, tiler: &Tiler<'_>) -> Result<Divided, LayoutError> {
    divide(layout, tiler, Arrangement::Logical)
}

/// `((tile0,tile1,…),(rest0,rest1,…))`; modes that the tiler does not reach go to the rest, [`Tiler::Keep`] puts a mode
/// whole into the tile.
///
/// ```
/// use layout_core::{IntTuple, Layout, Tiler, zipped_divide};
/// let a = Layout::parse("(8,6):(1,8)").unwrap();
/// let tile = IntTuple::parse("(4,3)").unwrap();
/// let divided = zipped_divide(&a, &Tiler::Tuple(&tile)).unwrap();
/// assert_eq!(divided.exact().unwrap().to_string(), "((4,3),(2,2)):((1,8),(4,24))");
/// ```
///
/// # Errors
///
/// As [`logical_divide`].
pub const fn zipped_divide(layout: &Layout, tiler: &Tiler<'_>) -> Result<Divided, LayoutError> {
    divide(layout, tiler, Arrangement::Zipped)
}

/// `((tile0,tile1,…),rest0,rest1,…)`.
///
/// # Errors
///
/// As [`logical_divide`].
pub const fn tiled_divide(layout: &Layout, tiler: &Tiler<'_>) -> Result<Divided, LayoutError> {
    divide(layout, tiler, Arrangement::Tiled)
}

/// `(tile0,tile1,…,rest0,rest1,…)`.
///
/// # Errors
///
/// As [`logical_divide`].
pub const fn flat_divide(layout: &Layout, tiler: &Tiler<'_>) -> Result<Divided, LayoutError> {
    divide(layout, tiler, Arrangement::Flat)
}

/// How the tiles' modes and the others are arranged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrangement {
    Logical,
    Zipped,
    Tiled,
    Flat,
}

impl Arrangement {
    /// Puts a tile part and a rest part together.
    pub(crate) const fn join(self, tile: &Layout, rest: &Layout) -> Result<Layout, LayoutError> {
        let mut builder = LayoutBuilder::new();
        builder.open();
        match self {
            Self::Logical | Self::Zipped => {
                builder.append(tile, tile.root());
                builder.append(rest, rest.root());
            }
            Self::Tiled => {
                builder.append(tile, tile.root());
                builder.append_elements(rest, rest.root());
            }
            Self::Flat => {
                builder.append_elements(tile, tile.root());
                builder.append_elements(rest, rest.root());
            }
        }
        builder.close();
        builder.finish()
    }
}

/// Two layouts under construction that stay congruent: the values and the guard.
#[derive(Clone, Copy)]
struct Twin {
    value: LayoutBuilder,
    guard: LayoutBuilder,
}

impl Twin {
    const fn new() -> Self {
        Self {
            value: LayoutBuilder::new(),
            guard: LayoutBuilder::new(),
        }
    }

    const fn open(&mut self) {
        self.value.open();
        self.guard.open();
    }

    const fn close(&mut self) {
        self.value.close();
        self.guard.close();
    }

    /// Appends `value` with the guard `guard`, to which each leaf of `value` composes (so it may be nested deeper).
    const fn append(&mut self, value: &Layout, guard: &Layout) {
        self.value.append(value, value.root());
        self.guard.append(guard, guard.root());
    }
}

#[derive(Clone, Copy)]
struct Divider {
    tile: Twin,
    rest: Twin,
    extents: TupleBuilder,
    covered: TupleBuilder,
    /// Size of the box covered so far.
    running: i64,
    logical: bool,
}

impl Divider {
    /// Records that `covered` positions stand for `size` elements, and returns the guard's stride for them.
    const fn axis(&mut self, size: i64, covered: i64) -> Result<i64, LayoutError> {
        let stride = self.running;
        self.extents.leaf(size);
        self.covered.leaf(covered);
        self.running = attempt!(fits(stride.checked_mul(covered), "divide"));
        Ok(stride)
    }

    /// The mode as it is.
    const fn keep(&mut self, mode: &Layout, in_tile: bool) -> Result<(), LayoutError> {
        let size = mode.size();
        let stride = attempt!(self.axis(size, size));
        let guard = attempt!(scaled(&attempt!(Layout::compact(mode.shape())), stride));
        if self.logical || in_tile {
            self.tile.append(mode, &guard);
            if !self.logical {
                self.rest.append(&Layout::UNIT, &Layout::UNIT);
            }
        } else {
            self.rest.append(mode, &guard);
        }
        Ok(())
    }

    /// The mode by one tile.
    const fn cut(&mut self, mode: &Layout, tile: &Layout) -> Result<(), LayoutError> {
        let size = mode.size();
        let rest = attempt!(complement(tile, size));
        let both = attempt!(Layout::tuple(&[*tile, rest]));
        let value = attempt!(composition(mode, &both));
        let (_, max) = both.offset_range();
        let stride = attempt!(self.axis(size, max + 1));
        // The guard composes with the same factors as the value, so that the two stay congruent.
        let guard = attempt!(guard_like(&value, &both, stride));
        if self.logical {
            self.tile.append(&value, &guard);
        } else {
            self.tile
                .append(&attempt!(value.get(0)), &attempt!(guard.get(0)));
            self.rest
                .append(&attempt!(value.get(1)), &attempt!(guard.get(1)));
        }
        Ok(())
    }

    const fn node(&mut self, layout: &Layout, node: Node, ask: Ask<'_>) -> Result<(), LayoutError> {
        match ask {
            Ask::Keep => self.keep(&attempt!(layout.extract(node)), true),
            Ask::Compose(tile) => self.cut(&attempt!(layout.extract(node)), &tile),
            Ask::Enter(parts) => {
                let (left, right) = (layout.profile.rank(node), parts.rank());
                if right > left || right == 0 {
                    return Err(LayoutError::RankMismatch {
                        operation: "divide by mode",
                        left,
                        right,
                    });
                }
                self.tile.open();
                if !self.logical {
                    self.rest.open();
                }
                let mut mode = Some(layout.profile.first(node));
                let mut i = 0;
                while let Some(m) = mode {
                    if i < right {
                        attempt!(self.node(layout, m, attempt!(parts.ask(i))));
                    } else {
                        attempt!(self.keep(&attempt!(layout.extract(m)), false));
                    }
                    mode = layout.profile.next(node, m);
                    i += 1;
                }
                self.tile.close();
                if !self.logical {
                    self.rest.close();
                }
                Ok(())
            }
        }
    }
}

/// Every stride times `factor`.
const fn scaled(layout: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    let mut result = *layout;
    let mut i = 0;
    while i < layout.leaves() {
        result.stride[i] = attempt!(fits(layout.stride[i].checked_mul(factor), "divide"));
        i += 1;
    }
    result.checked()
}

/// `both` (times `factor`) with the parentheses and the factors of `value = mode ∘ both`, whose leaves are factors of the
/// leaves of `both` in the same order.
const fn guard_like(value: &Layout, both: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    let mut guard = *value;
    let mut leaf = 0;
    let mut left = both.shape[0];
    let mut stride = both.stride[0];
    let mut i = 0;
    while i < value.leaves() {
        if left == 1 && i > 0 {
            leaf += 1;
            left = both.shape[leaf];
            stride = both.stride[leaf];
        }
        guard.stride[i] = attempt!(fits(stride.checked_mul(factor), "divide"));
        left /= value.shape[i];
        stride = stride.saturating_mul(value.shape[i]);
        i += 1;
    }
    guard.checked()
}

const fn divide(
    layout: &Layout,
    tiler: &Tiler<'_>,
    arrangement: Arrangement,
) -> Result<Divided, LayoutError> {
    let logical = matches!(arrangement, Arrangement::Logical);
    let mut divider = Divider {
        tile: Twin::new(),
        rest: Twin::new(),
        extents: TupleBuilder::new(),
        covered: TupleBuilder::new(),
        running: 1,
        logical,
    };
    divider.extents.open();
    divider.covered.open();
    attempt!(divider.node(layout, layout.root(), attempt!(tiler.ask())));
    divider.extents.close();
    divider.covered.close();
    let (value, guard) = if logical {
        (
            attempt!(divider.tile.value.finish()),
            attempt!(divider.tile.guard.finish()),
        )
    } else {
        (
            attempt!(arrangement.join(
                &attempt!(divider.tile.value.finish()),
                &attempt!(divider.rest.value.finish())
            )),
            attempt!(arrangement.join(
                &attempt!(divider.tile.guard.finish()),
                &attempt!(divider.rest.guard.finish())
            )),
        )
    };
    Ok(Divided {
        layout: value,
        guard,
        extents: attempt!(divider.extents.finish()),
        covered: attempt!(divider.covered.finish()),
    })
}
