//! The two sides of a product: x runs along the columns of C and belongs to B, y along its rows and belongs to A.

use std::fmt;

use crate::gemm::{Operands, Trans};

/// One of the two operands, named by the axis of C that it runs along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Columns of C: op(B).
    X,
    /// Rows of C: op(A).
    Y,
}

impl Side {
    /// Both, in the order of the stages.
    pub const ALL: [Self; 2] = [Self::X, Self::Y];

    /// Whether this side's index is contiguous in memory; otherwise k is.
    pub fn is_along(self, operands: Operands) -> bool {
        match self {
            Self::X => operands.b == Trans::N,
            Self::Y => operands.a == Trans::T,
        }
    }

    /// What its global loads are called in listings.
    pub(super) fn load(self) -> &'static str {
        ["loadX", "loadY"][self as usize]
    }

    /// What its shared stores are called: the tag of the instructions.
    pub(super) fn store(self) -> &'static str {
        ["writeX", "writeY"][self as usize]
    }

    /// What its shared loads are called.
    pub(super) fn read(self) -> &'static str {
        ["readX", "readY"][self as usize]
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["x", "y"][*self as usize])
    }
}
