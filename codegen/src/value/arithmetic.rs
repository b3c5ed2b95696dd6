//! Sums, products, the smaller and the larger.

use super::{Float, Kind, Value};
use crate::ir::{Binary, Inst, Kernel, Src, Type, Unary};

/// 1, −1 and −0 in both halves of a pair of bfloat16.
const BF16_ONES: [i64; 3] = [0x3f80_3f80, 0xbf80_bf80, 0x8000_8000];

impl<T: Kind> Value<T> {
    fn binary(self, k: &mut Kernel, op: Binary, other: Self) -> Self {
        let [a, b] = [self, other].map(|x| x.operand(k));
        let ty = T::TYPE;
        Self::computed(k, |to| Inst::Binary { op, ty, to, a, b })
    }

    fn mul_add(self, k: &mut Kernel, b: Self, c: Self) -> Self {
        let [a, b, c] = [self, b, c].map(|x| x.operand(k));
        let ty = T::TYPE;
        Self::computed(k, |to| Inst::MulAdd { ty, to, a, b, c })
    }

    pub(super) fn unary(self, k: &mut Kernel, op: Unary) -> Self {
        let a = self.operand(k);
        let ty = T::TYPE;
        Self::computed(k, |to| Inst::Unary { op, ty, to, a })
    }

    /// The operand of an instruction: pairs have no literals.
    fn operand(self, k: &mut Kernel) -> Src {
        match T::TYPE {
            Type::F16x2 | Type::Bf16x2 => self.register(k).into(),
            _ => self.src(k),
        }
    }

    /// The same bits in both halves of a pair.
    fn ones(which: usize) -> Self {
        Self::literal(Src::Int(BF16_ONES[which]))
    }

    /// a + b; integers modulo 2³².
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let b = a.add(&mut k, 1.0);
    /// assert_ne!(a, b);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn add(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
        k.at_line();
        let other = other.into();
        match T::TYPE {
            // sm_80 has multiply-add of pairs of bfloat16 only; 1·a + b rounds as a + b does.
            Type::Bf16x2 => self.mul_add(k, Self::ones(0), other),
            _ => self.binary(k, Binary::Add, other),
        }
    }

    /// a − b; integers modulo 2³².
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::S32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: S32 = k.argument("a");
    /// let b = a.sub(&mut k, 7);
    /// # let _ = b;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn sub(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
        k.at_line();
        let other = other.into();
        match T::TYPE {
            Type::Bf16x2 => other.mul_add(k, Self::ones(1), self),
            _ => self.binary(k, Binary::Sub, other),
        }
    }

    /// a·b; integers modulo 2³².
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let square = a.mul(&mut k, a);
    /// # let _ = square;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn mul(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
        k.at_line();
        let other = other.into();
        match T::TYPE {
            Type::Bf16x2 => self.mul_add(k, other, Self::ones(2)),
            _ => self.binary(k, Binary::Mul, other),
        }
    }

    /// The smaller of two; of a number and NaN, the number.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let clamped = a.max(&mut k, 0.0).min(&mut k, 6.0);
    /// # let _ = clamped;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn min(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
        k.at_line();
        self.binary(k, Binary::Min, other.into())
    }

    /// The larger of two; of a number and NaN, the number.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let relu = a.max(&mut k, 0.0);
    /// # let _ = relu;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn max(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
        k.at_line();
        self.binary(k, Binary::Max, other.into())
    }
}

impl<T: Float> Value<T> {
    /// a·b + c with one rounding.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let [a, b]: [F32; 2] = ["a", "b"].map(|name| k.argument(name));
    /// let c = a.fma(&mut k, b, 1.0);
    /// # let _ = c;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn fma(self, k: &mut Kernel, b: impl Into<Self>, c: impl Into<Self>) -> Self {
        k.at_line();
        self.mul_add(k, b.into(), c.into())
    }

    /// −a
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let minus = a.neg(&mut k);
    /// # let _ = minus;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn neg(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Neg)
    }

    /// |a|
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let a: F32 = k.argument("a");
    /// let size = a.abs(&mut k);
    /// # let _ = size;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn abs(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Abs)
    }
}

/// Floats of at most 32 bits, for which the hardware has minima and maxima that propagate NaN.
macro_rules! propagating {
    ($($rust:ty),*) => { $(
        impl Value<$rust> {
            /// The smaller of two; NaN if one of them is. From `sm_80`.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::F32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let a: F32 = k.argument("a");
            /// let least = a.min_nan(&mut k, 0.0);
            /// # let _ = least;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn min_nan(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                self.binary(k, Binary::MinNan, other.into())
            }

            /// The larger of two; NaN if one of them is. From `sm_80`.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::F32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let a: F32 = k.argument("a");
            /// let most = a.max_nan(&mut k, 0.0);
            /// # let _ = most;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn max_nan(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                self.binary(k, Binary::MaxNan, other.into())
            }
        }
    )* };
}

propagating!(f32, super::HalfPair, super::BrainPair);
