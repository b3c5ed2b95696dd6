//! Random numbers of the formats of matrices, by families.

/// A small deterministic generator (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 11) % n
    }

    /// One of `all`.
    pub(crate) fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// What numbers a matrix holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Of about one magnitude: exponents from -4 to 4.
    Near,
    /// Of a wide range.
    Wide,
    /// A quarter zeros, a quarter subnormal, the rest small.
    Tiny,
    /// Wide, with a hundredth infinities and NaN.
    Special,
}

/// The families in the order of the tiles.
pub(crate) const FAMILIES: [Family; 4] =
    [Family::Near, Family::Wide, Family::Tiny, Family::Special];

/// Their names.
pub(crate) const NAMES: &[&str] = &["near", "wide", "tiny", "special"];

/// A binary format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Bits of an element in a register.
    pub(crate) bits: u32,
    /// Bits of the exponent; none for integers.
    pub(crate) exponent: u32,
    /// Bits of the fraction.
    pub(crate) fraction: u32,
    /// Bits to the right of the fraction that are not used.
    pub(crate) unused: u32,
}

impl Format {
    /// The format of a type of PTX.
    pub(crate) fn of(ty: &str) -> Self {
        let (bits, exponent, fraction, unused) = match ty {
            "f16" => (16, 5, 10, 0),
            "bf16" => (16, 8, 7, 0),
            "tf32" => (32, 8, 10, 13),
            "e4m3" => (8, 4, 3, 0),
            "e5m2" => (8, 5, 2, 0),
            "f32" => (32, 8, 23, 0),
            "f64" => (64, 11, 52, 0),
            "s8" | "u8" => (8, 0, 8, 0),
            "s4" | "u4" => (4, 0, 4, 0),
            "b1" => (1, 0, 1, 0),
            _ => (32, 0, 32, 0),
        };
        Self {
            bits,
            exponent,
            fraction,
            unused,
        }
    }

    /// A number of the family.
    pub(crate) fn random(self, family: Family, random: &mut Random) -> u64 {
        let all = u64::MAX >> (64 - self.bits);
        let any = random.bits() & all;
        if self.exponent == 0 {
            return any;
        }
        let low = self.fraction + self.unused;
        let highest = (1u64 << self.exponent) - 1;
        let bias = highest / 2;
        let keep = any & (1 << (self.bits - 1) | ((1 << low) - 1));
        let with = |field: u64| keep | field << low;
        let around = |random: &mut Random, reach: u64| {
            let reach = reach.min(bias - 1);
            with(bias - reach + random.below(2 * reach + 1))
        };
        match family {
            Family::Near => around(random, 4),
            Family::Wide => around(random, 20),
            Family::Tiny => match random.below(4) {
                0 => any & 1 << (self.bits - 1),
                1 => with(0),
                _ => with(1 + random.below(8.min(bias))),
            },
            Family::Special if random.below(100) == 0 => match random.below(2) {
                0 => with(highest),
                _ => with(highest) & !((1 << low) - 1),
            },
            Family::Special => around(random, 12),
        }
    }

    /// A register of 32 bits, or 64 for f64, full of numbers of the family.
    pub(crate) fn register(self, family: Family, random: &mut Random) -> u64 {
        let width = self.bits.max(32);
        (0..width / self.bits).fold(0, |word, i| {
            word | self.random(family, random) << (self.bits * i)
        })
    }
}
