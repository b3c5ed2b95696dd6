//! Digits of numbers: one form for remainders and quotients by constants.
//!
//! ```text
//! y mod d           = y − d·⌊y / d⌋
//! ⌊(d·v + u) / d⌋   = v + ⌊u / d⌋
//! ⌊⌊y / d⌋ / e⌋     = ⌊y / (d·e)⌋
//! ```
//!
//! A compiler of indices may write the digit `⌊n / 8⌋ mod 8` as `(n >> 3) & 7` or as `(n & 56) >> 3`, and three times eight of it as `3·(n & 56)`. Without remainders all are
//! `⌊n / 8⌋ − 8·⌊n / 64⌋`. And no remainder is negative: `c·⌊y / d⌋ − c·e·⌊y / (d·e)⌋` is at least 0 whatever y is, since all of these round down.

use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::{Lin, Mono, Sym};

/// Remainders in one value, at most.
const REMAINDERS: u32 = 6;

impl Symbols {
    /// A value without remainders: what they are of, and its quotients.
    pub(in crate::prove) fn in_quotients(&mut self, x: &Lin) -> Lin {
        let mut all = *x;
        for symbol in x.symbols() {
            let Some(value) = self.as_quotients(symbol) else {
                continue;
            };
            match all.substitute(symbol, &value) {
                Some(without) => all = without,
                None => return *x,
            }
        }
        all
    }

    /// A remainder or a quotient in quotients; none if it is neither.
    fn as_quotients(&mut self, symbol: Sym) -> Option<Lin> {
        if let Definition::Low(of, bits) = self.info(symbol).definition {
            let (of, by) = (self.in_quotients(&of), power(bits)?);
            let quotient = self.floor(&of, by);
            return Some(of.sub(&quotient.scale(by)));
        }
        let (of, by) = self.quotient_of(symbol)?;
        let of = self.in_quotients(&of);
        Some(self.floor(&of, by))
    }

    /// What a quotient is of, and by what it is divided.
    fn quotient_of(&self, symbol: Sym) -> Option<(Lin, i64)> {
        match self.info(symbol).definition {
            Definition::Shr(of, bits) => Some((of, power(bits)?)),
            Definition::Div(of, by) => Some((of, by)),
            _ => None,
        }
    }

    /// `⌊x / by⌋`, without what is a multiple of the divisor.
    fn floor(&mut self, x: &Lin, by: i64) -> Lin {
        let multiple = |n: Num| n.one().filter(|n| n % by == 0).map(|n| n / by);
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for (product, factor) in x.terms.list().iter() {
            match multiple(*factor) {
                Some(factor) => whole.push((*product, Num::same(factor))),
                None => rest.push((*product, *factor)),
            }
        }
        let [of_whole, of_rest] = match x.k.one() {
            Some(k) => [k.div_euclid(by), k.rem_euclid(by)].map(Num::same),
            None => [Num::ZERO, x.k],
        };
        let (whole, rest) = (Lin::of(whole, of_whole), Lin::of(rest, of_rest));
        let nested = rest.single().and_then(|symbol| self.quotient_of(symbol));
        let quotient = match nested.and_then(|(of, before)| Some((of, before.checked_mul(by)?))) {
            Some((of, by)) => self.floor(&of, by),
            None => self.div(&rest, by),
        };
        whole.add(&quotient)
    }

    /// Whether `x` is at least 0 by its ranges once every quotient that is subtracted is taken with one from which it leaves a remainder.
    pub(in crate::prove) fn covers_remainders(&mut self, x: &Lin, active: Mask) -> bool {
        let subtracted = |(product, factor): &(Mono, Num)| {
            let symbol = product.symbols().next();
            let digit = symbol.is_some_and(|symbol| {
                matches!(
                    self.info(symbol).definition,
                    Definition::Low(..) | Definition::Shr(..) | Definition::Div(..)
                )
            });
            digit && factor.one().is_some_and(|c| c < 0)
        };
        if !x.terms.list().iter().any(subtracted) {
            return false;
        }
        let mut rest = self.in_quotients(x);
        for _ in 0..REMAINDERS {
            if self.never_negative(&rest, active) {
                return true;
            }
            match self.remainder_in(&rest) {
                Some(remainder) => rest = rest.sub(&remainder),
                None => return false,
            }
        }
        false
    }

    /// A multiple of `⌊y / d⌋ − e·⌊y / (d·e)⌋` without which a quotient is not subtracted any more.
    fn remainder_in(&self, x: &Lin) -> Option<Lin> {
        let mut quotients = Vec::new();
        for (product, factor) in x.terms.list().iter() {
            let mut symbols = product.symbols();
            if let (Some(symbol), None, Some(c)) = (symbols.next(), symbols.next(), factor.one())
                && let Some((of, by)) = self.quotient_of(symbol)
            {
                quotients.push((symbol, of, by, c));
            }
        }
        quotients.iter().find_map(|&(symbol, of, by, c)| {
            let c = c.checked_neg().filter(|c| *c > 0)?;
            let added = quotients.iter().filter(|q| q.1 == of && q.3 > 0);
            let mut finer: Vec<_> = added.map(|q| (Lin::symbol(q.0), q.2)).collect();
            finer.push((of, 1));
            // The coarsest first: it takes the least with it.
            finer.sort_by_key(|(_, d)| -d);
            let (quotient, parts) = finer.into_iter().find_map(|(quotient, d)| {
                let parts = by / d;
                (by % d == 0 && parts > 1 && c % parts == 0).then_some((quotient, parts))
            })?;
            let remainder = quotient.sub(&Lin::symbol(symbol).scale(parts));
            Some(remainder.scale(c / parts))
        })
    }
}

/// `2^bits`
fn power(bits: u32) -> Option<i64> {
    (bits < 62).then(|| 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::{Lin, Mask, Symbols};

    /// A number and its digits in many forms.
    fn digits(symbols: &mut Symbols, n: &Lin) -> Vec<Lin> {
        let mut all = vec![*n];
        for bits in [2, 3, 5] {
            let shifted = symbols.shr(n, bits);
            all.push(symbols.low(n, bits));
            all.push(symbols.low(&shifted, 3));
            all.push(symbols.and(n, 0b111 << bits));
            for d in [3, 9, 57] {
                let quotient = symbols.div(&shifted, d);
                all.push(shifted.sub(&quotient.scale(d)));
                all.push(symbols.div(n, d << bits));
                all.push(quotient);
            }
            all.push(shifted);
        }
        all
    }

    /// Values of all pairs of digits, with signs and factors: in quotients they are the same numbers, and those that are found not to be negative are not.
    #[test]
    fn forms_of_digits_have_the_same_values() {
        let mut symbols = Symbols::default();
        let free = symbols.free(0, 3000, false);
        let n = Lin::symbol(free);
        let all = digits(&mut symbols, &n);
        let active = Mask::all(32);
        let (mut same, mut covered) = (0, 0);
        for a in &all {
            for b in &all {
                for c in [-57, -8, -3, -1, 1, 8] {
                    let x = a.add(&b.scale(c));
                    let form = symbols.in_quotients(&x);
                    let not_negative = symbols.covers_remainders(&x, active);
                    same += i32::from(form == x);
                    covered += i32::from(not_negative && !symbols.never_negative(&x, active));
                    for value in (0..3000).step_by(7) {
                        let of = |x: &Lin| symbols.value(x, &[(free, value)]).expect("a value");
                        assert_eq!(of(&x), of(&form), "{x:?} at {value}");
                        assert!(!not_negative || of(&x) >= 0, "{x:?} at {value}");
                    }
                }
            }
        }
        assert!(same > 100, "{same} are in quotients as they are");
        assert!(covered > 50, "{covered} follow from remainders alone");
    }

    /// One form for a digit, however it is written.
    #[test]
    fn a_digit_has_one_form() {
        let mut symbols = Symbols::default();
        let free = symbols.free(0, 100_000, false);
        let n = Lin::symbol(free);
        let shifted = symbols.shr(&n, 3);
        let digit = symbols.low(&shifted, 3).scale(144);
        let masked = symbols.and(&n, 0b11_1000).scale(18);
        assert_ne!(digit, masked);
        assert_eq!(symbols.in_quotients(&digit), symbols.in_quotients(&masked));
        let quotient = symbols.div(&shifted, 57);
        let at_once = symbols.div(&n, 456);
        assert_eq!(
            symbols.in_quotients(&quotient),
            symbols.in_quotients(&at_once)
        );
    }
}
