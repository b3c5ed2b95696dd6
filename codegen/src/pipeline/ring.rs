//! A ring: stages of shared memory, each with the tiles of one step, and what fills them.

use std::fmt;

use crate::index::Expr;
use crate::ir::{Element, Kernel, RingHandle};
use crate::view::{Use, View, ViewError};

/// Stages of a ring at most.
pub(super) const MOST_STAGES: i64 = 16;

/// A tile that each stage of a ring has: its name, its element, its shape, and the uses that its layout is derived from, as of
/// [`Kernel::shared_for`]. Without uses it is row-major.
///
/// ```
/// use layout_codegen::ir::Element;
/// use layout_codegen::pipeline::Staged;
/// use layout_codegen::view::Use;
/// use layout_core::Layout;
///
/// let uses = [Use::load(&Layout::parse("(32,32):(1,32)")?)];
/// let tile = Staged::new("tile", Element::F32, [32, 32], &uses);
/// # let _ = tile;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Staged<'u> {
    pub(super) name: &'u str,
    pub(super) element: Element,
    pub(super) shape: [i64; 2],
    pub(super) uses: &'u [Use],
}

impl<'u> Staged<'u> {
    /// A tile of `shape` elements.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    /// use layout_codegen::pipeline::Staged;
    ///
    /// Staged::new("tile", Element::F16, [64, 32], &[]);
    /// ```
    pub fn new(name: &'u str, element: Element, shape: [i64; 2], uses: &'u [Use]) -> Self {
        Self {
            name,
            element,
            shape,
            uses,
        }
    }
}

/// What copies a step's tiles to a stage: of the kernel, the stage's tiles, and the number of the step.
type Filler<'f, const N: usize> =
    Box<dyn Fn(&mut Kernel, [View; N], Expr) -> Result<(), ViewError> + 'f>;

/// Stages of shared memory with `N` tiles each, and what fills them.
///
/// ```
/// use layout_codegen::ir::{Element, Kernel};
/// use layout_codegen::pipeline::Staged;
/// use layout_core::{IntTuple, Layout, TiledCopy, atoms};
///
/// let mut k = Kernel::new("k", 128);
/// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
/// let x = k.input("x", Element::F32, &[rows, cols]);
/// let copy = TiledCopy::new(
///     atoms::CP_ASYNC_16.recast(32)?,
///     &Layout::parse("(16,8):(8,1)")?,
///     &Layout::parse("(1,4):(0,1)")?,
/// )?;
/// let (thread, zero) = (k.thread(), k.constant(0));
/// let ring = k.ring(3, [Staged::new("tile", Element::F32, [16, 32], &[])], |k, [to], step| {
///     let from = x.tile(k, &[16, 32], &[zero, step])?.partition_s(k, &copy, thread)?;
///     let to = to.partition_d(k, &copy, thread)?;
///     k.copy(&from, &to)
/// })?;
/// assert_eq!(ring.stages(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ring<'f, const N: usize> {
    pub(super) stages: i64,
    pub(super) tiles: [View; N],
    pub(super) transport: Transport<'f, N>,
}

/// How tiles come to the stages of a ring.
pub(super) enum Transport<'f, const N: usize> {
    /// By copies of all threads, which this function issues.
    Copies(Filler<'f, N>),
    /// By TMA: one role fills the stages, others read them ([`Kernel::tma_ring`]).
    Tma(RingHandle),
}

impl<const N: usize> fmt::Debug for Ring<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = &self.stages;
        f.debug_struct("Ring")
            .field("stages", stages)
            .field("tiles", &self.tiles)
            .finish_non_exhaustive()
    }
}

impl<const N: usize> Ring<'_, N> {
    /// How many stages it has.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::Staged;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let ring = k.ring(2, [Staged::new("x", Element::F32, [8, 32], &[])], |_, _, _| Ok(()))?;
    /// assert_eq!(ring.stages(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stages(&self) -> i64 {
        self.stages
    }

    /// The tiles of the stage that holds those of a step.
    pub(super) fn tiles(&self, k: &mut Kernel, stage: i64, step: Expr) -> [View; N] {
        let stage = k.pool.constant(stage);
        self.tiles.each_ref().map(|t| t.stage(stage, step, None))
    }

    /// What it is called in a message.
    pub(super) fn names(&self, k: &Kernel) -> String {
        let names: Vec<_> = self.tiles.iter().map(|t| t.name(k)).collect();
        names.join(", ")
    }
}

/// A ring, whatever tiles its stages have: what [`Kernel::pipeline`] takes a list of.
///
/// ```
/// use layout_codegen::ir::{Element, Kernel};
/// use layout_codegen::pipeline::{AnyRing, Staged};
///
/// let mut k = Kernel::new("k", 32);
/// let one = k.ring(2, [Staged::new("x", Element::F32, [8, 32], &[])], |_, _, _| Ok(()))?;
/// let tiles = ["y", "z"].map(|name| Staged::new(name, Element::F32, [8, 32], &[]));
/// let two = k.ring(3, tiles, |_, _, _| Ok(()))?;
/// let rings: [&dyn AnyRing; 2] = [&one, &two];
/// # let _ = rings;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AnyRing: sealed::Stages {}

impl<const N: usize> AnyRing for Ring<'_, N> {}

pub(super) mod sealed {
    use super::{Expr, Kernel, Ring, Transport, View, ViewError};

    /// What a pipeline does with a ring, whatever its tiles are.
    ///
    /// ```
    /// use layout_codegen::pipeline::AnyRing;
    ///
    /// // Only rings are rings.
    /// fn rings(all: &[&dyn AnyRing]) -> usize {
    ///     all.len()
    /// }
    /// assert_eq!(rings(&[]), 0);
    /// ```
    pub trait Stages {
        fn count(&self) -> i64;

        /// What no other ring has.
        fn identity(&self) -> Option<usize>;

        /// The names of its tiles.
        fn name(&self, k: &Kernel) -> String;

        /// Copies a step's tiles to a stage.
        fn fill(&self, k: &mut Kernel, stage: i64, step: Expr) -> Result<(), ViewError>;
    }

    impl<const N: usize> Stages for Ring<'_, N> {
        fn count(&self) -> i64 {
            self.stages
        }

        fn identity(&self) -> Option<usize> {
            self.tiles.first().map(View::number)
        }

        fn name(&self, k: &Kernel) -> String {
            self.names(k)
        }

        fn fill(&self, k: &mut Kernel, stage: i64, step: Expr) -> Result<(), ViewError> {
            let to = self.tiles(k, stage, step);
            match &self.transport {
                Transport::Copies(fill) => fill(k, to, step),
                Transport::Tma(_) => Err(ViewError::Pipeline {
                    given: format!("the ring over TMA `{}`", self.names(k)),
                    accepted: "one role fills it (`Kernel::produce`) and others read it (`Kernel::consume`)".to_owned(),
                }),
            }
        }
    }
}

impl Kernel {
    /// A ring of `stages` stages in shared memory, each with the tiles `tiles`. `fill` copies the tiles of a step to a stage, by `cp.async` or by loads
    /// and stores; it does not wait.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::Staged;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = Staged::new("x", Element::F32, [64, 64], &[]);
    /// let ring = k.ring(4, [tile], |_, _, _| Ok(()))?;
    /// assert_eq!(ring.stages(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for a number of stages that is not 1 to 16; else as [`Kernel::shared_for`].
    #[track_caller]
    pub fn ring<'f, const N: usize>(
        &mut self,
        stages: i64,
        tiles: [Staged<'_>; N],
        fill: impl Fn(&mut Self, [View; N], Expr) -> Result<(), ViewError> + 'f,
    ) -> Result<Ring<'f, N>, ViewError> {
        self.at_line();
        if !(1..=MOST_STAGES).contains(&stages) {
            return Err(ViewError::Pipeline {
                given: format!("a ring of {stages} stages"),
                accepted: format!("a ring has 1 to {MOST_STAGES}"),
            });
        }
        let mut views = Vec::new();
        for t in tiles {
            self.checked_new_name("a tile of a ring", t.name);
            views.push(self.staged_for(t.name, t.element, (t.shape, t.uses), Some(stages))?);
        }
        let refuse = |_| ViewError::Pipeline {
            given: "a ring without tiles".to_owned(),
            accepted: "each stage has at least one tile".to_owned(),
        };
        Ok(Ring {
            stages,
            tiles: <[View; N]>::try_from(views).map_err(refuse)?,
            transport: Transport::Copies(Box::new(fill)),
        })
    }
}
