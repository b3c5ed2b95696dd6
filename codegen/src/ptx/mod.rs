//! Writing PTX: registers, scopes, instructions, and memory operands that only the index compiler can make.
//!
//! A [`Kernel`] is written from the top down while the text grows in several places at once: a value that is the same for
//! the whole kernel is computed at its entry, one that changes with a loop at the top of that loop's body, wherever it was
//! asked for. An [`Address`] cannot be written by hand: it is made from an index expression, which comes from a layout.

mod address;
mod kernel;
mod text;

pub use address::{Address, Space};
pub use kernel::{Kernel, LoopHandle, Param, ParamKind, module};
pub use text::{Class, Pred, Reg};
pub(crate) use text::{class_of, mnemonic};
