//! Random sparse matrices for the tests: which elements of A are kept, and the metadata of each lane, written from the lane's side.

use super::Random;

/// A small number and its bits as type `t`.
pub(crate) fn value(t: &str, random: &mut Random) -> (i64, u32) {
    let v = match t {
        "u8" | "u4" => random.below(9) as i64,
        _ => random.below(9) as i64 - 4,
    };
    (v, encode(t, v))
}

/// A whole number from -4 to 8 in the bits of type `t`.
pub(crate) fn encode(t: &str, v: i64) -> u32 {
    let half = |v: i64| u32::from(half::f16::from_f32(v as f32).to_bits());
    match t {
        "f32" | "tf32" => (v as f32).to_bits(),
        "f16" => half(v),
        "bf16" => (v as f32).to_bits() >> 16,
        // e5m2 is the upper half of f16; e4m3 has the bias 7 and three bits.
        "e5m2" => half(v) >> 8,
        "e4m3" => {
            let magnitude = [0, 7 << 3, 8 << 3, 8 << 3 | 4, 9 << 3][v.unsigned_abs() as usize];
            magnitude | if v < 0 { 0x80 } else { 0 }
        }
        "s4" | "u4" => v as u32 & 15,
        "s8" | "u8" => v as u32 & 255,
        _ => v as u32,
    }
}

/// Bits of an element of type `t`.
pub(crate) fn width(t: &str) -> u32 {
    match t {
        "f32" | "tf32" => 32,
        "f16" | "bf16" => 16,
        "s4" | "u4" => 4,
        _ => 8,
    }
}

/// A sparse matrix of 16 rows for one warp.
pub(crate) struct Sparse {
    /// Column of each kept element, by rows.
    pub(crate) columns: Vec<Vec<usize>>,
    /// Metadata of each lane. Lanes that give none have noise.
    pub(crate) metadata: [u32; 32],
}

/// The row and chunk that bits `4n` to `4n + 3` of `lane` speak of, as the library layouts for these instructions have it: `bits` to a row.
fn meaning(t: &str, bits: u32, selector: u32, lane: u32, n: u32) -> Option<(u32, u32)> {
    let (g, pair, odd) = (lane / 4, lane / 2 % 2, lane % 2);
    match (width(t), bits) {
        (16 | 32, 16) => (lane % 4 == selector).then_some((g + 8 * (n / 4), n % 4)),
        (16 | 32, 32) => (pair == selector).then_some((g + 8 * (n / 4), n % 4 + 4 * odd)),
        (4 | 8, 32) => (pair == selector).then_some((g + 8 * odd, n)),
        _ => Some((g + 8 * odd, n + 8 * pair)),
    }
}

/// A random pattern for A of type `t` in a product of depth `k`; `ordered`: places ascend.
pub(crate) fn random_pattern(
    t: &str,
    k: u32,
    selector: u32,
    ordered: bool,
    random: &mut Random,
) -> Sparse {
    let bits = match t {
        "tf32" => 2 * k,
        "s4" | "u4" => k / 2,
        _ => k,
    };
    let chunks = (bits / 4) as usize;
    let mut kept = vec![vec![Vec::new(); chunks]; 16];
    let mut metadata = [0; 32];
    for (lane, word) in metadata.iter_mut().enumerate() {
        for n in 0..8 {
            let Some((row, chunk)) = meaning(t, bits, selector, lane as u32, n) else {
                *word = random.bits() as u32;
                continue;
            };
            let place = &mut kept[row as usize][chunk as usize];
            let c = chunk as usize;
            let four = if t == "tf32" {
                let second = random.below(2);
                place.push(2 * c + second as usize);
                [0b0100, 0b1110][second as usize]
            } else {
                let first = random.below(4);
                let second = (first + 1 + random.below(3)) % 4;
                let (first, second) = if ordered {
                    (first.min(second), first.max(second))
                } else {
                    (first, second)
                };
                for p in [first as usize, second as usize] {
                    if width(t) == 4 {
                        place.extend([8 * c + 2 * p, 8 * c + 2 * p + 1]);
                    } else {
                        place.push(4 * c + p);
                    }
                }
                first as u32 | (second as u32) << 2
            };
            *word |= four << (4 * n);
        }
    }
    Sparse {
        columns: kept.into_iter().map(|row| row.concat()).collect(),
        metadata,
    }
}
