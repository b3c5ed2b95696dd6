//! Where a kernel runs, and how.

use std::fmt;
#[cfg(feature = "gpu")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "emulator")]
use ptx_emulator::Options;
#[cfg(feature = "gpu")]
use tilewright_gpu::Gpu;
#[cfg(feature = "opencl")]
use tilewright_gpu::opencl::ClDevice;

use super::error::RunError;

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
///
/// // PTX text is not OpenCL C.
/// assert!(run(&seven, On::OpenCl, [("out", Arg::output::<u32>(1))]).is_err());
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
    /// On the first OpenCL device, which compiles the kernel's OpenCL C ([`Runnable::opencl`](super::Runnable::opencl)); with the feature `opencl`.
    OpenCl,
}

/// Where a kernel ran.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ran {
    /// On the CPU, with the sanitizer.
    Emulator,
    /// On a GPU.
    Gpu,
    /// On an OpenCL device.
    OpenCl,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulator => "the emulator",
            Self::Gpu => "the GPU",
            Self::OpenCl => "the OpenCL device",
        })
    }
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
    /// The OpenCL device to run on; by default the first, which stays open until the program ends.
    #[cfg(feature = "opencl")]
    pub opencl: Option<ClDevice>,
    /// Further runs on a GPU or an OpenCL device, of which [`Outcome::time_ms`](super::Outcome::time_ms) is the median; with 0 it is the time of the only one.
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
            #[cfg(feature = "opencl")]
            opencl: None,
            repeats: 0,
        }
    }
}

/// The device that was chosen, with the reason if there was a choice.
pub(super) enum Device {
    #[cfg(feature = "gpu")]
    Gpu(Gpu, String),
    #[cfg(feature = "opencl")]
    OpenCl(ClDevice),
    Emulator(String),
}

impl RunOptions {
    /// Opens the device that a run with these options takes, and says which kind it is: what [`run_with`](super::run_with()) would find, before there are arguments.
    ///
    /// ```
    /// use tilewright::host::{On, Ran, RunOptions};
    ///
    /// assert_eq!(RunOptions::default().find(On::Emulator)?, Ran::Emulator);
    /// match RunOptions::default().find(On::OpenCl) {
    ///     Ok(ran) => assert_eq!(ran, Ran::OpenCl),
    ///     // There is no device, or the feature `opencl` is off.
    ///     Err(error) => assert!(["no_opencl_device", "not_built"].contains(&error.code()), "{error}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such device ([`RunError::means_no_device`]), or it cannot be opened.
    pub fn find(&self, on: On) -> Result<Ran, RunError> {
        Ok(match self.device(on)? {
            #[cfg(feature = "gpu")]
            Device::Gpu(..) => Ran::Gpu,
            #[cfg(feature = "opencl")]
            Device::OpenCl(_) => Ran::OpenCl,
            Device::Emulator(_) => Ran::Emulator,
        })
    }

    pub(super) fn device(&self, on: On) -> Result<Device, RunError> {
        match on {
            On::Emulator if !cfg!(feature = "emulator") => Err(RunError::NotBuilt {
                feature: "emulator",
            }),
            On::Emulator => Ok(Device::Emulator("as asked".to_owned())),
            On::Gpu => self.gpu("as asked"),
            On::OpenCl => self.opencl(),
            On::Auto => match self.gpu("there is a GPU") {
                Err(RunError::NotBuilt { feature }) => {
                    let why = format!("this build has no GPU support (feature `{feature}`)");
                    Ok(Device::Emulator(why))
                }
                Err(error) if error.means_no_device() && cfg!(feature = "emulator") => {
                    Ok(Device::Emulator(error.to_string()))
                }
                found => found,
            },
        }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self, why: &str) -> Result<Device, RunError> {
        static FIRST: Mutex<Option<Gpu>> = Mutex::new(None);
        let gpu = opened(self.gpu.as_ref(), &FIRST, || Gpu::open(0))?;
        Ok(Device::Gpu(gpu, why.to_owned()))
    }

    #[cfg(not(feature = "gpu"))]
    #[expect(clippy::unused_self)]
    fn gpu(&self, _: &str) -> Result<Device, RunError> {
        Err(RunError::NotBuilt { feature: "gpu" })
    }

    #[cfg(feature = "opencl")]
    fn opencl(&self) -> Result<Device, RunError> {
        static FIRST: Mutex<Option<ClDevice>> = Mutex::new(None);
        let device = opened(self.opencl.as_ref(), &FIRST, ClDevice::open)?;
        Ok(Device::OpenCl(device))
    }

    #[cfg(not(feature = "opencl"))]
    #[expect(clippy::unused_self)]
    fn opencl(&self) -> Result<Device, RunError> {
        Err(RunError::NotBuilt { feature: "opencl" })
    }
}

/// The given device, or the first, opened once: closing the last handle would destroy the context, and opening the next make a new one.
#[cfg(feature = "gpu")]
fn opened<D: Clone, E>(
    given: Option<&D>,
    first: &Mutex<Option<D>>,
    open: impl FnOnce() -> Result<D, E>,
) -> Result<D, E> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
    match &*first {
        Some(device) => Ok(device.clone()),
        None => Ok(first.insert(open()?).clone()),
    }
}
