//! Outputs that one of the blocks along an axis stores, such as the sum of a row by the first block of the cluster that shares the row.
//!
//! Where a launch has exactly B blocks along an axis, one of them has index 0. If the facts at each store say that the block's index is 0, no other block along the axis
//! stores anything. What that block stores is looked at with its index known, and the axis counts nothing.

use super::Output;
use super::boxes::Boxes;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::memory::GlobalAccess;

impl Output<'_> {
    /// Whether the first of the blocks along an axis alone stores. Its index is known from then on.
    pub(super) fn first_block_alone(
        &mut self,
        axis: Sym,
        stores: &[&GlobalAccess],
        boxes: &Boxes<'_>,
    ) -> bool {
        let is_whole = self
            .trace
            .whole_axes
            .iter()
            .any(|(block, _)| *block == axis);
        let none_behind = Lin::symbol(axis).scale(-1);
        let symbols = &mut self.trace.symbols;
        let mut first = stores.iter().map(|s| &s.facts);
        let alone = is_whole
            && boxes.when().is_none()
            && first.all(|facts| symbols.at_least_zero(&none_behind, facts));
        if alone {
            self.alone.push((axis, Lin::constant(0)));
        }
        alone
    }
}
