//! A kernel that was compiled into the program: PTX text, launch geometry and parameter layout as constants.
//!
//! The `kernel!` macro expands to a [`CompiledKernel`]. Everything in it was computed when the program was built, from the same plan that
//! the command uses, after the plan's proofs; what is left for run time is to load the text, to compute the grid from m and n, and to
//! put the arguments at their offsets.

use super::{Arch, Gemm, Operands, Plan, PlanError};
use crate::ptx::ParamKind;

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
    /// The greatest m, n, k and leading dimension.
    pub limit: u64,
    /// Blocks along y; what is more goes along z.
    pub grid_y: u32,
}

impl CompiledKernel {
    /// Blocks along x, y, z for an m×n matrix C; none if there is nothing to launch (m or n is 0) or a size is beyond the kernel's
    /// [`limit`](Self::limit).
    pub const fn grid(&self, m: u64, n: u64) -> Option<[u32; 3]> {
        if m == 0 || n == 0 || m > self.limit || n > self.limit {
            return None;
        }
        let x = n.div_ceil(self.tile[1] as u64);
        let y = m.div_ceil(self.tile[0] as u64);
        let along_y = if y < self.grid_y as u64 {
            y
        } else {
            self.grid_y as u64
        };
        Some([
            x as u32,
            along_y as u32,
            y.div_ceil(self.grid_y as u64) as u32,
        ])
    }

    /// Bytes of the parameter buffer.
    pub const fn params_bytes(&self) -> u32 {
        match self.params {
            [.., last] => last.offset + last.kind.bytes(),
            [] => 0,
        }
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
    /// [`CompiledKernel::limit`]
    pub limit: u64,
    /// [`CompiledKernel::grid_y`]
    pub grid_y: u32,
}

/// Emits `plan` and reads its launch contract for problems of every size.
///
/// # Errors
///
/// Those of [`Plan::emit`], and [`PlanError::GridNotConstant`] for a plan whose grid is not the one that [`CompiledKernel::grid`]
/// computes.
pub fn compile(plan: &dyn Plan, operands: Operands, arch: Arch) -> Result<KernelParts, PlanError> {
    let emitted = plan.emit(operands, arch)?;
    let refused = || PlanError::GridNotConstant { plan: plan.name() };
    let launch = |m, n| plan.launch(&Gemm::packed(m, n, 1, operands));
    let limit = greatest(|size| launch(size, size).is_ok());
    let first = launch(1, 1)?.ok_or_else(refused)?;
    let (tile_m, tile_n, tile_k) = plan.tile();
    let tall = launch(limit, 1)?.ok_or_else(refused)?;
    let grid_y = if tall.grid[2] > 1 {
        tall.grid[1]
    } else {
        u32::MAX
    };
    let mut params = Vec::new();
    let mut offset = 0u32;
    for argument in &first.arguments {
        offset = offset.next_multiple_of(argument.kind.bytes());
        params.push((argument.name.clone(), argument.kind, offset));
        offset += argument.kind.bytes();
    }
    let parts = KernelParts {
        ptx: emitted.ptx,
        entry: emitted.kernel,
        block: first.block,
        cluster: first.cluster,
        shared_bytes: first.shared_bytes,
        tile: [tile_m, tile_n, tile_k],
        params,
        limit,
        grid_y,
    };
    // The constants are the plan's own launch wherever either turns over.
    let shape = parts.shape();
    let step = u64::from(tile_m.max(tile_n));
    let rows = u64::from(tile_m).saturating_mul(grid_y.into());
    let sizes = [
        1,
        step - 1,
        step,
        step + 1,
        7 * step,
        rows,
        rows.saturating_add(1),
        limit - 1,
        limit,
    ];
    for m in sizes.into_iter().filter(|&s| (1..=limit).contains(&s)) {
        for n in sizes.into_iter().filter(|&s| (1..=limit).contains(&s)) {
            let own = launch(m, n)?.ok_or_else(refused)?;
            let same = shape.grid(m, n) == Some(own.grid)
                && own.block == parts.block
                && own.cluster == parts.cluster
                && own.shared_bytes == parts.shared_bytes
                && own.kernel == parts.entry;
            if !same {
                return Err(refused());
            }
        }
    }
    Ok(parts)
}

impl KernelParts {
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
            limit: self.limit,
            grid_y: self.grid_y,
        }
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
