//! Copies by TMA from shared to global memory: each element of a box is read from where its layout has it, and lands where it is meant to.
//!
//! ```text
//! staging (16 rows, 64 columns)    Sw<3,4,3> o (16,64):(128,2)          what stmatrix writes by
//! box     16 rows of 128 bytes     element (i, j) at byte 128·i + 2·j, its 16-byte pieces permuted by the row      what the copy reads by
//! ```
//!
//! Both must be the same, element by element. That the bytes were written, fenced and not written again too early is a matter of [`order`](crate::prove::memory::order);
//! that boxes are each element of an output once, of [`cover`](crate::prove::memory::cover).
//!
//! Groups of such copies are those of the thread that issues them. One set of threads issues, closes and waits for all of a kernel's, so that what one
//! of them does in its warp, each does in its own.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::ir::{Address, Arrangement, BulkStore, Extent, Place, Role, TensorMap};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::offsets::Offsets;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Event, Machine};
use crate::prove::walk::hopper::{ROWS, UNIT, swizzled};
use crate::prove::walk::memory::{Access, Kind};

/// A box that goes to global memory.
#[derive(Clone, Debug)]
pub(in crate::prove) struct SentBox {
    pub(in crate::prove) buffer: usize,
    /// Where it begins, for each thread that issues one.
    pub(in crate::prove) coordinates: Vec<Lin>,
    /// Rows and columns.
    pub(in crate::prove) extents: [i64; 2],
    pub(in crate::prove) threads: Mask,
    /// What branches have decided before it.
    pub(in crate::prove) path: Vec<Rc<Formula>>,
    /// What holds since threads have left the kernel.
    pub(in crate::prove) stays: Vec<Rc<Formula>>,
    /// The iterations of the loops that it is in.
    pub(in crate::prove) iterations: Vec<Sym>,
}

/// Where a box lies in shared memory.
struct Lies {
    buffer: usize,
    /// The first byte of each thread's.
    at: Num,
    /// Its first row and column in the buffer, for each thread.
    first: [Num; 2],
    /// Bytes before the layout's first, for each thread.
    before: Num,
    version: Vec<Lin>,
}

impl Machine<'_> {
    /// An instruction of such a copy, by `threads`.
    pub(in crate::prove) fn bulk(
        &mut self,
        inst: &BulkStore,
        threads: Mask,
        guarded: bool,
    ) -> Result<(), ProofError> {
        if let BulkStore::Fence = inst {
            if guarded || self.divergent > 0 {
                return Err(ProofError::Divergent {
                    what: "fence.proxy.async by some of the threads".to_owned(),
                });
            }
            self.events.push(Event::Fence);
            return Ok(());
        }
        if *self.issuers.get_or_insert(threads) != threads {
            return Err(ProofError::Divergent {
                what:
                    "copies to global memory that some threads issue and others close or wait for"
                        .to_owned(),
            });
        }
        match inst {
            BulkStore::Fence => {}
            BulkStore::Commit => self.events.push(Event::Sent),
            BulkStore::Wait { pending } => self.events.push(Event::WaitSent(*pending)),
            BulkStore::Box { .. } => self.sent_box(inst, threads)?,
        }
        Ok(())
    }

    fn sent_box(&mut self, inst: &BulkStore, threads: Mask) -> Result<(), ProofError> {
        let BulkStore::Box {
            from,
            map,
            coordinates,
            to,
            ..
        } = inst
        else {
            return Ok(());
        };
        let map = self.entry.tensor_maps[*map].clone();
        let name = format!("store by {}", map.name);
        let refuse = |reason: &str| ProofError::Undecided {
            what: format!("{name}: {reason}"),
        };
        let array = &self.entry.buffers[map.buffer];
        if array.role == Role::Input {
            return Err(ProofError::Input {
                access: name,
                input: array.name.clone(),
            });
        }
        let wrong = |thread| ProofError::Address {
            access: name.clone(),
            thread,
        };
        if to.len() != coordinates.len() || to.len() != self.entry.buffers[map.buffer].extents.len()
        {
            return Err(refuse("another number of coordinates than the array has"));
        }
        let mut facts = self.facts.clone();
        facts.active = threads;
        let mut begins = Vec::new();
        for (register, &meant) in coordinates.iter().rev().zip(to) {
            let meant = self.evaluate(meant);
            let difference = self.coordinate(*register).sub(&meant);
            if !self.symbols.is_zero(&difference, &facts) {
                return Err(wrong(threads.first().unwrap_or(0)));
            }
            begins.push(meant);
        }
        let lies = self.lies(*from, &name)?;
        let info = &self.entry.buffers[lies.buffer];
        let bytes = info.bytes;
        let [rows, columns] = map.extents;
        let fits = bytes == self.entry.buffers[map.buffer].bytes
            && columns * bytes == map.swizzle
            && matches!(map.swizzle, 32 | 64 | 128)
            && rows % ROWS == 0
            && (1..=256).contains(&rows);
        if !fits {
            return Err(refuse(
                "a box whose rows are not by eights, or not one period of its swizzle",
            ));
        }
        if !self.begins_with_a_piece(to, bytes) {
            return Err(refuse(
                "a box that may begin inside of 16 bytes of a row, which is an illegal instruction: let its innermost coordinate be a multiple of 16 bytes",
            ));
        }
        // Swizzles are of addresses.
        if self.entry.shared.is_none_or(|s| s.align < 1024) {
            return Err(refuse("shared memory that does not begin at 1024 bytes"));
        }
        self.as_staged(&lies, &map, threads).map_err(wrong)?;
        if !self.ends_with_pieces(&map) {
            return Err(refuse(
                "rows that do not end with a piece of 16 bytes, which is stored as a whole",
            ));
        }
        let found = Rc::new(Access {
            kind: Kind::Sent,
            op: None,
            name,
            at: lies.at,
            active: threads,
            buffer: Num::same(lies.buffer as i64),
            version: lies.version,
            bytes: (rows * map.swizzle) as u32,
            maybe: false,
            tagged: false,
            exact: true,
            source: None,
        });
        self.accesses.push(Rc::clone(&found));
        self.events.push(Event::Access(found));
        self.note_deals();
        self.boxes.push(SentBox {
            buffer: map.buffer,
            coordinates: begins,
            extents: map.extents,
            threads,
            path: self.path.clone(),
            stays: self.stays.clone(),
            iterations: self.iterations.clone(),
        });
        self.addresses += 1;
        Ok(())
    }

    /// The rows of the array have a whole number of pieces of 16 bytes, which TMA stores as a whole: measured on an H100, it is no part of the PTX ISA.
    fn ends_with_pieces(&mut self, map: &TensorMap) -> bool {
        let array = &self.entry.buffers[map.buffer];
        let piece = (UNIT / array.bytes).max(1);
        let along = match array.extents.last() {
            Some(Extent::Fixed(n)) => Lin::constant(*n),
            Some(Extent::Value(e) | Extent::Padded { used: e, .. }) => {
                let e = *e;
                self.evaluate(e)
            }
            _ => return false,
        };
        let rest = self.symbols.low(&along, piece.trailing_zeros());
        let facts = self.facts.clone();
        self.symbols.is_zero(&rest, &facts)
    }

    /// Where an address is in shared memory, held against its place.
    fn lies(&mut self, from: Address, name: &str) -> Result<Lies, ProofError> {
        let refuse = |reason: &str| ProofError::Undecided {
            what: format!("{name}: {reason}"),
        };
        let Place::Element {
            buffer,
            coordinates,
        } = self.place(from.place())?
        else {
            return Err(refuse("a choice between buffers"));
        };
        let info = self.entry.buffers[buffer].clone();
        let Arrangement::Shared { outer, offset, .. } = &info.arrangement else {
            return Err(refuse("a box of global memory"));
        };
        let coordinates: Vec<Lin> = coordinates.into_iter().map(|e| self.evaluate(e)).collect();
        let inner = coordinates.len() - outer.len();
        let mut before = Num::same(*offset);
        let mut version = Vec::new();
        for (c, &stride) in coordinates[inner..].iter().zip(outer) {
            match (stride, c.as_number()) {
                (0, _) if self.symbols.is_uniform(c) => version.push(*c),
                (1.., Some(k)) => before = before.add(k.scale(stride)),
                _ => return Err(refuse("a place that differs by more than numbers")),
            }
        }
        let numbers: Option<Vec<Num>> = coordinates[..inner].iter().map(Lin::as_number).collect();
        let first = numbers.and_then(|all| <[Num; 2]>::try_from(all).ok());
        let address = self.integer(from.base()).plus(from.immediate());
        let at = address.sub(&self.shared_base()).as_number();
        match (first, at) {
            (Some(first), Some(at)) => Ok(Lies {
                buffer,
                at,
                first,
                before,
                version,
            }),
            _ => Err(refuse("a place that differs by more than numbers")),
        }
    }

    /// Each element of the box is where the buffer's layout has it; the thread for which one is not.
    fn as_staged(&mut self, lies: &Lies, map: &TensorMap, threads: Mask) -> Result<(), usize> {
        let info = &self.entry.buffers[lies.buffer];
        let Arrangement::Shared { layout, outer, .. } = &info.arrangement else {
            return Err(threads.first().unwrap_or(0));
        };
        let extents = info.fixed_extents();
        let inner = extents.len() - outer.len();
        let limit = self.entry.shared.map_or(0, |s| s.bytes) as i64;
        let known = self.offsets.remove(&lies.buffer);
        let mut offsets = known.unwrap_or_else(|| Offsets::of(layout, &extents[..inner]));
        let [rows, columns] = map.extents;
        let (size, period) = (rows * map.swizzle, ROWS * map.swizzle);
        // Threads whose boxes lie alike in whole periods of the swizzle.
        let mut alike: BTreeSet<[i64; 3]> = BTreeSet::new();
        let list = threads.list();
        let mut found = Ok(());
        for thread in (0..self.threads).filter(|&t| list[t]) {
            let at = lies.at.at(thread);
            let [row, column] = lies.first.map(|k| k.at(thread));
            let before = lies.before.at(thread);
            let whole = at % period == 0 && before % period == 0;
            let inside = at >= 0 && at + size <= limit;
            if !whole || !inside {
                found = Err(thread);
                break;
            }
            if !alike.insert([row, column, at - before]) {
                continue;
            }
            let modes = [(row, rows, 0), (column, columns, 1)];
            let fits = |(first, count, mode): (i64, i64, usize)| {
                first >= 0 && extents[mode].is_none_or(|n| first + count <= n)
            };
            let mut elements = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
            let same = modes.into_iter().all(fits)
                && elements.all(|(i, j)| {
                    let byte = at + i * map.swizzle + j * info.bytes;
                    let meant = before + offsets.at(&[row + i, column + j]);
                    swizzled(byte, map.swizzle) == meant
                });
            if !same {
                found = Err(thread);
                break;
            }
        }
        self.offsets.insert(lies.buffer, offsets);
        found
    }
}
