//! Addresses of local memory within reach, for chips whose instructions reach 2 KB beyond an address.
//!
//! Two loads of 8 bytes at once, which GCN's first generation makes of a vector, have offsets of 8 bits in units of 8 bytes. A loop over stages of 16 KB
//! reads eight such windows, and a compiler computes the address of each before the loop: eight registers and more, of 64 that each of four wavefronts
//! has. So there, an address is computed where its window begins. The thread's part of it and the bits of all windows are put together before the
//! loop, where the compiler cannot look through `KEEP`; one exclusion of bits in the loop leaves one window:
//!
//! ```text
//! FAR(far1, stages_x_offset, 0x2800u);                      the bits of windows 0, 2048, 8192 and 10240
//! for (…) {
//!     NEAR(near1, far1, stages_x_offset, 8192u, 2047u);     far1 & 0x27ff
//!     … smem + near1 + 512 …
//! ```
//!
//! Elsewhere `NEAR` is the sum, and the window part of the instruction's offset.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::code::{Op, Operand};
use crate::ir::{Address, Class, Entry, Inst, Node, Reg, Space, Special};

/// Bytes that an instruction reaches beyond its address.
const REACH: i64 = 2048;

/// The widest access.
const VECTOR: i64 = 16;

/// A base of addresses.
pub(super) struct Base {
    /// The variable that holds it with the bits of all windows.
    pub(super) far: String,
    /// Those bits.
    pub(super) bits: i64,
    /// Bytes of a window, a power of two.
    pub(super) size: i64,
    /// The window that is in reach, and the variable that holds its address.
    pub(super) near: Option<(i64, String)>,
}

/// The bases of a loop's addresses of local memory that have more than one window.
#[derive(Default)]
pub(super) struct Windows {
    pub(super) bases: BTreeMap<Reg, Base>,
    /// Windows so far.
    pub(super) count: u32,
}

impl Windows {
    /// Those of a loop's body without branches.
    pub(super) fn of(entry: &Entry, body: &[Node], far: &str) -> Self {
        let mut immediates: BTreeMap<Reg, BTreeSet<i64>> = BTreeMap::new();
        for node in body {
            let Node::Inst(s) = node else { continue };
            if let Inst::Load { at, .. } | Inst::Store { at, .. } = &s.inst
                && at.space() == Space::Shared
            {
                let of_base = immediates.entry(at.base()).or_default();
                of_base.insert(at.immediate());
            }
        }
        let mut bases = BTreeMap::new();
        for (base, immediates) in immediates {
            let Some(most) = most(entry, base) else {
                continue;
            };
            let size = (most + 1).max(REACH).unsigned_abs().next_power_of_two() as i64;
            let reached = |k: &i64| *k >= 0 && k % size <= REACH - VECTOR;
            let windows: BTreeSet<i64> = immediates.iter().map(|k| k - k % size).collect();
            if windows.len() < 2 || !immediates.iter().all(reached) {
                continue;
            }
            bases.insert(
                base,
                Base {
                    far: format!("{far}{}", bases.len() + 1),
                    bits: windows.iter().fold(0, |all, w| all | w),
                    size,
                    near: None,
                },
            );
        }
        Self { bases, count: 0 }
    }

    /// The base of an address, if it has windows, and the window that the address is in.
    pub(super) fn base_of(&mut self, at: Address) -> Option<(&mut Base, i64)> {
        let base = self.bases.get_mut(&at.base())?;
        let window = at.immediate() - at.immediate() % base.size;
        (at.space() == Space::Shared).then_some((base, window))
    }
}

/// The instruction of the kernel's outermost region that computes a register.
fn defined(entry: &Entry, reg: Reg) -> Option<&Inst> {
    entry.nodes.iter().find_map(|node| match node {
        Node::Inst(s) if s.inst.results().contains(&reg) => Some(&s.inst),
        _ => None,
    })
}

/// The largest value of a register that the kernel's outermost region computes from the thread's index by sums, masks and shifts.
fn most(entry: &Entry, reg: Reg) -> Option<i64> {
    let (op, args) = match defined(entry, reg)? {
        Inst::Special {
            register: Special::Thread(axis),
            ..
        } => return Some(i64::from(entry.block[*axis as usize]) - 1),
        Inst::SharedBase { .. } => return Some(0),
        Inst::Index { op, args, .. } => (op, args),
        _ => return None,
    };
    let of = |arg: &Operand| match *arg {
        Operand::Imm(k) => Some(k),
        Operand::Reg(id, _) => {
            let class = Class::B32;
            most(entry, Reg { class, id })
        }
    };
    let (a, b) = match &args[..] {
        [a, b] => (of(a), of(b)?),
        _ => return None,
    };
    let constant = matches!(args[1], Operand::Imm(_));
    match op {
        Op::Add => a?.checked_add(b),
        Op::And if constant && b >= 0 => Some(a.map_or(b, |a| a.min(b))),
        Op::Shl if constant && (0..31).contains(&b) => a?.checked_mul(1 << b),
        Op::Shr if constant && (0..32).contains(&b) => Some(a? >> b),
        _ => None,
    }
    .filter(|m| (0..=i64::from(i32::MAX)).contains(m))
}

/// What `FAR` and `NEAR` are.
pub(super) const MACROS: &str = "\
// Addresses of local memory: where instructions reach 2 KB, each window of a loop is computed where it begins.
#if defined(__GFX6__)
#define FAR(far, a, bits) uint far = (a) | (bits)
#define NEAR(near, far, a, window, mask) __asm__ volatile(\"\" : \"+v\"(far)); const uint near = far & ((window) | (mask))
#else
#define FAR(far, a, bits)
#define NEAR(near, far, a, window, mask) const uint near = (a) + (window)
#endif
";

/// What asks for registers so few that four wavefronts share a SIMD.
pub(super) const FOUR: &str = "\
// Registers so few that four wavefronts share a SIMD.
#if defined(__AMDGCN__)
#define FOUR_WAVEFRONTS __attribute__((amdgpu_waves_per_eu(4)))
#else
#define FOUR_WAVEFRONTS
#endif
";
