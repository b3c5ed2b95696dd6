//! Index expressions as values: what a place says, evaluated with the registers as they stand.

use crate::index::code::{Operand, Ty};
use crate::index::{Expr, Node as Index};
use crate::ir::{Class, Reg, class_of};
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Machine, Val};

impl Machine<'_> {
    /// The value of an index expression now.
    pub(in crate::prove) fn evaluate(&mut self, e: Expr) -> Lin {
        if let Some(known) = self.expressions.get(&e) {
            return *known;
        }
        let value = match self.entry.pool.node(e).clone() {
            Index::Const(c) => Lin::constant(c),
            Index::Var { name } => self.variable(&name),
            Index::Sum(terms, k) => {
                let mut sum = Lin::constant(k);
                for (c, x) in terms {
                    let x = self.evaluate(x);
                    sum = sum.add(&x.scale(c));
                }
                sum
            }
            Index::Field { x, shift, mask } => {
                let x = self.evaluate(x);
                let moved = if shift >= 0 {
                    x.scale(1i64.wrapping_shl(shift as u32))
                } else {
                    self.symbols.shr(&x, (-shift) as u32)
                };
                // A mask of all that is left of 31 bits: the compiler found no bound of the value, and facts may give one.
                let all = mask.trailing_ones() == mask.count_ones()
                    && i64::from(mask.count_ones()) - i64::from(shift) == 31;
                if all && self.is_below(&moved, mask) {
                    moved
                } else {
                    self.symbols.and(&moved, mask)
                }
            }
            Index::Xor(items) => {
                let mut all = Lin::constant(0);
                for x in items {
                    let x = self.evaluate(x);
                    all = self.symbols.xor(&all, &x);
                }
                all
            }
            Index::Mul(a, b) => {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                match a.mul(&b) {
                    Some(product) => product,
                    None => self.unknown(),
                }
            }
            Index::Div(x, d) => {
                let x = self.evaluate(x);
                self.divided(&x, d)
            }
            Index::DivFast { .. } => self.unknown(),
            Index::Pin(x) => self.evaluate(x),
        };
        self.expressions.insert(e, value);
        value
    }

    /// `0 ≤ x ≤ most` by the facts, where the range of `x` does not say so.
    fn is_below(&mut self, x: &Lin, most: u64) -> bool {
        let Ok(most) = i64::try_from(most) else {
            return false;
        };
        let (lo, hi) = self.symbols.range(x);
        if lo >= 0 && hi <= most.into() {
            return false;
        }
        let facts = self.facts.clone();
        let symbols = &mut self.symbols;
        symbols.at_least_zero(x, &facts)
            && symbols.at_least_zero(&Lin::constant(most).sub(x), &facts)
    }

    /// Whether the registers of an expression's variables have been set.
    pub(in crate::prove) fn is_computed(&self, e: Expr) -> bool {
        let names = self.entry.pool.variables(e);
        names
            .iter()
            .all(|name| match self.entry.variables.get(name) {
                Some(&Operand::Reg(id, ty)) => {
                    let class = class_of(ty);
                    self.registers.get(&Reg { class, id }).is_some()
                }
                _ => true,
            })
    }

    fn variable(&mut self, name: &str) -> Lin {
        match self.entry.variables.get(name) {
            Some(Operand::Imm(k)) => Lin::constant(*k),
            Some(&Operand::Reg(id, ty)) => {
                let reg = Reg {
                    class: class_of(ty),
                    id,
                };
                let x = self.integer(reg);
                if self.entry.indices.contains(name) {
                    self.read(&x, ty)
                } else {
                    x
                }
            }
            None => self.unknown(),
        }
    }

    /// The integer that a register holds.
    pub(in crate::prove) fn integer(&mut self, reg: Reg) -> Lin {
        if let Some(Val::Int(x)) = self.registers.get(&reg) {
            return *x;
        }
        let x = match reg.class {
            Class::B32 => self.any(Ty::U32),
            _ => self.unknown(),
        };
        if reg.class != Class::Pred {
            self.registers.insert(reg, Val::Int(x));
        }
        x
    }

    /// Any value.
    pub(in crate::prove) fn unknown(&mut self) -> Lin {
        self.any(Ty::S64)
    }

    /// Forgets what index expressions were, before registers change.
    pub(in crate::prove) fn forget(&mut self) {
        self.expressions.clear();
    }
}
