//! Matrix products: the problem, the plans for it, and one room for each family of kernels.
//!
//! A kernel family is a struct of named layouts and a schedule:
//!
//! ```text
//! problem ──▶ plan (layouts, schedule) ──▶ proof (obligations discharged) ──▶ PTX text + launch contract
//! ```
//!
//! A [`Plan`] names its layouts, proves what the kernel relies on, and only then writes the kernel: [`Plan::emit`] fails if
//! [`Plan::prove`] does. The launch contract is complete: any host program can launch the file with it.

mod anatomy;
mod compiled;
mod data_type;
mod edges;
pub mod epilogue;
mod launch;
pub mod mma_sync;
mod obligation;
mod pack;
mod partial_sums;
mod pieces;
mod problem;
mod raster;
pub mod simt;
mod workspace;

use std::collections::BTreeMap;
use std::fmt;

use crate::arch::{Arch, UnknownArch};
use crate::ir::{Element, Entry, ParamKind};
use crate::print::{module, register};
use crate::prove::{ProofError, prove};

pub use anatomy::{Anatomy, Units};
pub use compiled::{CompiledKernel, CompiledParam, GridRule, KernelParts, compile};
pub use data_type::DataType;
pub use epilogue::{Activation, Bias, Epilogue, GELU};
pub use launch::{Argument, ArgumentValue, GivenInput, Launch};
pub use obligation::{Obligation, Proof, Refusal};
pub use problem::{Alignment, Batch, Gemm, Limit, Operands, ProblemError, Trans};

/// The largest size or leading dimension: kernels compare signed 32-bit distances to the edge, and a grid may begin tiles beyond it.
pub(crate) const LIMIT: u64 = (1 << 31) - (1 << 24);

/// A parameter of an element's type.
pub(crate) fn scalar_kind(element: Element) -> ParamKind {
    match element {
        Element::S32 => ParamKind::S32,
        Element::F64 => ParamKind::F64,
        _ => ParamKind::F32,
    }
}

/// A layout of a plan, with what it means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedLayout {
    /// Its name in the kernel's comments and in reports.
    pub name: &'static str,
    /// The layout, in CuTe's notation.
    pub layout: String,
    /// From what it maps to what, with units.
    pub meaning: String,
}

/// A kernel ready to assemble and launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Emitted {
    /// The complete PTX module.
    pub ptx: String,
    /// The name of its entry; of the one that multiplies, if there are several.
    pub kernel: String,
    /// What was proven of it.
    pub proof: Proof,
    /// For each entry, the registers that hold addresses written by the index compiler.
    pub address_registers: BTreeMap<String, Vec<String>>,
}

/// The registers of each kernel that hold addresses, as [`Emitted::address_registers`] names them.
pub(crate) fn address_registers(entries: &[Entry]) -> BTreeMap<String, Vec<String>> {
    let names = |entry: &Entry| entry.addresses.iter().map(|&r| register(r)).collect();
    entries
        .iter()
        .map(|entry| (entry.name.clone(), names(entry)))
        .collect()
}

impl Emitted {
    /// The lines (from 1) of the PTX text whose instruction is tagged with the name of a shared access.
    pub fn lines_of(&self, access: &str) -> Vec<usize> {
        let tagged = |line: &str| {
            line.rsplit_once(" // ")
                .is_some_and(|(_, tag)| tag == access)
        };
        self.ptx
            .lines()
            .enumerate()
            .filter(|(_, line)| tagged(line))
            .map(|(i, _)| i + 1)
            .collect()
    }
}

/// Why a plan does not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlanError {
    /// No plan of this name.
    UnknownPlan {
        /// What was asked for.
        asked: String,
        /// The plans there are.
        known: Vec<String>,
    },
    /// No architecture of this name.
    UnknownArch(UnknownArch),
    /// The plan needs a later architecture.
    ArchTooOld {
        /// The plan.
        plan: String,
        /// What was asked for.
        asked: Arch,
        /// The first that serves.
        needs: Arch,
    },
    /// A block of the plan needs more shared memory than the architecture has.
    SharedMemory {
        /// The plan.
        plan: String,
        /// Bytes that it needs.
        needs: u32,
        /// What was asked for.
        arch: Arch,
    },
    /// The plan computes in other types.
    WrongType {
        /// The plan.
        plan: String,
        /// What was asked for.
        asked: DataType,
        /// What it serves.
        serves: DataType,
    },
    /// The plan has no kernel for what the problem asks for.
    Unsupported {
        /// The plan.
        plan: String,
        /// What it does not do.
        what: String,
        /// What would work.
        instead: String,
    },
    /// The problem itself is not valid, or larger than the kernel's counters.
    Problem(ProblemError),
    /// An obligation could not be discharged: the plan is not emitted.
    Refused(Refusal),
    /// Something does not hold of a kernel of the plan, or cannot be decided: it is not printed.
    Unproven {
        /// The kernel.
        kernel: String,
        /// What.
        error: ProofError,
    },
    /// An epilogue asks for what there is not.
    Epilogue {
        /// What.
        what: String,
    },
    /// The plan chooses its launch from more than m and n, so that it can't be a constant.
    GridNotConstant {
        /// The plan.
        plan: String,
    },
    /// An operation of the algebra refused while the plan was composed.
    Layout(layout_core::LayoutError),
}

impl PlanError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownPlan { .. } => "unknown_plan",
            Self::UnknownArch(e) => e.code(),
            Self::ArchTooOld { .. } => "arch_too_old",
            Self::SharedMemory { .. } => "shared_memory",
            Self::WrongType { .. } => "wrong_type",
            Self::Unsupported { .. } => "unsupported",
            Self::Problem(e) => e.code(),
            Self::Refused(_) | Self::Unproven { .. } => "not_proven",
            Self::Epilogue { .. } => "epilogue",
            Self::GridNotConstant { .. } => "grid_not_constant",
            Self::Layout(e) => e.code(),
        }
    }
}

/// The names that share most of their beginning with what was asked for, at least as far as a family's.
fn nearest<'a>(asked: &str, known: &'a [String]) -> Vec<&'a str> {
    let shared = |name: &str| {
        name.bytes()
            .zip(asked.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let most = known.iter().map(|name| shared(name)).max().unwrap_or(0);
    if most < "mma-".len() {
        return Vec::new();
    }
    let near = known.iter().filter(|name| shared(name) == most);
    near.map(String::as_str).take(4).collect()
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPlan { asked, known } => {
                write!(f, "there is no plan `{asked}`")?;
                let near = nearest(asked, known);
                if near.is_empty() {
                    write!(f, "; `tilewright plans` lists them")
                } else {
                    write!(
                        f,
                        "; near it are {} (`tilewright plans` lists all)",
                        near.join(", ")
                    )
                }
            }
            Self::UnknownArch(e) => e.fmt(f),
            Self::ArchTooOld { plan, asked, needs } => {
                write!(
                    f,
                    "plan {plan} needs {needs} or later, and {asked} was asked for"
                )
            }
            Self::SharedMemory { plan, needs, arch } => write!(
                f,
                "plan {plan} needs {needs} bytes of shared memory a block, and {arch} has {}; take a smaller tile",
                arch.shared_limit()
            ),
            Self::WrongType {
                plan,
                asked,
                serves,
            } => write!(f, "plan {plan} computes in {serves}, not in {asked}"),
            Self::Unsupported {
                plan,
                what,
                instead,
            } => write!(f, "plan {plan} has no kernel for {what}: {instead}"),
            Self::Problem(e) => e.fmt(f),
            Self::Refused(e) => e.fmt(f),
            Self::Unproven { kernel, error } => {
                write!(
                    f,
                    "kernel {kernel} is not printed, because it does not prove: {error}"
                )
            }
            Self::Epilogue { what } => write!(f, "the epilogue does not fit: {what}"),
            Self::GridNotConstant { plan } => write!(
                f,
                "plan {plan} chooses its launch from more than m and n; ask `Plan::launch` for it at run time"
            ),
            Self::Layout(e) => write!(f, "the plan's layouts do not compose: {e}"),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<layout_core::LayoutError> for PlanError {
    fn from(e: layout_core::LayoutError) -> Self {
        Self::Layout(e)
    }
}

impl From<UnknownArch> for PlanError {
    fn from(e: UnknownArch) -> Self {
        Self::UnknownArch(e)
    }
}

impl From<ProblemError> for PlanError {
    fn from(e: ProblemError) -> Self {
        Self::Problem(e)
    }
}

impl From<Refusal> for PlanError {
    fn from(e: Refusal) -> Self {
        Self::Refused(e)
    }
}

/// What a plan leaves open beside its tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Schedule {
    /// Into how many parts the sums are split: their partial sums go through memory and are added by a second kernel (split-K). Fewer are
    /// taken if there are not as many tiles along k.
    pub split: u32,
    /// Whether operands whose rows are aligned to less than 16 bytes are first copied to aligned rows by kernels of their own, rather
    /// than copied in narrow pieces by the product's kernel.
    pub pack: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            split: 1,
            pack: false,
        }
    }
}

/// A kernel family: layouts, proof, text, launch.
pub trait Plan: Send + Sync {
    /// Its name, as `--plan` takes it.
    fn name(&self) -> String;

    /// The type it computes in.
    fn data_type(&self) -> DataType;

    /// The first architecture that it runs on.
    fn min_arch(&self) -> Arch;

    /// The tile of C that one block computes, and the step along k.
    fn tile(&self) -> (u32, u32, u32);

    /// Threads of a block.
    fn threads(&self) -> u32;

    /// What its blocks are made of, which is all that [`select`](crate::select) needs to know of it.
    fn anatomy(&self) -> Anatomy;

    /// Dynamic shared memory of a block, in bytes.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    fn shared_bytes(&self, operands: Operands) -> Result<u32, PlanError>;

    /// The plan for one problem: with copies as wide as its alignment allows, its type of C, its epilogue, its batch, and the given
    /// schedule. Only the adapted plan's kernel serves the problem; [`Plan::launch`] of another refuses it by name.
    ///
    /// # Errors
    ///
    /// [`PlanError::Unsupported`] with what would work, or what is wrong with the problem.
    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError>;

    /// Its layouts for one choice of transposes.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError>;

    /// What holds of the plan's layouts: a thread multiplies the elements that its sums need.
    ///
    /// # Errors
    ///
    /// The first claim that does not hold, with the reason.
    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError>;

    /// Proves the plan's kernels for its first architecture: its claims, and the representation of each kernel.
    ///
    /// # Errors
    ///
    /// The first claim that does not hold, or [`PlanError::Unproven`].
    fn prove(&self, operands: Operands) -> Result<Proof, PlanError> {
        Ok(self.proven(operands, self.min_arch())?.1)
    }

    /// The plan's kernels and what is proven of them; what accesses cost stands in their comments.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::prove`].
    fn proven(&self, operands: Operands, arch: Arch) -> Result<(Vec<Entry>, Proof), PlanError> {
        let mut all = Proof {
            obligations: self.claims(operands)?,
            accesses: Vec::new(),
        };
        let mut entries = self.entries(operands, arch)?;
        for entry in &mut entries {
            let proof = prove(entry).map_err(|error| PlanError::Unproven {
                kernel: entry.name.clone(),
                error,
            })?;
            entry.comments.extend(proof.shared.iter().map(|a| {
                let (name, op) = (&a.access, a.op);
                format!(
                    "{name:>10}   {op}: {} wavefronts, ideal {}",
                    a.wavefronts, a.ideal
                )
            }));
            all.add(&entry.name, &proof);
        }
        Ok((entries, all))
    }

    /// The name of the entry that multiplies.
    fn entry_name(&self, operands: Operands) -> String;

    /// The representations of its kernels, in the order of the module.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError>;

    /// The PTX version that its instructions need on an architecture.
    fn ptx_version(&self, arch: Arch) -> &'static str {
        arch.ptx_version()
    }

    /// The kernel's text, once the plan and every kernel of it are proven.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::prove`], [`PlanError::Unproven`], an architecture that is too old, and [`PlanError::SharedMemory`] where a block has not
    /// enough of it.
    fn emit(&self, operands: Operands, arch: Arch) -> Result<Emitted, PlanError> {
        arch.known()?;
        if arch < self.min_arch() {
            return Err(PlanError::ArchTooOld {
                plan: self.name(),
                asked: arch,
                needs: self.min_arch(),
            });
        }
        let needs = self.shared_bytes(operands)?;
        if needs > arch.shared_limit() {
            return Err(PlanError::SharedMemory {
                plan: self.name(),
                needs,
                arch,
            });
        }
        let (entries, proof) = self.proven(operands, arch)?;
        Ok(Emitted {
            ptx: module(&entries, self.ptx_version(arch), &arch.to_string()),
            kernel: self.entry_name(operands),
            proof,
            address_registers: address_registers(&entries),
        })
    }

    /// How to launch the kernel for a problem; none if there is nothing to do (m or n is 0).
    ///
    /// # Errors
    ///
    /// A problem that is not valid or that the kernel's counters cannot hold.
    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError>;
}
