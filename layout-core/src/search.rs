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
    /// What modes `..k` can add together, and the greatest common divisor of their strides.
    low: [i128; MAX_MODES + 1],
    high: [i128; MAX_MODES + 1],
    gcd: [i128; MAX_MODES + 1],
}

/// Where a search stands: the digits of modes `k..` are chosen.
pub(crate) struct Walk {
    digit: [i64; MAX_MODES],
    floor: [i64; MAX_MODES],
    rest: [i128; MAX_MODES + 1],
    k: usize,
    open: bool,
    /// Branches looked at so far.
    pub(crate) branches: i64,
}

impl Search {
    pub(crate) const EMPTY: Self = Self {
        len: 0,
        stride: [0; MAX_MODES],
        from: [0; MAX_MODES],
        to: [0; MAX_MODES],
        low: [0; MAX_MODES + 1],
        high: [0; MAX_MODES + 1],
        gcd: [0; MAX_MODES + 1],
    };

    pub(crate) const fn push(&mut self, stride: i64, from: i64, to: i64) {
        let k = self.len;
        self.stride[k] = stride;
        self.from[k] = from;
        self.to[k] = to;
        let (a, b) = (from as i128 * stride as i128, to as i128 * stride as i128);
        self.low[k + 1] = self.low[k] + if a < b { a } else { b };
        self.high[k + 1] = self.high[k] + if a < b { b } else { a };
        self.gcd[k + 1] = greatest_common_divisor(self.gcd[k], stride.unsigned_abs() as i128);
        self.len += 1;
    }

    /// The first solution, large strides' digits greatest first.
    pub(crate) const fn solve(
        &self,
        operation: &'static str,
        target: i64,
    ) -> Result<Option<[i64; MAX_MODES]>, LayoutError> {
        self.next(&mut self.walk(target), operation)
    }

    /// A walk over all solutions for `target`, in the order in which [`solve`](Self::solve) would find them.
    pub(crate) const fn walk(&self, target: i64) -> Walk {
        let mut rest = [0i128; MAX_MODES + 1];
        rest[self.len] = target as i128;
        Walk {
            digit: [0; MAX_MODES],
            floor: [0; MAX_MODES],
            rest,
            k: self.len,
            open: self.feasible(rest[self.len], self.len),
            branches: 0,
        }
    }

    /// The next solution of a walk.
    pub(crate) const fn next(
        &self,
        walk: &mut Walk,
        operation: &'static str,
    ) -> Result<Option<[i64; MAX_MODES]>, LayoutError> {
        loop {
            if walk.open && walk.k == 0 {
                walk.open = false;
                return Ok(Some(walk.digit));
            }
            if walk.open {
                // Digits of mode k-1 that leave the rest within reach of the smaller modes.
                walk.k -= 1;
                let k = walk.k;
                let stride = self.stride[k] as i128;
                let (a, b) = (
                    walk.rest[k + 1] - self.high[k],
                    walk.rest[k + 1] - self.low[k],
                );
                let (from, to) = if stride > 0 {
                    (ceil(a, stride), b.div_euclid(stride))
                } else {
                    (ceil(-b, -stride), (-a).div_euclid(-stride))
                };
                walk.floor[k] = if from > self.from[k] as i128 {
                    from as i64
                } else {
                    self.from[k]
                };
                walk.digit[k] = if to < self.to[k] as i128 {
                    to as i64
                } else {
                    self.to[k]
                };
            } else {
                if walk.k == self.len {
                    return Ok(None);
                }
                walk.digit[walk.k] -= 1;
            }
            walk.branches += 1;
            if walk.branches > BRANCH_LIMIT {
                return Err(LayoutError::SearchLimit { operation });
            }
            let k = walk.k;
            if walk.digit[k] < walk.floor[k] {
                walk.digit[k] = 0;
                walk.k += 1;
                walk.open = false;
            } else {
                walk.rest[k] = walk.rest[k + 1] - walk.digit[k] as i128 * self.stride[k] as i128;
                walk.open = self.feasible(walk.rest[k], k);
            }
        }
    }

    /// Whether modes `..k` may add up to `rest`.
    const fn feasible(&self, rest: i128, k: usize) -> bool {
        let gcd = self.gcd[k];
        self.low[k] <= rest
            && rest <= self.high[k]
            && (if gcd == 0 { rest == 0 } else { rest % gcd == 0 })
    }
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
