//! The page in the browser: questions as JSON, answers as JSON.
//!
//! `cargo xtask page` compiles this crate to WebAssembly, twice, and both modules become part of `target/page/index.html`. That of the feature
//! `layouts` draws the first picture; that of the feature `kernels` has the code generator and the emulator, is twice as large, and starts
//! when a kernel is asked for. The page asks with [`ask`] what the command asks with its subcommands, and the same workbench answers:
//!
//! ```
//! # #[cfg(feature = "layouts")] {
//! let answer = tilewright_web::ask(r#"{"ask":"layout","layout":"(4,8):(8,1)"}"#);
//! assert!(answer.contains(r#""text":"(4,8):(8,1)""#) && answer.contains("<svg"));
//! let refused = tilewright_web::ask(r#"{"ask":"layout","layout":"(4,8):(8,"}"#);
//! assert!(refused.contains(r#""code":"syntax""#) && refused.contains(r#""span":["#));
//! # }
//! ```
//!
//! An answer is the value, or `{"error":{"code":…,"message":…,"span":…,"shown":…}}`. Between JavaScript and this module there are three functions of
//! numbers, in [`exports`], and no glue that another tool would have to generate.

mod arguments;
#[cfg(feature = "layouts")]
mod code;
#[cfg(feature = "layouts")]
mod derivation;
pub mod exports;
#[cfg(feature = "layouts")]
mod instruction;
#[cfg(feature = "layouts")]
mod layout;
#[cfg(feature = "kernels")]
mod product;

use serde_json::{Value, json};
use tilewright_workbench::Refusal;

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

/// The questions of the features that this module was compiled with.
fn answer(question: &Arguments) -> Result<Value, Refusal> {
    match question.text("ask")? {
        #[cfg(feature = "layouts")]
        "layout" => layout::answer(question),
        #[cfg(feature = "layouts")]
        "code" => code::answer(question),
        #[cfg(feature = "layouts")]
        "derive" => derivation::answer(question),
        #[cfg(feature = "layouts")]
        "atoms" => Ok(instruction::names()),
        #[cfg(feature = "layouts")]
        "atom" => instruction::answer(question),
        #[cfg(feature = "kernels")]
        "plans" => Ok(product::plans()),
        #[cfg(feature = "kernels")]
        "plan" => product::plan(question),
        #[cfg(feature = "kernels")]
        "run" => product::run(question),
        other => Err(Refusal::usage(
            "unknown_question",
            format!("there is no question `{other}` here"),
        )),
    }
}
