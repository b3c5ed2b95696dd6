//! The contract in C99, which is C++ as well.

use std::fmt::Write as _;

use super::formula::Syntax;
use super::{
    AnySize, Contract, ContractBuffer, ContractLaunch, Language, Source, constants, list, number,
    scalar_type,
};
use crate::host::run::{ParamType, Role, Scalar};

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
static inline int tilewright_check(const tilewright_buffers *buffersSCALARS) {
    const uint64_t at[] = {ADDRESSES}, bytes[] = {BYTES};
    static const uint64_t alignment[] = {ALIGNMENTS};
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

/// What a file with sizes defines before its functions of them.
const ARITHMETIC: &str = "\
#define TILEWRIGHT_SCALARS
// What tilewright_launches returns for sizes that the kernel was not proven for.
enum { TILEWRIGHT_SIZE = -1003 };

static inline int64_t tilewright_times(int64_t a, int64_t b) { return b > 0 && a > INT64_MAX / b ? INT64_MAX : a * b; }
static inline int64_t tilewright_larger(int64_t a, int64_t b) { return a > b ? a : b; }
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
    let math = if contract.written().iter().any(|l| not_finite(contract, l)) {
        "#include <math.h>\n"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "#pragma once\n{math}#include <stdint.h>\n\n// Device addresses.\ntypedef struct {{\n{fields}}} tilewright_buffers;\n\n{TYPES}"
    );
    if let Some(any) = &contract.any_size {
        out.push_str(&scalars(contract, any));
    }
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
    let (taken, first) = if contract.any_size.is_some() {
        (
            "const tilewright_scalars *scalars, ",
            "    unsigned grid[3];\n    int status = tilewright_grid(scalars, grid);\n    if (status != 0) return status;\n    \
             if ((status = tilewright_check(buffers, scalars)) != 0) return status;\n    \
             if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return 0; // There is nothing to do.",
        )
    } else {
        (
            "",
            "    int status = tilewright_check(buffers);\n    if (status != 0) return status;",
        )
    };
    let unused = if contract.written().is_empty() {
        "\n    (void)launch, (void)context;"
    } else {
        ""
    };
    let check = check(contract);
    let _ = writeln!(
        out,
        "{sizes}{workspace}enum {{ TILEWRIGHT_WORKSPACE_BYTES = {} }};\n{map_type}\n\
         {check}\n\
         // Checks the buffers, and calls `launch` for each kernel in order; anything but 0 from it ends the sequence and is returned.{about}\n\
         static inline int tilewright_launches(const tilewright_buffers *buffers, {taken}{encode}\n                                      int (*launch)(void *, const tilewright_launch *), void *context) {{{unused}\n{first}",
        contract.workspace_bytes
    );
    for launch in contract.written() {
        one(&mut out, contract, launch);
    }
    out.push_str("    return 0;\n}\n");
    out
}

/// The scalar arguments, and what is computed of them.
fn scalars(contract: &Contract, any: &AnySize) -> String {
    let named = |name: &str| Language::C.identifier(contract, name);
    let size = |name: &str| format!("(int64_t)scalars->{}", named(name));
    let syntax = Syntax {
        size: &size,
        quotient: "/",
        times: Some("tilewright_times"),
        larger: "tilewright_larger",
    };
    let (formulas, mut fields, mut checks) = (&any.formulas, String::new(), String::new());
    for (name, ty) in &any.scalars {
        let _ = writeln!(fields, "    {} {};", c_type(*ty), named(name));
    }
    if any.scalars.is_empty() {
        fields.push_str("    char none;\n");
        checks.push_str("    (void)scalars;\n");
    }
    for range in &formulas.sizes {
        let (name, most, of) = (named(&range.name), range.most, range.multiple);
        if most < u32::MAX.into() {
            let _ = writeln!(
                checks,
                "    if (scalars->{name} > {most}u) return TILEWRIGHT_SIZE;"
            );
        }
        if of > 1 {
            let _ = writeln!(
                checks,
                "    if (scalars->{name} % {of}u != 0) return TILEWRIGHT_SIZE;"
            );
        }
    }
    for stated in &formulas.stated {
        let condition = syntax.compared(&stated.a, stated.cmp, &stated.b);
        let _ = writeln!(checks, "    if (!({condition})) return TILEWRIGHT_SIZE;");
    }
    let blocks = formulas.grid.each_ref().map(|f| syntax.text(f));
    let bytes: Vec<String> = formulas
        .bytes
        .iter()
        .map(|(name, f)| {
            format!(
                "    bytes.{} = (uint64_t)({});\n",
                named(name),
                syntax.text(f)
            )
        })
        .collect();
    let (bytes, bytes_unused) = if bytes.is_empty() {
        ("    bytes.none = 0;\n".to_owned(), "    (void)scalars;\n")
    } else {
        let all = bytes.concat();
        let unused = if all.contains("scalars->") {
            ""
        } else {
            "    (void)scalars;\n"
        };
        (all, unused)
    };
    format!(
        "// The sizes and other numbers of a launch.\ntypedef struct {{\n{fields}}} tilewright_scalars;\n\n{ARITHMETIC}\n\
         // The blocks of the launch, none along an axis if there is nothing to do; 0, or TILEWRIGHT_SIZE.\n\
         static inline int tilewright_grid(const tilewright_scalars *scalars, unsigned grid[3]) {{\n{checks}    \
         const int64_t blocks[] = {{{}}}, most[] = {{{}}};\n    for (unsigned i = 0; i < 3; i++) {{\n        \
         if (blocks[i] > most[i]) return TILEWRIGHT_SIZE;\n        grid[i] = (unsigned)blocks[i];\n    }}\n    return 0;\n}}\n\n\
         // The bytes that each buffer has at least.\n\
         static inline tilewright_buffers tilewright_bytes(const tilewright_scalars *scalars) {{\n    tilewright_buffers bytes;\n{bytes_unused}{bytes}    return bytes;\n}}\n\n",
        list(&blocks),
        list(&formulas.most_blocks)
    )
}

/// The type of a scalar argument.
fn c_type(ty: ParamType) -> &'static str {
    scalar_type(ty, ["uint32_t", "int32_t", "uint64_t", "float", "double"])
}

/// The sizes of the problem, where the text is for one; those that an enumerator cannot hold are macros.
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
    if contract.any_size.is_some() {
        return String::new();
    }
    let (small, large): (Vec<_>, Vec<_>) = contract
        .sizes
        .iter()
        .partition(|(_, v)| i32::try_from(*v).is_ok());
    let small: Vec<String> = small
        .iter()
        .map(|(name, v)| format!("{} = {v}", upper(name)))
        .collect();
    let mut out = "// The problem.\n".to_owned();
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
        let more = if contract.any_size.is_some() {
            ", const tilewright_scalars *scalars"
        } else {
            ""
        };
        let unused = if more.is_empty() {
            ""
        } else {
            ", (void)scalars"
        };
        let none = format!(
            "static inline int tilewright_check(const tilewright_buffers *buffers{more}) {{\n    (void)buffers{unused};\n    return 0;\n}}\n"
        );
        return format!("// There is no buffer to check.\n{none}");
    }
    let row = |f: &dyn Fn(&ContractBuffer) -> String| -> String {
        let all: Vec<String> = contract.buffers.iter().map(f).collect();
        all.join(", ")
    };
    let (scalars, bytes) = if contract.any_size.is_some() {
        let named =
            |b: &ContractBuffer| format!("needed.{}", Language::C.identifier(contract, &b.name));
        (", const tilewright_scalars *scalars", row(&named))
    } else {
        ("", row(&|b| format!("{}ull", b.bytes.unwrap_or(0))))
    };
    let needed = "    const tilewright_buffers needed = tilewright_bytes(scalars);\n";
    let check = CHECK.replace(
        "SCALARS) {\n",
        &if scalars.is_empty() {
            ") {\n".to_owned()
        } else {
            format!("{scalars}) {{\n{needed}")
        },
    );
    check
        .replace("COUNT", &contract.buffers.len().to_string())
        .replace("ADDRESSES", &row(&|b| at(contract, &b.name, 0)))
        .replace("BYTES", &bytes)
        .replace("ALIGNMENTS", &row(&|b| format!("{}ull", b.alignment)))
        .replace(
            "WRITTEN",
            &row(&|b| u8::from(b.role != Role::Input).to_string()),
        )
}

fn not_finite(contract: &Contract, launch: &ContractLaunch) -> bool {
    let mut all = launch.step.args.iter();
    all.any(
        |arg| matches!(contract.source(arg), Source::Number(s) if s.float().is_some_and(|v| !v.is_finite())),
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
        let (ty, value) = match contract.source(arg) {
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
            Source::Scalar(name, ty) => {
                let name = Language::C.identifier(contract, name);
                (c_type(ty), format!("scalars->{name}"))
            }
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
        if contract.any_size.is_some() {
            "grid[0], grid[1], grid[2]".to_owned()
        } else {
            list(&step.grid)
        },
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
