//! Flat lists of modes with strides in `Z^K`: where coalescing and the digit rule live, once for every kind of layout.
//!
//! A plain layout has one stride a mode (`K = 1`); a layout with named strides has one for each name; an identity layout
//! one for each axis. None of the algorithms here cares: a stride is a vector that is added and multiplied by integers.
//!
//! # Composition, exactly
//!
//! Let `A` be coalesced, except that a trailing mode of extent 1 is kept (it says how `A` goes on beyond its size), with
//! extents `S0 … Sm`, the last taken as unbounded. Write numbers in the mixed radix `S`; then `A(x) = Σ T_r · digit_r(x)`.
//! Walking a mode `s:d` of the right-hand layout, `A(i·d) = i·A(d)` as long as no digit carries, which is for the first
//!
//! ```text
//! run(d) = min over r < m with digit_r(d) > 0 of  ⌊(S_r − 1) / digit_r(d)⌋ + 1   steps
//! ```
//!
//! If `run ≥ s`, the result is the one mode `s:A(d)`. Otherwise the first factor of the result must be exactly `run` (one
//! step more carries, one step less would coalesce with what follows), so `run` must divide `s`, and the rest `s/run` goes
//! on with the stride `d·run`. Nothing is searched, and for strides in general position nothing representable is refused.
//! At the end the digits of all factors of all modes together must not carry: `Σ (n_i − 1)·digit_r(e_i) ≤ S_r − 1`.
//!
//! Example: `(4,6):(1,10) ∘ 8:3`. Digits of 3 are (3,0), so the run is ⌊3/3⌋+1 = 2, and 2 divides 8; the rest `4:6` has
//! digits (2,1), run 2; the rest `2:12` has digits (0,3), no limit: factors 2, 2, 2 at 3, 6, 12. But together they carry:
//! 3 + 2 > 3, so there is no layout; indeed `A(9) = 21` and `A(3) + A(6) = 15`.
//!
//! Where the rule refuses, the strides may still coincide by luck: `(2,2,4):(0,1,1) ∘ 6:3` is `0 1 2 2 3 4`, the layout
//! `(3,2):(1,2)`, although the digits of 3 carry after two steps. A
//! coalesced layout is determined by its function (its first factor is the longest linear run), so the only candidate is
//! computed from the values of `A` and then verified on every coordinate, up to [`SEARCH_LIMIT`] of them.

use crate::error::LayoutError;
use crate::layout::Layout;
use crate::profile::{MAX_MODES, Profile, ProfileBuilder};

/// The most elements that the verification of a coincidence evaluates.
///
/// ```
/// use layout_core::{Layout, SEARCH_LIMIT};
/// assert_eq!(SEARCH_LIMIT, 1 << 20);
/// // The digits carry, but the values of `A` agree with a layout on all six coordinates.
/// let a = Layout::parse("(2,2,4):(0,1,1)").unwrap();
/// assert_eq!(a.compose(&Layout::parse("6:3").unwrap()).unwrap().to_string(), "(3,2):(1,2)");
/// ```
pub const SEARCH_LIMIT: i64 = 1 << 20;

/// A flat list of modes.
#[derive(Clone, Copy)]
pub(crate) struct Modes<const K: usize> {
    pub(crate) len: usize,
    pub(crate) extent: [i64; MAX_MODES],
    pub(crate) stride: [[i64; K]; MAX_MODES],
}

/// Why the digit rule refuses a mode.
#[derive(Clone, Copy)]
enum Carry {
    /// A value or a stride does not fit in 64 bits.
    Overflow,
    /// More factors than a layout has room for.
    Capacity,
    /// A digit carries after `run` steps, which do not divide what is left of the extent.
    Within { run: i64, lhs_mode: usize },
    /// The factors, or those of modes before, carry together.
    Between { lhs_mode: usize },
}

const OVERFLOW: LayoutError = LayoutError::Overflow {
    operation: "composition",
};

/// A composition: the modes of the result and the parentheses around them.
#[derive(Clone, Copy)]
pub(crate) struct Composite<const K: usize> {
    pub(crate) profile: Profile,
    pub(crate) modes: Modes<K>,
}

/// `n·a`, if it fits. (Wide arithmetic instead of `checked_mul`: a call costs more than anything else in `const`.)
const fn scaled<const K: usize>(n: i64, a: &[i64; K]) -> Option<[i64; K]> {
    let mut result = *a;
    let mut k = 0;
    while k < K {
        let product = n as i128 * a[k] as i128;
        if product > i64::MAX as i128 || product < i64::MIN as i128 {
            return None;
        }
        result[k] = product as i64;
        k += 1;
    }
    Some(result)
}

const fn same<const K: usize>(a: &[i64; K], b: &[i64; K]) -> bool {
    let mut k = 0;
    while k < K {
        if a[k] != b[k] {
            return false;
        }
        k += 1;
    }
    true
}

/// Whether stride `next` continues a mode `extent:stride`.
const fn continues<const K: usize>(extent: i64, stride: &[i64; K], next: &[i64; K]) -> bool {
    let mut k = 0;
    while k < K {
        if extent as i128 * stride[k] as i128 != next[k] as i128 {
            return false;
        }
        k += 1;
    }
    true
}

/// Quotient and remainder, rounded down. (The operators, where they do: they are cheaper in `const` than the methods.)
const fn split(x: i64, extent: i64) -> (i64, i64) {
    if x >= 0 {
        (x / extent, x % extent)
    } else {
        (x.div_euclid(extent), x.rem_euclid(extent))
    }
}

impl<const K: usize> Modes<K> {
    pub(crate) const EMPTY: Self = Self {
        len: 0,
        extent: [1; MAX_MODES],
        stride: [[0; K]; MAX_MODES],
    };

    /// Appends a mode as it is. There must be room.
    pub(crate) const fn push(&mut self, extent: i64, stride: [i64; K]) {
        self.extent[self.len] = extent;
        self.stride[self.len] = stride;
        self.len += 1;
    }

    /// Appends a mode, merged into the last one where it continues it; extents of 1 vanish.
    pub(crate) const fn push_coalesced(&mut self, extent: i64, stride: [i64; K]) {
        self.push_coalesced_from(0, extent, stride);
    }

    /// [`push_coalesced`](Self::push_coalesced) that leaves the modes before `start` alone.
    const fn push_coalesced_from(&mut self, start: usize, extent: i64, stride: [i64; K]) {
        if extent == 1 {
            return;
        }
        if self.len > start {
            let last = self.len - 1;
            if continues(self.extent[last], &self.stride[last], &stride) {
                self.extent[last] *= extent;
                return;
            }
        }
        self.push(extent, stride);
    }

    /// The same function on all of `Z`, with as few modes as possible: coalesced, but a trailing extent of 1 is kept
    /// unless it goes on as the mode before it does.
    pub(crate) const fn coalesced_unbounded(&self) -> Self {
        let mut result = self.coalesced();
        let last = self.len - 1;
        if self.extent[last] == 1 {
            let merges = result.len > 0
                && continues(
                    result.extent[result.len - 1],
                    &result.stride[result.len - 1],
                    &self.stride[last],
                );
            if !merges {
                result.push(1, self.stride[last]);
            }
        }
        result
    }

    /// The value at linear coordinate `x`, any integer; the last mode is unbounded.
    pub(crate) const fn at(&self, x: i64) -> Option<[i64; K]> {
        self.weigh(&self.digits(x))
    }

    /// The sum of digits times strides, if it fits.
    const fn weigh(&self, digits: &[i64; MAX_MODES]) -> Option<[i64; K]> {
        let mut value = [0; K];
        let mut k = 0;
        while k < K {
            // All but the last term together are offsets of a layout, which fit in 64 bits; the last fits in 127.
            let mut sum = 0i128;
            let mut i = 0;
            while i < self.len {
                sum += digits[i] as i128 * self.stride[i][k] as i128;
                i += 1;
            }
            if sum > i64::MAX as i128 || sum < i64::MIN as i128 {
                return None;
            }
            value[k] = sum as i64;
            k += 1;
        }
        Some(value)
    }

    /// The digits of `x`, any integer; the last takes all that is left.
    const fn digits(&self, x: i64) -> [i64; MAX_MODES] {
        let mut digits = [0; MAX_MODES];
        let mut rest = x;
        let mut r = 0;
        while r + 1 < self.len && rest != 0 {
            (rest, digits[r]) = split(rest, self.extent[r]);
            r += 1;
        }
        digits[r] = rest;
        digits
    }

    /// Steps of a stride with these digits before one of them carries, and the mode that carries first; `i64::MAX` if none
    /// ever does.
    const fn run(&self, digits: &[i64; MAX_MODES]) -> (i64, usize) {
        let mut run = i64::MAX;
        let mut mode = 0;
        let mut r = 0;
        while r + 1 < self.len {
            if digits[r] > 0 {
                let steps = (self.extent[r] - 1) / digits[r] + 1;
                if steps < run {
                    run = steps;
                    mode = r;
                }
            }
            r += 1;
        }
        (run, mode)
    }

    /// Adds `steps` times the digits to the sums and returns the first mode that overflows.
    const fn spend(
        &self,
        sums: &mut [i128; MAX_MODES],
        steps: i64,
        digits: &[i64; MAX_MODES],
    ) -> Option<usize> {
        let mut over = None;
        let mut r = 0;
        while r + 1 < self.len {
            if digits[r] > 0 {
                sums[r] += steps as i128 * digits[r] as i128;
                if sums[r] > self.extent[r] as i128 - 1 && over.is_none() {
                    over = Some(r);
                }
            }
            r += 1;
        }
        over
    }

    /// `self ∘ b` with the parentheses of `b`, each leaf of which becomes a tuple where it needs several factors.
    /// `self` must be [`coalesced_unbounded`](Self::coalesced_unbounded). Values of `b` from `bound` up do not matter: the
    /// result may be anything there.
    pub(crate) const fn compose(
        &self,
        b: &Layout,
        bound: i64,
    ) -> Result<Composite<K>, LayoutError> {
        let mut sums = [0i128; MAX_MODES];
        // The first refusal of the digit rule; a coincidence may still save the composition.
        let mut refusal: Option<LayoutError> = None;
        let mut profile = ProfileBuilder::new();
        let mut modes = Self::EMPTY;
        let leaves = b.leaves();
        let mut leaf = 0;
        while leaf < leaves {
            let start = modes.len;
            if let Err(error) = self.factor(b, leaf, bound, &mut sums, &mut refusal, &mut modes) {
                return Err(error);
            }
            profile.expand(&b.profile, leaf, modes.len - start);
            leaf += 1;
        }
        let profile = match profile.finish() {
            Ok(profile) => profile,
            Err(error) => return Err(error),
        };
        if let Some(refusal) = refusal
            && !self.verify(b, bound, &modes)
        {
            return Err(refusal);
        }
        Ok(Composite { profile, modes })
    }

    /// Appends the factors of leaf `leaf` of `b`: by the digit rule or, where that refuses, from the values. A refusal of
    /// the digit rule is kept in `refusal`; then the whole result has to be verified.
    const fn factor(
        &self,
        b: &Layout,
        leaf: usize,
        bound: i64,
        sums: &mut [i128; MAX_MODES],
        refusal: &mut Option<LayoutError>,
        out: &mut Self,
    ) -> Result<(), LayoutError> {
        let (extent, stride) = (b.shape[leaf], b.step(leaf));
        let start = out.len;
        let carry = match self.factor_by_digits(extent, stride, sums, out) {
            Ok(()) => return Ok(()),
            Err(carry) => carry,
        };
        out.len = start;
        if refusal.is_none() {
            *refusal = Some(match carry {
                Carry::Overflow => return Err(OVERFLOW),
                Carry::Capacity => return Err(LayoutError::TooManyModes),
                _ if stride < 0 && extent > 1 => LayoutError::NegativeCoordinates {
                    mode: leaf,
                    extent,
                    stride,
                },
                Carry::Within { run, lhs_mode } => {
                    let lhs_extent = self.extent[lhs_mode];
                    LayoutError::NotComposable {
                        mode: leaf,
                        extent,
                        stride,
                        lhs_mode,
                        lhs_extent,
                        run,
                        unit_last: self.is_unit_last(lhs_mode + 1),
                    }
                }
                Carry::Between { lhs_mode } => {
                    let lhs_extent = self.extent[lhs_mode];
                    LayoutError::ModesCarry {
                        mode: leaf,
                        extent,
                        stride,
                        lhs_mode,
                        lhs_extent,
                        unit_last: self.is_unit_last(lhs_mode + 1),
                    }
                }
            });
        }
        match (self.factor_by_values(extent, stride, bound, out), *refusal) {
            (Some(()), _) => Ok(()),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Err(OVERFLOW),
        }
    }

    /// Whether mode `r` is the last and has extent 1.
    const fn is_unit_last(&self, r: usize) -> bool {
        r + 1 == self.len && self.extent[r] == 1
    }

    /// Appends the factors of `extent:stride` by the digit rule, adding to the digit sums of the modes before it.
    const fn factor_by_digits(
        &self,
        extent: i64,
        stride: i64,
        sums: &mut [i128; MAX_MODES],
        out: &mut Self,
    ) -> Result<(), Carry> {
        let start = out.len;
        let mut between = None;
        let mut rest = extent;
        let mut e = stride;
        loop {
            let digits = self.digits(e);
            let Some(value) = self.weigh(&digits) else {
                return Err(Carry::Overflow);
            };
            if out.len == MAX_MODES {
                return Err(Carry::Capacity);
            }
            if extent == 1 {
                out.push(1, value);
                return Ok(());
            }
            let (run, lhs_mode) = self.run(&digits);
            let n = if run < rest { run } else { rest };
            if rest % n != 0 {
                return Err(Carry::Within { run, lhs_mode });
            }
            if let Some(lhs_mode) = self.spend(sums, n - 1, &digits) {
                between = Some(lhs_mode);
            }
            out.push_coalesced_from(start, n, value);
            rest /= n;
            if rest == 1 {
                break;
            }
            e = match e.checked_mul(n) {
                Some(e) => e,
                None => return Err(Carry::Overflow),
            };
        }
        match between {
            Some(lhs_mode) => Err(Carry::Between { lhs_mode }),
            None => Ok(()),
        }
    }

    /// Appends the only factors that `i -> self(stride·i)` can have: each is the longest linear run of what is left.
    const fn factor_by_values(
        &self,
        extent: i64,
        stride: i64,
        bound: i64,
        out: &mut Self,
    ) -> Option<()> {
        let start = out.len;
        let mut rest = extent;
        let mut e = stride;
        while rest > 1 {
            let digits = self.digits(e);
            let Some(value) = self.weigh(&digits) else {
                return None;
            };
            let (run, _) = self.run(&digits);
            let known = if run < rest { run } else { rest };
            let Some(n) = self.linear_run(e, &value, known, rest, bound) else {
                return None;
            };
            if rest % n != 0 || out.len == MAX_MODES {
                return None;
            }
            out.push_coalesced_from(start, n, value);
            rest /= n;
            if rest > 1 {
                e = match e.checked_mul(n) {
                    Some(e) => e,
                    None => return None,
                };
            }
        }
        Some(())
    }

    /// Steps of stride `e`, from `known` on and at most `limit`, during which the values stay multiples of `value`.
    /// Values outside `bound` fit any line.
    const fn linear_run(
        &self,
        e: i64,
        value: &[i64; K],
        known: i64,
        limit: i64,
        bound: i64,
    ) -> Option<i64> {
        let mut n = known;
        while n < limit {
            if n - known > SEARCH_LIMIT {
                return None;
            }
            let Some(x) = e.checked_mul(n) else {
                return None;
            };
            if x >= bound {
                return Some(limit);
            }
            let Some(line) = scaled(n, value) else {
                return Some(n);
            };
            match self.at(x) {
                Some(actual) if same(&actual, &line) => n += 1,
                Some(_) => return Some(n),
                None => return None,
            }
        }
        Some(n)
    }

    /// Whether `modes` is `self ∘ b` on every coordinate of `b` whose value is below `bound`.
    const fn verify(&self, b: &Layout, bound: i64, modes: &Self) -> bool {
        let size = b.size();
        if size > SEARCH_LIMIT {
            return false;
        }
        let mut i = 0;
        while i < size {
            let x = b.index(i);
            if x >= bound {
                i += 1;
                continue;
            }
            match (self.at(x), modes.at(i)) {
                (Some(expected), Some(found)) if same(&expected, &found) => i += 1,
                _ => return false,
            }
        }
        true
    }
}

impl<const K: usize> Modes<K> {
    /// The same function on `0..size` with as few modes as possible.
    pub(crate) const fn coalesced(&self) -> Self {
        let mut result = Self::EMPTY;
        let mut i = 0;
        while i < self.len {
            result.push_coalesced(self.extent[i], self.stride[i]);
            i += 1;
        }
        result
    }
}

impl Modes<1> {
    /// The modes as a flat layout: `1:0` for none, a bare mode for one.
    pub(crate) const fn into_layout(self) -> Result<Layout, LayoutError> {
        Layout::UNIT.with_modes(&self)
    }
}
