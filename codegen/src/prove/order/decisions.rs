//! What a path has decided: the values of data that it branched on, and between which numbers values lie.

use crate::prove::formula::Formula;
use crate::prove::numbers::Num;
use crate::prove::value::{Lin, Mono, Sym};

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

    /// Advances to the next turn: the range of each value moves by the value's step. `most` is the largest constant that the loop compares a value with.
    pub(super) fn turn(&mut self, turn: Sym, values: &[Lin], most: i64) {
        self.either.retain(|f| !mentions(f, turn));
        let first = self.zero.contains(&turn);
        let old = std::mem::take(&mut self.ranges);
        let step = |f: &Lin| {
            f.terms
                .list()
                .iter()
                .find(|(m, _)| m.symbols().eq([turn]))
                .and_then(|(_, c)| c.one())
        };
        if first {
            self.zero.retain(|&s| s != turn);
            // What was known without the turn is known of each value that differs by turns only.
            for (form, lo, hi) in &old {
                for value in values {
                    let (with_turn, _) = self.form(value);
                    let terms = with_turn.terms.list();
                    let left = terms
                        .iter()
                        .filter(|(m, _)| !m.symbols().any(|s| s == turn));
                    let bare = Lin::of(left.copied(), Num::ZERO);
                    if bare == *form
                        && let Some(a) = step(&with_turn)
                    {
                        let (lo, hi) = moved((*lo, *hi), a, most);
                        self.narrow(with_turn, lo, hi);
                    }
                }
            }
        }
        for (form, lo, hi) in old {
            match step(&form) {
                Some(a) => {
                    let (lo, hi) = moved((lo, hi), a, most);
                    self.narrow(form, lo, hi);
                }
                None if form.mentions(turn) => {}
                None => self.narrow(form, lo, hi),
            }
        }
    }

    /// What is said of a symbol is forgotten.
    pub(super) fn forget(&mut self, sym: Sym) {
        self.ranges.retain(|(f, _, _)| !f.mentions(sym));
        self.either.retain(|f| !mentions(f, sym));
        self.zero.retain(|&s| s != sym);
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

fn mentions(f: &Formula, sym: Sym) -> bool {
    match f {
        Formula::Ge(x) => x.mentions(sym),
        Formula::And(a, b) | Formula::Or(a, b) => mentions(a, sym) || mentions(b, sym),
        _ => false,
    }
}
