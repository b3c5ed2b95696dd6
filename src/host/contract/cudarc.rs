//! The contract as a launcher of cudarc: typed buffers, borrowed for the launch, so that a wrong order of arguments does not compile.

use std::fmt::Write as _;

use super::{
    Contract, ContractBuffer, ContractLaunch, Language, Source, list, number, refused, source,
};
use crate::host::BufferType;
use crate::host::run::{Role, RunError, Scalar};

/// What every file has before the buffers.
const HEAD: &str = "
use std::sync::Arc;

SHARED
#[allow(unused_imports)]
use cudarc::driver::{CudaModule, CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, DriverError, LaunchConfig, PushKernelArg as _};

/// Why nothing was launched.
#[derive(Debug)]
pub enum Refused {
    Buffer { name: &'static str, reason: &'static str },
    Driver(DriverError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Buffer { name, reason } => write!(f, \"buffer {name} {reason}\"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<DriverError> for Refused {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

fn check(name: &'static str, address: u64, bytes: usize, least: u64, alignment: u64) -> Result<(), Refused> {
    if (bytes as u64) < least {
        return Err(Refused::Buffer { name, reason: \"is shorter than the kernels need\" });
    }
    if address % alignment != 0 {
        return Err(Refused::Buffer { name, reason: \"is not aligned as the kernels need\" });
    }
    Ok(())
}

/// The buffers, borrowed for the launch: one that is written overlaps no other.
pub struct Buffers<'b> {
";

/// The module of a contract.
pub(super) fn text(contract: &Contract) -> Result<String, RunError> {
    let refuse = |reason: &str| Err(refused(reason));
    if contract.has_maps() {
        return refuse(
            "cudarc's launches pass no tensor maps: write the host in rust, and encode them by the driver",
        );
    }
    let clusters =
        |l: &ContractLaunch| !l.cluster_declared && l.step.cluster.iter().any(|blocks| *blocks > 1);
    if contract.launches.iter().any(clusters) {
        return refuse(
            "cudarc's launches have no clusters: write the host in rust, and launch by the driver",
        );
    }
    let named = |b: &ContractBuffer| Language::Cudarc.identifier(contract, &b.name);
    let mut out = String::new();
    // What follows says where buffers are, and here they are slices.
    let about = contract.about.iter().take(1).cloned();
    for line in about.chain(contract.unchecked()) {
        let _ = writeln!(out, "//! {line}");
    }
    let shared = "use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;\n";
    let takes_shared = contract.launches.iter().any(|l| l.step.shared_bytes > 0);
    let head = HEAD.replace("SHARED\n", if takes_shared { shared } else { "" });
    out.push_str(&head);
    for b in &contract.buffers {
        let (name, ty) = (named(b), element(b.element));
        if let Some(bytes) = b.bytes {
            let _ = writeln!(out, "    /// At least {bytes} bytes.");
        }
        let reference = if b.role == Role::Input {
            "&'b"
        } else {
            "&'b mut"
        };
        let _ = writeln!(out, "    pub {name}: {reference} CudaSlice<{ty}>,");
    }
    if contract.buffers.is_empty() {
        out.push_str("    pub none: std::marker::PhantomData<&'b ()>,\n");
    }
    let (names, sizes) = super::sizes(contract);
    let _ = writeln!(
        out,
        "}}\n\n/// {names}.\npub const SIZES: [u64; {}] = [{}];\n\n/// Bytes of the workspace.\npub const WORKSPACE_BYTES: u64 = {};\n\n\
         /// Launches the kernels of the module on a stream, in order.\n\
         pub fn launch(module: &Arc<CudaModule>, stream: &Arc<CudaStream>, buffers: Buffers<'_>) -> Result<(), Refused> {{",
        sizes.len(),
        list(&sizes),
        contract.workspace_bytes
    );
    for b in &contract.buffers {
        let name = named(b);
        let pointer = if b.role == Role::Input {
            "device_ptr"
        } else {
            "device_ptr_mut"
        };
        let _ = writeln!(
            out,
            "    let bytes = buffers.{name}.num_bytes();\n    let (at_{name}, _{name}) = buffers.{name}.{pointer}(stream);\n    check({name:?}, at_{name}, bytes, {}, {})?;",
            b.bytes.unwrap_or(0),
            b.alignment
        );
    }
    for launch in &contract.launches {
        one(&mut out, contract, launch);
    }
    if contract.launches.is_empty() {
        out.push_str("    let _ = (module, stream);\n");
    }
    if contract.buffers.is_empty() {
        out.push_str("    let _ = buffers;\n");
    }
    out.push_str("    Ok(())\n}\n");
    Ok(out)
}

fn one(out: &mut String, contract: &Contract, launch: &ContractLaunch) {
    let step = &launch.step;
    let _ = writeln!(
        out,
        "    let kernel = module.load_function({:?})?;",
        step.entry
    );
    if step.shared_bytes > 0 {
        let _ = writeln!(
            out,
            "    kernel.set_attribute(SHARED, {})?;",
            step.shared_bytes
        );
    }
    out.push_str("    let mut launch = stream.launch_builder(&kernel);\n");
    for (i, (arg, name)) in step.args.iter().zip(&launch.names).enumerate() {
        let value = match source(arg) {
            Source::Buffer(buffer, offset) | Source::Map(buffer, offset, _) => {
                let buffer = Language::Cudarc.identifier(contract, buffer);
                if offset == 0 {
                    format!("at_{buffer}")
                } else {
                    format!("at_{buffer} + {offset}")
                }
            }
            Source::Number(scalar) => literal(scalar),
        };
        let _ = writeln!(
            out,
            "    let p{i} = {value}; // {name}\n    launch.arg(&p{i});"
        );
    }
    let _ = writeln!(
        out,
        "    let config = LaunchConfig {{ grid_dim: ({}), block_dim: ({}), shared_mem_bytes: {} }};\n    \
         // SAFETY: the values are those of the kernel's parameters, and the buffers were checked.\n    \
         unsafe {{ launch.launch(config) }}?;",
        list(&step.grid),
        list(&step.block),
        step.shared_bytes
    );
}

/// The Rust type of an element; bytes where it is not known.
fn element(ty: Option<BufferType>) -> &'static str {
    match ty {
        Some(BufferType::I8) => "i8",
        Some(BufferType::I16) => "i16",
        Some(BufferType::U16) => "u16",
        Some(BufferType::I32) => "i32",
        Some(BufferType::U32) => "u32",
        Some(BufferType::I64) => "i64",
        Some(BufferType::U64) => "u64",
        Some(BufferType::F16) => "half::f16",
        Some(BufferType::Bf16) => "half::bf16",
        Some(BufferType::F32) => "f32",
        Some(BufferType::F64) => "f64",
        Some(BufferType::U8 | BufferType::E4m3 | BufferType::E5m2) | None => "u8",
    }
}

/// A number with its type.
fn literal(scalar: &Scalar) -> String {
    let ty = match scalar {
        Scalar::U32(_) | Scalar::Bytes(_) => "u32",
        Scalar::I32(_) => "i32",
        Scalar::U64(_) => "u64",
        Scalar::I64(_) => "i64",
        Scalar::F32(_) => "f32",
        Scalar::F64(_) => "f64",
    };
    match number(scalar).as_str() {
        "inf" => format!("{ty}::INFINITY"),
        "-inf" => format!("{ty}::NEG_INFINITY"),
        "NaN" => format!("{ty}::NAN"),
        text => format!("{text}_{ty}"),
    }
}
