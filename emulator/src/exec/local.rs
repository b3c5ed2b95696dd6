//! Local memory: the private bytes of a lane, in which the frames of its functions lie.

use super::alu::Row64;
use super::mem::{extended, get_lane, lanes_of, set_lane};
use super::traffic;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Access, NONE};
use crate::report::FindingKind;
use crate::types::File;

/// Little-endian value of up to 8 bytes.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .enumerate()
        .fold(0, |v, (i, b)| v | u64::from(*b) << (8 * i))
}

/// The `N` bytes at `start`, if they are there.
#[inline(always)]
pub(super) fn chunk<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// Sets the `N` bytes at `start`, if they are there.
#[inline(always)]
pub(super) fn set_chunk<const N: usize>(bytes: &mut [u8], start: usize, value: [u8; N]) {
    let place = bytes.get_mut(start..).and_then(|s| s.first_chunk_mut());
    if let Some(place) = place {
        *place = value;
    }
}

impl Warp {
    /// The `bytes` at `offset` of the local memory of `lane`, or `None` outside it.
    pub(crate) fn local_load(&self, lane: usize, offset: u64, bytes: u32) -> Option<u64> {
        self.local_range(lane, offset, bytes)
            .map(|r| little(&self.local[r]))
    }

    /// Stores to local memory; false outside it.
    pub(crate) fn local_store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) -> bool {
        let Some(range) = self.local_range(lane, offset, bytes) else {
            return false;
        };
        let n = range.len();
        self.local[range].copy_from_slice(&value.to_le_bytes()[..n]);
        true
    }

    fn local_range(&self, lane: usize, offset: u64, bytes: u32) -> Option<std::ops::Range<usize>> {
        let size = self.local.len() / 32;
        let end = offset.checked_add(u64::from(bytes))?;
        if end > u64::from(self.frames[lane & 31].1) {
            return None;
        }
        let start = lane * size + offset as usize;
        Some(start..start + bytes as usize)
    }

    /// Makes each lane's local memory at least `bytes` large.
    pub(crate) fn reserve_local(&mut self, bytes: u32) {
        let old = self.local.len() / 32;
        if bytes as usize <= old {
            return;
        }
        // Not a power of two: the same place of all lanes would be in one set of the cache.
        let new = (bytes as usize).next_power_of_two() + 64;
        let mut grown = vec![0; new * 32];
        if old > 0 {
            for (to, from) in grown.chunks_mut(new).zip(self.local.chunks(old)) {
                to[..old].copy_from_slice(from);
            }
        }
        self.local = grown;
    }
}

/// A load or store of the active lanes at the local addresses `at`.
#[allow(clippy::too_many_arguments)] // an access is that much
#[inline(never)]
pub(super) fn local(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
    store: bool,
) {
    let moved = u64::from(u32::from(a.bytes) * u32::from(a.count) * active.count_ones());
    traffic::count(env, pc, |t| t.local_bytes += moved);
    let done = match a.bytes {
        1 => moves::<1>(w, a, at, active, store),
        2 => moves::<2>(w, a, at, active, store),
        4 => moves::<4>(w, a, at, active, store),
        8 => moves::<8>(w, a, at, active, store),
        _ => None,
    };
    if done.is_none() {
        careful(cx, env, w, pc, a, at, active, store);
    }
}

/// Moves elements of `N` bytes. `None` if some lane's access is misaligned or outside its frames; what has been moved until then is right, and moved
/// again by [`careful`].
#[inline(always)]
fn moves<const N: usize>(
    w: &mut Warp,
    a: &Access,
    at: &Row64,
    active: u32,
    store: bool,
) -> Option<()> {
    let total = N as u32 * u32::from(a.count);
    let bits = total.trailing_zeros();
    let (size, frames) = (w.local.len() / 32, &w.frames);
    let start = |l: usize| {
        // The number of the vector from the start of local memory: rotated, a misaligned address is beyond any frame.
        let number = at[l].rotate_right(bits);
        let fine = number < u64::from(frames[l].1 >> bits);
        fine.then(|| l * size + at[l] as usize)
    };
    let local = &mut w.local;
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        let (row, step) = (reg.row as usize, e * N);
        match (reg.file, store) {
            _ if reg.row == NONE => return None,
            (File::R64, false) => {
                let row = &mut w.r64[row];
                for l in lanes_of(active) {
                    let value = little(&chunk::<N>(local, start(l)? + step)?);
                    row[l] = extended(value, N as u32, a.signed);
                }
            }
            (_, false) => {
                let row = &mut w.r32[row];
                for l in lanes_of(active) {
                    let value = little(&chunk::<N>(local, start(l)? + step)?);
                    row[l] = extended(value, N as u32, a.signed) as u32;
                }
            }
            (File::R64, true) => {
                let row = &w.r64[row];
                for l in lanes_of(active) {
                    let bytes = chunk::<N>(&row[l].to_le_bytes(), 0)?;
                    set_chunk(local, start(l)? + step, bytes);
                }
            }
            (_, true) => {
                let row = &w.r32[row];
                for l in lanes_of(active) {
                    let bytes = chunk::<N>(&u64::from(row[l]).to_le_bytes(), 0)?;
                    set_chunk(local, start(l)? + step, bytes);
                }
            }
        }
    }
    Some(())
}

/// The same lane by lane, with a finding for each that is wrong.
#[allow(clippy::too_many_arguments)] // an access is that much
#[cold]
#[inline(never)]
fn careful(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
    store: bool,
) {
    let bytes = u32::from(a.bytes);
    let total = bytes * u32::from(a.count);
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        if !at[l].is_multiple_of(u64::from(total)) {
            let x = at[l];
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!("lane {l} accesses {total} bytes at local address {x:#x}")
            });
            continue;
        }
        for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
            let offset = at[l].wrapping_add(u64::from(e as u32 * bytes));
            let fine = if store {
                let value = get_lane(w, *reg, l);
                w.local_store(l, offset, bytes, value)
            } else {
                let value = w.local_load(l, offset, bytes);
                set_lane(w, *reg, l, value.unwrap_or(0), bytes, a.signed);
                value.is_some()
            };
            if !fine {
                let size = w.frames[l].1;
                env.report(cx, FindingKind::OutOfBounds, site, &|| {
                    format!("lane {l} accesses {bytes} bytes at byte {offset} of its {size} bytes of local memory")
                });
            }
        }
    }
}
