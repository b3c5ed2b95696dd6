//! Slicing: fix some coordinates, keep the others.
//!
//! A [`Slicer`] is a coordinate with holes, `(_,2)` or `((_,1),_)`. [`slice`](slice()) keeps what the holes stand for and says at
//! which offset the rest is fixed; [`dice`] keeps the other half. A hole stands for a whole mode, however nested.
//!
//! ```
//! use layout_core::{Layout, Slicer, slice};
//! let tile = Layout::parse("(4,(2,3)):(2,(1,8))").unwrap();
//! let (column, offset) = slice(&Slicer::parse("(_,(1,2))").unwrap(), &tile).unwrap();
//! assert_eq!((column.to_string().as_str(), offset), ("(4):(2)", 17));
//! ```
//!
//! Under a swizzle the offset must stay inside: `Sw(17 + x)` is not `17 + Sw(x)`. [`slice_swizzled`] keeps it there, so that
//! a slice is exact: `slice(L)(c) = L(c with the holes filled)`.

use core::fmt;
use core::str::FromStr;

use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, TupleBuilder, write_tuple};
use crate::layout::{Layout, LayoutBuilder};
use crate::parse::{ParseError, Scanner};
use crate::profile::{MAX_MODES, Node};
use crate::swizzled::Swizzled;

/// A coordinate in which some elements are left open, `_`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slicer {
    pub(crate) tuple: IntTuple,
    /// Bit `i`: leaf `i` is `_`.
    pub(crate) open: u32,
}

impl Slicer {
    /// The coordinate `tuple`, leaf `i` of which is `_` if bit `i` of `open` is set (the value there is not looked at).
    pub const fn new(tuple: IntTuple, open: u32) -> Self {
        let mut tuple = tuple;
        let mut mask = 0;
        let mut i = 0;
        while i < tuple.leaves() {
            if open >> i & 1 == 1 {
                tuple.values[i] = 0;
                mask |= 1 << i;
            }
            i += 1;
        }
        Self { tuple, open: mask }
    }

    /// Reads `(_,2)`, `((_,1),_)`, `_`.
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let (tuple, open) = match scanner.tuple_with_holes() {
            Ok(parsed) => parsed,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(Self::new(tuple, open)),
            Err(error) => Err(error),
        }
    }

    /// The coordinate, 0 where it is open.
    pub const fn tuple(&self) -> IntTuple {
        self.tuple
    }

    /// Whether leaf `i` is `_`.
    pub const fn is_open(&self, i: usize) -> bool {
        i < MAX_MODES && self.open >> i & 1 == 1
    }

    /// Whether no leaf is `_`: a plain coordinate.
    pub const fn is_closed(&self) -> bool {
        self.open == 0
    }
}

impl fmt::Display for Slicer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.tuple.profile, |f, i| {
            if self.is_open(i) {
                f.write_str("_")
            } else {
                write!(f, "{}", self.tuple.values[i])
            }
        })
    }
}

impl fmt::Debug for Slicer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Slicer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// The modes of `layout` that the slicer leaves open, and the offset of the coordinates that it fixes. Open modes stand side
/// by side in one tuple (inner parentheses of the slicer vanish, CuTe's rule); `_` alone gives the layout itself, and a
/// slicer without `_` gives `1:0`.
///
/// # Errors
///
/// A slicer that does not fit the shape; overflow.
pub const fn slice(slicer: &Slicer, layout: &Layout) -> Result<(Layout, i64), LayoutError> {
    let (kept, _, offset) = attempt!(split(slicer, layout));
    Ok((kept, offset))
}

/// The modes of `layout` that the slicer fixes, as one tuple: what [`slice`](slice()) leaves out. `1:0` if there are none.
///
/// # Errors
///
/// As [`slice`](slice()).
pub const fn dice(slicer: &Slicer, layout: &Layout) -> Result<Layout, LayoutError> {
    let (_, fixed, _) = attempt!(split(slicer, layout));
    Ok(fixed)
}

/// The elements of a tuple that the slicer leaves open, side by side; see [`slice`](slice()).
///
/// # Errors
///
/// A slicer that does not fit, or one without `_` (there is no empty tuple).
pub const fn slice_tuple(slicer: &Slicer, tuple: &IntTuple) -> Result<IntTuple, LayoutError> {
    select(slicer, tuple, true)
}

/// The elements of a tuple that the slicer fixes, side by side.
///
/// # Errors
///
/// A slicer that does not fit, or one that fixes nothing (there is no empty tuple).
pub const fn dice_tuple(slicer: &Slicer, tuple: &IntTuple) -> Result<IntTuple, LayoutError> {
    select(slicer, tuple, false)
}

const fn select(slicer: &Slicer, tuple: &IntTuple, open: bool) -> Result<IntTuple, LayoutError> {
    let at = slicer.tuple.root();
    if slicer.tuple.profile.is_leaf(at) {
        return if slicer.is_open(0) == open {
            Ok(*tuple)
        } else {
            Err(LayoutError::EmptyTuple)
        };
    }
    let mut builder = TupleBuilder::new();
    builder.open();
    attempt!(select_node(
        &mut builder,
        slicer,
        at,
        tuple,
        tuple.root(),
        open
    ));
    builder.close();
    builder.finish()
}

const fn select_node(
    builder: &mut TupleBuilder,
    slicer: &Slicer,
    at: Node,
    tuple: &IntTuple,
    node: Node,
    open: bool,
) -> Result<(), LayoutError> {
    if slicer.tuple.profile.is_leaf(at) {
        if slicer.is_open(at.start) == open {
            builder.append(tuple, node);
        }
        return Ok(());
    }
    attempt!(fit(
        slicer,
        at,
        node.start,
        tuple.profile.is_leaf(node),
        tuple.profile.rank(node)
    ));
    let mut mode = Some(tuple.profile.first(node));
    let mut element = Some(slicer.tuple.profile.first(at));
    while let (Some(m), Some(e)) = (mode, element) {
        attempt!(select_node(builder, slicer, e, tuple, m, open));
        mode = tuple.profile.next(node, m);
        element = slicer.tuple.profile.next(at, e);
    }
    Ok(())
}

/// A tuple in the slicer needs a mode of the same rank.
const fn fit(
    slicer: &Slicer,
    at: Node,
    mode: usize,
    is_leaf: bool,
    rank: usize,
) -> Result<(), LayoutError> {
    let found = slicer.tuple.profile.rank(at);
    if is_leaf || rank != found {
        let expected = if is_leaf { 1 } else { rank };
        return Err(LayoutError::CoordinateMismatch {
            mode,
            expected,
            found,
        });
    }
    Ok(())
}

/// Open modes, fixed modes, and the offset of the fixed ones.
const fn split(slicer: &Slicer, layout: &Layout) -> Result<(Layout, Layout, i64), LayoutError> {
    let at = slicer.tuple.root();
    if slicer.tuple.profile.is_leaf(at) {
        return if slicer.is_open(0) {
            Ok((*layout, Layout::UNIT, 0))
        } else {
            Ok((
                Layout::UNIT,
                *layout,
                attempt!(layout.checked_index(slicer.tuple.values[0])),
            ))
        };
    }
    let mut parts = Parts {
        kept: LayoutBuilder::new(),
        fixed: LayoutBuilder::new(),
        offset: 0,
    };
    parts.kept.open();
    parts.fixed.open();
    attempt!(parts.node(slicer, at, layout, layout.root()));
    parts.kept.close();
    parts.fixed.close();
    let kept = if slicer.is_closed() {
        Layout::UNIT
    } else {
        attempt!(parts.kept.finish())
    };
    let all_open = slicer.open.count_ones() as usize == slicer.tuple.leaves();
    let fixed = if all_open {
        Layout::UNIT
    } else {
        attempt!(parts.fixed.finish())
    };
    Ok((kept, fixed, parts.offset))
}

struct Parts {
    kept: LayoutBuilder,
    fixed: LayoutBuilder,
    offset: i64,
}

impl Parts {
    const fn node(
        &mut self,
        slicer: &Slicer,
        at: Node,
        layout: &Layout,
        node: Node,
    ) -> Result<(), LayoutError> {
        if slicer.tuple.profile.is_leaf(at) {
            if slicer.is_open(at.start) {
                self.kept.append(layout, node);
            } else {
                self.fixed.append(layout, node);
                let mode = attempt!(layout.extract(node));
                let part = attempt!(mode.checked_index(slicer.tuple.values[at.start]));
                self.offset =
                    attempt!(fits(self.offset.checked_add(part), "the offset of a slice"));
            }
            return Ok(());
        }
        attempt!(fit(
            slicer,
            at,
            node.start,
            layout.profile.is_leaf(node),
            layout.profile.rank(node)
        ));
        let mut mode = Some(layout.profile.first(node));
        let mut element = Some(slicer.tuple.profile.first(at));
        while let (Some(m), Some(e)) = (mode, element) {
            attempt!(self.node(slicer, e, layout, m));
            mode = layout.profile.next(node, m);
            element = slicer.tuple.profile.next(at, e);
        }
        Ok(())
    }
}

/// The slice of a composed layout: the fixed coordinates' offset goes inside the swizzle, so the slice is exact.
///
/// ```
/// use layout_core::{Slicer, Swizzled, slice_swizzled};
/// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
/// let row = slice_swizzled(&Slicer::parse("(3,_)").unwrap(), &tile).unwrap();
/// assert_eq!(row.to_string(), "Sw<2,0,2> o 12 o (4):(1)");
/// assert_eq!(row.index(1), tile.at(&[3, 1]));
/// ```
///
/// # Errors
///
/// As [`slice`](slice()).
pub const fn slice_swizzled(slicer: &Slicer, layout: &Swizzled) -> Result<Swizzled, LayoutError> {
    let (kept, offset) = attempt!(slice(slicer, &layout.layout()));
    let offset = attempt!(fits(
        layout.offset().checked_add(offset),
        "the offset of a slice"
    ));
    Swizzled::new(layout.swizzle(), offset, kept)
}
