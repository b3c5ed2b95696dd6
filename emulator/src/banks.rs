//! Wavefronts of a shared-memory access on `sm_75` to `sm_90`, as measured on an H200.
//!
//! Shared memory has 32 banks of 4 bytes. A warp access is split into phases of consecutive lanes: 32 lanes for accesses of up to 4
//! bytes, 16 for 8 bytes, 8 for 16 bytes. A phase takes as many wavefronts as the busiest bank has distinct words to give;
//! the same word is given to all who ask at once. Inactive lanes ask nothing. *Pair rule*, loads of 8 and 16 bytes only: if all
//! lanes l and l⊕1 (both active) have equal addresses, or all l and l⊕2, two phases become one. `ldmatrix` and `stmatrix` take one phase a
//! matrix of eight 16-byte rows.
//!
//! Since an aligned access of 2^n words occupies 2^n neighbouring banks, words need not be counted one by one: a phase of 16-byte
//! accesses is a problem of 8 banks with 16-byte entries. Example: lanes 0 to 7 at byte addresses 0, 128, …, 896 with 16 bytes
//! each all use the first of these, 8 wavefronts.
//!
//! This is written independently of `layout-core`'s bank model, so that each checks the other.

/// What kind of access it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedAccess {
    /// A load of `bytes` (1, 2, 4, 8 or 16) by each active lane.
    Load {
        /// Bytes a lane.
        bytes: u32,
    },
    /// A store of `bytes` by each active lane; atomics count as stores.
    Store {
        /// Bytes a lane.
        bytes: u32,
    },
    /// `ldmatrix` or `stmatrix` of `matrices` (1, 2 or 4): lanes 8j to 8j+7 give the row addresses of matrix j.
    Matrix {
        /// Matrices.
        matrices: u32,
    },
}

/// The cost of one access of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wavefronts {
    /// Wavefronts taken.
    pub taken: u32,
    /// Phases with an active lane (after the pair rule): what the access would take without conflicts.
    pub ideal: u32,
}

/// Wavefronts of one warp access: `addresses` in bytes, for the lanes in `mask` (bit l for lane l).
///
/// Addresses must be aligned to the access, as the hardware demands.
pub fn wavefronts(access: SharedAccess, addresses: &[u32; 32], mask: u32) -> Wavefronts {
    let (bytes, mut lanes, paired) = match access {
        SharedAccess::Load { bytes } => (bytes, phase_lanes(bytes), bytes >= 8),
        SharedAccess::Store { bytes } => (bytes, phase_lanes(bytes), false),
        SharedAccess::Matrix { .. } => (16, 8, false),
    };
    let mask = match access {
        SharedAccess::Matrix { matrices: 1 } => mask & 0xff,
        SharedAccess::Matrix { matrices: 2 } => mask & 0xffff,
        _ => mask,
    };
    if paired && (pairs_agree(addresses, mask, 1) || pairs_agree(addresses, mask, 2)) {
        lanes *= 2;
    }
    let mut out = Wavefronts::default();
    let phase_mask = if lanes == 32 {
        u32::MAX
    } else {
        (1u32 << lanes) - 1
    };
    let mut first = 0;
    while first < 32 {
        let active = (mask >> first) & phase_mask;
        if active != 0 {
            out.taken += phase(addresses, first, active, bytes);
            out.ideal += 1;
        }
        first += lanes;
    }
    out
}

fn phase_lanes(bytes: u32) -> usize {
    match bytes {
        16 => 8,
        8 => 16,
        _ => 32,
    }
}

/// Whether lanes l and l⊕`bit` have equal addresses wherever both are active.
fn pairs_agree(addresses: &[u32; 32], mask: u32, bit: usize) -> bool {
    (0..32).all(|l| {
        let other = l ^ bit;
        (mask >> l) & 1 == 0 || (mask >> other) & 1 == 0 || addresses[l] == addresses[other]
    })
}

/// Wavefronts of one phase: lanes `first + i` for the bits i of `active`.
fn phase(addresses: &[u32; 32], first: usize, active: u32, bytes: u32) -> u32 {
    let shift = match bytes {
        16 => 4,
        8 => 3,
        _ => 2,
    };
    let banks = 128u32 >> shift;
    // One list per bank of the entries asked for; `next` chains lanes of one bank.
    let mut head = [u8::MAX; 32];
    let mut next = [u8::MAX; 32];
    let mut count = [0u32; 32];
    let mut worst = 0;
    let mut rest = active;
    while rest != 0 {
        let lane = first + rest.trailing_zeros() as usize;
        rest &= rest - 1;
        let entry = addresses[lane] >> shift;
        let bank = (entry & (banks - 1)) as usize;
        let mut at = head[bank];
        while at != u8::MAX && addresses[usize::from(at)] >> shift != entry {
            at = next[usize::from(at)];
        }
        if at == u8::MAX {
            next[lane] = head[bank];
            head[bank] = lane as u8;
            count[bank] += 1;
            worst = worst.max(count[bank]);
        }
    }
    worst
}
