//! Our kernels against cuBLAS, in one run on one GPU.
//!
//! Machines are shared and clocks move, so only the ratio of two times taken together means anything. Operands are random and
//! rotate, so that neither side finds its inputs in the cache; each result is checked on rows drawn from the whole matrix.

use layout_codegen::plan::{DataType, Emitted, Gemm, Plan, Trans};
use tilewright_gpu::cublas::{Cublas, Gemm as CublasGemm, GemmTypes, Matrix as CublasMatrix};
use tilewright_gpu::cublaslt::CublasLt;
use tilewright_gpu::{Buffer, Gpu, GpuError, LaunchConfig, TimeOptions};

use super::device::device_arguments;
use super::{DeviceError, Inputs, Matrix, check_rows};

/// Bytes of operands that rotate: several times the level 2 cache of any GPU there is.
const ROTATING_BYTES: usize = 512 << 20;

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

/// Operands on the device.
struct Set {
    a: Buffer,
    b: Buffer,
    c: Buffer,
}

/// The problem as the libraries take it.
fn product<'s>(problem: &Gemm, types: GemmTypes, set: &'s Set) -> CublasGemm<'s> {
    let size = [problem.m, problem.n, problem.k].map(|v| v as usize);
    let matrix = |buffer: &'s Buffer, ld: u64| CublasMatrix::new(buffer, ld as usize);
    let (a, b, c) = (
        matrix(&set.a, problem.lda),
        matrix(&set.b, problem.ldb),
        matrix(&set.c, problem.ldc),
    );
    CublasGemm {
        trans_a: problem.operands.a == Trans::T,
        trans_b: problem.operands.b == Trans::T,
        alpha: problem.alpha,
        beta: problem.beta,
        ..CublasGemm::new(types, size, a, b, c)
    }
}

/// Which library multiplies a type, and what it calls it.
enum Yardstick {
    Cublas(GemmTypes),
    /// 8-bit floats.
    CublasLt(GemmTypes),
}

fn yardstick(data_type: DataType) -> Yardstick {
    Yardstick::Cublas(match data_type {
        DataType::F32 => GemmTypes::F32,
        DataType::F16 | DataType::F16Acc16 => GemmTypes::F16,
        DataType::Bf16 => GemmTypes::BF16,
        DataType::Tf32 => GemmTypes::TF32,
        DataType::F64 => GemmTypes::F64,
        DataType::S8 => GemmTypes::S8,
        DataType::E4m3 => return Yardstick::CublasLt(GemmTypes::E4M3),
        DataType::E5m2 => return Yardstick::CublasLt(GemmTypes::E5M2),
    })
}

/// The time of cublasLt; none if it refuses the product.
fn lt_time(
    gpu: &Gpu,
    options: TimeOptions,
    sets: &[Set],
    problem: &Gemm,
    types: GemmTypes,
) -> Option<f64> {
    let lt = CublasLt::new(gpu).ok()?;
    let plans = sets
        .iter()
        .map(|set| lt.plan(&product(problem, types, set), false))
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    let timing = gpu.time(options, |call| plans[call % plans.len()].run());
    timing.ok().map(|t| t.median())
}

/// Times `kernel` and cuBLAS on one problem and checks rows of the result.
///
/// # Errors
///
/// The plan's refusal of the problem, or a failure of the driver. A product that cuBLAS refuses is no error.
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
    let launch = plan.launch(problem)?.ok_or(GpuError::Invalid {
        what: "an empty product has no time".to_owned(),
    })?;
    let module = gpu.load_ptx(&kernel.ptx)?;
    let function = module.kernel(&launch.kernel)?;
    let config = LaunchConfig::new(launch.grid, launch.block)
        .cluster(launch.cluster)
        .shared_bytes(launch.shared_bytes);

    let first = Inputs::random(problem, data_type, seed);
    let bytes = first.a.bytes.len() + first.b.bytes.len() + first.c.bytes.len();
    let count = (ROTATING_BYTES / bytes.max(1)).clamp(2, 8);
    let mut sets = Vec::new();
    for i in 0..count {
        // Different data in each set costs host time; rotating the same random data over other addresses is what matters.
        let set = Set {
            a: gpu.alloc(first.a.bytes.len())?,
            b: gpu.alloc(first.b.bytes.len())?,
            c: gpu.alloc(first.c.bytes.len())?,
        };
        set.a.write(0, &first.a.bytes)?;
        set.b.write(0, &first.b.bytes)?;
        if i == 0 {
            set.c.write(0, &first.c.bytes)?;
        } else {
            set.c.fill(0)?;
        }
        sets.push(set);
    }

    let run = |set: &Set| {
        function.launch(
            &config,
            &device_arguments(&launch, [&set.a, &set.b, &set.c].map(Buffer::address)),
        )
    };
    run(&sets[0])?;
    gpu.synchronize()?;
    let c = Matrix {
        bytes: sets[0].c.read(0, first.c.bytes.len())?,
        ..first.c.clone()
    };
    let check = check_rows(problem, data_type, &first, &c, 24).map_err(|e| GpuError::Invalid {
        what: e.to_string(),
    })?;
    let ours_ms = gpu.time(options, |call| run(&sets[call % count]))?.median();

    let cublas_ms = match (cublas, yardstick(data_type)) {
        (Some(cublas), Yardstick::Cublas(types)) => {
            let timing = gpu.time(options, |call| {
                cublas.gemm(&product(problem, types, &sets[call % count]))
            });
            timing.ok().map(|t| t.median())
        }
        (Some(_), Yardstick::CublasLt(types)) => lt_time(gpu, options, &sets, problem, types),
        (None, _) => None,
    };
    Ok(Comparison {
        plan: plan.name(),
        ours_ms,
        cublas_ms,
        max_rel_err: check.max_rel_err,
        tolerance: check.tolerance,
        passed: check.passed,
    })
}
