//! The rewrite rules: how each operation brings its result into normal form.
//!
//! Each rule states its identity in the comment above it, with the condition under which it holds. The tests below check
//! every operation exhaustively against [`Pool::evaluate`] on small widths, over expressions that make each rule fire.

use super::expr::{Expr, Facts, Node, Pool, cover, moved};

/// `(x << shift) & mask` of an atom: one diagonal of an F2 matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Diagonal {
    x: Expr,
    shift: i32,
    mask: u64,
}

impl Pool {
    /// `a + b`.
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        let (mut terms, k) = self.terms(a);
        let (more, l) = self.terms(b);
        terms.extend(more);
        self.sum(terms, k.wrapping_add(l))
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

    /// `a·b`. A constant factor distributes; of two unknown factors only the constant part of a sum is taken out,
    /// `(s + k)·b = s·b + k·b`, so that unrolled rows differ by multiples of a leading dimension.
    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        match (self.as_const(a), self.as_const(b)) {
            (Some(c), _) => return self.scale(b, c),
            (_, Some(c)) => return self.scale(a, c),
            _ => {}
        }
        let (ta, ka) = self.terms(a);
        let (tb, kb) = self.terms(b);
        if ka != 0 {
            let s = self.sum(ta, 0);
            let product = self.mul(s, b);
            let rest = self.scale(b, ka);
            return self.add(product, rest);
        }
        if kb != 0 {
            return self.mul(b, a);
        }
        // (c·x)·b = c·(x·b)
        if let [(c, x)] = ta[..]
            && c != 1
        {
            let product = self.mul(x, b);
            return self.scale(product, c);
        }
        if let [(c, x)] = tb[..]
            && c != 1
        {
            let product = self.mul(a, x);
            return self.scale(product, c);
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

    /// The sum of `terms` and `k` in normal form.
    fn sum(&mut self, terms: Vec<(i64, Expr)>, k: i64) -> Expr {
        let mut k = k;
        let mut scaled: Vec<(i64, Expr)> = Vec::new();
        let mut diagonals: Vec<Diagonal> = Vec::new();
        // c·x + d·x = (c + d)·x
        let mut flat: Vec<(i64, Expr)> = Vec::new();
        for (c, x) in terms {
            match self.as_const(x) {
                Some(v) => k = k.wrapping_add(c.wrapping_mul(v)),
                None => match flat.iter_mut().find(|(_, y)| *y == x) {
                    Some((d, _)) => *d = d.wrapping_add(c),
                    None => flat.push((c, x)),
                },
            }
        }
        flat.retain(|&(c, _)| c != 0);
        for (c, x) in flat {
            match self.diagonal(c, x) {
                // 2ᵃ·((x << d) & m) + 2ᵇ·((x << e) & n) = (x << d+a) & (m|n) on one diagonal, where the masks are disjoint
                Some(f) => match diagonals
                    .iter_mut()
                    .find(|g| g.x == f.x && g.shift == f.shift && g.mask & f.mask == 0)
                {
                    Some(g) => g.mask |= f.mask,
                    None => diagonals.push(f),
                },
                None => scaled.push((c, x)),
            }
        }
        for f in diagonals {
            let term = self.diagonal_term(f);
            match scaled.iter_mut().find(|(_, y)| *y == term.1) {
                Some((d, _)) => *d = d.wrapping_add(term.0),
                None => scaled.push(term),
            }
        }
        scaled.retain(|&(c, _)| c != 0);
        scaled.sort_by_key(|&(_, x)| x);
        self.intern_sum(scaled, k)
    }

    fn intern_sum(&mut self, terms: Vec<(i64, Expr)>, k: i64) -> Expr {
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

    /// `c·x` as a diagonal, if c is a power of two and x is never negative.
    fn diagonal(&self, c: i64, x: Expr) -> Option<Diagonal> {
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
    fn diagonal_term(&mut self, f: Diagonal) -> (i64, Expr) {
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
    fn diagonals(&mut self, e: Expr) -> (Vec<Diagonal>, u64) {
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

    /// `(e << shift) & mask`, floor shift to the right if `shift` is negative.
    pub fn field(&mut self, e: Expr, shift: i32, mask: u64) -> Expr {
        // Terms that the shift carries past the mask do not matter: (a + b) & m = a & m if b is a multiple of 2^(top bit of m + 1).
        // Terms that are multiples of 2^s leave a right shift by s: (a·2^s + b) >> s = a + (b >> s).
        let low = -shift;
        let top = 64 - mask.leading_zeros() as i32 - shift;
        let (terms, k) = self.terms(e);
        if top <= 0 {
            return self.constant(0);
        }
        let full = self.facts(e);
        let whole = full.nonnegative() && moved(full.bits, shift) & !mask == 0;
        let kept: Vec<(i64, Expr)> = terms
            .iter()
            .copied()
            .filter(|&(c, x)| {
                ((c.trailing_zeros() + self.facts(x).trailing_zeros()) as i32) < top || whole
            })
            .collect();
        let k = if whole || top >= 63 {
            k
        } else {
            k & ((1i64 << top) - 1)
        };
        let e = self.intern_sum(kept, k);
        let full = self.facts(e);
        let whole = full.nonnegative() && moved(full.bits, shift) & !mask == 0;
        if shift >= 0 && whole && shift < 62 {
            return self.scale(e, 1 << shift);
        }
        if low > 0 && whole {
            let (terms, k) = self.terms(e);
            let (mut high, mut rest) = (Vec::new(), Vec::new());
            for (c, x) in terms {
                if (c.trailing_zeros() as i32) >= low {
                    high.push((c >> low, x));
                } else {
                    rest.push((c, x));
                }
            }
            let (k_high, k_rest) = (k >> low, k & ((1i64 << low) - 1));
            if !high.is_empty() || k_high != 0 {
                let high = self.sum(high, k_high);
                let rest = self.intern_sum(rest, k_rest);
                let f = self.facts(rest);
                if f.nonnegative() {
                    let rest = if f.hi < 1i128 << low {
                        self.constant(0)
                    } else {
                        self.field(rest, shift, u64::MAX >> low)
                    };
                    return self.add(high, rest);
                }
            }
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

    /// The exclusive or of `parts` and `k`. Parts on one diagonal merge, `f&m ^ f&n = f&(m^n)`; items whose bits are disjoint add.
    fn xor_of(&mut self, parts: Vec<Diagonal>, k: u64) -> Expr {
        let mut merged: Vec<Diagonal> = Vec::new();
        for f in parts {
            match merged.iter_mut().find(|g| g.x == f.x && g.shift == f.shift) {
                Some(g) => g.mask ^= f.mask,
                None => merged.push(f),
            }
        }
        let mut items: Vec<(Expr, u64)> = Vec::new();
        for f in merged.into_iter().filter(|f| f.mask != 0) {
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

    /// `⌊e / d⌋` for d ≥ 1, of a value that is never negative (a negative one by a power of two only).
    pub fn div(&mut self, e: Expr, d: i64) -> Expr {
        debug_assert!(d > 0);
        if d.count_ones() == 1 {
            return self.shr(e, d.trailing_zeros());
        }
        // (d·a + b) / d = a + b/d
        let (terms, k) = self.terms(e);
        let (mut high, mut rest) = (Vec::new(), Vec::new());
        for (c, x) in terms {
            if c % d == 0 {
                high.push((c / d, x));
            } else {
                rest.push((c, x));
            }
        }
        let (mut k_high, mut k_rest) = (k.div_euclid(d), k.rem_euclid(d));
        let mut rest_expr = self.intern_sum(rest.clone(), k_rest);
        if !self.facts(rest_expr).nonnegative() {
            (high, k_high, rest, k_rest) = (Vec::new(), 0, self.terms(e).0, k);
            rest_expr = e;
        }
        let f = self.facts(rest_expr);
        let quotient = if f.hi < i128::from(d) {
            self.constant(0)
        } else {
            // (g·a + r) / (g·d) = a / d for 0 ≤ r < g
            let g = rest.iter().fold(d, |g, &(c, _)| gcd(g, c));
            if g > 1 && k_rest >= 0 {
                let reduced = rest.iter().map(|&(c, x)| (c / g, x)).collect();
                let reduced = self.sum(reduced, k_rest / g);
                self.div(reduced, d / g)
            } else if let Node::Div(x, inner) = *self.node(rest_expr) {
                // (x / a) / b = x / (a·b)
                self.div(x, inner * d)
            } else {
                let (lo, hi) = (f.lo.max(0) / i128::from(d), f.hi / i128::from(d));
                self.intern(
                    Node::Div(rest_expr, d),
                    Facts {
                        lo,
                        hi,
                        bits: cover(hi),
                        level: f.level,
                    },
                )
            }
        };
        let high = self.sum(high, k_high);
        self.add(high, quotient)
    }

    /// `e mod d`, in `0..d`: a mask for a power of two, else `e − d·⌊e/d⌋`.
    pub fn rem(&mut self, e: Expr, d: i64) -> Expr {
        if d.count_ones() == 1 {
            return self.and(e, (d - 1) as u64);
        }
        let f = self.facts(e);
        if f.lo >= 0 && f.hi < i128::from(d) {
            return e;
        }
        // Whole multiples of d do not matter: (d·a + b) mod d = b mod d.
        let (terms, k) = self.terms(e);
        let rest: Vec<_> = terms.iter().copied().filter(|(c, _)| c % d != 0).collect();
        let rest = self.intern_sum(rest, k.rem_euclid(d));
        let e = if self.facts(rest).nonnegative() {
            rest
        } else {
            e
        };
        let q = self.div(e, d);
        if self.as_const(q) == Some(0) {
            return e;
        }
        let whole = self.scale(q, d);
        let r = self.sub(e, whole);
        self.clamp(r, 0, i128::from(d) - 1)
    }

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

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
