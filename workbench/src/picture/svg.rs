//! Pictures as SVG: fills, lines and letters at whole pixels, no script, no font of its own, nothing loaded.
//!
//! Cells of one colour are one path, so that a picture of 128x128 cells stays small. From back to front: fills, thin lines between
//! cells, blocks' borders, phase bars, letters, offenders' borders, heavier lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::canvas::{Canvas, escape, rectangle, short, stroke};
use super::fit::{
    BAR, LINE, Lettering, Metrics, TEXT, edges, label, lettering, letters, metrics, mono_width,
    tick_step, wrap,
};
use super::legend::draw_legend;
use super::palette::{self, FAINT, IDLE, INK, PAPER, Tint, hex, phase_rgb};
use super::scene::{Axis, Kind, Panel, Scene, Span};

/// Space around the picture and between panels.
const MARGIN: f64 = 24.0;
/// Letters of the axes.
const AXIS: f64 = 11.0;
/// Letters of layouts below titles.
const CODE: f64 = 12.0;
/// Letters of the heading.
const HEAD: f64 = 19.0;
/// Beyond this width panels are put one below the other.
const BROAD: f64 = 2400.0;
/// The least width of a panel, for the sake of the sentences below it.
const NARROW: f64 = 380.0;

/// The style sheet of the classes used.
pub(crate) fn style(sizes: &Metrics) -> String {
    let mono = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace";
    let sans = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif";
    let (ink, faint) = (hex(INK), hex(FAINT));
    format!(
        ".tw text{{fill:{ink}}}\
         .tw .h{{font:700 {HEAD}px {mono}}}\
         .tw .s{{font:400 {TEXT}px {sans}}}\
         .tw .b{{font:700 {TEXT}px {sans}}}\
         .tw .m{{font:400 {CODE}px {mono}}}\
         .tw .a{{font:400 {AXIS}px {mono};fill:{faint};text-anchor:middle}}\
         .tw .r{{font:400 {AXIS}px {mono};fill:{faint};text-anchor:end}}\
         .tw .o{{font:400 {}px {mono};text-anchor:middle}}\
         .tw .f{{font:400 {}px {mono};fill:{faint};text-anchor:middle}}\
         .tw .c{{font:400 {}px {mono};text-anchor:start}}\
         .tw .l{{font:600 {}px {mono};text-anchor:middle}}",
        sizes.offset, sizes.offset, sizes.offset, sizes.label
    )
}

/// Where a panel's parts lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Left edge of the cells.
    pub(crate) left: f64,
    /// Upper edge of the cells.
    pub(crate) top: f64,
    /// Width of the whole panel.
    pub(crate) width: f64,
    /// Height down to the lower edge of the cells.
    pub(crate) bottom: f64,
}

fn axis_label(axis: &Axis, index: i64) -> String {
    axis.scale.saturating_mul(index).to_string()
}

/// The longest label of an axis, in pixels.
fn widest_label(axis: &Axis, span: Span) -> f64 {
    let last = span.first + span.count as i64 - 1;
    mono_width(&axis_label(axis, last), AXIS)
}

fn code_letters(width: f64, size: f64) -> usize {
    (width / mono_width("x", size)) as usize
}

/// The title's lines and the layout's; neither for a panel that is the only one, which the heading names.
fn header(panel: &Panel, width: f64) -> (Vec<String>, Vec<String>) {
    if panel.title.is_empty() {
        return (Vec::new(), Vec::new());
    }
    (
        wrap(&panel.title, letters(width, TEXT)),
        wrap(&panel.layout, code_letters(width, CODE)),
    )
}

/// Where things lie in a panel that shares its left margin with others.
fn frame(panel: &Panel, sizes: &Metrics, left: f64) -> Frame {
    let width = (left + panel.cols.count as f64 * sizes.width + 4.0).max(NARROW);
    let (title, layout) = header(panel, width);
    let text =
        title.len() as f64 * (TEXT * 1.35).round() + layout.len() as f64 * (CODE * 1.35).round();
    let top = (text + 2.0 * AXIS * 1.5 + 6.0).round();
    Frame {
        left,
        top,
        width,
        bottom: top + panel.rows.count as f64 * sizes.height,
    }
}

/// The left margin that all panels share: the rows' labels and the axis' name.
fn left_margin(panels: &[Panel]) -> f64 {
    let labels = panels
        .iter()
        .map(|panel| widest_label(&panel.axes[0], panel.rows))
        .fold(0.0, f64::max);
    (labels + AXIS * 1.6 + 10.0).ceil()
}

/// One panel by itself, as an SVG document for a page, and where its cells are.
pub(crate) fn panel_svg(scene: &Scene, number: usize) -> (String, Frame) {
    let sizes = metrics(scene);
    let panel = &scene.panels[number];
    let frame = frame(panel, &sizes, left_margin(std::slice::from_ref(panel)));
    let mut canvas = Canvas::default();
    draw_panel(
        &mut canvas,
        panel,
        &sizes,
        frame,
        written(scene, number, &sizes),
    );
    let (width, height) = (frame.width.ceil() + 2.0, frame.bottom.ceil() + 4.0);
    let svg = format!(
        r#"<svg class="tw" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{}">{}<g class="over"></g></svg>"#,
        escape(&format!("{} {}", panel.title, panel.layout)),
        canvas.out
    );
    (svg, frame)
}

/// The sizes a page needs for its style sheet and pointer.
pub(crate) fn sizes(scene: &Scene) -> Metrics {
    metrics(scene)
}

/// What is written in one panel of a scene: before and after alike, operands each for itself.
fn written(scene: &Scene, number: usize, sizes: &Metrics) -> Lettering {
    match scene.kind {
        Kind::Layout | Kind::Devices => lettering(&scene.panels.iter().collect::<Vec<_>>(), sizes),
        Kind::Atom => lettering(&[&scene.panels[number]], sizes),
    }
}

fn draw_panel(
    canvas: &mut Canvas,
    panel: &Panel,
    sizes: &Metrics,
    frame: Frame,
    written: Lettering,
) {
    let Frame { left, top, .. } = frame;
    let (width, height) = (sizes.width, sizes.height);
    let (title, layout) = header(panel, frame.width);
    let y = canvas.lines("b", TEXT, 0.0, 0.0, &title);
    canvas.lines("m", CODE, 0.0, y, &layout);
    draw_axes(canvas, panel, sizes, frame);
    let x_of = |col: usize| left + col as f64 * width;
    let y_of = |row: usize| top + row as f64 * height;
    // Fills, one path a colour.
    let idle = if panel.cost.is_some() { IDLE } else { PAPER };
    let mut fills: BTreeMap<Option<Tint>, String> = BTreeMap::new();
    let mut grid = String::new();
    for row in 0..panel.rows.count {
        let mut col = 0;
        while col < panel.cols.count {
            let Some(cell) = panel.cell(row, col) else {
                col += 1;
                continue;
            };
            let mut end = col + 1;
            while end < panel.cols.count
                && panel.cell(row, end).is_some_and(|c| c.tint == cell.tint)
            {
                end += 1;
            }
            let d = fills.entry(cell.tint).or_default();
            rectangle(d, x_of(col), y_of(row), (end - col) as f64 * width, height);
            col = end;
        }
        // Within a block there are no lines, for the sake of its label.
        let alone = |col: &usize| {
            panel
                .cell(row, *col)
                .is_some_and(|cell| cell.block.is_none())
        };
        for col in (0..panel.cols.count)
            .filter(|_| !sizes.sparse)
            .filter(alone)
        {
            rectangle(&mut grid, x_of(col), y_of(row), width, height);
        }
    }
    for (tint, d) in &fills {
        let fill = tint.map_or(idle, Tint::rgb);
        canvas.path(d, &format!(r#"fill="{}""#, hex(fill)));
    }
    canvas.path(&grid, &stroke(palette::LINE, 1.0));
    draw_blocks(canvas, panel, sizes, frame, written);
    draw_rules(canvas, panel, sizes, frame);
}

fn draw_axes(canvas: &mut Canvas, panel: &Panel, sizes: &Metrics, frame: Frame) {
    let Frame { left, top, .. } = frame;
    let [rows, cols] = &panel.axes;
    let step = tick_step(
        sizes.width,
        widest_label(cols, panel.cols) + 5.0,
        sizes.sparse,
    );
    for (i, index) in panel.cols.indices().enumerate().step_by(step) {
        let x = left + (i as f64 + 0.5) * sizes.width;
        canvas.text("a", x, top - 5.0, &axis_label(cols, index));
    }
    let step = tick_step(sizes.height, AXIS * LINE, sizes.sparse);
    for (i, index) in panel.rows.indices().enumerate().step_by(step) {
        let y = top + (i as f64 + 0.5) * sizes.height + AXIS * 0.35;
        canvas.text("r", left - 5.0, y.round(), &axis_label(rows, index));
    }
    let middle = left + panel.cols.count as f64 * sizes.width / 2.0;
    // A name wider than its axis starts at the left edge of the panel.
    let half = mono_width(&cols.name, AXIS) / 2.0;
    canvas.text("a", middle.max(half), top - 6.0 - AXIS * 1.4, &cols.name);
    let height = panel.rows.count as f64 * sizes.height;
    if mono_width(&rows.name, AXIS) <= height && !rows.name.is_empty() {
        let (x, y) = (short(AXIS), short(top + height / 2.0));
        let _ = writeln!(
            canvas.out,
            r#"<text class="a" transform="translate({x} {y}) rotate(-90)">{}</text>"#,
            escape(&rows.name)
        );
    }
}

/// Heavier lines: every eighth cell where there are no others, and where the axis says so.
fn draw_rules(canvas: &mut Canvas, panel: &Panel, sizes: &Metrics, frame: Frame) {
    let (rows, cols) = (panel.rows.count, panel.cols.count);
    let full = panel.cells.iter().all(Option::is_some);
    let (right, bottom) = (
        frame.left + cols as f64 * sizes.width,
        frame.top + rows as f64 * sizes.height,
    );
    let mut thin = String::new();
    let mut heavy = String::new();
    let mut rule = |d: fn(f64, f64, f64, f64) -> String,
                    axis: &Axis,
                    span: Span,
                    from: f64,
                    size: f64,
                    ends: (f64, f64)| {
        for (i, index) in span.indices().enumerate().skip(1) {
            let at = from + i as f64 * size;
            if axis.rule > 0 && index % axis.rule as i64 == 0 {
                heavy.push_str(&d(at, at, ends.0, ends.1));
            } else if sizes.sparse && index % 8 == 0 {
                thin.push_str(&d(at, at, ends.0, ends.1));
            }
        }
    };
    let down =
        |x: f64, _: f64, from: f64, to: f64| format!("M{} {}V{}", short(x), short(from), short(to));
    let across =
        |y: f64, _: f64, from: f64, to: f64| format!("M{} {}H{}", short(from), short(y), short(to));
    rule(
        down,
        &panel.axes[1],
        panel.cols,
        frame.left,
        sizes.width,
        (frame.top, bottom),
    );
    rule(
        across,
        &panel.axes[0],
        panel.rows,
        frame.top,
        sizes.height,
        (frame.left, right),
    );
    canvas.path(&thin, &stroke([0x8c; 3], 0.75));
    canvas.path(&heavy, &stroke(INK, 2.0));
    if full {
        let mut d = String::new();
        rectangle(
            &mut d,
            frame.left,
            frame.top,
            right - frame.left,
            bottom - frame.top,
        );
        canvas.path(&d, &stroke(FAINT, 1.0));
    }
}

fn draw_blocks(
    canvas: &mut Canvas,
    panel: &Panel,
    sizes: &Metrics,
    frame: Frame,
    written: Lettering,
) {
    let x_of = |col: usize| frame.left + col as f64 * sizes.width;
    let y_of = |row: usize| frame.top + row as f64 * sizes.height;
    let mut bars: BTreeMap<u32, String> = BTreeMap::new();
    let (mut borders, mut thick) = (String::new(), String::new());
    let mut text = Canvas::default();
    for row in 0..panel.rows.count {
        for (col, columns, block) in panel.runs(row) {
            let (x, y) = (x_of(col), y_of(row));
            let width = columns as f64 * sizes.width;
            rectangle(&mut borders, x, y, width, sizes.height);
            let (before, after) = edges(block, sizes);
            if block.offends {
                let inset = sizes.border / 2.0;
                rectangle(
                    &mut thick,
                    x + inset,
                    y + inset,
                    width - sizes.border,
                    sizes.height - sizes.border,
                );
            }
            if let Some(phase) = block.phase {
                let d = bars.entry(phase).or_default();
                rectangle(d, x + before - BAR, y, BAR, sizes.height);
            }
            let lines = label(block, columns, written, sizes);
            let used = if written.offsets {
                sizes.offset * LINE
            } else {
                0.0
            };
            let free = sizes.height - used - lines.len() as f64 * sizes.label * LINE;
            for (i, line) in lines.iter().enumerate() {
                // A line's box, and in it the baseline at four fifths of the letters' height.
                let above = y + free / 2.0 + used + i as f64 * sizes.label * LINE;
                let baseline = above + sizes.label * (LINE - 1.0) / 2.0 + sizes.label * 0.82;
                text.text(
                    "l",
                    x + before + (width - before - after) / 2.0,
                    baseline,
                    line,
                );
            }
        }
        if written.offsets {
            write_offsets(
                &mut text,
                panel,
                sizes,
                row,
                (frame.left, y_of(row)),
                written,
            );
        } else if sizes.sparse && panel.offsets && panel.blocks.is_empty() {
            write_corners(&mut text, panel, sizes, row, (frame.left, y_of(row)));
        }
    }
    for (phase, d) in &bars {
        canvas.path(d, &format!(r#"fill="{}""#, hex(phase_rgb(*phase))));
    }
    let line = if sizes.sparse { 0.6 } else { 1.0 };
    canvas.path(&borders, &stroke(FAINT, line));
    canvas.out.push_str(&text.out);
    canvas.path(&thick, &stroke(INK, sizes.border));
}

/// The offsets of one row: in the middle of a cell without a label, above the label of one with.
fn write_offsets(
    text: &mut Canvas,
    panel: &Panel,
    sizes: &Metrics,
    row: usize,
    (left, y): (f64, f64),
    written: Lettering,
) {
    for col in 0..panel.cols.count {
        let Some(cell) = panel.cell(row, col) else {
            continue;
        };
        let labelled = cell.block.is_some() && written.level.is_some();
        // The fainter letters are for pale cells only.
        let idle = cell.block.is_none() && panel.cost.is_some();
        let class = if idle { "f" } else { "o" };
        let x = left + (col as f64 + 0.5) * sizes.width;
        let lines = if labelled {
            // As many lines as the block's label has, so that all offsets of a block stand in one line.
            let block = &panel.blocks[cell.block.unwrap_or(0)];
            let level = written.level.unwrap_or(0);
            block.labels.get(level).map_or(0, Vec::len)
        } else {
            0
        };
        let free = sizes.height - sizes.offset * LINE - lines as f64 * sizes.label * LINE;
        let baseline = y + free / 2.0 + sizes.offset * (LINE - 1.0) / 2.0 + sizes.offset * 0.82;
        text.text(class, x, baseline, &cell.offset.to_string());
    }
}

/// The offset of every eighth element of every eighth row, written to the right of it.
fn write_corners(
    text: &mut Canvas,
    panel: &Panel,
    sizes: &Metrics,
    row: usize,
    (left, y): (f64, f64),
) {
    let index = panel.rows.first + row as i64;
    if index % 8 != 0 {
        return;
    }
    for (col, at) in panel.cols.indices().enumerate() {
        let Some(cell) = panel.cell(row, col) else {
            continue;
        };
        let number = cell.offset.to_string();
        let room = (8.min(panel.cols.count - col)) as f64 * sizes.width - 4.0;
        if at % 8 == 0 && mono_width(&number, sizes.offset) <= room {
            let x = left + col as f64 * sizes.width + 2.0;
            text.text("c", x, y + sizes.height - 3.0, &number);
        }
    }
}

/// The legend by itself, for a page.
pub(crate) fn legend_svg(scene: &Scene, width: f64) -> String {
    let mut canvas = Canvas::default();
    let height = draw_legend(&mut canvas, &scene.legend, 0.0, 2.0, width);
    if scene.legend.is_empty() {
        return String::new();
    }
    format!(
        r#"<svg class="tw" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="legend">{}</svg>"#,
        canvas.out
    )
}

/// What the picture says besides what the scene says: offsets too long, or left out.
pub(crate) fn drawing_notes(scene: &Scene) -> Vec<String> {
    let sizes = metrics(scene);
    let mut notes = Vec::new();
    if scene.kind != Kind::Layout {
        return notes;
    }
    let corners = scene.panels.iter().any(|panel| panel.blocks.is_empty());
    if sizes.sparse && corners {
        notes.push(
            "Numbers are the offsets of every eighth element of every eighth row, the one at the number's left end."
                .to_owned(),
        );
    } else if !sizes.sparse && !sizes.offsets_fit {
        notes.push("Offsets are too long to be written here; --json has them.".to_owned());
    }
    notes
}

/// The whole picture as one SVG document.
pub(crate) fn svg(scene: &Scene) -> String {
    let sizes = metrics(scene);
    let left = left_margin(&scene.panels);
    let frames: Vec<Frame> = scene
        .panels
        .iter()
        .map(|panel| frame(panel, &sizes, left))
        .collect();
    let total: f64 = frames.iter().map(|frame| frame.width + MARGIN).sum();
    // Before and after stand side by side where there is room; operands stand where the instruction puts them.
    let stacked = scene.kind != Kind::Atom && total > BROAD;
    let place = |i: usize| {
        let (row, col) = scene.panels[i].place;
        if stacked { (col, 0) } else { (row, col) }
    };
    let most =
        |of: &dyn Fn(usize) -> Option<f64>| (0..frames.len()).filter_map(of).fold(0.0, f64::max);
    let columns = (0..frames.len()).map(|i| place(i).1 + 1).max().unwrap_or(0);
    let rows = (0..frames.len()).map(|i| place(i).0 + 1).max().unwrap_or(0);
    let widths: Vec<f64> = (0..columns)
        .map(|col| most(&|i| (place(i).1 == col).then_some(frames[i].width)))
        .collect();
    let inner =
        (widths.iter().sum::<f64>() + MARGIN * (columns.saturating_sub(1)) as f64).max(620.0);
    let mut canvas = Canvas::default();
    let heading = wrap(&scene.heading, code_letters(inner, HEAD));
    let mut y = canvas.lines("h", HEAD, MARGIN, MARGIN, &heading);
    for fact in &scene.facts {
        let lines = wrap(fact, letters(inner, TEXT));
        y = canvas.lines("s", TEXT, MARGIN, y, &lines);
    }
    y += 14.0;
    for row in 0..rows {
        let top = most(&|i| (place(i).0 == row).then_some(frames[i].top));
        let mut end = y;
        for i in (0..frames.len()).filter(|&i| place(i).0 == row) {
            let x = MARGIN + widths[..place(i).1].iter().map(|w| w + MARGIN).sum::<f64>();
            // Cells of one row of panels start at one height.
            let down = y + top - frames[i].top;
            let _ = writeln!(
                canvas.out,
                r#"<g transform="translate({} {})">"#,
                short(x),
                short(down)
            );
            draw_panel(
                &mut canvas,
                &scene.panels[i],
                &sizes,
                frames[i],
                written(scene, i, &sizes),
            );
            let mut below = frames[i].bottom + 10.0;
            for (k, line) in scene.panels[i].verdict.iter().enumerate() {
                let class = if k == 0 { "b" } else { "s" };
                let lines = wrap(line, letters(frames[i].width.min(1100.0), TEXT));
                below = canvas.lines(class, TEXT, 0.0, below, &lines) + 2.0;
            }
            canvas.out.push_str("</g>\n");
            end = end.max(down + below);
        }
        y = (end + MARGIN / 2.0).ceil();
    }
    y = draw_legend(&mut canvas, &scene.legend, MARGIN, y + 4.0, inner);
    for note in scene.notes.iter().chain(&drawing_notes(scene)) {
        y = canvas.lines(
            "s",
            TEXT,
            MARGIN,
            y + 4.0,
            &wrap(note, letters(inner, TEXT)),
        );
    }
    let (width, height) = ((inner + 2.0 * MARGIN).ceil(), (y + MARGIN).ceil());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" class=\"tw\" role=\"img\">\n\
         <title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n{}</svg>\n",
        escape(&scene.heading),
        escape(&scene.facts.join("; ")),
        style(&sizes),
        hex(PAPER),
        canvas.out
    )
}
