//! Our kernels against cuBLAS, in one run on one GPU.
//!
//! Machines are shared and clocks move, so only the ratio of two times taken together means anything: the two alternate in timing slices. A slice lasts long enough for the clock to
//! settle: large products run at the GPU's power limit, where the side that needs less energy runs at a higher clock. Calls run back to back. What is compared with is the fastest of what the library has: cuBLAS by its own choice, and every algorithm that the
//! heuristics of cublasLt give for 32 MiB of workspace. Operands are random and rotate, so that neither side finds its inputs in the cache; each result is
//! checked on rows drawn from the whole matrix.

use std::rc::Rc;
use std::time::Duration;

use layout_codegen::ir::Element;
use tilewright_gpu::cublas::{
    Cublas, Gemm as CublasGemm, GemmTypes, Matrix as CublasMatrix, Scalar,
};
use tilewright_gpu::cublaslt::{self, CublasLt};
use tilewright_gpu::{Gpu, GpuError, TimeOptions, Timing};
use tilewright_kernels::gemm::{DataType, Emitted, Epilogue, Gemm, Specialized, Trans};

use super::run::bind::bind;
use super::run::on_gpu::{Loaded, Placed};
use super::{GemmKernel, Inputs, Matrix, RunError, Runnable, check_rows};

/// Bytes of operands that rotate: several times the level 2 cache of any GPU there is.
const ROTATING_BYTES: usize = 512 << 20;

/// Sets of operands at most: of products so small that even these do not fill the cache, the time is that of a launch.
const MAX_SETS: usize = 256;

/// One comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The plan.
    pub plan: String,
    /// Milliseconds of one product by our kernel, the median.
    pub ours_ms: f64,
    /// Milliseconds of one product by cuBLAS, the median; none if it has no such product.
    pub cublas_ms: Option<f64>,
    /// Which of the library's ways that is, the fastest of all: `cuBLAS` by its own choice, or `cublasLt 3`, the algorithm of that number in the order of its
    /// heuristics.
    pub cublas_way: Option<String>,
    /// The largest relative error of our kernel on the checked rows.
    pub max_rel_err: f64,
    /// What rounding explains.
    pub tolerance: f64,
    /// The error is within the tolerance.
    pub passed: bool,
}

impl Comparison {
    /// Time of cuBLAS over ours: above 1 we are faster.
    pub fn ratio(&self) -> Option<f64> {
        self.cublas_ms.map(|theirs| theirs / self.ours_ms)
    }
}

/// Operands on the device: A, B, C and, if there is one, the bias.
struct Set(Vec<Placed>);

/// The problem as the libraries take it.
fn product<'s>(problem: &Gemm, types: GemmTypes, set: &'s Set) -> CublasGemm<'s> {
    let size = [problem.m, problem.n, problem.k].map(|v| v as usize);
    let [a, b, c] = std::array::from_fn(|i| &set.0[i]);
    let matrix = |placed: &'s Placed, scalar: Scalar, ld: u64, stride: u64| CublasMatrix {
        offset: placed.offset / scalar.bytes(),
        batch_stride: stride as usize,
        ..CublasMatrix::new(&placed.buffer, ld as usize)
    };
    let [stride_a, stride_b, stride_c] = problem.batch.strides;
    let (a, b, c) = (
        matrix(a, types.a, problem.lda, stride_a),
        matrix(b, types.b, problem.ldb, stride_b),
        matrix(c, types.c, problem.ldc, stride_c),
    );
    CublasGemm {
        trans_a: problem.operands.a == Trans::T,
        trans_b: problem.operands.b == Trans::T,
        alpha: problem.alpha,
        beta: problem.beta,
        batch: problem.batch.count as usize,
        ..CublasGemm::new(types, size, a, b, c)
    }
}

/// The type of elements that cuBLAS stores sums in and NCCL adds; none for 8-bit ones.
pub(in crate::host) fn gpu_type(element: Element) -> Option<Scalar> {
    Some(match element {
        Element::F32 => Scalar::F32,
        Element::F16 => Scalar::F16,
        Element::Bf16 => Scalar::Bf16,
        Element::F64 => Scalar::F64,
        Element::S32 => Scalar::S32,
        Element::S8 | Element::E4m3 | Element::E5m2 => return None,
    })
}

/// What cuBLAS calls the types of a product; none if it has no such C.
pub(in crate::host) fn cublas_types(data_type: DataType, problem: &Gemm) -> Option<GemmTypes> {
    let c = gpu_type(problem.result(data_type))?;
    let types = match data_type {
        DataType::F32 => GemmTypes::F32,
        DataType::F16 => GemmTypes::F16,
        DataType::F16Acc16 => GemmTypes::F16_F16,
        DataType::Bf16 => GemmTypes::BF16,
        DataType::Tf32 => GemmTypes::TF32,
        DataType::F64 => GemmTypes::F64,
        DataType::S8 => GemmTypes::S8,
        DataType::E4m3 => GemmTypes::E4M3,
        DataType::E5m2 => GemmTypes::E5M2,
    };
    Some(GemmTypes { c, ..types })
}

/// How the library's candidates are compared before the fastest alternates with our kernel.
const HEATS: TimeOptions = TimeOptions {
    warmup: 2,
    repeats: 6,
    batch: 1,
    warm_for: Duration::from_millis(20),
    flush_l2: false,
    slice: Duration::ZERO,
};

/// Enqueues the library's product of one set.
type Call<'s> = Box<dyn FnMut(usize) -> Result<(), GpuError> + 's>;

/// Every way in which the library computes the product: cuBLAS by its own choice, and each algorithm that cublasLt's heuristics give. None for types or
/// sizes that it does not take, and for bias and activations.
fn library<'s>(
    cublas: &'s Cublas,
    lt: Option<&'s CublasLt>,
    data_type: DataType,
    problem: &'s Gemm,
    sets: &'s [Set],
) -> Vec<(String, Call<'s>)> {
    let mut ways: Vec<(String, Call<'s>)> = Vec::new();
    let types = cublas_types(data_type, problem);
    let Some(types) = types.filter(|_| problem.epilogue == Epilogue::default()) else {
        return ways;
    };
    // Plain cuBLAS has no products of 8-bit floats.
    if !matches!(data_type, DataType::E4m3 | DataType::E5m2) {
        let call =
            move |call: usize| cublas.gemm(&product(problem, types, &sets[call % sets.len()]));
        ways.push(("cuBLAS".to_owned(), Box::new(call)));
    }
    let plan = |lt: &'s CublasLt| {
        let each = sets
            .iter()
            .map(|set| lt.plan(&product(problem, types, set), false));
        each.collect::<Result<Vec<_>, _>>().ok()
    };
    if let Some(plans) = lt.and_then(plan).map(Rc::new) {
        let least = plans.iter().map(cublaslt::Plan::algorithms).min();
        for algorithm in 0..least.unwrap_or(0) {
            let plans = Rc::clone(&plans);
            let call = move |call: usize| plans[call % plans.len()].run_algorithm(algorithm);
            ways.push((format!("cublasLt {algorithm}"), Box::new(call)));
        }
    }
    ways
}

/// The fastest of the library's ways. One that fails is left out.
fn fastest<'s>(
    gpu: &Gpu,
    mut ways: Vec<(String, Call<'s>)>,
    slice: Duration,
) -> Option<(String, Call<'s>)> {
    ways.retain_mut(|(_, call)| call(0).is_ok() && gpu.synchronize().is_ok());
    if ways.len() > 1 {
        let (works, mut set) = (ways.len(), 0_usize..);
        let run = |which: usize, _| ways[which].1(set.next().unwrap_or_default());
        let heats = TimeOptions { slice, ..HEATS };
        let times = gpu.time_interleaved(heats, works, run).ok()?;
        let medians = times.iter().map(Timing::median).enumerate();
        let (best, _) = medians.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        return Some(ways.swap_remove(best));
    }
    ways.pop()
}

/// Times all launches of `kernel` together, and cuBLAS, on one problem, and checks rows of the result.
///
/// # Errors
///
/// The plan's refusal of the problem, or a failure of the driver. A product that cuBLAS refuses is not an error.
pub fn compare(
    gpu: &Gpu,
    cublas: Option<&Cublas>,
    plan: &Specialized,
    kernel: &Emitted,
    problem: &Gemm,
    options: TimeOptions,
    seed: u64,
) -> Result<Comparison, RunError> {
    let data_type = plan.data_type;
    let kernel = GemmKernel::emitted(plan, kernel, problem)?;
    let first = Inputs::random(problem, data_type, seed);
    let operands = bind(&kernel, kernel.args(&first)?)?;
    if operands.steps.is_empty() {
        let what = "an empty product has no time".to_owned();
        return Err(GpuError::Invalid { what }.into());
    }
    let loaded = Loaded::new(gpu, kernel.ptx(), kernel.entry(), &operands)?;
    let bytes: usize = operands.buffers.iter().map(|(_, b)| b.len).sum();
    let count = (ROTATING_BYTES / bytes.max(1)).clamp(2, MAX_SETS);
    let mut sets = Vec::new();
    for _ in 0..count {
        // Different data in each set costs host time; rotating the same random data over other addresses is what matters.
        let placed = operands.buffers.iter().map(|(_, b)| Placed::new(gpu, b));
        sets.push(Set(placed.collect::<Result<_, _>>()?));
    }
    let bound: Vec<_> = sets
        .iter()
        .map(|set| loaded.bind(gpu, set.0.iter().map(Placed::address).collect()))
        .collect::<Result<_, _>>()?;
    let run = |call: usize| loaded.run(&bound[call % count]);
    run(0)?;
    gpu.synchronize()?;
    let c = Matrix {
        bytes: sets[0].0[GemmKernel::C].read()?,
        ..first.c.clone()
    };
    let check = check_rows(problem, data_type, &first, &c, 24)?;
    // Without cuBLAS nothing is compared.
    let lt = cublas.and_then(|_| CublasLt::new(gpu).ok());
    let ways = cublas.map(|cublas| library(cublas, lt.as_ref(), data_type, problem, &sets));
    let mut theirs = ways.and_then(|ways| fastest(gpu, ways, options.slice));
    let works = 1 + usize::from(theirs.is_some());
    // Every call takes the next set, whoever makes it: what the other side has just used is in the cache.
    let mut set = 0_usize..;
    let times = gpu.time_interleaved(options, works, |which, _| {
        let set = set.next().unwrap_or_default();
        match &mut theirs {
            Some((_, theirs)) if which == 1 => theirs(set),
            _ => run(set),
        }
    })?;
    let ours_ms = times[0].median();
    let cublas_ms = times.get(1).map(Timing::median);
    Ok(Comparison {
        plan: plan.name(),
        ours_ms,
        cublas_ms,
        cublas_way: theirs.map(|(name, _)| name),
        max_rel_err: check.max_rel_err,
        tolerance: check.tolerance,
        passed: check.passed,
    })
}
