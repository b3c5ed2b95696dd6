//! Arguments: typed buffers and scalars, the same for the emulator and the GPU.

use std::borrow::Cow;
use std::fmt;

use super::super::Matrix;
use super::element::{BufferElement, BufferType};

/// The alignment of buffers that name no other.
pub(crate) const ALIGNMENT: u64 = 256;

/// What the kernel may do with a buffer.
///
/// ```
/// use tilewright::codegen::ir::Element;
/// use tilewright::host::{Arg, Matrix, Role};
///
/// let c = Matrix::random(Element::F32, 4, 4, 4, 1);
/// let (read, both) = (Arg::matrix(&c, Role::Input), Arg::matrix(&c, Role::InOut));
/// assert_ne!(read, both);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Read only: a changed input is a problem of the outcome.
    Input,
    /// Written. It holds NaN (bytes of 0xff) at first, and reading that is a finding of the emulator.
    Output,
    /// Read and written.
    InOut,
}

/// A buffer in global memory, between guard zones: [`Arg::input`], [`Arg::output`], [`Arg::in_out`] or [`Arg::matrix`].
///
/// ```
/// use tilewright::host::Arg;
///
/// let Arg::Buffer(seven) = Arg::input(&[7_u8]) else { unreachable!() };
/// assert_eq!(seven.content(), Some(&[7][..]));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer<'a> {
    pub(crate) element: BufferType,
    pub(crate) role: Role,
    pub(crate) alignment: u64,
    /// Bytes of the buffer.
    pub(crate) len: usize,
    /// What it holds at first; nothing for an output.
    pub(crate) content: Option<Cow<'a, [u8]>>,
}

impl Buffer<'_> {
    /// The bytes that it holds at first; none for an output.
    pub fn content(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }
}

/// A value that is passed in the parameter itself.
///
/// ```
/// use tilewright::host::{Arg, Scalar};
///
/// assert_eq!(Arg::from(-3_i64), Arg::Scalar(Scalar::I64(-3)));
/// assert_eq!((Scalar::U32(5).integer(), Scalar::F32(0.5).float()), (Some(5), Some(0.5)));
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Scalar {
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    I32(i32),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    I64(i64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// The bytes of a structure, or of a type without a variant here.
    Bytes(Vec<u8>),
}

impl Scalar {
    /// Its value, if it is an integer.
    pub fn integer(&self) -> Option<i128> {
        match *self {
            Self::U32(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::U64(v) => Some(v.into()),
            Self::I64(v) => Some(v.into()),
            Self::F32(_) | Self::F64(_) | Self::Bytes(_) => None,
        }
    }

    /// Its value, if it is a float.
    pub fn float(&self) -> Option<f64> {
        match *self {
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    /// Its type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U32(_) => "a u32",
            Self::I32(_) => "an i32",
            Self::U64(_) => "a u64",
            Self::I64(_) => "an i64",
            Self::F32(_) => "an f32",
            Self::F64(_) => "an f64",
            Self::Bytes(bytes) => return write!(f, "{} bytes", bytes.len()),
        })
    }
}

/// An argument of a kernel: a typed buffer or a scalar.
///
/// Scalars are made with `Arg::from`; their type is the parameter's, so that a size is `Arg::from(n as u32)` or a variable of that type.
///
/// ```
/// use tilewright::host::Arg;
///
/// let x = Arg::input(&[1.0_f32, 2.0]);         // two elements, read
/// let y = Arg::output::<f32>(2);               // two elements, written
/// let sum = Arg::in_out(&[0_i64]);             // read and written
/// let odd = Arg::input(&[1_u16]).aligned_to(2); // at an address that is a multiple of 2 and of no more
/// let n = Arg::from(2_u32);
/// # let _ = (x, y, sum, odd, n);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Arg<'a> {
    /// The address of a buffer.
    Buffer(Buffer<'a>),
    /// A value.
    Scalar(Scalar),
}

impl<'a> Arg<'a> {
    /// A buffer that the kernel reads.
    pub fn input<T: BufferElement>(content: &[T]) -> Self {
        Self::buffer(T::TYPE, Role::Input, Cow::Owned(T::to_bytes(content)))
    }

    /// A buffer of `count` elements that the kernel writes; they are NaN, or integers with all bits set, at first.
    pub fn output<T: BufferElement>(count: usize) -> Self {
        Self::Buffer(Buffer {
            element: T::TYPE,
            role: Role::Output,
            alignment: ALIGNMENT,
            len: count * T::TYPE.bytes(),
            content: None,
        })
    }

    /// A buffer that the kernel reads and writes.
    pub fn in_out<T: BufferElement>(content: &[T]) -> Self {
        Self::buffer(T::TYPE, Role::InOut, Cow::Owned(T::to_bytes(content)))
    }

    /// A matrix as it lies in memory, with the gaps between its rows.
    ///
    /// ```
    /// use tilewright::codegen::ir::Element;
    /// use tilewright::host::{Arg, Matrix, Role};
    ///
    /// let a = Matrix::random(Element::F16, 5, 3, 4, 1);
    /// let arg = Arg::matrix(&a, Role::Input).aligned_to(2);
    /// # let _ = arg;
    /// ```
    pub fn matrix(matrix: &'a Matrix, role: Role) -> Self {
        Self::buffer(
            matrix.element.into(),
            role,
            Cow::Borrowed(matrix.bytes.as_slice()),
        )
    }

    fn buffer(element: BufferType, role: Role, content: Cow<'a, [u8]>) -> Self {
        Self::Buffer(Buffer {
            element,
            role,
            alignment: ALIGNMENT,
            len: content.len(),
            content: (role != Role::Output).then_some(content),
        })
    }

    /// The bytes of a parameter that is a structure, or of a type that no other constructor has.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Scalar(Scalar::Bytes(bytes.into()))
    }

    /// The buffer at an address that is a multiple of `bytes`, a power of two, and of no more where `bytes` is below 16 (on the emulator,
    /// below 256): a kernel that copies more widely than it may is found. A scalar stays as it is.
    ///
    /// ```
    /// use tilewright::host::{Arg, On, PtxKernel, run};
    ///
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
    ///     .visible .entry wide(.param .u64 x) {\n\
    ///         .reg .b64 %d<2>; ld.param.u64 %d0, [x]; ld.global.u64 %d1, [%d0]; ret;\n\
    ///     }\n";
    /// let wide = PtxKernel::new(text, "wide")?;
    /// run(&wide, On::Emulator, [("x", Arg::input(&[1.0_f32, 2.0]))])?.assert_clean();
    /// let narrow = run(&wide, On::Emulator, [("x", Arg::input(&[1.0_f32, 2.0]).aligned_to(4))])?;
    /// assert!(narrow.clean().unwrap_err().to_string().contains("misaligned: line 5: ld.global.u64"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn aligned_to(mut self, bytes: u64) -> Self {
        if let Self::Buffer(buffer) = &mut self {
            buffer.alignment = bytes;
        }
        self
    }
}

impl fmt::Display for Arg<'_> {
    /// Its type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(buffer) => write!(f, "a buffer of {}", buffer.element),
            Self::Scalar(scalar) => scalar.fmt(f),
        }
    }
}

macro_rules! scalars {
    ($($number:ty: $variant:ident,)*) => { $(
        impl From<$number> for Arg<'_> {
            fn from(value: $number) -> Self {
                Self::Scalar(Scalar::$variant(value))
            }
        }
    )* };
}

scalars! { u32: U32, i32: I32, u64: U64, i64: I64, f32: F32, f64: F64, }
