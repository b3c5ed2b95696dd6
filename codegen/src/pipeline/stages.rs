//! How many stages a ring over TMA has, and how they are given back.

/// The stages of a ring over TMA ([`Kernel::tma_ring`](crate::ir::Kernel::tma_ring)).
///
/// ```
/// use layout_codegen::pipeline::Stages;
///
/// // Four, of which products of one may be in flight while those of the next are issued.
/// let stages = Stages::new(4).lag(1);
/// # let _ = stages;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stages {
    pub(super) count: i64,
    pub(super) lag: i64,
    pub(super) turns: u32,
}

impl Stages {
    /// So many stages, each given back in the step that read it.
    ///
    /// ```
    /// use layout_codegen::pipeline::Stages;
    ///
    /// Stages::new(4);
    /// ```
    pub fn new(count: i64) -> Self {
        Self {
            count,
            lag: 0,
            turns: 1,
        }
    }

    /// The stages given back so many steps later: that many groups of products are in flight while the next ones are issued, so that the tensor cores always have
    /// work. It is less than the number of stages.
    ///
    /// ```
    /// use layout_codegen::pipeline::Stages;
    ///
    /// Stages::new(4).lag(1);
    /// ```
    #[must_use]
    pub fn lag(self, steps: i64) -> Self {
        Self { lag: steps, ..self }
    }

    /// The stages read by so many roles in turns ([`Kernel::in_turn`](crate::ir::Kernel::in_turn)): each reads the stages of a tile, and stores it while the next role reads.
    ///
    /// ```
    /// use layout_codegen::pipeline::Stages;
    ///
    /// Stages::new(4).lag(1).in_turns(2);
    /// ```
    #[must_use]
    pub fn in_turns(self, roles: u32) -> Self {
        Self {
            turns: roles,
            ..self
        }
    }
}
