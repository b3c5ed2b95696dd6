//! Compiled by `typed_assembly.rs`, which counts the instructions of `address`.
#![no_std]

use layout_core::typed::{C, Compose, Layout, StaticLayout, Swizzle};

/// A of m16n8k16 by `ldmatrix.x4` from rows of 64 halves: row `lane % 16`, 16-byte column `lane / 16` of the k step, the
/// 128-byte swizzle. Bytes.
type Rows = Layout<((C<16>, C<2>), C<4>), ((C<128>, C<16>), C<32>)>;
type Address = Compose<Swizzle<3, 4, 3>, Rows>;

/// The address that `lane` gives to `ldmatrix` in step `k` of a tile at `base`.
#[unsafe(no_mangle)]
pub extern "C" fn address(base: u32, lane: u32, k: u32) -> u32 {
    base + Address::at([i64::from(lane), i64::from(k)]) as u32
}

/// The same by hand.
#[unsafe(no_mangle)]
pub extern "C" fn by_hand(base: u32, lane: u32, k: u32) -> u32 {
    let offset = (lane & 15) * 128 + (lane >> 4) * 16 + k * 32;
    base + (offset ^ ((offset >> 3) & 0x70))
}
