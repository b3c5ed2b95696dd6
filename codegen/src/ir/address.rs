//! Memory operands. The fields are private and the constructors take index expressions: no emitter can write an address
//! of its own.

use super::kernel::{Kernel, LoopHandle};
use super::value::Reg;
use crate::index::{Expr, PoolId};

/// A state space that kernels address.
///
/// ```
/// use layout_codegen::ir::Space;
/// use layout_codegen::view::ViewError;
///
/// let error = ViewError::Space {
///     instruction: "ldmatrix",
///     writes: false,
///     wanted: Some(Space::Shared),
///     buffer: "x".to_owned(),
///     space: Space::Global,
/// };
/// assert_eq!(error.to_string(), "ldmatrix reads shared memory, and `x` is in global memory");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// `.global`: 64-bit addresses.
    Global,
    /// `.shared`: 32-bit addresses.
    Shared,
}

/// `[base + immediate]`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    space: Space,
    base: Reg,
    immediate: i64,
    /// What it means, by its number in the kernel.
    place: u32,
    /// The kernel's expressions, which tell it from other kernels.
    kernel: PoolId,
}

impl Address {
    /// Its state space.
    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// The register that holds its run-time part.
    pub(crate) fn base(&self) -> Reg {
        self.base
    }

    /// The kernel that it is of.
    pub(crate) fn kernel(&self) -> PoolId {
        self.kernel
    }

    /// What it means: a place of [`Entry::places`](super::Entry::places).
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// The address moved by bytes: a mistake on purpose.
    #[cfg(test)]
    pub(crate) fn moved(self, bytes: i64) -> Self {
        Self {
            immediate: self.immediate + bytes,
            ..self
        }
    }

    /// The constant that is added to it, in bytes.
    pub(crate) fn immediate(&self) -> i64 {
        self.immediate
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
    pub(crate) fn address(&mut self, space: Space, e: Expr, place: u32) -> Address {
        let (base, immediate) = self.split(e);
        let base = self.address_register(space, base);
        self.record_address(base);
        Address {
            space,
            base,
            immediate,
            place,
            kernel: self.pool.id(),
        }
    }

    /// `e` as a variable of the loop, which moves by the same step with each iteration: what several addresses are measured from.
    pub(crate) fn induction_value(&mut self, name: &str, e: Expr, of: &LoopHandle) -> Expr {
        let reg = self.induction_register(Space::Global, e, of);
        self.bind_level(name, reg, e, of)
    }

    /// The operand for the byte address `e` of a buffer with two stages, where `stage` (0 or 1) alternates with each iteration
    /// of the loop: one exclusive or an iteration. Returns none if the two stages do not differ by one constant xor.
    pub(crate) fn alternating(
        &mut self,
        space: Space,
        e: Expr,
        stage: &str,
        of: &LoopHandle,
        place: u32,
    ) -> Option<Address> {
        let (base, immediate) = self.split(e);
        let base = self.alternating_register(base, stage, of)?;
        self.record_address(base);
        Some(Address {
            space,
            base,
            immediate,
            place,
            kernel: self.pool.id(),
        })
    }
}
