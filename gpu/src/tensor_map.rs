//! Tensor maps: what the bulk tensor copies of Hopper and later need to know about an array in global memory.
//!
//! A tensor map describes an array of up to five dimensions, *the innermost first*, and the box of it that one copy moves
//! into shared memory, swizzled on the way. The driver encodes it into 128 opaque bytes which the kernel takes as a
//! parameter. A row-major matrix of `rows × cols` halves, leading dimension `ld`, read in boxes of 64 × 64 with the
//! 128-byte swizzle (the innermost side of a swizzled box is at most the swizzle's 128 bytes):
//!
//! ```
//! use tilewright_gpu::{MapElement, MapSwizzle, TensorMapSpec};
//!
//! # let (address, rows, cols, ld) = (0_u64, 4096_u64, 4096_u64, 4096_u64);
//! let spec = TensorMapSpec {
//!     sizes: vec![cols, rows],
//!     strides: vec![2 * ld], // bytes, from the second dimension on
//!     box_sizes: vec![64, 64],
//!     swizzle: MapSwizzle::Bytes128,
//!     ..TensorMapSpec::new(MapElement::F16, address)
//! };
//! assert!(spec.check().is_ok());
//! ```
//!
//! The driver answers a wrong map with `CUDA_ERROR_INVALID_VALUE` and nothing more. [`TensorMapSpec::check`] knows the
//! rules of the CUDA driver API reference (`cuTensorMapEncodeTiled`) and says which one is broken.

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};

use crate::device::Gpu;
use crate::driver::check;
use crate::error::GpuError;

/// The element type of a tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapElement {
    /// 8 bits, also for fp8 and signed integers.
    U8,
    /// Unsigned 16 bits.
    U16,
    /// Unsigned 32 bits.
    U32,
    /// Signed 32 bits.
    I32,
    /// Unsigned 64 bits.
    U64,
    /// Signed 64 bits.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Single precision in memory, rounded to tf32 on the way.
    Tf32,
    /// Double precision.
    F64,
}

impl MapElement {
    /// Bytes of one element in memory.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Tf32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::Bf16 | Self::F32 | Self::Tf32 | Self::F64
        )
    }

    fn raw(self) -> CUtensorMapDataType {
        use CUtensorMapDataType as Raw;
        match self {
            Self::U8 => Raw::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            Self::U16 => Raw::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            Self::U32 => Raw::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            Self::I32 => Raw::CU_TENSOR_MAP_DATA_TYPE_INT32,
            Self::U64 => Raw::CU_TENSOR_MAP_DATA_TYPE_UINT64,
            Self::I64 => Raw::CU_TENSOR_MAP_DATA_TYPE_INT64,
            Self::F16 => Raw::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Self::Bf16 => Raw::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            Self::F32 => Raw::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Self::Tf32 => Raw::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
            Self::F64 => Raw::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        }
    }
}

/// How a box is swizzled in shared memory. In bytes, `Bytes128` is `Swizzle<3,4,3>`, `Bytes64` is `Swizzle<2,4,3>`,
/// `Bytes32` is `Swizzle<1,4,3>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapSwizzle {
    /// Not at all.
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl MapSwizzle {
    /// Bytes that the innermost side of a box may have at most; `None` where there is no such limit.
    pub fn span_bytes(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Bytes32 => Some(32),
            Self::Bytes64 => Some(64),
            Self::Bytes128 => Some(128),
        }
    }

    fn raw(self) -> CUtensorMapSwizzle {
        match self {
            Self::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            Self::Bytes32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            Self::Bytes64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            Self::Bytes128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        }
    }
}

/// Interleaving of channels in memory (NC/8HWC8 and NC/16HWC16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interleave {
    /// Plain rows.
    None,
    /// Groups of 16 bytes.
    Bytes16,
    /// Groups of 32 bytes.
    Bytes32,
}

impl Interleave {
    fn raw(self) -> CUtensorMapInterleave {
        match self {
            Self::None => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            Self::Bytes16 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_16B,
            Self::Bytes32 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B,
        }
    }
}

/// How much the level 2 cache fetches around a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum L2Promotion {
    /// What was asked for.
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

impl L2Promotion {
    fn raw(self) -> CUtensorMapL2promotion {
        match self {
            Self::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            Self::Bytes64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            Self::Bytes128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            Self::Bytes256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        }
    }
}

/// An array in global memory and the box that a copy moves. Dimensions are innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapSpec {
    /// The element type.
    pub element: MapElement,
    /// The device address of element 0; a multiple of 16, of 32 with [`Interleave::Bytes32`].
    pub address: u64,
    /// Elements along each of 1 to 5 dimensions, 1 to 2^32 each.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the innermost: multiples of 16 below 2^40.
    pub strides: Vec<u64>,
    /// Elements of the box along each dimension, 1 to 256 each.
    pub box_sizes: Vec<u32>,
    /// Steps in elements along each dimension, 1 to 8 each; empty for all 1.
    pub element_strides: Vec<u32>,
    /// Interleaving in memory.
    pub interleave: Interleave,
    /// Swizzle in shared memory.
    pub swizzle: MapSwizzle,
    /// Promotion of requests in the level 2 cache.
    pub l2_promotion: L2Promotion,
    /// Whether elements outside the array read as NaN; they read as 0 otherwise. Floating-point types only.
    pub nan_outside: bool,
}

impl TensorMapSpec {
    /// A map without dimensions yet: no interleaving, no swizzle, promotion to 128 bytes, zeros outside.
    pub fn new(element: MapElement, address: u64) -> Self {
        Self {
            element,
            address,
            sizes: Vec::new(),
            strides: Vec::new(),
            box_sizes: Vec::new(),
            element_strides: Vec::new(),
            interleave: Interleave::None,
            swizzle: MapSwizzle::None,
            l2_promotion: L2Promotion::Bytes128,
            nan_outside: false,
        }
    }

    /// Whether the driver's documented rules hold.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] naming the first rule that is broken.
    pub fn check(&self) -> Result<(), GpuError> {
        let rank = self.sizes.len();
        let require = |holds: bool, what: &str| {
            if holds {
                Ok(())
            } else {
                Err(GpuError::invalid(format!("a tensor map {what}: {self:?}")))
            }
        };
        require((1..=5).contains(&rank), "has 1 to 5 dimensions")?;
        require(
            self.interleave == Interleave::None || rank >= 3,
            "with interleaving has at least 3 dimensions",
        )?;
        require(
            self.strides.len() + 1 == rank,
            "has one stride less than dimensions",
        )?;
        require(
            self.box_sizes.len() == rank,
            "has a box size for each dimension",
        )?;
        require(
            self.element_strides.is_empty() || self.element_strides.len() == rank,
            "has an element stride for each dimension or none",
        )?;
        let alignment = if self.interleave == Interleave::Bytes32 {
            32
        } else {
            16
        };
        require(
            self.address.is_multiple_of(alignment),
            "is of memory aligned to 16 bytes, 32 when interleaved by 32",
        )?;
        require(
            self.sizes.iter().all(|size| (1..=1 << 32).contains(size)),
            "has sizes from 1 to 2^32",
        )?;
        require(
            self.strides
                .iter()
                .all(|stride| stride.is_multiple_of(alignment) && *stride < 1 << 40),
            "has strides that are multiples of 16 bytes (32 when interleaved by 32) below 2^40",
        )?;
        require(
            self.box_sizes.iter().all(|size| (1..=256).contains(size)),
            "has box sizes from 1 to 256",
        )?;
        require(
            self.element_strides
                .iter()
                .all(|stride| (1..=8).contains(stride)),
            "has element strides from 1 to 8",
        )?;
        let inner = u64::from(self.box_sizes[0]) * self.element.bytes();
        if self.interleave == Interleave::None {
            require(
                inner.is_multiple_of(16),
                "has a box whose innermost side is a multiple of 16 bytes",
            )?;
        }
        require(
            self.swizzle.span_bytes().is_none_or(|span| inner <= span),
            "has a box whose innermost side is no longer than the swizzle",
        )?;
        require(
            self.interleave != Interleave::Bytes32 || self.swizzle == MapSwizzle::Bytes32,
            "interleaved by 32 bytes is swizzled by 32 bytes",
        )?;
        require(
            !self.nan_outside || self.element.is_float(),
            "fills with NaN only if its elements are floating-point",
        )
    }
}

/// An encoded tensor map: 128 bytes, to be passed as a `.param .align 64 .b8 [128]` through `Arg::from(&map)`.
#[derive(Debug, Clone, Copy)]
pub struct TensorMap {
    raw: CUtensorMap,
}

impl TensorMap {
    /// Encodes `spec`; `gpu` shows that there is a driver to do it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] from [`TensorMapSpec::check`], or a failure of the driver.
    pub fn encode(gpu: &Gpu, spec: &TensorMapSpec) -> Result<Self, GpuError> {
        spec.check()?;
        gpu.context.bind()?;
        let ones = vec![1; spec.sizes.len()];
        let steps = if spec.element_strides.is_empty() {
            &ones
        } else {
            &spec.element_strides
        };
        let outside = if spec.nan_outside {
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
        } else {
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
        };
        let mut raw = CUtensorMap { opaque: [0; 16] };
        // SAFETY: every array has as many entries as the rank asks for (`check`); the map goes to a local variable of the
        // alignment that the type demands; the global address is encoded, not read.
        let result = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut raw,
                spec.element.raw(),
                spec.sizes.len() as u32,
                std::ptr::without_provenance_mut(spec.address as usize),
                spec.sizes.as_ptr(),
                spec.strides.as_ptr(),
                spec.box_sizes.as_ptr(),
                steps.as_ptr(),
                spec.interleave.raw(),
                spec.swizzle.raw(),
                spec.l2_promotion.raw(),
                outside,
            )
        };
        check("cuTensorMapEncodeTiled", result)?;
        Ok(Self { raw })
    }

    /// The 128 bytes of the map.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.raw
            .opaque
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> TensorMapSpec {
        TensorMapSpec {
            sizes: vec![100, 50],
            strides: vec![208],
            box_sizes: vec![64, 32],
            swizzle: MapSwizzle::Bytes128,
            ..TensorMapSpec::new(MapElement::F16, 4096)
        }
    }

    #[test]
    fn a_correct_map_passes() {
        assert_eq!(matrix().check(), Ok(()));
        assert_eq!(
            TensorMapSpec {
                element_strides: vec![1, 2],
                nan_outside: true,
                ..matrix()
            }
            .check(),
            Ok(())
        );
    }

    #[test]
    fn every_rule_is_checked() {
        let broken = [
            TensorMapSpec {
                sizes: vec![],
                strides: vec![],
                box_sizes: vec![],
                ..matrix()
            },
            TensorMapSpec {
                sizes: vec![1; 6],
                strides: vec![16; 5],
                box_sizes: vec![64; 6],
                ..matrix()
            },
            TensorMapSpec {
                strides: vec![],
                ..matrix()
            },
            TensorMapSpec {
                box_sizes: vec![64],
                ..matrix()
            },
            TensorMapSpec {
                element_strides: vec![1],
                ..matrix()
            },
            TensorMapSpec {
                address: 4104,
                ..matrix()
            },
            TensorMapSpec {
                sizes: vec![0, 50],
                ..matrix()
            },
            TensorMapSpec {
                sizes: vec![(1 << 32) + 1, 50],
                ..matrix()
            },
            TensorMapSpec {
                strides: vec![200],
                ..matrix()
            },
            TensorMapSpec {
                strides: vec![1 << 40],
                ..matrix()
            },
            TensorMapSpec {
                box_sizes: vec![64, 257],
                ..matrix()
            },
            TensorMapSpec {
                box_sizes: vec![64, 0],
                ..matrix()
            },
            TensorMapSpec {
                element_strides: vec![1, 9],
                ..matrix()
            },
            TensorMapSpec {
                box_sizes: vec![12, 32],
                ..matrix()
            },
            TensorMapSpec {
                box_sizes: vec![72, 32],
                ..matrix()
            },
            TensorMapSpec {
                interleave: Interleave::Bytes16,
                ..matrix()
            },
            TensorMapSpec {
                element: MapElement::U16,
                nan_outside: true,
                ..matrix()
            },
        ];
        for spec in broken {
            assert!(spec.check().is_err(), "{spec:?}");
        }
    }
}
