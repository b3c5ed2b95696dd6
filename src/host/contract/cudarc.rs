//! The contract as a launcher of cudarc: typed buffers, borrowed for the launch, so that a wrong order of arguments does not compile.

use std::fmt::Write as _;

use super::formula::Syntax;
use super::{
    AnySize, Contract, ContractBuffer, ContractLaunch, Language, Source, list, number, refused,
    scalar_type,
};
use crate::host::BufferType;
use crate::host::run::{ParamType, Role, RunError, Scalar};

/// What every file has before the buffers.
const HEAD: &str = "
use std::sync::Arc;

SHARED
#[allow(unused_imports)]
use cudarc::driver::{CudaModule, CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, DriverError, LaunchConfig, PushKernelArg as _};

/// Why nothing was launched.
#[derive(Debug)]
pub enum Refused {
    Argument { name: &'static str, reason: &'static str },
    Driver(DriverError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument { name, reason } => write!(f, \"{name} {reason}\"),
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
        return Err(Refused::Argument { name, reason: \"is shorter than the kernels need\" });
    }
    if address % alignment != 0 {
        return Err(Refused::Argument { name, reason: \"is not aligned as the kernels need\" });
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
    if contract.written().iter().any(clusters) {
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
    let takes_shared = contract.written().iter().any(|l| l.step.shared_bytes > 0);
    let head = HEAD.replace("SHARED\n", if takes_shared { shared } else { "" });
    out.push_str(&head);
    for b in &contract.buffers {
        let (name, ty) = (named(b), element(b.element));
        match b.bytes {
            Some(_) if contract.any_size.is_some() => {
                let _ = writeln!(
                    out,
                    "    /// At least as many bytes as [`Scalars::bytes`] gives."
                );
            }
            Some(bytes) => {
                let _ = writeln!(out, "    /// At least {bytes} bytes.");
            }
            None => {}
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
    out.push_str("}\n\n");
    let mut taken =
        "module: &Arc<CudaModule>, stream: &Arc<CudaStream>, buffers: Buffers<'_>".to_owned();
    let mut first = String::new();
    if let Some(any) = &contract.any_size {
        let fields = contract.buffers.iter().fold(String::new(), |text, b| {
            text + &format!("    pub {}: u64,\n", named(b))
        });
        let _ = writeln!(
            out,
            "/// The bytes that each buffer has at least.\n#[derive(Clone, Copy, PartialEq, Eq, Debug)]\npub struct Bytes {{\n{fields}}}\n"
        );
        out.push_str(&scalars(contract, any, Language::Cudarc));
        taken.push_str(", scalars: Scalars");
        first.push_str("    let grid = scalars.grid()?;\n    if grid.contains(&0) {\n        return Ok(());\n    }\n");
        if !contract.buffers.is_empty() {
            first.push_str("    let needed = scalars.bytes();\n");
        }
    } else {
        let (names, sizes) = super::sizes(contract);
        let _ = writeln!(
            out,
            "/// {names}.\npub const SIZES: [u64; {}] = [{}];\n",
            sizes.len(),
            list(&sizes)
        );
    }
    let _ = writeln!(
        out,
        "/// Bytes of the workspace.\npub const WORKSPACE_BYTES: u64 = {};\n\n\
         /// Launches the kernels of the module on a stream, in order.\n\
         pub fn launch({taken}) -> Result<(), Refused> {{",
        contract.workspace_bytes
    );
    out.push_str(&first);
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
            if contract.any_size.is_some() {
                format!("needed.{name}")
            } else {
                b.bytes.unwrap_or(0).to_string()
            },
            b.alignment
        );
    }
    for launch in contract.written() {
        one(&mut out, contract, launch);
    }
    if contract.written().is_empty() {
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
        let value = match contract.source(arg) {
            Source::Buffer(buffer, offset) | Source::Map(buffer, offset, _) => {
                let buffer = Language::Cudarc.identifier(contract, buffer);
                if offset == 0 {
                    format!("at_{buffer}")
                } else {
                    format!("at_{buffer} + {offset}")
                }
            }
            Source::Scalar(name, _) => {
                format!("scalars.{}", Language::Cudarc.identifier(contract, name))
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
        "    let config = LaunchConfig {{ grid_dim: {}, block_dim: ({}), shared_mem_bytes: {} }};\n    \
         // SAFETY: the values are those of the kernel's parameters, and the buffers were checked.\n    \
         unsafe {{ launch.launch(config) }}?;",
        if contract.any_size.is_some() {
            "grid.into()".to_owned()
        } else {
            format!("({})", list(&step.grid))
        },
        list(&step.block),
        step.shared_bytes
    );
}

/// The scalar arguments in Rust, and what is computed of them.
pub(super) fn scalars(contract: &Contract, any: &AnySize, language: Language) -> String {
    let named = |name: &str| language.identifier(contract, name);
    let size = |name: &str| format!("i64::from(self.{})", named(name));
    let syntax = Syntax {
        size: &size,
        quotient: "/",
        times: Some("i64::saturating_mul"),
        larger: "i64::max",
    };
    let (error, buffers) = match language {
        Language::Cudarc => ("Refused::Argument", "Bytes"),
        _ => ("Refused", "Buffers"),
    };
    let (formulas, mut fields, mut checks) = (&any.formulas, String::new(), String::new());
    for (name, ty) in &any.scalars {
        let range = formulas.sizes.iter().find(|range| range.name == *name);
        if let Some(range) = range.filter(|range| range.most < u32::MAX.into()) {
            let _ = writeln!(fields, "    /// At most {}.", range.most);
        }
        let _ = writeln!(fields, "    pub {}: {},", named(name), rust_type(*ty));
    }
    let mut refuse = |condition: String, name: &str, reason: String| {
        let _ = writeln!(
            checks,
            "        if {condition} {{\n            return Err({error} {{ name: {name:?}, reason: {reason:?} }});\n        }}"
        );
    };
    for range in &formulas.sizes {
        let (name, most, of) = (named(&range.name), range.most, range.multiple);
        if most < u32::MAX.into() {
            refuse(
                format!("self.{name} > {most}"),
                &name,
                format!("is more than {most}, which the kernel was proven for"),
            );
        }
        if of > 1 {
            refuse(
                format!("self.{name} % {of} != 0"),
                &name,
                format!("is no multiple of {of}, which the kernel was proven for"),
            );
        }
    }
    for stated in &formulas.stated {
        let condition = syntax.compared(&stated.a, stated.cmp, &stated.b);
        refuse(
            format!("!({condition})"),
            &stated.condition,
            "does not hold, and the kernel was proven under it".to_owned(),
        );
    }
    let most = list(&formulas.most_blocks);
    refuse(
        format!("blocks.iter().zip([{most}]).any(|(n, most)| *n > most)"),
        "the grid",
        "has more blocks along an axis than there can be".to_owned(),
    );
    // The blocks come before what is said of them.
    let blocks = formulas.grid.each_ref().map(|f| syntax.text(f));
    let blocks = format!("        let blocks: [i64; 3] = [{}];\n", list(&blocks));
    let at = checks.find("        if blocks").unwrap_or_default();
    checks.insert_str(at, &blocks);
    let bytes = formulas
        .bytes
        .iter()
        .fold(String::new(), |text, (name, f)| {
            text + &format!(
                "            {}: ({}) as u64,\n",
                named(name),
                syntax.text(f)
            )
        });
    format!(
        "/// The sizes and other numbers of a launch.\n#[derive(Clone, Copy, PartialEq, Debug)]\npub struct Scalars {{\n{fields}}}\n\n\
         impl Scalars {{\n    /// The blocks of the launch, none along an axis if there is nothing to do.\n    \
         pub fn grid(&self) -> Result<[u32; 3], Refused> {{\n{checks}        Ok(blocks.map(|n| n as u32))\n    }}\n\n    \
         /// The bytes that each buffer has at least.\n    pub fn bytes(&self) -> {buffers} {{\n        {buffers} {{\n{bytes}        }}\n    }}\n}}\n\n"
    )
}

fn rust_type(ty: ParamType) -> &'static str {
    scalar_type(ty, ["u32", "i32", "u64", "f32", "f64"])
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
