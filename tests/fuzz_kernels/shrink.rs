//! Smaller programs of which the same is true.

use crate::program::{Pred, Program, Stmt};
use crate::visit::{self, Visitor};

/// Does one simplification, the n-th of all.
struct Simplify {
    wanted: usize,
    seen: usize,
    done: bool,
}

impl Simplify {
    fn now(&mut self) -> bool {
        self.seen += 1;
        self.done |= self.seen - 1 == self.wanted;
        self.seen - 1 == self.wanted
    }
}

impl Visitor for Simplify {
    fn block(&mut self, b: &mut Vec<Stmt>) {
        for i in 0..b.len() {
            if self.now() {
                b.remove(i);
                return;
            }
            let inner = match &b[i] {
                Stmt::When(_, body) | Stmt::Region(body) | Stmt::Loop { body, .. } => {
                    vec![body.clone()]
                }
                Stmt::WhenElse(_, then, other) => vec![then.clone(), other.clone()],
                _ => Vec::new(),
            };
            for body in inner {
                if self.now() {
                    b.splice(i..=i, body);
                    return;
                }
            }
        }
    }

    fn pred(&mut self, p: &mut Pred) {
        let inner = match p {
            Pred::And(both) | Pred::Or(both) => both.to_vec(),
            Pred::Not(inner) => vec![(**inner).clone()],
            _ => Vec::new(),
        };
        for simpler in inner {
            if self.now() {
                *p = simpler;
                return;
            }
        }
    }
}

/// The smallest program that is found of which `still` is true.
pub(crate) fn shrink(p: &Program, still: impl Fn(&Program) -> bool) -> Program {
    let (mut best, mut at) = (p.clone(), 0);
    loop {
        let mut next = best.clone();
        let mut simplify = Simplify {
            wanted: at,
            seen: 0,
            done: false,
        };
        visit::program(&mut next, &mut simplify);
        if !simplify.done {
            return best;
        }
        if still(&next) {
            best = next;
        } else {
            at += 1;
        }
    }
}
