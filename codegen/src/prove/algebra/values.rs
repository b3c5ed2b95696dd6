//! What a value is where its symbols have values, or other symbols stand for them.

use std::rc::Rc;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::{Lin, Sym};

impl Symbols {
    /// The value where these symbols have these values; none if it is made of others, differs between threads, or does not fit.
    pub(in crate::prove) fn value(&self, x: &Lin, at: &[(Sym, i64)]) -> Option<i64> {
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
            Definition::Quotient(x, by) => of(x)?.checked_div_euclid(of(by)?),
            Definition::Remainder(x, by) => of(x)?.checked_rem_euclid(of(by)?),
            Definition::Max(x, y) => Some(of(x)?.max(of(y)?)),
            Definition::Min(x, y) => Some(of(x)?.min(of(y)?)),
            Definition::Xor(x, y) => Some(of(x)? ^ of(y)?),
            Definition::Read(x, ty) => {
                i64::try_from(crate::prove::algebra::meaning::read(of(x)?.into(), *ty)).ok()
            }
            Definition::Ite(p, x, y) => of(if self.holds_at(p, at)? { x } else { y }),
            Definition::Free(_) | Definition::Element(..) => None,
        }
    }

    /// A value with numbers in place of the symbols that can be one number alone.
    pub(in crate::prove) fn settled(&self, x: &Lin) -> Lin {
        let mut all = *x;
        for symbol in x.symbols() {
            let info = self.info(symbol);
            if let (true, Ok(number)) = (info.lo == info.hi, i64::try_from(info.lo)) {
                let settled = all.substitute(symbol, &Lin::constant(number));
                all = settled.unwrap_or(all);
            }
        }
        all
    }

    /// The value with other symbols in place of some, in the definitions of its symbols too; none if nothing is defined so.
    pub(in crate::prove) fn renamed(&self, x: &Lin, pairs: &[(Sym, Sym)]) -> Option<Lin> {
        if !x
            .symbols()
            .any(|s| pairs.iter().any(|p| self.depends(s, p.0)))
        {
            return Some(*x);
        }
        let mut sum = Lin::number(x.k);
        for (product, factor) in x.terms.list().iter() {
            let mut term = Lin::number(*factor);
            for symbol in product.symbols() {
                term = term.mul(&Lin::symbol(self.renamed_symbol(symbol, pairs)?))?;
            }
            sum = sum.add(&term);
        }
        Some(sum)
    }

    fn renamed_symbol(&self, symbol: Sym, pairs: &[(Sym, Sym)]) -> Option<Sym> {
        if let Some((_, to)) = pairs.iter().find(|(from, _)| *from == symbol) {
            return Some(*to);
        }
        if !pairs.iter().any(|p| self.depends(symbol, p.0)) {
            return Some(symbol);
        }
        let of = |x: &Lin| self.renamed(x, pairs);
        let definition = match &self.info(symbol).definition {
            Definition::Low(x, bits) => Definition::Low(of(x)?, *bits),
            Definition::Shr(x, bits) => Definition::Shr(of(x)?, *bits),
            Definition::Div(x, by) => Definition::Div(of(x)?, *by),
            Definition::Quotient(x, y) => Definition::Quotient(of(x)?, of(y)?),
            Definition::Remainder(x, y) => Definition::Remainder(of(x)?, of(y)?),
            Definition::Max(x, y) => Definition::Max(of(x)?, of(y)?),
            Definition::Min(x, y) => Definition::Min(of(x)?, of(y)?),
            Definition::Xor(x, y) => Definition::Xor(of(x)?, of(y)?),
            Definition::Read(x, ty) => Definition::Read(of(x)?, *ty),
            Definition::Element(input, at) => {
                let at: Option<Rc<[Lin]>> = at.iter().map(of).collect();
                Definition::Element(*input, at?)
            }
            // A statement of one value, as whether an element of a list is inside of it.
            Definition::Ite(p, x, y) => match &**p {
                Formula::Ge(left) => {
                    let p = Rc::new(Formula::ge(of(left)?));
                    Definition::Ite(p, of(x)?, of(y)?)
                }
                _ => return None,
            },
            Definition::Free(_) => return None,
        };
        self.known(&definition)
    }

    /// Whether a statement holds where these symbols have these values; none if that is not known.
    pub(in crate::prove) fn holds_at(&self, f: &Formula, at: &[(Sym, i64)]) -> Option<bool> {
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
