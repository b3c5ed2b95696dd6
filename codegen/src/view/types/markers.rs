//! Elements, spaces and layouts of tiles as types, and what may meet what.

use std::fmt::Debug;
use std::marker::PhantomData;

use layout_core::space;
use layout_core::typed::{Compose, Layout, StaticTuple, Swizzle};

use crate::ir::Element;
use crate::view::{Fragment, View};

/// An element type that buffers have.
///
/// ```
/// use layout_codegen::ir::Element;
/// use layout_codegen::view::types::{ViewElement, S8};
/// use layout_core::space::F16;
///
/// assert_eq!((F16::ELEMENT, S8::ELEMENT), (Element::F16, Element::S8));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type of a buffer",
    note = "use `space::F16`, `Bf16`, `F32`, `F64`, `S32`, or `view::types::S8`, `E4m3`, `E5m2`"
)]
pub trait ViewElement {
    /// The element as a value.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    /// use layout_codegen::view::types::ViewElement;
    /// use layout_core::space::F64;
    ///
    /// assert_eq!(F64::ELEMENT, Element::F64);
    /// ```
    const ELEMENT: Element;
}

/// Declares element types.
macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n```\nuse layout_codegen::ir::Element;\nuse layout_codegen::view::types::{", stringify!($name), ", ViewElement};")]
            #[doc = concat!("assert_eq!(", stringify!($name), "::ELEMENT, Element::", stringify!($name), ");\n```")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name {}
            impl ViewElement for $name {
                const ELEMENT: Element = Element::$name;
            }
        )*
    };
}

elements! {
    /// 8-bit integers.
    S8;
    /// 8-bit floats with 4 bits of exponent.
    E4m3;
    /// 8-bit floats with 5 bits of exponent.
    E5m2;
}

/// Elements that the algebra has a type for.
macro_rules! known_elements {
    ($($name:ident)*) => {
        $(impl ViewElement for space::$name {
            const ELEMENT: Element = Element::$name;
        })*
    };
}

known_elements! { F16 Bf16 F32 F64 S32 }

/// Where a tile is.
///
/// ```
/// use layout_codegen::view::types::{Global, Memory, Registers, Shared};
///
/// assert_eq!([Global::NAME, Shared::NAME, Registers::NAME], ["global memory", "shared memory", "registers"]);
/// ```
pub trait Memory {
    /// What a tile there is without its types.
    type Tile: Clone + Debug;
    /// Its name in messages.
    ///
    /// ```
    /// use layout_codegen::view::types::{Memory, Shared};
    ///
    /// assert_eq!(Shared::NAME, "shared memory");
    /// ```
    const NAME: &'static str;
}

/// Declares spaces.
macro_rules! memories {
    ($($(#[$doc:meta])* $name:ident, $tile:ty, $text:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n```\nuse layout_codegen::view::types::{Memory, ", stringify!($name), "};")]
            #[doc = concat!("assert_eq!(", stringify!($name), "::NAME, \"", $text, "\");\n```")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name {}
            impl Memory for $name {
                type Tile = $tile;
                const NAME: &'static str = $text;
            }
        )*
    };
}

memories! {
    /// Global memory.
    Global, View, "global memory";
    /// Shared memory.
    Shared, View, "shared memory";
    /// The registers of threads.
    Registers, Fragment, "registers";
}

/// Memory that is tiled and partitioned: global or shared.
///
/// ```
/// use layout_codegen::view::types::{InMemory, Global, Shared};
///
/// fn in_memory<S: InMemory>() {}
/// in_memory::<Global>();
/// in_memory::<Shared>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no memory with addresses",
    note = "tiles of global and shared memory are partitioned and copied; load what a thread has to registers, and store it from there"
)]
pub trait InMemory: Memory<Tile = View> {}

impl InMemory for Global {}
impl InMemory for Shared {}

/// `cp.async` copies from `From` to `Self`: from global to shared memory.
///
/// ```
/// use layout_codegen::view::types::{FilledByAsync, Global, Shared};
///
/// fn copies<A, B: FilledByAsync<A>>() {}
/// copies::<Global, Shared>();
/// ```
#[diagnostic::on_unimplemented(
    message = "an asynchronous copy (`cp.async`) does not go from `{From}` to `{Self}`",
    label = "an asynchronous copy goes from global to shared memory",
    note = "`copy_to` copies between any two memories, by loads and stores"
)]
pub trait FilledByAsync<From> {}

impl FilledByAsync<Global> for Shared {}

/// `ldmatrix` reads `Self`: shared memory.
///
/// ```
/// use layout_codegen::view::types::{ReadByLdmatrix, Shared};
///
/// fn reads<S: ReadByLdmatrix>() {}
/// reads::<Shared>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`ldmatrix` does not read `{Self}`",
    label = "`ldmatrix` reads shared memory",
    note = "copy the tile to shared memory first, or load an operand by `partition_a(…)` and `load`"
)]
pub trait ReadByLdmatrix: InMemory {}

impl ReadByLdmatrix for Shared {}

/// A tile of the extents `Self` takes one of the extents `From`: they are the same.
///
/// ```
/// use layout_codegen::view::types::SameShape;
/// use layout_core::typed::C;
///
/// fn same<A: SameShape<B>, B>() {}
/// same::<(C<64>, C<32>), (C<64>, C<32>)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a tile of `{From}` cannot be copied to a tile of `{Self}`",
    label = "the shapes do not meet",
    note = "both tiles need the same extents in the same order; `transposed()` reverses the modes of a view"
)]
pub trait SameShape<From> {}

impl<S: StaticTuple> SameShape<S> for S {}

/// A buffer of elements `Self` takes elements `From`: they are the same.
///
/// ```
/// use layout_codegen::view::types::SameElement;
/// use layout_core::space::F16;
///
/// fn same<A: SameElement<B>, B>() {}
/// same::<F16, F16>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a copy from elements `{From}` to elements `{Self}` would convert",
    label = "the elements do not meet",
    note = "load the tile to registers, convert it (`convert`) and store it"
)]
pub trait SameElement<From> {}

impl<E: ViewElement> SameElement<E> for E {}

/// The layout of a tile, as far as it is a constant: its extents at least.
///
/// ```
/// use layout_codegen::view::types::{Extents, TileLayout};
/// use layout_core::typed::{C, Compose, Layout, StaticTuple, Swizzle};
///
/// type Rows = Compose<Swizzle<3, 3, 3>, Layout<(C<8>, C<64>), (C<64>, C<1>)>>;
/// assert_eq!(<Rows as TileLayout>::Shape::TUPLE.to_string(), "(8,64)");
/// assert_eq!(<Extents<(C<8>, C<64>)> as TileLayout>::Shape::TUPLE.to_string(), "(8,64)");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no layout of a typed view",
    note = "use `Extents<(C<64>, C<32>)>` where only the extents are constants, `typed::Layout<Shape, Stride>`, or `Compose<Swizzle<B, M, S>, Layout<…>>`"
)]
pub trait TileLayout {
    /// The extents.
    type Shape: StaticTuple;
}

/// A tile of which only the extents are constants: its strides are those of a matrix in global memory, or it is in registers.
///
/// ```
/// use layout_codegen::view::types::{Extents, Registers, TypedView};
/// use layout_core::space::F32;
/// use layout_core::typed::C;
///
/// type Sums = TypedView<F32, Registers, Extents<(C<64>, C<64>)>>;
/// # fn takes(_: &Sums) {}
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Extents<Shape>(PhantomData<Shape>);

impl<Shape: StaticTuple> TileLayout for Extents<Shape> {
    type Shape = Shape;
}

impl<Shape: StaticTuple, Stride: StaticTuple> TileLayout for Layout<Shape, Stride> {
    type Shape = Shape;
}

impl<const B: u32, const M: u32, const S: i32, L: TileLayout> TileLayout
    for Compose<Swizzle<B, M, S>, L>
{
    type Shape = L::Shape;
}
