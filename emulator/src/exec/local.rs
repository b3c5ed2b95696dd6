//! Local memory: the private bytes of a lane, in which the frames of its functions lie.

use super::alu::{Row32, Row64, put};
use super::mem::lanes_of;
use super::registers::Rows;
use super::warp::Warp;

/// Little-endian value of up to 8 bytes.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .enumerate()
        .fold(0, |v, (i, b)| v | u64::from(*b) << (8 * i))
}

/// Local memory of a warp. Row k has word k of every lane, as GPUs have it, so that lanes that access one offset access one row.
#[derive(Debug)]
pub(crate) struct Local {
    pub(super) rows: Rows<u32>,
    /// Rows that have been in use since the start of the block; the others are zeros.
    used: usize,
}

impl Local {
    /// Of `bytes` bytes a lane, zeros.
    pub(super) fn new(bytes: u32) -> Self {
        let used = bytes.div_ceil(4) as usize;
        Self {
            rows: Rows::new(used),
            used,
        }
    }

    /// Zeros again, of which `bytes` bytes a lane are in use.
    pub(super) fn restart(&mut self, bytes: u32) {
        self.rows.clear(0..self.used);
        self.used = 0;
        self.reserve(bytes);
    }

    /// Bytes of a lane's local memory that have been in use since the start of the block.
    pub(super) fn bytes(&self) -> u32 {
        self.used as u32 * 4
    }

    /// Makes each lane's local memory at least `bytes` large.
    pub(super) fn reserve(&mut self, bytes: u32) {
        let words = bytes.div_ceil(4) as usize;
        self.used = self.used.max(words);
        if words > self.rows.len() {
            self.rows.grow(words.next_power_of_two());
        }
    }

    /// The `BYTES` (1, 2, 4 or 8) at `offset` of `lane`, aligned to as many or to 4.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn element<const BYTES: u32>(&self, lane: usize, offset: u64) -> u64 {
        let word = |k: usize| {
            let row = self.rows.get((offset / 4) as usize + k);
            row.map_or(0, |row| u64::from(row[lane & 31]))
        };
        match BYTES {
            8 => word(0) | word(1) << 32,
            4 => word(0),
            _ => word(0) >> (8 * (offset % 4)) & (u64::MAX >> (64 - 8 * BYTES)),
        }
    }

    /// Sets it.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn set_element<const BYTES: u32>(&mut self, lane: usize, offset: u64, value: u64) {
        let mut set = |k: usize, mask: u32, value: u32| {
            if let Some(row) = self.rows.get_mut((offset / 4) as usize + k) {
                let word = &mut row[lane & 31];
                *word = (*word & !mask) | (value & mask);
            }
        };
        match BYTES {
            8 => {
                set(0, u32::MAX, value as u32);
                set(1, u32::MAX, (value >> 32) as u32);
            }
            4 => set(0, u32::MAX, value as u32),
            _ => {
                let shift = 8 * (offset % 4) as u32;
                set(
                    0,
                    (u32::MAX >> (32 - 8 * BYTES)) << shift,
                    (value as u32) << shift,
                );
            }
        }
    }

    /// The `bytes` (at most 8) at `offset` of `lane`.
    pub(super) fn load(&self, lane: usize, offset: u64, bytes: u32) -> u64 {
        match bytes {
            8 if offset.is_multiple_of(4) => self.element::<8>(lane, offset),
            4 if offset.is_multiple_of(4) => self.element::<4>(lane, offset),
            _ => (0..u64::from(bytes)).fold(0, |value, i| {
                value | self.element::<1>(lane, offset + i) << (8 * i)
            }),
        }
    }

    /// Sets the `bytes` (at most 8) at `offset` of `lane`.
    pub(super) fn store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) {
        match bytes {
            8 if offset.is_multiple_of(4) => self.set_element::<8>(lane, offset, value),
            4 if offset.is_multiple_of(4) => self.set_element::<4>(lane, offset, value),
            _ => {
                for i in 0..u64::from(bytes) {
                    self.set_element::<1>(lane, offset + i, value >> (8 * i));
                }
            }
        }
    }

    /// The `bytes` (1, 2, 4 or 8) at `offset`, aligned to as many or to 4, of all lanes.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn load_row(&self, offset: u64, bytes: u32) -> Row64 {
        let mut out = [0; 32];
        let (shift, mask) = (8 * (offset % 4) as u32, u32::MAX >> (32 - 8 * bytes.min(4)));
        if let Some(row) = self.rows.get((offset / 4) as usize) {
            for l in 0..32 {
                out[l] = u64::from(row[l] >> shift & mask);
            }
        }
        if bytes == 8
            && let Some(row) = self.rows.get((offset / 4) as usize + 1)
        {
            for l in 0..32 {
                out[l] |= u64::from(row[l]) << 32;
            }
        }
        out
    }

    /// Sets the same of the lanes `active`.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn store_row(&mut self, offset: u64, bytes: u32, value: &Row64, active: u32) {
        let (shift, mask) = (8 * (offset % 4) as u32, u32::MAX >> (32 - 8 * bytes.min(4)));
        if let Some(row) = self.rows.get_mut((offset / 4) as usize) {
            let mut new = *row;
            for l in 0..32 {
                new[l] = (new[l] & !(mask << shift)) | (value[l] as u32 & mask) << shift;
            }
            put(row, &new, active);
        }
        if bytes == 8
            && let Some(row) = self.rows.get_mut((offset / 4) as usize + 1)
        {
            let mut high = [0; 32];
            for l in 0..32 {
                high[l] = (value[l] >> 32) as u32;
            }
            put(row, &high, active);
        }
    }

    /// Copies `bytes` bytes of `lanes`, whose frames start in one place each, by whole rows; false, and nothing done, if they are no words.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn copy_rows(
        &mut self,
        lanes: u32,
        to: (&Row32, u32),
        from: (&Row32, u32),
        bytes: u32,
    ) -> bool {
        let first = lanes.trailing_zeros() as usize & 31;
        let (start, target) = (from.0[first] + from.1, to.0[first] + to.1);
        if !(start | target | bytes).is_multiple_of(4) {
            return false;
        }
        for k in 0..bytes / 4 {
            let row = self.rows.get((start / 4 + k) as usize).copied();
            if let (Some(row), Some(to)) = (row, self.rows.get_mut((target / 4 + k) as usize)) {
                put(to, &row, lanes);
            }
        }
        true
    }

    /// Copies `bytes` bytes of `lanes`, each from its frame in `from` to that in `to`, at an offset.
    pub(super) fn copy(&mut self, lanes: u32, to: (&Row32, u32), from: (&Row32, u32), bytes: u32) {
        for l in lanes_of(lanes) {
            let (from, to) = (from.0[l] + from.1, to.0[l] + to.1);
            let mut done = 0;
            while done < bytes {
                let step = if bytes - done >= 4 { 4 } else { 1 };
                let value = self.load(l, (from + done).into(), step);
                self.store(l, (to + done).into(), step, value);
                done += step;
            }
        }
    }
}

impl Warp {
    /// The `bytes` at `offset` of the local memory of `lane`, or `None` outside it.
    pub(crate) fn local_load(&self, lane: usize, offset: u64, bytes: u32) -> Option<u64> {
        self.has_local(lane, offset, bytes)
            .then(|| self.local.load(lane, offset, bytes))
    }

    /// Stores to local memory; false outside it.
    pub(crate) fn local_store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) -> bool {
        let fine = self.has_local(lane, offset, bytes);
        if fine {
            self.local.store(lane, offset, bytes, value);
        }
        fine
    }

    fn has_local(&self, lane: usize, offset: u64, bytes: u32) -> bool {
        let end = offset.checked_add(u64::from(bytes));
        end.is_some_and(|end| end <= u64::from(self.ends[lane & 31]))
    }
}
