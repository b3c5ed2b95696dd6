//! The subcommand `eval`, as users and programs meet it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn eval(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("eval")
        .args(args)
        .output()
        .unwrap()
}

fn with_input(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("eval")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json_of(expression: &str) -> Value {
    let output = eval(&["--json", expression]);
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_layout_in_json() {
    assert_eq!(
        json_of("(4,(2,2)):(2,(1,8))"),
        json!({
            "kind": "layout", "text": "(4,(2,2)):(2,(1,8))", "shape": [4, [2, 2]], "stride": [2, [1, 8]],
            "swizzle": null, "offset": 0, "size": 16, "cosize": 16,
        })
    );
    assert_eq!(
        json_of("slice((1,_), Sw<2,0,2> o 9:1)")["error"]["code"],
        "coordinate_mismatch"
    );
    assert_eq!(
        json_of("Sw<2,0,2> o 3 o 9:1"),
        json!({
            "kind": "layout", "text": "Sw<2,0,2> o 3 o 9:1", "shape": 9, "stride": 1,
            "swizzle": [2, 0, 2], "offset": 3, "size": 9, "cosize": 12,
        })
    );
}

#[test]
fn the_other_kinds_in_json() {
    assert_eq!(
        json_of("(4,8):(8,1)(3,5)"),
        json!({"kind": "int", "value": 29})
    );
    assert_eq!(
        json_of("idx2crd(17,(4,(2,3)))"),
        json!({"kind": "coord", "value": [1, [0, 2]]})
    );
    assert_eq!(
        json_of("is_bijective(4:2)"),
        json!({"kind": "bool", "value": false})
    );
    assert_eq!(
        json_of("((8,64):(ld,1))(2,3)"),
        json!({"kind": "expr", "text": "2*ld+3"})
    );
    assert_eq!(json_of("(8,64):(2*ld,1)")["stride"], json!(["2*ld", 1]));
    assert_eq!(json_of("Sw<3,4,3>")["value"], json!([3, 4, 3]));
    assert_eq!(
        json_of("matrix((2,2):(2,1))"),
        json!({"kind": "matrix", "value": [2, 1]})
    );
}

#[test]
fn errors_underline_the_span_and_exit_with_1() {
    let output = eval(&["coalesce((4,6):(1,10) o 4:3)"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let message = text(&output.stderr);
    assert!(
        message.contains("  | coalesce((4,6):(1,10) o 4:3)\n  |          ^^^^^^^^^^^^^^^^^^\n"),
        "{message}"
    );

    let error = &json_of("coalesce((4,6):(1,10) o 4:3)")["error"];
    assert_eq!(
        (&error["code"], &error["span"]),
        (&json!("not_composable"), &json!([9, 27]))
    );
}

#[test]
fn codes_are_stable() {
    for (expression, code, span) in [
        ("(4,x):(1", "syntax", [8, 8]),
        ("4:1 4", "syntax", [4, 5]),
        ("coalese(4:1)", "unknown_name", [0, 7]),
        ("size()", "wrong_arguments", [0, 6]),
        ("size(true)", "type_mismatch", [5, 9]),
        ("(4,2):(1)", "not_congruent", [0, 9]),
        ("0:1", "invalid_extent", [0, 3]),
        ("(8,64):(ld,true)", "type_mismatch", [7, 16]),
        ("complement((4,2):(1,6), 24)", "not_chained", [0, 27]),
        ("preimage((4,2):(1,5), 4)", "not_in_image", [0, 24]),
        ("Sw<2,0,0>", "invalid_swizzle", [0, 9]),
        ("99999999999999999999", "integer_too_large", [0, 20]),
        ("(9223372036854775807,2):(1,1)", "overflow", [0, 29]),
        ("1 + 9223372036854775807", "overflow", [0, 23]),
        ("1 % 0", "division_by_zero", [0, 5]),
        ("inverse(4:2)", "not_invertible", [0, 12]),
        ("upcast(6:1, 4)", "not_divisible", [0, 14]),
        ("upcast(8:1, 0)", "invalid_parameter", [0, 14]),
        ("make_swizzle(-1,2,3)", "invalid_swizzle", [0, 20]),
        (
            "tile_to_shape((8,4):(4,1), (12,8))",
            "not_divisible",
            [0, 34],
        ),
        ("let size = 4; size", "reserved_name", [4, 8]),
        ("()", "empty_tuple", [0, 2]),
    ] {
        let error = &json_of(expression)["error"];
        assert_eq!(
            (&error["code"], &error["span"]),
            (&json!(code), &json!(span)),
            "{expression}"
        );
    }
}

/// The number and the argument that the user wrote, not what became of them.
#[test]
fn messages_name_what_was_given() {
    for (expression, start) in [
        ("make_swizzle(-1,2,3)", "Sw<-1,2,3>: "),
        ("make_swizzle(1,2,99999999999)", "Sw<1,2,99999999999> "),
        ("upcast(8:1,0)", "upcast: n is 0"),
        ("downcast(8:1,0)", "downcast: n is 0"),
        ("recast(8:1,-8,8)", "recast: old_bits is -8"),
        ("recast(8:1,8,0)", "recast: new_bits is 0"),
        ("ceil_div(5,0)", "ceil_div: b is 0"),
        ("ceil_div((5,4),(1,0))", "ceil_div: a number of b is 0"),
        ("shape_div(0,5)", "shape_div: a is 0"),
        ("complement(4:1,-5)", "complement: n is -5"),
        ("atom_a(ldmatrix.x4)", "ldmatrix.x4 copies"),
    ] {
        let error = &json_of(expression)["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(start), "{expression}: {message}");
    }
}

#[test]
fn bad_usage_exits_with_2() {
    for args in [
        &[][..],
        &["--stdin", "4:1"],
        &["--nonsense"],
        &["4:1", "8:1"],
    ] {
        assert_eq!(eval(args).status.code(), Some(2), "{args:?}");
    }
    let output = eval(&["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(error["error"]["code"], "usage");
}

#[test]
fn every_line_of_standard_input_gets_one_answer() {
    let output = with_input(&["--stdin"], b"4:1\n(4,\n\n\xff\xfe\nsize((4,8)):1");
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!((lines[0], lines[4]), ("4:1", "32:1"));
    assert!(
        lines[1].starts_with("error: syntax at 3..3: "),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("error: syntax at 0..0: "),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("error: not_utf8 at 0..3: "),
        "{}",
        lines[3]
    );

    let output = with_input(&["--stdin", "--json"], b"4:1(3)\nfoo(\n");
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0], json!({"kind": "int", "value": 3}));
    assert_eq!(lines[1]["error"]["code"], "unknown_name");
}

#[test]
fn a_hundred_thousand_lines_are_answered() {
    let line = "zipped_divide((8,(4,6)):(1,(8,40)), (4,(2,3))) o 5:1\n";
    let output = with_input(&["--stdin", "--json"], line.repeat(100_000).as_bytes());
    assert_eq!(text(&output.stdout).lines().count(), 100_000);
}

#[test]
fn hostile_lines_get_an_error_each() {
    let deep = "(".repeat(10_000) + "1" + &")".repeat(10_000);
    let long = "1+".repeat(5_000_000);
    let wide = format!("({}1)", "1,".repeat(10_000));
    let chain = format!("1{}", "+1".repeat(100_000));
    let signs = format!("{}1", "-".repeat(100_000));
    let doubling = format!("let a = (4:1,8:1); {}a", "let a = (a,a); ".repeat(60));
    let nesting = format!("let a = 4:1; {}a", "let a = (a,); ".repeat(1000));
    let input = [
        deep.as_str(),
        &long,
        &wide,
        &chain,
        &signs,
        "4:1",
        &doubling,
        &nesting,
    ]
    .join("\n");
    let output = with_input(&["--stdin"], input.as_bytes());
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 8);
    assert!(lines[0].starts_with("error: too_deep "), "{}", lines[0]);
    assert!(lines[1].starts_with("error: too_long "), "{}", lines[1]);
    assert!(
        lines[2].starts_with("error: too_many_modes "),
        "{}",
        lines[2]
    );
    assert_eq!(&lines[3..6], ["100001", "1", "4:1"]);
    assert!(
        lines[6].starts_with("error: too_many_modes "),
        "{}",
        lines[6]
    );
    assert!(lines[7].starts_with("error: too_deep "), "{}", lines[7]);
}

#[test]
fn each_line_is_answered_before_the_next_is_read() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["eval", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    // A coprocess: the second question depends on the first answer, so the pipe stays open.
    let mut ask = |question: &str| {
        writeln!(stdin, "{question}").unwrap();
        stdin.flush().unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    };
    let first = ask("(4,8):(8,1) o 4:1");
    assert_eq!(first, "4:8");
    assert_eq!(ask(&format!("cosize({first})")), "25");
    assert!(ask("(4,").starts_with("error: syntax"));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_is_printed_can_be_read_again() {
    for expression in [
        "12",
        "true",
        "(4,(2,2))",
        "slice((_,1), (4,8))",
        "(8,64):(2*ld+1,-n)",
        "((8,64):(ld,1))(3,_)",
        "Sw<3,3,3> o (8,64):(ld,1)",
        "Sw<3,4,3> o 16 o (8,64):(64,1)",
        "make_identity_layout((4,(2,3)))",
        "local_tile((4,8):(1@0,1@1),(2,2),(1,_))",
        "inverse(Sw<2,0,2> o (4,4):(4,1))",
        "inverse(Sw<2,0,1> o 16:1)",
        "left_inverse(Sw<2,0,2> o 3 o (4,4):(4,1))",
        "(3,4):(4,1) o (Sw<1,0,1> o 12:1)",
        "matrix(Sw<1,0,1> o 4:1)",
        "coordinates((2,(1,2)))",
        "<4:1, _>",
        "(4:1, 8:2)",
        "2*ld+3",
        "Sw<3,4,-3>",
    ] {
        let first = eval(&[expression]);
        assert!(first.status.success(), "{expression}");
        let printed = text(&first.stdout).trim_end().to_owned();
        let again = eval(&[&printed]);
        assert!(again.status.success(), "{expression}: {printed}");
        assert_eq!(text(&again.stdout).trim_end(), printed, "{expression}");
    }
}

#[test]
fn devices_are_json_too() {
    let shards = json_of("shards((2,(4,6)):(1@0,(2@0,1@1)), (7,6))");
    assert_eq!(shards["kind"], "shards");
    let second = json!({
        "device": 1, "rows": [[1, 2], [3, 4], [5, 6]], "row_runs": 3, "columns": [[0, 6]], "column_runs": 1, "elements": 18,
    });
    assert_eq!(shards["shards"][1], second);
    let moved = json_of("redistribute(terms((8,6),2), row_shards((8,6),2), 4)");
    assert_eq!(moved["kind"], "redistribution");
    assert_eq!(moved["movement"], "reduce-scatter");
    assert_eq!(moved["links"], json!([[0, 24], [24, 0]]));
    assert_eq!(
        (&moved["total"], &moved["total_bytes"]),
        (&json!(48), &json!(192))
    );
    assert_eq!(moved["from"]["sum"], true);
    let piece = &moved["pieces"][0];
    assert_eq!(
        (&piece["from"], &piece["to"], &piece["adds"]),
        (&json!(1), &json!(0), &json!(true))
    );
    assert_eq!(moved["certificate"].as_array().map(Vec::len), Some(3));
    // The text of a distribution reads back as the same value.
    for expression in [
        "row_shards((7,6),3)",
        "summed(replicas((7,6),3))",
        "grid_shards((7,6),(2,2))",
    ] {
        let first = json_of(expression);
        assert_eq!(first["kind"], "distribution");
        assert_eq!(json_of(first["text"].as_str().unwrap()), first);
    }
    for (expression, code) in [
        ("row_shards((8,6), 65)", "devices"),
        ("row_shards((0,6), 2)", "extents"),
        ("row_shards(8, 2)", "type_mismatch"),
        ("holders(row_shards((8,6), 2), (8,0))", "out_of_range"),
        (
            "redistribute(row_shards((8,6), 2), row_shards((8,6), 3))",
            "different_devices",
        ),
        (
            "redistribute(row_shards((8,6), 2), row_shards((8,6), 2), (8,7))",
            "different_extents",
        ),
        (
            "redistribute(row_shards((8,6), 2), terms((8,6), 2))",
            "new_terms",
        ),
        ("redistribute(row_shards((8,6), 2))", "wrong_arguments"),
        ("shards(shards(row_shards((8,6), 2)))", "type_mismatch"),
    ] {
        assert_eq!(json_of(expression)["error"]["code"], code, "{expression}");
    }
}
