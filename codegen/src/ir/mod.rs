//! The kernel representation: instructions over typed values, in nested regions.
//!
//! ```text
//! Kernel (builder) ──finish──▶ Entry (instructions, regions, views) ──▶ prove | print
//! ```
//!
//! A [`Kernel`] is written from the top down while it grows in several places at once: a value that is the same for the whole kernel is
//! computed at its entry, one that changes with a loop at the top of that loop's body, wherever it was asked for. An
//! address cannot be written by hand: it is made from an index expression, which comes from a layout.
//!
//! Its author sees neither registers nor instructions. There are *index expressions* ([`Expr`](crate::index::Expr): coordinates, sizes), typed *values*
//! ([`value`](crate::value)), *variables*, which alone are assigned, and *views* of memory and of registers ([`view`](crate::view)). Branches and loops are
//! closures, so that none stays open. What types cannot exclude is recorded while the kernel is written, and [`Kernel::build`] refuses the kernel for it: a value of another kernel or of a
//! loop that has ended, an invalid name, a size that its parameter cannot hold.
//!
//! What cannot be written at this level: registers, forged variables, and values of two types in one operation. Registers and single instructions have a level of their
//! own, [`instructions`], whose traits are imported on purpose.
//!
//! ```compile_fail
//! use layout_codegen::ir::Reg;
//! ```
//!
//! ```compile_fail
//! let mut k = layout_codegen::ir::Kernel::new("k", 32);
//! k.pool.var("tid.x", 0, 1, 0);
//! ```
//!
//! ```compile_fail
//! use layout_codegen::value::{F32, S32};
//!
//! let mut k = layout_codegen::ir::Kernel::new("k", 32);
//! let (x, i): (F32, S32) = (k.argument("x"), k.argument("i"));
//! let _ = x.add(&mut k, i);
//! ```

mod address;
mod assumption;
mod bulk_store;
mod element;
mod entry;
mod hopper;
mod inst;
pub mod instructions;
mod kernel;
mod meaning;
mod node;
mod param;
mod place;
mod value;

pub(crate) use address::Address;
pub use address::Space;
pub use assumption::AssumptionError;
pub(crate) use assumption::{Assumption, Elements, Stated, checked};
pub(crate) use bulk_store::BulkStore;
pub use element::Element;
pub use entry::Entry;
pub(crate) use entry::{DealOrder, Raster};
pub(crate) use hopper::{
    DESCRIPTOR_BITS, Factor, Hopper, Matrix, OrderArrival, Remote, Ring, Side, StageUse, TensorMap,
    last_shared_address,
};
pub use inst::{Axis, Rounding, Shuffle};
pub(crate) use inst::{Binary, Cache, Inst, Metadata, Special, Statement, Unary, class_of};
pub use kernel::Kernel;
pub(crate) use kernel::{LoopHandle, MapHandle, Origin, RingHandle, Strides};
pub(crate) use meaning::Meaning;
pub(crate) use node::{Comment, Counts, If, Line, Loop, LoopEnd, Node, RoleRegion, without_lines};
pub use param::{Param, ParamKind};
pub(crate) use place::{Arrangement, Buffer, Extent, Place, Role, Stride};
pub use value::Cmp;
pub(crate) use value::{Class, Logic, Pred, Reg, Src, Type};
