//! Values of 4 and 8 bits in words become pairs of 16-bit floats, by their bits.

use super::{Bf16x2, F16x2, F32, Kind, U32, Value};
use crate::ir::{Kernel, Src};
use crate::view::Packed;

/// What the bits of a small number are put into, in each half of a pair.
struct Halves {
    /// 2^p, in whose lowest bits of fraction an integer is added: 2^p + n.
    base: u32,
    /// 2^p + 8, to take away.
    base_and_8: u32,
    /// How far the bits of an e2m1 move down from the top of the half, and where the lower three are then.
    down: u32,
    mask: u32,
    /// The power of two by which an e2m1 is then too small.
    factor: u32,
}

/// 1024 + n; an e2m1 has bias 1 and a binary16 bias 15.
const F16: Halves = Halves {
    base: 0x6400,
    base_and_8: 0x6408,
    down: 3,
    mask: 0x0e00,
    factor: 0x7400,
};

/// 128 + n; a bfloat16 has bias 127.
const BF16: Halves = Halves {
    base: 0x4300,
    base_and_8: 0x4308,
    down: 6,
    mask: 0x01c0,
    factor: 0x7e80,
};

impl Value<u32> {
    /// Its eight values of 4 bits, each exact, the lowest first.
    pub(crate) fn unpacked_f16(self, k: &mut Kernel, from: Packed) -> [F16x2; 4] {
        self.unpacked(k, from, &F16)
    }

    /// Its eight values of 4 bits, each exact, the lowest first.
    pub(crate) fn unpacked_bf16(self, k: &mut Kernel, from: Packed) -> [Bf16x2; 4] {
        self.unpacked(k, from, &BF16)
    }

    fn unpacked<To: Kind>(self, k: &mut Kernel, from: Packed, to: &Halves) -> [Value<To>; 4] {
        let both = |half: u32| half << 16 | half;
        let pair = |half: u32| Value::<To>::literal(Src::Int(both(half).into()));
        // A constant for all four pairs.
        let constant = match from {
            Packed::S4 => to.base_and_8,
            Packed::U4 => to.base,
            Packed::E2m1 => to.factor,
        };
        let constant = pair(constant).copied(k);
        let (low, high) = match from {
            Packed::E2m1 => (self.shl(k, 4), self),
            _ => (self, self.shr(k, 4)),
        };
        [0, 1, 2, 3].map(|byte| match from {
            Packed::S4 | Packed::U4 => {
                // The numbers in the lowest bits of the halves.
                let numbers = low
                    .permute(k, high, (4 + byte) << 8 | byte)
                    .and(k, both(15));
                // n ^ 8 is n + 8 of the numbers with a sign.
                let bits = match from {
                    Packed::S4 => numbers.xor(k, both(to.base_and_8)),
                    _ => numbers.or(k, both(to.base)),
                };
                bits.recast::<To>(k).sub(k, constant)
            }
            Packed::E2m1 => {
                // The numbers in the highest bits of the halves.
                let numbers = low.permute(k, high, (4 + byte) << 12 | byte << 4);
                let sign = numbers.and(k, both(0x8000));
                let rest = numbers.shr(k, to.down).and(k, both(to.mask));
                sign.or(k, rest).recast::<To>(k).mul(k, constant)
            }
        })
    }

    /// Its four signed bytes, each exact, the lowest first: 2²³ + 2⁷ + n as a float, less what it is too large.
    pub(crate) fn bytes_f32(self, k: &mut Kernel) -> [F32; 4] {
        let (raised, base) = (self.xor(k, 0x8080_8080), U32::from(0x4b00_0000).copied(k));
        [0, 1, 2, 3].map(|byte| {
            let bits = raised.permute(k, base, 0x7440 | byte);
            bits.as_f32(k).sub(k, 8_388_736.0)
        })
    }

    /// Its four signed bytes, each exact, the lowest first: 1024 + 128 + n as a float, less what it is too large.
    pub(crate) fn bytes_f16(self, k: &mut Kernel) -> [F16x2; 2] {
        let (raised, base) = (self.xor(k, 0x8080_8080), U32::from(0x6464_6464).copied(k));
        let excess = F16x2::literal(Src::Int(0x6480_6480)).copied(k);
        [0x4140, 0x4342].map(|selector| {
            let bits = raised.permute(k, base, selector);
            bits.recast::<super::HalfPair>(k).sub(k, excess)
        })
    }
}
