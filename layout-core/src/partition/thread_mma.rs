//! One thread of a tiled matrix instruction.

use super::beside;
use super::mma::{Operand, TiledMma};
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::swizzled::Swizzled;

/// One thread of a [`TiledMma`].
///
/// ```
/// use layout_core::{Layout, Operand, Swizzled, TiledMma, atoms};
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
/// let thread = mma.get_slice(37).unwrap(); // lane 5 of the warp below the first
/// let c = Swizzled::parse("(32,16):(16,1)").unwrap();
/// assert_eq!(thread.partition_c(&c).unwrap().index(0), (16 + 1) * 16 + 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct ThreadMma {
    pub(super) mma: TiledMma,
    pub(super) lane: i64,
    /// Which of the tile's atoms, along M, N and K.
    pub(super) atom: [i64; 3],
}

impl ThreadMma {
    /// The thread's elements of a tensor over the operand's axes: `(FrgV, Rest0, Rest1, …)`.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let a = Swizzled::parse("(16,32):(32,1)").unwrap();
    /// let part = mma.get_slice(5).unwrap().partition(Operand::A, &a).unwrap();
    /// assert_eq!(part.to_string(), "34 o ((2,2,2),1,2):((1,256,8),0,16)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledMma::thrfrg`].
    pub const fn partition<const K: usize>(
        &self,
        operand: Operand,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        let thrfrg = attempt!(self.mma.thrfrg(operand, &tensor.layout));
        let threads = attempt!(thrfrg.get(0));
        let held = attempt!(thrfrg.get(1));
        let (i, j) = operand.axes();
        let atom = attempt!(IntTuple::flat(&[self.atom[i], self.atom[j]]));
        let coordinate = attempt!(IntTuple::tuple(&[IntTuple::int(self.lane), atom]));
        let offset = attempt!(threads.vector_at(&coordinate));
        let layout = attempt!(beside(&attempt!(held.get(0)), &attempt!(held.get(1))));
        tensor.moved(&offset, layout)
    }

    /// The thread's elements of A, a tensor over (M, K).
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let part = mma.get_slice(5).unwrap().partition_a(&Swizzled::parse("(16,16):(16,1)").unwrap()).unwrap();
    /// assert_eq!((part.index(0), part.index(1), part.index(2)), (18, 19, 8 * 16 + 18));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledMma::thrfrg`].
    pub const fn partition_a<const K: usize>(
        &self,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        self.partition(Operand::A, tensor)
    }

    /// The thread's elements of B, a tensor over (N, K).
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let part = mma.get_slice(5).unwrap().partition_b(&Swizzled::parse("(8,16):(16,1)").unwrap()).unwrap();
    /// assert_eq!((part.index(0), part.index(1), part.index(2)), (18, 19, 26));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledMma::thrfrg`].
    pub const fn partition_b<const K: usize>(
        &self,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        self.partition(Operand::B, tensor)
    }

    /// The thread's elements of C, a tensor over (M, N).
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let part = mma.get_slice(5).unwrap().partition_c(&Swizzled::parse("(16,8):(8,1)").unwrap()).unwrap();
    /// assert_eq!((part.index(0), part.index(1), part.index(2)), (10, 11, 74));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledMma::thrfrg`].
    pub const fn partition_c<const K: usize>(
        &self,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        self.partition(Operand::C, tensor)
    }

    /// The compact layout of the registers that hold such a part: `(FrgV, Rest0, Rest1)`, first mode fastest.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let a = Swizzled::parse("(16,32):(32,1)").unwrap();
    /// let registers = mma.get_slice(5).unwrap().fragment(Operand::A, &a).unwrap();
    /// assert_eq!(registers.to_string(), "((2,2,2),1,2):((1,2,4),0,8)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledMma::thrfrg`].
    pub const fn fragment<const K: usize>(
        &self,
        operand: Operand,
        tensor: &Swizzled<K>,
    ) -> Result<Layout, LayoutError> {
        let part = attempt!(self.partition(operand, tensor));
        Layout::compact(part.layout().shape())
    }
}
