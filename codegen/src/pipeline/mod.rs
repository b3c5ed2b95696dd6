//! Pipelines: tiles on their way through shared memory while others are computed with.
//!
//! A [`Ring`] is stages of shared memory, each with the tiles of one step, and the function that fills a stage. [`Kernel::pipeline`] runs the steps of
//! a loop: it fills the first stages ahead, and in each step the body asks for the tiles of one ring after the other
//! ([`Step::arrived`]). There the layer waits for exactly the copies that are needed, puts the one barrier that both shows the tiles to all
//! threads and says that nobody reads the stage before any more, and refills that stage. So a body has no count, no barrier and no
//! stage number in it, and any number of steps is right: fewer than stages, and none.
//!
//! Stages are unrolled: the loop has a copy of the body for each, so that the stage is an immediate of every address. The prover follows
//! the whole, copy by copy: a read must find the tile of its own step. It does not take the schedule's word for it.
//!
//! c = a·b for one block a tile, with three stages of both operands (see `examples/gemm_tile.rs` for any size):
//!
//! ```
//! use layout_codegen::Arch;
//! use layout_codegen::ir::{Axis, Element, Kernel};
//! use layout_codegen::pipeline::Staged;
//! use layout_codegen::view::{Use, ViewError};
//! use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
//!
//! let mut k = Kernel::new("product", 32);
//! let (m, n, depth) = (k.size("m", 1 << 20), k.size("n", 1 << 20), k.size("k", 1 << 20));
//! let (a, b) = (k.input("a", Element::F16, &[m, depth]), k.input("b", Element::F16, &[n, depth]));
//! let c = k.output("c", Element::F32, &[m, n]);
//! let (i, j, lane) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 16)?, k.lane());
//!
//! let [warps, tile] = ["(1,1,1):(0,0,0)", "16:1"].map(Layout::parse);
//! let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &warps?, &[tile.clone()?, tile.clone()?, tile?])?;
//! let read_a = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
//! let read_b = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::B)?;
//! let write = TiledCopy::new(
//!     atoms::CP_ASYNC_16.recast(16)?,
//!     &Layout::parse("(8,4):(4,1)")?,
//!     &Layout::parse("(1,8):(0,1)")?,
//! )?;
//!
//! let uses_a = [Use::target(&write), Use::source(&read_a)];
//! let uses_b = [Use::target(&write), Use::source(&read_b)];
//! let tiles = [
//!     Staged::new("tile_a", Element::F16, [16, 32], &uses_a),
//!     Staged::new("tile_b", Element::F16, [16, 32], &uses_b),
//! ];
//! let ring = k.ring(3, tiles, |k, to, step| {
//!     for ((x, row), to) in [(&a, i), (&b, j)].into_iter().zip(to) {
//!         let from = x.tile(k, &[16, 32], &[row, step])?.partition_s(k, &write, lane)?;
//!         let to = to.partition_d(k, &write, lane)?;
//!         k.copy(&from, &to)?;
//!     }
//!     Ok(())
//! })?;
//! let sums = k.accumulators(&mma, [16, 16], lane)?;
//! let steps = k.tiles_in(depth, 32)?;
//! k.pipeline(&[&ring], steps, |k, step| {
//!     let [a, b] = step.arrived(k, &ring)?;
//!     let (a, b) = (a.partition_s(k, &read_a, lane)?, b.partition_s(k, &read_b, lane)?);
//!     let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
//!     k.gemm(&mma, &a, &b, &sums)
//! })?;
//! let c = c.tile(&mut k, &[16, 16], &[i, j])?.partition_c(&mut k, &mma, lane)?;
//! k.store_fragment(&c, &sums)?;
//! assert_eq!(k.build(Arch(80))?.proof.covered, ["c"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod order;
mod ring;
mod roles;
mod schedule;
mod stages;
mod tiles;
mod tma;

pub use order::OrderBarrier;
pub use ring::{AnyRing, Ring, Staged};
pub use roles::WarpRole;
pub use stages::Stages;
pub use tiles::{PersistentTile, TileOrder, TileScheduler};

use std::fmt;

use ring::sealed::Stages as _;
use schedule::{Fill, Schedule};

use crate::index::Expr;
use crate::ir::{Cmp, Kernel};
use crate::view::{View, ViewError};

/// One step of a pipeline, as its body sees it.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_codegen::pipeline::Staged;
/// use layout_core::{Layout, TiledCopy, atoms};
///
/// // y = x, 32 columns at a time, through two stages.
/// let mut k = Kernel::new("copy", 128);
/// let (rows, cols) = (k.size("rows", 1 << 20), k.constant(256));
/// let (x, y) = (k.input("x", Element::F32, &[rows, cols]), k.output("y", Element::F32, &[rows, cols]));
/// let (i, thread, eight) = (k.tiles(Axis::X, rows, 16)?, k.thread(), k.constant(8));
/// let (shares, four) = (Layout::parse("(16,8):(8,1)")?, Layout::parse("(1,4):(0,1)")?);
/// let copy = TiledCopy::new(atoms::CP_ASYNC_16.recast(32)?, &shares, &four)?;
/// let ring = k.ring(2, [Staged::new("tile", Element::F32, [16, 32], &[])], |k, [to], step| {
///     let from = x.tile(k, &[16, 32], &[i, step])?.partition_s(k, &copy, thread)?;
///     let to = to.partition_d(k, &copy, thread)?;
///     k.copy(&from, &to)
/// })?;
/// let shares = Layout::parse("((8,16),4):((64,1),16)")?;
/// k.pipeline(&[&ring], eight, |k, step| {
///     let [tile] = step.arrived(k, &ring)?;
///     let from = tile.partition(k, &shares, thread)?;
///     let number = step.index();
///     let to = y.tile(k, &[16, 32], &[i, number])?.partition(k, &shares, thread)?;
///     k.copy(&from.vectors(k, 4)?, &to.vectors(k, 4)?)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Step<'p> {
    rings: &'p [&'p dyn AnyRing],
    schedule: &'p Schedule,
    steps: Expr,
    /// The number of this step.
    index: Expr,
    /// The same modulo the period of all rings.
    number: i64,
    /// The ring that is next.
    phase: usize,
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("index", &self.index)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl Step<'_> {
    /// The number of this step: 0, 1, … below the number of steps.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::Staged;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 100);
    /// let ring = k.ring(2, [Staged::new("x", Element::F32, [8, 32], &[])], |_, _, _| Ok(()))?;
    /// k.pipeline(&[&ring], n, |k, step| {
    ///     step.arrived(k, &ring)?;
    ///     assert!(k.range(step.index()).0 >= 0);
    ///     Ok::<(), layout_codegen::view::ViewError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index(&self) -> Expr {
        self.index
    }

    /// The tiles of this step, once they are there: waits for their copies, meets all threads at a barrier, and refills the stage that was asked
    /// for before. Tiles of a ring may be read until the next ring, or the next step, is asked for.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::Staged;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 100);
    /// let [x, y] = ["x", "y"].map(|name| {
    ///     k.ring(1, [Staged::new(name, Element::F32, [8, 32], &[])], |_, _, _| Ok(()))
    /// });
    /// let (x, y) = (x?, y?);
    /// let error = k.pipeline(&[&x, &y], n, |k, step| {
    ///     step.arrived(k, &y)?;
    ///     Ok::<(), ViewError>(())
    /// });
    /// assert_eq!(
    ///     error.unwrap_err().to_string(),
    ///     "a step that asks for `y` is no pipeline: each step asks for its rings in their order, and `x` is next"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring that is not the next in the order of the pipeline's; those of the fill.
    #[track_caller]
    pub fn arrived<const N: usize>(
        &mut self,
        k: &mut Kernel,
        ring: &Ring<'_, N>,
    ) -> Result<[View; N], ViewError> {
        k.at_line();
        let next = self.rings.get(self.phase);
        if next.is_none_or(|next| next.identity() != ring.identity()) {
            let next = next.map_or("no other".to_owned(), |next| format!("`{}`", next.name(k)));
            return Err(ViewError::Pipeline {
                given: format!("a step that asks for `{}`", ring.name(k)),
                accepted: format!(
                    "each step asks for its rings in their order, and {next} is next"
                ),
            });
        }
        k.wait_group(self.schedule.pending(self.phase));
        k.barrier();
        let fill = self.schedule.refill(self.phase);
        let ahead = k.pool.constant(fill.tile);
        let tile = k.pool.add(self.index, ahead);
        let refilled = self.rings[fill.ring];
        let stage = (self.number + fill.tile) % refilled.count();
        fill_if(k, refilled, stage, (tile, self.steps))?;
        let stage = self.number % ring.stages();
        self.phase += 1;
        Ok(ring.tiles(k, stage, self.index))
    }
}

/// Fills a stage with the tiles of a step, if there is such a step; closes the group in any case.
fn fill_if(
    k: &mut Kernel,
    ring: &dyn AnyRing,
    stage: i64,
    (step, steps): (Expr, Expr),
) -> Result<(), ViewError> {
    let known = k.pool.as_const(step).zip(k.pool.as_const(steps));
    if let Some((step_number, steps)) = known {
        if step_number < steps {
            ring.fill(k, stage, step)?;
        }
    } else {
        let there = k.compare(Cmp::Lt, step, steps);
        k.begin_if(there, true);
        k.name_branch("absent", "filled");
        let filled = ring.fill(k, stage, step);
        k.end_if();
        filled?;
    }
    k.commit_group();
    Ok(())
}

impl Kernel {
    /// Runs `steps` steps of a loop, whose tiles come through `rings`. The body asks for each of them in this order
    /// ([`Step::arrived`]); it is called once for each stage that the loop unrolls. After the last step no copy is under way, and a barrier is
    /// needed before the shared memory of the rings is used for anything else.
    ///
    /// Where `steps` depends on the block only, as the number of keys that a block of causal attention looks at, all threads leave together: it must
    /// be the same for all threads of a block, which the prover checks.
    ///
    /// The example of the [module](crate::pipeline) is a matrix product.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::Staged;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 100);
    /// let alone = k.ring(1, [Staged::new("x", Element::F32, [8, 32], &[])], |_, _, _| Ok(()))?;
    /// let error = k.pipeline(&[&alone], n, |_, _| Ok::<(), ViewError>(())).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "rings of 1 stages is no pipeline: a ring alone needs 2 stages, one of several rings 1"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for rings that cannot work, or a body that does not ask for all of them; those of the fills and of the body.
    #[track_caller]
    pub fn pipeline<E: From<ViewError>>(
        &mut self,
        rings: &[&dyn AnyRing],
        steps: Expr,
        mut body: impl FnMut(&mut Self, &mut Step<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let counts: Vec<i64> = rings.iter().map(|r| r.count()).collect();
        let schedule = Schedule::new(&counts).ok_or_else(|| {
            let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
            ViewError::Pipeline {
                given: format!("rings of {} stages", counts.join(", ")),
                accepted: "a ring alone needs 2 stages, one of several rings 1".to_owned(),
            }
        })?;
        for fill in schedule.prologue() {
            match fill {
                Some(Fill { ring, tile }) => {
                    let stage = tile % counts[ring];
                    let tile = self.pool.constant(tile);
                    fill_if(self, rings[ring], stage, (tile, steps))?;
                }
                None => self.commit_group(),
            }
        }
        let period = schedule.period();
        let most = i64::try_from(self.pool.facts(steps).hi).unwrap_or(i64::MAX / 4);
        if self.pool.facts(steps).lo < 0 || most.saturating_add(period) > u32::MAX.into() {
            self.mistake(format!(
                "a pipeline of up to {most} steps: a step has a number of 32 bits that is not negative"
            ));
        }
        let iteration = self.open_loop("step", 0, period, most.saturating_add(period));
        self.counts_alike(&iteration, steps);
        let mut result = Ok(());
        for number in 0..period {
            let ahead = self.pool.constant(number);
            let index = self.pool.add(iteration.counter, ahead);
            if number > 0 {
                let none = self.compare(Cmp::Ge, index, steps);
                self.leave_loop(none, true);
            }
            let mut step = Step {
                rings,
                schedule: &schedule,
                steps,
                index,
                number,
                phase: 0,
            };
            result = body(self, &mut step);
            if result.is_ok() && step.phase < rings.len() {
                let asked = step.phase;
                result = Err(E::from(ViewError::Pipeline {
                    given: format!("a step that asks for {asked} of {} rings", rings.len()),
                    accepted: "each step asks for each of its rings".to_owned(),
                }));
            }
            if result.is_err() {
                break;
            }
        }
        self.close_loop(&iteration, steps);
        result
    }
}
