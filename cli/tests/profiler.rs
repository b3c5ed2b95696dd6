//! A newcomer comes with a profiler's report, or with a layout and an access, and asks `banks`.

mod common;

use common::{check_page, json, tilewright};
use serde_json::json;

#[test]
fn the_page_for_those_who_come_from_the_profiler_is_true() {
    let page = include_str!("../../docs/profiler.md");
    check_page(page, &[("csv", "report.csv")], 2);
}

#[test]
fn accesses_to_a_layout_are_counted() {
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let tile = format!("!ttg.memdesc<64x64xf16, {swizzled}, #smem>");
    let access = "ldmatrix.x4 @ (16,2):(64,8)";
    let (code, rows) = json(&[
        "banks", "--layout", &tile, "--elem", "f16", "--access", access,
    ]);
    assert_eq!(code, 0, "{rows}");
    assert_eq!(
        rows,
        json!([{"row": 0, "op": "ldmatrix.x4", "access": access, "wavefronts": 4, "ideal": 4}])
    );
    let (code, rows) = json(&[
        "banks", "--tile", "64x64", "--elem", "f16", "--access", access,
    ]);
    assert_eq!((code, &rows[0]["wavefronts"]), (0, &json!(32)));
}

#[test]
fn what_is_missing_is_named() {
    let (code, error) = json(&["banks"]);
    let message = error["error"]["message"].as_str().expect("a message");
    assert_eq!(code, 2);
    assert!(
        message.contains("--ncu") && message.contains("--csv"),
        "{message}"
    );
    let (code, error) = json(&["banks", "--layout", "(32,32):(32,1)"]);
    assert_eq!((code, &error["error"]["code"]), (2, &json!("usage")));
    let (code, error) = json(&["banks", "--ncu", "/nonexistent"]);
    assert_eq!((code, &error["error"]["code"]), (1, &json!("io")));
    let output = tilewright(&["banks", "--ncu", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(output.status.code(), Some(1));
    let (code, error) = json(&["banks", "--csv", "x", "--layout", "8:1"]);
    assert_eq!((code, &error["error"]["code"]), (2, &json!("usage")));
}
