//! The kinds of movement between devices, read off the pieces.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::{Distribution, Piece, Shard};

/// The kind of movement that a redistribution is, by the names of the field.
///
/// Extents that the devices do not divide change nothing: a device may have a smaller shard, or none.
///
/// ```
/// use layout_core::devices::{Distribution, Movement, Redistribution};
/// let d = |made: Result<Distribution, _>| made.unwrap();
/// let rows = d(Distribution::rows([8, 6], 2));
/// let columns = d(Distribution::columns([8, 6], 2));
/// let all = d(Distribution::replicas([8, 6], 2));
/// let terms = d(Distribution::terms([8, 6], 2));
/// let kind = |from, to| Redistribution::derive(from, to).unwrap().movement();
/// assert_eq!(kind(&all, &rows), Movement::Nothing);
/// assert_eq!(kind(&rows, &all), Movement::AllGather);
/// assert_eq!(kind(&terms, &rows), Movement::ReduceScatter);
/// assert_eq!(kind(&terms, &all), Movement::AllReduce);
/// assert_eq!(kind(&rows, &columns), Movement::AllToAll);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Movement {
    /// Every device has what it needs.
    Nothing,
    /// Every device keeps its shard and gets whole shards of others. A broadcast is one in which a single device has everything.
    AllGather,
    /// Every device gets the terms of a part of what it has a term of, and each element has one owner.
    ReduceScatter,
    /// Every device gets the terms of all that it has a term of.
    AllReduce,
    /// Within groups every device sends every device another part of its shard, and keeps one.
    AllToAll,
    /// Anything else: sends from one device to another.
    PointToPoint,
}

impl Movement {
    /// The kind of `pieces` from `from` to `to`.
    pub(super) fn of(from: &Distribution, to: &Distribution, pieces: &[Piece]) -> Self {
        if pieces.is_empty() {
            return Self::Nothing;
        }
        let shards = |of: &Distribution| (0..of.devices()).map(|d| of.shard(d)).collect();
        let (before, after): (Vec<Shard>, Vec<Shard>) = (shards(from), shards(to));
        if from.is_sum() {
            return if before == after {
                Self::AllReduce
            } else if to.copies() == 1 && each(&after, &before, Shard::is_within) {
                Self::ReduceScatter
            } else {
                Self::PointToPoint
            };
        }
        let whole = |piece: &Piece| piece.shard == before[piece.from];
        if each(&before, &after, Shard::is_within) && pieces.iter().all(whole) {
            Self::AllGather
        } else if exchanges(&before, &after, pieces) {
            Self::AllToAll
        } else {
            Self::PointToPoint
        }
    }

    /// The field's name: `all-gather`.
    ///
    /// ```
    /// use layout_core::devices::Movement;
    /// assert_eq!(Movement::PointToPoint.name(), "point-to-point");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllReduce => "all-reduce",
            Self::AllToAll => "all-to-all",
            Self::PointToPoint => "point-to-point",
        }
    }
}

/// Whether `holds` of each shard of `left` and that of the same device of `right`.
fn each(left: &[Shard], right: &[Shard], holds: impl Fn(&Shard, &Shard) -> bool) -> bool {
    left.iter().zip(right).all(|(l, r)| holds(l, r))
}

/// Whether, in every group of devices that pieces connect, each device that has something gives each that needs something a part, itself
/// included, and no two the same elements.
fn exchanges(before: &[Shard], after: &[Shard], pieces: &[Piece]) -> bool {
    let devices = before.len();
    // The least device that each is connected with.
    let mut group: Vec<usize> = (0..devices).collect();
    for piece in pieces {
        let (a, b) = (group[piece.from], group[piece.to]);
        let least = a.min(b);
        for member in &mut group {
            if *member == a || *member == b {
                *member = least;
            }
        }
    }
    let mut sent = vec![false; devices * devices];
    for piece in pieces {
        sent[piece.from + devices * piece.to] = true;
    }
    let gives = |source: usize, target: usize| {
        if source == target {
            !before[source].intersection(&after[source]).is_empty()
        } else {
            sent[source + devices * target]
        }
    };
    let active = |device: usize| pieces.iter().any(|p| p.from == device || p.to == device);
    for source in (0..devices).filter(|&d| active(d) && !before[d].is_empty()) {
        let members: Vec<usize> = (0..devices)
            .filter(|&d| group[d] == group[source] && !after[d].is_empty())
            .collect();
        if !members.iter().all(|&target| gives(source, target)) {
            return false;
        }
        // Two devices have equal shards or disjoint ones: equal ones get the same part.
        for (i, &one) in members.iter().enumerate() {
            if members[..i].iter().any(|&other| after[other] == after[one]) {
                return false;
            }
        }
    }
    true
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
