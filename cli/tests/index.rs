//! `tilewright index` from outside: code on standard output, one JSON value under `--json`, refusals by name and place.

mod common;

use std::process::{Command, Output};

use common::words;
use serde_json::Value;

fn index(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("index")
        .args(args)
        .output()
        .expect("the command starts")
}

fn code(args: &[&str]) -> String {
    let output = index(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(args: &[&str]) -> (Option<i32>, Value) {
    let output = index(&[args, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{args:?} prints {text}");
    assert!(output.stderr.is_empty(), "{args:?}");
    (
        output.status.code(),
        serde_json::from_str(&text).expect("one JSON value"),
    )
}

#[test]
fn each_target_is_written() {
    let layout = "(32,32):(33,1)";
    let args = |target| {
        [
            layout, "--target", target, "--coords", "row,col", "--name", "at",
        ]
    };
    let rust = code(&args("rust"));
    assert!(
        rust.contains("pub const fn at(row: u32, col: u32) -> u32 {"),
        "{rust}"
    );
    assert!(rust.contains("row * 33 + col"), "{rust}");
    assert!(
        rust.contains("`(32,32):(33,1)`"),
        "the documentation carries the layout: {rust}"
    );
    let ptx = code(&args("ptx"));
    assert!(ptx.contains("mad.lo.s32 %at, %row, 33, %col;"), "{ptx}");
    let cuda = code(&args("cuda"));
    assert!(
        cuda.contains(
            "__host__ __device__ __forceinline__ unsigned at(unsigned row, unsigned col) {"
        ),
        "{cuda}"
    );
}

#[test]
fn json_has_the_contract() {
    let (exit, value) = json(&[
        "Sw<3,3,3> o (8,64):(ld,1)",
        "--target",
        "rust",
        "--range",
        "ld=..1025",
    ]);
    assert_eq!(exit, Some(0));
    assert_eq!(value["layout"], "Sw<3,3,3> o (8,64):(ld,1)");
    assert_eq!(value["parameters"][2]["name"], "ld");
    assert_eq!(value["parameters"][2]["max"], 1024);
    assert_eq!(value["parameters"][0]["max"], 7);
    assert_eq!(value["result"]["type"], "u32");
    assert!(
        value["instructions"].as_u64().is_some_and(|n| n <= 5),
        "{value}"
    );
    assert!(
        value["code"]
            .as_str()
            .is_some_and(|c| c.contains("const fn offset")),
        "{value}"
    );
}

#[test]
fn ranges_and_types_decide_the_code() {
    let linear = code(&["(48,20):(1,50)", "--target", "cuda", "--coords", "linear"]);
    assert!(linear.contains("unsigned offset(unsigned i)"), "{linear}");
    assert!(
        !linear
            .lines()
            .any(|l| !l.starts_with("//") && l.contains('/')),
        "no division: {linear}"
    );
    let wide = code(&["(8,8):(1,8)", "--target", "rust", "--range", "i1=any"]);
    assert!(wide.contains("-> u64"), "{wide}");
    let typed = code(&["(8,8):(1,8)", "--target", "rust", "--type", "i64"]);
    assert!(typed.contains("-> i64"), "{typed}");
    let negative = code(&["(8,8):(-1,ld)", "--target", "rust", "--range", "ld=-9..10"]);
    assert!(
        negative.contains("ld: i32") && negative.contains("-> i32"),
        "{negative}"
    );
}

#[test]
fn refusals_have_code_place_and_exit() {
    let rust = ["--target", "rust"];
    #[allow(clippy::type_complexity)]
    let cases: [(&[&str], i32, &str, Option<[u64; 2]>); 8] = [
        (&["(4,x):(1,4)"], 2, "syntax", Some([3, 4])),
        (&["Sw<3,4,3> o (8,64):(64,?)"], 2, "syntax", Some([23, 24])),
        (
            &["(4,4):(1,4)", "--coords", "a,b,c"],
            2,
            "coordinate_mismatch",
            None,
        ),
        (&["(4,4):(1,4)", "--name", "fn"], 2, "invalid_name", None),
        (&["(4,4):(1,4)", "--type", "u9"], 2, "unknown_type", None),
        (
            &["(4,4):(1,4)", "--range", "ld=0..4"],
            2,
            "unknown_name",
            None,
        ),
        (
            &["(4,4):(1,4)", "--range", "i0=4"],
            2,
            "syntax",
            Some([0, 4]),
        ),
        (&["(4,4):(1,-4)", "--type", "u32"], 1, "does_not_fit", None),
    ];
    for (args, exit, name, span) in cases {
        let (code, value) = json(&[args, &rust].concat());
        assert_eq!(
            (code, value["error"]["code"].as_str()),
            (Some(exit), Some(name)),
            "{args:?}: {value}"
        );
        let expected = span.map_or(Value::Null, |s| serde_json::json!(s));
        assert_eq!(value["error"]["span"], expected, "{args:?}: {value}");
        let message = value["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{args:?}: {value}");
    }
    let output = index(&["(4,x):(1,4)", "--target", "rust"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.ends_with("  | (4,x):(1,4)\n  |    ^\n"), "{text}");
}

#[test]
fn negative_numbers_have_their_sign_beside_them() {
    let rust = code(&["(8,4):(ld,1)", "--target", "rust", "--range", "ld=-5..5"]);
    assert!(rust.contains("ld >= -5 && ld < 5"), "{rust}");
}

#[test]
fn a_range_is_refused_as_it_was_written() {
    for range in ["i0=5..3", "i0=-5..3", "ld=5..3", "ld=7..=3"] {
        let args = ["(8,4):(ld,1)", "--target", "rust", "--range", range];
        let (exit, value) = json(&args);
        let (name, values) = range.split_once('=').expect("a name");
        let message = value["error"]["message"].as_str().unwrap_or_default();
        let start = format!("`{values}` is no range for `{name}`: ");
        assert!(message.starts_with(&start), "{range}: {message}");
        assert_eq!(exit, Some(2));
        assert_eq!(value["error"]["code"], "invalid_range");
    }
}

#[test]
fn the_documented_commands_print_what_the_page_shows() {
    let page = include_str!("../../docs/index-functions.md");
    let mut run = 0;
    for block in page.split("```").skip(1).step_by(2) {
        let Some(text) = block.strip_prefix("text\n$ tilewright index ") else {
            continue;
        };
        let (command, shown) = text.split_once('\n').expect("a command and its output");
        let arguments = words(command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_eq!(code(&arguments), shown, "{command}");
        run += 1;
    }
    assert_eq!(run, 2, "commands on the page");
}
