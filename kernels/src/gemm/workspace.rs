//! Device memory that the launches of one product pass data through: packed operands and partial sums, one after the other.

use super::{Limit, ProblemError};

/// Where a buffer of the workspace may start.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// Bytes of a workspace at most: what a GPU can address.
const WORKSPACE_LIMIT: u64 = 1 << 47;

/// Buffers of the workspace, one after the other.
#[derive(Default)]
pub(crate) struct Workspace(pub(crate) u64);

impl Workspace {
    /// A buffer whose number of elements is the product of `counts`, of `bytes` bytes each; returns its offset.
    pub(crate) fn place(&mut self, counts: [u64; 3], bytes: u32) -> Result<u64, ProblemError> {
        let at = self.0;
        let elements = counts.map(u128::from).iter().product::<u128>();
        let end = u128::from(at) + elements.saturating_mul(bytes.into());
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        Limit::Address.at_most("the workspace", end, WORKSPACE_LIMIT)?;
        self.0 = end.next_multiple_of(WORKSPACE_ALIGNMENT);
        Ok(at)
    }
}
