//! Parameters of a kernel.

/// The type of a kernel parameter, as the launch contract names it.
///
/// ```
/// use layout_codegen::ir::{Kernel, ParamKind};
/// use layout_codegen::value::F32;
///
/// let mut k = Kernel::new("k", 32);
/// let _: F32 = k.argument("alpha");
/// assert_eq!(k.params()[0].kind, ParamKind::F32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParamKind {
    /// A pointer to global memory, 64 bits.
    Pointer,
    /// An unsigned 32-bit integer.
    U32,
    /// An unsigned 64-bit integer.
    U64,
    /// A signed 32-bit integer.
    S32,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
    /// A tensor map, which the driver encodes: 128 bytes, aligned to 64.
    TensorMap,
}

impl ParamKind {
    /// Its size, which is also its alignment in the parameter buffer.
    ///
    /// ```
    /// use layout_codegen::ir::ParamKind;
    ///
    /// assert_eq!((ParamKind::Pointer.bytes(), ParamKind::U32.bytes()), (8, 4));
    /// ```
    pub const fn bytes(self) -> u32 {
        match self {
            ParamKind::Pointer | ParamKind::U64 | ParamKind::F64 => 8,
            ParamKind::U32 | ParamKind::S32 | ParamKind::F32 => 4,
            ParamKind::TensorMap => 128,
        }
    }

    /// What its place among the parameters is a multiple of, in bytes.
    ///
    /// ```
    /// use layout_codegen::ir::ParamKind;
    ///
    /// assert_eq!([ParamKind::U32, ParamKind::TensorMap].map(ParamKind::alignment), [4, 64]);
    /// ```
    pub const fn alignment(self) -> u32 {
        match self {
            ParamKind::TensorMap => 64,
            kind => kind.bytes(),
        }
    }

    /// Its name in the launch contract.
    ///
    /// ```
    /// use layout_codegen::ir::ParamKind;
    ///
    /// assert_eq!(ParamKind::Pointer.name(), "ptr");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            ParamKind::Pointer => "ptr",
            ParamKind::U64 => "u64",
            ParamKind::U32 => "u32",
            ParamKind::S32 => "s32",
            ParamKind::F32 => "f32",
            ParamKind::F64 => "f64",
            ParamKind::TensorMap => "tensor_map",
        }
    }
}

/// A parameter of the kernel.
///
/// ```
/// use layout_codegen::ir::{Kernel, Param, ParamKind};
///
/// let mut k = Kernel::new("k", 32);
/// k.size("n", 100);
/// let n = Param { name: "n".to_owned(), kind: ParamKind::U32, most: Some(100), multiple: 1 };
/// assert_eq!(k.params(), [n]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
    /// The greatest value of an unsigned integer that the kernel is made for: the launch contract refuses more.
    pub most: Option<u64>,
    /// What an address or a size is a multiple of: the launch contract refuses others.
    pub multiple: u64,
}
