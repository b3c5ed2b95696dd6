//! The optional check for global memory that two blocks touch, one of them with a store.
//!
//! For each unit (the smallest global access of the kernel): the last block that stored, with the value, and the blocks that have loaded since. An access by
//! another block is a race unless
//!
//! - both stored the same value, or both accesses are strong (`.volatile`, `.relaxed` and the like; atomics are not recorded) and the load is not
//!   [late](Late), or
//! - the blocks are ordered: a *fence* of the one block ([`GlobalShadow::fence`]) and then a strong store or an atomic operation on a word, which the other block has
//!   read by a strong load or an atomic operation. Atomics that follow each other on a word pass on what they find, and a `.release` is a fence of its own.
//!
//! Each block has an epoch, which its fences count; what it did in an epoch is known to those who acquire a word that was released in a later one. Order is kept
//! by block: the threads of a block count as ordered among each other, and a strong read as an acquiring one. Example: each block stores its sum, executes `__threadfence()` and
//! adds 1 to a counter; the block that counts last reads all sums. Without the fence its reads are races.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fences::Strong;
use crate::ir::{Op, Program, Reg};
use crate::memory::GlobalMemory;
use crate::types::File;

/// The reader of a unit that several blocks have read.
const SEVERAL: u32 = u32::MAX;

/// The reader of a unit that more blocks have read than a set holds.
const CROWD: u32 = u32::MAX - 1;

/// Readers of a set at most.
const MEMBERS: u8 = 16;

/// Sets of readers at most.
const SETS: usize = 1 << 20;

/// A set that would have too many readers, or one set too many.
const UNKNOWN: u32 = u32::MAX;

/// Units whose cells lie together, made when one is touched.
const CHUNK: usize = 1 << 12;

/// Who touched a unit last. Blocks are numbered from 1 here.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    writer: u32,
    /// The writer's epoch.
    written: u32,
    value: u32,
    reader: u32,
    /// The reader's epoch; of [`SEVERAL`] their set in [`Readers`]; of a [`CROWD`] the clock of the last that read.
    read: u32,
    strong_write: bool,
    strong_read: bool,
    /// Some of the reads were strong.
    waited: bool,
    /// The thread of the block that stored, and the number of its strong access.
    by: u32,
    number: u32,
}

type Chunk = Mutex<Vec<Cell>>;

/// What is known of other blocks: up to which epoch.
type Seen = HashMap<u32, u32>;

fn raise(to: &mut Seen, from: &Seen) {
    for (block, epoch) in from {
        let known = to.entry(*block).or_default();
        *known = (*known).max(*epoch);
    }
}

#[derive(Debug, Default)]
struct Block {
    /// Fences executed, from 1 on.
    epoch: u32,
    /// The clock when each epoch from 1 on began.
    begins: Vec<u32>,
    /// The clock when it last read as one of a crowd: by a weak load, and by any.
    last: [Option<u32>; 2],
    /// Up to which clock those reads of others are ordered before what it does, after so many changes.
    horizon: [(u32, u32); 2],
    seen: Seen,
    /// What it knew at its last fence.
    released: Seen,
}

/// The order between blocks.
#[derive(Debug, Default)]
struct Blocks {
    each: HashMap<u32, Block>,
    /// By address of a word: what those knew who released it.
    words: HashMap<u64, Seen>,
    late: Late,
    /// Epochs that have ended, of all blocks.
    clock: u32,
    /// How often what a block knows, or when it last read, has changed.
    changes: u32,
    /// The blocks that have read what a crowd has.
    crowd: Vec<u32>,
}

/// Strong accesses without fences. They are no race by themselves, and mostly meant: loads that wait for a value. But a block that has read a later
/// strong access of a thread, and then loads what this thread stored before, may find the old value, if no fence orders the thread's accesses. Where it uses the
/// value as data ([`data_loads`]) that is wrong: `part[block] = sum; atomicInc(&count)` with a volatile `part`, and the block that counts last adds the parts.
#[derive(Debug, Default)]
struct Late {
    /// Strong accesses of each block.
    counts: HashMap<u32, u32>,
    words: HashMap<u64, Message>,
    /// What each block has read: by block and thread the number of a strong access.
    read: HashMap<u32, HashMap<(u32, u32), u32>>,
}

/// What a word has passed on: of each block the thread and the number of its strong access. Where two threads of a block update a word, or more blocks
/// than these, it is a counter and no message, and nothing is kept of it.
#[derive(Debug)]
enum Message {
    From(HashMap<u32, (u32, u32)>),
    Counter,
}

/// Blocks kept of a word at most.
const BLOCKS: usize = 512;

impl Late {
    /// Thread `by` of block `me` accesses a word.
    fn access(&mut self, (me, by): (u32, u32), word: u64, access: Strong) {
        match (self.words.get(&word), access) {
            (_, Strong::Store) | (None, Strong::Update) => {}
            (None, Strong::Load) | (Some(Message::Counter), _) => return,
            (Some(Message::From(known)), _) => {
                let read = self.read.entry(me).or_default();
                for (block, (thread, number)) in known {
                    let to = read.entry((*block, *thread)).or_default();
                    *to = (*to).max(*number);
                }
            }
        }
        if access == Strong::Load {
            return;
        }
        let count = self.counts.entry(me).or_default();
        *count += 1;
        let message = self
            .words
            .entry(word)
            .or_insert_with(|| Message::From(HashMap::new()));
        if access == Strong::Store {
            *message = Message::From(HashMap::from([(me, (by, *count))]));
            return;
        }
        let Message::From(known) = message else {
            return;
        };
        let other = known.get(&me).is_some_and(|(thread, _)| *thread != by);
        if other || known.len() == BLOCKS {
            *message = Message::Counter;
        } else {
            known.insert(me, (by, *count));
        }
    }
}

/// The strong loads whose values no predicate, function or atomic operation depends on: those that do not wait or choose.
fn data_loads(p: &Program) -> Vec<bool> {
    let mut out = vec![false; p.insts.len()];
    for body in &p.bodies {
        let range = body.start as usize..body.end as usize;
        for pc in range.clone() {
            let is_load = matches!(&p.insts[pc].op, Op::Ld(a) if a.strong);
            let Some((_, loaded)) = p.uses.get(pc).filter(|_| is_load) else {
                continue;
            };
            let mut depends: Vec<Reg> = loaded.clone();
            let mut before = 0;
            while before != depends.len() {
                before = depends.len();
                for (reads, writes) in &p.uses[range.clone()] {
                    if reads.iter().any(|r| depends.contains(r)) {
                        let new = writes.iter().filter(|w| !depends.contains(w));
                        depends.extend(new.copied().collect::<Vec<_>>());
                    }
                }
            }
            let chooses = depends.iter().any(|r| r.file == File::Pred);
            out[pc] = !chooses
                && range.clone().all(|k| {
                    let other = matches!(
                        p.insts[k].op,
                        Op::Call(_) | Op::Atom(_) | Op::Atoms(_) | Op::Atom128(_) | Op::Brx { .. }
                    );
                    !other || !p.uses[k].0.iter().any(|r| depends.contains(r))
                });
        }
    }
    out
}

impl Blocks {
    /// Ends the epoch of block `me`: what it knew then.
    fn release(&mut self, me: u32) -> Seen {
        let block = self.each.entry(me).or_default();
        let mut known = block.seen.clone();
        known.insert(me, block.epoch + 1);
        block.epoch += 1;
        block.begins.push(self.clock + 1);
        self.clock += 1;
        self.changes += 1;
        known
    }

    /// Block `me` reads at this clock as one of a crowd.
    fn read_in_crowd(&mut self, me: u32, clock: u32, strong: bool) {
        let block = self.each.entry(me).or_default();
        if block.last == [None; 2] {
            self.crowd.push(me);
        }
        for last in &mut block.last[usize::from(strong)..] {
            *last = (*last).max(Some(clock));
        }
        self.changes += 1;
    }

    /// The same of a read of the past: before the end of its epoch.
    fn has_read_in_crowd(&mut self, (block, epoch): Read, strong: bool) {
        let begins = self.each.get(&block).map(|b| &b.begins);
        let end = begins.and_then(|b| b.get(epoch as usize)).copied();
        self.read_in_crowd(block, end.map_or(self.clock, |end| end - 1), strong);
    }

    /// Up to which clock the reads of crowds are ordered before what block `me` does now: the weak ones, or also those of words that blocks have
    /// `waited` for. A block of which `me` knows all reads is no bound.
    fn horizon(&mut self, me: u32, waited: bool) -> u32 {
        let (changes, which) = (self.changes, usize::from(waited));
        let seen = match self.each.get(&me) {
            None => return 0,
            Some(block) if block.horizon[which].1 == changes => return block.horizon[which].0,
            Some(block) => &block.seen,
        };
        let bound = |other: &u32| {
            let block = self.each.get(other)?;
            let epoch = seen.get(other).and_then(|e| e.checked_sub(1));
            let begun = epoch.and_then(|e| block.begins.get(e as usize).copied());
            let begun = begun.unwrap_or(0);
            (block.last[which] >= Some(begun)).then_some(begun)
        };
        let others = self.crowd.iter().filter(|other| **other != me);
        let least = others.filter_map(bound).min().unwrap_or(u32::MAX);
        if let Some(block) = self.each.get_mut(&me) {
            block.horizon[which] = (least, changes);
        }
        least
    }
}

/// A reader of a unit: the block and its epoch.
type Read = (u32, u32);

/// Small sets of blocks that have read the same units. Many units have the same readers, so that each set is kept once: a set is another one and one reader more.
#[derive(Debug, Default)]
struct Readers {
    /// By number from 1 on, with how many readers it has; 0 is the empty set.
    sets: Vec<(u32, Read, u8)>,
    numbers: HashMap<(u32, Read), u32>,
    /// What becomes of a set when this block reads in this epoch.
    after: HashMap<(u32, Read), u32>,
    /// The last of those: neighbouring units mostly have the same readers.
    last: Option<((u32, Read), u32)>,
}

impl Readers {
    fn with(&mut self, set: u32, read: Read) -> u32 {
        let members = self.at(set).map_or(0, |(_, _, members)| members);
        if set == UNKNOWN || members == MEMBERS || self.sets.len() >= SETS {
            return UNKNOWN;
        }
        let (sets, next) = (&mut self.sets, self.numbers.len() as u32 + 1);
        *self.numbers.entry((set, read)).or_insert_with(|| {
            sets.push((set, read, members + 1));
            next
        })
    }

    fn at(&self, set: u32) -> Option<(u32, Read, u8)> {
        self.sets.get(set.wrapping_sub(1) as usize).copied()
    }

    fn of(&self, set: u32) -> impl Iterator<Item = Read> {
        let mut next = set;
        std::iter::from_fn(move || {
            let (rest, read, _) = self.at(next)?;
            next = rest;
            Some(read)
        })
    }

    /// The set when `read` comes to `set`. Readers that are `ordered` before it are left out: what comes after it comes after them.
    fn add(&mut self, set: u32, read: Read, ordered: impl Fn(Read) -> bool) -> u32 {
        if let Some((_, after)) = self.last.filter(|(of, _)| *of == (set, read)) {
            return after;
        }
        if let Some(after) = self.after.get(&(set, read)) {
            self.last = Some(((set, read), *after));
            return *after;
        }
        let others: Vec<Read> = self.of(set).collect();
        let keeps = |r: &Read| r.0 != read.0 && !ordered(*r);
        let after = if others.iter().all(keeps) {
            self.with(set, read)
        } else {
            let kept = others.iter().rev().filter(|r| keeps(r));
            let kept = kept.fold(0, |set, r| self.with(set, *r));
            self.with(kept, read)
        };
        if after != UNKNOWN {
            self.after.insert((set, read), after);
            self.after.insert((after, read), after);
        }
        after
    }
}

/// An access of one block.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) block: u64,
    pub(crate) thread: u32,
    pub(crate) strong: bool,
    /// A load of [`data_loads`].
    pub(crate) data: bool,
    /// A store, with the value of each byte unless it is not known.
    pub(crate) store: Option<&'a dyn Fn(u32) -> Option<u8>>,
}

/// Who touched which bytes.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    grain: u32,
    /// By allocation: base address and the cells of its units.
    allocations: Vec<(u64, Vec<Chunk>)>,
    order: Mutex<Blocks>,
    readers: Mutex<Readers>,
    data_loads: Vec<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(block: u64) -> u32 {
    (block as u32).wrapping_add(1)
}

impl GlobalShadow {
    pub(crate) fn new(memory: &GlobalMemory, p: &Program, grain_bytes: u32) -> Self {
        let grain = grain_bytes.clamp(1, 4).trailing_zeros();
        let chunks = |len: u64| {
            let units = (len >> grain) as usize + 1;
            (0..units.div_ceil(CHUNK))
                .map(|_| Chunk::default())
                .collect()
        };
        let allocations = memory.allocations().iter();
        Self {
            grain,
            allocations: allocations.map(|a| (a.base, chunks(a.len))).collect(),
            order: Mutex::default(),
            readers: Mutex::default(),
            data_loads: data_loads(p),
        }
    }

    /// Whether the instruction `pc` is one of [`data_loads`].
    pub(crate) fn is_data(&self, pc: usize) -> bool {
        self.data_loads.get(pc).is_some_and(|is| *is)
    }

    /// Block `block` executes a fence for all blocks.
    pub(crate) fn fence(&self, block: u64) {
        let mut order = lock(&self.order);
        let known = order.release(number(block));
        order.each.entry(number(block)).or_default().released = known;
    }

    /// Thread `by` of block `block` accesses the word at `address` by a strong access or an atomic operation, which releases by itself if it `releases`.
    pub(crate) fn synchronise(
        &self,
        (block, by): (u64, u32),
        address: u64,
        access: Strong,
        releases: bool,
    ) {
        let (me, word) = (number(block), address / 4);
        let mut order = lock(&self.order);
        order.late.access((me, by), word, access);
        let before = order.words.get(&word).cloned();
        if let (Some(known), Strong::Load | Strong::Update) = (&before, access) {
            raise(&mut order.each.entry(me).or_default().seen, known);
            order.changes += 1;
        }
        if access == Strong::Load {
            return;
        }
        let own = if releases {
            order.release(me)
        } else {
            order.each.entry(me).or_default().released.clone()
        };
        let mut known = before
            .filter(|_| access == Strong::Update)
            .unwrap_or_default();
        raise(&mut known, &own);
        if known.is_empty() {
            order.words.remove(&word);
        } else {
            order.words.insert(word, known);
        }
    }

    /// `malloc` returns these bytes: what others did with them came before `free`.
    pub(crate) fn forget(&self, address: u64, bytes: u64) {
        let i = self.allocations.partition_point(|a| a.0 <= address);
        let Some((base, chunks)) = i.checked_sub(1).map(|i| &self.allocations[i]) else {
            return;
        };
        let (first, last) = (address - base, (address - base + bytes).saturating_sub(1));
        for u in (first >> self.grain) as usize..=(last >> self.grain) as usize {
            let Some(chunk) = chunks.get(u / CHUNK) else {
                return;
            };
            if let Some(cell) = lock(chunk).get_mut(u % CHUNK) {
                *cell = Cell::default();
            }
        }
    }

    /// Records an access of `bytes` at `address`, inside an allocation; returns another block that it races with.
    pub(crate) fn access(&self, address: u64, bytes: u32, access: Access<'_>) -> Option<u64> {
        let me = number(access.block);
        let i = self.allocations.partition_point(|a| a.0 <= address);
        let (base, chunks) = &self.allocations[i.checked_sub(1)?];
        let first = ((address - base) >> self.grain) as usize;
        let last = ((address - base + u64::from(bytes) - 1) >> self.grain) as usize;
        let (mut epoch, mut joined) = (None, false);
        for u in first..=last {
            let mut cells = lock(chunks.get(u / CHUNK)?);
            if cells.is_empty() {
                cells.resize(CHUNK, Cell::default());
            }
            let cell = &mut cells[u % CHUNK];
            let other =
                |block: u32, strong: bool| block != 0 && block != me && !(strong && access.strong);
            let ordered = |block: u32, at: u32| {
                let order = lock(&self.order);
                let own = order.each.get(&me);
                own.and_then(|b| b.seen.get(&block))
                    .is_some_and(|seen| *seen > at)
            };
            let wrote =
                other(cell.writer, cell.strong_write) && !ordered(cell.writer, cell.written);
            let (now, clock, last) = *epoch.get_or_insert_with(|| {
                let order = lock(&self.order);
                let block = order.each.get(&me).map(|b| (b.epoch, b.last));
                let (epoch, last) = block.unwrap_or_default();
                (epoch, order.clock, last)
            });
            let found = if let Some(byte) = access.store {
                let start = (((u as u64) << self.grain) + base).wrapping_sub(address);
                let each = (0..1u64 << self.grain).map(|k| byte(start.wrapping_add(k) as u32));
                let value = each
                    .rev()
                    .try_fold(0u32, |v, b| Some(v << 8 | u32::from(b?)));
                let differs = value.is_none_or(|v| v != cell.value);
                let reader = if !other(cell.reader, cell.strong_read) {
                    None
                } else if cell.reader == CROWD {
                    let unordered = cell.read >= lock(&self.order).horizon(me, cell.waited);
                    unordered.then_some(SEVERAL)
                } else if cell.reader != SEVERAL {
                    Some(cell.reader).filter(|r| !ordered(*r, cell.read))
                } else {
                    let readers = lock(&self.readers);
                    let mut of = readers.of(cell.read);
                    of.find(|(block, at)| *block != me && !ordered(*block, *at))
                        .map(|(block, _)| block)
                };
                let read = reader.is_some();
                let found = if wrote && differs {
                    Some(cell.writer)
                } else {
                    reader
                };
                cell.value = value.unwrap_or(0);
                (cell.writer, cell.written, cell.strong_write) = (me, now, access.strong);
                if access.strong {
                    let order = lock(&self.order);
                    cell.by = access.thread;
                    cell.number = order.late.counts.get(&me).map_or(0, |n| *n) + 1;
                }
                if !read {
                    cell.reader = 0;
                }
                found
            } else {
                let later = cell.reader == 0
                    || cell.reader == me
                    || cell.reader < CROWD && ordered(cell.reader, cell.read);
                cell.strong_read = access.strong && (later || cell.strong_read);
                cell.waited = access.strong || !later && cell.waited;
                (cell.reader, cell.read) = if later {
                    (me, now)
                } else if cell.reader == CROWD {
                    if last[usize::from(access.strong)] < Some(clock) && !joined {
                        lock(&self.order).read_in_crowd(me, clock, access.strong);
                    }
                    joined = true;
                    (CROWD, clock.max(cell.read))
                } else {
                    let mut readers = lock(&self.readers);
                    let before = match cell.reader {
                        SEVERAL => cell.read,
                        one => readers.with(0, (one, cell.read)),
                    };
                    let set = readers.add(before, (me, now), |(block, at)| ordered(block, at));
                    if set == UNKNOWN {
                        let mut order = lock(&self.order);
                        for read in readers.of(before) {
                            order.has_read_in_crowd(read, cell.waited);
                        }
                        order.read_in_crowd(me, clock, access.strong);
                        (CROWD, clock)
                    } else {
                        (SEVERAL, set)
                    }
                };
                let late = || {
                    let passed = cell.strong_write && access.strong && access.data;
                    passed
                        && cell.writer != me
                        && cell.writer != 0
                        && {
                            let order = lock(&self.order);
                            let read = order.late.read.get(&me);
                            read.and_then(|r| r.get(&(cell.writer, cell.by)))
                                .is_some_and(|number| *number > cell.number)
                        }
                        && !ordered(cell.writer, cell.written)
                };
                (wrote || late()).then_some(cell.writer)
            };
            if let Some(other) = found {
                return Some(if other == SEVERAL {
                    u64::from(SEVERAL)
                } else {
                    u64::from(other) - 1
                });
            }
        }
        None
    }
}
