//! What a driver on the emulator needs of its memory: allocations that the host shares, and copies that keep what is known of the bytes.

use std::sync::atomic::AtomicU32;

use super::{Allocation, GlobalMemory, Words};
use crate::error::MemoryError;

impl GlobalMemory {
    /// Makes memory of the host's an allocation at its own address, so that host and kernels reach the same bytes by the same pointer. All of it counts as written.
    /// [`GlobalMemory::free`] ends it.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// static WORDS: [AtomicU32; 2] = [AtomicU32::new(1), AtomicU32::new(2)];
    /// let mut memory = ptx_emulator::GlobalMemory::new();
    /// let pointer = memory.map(&WORDS)?;
    /// assert_eq!(pointer, WORDS.as_ptr().addr() as u64);
    /// memory.write(pointer + 4, &[7, 0, 0, 0])?;
    /// assert_eq!(WORDS[1].load(Ordering::Relaxed), 7);
    /// # Ok::<(), ptx_emulator::MemoryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] if another allocation lies there.
    pub fn map(&mut self, words: &'static [AtomicU32]) -> Result<u64, MemoryError> {
        let (base, len) = (words.as_ptr().addr() as u64, 4 * words.len() as u64);
        let place = self.allocations.partition_point(|a| a.base <= base);
        let below = place.checked_sub(1).and_then(|i| self.allocations.get(i));
        let above = self.allocations.get(place);
        let meets = |a: &Allocation| a.base < base + len.max(1) && base < a.base + a.len.max(1);
        if below.is_some_and(meets) || above.is_some_and(meets) {
            return Err(MemoryError::OutOfBounds { address: base, len });
        }
        let mapped = Allocation {
            base,
            len,
            words: Words::Mapped(words),
            written: Vec::new(),
            stores: Vec::new(),
        };
        self.allocations.insert(place, mapped);
        Ok(base)
    }

    /// Copies `len` bytes from `from` to `to`, with what is known of them: bytes that were never written stay so at their new place.
    ///
    /// ```
    /// let mut memory = ptx_emulator::GlobalMemory::new();
    /// let (a, b) = (memory.alloc(4, 256)?, memory.alloc(4, 256)?);
    /// memory.write(a, &[1, 2])?;
    /// memory.copy(b, a, 4)?;
    /// assert_eq!(memory.read(b, 4)?, [1, 2, 0, 0]);
    /// # Ok::<(), ptx_emulator::MemoryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless both ranges lie in one allocation each.
    pub fn copy(&mut self, to: u64, from: u64, len: usize) -> Result<(), MemoryError> {
        let bytes = self.read(from, len)?;
        let (source, start) = self.range(from, len as u64)?;
        let (target, place) = self.range(to, len as u64)?;
        // Whether each was written, before the target changes: the ranges may overlap.
        let marks: Vec<bool> = if source.written.is_empty() || target.written.is_empty() {
            vec![true; len]
        } else {
            (start..)
                .take(len)
                .map(|at| source.is_written(at, 1))
                .collect()
        };
        target.write_bytes(place, &bytes);
        let mut at = 0;
        for run in marks.chunk_by(|a, b| a == b) {
            let (first, count) = (place + at, run.len() as u64);
            if run[0] {
                target.mark_written(first, count);
            } else {
                target.mark_unwritten(first, count);
            }
            at += count;
        }
        Ok(())
    }

    /// Whether `address` lies in an allocation, and how many bytes of it are left from there on.
    pub fn rest(&self, address: u64) -> Option<u64> {
        let (a, offset) = self.range(address, 0).ok()?;
        Some(a.len - offset)
    }
}
