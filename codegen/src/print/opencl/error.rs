//! Why a kernel has no OpenCL C form.

use std::fmt;

/// Why a kernel cannot be printed as OpenCL C: the kernel, what stands in the way, and what would be accepted.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::{Kernel, Shuffle};
/// use layout_codegen::print::opencl;
/// use layout_codegen::value::F32;
///
/// let mut k = Kernel::new("exchange", 32);
/// let three: F32 = 3.0.into();
/// let _ = three.shuffle(&mut k, Shuffle::Butterfly, 1);
/// let exchange = k.build(Arch(80))?;
/// let error = opencl::program(&[exchange.entry().clone()], &[]).unwrap_err();
/// assert_eq!((error.code(), error.kernel.as_str()), ("no_opencl_form", "exchange"));
/// assert!(error.to_string().contains("a warp shuffle"));
/// # Ok::<(), layout_codegen::prove::ProofError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenClError {
    /// The kernel.
    pub kernel: String,
    /// What OpenCL C does not have.
    pub what: String,
    /// What would be accepted.
    pub instead: &'static str,
}

impl OpenClError {
    /// The error's name in JSON.
    ///
    /// ```
    /// use layout_codegen::print::opencl::OpenClError;
    ///
    /// let error = OpenClError { kernel: "k".to_owned(), what: "mma".to_owned(), instead: "fma" };
    /// assert_eq!(error.code(), "no_opencl_form");
    /// ```
    pub fn code(&self) -> &'static str {
        "no_opencl_form"
    }
}

impl fmt::Display for OpenClError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel {} has no OpenCL C form, because it has {}: {}",
            self.kernel, self.what, self.instead
        )
    }
}

impl std::error::Error for OpenClError {}
