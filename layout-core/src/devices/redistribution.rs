//! What moves between devices when a matrix is to be distributed otherwise.
//!
//! Both distributions give each device a product of rows and columns. Devices with the same rows and columns before are *holders*
//! of one part; parts are disjoint and cover the matrix, as [`Distribution`] proves. So what device `t` needs of a part is the
//! intersection of the part with `t`'s shard afterwards, and it comes from one of the part's holders:
//!
//! ```text
//! copies   t itself if it is a holder, else the first one after t in rotation      one piece at most
//! terms    every holder, t itself included                                          copies() - 1 or copies() pieces, to be added
//! ```
//!
//! With p copies on both sides nothing moves; the rotation spreads what moves over the holders. All pieces are independent and in one step: an
//! all-reduce by them has each device read the terms of all others. Where that is too much, reduce-scatter and then
//! all-gather: two redistributions with [`Distribution::rows`] between them.

use alloc::vec;
use alloc::vec::Vec;

use super::axis::Axis;
use super::{Certificate, Distribution, DistributionError, Movement, Refusal, Runs, Shard};

/// What moves from one device to another.
///
/// ```
/// use layout_core::devices::{Distribution, Redistribution};
/// let terms = Distribution::terms([8, 6], 2).unwrap();
/// let rows = Distribution::rows([8, 6], 2).unwrap();
/// let moved = Redistribution::derive(&terms, &rows).unwrap();
/// let piece = &moved.pieces()[0];
/// assert_eq!((piece.from, piece.to, piece.adds), (1, 0, true));
/// assert_eq!(piece.shard, rows.shard(0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The device that holds it.
    pub from: usize,
    /// The device that needs it.
    pub to: usize,
    /// The elements.
    pub shard: Shard,
    /// Whether these are terms, which the receiver adds to its own, or to zero if it has none.
    pub adds: bool,
}

/// What moves between devices from one distribution of a matrix to another.
///
/// ```
/// use layout_core::devices::{Distribution, Movement, Redistribution};
/// let rows = Distribution::rows([8192, 4096], 4).unwrap();
/// let all = Distribution::replicas([8192, 4096], 4).unwrap();
/// let moved = Redistribution::derive(&rows, &all).unwrap();
/// assert_eq!(moved.movement(), Movement::AllGather);
/// assert_eq!(moved.busiest_link(), 2048 * 4096);
/// assert_eq!(moved.total(), 12 * 2048 * 4096);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redistribution {
    from: Distribution,
    to: Distribution,
    movement: Movement,
    pieces: Vec<Piece>,
    kept: Vec<Shard>,
    /// Elements that each link carries, `from + devices·to`.
    links: Vec<u64>,
    certificate: Certificate,
}

impl Redistribution {
    /// What moves from `from` to `to`.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let all = Distribution::replicas([8, 6], 2).unwrap();
    /// let columns = Distribution::columns([8, 6], 2).unwrap();
    /// assert!(Redistribution::derive(&all, &columns).unwrap().pieces().is_empty());
    /// // Terms are made by products, not by copies.
    /// let error = Redistribution::derive(&all, &all.summed()).unwrap_err();
    /// assert_eq!(error.code(), "new_terms");
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributionError::DifferentExtents`], [`DistributionError::DifferentDevices`]; [`DistributionError::NewTerms`] if terms of a sum are wanted
    /// of copies, or in other places than they are.
    pub fn derive(from: &Distribution, to: &Distribution) -> Result<Self, DistributionError> {
        comparable(from, to)?;
        let pieces = if to.is_sum() {
            // Each device keeps its term.
            Vec::new()
        } else {
            pieces(from, to)
        };
        let certificate =
            Self::check(from, to, &pieces).map_err(|refusal| match (refusal, to.is_sum()) {
                (_, true) => DistributionError::NewTerms {
                    from_sum: from.is_sum(),
                },
                (refusal, false) => DistributionError::Refused(refusal),
            })?;
        let devices = from.devices();
        let mut links = vec![0; devices * devices];
        for piece in &pieces {
            links[piece.from + devices * piece.to] += piece.shard.elements();
        }
        Ok(Self {
            from: *from,
            to: *to,
            movement: Movement::of(from, to, &pieces),
            kept: kept(from, to),
            pieces,
            links,
            certificate,
        })
    }

    /// Checks that `pieces`, with what devices keep, lead from `from` to `to`: whoever sends holds what it sends, and every
    /// element of every shard afterwards arrives exactly once or, of a sum, every term of it. It knows nothing of how pieces were derived.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution, Refusal};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let columns = Distribution::columns([8, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &columns).unwrap();
    /// let mut pieces = moved.pieces().to_vec();
    /// assert!(Redistribution::check(&rows, &columns, &pieces).is_ok());
    /// pieces.push(pieces[0].clone());
    /// let refusal = Redistribution::check(&rows, &columns, &pieces).unwrap_err();
    /// assert_eq!(refusal, Refusal::Twice { piece: 2, earlier: Some(0) });
    /// ```
    ///
    /// # Errors
    ///
    /// [`Refusal`], with the piece or the device that refutes it.
    pub fn check(
        from: &Distribution,
        to: &Distribution,
        pieces: &[Piece],
    ) -> Result<Certificate, Refusal> {
        Certificate::of(from, to, pieces)
    }

    /// The distribution before.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &rows).unwrap().from(), &rows);
    /// ```
    pub const fn from(&self) -> &Distribution {
        &self.from
    }

    /// The distribution after.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &rows).unwrap().to(), &rows);
    /// ```
    pub const fn to(&self) -> &Distribution {
        &self.to
    }

    /// The kind of the movement.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Movement, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &rows).unwrap().movement(), Movement::Nothing);
    /// ```
    pub const fn movement(&self) -> Movement {
        self.movement
    }

    /// What moves between different devices, sorted by receiver, then by sender.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([9, 6], 3).unwrap();
    /// let all = Distribution::replicas([9, 6], 3).unwrap();
    /// let moved = Redistribution::derive(&rows, &all).unwrap();
    /// let links: Vec<_> = moved.pieces().iter().map(|p| (p.from, p.to)).collect();
    /// assert_eq!(links, [(1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2)]);
    /// ```
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// What each device has before and needs afterwards, so that it stays.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let columns = Distribution::columns([8, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &columns).unwrap();
    /// assert_eq!(moved.kept()[1].to_string(), "rows 4..8, columns 3..6");
    /// ```
    pub fn kept(&self) -> &[Shard] {
        &self.kept
    }

    /// Elements that go from device `from` to device `to`; multiply by the element's width for bytes.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([7, 6], 2).unwrap();
    /// let all = Distribution::replicas([7, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &all).unwrap();
    /// assert_eq!((moved.link_elements(0, 1), moved.link_elements(1, 0)), (4 * 6, 3 * 6));
    /// ```
    pub fn link_elements(&self, from: usize, to: usize) -> u64 {
        let devices = self.from.devices();
        if from >= devices || to >= devices {
            return 0;
        }
        self.links[from + devices * to]
    }

    /// The most elements that go from one device to another.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([7, 6], 2).unwrap();
    /// let all = Distribution::replicas([7, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &all).unwrap().busiest_link(), 24);
    /// ```
    pub fn busiest_link(&self) -> u64 {
        self.links.iter().copied().max().unwrap_or(0)
    }

    /// Elements that move in all.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([7, 6], 2).unwrap();
    /// let all = Distribution::replicas([7, 6], 2).unwrap();
    /// assert_eq!(Redistribution::derive(&rows, &all).unwrap().total(), 42);
    /// ```
    pub fn total(&self) -> u64 {
        self.links.iter().sum()
    }

    /// The proof that everything arrives exactly once, as counts and as text.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let rows = Distribution::rows([7, 6], 2).unwrap();
    /// let all = Distribution::replicas([7, 6], 2).unwrap();
    /// let moved = Redistribution::derive(&rows, &all).unwrap();
    /// assert_eq!(
    ///     moved.certificate().lines()[0],
    ///     "device 0: 24 elements stay, 18 arrive in 1 piece, no element twice: all of 42",
    /// );
    /// ```
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }
}

/// Refuses pairs of distributions between which nothing can be derived.
fn comparable(from: &Distribution, to: &Distribution) -> Result<(), DistributionError> {
    if from.extents() != to.extents() {
        return Err(DistributionError::DifferentExtents {
            from: from.extents(),
            to: to.extents(),
        });
    }
    if from.devices() != to.devices() {
        return Err(DistributionError::DifferentDevices {
            from: from.devices(),
            to: to.devices(),
        });
    }
    if to.is_sum() && !from.is_sum() {
        return Err(DistributionError::NewTerms { from_sum: false });
    }
    Ok(())
}

/// What each device has before and needs afterwards.
fn kept(from: &Distribution, to: &Distribution) -> Vec<Shard> {
    let stays = |device| from.shard(device).intersection(&to.shard(device));
    (0..from.devices()).map(stays).collect()
}

/// One axis of a distribution: the different sets of rows or columns that devices have, and which set each device has.
struct Parts {
    runs: Vec<Runs>,
    /// By device; `None` for a device outside the matrix.
    part: Vec<Option<usize>>,
}

impl Parts {
    fn of(axis: &Axis, extent: u64, devices: usize) -> Self {
        let mut offsets: Vec<u64> = Vec::new();
        let mut part = Vec::with_capacity(devices);
        for device in 0..devices {
            let offset = axis.offset(device);
            part.push(if offset >= extent {
                None
            } else if let Some(known) = offsets.iter().position(|&o| o == offset) {
                Some(known)
            } else {
                offsets.push(offset);
                Some(offsets.len() - 1)
            });
        }
        let runs = offsets.iter().map(|&offset| axis.runs(offset)).collect();
        Self { runs, part }
    }

    /// What each part shares with each part of `other`, `[own][other]`.
    fn shared(&self, other: &Self) -> Vec<Vec<Runs>> {
        let with = |own: &Runs| other.runs.iter().map(|o| own.intersection(o)).collect();
        self.runs.iter().map(with).collect()
    }
}

/// All pieces, sorted by receiver, then by sender.
fn pieces(from: &Distribution, to: &Distribution) -> Vec<Piece> {
    let devices = from.devices();
    let parts =
        |of: &Distribution, number| Parts::of(&of.axis(number), of.extents()[number], devices);
    let before = [parts(from, 0), parts(from, 1)];
    let after = [parts(to, 0), parts(to, 1)];
    let shared = [before[0].shared(&after[0]), before[1].shared(&after[1])];
    // The parts before, as (rows, columns), with their holders in increasing order.
    let mut held: Vec<([usize; 2], Vec<usize>)> = Vec::new();
    for device in 0..devices {
        let (Some(rows), Some(columns)) = (before[0].part[device], before[1].part[device]) else {
            continue;
        };
        match held.iter_mut().find(|(part, _)| *part == [rows, columns]) {
            Some((_, holders)) => holders.push(device),
            None => held.push(([rows, columns], vec![device])),
        }
    }
    let mut all = Vec::new();
    for target in 0..devices {
        let (Some(rows), Some(columns)) = (after[0].part[target], after[1].part[target]) else {
            continue;
        };
        let first = all.len();
        for (part, holders) in &held {
            let shard = Shard::new(
                shared[0][part[0]][rows].clone(),
                shared[1][part[1]][columns].clone(),
            );
            if shard.is_empty() {
                continue;
            }
            let adds = from.is_sum();
            let piece = |source| Piece {
                from: source,
                to: target,
                shard: shard.clone(),
                adds,
            };
            let distance = |source: &usize| (source + devices - target) % devices;
            if adds {
                let others = holders.iter().filter(|&&source| source != target);
                all.extend(others.map(|&source| piece(source)));
            } else if let Some(&nearest) = holders.iter().min_by_key(|&source| distance(source))
                && nearest != target
            {
                all.push(piece(nearest));
            }
        }
        all[first..].sort_by_key(|piece| piece.from);
    }
    all
}
