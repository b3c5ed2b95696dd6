//! What a value is where its symbols have values.

use super::formula::Formula;
use super::symbols::{Definition, Symbols};
use super::value::{Lin, Sym};

impl Symbols {
    /// The value where these symbols have these values; none if it is made of others, differs between threads, or does not fit.
    pub(super) fn value(&self, x: &Lin, at: &[(Sym, i64)]) -> Option<i64> {
        let mut sum = x.k.one()?;
        for (product, factor) in x.terms.list().iter() {
            let mut term = factor.one()?;
            for symbol in product.symbols() {
                term = term.checked_mul(self.value_of(symbol, at)?)?;
            }
            sum = sum.checked_add(term)?;
        }
        Some(sum)
    }

    fn value_of(&self, symbol: Sym, at: &[(Sym, i64)]) -> Option<i64> {
        if let Some((_, value)) = at.iter().find(|(known, _)| *known == symbol) {
            return Some(*value);
        }
        let of = |x: &Lin| self.value(x, at);
        match &self.info(symbol).definition {
            Definition::Low(x, bits) => Some(of(x)? & ((1_i64 << (*bits).min(62)) - 1)),
            Definition::Shr(x, bits) => Some(of(x)? >> (*bits).min(63)),
            Definition::Div(x, by) => Some(of(x)?.div_euclid(*by)),
            Definition::Max(x, y) => Some(of(x)?.max(of(y)?)),
            Definition::Min(x, y) => Some(of(x)?.min(of(y)?)),
            Definition::Xor(x, y) => Some(of(x)? ^ of(y)?),
            Definition::Read(x, ty) => i64::try_from(super::meaning::read(of(x)?.into(), *ty)).ok(),
            Definition::Ite(p, x, y) => of(if self.holds_at(p, at)? { x } else { y }),
            Definition::Free(_) | Definition::Element(..) => None,
        }
    }

    /// Whether a statement holds where these symbols have these values; none if that is not known.
    pub(super) fn holds_at(&self, f: &Formula, at: &[(Sym, i64)]) -> Option<bool> {
        Some(match f {
            Formula::True => true,
            Formula::False => false,
            Formula::Ge(x) => self.value(x, at)? >= 0,
            Formula::And(a, b) => self.holds_at(a, at)? && self.holds_at(b, at)?,
            Formula::Or(a, b) => self.holds_at(a, at)? || self.holds_at(b, at)?,
            Formula::Opaque(..) | Formula::Not(..) => return None,
        })
    }
}
