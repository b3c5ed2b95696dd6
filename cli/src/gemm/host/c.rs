//! The contract in C99, which is C++ as well.

use std::fmt::Write as _;

use tilewright::codegen::ir::ParamKind;

use super::{Buffer, Contract, Source, Step, constants, list, source};

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

impl Contract<'_> {
    pub(super) fn c(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let _ = writeln!(out, "// {line}");
        }
        let fields = self.buffers.iter().fold(String::new(), |text, b| {
            text + "    uint64_t " + b.name + ";\n"
        });
        let check = self.check();
        let _ = writeln!(
            out,
            "#pragma once\n#include <stdint.h>\n\n// Device addresses.\ntypedef struct {{\n{fields}}} tilewright_buffers;\n\n{TYPES}"
        );
        let [m, n, k] = self.sizes;
        // What a host asks for before it names the field.
        let workspace = if self.workspace_bytes > 0 {
            "#define TILEWRIGHT_WORKSPACE\n"
        } else {
            ""
        };
        let (map_type, encode, about) = if self.has_maps() {
            (
                MAP_TYPE,
                "\n                                      int (*encode)(void *, const tilewright_tensor_map *, void *),",
                "\n// Before that it calls `encode` for each tensor map, which writes 128 bytes to a place aligned to 64, as cuTensorMapEncodeTiled does.",
            )
        } else {
            ("", "", "")
        };
        let _ = writeln!(
            out,
            "// The problem.\nenum {{ TILEWRIGHT_M = {m}, TILEWRIGHT_N = {n}, TILEWRIGHT_K = {k} }};\n{workspace}enum {{ TILEWRIGHT_WORKSPACE_BYTES = {} }};\n{map_type}\n\
             {check}\n\
             // Checks the buffers, and calls `launch` for each kernel in order; anything but 0 from it ends the sequence and is returned.{about}\n\
             static inline int tilewright_launches(const tilewright_buffers *buffers,{encode}\n                                      int (*launch)(void *, const tilewright_launch *), void *context) {{\n    int status = tilewright_check(buffers);\n    if (status != 0) return status;",
            self.workspace_bytes
        );
        for step in &self.steps {
            one(&mut out, step);
        }
        out.push_str("    return 0;\n}\n");
        out
    }
}

impl Contract<'_> {
    /// The function that checks the addresses.
    fn check(&self) -> String {
        let row = |f: &dyn Fn(&Buffer) -> String| -> String {
            let all: Vec<String> = self.buffers.iter().map(f).collect();
            all.join(", ")
        };
        CHECK
            .replace("COUNT", &self.buffers.len().to_string())
            .replace("ADDRESSES", &row(&|b| format!("buffers->{}", b.name)))
            .replace("BYTES", &row(&|b| format!("{}ull", b.bytes)))
            .replace("ALIGNMENTS", &row(&|b| format!("{}ull", b.alignment)))
            .replace("WRITTEN", &row(&|b| u8::from(b.written).to_string()))
    }
}

fn one(out: &mut String, step: &Step<'_>) {
    let launch = step.launch;
    out.push_str("    {\n");
    let mut names = Vec::new();
    for (i, argument) in launch.arguments.iter().enumerate() {
        let value = match (source(argument), argument.kind) {
            (Source::Map(name, offset, encoding), _) => {
                let [data_type, interleave, swizzle, l2_promotion, oob_fill] = constants(&encoding);
                let _ = writeln!(
                    out,
                    "        static const uint64_t sizes{i}[] = {{{}}}, strides{i}[] = {{{}}};\n        static const uint32_t box{i}[] = {{{}}}, steps{i}[] = {{{}}};\n        tilewright_tensor_map map{i} = {{{data_type}, {}, {}, sizes{i}, strides{i}, box{i}, steps{i}, {interleave}, {swizzle}, {l2_promotion}, {oob_fill}}};\n        unsigned char space{i}[192];\n        void *p{i} = {PLACE}space{i} + 63) & ~(uintptr_t)63); // {}\n        if ((status = encode(context, &map{i}, p{i})) != 0) return status;",
                    list(&encoding.sizes),
                    list(&encoding.strides_bytes),
                    list(&encoding.box_sizes),
                    list(&encoding.element_strides),
                    encoding.sizes.len(),
                    at(name, offset),
                    argument.name
                );
                names.push(format!("p{i}"));
                continue;
            }
            (Source::Buffer(name, offset), _) => at(name, offset),
            // The least integer has no literal of its own in C.
            (Source::Number(number), ParamKind::S32) if number == "-2147483648" => {
                "-2147483647 - 1".to_owned()
            }
            (Source::Number(number), ParamKind::U64) => format!("{number}ull"),
            (Source::Number(number), ParamKind::F32) => format!("{number}f"),
            (Source::Number(number), _) => number,
        };
        let ty = match argument.kind {
            ParamKind::Pointer | ParamKind::U64 | ParamKind::TensorMap => "uint64_t",
            ParamKind::U32 => "uint32_t",
            ParamKind::S32 => "int32_t",
            ParamKind::F32 => "float",
            ParamKind::F64 => "double",
        };
        let _ = writeln!(out, "        {ty} p{i} = {value}; // {}", argument.name);
        names.push(format!("&p{i}"));
    }
    let _ = writeln!(
        out,
        "        void *params[] = {{{}}};\n        tilewright_launch one = {{\"{}\", {{{}}}, {{{}}}, {{{}}}, {}, {}, {}, {}, params}};\n        if ((status = launch(context, &one)) != 0) return status;\n    }}",
        names.join(", "),
        launch.kernel,
        list(&launch.grid),
        list(&launch.block),
        list(&launch.cluster),
        launch.shared_bytes,
        names.len(),
        u8::from(step.cluster_declared),
        u8::from(step.beside_previous)
    );
}

/// An address in a buffer.
fn at(buffer: &str, offset: u64) -> String {
    match offset {
        0 => format!("buffers->{buffer}"),
        _ => format!("buffers->{buffer} + {offset}u"),
    }
}
