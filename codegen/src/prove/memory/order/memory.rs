//! The state of a unit of shared memory: who wrote it last, how far that write is ordered, and who has read it since.

use std::hash::{Hash, Hasher};

use crate::prove::walk::execute::Event;
use crate::prove::walk::memory::Kind;

/// What an access does to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Effect {
    pub(super) kind: Kind,
    /// Threads may leave it out.
    pub(super) maybe: bool,
    /// Which of the view's values at this place is meant.
    pub(super) version: u32,
    /// The view, plus one.
    pub(super) buffer: u16,
}

/// Threads that do the same, as far as it matters: whether they are one thread, or of one warp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Threads {
    One(u16),
    /// Several of a warp.
    Warp(u16),
    /// Of several warps.
    Many,
}

impl Threads {
    /// These threads and one more.
    pub(super) fn and(self, thread: u16) -> Self {
        match self {
            Self::One(t) if t == thread => self,
            _ if self.warp() == Some(thread / 32) => Self::Warp(thread / 32),
            _ => Self::Many,
        }
    }

    /// Their warp, if it is one.
    fn warp(self) -> Option<u16> {
        match self {
            Self::One(t) => Some(t / 32),
            Self::Warp(w) => Some(w),
            Self::Many => None,
        }
    }
}

/// Who has read a unit since it was written, or since a barrier of the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Readers {
    Nobody,
    Some(Threads),
    /// Threads of this warp, whose lanes have met since: that warp may write now, others may not.
    Done(u16),
}

/// The thread of a write that all threads see.
pub(super) const NOBODY: u16 = u16::MAX;

/// One unit of shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// The view that wrote it, plus one; 0 if nothing has.
    pub(super) buffer: u16,
    /// Which of the view's values at this place it is.
    pub(super) version: u32,
    /// The thread that wrote it.
    pub(super) writer: u16,
    /// How far the write is ordered.
    pub(super) seen: Seen,
    /// Copies to global memory see that write.
    pub(super) fenced: bool,
    /// Who has read it since.
    pub(super) readers: Readers,
    /// The copy to global memory that may still read it.
    pub(super) sent: Sent,
    /// The access that wrote it, and one that read it: for messages.
    pub(super) by: [u32; 2],
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
        fenced: false,
        readers: Readers::Nobody,
        sent: Sent::No,
        by: [0; 2],
        a_reader: NOBODY,
    };

    /// What makes two states differ; not whom messages would name.
    fn state(&self) -> (u16, u32, u16, (Seen, bool), (Readers, Sent)) {
        (
            self.buffer,
            self.version,
            self.writer,
            (self.seen, self.fenced),
            (self.readers, self.sent),
        )
    }
}

impl PartialEq for Unit {
    fn eq(&self, other: &Self) -> bool {
        self.state() == other.state()
    }
}

impl Eq for Unit {}

impl Hash for Unit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.state().hash(state);
    }
}

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
    /// Atomic operations of any threads, which see each other.
    Atomic,
    /// All threads see it.
    All,
}

/// A copy to global memory that may still read a unit, with the thread that issued it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Sent {
    /// None.
    No,
    /// One of the group that is still open.
    Open(u16),
    /// One of a closed group, so many groups ago.
    Pending(u16, u8),
}

#[derive(Clone, Copy)]
pub(super) enum Fault {
    Undefined(&'static str),
    AfterWrite(&'static str),
    AfterRead(&'static str),
}

const BARRIER: &str = "no barrier orders them";
const NO_FENCE: &str = "no fence makes it visible to copies (fence.proxy.async by the threads that wrote it, before the barrier)";
const STILL_READ: &str = "the copy that reads it was not waited for";
const ON_ITS_WAY: &str = "the asynchronous copy that writes it was not waited for";

impl Unit {
    /// Threads read or write it. `expected` says whether the version that is there is the one that the access means; `named` is an access and a
    /// thread, for messages.
    pub(super) fn touch(
        &mut self,
        effect: Effect,
        threads: Threads,
        expected: bool,
        named: (u32, u16),
    ) -> Option<Fault> {
        match (effect.kind, threads) {
            (Kind::Read, threads) => self.read(effect, threads, expected, named),
            (Kind::Atomic, threads) => self.combine(effect, threads, expected, named),
            (Kind::Sent, Threads::One(thread)) => self.send(effect, thread, expected, named.0),
            (_, Threads::One(thread)) => self.write(effect, thread, expected, named.0),
            // Several at once.
            _ => Some(Fault::AfterWrite(BARRIER)),
        }
    }

    /// What stands in the way of a read.
    fn unreadable(&self, effect: Effect, threads: Threads, expected: bool) -> Option<Fault> {
        if self.buffer == 0 {
            return Some(Fault::Undefined("nothing has written it"));
        }
        if self.buffer != effect.buffer {
            return Some(Fault::Undefined("another view has written it"));
        }
        if !expected {
            return Some(Fault::Undefined("what is there is of another pass"));
        }
        match self.seen {
            Seen::Open | Seen::Pending(_) => return Some(Fault::Undefined(ON_ITS_WAY)),
            Seen::Own if threads != Threads::One(self.writer) => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            Seen::Warp if threads.warp() != Some(self.writer / 32) => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            Seen::Atomic if effect.kind != Kind::Atomic => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            _ => {}
        }
        None
    }

    /// Threads combine what is there with values of theirs, in any order.
    fn combine(
        &mut self,
        effect: Effect,
        threads: Threads,
        expected: bool,
        (access, thread): (u32, u16),
    ) -> Option<Fault> {
        if let Some(fault) = self.unreadable(effect, threads, expected) {
            return Some(fault);
        }
        if self.sent != Sent::No {
            return Some(Fault::AfterRead(STILL_READ));
        }
        match self.readers {
            Readers::Nobody => {}
            Readers::Some(before) if before == threads && matches!(threads, Threads::One(_)) => {}
            _ => return Some(Fault::AfterRead(BARRIER)),
        }
        (self.seen, self.writer, self.fenced) = (Seen::Atomic, NOBODY, false);
        (self.readers, self.by[0], self.a_reader) = (Readers::Nobody, access, thread);
        None
    }

    fn read(
        &mut self,
        effect: Effect,
        threads: Threads,
        expected: bool,
        (access, thread): (u32, u16),
    ) -> Option<Fault> {
        if let Some(fault) = self.unreadable(effect, threads, expected) {
            return Some(fault);
        }
        self.read_by(threads);
        (self.by[1], self.a_reader) = (access, thread);
        None
    }

    /// A copy to global memory reads it from here on.
    fn send(&mut self, effect: Effect, thread: u16, expected: bool, access: u32) -> Option<Fault> {
        if let Some(fault) = self.unreadable(effect, Threads::One(thread), expected) {
            return Some(fault);
        }
        if !self.fenced {
            return Some(Fault::Undefined(NO_FENCE));
        }
        match self.sent {
            Sent::Open(by) | Sent::Pending(by, _) if by != thread => {
                return Some(Fault::AfterRead(STILL_READ));
            }
            _ => self.sent = Sent::Open(thread),
        }
        (self.by[1], self.a_reader) = (access, thread);
        None
    }

    /// Threads have read it.
    fn read_by(&mut self, threads: Threads) {
        self.readers = match self.readers {
            Readers::Nobody => Readers::Some(threads),
            // Readers before the warp's barrier are ordered before whatever this warp does.
            Readers::Done(warp) if threads.warp() == Some(warp) => Readers::Some(threads),
            Readers::Done(_) => Readers::Some(Threads::Many),
            Readers::Some(before) => Readers::Some(match threads {
                Threads::One(thread) => before.and(thread),
                Threads::Warp(_) if before.warp() == threads.warp() => threads,
                _ => Threads::Many,
            }),
        };
    }

    fn write(&mut self, effect: Effect, thread: u16, expected: bool, access: u32) -> Option<Fault> {
        if self.sent != Sent::No {
            return Some(Fault::AfterRead(STILL_READ));
        }
        // Nobody else may be about to read what is overwritten.
        match self.readers {
            Readers::Nobody => {}
            Readers::Some(threads) if threads == Threads::One(thread) => {}
            Readers::Done(warp) if warp == thread / 32 => {}
            _ => return Some(Fault::AfterRead(BARRIER)),
        }
        // A write that threads may leave out is there as much as any other.
        match self.seen {
            Seen::Open | Seen::Pending(_) => return Some(Fault::AfterWrite(ON_ITS_WAY)),
            Seen::Atomic => return Some(Fault::AfterWrite(BARRIER)),
            Seen::Own if self.writer != thread => return Some(Fault::AfterWrite(BARRIER)),
            Seen::Warp if self.writer / 32 != thread / 32 => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            _ => {}
        }
        // A write that threads may leave out leaves what was there, or nothing.
        let same = self.buffer == effect.buffer && expected;
        let buffer = if effect.maybe && !same {
            0
        } else {
            effect.buffer
        };
        *self = Unit {
            buffer,
            version: effect.version,
            writer: thread,
            seen: if effect.kind == Kind::Async {
                Seen::Open
            } else {
                Seen::Own
            },
            fenced: false,
            readers: Readers::Nobody,
            sent: Sent::No,
            by: [access, self.by[1]],
            a_reader: NOBODY,
        };
        None
    }

    /// The lanes of these warps meet.
    fn warps_meet(&mut self, is: impl Fn(u16) -> bool) {
        // Readers of the writer's own warp are done; which warp that is stays known.
        if self.seen == Seen::Own && is(self.writer / 32) {
            self.seen = Seen::Warp;
        }
        if let Readers::Some(threads) = self.readers
            && let Some(warp) = threads.warp()
            && is(warp)
        {
            self.readers = Readers::Done(warp);
        }
    }

    /// Nothing that was done to it is still to be ordered by a barrier, or under way.
    pub(super) fn is_settled(&self) -> bool {
        self.seen == Seen::All && self.readers == Readers::Nobody && self.sent == Sent::No
    }

    /// A barrier, a commit or a wait of all threads.
    pub(super) fn synchronise(&mut self, event: &Event) {
        match event {
            // Since they have parted, threads of the role alone have touched what is followed here.
            Event::Barrier | Event::RoleMeets => {
                self.readers = Readers::Nobody;
                if matches!(self.seen, Seen::Own | Seen::Warp | Seen::Atomic) {
                    (self.seen, self.writer) = (Seen::All, NOBODY);
                }
            }
            Event::WarpBarrier => self.warps_meet(|_| true),
            Event::WarpsMeet(threads) => {
                let active = threads.list();
                self.warps_meet(|warp| active[32 * usize::from(warp)]);
            }
            Event::Commit => {
                self.seen = match self.seen {
                    Seen::Open => Seen::Pending(0),
                    Seen::Pending(n) => Seen::Pending(n.saturating_add(1)),
                    other => other,
                };
            }
            Event::Wait(pending) => {
                if let Seen::Pending(n) = self.seen
                    && u32::from(n) >= *pending
                {
                    self.seen = Seen::Own;
                }
            }
            // Of what a thread wrote itself: the others learn of both by the barrier behind it.
            Event::Fence => self.fenced |= self.seen == Seen::Own,
            Event::Sent => {
                self.sent = match self.sent {
                    Sent::Open(thread) => Sent::Pending(thread, 0),
                    Sent::Pending(thread, n) => Sent::Pending(thread, n.saturating_add(1)),
                    Sent::No => Sent::No,
                };
            }
            Event::WaitSent(pending) => {
                if let Sent::Pending(thread, n) = self.sent
                    && u32::from(n) >= *pending
                {
                    // Only its thread knows that it is done.
                    self.sent = Sent::No;
                    self.read_by(Threads::One(thread));
                }
            }
            _ => {}
        }
    }
}
