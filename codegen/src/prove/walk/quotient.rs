//! Division by a constant, as the compiler of indices writes it: a multiplication and a shift.
//!
//! ```text
//! ⌊x / 6⌋ = ⌊(x >> 1)·0xaaaaaaab / 2³³⌋        mul.hi.u32, shr.u32 1        for all x below 2³²
//! ```
//!
//! With m·d = 2ˢ + e and x = q·d + r, x·m / 2ˢ = q + (q·e + r·m) / 2ˢ, and ⌊x·m / 2ˢ⌋ = ⌊x / d⌋ where the fraction is below 1. It is largest for the last x with
//! r = d − 1, where that is e·(q + 1) < m, or for the last x of all. Where x = d may be, d is ⌈2ˢ / m⌉: no other number has ⌊(d − 1)·m / 2ˢ⌋ = 0 and ⌊d·m / 2ˢ⌋ = 1.

use std::rc::Rc;

use crate::gcd::gcd;
use crate::index::code::Ty;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::meaning;
use crate::prove::algebra::numbers::Num;
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::Machine;

/// The divisor `d` for which `⌊x·m / 2^bits⌋ = ⌊x / d⌋` for all x from 0 to `most`.
fn divisor(m: u64, bits: u32, most: u128) -> Option<i64> {
    let whole = 1u128.checked_shl(bits)?;
    let m = u128::from(m);
    let d = whole.div_ceil(m);
    let excess = m.checked_mul(d)? - whole;
    let (quotient, rest) = (most / d, most % d);
    let periods = excess.checked_mul(quotient)?;
    let exact = periods < m && periods.checked_add(rest.checked_mul(m)?)? < whole;
    i64::try_from(d).ok().filter(|&d| exact && d > 1)
}

impl Machine<'_> {
    /// The high word of a product by a constant, and which product it is of: a shift may follow.
    pub(in crate::prove) fn high_product(&mut self, x: &Lin, m: i64, ty: Ty) -> Lin {
        let word = meaning::width(ty);
        // The bits of the multiplier.
        let m = m as u64 & (u64::MAX >> (64 - word));
        if m == 0 {
            return Lin::constant(0);
        }
        let most = self.symbols.range(x).1.min(ty.range().1);
        if let Some(d) = divisor(m, word, most.max(0) as u128) {
            return self.divided(x, d);
        }
        let high = self.any(ty);
        if let Some(symbol) = high.single() {
            self.high_products.insert(symbol, (*x, m, word));
        }
        high
    }

    /// A value divided by a constant, any number where it may be negative. Facts say then that the remainder is from 0 to d − 1: the range of a
    /// difference does not.
    pub(in crate::prove) fn divided(&mut self, x: &Lin, d: i64) -> Lin {
        if !self.not_negative(x) {
            return self.unknown();
        }
        let quotient = self.symbols.div(x, d);
        let of = quotient.single().map(|sym| self.symbols.info(sym));
        if let Some(&Definition::Div(of, d)) = of.map(|info| &info.definition) {
            let rest = of.sub(&quotient.scale(d));
            self.learn(&Rc::new(Formula::ge(rest)));
            self.learn(&Rc::new(Formula::ge(rest.scale(-1).plus(d - 1))));
        }
        quotient
    }

    /// A product shifted right, if that is what it was multiplied for: the quotient of its factor.
    pub(in crate::prove) fn quotient(&mut self, x: &Lin, by: u32) -> Option<Lin> {
        let product = x
            .single()
            .and_then(|symbol| self.high_products.get(&symbol));
        if let Some(&(of, m, word)) = product {
            let most = self.symbols.range(&of).1;
            let d = divisor(m, word + by, most.max(0) as u128)?;
            return Some(self.divided(&of, d));
        }
        let m = common_factor(x).filter(|m| m.count_ones() > 1)?;
        let terms = x.terms.list();
        let part = |n: Num| n.map(|n| n / m);
        let of = Lin::of(terms.iter().map(|(mono, c)| (*mono, part(*c))), part(x.k));
        if !self.not_negative(&of) {
            return None;
        }
        let most = self.symbols.range(&of).1;
        let d = divisor(m as u64, by, most.max(0) as u128)?;
        Some(self.divided(&of, d))
    }
}

impl Symbols {
    /// A value that is never negative, divided by one that is at least 1.
    pub(in crate::prove) fn quotient(&mut self, x: &Lin, by: &Lin) -> Lin {
        match by.as_constant() {
            Some(1) => return *x,
            Some(d) if d > 1 => return self.div(x, d),
            _ => {}
        }
        let (most, least) = (self.range(x).1.max(0), self.range(by).0.max(1));
        let each = self.differs(x) || self.differs(by);
        self.defined(Definition::Quotient(*x, *by), 0, most / least, each)
    }

    /// What the division of a value that is never negative by one that is at least 1 leaves.
    pub(in crate::prove) fn remainder(&mut self, x: &Lin, by: &Lin) -> Lin {
        if by.as_constant() == Some(1) {
            return Lin::constant(0);
        }
        if let (Some(x), Some(d @ 1..)) = (x.as_number(), by.as_constant()) {
            return Lin::number(x.map(|x| x.rem_euclid(d)));
        }
        let most = self.range(x).1.min(self.range(by).1 - 1).max(0);
        let each = self.differs(x) || self.differs(by);
        self.defined(Definition::Remainder(*x, *by), 0, most, each)
    }
}

/// The greatest common divisor of the coefficients of a value with symbols and of the number that is added.
fn common_factor(x: &Lin) -> Option<i64> {
    let terms = x.terms.list();
    let numbers = terms.iter().map(|(_, c)| *c).chain([x.k]);
    let mut factor = 0;
    for n in numbers {
        factor = gcd(factor, n.one()?.checked_abs()?);
    }
    (factor > 1 && !terms.is_empty()).then_some(factor)
}

#[cfg(test)]
mod tests {
    use super::{Lin, Symbols, divisor};

    /// Quotients and remainders by numbers and by symbols, of values of symbols: each is in its range, and right with other symbols in place of its own.
    #[test]
    fn quotients_by_symbols_are_exact() {
        let mut symbols = Symbols::default();
        let [x, d, y, e] =
            [(0, 60), (1, 9), (0, 60), (1, 9)].map(|(lo, hi)| symbols.free(lo, hi, false));
        let dividends = |x| {
            [
                Lin::symbol(x),
                Lin::symbol(x).scale(6).plus(5),
                Lin::constant(17),
            ]
        };
        let divisors = |d| {
            let d = Lin::symbol(d);
            [
                d,
                d.scale(4),
                d.plus(2),
                Lin::constant(1),
                Lin::constant(8),
                Lin::constant(6),
            ]
        };
        for (of, renamed) in dividends(x).into_iter().zip(dividends(y)) {
            for (by, to) in divisors(d).into_iter().zip(divisors(e)) {
                let found = [symbols.quotient(&of, &by), symbols.remainder(&of, &by)];
                let others = [
                    symbols.quotient(&renamed, &to),
                    symbols.remainder(&renamed, &to),
                ];
                let pairs = [(x, y), (d, e)];
                assert_eq!(found.map(|z| symbols.renamed(&z, &pairs)), others.map(Some));
                let ranges = found.map(|z| symbols.range(&z));
                for (x_is, d_is) in (0..=60).flat_map(|x| (1..=9).map(move |d| (x, d))) {
                    let at = [(x, x_is), (d, d_is)];
                    let [of, by] = [of, by].map(|z| symbols.value(&z, &at).expect("a number"));
                    for ((z, right), range) in found.iter().zip([of / by, of % by]).zip(ranges) {
                        assert_eq!(symbols.value(z, &at), Some(right), "{of} by {by}");
                        assert!((range.0..=range.1).contains(&right.into()), "{of} by {by}");
                    }
                }
            }
        }
        // What nothing is defined as has no name.
        let alone = symbols.quotient(&Lin::symbol(x).plus(1), &Lin::symbol(d));
        assert_eq!(symbols.renamed(&alone, &[(x, y)]), None);
    }

    /// Every multiplier of a byte or less, by every shift, against all x.
    #[test]
    fn divisors_are_exact_and_none_is_missed() {
        let mut found = 0;
        for m in 1..=255u64 {
            for bits in 0..=15 {
                for most in [0u128, 1, 7, 100, 255] {
                    let all = |d: u128| (0..=most).all(|x| (x * u128::from(m)) >> bits == x / d);
                    if let Some(d) = divisor(m, bits, most) {
                        assert!(all(d as u128), "{m} {bits} {most}: {d}");
                        found += 1;
                    } else {
                        assert!(!(2..=most).any(all), "{m} {bits} {most}");
                    }
                }
            }
        }
        assert!(found > 1000, "{found}");
    }

    #[test]
    fn words_too_long_are_no_quotients() {
        assert_eq!(divisor(0xaaaa_aaab, 33, u128::from(u32::MAX)), Some(3));
        assert_eq!(divisor(0xaaaa_aaaa, 33, u128::from(u32::MAX)), None);
        assert_eq!(divisor(u64::MAX, 127, u128::MAX), None);
        assert_eq!(divisor(3, 128, 1), None);
    }
}
