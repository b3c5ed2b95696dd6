//! What fits: sizes of cells and letters, and which of a block's labels is written.
//!
//! Nothing here can ask a font, so widths come from a model on the safe side: no letter of a monospaced face is wider than
//! 0.62 em, and none of our sentences in a sans-serif face averages more than 0.64 em (measured with `DejaVu` Sans, the widest of
//! the usual ones). A label is written only if it fits by that model, the same form on all blocks of a panel, so that texts
//! neither overlap nor are cut.
//!
//! Up to 16 columns cells have room for three lines, up to 32 for two, up to 64 for an offset of four digits. Beyond that cells are
//! 12 pixels wide: colour, labels on whole blocks where they fit, and the offset at every eighth row and column.

use super::fragment::SPARSE;
use super::scene::{Block, Panel, Scene};

/// Em a letter of a monospaced face.
const MONO: f64 = 0.62;
/// Em a letter of a sans-serif face, on average over a sentence.
const SANS: f64 = 0.64;
/// Letters of titles, sentences and the legend, in pixels.
pub(crate) const TEXT: f64 = 13.0;
/// Line height in em.
pub(crate) const LINE: f64 = 1.2;
/// Pixels at the left edge of a block that the bar of its phase takes.
pub(crate) const BAR: f64 = 3.0;
/// The widest a cell gets for its offset's sake.
const WIDEST: f64 = 96.0;

/// Pixels that `text` takes at most in a monospaced face of `size` pixels.
pub(crate) fn mono_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * MONO
}

/// Pixels that `text` takes at most in a sans-serif face of `size` pixels.
pub(crate) fn sans_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * SANS
}

/// How many letters of a sans-serif face fit into `width` pixels.
pub(crate) fn letters(width: f64, size: f64) -> usize {
    (width / sans_width("x", size)) as usize
}

/// Sizes in pixels, the same for all panels of a picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Metrics {
    /// Width of a cell.
    pub(crate) width: f64,
    /// Height of a cell.
    pub(crate) height: f64,
    /// Letters of labels.
    pub(crate) label: f64,
    /// Letters of offsets.
    pub(crate) offset: f64,
    /// Width of the border of an offender.
    pub(crate) border: f64,
    /// Whether cells are too small for a text each.
    pub(crate) sparse: bool,
    /// Whether offsets fit into the cells.
    pub(crate) offsets_fit: bool,
}

/// The sizes for a picture.
pub(crate) fn metrics(scene: &Scene) -> Metrics {
    let columns = scene.panels.iter().map(|panel| panel.cols.count).max();
    let rows = scene.panels.iter().map(|panel| panel.rows.count).max();
    let n = columns.unwrap_or(1).max(rows.unwrap_or(1) / 2);
    let (width, height, label, offset): (f64, f64, f64, f64) = match n {
        0..=16 => (56.0, 40.0, 12.0, 11.0),
        17..=32 => (52.0, 32.0, 11.0, 10.0),
        33..=SPARSE => (28.0, 26.0, 9.0, 9.0),
        _ => (12.0, 12.0, 7.5, 8.0),
    };
    let sparse = n > SPARSE;
    let border = match n {
        0..=32 => 3.0,
        33..=SPARSE => 2.0,
        _ => 1.5,
    };
    let longest = scene
        .panels
        .iter()
        .filter(|panel| panel.offsets)
        .flat_map(|panel| panel.cells.iter().flatten())
        .map(|cell| mono_width(&cell.offset.to_string(), offset))
        .fold(0.0, f64::max);
    let needed = (longest + 6.0).ceil();
    let offsets_fit = !sparse && needed <= WIDEST;
    Metrics {
        width: if offsets_fit {
            width.max(needed)
        } else {
            width
        },
        height,
        label,
        offset,
        border,
        sparse,
        offsets_fit,
    }
}

/// What is written in a panel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lettering {
    /// The offset in each cell.
    pub(crate) offsets: bool,
    /// Which of a block's labels.
    pub(crate) level: Option<usize>,
}

/// Pixels that bar and border take at the left and right edge of a block.
pub(crate) fn edges(block: &Block, metrics: &Metrics) -> (f64, f64) {
    let bar = if block.phase.is_some() { BAR } else { 0.0 };
    let border = if block.offends { metrics.border } else { 0.5 };
    (border + bar, border)
}

/// Whether these lines fit on a block `columns` cells wide, below the offsets if those are written.
fn fits(lines: &[String], block: &Block, columns: usize, offsets: bool, metrics: &Metrics) -> bool {
    let (left, right) = edges(block, metrics);
    let width = columns as f64 * metrics.width - left - right - 2.0;
    let top = if offsets { metrics.offset * LINE } else { 0.0 };
    let height = top + lines.len() as f64 * metrics.label * LINE + 2.0 * (right - 0.5);
    height <= metrics.height
        && lines
            .iter()
            .all(|line| mono_width(line, metrics.label) <= width)
}

/// The lines to write on a block `columns` cells wide: of the panel's level, or of a shorter one where the window cuts it.
pub(crate) fn label<'a>(
    block: &'a Block,
    columns: usize,
    lettering: Lettering,
    metrics: &Metrics,
) -> &'a [String] {
    let Some(level) = lettering.level else {
        return &[];
    };
    block
        .labels
        .iter()
        .skip(level)
        .find(|lines| fits(lines, block, columns, lettering.offsets, metrics))
        .map_or(&[], Vec::as_slice)
}

/// What can be written in panels that are to be lettered alike: the most telling label that fits on every whole block, with the
/// offsets if both fit.
pub(crate) fn lettering(panels: &[&Panel], metrics: &Metrics) -> Lettering {
    let offsets = panels.iter().any(|panel| panel.offsets) && metrics.offsets_fit;
    let mut runs: Vec<(usize, &Block)> = Vec::new();
    for panel in panels {
        let rows = (0..panel.rows.count).flat_map(|row| panel.runs(row));
        let of_panel: Vec<(usize, &Block)> =
            rows.map(|(_, columns, block)| (columns, block)).collect();
        // Blocks cut by the window are shorter.
        let whole = of_panel.iter().map(|run| run.0).max().unwrap_or(0);
        runs.extend(of_panel.into_iter().filter(|run| run.0 == whole));
    }
    let none = Lettering {
        offsets,
        level: None,
    };
    let levels = runs.iter().map(|run| run.1.labels.len()).max().unwrap_or(0);
    let Some(last) = levels.checked_sub(1) else {
        return none;
    };
    let all_fit = |level: usize, offsets: bool| {
        runs.iter().all(|(columns, block)| {
            block
                .labels
                .get(level)
                .is_some_and(|lines| fits(lines, block, *columns, offsets, metrics))
        })
    };
    // The last label names the lane alone: before it comes to that, the offset goes, to make room for the phase.
    let with = (0..last).filter(|_| offsets).map(|level| (level, true));
    let without = (0..last).map(|level| (level, false));
    with.chain(without)
        .chain([(last, offsets), (last, false)])
        .find(|&(level, offsets)| all_fit(level, offsets))
        .map_or(none, |(level, offsets)| Lettering {
            offsets,
            level: Some(level),
        })
}

/// The least of 1, 2, 4, 8, … labels of an axis such that none touches the next: `size` is a cell's, `needed` a label's.
pub(crate) fn tick_step(size: f64, needed: f64, sparse: bool) -> usize {
    let mut step = if sparse { 8 } else { 1 };
    while (step as f64) * size < needed && step < 1 << 16 {
        step *= 2;
    }
    step
}

/// `text` in lines of at most `letters`: broken at spaces, else after commas, else anywhere.
pub(crate) fn wrap(text: &str, letters: usize) -> Vec<String> {
    let letters = letters.max(8);
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    while rest.len() > letters {
        let end = |wanted: char, keep: usize| {
            (letters / 3..letters)
                .rev()
                .find(|&i| rest[i] == wanted)
                .map(|i| i + keep)
        };
        let cut = if rest[letters] == ' ' {
            letters
        } else {
            end(' ', 0).or_else(|| end(',', 1)).unwrap_or(letters)
        };
        let tail = rest.split_off(cut);
        lines.push(rest.iter().collect::<String>().trim_end().to_owned());
        rest = tail.into_iter().skip_while(|c| *c == ' ').collect();
    }
    if !rest.is_empty() {
        lines.push(rest.into_iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_every_letter_and_the_width() {
        let text = "phase 0 (lanes 0-7): 8 wavefronts where 1 would do ((4,(2,2)),(8,16)):((64,(1024,2)),(4,256))";
        for letters in 8..120 {
            let lines = wrap(text, letters);
            assert!(lines.iter().all(|line| line.chars().count() <= letters));
            assert!(lines.iter().all(|line| !line.is_empty()));
            let kept: String = lines.concat().replace(' ', "");
            assert_eq!(kept, text.replace(' ', ""), "{letters}");
        }
    }

    #[test]
    fn ticks_have_room() {
        assert_eq!(tick_step(28.0, 14.0, false), 1);
        assert_eq!(tick_step(12.0, 20.0, false), 2);
        assert_eq!(tick_step(12.0, 20.0, true), 8);
    }
}
