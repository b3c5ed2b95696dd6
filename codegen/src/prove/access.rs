//! What one shared access costs.

use layout_core::banks::Access;

/// The cost of one shared access, for every warp that makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessProof {
    /// Its name: instructions in the emitted text carry it as a tag.
    pub access: String,
    /// The kind of access.
    pub op: Access,
    /// Wavefronts of each execution with all lanes active.
    pub wavefronts: u32,
    /// Wavefronts if its words were spread evenly over the banks.
    pub ideal: u32,
}
