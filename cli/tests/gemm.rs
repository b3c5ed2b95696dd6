//! `gemm` and `plans` seen from outside: the JSON that the design promises, and one clear error for whatever can't be done.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use common::{json, tilewright};
use serde_json::{Value, json};

/// Small sizes on the emulator, with more arguments.
fn small(more: &[&str]) -> Vec<String> {
    let fixed = [
        "gemm", "--on", "emulator", "--m", "33", "--n", "40", "--k", "9",
    ];
    fixed.iter().chain(more).map(|&s| s.to_owned()).collect()
}

fn gemm(more: &[&str]) -> (i32, Value) {
    let args = small(more);
    json(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no object"));
    object.keys().map(String::as_str).collect()
}

fn numbers(value: &Value) -> Vec<u64> {
    let array = value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no array"));
    array
        .iter()
        .map(|v| v.as_u64().expect("a number"))
        .collect()
}

#[test]
fn the_json_of_gemm() {
    for plan in ["sgemm-maxas-64", "sgemm-maxas-128"] {
        for trans in ["nn", "nt", "tn", "tt"] {
            let (exit, value) = gemm(&[
                "--plan", plan, "--trans", trans, "--alpha", "1.5", "--beta", "-2",
            ]);
            assert_eq!(exit, 0, "{value}");
            let promised = [
                "plan",
                "device",
                "max_abs_err",
                "max_rel_err",
                "tolerance",
                "passed",
                "smem",
                "time_ms",
                "launch",
                "split",
                "pack",
            ];
            let missing: Vec<_> = promised
                .iter()
                .filter(|key| !keys(&value).contains(*key))
                .collect();
            assert!(missing.is_empty(), "{missing:?} of {value}");
            assert_eq!(
                (&value["plan"], &value["device"]),
                (&plan.into(), &"emulator".into())
            );
            assert_eq!(value["passed"], true);
            let error = |key: &str| value[key].as_f64().expect("a number");
            assert!(error("max_abs_err") > 0.0 && error("max_rel_err") > 0.0);
            assert!(error("max_rel_err") <= error("tolerance") && error("tolerance") < 1e-4);
            assert!(error("time_ms") > 0.0);
            let accesses = value["smem"].as_array().expect("an array");
            assert!(accesses.len() >= 5, "{value}");
            for access in accesses {
                assert!(access["access"].is_string());
                assert!(access["ideal"].as_u64() <= access["wavefronts"].as_u64());
                assert_eq!(access["wavefronts"], access["measured"], "{access}");
            }
        }
    }
}

/// The contract is enough to launch the file: its kernel, and its parameters in name, order and type.
#[test]
fn the_launch_contract_describes_the_emitted_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernel.ptx");
    let file = path.display().to_string();
    let more = [
        "--emit",
        &file,
        "--plan",
        "sgemm-maxas-128",
        "--beta",
        "0.5",
        "--ldc",
        "41",
    ];
    let (exit, value) = gemm(&more);
    assert_eq!(exit, 0, "{value}");
    let launch = &value["launch"];
    let promised = [
        "after",
        "assumptions",
        "before",
        "beside_previous",
        "block",
        "cluster",
        "cluster_declared",
        "grid",
        "kernel",
        "memory",
        "params",
        "shared_bytes",
        "workspace_bytes",
    ];
    assert_eq!(keys(launch), BTreeSet::from(promised));
    for others in ["before", "after"] {
        let empty = launch[others].as_array().is_some_and(Vec::is_empty);
        assert!(empty, "a plan of one kernel launches only that: {launch}");
    }
    assert_eq!(launch["assumptions"], json!([]), "no listed plan has any");
    assert_eq!(launch["workspace_bytes"], 0);
    assert_eq!(numbers(&launch["grid"]), [1, 1, 1]);
    assert_eq!(numbers(&launch["block"]), [256, 1, 1]);
    assert_eq!(numbers(&launch["cluster"]), [1, 1, 1]);
    assert!(launch["shared_bytes"].is_u64());

    let ptx = std::fs::read_to_string(&path).expect("the file is there");
    let entry = format!(
        ".visible .entry {}(",
        launch["kernel"].as_str().expect("a name")
    );
    let (_, rest) = ptx.split_once(&entry).expect("the kernel is in the file");
    let declared: Vec<(&str, &str)> = rest
        .split_once(')')
        .expect("a parameter list")
        .0
        .split(',')
        .map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (ty, name) = (words.next(), words.next());
            (name.expect("a name"), ty.expect("a type"))
        })
        .collect();
    let params = launch["params"].as_array().expect("an array");
    let promised: Vec<(&str, &str)> = params
        .iter()
        .map(|param| {
            assert_eq!(keys(param), BTreeSet::from(["name", "type", "value"]));
            let ty = match param["type"].as_str().expect("a type") {
                "ptr" => ".u64",
                "u32" => ".u32",
                "f32" => ".f32",
                other => panic!("{other}"),
            };
            (param["name"].as_str().expect("a name"), ty)
        })
        .collect();
    assert_eq!(promised, declared);
    let of = |name: &str| {
        &params
            .iter()
            .find(|p| p["name"] == name)
            .expect("it is there")["value"]
    };
    assert_eq!([of("m"), of("n"), of("k")], [33, 40, 9]);
    assert_eq!([of("lda"), of("ldb"), of("ldc")], [9, 40, 41]);
    assert_eq!([of("alpha"), of("beta")], [1.0, 0.5]);
}

/// Kernels around the main one, the workspace, the bias and what every pointer points at.
#[test]
fn the_launch_contract_of_several_kernels() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernel.ptx").display().to_string();
    let (exit, value) = json(&[
        "gemm",
        "--on",
        "emulator",
        "--dtype",
        "f16",
        "--ctype",
        "f32",
        "--m",
        "33",
        "--n",
        "41",
        "--k",
        "199",
        "--align",
        "2",
        "--bias",
        "column",
        "--activation",
        "relu",
        "--split",
        "2",
        "--pack",
        "--plan",
        "mma-f16-64x64x32",
        "--emit",
        &file,
    ]);
    assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
    let said = ["dtype", "ctype", "bias", "activation"].map(|key| value[key].as_str());
    assert_eq!(said, ["f16", "f32", "column", "relu"].map(Some));
    assert_eq!(numbers(&value["alignment"]), [2, 2, 4]);
    assert_eq!(value["batch"]["count"], 1);

    let launch = &value["launch"];
    let list = |key: &str| launch[key].as_array().expect("an array").clone();
    let (before, after) = (list("before"), list("after"));
    assert_eq!((before.len(), after.len()), (2, 1), "{launch}");
    let workspace = launch["workspace_bytes"].as_u64().expect("a number");
    let ptx = std::fs::read_to_string(&file).expect("the file is there");
    let (mut matrices, mut bias) = (BTreeSet::new(), Vec::new());
    for one in before.iter().chain([launch]).chain(&after) {
        let entry = format!(
            ".visible .entry {}(",
            one["kernel"].as_str().expect("a name")
        );
        assert!(ptx.contains(&entry), "{entry}");
        for shape in ["grid", "block", "cluster"] {
            assert_eq!(numbers(&one[shape]).len(), 3);
        }
        for param in one["params"].as_array().expect("an array") {
            let value = &param["value"];
            match param["type"].as_str() {
                Some("ptr") if value["matrix"].is_string() => {
                    matrices.insert(value.to_string());
                }
                Some("ptr") if value["elements"].is_u64() => bias.push(value["elements"].clone()),
                Some("ptr") => {
                    let offset = value["workspace"].as_u64().expect("an offset");
                    assert!(offset < workspace && offset % 256 == 0, "{param}");
                }
                _ => assert!(value.is_number(), "{param}"),
            }
        }
    }
    let expected = [
        r#"{"cols":199,"ld":199,"matrix":"A","rows":33}"#,
        r#"{"cols":41,"ld":41,"matrix":"B","rows":199}"#,
        r#"{"cols":41,"ld":41,"matrix":"C","rows":33}"#,
    ];
    assert_eq!(matrices, expected.map(str::to_owned).into());
    assert_eq!(bias, [41]);
}

/// A batch is counted and its matrices found.
#[test]
fn the_launch_contract_of_a_batch() {
    let more = [
        "--dtype",
        "f16",
        "--batch",
        "3",
        "--stride-a",
        "0",
        "--stride-c",
        "1400",
    ];
    let (exit, value) = gemm(&more);
    assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
    assert_eq!(value["batch"]["count"], 3);
    assert_eq!(numbers(&value["batch"]["strides"]), [0, 360, 1400]);
    let c = value["launch"]["params"].as_array().expect("an array");
    let c = c.iter().find(|p| p["value"]["matrix"] == "C").expect("C");
    assert_eq!([&c["value"]["count"], &c["value"]["stride"]], [3, 1400]);
}

/// What `gemm` emits, `run` runs: with C = 1·A·B of matrices of ones, each element is k.
#[test]
fn an_emitted_kernel_runs_under_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernel.ptx").display().to_string();
    let (exit, value) = gemm(&["--emit", &file, "--plan", "sgemm-maxas-64"]);
    assert_eq!(exit, 0, "{value}");
    let arguments = [
        "buf:f32:297:1",
        "buf:f32:360:1",
        "buf:f32:1320",
        "u32:33",
        "u32:40",
        "u32:9",
        "u32:9",
        "u32:40",
        "u32:40",
        "f32:1",
        "f32:0",
    ];
    let mut args = vec!["run", &file, "--grid", "1", "--block", "64"];
    for argument in arguments {
        args.extend(["--arg", argument]);
    }
    let (exit, value) = json(&args);
    assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
    assert_eq!(value["buffers"][2]["first"][0], 9.0, "{value}");
}

#[test]
fn the_text_of_gemm_ends_with_the_verdict() {
    let args = small(&[]);
    let output = tilewright(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "layouts",
        "proven",
        "wavefronts: proven",
        "error against float64",
        "kernel sgemm_",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(text.ends_with("\npassed\n"), "{text}");
}

/// The share of useful instructions is stated beside that of the plan's source, by `gemm` and by `plans`, in text and in JSON.
#[test]
fn the_main_loop_is_stated_beside_the_sources() {
    let args = small(&["--dtype", "f64", "--plan", "dgemm-4x4", "--trans", "tn"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stated = "256 products, 68 loads, 4 stores, 9 others: 96.1 % products and loads (the HD 7970 walk-through: 57 %)";
    for args in [&args[..], &["plans", "dgemm-4x4"]] {
        let output = tilewright(args);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && text.contains(stated), "{text}");
    }
    let (exit, value) = gemm(&["--dtype", "f64", "--plan", "dgemm-4x4", "--trans", "tn"]);
    let mix = &value["main_loop"];
    assert_eq!((exit, &mix["products"]), (0, &256.into()), "{value}");
    assert!(mix["useful"].as_f64().is_some_and(|useful| useful > 0.96));
    let (exit, value) = json(&["plans", "dgemm-4x4"]);
    let plan = &value[0];
    assert_eq!((exit, &plan["source_useful"]["useful"]), (0, &0.57.into()));
    assert_eq!(plan["variants"][2]["main_loop"], *mix);
}

#[test]
fn seeds_make_the_operands() {
    let error = |seed: &str| gemm(&["--seed", seed]).1["max_abs_err"].to_string();
    assert_eq!(error("7"), error("7"));
    assert_ne!(error("7"), error("8"));
    assert_eq!(gemm(&["--seed", "18446744073709551615"]).0, 0);
}

#[test]
fn check_can_be_left_out() {
    let (exit, value) = gemm(&["--check=false"]);
    assert_eq!((exit, &value["passed"]), (0, &true.into()));
    assert!(value["max_abs_err"].is_null() && value["tolerance"].is_null());
}

/// Proofs, text and contract without a run, however large the product is.
#[test]
fn a_kernel_is_to_be_had_without_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.ptx");
    let file = path.display().to_string();
    let (exit, value) = json(&[
        "gemm", "--dtype", "f16", "--m", "100000", "--n", "100001", "--k", "100003", "--on",
        "none", "--arch", "sm_90", "--emit", &file,
    ]);
    assert_eq!((exit, &value["device"]), (0, &"none".into()), "{value}");
    assert!(value["passed"].is_null() && value["time_ms"].is_null());
    assert_eq!((&value["split"], &value["pack"]), (&1.into(), &true.into()));
    let text = std::fs::read_to_string(&path).expect("it was written");
    let entry = value["launch"]["kernel"].as_str().expect("a name");
    assert!(text.contains(&format!(".entry {entry}(")));
}

/// Without a GPU and without `--arch`, the architecture is one that has the type.
#[test]
fn the_architecture_is_one_that_has_the_type_or_the_plan() {
    for (args, arch) in [
        (&["--dtype", "f16"][..], "sm_80"),
        (&["--dtype", "e5m2"], "sm_89"),
        (&["--dtype", "f64", "--plan", "mma-f64-128x128x8"], "sm_90"),
        (
            &["--dtype", "f16", "--plan", "mma-f16-64x64x32+sm75"],
            "sm_80",
        ),
    ] {
        let all = [
            &[
                "gemm", "--on", "emulator", "--m", "32", "--n", "32", "--k", "32",
            ],
            args,
        ]
        .concat();
        let (exit, value) = json(&all);
        assert_eq!(
            (exit, &value["arch"]),
            (0, &arch.into()),
            "{args:?}: {value}"
        );
    }
}

#[test]
fn nothing_to_do_is_no_failure() {
    for empty in [["--m", "0"], ["--n", "0"]] {
        let (exit, value) = json(&[&["gemm", "--on", "emulator"], &empty[..]].concat());
        assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
        assert!(
            value["launch"].is_null() && value["time_ms"].is_null(),
            "{value}"
        );
    }
    let (exit, value) = json(&[
        "gemm", "--on", "emulator", "--k", "0", "--beta", "2", "--m", "5", "--n", "5",
    ]);
    assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
}

/// Bad input: arguments, exit code, error code, and a part of the message that names what was given.
const REFUSED: &[(&[&str], i32, &str, &str)] = &[
    (
        &["--plan", "sgemm-maxas-65"],
        2,
        "unknown_plan",
        "sgemm-maxas-65",
    ),
    (&["--plan", ""], 2, "unknown_plan", "`tilewright plans`"),
    (&["--dtype", "f31"], 2, "unknown_dtype", "f31"),
    (&["--trans", "nx"], 2, "unknown_trans", "nx"),
    (&["--arch", "sm_1"], 2, "unknown_arch", "sm_1"),
    (&["--arch", "90"], 2, "unknown_arch", "90"),
    (&["--on", "tpu"], 2, "usage", "tpu"),
    (&["--m", "-1"], 2, "usage", "-1"),
    (&["--n", "-9223372036854775809"], 2, "usage", "negative"),
    (&["--k", "2.5"], 2, "usage", "2.5"),
    (&["--k", "many"], 2, "usage", "many"),
    (&["--k", ""], 2, "usage", "--k"),
    (
        &["--m", "18446744073709551616"],
        2,
        "usage",
        "18446744073709551616",
    ),
    (
        &["--m", "99999999999999999999999999999999999999999"],
        2,
        "usage",
        "whole number",
    ),
    (&["--m", "4294967296"], 1, "too_large", "4294967296"),
    (&["--n", "4294967297"], 1, "too_large", "4294967297"),
    (
        &["--k", "18446744073709551615"],
        1,
        "too_large",
        "18446744073709551615",
    ),
    (&["--lda", "4294967296"], 1, "too_large", "lda"),
    (
        &["--m", "60000000", "--n", "8000000"],
        1,
        "too_large",
        "GiB",
    ),
    (
        &["--m", "2000000000", "--n", "2000000000"],
        1,
        "too_large",
        "n can be at most 16776960",
    ),
    (
        &["--ldc", "2000000000", "--m", "60000000"],
        1,
        "too_large",
        "GiB",
    ),
    (&["--lda", "255"], 2, "leading_dimension", "at least 256"),
    (&["--ldb", "0"], 2, "leading_dimension", "ldb is 0"),
    (&["--ldc", "1"], 2, "leading_dimension", "ldc is 1"),
    (
        &["--trans", "tn", "--m", "300", "--lda", "256"],
        2,
        "leading_dimension",
        "at least 300",
    ),
    (&["--alpha", "nan"], 2, "not_finite", "alpha"),
    (&["--beta", "NaN"], 2, "not_finite", "beta"),
    (&["--alpha=-inf"], 2, "not_finite", "alpha"),
    (&["--beta", "1e300"], 2, "not_finite", "beta"),
    (
        &["--dtype", "s8", "--alpha", "1.5"],
        2,
        "not_integral",
        "whole number",
    ),
    (&["--alpha", "one"], 2, "usage", "one"),
    (&["--ctype", "f16"], 2, "unknown_ctype", "known is f32"),
    (
        &["--dtype", "s8", "--ctype", "f32"],
        2,
        "unknown_ctype",
        "known is s32",
    ),
    (
        &["--dtype", "f16", "--ctype", "f64"],
        2,
        "unknown_ctype",
        "f32, f16, bf16",
    ),
    (&["--bias", "diagonal"], 2, "unknown_name", "row, column"),
    (&["--activation", "tanh"], 2, "unknown_name", "relu, gelu"),
    (
        &["--arch", "sm_75", "--bias", "row"],
        1,
        "unsupported",
        "bias",
    ),
    (
        &["--arch", "sm_75", "--activation", "gelu"],
        1,
        "unsupported",
        "activation",
    ),
    (
        &["--arch", "sm_75", "--batch", "2"],
        1,
        "unsupported",
        "batch",
    ),
    (&["--batch", "0"], 2, "usage", "at least 1"),
    (&["--batch", "-3"], 2, "usage", "negative"),
    (
        &["--batch", "2", "--stride-c", "65535"],
        2,
        "batch_overlap",
        "at least 65536",
    ),
    (&["--stride-a", "-1"], 2, "usage", "negative"),
    (&["--stride-b", "1.5"], 2, "usage", "whole number"),
    (&["--align", "3"], 2, "usage", "power of two"),
    (&["--align", "0"], 2, "usage", "power of two"),
    (
        &["--align", "2"],
        2,
        "alignment",
        "the 4 bytes of an element",
    ),
    (
        &["--dtype", "f64", "--align", "4"],
        2,
        "alignment",
        "A is aligned to 4 bytes",
    ),
    (&["--seed", "-1"], 2, "usage", "-1"),
    (&["--no-such-flag"], 2, "usage", "--no-such-flag"),
    (&["surplus"], 2, "usage", "surplus"),
];

#[test]
fn bad_input_is_one_clear_error_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (new, old) = (folder.path().join("new.ptx"), folder.path().join("old.ptx"));
    std::fs::write(&old, "what was there").expect("written");
    for (args, exit, code, part) in REFUSED {
        for path in [&new, &old] {
            let file = path.display().to_string();
            let all = [&["gemm", "--emit", &file], *args].concat();
            let (got, value) = json(&all);
            let message = value["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(
                (got, value["error"]["code"].as_str()),
                (*exit, Some(*code)),
                "{args:?}: {value}"
            );
            assert!(message.contains(part), "{args:?}: {message}");
            assert!(
                !message.contains('\n'),
                "{args:?}: one sentence, not {message}"
            );
        }
        let without_json = tilewright(&[&["gemm"], *args].concat());
        let log = String::from_utf8_lossy(&without_json.stderr);
        assert_eq!(without_json.status.code(), Some(*exit), "{args:?}: {log}");
        assert!(
            log.starts_with("error: ") && without_json.stdout.is_empty(),
            "{args:?}: {log}"
        );
    }
    assert!(!new.exists());
    assert_eq!(
        std::fs::read_to_string(&old).expect("still there"),
        "what was there"
    );
    assert_eq!(entries(folder.path()), ["old.ptx"]);
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("listed");
    let names = entries.map(|e| {
        e.expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    names.collect()
}

#[test]
fn a_file_that_cannot_be_written_is_one_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder
        .path()
        .join("missing/kernel.ptx")
        .display()
        .to_string();
    let is_folder = folder.path().display().to_string();
    for path in [&missing, &is_folder] {
        let (exit, value) = gemm(&["--emit", path]);
        assert_eq!(
            (exit, value["error"]["code"].as_str()),
            (1, Some("io")),
            "{value}"
        );
        let message = value["error"]["message"].as_str().expect("a message");
        assert!(message.contains(path.as_str()), "{message}");
    }
    assert!(entries(folder.path()).is_empty());
    // And one that can be is replaced whole.
    let file = folder.path().join("kernel.ptx");
    std::fs::write(&file, "x".repeat(1 << 20)).expect("written");
    assert_eq!(gemm(&["--emit", &file.display().to_string()]).0, 0);
    let ptx = std::fs::read_to_string(&file).expect("there");
    assert!(ptx.starts_with("//") && ptx.ends_with("}\n"));
    assert_eq!(entries(folder.path()), ["kernel.ptx"]);
}

#[test]
fn a_missing_gpu_is_one_clear_error() {
    if json(&["doctor"]).1["gpu"]["found"] == true {
        let (exit, value) = json(&["gemm", "--on", "gpu", "--m", "100"]);
        assert_eq!((exit, &value["passed"]), (0, &true.into()), "{value}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernel.ptx").display().to_string();
    for args in [&["gemm", "--on", "gpu", "--emit", &file][..], &["bench"]] {
        let (exit, value) = json(args);
        let code = value["error"]["code"].as_str().unwrap_or_default();
        assert!(
            exit == 1 && ["no_cuda_driver", "old_cuda_driver", "no_gpu"].contains(&code),
            "{value}"
        );
    }
    assert!(entries(folder.path()).is_empty());
    let (exit, value) = json(&[
        "gemm", "--on", "auto", "--m", "20", "--n", "20", "--k", "20",
    ]);
    assert_eq!((exit, &value["device"]), (0, &"emulator".into()), "{value}");
}

#[test]
fn plans_lists_layouts_and_proofs() {
    let (exit, value) = json(&["plans"]);
    assert_eq!(exit, 0);
    let plans = value.as_array().expect("an array");
    let names: Vec<_> = plans.iter().filter_map(|p| p["plan"].as_str()).collect();
    assert!(
        names.contains(&"sgemm-maxas-64") && names.contains(&"sgemm-maxas-128"),
        "{names:?}"
    );
    for plan in plans {
        assert!(
            plan["dtype"].is_string()
                && plan["arch"].as_str().is_some_and(|a| a.starts_with("sm_"))
        );
        assert_eq!(numbers(&plan["tile"]).len(), 3);
        // Operands are read by descriptors and lanes store their own sums: no thread of the product accesses shared memory.
        let name = plan["plan"].as_str().unwrap_or("");
        let untouched = name.ends_with("+swapab") && !name.contains("-tf32-");
        let variants = plan["variants"].as_array().expect("an array");
        assert_eq!(variants.len(), 4);
        for variant in variants {
            for part in ["layouts", "proofs", "smem"] {
                let may_be_empty = part == "smem" && untouched;
                assert!(
                    variant[part]
                        .as_array()
                        .is_some_and(|a| may_be_empty || !a.is_empty()),
                    "{part}: {variant}"
                );
            }
        }
    }
    let one = tilewright(&["plans", "sgemm-maxas-64"]);
    let text = String::from_utf8(one.stdout).expect("UTF-8");
    assert!(
        one.status.success() && text.contains("(2,8,4):(0,16,0)"),
        "{text}"
    );
    let (exit, value) = json(&["plans", "dgemm"]);
    assert_eq!(
        (exit, value["error"]["code"].as_str()),
        (2, Some("unknown_plan"))
    );
}

/// A reader that goes away early, as `| head -1` does, is no reason to panic.
#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["plans", "sgemm-maxas-128"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

/// The tour in the README shows what the command prints; cut on the right, and without what depends on the machine.
#[test]
fn the_tour_in_the_readme_is_real() {
    let readme = include_str!("../../README.md");
    let tour = readme
        .split("```text\n")
        .nth(1)
        .expect("a block of output")
        .split("```")
        .next()
        .expect("its end");
    let output = tilewright(&["gemm", "--on", "emulator"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut printed = text.lines();
    for line in tour.lines().filter(|line| !line.is_empty()) {
        assert!(
            printed.any(|real| real.starts_with(line)),
            "the README shows what is not printed, at least not in that order: {line}"
        );
    }
}
