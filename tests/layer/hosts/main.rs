//! Launches kernels from Rust by their generated stubs and the crate cudarc.

use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use cudarc::nvrtc::Ptx;
use half::{bf16, f16};

mod cases;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Where it runs, and what the buffers hold before and after.
struct Host {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    data: Vec<u8>,
}

/// An element of a buffer.
trait Element: DeviceRepr + ValidAsZeroBits + Copy + Default {
    const BYTES: usize;

    fn of(bytes: &[u8]) -> Self;

    /// Its bits, its value, and how far it may be from the right one with a tolerance.
    fn seen(self, tolerance: f64) -> (u64, f64, f64);
}

macro_rules! elements {
    ($($ty:ty: $bytes:expr, $bits:expr, $value:expr;)*) => { $(
        impl Element for $ty {
            const BYTES: usize = $bytes;

            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("an element"))
            }

            fn seen(self, tolerance: f64) -> (u64, f64, f64) {
                let value = $value(self);
                (u64::from($bits(self)), value, tolerance * value.abs().max(1.0))
            }
        }
    )* };
}

elements! {
    f32: 4, f32::to_bits, f64::from;
    i32: 4, i32::cast_unsigned, f64::from;
    f16: 2, f16::to_bits, f64::from;
    bf16: 2, bf16::to_bits, f64::from;
}

/// e4m3: neighbours are an eighth of it apart.
impl Element for u8 {
    const BYTES: usize = 1;

    fn of(bytes: &[u8]) -> Self {
        bytes[0]
    }

    fn seen(self, tolerance: f64) -> (u64, f64, f64) {
        let (exponent, fraction) = (i32::from(self >> 3 & 15), f64::from(self & 7));
        let size = match (exponent, self & 127) {
            (_, 127) => f64::NAN,
            (0, _) => fraction * 2.0_f64.powi(-9),
            _ => (8.0 + fraction) * 2.0_f64.powi(exponent - 10),
        };
        let value = if self & 128 == 0 { size } else { -size };
        let near = if tolerance > 0.0 { size / 8.0 + 1.0 / 512.0 } else { 0.0 };
        (self.into(), value, near)
    }
}

impl Host {
    /// A kernel's text.
    fn module(&self, path: &str) -> Result<Arc<CudaModule>> {
        Ok(self.context.load_module(Ptx::from_file(path))?)
    }

    /// A buffer with what it holds at first: the bytes from `at` on, or bytes of 0xff.
    fn upload<T: Element>(&self, at: Option<usize>, bytes: usize) -> Result<CudaSlice<T>> {
        let first = match at {
            Some(at) => self.data[at..at + bytes].to_vec(),
            None => vec![0xff; bytes],
        };
        let mut values: Vec<T> = first.chunks(T::BYTES).map(T::of).collect();
        // The driver allocates no memory without bytes.
        if values.is_empty() {
            values.push(T::default());
        }
        Ok(self.stream.clone_htod(&values)?)
    }

    /// Whether a buffer holds the bytes from `at` on, or elements that are near them.
    fn compare<T: Element>(
        &self,
        name: &str,
        buffer: &CudaSlice<T>,
        at: usize,
        bytes: usize,
        tolerance: f64,
    ) -> Result<bool> {
        let got = self.stream.clone_dtoh(buffer)?;
        let right = self.data[at..at + bytes].chunks(T::BYTES).map(T::of);
        for (i, (got, right)) in got.into_iter().zip(right).enumerate() {
            let ((bits, x, _), (right_bits, y, near)) = (got.seen(tolerance), right.seen(tolerance));
            let is_near = tolerance > 0.0 && (x - y).abs() <= near;
            if bits != right_bits && !is_near {
                println!("    {name}[{i}] is {x} and not {y}");
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Runs a kernel's launches and says whether they are right.
fn tried(name: &str, right: Result<bool>) -> bool {
    let right = right.unwrap_or_else(|error| {
        println!("    {error}");
        false
    });
    println!("{} cudarc {name}", if right { "PASS" } else { "FAIL" });
    right
}

fn main() -> Result<()> {
    // SAFETY: it looks for the driver's library.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        println!("cudarc: no GPU: not run: there is no driver libcuda.so.1");
        std::process::exit(77);
    }
    let Ok(context) = CudaContext::new(0) else {
        println!("cudarc: no GPU: not run: the driver finds none");
        std::process::exit(77);
    };
    let host = Host {
        stream: context.default_stream(),
        context,
        data: std::fs::read(Path::new("data.bin"))?,
    };
    if cases::all(&host) {
        return Ok(());
    }
    std::process::exit(1);
}
