//! `TiledCopy`: a copy instruction repeated over threads and over a larger tile.
//!
//! A tiled copy is a thread-value layout of *registers*: `(thread, value) ->` coordinate of the tile, where values are numbered in
//! the order of the thread's registers. The atom says how its two sides number the block that one instruction moves; the side
//! in registers is the reference, so the other side is `register numbering⁻¹ ∘ that side`.
//!
//! ```text
//! tv            (threads, values)                -> tile
//! by the atom   ((AtomThr,AtomVal),(RestThr,RestVal))
//! other side    ((SideThr,SideVal),(RestThr,RestVal))
//! regrouped     ((SideThr,RestThr),(SideVal,RestVal))      = what tidfrg composes the tile with
//! ```
//!
//! For `cp.async` and vectors, one thread and both sides alike, this is the thread-value layout itself. For `ldmatrix` the
//! source side has in `SideThr` the lane that gives an address, and in `SideVal` the eight elements of the row at that address.

use super::mma::compose_first;
use super::{Operand, TiledMma};
use super::{beside, in_range};
use crate::atoms::CopyAtom;
use crate::composition::Tiler;
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::relations::product_each;
use crate::strided::Strided;
use crate::swizzled::Swizzled;

/// A copy atom laid over a tile by many threads.
///
/// ```
/// use layout_core::{Layout, Swizzled, TiledCopy, atoms};
/// // 8 threads copy an 8x8 tile of halves, a row of 16 bytes each.
/// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
/// let threads = Layout::parse("(8,1):(1,0)").unwrap();
/// let copy = TiledCopy::new(atom, &threads, &Layout::parse("(1,8):(0,1)").unwrap()).unwrap();
/// let tensor = Swizzled::parse("(8,8):(8,1)").unwrap();
/// let row = copy.get_slice(3).unwrap().partition_s(&tensor).unwrap();
/// assert_eq!((0..8).map(|i| row.index(i)).collect::<Vec<_>>(), [24, 25, 26, 27, 28, 29, 30, 31]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct TiledCopy {
    atom: CopyAtom,
    /// `(thread, value) -> tile coordinate`, values in registers.
    tv: Layout,
    /// Extents of the tile.
    tile: IntTuple,
    /// How the values of one tile split into the modes of a fragment: `(V)` or `(V, Rest0, Rest1)`.
    values: IntTuple,
}

impl TiledCopy {
    /// Threads laid over the tile by `threads` (`coordinate -> thread`), each with a block of values by `values`
    /// (`coordinate -> value`): CuTe's `make_tiled_copy`. The tile is the raked product of the two.
    ///
    /// ```
    /// use layout_core::{Layout, TiledCopy, atoms};
    /// // 32x8 threads over K-major rows, 8 halves (16 bytes) each: a tile of 32x64.
    /// let threads = Layout::parse("(32,8):(8,1)").unwrap();
    /// let values = Layout::parse("(1,8):(0,1)").unwrap();
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// let copy = TiledCopy::new(atom, &threads, &values).unwrap();
    /// assert_eq!(copy.tile().to_string(), "(32,64)");
    /// assert_eq!(copy.threads(), 256);
    /// ```
    ///
    /// # Errors
    ///
    /// Layouts that are not bijective onto their sizes, or that the atom's threads and values do not divide.
    pub const fn new(
        atom: CopyAtom,
        threads: &Layout,
        values: &Layout,
    ) -> Result<Self, LayoutError> {
        let (t, v) = (threads.size(), values.size());
        let mut side = 0;
        while side < 2 {
            let layout = if side == 0 { threads } else { values };
            if !layout.is_bijective() {
                return Err(LayoutError::NotBijective {
                    operation: if side == 0 {
                        "the threads of a tiled copy"
                    } else {
                        "the values of a tiled copy"
                    },
                    size: layout.size(),
                    cosize: layout.cosize(),
                });
            }
            side += 1;
        }
        let product = attempt!(threads.raked_product(values));
        let inverse = attempt!(product.right_inverse());
        let tv = attempt!(inverse.compose(&attempt!(Layout::col_major(&[t, v]))));
        Self::from_tv(atom, tv, attempt!(product_each(&product.shape())))
    }

    /// The copy with the thread-value layout `tv` over a tile of extents `tile` (flat).
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// // Thread t holds row t of the 8x8 tile.
    /// let tv = Layout::parse("(8,8):(1,8)").unwrap();
    /// let copy = TiledCopy::from_tv(atom, tv, IntTuple::parse("(8,8)").unwrap()).unwrap();
    /// assert_eq!(copy.threads(), 8);
    /// ```
    ///
    /// # Errors
    ///
    /// A thread-value layout that the atom's threads and values do not divide.
    pub const fn from_tv(atom: CopyAtom, tv: Layout, tile: IntTuple) -> Result<Self, LayoutError> {
        let values = IntTuple::int(attempt!(tv.get(1)).size());
        let copy = Self {
            atom,
            tv,
            tile,
            values,
        };
        match copy.side(&copy.atom.src) {
            Ok(_) => Ok(copy),
            Err(error) => Err(error),
        }
    }

    /// The copy that loads (or stores) the registers of an operand of `mma`, tile by tile.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,1,1):(1,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// assert_eq!((copy.threads(), copy.tile().to_string().as_str()), (64, "(32,16)"));
    /// ```
    ///
    /// # Errors
    ///
    /// A fragment that the atom does not divide: of fewer values, or in another order of threads.
    pub const fn for_operand(
        atom: CopyAtom,
        mma: &TiledMma,
        operand: Operand,
    ) -> Result<Self, LayoutError> {
        let tv = attempt!(mma.layout_tv(operand));
        let (first, second) = mma.operand_shape(operand);
        let held = attempt!(tv.get(1));
        let rest = attempt!(held.get(1));
        let mut copy = attempt!(Self::from_tv(
            atom,
            tv,
            attempt!(IntTuple::flat(&[first, second]))
        ));
        copy.values = attempt!(IntTuple::flat(&[
            attempt!(held.get(0)).size(),
            attempt!(rest.get(0)).size(),
            attempt!(rest.get(1)).size(),
        ]));
        Ok(copy)
    }

    /// The instruction.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
    /// let (tv, tile) = (Layout::parse("(8,16):(16,1)").unwrap(), IntTuple::int(128));
    /// let copy = TiledCopy::from_tv(atoms::CP_ASYNC_16, tv, tile).unwrap();
    /// assert_eq!(copy.atom(), atoms::CP_ASYNC_16);
    /// ```
    pub const fn atom(&self) -> CopyAtom {
        self.atom
    }

    /// `(thread, value) ->` colexicographic coordinate of the tile, values as in registers.
    ///
    /// ```
    /// use layout_core::{Layout, TiledCopy, atoms};
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// let threads = Layout::parse("(8,1):(1,0)").unwrap();
    /// let copy = TiledCopy::new(atom, &threads, &Layout::parse("(1,8):(0,1)").unwrap()).unwrap();
    /// assert_eq!(copy.layout_tv().at(&[3, 2]), 3 + 8 * 2); // row 3, column 2
    /// ```
    pub const fn layout_tv(&self) -> Layout {
        self.tv
    }

    /// Extents of the tile.
    ///
    /// ```
    /// use layout_core::{Layout, TiledCopy, atoms};
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// let threads = Layout::parse("(8,1):(1,0)").unwrap();
    /// let copy = TiledCopy::new(atom, &threads, &Layout::parse("(1,8):(0,1)").unwrap()).unwrap();
    /// assert_eq!(copy.tile().to_string(), "(8,8)");
    /// ```
    pub const fn tile(&self) -> IntTuple {
        self.tile
    }

    /// Number of threads.
    ///
    /// ```
    /// use layout_core::{Layout, TiledCopy, atoms};
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// let threads = Layout::parse("(8,1):(1,0)").unwrap();
    /// let copy = TiledCopy::new(atom, &threads, &Layout::parse("(1,8):(0,1)").unwrap()).unwrap();
    /// assert_eq!(copy.threads(), 8);
    /// ```
    pub const fn threads(&self) -> i64 {
        match self.tv.get(0) {
            Ok(threads) => threads.size(),
            Err(_) => 0,
        }
    }

    /// `((SideThr,RestThr),(SideVal,RestVal)) -> tile coordinate` for one side of the atom.
    const fn side(&self, side: &Layout) -> Result<Layout, LayoutError> {
        let registers = self.atom.registers();
        let atom_threads = attempt!(registers.get(0)).size();
        let atom_values = attempt!(registers.get(1)).size();
        let by_atom = attempt!(
            attempt!(self.tv.zipped_divide(&Tiler::Modes(&[
                Tiler::Int(atom_threads),
                Tiler::Int(atom_values)
            ])))
            .exact()
        );
        let to_registers = attempt!(attempt!(registers.right_inverse()).compose(side));
        let other = attempt!(compose_first(&by_atom, &to_registers));
        let (block, rest) = (attempt!(other.get(0)), attempt!(other.get(1)));
        Layout::tuple(&[
            attempt!(Layout::tuple(&[
                attempt!(block.get(0)),
                attempt!(rest.get(0))
            ])),
            attempt!(Layout::tuple(&[
                attempt!(block.get(1)),
                attempt!(rest.get(1))
            ])),
        ])
    }

    /// The source side over a tensor: `((SideThr,RestThr),(SideVal,RestVal),(Rest0,Rest1,…))`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
    /// let atom = atoms::CP_ASYNC_16.recast(16).unwrap();
    /// let tv = Layout::parse("(8,8):(1,8)").unwrap();
    /// let copy = TiledCopy::from_tv(atom, tv, IntTuple::parse("(8,8)").unwrap()).unwrap();
    /// let tensor = Layout::parse("(8,16):(16,1)").unwrap();
    /// let parts = copy.tidfrg_s(&tensor).unwrap();
    /// assert_eq!(parts.at(&[3, 2, 1]), 3 * 16 + 2 + 8); // thread 3, value 2, second tile
    /// ```
    ///
    /// # Errors
    ///
    /// A tile that does not divide the tensor; strides that do not compose.
    pub const fn tidfrg_s<const K: usize>(
        &self,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        self.tidfrg(&self.atom.src, tensor)
    }

    /// The destination side over a tensor; see [`tidfrg_s`](Self::tidfrg_s).
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// let tensor = Layout::parse("(16,16):(16,1)").unwrap();
    /// // Lane 5 points at row 5, and gets columns 2 and 3 of row 1 first.
    /// assert_eq!(copy.tidfrg_s(&tensor).unwrap().at(&[5, 0, 0]), 5 * 16);
    /// assert_eq!(copy.tidfrg_d(&tensor).unwrap().at(&[5, 0, 0]), 16 + 2);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tidfrg_s`](Self::tidfrg_s).
    pub const fn tidfrg_d<const K: usize>(
        &self,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        self.tidfrg(&self.atom.dst, tensor)
    }

    const fn tidfrg<const K: usize>(
        &self,
        side: &Layout,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        let divided = attempt!(attempt!(tensor.zipped_divide(&Tiler::Tuple(&self.tile))).exact());
        let split = attempt!(attempt!(divided.get(0)).compose(&attempt!(self.side(side))));
        Strided::tuple(&[
            attempt!(split.get(0)),
            attempt!(split.get(1)),
            attempt!(divided.get(1)),
        ])
    }

    /// The part of `thread`.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
    /// let (tv, tile) = (Layout::parse("(8,16):(16,1)").unwrap(), IntTuple::int(128));
    /// let copy = TiledCopy::from_tv(atoms::CP_ASYNC_16, tv, tile).unwrap();
    /// assert!(copy.get_slice(7).is_ok());
    /// assert_eq!(copy.get_slice(8).unwrap_err().code(), "coordinate_out_of_range");
    /// ```
    ///
    /// # Errors
    ///
    /// A thread that does not exist.
    pub const fn get_slice(&self, thread: i64) -> Result<ThreadCopy, LayoutError> {
        attempt!(in_range(thread, self.threads()));
        Ok(ThreadCopy {
            copy: *self,
            thread,
        })
    }

    /// A fragment `(V, Rest0, Rest1)` of registers, as partitioned for the mma that this copy was
    /// [made for](Self::for_operand), seen as the copy sees it: `((AtomVal,RestVal), Tiles0, Tiles1)`. Both name the same
    /// registers, so a copy of mode 0 fills what the mma reads.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// let tensor = Swizzled::parse("(16,32):(32,1)").unwrap();
    /// let fragment = mma.get_slice(0).unwrap().fragment(Operand::A, &tensor).unwrap();
    /// // Eight registers for each of two tiles along K.
    /// let retiled = copy.retile(&fragment).unwrap();
    /// assert_eq!((retiled.rank(), retiled.get(0).unwrap().size(), retiled.get(2).unwrap().size()), (3, 8, 2));
    /// ```
    ///
    /// # Errors
    ///
    /// A fragment of another number of modes, or one that the copy's tile does not divide.
    pub const fn retile(&self, fragment: &Layout) -> Result<Layout, LayoutError> {
        let atom_values = attempt!(self.atom.registers().get(1)).size();
        if self.values.is_int() {
            // One mode of values: only split it.
            let values = attempt!(fragment.get(0));
            let split = attempt!(attempt!(values.logical_divide(&Tiler::Int(atom_values))).exact());
            return fragment.replace(0, &split);
        }
        let divided =
            attempt!(attempt!(fragment.zipped_divide(&Tiler::Tuple(&self.values))).exact());
        let block = attempt!(divided.get(0));
        let values = attempt!(block.compose(&attempt!(Layout::flat(
            &[atom_values, block.size() / atom_values],
            &[1, atom_values]
        ))));
        // rest = (1, Tiles0, Tiles1): the first mode is used up.
        attempt!(divided.get(1)).replace(0, &values)
    }
}

/// One thread of a [`TiledCopy`].
///
/// ```
/// use layout_core::{IntTuple, Layout, Swizzled, TiledCopy, atoms};
/// let (tv, tile) = (Layout::parse("(8,16):(16,1)").unwrap(), IntTuple::int(128));
/// let copy = TiledCopy::from_tv(atoms::CP_ASYNC_16, tv, tile).unwrap();
/// let thread = copy.get_slice(2).unwrap();
/// let bytes = thread.partition_s(&Swizzled::parse("128:1").unwrap()).unwrap();
/// assert_eq!((bytes.index(0), bytes.size()), (32, 16));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct ThreadCopy {
    copy: TiledCopy,
    thread: i64,
}

impl ThreadCopy {
    /// The elements of a tensor that the thread's source operands address: `((SideVal,RestVal), Rest0, Rest1, …)`.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// let tensor = Swizzled::parse("Sw<1,3,3> o (16,16):(16,1)").unwrap();
    /// // Lane 5 points at row 5, whose two chunks the swizzle exchanges.
    /// let part = copy.get_slice(5).unwrap().partition_s(&tensor).unwrap();
    /// assert_eq!(part.index(0), tensor.at(&[5, 0]));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledCopy::tidfrg_s`].
    pub const fn partition_s<const K: usize>(
        &self,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        self.partition(&self.copy.atom.src, tensor)
    }

    /// The elements of a tensor that the thread's destination operands address: `((SideVal,RestVal), Rest0, Rest1, …)`.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// let tensor = Swizzled::parse("(16,16):(16,1)").unwrap();
    /// // Lane 5 gets columns 2 and 3 of row 1 in its first register.
    /// let part = copy.get_slice(5).unwrap().partition_d(&tensor).unwrap();
    /// assert_eq!((part.index(0), part.index(1)), (18, 19));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledCopy::tidfrg_d`].
    pub const fn partition_d<const K: usize>(
        &self,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        self.partition(&self.copy.atom.dst, tensor)
    }

    const fn partition<const K: usize>(
        &self,
        side: &Layout,
        tensor: &Swizzled<K>,
    ) -> Result<Swizzled<K>, LayoutError> {
        let split = attempt!(self.copy.tidfrg(side, &tensor.layout));
        let threads = attempt!(split.get(0));
        let offset = attempt!(threads.checked_node_index(threads.root(), self.thread));
        let layout = attempt!(beside(&attempt!(split.get(1)), &attempt!(split.get(2))));
        tensor.moved(&offset, layout)
    }

    /// [`TiledCopy::retile`].
    ///
    /// ```
    /// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).unwrap();
    /// let tensor = Swizzled::parse("(16,32):(32,1)").unwrap();
    /// let fragment = mma.get_slice(0).unwrap().fragment(Operand::A, &tensor).unwrap();
    /// assert_eq!(copy.get_slice(0).unwrap().retile(&fragment), copy.retile(&fragment));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TiledCopy::retile`].
    pub const fn retile(&self, fragment: &Layout) -> Result<Layout, LayoutError> {
        self.copy.retile(fragment)
    }
}
