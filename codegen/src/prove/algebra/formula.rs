//! Statements about values: what guards and branches say, thread by thread.

use std::rc::Rc;

use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::Lin;

/// A statement about values, for each thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) enum Formula {
    True,
    False,
    /// The value is at least 0.
    Ge(Lin),
    And(Rc<Formula>, Rc<Formula>),
    Or(Rc<Formula>, Rc<Formula>),
    /// Nothing is known of it but that it is the same wherever its number is; `true` if threads may differ.
    Opaque(u32, bool),
    Not(u32, bool),
}

impl Formula {
    pub(in crate::prove) fn ge(x: Lin) -> Self {
        match x.as_number().map(Num::range) {
            Some((least, _)) if least >= 0 => Formula::True,
            Some((_, most)) if most < 0 => Formula::False,
            _ => Formula::Ge(x),
        }
    }

    pub(in crate::prove) fn and(a: &Rc<Self>, b: &Rc<Self>) -> Rc<Self> {
        match (&**a, &**b) {
            (Formula::True, _) | (_, Formula::False) => Rc::clone(b),
            (_, Formula::True) | (Formula::False, _) => Rc::clone(a),
            _ if a == b => Rc::clone(a),
            _ => Rc::new(Formula::And(Rc::clone(a), Rc::clone(b))),
        }
    }

    pub(in crate::prove) fn or(a: &Rc<Self>, b: &Rc<Self>) -> Rc<Self> {
        match (&**a, &**b) {
            (Formula::False, _) | (_, Formula::True) => Rc::clone(b),
            (_, Formula::False) | (Formula::True, _) => Rc::clone(a),
            _ if a == b => Rc::clone(a),
            _ => Rc::new(Formula::Or(Rc::clone(a), Rc::clone(b))),
        }
    }

    pub(in crate::prove) fn not(&self) -> Rc<Self> {
        Rc::new(match self {
            Formula::True => Formula::False,
            Formula::False => Formula::True,
            // Not x ≥ 0 is −x − 1 ≥ 0.
            Formula::Ge(x) => Formula::ge(x.scale(-1).plus(-1)),
            Formula::And(a, b) => return Formula::or(&a.not(), &b.not()),
            Formula::Or(a, b) => {
                return match self.cases() {
                    Some([(p, a), (_, b)]) => Formula::chosen(p, &a.not(), &b.not()),
                    None => Formula::and(&a.not(), &b.not()),
                };
            }
            Formula::Opaque(id, each) => Formula::Not(*id, *each),
            Formula::Not(id, each) => Formula::Opaque(*id, *each),
        })
    }

    /// Does something with each value in it.
    pub(in crate::prove) fn each_value(&self, f: &mut impl FnMut(&Lin)) {
        match self {
            Formula::Ge(x) => f(x),
            Formula::And(a, b) | Formula::Or(a, b) => {
                a.each_value(f);
                b.each_value(f);
            }
            _ => {}
        }
    }

    /// The statement of other values.
    pub(in crate::prove) fn map(self: &Rc<Self>, of: &impl Fn(&Lin) -> Lin) -> Rc<Self> {
        match &**self {
            Formula::Ge(x) => Rc::new(Formula::ge(of(x))),
            Formula::And(a, b) => Formula::and(&a.map(of), &b.map(of)),
            Formula::Or(a, b) => Formula::or(&a.map(of), &b.map(of)),
            _ => Rc::clone(self),
        }
    }

    /// `p ∧ a ∨ ¬p ∧ b`, kept in this form so that a path can decide p first.
    pub(in crate::prove) fn chosen(p: &Rc<Self>, a: &Rc<Self>, b: &Rc<Self>) -> Rc<Self> {
        let side = |p: Rc<Self>, f: &Rc<Self>| Rc::new(Formula::And(p, Rc::clone(f)));
        match (&**p, a == b) {
            (_, true) | (Formula::True, _) => Rc::clone(a),
            (Formula::False, _) => Rc::clone(b),
            _ => Rc::new(Formula::Or(side(Rc::clone(p), a), side(p.not(), b))),
        }
    }

    /// The two cases of `p ∧ a ∨ ¬p ∧ b`.
    pub(in crate::prove) fn cases(&self) -> Option<[(&Rc<Self>, &Rc<Self>); 2]> {
        let Formula::Or(x, y) = self else { return None };
        let (Formula::And(p, a), Formula::And(q, b)) = (&**x, &**y) else {
            return None;
        };
        (*q == p.not()).then_some([(p, a), (q, b)])
    }

    /// Whether all threads of the block agree.
    pub(in crate::prove) fn is_uniform(&self, symbols: &Symbols) -> bool {
        match self {
            Formula::True | Formula::False => true,
            Formula::Ge(x) => symbols.is_uniform(x),
            Formula::And(a, b) | Formula::Or(a, b) => {
                a.is_uniform(symbols) && b.is_uniform(symbols)
            }
            Formula::Opaque(_, each) | Formula::Not(_, each) => !each,
        }
    }

    /// Whether the lanes of each warp agree.
    pub(in crate::prove) fn is_alike_in_warps(&self, symbols: &Symbols, threads: usize) -> bool {
        let alike = |n: Num| {
            let values = n.values();
            n.one().is_some() || (0..threads).all(|t| values.at(t) == values.at(t / 32 * 32))
        };
        match self {
            Formula::Ge(x) => {
                let terms = x.terms.list();
                let mut terms = terms.iter();
                alike(x.k)
                    && terms.all(|(m, c)| alike(*c) && m.symbols().all(|s| !symbols.info(s).each))
            }
            Formula::And(a, b) | Formula::Or(a, b) => {
                a.is_alike_in_warps(symbols, threads) && b.is_alike_in_warps(symbols, threads)
            }
            other => other.is_uniform(symbols),
        }
    }

    /// Whether it holds for a thread, where that is a matter of numbers; none where symbols are in it.
    pub(in crate::prove) fn for_thread(&self, thread: usize) -> Option<bool> {
        match self {
            Formula::True => Some(true),
            Formula::False => Some(false),
            Formula::Ge(x) => x.as_number().map(|k| k.at(thread) >= 0),
            Formula::And(a, b) => match (a.for_thread(thread), b.for_thread(thread)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), b) => b,
                (a, Some(true)) => a,
                _ => None,
            },
            Formula::Or(a, b) => match (a.for_thread(thread), b.for_thread(thread)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), b) => b,
                (a, Some(false)) => a,
                _ => None,
            },
            Formula::Opaque(..) | Formula::Not(..) => None,
        }
    }

    /// The threads of a mask for which it is not known to be false.
    pub(in crate::prove) fn possible(&self, mask: Mask) -> Mask {
        if !self.is_of_index() {
            return mask;
        }
        mask.keep(|t| self.for_thread(t) != Some(false))
    }

    /// Some part of it is a matter of the thread's index alone.
    fn is_of_index(&self) -> bool {
        match self {
            Formula::True | Formula::Opaque(..) | Formula::Not(..) => false,
            Formula::False => true,
            Formula::Ge(x) => x.terms.is_empty(),
            Formula::And(a, b) | Formula::Or(a, b) => a.is_of_index() || b.is_of_index(),
        }
    }

    /// The statements of a conjunction.
    pub(in crate::prove) fn conjuncts(self: &Rc<Self>) -> Vec<Rc<Self>> {
        match &**self {
            Formula::And(a, b) => {
                let mut all = a.conjuncts();
                all.extend(b.conjuncts());
                all
            }
            Formula::True => Vec::new(),
            _ => vec![Rc::clone(self)],
        }
    }
}
