//! `TiledMma`: a matrix instruction repeated over warps and over a larger tile.
//!
//! The atoms are laid over `(M, N, K)` by `atoms`, a layout from the atom's coordinate to its number; atom `j` is executed by
//! threads `j·T .. (j+1)·T`, `T` being the atom's threads. A tensor over two of the axes is then cut three times:
//!
//! ```text
//! C (M,N)  by the tile        ((tileM,restM),(tileN,restN))      tile: optional permutation of M, N, K
//!          by the atom        ((atomM,atomN),(restM,restN))
//!          by its layout      ((ThrV,FrgV),(restM,restN))        composition with (lane, value) -> coordinate
//!          by the atoms       ((ThrV,(ThrM,ThrN)),(FrgV,(restM,restN)))      = thrfrg_c
//! ```
//!
//! The first mode of the result is the thread, the second is its elements. A [`ThreadMma`] fixes the thread:
//! `partition_c` gives `(FrgV, restM, restN)`.
//!
//! Of a sparse instruction ([`TiledMma::sparse`]) A is the compressed one, over `(M, K/2)`, and there is a fourth operand, the metadata:
//! words of 32 bits over `(M/m, words of a row of atoms)`, which are cut the same way with a word a lane as the fragment.

use super::in_range;
use super::thread_mma::ThreadMma;
use crate::atoms::{MmaAtom, SparseMmaAtom};
use crate::composition::Tiler;
use crate::error::{LayoutError, attempt, fits};
use crate::layout::Layout;
use crate::strided::Strided;

/// An operand of a matrix instruction, with the axes that it runs over.
///
/// ```
/// use layout_core::{Layout, Operand, TiledMma, atoms};
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
/// let shapes = [Operand::A, Operand::B, Operand::C].map(|operand| mma.operand_shape(operand));
/// assert_eq!(shapes, [(32, 16), (16, 16), (32, 16)]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Operand {
    /// A, over (M, K).
    A,
    /// B, over (N, K).
    B,
    /// C and D, over (M, N).
    C,
    /// The metadata of a sparse A, in words: over (rows of atoms, words). A row of atoms has as many words for each
    /// [`metadata_k`](SparseMmaAtom::metadata_k) columns of A as the atom has lanes, in their order.
    Metadata,
}

impl Operand {
    /// The axes, 0 for M, 1 for N, 2 for K.
    pub(super) const fn axes(self) -> (usize, usize) {
        match self {
            Self::A | Self::Metadata => (0, 2),
            Self::B => (1, 2),
            Self::C => (0, 1),
        }
    }
}

/// The instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[expect(
    clippy::large_enum_variant,
    reason = "values of the algebra are `Copy`, and this crate does not allocate"
)]
enum Atom {
    Dense(MmaAtom),
    Sparse(SparseMmaAtom),
}

/// An atom, the layout of the atoms, and the tile that they make together.
///
/// ```
/// use layout_core::{Layout, Swizzled, TiledMma, atoms};
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
/// let c = Swizzled::parse("(64,32):(32,1)").unwrap();
/// // Thread 0 holds four elements in each of 2x2 tiles.
/// let part = mma.get_slice(0).unwrap().partition_c(&c).unwrap();
/// assert_eq!(part.to_string(), "((2,2),2,2):((1,256),1024,16)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct TiledMma {
    atom: Atom,
    /// `(lane, m, n, k) -> thread`.
    threads: Layout,
    /// Atoms along M, N, K.
    counts: [i64; 3],
    /// The coordinates of M, N and K that the tile takes, in order.
    tile: [Layout; 3],
}

const fn wrong_rank(atoms: &Layout) -> LayoutError {
    LayoutError::WrongRank {
        what: "the layout of a tiled mma's atoms (M, N, K)",
        expected: 3,
        found: atoms.rank(),
    }
}

impl TiledMma {
    /// The atoms of `atoms` (a layout of three modes, `(m,n,k) -> atom number`), each once: the tile is as large as they are.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// // 2x2 warps: a tile of 32x16x16.
    /// let warps = Layout::parse("(2,2,1):(1,2,0)").unwrap();
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &warps).unwrap();
    /// assert_eq!((mma.threads(), mma.tile_shape()), (128, [32, 16, 16]));
    /// ```
    ///
    /// # Errors
    ///
    /// A layout of atoms that does not have three modes; a number of threads that overflows.
    pub const fn new(atom: MmaAtom, atoms: &Layout) -> Result<Self, LayoutError> {
        if atoms.rank() != 3 {
            return Err(wrong_rank(atoms));
        }
        let mut tile = [Layout::UNIT; 3];
        let mut axis = 0;
        while axis < 3 {
            let size = attempt!(atoms.get(axis)).size();
            let extent = attempt!(fits(
                size.checked_mul(extent_of(&atom, axis)),
                "the tile of a tiled mma"
            ));
            tile[axis] = attempt!(Layout::mode(extent, 1));
            axis += 1;
        }
        Self::with_tile(atom, atoms, &tile)
    }

    /// The same with a larger or permuted tile: `tile[axis]` says which coordinates of M, N and K the tile takes, in which
    /// order (CuTe's permutation). `32:1` along N makes two n8 atoms side by side belong to one tile; `(8,2,2):(1,16,8)`
    /// lets a thread's values of two atoms be neighbours.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms, expect};
    /// let one = Layout::parse("(1,1,1):(0,0,0)").unwrap();
    /// // Two n8 atoms of one warp: B is 16 columns wide, which is one `ldmatrix.x4`.
    /// let tile = [16, 16, 16].map(|extent| expect(Layout::mode(extent, 1)));
    /// let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &one, &tile).unwrap();
    /// assert_eq!((mma.threads(), mma.tile_shape()), (32, [16, 16, 16]));
    /// ```
    ///
    /// # Errors
    ///
    /// A layout of atoms without three modes; a tile that the atoms do not divide; an instruction of several blocks, or with a sparse A
    /// ([`sparse`](Self::sparse)).
    pub const fn with_tile(
        atom: MmaAtom,
        atoms: &Layout,
        tile: &[Layout; 3],
    ) -> Result<Self, LayoutError> {
        if atom.a.size() < atom.m * atom.k {
            return Err(LayoutError::Unsupported {
                operation: "a tiled mma",
                given: atom.name,
                accepted: "an instruction that reads all of A; of one with a sparse A, the SparseMmaAtom (TiledMma::sparse)",
            });
        }
        Self::tiled(Atom::Dense(atom), atoms, tile)
    }

    /// A sparse instruction repeated, as [`new`](Self::new): A is the compressed one, over (M, K/2).
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    /// let warps = Layout::parse("(2,2,1):(1,2,0)").unwrap();
    /// let mma = TiledMma::sparse(atoms::MMA_SP_ORDERED_M16N8K16_F16, &warps, [32, 16, 64]).unwrap();
    /// assert_eq!(mma.tile_shape(), [32, 16, 64]);
    /// assert_eq!(mma.operand_shape(Operand::A), (32, 32)); // M and K/2
    /// // Two rows of atoms, and for the four atoms along K a word a lane.
    /// assert_eq!(mma.operand_shape(Operand::Metadata), (2, 32));
    /// // A tile is as deep as a register of metadata describes.
    /// assert!(TiledMma::sparse(atoms::MMA_SP_ORDERED_M16N8K16_F16, &warps, [32, 16, 16]).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`with_tile`](Self::with_tile) and [`SparseMmaAtom::checked`]; a tile whose K is not a multiple of
    /// [`metadata_k`](SparseMmaAtom::metadata_k); more than one atom along K, whose warps would have parts of sums.
    pub const fn sparse(
        atom: SparseMmaAtom,
        atoms: &Layout,
        [m, n, k]: [i64; 3],
    ) -> Result<Self, LayoutError> {
        let atom = attempt!(atom.checked());
        let each = attempt!(atom.metadata_k());
        if k % each != 0 {
            return Err(LayoutError::NotMultiple {
                operation: "the tile of a sparse tiled mma",
                argument: "the size in K",
                value: k,
                divisor: each,
            });
        }
        let tile = [
            attempt!(Layout::mode(m, 1)),
            attempt!(Layout::mode(n, 1)),
            attempt!(Layout::mode(k, 1)),
        ];
        let tiled = attempt!(Self::tiled(Atom::Sparse(atom), atoms, &tile));
        if tiled.counts[2] != 1 {
            return Err(LayoutError::NumberMismatch {
                operation: "a sparse tiled mma",
                argument: "the number of atoms along K",
                value: tiled.counts[2],
                expected: 1,
            });
        }
        Ok(tiled)
    }

    const fn tiled(of: Atom, atoms: &Layout, tile: &[Layout; 3]) -> Result<Self, LayoutError> {
        let atom = match of {
            Atom::Dense(atom) => atom,
            Atom::Sparse(sparse) => sparse.mma,
        };
        if atom.blocks > 1 {
            return Err(LayoutError::Unsupported {
                operation: "a tiled mma",
                given: atom.name,
                accepted: "an instruction that computes one block of C",
            });
        }
        if atoms.rank() != 3 {
            return Err(wrong_rank(atoms));
        }
        let mut counts = [1; 3];
        let mut axis = 0;
        while axis < 3 {
            counts[axis] = attempt!(atoms.get(axis)).size();
            let unit = attempt!(fits(
                counts[axis].checked_mul(extent_of(&atom, axis)),
                "the tile of a tiled mma"
            ));
            let size = tile[axis].size();
            if size % unit != 0 {
                return Err(LayoutError::NotMultiple {
                    operation: "the tile of a tiled mma",
                    argument: ["the size in M", "the size in N", "the size in K"][axis],
                    value: size,
                    divisor: unit,
                });
            }
            axis += 1;
        }
        let lanes = attempt!(Layout::mode(atom.threads, 1));
        let threads = attempt!(lanes.tiled_product(&Tiler::Layout(atoms)));
        Ok(Self {
            atom: of,
            threads,
            counts,
            tile: *tile,
        })
    }

    /// The instruction.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert_eq!(mma.atom(), atoms::MMA_M16N8K16_F16);
    /// ```
    pub const fn atom(&self) -> MmaAtom {
        match self.atom {
            Atom::Dense(atom) => atom,
            Atom::Sparse(sparse) => sparse.mma,
        }
    }

    /// The instruction with its metadata, if it is [sparse](Self::sparse).
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let one = Layout::parse("(1,1,1):(0,0,0)").unwrap();
    /// let mma = TiledMma::sparse(atoms::MMA_SP_M16N8K32_F16, &one, [16, 8, 64]).unwrap();
    /// assert_eq!(mma.sparse_atom(), Some(atoms::MMA_SP_M16N8K32_F16));
    /// assert_eq!(TiledMma::new(atoms::MMA_M16N8K16_F16, &one).unwrap().sparse_atom(), None);
    /// ```
    pub const fn sparse_atom(&self) -> Option<SparseMmaAtom> {
        match self.atom {
            Atom::Dense(_) => None,
            Atom::Sparse(sparse) => Some(sparse),
        }
    }

    /// `(lane, m, n, k) -> thread`.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert_eq!(mma.thread_layout().to_string(), "(32,2,2,1):(1,32,64,0)");
    /// ```
    pub const fn thread_layout(&self) -> Layout {
        self.threads
    }

    /// Number of threads.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert_eq!(mma.threads(), 128);
    /// ```
    pub const fn threads(&self) -> i64 {
        self.threads.cosize()
    }

    /// Extents of the tile along M, N and K.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert_eq!(mma.tile_shape(), [32, 16, 16]);
    /// ```
    pub const fn tile_shape(&self) -> [i64; 3] {
        [
            self.tile[0].size(),
            self.tile[1].size(),
            self.tile[2].size(),
        ]
    }

    /// Extents of the tile along an operand's axes.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert_eq!(mma.operand_shape(Operand::B), (16, 16)); // N and K
    /// ```
    pub const fn operand_shape(&self, operand: Operand) -> (i64, i64) {
        match self.operand_tile(operand) {
            Ok([first, second]) => (first.size(), second.size()),
            // `sparse` has made the same tiles.
            Err(_) => (0, 0),
        }
    }

    /// The coordinates of an operand's two axes that the tile takes.
    const fn operand_tile(&self, operand: Operand) -> Result<[Layout; 2], LayoutError> {
        let (i, j) = operand.axes();
        let (atom, tile) = (self.atom(), [self.tile[i], self.tile[j]]);
        // Tiles of a sparse instruction are in order.
        let [first, second] = match (self.atom, operand) {
            (Atom::Sparse(_), Operand::A) => [tile[0].size(), tile[1].size() / 2],
            (Atom::Sparse(sparse), Operand::Metadata) => {
                let words = tile[1].size() / attempt!(sparse.metadata_k()) * atom.threads;
                [tile[0].size() / atom.m, words]
            }
            _ => return Ok(tile),
        };
        Ok([
            attempt!(Layout::mode(first, 1)),
            attempt!(Layout::mode(second, 1)),
        ])
    }

    /// The extents of an operand's axes in an atom, and `(thread, value) -> coordinate` of them.
    const fn fragment(&self, operand: Operand) -> Result<([i64; 2], Layout), LayoutError> {
        let (i, j) = operand.axes();
        let atom = self.atom();
        let extents = [extent_of(&atom, i), extent_of(&atom, j)];
        Ok(match (operand, self.atom) {
            (Operand::A, Atom::Sparse(_)) => ([extents[0], extents[1] / 2], atom.a),
            (Operand::A, Atom::Dense(_)) => (extents, atom.a),
            (Operand::B, _) => (extents, atom.b),
            (Operand::C, _) => (extents, atom.c),
            (Operand::Metadata, Atom::Sparse(_)) => (
                [1, atom.threads],
                attempt!(Layout::flat(&[atom.threads, 1], &[1, 0])),
            ),
            (Operand::Metadata, Atom::Dense(_)) => {
                return Err(LayoutError::Unsupported {
                    operation: "the metadata of a tiled mma",
                    given: atom.name,
                    accepted: "a sparse instruction (TiledMma::sparse)",
                });
            }
        })
    }

    /// `((ThrV,(Thr0,Thr1)),(FrgV,(Rest0,Rest1,…)))` of a tensor over the operand's axes; further modes of the tensor stay at
    /// the end.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let c = Layout::parse("(16,8):(8,1)").unwrap();
    /// // Thread 5 holds columns 2 and 3 of rows 1 and 9.
    /// let parts = mma.thrfrg(Operand::C, &c).unwrap();
    /// assert_eq!([0, 1, 2, 3].map(|value| parts.at(&[5, value])), [10, 11, 74, 75]);
    /// ```
    ///
    /// # Errors
    ///
    /// A tile that does not divide the tensor ([`LayoutError::Overhang`]); strides that the fragment does not compose with.
    pub const fn thrfrg<const K: usize>(
        &self,
        operand: Operand,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        let (i, j) = operand.axes();
        let ([first, second], fragment) = attempt!(self.fragment(operand));
        let tile = attempt!(self.operand_tile(operand));
        let permuted = attempt!(
            attempt!(tensor.logical_divide(&Tiler::Modes(&[
                Tiler::Layout(&tile[0]),
                Tiler::Layout(&tile[1])
            ])))
            .exact()
        );
        let by_atom = attempt!(
            attempt!(
                permuted.zipped_divide(&Tiler::Modes(&[Tiler::Int(first), Tiler::Int(second)]))
            )
            .exact()
        );
        let tv = attempt!(attempt!(by_atom.get(0)).compose(&fragment));
        let by_thread = attempt!(
            attempt!(attempt!(by_atom.get(1)).zipped_divide(&Tiler::Modes(&[
                Tiler::Int(self.counts[i]),
                Tiler::Int(self.counts[j])
            ])))
            .exact()
        );
        Strided::tuple(&[
            attempt!(Strided::tuple(&[
                attempt!(tv.get(0)),
                attempt!(by_thread.get(0))
            ])),
            attempt!(Strided::tuple(&[
                attempt!(tv.get(1)),
                attempt!(by_thread.get(1))
            ])),
        ])
    }

    /// [`thrfrg`](Self::thrfrg) of A, over (M, K): `((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,…)))`.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let parts = mma.thrfrg_a(&Layout::parse("(16,16):(16,1)").unwrap()).unwrap();
    /// assert_eq!([0, 1, 2].map(|value| parts.at(&[5, value])), [18, 19, 8 * 16 + 18]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`thrfrg`](Self::thrfrg).
    pub const fn thrfrg_a<const K: usize>(
        &self,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        self.thrfrg(Operand::A, tensor)
    }

    /// [`thrfrg`](Self::thrfrg) of B, over (N, K).
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let parts = mma.thrfrg_b(&Layout::parse("(8,16):(16,1)").unwrap()).unwrap();
    /// assert_eq!([0, 1, 2].map(|value| parts.at(&[5, value])), [18, 19, 26]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`thrfrg`](Self::thrfrg).
    pub const fn thrfrg_b<const K: usize>(
        &self,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        self.thrfrg(Operand::B, tensor)
    }

    /// [`thrfrg`](Self::thrfrg) of C, over (M, N).
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)").unwrap()).unwrap();
    /// let parts = mma.thrfrg_c(&Layout::parse("(16,8):(8,1)").unwrap()).unwrap();
    /// assert_eq!([0, 1, 2].map(|value| parts.at(&[5, value])), [10, 11, 74]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`thrfrg`](Self::thrfrg).
    pub const fn thrfrg_c<const K: usize>(
        &self,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        self.thrfrg(Operand::C, tensor)
    }

    /// The thread-value layout of one tile: `(thread, (FrgV,(Rest0,Rest1))) ->` colexicographic coordinate of the operand's
    /// tile. Threads that differ only along the axis the operand lacks hold the same elements.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,2,1):(0,1,0)").unwrap()).unwrap();
    /// let a = mma.layout_tv(Operand::A).unwrap();
    /// // The second warp computes other columns with the same A.
    /// assert_eq!(a.at(&[5, 3]), a.at(&[32 + 5, 3]));
    /// ```
    ///
    /// # Errors
    ///
    /// A layout of the atoms that is not a bijection onto atom numbers.
    pub const fn layout_tv(&self, operand: Operand) -> Result<Layout, LayoutError> {
        let (first, second) = self.operand_shape(operand);
        self.tensor_tv(operand, &attempt!(Layout::col_major(&[first, second])))
    }

    /// The thread-value layout of a tensor over the operand's axes, as large as any number of tiles:
    /// `(thread, (FrgV,(Rest0,Rest1,…)))`. [`layout_tv`](Self::layout_tv) is that of one tile's coordinates.
    ///
    /// ```
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,1,1):(1,0,0)").unwrap()).unwrap();
    /// // Two tiles of B along K: values 4 to 7 of a thread are of the second. Both warps hold the same.
    /// let b = mma.tensor_tv(Operand::B, &Layout::parse("(8,32):(32,1)").unwrap()).unwrap();
    /// assert_eq!([0, 4].map(|value| b.at(&[5, value])), [32 + 2, 32 + 18]);
    /// assert_eq!(b.at(&[5, 4]), b.at(&[32 + 5, 4]));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`thrfrg`](Self::thrfrg); a layout of the atoms that is not a bijection onto atom numbers.
    pub const fn tensor_tv<const K: usize>(
        &self,
        operand: Operand,
        tensor: &Strided<K>,
    ) -> Result<Strided<K>, LayoutError> {
        let (i, j) = operand.axes();
        let thrfrg = attempt!(self.thrfrg(operand, tensor));
        // thread -> (lane, m, n, k) -> (lane, (atom0, atom1)).
        let coordinate = attempt!(self.threads.right_inverse());
        if coordinate.size() != self.threads.size() {
            return Err(LayoutError::NotBijective {
                operation: "the threads of a tiled mma",
                size: self.threads.size(),
                cosize: self.threads.cosize(),
            });
        }
        let lanes = self.atom().threads;
        let mut stride = [0; 4];
        stride[0] = 1;
        stride[i + 1] = lanes;
        stride[j + 1] = lanes * self.counts[i];
        let [m, n, k] = self.counts;
        let project = attempt!(Layout::flat(&[lanes, m, n, k], &stride));
        let place = attempt!(project.compose(&coordinate));
        let threads = attempt!(attempt!(thrfrg.get(0)).compose(&place));
        Strided::tuple(&[threads, attempt!(thrfrg.get(1))])
    }

    /// The part of `thread`.
    ///
    /// ```
    /// use layout_core::{Layout, TiledMma, atoms};
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)").unwrap()).unwrap();
    /// assert!(mma.get_slice(127).is_ok() && mma.get_slice(128).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// A thread outside the tiled instruction.
    pub const fn get_slice(&self, thread: i64) -> Result<ThreadMma, LayoutError> {
        attempt!(in_range(thread, self.threads()));
        let mut place = attempt!(self.threads.preimage(thread));
        let lane = place % self.atom().threads;
        place /= self.atom().threads;
        let mut atom = [0; 3];
        let mut axis = 0;
        while axis < 3 {
            atom[axis] = place % self.counts[axis];
            place /= self.counts[axis];
            axis += 1;
        }
        Ok(ThreadMma {
            mma: *self,
            lane,
            atom,
        })
    }
}

const fn extent_of(atom: &MmaAtom, axis: usize) -> i64 {
    match axis {
        0 => atom.m,
        1 => atom.n,
        _ => atom.k,
    }
}

/// Composition of mode 0 alone.
pub(super) const fn compose_first(layout: &Layout, by: &Layout) -> Result<Layout, LayoutError> {
    layout.compose_by_mode(&Tiler::Modes(&[Tiler::Layout(by), Tiler::Keep]))
}
