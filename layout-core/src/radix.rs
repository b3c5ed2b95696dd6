//! The left inverse of an injective layout in general: a search for the radices in which it reads offsets.
//!
//! A layout `X` reads a number `y` digit by digit in a mixed radix and sums up the digits times its strides. For fixed
//! radices `X(L(i)) = i` is a system of linear equations in the strides, one equation for each `i`. What is searched are the
//! radices. A finer radix can express a coarser one (split the digit), so only prime radices matter, and their products need
//! not go beyond the offsets: finitely many chains.
//!
//! ```text
//! L = (5,3):(3,13)     offsets 0 3 6 9 12  13 16 19 22 25  26 29 32 35 38
//! radix 3, then the rest:  3·q + r  ->  a·r + b·q
//!     3 -> 1:  b = 1      13 = 3·4 + 1 -> 5:  a + 4 = 5, a = 1      38 = 3·12 + 2 -> 14: 2 + 12 = 14
//! X = (3,13):(1,1)
//! ```
//!
//! A chain is cut as soon as the digits chosen so far contradict two offsets whose remaining digits agree: no choice of the
//! further radices can separate these two. Chains with few radices are tried first.

use crate::complement::sorted_leaves;
use crate::error::{LayoutError, attempt};
use crate::layout::Layout;
use crate::modes::Modes;
use crate::profile::MAX_MODES;

const OPERATION: &str = "left_inverse";

/// Offsets that the search looks at, at most.
const TABLE: usize = 4096;

/// Radices in one chain, at most.
const DEPTH: usize = 16;

/// Steps of elimination that the search takes, at most.
const WORK: u64 = 1 << 27;

/// The offsets in ascending order, with the coordinate that each comes from.
struct Table {
    len: usize,
    offset: [i64; TABLE],
    coordinate: [i64; TABLE],
}

impl Table {
    /// The table of a layout without its modes of stride 0, which must have at most [`TABLE`] coordinates then.
    const fn of(layout: &Layout, steps: &[i64; MAX_MODES], size: usize) -> Self {
        let (order, modes) = sorted_leaves(layout);
        #[expect(
            clippy::large_stack_arrays,
            reason = "32 KiB each, and no allocator in a `const fn`"
        )]
        let mut table = Self {
            len: size,
            offset: [0; TABLE],
            coordinate: [0; TABLE],
        };
        let mut i = 0;
        while i < size {
            let (mut offset, mut coordinate) = (0, 0);
            let mut rest = i as i64;
            let mut k = 0;
            while k < modes {
                let mode = order[k];
                let digit = rest % layout.shape[mode];
                rest /= layout.shape[mode];
                offset += digit * layout.step(mode);
                coordinate += digit * steps[mode];
                k += 1;
            }
            // Mostly sorted already, since the modes are taken in the order of their strides.
            let mut at = i;
            while at > 0 && table.offset[at - 1] > offset {
                table.offset[at] = table.offset[at - 1];
                table.coordinate[at] = table.coordinate[at - 1];
                at -= 1;
            }
            table.offset[at] = offset;
            table.coordinate[at] = coordinate;
            i += 1;
        }
        table
    }
}

/// All integer solutions of linear equations: `base + Σ n_j·direction_j`.
#[derive(Clone, Copy)]
struct Solutions {
    unknowns: usize,
    base: [i128; DEPTH + 1],
    direction: [[i128; DEPTH + 1]; DEPTH + 1],
    free: usize,
}

impl Solutions {
    /// No equation yet: everything is a solution.
    const fn all(unknowns: usize) -> Self {
        let mut direction = [[0; DEPTH + 1]; DEPTH + 1];
        let mut j = 0;
        while j < unknowns {
            direction[j][j] = 1;
            j += 1;
        }
        Self {
            unknowns,
            base: [0; DEPTH + 1],
            direction,
            free: unknowns,
        }
    }

    const fn product(&self, a: &[i128; DEPTH + 1], b: &[i128; DEPTH + 1]) -> i128 {
        let mut sum = 0;
        let mut k = 0;
        while k < self.unknowns {
            sum += a[k] * b[k];
            k += 1;
        }
        sum
    }

    /// Adds the equation `coefficients · x = value`; false if no integer solution is left.
    const fn require(&mut self, coefficients: &[i128; DEPTH + 1], value: i128) -> bool {
        let missing = value - self.product(coefficients, &self.base);
        let mut weight = [0i128; DEPTH + 1];
        let mut j = 0;
        while j < self.free {
            weight[j] = self.product(coefficients, &self.direction[j]);
            j += 1;
        }
        // Euclid's algorithm on the directions, until one alone moves along the equation.
        loop {
            let mut least = self.free;
            let mut others = 0;
            j = 0;
            while j < self.free {
                if weight[j] != 0 {
                    others += 1;
                    if least == self.free || weight[j].unsigned_abs() < weight[least].unsigned_abs()
                    {
                        least = j;
                    }
                }
                j += 1;
            }
            if others == 0 {
                return missing == 0;
            }
            if others == 1 {
                if missing % weight[least] != 0 {
                    return false;
                }
                self.fix(least, missing / weight[least]);
                return true;
            }
            j = 0;
            while j < self.free {
                if j != least && weight[j] != 0 {
                    let times = weight[j] / weight[least];
                    weight[j] -= times * weight[least];
                    let mut k = 0;
                    while k < self.unknowns {
                        self.direction[j][k] -= times * self.direction[least][k];
                        k += 1;
                    }
                }
                j += 1;
            }
        }
    }

    /// Takes `times` of direction `j`, which is then used up.
    const fn fix(&mut self, j: usize, times: i128) {
        let mut k = 0;
        while k < self.unknowns {
            self.base[k] += times * self.direction[j][k];
            k += 1;
        }
        self.free -= 1;
        self.direction[j] = self.direction[self.free];
    }
}

/// The search: radices chosen so far and the work that is left.
struct Chains<'a> {
    table: &'a Table,
    radix: [i64; DEPTH],
    work: u64,
}

impl Chains<'_> {
    /// The digits of `y` in the first `len` radices, and the rest after them.
    const fn digits(&self, len: usize, y: i64) -> ([i128; DEPTH + 1], i64) {
        let mut digits = [0; DEPTH + 1];
        let mut rest = y;
        let mut r = 0;
        while r < len {
            digits[r] = rest.rem_euclid(self.radix[r]) as i128;
            rest = rest.div_euclid(self.radix[r]);
            r += 1;
        }
        (digits, rest)
    }

    /// Whether some strides of the first `len` digits agree with all pairs of offsets that differ in these digits alone.
    const fn feasible(&mut self, len: usize) -> bool {
        self.work = self.work.saturating_sub(self.table.len as u64);
        let mut solutions = Solutions::all(len);
        let (mut before, mut rest_before) = self.digits(len, self.table.offset[0]);
        let mut i = 1;
        while i < self.table.len {
            let (digits, rest) = self.digits(len, self.table.offset[i]);
            if rest == rest_before {
                let mut difference = digits;
                let mut r = 0;
                while r < len {
                    difference[r] -= before[r];
                    r += 1;
                }
                let value = (self.table.coordinate[i] - self.table.coordinate[i - 1]) as i128;
                self.spend(len);
                if !solutions.require(&difference, value) {
                    return false;
                }
            }
            (before, rest_before) = (digits, rest);
            i += 1;
        }
        true
    }

    const fn spend(&mut self, len: usize) {
        self.work = self.work.saturating_sub(((len + 1) * (len + 1)) as u64);
    }

    /// The strides of the first `len` digits and of the rest, if the rest is a separate digit.
    const fn solve(&mut self, len: usize) -> Option<[i128; DEPTH + 1]> {
        let mut solutions = Solutions::all(len + 1);
        let mut i = 0;
        while i < self.table.len {
            let (mut digits, rest) = self.digits(len, self.table.offset[i]);
            digits[len] = rest as i128;
            self.spend(len + 1);
            if !solutions.require(&digits, self.table.coordinate[i] as i128) {
                return None;
            }
            i += 1;
        }
        Some(solutions.base)
    }

    /// The first solution with exactly `depth` radices of product up to `limit`, going on from `len` of product `product`;
    /// and whether any chain of that length was left.
    const fn search(
        &mut self,
        len: usize,
        product: i64,
        depth: usize,
        limit: i64,
    ) -> (Option<(usize, [i128; DEPTH + 1])>, bool) {
        if self.work == 0 {
            return (None, true);
        }
        if len == depth {
            return match self.solve(len) {
                Some(strides) => (Some((len, strides)), true),
                None => (None, true),
            };
        }
        let mut any = false;
        let mut prime = 2;
        while prime <= limit / product && self.work > 0 {
            self.work = self.work.saturating_sub(16);
            if is_prime(prime) {
                self.radix[len] = prime;
                if self.feasible(len + 1) {
                    let (found, reached) = self.search(len + 1, product * prime, depth, limit);
                    if found.is_some() {
                        return (found, true);
                    }
                    any = any || reached;
                }
            }
            prime += 1;
        }
        (None, any)
    }
}

const fn is_prime(n: i64) -> bool {
    let mut d = 2;
    while d * d <= n {
        if n % d == 0 {
            return false;
        }
        d += 1;
    }
    true
}

/// The left inverse of a layout whose strides do not form a chain.
pub(crate) const fn left_inverse(
    layout: &Layout,
    steps: &[i64; MAX_MODES],
) -> Result<Layout, LayoutError> {
    if let Some(collision) = attempt!(layout.collision(OPERATION)) {
        return Err(collision);
    }
    let mut size = 1;
    let (order, len) = sorted_leaves(layout);
    let mut k = 0;
    while k < len {
        size *= layout.shape[order[k]];
        k += 1;
    }
    if size > TABLE as i64 {
        return Err(LayoutError::TooLarge {
            operation: OPERATION,
            size,
            limit: TABLE as i64,
        });
    }
    let table = Table::of(layout, steps, size as usize);
    let (min, max) = layout.offset_range();
    // With negative offsets one radix may reach beyond the offsets: it adds a constant to them.
    let limit = if min < 0 { 2 * (max - min + 1) } else { max };
    let mut chains = Chains {
        table: &table,
        radix: [0; DEPTH],
        work: WORK,
    };
    let mut depth = 0;
    while depth <= DEPTH {
        let (found, reached) = if depth == DEPTH {
            (None, false)
        } else {
            chains.search(0, 1, depth, limit)
        };
        if let Some((len, strides)) = found {
            return chains.layout(len, &strides, max);
        }
        if chains.work == 0 || depth == DEPTH {
            return Err(LayoutError::SearchLimit {
                operation: OPERATION,
            });
        }
        if !reached {
            break;
        }
        depth += 1;
    }
    Err(LayoutError::NoLeftInverse { size, max })
}

impl Chains<'_> {
    /// The layout with the radices found, up to offset `max`.
    const fn layout(
        &self,
        len: usize,
        strides: &[i128; DEPTH + 1],
        max: i64,
    ) -> Result<Layout, LayoutError> {
        let mut modes = Modes::<1>::EMPTY;
        let mut top = max;
        let mut r = 0;
        while r <= len {
            let stride = strides[r];
            if stride > i64::MAX as i128 || stride < -(i64::MAX as i128) {
                return Err(LayoutError::Overflow {
                    operation: OPERATION,
                });
            }
            let extent = if r < len { self.radix[r] } else { top + 1 };
            if r == len && extent == 1 {
                // The rest counts on even where only its first value is in the table.
                modes.push(1, [stride as i64]);
            } else {
                modes.push_coalesced(extent, [stride as i64]);
            }
            if r < len {
                top /= self.radix[r];
            }
            r += 1;
        }
        modes.into_layout()
    }
}
