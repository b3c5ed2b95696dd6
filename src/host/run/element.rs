//! Element types of buffers, and the Rust types that stand for them.

use std::fmt;

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use layout_codegen::ir::Element;

/// The type of a buffer's elements: those of [`Element`], and the other integers of Rust, which PTX text may take though no kernel of the layer computes with
/// them.
///
/// ```
/// use tilewright::host::BufferType;
///
/// assert_eq!((BufferType::Bf16.to_string().as_str(), BufferType::Bf16.bytes()), ("bf16", 2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BufferType {
    /// `i8`
    I8,
    /// `u8`
    U8,
    /// `i16`
    I16,
    /// `u16`
    U16,
    /// `i32`
    I32,
    /// `u32`
    U32,
    /// `i64`
    I64,
    /// `u64`
    U64,
    /// [`half::f16`], IEEE binary16
    F16,
    /// [`half::bf16`]
    Bf16,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// [`float8::F8E4M3`], 4 bits of exponent
    E4m3,
    /// [`float8::F8E5M2`], 5 bits of exponent
    E5m2,
}

impl BufferType {
    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl fmt::Display for BufferType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
        })
    }
}

impl From<Element> for BufferType {
    fn from(element: Element) -> Self {
        match element {
            Element::F32 => Self::F32,
            Element::F16 => Self::F16,
            Element::Bf16 => Self::Bf16,
            Element::F64 => Self::F64,
            Element::S8 => Self::I8,
            Element::S32 => Self::I32,
            Element::E4m3 => Self::E4m3,
            Element::E5m2 => Self::E5m2,
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose values are the elements of a buffer: the integers, `f32`, `f64`, [`half::f16`], [`half::bf16`],
/// [`float8::F8E4M3`] and [`float8::F8E5M2`].
///
/// ```
/// use tilewright::host::BufferElement;
///
/// assert_eq!(f32::to_bytes(&[1.0]), [0, 0, 0x80, 0x3f]);
/// assert_eq!(i16::from_bytes(&[0xff, 0xff, 7, 0]), [-1, 7]);
/// ```
pub trait BufferElement: Copy + sealed::Sealed {
    /// The element type of such buffers.
    const TYPE: BufferType;

    /// The bytes of the values, little-endian, one after the other.
    fn to_bytes(values: &[Self]) -> Vec<u8>;

    /// The values in `bytes`; a rest that is not a whole element is left out.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($number:ty: $ty:ident,)*) => { $(
        impl sealed::Sealed for $number {}

        impl BufferElement for $number {
            const TYPE: BufferType = BufferType::$ty;

            fn to_bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                let (chunks, _) = bytes.as_chunks();
                chunks.iter().map(|&chunk| Self::from_le_bytes(chunk)).collect()
            }
        }
    )* };
}

elements! {
    i8: I8, u8: U8, i16: I16, u16: U16, i32: I32, u32: U32, i64: I64, u64: U64,
    f16: F16, bf16: Bf16, f32: F32, f64: F64,
}

macro_rules! float8s {
    ($($number:ty: $ty:ident,)*) => { $(
        impl sealed::Sealed for $number {}

        impl BufferElement for $number {
            const TYPE: BufferType = BufferType::$ty;

            fn to_bytes(values: &[Self]) -> Vec<u8> {
                values.iter().map(|value| value.to_bits()).collect()
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                bytes.iter().map(|&bits| Self::from_bits(bits)).collect()
            }
        }
    )* };
}

float8s! { F8E4M3: E4m3, F8E5M2: E5m2, }
