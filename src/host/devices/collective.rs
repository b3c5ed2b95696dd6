//! Collective operations on the memory of devices: runs of bytes, and sums of elements.

#[cfg(feature = "gpu")]
use tilewright_gpu::{GpuError, Stream, nccl::Nccl};
use tilewright_kernels::devices::{Action, Collective, CollectiveKind, DevicesError, Program};

use super::DevicesRunError;
use super::storage::Storage;
#[cfg(feature = "gpu")]
use crate::host::bench::gpu_type;

/// Checks that what collectives move are runs of bytes of equal length.
pub(super) fn possible(program: &Program, storage: &[Storage]) -> Result<(), DevicesRunError> {
    for op in &program.ops {
        let Action::Collective(part) = &op.action else {
            continue;
        };
        if runs(part, storage).is_none() {
            let reason = format!(
                "{op}: the devices' blocks are not runs of whole rows as they are stored; copy them one by one"
            );
            return Err(DevicesError::Unsupported { reason }.into());
        }
    }
    Ok(())
}

/// Where what a device gives and what it gets begin, and the bytes of one device's part.
pub(super) fn runs(part: &Collective, storage: &[Storage]) -> Option<([usize; 2], usize)> {
    let (from, to) = (&storage[part.from.buffer], &storage[part.to.buffer]);
    let (gives, given) = from.run(&part.from.block)?;
    let (gets, got) = to.run(&part.to.block)?;
    let bytes = match part.kind {
        CollectiveKind::AllGather => given,
        CollectiveKind::ReduceScatter => got,
    };
    // Both are cut from the same rows: then their pitches are equal too.
    from.has_whole_rows(&part.to.block)
        .then_some(([gives, gets], bytes))
}

/// Enqueues a device's part of a proven program's collective, by NCCL, as rank `rank` of this process. `address` gives that of a buffer.
///
/// # Safety
///
/// The buffers live until the collective has run on `stream`; no other thread uses the rank at the same time.
#[cfg(feature = "gpu")]
pub(super) unsafe fn enqueue(
    part: &Collective,
    storage: &[Storage],
    address: impl Fn(usize) -> u64,
    (nccl, rank): (&Nccl, usize),
    stream: &Stream,
) -> Result<(), GpuError> {
    let element = storage[part.to.buffer].element;
    let invalid = || GpuError::Invalid {
        what: format!("NCCL has no {} of {element} in these blocks", part.kind),
    };
    let ([from, to], bytes) = runs(part, storage).ok_or_else(invalid)?;
    let ends = (
        address(part.from.buffer) + from as u64,
        address(part.to.buffer) + to as u64,
    );
    match part.kind {
        // SAFETY: both runs lie in the buffers, as `runs` says; the caller's promise.
        CollectiveKind::AllGather => unsafe { nccl.all_gather(rank, ends, bytes, stream) },
        CollectiveKind::ReduceScatter => {
            let (ty, size) = (gpu_type(element).ok_or_else(invalid)?, element.bytes());
            // SAFETY: as above.
            unsafe { nccl.reduce_scatter(rank, ends, bytes / size as usize, ty, stream) }
        }
    }
}
