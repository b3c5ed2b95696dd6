//! A profiler's report beside the model: tables in the forms that ncu writes, what is wrong with others, what to fix.

use tilewright_workbench::ncu::{Model, Question};

const HEADER: &str = "\"#\",\"Address\",\"Source\",\"Warp Stall Sampling (All Samples)\",\"Instructions Executed\",\"Address Space\",\"Access Operation\",\"Access Size\",\"L1 Wavefronts Shared\",\"L1 Wavefronts Shared Excessive\",\"L1 Wavefronts Shared Ideal\"";

/// A row of the source page.
fn row(number: u32, text: &str, executed: &str, wavefronts: &str, ideal: &str) -> String {
    format!(
        "\"{number}\",\"0x7f{number:04}0\",\"{text}\",\"7\",\"{executed}\",\"Shared\",\"Load\",\"32\",\"{wavefronts}\",\"0\",\"{ideal}\"\n"
    )
}

fn report() -> String {
    [
        "==PROF== Connected to process 1\n==PROF== Disconnected\n".to_owned(),
        "\"Kernel Name\",\"void transpose<int, 3>(float *, \"\"x\"\")\"\n".to_owned(),
        format!("{HEADER}\n"),
        row(1, "      MOV R1, c[0x0][0x28]", "32,768", "0", "0"),
        row(12, "      STS [R7], R5 ;", "32,768", "32,768", "32,768"),
        row(20, "@!P0 LDS R4, [R3]", "32,768", "1,048,576", "32,768"),
        row(21, "      LDS R9, [R8]", "32,768", "32,768", "32,768"),
        "\"Kernel Name\",\"wide\"\n".to_owned(),
        format!("{HEADER}\n"),
        row(5, "      LDS.128 R4, [R3]", "100", "800", "400"),
    ]
    .concat()
}

fn transpose() -> Model<'static> {
    Model {
        tile: Some("32x32"),
        layout: None,
        elem: "f32",
        accesses: vec!["st.32 @ 32:1", "ld.32 @ 32:32"],
    }
}

#[test]
fn the_access_to_fix_is_named_with_its_layout() {
    let report = report();
    let answer = Question {
        report: &report,
        model: Some(transpose()),
    }
    .answer()
    .expect("a report");
    let json = answer.to_json();
    assert_eq!(
        json["kernels"][0]["kernel"],
        "void transpose<int, 3>(float *, \"x\")"
    );
    let lines = json["kernels"][0]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 3, "{json}");
    assert_eq!(lines[0]["op"], "st.32");
    assert_eq!(lines[0]["model"]["agrees"], true);
    assert_eq!(lines[1]["wavefronts_each"], 32.0);
    assert_eq!(lines[1]["model"]["access"], "ld.32 @ 32:32");
    assert_eq!(lines[1]["model"]["agrees"], true);
    // The padded tile's load is none of the accesses to this tile.
    assert!(lines[2]["model"].is_null(), "{json}");
    assert_eq!(json["kernels"][1]["lines"][0]["ideal_each"], 4.0);
    assert_eq!(json["fix"]["line"], "20");
    assert_eq!(json["fix"]["layout"], "Sw<5,0,5> o (32,32):(32,1)");
    assert_eq!(json["fix"]["wavefronts"], 1);
    let text = answer.text();
    assert!(
        text.contains("32 each where 1 would do  <- fix first"),
        "{text}"
    );
    assert!(
        text.contains("with Sw<5,0,5> o (32,32):(32,1) it takes 1"),
        "{text}"
    );
}

#[test]
fn without_a_tile_the_next_question_is_named() {
    let report = report();
    let question = Question {
        report: &report,
        model: None,
    };
    let text = question.answer().expect("a report").text();
    assert!(
        text.ends_with("--tile ROWSxCOLUMNS --elem TYPE --access 'ld.32 @ LAYOUT' for each access"),
        "{text}"
    );
}

#[test]
fn an_access_that_takes_another_number_is_doubted() {
    let report = format!("{HEADER}\n{}", row(3, "LDS R0, [R1]", "10", "160", "10"));
    let answer = Question {
        report: &report,
        model: Some(transpose()),
    }
    .answer()
    .expect("a report");
    let line = &answer.to_json()["kernels"][0]["lines"][0];
    assert_eq!(line["model"]["agrees"], false);
    assert_eq!(line["model"]["wavefronts"], 32);
    assert!(
        answer
            .text()
            .contains("is it this access, and this layout?")
    );
}

#[test]
fn counters_of_whole_kernels_show_what_other_traffic_adds() {
    // The raw page: names, units, one row a kernel.
    let raw = "\"ID\",\"Kernel Name\",\"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum\",\"derived__memory_l1_wavefronts_shared_excessive\",\"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum\"\n\
               \"\",\"\",\"\",\"\",\"\"\n\
               \"0\",\"gemm\",\"1,637\",\"0\",\"4,228,709\"\n";
    let answer = Question {
        report: raw,
        model: None,
    }
    .answer()
    .expect("a report");
    let json = answer.to_json();
    assert_eq!(json["kernels"][0]["other_traffic"], 1637.0);
    assert_eq!(json["kernels"][0]["wavefronts"], 4_228_709.0);
    assert!(
        answer.text().contains("0 of them are excessive wavefronts of this kernel's addresses, 1,637 come from other traffic"),
        "{}", answer.text()
    );
    assert!(json["fix"].is_null());
    // `ncu --csv --metrics …`: one metric a row.
    let metrics = "==PROF== Connected\n\
        \"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\
        \"0\",\"a\",\"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum\",\"\",\"31\"\n\
        \"0\",\"a\",\"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum\",\"\",\"32\"\n\
        \"1\",\"b\",\"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum\",\"\",\"1.048.576\"\n";
    let json = Question {
        report: metrics,
        model: None,
    }
    .answer()
    .expect("a report")
    .to_json();
    assert_eq!(json["kernels"][0]["conflicts"], 31.0);
    assert_eq!(json["kernels"][1]["wavefronts"], 1_048_576.0);
}

#[test]
fn other_files_are_refused_with_what_is_expected() {
    let whole = report();
    let cut = &whole[..whole.len() - 30];
    let number = whole.replace("1,048,576", "many");
    for (text, part) in [
        ("", "--page source --csv"),
        ("a,b\n1,2\n", "--page source --csv"),
        (cut, "line "),
        (number.as_str(), "L1 Wavefronts Shared is \"many\""),
        ("\"#\",\"Source", "a quote does not end"),
        (
            "\"Kernel Name\",\"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum\"\n\"k\",\"x1\"\n",
            "a number is expected",
        ),
    ] {
        let error = Question {
            report: text,
            model: None,
        }
        .answer()
        .expect_err(part);
        assert_eq!(error.code(), "ncu_report");
        assert!(error.message().contains(part), "{}", error.message());
    }
    let model = Model {
        tile: None,
        layout: None,
        elem: "f32",
        accesses: vec![],
    };
    let error = Question {
        report: &whole,
        model: Some(model),
    }
    .answer()
    .expect_err("no tile");
    assert_eq!(error.code(), "tile");
}

#[test]
fn any_text_is_read_or_refused() {
    // Every cut of a report, and every byte of one replaced: an answer or a refusal.
    let whole = report();
    for end in (0..whole.len()).filter(|&i| whole.is_char_boundary(i)) {
        let _ = Question {
            report: &whole[..end],
            model: None,
        }
        .answer();
    }
    for i in 0..whole.len() {
        for c in ["\"", ",", "\n", "9"] {
            let changed = format!("{}{c}{}", &whole[..i], &whole[i + 1..]);
            let _ = Question {
                report: &changed,
                model: None,
            }
            .answer();
        }
    }
}
