//! Launches of C 384x256 = 1 op(A) op(B) + 0 C, k = 192, nn; written by `tilewright gemm --emit-host`.
//! Leading dimensions in elements: A 192, B 256, C 256. Buffers are device addresses.

/// A parameter's value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arg {
    Ptr(u64),
    U32(u32),
    U64(u64),
    S32(i32),
    F32(f32),
    F64(f64),
}

/// One launch: `args` in the order of the kernel's parameters. A cluster that the PTX declares (`cluster_declared`) needs no launch attribute. A kernel
/// that waits for the one before it (`beside_previous`) may be launched with programmatic stream serialization.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub cluster_declared: bool,
    pub beside_previous: bool,
    pub shared_bytes: u32,
    pub args: Vec<Arg>,
}

/// Device addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

/// m, n and k.
pub const SIZES: [u64; 3] = [384, 256, 192];

/// Bytes of the workspace.
pub const WORKSPACE_BYTES: u64 = 0;

/// The launches, in order.
pub fn launches(buffers: &Buffers) -> [Launch; 1] {
    [
        Launch {
            kernel: "mma_f16_64x64x64_nn",
            grid: [6, 4, 1],
            block: [128, 1, 1],
            cluster: [1, 1, 1],
            cluster_declared: false,
            beside_previous: false,
            shared_bytes: 65536,
            args: vec![
                Arg::Ptr(buffers.a), // A
                Arg::Ptr(buffers.b), // B
                Arg::Ptr(buffers.c), // C
                Arg::U32(384), // m
                Arg::U32(256), // n
                Arg::U32(192), // k
                Arg::U32(192), // lda
                Arg::U32(256), // ldb
                Arg::U32(256), // ldc
                Arg::F32(1.0), // alpha
                Arg::F32(0.0), // beta
            ],
        },
    ]
}
