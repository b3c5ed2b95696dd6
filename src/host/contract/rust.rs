//! The contract in Rust without dependencies.

use std::fmt::Write as _;

use super::{Contract, ContractLaunch, Language, Source, constants, list, number};
use crate::host::run::{ParamType, Role, Scalar, StepArg};

/// What every file declares, but for the buffers.
const TYPES: &str = "
/// A parameter's value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arg {
    Ptr(u64),
    U32(u32),
    U64(u64),
    S32(i32),
    F32(f32),
    F64(f64),
MORE}

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
        write!(f, \"{} {}\", self.name, self.reason)
    }
}

impl std::error::Error for Refused {}

/// Device addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
";

/// What every file checks.
const CHECK: &str = "
impl Buffers {
    /// Checks alignments, and that a buffer that is written overlaps no other.
    pub fn check(&selfSCALARS) -> Result<(), Refused> {
        // Name, address, bytes, alignment, written.
        let all: [(&str, u64, u64, u64, bool); COUNT] = [
LIST        ];
        for (i, &(name, address, bytes, alignment, written)) in all.iter().enumerate() {
            if address % alignment != 0 {
                return Err(Refused { name, reason: \"is not aligned as the kernels need\" });
            }
            for &(_, other, other_bytes, _, other_written) in &all[..i] {
                let apart = address.saturating_add(bytes) <= other || other.saturating_add(other_bytes) <= address;
                if (written || other_written) && bytes > 0 && other_bytes > 0 && !apart {
                    return Err(Refused { name, reason: \"overlaps another, and one of them is written\" });
                }
            }
        }
        Ok(())
    }
}
";

/// What a file with tensor maps declares besides.
const MAP_TYPE: &str = "
/// A tensor map: what cuTensorMapEncodeTiled takes, constants as cuda.h numbers them, dimensions innermost first. The parameter is the 128 bytes that the
/// driver makes of it, in memory aligned to 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorMap {
    pub data_type: u32,
    pub address: u64,
    pub sizes: &'static [u64],
    pub strides_bytes: &'static [u64],
    pub box_sizes: &'static [u32],
    pub element_strides: &'static [u32],
    pub interleave: u32,
    pub swizzle: u32,
    pub l2_promotion: u32,
    pub oob_fill: u32,
}
";

/// The module of a contract.
pub(super) fn text(contract: &Contract) -> String {
    let mut out = String::new();
    for line in contract.head() {
        let _ = writeln!(out, "//! {line}");
    }
    let (mut more, mut map_type) = (String::new(), "");
    let mut all = contract.written().iter().flat_map(|l| &l.step.args);
    if all.any(|arg| matches!(arg, StepArg::Value(Scalar::I64(_)))) {
        more.push_str("    S64(i64),\n");
    }
    if contract.has_maps() {
        more.push_str("    TensorMap(TensorMap),\n");
        map_type = MAP_TYPE;
    }
    out.push_str(map_type);
    out.push_str(&TYPES.replace("MORE", &more));
    let mut checked = String::new();
    for b in &contract.buffers {
        let name = Language::Rust.identifier(contract, &b.name);
        let _ = writeln!(out, "    pub {name}: u64,");
        let _ = writeln!(
            checked,
            "            ({:?}, self.{name}, {}, {}, {}),",
            name,
            if contract.any_size.is_some() {
                format!("needed.{name}")
            } else {
                b.bytes.unwrap_or(0).to_string()
            },
            b.alignment,
            b.role != Role::Input
        );
    }
    let check = CHECK.replace("COUNT", &contract.buffers.len().to_string());
    let check = check.replace("LIST", &checked);
    let any_size = contract.any_size.as_ref();
    let needed =
        ", scalars: &Scalars) -> Result<(), Refused> {\n        let needed = scalars.bytes();";
    let check = match any_size {
        Some(_) => check.replace("SCALARS) -> Result<(), Refused> {", needed),
        None => check.replace("SCALARS", ""),
    };
    let workspace = format!(
        "/// Bytes of the workspace.\npub const WORKSPACE_BYTES: u64 = {};\n\n/// The launches, in order.\n",
        contract.workspace_bytes
    );
    if let Some(any) = any_size {
        let scalars = super::cudarc::scalars(contract, any, Language::Rust);
        let _ = writeln!(
            out,
            "}}\n{check}\n{scalars}{workspace}pub fn launches(buffers: &Buffers, scalars: &Scalars) -> Result<Vec<Launch>, Refused> {{\n    \
             let grid = scalars.grid()?;\n    buffers.check(scalars)?;\n    if grid.contains(&0) {{\n        return Ok(Vec::new());\n    }}\n    Ok(vec![",
        );
    } else {
        let (names, sizes) = super::sizes(contract);
        let _ = writeln!(
            out,
            "}}\n{check}\n/// {names}.\npub const SIZES: [u64; {}] = [{}];\n\n{workspace}pub fn launches(buffers: &Buffers) -> Result<[Launch; {}], Refused> {{\n    buffers.check()?;\n    Ok([",
            sizes.len(),
            list(&sizes),
            contract.launches.len()
        );
    }
    for launch in contract.written() {
        one(&mut out, contract, launch);
    }
    out.push_str("    ])\n}\n");
    out
}

fn one(out: &mut String, contract: &Contract, launch: &ContractLaunch) {
    let step = &launch.step;
    let _ = writeln!(
        out,
        "        Launch {{\n            kernel: {:?},\n            grid{},\n            block: [{}],\n            cluster: [{}],\n            cluster_declared: {},\n            beside_previous: {},\n            shared_bytes: {},\n            args: vec![",
        step.entry,
        if contract.any_size.is_some() {
            String::new()
        } else {
            format!(": [{}]", list(&step.grid))
        },
        list(&step.block),
        list(&step.cluster),
        launch.cluster_declared,
        launch.beside_previous,
        step.shared_bytes
    );
    for (arg, name) in step.args.iter().zip(&launch.names) {
        let (kind, value) = match contract.source(arg) {
            Source::Buffer(buffer, offset) => ("Ptr", at(contract, buffer, offset)),
            Source::Scalar(name, ty) => {
                let name = Language::Rust.identifier(contract, name);
                (variant(ty), format!("scalars.{name}"))
            }
            Source::Number(scalar) => literal(scalar),
            Source::Map(buffer, offset, encoding) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                let map = format!(
                    "TensorMap {{ data_type: {data_type}, address: {}, sizes: &[{}], strides_bytes: &[{}], box_sizes: &[{}], element_strides: &[{}], interleave: {interleave}, swizzle: {swizzle}, l2_promotion: {l2_promotion}, oob_fill: {oob_fill} }}",
                    at(contract, buffer, offset),
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides)
                );
                ("TensorMap", map)
            }
        };
        let _ = writeln!(out, "                Arg::{kind}({value}), // {name}");
    }
    out.push_str("            ],\n        },\n");
}

/// The variant of a scalar argument.
fn variant(ty: ParamType) -> &'static str {
    super::scalar_type(ty, ["U32", "S32", "U64", "F32", "F64"])
}

/// The variant of a number and its literal.
fn literal(scalar: &Scalar) -> (&'static str, String) {
    let text = number(scalar);
    let float = |ty: &str| match text.as_str() {
        "inf" => format!("{ty}::INFINITY"),
        "-inf" => format!("{ty}::NEG_INFINITY"),
        "NaN" => format!("{ty}::NAN"),
        _ => text.clone(),
    };
    match scalar {
        Scalar::F32(_) => ("F32", float("f32")),
        Scalar::F64(_) => ("F64", float("f64")),
        Scalar::I32(_) => ("S32", text),
        Scalar::I64(_) => ("S64", text),
        Scalar::U64(_) => ("U64", text),
        Scalar::U32(_) | Scalar::Bytes(_) => ("U32", text),
    }
}

/// An address in a buffer.
fn at(contract: &Contract, buffer: &str, offset: u64) -> String {
    let name = Language::Rust.identifier(contract, buffer);
    match offset {
        0 => format!("buffers.{name}"),
        _ => format!("buffers.{name} + {offset}"),
    }
}
