//! SVG elements in the making: texts, paths, rectangles within paths.

use std::fmt::Write as _;

use super::palette::{Rgb, hex};

/// `text` with what XML would misread replaced.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// SVG elements in the making.
#[derive(Default)]
pub(crate) struct Canvas {
    /// What is written so far.
    pub(crate) out: String,
}

impl Canvas {
    /// One line of text of a class, its baseline at `y`.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        // Writing to a String never fails.
        let _ = write!(
            self.out,
            r#"<text class="{class}" x="{}" y="{}">{}</text>"#,
            short(x),
            short(y),
            escape(text)
        );
        self.out.push('\n');
    }

    /// A path, unless it is empty.
    pub(crate) fn path(&mut self, d: &str, attributes: &str) {
        if !d.is_empty() {
            let _ = writeln!(self.out, r#"<path d="{d}" {attributes}/>"#);
        }
    }

    /// Lines of text from `y` down, the first baseline within; returns where the next may start.
    pub(crate) fn lines(
        &mut self,
        class: &str,
        size: f64,
        x: f64,
        y: f64,
        lines: &[String],
    ) -> f64 {
        let mut y = y;
        for line in lines {
            self.text(class, x, y + size, line);
            y += (size * 1.35).round();
        }
        y
    }
}

/// A number with at most one decimal.
pub(crate) fn short(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Attributes of an outline.
pub(crate) fn stroke(colour: Rgb, width: f64) -> String {
    format!(
        r#"fill="none" stroke="{}" stroke-width="{width}""#,
        hex(colour)
    )
}

/// A rectangle as part of a path.
pub(crate) fn rectangle(d: &mut String, x: f64, y: f64, width: f64, height: f64) {
    let _ = write!(
        d,
        "M{} {}h{}v{}h{}z",
        short(x),
        short(y),
        short(width),
        short(height),
        short(-width)
    );
}
