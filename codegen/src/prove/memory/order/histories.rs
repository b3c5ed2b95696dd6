//! Histories: who touches a unit of shared memory, in the order of the kernel's text; units with the same history are one class.
//!
//! What becomes of a unit along a path depends on the accesses that touch it and on nothing else: no rule compares two units. The rules ask of two
//! threads only whether they are the same, or of the same warp. So two units behave alike if their histories are the same after their threads, and
//! their warps, are numbered in the order in which they appear, and the state of shared memory is a state for each class instead of each byte.
//!
//! A history has a step for each segment: the accesses between two barriers, waits or branches. Of several threads that read the same in one segment it
//! matters only that they are several, and whether they are of one warp.
//!
//! ```text
//! 192 KiB, four stages of A and B, each filled by 16-byte copies, read by warps of several rows:
//! 12,288 units of 16 bytes       stage 2 of A     copied by thread 0 in segment 3, read by many in segment 7
//!     12 histories               stage 3 of A     copied by thread 0 in segment 4, read by many in segment 8 …
//! ```
//!
//! A unit is as large as all accesses that touch it allow: 16 bytes, or fewer where one is narrower.

use std::rc::Rc;

use super::imprint::{Covered, Imprint, Local, Mark, ShapePart, Shapes, local_classes, stretches};

use super::memory::{Effect, Threads};
use super::versions::Versions;
use crate::prove::algebra::numbers::Num;
use crate::prove::walk::execute::Event;
use crate::prove::walk::memory::{Access, Kind};
use crate::quick::{QuickMap, QuickSet};

/// Bytes of the largest unit, as a power of two.
pub(super) const BLOCK: u32 = 4;

/// What one step does to the units of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) effect: u32,
    pub(super) threads: Threads,
    /// The first of them, and the first of its threads: for messages.
    pub(super) first: Single,
}

/// One access by one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    /// The number of the access, in the order of the text.
    pub(super) access: u32,
    pub(super) thread: u16,
}

/// What a segment does to the units of a class.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) class: usize,
    pub(super) touches: Vec<Touch>,
}

/// The histories of all units.
#[derive(Default)]
pub(super) struct Histories {
    /// The accesses in the order of the text.
    pub(super) accesses: Vec<Rc<Access>>,
    pub(super) effects: Vec<Effect>,
    /// The first byte of each class.
    pub(super) bytes: Vec<i64>,
    /// What each segment does.
    pub(super) segments: Vec<Vec<Step>>,
    /// The segment of an access that is the first of one, by the address of its event.
    begins: QuickMap<usize, u32>,
    /// The segment of each access.
    segment: Vec<u32>,
    /// The effect of each access, by number, for each thread.
    of_access: Vec<Num>,
    /// What each segment reads.
    reads: Vec<Vec<Effect>>,
}

impl Histories {
    pub(super) fn of(events: &[Event], threads: usize, versions: &mut Versions) -> Self {
        let mut all = Self::default();
        all.segments_of(events);
        let names = Names::new(threads, some_warps_meet(events));
        all.classify(versions, names);
        all
    }

    /// The segment that begins with an event.
    pub(super) fn segment(&self, event: &Event) -> Option<&[Step]> {
        let number = self.begins.get(&address(event))?;
        self.segments.get(*number as usize).map(Vec::as_slice)
    }

    /// What the segment reads that begins with an event.
    pub(super) fn reads(&self, event: &Event) -> &[Effect] {
        let number = self.begins.get(&address(event));
        let reads = number.and_then(|&number| self.reads.get(number as usize));
        reads.map_or(&[], Vec::as_slice)
    }

    /// Numbers the segments, and the accesses in them.
    fn segments_of(&mut self, events: &[Event]) {
        let mut within = false;
        for event in events {
            let starts = !within;
            within = false;
            match event {
                Event::Access(a) => {
                    if starts {
                        let number = self.segments.len() as u32;
                        self.begins.insert(address(event), number);
                        self.segments.push(Vec::new());
                    }
                    within = true;
                    self.accesses.push(Rc::clone(a));
                    self.segment.push(self.segments.len() as u32 - 1);
                }
                Event::If(_, then, otherwise) => {
                    self.segments_of(then);
                    self.segments_of(otherwise);
                }
                Event::Loop(l) => {
                    for iteration in &l.period {
                        self.segments_of(&iteration.events);
                    }
                }
                _ => {}
            }
        }
    }

    /// The classes of units by their histories.
    fn classify(&mut self, versions: &mut Versions, mut names: Names) {
        self.of_access = self.effects_of(versions);
        self.reads = self.reads_of();
        let mut shapes = Shapes::default();
        let imprints = self.imprints(&mut shapes);
        let mut classes: QuickSet<Vec<u64>> = QuickSet::default();
        let mut local: QuickMap<Covered, Rc<Vec<Local>>> = QuickMap::default();
        for stretch in stretches(&imprints) {
            let covering = stretch.covering.iter().map(|&i| &imprints[i]);
            let covering: Vec<&Imprint> = covering.collect();
            let place = |imprint: &&Imprint| (imprint.shape, stretch.first - imprint.first);
            let key = (
                stretch.end - stretch.first,
                covering.iter().map(place).collect(),
            );
            let known = local.entry(key).or_insert_with_key(|(bytes, places)| {
                Rc::new(local_classes(*bytes, places, &shapes, &mut names))
            });
            for one in Rc::clone(known).iter() {
                let touch = |(place, mark): &(usize, Mark)| {
                    let imprint = covering[*place];
                    let effect = imprint.effects[mark.effect as usize];
                    let touch = Touch {
                        effect,
                        threads: mark.threads,
                        first: Single {
                            access: imprint.accesses[mark.access as usize],
                            thread: mark.thread,
                        },
                    };
                    (imprint.segment, touch)
                };
                let touches: Vec<(u32, Touch)> = one.marks.iter().map(touch).collect();
                let mut words = Vec::with_capacity(2 * touches.len());
                for ((segment, touch), name) in touches.iter().zip(&one.names) {
                    words.push(u64::from(*segment) << 32 | u64::from(touch.effect));
                    words.push(*name);
                }
                if !classes.insert(words) {
                    continue;
                }
                let class = self.bytes.len();
                self.bytes.push(stretch.first + one.byte);
                for (segment, touch) in touches {
                    let steps = &mut self.segments[segment as usize];
                    match steps.last_mut() {
                        Some(step) if step.class == class => step.touches.push(touch),
                        _ => steps.push(Step {
                            class,
                            touches: vec![touch],
                        }),
                    }
                }
            }
        }
    }

    /// What each segment touches, in parts that have no byte in common.
    fn imprints(&self, shapes: &mut Shapes) -> Vec<Imprint> {
        let mut all = Vec::new();
        let mut access = 0;
        for segment in 0..self.segments.len() as u32 {
            let mut ranges = Vec::new();
            while self.segment.get(access) == Some(&segment) {
                let a = &self.accesses[access];
                if let Some((lo, hi)) = a.at.range_of(a.active) {
                    ranges.push((lo, hi + i64::from(a.bytes), access as u32));
                }
                access += 1;
            }
            ranges.sort_unstable();
            let mut rest = &ranges[..];
            while let Some(&(first, mut end, _)) = rest.first() {
                let count = rest.iter().take_while(|(lo, hi, _)| {
                    let more = *lo < end;
                    end = if more { end.max(*hi) } else { end };
                    more
                });
                let (here, others) = rest.split_at(count.count());
                let mut accesses: Vec<u32> = here.iter().map(|(.., access)| *access).collect();
                accesses.sort_unstable();
                all.push(self.imprint(segment, accesses, first, end, shapes));
                rest = others;
            }
        }
        all
    }

    fn imprint(
        &self,
        segment: u32,
        accesses: Vec<u32>,
        first: i64,
        end: i64,
        shapes: &mut Shapes,
    ) -> Imprint {
        let first = first >> BLOCK << BLOCK;
        let mut effects: Vec<u32> = Vec::new();
        let parts = accesses.iter().map(|&access| {
            let a = &self.accesses[access as usize];
            let of = self.of_access[access as usize];
            let mut local = |effect: i64| {
                let effect = effect as u32;
                let known = effects.iter().position(|&e| e == effect);
                known.unwrap_or_else(|| {
                    effects.push(effect);
                    effects.len() - 1
                })
            };
            let effects = if let Some(effect) = of.one() {
                Num::same(local(effect) as i64)
            } else {
                let values = of.values();
                let each = (0..values.count()).map(|t| local(values.at(t)) as i64);
                Num::each(each.collect())
            };
            ShapePart {
                at: a.at.plus(-first),
                active: a.active,
                effects,
                bytes: a.bytes,
                reads: matches!(a.kind, Kind::Read | Kind::Atomic),
            }
        });
        let parts: Vec<ShapePart> = parts.collect();
        Imprint {
            segment,
            shape: shapes.number(parts),
            first,
            end: ((end - 1) >> BLOCK << BLOCK) + (1 << BLOCK),
            accesses,
            effects,
        }
    }

    /// What an access does for a thread, by its number.
    pub(super) fn effect(&self, access: usize, thread: usize) -> u32 {
        self.of_access[access].at(thread) as u32
    }

    /// Who touches the first unit of a class in a segment, in the order of the text.
    pub(super) fn singles(&self, segment: u32, class: usize) -> impl Iterator<Item = Single> {
        let byte = self.bytes[class];
        let here = (0..self.accesses.len()).filter(move |&i| self.segment[i] == segment);
        here.flat_map(move |access| {
            let a = &self.accesses[access];
            let (at, active) = (a.at.values(), a.active.list());
            let reaches = move |t: &usize| {
                active[*t] && (at.at(*t)..at.at(*t) + i64::from(a.bytes)).contains(&byte)
            };
            let threads = (0..a.active.list().len()).filter(reaches);
            threads.map(move |thread| Single {
                access: access as u32,
                thread: thread as u16,
            })
        })
    }

    /// The segment of an access.
    pub(super) fn segment_of(&self, single: Single) -> u32 {
        self.segment[single.access as usize]
    }

    /// The effect of each access, by number, for each thread.
    fn effects_of(&mut self, versions: &mut Versions) -> Vec<Num> {
        let mut known: QuickMap<Effect, u32> = QuickMap::default();
        let mut all = Vec::with_capacity(self.accesses.len());
        for a in &self.accesses {
            let version = versions.number(&a.version);
            let mut number = |buffer: i64| {
                let effect = Effect {
                    kind: a.kind,
                    maybe: a.maybe,
                    version,
                    buffer: buffer as u16 + 1,
                };
                let known = *known.entry(effect).or_insert_with(|| {
                    self.effects.push(effect);
                    self.effects.len() as u32 - 1
                });
                i64::from(known)
            };
            let first = a.active.first().map_or(0, |t| a.buffer.at(t));
            all.push(if let Some(buffer) = a.buffer.restricted(a.active).one() {
                Num::same(number(buffer))
            } else {
                let (list, buffers) = (a.active.list(), a.buffer.values());
                let each = list.iter().enumerate();
                let each = each.map(|(t, &taken)| if taken { buffers.at(t) } else { first });
                Num::each(each.map(&mut number).collect())
            });
        }
        all
    }

    /// What each segment reads, in the order of the text.
    fn reads_of(&self) -> Vec<Vec<Effect>> {
        let mut all = vec![Vec::new(); self.segments.len()];
        for (numbers, &segment) in self.of_access.iter().zip(&self.segment) {
            let reads: &mut Vec<Effect> = &mut all[segment as usize];
            let values = numbers.values();
            for t in 0..values.count().max(1) {
                let effect = self.effects[values.at(t) as usize];
                let reads_it = matches!(effect.kind, Kind::Read | Kind::Sent | Kind::Atomic);
                if reads_it && !reads.contains(&effect) {
                    reads.push(effect);
                }
            }
        }
        all
    }
}

fn address(event: &Event) -> usize {
    std::ptr::from_ref(event) as usize
}

/// Threads and warps by the order in which they appear in a history.
pub(super) struct Names {
    /// Of each thread, and of each warp: the history in which it got its name, and the name.
    threads: Vec<(u32, u32)>,
    warps: Vec<(u32, u32)>,
    history: u32,
    next: u32,
    /// They keep their own numbers: it matters which warps they are.
    own: bool,
}

/// Whether some warps meet without the others.
fn some_warps_meet(events: &[Event]) -> bool {
    events.iter().any(|event| match event {
        Event::WarpsMeet(_) => true,
        Event::If(_, a, b) => some_warps_meet(a) || some_warps_meet(b),
        Event::Loop(l) => l
            .period
            .iter()
            .any(|iteration| some_warps_meet(&iteration.events)),
        _ => false,
    })
}

impl Names {
    fn new(threads: usize, own: bool) -> Self {
        Self {
            threads: vec![(0, 0); threads],
            warps: vec![(0, 0); threads.div_ceil(32)],
            history: 0,
            next: 0,
            own,
        }
    }

    pub(super) fn forget(&mut self) {
        self.history += 1;
        self.next = 0;
    }

    pub(super) fn of(&mut self, threads: Threads) -> u64 {
        if self.own {
            let warp = |w: u16| (u64::from(w) + 1) << 32;
            return match threads {
                Threads::One(t) => warp(t / 32) | (u64::from(t) + 1),
                Threads::Warp(w) => warp(w),
                Threads::Many => 0,
            };
        }
        let (history, next) = (self.history, &mut self.next);
        let mut name = |slot: &mut (u32, u32)| {
            if slot.0 != history {
                *next += 1;
                *slot = (history, *next);
            }
            u64::from(slot.1)
        };
        match threads {
            Threads::One(t) => {
                let warp = name(&mut self.warps[usize::from(t / 32)]);
                warp << 32 | name(&mut self.threads[usize::from(t)])
            }
            Threads::Warp(w) => name(&mut self.warps[usize::from(w)]) << 32,
            Threads::Many => 0,
        }
    }
}
