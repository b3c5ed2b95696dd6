//! The command's contract, seen from outside: exit codes, one JSON value on standard output, files whole or not at all.

mod common;

use std::path::Path;
use std::process::Command;

use common::{json, tilewright};
use serde_json::Value;

const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/src/vector_add.ptx");

/// Runs with `--json` and expects an error: the exit code and the error's code.
fn refused(args: &[&str]) -> (i32, String) {
    let (exit, value) = json(args);
    let error = &value["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{value}"
    );
    assert!(
        error["span"].is_null() || error["span"].as_array().is_some_and(|span| span.len() == 2),
        "{value}"
    );
    (exit, error["code"].as_str().unwrap_or_default().to_owned())
}

/// `run` of the vector sum over `n` elements in two blocks of 64 threads.
fn sum<'a>(a: &'a str, c: &'a str, n: &'a str) -> Vec<&'a str> {
    let shape = ["run", KERNEL, "--grid", "2", "--block", "64"];
    let args = [
        "--arg",
        a,
        "--arg",
        "buf:f32:100:0.5",
        "--arg",
        c,
        "--arg",
        "f32:2",
        "--arg",
        n,
    ];
    [&shape[..], &args[..]].concat()
}

#[test]
fn doctor_answers_on_every_machine() {
    let (exit, value) = json(&["doctor"]);
    assert_eq!(exit, 0);
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    for key in ["cpu", "driver", "gpu", "cublas", "cublaslt", "ptxas"] {
        assert!(value[key]["found"].is_boolean(), "{key}: {value}");
    }
    assert_eq!(tilewright(&["doctor"]).status.code(), Some(0));
}

#[test]
fn a_clean_run_prints_and_keeps_its_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("sum.bin");
    let c = format!("buf:f32:100={}", out.display());
    let (exit, value) = json(&sum("buf:f32:100:iota", &c, "u32:100"));
    assert_eq!(
        (exit, value["passed"].as_bool()),
        (0, Some(true)),
        "{value}"
    );
    assert_eq!(value["buffers"][2]["name"], "c");
    assert_eq!(
        value["buffers"][2]["first"],
        serde_json::json!([0.5, 2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5])
    );
    let bytes = std::fs::read(&out).expect("kept");
    let expected: Vec<u8> = (0..100)
        .flat_map(|i| (2.0 * i as f32 + 0.5).to_le_bytes())
        .collect();
    assert_eq!(bytes, expected);
    // What was kept goes in again: c is a this time, 2·(2i + ½) + ½ comes out.
    let a = format!("buf:f32:{}", out.display());
    let (exit, value) = json(&sum(&a, "buf:f32:100", "u32:100"));
    assert_eq!(
        (exit, value["buffers"][2]["first"][1].as_f64()),
        (0, Some(5.5)),
        "{value}"
    );
}

#[test]
fn a_finding_is_a_failure() {
    let (exit, value) = json(&sum("buf:f32:99:iota", "buf:f32:100", "u32:100"));
    assert_eq!(
        (exit, value["passed"].as_bool()),
        (1, Some(false)),
        "{value}"
    );
    assert_eq!(value["findings"][0]["kind"], "out_of_bounds");
    assert_eq!(value["total_findings"], 1);
    let undefined = [
        &sum("buf:f32:100", "buf:f32:100", "u32:100")[..],
        &["--also", "undefined-global"],
    ]
    .concat();
    let (exit, value) = json(&undefined);
    assert_eq!(
        (exit, value["findings"][0]["kind"].as_str()),
        (1, Some("undefined_global")),
        "{value}"
    );
}

#[test]
fn bad_usage_is_code_2() {
    let good = sum("buf:f32:100:iota", "buf:f32:100", "u32:100");
    assert_eq!(refused(&[]).0, 2);
    assert_eq!(refused(&["no-such-command"]), (2, "usage".to_owned()));
    assert_eq!(refused(&[&good[..], &["--grid", "0"]].concat()).0, 2);
    assert_eq!(
        refused(&[&good[..], &["--kernel", "subtract"]].concat()),
        (2, "no_such_kernel".to_owned())
    );
    assert_eq!(
        refused(&[&good[..], &["--arg", "u32:1"]].concat()),
        (2, "wrong_arguments".to_owned())
    );
    assert_eq!(
        refused(&[&good[..], &["--shared", "300000"]].concat()),
        (2, "invalid_launch".to_owned())
    );
    assert_eq!(
        refused(&sum("buf:f33:100", "buf:f32:100", "u32:100")),
        (2, "bad_argument".to_owned())
    );
    assert_eq!(
        refused(&sum("f64:0", "buf:f32:100", "u32:100")),
        (2, "wrong_arguments".to_owned())
    );
}

#[test]
fn what_cannot_be_done_is_code_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let source = std::fs::read_to_string(KERNEL).expect("the kernel");
    let unknown = write(
        "unknown.ptx",
        source.replace("fma.rn", "frob.rn").as_bytes(),
    );
    assert_eq!(
        refused(&["run", &unknown]),
        (1, "unknown_instruction".to_owned())
    );
    let prose = write("prose.ptx", b"This is no PTX.");
    assert_eq!(refused(&["run", &prose]), (1, "invalid_ptx".to_owned()));
    let binary = write("binary.ptx", b"\xff\xfe\x00");
    assert_eq!(refused(&["run", &binary]), (1, "invalid_ptx".to_owned()));
    assert_eq!(
        refused(&[
            "run",
            &folder.path().join("absent.ptx").display().to_string()
        ]),
        (1, "io".to_owned())
    );
    let nowhere = format!(
        "buf:f32:100={}",
        folder.path().join("absent/out.bin").display()
    );
    assert_eq!(
        refused(&sum("buf:f32:100:iota", &nowhere, "u32:100")),
        (1, "io".to_owned())
    );
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("listed")
        .map(|e| e.expect("an entry").path())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_kernel_prints_and_what_is_missing_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r".version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .b8 format[7] = {110, 32, 37, 100, 10, 0};
.visible .entry prints() {
    .reg .b32 %r<3>; .reg .pred %p; .reg .b64 %d<3>;
    .local .align 8 .b8 args[8];
    mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 3; @%p ret;
    st.local.u32 [args], %r1; mov.u64 %d1, args; cvta.local.u64 %d1, %d1; mov.u64 %d2, format;
    { .param .b64 f, a; .param .b32 r; st.param.b64 [f], %d2; st.param.b64 [a], %d1; call (r), vprintf, (f, a); }
    ret;
}
.visible .entry lacks() { .reg .f32 %f; .reg .b64 %d; tex.cube.v4.f32.f32 {%f, %f, %f, %f}, [%d, {%f, %f, %f, %f}]; ret; }
";
    let path = folder.path().join("two.ptx");
    std::fs::write(&path, text).expect("written");
    let path = path.display().to_string();
    let run = ["run", &path, "--kernel", "prints"];
    let (exit, value) = json(&run);
    assert_eq!(
        (exit, value["printed"].as_str()),
        (0, Some("n 3\n")),
        "{value}"
    );
    let shown = tilewright(&run);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("printed:\n  n 3\n"), "{shown}");
    let code = "unsupported_instruction".to_owned();
    assert_eq!(
        refused(&["run", &path, "--kernel", "lacks"]),
        (1, code.clone())
    );
    assert_eq!(
        refused(&["run", &path, "--kernel", "prints", "--strict"]),
        (1, code)
    );
}

#[test]
fn a_missing_gpu_is_one_clear_error() {
    let here = json(&["doctor"]).1["gpu"]["found"].as_bool() == Some(true);
    let args = [
        &sum("buf:f32:100:iota", "buf:f32:100", "u32:100")[..],
        &["--on", "gpu"],
    ]
    .concat();
    if here {
        let (exit, value) = json(&args);
        assert_eq!(
            (exit, value["buffers"][2]["first"][1].as_f64()),
            (0, Some(2.5)),
            "{value}"
        );
    } else {
        let (exit, code) = refused(&args);
        assert_eq!(exit, 1);
        assert!(
            ["no_cuda_driver", "old_cuda_driver", "no_gpu"].contains(&code.as_str()),
            "{code}"
        );
    }
    let automatic = [
        &sum("buf:f32:100:iota", "buf:f32:100", "u32:100")[..],
        &["--on", "auto"],
    ]
    .concat();
    assert_eq!(json(&automatic).0, 0);
}

#[test]
fn without_json_errors_go_to_standard_error() {
    let output = tilewright(&["run", &Path::new("/absent.ptx").display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
}

/// Arguments that print to standard output, one way each: text, JSON, clap's help, rows as they come.
#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("accesses.csv");
    std::fs::write(&csv, "op,lane0\nld.32,0\n").expect("written");
    let csv = csv.display().to_string();
    for args in [
        &["plans", "--json"][..],
        &["--help"],
        &["gemm", "--help"],
        &["--version"],
        &["eval", "4:1"],
        &["eval", "4:"],
        &["eval", "4:", "--json"],
        &["eval", "--stdin"],
        &["no-such-command", "--json"],
        &["banks", "--csv", &csv],
        &["banks", "--csv", &csv, "--json"],
    ] {
        let input = folder.path().join("input");
        std::fs::write(&input, "4:1\n8:1\n").expect("written");
        let open = |path: &Path| std::fs::File::options().read(true).open(path);
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(args)
            .stdin(open(&input).expect("open"))
            .stdout(full.expect("a full device"))
            .output()
            .expect("the command starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        // Text that can't be read is said on standard error, which works.
        let unreadable = args == ["eval", "4:"];
        let expected = if unreadable { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{args:?}: {errors}");
        if !unreadable {
            assert!(
                errors.contains("error: standard output: "),
                "{args:?}: {errors}"
            );
        }
        assert!(!errors.contains("standard input"), "{args:?}: {errors}");
    }
}

#[test]
fn banks_prints_the_array_or_the_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("accesses.csv");
    let text = path.display().to_string();
    let rows = "op,lane0,lane1\nld.32,0,128\nst.32,0,4\n";
    std::fs::write(&path, rows).expect("written");
    let (exit, value) = json(&["banks", "--csv", &text]);
    assert_eq!((exit, value.as_array().map(Vec::len)), (0, Some(2)));
    assert_eq!(value[0]["wavefronts"], 2);
    std::fs::write(&path, format!("{rows}ld.32,0,x\n")).expect("written");
    assert_eq!(refused(&["banks", "--csv", &text]), (1, "csv_row".into()));
    std::fs::write(&path, "op,lane0\n").expect("written");
    assert_eq!(
        json(&["banks", "--csv", &text]),
        (0, Value::Array(Vec::new()))
    );
}

#[test]
fn of_two_files_both_or_none_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (svg, html, nowhere) = (at("a.svg"), at("b.html"), at("missing/b.html"));
    let show = |html: &str| refused(&["show", "(8,8):(8,1)", "--svg", &svg, "--html", html]);
    assert_eq!(show(&nowhere), (1, "io".to_owned()));
    assert_eq!(show("-"), (2, "usage".to_owned()));
    assert!(!Path::new(&svg).exists());
    let (exit, _) = json(&["show", "(8,8):(8,1)", "--svg", &svg, "--html", &html]);
    assert_eq!(exit, 0);
    assert!(Path::new(&svg).exists() && Path::new(&html).exists());
}

#[test]
fn a_dash_is_no_file_to_write() {
    let gemm = ["gemm", "--m", "8", "--n", "8", "--k", "8", "--on"];
    assert_eq!(
        refused(&[&gemm[..], &["emulator", "--emit", "-"]].concat()),
        (2, "usage".to_owned())
    );
    assert_eq!(
        refused(&sum("buf:f32:100:iota", "buf:f32:100=-", "u32:100")),
        (2, "usage".to_owned())
    );
    assert_eq!(refused(&["tune", "--out", "-"]), (2, "usage".to_owned()));
    assert!(!Path::new("-").exists());
}

/// With or without a GPU.
#[test]
fn bench_checks_its_arguments_first() {
    for (args, code) in [
        (["--dtype", "f33"], "unknown_dtype"),
        (["--plan", "nope"], "unknown_plan"),
        (["--trans", "xy"], "unknown_trans"),
        (["--repeats", "0"], "usage"),
        (["--shapes", "99999999999999999999x1x1"], "usage"),
    ] {
        let (exit, found) = refused(&[&["bench"], &args[..]].concat());
        assert_eq!((exit, found.as_str()), (2, code), "{args:?}");
    }
    let output = tilewright(&["bench", "--shapes", "8x8x8", "--repeats", "1"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("--on emulator"), "{errors}");
}

#[test]
fn messages_name_what_was_given() {
    let message = |args: &[&str]| {
        let (exit, value) = json(args);
        assert_ne!(exit, 0, "{args:?}");
        value["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let derive = |tile: &'static str, access: &'static str| {
        message(&[
            "derive", "--tile", tile, "--elem", "f32", "--access", access,
        ])
    };
    let many = "99999999999999999999999";
    assert_eq!(
        derive("99999999999999999999999x1", "ld.32 @ 32:1"),
        format!("{many} is too large")
    );
    assert!(derive("64", "ld.32 @ 32:1").contains("ROWSxCOLUMNS"));
    assert!(!derive("64x64", "ld.32 @ 32:-1").contains("0 elements"));
    assert!(message(&["plans", "--for", &format!("{many}x1x1")]).contains("too large"));
    assert_eq!(
        message(&["plans", "--jsn"]),
        "unexpected argument '--jsn' found"
    );
    let misread = sum("buf:f32:10:data.bin", "buf:f32:100", "u32:100");
    assert!(message(&misread).contains("buf:f32:FILE"));
}

/// One line on standard error, with numpy or without it.
#[test]
fn the_launcher_refuses_in_one_line() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/launch.py");
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = r#"{"error":{"code":"leading_dimension","message":"lda is 3","span":null}}"#;
    for (name, content) in [
        ("empty", Some("")),
        ("error", Some(refusal)),
        ("list", Some("[1]")),
        ("none", None),
    ] {
        let path = folder.path().join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).expect("written");
        }
        let Ok(output) = Command::new("python3")
            .arg(script)
            .arg(KERNEL)
            .arg(&path)
            .output()
        else {
            eprintln!("there is no python3 here: nothing was tested");
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{name}: {errors}");
    }
}
