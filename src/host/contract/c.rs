//! The contract in C99, which is C++ as well.

use std::fmt::Write as _;

use super::{
    Contract, ContractBuffer, ContractLaunch, Language, Source, constants, list, number, source,
};
use crate::host::run::{Role, Scalar};

/// What every file declares besides the buffers.
const TYPES: &str = "\
// One launch: `params` is the kernelParams of cuLaunchKernel, which are valid during the call. A cluster that the PTX declares (`cluster_declared`) needs
// no launch attribute. A kernel that waits for the one before it (`beside_previous`) may be launched with programmatic stream serialization.
typedef struct {
    const char *kernel;
    unsigned grid[3], block[3], cluster[3], shared_bytes, count;
    int cluster_declared, beside_previous;
    void **params;
} tilewright_launch;
";

/// What a file with tensor maps declares besides.
const MAP_TYPE: &str = "
#define TILEWRIGHT_TENSOR_MAPS
// A tensor map: what cuTensorMapEncodeTiled takes, constants as cuda.h numbers them, dimensions innermost first.
typedef struct {
    uint32_t data_type, rank;
    uint64_t address;
    const uint64_t *sizes, *strides_bytes;
    const uint32_t *box_sizes, *element_strides;
    uint32_t interleave, swizzle, l2_promotion, oob_fill;
} tilewright_tensor_map;
";

/// What every file checks.
const CHECK: &str = "\
// What tilewright_launches returns for buffers that the kernels do not take.
enum { TILEWRIGHT_MISALIGNED = -1001, TILEWRIGHT_OVERLAP = -1002 };

// 0 if the buffers are aligned as the kernels need, and one that is written overlaps no other.
static inline int tilewright_check(const tilewright_buffers *buffers) {
    const uint64_t at[] = {ADDRESSES};
    static const uint64_t bytes[] = {BYTES}, alignment[] = {ALIGNMENTS};
    static const unsigned char written[] = {WRITTEN};
    for (unsigned i = 0; i < COUNT; i++) {
        if (at[i] % alignment[i] != 0) return TILEWRIGHT_MISALIGNED;
        for (unsigned j = 0; j < i; j++) {
            int apart = at[i] + bytes[i] <= at[j] || at[j] + bytes[j] <= at[i];
            if ((written[i] || written[j]) && bytes[i] > 0 && bytes[j] > 0 && !apart) return TILEWRIGHT_OVERLAP;
        }
    }
    return 0;
}
";

/// A place for a map in a buffer of 192 bytes, at a multiple of 64: C99 has no word for the alignment.
const PLACE: &str = "(void *)(((uintptr_t)";

/// The header of a contract.
pub(super) fn text(contract: &Contract) -> String {
    let mut out = String::new();
    for line in contract.head() {
        let _ = writeln!(out, "// {line}");
    }
    let fields = contract.buffers.iter().fold(String::new(), |text, b| {
        let name = Language::C.identifier(contract, &b.name);
        let element = b.element.map_or(String::new(), |e| format!(" // {e}"));
        text + &format!("    uint64_t {name};{element}\n")
    });
    // A structure of C has a member.
    let fields = if fields.is_empty() {
        "    uint64_t none;\n".to_owned()
    } else {
        fields
    };
    let math = if contract.launches.iter().any(not_finite) {
        "#include <math.h>\n"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "#pragma once\n{math}#include <stdint.h>\n\n// Device addresses.\ntypedef struct {{\n{fields}}} tilewright_buffers;\n\n{TYPES}"
    );
    let sizes = sizes(contract);
    // What a host asks for before it names the field.
    let workspace = if contract.workspace_bytes > 0 {
        "#define TILEWRIGHT_WORKSPACE\n"
    } else {
        ""
    };
    let (map_type, encode, about) = if contract.has_maps() {
        (
            MAP_TYPE,
            "\n                                      int (*encode)(void *, const tilewright_tensor_map *, void *),",
            "\n// Before that it calls `encode` for each tensor map, which writes 128 bytes to a place aligned to 64, as cuTensorMapEncodeTiled does.",
        )
    } else {
        ("", "", "")
    };
    let unused = if contract.launches.is_empty() {
        "\n    (void)launch, (void)context;"
    } else {
        ""
    };
    let check = check(contract);
    let _ = writeln!(
        out,
        "// The problem.\n{sizes}{workspace}enum {{ TILEWRIGHT_WORKSPACE_BYTES = {} }};\n{map_type}\n\
         {check}\n\
         // Checks the buffers, and calls `launch` for each kernel in order; anything but 0 from it ends the sequence and is returned.{about}\n\
         static inline int tilewright_launches(const tilewright_buffers *buffers,{encode}\n                                      int (*launch)(void *, const tilewright_launch *), void *context) {{{unused}\n    int status = tilewright_check(buffers);\n    if (status != 0) return status;",
        contract.workspace_bytes
    );
    for launch in &contract.launches {
        one(&mut out, contract, launch);
    }
    out.push_str("    return 0;\n}\n");
    out
}

/// The sizes of the problem; those that an enumerator cannot hold are macros.
fn sizes(contract: &Contract) -> String {
    let upper = |name: &str| {
        let same = contract
            .sizes
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let name = if same.count() <= 1 {
            name.to_ascii_uppercase()
        } else {
            name.to_owned()
        };
        let taken = [
            "WORKSPACE",
            "WORKSPACE_BYTES",
            "TENSOR_MAPS",
            "MISALIGNED",
            "OVERLAP",
        ];
        let end = if taken.contains(&name.as_str()) {
            "_"
        } else {
            ""
        };
        format!("TILEWRIGHT_{name}{end}")
    };
    let (small, large): (Vec<_>, Vec<_>) = contract
        .sizes
        .iter()
        .partition(|(_, v)| i32::try_from(*v).is_ok());
    let small: Vec<String> = small
        .iter()
        .map(|(name, v)| format!("{} = {v}", upper(name)))
        .collect();
    let mut out = String::new();
    if !small.is_empty() {
        let _ = writeln!(out, "enum {{ {} }};", small.join(", "));
    }
    for (name, v) in large {
        let _ = writeln!(out, "#define {} {v}ull", upper(name));
    }
    out
}

/// The function that checks the addresses.
fn check(contract: &Contract) -> String {
    if contract.buffers.is_empty() {
        let none = "static inline int tilewright_check(const tilewright_buffers *buffers) {\n    (void)buffers;\n    return 0;\n}\n";
        return format!("// There is no buffer to check.\n{none}");
    }
    let row = |f: &dyn Fn(&ContractBuffer) -> String| -> String {
        let all: Vec<String> = contract.buffers.iter().map(f).collect();
        all.join(", ")
    };
    CHECK
        .replace("COUNT", &contract.buffers.len().to_string())
        .replace("ADDRESSES", &row(&|b| at(contract, &b.name, 0)))
        .replace("BYTES", &row(&|b| format!("{}ull", b.bytes.unwrap_or(0))))
        .replace("ALIGNMENTS", &row(&|b| format!("{}ull", b.alignment)))
        .replace(
            "WRITTEN",
            &row(&|b| u8::from(b.role != Role::Input).to_string()),
        )
}

fn not_finite(launch: &ContractLaunch) -> bool {
    let mut all = launch.step.args.iter();
    all.any(
        |arg| matches!(source(arg), Source::Number(s) if s.float().is_some_and(|v| !v.is_finite())),
    )
}

/// The type of a number and its literal.
fn literal(scalar: &Scalar) -> (&'static str, String) {
    let text = number(scalar);
    let infinite = |text: &str| match text {
        "inf" => Some("INFINITY"),
        "-inf" => Some("-INFINITY"),
        "NaN" => Some("NAN"),
        _ => None,
    };
    match (scalar, infinite(&text)) {
        (Scalar::F32(_), Some(name)) => ("float", name.to_owned()),
        (Scalar::F32(_), None) => ("float", text + "f"),
        (Scalar::F64(_), Some(name)) => ("double", name.to_owned()),
        (Scalar::F64(_), None) => ("double", text),
        // The least integers have no literals of their own in C.
        (Scalar::I32(i32::MIN), _) => ("int32_t", "-2147483647 - 1".to_owned()),
        (Scalar::I64(i64::MIN), _) => ("int64_t", "-9223372036854775807ll - 1".to_owned()),
        (Scalar::I32(_), _) => ("int32_t", text),
        (Scalar::I64(_), _) => ("int64_t", text + "ll"),
        (Scalar::U64(_), _) => ("uint64_t", text + "ull"),
        (Scalar::U32(_) | Scalar::Bytes(_), _) => ("uint32_t", text),
    }
}

fn one(out: &mut String, contract: &Contract, launch: &ContractLaunch) {
    let step = &launch.step;
    out.push_str("    {\n");
    let mut values = Vec::new();
    for (i, (arg, name)) in step.args.iter().zip(&launch.names).enumerate() {
        let (ty, value) = match source(arg) {
            Source::Map(buffer, offset, encoding) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                let _ = writeln!(
                    out,
                    "        static const uint64_t sizes{i}[] = {{{}}}, strides{i}[] = {{{}}};\n        static const uint32_t box{i}[] = {{{}}}, steps{i}[] = {{{}}};\n        tilewright_tensor_map map{i} = {{{data_type}, {}, {}, sizes{i}, strides{i}, box{i}, steps{i}, {interleave}, {swizzle}, {l2_promotion}, {oob_fill}}};\n        unsigned char space{i}[192];\n        void *p{i} = {PLACE}space{i} + 63) & ~(uintptr_t)63); // {name}\n        if ((status = encode(context, &map{i}, p{i})) != 0) return status;",
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides),
                    encoding.sizes.len(),
                    at(contract, buffer, offset),
                );
                values.push(format!("p{i}"));
                continue;
            }
            Source::Buffer(buffer, offset) => ("uint64_t", at(contract, buffer, offset)),
            Source::Number(scalar) => literal(scalar),
        };
        let _ = writeln!(out, "        {ty} p{i} = {value}; // {name}");
        values.push(format!("&p{i}"));
    }
    // An array of C has an element.
    let count = values.len();
    if count == 0 {
        values.push("0".to_owned());
    }
    let _ = writeln!(
        out,
        "        void *params[] = {{{}}};\n        tilewright_launch one = {{\"{}\", {{{}}}, {{{}}}, {{{}}}, {}, {count}, {}, {}, params}};\n        if ((status = launch(context, &one)) != 0) return status;\n    }}",
        values.join(", "),
        step.entry,
        list(&step.grid),
        list(&step.block),
        list(&step.cluster),
        step.shared_bytes,
        u8::from(launch.cluster_declared),
        u8::from(launch.beside_previous)
    );
}

/// An address in a buffer.
fn at(contract: &Contract, buffer: &str, offset: u64) -> String {
    let name = Language::C.identifier(contract, buffer);
    match offset {
        0 => format!("buffers->{name}"),
        _ => format!("buffers->{name} + {offset}u"),
    }
}
