//! What one device holds: some rows of some columns.

use core::fmt;
use core::ops::Range;

use super::Runs;

/// The elements in all of `rows` and all of `columns`: what a device holds of a matrix, or what moves between two devices.
///
/// ```
/// use layout_core::devices::Distribution;
/// let grid = Distribution::grid([8, 6], [2, 2]).unwrap();
/// assert_eq!(grid.shard(3).to_string(), "rows 4..8, columns 3..6");
/// assert_eq!(grid.shard(3).elements(), 12);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shard {
    /// The rows.
    pub rows: Runs,
    /// The columns.
    pub columns: Runs,
}

impl Shard {
    /// The elements in all of `rows` and `columns`; of an empty shard both are empty.
    ///
    /// ```
    /// use layout_core::devices::{Runs, Shard};
    /// assert_eq!(Shard::new(Runs::from(2..4), Runs::default()), Shard::default());
    /// ```
    pub fn new(rows: Runs, columns: Runs) -> Self {
        if rows.is_empty() || columns.is_empty() {
            return Self::default();
        }
        Self { rows, columns }
    }

    /// How many elements it has.
    ///
    /// ```
    /// use layout_core::devices::{Runs, Shard};
    /// assert_eq!(Shard::new(Runs::from(2..4), Runs::from(0..8)).elements(), 16);
    /// ```
    pub fn elements(&self) -> u64 {
        // Saturates only for runs that no distribution has.
        self.rows.indices().saturating_mul(self.columns.indices())
    }

    /// Whether it has no element.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// // 3 rows on 4 devices.
    /// assert!(Distribution::rows([3, 8], 4).unwrap().shard(3).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The shard as one rectangle, if its rows and its columns are one range each or it is empty.
    ///
    /// ```
    /// use layout_core::{CoordLayout, devices::Distribution};
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// assert_eq!(rows.shard(1).block().unwrap().rows, 4..8);
    /// let cyclic = CoordLayout::parse("(2,(4,6)):(1@0,(2@0,1@1))").unwrap();
    /// assert_eq!(Distribution::new([8, 6], cyclic).unwrap().shard(1).block(), None);
    /// ```
    pub fn block(&self) -> Option<Block> {
        Some(Block {
            rows: self.rows.as_range()?,
            columns: self.columns.as_range()?,
        })
    }

    /// What both have.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// let columns = Distribution::columns([8, 6], 2).unwrap();
    /// assert_eq!(rows.shard(0).intersection(&columns.shard(1)).to_string(), "rows 0..4, columns 3..6");
    /// ```
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::new(
            self.rows.intersection(&other.rows),
            self.columns.intersection(&other.columns),
        )
    }

    /// Whether `other` has every element of this shard.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let (rows, all) = (Distribution::rows([8, 6], 2).unwrap(), Distribution::replicas([8, 6], 2).unwrap());
    /// assert!(rows.shard(1).is_within(&all.shard(0)));
    /// ```
    pub fn is_within(&self, other: &Self) -> bool {
        self.is_empty()
            || (self.rows.is_within(&other.rows) && self.columns.is_within(&other.columns))
    }

    /// Whether the element in `row` and `column` is one of it.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert!(Distribution::rows([8, 6], 2).unwrap().shard(1).contains(5, 0));
    /// ```
    pub fn contains(&self, row: u64, column: u64) -> bool {
        self.rows.contains(row) && self.columns.contains(column)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        write!(f, "rows {}, columns {}", self.rows, self.columns)
    }
}

/// A rectangle of a matrix: what one two-dimensional copy moves.
///
/// ```
/// use layout_core::devices::Distribution;
/// let block = Distribution::columns([8, 6], 2).unwrap().shard(1).block().unwrap();
/// assert_eq!((block.rows.clone(), block.columns.clone(), block.elements()), (0..8, 3..6, 24));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// The rows.
    pub rows: Range<u64>,
    /// The columns.
    pub columns: Range<u64>,
}

impl Block {
    /// How many elements it has.
    ///
    /// ```
    /// use layout_core::devices::Block;
    /// assert_eq!(Block { rows: 2..4, columns: 0..8 }.elements(), 16);
    /// ```
    pub fn elements(&self) -> u64 {
        let length = |range: &Range<u64>| range.end.saturating_sub(range.start);
        length(&self.rows).saturating_mul(length(&self.columns))
    }
}
