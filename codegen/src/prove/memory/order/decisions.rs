//! What a path has decided: the values of data that it branched on, and between which numbers values lie.
//!
//! A decision lives as long as the values that it is of. Data on which all threads agree are arguments, which a launch does not change, or what an iteration of a loop
//! has computed: with the next iteration a decision dies that is of such data. A range is of symbols, and the count of a loop's iterations is one: with the next
//! iteration a decision dies that is of the count, or of a value that is defined by it.
//!
//! ```text
//! i < 100        i ranges over 0 … 99; in the next iteration over 1 … 100
//! (i & 1) < 1    says nothing of the next iteration
//! ```

use std::ops::Range;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::Num;
use crate::prove::algebra::symbols::{Change, Definition, Symbols};
use crate::prove::algebra::value::{Lin, Mono, Sym};

/// What a path has decided.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Decisions {
    data: Vec<(u32, bool)>,
    /// The range of a value without its constant.
    ranges: Vec<(Lin, i64, i64)>,
    /// Disjunctions that hold.
    either: Vec<Formula>,
    /// Symbols that are 0 for now.
    pub(super) zero: Vec<Sym>,
}

const FAR: i64 = i64::MAX / 4;

/// A lower bound below this is dropped, so that states repeat.
const SMALL: i64 = -(1 << 12);

impl Decisions {
    /// A value with the symbols that are 0 left out, apart from its constant.
    fn form(&self, x: &Lin) -> (Lin, i64) {
        let terms = x.terms.list();
        let is_zero = |m: &Mono| m.symbols().any(|s| self.zero.contains(&s));
        let form = if terms.iter().any(|(m, _)| is_zero(m)) {
            let left = terms.iter().filter(|(m, _)| !is_zero(m));
            Lin::of(left.copied(), Num::ZERO)
        } else {
            Lin {
                terms: x.terms,
                k: Num::ZERO,
            }
        };
        // One sign for a value and its opposite.
        let k = x.k.one().unwrap_or(0);
        let first = form.terms.list().first().and_then(|(_, c)| c.one());
        if first.is_some_and(|c| c < 0) {
            return (form.scale(-1), -k);
        }
        (form, k)
    }

    fn is_opposite(&self, x: &Lin) -> bool {
        let terms = x.terms.list();
        let mut left = terms
            .iter()
            .filter(|(m, _)| !m.symbols().any(|s| self.zero.contains(&s)));
        let first = left.next().and_then(|(_, c)| c.one());
        first.is_some_and(|c| c < 0)
    }

    /// What is known of `x ≥ 0`: the range of the form f with x = ±f + k.
    fn decide(&self, f: &Formula) -> Option<bool> {
        match f {
            Formula::True => Some(true),
            Formula::False => Some(false),
            Formula::Ge(x) => {
                let (lo, hi) = self.range(x);
                if lo >= 0 {
                    Some(true)
                } else if hi < 0 {
                    Some(false)
                } else {
                    None
                }
            }
            Formula::And(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ if self.either.is_empty() => None,
                _ => self.either.contains(&f.not()).then_some(false),
            },
            Formula::Or(..) if self.either.contains(f) => Some(true),
            Formula::Or(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Formula::Opaque(id, _) => self.datum(*id),
            Formula::Not(id, _) => self.datum(*id).map(|v| !v),
        }
    }

    fn datum(&self, id: u32) -> Option<bool> {
        self.data.iter().find(|(i, _)| *i == id).map(|(_, v)| *v)
    }

    fn range(&self, x: &Lin) -> (i64, i64) {
        if self.ranges.is_empty() && self.zero.is_empty() && !x.terms.is_empty() {
            return (-FAR, FAR);
        }
        let opposite = self.is_opposite(x);
        let (form, k) = self.form(x);
        if form.terms.is_empty() {
            let k = x.k.one().unwrap_or(0);
            return (k, k);
        }
        let (lo, hi) = self.known(&form);
        if opposite {
            // x = −(f + k)
            (-hi.saturating_add(k), -lo.saturating_add(k))
        } else {
            (lo.saturating_add(k), hi.saturating_add(k))
        }
    }

    /// Whether every assignment that `other` allows is allowed here, too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let within = |(form, lo, hi): &(Lin, i64, i64)| {
            let (least, most) = other.known(form);
            *lo <= least && most <= *hi
        };
        self.zero == other.zero
            && self.data.iter().all(|datum| other.data.contains(datum))
            && self.ranges.iter().all(within)
            && self.either.iter().all(|f| other.decide(f) == Some(true))
    }

    /// The range of a value without its constant.
    fn known(&self, form: &Lin) -> (i64, i64) {
        let known = self
            .ranges
            .binary_search_by_key(&form.terms, |(f, _, _)| f.terms);
        known.map_or((-FAR, FAR), |known| {
            let (_, lo, hi) = self.ranges[known];
            (lo, hi)
        })
    }

    /// The decisions with `f` added: one for each case of a value that a predicate chooses, none where it contradicts them.
    pub(super) fn with(&self, f: &Formula) -> Vec<Self> {
        match self.decide(f) {
            Some(false) => return Vec::new(),
            Some(true) => return vec![self.clone()],
            None => {}
        }
        match f {
            Formula::And(a, b) => self.both(a, b),
            Formula::Or(a, b) => {
                if let Some([(p, a), (q, b)]) = f.cases() {
                    let mut all = self.both(p, a);
                    all.extend(self.both(q, b));
                    return all;
                }
                match (self.decide(a), self.decide(b)) {
                    (Some(false), _) => self.with(b),
                    (_, Some(false)) => self.with(a),
                    _ => {
                        let mut out = self.clone();
                        out.either.push(f.clone());
                        vec![out]
                    }
                }
            }
            _ => {
                let mut out = self.clone();
                out.add(f);
                out.settled()
            }
        }
    }

    /// The same after what is decided now has decided disjunctions.
    fn settled(mut self) -> Vec<Self> {
        let either = std::mem::take(&mut self.either);
        let mut all = vec![self];
        for f in &either {
            all = all.iter().flat_map(|d| d.with(f)).collect();
        }
        all
    }

    fn both(&self, a: &Formula, b: &Formula) -> Vec<Self> {
        self.with(a).iter().flat_map(|d| d.with(b)).collect()
    }

    /// A statement that is not decided and has no parts.
    fn add(&mut self, f: &Formula) {
        match f {
            Formula::Opaque(id, _) => {
                self.data.push((*id, true));
                self.data.sort_unstable();
            }
            Formula::Not(id, _) => {
                self.data.push((*id, false));
                self.data.sort_unstable();
            }
            Formula::Ge(x) => {
                let opposite = self.is_opposite(x);
                let (form, k) = self.form(x);
                if form.terms.is_empty() {
                    return;
                }
                // f + k ≥ 0, or −(f + k) ≥ 0.
                let (lo, hi) = if opposite {
                    (-FAR, k.saturating_neg())
                } else {
                    (k.saturating_neg(), FAR)
                };
                self.narrow(form, lo, hi);
            }
            _ => {}
        }
    }

    fn narrow(&mut self, form: Lin, lo: i64, hi: i64) {
        if (lo, hi) == (-FAR, FAR) {
            return;
        }
        // In the order of the numbers that their terms have, so that the same decisions are equal.
        match self
            .ranges
            .binary_search_by_key(&form.terms, |(f, _, _)| f.terms)
        {
            Ok(known) => {
                let (_, a, b) = &mut self.ranges[known];
                (*a, *b) = ((*a).max(lo), (*b).min(hi));
            }
            Err(at) => self.ranges.insert(at, (form, lo, hi)),
        }
    }

    /// A loop begins, whose iterations are counted by `iteration` from 0: what an earlier execution of it left is forgotten. Low bits of the count, and of what grows
    /// with it, are known as long as they are followed from here.
    pub(super) fn begin(&mut self, iteration: Sym, values: &[Lin], symbols: &Symbols) {
        self.forget(iteration, symbols);
        self.zero.push(iteration);
        for form in values.iter().flat_map(Lin::symbols) {
            if cycle(&Lin::symbol(form), iteration, symbols).is_some()
                && let Some(first) = symbols.value(&Lin::symbol(form), &[(iteration, 0)])
            {
                self.narrow(Lin::symbol(form), first, first);
            }
        }
    }

    /// Advances to the next iteration: the range of each value moves by the value's step, and what is said of values that change in another way is
    /// forgotten. `most` is the largest constant that the loop compares a value with.
    pub(super) fn iteration(
        &mut self,
        iteration: Sym,
        values: &[Lin],
        most: i64,
        symbols: &Symbols,
    ) {
        self.either
            .retain(|f| !symbols.formula_depends(f, iteration));
        let first = self.zero.contains(&iteration);
        let old = std::mem::take(&mut self.ranges);
        if first {
            self.zero.retain(|&s| s != iteration);
            // What was known without the iteration is known of each value that differs by iterations only.
            for (form, lo, hi) in &old {
                for value in values {
                    let (with_iteration, _) = self.form(value);
                    let Change::By(step) = symbols.change(&with_iteration, iteration) else {
                        continue;
                    };
                    let terms = with_iteration.terms.list();
                    let left = terms.iter().filter(|(m, _)| !m.symbols().eq([iteration]));
                    if Lin::of(left.copied(), Num::ZERO) == *form {
                        let (lo, hi) = moved((*lo, *hi), step, most);
                        self.narrow(with_iteration, lo, hi);
                    }
                }
            }
        }
        for (form, lo, hi) in old {
            match symbols.change(&form, iteration) {
                Change::By(step) => {
                    let (lo, hi) = moved((lo, hi), step, most);
                    self.narrow(form, lo, hi);
                }
                Change::None => self.narrow(form, lo, hi),
                Change::Other => {
                    if let Some((_, step, bits)) = cycle(&form, iteration, symbols)
                        && lo == hi
                    {
                        let next = lo.wrapping_add(step) & ((1 << bits) - 1);
                        self.narrow(form, next, next);
                    }
                }
            }
        }
    }

    /// What is said of values and data that were made in an iteration is not said of the next one's.
    pub(super) fn renew(&mut self, own: &Range<u32>, symbols: &Symbols) {
        self.data
            .retain(|(id, _)| !symbols.is_statement_of(&Formula::Opaque(*id, false), own));
        self.ranges
            .retain(|(form, ..)| !form.symbols().any(|s| symbols.is_made_of(s, own)));
        self.either.retain(|f| !symbols.is_statement_of(f, own));
    }

    /// What is said of a symbol, and of all that is defined by it, is forgotten.
    pub(super) fn forget(&mut self, sym: Sym, symbols: &Symbols) {
        self.ranges
            .retain(|(f, _, _)| symbols.change(f, sym) == Change::None);
        self.either.retain(|f| !symbols.formula_depends(f, sym));
        self.zero.retain(|&s| s != sym);
    }
}

/// Low bits that are followed from iteration to iteration: more have too many states.
const CYCLE: u32 = 4;

/// The value of which a form is the low bits, its step and the number of the bits, if a count steps it.
fn cycle(form: &Lin, iteration: Sym, symbols: &Symbols) -> Option<(Lin, i64, u32)> {
    let Definition::Low(of, bits @ 1..=CYCLE) = symbols.info(form.single()?).definition else {
        return None;
    };
    match symbols.change(&of, iteration) {
        Change::By(step) => Some((of, step, bits)),
        _ => None,
    }
}

/// Moves the range of a value by its step. No comparison involves a constant beyond `±most`, so a bound is widened where its exact value can decide nothing:
/// beyond `most` for a value that moves away from 0, beyond 4,096 for one that approaches 0. Widening makes states repeat, and is sound: it only adds paths.
fn moved((lo, hi): (i64, i64), by: i64, most: i64) -> (i64, i64) {
    if by < 0 {
        let (lo, hi) = moved((-hi, -lo), -by, most);
        return (-hi, -lo);
    }
    let lo = match lo.saturating_add(by) {
        ..=SMALL => -FAR,
        moved => moved.min(most),
    };
    let hi = match hi.saturating_add(by) {
        moved if moved >= most => FAR,
        moved => moved.max(SMALL),
    };
    (lo, hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::algebra::symbols::Symbols;

    impl Decisions {
        /// Whether everything that is remembered holds where symbols have these values.
        fn allows(&self, symbols: &Symbols, at: &[(Sym, i64)]) -> bool {
            let within = |(form, lo, hi): &(Lin, i64, i64)| {
                let value = symbols.value(form, at).expect("a value");
                *lo <= value && value <= *hi
            };
            let value = |s: &Sym| symbols.value(&Lin::symbol(*s), at);
            self.ranges.iter().all(within)
                && self
                    .either
                    .iter()
                    .all(|f| symbols.holds_at(f, at) == Some(true))
                && self.zero.iter().all(|s| value(s) == Some(0))
        }
    }

    /// What a path remembers is true in every iteration that it comes to: for values that are defined by the count in all ways, compared at random.
    #[test]
    fn no_decision_outlives_its_iteration() {
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let (mut remembered, mut decided) = (0, 0);
        for _ in 0..400 {
            let mut symbols = Symbols::default();
            let [iteration, outer, n] = [100, 100, 1000].map(|most| symbols.free(0, most, false));
            let (i, j, size) = (Lin::symbol(iteration), Lin::symbol(outer), Lin::symbol(n));
            let mut forms = vec![
                i,
                j,
                size,
                size.sub(&i.scale(3)),
                i.add(&j),
                i.scale(2).plus(5),
            ];
            for x in [i, i.add(&j), i.scale(3), size.add(&i)] {
                let few = Lin::constant(7);
                let products = [x.mul(&size), x.mul(&j)];
                forms.extend(products.into_iter().flatten());
                forms.extend([
                    symbols.low(&x, 1),
                    symbols.low(&x.plus(1), 2),
                    symbols.shr(&x, 1),
                    symbols.div(&x, 3),
                    symbols.xor(&x, &Lin::constant(1)),
                    symbols.min(&x, &few),
                    symbols.max(&x, &few),
                    symbols.read(&x.scale(1 << 30), crate::index::code::Ty::S32),
                ]);
                let odd = std::rc::Rc::new(Formula::ge(symbols.low(&x, 1).plus(-1)));
                forms.push(symbols.ite(&odd, &size, &x, 1));
                let low = symbols.low(&x, 2);
                forms.push(low.add(&size));
            }
            let values: Vec<Lin> = (0..4)
                .map(|_| forms[next(forms.len() as u64) as usize])
                .collect();
            let at = |t: i64, o: i64| [(iteration, t), (outer, o), (n, 300)];
            let mut paths = vec![Decisions::default()];
            let most = next(200) as i64;
            for o in 0..3 {
                if o > 0 {
                    for p in &mut paths {
                        p.iteration(outer, &values, most, &symbols);
                    }
                } else {
                    for p in &mut paths {
                        p.begin(outer, &values, &symbols);
                    }
                }
                for p in &mut paths {
                    p.begin(iteration, &values, &symbols);
                }
                for t in 0..12 {
                    for value in &values {
                        let k = match next(2) {
                            0 => next(20) as i64 - 10,
                            _ => {
                                -symbols.value(value, &at(t, o)).expect("a value") + next(3) as i64
                                    - 1
                            }
                        };
                        let sign = if next(2) == 0 { 1 } else { -1 };
                        let f = Formula::ge(value.plus(k).scale(sign));
                        let f = if symbols.holds_at(&f, &at(t, o)) == Some(true) {
                            std::rc::Rc::new(f)
                        } else {
                            f.not()
                        };
                        decided += paths.iter().filter(|p| p.decide(&f) == Some(true)).count();
                        paths = paths.iter().flat_map(|p| p.with(&f)).collect();
                        paths.retain(|p| p.allows(&symbols, &at(t, o)));
                        assert!(!paths.is_empty(), "the path that is taken is lost: {f:?}");
                        paths.truncate(4);
                    }
                    for p in &mut paths {
                        p.iteration(iteration, &values, most, &symbols);
                    }
                    remembered += paths.iter().map(|p| p.ranges.len()).sum::<usize>();
                    paths.retain(|p| p.allows(&symbols, &at(t + 1, o)));
                    assert!(
                        !paths.is_empty(),
                        "a fact outlives iteration {t}: {values:?}"
                    );
                }
                for p in &mut paths {
                    p.forget(iteration, &symbols);
                }
            }
        }
        // It does remember, and decide by that.
        assert!(
            remembered > 10_000 && decided > 2000,
            "{remembered} {decided}"
        );
    }
}
