//! Decoding of `wmma` (PTX ISA, section 9.7.14.4).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind, Space};
use crate::ir::{
    Access, Address, Fragment, MmaType, NONE, Op, Order, Reg, Row, RowInit, WmmaMemory,
    WmmaMultiply,
};
use crate::types::{File, ScalarType};

/// M, N and K of a shape.
type Shape = (u8, u8, u8);

fn shape(m: &mut Mods<'_>) -> Option<Shape> {
    m.find(|s| {
        Some(match s {
            "m16n16k16" => (16, 16, 16),
            "m32n8k16" => (32, 8, 16),
            "m8n32k16" => (8, 32, 16),
            "m16n16k8" => (16, 16, 8),
            "m8n8k4" => (8, 8, 4),
            _ => return None,
        })
    })
}

fn element(ty: ScalarType) -> Option<MmaType> {
    Some(match ty {
        ScalarType::F16 => MmaType::F16,
        ScalarType::Bf16 => MmaType::Bf16,
        ScalarType::Tf32 => MmaType::Tf32,
        ScalarType::F32 => MmaType::F32,
        ScalarType::F64 => MmaType::F64,
        ScalarType::S8 => MmaType::S8,
        ScalarType::U8 => MmaType::U8,
        ScalarType::S32 => MmaType::S32,
        _ => return None,
    })
}

/// Whether factors of type `a` come in this shape.
fn fits(a: MmaType, s: Shape) -> bool {
    match a {
        MmaType::Tf32 => s == (16, 16, 8),
        MmaType::F64 => s == (8, 8, 4),
        _ => s.2 == 16,
    }
}

fn bits(ty: MmaType) -> u32 {
    match ty {
        MmaType::F64 => 64,
        MmaType::F32 | MmaType::S32 | MmaType::Tf32 => 32,
        MmaType::F16 | MmaType::Bf16 => 16,
        _ => 8,
    }
}

impl<'a> Decoder<'a> {
    /// `wmma.load`, `wmma.store` and `wmma.mma`.
    pub(super) fn wmma(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let load = m.take("load");
        let store = m.take("store");
        if !load && !store {
            return self.wmma_multiply(i, m);
        }
        let Some(which) = m.find(|s| matches!(s, "a" | "b" | "c" | "d").then_some(s)) else {
            return m.invalid("one of .a, .b, .c, .d is needed");
        };
        if !m.take("sync") || !m.take("aligned") {
            return m.invalid(".sync.aligned is needed");
        }
        let layout = m.find(|s| matches!(s, "row" | "col").then_some(s));
        let (Some(layout), Some(s)) = (layout, shape(m)) else {
            return m.unsupported("this shape");
        };
        let space = m.find(|s| match s {
            "global" => Some(Space::Global),
            "shared" | "shared::cta" => Some(Space::Shared),
            _ => None,
        });
        let ty = m.ty()?;
        let Some(element_ty) = element(ty) else {
            return m.unsupported("this type");
        };
        let (rows, columns) = match which {
            "a" => (s.0, s.2),
            "b" => (s.2, s.1),
            _ => (s.0, s.1),
        };
        Self::count(i, 2..=3)?;
        let (at, address_at) = if load { (0, 1) } else { (1, 0) };
        let address = self.address(&i.operands[address_at])?;
        let stride = match i.operands.get(2) {
            Some(o) => self.src(o, ScalarType::U32)?,
            None => NONE,
        };
        let is_c = matches!(which, "c" | "d");
        if !is_c && !fits(element_ty, s) {
            return m.invalid("this type in this shape");
        }
        let fragment = self.wmma_fragment(&i.operands[at], rows, columns, element_ty, load)?;
        let wide = bits(element_ty) == 64;
        let bytes = (bits(element_ty) / 8) as u8;
        let file = if wide { File::R64 } else { File::R32 };
        // Rows that no register names: addresses and data of one piece of each lane.
        let address_row = self.fresh_row(File::R64, RowInit::Const(0));
        let none = Reg {
            file: File::R32,
            row: NONE,
        };
        let mut regs = [none; 8];
        for reg in regs.iter_mut().take(if wide { 2 } else { 4 }) {
            let row = self.fresh_row(file, RowInit::Const(0));
            *reg = Reg { file, row };
        }
        let space = space.unwrap_or(Space::Generic);
        self.grain(space, u32::from(bytes));
        Ok(Op::WmmaMemory(Box::new(WmmaMemory {
            store,
            fragment,
            column_major: layout == "col",
            address,
            stride,
            element: Access {
                space,
                address: Address {
                    base: Some(Reg {
                        file: File::R64,
                        row: address_row,
                    }),
                    offset: 0,
                },
                bytes,
                count: 1,
                signed: false,
                strong: false,
                order: Order::default(),
                regs,
            },
        })))
    }

    fn wmma_multiply(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if !m.take("mma") {
            return m.invalid("it is wmma.load, wmma.store or wmma.mma");
        }
        if !m.take("sync") || !m.take("aligned") {
            return m.unsupported("this form");
        }
        let mut layout = || m.find(|s| matches!(s, "row" | "col").then_some(()));
        if layout().is_none() || layout().is_none() {
            return m.invalid("two layouts are needed");
        }
        let Some(s) = shape(m) else {
            return m.unsupported("this shape");
        };
        if m.find(|s| matches!(s, "rn" | "rz" | "rm" | "rp").then_some(s))
            .is_some_and(|r| r != "rn")
        {
            return m.unsupported("this rounding");
        }
        let mut types = Vec::new();
        while let Some(ty) = m.find(ScalarType::from_name) {
            types.push(element(ty));
        }
        let types: Option<Vec<MmaType>> = types.into_iter().collect();
        // Without types of A and B they are f16.
        let (d_ty, a_ty, b_ty, c_ty) = match types.as_deref() {
            Some([d, c]) => (*d, MmaType::F16, MmaType::F16, *c),
            Some([d, a, b, c]) => (*d, *a, *b, *c),
            _ => return m.unsupported("these types"),
        };
        let sums = match a_ty {
            MmaType::F16 => {
                matches!(c_ty, MmaType::F16 | MmaType::F32)
                    && matches!(d_ty, MmaType::F16 | MmaType::F32)
            }
            MmaType::Bf16 | MmaType::Tf32 => c_ty == MmaType::F32 && d_ty == MmaType::F32,
            MmaType::F64 => c_ty == MmaType::F64 && d_ty == MmaType::F64,
            MmaType::S8 | MmaType::U8 => c_ty == MmaType::S32 && d_ty == MmaType::S32,
            _ => false,
        };
        if a_ty != b_ty || !sums || !fits(a_ty, s) {
            return m.invalid("this combination of shape and types");
        }
        let satfinite = m.take("satfinite");
        Self::count(i, 4..=4)?;
        let a = self.wmma_fragment(&i.operands[1], s.0, s.2, a_ty, false)?;
        let b = self.wmma_fragment(&i.operands[2], s.2, s.1, b_ty, false)?;
        let c = self.wmma_fragment(&i.operands[3], s.0, s.1, c_ty, false)?;
        let d = self.wmma_fragment(&i.operands[0], s.0, s.1, d_ty, true)?;
        Ok(Op::WmmaMultiply(Box::new(WmmaMultiply {
            a,
            b,
            c,
            d,
            satfinite,
            sums: self.sums([a_ty, b_ty], d_ty, false),
        })))
    }

    /// The registers of a fragment: at least as many as its elements need.
    fn wmma_fragment(
        &mut self,
        o: &OperandAst<'a>,
        rows: u8,
        columns: u8,
        ty: MmaType,
        write: bool,
    ) -> Result<Fragment> {
        let list = match &o.kind {
            OperandKind::Vector(v) => v.as_slice(),
            _ => std::slice::from_ref(o),
        };
        let reg_ty = if ty == MmaType::F64 {
            ScalarType::B64
        } else {
            ScalarType::B32
        };
        let elements = usize::from(rows) * usize::from(columns) / 32;
        let needed = (elements * bits(ty) as usize).div_ceil(reg_ty.bits() as usize);
        // Fragments of f16 factors have 8 registers whatever the shape.
        let expected = match ty {
            MmaType::F16 if columns == 16 || rows == 16 => &[needed, 8][..],
            _ => &[needed][..],
        };
        if !expected.contains(&list.len()) {
            return Self::type_error(o, &format!("{needed} registers in braces"));
        }
        let regs = list
            .iter()
            .map(|e| {
                if write {
                    self.dst_some(e, reg_ty)
                } else {
                    self.src(e, reg_ty)
                }
            })
            .collect::<Result<Vec<Row>>>()?;
        Ok(Fragment {
            rows,
            columns,
            ty,
            regs,
        })
    }
}
