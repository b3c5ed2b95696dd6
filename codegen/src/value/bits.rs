//! Bits of integers, high halves of products, and what lanes of a warp give each other.

use super::{BrainPair, HalfPair, U32, Value};
use crate::ir::{Binary, Inst, Kernel, Shuffle, Src, Type};

macro_rules! bit_operations {
    ($($rust:ty: $right:ident;)*) => { $(
        impl Value<$rust> {
            fn bitwise(self, k: &mut Kernel, (op, ty): (Binary, Type), other: Src) -> Self {
                let a = self.src(k);
                Self::computed(k, |to| Inst::Binary { op, ty, to, a, b: other })
            }

            /// The bits that both have.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// let low = x.and(&mut k, 15);
            /// # let _ = low;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn and(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                let other = other.into().src(k);
                self.bitwise(k, (Binary::And, Type::B32), other)
            }

            /// The bits that one of them has.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// let odd = x.or(&mut k, 1);
            /// # let _ = odd;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn or(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                let other = other.into().src(k);
                self.bitwise(k, (Binary::Or, Type::B32), other)
            }

            /// The bits that exactly one of them has.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// let flipped = x.xor(&mut k, 0xffff_0000);
            /// # let _ = flipped;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn xor(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                let other = other.into().src(k);
                self.bitwise(k, (Binary::Xor, Type::B32), other)
            }

            /// The high 32 bits of the product of 64 bits, with or without sign as the type is.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// // A product of 64 bits: a round of a generator, or a quotient by a constant.
            /// let (low, high) = (x.mul(&mut k, 0xd251_1f53), x.mul_hi(&mut k, 0xd251_1f53));
            /// # let _ = (low, high);
            /// ```
            #[must_use]
            #[track_caller]
            pub fn mul_hi(self, k: &mut Kernel, other: impl Into<Self>) -> Self {
                k.at_line();
                let other = other.into().src(k);
                self.bitwise(k, (Binary::MulHi, Type::$right), other)
            }

            /// Shifted to the left; 0 for 32 bits and more.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// let upper = x.shl(&mut k, 16);
            /// # let _ = upper;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn shl(self, k: &mut Kernel, by: impl Into<U32>) -> Self {
                k.at_line();
                let by = by.into().src(k);
                self.bitwise(k, (Binary::Shl, Type::B32), by)
            }

            /// Shifted to the right: zeros follow in an unsigned number, copies of the sign in a signed one, as for `>>` in Rust. By 32 bits and more,
            /// nothing else is left.
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            /// use layout_codegen::value::U32;
            ///
            /// let mut k = Kernel::new("k", 32);
            /// let x: U32 = k.argument("x");
            /// let nibble = x.shr(&mut k, 4).and(&mut k, 15);
            /// # let _ = nibble;
            /// ```
            #[must_use]
            #[track_caller]
            pub fn shr(self, k: &mut Kernel, by: impl Into<U32>) -> Self {
                k.at_line();
                let by = by.into().src(k);
                self.bitwise(k, (Binary::Shr, Type::$right), by)
            }
        }
    )* };
}

bit_operations! {
    i32: S32;
    u32: U32;
}

impl Value<u32> {
    /// Four of the eight bytes of this word (0 to 3) and `other` (4 to 7). A hexadecimal digit of `selector` takes one, the last digit for the lowest byte;
    /// a digit of 8 and more repeats the sign of byte `digit - 8`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::U32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: U32 = k.argument("x");
    /// let reversed = x.permute(&mut k, x, 0x0123);
    /// # let _ = reversed;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn permute(self, k: &mut Kernel, other: impl Into<Self>, selector: u16) -> Self {
        k.at_line();
        let [a, b] = [self, other.into()].map(|x| x.register(k));
        let to = k.permute(a, b, selector);
        Self::held(k, to)
    }
}

/// Values of 32 bits.
macro_rules! shuffles {
    ($($rust:ty),*) => { $(
        impl Value<$rust> {
            /// What another lane of the warp has, all lanes of which take part.
            ///
            /// ```
            /// use layout_codegen::ir::{Kernel, Shuffle};
            /// use layout_codegen::value::F32;
            ///
            /// // The sum over the 32 lanes, in each of them.
            /// let mut k = Kernel::new("k", 32);
            /// let mut sum: F32 = k.argument("x");
            /// for distance in [16, 8, 4, 2, 1] {
            ///     let other = sum.shuffle(&mut k, Shuffle::Butterfly, distance);
            ///     sum = sum.add(&mut k, other);
            /// }
            /// ```
            #[must_use]
            #[track_caller]
            pub fn shuffle(self, k: &mut Kernel, mode: Shuffle, lane: impl Into<U32>) -> Self {
                k.at_line();
                let (from, lane) = (self.register(k), lane.into().src(k));
                let to = k.shuffle(mode, from, lane);
                Self::held(k, to)
            }
        }
    )* };
}

shuffles!(f32, i32, u32, HalfPair, BrainPair);
