//! Which digits add up to a given offset: `Σ xₖ·tₖ = target` with `fromₖ ≤ xₖ ≤ toₖ`.
//!
//! Depth first from the largest stride, where two bounds cut most branches: what is left must lie between what the smaller
//! strides can add, and be a multiple of their greatest common divisor. For strides that form a chain there is never more
//! than one branch; the limit matters only for many overlapping modes.

use crate::error::LayoutError;
use crate::profile::MAX_MODES;

/// Branches that a search looks at, at most.
pub(crate) const BRANCH_LIMIT: i64 = 1 << 20;

/// Modes with the least and greatest digit of each, strides not 0 and of growing size.
pub(crate) struct Search {
    pub(crate) len: usize,
    pub(crate) stride: [i64; MAX_MODES],
    pub(crate) from: [i64; MAX_MODES],
    pub(crate) to: [i64; MAX_MODES],
}

impl Search {
    pub(crate) const EMPTY: Self = Self {
        len: 0,
        stride: [0; MAX_MODES],
        from: [0; MAX_MODES],
        to: [0; MAX_MODES],
    };

    pub(crate) const fn push(&mut self, stride: i64, from: i64, to: i64) {
        self.stride[self.len] = stride;
        self.from[self.len] = from;
        self.to[self.len] = to;
        self.len += 1;
    }

    /// The first solution, large strides' digits greatest first; with `nonzero`, not the one of zeros alone.
    pub(crate) const fn solve(
        &self,
        operation: &'static str,
        target: i64,
        nonzero: bool,
    ) -> Result<Option<[i64; MAX_MODES]>, LayoutError> {
        let len = self.len;
        // What modes ..k can add together, and the greatest common divisor of their strides.
        let mut low = [0i128; MAX_MODES + 1];
        let mut high = [0i128; MAX_MODES + 1];
        let mut gcd = [0i128; MAX_MODES + 1];
        let mut k = 0;
        while k < len {
            let (a, b) = (
                self.from[k] as i128 * self.stride[k] as i128,
                self.to[k] as i128 * self.stride[k] as i128,
            );
            low[k + 1] = low[k] + if a < b { a } else { b };
            high[k + 1] = high[k] + if a < b { b } else { a };
            gcd[k + 1] = greatest_common_divisor(gcd[k], self.stride[k].unsigned_abs() as i128);
            k += 1;
        }
        let mut digit = [0i64; MAX_MODES];
        let mut floor = [0i64; MAX_MODES];
        let mut rest = [0i128; MAX_MODES + 1];
        rest[len] = target as i128;
        k = len;
        let mut branches = 0;
        let mut open = feasible(rest[k], low[k], high[k], gcd[k]);
        loop {
            if open && k == 0 {
                if !(nonzero && all_zero(&digit, len)) {
                    return Ok(Some(digit));
                }
                open = false;
            }
            if open {
                // Digits of mode k-1 that leave the rest within reach of the smaller modes.
                k -= 1;
                let stride = self.stride[k] as i128;
                let (a, b) = (rest[k + 1] - high[k], rest[k + 1] - low[k]);
                let (from, to) = if stride > 0 {
                    (ceil(a, stride), b.div_euclid(stride))
                } else {
                    (ceil(-b, -stride), (-a).div_euclid(-stride))
                };
                floor[k] = if from > self.from[k] as i128 {
                    from as i64
                } else {
                    self.from[k]
                };
                digit[k] = if to < self.to[k] as i128 {
                    to as i64
                } else {
                    self.to[k]
                };
            } else {
                if k == len {
                    return Ok(None);
                }
                digit[k] -= 1;
            }
            branches += 1;
            if branches > BRANCH_LIMIT {
                return Err(LayoutError::SearchLimit { operation });
            }
            if digit[k] < floor[k] {
                digit[k] = 0;
                k += 1;
                open = false;
            } else {
                rest[k] = rest[k + 1] - digit[k] as i128 * self.stride[k] as i128;
                open = feasible(rest[k], low[k], high[k], gcd[k]);
            }
        }
    }
}

const fn feasible(rest: i128, low: i128, high: i128, gcd: i128) -> bool {
    low <= rest && rest <= high && (if gcd == 0 { rest == 0 } else { rest % gcd == 0 })
}

const fn all_zero(digit: &[i64; MAX_MODES], len: usize) -> bool {
    let mut i = 0;
    while i < len {
        if digit[i] != 0 {
            return false;
        }
        i += 1;
    }
    true
}

pub(crate) const fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `⌈a / b⌉` for `b > 0`.
const fn ceil(a: i128, b: i128) -> i128 {
    -((-a).div_euclid(b))
}
