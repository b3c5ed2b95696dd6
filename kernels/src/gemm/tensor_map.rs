//! Tensor maps of the matrices of a product: of which matrix each is, and what holds for every problem that a kernel takes.

use layout_codegen::ir::Element;
use layout_codegen::tensor_map::MapArgument;

/// Where the array of a tensor map is.
///
/// ```
/// use tilewright_kernels::gemm::MapSource;
///
/// assert_ne!(MapSource::A, MapSource::Workspace(0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MapSource {
    /// At the address of matrix A.
    A,
    /// At the address of matrix B.
    B,
    /// At the address of the buffer that the caller gives for the parameter's name.
    Given,
    /// In the workspace, at this offset in bytes.
    Workspace(u64),
}

/// A mode of a product: C is M×N, and the sums run along K.
///
/// ```
/// use tilewright_kernels::gemm::Mode;
///
/// assert_eq!([Mode::M, Mode::N, Mode::K].map(|mode| mode.of([128, 256, 64])), [128, 256, 64]);
/// assert_eq!(Mode::K.name(), "k");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Rows of C.
    M,
    /// Columns of C.
    N,
    /// Products of a sum.
    K,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::M, Mode::N, Mode::K];

    /// Its size, of m, n and k.
    pub const fn of(self, [m, n, k]: [u64; 3]) -> u64 {
        match self {
            Mode::M => m,
            Mode::N => n,
            Mode::K => k,
        }
    }

    /// Its name in the launch contract.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::M => "m",
            Mode::N => "n",
            Mode::K => "k",
        }
    }
}

/// What of a tensor map holds for every problem that a kernel takes: all but the sizes and the distance of rows.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::gemm::{Config, MapSource, Mode, Operands, compile};
///
/// let config: Config = "wgmma-f16-128x256x64".parse()?;
/// let kernel = compile(&config.kernel(), Operands::ALL[0], Arch(90))?;
/// let map = kernel.maps.iter().find(|(name, _)| name == "A").expect("A is copied by TMA").1;
/// assert_eq!((map.of, map.modes, map.box_sizes), (MapSource::A, [Mode::K, Mode::M], [64, 128]));
/// // A of 256 × 64 halves whose rows are 96 elements apart.
/// let encoding = map.at([256, 512, 64], 96).encoding();
/// assert_eq!((encoding.sizes, encoding.strides_bytes), (vec![64, 256], vec![192]));
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompiledMap {
    /// Where the array is.
    pub of: MapSource,
    /// The type of its elements.
    pub element: Element,
    /// Elements are rounded to tf32 on the way.
    pub rounded: bool,
    /// The modes of the product that run along a row and from row to row: the dimensions, innermost first.
    pub modes: [Mode; 2],
    /// Elements of the box along each dimension.
    pub box_sizes: [u32; 2],
    /// The period of the swizzle along a row, in bytes.
    pub swizzle_bytes: u32,
}

impl CompiledMap {
    /// What of a map holds for every problem.
    pub(crate) fn of(of: MapSource, map: &MapArgument) -> Self {
        Self {
            of,
            element: map.element,
            rounded: map.rounded,
            modes: map.dimensions.map(|name| {
                Mode::ALL
                    .into_iter()
                    .find(|mode| mode.name() == name)
                    .unwrap_or(Mode::K)
            }),
            box_sizes: [map.box_columns, map.box_rows],
            swizzle_bytes: map.swizzle_bytes,
        }
    }

    /// The map for a problem of `m`, `n`, `k`, of a matrix whose rows are `ld` elements apart.
    pub const fn at(&self, sizes: [u64; 3], ld: u64) -> MapArgument {
        // An array has at least one element; of one without, nothing is copied.
        const fn some(size: u64) -> u64 {
            if size == 0 { 1 } else { size }
        }
        let [columns, rows] = self.modes;
        MapArgument {
            element: self.element,
            rounded: self.rounded,
            dimensions: [columns.name(), rows.name()],
            rows: some(rows.of(sizes)),
            columns: some(columns.of(sizes)),
            pitch_bytes: some(ld) * self.element.bytes() as u64,
            layers: None,
            box_rows: self.box_sizes[1],
            box_columns: self.box_sizes[0],
            swizzle_bytes: self.swizzle_bytes,
        }
    }
}
