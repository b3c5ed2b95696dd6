//! A kernel that was compiled into the program: PTX text, launch geometry and parameter layout as constants.
//!
//! The `kernel!` macro expands to a [`CompiledKernel`]. Everything in it was computed when the program was built, from the same plan that
//! the command uses, after the plan's proofs; what is left for run time is to load the text, to compute the grid from m and n, and to
//! put the arguments at their offsets.

use layout_codegen::Arch;
use layout_codegen::ir::ParamKind;
use layout_codegen::tensor_map::MapArgument;

use super::scheduler::GRID_YZ;
use super::{
    ArgumentValue, CompiledMap, Gemm, Launch, MapSource, Operands, PlanError, Specialized,
    TileSchedule,
};

/// A parameter of a [`CompiledKernel`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompiledParam {
    /// Its name: `A`, `B`, `C`, `m`, `n`, `k`, `lda`, `ldb`, `ldc`, `alpha`, `beta`.
    pub name: &'static str,
    /// Its type.
    pub kind: ParamKind,
    /// Its byte in the parameter buffer: each parameter is aligned to its size.
    pub offset: u32,
}

/// A GEMM kernel as a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompiledKernel {
    /// The plan that it comes from.
    pub plan: &'static str,
    /// The transposes of A and B: `nn`, `nt`, `tn` or `tt`.
    pub trans: &'static str,
    /// The architecture that the text is for, such as `sm_90`.
    pub arch: &'static str,
    /// The complete PTX module.
    pub ptx: &'static str,
    /// The name of its entry.
    pub entry: &'static str,
    /// Threads along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// Rows and columns of C that a block computes, and the step along k.
    pub tile: [u32; 3],
    /// The parameters, in order.
    pub params: &'static [CompiledParam],
    /// What a host encodes as the parameters that are tensor maps, by their names; none for a kernel that does not copy by TMA.
    pub maps: &'static [(&'static str, CompiledMap)],
    /// The greatest m and the greatest n.
    pub limits: [u64; 2],
    /// What every leading dimension must be a multiple of, in elements. More than 1 says as well that A, B and C are to lie at multiples
    /// of as many bytes as that many elements of A have.
    pub ld_multiple: u32,
    /// Which tiles a block computes.
    pub tiles: TileSchedule,
}

impl CompiledKernel {
    /// Blocks along x, y, z for an m×n matrix C; none if there is nothing to launch (m or n is 0) or a size is beyond the kernel's
    /// [`limits`](Self::limits).
    pub const fn grid(&self, m: u64, n: u64) -> Option<[u32; 3]> {
        if m == 0 || n == 0 || m > self.limits[0] || n > self.limits[1] {
            return None;
        }
        let rows = m.div_ceil(self.tile[0] as u64);
        let columns = n.div_ceil(self.tile[1] as u64);
        let [x, y, z] = self.tiles.blocks([rows, columns], 1);
        // Whole clusters.
        let [cx, cy, cz] = self.cluster;
        Some([
            (x as u32).next_multiple_of(cx),
            (y as u32).next_multiple_of(cy),
            (z as u32).next_multiple_of(cz),
        ])
    }

    /// Bytes of the parameter buffer.
    pub const fn params_bytes(&self) -> u32 {
        match self.params {
            [.., last] => last.offset + last.kind.bytes(),
            [] => 0,
        }
    }

    /// The tensor map of a parameter for a problem of `m`, `n` and `k`: what a host encodes, of the array at the matrix's address. `lds` are the leading
    /// dimensions of A, B and C. None for a parameter that is not a tensor map.
    ///
    /// ```
    /// use tilewright_kernels::gemm::{CompiledKernel, CompiledMap, MapSource, Mode, TileSchedule};
    /// use layout_codegen::ir::Element;
    ///
    /// // As `kernel!(plan = "wgmma-f16-128x256x64", trans = nn, arch = sm_90)` writes it, in part.
    /// const OF_A: CompiledMap = CompiledMap {
    ///     of: MapSource::A, element: Element::F16, rounded: false, modes: [Mode::K, Mode::M], box_sizes: [64, 128], swizzle_bytes: 128,
    /// };
    /// const GEMM: CompiledKernel = CompiledKernel {
    ///     plan: "wgmma-f16-128x256x64", trans: "nn", arch: "sm_90", ptx: "", entry: "", block: [384, 1, 1], cluster: [1, 1, 1],
    ///     shared_bytes: 0, tile: [128, 256, 64], params: &[], maps: &[("A", OF_A)], limits: [1 << 30; 2], ld_multiple: 8,
    ///     tiles: TileSchedule::Groups,
    /// };
    /// let map = GEMM.tensor_map("A", [1000, 512, 64], [64, 512, 512]).expect("A is copied by TMA").encoding();
    /// assert_eq!((map.sizes, map.strides_bytes, map.box_sizes), (vec![64, 1000], vec![128], vec![64, 128]));
    /// assert_eq!(GEMM.tensor_map("C", [1000, 512, 64], [64, 512, 512]), None);
    /// ```
    pub fn tensor_map(&self, name: &str, sizes: [u64; 3], lds: [u64; 3]) -> Option<MapArgument> {
        let (_, map) = self.maps.iter().find(|(known, _)| *known == name)?;
        at(map, sizes, lds)
    }

    /// The parameter of a name.
    pub fn param(&self, name: &str) -> Option<&'static CompiledParam> {
        self.params.iter().find(|p| p.name == name)
    }
}

/// What the `kernel!` macro writes down: a [`CompiledKernel`] whose texts are not yet constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelParts {
    /// [`CompiledKernel::ptx`]
    pub ptx: String,
    /// [`CompiledKernel::entry`]
    pub entry: String,
    /// [`CompiledKernel::block`]
    pub block: [u32; 3],
    /// [`CompiledKernel::cluster`]
    pub cluster: [u32; 3],
    /// [`CompiledKernel::shared_bytes`]
    pub shared_bytes: u32,
    /// [`CompiledKernel::tile`]
    pub tile: [u32; 3],
    /// Names, types and offsets of [`CompiledKernel::params`].
    pub params: Vec<(String, ParamKind, u32)>,
    /// [`CompiledKernel::maps`]
    pub maps: Vec<(String, CompiledMap)>,
    /// [`CompiledKernel::limits`]
    pub limits: [u64; 2],
    /// [`CompiledKernel::ld_multiple`]
    pub ld_multiple: u32,
    /// [`CompiledKernel::tiles`]
    pub tiles: TileSchedule,
}

/// A map for a problem, if it is of a matrix of the product.
fn at(map: &CompiledMap, sizes: [u64; 3], [lda, ldb, _]: [u64; 3]) -> Option<MapArgument> {
    let ld = match map.of {
        MapSource::A => lda,
        MapSource::B => ldb,
        MapSource::Given | MapSource::Workspace(_) => return None,
    };
    Some(map.at(sizes, ld))
}

/// The tensor maps of a launch, by the names of their parameters.
fn maps_of(launch: &Launch) -> impl Iterator<Item = (&str, MapSource, &MapArgument)> {
    launch.arguments.iter().filter_map(|a| match &a.value {
        ArgumentValue::TensorMap(of, map) => Some((a.name.as_str(), *of, map)),
        _ => None,
    })
}

/// Emits the kernel of a configuration and reads its launch contract for problems of every size.
///
/// # Errors
///
/// Those of [`Specialized::emit`], and [`PlanError::GridNotConstant`] for a kernel whose grid is not the one that [`CompiledKernel::grid`]
/// computes.
pub fn compile(
    kernel: &Specialized,
    operands: Operands,
    arch: Arch,
) -> Result<KernelParts, PlanError> {
    let emitted = kernel.emit(operands, arch)?;
    let refused = || PlanError::GridNotConstant {
        plan: kernel.name(),
    };
    let launch = |m: u64, n: u64, multiple: u64| {
        let mut problem = Gemm::packed(m, n, 1, operands);
        for ld in [&mut problem.lda, &mut problem.ldb, &mut problem.ldc] {
            *ld = ld.next_multiple_of(multiple);
        }
        kernel.launch(&problem)
    };
    let multiple = (0..=7)
        .map(|bit| 1u64 << bit)
        .find(|&multiple| launch(1, 1, multiple).is_ok())
        .ok_or_else(refused)?;
    let launch = |m, n| launch(m, n, multiple);
    let first = launch(1, 1)?.ok_or_else(refused)?;
    if !first.before.is_empty() || !first.after.is_empty() {
        return Err(PlanError::Unsupported {
            plan: kernel.name(),
            what: format!(
                "{operands} in a kernel that is compiled in, with a launch before or after it"
            ),
            instead: format!(
                "take {}: other operands are transposed first",
                as_they_lie(kernel)
            ),
        });
    }
    let limits = [
        greatest(|m| launch(m, 1).is_ok()),
        greatest(|n| launch(1, n).is_ok()),
    ];
    let mut params = Vec::new();
    let mut offset = 0u32;
    for argument in &first.arguments {
        offset = offset.next_multiple_of(argument.kind.alignment());
        params.push((argument.name.clone(), argument.kind, offset));
        offset += argument.kind.bytes();
    }
    let parts = KernelParts {
        ptx: emitted.ptx,
        entry: emitted.kernel,
        block: first.block,
        cluster: first.cluster,
        shared_bytes: first.shared_bytes,
        tile: kernel.tile(),
        params,
        maps: maps_of(&first)
            .map(|(name, of, map)| (name.to_owned(), CompiledMap::of(of, map)))
            .collect(),
        limits,
        ld_multiple: multiple as u32,
        tiles: kernel.tiles(),
    };
    if parts.launches_as(launch)? {
        Ok(parts)
    } else {
        Err(refused())
    }
}

impl KernelParts {
    /// Whether the constants are the plan's own launch: at sizes around everything that turns over, and at some in between.
    fn launches_as(
        &self,
        launch: impl Fn(u64, u64) -> Result<Option<Launch>, PlanError>,
    ) -> Result<bool, PlanError> {
        let shape = self.shape();
        let [tile_m, tile_n, _] = self.tile;
        let around = |tile: u64, limit: u64| {
            let turn = tile.saturating_mul(GRID_YZ);
            let mut sizes = vec![1, limit - 1, limit, limit / 3];
            for at in [tile, 7 * tile, 100 * tile, turn, turn.saturating_mul(3)] {
                sizes.extend([at - 1, at, at.saturating_add(1)]);
            }
            sizes.retain(|s| (1..=limit).contains(s));
            sizes
        };
        for m in around(tile_m.into(), self.limits[0]) {
            for n in around(tile_n.into(), self.limits[1]) {
                let Some(own) = launch(m, n)? else {
                    return Ok(false);
                };
                let sizes = [m, n, 1];
                let lds = own.leading_dimensions();
                let maps = self.maps.iter();
                let maps = maps.map(|(name, map)| Some((name.as_str(), at(map, sizes, lds)?)));
                let own_maps = maps_of(&own).map(|(name, _, map)| Some((name, *map)));
                let same = shape.grid(m, n) == Some(own.grid)
                    && maps.eq(own_maps)
                    && own.block == self.block
                    && own.cluster == self.cluster
                    && own.shared_bytes == self.shared_bytes
                    && own.kernel == self.entry;
                if !same {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The geometry alone.
    fn shape(&self) -> CompiledKernel {
        CompiledKernel {
            plan: "",
            trans: "",
            arch: "",
            ptx: "",
            entry: "",
            block: self.block,
            cluster: self.cluster,
            shared_bytes: self.shared_bytes,
            tile: self.tile,
            params: &[],
            maps: &[],
            limits: self.limits,
            ld_multiple: self.ld_multiple,
            tiles: self.tiles,
        }
    }
}

impl Launch {
    /// The leading dimensions that the kernel is told, of A, B and C.
    fn leading_dimensions(&self) -> [u64; 3] {
        ["lda", "ldb", "ldc"].map(|name| {
            let argument = self.arguments.iter().find(|a| a.name == name);
            argument.map_or(0, |a| match a.value {
                ArgumentValue::Int(value) => value,
                _ => 0,
            })
        })
    }
}

/// The greatest size from 1 up that is allowed, of sizes that are allowed up to some limit.
fn greatest(allowed: impl Fn(u64) -> bool) -> u64 {
    let (mut good, mut bad) = (1, 1u64 << 62);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if allowed(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// The transposes that a kernel takes without another before it.
fn as_they_lie(kernel: &Specialized) -> String {
    let all = Operands::ALL.into_iter();
    let all = all.filter(|&operands| kernel.transposed(operands) == [false; 2]);
    all.map(|operands| operands.to_string())
        .collect::<Vec<_>>()
        .join(" or ")
}
