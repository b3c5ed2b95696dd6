//! Products of two values, neither of them a constant when all rules are done.

use super::{Rule, first};
use crate::index::expr::{Expr, Facts, Node, Pool, cover};

/// The two factors.
pub(super) type Factors = (Expr, Expr);

/// Tried in order, with the factors either way round.
pub(super) const RULES: &[Rule<Factors>] = &[
    Rule {
        name: "a constant factor distributes",
        identity: "k·(Σ cᵢ·xᵢ + l) = Σ (k·cᵢ)·xᵢ + k·l",
        apply: |pool, &(a, b)| pool.as_const(a).map(|k| pool.scale(b, k)),
    },
    Rule {
        name: "a constant part distributes",
        identity: "(s + k)·b = s·b + k·b, so that unrolled rows differ by multiples of a leading dimension",
        apply: |pool, &(a, b)| {
            let (terms, k) = pool.terms(a);
            if k == 0 {
                return None;
            }
            let s = pool.sum(terms, 0);
            let product = pool.mul(s, b);
            let rest = pool.scale(b, k);
            Some(pool.add(product, rest))
        },
    },
    Rule {
        name: "a coefficient leaves",
        identity: "(c·x)·b = c·(x·b)",
        apply: |pool, &(a, b)| match (&pool.terms(a).0[..], pool.terms(a).1) {
            (&[(c, x)], 0) if c != 1 => {
                let product = pool.mul(x, b);
                Some(pool.scale(product, c))
            }
            _ => None,
        },
    },
];

impl Pool {
    /// `a·b`.
    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        for rule in RULES {
            let one = std::slice::from_ref(rule);
            if let Some(e) = first(self, one, &(a, b)).or_else(|| first(self, one, &(b, a))) {
                return e;
            }
        }
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let (fa, fb) = (self.facts(a), self.facts(b));
        let corners = [fa.lo * fb.lo, fa.lo * fb.hi, fa.hi * fb.lo, fa.hi * fb.hi];
        let (lo, hi) = (
            corners.into_iter().min().unwrap_or(0),
            corners.into_iter().max().unwrap_or(0),
        );
        let zeros = (fa.trailing_zeros() + fb.trailing_zeros()).min(63);
        let bits = if lo < 0 {
            u64::MAX
        } else {
            cover(hi) & (u64::MAX << zeros)
        };
        self.intern(
            Node::Mul(a, b),
            Facts {
                lo,
                hi,
                bits,
                level: fa.level.max(fb.level),
            },
        )
    }
}
