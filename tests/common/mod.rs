//! Random problems, the same on every machine and in every run.

#![allow(dead_code)] // Each test binary uses its part.

#[cfg(all(feature = "host", feature = "emulator"))]
pub(crate) mod emulated;
pub(crate) mod mma;
#[cfg(all(feature = "host", feature = "emulator"))]
pub(crate) mod mutant;
pub(crate) mod ptx;
pub(crate) mod text;

use std::io::Write as _;

use tilewright::kernels::gemm::{Gemm, Operands, Trans};

/// A splitmix64 sequence (Steele, Lea, Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// α or β: 0 and 1 now and then, else anything in [−2, 2).
    pub(crate) fn scalar(&mut self) -> f64 {
        match self.below(8) {
            0 => 0.0,
            1 => 1.0,
            _ => (self.next() >> 11) as f64 / (1u64 << 51) as f64 - 2.0,
        }
    }

    /// A leading dimension for rows of `row` elements: odd twice in three times, else a multiple of 4, which vector loads need.
    pub(crate) fn leading_dimension(&mut self, row: u64) -> u64 {
        let least = row.max(1) + self.below(10);
        if self.below(3) == 0 {
            least.next_multiple_of(4)
        } else {
            least | 1
        }
    }

    /// A problem with m, n and k in `0..200` and rows further apart than they are long.
    pub(crate) fn problem(&mut self, operands: Operands) -> Gemm {
        let [m, n, k] = [(); 3].map(|()| self.below(200));
        let row_a = if operands.a == Trans::N { k } else { m };
        let row_b = if operands.b == Trans::N { n } else { k };
        Gemm {
            m,
            n,
            k,
            operands,
            lda: self.leading_dimension(row_a),
            ldb: self.leading_dimension(row_b),
            ldc: self.leading_dimension(n),
            alpha: self.scalar(),
            beta: self.scalar(),
            ..Gemm::packed(m, n, k, operands)
        }
    }
}

/// `count` problems, the four transposes in turn.
pub(crate) fn problems(count: usize, seed: u64) -> Vec<Gemm> {
    let mut random = Random::new(seed);
    let operands = Operands::ALL.into_iter().cycle();
    operands
        .take(count)
        .map(|operands| random.problem(operands))
        .collect()
}

/// Says something that the test runner does not capture: a test that cannot run must not look like one that passed.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
