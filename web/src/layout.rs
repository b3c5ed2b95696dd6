//! A layout or any other expression: its value, its picture, its properties.

use serde_json::{Value, json};
use tilewright_workbench::picture::{Before, Question};
use tilewright_workbench::{Refusal, evaluate};

use crate::arguments::Arguments;

/// The functions of the calculator whose values are a layout's properties, with what to call them.
const PROPERTIES: [(&str, &str); 10] = [
    ("size", "size"),
    ("cosize", "cosize"),
    ("rank", "rank"),
    ("is_injective", "injective"),
    ("is_bijective", "bijective"),
    ("coalesce", "coalesced"),
    ("complement", "complement"),
    ("right_inverse", "right inverse"),
    ("left_inverse", "left inverse"),
    ("matrix", "F2 matrix"),
];

/// The most letters of a property that are sent: an F2 matrix of a large layout is long.
const MOST_LETTERS: usize = 400;

pub(crate) fn answer(question: &Arguments) -> Result<Value, Refusal> {
    let text = question.text("layout")?;
    let value = evaluate(text)?;
    let mut answer = value.to_json();
    answer["text"] = json!(value.to_string());
    // An integer, a coordinate or a truth value is its own answer.
    if answer["kind"] != "layout" {
        return Ok(answer);
    }
    let scene = Question {
        access: question.optional("access")?,
        elem: question.optional("elem")?,
        banks: question.is_on("banks"),
        before: before(question.optional("before")?)?,
        rows: question.optional("rows")?,
        cols: question.optional("cols")?,
        ..Question::of(text)
    }
    .scene()?;
    let layout = value.to_string();
    // What a function refuses is not a property of the layout.
    let properties: Vec<Value> = PROPERTIES
        .iter()
        .filter_map(|(function, name)| {
            let value = evaluate(&format!("{function}({layout})")).ok()?.to_string();
            (value.len() <= MOST_LETTERS).then(|| json!([name, value]))
        })
        .collect();
    answer["properties"] = json!(properties);
    answer["picture"] = json!(scene.shadow());
    answer["summary"] = json!(scene.summary());
    Ok(answer)
}

/// What the picture is compared with, by its name in the command.
fn before(name: Option<&str>) -> Result<Before, Refusal> {
    match name {
        None | Some("auto") => Ok(Before::Auto),
        Some("row-major") => Ok(Before::RowMajor),
        Some("unswizzled") => Ok(Before::Unswizzled),
        Some("none") => Ok(Before::None),
        Some(other) => Err(Refusal::usage(
            "before",
            format!("`{other}` is not auto, row-major, unswizzled or none"),
        )),
    }
}
