//! Sums: `Σ cᵢ·xᵢ + k`.

use super::Rule;
use super::bits::Diagonal;
use crate::index::expr::{Asked, Expr, Facts, Node, Pool, cover, moved};

/// A sum that is not yet in normal form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    pub(super) terms: Vec<(i64, Expr)>,
    pub(super) constant: i64,
}

/// Applied once each, in order.
pub(super) const RULES: &[Rule<Terms, Terms>] = &[
    Rule {
        name: "constants add",
        identity: "c·v + k = (c·v + k) for a constant v",
        apply: constants_add,
    },
    Rule {
        name: "like terms add",
        identity: "c·x + d·x = (c + d)·x, and 0·x = 0",
        apply: like_terms_add,
    },
    Rule {
        name: "diagonals merge",
        identity: "2^a·((x << d) & m) + 2^b·((x << e) & n) = (x << d+a) & (m·2^a | n·2^b), if d + a = e + b and the masks are disjoint",
        apply: diagonals_merge,
    },
];

fn constants_add(pool: &mut Pool, sum: &Terms) -> Option<Terms> {
    let mut out = Terms {
        terms: Vec::new(),
        constant: sum.constant,
    };
    for &(c, x) in &sum.terms {
        match pool.as_const(x) {
            Some(v) => out.constant = out.constant.wrapping_add(c.wrapping_mul(v)),
            None => out.terms.push((c, x)),
        }
    }
    (out.terms.len() < sum.terms.len()).then_some(out)
}

fn like_terms_add(_: &mut Pool, sum: &Terms) -> Option<Terms> {
    let mut terms: Vec<(i64, Expr)> = Vec::new();
    for &(c, x) in &sum.terms {
        match terms.iter_mut().find(|(_, y)| *y == x) {
            Some((d, _)) => *d = d.wrapping_add(c),
            None => terms.push((c, x)),
        }
    }
    terms.retain(|&(c, _)| c != 0);
    (terms.len() < sum.terms.len()).then_some(Terms {
        terms,
        constant: sum.constant,
    })
}

fn diagonals_merge(pool: &mut Pool, sum: &Terms) -> Option<Terms> {
    let mut terms: Vec<(i64, Expr)> = Vec::new();
    let mut diagonals: Vec<Diagonal> = Vec::new();
    for &(c, x) in &sum.terms {
        match pool.diagonal(c, x) {
            Some(f) => match diagonals
                .iter_mut()
                .find(|g| g.x == f.x && g.shift == f.shift && g.mask & f.mask == 0)
            {
                Some(g) => g.mask |= f.mask,
                None => diagonals.push(f),
            },
            None => terms.push((c, x)),
        }
    }
    for f in diagonals {
        let term = pool.diagonal_term(f);
        match terms.iter_mut().find(|(_, y)| *y == term.1) {
            Some((d, _)) => *d = d.wrapping_add(term.0),
            None => terms.push(term),
        }
    }
    terms.retain(|&(c, _)| c != 0);
    (terms != sum.terms).then_some(Terms {
        terms,
        constant: sum.constant,
    })
}

impl Pool {
    /// `a + b`.
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.once(Asked::Sum, vec![(1, a), (1, b)], |pool| {
            let (mut terms, k) = pool.terms(a);
            let (more, l) = pool.terms(b);
            terms.extend(more);
            pool.sum(terms, k.wrapping_add(l))
        })
    }

    /// `a − b`.
    pub fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        let b = self.scale(b, -1);
        self.add(a, b)
    }

    /// `c·e`. Distributes over sums: `c·(Σ cᵢxᵢ + k) = Σ (c·cᵢ)xᵢ + c·k`.
    pub fn scale(&mut self, e: Expr, c: i64) -> Expr {
        let (terms, k) = self.terms(e);
        let terms = terms
            .into_iter()
            .map(|(d, x)| (d.wrapping_mul(c), x))
            .collect();
        self.sum(terms, k.wrapping_mul(c))
    }

    /// `Σ cᵢ·eᵢ + k`, such as the first row of a tile plus a row of it.
    pub fn linear(&mut self, terms: &[(i64, Expr)], k: i64) -> Expr {
        terms.iter().fold(self.constant(k), |sum, &(c, e)| {
            let part = self.scale(e, c);
            self.add(sum, part)
        })
    }

    /// The sum of `terms` and `k` in normal form.
    pub(super) fn sum(&mut self, terms: Vec<(i64, Expr)>, k: i64) -> Expr {
        let mut sum = Terms { terms, constant: k };
        for rule in RULES {
            if let Some(better) = (rule.apply)(self, &sum) {
                sum = better;
            }
        }
        sum.terms.sort_by_key(|&(_, x)| x);
        self.intern_sum(sum.terms, sum.constant)
    }

    /// The sum as it stands, with what is known of it.
    pub(super) fn intern_sum(&mut self, terms: Vec<(i64, Expr)>, k: i64) -> Expr {
        if terms.is_empty() {
            return self.constant(k);
        }
        if let ([(1, x)], 0) = (&terms[..], k) {
            return *x;
        }
        let (mut lo, mut hi, mut level, mut align) =
            (i128::from(k), i128::from(k), 0, k.trailing_zeros());
        let (mut seen, mut disjoint) = (k.max(0) as u64, k >= 0);
        for &(c, x) in &terms {
            let f = self.facts(x);
            let (a, b) = (i128::from(c) * f.lo, i128::from(c) * f.hi);
            lo += a.min(b);
            hi += a.max(b);
            level = level.max(f.level);
            align = align.min(c.trailing_zeros() + f.trailing_zeros());
            let bits = if c > 0 && c.count_ones() == 1 && f.nonnegative() {
                moved(f.bits, c.trailing_zeros() as i32)
            } else {
                u64::MAX
            };
            disjoint &= seen & bits == 0;
            seen |= bits;
        }
        let mut bits = if lo < 0 { u64::MAX } else { cover(hi) };
        bits &= u64::MAX.checked_shl(align).unwrap_or(0);
        if disjoint {
            bits &= seen;
            hi = hi.min(seen.into());
        }
        self.intern(
            Node::Sum(terms, k),
            Facts {
                lo,
                hi,
                bits,
                level,
            },
        )
    }
}
