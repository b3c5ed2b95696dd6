//! One call runs any kernel, on the emulator, on a GPU or on an OpenCL device.
//!
//! ```text
//! Runnable: text, parameters, launches ─┐
//!                                       ├─▶ bind: names, types, ranges, sizes ─▶ emulator | GPU | OpenCL ─▶ Outcome
//! arguments: (name, Arg), in any order ─┘
//! ```
//!
//! A kernel says what it takes ([`Runnable`]); the arguments are typed buffers and scalars, matched by name ([`Arg`]). What does not go together
//! is one error before anything runs. Buffers lie between guard zones: the emulator reports every access outside, and on a device a write
//! outside shows in the bytes around. The [`Outcome`] holds the buffers and what was seen, and asserts for tests.

pub(super) mod arg;
pub(super) mod bind;
mod compiled;
mod element;
mod error;
mod gemm;
mod on;
#[cfg(feature = "emulator")]
pub(super) mod on_emulator;
#[cfg(feature = "gpu")]
pub(super) mod on_gpu;
#[cfg(feature = "opencl")]
mod on_opencl;
mod outcome;
pub(super) mod proven;
mod ptx_kernel;
mod runnable;
#[cfg(feature = "emulator")]
mod stores;

#[cfg(feature = "gpu")]
use tilewright_gpu::Gpu;
#[cfg(feature = "opencl")]
use tilewright_gpu::opencl::ClDevice;

pub use arg::{Arg, Buffer, Role, Scalar};
pub use element::{BufferElement, BufferType};
pub use error::{ArgError, RunError};
pub use gemm::GemmKernel;
pub use on::{On, Ran, RunOptions};
pub use outcome::{CountedAccess, Outcome, OutcomeError};
pub use ptx_kernel::PtxKernel;
pub use runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg, Stores};

use self::bind::{Bound, bind};
use self::on::Device;
use self::outcome::Content;

/// Runs a kernel with these arguments, one for each parameter, in any order.
///
/// ```
/// use tilewright::host::{Arg, On, PtxKernel, run};
///
/// // y[i] = 2·x[i], one thread an element.
/// let text = r"
/// .version 8.0
/// .target sm_80
/// .address_size 64
/// .visible .entry double(.param .u64 x, .param .u64 y) {
///     .reg .b32 %r<1>; .reg .b64 %d<5>; .reg .f32 %f<2>;
///     ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];
///     mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4;
///     add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
///     ld.global.f32 %f0, [%d3]; add.f32 %f1, %f0, %f0; st.global.f32 [%d4], %f1;
///     ret;
/// }";
/// let kernel = PtxKernel::new(text, "double")?.block([32, 1, 1]);
/// let x: Vec<f32> = (0..32).map(|i| i as f32).collect();
/// let outcome = run(&kernel, On::Emulator, [("x", Arg::input(&x)), ("y", Arg::output::<f32>(32))])?;
/// outcome.assert_clean();
/// assert_eq!(outcome.get::<f32>("y")?[31], 62.0);
///
/// // One element less: the last lane reads and writes outside, which the emulator reports.
/// let outcome = run(&kernel, On::Emulator, [("x", Arg::input(&x[1..])), ("y", Arg::output::<f32>(31))])?;
/// assert!(outcome.clean().unwrap_err().to_string().contains("out_of_bounds: line 10"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`RunError::Arg`] for an argument that is missing, unknown, of another type, out of range or too short; the kernel's own refusal; and
/// whatever keeps the device from running it. What the kernel does wrong while it runs is in the [`Outcome`].
pub fn run<'n, 'a, K: Runnable + ?Sized>(
    kernel: &K,
    on: On,
    args: impl IntoIterator<Item = (&'n str, Arg<'a>)>,
) -> Result<Outcome, RunError> {
    run_with(kernel, on, args, &RunOptions::default())
}

/// As [`run()`](run), with options.
///
/// ```
/// use tilewright::host::{Arg, On, PtxKernel, RunOptions, run_with};
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }";
/// let kernel = PtxKernel::new(text, "nothing")?.grid([7, 1, 1]);
/// let options = RunOptions { repeats: 3, ..RunOptions::default() };
/// let outcome = run_with(&kernel, On::Emulator, [], &options)?;
/// assert_eq!(outcome.report.as_ref().map(|report| report.blocks), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`run()`](run).
pub fn run_with<'n, 'a, K: Runnable + ?Sized>(
    kernel: &K,
    on: On,
    args: impl IntoIterator<Item = (&'n str, Arg<'a>)>,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    let bound = bind(kernel, args)?;
    match options.device(on)? {
        #[cfg(feature = "gpu")]
        Device::Gpu(gpu, why) => on_gpu(kernel, &bound, &gpu, why, options),
        #[cfg(feature = "opencl")]
        Device::OpenCl(device) => on_opencl(kernel, &bound, &device, options),
        Device::Emulator(why) => on_emulator(kernel, &bound, why, options),
    }
}

/// The text of a kernel that runs as PTX.
fn ptx<K: Runnable + ?Sized>(kernel: &K) -> Result<&str, RunError> {
    let text = kernel.ptx();
    if text.is_empty() {
        let reason = format!(
            "`{}` has no PTX, only OpenCL C: run it on an OpenCL device (`On::OpenCl`)",
            kernel.entry()
        );
        return Err(RunError::Text { reason });
    }
    Ok(text)
}

#[cfg(feature = "emulator")]
fn on_emulator<K: Runnable + ?Sized>(
    kernel: &K,
    bound: &Bound<'_>,
    why: String,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    let run = on_emulator::emulate(ptx(kernel)?, bound, &options.emulator)?;
    let (accesses, unproven) = on_emulator::accesses(kernel, &run.report);
    let not_taken = outcome::not_taken(&accesses, &kernel.alternatives());
    let device = "emulator".to_owned();
    let outcome = outcome(kernel, bound, (Ran::Emulator, device, why), run.buffers);
    let buffers = outcome.buffers.into_iter().zip(run.addresses);
    Ok(Outcome {
        buffers: buffers
            .map(|(buffer, address)| Content { address, ..buffer })
            .collect(),
        report: (!bound.steps.is_empty()).then_some(run.report),
        accesses,
        not_taken,
        unproven,
        miscounted: run.miscounted,
        ..outcome
    })
}

#[cfg(not(feature = "emulator"))]
fn on_emulator<K: Runnable + ?Sized>(
    _: &K,
    _: &Bound<'_>,
    _: String,
    _: &RunOptions,
) -> Result<Outcome, RunError> {
    Err(RunError::NotBuilt {
        feature: "emulator",
    })
}

#[cfg(feature = "gpu")]
fn on_gpu<K: Runnable + ?Sized>(
    kernel: &K,
    bound: &Bound<'_>,
    gpu: &Gpu,
    why: String,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    let run = on_gpu::launch(gpu, (ptx(kernel)?, kernel.entry()), bound, options.repeats)?;
    let touched = bound.buffers.iter().zip(&run.guards_untouched);
    let touched = touched.filter(|(_, untouched)| !**untouched);
    let launched = !bound.steps.is_empty();
    let device = gpu.info().name.clone();
    Ok(Outcome {
        time_ms: launched.then_some(run.median_ms.unwrap_or(run.time_ms)),
        registers: Some(run.registers),
        guards_touched: touched.map(|((name, _), _)| name.clone()).collect(),
        ..outcome(kernel, bound, (Ran::Gpu, device, why), run.buffers)
    })
}

#[cfg(feature = "opencl")]
fn on_opencl<K: Runnable + ?Sized>(
    kernel: &K,
    bound: &Bound<'_>,
    device: &ClDevice,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    let run = on_opencl::launch(device, &kernel.opencl()?, bound, options.repeats)?;
    let ran = (Ran::OpenCl, device.name().to_owned(), "as asked".to_owned());
    Ok(Outcome {
        time_ms: (!bound.steps.is_empty()).then_some(run.time_ms),
        guards_touched: run.guards_touched,
        ..outcome(kernel, bound, ran, run.buffers)
    })
}

/// What is known of a run on any device.
fn outcome<K: Runnable + ?Sized>(
    kernel: &K,
    bound: &Bound<'_>,
    (ran, device, why): (Ran, String, String),
    after: Vec<Vec<u8>>,
) -> Outcome {
    let changed = bound
        .buffers
        .iter()
        .zip(&after)
        .filter(|((_, before), after)| {
            before.role == Role::Input && before.content.as_deref() != Some(after.as_slice())
        });
    let inputs_changed = changed.map(|((name, _), _)| name.clone()).collect();
    let counted = |proof| CountedAccess {
        proof,
        wavefronts: None,
        all_lanes: false,
    };
    Outcome {
        kernel: kernel.entry().to_owned(),
        ran,
        device,
        why,
        launches: bound.steps.len(),
        time_ms: None,
        registers: None,
        #[cfg(feature = "emulator")]
        report: None,
        accesses: kernel.accesses().into_iter().map(counted).collect(),
        not_taken: Vec::new(),
        unproven: Vec::new(),
        guards_touched: Vec::new(),
        inputs_changed,
        miscounted: Vec::new(),
        buffers: bound
            .buffers
            .iter()
            .zip(after)
            .map(|((name, buffer), bytes)| Content {
                name: name.clone(),
                element: buffer.element,
                bytes,
                address: 0,
            })
            .collect(),
    }
}
