//! Functions that the hardware approximates.

use super::{BrainPair, HalfPair, Value};
use crate::ir::{Kernel, Unary};

/// A method that is one instruction.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// ```
        /// use layout_codegen::ir::Kernel;
        /// use layout_codegen::value::F32;
        ///
        /// let mut k = Kernel::new("k", 32);
        /// let x: F32 = k.argument("x");
        #[doc = concat!("let y = x.", stringify!($name), "(&mut k);")]
        /// # let _ = y;
        /// ```
        #[must_use]
        #[track_caller]
        pub fn $name(self, k: &mut Kernel) -> Self {
            k.at_line();
            self.unary(k, Unary::$op)
        }
    )* };
}

impl Value<f32> {
    functions! {
        /// 2 to the power x, with an absolute error in the exponent of at most 2⁻²²; results below 2⁻¹²⁶ are 0, and 2 to −∞ is 0.
        exp2 = Exp2;
        /// 1/x with an error of at most 1 unit in the last place; 1/0 is infinite.
        reciprocal = Reciprocal;
        /// 1/√x with a relative error of at most 2⁻²²·⁹; of a negative number NaN.
        rsqrt = ReciprocalSqrt;
        /// √x, rounded to nearest even; of a negative number NaN.
        sqrt = Sqrt;
        /// The logarithm to base 2, with an absolute error of at most 2⁻²²·⁶ near 1; of 0 it is −∞, of a negative number NaN.
        log2 = Log2;
        /// The hyperbolic tangent, with a relative error of at most 2⁻¹¹.
        tanh = Tanh;
    }
}

impl Value<HalfPair> {
    /// 2 to the power of both halves, in one instruction: a relative error of at most 2⁻⁹·⁹.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let y = x.pair_f16(&mut k, x).exp2(&mut k);
    /// # let _ = y;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn exp2(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Exp2)
    }

    /// The hyperbolic tangent of both halves: an absolute error of at most 2⁻¹⁰·⁹⁸⁷.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let y = x.pair_f16(&mut k, x).tanh(&mut k);
    /// # let _ = y;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn tanh(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Tanh)
    }
}

impl Value<BrainPair> {
    /// 2 to the power of both halves: a relative error of at most 2⁻⁷. From `sm_90`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let y = x.pair_bf16(&mut k, x).exp2(&mut k);
    /// # let _ = y;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn exp2(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Exp2)
    }

    /// The hyperbolic tangent of both halves: an absolute error of at most 2⁻⁸. From `sm_90`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let y = x.pair_bf16(&mut k, x).tanh(&mut k);
    /// # let _ = y;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn tanh(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Tanh)
    }
}

impl Value<f64> {
    /// √x, rounded to nearest even; of a negative number NaN.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F64;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F64 = k.argument("x");
    /// let y = x.sqrt(&mut k);
    /// # let _ = y;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn sqrt(self, k: &mut Kernel) -> Self {
        k.at_line();
        self.unary(k, Unary::Sqrt)
    }
}
