//! Rotations: row `r` is rotated by a number of chunks that grows with `r`, within a pitch that may be padded.
//!
//! ```text
//! offset(r, c) = r*pitch + (c + r/every % period * shift) % width
//! ```
//!
//! This is what people write by hand where a row is no power of two of chunks and an xor does not stay inside it: chunk
//! `(c + r) % 10` of ten. A chunk is the widest access, and at least a word; `width` is the row or the pitch.
//!
//! A rotation is no layout of the algebra, since no strides express `% width` of a sum. It is the composition of two layouts: the
//! inner one adds `shift` every `every` rows and leaves room between rows, the outer one drops the multiples of `width`.
//!
//! **Translations.** Where a chunk wraps around, its bank moves by `width`. So the wavefronts of an access may change when it is moved,
//! which those of a linear layout do not. Among rotations of equal cost the search takes one whose counts survive translation, if
//! there is one, and the certificate says which holds.
//!
//! **Search.** Pitches of up to 128 bytes of padding, both widths, `every` of 1 to 8, 16 and 32 rows, periods of powers of two (or none),
//! and steps of at most 64 chunks in either direction.
//!
//! Example: 48 rows of 40 floats. A column of `ld.32` and three rows of `st.128`: no padding does both, a rotation by half a row
//! every four rows does.

use core::fmt;

use crate::chain::{Chain, Step};
use crate::function::Function;
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::swizzled::Swizzled;

use super::families::{Plan, Translated, survives};
use super::problem::{PhasePoints, Problem};

/// Steps that are tried, in chunks, in either direction.
const MOST_STEPS: u32 = 64;
/// Rows between two steps.
const EVERY: [u32; 10] = [1, 2, 4, 8, 3, 5, 6, 7, 16, 32];
/// Points that one search looks at, about 2 ns each.
const LIMIT: u64 = 4_000_000;
/// Candidates of equal cost that are tried for translations, for each pitch and width.
const TRIED: usize = 4;

/// A rotation: (row, column) -> `row*pitch + (column + row/every % period * shift) % width`, in elements.
///
/// ```
/// use layout_core::derive::Rotation;
/// let rotation = Rotation { pitch: 40, width: 40, shift: 4, every: 2, period: 10 };
/// assert_eq!(rotation.to_string(), "r*40 + (c + r/2*4) % 40");
/// assert_eq!((rotation.at(0, 36), rotation.at(3, 36)), (36, 120));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Rotation {
    /// Elements from one row to the next.
    pub pitch: i64,
    /// Elements that a row is rotated in: the columns, or the pitch.
    pub width: i64,
    /// Elements by which the rotation grows.
    pub shift: i64,
    /// Rows after which it grows.
    pub every: i64,
    /// Rotations after which the first one comes again.
    pub period: i64,
}

impl Rotation {
    /// The element offset of (row, column), neither of them negative.
    ///
    /// ```
    /// use layout_core::derive::Rotation;
    /// let rotation = Rotation { pitch: 120, width: 112, shift: 28, every: 4, period: 4 };
    /// assert_eq!(rotation.at(4, 100), 4 * 120 + (100 + 28) % 112);
    /// ```
    pub const fn at(&self, row: i64, col: i64) -> i64 {
        row * self.pitch + (col + row / self.every % self.period * self.shift) % self.width
    }

    /// The rotation of `rows` x `cols` as one function of (row, column): the composition of [`layouts`](Self::layouts), step by step.
    ///
    /// `None` if extents or strides do not fit.
    ///
    /// ```
    /// use layout_core::derive::Rotation;
    /// let rotation = Rotation { pitch: 40, width: 40, shift: 4, every: 2, period: 10 };
    /// let function = rotation.function(20, 40).unwrap();
    /// assert_eq!(function.to_string(), "(40,2,20):(1,0,40) o ((2,10),40):((80,164),1)");
    /// ```
    pub fn function(&self, rows: i64, cols: i64) -> Option<Function> {
        let (outer, inner) = self.layouts(rows, cols)?;
        let chain = Chain::of(Some(Swizzled::plain(inner)));
        chain.then(Step::Layout(outer)).ok().map(Function::Chain)
    }

    /// One more than the largest offset of `rows` x `cols` elements.
    pub(super) fn cosize(&self, rows: i64, cols: i64) -> i64 {
        let last = |row: i64| {
            let by = row / self.every % self.period * self.shift % self.width;
            // The column that lands last, of all up to `cols`.
            let end = if by + cols > self.width && by > 0 {
                self.width
            } else {
                by + cols
            };
            row * self.pitch + end
        };
        (0..rows).map(last).max().unwrap_or(0)
    }

    /// Whether the period is the one that comes of the width alone.
    const fn is_natural(&self) -> bool {
        (self.shift * self.period) % self.width == 0
    }

    /// The layouts (outer, inner) whose composition the rotation of `rows` x `cols` is: `outer(inner(row, column))`.
    ///
    /// `None` if extents or strides do not fit.
    ///
    /// ```
    /// use layout_core::derive::Rotation;
    /// let rotation = Rotation { pitch: 40, width: 40, shift: 4, every: 2, period: 10 };
    /// let (outer, inner) = rotation.layouts(20, 40).unwrap();
    /// assert_eq!(outer.to_string(), "(40,2,20):(1,0,40)");
    /// assert_eq!(inner.to_string(), "((2,10),40):((80,164),1)");
    /// assert_eq!(outer.index(inner.at(&[7, 39])), rotation.at(7, 39));
    /// ```
    pub fn layouts(&self, rows: i64, cols: i64) -> Option<(Layout, Layout)> {
        let steps = (rows.max(1) - 1) / self.every;
        let most = cols - 1 + steps.min(self.period - 1) * self.shift;
        let room = most / self.width + 1;
        let row = self.width * room;
        let outer = Layout::flat(&[self.width, room, rows], &[1, 0, self.pitch]).ok()?;
        let step = self.every * row + self.shift;
        let again = self.every * self.period * row;
        let modes = [
            (self.every.min(rows), row),
            ((steps + 1).min(self.period), step),
            (steps / self.period + 1, again),
        ];
        let (mut shape, mut stride) = ([1; 3], [0; 3]);
        let mut len = 0;
        for (extent, by) in modes {
            if extent > 1 {
                (shape[len], stride[len]) = (extent, by);
                len += 1;
            }
        }
        let modes = if len <= 1 {
            Layout::mode(shape[0], stride[0])
        } else {
            Layout::new(
                IntTuple::flat(&shape[..len]).ok()?,
                IntTuple::flat(&stride[..len]).ok()?,
            )
        };
        let inner = Layout::tuple(&[modes.ok()?, Layout::mode(cols, 1).ok()?]).ok()?;
        Some((outer, inner))
    }
}

/// Integer arithmetic as C and Rust write it, `r` the row and `c` the column.
impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r*{} + (c + r", self.pitch)?;
        if self.every > 1 {
            write!(f, "/{}", self.every)?;
        }
        if !self.is_natural() {
            write!(f, "%{}", self.period)?;
        }
        write!(f, "*{}) % {}", self.shift, self.width)
    }
}

const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Candidates of the least cost so far, at one pitch and width.
struct Ties {
    plans: [Option<Rotation>; TRIED],
    len: usize,
}

/// The best found.
struct Best {
    cost: u32,
    plan: Rotation,
    translated: Translated,
}

/// The best rotation, how many were looked at, and whether all were.
///
/// `problem` has every phase by itself. The search stops at `least`, which no layout beats.
pub(super) fn best_rotated(
    problem: &Problem,
    bound: Option<u32>,
    least: u32,
) -> (Option<(u32, Plan)>, u64, bool) {
    let log_chunk = problem
        .log_granule
        .max(2_u32.saturating_sub(problem.log_elem));
    let chunk = 1_u32 << log_chunk;
    let none = (None, 0, true);
    if !problem.cols.is_multiple_of(chunk) || problem.cols == chunk || problem.rows == 1 {
        return none;
    }
    let last_row = problem
        .phases()
        .iter()
        .flat_map(PhasePoints::points)
        .map(|p| p.0)
        .max()
        .unwrap_or(0);
    let mut best: Option<Best> = None;
    let mut examined = 0;
    let mut work = 0;
    let mut pad = 0;
    while pad << problem.log_elem < 128 {
        let pitch = problem.cols + pad;
        pad += chunk;
        let widths = [problem.cols, pitch];
        for &width in &widths[..=usize::from(pitch > problem.cols)] {
            let limit = best
                .as_ref()
                .map_or(bound.unwrap_or(u32::MAX - 1), |b| b.cost + 1);
            let mut ties = Ties {
                plans: [None; TRIED],
                len: 0,
            };
            let mut lowest = limit;
            each(width / chunk, last_row, |every, period, step| {
                if work >= LIMIT {
                    return;
                }
                examined += 1;
                let plan = Rotation {
                    pitch: pitch.into(),
                    width: width.into(),
                    shift: (step * chunk).into(),
                    every: every.into(),
                    period: period.into(),
                };
                // Ties count too, as long as they may survive more translations.
                let cost = cost(problem, &plan, lowest, &mut work);
                if cost >= lowest && (cost > lowest || ties.len == TRIED || ties.len == 0) {
                    return;
                }
                if cost < lowest {
                    lowest = cost;
                    ties.len = 0;
                }
                if ties.len < TRIED {
                    ties.plans[ties.len] = Some(plan);
                    ties.len += 1;
                }
            });
            for plan in ties.plans[..ties.len].iter().flatten() {
                let translated = survives(problem, &Plan::Rotated(*plan));
                let better = best.as_ref().is_none_or(|b| {
                    lowest < b.cost || (lowest == b.cost && translated > b.translated)
                });
                if better {
                    best = Some(Best {
                        cost: lowest,
                        plan: *plan,
                        translated,
                    });
                }
            }
            let done = best
                .as_ref()
                .is_some_and(|b| b.cost <= least && b.translated > Translated::Not);
            if done || work >= LIMIT {
                let best = best.map(|b| (b.cost, Plan::Rotated(b.plan)));
                return (best, examined, done);
            }
        }
    }
    let best = best.map(|b| (b.cost, Plan::Rotated(b.plan)));
    (best, examined, true)
}

/// Calls `with` for every combination of rows between steps, period and step.
fn each(chunks: u32, last_row: u32, mut with: impl FnMut(u32, u32, u32)) {
    let steps = (1..chunks).filter(|&step| step <= MOST_STEPS || chunks - step <= MOST_STEPS);
    for every in EVERY {
        let seen = last_row / every + 1;
        if every > 1 && seen == 1 {
            continue;
        }
        for step in steps.clone() {
            let natural = chunks / gcd(step, chunks);
            with(every, natural, step);
            let mut period = 2;
            while period < seen.min(natural) && period <= 32 {
                with(every, period, step);
                period *= 2;
            }
        }
    }
}

/// Total wavefronts, or something above `limit` as soon as that is certain.
fn cost(problem: &Problem, plan: &Rotation, limit: u32, work: &mut u64) -> u32 {
    let (pitch, width) = (plan.pitch as u32, plan.width as u32);
    let (every, period, shift) = (plan.every as u32, plan.period as u32, plan.shift as u32);
    let at = |row: u32, col: u32| row * pitch + (col + row / every % period * shift) % width;
    let mut total = 0;
    let mut rest = problem.ideal;
    for phase in problem.phases() {
        rest -= 1;
        if total + rest + 1 > limit {
            return limit + 1;
        }
        let most = limit - total - rest;
        *work += phase.len as u64;
        if phase.bytes < 4 {
            total += problem.phase_cost(phase, &at);
            continue;
        }
        let unit = phase.bytes.trailing_zeros();
        let banks = 128_u32 >> unit;
        let mut count = [0_u8; 32];
        let mut worst = 0;
        for (row, col) in phase.points() {
            let group = ((at(row, col) << problem.log_elem) >> unit) & (banks - 1);
            count[group as usize] += 1;
            worst = worst.max(count[group as usize]);
            if u32::from(worst) > most {
                return limit + 1;
            }
        }
        total += u32::from(worst);
    }
    total
}
