//! A plan with a problem as a kernel that can be run: its launches, those before and after it, and its workspace.

use std::borrow::Cow;
use std::collections::BTreeMap;

use layout_codegen::Arch;
use layout_codegen::ir::ParamKind;
use layout_codegen::prove::{AccessProof, Assumed};
use layout_core::banks::AMD_GCN;
use tilewright_kernels::gemm::mma_sync::WAYS_TO_STORE;
use tilewright_kernels::gemm::opencl::{self, EmittedOpenCl};
use tilewright_kernels::gemm::{
    Argument, ArgumentValue, Batch, Bias, DataType, Emitted, Gemm, GivenInput, Launch, MapSource,
    PlanError, Schedule, Specialized,
};

use super::super::fit::operand_bytes;
use super::super::{Inputs, Matrix, OperandError};
use super::arg::{Arg, Role, Scalar};
use super::element::BufferType;
use super::error::RunError;
use super::runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg};

/// The kernel of a plan for one problem. Its sizes and factors are the problem's; its parameters are the buffers `A`, `B`, `C` and, if the
/// epilogue has one, `bias`; of a plan with an epilogue of its own
/// ([`with_epilogue`](tilewright_kernels::gemm::Config::with_epilogue)), also what that reads.
///
/// ```
/// use tilewright::codegen::Arch;
/// use tilewright::kernels::gemm::{DataType, Gemm, Operands, Schedule};
/// use tilewright::kernels::gemm::Config;
/// use tilewright::host::{GemmKernel, Inputs, On, check, run};
///
/// let plan = "mma-f16-64x64x32".parse::<Config>()?;
/// let problem = Gemm::packed(40, 56, 72, Operands::ALL[0]);
/// let kernel = GemmKernel::new(plan, &problem, Schedule::default(), Arch(80))?;
/// let inputs = Inputs::random(&problem, DataType::F16, 1);
/// let outcome = run(&kernel, On::Emulator, kernel.args(&inputs)?)?;
/// outcome.assert_clean();
/// outcome.assert_counted_as_proven();
/// let c = kernel.result(&inputs, &outcome)?;
/// assert!(check(&problem, DataType::F16, &inputs, &c)?.passed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GemmKernel<'k> {
    kernel: Cow<'k, Emitted>,
    text: OpenClText<'k>,
    launch: Option<Launch>,
    problem: Gemm,
    data_type: DataType,
    params: Vec<Param>,
    least_bytes: Vec<(String, u64)>,
    inputs: Vec<GivenInput>,
}

/// Where the text in OpenCL C is from.
#[derive(Clone, Debug)]
enum OpenClText<'k> {
    /// It was printed before.
    Printed(Cow<'k, str>),
    /// Printed when it is asked for. Boxed: the others are small.
    Of(Box<Specialized>),
    /// There is none.
    ByHand,
}

/// The buffers of a product, in the order of the parameters; the bias only where there is one.
const BUFFERS: [&str; 4] = ["A", "B", "C", "bias"];

impl GemmKernel<'_> {
    /// The number of C among the buffers.
    pub(in crate::host) const C: usize = 2;
}

impl<'k> GemmKernel<'k> {
    /// Specializes a configuration, or a kernel with an epilogue of its own, for a problem and emits it.
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::specialize`], [`Specialized::emit`] and [`Specialized::launch`].
    pub fn new(
        plan: impl Into<Specialized>,
        problem: &Gemm,
        schedule: Schedule,
        arch: Arch,
    ) -> Result<Self, PlanError> {
        let plan = plan.into().specialize(problem, schedule)?;
        let kernel = plan.emit(problem.operands, arch)?;
        Self::of(&plan, Cow::Owned(kernel), problem)
    }

    /// A kernel that was emitted, for the problem that it is specialized for.
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::launch`].
    pub fn emitted(
        plan: &Specialized,
        kernel: &'k Emitted,
        problem: &Gemm,
    ) -> Result<Self, PlanError> {
        Self::of(plan, Cow::Borrowed(kernel), problem)
    }

    /// A kernel written by hand, with its launch for a problem.
    pub fn by_hand(
        kernel: Emitted,
        launch: Launch,
        (problem, data_type): (&Gemm, DataType),
    ) -> Self {
        Self::of_launch(
            (Cow::Owned(kernel), OpenClText::ByHand),
            (Some(launch.clone()), Some(launch)),
            (problem, data_type),
        )
    }

    /// As [`GemmKernel::emitted`], with the kernel in it.
    pub(in crate::host) fn owned(
        plan: &Specialized,
        kernel: Emitted,
        problem: &Gemm,
    ) -> Result<Self, PlanError> {
        Self::of(plan, Cow::Owned(kernel), problem)
    }

    /// A kernel that was emitted as OpenCL C, for [`On::OpenCl`](super::On::OpenCl): it has no PTX, and what is proven of its accesses is proven on the banks
    /// that it was emitted for. The other constructors print OpenCL C when they run there, for [`AMD_GCN`].
    ///
    /// ```no_run
    /// use tilewright::banks::AMD_R700;
    /// use tilewright::kernels::gemm::{Config, DataType, Gemm, Operands, opencl};
    /// use tilewright::host::{GemmKernel, Inputs, On, check, run};
    ///
    /// let plan = "sgemm-maxas-64".parse::<Config>()?.kernel();
    /// let problem = Gemm::packed(70, 50, 30, Operands::ALL[0]);
    /// let emitted = opencl::emit(&plan, problem.operands, &AMD_R700)?;
    /// let kernel = GemmKernel::opencl(&plan, &emitted, &problem)?;
    /// let inputs = Inputs::random(&problem, DataType::F32, 1);
    /// let outcome = run(&kernel, On::OpenCl, kernel.args(&inputs)?)?;
    /// assert!(check(&problem, DataType::F32, &inputs, &kernel.result(&inputs, &outcome)?)?.passed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Specialized::launch`].
    pub fn opencl(
        plan: &Specialized,
        kernel: &'k EmittedOpenCl,
        problem: &Gemm,
    ) -> Result<Self, PlanError> {
        let emitted = Emitted {
            ptx: String::new(),
            kernel: kernel.kernel.clone(),
            proof: kernel.proof.clone(),
            mix: None,
            address_registers: BTreeMap::new(),
        };
        let text = OpenClText::Printed(Cow::Borrowed(&kernel.source));
        Self::with(plan, (Cow::Owned(emitted), text), problem)
    }

    fn of(plan: &Specialized, kernel: Cow<'k, Emitted>, problem: &Gemm) -> Result<Self, PlanError> {
        let text = OpenClText::Of(Box::new(plan.clone()));
        Self::with(plan, (kernel, text), problem)
    }

    fn with(
        plan: &Specialized,
        kernel: (Cow<'k, Emitted>, OpenClText<'k>),
        problem: &Gemm,
    ) -> Result<Self, PlanError> {
        let launch = plan.launch(problem)?;
        // A problem with nothing to do has the parameters of a larger one.
        let larger = Gemm {
            m: problem.m.max(1),
            n: problem.n.max(1),
            batch: Batch {
                count: 1,
                ..problem.batch
            },
            ..*problem
        };
        let described = match &launch {
            Some(launch) => Some(launch.clone()),
            // Leading dimensions of nothing may be too small for something; then no input of an epilogue is known.
            None => plan.launch(&larger).ok().flatten(),
        };
        let of = (problem, plan.data_type);
        Ok(Self::of_launch(kernel, (launch, described), of))
    }

    /// Its launch, and one from which its parameters are known.
    fn of_launch(
        (kernel, text): (Cow<'k, Emitted>, OpenClText<'k>),
        (launch, described): (Option<Launch>, Option<Launch>),
        (problem, data_type): (&Gemm, DataType),
    ) -> Self {
        let bytes = operand_bytes(problem, data_type);
        let operand: BufferType = data_type.operand().into();
        let result: BufferType = problem.result(data_type).into();
        let alignment = problem.alignment;
        // What the problem promises: a plan refuses one that promises less than its kernel needs. Of a bias it promises that elements are aligned.
        let least = [alignment.a, alignment.b, alignment.c, result.bytes() as u32];
        let c = if problem.beta == 0.0 {
            Role::Output
        } else {
            Role::InOut
        };
        let roles = [Role::Input, Role::Input, c, Role::Input];
        let all = BUFFERS.iter().zip([operand, operand, result, result]);
        let (mut params, mut least_bytes) = (Vec::new(), Vec::new());
        for (((name, element), (least, role)), bytes) in
            all.zip(least.into_iter().zip(roles)).zip(bytes)
        {
            let Some(bytes) = bytes else { continue };
            let param = Param::pointer(*name, element).used_as(role);
            params.push(param.aligned_to(least.into()));
            least_bytes.push(((*name).to_owned(), bytes));
        }
        // With α = 0 nobody reads A and B, and they can be anything.
        if problem.alpha == 0.0 {
            for param in &mut params[..2] {
                param.ty = ParamType::Pointer(None);
                param.alignment = 1;
            }
        }
        let inputs = described.as_ref().map_or(Vec::new(), |l| l.inputs.clone());
        for input in &inputs {
            let param = Param::pointer(input.name.as_str(), input.element.into());
            let param = param.used_as(Role::Input);
            params.push(param.aligned_to(input.alignment.into()));
        }
        // Numbers and leading dimensions that an epilogue reads, each once: the kernel that adds partial sums may read the same.
        for argument in described
            .iter()
            .flat_map(Launch::sequence)
            .flat_map(|l| &l.arguments)
        {
            let known = params.iter().any(|p| p.name == argument.name);
            if argument.value == ArgumentValue::Given && !known {
                params.push(Param::new(argument.name.as_str(), argument.kind.into()));
            }
        }
        Self {
            kernel,
            text,
            launch,
            problem: *problem,
            data_type,
            params,
            least_bytes,
            inputs,
        }
    }

    /// What the buffer of A, B or C (0, 1, 2) holds.
    #[cfg(feature = "gpu")]
    pub(in crate::host) fn operand_type(&self, which: usize) -> BufferType {
        match which {
            Self::C => self.problem.result(self.data_type).into(),
            _ => self.data_type.operand().into(),
        }
    }

    /// The arguments for these operands. Each lies at a multiple of what the problem promises and, where that is below 16 bytes, of no more.
    ///
    /// # Errors
    ///
    /// A matrix that is not what the problem says: its element type, rows, columns, leading dimension or batch ([`Inputs::fit`]).
    pub fn args<'a>(
        &self,
        inputs: &'a Inputs,
    ) -> Result<Vec<(&'static str, Arg<'a>)>, OperandError> {
        inputs.fit(&self.problem, self.data_type)?;
        let alignment = self.problem.alignment;
        let matrix = |matrix: &'a Matrix, role, alignment: u32| {
            Arg::matrix(matrix, role).aligned_to(alignment.into())
        };
        let mut args = vec![
            ("A", matrix(&inputs.a, Role::Input, alignment.a)),
            ("B", matrix(&inputs.b, Role::Input, alignment.b)),
            ("C", matrix(&inputs.c, Role::InOut, alignment.c)),
        ];
        if self.problem.epilogue.bias != Bias::None
            && let Some(bias) = &inputs.bias
        {
            // Of a bias nothing is promised but that its elements are aligned.
            args.push(("bias", matrix(bias, Role::Input, bias.element.bytes())));
        }
        Ok(args)
    }

    /// C after a run with these operands.
    ///
    /// # Errors
    ///
    /// The outcome is that of another kernel.
    pub fn result(
        &self,
        inputs: &Inputs,
        outcome: &super::Outcome,
    ) -> Result<Matrix, super::OutcomeError> {
        Ok(Matrix {
            bytes: outcome.bytes("C")?.to_vec(),
            ..inputs.c.clone()
        })
    }
}

impl Runnable for GemmKernel<'_> {
    fn ptx(&self) -> &str {
        &self.kernel.ptx
    }

    fn entry(&self) -> &str {
        &self.kernel.kernel
    }

    fn opencl(&self) -> Result<Cow<'_, str>, RunError> {
        match &self.text {
            OpenClText::Printed(text) => Ok(Cow::Borrowed(text)),
            OpenClText::Of(plan) => {
                let emitted = opencl::emit(plan, self.problem.operands, &AMD_GCN);
                emitted
                    .map(|emitted| emitted.source.into())
                    .map_err(|e| match e {
                        PlanError::OpenCl(e) => RunError::NoOpenCl {
                            reason: e.to_string(),
                        },
                        e => e.into(),
                    })
            }
            OpenClText::ByHand => Err(RunError::NoOpenCl {
                reason: format!("`{}` was written by hand, as PTX text", self.entry()),
            }),
        }
    }

    fn params(&self) -> Vec<Param> {
        self.params.clone()
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let Some(launch) = &self.launch else {
            return Ok(Launches::default());
        };
        let step = |launch: &Launch| Step {
            entry: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            args: launch.arguments.iter().map(step_arg).collect(),
        };
        let mut least_bytes = self.least_bytes.clone();
        for input in &self.inputs {
            least_bytes.push((input.name.clone(), bytes_of(input, scalars)?));
        }
        Ok(Launches {
            steps: launch.sequence().map(step).collect(),
            workspace_bytes: launch.workspace_bytes,
            least_bytes,
            stores: Vec::new(),
            stated: Vec::new(),
        })
    }

    fn accesses(&self) -> Vec<AccessProof> {
        self.kernel.proof.accesses.clone()
    }

    /// What the author of an epilogue's function states: nothing for the listed plans.
    fn assumptions(&self) -> &[Assumed] {
        &self.kernel.proof.assumptions
    }

    fn param_names(&self, entry: &str) -> Result<Vec<String>, RunError> {
        let all = self.launch.iter().flat_map(Launch::sequence);
        let launch = all.into_iter().find(|l| l.kernel == entry);
        let names = launch.map(|l| l.arguments.iter().map(|a| a.name.clone()).collect());
        names.ok_or_else(|| RunError::Text {
            reason: format!("no launch of the problem has the kernel `{entry}`"),
        })
    }

    fn alternatives(&self) -> Vec<Vec<String>> {
        ways_to_store()
    }

    fn lines_of(&self, access: &str) -> Vec<usize> {
        self.kernel.lines_of(access)
    }
}

/// The ways to store C of plans that have more than one.
pub(super) fn ways_to_store() -> Vec<Vec<String>> {
    let names = |way: &&[&str]| way.iter().map(|name| (*name).to_owned()).collect();
    WAYS_TO_STORE.iter().map(names).collect()
}

/// Bytes of an epilogue's buffer, whose rows are as far apart as its leading dimension says.
fn bytes_of(input: &GivenInput, scalars: &Scalars<'_>) -> Result<u64, RunError> {
    let bytes = u64::from(input.element.bytes());
    let Some(name) = &input.leading_dimension else {
        return Ok(input
            .rows
            .saturating_mul(input.columns)
            .saturating_mul(bytes));
    };
    let ld = scalars.size(name)?;
    let refuse = |what: String| {
        let reason = format!("`{name}` is {ld}: {what}");
        Err(RunError::Refused { reason })
    };
    if ld < input.columns {
        return refuse(format!("a row has {} elements", input.columns));
    }
    let step = u64::from(input.alignment).div_ceil(bytes);
    if !ld.is_multiple_of(step) {
        return refuse(format!(
            "the kernel reads {step} elements at once, so give a multiple"
        ));
    }
    let before_last = ld.saturating_mul(input.rows.saturating_sub(1));
    Ok(before_last
        .saturating_add(input.columns)
        .saturating_mul(bytes))
}

fn step_arg(argument: &Argument) -> StepArg {
    let named = |name: &str| StepArg::Argument(name.to_owned());
    StepArg::Value(match (argument.value, argument.kind) {
        (ArgumentValue::A, _) => return named("A"),
        (ArgumentValue::B, _) => return named("B"),
        (ArgumentValue::C, _) => return named("C"),
        (ArgumentValue::Bias, _) => return named("bias"),
        (ArgumentValue::Given, _) => return named(&argument.name),
        (ArgumentValue::Workspace(offset), _) => return StepArg::Workspace(offset),
        (ArgumentValue::TensorMap(of, map), _) => {
            let name = match of {
                MapSource::A => Some("A".to_owned()),
                MapSource::B => Some("B".to_owned()),
                MapSource::Given => Some(argument.name.clone()),
                MapSource::Workspace(_) => None,
            };
            let offset = match of {
                MapSource::Workspace(offset) => offset,
                _ => 0,
            };
            return StepArg::TensorMap(name, offset, map);
        }
        (ArgumentValue::Int(v), ParamKind::U64) => Scalar::U64(v),
        (ArgumentValue::Int(v), _) => Scalar::U32(v as u32),
        (ArgumentValue::Float(v), ParamKind::F64) => Scalar::F64(v),
        (ArgumentValue::Float(v), ParamKind::S32) => Scalar::I32(v as i32),
        (ArgumentValue::Float(v), _) => Scalar::F32(v as f32),
    })
}
