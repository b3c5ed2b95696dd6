//! What one shared access costs.

use layout_core::banks::Access;

/// The cost of one shared access, for every warp that makes it.
///
/// ```
/// use layout_codegen::prove::AccessProof;
///
/// let access = AccessProof { access: "read tile".to_owned(), op: layout_core::banks::Access::Ld32, wavefronts: 2, ideal: 1, exact: true };
/// assert!(access.wavefronts > access.ideal); // bank conflicts
/// ```
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
    /// Each execution has so many; else at most so many, since the addresses come from data or the access is an atomic operation.
    pub exact: bool,
}
