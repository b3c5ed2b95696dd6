//! A profiler's report beside the model: tables in the forms that ncu writes, what is wrong with others, what to fix.

use tilewright_workbench::ncu::{Model, Question};

/// Reports of `sample.cu` on an H100 by Nsight Compute 2025.3, cut to the lines that matter: every page in which they can be read.
const SASS: &str = include_str!("sass.csv");
const SOURCE_AND_SASS: &str = include_str!("source-and-sass.csv");
const RAW: &str = include_str!("raw.csv");

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
        kernel: None,
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
        kernel: None,
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
        kernel: None,
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
        kernel: None,
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
        kernel: None,
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
            kernel: None,
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
        kernel: None,
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
            kernel: None,
        }
        .answer();
    }
    for i in 0..whole.len() {
        for c in ["\"", ",", "\n", "9"] {
            let changed = format!("{}{c}{}", &whole[..i], &whole[i + 1..]);
            let _ = Question {
                report: &changed,
                model: None,
                kernel: None,
            }
            .answer();
        }
    }
}

/// What `sample.cu` says of its accesses, in order: wavefronts and ideal of one execution.
const KNOWN: [(&str, f64, f64); 8] = [
    ("st.32", 1.0, 1.0),
    ("st.32", 1.0, 1.0),
    ("ld.32", 32.0, 1.0),
    ("ld.32", 1.0, 1.0),
    ("st.128", 4.0, 4.0),
    ("ld.128", 8.0, 4.0),
    ("ld.32", 32.0, 1.0),
    ("ld.32", 32.0, 1.0),
];

#[test]
fn real_reports_say_what_the_program_does() {
    for report in [SASS, SOURCE_AND_SASS] {
        let question = Question {
            report,
            model: Some(transpose()),
            kernel: None,
        };
        let json = question.answer().expect("a report").to_json();
        let kernels = json["kernels"].as_array().expect("kernels");
        assert_eq!(
            kernels.len(),
            2,
            "a table that is there twice is one kernel"
        );
        assert_eq!(kernels[0]["kernel"], "conflicts(float *, const float *)");
        let lines = kernels
            .iter()
            .flat_map(|k| k["lines"].as_array().expect("lines"));
        let found: Vec<_> = lines
            .map(|l| {
                (
                    l["op"].as_str(),
                    l["wavefronts_each"].as_f64(),
                    l["ideal_each"].as_f64(),
                )
            })
            .collect();
        let known: Vec<_> = KNOWN
            .iter()
            .map(|&(op, n, ideal)| (Some(op), Some(n), Some(ideal)))
            .collect();
        assert_eq!(found, known);
        // The model counts the column as the hardware's report does, and mends it.
        assert_eq!(kernels[0]["lines"][2]["model"]["agrees"], true);
        assert_eq!(json["fix"]["layout"], "Sw<5,0,5> o (32,32):(32,1)");
    }
    // In a report with source code a line is the line of the program.
    let question = Question {
        report: SOURCE_AND_SASS,
        model: None,
        kernel: Some("conflicts"),
    };
    let json = question.answer().expect("a report").to_json();
    assert_eq!(json["kernels"].as_array().map(Vec::len), Some(1));
    let line: usize = json["fix"]["line"]
        .as_str()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    let source = include_str!("sample.cu")
        .lines()
        .nth(line - 1)
        .expect("a line");
    assert!(source.contains("column: 32"), "{source}");
    let nobody = Question {
        report: SASS,
        model: None,
        kernel: Some("gemm"),
    };
    let error = nobody.answer().expect_err("no such kernel");
    assert!(
        error
            .message()
            .contains("conflicts(float *, const float *)"),
        "{}",
        error.message()
    );
}

#[test]
fn a_real_raw_page_separates_other_traffic() {
    let json = Question {
        report: RAW,
        model: None,
        kernel: None,
    }
    .answer()
    .expect("a report")
    .to_json();
    let kernels = json["kernels"].as_array().expect("kernels");
    assert_eq!(kernels[0]["excessive"], 31.0 * 32_768.0);
    assert_eq!(kernels[0]["other_traffic"], 1747.0);
    assert_eq!(kernels[1]["other_traffic"], 0.0);
}
