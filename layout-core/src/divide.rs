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
//! `10:1` by a tile of 4 is `(4,3):(1,4)`: three tiles, and the last reaches two elements beyond the end. The result
//! is therefore a [`Divided`], not a bare layout: [`Divided::exact`] gives the layout only if nothing hangs over,
//! [`Divided::rounded_up`] gives it with its overhang, and [`Divided::contains`] and
//! [`Divided::guard`] are the predicate. Offsets of elements that do not exist are not determined by the law, so a division
//! exists whenever the offsets of those that do exist are a layout. Where the composition exists as a whole, it is the result: the
//! overhang then goes on along the last mode of the layout, as evaluation does.

use crate::basis::Basis;
use crate::composition::{Ask, Tiler};
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, TupleBuilder};
use crate::layout::Layout;
use crate::profile::Node;
use crate::strided::{LayoutBuilder, Strided};
use crate::swizzled::Swizzled;

const OPERATION: &str = "divide";

/// A layout cut into tiles, which may reach beyond the layout.
///
/// ```
/// use layout_core::{Layout, Tiler};
/// let ragged = Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
/// assert_eq!((ragged.rounded_up().to_string().as_str(), ragged.overhang()), ("(4,3):(1,4)", 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Divided<L = Layout> {
    layout: L,
    guard: Layout,
    extents: IntTuple,
    covered: IntTuple,
}

impl<L: Copy> Divided<L> {
    /// The divided layout, if the tiles cover the layout exactly.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divide = |n| Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(n)).unwrap();
    /// assert_eq!(divide(5).exact().unwrap().to_string(), "(5,2):(1,5)");
    /// assert_eq!(divide(4).exact().unwrap_err().code(), "overhang");
    /// ```
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

    /// The divided layout, overhang included: check each position with the predicate [`contains`](Self::contains).
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divided = Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert_eq!(divided.rounded_up().to_string(), "(4,3):(1,4)");
    /// ```
    pub const fn rounded_up(&self) -> L {
        self.layout
    }

    /// Whether the tiles cover the layout exactly, without overhang.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// assert!(Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(5)).unwrap().is_exact());
    /// ```
    pub const fn is_exact(&self) -> bool {
        self.exact().is_ok()
    }

    /// Elements of the tiles beyond the layout.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// assert_eq!(Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(4)).unwrap().overhang(), 2);
    /// ```
    pub const fn overhang(&self) -> i64 {
        let mut size = 1;
        let mut i = 0;
        while i < self.extents.leaves() {
            size *= self.extents.values[i];
            i += 1;
        }
        // Each position once, also where a tile repeats its elements.
        self.guard.filter().size() - size
    }

    /// Whether linear coordinate `i` of the divided layout is an element that exists.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divided = Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert!(divided.contains(9) && !divided.contains(10));
    /// ```
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
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divided = Layout::parse("10:3").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert_eq!(divided.guard().to_string(), "(4,3):(1,4)");
    /// ```
    pub const fn guard(&self) -> Layout {
        self.guard
    }

    /// Size of each mode that was divided (or kept), a flat tuple.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divided = Layout::parse("10:3").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert_eq!(divided.extents().to_string(), "(10)");
    /// ```
    pub const fn extents(&self) -> IntTuple {
        self.extents
    }

    /// The extent that the tiles cover in each of those modes: at least the mode's extent.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let divided = Layout::parse("10:3").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert_eq!(divided.covered().to_string(), "(12)");
    /// ```
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
    pub(crate) const fn join<const K: usize>(
        self,
        tile: &Strided<K>,
        rest: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        let mut builder = LayoutBuilder::like(tile);
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
struct Twin<const K: usize> {
    value: LayoutBuilder<K>,
    guard: LayoutBuilder<1>,
}

impl<const K: usize> Twin<K> {
    const fn like(layout: &Strided<K>) -> Self {
        Self {
            value: LayoutBuilder::like(layout),
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
    const fn append(&mut self, value: &Strided<K>, guard: &Layout) {
        self.value.append(value, value.root());
        self.guard.append(guard, guard.root());
    }
}

#[derive(Clone, Copy)]
struct Divider<const K: usize> {
    tile: Twin<K>,
    rest: Twin<K>,
    extents: TupleBuilder,
    covered: TupleBuilder,
    /// Size of the box covered so far.
    running: i64,
    logical: bool,
}

impl<const K: usize> Divider<K> {
    /// Records that `covered` positions stand for `size` elements, and returns the guard's stride for them.
    const fn axis(&mut self, size: i64, covered: i64) -> Result<i64, LayoutError> {
        let stride = self.running;
        self.extents.leaf(size);
        self.covered.leaf(covered);
        self.running = attempt!(fits(stride.checked_mul(covered), OPERATION));
        Ok(stride)
    }

    /// The mode as it is.
    const fn keep(&mut self, mode: &Strided<K>, in_tile: bool) -> Result<(), LayoutError> {
        let size = mode.size();
        let stride = attempt!(self.axis(size, size));
        let counted = attempt!(Layout::compact(mode.shape()));
        let guard = attempt!(counted.scaled(stride, OPERATION));
        if self.logical || in_tile {
            self.tile.append(mode, &guard);
            if !self.logical {
                self.rest.value.mode(1, [0; K]);
                self.rest.guard.leaf(1, 0);
            }
        } else {
            self.rest.append(mode, &guard);
        }
        Ok(())
    }

    /// The mode by one tile.
    const fn cut(&mut self, mode: &Strided<K>, tile: &Layout) -> Result<(), LayoutError> {
        let size = mode.size();
        let rest = match tile.complement(size) {
            Ok(rest) => rest,
            Err(error) => return Err(error.of(OPERATION)),
        };
        let both = attempt!(Layout::tuple(&[*tile, rest]));
        let value = match mode.compose_within(&both) {
            Err(LayoutError::NotComposable { mode, .. } | LayoutError::ModesCarry { mode, .. })
                if mode >= tile.leaves() =>
            {
                return Err(LayoutError::TilesNotComposable {
                    tile: tile.size(),
                    size,
                });
            }
            other => attempt!(other),
        };
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

    const fn node(
        &mut self,
        layout: &Strided<K>,
        node: Node,
        ask: Ask<'_>,
    ) -> Result<(), LayoutError> {
        match ask {
            Ask::Keep => self.keep(&attempt!(layout.extract(node)), true),
            Ask::Compose(tile) => self.cut(&attempt!(layout.extract(node)), &tile),
            Ask::Enter(parts) => {
                attempt!(layout.enter("divide by mode", node, &parts));
                self.tile.open();
                if !self.logical {
                    self.rest.open();
                }
                let mut mode = Some(layout.profile.first(node));
                let mut i = 0;
                while let Some(m) = mode {
                    if i < parts.rank() {
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

/// `both` (times `factor`) with the parentheses and the factors of `value = mode ∘ both`, whose leaves are factors of the
/// leaves of `both` in the same order.
const fn guard_like<const K: usize>(
    value: &Strided<K>,
    both: &Layout,
    factor: i64,
) -> Result<Layout, LayoutError> {
    let mut guard = Strided {
        profile: value.profile,
        shape: value.shape,
        stride: [[0]; crate::MAX_MODES],
        basis: Basis::Integers,
    };
    let mut leaf = 0;
    let mut left = both.shape[0];
    let mut stride = both.step(0);
    let mut i = 0;
    while i < value.leaves() {
        if left == 1 && i > 0 {
            leaf += 1;
            left = both.shape[leaf];
            stride = both.step(leaf);
        }
        guard.stride[i] = [attempt!(fits(stride.checked_mul(factor), OPERATION))];
        left /= value.shape[i];
        stride = stride.saturating_mul(value.shape[i]);
        i += 1;
    }
    guard.checked()
}

impl<const K: usize> Strided<K> {
    const fn divide(
        &self,
        tiler: &Tiler<'_>,
        arrangement: Arrangement,
    ) -> Result<Divided<Self>, LayoutError> {
        let logical = matches!(arrangement, Arrangement::Logical);
        let mut divider = Divider {
            tile: Twin::like(self),
            rest: Twin::like(self),
            extents: TupleBuilder::new(),
            covered: TupleBuilder::new(),
            running: 1,
            logical,
        };
        divider.extents.open();
        divider.covered.open();
        attempt!(divider.node(self, self.root(), attempt!(tiler.ask())));
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

    /// The layout cut into tiles, mode by mode: `((tile0,rest0),(tile1,rest1),…)`; one layout as tiler gives `(tile,rest)`.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let a = Layout::parse("(4,2,3):(2,1,8)").unwrap();
    /// let tile = Layout::parse("4:2").unwrap();
    /// let divided = a.logical_divide(&Tiler::Layout(&tile)).unwrap();
    /// assert_eq!(divided.exact().unwrap().to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    ///
    /// let ragged = Layout::parse("10:1").unwrap().logical_divide(&Tiler::Int(4)).unwrap();
    /// assert_eq!(ragged.rounded_up().to_string(), "(4,3):(1,4)");
    /// assert_eq!(ragged.exact().unwrap_err().code(), "overhang");
    /// assert!(ragged.contains(9) && !ragged.contains(10));
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`complement`](Self::complement) and [`compose`](Self::compose) in each mode; a tiler of higher rank than the
    /// layout.
    pub const fn logical_divide(&self, tiler: &Tiler<'_>) -> Result<Divided<Self>, LayoutError> {
        self.divide(tiler, Arrangement::Logical)
    }

    /// `((tile0,tile1,…),(rest0,rest1,…))`; modes that the tiler does not reach go to the rest, [`Tiler::Keep`] puts a mode
    /// whole into the tile.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, Tiler};
    /// let a = Layout::parse("(8,6):(1,8)").unwrap();
    /// let tile = IntTuple::parse("(4,3)").unwrap();
    /// let divided = a.zipped_divide(&Tiler::Tuple(&tile)).unwrap();
    /// assert_eq!(divided.exact().unwrap().to_string(), "((4,3),(2,2)):((1,8),(4,24))");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_divide`](Self::logical_divide).
    pub const fn zipped_divide(&self, tiler: &Tiler<'_>) -> Result<Divided<Self>, LayoutError> {
        self.divide(tiler, Arrangement::Zipped)
    }

    /// `((tile0,tile1,…),rest0,rest1,…)`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, Tiler};
    /// let a = Layout::parse("(8,6):(1,8)").unwrap();
    /// let tile = IntTuple::parse("(4,3)").unwrap();
    /// let divided = a.tiled_divide(&Tiler::Tuple(&tile)).unwrap();
    /// assert_eq!(divided.exact().unwrap().to_string(), "((4,3),2,2):((1,8),4,24)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_divide`](Self::logical_divide).
    pub const fn tiled_divide(&self, tiler: &Tiler<'_>) -> Result<Divided<Self>, LayoutError> {
        self.divide(tiler, Arrangement::Tiled)
    }

    /// `(tile0,tile1,…,rest0,rest1,…)`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, Tiler};
    /// let a = Layout::parse("(8,6):(1,8)").unwrap();
    /// let tile = IntTuple::parse("(4,3)").unwrap();
    /// let divided = a.flat_divide(&Tiler::Tuple(&tile)).unwrap();
    /// assert_eq!(divided.exact().unwrap().to_string(), "(4,3,2,2):(1,8,4,24)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_divide`](Self::logical_divide).
    pub const fn flat_divide(&self, tiler: &Tiler<'_>) -> Result<Divided<Self>, LayoutError> {
        self.divide(tiler, Arrangement::Flat)
    }
}

/// Declares the divides of a swizzled layout: those of the layout inside, under the same swizzle and offset.
macro_rules! inside {
    ($($name:ident, $result:literal;)*) => {
        impl<const K: usize> Swizzled<K> {
            $(
                #[doc = concat!("[`Layout::", stringify!($name), "`] of the layout inside, under the same swizzle.")]
                ///
                /// ```
                /// use layout_core::{Swizzled, Tiler};
                /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
                #[doc = concat!("let divided = tile.", stringify!($name), "(&Tiler::Modes(&[Tiler::Int(2), Tiler::Int(2)])).unwrap();")]
                #[doc = concat!("assert_eq!(divided.exact().unwrap().to_string(), \"", $result, "\");")]
                /// ```
                ///
                /// # Errors
                ///
                #[doc = concat!("As [`Layout::", stringify!($name), "`].")]
                pub const fn $name(&self, tiler: &Tiler<'_>) -> Result<Divided<Self>, LayoutError> {
                    let divided = attempt!(self.layout.$name(tiler));
                    Ok(divided.with_layout(attempt!(self.with_layout(divided.rounded_up()))))
                }
            )*
        }
    };
}

inside! {
    logical_divide, "Sw<2,0,2> o ((2,2),(2,2)):((4,8),(1,2))";
    zipped_divide, "Sw<2,0,2> o ((2,2),(2,2)):((4,1),(8,2))";
    tiled_divide, "Sw<2,0,2> o ((2,2),2,2):((4,1),8,2)";
    flat_divide, "Sw<2,0,2> o (2,2,2,2):(4,1,8,2)";
}
