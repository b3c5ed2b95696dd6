//! Functions and calls: what a call copies, and what its callers need to know of a function.

use super::Reg;

/// A place that a call copies from or to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Bytes at an offset of the frame.
    Memory { offset: u32, bytes: u32 },
    /// A register or constant of so many bytes.
    Register { reg: Reg, bytes: u32 },
}

impl Slot {
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Memory { bytes, .. } | Self::Register { bytes, .. } => bytes,
        }
    }
}

/// Functions that no module defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Printf,
    Malloc,
    Free,
    Assert,
}

/// Whom a call calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A function by its place in [`Program::functions`].
    Function(u32),
    /// The function whose address a register holds.
    Register(Reg),
    Service(Service),
}

/// `call`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) returns: Vec<Slot>,
    pub(crate) args: Vec<Slot>,
    /// Bytes of the caller's own frame, above which the callee's starts.
    pub(crate) frame: u32,
    /// Of a recursive function: its registers that matter to it afterwards, if it is active already. `None` if all may.
    pub(crate) live: Option<Vec<Reg>>,
}

/// A function as its callers need it.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) entry: u32,
    /// Bytes of local memory: parameters and variables.
    pub(crate) frame: u32,
    pub(crate) returns: Vec<Slot>,
    pub(crate) params: Vec<Slot>,
    /// Its registers. They live in one place, so a call of a function that may be active already saves them.
    pub(crate) registers: Vec<Reg>,
    /// Those of them for which it is tracked whether they are defined.
    pub(crate) tracked: Vec<Reg>,
    /// Rows that hold addresses in its frame, with the offset of each.
    pub(crate) addresses: Vec<(Reg, u32)>,
    /// Whether it may call itself, directly or through others.
    pub(crate) recursive: bool,
    /// What its address is: see [`function_address`].
    pub(crate) number: u32,
}

/// The address of function `number` of a module: small, so that it fits 32 bits, and no address of any memory.
pub(crate) fn function_address(number: u32) -> u64 {
    0x4000 + 16 * u64::from(number)
}

/// What `stacksave`, `stackrestore` and `alloca` do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// The end of the frame into a register.
    Save(Reg),
    /// The end of the frame from a register.
    Restore(Reg),
    /// Bytes at the end of the frame.
    Alloca {
        /// Their start.
        d: Reg,
        /// Their number.
        size: Reg,
        /// A power of two.
        align: u32,
    },
}
