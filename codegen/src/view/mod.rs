//! Views: the only way to memory.
//!
//! A [`View`] is a buffer seen from a coordinate: its space, its element, its layout (strides by name in global memory, a swizzled layout in
//! shared memory) and its extents. A view is moved ([`View::at`]), cut into tiles ([`View::tile`]), transposed ([`View::transposed`]) and shared
//! out among threads by a thread-value layout ([`View::partition`]); [`load_tile`](crate::ir::Kernel::load_tile), [`store_tile`](crate::ir::Kernel::store_tile) and
//! [`copy`](crate::ir::Kernel::copy) touch memory through it. The extents of a view of global memory give the predicates and the zeros outside, so that a kernel
//! takes any size.
//!
//! ```
//! use layout_codegen::ir::{Axis, Element, Kernel};
//! use layout_core::Layout;
//!
//! // y = x for vectors of any length, 4 elements a thread.
//! let mut k = Kernel::new("copy", 128);
//! let n = k.size("n", 1 << 30);
//! let x = k.input("x", Element::F32, &[n]);
//! let y = k.output("y", Element::F32, &[n]);
//! let block = k.tiles(Axis::X, n, 512)?;
//! let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
//! let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
//! let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
//! k.copy(&x, &y)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
pub(crate) mod choice;
pub(crate) mod element;
mod error;
mod fragment;
mod partition;
mod remote;
mod single;
mod stated;
#[cfg(test)]
mod tests;
mod tiled;
mod tma;
mod tma_store;
mod transfer;
pub mod types;
mod uses;
mod words;

pub use buffer::View;
pub use buffer::in_bytes;
pub use error::ViewError;
pub use fragment::{Combine, Fragment, Multiplicand, Packed};
pub use partition::Partition;
pub(crate) use tma::PERIOD;
pub use tma::panels;
pub use transfer::Values;
pub use uses::Use;
