//! `alloca`, `stacksave` and `stackrestore` (PTX ISA, section 9.7.17): memory at the end of a lane's frame.
//!
//! A frame ends where the lane's local memory ends for now; `alloca` moves the end up and gives the place where it was. (Stacks of GPUs grow down;
//! the value of the stack pointer means nothing but to `stackrestore`.) A return ends the frame and what was allotted in it.

use super::calls::STACK;
use super::mem::lanes_of;
use super::rare::{get, set};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::Stack;
use crate::report::FindingKind;

/// Runs one of the three in the active lanes.
#[inline(never)]
pub(super) fn stack(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    op: Stack,
    active: u32,
) {
    for l in lanes_of(active) {
        let (base, end) = (w.frames[l], w.ends[l]);
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: None,
        };
        match op {
            Stack::Save(d) => set(w, d, l, u64::from(end)),
            Stack::Restore(from) => {
                let to = get(w, from, l);
                if to < u64::from(base) || to > u64::from(end) {
                    env.report(cx, FindingKind::BadOperand, site, &|| {
                        format!("restores the stack to {to:#x}, which no stacksave of this frame gave: it reaches from {base:#x} to {end:#x}")
                    });
                    continue;
                }
                w.ends[l] = to as u32;
            }
            Stack::Alloca { d, size, align } => {
                let size = get(w, size, l);
                let start = u64::from(end).next_multiple_of(u64::from(align));
                // Frames stay aligned to 16 bytes.
                let new = size
                    .checked_add(start)
                    .and_then(|e| e.checked_next_multiple_of(16))
                    .filter(|e| *e <= u64::from(STACK));
                let Some(new) = new else {
                    env.report(cx, FindingKind::StackOverflow, site, &|| {
                        format!("alloca of {size} bytes on a stack of {end}; a thread has {STACK}")
                    });
                    env.abort = true;
                    return;
                };
                w.local.reserve(new as u32);
                w.ends[l] = new as u32;
                set(w, d, l, start);
            }
        }
    }
}
