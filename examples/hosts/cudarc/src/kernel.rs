//! Launches of C 384x256 = 1 op(A) op(B) + 0 C, k = 192, nn; written by `tilewright gemm --emit-host`.
//! Leading dimensions in elements: A 192, B 256, C 256. Buffers are device addresses.
//! Each buffer is aligned as checked below, and one that is written overlaps no other: inputs must not change while a kernel runs.

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

/// Why the kernels do not take an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    pub name: &'static str,
    pub reason: &'static str,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.reason)
    }
}

impl std::error::Error for Refused {}

/// Device addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

impl Buffers {
    /// Checks alignments, and that a buffer that is written overlaps no other.
    pub fn check(&self) -> Result<(), Refused> {
        // Name, address, bytes, alignment, written.
        let all: [(&str, u64, u64, u64, bool); 3] = [
            ("a", self.a, 147456, 16, false),
            ("b", self.b, 98304, 16, false),
            ("c", self.c, 196608, 16, true),
        ];
        for (i, &(name, address, bytes, alignment, written)) in all.iter().enumerate() {
            if address % alignment != 0 {
                return Err(Refused { name, reason: "is not aligned as the kernels need" });
            }
            for &(_, other, other_bytes, _, other_written) in &all[..i] {
                let apart = address.saturating_add(bytes) <= other || other.saturating_add(other_bytes) <= address;
                if (written || other_written) && bytes > 0 && other_bytes > 0 && !apart {
                    return Err(Refused { name, reason: "overlaps another, and one of them is written" });
                }
            }
        }
        Ok(())
    }
}

/// m, n and k.
pub const SIZES: [u64; 3] = [384, 256, 192];

/// Bytes of the workspace.
pub const WORKSPACE_BYTES: u64 = 0;

/// The launches, in order.
pub fn launches(buffers: &Buffers) -> Result<[Launch; 1], Refused> {
    buffers.check()?;
    Ok([
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
    ])
}
