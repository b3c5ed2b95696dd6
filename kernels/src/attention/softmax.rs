//! The online softmax of rows of scores (Milakov and Gimelshein 2018): maxima, sums of weights, and what sums so far shrink by.

use std::f32::consts::{LN_2, LOG2_E};

use layout_codegen::ir::Kernel;
use layout_codegen::value::F32;
use layout_codegen::view::{Combine, Fragment, ViewError};

use super::Attention;

/// Lanes that have a row together, in the fragments of `mma.sync` and of `wgmma`.
const LANES: f32 = 4.0;

/// The constants of a softmax: weights are 2^(scale · score).
pub(super) struct Softmax {
    scale: f32,
    /// With a soft cap, scores become the tanh of their products with this.
    cap: Option<f32>,
}

/// The state of the softmax of rows.
pub(super) struct Rows {
    /// The largest score so far, and the sum of weights in the parts of four lanes.
    max: Fragment,
    total: Fragment,
}

impl Rows {
    /// What the sums are multiplied with, while nothing grows: 1.
    pub(super) fn shrink(&self, k: &mut Kernel) -> Result<Fragment, ViewError> {
        self.max.map(k, |_, _| 1.0.into())
    }
}

impl Softmax {
    pub(super) fn of(what: &Attention) -> Self {
        let factor = 1.0 / (what.head_dim as f32).sqrt();
        Self {
            scale: LOG2_E * what.softcap.unwrap_or(factor),
            cap: what.softcap.map(|most| factor / most),
        }
    }

    /// The state before the first tile, of the rows of `sums`. A sink is a score of the row without a value.
    pub(super) fn rows(
        &self,
        k: &mut Kernel,
        sums: &Fragment,
        sink: Option<F32>,
    ) -> Result<Rows, ViewError> {
        let rows = Rows {
            max: sums.reduce(k, 1, Combine::Max)?,
            total: sums.fold(k, 1, Combine::Add)?,
        };
        let (max, total) = match sink {
            // Its weight is 1, of which each lane has its part.
            Some(sink) => (sink.mul(k, LOG2_E / self.scale), 1.0 / LANES),
            None => (f32::NEG_INFINITY.into(), 0.0),
        };
        rows.max.update(k, |_, _| max)?;
        rows.total.update(k, |_, _| total.into())?;
        Ok(rows)
    }

    /// Scores by their soft cap, if there is one.
    pub(super) fn capped(&self, k: &mut Kernel, scores: &Fragment) -> Result<(), ViewError> {
        match self.cap {
            Some(factor) => scores.update(k, |k, x| x.mul(k, factor).tanh(k)),
            None => Ok(()),
        }
    }

    /// The weights of a tile by its scores, and what the sums so far are multiplied with.
    pub(super) fn weights(
        &self,
        k: &mut Kernel,
        scores: &Fragment,
        rows: &Rows,
    ) -> Result<(Fragment, Fragment), ViewError> {
        let scale = self.scale;
        let weight = |k: &mut Kernel, x: F32, shift: F32| x.fma(k, scale, shift).exp2(k);
        let here = scores.reduce(k, 1, Combine::Max)?;
        let new = here.zip(k, &rows.max, |k, a, b| a.max(k, b))?;
        // −max·scale; 0 where nothing is seen yet, so that −∞ − −∞ does not arise.
        let shift = new.map(k, |k, max| {
            let (none, shift) = (max.eq(k, f32::NEG_INFINITY), max.mul(k, -scale));
            none.select(k, 0.0.into(), shift)
        })?;
        let shrink = rows.max.zip(k, &shift, weight)?;
        rows.max.assign(k, &new)?;
        let weights = scores.zip(k, &shift, weight)?;
        let more = weights.fold(k, 1, Combine::Add)?;
        rows.total
            .update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;
        rows.total
            .update_with(k, &more, |k, sum, more| sum.add(k, more))?;
        Ok((shrink, weights))
    }

    /// Divides the sums of rows by their weights, whose sums it returns.
    pub(super) fn divided(
        k: &mut Kernel,
        sums: &Fragment,
        rows: &Rows,
    ) -> Result<Fragment, ViewError> {
        let total = rows.total.reduce(k, 1, Combine::Add)?;
        let inverse = total.map(k, |k, sum| {
            let (none, inverse) = (sum.eq(k, 0.0), sum.reciprocal(k));
            none.select(k, 0.0.into(), inverse)
        })?;
        sums.update_with(k, &inverse, |k, sum, inverse| sum.mul(k, inverse))?;
        Ok(total)
    }

    /// The logarithm of each row's sum.
    pub(super) fn logarithm(
        &self,
        k: &mut Kernel,
        rows: &Rows,
        total: &Fragment,
    ) -> Result<Fragment, ViewError> {
        rows.max.zip(k, total, |k, max, sum| {
            let log2 = sum.log2(k);
            max.fma(k, self.scale, log2).mul(k, LN_2)
        })
    }
}
