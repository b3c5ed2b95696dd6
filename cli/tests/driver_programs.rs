//! Programs that launch kernels of warpgroups with the CUDA driver alone: `examples/hosts/driver.c` and `examples/launch.py`. A driver of our own
//! (`tests/launch_c/driver.c` of the root package) is opened in place of the real one: it computes the product from the arrays whose tensor maps were
//! encoded, so that a map of another matrix or another distance of rows gives a wrong C, and writes down what it was asked for.
#![cfg(target_os = "linux")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::json;
use serde_json::Value;
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// m, n and k that are no multiples of the tile, whose rows begin at multiples of 16 bytes.
const PRODUCT: &str =
    "gemm --plan wgmma-f16-128x256x64+persistent+cluster2x1 --m 120 --n 144 --k 208 --on none";

/// A folder with the driver, the kernel, its contract and its header.
fn prepared() -> (TempDir, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    compile(
        &[
            &format!("{ROOT}/tests/launch_c/driver.c"),
            "-shared",
            "-fPIC",
            "-lm",
        ],
        &folder.path().join("libcuda.so.1"),
    );
    let (ptx, header) = (at("kernel.ptx"), at("kernel.h"));
    let files = ["--emit", &ptx, "--emit-host", "c", &header];
    let words: Vec<&str> = PRODUCT.split_whitespace().chain(files).collect();
    let (code, value) = json(&words);
    assert_eq!(code, 0, "{value}");
    std::fs::write(at("gemm.json"), value.to_string()).expect("written");
    (folder, value["launch"].clone())
}

/// Compiles C without a warning.
fn compile(arguments: &[&str], to: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(to)
        .args(arguments)
        .output()
        .expect("the compiler starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && log.is_empty(), "{log}");
}

fn run(program: &mut Command, folder: &Path, mode: &str) -> Output {
    program
        .env("LD_LIBRARY_PATH", folder)
        .env("DRIVER_LOG", folder.join("log"))
        .env("DRIVER_MODE", mode)
        .output()
        .expect("the program starts")
}

/// What the driver is asked for in one product, by the contract.
fn expected(launch: &Value) -> Vec<String> {
    let words = |value: &Value| {
        let all = value.as_array().expect("a list").iter();
        all.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let params = launch["params"].as_array().expect("parameters");
    let maps = params.iter().filter(|p| p["type"] == "tensor_map");
    let mut lines: Vec<String> = maps
        .map(|p| {
            let map = &p["value"];
            let constant = |key: &str| map[key]["value"].to_string();
            format!(
                "map type {} sizes {} strides {} box {} steps {} interleave {} swizzle {} promotion {} fill {}",
                constant("data_type"),
                words(&map["sizes"]),
                words(&map["strides_bytes"]),
                words(&map["box"]),
                words(&map["element_strides"]),
                constant("interleave"),
                constant("swizzle"),
                constant("l2_promotion"),
                constant("oob_fill")
            )
        })
        .collect();
    // The text declares the cluster: the one attribute is that of programmatic stream serialization.
    lines.push(format!(
        "kernel {} grid {} block {} shared {} attribute 6 value 1 0 0 sizes 120 144 208 208 144 144 scalars 1 0",
        launch["kernel"].as_str().expect("a name"),
        words(&launch["grid"]),
        words(&launch["block"]),
        launch["shared_bytes"]
    ));
    lines
}

/// The lines of the log behind the first, which is of the text.
fn logged(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("log")).expect("the driver's log");
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_c_program_launches_warpgroups() {
    let (folder, launch) = prepared();
    let folder = folder.path();
    let program: PathBuf = folder.join("driver");
    let contract = format!("-DCONTRACT=\"{}\"", folder.join("kernel.h").display());
    compile(
        &[
            "-pedantic",
            &contract,
            &format!("{ROOT}/examples/hosts/driver.c"),
            "-ldl",
            "-lm",
        ],
        &program,
    );
    let with = |mode: &str| {
        run(
            Command::new(&program).arg(folder.join("kernel.ptx")),
            folder,
            mode,
        )
    };

    let output = with("");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.starts_with("120x144x208: 120 rows of C are right, "),
        "{said}"
    );
    // The product that is checked, and those that are timed.
    let (log, expected) = (logged(folder), expected(&launch));
    assert_eq!(log.len(), 21 * expected.len());
    assert!(
        log.chunks(expected.len()).all(|one| one == expected),
        "{log:?} is not {expected:?}"
    );

    let refusal = |output: Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let wrong = refusal(with("wrong"));
    assert!(
        wrong.starts_with("driver: row 119, column 143 of C is "),
        "{wrong}"
    );
    assert_eq!(
        refusal(with("none")),
        "driver: cuInit: no CUDA-capable device is detected\n"
    );
}

#[test]
fn the_python_program_launches_warpgroups() {
    let (folder, launch) = prepared();
    let folder = folder.path();
    let script = format!("{ROOT}/examples/launch.py");
    let with = |mode: &str| {
        let files = ["kernel.ptx", "gemm.json"].map(|name| folder.join(name));
        run(
            Command::new("python3").args(["-B", &script]).args(files),
            folder,
            mode,
        )
    };
    let output = with("");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("needs numpy") {
        eprintln!("{errors}: nothing was tested");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    assert_eq!(logged(folder), expected(&launch));
    let wrong = with("wrong");
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(
        String::from_utf8_lossy(&wrong.stdout).ends_with("FAILED\n"),
        "{wrong:?}"
    );
}
