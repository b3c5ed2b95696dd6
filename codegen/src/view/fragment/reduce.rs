//! Reductions along a mode of a fragment, and over the threads that a layout repeats.

use std::collections::BTreeSet;

use layout_core::Layout;

use super::exchange::{Combine, Exchange};
use super::holders::Holders;
use super::{Fragment, along};
use crate::ir::{Kernel, Reg};
use crate::value::{F32, Value};
use crate::view::ViewError;
use crate::view::partition::by_mode;

impl Fragment {
    /// All elements along a mode combined: a fragment whose extent along `mode` is 1, the same in all threads that had a part of it.
    ///
    /// Which lanes and warps have parts follows from the layout: values of a thread are combined first, then lanes by shuffles along exactly the bits
    /// that move along `mode`, then warps through shared memory. Threads that hold the same elements are counted once.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::Combine;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(4,1,1):(1,0,0)")?)?;
    /// let thread = k.thread();
    /// let scores = k.accumulators(&mma, [64, 64], thread)?;
    /// // A warp has whole rows, and a row is in four lanes: two shuffles for each of two rows.
    /// let maxima = scores.reduce(&mut k, 1, Combine::Max)?;
    /// assert_eq!((maxima.shape(), maxima.values()), (&[64, 1][..], 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for elements other than f32 (and s32, for sums and ordinary maxima), for a mode that the fragment does not have, and for layouts
    /// of which a bit of the thread moves along two modes.
    #[track_caller]
    pub fn reduce(&self, k: &mut Kernel, mode: usize, how: Combine) -> Result<Self, ViewError> {
        k.at_line();
        self.own(k)?;
        let refuse = |reason: String| self.refuse("a reduction", reason);
        let Some((_, ty)) = how.of(self.element) else {
            return Err(refuse(
                "convert it to f32 first (or sum s32, or take their maxima)".to_owned(),
            ));
        };
        let modes = self.shape.len();
        if mode >= modes || modes > 2 {
            return Err(refuse(format!("mode {mode} of {modes}: it has one or two")));
        }
        let maps = by_mode(&self.shape, &self.tv)?;
        let axis = Holders::of(&maps[mode])?;
        let kept = match maps.get(1 - mode.min(1)).filter(|_| modes == 2) {
            Some(map) => *map,
            None => Layout::tuple(&[
                Layout::mode(maps[mode].get(0)?.size(), 0)?,
                Layout::mode(maps[mode].get(1)?.size(), 0)?,
            ])?,
        };
        let tv = along(&kept)?;
        let (other, result) = (Holders::of(&kept)?, Holders::of(&tv)?);
        let exchange = Exchange::new(&axis.threads, &other.threads).map_err(refuse)?;
        let mut registers = Vec::new();
        for &at in &result.values {
            let mine: Vec<usize> = (0..other.values.len())
                .filter(|&v| other.values[v] == at)
                .collect();
            let places: BTreeSet<i64> = mine.iter().map(|&v| axis.values[v]).collect();
            if places.len() != mine.len()
                || (places.len() * exchange.parts()) as i64 != self.shape[mode]
            {
                return Err(refuse(format!(
                    "its threads do not hold each element along mode {mode} once"
                )));
            }
            let values: Vec<Reg> = mine.iter().map(|&v| self.registers[v]).collect();
            registers.push(how.all(k, ty, &values));
        }
        if exchange.parts() > 1 {
            self.whole_warps(k, exchange.crosses_warps())?;
        }
        let registers = exchange.combine(k, how, (self.element, ty), &registers)?;
        let registers = self.apart(k, registers);
        let mut shape = self.shape.clone();
        shape[mode] = 1;
        Ok(Self {
            registers,
            shape,
            tv,
            origin: k.here(),
            ..self.clone()
        })
    }

    /// The registers, those of this fragment copied: what is set through one fragment is not seen in the other.
    pub(super) fn apart(&self, k: &mut Kernel, mut registers: Vec<Reg>) -> Vec<Reg> {
        for register in &mut registers {
            if self.registers.contains(register) {
                let to = k.reg(register.class);
                k.set(super::memory::type_of(to.class), to, *register);
                *register = to;
            }
        }
        registers
    }

    /// The number of its thread begins with the lane, and is the block's if there are several warps. Within warps that of a role will do: roles begin with a warp.
    pub(super) fn whole_warps(&self, k: &mut Kernel, across: bool) -> Result<(), ViewError> {
        if !across && k.thread_of_role() == Some(self.thread) {
            return Ok(());
        }
        let (thread, lane) = (k.thread(), k.lane());
        let threads = self.tv.get(0)?.size();
        let mine = k.pool.rem(self.thread, 32);
        if mine == lane && (threads <= 32 || self.thread == thread) {
            return Ok(());
        }
        Err(self.refuse(
            "an exchange between threads",
            "it is shared out by another number than the lane (`Kernel::lane`) or the thread (`Kernel::thread`)".to_owned(),
        ))
    }

    pub(super) fn refuse(&self, operation: &'static str, reason: String) -> ViewError {
        ViewError::Fragment {
            operation,
            fragment: self.describe(),
            reason,
        }
    }
}

impl Kernel {
    /// One value of each thread combined over the threads that a layout repeats: `groups` maps the thread to its group, and all threads of a group
    /// get what the group has in all.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    /// use layout_codegen::view::Combine;
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let x: F32 = k.argument("x");
    /// // Over the block: shuffles, then shared memory. Over each warp: shuffles.
    /// let block = k.reduce(x, &Layout::parse("128:0")?, Combine::Add)?;
    /// let warp = k.reduce(x, &Layout::parse("(32,4):(0,1)")?, Combine::Add)?;
    /// # let _ = (block, warp);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for a layout of another number of threads, and for groups that are not made of bits of the thread.
    #[track_caller]
    pub fn reduce(&mut self, value: F32, groups: &Layout, how: Combine) -> Result<F32, ViewError> {
        self.at_line();
        let refuse = |reason: String| ViewError::Fragment {
            operation: "a reduction",
            fragment: format!("one value a thread over the groups {groups}"),
            reason,
        };
        let thread = self.thread();
        let threads = self.pool.facts(thread).hi + 1;
        if threads != i128::from(groups.size()) {
            return Err(refuse(format!("the block has {threads} threads")));
        }
        let group: Vec<i64> = (0..groups.size()).map(|t| groups.index(t)).collect();
        let place = |t: usize| group[..t].iter().filter(|&&g| g == group[t]).count() as i64;
        let axis: Vec<i64> = (0..group.len()).map(place).collect();
        let exchange = Exchange::new(&axis, &group).map_err(refuse)?;
        let size = axis.iter().max().map_or(1, |&last| last as usize + 1);
        if exchange.parts() != size {
            return Err(refuse(
                "its groups are of several sizes, or no sums over the bits of the thread"
                    .to_owned(),
            ));
        }
        let Some((_, ty)) = how.of(crate::ir::Element::F32) else {
            return Err(refuse("of f32".to_owned()));
        };
        let value = value.register(self);
        let all = exchange.combine(self, how, (crate::ir::Element::F32, ty), &[value])?;
        Ok(Value::held(self, all[0]))
    }
}
