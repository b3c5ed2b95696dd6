//! What the system offers kernels as functions: `vprintf`, `malloc`, `free`, `__assertfail`.

use super::mem::{get_lane, lanes_of, set_lane};
use super::printf;
use super::view::View;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Call, Service, Slot};
use crate::report::FindingKind;

/// Calls `service` in the active lanes.
#[inline(never)]
pub(super) fn serve(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    service: Service,
    call: &Call,
    active: u32,
) {
    if service == Service::Printf {
        return printf(cx, env, w, pc, call, active);
    }
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: None,
        };
        let arg = |w: &Warp, k: usize| call.args.get(k).map_or(0, |s| read_slot(w, *s, l));
        match service {
            Service::Printf => {}
            Service::Malloc => {
                let bytes = arg(w, 0);
                let address = cx.memory.heap().map_or(0, |h| h.malloc(bytes));
                if let (Some(shadow), true) = (&cx.global_shadow, address != 0) {
                    shadow.forget(address, bytes);
                }
                result(w, call, l, address);
            }
            Service::Free => {
                let address = arg(w, 0);
                if !cx.memory.heap().is_some_and(|h| h.free(address)) {
                    let site = Site {
                        address: Some(address),
                        ..site
                    };
                    env.report(cx, FindingKind::BadOperand, site, &|| {
                        format!("lane {l} frees {address:#x}, which malloc did not return or which is free already")
                    });
                }
            }
            Service::Assert => {
                let text = |w: &Warp, env: &Env, k: usize| {
                    let mut text = Vec::new();
                    let found = View::new(cx, env, w, l).string(arg(w, k), &mut text);
                    found.map_or_else(
                        |_| "?".to_owned(),
                        |()| String::from_utf8_lossy(&text).into_owned(),
                    )
                };
                let (what, file, function) = (text(w, env, 0), text(w, env, 1), text(w, env, 3));
                let line = arg(w, 2);
                let thread = w.index * 32 + l as u32;
                env.report(cx, FindingKind::Assertion, site, &|| {
                    format!("{file}:{line}: {function}: thread {thread}: assertion `{what}` failed")
                });
                env.abort = true;
            }
        }
    }
}

/// Prints in the active lanes, one after the other.
fn printf(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, call: &Call, active: u32) {
    let mut formats = std::mem::take(&mut env.formats);
    let mut printed = std::mem::take(&mut env.printed);
    for l in lanes_of(active) {
        let arg = |k: usize| call.args.get(k).map_or(0, |s| read_slot(w, *s, l));
        let view = || View::new(cx, env, w, l);
        let (mut strings, mut numbers) = (view(), view());
        let start = printed.text.len();
        let done = formats.get(&mut strings, arg(0)).and_then(|format| {
            let views = (&mut strings, &mut numbers);
            printf::print(format, views, arg(1), &mut printed.text)
        });
        let count = if done.is_ok() {
            let count = printed.text.len() - start;
            printed.keep(env.block, start);
            count as u64
        } else {
            printed.text.truncate(start);
            let site = Site {
                pc,
                warp: w.index,
                lanes: 1 << l,
                address: None,
            };
            env.report(cx, FindingKind::OutOfBounds, site, &|| {
                format!("lane {l} prints from memory that is not there")
            });
            u64::MAX
        };
        result(w, call, l, count);
    }
    (env.formats, env.printed) = (formats, printed);
}

fn result(w: &mut Warp, call: &Call, lane: usize, value: u64) {
    match call.returns.first() {
        Some(Slot::Register { reg, .. }) => set_lane(w, *reg, lane, value, 8, false),
        Some(Slot::Memory { offset, bytes }) => {
            let at = u64::from(w.frames[lane] + offset);
            w.local_store(lane, at, (*bytes).min(8), value);
        }
        None => {}
    }
}

fn read_slot(w: &Warp, slot: Slot, lane: usize) -> u64 {
    match slot {
        Slot::Register { reg, .. } => get_lane(w, reg, lane),
        Slot::Memory { offset, bytes } => {
            let at = u64::from(w.frames[lane] + offset);
            w.local_load(lane, at, bytes.min(8)).unwrap_or(0)
        }
    }
}
