//! Addresses of shared memory taken apart: which block of the cluster they lie in, and where.
//!
//! An instruction of `.shared::cluster`, or one with generic addresses, reaches the memory of all blocks ([`crate::windows`]), one of `.shared::cta` only that of the
//! executing block; on an H100 the address of another block is an illegal instruction there. Example: `ld.shared::cta` of `0x0201_0010` by block 1 of a cluster of
//! four is reported as an access to byte 16 of the shared memory of block 2.

use super::Env;
use super::compare::mask_of;
use crate::ast::Space;
use crate::windows::{RANK_SHIFT, SHARED_BASE, SHARED_WINDOW, WINDOW, shared_start};

/// The bits of an address below the rank.
const WITHIN: u64 = (1 << RANK_SHIFT) - 1;

impl Env {
    /// The block and the byte in its shared memory that `address` of `space` names, if `bytes` bytes are there.
    pub(crate) fn place(&self, space: Space, address: u64, bytes: u32) -> Option<(usize, u32)> {
        let window = if space == Space::Generic {
            SHARED_WINDOW
        } else {
            0
        };
        let x = address.wrapping_sub(window);
        let rank = (x >> RANK_SHIFT) as usize;
        let within_reach = match space {
            Space::Cluster | Space::Generic => rank < self.blocks,
            _ => rank == self.rank,
        };
        let offset = (x & WITHIN).checked_sub(u64::from(SHARED_BASE))?;
        let size = u64::from(self.shared.size);
        let inside = x < WINDOW && within_reach && offset + u64::from(bytes) <= size;
        inside.then_some((rank, offset as u32))
    }

    /// Address of byte 0 of the block's shared memory.
    #[inline(always)]
    pub(crate) fn start(&self) -> u32 {
        shared_start(self.rank)
    }

    /// Byte `offset` of the shared memory of block `rank`, for a message.
    pub(crate) fn byte(&self, rank: usize, offset: u32) -> String {
        if rank == self.rank {
            format!("shared byte {offset}")
        } else {
            format!("shared byte {offset} of block {rank} of the cluster")
        }
    }

    /// What lies at `address`, which an instruction of `space` cannot access, for a message.
    pub(crate) fn describe(&self, space: Space, address: u64) -> String {
        let x = match space {
            Space::Generic => address.wrapping_sub(SHARED_WINDOW),
            _ => address,
        };
        if x >= WINDOW {
            return format!("address {address:#x}, which is outside shared memory");
        }
        let (size, own, blocks) = (self.shared.size, self.rank, self.blocks);
        let rank = (x >> RANK_SHIFT) as usize;
        if rank == own || blocks == 1 {
            let byte = (x as u32).wrapping_sub(self.start()) as i32;
            return format!("byte {byte} of the block's {size} bytes of shared memory");
        }
        if rank >= blocks {
            return format!("{address:#x}, an address of block {rank} of a cluster of {blocks}");
        }
        let byte = (x & WITHIN) as i64 - i64::from(SHARED_BASE);
        let reach = if space == Space::Shared {
            format!(
                ", and .shared::cta reaches only that of the executing block, {own}: use .shared::cluster for another block, or an address of the own one"
            )
        } else {
            String::new()
        };
        format!(
            "byte {byte} of the {size} bytes of shared memory of block {rank} of the cluster{reach}"
        )
    }
}

/// `mapa` of `address`, a generic one or one of `.shared::cluster`.
pub(crate) fn map(address: u64, generic: bool, rank: u32) -> u64 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    let within = address.wrapping_sub(window) & WITHIN;
    window + within + (u64::from(rank) << RANK_SHIFT)
}

/// The rank in `address`.
pub(crate) fn rank_of(address: u64, generic: bool) -> u32 {
    let window = if generic { SHARED_WINDOW } else { 0 };
    (address.wrapping_sub(window) >> RANK_SHIFT) as u32 & 0xff
}

/// Lanes of `lanes` by the block whose shared memory they address.
#[inline(always)]
pub(crate) fn by_rank(
    at: &[u64; 32],
    lanes: u32,
    window: u64,
) -> impl Iterator<Item = (usize, u32)> {
    let mut rest = lanes;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let field = |l: usize| at[l].wrapping_sub(window) >> RANK_SHIFT;
        let first = field(rest.trailing_zeros() as usize & 31);
        let same = rest & mask_of(|l| field(l) == first);
        rest &= !same;
        Some((usize::try_from(first).unwrap_or(usize::MAX), same))
    })
}
