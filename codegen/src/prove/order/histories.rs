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
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) effect: u32,
    pub(super) threads: Threads,
    /// The accesses and threads that it stands for, among those of the class.
    pub(super) single: Range<usize>,
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
    /// Who touches the first unit of each class, class after class.
    pub(super) singles: Vec<Single>,
    /// The segment of an access that is the first of one, by the address of its event.
    begins: QuickMap<usize, u32>,
    /// The segment of each access.
    segment: Vec<u32>,
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
        let lists = units.lists(&self.accesses);
        let effects = self.effects_of(versions);
        self.reads = self.reads_of(&effects);
        let mut classes: QuickSet<Vec<u64>> = QuickSet::default();
        let mut names = Names::new(threads);
        let mut words = Vec::new();
        for (unit, list) in lists.each() {
            names.forget();
            words.clear();
            self.touches(list, &effects, |segment, touch| {
                words.push(u64::from(segment) << 32 | u64::from(touch.effect));
                words.push(names.of(touch.threads));
            });
            if classes.contains(&words) {
                continue;
            }
            classes.insert(words.clone());
            let class = self.bytes.len();
            self.bytes.push(units.byte(unit));
            let first = self.singles.len();
            self.singles.extend_from_slice(list);
            let mut touches = Vec::new();
            self.touches(list, &effects, |segment, touch| {
                touches.push((segment, touch))
            });
            for (segment, mut touch) in touches {
                touch.single = touch.single.start + first..touch.single.end + first;
                let steps = &mut self.segments[segment as usize];
                match steps.last_mut() {
                    Some(last) if last.class == class => last.touches.push(touch),
                    _ => steps.push(Step {
                        class,
                        touches: vec![touch],
                    }),
                }
            }
        }
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

    /// What the accesses in a list do, one after the other, each with its segment.
    fn touches(&self, list: &[Single], effects: &[Vec<u32>], mut done: impl FnMut(u32, Touch)) {
        let of = |single: &Single| {
            let access = single.access as usize;
            let effect = match &effects[access][..] {
                [one] => *one,
                each => each[usize::from(single.thread)],
            };
            (self.segment[access], effect)
        };
        let mut i = 0;
        while let Some(single) = list.get(i) {
            let (segment, effect) = of(single);
            let (start, mut threads) = (i, Threads::One(single.thread));
            i += 1;
            if self.effects[effect as usize].kind == Kind::Read {
                while let Some(next) = list.get(i).filter(|next| of(next) == (segment, effect)) {
                    threads = threads.and(next.thread);
                    i += 1;
                }
            }
            let touch = Touch {
                effect,
                threads,
                single: start..i,
            };
            done(segment, touch);
        }
    }
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

    /// The units of each thread's access, in the order of the threads.
    fn touched<'a>(&'a self, a: &'a Access) -> impl Iterator<Item = (u16, Range<usize>)> + 'a {
        let taking_part = a.at.iter().enumerate().filter(|(_, at)| **at >= 0);
        taking_part.map(|(thread, &at)| {
            let last = self.at(at + i64::from(a.bytes) - 1);
            (thread as u16, self.at(at)..last + 1)
        })
    }

    /// The first byte of a unit.
    fn byte(&self, number: usize) -> i64 {
        let block = self.blocks.partition_point(|b| b.0 as usize <= number) - 1;
        let (first, unit) = self.blocks[block];
        ((block << BLOCK) + ((number - first as usize) << unit)) as i64
    }

    /// Who touches each unit.
    fn lists(&self, accesses: &[Rc<Access>]) -> Lists {
        let mut ends = vec![0u32; self.count + 1];
        for a in accesses {
            for unit in self.touched(a).flat_map(|(_, units)| units) {
                ends[unit + 1] += 1;
            }
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let all = ends.last().copied().unwrap_or(0) as usize;
        let none = Single {
            access: 0,
            thread: 0,
        };
        let mut singles = vec![none; all];
        // The next place of each unit; in the end, that is where the next unit's places begin.
        let mut next = ends;
        for (number, a) in accesses.iter().enumerate() {
            for (thread, units) in self.touched(a) {
                for unit in units {
                    let access = number as u32;
                    singles[next[unit] as usize] = Single { access, thread };
                    next[unit] += 1;
                }
            }
        }
        Lists {
            singles,
            ends: next,
        }
    }
}

/// The accesses that touch each unit, unit after unit.
struct Lists {
    singles: Vec<Single>,
    ends: Vec<u32>,
}

impl Lists {
    /// The units that anything touches.
    fn each(&self) -> impl Iterator<Item = (usize, &[Single])> {
        let mut start = 0;
        self.ends
            .iter()
            .enumerate()
            .filter_map(move |(unit, &end)| {
                let list = &self.singles[start as usize..end as usize];
                start = end;
                (!list.is_empty()).then_some((unit, list))
            })
    }
}
