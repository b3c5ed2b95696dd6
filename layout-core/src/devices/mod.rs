//! Devices as one more mode: which device holds which element of a matrix, and what must move when that changes.
//!
//! **What.** A [`Distribution`] is a layout from (device, local coordinates) to (row, column). Rows in blocks, columns, 2-D grids, cyclic and
//! block-cyclic forms and replicas are all strides of that one layout; terms of a sum ([`Distribution::summed`]) are replicas that are to be added. A
//! [`Redistribution`] is derived from two distributions: the pieces that move between devices, their kind ([`Movement`]: an all-gather, a
//! reduce-scatter, …), what each link carries, and the proof that every element arrives exactly once. A [`Rotation`] is the order in which
//! devices work through shards.
//!
//! **Why this way.** Libraries of distributed tensors have a fixed list of placements (shard of a dimension, replica, partial sum) and a table of
//! what moves between each two. Such a table has no entry for a block-cyclic grid. Here each leaf of the layout moves along one axis,
//! so that the elements of a device are a product of rows and columns, and everything follows from intersections of such products. Coverage
//! is proven on the strides alone, whatever the size of the matrix: sorted, each must be the product of the extents below it.
//!
//! **Worked example.** An 8×6 matrix on 2 devices, by rows, by cyclic rows and by columns:
//!
//! ```text
//! (2,(4,6)):(4@0,(1@0,1@1))   device 0 holds rows 0..4, device 1 rows 4..8
//! (2,(4,6)):(1@0,(2@0,1@1))   device 0 holds rows 0, 2, 4, 6
//! (2,(8,3)):(3@1,(1@0,1@1))   device 0 holds columns 0..3
//! ```
//!
//! From rows to columns device 0 keeps its rows 0..4 of columns 0..3, and sends those of columns 3..6:
//!
//! ```
//! use layout_core::devices::{Distribution, Movement, Redistribution};
//! let rows = Distribution::rows([8, 6], 2).unwrap();
//! let columns = Distribution::columns([8, 6], 2).unwrap();
//! let moved = Redistribution::derive(&rows, &columns).unwrap();
//! assert_eq!(moved.movement(), Movement::AllToAll);
//! assert_eq!(moved.link_elements(0, 1), 4 * 3);
//! let first = &moved.pieces()[1];
//! assert_eq!((first.from, first.to, first.shard.to_string().as_str()), (0, 1, "rows 0..4, columns 3..6"));
//! ```
//!
//! This module needs `alloc`: the feature `alloc` of `layout-core`, which the code generator turns on.

mod axis;
mod certificate;
mod distribution;
mod error;
mod movement;
mod product;
mod redistribution;
mod rotation;
mod runs;
mod shard;

pub use certificate::{Arrivals, Certificate};
pub use distribution::{Distribution, MAX_DEVICES, MAX_ELEMENTS, MAX_EXTENT, MAX_RUNS};
pub use error::{Busy, DistributionError, Place, Refusal};
pub use movement::Movement;
pub use redistribution::{Piece, Redistribution};
pub use rotation::Rotation;
pub use runs::Runs;
pub use shard::{Block, Shard};
