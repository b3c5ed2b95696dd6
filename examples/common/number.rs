//! Elements of the examples' buffers: random values and distances.

use tilewright::host::BufferElement;

/// An element of the examples' buffers.
pub(crate) trait Number: BufferElement + Into<f64> {
    /// A value of 64 random bits.
    fn of(bits: u64) -> Self;

    /// `n` values, the same for the same seed.
    fn random(n: usize, seed: u64) -> Vec<Self> {
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut state = seed;
        let next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            Self::of(z ^ (z >> 31))
        };
        std::iter::repeat_with(next).take(n).collect()
    }

    /// |self - other|, infinite if one of them is NaN.
    #[allow(dead_code)] // Some examples have a bound for each element.
    fn distance(self, other: Self) -> f64 {
        let d: f64 = self.into() - other.into();
        if d.is_nan() { f64::INFINITY } else { d.abs() }
    }
}

impl Number for f32 {
    fn of(bits: u64) -> Self {
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

impl Number for half::f16 {
    fn of(bits: u64) -> Self {
        half::f16::from_f32(f32::of(bits))
    }
}

impl Number for half::bf16 {
    fn of(bits: u64) -> Self {
        half::bf16::from_f32(f32::of(bits))
    }
}

impl Number for i8 {
    fn of(bits: u64) -> Self {
        (bits >> 56) as i8
    }
}
