//! Errors: exit codes, codes, the underlined part; files whole or absent.

use crate::{json, show};

/// Exit code, code, and the part of the text that is underlined.
fn refused<'a>(args: &[&'a str], text: &'a str) -> (i32, String, &'a str) {
    let (exit, value) = json(args);
    let error = &value["error"];
    assert!(
        error["message"].as_str().is_some_and(|m| !m.is_empty()),
        "{args:?} is not refused"
    );
    let end = |i: usize| error["span"][i].as_u64().map(|at| at as usize);
    let part = end(0).zip(end(1)).map_or("", |(a, b)| &text[a..b]);
    (
        exit,
        error["code"].as_str().unwrap_or_default().to_owned(),
        part,
    )
}

#[test]
fn errors_underline_what_is_wrong() {
    let tile = "(16,64):(64,1)";
    let with = |access: &'static str| refused(&[tile, "--access", access], access);
    let layout = |text: &'static str| refused(&[text], text);
    let option = |name: &'static str, text: &'static str| refused(&[tile, name, text], text);
    let atom = |name: &'static str| refused(&["--atom", name], name);
    let expect = |found: (i32, String, &str), exit: i32, code: &str, part: &str| {
        assert_eq!((found.0, found.1.as_str(), found.2), (exit, code, part));
    };
    expect(layout("(4,x):(1,4)"), 2, "syntax", "x");
    expect(layout("(4,8):(1,4) 7"), 2, "trailing_text", "7");
    expect(layout(""), 2, "syntax", "");
    expect(layout("(4,0):(1,4)"), 2, "invalid_extent", "(4,0):(1,4)");
    expect(
        layout("99999999999999999999:1"),
        2,
        "integer_too_large",
        "99999999999999999999",
    );
    assert_eq!(layout("Sw<3,3,0> o 8:1").0, 2);
    assert_eq!(layout("(9223372036854775807,2):(1,1)").0, 2);
    expect(with("ldmatrix.x4 (16,2):(64,8)"), 2, "syntax", "");
    expect(
        with("ldmatrix.x5 @ (16,2):(64,8)"),
        2,
        "unknown_access",
        "ldmatrix.x5",
    );
    expect(with("ld.128 @ (16,2:(64,8)"), 2, "syntax", ":");
    expect(with("ldmatrix.x4 @ 16:64"), 1, "wrong_lane_count", "16:64");
    expect(with("ld.32 @ 64:1"), 1, "wrong_lane_count", "64:1");
    expect(with("ld.32 @ 32:64"), 1, "outside_tile", "32:64");
    expect(with("ld.32 @ 32:-1"), 1, "outside_tile", "32:-1");
    expect(
        with("st.32 @ (16,2):(1,0)"),
        1,
        "duplicate_lanes",
        "(16,2):(1,0)",
    );
    expect(with("ld.128 @ 32:1"), 1, "misaligned", "32:1");
    expect(with("ffma @ 3:1"), 1, "unsupported_access", "3:1");
    expect(option("--elem", "f17"), 2, "bad_element", "f17");
    expect(
        option("--model", "maxwell-registers"),
        2,
        "unknown_model",
        "maxwell-registers",
    );
    expect(option("--rows", "0..17"), 2, "bad_window", "0..17");
    expect(
        atom("mma.m16n8k17.f16"),
        2,
        "unknown_atom",
        "mma.m16n8k17.f16",
    );
    expect(
        atom("wgmma.m64n12k16.f16"),
        2,
        "invalid_parameter",
        "wgmma.m64n12k16.f16",
    );
    expect(
        atom("tcgen05.mma.m96n16"),
        2,
        "invalid_parameter",
        "tcgen05.mma.m96n16",
    );
    expect(
        refused(&["--atom", "ldmatrix.x1", "--operand", "A"], "A"),
        2,
        "unknown_operand",
        "A",
    );
    expect(
        refused(&["--atom", "wgmma.m64n8k16.f16", "--operand", "B"], ""),
        1,
        "no_fragment",
        "",
    );
    expect(
        refused(
            &[
                "(2,2):(4611686018427387900,1)",
                "--elem",
                "16",
                "--access",
                "ld.8 @ 2:2",
            ],
            "ld.8 @ 2:2",
        ),
        1,
        "overflow",
        "2:2",
    );
    // An access that the memory lacks.
    expect(
        refused(
            &[
                tile,
                "--model",
                "amd-gcn",
                "--access",
                "ldmatrix.x4 @ (16,2):(64,8)",
            ],
            "ldmatrix.x4 @ (16,2):(64,8)",
        ),
        1,
        "unsupported_access",
        "(16,2):(64,8)",
    );
    // Neither a layout nor an atom, or both.
    assert_eq!(refused(&[], "").0, 2);
    assert_eq!(refused(&[tile, "--atom", "ldmatrix.x4"], "").0, 2);
    assert_eq!(refused(&["--atom", "ldmatrix.x4", "--banks"], "").0, 2);
    assert_eq!(refused(&[tile, "--operand", "A"], "").0, 2);
    // For people, the span is underlined.
    let output = show(&["(4,x):(1,4)"]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("  | (4,x):(1,4)\n  |    ^\n"));
}

#[test]
fn files_are_whole_or_absent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("absent/tile.svg").display().to_string();
    assert_eq!(refused(&["8:1", "--svg", &path], "").0, 1);
    let one = folder.path().join("one").display().to_string();
    assert_eq!(refused(&["8:1", "--svg", &one, "--html", &one], "").0, 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    let (exit, value) = json(&["8:1", "--svg", &one]);
    assert_eq!((exit, value["svg"].as_str()), (0, Some(one.as_str())));
    assert!(folder.path().join("one").exists());
}
