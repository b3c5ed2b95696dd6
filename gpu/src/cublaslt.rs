//! cublasLt: every algorithm that its heuristics give for a product, in the types of plain cuBLAS and the 8-bit floating-point ones.
//!
//! A product is described once ([`CublasLt::plan`]), which asks the library for its algorithms, best first by its own
//! heuristics, and run many times ([`Plan::run`]); nothing but the launch is in a time taken around a run. The description
//! is the same row-major [`Gemm`] as for [`crate::cublas`]. On Hopper the 8-bit floating-point types exist only with A
//! not transposed and B transposed (both operands contiguous along k), sizes and leading dimensions that are multiples of
//! 16 bytes, and not as e5m2 times e5m2: the library then answers that there is no algorithm.

use std::ffi::c_void;

use crate::buffer::Buffer;
use crate::cublas::{Gemm, Matrix, Scalar, WORKSPACE_BYTES, check, device_pointer};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::library::api;

type Handle = *mut c_void;
type Pointer = *const c_void;

/// Algorithms asked for.
const ALGORITHMS: usize = 8;

/// `cublasLtMatmulDescAttributes_t`.
const DESC_TRANSA: i32 = 3;
const DESC_TRANSB: i32 = 4;
const DESC_FAST_ACCUM: i32 = 25;
/// `cublasLtMatrixLayoutAttribute_t`.
const LAYOUT_BATCH_COUNT: i32 = 5;
const LAYOUT_STRIDED_BATCH_OFFSET: i32 = 6;
/// `cublasLtMatmulPreferenceAttributes_t`.
const PREF_MAX_WORKSPACE_BYTES: i32 = 1;
/// The first of four: the alignments of A, B, C and D.
const PREF_MIN_ALIGNMENT_A_BYTES: i32 = 5;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    status: i32,
    waves: f32,
    reserved: [i32; 4],
}

api! {
    /// What is used of `cublasLt.h`. Enumerations are passed as the C `int` that they are.
    Api from "cublasLt" {
        create: "cublasLtCreate" (*mut Handle);
        destroy: "cublasLtDestroy" (Handle);
        desc_create: "cublasLtMatmulDescCreate" (*mut Handle, i32, i32);
        desc_destroy: "cublasLtMatmulDescDestroy" (Handle);
        desc_set: "cublasLtMatmulDescSetAttribute" (Handle, i32, Pointer, usize);
        layout_create: "cublasLtMatrixLayoutCreate" (*mut Handle, i32, u64, u64, i64);
        layout_destroy: "cublasLtMatrixLayoutDestroy" (Handle);
        layout_set: "cublasLtMatrixLayoutSetAttribute" (Handle, i32, Pointer, usize);
        preference_create: "cublasLtMatmulPreferenceCreate" (*mut Handle);
        preference_destroy: "cublasLtMatmulPreferenceDestroy" (Handle);
        preference_set: "cublasLtMatmulPreferenceSetAttribute" (Handle, i32, Pointer, usize);
        heuristic: "cublasLtMatmulAlgoGetHeuristic" (
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Heuristic, *mut i32,
        );
        matmul: "cublasLtMatmul" (
            Handle, Handle, Pointer, Pointer, Handle, Pointer, Handle, Pointer, Pointer, Handle, *mut c_void, Handle,
            *const [u64; 8], *mut c_void, usize, *mut c_void,
        );
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A handle of the library and what it needs to destroy itself.
#[derive(Debug)]
struct Owned {
    raw: Handle,
    destroy: unsafe extern "C" fn(Handle) -> i32,
}

impl Owned {
    /// Calls `create` with the place for a handle.
    fn new(
        call: &'static str,
        destroy: unsafe extern "C" fn(Handle) -> i32,
        create: impl FnOnce(*mut Handle) -> i32,
    ) -> Result<Self, GpuError> {
        let mut raw = std::ptr::null_mut();
        check(call, create(&raw mut raw))?;
        Ok(Self { raw, destroy })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: created once by the function that belongs to `destroy`. An error has nobody left to tell.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// A cublasLt handle on a GPU's own stream, with 32 MiB of workspace.
#[derive(Debug)]
pub struct CublasLt {
    api: &'static Api,
    handle: Owned,
    gpu: Gpu,
    workspace: Buffer,
}

/// A product that is ready to run, with its algorithms.
#[derive(Debug)]
pub struct Plan<'a> {
    lt: &'a CublasLt,
    gemm: Gemm<'a>,
    description: Owned,
    /// Layouts of the column-major call's first, second and third operand: our B, A and C.
    layouts: [Owned; 3],
    algorithms: Vec<Heuristic>,
}

/// Where cublasLt was found.
///
/// # Errors
///
/// [`GpuError::NoLibrary`] with everything that was tried, or an error of the driver.
pub fn find() -> Result<String, GpuError> {
    Api::get().map(|api| api.path.clone())
}

impl CublasLt {
    /// A handle for `gpu`.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoLibrary`], [`GpuError::Cublas`] or a failure of the driver.
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let api = Api::get()?;
        let workspace = gpu.alloc(WORKSPACE_BYTES)?;
        gpu.context.bind()?;
        // SAFETY: a context is current; the handle goes where it should.
        let handle = Owned::new("cublasLtCreate", api.destroy, |place| unsafe {
            (api.create)(place)
        })?;
        Ok(Self {
            api,
            handle,
            gpu: gpu.clone(),
            workspace,
        })
    }

    /// The library's file.
    pub fn path(&self) -> &str {
        &self.api.path
    }

    /// Prepares `gemm`. `fast_accumulation` lets the tensor cores accumulate 8-bit floating-point products with fewer bits.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if an operand does not lie within its buffer or a size is 0, [`GpuError::Cublas`] (status
    /// 15, not supported) where there is no algorithm.
    pub fn plan<'a>(
        &'a self,
        gemm: &Gemm<'a>,
        fast_accumulation: bool,
    ) -> Result<Plan<'a>, GpuError> {
        gemm.check()?;
        let [m, n, k] = gemm.size;
        if m == 0 || n == 0 || k == 0 || gemm.batch == 0 {
            return Err(GpuError::invalid("cublasLt is given no empty product"));
        }
        self.gpu.context.bind()?;
        let api = self.api;
        let types = gemm.types;
        let (compute, scale) = (types.compute.raw(), types.compute.scale().raw());
        let description = Owned::new("cublasLtMatmulDescCreate", api.desc_destroy, |place| {
            // SAFETY: the handle goes where it should.
            unsafe { (api.desc_create)(place, compute, scale) }
        })?;
        let describe = |name: i32, value: &[u8]| {
            // SAFETY: the description lives; the value has the length given and is copied.
            let status = unsafe {
                (api.desc_set)(description.raw, name, value.as_ptr().cast(), value.len())
            };
            check("cublasLtMatmulDescSetAttribute", status)
        };
        describe(DESC_TRANSA, &i32::from(gemm.trans_b).to_ne_bytes())?;
        describe(DESC_TRANSB, &i32::from(gemm.trans_a).to_ne_bytes())?;
        if fast_accumulation {
            describe(DESC_FAST_ACCUM, &1_i8.to_ne_bytes())?;
        }
        // A row-major matrix of r×c is a column-major one of c×r.
        let stored =
            |trans: bool, rows: usize, cols: usize| if trans { (cols, rows) } else { (rows, cols) };
        let layouts = [
            self.layout(&gemm.b, types.b, stored(gemm.trans_b, k, n), gemm.batch)?,
            self.layout(&gemm.a, types.a, stored(gemm.trans_a, m, k), gemm.batch)?,
            self.layout(&gemm.c, types.c, (m, n), gemm.batch)?,
        ];
        let algorithms = self.algorithms(gemm, &description, &layouts)?;
        Ok(Plan {
            lt: self,
            gemm: *gemm,
            description,
            layouts,
            algorithms,
        })
    }

    /// The layout of a row-major matrix of `rows` × `cols` as stored.
    fn layout(
        &self,
        matrix: &Matrix<'_>,
        scalar: Scalar,
        (rows, cols): (usize, usize),
        batch: usize,
    ) -> Result<Owned, GpuError> {
        let api = self.api;
        let layout = Owned::new("cublasLtMatrixLayoutCreate", api.layout_destroy, |place| {
            // SAFETY: the handle goes where it should.
            unsafe {
                (api.layout_create)(
                    place,
                    scalar.raw(),
                    cols as u64,
                    rows as u64,
                    matrix.ld as i64,
                )
            }
        })?;
        let set = |name: i32, value: &[u8]| {
            // SAFETY: the layout lives; the value has the length given and is copied.
            let status =
                unsafe { (api.layout_set)(layout.raw, name, value.as_ptr().cast(), value.len()) };
            check("cublasLtMatrixLayoutSetAttribute", status)
        };
        if batch > 1 {
            set(LAYOUT_BATCH_COUNT, &(batch as i32).to_ne_bytes())?;
            set(
                LAYOUT_STRIDED_BATCH_OFFSET,
                &(matrix.batch_stride as i64).to_ne_bytes(),
            )?;
        }
        Ok(layout)
    }

    fn algorithms(
        &self,
        gemm: &Gemm<'_>,
        description: &Owned,
        layouts: &[Owned; 3],
    ) -> Result<Vec<Heuristic>, GpuError> {
        let api = self.api;
        let preference = Owned::new(
            "cublasLtMatmulPreferenceCreate",
            api.preference_destroy,
            |place| {
                // SAFETY: the handle goes where it should.
                unsafe { (api.preference_create)(place) }
            },
        )?;
        let prefer = |name: i32, value: &[u8]| {
            // SAFETY: the preference lives; the value has the length given and is copied.
            let status = unsafe {
                (api.preference_set)(preference.raw, name, value.as_ptr().cast(), value.len())
            };
            check("cublasLtMatmulPreferenceSetAttribute", status)
        };
        prefer(PREF_MAX_WORKSPACE_BYTES, &WORKSPACE_BYTES.to_ne_bytes())?;
        // Without these, the library takes every pointer for a multiple of 256.
        let types = gemm.types;
        let addresses = [
            gemm.b.address(types.b),
            gemm.a.address(types.a),
            gemm.c.address(types.c),
            gemm.c.address(types.c),
        ];
        for (name, address) in (PREF_MIN_ALIGNMENT_A_BYTES..).zip(addresses) {
            let alignment = 1_u32 << address.trailing_zeros().min(8);
            prefer(name, &alignment.to_ne_bytes())?;
        }
        let mut found = [Heuristic::default(); ALGORITHMS];
        let mut count = 0;
        let [first, second, third] = layouts;
        // SAFETY: every handle lives; the array has room for the number of results asked for.
        let status = unsafe {
            (api.heuristic)(
                self.handle.raw,
                description.raw,
                first.raw,
                second.raw,
                third.raw,
                third.raw,
                preference.raw,
                ALGORITHMS as i32,
                found.as_mut_ptr(),
                &raw mut count,
            )
        };
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        let count = usize::try_from(count).unwrap_or(0).min(ALGORITHMS);
        let usable: Vec<Heuristic> = found[..count]
            .iter()
            .copied()
            .filter(|result| result.status == 0)
            .collect();
        if usable.is_empty() {
            // CUBLAS_STATUS_NOT_SUPPORTED, as the library itself says on other occasions.
            return Err(GpuError::Cublas {
                call: "cublasLtMatmulAlgoGetHeuristic",
                status: 15,
            });
        }
        Ok(usable)
    }
}

impl Plan<'_> {
    /// How many algorithms there are, best first by the library's heuristics; at least 1.
    pub fn algorithms(&self) -> usize {
        self.algorithms.len()
    }

    /// Enqueues the product with the first algorithm.
    ///
    /// # Errors
    ///
    /// [`GpuError::Cublas`] or a failure of the driver.
    pub fn run(&self) -> Result<(), GpuError> {
        self.run_algorithm(0)
    }

    /// Enqueues the product with algorithm `index`, below [`Plan::algorithms`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if there is no such algorithm, [`GpuError::Cublas`] or a failure of the driver.
    pub fn run_algorithm(&self, index: usize) -> Result<(), GpuError> {
        let Some(chosen) = self.algorithms.get(index) else {
            return Err(GpuError::invalid(format!(
                "there are {} algorithms, not {index}",
                self.algorithms.len()
            )));
        };
        self.lt.gpu.context.bind()?;
        let types = self.gemm.types;
        let alpha = u64::from_ne_bytes(types.compute.scale_bytes(self.gemm.alpha));
        let beta = u64::from_ne_bytes(types.compute.scale_bytes(self.gemm.beta));
        let output = device_pointer(self.gemm.c.address(types.c));
        let [first, second, third] = &self.layouts;
        // SAFETY: every handle lives, the operands lie within their buffers (`Gemm::check`), α and β have the type of the
        // arithmetic and are read at once, the workspace has at least the bytes that the algorithm was chosen for, and
        // the stream lives as long as the GPU.
        let status = unsafe {
            (self.lt.api.matmul)(
                self.lt.handle.raw,
                self.description.raw,
                (&raw const alpha).cast(),
                device_pointer(self.gemm.b.address(types.b)),
                first.raw,
                device_pointer(self.gemm.a.address(types.a)),
                second.raw,
                (&raw const beta).cast(),
                output,
                third.raw,
                output.cast_mut(),
                third.raw,
                &raw const chosen.algorithm,
                device_pointer(self.lt.workspace.address()).cast_mut(),
                WORKSPACE_BYTES,
                self.lt.gpu.stream().raw().cast(),
            )
        };
        check("cublasLtMatmul", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_layout_of_the_header() {
        // cublasLt.h: 64 bytes of algorithm, size_t, an enumeration, a float, four ints.
        assert_eq!(size_of::<Heuristic>(), 64 + 8 + 4 + 4 + 16);
        assert_eq!(std::mem::offset_of!(Heuristic, status), 72);
        assert_eq!(std::mem::offset_of!(Heuristic, waves), 76);
    }
}
