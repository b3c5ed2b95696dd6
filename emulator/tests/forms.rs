//! The table of all instruction forms of `sm_90`: `fixtures/forms_sm_90.txt` has the forms of the ISA's sections as templates, the decoder says of each whether it
//! runs, and `docs/emulator-instructions.md` shows it (`TILEWRIGHT_UPDATE=1` writes its tables anew). The assembler must take all of them.
//!
//! A template is a statement with variables, `add.$t @t, @t, @t; t=u16,u32`: `$t` is a value, `@t` the register for a type of that name.

// PTX is put together piece by piece.
#![allow(clippy::format_push_string)]

mod common;

use common::{assembles, generated};
use ptx_emulator::{Module, ParseError};

const REGISTERS: &str = "
.reg .pred p, q; .reg .b8 b8; .reg .u8 u8; .reg .s8 s8; .reg .b16 b16, c16; .reg .u16 u16; .reg .s16 s16; .reg .b16 f16, bf16;
.reg .b32 f16x2, bf16x2, u16x2, s16x2; .reg .b32 b32, c32, d32, e32, g32, h32; .reg .u32 u32; .reg .s32 s32; .reg .f32 f32, f1, f2, f3, f4, f5, f6, f7;
.reg .b64 b64, c64; .reg .u64 u64; .reg .s64 s64; .reg .f64 f64, f1d, f2d, f3d; .reg .b128 b128;
";

struct Form {
    section: String,
    /// The template as the page shows it.
    shown: String,
    /// A statement for each choice of values, with the choice.
    statements: Vec<(String, String)>,
}

fn forms() -> Vec<Form> {
    let mut section = String::new();
    let mut all = Vec::new();
    for line in include_str!("fixtures/forms_sm_90.txt").lines() {
        if let Some(title) = line.strip_prefix("# ") {
            title.clone_into(&mut section);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let mut parts = line.split("; ");
        let template = parts.next().expect("a template");
        let mut shown = template.to_owned();
        let mut statements = vec![(template.to_owned(), String::new())];
        for variable in parts {
            let (name, values) = variable.split_once('=').expect("values of a variable");
            let values: Vec<&str> = values.split(',').collect();
            let list = format!("‹{}›", values.join(" "));
            shown = shown.replace(&format!("${name}"), &list);
            shown = shown.replace(&format!("@{name}"), name);
            statements = statements
                .iter()
                .flat_map(|(statement, choice)| {
                    values.iter().map(move |value| {
                        let register = if *value == "pred" { "p" } else { value };
                        let statement = statement.replace(&format!("${name}"), value);
                        let statement = statement.replace(&format!("@{name}"), register);
                        (statement, format!("{choice} {value}"))
                    })
                })
                .collect();
        }
        all.push(Form {
            section: section.clone(),
            shown,
            statements,
        });
    }
    all
}

/// A module whose kernel has `statement`.
fn module(name: &str, statements: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 out) .maxntid 128, 1, 1 .minnctapersm 1\n{{{REGISTERS}{statements}\nbra L;\nL: ret;\n}}\n"
    )
}

const HEAD: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n.func f { ret; }\n";

/// What the emulator says of one statement: nothing if it runs.
fn refusal(statement: &str) -> Option<ParseError> {
    let table = if statement.starts_with("brx") {
        "TABLE: .branchtargets L;\n"
    } else {
        ""
    };
    let text = format!("{HEAD}{}", module("k", &format!("{table}{statement};")));
    match Module::parse(&text) {
        Ok(module) => module.missing().first().cloned(),
        Err(error) => Some(error),
    }
}

/// The number of forms, and a table for each section of the ISA.
fn tables() -> String {
    let mut tables = String::new();
    let mut section = String::new();
    let (mut forms_in_all, mut statements, mut run) = (0, 0, 0);
    for form in forms() {
        if form.section != section {
            tables += &format!("\n## {}\n\n| form | |\n|---|---|\n", form.section);
            section.clone_from(&form.section);
        }
        let refused: Vec<(&str, String)> = form
            .statements
            .iter()
            .filter_map(|(s, choice)| Some((choice.as_str(), refusal(s)?.kind.to_string())))
            .collect();
        forms_in_all += 1;
        statements += form.statements.len();
        run += form.statements.len() - refused.len();
        let outcome = match refused.as_slice() {
            [] => "runs".to_owned(),
            all if all.len() == form.statements.len() => all[0].1.clone(),
            some => {
                let which: Vec<&str> = some.iter().map(|(c, _)| c.trim()).collect();
                format!("runs, except {}: {}", which.join(", "), some[0].1)
            }
        };
        let shown = form.shown.replace('|', "\\|");
        let outcome = outcome.replace('|', "\\|");
        tables += &format!("| `{shown}` | {outcome} |\n");
    }
    format!(
        "{forms_in_all} forms, {statements} statements with all choices, of which {run} run.\n{tables}"
    )
}

#[test]
fn the_page_is_what_the_decoder_says() {
    generated::parts("emulator-instructions.md", &[("forms", tables())]);
}

/// Textures need declarations of their own; what is not PTX would be refused here.
#[test]
fn the_assembler_takes_every_form() {
    let mut text = HEAD.to_owned();
    for (number, form) in forms().iter().enumerate() {
        if form.section.starts_with("Textures") {
            continue;
        }
        let mut body = String::new();
        for (statement, _) in &form.statements {
            if statement.starts_with("brx") {
                body += "TABLE: .branchtargets L;\n";
            }
            body += statement;
            body += ";\n";
        }
        text += &module(&format!("k{number}"), &body);
    }
    assembles("forms", &text);
}
