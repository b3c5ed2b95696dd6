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

use std::ops::Range;
use std::rc::Rc;

use super::memory::{Effect, Threads};
use super::versions::Versions;
use crate::prove::execute::{Event, Trace};
use crate::prove::memory::{Access, Kind};
use crate::prove::quick::{QuickMap, QuickSet};

/// Bytes of the largest unit, as a power of two.
const BLOCK: u32 = 4;

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
    /// The effects of each access: one for all its threads, or one for each.
    of_access: Vec<Vec<u32>>,
    /// What each segment reads.
    reads: Vec<Vec<Effect>>,
}

impl Histories {
    pub(super) fn of(trace: &Trace, versions: &mut Versions) -> Self {
        let mut all = Self::default();
        all.segments_of(&trace.events);
        let units = Units::of(&all.accesses);
        all.classify(&units, versions, trace.threads);
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
                    for turn in &l.period {
                        self.segments_of(&turn.events);
                    }
                }
                _ => {}
            }
        }
    }

    /// The classes of units by their histories.
    fn classify(&mut self, units: &Units, versions: &mut Versions, threads: usize) {
        self.of_access = self.effects_of(versions);
        self.reads = self.reads_of(&self.of_access);
        let (parts, last) = self.parts(units);
        let mut classes: QuickSet<Vec<u64>> = QuickSet::default();
        let mut names = Names::new(threads);
        let (mut list, mut words) = (Vec::new(), Vec::new());
        for (unit, &last) in last.iter().enumerate() {
            list.clear();
            let mut at = last;
            while let Some(part) = parts.get(at as usize) {
                list.push(part);
                at = part.before;
            }
            if list.is_empty() {
                continue;
            }
            names.forget();
            words.clear();
            for part in list.iter().rev() {
                words.push(u64::from(part.segment) << 32 | u64::from(part.touch.effect));
                words.push(names.of(part.touch.threads));
            }
            if classes.contains(&words) {
                continue;
            }
            classes.insert(words.clone());
            let class = self.bytes.len();
            self.bytes.push(units.byte(unit));
            for part in list.iter().rev() {
                let steps = &mut self.segments[part.segment as usize];
                match steps.last_mut() {
                    Some(step) if step.class == class => step.touches.push(part.touch),
                    _ => steps.push(Step {
                        class,
                        touches: vec![part.touch],
                    }),
                }
            }
        }
    }

    /// What accesses do to units, and the last of it for each unit, if there is any.
    fn parts(&self, units: &Units) -> (Vec<Part>, Vec<u32>) {
        let mut parts: Vec<Part> = Vec::new();
        let mut last = vec![u32::MAX; units.count];
        for (access, a) in self.accesses.iter().enumerate() {
            let segment = self.segment[access];
            for (thread, &at) in a.at.iter().enumerate().filter(|(_, at)| **at >= 0) {
                let effect = self.effect(access, thread);
                let (access, thread) = (access as u32, thread as u16);
                for unit in units.touched(at, a.bytes) {
                    let last = &mut last[unit];
                    if a.kind == Kind::Read
                        && let Some(part) = parts.get_mut(*last as usize)
                        && (part.segment, part.touch.effect) == (segment, effect)
                    {
                        part.touch.threads = part.touch.threads.and(thread);
                        continue;
                    }
                    let part = Part {
                        before: *last,
                        segment,
                        touch: Touch {
                            effect,
                            threads: Threads::One(thread),
                            first: Single { access, thread },
                        },
                    };
                    *last = parts.len() as u32;
                    parts.push(part);
                }
            }
        }
        (parts, last)
    }

    /// What an access does for a thread, by its number.
    pub(super) fn effect(&self, access: usize, thread: usize) -> u32 {
        match &self.of_access[access][..] {
            [one] => *one,
            each => each[thread],
        }
    }

    /// Who touches the first unit of a class in a segment, in the order of the text.
    pub(super) fn singles(&self, segment: u32, class: usize) -> impl Iterator<Item = Single> {
        let byte = self.bytes[class];
        let here = (0..self.accesses.len()).filter(move |&i| self.segment[i] == segment);
        here.flat_map(move |access| {
            let a = &self.accesses[access];
            let reach = move |at: i64| at >= 0 && (at..at + i64::from(a.bytes)).contains(&byte);
            let threads = (0..a.at.len()).filter(move |&t| reach(a.at[t]));
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

    /// The effect of each access: one for all its threads, or one for each.
    fn effects_of(&mut self, versions: &mut Versions) -> Vec<Vec<u32>> {
        let mut known: QuickMap<Effect, u32> = QuickMap::default();
        let mut all = Vec::with_capacity(self.accesses.len());
        for a in &self.accesses {
            let version = versions.number(&a.version);
            let mut number = |buffer: u16| {
                let effect = Effect {
                    kind: a.kind,
                    maybe: a.maybe,
                    version,
                    buffer: buffer + 1,
                };
                *known.entry(effect).or_insert_with(|| {
                    self.effects.push(effect);
                    self.effects.len() as u32 - 1
                })
            };
            let taking_part = |(at, buffer): (&i64, &u16)| (*at >= 0).then_some(*buffer);
            let buffers = || a.at.iter().zip(&a.buffer).map(taking_part);
            let first = buffers().flatten().next().unwrap_or(0);
            all.push(if buffers().flatten().all(|b| b == first) {
                vec![number(first)]
            } else {
                buffers().map(|b| number(b.unwrap_or(first))).collect()
            });
        }
        all
    }

    /// What each segment reads, in the order of the text.
    fn reads_of(&self, effects: &[Vec<u32>]) -> Vec<Vec<Effect>> {
        let mut all = vec![Vec::new(); self.segments.len()];
        for (numbers, &segment) in effects.iter().zip(&self.segment) {
            let reads: &mut Vec<Effect> = &mut all[segment as usize];
            let effects = numbers.iter().map(|&n| self.effects[n as usize]);
            for effect in effects.filter(|e| e.kind == Kind::Read) {
                if !reads.contains(&effect) {
                    reads.push(effect);
                }
            }
        }
        all
    }
}

/// What one step does to a unit, while histories are collected.
struct Part {
    /// The part before it, if there is one.
    before: u32,
    segment: u32,
    touch: Touch,
}

fn address(event: &Event) -> usize {
    std::ptr::from_ref(event) as usize
}

/// Threads and warps by the order in which they appear in a history.
struct Names {
    /// Of each thread, and of each warp: the history in which it got its name, and the name.
    threads: Vec<(u32, u32)>,
    warps: Vec<(u32, u32)>,
    history: u32,
    next: u32,
}

impl Names {
    fn new(threads: usize) -> Self {
        Self {
            threads: vec![(0, 0); threads],
            warps: vec![(0, 0); threads.div_ceil(32)],
            history: 0,
            next: 0,
        }
    }

    fn forget(&mut self) {
        self.history += 1;
        self.next = 0;
    }

    fn of(&mut self, threads: Threads) -> u64 {
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

/// Shared memory cut into units, each of which an access touches as a whole or not at all.
struct Units {
    /// Of each block: the number of its first unit, and the bytes of its units as a power of two.
    blocks: Vec<(u32, u32)>,
    count: usize,
}

impl Units {
    fn of(accesses: &[Rc<Access>]) -> Self {
        let end = |a: &Rc<Access>| a.at.iter().map(|at| at + i64::from(a.bytes)).max();
        let bytes = accesses.iter().filter_map(end).max().unwrap_or(0).max(0);
        let mut blocks = vec![(0, BLOCK); (bytes as usize).div_ceil(1 << BLOCK)];
        for a in accesses {
            let bytes = i64::from(a.bytes);
            for &at in a.at.iter().filter(|at| **at >= 0) {
                let fits = (at | bytes).trailing_zeros();
                if fits >= BLOCK && bytes == 1 << BLOCK {
                    continue;
                }
                let first = (at >> BLOCK) as usize;
                let last = ((at + bytes - 1) >> BLOCK) as usize;
                for (_, unit) in &mut blocks[first..=last] {
                    *unit = fits.min(*unit);
                }
            }
        }
        let mut count = 0u32;
        for (first, unit) in &mut blocks {
            *first = count;
            count += 1 << (BLOCK - *unit);
        }
        Self {
            blocks,
            count: count as usize,
        }
    }

    /// The unit of a byte.
    fn at(&self, byte: i64) -> usize {
        let (first, unit) = self.blocks[(byte >> BLOCK) as usize];
        first as usize + ((byte as usize & ((1 << BLOCK) - 1)) >> unit)
    }

    /// The units that a thread's access touches.
    fn touched(&self, at: i64, bytes: u32) -> Range<usize> {
        let first = self.at(at);
        if bytes == 1 << self.blocks[(at >> BLOCK) as usize].1 {
            return first..first + 1;
        }
        first..self.at(at + i64::from(bytes) - 1) + 1
    }

    /// The first byte of a unit.
    fn byte(&self, number: usize) -> i64 {
        let block = self.blocks.partition_point(|b| b.0 as usize <= number) - 1;
        let (first, unit) = self.blocks[block];
        ((block << BLOCK) + ((number - first as usize) << unit)) as i64
    }
}
