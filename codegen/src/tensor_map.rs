//! Tensor maps: what a host gives `cuTensorMapEncodeTiled` for a parameter of a kernel that copies by TMA.
//!
//! [`MapArgument`] is the array and the box of one launch, and [`MapEncoding`] is what the driver's function takes, constants of `cuda.h` included. All hosts read
//! the second. The kernel's layouts decide it, so that a host chooses nothing: other boxes or another swizzle would put other elements where the kernel reads.
//!
//! ```text
//! A of 256 × 64 halves, boxes of 128 × 64        sizes [64, 256]   strides [128]   box [64, 128]   swizzle 128 bytes
//! ```

use crate::ir::Element;

/// Bytes of a cache line of the level 2 cache.
const LINE: u64 = 128;

/// The array of a tensor map and the box that a copy moves: rows of elements, and layers of rows in a batch. With these dimensions, innermost first:
/// `[columns, rows]` elements, `[pitch]` bytes, a box of `[box_columns, box_rows]`; with layers a third dimension and a box of one layer.
///
/// ```
/// use layout_codegen::ir::Element;
/// use layout_codegen::tensor_map::MapArgument;
///
/// // 256 rows of 64 halves, boxes of 128 rows.
/// let map = MapArgument {
///     element: Element::F16, rounded: false, dimensions: ["columns", "rows"], rows: 256, columns: 64, pitch_bytes: 128, layers: None,
///     box_rows: 128, box_columns: 64, swizzle_bytes: 128,
/// };
/// assert_eq!((map.sizes(), map.strides_bytes(), map.box_sizes()), (vec![64, 256], vec![128], vec![64, 128]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapArgument {
    /// The type of its elements.
    pub element: Element,
    /// Elements are rounded to tf32 on the way: the driver's type is `TFLOAT32`, and not `FLOAT32`.
    pub rounded: bool,
    /// The names of the dimensions of a layer, innermost first: the index along a row, and the row.
    pub dimensions: [&'static str; 2],
    /// Rows.
    pub rows: u64,
    /// Elements of a row.
    pub columns: u64,
    /// Bytes from row to row: a multiple of 16.
    pub pitch_bytes: u64,
    /// Layers and bytes from one to the next, a multiple of 16; none outside of a batch.
    pub layers: Option<(u64, u64)>,
    /// Rows of the box.
    pub box_rows: u32,
    /// Columns of the box.
    pub box_columns: u32,
    /// The period of the swizzle along a row, in bytes.
    pub swizzle_bytes: u32,
}

impl MapArgument {
    /// Elements along each dimension, innermost first. [`MapArgument`] has an example.
    pub fn sizes(&self) -> Vec<u64> {
        let layers = self.layers.map(|(count, _)| count);
        [self.columns, self.rows]
            .into_iter()
            .chain(layers)
            .collect()
    }

    /// Bytes from one index to the next of each dimension but the innermost.
    ///
    /// ```
    /// # use layout_codegen::tensor_map::MapArgument;
    /// # use layout_codegen::ir::Element;
    /// # let map = MapArgument {
    /// #     element: Element::F16, rounded: false, dimensions: ["columns", "rows"], rows: 8, columns: 64, pitch_bytes: 128, layers: Some((3, 1024)),
    /// #     box_rows: 8, box_columns: 64, swizzle_bytes: 128,
    /// # };
    /// // 3 layers of 8 rows of 128 bytes.
    /// assert_eq!(map.strides_bytes(), [128, 1024]);
    /// ```
    pub fn strides_bytes(&self) -> Vec<u64> {
        let layers = self.layers.map(|(_, stride)| stride);
        [self.pitch_bytes].into_iter().chain(layers).collect()
    }

    /// Elements of the box along each dimension: it has one layer.
    ///
    /// ```
    /// # use layout_codegen::tensor_map::MapArgument;
    /// # use layout_codegen::ir::Element;
    /// # let map = MapArgument {
    /// #     element: Element::F16, rounded: false, dimensions: ["columns", "rows"], rows: 8, columns: 64, pitch_bytes: 128, layers: Some((3, 1024)),
    /// #     box_rows: 8, box_columns: 64, swizzle_bytes: 128,
    /// # };
    /// assert_eq!(map.box_sizes(), [64, 8, 1]);
    /// ```
    pub fn box_sizes(&self) -> Vec<u32> {
        let layers = self.layers.map(|_| 1);
        [self.box_columns, self.box_rows]
            .into_iter()
            .chain(layers)
            .collect()
    }

    /// What `cuTensorMapEncodeTiled` takes beside the address.
    ///
    /// ```
    /// # use layout_codegen::ir::Element;
    /// # use layout_codegen::tensor_map::{MapArgument, MapType};
    /// # let map = MapArgument {
    /// #     element: Element::F16, rounded: false, dimensions: ["columns", "rows"], rows: 256, columns: 64, pitch_bytes: 128, layers: None,
    /// #     box_rows: 128, box_columns: 64, swizzle_bytes: 128,
    /// # };
    /// let encoding = map.encoding();
    /// assert_eq!((encoding.data_type, encoding.swizzle_bytes), (MapType::U16, 128));
    /// // Rows that begin at a cache line are fetched in whole lines; others only as far as they are asked for.
    /// assert_eq!(encoding.l2_promotion_bytes, 256);
    /// assert_eq!(MapArgument { pitch_bytes: 144, ..map }.encoding().l2_promotion_bytes, 0);
    /// ```
    pub fn encoding(&self) -> MapEncoding {
        let sizes = self.sizes();
        // A row that begins within a line would fetch pieces of two: at 4072³ in bf16 with clusters an H100 takes 0.217 ms with it and 0.195 without.
        let in_lines = self.pitch_bytes.is_multiple_of(LINE);
        MapEncoding {
            data_type: match self.element.bytes() {
                _ if self.rounded => MapType::Tf32,
                1 => MapType::U8,
                2 => MapType::U16,
                4 => MapType::U32,
                _ => MapType::U64,
            },
            element_strides: vec![1; sizes.len()],
            sizes,
            strides_bytes: self.strides_bytes(),
            box_sizes: self.box_sizes(),
            swizzle_bytes: self.swizzle_bytes,
            l2_promotion_bytes: if in_lines { 256 } else { 0 },
        }
    }
}

/// A constant of `cuda.h`.
///
/// ```
/// use layout_codegen::tensor_map::MapType;
///
/// let constant = MapType::Tf32.constant();
/// assert_eq!((constant.name, constant.value), ("CU_TENSOR_MAP_DATA_TYPE_TFLOAT32", 11));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DriverConstant {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
}

/// The element type of a tensor map. TMA moves bits, so that the unsigned integer of the same width stands for halves, 8-bit floats and the rest; only
/// rounding to tf32 needs a type of its own.
///
/// ```
/// use layout_codegen::tensor_map::MapType;
///
/// assert_eq!(MapType::U16.constant().name, "CU_TENSOR_MAP_DATA_TYPE_UINT16");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MapType {
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// Single precision in memory, rounded to tf32 on the way.
    Tf32,
}

impl MapType {
    /// Its `CUtensorMapDataType`.
    pub const fn constant(self) -> DriverConstant {
        let (name, value) = match self {
            MapType::U8 => ("CU_TENSOR_MAP_DATA_TYPE_UINT8", 0),
            MapType::U16 => ("CU_TENSOR_MAP_DATA_TYPE_UINT16", 1),
            MapType::U32 => ("CU_TENSOR_MAP_DATA_TYPE_UINT32", 2),
            MapType::U64 => ("CU_TENSOR_MAP_DATA_TYPE_UINT64", 4),
            MapType::Tf32 => ("CU_TENSOR_MAP_DATA_TYPE_TFLOAT32", 11),
        };
        DriverConstant { name, value }
    }
}

/// What `cuTensorMapEncodeTiled` takes beside the place of the result and the address of the array, a multiple of 16. Dimensions are innermost first;
/// nothing is interleaved, and elements outside of the array read as zeros. [`MapArgument::encoding`] makes one and shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapEncoding {
    /// The type of elements.
    pub data_type: MapType,
    /// Elements along each dimension, as many as the rank.
    pub sizes: Vec<u64>,
    /// Bytes from one index to the next of each dimension but the innermost.
    pub strides_bytes: Vec<u64>,
    /// Elements of the box along each dimension.
    pub box_sizes: Vec<u32>,
    /// Steps in elements along each dimension.
    pub element_strides: Vec<u32>,
    /// The period of the swizzle along a row of the box: 32, 64 or 128 bytes, or 0 without.
    pub swizzle_bytes: u32,
    /// What the level 2 cache fetches at once: 64, 128 or 256 bytes, or 0 for what was asked for.
    pub l2_promotion_bytes: u32,
}

impl MapEncoding {
    /// The constants of `cuda.h` among the arguments, in the function's order, each under its name in the launch contract.
    ///
    /// ```
    /// use layout_codegen::tensor_map::{MapEncoding, MapType};
    ///
    /// let encoding = MapEncoding {
    ///     data_type: MapType::U16, sizes: vec![64, 256], strides_bytes: vec![128], box_sizes: vec![64, 128],
    ///     element_strides: vec![1, 1], swizzle_bytes: 128, l2_promotion_bytes: 256,
    /// };
    /// let values = encoding.constants().map(|(key, constant)| (key, constant.value));
    /// assert_eq!(values, [("data_type", 1), ("interleave", 0), ("swizzle", 3), ("l2_promotion", 3), ("oob_fill", 0)]);
    /// ```
    pub fn constants(&self) -> [(&'static str, DriverConstant); 5] {
        let named = |name, value| DriverConstant { name, value };
        let swizzle = match self.swizzle_bytes {
            32 => named("CU_TENSOR_MAP_SWIZZLE_32B", 1),
            64 => named("CU_TENSOR_MAP_SWIZZLE_64B", 2),
            128 => named("CU_TENSOR_MAP_SWIZZLE_128B", 3),
            _ => named("CU_TENSOR_MAP_SWIZZLE_NONE", 0),
        };
        let promotion = match self.l2_promotion_bytes {
            64 => named("CU_TENSOR_MAP_L2_PROMOTION_L2_64B", 1),
            128 => named("CU_TENSOR_MAP_L2_PROMOTION_L2_128B", 2),
            256 => named("CU_TENSOR_MAP_L2_PROMOTION_L2_256B", 3),
            _ => named("CU_TENSOR_MAP_L2_PROMOTION_NONE", 0),
        };
        let interleave = named("CU_TENSOR_MAP_INTERLEAVE_NONE", 0);
        let fill = named("CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE", 0);
        [
            ("data_type", self.data_type.constant()),
            ("interleave", interleave),
            ("swizzle", swizzle),
            ("l2_promotion", promotion),
            ("oob_fill", fill),
        ]
    }
}
