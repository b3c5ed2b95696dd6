//! A configuration made for a problem: what its copies, its stores and its epilogue are, which tiles its blocks compute. It proves its kernels, emits them and
//! describes their launch.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use layout_codegen::ir::Entry;
use layout_codegen::mix::Mix;
use layout_codegen::{Arch, Module};

use super::epilogue::{Finish, Function, InputKind, Linear, check};
use super::mma_sync::widest_store;
use super::one_kernel::OneKernel;
use super::scheduler::{Scheduler, TileSchedule};
use super::variant::Variant;
use super::{
    Config, Epilogue, Gemm, Launch, Mainloop, Obligation, Operands, PlanError, Proof, one_kernel,
};

/// A layout of a kernel, with what it means.
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

/// A configuration for a problem.
///
/// [`Config::specialize`] makes it, and [`Config::kernel`] for problems whose operands are aligned to 16 bytes.
#[derive(Clone, Debug)]
pub struct Specialized {
    config: Config,
    pub(super) variant: Variant,
    linear: Linear,
    function: Option<Arc<dyn Finish>>,
}

impl Deref for Specialized {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

impl fmt::Display for Specialized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)?;
        match &self.function {
            Some(function) => write!(f, "+{}", function.name()),
            None => Ok(()),
        }
    }
}

impl From<Config> for Specialized {
    fn from(config: Config) -> Self {
        config.kernel()
    }
}

impl From<&Specialized> for Specialized {
    fn from(kernel: &Specialized) -> Self {
        kernel.clone()
    }
}

impl Specialized {
    /// Of a configuration, for aligned operands.
    pub(super) fn of(config: Config) -> Self {
        let variant = Variant::aligned(&config);
        Self {
            config,
            variant,
            linear: linear(&config, &variant),
            function: None,
        }
    }

    /// The same with another variant.
    pub(super) fn with_variant(&self, variant: Variant) -> Self {
        Self {
            variant,
            linear: linear(&self.config, &variant),
            ..self.clone()
        }
    }

    /// The configuration.
    pub const fn config(&self) -> Config {
        self.config
    }

    /// The configuration's name, and behind `+` that of the epilogue's function, if there is one.
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// Rows and columns of C that one block computes, and the step along k. The columns of a dual product are half of the configuration's.
    pub fn tile(&self) -> [u32; 3] {
        let [m, n, k] = self.config.tile;
        [m, n / self.variant.products as u32, k]
    }

    /// Which tiles a block computes.
    pub const fn tiles(&self) -> TileSchedule {
        self.variant.tiles
    }

    /// How sums become C.
    pub(super) fn finish(&self) -> &dyn Finish {
        match &self.function {
            Some(function) => &**function,
            None => &self.linear,
        }
    }

    /// The kernel of a source, if it is one.
    fn one_kernel(&self) -> Option<&dyn OneKernel> {
        match &self.config.mainloop {
            Mainloop::Maxas(kernel) => Some(kernel),
            Mainloop::OuterProduct(kernel) => Some(kernel),
            Mainloop::Simt { .. } | Mainloop::MmaSync { .. } | Mainloop::Wgmma(_) => None,
        }
    }

    pub(super) fn unsupported(&self, what: impl Into<String>, instead: &str) -> PlanError {
        PlanError::Unsupported {
            plan: self.name(),
            what: what.into(),
            instead: instead.to_owned(),
        }
    }

    /// The same for other numbers of blocks: a persistent kernel for a GPU with other than 132 multiprocessors, or of one block for a test.
    ///
    /// ```
    /// use tilewright_kernels::gemm::{Config, TileSchedule};
    ///
    /// let config: Config = "wgmma-f16-128x256x64+persistent".parse()?;
    /// let small = config.kernel().with_tiles(TileSchedule::Rectangle([6, 13]))?;
    /// assert_eq!(small.tiles(), TileSchedule::Rectangle([6, 13]));
    /// assert!(config.kernel().with_tiles(TileSchedule::Groups).is_err());
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Unsupported`] for a schedule of another kind than that of the configuration, or blocks that are not whole clusters.
    pub fn with_tiles(&self, tiles: TileSchedule) -> Result<Self, PlanError> {
        use super::Order::{Linear, Rectangle};
        let kind = match tiles {
            TileSchedule::Rectangle(_) => Scheduler::Persistent(Rectangle),
            TileSchedule::Linear { .. } => Scheduler::Persistent(Linear),
            TileSchedule::Groups
            | TileSchedule::Columns
            | TileSchedule::Batch
            | TileSchedule::SplitK(_) => Scheduler::Grid,
        };
        if kind != self.scheduler {
            return Err(self.unsupported(
                format!("tiles by {tiles:?}"),
                "take a configuration with this scheduler",
            ));
        }
        if kind == Scheduler::Grid && tiles != self.variant.tiles {
            return Err(self.unsupported(
                format!("tiles by {tiles:?}"),
                "specialize the configuration for the batch or the split",
            ));
        }
        if let TileSchedule::Rectangle([down, across]) = tiles {
            let [rows, columns] = self.cluster;
            if !down.is_multiple_of(rows) || !across.is_multiple_of(columns) {
                return Err(self.unsupported(
                    format!("{down}x{across} blocks of a persistent kernel"),
                    &format!("take whole clusters of {rows}x{columns}"),
                ));
            }
        }
        Ok(self.with_variant(Variant {
            tiles,
            ..self.variant
        }))
    }

    /// The same with a function of your own as its epilogue, in place of α, β, bias and activation.
    ///
    /// What is returned is used like any other: specialized for a problem, emitted, launched, run. The problem leaves bias and activation out;
    /// its α and β are those of scalars `alpha` and `beta`, if the function declares them, and 1 and 0 otherwise. C has the function's element type, which the
    /// problem names as its output. [`epilogue`](super::epilogue) has an example.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Element;
    /// use tilewright_kernels::gemm::epilogue::Function;
    /// use tilewright_kernels::gemm::{Config, Operands};
    ///
    /// // The sum and a residual, stored as f16.
    /// let residual = Function::new("residual", |k, c| {
    ///     let residual = c.matrix::<f32>(k, "residual")?;
    ///     for (j, (sum, more)) in c.values(k)?.into_iter().zip(residual).enumerate() {
    ///         let sum = sum.add(k, more);
    ///         c.set(k, j, sum)?;
    ///     }
    ///     Ok(())
    /// })
    /// .matrix("residual", Element::F32)
    /// .output(Element::F16);
    /// let maxas: Config = "sgemm-maxas-128".parse()?;
    /// let kernel = maxas.with_epilogue(residual)?;
    /// assert_eq!(kernel.name(), "sgemm-maxas-128+residual");
    /// assert_eq!(kernel.emit(Operands::ALL[0], Arch(75))?.kernel, "sgemm_maxas_128_nn_residual");
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Epilogue`] for names that are not letters, digits and underscores, or are used twice, and for types that are not converted.
    pub fn with_epilogue(&self, function: Function) -> Result<Self, PlanError> {
        check(&function, self.data_type)?;
        let mut variant = self.variant;
        variant.epilogue = Epilogue::default();
        if let Some(output) = Finish::output(&function) {
            variant.output = output;
            variant.store = variant.store.min(widest_store(output));
        }
        Ok(Self {
            function: Some(Arc::new(function)),
            ..self.with_variant(variant)
        })
    }

    /// The same with two products of the same A, and a function that makes C of the sums of both: A·B are its
    /// [`values`](super::epilogue::Fragment::values), A·B2 its [`second`](super::epilogue::Fragment::second).
    ///
    /// B2 has the sizes, the transposition and the leading dimension of B; it is a buffer that the caller gives, the parameter `B2`. A block computes
    /// as many sums as before, half of them of each product: its tile of C is half as wide, so that registers, shared memory and the instructions of the
    /// main loop are those of the configuration. A is copied once for both products. There are no batches, split sums or packed operands.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use tilewright_kernels::gemm::epilogue::Function;
    /// use tilewright_kernels::gemm::{Config, Gemm, Operands};
    ///
    /// // C = (A·B) ⊙ (A·B2), element by element.
    /// let bilinear = Function::new("bilinear", |k, c| {
    ///     for (j, (s, t)) in c.values::<f32>(k)?.into_iter().zip(c.second(k)?).enumerate() {
    ///         let product = s.mul(k, t);
    ///         c.set(k, j, product)?;
    ///     }
    ///     Ok(())
    /// });
    /// let config: Config = "mma-f16-128x256x64".parse()?;
    /// let kernel = config.with_dual_epilogue(bilinear)?;
    /// assert_eq!((config.tile, kernel.tile()), ([128, 256, 64], [128, 128, 64]));
    /// let nt = Operands::ALL[1];
    /// assert_eq!(kernel.emit(nt, Arch(80))?.kernel, "mma_f16_128x256x64_nt_dual_bilinear");
    ///
    /// let launch = kernel.launch(&Gemm::packed(256, 512, 64, nt))?.expect("something to do");
    /// let b2 = &launch.inputs[0];
    /// assert_eq!((b2.name.as_str(), b2.columns), ("B2", 512 * 64));
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::with_epilogue`], a tile that is too narrow to be halved, swapped operands, and kernels of the sources.
    pub fn with_dual_epilogue(&self, function: Function) -> Result<Self, PlanError> {
        if self.swap_ab || self.one_kernel().is_some() {
            return Err(self.no_dual());
        }
        let [_, across] = self.warps();
        let (columns, least) = (self.config.tile[1], 32 * across);
        if columns < least {
            return Err(PlanError::Epilogue {
                what: format!(
                    "a dual product halves the {columns} columns of the tile, and {across} warps need {least}: take a wider tile"
                ),
            });
        }
        let mut dual = self.clone();
        dual.variant.products = 2;
        dual.with_epilogue(function)
    }

    /// What a dual product is not made for.
    pub(super) fn no_dual(&self) -> PlanError {
        let swapped = if self.swap_ab {
            "a dual product with A and B swapped"
        } else {
            "a dual product"
        };
        let other = Config {
            swap_ab: false,
            ..self.config
        };
        self.unsupported(swapped, &format!("take {}", other.plain()))
    }

    /// The kernel for a problem, with its own epilogue's function if it has one: [`Config::specialize`]. Only this kernel serves the problem;
    /// [`Specialized::launch`] of another refuses it by name.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn specialize(&self, problem: &Gemm, schedule: super::Schedule) -> Result<Self, PlanError> {
        self.config.validate()?;
        self.leaves(problem)?;
        if self.one_kernel().is_some() {
            one_kernel::serves(self, problem)?;
            if schedule != super::Schedule::default() {
                return Err(self.unsupported(
                    "split sums or packed operands",
                    "leave both out; it takes operands as they lie",
                ));
            }
            return Ok(self.clone());
        }
        Ok(self.with_variant(self.variant_for(problem, schedule)?))
    }

    /// The problem asks for nothing that the epilogue's function replaces: bias, activation, and factors that it does not read.
    fn leaves(&self, problem: &Gemm) -> Result<(), PlanError> {
        let Some(function) = &self.function else {
            return Ok(());
        };
        if problem.epilogue != Epilogue::default() {
            return Err(self.unsupported(
                "a bias or an activation beside an epilogue of its own",
                "compute it in the epilogue's function",
            ));
        }
        let inputs = function.inputs();
        for (name, value, neutral) in [("alpha", problem.alpha, 1.0), ("beta", problem.beta, 0.0)] {
            let changed = (value - neutral).abs() > 0.0;
            if changed && !inputs.iter().any(|i| i.name == name) {
                return Err(self.unsupported(
                    format!("{name} = {value}, which its epilogue does not read"),
                    &format!("declare a scalar `{name}`, or leave it {neutral}"),
                ));
            }
        }
        let matrix = |kind| matches!(kind, InputKind::Matrix { .. });
        if problem.batch.count != 1 && inputs.iter().any(|i| matrix(i.kind)) {
            return Err(self.unsupported(
                "a batch with an epilogue that reads a matrix",
                "launch the products one by one",
            ));
        }
        Ok(())
    }

    /// Dynamic shared memory of a block, in bytes. None of the kernels of the sources: their stages are declared in the kernel.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`], and an operation of the algebra that refused.
    pub fn shared_bytes(&self, operands: Operands) -> Result<u32, PlanError> {
        self.config.validate()?;
        if self.one_kernel().is_some() {
            return Ok(0);
        }
        Ok(self.shared_bytes_of(&self.maps(operands)?) as u32)
    }

    /// Its layouts for one choice of transposes.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`], and an operation of the algebra that refused.
    pub fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        self.config.validate()?;
        match self.one_kernel() {
            Some(kernel) => kernel.layouts(operands),
            None => self.layouts_of_tile(operands),
        }
    }

    /// What holds of its layouts: a thread multiplies the elements that its sums need.
    ///
    /// # Errors
    ///
    /// The first claim that does not hold, with the reason.
    pub fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        self.config.validate()?;
        match self.one_kernel() {
            Some(kernel) => kernel.claims(operands),
            None => self.claims_of_tile(operands),
        }
    }

    /// Proves its kernels for its first architecture: its claims, and the representation of each kernel.
    ///
    /// # Errors
    ///
    /// The first claim that does not hold, or [`PlanError::Unproven`].
    pub fn prove(&self, operands: Operands) -> Result<Proof, PlanError> {
        Ok(self.proven(operands, self.min_arch())?.1)
    }

    /// Its kernels, proven, as a module, and all that was proven.
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::prove`].
    pub fn proven(&self, operands: Operands, arch: Arch) -> Result<(Module, Proof), PlanError> {
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
    pub fn entry_name(&self, operands: Operands) -> String {
        let of_config = self.config.to_string().replace(['-', '+'], "_");
        let variant = match self.one_kernel() {
            Some(_) => String::new(),
            None => self.variant.suffix(&self.config),
        };
        let own = self.finish().name();
        let end = if own.is_empty() { "" } else { "_" };
        format!("{of_config}_{operands}{variant}{end}{own}")
    }

    /// The representations of its kernels, in the order of the module.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`], and an operation of the algebra that refused.
    pub fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.config.validate()?;
        match self.one_kernel() {
            Some(kernel) => one_kernel::entries(kernel, self, operands, arch),
            None => self.entries_of_tile(operands, arch),
        }
    }

    /// What the kernel's source reports of its own main loop: its name, and the share of multiply-adds and loads. [`Emitted::mix`] is stated beside it.
    pub fn source_mix(&self) -> Option<(&'static str, f64)> {
        self.one_kernel().and_then(OneKernel::source_mix)
    }

    /// The kernel's text, once it and every kernel around it are proven.
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::prove`], [`PlanError::Unproven`], an architecture that is too old, and [`PlanError::SharedMemory`] where a block has not
    /// enough of it.
    pub fn emit(&self, operands: Operands, arch: Arch) -> Result<Emitted, PlanError> {
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
    pub fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.config.validate()?;
        self.leaves(problem)?;
        match self.one_kernel() {
            Some(_) => one_kernel::launched(self, problem),
            None => self.launched(problem),
        }
    }
}

/// The epilogue that a variant names.
fn linear(config: &Config, variant: &Variant) -> Linear {
    Linear::new(variant.epilogue, variant.output, config.data_type)
}
