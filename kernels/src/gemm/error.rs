//! Why a plan does not serve a problem or an architecture: what was asked for, what stands in the way, what would be accepted.

use std::fmt;

use layout_codegen::ir::AssumptionError;
use layout_codegen::print::opencl::OpenClError;
use layout_codegen::prove::ProofError;
use layout_codegen::view::ViewError;
use layout_codegen::{Arch, ModuleError, UnknownArch};
use layout_core::DescriptorError;

use super::{DataType, ProblemError, Refusal};

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
    /// The plan is for one architecture alone.
    OtherArch {
        /// The plan.
        plan: String,
        /// What was asked for.
        asked: Arch,
        /// The one that serves.
        only: Arch,
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
    /// An epilogue with a name, a type or an input that does not fit.
    Epilogue {
        /// What.
        what: String,
    },
    /// The plan chooses its launch from more than m and n, so that it can't be a constant.
    GridNotConstant {
        /// The plan.
        plan: String,
    },
    /// A kernel of the plan has no form in OpenCL C.
    OpenCl(OpenClError),
    /// What an epilogue's function states is not stated rightly.
    Assumption(AssumptionError),
    /// An operation of the algebra refused while the plan was composed.
    Layout(layout_core::LayoutError),
    /// A tile that a kernel copies.
    View(ViewError),
    /// A layout that no tensor map and no matrix descriptor has.
    Descriptor(DescriptorError),
}

impl PlanError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownPlan { .. } => "unknown_plan",
            Self::UnknownArch(e) => e.code(),
            Self::ArchTooOld { .. } => "arch_too_old",
            Self::OtherArch { .. } => "other_arch",
            Self::SharedMemory { .. } => "shared_memory",
            Self::WrongType { .. } => "wrong_type",
            Self::Unsupported { .. } => "unsupported",
            Self::Problem(e) => e.code(),
            Self::Refused(_) | Self::Unproven { .. } => "not_proven",
            Self::Epilogue { .. } => "epilogue",
            Self::GridNotConstant { .. } => "grid_not_constant",
            Self::OpenCl(e) => e.code(),
            Self::Assumption(e) => e.code(),
            Self::Layout(e) => e.code(),
            Self::View(_) => "view",
            Self::Descriptor(_) => "descriptor",
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
                        "; did you mean {}? `tilewright plans` lists all",
                        near.join(" or ")
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
            Self::OtherArch { plan, asked, only } => write!(
                f,
                "plan {plan} has instructions that only {only} has, and {asked} was asked for; take a plan whose name begins with mma"
            ),
            Self::SharedMemory { plan, needs, arch } => write!(
                f,
                "plan {plan} needs {needs} bytes of shared memory a block, and {arch} has {}; take a smaller tile or fewer stages",
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
            Self::OpenCl(e) => e.fmt(f),
            Self::Assumption(e) => e.fmt(f),
            Self::Layout(e) => write!(f, "the plan's layouts do not compose: {e}"),
            Self::View(e) => e.fmt(f),
            Self::Descriptor(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<layout_core::LayoutError> for PlanError {
    fn from(e: layout_core::LayoutError) -> Self {
        Self::Layout(e)
    }
}

impl From<ViewError> for PlanError {
    fn from(e: ViewError) -> Self {
        Self::View(e)
    }
}

impl From<DescriptorError> for PlanError {
    fn from(e: DescriptorError) -> Self {
        Self::Descriptor(e)
    }
}

impl From<AssumptionError> for PlanError {
    fn from(e: AssumptionError) -> Self {
        Self::Assumption(e)
    }
}

impl From<OpenClError> for PlanError {
    fn from(e: OpenClError) -> Self {
        Self::OpenCl(e)
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

impl From<ModuleError> for PlanError {
    fn from(error: ModuleError) -> Self {
        match error {
            ModuleError::Unproven { kernel, error } => Self::Unproven { kernel, error },
            ModuleError::OpenCl(error) => Self::OpenCl(error),
        }
    }
}
