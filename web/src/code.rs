//! The index function of a layout.

use serde_json::Value;
use tilewright_workbench::Refusal;
use tilewright_workbench::index_code::{Question, Target};

use crate::arguments::Arguments;

pub(crate) fn answer(question: &Arguments) -> Result<Value, Refusal> {
    let name = question.text("target")?;
    let target = Target::named(name).ok_or_else(|| {
        let known: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
        let message = format!(
            "no target is called `{name}`; there are {}",
            known.join(", ")
        );
        Refusal::usage("unknown_target", message)
    })?;
    Question::of(question.text("layout")?, target).to_json()
}
