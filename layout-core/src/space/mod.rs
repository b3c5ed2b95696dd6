//! Spaces: the domain and codomain of a map, as types.
//!
//! **What.** A layout is a function of integers. It does not say whether its offsets are elements or bytes, and its
//! coordinates lanes or rows; a [`Map<From, To>`] does. Composing maps whose spaces do not meet, or swizzling element
//! offsets with a swizzle of bytes, does not compile.
//!
//! **Why.** The field's libraries disagree on units: CuTe's shared-memory swizzles act on elements (`Sw<3,3,3>` for halves), TMA's
//! on bytes (`Sw<3,4,3>`). Both are the same pattern, and mixing them up is a bug that only bank conflicts show.
//!
//! ```
//! use layout_core::space::{Byte, Coord, Element, F16, Lane, Map, UnitSwizzle};
//! use layout_core::Swizzled;
//! // Which row a lane points at, and where rows of 64 halves lie.
//! let rows: Map<Lane, Coord> = Map::new(Swizzled::parse("16:1").unwrap());
//! let tile: Map<Coord, Element<F16>> = Map::new(Swizzled::parse("(16,64):(64,1)").unwrap());
//! let bytes: Map<Lane, Byte> = tile.compose(&rows).unwrap().to_bytes().unwrap();
//! let bytes = bytes.swizzle(UnitSwizzle::new(3, 4, 3).unwrap()).unwrap();
//! assert_eq!(bytes.layout().to_string(), "Sw<3,4,3> o 16:128");
//! ```
//!
//! Static maps do the same with types alone: [`Static`], [`Then`], [`SwizzleOf`].

mod map;
mod static_map;

pub(crate) use map::single;
pub use map::{At, Map, UnitSwizzle};
pub use static_map::{Static, StaticMap, SwizzleOf, Then};

use core::marker::PhantomData;

/// A space of integers that maps go between. Implement it for a marker type to add a space (a stage, a block of
/// a cluster).
///
/// ```
/// use layout_core::Layout;
/// use layout_core::space::{At, Map, Space, Thread};
/// /// The stages of a pipeline.
/// enum Stage {}
/// impl Space for Stage {
///     const NAME: &'static str = "stage";
/// }
/// let stage_of: Map<Thread, Stage> = Map::plain(Layout::parse("(32,4):(0,1)").unwrap());
/// assert_eq!(format!("{:?}", stage_of.apply(At::new(70))), "stage 2");
/// ```
pub trait Space {
    /// The space's name in messages.
    ///
    /// ```
    /// use layout_core::space::{Lane, Space};
    /// assert_eq!(Lane::NAME, "lane");
    /// ```
    const NAME: &'static str;
}

/// Declares marker types for spaces.
macro_rules! spaces {
    ($($(#[$doc:meta])* $name:ident, $text:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n```\nuse layout_core::space::{", stringify!($name), ", Space};")]
            #[doc = concat!("assert_eq!(", stringify!($name), "::NAME, \"", $text, "\");\n```")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name {}
            impl Space for $name {
                const NAME: &'static str = $text;
            }
        )*
    };
}

spaces! {
    /// Devices that share a matrix, 0 up.
    Device, "device";
    /// Threads of a block, 0 up.
    Thread, "thread";
    /// Lanes of a warp, 0 to 31.
    Lane, "lane";
    /// Values that a thread holds, in order of its registers.
    Value, "value";
    /// Coordinates of a tile, counted colexicographically (first axis fastest).
    Coord, "coordinate";
    /// Bytes of one memory.
    Byte, "byte";
    /// Banks of shared memory or of a register file.
    Bank, "bank";
    /// Registers of a thread, 32 bits each.
    Register, "register";
}

/// Elements of type `T` of one memory: offsets count whole elements.
///
/// ```
/// use layout_core::space::{At, Element, F16};
/// let third: At<Element<F16>> = At::new(3);
/// assert_eq!(format!("{third:?}"), "f16 element 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element<T>(PhantomData<T>);

impl<T: ElementType> Space for Element<T> {
    const NAME: &'static str = T::NAME;
}

impl<A: Space, B: Space> Space for (A, B) {
    const NAME: &'static str = "pair";
}

impl<A: Space, B: Space, D: Space> Space for (A, B, D) {
    const NAME: &'static str = "triple";
}

/// The element type of a memory.
///
/// ```
/// use layout_core::{Layout, space::{Element, ElementType, Lane, Map}};
/// /// Complex numbers of two `f32`.
/// enum C64 {}
/// impl ElementType for C64 {
///     const NAME: &'static str = "c64 element";
///     const BYTES: i64 = 8;
/// }
/// let elements: Map<Lane, Element<C64>> = Map::plain(Layout::parse("32:1").unwrap());
/// assert_eq!(elements.to_bytes().unwrap().layout().to_string(), "32:8");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    note = "use `space::F16`, `Bf16`, `F32`, `F64`, `B8`, …, or implement `ElementType` for a marker of your own"
)]
pub trait ElementType {
    /// The type's name in messages.
    ///
    /// ```
    /// use layout_core::space::{ElementType, F16};
    /// assert_eq!(F16::NAME, "f16 element");
    /// ```
    const NAME: &'static str;
    /// Its width in bytes.
    ///
    /// ```
    /// use layout_core::space::{B128, ElementType};
    /// assert_eq!(B128::BYTES, 16);
    /// ```
    const BYTES: i64;
}

/// Declares element types.
macro_rules! element_types {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $bytes:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\n```\nuse layout_core::space::{", stringify!($name), ", ElementType};")]
            #[doc = concat!("assert_eq!(", stringify!($name), "::BYTES, ", stringify!($bytes), ");\n```")]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name {}
            impl ElementType for $name {
                const NAME: &'static str = $text;
                const BYTES: i64 = $bytes;
            }
        )*
    };
}

element_types! {
    /// IEEE half precision.
    F16, "f16 element", 2;
    /// bfloat16.
    Bf16, "bf16 element", 2;
    /// IEEE single precision, also holding tf32.
    F32, "f32 element", 4;
    /// IEEE double precision.
    F64, "f64 element", 8;
    /// Any 8-bit type: `s8`, `u8`, `e4m3`, `e5m2`.
    B8, "8-bit element", 1;
    /// A 32-bit integer.
    S32, "s32 element", 4;
    /// A 16-byte chunk, what `ldmatrix` and `cp.async` move at once.
    B128, "16-byte element", 16;
}

/// `Self`, the codomain of one map, is `Next`, the domain of the map after it.
///
/// ```
/// use layout_core::space::{Byte, Meets, Space};
/// fn feeds<A: Meets<B>, B: Space>() {}
/// feeds::<Byte, Byte>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a map into `{Self}` cannot feed a map from `{Next}`",
    label = "the spaces do not meet",
    note = "compose `outer.compose(&inner)` so that `inner` ends where `outer` begins; convert units with `to_bytes` or `to_elements` first"
)]
pub trait Meets<Next> {}

impl<S: Space> Meets<S> for S {}
