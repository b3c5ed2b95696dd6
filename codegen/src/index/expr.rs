//! Index expressions: a hash-consed graph of integers with known bits and ranges.
//!
//! Every value is an exact integer, never one that wrapped: ranges are carried along and decide the machine width only when
//! code is written. Two normal forms keep equal values equal, so that common subexpressions are found by construction:
//!
//! * a **sum** `c₁·x₁ + … + k` of atoms with integer coefficients, and
//! * an **exclusive or** of *fields* `(x << d) & mask`, which is how an F2 matrix looks when its ones are gathered by
//!   diagonal: one shift and one mask for each.
//!
//! A sum whose terms occupy disjoint bits *is* an exclusive or, and the graph moves between the two views wherever the known
//! bits allow it. Example: with `t` in `0..32`, `(t & 15)·16 + ((t >> 4) & 1)·256` becomes `16·t`, because both fields
//! lie on the diagonal `d = 4` and together cover every bit that `t` can have.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::quick::QuickMap;

/// A handle to an expression of one [`Pool`]. Equal handles are equal values. A pool takes the handle of another pool for 0, and a kernel refuses to be
/// built with one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Expr {
    id: u32,
    pool: PoolId,
}

impl Hash for Expr {
    // Within one pool, which is where handles are hashed, the number alone tells them apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

#[cfg(feature = "kernels")]
impl Expr {
    /// The pool that it belongs to.
    pub(crate) fn pool(self) -> PoolId {
        self.pool
    }
}

/// What tells pools apart, in one run of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PoolId(u32);

impl PoolId {
    /// No pool has it.
    pub(crate) const NONE: Self = Self(0);

    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a pool answers for the handle of another pool.
static ZERO: (Node, Facts) = (
    Node::Const(0),
    Facts {
        lo: 0,
        hi: 0,
        bits: 0,
        level: 0,
    },
);

/// The last pool whose handle was given to this one. Questions take the pool by reference, so that the note is an atomic.
#[derive(Debug)]
struct Foreign(AtomicU32);

impl Clone for Foreign {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Where a value may change: 0 for the whole kernel, `n` inside the n-th nested loop. Code for an expression is placed at the
/// outermost level at which all its variables are known.
pub type Level = u8;

/// What is known of an expression's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Least possible value.
    pub lo: i128,
    /// Greatest possible value.
    pub hi: i128,
    /// Bits that may be one, of a value that is never negative; all ones where the value may be negative.
    pub bits: u64,
    /// Innermost level of the variables in it.
    pub level: Level,
}

impl Facts {
    /// True if the value is never negative.
    pub fn nonnegative(&self) -> bool {
        self.lo >= 0
    }

    /// The largest `n` such that the value is a multiple of 2ⁿ, as far as is known (64 for the constant 0).
    pub fn trailing_zeros(&self) -> u32 {
        self.bits.trailing_zeros()
    }
}

/// The shape of an expression: see the module's essay for the two normal forms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// A constant.
    Const(i64),
    /// A variable: a thread index, a loop counter, a kernel parameter.
    Var {
        /// Its name, unique in the pool.
        name: String,
    },
    /// `Σ cᵢ·xᵢ + k`: sorted by atom, no zero coefficient, no atom that is itself a sum.
    Sum(Vec<(i64, Expr)>, i64),
    /// `(x << shift) & mask`, or `(x >> −shift) & mask` for a negative shift. `x` is no field.
    Field {
        /// The shifted value.
        x: Expr,
        /// Left shift; negative is a (floor) right shift.
        shift: i32,
        /// The bits kept.
        mask: u64,
    },
    /// Exclusive or of at least two items whose bits overlap, the last possibly a constant.
    Xor(Vec<Expr>),
    /// Product of two values that are no constants.
    Mul(Expr, Expr),
    /// `⌊x / d⌋` of a value that is never negative, d > 1 and no power of two.
    Div(Expr, i64),
    /// `⌊(x + 1)·multiplier / 2³²⌋ >> shift`: the quotient by a run-time divisor, of a value in `0..2³¹`.
    DivFast {
        /// The dividend.
        x: Expr,
        /// The divisor's multiplier.
        multiplier: Expr,
        /// The divisor's shift.
        shift: Expr,
    },
    /// The same value as its argument, kept as one atom: a point where the compiler decided not to distribute.
    Pin(Expr),
}

/// The smallest mask of the form 2ⁿ − 1 that covers `value`.
pub(crate) fn cover(value: i128) -> u64 {
    match u64::try_from(value) {
        Ok(0) => 0,
        Ok(v) => u64::MAX >> v.leading_zeros(),
        Err(_) => u64::MAX,
    }
}

/// Bits of `mask` moved by `shift`; those that leave the word are lost.
pub(crate) fn moved(mask: u64, shift: i32) -> u64 {
    if shift >= 0 {
        mask.checked_shl(shift as u32).unwrap_or(0)
    } else {
        mask.checked_shr((-shift) as u32).unwrap_or(0)
    }
}

/// A store of expressions in which equal expressions are one.
#[derive(Clone, Debug)]
pub struct Pool {
    id: PoolId,
    foreign: Foreign,
    nodes: Vec<(Node, Facts)>,
    known: QuickMap<Node, Expr>,
    /// Answers to earlier questions ([`Pool::once`]).
    answers: QuickMap<Node, Expr>,
}

/// What a pool is asked to compile from some terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The sum of two expressions.
    Sum,
    /// The index of a mode, whose leaves and coordinate these are: by its digits, or in the cheapest form.
    Digits,
    Index,
    /// The swizzle of an expression.
    Swizzle,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            id: PoolId::new(),
            foreign: Foreign(AtomicU32::new(PoolId::NONE.0)),
            nodes: Vec::new(),
            known: QuickMap::default(),
            answers: QuickMap::default(),
        }
    }
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// What tells it from other pools.
    #[cfg(feature = "kernels")]
    pub(crate) fn id(&self) -> PoolId {
        self.id
    }

    /// The pool of a handle that was given to this one and is not its own.
    #[cfg(feature = "kernels")]
    pub(crate) fn foreign(&self) -> Option<PoolId> {
        let id = PoolId(self.foreign.0.load(Ordering::Relaxed));
        (id != PoolId::NONE).then_some(id)
    }

    fn at(&self, e: Expr) -> &(Node, Facts) {
        if e.pool == self.id {
            return &self.nodes[e.id as usize];
        }
        self.foreign.0.store(e.pool.0, Ordering::Relaxed);
        &ZERO
    }

    /// The shape of `e`.
    pub fn node(&self, e: Expr) -> &Node {
        &self.at(e).0
    }

    /// What is known of `e`.
    pub fn facts(&self, e: Expr) -> Facts {
        self.at(e).1
    }

    /// The value of `e` if it is a constant.
    pub fn as_const(&self, e: Expr) -> Option<i64> {
        match self.node(e) {
            Node::Const(c) => Some(*c),
            _ => None,
        }
    }

    /// Adds a node as it stands; its facts are the intersection of what is given and what a variable-free view allows.
    pub(crate) fn intern(&mut self, node: Node, facts: Facts) -> Expr {
        if let Some(&e) = self.known.get(&node) {
            return e;
        }
        let e = Expr {
            id: u32::try_from(self.nodes.len()).expect("fewer than 2^32 expressions"),
            pool: self.id,
        };
        self.known.insert(node.clone(), e);
        self.nodes.push((node, facts));
        e
    }

    /// Compiles what is asked for, unless that was done before. The answer depends on nothing but the terms, since what is known of an expression never changes. A
    /// kernel asks for most indices many times: 96 % of the modes of `mma-f16-64x64x64` are found here.
    pub(super) fn once(
        &mut self,
        asked: Asked,
        terms: Vec<(i64, Expr)>,
        compile: impl FnOnce(&mut Self) -> Expr,
    ) -> Expr {
        // A node, so that both maps are of one type: the page in the browser is small.
        let key = Node::Sum(terms, asked as i64);
        if let Some(&known) = self.answers.get(&key) {
            return known;
        }
        let answer = compile(self);
        self.answers.insert(key, answer);
        answer
    }

    /// The constant `c`.
    pub fn constant(&mut self, c: i64) -> Expr {
        let bits = if c < 0 { u64::MAX } else { c as u64 };
        self.intern(
            Node::Const(c),
            Facts {
                lo: c.into(),
                hi: c.into(),
                bits,
                level: 0,
            },
        )
    }

    /// A variable with values in `lo..=hi`. The same name gives the same variable (its range is that of the first call).
    pub fn var(&mut self, name: &str, lo: i64, hi: i64, level: Level) -> Expr {
        let bits = if lo < 0 { u64::MAX } else { cover(hi.into()) };
        self.intern(
            Node::Var {
                name: name.to_owned(),
            },
            Facts {
                lo: lo.into(),
                hi: hi.into(),
                bits,
                level,
            },
        )
    }

    /// A variable in `0..=hi` that is a multiple of 2^`align`.
    pub fn var_aligned(&mut self, name: &str, hi: i64, align: u32, level: Level) -> Expr {
        let bits = cover(hi.into()) & (u64::MAX << align);
        self.intern(
            Node::Var {
                name: name.to_owned(),
            },
            Facts {
                lo: 0,
                hi: hi.into(),
                bits,
                level,
            },
        )
    }

    /// `e` as the one atom of a sum: what a rule must not take apart.
    pub fn pin(&mut self, e: Expr) -> Expr {
        match self.node(e) {
            Node::Const(_) | Node::Var { .. } | Node::Pin(_) => e,
            _ => {
                let facts = self.facts(e);
                self.intern(Node::Pin(e), facts)
            }
        }
    }

    /// The terms and the constant of `e` seen as a sum.
    pub fn terms(&self, e: Expr) -> (Vec<(i64, Expr)>, i64) {
        match self.node(e) {
            Node::Const(c) => (Vec::new(), *c),
            Node::Sum(terms, k) => (terms.clone(), *k),
            _ => (vec![(1, e)], 0),
        }
    }

    /// The variables that `e` depends on, by name, in order of first appearance.
    pub fn variables(&self, e: Expr) -> Vec<String> {
        let mut names = Vec::new();
        self.visit(e, &mut |node| {
            if let Node::Var { name } = node
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        });
        names
    }

    fn visit(&self, e: Expr, f: &mut impl FnMut(&Node)) {
        let node = self.node(e);
        f(node);
        for child in children(node) {
            self.visit(child, f);
        }
    }

    /// The value of `e` where `value` gives each variable's: the definition that every rule is tested against.
    pub fn evaluate(&self, e: Expr, value: &impl Fn(&str) -> i64) -> i128 {
        match self.node(e) {
            Node::Const(c) => (*c).into(),
            Node::Var { name } => value(name).into(),
            Node::Sum(terms, k) => {
                terms
                    .iter()
                    .map(|&(c, x)| i128::from(c) * self.evaluate(x, value))
                    .sum::<i128>()
                    + i128::from(*k)
            }
            Node::Field { x, shift, mask } => {
                let x = self.evaluate(*x, value);
                let moved = if *shift >= 0 {
                    x << *shift
                } else {
                    x >> -*shift
                };
                moved & i128::from(*mask)
            }
            Node::Xor(items) => items
                .iter()
                .fold(0, |acc, &x| acc ^ self.evaluate(x, value)),
            Node::Mul(a, b) => self.evaluate(*a, value) * self.evaluate(*b, value),
            Node::Div(x, d) => self.evaluate(*x, value).div_euclid((*d).into()),
            Node::DivFast {
                x,
                multiplier,
                shift,
            } => {
                let product = (self.evaluate(*x, value) + 1) * self.evaluate(*multiplier, value);
                product >> 32 >> self.evaluate(*shift, value)
            }
            Node::Pin(x) => self.evaluate(*x, value),
        }
    }

    /// `e` with the variable `name` replaced by `by`, simplified again.
    pub fn substitute(&mut self, e: Expr, name: &str, by: Expr) -> Expr {
        match self.node(e).clone() {
            Node::Const(_) => e,
            Node::Var { name: n } => {
                if n == name {
                    by
                } else {
                    e
                }
            }
            Node::Sum(terms, k) => {
                let mut sum = self.constant(k);
                for (c, x) in terms {
                    let x = self.substitute(x, name, by);
                    let x = self.scale(x, c);
                    sum = self.add(sum, x);
                }
                sum
            }
            Node::Field { x, shift, mask } => {
                let x = self.substitute(x, name, by);
                self.field(x, shift, mask)
            }
            Node::Xor(items) => {
                let mut acc = self.constant(0);
                for x in items {
                    let x = self.substitute(x, name, by);
                    acc = self.xor(acc, x);
                }
                acc
            }
            Node::Mul(a, b) => {
                let (a, b) = (self.substitute(a, name, by), self.substitute(b, name, by));
                self.mul(a, b)
            }
            Node::Div(x, d) => {
                let x = self.substitute(x, name, by);
                self.div(x, d)
            }
            Node::DivFast {
                x,
                multiplier,
                shift,
            } => {
                // The range was proven when the node was made; what replaces a variable lies in the variable's range.
                let facts = self.facts(e);
                let x = self.substitute(x, name, by);
                let multiplier = self.substitute(multiplier, name, by);
                let shift = self.substitute(shift, name, by);
                let level = [x, multiplier, shift]
                    .into_iter()
                    .map(|e| self.facts(e).level)
                    .max()
                    .unwrap_or(0);
                self.intern(
                    Node::DivFast {
                        x,
                        multiplier,
                        shift,
                    },
                    Facts { level, ..facts },
                )
            }
            Node::Pin(x) => {
                let x = self.substitute(x, name, by);
                self.pin(x)
            }
        }
    }
}

/// The expressions directly below a node.
pub(crate) fn children(node: &Node) -> Vec<Expr> {
    match node {
        Node::Const(_) | Node::Var { .. } => Vec::new(),
        Node::Sum(terms, _) => terms.iter().map(|&(_, x)| x).collect(),
        Node::Field { x, .. } | Node::Div(x, _) | Node::Pin(x) => vec![*x],
        Node::Xor(items) => items.clone(),
        Node::Mul(a, b) => vec![*a, *b],
        Node::DivFast {
            x,
            multiplier,
            shift,
        } => vec![*x, *multiplier, *shift],
    }
}
