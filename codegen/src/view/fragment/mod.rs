//! Fragments: views of registers.
//!
//! Registers are the third space. A [`Fragment`] is a tile of which each thread holds its part in registers: the element, the registers, and
//! the layout from (thread, value) to the coordinate in the tile. Elements of less than 32 bits lie together in words, as the matrix
//! instructions take them, the first in the lowest bits.
//!
//! ```
//! use layout_codegen::ir::{Axis, Kernel};
//! use layout_codegen::Arch;
//! use layout_codegen::ir::Element;
//! use layout_core::{Layout, TiledMma, atoms};
//!
//! // c = a·bᵀ for one warp a tile and k = 16: 16 x 8 elements of c.
//! let mut k = Kernel::new("product", 32);
//! let (m, n, depth) = (k.size("m", 1 << 20), k.size("n", 1 << 20), k.constant(16));
//! let (a, b) = (k.input("a", Element::F16, &[m, depth]), k.input("b", Element::F16, &[n, depth]));
//! let c = k.output("c", Element::F32, &[m, n]);
//! let (i, j, zero) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 8)?, k.constant(0));
//! let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
//! let lane = k.lane();
//! let a = a.tile(&mut k, &[16, 16], &[i, zero])?.partition_a(&mut k, &mma, lane)?;
//! let b = b.tile(&mut k, &[8, 16], &[j, zero])?.partition_b(&mut k, &mma, lane)?;
//! let c = c.tile(&mut k, &[16, 8], &[i, j])?.partition_c(&mut k, &mma, lane)?;
//! let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
//! let sums = k.accumulators(&mma, [16, 8], lane)?;
//! k.gemm(&mma, &a, &b, &sums)?;
//! k.store_fragment(&c, &sums)?;
//! assert_eq!(k.build(Arch(80))?.proof.covered, ["c"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convert;
mod exchange;
mod fold;
mod holders;
mod made;
mod map;
mod memory;
mod product;
mod reduce;
mod relayout;
mod split;
mod unpack;
mod warpgroup;

use layout_core::Layout;

use super::ViewError;
use super::partition::by_mode;
use super::words::held;
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Class, Element, Kernel, Origin, Reg};

pub use exchange::Combine;
pub(super) use holders::along;
pub use unpack::Packed;
pub use warpgroup::Multiplicand;

/// A tile in the registers of threads.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
///
/// let mut k = Kernel::new("k", 32);
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
/// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
/// let tile = k.shared("a", Element::F16, &Swizzled::parse("(16,16):(16,1)")?)?;
/// let lane = k.lane();
/// let rows = tile.partition_s(&mut k, &copy, lane)?;
/// let a = k.load_fragment(&rows)?;
/// // Eight halves of each lane.
/// assert_eq!((a.element(), a.shape(), a.values()), (Element::F16, &[16, 16][..], 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fragment {
    element: Element,
    pub(super) registers: Vec<Reg>,
    /// Values in a register.
    each: usize,
    shape: Vec<i64>,
    /// (thread, value) → element of the tile, its first mode fastest.
    pub(super) tv: Layout,
    pub(super) thread: Expr,
    /// Where its registers were made.
    origin: Origin,
}

impl Fragment {
    /// The type of its elements.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// assert_eq!(k.accumulators(&mma, [16, 8], lane)?.element(), Element::F32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn element(&self) -> Element {
        self.element
    }

    /// Values of a thread.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let half = TiledMma::new(atoms::MMA_M16N8K16_F16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&half, [16, 8], lane)?;
    /// assert_eq!(sums.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values(&self) -> usize {
        self.registers.len() * self.each
    }

    /// Extents of the tile.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 64);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,1,1):(1,0,0)")?)?;
    /// let thread = k.thread();
    /// assert_eq!(k.accumulators(&mma, [32, 8], thread)?.shape(), [32, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Coordinates in the tile of this thread's value `value`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// // Value 3 of lane l is row l / 4 + 8, column 2·(l mod 4) + 1.
    /// let at = sums.coordinates(&mut k, 3)?;
    /// assert_eq!(at.map(|e| k.range(e)), [(8, 15), (1, 7)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for values below [`Fragment::values`] of a tile of two modes.
    #[track_caller]
    pub fn coordinates(&self, k: &mut Kernel, value: usize) -> Result<[Expr; 2], ViewError> {
        k.at_line();
        self.own(k)?;
        let value = k.pool.constant(value as i64);
        let mut at = [value; 2];
        for (at, map) in at.iter_mut().zip(by_mode(&self.shape, &self.tv)?) {
            *at = index(&mut k.pool, &map, &[self.thread, value])?;
        }
        Ok(at)
    }

    /// The registers in the order of another layout (thread, value) → element of the tile, if every thread holds there what it holds here.
    fn in_order_of(&self, tv: &Layout) -> Option<Vec<Reg>> {
        if *tv == self.tv {
            return Some(self.registers.clone());
        }
        let sizes = |l: &Layout| Some((l.get(0).ok()?.size(), l.get(1).ok()?.size()));
        let (threads, values) = sizes(tv)?;
        if sizes(&self.tv)? != (threads, values) {
            return None;
        }
        let own: Vec<i64> = (0..values).map(|v| self.tv.at(&[0, v])).collect();
        let mut order = Vec::new();
        for v in 0..values {
            let here = own.iter().position(|&x| x == tv.at(&[0, v]))?;
            let same = |t| self.tv.at(&[t, here as i64]) == tv.at(&[t, v]);
            if !(0..threads).all(same) {
                return None;
            }
            order.push(here);
        }
        let together = order.chunks(self.each).map(|group| {
            let first = group[0];
            let whole = first % self.each == 0 && (first..).zip(group).all(|(i, &at)| i == at);
            whole.then(|| self.registers[first / self.each])
        });
        together.collect()
    }

    /// Refuses a fragment of another kernel, or of a loop or branch that has ended.
    pub(super) fn own(&self, k: &Kernel) -> Result<(), ViewError> {
        match k.out_of_reach("a fragment", self.origin) {
            Some(what) => Err(ViewError::OutOfReach { what }),
            None => Ok(()),
        }
    }

    /// How it is called in an error.
    pub(super) fn describe(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        format!("a fragment of {} {}", shape.join("x"), self.element)
    }
}

/// The registers of a fragment: their class, and the values in each. Operands of a product are words without a meaning.
fn registers_of(element: Element, factor: bool) -> (Class, usize) {
    match element.bytes() {
        4 if factor => (Class::B32, 1),
        4 | 8 => (held(element).0, 1),
        bytes => (Class::B32, 4 / bytes as usize),
    }
}
