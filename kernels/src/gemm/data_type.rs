//! Types of products: the elements of A, B and C, and what sums are kept in.

use std::fmt;

use layout_codegen::ir::Element;

/// Element types of A and B, with the type of C that goes with them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// IEEE binary32 by fused multiply-add.
    F32,
    /// IEEE binary16, accumulated in f32; C is f16.
    F16,
    /// IEEE binary16, accumulated in f16: twice the rate where the hardware has it, and the rounding errors that go with it; C is f16.
    F16Acc16,
    /// bfloat16, accumulated in f32; C is bf16.
    Bf16,
    /// f32 in memory, multiplied with 10 bits of mantissa, accumulated in f32.
    Tf32,
    /// IEEE binary64.
    F64,
    /// 8-bit integers, accumulated in 32-bit integers.
    S8,
    /// 8-bit floats with 4 bits of exponent, accumulated in f32; C is f32.
    E4m3,
    /// 8-bit floats with 5 bits of exponent, accumulated in f32; C is f32.
    E5m2,
}

impl DataType {
    /// Every type.
    pub const ALL: [DataType; 9] = [
        DataType::F32,
        DataType::F16,
        DataType::F16Acc16,
        DataType::Bf16,
        DataType::Tf32,
        DataType::F64,
        DataType::S8,
        DataType::E4m3,
        DataType::E5m2,
    ];

    /// The element type of A and B in memory.
    pub const fn operand(self) -> Element {
        match self {
            DataType::F32 | DataType::Tf32 => Element::F32,
            DataType::F16 | DataType::F16Acc16 => Element::F16,
            DataType::Bf16 => Element::Bf16,
            DataType::F64 => Element::F64,
            DataType::S8 => Element::S8,
            DataType::E4m3 => Element::E4m3,
            DataType::E5m2 => Element::E5m2,
        }
    }

    /// The element type of C in memory.
    pub const fn result(self) -> Element {
        match self {
            DataType::S8 => Element::S32,
            DataType::E4m3 | DataType::E5m2 => Element::F32,
            other => other.operand(),
        }
    }

    /// Bytes of an element of A and B.
    pub const fn bytes(self) -> u32 {
        self.operand().bytes()
    }

    /// The type that sums are kept in.
    pub fn accumulator(self) -> Element {
        match self {
            DataType::S8 => Element::S32,
            DataType::F64 => Element::F64,
            DataType::F16Acc16 => Element::F16,
            _ => Element::F32,
        }
    }

    /// The types that C can have: the usual one, and f32, f16 or bf16 where sums are floats of 32 bits or fewer.
    pub fn results(self) -> &'static [Element] {
        match self {
            DataType::S8 => &[Element::S32],
            DataType::F64 => &[Element::F64],
            DataType::F32 => &[Element::F32],
            _ => &[Element::F32, Element::F16, Element::Bf16],
        }
    }

    /// The type of α, β and of what the epilogue computes in.
    pub fn scalar(self) -> Element {
        match self {
            DataType::S8 => Element::S32,
            DataType::F64 => Element::F64,
            _ => Element::F32,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::F32 => "f32",
            DataType::F16 => "f16",
            DataType::F16Acc16 => "f16acc16",
            DataType::Bf16 => "bf16",
            DataType::Tf32 => "tf32",
            DataType::F64 => "f64",
            DataType::S8 => "s8",
            DataType::E4m3 => "e4m3",
            DataType::E5m2 => "e5m2",
        })
    }
}
