//! Row-major matrices in memory, one or a batch, as bytes of their element type.
//!
//! ```text
//! element (r, c) of matrix b lies b·stride + r·ld + c elements from the start:
//!
//! rows 2, cols 3, ld 4, count 2, stride 9:   x x x . x x x . . x x x . x x x
//!                                            └─ matrix 0 ─┘    └─ matrix 1 ┘
//! ```
//!
//! The dots are gaps: NaN where the type has one, so that a kernel that reads them gives NaN, and one that writes them is seen.

use std::ops::Range;

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use layout_codegen::ir::Element;

/// Row-major matrices of one shape at regular distances.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The element type.
    pub element: Element,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    /// Elements from one row to the next.
    pub ld: usize,
    /// How many there are.
    pub count: usize,
    /// Elements from one matrix to the next; 0 if all are the same.
    pub stride: usize,
    /// The elements, little-endian; the last row of the last matrix ends with its last column.
    pub bytes: Vec<u8>,
}

/// The next number of a splitmix64 sequence (Steele, Lea, Flood 2014): statistically good, and the same everywhere.
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Matrix {
    /// One matrix of numbers drawn uniformly from [−1, 1), integers from −127 to 127; NaN between the rows, or the smallest integer.
    pub fn random(element: Element, rows: u64, cols: u64, ld: u64, seed: u64) -> Self {
        Self::random_batch(element, (rows, cols, ld), (1, 0), seed)
    }

    /// `count` matrices `stride` elements apart, random as [`Matrix::random`]; a shape is rows, columns and leading dimension.
    pub fn random_batch(
        element: Element,
        (rows, cols, ld): (u64, u64, u64),
        (count, stride): (u64, u64),
        seed: u64,
    ) -> Self {
        let (rows, cols, ld) = (rows as usize, cols as usize, ld as usize);
        let (count, stride) = (count as usize, stride as usize);
        let len = if rows == 0 || cols == 0 || count == 0 {
            0
        } else {
            (count - 1) * stride + (rows - 1) * ld + cols
        };
        let mut matrix = Self {
            element,
            rows,
            cols,
            ld,
            count,
            stride,
            bytes: vec![0; len * element.bytes() as usize],
        }
        .filled(f64::NAN);
        let scale = if element.is_integer() { INTEGERS } else { 1.0 };
        let mut state = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        for row in matrix.row_ranges() {
            for slot in matrix.bytes[row].chunks_exact_mut(element.bytes() as usize) {
                let value = (next(&mut state) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
                encode(element, value * scale, slot);
            }
        }
        matrix
    }

    /// The bytes of each row, in the order in which they lie in memory.
    fn row_ranges(&self) -> Vec<Range<usize>> {
        let size = self.element.bytes() as usize;
        if self.cols == 0 {
            return Vec::new();
        }
        // A matrix that serves for all products of a batch lies there once.
        let count = if self.stride == 0 {
            self.count.min(1)
        } else {
            self.count
        };
        let rows = |b: usize| (0..self.rows).map(move |r| b * self.stride + r * self.ld);
        let mut starts: Vec<usize> = (0..count).flat_map(rows).collect();
        starts.sort_unstable();
        starts
            .into_iter()
            .map(|start| start * size..(start + self.cols) * size)
            .collect()
    }

    /// Every element set to `value`, the gaps too. Integers, which have no NaN, take the smallest there is, which is never drawn.
    #[must_use]
    pub fn filled(mut self, value: f64) -> Self {
        let size = self.element.bytes() as usize;
        for slot in self.bytes.chunks_exact_mut(size) {
            encode(self.element, value, slot);
        }
        self
    }

    /// Matrix `b` of a batch alone, with the gaps between its rows.
    #[must_use]
    pub fn matrix(&self, b: usize) -> Self {
        let size = self.element.bytes() as usize;
        let len = match (self.rows, self.cols) {
            (0, _) | (_, 0) => 0,
            (rows, cols) => ((rows - 1) * self.ld + cols) * size,
        };
        let start = (b * self.stride * size).min(self.bytes.len());
        Self {
            count: 1,
            stride: 0,
            bytes: self.bytes[start..][..len].to_vec(),
            ..*self
        }
    }

    /// Element (r, c) of the first matrix.
    pub fn at(&self, r: usize, c: usize) -> f64 {
        let size = self.element.bytes() as usize;
        let start = (r * self.ld + c) * size;
        decode(self.element, &self.bytes[start..start + size])
    }

    /// Sets element (r, c) of the first matrix to the number of its type that is nearest to `value`.
    ///
    /// ```
    /// use tilewright::codegen::ir::Element;
    /// use tilewright::host::Matrix;
    ///
    /// let mut x = Matrix::random(Element::Bf16, 2, 3, 3, 1);
    /// x.set(1, 2, 1.001);
    /// assert_eq!(x.at(1, 2), 1.0);
    /// ```
    pub fn set(&mut self, r: usize, c: usize, value: f64) {
        let size = self.element.bytes() as usize;
        let start = (r * self.ld + c) * size;
        encode(self.element, value, &mut self.bytes[start..start + size]);
    }

    /// The elements of the first matrix row by row, without gaps.
    pub fn packed(&self) -> Vec<f64> {
        let rows = if self.cols == 0 { 0 } else { self.rows };
        (0..rows)
            .flat_map(|r| (0..self.cols).map(move |c| self.at(r, c)))
            .collect()
    }

    /// True if the bytes between the rows, and between the matrices, are those of `before`.
    pub fn gaps_untouched(&self, before: &Self) -> bool {
        if self.bytes.len() != before.bytes.len() {
            return false;
        }
        let mut end = 0;
        self.row_ranges().into_iter().all(|row| {
            let gap = end..row.start.max(end);
            end = row.end.max(end);
            self.bytes[gap.clone()] == before.bytes[gap]
        })
    }
}

/// The largest magnitude of random integers: sums of 8-bit products stay far inside 32 bits.
const INTEGERS: f64 = 127.0;

/// The sums of elements, each rounded to their type.
#[cfg(feature = "emulator")]
pub(super) fn add(element: Element, mut one: Vec<u8>, other: &[u8]) -> Vec<u8> {
    let size = element.bytes() as usize;
    for (slot, other) in one.chunks_exact_mut(size).zip(other.chunks_exact(size)) {
        let sum = decode(element, slot) + decode(element, other);
        match element {
            // Integers wrap around.
            Element::S32 => slot.copy_from_slice(&(sum as i64 as i32).to_le_bytes()),
            _ => encode(element, sum, slot),
        }
    }
    one
}

/// The value that an element has room for: the nearest.
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub(super) fn rounded(element: Element, value: f64) -> f64 {
    let mut slot = [0; 8];
    let slot = &mut slot[..element.bytes() as usize];
    encode(element, value, slot);
    decode(element, slot)
}

fn encode(element: Element, value: f64, slot: &mut [u8]) {
    match element {
        Element::F32 => slot.copy_from_slice(&(value as f32).to_le_bytes()),
        Element::F64 => slot.copy_from_slice(&value.to_le_bytes()),
        Element::F16 => slot.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        Element::Bf16 => slot.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
        Element::E4m3 => slot.copy_from_slice(&[F8E4M3::from_f64(value).to_bits()]),
        Element::E5m2 => slot.copy_from_slice(&[F8E5M2::from_f64(value).to_bits()]),
        // There is no NaN here: the smallest integer is no value that is drawn.
        Element::S8 if value.is_nan() => slot.copy_from_slice(&i8::MIN.to_le_bytes()),
        Element::S32 if value.is_nan() => slot.copy_from_slice(&i32::MIN.to_le_bytes()),
        Element::S8 => slot.copy_from_slice(&(value.round() as i8).to_le_bytes()),
        Element::S32 => slot.copy_from_slice(&(value.round() as i32).to_le_bytes()),
    }
}

/// The value of an element.
pub(super) fn decode(element: Element, bytes: &[u8]) -> f64 {
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
