//! Where a buffer of shared memory keeps its elements: what its layout says, for all threads at once, and computed once for each element that is asked
//! for by itself.

use layout_core::Swizzled;

use crate::prove::algebra::numbers::Num;
use crate::quick::QuickMap;

/// Elements of the largest buffer whose offsets are kept.
const MOST: i64 = 1 << 18;

/// The offsets of a buffer's elements, in bytes.
pub(in crate::prove) struct Offsets {
    layout: Swizzled,
    /// Elements along each mode; none where that is not a constant.
    extents: Vec<Option<i64>>,
    /// By the elements' numbers, the last mode fastest; empty for a buffer that is too large or of unknown size.
    known: Vec<Option<i64>>,
    /// The extents and strides of each mode's leaves.
    leaves: Vec<Vec<(i64, i64)>>,
    /// What the swizzle makes of the low bits that it reads and changes.
    swizzled: QuickMap<Num, Num>,
}

impl Offsets {
    pub(in crate::prove) fn of(layout: &Swizzled, extents: &[Option<i64>]) -> Self {
        let size = extents
            .iter()
            .try_fold(1i64, |size, n| size.checked_mul((*n)?));
        let size = size.filter(|n| (0..=MOST).contains(n)).unwrap_or(0);
        Self {
            layout: *layout,
            extents: extents.to_vec(),
            known: vec![None; size as usize],
            leaves: leaves(layout),
            swizzled: QuickMap::default(),
        }
    }

    /// The offsets of an element of each thread; none where the layout is not known mode by mode. The coordinates must be inside.
    pub(in crate::prove) fn of_numbers(&mut self, at: &[Num]) -> Option<Num> {
        if self.leaves.len() != at.len() {
            return None;
        }
        let mut sum = Num::same(self.layout.offset());
        for (&k, leaves) in at.iter().zip(&self.leaves) {
            // The digits of the coordinate, the first leaf's fastest.
            let mut rest = k;
            for (place, &(extent, stride)) in leaves.iter().enumerate() {
                let last = place + 1 == leaves.len();
                let digit = if last { rest } else { remainder(rest, extent) };
                sum = sum.add(digit.scale(stride));
                if !last {
                    rest = quotient(rest, extent);
                }
            }
        }
        let swizzle = self.layout.swizzle();
        let low = sum.low(swizzle.width());
        let apply = || low.map(|x| swizzle.apply(x));
        let swizzled = *self.swizzled.entry(low).or_insert_with(apply);
        Some(sum.add(low.scale(-1)).add(swizzled))
    }

    /// The offset of an element.
    pub(in crate::prove) fn at(&mut self, at: &[i64]) -> i64 {
        let number = at.iter().zip(&self.extents).try_fold(0, |number, (&k, n)| {
            let n = n.filter(|n| (0..*n).contains(&k))?;
            Some(number * n + k)
        });
        let known = number.and_then(|n| self.known.get_mut(n as usize));
        match known {
            Some(known) => *known.get_or_insert_with(|| self.layout.at(at)),
            None => self.layout.at(at),
        }
    }

    /// So many elements from one on follow each other along a mode, `bytes` apart.
    pub(in crate::prove) fn are_neighbours(
        &mut self,
        at: &mut [i64],
        count: i64,
        bytes: i64,
    ) -> bool {
        let start = self.at(at);
        (0..at.len()).any(|mode| {
            let first = at[mode];
            let fits = self.extents[mode].is_none_or(|n| first + count <= n);
            let all = fits
                && (1..count).all(|v| {
                    at[mode] = first + v;
                    self.at(at) == start + v * bytes
                });
            at[mode] = first;
            all
        })
    }
}

/// The extents and strides of the leaves of each mode; nothing where the layout does not say.
fn leaves(layout: &Swizzled) -> Vec<Vec<(i64, i64)>> {
    let plain = layout.layout();
    let mode = |i| {
        let mode = plain.get(i).ok()?;
        Some((0..mode.leaves()).map(|j| mode.leaf(j)).collect())
    };
    let all: Option<Vec<_>> = (0..plain.rank()).map(mode).collect();
    all.unwrap_or_default()
}

fn remainder(x: Num, by: i64) -> Num {
    if by.count_ones() == 1 {
        x.low(by.trailing_zeros())
    } else {
        x.map(|x| x.rem_euclid(by))
    }
}

fn quotient(x: Num, by: i64) -> Num {
    if by.count_ones() == 1 {
        x.shr(by.trailing_zeros())
    } else {
        x.map(|x| x.div_euclid(by))
    }
}

#[cfg(test)]
mod tests {
    use super::{Num, Offsets};
    use layout_core::Swizzled;

    #[test]
    fn offsets_of_all_threads_are_the_layouts() {
        for text in [
            "Sw<2,4,3> o (8,32):(64,2)",
            "Sw<3,3,3> o 5 o ((2,4),(3,2,5)):((1,40),(8,2,160))",
            "((3,5),16):((16,48),1)",
        ] {
            let layout = Swizzled::parse(text).expect("a layout");
            let shape = [0, 1].map(|i| layout.get(i).expect("a mode").size());
            let extents = shape.map(Some);
            let mut offsets = Offsets::of(&layout, &extents);
            let [m, n] = shape;
            for moved in 0..n {
                let at = |i: i64| [i % m, (i / m + moved) % n];
                let each = |mode: usize| Num::each((0..m * n).map(|i| at(i)[mode]).collect());
                let all = offsets.of_numbers(&[each(0), each(1)]).expect("two modes");
                for i in 0..m * n {
                    assert_eq!(all.at(i as usize), layout.at(&at(i)), "{text} {i}");
                }
            }
        }
    }

    #[test]
    fn offsets_are_the_layouts() {
        let layout = Swizzled::parse("Sw<2,4,3> o (8,32):(64,2)").expect("a layout");
        for extents in [[Some(8), Some(32)], [Some(8), None]] {
            let mut offsets = Offsets::of(&layout, &extents);
            for at in (0..512).map(|i| [i % 8, i / 8 % 32]) {
                assert_eq!(offsets.at(&at), layout.at(&at), "{at:?}");
            }
            // A swizzle of 16-byte pieces keeps 8 elements of 2 bytes together, if they begin at one.
            assert!(offsets.are_neighbours(&mut [3, 8], 8, 2));
            assert!(!offsets.are_neighbours(&mut [3, 4], 8, 2));
            // Nothing follows the last column.
            assert!(!Offsets::of(&layout, &[Some(8), Some(32)]).are_neighbours(&mut [0, 31], 2, 2));
        }
    }
}
