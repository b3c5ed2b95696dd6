//! Sorted disjoint ranges of one axis.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The rows or the columns of a shard: sorted ranges that neither overlap nor touch.
///
/// A block of rows is one run; every second row of 8 is four. The ranges are shared, so that a clone is cheap.
///
/// ```
/// use layout_core::devices::Runs;
/// let runs: Runs = [6..8, 0..2, 2..3].into_iter().collect();
/// assert_eq!(runs.to_string(), "0..3, 6..8");
/// assert_eq!((runs.len(), runs.indices()), (2, 5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs(Arc<[Range<u64>]>);

impl Runs {
    /// Ranges that are sorted and do not touch.
    pub(super) fn sorted(ranges: Vec<Range<u64>>) -> Self {
        debug_assert!(ranges.iter().all(|r| r.start < r.end));
        debug_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
        Self(ranges.into())
    }

    /// How many ranges there are.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// assert_eq!(Runs::from(0..8).len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no ranges.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// assert!(Runs::from(3..3).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many rows or columns the ranges have together.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// assert_eq!(Runs::from(2..8).indices(), 6);
    /// ```
    pub fn indices(&self) -> u64 {
        self.iter().map(|run| run.end - run.start).sum()
    }

    /// The ranges in increasing order.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// let runs: Runs = [0..2, 4..6].into_iter().collect();
    /// assert_eq!(runs.iter().map(|run| run.start).collect::<Vec<_>>(), [0, 4]);
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<u64>> + DoubleEndedIterator + '_ {
        self.0.iter().cloned()
    }

    /// The range if there is one, `0..0` if there are none, `None` if there are several.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// assert_eq!(Runs::from(2..8).as_range(), Some(2..8));
    /// assert_eq!(Runs::default().as_range(), Some(0..0));
    /// assert_eq!([0..2, 4..6].into_iter().collect::<Runs>().as_range(), None);
    /// ```
    pub fn as_range(&self) -> Option<Range<u64>> {
        match &*self.0 {
            [] => Some(0..0),
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// Whether row or column `index` is in one of the ranges.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// let runs: Runs = [0..2, 4..6].into_iter().collect();
    /// assert!(runs.contains(5) && !runs.contains(2));
    /// ```
    pub fn contains(&self, index: u64) -> bool {
        let after = self.0.partition_point(|run| run.end <= index);
        self.0.get(after).is_some_and(|run| run.start <= index)
    }

    /// What both have.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// let even: Runs = (0..4).map(|i| 4 * i..4 * i + 2).collect();
    /// assert_eq!(even.intersection(&Runs::from(1..6)).to_string(), "1, 4..6");
    /// ```
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let (start, end) = (a.start.max(b.start), a.end.min(b.end));
            if start < end {
                both.push(start..end);
            }
            if a.end <= b.end {
                left.next();
            } else {
                right.next();
            }
        }
        Self::sorted(both)
    }

    /// Whether `other` has everything that this one has.
    ///
    /// ```
    /// use layout_core::devices::Runs;
    /// assert!(Runs::from(2..4).is_within(&Runs::from(0..4)));
    /// assert!(!Runs::from(2..5).is_within(&Runs::from(0..4)));
    /// ```
    pub fn is_within(&self, other: &Self) -> bool {
        if self.0.is_empty() || self == other {
            return true;
        }
        // A run is connected and the other's runs do not touch: each must lie in one of them, which are passed in order.
        let mut rest = &other.0[..];
        self.iter().all(|run| {
            let near = rest.iter().take(4).position(|o| o.end > run.start);
            let at = near.unwrap_or_else(|| rest.partition_point(|o| o.end <= run.start));
            rest = &rest[at..];
            let around = rest.first();
            around.is_some_and(|o| o.start <= run.start && run.end <= o.end)
        })
    }
}

impl From<Range<u64>> for Runs {
    fn from(range: Range<u64>) -> Self {
        [range].into_iter().collect()
    }
}

/// The union of any ranges.
impl FromIterator<Range<u64>> for Runs {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut all: Vec<_> = ranges.into_iter().filter(|r| r.start < r.end).collect();
        all.sort_by_key(|run| run.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(all.len());
        for run in all {
            match merged.last_mut() {
                Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
                _ => merged.push(run),
            }
        }
        Self::sorted(merged)
    }
}

impl fmt::Display for Runs {
    /// All ranges, of more than 8 the first 3 and the last: `0..2, 4..6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.len();
        for (i, run) in self.iter().enumerate() {
            if count > 8 && (3..count - 1).contains(&i) {
                if i == 3 {
                    write!(f, ", … ({} more)", count - 4)?;
                }
                continue;
            }
            if i > 0 {
                f.write_str(", ")?;
            }
            if run.end == run.start + 1 {
                write!(f, "{}", run.start)?;
            } else {
                write!(f, "{}..{}", run.start, run.end)?;
            }
        }
        if count == 0 {
            f.write_str("none")?;
        }
        Ok(())
    }
}
