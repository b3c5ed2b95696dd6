//! Pictures of matrices over devices: the cells against the definition, what is written around them, refusals.

use serde_json::{Value, json as value};

use crate::{cells, file, json, text_of};

/// The devices of each cell of a panel, by (row, column).
fn devices(panel: &Value) -> Vec<((i64, i64), Vec<i64>)> {
    let of = |cell: &Value| -> Vec<i64> {
        let devices = cell["devices"].as_array().expect("devices");
        devices.iter().filter_map(Value::as_i64).collect()
    };
    let cells = cells(panel).into_iter();
    cells.map(|(at, cell)| (at, of(cell))).collect()
}

#[test]
fn cells_are_on_the_devices_that_the_layout_says() {
    // Blocks of 2×2 dealt out to a grid of 2×2, cut off at 7 rows.
    let (exit, picture) = json(&[
        "((2,2),(2,2,2,2)):((2@0,2@1),(1@0,4@0,1@1,4@1))",
        "--devices=7x8",
    ]);
    assert_eq!(
        (exit, &picture["kind"]),
        (0, &value!("devices")),
        "{picture}"
    );
    let panel = &picture["panels"][0];
    assert_eq!(panel["unit"], value!([1, 1]));
    let found = devices(panel);
    assert_eq!(found.len(), 7 * 8);
    for ((row, col), devices) in found {
        assert_eq!(devices, [row / 2 % 2 + 2 * (col / 2 % 2)], "({row},{col})");
    }
}

#[test]
fn large_matrices_are_drawn_in_blocks() {
    // 1000 rows on 3 devices, 334 each and 332 on the last.
    let (_, picture) = json(&["row_shards((1000,4096), 3)", "--devices"]);
    let panel = &picture["panels"][0];
    assert_eq!(panel["unit"], value!([334, 4096]));
    let at = |device: i64| ((334 * device, 0), vec![device]);
    assert_eq!(devices(panel), [at(0), at(1), at(2)]);
    // A window is of elements, and shows the blocks that it touches.
    let (_, picture) = json(&[
        "row_shards((1000,4096), 3)",
        "--devices",
        "--rows",
        "300..400",
    ]);
    assert_eq!(devices(&picture["panels"][0]), [at(0), at(1)]);
    assert!(
        picture["notes"][0]
            .as_str()
            .is_some_and(|note| note.starts_with("Clipped: rows 0..668"))
    );
}

#[test]
fn copies_and_terms_name_all_devices() {
    let copies = text_of(&["replicas((2,2), 3)", "--devices"]);
    assert!(copies.contains("0 │ 0–2 0–2"), "{copies}");
    assert!(copies.contains("each element on 3"), "{copies}");
    let terms = text_of(&["terms((2,2), 2)", "--devices"]);
    assert!(terms.contains("0 │ 0 + 1 0 + 1"), "{terms}");
    assert!(
        terms.contains("each element a sum of terms on 2"),
        "{terms}"
    );
}

#[test]
fn a_redistribution_is_before_and_after() {
    let question = "redistribute(row_shards((8,6),2), column_shards((8,6),2))";
    let (_, picture) = json(&[question, "--devices"]);
    let panels = picture["panels"].as_array().expect("panels");
    let roles: Vec<_> = panels.iter().map(|panel| &panel["role"]).collect();
    assert_eq!(roles, ["before", "after"]);
    assert_eq!(devices(&panels[0])[5], ((0, 5), vec![0]));
    assert_eq!(devices(&panels[1])[5], ((0, 5), vec![1]));
    let verdict = panels[1]["verdict"].to_string();
    assert!(verdict.contains("all-to-all: 2 pieces"), "{verdict}");
    let page = file("--html", &[question, "--devices"]);
    assert!(page.contains("\"detail\":\"device 1\"") && page.contains("all-to-all"));
    let svg = file("--svg", &[question, "--devices"]);
    assert_eq!(svg.matches(">before<").count(), 1);
    // Device 1 in 4 rows before and 8 after, and the axes' labels of row and column 1, twice.
    assert_eq!(svg.matches(">1</text>").count(), 4 + 8 + 2 * 2);
}

#[test]
fn what_is_no_distribution_is_refused() {
    for (args, code, part) in [
        (
            &["(8,8):(8,1)", "--devices"][..],
            "type_mismatch",
            "not a layout",
        ),
        (
            &["row_shards((8,6),2)", "--devices=8"],
            "bad_extents",
            "8192x4096",
        ),
        (
            &["row_shards((8,6),2)", "--devices=8x7"],
            "different_extents",
            "same extents",
        ),
        (
            &[
                "redistribute(row_shards((8,6),2),replicas((8,6),2))",
                "--devices=8x7",
            ],
            "different_extents",
            "leave the extents out",
        ),
        (
            &["(2,(4,6)):(5@0,(1@0,1@1))", "--devices"],
            "unheld",
            "no device holds row 4",
        ),
        (
            &["row_shards((8,6),2)", "--devices", "--rows", "4..9"],
            "bad_window",
            "within 0..8",
        ),
        (
            &["row_shards((8,6),0)", "--devices"],
            "devices",
            "from 1 to 64",
        ),
        (&["row_shards((8,6),2)"], "type_mismatch", "--devices"),
    ] {
        let (exit, answer) = json(args);
        assert_ne!(exit, 0, "{args:?}");
        assert_eq!(answer["error"]["code"], code, "{args:?}: {answer}");
        assert!(
            answer["error"]["message"].to_string().contains(part),
            "{args:?}: {answer}"
        );
    }
}
