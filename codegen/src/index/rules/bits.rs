//! Fields and exclusive ors: an F2 matrix by its diagonals.

use super::{Rule, first};
use crate::index::expr::{Expr, Facts, Node, Pool, moved};

/// `(x << shift) & mask` of an atom: one diagonal of an F2 matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Diagonal {
    pub(super) x: Expr,
    pub(super) shift: i32,
    pub(super) mask: u64,
}

/// `(e << shift) & mask`: the expression, the left shift (negative is a floor shift to the right), the mask.
pub(super) type Field = (Expr, i32, u64);

/// `(e << shift) & mask`, tried in order. Where none applies, shift and mask distribute over the diagonals of e.
pub(super) const FIELD_RULES: &[Rule<Field>] = &[
    Rule {
        name: "nothing left",
        identity: "(e << s) & m = 0, if every bit of m is below s",
        apply: |pool, &(_, shift, mask)| (top(shift, mask) <= 0).then(|| pool.constant(0)),
    },
    Rule {
        name: "high terms vanish",
        identity: "((a + b) << s) & m = (a << s) & m, if b is a multiple of 2^(t - s) and m < 2^t",
        apply: high_terms_vanish,
    },
    Rule {
        name: "a whole field scales",
        identity: "(e << s) & m = 2^s·e, if m keeps every bit that e << s can have",
        apply: |pool, &(e, shift, mask)| {
            (whole(pool, e, shift, mask) && (0..62).contains(&shift))
                .then(|| pool.scale(e, 1 << shift))
        },
    },
    Rule {
        name: "a whole shift splits",
        identity: "(2^s·a + b) >> s = a + (b >> s), if b is never negative",
        apply: whole_shift_splits,
    },
];

/// Applied once each, in order, before what is left becomes nodes.
pub(super) const XOR_RULES: &[Rule<Vec<Diagonal>, Vec<Diagonal>>] = &[
    Rule {
        name: "one diagonal merges",
        identity: "((x << s) & m) ^ ((x << s) & n) = (x << s) & (m ^ n)",
        apply: one_diagonal_merges,
    },
    Rule {
        name: "empty fields vanish",
        identity: "((x << s) & 0) = 0",
        apply: |_, parts| {
            let kept: Vec<_> = parts.iter().copied().filter(|f| f.mask != 0).collect();
            (kept.len() < parts.len()).then_some(kept)
        },
    },
];

/// The bits of e from here on leave the field.
fn top(shift: i32, mask: u64) -> i32 {
    64 - mask.leading_zeros() as i32 - shift
}

/// Whether the mask keeps every bit that `e << shift` can have.
fn whole(pool: &Pool, e: Expr, shift: i32, mask: u64) -> bool {
    let f = pool.facts(e);
    f.nonnegative() && moved(f.bits, shift) & !mask == 0
}

fn high_terms_vanish(pool: &mut Pool, &(e, shift, mask): &Field) -> Option<Expr> {
    let top = top(shift, mask);
    if top <= 0 || whole(pool, e, shift, mask) {
        return None;
    }
    let (terms, k) = pool.terms(e);
    let low = |&(c, x): &(i64, Expr)| {
        ((c.trailing_zeros() + pool.facts(x).trailing_zeros()) as i32) < top
    };
    let kept: Vec<(i64, Expr)> = terms.iter().copied().filter(low).collect();
    let k_kept = if top >= 63 {
        k
    } else {
        k & ((1i64 << top) - 1)
    };
    if kept.len() == terms.len() && k_kept == k {
        return None;
    }
    let e = pool.intern_sum(kept, k_kept);
    Some(pool.field(e, shift, mask))
}

fn whole_shift_splits(pool: &mut Pool, &(e, shift, mask): &Field) -> Option<Expr> {
    let low = -shift;
    if low <= 0 || !whole(pool, e, shift, mask) {
        return None;
    }
    let (terms, k) = pool.terms(e);
    let (high, rest): (Vec<_>, Vec<_>) = terms
        .into_iter()
        .partition(|(c, _)| c.trailing_zeros() as i32 >= low);
    let (k_high, k_rest) = (k >> low, k & ((1i64 << low) - 1));
    if high.is_empty() && k_high == 0 {
        return None;
    }
    let rest = pool.intern_sum(rest, k_rest);
    let f = pool.facts(rest);
    if !f.nonnegative() {
        return None;
    }
    let high = high.into_iter().map(|(c, x)| (c >> low, x)).collect();
    let high = pool.sum(high, k_high);
    let rest = if f.hi < 1i128 << low {
        pool.constant(0)
    } else {
        pool.field(rest, shift, u64::MAX >> low)
    };
    Some(pool.add(high, rest))
}

fn one_diagonal_merges(_: &mut Pool, parts: &Vec<Diagonal>) -> Option<Vec<Diagonal>> {
    let mut merged: Vec<Diagonal> = Vec::new();
    for &f in parts {
        match merged.iter_mut().find(|g| g.x == f.x && g.shift == f.shift) {
            Some(g) => g.mask ^= f.mask,
            None => merged.push(f),
        }
    }
    (merged.len() < parts.len()).then_some(merged)
}

impl Pool {
    /// `(e << shift) & mask`, floor shift to the right if `shift` is negative.
    pub fn field(&mut self, e: Expr, shift: i32, mask: u64) -> Expr {
        if let Some(field) = first(self, FIELD_RULES, &(e, shift, mask)) {
            return field;
        }
        // Over F2 a shift and a mask distribute: ((a ^ b) << d) & m = ((a << d) & m) ^ ((b << d) & m).
        let (parts, k) = self.diagonals(e);
        let parts = parts
            .into_iter()
            .map(|f| Diagonal {
                x: f.x,
                shift: f.shift + shift,
                mask: moved(f.mask, shift) & mask,
            })
            .collect();
        self.xor_of(parts, moved(k, shift) & mask)
    }

    /// `e & mask`.
    pub fn and(&mut self, e: Expr, mask: u64) -> Expr {
        self.field(e, 0, mask)
    }

    /// `⌊e / 2ᵏ⌋`.
    pub fn shr(&mut self, e: Expr, k: u32) -> Expr {
        if k == 0 {
            e
        } else {
            self.field(e, -(k as i32), u64::MAX >> k)
        }
    }

    /// `a ^ b`, of values that are never negative.
    pub fn xor(&mut self, a: Expr, b: Expr) -> Expr {
        let (mut parts, k) = self.diagonals(a);
        let (more, l) = self.diagonals(b);
        parts.extend(more);
        self.xor_of(parts, k ^ l)
    }

    /// `c·x` as a diagonal, if c is a power of two and x is never negative.
    pub(super) fn diagonal(&self, c: i64, x: Expr) -> Option<Diagonal> {
        if c <= 0 || c.count_ones() != 1 || !self.facts(x).nonnegative() {
            return None;
        }
        let up = c.trailing_zeros() as i32;
        if self.facts(x).hi << up > i128::from(i64::MAX) {
            return None;
        }
        Some(match self.node(x) {
            Node::Field { x, shift, mask } => Diagonal {
                x: *x,
                shift: shift + up,
                mask: moved(*mask, up),
            },
            _ => Diagonal {
                x,
                shift: up,
                mask: moved(self.facts(x).bits, up),
            },
        })
    }

    /// A diagonal as a coefficient and an atom. (x << d) & mask = 2ᵈ·x if the mask keeps every bit that x can have.
    pub(super) fn diagonal_term(&mut self, f: Diagonal) -> (i64, Expr) {
        let all = self.facts(f.x);
        if f.shift >= 0
            && all.nonnegative()
            && moved(all.bits, f.shift) & !f.mask == 0
            && f.shift < 62
        {
            return (1 << f.shift, f.x);
        }
        // Bits that can never be one are no part of the mask: (x << d) & m = (x << d) & (m & bits(x << d)).
        let mask = if all.nonnegative() {
            f.mask & moved(all.bits, f.shift)
        } else {
            f.mask
        };
        if mask == 0 {
            let zero = self.constant(0);
            return (0, zero);
        }
        let mut facts = Facts {
            lo: 0,
            hi: mask.into(),
            bits: mask,
            level: all.level,
        };
        if all.nonnegative() && f.shift < 0 {
            facts.hi = facts.hi.min(all.hi >> -f.shift);
        }
        (
            1,
            self.intern(
                Node::Field {
                    x: f.x,
                    shift: f.shift,
                    mask,
                },
                facts,
            ),
        )
    }

    /// `e` as an exclusive or of diagonals and a constant: possible without loss if its terms occupy disjoint bits; otherwise
    /// `e` itself is the one diagonal.
    pub(super) fn diagonals(&mut self, e: Expr) -> (Vec<Diagonal>, u64) {
        let own = Diagonal {
            x: e,
            shift: 0,
            mask: self.facts(e).bits,
        };
        match self.node(e).clone() {
            Node::Const(c) => (Vec::new(), c as u64),
            Node::Field { x, shift, mask } => (vec![Diagonal { x, shift, mask }], 0),
            Node::Xor(items) => {
                let (mut all, mut k) = (Vec::new(), 0);
                for x in items {
                    let (more, l) = self.diagonals(x);
                    all.extend(more);
                    k ^= l;
                }
                (all, k)
            }
            Node::Sum(terms, k) if k >= 0 => {
                let (mut all, mut constant, mut seen) = (Vec::new(), k as u64, k as u64);
                for (c, x) in terms {
                    let bits = moved(self.facts(x).bits, c.trailing_zeros() as i32);
                    if self.diagonal(c, x).is_none() || seen & bits != 0 {
                        return (vec![own], 0);
                    }
                    seen |= bits;
                    let up = c.trailing_zeros() as i32;
                    let (inner, l) = self.diagonals(x);
                    constant ^= moved(l, up);
                    all.extend(inner.into_iter().map(|f| Diagonal {
                        x: f.x,
                        shift: f.shift + up,
                        mask: moved(f.mask, up),
                    }));
                }
                (all, constant)
            }
            _ => (vec![own], 0),
        }
    }

    /// The exclusive or of `parts` and `k`. Items whose bits are disjoint add.
    pub(super) fn xor_of(&mut self, parts: Vec<Diagonal>, k: u64) -> Expr {
        let mut parts = parts;
        for rule in XOR_RULES {
            if let Some(better) = (rule.apply)(self, &parts) {
                parts = better;
            }
        }
        let mut items: Vec<(Expr, u64)> = Vec::new();
        for f in parts {
            let (c, x) = self.diagonal_term(f);
            if c != 0 {
                let item = self.sum(vec![(c, x)], 0);
                items.push((item, self.facts(item).bits));
            }
        }
        // Only bits of the constant that meet a run-time bit need an exclusive or; the others add, and so become immediates.
        let all = items.iter().fold(0, |acc, &(_, bits)| acc | bits);
        let (meets, adds) = (k & all, k & !all);
        if meets != 0 {
            items.push((self.constant(meets as i64), meets));
        }
        // Items fall into groups that share bits; different groups are disjoint, so that their sum is their exclusive or.
        let mut groups: Vec<(Vec<Expr>, u64)> = Vec::new();
        for (item, bits) in items {
            let (mut group, mut union) = (vec![item], bits);
            groups.retain_mut(|(g, b)| {
                let meet = *b & union != 0;
                if meet {
                    group.append(g);
                    union |= *b;
                }
                !meet
            });
            groups.push((group, union));
        }
        let mut terms = Vec::new();
        for (mut group, union) in groups {
            if let [one] = group[..] {
                terms.push((1, one));
                continue;
            }
            group.sort_by_key(|&x| (self.as_const(x).is_some(), x));
            let level = group
                .iter()
                .map(|&x| self.facts(x).level)
                .max()
                .unwrap_or(0);
            let facts = Facts {
                lo: 0,
                hi: union.into(),
                bits: union,
                level,
            };
            terms.push((1, self.intern(Node::Xor(group), facts)));
        }
        let mut sum = self.constant(adds as i64);
        for (c, x) in terms {
            let x = self.scale(x, c);
            sum = self.add(sum, x);
        }
        sum
    }
}
