//! The stages of a ring over TMA: their number, their lag, and the schedule of their consumers.

/// The stages of a ring over TMA ([`Kernel::tma_ring`](crate::ir::Kernel::tma_ring)).
///
/// ```
/// use layout_codegen::pipeline::Stages;
///
/// // Four stages. The MMAs of one stage are in flight while those of the next are issued.
/// let stages = Stages::new(4).lag(1);
/// # let _ = stages;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stages {
    pub(super) count: i64,
    pub(super) lag: i64,
    pub(super) roles: u32,
    pub(super) per_block: bool,
}

impl Stages {
    /// `count` stages. A consumer releases each stage in the iteration that reads it.
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
            roles: 1,
            per_block: false,
        }
    }

    /// The consumers release a stage `steps` iterations after the one that reads it. The MMAs of `steps` iterations stay in flight while the next are issued, so the tensor
    /// cores do not wait. The lag is less than the number of stages.
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

    /// A ping-pong schedule of `roles` consumer roles ([`Kernel::ping_pong`](crate::ir::Kernel::ping_pong)): one role multiplies its tile while another stores.
    ///
    /// ```
    /// use layout_codegen::pipeline::Stages;
    ///
    /// Stages::new(4).lag(1).ping_pong(2);
    /// ```
    #[must_use]
    pub fn ping_pong(self, roles: u32) -> Self {
        Self { roles, ..self }
    }

    /// In a [cluster](crate::ir::Kernel::clusters), each block fills its own stages and releases them to itself alone. Without, blocks may copy to each other's stages
    /// ([`Kernel::tma_multicast`](crate::ir::Kernel::tma_multicast)), and every block releases a stage to all of them, by arrivals that order no reads of threads: stages that threads read
    /// into registers belong to a ring per block.
    ///
    /// ```
    /// use layout_codegen::pipeline::Stages;
    ///
    /// Stages::new(4).per_block();
    /// ```
    #[must_use]
    pub fn per_block(self) -> Self {
        Self {
            per_block: true,
            ..self
        }
    }
}
