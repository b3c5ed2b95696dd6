//! Loads and stores: the pointer with its space and type, and vectors of registers.

use crate::ir::{Address, Space, Type};

use super::expression::{Operands, constant, is_atom};

/// The type of an element in memory.
pub(super) fn scalar(ty: Type) -> &'static str {
    match ty {
        Type::U8 => "uchar",
        Type::S8 => "char",
        // Bits: arithmetic on them is what `cl_khr_fp16` would be for.
        Type::B16 | Type::U16 | Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => "ushort",
        Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 => "uint",
        Type::B64 | Type::U64 | Type::S64 => "ulong",
        Type::F32 => "float",
        Type::F64 => "double",
    }
}

/// The type of `n` elements in memory.
pub(super) fn vector(ty: Type, n: usize) -> String {
    match n {
        1 => scalar(ty).to_owned(),
        _ => format!("{}{n}", scalar(ty)),
    }
}

/// What is read or written: `n` elements at an address, as an lvalue.
pub(super) fn place(
    operands: &Operands<'_>,
    at: Address,
    ty: Type,
    n: usize,
    write: bool,
) -> String {
    let (constant, space) = match at.space() {
        _ if write => ("", space(at.space())),
        Space::Global if !operands.writable(at.base()) => ("const ", "__global"),
        other => ("const ", space(other)),
    };
    let to = vector(ty, n);
    let from = address(operands, at);
    if is_atom(&from) {
        return format!("*({constant}{space} {to} *){from}");
    }
    format!("*({constant}{space} {to} *)({from})")
}

fn space(space: Space) -> &'static str {
    match space {
        Space::Global => "__global",
        Space::Shared => "__local",
    }
}

/// The address itself: local memory from its start.
pub(super) fn address(operands: &Operands<'_>, at: Address) -> String {
    let base = operands.register(at.base());
    let base = match at.space() {
        Space::Shared => format!("smem + {base}"),
        // An address that was computed as a number.
        Space::Global if !operands.is_pointer(at.base()) => {
            return match at.immediate() {
                0 => base,
                k => format!("{base} + {}", constant(k, true)),
            };
        }
        Space::Global => base,
    };
    match at.immediate() {
        0 => base,
        k if k < 0 => format!("{base} - {}", k.unsigned_abs()),
        k => format!("{base} + {k}"),
    }
}
