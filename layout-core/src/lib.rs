//! The layout algebra of Tilewright.
//!
//! A [`Layout`] is a function from coordinates to offsets, written as a nested shape and strides with the same
//! parentheses: `(4,(2,2)):(2,(1,8))`. This crate composes such functions, cuts them into tiles, multiplies and inverts them,
//! exactly: no operation returns a wrong layout, and none refuses one that exists.
//!
//! ```
//! use layout_core::{Layout, composition, expect, expect_parse};
//!
//! // A padded 4 × 6 matrix, and the first two rows of every second column.
//! const MATRIX: Layout = expect_parse(Layout::parse("(4,6):(1,10)"));
//! const PART: Layout = expect_parse(Layout::parse("(2,3):(1,8)"));
//! const R: Layout = expect(composition(&MATRIX, &PART));
//! assert_eq!(R.to_string(), "(2,3):(1,20)");
//! assert_eq!(R.at(&[1, 2]), MATRIX.index(PART.at(&[1, 2])));
//! ```
//!
//! Everything is `Copy`, of fixed capacity ([`MAX_MODES`] modes, [`MAX_DEPTH`] levels), needs neither `std` nor `alloc`, and is a
//! `const fn`: the same code runs at run time, in constants and in macros. Errors ([`LayoutError`]) carry the numbers, and [`expect`] shows
//! them in the compiler's message when a constant fails. Nothing panics on input, but for [`Layout::at`] and
//! [`Swizzled::at`] with another number of coordinates than modes, which index like an array: [`Layout::at_coord`] takes coordinates from
//! outside and returns an error.
//!
//! | what | where |
//! |---|---|
//! | tuples | [`IntTuple`], [`congruent`], [`compatible`], [`ceil_div`], [`shape_div`] |
//! | coordinates | [`crd2idx`], [`idx2crd`], [`crd2crd`], [`coordinates`](coordinates()), [`Slicer`], [`slice`](slice()), [`dice`] |
//! | construction | [`Layout::compact`], [`make_ordered_layout`], [`make_layout_like`], [`CoordLayout`] |
//! | layouts | [`coalesce`](coalesce()), [`composition`](composition()), [`complement`](complement()), [`right_inverse`], [`left_inverse`] |
//! | tiles | [`logical_divide`] and its kin ([`Divided`]), [`logical_product`], [`blocked_product`], [`tile_to_shape`], [`Tiler`] |
//! | swizzles | [`Swizzle`], [`Swizzled`] (`Sw o offset o L`), [`upcast`], [`downcast`], [`recast`](recast()) |
//! | strides by name | [`Affine`]; evaluation in any arithmetic: [`Layout::index_with`], [`IndexInt`] |
//! | properties | [`is_injective`], [`is_bijective`], [`is_surjective_onto`], [`is_compact`], [`equal_as_functions`] |
//!
//! `docs/algebra.md` explains the operations by examples.
#![no_std]
#![forbid(unsafe_code)]

#[doc(hidden)]
#[path = "macro_support.rs"]
pub mod __private;
mod affine;
pub mod atoms;
pub mod banks;
mod coalesce;
mod complement;
mod composed;
mod composition;
mod construct;
mod coordinates;
pub mod derive;
mod divide;
mod dynamic;
mod error;
pub mod f2;
mod identity;
mod int_tuple;
mod inverse;
mod layout;
mod message;
mod modes;
mod parameter;
mod parse;
pub mod partition;
mod product;
mod profile;
pub mod proof;
mod properties;
mod recast;
mod relations;
mod search;
mod slice;
pub mod space;
mod swizzle;
mod swizzled;
pub mod typed;
mod vectorize;

pub use affine::Affine;
pub use coalesce::{coalesce, coalesce_by_profile, filter, filter_zeros};
pub use complement::complement;
pub use composed::{
    SwizzledInverse, composition_by_mode_swizzled, composition_swizzled, flat_divide_swizzled,
    left_inverse_swizzled, logical_divide_swizzled, preimage_swizzled, right_inverse_swizzled,
    tiled_divide_swizzled, zipped_divide_swizzled,
};
pub use composition::{Tiler, composition, composition_by_mode, composition_strict};
pub use construct::{make_layout_like, make_ordered_layout};
pub use coordinates::{Coordinates, coordinates, crd2crd, crd2idx, idx2crd, linear};
pub use divide::{Divided, flat_divide, logical_divide, tiled_divide, zipped_divide};
pub use dynamic::{IndexInt, Lanes};
pub use error::{LayoutError, expect};
pub use identity::{CoordLayout, MAX_AXES, coshape, make_identity_layout};
pub use int_tuple::IntTuple;
pub use inverse::{left_inverse, nullspace, preimage, right_inverse};
pub use layout::Layout;
pub use message::Message;
pub use modes::SEARCH_LIMIT;
pub use parameter::{MAX_PARAMETERS, Parameter};
pub use parse::{ParseError, ParseErrorKind, expect_parse};
pub use partition::{
    Operand, Partitioned, ThreadCopy, ThreadMma, TiledCopy, TiledMma, local_partition, local_tile,
    thread_partition,
};
pub use product::{
    blocked_product, flat_product, logical_product, raked_product, tile_to_shape,
    tile_to_shape_swizzled, tiled_product, zipped_product,
};
pub use profile::{MAX_DEPTH, MAX_MODES};
pub use properties::{
    equal_as_functions, equal_as_functions_swizzled, is_bijective, is_bijective_swizzled,
    is_compact, is_compact_swizzled, is_injective, is_injective_swizzled, is_surjective_onto,
    is_surjective_onto_swizzled,
};
pub use recast::{
    downcast, downcast_swizzle, downcast_swizzled, recast, recast_swizzled, upcast, upcast_swizzle,
    upcast_swizzled,
};
pub use relations::{
    ceil_div, colexicographic, compatible, congruent, elementwise_less, evenly_divides, flatten,
    lexicographic, product_each, shape_div, weakly_congruent,
};
pub use slice::{Slicer, dice, dice_tuple, slice, slice_swizzled, slice_tuple};
pub use swizzle::Swizzle;
pub use swizzled::Swizzled;
pub use vectorize::{
    domain_distribute, max_alignment, max_alignment_swizzled, max_common_layout, max_common_vector,
};
