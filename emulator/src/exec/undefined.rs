//! Which bits of a warp's registers are undefined, and where they came from.
//!
//! A value that nobody wrote may be moved, copied through memory and computed with, as long as nothing depends on it: compilers copy the padding of
//! structures, and a `selp` may carry a variable through the iterations before its first assignment. Reported is the *use*: an address, a guard, a store
//! that the host or another block can see, an operand of a barrier, of a copy or of an atomic operation.
//!
//! There are two modes. Usually only the reads that the control flow analysis could not clear are watched ([`crate::cfg`]). When one of them, or a load,
//! finds undefined bits, the warp watches every instruction: a [`Bits`] has a mask of undefined bits for each register and lane, and each
//! instruction carries them on ([`super::transfer`]). When no register has undefined bits except those that were never written, it goes back.
//!
//! Example: `selp.b32 %v, %s, %v, %p` with `%v` never written and `%p` false in lanes 1 to 31 leaves `%v` undefined there. `st.global.u32 [%a], %v`
//! is the finding, and names `%v` and the line of the `selp`.

use std::collections::HashMap;

use super::alu::{Row32, Row64};
use super::barrier::lane_list;
use super::mem::{extended, lanes_of};
use super::registers::Rows;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Access, NONE, Program, Reg, Slot};
use crate::report::FindingKind;
use crate::types::File;
use crate::windows::shared_start;

/// What a warp watches: nothing, the reads of [`crate::ir::Inst::checks`], or every instruction. An instruction has the bit of each mode that watches it.
pub(crate) const NOTHING: u8 = 0;
pub(crate) const READS: u8 = 1;
pub(crate) const ALL: u8 = 3;

/// The origin of a register that was never written itself.
const OWN: u32 = u32::MAX;

/// Set in the number of an origin where the value was computed from it: what was only moved may be the padding of a structure.
pub(super) const COMPUTED: u32 = 1 << 31;

/// Instructions after which a warp that watches all looks whether it still needs to.
pub(super) const PATIENCE: u32 = 256;

/// Where a value was read that nobody had written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Register(Reg),
    /// A byte of the shared memory of a block of the cluster.
    Shared {
        rank: usize,
        offset: u32,
    },
    /// A byte of an allocation.
    Global {
        offset: u64,
    },
}

/// The first read of an undefined value.
#[derive(Debug, Clone, Copy)]
struct Origin {
    pc: usize,
    place: Place,
    lanes: u32,
}

/// The origins of the undefined values of the blocks that run together, by number.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    list: Vec<Origin>,
    numbers: HashMap<(usize, Option<Reg>), u32>,
}

impl Origins {
    pub(crate) fn reset(&mut self) {
        self.list.clear();
        self.numbers.clear();
    }

    /// The number of the origin `place`, read by `lanes` at `pc`. Each instruction has one of each register and one of memory.
    pub(crate) fn number(&mut self, pc: usize, place: Place, lanes: u32) -> u32 {
        let reg = match place {
            Place::Register(reg) => Some(reg),
            Place::Shared { .. } | Place::Global { .. } => None,
        };
        let list = &mut self.list;
        *self.numbers.entry((pc, reg)).or_insert_with(|| {
            list.push(Origin { pc, place, lanes });
            list.len() as u32 - 1
        })
    }
}

/// The undefined bits of a warp.
#[derive(Debug)]
pub(crate) struct Bits {
    r32: Rows<u32>,
    r64: Rows<u64>,
    /// By file and row: the lanes with undefined bits, in which alone the rows above hold; and their origin.
    lanes: [Vec<u32>; 3],
    from: [Vec<u32>; 3],
    /// Lanes with an undefined carry flag, and its origin.
    pub(super) carry: u32,
    pub(super) carry_from: u32,
    /// By word of local memory: undefined bits and their origin.
    local: HashMap<u32, (Row32, u32)>,
    /// Instructions since somebody looked whether it is still needed.
    pub(super) ran: u32,
}

fn file(r: Reg) -> usize {
    r.file as usize
}

impl Bits {
    fn new(p: &Program) -> Self {
        let rows = [p.rows32.len(), p.rows64.len(), p.rows_pred.len()];
        Self {
            r32: Rows::new(rows[0]),
            r64: Rows::new(rows[1]),
            lanes: rows.map(|n| vec![0; n]),
            from: rows.map(|n| vec![OWN; n]),
            carry: 0,
            carry_from: OWN,
            local: HashMap::new(),
            ran: 0,
        }
    }

    /// The lanes in which `r` has undefined bits.
    pub(super) fn lanes(&self, r: Reg) -> u32 {
        self.lanes[file(r)].get(r.row as usize).map_or(0, |l| *l)
    }

    /// The undefined bits of `r`; of a predicate bit 0.
    pub(super) fn row(&self, r: Reg) -> Row64 {
        let mut out = [0; 32];
        for l in lanes_of(self.lanes(r)) {
            out[l] = match r.file {
                File::R32 => self.r32[r.row as usize][l].into(),
                File::R64 => self.r64[r.row as usize][l],
                File::Pred => 1,
            };
        }
        out
    }

    /// Sets the undefined bits of `r` in `active`.
    pub(super) fn set(&mut self, r: Reg, value: &Row64, active: u32, from: u32) {
        if r.row == NONE {
            return;
        }
        let mut some = 0;
        for l in lanes_of(active) {
            let bits = match r.file {
                File::R32 => {
                    self.r32[r.row as usize][l] = value[l] as u32;
                    value[l] & u64::from(u32::MAX)
                }
                File::R64 => {
                    self.r64[r.row as usize][l] = value[l];
                    value[l]
                }
                File::Pred => value[l] & 1,
            };
            some |= u32::from(bits != 0) << l;
        }
        let lanes = &mut self.lanes[file(r)][r.row as usize];
        *lanes = (*lanes & !active) | some;
        if some != 0 {
            self.from[file(r)][r.row as usize] = from;
        }
    }

    /// Makes all bits of `r` undefined in `lanes`.
    pub(super) fn spoil(&mut self, r: Reg, lanes: u32, from: u32) {
        self.set(r, &[u64::MAX; 32], lanes, from);
    }

    /// `r` counts as never written in `lanes`.
    pub(super) fn forget(&mut self, r: Reg, lanes: u32) {
        self.spoil(r, lanes, OWN);
    }

    pub(super) fn clear(&mut self, r: Reg, lanes: u32) {
        if let Some(undefined) = self.lanes[file(r)].get_mut(r.row as usize) {
            *undefined &= !lanes;
        }
    }

    /// The origin of the undefined bits of `r`, read by `lanes` at `pc`.
    pub(super) fn origin(&self, r: Reg, origins: &mut Origins, pc: usize, lanes: u32) -> u32 {
        match self.from[file(r)][r.row as usize] {
            OWN => origins.number(pc, Place::Register(r), lanes),
            from => from,
        }
    }

    /// Whether `r` was never written itself.
    fn is_own(&self, r: Reg) -> bool {
        self.from[file(r)][r.row as usize] == OWN
    }

    /// The undefined bits of `bytes` (at most 8) at `at` of the local memory of `lane`, and their origin.
    pub(super) fn local(&self, lane: usize, at: u64, bytes: u32) -> (u64, u32) {
        let (mut out, mut origin) = (0, OWN);
        for i in 0..bytes {
            let at = at + u64::from(i);
            if let Some((row, from)) = self.local.get(&((at / 4) as u32)) {
                let byte = row[lane] >> (8 * (at % 4)) & 0xff;
                out |= u64::from(byte) << (8 * i);
                origin = if byte == 0 { origin } else { *from };
            }
        }
        (out, origin)
    }

    pub(super) fn has_local(&self) -> bool {
        !self.local.is_empty()
    }

    /// Sets them.
    pub(super) fn set_local(&mut self, lane: usize, at: u64, bytes: u32, bits: u64, from: u32) {
        if bits == 0 && self.local.is_empty() {
            return;
        }
        for i in 0..bytes {
            let at = at + u64::from(i);
            let (word, shift) = ((at / 4) as u32, 8 * (at % 4));
            let byte = (bits >> (8 * i)) as u32 & 0xff;
            if byte == 0 && !self.local.contains_key(&word) {
                continue;
            }
            let (row, origin) = self.local.entry(word).or_insert(([0; 32], from));
            row[lane] = (row[lane] & !(0xff << shift)) | byte << shift;
            *origin = if byte == 0 { *origin } else { from };
            if row.iter().all(|bits| *bits == 0) {
                self.local.remove(&word);
            }
        }
    }
}

impl Warp {
    /// Watches every instruction from now on.
    pub(super) fn watch_all(&mut self, p: &Program) {
        if self.watch == ALL {
            return;
        }
        self.watch = ALL;
        let bits = self.bits.get_or_insert_with(|| Box::new(Bits::new(p)));
        bits.ran = 0;
        for r in &p.tracked {
            let row = r.row as usize;
            let lanes = !match r.file {
                File::R32 => self.def32[row],
                File::R64 => self.def64[row],
                File::Pred => self.def_p[row],
            };
            if lanes != 0 {
                bits.spoil(*r, lanes, OWN);
            }
        }
    }

    /// Watches fewer instructions again, if no register has undefined bits except those that were never written.
    pub(super) fn watch_less(&mut self, p: &Program) {
        let Some(bits) = &mut self.bits else { return };
        bits.ran = 0;
        if bits.has_local() || bits.carry != 0 {
            return;
        }
        let undefined: usize = bits.lanes.iter().flatten().filter(|l| **l != 0).count();
        let own = |r: &&Reg| bits.lanes(**r) != 0 && bits.is_own(**r);
        if p.tracked.iter().filter(own).count() != undefined {
            return;
        }
        self.watch = READS;
        for r in &p.tracked {
            let (row, defined) = (r.row as usize, !bits.lanes(*r));
            match r.file {
                File::R32 => self.def32[row] = defined,
                File::R64 => self.def64[row] = defined,
                File::Pred => self.def_p[row] = defined,
            }
            bits.clear(*r, u32::MAX);
        }
    }

    /// Forgets all, for the next block.
    pub(super) fn watch_anew(&mut self, sanitize: bool) {
        if self.watch == ALL
            && let Some(bits) = &mut self.bits
        {
            bits.lanes.iter_mut().for_each(|file| file.fill(0));
            bits.local.clear();
            bits.carry = 0;
        }
        self.watch = if sanitize { READS } else { NOTHING };
    }

    /// Defines `regs`; the origin of what was undefined in one of them.
    pub(super) fn take_undefined(&mut self, regs: &[Reg]) -> Option<u32> {
        let bits = self.bits.as_mut().filter(|_| self.watch == ALL)?;
        let some = regs
            .iter()
            .find(|r| r.row != NONE && bits.lanes(**r) != 0)?;
        let from = bits.from[file(*some)][some.row as usize];
        for r in regs {
            bits.clear(*r, u32::MAX);
        }
        Some(from)
    }

    /// Sets the undefined bits of `r` in `active`, where `value` has some.
    pub(super) fn set_undefined(&mut self, r: Reg, value: &Row64, active: u32, from: u32) {
        if let Some(bits) = &mut self.bits {
            bits.set(r, value, active, from);
        }
    }
}

/// What an instruction does with an undefined value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Address,
    Guard,
    /// A store that others than the block can see.
    Store(&'static str),
    Operand,
}

impl Use {
    fn text(self) -> String {
        match self {
            Self::Address => "is used as an address".to_owned(),
            Self::Guard => "is used as a guard".to_owned(),
            Self::Store(to) => format!("is stored to {to}"),
            Self::Operand => "is used".to_owned(),
        }
    }
}

fn name(cx: &Context<'_>, r: Reg) -> String {
    let found = cx.program.names.iter().find(|(reg, _)| *reg == r);
    found.map_or_else(|| "?".to_owned(), |(_, n)| n.clone())
}

/// Where the undefined value with origin number `from` comes from: the kind of the finding, the address in memory, and the words.
pub(super) fn described(
    cx: &Context<'_>,
    env: &Env,
    from: u32,
) -> (FindingKind, Option<u64>, String) {
    let Some(origin) = env.origins.list.get((from & !COMPUTED) as usize) else {
        return (
            FindingKind::UndefinedRegister,
            None,
            "a register that was never written".to_owned(),
        );
    };
    let line = cx.program.meta.get(origin.pc).map_or(0, |m| m.line);
    let lane = origin.lanes.trailing_zeros();
    match origin.place {
        Place::Register(r) => (
            FindingKind::UndefinedRegister,
            None,
            format!(
                "register {}, which was never written in lanes {} and is read at line {line}",
                name(cx, r),
                lane_list(origin.lanes)
            ),
        ),
        Place::Shared { rank, offset } => (
            FindingKind::UndefinedShared,
            Some(u64::from(shared_start(rank) + offset)),
            format!(
                "{}, which nothing has written and lane {lane} reads at line {line}",
                env.byte(rank, offset)
            ),
        ),
        Place::Global { offset } => (
            FindingKind::UndefinedGlobal,
            None,
            format!(
                "byte {offset} of an allocation, which nothing has written and lane {lane} reads at line {line}"
            ),
        ),
    }
}

/// Reports that `lanes` use register `r`, which has undefined bits there: once for each value.
#[inline(never)]
pub(super) fn report_use(
    cx: &Context<'_>,
    env: &mut Env,
    bits: &mut Bits,
    (pc, warp): (usize, u32),
    (r, lanes): (Reg, u32),
    how: Use,
) {
    let own = bits.is_own(r);
    let from = bits.from[file(r)][r.row as usize];
    let (kind, address, source) = described(cx, env, from);
    let kind = if own {
        FindingKind::UndefinedRegister
    } else {
        kind
    };
    let site = Site {
        pc,
        warp,
        lanes,
        address: address.filter(|_| !own),
    };
    env.report(cx, kind, site, &|| {
        let (name, how, lanes) = (name(cx, r), how.text(), lane_list(lanes));
        if own {
            format!("register {name} {how} but was never written in lanes {lanes}")
        } else {
            format!("register {name} {how} in lanes {lanes}; its value comes from {source}")
        }
    });
    bits.clear(r, lanes);
}

/// A load of shared memory has found `undefined` bits: by element and lane, with the origin of each element.
pub(super) fn loaded(
    cx: &Context<'_>,
    w: &mut Warp,
    a: &Access,
    active: u32,
    undefined: &[(Row64, u32)],
) {
    if undefined
        .iter()
        .all(|(row, _)| lanes_of(active).all(|l| row[l] == 0))
        && w.watch != ALL
    {
        return;
    }
    w.watch_all(cx.program);
    for (reg, (row, from)) in a.regs.iter().zip(undefined) {
        let mut row = *row;
        if a.signed {
            for x in &mut row {
                *x = extended(*x, u32::from(a.bytes), true);
            }
        }
        w.set_undefined(*reg, &row, active, *from);
    }
}

impl Env {
    /// Whether a store to shared memory by `w` must carry undefined bits, or clear some.
    #[inline(always)]
    pub(super) fn carries_undefined(&self, w: &Warp) -> bool {
        self.shadow
            .as_ref()
            .is_some_and(|s| w.watch == ALL || !s.stored.is_empty())
    }

    /// The undefined bits of the `bytes` at `offset` of shared memory, which `lane` reads at `pc`, and their origin.
    pub(super) fn undefined_shared(
        &mut self,
        pc: usize,
        lane: usize,
        offset: u32,
        bytes: u32,
    ) -> (u64, Option<u32>) {
        let Some(shadow) = &self.shadow else {
            return (0, None);
        };
        let (bits, from) = shadow.undefined(offset, bytes);
        if bits == 0 || from.is_some() {
            return (bits, from);
        }
        let place = Place::Shared {
            rank: self.rank,
            offset: offset + bits.trailing_zeros() / 8,
        };
        (bits, Some(self.origins.number(pc, place, 1 << lane)))
    }

    /// The undefined bits of the 32-bit register `row` of `w`, which an instruction at `pc` reads, and their origin.
    pub(super) fn undefined_register(&mut self, w: &Warp, pc: usize, row: u32) -> (Row32, u32) {
        let reg = Reg {
            file: File::R32,
            row,
        };
        let (row, from) = self.undefined_of(w, pc, reg);
        (row.map(|x| x as u32), from)
    }

    /// The same of any register.
    pub(super) fn undefined_of(&mut self, w: &Warp, pc: usize, r: Reg) -> (Row64, u32) {
        match &w.bits {
            Some(bits) if w.watch == ALL && r.row != NONE && bits.lanes(r) != 0 => {
                let from = bits.origin(r, &mut self.origins, pc, bits.lanes(r));
                (bits.row(r), from)
            }
            _ => ([0; 32], OWN),
        }
    }
}

/// The undefined bits of the register slots of a call, before it changes registers.
pub(super) struct Passed(Vec<(Row64, u32)>);

impl Passed {
    pub(super) fn of(w: &Warp, env: &mut Origins, pc: usize, slots: &[Slot]) -> Option<Self> {
        let bits = w.bits.as_ref().filter(|_| w.watch == ALL)?;
        let of = |slot: &Slot| match slot {
            Slot::Register { reg, .. } if bits.lanes(*reg) != 0 => {
                let lanes = bits.lanes(*reg);
                (bits.row(*reg), bits.origin(*reg, env, pc, lanes))
            }
            _ => ([0; 32], OWN),
        };
        Some(Self(slots.iter().map(of).collect()))
    }

    /// Slot `k`, which is `from`, goes to slot `to`; each with the starts of its frames.
    pub(super) fn pass(
        &self,
        w: &mut Warp,
        k: usize,
        lanes: u32,
        to: (Slot, &Row32),
        from: (Slot, &Row32),
    ) {
        let Some(bits) = &mut w.bits else { return };
        let (row, origin) = self
            .0
            .get(k)
            .map_or(([0; 32], OWN), |(row, from)| (*row, *from));
        match (to.0, from.0) {
            (Slot::Memory { offset, bytes }, Slot::Memory { offset: source, .. }) => {
                let marked = if bits.has_local() { lanes } else { 0 };
                for l in lanes_of(marked) {
                    for i in 0..bytes {
                        let at = u64::from(from.1[l] + source + i);
                        let (byte, from) = bits.local(l, at, 1);
                        bits.set_local(l, u64::from(to.1[l] + offset + i), 1, byte, from);
                    }
                }
            }
            (Slot::Memory { offset, bytes }, Slot::Register { .. }) => {
                for l in lanes_of(lanes) {
                    let at = u64::from(to.1[l] + offset);
                    bits.set_local(l, at, bytes.min(8), row[l], origin);
                }
            }
            (Slot::Register { reg, bytes }, Slot::Memory { offset, .. }) => {
                let (mut row, mut origin) = ([0; 32], OWN);
                for l in lanes_of(lanes) {
                    let at = u64::from(from.1[l] + offset);
                    let (found, from) = bits.local(l, at, bytes.min(8));
                    row[l] = found;
                    origin = if found == 0 { origin } else { from };
                }
                bits.set(reg, &row, lanes, origin);
            }
            (Slot::Register { reg, .. }, Slot::Register { .. }) => {
                bits.set(reg, &row, lanes, origin);
            }
        }
    }
}
