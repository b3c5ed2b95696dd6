//! Operands of texture and surface instructions.

use super::{Address, Reg, Row};

/// What a texture or surface instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextureAction {
    /// `tex`, with coordinates of f32 or of s32.
    Sample { float: bool },
    /// `tld4` of one component.
    Gather { component: u8 },
    /// `suld.b`: bytes of an element.
    Load { bytes: u8, outside: Outside },
    /// `sust.b`.
    Store { bytes: u8, outside: Outside },
    /// `txq` and `suq`.
    Query(TextureQuery),
}

/// What a surface access outside the surface does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    Trap,
    Clamp,
    Zero,
}

/// What is asked of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextureQuery {
    Extent(u8),
    Layers,
    Normalized,
    Linear,
    Mode(u8),
    /// There are no more levels or samples than one.
    Levels,
}

/// A texture or surface instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextureOp {
    pub(crate) action: TextureAction,
    /// Dimensions, and whether a layer is selected first.
    pub(crate) dims: u8,
    pub(crate) layered: bool,
    /// A handle, or the address of a variable that holds one.
    pub(crate) handle: Address,
    /// The layer, if any, and the coordinates.
    pub(crate) coords: Vec<Row>,
    /// Offsets in texels.
    pub(crate) offsets: Vec<Row>,
    /// What is loaded, stored or answered.
    pub(crate) regs: Vec<Reg>,
    /// Results are rounded to f16, two to a register.
    pub(crate) halves: bool,
    /// Results are floating-point; integers otherwise.
    pub(crate) float: bool,
    /// The predicate that says that the texel is in memory.
    pub(crate) resident: Row,
}
