//! Pipelines between roles, copies by TMA, products of warpgroups.

use std::sync::Arc;

use layout_core::atoms::MmaAtom;
use layout_core::{LayoutError, MatrixDescriptor};

use super::Kernel;
use crate::index::{Expr, PoolId};
use crate::ir::hopper::{Factor, Hopper, Matrix, OrderArrival, Ring, Side, StageUse, TensorMap};
use crate::ir::inst::{Inst, Statement};
use crate::ir::node::Node;
use crate::ir::param::ParamKind;
use crate::ir::value::{Class, Pred, Reg};
use crate::ir::{Address, Extent, Place};
use crate::view::View;

/// A ring under construction: its number, and the view of its mbarriers.
#[derive(Clone, Debug)]
pub struct RingHandle {
    number: usize,
    pub(super) stages: i64,
    pub(super) lag: i64,
    ordered_roles: u32,
    overlaps: bool,
    barriers: View,
    kernel: PoolId,
}

/// A tensor map: its number, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct MapHandle {
    number: usize,
    address: Reg,
    kernel: PoolId,
}

impl RingHandle {
    /// Which of the kernel's rings it is.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The lag: a stage is released this many iterations after the one that reads it.
    pub(crate) fn lag(&self) -> i64 {
        self.lag
    }

    /// The number of roles in its ping-pong schedule, 1 without one.
    pub(crate) fn ordered_roles(&self) -> u32 {
        self.ordered_roles
    }
}

impl MapHandle {
    /// Which of the kernel's tensor maps it is.
    pub(super) fn number(self) -> usize {
        self.number
    }

    /// The kernel that it is of.
    pub(super) fn kernel(self) -> PoolId {
        self.kernel
    }

    /// The register of its address.
    pub(super) fn address(self) -> Reg {
        self.address
    }
}

/// The fields of a matrix descriptor beside the address; offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strides {
    /// From one atom to the next along the side that is not k, where that side is contiguous.
    pub(crate) leading: i64,
    /// From one group of 8 rows to the next.
    pub(crate) stride: i64,
    /// The mode of the swizzle: see [`MatrixDescriptor::mode`](layout_core::MatrixDescriptor::mode).
    pub(crate) mode: u32,
}

impl Kernel {
    pub(super) fn push_hopper(&mut self, guard: Option<Pred>, inst: Hopper) {
        self.scope().body.push(Node::Inst(Statement {
            inst: Inst::Hopper(Box::new(inst)),
            guard,
            tag: None,
        }));
    }

    /// A ring of `stages` stages over the stages of `views`, whose mbarriers lie at `offset` of shared memory; `consumers` threads, of all blocks of a cluster,
    /// release a stage, `lag` iterations after the one that reads it. A ping-pong schedule has `ordered_roles` consumer roles, whose runs may overlap; without one it is 1. Each view comes with
    /// the rows and columns of a stage that are read.
    pub(crate) fn shared_ring(
        &mut self,
        name: &str,
        (stages, lag, (ordered_roles, overlaps)): (i64, i64, (u32, bool)),
        offset: i64,
        consumers: u32,
        views: &[(&View, [i64; 2])],
    ) -> Result<RingHandle, LayoutError> {
        let count = Self::barriers_of_ring(stages, (ordered_roles, overlaps));
        let layout = layout_core::Layout::mode(count, 8)?.into();
        let extents = vec![Extent::Fixed(count)];
        let barriers = self.shared_at(name, 8, layout, offset, extents, Vec::new());
        let number = self.rings.len();
        self.rings.push(Ring {
            name: name.to_owned(),
            stages,
            barriers: barriers.number(),
            consumers,
            lag,
            ordered_roles,
            overlaps,
            buffers: views.iter().map(|(view, _)| view.number()).collect(),
            read: views.iter().map(|(_, read)| *read).collect(),
        });
        Ok(RingHandle {
            number,
            stages,
            lag,
            ordered_roles,
            overlaps,
            barriers,
            kernel: self.pool.id(),
        })
    }

    /// How many mbarriers a ring has, with the roles of a ping-pong schedule and whether their runs overlap.
    pub(crate) fn barriers_of_ring(stages: i64, (ordered_roles, overlaps): (u32, bool)) -> i64 {
        let order = if ordered_roles > 1 {
            ordered_roles.into()
        } else {
            0
        };
        2 * stages + (1 + i64::from(overlaps)) * order
    }

    /// How many arrivals complete each mbarrier of a ring, in the order in which they lie.
    fn arrivals_of_ring(&self, ring: &RingHandle) -> Vec<u32> {
        let consumers = self.rings[ring.number].consumers;
        let blocks: u32 = self.cluster.iter().product();
        let all = 0..Self::barriers_of_ring(ring.stages, (ring.ordered_roles, ring.overlaps));
        all.map(|i| match i / ring.stages {
            0 => 1,
            1 => consumers,
            _ => consumers / blocks,
        })
        .collect()
    }

    /// So many threads release a stage, of all blocks of a cluster: what its mbarriers are made for, where that was written before roles were known.
    pub(crate) fn set_consumers(&mut self, ring: &RingHandle, consumers: u32) {
        self.rings[ring.number].consumers = consumers;
        let mut counts = self.arrivals_of_ring(ring).into_iter();
        let barriers = ring.barriers.number();
        for node in &mut self.scopes[0].body {
            let Node::Inst(Statement {
                inst: Inst::Hopper(inst),
                ..
            }) = node
            else {
                continue;
            };
            if let Hopper::BarrierInit { at, count } = &mut **inst
                && matches!(self.places.get(at.place() as usize), Some(Place::Element { buffer, .. }) if *buffer == barriers)
            {
                *count = counts.next().unwrap_or(*count);
            }
        }
    }

    /// The mbarriers of rings are made by the one thread where `only` holds; one barrier of the block publishes all of them.
    pub(crate) fn make_rings(
        &mut self,
        rings: &[RingHandle],
        only: Reg,
    ) -> Result<(), LayoutError> {
        for ring in rings {
            for (i, count) in (0..).zip(self.arrivals_of_ring(ring)) {
                let which = self.pool.constant(i);
                let at = ring.barriers.element(self, &[which])?;
                self.note_width(at, 8);
                self.push_hopper(Some(only.into()), Hopper::BarrierInit { at, count });
            }
        }
        self.push_hopper(Some(only.into()), Hopper::BarrierInitFence);
        if self.has_clusters() {
            // Other blocks of the cluster arrive at them, too.
            self.meet_cluster();
        } else {
            self.barrier();
        }
        Ok(())
    }

    /// The slot of a use of a stage, as the coordinate of its views.
    pub(crate) fn slot(&mut self, ring: &RingHandle, index: Expr) -> Expr {
        let slot = self.pool.rem(index, ring.stages);
        // Before it is scaled: the index times the size of a stage has more than 32 bits.
        self.pool.pin(slot)
    }

    pub(super) fn barrier_of(
        &mut self,
        ring: &RingHandle,
        side: Side,
        index: Expr,
    ) -> Result<Address, LayoutError> {
        self.own(ring.kernel, "a ring");
        let which = match side {
            Side::Full | Side::Empty => {
                let slot = self.slot(ring, index);
                let first = if side == Side::Full { 0 } else { ring.stages };
                let first = self.pool.constant(first);
                self.pool.add(slot, first)
            }
            Side::Order(role) => self.pool.constant(2 * ring.stages + i64::from(role)),
            Side::Complete(role) => {
                let before = 2 * ring.stages + i64::from(ring.ordered_roles);
                self.pool.constant(before + i64::from(role))
            }
        };
        let at = ring.barriers.element(self, &[which])?;
        self.note_width(at, 8);
        Ok(at)
    }

    pub(crate) fn stage_use(ring: &RingHandle, index: Expr) -> StageUse {
        StageUse {
            ring: ring.number,
            index,
        }
    }

    /// Waits for one barrier of a stage, or of a role in a ping-pong schedule, of that pipeline iteration or run.
    pub(crate) fn wait_stage(
        &mut self,
        ring: &RingHandle,
        side: Side,
        index: Expr,
    ) -> Result<(), LayoutError> {
        // A stage is empty when consumers have arrived `lag` uses after they read it.
        let arrival = match side {
            Side::Full | Side::Order(_) | Side::Complete(_) => index,
            Side::Empty => {
                let lag = self.pool.constant(ring.lag);
                self.pool.add(index, lag)
            }
        };
        let at = self.barrier_of(ring, side, arrival)?;
        let round = match side {
            Side::Full | Side::Empty => self.pool.div(arrival, ring.stages),
            Side::Order(_) | Side::Complete(_) => arrival,
        };
        let parity = self.pool.rem(round, 2);
        let parity = match side {
            Side::Full | Side::Order(1..) | Side::Complete(1..) => parity,
            // Of a fresh mbarrier the phase before the first counts as complete.
            Side::Empty | Side::Order(0) | Side::Complete(0) => {
                let one = self.pool.constant(1);
                self.pool.sub(one, parity)
            }
        };
        let parity = self.value(parity);
        let done = self.reg(Class::Pred);
        let stage = Self::stage_use(ring, index);
        self.push_hopper(
            None,
            Hopper::Wait {
                at,
                parity,
                done,
                side,
                stage,
            },
        );
        Ok(())
    }

    /// A role arrives on a barrier of the next one at the end of a run, by the threads where `only` holds.
    pub(crate) fn arrive_in_order(
        &mut self,
        what: OrderArrival,
        ring: &RingHandle,
        (role, run): (u32, Expr),
        only: Reg,
    ) -> Result<(), LayoutError> {
        let next = (role + 1) % ring.ordered_roles;
        let at = self.barrier_of(ring, what.side(next), run)?;
        let stage = Self::stage_use(ring, run);
        let pass = Hopper::Pass {
            what,
            at,
            role,
            stage,
        };
        self.push_hopper(Some(only.into()), pass);
        Ok(())
    }

    /// Announces the bytes that copies bring to a stage.
    pub(crate) fn expect_bytes(
        &mut self,
        ring: &RingHandle,
        index: Expr,
        bytes: i64,
    ) -> Result<(), LayoutError> {
        let at = self.barrier_of(ring, Side::Full, index)?;
        let (bytes, stage) = (bytes as u32, Self::stage_use(ring, index));
        self.push_hopper(None, Hopper::Expect { at, bytes, stage });
        Ok(())
    }

    /// Gives back the stage of use `index` − lag, by the threads where `only` holds.
    pub(crate) fn release_stage(
        &mut self,
        ring: &RingHandle,
        index: Expr,
        only: Reg,
    ) -> Result<(), LayoutError> {
        let at = self.barrier_of(ring, Side::Empty, index)?;
        let stage = Self::stage_use(ring, index);
        self.push_hopper(Some(only.into()), Hopper::Arrive { at, stage });
        Ok(())
    }

    /// A tensor map of a view of a whole array, for boxes of `extents` rows and columns.
    pub(crate) fn tensor_map(
        &mut self,
        name: &str,
        of: &View,
        extents: [i64; 2],
        swizzle: i64,
    ) -> MapHandle {
        self.tensor_maps.push(TensorMap {
            name: name.to_owned(),
            buffer: of.number(),
            extents,
            swizzle,
        });
        self.params.push(crate::ir::Param {
            name: name.to_owned(),
            kind: ParamKind::TensorMap,
            most: None,
            multiple: 1,
        });
        let address = self.reg(Class::B64);
        let name = name.to_owned();
        self.at_entry(Inst::Hopper(Box::new(Hopper::ParamAddress {
            to: address,
            name,
        })));
        MapHandle {
            number: self.tensor_maps.len() - 1,
            address,
            kernel: self.pool.id(),
        }
    }

    /// What a tensor map of the kernel is.
    pub(crate) fn tensor_map_of(&self, map: MapHandle) -> Option<&TensorMap> {
        self.tensor_maps.get(map.number)
    }

    /// A tensor map is brought near by the threads where `only` holds, before it is needed.
    pub(crate) fn prefetch_map(&mut self, map: MapHandle, only: Reg) {
        self.own(map.kernel, "a tensor map");
        let descriptor = map.address;
        self.push_hopper(Some(only.into()), Hopper::PrefetchMap { descriptor });
    }

    /// The box that begins at `from` (rows, columns, before them those of leading modes) to the stage's element `to`, of the block itself or of `blocks` of the
    /// cluster.
    pub(crate) fn copy_box(
        &mut self,
        map: MapHandle,
        from: &[Expr],
        (to, blocks): (Address, Option<u16>),
        ring: &RingHandle,
        index: Expr,
    ) -> Result<(), LayoutError> {
        self.own(map.kernel, "a tensor map");
        self.own(to.kernel(), "an address");
        let barrier = self.barrier_of(ring, Side::Full, index)?;
        let coordinates = from.iter().rev().map(|&e| self.value(e)).collect();
        self.push_hopper(
            None,
            Hopper::TensorCopy {
                to,
                map: map.number,
                descriptor: map.address,
                coordinates,
                from: from.to_vec(),
                barrier,
                blocks,
                stage: Self::stage_use(ring, index),
            },
        );
        Ok(())
    }

    /// An operand of `wgmma` in the stage of a ring that an iteration of the pipeline reads: its first element is that of `view` at coordinates, and `descriptor` is
    /// that of the view's layout, which has one of the three swizzles.
    ///
    /// # Errors
    ///
    /// Coordinates that are not those of the view.
    pub(crate) fn matrix(
        &mut self,
        (view, at): (&View, &[Expr]),
        (descriptor, k_major): (&MatrixDescriptor, bool),
        (ring, iteration): (&RingHandle, Expr),
    ) -> Result<Matrix, LayoutError> {
        self.own(ring.kernel, "a ring");
        let strides = Strides {
            leading: descriptor.leading_bytes,
            stride: descriptor.stride_bytes,
            mode: descriptor.mode(),
        };
        let stage = Self::stage_use(ring, iteration);
        self.matrix_by((view, at), k_major, strides, stage)
    }

    /// As [`Kernel::matrix`], by the fields of the descriptor.
    pub(crate) fn matrix_by(
        &mut self,
        (of, by): (&View, &[Expr]),
        k_major: bool,
        strides: Strides,
        stage: StageUse,
    ) -> Result<Matrix, LayoutError> {
        // The address says what the descriptor means; no instruction has it as an operand.
        let before = self.addresses.clone();
        let at = of.element(self, by)?;
        self.addresses = before;
        let byte = of.moved(self, by)?.base(self)?;
        let byte = self.within_block(byte);
        let units = self.pool.shr(byte, 4);
        let leading = self.pool.constant((strides.leading >> 4) << 16);
        let low = self.pool.add(units, leading);
        Ok(Matrix {
            at,
            low: self.value(low),
            high: strides.mode << 30 | (strides.stride >> 4) as u32,
            descriptor: self.reg(Class::B64),
            k_major,
            stage,
        })
    }

    /// Neighbours of a row of a stage, from `at` on, to registers of 4 bytes.
    pub(crate) fn fetch(&mut self, to: &[Reg], at: Address, ring: &RingHandle, index: Expr) {
        self.note_width(at, 4 * to.len() as u32);
        self.own(ring.kernel, "a ring");
        let stage = Self::stage_use(ring, index);
        let to = to.to_vec();
        self.push_hopper(None, Hopper::Fetch { at, to, stage });
    }

    /// The warpgroup's registers are written before MMAs that follow read them: `wgmma.fence`.
    pub(crate) fn wgmma_fence(&mut self) {
        self.push_hopper(None, Hopper::WgmmaFence);
    }

    /// The MMAs since the last commit are a group: `wgmma.commit_group`.
    pub(crate) fn wgmma_commit(&mut self) {
        self.push_hopper(None, Hopper::WgmmaCommit);
    }

    /// Waits until at most `pending` groups of MMAs are in flight: `wgmma.wait_group`.
    pub(crate) fn wgmma_wait(&mut self, pending: u32) {
        self.push_hopper(None, Hopper::WgmmaWait { pending });
    }

    /// `begins` says whether sums begin with this product, and `add`, a predicate, the opposite.
    pub(crate) fn wgmma(
        &mut self,
        atom: &Arc<MmaAtom>,
        d: &[Reg],
        (a, b): (Factor, Matrix),
        (begins, add): (bool, Reg),
    ) {
        for matrix in a.matrix().into_iter().chain([&b]) {
            self.own(matrix.at.kernel(), "a matrix descriptor");
        }
        let (atom, d) = (Arc::clone(atom), d.to_vec());
        let product = Hopper::Wgmma {
            atom,
            d,
            a,
            b,
            add,
            begins,
        };
        self.push_hopper(None, product);
    }

    /// Waits until the grid before on the stream is complete and its stores are visible (`griddepcontrol.wait`). A kernel with this may be
    /// launched while that grid still runs (programmatic dependent launch): its contract says so (`beside_previous`), and `host::run` and the launches of several
    /// kernels do it. All threads wait, outside of branches, loops and roles. The kernel touches memory behind the wait alone, which the prover checks. `sm_90` and later.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    ///
    /// // y = x, where the grid before writes x: blocks compute their addresses while it ends.
    /// let mut k = Kernel::new("copy", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// k.wait_for_grid();
    /// let element = x.load::<f32>(&mut k, &[i])?;
    /// k.launch_dependents();
    /// y.store(&mut k, &[i], element)?;
    /// let copy = k.build(Arch(90))?;
    /// assert!(copy.ptx.contains("griddepcontrol.wait;"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn wait_for_grid(&mut self) {
        self.at_line();
        self.push_hopper(None, Hopper::WaitForGrid);
    }

    /// Lets the next grid on the stream be launched once all blocks of this one have come here or have ended (`griddepcontrol.launch_dependents`). It changes times alone: what that grid reads
    /// of this one's output it reads behind its own wait ([`Kernel::wait_for_grid`]). `sm_90` and later.
    #[track_caller]
    pub fn launch_dependents(&mut self) {
        self.at_line();
        self.push_hopper(None, Hopper::LaunchDependents);
    }

    /// From here on a thread of this role has so many registers.
    pub(crate) fn set_registers(&mut self, count: u32, more: bool) {
        self.push_hopper(None, Hopper::SetRegisters { count, more });
    }
}
