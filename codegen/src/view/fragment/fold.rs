//! What a thread's own values along a mode come to.
//!
//! Nothing moves between threads: what is left along the mode is one part for each thread that had some of it, so that sums that a loop carries are put
//! together once behind it.

use std::collections::BTreeSet;

use layout_core::Layout;

use super::Fragment;
use super::exchange::Combine;
use super::holders::Holders;
use super::split::layout_of;
use crate::ir::{Kernel, Reg};
use crate::view::ViewError;

impl Fragment {
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
    #[track_caller]
    pub fn fold(&self, k: &mut Kernel, mode: usize, how: Combine) -> Result<Self, ViewError> {
        k.at_line();
        self.own(k)?;
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
            registers: self.apart(k, registers),
            shape,
            tv: Layout::tuple(&[by_thread, by_value])?,
            origin: k.here(),
            ..self.clone()
        })
    }
}
