//! Accesses to a tile: the best layout with its certificate, and each access before and after, phase by phase.

use serde_json::{Value, json};
use tilewright_workbench::Refusal;
use tilewright_workbench::derivation;
use tilewright_workbench::picture::{self, Before};

use crate::arguments::Arguments;

pub(crate) fn answer(question: &Arguments) -> Result<Value, Refusal> {
    let elem = question.text("elem")?;
    let accesses: Vec<&str> = question
        .text("accesses")?
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let found = derivation::Question {
        tile: question.text("tile")?,
        elem,
        accesses: accesses.clone(),
        family: question.optional("family")?.unwrap_or("any"),
    }
    .answer()?;
    let mut answer = found.to_json();
    answer["summary"] = json!(found.text());
    let pictures = match answer["layout"].as_str() {
        Some(layout) => accesses
            .iter()
            .map(|access| drawn(layout, elem, access))
            .collect::<Result<Vec<_>, _>>()?,
        // A general F2 map is no layout that can be drawn.
        None => Vec::new(),
    };
    answer["pictures"] = json!(pictures);
    Ok(answer)
}

/// One access to the row-major tile and to the layout found.
fn drawn(layout: &str, elem: &str, access: &str) -> Result<Value, Refusal> {
    let scene = picture::Question {
        access: Some(access),
        elem: Some(elem),
        before: Before::RowMajor,
        ..picture::Question::of(layout)
    }
    .scene()?;
    Ok(json!({"access": access, "picture": scene.shadow()}))
}
