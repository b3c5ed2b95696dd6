//! The judge's own model of layouts, as naive as it can be.
//!
//! A shape is a tree of integers. A layout is a shape and a stride of the same tree. It is evaluated by taking the linear
//! coordinate apart into digits, first mode fastest; the last mode is unbounded. A function is a chain of steps, outermost
//! first: layouts, offsets and swizzles. Named strides and basis strides are plain integers here: a name is bound to a
//! value, and `1@k` is a large number of its own, so that distinct coordinates are distinct integers.

use std::fmt;

/// A tree of integers: a shape, a stride, a coordinate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Int(i64),
    Tuple(Vec<Tree>),
}

use Tree::{Int, Tuple};

impl Tree {
    pub(crate) fn leaves(&self) -> Vec<i64> {
        match self {
            Int(n) => vec![*n],
            Tuple(parts) => parts.iter().flat_map(Tree::leaves).collect(),
        }
    }

    pub(crate) fn size(&self) -> i64 {
        self.leaves().iter().product()
    }

    /// The top-level modes; an integer is one mode.
    pub(crate) fn modes(&self) -> Vec<Tree> {
        match self {
            Int(_) => vec![self.clone()],
            Tuple(parts) => parts.clone(),
        }
    }

    /// The same tree with other leaves, in order.
    pub(crate) fn with_leaves(&self, leaves: &mut impl Iterator<Item = i64>) -> Tree {
        match self {
            Int(_) => Int(leaves.next().expect("one value a leaf")),
            Tuple(parts) => Tuple(parts.iter().map(|part| part.with_leaves(leaves)).collect()),
        }
    }

    pub(crate) fn congruent(&self, other: &Tree) -> bool {
        match (self, other) {
            (Int(_), Int(_)) => true,
            (Tuple(a), Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.congruent(b))
            }
            _ => false,
        }
    }

    /// Whether each coordinate of `self` is one of `other`: leaves may become tuples of the same size.
    pub(crate) fn compatible(&self, other: &Tree) -> bool {
        match (self, other) {
            (Int(n), _) => *n == other.size(),
            (Tuple(a), Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(b))
            }
            (Tuple(_), Int(_)) => false,
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int(n) => write!(f, "{n}"),
            Tuple(parts) => {
                f.write_str("(")?;
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{part}")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// `shape:stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: Tree,
    pub(crate) stride: Tree,
}

impl Layout {
    pub(crate) fn new(shape: Tree, stride: Tree) -> Layout {
        assert!(shape.congruent(&stride), "{shape}:{stride}");
        Layout { shape, stride }
    }

    /// A layout of these `(extent, stride)` leaves; one leaf is no tuple.
    pub(crate) fn of(leaves: &[(i64, i64)]) -> Layout {
        match leaves {
            [] => Layout::new(Int(1), Int(0)),
            [(s, d)] => Layout::new(Int(*s), Int(*d)),
            _ => Layout::new(
                Tuple(leaves.iter().map(|leaf| Int(leaf.0)).collect()),
                Tuple(leaves.iter().map(|leaf| Int(leaf.1)).collect()),
            ),
        }
    }

    /// Compact, first mode fastest.
    pub(crate) fn compact(shape: &Tree) -> Layout {
        let mut next = 1;
        let strides: Vec<i64> = shape
            .leaves()
            .iter()
            .map(|n| {
                let d = next;
                next *= n;
                d
            })
            .collect();
        Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter()))
    }

    pub(crate) fn leaves(&self) -> Vec<(i64, i64)> {
        self.shape
            .leaves()
            .into_iter()
            .zip(self.stride.leaves())
            .collect()
    }

    pub(crate) fn size(&self) -> i64 {
        self.shape.size()
    }

    pub(crate) fn modes(&self) -> Vec<Layout> {
        self.shape
            .modes()
            .into_iter()
            .zip(self.stride.modes())
            .map(|(shape, stride)| Layout { shape, stride })
            .collect()
    }

    /// The layout with these modes.
    pub(crate) fn join(modes: &[Layout]) -> Layout {
        Layout::new(
            Tuple(modes.iter().map(|mode| mode.shape.clone()).collect()),
            Tuple(modes.iter().map(|mode| mode.stride.clone()).collect()),
        )
    }

    /// The value at a linear coordinate. The last mode is unbounded, below too.
    pub(crate) fn at(&self, i: i64) -> i64 {
        at(&self.leaves(), i)
    }

    pub(crate) fn values(&self) -> Vec<i64> {
        let leaves = self.leaves();
        (0..self.size()).map(|i| at(&leaves, i)).collect()
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape, self.stride)
    }
}

/// Evaluates leaves at a linear coordinate.
pub(crate) fn at(leaves: &[(i64, i64)], i: i64) -> i64 {
    let (mut rest, mut sum) = (i, 0);
    for (k, (s, d)) in leaves.iter().enumerate() {
        if k + 1 == leaves.len() {
            sum += rest * d;
        } else {
            sum += rest.rem_euclid(*s) * d;
            rest = rest.div_euclid(*s);
        }
    }
    sum
}

/// `Sw<b,m,s>`: the `b` bits from bit `m` on take the xor of those `s` bits further up, or down for negative `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Swizzle {
    pub(crate) b: u32,
    pub(crate) m: u32,
    pub(crate) s: i32,
}

impl Swizzle {
    pub(crate) fn apply(self, x: i64) -> i64 {
        let mask = ((1_i64 << self.b) - 1) << self.m;
        if self.s >= 0 {
            x ^ ((x >> self.s) & mask)
        } else {
            // The lower bits move up: `m` names the lower field, as in CuTe.
            x ^ ((x & mask) << -self.s)
        }
    }

    /// The number that `apply` takes to `y`. A swizzle is a bijection of finite order: repeat it until it comes back.
    pub(crate) fn invert(self, y: i64) -> i64 {
        let mut x = y;
        loop {
            let next = self.apply(x);
            if next == y {
                return x;
            }
            x = next;
        }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.b, self.m, self.s)
    }
}

/// One step of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Layout(Layout),
    Add(i64),
    Swizzle(Swizzle),
    Unswizzle(Swizzle),
}

/// Steps, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function(pub(crate) Vec<Step>);

impl Function {
    pub(crate) fn at(&self, i: i64) -> i64 {
        self.0.iter().rev().fold(i, |x, step| match step {
            Step::Layout(layout) => layout.at(x),
            Step::Add(n) => x + n,
            Step::Swizzle(swizzle) => swizzle.apply(x),
            Step::Unswizzle(swizzle) => swizzle.invert(x),
        })
    }

    /// The innermost layout: its shape is the domain.
    pub(crate) fn domain(&self) -> Option<&Layout> {
        match self.0.last() {
            Some(Step::Layout(layout)) => Some(layout),
            _ => None,
        }
    }

    pub(crate) fn size(&self) -> i64 {
        self.domain().map_or(0, Layout::size)
    }

    pub(crate) fn values(&self) -> Vec<i64> {
        (0..self.size()).map(|i| self.at(i)).collect()
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" o ")?;
            }
            match step {
                Step::Layout(layout) => write!(f, "{layout}")?,
                Step::Add(n) => write!(f, "{n}")?,
                Step::Swizzle(swizzle) => write!(f, "{swizzle}")?,
                Step::Unswizzle(swizzle) => write!(f, "{swizzle}^-1")?,
            }
        }
        Ok(())
    }
}

impl From<Layout> for Function {
    fn from(layout: Layout) -> Function {
        Function(vec![Step::Layout(layout)])
    }
}

/// The span of memory that values take, from zero or below: what `cosize` counts.
pub(crate) fn cosize(values: &[i64]) -> i64 {
    let max = values.iter().copied().max().unwrap_or(0);
    let min = values.iter().copied().min().unwrap_or(0).min(0);
    max - min + 1
}

pub(crate) fn distinct(values: &[i64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
