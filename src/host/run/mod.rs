//! One call runs any kernel, on the emulator or on a GPU.
//!
//! ```text
//! Runnable: text, parameters, launches ─┐
//!                                       ├─▶ bind: names, types, ranges, sizes ─▶ emulator | GPU ─▶ Outcome
//! arguments: (name, Arg), in any order ─┘
//! ```
//!
//! A kernel says what it takes ([`Runnable`]); the arguments are typed buffers and scalars, matched by name ([`Arg`]). What does not go together
//! is one error before anything runs. Buffers lie between guard zones: the emulator reports every access outside, and on a GPU a write
//! outside shows in the bytes around. The [`Outcome`] holds the buffers and what was seen, and asserts for tests.

pub(super) mod arg;
pub(super) mod bind;
mod compiled;
mod element;
mod error;
mod gemm;
#[cfg(feature = "emulator")]
pub(super) mod on_emulator;
#[cfg(feature = "gpu")]
pub(super) mod on_gpu;
#[cfg(feature = "opencl")]
mod on_opencl;
mod outcome;
mod proven;
mod ptx_kernel;
mod runnable;
#[cfg(feature = "emulator")]
mod stores;

#[cfg(feature = "gpu")]
use std::sync::Mutex;

#[cfg(feature = "emulator")]
use ptx_emulator::Options;
#[cfg(feature = "gpu")]
use tilewright_gpu::{Gpu, GpuError};

pub use arg::{Arg, Buffer, Role, Scalar};
pub use element::{BufferElement, BufferType};
pub use error::{ArgError, RunError};
pub use gemm::GemmKernel;
#[cfg(feature = "opencl")]
pub use on_opencl::run_on_opencl;
pub use outcome::{CountedAccess, Outcome, OutcomeError, Ran};
pub use ptx_kernel::PtxKernel;
pub use runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg, Stores};

use self::bind::{Bound, bind};
use self::outcome::Content;

/// Where to run.
///
/// ```
/// use tilewright::host::{Arg, On, PtxKernel, Ran, run};
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
///     .visible .entry seven(.param .u64 out) {\n\
///         .reg .b64 %d<1>; .reg .b32 %r<1>;\n\
///         ld.param.u64 %d0, [out]; mov.u32 %r0, 7; st.global.u32 [%d0], %r0; ret;\n\
///     }\n";
/// let seven = PtxKernel::new(text, "seven")?.block([1, 1, 1]);
/// let outcome = run(&seven, On::Auto, [("out", Arg::output::<u32>(1))])?;
/// // `there is a GPU`, or why there is none.
/// println!("on {}: {}", outcome.device, outcome.why);
/// let outcome = run(&seven, On::Emulator, [("out", Arg::output::<u32>(1))])?;
/// assert_eq!((outcome.ran, outcome.why.as_str()), (Ran::Emulator, "as asked"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum On {
    /// On the first GPU if there is one, else on the emulator; the outcome says which and why.
    #[default]
    Auto,
    /// On the first GPU.
    Gpu,
    /// On the emulator.
    Emulator,
}

/// How to run.
///
/// ```
/// use tilewright::host::RunOptions;
///
/// let mut options = RunOptions { repeats: 20, ..RunOptions::default() };
/// // A kernel whose blocks communicate through global memory.
/// options.emulator.global_races = false;
/// // Lanes of a warp count as unordered between `bar.warp.sync`s.
/// options.emulator.lane_races = true;
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "emulator"), derive(Default))]
pub struct RunOptions {
    /// What the emulator looks for. By default races between blocks and reads of global memory that nobody wrote are among it, which `tilewright run`
    /// reports with `--also global-races,undefined-global`; missing `bar.warp.sync` ([`Options::lane_races`], `--also lane-races`) is not, since a kernel
    /// that uses shared memory runs two to four times as long with it.
    #[cfg(feature = "emulator")]
    pub emulator: Options,
    /// The GPU to run on; by default the first, which stays open until the program ends.
    #[cfg(feature = "gpu")]
    pub gpu: Option<Gpu>,
    /// Further runs on a GPU, of which [`Outcome::time_ms`] is the median; with 0 it is the time of the only one.
    pub repeats: usize,
}

#[cfg(feature = "emulator")]
impl Default for RunOptions {
    fn default() -> Self {
        Self {
            emulator: Options {
                global_races: true,
                undefined_global: true,
                ..Options::default()
            },
            #[cfg(feature = "gpu")]
            gpu: None,
            repeats: 0,
        }
    }
}

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
    match (on, device(on, options)?) {
        #[cfg(feature = "gpu")]
        (_, Device::Gpu(gpu, why)) => on_gpu(kernel, &bound, &gpu, why, options),
        (_, Device::Emulator(why)) => on_emulator(kernel, &bound, why, options),
    }
}

/// The device that was chosen, with the reason.
enum Device {
    #[cfg(feature = "gpu")]
    Gpu(Gpu, String),
    Emulator(String),
}

#[cfg(feature = "gpu")]
fn device(on: On, options: &RunOptions) -> Result<Device, RunError> {
    let asked = "as asked".to_owned();
    match (on, options.gpu.clone().map_or_else(first_gpu, Ok)) {
        (On::Emulator, _) => Ok(Device::Emulator(asked)),
        (On::Gpu, Ok(gpu)) => Ok(Device::Gpu(gpu, asked)),
        (On::Auto, Ok(gpu)) => Ok(Device::Gpu(gpu, "there is a GPU".to_owned())),
        (On::Auto, Err(error)) if error.means_no_gpu() && cfg!(feature = "emulator") => {
            Ok(Device::Emulator(error.to_string()))
        }
        (_, Err(error)) => Err(error.into()),
    }
}

#[cfg(not(feature = "gpu"))]
fn device(on: On, _: &RunOptions) -> Result<Device, RunError> {
    match on {
        On::Emulator => Ok(Device::Emulator("as asked".to_owned())),
        On::Auto => Ok(Device::Emulator(
            "this build has no GPU support (feature `gpu`)".to_owned(),
        )),
        On::Gpu => Err(RunError::NotBuilt { feature: "gpu" }),
    }
}

/// The first GPU, opened once: closing the last handle would destroy the context, and opening the next make a new one.
#[cfg(feature = "gpu")]
fn first_gpu() -> Result<Gpu, GpuError> {
    static FIRST: Mutex<Option<Gpu>> = Mutex::new(None);
    let mut first = FIRST
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(gpu) = &*first {
        return Ok(gpu.clone());
    }
    let gpu = Gpu::open(0)?;
    *first = Some(gpu.clone());
    Ok(gpu)
}

#[cfg(feature = "emulator")]
fn on_emulator<K: Runnable + ?Sized>(
    kernel: &K,
    bound: &Bound<'_>,
    why: String,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    let run = on_emulator::emulate(kernel.ptx(), bound, &options.emulator)?;
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
    let run = on_gpu::launch(gpu, (kernel.ptx(), kernel.entry()), bound, options.repeats)?;
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
