//! The contract in Rust without dependencies.

use std::fmt::Write as _;

use tilewright::codegen::ir::ParamKind;

use super::{Contract, Source, Step, constants, list, source};

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
MAP}

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

/// Why the kernels do not take a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    pub buffer: &'static str,
    pub reason: &'static str,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, \"buffer {} {}\", self.buffer, self.reason)
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
    pub fn check(&self) -> Result<(), Refused> {
        // Name, address, bytes, alignment, written.
        let all: [(&str, u64, u64, u64, bool); COUNT] = [
LIST        ];
        for (i, &(buffer, address, bytes, alignment, written)) in all.iter().enumerate() {
            if address % alignment != 0 {
                return Err(Refused { buffer, reason: \"is not aligned as the kernels need\" });
            }
            for &(_, other, other_bytes, _, other_written) in &all[..i] {
                let apart = address.saturating_add(bytes) <= other || other.saturating_add(other_bytes) <= address;
                if (written || other_written) && bytes > 0 && other_bytes > 0 && !apart {
                    return Err(Refused { buffer, reason: \"overlaps another, and one of them is written\" });
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

impl Contract<'_> {
    pub(super) fn rust(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let _ = writeln!(out, "//! {line}");
        }
        let (variant, map_type) = if self.has_maps() {
            ("    TensorMap(TensorMap),\n", MAP_TYPE)
        } else {
            ("", "")
        };
        out.push_str(map_type);
        out.push_str(&TYPES.replace("MAP", variant));
        let mut list = String::new();
        for b in &self.buffers {
            let _ = writeln!(out, "    pub {}: u64,", b.name);
            let _ = writeln!(
                list,
                "            ({:?}, self.{}, {}, {}, {}),",
                b.name, b.name, b.bytes, b.alignment, b.written
            );
        }
        let check = CHECK.replace("COUNT", &self.buffers.len().to_string());
        let check = check.replace("LIST", &list);
        let _ = writeln!(
            out,
            "}}\n{check}\n/// m, n and k.\npub const SIZES: [u64; 3] = [{}];\n\n/// Bytes of the workspace.\npub const WORKSPACE_BYTES: u64 = {};\n\n/// The launches, in order.\npub fn launches(buffers: &Buffers) -> Result<[Launch; {}], Refused> {{\n    buffers.check()?;\n    Ok([",
            super::list(&self.sizes),
            self.workspace_bytes,
            self.steps.len()
        );
        for step in &self.steps {
            one(&mut out, step);
        }
        out.push_str("    ])\n}\n");
        out
    }
}

fn one(out: &mut String, step: &Step<'_>) {
    let launch = step.launch;
    let _ = writeln!(
        out,
        "        Launch {{\n            kernel: {:?},\n            grid: [{}],\n            block: [{}],\n            cluster: [{}],\n            cluster_declared: {},\n            beside_previous: {},\n            shared_bytes: {},\n            args: vec![",
        launch.kernel,
        list(&launch.grid),
        list(&launch.block),
        list(&launch.cluster),
        step.cluster_declared,
        step.beside_previous,
        launch.shared_bytes
    );
    for argument in &launch.arguments {
        let value = match source(argument) {
            Source::Buffer(name, offset) => at(name, offset),
            Source::Number(number) => number,
            Source::Map(name, offset, encoding) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                format!(
                    "TensorMap {{ data_type: {data_type}, address: {}, sizes: &[{}], strides_bytes: &[{}], box_sizes: &[{}], element_strides: &[{}], interleave: {interleave}, swizzle: {swizzle}, l2_promotion: {l2_promotion}, oob_fill: {oob_fill} }}",
                    at(name, offset),
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides)
                )
            }
        };
        let kind = match argument.kind {
            ParamKind::Pointer => "Ptr",
            ParamKind::U32 => "U32",
            ParamKind::U64 => "U64",
            ParamKind::S32 => "S32",
            ParamKind::F32 => "F32",
            ParamKind::F64 => "F64",
            ParamKind::TensorMap => "TensorMap",
        };
        let _ = writeln!(
            out,
            "                Arg::{kind}({value}), // {}",
            argument.name
        );
    }
    out.push_str("            ],\n        },\n");
}

/// An address in a buffer.
fn at(buffer: &str, offset: u64) -> String {
    match offset {
        0 => format!("buffers.{buffer}"),
        _ => format!("buffers.{buffer} + {offset}"),
    }
}
