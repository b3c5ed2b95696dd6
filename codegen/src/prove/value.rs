//! The values that a proof computes with: integers that are linear in symbols, exact for every thread of a block at once.
//!
//! A value is `Σ cᵢ·mᵢ + k`, where a monomial m is a product of symbols (a parameter, a block index, the turn of a loop) and the
//! numbers c and k are one number for all threads or one for each. What a thread computes from its own index alone is a number; so an
//! address in shared memory is `base + k[thread]`, whatever shifts and exclusive ors it went through.
//!
//! What is not linear becomes a symbol with its definition (the smaller of two values, the low bits of one, one of two by a predicate), which
//! `solve` takes apart where a proof needs it.

use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::quick::QuickMap;

/// A symbol: a number that `Symbols` gives out.
pub(super) type Sym = u32;

/// A number for all threads, or one for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Num {
    One(i64),
    Each(Rc<[i64]>),
}

impl Hash for Num {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Num::One(k) => state.write_i64(*k),
            Num::Each(all) => {
                // A sample distinguishes most of them: those whose index has one bit.
                state.write_u64(all.len() as u64);
                let mut at = 0;
                while let Some(&k) = all.get(at) {
                    state.write_i64(k);
                    at = (2 * at).max(1);
                }
            }
        }
    }
}

impl Num {
    pub(super) fn at(&self, thread: usize) -> i64 {
        match self {
            Num::One(k) => *k,
            Num::Each(all) => all[thread],
        }
    }

    /// One number, if all threads have the same.
    pub(super) fn one(&self) -> Option<i64> {
        match self {
            Num::One(k) => Some(*k),
            Num::Each(_) => None,
        }
    }

    pub(super) fn each(all: Vec<i64>) -> Self {
        match all.split_first() {
            Some((first, rest)) if rest.iter().all(|k| k == first) => Num::One(*first),
            _ => Num::Each(all.into()),
        }
    }

    /// A number for each thread, or one if all are the same.
    fn of(all: Rc<[i64]>) -> Self {
        match all.split_first() {
            Some((first, rest)) if rest.iter().all(|k| k == first) => Num::One(*first),
            _ => Num::Each(all),
        }
    }

    pub(super) fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        match self {
            Num::One(k) => Num::One(f(*k)),
            Num::Each(all) => Num::of(all.iter().map(|&k| f(k)).collect()),
        }
    }

    pub(super) fn zip(&self, other: &Self, f: impl Fn(i64, i64) -> i64) -> Self {
        match (self, other) {
            (Num::One(a), Num::One(b)) => Num::One(f(*a, *b)),
            (Num::One(a), b) => b.map(|b| f(*a, b)),
            (a, Num::One(b)) => a.map(|a| f(a, *b)),
            (Num::Each(a), Num::Each(b)) => {
                Num::of(a.iter().zip(b.iter()).map(|(&a, &b)| f(a, b)).collect())
            }
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == Num::One(0)
    }

    /// At least another number, for each thread of a mask.
    pub(super) fn is_at_least(&self, other: &Self, mask: &[bool]) -> bool {
        let each = |all: &[i64], f: &dyn Fn(i64) -> bool| {
            let mut each = all.iter().zip(mask);
            each.all(|(&k, taken)| !taken || f(k))
        };
        match (self, other) {
            (Num::One(a), Num::One(b)) => a >= b || !mask.contains(&true),
            (Num::One(a), Num::Each(b)) => each(b, &|b| *a >= b),
            (Num::Each(a), Num::One(b)) => each(a, &|a| a >= *b),
            (Num::Each(a), Num::Each(b)) => {
                let mut each = a.iter().zip(b.iter()).zip(mask);
                each.all(|((a, b), taken)| !taken || a >= b)
            }
        }
    }

    pub(super) fn all(&self, f: impl Fn(i64) -> bool) -> bool {
        match self {
            Num::One(k) => f(*k),
            Num::Each(all) => all.iter().all(|&k| f(k)),
        }
    }
}

/// Threads that have the same in each of some numbers: the class of each thread, and how many classes there are.
pub(super) fn alike<'n>(
    numbers: impl IntoIterator<Item = &'n Num>,
    threads: usize,
) -> (Vec<u32>, usize) {
    let mut classes = vec![0u32; threads];
    let mut count = 1;
    for number in numbers {
        let Num::Each(each) = number else { continue };
        let mut finer: QuickMap<(u32, i64), u32> = QuickMap::default();
        for (class, &k) in classes.iter_mut().zip(each.iter()) {
            let next = finer.len() as u32;
            *class = *finer.entry((*class, k)).or_insert(next);
        }
        count = finer.len();
    }
    (classes, count)
}

/// A product of at most four symbols, sorted; 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Mono(pub(super) [Sym; 4]);

impl Mono {
    pub(super) fn of(sym: Sym) -> Self {
        Mono([0, 0, 0, sym])
    }

    pub(super) fn symbols(&self) -> impl Iterator<Item = Sym> + '_ {
        self.0.iter().copied().filter(|&s| s != 0)
    }

    pub(super) fn times(&self, other: &Self) -> Option<Self> {
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lin {
    /// Sorted by monomial, without zero coefficients.
    pub(super) terms: Vec<(Mono, Num)>,
    pub(super) k: Num,
}

impl Lin {
    pub(super) fn constant(k: i64) -> Self {
        Self::number(Num::One(k))
    }

    pub(super) fn number(k: Num) -> Self {
        Self {
            terms: Vec::new(),
            k,
        }
    }

    pub(super) fn symbol(sym: Sym) -> Self {
        Self {
            terms: vec![(Mono::of(sym), Num::One(1))],
            k: Num::One(0),
        }
    }

    /// The number, if no symbol is in it.
    pub(super) fn as_number(&self) -> Option<&Num> {
        self.terms.is_empty().then_some(&self.k)
    }

    pub(super) fn as_constant(&self) -> Option<i64> {
        self.as_number().and_then(Num::one)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.terms.is_empty() && self.k.is_zero()
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        self.merged(other, 1)
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        self.merged(other, -1)
    }

    pub(super) fn plus(&self, k: i64) -> Self {
        Self {
            terms: self.terms.clone(),
            k: self.k.map(|x| x.wrapping_add(k)),
        }
    }

    fn merged(&self, other: &Self, sign: i64) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < other.terms.len() {
            let (a, b) = (self.terms.get(i), other.terms.get(j));
            match (a, b) {
                (Some(a), Some(b)) if a.0 == b.0 => {
                    let c = a.1.zip(&b.1, |x, y| x.wrapping_add(sign.wrapping_mul(y)));
                    if !c.is_zero() {
                        terms.push((a.0, c));
                    }
                    (i, j) = (i + 1, j + 1);
                }
                (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => {
                    terms.push(a.clone());
                    i += 1;
                }
                (_, Some(b)) => {
                    terms.push((b.0, b.1.map(|y| sign.wrapping_mul(y))));
                    j += 1;
                }
                _ => break,
            }
        }
        let k = self
            .k
            .zip(&other.k, |x, y| x.wrapping_add(sign.wrapping_mul(y)));
        Self { terms, k }
    }

    pub(super) fn scale(&self, c: i64) -> Self {
        self.scale_each(&Num::One(c))
    }

    pub(super) fn scale_each(&self, c: &Num) -> Self {
        let mut terms = Vec::with_capacity(self.terms.len());
        for (m, x) in &self.terms {
            let x = x.zip(c, i64::wrapping_mul);
            if !x.is_zero() {
                terms.push((*m, x));
            }
        }
        Self {
            terms,
            k: self.k.zip(c, i64::wrapping_mul),
        }
    }

    /// The product; none where it has more than four symbols.
    pub(super) fn mul(&self, other: &Self) -> Option<Self> {
        let mut sum = other.scale_each(&self.k);
        for (m, c) in &self.terms {
            let mut part = Lin {
                terms: vec![(*m, c.zip(&other.k, i64::wrapping_mul))],
                k: Num::One(0),
            };
            part.terms.retain(|(_, c)| !c.is_zero());
            sum = sum.add(&part);
            for (n, d) in &other.terms {
                let product = m.times(n)?;
                let c = c.zip(d, i64::wrapping_mul);
                if !c.is_zero() {
                    sum = sum.add(&Lin {
                        terms: vec![(product, c)],
                        k: Num::One(0),
                    });
                }
            }
        }
        Some(sum)
    }

    pub(super) fn symbols(&self) -> impl Iterator<Item = Sym> + '_ {
        self.terms.iter().flat_map(|(m, _)| m.symbols())
    }

    pub(super) fn mentions(&self, sym: Sym) -> bool {
        self.symbols().any(|s| s == sym)
    }

    /// 2ⁿ with the largest n such that every coefficient of a symbol is a multiple of it.
    pub(super) fn symbol_alignment(&self) -> u32 {
        let mut zeros = 62;
        for (_, c) in &self.terms {
            match c {
                Num::One(c) => zeros = zeros.min(c.trailing_zeros()),
                Num::Each(all) => {
                    for c in all.iter() {
                        zeros = zeros.min(c.trailing_zeros());
                    }
                }
            }
        }
        zeros
    }

    /// The value for the threads of a mask: numbers that are the same for all of them become one.
    pub(super) fn restricted(&self, mask: &[bool]) -> Lin {
        let num = |n: &Num| match n {
            Num::One(_) => n.clone(),
            Num::Each(all) => {
                let mut of = all.iter().zip(mask).filter(|(_, m)| **m).map(|(k, _)| *k);
                match of.next() {
                    Some(first) if of.all(|k| k == first) => Num::One(first),
                    _ => n.clone(),
                }
            }
        };
        let terms = self.terms.iter().map(|(m, c)| (*m, num(c)));
        Lin {
            terms: terms.filter(|(_, c)| !c.is_zero()).collect(),
            k: num(&self.k),
        }
    }

    /// The value of some threads, in their order.
    pub(super) fn of_threads(&self, threads: &[usize]) -> Lin {
        let num = |n: &Num| match n {
            Num::One(_) => n.clone(),
            Num::Each(all) => Num::each(threads.iter().map(|&t| all[t]).collect()),
        };
        let terms = self.terms.iter().map(|(m, c)| (*m, num(c)));
        Lin {
            terms: terms.filter(|(_, c)| !c.is_zero()).collect(),
            k: num(&self.k),
        }
    }

    /// A value that differs from this one by a multiple of 2ⁿ, with numbers below 2ⁿ.
    pub(super) fn modulo(&self, bits: u32) -> Lin {
        let num = |n: &Num| n.map(|k| k & ((1i64 << bits) - 1));
        let terms = self.terms.iter().map(|(m, c)| (*m, num(c)));
        Lin {
            terms: terms.filter(|(_, c)| !c.is_zero()).collect(),
            k: num(&self.k),
        }
    }

    /// The symbol that it is, if it is one.
    pub(super) fn single(&self) -> Option<Sym> {
        match &self.terms[..] {
            [(m, Num::One(1))] if self.k.is_zero() => {
                let mut symbols = m.symbols();
                symbols.next().filter(|_| symbols.next().is_none())
            }
            _ => None,
        }
    }

    /// The largest value that is at most this one and, like its symbols, a multiple of a power of two.
    pub(super) fn tightened(&self) -> Lin {
        let bits = self.symbol_alignment();
        if bits == 0 || self.terms.is_empty() {
            return self.clone();
        }
        Lin {
            terms: self.terms.clone(),
            k: self.k.map(|k| k >> bits << bits),
        }
    }

    /// The same value with a symbol replaced.
    pub(super) fn substitute(&self, sym: Sym, by: &Lin) -> Option<Lin> {
        if !self.mentions(sym) {
            return Some(self.clone());
        }
        let mentions = |m: &Mono| m.symbols().any(|s| s == sym);
        let others = self.terms.iter().filter(|(m, _)| !mentions(m));
        let mut sum = Lin {
            terms: others.cloned().collect(),
            k: self.k.clone(),
        };
        for (m, c) in self.terms.iter().filter(|(m, _)| mentions(m)) {
            let mut product = Lin::number(c.clone());
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
