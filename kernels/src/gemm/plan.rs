//! The interface of a kernel family: a plan names its layouts, proves its kernels, emits them and describes their launch.

use std::collections::BTreeMap;

use layout_codegen::ir::Entry;
use layout_codegen::mix::Mix;
use layout_codegen::{Arch, Module};

use super::{Anatomy, DataType, Gemm, Launch, Obligation, Operands, PlanError, Proof};

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
    /// What the main loop of the kernel that multiplies is made of.
    pub mix: Option<Mix>,
    /// For each entry, the registers that hold addresses written by the index compiler.
    pub address_registers: BTreeMap<String, Vec<String>>,
}

impl Emitted {
    /// The lines (from 1) of the PTX text whose instruction is tagged with the name of a shared access.
    pub fn lines_of(&self, access: &str) -> Vec<usize> {
        let tagged = |line: &str| {
            line.strip_suffix(access)
                .is_some_and(|rest| rest.ends_with(" // "))
        };
        self.ptx
            .lines()
            .enumerate()
            .filter(|(_, line)| tagged(line))
            .map(|(i, _)| i + 1)
            .collect()
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

    /// Whether an architecture has its instructions.
    fn runs_on(&self, arch: Arch) -> bool {
        self.min_arch() <= arch
    }

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

    /// The plan's kernels, proven, as a module, and all that was proven.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::prove`].
    fn proven(&self, operands: Operands, arch: Arch) -> Result<(Module, Proof), PlanError> {
        let mut all = Proof {
            obligations: self.claims(operands)?,
            accesses: Vec::new(),
            assumptions: Vec::new(),
        };
        let module = Module::build(self.entries(operands, arch)?, arch)?;
        for (entry, proof) in module.entries().iter().zip(&module.proofs) {
            all.add(entry.name(), proof);
        }
        Ok((module, all))
    }

    /// The name of the entry that multiplies.
    fn entry_name(&self, operands: Operands) -> String;

    /// The representations of its kernels, in the order of the module.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError>;

    /// What the plan's source reports of its own main loop: its name, and the share of multiply-adds and loads. [`Emitted::mix`] is stated beside it.
    fn source_mix(&self) -> Option<(&'static str, f64)> {
        None
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
        if !self.runs_on(arch) {
            return Err(PlanError::OtherArch {
                plan: self.name(),
                asked: arch,
                only: self.min_arch(),
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
        let (module, proof) = self.proven(operands, arch)?;
        let kernel = self.entry_name(operands);
        let main = module.entries().iter().find(|e| e.name() == kernel);
        let addresses = |e: &Entry| (e.name().to_owned(), e.address_registers());
        Ok(Emitted {
            mix: main.and_then(Entry::mix),
            address_registers: module.entries().iter().map(addresses).collect(),
            ptx: module.ptx,
            kernel,
            proof,
        })
    }

    /// How to launch the kernel for a problem; none if there is nothing to do (m or n is 0).
    ///
    /// # Errors
    ///
    /// A problem that is not valid or that the kernel's counters cannot hold.
    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError>;
}
