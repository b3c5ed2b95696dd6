//! The rewrite rules: how each operation brings its result into normal form.
//!
//! Each operation is a table of [`Rule`]s, tried in order; the first that applies gives the result, and where none does the operation
//! becomes a node. A rule is an identity with the condition under which it holds:
//!
//! | table | operation | rules |
//! |---|---|---|
//! | [`sums::RULES`] | `Σ cᵢ·xᵢ + k` | constants add, like terms add, fields on one diagonal merge |
//! | [`products::RULES`] | `a·b` | a constant factor distributes, a constant part distributes, a coefficient leaves |
//! | [`quotients::DIV_RULES`] | `⌊e / d⌋` | a power of two shifts, multiples leave, small is 0, common factors cancel, divisions nest |
//! | [`quotients::REM_RULES`] | `e mod d` | a power of two masks, small stays, multiples vanish |
//! | [`bits::FIELD_RULES`] | `(e << s) & m` | nothing left, high terms vanish, a whole field scales, a whole shift splits |
//! | [`bits::XOR_RULES`] | `a ^ b` | one diagonal merges, empty fields vanish |
//!
//! The tests take every rule by itself, apply it to every expression of a family on small widths, and compare what it gives with
//! the operation's definition at every value of the variables; a rule that never applies to the family fails too.
//!
//! *Example.* `((8·x + y) / 4) mod 2` with `y` in `0..8`: multiples leave (`2·x + y/4`), a power of two masks (`(2·x + (y >> 2)) & 1`),
//! high terms vanish (`(y >> 2) & 1`), and a whole field is what it is: `y >> 2`.

mod bits;
mod products;
mod quotients;
mod sums;
#[cfg(test)]
mod tests;

use super::expr::{Expr, Facts, Node, Pool, cover};

/// A rewrite rule: from the operation's arguments `A` to its result, or none where the rule does not apply.
#[derive(Clone, Copy)]
pub(super) struct Rule<A: 'static, B: 'static = Expr> {
    /// Its name.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "names are for readers and tests")
    )]
    pub(super) name: &'static str,
    /// The identity, with its condition.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "identities are for readers and tests")
    )]
    pub(super) identity: &'static str,
    /// Applies it.
    pub(super) apply: fn(&mut Pool, &A) -> Option<B>,
}

/// The result of the first rule that applies.
fn first<A, B>(pool: &mut Pool, rules: &[Rule<A, B>], arguments: &A) -> Option<B> {
    rules.iter().find_map(|rule| (rule.apply)(pool, arguments))
}

impl Pool {
    /// `e`, known to lie in `lo..=hi` for a reason that its terms do not show.
    pub(crate) fn clamp(&mut self, e: Expr, lo: i128, hi: i128) -> Expr {
        let f = self.facts(e);
        if f.lo >= lo && f.hi <= hi {
            return e;
        }
        let (lo, hi) = (f.lo.max(lo), f.hi.min(hi));
        let facts = Facts {
            lo,
            hi,
            bits: if lo < 0 { u64::MAX } else { cover(hi) & f.bits },
            level: f.level,
        };
        self.intern(Node::Pin(e), facts)
    }
}
