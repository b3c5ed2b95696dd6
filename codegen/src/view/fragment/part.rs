//! Parts of fragments that each thread has already: a tile of the tile, and what a thread's own values come to.
//!
//! Neither of them moves anything between threads. A tile of a fragment is some of its registers; which ones follows from the layout, if all threads agree.
//! A fold combines the values that a thread has along a mode: what is left along that mode is one part for each thread that had some of it, so that sums
//! in a loop are put together once behind it.

use std::collections::BTreeSet;

use layout_core::Layout;

use super::Fragment;
use super::exchange::Combine;
use super::holders::Holders;
use crate::ir::{Kernel, Reg};
use crate::view::ViewError;

impl Fragment {
    /// The tile of `shape` elements at tile coordinates `at`, in the registers that hold it: no instruction.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let scores = k.accumulators(&mma, [16, 64], lane)?;
    /// // Columns 32 to 47: two atoms of C, which are one of A.
    /// let part = scores.tile([16, 16], [0, 2])?;
    /// assert_eq!(part.registers(), &scores.registers()[16..24]);
    /// let (a, b) = (part.convert(&mut k, Element::F16)?, k.shared("b", Element::F16, &"(8,16):(16,1)".parse()?)?);
    /// let b = b.partition_b(&mut k, &mma, lane)?;
    /// let (b, sums) = (k.load_fragment(&b)?, k.accumulators(&mma, [16, 8], lane)?);
    /// k.gemm(&mma, &a, &b, &sums)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for another number of modes, a tile that is not inside, and one of which threads have different values.
    pub fn tile<const N: usize>(&self, shape: [i64; N], at: [i64; N]) -> Result<Self, ViewError> {
        let refuse = |reason: &str| self.refuse("a tile", reason.to_owned());
        let modes = Holders::by_mode(&self.shape, &self.tv)?;
        let inside = |(i, &n): (usize, &i64)| {
            n >= 1 && at[i] >= 0 && at[i].checked_add(1).is_some_and(|j| j * n <= self.shape[i])
        };
        if N != self.shape.len() || !shape.iter().enumerate().all(inside) {
            return Err(refuse("it is not inside"));
        }
        let threads = modes[0].threads.len();
        let has = |thread: usize, value: usize| {
            (0..N).all(|m| modes[m].at(thread, value) / shape[m] == at[m])
        };
        let of = |thread: usize| (0..self.values()).filter(move |&v| has(thread, v));
        let mine: Vec<usize> = of(0).collect();
        if !(1..threads).all(|t| of(t).eq(mine.iter().copied())) {
            return Err(refuse("its threads do not all have the same values of it"));
        }
        let mut registers = Vec::new();
        for word in mine.chunks(self.each) {
            let whole = word[0].is_multiple_of(self.each)
                && word.len() == self.each
                && (word[0]..).zip(word).all(|(i, &v)| i == v);
            if !whole {
                return Err(refuse("it would tear words apart"));
            }
            registers.push(self.registers[word[0] / self.each]);
        }
        // Coordinates in the tile: threads and values add, so either may be looked at alone.
        let place = |thread: usize, value: usize| {
            let strides = shape
                .iter()
                .scan(1, |n, e| Some(std::mem::replace(n, *n * e)));
            let coordinates = (0..N).map(|m| modes[m].at(thread, value) - at[m] * shape[m]);
            coordinates.zip(strides).map(|(c, s)| c * s).sum::<i64>()
        };
        let first = mine.first().map_or(0, |&v| place(0, v));
        let by_thread: Vec<i64> = (0..threads).map(|t| place(t, mine[0]) - first).collect();
        let by_value: Vec<i64> = mine.iter().map(|&v| place(0, v)).collect();
        let layouts = layout_of(&by_thread).zip(layout_of(&by_value));
        let Some((by_thread, by_value)) = layouts else {
            return Err(refuse("the order of its values is no layout"));
        };
        Ok(Self {
            registers,
            shape: shape.into(),
            tv: Layout::tuple(&[by_thread, by_value])?,
            ..self.clone()
        })
    }

    /// What each thread's own values along a mode come to: a fragment whose extent along `mode` is the number of threads that have a part of it, each with
    /// its own. [`Fragment::reduce`] of it is what `reduce` of the whole would be.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let scores = k.accumulators(&mma, [16, 64], lane)?;
    /// // A row is in four lanes.
    /// let parts = scores.fold(&mut k, 1, Combine::Add)?;
    /// assert_eq!((parts.shape(), parts.values()), (&[16, 4][..], 2));
    /// let sums = parts.reduce(&mut k, 1, Combine::Add)?;
    /// assert_eq!((sums.shape(), sums.values()), (&[16, 1][..], 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for elements other than f32 (and s32, for sums and ordinary maxima), for a fragment without that mode or without another, and
    /// for layouts whose threads have different numbers of values along it.
    pub fn fold(&self, k: &mut Kernel, mode: usize, how: Combine) -> Result<Self, ViewError> {
        let refuse = |reason: &str| self.refuse("a fold", reason.to_owned());
        let Some((_, ty)) = how.of(self.element) else {
            return Err(refuse("convert it to f32 first (or sum s32)"));
        };
        if mode >= 2 || self.shape.len() != 2 {
            return Err(refuse("it has two modes, 0 and 1"));
        }
        let modes = Holders::by_mode(&self.shape, &self.tv)?;
        let (axis, other) = (&modes[mode], &modes[1 - mode]);
        // Where threads begin along the mode: their parts, in this order.
        let parts: BTreeSet<i64> = axis.threads.iter().copied().collect();
        let part = |t: usize| parts.range(..axis.threads[t]).count() as i64;
        let mut rows: Vec<i64> = Vec::new();
        let mut registers = Vec::new();
        for &row in &other.values {
            if rows.contains(&row) {
                continue;
            }
            rows.push(row);
            let mine = (0..other.values.len()).filter(|&v| other.values[v] == row);
            let mine: Vec<Reg> = mine.map(|v| self.registers[v]).collect();
            if mine.len() * parts.len() != self.shape[mode] as usize {
                return Err(refuse("its threads do not have each element once"));
            }
            registers.push(how.all(k, ty, &mine));
        }
        let mut shape = self.shape.clone();
        shape[mode] = parts.len() as i64;
        let strides = [1, shape[0]];
        let place = |t: usize| other.threads[t] * strides[1 - mode] + part(t) * strides[mode];
        let by_thread: Vec<i64> = (0..axis.threads.len()).map(place).collect();
        let by_value: Vec<i64> = rows.iter().map(|r| r * strides[1 - mode]).collect();
        let layouts = layout_of(&by_thread).zip(layout_of(&by_value));
        let Some((by_thread, by_value)) = layouts else {
            return Err(refuse("the order of its threads is no layout"));
        };
        Ok(Self {
            registers,
            shape,
            tv: Layout::tuple(&[by_thread, by_value])?,
            ..self.clone()
        })
    }
}

/// The layout with these values, if there is one: runs of runs of equal steps, from 0.
fn layout_of(list: &[i64]) -> Option<Layout> {
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    let mut rest = list.to_vec();
    while rest.len() > 1 {
        let step = rest[1] - rest[0];
        let run = (1..rest.len())
            .take_while(|&i| rest[i] - rest[0] == step * i as i64)
            .count()
            + 1;
        let run = (1..=run).rev().find(|&n| rest.len().is_multiple_of(n))?;
        // A step that only the first pair has: runs of two.
        shape.push(run as i64);
        strides.push(step);
        rest = rest.into_iter().step_by(run).collect();
        if run == 1 {
            return None;
        }
    }
    if shape.is_empty() {
        (shape, strides) = (vec![1], vec![0]);
    }
    let layout = Layout::flat(&shape, &strides).ok()?;
    let same =
        layout.size() == list.len() as i64 && (0..).zip(list).all(|(i, &x)| layout.index(i) == x);
    same.then(|| layout.coalesce())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_layouts() {
        for text in [
            "8:1",
            "(4,8):(16,1)",
            "(2,2,8):(1,8,16)",
            "(2,3):(0,5)",
            "1:0",
        ] {
            let layout = Layout::parse(text).expect("a layout");
            let list: Vec<i64> = (0..layout.size()).map(|i| layout.index(i)).collect();
            let found = layout_of(&list).expect("found");
            assert!(
                (0..layout.size()).all(|i| found.index(i) == list[i as usize]),
                "{text}: {found}"
            );
        }
        assert!(layout_of(&[0, 1, 3]).is_none());
        assert!(layout_of(&[1, 2]).is_none());
    }
}
