//! Grouped products, as a mixture of experts has them: each row of A is multiplied with the matrix of its group, c\[r\] = a\[r\]·b\[g\]ᵀ. bf16, or e4m3 with scales of rows or of blocks; summed in f32.
//!
//! ```text
//! kernel 1    ends of groups, or counts ──scans of a block──▶ tile_row, tile_group: the tiles of rows, group after group
//!                                                             row_tile: of each row the tile that owns it, or −1
//! kernel 2    block b of B: tiles b, b + B, …     a: rows from tile_row on ──TMA──▶ stage ─┐
//!             of (tiles of rows) × ⌈n / tn⌉       b: matrix tile_group     ──TMA──▶ stage ─┴▶ wgmma ──▶ c: the rows that the tile owns
//! ```
//!
//! A tile begins at the first row of its group or m rows further. Rows behind the end of the group come with the tile, are multiplied and not stored: a row of c is stored by the tile that
//! `row_tile` names, and by no other. So the kernels are proven for any offsets: no two blocks store the same row, whatever the tables hold ([`Partition::where_equal`]).
//!
//! # Groups
//!
//! * [`Kind::Offsets`]: a is m × k, the rows of the groups one after another. `offsets` has the ends of the groups: group g has the rows from the end of group g − 1 to `offsets[g]`. An end is first
//!   limited to 0 to m, and to at least the ends before it: where offsets decrease, a group is empty. Rows behind the last end are not written.
//! * [`Kind::Masked`]: a is G × m × k, and the first `counts[g]` rows of group g are valid, limited to 0 to m. Other rows of c are not written.
//!
//! # Numerics
//!
//! Each element of c is one sum in f32 in the order of k, rounded once. For e4m3 the tensor cores keep 13 bits of a sum. With scales of rows the sum is multiplied with the scale of its row of a, then
//! with that of its row of b; with scales of blocks the sums of 128 of k are, and are added in f32 by `fma`. A row of c depends on its row of a and the matrix of its group alone: not on other rows, nor on how rows are spread over groups. NaN and ∞ in one row do not reach another.
//!
//! [`Partition::where_equal`]: layout_codegen::view::Partition::where_equal

mod product;
pub(crate) mod table;

use std::fmt;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::view::ViewError;
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::block_scaled::{BLOCK, Scales};
use table::Of;

/// The architecture that has the instructions of these kernels.
pub const ARCH: Arch = Arch(90);

/// The element types of a and b.
pub const ELEMENTS: [Element; 2] = [Element::Bf16, Element::E4m3];

/// The element types of c.
pub const RESULTS: [Element; 2] = [Element::Bf16, Element::F32];

/// The most groups.
pub const MOST_GROUPS: i64 = 512;

/// The most rows of all groups ([`Kind::Offsets`]).
pub const MOST_ROWS: i64 = 1 << 22;

/// The most rows of a group ([`Kind::Masked`]), and the largest n.
pub const MOST: i64 = 1 << 16;

/// The largest k.
pub const MOST_K: i64 = 1 << 20;

/// The longest row of scales.
const MOST_SCALES: i64 = 1 << 26;

/// The blocks of a GPU with 132 multiprocessors.
pub const BLOCKS: u32 = 132;

/// Where the groups are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The rows of the groups one after another, and the end of each group.
    Offsets,
    /// A matrix for each group, and the number of its valid rows.
    Masked,
}

impl Kind {
    /// The name of the tensor that says where the groups are: G elements of s32.
    pub fn tensor(self) -> &'static str {
        match self {
            Self::Offsets => "offsets",
            Self::Masked => "counts",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Offsets => "offsets",
            Self::Masked => "masked",
        })
    }
}

/// The tile of a block, and its consumers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Rows: 64 or 128.
    pub m: i64,
    /// Columns: a multiple of 64, 64 to 256.
    pub n: i64,
    /// Stages of 128 bytes of k: 3 to 8.
    pub stages: i64,
}

/// A grouped product.
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::grouped::{ARCH, Grouped, Kind, grouped};
///
/// let what = Grouped::new(Element::Bf16, None, Kind::Offsets, [8192, 32]);
/// let [table, product] = &grouped(what, ARCH)?[..] else { unreachable!() };
/// assert_eq!(table.proof.covered, ["tile_row", "tile_group", "row_tile"]);
/// assert_eq!(product.name(), "grouped_bf16_128x256");
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grouped {
    /// The type of a and b: bf16 or e4m3.
    pub element: Element,
    /// The type of c: bf16 or f32.
    pub result: Element,
    /// Where the groups are.
    pub kind: Kind,
    /// Which elements have a scale in common, if there are scales: of e4m3 those of rows, or of blocks, in tiles of at most 128 columns.
    pub scales: Option<Scales>,
    /// The tile of a block.
    pub tile: Tile,
    /// Blocks of the grid: one for each multiprocessor.
    pub blocks: u32,
}

impl Grouped {
    /// The product for `rows` rows in `groups` groups. Tiles of 128 rows are for groups of more than 64. The tiles are the fastest of those that were measured on an H200.
    pub fn new(
        element: Element,
        scales: Option<Scales>,
        kind: Kind,
        [rows, groups]: [u64; 2],
    ) -> Self {
        let many_rows = rows.div_ceil(groups.max(1)) > 64;
        let [m, n, stages] = match (many_rows, element, scales) {
            (true, _, Some(Scales::Blocks)) => [128, 128, 6],
            (false, _, Some(Scales::Blocks)) => [64, 128, 7],
            (true, ..) => [128, 256, 4],
            (false, Element::E4m3, _) => [64, 192, 6],
            (false, ..) => [64, 256, 5],
        };
        Self {
            element,
            result: Element::Bf16,
            kind,
            scales,
            tile: Tile { m, n, stages },
            blocks: BLOCKS,
        }
    }

    fn validate(&self, arch: Arch) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        KernelError::unless_among(self.result, &RESULTS)?;
        let Tile { m, n, stages, .. } = self.tile;
        let number = |what, given: i64, is: bool, accepted| {
            if is {
                return Ok(());
            }
            Err(KernelError::Number {
                what,
                given: given.to_string(),
                accepted,
            })
        };
        let is_sm_90 = arch == ARCH;
        number(
            "architecture of grouped products",
            arch.0.into(),
            is_sm_90,
            "90 (sm_90a)",
        )?;
        number("rows of a tile", m, [64, 128].contains(&m), "64 or 128")?;
        let is_width = (64..=256).contains(&n) && n % 64 == 0;
        number("columns of a tile", n, is_width, "64, 128, 192 or 256")?;
        if let Some(scales) = self.scales {
            let blocks = scales == Scales::Blocks;
            let has = scales == Scales::Rows || blocks && self.element == Element::E4m3;
            if !has {
                return Err(KernelError::Number {
                    what: "scales of groups",
                    given: format!("{scales} of {}", self.element),
                    accepted: "row,row or 1x128,128x128 of e4m3",
                });
            }
            number(
                "columns of a tile with scales of blocks",
                n,
                !blocks || n <= BLOCK,
                "64 or 128",
            )?;
        }
        number("stages", stages, (3..=8).contains(&stages), "3 to 8")?;
        let blocks = (1..=4096).contains(&self.blocks);
        number("blocks", self.blocks.into(), blocks, "1 to 4096")
    }
}

/// The kernels of a grouped product, in the order of their launches. What the first writes and the second reads is a workspace of three arrays of R + G + 1 elements of s32, for R rows in all.
///
/// * `grouped_tiles_<kind>(m, groups, offsets or counts, tile_row, tile_group, row_tile)`. The last element of `tile_row` is the number of tiles.
/// * `grouped_<element>_<tile>(m, n, k, groups, tile_row, tile_group, row_tile, a, b, c)`, with `scale_a` and `scale_b` before c if there are scales: vectors
///   of R and of G·n numbers of f32, or with [`Scales::Blocks`] ⌈k / 128⌉ × R and G·⌈n / 128⌉ × ⌈k / 128⌉, whose rows are `ld_scale_a` (a multiple of 4) and `ld_scale_b` elements apart.
///
/// a is m × k, b is G × n × k, c is m × n; with [`Kind::Masked`] a is G × m × k and c is G × m × n. k is a multiple of 16 bytes of elements. G is at most [`MOST_GROUPS`].
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields do not allow; [`KernelError::View`] and [`KernelError::Proof`] for a tile that does not fit shared memory or registers.
pub fn grouped(what: Grouped, arch: Arch) -> Result<Vec<Proven>, KernelError> {
    what.validate(arch)?;
    let of = Of {
        kernel: format!("grouped_tiles_{}_{}", what.kind, what.tile.m),
        sizes: SIZES,
        groups: what.kind.tensor(),
        tile: what.tile.m,
        align: product::align(&what),
    };
    Ok(vec![
        table::table(&of, what.kind, arch)?,
        product::product(&what, arch)?,
    ])
}

/// The names of the number of rows, and of groups.
const SIZES: [&str; 2] = ["m", "groups"];

/// The sizes that both kernels have: groups, rows of all groups, and elements of each array of the table.
pub(crate) struct Sizes {
    /// m: of a group, or of all.
    m: Expr,
    pub(crate) groups: Expr,
    pub(crate) rows: Expr,
    pub(crate) table: Expr,
}

impl Sizes {
    pub(crate) fn declare(k: &mut Kernel, kind: Kind, [m, groups]: [&str; 2]) -> Self {
        let most = match kind {
            Kind::Offsets => MOST_ROWS,
            Kind::Masked => MOST,
        };
        let (m, groups) = (k.size(m, most), k.size(groups, MOST_GROUPS));
        let rows = match kind {
            Kind::Offsets => m,
            Kind::Masked => k.mul(groups, m),
        };
        let table = k.linear(&[(1, rows), (1, groups)], 1);
        Self {
            m,
            groups,
            rows,
            table,
        }
    }

    /// The index of the number of tiles in `tile_row`: behind all tiles, of which there are at most rows + groups.
    fn last(&self, k: &mut Kernel) -> Expr {
        k.linear(&[(1, self.table)], -1)
    }
}

/// What building a view may refuse.
type Done = Result<(), ViewError>;
