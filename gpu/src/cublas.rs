//! cuBLAS as the yardstick: row-major GEMM in every type that our kernels have.
//!
//! cuBLAS is column-major. A row-major matrix read as column-major is its transpose, and the transpose of
//! C ← α·op(A)·op(B) + β·C is Cᵀ ← α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ: so the operands change places, m and n change places, and the
//! transposition flags stay with their operands. A [`Gemm`] is row-major throughout; the exchange happens here and nowhere
//! else.
//!
//! ```no_run
//! use tilewright_gpu::Gpu;
//! use tilewright_gpu::cublas::{Cublas, Gemm, GemmTypes, Matrix};
//!
//! # fn main() -> Result<(), tilewright_gpu::GpuError> {
//! let gpu = Gpu::open(0)?;
//! let (m, n, k) = (128, 256, 64);
//! let (a, b) = (gpu.upload(&vec![1.0_f32; m * k])?, gpu.upload(&vec![1.0_f32; k * n])?);
//! let c = gpu.alloc(4 * m * n)?;
//! let gemm = Gemm::new(GemmTypes::F32, [m, n, k], Matrix::new(&a, k), Matrix::new(&b, n), Matrix::new(&c, n));
//! Cublas::new(&gpu)?.gemm(&gemm)?;
//! assert_eq!(c.download::<f32>()?[0], 64.0);
//! # Ok(())
//! # }
//! ```

use std::ffi::c_void;

use crate::buffer::Buffer;
use crate::device::Gpu;
use crate::error::GpuError;
use crate::library::api;

/// Bytes of workspace that cuBLAS is given: what its documentation recommends for Hopper.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// The type of a matrix's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Signed 8-bit integer.
    S8,
    /// Signed 32-bit integer.
    S32,
    /// 8-bit floating point with 4 exponent bits; cublasLt only.
    E4m3,
    /// 8-bit floating point with 5 exponent bits; cublasLt only.
    E5m2,
}

impl Scalar {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::S8 | Self::E4m3 | Self::E5m2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::S32 => 4,
            Self::F64 => 8,
        }
    }

    /// The `cudaDataType_t`.
    pub(crate) fn raw(self) -> i32 {
        match self {
            Self::F32 => 0,
            Self::F64 => 1,
            Self::F16 => 2,
            Self::S8 => 3,
            Self::S32 => 10,
            Self::Bf16 => 14,
            Self::E4m3 => 28,
            Self::E5m2 => 29,
        }
    }
}

/// The arithmetic of a product. α and β have its type: half for `F16`, single for `F32` and `Tf32`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compute {
    /// Accumulation in half precision.
    F16,
    /// Accumulation in single precision.
    F32,
    /// Operands rounded to tf32, accumulation in single precision.
    Tf32,
    /// Double precision.
    F64,
    /// 32-bit integers; α and β are integers.
    S32,
}

impl Compute {
    /// The `cublasComputeType_t`.
    pub(crate) fn raw(self) -> i32 {
        match self {
            Self::F16 => 64,
            Self::F32 => 68,
            Self::F64 => 70,
            Self::S32 => 72,
            Self::Tf32 => 77,
        }
    }

    /// The type of α and β.
    pub(crate) fn scale(self) -> Scalar {
        match self {
            Self::F16 => Scalar::F16,
            Self::F32 | Self::Tf32 => Scalar::F32,
            Self::F64 => Scalar::F64,
            Self::S32 => Scalar::S32,
        }
    }

    /// `value` as the bytes of α or β, the unused ones zero.
    pub(crate) fn scale_bytes(self, value: f64) -> [u8; 8] {
        let mut bytes = [0; 8];
        match self.scale() {
            Scalar::F16 => bytes[..2].copy_from_slice(&half::f16::from_f64(value).to_ne_bytes()),
            Scalar::F32 => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
            Scalar::S32 => bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
            _ => bytes.copy_from_slice(&value.to_ne_bytes()),
        }
        bytes
    }
}

/// The types of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GemmTypes {
    /// Elements of A.
    pub a: Scalar,
    /// Elements of B.
    pub b: Scalar,
    /// Elements of C.
    pub c: Scalar,
    /// The arithmetic.
    pub compute: Compute,
}

impl GemmTypes {
    /// Single precision throughout.
    pub const F32: Self = Self::of(Scalar::F32, Scalar::F32, Compute::F32);
    /// Single precision in memory, tf32 products.
    pub const TF32: Self = Self::of(Scalar::F32, Scalar::F32, Compute::Tf32);
    /// Double precision throughout.
    pub const F64: Self = Self::of(Scalar::F64, Scalar::F64, Compute::F64);
    /// Half precision in memory, accumulated in single precision.
    pub const F16: Self = Self::of(Scalar::F16, Scalar::F16, Compute::F32);
    /// Half precision in, single precision out.
    pub const F16_F32: Self = Self::of(Scalar::F16, Scalar::F32, Compute::F32);
    /// Half precision throughout, accumulation included.
    pub const F16_F16: Self = Self::of(Scalar::F16, Scalar::F16, Compute::F16);
    /// bfloat16 in memory, accumulated in single precision.
    pub const BF16: Self = Self::of(Scalar::Bf16, Scalar::Bf16, Compute::F32);
    /// bfloat16 in, single precision out.
    pub const BF16_F32: Self = Self::of(Scalar::Bf16, Scalar::F32, Compute::F32);
    /// 8-bit integers in, 32-bit integers out.
    pub const S8: Self = Self::of(Scalar::S8, Scalar::S32, Compute::S32);
    /// e4m3 in, single precision out; [`crate::cublaslt`] only.
    pub const E4M3: Self = Self::of(Scalar::E4m3, Scalar::F32, Compute::F32);
    /// e5m2 times e4m3 in, single precision out; [`crate::cublaslt`] only, which has no e5m2 times e5m2.
    pub const E5M2: Self = Self {
        a: Scalar::E5m2,
        b: Scalar::E4m3,
        c: Scalar::F32,
        compute: Compute::F32,
    };

    const fn of(ab: Scalar, c: Scalar, compute: Compute) -> Self {
        Self {
            a: ab,
            b: ab,
            c,
            compute,
        }
    }
}

/// A row-major matrix, or a batch of them, in a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// The memory.
    pub buffer: &'a Buffer,
    /// Where element (0, 0) lies, in elements.
    pub offset: usize,
    /// Elements from one row to the next.
    pub ld: usize,
    /// Elements from one matrix of a batch to the next.
    pub batch_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix at the start of `buffer` with leading dimension `ld`.
    pub fn new(buffer: &'a Buffer, ld: usize) -> Self {
        Self {
            buffer,
            offset: 0,
            ld,
            batch_stride: 0,
        }
    }

    /// The address of element (0, 0).
    pub(crate) fn address(&self, scalar: Scalar) -> u64 {
        self.buffer.address() + (self.offset * scalar.bytes()) as u64
    }
}

/// C ← α·op(A)·op(B) + β·C with row-major operands: op(A) is m×k, op(B) is k×n, C is m×n.
#[derive(Debug, Clone, Copy)]
pub struct Gemm<'a> {
    /// The types.
    pub types: GemmTypes,
    /// m, n and k.
    pub size: [usize; 3],
    /// Whether A is stored as k×m.
    pub trans_a: bool,
    /// Whether B is stored as n×k.
    pub trans_b: bool,
    /// α, rounded to the type of the arithmetic.
    pub alpha: f64,
    /// β, likewise.
    pub beta: f64,
    /// A.
    pub a: Matrix<'a>,
    /// B.
    pub b: Matrix<'a>,
    /// C.
    pub c: Matrix<'a>,
    /// How many products, each one's matrices `batch_stride` behind the last one's.
    pub batch: usize,
}

impl<'a> Gemm<'a> {
    /// One product without transposition, α = 1, β = 0; `size` is m, n, k.
    pub fn new(
        types: GemmTypes,
        size: [usize; 3],
        a: Matrix<'a>,
        b: Matrix<'a>,
        c: Matrix<'a>,
    ) -> Self {
        Self {
            types,
            size,
            trans_a: false,
            trans_b: false,
            alpha: 1.0,
            beta: 0.0,
            a,
            b,
            c,
            batch: 1,
        }
    }

    /// Whether every operand lies within its buffer and every number fits cuBLAS's 32 bits.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        let [m, n, k] = self.size;
        let stored =
            |trans: bool, rows: usize, cols: usize| if trans { (cols, rows) } else { (rows, cols) };
        let operands = [
            ("A", self.a, self.types.a, stored(self.trans_a, m, k)),
            ("B", self.b, self.types.b, stored(self.trans_b, k, n)),
            ("C", self.c, self.types.c, (m, n)),
        ];
        for (name, matrix, scalar, (rows, cols)) in operands {
            check_matrix(matrix.ld, cols)
                .map_err(|what| GpuError::invalid(format!("{name}: {what}")))?;
            let bytes = extent(&matrix, rows, cols, self.batch)
                .and_then(|elements| elements.checked_mul(scalar.bytes()));
            if bytes.is_none_or(|bytes| bytes > matrix.buffer.len_bytes()) {
                let held = matrix.buffer.len_bytes();
                let what = format!(
                    "{name} of {rows}×{cols} elements does not lie within its buffer of {held} bytes: {matrix:?}"
                );
                return Err(GpuError::invalid(what));
            }
        }
        let limit = i32::MAX as usize;
        if [m, n, k, self.batch].iter().any(|&size| size > limit) {
            return Err(GpuError::invalid(format!(
                "{m}×{n}×{k}, {} times, is too large for cuBLAS",
                self.batch
            )));
        }
        Ok(())
    }
}

/// Whether `ld` suits rows of `cols` elements and cuBLAS's 32 bits.
fn check_matrix(ld: usize, cols: usize) -> Result<(), String> {
    if ld < cols.max(1) || ld > i32::MAX as usize {
        return Err(format!(
            "a leading dimension of {ld} does not suit rows of {cols} elements"
        ));
    }
    Ok(())
}

/// Elements from the start of the buffer to the end of the last matrix.
fn extent(matrix: &Matrix<'_>, rows: usize, cols: usize, batch: usize) -> Option<usize> {
    if rows == 0 || cols == 0 || batch == 0 {
        return Some(0);
    }
    let one = (rows - 1).checked_mul(matrix.ld)?.checked_add(cols)?;
    (batch - 1)
        .checked_mul(matrix.batch_stride)?
        .checked_add(one)?
        .checked_add(matrix.offset)
}

type Handle = *mut c_void;
type Pointer = *const c_void;

api! {
    /// What is used of `cublas_v2.h`. Enumerations are passed as the C `int` that they are.
    Api from "cublas" {
        create: "cublasCreate_v2" (*mut Handle);
        destroy: "cublasDestroy_v2" (Handle);
        set_stream: "cublasSetStream_v2" (Handle, *mut c_void);
        set_workspace: "cublasSetWorkspace_v2" (Handle, *mut c_void, usize);
        get_version: "cublasGetVersion_v2" (Handle, *mut i32);
        sgemm: "cublasSgemm_v2" (
            Handle, i32, i32, i32, i32, i32, *const f32, Pointer, i32, Pointer, i32, *const f32, *mut c_void, i32,
        );
        dgemm: "cublasDgemm_v2" (
            Handle, i32, i32, i32, i32, i32, *const f64, Pointer, i32, Pointer, i32, *const f64, *mut c_void, i32,
        );
        gemm_ex: "cublasGemmEx" (
            Handle, i32, i32, i32, i32, i32, Pointer, Pointer, i32, i32, Pointer, i32, i32, Pointer, *mut c_void, i32,
            i32, i32, i32,
        );
        gemm_batched: "cublasGemmStridedBatchedEx" (
            Handle, i32, i32, i32, i32, i32, Pointer, Pointer, i32, i32, i64, Pointer, i32, i32, i64, Pointer,
            *mut c_void, i32, i32, i64, i32, i32, i32,
        );
    }
}

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: i32 = -1;

/// A cuBLAS handle on a GPU's own stream, with 32 MiB of workspace. Not for use by several threads at once.
#[derive(Debug)]
pub struct Cublas {
    api: &'static Api,
    handle: Handle,
    gpu: Gpu,
    /// Device memory that the handle uses; freed after it.
    workspace: Buffer,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Where cuBLAS was found. Needs a driver, whose version decides which cuBLAS will do, and no GPU.
///
/// # Errors
///
/// [`GpuError::NoLibrary`] with everything that was tried, or an error of the driver.
pub fn find() -> Result<String, GpuError> {
    Api::get().map(|api| api.path.clone())
}

impl Cublas {
    /// A handle for `gpu`.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoLibrary`], [`GpuError::Cublas`] or a failure of the driver.
    pub fn new(gpu: &Gpu) -> Result<Self, GpuError> {
        let api = Api::get()?;
        let workspace = gpu.alloc(WORKSPACE_BYTES)?;
        gpu.context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: a context is current; the handle goes to a local variable.
        check("cublasCreate", unsafe { (api.create)(&raw mut handle) })?;
        let cublas = Self {
            api,
            handle,
            gpu: gpu.clone(),
            workspace,
        };
        // SAFETY: the stream lives as long as `cublas.gpu`.
        check("cublasSetStream", unsafe {
            (api.set_stream)(handle, gpu.stream().raw().cast())
        })?;
        // The stream comes first: setting it takes the workspace away.
        let memory = device_pointer(cublas.workspace.address());
        // SAFETY: the buffer has this many bytes and outlives the handle.
        check("cublasSetWorkspace", unsafe {
            (api.set_workspace)(handle, memory.cast_mut(), WORKSPACE_BYTES)
        })?;
        Ok(cublas)
    }

    /// The library's file.
    pub fn path(&self) -> &str {
        &self.api.path
    }

    /// The version as (major, minor, patch).
    ///
    /// # Errors
    ///
    /// [`GpuError::Cublas`].
    pub fn version(&self) -> Result<(u32, u32, u32), GpuError> {
        let mut version = 0;
        // SAFETY: the handle lives; the result goes to a local variable.
        check("cublasGetVersion", unsafe {
            (self.api.get_version)(self.handle, &raw mut version)
        })?;
        let version = version.max(0) as u32;
        Ok((version / 10000, version / 100 % 100, version % 100))
    }

    /// Enqueues the product on the GPU's stream: `cublasSgemm` and `cublasDgemm` for plain single and double precision,
    /// `cublasGemmEx` otherwise, `cublasGemmStridedBatchedEx` for a batch.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if an operand does not lie within its buffer, [`GpuError::Cublas`] for what cuBLAS does not
    /// support, or a failure of the driver.
    pub fn gemm(&self, gemm: &Gemm<'_>) -> Result<(), GpuError> {
        gemm.check()?;
        let [m, n, k] = gemm.size.map(|size| size as i32);
        if m == 0 || n == 0 || gemm.batch == 0 {
            return Ok(());
        }
        self.gpu.context.bind()?;
        let (api, handle, types) = (self.api, self.handle, gemm.types);
        // The first operand of the column-major call is B, the second A.
        let (op1, op2) = (i32::from(gemm.trans_b), i32::from(gemm.trans_a));
        let (ld1, ld2, ld3) = (gemm.b.ld as i32, gemm.a.ld as i32, gemm.c.ld as i32);
        let p1 = device_pointer(gemm.b.address(types.b));
        let p2 = device_pointer(gemm.a.address(types.a));
        let p3 = device_pointer(gemm.c.address(types.c)).cast_mut();
        if gemm.batch == 1 && types == GemmTypes::F32 {
            let (alpha, beta) = (gemm.alpha as f32, gemm.beta as f32);
            // SAFETY: the handle lives, the operands lie within their buffers (`check`), α and β are read at once.
            let status = unsafe {
                (api.sgemm)(
                    handle,
                    op1,
                    op2,
                    n,
                    m,
                    k,
                    &raw const alpha,
                    p1,
                    ld1,
                    p2,
                    ld2,
                    &raw const beta,
                    p3,
                    ld3,
                )
            };
            return check("cublasSgemm", status);
        }
        if gemm.batch == 1 && types == GemmTypes::F64 {
            let (alpha, beta) = (gemm.alpha, gemm.beta);
            // SAFETY: as above.
            let status = unsafe {
                (api.dgemm)(
                    handle,
                    op1,
                    op2,
                    n,
                    m,
                    k,
                    &raw const alpha,
                    p1,
                    ld1,
                    p2,
                    ld2,
                    &raw const beta,
                    p3,
                    ld3,
                )
            };
            return check("cublasDgemm", status);
        }
        let (t1, t2, t3, compute) = (
            types.b.raw(),
            types.a.raw(),
            types.c.raw(),
            types.compute.raw(),
        );
        // Aligned for every type that they may hold.
        let alpha = u64::from_ne_bytes(types.compute.scale_bytes(gemm.alpha));
        let beta = u64::from_ne_bytes(types.compute.scale_bytes(gemm.beta));
        let (alpha, beta): (Pointer, Pointer) =
            ((&raw const alpha).cast(), (&raw const beta).cast());
        if gemm.batch == 1 {
            // SAFETY: as above; α and β have the type of the arithmetic.
            let status = unsafe {
                (api.gemm_ex)(
                    handle,
                    op1,
                    op2,
                    n,
                    m,
                    k,
                    alpha,
                    p1,
                    t1,
                    ld1,
                    p2,
                    t2,
                    ld2,
                    beta,
                    p3,
                    t3,
                    ld3,
                    compute,
                    DEFAULT_ALGORITHM,
                )
            };
            return check("cublasGemmEx", status);
        }
        let [s1, s2, s3] = [gemm.b, gemm.a, gemm.c].map(|matrix| matrix.batch_stride as i64);
        // SAFETY: as above; every matrix of the batch lies within its buffer.
        let status = unsafe {
            (api.gemm_batched)(
                handle,
                op1,
                op2,
                n,
                m,
                k,
                alpha,
                p1,
                t1,
                ld1,
                s1,
                p2,
                t2,
                ld2,
                s2,
                beta,
                p3,
                t3,
                ld3,
                s3,
                gemm.batch as i32,
                compute,
                DEFAULT_ALGORITHM,
            )
        };
        check("cublasGemmStridedBatchedEx", status)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        if self.gpu.context.bind().is_ok() {
            // SAFETY: created once. An error has nobody left to tell.
            let _ = unsafe { (self.api.destroy)(self.handle) };
        }
    }
}

/// A device address as the C interface takes it; never read on the host.
pub(crate) fn device_pointer(address: u64) -> Pointer {
    std::ptr::without_provenance(address as usize)
}

pub(crate) fn check(call: &'static str, status: i32) -> Result<(), GpuError> {
    if status == 0 {
        Ok(())
    } else {
        Err(GpuError::Cublas { call, status })
    }
}

#[cfg(test)]
mod tests {
    use cudarc::cublas::sys::{cublasComputeType_t as RawCompute, cudaDataType_t as RawType};

    use super::*;

    #[test]
    fn numbers_are_those_of_the_headers() {
        let types = [
            (Scalar::F16, RawType::CUDA_R_16F),
            (Scalar::Bf16, RawType::CUDA_R_16BF),
            (Scalar::F32, RawType::CUDA_R_32F),
            (Scalar::F64, RawType::CUDA_R_64F),
            (Scalar::S8, RawType::CUDA_R_8I),
            (Scalar::S32, RawType::CUDA_R_32I),
            (Scalar::E4m3, RawType::CUDA_R_8F_E4M3),
            (Scalar::E5m2, RawType::CUDA_R_8F_E5M2),
        ];
        for (ours, theirs) in types {
            assert_eq!(ours.raw(), theirs as i32, "{ours:?}");
        }
        let computes = [
            (Compute::F16, RawCompute::CUBLAS_COMPUTE_16F),
            (Compute::F32, RawCompute::CUBLAS_COMPUTE_32F),
            (Compute::Tf32, RawCompute::CUBLAS_COMPUTE_32F_FAST_TF32),
            (Compute::F64, RawCompute::CUBLAS_COMPUTE_64F),
            (Compute::S32, RawCompute::CUBLAS_COMPUTE_32I),
        ];
        for (ours, theirs) in computes {
            assert_eq!(ours.raw(), theirs as i32, "{ours:?}");
        }
    }

    #[test]
    fn scales_have_the_type_of_the_arithmetic() {
        assert_eq!(Compute::F16.scale_bytes(1.0)[..2], 0x3c00_u16.to_ne_bytes());
        assert_eq!(
            Compute::Tf32.scale_bytes(-2.5)[..4],
            (-2.5_f32).to_ne_bytes()
        );
        assert_eq!(Compute::S32.scale_bytes(-3.0)[..4], (-3_i32).to_ne_bytes());
        assert_eq!(Compute::F64.scale_bytes(0.1), 0.1_f64.to_ne_bytes());
    }
}
