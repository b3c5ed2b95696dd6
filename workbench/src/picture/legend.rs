//! The legend of a picture: items that flow into lines.

use super::canvas::{Canvas, rectangle, stroke};
use super::fit::{BAR, TEXT, letters, sans_width, wrap};
use super::palette::{FAINT, IDLE, INK, LINE, hex, phase_rgb};
use super::scene::{LegendItem, Mark};

/// Legend items in lines; returns where the next thing may start.
pub(crate) fn draw_legend(
    canvas: &mut Canvas,
    items: &[LegendItem],
    x: f64,
    y: f64,
    width: f64,
) -> f64 {
    if items.is_empty() {
        return y;
    }
    let (mut at, mut top) = (x, y);
    let row = 24.0;
    for item in items {
        let mark = match &item.mark {
            Mark::Fill(tints) => 14.0 * tints.len() as f64,
            Mark::Idle => 16.0,
            Mark::Bar(_) => BAR + 2.0,
            Mark::Thick => 22.0,
            Mark::None => 0.0,
        };
        let gap = if mark > 0.0 { 6.0 } else { 0.0 };
        let lines = wrap(&item.text, letters(width - mark - gap, TEXT));
        let widest = lines
            .iter()
            .map(|line| sans_width(line, TEXT))
            .fold(0.0, f64::max);
        if at > x && at + mark + gap + widest > x + width {
            at = x;
            top += row;
        }
        let mut d = String::new();
        match &item.mark {
            Mark::Fill(tints) => {
                for (i, tint) in tints.iter().enumerate() {
                    let mut d = String::new();
                    rectangle(&mut d, at + 14.0 * i as f64, top + 1.0, 14.0, 14.0);
                    canvas.path(
                        &d,
                        &format!(r#"fill="{}" stroke="{}""#, hex(tint.rgb()), hex(FAINT)),
                    );
                }
            }
            Mark::Idle => {
                rectangle(&mut d, at, top + 1.0, 16.0, 14.0);
                canvas.path(
                    &d,
                    &format!(r#"fill="{}" stroke="{}""#, hex(IDLE), hex(LINE)),
                );
            }
            Mark::Bar(phase) => {
                rectangle(&mut d, at, top, BAR + 2.0, 16.0);
                canvas.path(&d, &format!(r#"fill="{}""#, hex(phase_rgb(*phase))));
            }
            Mark::Thick => {
                rectangle(&mut d, at + 1.0, top + 1.0, 19.0, 13.0);
                canvas.path(&d, &stroke(INK, 3.0));
            }
            Mark::None => {}
        }
        let end = canvas.lines("s", TEXT, at + mark + gap, top, &lines);
        if lines.len() > 1 {
            at = x;
            top = end + 6.0;
        } else {
            at += mark + gap + widest + 18.0;
        }
    }
    if at > x { top + row } else { top }
}
