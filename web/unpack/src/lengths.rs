//! The lengths of copies.

use crate::range::{EVEN, Range};

/// The probabilities of lengths: 2 to 9, 10 to 17 and 18 to 273 have a tree each.
pub(crate) struct Lengths {
    is_medium: u16,
    is_long: u16,
    short: [u16; 8],
    medium: [u16; 8],
    long: [u16; 256],
}

impl Lengths {
    /// The shortest copy.
    pub(crate) const LEAST: usize = 2;

    pub(crate) fn new() -> Self {
        Self {
            is_medium: EVEN,
            is_long: EVEN,
            short: [EVEN; 8],
            medium: [EVEN; 8],
            long: [EVEN; 256],
        }
    }

    pub(crate) fn read(&mut self, range: &mut Range) -> usize {
        Self::LEAST
            + if !range.bit(&mut self.is_medium) {
                range.tree(&mut self.short)
            } else if !range.bit(&mut self.is_long) {
                8 + range.tree(&mut self.medium)
            } else {
                16 + range.tree(&mut self.long)
            }
    }
}
