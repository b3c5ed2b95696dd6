//! Textures and surfaces (PTX ISA, sections 9.7.10 and 9.7.11); [`crate::texture`] has how samples are computed.
//!
//! What is wrong is a finding: a handle of no texture, a texture of other dimensions, an instruction that asks for other types than the texels have, and with
//! `.trap` an access outside the surface, after which the block is given up.

use super::mem::{addresses, get_lane, lanes_of, set_lane};
use super::rounding::half;
use super::step::set_pred;
use super::warp::Warp;
use super::{Context, Env, Site, sources};
use crate::ir::{NONE, Outside, TextureAction, TextureOp, TextureQuery};
use crate::report::FindingKind;
use crate::texture::{AddressMode, OutOfMemory, Texture};

/// Runs `t` on the active lanes.
#[inline(never)]
pub(crate) fn execute(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    t: &TextureOp,
    active: u32,
) {
    let handles = addresses(w, t.handle);
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(handles[l]),
        };
        let Some(texture) = cx.memory.texture(handles[l]) else {
            env.report(cx, FindingKind::BadOperand, site, &|| {
                format!(
                    "{:#x} is neither the handle of a texture nor the address of a variable with one: bind one, on the command line by texture:…",
                    handles[l]
                )
            });
            continue;
        };
        if let Some(fault) = mismatch(texture, t) {
            env.report(cx, FindingKind::BadOperand, site, &|| fault.clone());
            continue;
        }
        match t.action {
            TextureAction::Query(query) => {
                set_lane(w, t.regs[0], l, answer(texture, query).into(), 4, false);
            }
            TextureAction::Sample { .. } | TextureAction::Gather { .. } => {
                let found = lookup(cx, w, texture, t, l);
                let texel = found.unwrap_or_else(|OutOfMemory(address)| {
                    report_memory(cx, env, site, address);
                    [0; 4]
                });
                give(w, t, l, texel);
            }
            TextureAction::Load { bytes, outside } | TextureAction::Store { bytes, outside } => {
                surface(
                    cx,
                    env,
                    w,
                    texture,
                    (t, l),
                    (u32::from(bytes), outside),
                    site,
                );
            }
        }
    }
    if t.resident != NONE {
        set_pred(w, t.resident, u32::MAX, active);
    }
}

fn report_memory(cx: &Context<'_>, env: &mut Env, site: Site, address: u64) {
    let site = Site {
        address: Some(address),
        ..site
    };
    env.report(cx, FindingKind::OutOfBounds, site, &|| {
        format!("the texture has a texel at {address:#x}, outside of every allocation: its sizes and pitch do not fit its memory")
    });
}

/// Why the instruction is not for this texture.
fn mismatch(texture: &Texture, t: &TextureOp) -> Option<String> {
    if let TextureAction::Query(_) = t.action {
        return None;
    }
    let (dims, layers) = (texture.size.len(), texture.layers);
    if dims != usize::from(t.dims) || (layers > 0) != t.layered {
        let name =
            |dims: usize, layered: bool| format!("{}{dims}d", if layered { "a" } else { "" });
        return Some(format!(
            "an instruction .{} with a texture of sizes {:?}, which is .{}",
            name(t.dims.into(), t.layered),
            texture.size,
            name(dims, layers > 0)
        ));
    }
    let samples = matches!(
        t.action,
        TextureAction::Sample { .. } | TextureAction::Gather { .. }
    );
    (samples && texture.gives_float() != t.float).then(|| {
        let name = |float| {
            if float {
                "floating-point numbers"
            } else {
                "integers"
            }
        };
        format!(
            "results are {} and the texture gives {}",
            name(t.float),
            name(texture.gives_float())
        )
    })
}

/// The texel or the four of `tld4` for lane `l`.
fn lookup(
    cx: &Context<'_>,
    w: &Warp,
    texture: &Texture,
    t: &TextureOp,
    l: usize,
) -> Result<[u32; 4], OutOfMemory> {
    let word = |row: &u32| w.r32[*row as usize][l];
    let layer = if t.layered {
        t.coords.first().map_or(0, word).min(texture.layers - 1)
    } else {
        0
    };
    let coords = t.coords.iter().skip(usize::from(t.layered)).map(word);
    let mut bits = [0; 3];
    for (to, from) in bits.iter_mut().zip(coords) {
        *to = from;
    }
    let mut offset = [0; 3];
    for (to, row) in offset.iter_mut().zip(&t.offsets) {
        *to = i64::from(word(row) as i32);
    }
    let floats = bits.map(f32::from_bits);
    match t.action {
        TextureAction::Gather { component } => {
            texture.gather(cx.memory, component.into(), (floats, offset), layer)
        }
        TextureAction::Sample { float: true } => texture.sample(cx.memory, floats, offset, layer),
        _ => {
            let mut at = [0; 3];
            for d in 0..3 {
                at[d] = i64::from(bits[d] as i32) + offset[d];
            }
            // A texture of one dimension is a buffer, outside of which there are zeros.
            let inside = (0..i64::from(texture.extent(0))).contains(&at[0]);
            if texture.size.len() == 1 && !t.layered && !inside {
                return Ok([0; 4]);
            }
            texture.texel(cx.memory, at, layer)
        }
    }
}

/// Writes a result.
fn give(w: &mut Warp, t: &TextureOp, l: usize, texel: [u32; 4]) {
    let words = if t.halves {
        let [r, g, b, a] = texel.map(half);
        [r | g << 16, b | a << 16, 0, 0]
    } else {
        texel
    };
    for (reg, word) in t.regs.iter().zip(words) {
        set_lane(w, *reg, l, word.into(), 4, false);
    }
}

/// `suld.b` and `sust.b`, elements of so many bytes.
fn surface(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    texture: &Texture,
    (t, l): (&TextureOp, usize),
    (bytes, outside): (u32, Outside),
    site: Site,
) {
    let mut coords = t
        .coords
        .iter()
        .map(|row| i64::from(w.r32[*row as usize][l] as i32));
    // A layer is the last coordinate here.
    let layer = if t.layered { coords.next() } else { None };
    let mut at: Vec<i64> = coords.collect();
    at.resize(3, 0);
    let depth = match layer {
        Some(layer) => {
            at[2] = layer;
            texture.layers
        }
        None => texture.extent(2),
    };
    let width = texture.extent(0) * texture.texel_bytes();
    let size = bytes * t.regs.len() as u32;
    let load = matches!(t.action, TextureAction::Load { .. });
    if at[0].rem_euclid(i64::from(size)) != 0 {
        let x = at[0];
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!(
                "byte {x} of a row of the surface, not a multiple of the {size} bytes of the access"
            )
        });
        return;
    }
    let limits = [width.saturating_sub(size), texture.extent(1) - 1, depth - 1].map(i64::from);
    let inside = width >= size
        && at
            .iter()
            .zip(limits)
            .all(|(x, limit)| (0..=limit).contains(x));
    if !inside {
        match outside {
            Outside::Trap => {
                let text = format!(
                    "coordinates {at:?} (x in bytes) outside of a surface of {width} bytes × {} × {depth}: the kernel ends; .zero and .clamp do not",
                    texture.extent(1)
                );
                env.report(cx, FindingKind::OutOfBounds, site, &|| text.clone());
                env.abort = true;
                return;
            }
            Outside::Clamp => {
                for (x, limit) in at.iter_mut().zip(limits) {
                    *x = (*x).clamp(0, limit);
                }
                at[0] -= at[0] % i64::from(size);
            }
            Outside::Zero => {
                for reg in t.regs.iter().filter(|_| load) {
                    set_lane(w, *reg, l, 0, bytes, false);
                }
                return;
            }
        }
    }
    let address = texture.place(at[0] as u64, at[1] as u32, at[2] as u32);
    let mut hint = 0;
    let alloc = cx.memory.locate(address, &mut hint);
    let alloc = alloc.filter(|a| a.len - (address - a.base) >= u64::from(size));
    let Some(alloc) = alloc else {
        return report_memory(cx, env, site, address);
    };
    for (k, reg) in t.regs.iter().enumerate() {
        let offset = address - alloc.base + u64::from(bytes) * k as u64;
        if load {
            let value = alloc.load(offset, bytes);
            set_lane(w, *reg, l, value, bytes, false);
        } else {
            alloc.store(offset, bytes, get_lane(w, *reg, l));
            sources::stored(cx, env, site, alloc, (offset, bytes));
            if cx.undefined_global {
                alloc.mark_written(offset, bytes);
            }
        }
    }
}

/// The answer to a query.
fn answer(texture: &Texture, query: TextureQuery) -> u32 {
    match query {
        TextureQuery::Extent(d) => texture.size.get(usize::from(d)).copied().unwrap_or(0),
        TextureQuery::Layers => texture.layers,
        TextureQuery::Normalized => texture.normalized.into(),
        TextureQuery::Linear => texture.linear.into(),
        TextureQuery::Mode(d) => match texture.modes[usize::from(d) % 3] {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        },
        TextureQuery::Levels => 0,
    }
}
