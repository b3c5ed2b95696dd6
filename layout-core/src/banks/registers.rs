//! Register banks with the operand reuse cache: what a *sequence* of multiply-adds costs.
//!
//! A register file is a banked memory whose lanes are the operand slots of one instruction. Maxwell adds a small cache: a
//! slot flagged `.reuse` keeps its operand, and the next instruction reads it from the cache, not from the bank.
//! For example `FFMA R1, R64, R72, R1` reads R64 and R72, both of bank 0: one stall. If the instruction before it read R72
//! in the same slot with the flag set, only R64 and R1 are read: no stall.
//!
//! ```
//! use layout_core::banks::{registers::{stalls, Ffma}, MAXWELL_REGISTERS};
//! let pair = [Ffma::new([65, 72, 2]).reusing([false, true, false]), Ffma::new([64, 72, 1])];
//! assert_eq!(stalls(&MAXWELL_REGISTERS, &pair), 0);
//! assert_eq!(stalls(&MAXWELL_REGISTERS, &[pair[1]]), 1);
//! ```
//!
//! Source: the maxas wiki on control codes and register banks.

use super::BankModel;

/// The three source registers of a multiply-add, with its reuse flags.
///
/// ```
/// use layout_core::banks::registers::Ffma;
/// let ffma = Ffma::new([64, 72, 1]).reusing([true, false, false]);
/// assert_eq!((ffma.sources[0], ffma.reuse[0]), (64, true));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct Ffma {
    /// Register numbers in slots a, b and c.
    pub sources: [u16; 3],
    /// Which slots keep their operand for the next instruction.
    pub reuse: [bool; 3],
}

impl Ffma {
    /// An instruction without reuse flags.
    ///
    /// ```
    /// use layout_core::banks::registers::Ffma;
    /// assert_eq!(Ffma::new([64, 72, 1]).reuse, [false; 3]);
    /// ```
    pub const fn new(sources: [u16; 3]) -> Self {
        Self {
            sources,
            reuse: [false; 3],
        }
    }

    /// The same instruction with these flags.
    ///
    /// ```
    /// use layout_core::banks::registers::Ffma;
    /// let flags = [false, true, false];
    /// assert_eq!(Ffma::new([64, 72, 1]).reusing(flags).reuse, flags);
    /// ```
    pub const fn reusing(self, reuse: [bool; 3]) -> Self {
        Self { reuse, ..self }
    }
}

/// The operand reuse cache between two instructions.
///
/// ```
/// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, ReuseCache}};
/// let mut cache = ReuseCache::new();
/// cache.issue(&MAXWELL_REGISTERS, &Ffma::new([65, 72, 2]).reusing([false, true, false]));
/// assert_eq!(cache.reads(&MAXWELL_REGISTERS, &Ffma::new([64, 72, 1])), (1, 2));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct ReuseCache {
    slots: [Option<u16>; 3],
}

impl ReuseCache {
    /// An empty cache.
    ///
    /// ```
    /// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, ReuseCache}};
    /// assert_eq!(ReuseCache::new().reads(&MAXWELL_REGISTERS, &Ffma::new([1, 2, 3])), (1, 3));
    /// ```
    pub const fn new() -> Self {
        Self { slots: [None; 3] }
    }

    /// Reads the operands of `instruction`, returns the cycles beyond the first, and keeps the flagged operands.
    ///
    /// ```
    /// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, ReuseCache}};
    /// let mut cache = ReuseCache::new();
    /// let conflict = Ffma::new([64, 72, 1]).reusing([true, true, false]);
    /// assert_eq!(cache.issue(&MAXWELL_REGISTERS, &conflict), 1);
    /// assert_eq!(cache.issue(&MAXWELL_REGISTERS, &conflict), 0); // R64 and R72 are cached
    /// ```
    pub const fn issue(&mut self, model: &BankModel, instruction: &Ffma) -> u32 {
        let (cycles, _) = self.reads(model, instruction);
        let mut slot = 0;
        while slot < 3 {
            self.slots[slot] = if instruction.reuse[slot] {
                Some(instruction.sources[slot])
            } else {
                None
            };
            slot += 1;
        }
        cycles.saturating_sub(1)
    }

    /// Cycles to read the operands that the cache does not hold, and how many registers those are.
    ///
    /// ```
    /// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, ReuseCache}};
    /// // R64 and R72 share a bank: two cycles for three registers.
    /// assert_eq!(ReuseCache::new().reads(&MAXWELL_REGISTERS, &Ffma::new([64, 72, 1])), (2, 3));
    /// ```
    pub const fn reads(&self, model: &BankModel, instruction: &Ffma) -> (u32, u32) {
        let mut served = [0_u32; 32];
        let mut registers = 0;
        let mut cycles = 0;
        let mut slot = 0;
        while slot < 3 {
            let register = instruction.sources[slot];
            let mut free = matches!(self.slots[slot], Some(held) if held == register);
            // The same register in an earlier slot that reads it is one read.
            let mut earlier = 0;
            while earlier < slot {
                let cached = matches!(self.slots[earlier], Some(held) if held == register);
                if instruction.sources[earlier] == register && !cached {
                    free = true;
                }
                earlier += 1;
            }
            if !free {
                let bank = (register as u32 % model.banks) as usize;
                served[bank] += 1;
                registers += 1;
                let here = served[bank].div_ceil(model.ports);
                if here > cycles {
                    cycles = here;
                }
            }
            slot += 1;
        }
        (cycles, registers)
    }
}

/// Stall cycles of the whole sequence, starting from an empty cache.
///
/// ```
/// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, stalls}};
/// let sequence = [Ffma::new([64, 72, 1]), Ffma::new([65, 72, 2])];
/// assert_eq!(stalls(&MAXWELL_REGISTERS, &sequence), 1);
/// ```
pub const fn stalls(model: &BankModel, sequence: &[Ffma]) -> u32 {
    let mut cache = ReuseCache::new();
    let mut total = 0;
    let mut i = 0;
    while i < sequence.len() {
        total += cache.issue(model, &sequence[i]);
        i += 1;
    }
    total
}

/// Registers that the whole sequence reads from the banks, not from the cache.
///
/// ```
/// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, flag_reuse, register_reads}};
/// let mut sequence = [Ffma::new([64, 72, 1]), Ffma::new([65, 72, 2])];
/// assert_eq!(register_reads(&MAXWELL_REGISTERS, &sequence), 6);
/// flag_reuse(&mut sequence);
/// assert_eq!(register_reads(&MAXWELL_REGISTERS, &sequence), 5);
/// ```
pub const fn register_reads(model: &BankModel, sequence: &[Ffma]) -> u32 {
    let mut cache = ReuseCache::new();
    let mut total = 0;
    let mut i = 0;
    while i < sequence.len() {
        total += cache.reads(model, &sequence[i]).1;
        cache.issue(model, &sequence[i]);
        i += 1;
    }
    total
}

/// Sets each reuse flag that saves a read: slot `s` of an instruction, if the next one reads the same register in the same slot.
///
/// ```
/// use layout_core::banks::registers::{Ffma, flag_reuse};
/// let mut sequence = [Ffma::new([64, 72, 1]), Ffma::new([65, 72, 2])];
/// flag_reuse(&mut sequence);
/// assert_eq!(sequence[0].reuse, [false, true, false]); // both read R72 in slot b
/// ```
pub const fn flag_reuse(sequence: &mut [Ffma]) {
    let mut i = 0;
    while i < sequence.len() {
        let mut slot = 0;
        while slot < 3 {
            sequence[i].reuse[slot] = i + 1 < sequence.len()
                && sequence[i + 1].sources[slot] == sequence[i].sources[slot];
            slot += 1;
        }
        i += 1;
    }
}
