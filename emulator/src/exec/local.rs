//! Local and parameter memory: private bytes of a lane, and the launch's constant block.

use super::warp::Warp;

/// Little-endian value of up to 8 bytes.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .enumerate()
        .fold(0, |v, (i, b)| v | u64::from(*b) << (8 * i))
}

/// The `N` bytes at `start`, if they are there.
#[inline(always)]
pub(super) fn chunk<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// Sets the `N` bytes at `start`, if they are there.
#[inline(always)]
pub(super) fn set_chunk<const N: usize>(bytes: &mut [u8], start: usize, value: [u8; N]) {
    let place = bytes.get_mut(start..).and_then(|s| s.first_chunk_mut());
    if let Some(place) = place {
        *place = value;
    }
}

impl Warp {
    /// The `bytes` at `offset` of the local memory of `lane`, or `None` outside it.
    pub(crate) fn local_load(&self, lane: usize, offset: u64, bytes: u32) -> Option<u64> {
        self.local_range(lane, offset, bytes)
            .map(|r| little(&self.local[r]))
    }

    /// Stores to local memory; false outside it.
    pub(crate) fn local_store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) -> bool {
        let Some(range) = self.local_range(lane, offset, bytes) else {
            return false;
        };
        let n = range.len();
        self.local[range].copy_from_slice(&value.to_le_bytes()[..n]);
        true
    }

    fn local_range(&self, lane: usize, offset: u64, bytes: u32) -> Option<std::ops::Range<usize>> {
        let size = self.local.len() / 32;
        let end = offset.checked_add(u64::from(bytes))?;
        if end > u64::from(self.frames[lane & 31].1) {
            return None;
        }
        let start = lane * size + offset as usize;
        Some(start..start + bytes as usize)
    }

    /// Makes each lane's local memory at least `bytes` large.
    pub(crate) fn reserve_local(&mut self, bytes: u32) {
        let old = self.local.len() / 32;
        if bytes as usize <= old {
            return;
        }
        // Not a power of two: the same place of all lanes would be in one set of the cache.
        let new = (bytes as usize).next_power_of_two() + 64;
        let mut grown = vec![0; new * 32];
        if old > 0 {
            for (to, from) in grown.chunks_mut(new).zip(self.local.chunks(old)) {
                to[..old].copy_from_slice(from);
            }
        }
        self.local = grown;
    }
}
