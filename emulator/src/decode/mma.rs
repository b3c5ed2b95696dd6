//! Decoding of `mma.sync` and `mma.sp.sync` (PTX ISA, sections 9.7.14.5 and 9.7.14.6).
//!
//! A fragment has as many registers as its matrix has elements, spread over 32 lanes. A sparse A has half as many columns as its product is
//! deep. Example: `mma.sp.sync.aligned.m16n8k32` of f16 takes four registers of A (16 x 16 elements that are kept) and four of B (32 x 8).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{Mma, MmaType, Op, Sparse, Sums, metadata_bits};
use crate::types::ScalarType;

/// Rows of A, depth, and the types of A, B, C and D.
type Form = (u8, u16, [MmaType; 4]);

fn is_float8(t: MmaType) -> bool {
    matches!(t, MmaType::E4m3 | MmaType::E5m2)
}

fn is_int8(t: MmaType) -> bool {
    matches!(t, MmaType::S8 | MmaType::U8)
}

fn is_int4(t: MmaType) -> bool {
    matches!(t, MmaType::S4 | MmaType::U4)
}

fn is_half_or_single(t: MmaType) -> bool {
    matches!(t, MmaType::F16 | MmaType::F32)
}

/// Whether `mma.sync` has this form.
fn is_known((m, k, [a, b, c, d]): Form) -> bool {
    use MmaType as T;
    match (m, k) {
        (8, 4) if a == T::F16 && b == T::F16 => {
            is_half_or_single(c) && is_half_or_single(d) && !(c == T::F32 && d == T::F16)
        }
        (16, 8 | 16) if a == T::F16 && b == T::F16 => is_half_or_single(c) && c == d,
        (16, 8 | 16) if a == T::Bf16 && b == T::Bf16 => c == T::F32 && d == T::F32,
        (16, 4 | 8) if a == T::Tf32 && b == T::Tf32 => c == T::F32 && d == T::F32,
        (16, 16 | 32) if is_float8(a) && is_float8(b) => is_half_or_single(c) && c == d,
        (16, 16 | 32) | (8, 16) if is_int8(a) && is_int8(b) => c == T::S32 && d == T::S32,
        (8, 32) | (16, 32 | 64) if is_int4(a) && is_int4(b) => c == T::S32 && d == T::S32,
        (8, 128) | (16, 128 | 256) => [a, b, c, d] == [T::B1, T::B1, T::S32, T::S32],
        (8, 4) | (16, 4 | 8 | 16) => [a, b, c, d] == [T::F64; 4],
        _ => false,
    }
}

/// Whether `mma.sp.sync` has this form.
fn is_known_sparse((m, k, [a, b, c, d]): Form) -> bool {
    use MmaType as T;
    let single = c == T::F32 && d == T::F32;
    m == 16
        && match (a, k) {
            (T::F16, 16 | 32) => b == a && is_half_or_single(c) && c == d,
            (T::Bf16, 16 | 32) | (T::Tf32, 8 | 16) => b == a && single,
            (T::E4m3 | T::E5m2, 64) => is_float8(b) && is_half_or_single(c) && c == d,
            (T::S8 | T::U8, 32 | 64) => is_int8(b) && c == T::S32 && d == T::S32,
            (T::S4 | T::U4, 64 | 128) => is_int4(b) && c == T::S32 && d == T::S32,
            _ => false,
        }
}

fn bits(t: MmaType) -> usize {
    match t {
        MmaType::F64 => 64,
        MmaType::F32 | MmaType::S32 | MmaType::Tf32 => 32,
        MmaType::F16 | MmaType::Bf16 => 16,
        MmaType::E4m3 | MmaType::E5m2 | MmaType::S8 | MmaType::U8 => 8,
        MmaType::S4 | MmaType::U4 => 4,
        MmaType::B1 => 1,
    }
}

/// Registers of 32 bits, or 64 for f64, that hold `elements` spread over 32 lanes.
fn registers(elements: usize, t: MmaType) -> usize {
    elements / 32 * bits(t) / if t == MmaType::F64 { 64 } else { 32 }
}

/// The type of a register of such elements.
fn register_type(t: MmaType) -> ScalarType {
    match t {
        MmaType::F64 => ScalarType::F64,
        MmaType::F32 => ScalarType::F32,
        MmaType::F16 => ScalarType::F16x2,
        MmaType::Bf16 => ScalarType::Bf16x2,
        MmaType::Tf32 => ScalarType::Tf32,
        MmaType::S32 => ScalarType::S32,
        _ => ScalarType::B32,
    }
}

impl<'a> Decoder<'a> {
    /// `mma.sync` and `mma.sp.sync`.
    pub(super) fn mma(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let ordered = m.take("sp::ordered_metadata");
        let sparse = ordered || m.take("sp");
        Self::aligned(m)?;
        let shape = m.find(|s| {
            Some(match s {
                "m8n8k4" => (8u8, 4u16),
                "m8n8k16" => (8, 16),
                "m8n8k32" => (8, 32),
                "m8n8k128" => (8, 128),
                "m16n8k4" => (16, 4),
                "m16n8k8" => (16, 8),
                "m16n8k16" => (16, 16),
                "m16n8k32" => (16, 32),
                "m16n8k64" => (16, 64),
                "m16n8k128" => (16, 128),
                "m16n8k256" => (16, 256),
                _ => return None,
            })
        });
        let Some((rows, k)) = shape else {
            return m.unsupported("this shape");
        };
        let mut layout = || m.find(|s| matches!(s, "row" | "col").then_some(s));
        let (Some(a_order), Some(b_order)) = (layout(), layout()) else {
            return m.invalid("the orders of A and B are needed, such as .row.col");
        };
        let satfinite = m.take("satfinite");
        let mut ty = || Self::mma_type(m);
        let (d_ty, a_ty, b_ty, c_ty) = (ty()?, ty()?, ty()?, ty()?);
        let form = (rows, k, [a_ty, b_ty, c_ty, d_ty]);
        let known = if sparse {
            is_known_sparse(form)
        } else {
            is_known(form)
        };
        if !known || (satfinite && d_ty != MmaType::S32) {
            return m.unsupported("this combination of shape and types");
        }
        let quads = rows == 8 && a_ty == MmaType::F16;
        if (a_order, b_order) != ("row", "col") && !quads {
            return m.invalid(
                "only m8n8k4 of f16 has other orders than .row.col (row-major A, column-major B)",
            );
        }
        let xor = m.take("xor");
        let is_bits = a_ty == MmaType::B1;
        if is_bits && !((xor || m.take("and")) && m.take("popc")) {
            return m.invalid("`.and.popc` or `.xor.popc` is needed");
        }
        if (xor && !is_bits) || (is_bits && satfinite) {
            return m.invalid(".xor is for single bits, which have no .satfinite");
        }
        if m.find(|s| matches!(s, "rn" | "rz" | "rm" | "rp").then_some(s))
            .is_some_and(|r| r != "rn" || d_ty != MmaType::F64)
        {
            return m.unsupported("this rounding");
        }
        let count = if sparse { 6 } else { 4 };
        Self::count(i, count..=count)?;
        let (rows_n, k_n) = (usize::from(rows), usize::from(k));
        let kept = if sparse { k_n / 2 } else { k_n };
        // Four products of 8 x 8 x 4, each by eight lanes.
        let products = if quads { 4 } else { 1 };
        let mut factor = |o, elements: usize, t| {
            let n = registers(elements * products, t);
            self.fragment(o, register_type(t), n, false)
        };
        let a = factor(&i.operands[1], rows_n * kept, a_ty)?;
        let b = factor(&i.operands[2], 8 * k_n, b_ty)?;
        let c = factor(&i.operands[3], rows_n * 8, c_ty)?;
        let sparse = if sparse {
            let full = metadata_bits(a_ty, u32::from(k)) == 64;
            let selectors = if full { 0 } else { 3 };
            Some(self.sparse(&i.operands[4..], selectors, ordered)?)
        } else {
            None
        };
        let n = registers(rows_n * 8 * products, d_ty);
        let d = self.fragment(&i.operands[0], register_type(d_ty), n, true)?;
        Ok(Op::Mma(Box::new(Mma {
            m: rows,
            k,
            a_ty,
            b_ty,
            c_ty,
            d_ty,
            satfinite,
            xor,
            sums: self.sums([a_ty, b_ty], d_ty, false),
            by_columns: [a_order, b_order].map(|order| order == "col"),
            sparse,
            d,
            a,
            b,
            c,
        })))
    }

    /// The type of the elements of a matrix.
    fn mma_type(m: &mut Mods<'a>) -> Result<MmaType> {
        let small = match m.list.first().map(|(word, _)| *word) {
            Some("s4") => Some(MmaType::S4),
            Some("u4") => Some(MmaType::U4),
            Some("b1") => Some(MmaType::B1),
            _ => None,
        };
        if let Some(small) = small {
            m.list.remove(0);
            return Ok(small);
        }
        Ok(match m.ty()? {
            ScalarType::F16 => MmaType::F16,
            ScalarType::Bf16 => MmaType::Bf16,
            ScalarType::Tf32 => MmaType::Tf32,
            ScalarType::F64 => MmaType::F64,
            ScalarType::F32 => MmaType::F32,
            ScalarType::E4m3 => MmaType::E4m3,
            ScalarType::E5m2 => MmaType::E5m2,
            ScalarType::S8 => MmaType::S8,
            ScalarType::U8 => MmaType::U8,
            ScalarType::S32 => MmaType::S32,
            _ => return m.unsupported("this type"),
        })
    }

    /// The register of the metadata and the selector, which may be 0 to `selectors`.
    pub(super) fn sparse(
        &mut self,
        operands: &[OperandAst<'a>],
        selectors: u8,
        ordered: bool,
    ) -> Result<Sparse> {
        let metadata = &operands[0];
        if matches!(metadata.kind, OperandKind::Int(_) | OperandKind::F32(_)) {
            return Self::type_error(metadata, "a register with the metadata of A");
        }
        let meta = self.src(metadata, ScalarType::B32)?;
        let selector = match operands[1].kind {
            OperandKind::Int(v) => u8::try_from(v).ok().filter(|v| *v <= selectors),
            _ => None,
        };
        let Some(selector) = selector else {
            let expected = match selectors {
                0 => "the sparsity selector 0: all lanes give metadata".to_owned(),
                _ => format!("a sparsity selector from 0 to {selectors}"),
            };
            return Self::type_error(&operands[1], &expected);
        };
        Ok(Sparse {
            meta,
            selector,
            ordered,
        })
    }

    /// How the tensor cores of the module's target add.
    pub(super) fn sums(&self, factors: [MmaType; 2], sum: MmaType, wgmma: bool) -> Sums {
        let digits = self
            .module
            .target
            .trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let arch = digits[..end.unwrap_or(digits.len())].parse();
        Sums::of(arch.unwrap_or(90), factors, sum, wgmma)
    }
}
