//! The layout algebra of Tilewright.
//!
//! A [`Layout`] is a function from coordinates to offsets, written as a nested shape and strides with the same
//! parentheses: `(4,(2,2)):(2,(1,8))`. This crate composes such functions, cuts them into tiles, multiplies and inverts them,
//! exactly: no operation returns a wrong layout, and none refuses one that exists.
//!
//! ```
//! use layout_core::{Layout, expect, expect_parse};
//!
//! // A padded 4 × 6 matrix, and the first two rows of every second column.
//! const MATRIX: Layout = expect_parse(Layout::parse("(4,6):(1,10)"));
//! const PART: Layout = expect_parse(Layout::parse("(2,3):(1,8)"));
//! const R: Layout = expect(MATRIX.compose(&PART));
//! assert_eq!(R.to_string(), "(2,3):(1,20)");
//! assert_eq!(R.at(&[1, 2]), MATRIX.index(PART.at(&[1, 2])));
//! ```
//!
//! Every kind of layout answers to the same methods: [`Layout`] (integer offsets), [`Affine`] (named strides) and
//! [`CoordLayout`] (coordinates as offsets) are one type, [`Strided`], and [`Swizzled`] puts a swizzle and an offset around
//! any of them. Whatever stands in a composition is a [`Function`], and [`Function::compose`] composes any two.
//!
//! Everything is `Copy`, of fixed capacity ([`MAX_MODES`] modes, [`MAX_DEPTH`] levels), needs neither `std` nor `alloc`, and is a
//! `const fn`: the same code runs at run time, in constants and in macros. Errors ([`LayoutError`]) carry the numbers, and [`expect`] shows
//! them in the compiler's message when a constant fails. Nothing panics on input, but for [`Layout::at`] and
//! [`Swizzled::at`] with another number of coordinates than modes, which index like an array: [`Layout::at_coord`] takes coordinates from
//! outside and returns an error.
//!
//! | what | where |
//! |---|---|
//! | tuples | [`IntTuple`], [`congruent`], [`compatible`], [`ceil_div`], [`shape_div`], [`inner_product`], [`round_up`] |
//! | coordinates | [`crd2idx`], [`idx2crd`], [`crd2crd`], [`coordinates`](coordinates()), [`Slicer`], [`Layout::slice`], [`Layout::dice`] |
//! | construction | [`Layout::compact`], [`make_ordered_layout`], [`Layout::compact_like`], [`CoordLayout::identity`] |
//! | modes | [`Layout::get`], [`Layout::group`], [`Layout::take`], [`Layout::select`], [`Layout::append`], [`Layout::zip`], … |
//! | layouts | [`Layout::coalesce`], [`Layout::compose`], [`Layout::complement`], [`Layout::right_inverse`], [`Layout::left_inverse`] |
//! | tiles | [`Layout::logical_divide`] and its kin ([`Divided`]), [`Layout::logical_product`], [`Layout::tile_to_shape`], [`Tiler`] |
//! | swizzles | [`Swizzle`], [`Swizzled`] (`Sw o offset o L`), [`Swizzled::recast`], [`Function`], [`Chain`] |
//! | evaluation in any arithmetic | [`Layout::index_with`], [`IndexInt`] |
//! | matrices over several devices (feature `alloc`) | `devices` |
//! | properties | [`Layout::is_injective`], [`Layout::is_bijective`], [`Layout::is_compact`], [`Layout::equal_as_functions`] |
//!
//! `docs/algebra.md` explains the operations by examples.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[doc(hidden)]
#[path = "macro_support.rs"]
pub mod __private;
mod affine;
mod arithmetic;
pub mod atoms;
pub mod banks;
mod basis;
mod chain;
mod coalesce;
mod complement;
mod composition;
mod construct;
mod coordinates;
mod coords;
pub mod derive;
mod descriptor;
#[cfg(feature = "alloc")]
pub mod devices;
mod divide;
mod dynamic;
mod error;
pub mod f2;
mod form;
mod function;
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
mod radix;
mod recast;
mod relations;
mod search;
mod slice;
pub mod space;
mod strided;
mod structure;
mod swizzle;
mod swizzled;
pub mod typed;
mod vectorize;

pub use affine::{Affine, SwizzledAffine};
pub use arithmetic::{elem_scale, inner_product, product_like, round_up, sum};
pub use chain::{Chain, MAX_STEPS, Step};
pub use composition::Tiler;
pub use construct::make_ordered_layout;
pub use coordinates::{Coordinates, coordinates, crd2crd, crd2idx, idx2crd, linear};
pub use coords::{CoordLayout, MAX_AXES, MovedCoords};
pub use descriptor::{DescriptorError, MatrixDescriptor, TensorBox};
pub use divide::Divided;
pub use dynamic::{IndexInt, Lanes};
pub use error::{LayoutError, expect};
pub use form::LinearForm;
pub use function::Function;
pub use int_tuple::IntTuple;
pub use layout::Layout;
pub use message::Message;
pub use modes::SEARCH_LIMIT;
pub use parameter::{MAX_PARAMETERS, Parameter};
pub use parse::{ParseError, ParseErrorKind, expect_parse};
pub use partition::{Operand, Partitioned, ThreadCopy, ThreadMma, TiledCopy, TiledMma};
pub use profile::{MAX_DEPTH, MAX_MODES};
pub use relations::{
    ceil_div, colexicographic, compatible, congruent, elementwise_less, evenly_divides,
    lexicographic, product_each, shape_div, weakly_congruent,
};
pub use slice::Slicer;
pub use strided::Strided;
pub use swizzle::Swizzle;
pub use swizzled::Swizzled;
pub use vectorize::{domain_distribute, domain_distribute_partial};
