//! Other orders of blocks and warps than the usual one.
//!
//! A GPU promises no order. With [`crate::Options::schedule`] 0 blocks start in order and warps take long turns from the first to the last; any other number is the seed of
//! an order: blocks are permuted, warps take turns of random lengths in random order, and so do the lanes of a warp that have parted. The same seed gives the
//! same order within each block, so that a finding can be found again; blocks run one after another, so that it is the same for the whole grid.

/// Random numbers of a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule(u64);

impl Schedule {
    /// The schedule of the cluster `index` with a seed; none for seed 0.
    pub(crate) fn new(seed: u64, index: u64) -> Option<Self> {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ index.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        (seed != 0).then_some(Self(state | 1))
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        (bits as usize) % n.max(1)
    }

    /// Instructions of a turn: mostly few.
    pub(crate) fn turn(&mut self) -> u32 {
        const TURNS: [u32; 8] = [1, 2, 3, 7, 20, 100, 1000, 1 << 16];
        TURNS[self.below(TURNS.len())]
    }

    /// The numbers below `n` in some order.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}

/// The cluster that comes at place `place` of `count`.
pub(crate) fn cluster(seed: u64, place: u64, count: u64) -> u64 {
    if seed == 0 || count < 2 {
        return place;
    }
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // A step without a common divisor with `count` visits every cluster once.
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut step = start % count;
    while gcd(step, count) != 1 {
        step += 1;
    }
    let (place, step, count) = (u128::from(place), u128::from(step), u128::from(count));
    ((u128::from(start >> 32) + place * step) % count) as u64
}

#[cfg(test)]
mod tests {
    use super::{Schedule, cluster};

    #[test]
    fn every_cluster_and_warp_comes_once() {
        for seed in 0..50 {
            for count in [1, 2, 6, 97, 1024] {
                let mut seen: Vec<u64> = (0..count).map(|i| cluster(seed, i, count)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..count), "{seed} {count}");
            }
        }
        let mut schedule = Schedule::new(7, 3).expect("a seed");
        let mut order = schedule.order(32);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..32));
        assert!(Schedule::new(0, 3).is_none());
    }
}
