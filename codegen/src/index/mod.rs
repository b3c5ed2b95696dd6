//! The index compiler: layouts to expressions to instructions.
//!
//! ```text
//! layout ──index──▶ expression ──rules──▶ normal form ──emit──▶ PTX | Rust | CUDA C
//! ```
//!
//! Expressions live in a [`Pool`], where equal values are one node. [`layout`] turns a layout and its coordinates into an
//! expression, the rules of `rules` keep it in normal form, and [`code`] writes instructions, each at the loop level where
//! its variables are known.

pub mod code;
mod expr;
mod fast_divisor;
pub mod layout;
mod rules;
mod spec;
pub mod targets;
#[cfg(test)]
mod tests;

#[cfg(feature = "kernels")]
pub(crate) use expr::PoolId;
pub use expr::{Expr, Facts, Level, Node, Pool};
pub use fast_divisor::{FAST_DIVISION_LIMIT, FastDivisor, RunTimeDivisor};
pub use spec::{Bound, Coordinate, IndexError, IndexLayout, IndexSpec, Lowered, Parameter, Stride};
pub use targets::{Target, function};
