//! Index functions for other people's programs: PTX, Rust, CUDA C, OpenCL C.
//!
//! All print one straight-line [`Program`], which the same rules and the same instruction selection made that serve the kernels;
//! so they agree by construction on everything but spelling, and the tests check the spelling by running each.
//!
//! ```
//! use layout_codegen::index::{function, IndexSpec, Target};
//! let spec = IndexSpec::parse("offset", "(32,32):(33,1)").unwrap().named(&["row", "col"]);
//! let rust = function(&spec, Target::Rust).unwrap();
//! assert!(rust.contains("row * 33 + col"), "{rust}");
//! let ptx = function(&spec, Target::Ptx).unwrap();
//! assert!(ptx.contains("mad.lo.s32 %offset, %row, 33, %col;"), "{ptx}");
//! ```

mod c;
mod program;
mod ptx;
mod rust;
#[cfg(feature = "tokens")]
mod tokens;

use std::fmt;

pub use program::{Argument, Program, Statement};
#[cfg(feature = "kernels")]
pub(crate) use ptx::mnemonic;
#[cfg(feature = "tokens")]
pub use tokens::{item, wrapped_item};

use super::expr::{Expr, Pool};
use super::spec::{IndexError, IndexSpec, Parameter};
use crate::index::code::Ty;

/// A language that index functions are written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A block of PTX: reads the registers `%name` of its parameters, writes `%name` of the function. The registers are the
    /// surrounding text's: `.b32` for `u32` and `i32`, `.b64` for `u64` and `i64`.
    Ptx,
    /// A `const fn` of stable Rust, without `std`.
    Rust,
    /// A `__host__ __device__ __forceinline__` function of CUDA C and C++.
    Cuda,
    /// A function of OpenCL C.
    OpenCl,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 4] = [Target::Ptx, Target::Rust, Target::Cuda, Target::OpenCl];

    /// Its name, as `--target` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Rust => "rust",
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        }
    }

    /// The target of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The source text of `spec`'s function in `target`, with its layout and ranges as its comment.
///
/// # Errors
///
/// As [`IndexSpec::lower`], and names that the target reserves.
pub fn function(spec: &IndexSpec, target: Target) -> Result<String, IndexError> {
    program(spec)?.text(target)
}

/// The straight-line code of `spec`.
///
/// # Errors
///
/// As [`IndexSpec::lower`].
pub fn program(spec: &IndexSpec) -> Result<Program, IndexError> {
    let mut lowered = spec.lower()?;
    let ranges = |p: &Parameter| match p.lo {
        0 if p.hi < i64::MAX => format!("`{}` in 0..{}", p.name, p.hi + 1),
        lo => format!("`{}` in {lo}..={}", p.name, p.hi),
    };
    let given: Vec<_> = lowered.parameters.iter().map(ranges).collect();
    let about = vec![
        format!("The offset of `{}`", spec.layout),
        format!(
            "at {}: from {} to {}.",
            given.join(", "),
            lowered.range.0,
            lowered.range.1
        ),
    ];
    Ok(Program::new(
        &mut lowered.pool,
        lowered.index,
        &spec.name,
        about,
        lowered.parameters,
        lowered.ty,
    ))
}

/// The straight-line code of any expression whose variables are among `parameters`: what is more than one layout, such as a
/// division by a [`RunTimeDivisor`](super::RunTimeDivisor).
///
/// # Errors
///
/// [`IndexError::Unknown`] for a variable that is no parameter, [`IndexError::DoesNotFit`] for values that the result's type does not
/// hold.
pub fn program_of(
    pool: &mut Pool,
    e: Expr,
    name: &str,
    about: &str,
    parameters: Vec<Parameter>,
    ty: Ty,
) -> Result<Program, IndexError> {
    for variable in pool.variables(e) {
        if parameters.iter().all(|p| p.name != variable) {
            return Err(IndexError::Unknown {
                name: variable,
                known: parameters.into_iter().map(|p| p.name).collect(),
            });
        }
    }
    let f = pool.facts(e);
    if !super::spec::holds(ty, f.lo, f.hi) {
        return Err(IndexError::DoesNotFit {
            name: name.to_owned(),
            ty,
            lo: f.lo,
            hi: f.hi,
        });
    }
    let about = about.lines().map(str::to_owned).collect();
    Ok(Program::new(pool, e, name, about, parameters, ty))
}
