//! The page in the browser: questions as JSON, answers as JSON.
//!
//! `cargo xtask page` compiles this crate to WebAssembly and puts it with `web/page/` into one file, `target/page/index.html`, which needs no
//! network. The page asks with [`ask`] what the command asks with its subcommands, and the same workbench answers:
//!
//! ```
//! let answer = tilewright_web::ask(r#"{"ask":"layout","layout":"(4,8):(8,1)"}"#);
//! assert!(answer.contains(r#""text":"(4,8):(8,1)""#) && answer.contains("<svg"));
//! let refused = tilewright_web::ask(r#"{"ask":"layout","layout":"(4,8):(8,"}"#);
//! assert!(refused.contains(r#""code":"syntax""#) && refused.contains(r#""span":["#));
//! ```
//!
//! An answer is the value, or `{"error":{"code":…,"message":…,"span":…,"shown":…}}`. Between JavaScript and this module there are three functions of
//! numbers, in [`exports`], and no glue that another tool would have to generate.

mod arguments;
mod derivation;
pub mod exports;
mod layout;
mod product;

use serde_json::{Value, json};
use tilewright_workbench::picture::{self, AtomQuestion};
use tilewright_workbench::{Refusal, index_code};

use arguments::Arguments;

/// The answer to a question, both JSON.
///
/// | `ask` | besides | answer |
/// |---|---|---|
/// | `layout` | `layout`, `elem`, `access`, `banks`, `before`, `rows`, `cols` | `text`, `picture`, `properties`, `summary` |
/// | `code` | `layout`, `target` | `code` |
/// | `derive` | `tile`, `elem`, `accesses`, `family` | what `derive --json` prints, with `summary` and a picture for each access |
/// | `atoms` | | all names |
/// | `atom` | `name`, `operand` | `picture`, `summary` |
/// | `plans` | | name, type, architecture and tile of each |
/// | `plan` | `plan`, `trans` | its layouts, proofs, shared accesses and PTX |
/// | `run` | `plan`, `trans`, `m`, `n`, `k`, `seed` | the check against float64, findings, counted against proven |
#[must_use]
pub fn ask(question: &str) -> String {
    let answer = serde_json::from_str(question)
        .map_err(|error| Refusal::usage("json", error.to_string()))
        .and_then(|question: Value| answer(&Arguments(&question)));
    answer
        .unwrap_or_else(|refusal| refused(&refusal))
        .to_string()
}

/// A refusal for the page, with the message as the command shows it: the place underlined.
fn refused(refusal: &Refusal) -> Value {
    let mut value = refusal.to_json();
    value["error"]["shown"] = json!(refusal.text());
    value
}

fn answer(question: &Arguments) -> Result<Value, Refusal> {
    match question.text("ask")? {
        "layout" => layout::answer(question),
        "code" => code(question),
        "derive" => derivation::answer(question),
        "atoms" => Ok(json!({"atoms": picture::atoms()})),
        "atom" => atom(question),
        "plans" => Ok(product::plans()),
        "plan" => product::plan(question),
        "run" => product::run(question),
        other => Err(Refusal::usage(
            "unknown_question",
            format!("there is no question `{other}` here"),
        )),
    }
}

/// The index function of a layout.
fn code(question: &Arguments) -> Result<Value, Refusal> {
    let name = question.text("target")?;
    let target = index_code::Target::named(name).ok_or_else(|| {
        let known: Vec<&str> = index_code::Target::ALL.iter().map(|t| t.name()).collect();
        let message = format!(
            "no target is called `{name}`; there are {}",
            known.join(", ")
        );
        Refusal::usage("unknown_target", message)
    })?;
    index_code::Question::of(question.text("layout")?, target).to_json()
}

/// The thread-value map of an instruction.
fn atom(question: &Arguments) -> Result<Value, Refusal> {
    let scene = AtomQuestion {
        operand: question.optional("operand")?,
        ..AtomQuestion::of(question.text("name")?)
    }
    .scene()?;
    Ok(json!({"picture": scene.shadow(), "summary": scene.summary()}))
}
