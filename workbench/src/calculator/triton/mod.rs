//! Layouts as Triton prints them.
//!
//! Triton describes a tensor's elements by maps over F2 from hardware to tensor: a register of a lane of a warp, or an offset in shared
//! memory, goes to the coordinates of an element. Here the same maps are layouts:
//!
//! | Triton | here |
//! |---|---|
//! | `#ttg.blocked`, `#ttg.linear`, `#ttg.nvidia_mma` | `(register, lane, warp, block)` -> row-major number of the element |
//! | `#ttg.swizzled_shared`, `#ttg.nvmma_shared`, `#ttg.shared_linear` | `(row, column)` -> offset, in elements: Triton's map inverted |
//! | a `LinearLayout` as its `toString` prints it | one mode an input dimension -> row-major number |
//!
//! An encoding becomes a map with the shape of a tensor, which its type has: `tensor<64x32xf16, #ttg.blocked<{…}>>`,
//! `!ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{…}>>`. An encoding alone is taken for the smallest tensor that it covers once. A map that
//! is no swizzle of a layout becomes a bit matrix.
//!
//! ```text
//! #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>     Sw<3,3,3> o (8,64):(64,1)
//! ```

mod encode;
mod linear;
mod syntax;
mod write;

use super::{EvalError, Span, Value};

pub(crate) use syntax::extent;
#[allow(
    unused_imports,
    reason = "tests include the calculator without the notations"
)]
pub(crate) use write::{distributed, shared};

/// The value of a text of Triton's, which is at `span` of what the user wrote.
///
/// # Errors
///
/// Bad syntax, fields that are missing or unknown, encodings of other kinds, numbers that are no powers of two, several blocks.
pub(crate) fn read(text: &str, span: Span) -> Result<Value, EvalError> {
    let moved = |error: EvalError| EvalError {
        span: (error.span.0 + span.0, error.span.1 + span.0),
        ..error
    };
    let source = syntax::parse(text).map_err(moved)?;
    encode::value(&source).map_err(moved)
}
