//! The state of shared memory, unit by unit: who wrote it last, how far that write is ordered, and who has read it since.

use std::hash::{Hash, Hasher};

use crate::prove::execute::Event;
use crate::prove::memory::{Access, Kind};

/// Who has touched a unit since the last barrier that concerns it.
pub(super) const NOBODY: u16 = u16::MAX;
/// More than one thread of a warp has; the warp is kept beside it.
const WARP: u16 = 0x8000;
/// Threads of several warps have.
pub(super) const MANY: u16 = u16::MAX - 1;

/// One unit of shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// The view that wrote it, plus one; 0 if nothing has.
    pub(super) buffer: u16,
    /// Which of the view's values at this place it is.
    pub(super) version: u16,
    /// The thread that wrote it.
    pub(super) writer: u16,
    /// How far the write is ordered.
    pub(super) seen: Seen,
    /// Who has read it since.
    pub(super) reader: u16,
    /// The access that wrote it, and one that read it: for messages.
    pub(super) by: [u16; 2],
    /// A thread that has read it: for messages.
    pub(super) a_reader: u16,
}

impl Unit {
    /// One that nobody has touched.
    pub(super) const EMPTY: Unit = Unit {
        buffer: 0,
        version: 0,
        writer: NOBODY,
        seen: Seen::All,
        reader: NOBODY,
        by: [0; 2],
        a_reader: NOBODY,
    };
}

/// States are the same whatever the accesses were called.
impl PartialEq for Unit {
    fn eq(&self, other: &Self) -> bool {
        (
            self.buffer,
            self.version,
            self.writer,
            self.seen,
            self.reader,
        ) == (
            other.buffer,
            other.version,
            other.writer,
            other.seen,
            other.reader,
        )
    }
}

impl Eq for Unit {}

/// To whom a write is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Seen {
    /// An asynchronous copy in the group that is still open.
    Open,
    /// One in a closed group, so many groups ago.
    Pending(u8),
    /// Waited for, or written by an instruction: the thread itself sees it.
    Own,
    /// The warp sees it.
    Warp,
    /// All threads see it.
    All,
}

impl Hash for Unit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let seen = match self.seen {
            Seen::Open => 0,
            Seen::Own => 1,
            Seen::Warp => 2,
            Seen::All => 3,
            Seen::Pending(n) => 4 + u64::from(n),
        };
        let touched = u64::from(self.writer) << 32 | u64::from(self.reader) << 16 | seen;
        state.write_u64(touched ^ u64::from(self.buffer) << 48 ^ u64::from(self.version) << 56);
    }
}

#[derive(Clone, Copy)]
pub(super) enum Fault {
    Undefined(&'static str),
    AfterWrite(&'static str),
    AfterRead(&'static str),
}

const BARRIER: &str = "no barrier orders them";

pub(super) fn read(
    unit: &mut Unit,
    thread: u16,
    (buffer, version): (u16, u16),
    number: u16,
) -> Option<Fault> {
    if unit.buffer == 0 {
        return Some(Fault::Undefined("nothing has written it"));
    }
    if unit.buffer != buffer {
        return Some(Fault::Undefined("another view has written it"));
    }
    if unit.version != version {
        return Some(Fault::Undefined("what is there is of another pass"));
    }
    match unit.seen {
        Seen::Open | Seen::Pending(_) => {
            return Some(Fault::Undefined(
                "the asynchronous copy that writes it was not waited for",
            ));
        }
        Seen::Own if unit.writer != thread => return Some(Fault::AfterWrite(BARRIER)),
        Seen::Warp if unit.writer / 32 != thread / 32 => return Some(Fault::AfterWrite(BARRIER)),
        _ => {}
    }
    unit.reader = match unit.reader {
        NOBODY => thread,
        MANY => MANY,
        r if r == thread => r,
        r if warp_of(r) != thread / 32 => MANY,
        // Readers before the warp's barrier are ordered before whatever this warp does.
        r if r >= WARP => r,
        r if r >= DONE => thread,
        _ => WARP | (thread / 32),
    };
    (unit.by[1], unit.a_reader) = (number, thread);
    None
}

pub(super) fn write(
    unit: &mut Unit,
    thread: u16,
    a: &Access,
    index: usize,
    number: u16,
) -> Option<Fault> {
    // Nobody else may be about to read what is overwritten.
    match unit.reader {
        NOBODY => {}
        r if r == thread => {}
        r if r != MANY && (DONE..WARP).contains(&r) && warp_of(r) == thread / 32 => {}
        _ => return Some(Fault::AfterRead(BARRIER)),
    }
    if unit.buffer != 0 {
        match unit.seen {
            Seen::Open | Seen::Pending(_) => {
                return Some(Fault::AfterWrite(
                    "the asynchronous copy that writes it was not waited for",
                ));
            }
            Seen::Own if unit.writer != thread => return Some(Fault::AfterWrite(BARRIER)),
            Seen::Warp if unit.writer / 32 != thread / 32 => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            _ => {}
        }
    }
    // A write that threads may leave out leaves what was there, or nothing.
    let buffer = if a.maybe && unit.buffer != a.buffer[index] + 1 {
        0
    } else {
        a.buffer[index] + 1
    };
    *unit = Unit {
        buffer,
        version: a.version,
        writer: thread,
        seen: if a.kind == Kind::Async {
            Seen::Open
        } else {
            Seen::Own
        },
        reader: NOBODY,
        by: [number, unit.by[1]],
        a_reader: NOBODY,
    };
    None
}

pub(super) fn synchronise(event: &Event, units: &mut [Unit]) {
    for unit in units {
        match event {
            Event::Barrier => {
                unit.reader = NOBODY;
                if matches!(unit.seen, Seen::Own | Seen::Warp) {
                    (unit.seen, unit.writer) = (Seen::All, NOBODY);
                }
            }
            Event::WarpBarrier => {
                // Readers of the writer's own warp are done; which warp that is stays known.
                if unit.seen == Seen::Own {
                    unit.seen = Seen::Warp;
                }
                unit.reader = match unit.reader {
                    NOBODY => NOBODY,
                    MANY => MANY,
                    r => done(r),
                };
            }
            Event::Commit => {
                unit.seen = match unit.seen {
                    Seen::Open => Seen::Pending(0),
                    Seen::Pending(n) => Seen::Pending(n.saturating_add(1)),
                    other => other,
                };
            }
            Event::Wait(pending) => {
                if let Seen::Pending(n) = unit.seen
                    && u32::from(n) >= *pending
                {
                    unit.seen = Seen::Own;
                }
            }
            _ => {}
        }
    }
}

/// Readers of one warp after a barrier of the warp: that warp may write now, others may not.
fn done(reader: u16) -> u16 {
    DONE | warp_of(reader)
}

/// The warp of a reader that is not [`NOBODY`] and not [`MANY`].
fn warp_of(reader: u16) -> u16 {
    if reader >= DONE {
        reader & 0xff
    } else {
        reader / 32
    }
}

/// A warp has read, and its lanes have met since.
pub(super) const DONE: u16 = 0x4000;
