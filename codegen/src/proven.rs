//! A kernel of one's own, proven and printed: text, proof and launch contract.

use std::collections::HashSet;
use std::fmt;

use crate::Arch;
use crate::formulas::Formulas;
use crate::ir;
use crate::ir::checked;
use crate::ir::{
    Arrangement, Element, Entry, Extent, Inst, Kernel, Node, Param, ParamKind, Place, Role, Stride,
    Type,
};
use crate::print::module;
use crate::prove::{AccessProof, KernelProof, ProofError, prove};
use crate::tensor_map::MapArgument;

/// A kernel that was proven: its text, and what a launch of it must keep to.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_core::Layout;
///
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let block = k.tiles(Axis::X, n, 512)?;
/// let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
/// let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// k.copy(&x, &y)?;
/// let copy = k.build(Arch(80))?;
/// assert_eq!(copy.grid(|name| (name == "n").then_some(1000))?, [2, 1, 1]);
/// assert!(copy.grid(|_| Some(1 << 31)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Proven {
    /// The complete PTX module.
    pub ptx: String,
    /// What was proven.
    pub proof: KernelProof,
    entry: Entry,
    /// Outputs that it reads, by their numbers.
    read: Vec<usize>,
    /// Outputs that it combines values into by atomic operations.
    combined: Vec<usize>,
}

/// What an author states of all elements of an input of 32-bit integers. [`Proven::stated`] has it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Elements {
    /// No two are equal.
    Distinct,
    /// They are in this range.
    Within(std::ops::Range<i64>),
}

impl Elements {
    /// The first element that is not as stated, and its number; of two equal ones the second.
    ///
    /// ```
    /// use layout_codegen::Elements;
    ///
    /// assert_eq!(Elements::Distinct.refuted_by([3, 1, 3]), Some((2, 3)));
    /// assert_eq!(Elements::Within(0..3).refuted_by([2, 0, -1]), Some((2, -1)));
    /// assert_eq!(Elements::Within(0..3).refuted_by([]), None);
    /// ```
    pub fn refuted_by(&self, elements: impl IntoIterator<Item = i32>) -> Option<(usize, i32)> {
        let mut known = HashSet::new();
        let mut all = elements.into_iter().enumerate();
        all.find(|(_, x)| match self {
            Elements::Distinct => !known.insert(*x),
            Elements::Within(range) => !range.contains(&i64::from(*x)),
        })
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elements::Distinct => f.write_str("distinct"),
            Elements::Within(range) => write!(f, "in {}..{}", range.start, range.end),
        }
    }
}

/// What a kernel does with a buffer of its launch.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::Usage;
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_core::Layout;
///
/// // y = x + y
/// let mut k = Kernel::new("add", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let (x, old) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
/// let sum = x.zip(&mut k, &old, |k, x, y| x.add(k, y))?;
/// k.store_fragment(&y, &sum)?;
/// let buffers = k.build(Arch(80))?.buffers(|_| Some(100))?;
/// let usages: Vec<Usage> = buffers.iter().map(|b| b.usage).collect();
/// assert_eq!(usages, [Usage::Input, Usage::InOut]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Usage {
    /// It is read and not written.
    Input,
    /// Every element is written, and none is read.
    Output,
    /// It is written, and read too: what it holds before the launch may matter.
    InOut,
    /// Some elements are written, each at most once; the others keep what they hold.
    Partial,
    /// Elements are combined with values by atomic operations.
    Combined,
}

/// What a launch gives for a buffer. Buffers that are written overlap no other buffer: the text reads inputs by `ld.global.nc`, for which memory does not
/// change while the kernel runs.
///
/// ```
/// use layout_codegen::{Buffer, Usage};
///
/// let y = Buffer { name: "y".to_owned(), bytes: 4096, alignment: 16, usage: Usage::Output };
/// assert!(y.bytes.is_multiple_of(y.alignment));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The name of its parameter.
    pub name: String,
    /// Bytes that it has at least.
    pub bytes: u64,
    /// What its address is a multiple of, in bytes.
    pub alignment: u64,
    /// What the kernel does with it.
    pub usage: Usage,
}

/// What a launch does not keep to.
///
/// ```
/// use layout_codegen::ContractError;
///
/// let error = ContractError::TooLarge { name: "n".to_owned(), value: 5, most: 4 };
/// assert_eq!(error.code(), "too_large");
/// assert_eq!(error.to_string(), "`n` is 5, and the kernel was proven for at most 4");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ContractError {
    /// A parameter has no value.
    Missing {
        /// Its name.
        name: String,
    },
    /// A parameter is beyond what the kernel is made for.
    TooLarge {
        /// Its name.
        name: String,
        /// Its value.
        value: u64,
        /// The largest that works.
        most: u64,
    },
    /// A parameter is no multiple of what the kernel is made for.
    Multiple {
        /// Its name.
        name: String,
        /// Its value.
        value: u64,
        /// What it must be a multiple of.
        of: u64,
    },
    /// An assumption of the kernel's author does not hold.
    Assumption {
        /// What is assumed.
        condition: String,
        /// Why, in the author's words.
        reason: String,
    },
    /// A grid has no room for so many blocks along an axis.
    Grid {
        /// The axis.
        axis: char,
        /// Blocks that are needed.
        blocks: u64,
        /// Blocks that there can be.
        most: u64,
    },
}

impl ContractError {
    /// A stable name of this error.
    ///
    /// ```
    /// use layout_codegen::ContractError;
    ///
    /// let axis = ContractError::Grid { axis: 'y', blocks: 70_000, most: 65_535 };
    /// assert_eq!(axis.code(), "too_large");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::TooLarge { .. } | Self::Grid { .. } => "too_large",
            Self::Multiple { .. } => "unaligned",
            Self::Assumption { .. } => "assumption",
        }
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => write!(f, "parameter `{name}` has no value: give one"),
            Self::TooLarge { name, value, most } => write!(
                f,
                "`{name}` is {value}, and the kernel was proven for at most {most}"
            ),
            Self::Multiple { name, value, of } => write!(
                f,
                "`{name}` is {value}, and the kernel was proven for multiples of {of}"
            ),
            Self::Assumption { condition, reason } => write!(
                f,
                "the kernel was proven under the assumption {condition} ({reason}), which does not hold for these sizes"
            ),
            Self::Grid { axis, blocks, most } => write!(
                f,
                "the problem takes {blocks} blocks along {axis}, and a grid has room for {most}: take larger tiles, or let that axis count fewer"
            ),
        }
    }
}

impl std::error::Error for ContractError {}

/// Bytes that the rows of an array of a tensor map are multiples of (CUDA driver API, `cuTensorMapEncodeTiled`).
const MAP_ROW: u64 = 16;

/// Blocks that a grid can have along x, y, z (CUDA C++ Programming Guide, technical specifications).
pub(crate) const GRID: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// Blocks that a launch can have along x, y, z.
pub(crate) fn most_blocks(entry: &Entry) -> [u64; 3] {
    std::array::from_fn(|axis| GRID[axis].min(entry.grid_limit[axis]))
}

impl Kernel {
    /// Proves the kernel and prints it for an architecture.
    ///
    /// # Errors
    ///
    /// [`ProofError::Malformed`] for what the author did wrong while it was written, and for what the architecture does not have; else what does not hold of it,
    /// or cannot be decided.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::Arch;
    ///
    /// let mut k = Kernel::new("waits", 64);
    /// k.barrier();
    /// assert!(k.build(Arch(90))?.ptx.contains(".target sm_90"));
    /// // A group of asynchronous copies: sm_75 has none.
    /// let mut k = Kernel::new("copies", 64);
    /// k.commit_group();
    /// assert!(k.build(Arch(75)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self, arch: Arch) -> Result<Proven, ProofError> {
        self.printed(arch, prove)
    }

    /// Prints the kernel as [`Kernel::build`] does, without a proof. The fuzzer runs it to learn whether a refusal was needed; others want
    /// [`Kernel::unproven_text`].
    #[doc(hidden)]
    pub fn build_unproven(self, arch: Arch) -> Result<Proven, ProofError> {
        self.printed(arch, |_| Ok(KernelProof::default()))
    }

    /// The text of a kernel that [`Kernel::build`] refuses, for inspection: nothing is proven of it, and it may be wrong.
    ///
    /// # Errors
    ///
    /// [`ProofError::Malformed`] for what the author did wrong while it was written: that has no text.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    /// use layout_codegen::view::ViewError;
    ///
    /// let half_waits = || -> Result<Kernel, ViewError> {
    ///     let mut k = Kernel::new("half_waits", 64);
    ///     let (thread, half) = (k.thread(), k.constant(32));
    ///     let p = Predicate::of(&mut k, thread, Cmp::Lt, half);
    ///     k.when(p, |k| Ok::<(), ViewError>(k.barrier()))?;
    ///     Ok(k)
    /// };
    /// assert!(half_waits()?.build(Arch(80)).is_err());
    /// assert!(half_waits()?.unproven_text(Arch(80))?.contains("bar.sync 0;"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unproven_text(self, arch: Arch) -> Result<String, ProofError> {
        Ok(self.build_unproven(arch)?.ptx)
    }

    fn printed(
        self,
        arch: Arch,
        prove: impl FnOnce(&Entry) -> Result<KernelProof, ProofError>,
    ) -> Result<Proven, ProofError> {
        let entry = self.finish();
        if let Some(what) = entry.mistake {
            return Err(ProofError::Malformed { what });
        }
        if entry.for_modules {
            return Err(ProofError::Malformed {
                what: "it states what its launches keep to (`launch_…`), which only the launches of a module are described by: build it with `Module::build`, or count tiles with `Kernel::tiles` and state conditions with `Kernel::assume`".to_owned(),
            });
        }
        let version = fits(&entry, arch, arch.ptx_version().max("7.0"))?;
        let proof = prove(&entry)?;
        let target = target(std::slice::from_ref(&entry), arch);
        let ptx = module(std::slice::from_ref(&entry), version, &target);
        let read = touched(&entry, |inst| match inst {
            Inst::Load { at, .. } | Inst::CopyAsync { from: at, .. } => Some(at.place()),
            _ => None,
        });
        let combined = touched(&entry, |inst| match inst {
            Inst::Store {
                at,
                atomic: Some(_),
                ..
            } => Some(at.place()),
            _ => None,
        });
        Ok(Proven {
            ptx,
            proof,
            entry,
            read,
            combined,
        })
    }
}

/// Bytes of parameters that every architecture takes (PTX ISA, kernel function parameters).
const PARAMETER_BYTES: u32 = 4096;

/// The PTX version that a kernel needs, at least `version`; refuses what the architecture does not have.
pub(crate) fn fits(
    entry: &Entry,
    arch: Arch,
    version: &'static str,
) -> Result<&'static str, ProofError> {
    let refuse = |what: String| Err(ProofError::Malformed { what });
    let parameters = entry.params.iter().fold(0, |bytes: u32, p| {
        bytes.next_multiple_of(p.kind.alignment()) + p.kind.bytes()
    });
    if parameters > PARAMETER_BYTES {
        return refuse(format!(
            "its parameters take {parameters} bytes, and a launch passes {PARAMETER_BYTES}: declare fewer"
        ));
    }
    let (bytes, limit) = (entry.shared.map_or(0, |s| s.bytes), arch.shared_limit());
    if bytes > limit.into() {
        return refuse(format!(
            "it takes {bytes} bytes of shared memory, and a block on {arch} has {limit}: take smaller tiles or fewer stages, or build it for another architecture"
        ));
    }
    if entry.cluster_blocks() > 1 && arch.0 < 90 {
        return refuse(format!(
            "it runs in clusters of blocks, which {arch} does not have: sm_90 is the first"
        ));
    }
    if arch.0 != 90 && is_of_hopper_alone(entry) {
        return refuse(format!(
            "it has `wgmma` or `setmaxnreg`, which only {HOPPER_ALONE} has: build it for Arch(90)"
        ));
    }
    supported(&entry.nodes, arch, version)
}

/// The target that a module of these kernels names.
pub(crate) fn target(entries: &[Entry], arch: Arch) -> String {
    if entries.iter().any(is_of_hopper_alone) {
        HOPPER_ALONE.to_owned()
    } else {
        arch.to_string()
    }
}

/// The target of what Hopper alone has.
const HOPPER_ALONE: &str = "sm_90a";

/// Whether a kernel has instructions that Hopper alone has.
fn is_of_hopper_alone(entry: &Entry) -> bool {
    let mut found = false;
    let is = |inst: &Inst| inst.is_of_hopper_alone().then_some(0);
    places(&entry.nodes, &is, &mut |_| found = true);
    found
}

/// The buffers of those places that instructions give.
fn touched(entry: &Entry, place: impl Fn(&Inst) -> Option<u32>) -> Vec<usize> {
    let mut found = Vec::new();
    places(&entry.nodes, &place, &mut |place| {
        buffers_at(entry, place, &mut found);
    });
    found
}

fn places(nodes: &[Node], place: &impl Fn(&Inst) -> Option<u32>, found: &mut impl FnMut(u32)) {
    for node in nodes {
        match node {
            Node::Inst(statement) => {
                if let Some(place) = place(&statement.inst) {
                    found(place);
                }
            }
            Node::If(branch) => {
                places(&branch.then, place, found);
                places(&branch.otherwise, place, found);
            }
            Node::Loop(iterations) => {
                places(&iterations.entry, place, found);
                places(&iterations.body, place, found);
            }
            Node::Roles(roles) => {
                for role in roles {
                    places(&role.body, place, found);
                }
            }
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => {}
        }
    }
}

fn buffers_at(entry: &Entry, place: u32, found: &mut Vec<usize>) {
    match entry.places.get(place as usize) {
        Some(Place::Element { buffer, .. }) => found.push(*buffer),
        Some(Place::Either {
            then, otherwise, ..
        }) => {
            buffers_at(entry, *then, found);
            buffers_at(entry, *otherwise, found);
        }
        None => {}
    }
}

/// The PTX version that the instructions need, at least `version`; an architecture that does not have one of them is refused.
fn supported(
    nodes: &[Node],
    arch: Arch,
    mut version: &'static str,
) -> Result<&'static str, ProofError> {
    for node in nodes {
        let statement = match node {
            Node::Inst(statement) => statement,
            Node::If(branch) => {
                version = supported(&branch.then, arch, version)?;
                version = supported(&branch.otherwise, arch, version)?;
                continue;
            }
            Node::Loop(iterations) => {
                version = supported(&iterations.entry, arch, version)?;
                version = supported(&iterations.body, arch, version)?;
                continue;
            }
            Node::Roles(roles) => {
                for role in roles {
                    version = supported(&role.body, arch, version)?;
                }
                continue;
            }
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => continue,
        };
        match statement.inst.needs() {
            Some((first, needs)) if first <= arch.0 => version = version.max(needs),
            needs => {
                let first = needs.map_or_else(
                    || "only other architectures do".to_owned(),
                    |(first, _)| format!("sm_{first} is the first to have: build it for that"),
                );
                let name = instruction(&statement.inst);
                let what = format!("it has {name}, which {arch} does not have and {first}");
                return Err(ProofError::Malformed { what });
            }
        }
    }
    Ok(version)
}

/// How an instruction is called that not every architecture has.
fn instruction(inst: &Inst) -> String {
    match inst {
        Inst::Mma { atom, .. } => atom.name.to_owned(),
        Inst::ConvertPair {
            to_ty: Type::E4m3x2 | Type::E5m2x2,
            ..
        }
        | Inst::Convert {
            from_ty: Type::E4m3x2 | Type::E5m2x2,
            ..
        } => "a conversion of 8-bit floats (e4m3, e5m2)".to_owned(),
        Inst::Convert { .. } | Inst::ConvertPair { .. } => "a conversion of floats".to_owned(),
        Inst::Binary { .. } | Inst::MulAdd { .. } | Inst::Unary { .. } => {
            "arithmetic of floats".to_owned()
        }
        Inst::LoadMatrix { .. } => "matrix loads".to_owned(),
        Inst::StoreMatrix { .. } => "matrix stores".to_owned(),
        Inst::Hopper(_) => "an instruction of Hopper".to_owned(),
        _ => "asynchronous copies".to_owned(),
    }
}

impl Proven {
    /// The name of its entry.
    ///
    /// ```
    /// # use layout_codegen::ir::{Axis, Kernel};
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::Element;
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.name(), "copy");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// The representation that was proven and printed.
    ///
    /// ```
    /// # use layout_codegen::ir::{Axis, Kernel};
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::Element;
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.entry().name(), "copy");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Its parameters, in order.
    ///
    /// ```
    /// # use layout_codegen::ir::{Axis, Kernel};
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::Element;
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// let names: Vec<_> = copy.params().iter().map(|p| p.name.as_str()).collect();
    /// assert_eq!(names, ["n", "x", "y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn params(&self) -> &[Param] {
        &self.entry.params
    }

    /// Threads of a block along x, y, z.
    ///
    /// ```
    /// # use layout_codegen::ir::{Axis, Kernel};
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::Element;
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.block(), [128, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn block(&self) -> [u32; 3] {
        self.entry.block
    }

    /// Dynamic shared memory of a block, in bytes; 0 if the kernel declares its own.
    ///
    /// ```
    /// # use layout_codegen::ir::{Axis, Kernel};
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::Element;
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.shared_bytes(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shared_bytes(&self) -> u32 {
        let dynamic = self.entry.shared.filter(|s| s.dynamic);
        dynamic.map_or(0, |s| s.bytes as u32)
    }

    /// What each shared access costs.
    ///
    /// ```
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::{Axis, Element, Kernel};
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert!(copy.accesses().is_empty()); // it has no shared memory
    /// assert_eq!((copy.name(), copy.block(), copy.shared_bytes()), ("copy", [128, 1, 1], 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accesses(&self) -> Vec<AccessProof> {
        self.proof.shared.clone()
    }

    /// Blocks along x, y, z for sizes by their parameters' names; 0 along an axis if there is nothing to do.
    ///
    /// ```
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::{Axis, Element, Kernel};
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.grid(|_| Some(1025))?, [3, 1, 1]);
    /// assert_eq!(copy.grid(|_| Some(0))?, [0, 1, 1]);
    /// assert_eq!(copy.grid(|_| None).unwrap_err().code(), "missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A size that is missing, or that the kernel is not made for.
    pub fn grid(&self, size: impl Fn(&str) -> Option<u64>) -> Result<[u32; 3], ContractError> {
        self.check(&size)?;
        let mut grid = [1u32; 3];
        for &(axis, count) in &self.entry.whole_axes {
            grid[axis as usize] = u32::try_from(count).unwrap_or(u32::MAX);
        }
        for (blocks, of_cluster) in grid.iter_mut().zip(self.entry.cluster) {
            *blocks = blocks.next_multiple_of(of_cluster);
        }
        for t in &self.entry.tile_axes {
            let extent = self.value(t.extent, &size);
            let axis = t.axis as usize;
            let blocks = extent.div_ceil(t.tile as u64);
            // A launch has whole clusters.
            let blocks = blocks.next_multiple_of(self.entry.cluster[axis].into());
            let most = most_blocks(&self.entry)[axis];
            if blocks > most {
                return Err(ContractError::Grid {
                    axis: ['x', 'y', 'z'][axis],
                    blocks,
                    most,
                });
            }
            grid[axis] = blocks as u32;
        }
        Ok(grid)
    }

    /// The buffers of a launch: their least sizes, alignments, and what the kernel does with them.
    ///
    /// ```
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::ir::{Axis, Element, Kernel};
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// let buffers = copy.buffers(|_| Some(1025))?;
    /// assert_eq!((buffers[1].name.as_str(), buffers[1].bytes, buffers[1].alignment), ("y", 4100, 16));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Proven::grid`].
    pub fn buffers(
        &self,
        size: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<Buffer>, ContractError> {
        let grid = self.grid(&size)?;
        // Elements, and those from the first to the last.
        let elements = |b: &ir::Buffer| {
            let extents = b.extents.iter().map(|e| match e {
                Extent::Fixed(n) => *n as u64,
                Extent::Value(e) | Extent::Padded { whole: e, .. } => self.value(*e, &size),
                Extent::Blocks(axis) => grid[*axis as usize].into(),
            });
            let extents: Vec<u64> = extents.collect();
            let packed = extents.iter().copied().fold(1, u64::saturating_mul);
            // Rows that are farther apart than they are long.
            let apart = match (&b.arrangement, extents.first()) {
                (Arrangement::Global { strides, .. }, Some(&outermost)) => match strides.first() {
                    Some(Stride::Value(e)) => self.value(*e, &size).saturating_mul(outermost),
                    _ => 0,
                },
                _ => 0,
            };
            (packed, if packed == 0 { 0 } else { packed.max(apart) })
        };
        let described = self.described().into_iter();
        Ok(described
            .map(|(b, _, alignment, usage)| {
                let (packed, all) = elements(b);
                // What is between two rows keeps what it holds.
                let usage = match usage {
                    Usage::Output if all > packed => Usage::Partial,
                    usage => usage,
                };
                Buffer {
                    name: b.name.clone(),
                    bytes: all.saturating_mul(b.bytes as u64),
                    alignment,
                    usage,
                }
            })
            .collect())
    }

    /// The grid and the bytes of the buffers as formulas of the sizes, with the checks of the sizes: what the source text of a host program computes. `None` for a
    /// kernel with tensor maps, and where a number may not fit 64 bits.
    pub fn formulas(&self) -> Option<Formulas> {
        Formulas::of(&self.entry)
    }

    /// The tensor maps of a launch: for each the parameter, the buffer whose array it is of, and what the host encodes.
    ///
    /// # Errors
    ///
    /// As [`Proven::grid`].
    pub fn tensor_maps(
        &self,
        size: impl Fn(&str) -> Option<u64>,
    ) -> Result<Vec<(String, String, MapArgument)>, ContractError> {
        self.check(&size)?;
        let all = self.entry.tensor_maps.iter().map(|map| {
            let b = &self.entry.buffers[map.buffer];
            // An array has at least one element; of one without, nothing is copied.
            let extent = |from_last: usize| {
                let at = b.extents.len().checked_sub(from_last)?;
                Some(match b.extents[at] {
                    Extent::Fixed(n) => n as u64,
                    Extent::Value(e) | Extent::Padded { used: e, .. } => {
                        self.value(e, &size).max(1)
                    }
                    Extent::Blocks(_) => 1,
                })
            };
            let stride_bytes = |from_last: usize| {
                let Arrangement::Global { strides, .. } = &b.arrangement else {
                    return 0;
                };
                let at = strides.len().checked_sub(from_last);
                let elements = match at.map(|at| strides[at]) {
                    Some(Stride::Fixed(n)) => n as u64,
                    Some(Stride::Value(e)) => self.value(e, &size),
                    None => 0,
                };
                let bytes = elements.saturating_mul(b.bytes as u64);
                bytes.max(MAP_ROW).next_multiple_of(MAP_ROW)
            };
            let [box_rows, box_columns] = map.extents.map(|n| n as u32);
            let argument = MapArgument {
                element: b.element.unwrap_or(Element::F32),
                rounded: false,
                dimensions: ["columns", "rows"],
                rows: extent(2).unwrap_or(1),
                columns: extent(1).unwrap_or(1),
                pitch_bytes: stride_bytes(2),
                layers: extent(3).map(|count| (count, stride_bytes(3))),
                box_rows,
                box_columns,
                swizzle_bytes: map.swizzle as u32,
            };
            (map.name.clone(), b.name.clone(), argument)
        });
        Ok(all.collect())
    }

    /// Blocks of a cluster along x, y and z: a launch has whole clusters. All 1 without clusters.
    pub fn cluster(&self) -> [u32; 3] {
        self.entry.cluster
    }

    /// What is known of a buffer without the sizes of a launch: its element, alignment and usage, by the name of its parameter.
    ///
    /// ```
    /// # use layout_codegen::Arch;
    /// # use layout_codegen::Usage;
    /// # use layout_codegen::ir::{Axis, Element, Kernel};
    /// # use layout_core::Layout;
    /// # let mut k = Kernel::new("copy", 128);
    /// # let n = k.size("n", 1 << 30);
    /// # let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// # let block = k.tiles(Axis::X, n, 512)?;
    /// # let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// # let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
    /// # k.copy(&x, &y)?;
    /// # let copy = k.build(Arch(80))?;
    /// // The kernel of the example of `Proven`.
    /// assert_eq!(copy.buffer("y"), Some((Some(Element::F32), 16, Usage::Output)));
    /// assert_eq!(copy.buffer("n"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn buffer(&self, name: &str) -> Option<(Option<Element>, u64, Usage)> {
        let mut all = self.described().into_iter();
        let found = all.find(|(b, ..)| b.name == name);
        found.map(|(_, element, alignment, usage)| (element, alignment, usage))
    }

    /// What the author states of the elements of inputs ([`Kernel::assume_distinct`], [`Kernel::assume_range`]), by the names of their parameters, for a launch with
    /// these sizes.
    pub fn stated(&self, size: impl Fn(&str) -> Option<u64>) -> Vec<(String, Elements)> {
        let of = |name: &str| size(name).map_or(0, |v| i64::try_from(v).unwrap_or(i64::MAX));
        let value = |e| i64::try_from(self.entry.pool.evaluate(e, &of)).unwrap_or(i64::MAX);
        let buffers = self.entry.buffers.iter();
        let stated = buffers.flat_map(|b| b.stated.iter().map(move |s| (b, s.elements)));
        let stated = stated.map(|(b, elements)| {
            let elements = match elements {
                ir::Elements::Distinct => Elements::Distinct,
                ir::Elements::Within(low, high) => Elements::Within(value(low)..value(high)),
            };
            (b.name.clone(), elements)
        });
        stated.collect()
    }

    fn described(&self) -> Vec<(&ir::Buffer, Option<Element>, u64, Usage)> {
        let all = self.entry.buffers.iter().enumerate();
        let global = all.filter(|(_, b)| matches!(b.arrangement, Arrangement::Global { .. }));
        global
            .map(|(number, b)| {
                let usage = match b.role {
                    Role::Input => Usage::Input,
                    Role::Partial if self.combined.contains(&number) => Usage::Combined,
                    Role::Partial => Usage::Partial,
                    Role::Output if self.read.contains(&number) => Usage::InOut,
                    Role::Output => Usage::Output,
                };
                let param = self.entry.params.iter().find(|p| p.name == b.name);
                let alignment = param.map_or(1, |p| p.multiple).max(b.bytes as u64);
                (b, b.element, alignment, usage)
            })
            .collect()
    }

    fn check(&self, size: &impl Fn(&str) -> Option<u64>) -> Result<(), ContractError> {
        for p in &self.entry.params {
            if p.kind != ParamKind::U32 {
                continue;
            }
            let name = p.name.clone();
            let Some(value) = size(&p.name) else {
                return Err(ContractError::Missing { name });
            };
            let most = p.most.unwrap_or(u32::MAX.into());
            if value > most {
                return Err(ContractError::TooLarge { name, value, most });
            }
            if value % p.multiple != 0 {
                let of = p.multiple;
                return Err(ContractError::Multiple { name, value, of });
            }
        }
        let value = |name: &str| size(name).map_or(0, |v| i64::try_from(v).unwrap_or(i64::MAX));
        let Entry {
            nodes,
            params,
            pool,
            ..
        } = &self.entry;
        for stated in checked(nodes, params, pool) {
            if !stated.holds(pool, &value) {
                return Err(ContractError::Assumption {
                    condition: stated.condition(pool),
                    reason: stated.reason.clone(),
                });
            }
        }
        Ok(())
    }

    fn value(&self, e: crate::index::Expr, size: &impl Fn(&str) -> Option<u64>) -> u64 {
        let of = |name: &str| size(name).map_or(0, |v| i64::try_from(v).unwrap_or(i64::MAX));
        u64::try_from(self.entry.pool.evaluate(e, &of)).unwrap_or(0)
    }
}
