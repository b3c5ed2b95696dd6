//! Outputs that one of the blocks along an axis stores, such as the sum of a row by the first block of the cluster that shares the row.
//!
//! Where a launch has exactly B blocks along an axis, one of them has index 0. If the facts at each store say that the block's index is 0, no other block along the axis
//! stores anything. What that block stores is looked at with its index known, and the axis counts nothing.

use super::Output;
use super::boxes::Boxes;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::memory::GlobalAccess;

impl Output<'_> {
    /// Leaves out the axes along which the first block alone stores.
    pub(super) fn of_first_blocks(&mut self, stores: &[&GlobalAccess], boxes: &Boxes<'_>) {
        if boxes.when().is_some() {
            return;
        }
        // Those with several blocks.
        let whole = self.trace.whole_axes.iter().map(|(block, _)| *block);
        let whole: Vec<_> = whole.filter(|block| self.axes.contains(block)).collect();
        for block in whole {
            let none_behind = Lin::symbol(block).scale(-1);
            let symbols = &mut self.trace.symbols;
            if stores
                .iter()
                .all(|s| symbols.at_least_zero(&none_behind, &s.facts))
            {
                self.axes.retain(|axis| *axis != block);
                self.alone.push((block, Lin::constant(0)));
            }
        }
    }
}
