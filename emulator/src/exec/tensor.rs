//! Tensor copies (PTX ISA, sections 5.5 and 9.7.9.25.5): a box of an array between global and shared memory.
//!
//! The box becomes pieces ([`boxes`](super::boxes)): rows of the innermost dimension, cut where they leave the array and, with a swizzle, at every 16 bytes. Rows lie one
//! behind the other in shared memory, as long as the box is wide, or as long as the swizzle. The mbarrier gets the bytes of the whole box,
//! those outside the array included.
//!
//! Example: a box of 64 × 8 halves at (0, 0) with the 128-byte swizzle: 16 bytes at (8, 1) go to byte 128 + (16 xor 16) = 128.

use super::boxes::{self, Clip, pieces, pixel_rows, tile_rows};
use super::bulk::{read_global, shared_side, spread};
use super::bulk_groups::{Store, begin_store};
use super::cluster::units;
use super::lanes::whole_warp;
use super::map_fences::MissingFence;
use super::mem::{addresses, get_lane, lanes_of};
use super::smem::report_conflict;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::float::flush32;
use crate::ir::{Address, AtomOp, NONE, Reduction, TensorCopy, TensormapReplace};
use crate::report::FindingKind;
use crate::shared::Who;
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorElement, TensorMap};
use crate::windows::{PARAM_WINDOW, SHARED_WINDOW, WINDOW};

/// The bytes of the tensor map at `address`.
fn map_bytes(cx: &Context<'_>, address: u64) -> Option<Vec<u8>> {
    let within = address.wrapping_sub(PARAM_WINDOW);
    if within < WINDOW {
        let at = usize::try_from(within).ok()?;
        return cx.params.get(at..at + TENSOR_MAP_BYTES).map(<[u8]>::to_vec);
    }
    let mut hint = 0;
    let alloc = cx.memory.locate(address, &mut hint)?;
    let offset = address - alloc.base;
    if alloc.len - offset < TENSOR_MAP_BYTES as u64 {
        return None;
    }
    let words = (0..TENSOR_MAP_BYTES as u64 / 4).map(|k| alloc.word(offset + 4 * k));
    Some(words.flat_map(u32::to_le_bytes).collect())
}

/// The NaN that a NaN becomes on its way to shared memory in an array of tf32.
const TF32_NAN: u32 = 0x7fff_e000;

/// The operation of a reduction on elements of type `ty`.
fn reduction(op: AtomOp, ty: TensorElement) -> Option<Reduction> {
    use TensorElement as T;
    let signed = matches!(ty, T::S32 | T::S64);
    let wide = matches!(ty, T::U32 | T::S32 | T::U64 | T::S64);
    let op = match (op, ty) {
        (AtomOp::Add, T::U32 | T::S32 | T::U64) => AtomOp::Add,
        (AtomOp::Add, T::F32) => AtomOp::AddF32Ftz,
        (AtomOp::Add, T::F16) => AtomOp::AddF16,
        (AtomOp::Add, T::Bf16) => AtomOp::AddBf16,
        (AtomOp::MinU, T::F16) => AtomOp::MinF16,
        (AtomOp::MaxU, T::F16) => AtomOp::MaxF16,
        (AtomOp::MinU, T::Bf16) => AtomOp::MinBf16,
        (AtomOp::MaxU, T::Bf16) => AtomOp::MaxBf16,
        (AtomOp::MinU, _) if wide && signed => AtomOp::MinS,
        (AtomOp::MaxU, _) if wide && signed => AtomOp::MaxS,
        (AtomOp::MinU | AtomOp::MaxU | AtomOp::And | AtomOp::Or | AtomOp::Xor, _) if wide => op,
        (AtomOp::Inc | AtomOp::Dec, T::U32) => op,
        _ => return None,
    };
    let bytes = ty.bytes() as u8;
    Some(Reduction { op, bytes })
}

/// Bytes of a kernel's parameters at most (PTX ISA, kernel function parameters).
const PARAMETERS: u64 = 32_764;

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
pub(crate) fn issue(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    t: &TensorCopy,
    active: u32,
) {
    if t.prefetch {
        return;
    }
    let (maps, shared) = (addresses(w, t.map), addresses(w, t.shared));
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(maps[l]),
        };
        let wrong = |env: &mut Env, text: String| {
            env.report(cx, FindingKind::TensorMap, site, &|| text.clone());
        };
        if !maps[l].is_multiple_of(64) {
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!(
                    "a tensor map at address {:#x}, not a multiple of 64",
                    maps[l]
                )
            });
            continue;
        }
        let bytes = map_bytes(cx, maps[l]);
        let map = match bytes.as_ref().map(|b| TensorMap::decode(b)) {
            Some(Ok(map)) => map,
            other => {
                // Measured on an H100: with such an address the launch fails.
                let in_own_space = if maps[l] < PARAMETERS {
                    "; the address of a parameter in its own space is made generic by cvta.param"
                } else {
                    ""
                };
                let why = other.and_then(Result::err).unwrap_or_else(|| {
                    format!("its 128 bytes are a parameter, a constant or in global memory{in_own_space}")
                });
                let text = format!("no tensor map at address {:#x}: {why}", maps[l]);
                wrong(env, text);
                continue;
            }
        };
        if let (Some(bytes), Some(fences)) = (&bytes, &cx.map_fences)
            && maps[l].wrapping_sub(PARAM_WINDOW) >= WINDOW
            && let Some(missing) = fences.missing(maps[l], bytes, env.block)
        {
            env.report(cx, FindingKind::MissingProxyFence, site, &|| match missing {
                MissingFence::Release => format!(
                    "the tensor map at {:#x} was changed by this launch and not released: add fence.proxy.tensormap::generic.release.gpu behind the change, or write it by tensormap.cp_fenceproxy",
                    maps[l]
                ),
                MissingFence::Acquire => format!(
                    "the tensor map at {0:#x} was changed by this launch: a thread of this block must execute fence.proxy.tensormap::generic.acquire.gpu [{0:#x}], 128 since, before the copy",
                    maps[l]
                ),
            });
        }
        let rank = map.sizes.len();
        if rank != t.coords.len() {
            let text = format!(
                "a copy of {} dimensions with a tensor map of {rank}",
                t.coords.len()
            );
            wrong(env, text);
            continue;
        }
        if map.im2col.is_some() != t.im2col {
            let of = |im2col| if im2col { "im2col" } else { "tiled" };
            let text = format!(
                "{} copy with a tensor map for {} copies",
                if t.im2col { "an im2col" } else { "a tiled" },
                of(!t.im2col)
            );
            wrong(env, text);
            continue;
        }
        let mut start = [0; 5];
        for (s, row) in start.iter_mut().zip(&t.coords) {
            *s = i64::from(w.r32[*row as usize][l] as i32);
        }
        if t.store && start.iter().any(|c| *c < 0) {
            let text = format!(
                "a store at coordinates {:?}; they are not negative",
                &start[..rank]
            );
            wrong(env, text);
            continue;
        }
        // Measured on an H200, with and without a swizzle, loads and stores: another coordinate is an illegal instruction.
        let first = start[0].wrapping_mul(map.element.bytes() as i64);
        if map.im2col.is_none() && first % 16 != 0 {
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!(
                    "a tensor copy from innermost coordinate {}, which is byte {first} of a row: it is to be a multiple of 16 bytes",
                    start[0]
                )
            });
            continue;
        }
        // A box may be larger than any memory: count before listing its rows.
        let counts = (1..rank).map(|d| match &map.im2col {
            None => u64::from(map.box_sizes[d].div_ceil(map.step(d))),
            Some(c) => u64::from(if d == 1 { c.pixels } else { 1 }),
        });
        let inner = map
            .im2col
            .as_ref()
            .map_or_else(|| map.box_sizes[0], |c| c.channels);
        let row_bytes = u64::from(inner) * map.element.bytes();
        let pitch = map.pitch(row_bytes);
        let count: u64 = counts.product();
        let size = env.shared.size;
        if count * pitch > u64::from(size) {
            env.report(cx, FindingKind::OutOfBounds, site, &|| {
                format!(
                    "a box of {} bytes; the block has {size} bytes of shared memory",
                    count * pitch
                )
            });
            continue;
        }
        let rows = match &map.im2col {
            None => tile_rows(&map, start),
            Some(c) => {
                let offsets: Vec<u32> = t
                    .offsets
                    .iter()
                    .map(|row| w.r32[*row as usize][l] & 0xffff)
                    .collect();
                pixel_rows(&map, c, start, &offsets)
            }
        };
        let bytes = row_bytes as u32 * rows.len() as u32;
        let extent = pitch as u32 * rows.len() as u32;
        if !shared[l].is_multiple_of(128) {
            env.report(cx, FindingKind::Misaligned, site, &|| {
                format!(
                    "a tensor copy at shared address {:#x}, not a multiple of 128",
                    shared[l]
                )
            });
            continue;
        }
        let space = if t.cluster {
            Space::Cluster
        } else {
            Space::Shared
        };
        let side = shared_side(cx, env, site, space, (l, shared[l]), extent);
        let Some((at, offset)) = side else { continue };
        let clip = if t.store && t.reduction.is_none() && !t.im2col {
            Clip::Chunk
        } else {
            Clip::Element
        };
        let all = pieces(&map, &rows, inner, offset, clip);
        if t.store {
            let mut with = None;
            if let Some(op) = t.reduction {
                with = reduction(op, map.element);
                if with.is_none() {
                    let text = format!("this reduction of elements of type {:?}", map.element);
                    wrong(env, text);
                    continue;
                }
            }
            if clip == Clip::Chunk {
                report_excess(cx, env, site, &map, &rows, inner);
            }
            let store = Store {
                pc,
                lane: l as u8,
                group: w.bulk_groups[l],
                pieces: all,
                reduction: with,
            };
            begin_store(cx, env, w, store);
            continue;
        }
        let fill = match map.element.nan() {
            Some(nan) if map.nan_outside => nan,
            _ => vec![0],
        };
        let mut data = read_global(cx, env, w, pc, l, &all, &fill);
        let (ftz, tf32) = match map.element {
            TensorElement::F32Ftz => (true, false),
            TensorElement::Tf32 => (false, true),
            TensorElement::Tf32Ftz => (true, true),
            _ => (false, false),
        };
        if ftz || tf32 {
            for word in data.as_chunks_mut::<4>().0 {
                let bits = u32::from_le_bytes(*word);
                let bits = if ftz { flush32(bits) } else { bits };
                *word = if tf32 { as_tf32(bits) } else { bits }.to_le_bytes();
            }
        }
        debug_assert_eq!(data.len(), bytes as usize);
        let Some(bar) = t.mbarrier.map(|a| addresses(w, a)[l]) else {
            continue;
        };
        let Some(bar) = shared_side(cx, env, site, space, (l, bar), 8) else {
            continue;
        };
        let to: Vec<(u32, u32)> = all.iter().map(|p| (p.shared, p.bytes)).collect();
        let mask = (t.mask != NONE).then(|| w.r32[t.mask as usize][l]);
        spread(cx, env, w, site, mask, at, bar, (&to, &all), bytes, &data);
    }
}

/// Reports a store of a box of `inner` elements a row that writes behind the extent of its array.
fn report_excess(
    cx: &Context<'_>,
    env: &mut Env,
    site: Site,
    map: &TensorMap,
    rows: &[boxes::Corner],
    inner: u32,
) {
    let Some(excess) = boxes::excess(map, rows, inner) else {
        return;
    };
    let site = Site {
        address: Some(excess.address),
        ..site
    };
    env.report(cx, FindingKind::TensorEdge, site, &|| {
        let size = map.element.bytes();
        let (extent, bytes) = (map.sizes[0] * size, excess.bytes);
        let corner = &excess.row[..map.sizes.len()];
        let rows = match excess.rows {
            1 => format!("the row at {corner:?}"),
            n => format!("each of {n} rows from {corner:?} on"),
        };
        format!(
            "the store writes whole chunks of 16 bytes: the extent of {extent} bytes is not a multiple of 16, and {bytes} bytes behind it are written in {rows}; make the innermost size a multiple of {} elements, or store the last chunk otherwise",
            16 / size
        )
    });
}

/// A word of an array of tf32 as a copy to shared memory rounds it: to the nearest of 10 bits of mantissa, ties to even, subnormal numbers too; measured on
/// an H100.
fn as_tf32(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff;
    if f32::from_bits(bits).is_nan() {
        TF32_NAN
    } else {
        rounded
    }
}

/// Does `f` on the 128 bytes at `address` of shared or global memory, and stores them if it gives true.
fn edit(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    site: Site,
    space: Space,
    address: u64,
    f: impl FnOnce(&mut [u8]) -> bool,
) {
    let bytes = TENSOR_MAP_BYTES as u32;
    let lane = site.lanes.trailing_zeros();
    let is_shared = space == Space::Shared || address.wrapping_sub(SHARED_WINDOW) < WINDOW;
    if is_shared {
        let place = shared_side(
            cx,
            env,
            site,
            Space::Shared,
            (lane as usize, address),
            bytes,
        );
        let Some((_, offset)) = place else { return };
        let mut map = vec![0; TENSOR_MAP_BYTES];
        env.shared.read_bytes(offset, &mut map);
        if !f(&mut map) {
            return;
        }
        env.shared.write_bytes(offset, &map);
        let who = Who::new(site.pc, w.index, lane);
        let mut conflict = None;
        if let Some(shadow) = &mut env.shadow {
            for u in units(shadow, offset, bytes) {
                let found = shadow.write(u, who);
                conflict = conflict.or(found.map(|c| ((u as u32) << shadow.grain, c)));
            }
        }
        if let Some((at, c)) = conflict {
            report_conflict(cx, env, who, (env.rank, at), c, true);
        }
        return;
    }
    let mut hint = 0;
    let alloc = cx.memory.locate(address, &mut hint);
    let alloc = alloc.filter(|a| a.len - (address - a.base) >= u64::from(bytes));
    let Some(alloc) = alloc else {
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("no 128 bytes of a tensor map at global address {address:#x}")
        });
        return;
    };
    let offset = address - alloc.base;
    let words = (0..32).map(|k| alloc.word(offset + 4 * k));
    let mut map: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    if !f(&mut map) {
        return;
    }
    for (k, word) in map.as_chunks::<4>().0.iter().enumerate() {
        alloc.set_word(offset + 4 * k as u64, u32::from_le_bytes(*word));
    }
    if cx.undefined_global {
        alloc.mark_written(offset, bytes);
    }
}

/// `tensormap.replace`.
pub(crate) fn replace(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    r: &TensormapReplace,
    active: u32,
) {
    let at = addresses(w, r.address);
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        let value = get_lane(w, r.value, l);
        let mut wrong = None;
        edit(cx, env, w, site, r.space, at[l], |map| {
            wrong = TensorMap::replace(map, r.field, value).err();
            wrong.is_none()
        });
        let global = r.space == Space::Global || at[l] < SHARED_WINDOW;
        if let Some(fences) = cx
            .map_fences
            .as_ref()
            .filter(|_| global && r.space != Space::Shared)
        {
            fences.change(at[l], env.block, w.index);
        }
        if let Some(text) = wrong {
            env.report(cx, FindingKind::TensorMap, site, &|| text.clone());
        }
    }
}

/// `tensormap.cp_fenceproxy` by a whole warp.
pub(crate) fn copy_map(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    (dst, src): (Address, Address),
    active: u32,
) {
    whole_warp(cx, env, w, pc, active);
    let (dst, src) = (addresses(w, dst)[0], addresses(w, src)[0]);
    let site = |address| Site {
        pc,
        warp: w.index,
        lanes: active & active.wrapping_neg(),
        address: Some(address),
    };
    let (to, from) = (site(dst), site(src));
    let bytes = TENSOR_MAP_BYTES as u32;
    let Some((_, offset)) = shared_side(cx, env, from, Space::Shared, (0, src), bytes) else {
        return;
    };
    let mut map = vec![0; TENSOR_MAP_BYTES];
    env.shared.read_bytes(offset, &mut map);
    let who = Who::new(pc, w.index, 0);
    let mut conflict = None;
    if let Some(shadow) = &mut env.shadow {
        for u in units(shadow, offset, bytes) {
            let found = shadow.read(u, who);
            conflict = conflict.or(found.map(|c| ((u as u32) << shadow.grain, c)));
        }
    }
    if let Some((at, c)) = conflict {
        report_conflict(cx, env, who, (env.rank, at), c, false);
    }
    edit(cx, env, w, to, Space::Global, dst, |out| {
        out.copy_from_slice(&map);
        true
    });
    if let Some(fences) = &cx.map_fences {
        fences.write_released(dst, &map);
    }
}
