//! Textures and surfaces: arrays of texels in global memory that kernels read by coordinates ([`Texture`]).
//!
//! A texture is memory of the caller together with how it is read: the format of a texel, the filter, the address modes. [`GlobalMemory::bind_texture`] gives
//! the handle that a kernel takes as a `.u64`, or that a `.texref` variable holds; the same handle is a surface. On a GPU the driver lays arrays out in an order of
//! its own; here rows lie one behind the other, `pitch` bytes apart.
//!
//! **Coordinates.** Those of f32 count texels, or with `normalized` the whole array is 0 to 1; integers count texels. A point sample takes texel ⌊x⌋. A linear
//! one is between the texels around x − 1/2, whose distances are rounded to eight fraction bits, as the CUDA programming guide says of the hardware's 9-bit fixed-point
//! weights (1.8). The weighted sum itself is computed exactly and rounded once; a GPU's last bits may differ.
//!
//! Example: the 1D texture 10, 20 with linear filter and clamped: x = 1 gives 15, x = 0.5 gives 10, x = 0 gives 10.
//!
//! ```
//! use ptx_emulator::{GlobalMemory, Texel, Texture};
//! let mut memory = GlobalMemory::new();
//! let address = memory.alloc(4 * 64 * 32, 256)?;
//! let texture = Texture {
//!     linear: true,
//!     ..Texture::new(Texel::F32, 1, &[64, 32], address)
//! };
//! let handle = memory.bind_texture(texture)?;
//! # let _ = handle;
//! # Ok::<(), ptx_emulator::MemoryError>(())
//! ```

use crate::float::half_to_f32;
use crate::memory::GlobalMemory;

/// The type of a component of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Texel {
    /// Unsigned 8 bits.
    U8,
    /// Signed 8 bits.
    S8,
    /// Unsigned 16 bits.
    U16,
    /// Signed 16 bits.
    S16,
    /// Unsigned 32 bits.
    U32,
    /// Signed 32 bits.
    S32,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
}

impl Texel {
    /// All of them with their names in PTX.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::U8, "u8"),
        (Self::S8, "s8"),
        (Self::U16, "u16"),
        (Self::S16, "s16"),
        (Self::U32, "u32"),
        (Self::S32, "s32"),
        (Self::F16, "f16"),
        (Self::F32, "f32"),
    ];

    /// Bytes of a component.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }

    /// Whether it is floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }
}

/// What a coordinate outside the array means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AddressMode {
    /// The texel at the edge.
    #[default]
    Clamp,
    /// [`Texture::border`].
    Border,
    /// The array again and again; with coordinates that are not normalised, as [`AddressMode::Clamp`].
    Wrap,
    /// The same, every other time the other way round.
    Mirror,
}

/// An array of texels and how it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Texture {
    /// The type of a component.
    pub texel: Texel,
    /// Components of a texel: 1, 2 or 4.
    pub channels: u32,
    /// Texels along x, y and z, as many as there are dimensions.
    pub size: Vec<u32>,
    /// Layers of an array of textures of one or two dimensions; 0 for a texture that is no array.
    pub layers: u32,
    /// The address of the first texel.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Coordinates of f32 run from 0 to 1.
    pub normalized: bool,
    /// Linear filter; the nearest texel otherwise. For floating-point texels and `unit` ones.
    pub linear: bool,
    /// 8-bit and 16-bit integers are read as numbers from 0 or −1 to 1.
    pub unit: bool,
    /// What coordinates outside mean, along x, y and z.
    pub modes: [AddressMode; 3],
    /// The texel outside for [`AddressMode::Border`].
    pub border: [f32; 4],
}

/// One texel, as bits of f32 or of integers.
pub(crate) type Bits = [u32; 4];

/// A texel that cannot be read: its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory(pub(crate) u64);

impl Texture {
    /// A texture with rows one behind the other, coordinates in texels, the nearest texel, clamped.
    pub fn new(texel: Texel, channels: u32, size: &[u32], address: u64) -> Self {
        let width = u64::from(size.first().copied().unwrap_or(1));
        Self {
            texel,
            channels,
            size: size.to_vec(),
            layers: 0,
            address,
            pitch: width * u64::from(channels * texel.bytes()),
            normalized: false,
            linear: false,
            unit: false,
            modes: [AddressMode::Clamp; 3],
            border: [0.0; 4],
        }
    }

    /// Why it is none, if it is not.
    pub(crate) fn fault(&self) -> Option<String> {
        let dims = self.size.len();
        let row = u64::from(self.extent(0)) * u64::from(self.texel_bytes());
        if !matches!(self.channels, 1 | 2 | 4) {
            Some(format!("{} channels; there are 1, 2 or 4", self.channels))
        } else if !(1..=3).contains(&dims) || self.size.contains(&0) {
            Some(format!(
                "sizes {:?}; there are 1 to 3, at least 1 each",
                self.size
            ))
        } else if self.layers > 0 && dims == 3 {
            Some("layers of three dimensions; arrays have one or two".to_owned())
        } else if self.pitch < row && (dims > 1 || self.layers > 0) {
            Some(format!("a pitch of {} bytes for rows of {row}", self.pitch))
        } else if self.unit && (self.texel.is_float() || self.texel.bytes() == 4) {
            Some("numbers from 0 to 1 of texels that are not integers of 8 or 16 bits".to_owned())
        } else if self.linear && !self.unit && !self.texel.is_float() {
            Some("a linear filter of integers: read them as numbers from 0 to 1, or take the nearest".to_owned())
        } else {
            None
        }
    }

    /// Bytes of a texel.
    pub(crate) fn texel_bytes(&self) -> u32 {
        self.channels * self.texel.bytes()
    }

    /// Texels along dimension `d`, 1 where there is none.
    pub(crate) fn extent(&self, d: usize) -> u32 {
        self.size.get(d).copied().unwrap_or(1)
    }

    /// The address of texel or byte `x` of a row; `z` is a slice or a layer.
    pub(crate) fn place(&self, x_bytes: u64, y: u32, z: u32) -> u64 {
        let rows = u64::from(self.extent(1)) * u64::from(z) + u64::from(y);
        self.address + rows * self.pitch + x_bytes
    }

    /// Whether results are floating-point.
    pub(crate) fn gives_float(&self) -> bool {
        self.unit || self.texel.is_float()
    }

    /// The index along `d` of texel `i`; nothing outside with a border.
    fn index(&self, d: usize, i: i64) -> Option<u32> {
        let n = i64::from(self.extent(d));
        let mode = match self.modes[d] {
            AddressMode::Wrap | AddressMode::Mirror if !self.normalized => AddressMode::Clamp,
            mode => mode,
        };
        let index = match mode {
            AddressMode::Clamp => i.clamp(0, n - 1),
            AddressMode::Border if (0..n).contains(&i) => i,
            AddressMode::Border => return None,
            AddressMode::Wrap => i.rem_euclid(n),
            AddressMode::Mirror => {
                let at = i.rem_euclid(2 * n);
                at.min(2 * n - 1 - at)
            }
        };
        Some(index as u32)
    }

    /// The texel at these indices along x, y and z before their address modes.
    pub(crate) fn texel(
        &self,
        memory: &GlobalMemory,
        at: [i64; 3],
        layer: u32,
    ) -> Result<Bits, OutOfMemory> {
        let mut index = [0; 3];
        for d in 0..self.size.len() {
            match self.index(d, at[d]) {
                Some(i) => index[d] = i,
                None => return Ok(self.outside()),
            }
        }
        self.read(memory, index, layer)
    }

    /// The border, in the format of the results.
    fn outside(&self) -> Bits {
        if self.gives_float() {
            self.border.map(f32::to_bits)
        } else {
            self.border.map(|x| x as i32 as u32)
        }
    }

    /// The texel at `index`, inside.
    fn read(
        &self,
        memory: &GlobalMemory,
        [x, y, z]: [u32; 3],
        layer: u32,
    ) -> Result<Bits, OutOfMemory> {
        let x = u64::from(x) * u64::from(self.texel_bytes());
        let address = self.place(x, y, if self.layers > 0 { layer } else { z });
        let bytes = memory
            .read(address, self.texel_bytes() as usize)
            .map_err(|_| OutOfMemory(address))?;
        // Channels that are missing: 0, and 1 for the last.
        let one = if self.gives_float() {
            1f32.to_bits()
        } else {
            1
        };
        let mut out = [0, 0, 0, one];
        for (to, part) in out
            .iter_mut()
            .zip(bytes.chunks_exact(self.texel.bytes() as usize))
        {
            let word = part.iter().rev().fold(0u32, |w, b| w << 8 | u32::from(*b));
            *to = self.component(word);
        }
        Ok(out)
    }

    /// A component of the bits `word` as a result has it.
    fn component(&self, word: u32) -> u32 {
        let signed = match self.texel {
            Texel::S8 => i32::from(word as u8 as i8),
            Texel::S16 => i32::from(word as u16 as i16),
            Texel::F16 => return half_to_f32(word).to_bits(),
            _ => word as i32,
        };
        if !self.unit {
            return signed as u32;
        }
        let most = match self.texel {
            Texel::U8 => 255.0,
            Texel::S8 => 127.0,
            Texel::S16 => 32767.0,
            _ => 65535.0,
        };
        ((f64::from(signed) / most).max(-1.0) as f32).to_bits()
    }

    /// A coordinate along `d` in texels.
    fn unscaled(&self, d: usize, x: f32) -> f64 {
        let x = if x.is_nan() { 0.0 } else { f64::from(x) };
        if !self.normalized {
            return x;
        }
        let n = f64::from(self.extent(d));
        match self.modes[d] {
            // Whole turns are taken off before they cost precision.
            AddressMode::Wrap => (x - x.floor()) * n,
            AddressMode::Mirror => (x - 2.0 * (x / 2.0).floor()) * n,
            _ => x * n,
        }
    }

    /// The lower of the two texels around coordinate `x` along `d`, and the distance from it in 1/256.
    fn around(&self, d: usize, x: f32) -> (i64, i64) {
        let fixed = (self.unscaled(d, x) * 256.0).round_ties_even() as i64;
        let from = fixed.saturating_sub(128);
        (from >> 8, from & 255)
    }

    /// The sample at coordinates of f32, with an offset in texels.
    pub(crate) fn sample(
        &self,
        memory: &GlobalMemory,
        at: [f32; 3],
        offset: [i64; 3],
        layer: u32,
    ) -> Result<Bits, OutOfMemory> {
        let dims = self.size.len();
        if !self.linear {
            let mut index = [0; 3];
            for d in 0..dims {
                index[d] = (self.unscaled(d, at[d]).floor() as i64).saturating_add(offset[d]);
            }
            return self.texel(memory, index, layer);
        }
        let mut around = [(0, 0); 3];
        for d in 0..dims {
            let (i, weight) = self.around(d, at[d]);
            around[d] = (i.saturating_add(offset[d]), weight);
        }
        let mut sum = [0.0; 4];
        for corner in 0..1 << dims {
            let (mut index, mut weight) = ([0; 3], 1.0);
            for d in 0..dims {
                let (i, w) = around[d];
                let upper = corner >> d & 1;
                index[d] = i.saturating_add(upper);
                weight *= if upper == 1 {
                    w as f64
                } else {
                    (256 - w) as f64
                } / 256.0;
            }
            if weight == 0.0 {
                continue;
            }
            let texel = self.texel(memory, index, layer)?;
            for (sum, x) in sum.iter_mut().zip(texel) {
                *sum += weight * f64::from(f32::from_bits(x));
            }
        }
        Ok(sum.map(|x| (x as f32).to_bits()))
    }

    /// Component `c` of the four texels that a linear sample at these coordinates is between: lower left, lower right, upper right, upper left.
    pub(crate) fn gather(
        &self,
        memory: &GlobalMemory,
        c: usize,
        (at, offset): ([f32; 3], [i64; 3]),
        layer: u32,
    ) -> Result<Bits, OutOfMemory> {
        let [x, y] = [0, 1].map(|d| self.around(d, at[d]).0.saturating_add(offset[d]));
        let mut out = [0; 4];
        for (to, (dx, dy)) in out.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            let texel = self.texel(
                memory,
                [x.saturating_add(dx), y.saturating_add(dy), 0],
                layer,
            )?;
            *to = texel[c & 3];
        }
        Ok(out)
    }
}
