//! What an integer instruction means, bit for bit: the one definition that the prover's rules are tested against.
//!
//! A register holds bits, and an instruction reads them as its type says. A number stands for the bits of a register if the two are the same modulo `2^32`, or `2^64`:
//!
//! ```text
//! bits 0xfffffffd        -3 or 4294967293, whichever the instruction reads
//! min.s32 with 5         -3
//! min.u32 with 5          5
//! ```
//!
//! [`Machine::integer_op`](crate::prove::walk::execute::Machine::integer_op) has the rules for values with symbols. Where all operands are numbers, it asks here.

use crate::index::code::{Op, Ty};
use crate::ir::{Binary, Type};

/// An integer operation: of an index expression or of values, on the same machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::prove) enum Operation {
    /// Of an index expression.
    Index(Op),
    /// What a division leaves.
    Rem,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bits of either.
    Or,
}

impl Operation {
    /// The integer operation of a pair of values; none of an operation on floats alone.
    pub(in crate::prove) fn of(op: Binary) -> Option<Self> {
        Some(match op {
            Binary::Add => Self::Index(Op::Add),
            Binary::Sub => Self::Index(Op::Sub),
            Binary::Mul => Self::Index(Op::Mul),
            Binary::MulHi => Self::Index(Op::MulHi),
            Binary::Div => Self::Index(Op::Div),
            Binary::Rem => Self::Rem,
            Binary::Shl => Self::Index(Op::Shl),
            Binary::Shr => Self::Index(Op::Shr),
            Binary::And => Self::Index(Op::And),
            Binary::Xor => Self::Index(Op::Xor),
            Binary::Min => Self::Min,
            Binary::Max => Self::Max,
            Binary::Or => Self::Or,
            Binary::MinNan | Binary::MaxNan => return None,
        })
    }
}

/// The bits of a type.
pub(in crate::prove) fn width(ty: Ty) -> u32 {
    if ty.wide() { 64 } else { 32 }
}

/// The type as which instructions on an integer type read a register; none of types that are no integers of 32 or 64 bits. Bits without a sign are read as unsigned
/// ones, which `shr` fills with zeros.
pub(in crate::prove) fn integer_type(ty: Type) -> Option<Ty> {
    Some(match ty {
        Type::U32 | Type::B32 => Ty::U32,
        Type::S32 => Ty::S32,
        Type::U64 | Type::B64 => Ty::U64,
        Type::S64 => Ty::S64,
        _ => return None,
    })
}

/// The unsigned type of the same width.
pub(in crate::prove) fn unsigned(ty: Ty) -> Ty {
    if ty.wide() { Ty::U64 } else { Ty::U32 }
}

/// The number that a type reads where the bits are those of `k`.
pub(in crate::prove) fn read(k: i128, ty: Ty) -> i128 {
    let (least, most) = ty.range();
    least + (k - least).rem_euclid(most - least + 1)
}

/// The result of an operation, as bits; `None` for a division by 0, whose result is not defined.
pub(in crate::prove) fn value(op: Operation, ty: Ty, from: Ty, args: &[i64]) -> Option<i64> {
    let of = |i: usize, ty: Ty| read(args.get(i).copied().unwrap_or(0).into(), ty);
    let (a, b) = (of(0, ty), of(1, ty));
    // Amounts are unsigned numbers of 32 bits, and those beyond the width shift everything out.
    let amount = of(1, Ty::U32).min(i128::from(width(ty))) as u32;
    let wide = |ty: Ty| if ty.signed() { Ty::S64 } else { Ty::U64 };
    let (result, ty) = match op {
        Operation::Rem => (a.checked_rem(b)?, ty),
        Operation::Min => (a.min(b), ty),
        Operation::Max => (a.max(b), ty),
        Operation::Or => (a | b, ty),
        Operation::Index(op) => match op {
            Op::Add => (a + b, ty),
            Op::Sub => (a - b, ty),
            Op::Mul => (a.wrapping_mul(b), ty),
            Op::Mad => (a.wrapping_mul(b).wrapping_add(of(2, ty)), ty),
            Op::MulWide => (a * b, wide(ty)),
            Op::MadWide => (a * b + of(2, wide(ty)), wide(ty)),
            Op::MulHi if ty == Ty::U64 => (((a as u128 * b as u128) >> 64) as i128, ty),
            Op::MulHi => ((a * b) >> width(ty), ty),
            Op::Shl => ((a as u128).checked_shl(amount).unwrap_or(0) as i128, ty),
            Op::Shr => (a >> amount, ty),
            Op::And => (a & b, ty),
            Op::Xor => (a ^ b, ty),
            Op::Div => (a.checked_div(b)?, ty),
            Op::Widen | Op::Narrow => (of(0, from), ty),
        },
    };
    let result = read(result, ty);
    Some(result as u64 as i64)
}

/// Whether two registers compare so.
#[cfg(test)]
pub(in crate::prove) fn compare(cmp: crate::ir::Cmp, ty: Ty, a: i64, b: i64) -> bool {
    use crate::ir::Cmp;
    let (a, b) = (read(a.into(), ty), read(b.into(), ty));
    match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne | Cmp::Neu => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
    }
}
