//! Parts of fragments.

use layout_core::Layout;

use super::Fragment;
use super::holders::Holders;
use crate::ir::{Kernel, Reg};
use crate::value::{F32, Value};
use crate::view::{Combine, ViewError};

impl Fragment {
    /// The fragment cut into `parts` tiles along a mode, without an instruction: each thread's values of a tile are those of the part's fragment. So a long
    /// row is worked off piece by piece, and the weights of a product are taken k step by k step.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let scores = k.accumulators(&mma, [16, 64], lane)?;
    /// let parts = scores.split(1, 4)?;
    /// assert_eq!((parts.len(), parts[0].shape(), parts[0].values()), (4, &[16, 16][..], 8));
    /// assert!(scores.split(1, 16).is_err()); // a lane has neighbours in two lanes' columns
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] if the parts do not divide the mode, or if it depends on the thread which of them a value is in.
    pub fn split(&self, mode: usize, parts: usize) -> Result<Vec<Self>, ViewError> {
        let refuse = |reason: String| self.refuse("a cut", reason);
        let extent = self.shape.get(mode).copied().unwrap_or(0);
        if parts == 0 || extent == 0 || extent % parts as i64 != 0 {
            return Err(refuse(format!("{parts} parts do not divide mode {mode}")));
        }
        let size = extent / parts as i64;
        let mut shape = self.shape.clone();
        shape[mode] = size;
        let modes = Holders::by_mode(&self.shape, &self.tv)?;
        let along = &modes[mode];
        let most = along.threads.iter().max().copied().unwrap_or(0);
        let part_of = |v: usize| along.values[v] / size;
        if (0..along.values.len()).any(|v| along.values[v] % size + most >= size) {
            return Err(refuse(format!(
                "which of {parts} parts along mode {mode} a value is in depends on the thread"
            )));
        }
        // Elements of a part, its first mode fastest.
        let number = |at: &dyn Fn(usize) -> i64| -> i64 {
            let mut stride = 1;
            let mut sum = 0;
            for (m, &n) in shape.iter().enumerate() {
                sum += stride * at(m);
                stride *= n;
            }
            sum
        };
        let threads: Vec<i64> = (0..along.threads.len())
            .map(|t| number(&|m| modes[m].threads[t]))
            .collect();
        let mut all = Vec::new();
        for part in 0..parts as i64 {
            let mine: Vec<usize> = (0..along.values.len())
                .filter(|&v| part_of(v) == part)
                .collect();
            let values: Vec<i64> = mine
                .iter()
                .map(|&v| number(&|m| modes[m].values[v] - if m == mode { part * size } else { 0 }))
                .collect();
            let words = mine.chunks(self.each).map(|word| {
                let whole = word.len() == self.each
                    && word[0].is_multiple_of(self.each)
                    && (word[0]..).zip(word).all(|(i, &v)| i == v);
                whole.then(|| self.registers[word[0] / self.each])
            });
            let words: Option<Vec<Reg>> = words.collect();
            let layouts = layout_of(&threads).zip(layout_of(&values));
            let Some((registers, (threads, values))) = words.zip(layouts) else {
                return Err(refuse(format!(
                    "its values of a part along mode {mode} are no layout of their own"
                )));
            };
            all.push(Self {
                registers,
                shape: shape.clone(),
                tv: Layout::tuple(&[threads, values])?,
                ..self.clone()
            });
        }
        Ok(all)
    }

    /// All values of each thread combined, and nothing exchanged between threads: a part of a reduction that goes over several tiles. Of f32.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let own = sums.combine(&mut k, Combine::Add)?;
    /// // Over the warp.
    /// let all = k.reduce(own, &Layout::parse("32:0")?, Combine::Add)?;
    /// # let _ = all;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than f32.
    #[track_caller]
    pub fn combine(&self, k: &mut Kernel, how: Combine) -> Result<F32, ViewError> {
        k.at_line();
        let values: Vec<F32> = self.typed(k, "a combination")?;
        let registers: Vec<Reg> = values.into_iter().map(|v| v.register(k)).collect();
        let all = how.all(k, crate::ir::Type::F32, &registers);
        Ok(Value::held(k, all))
    }
}

/// The layout with these values in order, if there is one: runs of equal steps, of runs.
pub(super) fn layout_of(list: &[i64]) -> Option<Layout> {
    if *list.first()? != 0 {
        return None;
    }
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    let mut rest = list.to_vec();
    while rest.len() > 1 {
        let step = rest[1];
        let equal = |&i: &usize| rest[i] == step * i as i64;
        let mut run = (0..rest.len()).take_while(equal).count();
        // The longest run that tiles the rest.
        let tiles = |run: usize| {
            rest.len().is_multiple_of(run)
                && rest
                    .chunks(run)
                    .all(|c| (0..).zip(c).all(|(i, &x)| x == c[0] + i * step))
        };
        while run > 1 && !tiles(run) {
            run -= 1;
        }
        if run == 1 {
            return None;
        }
        shape.push(run as i64);
        strides.push(step);
        rest = rest.into_iter().step_by(run).collect();
    }
    if shape.is_empty() {
        return Layout::mode(1, 0).ok();
    }
    Some(Layout::flat(&shape, &strides).ok()?.coalesce())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_the_layout_that_it_lists() {
        for text in [
            "1:0",
            "4:3",
            "(4,8):(1,16)",
            "(2,2,2):(16,256,128)",
            "(8,4):(0,1)",
            "(3,5):(5,1)",
        ] {
            let layout = Layout::parse(text).expect("a layout");
            let list: Vec<i64> = (0..layout.size()).map(|i| layout.index(i)).collect();
            let found = layout_of(&list).expect("found");
            let again: Vec<i64> = (0..found.size()).map(|i| found.index(i)).collect();
            assert_eq!(list, again, "{text}");
        }
        assert!(layout_of(&[0, 1, 3]).is_none() && layout_of(&[1]).is_none());
    }
}
