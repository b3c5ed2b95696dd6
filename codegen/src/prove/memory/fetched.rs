//! Reads of a stage by threads, into registers: each thread's address against the layout of the stage, and what the reads cost.
//!
//! This is how products that take a factor from registers get it. A lane's read is complete for the other lanes behind a barrier of the warp:
//! [`ring`](crate::prove::protocol::ring) asks for one before the warp releases the stage.

use std::collections::BTreeSet;
use std::rc::Rc;

use layout_core::banks::Access as Op;

use crate::ir::{Address, Arrangement, StageUse, Statement};
use crate::prove::ProofError;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::walk::execute::Machine;
use crate::prove::walk::hopper::{Region, UNIT, Used};
use crate::prove::walk::memory::{Access, Kind};

impl Machine<'_> {
    /// A read of `count` neighbours of a row, 4 bytes each, by each of `threads`.
    pub(in crate::prove) fn fetched(
        &mut self,
        s: &Statement,
        (at, count): (Address, usize),
        stage: StageUse,
        threads: Mask,
    ) -> Result<(Used, Region), ProofError> {
        let used = self.used(stage);
        let staged = self.staged(at, Some(used))?;
        let info = self.entry.buffers[staged.buffer].clone();
        let name = s.tag.clone();
        let name = name.unwrap_or_else(|| format!("read {}", info.name));
        let Arrangement::Shared { outer, offset, .. } = &info.arrangement else {
            return Err(ProofError::Undecided {
                what: format!("{name}: a stage in global memory"),
            });
        };
        if !self.entry.rings[used.ring].buffers.contains(&staged.buffer) || info.bytes != 4 {
            return Err(ProofError::Undecided {
                what: format!("{name}: words of what is no stage of its ring"),
            });
        }
        let bytes = 4 * count as i64;
        let op = match count {
            1 => Op::Ld32,
            2 => Op::Ld64,
            _ => Op::Ld128,
        };
        let meant = self.entry.widths.get(at.place() as usize);
        if meant.is_none_or(|m| m & bytes as u32 == 0) {
            return Err(ProofError::Width {
                access: name,
                bytes: bytes as u32,
            });
        }
        if outer.iter().any(|stride| stride % bytes != 0) {
            return Err(ProofError::Alignment {
                access: name,
                bytes: bytes as u32,
            });
        }
        let list = threads.list();
        let mut units = BTreeSet::new();
        let mut first = vec![0; self.threads];
        for thread in (0..self.threads).filter(|&t| list[t]) {
            let start: Vec<i64> = staged.inner.iter().map(|k| k.at(thread)).collect();
            // The elements of a vector are neighbours along a row, which begin where the vector may.
            let read = self.units(staged.buffer, &start, &[2, count as i64], |first| {
                let all = (0..count as i64).map(|v| ([0, v], first + 4 * v));
                (first % bytes == 0).then(|| all.collect())
            });
            let read = read.ok_or_else(|| ProofError::Address {
                access: name.clone(),
                thread,
            })?;
            units.extend(read.iter());
            first[thread] = self
                .offsets
                .get_mut(&staged.buffer)
                .map_or(0, |offsets| offset + offsets.at(&start));
        }
        // Stages begin where no bank changes: what a read of the first costs, it costs of each.
        self.fetches.push(Rc::new(Access {
            kind: Kind::Read,
            op: Some(op),
            name: name.clone(),
            at: Num::each(first),
            active: threads,
            buffer: Num::same(staged.buffer as i64),
            version: staged.version.clone(),
            bytes: bytes as u32,
            maybe: false,
            tagged: s.tag.is_some(),
            exact: true,
            source: None,
        }));
        debug_assert!(UNIT >= bytes);
        let region = Region {
            name: info.name,
            units: Rc::new(units),
            version: staged.version,
        };
        Ok((used, region))
    }
}
