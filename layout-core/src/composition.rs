//! Composition: `R(i) = A(B(i))` for every `i`, exactly.
//!
//! `composition(A, B)` has the parentheses of `B`; a leaf of `B` that needs several factors becomes a tuple. Where no layout
//! is the composition, it is refused, with the mode that carries; where one exists, it is found (the rule, and why, is in
//! the essay at the head of `modes.rs`):
//!
//! ```
//! use layout_core::{Layout, composition};
//! let a = Layout::parse("(4,6):(1,10)").unwrap();
//! let by = |b: &str| composition(&a, &Layout::parse(b).unwrap());
//! assert_eq!(by("8:1").unwrap().to_string(), "(4,2):(1,10)");
//! assert_eq!(by("(2,6):(2,4)").unwrap().to_string(), "(2,6):(2,10)");
//! // A(6) = 12 is not A(3) + A(3) = 6 and 4:3 has no other factors than 2·2; CuTe C++ answers (2,2):(3,10) here.
//! assert_eq!(by("4:3").unwrap_err().code(), "not_composable");
//! ```
//!
//! Offsets of `B` beyond `A`'s size extend the last mode of `A`; [`composition_strict`] refuses them instead.
//!
//! A [`Tiler`] composes mode by mode: `<4:1, 8:2>` takes `4:1` of the first mode and `8:2` of the second. The tuple of
//! integers `(4,8)` as a tiler means `<4:1, 8:1>`, which is not the layout `(4,8):(1,4)`. Modes beyond the tiler, or marked
//! [`Tiler::Keep`], stay as they are.

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::{Layout, LayoutBuilder};
use crate::modes::Modes;
use crate::profile::Node;

/// What to take of a layout, as a whole or mode by mode.
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

    /// What element `i`, which must exist, asks for.
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
        Ok(Ask::Compose(attempt!(Layout::mode(
            tuple.values[node.start],
            1
        ))))
    } else {
        Ok(Ask::Enter(Parts::Tuple(tuple, node)))
    }
}

impl<'a> Tiler<'a> {
    pub(crate) const fn ask(&self) -> Result<Ask<'a>, LayoutError> {
        match self {
            Self::Keep => Ok(Ask::Keep),
            Self::Int(n) => Ok(Ask::Compose(attempt!(Layout::mode(*n, 1)))),
            Self::Layout(layout) => Ok(Ask::Compose(**layout)),
            Self::Tuple(tuple) => ask_tuple(tuple, tuple.root()),
            Self::Modes(modes) => Ok(Ask::Enter(Parts::Modes(modes))),
        }
    }
}

/// The layout `R` with `R(i) = A(B(i))` for all `i` in `0..size(B)`, nested as `B`.
///
/// # Errors
///
/// [`LayoutError::NotComposable`] or [`LayoutError::ModesCarry`] where no layout does that (coincidences of the strides are
/// found up to 2²⁰ elements); too many modes; overflow.
pub const fn composition(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let modes = Modes::<1>::of(a).coalesced_unbounded();
    let composite = attempt!(modes.compose(b));
    composite.modes.with_profile(composite.profile)
}

/// [`composition`], refusing offsets of `B` outside `0..size(A)`.
///
/// # Errors
///
/// [`LayoutError::OutOfDomain`] and the errors of [`composition`].
pub const fn composition_strict(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let (min, max) = b.offset_range();
    let size = a.size();
    if min < 0 || max >= size {
        return Err(LayoutError::OutOfDomain { min, max, size });
    }
    composition(a, b)
}

/// Composition mode by mode with a tiler.
///
/// ```
/// use layout_core::{IntTuple, Layout, Tiler, composition_by_mode};
/// let a = Layout::parse("(8,(4,6),5):(1,(8,32),192)").unwrap();
/// let tile = IntTuple::parse("(4,8)").unwrap();
/// let r = composition_by_mode(&a, &Tiler::Tuple(&tile)).unwrap();
/// assert_eq!(r.to_string(), "(4,8,5):(1,8,192)");
/// ```
///
/// # Errors
///
/// A tiler of higher rank than the layout, and the errors of [`composition`] in each mode.
pub const fn composition_by_mode(a: &Layout, tiler: &Tiler<'_>) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    attempt!(compose_node(
        &mut builder,
        a,
        a.root(),
        attempt!(tiler.ask())
    ));
    builder.finish()
}

const fn compose_node(
    builder: &mut LayoutBuilder,
    a: &Layout,
    node: Node,
    ask: Ask<'_>,
) -> Result<(), LayoutError> {
    match ask {
        Ask::Keep => builder.append(a, node),
        Ask::Compose(b) => {
            let part = attempt!(composition(&attempt!(a.extract(node)), &b));
            builder.append(&part, part.root());
        }
        Ask::Enter(parts) => {
            let (left, right) = (a.profile.rank(node), parts.rank());
            if right > left || right == 0 {
                return Err(LayoutError::RankMismatch {
                    operation: "composition by mode",
                    left,
                    right,
                });
            }
            builder.open();
            let mut mode = Some(a.profile.first(node));
            let mut i = 0;
            while let Some(m) = mode {
                let ask = if i < right {
                    attempt!(parts.ask(i))
                } else {
                    Ask::Keep
                };
                attempt!(compose_node(builder, a, m, ask));
                mode = a.profile.next(node, m);
                i += 1;
            }
            builder.close();
        }
    }
    Ok(())
}
