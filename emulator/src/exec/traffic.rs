//! What accesses move: bytes by memory, and the sectors of 32 bytes that a global access touches against the fewest that could hold its data.
//!
//! Counted only if [`crate::Options::profile`] asks. Example: 32 lanes that load consecutive 4-byte words from a multiple of 32 touch 4 sectors, the
//! fewest; with a stride of 128 bytes 32.

use super::Env;
use super::alu::Row64;
use super::mem::lanes_of;
use crate::report::Traffic;

/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Counts a global access of `bytes` a lane.
#[inline(always)]
pub(super) fn global(env: &mut Env, pc: usize, at: &Row64, bytes: u32, active: u32) {
    if !env.traffic.is_empty() {
        sectors(env, pc, at, u64::from(bytes), active);
    }
}

#[inline(never)]
fn sectors(env: &mut Env, pc: usize, at: &Row64, bytes: u64, active: u32) {
    // At most 32 bytes a lane, so two sectors each.
    let mut touched = [0u64; 64];
    let mut n = 0;
    for l in lanes_of(active) {
        for sector in [at[l] / SECTOR, (at[l].wrapping_add(bytes - 1)) / SECTOR] {
            touched[n] = sector;
            n += 1;
        }
    }
    let touched = &mut touched[..n];
    touched.sort_unstable();
    let changes = touched.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let Some(t) = env.traffic.get_mut(pc) else {
        return;
    };
    let all = bytes * u64::from(active.count_ones());
    t.requests += 1;
    t.sectors += changes as u64 + u64::from(n > 0);
    t.ideal_sectors += all.div_ceil(SECTOR);
    t.global_bytes += all;
}

/// Counts what instruction `pc` moves otherwise.
#[inline(always)]
pub(super) fn count(env: &mut Env, pc: usize, moves: impl FnOnce(&mut Traffic)) {
    if let Some(t) = env.traffic.get_mut(pc) {
        moves(t);
    }
}
