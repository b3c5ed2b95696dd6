//! Division by a divisor that is known only at run time: three instructions, with numbers that the host prepares.
//!
//! For `0 ≤ x < 2³¹` and any divisor `d` from 1 to 2³¹ − 1,
//!
//! ```text
//! ⌊x / d⌋ = ⌊(x + 1)·m / 2³²⌋ >> s,    s = ⌊log₂ d⌋,  m = ⌊2³²⁺ˢ / d⌋, or 2³² − 1 if d is a power of two.
//! ```
//!
//! *Why.* Put `p = 32 + s` and `r = 2ᵖ − m·d`. Then `(x + 1)·m/2ᵖ = ((x + 1)/d)·(1 − r/2ᵖ)`. With `x = q·d + t`, `0 ≤ t < d`, this is
//! at least `q` iff `(t + 1)·2ᵖ ≥ (x + 1)·r`, for which `(x + 1)·r ≤ 2ᵖ` is enough; and it is below `q + 1`, because
//! `(x + 1)/d ≤ q + 1` and `r > 0`. For a power of two, `r = d = 2ˢ` and `(x + 1)·2ˢ ≤ 2ᵖ` holds for all 32-bit `x + 1`. For any other `d`,
//! `0 < r < d < 2ˢ⁺¹`, and `x + 1 ≤ 2³¹` gives `(x + 1)·r < 2³²⁺ˢ`. Rounding `m` down and adding 1 to x (Robison, *N-bit unsigned
//! division via N-bit multiply-add*, 2005) is what makes `d = 1` no special case.
//!
//! ```
//! use layout_codegen::index::FastDivisor;
//! let by = FastDivisor::new(48).unwrap();
//! assert_eq!((by.multiplier(), by.shift()), (2_863_311_530, 5));
//! assert_eq!(by.quotient(1000), 20);
//! ```

use super::expr::{Expr, Facts, Node, Pool, cover};
use super::spec::IndexError;

/// The largest dividend, and the largest divisor.
pub const FAST_DIVISION_LIMIT: u32 = i32::MAX as u32;

/// A divisor with its multiplier and shift, to be passed as kernel parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FastDivisor {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl FastDivisor {
    /// Prepares division by `divisor`, `1..2³¹`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Divisor`] for 0 and for 2³¹ and above.
    pub const fn new(divisor: u32) -> Result<Self, IndexError> {
        if divisor == 0 || divisor > FAST_DIVISION_LIMIT {
            return Err(IndexError::Divisor(divisor));
        }
        let shift = divisor.ilog2();
        let multiplier = if divisor.is_power_of_two() {
            u32::MAX
        } else {
            ((1u64 << (32 + shift)) / divisor as u64) as u32
        };
        Ok(Self {
            divisor,
            multiplier,
            shift,
        })
    }

    /// What is divided by.
    pub const fn divisor(&self) -> u32 {
        self.divisor
    }

    /// `m`, the parameter that a kernel multiplies with.
    pub const fn multiplier(&self) -> u32 {
        self.multiplier
    }

    /// `s`, the parameter that a kernel shifts by: 0 to 30.
    pub const fn shift(&self) -> u32 {
        self.shift
    }

    /// `⌊x / d⌋` as a kernel computes it, for `x < 2³¹`.
    pub const fn quotient(&self, x: u32) -> u32 {
        (((x as u64 + 1) * self.multiplier as u64) >> 32) as u32 >> self.shift
    }
}

/// A run-time divisor inside expressions: three variables whose values are those of one [`FastDivisor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunTimeDivisor {
    /// The divisor itself, for remainders.
    pub divisor: Expr,
    /// [`FastDivisor::multiplier`].
    pub multiplier: Expr,
    /// [`FastDivisor::shift`].
    pub shift: Expr,
}

impl Pool {
    /// A divisor in `1..=hi` known at run time, as the variables `name`, `name_multiplier` and `name_shift`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Divisor`] if `hi` is 0, or 2³¹ or above.
    pub fn run_time_divisor(&mut self, name: &str, hi: u32) -> Result<RunTimeDivisor, IndexError> {
        if hi == 0 || hi > FAST_DIVISION_LIMIT {
            return Err(IndexError::Divisor(hi));
        }
        Ok(RunTimeDivisor {
            divisor: self.var(name, 1, hi.into(), 0),
            multiplier: self.var(&format!("{name}_multiplier"), 0, u32::MAX.into(), 0),
            shift: self.var(&format!("{name}_shift"), 0, hi.ilog2().into(), 0),
        })
    }

    /// `⌊x / d⌋` by fast division.
    ///
    /// # Errors
    ///
    /// [`IndexError::Dividend`] unless `x` is known to lie in `0..2³¹`.
    pub fn div_fast(&mut self, x: Expr, d: RunTimeDivisor) -> Result<Expr, IndexError> {
        let f = self.facts(x);
        if f.lo < 0 || f.hi > FAST_DIVISION_LIMIT.into() {
            return Err(IndexError::Dividend { lo: f.lo, hi: f.hi });
        }
        let by = self.facts(d.divisor);
        let hi = f.hi / by.lo.max(1);
        let (m, s) = (self.facts(d.multiplier), self.facts(d.shift));
        let facts = Facts {
            lo: f.lo / by.hi.max(1),
            hi,
            bits: cover(hi),
            level: f.level.max(m.level).max(s.level),
        };
        Ok(self.intern(
            Node::DivFast {
                x,
                multiplier: d.multiplier,
                shift: d.shift,
            },
            facts,
        ))
    }

    /// `x mod d` by fast division, in `0..d`.
    ///
    /// # Errors
    ///
    /// As [`div_fast`](Self::div_fast).
    pub fn rem_fast(&mut self, x: Expr, d: RunTimeDivisor) -> Result<Expr, IndexError> {
        let q = self.div_fast(x, d)?;
        let whole = self.mul(q, d.divisor);
        let r = self.sub(x, whole);
        let hi = self.facts(x).hi.min(self.facts(d.divisor).hi - 1);
        Ok(self.clamp(r, 0, hi))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions of the proof above, for a divisor: they are what makes every dividend below 2³¹ right.
    fn conditions(d: u32) {
        let by = FastDivisor::new(d).expect("a divisor");
        let p = 32 + by.shift();
        let r = (1u128 << p) - u128::from(by.multiplier()) * u128::from(d);
        assert!(r > 0, "{d}: r = 0");
        assert!((1u128 << 31) * r <= 1u128 << p, "{d}: r = {r}");
    }

    #[test]
    fn the_conditions_hold_for_every_small_divisor_and_around_powers_of_two() {
        (1..=1 << 16).for_each(conditions);
        for bit in 16..31 {
            for d in (1u32 << bit) - 300..(1 << bit) + 300 {
                conditions(d);
            }
        }
        (FAST_DIVISION_LIMIT - 1000..=FAST_DIVISION_LIMIT).for_each(conditions);
    }

    #[test]
    fn quotients_are_exact_on_every_small_pair() {
        for d in 1..=300 {
            let by = FastDivisor::new(d).expect("a divisor");
            for x in 0..=5000 {
                assert_eq!(by.quotient(x), x / d, "{x} / {d}");
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        assert!(FastDivisor::new(0).is_err());
        assert!(FastDivisor::new(FAST_DIVISION_LIMIT + 1).is_err());
        let mut pool = Pool::new();
        assert!(pool.run_time_divisor("d", 0).is_err());
        let d = pool.run_time_divisor("d", 10).expect("a divisor");
        let (wide, negative) = (pool.var("x", 0, 1 << 31, 0), pool.var("y", -1, 5, 0));
        assert!(pool.div_fast(wide, d).is_err());
        assert!(pool.rem_fast(negative, d).is_err());
    }
}
