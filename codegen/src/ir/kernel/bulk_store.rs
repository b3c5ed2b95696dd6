//! Copies by TMA from shared to global memory, and the matrix stores that prepare them.

use super::{Kernel, MapHandle};
use crate::index::Expr;
use crate::ir::bulk_store::BulkStore;
use crate::ir::hopper::Hopper;
use crate::ir::inst::Inst;
use crate::ir::node::Node;
use crate::ir::value::{Pred, Reg};
use crate::ir::{Address, Statement};

impl Kernel {
    fn push_bulk(&mut self, only: Option<Reg>, inst: BulkStore) {
        self.scope().body.push(Node::Inst(Statement {
            inst: Inst::Hopper(Box::new(Hopper::Bulk(inst))),
            guard: only.map(Pred::from),
            tag: None,
        }));
    }

    /// Four registers of 16-bit pairs to four 8×8 matrices of 16-bit elements; each lane points at a row.
    pub(crate) fn store_matrix(&mut self, from: Vec<Reg>, trans: bool, at: Address) {
        self.note_width(at, 16);
        self.push(Inst::StoreMatrix { at, from, trans });
    }

    /// What each thread has written to shared memory can be seen by copies by TMA that come behind it.
    pub(crate) fn fence_for_copies(&mut self) {
        self.push_bulk(None, BulkStore::Fence);
    }

    /// The box at the element `from` of shared memory to where it begins at `to` (rows, columns, before them leading modes), by the threads where `only` holds.
    pub(crate) fn store_box(&mut self, map: MapHandle, to: &[Expr], from: Address, only: Reg) {
        self.own(map.kernel(), "a tensor map");
        self.own(from.kernel(), "an address");
        let coordinates = to.iter().rev().map(|&e| self.value(e)).collect();
        let inst = BulkStore::Box {
            from,
            map: map.number(),
            descriptor: map.address(),
            coordinates,
            to: to.to_vec(),
        };
        self.push_bulk(Some(only), inst);
    }

    /// Closes a group of boxes of the threads where `only` holds.
    pub(crate) fn commit_boxes(&mut self, only: Reg) {
        self.push_bulk(Some(only), BulkStore::Commit);
    }

    /// The threads where `only` holds wait until all of their groups but the youngest `pending` have read shared memory.
    pub(crate) fn wait_for_boxes(&mut self, pending: u32, only: Reg) {
        self.push_bulk(Some(only), BulkStore::Wait { pending });
    }
}
