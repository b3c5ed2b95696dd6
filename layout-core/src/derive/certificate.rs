//! The certificate of a derived layout: the families examined, the lower bound, and the worst conflict.
//!
//! A certificate is data; its `Display` is the sentence that reports print. For example:
//! `conflict-free: 8 wavefronts are the least that 8 phases take; swizzle: 19 examined, best 8; the counts hold for every translation
//! within the tile`.

use core::fmt;

use crate::banks::{Access, LANES, Wavefronts};

use super::{Family, Pattern, Tile};

/// Units of the largest witness: one more than the banks.
pub(super) const MAX_WITNESS: usize = 33;

/// The search of one family.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let derived = derive(tile, &[column], Family::Padded).unwrap();
/// let examined = derived.certificate.examined().next().unwrap();
/// assert_eq!((examined.family, examined.best), (Family::Padded, Some(1)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Examined {
    /// The family.
    pub family: Family,
    /// Candidates enumerated, or nodes searched.
    pub count: u64,
    /// The least total found (below the best of earlier families, for a search).
    pub best: Option<u32>,
    /// Whether all of the family was covered, or its ideal reached.
    pub finished: bool,
    /// Whether `count` counts nodes of a search.
    pub nodes: bool,
}

/// A clique: elements of which any two are read in one phase of some access, more than there are bank groups.
///
/// ```
/// use layout_core::{Layout, derive::{Family, Pattern, Tile, derive}};
/// // 32 chunks of 16 bytes. Each access reads, in one phase, 8 chunks that differ in three of the five index bits.
/// let patterns: Vec<Pattern> = (0..32u32)
///     .filter(|chosen| chosen.count_ones() == 3)
///     .map(|chosen| {
///         let bits = |of: u32| (0..5).filter(move |i| of >> i & 1 == 1).map(|i| 8i64 << i);
///         let strides: Vec<i64> = bits(chosen).chain(bits(!chosen)).collect();
///         let lanes = Layout::flat(&[2; 5], &strides).unwrap();
///         Pattern::from_layout("ldmatrix.x4".parse().unwrap(), &lanes).unwrap()
///     })
///     .collect();
/// let tile = Tile { rows: 4, cols: 64, elem_bytes: 2 };
/// let witness = derive(tile, &patterns, Family::Any).unwrap().certificate.witness.unwrap();
/// assert_eq!((witness.elements().len(), witness.groups), (9, 8));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    pub(super) elements: [(u32, u32); MAX_WITNESS],
    pub(super) len: usize,
    /// Bank groups: 128 bytes over the unit.
    pub groups: u32,
    /// Bytes of a unit.
    pub unit_bytes: u32,
}

impl Witness {
    /// (row, column) of the first element of each unit.
    ///
    /// ```
    /// // `witness` as in the example of `Witness`.
    /// # use layout_core::{Layout, derive::{Family, Pattern, Tile, derive}};
    /// # let patterns: Vec<Pattern> = (0..32u32)
    /// #     .filter(|chosen| chosen.count_ones() == 3)
    /// #     .map(|chosen| {
    /// #         let bits = |of: u32| (0..5).filter(move |i| of >> i & 1 == 1).map(|i| 8i64 << i);
    /// #         let strides: Vec<i64> = bits(chosen).chain(bits(!chosen)).collect();
    /// #         let lanes = Layout::flat(&[2; 5], &strides).unwrap();
    /// #         Pattern::from_layout("ldmatrix.x4".parse().unwrap(), &lanes).unwrap()
    /// #     })
    /// #     .collect();
    /// # let tile = Tile { rows: 4, cols: 64, elem_bytes: 2 };
    /// # let witness = derive(tile, &patterns, Family::Any).unwrap().certificate.witness.unwrap();
    /// let elements = witness.elements();
    /// assert!(elements.iter().all(|(row, column)| *row < 4 && column % 8 == 0));
    /// assert_eq!(elements.len(), 9);
    /// ```
    pub fn elements(&self) -> &[(u32, u32)] {
        &self.elements[..self.len]
    }
}

/// The worst phase of the derived layout.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// // TMA's widest swizzle moves chunks of 16 bytes: a column of f32 keeps conflicts.
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let derived = derive(tile, &[column], Family::Tma).unwrap();
/// let conflict = derived.certificate.conflict.unwrap();
/// assert_eq!((conflict.access, conflict.lanes), (Access::Ld32, (0, 8)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Which pattern.
    pub pattern: usize,
    /// Its access.
    pub access: Access,
    /// The phase.
    pub phase: usize,
    /// Two lanes of it that need different words of one bank.
    pub lanes: (usize, usize),
    /// The bank.
    pub bank: u32,
    /// (row, column) of the lanes' elements.
    pub elements: [(i64, i64); 2],
}

impl Conflict {
    pub(super) fn of(
        tile: Tile,
        number: usize,
        pattern: &Pattern,
        addresses: &[i64; LANES],
        count: &Wavefronts,
    ) -> Option<Self> {
        let (phase, worst) = count.worst()?;
        let unit = i64::from(pattern.access.bytes().max(4));
        let first = worst.offenders.trailing_zeros() as usize;
        let second = (first..LANES).find(|&lane| {
            worst.offenders >> lane & 1 == 1 && addresses[lane] / unit != addresses[first] / unit
        })?;
        let place = |lane: usize| {
            let element = pattern.elements[lane];
            (element / tile.cols, element % tile.cols)
        };
        Some(Self {
            pattern: number,
            access: pattern.access,
            phase,
            lanes: (first, second),
            bank: worst.bank,
            elements: [place(first), place(second)],
        })
    }
}

/// The argument that the layout is the best.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let certificate = derive(tile, &[column], Family::Any).unwrap().certificate;
/// assert_eq!(certificate.ideal, 1);
/// assert!(certificate.to_string().starts_with("conflict-free"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Certificate {
    tile: Tile,
    /// Total wavefronts without any conflict.
    pub ideal: u32,
    examined: [Option<Examined>; 6],
    /// A clique that rules out every conflict-free layout.
    pub witness: Option<Witness>,
    /// The worst phase of the layout, if any phase conflicts.
    pub conflict: Option<Conflict>,
    /// Whether the counts hold for every translation within the tile, not only for those that do not carry into the pattern's bits.
    pub every_translation: bool,
    /// Whether the counts hold only where the accesses are given: a rotation may cost another number elsewhere in the tile.
    pub only_as_given: bool,
    /// With [`only_as_given`](Self::only_as_given), the most wavefronts that the accesses take together anywhere in the tile, if that was
    /// not too much to try.
    pub worst_translated: Option<u32>,
    /// Whether the total is the least over all F2-linear layouts (that keep 4-byte words whole).
    pub linear_optimum: bool,
    /// The bound for every layout: [`Derivation::least`](super::Derivation::least).
    pub(super) least: u32,
}

impl Certificate {
    pub(super) const fn new(tile: Tile, ideal: u32) -> Self {
        Self {
            tile,
            ideal,
            examined: [None; 6],
            witness: None,
            conflict: None,
            every_translation: false,
            only_as_given: false,
            worst_translated: None,
            linear_optimum: false,
            least: ideal,
        }
    }

    pub(super) fn record(&mut self, examined: Examined) {
        if let Some(slot) = self.examined.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(examined);
        }
    }

    /// The families examined, in order.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
    /// let certificate = derive(tile, &[column], Family::Any).unwrap().certificate;
    /// // The first family is conflict-free, so that no other was searched.
    /// assert!(certificate.examined().map(|e| e.family).eq([Family::Swizzle]));
    /// ```
    pub fn examined(&self) -> impl Iterator<Item = Examined> + '_ {
        self.examined.iter().flatten().copied()
    }

    /// Whether each family that was examined was covered wholly, or its bound reached.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
    /// assert!(derive(tile, &[column], Family::Tma).unwrap().certificate.finished());
    /// ```
    pub fn finished(&self) -> bool {
        self.examined().all(|e| e.finished)
    }

    /// The least total found in any family.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
    /// let best = |family| derive(tile, &[column], family).unwrap().certificate.best();
    /// assert_eq!((best(Family::Swizzle), best(Family::Tma)), (Some(1), Some(4)));
    /// ```
    pub fn best(&self) -> Option<u32> {
        self.examined().filter_map(|e| e.best).min()
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = self.best().unwrap_or(self.ideal);
        if best == self.ideal {
            write!(
                f,
                "conflict-free: {best} wavefronts are the least that its phases take"
            )?;
        } else {
            write!(f, "{best} wavefronts, {} without conflicts", self.ideal)?;
        }
        for e in self.examined() {
            write!(f, "; {}: {} ", e.family.name(), e.count)?;
            f.write_str(if e.nodes {
                "nodes searched"
            } else {
                "examined"
            })?;
            match e.best {
                Some(best) => write!(f, ", best {best}")?,
                None => f.write_str(", nothing better")?,
            }
            if !e.finished {
                f.write_str(" (stopped at the limit)")?;
            }
        }
        if self.linear_optimum {
            f.write_str("; the F2 search is exhaustive: no xor-linear layout that keeps 4-byte words whole does better")?;
        }
        if self.least > self.ideal {
            write!(
                f,
                "; every layout in which aligned vectors of the widest access stay together takes at least {}",
                self.least
            )?;
        }
        if best > self.least {
            f.write_str(
                "; no better layout is in the families examined; of other layouts only the bound ",
            )?;
            write!(f, "{} is known", self.least)?;
        }
        if let Some(witness) = &self.witness {
            write!(
                f,
                "; no layout at all is conflict-free: {} units of {} bytes are pairwise asked for together by some translation of an access, and there are {} bank groups (row,column):",
                witness.len, witness.unit_bytes, witness.groups
            )?;
            for (row, col) in witness.elements() {
                write!(f, " ({row},{col})")?;
            }
        }
        if let Some(c) = &self.conflict {
            let [a, b] = c.elements;
            write!(
                f,
                "; access {} ({}): lanes {} and {} of phase {} both need bank {} (row {} column {}, row {} column {})",
                c.pattern, c.access, c.lanes.0, c.lanes.1, c.phase, c.bank, a.0, a.1, b.0, b.1
            )?;
        }
        if self.only_as_given {
            f.write_str("; the counts hold where the accesses are given")?;
            return match self.worst_translated {
                Some(worst) => write!(
                    f,
                    ": elsewhere in the tile the accesses take up to {worst} together"
                ),
                None => f.write_str(", and were not tried elsewhere in the tile"),
            };
        }
        f.write_str(if self.every_translation {
            "; the counts hold for every translation within the tile"
        } else {
            "; the counts hold for every translation that does not carry into the pattern's bits"
        })
    }
}
