//! The values that a proof computes with: integers that are linear in symbols, exact for every thread of a block at once.
//!
//! A value is `Σ cᵢ·mᵢ + k`, where a monomial m is a product of symbols (a parameter, a block index, the iteration of a loop) and the
//! numbers c and k are one number for all threads or one for each. What a thread computes from its own index alone is a number; so an
//! address in shared memory is `base + k[thread]`, whatever shifts and exclusive ors it went through.
//!
//! What is not linear becomes a symbol with its definition (the smaller of two values, the low bits of one, one of two by a predicate), which
//! `solve` takes apart where a proof needs it.

use crate::prove::algebra::numbers::{Chosen, Mask, Num, Terms};

/// A symbol: a number that `Symbols` gives out.
pub(in crate::prove) type Sym = u32;

/// A monomial and its coefficient.
pub(in crate::prove) type Term = (Mono, Num);

/// Numbers up to this, and some 2^20 times them, have sums and differences of 64 bits.
const FAR: u64 = 1 << 41;

/// A product of at most four symbols, sorted; 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::prove) struct Mono(pub(in crate::prove) [Sym; 4]);

impl Mono {
    pub(in crate::prove) fn of(sym: Sym) -> Self {
        Mono([0, 0, 0, sym])
    }

    pub(in crate::prove) fn symbols(&self) -> impl Iterator<Item = Sym> + '_ {
        self.0.iter().copied().filter(|&s| s != 0)
    }

    pub(in crate::prove) fn times(&self, other: &Self) -> Option<Self> {
        let mut all: Vec<Sym> = self.symbols().chain(other.symbols()).collect();
        if all.len() > 4 {
            return None;
        }
        all.sort_unstable();
        let mut out = [0; 4];
        out[4 - all.len()..].copy_from_slice(&all);
        Some(Mono(out))
    }
}

/// An integer that is linear in monomials.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) struct Lin {
    /// Sorted by monomial, without zero coefficients.
    pub(in crate::prove) terms: Terms,
    pub(in crate::prove) k: Num,
}

impl Lin {
    pub(in crate::prove) fn constant(k: i64) -> Self {
        Self::number(Num::same(k))
    }

    pub(in crate::prove) fn number(k: Num) -> Self {
        let terms = Terms::NONE;
        Self { terms, k }
    }

    pub(in crate::prove) fn symbol(sym: Sym) -> Self {
        Self {
            terms: Terms::of(vec![(Mono::of(sym), Num::same(1))]),
            k: Num::ZERO,
        }
    }

    /// The value of terms that are sorted; those with a zero coefficient are left out.
    pub(in crate::prove) fn of(terms: impl IntoIterator<Item = Term>, k: Num) -> Self {
        let terms = terms.into_iter().filter(|(_, c)| !c.is_zero());
        Self {
            terms: Terms::of(terms.collect()),
            k,
        }
    }

    /// The number, if no symbol is in it.
    pub(in crate::prove) fn as_number(&self) -> Option<Num> {
        self.terms.is_empty().then_some(self.k)
    }

    pub(in crate::prove) fn as_constant(&self) -> Option<i64> {
        self.as_number().and_then(Num::one)
    }

    /// The largest number in it, whatever its sign.
    fn magnitude(&self) -> u64 {
        self.terms.magnitude().max(self.k.magnitude())
    }

    /// A number in it is so large that a sum of few multiples of such values may wrap around.
    pub(in crate::prove) fn is_far(&self) -> bool {
        self.magnitude() > FAR
    }

    pub(in crate::prove) fn is_zero(&self) -> bool {
        self.terms.is_empty() && self.k.is_zero()
    }

    pub(in crate::prove) fn add(&self, other: &Self) -> Self {
        self.merged(other, 1)
    }

    pub(in crate::prove) fn sub(&self, other: &Self) -> Self {
        self.merged(other, -1)
    }

    pub(in crate::prove) fn plus(&self, k: i64) -> Self {
        Self {
            terms: self.terms,
            k: self.k.plus(k),
        }
    }

    fn merged(&self, other: &Self, sign: i64) -> Self {
        Self {
            terms: self.terms.merged(other.terms, sign),
            k: self.k.add(other.k.scale(sign)),
        }
    }

    pub(in crate::prove) fn scale(&self, c: i64) -> Self {
        self.scale_each(Num::same(c))
    }

    pub(in crate::prove) fn scale_each(&self, c: Num) -> Self {
        Self {
            terms: self.terms.scale(c),
            k: self.k.mul(c),
        }
    }

    /// The value of which this one is so many times; none where a number in it is no multiple.
    pub(in crate::prove) fn divided_by(&self, d: i64) -> Option<Self> {
        let by = |n: Num| n.one().filter(|n| n % d == 0).map(|n| Num::same(n / d));
        let terms = self.terms.list();
        let parts: Option<Vec<Term>> = terms.iter().map(|(m, c)| Some((*m, by(*c)?))).collect();
        Some(Self::of(parts?, by(self.k)?))
    }

    /// The product; none where it has more than four symbols, or a number of it may wrap around.
    pub(in crate::prove) fn mul(&self, other: &Self) -> Option<Self> {
        if self.magnitude().saturating_mul(other.magnitude()) >= 1 << 61 {
            return None;
        }
        let mut sum = other.scale_each(self.k);
        for (m, c) in self.terms.list().iter() {
            sum = sum.add(&Self::of([(*m, c.mul(other.k))], Num::ZERO));
            for (n, d) in other.terms.list().iter() {
                let product = m.times(n)?;
                sum = sum.add(&Self::of([(product, c.mul(*d))], Num::ZERO));
            }
        }
        Some(sum)
    }

    pub(in crate::prove) fn symbols(&self) -> impl Iterator<Item = Sym> + use<> {
        let terms = self.terms.list();
        let count = terms.len();
        (0..count).flat_map(move |i| {
            let Mono(symbols) = terms[i].0;
            symbols.into_iter().filter(|&s| s != 0)
        })
    }

    pub(in crate::prove) fn mentions(&self, sym: Sym) -> bool {
        self.symbols().any(|s| s == sym)
    }

    /// 2ⁿ with the largest n such that every coefficient of a symbol is a multiple of it.
    pub(in crate::prove) fn symbol_alignment(&self) -> u32 {
        self.terms.zeros()
    }

    /// The same value with other numbers; zero coefficients are left out.
    fn map(&self, f: impl Fn(Num) -> Num) -> Lin {
        let terms = self.terms.list();
        Lin::of(terms.iter().map(|(m, c)| (*m, f(*c))), f(self.k))
    }

    /// The value for the threads of a mask: numbers that are the same for all of them become one.
    pub(in crate::prove) fn restricted(&self, mask: Mask) -> Lin {
        self.map(|n| n.restricted(mask))
    }

    /// The value of some threads, in their order.
    pub(in crate::prove) fn of_threads(&self, chosen: &Chosen) -> Lin {
        Lin {
            terms: self.terms.of_threads(chosen),
            k: self.k.of_threads(chosen),
        }
    }

    /// A value that differs from this one by a multiple of 2ⁿ, with numbers below 2ⁿ.
    pub(in crate::prove) fn modulo(&self, bits: u32) -> Lin {
        self.map(|n| n.low(bits))
    }

    /// The symbol that it is, if it is one.
    pub(in crate::prove) fn single(&self) -> Option<Sym> {
        match &self.terms.list()[..] {
            [(m, c)] if self.k.is_zero() && *c == Num::same(1) => {
                let mut symbols = m.symbols();
                symbols.next().filter(|_| symbols.next().is_none())
            }
            _ => None,
        }
    }

    /// The largest value that is at most this one and, like its symbols, a multiple of a power of two.
    pub(in crate::prove) fn tightened(&self) -> Lin {
        let bits = self.symbol_alignment();
        if bits == 0 || self.terms.is_empty() {
            return *self;
        }
        Lin {
            terms: self.terms,
            k: self.k.add(self.k.low(bits).scale(-1)),
        }
    }

    /// The largest value that is at most this one and a multiple of `2^bits`, where `sym` is one; this value if its other symbols are not.
    pub(in crate::prove) fn tightened_with(&self, sym: Sym, bits: u32) -> Lin {
        let terms = self.terms.list();
        let is = |m: &Mono| m.symbols().any(|s| s == sym);
        let others = Lin::of(terms.iter().filter(|(m, _)| !is(m)).copied(), Num::ZERO);
        let aligned = others.terms.is_empty() || others.symbol_alignment() >= bits;
        if !self.mentions(sym) || !aligned {
            return *self;
        }
        Lin {
            terms: self.terms,
            k: self.k.add(self.k.low(bits).scale(-1)),
        }
    }

    /// The same value with a symbol replaced.
    pub(in crate::prove) fn substitute(&self, sym: Sym, by: &Lin) -> Option<Lin> {
        if !self.mentions(sym) {
            return Some(*self);
        }
        let mentions = |m: &Mono| m.symbols().any(|s| s == sym);
        let terms = self.terms.list();
        let others = terms.iter().filter(|(m, _)| !mentions(m));
        let mut sum = Lin::of(others.copied(), self.k);
        for (m, c) in terms.iter().filter(|(m, _)| mentions(m)) {
            let mut product = Lin::number(*c);
            for s in m.symbols() {
                product = if s == sym {
                    product.mul(by)?
                } else {
                    product.mul(&Lin::symbol(s))?
                };
            }
            sum = sum.add(&product);
        }
        Some(sum)
    }
}
