//! Emulated global memory: separate allocations with wide gaps between them, shared by all blocks.
//!
//! Each allocation is a list of 32-bit atomic words accessed with relaxed ordering, so that blocks may run on different cores
//! in safe Rust whatever the kernel does: a relaxed 32-bit load or store is a plain move on every 64-bit machine. Only narrower
//! stores need a read-modify-write. Allocations start far apart ([`GAP`]), so that an access past the end of one never lands in the next.

mod host;

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::error::MemoryError;
use crate::heap::{HEAP_BYTES, Heap};
use crate::texture::Texture;

/// Unmapped bytes between two allocations, at least.
const GAP: u64 = 1 << 24;
/// Where the first allocation starts. Addresses of 32 bits (`.address_size 32`) count from here.
pub(crate) const FIRST: u64 = 0x7000_0000_0000;
/// The largest single allocation.
const MAX_ALLOCATION: u64 = 1 << 36;

/// Emulated global memory. Addresses are 64-bit device pointers, to be passed as [`crate::Arg::Ptr`].
///
/// # Examples
///
/// ```
/// let mut memory = ptx_emulator::GlobalMemory::new();
/// let pointer = memory.alloc(8, 256)?;
/// memory.write(pointer, &[1, 2, 3, 4])?;
/// assert_eq!(memory.read(pointer, 4)?, [1, 2, 3, 4]);
/// assert!(memory.read(pointer, 9).is_err());
/// # Ok::<(), ptx_emulator::MemoryError>(())
/// ```
#[derive(Debug, Default)]
pub struct GlobalMemory {
    /// Sorted by base.
    allocations: Vec<Allocation>,
    next: u64,
    /// What kernels allocate themselves; made for the first that does.
    heap: Option<Heap>,
    textures: Vec<Texture>,
}

/// Handles of textures begin here, far from all addresses.
const TEXTURES: u64 = 0x0400_0000_0000_0000;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) len: u64,
    words: Words,
    /// One bit for each byte ever written; empty for memory of the host, all of which counts as written.
    written: Vec<AtomicU32>,
    /// By byte: how often kernels have stored to it; empty unless asked for.
    stores: Vec<AtomicU8>,
}

/// The words of an allocation.
#[derive(Debug)]
enum Words {
    Own(Vec<AtomicU32>),
    /// Memory of the caller's, see [`GlobalMemory::map`].
    Mapped(&'static [AtomicU32]),
}

impl std::ops::Deref for Words {
    type Target = [AtomicU32];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU32] {
        match self {
            Self::Own(words) => words,
            Self::Mapped(words) => words,
        }
    }
}

/// So many words of 0, unless the host has no memory for them.
fn zeros(count: u64) -> Option<Vec<AtomicU32>> {
    let count = usize::try_from(count).ok()?;
    let mut words = Vec::new();
    words.try_reserve_exact(count).ok()?;
    words.resize_with(count, AtomicU32::default);
    Some(words)
}

impl GlobalMemory {
    /// Memory without any allocation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allocates `bytes` bytes (0 is allowed) aligned to `align`, a power of two. The bytes read as zero and count as never written.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadAlignment`], [`MemoryError::TooLarge`], [`MemoryError::HostMemory`].
    pub fn alloc(&mut self, bytes: u64, align: u64) -> Result<u64, MemoryError> {
        if !align.is_power_of_two() || align > 1 << 20 {
            return Err(MemoryError::BadAlignment(align));
        }
        if bytes > MAX_ALLOCATION {
            return Err(MemoryError::TooLarge(bytes));
        }
        // An address that is aligned to `align` and to no more than that, so that a kernel that assumes more is found out.
        let start = self.next.max(FIRST).next_multiple_of(1 << 21);
        let base = if align >= 256 {
            start
        } else {
            start + 256 + align
        };
        let words = zeros(bytes.div_ceil(4)).ok_or(MemoryError::HostMemory(bytes))?;
        let written = zeros(bytes.div_ceil(32)).ok_or(MemoryError::HostMemory(bytes))?;
        // Before those that are mapped higher up.
        let place = self.allocations.partition_point(|a| a.base < base);
        let new = Allocation {
            base,
            len: bytes,
            words: Words::Own(words),
            written,
            stores: Vec::new(),
        };
        self.allocations.insert(place, new);
        self.next = base + bytes + GAP;
        Ok(base)
    }

    /// Frees the allocation that starts at `address`; later accesses to it are out of bounds.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] if no allocation starts there.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        match self.allocations.binary_search_by_key(&address, |a| a.base) {
            Ok(i) => {
                self.allocations.remove(i);
                Ok(())
            }
            Err(_) => Err(MemoryError::OutOfBounds { address, len: 0 }),
        }
    }

    /// Counts from now on how often kernels store to each byte of the allocation that starts at `address`; the count begins at 0. Atomic operations that
    /// change a byte count as stores.
    ///
    /// ```
    /// let mut memory = ptx_emulator::GlobalMemory::new();
    /// let pointer = memory.alloc(8, 256)?;
    /// memory.count_stores(pointer)?;
    /// memory.write(pointer, &[1, 2, 3, 4])?; // by the host
    /// assert_eq!(memory.stores(pointer, 8)?, [0; 8]);
    /// # Ok::<(), ptx_emulator::MemoryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] if no allocation starts there, [`MemoryError::HostMemory`].
    pub fn count_stores(&mut self, address: u64) -> Result<(), MemoryError> {
        let found = self.allocations.binary_search_by_key(&address, |a| a.base);
        let Some(a) = found.ok().and_then(|i| self.allocations.get_mut(i)) else {
            return Err(MemoryError::OutOfBounds { address, len: 0 });
        };
        let (mut stores, len) = (Vec::new(), a.len as usize);
        let room = stores.try_reserve_exact(len);
        room.map_err(|_| MemoryError::HostMemory(a.len))?;
        stores.resize_with(len, AtomicU8::default);
        a.stores = stores;
        Ok(())
    }

    /// How often kernels have stored to each of the `len` bytes at `address`, 255 for more; 0 where nobody counts ([`GlobalMemory::count_stores`]).
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] if they do not lie in one allocation.
    pub fn stores(&self, address: u64, len: usize) -> Result<Vec<u8>, MemoryError> {
        let (a, offset) = self.range(address, len as u64)?;
        let counts = a.stores.iter().skip(offset as usize).take(len);
        let mut counts: Vec<u8> = counts.map(|n| n.load(Relaxed)).collect();
        counts.resize(len, 0);
        Ok(counts)
    }

    /// Makes the heap of `malloc`, if there is none.
    pub(crate) fn make_heap(&mut self) -> Result<(), MemoryError> {
        if self.heap.is_none() {
            self.heap = Some(Heap::new(self.alloc(HEAP_BYTES, 256)?));
        }
        Ok(())
    }

    /// The heap, once a kernel needs it.
    pub(crate) fn heap(&self) -> Option<&Heap> {
        self.heap.as_ref()
    }

    fn range(&self, address: u64, len: u64) -> Result<(&Allocation, u64), MemoryError> {
        let mut hint = 0;
        let error = MemoryError::OutOfBounds { address, len };
        let a = self.locate(address, &mut hint).ok_or(error.clone())?;
        let offset = address - a.base;
        if a.len - offset < len {
            return Err(error);
        }
        Ok((a, offset))
    }

    /// Copies `data` to `address`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless all of it lies in one allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), MemoryError> {
        let (a, offset) = self.range(address, data.len() as u64)?;
        a.write_bytes(offset, data);
        a.mark_written(offset, data.len() as u64);
        Ok(())
    }

    /// Sets `len` bytes at `address` to 0xff: NaN in every floating-point type, -1 in every integer. They still count as never written, so
    /// that a read of them can be reported, and one that is not shows in the result.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless all of them lie in one allocation.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut memory = ptx_emulator::GlobalMemory::new();
    /// let pointer = memory.alloc(7, 256)?;
    /// memory.poison(pointer + 1, 6)?;
    /// assert_eq!(memory.read(pointer, 7)?, [0, 255, 255, 255, 255, 255, 255]);
    /// # Ok::<(), ptx_emulator::MemoryError>(())
    /// ```
    pub fn poison(&mut self, address: u64, len: u64) -> Result<(), MemoryError> {
        let (a, mut offset) = self.range(address, len)?;
        let end = offset + len;
        while offset < end {
            if offset % 4 == 0 && end - offset >= 4 {
                a.set_word(offset, u32::MAX);
                offset += 4;
            } else {
                a.store(offset, 1, 0xff);
                offset += 1;
            }
        }
        Ok(())
    }

    /// The `len` bytes at `address`.
    ///
    /// # Errors
    ///
    /// [`MemoryError::OutOfBounds`] unless all of them lie in one allocation.
    pub fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, MemoryError> {
        let (a, offset) = self.range(address, len as u64)?;
        let mut out = vec![0; len];
        a.read_bytes(offset, &mut out);
        Ok(out)
    }

    /// Makes a texture, which is a surface as well, and gives its handle: what a kernel takes as a `.u64`, and a `.texref` or `.surfref` variable holds.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Texture`] if sizes, pitch or filter do not go together.
    pub fn bind_texture(&mut self, texture: Texture) -> Result<u64, MemoryError> {
        if let Some(fault) = texture.fault() {
            return Err(MemoryError::Texture(fault));
        }
        self.textures.push(texture);
        Ok(TEXTURES + self.textures.len() as u64)
    }

    /// The texture with this handle, or whose handle a variable at this address holds.
    pub(crate) fn texture(&self, handle: u64) -> Option<&Texture> {
        let of = |handle: u64| {
            let index = handle.wrapping_sub(TEXTURES + 1);
            self.textures.get(usize::try_from(index).ok()?)
        };
        of(handle).or_else(|| {
            let bytes = self.read(handle, 8).ok()?;
            of(u64::from_le_bytes(bytes.try_into().ok()?))
        })
    }

    /// Whether some of the `len` bytes at `address` have been written, by a host write.
    pub(crate) fn is_written(&self, address: u64, len: u64) -> bool {
        self.range(address, len).is_ok_and(|(a, offset)| {
            bits_of(offset, len).any(|(word, bits)| {
                let written = a.written.get(word);
                written.is_some_and(|w| w.load(Relaxed) & bits != 0)
            })
        })
    }

    /// Bytes of all allocations together.
    pub fn allocated(&self) -> u64 {
        self.allocations.iter().map(|a| a.len).sum()
    }

    /// All allocations, sorted by address.
    pub(crate) fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// The number of the allocation that contains `address` (or for which it is the end of an empty one); `hint` remembers it.
    #[inline(always)]
    pub(crate) fn locate(&self, address: u64, hint: &mut u32) -> Option<&Allocation> {
        if let Some(a) = self.allocations.get(*hint as usize)
            && address.wrapping_sub(a.base) < a.len
        {
            return Some(a);
        }
        self.search(address, hint)
    }

    #[inline(never)]
    fn search(&self, address: u64, hint: &mut u32) -> Option<&Allocation> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let i = after.checked_sub(1)?;
        let a = &self.allocations[i];
        *hint = i as u32;
        (address - a.base <= a.len).then_some(a)
    }

    /// The allocation nearest below or around `address`, for messages.
    pub(crate) fn nearest(&self, address: u64) -> Option<&Allocation> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let below = after.checked_sub(1).map(|i| &self.allocations[i]);
        let above = self.allocations.get(after);
        match (below, above) {
            (Some(b), Some(a)) => {
                let distance_below = address.saturating_sub(b.base + b.len);
                Some(if a.base - address < distance_below {
                    a
                } else {
                    b
                })
            }
            (b, a) => b.or(a),
        }
    }
}

impl Allocation {
    /// `bytes` (1, 2, 4 or 8) at `offset`, which the caller has checked and aligned.
    #[inline(always)]
    pub(crate) fn load(&self, offset: u64, bytes: u32) -> u64 {
        let w = (offset >> 2) as usize;
        let word = |i: usize| self.words.get(i).map_or(0, |w| w.load(Relaxed));
        match bytes {
            4 => u64::from(word(w)),
            8 => u64::from(word(w)) | u64::from(word(w + 1)) << 32,
            2 => u64::from(word(w) >> ((offset & 2) * 8) & 0xffff),
            _ => u64::from(word(w) >> ((offset & 3) * 8) & 0xff),
        }
    }

    /// The 32-bit word at `offset`, a multiple of 4.
    #[inline(always)]
    pub(crate) fn word(&self, offset: u64) -> u32 {
        self.words
            .get((offset >> 2) as usize)
            .map_or(0, |w| w.load(Relaxed))
    }

    /// The `N` words at `offset`, a multiple of 4; `None` if they are not all inside.
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&self, offset: u64) -> Option<[u32; N]> {
        let start = usize::try_from(offset >> 2).ok()?;
        let words = self.words.get(start..start.checked_add(N)?)?;
        let mut out = [0; N];
        for (to, from) in out.iter_mut().zip(words) {
            *to = from.load(Relaxed);
        }
        Some(out)
    }

    /// Stores the 32-bit word at `offset`, a multiple of 4.
    #[inline(always)]
    pub(crate) fn set_word(&self, offset: u64, value: u32) {
        if let Some(w) = self.words.get((offset >> 2) as usize) {
            w.store(value, Relaxed);
        }
    }

    /// Stores `bytes` (1, 2, 4 or 8) at `offset`, which the caller has checked and aligned.
    pub(crate) fn store(&self, offset: u64, bytes: u32, value: u64) {
        match bytes {
            4 => self.set_word(offset, value as u32),
            8 => {
                self.set_word(offset, value as u32);
                self.set_word(offset + 4, (value >> 32) as u32);
            }
            _ => {
                let shift = (offset & 3) * 8;
                let mask = if bytes == 2 { 0xffff_u32 } else { 0xff } << shift;
                let new = ((value as u32) << shift) & mask;
                if let Some(w) = self.words.get((offset >> 2) as usize) {
                    let _ = w.fetch_update(Relaxed, Relaxed, |old| Some((old & !mask) | new));
                }
            }
        }
    }

    /// Replaces the `bytes` (2, 4 or 8) at `offset` by `f` of them, atomically for up to 4 bytes. `f` is called again
    /// if another thread comes in between.
    ///
    /// Eight bytes are two words here, so the caller must hold the lock of the launch.
    #[inline(always)]
    pub(crate) fn update(&self, offset: u64, bytes: u32, mut f: impl FnMut(u64) -> u64) {
        let mut old = self.load(offset, bytes);
        loop {
            let new = f(old);
            // What changes nothing has read the place, which is atomic.
            if new == old {
                return;
            }
            if bytes == 8 {
                return self.store(offset, 8, new);
            }
            match self.exchange(offset, bytes, old, new) {
                Ok(()) => return,
                Err(found) => old = found,
            }
        }
    }

    /// Stores `new` in the `bytes` (2 or 4) at `offset` if they are `old`; else what they are, or `old` if another part of their word has changed.
    #[inline(always)]
    fn exchange(&self, offset: u64, bytes: u32, old: u64, new: u64) -> Result<(), u64> {
        let Some(word) = self.words.get((offset >> 2) as usize) else {
            return Ok(());
        };
        let (shift, mask) = match bytes {
            2 => ((offset & 2) * 8, 0xffff),
            _ => (0, u32::MAX),
        };
        let rest = match bytes {
            2 => word.load(Relaxed) & !(mask << shift),
            _ => 0,
        };
        let [old, new] = [old, new].map(|x| rest | (x as u32 & mask) << shift);
        let result = word.compare_exchange(old, new, Relaxed, Relaxed);
        let found = result.map(|_| ());
        found.map_err(|word| u64::from(word >> shift & mask))
    }

    /// Copies the bytes from `offset` on, as many as `out` has; the caller has checked that they are inside.
    pub(crate) fn read_bytes(&self, offset: u64, out: &mut [u8]) {
        let head = (offset.wrapping_neg() % 4).min(out.len() as u64);
        let (first, rest) = out.split_at_mut(head as usize);
        let (words, last) = rest.as_chunks_mut::<4>();
        let from = self.words.iter().skip(((offset + head) / 4) as usize);
        for (to, from) in words.iter_mut().zip(from) {
            *to = from.load(Relaxed).to_le_bytes();
        }
        let tail = offset + head + 4 * words.len() as u64;
        for (part, start) in [(first, offset), (last, tail)] {
            for (at, byte) in (start..).zip(part) {
                *byte = self.load(at, 1) as u8;
            }
        }
    }

    /// Stores `data` from `offset` on; the caller has checked that it fits.
    pub(crate) fn write_bytes(&self, offset: u64, data: &[u8]) {
        let head = (offset.wrapping_neg() % 4).min(data.len() as u64);
        let (first, rest) = data.split_at(head as usize);
        let (words, last) = rest.as_chunks::<4>();
        let to = self.words.iter().skip(((offset + head) / 4) as usize);
        for (to, from) in to.zip(words) {
            to.store(u32::from_le_bytes(*from), Relaxed);
        }
        let tail = offset + head + 4 * words.len() as u64;
        for (part, start) in [(first, offset), (last, tail)] {
            for (at, byte) in (start..).zip(part) {
                self.store(at, 1, (*byte).into());
            }
        }
    }

    /// Whether stores to its bytes are counted.
    pub(crate) fn counts_stores(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Counts a store to `bytes` bytes at `offset`.
    pub(crate) fn count_store(&self, offset: u64, bytes: u32) {
        let counts = self.stores.iter().skip(offset as usize);
        for n in counts.take(bytes as usize) {
            let _ = n.fetch_update(Relaxed, Relaxed, |n| n.checked_add(1));
        }
    }

    /// Marks bytes as written.
    pub(crate) fn mark_written(&self, offset: u64, bytes: impl Into<u64>) {
        for (word, bits) in bits_of(offset, bytes.into()) {
            if let Some(w) = self.written.get(word)
                && w.load(Relaxed) & bits != bits
            {
                w.fetch_or(bits, Relaxed);
            }
        }
    }

    /// Marks bytes as never written.
    fn mark_unwritten(&self, offset: u64, bytes: u64) {
        for (word, bits) in bits_of(offset, bytes) {
            if let Some(w) = self.written.get(word) {
                w.fetch_and(!bits, Relaxed);
            }
        }
    }

    /// Whether all of `bytes` at `offset` have been written.
    pub(crate) fn is_written(&self, offset: u64, bytes: u32) -> bool {
        bits_of(offset, bytes.into()).all(|(word, bits)| {
            let written = self.written.get(word);
            written.is_none_or(|w| w.load(Relaxed) & bits == bits)
        })
    }
}

/// The bits of `bytes` from `offset` on, one a byte: words of 32 with those of each.
fn bits_of(offset: u64, bytes: u64) -> impl Iterator<Item = (usize, u32)> {
    let (mut at, end) = (offset, offset + bytes);
    std::iter::from_fn(move || {
        let start = at;
        at = end.min((start / 32 + 1) * 32);
        let count = (at - start) as u32;
        (count > 0).then(|| {
            let bits = (u32::MAX >> (32 - count)) << (start % 32);
            ((start / 32) as usize, bits)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of any place and number, against a list of bytes.
    #[test]
    fn bytes_are_where_they_were_written() {
        let mut memory = GlobalMemory::new();
        let base = memory.alloc(150, 256).expect("memory");
        let (mut data, mut written) = (vec![0u8; 150], vec![false; 150]);
        let mut state = 1u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            (state >> 16) % n
        };
        for round in 0..300 {
            let start = below(151);
            let len = below(151 - start);
            let (from, to) = (start as usize, (start + len) as usize);
            if round % 8 == 0 {
                for i in from..to {
                    (data[i], written[i]) = (below(256) as u8, true);
                }
                let place = base + u64::from(start);
                memory.write(place, &data[from..to]).expect("a write");
            }
            let found = memory.read(base + u64::from(start), len as usize);
            assert_eq!(found.expect("a read"), data[from..to]);
            let mut hint = 0;
            let alloc = memory.locate(base, &mut hint).expect("an allocation");
            let all = written[from..to].iter().all(|w| *w);
            assert_eq!(alloc.is_written(start.into(), len), all, "{start} {len}");
        }
    }
}
