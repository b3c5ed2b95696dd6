//! Tensor maps in global memory that kernels make or change, and the fences that tensor copies need to see them (PTX ISA, section 9.7.13.4).
//!
//! Tensor copies read a map by a proxy of its own. Who changes a map makes it visible by `fence.proxy.tensormap::generic.release` or by
//! `tensormap.cp_fenceproxy`; the block that copies by it executes `fence.proxy.tensormap::generic.acquire` on it, behind whatever orders the two. A map that
//! was there before the launch needs neither.
//!
//! What counts are the bytes: those of a map before the launch, those at the last release and those at the last acquire of the block. So it does not
//! matter by which instruction a map came to its place. Which release fence belongs to bytes that plain stores wrote is not known; any of the launch will do.
//!
//! Example: a warp builds a map in shared memory, writes it by `tensormap.cp_fenceproxy` and copies by it with no acquire: a finding.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::memory::GlobalMemory;
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorMap};

/// The bytes of a map.
type Bytes = [u8; TENSOR_MAP_BYTES];

/// The maps of a launch, by address.
#[derive(Debug, Default)]
struct Maps {
    before: HashMap<u64, Bytes>,
    /// Changed in place by `tensormap.replace`, by a warp of a block that has executed no release since.
    changed: HashMap<u64, (u64, u32)>,
    /// Written by `tensormap.cp_fenceproxy`, or released by who changed them.
    released: HashMap<u64, Bytes>,
    /// Some warp has executed a release fence.
    some_release: bool,
    /// By block and address.
    acquired: HashMap<(u64, u64), Bytes>,
}

/// What a tensor copy needs to know of the maps of its launch; one for all blocks.
#[derive(Debug)]
pub(crate) struct MapFences(Mutex<Maps>);

/// A fence that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFence {
    Release,
    Acquire,
}

impl MapFences {
    /// With the maps that `memory` has before the launch.
    pub(crate) fn new(memory: &GlobalMemory) -> Self {
        let mut maps = Maps::default();
        for a in memory.allocations() {
            let mut at = a.base.next_multiple_of(64) - a.base;
            while at + TENSOR_MAP_BYTES as u64 <= a.len {
                if TensorMap::is_encoded(&a.word(at).to_le_bytes()) {
                    maps.before
                        .insert(a.base + at, bytes_at(memory, a.base + at));
                }
                at += 64;
            }
        }
        Self(Mutex::new(maps))
    }

    fn maps(&self) -> std::sync::MutexGuard<'_, Maps> {
        // Another worker's panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Warp `warp` of block `block` has changed the map at `address` in place.
    pub(crate) fn change(&self, address: u64, block: u64, warp: u32) {
        self.maps().changed.insert(address, (block, warp));
    }

    /// The map at `address` was written together with its release.
    pub(crate) fn write_released(&self, address: u64, bytes: &[u8]) {
        let mut maps = self.maps();
        maps.changed.remove(&address);
        if let Ok(bytes) = bytes.try_into() {
            maps.released.insert(address, bytes);
        }
    }

    /// `fence.proxy.tensormap::generic.release` by warp `warp` of block `block`.
    pub(crate) fn release(&self, memory: &GlobalMemory, block: u64, warp: u32) {
        let mut maps = self.maps();
        maps.some_release = true;
        let own = maps.changed.extract_if(|_, by| *by == (block, warp));
        let own: Vec<u64> = own.map(|(address, _)| address).collect();
        for address in own {
            maps.released.insert(address, bytes_at(memory, address));
        }
    }

    /// `fence.proxy.tensormap::generic.acquire` of the map at `address` by block `block`.
    pub(crate) fn acquire(&self, memory: &GlobalMemory, address: u64, block: u64) {
        let bytes = bytes_at(memory, address);
        self.maps().acquired.insert((block, address), bytes);
    }

    /// What a copy by block `block` misses, whose map at `address` has these bytes.
    pub(crate) fn missing(&self, address: u64, bytes: &[u8], block: u64) -> Option<MissingFence> {
        let maps = self.maps();
        let same = |known: Option<&Bytes>| known.is_some_and(|known| known == bytes);
        if same(maps.before.get(&address)) && !maps.changed.contains_key(&address) {
            return None;
        }
        let released = same(maps.released.get(&address))
            || maps.some_release && !maps.changed.contains_key(&address);
        if !released {
            Some(MissingFence::Release)
        } else if !same(maps.acquired.get(&(block, address))) {
            Some(MissingFence::Acquire)
        } else {
            None
        }
    }
}

/// The 128 bytes at `address`, zeros if they are not all in one allocation.
fn bytes_at(memory: &GlobalMemory, address: u64) -> Bytes {
    let read = memory.read(address, TENSOR_MAP_BYTES).ok();
    read.and_then(|bytes| bytes.try_into().ok())
        .unwrap_or([0; TENSOR_MAP_BYTES])
}
