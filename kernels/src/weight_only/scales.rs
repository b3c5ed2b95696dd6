//! What groups of weights have: scales, and zero points.
//!
//! ```text
//! int4             k/group × n, in the type of a                       two rows are a word of a lane
//! mxfp4, nvfp4     bytes in the order of [`packed_scales`]             two rows by two groups are a word of a lane
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::value::{F32, U32, Value};
use layout_codegen::view::{Fragment, Partition, View, ViewError};
use layout_core::Layout;

use super::order::{self, PIECE_K, PIECE_ROWS};
use super::unpack::{self, Pair};
use super::{Tile, WeightOnly, Weights};

/// Rows and groups that have their scales in a word.
const ROWS_AND_GROUPS: [i64; 2] = [2, 2];

/// What the weights of a lane have in common: those of two rows, of one group.
pub(super) struct Group<T> {
    /// 16 × 1, in f32.
    pub(super) scales: Fragment,
    /// 2^p + z of both rows, in both halves; of integers.
    pub(super) zeros: [Value<T>; 2],
}

impl WeightOnly {
    /// The tensors of what groups have.
    pub(super) fn names_of_groups(&self) -> &'static [&'static str] {
        if self.zero_points {
            &["scales", "zeros"]
        } else {
            &["scales"]
        }
    }

    /// Scales are bytes, four in a word.
    pub(super) fn has_packed_scales(&self) -> bool {
        self.weights != Weights::Int4
    }

    /// Words of scales of a piece.
    fn scale_words(&self) -> i64 {
        let [rows, groups] = ROWS_AND_GROUPS;
        PIECE_ROWS / rows * (PIECE_K / self.group / groups)
    }

    pub(super) fn scale_element(&self) -> Element {
        if self.has_packed_scales() {
            Element::S32
        } else {
            self.element
        }
    }

    /// Extents of the scales of all n rows, of which there are so many pieces along both.
    pub(super) fn scale_extents(
        &self,
        k: &mut Kernel,
        [n, depth]: [Expr; 2],
        [pieces, along]: [Expr; 2],
    ) -> Result<[Expr; 2], ViewError> {
        if self.has_packed_scales() {
            return Ok([pieces, k.scale(along, self.scale_words())]);
        }
        Ok([k.tiles_in(depth, self.group)?, n])
    }

    /// The shape of the tile of scales of a stage.
    pub(super) fn scale_tile(&self, tile: Tile) -> [i64; 2] {
        if self.has_packed_scales() {
            return [tile.n / PIECE_ROWS, tile.k / PIECE_K * self.scale_words()];
        }
        [tile.k / self.group, tile.n]
    }

    /// The place of the tile for rows of w and a step along k.
    pub(super) fn scale_tile_at(&self, rows: Expr, step: Expr) -> [Expr; 2] {
        if self.has_packed_scales() {
            [rows, step]
        } else {
            [step, rows]
        }
    }

    /// The groups of a piece in a stage, or the one that begins with it: `cut` of them. `own` is what the lane has of the sums of the piece.
    pub(super) fn groups<T: Pair>(
        &self,
        k: &mut Kernel,
        (scales, zeros): (&View, Option<&View>),
        ([row, piece], cut): ([Expr; 2], i64),
        (own, lane): (&Partition, Expr),
    ) -> Result<Vec<Group<T>>, ViewError> {
        let eight = U32::from(unpack::both(T::BASE + 8));
        if self.has_packed_scales() {
            let none = [T::of_bits(k, eight); 2];
            let all = self.packed_scales(k, scales, [row, piece], lane)?;
            let all = all.into_iter().map(|scales| Group {
                scales,
                zeros: none,
            });
            return Ok(all.collect());
        }
        let each = |part| {
            let at = k.linear(&[(PIECE_K, piece)], part * (PIECE_K / cut));
            let at = k.div(at, self.group);
            let scales = of_rows(k, scales, [at, row], own)?.convert(k, Element::F32)?;
            let zeros = match zeros {
                None => [T::of_bits(k, eight); 2],
                Some(zeros) => {
                    // Those of two rows are a word.
                    let pair: Vec<Value<T>> =
                        of_rows(k, zeros, [at, row], own)?.thread_values(k)?;
                    unpack::raised(k, pair[0])
                }
            };
            Ok(Group { scales, zeros })
        };
        (0..cut).map(each).collect()
    }

    /// The scales of the groups of a piece, from bytes.
    fn packed_scales(
        &self,
        k: &mut Kernel,
        scales: &View,
        [row, piece]: [Expr; 2],
        lane: Expr,
    ) -> Result<Vec<Fragment>, ViewError> {
        let [rows, groups] = ROWS_AND_GROUPS;
        let lanes = PIECE_ROWS / rows;
        // The rows of a lane are those that it has sums of.
        let tv = Layout::tuple(&[
            Layout::flat(&[32 / lanes, lanes], &[0, rows])?,
            Layout::mode(rows, 1)?,
        ])?;
        let pair = k.div(lane, 32 / lanes);
        let mut all = Vec::new();
        for first in 0..self.scale_words() / lanes {
            let at = k.linear(&[(self.scale_words(), piece), (1, pair)], first * lanes);
            let word = scales.load::<u32>(k, &[row, at])?;
            for group in 0..groups {
                let of_rows: Vec<F32> = (0..rows)
                    .map(|i| {
                        let byte = word.shr(k, 8 * (i + rows * group) as u32).and(k, 0xff);
                        match self.weights {
                            Weights::Mxfp4 => unpack::e8m0(k, byte),
                            _ => unpack::e4m3(k, byte),
                        }
                    })
                    .collect();
                all.push(k.fragment([PIECE_ROWS, 1], &tv, lane, &of_rows)?);
            }
        }
        Ok(all)
    }
}

/// What a group has for the rows of a piece that the lane has sums of.
fn of_rows(
    k: &mut Kernel,
    of: &View,
    [group, piece]: [Expr; 2],
    own: &Partition,
) -> Result<Fragment, ViewError> {
    let of = of.slice(k, &[group])?.tile(k, &[PIECE_ROWS], &[piece])?;
    let of = own.along(k, 0, &of)?.vectors(k, 2)?;
    k.load_fragment(&of)
}

/// (row, group) → byte, of the scales of mxfp4 (`group` 32) and nvfp4 (16) weights: those of a lane's two rows and two groups are a word. Rows are rounded up to 16, k to 64.
///
/// ```
/// use tilewright_kernels::weight_only::scales::packed_scales;
///
/// let scales = packed_scales(32, 128, 32)?;
/// assert_eq!([[0, 0], [1, 0], [0, 1], [2, 0], [0, 2], [16, 0]].map(|at| scales.at(&at)), [0, 1, 2, 4, 32, 64]);
/// assert!(scales.is_bijective());
/// # Ok::<(), layout_core::LayoutError>(())
/// ```
///
/// # Errors
///
/// [`LayoutError`](layout_core::LayoutError) for extents whose product overflows.
pub fn packed_scales(
    rows: i64,
    depth: i64,
    group: i64,
) -> Result<Layout, layout_core::LayoutError> {
    let [of_rows, of_groups] = ROWS_AND_GROUPS;
    let (lanes, words) = (
        PIECE_ROWS / of_rows,
        PIECE_K / group.clamp(1, PIECE_K / of_groups) / of_groups,
    );
    let bytes = of_rows * of_groups;
    let piece = lanes * words * bytes;
    let along = order::pieces(depth, PIECE_K);
    let stride = along.checked_mul(piece).unwrap_or(i64::MAX);
    Layout::tuple(&[
        Layout::flat(
            &[of_rows, lanes, order::pieces(rows, PIECE_ROWS)],
            &[1, bytes, stride],
        )?,
        Layout::flat(&[of_groups, words, along], &[of_rows, lanes * bytes, piece])?,
    ])
}
