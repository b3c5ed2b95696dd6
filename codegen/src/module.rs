//! Several kernels in one module, proven and printed together.

use std::fmt;

use layout_core::banks::BankModel;

use crate::Arch;
use crate::ir::Entry;
use crate::mix::Mix;
use crate::print::opencl::{OpenClError, program};
use crate::print::{module, register};
use crate::prove::{KernelProof, ProofError, prove, prove_on};
use crate::proven::{fits, target};

/// Kernels that a program launches one after the other, proven, as one PTX module. Each was written like any other and [finished](crate::ir::Kernel::finish).
///
/// A single kernel is built by [`Kernel::build`](crate::ir::Kernel::build), whose result knows its launch as well; of a module the program describes the launches.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::{Arch, Module};
///
/// let kernels = ["before", "after"].map(|name| Kernel::new(name, 32).finish());
/// let module = Module::build(kernels, Arch(80))?;
/// assert_eq!(module.entries()[1].name(), "after");
/// assert!(module.ptx.contains(".entry before") && module.ptx.contains(".entry after"));
/// # Ok::<(), layout_codegen::ModuleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module {
    /// The complete PTX text.
    pub ptx: String,
    /// What was proven of each kernel, in their order.
    pub proofs: Vec<KernelProof>,
    entries: Vec<Entry>,
}

/// The same as OpenCL C: [`Module::opencl`].
#[derive(Clone, PartialEq, Debug)]
pub struct OpenClModule {
    /// The program.
    pub source: String,
    /// What was proven of each kernel, in their order; the costs of accesses are those of the model.
    pub proofs: Vec<KernelProof>,
}

/// Why kernels are not printed.
#[derive(Clone, PartialEq, Debug)]
pub enum ModuleError {
    /// Something does not hold of a kernel, cannot be decided, or is not there on the architecture.
    Unproven {
        /// The kernel's name.
        kernel: String,
        /// What.
        error: ProofError,
    },
    /// A kernel that OpenCL C has no form for.
    OpenCl(OpenClError),
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproven { kernel, error } => write!(
                f,
                "kernel {kernel} is not printed, because it does not prove: {error}"
            ),
            Self::OpenCl(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ModuleError {}

impl Module {
    /// Proves the kernels and prints them for an architecture, at the lowest PTX version that has their instructions. What each access of shared memory costs is in
    /// the comments.
    ///
    /// # Errors
    ///
    /// The first kernel that does not prove, or whose instructions the architecture does not have.
    pub fn build(
        kernels: impl IntoIterator<Item = Entry>,
        arch: Arch,
    ) -> Result<Self, ModuleError> {
        let mut entries: Vec<Entry> = kernels.into_iter().collect();
        let mut proofs = Vec::with_capacity(entries.len());
        let mut version = arch.ptx_version();
        for entry in &mut entries {
            let refused = |error| ModuleError::Unproven {
                kernel: entry.name.clone(),
                error,
            };
            let proof = prove(entry).map_err(refused)?;
            version = fits(entry, arch, version).map_err(refused)?;
            entry.describe_costs(&proof, "");
            proofs.push(proof);
        }
        Ok(Self {
            ptx: module(&entries, version, &target(&entries, arch)),
            proofs,
            entries,
        })
    }

    /// Proves the kernels for local memory with the banks of `model`, and prints them as OpenCL C with the comment `about` above them. A wavefront of 64 threads
    /// counts as two accesses of 32.
    ///
    /// ```
    /// use layout_codegen::Module;
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::banks::AMD_GCN;
    ///
    /// let program = Module::opencl([Kernel::new("nothing", 64).finish()], &[], &AMD_GCN)?;
    /// assert!(program.source.contains("void nothing("));
    /// # Ok::<(), layout_codegen::ModuleError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Module::build`], and [`ModuleError::OpenCl`].
    pub fn opencl(
        kernels: impl IntoIterator<Item = Entry>,
        about: &[String],
        model: &BankModel,
    ) -> Result<OpenClModule, ModuleError> {
        let mut entries: Vec<Entry> = kernels.into_iter().collect();
        // A kernel without a form needs no proof.
        program(&entries, &[]).map_err(ModuleError::OpenCl)?;
        let mut proofs = Vec::with_capacity(entries.len());
        for entry in &mut entries {
            let proof = prove_on(entry, model).map_err(|error| ModuleError::Unproven {
                kernel: entry.name.clone(),
                error,
            })?;
            entry.describe_costs(&proof, &format!(" of 32 threads on {}", model.name));
            proofs.push(proof);
        }
        let source = program(&entries, about).map_err(ModuleError::OpenCl)?;
        Ok(OpenClModule { source, proofs })
    }

    /// Its kernels, in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    /// What its main loop is made of; none if no loop multiplies.
    pub fn mix(&self) -> Option<Mix> {
        Mix::of(self)
    }

    /// The registers of its text that hold addresses which the index compiler made.
    pub fn address_registers(&self) -> Vec<String> {
        self.addresses.iter().map(|&r| register(r)).collect()
    }

    /// Adds what accesses of shared memory cost to its comments, of a warp of the memory that is called so.
    pub(crate) fn describe_costs(&mut self, proof: &KernelProof, of: &str) {
        self.comments.extend(proof.shared.iter().map(|a| {
            let (name, op) = (&a.access, a.op);
            format!(
                "{name:>10}   {op}: {} wavefronts{of}, ideal {}",
                a.wavefronts, a.ideal
            )
        }));
    }
}
