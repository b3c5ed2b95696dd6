//! Decoding of `wgmma` (PTX ISA, sections 9.7.15.5 to 9.7.15.7).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{MmaType, Multiplicand, NONE, Op, Row, RowInit, Wgmma, metadata_bits};
use crate::types::{File, ScalarType};

/// The type named by a modifier, among those of `wgmma`.
fn element(s: &str) -> Option<MmaType> {
    Some(match s {
        "f16" => MmaType::F16,
        "bf16" => MmaType::Bf16,
        "tf32" => MmaType::Tf32,
        "e4m3" => MmaType::E4m3,
        "e5m2" => MmaType::E5m2,
        "s8" => MmaType::S8,
        "u8" => MmaType::U8,
        "b1" => MmaType::B1,
        "f32" => MmaType::F32,
        "s32" => MmaType::S32,
        _ => return None,
    })
}

/// Depth of one instruction, if the types go together.
fn depth(d: MmaType, a: MmaType, b: MmaType) -> Option<u16> {
    use MmaType as T;
    Some(match (d, a, b) {
        (T::F16 | T::F32, T::F16, T::F16) | (T::F32, T::Bf16, T::Bf16) => 16,
        (T::F32, T::Tf32, T::Tf32) => 8,
        (T::F16 | T::F32, T::E4m3 | T::E5m2, T::E4m3 | T::E5m2)
        | (T::S32, T::S8 | T::U8, T::S8 | T::U8) => 32,
        (T::S32, T::B1, T::B1) => 256,
        _ => return None,
    })
}

/// `m64n128k16`.
fn shape(s: &str) -> Option<(u16, u16)> {
    let (n, k) = s.strip_prefix("m64n")?.split_once('k')?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

impl<'a> Decoder<'a> {
    /// `wgmma` in all forms.
    pub(super) fn wgmma(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        self.program.uses_async = true;
        let what = m.find(|s| {
            matches!(s, "fence" | "commit_group" | "wait_group" | "mma_async").then_some(s)
        });
        let sparse = what == Some("mma_async") && m.take("sp");
        if !m.take("sync") || !m.take("aligned") {
            return m.invalid(".sync.aligned is needed");
        }
        match what {
            Some("fence") => {
                Self::count(i, 0..=0)?;
                Ok(Op::WgmmaFence)
            }
            Some("commit_group") => {
                Self::count(i, 0..=0)?;
                Ok(Op::WgmmaCommit)
            }
            Some("wait_group") => {
                Self::count(i, 1..=1)?;
                let OperandKind::Int(n @ 0..=7) = i.operands[0].kind else {
                    return Self::type_error(&i.operands[0], "a count of groups from 0 to 7");
                };
                Ok(Op::WgmmaWait(n as u32))
            }
            Some("mma_async") => self.mma_async(i, m, sparse),
            _ => m.invalid("one of .fence, .commit_group, .wait_group, .mma_async is needed"),
        }
    }

    fn mma_async(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>, sparse: bool) -> Result<Op> {
        let Some((n, k)) = m.find(shape) else {
            return m.invalid("a shape such as .m64n128k16 is needed");
        };
        let satfinite = m.take("satfinite");
        let (d_ty, a_ty, b_ty) = (m.find(element), m.find(element), m.find(element));
        let (Some(d_ty), Some(a_ty), Some(b_ty)) = (d_ty, a_ty, b_ty) else {
            return m.invalid("the types of D, A and B are needed");
        };
        let integer = d_ty == MmaType::S32;
        let bits = a_ty == MmaType::B1;
        let widths = if integer {
            n == 24 || n == 8 || n.is_multiple_of(16)
        } else {
            n.is_multiple_of(8)
        };
        let deep = depth(d_ty, a_ty, b_ty).map(|k| if sparse { 2 * k } else { k });
        if deep != Some(k) || !widths || !(8..=256).contains(&n) || (sparse && bits) {
            return m.invalid("this combination of shape and types");
        }
        if satfinite && (!integer || bits) {
            return m.invalid(".satfinite is for 8-bit integers");
        }
        if bits && !(m.take("and") && m.take("popc")) {
            return m.invalid("`.and.popc` is needed");
        }
        let registers = matches!(
            i.operands.get(1).map(|o| &o.kind),
            Some(OperandKind::Vector(_))
        );
        let halves = matches!(a_ty, MmaType::F16 | MmaType::Bf16);
        let scales = if integer { 0 } else { 2 };
        let transposes = match (halves, registers) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        // The metadata of a sparse A and its selector stand before scale-d.
        let more = if sparse { 2 } else { 0 };
        let count = 4 + more + scales + transposes;
        Self::count(i, count..=count)?;
        let immediate = |o: &OperandAst<'a>, allowed: [i64; 2]| match o.kind {
            OperandKind::Int(v) if allowed.contains(&v) => Ok(v == allowed[1]),
            _ => Self::type_error(o, &format!("{} or {}", allowed[0], allowed[1])),
        };
        let (mut negated, mut transposed) = ([false; 2], [false; 2]);
        for (k, x) in negated.iter_mut().enumerate().take(scales) {
            *x = immediate(&i.operands[4 + more + k], [1, -1])?;
        }
        for k in 0..transposes {
            let which = if registers { 1 } else { k };
            transposed[which] = immediate(&i.operands[4 + more + scales + k], [0, 1])?;
        }
        let a = if registers {
            Multiplicand::Registers {
                rows: self.wgmma_registers(&i.operands[1], a_ty, 4, false)?,
                negated: negated[0],
            }
        } else {
            Multiplicand::Shared {
                descriptor: self.src(&i.operands[1], ScalarType::B64)?,
                transposed: transposed[0],
                negated: negated[0],
            }
        };
        let b = Multiplicand::Shared {
            descriptor: self.src(&i.operands[2], ScalarType::B64)?,
            transposed: transposed[1],
            negated: negated[1],
        };
        let sparse = if sparse {
            let full = metadata_bits(a_ty, u32::from(k)) == 64;
            Some(self.sparse(&i.operands[3..], u8::from(!full), false)?)
        } else {
            None
        };
        let scale = self.src_pred(&i.operands[3 + more])?;
        // A row that is always defined, for the checks of the registers of wgmma.
        self.constant(File::R32, RowInit::Const(0));
        let registers = usize::from(n) / if d_ty == MmaType::F16 { 4 } else { 2 };
        let d = self.wgmma_registers(&i.operands[0], d_ty, registers, true)?;
        Ok(Op::Wgmma(Box::new(Wgmma {
            n,
            k,
            a_ty,
            b_ty,
            d_ty,
            satfinite,
            sums: self.sums([a_ty, b_ty], d_ty, true),
            d,
            a,
            b,
            sparse,
            scale,
        })))
    }

    /// `n` registers of 32 bits in braces.
    fn wgmma_registers(
        &mut self,
        o: &OperandAst<'a>,
        ty: MmaType,
        n: usize,
        write: bool,
    ) -> Result<Vec<Row>> {
        let OperandKind::Vector(list) = &o.kind else {
            return Self::type_error(o, &format!("{n} registers in braces"));
        };
        if list.len() != n {
            return Self::type_error(o, &format!("{n} registers in braces"));
        }
        let ty = match ty {
            MmaType::F32 => ScalarType::F32,
            MmaType::S32 => ScalarType::S32,
            MmaType::F16 => ScalarType::F16x2,
            _ => ScalarType::B32,
        };
        let ty = self.vector_type(list, ty);
        let mut rows = Vec::new();
        for e in list {
            let row = if write {
                self.dst_some(e, ty)?
            } else {
                self.src(e, ty)?
            };
            if write && rows.contains(&row) {
                return Self::type_error(e, "a register of the accumulator once");
            }
            debug_assert_ne!(row, NONE);
            rows.push(row);
        }
        Ok(rows)
    }
}
