//! Memory operands. The fields are private and the constructors take index expressions: no emitter can write an address
//! of its own.

use core::fmt;

use super::kernel::{Kernel, LoopHandle};
use super::text::Reg;
use crate::index::Expr;

/// A state space that kernels address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// `.global`: 64-bit addresses.
    Global,
    /// `.shared`: 32-bit addresses.
    Shared,
}

impl Space {
    /// How PTX writes it in an instruction.
    pub fn suffix(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
        }
    }
}

/// `[base + immediate]`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    space: Space,
    base: Reg,
    immediate: i64,
}

impl Address {
    /// Its state space.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The register that holds its run-time part.
    pub fn base(&self) -> Reg {
        self.base
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.immediate {
            0 => write!(f, "[{}]", self.base),
            k => write!(f, "[{}+{k}]", self.base),
        }
    }
}

/// What PTX accepts as an immediate offset.
fn is_immediate(k: i64) -> bool {
    i32::try_from(k).is_ok()
}

impl Kernel {
    /// `e` as a run-time part and a constant that fits an instruction's immediate.
    fn split(&mut self, e: Expr) -> (Expr, i64) {
        let (_, k) = self.pool.terms(e);
        if k == 0 || !is_immediate(k) {
            return (e, 0);
        }
        let less = self.pool.constant(-k);
        (self.pool.add(e, less), k)
    }

    /// The operand for the byte address `e` (which includes the base of its buffer), hoisted as far as its variables allow.
    pub fn address(&mut self, space: Space, e: Expr) -> Address {
        let (base, immediate) = self.split(e);
        let base = self.address_register(space, base);
        self.record_address(base);
        Address {
            space,
            base,
            immediate,
        }
    }

    /// The operand for the byte address `e`, which moves by the same step with each turn of the loop: one addition a turn.
    pub fn induction(&mut self, space: Space, e: Expr, of: &LoopHandle) -> Address {
        let (base, immediate) = self.split(e);
        let base = self.induction_register(space, base, of);
        self.record_address(base);
        Address {
            space,
            base,
            immediate,
        }
    }

    /// `e` as a variable of the loop, which moves by the same step with each turn: what several addresses are measured from.
    pub fn induction_value(&mut self, name: &str, e: Expr, of: &LoopHandle) -> Expr {
        let reg = self.induction_register(Space::Global, e, of);
        self.bind_level(name, reg, e, of)
    }

    /// The operand for the byte address `e` of a buffer with two stages, where `stage` (0 or 1) alternates with each turn
    /// of the loop: one exclusive or a turn. Returns none if the two stages do not differ by one constant xor.
    pub fn alternating(
        &mut self,
        space: Space,
        e: Expr,
        stage: &str,
        of: &LoopHandle,
    ) -> Option<Address> {
        let (base, immediate) = self.split(e);
        let base = self.alternating_register(base, stage, of)?;
        self.record_address(base);
        Some(Address {
            space,
            base,
            immediate,
        })
    }

    /// An address at a constant distance from another, if the sum still is an immediate.
    pub fn offset(&mut self, a: Address, bytes: Expr) -> Option<Address> {
        let k = self.pool.as_const(bytes)?;
        is_immediate(a.immediate + k).then_some(Address {
            immediate: a.immediate + k,
            ..a
        })
    }
}
