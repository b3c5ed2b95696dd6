//! Constants of `kernel!` as kernels that can be run: the grid from m and n, all other parameters by name.

use layout_codegen::ir::ParamKind;
use layout_codegen::prove::AccessProof;
use tilewright_kernels::gemm::Config;
use tilewright_kernels::gemm::{CompiledKernel, MapSource, Operands, Trans};

use super::element::BufferType;
use super::error::RunError;
use super::gemm::ways_to_store;
use super::runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg};

/// The elements of A and B, and those of C, by the plan that the kernel comes from; none if there is no such plan.
fn elements(kernel: &CompiledKernel) -> Option<(BufferType, BufferType)> {
    let data_type = kernel.plan.parse::<Config>().ok()?.data_type;
    Some((data_type.operand().into(), data_type.result().into()))
}

/// The product's matrices, by the names of their buffers.
const MATRICES: [&str; 3] = ["A", "B", "C"];

/// The buffer of which a tensor map is; no name for what is not a matrix of the product.
fn buffer(of: MapSource) -> &'static str {
    match of {
        MapSource::A => "A",
        MapSource::B => "B",
        MapSource::Given | MapSource::Workspace(_) => "",
    }
}

/// The bytes of a row-major matrix; as many as there can be if that overflows.
fn matrix_bytes((rows, cols): (u64, u64), ld: u64, element: BufferType) -> u64 {
    if rows == 0 || cols == 0 {
        return 0;
    }
    let elements = (rows - 1).checked_mul(ld).and_then(|n| n.checked_add(cols));
    elements
        .and_then(|n| n.checked_mul(element.bytes() as u64))
        .unwrap_or(u64::MAX)
}

/// C ← α·op(A)·op(B) + β·C with row-major matrices of the plan's types: the buffers `A`, `B` and `C`, the sizes `m`, `n`, `k`, the leading
/// dimensions `lda`, `ldb`, `ldc`, and the factors `alpha` and `beta`. Tensor maps are encoded of these.
///
/// ```
/// # #[cfg(feature = "kernel")] {
/// use tilewright::kernels::gemm::CompiledKernel;
/// use tilewright::host::{Arg, On, run};
/// use tilewright::kernel;
///
/// const GEMM: CompiledKernel = kernel!(plan = "sgemm-maxas-64", trans = nn, arch = sm_80);
///
/// let (a, b) = (vec![1.0_f32; 8 * 4], vec![2.0_f32; 4 * 8]);
/// let size = |n: u32| Arg::from(n);
/// let outcome = run(&GEMM, On::Emulator, [
///     ("A", Arg::input(&a)), ("B", Arg::input(&b)), ("C", Arg::output::<f32>(64)),
///     ("m", size(8)), ("n", size(8)), ("k", size(4)), ("lda", size(4)), ("ldb", size(8)), ("ldc", size(8)),
///     ("alpha", Arg::from(0.5_f32)), ("beta", Arg::from(0.0_f32)),
/// ])?;
/// outcome.assert_clean();
/// outcome.assert_counted_as_proven();
/// assert_eq!(outcome.get::<f32>("C")?, [4.0; 64]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Runnable for CompiledKernel {
    fn ptx(&self) -> &str {
        self.ptx
    }

    fn entry(&self) -> &str {
        self.entry
    }

    fn params(&self) -> Vec<Param> {
        let elements = elements(self);
        let param = |param: &tilewright_kernels::gemm::CompiledParam| {
            let limit = match param.name {
                "m" => Some(self.limits[0]),
                "n" => Some(self.limits[1]),
                _ => None,
            };
            match (param.kind, elements, limit) {
                (ParamKind::Pointer, Some((operand, result)), _) => {
                    let element = if param.name == "C" { result } else { operand };
                    // More than one element: what copies take at once.
                    let alignment = if self.ld_multiple > 1 {
                        self.ld_multiple as usize * operand.bytes()
                    } else {
                        element.bytes()
                    };
                    Param::pointer(param.name, element).aligned_to(alignment as u64)
                }
                (kind, _, Some(limit)) => {
                    Param::new(param.name, ParamType::from(kind)).in_range(0..=limit.into())
                }
                (kind, _, None) => Param::new(param.name, kind.into()),
            }
        };
        // A matrix of which there is a tensor map is a buffer as well, once.
        let is_map = |name: &str| self.maps.iter().any(|(known, _)| *known == name);
        let mut params: Vec<Param> = Vec::new();
        for matrix in MATRICES {
            let own = self.params.iter().find(|p| p.name == matrix);
            let mapped = self.maps.iter().any(|(_, map)| buffer(map.of) == matrix);
            let element = elements.map(|(operand, result)| match matrix {
                "C" => result,
                _ => operand,
            });
            match (own, element) {
                (Some(own), _) if own.kind != ParamKind::TensorMap => params.push(param(own)),
                (_, Some(element)) if mapped => {
                    params.push(Param::pointer(matrix, element).aligned_to(16));
                }
                _ => {}
            }
        }
        let others = self.params.iter();
        let others = others.filter(|p| !MATRICES.contains(&p.name) && !is_map(p.name));
        params.extend(others.map(param));
        params
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let refused = |reason: String| RunError::Refused { reason };
        let [m, n, k] = ["m", "n", "k"].map(|name| scalars.size(name));
        let (m, n, k) = (m?, n?, k?);
        let Some(grid) = self.grid(m, n) else {
            return Ok(Launches::default());
        };
        let operands: Operands = self
            .trans
            .parse()
            .map_err(|_| refused(format!("its transposes are `{}`", self.trans)))?;
        let stored = |rows, cols, trans| match trans {
            Trans::N => (rows, cols),
            Trans::T => (cols, rows),
        };
        let shapes = [
            ("A", "lda", stored(m, k, operands.a)),
            ("B", "ldb", stored(k, n, operands.b)),
            ("C", "ldc", (m, n)),
        ];
        let mut least_bytes = Vec::new();
        for (matrix, ld, shape) in shapes {
            let value = scalars.size(ld)?;
            if value < shape.1 {
                return Err(refused(format!(
                    "{ld} is {value}, and a row of {matrix} has {} elements",
                    shape.1
                )));
            }
            if !value.is_multiple_of(self.ld_multiple.into()) {
                return Err(refused(format!(
                    "{ld} is {value}, and leading dimensions must be multiples of {}",
                    self.ld_multiple
                )));
            }
            if let Some((operand, result)) = elements(self) {
                let element = if matrix == "C" { result } else { operand };
                least_bytes.push((matrix.to_owned(), matrix_bytes(shape, value, element)));
            }
        }
        // Without α nobody reads A and B.
        if scalars.get("alpha").and_then(super::Scalar::float) == Some(0.0) {
            least_bytes.retain(|(matrix, _)| matrix == "C");
        }
        let lds = [
            scalars.size("lda")?,
            scalars.size("ldb")?,
            scalars.size("ldc")?,
        ];
        let of = |name: &str| {
            let map = self.maps.iter().find(|(known, _)| *known == name);
            map.map(|(_, map)| buffer(map.of).to_owned())
        };
        let arg = |name: &str| match self.tensor_map(name, [m, n, k], lds) {
            Some(map) => StepArg::TensorMap(of(name), 0, map),
            None => StepArg::Argument(name.to_owned()),
        };
        let step = Step {
            entry: self.entry.to_owned(),
            grid,
            block: self.block,
            cluster: self.cluster,
            shared_bytes: self.shared_bytes,
            args: self.params.iter().map(|p| arg(p.name)).collect(),
        };
        Ok(Launches {
            steps: vec![step],
            least_bytes,
            workspace_bytes: 0,
            stores: Vec::new(),
            stated: Vec::new(),
        })
    }

    /// The proofs of its plan, made again: the constant holds the text alone.
    fn accesses(&self) -> Vec<AccessProof> {
        let (Ok(plan), Ok(operands)) =
            (self.plan.parse::<Config>(), self.trans.parse::<Operands>())
        else {
            return Vec::new();
        };
        plan.kernel()
            .prove(operands)
            .map_or_else(|_| Vec::new(), |proof| proof.accesses)
    }
    fn alternatives(&self) -> Vec<Vec<String>> {
        ways_to_store()
    }
}
