//! Classes of units against bytes: a random trace is refused by one if and only if it is by the other.

mod paths;

use std::rc::Rc;

use super::histories::Histories;
use super::memory::{Effect, Threads, Unit};
use super::ordered;
use super::versions::Versions;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::symbols::Symbols;
use crate::prove::walk::execute::{Event, Trace};
use crate::prove::walk::memory::{Access, Kind};
use crate::quick::QuickMap;

const THREADS: usize = 96;

/// A generator of numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

fn trace(events: Vec<Event>) -> Trace {
    let accesses = events.iter().filter_map(|e| match e {
        Event::Access(a) => Some(Rc::clone(a)),
        _ => None,
    });
    Trace {
        threads: THREADS,
        accesses: accesses.collect(),
        fetches: Vec::new(),
        events,
        global: Vec::new(),
        boxes: Vec::new(),
        addresses: 0,
        blocks: [0; 3],
        ranks: None,
        used: QuickMap::default(),
        symbols: Symbols::default(),
        promises: Vec::new(),
        assumptions: Vec::new(),
        tilings: Vec::new(),
        walks: Vec::new(),
        deals: Vec::new(),
        params: Vec::new(),
        whole_axes: Vec::new(),
        meetings: Vec::new(),
    }
}

fn access(kind: Kind, bytes: u32, at: impl Fn(usize) -> i64) -> Access {
    Access {
        kind,
        op: None,
        name: "an access".to_owned(),
        at: Num::each((0..THREADS).map(|t| at(t).max(0)).collect()),
        active: Mask::of((0..THREADS).map(|t| at(t) >= 0).collect()),
        buffer: Num::ZERO,
        version: Vec::new(),
        bytes,
        maybe: false,
        tagged: false,
        exact: true,
        source: None,
    }
}

/// Some accesses of 512 bytes with barriers and waits between them, mostly in order.
fn events(random: &mut Random) -> Vec<Event> {
    let mut all = Vec::new();
    for _ in 0..2 + random.below(6) {
        let bytes = 1 << random.below(5);
        let slots = 512 / i64::from(bytes);
        let kind = [Kind::Read, Kind::Write, Kind::Async][random.below(3) as usize];
        // Who is where: thread after thread, warps shifted, lanes reversed, or all at a few places.
        let (shape, by) = (random.below(6), random.below(4) as i64);
        let some = random.below(4) == 0;
        let mut a = access(kind, bytes, |t| {
            let t = t as i64;
            let slot = match shape {
                0 => t + by,
                1 => (t + 32 * by) % 96,
                2 => t ^ 31,
                3 if kind == Kind::Read => t / 8 + by,
                4 if t % 32 == by => t / 32,
                4 => return -1,
                5 if t / 32 != by => return -1,
                _ => t,
            };
            if slot < slots && (!some || t % 2 == 0) {
                slot * i64::from(bytes)
            } else {
                -1
            }
        });
        a.maybe = kind != Kind::Read && random.below(5) == 0;
        let odd = |t: usize| i64::from(random.0 & 0x7000 == 0 && t % 2 == 1);
        a.buffer = Num::each((0..THREADS).map(odd).collect());
        all.push(Event::Access(Rc::new(a)));
        if kind == Kind::Async && random.below(4) != 0 {
            all.push(Event::Commit);
            all.push(Event::Wait(random.below(8) as u32 / 6));
        }
        match random.below(5) {
            0..=2 => all.push(Event::Barrier),
            3 if random.below(2) == 0 => all.push(Event::WarpBarrier),
            3 => {
                let warps = random.below(8);
                let is = |t: usize| warps >> (t / 32) & 1 == 1;
                all.push(Event::WarpsMeet(Mask::of((0..THREADS).map(is).collect())));
            }
            _ => {}
        }
    }
    all
}

/// Byte by byte and thread by thread.
fn refused_by_bytes(events: &[Event]) -> bool {
    let mut bytes = [Unit::EMPTY; 512];
    for event in events {
        let Event::Access(a) = event else {
            for unit in &mut bytes {
                unit.synchronise(event);
            }
            continue;
        };
        for (thread, _) in a.active.list().iter().enumerate().filter(|(_, a)| **a) {
            let at = a.at.at(thread);
            let effect = Effect {
                kind: a.kind,
                maybe: a.maybe,
                version: 0,
                buffer: a.buffer.at(thread) as u16 + 1,
            };
            let thread = thread as u16;
            for unit in &mut bytes[at as usize..][..a.bytes as usize] {
                let fault = unit.touch(effect, Threads::One(thread), true, (0, thread));
                if fault.is_some() {
                    return true;
                }
            }
        }
    }
    false
}

#[test]
fn classes_are_refused_where_bytes_are() {
    let mut random = Random(7);
    let mut seen = [0, 0];
    for round in 0..4000 {
        let events = events(&mut random);
        let refused = refused_by_bytes(&events);
        let by_classes = ordered(&trace(events.clone()));
        assert_eq!(by_classes.is_err(), refused, "{round}: {events:?}");
        seen[usize::from(refused)] += 1;
    }
    assert!(seen[0] > 400 && seen[1] > 400, "{seen:?}");
}

#[test]
fn units_that_threads_treat_alike_are_one_class() {
    // Each thread writes 16 bytes; a warp reads what it wrote, a lane further, so that lane 31 reads what lane 0 wrote.
    let write = access(Kind::Write, 16, |t| 16 * t as i64);
    let read = access(Kind::Read, 16, |t| 16 * (t - t % 32 + (t + 1) % 32) as i64);
    let events = |last: Access| {
        vec![
            Event::Access(Rc::new(write.clone())),
            Event::WarpBarrier,
            Event::Access(Rc::new(last)),
        ]
    };
    let classes =
        |trace: &Trace| Histories::of(&trace.events, trace.threads, &mut Versions::default()).bytes;
    let within = trace(events(read));
    assert_eq!(classes(&within), [0]);
    assert!(ordered(&within).is_ok());
    // The last 8 bytes of thread 95's are read by another warp, the first 8 by nobody.
    let across = access(Kind::Read, 8, |t| if t == 0 { 16 * 95 + 8 } else { -1 });
    let across = trace(events(across));
    assert_eq!(classes(&across), [0, 16 * 95 + 8]);
    let error = ordered(&across).expect_err("a race").to_string();
    assert!(
        error.contains("thread 95") && error.contains("byte 1528"),
        "{error}"
    );
}

#[test]
fn what_some_threads_may_write_is_not_overwritten_by_others_without_a_barrier() {
    let mut some = access(Kind::Write, 4, |t| 4 * t as i64);
    some.maybe = true;
    let all = access(Kind::Write, 4, |t| 4 * (t ^ 1) as i64);
    let (some, all) = (Event::Access(Rc::new(some)), Event::Access(Rc::new(all)));
    let error = ordered(&trace(vec![some.clone(), all.clone()])).expect_err("a race");
    assert_eq!(error.code(), "race", "{error}");
    assert!(ordered(&trace(vec![some, Event::Barrier, all])).is_ok());
}
