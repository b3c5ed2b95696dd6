//! Whether statements follow from others: linear arithmetic, and the cases of what is not linear.
//!
//! A goal `g ≥ 0` holds if its least value is not negative, or if `g − f` is not negative for one fact `f ≥ 0`, or for the sum of two. Where a symbol
//! stands for one of two values, or a fact is a disjunction, both cases are tried. A case whose facts contradict each other is closed. A quotient that is at most r is
//! one whose dividend is below d·(r + 1): where the goal has it so, the dividend is looked at.

use std::rc::Rc;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Chosen, Mask, Num, representatives};
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::{Lin, Mono, Sym};

/// Cases within cases.
const DEPTH: u32 = 8;

/// How often a fact is taken from a goal at most: products of the coefficients of both are far from 2^63.
const FEW: i64 = 1 << 20;

/// What is known, for which threads.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Facts {
    pub(in crate::prove) all: Vec<Rc<Formula>>,
    pub(in crate::prove) active: Mask,
}

impl Facts {
    /// These facts and one more.
    pub(in crate::prove) fn with(&self, f: &Rc<Formula>) -> Self {
        let mut all = self.all.clone();
        all.extend(f.conjuncts());
        Self {
            all,
            active: self.active,
        }
    }
}

impl Symbols {
    /// `x ≥ 0` for every active thread where the facts hold.
    pub(in crate::prove) fn at_least_zero(&mut self, x: &Lin, facts: &Facts) -> bool {
        if self.never_negative(x, facts.active) {
            return true;
        }
        if facts.all.iter().any(|f| states(f, x, facts.active)) {
            return true;
        }
        if self.follows_as_before(x, facts) {
            return true;
        }
        let mut tried = 0;
        for near in [true, false] {
            let relevant = self.relevant(x, &facts.all, near);
            if relevant.len() > tried || near {
                tried = relevant.len();
                if self.answer(x, relevant.clone(), facts.active) {
                    let key = (x.terms, x.k.pattern(), facts.active);
                    self.reasons.insert(key, (x.k, relevant));
                    return true;
                }
            }
        }
        if let Some(y) = self.without_quotient(x)
            && self.at_least_zero(&y, facts)
        {
            return true;
        }
        // Facts that contradict each other imply anything.
        tried < facts.all.len() && {
            let mut all: Vec<Rc<Formula>> = Vec::new();
            for f in &facts.all {
                if !all.contains(f) {
                    all.push(Rc::clone(f));
                }
            }
            self.answer(&Lin::constant(-1), all, facts.active)
        }
    }

    /// A value that is negative exactly where `x` is, without a quotient that `x` has less once: `r − ⌊a/d⌋ ≥ 0` where `d·r + d − 1 − a ≥ 0`, for integers.
    fn without_quotient(&mut self, x: &Lin) -> Option<Lin> {
        let terms = x.terms.list();
        let less = terms.iter().filter(|(_, c)| c.one() == Some(-1));
        for (mono, _) in less {
            let Some(sym) = mono.symbols().next().filter(|s| *mono == Mono::of(*s)) else {
                continue;
            };
            let (of, d) = match self.info(sym).definition {
                Definition::Div(of, d) => (of, d),
                Definition::Shr(of, by @ 0..=20) => (of, 1 << by),
                _ => continue,
            };
            let rest = x.add(&Lin::symbol(sym));
            if (1..=FEW).contains(&d) && !rest.is_far() && !of.is_far() && !of.mentions(sym) {
                return Some(rest.scale(d).plus(d - 1).sub(&of));
            }
        }
        None
    }

    /// What was found of a value with the same terms, and a number that is not greater, follows from facts that hold here too. Most accesses follow
    /// from what many have in common, and not from their own guards: what is kept as the reason is what the accesses so far have in common.
    fn follows_as_before(&mut self, x: &Lin, facts: &Facts) -> bool {
        let key = (x.terms, x.k.pattern(), facts.active);
        let Some((least, reason)) = self.reasons.get(&key) else {
            return false;
        };
        if !x.k.is_at_least(*least, facts.active) {
            return false;
        }
        let least = *least;
        let common = reason.iter().filter(|f| facts.all.contains(f));
        let common: Vec<Rc<Formula>> = common.cloned().collect();
        if common.len() == reason.len() {
            return true;
        }
        let value = Lin { k: least, ..*x };
        let follows = self.answer(&value, common.clone(), facts.active);
        if follows {
            self.reasons.insert(key, (least, common));
        }
        follows
    }

    /// The facts that have something to do with a value, directly or through others; through disjunctions only if not `near`.
    fn relevant(&mut self, x: &Lin, facts: &[Rc<Formula>], near: bool) -> Vec<Rc<Formula>> {
        let mut roots = self.roots(x);
        let of: Vec<_> = facts.iter().map(|f| self.roots_of(f)).collect();
        loop {
            let mut more = roots;
            for (f, r) in facts.iter().zip(&of) {
                let leads = !near || !matches!(**f, Formula::Or(..));
                if leads && r & roots != 0 {
                    more |= r;
                }
            }
            if more == roots {
                break;
            }
            roots = more;
        }
        let mut all: Vec<Rc<Formula>> = Vec::new();
        for (f, r) in facts.iter().zip(of) {
            // Facts without symbols say which threads there are.
            if r & !roots == 0 && !all.contains(f) {
                all.push(Rc::clone(f));
            }
        }
        all
    }

    /// The answer to a question, for one of all threads that have the same numbers in it.
    fn answer(&mut self, x: &Lin, facts: Vec<Rc<Formula>>, active: Mask) -> bool {
        let question = match self.representatives(x, &facts, active) {
            Some(threads) => {
                let of = |x: &Lin| x.of_threads(&threads);
                let facts = facts.iter().map(|f| f.map(&of)).collect();
                (of(x), facts, Mask::all(threads.threads.len()))
            }
            None => (*x, facts, active),
        };
        if let Some(&known) = self.answers.get(&question) {
            return known;
        }
        let answer = self.holds(&question.0, &question.1, question.2, DEPTH);
        self.answers.insert(question, answer);
        answer
    }

    /// A thread for each that differs from others in the facts, or in the value: of those that have the same facts, and the same value but for a
    /// number, the one with the least. None where definitions differ between threads.
    fn representatives(&mut self, x: &Lin, facts: &[Rc<Formula>], active: Mask) -> Option<Chosen> {
        let mut patterns: Vec<u32> = Vec::new();
        let mut note = |n: Num| {
            if !patterns.contains(&n.pattern()) {
                patterns.push(n.pattern());
            }
        };
        let mut known = self.defined_alike(x);
        x.terms.list().iter().for_each(|(_, c)| note(*c));
        for f in facts {
            f.each_value(&mut |y| {
                known &= self.defined_alike(y);
                y.terms.list().iter().for_each(|(_, c)| note(*c));
                note(y.k);
            });
        }
        known.then(|| representatives(patterns, x.k, active))
    }

    /// `x = 0` for every active thread where the facts hold.
    pub(in crate::prove) fn is_zero(&mut self, x: &Lin, facts: &Facts) -> bool {
        x.is_zero()
            || self.in_quotients(x).is_zero()
            || self.at_least_zero(x, facts) && self.at_least_zero(&x.scale(-1), facts)
    }

    /// A statement that one of the facts excludes, by itself and for every active thread.
    pub(in crate::prove) fn refutes(&mut self, f: &Formula, facts: &Facts) -> bool {
        let Formula::Ge(x) = f else { return false };
        let excluded = x.scale(-1).plus(-1);
        let values = facts.all.iter().filter_map(|fact| match &**fact {
            Formula::Ge(y) if y.terms == excluded.terms => Some(excluded.sub(y)),
            _ => None,
        });
        let mut values = values.filter(|rest| rest.terms.is_empty());
        values.any(|rest| self.never_negative(&rest, facts.active))
    }

    /// No active thread can satisfy the facts.
    pub(in crate::prove) fn contradicts(&mut self, facts: &Facts) -> bool {
        self.at_least_zero(&Lin::constant(-1), facts)
    }

    /// The goal and the facts with symbols whose low bits are 0 in units of that, and facts as tight as integers allow.
    fn normal(
        &mut self,
        goal: &Lin,
        facts: &[Rc<Formula>],
        threads: usize,
    ) -> (Lin, Vec<Rc<Formula>>) {
        let (mut goal, mut all) = (*goal, facts.to_vec());
        let aligned: Vec<_> = all.iter().filter_map(|f| self.low_bits_zero(f)).collect();
        for (sym, bits) in aligned {
            let by = self.multiple(sym, bits);
            if let Some(x) = self.replace(&goal, sym, &by, threads) {
                goal = x;
            }
            for f in &mut all {
                if let Some(g) = self.replace_in(f, sym, &by, threads) {
                    *f = g;
                }
            }
        }
        for f in &mut all {
            if let Formula::Ge(x) = &**f {
                let tight = x.tightened();
                if tight != *x {
                    *f = Rc::new(Formula::ge(tight));
                }
            }
        }
        (goal, all)
    }

    fn holds(&mut self, goal: &Lin, facts: &[Rc<Formula>], mut open: Mask, depth: u32) -> bool {
        self.cases += 1;
        let threads = open.list().len();
        let (goal, facts) = &self.normal(goal, facts, threads);
        let facts = &facts[..];
        if goal.is_far() {
            return false;
        }
        // Threads for which a fact is false are out of the question.
        for f in facts {
            match &**f {
                Formula::False => return true,
                Formula::Opaque(id, each)
                    if facts.iter().any(|g| **g == Formula::Not(*id, *each)) =>
                {
                    return true;
                }
                Formula::Ge(x) if x.terms.is_empty() => {
                    let k = x.k.values();
                    open = open.keep(|t| k.at(t) >= 0);
                }
                _ => {}
            }
        }
        let linear: Vec<Lin> = facts
            .iter()
            .filter_map(|f| match &**f {
                Formula::Ge(x) => Some(*x).filter(|x| !x.is_far()),
                _ => None,
            })
            .collect();
        if self.close(goal, &mut open) || self.covers_remainders(goal, open) {
            return true;
        }
        for x in &linear {
            for times in multiples(goal, x) {
                if self.close(&goal.sub(&x.scale(times)), &mut open) {
                    return true;
                }
            }
            // A fact that cannot hold closes the case.
            if self.close(&x.scale(-1).plus(-1), &mut open) {
                return true;
            }
        }
        // Two facts say more than each by itself if they have a product of symbols in common, or each has one in common with the goal: else the least
        // of the sum is the sum of the least.
        let of_goal = goal.terms.products();
        let products: Vec<u128> = linear.iter().map(|x| x.terms.products()).collect();
        for (i, x) in linear.iter().enumerate() {
            for (j, y) in linear.iter().enumerate().skip(i + 1) {
                let in_common = products[i] & products[j] != 0;
                let both_in_goal = products[i] & of_goal != 0 && products[j] & of_goal != 0;
                if !in_common && !both_in_goal {
                    continue;
                }
                let sum = x.add(y).tightened();
                if self.close(&goal.sub(&sum), &mut open)
                    || (in_common && self.close(&sum.scale(-1).plus(-1), &mut open))
                {
                    return true;
                }
            }
        }
        if depth == 0 {
            return false;
        }
        // Cases: a symbol with a definition by cases, or a disjunction among the facts.
        let Some(sym) = self.splittable(goal, &linear) else {
            let Some(i) = facts.iter().position(|f| matches!(**f, Formula::Or(..))) else {
                return false;
            };
            let Formula::Or(a, b) = &*facts[i] else {
                return false;
            };
            return [a, b].into_iter().all(|side| {
                let mut case = facts.to_vec();
                case.swap_remove(i);
                case.extend(side.conjuncts());
                self.holds(goal, &case, open, depth - 1)
            });
        };
        let (p, a, b) = match self.info(sym).definition.clone() {
            Definition::Ite(p, a, b) => (p, a, b),
            Definition::Max(a, b) => (Rc::new(Formula::ge(a.sub(&b))), a, b),
            Definition::Min(a, b) => (Rc::new(Formula::ge(b.sub(&a))), a, b),
            Definition::Low(a, bits) => {
                return self.round_down(goal, facts, open, (sym, a, bits), depth);
            }
            _ => return false,
        };
        [(Rc::clone(&p), a), (p.not(), b)]
            .into_iter()
            .all(|(when, value)| {
                let Some(goal) = self.replace(goal, sym, &value, threads) else {
                    return false;
                };
                let mut case = when.conjuncts();
                for f in facts {
                    match self.replace_in(f, sym, &value, threads) {
                        Some(f) => case.extend(f.conjuncts()),
                        None => return false,
                    }
                }
                if *when == Formula::False {
                    return true;
                }
                self.holds(&goal, &case, open, depth - 1)
            })
    }

    /// Threads for which `x` cannot be negative are closed; true once none is open.
    fn close(&mut self, x: &Lin, open: &mut Mask) -> bool {
        match self.negative(x, *open) {
            None => true,
            Some(left) => {
                *open = left;
                false
            }
        }
    }

    /// The latest symbol of the goal, or of a fact, that is defined by cases.
    fn splittable(&self, goal: &Lin, facts: &[Lin]) -> Option<Sym> {
        let by_cases = |s: &Sym| {
            matches!(
                self.info(*s).definition,
                Definition::Ite(..) | Definition::Max(..) | Definition::Min(..)
            )
        };
        let low = |s: &Sym| matches!(self.info(*s).definition, Definition::Low(..));
        let inner = |s: Sym| match &self.info(s).definition {
            Definition::Low(x, _)
            | Definition::Shr(x, _)
            | Definition::Div(x, _)
            | Definition::Read(x, _) => x.symbols().filter(by_cases).max(),
            _ => None,
        };
        goal.symbols()
            .filter(by_cases)
            .max()
            .or_else(|| goal.symbols().filter_map(inner).max())
            .or_else(|| {
                facts
                    .iter()
                    .flat_map(crate::prove::algebra::value::Lin::symbols)
                    .filter(by_cases)
                    .max()
            })
            .or_else(|| goal.symbols().filter(low).max())
    }

    /// The low bits of `x` are `x − u` where `u ≤ x < u + 2ⁿ` for a multiple u of 2ⁿ: the candidates are the aligned parts of x and of values that
    /// the facts compare it with.
    fn round_down(
        &mut self,
        goal: &Lin,
        facts: &[Rc<Formula>],
        open: Mask,
        (sym, x, bits): (Sym, Lin, u32),
        depth: u32,
    ) -> bool {
        let threads = open.list().len();
        let mut candidates = Vec::new();
        for f in facts {
            if let Formula::Ge(y) = &**f {
                for base in [y.add(&x), x.sub(y), y.sub(&x).scale(-1)] {
                    let aligned = aligned_part(&base, bits);
                    if !candidates.contains(&aligned) {
                        candidates.push(aligned);
                    }
                }
            }
        }
        for u in candidates {
            let rest = x.sub(&u);
            let end = rest.scale(-1).plus((1i64 << bits) - 1);
            if self.holds(&rest, facts, open, 0)
                && self.holds(&end, facts, open, 0)
                && let Some(goal) = self.replace(goal, sym, &rest, threads)
            {
                return self.holds(&goal, facts, open, depth - 1);
            }
        }
        false
    }
}

/// A fact that says of the active threads that `x` is at least 0, or more than that.
fn states(fact: &Formula, x: &Lin, active: Mask) -> bool {
    match fact {
        Formula::Ge(y) => y.terms == x.terms && x.k.is_at_least(y.k, active),
        _ => false,
    }
}

/// How often a fact may be taken from a goal: once, or as often as takes one of its symbols away.
fn multiples(goal: &Lin, fact: &Lin) -> Vec<i64> {
    let mut all = vec![1];
    let of_goal = goal.terms.list();
    for (m, c) in fact.terms.list().iter() {
        let Some((_, d)) = of_goal.iter().find(|(n, _)| n == m) else {
            continue;
        };
        if let (Some(c), Some(d)) = (c.one(), d.one())
            && d % c == 0
            && d / c > 1
            && d / c < FEW
            && !all.contains(&(d / c))
        {
            all.push(d / c);
        }
    }
    all
}

/// The terms of a value whose coefficients are multiples of 2ⁿ.
fn aligned_part(x: &Lin, bits: u32) -> Lin {
    let terms = x.terms.list();
    let aligned = terms.iter().filter(|(_, c)| c.zeros() >= bits);
    Lin::of(aligned.copied(), x.k.add(x.k.low(bits).scale(-1)))
}
