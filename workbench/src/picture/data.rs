//! A picture as JSON: the cells with what they hold, and what the access costs.
//!
//! ```text
//! {"kind":"layout","text":"Sw<3,3,3> o (64,64):(64,1)","elem_bytes":2,"notes":[…],
//!  "panels":[{"role":"before",…},
//!            {"role":"layout","layout":"…","rows":{"first":0,"count":64,"all":64},"cols":{…},"clipped":false,
//!             "cells":[{"row":0,"col":0,"offset":0,"bank":0,"lane":0,"lanes":[0],"phase":0,"offends":false},…],
//!             "access":{"op":"ldmatrix.x4","wavefronts":4,"ideal":4,"phases":[…]}}]}
//! ```
//!
//! The last panel of a layout is the layout itself. `lane` is the first lane that touches the cell, `null` if none does. Cells of an
//! atom have `thread`, `value` and `register` instead; those of a matrix over devices have `devices`, and the panel says in `unit` how many
//! rows and columns a cell stands for.

use serde_json::{Value, json};

use super::scene::{Cost, Kind, Panel, Scene, Span};

/// The whole picture.
pub(crate) fn to_json(scene: &Scene) -> Value {
    let panels: Vec<Value> = scene
        .panels
        .iter()
        .map(|panel| panel_json(panel, scene.kind))
        .collect();
    let mut value = json!({
        "kind": scene.kind.name(),
        "text": scene.heading,
        "facts": scene.facts,
        "notes": scene.notes,
        "panels": panels,
    });
    if scene.kind == Kind::Layout {
        value["elem_bytes"] = json!(scene.elem_bytes);
    }
    value
}

fn span_json(span: Span) -> Value {
    json!({"first": span.first, "count": span.count, "all": span.all})
}

fn panel_json(panel: &Panel, kind: Kind) -> Value {
    let mut cells = Vec::with_capacity(panel.cells.len());
    for (i, row) in panel.rows.indices().enumerate() {
        for (j, col) in panel.cols.indices().enumerate() {
            let Some(cell) = panel.cell(i, j) else {
                continue;
            };
            let block = panel.block_at(i, j);
            let lane = block.and_then(|block| block.lanes.first());
            cells.push(match kind {
                Kind::Layout => json!({
                    "row": row,
                    "col": col,
                    "offset": cell.offset,
                    "bank": cell.bank,
                    "lane": lane,
                    "lanes": block.map_or(&[][..], |block| &block.lanes),
                    "phase": block.and_then(|block| block.phase),
                    "offends": block.is_some_and(|block| block.offends),
                }),
                // The first element of the cell, and what holds the cell.
                Kind::Devices => json!({
                    "row": row * panel.axes[0].scale,
                    "col": col * panel.axes[1].scale,
                    "devices": block.map_or(&[][..], |block| &block.lanes),
                }),
                Kind::Atom => json!({
                    "row": row,
                    "col": col,
                    "element": cell.offset,
                    "thread": lane,
                    "value": block.and_then(|block| block.value).map(|value| value.0),
                    "register": block.and_then(|block| block.value).map(|value| value.1),
                }),
            });
        }
    }
    let mut value = json!({
        "role": panel.role,
        "title": panel.title,
        "layout": panel.layout,
        "rows": span_json(panel.rows),
        "cols": span_json(panel.cols),
        "clipped": panel.rows.is_clipped() || panel.cols.is_clipped(),
        "cells": cells,
    });
    if kind == Kind::Devices {
        value["unit"] = json!([panel.axes[0].scale, panel.axes[1].scale]);
        value["verdict"] = json!(panel.verdict);
    }
    if kind == Kind::Layout {
        value["access"] = panel.cost.as_ref().map_or(Value::Null, cost_json);
    }
    value
}

/// What an access costs, phase by phase.
pub(crate) fn cost_json(cost: &Cost) -> Value {
    let phases: Vec<Value> = cost
        .phases
        .iter()
        .map(|phase| {
            let words: Vec<Value> = phase
                .words
                .iter()
                .map(|word| {
                    json!({
                        "word": word.number,
                        "lanes": word.lanes,
                        "row": word.at.0,
                        "col": word.at.1,
                    })
                })
                .collect();
            json!({
                "phase": phase.number,
                "lanes": phase.lanes,
                "wavefronts": phase.wavefronts,
                "ideal": phase.ideal,
                "bank": phase.bank,
                "words": words,
                "text": phase.sentence,
            })
        })
        .collect();
    json!({
        "op": cost.op,
        "wavefronts": cost.wavefronts,
        "ideal": cost.ideal,
        "phases": phases,
    })
}
