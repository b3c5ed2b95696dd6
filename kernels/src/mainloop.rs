//! The main loop of products by `wgmma` whose operands may have scales: what [`block_scaled`](mod@crate::block_scaled) and [`grouped`](mod@crate::grouped) have in common.
//!
//! ```text
//! none, row,row              sums += a·bᵀ                           one step's products are issued while the last ones run
//! 1x128,128x128              partial = a·bᵀ of 128 of k             sums = fma(partial, scale_a[row]·scale_b, sums)
//! 1x128,1x128                                                       sums = fma(partial·scale_a[row], scale_b[column], sums)
//! ```
//!
//! Scales of 1×128 come by TMA with the tiles of their step, in rings that each block of a cluster has for itself. A load from memory would take longer than a step. The scale of a block of b is
//! one number for all threads, which is loaded a step before it is needed.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::pipeline::{Ring, Staged, Stages};
use layout_codegen::value::F32;
use layout_codegen::view::{Fragment, Partition, View, ViewError};
use layout_core::{Layout, TiledMma, atoms};

use crate::KernelError;
use crate::block_scaled::Scales;

/// Bytes of a row of a stage.
const ROW: i64 = 128;

/// The rings and the MMA of a tile.
pub(crate) struct MainLoop {
    scales: Option<Scales>,
    tile: [i64; 2],
    /// Elements of a stage along k.
    pub(crate) depth: i64,
    /// A warpgroup for each 64 rows.
    pub(crate) mma: TiledMma,
    /// The tiles of a and b.
    pub(crate) ring: Ring<'static, 2>,
    /// The scales of a step: those of rows of a, and of b.
    of_scales: Vec<Ring<'static, 1>>,
}

impl MainLoop {
    /// For tiles of `m` × `n` of c, in so many stages.
    pub(crate) fn declare(
        k: &mut Kernel,
        element: Element,
        scales: Option<Scales>,
        [m, n, stages]: [i64; 3],
    ) -> Result<Self, KernelError> {
        let scalar = match element {
            Element::E4m3 => atoms::Scalar::E4m3,
            Element::E5m2 => atoms::Scalar::E5m2,
            _ => atoms::Scalar::Bf16,
        };
        let depth = ROW / i64::from(element.bytes());
        let atom = atoms::wgmma(n, scalar, atoms::Scalar::F32)?;
        let mma = TiledMma::new(atom, &Layout::flat(&[m / 64, 1, 1], &[1, 0, 0])?)?;
        let staged = [("tile_a", m), ("tile_b", n)]
            .map(|(name, rows)| Staged::new(name, element, [rows, depth], &[]));
        let vectors: &[_] = match scales {
            None | Some(Scales::Rows) => &[],
            Some(Scales::Blocks) => &[("scales_a", m)],
            Some(Scales::Rows128) => &[("scales_a", m), ("scales_b", n)],
        };
        // Partial sums are waited for in their own step.
        let lag = i64::from(vectors.is_empty());
        let ring = k.tma_ring(Stages::new(stages).lag(lag), staged)?;
        let of_scales = vectors.iter().map(|&(name, width)| {
            let staged = [Staged::new(name, Element::F32, [1, width], &[])];
            k.tma_ring(Stages::new(stages).per_block(), staged)
        });
        let of_scales = of_scales.collect::<Result<Vec<_>, ViewError>>()?;
        Ok(Self {
            scales,
            tile: [m, n],
            depth,
            mma,
            ring,
            of_scales,
        })
    }

    /// The producer's part for the scales of a step: `vector` gives the tile, 1 × rows, of those of a (0) or b (1).
    pub(crate) fn load_scales(
        &self,
        k: &mut Kernel,
        (before, step): (Expr, Expr),
        vector: impl Fn(&mut Kernel, usize) -> Result<View, ViewError>,
    ) -> Result<(), ViewError> {
        let index = k.add(before, step);
        let mut rings = (0..).zip(&self.of_scales);
        rings.try_for_each(|(operand, ring)| {
            k.fill_stage(ring, index, step, |k, [to]| {
                let from = vector(k, operand)?;
                k.tma_load(&from, &to)
            })
        })
    }

    /// The consumers' part: the sums of a tile over so many steps, with the scales of blocks. `to` is the thread's share of a tile of c, and `of_block` loads the scale of a block of b.
    pub(crate) fn sums(
        &self,
        k: &mut Kernel,
        (before, steps): (Expr, Expr),
        (to, thread): (&Partition, Expr),
        of_block: impl Fn(&mut Kernel, Expr) -> Result<F32, ViewError>,
    ) -> Result<Fragment, ViewError> {
        let sums = k.accumulators(&self.mma, self.tile, thread)?;
        if self.of_scales.is_empty() {
            k.consume(&self.ring, before, steps, |k, [a, b], _| {
                k.gemm(&self.mma, &a, &b, &sums)
            })?;
            return Ok(sums);
        }
        let zero = k.constant(0);
        let of_b = k.variable(F32::from(1.0));
        if self.scales == Some(Scales::Blocks) {
            let first = of_block(k, zero)?;
            of_b.set(k, first);
        }
        k.consume(&self.ring, before, steps, |k, [a, b], step| {
            let partial = k.accumulators(&self.mma, self.tile, thread)?;
            k.gemm(&self.mma, &a, &b, &partial)?;
            let index = k.add(before, step);
            let scales = self.of_scales.iter().enumerate().map(|(operand, ring)| {
                let [scales] = k.arrived(ring, index, step)?;
                let scales = scales.slice(k, &[zero])?;
                let scales = scales.tile(k, &[self.tile[operand]], &[zero])?;
                let scales = to.along(k, operand, &scales)?;
                // A thread has pairs of columns.
                let scales = if operand == 1 {
                    scales.vectors(k, 2)?
                } else {
                    scales
                };
                let scales = k.load_fragment(&scales)?;
                k.release(ring, index)?;
                Ok(scales)
            });
            let scales = scales.collect::<Result<Vec<_>, ViewError>>()?;
            k.wait_wgmma(0);
            let add =
                |k: &mut Kernel, sum: F32, partial: F32, scale: F32| partial.fma(k, scale, sum);
            if let [of_a, of_b] = &scales[..] {
                let partial = partial.zip(k, of_a, |k, sum, scale| sum.mul(k, scale))?;
                return sums.update_with_both(k, [&partial, of_b], add);
            }
            let one = of_b.get(k);
            let factors = scales[0].map(k, |k, of_a| of_a.mul(k, one))?;
            let next = k.linear(&[(1, step)], 1);
            let next = of_block(k, next)?;
            of_b.set(k, next);
            sums.update_with_both(k, [&partial, &factors], add)
        })?;
        Ok(sums)
    }
}

/// The sums times the scale of their row of a, then that of their row of b: tiles of vectors.
pub(crate) fn scaled(
    k: &mut Kernel,
    mut sums: Fragment,
    to: &Partition,
    scales: &[View; 2],
) -> Result<Fragment, ViewError> {
    for (operand, scales) in scales.iter().enumerate() {
        let scales = to.along(k, operand, scales)?;
        let scales = k.load_fragment(&scales)?;
        sums = sums.zip(k, &scales, |k, sum, scale| sum.mul(k, scale))?;
    }
    Ok(sums)
}
