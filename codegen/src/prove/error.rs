//! Why a kernel is refused.

use std::fmt;

/// Why a kernel is refused: the statement that does not hold, or cannot be decided.
///
/// ```
/// use layout_codegen::prove::ProofError;
///
/// let error = ProofError::Alignment { access: "read tile".to_owned(), bytes: 16 };
/// assert_eq!(error.code(), "alignment");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProofError {
    /// The kernel is not built as the builder asks: a value of another kernel, an invalid name, a size that does not fit.
    Malformed {
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// An address is not where its buffer keeps the element that it is meant for.
    Address {
        /// The access.
        access: String,
        /// A thread of it.
        thread: usize,
    },
    /// An access may touch what is outside its buffer.
    Bounds {
        /// The access.
        access: String,
        /// A thread of it.
        thread: usize,
        /// The mode of the buffer.
        mode: usize,
    },
    /// An access is not aligned to its width.
    Alignment {
        /// The access.
        access: String,
        /// Bytes that it moves at once.
        bytes: u32,
    },
    /// An access moves more or fewer bytes than its place is meant for.
    Width {
        /// The access.
        access: String,
        /// Bytes that it moves.
        bytes: u32,
    },
    /// A predicate or a chosen value is not what it was made from.
    Meaning {
        /// Its register in the text, or the line that computes it.
        register: String,
    },
    /// A guard never holds.
    Guard {
        /// The access.
        access: String,
        /// A thread of it.
        thread: usize,
    },
    /// A register is read that has no value on some path.
    Register {
        /// Its name in the text.
        register: String,
    },
    /// A loop may not end, or its counter may wrap around.
    Loop {
        /// The loop.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// An instruction of whole warps where some lanes may not take part.
    PartialWarp {
        /// The instruction.
        what: String,
    },
    /// An input is stored to.
    Input {
        /// The access.
        access: String,
        /// The input.
        input: String,
    },
    /// A value is stored that may be of an earlier iteration, since the branch that sets it may not be taken.
    Stale {
        /// The access.
        access: String,
        /// The register's name in the text.
        register: String,
    },
    /// Shared memory is read where no write is ordered before it.
    Undefined {
        /// The access.
        access: String,
        /// The thread that reads.
        thread: usize,
        /// The byte.
        byte: i64,
        /// What is missing.
        missing: &'static str,
    },
    /// Two threads touch a byte of shared memory, one of them writing, and nothing orders them.
    Race {
        /// The two accesses, the earlier first.
        accesses: [String; 2],
        /// Their threads.
        threads: [usize; 2],
        /// The byte.
        byte: i64,
        /// What is missing.
        missing: &'static str,
    },
    /// The kernel ends while a copy to global memory may still read shared memory.
    Unfinished {
        /// The copy.
        access: String,
        /// The byte.
        byte: i64,
    },
    /// A barrier, or a branch that all threads are said to agree on, is not met by all of them.
    Divergent {
        /// What.
        what: String,
    },
    /// An output is not written exactly once.
    Coverage {
        /// The output.
        output: String,
        /// What is wrong.
        reason: String,
    },
    /// An element of an output that is written in part may be written twice.
    Shared {
        /// The output.
        output: String,
        /// What is wrong.
        reason: String,
    },
    /// An element of an output is read that another thread may have written already.
    Overwritten {
        /// The access.
        access: String,
        /// The output.
        output: String,
        /// Who may have written it.
        reason: String,
    },
    /// An assumption that cannot be taken as a fact.
    Assumption {
        /// What is stated.
        condition: String,
        /// What stands in the way.
        reason: &'static str,
    },
    /// A role does not keep to the protocol of a ring.
    Ring {
        /// The ring.
        ring: String,
        /// What it does instead.
        reason: String,
    },
    /// Roles do not keep to the protocol of named barriers.
    Named {
        /// What they do instead.
        reason: String,
    },
    /// The blocks of a cluster do not stay together while they reach each other's shared memory.
    Cluster {
        /// What one does instead.
        reason: String,
    },
    /// An accumulator is touched while products that write it may be in flight.
    InFlight {
        /// The register.
        register: String,
    },
    /// A product begins sums in an accumulator of which nothing has read the sums before.
    Lost {
        /// The register.
        register: String,
    },
    /// A product adds to sums that were read, so that they count twice.
    Twice {
        /// The register.
        register: String,
    },
    /// An accumulator was touched, and a product adds to it without a fence between.
    Fence {
        /// The register.
        register: String,
    },
    /// Memory is touched before the kernel has waited for the grid before it, beside which it may be launched.
    Early {
        /// What touches it.
        instruction: String,
    },
    /// The paths through the kernel do not come to an end.
    Paths {
        /// States that were visited.
        states: usize,
    },
    /// Something that the prover does not follow.
    Undecided {
        /// What.
        what: String,
    },
}

impl ProofError {
    /// A stable name of this error.
    ///
    /// ```
    /// use layout_codegen::prove::ProofError;
    ///
    /// let error = ProofError::Divergent { what: "a barrier".to_owned() };
    /// assert_eq!(error.code(), "divergent");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::Address { .. } => "address",
            Self::Bounds { .. } => "bounds",
            Self::Alignment { .. } => "alignment",
            Self::Guard { .. } => "guard",
            Self::Meaning { .. } => "meaning",
            Self::Width { .. } => "width",
            Self::Register { .. } => "register",
            Self::Loop { .. } => "loop",
            Self::PartialWarp { .. } => "partial_warp",
            Self::Input { .. } => "input",
            Self::Stale { .. } => "stale",
            Self::Undefined { .. } => "undefined",
            Self::Race { .. } => "race",
            Self::Unfinished { .. } => "unfinished",
            Self::Divergent { .. } => "divergent",
            Self::Coverage { .. } => "coverage",
            Self::Shared { .. } => "shared_element",
            Self::Overwritten { .. } => "overwritten",
            Self::Assumption { .. } => "assumption",
            Self::Ring { .. } => "ring",
            Self::Named { .. } => "named_barrier",
            Self::Cluster { .. } => "cluster",
            Self::InFlight { .. } => "in_flight",
            Self::Lost { .. } => "lost",
            Self::Twice { .. } => "twice",
            Self::Fence { .. } => "fence",
            Self::Early { .. } => "early",
            Self::Paths { .. } => "paths",
            Self::Undecided { .. } => "undecided",
        }
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { what } => write!(f, "the kernel is not well-formed: {what}"),
            Self::Address { access, thread } => write!(
                f,
                "{access}: the address of thread {thread} is not where the buffer keeps the element that it is meant for"
            ),
            Self::Bounds {
                access,
                thread,
                mode,
            } => write!(
                f,
                "{access}: thread {thread} may be outside the buffer along mode {mode}: its guard does not keep it inside"
            ),
            Self::Alignment { access, bytes } => write!(
                f,
                "{access}: {bytes} bytes at once need an address that is a multiple of {bytes}"
            ),
            Self::Width { access, bytes } => write!(
                f,
                "{access} moves {bytes} bytes at once, and its place is meant for another number"
            ),
            Self::Meaning { register } => {
                write!(f, "the value {register} is not what it was made from")
            }
            Self::Guard { access, thread } => write!(
                f,
                "{access}: its guard never holds, for thread {thread} and all others: the access is never made"
            ),
            Self::Loop { name, reason } => write!(f, "loop {name}: {reason}"),
            Self::PartialWarp { what } => write!(
                f,
                "{what} is an instruction of whole warps, and some of a warp's 32 lanes may not take part: put it outside of guards, branches and exits on which lanes may differ, in a block of whole warps"
            ),
            Self::Input { access, input } => write!(
                f,
                "{access}: `{input}` is an input, which is read by a cache that sees no stores: declare it an output"
            ),
            Self::Register { register } => {
                write!(
                    f,
                    "the value {register} is read, and on some path it has none"
                )
            }
            Self::Stale { access, .. } => write!(
                f,
                "{access} stores a value that on some path is of an earlier iteration: set it on every path, or store it where it is set"
            ),
            Self::Undefined {
                access,
                thread,
                byte,
                missing,
            } => write!(
                f,
                "{access}: thread {thread} reads byte {byte} of shared memory, and {missing}"
            ),
            Self::Race {
                accesses: [a, b],
                threads: [x, y],
                byte,
                missing,
            } => write!(
                f,
                "{a} by thread {x} and {b} by thread {y} touch byte {byte} of shared memory, and {missing}"
            ),
            Self::Unfinished { access, byte } => write!(
                f,
                "{access}: the kernel ends while it may still read byte {byte} of shared memory: close its group and wait for it"
            ),
            Self::Divergent { what } => write!(
                f,
                "{what}: not all threads of the block agree, and those that wait would wait forever"
            ),
            Self::Coverage { output, reason } => {
                write!(f, "output `{output}` is not written exactly once: {reason}")
            }
            Self::Shared { output, reason } => {
                write!(
                    f,
                    "an element of output `{output}` may be written twice: {reason}"
                )
            }
            Self::Overwritten {
                access,
                output,
                reason,
            } => write!(
                f,
                "{access}: the element of output `{output}` may be overwritten already: {reason}"
            ),
            Self::Assumption { condition, reason } => {
                write!(f, "the assumption {condition} is refused: {reason}")
            }
            Self::Ring { ring, reason } => write!(f, "the ring `{ring}`: {reason}"),
            Self::Named { reason } => write!(f, "named barriers: {reason}"),
            Self::Cluster { reason } => write!(f, "the blocks of a cluster: {reason}"),
            Self::InFlight { register } => write!(
                f,
                "register {register} is an accumulator of products that may be in flight: wait for their group first"
            ),
            Self::Lost { register } => write!(
                f,
                "a product begins new sums in {register}, and nothing has read the ones before: add them to other sums first"
            ),
            Self::Twice { register } => write!(
                f,
                "a product adds to the sums in {register}, which were read already: begin new sums, or set the register"
            ),
            Self::Fence { register } => write!(
                f,
                "register {register} is an accumulator, and was touched after the last `wgmma.fence`: a product needs the fence first"
            ),
            Self::Early { instruction } => write!(
                f,
                "{instruction} comes before `griddepcontrol.wait`, while the grid before may still run: wait first"
            ),
            Self::Paths { states } => write!(
                f,
                "the paths through the kernel do not repeat after {states} states of shared memory"
            ),
            Self::Undecided { what } => write!(f, "the prover does not follow {what}"),
        }
    }
}

impl std::error::Error for ProofError {}
