//! The sum of powers of a row that is read tile by tile: each thread keeps a running maximum and the sum that belongs to it.

use std::f32::consts::LOG2_E;

use layout_codegen::ir::Kernel;
use layout_codegen::value::{F32, Variable};
use layout_codegen::view::{Combine, Fragment, ViewError};
use layout_core::Layout;

/// exp(x − m), by a power of two.
pub(crate) fn exp(k: &mut Kernel, x: F32, m: F32) -> F32 {
    x.sub(k, m).mul(k, LOG2_E).exp2(k)
}

/// The maximum m of the elements of a thread so far, and the sum of exp(x − m).
pub(crate) struct Online {
    most: Variable<f32>,
    sum: Variable<f32>,
}

impl Online {
    /// Of no elements. The maximum is the least number and not −∞, so that −∞ − m is −∞ in a thread that has nothing else.
    pub(crate) fn new(k: &mut Kernel) -> Self {
        Self {
            most: k.variable(F32::from(f32::MIN)),
            sum: k.variable(F32::from(0.0)),
        }
    }

    /// Adds the elements of a tile.
    pub(crate) fn add(&self, k: &mut Kernel, x: &Fragment) -> Result<(), ViewError> {
        let (old, here) = (self.most.get(k), x.combine(k, Combine::Max)?);
        let m = old.max(k, here);
        let e = x.map(k, |k, x| exp(k, x, m))?;
        let (rescale, here) = (exp(k, old, m), e.combine(k, Combine::Add)?);
        let more = self.sum.get(k).fma(k, rescale, here);
        self.sum.set(k, more);
        self.most.set(k, m);
        Ok(())
    }

    /// The maximum and the sum over a group of threads, by the layout from threads to groups.
    pub(crate) fn total(&self, k: &mut Kernel, groups: &Layout) -> Result<[F32; 2], ViewError> {
        let own = [self.most.get(k), self.sum.get(k)];
        total(k, own, groups)
    }
}

/// The maximum of the maxima of a group of threads, and the sum of their sums of powers, each of which belongs to its thread's maximum.
pub(crate) fn total(
    k: &mut Kernel,
    [most, sum]: [F32; 2],
    groups: &Layout,
) -> Result<[F32; 2], ViewError> {
    let m = k.reduce(most, groups, Combine::Max)?;
    let rescale = exp(k, most, m);
    let sum = sum.mul(k, rescale);
    Ok([m, k.reduce(sum, groups, Combine::Add)?])
}
