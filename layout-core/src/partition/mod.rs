//! Partitioning: the part of a tensor that belongs to a block, a thread or a value.
//!
//! **What.** A tensor is a layout from coordinates to offsets. Partitioning it is always the same two steps: divide it by a
//! tile, so that the coordinates split into "inside the tile" and "which tile", then fix one of the two.
//!
//! ```text
//! zipped_divide(tensor (M,N), tiler <m,n>)  =  ((m,n),(M/m,N/n))
//! local_tile        fixes the second: one tile for a block             -> (m,n, open tile modes)
//! local_partition   fixes the first: one element of each tile          -> (M/m,N/n)
//! thread_partition  splits the first by a thread-value layout, fixes the thread  -> (value, (M/m,N/n))
//! ```
//!
//! [`TiledMma`] and [`TiledCopy`] are thread partitions whose thread-value layout is made of an instruction's
//! ([`crate::atoms`]). All of them work on composed layouts `Sw o offset o L`: dividing rearranges `L`, fixing moves an offset
//! inside the swizzle, so the results are exact for every swizzle.
//!
//! **Overhang.** A tile that does not divide reaches beyond the tensor. The result is a [`Partitioned`], which gives its layout only
//! if nothing hangs over, or by the name [`Partitioned::rounded_up`]; [`Partitioned::contains`] is the predicate.
//!
//! ```
//! use layout_core::{Layout, Slicer, Swizzled, Tiler};
//! let tensor = Swizzled::parse("(8,6):(1,8)").unwrap();
//! // Tile (1,0) of the 4x3 tiles.
//! let tile = tensor.local_tile(&Tiler::Modes(&[Tiler::Int(4), Tiler::Int(3)]), &Slicer::parse("(1,0)").unwrap());
//! assert_eq!(tile.unwrap().exact().unwrap().to_string(), "4 o (4,3):(1,8)");
//! // What thread 5 of 4x2 threads has: every fourth row from 1, every second column from 1.
//! let threads = Layout::parse("(4,2):(1,4)").unwrap();
//! let part = tensor.local_partition(&threads, 5).unwrap().exact().unwrap();
//! assert_eq!(part.to_string(), "9 o (2,3):(4,16)");
//! ```

mod copy;
mod mma;
mod thread_mma;

pub use copy::{ThreadCopy, TiledCopy};
pub use mma::{Operand, TiledMma};
pub use thread_mma::ThreadMma;

use crate::composition::Tiler;
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::modes::SEARCH_LIMIT;
use crate::relations::product_each;
use crate::slice::Slicer;
use crate::strided::{LayoutBuilder, Strided};
use crate::swizzled::Swizzled;

/// A part of a tensor that may reach beyond it.
///
/// ```
/// use layout_core::{Slicer, Swizzled, Tiler};
/// // Rows 4 to 7 of six: two of them hang over.
/// let tensor = Swizzled::parse("(6,3):(1,6)").unwrap();
/// let tiler = Tiler::Modes(&[Tiler::Int(4), Tiler::Int(3)]);
/// let tile = tensor.local_tile(&tiler, &Slicer::parse("(1,0)").unwrap()).unwrap();
/// assert_eq!(tile.exact().unwrap_err().code(), "overhang");
/// assert_eq!(tile.rounded_up().to_string(), "4 o (4,3):(1,6)");
/// assert_eq!([0, 1, 2, 3].map(|row| tile.contains(row)), [true, true, false, false]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Partitioned<const K: usize = 1> {
    layout: Swizzled<K>,
    guard: Layout,
    guard_offset: i64,
    extents: IntTuple,
    covered: IntTuple,
}

impl<const K: usize> Partitioned<K> {
    /// The part, if all of it lies inside the tensor.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let part = |text| {
    ///     let threads = Layout::parse("4:1").unwrap();
    ///     Swizzled::parse(text).unwrap().local_partition(&threads, 3).unwrap().exact()
    /// };
    /// assert_eq!(part("8:1").unwrap().to_string(), "3 o (2):(4)");
    /// assert_eq!(part("6:1").unwrap_err().code(), "overhang");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::Overhang`] if an element lies outside; [`LayoutError::TooLarge`] if the tiles do not divide the tensor
    /// and the part has too many elements to look at.
    pub const fn exact(&self) -> Result<Swizzled<K>, LayoutError> {
        if self.extents.equals(&self.covered) {
            return Ok(self.layout);
        }
        let size = self.layout.size();
        if size > SEARCH_LIMIT {
            return Err(LayoutError::TooLarge {
                operation: "whether a tile hangs over",
                size,
                limit: SEARCH_LIMIT,
            });
        }
        let mut inside = 0;
        let mut i = 0;
        while i < size {
            if self.contains(i) {
                inside += 1;
            }
            i += 1;
        }
        if inside == size {
            Ok(self.layout)
        } else {
            Err(LayoutError::Overhang {
                size: inside,
                covered: size,
            })
        }
    }

    /// The part, including positions beyond the tensor: check each with the predicate [`contains`](Self::contains).
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let threads = Layout::parse("4:1").unwrap();
    /// let part = Swizzled::parse("6:1").unwrap().local_partition(&threads, 3).unwrap();
    /// assert_eq!(part.rounded_up().to_string(), "3 o (2):(4)"); // elements 3 and 7
    /// ```
    pub const fn rounded_up(&self) -> Swizzled<K> {
        self.layout
    }

    /// Whether linear coordinate `i` of the part is an element of the tensor.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let threads = Layout::parse("4:1").unwrap();
    /// let part = Swizzled::parse("6:1").unwrap().local_partition(&threads, 3).unwrap();
    /// assert!(part.contains(0) && !part.contains(1)); // element 7 of 6
    /// ```
    pub const fn contains(&self, i: i64) -> bool {
        let mut rest = self.guard_offset + self.guard.index(i);
        let mut k = 0;
        while k < self.extents.leaves() {
            let covered = self.covered.values[k];
            if rest.rem_euclid(covered) >= self.extents.values[k] {
                return false;
            }
            rest = rest.div_euclid(covered);
            k += 1;
        }
        rest == 0
    }

    /// The predicate as a layout `offset o L`, nested as the part: the position in a box of the extents
    /// [`covered`](Self::covered), first fastest. An element exists if each coordinate there is below
    /// [`extents`](Self::extents).
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let threads = Layout::parse("4:1").unwrap();
    /// let part = Swizzled::parse("6:10").unwrap().local_partition(&threads, 3).unwrap();
    /// // The positions 3 and 7, independent of the tensor's strides; 7 is not below the extent 6.
    /// assert_eq!(part.guard().unwrap().to_string(), "3 o (2):(4)");
    /// assert_eq!(part.extents().to_string(), "(6)");
    /// ```
    ///
    /// # Errors
    ///
    /// Offsets that do not fit.
    pub const fn guard(&self) -> Result<Swizzled, LayoutError> {
        Swizzled::new(crate::Swizzle::IDENTITY, self.guard_offset, self.guard)
    }

    /// Size of each mode of the tensor.
    ///
    /// ```
    /// use layout_core::{Slicer, Swizzled, Tiler};
    /// let tensor = Swizzled::parse("(6,3):(1,6)").unwrap();
    /// let tiler = Tiler::Modes(&[Tiler::Int(4), Tiler::Int(3)]);
    /// let tile = tensor.local_tile(&tiler, &Slicer::parse("(1,0)").unwrap()).unwrap();
    /// assert_eq!(tile.extents().to_string(), "(6,3)");
    /// ```
    pub const fn extents(&self) -> IntTuple {
        self.extents
    }

    /// The extent that the tiles cover in each mode: at least the mode's extent.
    ///
    /// ```
    /// use layout_core::{Slicer, Swizzled, Tiler};
    /// let tensor = Swizzled::parse("(6,3):(1,6)").unwrap();
    /// let tiler = Tiler::Modes(&[Tiler::Int(4), Tiler::Int(3)]);
    /// let tile = tensor.local_tile(&tiler, &Slicer::parse("(1,0)").unwrap()).unwrap();
    /// assert_eq!(tile.covered().to_string(), "(8,3)");
    /// ```
    pub const fn covered(&self) -> IntTuple {
        self.covered
    }
}

/// `_` for a bare mode, `(_,_,…)` for a tuple.
const fn all_open(rank: usize, bare: bool) -> Result<Slicer, LayoutError> {
    let tuple = if bare {
        IntTuple::int(0)
    } else {
        attempt!(IntTuple::flat([0; crate::MAX_MODES].split_at(rank).0))
    };
    Ok(Slicer::new(tuple, u32::MAX))
}

/// The slicer `(first, second)`.
pub(crate) const fn slicer_pair(first: &Slicer, second: &Slicer) -> Result<Slicer, LayoutError> {
    let tuple = attempt!(IntTuple::tuple(&[first.tuple, second.tuple]));
    let shift = first.tuple.leaves();
    let high = if shift < 32 { second.open << shift } else { 0 };
    Ok(Slicer::new(tuple, first.open | high))
}

impl<const K: usize> Swizzled<K> {
    /// The tensor divided by `tiler`, then sliced by `slicer`, which sees `(tile, rest)`.
    const fn divide_and_slice(
        &self,
        tiler: &Tiler<'_>,
        slicer: &Slicer,
    ) -> Result<Partitioned<K>, LayoutError> {
        let divided = attempt!(self.zipped_divide(tiler));
        let guard = attempt!(divided.guard().slice(slicer));
        Ok(Partitioned {
            layout: attempt!(divided.rounded_up().slice(slicer)),
            guard: guard.layout,
            guard_offset: guard.offset[0],
            extents: divided.extents(),
            covered: divided.covered(),
        })
    }

    /// One tile of the tensor (CuTe's `local_tile` or inner partition): the tile at `coordinate` among the tiles. Where the
    /// coordinate is `_`, all tiles along that mode stay, as modes after those of the tile.
    ///
    /// ```
    /// use layout_core::{CoordLayout, Slicer, Swizzled, Tiler};
    /// let tiler = Tiler::Modes(&[Tiler::Int(4), Tiler::Int(3)]);
    /// let at = Slicer::parse("(1,0)").unwrap();
    /// let tensor = Swizzled::parse("(8,6):(1,8)").unwrap();
    /// assert_eq!(tensor.local_tile(&tiler, &at).unwrap().exact().unwrap().to_string(), "4 o (4,3):(1,8)");
    /// // The same tile of the identity layout: the coordinates in the tensor.
    /// let identity = Swizzled::plain(CoordLayout::parse("(8,6):(1@0,1@1)").unwrap());
    /// let tile = identity.local_tile(&tiler, &at).unwrap().exact().unwrap();
    /// assert_eq!(tile.to_string(), "(4,0) o (4,3):(1@0,1@1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`zipped_divide`](Self::zipped_divide) and [`slice`](Self::slice): a tiler that does not fit, a coordinate
    /// that does not. Overhang is reported by [`Partitioned::exact`].
    pub const fn local_tile(
        &self,
        tiler: &Tiler<'_>,
        coordinate: &Slicer,
    ) -> Result<Partitioned<K>, LayoutError> {
        let divided = attempt!(self.layout.zipped_divide(tiler)).rounded_up();
        let tile = attempt!(divided.get(0));
        let open = attempt!(all_open(tile.rank(), tile.depth() == 0));
        self.divide_and_slice(tiler, &attempt!(slicer_pair(&open, coordinate)))
    }

    /// The part of `thread` if the threads are laid over the tensor in tiles of the shape of `threads` (CuTe's
    /// `local_partition` or outer partition). `threads` maps a coordinate in the tile to the thread there; the result has one
    /// mode for each mode of the tensor, counting tiles.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let tensor = Swizzled::parse("(8,6):(1,8)").unwrap();
    /// let threads = Layout::parse("(4,2):(1,4)").unwrap();
    /// let part = tensor.local_partition(&threads, 5).unwrap().exact().unwrap();
    /// assert_eq!(part.to_string(), "9 o (2,3):(4,16)");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::ThreadWithoutPlace`] for a thread that `threads` has no place for, and those of
    /// [`local_tile`](Self::local_tile).
    pub const fn local_partition(
        &self,
        threads: &Layout,
        thread: i64,
    ) -> Result<Partitioned<K>, LayoutError> {
        let tile = attempt!(product_each(&threads.shape()));
        let place = match threads.preimage(thread) {
            Err(LayoutError::NotInImage { .. }) => {
                return Err(LayoutError::ThreadWithoutPlace { thread });
            }
            other => attempt!(other),
        };
        let coordinate = attempt!(crate::idx2crd(place, &tile));
        let divided = attempt!(self.layout.zipped_divide(&Tiler::Tuple(&tile))).rounded_up();
        let rest = attempt!(divided.get(1));
        let open = attempt!(all_open(rest.rank(), rest.depth() == 0));
        let fixed = Slicer::new(coordinate, 0);
        self.divide_and_slice(&Tiler::Tuple(&tile), &attempt!(slicer_pair(&fixed, &open)))
    }

    /// The part of `thread` of the tensor under a thread-value layout: `(value, rest)`, where `tv` maps `(thread, value)` to the
    /// colexicographic index of a coordinate of the tile `tile`, and `rest` counts tiles.
    ///
    /// ```
    /// use layout_core::{IntTuple, Layout, Swizzled};
    /// let tensor = Swizzled::parse("(8,4):(1,8)").unwrap();
    /// let tv = Layout::parse("(4,2):(2,1)").unwrap(); // two neighbours a thread
    /// let part = tensor.thread_partition(&IntTuple::parse("(8,1)").unwrap(), &tv, 3).unwrap();
    /// assert_eq!(part.to_string(), "6 o (2,(1,4)):(1,(0,8))");
    /// ```
    ///
    /// # Errors
    ///
    /// A tile that does not divide the tensor, a thread-value layout that does not compose with it, a thread out of range.
    pub const fn thread_partition(
        &self,
        tile: &IntTuple,
        tv: &Layout,
        thread: i64,
    ) -> Result<Self, LayoutError> {
        let divided = attempt!(attempt!(self.layout.zipped_divide(&Tiler::Tuple(tile))).exact());
        let split = attempt!(attempt!(divided.get(0)).compose(tv));
        attempt!(in_range(thread, attempt!(tv.get(0)).size()));
        let threads = attempt!(split.get(0));
        let offset = attempt!(threads.checked_node_index(threads.root(), thread));
        let layout = attempt!(Strided::tuple(&[
            attempt!(split.get(1)),
            attempt!(divided.get(1))
        ]));
        self.moved(&offset, layout)
    }
}

pub(crate) const fn in_range(thread: i64, threads: i64) -> Result<(), LayoutError> {
    if thread < 0 || thread >= threads {
        return Err(LayoutError::NoSuchThread { thread, threads });
    }
    Ok(())
}

/// `(value, modes of rest…)`: the modes of `rest` stand beside the first.
pub(crate) const fn beside<const K: usize>(
    value: &Strided<K>,
    rest: &Strided<K>,
) -> Result<Strided<K>, LayoutError> {
    let mut builder = LayoutBuilder::like(value);
    builder.open();
    builder.append(value, value.root());
    builder.append_elements(rest, rest.root());
    builder.close();
    builder.finish()
}
