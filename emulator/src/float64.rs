//! Arithmetic of f64 in every rounding, exact: integers of 128 bits that are rounded once.
//!
//! The host rounds to nearest only, and the error of its result is itself rounded where numbers are tiny, so that the directed roundings cannot be
//! had from it. NaNs are those of an H100: the result is the first NaN of b, c and a, made quiet, with its payload and sign; an operation
//! without a result gives 0xfff8000000000000. Example: 1 / 3 toward +∞ is 0x3fd5555555555556.

use crate::ir::{FloatOp, Rounding};

const SIGN: u64 = 1 << 63;
const QUIET: u64 = 1 << 51;
const INFINITY: u64 = 0x7ff << 52;

/// The result of an operation that has none.
const INVALID: u64 = 0xfff8_0000_0000_0000;

pub(crate) fn is_nan(x: u64) -> bool {
    x & !SIGN > INFINITY
}

/// (-1)^negative · m · 2^e, and a little more in size if `sticky`.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    m: u128,
    e: i32,
    sticky: bool,
}

impl Exact {
    /// A finite number.
    fn of(x: u64) -> Self {
        let (field, fraction) = ((x & !SIGN) >> 52, x & ((1 << 52) - 1));
        let (m, e) = match field {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, field as i32 - 1075),
        };
        Self {
            negative: x & SIGN != 0,
            m: m.into(),
            e,
            sticky: false,
        }
    }

    /// The same with the highest bit at place 125.
    fn high(self) -> Self {
        let up = self.m.leading_zeros() as i32 - 2;
        Self {
            m: if up < 0 { self.m >> 1 } else { self.m << up },
            e: self.e - up,
            ..self
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            m: self.m * other.m,
            e: self.e + other.e,
            sticky: false,
        }
    }

    fn plus(self, other: Self, rounding: Rounding) -> Self {
        let none = self.negative && other.negative
            || self.negative != other.negative && rounding == Rounding::Down;
        match (self.m, other.m) {
            (0, 0) => {
                return Self {
                    negative: none,
                    ..self
                };
            }
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.high(), other.high());
        let (a, b) = if (a.e, a.m) < (b.e, b.m) {
            (b, a)
        } else {
            (a, b)
        };
        let down = (a.e - b.e) as u32;
        let (small, sticky) = if down > 127 {
            (0, true)
        } else {
            (b.m >> down, b.m & ((1 << down) - 1) != 0)
        };
        let m = if a.negative == b.negative {
            a.m + small
        } else {
            a.m - small - u128::from(sticky)
        };
        Self {
            negative: if m == 0 && !sticky { none } else { a.negative },
            m,
            e: a.e,
            sticky,
        }
    }

    fn over(self, other: Self) -> Self {
        let (a, b) = (self.high(), other.high());
        // 126 bits by 53: a quotient of at least 73.
        let divisor = b.m >> 73;
        Self {
            negative: self.negative != other.negative,
            m: a.m / divisor,
            e: a.e - (b.e + 73),
            sticky: a.m % divisor != 0,
        }
    }

    fn root(self) -> Self {
        let high = self.high();
        let (m, e) = if high.e % 2 == 0 {
            (high.m, high.e)
        } else {
            (high.m << 1, high.e - 1)
        };
        let root = m.isqrt();
        Self {
            negative: false,
            m: root,
            e: e / 2,
            sticky: root * root != m,
        }
    }

    fn round(self, rounding: Rounding) -> u64 {
        let Self {
            negative,
            m,
            e,
            sticky,
        } = self;
        let sign = if negative { SIGN } else { 0 };
        if m == 0 {
            return sign;
        }
        let top = 127 - m.leading_zeros() as i32;
        // Exponent of the last bit of the result.
        let last = (e + top).max(-1022) - 52;
        let drop = last - e;
        let (mut kept, rest) = match drop {
            ..=0 => (m << -drop, 0),
            // What is dropped, with its highest bit at place 127.
            1..=127 => (m >> drop, m << (128 - drop)),
            128 => (0, m),
            _ => (0, 1),
        };
        let half = 1u128 << 127;
        let inexact = rest != 0 || sticky;
        let up = match rounding {
            Rounding::Nearest => rest > half || rest == half && (sticky || kept & 1 == 1),
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => inexact && negative,
            Rounding::Up => inexact && !negative,
        };
        kept += u128::from(up);
        let bits = if kept >> 52 == 0 {
            kept as u64
        } else {
            (((last + 1074) as u64) << 52).wrapping_add(kept as u64)
        };
        if bits < INFINITY && last < 972 {
            return sign | bits;
        }
        let inward = match rounding {
            Rounding::Nearest | Rounding::NearestAway => false,
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
        };
        sign | if inward { INFINITY - 1 } else { INFINITY }
    }
}

/// a·b + c to nearest.
pub(crate) fn fma(a: f64, b: f64, c: f64) -> f64 {
    let near = a.mul_add(b, c);
    if !near.is_nan() {
        return near;
    }
    let operands = [a, b, c].map(f64::to_bits);
    let bits = arithmetic(FloatOp::Fma, Rounding::Nearest, operands);
    bits.map_or(near, f64::from_bits)
}

/// `f` of the bits of its operands; nothing for what is not arithmetic.
pub(crate) fn arithmetic(f: FloatOp, rounding: Rounding, [a, b, c]: [u64; 3]) -> Option<u64> {
    // Operands in order, a subtrahend negated.
    let (operands, used) = match f {
        FloatOp::Add | FloatOp::Mul | FloatOp::Div => ([a, b, 0], 2),
        FloatOp::Sub => ([a, b ^ SIGN, 0], 2),
        FloatOp::Fma => ([a, b, c], 3),
        FloatOp::Rcp | FloatOp::Sqrt => ([a, 0, 0], 1),
        _ => return None,
    };
    // The second factor or addend speaks before the third, and the first is last.
    // A NaN that is subtracted keeps its sign.
    let second = if f == FloatOp::Sub { b } else { operands[1] };
    let mut ranked = [second, operands[2], operands[0]].into_iter();
    if let Some(nan) = ranked.find(|x| is_nan(*x)) {
        return Some(nan | QUIET);
    }
    let [x, y, z] = operands.map(f64::from_bits);
    // To nearest the host is exact; and so are infinities and divisions by zero in any rounding.
    let near = match f {
        FloatOp::Add | FloatOp::Sub => x + y,
        FloatOp::Mul => x * y,
        FloatOp::Fma => x.mul_add(y, z),
        FloatOp::Div => x / y,
        FloatOp::Rcp => 1.0 / x,
        _ => x.sqrt(),
    };
    if near.is_nan() {
        return Some(INVALID);
    }
    let finite = operands[..used].iter().all(|x| x & !SIGN < INFINITY);
    let by_zero = matches!(f, FloatOp::Div) && y == 0.0 || f == FloatOp::Rcp && x == 0.0;
    if rounding == Rounding::Nearest || !finite || by_zero {
        return Some(near.to_bits());
    }
    let [x, y, z] = operands.map(Exact::of);
    let exact = match f {
        FloatOp::Add | FloatOp::Sub => x.plus(y, rounding),
        FloatOp::Mul => x.times(y),
        FloatOp::Fma => x.times(y).plus(z, rounding),
        _ if x.m == 0 => return Some(near.to_bits()),
        FloatOp::Div => x.over(y),
        FloatOp::Rcp => Exact::of(1.0f64.to_bits()).over(x),
        _ => x.root(),
    };
    Some(exact.round(rounding))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // results are exact
mod tests {
    use super::{Exact, arithmetic};
    use crate::ir::{FloatOp, Rounding};

    /// To nearest the host says what is right; the directed roundings enclose it, and one of them is it or its neighbour.
    #[test]
    fn roundings_agree_with_the_host_and_enclose_the_exact_value() {
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let x = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            // A third near one, a third tiny, a third anything finite.
            match x % 3 {
                0 => x & !(0x7ff << 52) | (1000 + (x >> 32) % 46) << 52,
                1 => x & !(0x7ff << 52) | ((x >> 32) % 60) << 52,
                _ if x >> 52 & 0x7ff == 0x7ff => x & !(1 << 62),
                _ => x,
            }
        };
        for _ in 0..200_000 {
            let [a, b, c] = [next(), next(), next()];
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            let [ea, eb, ec] = [a, b, c].map(Exact::of);
            let one = Exact::of(1.0f64.to_bits());
            let cases = [
                (FloatOp::Add, x + y, Some(ea.plus(eb, Rounding::Nearest))),
                (FloatOp::Mul, x * y, Some(ea.times(eb))),
                (
                    FloatOp::Fma,
                    x.mul_add(y, z),
                    Some(ea.times(eb).plus(ec, Rounding::Nearest)),
                ),
                (
                    FloatOp::Div,
                    x / y,
                    (ea.m != 0 && eb.m != 0).then(|| ea.over(eb)),
                ),
                (FloatOp::Rcp, 1.0 / x, (ea.m != 0).then(|| one.over(ea))),
                (
                    FloatOp::Sqrt,
                    x.sqrt(),
                    (ea.m != 0 && x > 0.0).then(|| ea.root()),
                ),
            ];
            for (f, host, exact) in cases {
                let Some(exact) = exact else { continue };
                assert_eq!(
                    exact.round(Rounding::Nearest),
                    host.to_bits(),
                    "{f:?} {x:e} {y:e} {z:e}"
                );
                let get = |r| f64::from_bits(arithmetic(f, r, [a, b, c]).unwrap_or(0));
                let (down, up, zero) =
                    (get(Rounding::Down), get(Rounding::Up), get(Rounding::Zero));
                assert!(down <= host && host <= up, "{f:?} {x:e} {y:e} {z:e}");
                assert!(
                    down == up || down.next_up() == up,
                    "{f:?} {x:e} {y:e} {z:e}"
                );
                assert_eq!(
                    zero,
                    if down > 0.0 || (down == 0.0 && up > 0.0) {
                        down
                    } else {
                        up
                    }
                );
            }
        }
    }

    #[test]
    fn nan_keeps_its_payload_and_zeros_their_signs() {
        let sub = |r, a, b| arithmetic(FloatOp::Sub, r, [a, b, 0]);
        let one = 1.0f64.to_bits();
        assert_eq!(sub(Rounding::Down, one, one), Some(1 << 63));
        assert_eq!(sub(Rounding::Up, one, one), Some(0));
        assert_eq!(
            sub(Rounding::Nearest, one, 0x7ff8 << 48),
            Some(0x7ff8 << 48)
        );
        assert_eq!(
            arithmetic(
                FloatOp::Add,
                Rounding::Nearest,
                [one, 0xfff1_e64f_6ccf_a9b3, 0]
            ),
            Some(0xfff9_e64f_6ccf_a9b3)
        );
        let root = arithmetic(FloatOp::Sqrt, Rounding::Nearest, [one | 1 << 63, 0, 0]);
        assert_eq!(root, Some(0xfff8 << 48));
    }
}
