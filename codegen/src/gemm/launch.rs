//! The launch contract: what a host program needs besides the PTX file.

use super::problem::Gemm;
use crate::ir::{Element, ParamKind};

/// Grid, block and parameters of one launch, with the launches that must come before and after it.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The entry's name.
    pub kernel: String,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The arguments, in the order of the parameters.
    pub arguments: Vec<Argument>,
    /// Launches of other kernels of the same module that come first, in order, such as copies of operands to aligned rows.
    pub before: Vec<Launch>,
    /// Launches that follow, in order, such as the sum of partial sums.
    pub after: Vec<Launch>,
    /// Bytes of device memory that the launches pass data through, aligned to 256; it needs no initial contents.
    pub workspace_bytes: u64,
    /// Buffers beside the product's own, what an epilogue reads and B2 of a dual product: what [`ArgumentValue::Given`] stands for, by name.
    pub inputs: Vec<GivenInput>,
}

/// A buffer that an epilogue reads, or B2 of a dual product, as one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenInput {
    /// Its parameter's name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its rows: m, or 1 for a vector by columns.
    pub rows: u64,
    /// Its columns: n, or 1 for a vector by rows.
    pub columns: u64,
    /// The parameter of its leading dimension, in elements; none for a vector.
    pub leading_dimension: Option<String>,
    /// What its address, and its rows, are multiples of, in bytes.
    pub alignment: u32,
}

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
    /// Its value.
    pub value: ArgumentValue,
}

/// The value of an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArgumentValue {
    /// The address of matrix A.
    A,
    /// The address of matrix B.
    B,
    /// The address of matrix C, read (unless β = 0) and written.
    C,
    /// The address of the bias: m elements (by row) or n (by column) of C's type.
    Bias,
    /// The address of the workspace plus this offset in bytes.
    Workspace(u64),
    /// What the caller gives for the parameter's name: a buffer of [`Launch::inputs`], its leading dimension, or a number of an epilogue.
    Given,
    /// An unsigned integer.
    Int(u64),
    /// A floating-point number.
    Float(f64),
    /// A tensor map, which the driver encodes.
    TensorMap(MapArgument),
}

/// The array of a tensor map and the box that a copy moves: rows of elements, and layers of rows in a batch. With these dimensions, innermost first:
/// `[columns, rows]` elements, `[pitch]` bytes, a box of `[box_columns, box_rows]`; with layers a third dimension and a box of one layer.
///
/// ```
/// use layout_codegen::gemm::mma_sync::WARPGROUP_PLANS;
/// use layout_codegen::gemm::{ArgumentValue, Gemm, Operands, Plan};
///
/// let launch = WARPGROUP_PLANS[0].launch(&Gemm::packed(256, 512, 64, Operands::ALL[0]))?;
/// let launch = launch.expect("something to do");
/// let of_a = launch.arguments.iter().find(|a| a.name == "A").expect("A");
/// let ArgumentValue::TensorMap(map) = of_a.value else { panic!("a tensor map") };
/// assert_eq!((map.rows, map.columns, map.pitch_bytes), (256, 64, 128));
/// assert_eq!((map.box_rows, map.box_columns, map.swizzle_bytes), (128, 64, 128));
/// # Ok::<(), layout_codegen::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapArgument {
    /// Where the array is.
    pub of: MapSource,
    /// The type of its elements.
    pub element: Element,
    /// Elements are rounded to tf32 on the way: the driver's type is `TFLOAT32`, and not `FLOAT32`.
    pub rounded: bool,
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

/// Where the array of a tensor map is.
///
/// ```
/// use layout_codegen::gemm::MapSource;
///
/// assert_ne!(MapSource::A, MapSource::Workspace(0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapSource {
    /// At the address of matrix A.
    A,
    /// At the address of matrix B.
    B,
    /// At the address of matrix C.
    C,
    /// At the address of the buffer that the caller gives for the parameter's name.
    Given,
    /// In the workspace, at this offset in bytes.
    Workspace(u64),
}

impl MapArgument {
    /// Elements along each dimension, innermost first.
    ///
    /// ```
    /// use layout_codegen::gemm::mma_sync::WARPGROUP_PLANS;
    /// use layout_codegen::gemm::{ArgumentValue, Gemm, Operands, Plan};
    ///
    /// let launch = WARPGROUP_PLANS[0].launch(&Gemm::packed(256, 512, 64, Operands::ALL[0]))?;
    /// let maps = launch.iter().flat_map(|l| &l.arguments).filter_map(|a| match a.value {
    ///     ArgumentValue::TensorMap(map) => Some((map.sizes(), map.strides_bytes(), map.box_sizes())),
    ///     _ => None,
    /// });
    /// let of_a = (vec![64, 256], vec![128], vec![64, 128]);
    /// let of_b = (vec![512, 64], vec![1024], vec![64, 64]);
    /// assert_eq!(maps.collect::<Vec<_>>(), [of_a, of_b]);
    /// # Ok::<(), layout_codegen::gemm::PlanError>(())
    /// ```
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
    /// # use layout_codegen::gemm::{MapArgument, MapSource};
    /// # use layout_codegen::ir::Element;
    /// # let map = MapArgument {
    /// #     of: MapSource::A, element: Element::F16, rounded: false, rows: 8, columns: 64, pitch_bytes: 128, layers: Some((3, 1024)),
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
    /// # use layout_codegen::gemm::{MapArgument, MapSource};
    /// # use layout_codegen::ir::Element;
    /// # let map = MapArgument {
    /// #     of: MapSource::A, element: Element::F16, rounded: false, rows: 8, columns: 64, pitch_bytes: 128, layers: Some((3, 1024)),
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
}

impl Launch {
    /// All launches in order: those before, this one, those after.
    pub fn sequence(&self) -> impl Iterator<Item = &Launch> {
        self.before.iter().chain([self]).chain(&self.after)
    }

    /// A launch of one kernel, without a cluster, that needs no other.
    pub(crate) fn single(
        kernel: String,
        grid: [u32; 3],
        threads: u32,
        shared_bytes: u32,
        arguments: Vec<Argument>,
    ) -> Self {
        Self {
            kernel,
            grid,
            block: [threads, 1, 1],
            cluster: [1, 1, 1],
            shared_bytes,
            arguments,
            before: Vec::new(),
            after: Vec::new(),
            workspace_bytes: 0,
            inputs: Vec::new(),
        }
    }

    /// The arguments of a product's kernel: what `special` gives, then the epilogue's buffers, then what the problem says. The rest is the epilogue's,
    /// and given by the caller.
    pub(crate) fn arguments(
        problem: &Gemm,
        inputs: &[GivenInput],
        parameters: Vec<(String, ParamKind)>,
        special: impl Fn(&str) -> Option<ArgumentValue>,
    ) -> Vec<Argument> {
        let value = |name: &str| {
            let given = inputs.iter().any(|input| input.name == name);
            special(name)
                .or_else(|| given.then_some(ArgumentValue::Given))
                .or_else(|| Self::gemm_argument(problem, name))
                .unwrap_or(ArgumentValue::Given)
        };
        let parameters = parameters.into_iter();
        parameters
            .map(|(name, kind)| Argument {
                value: value(&name),
                name,
                kind,
            })
            .collect()
    }

    /// The value of each parameter that GEMM kernels have, by name.
    fn gemm_argument(problem: &Gemm, name: &str) -> Option<ArgumentValue> {
        Some(match name {
            "A" => ArgumentValue::A,
            "B" => ArgumentValue::B,
            "C" => ArgumentValue::C,
            "bias" => ArgumentValue::Bias,
            "m" => ArgumentValue::Int(problem.m),
            "n" => ArgumentValue::Int(problem.n),
            "k" => ArgumentValue::Int(problem.k),
            "lda" => ArgumentValue::Int(problem.lda),
            "ldb" => ArgumentValue::Int(problem.ldb),
            "ldc" => ArgumentValue::Int(problem.ldc),
            "alpha" => ArgumentValue::Float(problem.alpha),
            "beta" => ArgumentValue::Float(problem.beta),
            "strideA" => ArgumentValue::Int(problem.batch.strides[0]),
            "strideB" => ArgumentValue::Int(problem.batch.strides[1]),
            "strideC" => ArgumentValue::Int(problem.batch.strides[2]),
            _ => return None,
        })
    }
}
