//! A row-major matrix in memory, as bytes of its element type.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use layout_codegen::plan::Element;

/// A row-major matrix: element (r, c) is `r·ld + c` elements from the start.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The element type.
    pub element: Element,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements from one row to the next.
    pub ld: usize,
    /// The elements, little-endian; the last row ends with its last column.
    pub bytes: Vec<u8>,
}

/// The next number of a splitmix64 sequence (Steele, Lea, Flood 2014): statistically good, and the same everywhere.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Matrix {
    /// A matrix of numbers drawn uniformly from [−1, 1), NaN between the rows.
    pub fn random(element: Element, rows: u64, cols: u64, ld: u64, seed: u64) -> Self {
        let (rows, cols, ld) = (rows as usize, cols as usize, ld as usize);
        let mut state = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        let len = if rows == 0 || cols == 0 {
            0
        } else {
            (rows - 1) * ld + cols
        };
        let size = element.bytes() as usize;
        let mut bytes = vec![0; len * size];
        for (i, slot) in bytes.chunks_exact_mut(size).enumerate() {
            let value = if i % ld < cols {
                (next(&mut state) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
            } else {
                f64::NAN
            };
            encode(element, value, slot);
        }
        Self {
            element,
            rows,
            cols,
            ld,
            bytes,
        }
    }

    /// Every element set to `value`, the gaps between rows too.
    #[must_use]
    pub fn filled(mut self, value: f64) -> Self {
        let size = self.element.bytes() as usize;
        for slot in self.bytes.chunks_exact_mut(size) {
            encode(self.element, value, slot);
        }
        self
    }

    /// Element (r, c).
    pub fn at(&self, r: usize, c: usize) -> f64 {
        let size = self.element.bytes() as usize;
        let start = (r * self.ld + c) * size;
        decode(self.element, &self.bytes[start..start + size])
    }

    /// The elements row by row, without gaps.
    pub fn packed(&self) -> Vec<f64> {
        let rows = if self.cols == 0 { 0 } else { self.rows };
        (0..rows)
            .flat_map(|r| (0..self.cols).map(move |c| self.at(r, c)))
            .collect()
    }

    /// True if the bytes between the rows are those of `before`.
    pub fn gaps_untouched(&self, before: &Self) -> bool {
        let size = self.element.bytes() as usize;
        let row = self.ld * size;
        let used = self.cols * size;
        let both = self
            .bytes
            .chunks(row.max(1))
            .zip(before.bytes.chunks(row.max(1)));
        self.bytes.len() == before.bytes.len()
            && both
                .into_iter()
                .all(|(a, b)| a.get(used..) == b.get(used..))
    }
}

/// The largest magnitude of random integers: sums of 8-bit products stay far inside 32 bits.
const INTEGERS: f64 = 127.0;

fn encode(element: Element, value: f64, slot: &mut [u8]) {
    match element {
        Element::F32 => slot.copy_from_slice(&(value as f32).to_le_bytes()),
        Element::F64 => slot.copy_from_slice(&value.to_le_bytes()),
        Element::F16 => slot.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        Element::Bf16 => slot.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
        Element::E4m3 => slot.copy_from_slice(&[F8E4M3::from_f64(value).to_bits()]),
        Element::E5m2 => slot.copy_from_slice(&[F8E5M2::from_f64(value).to_bits()]),
        // There is no NaN here: gaps hold a value that would be seen.
        Element::S8 => slot.copy_from_slice(&((value * INTEGERS).round() as i8).to_le_bytes()),
        Element::S32 => slot.copy_from_slice(&((value * INTEGERS).round() as i32).to_le_bytes()),
    }
}

fn decode(element: Element, bytes: &[u8]) -> f64 {
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap_or([0xff; N])
    }
    match element {
        Element::F32 => f32::from_le_bytes(array(bytes)).into(),
        Element::F64 => f64::from_le_bytes(array(bytes)),
        Element::F16 => f16::from_le_bytes(array(bytes)).into(),
        Element::Bf16 => bf16::from_le_bytes(array(bytes)).into(),
        Element::E4m3 => F8E4M3::from_bits(array::<1>(bytes)[0]).to_f64(),
        Element::E5m2 => F8E5M2::from_bits(array::<1>(bytes)[0]).to_f64(),
        Element::S8 => i8::from_le_bytes(array(bytes)).into(),
        Element::S32 => i32::from_le_bytes(array(bytes)).into(),
    }
}
