//! The heap of `malloc` and `free` in kernels: one allocation of global memory, handed out in pieces.
//!
//! First fit by address. A piece starts at a multiple of 16 bytes and is followed by at least 16 bytes that belong to nobody. The heap
//! belongs to the [`crate::GlobalMemory`], so that one launch may free what another allocated.

use std::sync::Mutex;

/// Bytes of the heap; what CUDA has by default.
pub const HEAP_BYTES: u64 = 8 << 20;

/// Alignment of pieces and least distance between two.
const GRAIN: u64 = 16;

/// The heap of a memory.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) base: u64,
    pieces: Mutex<Pieces>,
}

/// Bytes from an offset on that nobody has.
#[derive(Debug, Clone, Copy)]
struct Gap {
    at: u64,
    size: u64,
}

/// What is handed out and what is not, by offset.
#[derive(Debug)]
struct Pieces {
    /// By grain: the grains of the live piece that starts there, else 0.
    live: Vec<u32>,
    /// The gaps between them, no two of which touch, in order. They are looked through for the first that is large enough, so that a list is as good as any tree.
    gaps: Vec<Gap>,
}

impl Heap {
    pub(crate) fn new(base: u64) -> Self {
        Self {
            base,
            pieces: Mutex::new(Pieces {
                live: vec![0; (HEAP_BYTES / GRAIN) as usize],
                gaps: vec![Gap {
                    at: 0,
                    size: HEAP_BYTES,
                }],
            }),
        }
    }

    /// The address of `bytes` new bytes; 0 if there is no room.
    pub(crate) fn malloc(&self, bytes: u64) -> u64 {
        let Ok(mut pieces) = self.pieces.lock() else {
            return 0;
        };
        if bytes == 0 || bytes > HEAP_BYTES {
            return 0;
        }
        let size = bytes.next_multiple_of(GRAIN) + GRAIN;
        let Some(i) = pieces.gaps.iter().position(|gap| gap.size >= size) else {
            return 0;
        };
        let gap = &mut pieces.gaps[i];
        let at = gap.at;
        gap.at += size;
        gap.size -= size;
        if gap.size == 0 {
            pieces.gaps.remove(i);
        }
        pieces.live[(at / GRAIN) as usize] = (size / GRAIN) as u32;
        self.base + at
    }

    /// Gives a piece back; false if none starts at `address`. Freeing 0 does nothing.
    pub(crate) fn free(&self, address: u64) -> bool {
        let Ok(mut pieces) = self.pieces.lock() else {
            return false;
        };
        let at = address.wrapping_sub(self.base);
        let grain = usize::try_from(at / GRAIN).unwrap_or(usize::MAX);
        let grains = match pieces.live.get_mut(grain) {
            Some(grains) if at.is_multiple_of(GRAIN) => std::mem::take(grains),
            _ => 0,
        };
        if grains == 0 {
            return address == 0;
        }
        let size = u64::from(grains) * GRAIN;
        // The gaps on both sides become one with it.
        let gaps = &mut pieces.gaps;
        let next = gaps.partition_point(|gap| gap.at < at);
        let follows = next > 0 && gaps[next - 1].at + gaps[next - 1].size == at;
        let precedes = gaps.get(next).is_some_and(|gap| at + size == gap.at);
        match (follows, precedes) {
            (true, true) => {
                gaps[next - 1].size += size + gaps[next].size;
                gaps.remove(next);
            }
            (true, false) => gaps[next - 1].size += size,
            (false, true) => {
                gaps[next].at = at;
                gaps[next].size += size;
            }
            (false, false) => gaps.insert(next, Gap { at, size }),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    /// The same pieces as by looking through all that are live, from the first.
    #[test]
    fn pieces_are_where_they_fit_first() {
        let heap = Heap::new(1 << 20);
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let mut state = 5u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            (state >> 16) % n
        };
        for round in 0..20_000 {
            // The heap fills, and empties again.
            if below(8) < [5, 3][round / 4000 % 2] {
                let most = 1 << below(16);
                let bytes = u64::from(1 + below(most));
                let size = bytes.next_multiple_of(GRAIN) + GRAIN;
                let mut at = 0;
                for (start, len) in &live {
                    if start - at >= size {
                        break;
                    }
                    at = start + len;
                }
                let fits = at + size <= HEAP_BYTES;
                let expected = if fits { (1 << 20) + at } else { 0 };
                assert_eq!(heap.malloc(bytes), expected);
                if fits {
                    live.insert(at, size);
                }
            } else if let Some(at) = live
                .keys()
                .nth(below(live.len().max(1) as u32) as usize)
                .copied()
            {
                live.remove(&at);
                assert!(heap.free((1 << 20) + at) && !heap.free((1 << 20) + at));
            }
        }
    }
}
