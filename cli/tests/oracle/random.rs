//! Random operands, from a seed. Sizes are at most 36 and strides at most about 20, so that every search stays cheap.

use crate::model::{Function, Layout, Step, Swizzle, Tree};

use Tree::{Int, Tuple};

/// Splitmix64: a seed names a run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `lo` to `hi`, both included.
    pub(crate) fn range(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo + 1) as u64) as i64
    }

    pub(crate) fn one_in(&mut self, n: i64) -> bool {
        self.range(1, n) == 1
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.range(0, from.len() as i64 - 1) as usize]
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.range(0, i as i64) as usize);
        }
    }

    /// Extents whose product is at most `max`.
    pub(crate) fn extents(&mut self, rank: i64, max: i64) -> Vec<i64> {
        let mut left = max;
        let mut extents: Vec<i64> = (0..rank)
            .map(|_| {
                let n = *self.pick(&[1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 8, 9, 12]);
                let n = if n > left {
                    self.range(1, left.min(3))
                } else {
                    n
                };
                left /= n;
                n
            })
            .collect();
        self.shuffle(&mut extents);
        extents
    }

    /// Parentheses around leaves, at most two levels.
    pub(crate) fn nest(&mut self, leaves: &[i64]) -> Tree {
        if leaves.len() == 1 && !self.one_in(6) {
            return Int(leaves[0]);
        }
        let mut parts = Vec::new();
        let mut i = 0;
        while i < leaves.len() {
            let n = if self.one_in(3) {
                self.range(1, 2).min((leaves.len() - i) as i64) as usize
            } else {
                1
            };
            let wrap = n > 1 || self.one_in(8);
            let part: Vec<Tree> = leaves[i..i + n].iter().map(|n| Int(*n)).collect();
            parts.extend(if wrap { vec![Tuple(part)] } else { part });
            i += n;
        }
        Tuple(parts)
    }

    pub(crate) fn shape(&mut self, max: i64) -> Tree {
        let rank = *self.pick(&[1, 1, 2, 2, 2, 3, 3, 4]);
        let extents = self.extents(rank, max);
        self.nest(&extents)
    }

    /// A shape of flat modes.
    pub(crate) fn flat_shape(&mut self, rank: i64, max: i64) -> Tree {
        Tuple(self.extents(rank, max).into_iter().map(Int).collect())
    }

    /// Strides in a random order, each a multiple of what the earlier cover, or padded by a little.
    pub(crate) fn chained(&mut self, extents: &[i64], gap: i64, pad: i64) -> Vec<i64> {
        let mut order: Vec<usize> = (0..extents.len()).collect();
        if !self.one_in(3) {
            self.shuffle(&mut order);
        }
        let mut strides = vec![0; extents.len()];
        let mut covered = if self.one_in(4) {
            self.range(1, gap)
        } else {
            1
        };
        for k in order {
            strides[k] = covered;
            covered *= extents[k];
            if self.one_in(3) {
                covered *= self.range(1, gap);
            }
            if pad > 0 && self.one_in(2) {
                covered += self.range(0, pad);
            }
        }
        strides
    }

    /// A layout with strides of a kind: 0 compact, 1 with gaps, 2 padded, 3 free, 4 with zeros, 5 with negative strides.
    pub(crate) fn layout_of(&mut self, shape: &Tree, kind: i64) -> Layout {
        let extents = shape.leaves();
        let mut strides = match kind {
            0 => self.chained(&extents, 1, 0),
            1 => self.chained(&extents, 3, 0),
            2 => self.chained(&extents, 2, 3),
            3 => extents.iter().map(|_| self.range(0, 20)).collect(),
            _ => self.chained(&extents, 2, 1),
        };
        if kind >= 4 {
            for d in &mut strides {
                if self.one_in(2) {
                    *d = if kind == 4 { 0 } else { -*d };
                }
            }
        }
        Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter()))
    }

    pub(crate) fn layout(&mut self, max: i64) -> Layout {
        let shape = self.shape(max);
        let kind = *self.pick(&[0, 0, 1, 1, 2, 3, 3, 4, 5]);
        self.layout_of(&shape, kind)
    }

    /// A layout without negative strides.
    pub(crate) fn positive(&mut self, max: i64) -> Layout {
        let shape = self.shape(max);
        let kind = *self.pick(&[0, 0, 1, 1, 2, 3, 4]);
        self.layout_of(&shape, kind)
    }

    /// Strides that chain: compact or with gaps.
    pub(crate) fn chain_layout(&mut self, max: i64) -> Layout {
        let shape = self.shape(max);
        let kind = self.range(0, 1);
        self.layout_of(&shape, kind)
    }

    pub(crate) fn swizzle(&mut self) -> Swizzle {
        let b = self.range(0, 3) as u32;
        let m = self.range(0, 2) as u32;
        let s = if b == 0 {
            self.range(0, 3)
        } else {
            self.range(1, 4)
        } as i32;
        Swizzle {
            b,
            m,
            s: if self.one_in(4) { -s } else { s },
        }
    }

    /// `Sw o offset o L`, offset and swizzle each there or not, but one of them.
    pub(crate) fn composed(&mut self, max: i64) -> Function {
        let layout = self.positive(max);
        let mut steps = Vec::new();
        let swizzled = !self.one_in(5);
        if swizzled {
            steps.push(Step::Swizzle(self.swizzle()));
        }
        if !swizzled || self.one_in(3) {
            steps.push(Step::Add(self.range(1, 12)));
        }
        steps.push(Step::Layout(layout));
        Function(steps)
    }
}
