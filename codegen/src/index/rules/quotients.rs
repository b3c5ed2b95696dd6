//! Quotients and remainders by constants, of values that are never negative (negative ones by powers of two only).

use super::{Rule, first};
use crate::gcd::gcd;
use crate::index::expr::{Expr, Facts, Node, Pool, cover};

/// What is divided, and by what: a constant of at least 1.
pub(super) type Division = (Expr, i64);

/// `⌊e / d⌋`, tried in order.
pub(super) const DIV_RULES: &[Rule<Division>] = &[
    Rule {
        name: "a power of two shifts",
        identity: "e / 2^k = e >> k",
        apply: |pool, &(e, d)| (d.count_ones() == 1).then(|| pool.shr(e, d.trailing_zeros())),
    },
    Rule {
        name: "multiples leave",
        identity: "(d·a + b) / d = a + b / d, if b is never negative",
        apply: multiples_leave,
    },
    Rule {
        name: "small is 0",
        identity: "e / d = 0, if 0 <= e < d",
        apply: |pool, &(e, d)| {
            let f = pool.facts(e);
            (f.lo >= 0 && f.hi < i128::from(d)).then(|| pool.constant(0))
        },
    },
    Rule {
        name: "common factors cancel",
        identity: "(g·a + r) / (g·d) = a / d, if 0 <= r < g",
        apply: common_factors_cancel,
    },
    Rule {
        name: "divisions nest",
        identity: "(x / a) / d = x / (a·d)",
        apply: |pool, &(e, d)| match *pool.node(e) {
            Node::Div(x, a) => a.checked_mul(d).map(|product| pool.div(x, product)),
            _ => None,
        },
    },
];

/// `e mod d` in `0..d`, tried in order.
pub(super) const REM_RULES: &[Rule<Division>] = &[
    Rule {
        name: "a power of two masks",
        identity: "e mod 2^k = e & (2^k - 1)",
        apply: |pool, &(e, d)| (d.count_ones() == 1).then(|| pool.and(e, (d - 1) as u64)),
    },
    Rule {
        name: "small stays",
        identity: "e mod d = e, if 0 <= e < d",
        apply: |pool, &(e, d)| {
            let f = pool.facts(e);
            (f.lo >= 0 && f.hi < i128::from(d)).then_some(e)
        },
    },
    Rule {
        name: "multiples vanish",
        identity: "(d·a + b) mod d = b mod d, if b is never negative",
        apply: multiples_vanish,
    },
];

fn multiples_leave(pool: &mut Pool, &(e, d): &Division) -> Option<Expr> {
    let (terms, k) = pool.terms(e);
    let (high, rest): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(c, _)| c % d == 0);
    let (k_high, k_rest) = (k.div_euclid(d), k.rem_euclid(d));
    if high.is_empty() && k_high == 0 {
        return None;
    }
    let rest = pool.intern_sum(rest, k_rest);
    if !pool.facts(rest).nonnegative() {
        return None;
    }
    let high = high.into_iter().map(|(c, x)| (c / d, x)).collect();
    let high = pool.sum(high, k_high);
    let quotient = pool.div(rest, d);
    Some(pool.add(high, quotient))
}

fn common_factors_cancel(pool: &mut Pool, &(e, d): &Division) -> Option<Expr> {
    let (terms, k) = pool.terms(e);
    let g = terms.iter().fold(d, |g, &(c, _)| gcd(g, c));
    if g <= 1 || k < 0 {
        return None;
    }
    let reduced = terms.iter().map(|&(c, x)| (c / g, x)).collect();
    let reduced = pool.sum(reduced, k / g);
    Some(pool.div(reduced, d / g))
}

fn multiples_vanish(pool: &mut Pool, &(e, d): &Division) -> Option<Expr> {
    let (terms, k) = pool.terms(e);
    let rest: Vec<_> = terms.iter().copied().filter(|(c, _)| c % d != 0).collect();
    let rest = pool.intern_sum(rest, k.rem_euclid(d));
    (rest != e && pool.facts(rest).nonnegative()).then(|| pool.rem(rest, d))
}

impl Pool {
    /// `⌊e / d⌋` for d ≥ 1, of a value that is never negative (a negative one by a power of two only).
    pub fn div(&mut self, e: Expr, d: i64) -> Expr {
        debug_assert!(d > 0);
        if let Some(quotient) = first(self, DIV_RULES, &(e, d)) {
            return quotient;
        }
        let f = self.facts(e);
        let (lo, hi) = (f.lo.max(0) / i128::from(d), f.hi / i128::from(d));
        self.intern(
            Node::Div(e, d),
            Facts {
                lo,
                hi,
                bits: cover(hi),
                level: f.level,
            },
        )
    }

    /// `e mod d`, in `0..d`: where no rule applies, `e − d·⌊e/d⌋`.
    pub fn rem(&mut self, e: Expr, d: i64) -> Expr {
        if let Some(remainder) = first(self, REM_RULES, &(e, d)) {
            return remainder;
        }
        let q = self.div(e, d);
        if self.as_const(q) == Some(0) {
            return e;
        }
        let whole = self.scale(q, d);
        let r = self.sub(e, whole);
        self.clamp(r, 0, i128::from(d) - 1)
    }
}
