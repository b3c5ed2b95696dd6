//! Decimal digits of f64, as `printf` writes them.
//!
//! `x`·10^n is a quotient of two integers, m·2^e·10^n with m below 2^53. Where 128 bits hold both, its nearest integer is one division, or a shift if the divisor is
//! a power of two: exact, with ties to even, like the standard library's digits, which are used for the rest. Example: the digits of 12345.678 to two decimals
//! are the integer nearest to m·10^2 / 2^39, 1234568.

use std::io::Write;

/// The powers of ten that fit 128 bits.
static POWERS: [u128; 39] = {
    let mut powers = [1; 39];
    let mut n = 1;
    while n < 39 {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// The integer nearest to `x`·10^`decimals`, the even one of two; `None` if 128 bits do not hold what that takes, or 64 the result. `x` is finite and not
/// below zero.
fn scaled(x: f64, decimals: i32) -> Option<u64> {
    let bits = x.to_bits();
    let (raw, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let hidden = if raw == 0 { 0 } else { 1 << 52 };
    let power = raw.max(1) - 1075;
    let ten = *POWERS.get(decimals.unsigned_abs() as usize)?;
    let mut over = u128::from(fraction | hidden);
    let mut under = 1u128;
    if decimals >= 0 {
        over = over.checked_mul(ten)?;
    } else {
        under = ten;
    }
    if power >= 0 {
        over = over.checked_mul(1u128.checked_shl(power.unsigned_abs())?)?;
    }
    let shift = power.min(0).unsigned_abs();
    let (quotient, rest, half) = if under == 1 && shift > 0 {
        if shift >= 127 || over >= 1 << 127 {
            return None;
        }
        (over >> shift, over & ((1 << shift) - 1), 1 << (shift - 1))
    } else {
        under = under.checked_mul(1u128.checked_shl(shift)?)?;
        let rest = over % under;
        // Odd divisors have no half: twice the rest is then either below or above.
        (over / under, rest.checked_mul(2)?, under)
    };
    let up = rest > half || (rest == half && quotient & 1 == 1);
    u64::try_from(quotient + u128::from(up)).ok()
}

/// Appends the digits of `value` in base `BASE`, at most 16, with small letters.
pub(super) fn integer<const BASE: u64>(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 22];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(value % BASE) as usize & 15];
        value /= BASE;
        if value == 0 || at == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `x`, finite and not below zero, with `precision` decimals: `3.142`.
pub(super) fn fixed(out: &mut Vec<u8>, x: f64, precision: usize) {
    let decimals = i32::try_from(precision).unwrap_or(i32::MAX);
    let Some(value) = scaled(x, decimals) else {
        let _ = write!(out, "{x:.precision$}");
        return;
    };
    let start = out.len();
    integer::<10>(out, value);
    let digits = out.len() - start;
    // At least one digit before the point.
    if digits <= precision {
        insert(out, start, b'0', precision + 1 - digits);
    }
    if precision > 0 {
        let point = out.len() - precision;
        insert(out, point, b'.', 1);
    }
}

/// Appends `x`, finite and not below zero, as `d.ddde+XX` with `precision` decimals.
pub(super) fn exponent(out: &mut Vec<u8>, x: f64, precision: usize) {
    let start = out.len();
    let power = significant(out, x, precision + 1);
    scientific(out, start, power);
}

/// Appends `x`, finite and not below zero, with `digits` significant digits (at least one), the way that `%g` chooses; without zeros at the end unless
/// `keep_zeros`.
pub(super) fn general(out: &mut Vec<u8>, x: f64, digits: usize, keep_zeros: bool) {
    let start = out.len();
    let power = significant(out, x, digits);
    let is_small = power < -4;
    let is_large = power >= i32::try_from(digits).unwrap_or(i32::MAX);
    // Digits that stay whatever follows them: those before the point.
    let whole = if is_small || is_large || power < 0 {
        1
    } else {
        power.unsigned_abs() as usize + 1
    };
    if !keep_zeros {
        while out.len() > start + whole && out.last() == Some(&b'0') {
            out.pop();
        }
    }
    if is_small || is_large {
        scientific(out, start, power);
        return;
    }
    if power < 0 {
        insert(out, start, b'0', power.unsigned_abs() as usize);
    }
    if out.len() > start + whole {
        insert(out, start + whole, b'.', 1);
    }
}

/// Appends the `digits` significant digits of `x` without a point; returns the power of ten of the first.
fn significant(out: &mut Vec<u8>, x: f64, digits: usize) -> i32 {
    let start = out.len();
    if x == 0.0 {
        out.resize(start + digits, b'0');
        return 0;
    }
    if let Some((value, power)) = rounded(x, digits) {
        integer::<10>(out, value);
        return power;
    }
    let _ = write!(out, "{x:.*e}", digits.saturating_sub(1));
    let at = out.iter().rposition(|c| *c == b'e').unwrap_or(out.len());
    let power = std::str::from_utf8(out.get(at + 1..).unwrap_or_default());
    let power = power.ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    out.truncate(at);
    if digits > 1 {
        out.remove(start + 1);
    }
    power
}

/// The `digits` significant digits of `x`, above zero, as an integer, and the power of ten of the first.
fn rounded(x: f64, digits: usize) -> Option<(u64, i32)> {
    let n = i32::try_from(digits).ok()?;
    let least = u64::try_from(*POWERS.get(digits.checked_sub(1)?)?).ok()?;
    // Between powers of two the logarithm is nearly a line.
    let (raw, fraction) = ((x.to_bits() >> 52) as i32, x.to_bits() & ((1 << 52) - 1));
    let binary = f64::from(raw - 1023) + fraction as f64 / (1u64 << 52) as f64;
    let mut power = (binary * std::f64::consts::LOG10_2).floor() as i32;
    // That may be one off, and rounding may add a digit.
    for _ in 0..3 {
        let value = scaled(x, (n - 1).checked_sub(power)?)?;
        if value < least {
            power -= 1;
        } else if value / 10 >= least {
            power += 1;
        } else {
            return Some((value, power));
        }
    }
    None
}

/// Makes the digits from `start` on `d.ddde+XX`.
fn scientific(out: &mut Vec<u8>, start: usize, power: i32) {
    if out.len() > start + 1 {
        insert(out, start + 1, b'.', 1);
    }
    out.extend_from_slice(if power < 0 { b"e-" } else { b"e+" });
    if power.unsigned_abs() < 10 {
        out.push(b'0');
    }
    integer::<10>(out, power.unsigned_abs().into());
}

/// Inserts `c` at `at`, `count` times.
pub(super) fn insert(out: &mut Vec<u8>, at: usize, c: u8, count: usize) {
    let end = out.len();
    out.resize(end + count, c);
    out.copy_within(at..end, at + count);
    out[at..at + count].fill(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        f(&mut out);
        String::from_utf8(out).expect("ASCII")[1..].to_owned()
    }

    /// Numbers of all magnitudes, ties, and neighbours of powers of ten.
    fn numbers() -> Vec<f64> {
        let mut all = vec![
            0.0,
            0.5,
            1.5,
            2.5,
            0.125,
            0.375,
            1e20,
            1e22,
            1e23,
            9.5,
            99.5,
            999_999.5,
            f64::MAX,
        ];
        all.extend([
            f64::MIN_POSITIVE,
            5e-324,
            1e-5,
            0.0001,
            0.000_099_999_99,
            9.999_999_5,
            12345.678,
            2f64.powi(63),
        ]);
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for k in 0..20_000u64 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(k);
            let any = f64::from_bits(bits & (u64::MAX >> 1));
            if any.is_finite() {
                all.push(any);
            }
            // Those that people print, some of them ties.
            all.push((bits >> 40) as f64 / 64.0);
            all.push((bits >> 20) as f64 * 10f64.powi((k % 40) as i32 - 30));
        }
        for power in -30..30 {
            let ten = 10f64.powi(power);
            all.extend([ten, ten.next_up(), ten.next_down()]);
        }
        all
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for x in numbers() {
            for p in [0, 1, 2, 6, 17, 25] {
                assert_eq!(
                    text(|out| fixed(out, x, p)),
                    format!("{x:.p$}"),
                    "{x:e}, {p}"
                );
                let scientific = text(|out| exponent(out, x, p));
                let (digits, power) = scientific.split_once('e').expect("an exponent");
                let power: i32 = power.parse().expect("a number");
                assert_eq!(
                    format!("{digits}e{power}"),
                    format!("{x:.p$e}"),
                    "{x:e}, {p}"
                );
            }
        }
    }

    /// `%g` is `%e` or `%f` with as many digits, by the power of ten that `%e` shows.
    #[test]
    fn general_is_one_of_the_others() {
        for x in numbers() {
            for p in [1, 2, 6, 12] {
                let e = text(|out| exponent(out, x, p - 1));
                let (mantissa, power) = e.split_once('e').expect("an exponent");
                let number: i32 = power.parse().expect("a number");
                let is_fixed = (-4..p as i32).contains(&number);
                let full = if is_fixed {
                    text(|out| fixed(out, x, (p as i32 - 1 - number) as usize))
                } else {
                    e.clone()
                };
                assert_eq!(text(|out| general(out, x, p, true)), full, "{x:e}, {p}");
                let trim = |s: &str| {
                    let zeros = if s.contains('.') { "0" } else { "" };
                    let short = s.trim_end_matches(|c| zeros.contains(c));
                    short.trim_end_matches('.').to_owned()
                };
                let short = if is_fixed {
                    trim(&full)
                } else {
                    format!("{}e{power}", trim(mantissa))
                };
                assert_eq!(text(|out| general(out, x, p, false)), short, "{x:e}, {p}");
            }
        }
    }

    #[test]
    fn integers_in_the_bases_of_printf() {
        for x in [0, 7, 8, 9, 10, 15, 16, 255, 0xbeef, u64::MAX] {
            assert_eq!(text(|out| integer::<10>(out, x)), x.to_string());
            assert_eq!(text(|out| integer::<16>(out, x)), format!("{x:x}"));
            assert_eq!(text(|out| integer::<8>(out, x)), format!("{x:o}"));
        }
    }
}
