//! The families that are small enough to enumerate: swizzles, padded rows, and what TMA writes.
//!
//! A swizzle is worth trying if its target bits are bank bits above the widest access and its source bits lie inside the tile: for
//! 16-byte accesses and a tile of 8 KiB about 40 of them. Negative shifts move bank bits up, which no bank sees, and are left out; so
//! are shifts shorter than the field, which CuTe refuses. Padding repeats after 128 bytes.
//!
//! Among swizzles that cost the same, one whose count survives *every* translation within the tile is preferred to one that needs
//! translations not to carry.

use crate::descriptor::box_rows;

use super::problem::{PhasePoints, Problem};
use super::rotated::Rotation;

/// A layout that a search proposes, in element units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plan {
    /// `Sw<b,m,s>` on the row-major or column-major tile.
    Swizzle {
        b: u32,
        m: u32,
        s: u32,
        col_major: bool,
    },
    /// Block bit `j` goes to offset bit `positions[j]`, then `Sw<b,m,s>`; blocks follow each other.
    Permuted {
        positions: [u8; 24],
        b: u32,
        m: u32,
        s: u32,
    },
    /// Row-major with this pitch.
    Padded { pitch: u32 },
    /// Panels of this many columns, rows by rows, and `Sw<b,m,3>`.
    Tma { b: u32, m: u32, panel: u32 },
    /// Block bit `j` goes to these offset bits; blocks follow each other.
    Matrix { columns: [u32; 24] },
    /// Row-major with this pitch, rows rotated.
    Rotated(Rotation),
}

/// Where the counts of a plan hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Translated {
    /// Where the accesses are given.
    Not,
    /// For every translation that does not carry into the pattern's bits.
    WithoutCarry,
    /// For every translation within the tile.
    Every,
}

fn swizzled(x: u32, b: u32, m: u32, s: u32) -> u32 {
    x ^ ((x >> s) & (((1 << b) - 1) << m))
}

impl Plan {
    /// The element offset of (row, column).
    pub(super) fn at(&self, problem: &Problem, row: u32, col: u32) -> u32 {
        match *self {
            Self::Swizzle { b, m, s, col_major } => {
                let x = if col_major {
                    col * problem.rows + row
                } else {
                    row * problem.cols + col
                };
                swizzled(x, b, m, s)
            }
            Self::Padded { pitch } => row * pitch + col,
            Self::Rotated(rotation) => rotation.at(row.into(), col.into()) as u32,
            Self::Tma { b, m, panel } => {
                let x = (col / panel) * panel * problem.rows + row * panel + col % panel;
                swizzled(x, b, m, 3)
            }
            Self::Permuted { .. } | Self::Matrix { .. } => {
                let x = problem.block_index((row, col));
                let mut inside = 0;
                for j in 0..problem.block_bits() as usize {
                    if x >> j & 1 == 1 {
                        inside ^= match self {
                            Self::Permuted { positions, .. } => 1 << positions[j],
                            Self::Matrix { columns } => columns[j],
                            _ => 0,
                        };
                    }
                }
                if let Self::Permuted { b, m, s, .. } = *self {
                    inside = swizzled(inside, b, m, s);
                }
                let blocks = problem.cols >> problem.col_bits;
                let block = (row >> problem.row_bits) * blocks + (col >> problem.col_bits);
                inside + (block << problem.block_bits())
            }
        }
    }
}

/// Whether accesses narrower than a word cost the same wherever in a word the pattern starts.
fn word_phase_does_not_matter(problem: &Problem, plan: &Plan, cost: u32) -> bool {
    let elements = 4_u32 >> problem.log_elem.min(2);
    (1..elements).all(|shift| problem.cost(u32::MAX, |r, c| plan.at(problem, r, c) + shift) == cost)
}

/// Whether every translation that keeps a phase inside the tile costs what the phase costs, looking at one period of rows and columns
/// (at most 4096 translations; beyond that the answer is no).
pub(super) fn is_additive(problem: &Problem, plan: &Plan) -> bool {
    let (row_period, col_period) = match *plan {
        Plan::Padded { .. } => {
            return !problem.sub_word
                || word_phase_does_not_matter(
                    problem,
                    plan,
                    problem.cost(u32::MAX, |r, c| plan.at(problem, r, c)),
                );
        }
        Plan::Swizzle { b: 0, .. } if !problem.sub_word => return true,
        Plan::Swizzle {
            b,
            m,
            s,
            col_major: false,
        } => (
            1 << (b + m + s).max(7).saturating_sub(problem.col_bits),
            problem.cols,
        ),
        Plan::Swizzle {
            b,
            m,
            s,
            col_major: true,
        } => (
            problem.rows,
            1 << (b + m + s).max(7).saturating_sub(problem.row_bits),
        ),
        _ => (problem.rows, problem.cols),
    };
    problem
        .phases()
        .iter()
        .all(|phase| phase_is_additive(problem, plan, phase, row_period, col_period))
}

/// Translations of one phase that are tried at most.
const MOST_TRANSLATIONS: u64 = 16_384;

/// Calls `with(rows, columns, wavefronts)` for every translation of a phase within the tile, until it says no; whether it never did. Of the
/// rows one period is tried, which is `row_period`. No, too, if there are more than [`MOST_TRANSLATIONS`].
fn translations(
    problem: &Problem,
    plan: &Plan,
    phase: &PhasePoints,
    row_period: u32,
    mut with: impl FnMut(i64, i64, u32) -> bool,
) -> bool {
    let step = (phase.bytes >> problem.log_elem).max(1);
    let (mut least, mut most) = ((u32::MAX, u32::MAX), (0, 0));
    for (row, col) in phase.points() {
        least = (least.0.min(row), least.1.min(col));
        most = (most.0.max(row), most.1.max(col));
    }
    let base = least.1 % step;
    let rows = (problem.rows - (most.0 - least.0)).min(row_period.saturating_add(least.0));
    let cols = (problem.cols - (most.1 - least.1) - base).div_ceil(step);
    if u64::from(rows) * u64::from(cols) > MOST_TRANSLATIONS {
        return false;
    }
    (0..rows).all(|row| {
        (0..cols).map(|i| i * step + base).all(|col| {
            let at = |r: u32, c: u32| plan.at(problem, r - least.0 + row, c - least.1 + col);
            let moved = (
                i64::from(row) - i64::from(least.0),
                i64::from(col) - i64::from(least.1),
            );
            with(moved.0, moved.1, problem.phase_cost(phase, &at))
        })
    })
}

/// Rows after which a plan's rotations come again, if that is a power of two: then a translation carries if it does modulo the period.
fn row_period(plan: &Plan) -> u32 {
    let rows = match plan {
        Plan::Rotated(r) => u32::try_from(r.every * r.period).ok(),
        _ => None,
    };
    rows.filter(|rows| rows.is_power_of_two())
        .unwrap_or(u32::MAX)
}

/// Which translations the counts of a rotation survive.
pub(super) fn survives(problem: &Problem, plan: &Plan) -> Translated {
    let mut every = Translated::Every;
    for phase in problem.phases() {
        let cost = problem.phase_cost(phase, &|r, c| plan.at(problem, r, c));
        let holds = translations(
            problem,
            plan,
            phase,
            row_period(plan),
            |rows, cols, moved| {
                if moved == cost {
                    return true;
                }
                every = Translated::WithoutCarry;
                let bits = (i64::from(phase.bits.0), i64::from(phase.bits.1));
                rows < 0 || cols < 0 || rows & bits.0 != 0 || cols & bits.1 != 0
            },
        );
        if !holds {
            return Translated::Not;
        }
    }
    every
}

/// The most wavefronts that all phases take together, each wherever in the tile it takes the most; nothing if that is too much to try.
pub(super) fn worst_translated(problem: &Problem, plan: &Plan) -> Option<u32> {
    problem.phases().iter().try_fold(0, |total, phase| {
        let mut worst = 0;
        let mut note = |_: i64, _: i64, cost: u32| {
            worst = worst.max(cost);
            true
        };
        translations(problem, plan, phase, row_period(plan), &mut note)
            .then(|| total + phase.weight * worst)
    })
}

fn phase_is_additive(
    problem: &Problem,
    plan: &Plan,
    phase: &PhasePoints,
    row_period: u32,
    col_period: u32,
) -> bool {
    let step = (phase.bytes >> problem.log_elem).max(1);
    let (mut least, mut most) = ((u32::MAX, u32::MAX), (0, 0));
    for (row, col) in phase.points() {
        least = (least.0.min(row), least.1.min(col));
        most = (most.0.max(row), most.1.max(col));
    }
    // Translated so that the least row and column start at every place they can.
    let rows = (problem.rows - (most.0 - least.0)).min(row_period);
    let cols = ((problem.cols - (most.1 - least.1)).div_ceil(step)).min(col_period.div_ceil(step));
    if u64::from(rows) * u64::from(cols) > 4096 {
        return false;
    }
    let base = least.1 % step;
    let cost = problem.phase_cost(phase, &|r, c| plan.at(problem, r, c));
    (0..rows).all(|row| {
        (0..cols).all(|col| {
            let at = |r: u32, c: u32| {
                plan.at(problem, r - least.0 + row, c - least.1 + col * step + base)
            };
            most.1 - least.1 + col * step + base >= problem.cols
                || problem.phase_cost(phase, &at) == cost
        })
    })
}

/// The best swizzle, or the better of the row-major and the column-major tile if `plain_only`, and how many were looked at.
pub(super) fn best_swizzle(problem: &Problem, plain_only: bool) -> (Option<(u32, Plan)>, u64) {
    let mut best: Option<(u32, Plan)> = None;
    let mut examined = 0;
    let mut additive = false;
    let mut checks = 0;
    let mut consider = |plan: Plan| {
        let limit = best.map_or(u32::MAX, |b| b.0.saturating_add(1));
        let cost = problem.cost(limit, |r, c| plan.at(problem, r, c));
        let better = best.is_none_or(|b| cost < b.0);
        let tied = best.is_some_and(|b| cost == b.0) && !additive && checks < 4;
        if better || tied {
            let survives = is_additive(problem, &plan);
            checks = if better { 1 } else { checks + 1 };
            if better || survives {
                best = Some((cost, plan));
                additive = survives;
            }
        }
        best.is_some_and(|b| b.0 == problem.ideal) && (additive || checks >= 4)
    };
    let powers = |extent: u32| extent.is_power_of_two();
    for col_major in [false, true] {
        let contiguous = if col_major {
            problem.rows
        } else {
            problem.cols
        };
        if col_major && (problem.log_granule > 0 || problem.rows == 1) {
            continue;
        }
        let plain = Plan::Swizzle {
            b: 0,
            m: 0,
            s: 0,
            col_major,
        };
        if !powers(contiguous) {
            // Translations carry: the count must not depend on the place in a word.
            let cost = problem.cost(u32::MAX, |r, c| plain.at(problem, r, c));
            if problem.sub_word && !word_phase_does_not_matter(problem, &plain, cost) {
                continue;
            }
        }
        examined += 1;
        if consider(plain) {
            return (best, examined);
        }
        if plain_only || !powers(contiguous) {
            continue;
        }
        let top = problem.block_bits();
        let bank_top = 7 - problem.log_elem;
        for b in 1..=bank_top.saturating_sub(problem.log_granule) {
            for m in problem.log_granule..=bank_top - b {
                let mut s = b;
                while m + s + b <= top {
                    examined += 1;
                    if consider(Plan::Swizzle { b, m, s, col_major }) {
                        return (best, examined);
                    }
                    s += 1;
                }
            }
        }
    }
    (best, examined)
}

/// The best pitch, the shortest of the best.
pub(super) fn best_padded(problem: &Problem) -> (Option<(u32, Plan)>, u64) {
    let mut best: Option<(u32, Plan)> = None;
    let mut examined = 0;
    let granule = 1 << problem.log_granule;
    let mut pad = 0;
    while pad << problem.log_elem < 128 {
        let plan = Plan::Padded {
            pitch: problem.cols + pad,
        };
        pad += granule;
        examined += 1;
        let limit = best.map_or(u32::MAX, |b| b.0);
        let cost = problem.cost(limit, |r, c| plan.at(problem, r, c));
        if cost < limit && (!problem.sub_word || word_phase_does_not_matter(problem, &plan, cost)) {
            best = Some((cost, plan));
            if cost == problem.ideal {
                break;
            }
        }
    }
    (best, examined)
}

/// The best TMA mode. Swizzled panels are as wide as the swizzle; rows must come in eights, so that a panel starts on its period. More than
/// 256 rows take several boxes, which follow each other in a panel as its rows do.
pub(super) fn best_tma(problem: &Problem) -> (Option<(u32, Plan)>, u64) {
    let row_bytes = problem.cols << problem.log_elem;
    let is_power = 1 << problem.log_elem == problem.tile.elem_bytes;
    if !is_power || !row_bytes.is_multiple_of(16) {
        return (None, 0);
    }
    let mut best: Option<(u32, Plan)> = None;
    let mut examined = 0;
    // The widest swizzle first, after none at all: fewer panels, fewer copies.
    for b in [0_u32, 3, 2, 1] {
        if box_rows(problem.rows.into(), b > 0).is_none() {
            continue;
        }
        let plan = if b == 0 {
            if problem.cols > 256 {
                continue;
            }
            Plan::Tma {
                b: 0,
                m: 0,
                panel: problem.cols,
            }
        } else {
            let panel_bytes = 16 << b;
            // Several panels must each start on the swizzle's period of 8 rows; one may be shorter, if its rows are a power of two.
            let whole_periods = problem.row_bits >= 3
                || (row_bytes == panel_bytes && problem.rows.is_power_of_two());
            if !row_bytes.is_multiple_of(panel_bytes) || !whole_periods {
                continue;
            }
            Plan::Tma {
                b,
                m: 4 - problem.log_elem,
                panel: panel_bytes >> problem.log_elem,
            }
        };
        examined += 1;
        let limit = best.map_or(u32::MAX, |b| b.0);
        let cost = problem.cost(limit, |r, c| plan.at(problem, r, c));
        if cost < limit {
            best = Some((cost, plan));
        }
    }
    (best, examined)
}
