//! Tensor maps: what a tensor copy needs to know about an array in global memory ([`TensorMap`]).
//!
//! A tensor map describes an array of one to five dimensions, *the innermost first*, and the box of it that one copy moves. On a GPU the driver
//! encodes it into 128 opaque bytes; here [`TensorMap::encode`] does, in a form of its own that only this emulator reads. A kernel takes it as
//! `.param .align 64 .b8 map[128]`.
//!
//! The rules are those of the CUDA driver API reference (`cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`), which answers a broken one by an error
//! code alone; [`TensorMapError`] says which it is. A row-major matrix of `rows × cols` halves with boxes of 64 × 64 and the 128-byte swizzle:
//!
//! ```
//! use ptx_emulator::{Arg, GlobalMemory, TensorElement, TensorMap, TensorSwizzle};
//! let (rows, cols) = (256, 512);
//! let mut memory = GlobalMemory::new();
//! let address = memory.alloc(2 * rows * cols, 256)?;
//! let map = TensorMap {
//!     sizes: vec![cols, rows],
//!     strides: vec![2 * cols], // bytes, from the second dimension on
//!     box_sizes: vec![64, 64],
//!     swizzle: TensorSwizzle::Bytes128,
//!     ..TensorMap::new(TensorElement::F16, address)
//! };
//! let argument = Arg::Bytes(map.encode()?.to_vec());
//! # let _ = argument;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;
use std::fmt;

use crate::ir::MapField;

/// Bytes of an encoded map.
pub const TENSOR_MAP_BYTES: usize = 128;

/// How an encoded map starts.
const MAGIC: [u8; 4] = *b"TMap";

/// The element type of a [`TensorMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorElement {
    /// 8 bits, also for signed integers and 8-bit floats.
    U8,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 32 bits.
    U32,
    /// Signed 32 bits.
    S32,
    /// Unsigned 64 bits.
    U64,
    /// Signed 64 bits.
    S64,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Single precision; copies to shared memory flush subnormal numbers to zero.
    F32Ftz,
    /// Single precision in global memory, rounded to tf32 by copies to shared memory: to nearest, ties to even, as an H100 does.
    Tf32,
    /// As [`TensorElement::Tf32`]; subnormal numbers are flushed to zero.
    Tf32Ftz,
    /// Double precision.
    F64,
}

impl TensorElement {
    /// All of them, with the names that PTX gives them.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::U8, "u8"),
        (Self::U16, "u16"),
        (Self::U32, "u32"),
        (Self::S32, "s32"),
        (Self::U64, "u64"),
        (Self::S64, "s64"),
        (Self::F16, "f16"),
        (Self::Bf16, "bf16"),
        (Self::F32, "f32"),
        (Self::Tf32, "tf32"),
        (Self::F64, "f64"),
        (Self::F32Ftz, "f32.ftz"),
        (Self::Tf32Ftz, "tf32.ftz"),
    ];

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    /// The NaN of 16 or 32 bits and so on that fills elements outside the array; `None` for integers.
    pub(crate) fn nan(self) -> Option<Vec<u8>> {
        Some(match self {
            Self::F16 | Self::Bf16 => 0x7fff_u16.to_le_bytes().to_vec(),
            Self::F32 | Self::F32Ftz | Self::Tf32 | Self::Tf32Ftz => {
                0x7fff_ffff_u32.to_le_bytes().to_vec()
            }
            Self::F64 => 0x7fff_ffff_ffff_ffff_u64.to_le_bytes().to_vec(),
            _ => return None,
        })
    }
}

/// How a box is swizzled in shared memory: `Bytes128` is `Swizzle<3,4,3>` of the byte address, `Bytes64` `Swizzle<2,4,3>`, `Bytes32` `Swizzle<1,4,3>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorSwizzle {
    /// Not at all.
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl TensorSwizzle {
    /// Bytes that a row of the box has at most, and that it takes in shared memory; `None` without a swizzle.
    pub fn span(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128 => Some(128),
        }
    }

    /// The place in shared memory of the byte at `offset`.
    pub(crate) fn apply(self, offset: u32) -> u32 {
        let bits = match self {
            Self::None => 0,
            Self::Bytes32 => 1,
            Self::Bytes64 => 3,
            Self::Bytes128 => 7,
        };
        offset ^ ((offset >> 7 & bits) << 4)
    }
}

/// How channels lie in global memory: in slices of some bytes, so that the channels of an image are a dimension of slices outside its pixels
/// (NC/8HWC8 and NC/16HWC16 with 16-bit channels).
///
/// Dimension 0 of such a map is one slice, as in the example of the PTX ISA (section 5.5.7): 32 channels of 10 x 10 halves in slices of 32 bytes are the
/// sizes `[16, 10, 10, 2]`. Rows of the box take the bytes of a slice in shared memory, whatever the swizzle. The emulator's rules for interleaved maps
/// follow that example and the driver's reference; they have not been compared with a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorInterleave {
    /// No slices.
    None,
    /// Slices of 16 bytes.
    Bytes16,
    /// Slices of 32 bytes, which go with the 32-byte swizzle.
    Bytes32,
}

impl TensorInterleave {
    /// Bytes of a slice; `None` without slices.
    pub fn slice(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes16 => Some(16),
            Self::Bytes32 => Some(32),
        }
    }
}

/// The box of an im2col copy, which moves pixels of the dimensions between the channels (innermost) and the images (outermost).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Im2col {
    /// Lower corner of the box of filter positions, along W, H and D (as many as there are).
    pub lower: Vec<i16>,
    /// Upper corner, relative to the last pixel: −1 leaves out one at the end.
    pub upper: Vec<i16>,
    /// Channels of a pixel that one copy moves, 1 to 256.
    pub channels: u32,
    /// Pixels that one copy moves, 1 to 1024.
    pub pixels: u32,
}

/// An array in global memory and the box that a copy moves. Dimensions are innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The element type.
    pub element: TensorElement,
    /// The address of element 0: a multiple of 16.
    pub address: u64,
    /// Elements along each of 1 to 5 dimensions, 1 to 2^32 each.
    ///
    /// A tiled store writes whole chunks of 16 bytes along the innermost: where these elements do not end at a multiple of 16 bytes, it writes beyond them and
    /// [`FindingKind::TensorEdge`](crate::FindingKind::TensorEdge) says so.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the innermost: multiples of 16 below 2^40.
    pub strides: Vec<u64>,
    /// Elements of the box along each dimension, 1 to 256 each; those of the innermost fill a multiple of 16 bytes. Empty with `im2col`.
    pub box_sizes: Vec<u32>,
    /// Steps in elements along each dimension, 1 to 8 each, that of the innermost ignored; empty for all 1.
    pub element_strides: Vec<u32>,
    /// Swizzle in shared memory.
    pub swizzle: TensorSwizzle,
    /// Slices of channels in global memory.
    pub interleave: TensorInterleave,
    /// Whether elements outside the array read as NaN; they read as 0 otherwise. Floating-point types only.
    pub nan_outside: bool,
    /// The box of im2col copies, of 3 to 5 dimensions; `None` for tiled copies.
    pub im2col: Option<Im2col>,
}

/// A rule of tensor maps that is broken: what was given, and what the rule is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapError {
    given: String,
    rule: &'static str,
}

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a tensor map {}", self.given, self.rule)
    }
}

impl Error for TensorMapError {}

impl TensorMap {
    /// A map without dimensions yet: no swizzle, zeros outside.
    pub fn new(element: TensorElement, address: u64) -> Self {
        Self {
            element,
            address,
            sizes: Vec::new(),
            strides: Vec::new(),
            box_sizes: Vec::new(),
            element_strides: Vec::new(),
            swizzle: TensorSwizzle::None,
            interleave: TensorInterleave::None,
            nan_outside: false,
            im2col: None,
        }
    }

    /// Whether the rules hold.
    ///
    /// # Errors
    ///
    /// [`TensorMapError`] with the first rule that is broken and what was given.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let require = |holds: bool, given: &dyn fmt::Debug, rule| {
            if holds {
                return Ok(());
            }
            let given = format!("{given:?}");
            Err(TensorMapError { given, rule })
        };
        let rank = self.sizes.len();
        let least = if self.im2col.is_some() { 3 } else { 1 };
        require(
            (least..=5).contains(&rank),
            &self.sizes,
            "has sizes of 1 to 5 dimensions, of 3 to 5 with im2col",
        )?;
        require(
            self.sizes.iter().all(|n| (1..=1 << 32).contains(n)),
            &self.sizes,
            "has sizes from 1 to 2^32",
        )?;
        require(
            self.address.is_multiple_of(16),
            &self.address,
            "has an address that is a multiple of 16",
        )?;
        require(
            self.strides.len() + 1 == rank,
            &self.strides,
            "has one stride less than dimensions",
        )?;
        require(
            self.strides
                .iter()
                .all(|s| s.is_multiple_of(16) && *s < 1 << 40),
            &self.strides,
            "has strides that are multiples of 16 bytes and below 2^40",
        )?;
        let steps = &self.element_strides;
        require(
            steps.is_empty() || steps.len() == rank,
            steps,
            "has an element stride for each dimension, or none",
        )?;
        require(
            steps.iter().all(|s| (1..=8).contains(s)),
            steps,
            "has element strides from 1 to 8",
        )?;
        require(
            !self.nan_outside || self.element.nan().is_some(),
            &self.element,
            "fills with NaN only if its elements are floating-point",
        )?;
        let inner = match &self.im2col {
            None => {
                require(
                    self.box_sizes.len() == rank,
                    &self.box_sizes,
                    "has a box size for each dimension",
                )?;
                require(
                    self.box_sizes.iter().all(|n| (1..=256).contains(n)),
                    &self.box_sizes,
                    "has box sizes from 1 to 256",
                )?;
                self.box_sizes[0]
            }
            Some(c) => {
                let limit = [0, 1 << 15, 1 << 7, 1 << 4][rank - 2];
                let corners = [&c.lower, &c.upper];
                let fits = |v: &&Vec<i16>| {
                    v.len() == rank - 2
                        && v.iter().all(|x| (-limit..limit).contains(&i32::from(*x)))
                };
                require(
                    corners.iter().all(fits),
                    &corners,
                    "has corners of two dimensions less, of 16 bits with 3 dimensions, 8 with 4 and 5 with 5",
                )?;
                require(
                    (1..=256).contains(&c.channels) && (1..=1024).contains(&c.pixels),
                    &(c.channels, c.pixels),
                    "has 1 to 256 channels and 1 to 1024 pixels of im2col",
                )?;
                c.channels
            }
        };
        let bytes = u64::from(inner) * self.element.bytes();
        require(
            bytes.is_multiple_of(16),
            &bytes,
            "has a box whose innermost side is a multiple of 16 bytes",
        )?;
        self.check_interleave(bytes)?;
        let sliced = self.interleave.slice().is_some();
        require(
            sliced || self.swizzle.span().is_none_or(|span| bytes <= span),
            &bytes,
            "has a box whose innermost side, in bytes, is no longer than the swizzle",
        )
    }

    /// The rules for slices of channels; `inner` is the innermost side of the box in bytes.
    fn check_interleave(&self, inner: u64) -> Result<(), TensorMapError> {
        let Some(slice) = self.interleave.slice() else {
            return Ok(());
        };
        let require = |holds: bool, given: String, rule| {
            if holds {
                Ok(())
            } else {
                Err(TensorMapError { given, rule })
            }
        };
        require(
            self.sizes.len() >= 3,
            format!("{:?}", self.sizes),
            "is interleaved with 3 to 5 dimensions only",
        )?;
        require(
            self.im2col.is_none(),
            format!("{:?}", self.interleave),
            "of im2col copies is not interleaved here: the order of its dimensions is not published",
        )?;
        let row = self.sizes[0] * self.element.bytes();
        require(
            row == slice && inner == slice,
            format!("an innermost dimension of {row} bytes and {inner} of the box"),
            "that is interleaved has one slice, 16 or 32 bytes, as its innermost dimension and in its box",
        )?;
        let all = self.strides.iter().chain([&self.address]);
        require(
            all.clone().all(|x| x.is_multiple_of(slice)),
            format!("{:?}", all.collect::<Vec<_>>()),
            "with slices of 32 bytes has strides and an address that are multiples of 32",
        )?;
        require(
            slice == 16 || self.swizzle == TensorSwizzle::Bytes32,
            format!("{:?}", self.swizzle),
            "with slices of 32 bytes has the 32-byte swizzle",
        )
    }

    /// Bytes from one row of the box to the next in shared memory, for rows of `bytes`.
    pub(crate) fn pitch(&self, bytes: u64) -> u64 {
        match self.interleave {
            TensorInterleave::None => self.swizzle.span().unwrap_or(bytes),
            _ => bytes,
        }
    }

    /// The step along dimension `d`.
    pub(crate) fn step(&self, d: usize) -> u32 {
        match d {
            0 => 1,
            d => self.element_strides.get(d).copied().unwrap_or(1),
        }
    }

    /// The 128 bytes that a kernel takes.
    ///
    /// # Errors
    ///
    /// [`TensorMapError`] of [`TensorMap::check`].
    pub fn encode(&self) -> Result<[u8; TENSOR_MAP_BYTES], TensorMapError> {
        self.check()?;
        let mut out = Vec::with_capacity(TENSOR_MAP_BYTES);
        out.extend(MAGIC);
        let element = Self::index(self.element);
        let rank = self.sizes.len() as u8;
        let flags = u8::from(self.nan_outside)
            | u8::from(self.im2col.is_some()) << 1
            | (self.interleave as u8) << 2;
        out.extend([element, rank, self.swizzle as u8, flags]);
        out.extend(self.address.to_le_bytes());
        for d in 0..5 {
            let size = self.sizes.get(d).map_or(0, |n| (n - 1) as u32);
            out.extend(size.to_le_bytes());
        }
        for d in 0..4 {
            out.extend(self.strides.get(d).copied().unwrap_or(0).to_le_bytes());
        }
        for d in 0..5 {
            out.extend((self.box_sizes.get(d).copied().unwrap_or(0) as u16).to_le_bytes());
        }
        for d in 0..5 {
            out.push(self.element_strides.get(d).copied().unwrap_or(1) as u8);
        }
        if let Some(c) = &self.im2col {
            out.extend((c.channels as u16).to_le_bytes());
            out.extend((c.pixels as u16).to_le_bytes());
            for x in c.lower.iter().chain(&c.upper) {
                out.extend(x.to_le_bytes());
            }
        }
        out.resize(TENSOR_MAP_BYTES, 0);
        let mut bytes = [0; TENSOR_MAP_BYTES];
        bytes.copy_from_slice(&out);
        Ok(bytes)
    }

    /// Whether `bytes` hold a map of this encoding, complete or not.
    pub(crate) fn is_encoded(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Replaces a field of the map that `bytes` hold. 128 zeros become a map whose fields are not set yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the bytes or the value.
    pub(crate) fn replace(bytes: &mut [u8], field: MapField, value: u64) -> Result<(), String> {
        if bytes.iter().all(|b| *b == 0) {
            bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        }
        if !Self::is_encoded(bytes) {
            return Err("these 128 bytes are neither a tensor map nor all zero: copy a map here first, or store zeros".to_owned());
        }
        // The layout of `encode`.
        let mut put = |at: usize, n: usize, value: u64| {
            bytes[at..at + n].copy_from_slice(&value.to_le_bytes()[..n]);
        };
        let refuse = |name: &str, accepted: &str| {
            Err(format!(
                "the value {value} of .{name} is not supported; {accepted}"
            ))
        };
        match field {
            MapField::Address => put(8, 8, value),
            MapField::Rank if value > 4 => {
                return refuse("rank", "it is the number of dimensions less one, 0 to 4");
            }
            MapField::Rank => put(5, 1, value + 1),
            MapField::Size(d) => put(16 + 4 * usize::from(d), 4, value.wrapping_sub(1)),
            MapField::Stride(d) => put(36 + 8 * usize::from(d), 8, value),
            MapField::Box(d) => put(68 + 2 * usize::from(d), 2, value.min(0xffff)),
            MapField::Step(d) => put(78 + usize::from(d), 1, value.min(0xff)),
            MapField::Swizzle if value > 3 => {
                return refuse(
                    "swizzle_mode",
                    "0 is none, 1 to 3 are 32, 64 and 128 bytes; 4, 96 bytes, is for sm_103 only",
                );
            }
            MapField::Swizzle => put(6, 1, value),
            MapField::Interleave if value > 2 => {
                return refuse(
                    "interleave_layout",
                    "0 is none, 1 and 2 are 16 and 32 bytes",
                );
            }
            MapField::Interleave => bytes[7] = bytes[7] & 3 | (value as u8) << 2,
            MapField::Fill if value > 1 => {
                return refuse("fill_mode", "0 fills with zeros and 1 with NaN");
            }
            MapField::Fill => bytes[7] = bytes[7] & !1 | value as u8,
            MapField::Atomicity if value != 0 => {
                return refuse(
                    "swizzle_atomicity",
                    "0 is 16 bytes; the others are for sm_100 and up",
                );
            }
            MapField::Atomicity => {}
            MapField::Element => {
                // The ISA's numbers.
                let element = match value {
                    0 => TensorElement::U8,
                    1 => TensorElement::U16,
                    2 => TensorElement::U32,
                    3 => TensorElement::S32,
                    4 => TensorElement::U64,
                    5 => TensorElement::S64,
                    6 => TensorElement::F16,
                    7 => TensorElement::F32,
                    8 => TensorElement::F32Ftz,
                    9 => TensorElement::F64,
                    10 => TensorElement::Bf16,
                    11 => TensorElement::Tf32,
                    12 => TensorElement::Tf32Ftz,
                    _ => {
                        return refuse(
                            "elemtype",
                            "0 to 12 are u8 to tf32.ftz; 13 to 15, of 4 and 6 bits, are for sm_100 and up",
                        );
                    }
                };
                put(4, 1, u64::from(Self::index(element)));
            }
        }
        Ok(())
    }

    fn index(element: TensorElement) -> u8 {
        let at = TensorElement::ALL.iter().position(|(e, _)| *e == element);
        at.unwrap_or(0) as u8
    }

    /// The map that `bytes` hold.
    ///
    /// # Errors
    ///
    /// That they are none, or which field is missing or breaks a rule.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.iter().all(|b| *b == 0) {
            return Err(
                "its 128 bytes are all zero; set the fields by tensormap.replace".to_owned(),
            );
        }
        if Self::is_encoded(bytes) && bytes.get(5) == Some(&0) {
            return Err("its rank was never set; do so by tensormap.replace.tile.rank".to_owned());
        }
        let map = Self::fields(bytes).ok_or(
            "its 128 bytes are no tensor map, which is a parameter, a constant or in global memory",
        )?;
        let unset = |values: &[u32], field: &str| {
            let d = values.iter().position(|v| *v == 0)?;
            Some(format!(
                "its {field} {d} was never set, or to 0; do so by tensormap.replace.tile.{field}"
            ))
        };
        let missing = unset(&map.box_sizes, "box_dim")
            .or_else(|| unset(&map.element_strides, "element_stride"));
        if let Some(missing) = missing {
            return Err(missing);
        }
        map.check().map_err(|e| e.to_string())?;
        Ok(map)
    }

    /// The fields of the map that `bytes` hold; `None` if they are none.
    fn fields(bytes: &[u8]) -> Option<Self> {
        let mut at = 0;
        let mut take = |n: usize| {
            at += n;
            bytes.get(at - n..at).map(|b| {
                let mut x = [0; 8];
                x[..n].copy_from_slice(b);
                u64::from_le_bytes(x)
            })
        };
        if take(4)? != u64::from(u32::from_le_bytes(MAGIC)) {
            return None;
        }
        let (element, rank) = (take(1)? as usize, take(1)? as usize);
        let (swizzle, flags) = (take(1)?, take(1)?);
        if rank > 5 || rank == 0 {
            return None;
        }
        let mut map = Self::new(TensorElement::ALL.get(element)?.0, take(8)?);
        map.swizzle = match swizzle {
            0 => TensorSwizzle::None,
            1 => TensorSwizzle::Bytes32,
            2 => TensorSwizzle::Bytes64,
            3 => TensorSwizzle::Bytes128,
            _ => return None,
        };
        map.nan_outside = flags & 1 == 1;
        map.interleave = match flags >> 2 {
            0 => TensorInterleave::None,
            1 => TensorInterleave::Bytes16,
            2 => TensorInterleave::Bytes32,
            _ => return None,
        };
        let mut list = |n: usize, bytes: usize, used: usize| {
            let mut all = Vec::new();
            for _ in 0..n {
                all.push(take(bytes)?);
            }
            all.truncate(used);
            Some(all)
        };
        map.sizes = list(5, 4, rank)?.iter().map(|n| n + 1).collect();
        map.strides = list(4, 8, rank - 1)?;
        map.box_sizes = list(5, 2, rank)?.iter().map(|n| *n as u32).collect();
        map.element_strides = list(5, 1, rank)?.iter().map(|n| *n as u32).collect();
        if flags & 2 == 2 {
            let counts = list(2, 2, 2)?;
            let corner = |v: Vec<u64>| v.iter().map(|x| *x as u16 as i16).collect();
            let dims = rank.checked_sub(2)?;
            map.box_sizes = Vec::new();
            map.im2col = Some(Im2col {
                channels: counts[0] as u32,
                pixels: counts[1] as u32,
                lower: corner(list(dims, 2, dims)?),
                upper: corner(list(dims, 2, dims)?),
            });
        }
        Some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> TensorMap {
        TensorMap {
            sizes: vec![100, 50],
            strides: vec![208],
            box_sizes: vec![64, 32],
            swizzle: TensorSwizzle::Bytes128,
            ..TensorMap::new(TensorElement::F16, 4096)
        }
    }

    /// 32 channels of 10 x 10 halves in slices of 16 channels.
    fn slices() -> TensorMap {
        TensorMap {
            sizes: vec![16, 10, 10, 2],
            strides: vec![32, 320, 3200],
            box_sizes: vec![16, 4, 4, 2],
            swizzle: TensorSwizzle::Bytes32,
            interleave: TensorInterleave::Bytes32,
            ..TensorMap::new(TensorElement::F16, 4096)
        }
    }

    fn images() -> TensorMap {
        TensorMap {
            sizes: vec![64, 9, 14, 1 << 32],
            strides: vec![128, 1152, 16128],
            box_sizes: Vec::new(),
            element_strides: vec![1, 2, 2, 1],
            nan_outside: true,
            im2col: Some(Im2col {
                lower: vec![-1, -2],
                upper: vec![-1, 0],
                channels: 32,
                pixels: 64,
            }),
            ..matrix()
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for map in [matrix(), images(), slices()] {
            let bytes = map.encode().expect("a correct map");
            let mut back = TensorMap::decode(&bytes).expect("a map");
            if map.element_strides.is_empty() {
                assert_eq!(back.element_strides, vec![1; map.sizes.len()]);
                back.element_strides.clear();
            }
            assert_eq!(back, map);
        }
        for none in [&[0; 128][..], &[1; 128], &[]] {
            assert!(TensorMap::decode(none).is_err());
        }
    }

    #[test]
    fn each_rule_is_checked_and_named() {
        type Break = fn(&mut TensorMap);
        let broken: [(Break, &str); 19] = [
            (|m| m.sizes = vec![], "1 to 5 dimensions"),
            (|m| m.sizes = vec![0, 50], "from 1 to 2^32"),
            (|m| m.address = 8, "multiple of 16"),
            (|m| m.strides = vec![], "one stride less"),
            (|m| m.strides = vec![200], "multiples of 16 bytes"),
            (|m| m.strides = vec![1 << 40], "below 2^40"),
            (|m| m.box_sizes = vec![64], "box size for each"),
            (|m| m.box_sizes = vec![64, 257], "from 1 to 256"),
            (|m| m.box_sizes = vec![7, 1], "multiple of 16 bytes"),
            (|m| m.box_sizes = vec![128, 1], "no longer than the swizzle"),
            (|m| m.element_strides = vec![1], "element stride for each"),
            (|m| m.element_strides = vec![1, 9], "from 1 to 8"),
            (
                |m| {
                    m.element = TensorElement::U16;
                    m.nan_outside = true;
                },
                "floating-point",
            ),
            (
                |m| m.interleave = TensorInterleave::Bytes16,
                "3 to 5 dimensions only",
            ),
            (
                |m| {
                    *m = images();
                    m.interleave = TensorInterleave::Bytes16;
                },
                "of im2col copies is not interleaved",
            ),
            (
                |m| {
                    *m = slices();
                    m.box_sizes[0] = 8;
                },
                "has one slice",
            ),
            (
                |m| {
                    *m = slices();
                    m.strides[0] = 48;
                },
                "multiples of 32",
            ),
            (
                |m| {
                    *m = slices();
                    m.swizzle = TensorSwizzle::None;
                },
                "has the 32-byte swizzle",
            ),
            (
                |m| {
                    *m = TensorMap {
                        im2col: images().im2col,
                        ..matrix()
                    }
                },
                "3 to 5 with im2col",
            ),
        ];
        for (change, rule) in broken {
            let mut map = matrix();
            change(&mut map);
            let error = map.encode().expect_err(rule).to_string();
            assert!(error.contains(rule), "{error}");
        }
        let mut map = images();
        if let Some(c) = &mut map.im2col {
            c.lower[0] = 200;
        }
        assert!(map.check().is_err());
    }
}
