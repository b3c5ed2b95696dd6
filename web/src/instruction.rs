//! The thread-value map of an instruction, operand by operand.

use serde_json::{Value, json};
use tilewright_workbench::Refusal;
use tilewright_workbench::picture::{AtomQuestion, atoms};

use crate::arguments::Arguments;

/// All names.
pub(crate) fn names() -> Value {
    json!({"atoms": atoms()})
}

pub(crate) fn answer(question: &Arguments) -> Result<Value, Refusal> {
    let scene = AtomQuestion {
        operand: question.optional("operand")?,
        ..AtomQuestion::of(question.text("name")?)
    }
    .scene()?;
    Ok(json!({"picture": scene.shadow(), "summary": scene.summary()}))
}
