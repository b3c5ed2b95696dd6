//! The optional check for global memory that two blocks touch, one of them with a plain store.
//!
//! For each unit (the smallest global access of the kernel): the last block that stored, and the block that loaded, or "several". Blocks have
//! no order among each other, so any store by one block and access by another is a race, unless the kernel orders them by atomics and
//! fences, which this check does not see; it is for kernels whose blocks do not communicate. Atomics are not recorded.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::memory::GlobalMemory;

const SEVERAL: u32 = u32::MAX;

/// Who touched which bytes. Blocks are numbered from 1 here.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    grain: u32,
    /// By allocation: base address, storing block and loading block of each unit.
    allocations: Vec<(u64, Vec<AtomicU32>, Vec<AtomicU32>)>,
}

impl GlobalShadow {
    pub(crate) fn new(memory: &GlobalMemory, grain_bytes: u32) -> Self {
        let grain = grain_bytes.clamp(1, 4).trailing_zeros();
        let cells = |len: u64| {
            (0..=len >> grain)
                .map(|_| AtomicU32::new(0))
                .collect::<Vec<_>>()
        };
        let allocations = memory
            .allocations()
            .iter()
            .map(|a| (a.base, cells(a.len), cells(a.len)))
            .collect();
        Self { grain, allocations }
    }

    /// Records an access of `bytes` at `address`, inside an allocation, by block `block`; returns another block that it races with.
    pub(crate) fn access(&self, address: u64, bytes: u32, store: bool, block: u64) -> Option<u64> {
        let me = (block as u32).wrapping_add(1);
        let i = self
            .allocations
            .partition_point(|a| a.0 <= address)
            .checked_sub(1)?;
        let (base, stores, loads) = &self.allocations[i];
        let first = ((address - base) >> self.grain) as usize;
        let last = ((address - base + u64::from(bytes) - 1) >> self.grain) as usize;
        for u in first..=last {
            let (s, l) = (stores.get(u)?, loads.get(u)?);
            let other = if store {
                let other = s.swap(me, SeqCst);
                let reader = l.load(SeqCst);
                if other != 0 && other != me {
                    other
                } else {
                    reader
                }
            } else {
                let _ = l.fetch_update(SeqCst, SeqCst, |old| match old {
                    0 => Some(me),
                    o if o == me => None,
                    _ => Some(SEVERAL),
                });
                s.load(SeqCst)
            };
            if other != 0 && other != me {
                return Some(if other == SEVERAL {
                    u64::from(SEVERAL)
                } else {
                    u64::from(other) - 1
                });
            }
        }
        None
    }
}
