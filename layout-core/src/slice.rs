//! Slicing: fix some coordinates, keep the others.
//!
//! A [`Slicer`] is a coordinate with holes, `(_,2)` or `((_,1),_)`. `slice` keeps the modes at the holes and adds the offset
//! of the fixed coordinates; `dice` keeps the fixed modes. A hole stands for a whole mode, however nested.
//!
//! ```
//! use layout_core::{Layout, Slicer};
//! let tile = Layout::parse("(4,(2,3)):(2,(1,8))").unwrap();
//! let column = tile.slice(&Slicer::parse("(_,(1,2))").unwrap()).unwrap();
//! assert_eq!(column.to_string(), "17 o (4):(2)");
//! ```
//!
//! Under a swizzle the offset stays inside: `Sw(17 + x)` is not `17 + Sw(x)`. A slice is therefore exact:
//! `slice(L)(c) = L(c with the holes filled)`. Offsets are of the layout's kind: integers, sums with names, coordinates.

use core::fmt;
use core::str::FromStr;

use crate::error::{LayoutError, attempt};
use crate::int_tuple::{IntTuple, TupleBuilder, write_tuple};
use crate::parse::{ParseError, Scanner};
use crate::profile::{MAX_MODES, Node, Profile};
use crate::strided::{LayoutBuilder, Strided, add_scaled};
use crate::swizzled::Swizzled;

const OFFSET: &str = "the offset of a slice";

/// A coordinate in which some elements are left open, `_`.
///
/// ```
/// use layout_core::Slicer;
/// let slicer = Slicer::parse("(_,2)").unwrap();
/// assert!(slicer.is_open(0) && !slicer.is_open(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slicer {
    pub(crate) tuple: IntTuple,
    /// Bit `i`: leaf `i` is `_`.
    pub(crate) open: u32,
}

impl Slicer {
    /// The coordinate `tuple`, where leaf `i` is `_` if bit `i` of `open` is set (its value is ignored).
    ///
    /// ```
    /// use layout_core::{IntTuple, Slicer};
    /// let tuple = IntTuple::flat(&[0, 2]).unwrap();
    /// assert_eq!(Slicer::new(tuple, 0b01).to_string(), "(_,2)");
    /// ```
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
    /// ```
    /// use layout_core::Slicer;
    /// assert_eq!(Slicer::parse("((_,1),_)").unwrap().to_string(), "((_,1),_)");
    /// ```
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
    ///
    /// ```
    /// use layout_core::Slicer;
    /// assert_eq!(Slicer::parse("(_,2)").unwrap().tuple().to_string(), "(0,2)");
    /// ```
    pub const fn tuple(&self) -> IntTuple {
        self.tuple
    }

    /// Whether leaf `i` is `_`.
    ///
    /// ```
    /// use layout_core::Slicer;
    /// assert!(Slicer::parse("(_,2)").unwrap().is_open(0));
    /// ```
    pub const fn is_open(&self, i: usize) -> bool {
        i < MAX_MODES && self.open >> i & 1 == 1
    }

    /// Whether no leaf is `_`: a plain coordinate.
    ///
    /// ```
    /// use layout_core::Slicer;
    /// assert!(Slicer::parse("(1,2)").unwrap().is_closed());
    /// ```
    pub const fn is_closed(&self) -> bool {
        self.open == 0
    }

    /// A tuple in the slicer needs a mode of the same rank; the rank is checked at node `at`.
    const fn fit(&self, at: Node, profile: &Profile, node: Node) -> Result<(), LayoutError> {
        let found = self.tuple.profile.rank(at);
        let is_leaf = profile.is_leaf(node);
        let rank = profile.rank(node);
        if is_leaf || rank != found {
            let expected = if is_leaf { 0 } else { rank };
            return Err(LayoutError::CoordinateMismatch {
                mode: node.start,
                expected,
                found,
            });
        }
        Ok(())
    }

    const fn is_leaf(&self, at: Node) -> bool {
        self.tuple.profile.is_leaf(at)
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

impl IntTuple {
    /// The elements that the slicer leaves open, side by side; see [`Layout::slice`](crate::Layout::slice).
    ///
    /// ```
    /// use layout_core::{IntTuple, Slicer};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(shape.slice(&Slicer::parse("(_,(1,_))").unwrap()).unwrap().to_string(), "(4,3)");
    /// ```
    ///
    /// # Errors
    ///
    /// A slicer that does not fit, or one without `_` (there is no empty tuple).
    pub const fn slice(&self, slicer: &Slicer) -> Result<Self, LayoutError> {
        pick(slicer, self, true)
    }

    /// The elements that the slicer fixes, side by side.
    ///
    /// ```
    /// use layout_core::{IntTuple, Slicer};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// assert_eq!(shape.dice(&Slicer::parse("(_,(1,_))").unwrap()).unwrap().to_string(), "(2)");
    /// ```
    ///
    /// # Errors
    ///
    /// A slicer that does not fit, or one that fixes nothing (there is no empty tuple).
    pub const fn dice(&self, slicer: &Slicer) -> Result<Self, LayoutError> {
        pick(slicer, self, false)
    }
}

const fn pick(slicer: &Slicer, tuple: &IntTuple, open: bool) -> Result<IntTuple, LayoutError> {
    const NOTHING_OPEN: LayoutError = LayoutError::NothingLeft {
        operation: "slice",
        accepted: "leave an element open with _",
    };
    const NOTHING_FIXED: LayoutError = LayoutError::NothingLeft {
        operation: "dice",
        accepted: "fix an element with a number",
    };
    let nothing = if open { NOTHING_OPEN } else { NOTHING_FIXED };
    let at = slicer.tuple.root();
    if slicer.is_leaf(at) {
        return if slicer.is_open(0) == open {
            Ok(*tuple)
        } else {
            Err(nothing)
        };
    }
    let mut builder = TupleBuilder::new();
    builder.open();
    attempt!(pick_node(
        &mut builder,
        slicer,
        at,
        tuple,
        tuple.root(),
        open
    ));
    builder.close();
    match builder.finish() {
        Err(LayoutError::EmptyTuple) => Err(nothing),
        other => other,
    }
}

const fn pick_node(
    builder: &mut TupleBuilder,
    slicer: &Slicer,
    at: Node,
    tuple: &IntTuple,
    node: Node,
    open: bool,
) -> Result<(), LayoutError> {
    if slicer.is_leaf(at) {
        if slicer.is_open(at.start) == open {
            builder.append(tuple, node);
        }
        return Ok(());
    }
    attempt!(slicer.fit(at, &tuple.profile, node));
    let mut mode = Some(tuple.profile.first(node));
    let mut element = Some(slicer.tuple.profile.first(at));
    while let (Some(m), Some(e)) = (mode, element) {
        attempt!(pick_node(builder, slicer, e, tuple, m, open));
        mode = tuple.profile.next(node, m);
        element = slicer.tuple.profile.next(at, e);
    }
    Ok(())
}

/// Open modes, fixed modes, and the offset of the fixed ones.
struct Parts<const K: usize> {
    kept: LayoutBuilder<K>,
    fixed: LayoutBuilder<K>,
    offset: [i64; K],
}

impl<const K: usize> Parts<K> {
    const fn node(
        &mut self,
        slicer: &Slicer,
        at: Node,
        layout: &Strided<K>,
        node: Node,
    ) -> Result<(), LayoutError> {
        if slicer.is_leaf(at) {
            if slicer.is_open(at.start) {
                self.kept.append(layout, node);
            } else {
                self.fixed.append(layout, node);
                let fixed = slicer.tuple.values[at.start];
                let part = attempt!(layout.checked_node_index(node, fixed));
                self.offset = attempt!(add_scaled(&self.offset, 1, &part, OFFSET));
            }
            return Ok(());
        }
        attempt!(slicer.fit(at, &layout.profile, node));
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

impl<const K: usize> Strided<K> {
    const fn split(&self, slicer: &Slicer) -> Result<(Self, Self, [i64; K]), LayoutError> {
        let unit = attempt!(self.with_modes(&crate::modes::Modes::EMPTY));
        let at = slicer.tuple.root();
        let zero = [0; K];
        if slicer.is_leaf(at) {
            return if slicer.is_open(0) {
                Ok((*self, unit, zero))
            } else {
                let fixed = slicer.tuple.values[0];
                Ok((
                    unit,
                    *self,
                    attempt!(self.checked_node_index(self.root(), fixed)),
                ))
            };
        }
        let mut parts = Parts {
            kept: LayoutBuilder::like(self),
            fixed: LayoutBuilder::like(self),
            offset: zero,
        };
        parts.kept.open();
        parts.fixed.open();
        attempt!(parts.node(slicer, at, self, self.root()));
        parts.kept.close();
        parts.fixed.close();
        let kept = if slicer.is_closed() {
            unit
        } else {
            attempt!(parts.kept.finish())
        };
        let all_open = slicer.open.count_ones() as usize == slicer.tuple.leaves();
        let fixed = if all_open {
            unit
        } else {
            attempt!(parts.fixed.finish())
        };
        Ok((kept, fixed, parts.offset))
    }

    /// The modes that the slicer leaves open, moved by the offset of the coordinates that it fixes. Open modes stand side
    /// by side in one tuple (inner parentheses of the slicer vanish, CuTe's rule); `_` alone gives the layout itself, and a
    /// slicer without `_` gives `1:0`.
    ///
    /// ```
    /// use layout_core::{Affine, CoordLayout, Layout, Slicer};
    /// let third = Slicer::parse("(3,_)").unwrap();
    /// let row = |text: &str| Layout::parse(text).unwrap().slice(&third).unwrap();
    /// assert_eq!(row("(8,64):(64,1)").to_string(), "192 o (64):(1)");
    /// let named = Affine::parse("(8,64):(ld,1)").unwrap().slice(&third).unwrap();
    /// assert_eq!(named.to_string(), "3*ld o (64):(1)");
    /// let coordinates = CoordLayout::parse("(8,64):(1@0,1@1)").unwrap().slice(&third).unwrap();
    /// assert_eq!(coordinates.to_string(), "(3,0) o (64):(1@1)");
    /// ```
    ///
    /// # Errors
    ///
    /// A slicer that does not fit the shape; overflow.
    pub const fn slice(&self, slicer: &Slicer) -> Result<Swizzled<K>, LayoutError> {
        Swizzled::plain(*self).slice(slicer)
    }

    /// The modes that the slicer fixes, as one tuple: those that [`slice`](Self::slice) leaves out. `1:0` if it fixes none.
    ///
    /// ```
    /// use layout_core::{Layout, Slicer};
    /// let tile = Layout::parse("(4,(2,3)):(2,(1,8))").unwrap();
    /// assert_eq!(tile.dice(&Slicer::parse("(_,(1,2))").unwrap()).unwrap().to_string(), "(2,3):(1,8)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice).
    pub const fn dice(&self, slicer: &Slicer) -> Result<Self, LayoutError> {
        let (_, fixed, _) = attempt!(self.split(slicer));
        Ok(fixed)
    }
}

impl<const K: usize> Swizzled<K> {
    /// The slice, exact under the swizzle: the fixed coordinates' offset goes inside it. See [`Layout::slice`](crate::Layout::slice).
    ///
    /// ```
    /// use layout_core::{Slicer, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// let row = tile.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.to_string(), "Sw<2,0,2> o 12 o (4):(1)");
    /// assert_eq!(row.index(1), tile.at(&[3, 1]));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::slice`](crate::Layout::slice).
    pub const fn slice(&self, slicer: &Slicer) -> Result<Self, LayoutError> {
        let (kept, _, offset) = attempt!(self.layout.split(slicer));
        self.moved(&offset, kept)
    }

    /// The modes that the slicer fixes, under the same swizzle and offset; see [`Layout::dice`](crate::Layout::dice).
    ///
    /// ```
    /// use layout_core::{Slicer, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// assert_eq!(tile.dice(&Slicer::parse("(3,_)").unwrap()).unwrap().to_string(), "Sw<2,0,2> o (4):(4)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::slice`](crate::Layout::slice).
    pub const fn dice(&self, slicer: &Slicer) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.dice(slicer)))
    }
}
