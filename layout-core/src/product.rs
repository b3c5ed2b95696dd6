//! Products: a block repeated in the arrangement of another layout.
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
//! use layout_core::Layout;
//! let l = |s: &str| Layout::parse(s).unwrap();
//! let (block, tiler) = (l("(2,5):(5,1)"), l("(3,4):(1,3)"));
//! assert_eq!(block.blocked_product(&tiler).unwrap().to_string(), "((2,3),(5,4)):((5,10),(1,30))");
//! assert_eq!(block.raked_product(&tiler).unwrap().to_string(), "((3,2),(4,5)):((10,5),(30,1))");
//! ```
//!
//! # Padding
//!
//! A padded block such as `(64,64):(72,1)` leaves gaps that no copy of its smaller modes fills exactly. Such a gap takes as
//! many whole copies as fit (none of 64 in the 8 left over), as in CuTe, and the next repetition starts after the block with
//! its padding: `((64,64),3):((72,1),4608)`. If the copies in the gaps do not compose with the tiler, the gaps stay empty:
//! `(4,4):(9,1)` by 2 is `2:4` (one copy in each gap), by 3 it is `3:36`. This holds for gaps of whole copies as well:
//! `(2,2):(1,4)` by 4 is `(2,2):(2,8)`, by 3 it is `3:8`. So a product exists for every block whose modes do not overlap, and it
//! is the identity above wherever that is a layout.

use crate::complement::Padding;
use crate::composition::{Ask, Tiler};
use crate::construct::make_ordered_layout;
use crate::divide::Arrangement;
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::profile::Node;
use crate::relations::{product_each, shape_div};
use crate::strided::{LayoutBuilder, Strided};
use crate::swizzled::Swizzled;

const OPERATION: &str = "product";

struct Multiplier<const K: usize> {
    block: LayoutBuilder<K>,
    tiles: LayoutBuilder<K>,
    logical: bool,
}

impl<const K: usize> Multiplier<K> {
    const fn node(
        &mut self,
        block: &Strided<K>,
        node: Node,
        ask: Ask<'_>,
    ) -> Result<(), LayoutError> {
        match ask {
            Ask::Keep => {
                self.block.append(block, node);
                if !self.logical {
                    self.tiles.mode(1, [0; K]);
                }
            }
            Ask::Compose(tiler) => {
                let mode = attempt!(block.extract(node));
                let tiles = attempt!(mode.repetitions(&tiler));
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
                attempt!(block.enter("product by mode", node, &parts));
                self.block.open();
                self.tiles.open();
                let mut mode = Some(block.profile.first(node));
                let mut i = 0;
                while let Some(m) = mode {
                    if i < parts.rank() {
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

impl<const K: usize> Strided<K> {
    /// The repetitions of this block by `tiler`, without the block itself: where they compose with the copies that fill the
    /// gaps of the block, these; otherwise behind the block and its gaps, in one row, which composes with everything.
    const fn repetitions(&self, tiler: &Layout) -> Result<Self, LayoutError> {
        let needed = attempt!(fits(self.size().checked_mul(tiler.cosize()), OPERATION));
        let copies = match self.complement_with(needed, Padding::Fill) {
            Ok(copies) => copies,
            Err(error) => return Err(error.of(OPERATION)),
        };
        if let Ok(tiles) = copies.compose(tiler) {
            return Ok(tiles);
        }
        match self.complement_with(needed, Padding::Skip) {
            Ok(copies) => copies.compose(tiler),
            Err(error) => Err(error.of(OPERATION)),
        }
    }

    const fn product(
        &self,
        tiler: &Tiler<'_>,
        arrangement: Arrangement,
    ) -> Result<Self, LayoutError> {
        let logical = matches!(arrangement, Arrangement::Logical);
        let mut multiplier = Multiplier {
            block: LayoutBuilder::like(self),
            tiles: LayoutBuilder::like(self),
            logical,
        };
        attempt!(multiplier.node(self, self.root(), attempt!(tiler.ask())));
        let blocks = attempt!(multiplier.block.finish());
        if logical {
            return Ok(blocks);
        }
        arrangement.join(&blocks, &attempt!(multiplier.tiles.finish()))
    }

    /// `(A, complement(A, size(A)·cosize(B)) ∘ B)`; a tiler of several modes multiplies mode by mode.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// let product = l("(2,2):(4,1)").logical_product(&Tiler::Layout(&l("6:1"))).unwrap();
    /// assert_eq!(product.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// // Three stages of a padded tile.
    /// let stages = l("(64,64):(72,1)").logical_product(&Tiler::Int(3)).unwrap();
    /// assert_eq!(stages.to_string(), "((64,64),3):((72,1),4608)");
    /// ```
    ///
    /// # Errors
    ///
    /// A block with overlapping modes or negative strides; the errors of [`compose`](Self::compose) in each mode; a tiler of
    /// higher rank than the layout; overflow.
    pub const fn logical_product(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        self.product(tiler, Arrangement::Logical)
    }

    /// `((block0,block1,…),(tiles0,tiles1,…))`; modes that the tiler does not reach go to the second part.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let block = Layout::parse("(2,4):(1,2)").unwrap();
    /// let product = block.zipped_product(&Tiler::Modes(&[Tiler::Int(3), Tiler::Int(2)])).unwrap();
    /// assert_eq!(product.to_string(), "((2,4),(3,2)):((1,2),(2,1))");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_product`](Self::logical_product).
    pub const fn zipped_product(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        self.product(tiler, Arrangement::Zipped)
    }

    /// `((block0,block1,…),tiles0,tiles1,…)`.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let block = Layout::parse("(2,4):(1,2)").unwrap();
    /// let product = block.tiled_product(&Tiler::Modes(&[Tiler::Int(3)])).unwrap();
    /// assert_eq!(product.to_string(), "((2),3,4):((1),2,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_product`](Self::logical_product).
    pub const fn tiled_product(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        self.product(tiler, Arrangement::Tiled)
    }

    /// `(block0,block1,…,tiles0,tiles1,…)`.
    ///
    /// ```
    /// use layout_core::{Layout, Tiler};
    /// let block = Layout::parse("(2,4):(1,2)").unwrap();
    /// let product = block.flat_product(&Tiler::Modes(&[Tiler::Int(3)])).unwrap();
    /// assert_eq!(product.to_string(), "(2,3,4):(1,2,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_product`](Self::logical_product).
    pub const fn flat_product(&self, tiler: &Tiler<'_>) -> Result<Self, LayoutError> {
        self.product(tiler, Arrangement::Flat)
    }

    /// The layout as a tuple with modes `1:0` appended until it has `rank`.
    const fn padded(&self, rank: usize) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::like(self);
        builder.open();
        builder.append_elements(self, self.root());
        let mut have = self.rank();
        while have < rank {
            builder.mode(1, [0; K]);
            have += 1;
        }
        builder.close();
        builder.finish()
    }

    /// The parts of the product of layouts padded to a common rank; of two bare modes, as they are.
    const fn ranked_product(&self, tiler: &Layout) -> Result<(Self, Self), LayoutError> {
        if self.depth() == 0 && tiler.depth() == 0 {
            return Ok((*self, attempt!(self.repetitions(tiler))));
        }
        let rank = if self.rank() > tiler.rank() {
            self.rank()
        } else {
            tiler.rank()
        };
        let block = attempt!(self.padded(rank));
        let tiler = attempt!(tiler.padded(rank));
        Ok((block, attempt!(block.repetitions(&tiler))))
    }

    /// Mode by mode pairs; a bare mode makes one pair.
    const fn pairs(&self, other: &Self, bare: bool) -> Result<Self, LayoutError> {
        if bare {
            Self::tuple(&[*self, *other])
        } else {
            self.zip(other)
        }
    }

    /// Blocks side by side: mode `i` is `(block mode i, tiler mode i)`, the block fastest. The lower rank is padded with
    /// `1:0`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// let product = l("(2,5):(5,1)").blocked_product(&l("(3,4):(1,3)")).unwrap();
    /// assert_eq!(product.to_string(), "((2,3),(5,4)):((5,10),(1,30))");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_product`](Self::logical_product).
    pub const fn blocked_product(&self, tiler: &Layout) -> Result<Self, LayoutError> {
        let (block, tiles) = attempt!(self.ranked_product(tiler));
        block.pairs(&tiles, block.depth() == 0)
    }

    /// Blocks interleaved: mode `i` is `(tiler mode i, block mode i)`, the tiler fastest.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// let product = l("(2,5):(5,1)").raked_product(&l("(3,4):(1,3)")).unwrap();
    /// assert_eq!(product.to_string(), "((3,2),(4,5)):((10,5),(30,1))");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`logical_product`](Self::logical_product).
    pub const fn raked_product(&self, tiler: &Layout) -> Result<Self, LayoutError> {
        let (block, tiles) = attempt!(self.ranked_product(tiler));
        tiles.pairs(&block, block.depth() == 0)
    }

    /// The block repeated until it fills `shape`, tiles in the given order (column-major for `None`): CuTe's
    /// `tile_to_shape`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout};
    /// let atom = Layout::parse("(8,4):(4,1)").unwrap();
    /// let shape = IntTuple::parse("(16,8)").unwrap();
    /// let tiled = atom.tile_to_shape(&shape, None).unwrap();
    /// assert_eq!(tiled.to_string(), "((8,2),(4,2)):((4,32),(1,64))");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::NotDivisible`] where the block does not divide the shape; a shape of lower rank than the block;
    /// [`LayoutError::InvalidOrder`]; the errors of [`blocked_product`](Self::blocked_product).
    pub const fn tile_to_shape(
        &self,
        shape: &IntTuple,
        order: Option<&IntTuple>,
    ) -> Result<Self, LayoutError> {
        const OPERATION: &str = "tile_to_shape";
        let rank = shape.rank();
        if self.rank() > rank {
            return Err(LayoutError::TilerRank {
                operation: OPERATION,
                modes: rank,
                tiles: self.rank(),
            });
        }
        let block = if self.depth() == 0 && shape.is_int() {
            *self
        } else {
            attempt!(self.padded(rank))
        };
        let extents = attempt!(product_each(&block.shape()));
        let target = attempt!(product_each(shape));
        let mut i = 0;
        while i < target.leaves() {
            let (value, divisor) = (target.values[i], extents.values[i]);
            if value < 1 {
                return Err(LayoutError::InvalidExtent {
                    mode: i,
                    extent: value,
                });
            }
            if value % divisor != 0 {
                return Err(LayoutError::NotDivisible {
                    operation: OPERATION,
                    mode: i,
                    value,
                    divisor,
                });
            }
            i += 1;
        }
        let tiles = attempt!(shape_div(&target, &extents));
        let tiler = match order {
            Some(order) => attempt!(make_ordered_layout(&tiles, order)),
            None => attempt!(Layout::compact(tiles)),
        };
        block.blocked_product(&tiler)
    }
}

/// Declares the products of a swizzled layout: those of the layout inside, under the same swizzle and offset.
macro_rules! inside {
    ($($name:ident($($arg:ident: $type:ty),*), $example:literal, $result:literal;)*) => {
        impl<const K: usize> Swizzled<K> {
            $(
                #[doc = concat!("[`Layout::", stringify!($name), "`] of the layout inside, under the same swizzle.")]
                ///
                /// ```
                /// use layout_core::{IntTuple, Layout, Swizzled, Tiler};
                /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
                /// let tiler = Layout::parse("(2,2):(1,2)").unwrap();
                /// let shape = IntTuple::parse("(8,8)").unwrap();
                #[doc = concat!("let product = tile.", $example, ".unwrap();")]
                #[doc = concat!("assert_eq!(product.to_string(), \"", $result, "\");")]
                /// # let _ = (tiler, shape, Tiler::Keep);
                /// ```
                ///
                /// # Errors
                ///
                #[doc = concat!("As [`Layout::", stringify!($name), "`].")]
                pub const fn $name(&self, $($arg: $type),*) -> Result<Self, LayoutError> {
                    self.with_layout(attempt!(self.layout.$name($($arg),*)))
                }
            )*
        }
    };
}

inside! {
    logical_product(tiler: &Tiler<'_>), "logical_product(&Tiler::Int(2))", "Sw<2,0,2> o ((4,4),2):((4,1),16)";
    zipped_product(tiler: &Tiler<'_>), "zipped_product(&Tiler::Int(2))", "Sw<2,0,2> o ((4,4),2):((4,1),16)";
    tiled_product(tiler: &Tiler<'_>), "tiled_product(&Tiler::Int(2))", "Sw<2,0,2> o ((4,4),2):((4,1),16)";
    flat_product(tiler: &Tiler<'_>), "flat_product(&Tiler::Int(2))", "Sw<2,0,2> o (4,4,2):(4,1,16)";
    blocked_product(tiler: &Layout), "blocked_product(&tiler)", "Sw<2,0,2> o ((4,2),(4,2)):((4,16),(1,32))";
    raked_product(tiler: &Layout), "raked_product(&tiler)", "Sw<2,0,2> o ((2,4),(2,4)):((16,4),(32,1))";
    tile_to_shape(shape: &IntTuple, order: Option<&IntTuple>), "tile_to_shape(&shape, None)",
        "Sw<2,0,2> o ((4,2),(4,2)):((4,16),(1,32))";
}
