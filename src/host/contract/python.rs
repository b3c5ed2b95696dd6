//! The contract in Python with `ctypes`.

use std::fmt::Write as _;

use super::formula::Syntax;
use super::{
    AnySize, Contract, ContractLaunch, Language, Source, constants, list, number, scalar_type,
};
use crate::host::run::{Role, Scalar};

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

/// The module of a contract.
pub(super) fn text(contract: &Contract) -> String {
    let named = |name: &str| Language::Python.identifier(contract, name);
    let names: Vec<String> = contract.buffers.iter().map(|b| named(&b.name)).collect();
    let checked = contract.buffers.iter().fold(String::new(), |text, b| {
        let (name, written) = (named(&b.name), boolean(b.role != Role::Input));
        let bytes = if contract.any_size.is_some() {
            format!("needed[{name:?}]")
        } else {
            b.bytes.unwrap_or(0).to_string()
        };
        text + &format!(
            "        ({name:?}, {name}, {bytes}, {}, {written}),\n",
            b.alignment
        )
    });
    let map_type = if contract.has_maps() { TENSOR_MAP } else { "" };
    let (mut taken, mut first) = (names.join(", "), String::new());
    let sizes = if let Some(any) = &contract.any_size {
        let scalars: Vec<String> = any.scalars.iter().map(|(name, _)| named(name)).collect();
        let mut given = String::new();
        if !scalars.is_empty() {
            let separator = if names.is_empty() { "" } else { ", " };
            let _ = write!(taken, "{separator}*, {}", scalars.join(", "));
            let each = scalars.iter().map(|name| format!("{name}={name}"));
            given = each.collect::<Vec<_>>().join(", ");
        }
        first = format!("    blocks = grid({given})\n    needed = buffer_bytes({given})\n");
        of_sizes(contract, any, &scalars)
    } else {
        let (comment, sizes) = super::sizes(contract);
        // A tuple of one has a comma.
        let end = if sizes.len() == 1 { "," } else { "" };
        format!("# {comment}.\nSIZES = ({}{end})\n", list(&sizes))
    };
    let mut out = format!(
        "\"\"\"{}\"\"\"\n\nimport ctypes\nfrom typing import NamedTuple\n\n{}WORKSPACE_BYTES = {}\n\n{map_type}{LAUNCH}{CHECK}{}\ndef launches({taken}):\n    \"\"\"The launches in order, for these device addresses.\"\"\"\n{first}    _check([\n{checked}    ])\n    return [\n",
        contract.head().join("\n"),
        if contract.any_size.is_some() {
            ""
        } else {
            &sizes
        },
        contract.workspace_bytes,
        if contract.any_size.is_some() {
            &sizes
        } else {
            ""
        },
    );
    if contract.any_size.is_some() {
        let end = out.len() - "    return [\n".len();
        out.insert_str(end, "    if 0 in blocks:\n        return []\n");
    }
    for launch in contract.written() {
        one(&mut out, contract, launch);
    }
    out.push_str("    ]\n");
    out
}

/// The functions of the scalar arguments.
fn of_sizes(contract: &Contract, any: &AnySize, scalars: &[String]) -> String {
    let named = |name: &str| Language::Python.identifier(contract, name);
    let syntax = Syntax {
        size: &named,
        quotient: "//",
        times: None,
        larger: "max",
    };
    let (formulas, mut checks) = (&any.formulas, String::new());
    for range in &formulas.sizes {
        let (name, most, of) = (named(&range.name), range.most, range.multiple);
        let _ = writeln!(
            checks,
            "    if not 0 <= {name} <= {most}:\n        raise ValueError(f\"{name} is {{{name}}}, and the kernel was proven for 0 to {most}\")"
        );
        if of > 1 {
            let _ = writeln!(
                checks,
                "    if {name} % {of} != 0:\n        raise ValueError(f\"{name} is {{{name}}}, and the kernel was proven for multiples of {of}\")"
            );
        }
    }
    for stated in &formulas.stated {
        let condition = syntax.compared(&stated.a, stated.cmp, &stated.b);
        let _ = writeln!(
            checks,
            "    if not {condition}:\n        raise ValueError(\"the kernel was proven for {}\")",
            stated.condition
        );
    }
    let taken = if scalars.is_empty() {
        String::new()
    } else {
        format!("*, {}", scalars.join(", "))
    };
    let blocks = formulas.grid.each_ref().map(|f| syntax.text(f));
    let bytes = formulas
        .bytes
        .iter()
        .fold(String::new(), |text, (name, f)| {
            text + &format!("        {:?}: {},\n", named(name), syntax.text(f))
        });
    format!(
        "\ndef grid({taken}):\n    \"\"\"The blocks of the launch, none along an axis if there is nothing to do.\"\"\"\n{checks}    \
         blocks = ({})\n    if any(n > most for n, most in zip(blocks, ({}))):\n        \
         raise ValueError(f\"the problem takes {{blocks}} blocks, and a grid has no room for them\")\n    return blocks\n\n\
         \ndef buffer_bytes({taken}):\n    \"\"\"The bytes that each buffer has at least.\"\"\"\n    return {{\n{bytes}    }}\n\n",
        list(&blocks),
        list(&formulas.most_blocks)
    )
}

fn one(out: &mut String, contract: &Contract, launch: &ContractLaunch) {
    let step = &launch.step;
    let _ = writeln!(
        out,
        "        Launch(\n            {:?},\n            {},\n            ({}),\n            ({}),\n            {},\n            {},\n            {},\n            [",
        step.entry,
        if contract.any_size.is_some() {
            "blocks".to_owned()
        } else {
            format!("({})", list(&step.grid))
        },
        list(&step.block),
        list(&step.cluster),
        boolean(launch.cluster_declared),
        boolean(launch.beside_previous),
        step.shared_bytes
    );
    for (arg, name) in step.args.iter().zip(&launch.names) {
        let (kind, value) = match contract.source(arg) {
            Source::Map(buffer, offset, encoding) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                let _ = writeln!(
                    out,
                    "                TensorMap({data_type}, {}, ({}), ({},), ({}), ({}), {interleave}, {swizzle}, {l2_promotion}, {oob_fill}),  # {name}",
                    at(contract, buffer, offset),
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides),
                );
                continue;
            }
            Source::Buffer(buffer, offset) => ("c_void_p", at(contract, buffer, offset)),
            Source::Scalar(name, ty) => {
                let types = ["c_uint32", "c_int32", "c_uint64", "c_float", "c_double"];
                (
                    scalar_type(ty, types),
                    Language::Python.identifier(contract, name),
                )
            }
            Source::Number(scalar) => literal(scalar),
        };
        let _ = writeln!(out, "                ctypes.{kind}({value}),  # {name}");
    }
    out.push_str("            ],\n        ),\n");
}

/// The type of a number and its literal.
fn literal(scalar: &Scalar) -> (&'static str, String) {
    let text = number(scalar);
    let text = match text.as_str() {
        "inf" | "-inf" | "NaN" => format!("float({text:?})"),
        _ => text,
    };
    match scalar {
        Scalar::F32(_) => ("c_float", text),
        Scalar::F64(_) => ("c_double", text),
        Scalar::I32(_) => ("c_int32", text),
        Scalar::I64(_) => ("c_int64", text),
        Scalar::U64(_) => ("c_uint64", text),
        Scalar::U32(_) | Scalar::Bytes(_) => ("c_uint32", text),
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// An address in a buffer.
fn at(contract: &Contract, buffer: &str, offset: u64) -> String {
    let name = Language::Python.identifier(contract, buffer);
    match offset {
        0 => name,
        _ => format!("{name} + {offset}"),
    }
}
