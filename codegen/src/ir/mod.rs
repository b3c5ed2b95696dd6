//! The kernel representation: instructions over typed values, in nested regions.
//!
//! ```text
//! Kernel (builder) ──finish──▶ Entry (instructions, regions, views) ──▶ prove | print
//! ```
//!
//! A [`Kernel`] is written from the top down while it grows in several places at once: a value that is the same for the whole kernel is
//! computed at its entry, one that changes with a loop at the top of that loop's body, wherever it was asked for. An
//! [`Address`] cannot be written by hand: it is made from an index expression, which comes from a layout.

mod address;
mod assumption;
mod bulk_store;
mod element;
mod entry;
mod hopper;
mod inst;
mod kernel;
mod meaning;
mod node;
mod param;
mod place;
mod value;

pub use address::{Address, Space};
pub(crate) use assumption::checked;
pub use assumption::{Assumption, AssumptionError};
pub use bulk_store::BulkStore;
pub use element::Element;
pub use entry::{Deal, Entry, Shared, TileAxis, Tiling};
pub(crate) use hopper::{DESCRIPTOR_BITS, last_shared_address};
pub use hopper::{Factor, Handover, Hopper, Matrix, Ring, Side, StageUse, TensorMap};
pub(crate) use inst::class_of;
pub use inst::{Axis, Binary, Cache, Inst, Rounding, Shuffle, Special, Statement, Unary};
pub use kernel::{Kernel, LoopHandle};
pub(crate) use kernel::{MapHandle, RingHandle, Strides};
pub use meaning::Meaning;
pub use node::{Counts, If, Loop, LoopEnd, Node, RoleRegion};
pub use param::{Param, ParamKind};
pub use place::{Arrangement, Buffer, Extent, Place, Role, Stride};
pub use value::{Class, Cmp, Logic, Pred, Reg, Src, Type};
