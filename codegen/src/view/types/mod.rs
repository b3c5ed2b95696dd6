//! Views whose element, space and layout are types.
//!
//! Where a tile's extents are constants, what can be wrong between two views is wrong when the program is compiled: a copy between views
//! whose elements, spaces or shapes do not meet is a type error. A [`TypedView`] is a [`View`] or a [`Fragment`] that carries the three
//! as types; everything it does is done by what it wraps, so that what types do not say (is a thread-value layout a partition, does a
//! vector lie in one piece, is a buffer's element the one that was said) is refused when the kernel is built.
//!
//! | type | space | tile |
//! |---|---|---|
//! | `TypedView<F16, Global, Extents<(C<64>, C<32>)>>` | global memory | 64 x 32, strides from the launch |
//! | `TypedView<F16, Shared, Compose<Swizzle<3, 3, 3>, Layout<…>>>` | shared memory | the whole layout |
//! | `TypedView<F32, Registers, Extents<(C<64>, C<64>)>>` | registers | 64 x 64 over the threads |
//!
//! ```
//! use layout_codegen::ir::{Axis, Kernel};
//! use layout_codegen::Arch;
//! use layout_codegen::ir::Element;
//! use layout_codegen::view::types::{Extents, FilledByAsync, Global, TypedView};
//! use layout_core::space::F32;
//! use layout_core::typed::{C, Layout};
//!
//! // y = xᵀ, 32 x 32 elements a block, through a tile with a row of padding.
//! type Square = (C<32>, C<32>);
//! type Padded = Layout<Square, (C<33>, C<1>)>;
//! type Shares = Layout<((C<32>, C<8>), C<4>), ((C<32>, C<1>), C<8>)>;
//! let mut k = Kernel::new("transpose", 256);
//! let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
//! let x = k.input("x", Element::F32, &[rows, cols]);
//! let y = k.output("y", Element::F32, &[cols, rows]);
//! let (i, j) = (k.tiles(Axis::X, rows, 32)?, k.tiles(Axis::Y, cols, 32)?);
//! let thread = k.thread();
//! let x: TypedView<F32, Global, Extents<Square>> = x.typed_tile(&mut k, &[i, j])?;
//! let y: TypedView<F32, Global, Extents<Square>> = y.typed_tile(&mut k, &[j, i])?;
//! let tile = k.typed_shared::<F32, Padded>("tile")?;
//!
//! let put = tile.partition::<Shares>(&mut k, thread)?;
//! x.partition::<Shares>(&mut k, thread)?.copy_to(&mut k, &put)?;
//! k.barrier();
//! let to = y.partition::<Shares>(&mut k, thread)?;
//! tile.transposed().partition::<Shares>(&mut k, thread)?.copy_to(&mut k, &to)?;
//! assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types have to agree:
//!
//! ```compile_fail
//! # use layout_codegen::ir::Kernel;
//! # use layout_codegen::view::types::{Shared, TypedPartition};
//! # use layout_core::space::{F16, F32};
//! # use layout_core::typed::C;
//! fn copy(k: &mut Kernel, from: &TypedPartition<F32, Shared, C<64>>, to: &TypedPartition<F16, Shared, C<64>>) {
//!     let _ = from.copy_to(k, to); // a copy from `F32` to `F16` would convert
//! }
//! ```

mod markers;

pub use markers::{
    E4m3, E5m2, Extents, FilledByAsync, Global, InMemory, Memory, ReadByLdmatrix, Registers, S8,
    SameElement, SameShape, Shared, TileLayout, ViewElement,
};

use std::fmt::Debug;
use std::marker::PhantomData;

use layout_core::typed::{StaticLayout, StaticTuple};
use layout_core::{TiledCopy, TiledMma};

use super::partition::Instruction;
use super::{Fragment, Partition, View, ViewError};
use crate::index::Expr;
use crate::ir::Element;
use crate::ir::Kernel;

/// The extents of a shape, mode by mode.
fn extents<Shape: StaticTuple>() -> Result<Vec<i64>, ViewError> {
    let tuple = Shape::TUPLE;
    let layout = layout_core::Layout::compact(tuple)?;
    (0..layout.rank())
        .map(|i| Ok(layout.get(i)?.size()))
        .collect()
}

/// A tile of elements `E` in the space `S` with the layout `L`.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::view::types::{Shared, TypedView};
/// use layout_core::space::F16;
/// use layout_core::typed::{C, Compose, Layout, Swizzle};
///
/// type Tile = Compose<Swizzle<3, 3, 3>, Layout<(C<64>, C<64>), (C<64>, C<1>)>>;
/// let mut k = Kernel::new("k", 128);
/// let tile: TypedView<F16, Shared, Tile> = k.typed_shared("tile")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TypedView<E, S: Memory, L> {
    tile: S::Tile,
    types: PhantomData<(E, L)>,
}

impl<E, S: Memory, L> Clone for TypedView<E, S, L> {
    fn clone(&self) -> Self {
        Self::of(self.tile.clone())
    }
}

impl<E, S: Memory, L> Debug for TypedView<E, S, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedView").field(&self.tile).finish()
    }
}

/// What one thread has of a tile of elements `E` in the space `S` with the extents `Shape`.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::view::types::{Shared, TypedPartition};
/// use layout_core::space::F32;
/// use layout_core::typed::{C, Layout};
///
/// let mut k = Kernel::new("k", 32);
/// let tile = k.typed_shared::<F32, Layout<C<128>, C<1>>>("tile")?;
/// let lane = k.lane();
/// type Four = Layout<(C<32>, C<4>), (C<4>, C<1>)>;
/// let share: TypedPartition<F32, Shared, C<128>> = tile.partition::<Four>(&mut k, lane)?.vectors(&k, 4)?;
/// assert_eq!(share.untyped().values(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TypedPartition<E, S, Shape> {
    share: Partition,
    types: PhantomData<(E, S, Shape)>,
}

/// A tile in registers.
type Held<E, Shape> = TypedView<E, Registers, Extents<Shape>>;

impl Kernel {
    /// A tile in shared memory whose layout is a type.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<(C<32>, C<32>), (C<33>, C<1>)>>("tile")?;
    /// # let _ = tile;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::shared`].
    pub fn typed_shared<E: ViewElement, L: TileLayout + StaticLayout>(
        &mut self,
        name: &str,
    ) -> Result<TypedView<E, Shared, L>, ViewError> {
        Ok(TypedView::of(self.shared(name, E::ELEMENT, &L::LAYOUT)?))
    }

    /// Accumulators of a tiled mma for a tile of C of `M` x `N`, set to 0: [`Kernel::accumulators`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::C;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.typed_accumulators::<F32, C<16>, C<8>>(&mma, lane)?;
    /// assert_eq!(sums.untyped().values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::accumulators`]; [`ViewError::Elements`] if the instruction's sums are of another type.
    pub fn typed_accumulators<E: ViewElement, M: StaticTuple, N: StaticTuple>(
        &mut self,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<Held<E, (M, N)>, ViewError> {
        let shape = [M::TUPLE.size()?, N::TUPLE.size()?];
        held(self.accumulators(mma, shape, thread)?)
    }
}

/// A fragment with its types, which must be its own.
fn held<E: ViewElement, Shape: StaticTuple>(
    fragment: Fragment,
) -> Result<Held<E, Shape>, ViewError> {
    same_element::<E>("registers", fragment.element())?;
    Ok(TypedView::of(fragment))
}

/// Refuses another element than the type says.
fn same_element<E: ViewElement>(of: &str, element: Element) -> Result<(), ViewError> {
    if element == E::ELEMENT {
        return Ok(());
    }
    Err(ViewError::Elements {
        from: format!("`{of}` of {element}"),
        to: format!("a typed view of {}", E::ELEMENT),
    })
}

impl View {
    /// The tile of a static shape at tile coordinates `at`: [`View::tile`] with its types.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::ir::Element;
    /// use layout_codegen::view::types::{Extents, FilledByAsync, Global, TypedView};
    /// use layout_core::space::{F16, F32};
    /// use layout_core::typed::C;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let block = k.tiles(Axis::X, n, 128)?;
    /// let tile: TypedView<F32, Global, Extents<C<128>>> = x.typed_tile(&mut k, &[block])?;
    /// assert!(x.typed_tile::<F16, C<128>>(&mut k, &[block]).is_err()); // x is of f32
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::tile`]; [`ViewError::Elements`] if the buffer's elements are others than `E`; [`ViewError::Space`] for a view of shared
    /// memory, whose layout is given by [`Kernel::typed_shared`].
    #[track_caller]
    pub fn typed_tile<E: ViewElement, Shape: StaticTuple>(
        &self,
        k: &mut Kernel,
        at: &[Expr],
    ) -> Result<TypedView<E, Global, Extents<Shape>>, ViewError> {
        k.at_line();
        self.own(k)?;
        let name = self.name(k).to_owned();
        if self.space(k) != crate::ir::Space::Global {
            return Err(ViewError::Space {
                instruction: "a typed tile of global memory",
                writes: false,
                wanted: Some(crate::ir::Space::Global),
                buffer: name,
                space: self.space(k),
            });
        }
        let Some(element) = self.element else {
            return Err(ViewError::NoTile { buffer: name });
        };
        same_element::<E>(&name, element)?;
        Ok(TypedView::of(self.tile(k, &extents::<Shape>()?, at)?))
    }
}

impl<E, S: Memory, L> TypedView<E, S, L> {
    fn of(tile: S::Tile) -> Self {
        Self {
            tile,
            types: PhantomData,
        }
    }

    /// The view or the fragment without its types.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<(C<4>, C<32>), (C<32>, C<1>)>>("tile")?;
    /// let (zero, one) = (k.constant(0), k.constant(1));
    /// let second_row = tile.untyped().tile(&mut k, &[1, 32], &[one, zero])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn untyped(&self) -> &S::Tile {
        &self.tile
    }
}

impl<E, S: InMemory, L: TileLayout> TypedView<E, S, L> {
    /// What `thread` has of the tile by the thread-value layout `TV`: [`View::partition`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<(C<4>, C<32>), (C<32>, C<1>)>>("tile")?;
    /// let lane = k.lane();
    /// let column = tile.partition::<Layout<(C<32>, C<4>), (C<4>, C<1>)>>(&mut k, lane)?;
    /// assert_eq!(column.untyped().values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition`]; [`ViewError::Layout`] for a layout with a swizzle or an offset.
    #[track_caller]
    pub fn partition<TV: StaticLayout>(
        &self,
        k: &mut Kernel,
        thread: Expr,
    ) -> Result<TypedPartition<E, S, L::Shape>, ViewError> {
        k.at_line();
        let Some(tv) = TV::LAYOUT.as_plain() else {
            return Err(ViewError::Layout(layout_core::LayoutError::Unsupported {
                operation: "a partition",
                given: "a layout with a swizzle or an offset",
                accepted: "a plain layout (thread, value) -> element",
            }));
        };
        Ok(TypedPartition::of(self.tile.partition(k, &tv, thread)?))
    }

    /// What `thread` holds of A in a tiled mma: [`View::partition_a`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F16;
    /// use layout_core::typed::{C, Layout};
    /// use layout_core::{TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout_core::Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let tile = k.typed_shared::<F16, Layout<(C<16>, C<16>), (C<16>, C<1>)>>("a")?;
    /// let lane = k.lane();
    /// let a = tile.partition_a(&mut k, &mma, lane)?.vectors(&k, 2)?.load(&mut k)?;
    /// assert_eq!(a.untyped().values(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_a`].
    #[track_caller]
    pub fn partition_a(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<TypedPartition<E, S, L::Shape>, ViewError> {
        k.at_line();
        Ok(TypedPartition::of(self.tile.partition_a(k, mma, thread)?))
    }

    /// What `thread` holds of B, a tile over (N, K), in a tiled mma: [`View::partition_b`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F16;
    /// use layout_core::typed::{C, Layout};
    /// use layout_core::{TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout_core::Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let tile = k.typed_shared::<F16, Layout<(C<8>, C<16>), (C<16>, C<1>)>>("b")?;
    /// let lane = k.lane();
    /// assert_eq!(tile.partition_b(&mut k, &mma, lane)?.untyped().values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_b`].
    #[track_caller]
    pub fn partition_b(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<TypedPartition<E, S, L::Shape>, ViewError> {
        k.at_line();
        Ok(TypedPartition::of(self.tile.partition_b(k, mma, thread)?))
    }

    /// What `thread` holds of C in a tiled mma: [`View::partition_c`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    /// use layout_core::{TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout_core::Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let tile = k.typed_shared::<F32, Layout<(C<16>, C<8>), (C<8>, C<1>)>>("c")?;
    /// let lane = k.lane();
    /// assert_eq!(tile.partition_c(&mut k, &mma, lane)?.untyped().values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_c`].
    #[track_caller]
    pub fn partition_c(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        thread: Expr,
    ) -> Result<TypedPartition<E, S, L::Shape>, ViewError> {
        k.at_line();
        Ok(TypedPartition::of(self.tile.partition_c(k, mma, thread)?))
    }
}

impl<E, S: InMemory, A: StaticTuple, B: StaticTuple, L: TileLayout<Shape = (A, B)>>
    TypedView<E, S, L>
{
    /// The view with its two modes in reverse: [`View::transposed`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::types::{Extents, Shared, TypedView};
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<(C<4>, C<32>), (C<32>, C<1>)>>("tile")?;
    /// let columns: TypedView<F32, Shared, Extents<(C<32>, C<4>)>> = tile.transposed();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn transposed(&self) -> TypedView<E, S, Extents<(B, A)>> {
        TypedView::of(self.tile.transposed())
    }
}

impl<E: ViewElement, S: InMemory, L: TileLayout> TypedView<E, S, L> {
    /// What `thread` holds of an operand, by `ldmatrix`: `copy` is [`TiledCopy::for_operand`] of the operand.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F16;
    /// use layout_core::typed::{C, Layout};
    /// use layout_core::{Operand, TiledCopy, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout_core::Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    /// let tile = k.typed_shared::<F16, Layout<(C<16>, C<16>), (C<16>, C<1>)>>("a")?;
    /// let lane = k.lane();
    /// assert_eq!(tile.load_matrices(&mut k, &copy, lane)?.untyped().values(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::partition_s`]; [`ViewError::Instruction`] for a copy by another instruction.
    #[track_caller]
    pub fn load_matrices(
        &self,
        k: &mut Kernel,
        copy: &TiledCopy,
        thread: Expr,
    ) -> Result<Held<E, L::Shape>, ViewError>
    where
        S: ReadByLdmatrix,
    {
        k.at_line();
        let share = self.tile.partition_s(k, copy, thread)?;
        if !matches!(share.by, Instruction::Matrices { .. }) {
            return Err(ViewError::Instruction {
                instruction: copy.atom().name,
                accepted: "`ldmatrix` of four matrices of halves for `load_matrices`",
            });
        }
        held(k.load_fragment(&share)?)
    }
}

impl<E, S, Shape> TypedPartition<E, S, Shape> {
    fn of(share: Partition) -> Self {
        Self {
            share,
            types: PhantomData,
        }
    }

    /// The share without its types.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<C<64>, C<1>>>("tile")?;
    /// let lane = k.lane();
    /// let share = tile.partition::<Layout<(C<32>, C<2>), (C<2>, C<1>)>>(&mut k, lane)?;
    /// assert_eq!(share.untyped().values(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn untyped(&self) -> &Partition {
        &self.share
    }

    /// The same share, so many elements at once: [`Partition::vectors`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<C<64>, C<1>>>("tile")?;
    /// let lane = k.lane();
    /// let share = tile.partition::<Layout<(C<32>, C<2>), (C<2>, C<1>)>>(&mut k, lane)?;
    /// assert!(share.vectors(&k, 2).is_ok() && share.vectors(&k, 4).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Partition::vectors`].
    pub fn vectors(&self, k: &Kernel, elements: i64) -> Result<Self, ViewError> {
        Ok(Self::of(self.share.vectors(k, elements)?))
    }

    /// Copies the tile by loads and stores: [`Kernel::copy`].
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Element;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("copy", 32);
    /// let n = k.size("n", 1 << 20);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, lane) = (k.tiles(Axis::X, n, 128)?, k.lane());
    /// type Shares = Layout<(C<32>, C<4>), (C<1>, C<32>)>;
    /// let x = x.typed_tile::<F32, C<128>>(&mut k, &[block])?.partition::<Shares>(&mut k, lane)?;
    /// let y = y.typed_tile::<F32, C<128>>(&mut k, &[block])?.partition::<Shares>(&mut k, lane)?;
    /// x.copy_to(&mut k, &y)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::copy`], less what the types have ruled out.
    #[track_caller]
    pub fn copy_to<F, T: InMemory, To>(
        &self,
        k: &mut Kernel,
        to: &TypedPartition<F, T, To>,
    ) -> Result<(), ViewError>
    where
        F: SameElement<E>,
        To: SameShape<Shape>,
        S: InMemory,
    {
        k.at_line();
        k.copy(&self.share, &to.share)
    }

    /// Copies the tile by `cp.async`, 4, 8 or 16 bytes at once by the [vectors](Self::vectors) of the two shares.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::ir::Element;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("copy", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, lane) = (k.tiles(Axis::X, n, 128)?, k.lane());
    /// type Shares = Layout<(C<32>, C<4>), (C<4>, C<1>)>;
    /// let tile = k.typed_shared::<F32, Layout<C<128>, C<1>>>("tile")?;
    /// let from = x.typed_tile::<F32, C<128>>(&mut k, &[block])?.partition::<Shares>(&mut k, lane)?;
    /// let (from, to) = (from.vectors(&k, 4)?, tile.partition::<Shares>(&mut k, lane)?.vectors(&k, 4)?);
    /// from.copy_async_to(&mut k, &to)?;
    /// k.wait_all();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::copy`]; [`ViewError::Vector`] for vectors of other widths.
    #[track_caller]
    pub fn copy_async_to<F, T, To>(
        &self,
        k: &mut Kernel,
        to: &TypedPartition<F, T, To>,
    ) -> Result<(), ViewError>
    where
        F: SameElement<E>,
        To: SameShape<Shape>,
        T: FilledByAsync<S>,
    {
        k.at_line();
        let mut shares = [self.share.clone(), to.share.clone()];
        for share in &mut shares {
            share.view.own(k)?;
            let buffer = k.buffer(share.view.buffer);
            let bytes = (share.vector * buffer.bytes) as u32;
            if ![4, 8, 16].contains(&bytes) || share.by != Instruction::Plain {
                return Err(ViewError::Vector {
                    buffer: buffer.name.clone(),
                    elements: share.vector,
                    reason: "an asynchronous copy moves 4, 8 or 16 bytes at once",
                });
            }
            let cached = bytes < 16;
            share.by = Instruction::Async { bytes, cached };
        }
        k.copy(&shares[0], &shares[1])
    }
}

impl<E: ViewElement, S: InMemory, Shape: StaticTuple> TypedPartition<E, S, Shape> {
    /// Loads what the thread has of the tile to registers: [`Kernel::load_fragment`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::types::{Extents, Registers, TypedView};
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.typed_shared::<F32, Layout<C<64>, C<1>>>("tile")?;
    /// let lane = k.lane();
    /// let share = tile.partition::<Layout<(C<32>, C<2>), (C<2>, C<1>)>>(&mut k, lane)?;
    /// let values: TypedView<F32, Registers, Extents<C<64>>> = share.load(&mut k)?;
    /// assert_eq!(values.untyped().values(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::load_fragment`].
    #[track_caller]
    pub fn load(&self, k: &mut Kernel) -> Result<Held<E, Shape>, ViewError> {
        k.at_line();
        held(k.load_fragment(&self.share)?)
    }
}

impl<E, Shape: StaticTuple> Held<E, Shape> {
    /// Stores the fragment through a share of a tile of its shape: [`Kernel::store_fragment`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::F32;
    /// use layout_core::typed::{C, Layout};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// type Row = Layout<C<64>, C<1>>;
    /// let (a, b) = (k.typed_shared::<F32, Row>("a")?, k.typed_shared::<F32, Row>("b")?);
    /// let lane = k.lane();
    /// type Shares = Layout<(C<32>, C<2>), (C<2>, C<1>)>;
    /// let (a, b) = (a.partition::<Shares>(&mut k, lane)?, b.partition::<Shares>(&mut k, lane)?);
    /// a.load(&mut k)?.store_to(&mut k, &b)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::store_fragment`], less what the types have ruled out.
    #[track_caller]
    pub fn store_to<F, T: InMemory, To>(
        &self,
        k: &mut Kernel,
        to: &TypedPartition<F, T, To>,
    ) -> Result<(), ViewError>
    where
        F: SameElement<E>,
        To: SameShape<Shape>,
    {
        k.at_line();
        k.store_fragment(&to.share, &self.tile)
    }

    /// The fragment in another type: [`Kernel::convert_fragment`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::{F16, F32};
    /// use layout_core::typed::C;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.typed_accumulators::<F32, C<16>, C<8>>(&mma, lane)?;
    /// assert_eq!(sums.convert::<F16>(&mut k)?.untyped().values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::convert_fragment`].
    #[track_caller]
    pub fn convert<F: ViewElement>(&self, k: &mut Kernel) -> Result<Held<F, Shape>, ViewError> {
        k.at_line();
        held(k.convert_fragment(&self.tile, F::ELEMENT)?)
    }
}

impl<E, M: StaticTuple, N: StaticTuple> Held<E, (M, N)> {
    /// `self += a·bᵀ` by the mma's instruction: [`Kernel::gemm`]. The extents M, N and K are those of all three.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::space::{F16, F32};
    /// use layout_core::typed::{C, Layout};
    /// use layout_core::{TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout_core::Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let a = k.typed_shared::<F16, Layout<(C<16>, C<32>), (C<32>, C<1>)>>("a")?;
    /// let b = k.typed_shared::<F16, Layout<(C<8>, C<32>), (C<32>, C<1>)>>("b")?;
    /// let lane = k.lane();
    /// let a = a.partition_a(&mut k, &mma, lane)?.load(&mut k)?;
    /// let b = b.partition_b(&mut k, &mma, lane)?.load(&mut k)?;
    /// let sums = k.typed_accumulators::<F32, C<16>, C<8>>(&mma, lane)?;
    /// sums.add_product(&mut k, &mma, &a, &b)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::gemm`], less what the types have ruled out.
    #[track_caller]
    pub fn add_product<A, B, K: StaticTuple>(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        a: &Held<A, (M, K)>,
        b: &Held<B, (N, K)>,
    ) -> Result<(), ViewError> {
        k.at_line();
        k.gemm(mma, &a.tile, &b.tile, &self.tile)
    }
}
