//! The memory that a lane sees, byte by byte: where services read formats, strings and arguments.

use super::local::little;
use super::warp::Warp;
use super::{Context, Env};
use crate::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};

/// Longest string that is read from memory.
const MAX_STRING: usize = 1 << 16;

/// The address is nowhere.
pub(super) struct Nowhere;

/// The memory of a lane, at generic addresses.
pub(super) struct View<'a> {
    cx: &'a Context<'a>,
    env: &'a Env,
    w: &'a Warp,
    lane: usize,
    /// The last allocation of global memory.
    hint: u32,
}

impl<'a> View<'a> {
    pub(super) fn new(cx: &'a Context<'a>, env: &'a Env, w: &'a Warp, lane: usize) -> Self {
        Self {
            cx,
            env,
            w,
            lane,
            hint: 0,
        }
    }

    /// One byte.
    fn byte(&mut self, at: u64) -> Result<u8, Nowhere> {
        let within = |base: u64| Some(at.wrapping_sub(base)).filter(|o| *o < WINDOW);
        let found = if let Some(o) = within(LOCAL_WINDOW) {
            self.w.local_load(self.lane, o, 1)
        } else if let Some(o) = within(SHARED_WINDOW) {
            let (env, offset) = (self.env, (o as u32).wrapping_sub(self.env.start()));
            (offset < env.shared.size).then(|| env.shared.load(offset, 1))
        } else if let Some(o) = within(PARAM_WINDOW) {
            self.cx.params.get(o as usize).map(|b| u64::from(*b))
        } else {
            let found = self.cx.memory.locate(at, &mut self.hint);
            found
                .filter(|a| at - a.base < a.len)
                .map(|a| a.load(at - a.base, 1))
        };
        found.map(|v| v as u8).ok_or(Nowhere)
    }

    /// `bytes` bytes, 4 or 8, from a multiple of as many on.
    pub(super) fn number(&mut self, at: u64, bytes: u64) -> Result<u64, Nowhere> {
        // Arguments are local, as compilers have it.
        let offset = at.wrapping_sub(LOCAL_WINDOW);
        if offset < WINDOW {
            let found = self.w.local_load(self.lane, offset, bytes as u32);
            return found.ok_or(Nowhere);
        }
        let mut raw = [0u8; 8];
        for (i, byte) in (0..bytes).zip(&mut raw) {
            *byte = self.byte(at.wrapping_add(i))?;
        }
        Ok(little(&raw))
    }

    /// Appends the bytes of a string up to its zero.
    pub(super) fn string(&mut self, at: u64, out: &mut Vec<u8>) -> Result<(), Nowhere> {
        let start = out.len();
        self.words(at, out);
        while out.len() - start < MAX_STRING {
            match self.byte(at.wrapping_add((out.len() - start) as u64))? {
                0 => break,
                b => out.push(b),
            }
        }
        Ok(())
    }

    /// Appends the words of global memory from `at` on that have no zero.
    fn words(&mut self, at: u64, out: &mut Vec<u8>) {
        let special = [LOCAL_WINDOW, SHARED_WINDOW, PARAM_WINDOW];
        if special.iter().any(|base| at.wrapping_sub(*base) < WINDOW) {
            return;
        }
        let Some(a) = self.cx.memory.locate(at, &mut self.hint) else {
            return;
        };
        let mut offset = at - a.base;
        let end = a.len.min(offset.saturating_add(MAX_STRING as u64));
        // Words lie at multiples of four: the bytes before the first are those of a word whose others do not count.
        let before = offset % 4;
        let mut skip = before as usize;
        offset -= before;
        while offset + 4 <= end {
            let bytes = a.word(offset).to_le_bytes();
            if bytes[skip..].contains(&0) {
                return;
            }
            out.extend_from_slice(&bytes[skip..]);
            skip = 0;
            offset += 4;
        }
    }
}
