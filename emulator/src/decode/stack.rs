//! Decoding of `stacksave`, `stackrestore` and `alloca` (PTX ISA, section 9.7.17).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandKind};
use crate::ir::{Op, Stack};
use crate::types::ScalarType;

impl<'a> Decoder<'a> {
    /// One of the three, all of `.u32` or `.u64`.
    pub(super) fn stack(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ty = m.ty()?;
        if !matches!(ty, ScalarType::U32 | ScalarType::U64) {
            return m.invalid("the type is .u32 or .u64");
        }
        if i.name != "alloca" {
            Self::count(i, 1..=1)?;
        }
        Ok(Op::Stack(match i.name {
            "stacksave" => Stack::Save(self.dst_reg(&i.operands[0], ty, false)?),
            "stackrestore" => {
                if !matches!(i.operands[0].kind, OperandKind::Name { .. }) {
                    return Self::type_error(&i.operands[0], "a register that stacksave has set");
                }
                Stack::Restore(self.src_reg(&i.operands[0], ty, false)?)
            }
            _ => {
                Self::count(i, 2..=3)?;
                let align = match i.operands.get(2).map(|o| (o, &o.kind)) {
                    None => 8,
                    Some((_, OperandKind::Int(n)))
                        if matches!(n, 1..=0x80_0000) && n & (n - 1) == 0 =>
                    {
                        *n as u32
                    }
                    Some((o, _)) => {
                        return Self::type_error(o, "an alignment: a power of two up to 2^23");
                    }
                };
                let size = self.src_reg(&i.operands[1], ty, false)?;
                let d = self.dst_reg(&i.operands[0], ty, false)?;
                Stack::Alloca { d, size, align }
            }
        }))
    }
}
