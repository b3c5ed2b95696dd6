//! Our kernels against cuBLAS, in one run on one GPU.
//!
//! Machines are shared and clocks move, so only the ratio of two times taken together means anything: the two take turns, a few repeats
//! each. Operands are random and rotate, so that neither side finds its inputs in the cache; each result is checked on rows drawn from the
//! whole matrix.

use layout_codegen::gemm::{DataType, Emitted, Epilogue, Gemm, Plan, Trans};
use layout_codegen::ir::Element;
use tilewright_gpu::cublas::{
    Cublas, Gemm as CublasGemm, GemmTypes, Matrix as CublasMatrix, Scalar,
};
use tilewright_gpu::cublaslt::CublasLt;
use tilewright_gpu::{Gpu, GpuError, TimeOptions, Timing};

use super::run::bind::bind;
use super::run::on_gpu::{Loaded, Placed};
use super::{DeviceError, GemmKernel, Inputs, Matrix, Runnable, check_rows};

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

/// Which library multiplies a type, and what it calls it.
#[derive(Clone, Copy)]
enum Yardstick {
    Cublas(GemmTypes),
    /// 8-bit floats.
    CublasLt(GemmTypes),
}

/// The library's product of the same types; none if it has none, as for bias and activations.
fn yardstick(data_type: DataType, problem: &Gemm) -> Option<Yardstick> {
    if problem.epilogue != Epilogue::default() {
        return None;
    }
    Some(match data_type {
        DataType::E4m3 | DataType::E5m2 => Yardstick::CublasLt(cublas_types(data_type, problem)?),
        _ => Yardstick::Cublas(cublas_types(data_type, problem)?),
    })
}

/// What cuBLAS calls the types of a product; none if it has no such C.
pub(in crate::host) fn cublas_types(data_type: DataType, problem: &Gemm) -> Option<GemmTypes> {
    let c = match problem.result(data_type) {
        Element::F32 => Scalar::F32,
        Element::F16 => Scalar::F16,
        Element::Bf16 => Scalar::Bf16,
        Element::F64 => Scalar::F64,
        Element::S32 => Scalar::S32,
        Element::S8 | Element::E4m3 | Element::E5m2 => return None,
    };
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

/// Turns that our kernel and the library take.
const TURNS: usize = 4;

/// Enqueues the library's product of one set.
type Call<'s> = Box<dyn FnMut(usize) -> Result<(), GpuError> + 's>;

/// The library's product; none if it has none or refuses it.
fn library<'s>(
    (cublas, lt): (Option<&'s Cublas>, Option<&'s CublasLt>),
    yardstick: Yardstick,
    problem: &'s Gemm,
    sets: &'s [Set],
) -> Option<Call<'s>> {
    match yardstick {
        Yardstick::Cublas(types) => {
            let cublas = cublas?;
            Some(Box::new(move |call| {
                cublas.gemm(&product(problem, types, &sets[call % sets.len()]))
            }))
        }
        Yardstick::CublasLt(types) => {
            let lt = lt?;
            let plans = sets
                .iter()
                .map(|set| lt.plan(&product(problem, types, set), false))
                .collect::<Result<Vec<_>, _>>()
                .ok()?;
            Some(Box::new(move |call| plans[call % plans.len()].run()))
        }
    }
}

/// Times all launches of `kernel` together, and cuBLAS, on one problem, and checks rows of the result.
///
/// # Errors
///
/// The plan's refusal of the problem, or a failure of the driver. A product that cuBLAS refuses is not an error.
pub fn compare(
    gpu: &Gpu,
    cublas: Option<&Cublas>,
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    options: TimeOptions,
    seed: u64,
) -> Result<Comparison, DeviceError> {
    let data_type = plan.data_type();
    let kernel = GemmKernel::emitted(plan, kernel, problem)?;
    let first = Inputs::random(problem, data_type, seed);
    let operands = bind(&kernel, kernel.args(&first))?;
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
    let check = check_rows(problem, data_type, &first, &c, 24).map_err(|e| GpuError::Invalid {
        what: e.to_string(),
    })?;
    // Without cuBLAS nothing is compared.
    let yardstick = cublas.and_then(|_| yardstick(data_type, problem));
    let lt = match yardstick {
        Some(Yardstick::CublasLt(_)) => CublasLt::new(gpu).ok(),
        _ => None,
    };
    let mut theirs = yardstick.and_then(|y| library((cublas, lt.as_ref()), y, problem, &sets));
    let (mut ours_times, mut their_times) = (Timing::default(), Timing::default());
    let mut left = options.repeats.max(1);
    while left > 0 {
        let turn = TimeOptions {
            repeats: options.repeats.div_ceil(TURNS).clamp(1, left),
            ..options
        };
        left -= turn.repeats;
        ours_times = ours_times.and(&gpu.time(turn, run)?);
        // A product that the library refuses is not an error.
        match theirs.as_mut().map(|call| gpu.time(turn, call)) {
            Some(Ok(times)) => their_times = their_times.and(&times),
            Some(Err(_)) => theirs = None,
            None => {}
        }
    }
    let ours_ms = ours_times.median();
    let cublas_ms = theirs.is_some().then(|| their_times.median());
    Ok(Comparison {
        plan: plan.name(),
        ours_ms,
        cublas_ms,
        max_rel_err: check.max_rel_err,
        tolerance: check.tolerance,
        passed: check.passed,
    })
}
