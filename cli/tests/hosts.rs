//! `gemm --emit-host`: what it writes compiles and runs in each language, and launches exactly what the contract says.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use common::{check_page, json};
use serde_json::Value;

/// Problems with one launch, with integers, with a bias and with partial sums through a workspace; and with tensor maps: of A, B and C, of clusters, of
/// operands that are copied to a workspace first.
const PROBLEMS: [&[&str]; 7] = [
    &[
        "--plan",
        "mma-f16-64x64x32",
        "--m",
        "100",
        "--n",
        "70",
        "--k",
        "40",
        "--split",
        "1",
        "--pack",
        "false",
        "--align",
        "2",
        "--alpha",
        "0.5",
    ],
    &[
        "--dtype",
        "s8",
        "--m",
        "64",
        "--n",
        "64",
        "--k",
        "64",
        "--alpha",
        "-2147483648",
        "--beta",
        "3",
    ],
    &[
        "--dtype", "bf16", "--m", "64", "--n", "64", "--k", "64", "--bias", "row", "--beta", "1",
    ],
    &[
        "--dtype", "f16", "--m", "64", "--n", "64", "--k", "4096", "--split", "4",
    ],
    &[
        "--plan",
        "wgmma-f16-128x256x64+persistent",
        "--m",
        "1000",
        "--n",
        "520",
        "--k",
        "72",
    ],
    &[
        "--plan",
        "wgmma-bf16-128x256x64+persistent+cluster2x1",
        "--m",
        "300",
        "--n",
        "200",
        "--k",
        "136",
        "--trans",
        "tt",
    ],
    &[
        "--plan",
        "wgmma-tf32-128x128x32",
        "--m",
        "500",
        "--n",
        "500",
        "--k",
        "1001",
    ],
];

/// Device addresses: aligned, and with room for every problem.
const ADDRESSES: [(&str, u64); 5] = [
    ("a", 1 << 24),
    ("b", 2 << 24),
    ("c", 3 << 24),
    ("bias", 4 << 24),
    ("workspace", 5 << 24),
];

fn address(name: &str) -> u64 {
    ADDRESSES
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a buffer")
        .1
}

/// The launches of the contract, a line each: kernel, grid, block, cluster, shared bytes, arguments.
fn expected(contract: &Value) -> Vec<Vec<String>> {
    let none = Vec::new();
    let before = contract["before"].as_array().unwrap_or(&none);
    let after = contract["after"].as_array().unwrap_or(&none);
    let line = |launch: &Value| {
        let mut words = vec![launch["kernel"].as_str().expect("a name").to_owned()];
        for key in ["grid", "block", "cluster"] {
            words.extend(
                launch[key]
                    .as_array()
                    .expect(key)
                    .iter()
                    .map(ToString::to_string),
            );
        }
        for key in ["cluster_declared", "beside_previous"] {
            words.push(u8::from(launch[key].as_bool().expect(key)).to_string());
        }
        words.push(launch["shared_bytes"].to_string());
        for param in launch["params"].as_array().expect("parameters") {
            let value = &param["value"];
            if param["type"] == "tensor_map" {
                words.extend(tensor_map(value));
                continue;
            }
            words.push(if let Some(matrix) = value["matrix"].as_str() {
                address(&matrix.to_ascii_lowercase()).to_string()
            } else if let Some(offset) = value["workspace"].as_u64() {
                (address("workspace") + offset).to_string()
            } else if value.is_object() {
                address("bias").to_string()
            } else {
                value.to_string()
            });
        }
        words
    };
    before
        .iter()
        .chain([contract])
        .chain(after)
        .map(line)
        .collect()
}

/// A tensor map: type, address, sizes, strides, box, steps, interleaving, swizzle, promotion, fill.
fn tensor_map(value: &Value) -> Vec<String> {
    let constant = |key: &str| value[key]["value"].to_string();
    let of = &value["tensor_map"];
    let at = of["matrix"].as_str().map_or_else(
        || address("workspace") + of["workspace"].as_u64().expect("an offset"),
        |matrix| address(&matrix.to_ascii_lowercase()),
    );
    let mut words = vec![constant("data_type"), at.to_string()];
    for key in ["sizes", "strides_bytes", "box", "element_strides"] {
        words.extend(
            value[key]
                .as_array()
                .expect(key)
                .iter()
                .map(Value::to_string),
        );
    }
    words.extend(["interleave", "swizzle", "l2_promotion", "oob_fill"].map(constant));
    words
}

/// Compares what a host printed with the contract; numbers as numbers.
fn compare(printed: &str, contract: &Value, language: &str) {
    let expected = expected(contract);
    let lines: Vec<Vec<&str>> = printed
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), expected.len(), "{language}: {printed}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(
            line.len(),
            expected.len(),
            "{language}: {line:?} {expected:?}"
        );
        for (word, expected) in line.iter().zip(expected) {
            let same = match (word.parse::<f64>(), expected.parse::<f64>()) {
                // A parameter of 32 bits holds no more of a decimal fraction.
                (Ok(a), Ok(b)) => {
                    a.to_bits() == b.to_bits() || (a as f32).to_bits() == (b as f32).to_bits()
                }
                _ => word == expected,
            };
            assert!(same, "{language}: {word} is not {expected} in {expected:?}");
        }
    }
}

fn output_of(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Emits one problem's host to `folder/name` and returns the contract.
fn emitted(folder: &Path, problem: &[&str], language: &str, name: &str) -> Value {
    let path = folder.join(name);
    let path = path.to_str().expect("text");
    let fixed = ["gemm", "--on", "none", "--emit-host", language, path];
    let (code, value) = json(&[&fixed[..], problem].concat());
    assert_eq!(code, 0, "{value}");
    value["launch"].clone()
}

/// The buffers that a contract has.
fn buffers(contract: &Value) -> Vec<&'static str> {
    let text = contract.to_string();
    let mut names = vec!["a", "b", "c"];
    if text.contains("\"elements\"") {
        names.push("bias");
    }
    if contract["workspace_bytes"] != 0 {
        names.push("workspace");
    }
    names
}

#[test]
fn python_launches_the_contract() {
    for problem in PROBLEMS {
        let folder = tempfile::tempdir().expect("a folder");
        let contract = emitted(folder.path(), problem, "python", "host.py");
        let arguments: Vec<String> = buffers(&contract)
            .iter()
            .map(|n| format!("{n}={}", address(n)))
            .collect();
        let script = format!(
            "import host\ndef words(a):\n    if hasattr(a, 'value'): return [a.value]\n    return [a.data_type, a.address, *a.sizes, *a.strides_bytes, *a.box_sizes, *a.element_strides, a.interleave, a.swizzle, a.l2_promotion, a.oob_fill]\nfor l in host.launches({}):\n    print(l.kernel, *l.grid, *l.block, *l.cluster, int(l.cluster_declared), int(l.beside_previous), l.shared_bytes, *[w for a in l.args for w in words(a)])",
            arguments.join(", ")
        );
        let printed = output_of(
            Command::new("python3")
                .args(["-c", &script])
                .current_dir(folder.path()),
        );
        compare(&printed, &contract, "python");
    }
}

#[test]
fn rust_launches_the_contract() {
    for problem in PROBLEMS {
        let folder = tempfile::tempdir().expect("a folder");
        let contract = emitted(folder.path(), problem, "rust", "host.rs");
        let fields = buffers(&contract)
            .iter()
            .fold(String::new(), |mut text, name| {
                let _ = write!(text, "{name}: {}, ", address(name));
                text
            });
        let map = if contract.to_string().contains("tensor_map") {
            ", Arg::TensorMap(t) => { print!(\" {} {}\", t.data_type, t.address); for v in t.sizes.iter().chain(t.strides_bytes) { print!(\" {v}\"); } for v in t.box_sizes.iter().chain(t.element_strides).chain(&[t.interleave, t.swizzle, t.l2_promotion, t.oob_fill]) { print!(\" {v}\"); } }"
        } else {
            ""
        };
        let main = format!(
            "mod host;\nuse host::Arg;\nfn main() {{\n    let _ = (host::WORKSPACE_BYTES, host::SIZES);\n    for l in host::launches(&host::Buffers {{ {fields} }}).unwrap() {{\n        print!(\"{{}}\", l.kernel);\n        for v in l.grid.iter().chain(&l.block).chain(&l.cluster).chain(&[u32::from(l.cluster_declared), u32::from(l.beside_previous), l.shared_bytes]) {{ print!(\" {{v}}\"); }}\n        for a in &l.args {{ match a {{ Arg::Ptr(v) | Arg::U64(v) => print!(\" {{v}}\"), Arg::U32(v) => print!(\" {{v}}\"), Arg::S32(v) => print!(\" {{v}}\"), Arg::F32(v) => print!(\" {{v}}\"), Arg::F64(v) => print!(\" {{v}}\"){map} }} }}\n        println!();\n    }}\n}}\n"
        );
        std::fs::write(folder.path().join("main.rs"), main).expect("written");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        output_of(
            Command::new(rustc)
                .args(["--edition", "2024", "-Adead_code", "-Dwarnings", "main.rs"])
                .current_dir(folder.path()),
        );
        compare(
            &output_of(&mut Command::new(folder.path().join("main"))),
            &contract,
            "rust",
        );
    }
}

/// Writes a map as text in place of the 128 bytes; a place that is not aligned ends it.
const ENCODE: &str = r#"
#ifdef TILEWRIGHT_TENSOR_MAPS
static int encode(void *context, const tilewright_tensor_map *t, void *place) {
    char *text = place;
    int n = sprintf(text, " %u %llu", t->data_type, (unsigned long long)t->address);
    (void)context;
    for (uint32_t i = 0; i < t->rank; i++) n += sprintf(text + n, " %llu", (unsigned long long)t->sizes[i]);
    for (uint32_t i = 0; i + 1 < t->rank; i++) n += sprintf(text + n, " %llu", (unsigned long long)t->strides_bytes[i]);
    for (uint32_t i = 0; i < t->rank; i++) n += sprintf(text + n, " %u", t->box_sizes[i]);
    for (uint32_t i = 0; i < t->rank; i++) n += sprintf(text + n, " %u", t->element_strides[i]);
    n += sprintf(text + n, " %u %u %u %u", t->interleave, t->swizzle, t->l2_promotion, t->oob_fill);
    return n >= 128 || (uintptr_t)place % 64 != 0;
}
#endif
"#;

#[test]
fn c_launches_the_contract() {
    for problem in PROBLEMS {
        let folder = tempfile::tempdir().expect("a folder");
        let contract = emitted(folder.path(), problem, "c", "host.h");
        let fields = buffers(&contract)
            .iter()
            .fold(String::new(), |mut text, name| {
                let _ = write!(text, ".{name} = {}, ", address(name));
                text
            });
        // What the parameters are is known to the kernel alone: the contract says how to read each.
        let launches = [
            contract["before"].as_array(),
            Some(&vec![contract.clone()]),
            contract["after"].as_array(),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .map(|launch| {
            let kinds = launch["params"].as_array().expect("parameters").iter();
            kinds
                .map(|p| match p["type"].as_str() {
                    Some("u32") => 'u',
                    Some("s32") => 's',
                    Some("f32") => 'f',
                    Some("f64") => 'd',
                    Some("tensor_map") => 't',
                    _ => 'p',
                })
                .collect::<String>()
        })
        .collect::<Vec<_>>();
        let encode = if contract.to_string().contains("tensor_map") {
            "encode, "
        } else {
            ""
        };
        let main = format!(
            "#include \"host.h\"\n#include <stdio.h>\n{ENCODE}static const char *kinds[] = {{\"{}\"}};\nstatic int show(void *context, const tilewright_launch *l) {{\n    int *n = context;\n    const char *k = kinds[(*n)++];\n    printf(\"%s %u %u %u %u %u %u %u %u %u %d %d %u\", l->kernel, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->cluster[0], l->cluster[1], l->cluster[2], l->cluster_declared, l->beside_previous, l->shared_bytes);\n    for (unsigned i = 0; i < l->count; i++) {{\n        void *p = l->params[i];\n        if (k[i] == 'u') printf(\" %u\", *(uint32_t *)p);\n        else if (k[i] == 's') printf(\" %d\", *(int32_t *)p);\n        else if (k[i] == 'f') printf(\" %.9g\", *(float *)p);\n        else if (k[i] == 'd') printf(\" %.17g\", *(double *)p);\n        else if (k[i] == 't') printf(\"%s\", (char *)p);\n        else printf(\" %llu\", (unsigned long long)*(uint64_t *)p);\n    }}\n    printf(\"\\n\");\n    return 0;\n}}\nint main(void) {{\n    tilewright_buffers buffers = {{{fields}}};\n    int n = 0;\n    return tilewright_launches(&buffers, {encode}show, &n);\n}}\n",
            launches.join("\", \"")
        );
        std::fs::write(folder.path().join("main.c"), main).expect("written");
        let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        output_of(
            Command::new(cc)
                .args([
                    "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main",
                ])
                .current_dir(folder.path()),
        );
        compare(
            &output_of(&mut Command::new(folder.path().join("main"))),
            &contract,
            "C",
        );
    }
}

/// Addresses of a, b and c of a product of 64x64x64 in f16, 8 KiB each, and what is said of them.
const PLACED: [([u64; 3], Option<&str>); 8] = [
    ([0x10000, 0x12000, 0x14000], None),
    // Inputs may be one buffer.
    ([0x10000, 0x10000, 0x12000], None),
    ([0x10008, 0x12000, 0x14000], Some("align")),
    ([0x10000, 0x12002, 0x14000], Some("align")),
    ([0x10000, 0x12000, 0x14004], Some("align")),
    ([0x10000, 0x12000, 0x10000], Some("overlap")),
    ([0x10000, 0x14000, 0x15ff0], Some("overlap")),
    ([0x10000, 0x14000, 0x12010], Some("overlap")),
];

const PLACED_PRODUCT: &[&str] = &[
    "--plan",
    "mma-f16-64x64x32",
    "--m",
    "64",
    "--n",
    "64",
    "--k",
    "64",
    "--split",
    "1",
];

#[test]
fn buffers_that_kernels_do_not_take_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let contract = emitted(folder.path(), PLACED_PRODUCT, "python", "host.py");
    let memory = &contract["memory"];
    let usages: Vec<&str> = memory["buffers"]
        .as_array()
        .expect("buffers")
        .iter()
        .map(|b| b["usage"].as_str().expect("a usage"))
        .collect();
    assert_eq!(usages, ["input", "input", "output"]);
    assert_eq!(
        (
            &memory["buffers"][0]["bytes"],
            &memory["buffers"][0]["alignment"]
        ),
        (&8192.into(), &16.into())
    );
    emitted(folder.path(), PLACED_PRODUCT, "rust", "host.rs");
    emitted(folder.path(), PLACED_PRODUCT, "c", "host.h");
    let list = |open: &str, close: &str| -> String {
        let all: Vec<String> = PLACED
            .iter()
            .map(|(at, _)| format!("{open}{}, {}, {}{close}", at[0], at[1], at[2]))
            .collect();
        all.join(", ")
    };
    let python = format!(
        "import host\nfor p in [{}]:\n    try:\n        host.launches(*p)\n        print('taken')\n    except ValueError as e:\n        print(e)",
        list("(", ")")
    );
    let rust = format!(
        "mod host;\nfn main() {{\n    for [a, b, c] in [{}] {{\n        match host::launches(&host::Buffers {{ a, b, c }}) {{ Ok(_) => println!(\"taken\"), Err(e) => println!(\"{{e}}\") }}\n    }}\n}}\n",
        list("[", "]")
    );
    let c = format!(
        "#include \"host.h\"\n#include <stdio.h>\nstatic int show(void *context, const tilewright_launch *l) {{ (void)context; (void)l; return 0; }}\nint main(void) {{\n    const tilewright_buffers all[] = {{{}}};\n    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {{\n        int status = tilewright_launches(&all[i], show, 0);\n        puts(status == 0 ? \"taken\" : status == TILEWRIGHT_MISALIGNED ? \"misaligned\" : \"overlap\");\n    }}\n    return 0;\n}}\n",
        list("{", "}")
    );
    std::fs::write(folder.path().join("main.rs"), rust).expect("written");
    std::fs::write(folder.path().join("main.c"), c).expect("written");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    output_of(
        Command::new(rustc)
            .args([
                "--edition",
                "2024",
                "-Adead_code",
                "-Dwarnings",
                "main.rs",
                "-o",
                "of_rust",
            ])
            .current_dir(folder.path()),
    );
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    output_of(
        Command::new(cc)
            .args([
                "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "of_c",
            ])
            .current_dir(folder.path()),
    );
    let said = [
        output_of(
            Command::new("python3")
                .args(["-c", &python])
                .current_dir(folder.path()),
        ),
        output_of(&mut Command::new(folder.path().join("of_rust"))),
        output_of(&mut Command::new(folder.path().join("of_c"))),
    ];
    for (said, language) in said.iter().zip(["python", "rust", "c"]) {
        assert_eq!(said.lines().count(), PLACED.len(), "{language}: {said}");
        for (line, (at, refused)) in said.lines().zip(PLACED) {
            let right = match refused {
                None => line == "taken",
                Some("align") => line.contains("align") || line.contains("a multiple of"),
                Some(why) => line.contains(why),
            };
            assert!(right, "{language} {at:?}: {line}");
        }
    }
}

#[test]
fn what_can_not_be_written_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("host");
    let path = path.to_str().expect("text");
    let on_none = ["gemm", "--on", "none"];
    let refused = |more: &[&str]| {
        let (code, value) = json(&[&on_none[..], more].concat());
        (
            code,
            value["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    assert_eq!(
        refused(&["--emit-host", "cobol", path]),
        (2, "unknown_language".to_owned())
    );
    assert_eq!(
        refused(&["--emit-host", "c", path, "--m", "0"]),
        (1, "nothing_to_launch".to_owned())
    );
    assert_eq!(
        refused(&["--emit-host", "c", path, "--emit", path]),
        (2, "same_file".to_owned())
    );
    assert_eq!(refused(&["--emit-host", "c"]), (2, "usage".to_owned()));
    assert!(!folder.path().join("host").exists());
}

/// The command that the examples are written for.
const EXAMPLE: &[&str] = &[
    "gemm", "--dtype", "f16", "--arch", "sm_80", "--m", "384", "--n", "256", "--k", "192", "--on",
    "none",
];

#[test]
fn the_contract_of_the_cudarc_example_is_what_the_command_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernel.rs");
    let path = path.to_str().expect("UTF-8");
    let (code, answer) = json(&[EXAMPLE, &["--emit-host", "rust", path]].concat());
    assert_eq!(code, 0, "{answer}");
    let written = std::fs::read_to_string(path).expect("written");
    let kept = include_str!("../../examples/hosts/cudarc/src/kernel.rs");
    assert_eq!(written, kept, "examples/hosts/cudarc/src/kernel.rs is old");
}

#[test]
fn the_python_hosts_read_the_contract_that_the_command_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernel.py");
    let path = path.to_str().expect("UTF-8");
    let (code, answer) = json(&[EXAMPLE, &["--emit-host", "python", path]].concat());
    assert_eq!(code, 0, "{answer}");
    // The programs' own reading of the shape, and every ctypes value that CuPy's host turns into a scalar.
    let script = r#"
import ast, ctypes, importlib.util, re, sys
spec = importlib.util.spec_from_file_location("contract", sys.argv[1])
contract = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contract)
(launch,) = contract.launches(1 << 20, 2 << 20, 3 << 20)
for name in ["pytorch", "cupy_raw_module", "cuda_core"]:
    text = open(f"{sys.argv[2]}/{name}.py").read()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (pattern,) = {c.args[0].value for c in calls if ast.unparse(c.func) == "re.search"}
    found = re.search(pattern, contract.__doc__.splitlines()[0])
    assert found.groups() == ("384", "256", "192"), name
    if "SCALARS" in text:
        missing = {type(v).__name__ for v in launch.args if f"ctypes.{type(v).__name__}:" not in text}
        assert missing <= {"c_uint"} and "ctypes.c_uint32:" in text, missing
print("read")
"#;
    let hosts = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/hosts");
    let output = Command::new("python3")
        .args(["-c", script, path, hosts])
        .output()
        .expect("python3 starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "read",
        "{log}"
    );
}

/// As much of PyTorch as the page's operator calls, and a driver that prints the launch.
const TORCH: &str = r#"
import ctypes
from types import SimpleNamespace

float32, uint8 = "float32", "uint8"


class Tensor:
    def __init__(self, shape, dtype=float32):
        self.shape, self.dtype, self.device = shape, dtype, "cuda"
        Tensor.made = getattr(Tensor, "made", 0) + 1
        self.at = Tensor.made << 24

    def dim(self):
        return len(self.shape)

    def contiguous(self):
        return self

    def new_empty(self, shape):
        return Tensor(shape, self.dtype)

    def data_ptr(self):
        return self.at


def empty(*shape, dtype=float32, device=None):
    return Tensor(shape, dtype)


def _check(holds, message):
    if not holds:
        raise RuntimeError(message())


def custom_op(name, mutates_args, device_types):
    def define(function):
        def register_fake(fake):
            function.fake = fake

        function.register_fake = register_fake
        return function

    return define


class Driver:
    def __getattr__(self, name):
        def call(*args):
            if name == "cuFuncSetAttribute":
                print("shared", args[2])
            if name == "cuLaunchKernel":
                print("launch", *args[1:7], args[7].value)
                kinds = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
                print("args", *(ctypes.cast(p, ctypes.POINTER(kind))[0] for p, kind in zip(args[9], kinds)))
            return 0

        return call


ctypes.CDLL = lambda name: Driver()
library = SimpleNamespace(custom_op=custom_op)
cuda = SimpleNamespace(init=lambda: None, current_stream=lambda: SimpleNamespace(cuda_stream=0))
"#;

/// The operator of the page launches the emitted kernel by its contract, and refuses what was not proven.
#[test]
fn the_operator_of_the_hosts_page_launches_the_kernel() {
    let page = include_str!("../../docs/hosts.md");
    let folder = tempfile::tempdir().expect("a folder");
    let command = page
        .lines()
        .find(|line| line.starts_with("tilewright kernel softmax "));
    let words: Vec<&str> = command
        .expect("the command")
        .split_whitespace()
        .skip(1)
        .collect();
    let output = common::tilewright_in(folder.path(), &words);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (_, code) = page
        .split_once("```python\nimport sys\n")
        .expect("the operator");
    let (code, _) = code.split_once("\n```").expect("its end");
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hosts");
    let code = code.replace(
        "\"examples/hosts\"",
        &format!("{:?}", hosts.display().to_string()),
    );
    let used = r"
x = torch.Tensor((5, 300))
y = softmax(x)
assert y.shape == (5, 300) and softmax.fake(x).shape == (5, 300)
try:
    softmax(torch.Tensor((5, 769)))
except ValueError as error:
    print(error)
";
    std::fs::write(folder.path().join("torch.py"), TORCH).expect("written");
    std::fs::write(
        folder.path().join("main.py"),
        format!("import sys\n{code}\n{used}"),
    )
    .expect("written");
    let printed = output_of(
        Command::new("python3")
            .arg("main.py")
            .current_dir(folder.path()),
    );
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines[..2],
        ["shared 0", "launch 2 1 1 128 1 1 0"],
        "{printed}"
    );
    assert!(lines[2].starts_with("args 5 300 "), "{printed}");
    assert_eq!(
        lines[3],
        "cols is 769, and the kernel was proven for 0 to 768"
    );
}

#[test]
fn the_command_of_the_hosts_page_works() {
    check_page(include_str!("../../docs/hosts.md"), &[], 2);
}
