//! Imprints: what the accesses of a segment do to a part of shared memory, wherever that part is.
//!
//! A stage of a ring is filled and read like the others, so many bytes further on. The accesses of a segment fall into groups that have no byte in common,
//! and a group that is another one moved has the same *shape*: which threads touch which unit is found once for each shape. Shared memory is cut into
//! stretches where groups begin and end, and stretches that the same shapes cover in the same places have the same histories but for the numbers of
//! segments and effects: units are put into classes once for all of them.
//!
//! ```text
//! four stages of 48 KiB, each copied in a segment and read in another     8 imprints, 2 shapes
//!                                                                          4 stretches, looked into once
//! ```

use super::histories::{BLOCK, Names};
use super::memory::Threads;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::quick::{QuickMap, QuickSet};

/// A group of accesses of a segment.
pub(super) struct Imprint {
    pub(super) segment: u32,
    pub(super) shape: u32,
    /// Where it begins and ends, in whole blocks.
    pub(super) first: i64,
    pub(super) end: i64,
    /// The numbers of its accesses, in the order of the text.
    pub(super) accesses: Vec<u32>,
    /// The numbers of its effects.
    pub(super) effects: Vec<u32>,
}

/// An access of a shape: bytes from where the shape begins, effects by their places in the imprint's list.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ShapePart {
    pub(super) at: Num,
    pub(super) active: Mask,
    pub(super) effects: Num,
    pub(super) bytes: u32,
    pub(super) reads: bool,
}

/// What a shape does to a unit.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// The effect, by its place in the imprint's list.
    pub(super) effect: u32,
    pub(super) threads: Threads,
    /// The first access of it, by its place in the imprint's list, and the first of its threads.
    pub(super) access: u32,
    pub(super) thread: u16,
}

/// What a shape does to each of its units.
struct Shape {
    /// Bytes of its units, as a power of two.
    unit: u32,
    /// Of each unit, the number of its first mark; and the number of all.
    begins: Vec<u32>,
    marks: Vec<Mark>,
}

/// The shapes so far.
#[derive(Default)]
pub(super) struct Shapes {
    known: QuickMap<Vec<ShapePart>, u32>,
    all: Vec<Shape>,
}

impl Shapes {
    pub(super) fn number(&mut self, parts: Vec<ShapePart>) -> u32 {
        if let Some(&known) = self.known.get(&parts) {
            return known;
        }
        let number = self.all.len() as u32;
        self.all.push(Shape::of(&parts));
        self.known.insert(parts, number);
        number
    }
}

/// A mark, and the one before it on the same unit.
struct Link {
    before: u32,
    mark: Mark,
}

impl Shape {
    fn of(parts: &[ShapePart]) -> Self {
        let unit = parts.iter().map(ShapePart::unit).min().unwrap_or(BLOCK);
        let end = parts.iter().filter_map(|part| {
            let (_, last) = part.at.range_of(part.active)?;
            Some(last + i64::from(part.bytes))
        });
        let units = end.max().unwrap_or(0) as usize >> unit;
        // What is done to each unit, the last first.
        let mut links: Vec<Link> = Vec::new();
        let mut last = vec![u32::MAX; units];
        for (access, part) in parts.iter().enumerate() {
            let (at, active) = (part.at.values(), part.active.list());
            let effects = part.effects.values();
            let count = part.bytes as usize >> unit;
            for thread in (0..active.len()).filter(|&t| active[t]) {
                let first = at.at(thread) as usize >> unit;
                let effect = effects.at(thread) as u32;
                let number = thread as u16;
                for last in &mut last[first..first + count] {
                    if part.reads
                        && let Some(link) = links.get_mut(*last as usize)
                        && link.mark.effect == effect
                    {
                        link.mark.threads = link.mark.threads.and(number);
                        continue;
                    }
                    let mark = Mark {
                        effect,
                        threads: Threads::One(number),
                        access: access as u32,
                        thread: number,
                    };
                    let before = std::mem::replace(last, links.len() as u32);
                    links.push(Link { before, mark });
                }
            }
        }
        let mut begins = Vec::with_capacity(units + 1);
        let mut marks: Vec<Mark> = Vec::with_capacity(links.len());
        for mut at in last {
            let first = marks.len();
            begins.push(first as u32);
            while let Some(link) = links.get(at as usize) {
                marks.push(link.mark);
                at = link.before;
            }
            marks[first..].reverse();
        }
        begins.push(marks.len() as u32);
        Self {
            unit,
            begins,
            marks,
        }
    }

    /// What is done to the unit with a byte.
    fn of_byte(&self, byte: i64) -> &[Mark] {
        let unit = byte as usize >> self.unit;
        match self.begins.get(unit..unit + 2) {
            Some(&[first, end]) => &self.marks[first as usize..end as usize],
            _ => &[],
        }
    }
}

impl ShapePart {
    /// The largest units of which it touches each as a whole or not at all, as a power of two.
    fn unit(&self) -> u32 {
        let mut zeros = self.at.zeros();
        if zeros < BLOCK {
            // Threads that do not take part may be anywhere.
            let (at, active) = (self.at.values(), self.active.list());
            let taking_part = (0..active.len()).filter(|&t| active[t]);
            zeros = taking_part
                .fold(0, |all, t| all | at.at(t))
                .trailing_zeros();
        }
        zeros.min(self.bytes.trailing_zeros()).min(BLOCK)
    }
}

/// Bytes that the same imprints cover.
pub(super) struct Stretch {
    pub(super) first: i64,
    pub(super) end: i64,
    /// The imprints, by number, in the order of the text.
    pub(super) covering: Vec<usize>,
}

/// Shared memory, cut where imprints begin and end.
pub(super) fn stretches(imprints: &[Imprint]) -> Vec<Stretch> {
    let mut cuts: Vec<i64> = imprints.iter().flat_map(|i| [i.first, i.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let stretch = |(&first, &end)| Stretch {
        first,
        end,
        covering: (0..imprints.len())
            .filter(|&i| imprints[i].first <= first && end <= imprints[i].end)
            .collect(),
    };
    cuts.iter().zip(cuts.iter().skip(1)).map(stretch).collect()
}

/// The bytes of a stretch, and the shapes that cover it, each with the bytes of it that are before.
pub(super) type Covered = (i64, Vec<(u32, i64)>);

/// Units of a stretch with the same history.
pub(super) struct Local {
    /// The first byte of the first of them, from where the stretch begins.
    pub(super) byte: i64,
    /// What is done to it, and by which of the imprints.
    pub(super) marks: Vec<(usize, Mark)>,
    /// The names of the threads of each mark.
    pub(super) names: Vec<u64>,
}

/// The classes of units of a stretch of so many bytes, covered by shapes that begin so many bytes before it.
pub(super) fn local_classes(
    bytes: i64,
    places: &[(u32, i64)],
    shapes: &Shapes,
    names: &mut Names,
) -> Vec<Local> {
    let shapes: Vec<(&Shape, i64)> = places
        .iter()
        .map(|&(shape, before)| (&shapes.all[shape as usize], before))
        .collect();
    let unit = shapes.iter().map(|(shape, _)| shape.unit).min();
    let unit = unit.unwrap_or(BLOCK);
    let mut all: Vec<Local> = Vec::new();
    let mut known: QuickSet<Vec<u64>> = QuickSet::default();
    let mut words = Vec::new();
    for byte in (0..bytes).step_by(1 << unit) {
        words.clear();
        names.forget();
        for (place, (shape, before)) in shapes.iter().enumerate() {
            for mark in shape.of_byte(before + byte) {
                words.push((place as u64) << 32 | u64::from(mark.effect));
                words.push(names.of(mark.threads));
            }
        }
        if words.is_empty() || known.contains(&words) {
            continue;
        }
        known.insert(words.clone());
        let marks = shapes
            .iter()
            .enumerate()
            .flat_map(|(place, (shape, before))| {
                let marks = shape.of_byte(before + byte).iter();
                marks.map(move |mark| (place, *mark))
            });
        all.push(Local {
            byte,
            marks: marks.collect(),
            names: words.iter().skip(1).step_by(2).copied().collect(),
        });
    }
    all
}
