//! The questions that people ask about layouts, as text, and their answers as text, JSON or pictures.
//!
//! The command `tilewright` and the page in the browser ask the same questions, so that what answers them is here and knows neither a
//! terminal nor a file: [`evaluate`] computes with layouts, [`picture`] draws them and the instructions that touch them, [`derivation`] finds
//! the shared-memory layout for a set of accesses, [`index_code`] writes index functions. A question that can't be answered is refused with
//! a [`Refusal`]: a stable code, a sentence, and the bytes of the text that it is about. Nothing here needs a clock, a thread or a file, which
//! the build for WebAssembly proves.
//!
//! ```
//! use tilewright_workbench::evaluate;
//!
//! let answer = evaluate("(4,(2,2)):(2,(1,8)) o 4:2")?;
//! assert_eq!(answer.to_string(), "(2,2):(4,1)");
//! assert_eq!(answer.to_json()["size"], 4);
//! let refusal = evaluate("(4,").expect_err("the tuple does not end");
//! assert_eq!((refusal.code(), refusal.span()), ("syntax", Some((3, 3))));
//! # Ok::<(), tilewright_workbench::Refusal>(())
//! ```

mod calculator;
pub mod derivation;
pub mod index_code;
pub mod ncu;
mod notation;
pub mod picture;
mod refusal;
mod value;

pub use notation::{NOTATIONS, Notation};
pub use refusal::Refusal;
pub use value::{Evaluated, evaluate, functions, too_long};

/// The longest expression that is looked at, in bytes.
pub const MAX_LENGTH: usize = calculator::MAX_LENGTH;
