//! The optional check for global memory that two blocks touch, one of them with a store.
//!
//! For each unit (the smallest global access of the kernel): the last block that stored, with the value, and the blocks that have loaded since. An access by
//! another block is a race unless
//!
//! - both stored the same value, or both accesses are strong (`.volatile`, `.relaxed` and the like; atomics are not recorded) and the load is not
//!   [late], or
//! - the blocks are ordered: a *fence* of the one block ([`GlobalShadow::fence`]) and then a strong store or an atomic operation on a word, which the other block has
//!   read by a strong load or an atomic operation. Atomics that follow each other on a word pass on what they find, and a `.release` is a fence of its own.
//!
//! Each block has an epoch, which its fences count; what it did in an epoch is known to those who acquire a word that was released in a later one. Order is kept
//! by block: the threads of a block count as ordered among each other, and a strong read as an acquiring one. Example: each block stores its sum, executes `__threadfence()` and
//! adds 1 to a counter; the block that counts last reads all sums. Without the fence its reads are races.

mod late;
mod order;
mod readers;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fences::Strong;
use crate::ir::Program;
use crate::memory::GlobalMemory;
use late::data_loads;
use order::{Blocks, raise};
use readers::{Readers, UNKNOWN};

/// The reader of a unit that several blocks have read: a set of [`Readers`].
const SEVERAL: u32 = u32::MAX;

/// The reader of a unit that more blocks have read than a set can have.
const CROWD: u32 = u32::MAX - 1;

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
    /// The reader's epoch; for [`SEVERAL`] the number of their set; for a [`CROWD`] the clock of the last read.
    read: u32,
    strong_write: bool,
    strong_read: bool,
    /// Some of the reads were strong.
    waited: bool,
    /// The thread that stored by a strong access.
    by: u32,
    /// The number of that access in its block.
    number: u32,
}

type Chunk = Mutex<Vec<Cell>>;

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
            order.acquire(me, known);
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
