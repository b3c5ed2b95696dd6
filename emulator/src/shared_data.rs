//! The data of a block's shared memory: words, which accesses of all sizes go to.

/// The data of a block's shared memory.
#[derive(Debug)]
pub(crate) struct SharedData {
    pub(crate) words: Vec<u32>,
    /// Bytes.
    pub(crate) size: u32,
}

impl SharedData {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            words: vec![0; size.div_ceil(4) as usize],
            size,
        }
    }

    pub(crate) fn reset(&mut self) {
        // Shared memory starts undefined; a pattern that is a NaN in every float format shows up when it is used.
        self.words.fill(u32::MAX);
    }

    /// The word at byte `offset` (a multiple of 4) of the window.
    #[inline(always)]
    pub(crate) fn word(&self, offset: u32) -> u32 {
        self.words.get((offset >> 2) as usize).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn set_word(&mut self, offset: u32, value: u32) {
        if let Some(w) = self.words.get_mut((offset >> 2) as usize) {
            *w = value;
        }
    }

    /// Copies the bytes from `offset` on, as many as `out` has; whole words at once where both are aligned.
    pub(crate) fn read_bytes(&self, offset: u32, out: &mut [u8]) {
        if offset.is_multiple_of(4) && out.len().is_multiple_of(4) {
            let from = self.words.iter().skip((offset / 4) as usize);
            for (to, from) in out.as_chunks_mut::<4>().0.iter_mut().zip(from) {
                *to = from.to_le_bytes();
            }
            return;
        }
        for (k, byte) in out.iter_mut().enumerate() {
            *byte = self.load(offset + k as u32, 1) as u8;
        }
    }

    /// Stores `data` from byte `offset` on; whole words at once where both are aligned.
    pub(crate) fn write_bytes(&mut self, offset: u32, data: &[u8]) {
        if offset.is_multiple_of(4) && data.len().is_multiple_of(4) {
            let to = self.words.iter_mut().skip((offset / 4) as usize);
            for (to, from) in to.zip(data.as_chunks::<4>().0) {
                *to = u32::from_le_bytes(*from);
            }
            return;
        }
        for (k, byte) in data.iter().enumerate() {
            self.store(offset + k as u32, 1, u64::from(*byte));
        }
    }

    /// `bytes` (1, 2, 4 or 8) at byte `offset`, aligned.
    #[inline(always)]
    pub(crate) fn load(&self, offset: u32, bytes: u32) -> u64 {
        match bytes {
            4 => u64::from(self.word(offset)),
            8 => u64::from(self.word(offset)) | u64::from(self.word(offset + 4)) << 32,
            2 => u64::from(self.word(offset) >> ((offset & 2) * 8) & 0xffff),
            _ => u64::from(self.word(offset) >> ((offset & 3) * 8) & 0xff),
        }
    }

    /// Stores `bytes` (1, 2, 4 or 8) at byte `offset`, aligned.
    #[inline(always)]
    pub(crate) fn store(&mut self, offset: u32, bytes: u32, value: u64) {
        match bytes {
            4 => self.set_word(offset, value as u32),
            8 => {
                self.set_word(offset, value as u32);
                self.set_word(offset + 4, (value >> 32) as u32);
            }
            _ => {
                let shift = (offset & 3) * 8;
                let mask = if bytes == 2 { 0xffff_u32 } else { 0xff } << shift;
                let old = self.word(offset);
                self.set_word(offset, (old & !mask) | (((value as u32) << shift) & mask));
            }
        }
    }
}
