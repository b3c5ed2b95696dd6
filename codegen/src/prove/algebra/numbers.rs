//! The numbers of threads, kept once: what is the same for all threads, or differs by a pattern.
//!
//! A kernel has thousands of values with a number for each thread, and few patterns: what one thread has more than thread 0. An address moved by a
//! constant has the same pattern, and so has each of a hundred stores that follow each other. So a number is a pattern and a constant, each pattern is kept
//! once and known by its place in a table, and so are sets of threads and the terms of values. To compare two is to compare two numbers; the sum of
//! two patterns, the least number of a set of threads and the like are computed once.
//!
//! ```text
//! address of store j by thread t    4·(t mod 32) + 512·(t / 32) + 2048·j    256 threads, 64 stores
//! kept                              one pattern (0, 4, 8, …), 64 constants
//! ```
//!
//! A proof owns its [`Tables`]. While it has them, they are this thread's, so that a sum of two numbers needs no argument beside them.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;

use crate::prove::algebra::value::{Mono, Term};
use crate::quick::{Quick, QuickMap};

/// A number for all threads, or one for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) struct Num {
    /// What each thread has more than thread 0; `SAME` if none has.
    pattern: u32,
    /// What thread 0 has.
    k: i64,
}

/// The pattern of a number that all threads have.
const SAME: u32 = 0;

/// A set of threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) struct Mask(u32);

/// The terms of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(in crate::prove) struct Terms(u32);

/// Some threads, in an order.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Chosen {
    number: u32,
    pub(in crate::prove) threads: Rc<[usize]>,
}

/// The numbers of all threads, to be looked at one after the other.
pub(in crate::prove) struct Each {
    pattern: Rc<[i64]>,
    k: i64,
}

impl Each {
    /// How many threads have a number of their own: none if all have the same.
    pub(in crate::prove) fn count(&self) -> usize {
        self.pattern.len()
    }

    pub(in crate::prove) fn at(&self, thread: usize) -> i64 {
        match self.pattern.get(thread) {
            Some(more) => self.k.wrapping_add(*more),
            None => self.k,
        }
    }
}

/// Lists that are kept once, by number.
struct Lists<T> {
    all: Vec<Rc<[T]>>,
    known: QuickMap<Rc<[T]>, u32>,
}

impl<T: Eq + Hash + Clone> Lists<T> {
    /// With the empty list as the first.
    fn new() -> Self {
        let mut lists = Self {
            all: Vec::new(),
            known: QuickMap::default(),
        };
        lists.number(Vec::new());
        lists
    }

    fn number(&mut self, list: Vec<T>) -> u32 {
        if let Some(&known) = self.known.get(&list[..]) {
            return known;
        }
        let (number, list) = (self.all.len() as u32, Rc::<[T]>::from(list));
        self.all.push(Rc::clone(&list));
        self.known.insert(list, number);
        number
    }

    fn get(&self, number: u32) -> &Rc<[T]> {
        &self.all[number as usize]
    }
}

/// Facts about a pattern.
#[derive(Clone, Copy)]
struct Shape {
    lo: i64,
    hi: i64,
    /// 2ⁿ with this n divides all of it.
    zeros: u32,
}

/// What is kept.
struct Kept {
    patterns: Lists<i64>,
    /// Of each pattern.
    shapes: Vec<Shape>,
    masks: Lists<bool>,
    /// How many threads each set has.
    counts: Vec<usize>,
    terms: Lists<Term>,
    /// Of each list of terms, n where 2ⁿ divides every coefficient, and the products of symbols in it, as bits; several may share one; and the largest coefficient.
    term_shapes: Vec<(u32, u128, u64)>,
    chosen: Lists<usize>,
    sums: QuickMap<(u32, u32), u32>,
    products: QuickMap<(u32, i64), u32>,
    low: QuickMap<(Num, u32), Num>,
    shifted: QuickMap<(Num, u32), Num>,
    gathered: QuickMap<(u32, u32), Num>,
    /// The least and the greatest of a pattern over a set of threads.
    extremes: QuickMap<(u32, Mask), (i64, i64)>,
    /// Classes of threads that have the same in each of some patterns.
    classes: QuickMap<Vec<u32>, Rc<Classes>>,
    /// One thread of each class and set of threads: the one with the least in a pattern.
    least: QuickMap<(Vec<u32>, u32, Mask), Chosen>,
    term_sums: QuickMap<(Terms, Terms, i64), Terms>,
    term_products: QuickMap<(Terms, Num), Terms>,
    term_gathered: QuickMap<(Terms, u32), Terms>,
}

/// The class of each thread, and how many classes there are.
pub(in crate::prove) struct Classes {
    pub(in crate::prove) of: Vec<u32>,
    pub(in crate::prove) count: usize,
}

impl Kept {
    fn new() -> Self {
        let shape = Shape {
            lo: 0,
            hi: 0,
            zeros: 64,
        };
        Self {
            patterns: Lists::new(),
            shapes: vec![shape],
            masks: Lists::new(),
            counts: vec![0],
            terms: Lists::new(),
            term_shapes: vec![(62, 0, 0)],
            chosen: Lists::new(),
            sums: QuickMap::default(),
            products: QuickMap::default(),
            low: QuickMap::default(),
            shifted: QuickMap::default(),
            gathered: QuickMap::default(),
            extremes: QuickMap::default(),
            classes: QuickMap::default(),
            least: QuickMap::default(),
            term_sums: QuickMap::default(),
            term_products: QuickMap::default(),
            term_gathered: QuickMap::default(),
        }
    }

    /// The pattern of numbers that begin with 0.
    fn pattern(&mut self, more: Vec<i64>) -> u32 {
        if more.iter().all(|&k| k == 0) {
            return SAME;
        }
        let shape = Shape {
            lo: more.iter().copied().min().unwrap_or(0),
            hi: more.iter().copied().max().unwrap_or(0),
            zeros: more.iter().fold(0, |all, k| all | k).trailing_zeros(),
        };
        let number = self.patterns.number(more);
        if number as usize == self.shapes.len() {
            self.shapes.push(shape);
        }
        number
    }

    fn sum(&mut self, p: u32, q: u32) -> u32 {
        if p == SAME || q == SAME {
            return p | q;
        }
        let key = (p.min(q), p.max(q));
        if let Some(&known) = self.sums.get(&key) {
            return known;
        }
        let (a, b) = (self.patterns.get(p), self.patterns.get(q));
        let sum = a.iter().zip(b.iter()).map(|(a, b)| a.wrapping_add(*b));
        let sum = sum.collect();
        let sum = self.pattern(sum);
        self.sums.insert(key, sum);
        sum
    }

    fn product(&mut self, p: u32, c: i64) -> u32 {
        if p == SAME || c == 1 {
            return p;
        }
        if let Some(&known) = self.products.get(&(p, c)) {
            return known;
        }
        let all = self.patterns.get(p).iter().map(|a| a.wrapping_mul(c));
        let all = all.collect();
        let product = self.pattern(all);
        self.products.insert((p, c), product);
        product
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(Kept::new());
}

fn kept<R>(f: impl FnOnce(&mut Kept) -> R) -> R {
    KEPT.with_borrow_mut(f)
}

/// The tables of a proof. Numbers, sets and terms belong to the tables in which they were made, and are not used after them.
pub(in crate::prove) struct Tables {
    /// Those of the proof around this one.
    outer: Option<Kept>,
}

impl Tables {
    /// Empty tables, which are this thread's until they are dropped.
    pub(in crate::prove) fn new() -> Self {
        let outer = Some(KEPT.replace(Kept::new()));
        Self { outer }
    }
}

/// How many patterns the tables have.
pub(in crate::prove) fn patterns() -> usize {
    kept(|kept| kept.shapes.len())
}

impl Drop for Tables {
    fn drop(&mut self) {
        if let Some(outer) = self.outer.take() {
            KEPT.set(outer);
        }
    }
}

impl Num {
    pub(in crate::prove) const ZERO: Self = Self::same(0);

    /// What all threads have.
    pub(in crate::prove) const fn same(k: i64) -> Self {
        Self { pattern: SAME, k }
    }

    pub(in crate::prove) fn each(all: Vec<i64>) -> Self {
        let Some(&k) = all.first() else {
            return Self::same(0);
        };
        let mut more = all;
        for x in &mut more {
            *x = x.wrapping_sub(k);
        }
        let pattern = kept(|kept| kept.pattern(more));
        Self { pattern, k }
    }

    /// The numbers of all threads.
    pub(in crate::prove) fn values(self) -> Each {
        Each {
            pattern: kept(|kept| Rc::clone(kept.patterns.get(self.pattern))),
            k: self.k,
        }
    }

    pub(in crate::prove) fn at(self, thread: usize) -> i64 {
        self.values().at(thread)
    }

    /// One number, if all threads have the same.
    pub(in crate::prove) fn one(self) -> Option<i64> {
        (self.pattern == SAME).then_some(self.k)
    }

    pub(in crate::prove) fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    pub(in crate::prove) fn plus(self, k: i64) -> Self {
        Self {
            k: self.k.wrapping_add(k),
            ..self
        }
    }

    pub(in crate::prove) fn add(self, other: Self) -> Self {
        let pattern = match (self.pattern, other.pattern) {
            (p, SAME) => p,
            (SAME, q) => q,
            (p, q) => kept(|kept| kept.sum(p, q)),
        };
        Self {
            pattern,
            k: self.k.wrapping_add(other.k),
        }
    }

    pub(in crate::prove) fn scale(self, c: i64) -> Self {
        let pattern = match self.pattern {
            SAME => SAME,
            p => kept(|kept| kept.product(p, c)),
        };
        Self {
            pattern,
            k: self.k.wrapping_mul(c),
        }
    }

    pub(in crate::prove) fn mul(self, other: Self) -> Self {
        match (self.one(), other.one()) {
            (_, Some(c)) => self.scale(c),
            (Some(c), _) => other.scale(c),
            _ => self.zip(other, i64::wrapping_mul),
        }
    }

    pub(in crate::prove) fn map(self, f: impl Fn(i64) -> i64) -> Self {
        if self.pattern == SAME {
            return Self::same(f(self.k));
        }
        let values = self.values();
        Self::each((0..values.pattern.len()).map(|t| f(values.at(t))).collect())
    }

    pub(in crate::prove) fn zip(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        if self.pattern == SAME && other.pattern == SAME {
            return Self::same(f(self.k, other.k));
        }
        let (a, b) = (self.values(), other.values());
        // A number that all have has no list.
        let count = match (a.pattern.len(), b.pattern.len()) {
            (0, n) | (n, 0) => n,
            (m, n) => m.min(n),
        };
        Self::each((0..count).map(|t| f(a.at(t), b.at(t))).collect())
    }

    /// As [`map`](Self::map), if there is a result for each.
    pub(in crate::prove) fn map_some(self, f: impl Fn(i64) -> Option<i64>) -> Option<Self> {
        self.zip_some(self, |a, _| f(a))
    }

    /// As [`zip`](Self::zip), if there is a result for each.
    pub(in crate::prove) fn zip_some(
        self,
        other: Self,
        f: impl Fn(i64, i64) -> Option<i64>,
    ) -> Option<Self> {
        let all = std::cell::Cell::new(true);
        let result = self.zip(other, |a, b| {
            f(a, b).unwrap_or_else(|| {
                all.set(false);
                0
            })
        });
        all.get().then_some(result)
    }

    /// The low bits of each number.
    pub(in crate::prove) fn low(self, bits: u32) -> Self {
        let mask = (1i64 << bits) - 1;
        if self.pattern == SAME {
            return Self::same(self.k & mask);
        }
        // What is above does not matter.
        let key = (
            Self {
                k: self.k & mask,
                ..self
            },
            bits,
        );
        if let Some(known) = kept(|kept| kept.low.get(&key).copied()) {
            return known;
        }
        let low = self.map(|k| k & mask);
        kept(|kept| kept.low.insert(key, low));
        low
    }

    /// Each number divided by a power of two, rounded down.
    pub(in crate::prove) fn shr(self, by: u32) -> Self {
        if self.pattern == SAME || self.bounds().is_none() {
            return self.map(|k| k >> by);
        }
        // What is above is added afterwards.
        let above = self.k >> by;
        let rest = self.plus(-(above << by));
        if let Some(known) = kept(|kept| kept.shifted.get(&(rest, by)).copied()) {
            return known.plus(above);
        }
        let shifted = rest.map(|k| k >> by);
        kept(|kept| kept.shifted.insert((rest, by), shifted));
        shifted.plus(above)
    }

    /// 2ⁿ with this n divides each of them.
    pub(in crate::prove) fn zeros(self) -> u32 {
        let zeros = match self.pattern {
            SAME => 64,
            p => kept(|kept| kept.shapes[p as usize].zeros),
        };
        zeros.min(self.k.trailing_zeros())
    }

    /// The least and the greatest of the pattern, if no number of the threads wraps around.
    fn bounds(self) -> Option<(i64, i64)> {
        if self.pattern == SAME {
            return Some((0, 0));
        }
        let shape = kept(|kept| kept.shapes[self.pattern as usize]);
        self.k.checked_add(shape.lo)?;
        self.k.checked_add(shape.hi)?;
        Some((shape.lo, shape.hi))
    }

    /// The least and the greatest of all.
    pub(in crate::prove) fn range(self) -> (i64, i64) {
        if let Some((lo, hi)) = self.bounds() {
            return (self.k + lo, self.k + hi);
        }
        let values = self.values();
        let all = || (0..values.pattern.len()).map(|t| values.at(t));
        (all().min().unwrap_or(self.k), all().max().unwrap_or(self.k))
    }

    /// The largest, whatever its sign.
    pub(in crate::prove) fn magnitude(self) -> u64 {
        let (least, most) = self.range();
        least.unsigned_abs().max(most.unsigned_abs())
    }

    /// The least and the greatest number of the threads of `mask`; `None` if the mask is empty.
    pub(in crate::prove) fn range_of(self, mask: Mask) -> Option<(i64, i64)> {
        if mask.is_empty() {
            return None;
        }
        if self.pattern == SAME {
            return Some((self.k, self.k));
        }
        let list = mask.list();
        let of = |values: &Each| {
            let all = || (0..list.len()).filter(|&t| list[t]).map(|t| values.at(t));
            (all().min().unwrap_or(0), all().max().unwrap_or(0))
        };
        let values = self.values();
        if self.bounds().is_none() {
            return Some(of(&values));
        }
        let key = (self.pattern, mask);
        let known = kept(|kept| kept.extremes.get(&key).copied());
        let (lo, hi) = known.unwrap_or_else(|| {
            let found = of(&Each { k: 0, ..values });
            kept(|kept| kept.extremes.insert(key, found));
            found
        });
        Some((self.k + lo, self.k + hi))
    }

    /// At least another number, for each thread of a mask.
    pub(in crate::prove) fn is_at_least(self, other: Self, mask: Mask) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some(_), Some(_)) if self.pattern == other.pattern => {
                self.k >= other.k || mask.is_empty()
            }
            (Some((lo, _)), Some((_, hi))) if self.k + lo >= other.k + hi => true,
            _ => {
                let (a, b, list) = (self.values(), other.values(), mask.list());
                (0..list.len()).all(|t| !list[t] || a.at(t) >= b.at(t))
            }
        }
    }

    /// The same as another, for each thread of a mask.
    pub(in crate::prove) fn is_equal(self, other: Self, mask: Mask) -> bool {
        self == other || {
            let difference = self.add(other.scale(-1));
            matches!(difference.range_of(mask), None | Some((0, 0)))
        }
    }

    /// For the threads of a mask what the first has, for others what the second has.
    pub(in crate::prove) fn chosen(mask: Mask, first: Self, second: Self) -> Self {
        let (a, b, list) = (first.values(), second.values(), mask.list());
        let each = list.iter().enumerate();
        Self::each(
            each.map(|(t, &taken)| if taken { a.at(t) } else { b.at(t) })
                .collect(),
        )
    }

    /// What these threads have, in their order.
    pub(in crate::prove) fn of_threads(self, chosen: &Chosen) -> Self {
        if self.pattern == SAME {
            return self;
        }
        let key = (self.pattern, chosen.number);
        let known = kept(|kept| kept.gathered.get(&key).copied());
        let gathered = known.unwrap_or_else(|| {
            let values = Each {
                k: 0,
                ..self.values()
            };
            let all = chosen.threads.iter().map(|&t| values.at(t));
            let gathered = Self::each(all.collect());
            kept(|kept| kept.gathered.insert(key, gathered));
            gathered
        });
        gathered.plus(self.k)
    }

    /// The same if all threads of a mask have the same.
    pub(in crate::prove) fn restricted(self, mask: Mask) -> Self {
        match self.range_of(mask) {
            Some((lo, hi)) if lo == hi => Self::same(lo),
            _ => self,
        }
    }

    /// What two numbers that are moved by constants have in common.
    pub(in crate::prove) fn pattern(self) -> u32 {
        self.pattern
    }
}

impl Mask {
    pub(in crate::prove) fn of(threads: Vec<bool>) -> Self {
        kept(|kept| {
            let count = threads.iter().filter(|taken| **taken).count();
            let number = kept.masks.number(threads);
            if number as usize == kept.counts.len() {
                kept.counts.push(count);
            }
            Self(number)
        })
    }

    /// All of so many threads.
    pub(in crate::prove) fn all(threads: usize) -> Self {
        Self::of(vec![true; threads])
    }

    /// Those of these threads that are to be kept.
    pub(in crate::prove) fn keep(self, f: impl Fn(usize) -> bool) -> Self {
        let list = self.list();
        let kept = list.iter().enumerate().map(|(t, &taken)| taken && f(t));
        Self::of(kept.collect())
    }

    /// The threads of either.
    pub(in crate::prove) fn or(self, other: Self) -> Self {
        let (a, b) = (self.list(), other.list());
        Self::of(a.iter().zip(b.iter()).map(|(a, b)| *a || *b).collect())
    }

    pub(in crate::prove) fn list(self) -> Rc<[bool]> {
        kept(|kept| Rc::clone(kept.masks.get(self.0)))
    }

    /// The first thread of it.
    pub(in crate::prove) fn first(self) -> Option<usize> {
        self.list().iter().position(|&taken| taken)
    }

    pub(in crate::prove) fn is_empty(self) -> bool {
        kept(|kept| kept.counts[self.0 as usize]) == 0
    }

    pub(in crate::prove) fn is_full(self) -> bool {
        kept(|kept| kept.counts[self.0 as usize] == kept.masks.get(self.0).len())
    }
}

/// Threads that have the same in each of some patterns.
pub(in crate::prove) fn alike(mut patterns: Vec<u32>, threads: usize) -> Rc<Classes> {
    patterns.sort_unstable();
    patterns.dedup();
    patterns.retain(|&p| p != SAME);
    if let Some(known) = kept(|kept| kept.classes.get(&patterns).cloned())
        && known.of.len() == threads
    {
        return known;
    }
    let mut of = vec![0u32; threads];
    let mut count = 1;
    for &pattern in &patterns {
        let each = kept(|kept| Rc::clone(kept.patterns.get(pattern)));
        let mut finer: QuickMap<(u32, i64), u32> = QuickMap::default();
        for (class, &k) in of.iter_mut().zip(each.iter()) {
            let next = finer.len() as u32;
            *class = *finer.entry((*class, k)).or_insert(next);
        }
        count = finer.len();
    }
    let classes = Rc::new(Classes { of, count });
    kept(|kept| kept.classes.insert(patterns, Rc::clone(&classes)));
    classes
}

/// Of the threads of a mask that have the same in each of some patterns, one: the one with the least of `x`.
pub(in crate::prove) fn representatives(mut patterns: Vec<u32>, x: Num, mask: Mask) -> Chosen {
    patterns.sort_unstable();
    patterns.dedup();
    patterns.retain(|&p| p != SAME);
    let exact = x.bounds().is_some();
    let key = (patterns, x.pattern, mask);
    if exact && let Some(known) = kept(|kept| kept.least.get(&key).cloned()) {
        return known;
    }
    let (list, values) = (mask.list(), x.values());
    let classes = alike(key.0.clone(), list.len());
    let mut least: Vec<Option<usize>> = vec![None; classes.count];
    for t in (0..list.len()).filter(|&t| list[t]) {
        let slot = &mut least[classes.of[t] as usize];
        if slot.is_none_or(|other| values.at(t) < values.at(other)) {
            *slot = Some(t);
        }
    }
    let threads: Vec<usize> = least.into_iter().flatten().collect();
    let chosen = kept(|kept| {
        let number = kept.chosen.number(threads);
        Chosen {
            number,
            threads: Rc::clone(kept.chosen.get(number)),
        }
    });
    if exact {
        kept(|kept| kept.least.insert(key, chosen.clone()));
    }
    chosen
}

impl Terms {
    pub(in crate::prove) const NONE: Self = Self(0);

    pub(in crate::prove) fn of(terms: Vec<Term>) -> Self {
        let number = kept(|kept| kept.terms.number(terms));
        if kept(|kept| kept.term_shapes.len() == number as usize) {
            let list = Self(number).list();
            let zeros = list.iter().map(|(_, c)| c.zeros()).min();
            let bit = |m: &Mono| 1u128 << (Quick::default().hash_one(m) % 128);
            let products = list.iter().fold(0, |all, (m, _)| all | bit(m));
            let most = list.iter().map(|(_, c)| c.magnitude()).max();
            let shape = (zeros.unwrap_or(62).min(62), products, most.unwrap_or(0));
            kept(|kept| kept.term_shapes.push(shape));
        }
        Self(number)
    }

    pub(in crate::prove) fn list(self) -> Rc<[Term]> {
        kept(|kept| Rc::clone(kept.terms.get(self.0)))
    }

    pub(in crate::prove) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// 2ⁿ with this n divides every coefficient; at most 62.
    pub(in crate::prove) fn zeros(self) -> u32 {
        kept(|kept| kept.term_shapes[self.0 as usize].0)
    }

    /// The products of symbols in it, as bits. Several may share a bit, so that lists without a bit in common have no product in common.
    pub(in crate::prove) fn products(self) -> u128 {
        kept(|kept| kept.term_shapes[self.0 as usize].1)
    }

    /// The largest coefficient, whatever its sign.
    pub(in crate::prove) fn magnitude(self) -> u64 {
        kept(|kept| kept.term_shapes[self.0 as usize].2)
    }

    /// The sum of these and `sign` times the others.
    pub(in crate::prove) fn merged(self, others: Self, sign: i64) -> Self {
        if others.is_empty() {
            return self;
        }
        if self.is_empty() && sign == 1 {
            return others;
        }
        let key = (self, others, sign);
        if let Some(known) = kept(|kept| kept.term_sums.get(&key).copied()) {
            return known;
        }
        let (first, second) = (self.list(), others.list());
        let mut terms = Vec::with_capacity(first.len() + second.len());
        let (mut i, mut j) = (0, 0);
        while i < first.len() || j < second.len() {
            match (first.get(i), second.get(j)) {
                (Some(a), Some(b)) if a.0 == b.0 => {
                    let c = a.1.add(b.1.scale(sign));
                    if !c.is_zero() {
                        terms.push((a.0, c));
                    }
                    (i, j) = (i + 1, j + 1);
                }
                (Some(a), b) if b.is_none_or(|b| a.0 < b.0) => {
                    terms.push(*a);
                    i += 1;
                }
                (_, Some(b)) => {
                    terms.push((b.0, b.1.scale(sign)));
                    j += 1;
                }
                _ => break,
            }
        }
        let sum = Self::of(terms);
        kept(|kept| kept.term_sums.insert(key, sum));
        sum
    }

    /// The terms of some threads, in their order.
    pub(in crate::prove) fn of_threads(self, chosen: &Chosen) -> Self {
        let key = (self, chosen.number);
        if let Some(known) = kept(|kept| kept.term_gathered.get(&key).copied()) {
            return known;
        }
        let all = self.list();
        let all = all.iter().map(|(m, x)| (*m, x.of_threads(chosen)));
        let gathered = Self::of(all.filter(|(_, x)| !x.is_zero()).collect());
        kept(|kept| kept.term_gathered.insert(key, gathered));
        gathered
    }

    pub(in crate::prove) fn scale(self, c: Num) -> Self {
        if self.is_empty() || c == Num::same(1) {
            return self;
        }
        let key = (self, c);
        if let Some(known) = kept(|kept| kept.term_products.get(&key).copied()) {
            return known;
        }
        let all = self.list();
        let all = all.iter().map(|(m, x)| (*m, x.mul(c)));
        let product = Self::of(all.filter(|(_, x)| !x.is_zero()).collect());
        kept(|kept| kept.term_products.insert(key, product));
        product
    }
}
