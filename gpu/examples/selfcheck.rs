//! Tries everything that this crate does, on the GPU of this machine, and prints a table.
//!
//! `cargo run --release -p tilewright-gpu --example selfcheck`. Exit code 1 if anything is wrong, 0 if all is well or the
//! machine has no GPU (which it says).

use std::process::ExitCode;

use half::{bf16, f16};
use tilewright_gpu::cublas::{Cublas, Gemm, GemmTypes, Matrix, Scalar};
use tilewright_gpu::cublaslt::CublasLt;
use tilewright_gpu::{
    Arg, Buffer, Gpu, GpuError, LaunchConfig, MapElement, MapSwizzle, TensorMap, TensorMapSpec,
    TimeOptions,
};

const VECTOR_ADD: &str = include_str!("../src/vector_add.ptx");

/// Writes each block's rank in its cluster, and its last thread's number via dynamic shared memory.
const CLUSTER: &str = "
.version 7.8
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry cluster_rank(.param .u64 out, .param .u32 last)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [last];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, dynamic;
    add.u32 %r3, %r3, %r1;
    st.shared.u32 [%r3], %r2;
    bar.sync 0;
    ld.shared.u32 %r4, [%r3];
    mov.u32 %r5, %cluster_ctarank;
    mad.lo.u32 %r5, %r4, 100, %r5;
    mov.u32 %r6, %ctaid.x;
    mul.wide.u32 %rd2, %r6, 4;
    add.u64 %rd1, %rd1, %rd2;
    setp.eq.u32 %p, %r2, 0;
    @%p st.global.u32 [%rd1], %r5;
    ret;
}";

/// Copies a 64×8 box of halves with the 128-byte swizzle into shared memory and from there, as it lies, to `out`.
const TENSOR: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry tensor_copy(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 full;
    .reg .b32 %t, %x, %y, %s, %v, %bar;
    .reg .b64 %map, %out, %offset, %state;
    .reg .pred %first, %done;
    mov.u32 %t, %tid.x;
    ld.param.u64 %out, [out];
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %s, tile;
    mov.u32 %bar, full;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [%bar], 1;
    @%first fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 1024;
    @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, {%x, %y}], [%bar];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
    @!%done bra WAIT;
    shl.b32 %v, %t, 2;
    add.u32 %s, %s, %v;
    mul.wide.u32 %offset, %t, 4;
    add.u64 %out, %out, %offset;
    ld.shared.u32 %v, [%s];
    st.global.u32 [%out], %v;
    ret;
}";

/// The table, and whether any line of it is bad.
#[derive(Default)]
struct Report {
    failures: usize,
}

impl Report {
    fn line(&mut self, name: &str, outcome: Result<String, String>) {
        let (verdict, text) = match outcome {
            Ok(text) => ("ok", text),
            Err(text) => {
                self.failures += 1;
                ("FAILED", text)
            }
        };
        println!("{name:<28} {verdict:<7} {text}");
    }
}

fn main() -> ExitCode {
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("nothing to check: {error}");
            return if error.means_no_gpu() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
    };
    println!("{:#?}", gpu.info());
    let mut report = Report::default();
    let text = |result: Result<String, Box<dyn std::error::Error>>| {
        result.map_err(|error| error.to_string())
    };
    report.line("memory", text(memory(&gpu)));
    report.line("vector add", text(vector_add(&gpu)));
    report.line("refusals", text(refusals(&gpu)));
    if gpu.info().compute_capability.0 >= 9 {
        report.line("cluster, 100 KiB shared", text(cluster(&gpu)));
        report.line("tensor map", text(tensor_map(&gpu)));
    }
    match Cublas::new(&gpu) {
        Ok(cublas) => {
            println!("cuBLAS {:?} at {}", cublas.version(), cublas.path());
            for (name, types) in [
                ("sgemm", GemmTypes::F32),
                ("tf32", GemmTypes::TF32),
                ("dgemm", GemmTypes::F64),
                ("f16", GemmTypes::F16),
                ("f16 -> f32", GemmTypes::F16_F32),
                ("f16, f16 accumulation", GemmTypes::F16_F16),
                ("bf16", GemmTypes::BF16),
                ("bf16 -> f32", GemmTypes::BF16_F32),
                ("s8 -> s32", GemmTypes::S8),
            ] {
                for (trans_a, trans_b) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let shape = Shape {
                        types,
                        size: [256, 192, 320],
                        trans_a,
                        trans_b,
                        batch: 1,
                        pad: 16,
                    };
                    let letter = |trans| if trans { 't' } else { 'n' };
                    let name = format!("{name} {}{}", letter(trans_a), letter(trans_b));
                    report.line(
                        &name,
                        text(product(&gpu, shape, |gemm| Ok(cublas.gemm(gemm)?))),
                    );
                }
                let shape = Shape {
                    types,
                    size: [128, 64, 96],
                    trans_a: false,
                    trans_b: true,
                    batch: 3,
                    pad: 16,
                };
                report.line(
                    &format!("{name} batch of 3"),
                    text(product(&gpu, shape, |gemm| Ok(cublas.gemm(gemm)?))),
                );
                let shape = Shape {
                    types,
                    size: [4096; 3],
                    trans_a: false,
                    trans_b: true,
                    batch: 1,
                    pad: 0,
                };
                report.line(
                    &format!("{name} 4096"),
                    text(product(&gpu, shape, |gemm| Ok(cublas.gemm(gemm)?))),
                );
            }
        }
        Err(error) => report.line("cuBLAS", Err(error.to_string())),
    }
    match CublasLt::new(&gpu) {
        Ok(lt) => {
            println!("cublasLt at {}", lt.path());
            for (name, types, fast) in [
                ("lt f16 -> f32", GemmTypes::F16_F32, false),
                ("lt s8 -> s32", GemmTypes::S8, false),
                ("lt e4m3 -> f32", GemmTypes::E4M3, false),
                ("lt e4m3 -> f32, fast", GemmTypes::E4M3, true),
                (
                    "lt e4m3 -> bf16",
                    GemmTypes {
                        c: Scalar::Bf16,
                        ..GemmTypes::E4M3
                    },
                    false,
                ),
                ("lt e5m2 e4m3 -> f32", GemmTypes::E5M2, false),
            ] {
                for (size, batch, pad) in [
                    ([256, 192, 320], 1, 16),
                    ([256, 192, 320], 2, 16),
                    ([4096; 3], 1, 0),
                ] {
                    let shape = Shape {
                        types,
                        size,
                        trans_a: false,
                        trans_b: true,
                        batch,
                        pad,
                    };
                    let name = format!("{name} {} batch {batch}", size[0]);
                    report.line(
                        &name,
                        text(product(&gpu, shape, |gemm| {
                            Ok(lt.plan(gemm, fast)?.run()?)
                        })),
                    );
                }
            }
        }
        Err(error) => report.line("cublasLt", Err(error.to_string())),
    }
    println!("{} failures", report.failures);
    if report.failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

type Checked = Result<String, Box<dyn std::error::Error>>;

fn require(holds: bool, what: impl Into<String>) -> Result<(), Box<dyn std::error::Error>> {
    if holds {
        Ok(())
    } else {
        Err(what.into().into())
    }
}

fn memory(gpu: &Gpu) -> Checked {
    let (free, total) = gpu.memory()?;
    let buffer = gpu.upload(&[1.0_f64, -2.0, 3.5])?;
    buffer.write(8, &[7.0_f64])?;
    require(
        buffer.download::<f64>()? == [1.0, 7.0, 3.5],
        "what comes back is not what was written",
    )?;
    buffer.poison()?;
    require(
        buffer.download::<f32>()?.iter().all(|x| x.is_nan()),
        "poison is not NaN",
    )?;
    require(
        buffer.write(17, &[0_u8; 8]).is_err(),
        "a write behind the end was taken",
    )?;
    require(
        gpu.alloc(0)?.download::<u8>()?.is_empty(),
        "nothing is something",
    )?;
    let huge = gpu.alloc(1 << 50).err().map(|error| error.code());
    require(
        huge == Some("gpu_out_of_memory"),
        format!("a petabyte: {huge:?}"),
    )?;
    Ok(format!("{} of {} MiB free", free >> 20, total >> 20))
}

fn vector_add(gpu: &Gpu) -> Checked {
    let module = gpu.load_ptx(VECTOR_ADD)?;
    require(
        module.kernel_names()? == ["vector_add"],
        "the kernel's name is lost",
    )?;
    let kernel = module.kernel("vector_add")?;
    require(
        kernel.parameters() == [8, 8, 8, 4, 4],
        format!("parameters {:?}", kernel.parameters()),
    )?;
    let n = 1_000_003_u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (a, b) = (gpu.upload(&x)?, gpu.upload(&vec![0.5_f32; n as usize])?);
    let c = gpu.alloc(4 * n as usize + 64)?;
    c.poison()?;
    let config = LaunchConfig::new([n.div_ceil(256), 1, 1], [256, 1, 1]);
    let args = [
        Arg::from(&a),
        Arg::from(&b),
        Arg::from(&c),
        Arg::F32(2.0),
        Arg::U32(n),
    ];
    kernel.launch(&config, &args)?;
    let result = c.download::<f32>()?;
    let (inside, outside) = result.split_at(n as usize);
    let right = inside
        .iter()
        .zip(&x)
        .all(|(result, x)| result.to_bits() == 2.0_f32.mul_add(*x, 0.5).to_bits());
    require(
        right && outside.iter().all(|x| x.is_nan()),
        "the sum is wrong",
    )?;
    let warm = gpu.time(TimeOptions::default(), |_| kernel.launch(&config, &args))?;
    let flushed = TimeOptions {
        flush_l2: true,
        ..TimeOptions::default()
    };
    let cold = gpu.time(flushed, |_| kernel.launch(&config, &args))?;
    let batched = TimeOptions {
        batch: 10,
        ..TimeOptions::default()
    };
    let batch = gpu.time(batched, |_| kernel.launch(&config, &args))?;
    require(
        warm.min() > 0.0 && warm.median() < 10.0,
        format!("times {warm:?}"),
    )?;
    Ok(format!(
        "{:.4} ms warm, {:.4} ms with the L2 flushed, {:.4} ms in batches; {:?}; {} blocks an SM; log `{}`",
        warm.median(),
        cold.median(),
        batch.median(),
        kernel.attributes(),
        kernel.blocks_per_sm(256, 0)?,
        module.log().lines().last().unwrap_or("")
    ))
}

fn refusals(gpu: &Gpu) -> Checked {
    let code = |result: Result<(), GpuError>| result.err().map_or("none", |error| error.code());
    let module = gpu.load_ptx(VECTOR_ADD)?;
    let kernel = module.kernel("vector_add")?;
    let config = LaunchConfig::new([1, 1, 1], [32, 1, 1]);
    let bad = VECTOR_ADD.replace("fma.rn", "fmad.rn");
    let jit = gpu.load_ptx(&bad).err();
    let log = jit.as_ref().map(ToString::to_string).unwrap_or_default();
    require(
        log.contains("fmad"),
        format!("the log of a refused PTX: {log}"),
    )?;
    let codes = [
        jit.map_or("none", |error| error.code()),
        code(module.kernel("subtract").map(|_| ())),
        code(kernel.launch(&config, &[Arg::U32(1)])),
        code(kernel.launch(&LaunchConfig::new([0, 1, 1], [32, 1, 1]), &[])),
        code(Gpu::open(99).map(|_| ())),
    ];
    let expected = [
        "ptx_rejected",
        "no_such_kernel",
        "wrong_arguments",
        "wrong_arguments",
        "no_such_gpu",
    ];
    require(codes == expected, format!("{codes:?}"))?;
    let args = [
        Arg::Ptr(0),
        Arg::Ptr(0),
        Arg::Ptr(0),
        Arg::F32(0.0),
        Arg::U32(0),
    ];
    let empty = code(kernel.launch(&LaunchConfig::new([0, 1, 1], [32, 1, 1]), &args));
    let large = code(kernel.launch(&LaunchConfig::new([1, 1, 1], [2048, 1, 1]), &args));
    require(
        empty == "invalid_request" && large == "cuda_error",
        format!("{empty}, {large}"),
    )?;
    Ok(format!(
        "each with its code; `{}`",
        log.lines().nth(1).unwrap_or("")
    ))
}

fn cluster(gpu: &Gpu) -> Checked {
    let kernel = gpu.load_ptx(CLUSTER)?.kernel("cluster_rank")?;
    let out = gpu.alloc(4 * 16)?;
    out.poison()?;
    let shared = 100 << 10;
    let config = LaunchConfig::new([16, 1, 1], [1, 1, 1])
        .cluster([4, 1, 1])
        .shared_bytes(shared);
    kernel.launch(&config, &[Arg::from(&out), Arg::U32(shared - 4)])?;
    let ranks = out.download::<u32>()?;
    let expected: Vec<u32> = (0..16).map(|block| block % 4).collect();
    require(ranks == expected, format!("ranks {ranks:?}"))?;
    let large = LaunchConfig::new([16, 1, 1], [1, 1, 1])
        .cluster([16, 1, 1])
        .shared_bytes(64);
    kernel
        .launch(&large, &[Arg::from(&out), Arg::U32(0)])
        .and_then(|()| gpu.synchronize())
        .map_or_else(
            |error| Ok(format!("clusters of 4; clusters of 16 refused: {error}")),
            |()| Ok("clusters of 4 and of 16".to_owned()),
        )
}

fn tensor_map(gpu: &Gpu) -> Checked {
    let kernel = gpu.load_ptx(TENSOR)?.kernel("tensor_copy")?;
    let (rows, cols) = (20_u64, 136_u64);
    let data: Vec<u16> = (0..rows * cols).map(|i| i as u16).collect();
    let array = gpu.upload(&data)?;
    let spec = TensorMapSpec {
        sizes: vec![cols, rows],
        strides: vec![2 * cols],
        box_sizes: vec![64, 8],
        swizzle: MapSwizzle::Bytes128,
        ..TensorMapSpec::new(MapElement::F16, array.address())
    };
    let map = TensorMap::encode(gpu, &spec)?;
    // The box at column 96, row 16 hangs over both edges: outside reads as 0.
    for (x, y) in [(0_u64, 0_u64), (64, 8), (96, 16)] {
        let out = gpu.alloc(1024)?;
        out.poison()?;
        let args = [
            Arg::from(&map),
            Arg::from(&out),
            Arg::U32(x as u32),
            Arg::U32(y as u32),
        ];
        kernel.launch(&LaunchConfig::new([1, 1, 1], [256, 1, 1]), &args)?;
        let tile = out.download::<u16>()?;
        for (row, col) in (0..8).flat_map(|row| (0..64).map(move |col| (row, col))) {
            // Swizzle<3,4,3> on the byte offset.
            let byte = 128 * row + 2 * col;
            let swizzled = byte ^ ((byte >> 7) & 7) << 4;
            let inside = x + col < cols && y + row < rows;
            let expected = if inside {
                data[((y + row) * cols + x + col) as usize]
            } else {
                0
            };
            let found = tile[swizzled as usize / 2];
            require(
                found == expected,
                format!("box at ({x}, {y}), element ({row}, {col}): {found}, not {expected}"),
            )?;
        }
    }
    Ok("three boxes, swizzled, edges filled with 0".to_owned())
}

/// A product to check.
#[derive(Clone, Copy)]
struct Shape {
    types: GemmTypes,
    size: [usize; 3],
    trans_a: bool,
    trans_b: bool,
    batch: usize,
    /// Elements added to each leading dimension.
    pad: usize,
}

/// Random matrices as values, rounded to their type.
fn random(scalar: Scalar, count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    };
    let round = |x: f64| match scalar {
        Scalar::F16 => f16::from_f64(x).to_f64(),
        Scalar::Bf16 => bf16::from_f64(x).to_f64(),
        Scalar::F32 => f64::from(x as f32),
        // Never -0, which integers do not have.
        Scalar::S8 | Scalar::S32 => (x * 127.0).round() + 0.0,
        // Three and two bits of mantissa, never subnormal: (1 + i/8) or (1 + i/4), with a sign.
        Scalar::E4m3 => x.signum() * (1.0 + (x.abs() * 7.0).round() / 8.0),
        Scalar::E5m2 => x.signum() * (1.0 + (x.abs() * 3.0).round() / 4.0),
        _ => x,
    };
    (0..count).map(|_| round(next())).collect()
}

fn encode(scalar: Scalar, values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&x| match scalar {
            Scalar::F16 => f16::from_f64(x).to_ne_bytes().to_vec(),
            Scalar::Bf16 => bf16::from_f64(x).to_ne_bytes().to_vec(),
            Scalar::F32 => (x as f32).to_ne_bytes().to_vec(),
            Scalar::S8 => (x as i8).to_ne_bytes().to_vec(),
            Scalar::S32 => (x as i32).to_ne_bytes().to_vec(),
            // Sign, exponent 0 (biased 7 and 15), mantissa.
            Scalar::E4m3 => vec![u8::from(x < 0.0) << 7 | 7 << 3 | ((x.abs() - 1.0) * 8.0) as u8],
            Scalar::E5m2 => vec![u8::from(x < 0.0) << 7 | 15 << 2 | ((x.abs() - 1.0) * 4.0) as u8],
            _ => x.to_ne_bytes().to_vec(),
        })
        .collect()
}

fn decode(scalar: Scalar, buffer: &Buffer) -> Result<Vec<f64>, GpuError> {
    Ok(match scalar {
        Scalar::F16 => buffer
            .download::<u16>()?
            .into_iter()
            .map(|x| f16::from_bits(x).to_f64())
            .collect(),
        Scalar::Bf16 => buffer
            .download::<u16>()?
            .into_iter()
            .map(|x| bf16::from_bits(x).to_f64())
            .collect(),
        Scalar::F32 => buffer
            .download::<f32>()?
            .into_iter()
            .map(f64::from)
            .collect(),
        Scalar::S32 => buffer
            .download::<i32>()?
            .into_iter()
            .map(f64::from)
            .collect(),
        _ => buffer.download::<f64>()?,
    })
}

/// Runs a product with α = 2, β = -1, compares entries with a sum in double precision, and times it.
fn product(
    gpu: &Gpu,
    shape: Shape,
    run: impl Fn(&Gemm<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Checked {
    let Shape {
        types,
        size: [m, n, k],
        trans_a,
        trans_b,
        batch,
        pad,
    } = shape;
    let lda = pad + if trans_a { m } else { k };
    let ldb = pad + if trans_b { k } else { n };
    let ldc = pad + n;
    let strides = [
        lda * if trans_a { k } else { m },
        ldb * if trans_b { n } else { k },
        ldc * m,
    ];
    let a = random(types.a, strides[0] * batch, 1);
    let b = random(types.b, strides[1] * batch, 2);
    let c = random(types.c, strides[2] * batch, 3);
    let buffers = [
        gpu.upload(&encode(types.a, &a))?,
        gpu.upload(&encode(types.b, &b))?,
        gpu.upload(&encode(types.c, &c))?,
    ];
    let matrix = |i: usize, ld| Matrix {
        batch_stride: strides[i],
        ..Matrix::new(&buffers[i], ld)
    };
    let gemm = Gemm {
        trans_a,
        trans_b,
        alpha: 2.0,
        beta: -1.0,
        batch,
        ..Gemm::new(
            types,
            shape.size,
            matrix(0, lda),
            matrix(1, ldb),
            matrix(2, ldc),
        )
    };
    run(&gemm)?;
    let result = decode(types.c, &buffers[2])?;
    let mut worst = 0.0_f64;
    for sample in 0..200 {
        let (batch, i, j) = (sample % batch, sample * 7919 % m, sample * 104_729 % n);
        let at_a =
            |l: usize| a[batch * strides[0] + if trans_a { l * lda + i } else { i * lda + l }];
        let at_b =
            |l: usize| b[batch * strides[1] + if trans_b { j * ldb + l } else { l * ldb + j }];
        let sum: f64 = (0..k).map(|l| at_a(l) * at_b(l)).sum();
        let scale: f64 = (0..k).map(|l| (at_a(l) * at_b(l)).abs()).sum();
        let place = batch * strides[2] + i * ldc + j;
        let error = (result[place] - (2.0 * sum - c[place])).abs() / (2.0 * scale + c[place].abs());
        worst = worst.max(if error.is_nan() { f64::INFINITY } else { error });
    }
    // Rounding of the result or of every operand, whichever is coarser; sums of k terms stay far below k roundings.
    let tolerance = match (types.c, types.compute) {
        (Scalar::S32, _) => 0.0,
        (Scalar::F64, _) => 1e-14,
        (_, tilewright_gpu::cublas::Compute::F16) => 3e-2,
        (Scalar::Bf16, _) => 4e-3,
        (Scalar::F16, _) | (_, tilewright_gpu::cublas::Compute::Tf32) => 1e-3,
        _ if matches!(types.a, Scalar::E4m3 | Scalar::E5m2) => 2e-3,
        _ => 1e-5,
    };
    // Padding between rows belongs to nobody and must not change.
    let gaps = (0..batch * m).flat_map(|row| (n..ldc).map(move |col| row * ldc + col));
    let mut untouched = gaps.map(|place| result[place].to_bits() == c[place].to_bits());
    require(
        untouched.all(|same| same),
        "elements between the rows were written",
    )?;
    require(
        worst <= tolerance,
        format!("relative error {worst:.2e} above {tolerance:.0e}"),
    )?;
    let timing = gpu.time(
        TimeOptions {
            repeats: 10,
            ..TimeOptions::default()
        },
        |_| run(&gemm),
    )?;
    let flops = 2.0 * (m * n * k * batch) as f64;
    let milliseconds = timing.median();
    Ok(format!(
        "error {worst:.1e}  {milliseconds:8.4} ms  {:8.2} TFLOP/s",
        flops / milliseconds / 1e9
    ))
}
