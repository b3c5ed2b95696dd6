//! The contract in Python with `ctypes`.

use std::fmt::Write as _;

use tilewright::codegen::ir::ParamKind;

use super::{Contract, Source, Step, constants, list, source};

/// What every file declares.
const LAUNCH: &str = "
class Launch(NamedTuple):
    \"\"\"One launch: `args` are ctypes values in the order of the kernel's parameters.

    A cluster that the PTX declares (`cluster_declared`) needs no launch attribute. A kernel that waits for the one before it (`beside_previous`) may be
    launched with programmatic stream serialization.
    \"\"\"

    kernel: str
    grid: tuple
    block: tuple
    cluster: tuple
    cluster_declared: bool
    beside_previous: bool
    shared_bytes: int
    args: list

";

/// What every file checks.
const CHECK: &str = "
def _check(buffers):
    \"\"\"Alignments, and that a buffer that is written overlaps no other: (name, address, bytes, alignment, written) of each.\"\"\"
    for i, (name, at, size, alignment, written) in enumerate(buffers):
        if at % alignment != 0:
            raise ValueError(f\"buffer {name} is at {at:#x}, and the kernels need a multiple of {alignment}\")
        for other, there, there_size, _, there_written in buffers[:i]:
            apart = at + size <= there or there + there_size <= at
            if (written or there_written) and size and there_size and not apart:
                raise ValueError(f\"buffers {other} and {name} overlap, and one of them is written\")

";

/// What a file with tensor maps declares besides.
const TENSOR_MAP: &str = "
class TensorMap(NamedTuple):
    \"\"\"A tensor map among `args`: what cuTensorMapEncodeTiled takes, constants as cuda.h numbers them, dimensions innermost first.

    The parameter is the 128 bytes that the driver makes of it, in memory aligned to 64 bytes.
    \"\"\"

    data_type: int
    address: int
    sizes: tuple
    strides_bytes: tuple
    box_sizes: tuple
    element_strides: tuple
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int

";

impl Contract<'_> {
    pub(super) fn python(&self) -> String {
        let names: Vec<&str> = self.buffers.iter().map(|b| b.name).collect();
        let checked = self.buffers.iter().fold(String::new(), |text, b| {
            let written = boolean(b.written);
            text + &format!(
                "        ({:?}, {}, {}, {}, {written}),\n",
                b.name, b.name, b.bytes, b.alignment
            )
        });
        let map_type = if self.has_maps() { TENSOR_MAP } else { "" };
        let mut out = format!(
            "\"\"\"{}\"\"\"\n\nimport ctypes\nfrom typing import NamedTuple\n\n# m, n and k.\nSIZES = ({})\nWORKSPACE_BYTES = {}\n\n{map_type}{LAUNCH}{CHECK}\ndef launches({}):\n    \"\"\"The launches in order, for these device addresses.\"\"\"\n    _check([\n{checked}    ])\n    return [\n",
            self.about.join("\n"),
            list(&self.sizes),
            self.workspace_bytes,
            names.join(", ")
        );
        for step in &self.steps {
            one(&mut out, step);
        }
        out.push_str("    ]\n");
        out
    }
}

fn one(out: &mut String, step: &Step<'_>) {
    let launch = step.launch;
    let _ = writeln!(
        out,
        "        Launch(\n            {:?},\n            ({}),\n            ({}),\n            ({}),\n            {},\n            {},\n            {},\n            [",
        launch.kernel,
        list(&launch.grid),
        list(&launch.block),
        list(&launch.cluster),
        boolean(step.cluster_declared),
        boolean(step.beside_previous),
        launch.shared_bytes
    );
    for argument in &launch.arguments {
        let value = match source(argument) {
            Source::Map(name, offset, encoding) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                let _ = writeln!(
                    out,
                    "                TensorMap({data_type}, {}, ({}), ({},), ({}), ({}), {interleave}, {swizzle}, {l2_promotion}, {oob_fill}),  # {}",
                    at(name, offset),
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides),
                    argument.name
                );
                continue;
            }
            Source::Buffer(name, offset) => at(name, offset),
            Source::Number(number) => number,
        };
        let kind = match argument.kind {
            ParamKind::Pointer | ParamKind::TensorMap => "c_void_p",
            ParamKind::U32 => "c_uint32",
            ParamKind::U64 => "c_uint64",
            ParamKind::S32 => "c_int32",
            ParamKind::F32 => "c_float",
            ParamKind::F64 => "c_double",
        };
        let _ = writeln!(
            out,
            "                ctypes.{kind}({value}),  # {}",
            argument.name
        );
    }
    out.push_str("            ],\n        ),\n");
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// An address in a buffer.
fn at(buffer: &str, offset: u64) -> String {
    match offset {
        0 => buffer.to_owned(),
        _ => format!("{buffer} + {offset}"),
    }
}
