//! The arguments of a kernel of attention, and the part of each that a block has.
//!
//! ```text
//! (batch, head, sequence)     [batch, heads, rows, d]      a block's rows at [b, h]
//! (batch, sequence, head)     [batch, rows, heads · d]     a block's rows at [b], columns of d elements
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::value::F32;
use layout_codegen::view::{Fragment, Partition, View, ViewError};

use super::mask::Masked;
use super::{Attention, BATCHES, HEADS, MOST, Order};

/// The sizes, the block's place among them, and the tensors.
pub(super) struct Tensors {
    /// Which m queries the block has, and of which head.
    pub(super) i: Expr,
    pub(super) masked: Masked,
    pub(super) q: Part,
    pub(super) key: Part,
    pub(super) value: Part,
    pub(super) o: Part,
    batch: Expr,
    head: Expr,
    sinks: Option<View>,
    lse: Option<View>,
}

/// The matrix of a head in a tensor.
#[derive(Clone)]
pub(super) struct Part {
    view: View,
    slice: Vec<Expr>,
    column: Expr,
    width: i64,
}

impl Part {
    /// Tile `row` of `rows` rows.
    pub(super) fn tile(&self, k: &mut Kernel, rows: i64, row: Expr) -> Result<View, ViewError> {
        self.view
            .slice(k, &self.slice)?
            .tile(k, &[rows, self.width], &[row, self.column])
    }
}

impl Tensors {
    /// Declares the arguments of a kernel of which a block has `m` queries. TMA reads tensors of three modes at most: the inputs of a kernel by TMA are declared so.
    pub(super) fn declare(
        k: &mut Kernel,
        what: &Attention,
        m: i64,
        by_tma: bool,
    ) -> Result<Self, ViewError> {
        let group = what.group;
        let (batches, kv_heads) = (k.size("batch", BATCHES), k.size("kv_heads", HEADS / group));
        let (queries, keys) = (k.size("queries", MOST), k.size("keys", MOST));
        let heads = k.scale(kv_heads, group);

        // Block (i, head, batch) has m queries of one head. Where later rows see more keys, the longest first.
        let i = if what.mask.right.is_some() && what.mask.left.is_none() {
            k.tiles_from_last(Axis::X, queries, m)?
        } else {
            k.tiles(Axis::X, queries, m)?
        };
        let head = k.tiles(Axis::Y, heads, 1)?;
        let batch = k.tiles(Axis::Z, batches, 1)?;
        let kv_head = k.div(head, group);

        let part = |k: &mut Kernel, name, input: bool, [count, head, rows]: [Expr; 3], width| {
            let zero = k.constant(0);
            let columns = k.constant(width);
            let (extents, slice, column) = match what.order {
                Order::BatchSequenceHead => (
                    vec![batches, rows, k.scale(count, width)],
                    vec![batch],
                    head,
                ),
                Order::BatchHeadSequence if input && by_tma => {
                    let (all, before) = (k.mul(batches, count), k.mul(batch, count));
                    (vec![all, rows, columns], vec![k.add(before, head)], zero)
                }
                Order::BatchHeadSequence => {
                    (vec![batches, count, rows, columns], vec![batch, head], zero)
                }
            };
            let view = if input {
                k.input(name, what.element, &extents)
            } else {
                k.output(name, what.element, &extents)
            };
            Part {
                view,
                slice,
                column,
                width,
            }
        };
        let (d, of_values) = (what.head_dim, what.value_dim);
        let q = part(k, "q", true, [heads, head, queries], d);
        let key = part(k, "k", true, [kv_heads, kv_head, keys], d);
        let value = part(k, "v", true, [kv_heads, kv_head, keys], of_values);
        let sinks = what.sinks.then(|| k.input("sinks", Element::F32, &[heads]));
        let o = part(k, "o", false, [heads, head, queries], of_values);
        let extents = [batches, heads, queries];
        let lse = what.lse.then(|| k.output("lse", Element::F32, &extents));
        let masked = Masked {
            mask: what.mask,
            queries,
            keys,
        };
        Ok(Self {
            i,
            masked,
            q,
            key,
            value,
            o,
            batch,
            head,
            sinks,
            lse,
        })
    }

    /// The score of the head's sink.
    pub(super) fn sink(&self, k: &mut Kernel) -> Result<Option<F32>, ViewError> {
        let load = |sinks: &View| sinks.load::<f32>(k, &[self.head]);
        self.sinks.as_ref().map(load).transpose()
    }

    /// Stores the logarithms of tile `row` of `rows` queries, which lie along the rows of `o`.
    pub(super) fn store_lse(
        &self,
        k: &mut Kernel,
        (rows, row): (i64, Expr),
        o: &Partition,
        logarithm: &Fragment,
    ) -> Result<(), ViewError> {
        let Some(lse) = &self.lse else { return Ok(()) };
        let lse = lse
            .slice(k, &[self.batch, self.head])?
            .tile(k, &[rows], &[row])?;
        let lse = o.along(k, 0, &lse)?;
        k.store_fragment(&lse, logarithm)
    }
}
