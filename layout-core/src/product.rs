//! Products: a layout repeated as another one says.
//!
//! `logical_product(A, B) = (A, complement(A, size(A)·cosize(B)) ∘ B)`: the first mode is the block `A`, the second walks
//! its repetitions in the order of `B`. The others rearrange the modes:
//!
//! ```text
//! block (a,b), tiler <x,y> by mode      logical ((a,x),(b,y))   zipped ((a,b),(x,y))   tiled ((a,b),x,y)   flat (a,b,x,y)
//! block (a,b), layout (x,y)             blocked ((a,x),(b,y)): blocks side by side     raked ((x,a),(y,b)): interleaved
//! ```
//!
//! ```
//! use layout_core::{Layout, blocked_product, raked_product};
//! let l = |s: &str| Layout::parse(s).unwrap();
//! let (block, tiler) = (l("(2,5):(5,1)"), l("(3,4):(1,3)"));
//! assert_eq!(blocked_product(&block, &tiler).unwrap().to_string(), "((2,3),(5,4)):((5,10),(1,30))");
//! assert_eq!(raked_product(&block, &tiler).unwrap().to_string(), "((3,2),(4,5)):((10,5),(30,1))");
//! ```

use crate::complement::complement;
use crate::composition::{Ask, Tiler, composition};
use crate::construct::make_ordered_layout;
use crate::divide::Arrangement;
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::IntTuple;
use crate::layout::{Layout, LayoutBuilder};
use crate::profile::Node;
use crate::relations::{evenly_divides, product_each, shape_div};
use crate::swizzled::Swizzled;

/// `(A, complement(A, size(A)·cosize(B)) ∘ B)`; a tiler of several modes multiplies mode by mode.
///
/// ```
/// use layout_core::{Layout, Tiler, logical_product};
/// let l = |s: &str| Layout::parse(s).unwrap();
/// let product = logical_product(&l("(2,2):(4,1)"), &Tiler::Layout(&l("6:1"))).unwrap();
/// assert_eq!(product.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
/// ```
///
/// # Errors
///
/// Those of [`complement`] and [`composition`] in each mode; a tiler of higher rank than the layout; overflow.
pub const fn logical_product(block: &Layout, tiler: &Tiler<'_>) -> Result<Layout, LayoutError> {
    product(block, tiler, Arrangement::Logical)
}

/// `((block0,block1,…),(tiles0,tiles1,…))`; modes that the tiler does not reach go to the second part.
///
/// # Errors
///
/// As [`logical_product`].
pub const fn zipped_product(block: &Layout, tiler: &Tiler<'_>) -> Result<Layout, LayoutError> {
    product(block, tiler, Arrangement::Zipped)
}

/// `((block0,block1,…),tiles0,tiles1,…)`.
///
/// # Errors
///
/// As [`logical_product`].
pub const fn tiled_product(block: &Layout, tiler: &Tiler<'_>) -> Result<Layout, LayoutError> {
    product(block, tiler, Arrangement::Tiled)
}

/// `(block0,block1,…,tiles0,tiles1,…)`.
///
/// # Errors
///
/// As [`logical_product`].
pub const fn flat_product(block: &Layout, tiler: &Tiler<'_>) -> Result<Layout, LayoutError> {
    product(block, tiler, Arrangement::Flat)
}

/// The repetitions of `block` that `tiler` asks for, without the block itself.
const fn repetitions(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let needed = attempt!(fits(block.size().checked_mul(tiler.cosize()), "product"));
    composition(&attempt!(complement(block, needed)), tiler)
}

struct Multiplier {
    block: LayoutBuilder,
    tiles: LayoutBuilder,
    logical: bool,
}

impl Multiplier {
    const fn node(&mut self, block: &Layout, node: Node, ask: Ask<'_>) -> Result<(), LayoutError> {
        match ask {
            Ask::Keep => {
                self.block.append(block, node);
                if !self.logical {
                    self.tiles.append(&Layout::UNIT, Layout::UNIT.root());
                }
            }
            Ask::Compose(tiler) => {
                let mode = attempt!(block.extract(node));
                let tiles = attempt!(repetitions(&mode, &tiler));
                if self.logical {
                    self.block.open();
                    self.block.append(block, node);
                    self.block.append(&tiles, tiles.root());
                    self.block.close();
                } else {
                    self.block.append(block, node);
                    self.tiles.append(&tiles, tiles.root());
                }
            }
            Ask::Enter(parts) => {
                let (left, right) = (block.profile.rank(node), parts.rank());
                if right > left || right == 0 {
                    return Err(LayoutError::RankMismatch {
                        operation: "product by mode",
                        left,
                        right,
                    });
                }
                self.block.open();
                self.tiles.open();
                let mut mode = Some(block.profile.first(node));
                let mut i = 0;
                while let Some(m) = mode {
                    if i < right {
                        attempt!(self.node(block, m, attempt!(parts.ask(i))));
                    } else if self.logical {
                        self.block.append(block, m);
                    } else {
                        self.tiles.append(block, m);
                    }
                    mode = block.profile.next(node, m);
                    i += 1;
                }
                self.block.close();
                self.tiles.close();
            }
        }
        Ok(())
    }
}

const fn product(
    block: &Layout,
    tiler: &Tiler<'_>,
    arrangement: Arrangement,
) -> Result<Layout, LayoutError> {
    let logical = matches!(arrangement, Arrangement::Logical);
    let mut multiplier = Multiplier {
        block: LayoutBuilder::new(),
        tiles: LayoutBuilder::new(),
        logical,
    };
    attempt!(multiplier.node(block, block.root(), attempt!(tiler.ask())));
    let blocks = attempt!(multiplier.block.finish());
    if logical {
        return Ok(blocks);
    }
    arrangement.join(&blocks, &attempt!(multiplier.tiles.finish()))
}

/// The layout with modes `1:0` appended until it has `rank`.
const fn padded(layout: &Layout, rank: usize) -> Result<Layout, LayoutError> {
    let mut have = layout.rank();
    if have >= rank {
        return Ok(*layout);
    }
    let mut builder = LayoutBuilder::new();
    builder.open();
    builder.append_elements(layout, layout.root());
    while have < rank {
        builder.leaf(1, 0);
        have += 1;
    }
    builder.close();
    builder.finish()
}

/// Mode by mode pairs of two layouts of equal rank; integers make one pair.
const fn zip(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let (x, y) = (a.root(), b.root());
    if a.profile.is_leaf(x) || b.profile.is_leaf(y) {
        return Layout::tuple(&[*a, *b]);
    }
    let mut builder = LayoutBuilder::new();
    builder.open();
    let mut mode = Some(a.profile.first(x));
    let mut other = Some(b.profile.first(y));
    while let (Some(m), Some(n)) = (mode, other) {
        builder.open();
        builder.append(a, m);
        builder.append(b, n);
        builder.close();
        mode = a.profile.next(x, m);
        other = b.profile.next(y, n);
    }
    builder.close();
    builder.finish()
}

/// The parts of the product of layouts padded to a common rank.
const fn ranked_product(block: &Layout, tiler: &Layout) -> Result<(Layout, Layout), LayoutError> {
    let rank = if block.rank() > tiler.rank() {
        block.rank()
    } else {
        tiler.rank()
    };
    let block = attempt!(padded(block, rank));
    let tiler = attempt!(padded(tiler, rank));
    Ok((block, attempt!(repetitions(&block, &tiler))))
}

/// Blocks side by side: mode `i` is `(block mode i, tiler mode i)`, the block fastest. The lower rank is padded with `1:0`.
///
/// # Errors
///
/// As [`logical_product`].
pub const fn blocked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let (block, tiles) = attempt!(ranked_product(block, tiler));
    zip(&block, &tiles)
}

/// Blocks interleaved: mode `i` is `(tiler mode i, block mode i)`, the tiler fastest.
///
/// # Errors
///
/// As [`logical_product`].
pub const fn raked_product(block: &Layout, tiler: &Layout) -> Result<Layout, LayoutError> {
    let (block, tiles) = attempt!(ranked_product(block, tiler));
    zip(&tiles, &block)
}

/// The block repeated until it fills `shape`, tiles in the given order (column-major for `None`): CuTe's `tile_to_shape`.
///
/// ```
/// use layout_core::{IntTuple, Layout, tile_to_shape};
/// let atom = Layout::parse("(8,4):(4,1)").unwrap();
/// let shape = IntTuple::parse("(16,8)").unwrap();
/// let tiled = tile_to_shape(&atom, &shape, None).unwrap();
/// assert_eq!(tiled.to_string(), "((8,2),(4,2)):((4,32),(1,64))");
/// ```
///
/// # Errors
///
/// [`LayoutError::NotDivisible`] where the block does not divide the shape; a shape of lower rank than the block;
/// [`LayoutError::InvalidOrder`]; the errors of [`blocked_product`].
pub const fn tile_to_shape(
    block: &Layout,
    shape: &IntTuple,
    order: Option<&IntTuple>,
) -> Result<Layout, LayoutError> {
    let rank = shape.rank();
    if block.rank() > rank {
        return Err(LayoutError::RankMismatch {
            operation: "tile_to_shape",
            left: rank,
            right: block.rank(),
        });
    }
    let block = attempt!(padded(block, rank));
    let extents = attempt!(product_each(&block.shape()));
    let target = attempt!(product_each(shape));
    let mut i = 0;
    while i < target.leaves() {
        if target.values[i] < 1 {
            return Err(LayoutError::InvalidExtent {
                mode: i,
                extent: target.values[i],
            });
        }
        if target.values[i] % extents.values[i] != 0 {
            return Err(LayoutError::NotDivisible {
                operation: "tile_to_shape",
                mode: i,
                value: target.values[i],
                divisor: extents.values[i],
            });
        }
        i += 1;
    }
    debug_assert!(evenly_divides(&target, &extents));
    let tiles = attempt!(shape_div(&target, &extents));
    let tiler = match order {
        Some(order) => attempt!(make_ordered_layout(&tiles, order)),
        None => attempt!(Layout::compact(tiles)),
    };
    blocked_product(&block, &tiler)
}

/// [`tile_to_shape`] of a swizzled atom.
///
/// # Errors
///
/// As [`tile_to_shape`].
pub const fn tile_to_shape_swizzled(
    block: &Swizzled,
    shape: &IntTuple,
    order: Option<&IntTuple>,
) -> Result<Swizzled, LayoutError> {
    block.with_layout(attempt!(tile_to_shape(&block.layout(), shape, order)))
}
