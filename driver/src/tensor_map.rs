//! Tensor maps: `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` write the emulator's form of them.

use std::ffi::{c_int, c_uint};

use ptx_emulator::{
    Im2col, TENSOR_MAP_BYTES, TensorElement, TensorInterleave, TensorMap, TensorSwizzle,
};

use crate::c::{Done, In, Out, api};
use crate::status::{INVALID_VALUE, NOT_SUPPORTED, Status};

/// The array that a map is of, by the API's arguments.
struct Array {
    kind: c_int,
    rank: c_uint,
    address: u64,
    sizes: In<u64>,
    strides: In<u64>,
    steps: In<u32>,
}

impl Array {
    /// The map but for its box; numbers are the API's, in the order of its enumerations.
    fn map(&self, [interleave, swizzle, fill]: [c_int; 3]) -> Result<TensorMap, Status> {
        use TensorElement as E;
        let elements = [
            E::U8,
            E::U16,
            E::U32,
            E::S32,
            E::U64,
            E::S64,
            E::F16,
            E::F32,
            E::F64,
            E::Bf16,
            E::F32Ftz,
            E::Tf32,
            E::Tf32Ftz,
        ];
        let kind = usize::try_from(self.kind).map_err(|_| INVALID_VALUE)?;
        let element = match elements.get(kind) {
            Some(element) => *element,
            None if kind < 16 => {
                crate::stubs::say("tensor maps of 4-bit and 6-bit elements");
                return Err(NOT_SUPPORTED);
            }
            None => return Err(INVALID_VALUE),
        };
        let rank = self.rank as usize;
        if !(1..=5).contains(&rank) {
            return Err(INVALID_VALUE);
        }
        Ok(TensorMap {
            sizes: self.sizes.list(rank)?,
            strides: self.strides.list(rank - 1)?,
            element_strides: self.steps.list(rank)?,
            swizzle: match swizzle {
                0 => TensorSwizzle::None,
                1 => TensorSwizzle::Bytes32,
                2 => TensorSwizzle::Bytes64,
                3 => TensorSwizzle::Bytes128,
                _ => {
                    crate::stubs::say("tensor maps with swizzles of 32-byte atoms");
                    return Err(NOT_SUPPORTED);
                }
            },
            interleave: match interleave {
                0 => TensorInterleave::None,
                1 => TensorInterleave::Bytes16,
                2 => TensorInterleave::Bytes32,
                _ => return Err(INVALID_VALUE),
            },
            nan_outside: fill != 0,
            ..TensorMap::new(element, self.address)
        })
    }
}

fn put(out: Out<[u8; TENSOR_MAP_BYTES]>, map: &TensorMap) -> Done {
    let encoded = map.encode().map_err(|error| {
        eprintln!("tilewright: {error}");
        INVALID_VALUE
    })?;
    out.set(encoded)
}

api! {
    fn cuTensorMapEncodeTiled(out: Out<[u8; TENSOR_MAP_BYTES]>, kind: c_int, rank: c_uint, address: u64, sizes: In<u64>, strides: In<u64>, boxes: In<u32>, steps: In<u32>, interleave: c_int, swizzle: c_int, _promotion: c_int, fill: c_int) {
        let array = Array { kind, rank, address, sizes, strides, steps };
        let mut map = array.map([interleave, swizzle, fill])?;
        map.box_sizes = boxes.list(rank as usize)?;
        put(out, &map)
    }

    fn cuTensorMapEncodeIm2col(out: Out<[u8; TENSOR_MAP_BYTES]>, kind: c_int, rank: c_uint, address: u64, sizes: In<u64>, strides: In<u64>, lower: In<c_int>, upper: In<c_int>, channels: c_uint, pixels: c_uint, steps: In<u32>, interleave: c_int, swizzle: c_int, _promotion: c_int, fill: c_int) {
        let array = Array { kind, rank, address, sizes, strides, steps };
        let mut map = array.map([interleave, swizzle, fill])?;
        let corner = |corner: In<c_int>| {
            let all = corner.list((rank as usize).saturating_sub(2))?;
            let small = all.into_iter().map(i16::try_from).collect::<Result<Vec<_>, _>>();
            small.map_err(|_| INVALID_VALUE)
        };
        map.im2col = Some(Im2col { lower: corner(lower)?, upper: corner(upper)?, channels, pixels });
        put(out, &map)
    }
}
