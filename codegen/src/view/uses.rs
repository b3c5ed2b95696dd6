//! The layout of a shared tile, derived from its uses.
//!
//! A [`Use`] is one way in which threads touch a tile: by a thread-value layout, a tiled copy or the operand of a tiled mma, with the
//! instruction's width. Each gives, warp by warp and instruction by instruction, which element each lane touches; [`layout_core::derive`] finds
//! the layout with the fewest wavefronts over all of them, and proves that none has fewer. The prover counts them again from the
//! addresses of the finished kernel, so that a use that was forgotten shows up there.
//!
//! ```
//! use layout_codegen::ir::Kernel;
//! use layout_codegen::ir::Element;
//! use layout_codegen::view::Use;
//! use layout_core::Layout;
//!
//! // A transpose: a warp writes a row of 32 elements, and reads a column.
//! let mut k = Kernel::new("k", 256);
//! let shares = Layout::parse("((32,8),4):((32,1),8)")?;
//! let uses = [Use::store(&shares), Use::load(&shares).transposed()];
//! let tile = k.shared_for("tile", Element::F32, [32, 32], &uses)?;
//! let derived = tile.derivation().ok_or("not derived")?;
//! assert_eq!(derived.layout.ok_or("no layout")?.to_string(), "Sw<5,0,5> o (32,32):(32,1)");
//! assert!(derived.accesses().iter().all(|a| a.wavefronts == a.ideal));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use layout_core::banks::{Access, LANES, Matrices};
use layout_core::derive::{Derivation, Pattern, Tile, derive_layout};
use layout_core::{Layout, LayoutError, Operand, TiledCopy, TiledMma};

use super::buffer::{LINE, checked};
use super::tiled::{Moves, Side, moves, operand_tv, side_of};
use super::{View, ViewError};
use crate::ir::Element;
use crate::ir::Kernel;

/// One way in which threads touch a shared tile.
///
/// ```
/// use layout_codegen::view::Use;
/// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
///
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
/// let read = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
/// let write = TiledCopy::new(
///     atoms::CP_ASYNC_16.recast(16)?,
///     &Layout::parse("(32,4):(4,1)")?,
///     &Layout::parse("(1,8):(0,1)")?,
/// )?;
/// let uses = [Use::target(&write), Use::source(&read)];
/// # let _ = uses;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Use {
    by: By,
    transposed: bool,
    /// The extents of the part that is touched, if it is not the whole tile.
    part: Option<[i64; 2]>,
    vector: i64,
}

/// Who touches what.
#[derive(Clone, Debug)]
enum By {
    Layout { tv: Box<Layout>, load: bool },
    Copy(Box<TiledCopy>, Side),
    Operand(Box<TiledMma>, Operand),
}

impl Use {
    fn new(by: By) -> Self {
        Self {
            by,
            transposed: false,
            part: None,
            vector: 1,
        }
    }

    /// Stores by a thread-value layout, as of [`View::partition`].
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::Layout;
    ///
    /// // Each of 32 lanes stores four neighbours of a row, at once.
    /// Use::store(&Layout::parse("(32,4):(1,32)")?).vectors(4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn store(tv: &Layout) -> Self {
        let (tv, load) = (Box::new(*tv), false);
        Self::new(By::Layout { tv, load })
    }

    /// Loads by a thread-value layout, as of [`View::partition`].
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::Layout;
    ///
    /// Use::load(&Layout::parse("(32,4):(4,1)")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn load(tv: &Layout) -> Self {
        let (tv, load) = (Box::new(*tv), true);
        Self::new(By::Layout { tv, load })
    }

    /// The source of a tiled copy, as of [`View::partition_s`].
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
    ///
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// Use::source(&TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn source(copy: &TiledCopy) -> Self {
        Self::new(By::Copy(Box::new(*copy), Side::Source))
    }

    /// The target of a tiled copy, as of [`View::partition_d`].
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
    ///
    /// let atom = atoms::CP_ASYNC_16.recast(16)?;
    /// Use::target(&TiledCopy::from_tv(atom, Layout::parse("(8,8):(1,8)")?, IntTuple::parse("(8,8)")?)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn target(copy: &TiledCopy) -> Self {
        Self::new(By::Copy(Box::new(*copy), Side::Target))
    }

    /// Loads of an operand of a tiled mma, as of [`View::partition_a`], `partition_b` and `partition_c`.
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    ///
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// Use::operand(&mma, Operand::B).vectors(2).transposed();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn operand(mma: &TiledMma, operand: Operand) -> Self {
        Self::new(By::Operand(Box::new(*mma), operand))
    }

    /// The same, so many elements at once ([`Partition::vectors`](super::Partition::vectors)). A tiled copy has its atom's.
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::Layout;
    ///
    /// Use::load(&Layout::parse("(32,2):(2,1)")?).vectors(2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn vectors(self, elements: i64) -> Self {
        Self {
            vector: elements,
            ..self
        }
    }

    /// The same of the tile with its modes in reverse ([`View::transposed`]).
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::Layout;
    ///
    /// Use::load(&Layout::parse("(32,32):(32,1)")?).transposed();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            transposed: !self.transposed,
            ..self
        }
    }

    /// The same of a part of the tile at a time, in the order of modes that the threads see ([`View::tile`] of the shared tile).
    ///
    /// ```
    /// use layout_codegen::view::Use;
    /// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
    ///
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// // Each warp reads 16 rows.
    /// Use::source(&TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?).of([16, 64]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(self, part: [i64; 2]) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// The patterns of this use of a tile of `shape` elements of `bytes` bytes, those that are translations of each other once.
    fn patterns(
        &self,
        shape: [i64; 2],
        bytes: i64,
        all: &mut Vec<Pattern>,
    ) -> Result<(), ViewError> {
        let [rows, cols] = shape;
        let seen = if self.transposed { [cols, rows] } else { shape };
        let part = self.part.unwrap_or(seen);
        let (access, points) = self.points(part, bytes)?;
        let threads = points.get(0)?.size();
        let touches = points.get(1)?.size();
        for first in (0..threads).step_by(LANES) {
            for touch in 0..touches {
                let mut elements = [-1; LANES];
                for (lane, element) in (first..threads).zip(&mut elements) {
                    let at = points.at(&[lane, touch]);
                    let (row, col) = (at % part[0], at / part[0]);
                    let (row, col) = if self.transposed {
                        (col, row)
                    } else {
                        (row, col)
                    };
                    *element = row * cols + col;
                }
                let pattern = Pattern::from_elements(access, elements);
                if !all
                    .iter()
                    .any(|other| same_up_to_translation(&pattern, other, cols))
                {
                    all.push(pattern);
                }
            }
        }
        Ok(())
    }

    /// The access, and (thread, instruction) → the first element that it touches of the part.
    fn points(&self, part: [i64; 2], bytes: i64) -> Result<(Access, Layout), ViewError> {
        let (tv, load) = match &self.by {
            By::Layout { tv, load } => (**tv, *load),
            By::Operand(mma, operand) => (operand_tv(mma, *operand, &part)?, true),
            By::Copy(copy, side) => {
                let [threads, row, rest] = side_of(copy, *side, &part)?;
                let points = Layout::tuple(&[threads, rest])?;
                let moved = bytes * row.size();
                let access = match moves(&copy.atom())? {
                    Moves::Vectors(_) => plain(*side == Side::Source, moved),
                    Moves::Async(4) => Some(Access::CpAsync4),
                    Moves::Async(8) => Some(Access::CpAsync8),
                    Moves::Async(_) => Some(Access::CpAsync16),
                    Moves::Matrices { trans } => Some(Access::LdMatrix {
                        matrices: Matrices::X4,
                        trans,
                    }),
                };
                return Ok((access.ok_or_else(|| too_wide(row.size()))?, points));
            }
        };
        let access = plain(load, bytes * self.vector).ok_or_else(|| too_wide(self.vector))?;
        let values = tv.get(1)?;
        if values.size() % self.vector != 0 {
            return Err(too_wide(self.vector));
        }
        let firsts = Layout::mode(values.size() / self.vector, self.vector)?;
        let points = Layout::tuple(&[tv.get(0)?, values.compose(&firsts)?])?;
        Ok((access, points))
    }
}

fn too_wide(elements: i64) -> ViewError {
    ViewError::Vector {
        buffer: "a derived tile".to_owned(),
        elements,
        reason: "a use moves 1, 2, 4, 8 or 16 bytes at once, and all of a thread's values",
    }
}

/// A load or a store of so many bytes.
fn plain(load: bool, bytes: i64) -> Option<Access> {
    Some(match (bytes, load) {
        (1, true) => Access::Ld8,
        (2, true) => Access::Ld16,
        (4, true) => Access::Ld32,
        (8, true) => Access::Ld64,
        (16, true) => Access::Ld128,
        (1, false) => Access::St8,
        (2, false) => Access::St16,
        (4, false) => Access::St32,
        (8, false) => Access::St64,
        (16, false) => Access::St128,
        _ => return None,
    })
}

/// Whether one pattern is the other moved, by addition and by exclusive or: they cost the same in every layout that is looked at.
fn same_up_to_translation(a: &Pattern, b: &Pattern, cols: i64) -> bool {
    let place = |e: i64| (e / cols, e % cols);
    let (first_a, first_b) = (place(a.elements[0]), place(b.elements[0]));
    a.access == b.access
        && a.elements.iter().zip(&b.elements).all(|(&x, &y)| {
            let (p, q) = (place(x), place(y));
            (x < 0) == (y < 0)
                && (x < 0
                    || (p.0 - first_a.0 == q.0 - first_b.0
                        && p.1 - first_a.1 == q.1 - first_b.1
                        && p.0 ^ first_a.0 == q.0 ^ first_b.0
                        && p.1 ^ first_a.1 == q.1 ^ first_b.1))
        })
}

impl Kernel {
    /// A tile in shared memory of `shape` elements, whose layout is derived from its uses: of the layouts of the algebra, one with the fewest
    /// wavefronts over one access of each kind; row-major if no use is given. The kernel's comment carries the layout and its certificate; [`View::derivation`] has them.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_codegen::view::Use;
    /// use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(4,1,1):(1,0,0)")?)?;
    /// let read = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    /// let atom = atoms::CP_ASYNC_16.recast(16)?;
    /// let write = TiledCopy::new(atom, &Layout::parse("(16,8):(8,1)")?, &Layout::parse("(1,8):(0,1)")?)?;
    /// let uses = [Use::target(&write), Use::source(&read)];
    /// let tile = k.shared_for("a", Element::F16, [64, 64], &uses)?;
    /// let layout = tile.derivation().and_then(|d| d.layout).ok_or("not derived")?;
    /// assert_eq!(layout.to_string(), "Sw<3,3,3> o (64,64):(64,1)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Derive`] for uses that no layout fits; [`ViewError::Extent`], [`ViewError::Vector`], [`ViewError::Instruction`] and
    /// [`ViewError::Layout`] for a use that does not fit the tile; [`ViewError::SharedMemory`].
    #[track_caller]
    pub fn shared_for(
        &mut self,
        name: &str,
        element: Element,
        shape: [i64; 2],
        uses: &[Use],
    ) -> Result<View, ViewError> {
        self.at_line();
        self.checked_new_name("a shared buffer", name);
        self.staged_for(name, element, (shape, uses), None)
    }

    /// The same, once or for each stage of a ring.
    pub(crate) fn staged_for(
        &mut self,
        name: &str,
        element: Element,
        (shape, uses): ([i64; 2], &[Use]),
        stages: Option<i64>,
    ) -> Result<View, ViewError> {
        // A stage may have uses that nobody names; a tile that is to be derived from its uses needs some.
        if uses.is_empty() && stages.is_some() {
            for extent in shape {
                checked(format!("`{name}`"), extent)?;
            }
            let row_major = Layout::flat(&shape, &[shape[1], 1])?;
            return self.staged(name, element, &row_major.into(), (stages, LINE));
        }
        let derivation = derived(name, element, shape, uses)?;
        let Some(layout) = derivation.layout else {
            return Err(ViewError::Layout(LayoutError::Unsupported {
                operation: "a shared tile",
                given: "a general matrix over F2",
                accepted: "uses that a swizzle, permuted strides or padding fit",
            }));
        };
        let mut view = self.staged(name, element, &layout, (stages, LINE))?;
        let times = stages.map_or(String::new(), |n| format!(" (stages: {n})"));
        self.describe(format!(
            "{name}{times} = {layout}: {}",
            derivation.certificate
        ));
        view.derivation = Some(Arc::new(derivation));
        Ok(view)
    }
}

/// The layout of a tile for its uses, before there is a tile.
pub(super) fn derived(
    name: &str,
    element: Element,
    shape: [i64; 2],
    uses: &[Use],
) -> Result<Derivation, ViewError> {
    let [rows, cols] = shape;
    for extent in shape {
        checked(format!("`{name}`"), extent)?;
    }
    let bytes = element.bytes().into();
    let mut patterns = Vec::new();
    for using in uses {
        using.patterns(shape, bytes, &mut patterns)?;
    }
    let refuse = |error| ViewError::Derive {
        buffer: name.to_owned(),
        error,
    };
    derive_layout(Tile::new(rows, cols, bytes), &patterns).map_err(refuse)
}

impl View {
    /// How the layout of this tile was derived, if it was ([`Kernel::shared_for`]): the wavefronts of each kind of access, and the proof that
    /// no layout has fewer.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_codegen::view::Use;
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let uses = [Use::load(&Layout::parse("(32,32):(1,32)")?)];
    /// let tile = k.shared_for("tile", Element::F32, [32, 32], &uses)?;
    /// let derived = tile.derivation().ok_or("not derived")?;
    /// assert_eq!((derived.wavefronts(), derived.certificate.ideal), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn derivation(&self) -> Option<&Derivation> {
        self.derivation.as_deref()
    }
}
