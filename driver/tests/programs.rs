//! Programs in C that load the library as the CUDA driver: the API, and every bug of the emulator's museum. Without a C compiler this says so and runs nothing.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The library, which cargo builds beside the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let path = test.with_file_name("libtilewright_driver.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A folder with the library under the driver's name.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(library(), folder.path().join("libcuda.so.1")).expect("a link");
    folder
}

/// Compiles `tests/c/NAME.c`; nothing without a compiler.
fn compiled(name: &str, folder: &TempDir) -> Option<PathBuf> {
    let works = |name: &&str| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(compiler) = ["cc", "gcc", "clang"].into_iter().find(works) else {
        eprintln!("no C compiler: not run");
        return None;
    };
    let program = folder.path().join(name);
    let output = Command::new(compiler)
        .args([
            "-std=c11",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-rdynamic",
            "-o",
        ])
        .arg(&program)
        .arg(source(&format!("tests/c/{name}.c")))
        .arg("-ldl")
        .output()
        .expect("the compiler starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    Some(program)
}

/// A run with the library as the driver, and its report.
fn run(command: &mut Command, folder: &TempDir, device: &str) -> (Output, Value) {
    let report = folder.path().join("report.json");
    let output = command
        .env("LD_LIBRARY_PATH", folder.path())
        .env("TILEWRIGHT_REPORT", &report)
        .env("TILEWRIGHT_DEVICE", device)
        .output()
        .expect("the program starts");
    let text = std::fs::read_to_string(&report).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    std::fs::remove_file(&report).expect("it was there");
    (output, serde_json::from_str(&text).expect("JSON"))
}

#[test]
fn the_api() {
    let folder = folder();
    let Some(program) = compiled("api", &folder) else {
        return;
    };
    let mut command = Command::new(program);
    let (output, report) = run(command.arg(source("tests/c/kernels.ptx")), &folder, "a100");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(output.stdout, b"done\n");
    assert!(
        errors.contains("this driver has no cuMipmappedArrayCreate"),
        "{errors}"
    );

    let kernels = report["kernels"].as_array().expect("kernels");
    let named = |name: &str| {
        let found = kernels.iter().find(|k| k["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {report}"))
    };
    for clean in ["double", "count"] {
        assert_eq!(
            named(clean)["findings"],
            Value::Array(Vec::new()),
            "{clean}"
        );
    }
    assert_eq!(named("count")["launches"], 2);
    let found = &named("out_of_bounds")["findings"][0];
    assert_eq!(found["kind"], "out_of_bounds");
    assert_eq!(found["text"], "st.global.u32 [%at], 1;");
    assert_eq!(found["source"]["file"], "kernels.cu");
    assert_eq!(found["source"]["line"], 7);
    let calls = found["backtrace"].to_string();
    assert!(
        calls.contains("cuLaunchKernel") && calls.contains("main"),
        "{calls}"
    );
}

/// What stands in the head of an exhibit behind `key: `.
fn head<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().take_while(|l| l.starts_with("//"));
    lines.find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "))
}

/// The numbers that `exhibit` takes for the tensor map of a kernel.
fn map(text: &str, kernel: &str) -> Vec<String> {
    let own = head(text, &format!("map of {kernel}")).or_else(|| head(text, "map"));
    let Some(words) = own.filter(|_| text.contains("map[128]")) else {
        return Vec::new();
    };
    let words = words.strip_prefix("tensor:f16:").expect("a map of halves");
    let mut words = words.split(':');
    let sizes: Vec<&str> = words.next().expect("sizes").split('x').collect();
    let width: u64 = sizes[0].parse().expect("a number");
    let (mut stride, mut boxes, mut swizzle, mut input) =
        ((2 * width).to_string(), Vec::new(), "0", "0");
    for word in words {
        match word.split_once('=').expect("a key and a value") {
            ("strides", x) => x.clone_into(&mut stride),
            ("box", x) => boxes = x.split('x').collect(),
            ("swizzle", x) => swizzle = x,
            ("of", x) => input = if x == "in" { "1" } else { "0" },
            other => panic!("{other:?} in a map"),
        }
    }
    [&sizes[..], &[&stride], &boxes, &[swizzle, input]]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Each kernel `bug` gets the finding that its file names, and its twin `fixed` none.
#[test]
fn the_bugs_of_the_museum_are_found_and_their_twins_are_clean() {
    let folder = folder();
    let Some(program) = compiled("exhibit", &folder) else {
        return;
    };
    let (mut exhibits, mut wrong) = (0, Vec::new());
    let museum = std::fs::read_dir(source("../emulator/museum")).expect("the museum");
    for entry in museum {
        let path = entry.expect("an exhibit").path();
        if path.extension().is_none_or(|e| e != "ptx") {
            continue;
        }
        exhibits += 1;
        let text = std::fs::read_to_string(&path).expect("a text");
        let launch: Vec<&str> = head(&text, "launch")
            .expect("a launch")
            .split(' ')
            .collect();
        for kernel in ["bug", "fixed"] {
            let mut command = Command::new(&program);
            command.arg(&path).arg(kernel);
            command
                .args([launch[1], launch[3], launch[5]])
                .args(map(&text, kernel));
            command.env("TILEWRIGHT_ALSO", "lane-races");
            let (output, report) = run(&mut command, &folder, "h100");
            let ended = output.status.code();
            let list = |name: &str| {
                let all = report["kernels"][0][name].as_array();
                all.cloned().unwrap_or_default()
            };
            let (findings, notes) = (list("findings"), list("notes"));
            let expected = head(&text, "finding").expect("a finding");
            let mut all = findings.iter().chain(&notes);
            let found = all.any(|f| f["kind"] == expected);
            let fits = match kernel {
                "bug" => found && matches!(ended, Some(0 | 10)),
                _ => findings.is_empty() && ended == Some(0),
            };
            if !fits {
                let errors = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!(
                    "{} {kernel}: {expected}, {ended:?}: {errors}{findings:#?}",
                    path.display()
                ));
            }
        }
    }
    assert!(exhibits >= 40, "{exhibits} exhibits");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing but the libraries of the C language is needed.
#[test]
fn it_loads_alone() {
    let Ok(output) = Command::new("readelf").arg("-d").arg(library()).output() else {
        eprintln!("no readelf: not run");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let needed = text.lines().filter(|l| l.contains("(NEEDED)"));
    let allowed = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];
    for line in needed {
        assert!(allowed.iter().any(|a| line.contains(a)), "{line}");
    }
}
