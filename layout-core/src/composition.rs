//! Composition: `R(i) = A(B(i))` for every `i`, exactly.
//!
//! `A.compose(&B)` has the parentheses of `B`; a leaf of `B` that needs several factors becomes a tuple. Where no layout
//! is the composition, it is refused, with the mode that carries; where one exists, it is found (the rule, and why, is in
//! the essay at the head of `modes.rs`):
//!
//! ```
//! use layout_core::Layout;
//! let a = Layout::parse("(4,6):(1,10)").unwrap();
//! let by = |b: &str| a.compose(&Layout::parse(b).unwrap());
//! assert_eq!(by("8:1").unwrap().to_string(), "(4,2):(1,10)");
//! assert_eq!(by("(2,6):(2,4)").unwrap().to_string(), "(2,6):(2,10)");
//! // A(6) = 12 is not A(3) + A(3) = 6 and 4:3 has no other factors than 2·2; CuTe C++ answers (2,2):(3,10) here.
//! assert_eq!(by("4:3").unwrap_err().code(), "not_composable");
//! ```
//!
//! Offsets of `B` beyond `A`'s size extend the last mode of `A`, also if its extent is 1; `compose_strict` refuses them instead.
//!
//! A [`Tiler`] composes mode by mode: `<4:1, 8:2>` takes `4:1` of the first mode and `8:2` of the second. The tuple of
//! integers `(4,8)` as a tiler means `<4:1, 8:1>`, which is not the layout `(4,8):(1,4)`. Modes beyond the tiler, or marked
//! [`Tiler::Keep`], stay as they are.
//!
//! Operands of other kinds (a swizzle, an offset, a swizzled layout on the right, several steps) compose as
//! [`Function`](crate::Function)s, whose `compose` takes them all.

use crate::error::{LayoutError, at_least_one, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::modes::Composite;
use crate::profile::Node;
use crate::strided::{LayoutBuilder, Strided};
use crate::swizzled::Swizzled;

/// What to take of a layout, as a whole or mode by mode.
///
/// ```
/// use layout_core::{Layout, Tiler};
/// let matrix = Layout::parse("(8,6):(1,8)").unwrap();
/// // Every second row, all columns.
/// let rows = Layout::parse("4:2").unwrap();
/// let part = matrix.compose_by_mode(&Tiler::Modes(&[Tiler::Layout(&rows), Tiler::Keep])).unwrap();
/// assert_eq!(part.to_string(), "(4,6):(2,8)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiler<'a> {
    /// `_`: the mode as it is.
    Keep,
    /// The first `n` elements of the mode, `n:1`.
    Int(i64),
    /// The mode composed with this layout.
    Layout(&'a Layout),
    /// An integer for each mode, or nested tuples of them.
    Tuple(&'a IntTuple),
    /// A tiler for each mode; modes beyond the last stay as they are.
    Modes(&'a [Tiler<'a>]),
}

impl<'a> From<&'a Layout> for Tiler<'a> {
    fn from(layout: &'a Layout) -> Self {
        Self::Layout(layout)
    }
}

impl<'a> From<&'a IntTuple> for Tiler<'a> {
    fn from(tuple: &'a IntTuple) -> Self {
        Self::Tuple(tuple)
    }
}

impl From<i64> for Tiler<'_> {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl<'a> From<&'a [Tiler<'a>]> for Tiler<'a> {
    fn from(modes: &'a [Tiler<'a>]) -> Self {
        Self::Modes(modes)
    }
}

/// One step into a tiler, seen at some mode: what it asks for there.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack only, and there is no heap"
)]
pub(crate) enum Ask<'a> {
    Keep,
    Compose(Layout),
    Enter(Parts<'a>),
}

/// The elements of a tiler for several modes.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    Modes(&'a [Tiler<'a>]),
    Tuple(&'a IntTuple, Node),
}

impl<'a> Parts<'a> {
    pub(crate) const fn rank(&self) -> usize {
        match self {
            Self::Modes(modes) => modes.len(),
            Self::Tuple(tuple, node) => tuple.profile.rank(*node),
        }
    }

    /// The tiler of element `i`, which must exist.
    pub(crate) const fn ask(&self, i: usize) -> Result<Ask<'a>, LayoutError> {
        match self {
            Self::Modes(modes) => modes[i].ask(),
            Self::Tuple(tuple, node) => match tuple.profile.child(*node, i) {
                Some(child) => ask_tuple(tuple, child),
                None => Ok(Ask::Keep),
            },
        }
    }
}

const fn ask_tuple(tuple: &IntTuple, node: Node) -> Result<Ask<'_>, LayoutError> {
    if tuple.profile.is_leaf(node) {
        first_elements(tuple.values[node.start])
    } else {
        Ok(Ask::Enter(Parts::Tuple(tuple, node)))
    }
}

/// A tile of the first `n` elements.
const fn first_elements<'a>(n: i64) -> Result<Ask<'a>, LayoutError> {
    attempt!(at_least_one("a tiler", "the size of a tile", n));
    Ok(Ask::Compose(attempt!(Layout::mode(n, 1))))
}

impl<'a> Tiler<'a> {
    pub(crate) const fn ask(&self) -> Result<Ask<'a>, LayoutError> {
        match self {
            Self::Keep => Ok(Ask::Keep),
            Self::Int(n) => first_elements(*n),
            Self::Layout(layout) => Ok(Ask::Compose(**layout)),
            Self::Tuple(tuple) => ask_tuple(tuple, tuple.root()),
            Self::Modes(modes) => Ok(Ask::Enter(Parts::Modes(modes))),
        }
    }
}

impl<const K: usize> Strided<K> {
    /// The layout `R` with `R(i) = A(B(i))` for all `i` in `0..size(B)`, nested as `B`; `A` is `self`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert_eq!(l("(4,8):(8,1)").compose(&l("(2,4):(2,8)")).unwrap().to_string(), "(2,4):(16,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NotComposable`] or [`LayoutError::ModesCarry`] where no layout does that (coincidences of the strides
    /// are found up to [`SEARCH_LIMIT`](crate::SEARCH_LIMIT) elements); too many modes; overflow.
    pub const fn compose(&self, b: &Layout) -> Result<Self, LayoutError> {
        let Composite { profile, modes } =
            attempt!(self.modes().coalesced_unbounded().compose(b, i64::MAX));
        self.with_profile(&modes, profile)
    }

    /// [`compose`](Self::compose) where only values of `B` below the size of `self` matter: the composition if there is one,
    /// otherwise a layout that agrees with it at those values.
    pub(crate) const fn compose_within(&self, b: &Layout) -> Result<Self, LayoutError> {
        let unbounded = self.modes().coalesced_unbounded();
        let inside = self.modes().coalesced();
        // They differ where a trailing extent of 1 says how `self` goes on beyond its size.
        if inside.len > 0
            && unbounded.len > inside.len
            && let Ok(Composite { profile, modes }) = unbounded.compose(b, i64::MAX)
        {
            return self.with_profile(&modes, profile);
        }
        let modes = if inside.len > 0 { inside } else { unbounded };
        let Composite { profile, modes } = attempt!(modes.compose(b, self.size()));
        self.with_profile(&modes, profile)
    }

    /// [`compose`](Self::compose), refusing offsets of `B` outside `0..size(A)`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert!(l("(4,2):(1,10)").compose(&l("12:1")).is_ok());
    /// assert_eq!(l("(4,2):(1,10)").compose_strict(&l("12:1")).unwrap_err().code(), "out_of_domain");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::OutOfDomain`] and the errors of [`compose`](Self::compose).
    pub const fn compose_strict(&self, b: &Layout) -> Result<Self, LayoutError> {
        let (min, max) = b.offset_range();
        let size = self.size();
        if min < 0 || max >= size {
            return Err(LayoutError::OutOfDomain { min, max, size });
        }
        self.compose(b)
    }

    /// Composition mode by mode with a tiler.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, Tiler};
    /// let a = Layout::parse("(8,(4,6),5):(1,(8,32),192)").unwrap();
    /// let tile = IntTuple::parse("(4,8)").unwrap();
    /// let r = a.compose_by_mode(&Tiler::Tuple(&tile)).unwrap();
    /// assert_eq!(r.to_string(), "(4,8,5):(1,8,192)");
    /// ```
    ///
    /// # Errors
    ///
    /// A tiler of higher rank than the layout, and the errors of [`compose`](Self::compose) in each mode.
    pub const fn compose_by_mode(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::like(self);
        attempt!(self.compose_node(&mut builder, self.root(), attempt!(tiler.ask())));
        builder.finish()
    }

    const fn compose_node(
        &self,
        builder: &mut LayoutBuilder<K>,
        node: Node,
        ask: Ask<'_>,
    ) -> Result<(), LayoutError> {
        match ask {
            Ask::Keep => builder.append(self, node),
            Ask::Compose(b) => {
                let part = attempt!(attempt!(self.extract(node)).compose(&b));
                builder.append(&part, part.root());
            }
            Ask::Enter(parts) => {
                attempt!(self.enter("composition by mode", node, &parts));
                builder.open();
                let mut mode = Some(self.profile.first(node));
                let mut i = 0;
                while let Some(m) = mode {
                    let ask = if i < parts.rank() {
                        attempt!(parts.ask(i))
                    } else {
                        Ask::Keep
                    };
                    attempt!(self.compose_node(builder, m, ask));
                    mode = self.profile.next(node, m);
                    i += 1;
                }
                builder.close();
            }
        }
        Ok(())
    }

    /// Refuses a tiler with more elements than the node has modes.
    pub(crate) const fn enter(
        &self,
        operation: &'static str,
        node: Node,
        parts: &Parts<'_>,
    ) -> Result<(), LayoutError> {
        let (modes, tiles) = (self.profile.rank(node), parts.rank());
        if tiles == 0 {
            return Err(LayoutError::EmptyTuple);
        }
        if tiles > modes {
            return Err(LayoutError::TilerRank {
                operation,
                modes,
                tiles,
            });
        }
        Ok(())
    }
}

impl<const K: usize> Swizzled<K> {
    /// `(Sw o offset o L) ∘ B`: composition acts on the layout inside.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// let column = tile.compose(&Layout::parse("4:1").unwrap()).unwrap();
    /// assert_eq!(column.to_string(), "Sw<2,0,2> o 4:4");
    /// assert_eq!([0, 1, 2, 3].map(|i| column.index(i)), [0, 5, 10, 15]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::compose`].
    pub const fn compose(&self, b: &Layout) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.compose(b)))
    }

    /// Composition mode by mode; see [`Layout::compose_by_mode`].
    ///
    /// ```
    /// use layout_core::{Swizzled, Tiler};
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// let part = tile.compose_by_mode(&Tiler::Modes(&[Tiler::Int(2), Tiler::Keep])).unwrap();
    /// assert_eq!(part.to_string(), "Sw<2,0,2> o (2,4):(4,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::compose_by_mode`].
    pub const fn compose_by_mode(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.compose_by_mode(tiler)))
    }
}
