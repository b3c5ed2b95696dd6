//! Tiles shared out by the tiled instructions of the algebra: [`TiledCopy`] and [`TiledMma`].
//!
//! Both are thread-value layouts made of an instruction's. A tiled copy brings the instruction along: its two sides are partitioned apart,
//! and [`Kernel::copy`] or [`Kernel::load_fragment`] emits what its atom names. A tiled mma says which elements of an operand a
//! thread holds; threads that differ only along the axis that the operand lacks hold the same ones.
//!
//! ```text
//! x (global)  partition_s(copy) ──cp.async──▶ partition_d(copy) of a tile in shared memory
//! a (shared)  partition_s(ldmatrix for A) ──▶ load_fragment ──▶ gemm ──▶ store_fragment ──▶ y (global) partition_c(mma)
//! ```

use layout_core::atoms::{
    CP_ASYNC_4, CP_ASYNC_8, CP_ASYNC_16, CopyAtom, LDMATRIX_X4, LDMATRIX_X4_TRANS,
};
use layout_core::{Layout, LayoutError, Operand, TiledCopy, TiledMma};

use super::partition::{Instruction, Owners, by_mode};
use super::remote::not_reached;
use super::{Partition, View, ViewError};
use crate::index::Expr;
use crate::ir::{Element, Kernel, Space};

/// Metadata that is right for every type: of each chunk, the first half is stored.
const FIRST_ELEMENTS: u32 = 0x4444_4444;

/// A side of a tiled copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Source,
    Target,
}

/// What an atom of the algebra is in the representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moves {
    /// Vectors of so many elements, by loads and stores.
    Vectors(i64),
    /// `cp.async` of so many bytes.
    Async(u32),
    /// `ldmatrix` of four matrices.
    Matrices { trans: bool },
}

/// What emits an atom.
pub(super) fn moves(atom: &CopyAtom) -> Result<Moves, ViewError> {
    let asynchronous = [(&CP_ASYNC_4, 4), (&CP_ASYNC_8, 8), (&CP_ASYNC_16, 16)];
    let matrices = [(&LDMATRIX_X4, false), (&LDMATRIX_X4_TRANS, true)];
    if let Some((_, bytes)) = asynchronous.iter().find(|(a, _)| a.name == atom.name) {
        return Ok(Moves::Async(*bytes));
    }
    if let Some((_, trans)) = matrices.iter().find(|(a, _)| a.name == atom.name) {
        return Ok(Moves::Matrices { trans: *trans });
    }
    if atom.threads == 1 && atom.src == atom.dst {
        return Ok(Moves::Vectors(atom.elements()));
    }
    Err(ViewError::Instruction {
        instruction: atom.name,
        accepted: "vectors of one thread, cp.async, or ldmatrix of four matrices of halves",
    })
}

/// (thread, value) of one side over a tile of `shape`: the thread, then `((SideVal,RestVal),Rest)`.
pub(super) fn side_of(
    copy: &TiledCopy,
    side: Side,
    shape: &[i64],
) -> Result<[Layout; 3], LayoutError> {
    let tile = Layout::col_major(shape)?;
    let parts = match side {
        Side::Source => copy.tidfrg_s(&tile)?,
        Side::Target => copy.tidfrg_d(&tile)?,
    };
    let values = parts.get(1)?;
    let rest = Layout::tuple(&[values.get(1)?, parts.get(2)?])?;
    Ok([parts.get(0)?, values.get(0)?, rest])
}

/// `(thread, (first, rest))`, each mode as short as it can be.
pub(super) fn thread_value(
    thread: &Layout,
    first: &Layout,
    rest: &Layout,
) -> Result<Layout, LayoutError> {
    let values = Layout::tuple(&[*first, *rest])?;
    Layout::tuple(&[thread.coalesce(), values.coalesce()])
}

/// (thread, value) → element of a tile of `shape` that is an operand.
pub(super) fn operand_tv(
    mma: &TiledMma,
    operand: Operand,
    shape: &[i64],
) -> Result<Layout, LayoutError> {
    let tv = mma.tensor_tv(operand, &Layout::col_major(shape)?)?;
    Layout::tuple(&[tv.get(0)?.coalesce(), tv.get(1)?.coalesce()])
}

impl View {
    /// What `thread` reads of the tile in a tiled copy: the tile is the source. The copy's own tile divides this one, and is repeated over it.
    ///
    /// For `ldmatrix` the values are those that the thread gets, in the order of its registers; the prover holds the rows that its lane points
    /// at against the buffer.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, Swizzled, TiledCopy, atoms};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    /// let x = k.input("x", Element::F16, &[rows, cols]);
    /// let (i, j) = (k.tiles(Axis::X, rows, 64)?, k.tiles(Axis::Y, cols, 32)?);
    /// // 32 x 4 threads, eight halves of a row each: 32 x 32 elements at once, twice for this tile.
    /// let atom = atoms::CP_ASYNC_16.recast(16)?;
    /// let copy = TiledCopy::new(atom, &Layout::parse("(32,4):(4,1)")?, &Layout::parse("(1,8):(0,1)")?)?;
    /// let (thread, row_major) = (k.thread(), Swizzled::parse("(64,32):(32,1)")?);
    /// let tile = k.shared("tile", Element::F16, &row_major)?;
    /// let from = x.tile(&mut k, &[64, 32], &[i, j])?.partition_s(&mut k, &copy, thread)?;
    /// let to = tile.partition_d(&mut k, &copy, thread)?;
    /// assert_eq!(from.values(), 16);
    /// k.copy(&from, &to)?;
    /// // The source of cp.async is global memory.
    /// assert_eq!(
    ///     tile.partition_s(&mut k, &copy, thread).unwrap_err().to_string(),
    ///     "cp.async.cg.shared.global 16 reads global memory, and `tile` is in shared memory"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`]; [`ViewError::Instruction`] for an atom that is not emitted; [`ViewError::Space`] if the instruction does not
    /// read the view's memory; [`ViewError::AtomElement`] if the atom counts other elements; [`ViewError::Vector`] if what it moves at
    /// once does not lie in one piece; [`ViewError::NotAPartition`]; [`ViewError::Layout`] for a tile that the copy's does not divide.
    #[track_caller]
    pub fn partition_s(
        &self,
        k: &mut Kernel,
        copy: &TiledCopy,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.partition_copy(k, copy, thread, Side::Source)
    }

    /// What `thread` writes of the tile in a tiled copy: the tile is the target. See [`View::partition_s`].
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Element;
    /// use layout_core::atoms::{Scalar, vector_copy};
    /// use layout_core::{IntTuple, Layout, TiledCopy};
    ///
    /// // y = x, four elements a thread.
    /// let mut k = Kernel::new("copy", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 512)?, k.thread());
    /// let four = vector_copy(4, Scalar::F32, false)?;
    /// let copy = TiledCopy::from_tv(four, Layout::parse("(128,4):(4,1)")?, IntTuple::int(512))?;
    /// let from = x.tile(&mut k, &[512], &[block])?.partition_s(&mut k, &copy, thread)?;
    /// let to = y.tile(&mut k, &[512], &[block])?.partition_d(&mut k, &copy, thread)?;
    /// k.copy(&from, &to)?;
    /// assert!(k.build(Arch(80))?.ptx.contains("st.global.v4.f32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_s`]; the target of `ldmatrix` is a fragment ([`Kernel::load_fragment`]).
    #[track_caller]
    pub fn partition_d(
        &self,
        k: &mut Kernel,
        copy: &TiledCopy,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.partition_copy(k, copy, thread, Side::Target)
    }

    fn partition_copy(
        &self,
        k: &mut Kernel,
        copy: &TiledCopy,
        thread: Expr,
        side: Side,
    ) -> Result<Partition, ViewError> {
        let shape = self.tile_shape(k)?.to_vec();
        let atom = copy.atom();
        let moves = moves(&atom)?;
        let bits = 8 * k.buffer(self.buffer).bytes;
        if atom.element_bits != bits {
            return Err(ViewError::AtomElement {
                instruction: atom.name,
                bits: atom.element_bits,
                buffer: self.name(k).to_owned(),
                wanted: bits,
            });
        }
        if self.block.is_some() && !matches!(moves, Moves::Vectors(_)) {
            return Err(not_reached(atom.name, self.name(k)));
        }
        let wanted = match (moves, side) {
            (Moves::Vectors(_), _) => None,
            (Moves::Async(_), Side::Source) => Some(Space::Global),
            (Moves::Async(_), Side::Target) | (Moves::Matrices { .. }, Side::Source) => {
                Some(Space::Shared)
            }
            (Moves::Matrices { .. }, Side::Target) => {
                return Err(ViewError::Space {
                    instruction: atom.name,
                    writes: true,
                    wanted: None,
                    buffer: self.name(k).to_owned(),
                    space: self.space(k),
                });
            }
        };
        if wanted.is_some_and(|wanted| wanted != self.space(k)) {
            return Err(ViewError::Space {
                instruction: atom.name,
                writes: side == Side::Target,
                wanted,
                buffer: self.name(k).to_owned(),
                space: self.space(k),
            });
        }
        let torn = |elements| ViewError::Vector {
            buffer: self.name(k).to_owned(),
            elements,
            reason: "what the instruction moves at once is no run along the contiguous mode",
        };
        if let Moves::Matrices { trans } = moves {
            let [threads, row, rest] = side_of(copy, Side::Source, &shape)?;
            let all = by_mode(&shape, &thread_value(&threads, &row, &rest)?)?;
            let elements = row.size() * rest.size();
            if !self.has_runs(&all, elements, row.size())? {
                return Err(torn(row.size()));
            }
            let points = Layout::tuple(&[threads.coalesce(), rest.coalesce()])?;
            let [threads, values, rest] = side_of(copy, Side::Target, &shape)?;
            let registers = thread_value(&threads, &values, &rest)?;
            let mut share = self.share(k, &registers, thread, Owners::Some)?;
            share.by = Instruction::Matrices {
                points: by_mode(&shape, &points)?,
                values: values.size(),
                trans,
            };
            return Ok(share);
        }
        let [threads, values, rest] = side_of(copy, side, &shape)?;
        let mut share = self.share(
            k,
            &thread_value(&threads, &values, &rest)?,
            thread,
            Owners::One,
        )?;
        share.vector = values.size();
        if share.vector > 1 && !self.has_runs(&share.modes, share.values, share.vector)? {
            return Err(torn(share.vector));
        }
        if let Moves::Async(bytes) = moves {
            let cached = bytes < 16;
            share.by = Instruction::Async { bytes, cached };
        }
        Ok(share)
    }

    /// What `thread` holds of A, a tile over (M, K), in a tiled mma: for [`Kernel::load_fragment`], by loads. By `ldmatrix` it is
    /// [`View::partition_s`] of [`TiledCopy::for_operand`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 64);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,1,1):(1,0,0)")?)?;
    /// let a = k.shared("a", Element::F16, &Swizzled::parse("(32,16):(16,1)")?)?;
    /// let b = k.shared("b", Element::F16, &Swizzled::parse("(8,16):(16,1)")?)?;
    /// let thread = k.thread();
    /// // Each of the two warps has 16 rows of A, and both have all of B.
    /// assert_eq!(a.partition_a(&mut k, &mma, thread)?.values(), 8);
    /// assert_eq!(b.partition_b(&mut k, &mma, thread)?.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`], [`ViewError::NotAPartition`] for another number of threads, [`ViewError::Layout`] for a tile that the mma's does not divide.
    #[track_caller]
    pub fn partition_a(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.partition_operand(k, mma, Operand::A, thread)
    }

    /// What `thread` holds of B, a tile over (N, K), in a tiled mma. A matrix stored as K x N is [transposed](View::transposed) first.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let b = k.shared("b", Element::F16, &Swizzled::parse("(16,8):(8,1)")?)?;
    /// let lane = k.lane();
    /// assert_eq!(b.transposed().partition_b(&mut k, &mma, lane)?.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_a`].
    #[track_caller]
    pub fn partition_b(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.partition_operand(k, mma, Operand::B, thread)
    }

    /// What `thread` holds of C, a tile over (M, N), in a tiled mma: for [`Kernel::store_fragment`], or to load what is added to.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (m, n) = (k.size("m", 1 << 20), k.size("n", 1 << 20));
    /// let c = k.output("c", Element::F32, &[m, n]);
    /// let (i, j) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 8)?);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let c = c.tile(&mut k, &[16, 8], &[i, j])?.partition_c(&mut k, &mma, lane)?;
    /// // Two neighbours of a row at a time.
    /// assert!(c.vectors(&k, 2).is_ok() && c.vectors(&k, 4).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_a`].
    #[track_caller]
    pub fn partition_c(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.partition_operand(k, mma, Operand::C, thread)
    }

    /// The words of metadata of a sparse A that `thread` holds in a [sparse tiled mma](TiledMma::sparse), for [`Kernel::load_fragment`]. The view is of `s32`, over
    /// (rows of atoms, words): `(M/16, K/2)` for 8 and 16 bits, `(M/16, K)` for `tf32`. A row of 32 words lies as the lanes read it
    /// ([`SparseMmaAtom::metadata_in_memory`](layout_core::atoms::SparseMmaAtom::metadata_in_memory)). Outside of a tensor in global memory, the first elements of
    /// each chunk count as stored.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (rows, words) = (k.size("rows", 1 << 16), k.size("words", 1 << 20));
    /// let metadata = k.input("metadata", Element::S32, &[rows, words]);
    /// let (i, zero) = (k.tiles(Axis::X, rows, 2)?, k.constant(0));
    /// let one = Layout::parse("(1,1,1):(0,0,0)")?;
    /// let mma = TiledMma::sparse(atoms::MMA_SP_ORDERED_M16N8K16_F16, &one, [16, 8, 64])?;
    /// let lane = k.lane();
    /// // Of 32 rows and 128 columns of A: four words a lane, each for four instructions.
    /// let words = metadata.tile(&mut k, &[2, 64], &[i, zero])?.partition_metadata(&mut k, &mma, lane)?;
    /// assert_eq!(words.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_a`]; [`ViewError::Layout`] for an mma that is not sparse; [`ViewError::Operand`] for other elements than `s32`.
    #[track_caller]
    pub fn partition_metadata(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        let mut share = self.partition_operand(k, mma, Operand::Metadata, thread)?;
        let element = k.element_of(&share)?;
        if element != Element::S32 {
            return Err(ViewError::Operand {
                instruction: mma.atom().name,
                operand: 'E',
                given: format!("`{}` of {element}", self.name(k)),
                wanted: "metadata: words of s32".to_owned(),
            });
        }
        share.fill = FIRST_ELEMENTS;
        Ok(share)
    }

    fn partition_operand(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        operand: Operand,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        let tv = operand_tv(mma, operand, self.tile_shape(k)?)?;
        let owners = if operand == Operand::C {
            Owners::One
        } else {
            Owners::Some
        };
        let mut share = self.share(k, &tv, thread, owners)?;
        share.operand = Some(operand);
        Ok(share)
    }
}
