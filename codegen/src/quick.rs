//! Hash tables for what expressions and proofs make themselves: nobody chooses the keys so that they collide.

use std::collections::HashMap;
#[cfg(feature = "kernels")]
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hashers of these tables.
pub(crate) type Quick = BuildHasherDefault<Mixer>;
pub(crate) type QuickMap<K, V> = HashMap<K, V, Quick>;
#[cfg(feature = "kernels")]
pub(crate) type QuickSet<T> = HashSet<T, Quick>;

/// A rotation and a multiplication for each word.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut eight = [0; 8];
            eight.copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(eight));
        }
        for &b in words.remainder() {
            self.write_u64(b.into());
        }
    }

    fn write_u8(&mut self, x: u8) {
        self.write_u64(x.into());
    }

    fn write_u32(&mut self, x: u32) {
        self.write_u64(x.into());
    }

    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }

    fn write_i64(&mut self, x: i64) {
        self.write_u64(x as u64);
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(23) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
