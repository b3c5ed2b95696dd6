//! Rings over TMA: one thread issues the copies into the stages, and other roles multiply what is there.
//!
//! ```text
//! Kernel::produce   each iteration: wait for the empty barrier, expect the bytes of the tiles, issue the copies    one thread
//! Kernel::consume   each iteration: wait for the full barrier, wgmma, release the stage                         all threads of a role
//! ```
//!
//! Stage, phase, bytes, boxes and matrix descriptors follow from the tiles. The prover checks the roles as written: all of them run through the same stages in the
//! same order, and no stage is filled while an MMA reads it.

use super::ring::{MOST_STAGES, Transport};
use super::{Ring, Staged, Stages};
use crate::index::Expr;
use crate::ir::{Cmp, Kernel, OrderArrival, RingHandle, Side};
use crate::view::{PERIOD, View, ViewError, panels};

impl Kernel {
    /// A ring of stages over TMA, each with the tiles `tiles`, in the layouts that both TMA boxes and `wgmma` descriptors express. One role fills the stages
    /// ([`Kernel::produce`]), others read them ([`Kernel::consume`]). Declare the ring before the first role.
    ///
    /// c = a·bᵀ for one block a tile of 64 × 64 (`examples/hopper_gemm.rs` has any size and more):
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::pipeline::{Staged, Stages, WarpRole};
    /// use layout_codegen::view::ViewError;
    /// use layout_core::atoms::{Scalar, wgmma};
    /// use layout_core::{Layout, TiledMma};
    ///
    /// let mut k = Kernel::new("product", 256);
    /// let (m, n, depth) = (k.size("m", 1 << 20), k.size("n", 1 << 20), k.size("k", 1 << 20));
    /// let (a, b) = (k.input("a", Element::Bf16, &[m, depth]), k.input("b", Element::Bf16, &[n, depth]));
    /// let c = k.output("c", Element::F32, &[m, n]);
    /// let (i, j) = (k.tiles(Axis::X, m, 64)?, k.tiles(Axis::Y, n, 64)?);
    /// let mma = TiledMma::new(wgmma(64, Scalar::Bf16, Scalar::F32)?, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let tiles = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::Bf16, [64, 64], &[]));
    /// let ring = k.tma_ring(Stages::new(4).lag(1), tiles)?;
    /// let (before, steps) = (k.constant(0), k.tiles_in(depth, 64)?);
    /// k.role(WarpRole::new("consumers", 4), |k, thread| {
    ///     let sums = k.accumulators(&mma, [64, 64], thread)?;
    ///     k.consume(&ring, before, steps, |k, [a, b], _| k.gemm(&mma, &a, &b, &sums))?;
    ///     let c = c.tile(k, &[64, 64], &[i, j])?.partition_c(k, &mma, thread)?;
    ///     k.store_fragment(&c.vectors(k, 2)?, &sums)
    /// })?;
    /// k.producer(WarpRole::new("producer", 4), |k| {
    ///     k.produce(&ring, before, steps, |k, [to_a, to_b], step| {
    ///         for (x, row, to) in [(&a, i, to_a), (&b, j, to_b)] {
    ///             let from = x.tile(k, &[64, 64], &[row, step])?;
    ///             k.tma_load(&from, &to)?;
    ///         }
    ///         Ok::<(), ViewError>(())
    ///     })
    /// })?;
    /// assert_eq!(k.build(Arch(90))?.proof.covered, ["c"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for an invalid number of stages, and for tiles that TMA boxes cannot fill; [`ViewError::SharedMemory`].
    #[track_caller]
    pub fn tma_ring<const N: usize>(
        &mut self,
        stages: Stages,
        tiles: [Staged<'_>; N],
    ) -> Result<Ring<'static, N>, ViewError> {
        self.at_line();
        let Stages {
            count,
            lag,
            roles,
            per_block,
        } = stages;
        let refuse = |given: String, accepted: String| Err(ViewError::Pipeline { given, accepted });
        if !(1..=MOST_STAGES).contains(&count) {
            return refuse(
                format!("a ring of {count} stages"),
                format!("a ring has 1 to {MOST_STAGES}"),
            );
        }
        if !(0..count).contains(&lag) {
            return refuse(
                format!("a lag of {lag} steps of {count} stages"),
                "it is less than the number of stages".to_owned(),
            );
        }
        if !(1..=4).contains(&roles) {
            return refuse(
                format!("{roles} roles in a ping-pong schedule"),
                "1 to 4 do".to_owned(),
            );
        }
        if self.end_of_roles() > 0 || self.parting.ended {
            return refuse(
                "a ring behind the begin of a role".to_owned(),
                "rings over TMA are declared before the first role".to_owned(),
            );
        }
        let before = self.shared_bytes();
        let mut views = Vec::new();
        for tile in tiles {
            self.checked_new_name("a tile of a ring", tile.name);
            if !tile.uses.is_empty() {
                return refuse(
                    format!("uses of the tile `{}` of a ring over TMA", tile.name),
                    "boxes and descriptors decide its layout: give no uses".to_owned(),
                );
            }
            let layout = panels(tile.shape, tile.element.bytes().into())?;
            let stages = (Some(count), PERIOD);
            views.push(self.staged(tile.name, tile.element, &layout, stages)?);
            self.describe(format!(
                "{} (stages: {count}) = {layout}: what both a box of TMA and a descriptor of wgmma express",
                tile.name.escape_default()
            ));
        }
        let without_tiles = || ViewError::Pipeline {
            given: "a ring without tiles".to_owned(),
            accepted: "each stage has at least one tile".to_owned(),
        };
        let first = tiles.first().ok_or_else(without_tiles)?;
        let views = <[View; N]>::try_from(views).map_err(|_| without_tiles())?;
        let name = format!("{}_ring", first.name);
        // The mbarriers lie ahead of the tiles where their alignment leaves room, or behind them.
        let bytes = 8 * Self::barriers_of_ring(count, (roles, false)) as u64;
        let mut at = before.next_multiple_of(8);
        if at + bytes > before.next_multiple_of(PERIOD as u64) {
            at = self.shared_bytes().next_multiple_of(8);
            self.extend_shared(at + bytes)?;
        }
        let read: Vec<_> = views
            .iter()
            .zip(&tiles)
            .map(|(view, t)| (view, t.shape))
            .collect();
        let ring = self.shared_ring(&name, (count, lag, (roles, false)), at as i64, 0, &read)?;
        if per_block {
            self.parting.per_block.insert(ring.number());
        }
        self.parting.rings.push(ring.clone());
        Ok(Ring {
            stages: count,
            tiles: views,
            transport: Transport::Tma(ring),
        })
    }

    /// Fills the stages of a ring over TMA in `steps` iterations, in a [producer](Kernel::producer). Each iteration waits until a stage is empty and calls `fill`, which loads
    /// each of its tiles ([`Kernel::tma_load`]). `before` is the number of iterations of the ring before this loop, the same as in [`Kernel::consume`].
    ///
    /// The example of [`Kernel::tma_ring`] has one.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring that is not over TMA; those of the fill.
    #[track_caller]
    pub fn produce<const N: usize, E: From<ViewError>>(
        &mut self,
        ring: &Ring<'_, N>,
        before: Expr,
        steps: Expr,
        fill: impl FnOnce(&mut Self, [View; N], Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        self.steps_of_ring("fill", steps, |k, step| {
            let index = k.pool.add(before, step);
            k.fill_stage(ring, index, step, |k, tiles| fill(k, tiles, step))
        })
    }

    /// Fills one stage of a ring over TMA: the body of [`Kernel::produce`], for custom loops. `index` is the iteration of the ring. `tile` identifies the content of the stage;
    /// [`Kernel::arrived`] names the same.
    ///
    /// # Errors
    ///
    /// As [`Kernel::produce`].
    #[track_caller]
    pub fn fill_stage<const N: usize, E: From<ViewError>>(
        &mut self,
        ring: &Ring<'_, N>,
        index: Expr,
        tile: Expr,
        fill: impl FnOnce(&mut Self, [View; N]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let handle = self.ring_in_role(ring)?;
        let bytes: i64 = ring.tiles.iter().map(|t| t.bytes_of_tile(self)).sum();
        self.wait_stage(&handle, Side::Empty, index)
            .map_err(ViewError::from)?;
        self.expect_bytes(&handle, index, bytes)
            .map_err(ViewError::from)?;
        let tiles = ring.used(self, &handle, index, tile);
        fill(self, tiles)
    }

    /// Reads the stages of a ring over TMA in `steps` iterations, by all threads of a role. Each iteration waits for the tiles, calls `body`, which multiplies them
    /// ([`Kernel::gemm`]), and releases the stage when the MMAs are complete. All MMAs are complete when the loop ends. `before` is the number of iterations of the ring before
    /// this loop.
    ///
    /// The example of [`Kernel::tma_ring`] has one.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring that is not over TMA; those of the body.
    #[track_caller]
    pub fn consume<const N: usize, E: From<ViewError>>(
        &mut self,
        ring: &Ring<'_, N>,
        before: Expr,
        steps: Expr,
        body: impl FnOnce(&mut Self, [View; N], Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let lag = ring.over_tma(self)?.lag();
        let products = self.parting.products;
        self.steps_of_ring("multiply", steps, |k, step| {
            let index = k.pool.add(before, step);
            let tiles = k.arrived(ring, index, step)?;
            let before = k.parting.products;
            body(k, tiles, step)?;
            if k.parting.products > before {
                k.wait_wgmma(lag as u32);
            }
            Ok::<(), E>(k.release(ring, index)?)
        })?;
        if self.parting.products > products {
            self.wait_wgmma(0);
        }
        Ok(())
    }

    /// Waits for one stage of a ring over TMA and returns its tiles: the start of an iteration of [`Kernel::consume`], for custom loops. `index` is the iteration of the ring,
    /// `tile` the content of the stage as in [`Kernel::fill_stage`]. All threads of the role wait.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring that is not over TMA, and outside of roles.
    #[track_caller]
    pub fn arrived<const N: usize>(
        &mut self,
        ring: &Ring<'_, N>,
        index: Expr,
        tile: Expr,
    ) -> Result<[View; N], ViewError> {
        self.at_line();
        let handle = self.ring_in_role(ring)?;
        let role = (self.end_of_roles(), self.threads_of_role() / 32);
        let readers = self.parting.readers.entry(handle.number()).or_default();
        readers.insert(role.0, role.1);
        self.wait_stage(&handle, Side::Full, index)?;
        Ok(ring.used(self, &handle, index, tile))
    }

    /// Waits until at most `in_flight` groups of `wgmma` of this warpgroup are in flight (`wgmma.wait_group`). Each call of [`Kernel::gemm`] is a group.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// k.wait_wgmma(0);
    /// ```
    #[track_caller]
    pub fn wait_wgmma(&mut self, in_flight: u32) {
        self.at_line();
        self.wgmma_wait(in_flight);
    }

    /// Releases the stage that iteration `index` − lag read: the end of an iteration of [`Kernel::consume`], for custom loops. One lane of each warp arrives. The MMAs that read
    /// the stage are complete ([`Kernel::wait_wgmma`]).
    ///
    /// # Errors
    ///
    /// As [`Kernel::arrived`].
    #[track_caller]
    pub fn release<const N: usize>(
        &mut self,
        ring: &Ring<'_, N>,
        index: Expr,
    ) -> Result<(), ViewError> {
        self.at_line();
        let ring = self.ring_in_role(ring)?;
        let number = ring.number();
        // What lanes read into registers is read when all of them are here.
        if self.parting.fetched.remove(&number) {
            self.warp_barrier();
        }
        if self.has_clusters() && !self.parting.per_block.contains(&number) {
            let lane = self.lane();
            // Each block of the cluster fills a part of the stage: one lane arrives at the barrier of each.
            let blocks: u32 = self.cluster.iter().product();
            let blocks = self.pool.constant(blocks.into());
            let one_each = self.compare(Cmp::Lt, lane, blocks);
            return Ok(self.release_stage_to(&ring, index, (lane, one_each))?);
        }
        let lane0 = self.first_lane();
        Ok(self.release_stage(&ring, index, lane0)?)
    }

    /// Waits, in the producer, until the consumers have released the stages of all `uses` iterations. In a [cluster](Kernel::clusters) other blocks arrive at a block's barriers, so the
    /// block must not exit before.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring that is not over TMA.
    #[track_caller]
    pub fn drain<const N: usize>(
        &mut self,
        ring: &Ring<'_, N>,
        uses: Expr,
    ) -> Result<(), ViewError> {
        self.at_line();
        let handle = self.ring_in_role(ring)?;
        self.open_fresh_region();
        let drained = self.drain_ring(&handle, uses);
        self.close_region();
        Ok(drained?)
    }

    /// Waits for the role's order barrier in a ping-pong schedule ([`Stages::ping_pong`]), runs `body`, then arrives on the order barrier of the next role. `role` is the number of the role in
    /// the schedule, `run` the number of tiles it had before. `body` reads the stages of the tile ([`Kernel::consume`]).
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a ring without a ping-pong schedule; those of the body.
    #[track_caller]
    pub fn ping_pong<const N: usize, E: From<ViewError>>(
        &mut self,
        ring: &Ring<'_, N>,
        (role, run): (u32, Expr),
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let handle = self.ring_in_role(ring)?;
        if role >= handle.ordered_roles() || handle.ordered_roles() < 2 {
            return Err(E::from(ViewError::Pipeline {
                given: format!("run of role {role} in the ring `{}`", ring.names(self)),
                accepted: format!(
                    "{} roles have a ping-pong schedule in it (`Stages::ping_pong`)",
                    handle.ordered_roles()
                ),
            }));
        }
        self.wait_stage(&handle, Side::Order(role), run)
            .map_err(ViewError::from)?;
        body(self)?;
        let lane0 = self.first_lane();
        let handed = self.arrive_in_order(OrderArrival::Order, &handle, (role, run), lane0);
        Ok(handed.map_err(ViewError::from)?)
    }

    /// A loop over iterations of a ring, counted from 0.
    fn steps_of_ring<E: From<ViewError>>(
        &mut self,
        name: &str,
        steps: Expr,
        body: impl FnOnce(&mut Self, Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.in_role() {
            return Err(E::from(outside()));
        }
        self.for_loop(name, 0, 1, steps, body)
    }

    /// A ring over TMA, within a role.
    fn ring_in_role<const N: usize>(&self, ring: &Ring<'_, N>) -> Result<RingHandle, ViewError> {
        let handle = ring.over_tma(self)?;
        if self.in_role() {
            Ok(handle)
        } else {
            Err(outside())
        }
    }
}

fn outside() -> ViewError {
    ViewError::Pipeline {
        given: "a ring over TMA outside of roles".to_owned(),
        accepted: "one role fills it and others read it (`Kernel::role`)".to_owned(),
    }
}

impl<const N: usize> Ring<'_, N> {
    /// The ring of a kernel over TMA.
    fn over_tma(&self, k: &Kernel) -> Result<RingHandle, ViewError> {
        let refuse = |accepted: &str| ViewError::Pipeline {
            given: format!("the ring `{}`", self.names(k)),
            accepted: accepted.to_owned(),
        };
        for tile in &self.tiles {
            tile.own(k)?;
        }
        match &self.transport {
            Transport::Tma(ring) => Ok(ring.clone()),
            Transport::Copies(_) => Err(refuse(
                "a ring over TMA (`Kernel::tma_ring`): others are for `Kernel::pipeline`",
            )),
        }
    }

    /// The tiles of the stage that the `index`-th step of the ring uses.
    fn used(&self, k: &mut Kernel, ring: &RingHandle, index: Expr, step: Expr) -> [View; N] {
        let slot = k.slot(ring, index);
        let used = Some(Kernel::stage_use(ring, index));
        self.tiles.each_ref().map(|t| t.stage(slot, step, used))
    }
}
