//! Where a buffer of shared memory keeps its elements: what its layout says, computed once for each element that is asked for.

use layout_core::Swizzled;

/// Elements of the largest buffer whose offsets are kept.
const MOST: i64 = 1 << 18;

/// The offsets of a buffer's elements, in bytes.
pub(super) struct Offsets {
    layout: Swizzled,
    /// Elements along each mode; none where that is not a constant.
    extents: Vec<Option<i64>>,
    /// By the elements' numbers, the last mode fastest; empty for a buffer that is too large or of unknown size.
    known: Vec<Option<i64>>,
}

impl Offsets {
    pub(super) fn of(layout: &Swizzled, extents: &[Option<i64>]) -> Self {
        let size = extents
            .iter()
            .try_fold(1i64, |size, n| size.checked_mul((*n)?));
        let size = size.filter(|n| (0..=MOST).contains(n)).unwrap_or(0);
        Self {
            layout: *layout,
            extents: extents.to_vec(),
            known: vec![None; size as usize],
        }
    }

    /// The offset of an element.
    pub(super) fn at(&mut self, at: &[i64]) -> i64 {
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
    pub(super) fn are_neighbours(&mut self, at: &mut [i64], count: i64, bytes: i64) -> bool {
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

#[cfg(test)]
mod tests {
    use super::Offsets;
    use layout_core::Swizzled;

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
