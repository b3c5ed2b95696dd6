//! The heap of `malloc` and `free` in kernels: one allocation of global memory, handed out in pieces.
//!
//! First fit by address. A piece starts at a multiple of 16 bytes and is followed by at least 16 bytes that belong to nobody. The heap
//! belongs to the [`crate::GlobalMemory`], so that one launch may free what another allocated.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Bytes of the heap; what CUDA has by default.
pub const HEAP_BYTES: u64 = 8 << 20;

/// Alignment of pieces and least distance between two.
const GRAIN: u64 = 16;

/// The heap of a memory.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) base: u64,
    /// Offset to size of the live pieces.
    live: Mutex<BTreeMap<u64, u64>>,
}

impl Heap {
    pub(crate) fn new(base: u64) -> Self {
        Self {
            base,
            live: Mutex::new(BTreeMap::new()),
        }
    }

    /// The address of `bytes` new bytes; 0 if there is no room.
    pub(crate) fn malloc(&self, bytes: u64) -> u64 {
        let Ok(mut live) = self.live.lock() else {
            return 0;
        };
        if bytes == 0 || bytes > HEAP_BYTES {
            return 0;
        }
        let size = bytes.next_multiple_of(GRAIN) + GRAIN;
        let mut at = 0;
        for (start, len) in live.iter() {
            if start - at >= size {
                break;
            }
            at = start + len;
        }
        if at + size > HEAP_BYTES {
            return 0;
        }
        live.insert(at, size);
        self.base + at
    }

    /// Gives a piece back; false if none starts at `address`. Freeing 0 does nothing.
    pub(crate) fn free(&self, address: u64) -> bool {
        let Ok(mut live) = self.live.lock() else {
            return false;
        };
        address == 0 || live.remove(&address.wrapping_sub(self.base)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_come_back() {
        let heap = Heap::new(1 << 20);
        let a = heap.malloc(1);
        let b = heap.malloc(40);
        assert_eq!((a, b), (1 << 20, (1 << 20) + 32));
        assert!(heap.free(a) && !heap.free(a) && heap.free(0));
        assert_eq!(heap.malloc(16), a);
        assert_eq!(heap.malloc(0), 0);
        assert_eq!(heap.malloc(HEAP_BYTES), 0);
        let rest = heap.malloc(HEAP_BYTES - 4096);
        assert!(rest != 0 && heap.malloc(1 << 16) == 0);
    }
}
