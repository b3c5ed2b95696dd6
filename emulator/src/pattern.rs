//! Which shared bytes the lanes of an instruction access, remembered from one execution to the next.
//!
//! The next access of an instruction is mostly the same pattern moved by whole words. Then banks rotate and all else that follows from the distances
//! between lanes stays: wavefronts, the runs of neighbouring bytes that are touched, and whether lanes meet. Example: 32 lanes that load 16 bytes each,
//! eight of them from 0, 16, … 112 and the others from the same places, touch one run of 128 bytes, and the race detector looks at 32 words, not 128.

use crate::banks::{SharedAccess, Wavefronts, wavefronts};

/// Neighbouring bytes that lanes touch, from `delta` bytes after the lowest active lane's address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    delta: u32,
    /// Bytes.
    pub(crate) bytes: u32,
}

impl Run {
    /// Where it starts if the lowest active lane accesses `first`.
    #[inline(always)]
    pub(crate) fn start(self, first: u32) -> u32 {
        first.wrapping_add(self.delta)
    }
}

/// The last access of one instruction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pattern {
    addresses: [u32; 32],
    mask: u32,
    wavefronts: Wavefronts,
    runs: Vec<Run>,
    /// No two active lanes access the same bytes.
    pub(crate) distinct: bool,
    /// All 32 lanes are active, and each accesses the bytes behind those of the lane before it.
    pub(crate) consecutive: bool,
}

impl Pattern {
    /// The wavefronts of an aligned access by the lanes of `mask`; afterwards the pattern is that of this access.
    #[inline(always)]
    pub(crate) fn count(
        &mut self,
        access: SharedAccess,
        addresses: &[u32; 32],
        mask: u32,
    ) -> Wavefronts {
        if mask == 0 {
            return Wavefronts::default();
        }
        if mask == self.mask {
            let lane = mask.trailing_zeros() as usize;
            let moved = addresses[lane].wrapping_sub(self.addresses[lane]);
            let mut differ = moved & 3;
            for l in 0..32 {
                let d = addresses[l].wrapping_sub(self.addresses[l]) ^ moved;
                differ |= if (mask >> l) & 1 != 0 { d } else { 0 };
            }
            if differ == 0 {
                return self.wavefronts;
            }
        }
        self.learn(access, addresses, mask)
    }

    /// The runs of the last access, by address.
    #[inline(always)]
    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    #[inline(never)]
    fn learn(&mut self, access: SharedAccess, addresses: &[u32; 32], mask: u32) -> Wavefronts {
        let bytes = match access {
            SharedAccess::Load { bytes } | SharedAccess::Store { bytes } => bytes,
            SharedAccess::Matrix { .. } => 16,
        };
        self.addresses = *addresses;
        self.mask = mask;
        self.wavefronts = wavefronts(access, addresses, mask);
        let first = addresses[mask.trailing_zeros() as usize & 31];
        let mut sorted = *addresses;
        let mut n = 0;
        for (l, address) in addresses.iter().enumerate() {
            if mask >> l & 1 != 0 {
                sorted[n] = *address;
                n += 1;
            }
        }
        let ascending = sorted[..n].is_sorted();
        if !ascending {
            sorted[..n].sort_unstable();
        }
        self.distinct = true;
        self.runs.clear();
        for address in &sorted[..n] {
            let delta = address.wrapping_sub(first);
            match self.runs.last_mut() {
                Some(run) if address.wrapping_sub(run.start(first)) < run.bytes => {
                    self.distinct = false;
                }
                Some(run) if address.wrapping_sub(run.start(first)) == run.bytes => {
                    run.bytes += bytes;
                }
                _ => self.runs.push(Run { delta, bytes }),
            }
        }
        self.consecutive = ascending && self.distinct && self.runs.len() == 1 && n == 32;
        self.wavefronts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts, runs and the rest against the definition, for patterns that move, and change.
    #[test]
    fn what_is_remembered_is_what_would_be_found() {
        let mut state = 11u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            (state >> 16) % n
        };
        for _ in 0..2000 {
            let bytes = 1 << below(5);
            let (stride, mask) = (
                below(9),
                [u32::MAX, below(65536) << below(16) | 1][below(2) as usize],
            );
            let base: [u32; 32] = std::array::from_fn(|l| match stride {
                8 => below(64) * bytes,
                s => (l as u32 >> (s & 1)) * s * bytes,
            });
            let access = if below(2) == 0 {
                SharedAccess::Load { bytes }
            } else {
                SharedAccess::Store { bytes }
            };
            let mut pattern = Pattern::default();
            for _ in 0..4 {
                let moved = below(40) * bytes;
                let at = base.map(|a| a + moved);
                assert_eq!(
                    pattern.count(access, &at, mask),
                    wavefronts(access, &at, mask)
                );
                let lanes = || (0..32).filter(|l| mask >> l & 1 != 0).map(|l| at[l]);
                let first = lanes().next().unwrap_or(0);
                let mut expected: Vec<u32> = lanes().flat_map(|a| a..a + bytes).collect();
                let all = expected.len();
                expected.sort_unstable();
                expected.dedup();
                let bytes_of = |r: &Run| r.start(first)..r.start(first) + r.bytes;
                let found: Vec<u32> = pattern.runs().iter().flat_map(bytes_of).collect();
                assert_eq!(found, expected);
                assert_eq!(pattern.distinct, all == expected.len());
                let next = (1..32).all(|l| at[l] == at[l - 1] + bytes);
                assert_eq!(pattern.consecutive, mask == u32::MAX && next);
            }
        }
    }
}
