//! Rows that are not aligned to words, in pieces: loads of 1, 2 or 4 bytes and more, put together to words.

use layout_codegen::ir::Kernel;
use layout_codegen::ir::instructions::{Instructions, Reg, Type};

/// The type of a load of `size` bytes into 32-bit registers.
pub(crate) fn bits(size: i64) -> Type {
    match size {
        1 => Type::U8,
        2 => Type::U16,
        _ => Type::B32,
    }
}

/// Words from pieces of `size` bytes, each in the low bits of a register.
pub(crate) fn put_together(k: &mut Kernel, pieces: &[Reg], size: i64) -> Vec<Reg> {
    match size {
        1 => pieces
            .chunks(4)
            .map(|b| {
                let low = k.permute(b[0], b[1], 0x0040);
                let high = k.permute(b[2], b[3], 0x0040);
                k.permute(low, high, 0x5410)
            })
            .collect(),
        2 => pieces
            .chunks(2)
            .map(|h| k.permute(h[0], h[1], 0x5410))
            .collect(),
        _ => pieces.to_vec(),
    }
}
