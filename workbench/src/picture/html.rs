//! Pictures as one page: the drawings of [`super::svg`], their data, and a script for pointer, phase and before/after.
//!
//! The page loads nothing (its policy forbids it) and works from a file. Whatever comes from the arguments is text that the parsers
//! printed again, and is escaped all the same: for HTML in the body, `<` as `\u003c` in the data.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::canvas::escape;
use super::palette::{hex, phase_rgb};
use super::scene::{Axis, Kind, Panel, Scene, Span};
use super::svg::{Frame, drawing_notes, legend_svg, panel_svg, sizes, style};

const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// The page.
pub(crate) fn page(scene: &Scene) -> String {
    let heading = escape(&scene.heading);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{heading}</title>\n<style>\n{CSS}{}\n</style>\n</head>\n<body>\n{}\
         <script>\n{JS}attachPicture(document);\n</script>\n</body>\n</html>\n",
        style(&sizes(scene)),
        body(scene),
    )
}

/// The picture for the shadow root of another page: its style and its body, for which that page calls `attachPicture`.
pub(crate) fn shadow(scene: &Scene) -> String {
    format!(
        "<style>\n{CSS}{}\n</style>\n{}",
        style(&sizes(scene)),
        body(scene)
    )
}

/// What stands in the page: heading, controls, panels, legend, notes and the script's data.
fn body(scene: &Scene) -> String {
    let drawn: Vec<(String, Frame)> = (0..scene.panels.len())
        .map(|number| panel_svg(scene, number))
        .collect();
    let mut body = String::new();
    // Writing to a String never fails.
    let _ = writeln!(body, "<h1>{}</h1>", escape(&scene.heading));
    for fact in &scene.facts {
        let _ = writeln!(body, "<p>{}</p>", escape(fact));
    }
    body.push_str(&controls(scene));
    // Operands stand where the instruction puts them; before and after, side by side where there is room.
    let grid = scene.kind == Kind::Atom;
    let class = if grid { " class=\"grid\"" } else { "" };
    let _ = writeln!(body, "<main{class}>");
    for (number, (svg, _)) in drawn.iter().enumerate() {
        let panel = &scene.panels[number];
        let place = if grid {
            let (row, col) = panel.place;
            format!(" style=\"grid-area:{}/{}\"", row + 1, col + 1)
        } else {
            String::new()
        };
        let _ = writeln!(
            body,
            "<figure data-panel=\"{number}\"{place}><div class=\"wide\">{svg}</div>{}</figure>",
            caption(panel)
        );
    }
    body.push_str("</main>\n");
    let _ = writeln!(
        body,
        "<div id=\"legend\">{}</div>",
        legend_svg(scene, 1000.0)
    );
    for note in scene.notes.iter().chain(&drawing_notes(scene)) {
        let _ = writeln!(body, "<p>{}</p>", escape(note));
    }
    let frames: Vec<Frame> = drawn.iter().map(|(_, frame)| *frame).collect();
    let _ = writeln!(
        body,
        "<div id=\"tip\" role=\"status\" hidden></div>\n<script type=\"application/json\" id=\"data\">{}</script>",
        data(scene, &frames).to_string().replace('<', "\\u003c"),
    );
    body
}

/// The numbers of the phases that some panel has.
fn phases(scene: &Scene) -> Vec<u32> {
    let mut phases: Vec<u32> = scene
        .panels
        .iter()
        .filter_map(|panel| panel.cost.as_ref())
        .flat_map(|cost| cost.phases.iter().map(|phase| phase.number))
        .collect();
    phases.sort_unstable();
    phases.dedup();
    phases
}

fn controls(scene: &Scene) -> String {
    let mut out = String::new();
    if scene.kind == Kind::Layout && scene.panels.len() > 1 {
        out.push_str("<fieldset><legend>Show</legend>");
        for (value, text) in [("both", "both"), ("before", "before"), ("layout", "after")] {
            let checked = if value == "both" { " checked" } else { "" };
            let _ = write!(
                out,
                "<label><input type=\"radio\" name=\"panels\" value=\"{value}\"{checked}>{text}</label>"
            );
        }
        out.push_str("</fieldset>\n");
    }
    let phases = phases(scene);
    if !phases.is_empty() {
        out.push_str("<label><b>Phase</b> <select id=\"phase\" autocomplete=\"off\"><option value=\"-1\">all</option>");
        for phase in phases {
            let _ = write!(out, "<option value=\"{phase}\">{phase}</option>");
        }
        out.push_str("</select></label>\n");
    }
    if out.is_empty() {
        return out;
    }
    format!("<form autocomplete=\"off\">\n{out}</form>\n")
}

/// What stands below a panel: its cost, and a sentence for each phase.
fn caption(panel: &Panel) -> String {
    let Some((first, rest)) = panel.verdict.split_first() else {
        return String::new();
    };
    let mut out = format!("<figcaption><strong>{}</strong>", escape(first));
    if let Some(cost) = &panel.cost {
        out.push_str("<ol>");
        for phase in &cost.phases {
            let _ = write!(
                out,
                "<li data-phase=\"{}\" style=\"border-color:{}\">{}</li>",
                phase.number,
                hex(phase_rgb(phase.number)),
                escape(&phase.sentence)
            );
        }
        out.push_str("</ol>");
    } else {
        for line in rest {
            let _ = write!(out, "<p>{}</p>", escape(line));
        }
    }
    out.push_str("</figcaption>");
    out
}

fn axis(axis: &Axis, span: Span) -> Value {
    json!({"name": axis.name, "scale": axis.scale, "first": span.first, "count": span.count})
}

/// What the script knows: where cells are, and what they hold.
fn data(scene: &Scene, frames: &[Frame]) -> Value {
    let sizes = sizes(scene);
    let panels: Vec<Value> = scene
        .panels
        .iter()
        .zip(frames)
        .map(|(panel, frame)| {
            let cells = panel.cells.iter();
            let offsets: Vec<Option<i64>> = cells
                .clone()
                .map(|cell| cell.as_ref().map(|cell| cell.offset))
                .collect();
            let banks: Vec<Option<u32>> = cells
                .clone()
                .map(|cell| cell.as_ref().and_then(|cell| cell.bank))
                .collect();
            let of: Vec<Option<usize>> = cells
                .map(|cell| cell.as_ref().and_then(|cell| cell.block))
                .collect();
            let blocks: Vec<Value> = panel
                .blocks
                .iter()
                .map(|block| {
                    json!({
                        "lanes": block.lanes,
                        "phase": block.phase,
                        "banks": block.banks.map(|(first, count)| [first, count]),
                        "offends": block.offends,
                        "value": block.value.map(|value| value.0),
                        "detail": block.detail,
                    })
                })
                .collect();
            json!({
                "role": panel.role,
                "title": panel.title,
                "x": frame.left,
                "y": frame.top,
                "w": sizes.width,
                "h": sizes.height,
                "rows": axis(&panel.axes[0], panel.rows),
                "cols": axis(&panel.axes[1], panel.cols),
                "cells": {"offset": offsets, "bank": banks, "block": of},
                "blocks": blocks,
            })
        })
        .collect();
    json!({
        "kind": scene.kind.name(),
        "elemBytes": scene.elem_bytes,
        "panels": panels,
    })
}
