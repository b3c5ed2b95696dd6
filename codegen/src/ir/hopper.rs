//! What Hopper adds: barriers in shared memory (mbarriers), copies by the tensor memory accelerator (TMA), and products of a warpgroup (`wgmma`).
//!
//! A [`Ring`] is a pipeline between roles of a block: stages of shared memory, each with a `full` and an `empty` mbarrier. Copies fill stage `i mod S` for the
//! `i`-th time round, a product reads it, and releases it:
//!
//! ```text
//! producer   wait empty(i + L − S), expect bytes(i), copy …, copy …    one thread
//! consumers  wait full(i), wgmma …, commit, wait for the products of use i − L, arrive at empty(i)
//!
//! slot       i mod S            parity of full   (i div S) mod 2       of empty   1 − ((i + L) div S) mod 2
//! ```
//!
//! L is the ring's lag. With L = 0 a consumer releases the stage that it has just read, so it waits for all of its products in every step. With L = 1 it
//! has issued the products of use i when it waits for those of use i − 1, so that the tensor cores always have work. Its arrival in use i then means that
//! all uses up to i − 1 are released. Arrivals are still one a use; a wait of the producer is for the arrival L uses later:
//!
//! ```text
//! S = 4, L = 1   use 4 goes to the slot of use 0, which is released by the arrival in use 1:
//!                the producer waits for slot (4 + 1) mod 4 = 1, parity 1 − (5 div 4) mod 2 = 0: its first phase
//! ```
//!
//! Consumers may have a ping-pong schedule: each reads a run of stages, and runs its epilogue while the next one reads. Of R roles, role r reads its run t
//! behind run t of role r − 1, and role 0 behind run t − 1 of the last role. Each role has an order barrier, on which the role before it arrives:
//!
//! ```text
//! role r     wait order(r, t), read the run, wait for all MMAs, arrive at order(r + 1 mod R)
//!
//! parity of order(r, t)   t mod 2      of role 0, whose first run follows none   1 − t mod 2
//! ```
//!
//! Every instruction of a ring says which `i` it means; the prover holds its addresses and parities against it, and shows that roles keep to the protocol.

use std::sync::Arc;

use layout_core::atoms::MmaAtom;

use super::address::Address;
use super::bulk_store::BulkStore;
use super::value::{Reg, Type};
use crate::index::Expr;

/// A pipeline of stages in shared memory between roles of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ring {
    /// Its name in reports.
    pub(crate) name: String,
    /// How many stages.
    pub(crate) stages: i64,
    /// The buffer of its mbarriers: 8 bytes each, `full` of every stage, `empty` of every stage; in a ping-pong schedule `order` of every role, and where
    /// runs overlap `complete` of every role.
    pub(crate) barriers: usize,
    /// How many threads arrive at `empty` in each iteration, of all blocks of a cluster. Those of one block arrive on an order barrier.
    pub(crate) consumers: u32,
    /// How many uses later a stage is released: an arrival in use `i` says that reads of use `i − lag` are complete.
    pub(crate) lag: i64,
    /// How many consumer roles a ping-pong schedule has; 1 where each consumer reads every stage.
    pub(crate) ordered_roles: u32,
    /// A role arrives on the order barrier while its last MMAs are in flight, and on a second barrier when they are complete.
    pub(crate) overlaps: bool,
    /// The buffers whose stages it guards; their last two modes are the stage, and what it holds.
    pub(crate) buffers: Vec<usize>,
    /// Of each buffer, the rows and columns of a stage that are read: boxes may bring more, whole panels of which a product takes a part.
    pub(crate) read: Vec<[i64; 2]>,
}

/// One of a stage's two mbarriers, or of the one or two of a role in a ping-pong schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Completed when all bytes of the stage have arrived.
    Full,
    /// Completed when all consumers have released the stage.
    Empty,
    /// The order barrier of the role of this number: completed when the role before it has arrived.
    Order(u32),
    /// Completed when the MMAs of the run before are complete, so that stages may be released behind them.
    Complete(u32),
}

/// Which barrier of the next role a role of a ping-pong schedule arrives on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrderArrival {
    /// The order barrier: the next role may read its stages. Where runs overlap, MMAs of this role may be in flight.
    Order,
    /// The second barrier, where runs overlap: the MMAs of this role are complete.
    Complete,
}

impl OrderArrival {
    /// What the role of a number waits for.
    pub(crate) fn side(self, role: u32) -> Side {
        match self {
            OrderArrival::Order => Side::Order(role),
            OrderArrival::Complete => Side::Complete(role),
        }
    }
}

/// Which use of a stage an instruction of a ring means: the `index`-th from the start of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StageUse {
    /// The ring, by its number.
    pub(crate) ring: usize,
    /// The pipeline iteration; of an order barrier, the number of the role's run.
    pub(crate) index: Expr,
}

/// What a copy by TMA needs to know of an array: which buffer it is, the box that a copy moves, and the swizzle. The host encodes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TensorMap {
    /// The parameter that it is passed as.
    pub(crate) name: String,
    /// The buffer in global memory.
    pub(crate) buffer: usize,
    /// Elements of the box, in the order of the buffer's modes: rows, columns.
    pub(crate) extents: [i64; 2],
    /// Bytes of the swizzle's period along a row: 128, 64 or 32.
    pub(crate) swizzle: i64,
}

/// Bits of an address in shared memory that a matrix descriptor has a field for; the fields above it are offsets.
pub(crate) const DESCRIPTOR_BITS: u32 = 18;

/// The largest address of a kernel's shared memory. In a cluster an address has the block's rank from bit 24 on (measured on an H100: a variable at `0x400`
/// of its block is at `0x01000400` in that of rank 1).
pub(crate) fn last_shared_address(cluster: [u32; 3]) -> i64 {
    let last = i64::from(cluster.iter().product::<u32>()) - 1;
    (last << 24) + 232_448
}

/// An operand of `wgmma` in shared memory, by its matrix descriptor.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// Its first element.
    pub(crate) at: Address,
    /// The low half of the descriptor: address without the rank of the block, and leading offset, in units of 16 bytes.
    pub(crate) low: Reg,
    /// The high half: stride offset in units of 16 bytes, and swizzle mode.
    pub(crate) high: u32,
    /// The register of both halves.
    pub(crate) descriptor: Reg,
    /// Whether k is contiguous.
    pub(crate) k_major: bool,
    /// Which use of a stage it is read of.
    pub(crate) stage: StageUse,
}

/// The first factor of a product: `wgmma` takes A from shared memory or from registers, B from shared memory alone.
#[derive(Clone, PartialEq, Debug)]
pub enum Factor {
    /// In shared memory.
    Shared(Matrix),
    /// The fragment of each thread.
    Fragment(Vec<Reg>),
}

impl Factor {
    /// The operand in shared memory, if it is there.
    pub(crate) fn matrix(&self) -> Option<&Matrix> {
        match self {
            Factor::Shared(matrix) => Some(matrix),
            Factor::Fragment(_) => None,
        }
    }

    /// The registers of the fragment; none of an operand in shared memory.
    pub(crate) fn registers(&self) -> &[Reg] {
        match self {
            Factor::Shared(_) => &[],
            Factor::Fragment(all) => all,
        }
    }
}

/// A load or a store of what lies at the same place of the shared memory of a block of the cluster, its own or another.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Remote {
    /// The place, as the block itself has it.
    pub(crate) at: Address,
    /// The rank of the block in the cluster.
    pub(crate) block: Reg,
    /// The rank that is meant.
    pub(crate) rank: Expr,
    /// The register of its address there.
    pub(crate) there: Reg,
    /// What is moved, a register each.
    pub(crate) ty: Type,
    /// The registers.
    pub(crate) values: Vec<Reg>,
    /// They are stored; else loaded.
    pub(crate) stores: bool,
}

/// An instruction of Hopper.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Hopper {
    /// `to` = the generic address of a parameter.
    ParamAddress {
        /// The result, 64 bits.
        to: Reg,
        /// The parameter.
        name: String,
    },
    /// Brings a tensor map to the cache of the unit that copies by it. The first copy would wait for it otherwise.
    PrefetchMap {
        /// The address of the tensor map.
        descriptor: Reg,
    },
    /// Makes an mbarrier that `count` arrivals complete.
    BarrierInit {
        /// The mbarrier.
        at: Address,
        /// Arrivals of a phase.
        count: u32,
    },
    /// Makes the mbarriers that this thread made visible to copies, and to other threads behind a barrier.
    BarrierInitFence,
    /// Arrives at an mbarrier.
    Arrive {
        /// The mbarrier.
        at: Address,
        /// In which use it arrives; the one that is released is the ring's lag before.
        stage: StageUse,
    },
    /// Arrives on a barrier of the next role.
    Pass {
        /// Which barrier.
        what: OrderArrival,
        /// The mbarrier of the next role.
        at: Address,
        /// The role that arrives.
        role: u32,
        /// The number of its run.
        stage: StageUse,
    },
    /// Arrives at the mbarrier that lies at the same place of a block of the cluster, its own or another. The arrival is relaxed: it says that products which were
    /// waited for have read their operands, and orders no access of the thread's own. With `.release` ptxas puts a fence before it, which takes longer than a stage.
    ArriveAt {
        /// The mbarrier, as the block itself has it.
        at: Address,
        /// The rank of the block in the cluster.
        block: Reg,
        /// The register of its address there.
        remote: Reg,
        /// In which use it arrives; the one that is released is the ring's lag before.
        stage: StageUse,
    },
    /// Waits for all threads of the cluster.
    ClusterBarrier {
        /// It orders all accesses; else it is relaxed, and orders the mbarriers that [`Hopper::BarrierInitFence`] makes visible and nothing else.
        orders: bool,
    },
    /// A load or a store in the shared memory of a block of the cluster.
    Remote(Remote),
    /// Arrives at an mbarrier, whose phase also needs so many bytes of copies.
    Expect {
        /// The mbarrier.
        at: Address,
        /// The bytes.
        bytes: u32,
        /// Which use of the stage is filled.
        stage: StageUse,
    },
    /// Waits until a phase of an mbarrier is complete.
    Wait {
        /// The mbarrier.
        at: Address,
        /// The parity of the phase.
        parity: Reg,
        /// The predicate of the attempt.
        done: Reg,
        /// Which of the stage's mbarriers it is.
        side: Side,
        /// Which use of the stage is waited for.
        stage: StageUse,
    },
    /// A box of an array to shared memory, whose bytes an mbarrier counts.
    TensorCopy {
        /// Where to.
        to: Address,
        /// The tensor map, by its number.
        map: usize,
        /// The address of the tensor map.
        descriptor: Reg,
        /// Where the box begins, innermost first.
        coordinates: Vec<Reg>,
        /// The same, as the buffer's coordinates.
        from: Vec<Expr>,
        /// The mbarrier.
        barrier: Address,
        /// The blocks of the cluster that get it, a bit for each rank, all at the same place and counted by the mbarrier at the same place; none: the own
        /// block.
        blocks: Option<u16>,
        /// Which use of the stage is filled.
        stage: StageUse,
    },
    /// Part of a copy by TMA from shared to global memory.
    Bulk(BulkStore),
    /// Neighbours of a row of a stage to registers, 4 bytes each.
    Fetch {
        /// The first of them.
        at: Address,
        /// The registers.
        to: Vec<Reg>,
        /// Which use of a stage is read.
        stage: StageUse,
    },
    /// Orders writes to accumulators and fragments before the products that follow, which add to the ones and read the others.
    WgmmaFence,
    /// `d += a·b`, or `d = a·b`, by a warpgroup.
    Wgmma {
        /// The atom.
        atom: Arc<MmaAtom>,
        /// The accumulators.
        d: Vec<Reg>,
        /// A.
        a: Factor,
        /// B.
        b: Matrix,
        /// Whether the accumulators are added to: holds, unless the product begins sums.
        add: Reg,
        /// The product begins sums: what the accumulators held is left out.
        begins: bool,
    },
    /// Closes a group of products.
    WgmmaCommit,
    /// Waits until all groups of products but the youngest `pending` are complete.
    WgmmaWait {
        /// How many may be in flight.
        pending: u32,
    },
    /// Arrives at a named barrier, one of those numbered from 1 that some threads of the block share (`bar.sync`, or `bar.arrive`, which does not wait).
    NamedBarrier {
        /// Its number, 1 to 15.
        id: u32,
        /// The threads whose arrivals complete it.
        threads: u32,
        /// Those that arrive wait until it is complete.
        waits: bool,
    },
    /// Waits until the grid before is complete and what it wrote can be seen, where this one was launched before that (programmatic dependent launch);
    /// elsewhere nothing.
    WaitForGrid,
    /// As soon as all blocks have executed it, the grid behind may be launched, if its launch allows that: it waits by [`Hopper::WaitForGrid`].
    LaunchDependents,
    /// Changes how many registers a thread of this warpgroup may have.
    SetRegisters {
        /// How many.
        count: u32,
        /// Whether that is more than before.
        more: bool,
    },
}

impl Hopper {
    /// The registers that it reads, those of its addresses too.
    pub(super) fn sources(&self) -> Vec<Reg> {
        match self {
            Hopper::ParamAddress { .. }
            | Hopper::BarrierInitFence
            | Hopper::ClusterBarrier { .. }
            | Hopper::WgmmaFence
            | Hopper::WgmmaCommit
            | Hopper::WgmmaWait { .. }
            | Hopper::NamedBarrier { .. }
            | Hopper::WaitForGrid
            | Hopper::LaunchDependents
            | Hopper::SetRegisters { .. } => Vec::new(),
            Hopper::Bulk(inst) => inst.sources(),
            Hopper::Remote(inst) => {
                let mut all = vec![inst.at.base(), inst.block];
                all.extend(inst.values.iter().filter(|_| inst.stores));
                all
            }
            Hopper::PrefetchMap { descriptor } => vec![*descriptor],
            Hopper::BarrierInit { at, .. }
            | Hopper::Arrive { at, .. }
            | Hopper::Pass { at, .. }
            | Hopper::Expect { at, .. }
            | Hopper::Fetch { at, .. } => vec![at.base()],
            Hopper::ArriveAt { at, block, .. } => vec![at.base(), *block],
            Hopper::Wait { at, parity, .. } => vec![at.base(), *parity],
            Hopper::TensorCopy {
                to,
                descriptor,
                coordinates,
                barrier,
                ..
            } => {
                let mut all = vec![to.base(), *descriptor, barrier.base()];
                all.extend(coordinates);
                all
            }
            Hopper::Wgmma {
                d,
                a,
                b,
                add,
                begins,
                ..
            } => {
                // A product that begins sums reads none.
                let mut all = if *begins { Vec::new() } else { d.clone() };
                all.extend(a.registers());
                for matrix in a.matrix().into_iter().chain([b]) {
                    all.extend([matrix.low, matrix.at.base()]);
                }
                all.push(*add);
                all
            }
        }
    }

    /// The registers that it writes.
    pub(super) fn results(&self) -> Vec<Reg> {
        match self {
            Hopper::ParamAddress { to, .. } => vec![*to],
            Hopper::ArriveAt { remote, .. } => vec![*remote],
            Hopper::Remote(inst) => {
                let mut all = vec![inst.there];
                all.extend(inst.values.iter().filter(|_| !inst.stores));
                all
            }
            Hopper::Wait { done, .. } => vec![*done],
            Hopper::Fetch { to, .. } => to.clone(),
            Hopper::Wgmma { d, a, b, .. } => {
                let mut all = d.clone();
                let matrices = a.matrix().into_iter().chain([b]);
                all.extend(matrices.map(|matrix| matrix.descriptor));
                all
            }
            _ => Vec::new(),
        }
    }
}
