//! What is asked: one file a family of operations. Each generates expressions and the judge of each expression.

mod common;
mod compose;
mod coordinates;
mod divide;
mod inverse;
mod layouts;
mod modes;
mod named;
mod partition;
mod places;
mod product;
mod properties;
mod swizzled;
mod tuples;
mod width;

use crate::model::{Function, Layout, Tree, distinct};
use crate::random::Random;
use crate::verdict::Case;

/// All questions of one round.
pub(crate) fn all(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let families: [fn(&mut Random, &mut Vec<Case>); 15] = [
        compose::cases,
        swizzled::cases,
        divide::cases,
        partition::cases,
        product::cases,
        inverse::cases,
        common::cases,
        layouts::cases,
        properties::cases,
        tuples::cases,
        places::cases,
        modes::cases,
        width::cases,
        coordinates::cases,
        named::cases,
    ];
    for family in families {
        family(random, &mut cases);
    }
    cases
}

/// Calls a generator so many times.
fn times(
    n: usize,
    random: &mut Random,
    cases: &mut Vec<Case>,
    mut make: impl FnMut(&mut Random) -> Case,
) {
    for _ in 0..n {
        cases.push(make(random));
    }
}

/// The class of a layout.
fn kind(layout: &Layout) -> &'static str {
    let leaves = layout.leaves();
    if leaves.iter().any(|(s, d)| *s > 1 && *d < 0) {
        "negative strides"
    } else if leaves.iter().any(|(s, d)| *s > 1 && *d == 0) {
        "zero strides"
    } else if !distinct(&layout.values()) {
        "overlapping"
    } else if chained(&leaves, 1).is_none() {
        "padded"
    } else {
        "chained"
    }
}

/// The rest of `0..n`. Where strides do not chain, those beyond `n` may not matter: copies then begin at each free offset below
/// `n`, in order, if they never meet.
fn complement(leaves: &[(i64, i64)], n: i64) -> Option<Vec<(i64, i64)>> {
    if let Some(rest) = chained(leaves, n) {
        return Some(rest);
    }
    let moving: Vec<(i64, i64)> = leaves.iter().copied().filter(|leaf| leaf.1 != 0).collect();
    let block = Layout::of(&moving).values();
    if block.iter().any(|x| *x < 0) || !distinct(&block) {
        return None;
    }
    // They may go on beyond `n` to the end of a repetition.
    let mut taken: Vec<i64> = Vec::new();
    let mut starts = Vec::new();
    for free in 0..n + 2 * crate::model::cosize(&block) {
        if free >= n
            && let Some(rest) = factors(&starts)
        {
            return Some(rest);
        }
        if !taken.contains(&free) {
            starts.push(free);
            taken.extend(block.iter().map(|x| x + free));
            if !distinct(&taken) {
                return None;
            }
        }
    }
    None
}

/// The modes of the layout with these values, if there is one: each is the longest linear run of what is left.
fn factors(values: &[i64]) -> Option<Vec<(i64, i64)>> {
    let mut modes = Vec::new();
    let mut rest = values.to_vec();
    while rest.len() > 1 {
        let step = rest[1];
        let run = (0..)
            .zip(&rest)
            .take_while(|(i, x)| **x == i * step)
            .count();
        modes.push((run as i64, step));
        rest = rest.into_iter().step_by(run).collect();
    }
    (Layout::of(&modes).values() == values).then_some(modes)
}

/// The gaps below each stride, sorted, and what lies above all up to `n`. `None` where strides do not chain.
fn chained(leaves: &[(i64, i64)], n: i64) -> Option<Vec<(i64, i64)>> {
    let mut modes: Vec<(i64, i64)> = leaves
        .iter()
        .filter(|(s, d)| *s > 1 && *d != 0)
        .map(|(s, d)| (*d, *s))
        .collect();
    modes.sort_unstable();
    let mut covered = 1;
    let mut rest = Vec::new();
    for (d, s) in modes {
        if d < covered || d % covered != 0 {
            return None;
        }
        rest.push((d / covered, covered));
        covered = d * s;
    }
    rest.push(((n + covered - 1) / covered, covered));
    rest.retain(|mode| mode.0 > 1);
    Some(rest)
}

/// Adjacent modes that continue each other are merged, and modes of extent 1 are dropped.
fn coalesced(leaves: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (s, d) in leaves.iter().copied().filter(|leaf| leaf.0 != 1) {
        match merged.last_mut() {
            Some(last) if last.0 * last.1 == d => last.0 *= s,
            _ => merged.push((s, d)),
        }
    }
    merged
}

/// All digits of all linear coordinates of these extents.
fn digits(extents: &[i64]) -> Vec<Vec<i64>> {
    let size: i64 = extents.iter().product();
    (0..size)
        .map(|i| {
            let mut rest = i;
            extents
                .iter()
                .map(|n| {
                    let digit = rest % n;
                    rest /= n;
                    digit
                })
                .collect()
        })
        .collect()
}

/// In parentheses, so that it can stand on either side of an operator.
fn wrapped(function: &Function) -> String {
    format!("({function})")
}

/// Extents `1:0` up to a rank.
fn padded(layout: &Layout, rank: usize) -> Vec<Layout> {
    let mut modes = layout.modes();
    while modes.len() < rank {
        modes.push(Layout::new(Tree::Int(1), Tree::Int(0)));
    }
    modes
}
