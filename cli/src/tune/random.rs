//! Random problems to measure: what the choice of a plan is held against.
//!
//! Sizes are uniform in their logarithms, so that each octave is as likely as any other. A problem is one of four kinds, and its rows one of
//! three:
//!
//! | kind | share | sizes |
//! |---|---|---|
//! | any | 9 of 20 | m, n, k from 64 to 8192 |
//! | large | 4 of 20 | m, n, k from 1024 to 8192 |
//! | skinny | 4 of 20 | m or n from 8 to 128, the other sizes from 1024 to 8192 |
//! | long sums | 3 of 20 | m, n from 64 to 1024, k from 4096 to 65,536 |
//!
//! | rows | share | |
//! |---|---|---|
//! | whole tiles | 7 of 20 | every size a multiple of 64 |
//! | whole vectors | 9 of 20 | every row a multiple of 16 bytes; one matrix in eight has rows that are further apart than they are long |
//! | odd | 4 of 20 | every size odd: copies of single elements, or packed operands |
//!
//! A problem that would move or multiply too much for a time of about half a millisecond is drawn again.

use tilewright::kernels::gemm::{DataType, Gemm, Operands};

/// The most bytes of operands that are multiplied with each other, m·n·k·(bytes of an element): an H100 takes about half a millisecond for 3·10¹¹.
const MOST_WORK: u64 = 300_000_000_000;

/// The most elements of one matrix.
const MOST_ELEMENTS: u64 = 1 << 26;

/// A splitmix64 sequence (Steele, Lea, Flood 2014): the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A size from `least` to `most`, uniform in its logarithm.
    fn size(&mut self, least: u64, most: u64) -> u64 {
        let at = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let (least, most) = (least as f64, most as f64);
        (least * (most / least).powf(at)).round() as u64
    }
}

/// `count` problems in `data_type` with the given transposes, the same for the same seed; the first of more are the same.
pub(super) fn problems(
    data_type: DataType,
    transposes: &[Operands],
    count: usize,
    seed: u64,
) -> Vec<Gemm> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            loop {
                let problem = problem(&mut random, data_type, transposes);
                if affordable(&problem, data_type) {
                    break problem;
                }
            }
        })
        .collect()
}

/// Whether a product is short and small enough to be measured by many plans.
fn affordable(p: &Gemm, data_type: DataType) -> bool {
    let work = p.m * p.n * p.k * u64::from(data_type.bytes());
    let largest = (p.m * p.k).max(p.k * p.n).max(p.m * p.n);
    work <= MOST_WORK && largest <= MOST_ELEMENTS
}

fn problem(random: &mut Random, data_type: DataType, transposes: &[Operands]) -> Gemm {
    let operands = transposes[random.below(transposes.len() as u64) as usize];
    let mut sizes = match random.below(20) {
        0..9 => [(); 3].map(|()| random.size(64, 8192)),
        9..13 => [(); 3].map(|()| random.size(1024, 8192)),
        13..17 => {
            let mut sizes = [(); 3].map(|()| random.size(1024, 8192));
            sizes[random.below(2) as usize] = random.size(8, 128);
            sizes
        }
        _ => [
            random.size(64, 1024),
            random.size(64, 1024),
            random.size(4096, 65_536),
        ],
    };
    let vector = 16 / u64::from(data_type.bytes());
    match random.below(20) {
        0..7 => sizes = sizes.map(|size| size.next_multiple_of(64)),
        7..16 => {
            sizes = sizes.map(|size| size.next_multiple_of(vector));
            let [m, n, k] = sizes;
            let mut problem = Gemm::packed(m, n, k, operands);
            for ld in [&mut problem.lda, &mut problem.ldb, &mut problem.ldc] {
                if random.below(8) == 0 {
                    *ld += vector * (1 + random.below(16));
                }
            }
            return problem;
        }
        _ => sizes = sizes.map(|size| size | 1),
    }
    let [m, n, k] = sizes;
    Gemm::packed(m, n, k, operands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::kernels::gemm::Trans;

    #[test]
    fn problems_are_the_same_for_a_seed_and_cover_what_the_table_says() {
        for data_type in [DataType::F16, DataType::Tf32, DataType::S8] {
            let all = problems(data_type, &Operands::ALL, 200, 1);
            assert_eq!(all[..20], problems(data_type, &Operands::ALL, 20, 1)[..]);
            assert_ne!(all, problems(data_type, &Operands::ALL, 200, 2));
            let share = |holds: &dyn Fn(&Gemm) -> bool| all.iter().filter(|p| holds(p)).count();
            assert_eq!(share(&|p| affordable(p, data_type)), 200);
            for operands in Operands::ALL {
                assert!((25..75).contains(&share(&|p| p.operands == operands)));
            }
            let odd = |p: &Gemm| p.m % 2 == 1 && p.n % 2 == 1 && p.k % 2 == 1;
            assert!((20..60).contains(&share(&odd)));
            let skinny = |p: &Gemm| p.m.min(p.n) <= 128 && p.m.max(p.n).min(p.k) >= 1024;
            assert!((25..70).contains(&share(&skinny)));
            assert!(share(&|p| p.k > 8192) >= 10);
            let apart = |p: &Gemm| {
                let row = if p.operands.a == Trans::N { p.k } else { p.m };
                p.lda > row
            };
            assert!(share(&apart) >= 4);
            // Rows that are no vectors are those of odd sizes.
            for p in &all {
                let whole = p.widths(data_type)[..2].iter().all(|&width| width == 16);
                assert_eq!(whole, !odd(p), "{p:?}");
            }
        }
    }
}
