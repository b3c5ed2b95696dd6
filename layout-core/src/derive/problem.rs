//! From patterns to sets of points: what the searches look at.
//!
//! A pattern gives each lane an element. Validation turns that into *phases*: the different elements that one phase asks for
//! (lanes that ask for the same one share a word, whatever the layout), as (row, column). Two phases that are translations of each
//! other, both by addition and by xor, cost the same in every linear layout, so that one stands for both with a weight: the four
//! phases of an `ldmatrix.x4` are usually one with weight 4. A rotation is not linear; it sees every phase by itself
//! ([`Merge::Nothing`]).
//!
//! An element of `q * 2^k` bytes, `q` odd, conflicts exactly like one of `2^k` bytes: `q` permutes the banks. So the searches see
//! elements of `2^k` bytes only; the final count is made on true addresses.

use crate::banks::{Access, NVIDIA, effective_phase_lanes};

use super::{DeriveError, MAX_EXTENT, MAX_PATTERNS, Pattern, Tile};

/// Phases of all patterns together: four each.
pub(super) const MAX_ALL_PHASES: usize = 4 * MAX_PATTERNS;

/// Whether phases that cost the same in every linear layout are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Merge {
    Translations,
    Nothing,
}

/// The different elements that one phase asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhasePoints {
    /// Bytes each lane touches.
    pub(super) bytes: u32,
    /// How many phases look like this one.
    pub(super) weight: u32,
    /// Row bits and column bits that occur in the whole pattern.
    pub(super) bits: (u32, u32),
    pub(super) len: usize,
    points: [(u16, u16); 32],
}

impl PhasePoints {
    /// (row, column), ascending.
    pub(super) fn points(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.points[..self.len]
            .iter()
            .map(|&(row, col)| (u32::from(row), u32::from(col)))
    }

    fn same_up_to_translation(&self, other: &Self) -> bool {
        if (self.bytes, self.len) != (other.bytes, other.len) {
            return false;
        }
        let (first, other_first) = (self.points[0], other.points[0]);
        self.points[..self.len]
            .iter()
            .zip(&other.points[..other.len])
            .all(|(a, b)| {
                (a.0 - first.0 == b.0 - other_first.0)
                    && (a.1.wrapping_sub(first.1) == b.1.wrapping_sub(other_first.1))
                    && (a.0 ^ first.0 == b.0 ^ other_first.0)
                    && (a.1 ^ first.1 == b.1 ^ other_first.1)
            })
    }
}

/// A validated problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) tile: Tile,
    pub(super) rows: u32,
    pub(super) cols: u32,
    /// log2 of the power-of-two part of an element's bytes.
    pub(super) log_elem: u32,
    /// log2 of the elements that every layout keeps together: the widest access.
    pub(super) log_granule: u32,
    /// Whether some access is narrower than a word.
    pub(super) sub_word: bool,
    /// log2 of the largest power of two in the columns and in the rows.
    pub(super) col_bits: u32,
    pub(super) row_bits: u32,
    /// The total with no conflict at all: the number of phases that have active lanes.
    pub(super) ideal: u32,
    pub(super) phase_count: usize,
    pub(super) phases: [PhasePoints; MAX_ALL_PHASES],
}

impl Problem {
    pub(super) fn phases(&self) -> &[PhasePoints] {
        &self.phases[..self.phase_count]
    }

    /// Bits of the power-of-two block of the tile.
    pub(super) fn block_bits(&self) -> u32 {
        self.col_bits + self.row_bits
    }

    /// Whether the tile's rows and columns are both powers of two.
    pub(super) fn is_power_of_two(&self) -> bool {
        self.rows >> self.row_bits == 1 && self.cols >> self.col_bits == 1
    }

    /// Whether xor-linear maps of the block apply: what lies outside the block then moves by whole multiples of 128 bytes.
    pub(super) fn block_is_bank_aligned(&self) -> bool {
        self.is_power_of_two() || self.block_bits() + self.log_elem >= 7
    }

    /// Block coordinate: column bits below row bits.
    pub(super) fn block_index(&self, (row, col): (u32, u32)) -> u32 {
        let cols = (1 << self.col_bits) - 1;
        let rows = (1 << self.row_bits) - 1;
        (col & cols) | (row & rows) << self.col_bits
    }

    /// Total wavefronts of the layout that puts (row, column) at element offset `at`, or something at least `limit` as soon as that is
    /// certain.
    pub(super) fn cost(&self, limit: u32, at: impl Fn(u32, u32) -> u32) -> u32 {
        let mut total = 0;
        for phase in self.phases() {
            total += phase.weight * self.phase_cost(phase, &at);
            if total >= limit {
                break;
            }
        }
        total
    }

    /// Wavefronts of all phases that no layout avoids in which each aligned vector of the widest access stays together.
    ///
    /// Such a layout fixes where in a vector an element is, and with it all of the bank but the group: elements at the same place of
    /// their vectors have as many banks as a wavefront has vectors.
    pub(super) fn least(&self) -> u32 {
        if self.log_granule + self.log_elem < 2 {
            return self.ideal;
        }
        let vector = 1_u32 << (self.log_granule + self.log_elem);
        let groups = (128 / vector) as usize;
        let of = |phase: &PhasePoints| {
            let unit = phase.bytes.max(4);
            // The first byte of each unit, within its vector and by vector; units narrower than a word share words.
            let mut words = [(0_u32, 0_u32); 32];
            let mut len = 0;
            for (row, col) in phase.points() {
                let byte = (row * self.cols + col) << self.log_elem;
                let at = (byte % vector / unit, byte / vector);
                if !words[..len].contains(&at) {
                    words[len] = at;
                    len += 1;
                }
            }
            let most = (0..vector / unit)
                .map(|place| words[..len].iter().filter(|w| w.0 == place).count())
                .max();
            most.map_or(1, |most| most.div_ceil(groups).max(1) as u32)
        };
        let phases = self.phases().iter();
        phases.map(|phase| phase.weight * of(phase)).sum()
    }

    /// Wavefronts of one phase in the layout `at`.
    pub(super) fn phase_cost(&self, phase: &PhasePoints, at: &impl Fn(u32, u32) -> u32) -> u32 {
        let unit = phase.bytes.max(4).trailing_zeros();
        let banks = 128_u32 >> unit;
        let mut count = [0_u8; 32];
        let mut most = 0;
        if phase.bytes >= 4 {
            for (row, col) in phase.points() {
                let group = ((at(row, col) << self.log_elem) >> unit) & (banks - 1);
                count[group as usize] += 1;
                most = most.max(count[group as usize]);
            }
        } else {
            let mut words = [0_u32; 32];
            for (i, (row, col)) in phase.points().enumerate() {
                words[i] = (at(row, col) << self.log_elem) >> unit;
                if !words[..i].contains(&words[i]) {
                    let bank = (words[i] & (banks - 1)) as usize;
                    count[bank] += 1;
                    most = most.max(count[bank]);
                }
            }
        }
        u32::from(most)
    }
}

/// Checks tile and patterns, and collects the phases.
pub(super) fn pose(tile: Tile, patterns: &[Pattern], merge: Merge) -> Result<Problem, DeriveError> {
    if !(1..=MAX_EXTENT).contains(&tile.rows) || !(1..=MAX_EXTENT).contains(&tile.cols) {
        return Err(DeriveError::BadTile {
            rows: tile.rows,
            cols: tile.cols,
        });
    }
    if !(1..=16).contains(&tile.elem_bytes) {
        return Err(DeriveError::BadElement {
            bytes: tile.elem_bytes,
        });
    }
    if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
        return Err(DeriveError::BadPatternCount {
            count: patterns.len(),
        });
    }
    let (rows, cols) = (tile.rows as u32, tile.cols as u32);
    let log_elem = tile.elem_bytes.trailing_zeros();
    let empty = PhasePoints {
        bytes: 4,
        weight: 0,
        bits: (0, 0),
        len: 0,
        points: [(0, 0); 32],
    };
    let mut problem = Problem {
        tile,
        rows,
        cols,
        log_elem,
        log_granule: 0,
        sub_word: false,
        col_bits: cols.trailing_zeros(),
        row_bits: rows.trailing_zeros(),
        ideal: 0,
        phase_count: 0,
        phases: [empty; MAX_ALL_PHASES],
    };
    for (number, pattern) in patterns.iter().enumerate() {
        check(tile, number, pattern)?;
        let bytes = pattern.access.bytes();
        problem.sub_word |= bytes < 4;
        problem.log_granule = problem
            .log_granule
            .max(bytes.trailing_zeros().saturating_sub(log_elem));
        collect(&mut problem, pattern, merge);
    }
    Ok(problem)
}

/// The first elements this access can start at are multiples of this.
fn start_multiple(tile: Tile, access: Access) -> i64 {
    let bytes = i64::from(access.bytes());
    (bytes >> tile.elem_bytes.trailing_zeros()).max(1)
}

fn check(tile: Tile, number: usize, pattern: &Pattern) -> Result<(), DeriveError> {
    let access = pattern.access;
    let bytes = i64::from(access.bytes());
    if access == Access::Ffma {
        return Err(DeriveError::UnsupportedAccess {
            pattern: number,
            access,
        });
    }
    if bytes < 4
        && tile.elem_bytes.trailing_zeros() < 2
        && !(tile.elem_bytes as u64).is_power_of_two()
    {
        return Err(DeriveError::NarrowOnOddElement {
            pattern: number,
            access,
            elem_bytes: tile.elem_bytes,
        });
    }
    let row_bytes = tile.cols * tile.elem_bytes;
    if row_bytes % bytes != 0 {
        return Err(DeriveError::TileNotDivisible {
            pattern: number,
            access,
            row_bytes,
        });
    }
    let size = tile.rows * tile.cols;
    let multiple = start_multiple(tile, access);
    let lanes = access.lanes() as usize;
    let mut active = 0;
    for lane in 0..lanes {
        let index = pattern.elements[lane];
        if index == -1 {
            if access.matrices().is_some() {
                let given = pattern.elements[..lanes]
                    .iter()
                    .filter(|&&e| e >= 0)
                    .count() as i64;
                return Err(DeriveError::WrongLaneCount {
                    pattern: number,
                    access,
                    given,
                    expected: access.lanes(),
                });
            }
            continue;
        }
        active += 1;
        if index < 0 || index >= size {
            return Err(DeriveError::OutsideTile {
                pattern: number,
                lane,
                index,
                size,
            });
        }
        if index % multiple != 0 {
            return Err(DeriveError::Misaligned {
                pattern: number,
                access,
                lane,
                index,
                multiple,
            });
        }
        if !access.is_load()
            && let Some(first) = pattern.elements[..lane].iter().position(|&e| e == index)
        {
            return Err(DeriveError::DuplicateLanes {
                pattern: number,
                access,
                first,
                second: lane,
                index,
            });
        }
    }
    if active == 0 {
        return Err(DeriveError::NoActiveLane { pattern: number });
    }
    Ok(())
}

fn collect(problem: &mut Problem, pattern: &Pattern, merge: Merge) {
    let access = pattern.access;
    let step = effective_phase_lanes(&NVIDIA, access, &pattern.elements) as usize;
    let lanes = access.lanes() as usize;
    let (cols, active) = (problem.tile.cols, |e: &&i64| **e >= 0);
    let bits = pattern.elements[..lanes]
        .iter()
        .filter(active)
        .fold((0, 0), |bits, e| {
            (bits.0 | (e / cols) as u32, bits.1 | (e % cols) as u32)
        });
    let mut first = 0;
    while first < lanes {
        let last = (first + step).min(lanes);
        let mut phase = PhasePoints {
            bytes: access.bytes(),
            weight: 1,
            bits,
            len: 0,
            points: [(0, 0); 32],
        };
        let mut sorted = [i64::MAX; 32];
        for (slot, &element) in sorted.iter_mut().zip(&pattern.elements[first..last]) {
            *slot = if element < 0 { i64::MAX } else { element };
        }
        sorted.sort_unstable();
        for (i, &element) in sorted.iter().enumerate() {
            if element != i64::MAX && (i == 0 || sorted[i - 1] != element) {
                let (row, col) = (element / problem.tile.cols, element % problem.tile.cols);
                phase.points[phase.len] = (row as u16, col as u16);
                phase.len += 1;
            }
        }
        first += step;
        if phase.len == 0 {
            continue;
        }
        problem.ideal += 1;
        let count = problem.phase_count;
        let same = problem.phases[..count]
            .iter_mut()
            .find(|p| merge == Merge::Translations && p.same_up_to_translation(&phase));
        if let Some(same) = same {
            same.weight += 1;
        } else {
            problem.phases[count] = phase;
            problem.phase_count += 1;
        }
    }
}
