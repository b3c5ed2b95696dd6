//! The arguments of a kernel of attention, and the part of each that a block has.
//!
//! ```text
//! (batch, head, sequence)     [batch, heads, rows, d]      a block's rows at [b, h]
//! (batch, sequence, head)     [batch, rows, heads · d]     a block's rows at [b], columns of d elements
//! sequences one after another [rows, heads · d]            a block's rows from the first of its tile, or sequence, on
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::value::F32;
use layout_codegen::view::{Fragment, Partition, View, ViewError};

use super::mask::Masked;
use super::{Attention, BATCHES, HEADS, MOST, Order};
use crate::grouped::{Kind, MOST_GROUPS, MOST_ROWS, Sizes};

/// The names of the number of queries of all sequences, and of sequences.
pub(super) const VARLEN_SIZES: [&str; 2] = ["queries", "sequences"];

/// The sizes, the block's place among them, and the tensors.
pub(super) struct Tensors {
    /// Which m queries the block has, from query `begin` of its sequence on.
    pub(super) i: Expr,
    pub(super) begin: Expr,
    pub(super) masked: Masked,
    pub(super) q: Part,
    pub(super) key: Part,
    pub(super) value: Part,
    pub(super) o: Part,
    /// The sequence, unless sequences lie one after another.
    batch: Option<Expr>,
    head: Expr,
    sinks: Option<View>,
    lse: Option<View>,
    owner: Option<Owner>,
}

/// Of sequences one after another: the tile of a block, its first row of all, and of each row the tile that owns it.
struct Owner {
    tile: Expr,
    row: Expr,
    row_tile: View,
}

/// The matrix of a head in a tensor.
#[derive(Clone)]
pub(super) struct Part {
    view: View,
    slice: Vec<Expr>,
    /// The row that tiles are counted from, if it is not the first.
    from: Option<Expr>,
    column: Expr,
    width: i64,
}

impl Part {
    /// Tile `row` of `rows` rows.
    pub(super) fn tile(&self, k: &mut Kernel, rows: i64, row: Expr) -> Result<View, ViewError> {
        let mut view = self.view.slice(k, &self.slice)?;
        if let Some(from) = self.from {
            let zero = k.constant(0);
            view = view.at(k, &[from, zero])?;
        }
        view.tile(k, &[rows, self.width], &[row, self.column])
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
                from: None,
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
            begin: k.constant(0),
            masked,
            q,
            key,
            value,
            o,
            batch: Some(batch),
            head,
            sinks,
            lse,
            owner: None,
        })
    }

    /// Declares the arguments of a kernel for sequences one after another, of which a block has a tile of `m` queries: (token, head, d), and the tiles as the
    /// [table](crate::grouped::table) of the ends of the sequences has them.
    pub(super) fn declare_varlen(
        k: &mut Kernel,
        what: &Attention,
        m: i64,
    ) -> Result<Self, ViewError> {
        let group = what.group;
        let sizes = Sizes::declare(k, Kind::Offsets, VARLEN_SIZES);
        let (queries, sequences) = (sizes.rows, sizes.groups);
        let (kv_heads, keys) = (k.size("kv_heads", HEADS / group), k.size("keys", MOST_ROWS));
        let heads = k.scale(kv_heads, group);
        let table = ["tile_row", "tile_group", "row_tile"];
        let [tile_row, tile_group, row_tile] =
            table.map(|name| k.input(name, Element::S32, &[sizes.table]));
        let ends = ["query_ends", "key_ends"].map(|name| k.input(name, Element::S32, &[sequences]));

        // There are no more tiles than this, and none without queries; what a block behind the last finds in the table is nobody's.
        let whole = k.tiles_in(queries, m)?;
        let some = k.tiles_in(queries, MOST_ROWS)?;
        let partial = k.mul(sequences, some);
        let tiles = k.add(whole, partial);
        let tile = k.tiles(Axis::X, tiles, 1)?;
        let head = k.tiles(Axis::Y, heads, 1)?;
        let kv_head = k.div(head, group);
        let number = |k: &mut Kernel, of: &View, at: Expr, most: i64| -> Result<Expr, ViewError> {
            let number = of.load::<i32>(k, &[at])?.to_index(k);
            Ok(k.clamp(number, 0, most))
        };
        let row = number(k, &tile_row, tile, MOST_ROWS)?;
        let sequence = number(k, &tile_group, tile, MOST_GROUPS - 1)?;
        let before = k.linear(&[(1, sequence)], -1);
        let mut bounds = Vec::new();
        for (ends, all) in ends.iter().zip([queries, keys]) {
            let mut bound = [
                number(k, ends, before, MOST_ROWS)?,
                number(k, ends, sequence, MOST_ROWS)?,
            ];
            for x in &mut bound {
                *x = k.smaller(*x, all);
            }
            let length = k.linear(&[(1, bound[1]), (-1, bound[0])], 0);
            bounds.push([bound[0], k.clamp(length, 0, MOST_ROWS)]);
        }
        let ([first_query, of_queries], [first_key, of_keys]) = (bounds[0], bounds[1]);
        let begin = k.linear(&[(1, row), (-1, first_query)], 0);
        let begin = k.clamp(begin, 0, MOST_ROWS);

        let (d, of_values) = (what.head_dim, what.value_dim);
        let part = |k: &mut Kernel,
                    name,
                    output: bool,
                    (rows, from): (Expr, Expr),
                    (count, head),
                    width| {
            let extents = [rows, k.scale(count, width)];
            let view = if output {
                k.partial_output(name, what.element, &extents)
            } else {
                k.input(name, what.element, &extents)
            };
            Part {
                view,
                slice: Vec::new(),
                from: Some(from),
                column: head,
                width,
            }
        };
        let q = part(k, "q", false, (queries, row), (heads, head), d);
        let key = part(k, "k", false, (keys, first_key), (kv_heads, kv_head), d);
        let value = part(
            k,
            "v",
            false,
            (keys, first_key),
            (kv_heads, kv_head),
            of_values,
        );
        let sinks = what.sinks.then(|| k.input("sinks", Element::F32, &[heads]));
        let o = part(k, "o", true, (queries, row), (heads, head), of_values);
        let extents = [heads, queries];
        let lse = what
            .lse
            .then(|| k.partial_output("lse", Element::F32, &extents));
        Ok(Self {
            i: k.constant(0),
            begin,
            masked: Masked {
                mask: what.mask,
                queries: of_queries,
                keys: of_keys,
            },
            q,
            key,
            value,
            o,
            batch: None,
            head,
            sinks,
            lse,
            owner: Some(Owner {
                tile,
                row,
                row_tile,
            }),
        })
    }

    /// The share of tile `row` of `rows` queries, of those that the block has.
    pub(super) fn owned(
        &self,
        k: &mut Kernel,
        (rows, row): (i64, Expr),
        to: &Partition,
    ) -> Result<Partition, ViewError> {
        let Some(owner) = &self.owner else {
            return Ok(to.clone());
        };
        let owners = owner
            .row_tile
            .at(k, &[owner.row])?
            .tile(k, &[rows], &[row])?;
        to.where_equal(k, 0, &owners, owner.tile)
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
        let at: Vec<Expr> = self.batch.into_iter().chain([self.head]).collect();
        let mut lse = lse.slice(k, &at)?;
        if let Some(owner) = &self.owner {
            lse = lse.at(k, &[owner.row])?;
        }
        let lse = lse.tile(k, &[rows], &[row])?;
        let lse = o.along(k, 0, &lse)?;
        let lse = self.owned(k, (rows, row), &lse)?;
        k.store_fragment(&lse, logarithm)
    }
}
