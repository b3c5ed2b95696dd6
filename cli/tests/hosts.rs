//! `gemm --emit-host`: what it writes compiles and runs in each language, and launches exactly what the contract says.

mod common;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use common::{check_page, json};
use serde_json::Value;

/// Problems with one launch, with integers, with a bias and with partial sums through a workspace.
const PROBLEMS: [&[&str]; 4] = [
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
];

/// Device addresses: any that differ.
const ADDRESSES: [(&str, u64); 5] = [
    ("a", 256),
    ("b", 512),
    ("c", 1024),
    ("bias", 2048),
    ("workspace", 1 << 20),
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
        words.push(launch["shared_bytes"].to_string());
        for param in launch["params"].as_array().expect("parameters") {
            let value = &param["value"];
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
            "import host\nfor l in host.launches({}):\n    print(l.kernel, *l.grid, *l.block, *l.cluster, l.shared_bytes, *[a.value for a in l.args])",
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
        let main = format!(
            "mod host;\nuse host::Arg;\nfn main() {{\n    let _ = host::WORKSPACE_BYTES;\n    for l in host::launches(&host::Buffers {{ {fields} }}) {{\n        print!(\"{{}}\", l.kernel);\n        for v in l.grid.iter().chain(&l.block).chain(&l.cluster).chain([&l.shared_bytes]) {{ print!(\" {{v}}\"); }}\n        for a in &l.args {{ match a {{ Arg::Ptr(v) | Arg::U64(v) => print!(\" {{v}}\"), Arg::U32(v) => print!(\" {{v}}\"), Arg::S32(v) => print!(\" {{v}}\"), Arg::F32(v) => print!(\" {{v}}\"), Arg::F64(v) => print!(\" {{v}}\") }} }}\n        println!();\n    }}\n}}\n"
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
                    _ => 'p',
                })
                .collect::<String>()
        })
        .collect::<Vec<_>>();
        let main = format!(
            "#include \"host.h\"\n#include <stdio.h>\nstatic const char *kinds[] = {{\"{}\"}};\nstatic int show(void *context, const tilewright_launch *l) {{\n    int *n = context;\n    const char *k = kinds[(*n)++];\n    printf(\"%s %u %u %u %u %u %u %u %u %u %u\", l->kernel, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->cluster[0], l->cluster[1], l->cluster[2], l->shared_bytes);\n    for (unsigned i = 0; i < l->count; i++) {{\n        void *p = l->params[i];\n        if (k[i] == 'u') printf(\" %u\", *(uint32_t *)p);\n        else if (k[i] == 's') printf(\" %d\", *(int32_t *)p);\n        else if (k[i] == 'f') printf(\" %.9g\", *(float *)p);\n        else if (k[i] == 'd') printf(\" %.17g\", *(double *)p);\n        else printf(\" %llu\", (unsigned long long)*(uint64_t *)p);\n    }}\n    printf(\"\\n\");\n    return 0;\n}}\nint main(void) {{\n    tilewright_buffers buffers = {{{fields}}};\n    int n = 0;\n    return tilewright_launches(&buffers, show, &n);\n}}\n",
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
(launch,) = contract.launches(1, 2, 3)
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

#[test]
fn the_command_of_the_hosts_page_works() {
    check_page(include_str!("../../docs/hosts.md"), &[], 1);
}
