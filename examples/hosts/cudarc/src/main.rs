//! Launches emitted kernels with cudarc and checks their results: a GEMM and a transpose.
//!
//! ```text
//! tilewright gemm --dtype f16 --arch sm_80 --m 384 --n 256 --k 192 --on none --emit kernel.ptx --emit-host rust examples/hosts/cudarc/src/kernel.rs
//! tilewright kernel transpose --rows 1000 --cols 700 --on none --emit transpose.ptx --emit-host cudarc examples/hosts/cudarc/src/transpose.rs
//! cargo run --release -p host-cudarc -- kernel.ptx transpose.ptx
//! ```
//!
//! `kernel.rs` and `transpose.rs` are the contracts as `--emit-host` writes them: that of the GEMM is for one problem, that of the transpose takes the
//! sizes. The PTX files are read when the program runs. In Rust without dependencies the launches are values, and cudarc passes an argument by what it points to, so that they are pushed one by one in the order of the kernel's
//! parameters. The text for cudarc does that itself, with buffers of the right types.

use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;
use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use half::f16;

#[allow(dead_code, unreachable_pub, clippy::pedantic, clippy::manual_is_multiple_of, reason = "what --emit-host writes is a module of any crate")]
#[rustfmt::skip]
mod kernel;

#[allow(dead_code, unreachable_pub, clippy::pedantic, clippy::manual_is_multiple_of, reason = "what --emit-host writes is a module of any crate")]
#[rustfmt::skip]
mod transpose;

/// The problem that the contract is of.
const M: usize = 384;
const N: usize = 256;
const K: usize = 192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [path, second] = [1, 2].map(|i| std::env::args().nth(i));
    let context = CudaContext::new(0)?;
    product(&context, path.ok_or("which PTX file?")?)?;
    second.map_or(Ok(()), |path| transposed(&context, path))
}

/// y ← xᵀ: the text takes the sizes.
fn transposed(context: &Arc<CudaContext>, path: String) -> Result<(), Box<dyn std::error::Error>> {
    let scalars = transpose::Scalars {
        rows: 1000,
        cols: 700,
    };
    let [rows, cols] = [scalars.rows, scalars.cols].map(|size| size as usize);
    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_file(path))?;
    let numbers: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
    let x = stream.clone_htod(&numbers)?;
    let mut y = stream.alloc_zeros::<f32>(rows * cols)?;
    let buffers = transpose::Buffers { x: &x, y: &mut y };
    transpose::launch(&module, &stream, buffers, scalars)?;
    let y = stream.clone_dtoh(&y)?;
    let right = |i: usize| y[i].to_bits() == numbers[i % rows * cols + i / rows].to_bits();
    if !(0..rows * cols).all(right) {
        return Err("FAIL cudarc: y is not the transpose of x".into());
    }
    println!("ok   cudarc: y is the transpose of x, {rows}x{cols}");
    Ok(())
}

fn product(context: &Arc<CudaContext>, path: String) -> Result<(), Box<dyn std::error::Error>> {
    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_file(path))?;
    let (a, b) = (matrix(M * K, 1), matrix(K * N, 2));
    let device_a = stream.clone_htod(&a)?;
    let device_b = stream.clone_htod(&b)?;
    let mut device_c = stream.alloc_zeros::<f16>(M * N)?;
    {
        let (a, _read_a) = device_a.device_ptr(&stream);
        let (b, _read_b) = device_b.device_ptr(&stream);
        let (c, _write_c) = device_c.device_ptr_mut(&stream);
        for launch in kernel::launches(&kernel::Buffers { a, b, c })? {
            let function = module.load_function(launch.kernel)?;
            function.set_attribute(SHARED, launch.shared_bytes as i32)?;
            let config = LaunchConfig {
                grid_dim: launch.grid.into(),
                block_dim: launch.block.into(),
                shared_mem_bytes: launch.shared_bytes,
            };
            let mut builder = stream.launch_builder(&function);
            for value in &launch.args {
                match value {
                    kernel::Arg::Ptr(value) | kernel::Arg::U64(value) => builder.arg(value),
                    kernel::Arg::U32(value) => builder.arg(value),
                    kernel::Arg::S32(value) => builder.arg(value),
                    kernel::Arg::F32(value) => builder.arg(value),
                    kernel::Arg::F64(value) => builder.arg(value),
                };
            }
            // SAFETY: the contract lists the kernel's parameters, and the buffers have the sizes of its problem.
            unsafe { builder.launch(config) }?;
        }
    }
    let c = stream.clone_dtoh(&device_c)?;
    check(&a, &b, &c)
}

/// Numbers from -1 to 1 that look random, the same in every run.
fn matrix(length: usize, seed: u32) -> Vec<f16> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f16::from_f64(f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0)
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Compares C with the product in double precision, against the bound of a sum of K products in f32 that is rounded to f16.
fn check(a: &[f16], b: &[f16], c: &[f16]) -> Result<(), Box<dyn std::error::Error>> {
    let (mut error, mut largest) = (0.0_f64, 0.0_f64);
    for row in 0..M {
        for column in 0..N {
            let exact: f64 = (0..K)
                .map(|k| a[row * K + k].to_f64() * b[k * N + column].to_f64())
                .sum();
            error = error.max((c[row * N + column].to_f64() - exact).abs());
            largest = largest.max(exact.abs());
        }
    }
    let relative = error / largest;
    let bound = 2.0_f64.powi(-11) + K as f64 * 2.0_f64.powi(-24);
    if relative.is_nan() || relative > bound {
        return Err(
            format!("FAIL cudarc: relative error {relative:.2e}, bound {bound:.2e}").into(),
        );
    }
    println!("ok   cudarc: relative error {relative:.2e}, bound {bound:.2e}");
    Ok(())
}
