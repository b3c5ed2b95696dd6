//! A newcomer pastes a layout from pycute, CuTe or Triton into a command, and takes the answer back.

mod common;

use common::{check_page, json, tilewright};

#[test]
fn the_page_on_notations_is_true() {
    check_page(include_str!("../../docs/notations.md"), &[], 9);
}

#[test]
fn every_command_that_takes_a_layout_reads_other_notations() {
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let (code, shown) = json(&["show", swizzled, "--banks", "--elem", "f16"]);
    assert_eq!(
        (code, &shown["text"]),
        (0, &"Sw<3,3,3> o (8,64):(64,1)".into())
    );
    let access = "ldmatrix.x4 @ cute.make_layout((16, 2), stride=(64, 8))";
    let tile = "Layout<Shape<_64,_64>, Stride<_64,_1>>{}";
    let (code, shown) = json(&["show", tile, "--access", access, "--elem", "f16"]);
    assert_eq!(code, 0, "{shown}");
    let asked = [
        "derive", "--tile", "64x64", "--elem", "f16", "--access", access,
    ];
    let (code, derived) = json(&[&asked[..], &["--notation", "pycute"]].concat());
    assert_eq!(code, 0, "{derived}");
    assert_eq!(
        derived["written"],
        "ComposedLayout(Swizzle(3,3,3), 0, Layout((64, 64), (64, 1)))"
    );
    let (code, index) = json(&["index", swizzled, "--target", "rust"]);
    assert_eq!(code, 0, "{index}");
}

#[test]
fn mistakes_have_the_exit_codes_and_places_of_every_command() {
    let (code, error) = json(&["eval", "Layout((4, 8), (1, ?))"]);
    assert_eq!(
        (code, &error["error"]["span"]),
        (2, &serde_json::json!([19, 20]))
    );
    for command in ["show", "index"] {
        let (code, error) = json(&[command, "Layout((4, 8), (1, ?))"]);
        assert_eq!(
            (code, &error["error"]["code"]),
            (2, &"syntax".into()),
            "{command}: {error}"
        );
        assert_eq!(
            error["error"]["span"],
            serde_json::json!([19, 20]),
            "{command}"
        );
    }
    let (code, error) = json(&["eval", "4:1", "--notation", "cutlass"]);
    assert_eq!(
        (code, &error["error"]["code"]),
        (2, &"unknown_notation".into())
    );
    let (code, error) = json(&["eval", "(3,4):(1,3)", "--notation", "triton"]);
    assert_eq!(
        (code, &error["error"]["code"]),
        (1, &"not_in_notation".into())
    );
}

#[test]
fn the_notation_holds_for_every_line_of_standard_input() {
    let output = tilewright(&["eval", "--notation", "cute", "(4,8):(8,1)(_,3)"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.trim(), "Sw<0,0,0> o _3 o (_4):(_8)");
}
