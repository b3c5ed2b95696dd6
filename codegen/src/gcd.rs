//! The greatest common divisor.

/// The largest number that both are multiples of, 0 of two zeros. Neither is `i64::MIN`.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
