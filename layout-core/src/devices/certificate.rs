//! The independent check of a redistribution, and the certificate that it gives.
//!
//! The check knows the two distributions and a list of pieces, not how the list was made. Of each device `t` it looks at what arrives: what `t`
//! keeps, and the pieces to it.
//!
//! ```text
//! copies   every piece lies in what its sender holds and in what t needs; no two arrivals share an element;
//!          together they have as many elements as t needs        =>  every element arrives exactly once
//! terms    the same, but only arrivals of the same sender are disjoint, and together they have as many elements as t needs times
//!          the terms of each: since at most one of each holder arrives, every term of every element arrives exactly once
//! ```

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Distribution, Piece, Refusal, Runs, Shard};

/// What one device has after a redistribution, in elements; of a sum, in terms.
///
/// ```
/// use layout_core::devices::{Distribution, Redistribution};
/// let rows = Distribution::rows([8, 6], 2).unwrap();
/// let columns = Distribution::columns([8, 6], 2).unwrap();
/// let moved = Redistribution::derive(&rows, &columns).unwrap();
/// let first = moved.certificate().arrivals()[0];
/// assert_eq!((first.kept, first.received, first.pieces, first.needed), (12, 12, 1, 24));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arrivals {
    /// What stays with it.
    pub kept: u64,
    /// What pieces bring.
    pub received: u64,
    /// How many pieces come.
    pub pieces: usize,
    /// What it needs: its elements, times the terms of each.
    pub needed: u64,
}

/// The proof that every element of every shard arrives exactly once, and how many owners each element has.
///
/// ```
/// use layout_core::devices::{Distribution, Redistribution};
/// let terms = Distribution::terms([8, 6], 2).unwrap();
/// let rows = Distribution::rows([8, 6], 2).unwrap();
/// let moved = Redistribution::derive(&terms, &rows).unwrap();
/// assert_eq!(
///     moved.certificate().to_string(),
///     "device 0: 24 terms stay, 24 arrive in 1 piece, no term twice: all of 24 elements of 2 terms
/// device 1: 24 terms stay, 24 arrive in 1 piece, no term twice: all of 24 elements of 2 terms
/// each of 48 elements has one owner",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    arrivals: Vec<Arrivals>,
    terms: usize,
    elements: u64,
    owners: usize,
    /// Whether the owners' elements are terms of a sum.
    sum: bool,
}

impl Certificate {
    /// Checks `pieces`.
    pub(super) fn of(
        from: &Distribution,
        to: &Distribution,
        pieces: &[Piece],
    ) -> Result<Self, Refusal> {
        let same = from.extents() == to.extents() && from.devices() == to.devices();
        if !same || (to.is_sum() && !from.is_sum()) {
            return Err(Refusal::Incomparable);
        }
        let devices = from.devices();
        // A device that keeps its term of a sum has all that it needs.
        let terms = if from.is_sum() && !to.is_sum() {
            from.copies()
        } else {
            1
        };
        let mut arrivals = Vec::with_capacity(devices);
        let shards = |of: &Distribution| (0..devices).map(|d| of.shard(d)).collect();
        let (before, after): (Vec<Shard>, Vec<Shard>) = (shards(from), shards(to));
        for (number, piece) in pieces.iter().enumerate() {
            check_alone(number, piece, &before, &after)?;
            if piece.adds != from.is_sum() {
                return Err(Refusal::WrongKind { piece: number });
            }
        }
        for device in 0..devices {
            let needed = &after[device];
            let kept = needed.intersection(&before[device]);
            let (mut rows, mut columns) = (Sets::default(), Sets::default());
            let mut arrived = Vec::new();
            if !kept.is_empty() {
                let sets = (rows.number(&kept.rows), columns.number(&kept.columns));
                arrived.push((device, None, sets));
            }
            let mut received = 0_u64;
            let mut count = 0;
            for (number, piece) in pieces.iter().enumerate().filter(|(_, p)| p.to == device) {
                let sets = (
                    rows.number(&piece.shard.rows),
                    columns.number(&piece.shard.columns),
                );
                for &(source, earlier, other) in &arrived {
                    let comparable = !piece.adds || source == piece.from;
                    if comparable && rows.meet(sets.0, other.0) && columns.meet(sets.1, other.1) {
                        return Err(Refusal::Twice {
                            piece: number,
                            earlier,
                        });
                    }
                }
                received = received.saturating_add(piece.shard.elements());
                count += 1;
                arrived.push((piece.from, Some(number), sets));
            }
            let found = Arrivals {
                kept: kept.elements(),
                received,
                pieces: count,
                needed: needed.elements() * terms as u64,
            };
            let arrived = found.kept.saturating_add(received);
            // A term that stays where it is must be the whole term, and of the same sum.
            let misplaced = to.is_sum() && before[device] != *needed;
            if arrived != found.needed || misplaced {
                return Err(Refusal::Missing {
                    to: device,
                    arrived,
                    needed: found.needed,
                });
            }
            arrivals.push(found);
        }
        let [rows, columns] = to.extents();
        Ok(Self {
            arrivals,
            terms,
            elements: rows * columns,
            owners: to.copies(),
            sum: to.is_sum(),
        })
    }

    /// What each device has afterwards, by device.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &rows).unwrap();
    /// assert!(moved.certificate().arrivals().iter().all(|a| a.kept == a.needed));
    /// ```
    pub fn arrivals(&self) -> &[Arrivals] {
        &self.arrivals
    }

    /// How many devices have each element afterwards.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let all = Distribution::replicas([8, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &all).unwrap().certificate().owners(), 2);
    /// ```
    pub const fn owners(&self) -> usize {
        self.owners
    }

    /// One line a device, and one about owners.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &rows).unwrap();
    /// assert_eq!(moved.certificate().lines()[1], "device 1: 24 elements stay: all of 24");
    /// assert_eq!(moved.certificate().lines()[2], "each of 48 elements has one owner");
    /// ```
    pub fn lines(&self) -> Vec<String> {
        let what = if self.terms > 1 { "term" } else { "element" };
        let devices = self.arrivals.iter().enumerate().map(|(device, found)| {
            let Arrivals {
                kept,
                received,
                pieces,
                needed,
            } = *found;
            let came = match pieces {
                0 => String::new(),
                1 => format!(", {received} arrive in 1 piece, no {what} twice"),
                _ => format!(", {received} arrive in {pieces} pieces, no {what} twice"),
            };
            let all = match self.terms as u64 {
                1 => format!("all of {needed}"),
                terms => format!("all of {} elements of {terms} terms", needed / terms),
            };
            format!("device {device}: {kept} {what}s stay{came}: {all}")
        });
        let owners = match (self.owners, self.sum) {
            (1, _) => String::from("has one owner"),
            (owners, false) => format!("has {owners} owners"),
            (terms, true) => format!("has {terms} terms, each with one owner"),
        };
        let owners = format!("each of {} elements {owners}", self.elements);
        devices.chain([owners]).collect()
    }
}

/// The different rows, or columns, of what arrives at a device, and which of them meet, each pair compared once.
#[derive(Default)]
struct Sets<'a> {
    all: Vec<&'a Runs>,
    known: BTreeMap<(usize, usize), bool>,
}

impl<'a> Sets<'a> {
    fn number(&mut self, runs: &'a Runs) -> usize {
        if let Some(known) = self.all.iter().position(|&other| other == runs) {
            return known;
        }
        self.all.push(runs);
        self.all.len() - 1
    }

    fn meet(&mut self, a: usize, b: usize) -> bool {
        // Nothing that arrives is empty.
        let compare = || a == b || !self.all[a].intersection(self.all[b]).is_empty();
        *self
            .known
            .entry((a.min(b), a.max(b)))
            .or_insert_with(compare)
    }
}

/// Checks what can be said of a piece alone.
fn check_alone(piece: usize, it: &Piece, before: &[Shard], after: &[Shard]) -> Result<(), Refusal> {
    for device in [it.from, it.to] {
        if device >= before.len() {
            return Err(Refusal::NoDevice { piece, device });
        }
    }
    if it.from == it.to || it.shard.is_empty() {
        return Err(Refusal::Idle { piece });
    }
    if !it.shard.is_within(&before[it.from]) {
        let from = it.from;
        return Err(Refusal::NotHeld { piece, from });
    }
    if !it.shard.is_within(&after[it.to]) {
        return Err(Refusal::NotWanted { piece, to: it.to });
    }
    Ok(())
}

impl fmt::Display for Certificate {
    /// [`lines`](Self::lines), one under the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}
