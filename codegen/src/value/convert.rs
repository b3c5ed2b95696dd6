//! Conversions, each with its rounding.

use super::{Bf16x2, BrainPair, F16x2, F32, HalfPair, Kind, S32, U32, Value};
use crate::ir::{Binary, Class, Inst, Kernel, Reg, Rounding, Src, Type};

macro_rules! casts {
    ($($from:ty: $method:ident -> $to:ident, $doc:literal;)*) => { $(
        impl Value<$from> {
            #[doc = $doc]
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::F32;
            ///
            /// // x with its sign cleared.
            /// let mut k = Kernel::new("k", 32);
            /// let x: F32 = k.argument("x");
            /// let positive = x.bits(&mut k).and(&mut k, 0x7fff_ffff).as_f32(&mut k);
            /// # let _ = positive;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn $method(self, k: &mut Kernel) -> $to {
                k.at_line();
                self.recast(k)
            }
        }
    )* };
}

casts! {
    f32: bits -> U32, "Its bits.";
    i32: bits -> U32, "Its bits: the same number modulo 2³².";
    HalfPair: bits -> U32, "The bits of both halves.";
    BrainPair: bits -> U32, "The bits of both halves.";
    u32: as_f32 -> F32, "The float that has these bits.";
    u32: as_s32 -> S32, "The signed integer that has these bits.";
    u32: as_f16x2 -> F16x2, "The two binary16 that have these bits.";
    u32: as_bf16x2 -> Bf16x2, "The two bfloat16 that have these bits.";
}

impl<T: Kind> Value<T> {
    fn converted<To: Kind>(self, k: &mut Kernel) -> Value<To> {
        let from = self.register(k);
        Value::computed(k, |to| Inst::Convert {
            to_ty: To::TYPE,
            from_ty: T::TYPE,
            to,
            from,
        })
    }

    /// The same bits in a register of another class.
    pub(super) fn recast<To: Kind>(self, k: &mut Kernel) -> Value<To> {
        let from = self.register(k).into();
        // The assembler sees through the move between classes.
        Value::computed(k, |to| Inst::Move {
            ty: Type::B32,
            to,
            from,
        })
    }
}

impl Value<f32> {
    fn rounded<To: Kind>(self, k: &mut Kernel, to_ty: Type, rounding: Rounding) -> Value<To> {
        let from = self.register(k);
        Value::computed(k, |to| Inst::Round {
            to_ty,
            rounding,
            to,
            from,
        })
    }

    /// As an integer, saturated to −2³¹ … 2³¹ − 1; NaN becomes 0.
    ///
    /// ```
    /// use layout_codegen::ir::{Kernel, Rounding};
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let nearest = x.to_s32(&mut k, Rounding::Nearest);
    /// # let _ = nearest;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_s32(self, k: &mut Kernel, rounding: Rounding) -> S32 {
        k.at_line();
        self.rounded(k, Type::S32, rounding)
    }

    /// As an unsigned integer, saturated to 0 … 2³² − 1; NaN becomes 0.
    ///
    /// ```
    /// use layout_codegen::ir::{Kernel, Rounding};
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let down = x.to_u32(&mut k, Rounding::Down);
    /// # let _ = down;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_u32(self, k: &mut Kernel, rounding: Rounding) -> U32 {
        k.at_line();
        self.rounded(k, Type::U32, rounding)
    }

    /// Rounded to an integer and saturated to −128 … 127, as a 32-bit integer; NaN becomes 0. To quantize.
    ///
    /// ```
    /// use layout_codegen::ir::{Kernel, Rounding};
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let byte = x.mul(&mut k, 127.0).to_s8(&mut k, Rounding::Nearest);
    /// # let _ = byte;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_s8(self, k: &mut Kernel, rounding: Rounding) -> S32 {
        k.at_line();
        self.rounded(k, Type::S8, rounding)
    }

    /// As a binary64, exactly.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::{F32, F64};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let wide: F64 = x.to_f64(&mut k);
    /// # let _ = wide;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f64(self, k: &mut Kernel) -> Value<f64> {
        k.at_line();
        self.converted(k)
    }

    /// Two numbers rounded to binary16, nearest even: this one in the low half, the other in the high half. From `sm_80`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let pair = x.pair_f16(&mut k, 0.0);
    /// # let _ = pair;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn pair_f16(self, k: &mut Kernel, high: impl Into<F32>) -> Value<HalfPair> {
        k.at_line();
        self.pair(k, high.into())
    }

    /// Two numbers rounded to bfloat16, nearest even: this one in the low half, the other in the high half. From `sm_80`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let pair = x.pair_bf16(&mut k, 0.0);
    /// # let _ = pair;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn pair_bf16(self, k: &mut Kernel, high: impl Into<F32>) -> Value<BrainPair> {
        k.at_line();
        self.pair(k, high.into())
    }

    /// Two numbers rounded to 8-bit floats with 4 bits of exponent, nearest even and saturated to ±448: this one in the lowest byte, the other in the
    /// next, above them 0. NaN stays NaN. To quantize. From `sm_89`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let bytes = x.pair_e4m3(&mut k, 0.0);
    /// # let _ = bytes;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn pair_e4m3(self, k: &mut Kernel, high: impl Into<F32>) -> U32 {
        k.at_line();
        self.bytes_in_word(k, Type::E4m3x2, high.into())
    }

    /// Two numbers rounded to 8-bit floats with 5 bits of exponent, nearest even and saturated to ±57344: this one in the lowest byte, the other in the
    /// next, above them 0. NaN stays NaN. To quantize. From `sm_89`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let bytes = x.pair_e5m2(&mut k, 0.0);
    /// # let _ = bytes;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn pair_e5m2(self, k: &mut Kernel, high: impl Into<F32>) -> U32 {
        k.at_line();
        self.bytes_in_word(k, Type::E5m2x2, high.into())
    }

    /// Two numbers as 8-bit floats in the low bytes of a word.
    fn bytes_in_word(self, k: &mut Kernel, to_ty: Type, high: F32) -> U32 {
        let from = self.bytes(k, to_ty, high);
        Value::computed(k, |to| Inst::Convert {
            to_ty: Type::U32,
            from_ty: Type::U16,
            to,
            from,
        })
    }

    /// Two numbers as 8-bit floats in a register of 16 bits.
    pub(crate) fn bytes(self, k: &mut Kernel, to_ty: Type, high: F32) -> Reg {
        let [low, high] = [self, high].map(|x| x.register(k));
        let to = k.reg(Class::B16);
        k.push(Inst::ConvertPair {
            to_ty,
            to,
            high,
            low,
        });
        to
    }

    fn pair<To: Kind>(self, k: &mut Kernel, high: F32) -> Value<To> {
        let [low, high] = [self, high].map(|x| x.register(k));
        Value::computed(k, |to| Inst::ConvertPair {
            to_ty: To::TYPE,
            to,
            high,
            low,
        })
    }
}

impl Value<f64> {
    /// Rounded to binary32, nearest even.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::{F32, F64};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F64 = k.argument("x");
    /// let narrow: F32 = x.to_f32(&mut k);
    /// # let _ = narrow;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f32(self, k: &mut Kernel) -> F32 {
        k.at_line();
        self.converted(k)
    }
}

impl Value<i32> {
    /// Rounded to binary32, nearest even.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::{F32, S32};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: S32 = k.argument("x");
    /// let float: F32 = x.to_f32(&mut k);
    /// # let _ = float;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f32(self, k: &mut Kernel) -> F32 {
        k.at_line();
        self.converted(k)
    }
}

impl Value<u32> {
    /// The 8-bit floats with 4 bits of exponent in its two low bytes, the lowest first; exact. From `sm_89`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::U32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: U32 = k.argument("x");
    /// let [first, second] = x.e4m3_to_f32(&mut k);
    /// # let _ = (first, second);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn e4m3_to_f32(self, k: &mut Kernel) -> [F32; 2] {
        k.at_line();
        self.low_bytes(k, Type::E4m3x2)
    }

    /// The 8-bit floats with 5 bits of exponent in its two low bytes, the lowest first; exact. From `sm_89`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::U32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: U32 = k.argument("x");
    /// let [first, second] = x.e5m2_to_f32(&mut k);
    /// # let _ = (first, second);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn e5m2_to_f32(self, k: &mut Kernel) -> [F32; 2] {
        k.at_line();
        self.low_bytes(k, Type::E5m2x2)
    }

    /// The 8-bit floats in its two low bytes.
    fn low_bytes(self, k: &mut Kernel, ty: Type) -> [F32; 2] {
        let word = self.register(k);
        let half = k.unpack(word)[0];
        byte_floats(k, ty, half)
    }

    /// Rounded to binary32, nearest even.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::{F32, U32};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: U32 = k.argument("x");
    /// let float: F32 = x.to_f32(&mut k);
    /// # let _ = float;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f32(self, k: &mut Kernel) -> F32 {
        k.at_line();
        self.converted(k)
    }
}

impl Value<HalfPair> {
    /// Both halves, the low one first; exact.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let [low, high] = x.pair_f16(&mut k, 0.0).to_f32(&mut k);
    /// # let _ = (low, high);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f32(self, k: &mut Kernel) -> [F32; 2] {
        k.at_line();
        let word = self.register(k);
        k.unpack(word).map(|half| {
            Value::computed(k, |to| Inst::Convert {
                to_ty: Type::F32,
                from_ty: Type::F16,
                to,
                from: half,
            })
        })
    }
}

impl Value<BrainPair> {
    /// Both halves, the low one first; exact.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let [low, high] = x.pair_bf16(&mut k, 0.0).to_f32(&mut k);
    /// # let _ = (low, high);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_f32(self, k: &mut Kernel) -> [F32; 2] {
        k.at_line();
        // A bfloat16 is the upper half of a binary32.
        let word = self.register(k);
        let mut upper = |op, b| {
            let to = k.reg(Class::B32);
            k.binary(op, Type::B32, to, word, Src::Int(b));
            U32::held(k, to).recast(k)
        };
        [upper(Binary::Shl, 16), upper(Binary::And, 0xffff_0000)]
    }
}

/// Two 8-bit floats of a register of 16 bits, the low one first; exact.
pub(crate) fn byte_floats(k: &mut Kernel, from_ty: Type, from: Reg) -> [F32; 2] {
    let pair: F16x2 = Value::computed(k, |to| Inst::Convert {
        to_ty: Type::F16x2,
        from_ty,
        to,
        from,
    });
    pair.to_f32(k)
}
