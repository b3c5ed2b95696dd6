//! Our kernels against cuBLAS, in one run on one GPU.
//!
//! Machines are shared and clocks move, so only the ratio of two times taken together means anything. Operands are random and
//! rotate, so that neither side finds its inputs in the cache; each result is checked on rows drawn from the whole matrix.

use layout_codegen::plan::{DataType, Emitted, Gemm, Plan, Trans};
use tilewright_gpu::cublas::{Cublas, Gemm as CublasGemm, GemmTypes, Matrix as CublasMatrix};
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

fn cublas_types(data_type: DataType) -> GemmTypes {
    match data_type {
        DataType::F32 => GemmTypes::F32,
    }
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
    let check = check_rows(problem, &first, &c, 24).map_err(|e| GpuError::Invalid {
        what: e.to_string(),
    })?;
    let ours_ms = gpu.time(options, |call| run(&sets[call % count]))?.median();

    let cublas_ms = match cublas {
        None => None,
        Some(cublas) => {
            let product = |set: &Set| {
                let size = [problem.m as usize, problem.n as usize, problem.k as usize];
                let matrix = |buffer, ld: u64| CublasMatrix::new(buffer, ld as usize);
                cublas.gemm(&CublasGemm {
                    trans_a: problem.operands.a == Trans::T,
                    trans_b: problem.operands.b == Trans::T,
                    alpha: problem.alpha,
                    beta: problem.beta,
                    ..CublasGemm::new(
                        cublas_types(data_type),
                        size,
                        matrix(&set.a, problem.lda),
                        matrix(&set.b, problem.ldb),
                        matrix(&set.c, problem.ldc),
                    )
                })
            };
            gpu.time(options, |call| product(&sets[call % count]))
                .ok()
                .map(|t| t.median())
        }
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
