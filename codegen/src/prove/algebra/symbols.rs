//! Symbols: what values are linear in, each with its range, and with its definition if it has one.

use std::ops::Range;
use std::rc::Rc;

use crate::index::code::Ty;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::meaning;
use crate::prove::algebra::numbers::{Mask, Num, Terms};
use crate::prove::algebra::value::{Lin, Mono, Sym};
use crate::quick::{QuickMap, QuickSet};

/// How a symbol is defined.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) enum Definition {
    /// By its range alone.
    Free(u32),
    /// One of two values, by a predicate.
    Ite(Rc<Formula>, Lin, Lin),
    /// The low bits of a value.
    Low(Lin, u32),
    /// A value shifted right.
    Shr(Lin, u32),
    /// A value divided by a constant, rounded down.
    Div(Lin, i64),
    /// A value that is never negative, divided by one that is at least 1, rounded down.
    Quotient(Lin, Lin),
    /// What that division leaves.
    Remainder(Lin, Lin),
    /// The larger of two.
    Max(Lin, Lin),
    /// The smaller of two.
    Min(Lin, Lin),
    /// Exclusive or.
    Xor(Lin, Lin),
    /// What a type reads where the bits are those of a value: the number in its range that differs from the value by whole periods of the type.
    Read(Lin, Ty),
    /// The element of an input, by the input's number and the coordinates: nothing writes an input, so that one place holds one number.
    Element(usize, Rc<[Lin]>),
}

impl Definition {
    /// The values that it is made of. One of two values is made of its predicate, too.
    fn values(&self) -> impl Iterator<Item = &Lin> {
        let mut place: &[Lin] = &[];
        let [a, b] = match self {
            Self::Free(_) => [None, None],
            Self::Element(_, at) => {
                place = at;
                [None, None]
            }
            Self::Low(a, _) | Self::Shr(a, _) | Self::Div(a, _) | Self::Read(a, _) => {
                [Some(a), None]
            }
            Self::Ite(_, a, b)
            | Self::Quotient(a, b)
            | Self::Remainder(a, b)
            | Self::Max(a, b)
            | Self::Min(a, b)
            | Self::Xor(a, b) => [Some(a), Some(b)],
        };
        a.into_iter().chain(b).chain(place)
    }

    /// Whether what it is made of is all as asked.
    pub(in crate::prove) fn all(
        &self,
        value: impl Fn(&Lin) -> bool,
        predicate: impl Fn(&Rc<Formula>) -> bool,
    ) -> bool {
        let chosen_by = match self {
            Self::Ite(p, ..) => Some(p),
            _ => None,
        };
        self.values().all(value) && chosen_by.is_none_or(predicate)
    }
}

/// How a value changes where a symbol grows by 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::prove) enum Change {
    /// Not at all: neither it nor what defines its symbols is made of that one.
    None,
    /// By a number.
    By(i64),
    /// In another way: a product, low bits, a quotient, a choice.
    Other,
}

/// What is known of a symbol.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Info {
    pub(in crate::prove) definition: Definition,
    pub(in crate::prove) lo: i128,
    pub(in crate::prove) hi: i128,
    /// Threads may have different values.
    pub(in crate::prove) each: bool,
    /// No number of its definition, or of those that it is made of, differs between threads.
    pub(in crate::prove) same: bool,
    /// What it is made of.
    roots: Roots,
}

/// What terms add at least and at most: the same for all threads, and more for each where their coefficients differ.
#[derive(Debug)]
struct Reach {
    lo: i128,
    hi: i128,
    each: Option<[Vec<i128>; 2]>,
    /// What their symbols are made of.
    roots: Roots,
    /// No number in their symbols' definitions differs between threads.
    same: bool,
}

/// A set of free symbols and of statements about data, as bits; several may share one.
type Roots = u128;

fn root(number: u32) -> Roots {
    1 << (number % Roots::BITS)
}

/// The symbols of a proof. Equal definitions are one symbol.
#[derive(Default, Debug)]
pub(in crate::prove) struct Symbols {
    all: Vec<Info>,
    known: QuickMap<Definition, Sym>,
    /// Symbols whose low bits are 0, in units of that.
    units: QuickMap<(Sym, u32), Sym>,
    free: u32,
    /// Statements about data that no launch changes.
    lasting: QuickSet<u32>,
    /// Cases that the solver has looked into.
    pub(in crate::prove) cases: usize,
    /// Values that were found to be at least 0, by their terms, patterns and threads: the number, and the facts that it follows from.
    pub(in crate::prove) reasons: QuickMap<(Terms, u32, Mask), Reason>,
    reaches: QuickMap<Terms, Rc<Reach>>,
    /// What terms are where a symbol is replaced; none where that has too many factors.
    replaced: QuickMap<(Terms, Sym, Lin), Option<Lin>>,
    /// Questions that were answered before.
    pub(in crate::prove) answers: QuickMap<Question, bool>,
}

/// The number of a value that was found to be at least 0, and the facts that it follows from.
pub(in crate::prove) type Reason = (Num, Vec<Rc<Formula>>);

/// A value that is to be at least 0, the facts that may matter, and the threads that it is asked for.
pub(in crate::prove) type Question = (Lin, Vec<Rc<Formula>>, Mask);

/// A divisor times 2^by, if it is one that a value can have.
fn shifted(d: i64, by: u32) -> Option<i64> {
    1i64.checked_shl(by).and_then(|power| d.checked_mul(power))
}

impl Symbols {
    pub(in crate::prove) fn info(&self, sym: Sym) -> &Info {
        &self.all[sym as usize - 1]
    }

    /// A new symbol with values in `lo..=hi`.
    pub(in crate::prove) fn free(&mut self, lo: i128, hi: i128, each: bool) -> Sym {
        self.free += 1;
        let definition = Definition::Free(self.free);
        self.add(definition, lo, hi, each)
    }

    /// A symbol whose `bits` low bits are 0, as a multiple of 2^bits.
    pub(in crate::prove) fn multiple(&mut self, sym: Sym, bits: u32) -> Lin {
        let known = self.units.get(&(sym, bits)).copied();
        let unit = known.unwrap_or_else(|| {
            let &Info { lo, hi, each, .. } = self.info(sym);
            self.free(lo >> bits, hi >> bits, each)
        });
        self.units.insert((sym, bits), unit);
        Lin::symbol(unit).scale(1 << bits)
    }

    /// The symbols that a symbol stands for without their low bits.
    pub(in crate::prove) fn origins(&self, unit: Sym) -> impl Iterator<Item = Sym> {
        let all = self.units.iter();
        all.filter(move |(_, known)| **known == unit)
            .map(|((of, _), _)| *of)
    }

    /// The symbol and the number of its low bits, if the statement says that they are 0: of the symbol itself, or of a power of two times it.
    pub(in crate::prove) fn low_bits_zero(&self, f: &Formula) -> Option<(Sym, u32)> {
        let (of, bits) = self.low_bits_of(f)?;
        let terms = of.terms.list();
        let [(m, c)] = &terms[..] else {
            return None;
        };
        let c = c.one()?;
        let mut symbols = m.symbols();
        let sym = symbols.next().filter(|_| symbols.next().is_none())?;
        let known = c.trailing_zeros();
        let power = of.k.is_zero() && c == 1 << known;
        (power && known < bits).then(|| (sym, bits - known))
    }

    /// The value and the number of its low bits, if the statement says that they are 0.
    pub(in crate::prove) fn low_bits_of(&self, f: &Formula) -> Option<(Lin, u32)> {
        let Formula::Ge(x) = f else { return None };
        let terms = x.terms.list();
        let [(m, c)] = &terms[..] else {
            return None;
        };
        // −c·low(of) ≥ 0: c times the value, with zeros below.
        let c = c
            .one()?
            .checked_neg()
            .filter(|c| *c > 0 && c.count_ones() == 1)?;
        let mut symbols = m.symbols();
        let sym = symbols.next().filter(|_| symbols.next().is_none())?;
        match &self.info(sym).definition {
            Definition::Low(of, bits) if x.k.is_zero() => {
                Some((of.scale(c), bits + c.trailing_zeros()))
            }
            _ => None,
        }
    }

    /// The number of a new opaque statement.
    pub(in crate::prove) fn opaque(&mut self) -> u32 {
        self.free += 1;
        self.free
    }

    /// How many free symbols and opaque statements there are: the number of the last.
    pub(in crate::prove) fn made(&self) -> u32 {
        self.free
    }

    /// Whether a symbol is one of these numbers, or is made of one.
    pub(in crate::prove) fn is_made_of(&self, s: Sym, own: &Range<u32>) -> bool {
        let is = |number: u32| own.start < number && number <= own.end;
        let apart = |x: &Lin| !x.symbols().any(|t| self.is_made_of(t, own));
        match &self.info(s).definition {
            Definition::Free(number) => is(*number),
            definition => !definition.all(apart, |p| !self.is_statement_of(p, own)),
        }
    }

    /// Whether a statement is made of one of these numbers.
    pub(in crate::prove) fn is_statement_of(&self, f: &Formula, own: &Range<u32>) -> bool {
        match f {
            Formula::True | Formula::False => false,
            Formula::Ge(x) => x.symbols().any(|s| self.is_made_of(s, own)),
            Formula::And(a, b) | Formula::Or(a, b) => {
                self.is_statement_of(a, own) || self.is_statement_of(b, own)
            }
            Formula::Opaque(id, _) | Formula::Not(id, _) => {
                own.start < *id && *id <= own.end && !self.lasts(*id)
            }
        }
    }

    /// The number of a new statement about data that all threads of a block have alike; `lasts` if that is what no launch changes.
    pub(in crate::prove) fn opaque_of_data(&mut self, lasts: bool) -> u32 {
        let id = self.opaque();
        if lasts {
            self.lasting.insert(id);
        }
        id
    }

    /// Whether a statement is of data that no launch changes.
    pub(in crate::prove) fn lasts(&self, id: u32) -> bool {
        self.lasting.contains(&id)
    }

    fn add(&mut self, definition: Definition, lo: i128, hi: i128, each: bool) -> Sym {
        let (mut roots, mut same) = match &definition {
            Definition::Free(number) => (root(*number), true),
            Definition::Ite(p, ..) => (self.roots_of(p), self.same_for_all(p)),
            _ => (0, true),
        };
        for x in definition.values() {
            roots |= self.roots(x);
            same &= self.same(x);
        }
        self.all.push(Info {
            definition,
            lo,
            hi,
            each,
            same,
            roots,
        });
        self.all.len() as Sym
    }

    /// What a value is made of.
    pub(in crate::prove) fn roots(&mut self, x: &Lin) -> Roots {
        self.reach(x.terms).roots
    }

    /// No number in the definitions of a value's symbols differs between threads.
    pub(in crate::prove) fn defined_alike(&mut self, x: &Lin) -> bool {
        self.reach(x.terms).same
    }

    /// What a statement is made of.
    pub(in crate::prove) fn roots_of(&mut self, f: &Formula) -> Roots {
        match f {
            Formula::True | Formula::False => 0,
            Formula::Ge(x) => self.roots(x),
            Formula::And(a, b) | Formula::Or(a, b) => self.roots_of(a) | self.roots_of(b),
            Formula::Opaque(id, _) | Formula::Not(id, _) => root(*id),
        }
    }

    /// No number in a value or in its symbols' definitions differs between threads.
    fn same(&mut self, x: &Lin) -> bool {
        let terms = x.terms.list();
        let one = x.k.one().is_some() && terms.iter().all(|(_, c)| c.one().is_some());
        one && self.defined_alike(x)
    }

    fn same_for_all(&mut self, f: &Formula) -> bool {
        match f {
            Formula::Ge(x) => self.same(x),
            Formula::And(a, b) | Formula::Or(a, b) => self.same_for_all(a) && self.same_for_all(b),
            _ => true,
        }
    }

    pub(in crate::prove) fn defined(
        &mut self,
        definition: Definition,
        lo: i128,
        hi: i128,
        each: bool,
    ) -> Lin {
        if let Some(&sym) = self.known.get(&definition) {
            return Lin::symbol(sym);
        }
        let sym = self.add(definition.clone(), lo, hi, each);
        self.known.insert(definition, sym);
        Lin::symbol(sym)
    }

    /// The symbol of a definition, if there is one.
    pub(in crate::prove) fn known(&self, definition: &Definition) -> Option<Sym> {
        self.known.get(definition).copied()
    }

    pub(in crate::prove) fn is_uniform(&self, x: &Lin) -> bool {
        x.k.one().is_some()
            && x.terms
                .list()
                .iter()
                .all(|(m, c)| c.one().is_some() && m.symbols().all(|s| !self.info(s).each))
    }

    /// The range of a monomial.
    fn range_of(&self, m: &Mono) -> (i128, i128) {
        let mut range = (1i128, 1i128);
        for s in m.symbols() {
            let i = self.info(s);
            let corners = [
                range.0.saturating_mul(i.lo),
                range.0.saturating_mul(i.hi),
                range.1.saturating_mul(i.lo),
                range.1.saturating_mul(i.hi),
            ];
            range = (
                corners.into_iter().min().unwrap_or(0),
                corners.into_iter().max().unwrap_or(0),
            );
        }
        range
    }

    /// What terms add at least and at most.
    fn reach(&mut self, terms: Terms) -> Rc<Reach> {
        if let Some(known) = self.reaches.get(&terms) {
            return Rc::clone(known);
        }
        let (mut lo, mut hi) = (0i128, 0i128);
        let (mut roots, mut same) = (0, true);
        let mut each: Option<[Vec<i128>; 2]> = None;
        for (m, c) in terms.list().iter() {
            let range = self.range_of(m);
            for info in m.symbols().map(|s| self.info(s)) {
                roots |= info.roots;
                same &= info.same;
            }
            let part = |c: i64| {
                let ends = [range.0, range.1].map(|x| x.saturating_mul(c.into()));
                (ends[0].min(ends[1]), ends[0].max(ends[1]))
            };
            if let Some(c) = c.one() {
                let (least, most) = part(c);
                (lo, hi) = (lo.saturating_add(least), hi.saturating_add(most));
                continue;
            }
            let values = c.values();
            let [least, most] =
                each.get_or_insert_with(|| [vec![0; values.count()], vec![0; values.count()]]);
            for (t, (least, most)) in least.iter_mut().zip(most).enumerate() {
                let (a, b) = part(values.at(t));
                (*least, *most) = (least.saturating_add(a), most.saturating_add(b));
            }
        }
        let reach = Rc::new(Reach {
            lo,
            hi,
            each,
            roots,
            same,
        });
        self.reaches.insert(terms, Rc::clone(&reach));
        reach
    }

    /// The threads of `mask` for which `x` may be negative; `None` if there is no such thread.
    pub(in crate::prove) fn negative(&mut self, x: &Lin, mask: Mask) -> Option<Mask> {
        let reach = self.reach(x.terms);
        if reach.each.is_none() {
            // The same for all threads but for their numbers.
            let (least, most) = x.k.range_of(mask)?;
            if reach.lo.saturating_add(least.into()) >= 0 {
                return None;
            }
            if reach.lo.saturating_add(most.into()) < 0 {
                return Some(mask);
            }
        }
        let k = x.k.values();
        let left = mask.keep(|t| {
            let more = match &reach.each {
                Some([least, _]) => least.get(t).copied().unwrap_or(i128::MIN),
                None => 0,
            };
            let least = reach.lo.saturating_add(more).saturating_add(k.at(t).into());
            least < 0
        });
        (!left.is_empty()).then_some(left)
    }

    /// Whether `x` is at least 0 for all threads of a mask, by the ranges of its symbols.
    pub(in crate::prove) fn never_negative(&mut self, x: &Lin, mask: Mask) -> bool {
        self.negative(x, mask).is_none()
    }

    /// The least and the greatest value of `x` over all threads.
    pub(in crate::prove) fn range(&mut self, x: &Lin) -> (i128, i128) {
        let reach = self.reach(x.terms);
        let Some([least, most]) = &reach.each else {
            let (lo, hi) = x.k.range();
            return (
                reach.lo.saturating_add(lo.into()),
                reach.hi.saturating_add(hi.into()),
            );
        };
        let k = x.k.values();
        let ends = |each: &[i128]| -> Vec<i128> {
            let all = each.iter().enumerate();
            all.map(|(t, x)| x.saturating_add(k.at(t).into())).collect()
        };
        let lo = ends(least).into_iter().min().unwrap_or(0);
        let hi = ends(most).into_iter().max().unwrap_or(0);
        (reach.lo.saturating_add(lo), reach.hi.saturating_add(hi))
    }

    pub(in crate::prove) fn differs(&self, x: &Lin) -> bool {
        !self.is_uniform(x)
    }

    /// `x` where `p` holds, else `y`.
    pub(in crate::prove) fn ite(
        &mut self,
        p: &Rc<Formula>,
        x: &Lin,
        y: &Lin,
        threads: usize,
    ) -> Lin {
        if x == y {
            return *x;
        }
        match &**p {
            Formula::True => return *x,
            Formula::False => return *y,
            _ => {}
        }
        // A matter of the thread's index: the numbers are chosen now.
        let chosen: Option<Vec<bool>> = (0..threads).map(|t| p.for_thread(t)).collect();
        if let Some(chosen) = chosen {
            let pick = |a: Num, b: Num| {
                let (a, b) = (a.values(), b.values());
                let each = (0..threads).map(|t| if chosen[t] { a.at(t) } else { b.at(t) });
                Num::each(each.collect())
            };
            let (of_x, of_y) = (x.terms.list(), y.terms.list());
            let mut terms = Vec::new();
            for (m, c) in of_x.iter() {
                let d = of_y.iter().find(|(n, _)| n == m).map(|(_, d)| *d);
                terms.push((*m, pick(*c, d.unwrap_or(Num::ZERO))));
            }
            for (m, d) in of_y.iter() {
                if !of_x.iter().any(|(n, _)| n == m) {
                    terms.push((*m, pick(Num::ZERO, *d)));
                }
            }
            terms.sort_by_key(|(m, _)| *m);
            return Lin::of(terms, pick(x.k, y.k));
        }
        let (a, b) = (self.range(x), self.range(y));
        let each = self.differs(x) || self.differs(y) || !p.is_uniform(self);
        let definition = Definition::Ite(Rc::clone(p), *x, *y);
        self.defined(definition, a.0.min(b.0), a.1.max(b.1), each)
    }

    /// The low `bits` bits of a value.
    pub(in crate::prove) fn low(&mut self, x: &Lin, bits: u32) -> Lin {
        let mask = (1i64 << bits) - 1;
        if x.symbol_alignment() >= bits {
            return Lin::number(x.k.low(bits));
        }
        let (lo, hi) = self.range(x);
        if lo >= 0 && hi <= i128::from(mask) {
            return *x;
        }
        // Bits that are 0 stay what they are: one form for `8·i mod 32` and `8·(i mod 4)`.
        let zeros = x.symbol_alignment().min(x.k.zeros());
        if zeros > 0 {
            let rest = self.shr(x, zeros);
            return self.low(&rest, bits - zeros).scale(1 << zeros);
        }
        let each = self.differs(x);
        self.defined(Definition::Low(*x, bits), 0, mask.into(), each)
    }

    /// A value shifted right, rounding down.
    pub(in crate::prove) fn shr(&mut self, x: &Lin, by: u32) -> Lin {
        if x.symbol_alignment() >= by {
            let terms = x.terms.list();
            return Lin::of(
                terms.iter().map(|(m, c)| (*m, c.map(|c| c >> by))),
                x.k.shr(by),
            );
        }
        let zeros = x.symbol_alignment().min(x.k.zeros());
        if zeros > 0 {
            let rest = self.shr(x, zeros);
            return self.shr(&rest, by - zeros);
        }
        if let Some(sym) = x.single()
            && let Definition::Div(of, d) = self.info(sym).definition
            && let Some(d) = shifted(d, by)
        {
            return self.div(&of, d);
        }
        let (lo, hi) = self.range(x);
        let each = self.differs(x);
        self.defined(Definition::Shr(*x, by), lo >> by, hi >> by, each)
    }

    /// A value that is never negative, divided by a constant.
    pub(in crate::prove) fn div(&mut self, x: &Lin, d: i64) -> Lin {
        if d.count_ones() == 1 {
            return self.shr(x, d.trailing_zeros());
        }
        if let Some(k) = x.as_number() {
            return Lin::number(k.map(|k| k.div_euclid(d)));
        }
        // Whole multiples of the divisor are whole in the quotient.
        let whole = |c: &Num| c.one().filter(|c| c % d == 0).map(|c| Num::same(c / d));
        let terms = x.terms.list();
        if terms.iter().any(|(_, c)| whole(c).is_some()) {
            let quotients = terms.iter().filter_map(|(m, c)| Some((*m, whole(c)?)));
            let quotients = Lin::of(quotients, Num::ZERO);
            let rest = terms.iter().filter(|(_, c)| whole(c).is_none());
            let rest = Lin::of(rest.copied(), x.k);
            return self.div(&rest, d).add(&quotients);
        }
        // One form for what is divided in iterations: `(x >> 1) / 3` and `x / 6`, and one for `2·x / 6` and `x / 3`.
        let before = x.single().map(|sym| self.info(sym).definition.clone());
        let whole = match before {
            Some(Definition::Shr(of, by)) => shifted(d, by).map(|d| (of, d)),
            Some(Definition::Div(of, by)) => d.checked_mul(by).map(|d| (of, d)),
            _ => None,
        };
        if let Some((of, d)) = whole {
            return self.div(&of, d);
        }
        let zeros = x
            .symbol_alignment()
            .min(x.k.zeros())
            .min(d.trailing_zeros());
        if zeros > 0 {
            let rest = self.shr(x, zeros);
            return self.div(&rest, d >> zeros);
        }
        let (lo, hi) = self.range(x);
        let each = self.differs(x);
        let d128 = i128::from(d);
        self.defined(
            Definition::Div(*x, d),
            lo.div_euclid(d128),
            hi.div_euclid(d128),
            each,
        )
    }

    /// Bits of `x` in a mask that is one run of ones.
    pub(in crate::prove) fn and(&mut self, x: &Lin, mask: u64) -> Lin {
        if let Some(k) = x.as_number() {
            return Lin::number(k.map(|k| k & mask as i64));
        }
        let (start, length) = (mask.trailing_zeros(), mask.count_ones());
        if mask == 0 {
            return Lin::constant(0);
        }
        if length + start + mask.leading_zeros() != 64 || start + length >= 63 {
            return Lin::symbol(self.free(0, i128::from(mask), true));
        }
        let low = self.low(x, start + length);
        if start == 0 {
            return low;
        }
        let less = self.low(&low, start);
        low.sub(&less)
    }

    /// Exclusive or, of two's complements if one of them may be negative.
    pub(in crate::prove) fn xor(&mut self, x: &Lin, y: &Lin) -> Lin {
        let (x, y) = if x.terms.is_empty() { (y, x) } else { (x, y) };
        if let Some(b) = y.as_number() {
            // What symbols add is above every bit of the number.
            let above = x.symbol_alignment().min(62);
            let (least, most) = b.range();
            let fits = least >= 0 && most < 1i64 << above;
            if fits {
                return Lin {
                    terms: x.terms,
                    k: x.k.zip(b, |a, b| a ^ b),
                };
            }
        }
        let (a, b) = (self.range(x), self.range(y));
        // -1 - n has the bits of n, turned over: the ones that one of the two may have below its sign.
        let bits = [a.0, a.1, b.0, b.1].map(|k| if k < 0 { !k } else { k });
        let most = bits.into_iter().max().unwrap_or(0) as u128;
        let cover = ((most + 1).next_power_of_two() - 1) as i128;
        let least = if a.0 < 0 || b.0 < 0 { !cover } else { 0 };
        let each = self.differs(x) || self.differs(y);
        self.defined(Definition::Xor(*x, *y), least, cover, each)
    }

    pub(in crate::prove) fn max(&mut self, x: &Lin, y: &Lin) -> Lin {
        self.extreme(x, y, true)
    }

    pub(in crate::prove) fn min(&mut self, x: &Lin, y: &Lin) -> Lin {
        self.extreme(x, y, false)
    }

    fn extreme(&mut self, x: &Lin, y: &Lin, larger: bool) -> Lin {
        if let (Some(a), Some(b)) = (x.as_number(), y.as_number()) {
            return Lin::number(a.zip(b, |a, b| if larger { a.max(b) } else { a.min(b) }));
        }
        let (a, b) = (self.range(x), self.range(y));
        let each = self.differs(x) || self.differs(y);
        if larger {
            let definition = Definition::Max(*x, *y);
            self.defined(definition, a.0.max(b.0), a.1.max(b.1), each)
        } else {
            let definition = Definition::Min(*x, *y);
            self.defined(definition, a.0.min(b.0), a.1.min(b.1), each)
        }
    }

    /// What a type reads where the bits are those of a value.
    pub(in crate::prove) fn read(&mut self, x: &Lin, ty: Ty) -> Lin {
        let (least, most) = ty.range();
        let (lo, hi) = self.range(x);
        if least <= lo && hi <= most {
            return *x;
        }
        if let Some(k) = x.as_number()
            && ty != Ty::U64
        {
            return Lin::number(k.map(|k| meaning::read(k.into(), ty) as i64));
        }
        let each = self.differs(x);
        self.defined(Definition::Read(*x, ty), least, most, each)
    }

    /// The element of an input at coordinates, which is in a range.
    pub(in crate::prove) fn element(
        &mut self,
        input: usize,
        at: Vec<Lin>,
        (lo, hi): (i128, i128),
    ) -> Lin {
        let each = at.iter().any(|x| self.differs(x));
        self.defined(Definition::Element(input, at.into()), lo, hi, each)
    }

    /// A value with a symbol replaced, in the definitions of its other symbols too.
    pub(in crate::prove) fn replace(
        &mut self,
        x: &Lin,
        sym: Sym,
        by: &Lin,
        threads: usize,
    ) -> Option<Lin> {
        // A number that is added stays what it is.
        let key = (x.terms, sym, *by);
        let terms = if let Some(known) = self.replaced.get(&key) {
            *known
        } else {
            let terms = Lin {
                terms: x.terms,
                k: Num::ZERO,
            };
            let replaced = self.replaced_in_terms(&terms, sym, by, threads);
            self.replaced.insert(key, replaced);
            replaced
        };
        Some(terms?.add(&Lin::number(x.k)))
    }

    fn replaced_in_terms(&mut self, x: &Lin, sym: Sym, by: &Lin, threads: usize) -> Option<Lin> {
        let mut out = x.substitute(sym, by)?;
        let inner: Vec<Sym> = out.symbols().filter(|&s| s != sym).collect();
        for s in inner {
            if !self.depends(s, sym) {
                continue;
            }
            let new = match self.info(s).definition.clone() {
                Definition::Free(_) => continue,
                Definition::Ite(p, a, b) => {
                    let (a, b) = (
                        self.replace(&a, sym, by, threads)?,
                        self.replace(&b, sym, by, threads)?,
                    );
                    let p = self.replace_in(&p, sym, by, threads)?;
                    self.ite(&p, &a, &b, threads)
                }
                Definition::Low(a, bits) => {
                    let a = self.replace(&a, sym, by, threads)?;
                    self.low(&a, bits)
                }
                Definition::Shr(a, bits) => {
                    let a = self.replace(&a, sym, by, threads)?;
                    self.shr(&a, bits)
                }
                Definition::Div(a, d) => {
                    let a = self.replace(&a, sym, by, threads)?;
                    self.div(&a, d)
                }
                Definition::Quotient(a, b)
                | Definition::Remainder(a, b)
                | Definition::Max(a, b)
                | Definition::Min(a, b)
                | Definition::Xor(a, b) => {
                    let (a, b) = (
                        self.replace(&a, sym, by, threads)?,
                        self.replace(&b, sym, by, threads)?,
                    );
                    match self.info(s).definition {
                        Definition::Quotient(..) => self.quotient(&a, &b),
                        Definition::Remainder(..) => self.remainder(&a, &b),
                        Definition::Max(..) => self.max(&a, &b),
                        Definition::Min(..) => self.min(&a, &b),
                        _ => self.xor(&a, &b),
                    }
                }
                Definition::Read(a, ty) => {
                    let a = self.replace(&a, sym, by, threads)?;
                    self.read(&a, ty)
                }
                Definition::Element(input, at) => {
                    let at = at.iter().map(|x| self.replace(x, sym, by, threads));
                    let at = at.collect::<Option<Vec<_>>>()?;
                    let &Info { lo, hi, .. } = self.info(s);
                    self.element(input, at, (lo, hi))
                }
            };
            out = out.substitute(s, &new)?;
        }
        Some(out)
    }

    /// A statement with a symbol replaced.
    pub(in crate::prove) fn replace_in(
        &mut self,
        f: &Rc<Formula>,
        sym: Sym,
        by: &Lin,
        threads: usize,
    ) -> Option<Rc<Formula>> {
        Some(match &**f {
            Formula::Ge(x) if !x.symbols().any(|s| self.depends(s, sym)) => Rc::clone(f),
            Formula::Ge(x) => Rc::new(Formula::ge(self.replace(x, sym, by, threads)?)),
            Formula::And(a, b) => {
                let (a, b) = (
                    self.replace_in(a, sym, by, threads)?,
                    self.replace_in(b, sym, by, threads)?,
                );
                Formula::and(&a, &b)
            }
            Formula::Or(a, b) => {
                let (a, b) = (
                    self.replace_in(a, sym, by, threads)?,
                    self.replace_in(b, sym, by, threads)?,
                );
                Formula::or(&a, &b)
            }
            _ => Rc::clone(f),
        })
    }

    /// A statement of all threads without values that are chosen: `p ∧ a ∨ ¬p ∧ b` for one of a value that is one of two.
    pub(in crate::prove) fn by_cases(&mut self, f: &Rc<Formula>, threads: usize) -> Rc<Formula> {
        match &**f {
            Formula::Ge(x) => {
                let chosen = x.symbols().filter_map(|s| {
                    let (p, a, b) = match &self.info(s).definition {
                        Definition::Ite(p, a, b) => (Rc::clone(p), a, b),
                        Definition::Max(a, b) => (Rc::new(Formula::ge(a.sub(b))), a, b),
                        Definition::Min(a, b) => (Rc::new(Formula::ge(b.sub(a))), a, b),
                        _ => return None,
                    };
                    Some((s, p, *a, *b))
                });
                let Some((s, p, a, b)) = chosen.max_by_key(|(s, ..)| *s) else {
                    return Rc::clone(f);
                };
                if !p.is_uniform(self) {
                    return Rc::clone(f);
                }
                let p = self.by_cases(&p, threads);
                let mut side = |value: &Lin| {
                    let x = self.replace(x, s, value, threads)?;
                    Some(self.by_cases(&Rc::new(Formula::ge(x)), threads))
                };
                match (side(&a), side(&b)) {
                    (Some(a), Some(b)) => Formula::chosen(&p, &a, &b),
                    _ => Rc::clone(f),
                }
            }
            Formula::And(a, b) => {
                Formula::and(&self.by_cases(a, threads), &self.by_cases(b, threads))
            }
            Formula::Or(a, b) => {
                Formula::or(&self.by_cases(a, threads), &self.by_cases(b, threads))
            }
            _ => Rc::clone(f),
        }
    }

    /// Whether the definition of `s` mentions `sym`, directly or through others.
    pub(in crate::prove) fn depends(&self, s: Sym, sym: Sym) -> bool {
        if s == sym {
            return true;
        }
        // Definitions are of earlier symbols, and made of all that those are made of.
        let of = self.info(sym).roots;
        if s < sym || self.info(s).roots & of != of {
            return false;
        }
        let apart = |x: &Lin| !x.symbols().any(|t| self.depends(t, sym));
        let definition = &self.info(s).definition;
        !definition.all(apart, |p| !self.formula_depends(p, sym))
    }

    /// Whether a value is made of elements of inputs, or of what is not known at all.
    pub(in crate::prove) fn is_of_data(&self, x: &Lin) -> bool {
        x.symbols().any(|s| match &self.info(s).definition {
            Definition::Element(..) => true,
            Definition::Free(_) => self.info(s).each,
            made => !made.all(|x| !self.is_of_data(x), |p| !self.decided_by_data(p)),
        })
    }

    fn decided_by_data(&self, f: &Formula) -> bool {
        match f {
            Formula::True | Formula::False => false,
            Formula::Ge(x) => self.is_of_data(x),
            Formula::And(a, b) | Formula::Or(a, b) => {
                self.decided_by_data(a) || self.decided_by_data(b)
            }
            Formula::Opaque(..) | Formula::Not(..) => true,
        }
    }

    /// How a value changes with a symbol.
    pub(in crate::prove) fn change(&self, x: &Lin, sym: Sym) -> Change {
        if x.symbols().any(|s| s != sym && self.depends(s, sym)) {
            return Change::Other;
        }
        let terms = x.terms.list();
        let mut with = terms.iter().filter(|(m, _)| m.symbols().any(|s| s == sym));
        match (with.next(), with.next()) {
            (None, _) => Change::None,
            (Some((m, c)), None) if m.symbols().eq([sym]) => {
                c.one().map_or(Change::Other, Change::By)
            }
            _ => Change::Other,
        }
    }

    /// A value with a symbol replaced, where no definition of its other symbols is made of that one; none elsewhere.
    pub(in crate::prove) fn shifted(&self, x: &Lin, sym: Sym, by: &Lin) -> Option<Lin> {
        let direct = |s: Sym| s == sym || !self.depends(s, sym);
        if x.symbols().all(direct) {
            x.substitute(sym, by)
        } else {
            None
        }
    }

    /// Whether a statement is of a symbol, or of values that are defined by it.
    pub(in crate::prove) fn formula_depends(&self, f: &Formula, sym: Sym) -> bool {
        match f {
            Formula::Ge(x) => x.symbols().any(|t| self.depends(t, sym)),
            Formula::And(a, b) | Formula::Or(a, b) => {
                self.formula_depends(a, sym) || self.formula_depends(b, sym)
            }
            _ => false,
        }
    }
}
