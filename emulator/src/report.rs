//! What a run reports: findings about the kernel and counters.
//!
//! A finding names the place in the PTX text, the block, the warp and the lanes, and says in one sentence what is wrong and with what
//! other access. One instruction gives at most one finding of a kind; how often it happened is counted, and findings of one cause are one, with
//! the lines of the others in [`Finding::also`].

use std::fmt;
use std::time::Duration;

use crate::source::SourceLine;

/// The kinds of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// Access outside every allocation, the block's shared memory, the parameters or local memory.
    OutOfBounds,
    /// Address not a multiple of the access size.
    Misaligned,
    /// Use of the value of a register that was never written in that lane: as an address or a guard, as an operand of a barrier, a copy or an atomic, or in a store
    /// to global memory. Moves and arithmetic pass it on.
    UndefinedRegister,
    /// Such a use of a value read from shared memory that was never written in this block.
    UndefinedShared,
    /// Such a use of a value read from global memory that neither host nor kernel wrote.
    UndefinedGlobal,
    /// Two accesses to the same shared bytes, one of them a write, with no barrier between.
    SharedRace,
    /// Lanes of one instruction store different values to the same bytes.
    WriteConflict,
    /// Two blocks access the same global bytes, one of them with a plain store.
    GlobalRace,
    /// Shared memory accessed while a `cp.async` into it is in flight.
    ReadBeforeWait,
    /// Another lane's `cp.async` was waited for, but no barrier followed.
    MissingBarrierAfterWait,
    /// A store to global memory that an asynchronous copy reads, before anybody has waited for the copy.
    SourceOverwritten,
    /// A barrier or another `.aligned` instruction while lanes of the warp are elsewhere, or other warps at another such barrier.
    Divergent,
    /// A barrier used with different thread counts, by a warp twice before it completes, or by reductions and other operations at once.
    BarrierMismatch,
    /// `__assertfail` was called: an assertion of the source did not hold.
    Assertion,
    /// Calls nest deeper than the stack of a thread, 512 KiB, holds.
    StackOverflow,
    /// Every warp waits and none can go on.
    Deadlock,
    /// Lanes named in a member mask that do not execute the instruction.
    MemberMask,
    /// A loop that can never end: registers and memory are what they were some rounds before.
    EndlessLoop,
    /// The step limit was reached.
    StepLimit,
    /// An mbarrier that is not initialised, initialised twice, overwritten, or given more arrivals than its phase expects.
    Mbarrier,
    /// The bytes that an mbarrier expects are not those that copies bring.
    TransactionCount,
    /// The asynchronous proxy accesses what the generic one wrote, without `fence.proxy.async` between.
    MissingProxyFence,
    /// Registers of a `wgmma` used before `wgmma.wait_group`.
    WgmmaInFlight,
    /// Registers of a `wgmma` used before it, without `wgmma.fence` between.
    MissingWgmmaFence,
    /// Access to the shared memory of a block that has exited, or exit of a block while a copy uses its shared memory.
    BlockExited,
    /// A tensor map that is none, or a copy that does not fit it.
    TensorMap,
    /// A store of a box whose last chunk of 16 bytes crosses the extent of the array's innermost dimension: the bytes behind it are written too.
    TensorEdge,
    /// `trap` was executed.
    Trap,
    /// Something only the host could have got wrong at run time, such as a barrier number above 15 or an index outside its table.
    BadOperand,
}

impl FindingKind {
    /// A stable name in `snake_case`.
    pub fn code(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out_of_bounds",
            Self::Misaligned => "misaligned",
            Self::UndefinedRegister => "undefined_register",
            Self::UndefinedShared => "undefined_shared",
            Self::UndefinedGlobal => "undefined_global",
            Self::SharedRace => "shared_race",
            Self::WriteConflict => "write_conflict",
            Self::GlobalRace => "global_race",
            Self::ReadBeforeWait => "read_before_wait",
            Self::MissingBarrierAfterWait => "missing_barrier_after_wait",
            Self::SourceOverwritten => "source_overwritten",
            Self::Divergent => "divergent",
            Self::BarrierMismatch => "barrier_mismatch",
            Self::Assertion => "assertion",
            Self::StackOverflow => "stack_overflow",
            Self::Deadlock => "deadlock",
            Self::MemberMask => "member_mask",
            Self::EndlessLoop => "endless_loop",
            Self::StepLimit => "step_limit",
            Self::Mbarrier => "mbarrier",
            Self::TransactionCount => "transaction_count",
            Self::MissingProxyFence => "missing_proxy_fence",
            Self::WgmmaInFlight => "wgmma_in_flight",
            Self::MissingWgmmaFence => "missing_wgmma_fence",
            Self::BlockExited => "block_exited",
            Self::TensorMap => "tensor_map",
            Self::TensorEdge => "tensor_edge",
            Self::Trap => "trap",
            Self::BadOperand => "bad_operand",
        }
    }
}

/// Something wrong that the kernel did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// Line of the instruction in the PTX text, from 1.
    pub line: u32,
    /// Column of the instruction, from 1.
    pub column: u32,
    /// The instruction with its modifiers.
    pub opcode: String,
    /// `%ctaid` of the first block in which it happened.
    pub block: [u32; 3],
    /// Warp in the block.
    pub warp: u32,
    /// Lanes concerned, bit l for lane l.
    pub lanes: u32,
    /// Address of the first of these lanes, in its state space, if the finding is about memory.
    pub address: Option<u64>,
    /// One sentence with the particulars.
    pub message: String,
    /// How many times it happened in the whole launch.
    pub count: u64,
    /// Line of the program that the PTX was compiled from, if the text has `.loc` directives.
    pub source: Option<SourceLine>,
    /// Lines of further instructions of the PTX text in which the same happened for the same cause.
    pub also: Vec<u32>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "{}: line {}", self.kind.code(), self.line)?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        write!(f, ": {}: {}", self.opcode, self.message)?;
        write!(
            f,
            " [block ({x},{y},{z}), warp {}, lanes {:#010x}",
            self.warp, self.lanes
        )?;
        if let Some(a) = self.address {
            write!(f, ", address {a:#x}")?;
        }
        if self.count > 1 {
            write!(f, ", {} times", self.count)?;
        }
        write!(f, "]")?;
        if let [first, rest @ ..] = &self.also[..] {
            let more = rest.len().saturating_sub(7);
            write!(
                f,
                " and so in line{} {first}",
                if rest.is_empty() { "" } else { "s" }
            )?;
            for line in &rest[..rest.len() - more] {
                write!(f, ", {line}")?;
            }
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        Ok(())
    }
}

/// What an instruction moved, see [`crate::Options::profile`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes loaded from or stored to global memory by lanes, copies included.
    pub global_bytes: u64,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// Bytes of local memory.
    pub local_bytes: u64,
    /// Accesses of warps to global memory.
    pub requests: u64,
    /// Sectors of 32 bytes that these touched, summed.
    pub sectors: u64,
    /// The fewest sectors that hold as many bytes, summed.
    pub ideal_sectors: u64,
}

impl Traffic {
    /// Adds what another instruction, or another worker, moved.
    pub(crate) fn add(&mut self, other: &Self) {
        self.global_bytes += other.global_bytes;
        self.shared_bytes += other.shared_bytes;
        self.local_bytes += other.local_bytes;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
    }
}

/// Counts of one instruction of the text over the whole launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionCounter {
    /// Line in the PTX text, from 1.
    pub line: u32,
    /// The instruction with its modifiers.
    pub opcode: String,
    /// Times a warp executed it (with at least one lane).
    pub warps: u64,
    /// Lanes that executed it, summed.
    pub lanes: u64,
    /// Shared-memory wavefronts, summed; 0 for instructions that do not touch shared memory.
    pub wavefronts: u64,
    /// Wavefronts there would be without bank conflicts, summed.
    pub ideal_wavefronts: u64,
    /// Fewest wavefronts of one execution.
    pub min_wavefronts: u32,
    /// Most wavefronts of one execution.
    pub max_wavefronts: u32,
    /// What it moved; zeros unless [`crate::Options::profile`] asks.
    pub traffic: Traffic,
}

impl InstructionCounter {
    /// Whether it accessed shared memory.
    pub fn is_shared(&self) -> bool {
        self.wavefronts > 0
    }
}

/// Counters of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions executed by warps (with at least one lane).
    pub warp_instructions: u64,
    /// Instructions executed by lanes.
    pub lane_instructions: u64,
    /// Shared-memory wavefronts of all instructions.
    pub wavefronts: u64,
    /// Wavefronts there would be without bank conflicts.
    pub ideal_wavefronts: u64,
    /// What all instructions moved; zeros unless [`crate::Options::profile`] asks.
    pub traffic: Traffic,
    /// For each instruction in the text of the kernel, in order.
    pub instructions: Vec<InstructionCounter>,
}

impl Counters {
    /// The instructions that accessed shared memory.
    pub fn shared(&self) -> impl Iterator<Item = &InstructionCounter> {
        self.instructions.iter().filter(|i| i.is_shared())
    }
}

/// The outcome of [`crate::run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the kernel did wrong, by the order of the text; at most `max_findings`.
    pub findings: Vec<Finding>,
    /// What the ISA does not promise and hardware allows, which programs in wide use do: no errors. At most `max_findings`.
    pub notes: Vec<Finding>,
    /// Different findings there were, beyond `max_findings` too.
    pub total_findings: u64,
    /// Instruction and wavefront counts.
    pub counters: Counters,
    /// What the kernel printed by `printf`, block after block; at most [`crate::MAX_PRINTED`] bytes.
    pub printed: String,
    /// Blocks run.
    pub blocks: u64,
    /// Wall time of the run.
    pub wall: Duration,
}

impl Report {
    /// No findings; there may be notes.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
