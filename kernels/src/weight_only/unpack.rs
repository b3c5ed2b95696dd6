//! A word of eight weights becomes four registers of 16-bit floats, exactly.
//!
//! ```text
//! word            n7 n6 n5 n4 n3 n2 n1 n0          n0 in the lowest 4 bits
//! >> 4            .. n7 n6 n5 n4 n3 n2 n1
//! (… & m) | b     128 + n5, 128 + n1               as bf16: nibbles 1 and 5 in the lowest bits of the halves' fractions, one lop3
//! − (128 + z)     n5 − z, n1 − z
//! ```
//!
//! A pair takes a shift, a lop3 and a subtraction; a permutation of bytes is not needed, since the order of the weights in memory is made for it ([`order`](super::order)).

use layout_codegen::ir::Kernel;
use layout_codegen::value::{Bf16x2, BrainPair, F16x2, F32, Float, HalfPair, U32, Value};

/// How the bits of an e2m1 become those of a 16-bit float.
pub(super) struct E2m1 {
    /// How far exponent and fraction move down from the top of the half, and where they are then.
    down: u32,
    mask: u32,
    /// The power of two by which the number is then too small.
    factor: u32,
}

/// A type of two 16-bit floats that weights become.
pub(super) trait Pair: Float {
    /// 2^p, in whose lowest bits of fraction an integer is added.
    const BASE: u32;

    /// How an e2m1 becomes one.
    const E2M1: E2m1;

    /// The pair that has these bits.
    fn of_bits(k: &mut Kernel, bits: U32) -> Value<Self>;

    /// The bits of a pair.
    fn bits_of(k: &mut Kernel, pair: Value<Self>) -> U32;
}

impl Pair for HalfPair {
    const BASE: u32 = 0x6400; // 1024
    // The bias of an e2m1 is 1, that of a binary16 15.
    const E2M1: E2m1 = E2m1 {
        down: 3,
        mask: 0x0e00,
        factor: 0x7400,
    };

    fn of_bits(k: &mut Kernel, bits: U32) -> F16x2 {
        bits.as_f16x2(k)
    }

    fn bits_of(k: &mut Kernel, pair: F16x2) -> U32 {
        pair.bits(k)
    }
}

impl Pair for BrainPair {
    const BASE: u32 = 0x4300; // 128
    // The bias of a bfloat16 is 127.
    const E2M1: E2m1 = E2m1 {
        down: 6,
        mask: 0x01c0,
        factor: 0x7e80,
    };

    fn of_bits(k: &mut Kernel, bits: U32) -> Bf16x2 {
        bits.as_bf16x2(k)
    }

    fn bits_of(k: &mut Kernel, pair: Bf16x2) -> U32 {
        pair.bits(k)
    }
}

/// The same 16 bits in both halves.
pub(super) fn both(half: u32) -> u32 {
    half << 16 | half
}

/// The integers n − z of a word, for 2^p + z in both halves of `zeros[i]` for the rows of registers 2·j + i.
pub(super) fn integers<T: Pair>(k: &mut Kernel, word: U32, zeros: [Value<T>; 2]) -> [Value<T>; 4] {
    [0, 1, 2, 3].map(|j| {
        let moved = if j == 0 { word } else { word.shr(k, 4 * j) };
        let bits = moved.and(k, both(15)).or(k, both(T::BASE));
        T::of_bits(k, bits).sub(k, zeros[j as usize % 2])
    })
}

/// 2^p + z in both halves, for the zero points of two rows in the halves of a word.
pub(super) fn raised<T: Pair>(k: &mut Kernel, zeros: Value<T>) -> [Value<T>; 2] {
    let base = U32::from(both(T::BASE));
    let base = T::of_bits(k, base);
    let bits = zeros.add(k, base);
    let bits = T::bits_of(k, bits);
    [0x1010, 0x3232].map(|halves| {
        let bits = bits.permute(k, bits, halves);
        T::of_bits(k, bits)
    })
}

/// The numbers of a word of e2m1. Subnormal numbers come out right too, since the product with a power of two normalises them.
pub(super) fn e2m1<T: Pair>(k: &mut Kernel, word: U32) -> [Value<T>; 4] {
    let E2m1 { down, mask, factor } = T::E2M1;
    let factor = U32::from(both(factor));
    let factor = T::of_bits(k, factor);
    [0, 1, 2, 3].map(|j| {
        // Nibble j of each half to its top.
        let up = 12 - 4 * j;
        let signs = if up == 0 { word } else { word.shl(k, up) }.and(k, both(0x8000));
        let moved = if up > down {
            word.shl(k, up - down)
        } else {
            word.shr(k, down - up)
        };
        let bits = moved.and(k, both(mask)).or(k, signs);
        T::of_bits(k, bits).mul(k, factor)
    })
}

/// 2^(b − 127) for a byte b, NaN for 255.
pub(super) fn e8m0(k: &mut Kernel, byte: U32) -> F32 {
    // 2^-127 is subnormal, with the first bit of the fraction; so is that bit of a NaN.
    let special = byte.add(k, 1).and(k, 0xfe).eq(k, 0);
    let fraction = special.select(k, U32::from(1 << 22), 0);
    byte.shl(k, 23).or(k, fraction).as_f32(k)
}

/// The e4m3 in a byte.
pub(super) fn e4m3(k: &mut Kernel, byte: U32) -> F32 {
    let sign = byte.and(k, 0x80).shl(k, 24);
    let magnitude = byte.and(k, 0x7f);
    let is_nan = magnitude.eq(k, 0x7f);
    // The bias of an e4m3 is 7, that of a binary32 127.
    let bits = magnitude.shl(k, 20).or(k, sign);
    let number = bits.as_f32(k).mul(k, f32::from_bits((127 + 120) << 23));
    is_nan.select(k, F32::from(f32::NAN), number)
}
