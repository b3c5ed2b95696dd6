//! Types of elements in memory.

use std::fmt;

/// A type of matrix elements in memory: each has an address, and kernels load it, compute with it, convert to it and store it. How an instruction types its
/// operands is [`Scalar`](layout_core::atoms::Scalar), which has `tf32`, bits and AMD's types too. A buffer of a host may hold other Rust numbers.
///
/// ```
/// use layout_codegen::ir::Element;
///
/// assert_eq!(Element::Bf16.to_string(), "bf16");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary64.
    F64,
    /// 8-bit integer.
    S8,
    /// 32-bit integer.
    S32,
    /// 8-bit float, 4 bits of exponent.
    E4m3,
    /// 8-bit float, 5 bits of exponent.
    E5m2,
}

impl Element {
    /// Bytes of an element.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    ///
    /// assert_eq!([Element::S8, Element::F16, Element::F32, Element::F64].map(Element::bytes), [1, 2, 4, 8]);
    /// ```
    pub const fn bytes(self) -> u32 {
        match self {
            Element::F64 => 8,
            Element::F32 | Element::S32 => 4,
            Element::F16 | Element::Bf16 => 2,
            Element::S8 | Element::E4m3 | Element::E5m2 => 1,
        }
    }

    /// True for integers.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    ///
    /// assert!(Element::S8.is_integer() && !Element::E4m3.is_integer());
    /// ```
    pub fn is_integer(self) -> bool {
        matches!(self, Element::S8 | Element::S32)
    }

    /// The largest error of rounding a number below the smallest normal one to this type: half the spacing of subnormal numbers; 0 for
    /// integers.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    ///
    /// // The smallest subnormal number of f16 is 2^-24.
    /// assert_eq!(Element::F16.underflow(), f64::powi(0.5, 25));
    /// ```
    pub fn underflow(self) -> f64 {
        let exponent = match self {
            Element::F32 => 150,
            Element::F16 => 25,
            Element::Bf16 => 134,
            Element::E4m3 => 10,
            Element::E5m2 => 17,
            // Half of 2^-1074 is no f64 itself.
            Element::F64 | Element::S8 | Element::S32 => return 0.0,
        };
        f64::powi(0.5, exponent)
    }

    /// The least magnitude that is rounded to infinity in this type; infinite for f64, whose numbers end where ours do. Integers wrap
    /// instead.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    ///
    /// // The largest number of f16 is 65504; halfway to the next power of two is rounded up.
    /// assert_eq!(Element::F16.overflow(), 65_520.0);
    /// ```
    pub fn overflow(self) -> f64 {
        // Half a unit in the last place above the largest number: (2 - u) * 2^exponent.
        let exponent = match self {
            Element::F16 | Element::E5m2 => 15,
            Element::F32 | Element::Bf16 => 127,
            // No infinity.
            Element::E4m3 | Element::F64 | Element::S8 | Element::S32 => return f64::INFINITY,
        };
        (2.0 - self.unit_roundoff()) * f64::powi(2.0, exponent)
    }

    /// The largest relative error of rounding a number to this type; 0 for integers.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    ///
    /// assert_eq!(Element::F16.unit_roundoff(), f64::powi(0.5, 11));
    /// ```
    pub fn unit_roundoff(self) -> f64 {
        let bits = match self {
            Element::F64 => 53,
            Element::F32 => 24,
            Element::F16 => 11,
            Element::Bf16 => 8,
            Element::E4m3 => 4,
            Element::E5m2 => 3,
            Element::S8 | Element::S32 => return 0.0,
        };
        f64::powi(0.5, bits)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::F32 => "f32",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F64 => "f64",
            Element::S8 => "s8",
            Element::S32 => "s32",
            Element::E4m3 => "e4m3",
            Element::E5m2 => "e5m2",
        })
    }
}
