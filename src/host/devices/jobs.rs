//! A program whose products have kernels.

use std::sync::Arc;

use layout_codegen::Arch;
use tilewright_kernels::devices::{
    Action, Content, Operand, Placement, Plans, Product, Program, ProgramProof,
};
use tilewright_kernels::gemm::{Alignment, Bias, DataType, Epilogue, Gemm, PlanError, Specialized};

use super::storage::{Span, Storage};
use super::{DevicesRunError, collective};
use crate::host::{GemmKernel, Inputs, Matrix};

/// A product over several devices: a proven program, and a kernel for each of its products.
///
/// The devices' products are problems of their own, for which a plan is chosen: the shapes of a shard are not those of the whole. C's element type,
/// α and the epilogue are the problem's; leading dimensions are those of the devices' buffers.
#[derive(Clone, Debug)]
pub struct DeviceGemm {
    pub(super) program: Program,
    /// None of a program that was taken as it is.
    pub(super) proof: Option<ProgramProof>,
    pub(super) data_type: DataType,
    pub(super) storage: Vec<Storage>,
    /// Of each operation, the kernel if it is a product.
    pub(super) jobs: Vec<Option<Job>>,
}

/// A product with its kernel.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) problem: Gemm,
    pub(super) plan: String,
    pub(super) kernel: Arc<GemmKernel<'static>>,
    /// Numbers of the buffers of A, B and C.
    pub(super) buffers: [usize; 3],
    /// Where A, B and C lie in them.
    pub(super) spans: [Span; 3],
    /// The elements of the bias, from the first.
    pub(super) bias: Option<std::ops::Range<u64>>,
}

impl DeviceGemm {
    /// Derives the program of a placement, proves it, and takes the plan that `choose` gives, adapted, for each of its products.
    ///
    /// # Errors
    ///
    /// Those of [`Program::derive`], [`Program::prove`], `choose`, [`Specialized::emit`] and [`Specialized::launch`].
    pub fn new<E>(
        problem: &Gemm,
        placement: &Placement,
        data_type: DataType,
        arch: Arch,
        choose: impl FnMut(&Gemm) -> Result<Specialized, E>,
    ) -> Result<Self, E>
    where
        E: From<DevicesRunError>,
    {
        let program = Program::derive(problem, placement).map_err(DevicesRunError::from)?;
        Self::with(program, data_type, arch, choose)
    }

    /// Proves a program, and takes for each of its products the plan that is fastest beside the others.
    ///
    /// # Errors
    ///
    /// Those of [`Program::prove`], [`Plans::plan`], [`Specialized::emit`] and [`Specialized::launch`].
    pub fn chosen(program: Program, plans: &Plans<'_>) -> Result<Self, DevicesRunError> {
        let overlaps = program.overlaps();
        Self::with(program, plans.data_type, plans.arch, |local| {
            plans.plan(local, overlaps).map_err(DevicesRunError::from)
        })
    }

    /// As [`DeviceGemm::new`], for a program of one's own.
    ///
    /// # Errors
    ///
    /// As [`DeviceGemm::new`].
    pub fn with<E>(
        program: Program,
        data_type: DataType,
        arch: Arch,
        choose: impl FnMut(&Gemm) -> Result<Specialized, E>,
    ) -> Result<Self, E>
    where
        E: From<DevicesRunError>,
    {
        let proof = program.prove().map_err(DevicesRunError::from)?;
        Ok(Self {
            proof: Some(proof),
            ..Self::unproven(program, data_type, arch, choose)?
        })
    }

    /// The same without a proof, to see on the emulator what a mistake does. GPUs do not run it.
    ///
    /// # Errors
    ///
    /// As [`DeviceGemm::new`]; [`DevicesError::Fault`](tilewright_kernels::devices::DevicesError::Fault) only of a program that names what does not
    /// exist.
    pub fn unproven<E>(
        program: Program,
        data_type: DataType,
        arch: Arch,
        mut choose: impl FnMut(&Gemm) -> Result<Specialized, E>,
    ) -> Result<Self, E>
    where
        E: From<DevicesRunError>,
    {
        program.well_formed().map_err(DevicesRunError::from)?;
        let storage: Vec<_> = (0..program.buffers.len())
            .map(|buffer| Storage::of(&program, buffer, data_type))
            .collect();
        collective::possible(&program, &storage)?;
        // Devices mostly multiply the same shapes: one kernel serves all that do.
        let mut made: Vec<(Gemm, String, Arc<GemmKernel<'static>>)> = Vec::new();
        let mut jobs = Vec::new();
        for op in &program.ops {
            let Action::Product(product) = &op.action else {
                jobs.push(None);
                continue;
            };
            let local = local(&program.problem, product, &storage);
            let known = made.iter().find(|(problem, ..)| *problem == local.problem);
            let (plan, kernel) = if let Some((_, plan, kernel)) = known {
                (plan.clone(), kernel.clone())
            } else {
                let plan = choose(&local.problem)?;
                let kernel = kernel(&plan, &local.problem, arch).map_err(DevicesRunError::from)?;
                let kernel = Arc::new(kernel);
                made.push((local.problem, plan.name(), kernel.clone()));
                (plan.name(), kernel)
            };
            jobs.push(Some(Job {
                problem: local.problem,
                plan,
                kernel,
                buffers: [&product.a, &product.b, &product.c].map(|region| region.buffer),
                spans: local.spans,
                bias: local.bias,
            }));
        }
        Ok(Self {
            program,
            proof: None,
            data_type,
            storage,
            jobs,
        })
    }

    /// What the devices do.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What was proven of it; none of a program that was taken unproven.
    pub fn proof(&self) -> Option<&ProgramProof> {
        self.proof.as_ref()
    }

    /// The plans of the products, each once, with the shape it multiplies.
    pub fn plans(&self) -> Vec<(String, [u64; 3])> {
        let mut plans = Vec::new();
        for job in self.jobs.iter().flatten() {
            let Gemm { m, n, k, .. } = job.problem;
            let one = (job.plan.clone(), [m, n, k]);
            if !plans.contains(&one) {
                plans.push(one);
            }
        }
        plans
    }

    /// The bytes of a link for elements that it carries, matrix by matrix summed, by (from, to).
    pub fn link_bytes(&self) -> Vec<((usize, usize), u64)> {
        let mut links = std::collections::BTreeMap::new();
        for op in &self.program.ops {
            for (from, buffer, elements) in self.program.carried(op) {
                let link = (from, self.program.buffers[buffer].device);
                let size = u64::from(self.storage[buffer].element.bytes());
                *links.entry(link).or_insert(0) += elements * size;
            }
        }
        links.into_iter().collect()
    }

    /// Bytes of memory of the device that needs most.
    pub fn most_bytes(&self) -> u64 {
        let of = |device: usize| {
            let buffers = self.program.buffers.iter().zip(&self.storage);
            let mine = buffers.filter(|(buffer, _)| buffer.device == device);
            mine.map(|(_, storage)| storage.bytes() as u64).sum()
        };
        (0..self.program.devices).map(of).max().unwrap_or(0)
    }

    /// The content of a buffer before the program begins: the device's shard, and NaN.
    pub(super) fn initial(&self, buffer: usize, inputs: &Inputs) -> Vec<u8> {
        let storage = &self.storage[buffer];
        let mut bytes = vec![0xff; storage.bytes()];
        let buffer = &self.program.buffers[buffer];
        let whole = match buffer.operand {
            Operand::A => &inputs.a,
            Operand::B => &inputs.b,
            Operand::C => &inputs.c,
        };
        // With α = 0 nobody reads A and B, and their matrices may be empty.
        let unread = self.program.problem.alpha == 0.0 && buffer.operand != Operand::C;
        match &buffer.content {
            _ if unread => {}
            Content::Nothing => {}
            Content::Given(block) => storage.fill(&mut bytes, block, whole),
            Content::Everything => storage.fill(&mut bytes, &buffer.block, whole),
        }
        bytes
    }

    /// C from the devices' blocks. What several devices have must be the same everywhere; what differs is a finding.
    pub(super) fn collect(&self, inputs: &Inputs, memory: &[Vec<u8>]) -> (Matrix, Vec<String>) {
        let mut c = inputs.c.clone();
        let mut findings = Vec::new();
        for (device, result) in self.program.results.iter().enumerate() {
            let earlier = self.program.results[..device].iter().enumerate();
            let storage = &self.storage[result.buffer];
            for (other, _) in earlier.filter(|(_, known)| known.block == result.block) {
                let mut copy = c.clone();
                storage.take(&memory[result.buffer], &result.block, &mut copy);
                if copy.bytes != c.bytes {
                    findings.push(format!(
                        "devices {other} and {device} have different bits of the same block of C"
                    ));
                }
            }
            storage.take(&memory[result.buffer], &result.block, &mut c);
        }
        (c, findings)
    }
}

/// A product as a problem of its own.
struct Local {
    problem: Gemm,
    spans: [Span; 3],
    bias: Option<std::ops::Range<u64>>,
}

fn local(whole: &Gemm, product: &Product, storage: &[Storage]) -> Local {
    let Product {
        a,
        b,
        c,
        addend,
        finishes,
    } = product;
    let length = |range: &std::ops::Range<u64>| range.end.saturating_sub(range.start);
    let spans = [a, b, c].map(|region| storage[region.buffer].span(&region.block));
    let epilogue = if *finishes {
        whole.epilogue
    } else {
        Epilogue::default()
    };
    let bias = match epilogue.bias {
        Bias::None => None,
        Bias::Row => Some(c.block.rows.clone()),
        Bias::Column => Some(c.block.columns.clone()),
    };
    let [m, n] = [length(&c.block.rows), length(&c.block.columns)];
    let k = length(product.depth());
    // Of a product over no index the factors are empty, and nobody reads them; their rows must be long enough nevertheless.
    let packed = Gemm::packed(m, n, k, whole.operands);
    let problem = Gemm {
        m,
        n,
        k,
        lda: storage[a.buffer].ld.max(packed.lda),
        ldb: storage[b.buffer].ld.max(packed.ldb),
        ldc: storage[c.buffer].ld,
        beta: addend.beta(whole.beta),
        epilogue,
        alignment: Alignment {
            a: spans[0].alignment(),
            b: spans[1].alignment(),
            c: spans[2].alignment(),
        },
        ..*whole
    };
    Local {
        problem,
        spans,
        bias,
    }
}

fn kernel(
    plan: &Specialized,
    problem: &Gemm,
    arch: Arch,
) -> Result<GemmKernel<'static>, PlanError> {
    let emitted = plan.emit(problem.operands, arch)?;
    GemmKernel::owned(plan, emitted, problem)
}
