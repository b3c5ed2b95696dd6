//! Typed values: arithmetic on registers, without their names.
//!
//! A [`Value`] is what a register or a literal holds, with its type. Values are immutable: a method computes a new one, takes the kernel first and so
//! chains. The compiler keeps types apart, a wrong conversion is no method, and the first architecture that has an instruction is asked for when the kernel is built
//! ([`Inst::needs`](crate::ir::Inst::needs)). What changes from turn to turn of a loop is a [`Variable`]; what holds or does not hold is a [`Predicate`].
//!
//! | type | register | arithmetic |
//! |---|---|---|
//! | [`F32`], [`F64`] | one float | IEEE 754, round to nearest even |
//! | [`F16x2`], [`Bf16x2`] | two 16-bit floats, the first in the low half | on both halves at once |
//! | [`S32`], [`U32`] | an integer | modulo 2³² |
//!
//! **NaN.** `add`, `sub`, `mul`, `fma` and the functions give NaN for NaN. `min` and `max` give the other operand, as IEEE 754's `minNum`; `min_nan` and `max_nan` give
//! NaN, as `torch.max` does. Comparisons with NaN are false, but for `ne`, as in Rust.
//!
//! ```
//! use layout_codegen::ir::Kernel;
//! use layout_codegen::value::F32;
//!
//! // exp(x - m)·scale
//! let mut k = Kernel::new("k", 32);
//! let [x, m, scale]: [F32; 3] = ["x", "m", "scale"].map(|name| k.argument(name));
//! let y = x.sub(&mut k, m).mul(&mut k, std::f32::consts::LOG2_E).exp2(&mut k).mul(&mut k, scale);
//! # let _ = y;
//! ```

mod arithmetic;
mod convert;
mod functions;
mod predicate;
mod variable;

use std::marker::PhantomData;

use crate::index::Expr;
use crate::index::code::{Ty, type_of};
use crate::ir::{Class, Element, Inst, Kernel, ParamKind, Reg, Src, Type};

pub use predicate::Predicate;
pub use variable::Variable;

/// Two binary16 in a register: the type of [`F16x2`].
///
/// ```
/// use layout_codegen::value::{HalfPair, Kind};
///
/// assert_eq!(HalfPair::TYPE.bytes(), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfPair {}

/// Two bfloat16 in a register: the type of [`Bf16x2`].
///
/// ```
/// use layout_codegen::value::{BrainPair, Kind};
///
/// assert_eq!(BrainPair::TYPE.bytes(), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrainPair {}

/// A type of values: `f32`, `f64`, `i32`, `u32`, [`HalfPair`] or [`BrainPair`].
///
/// ```
/// use layout_codegen::ir::{Class, Type};
/// use layout_codegen::value::Kind;
///
/// assert_eq!((f32::TYPE, i32::CLASS), (Type::F32, Class::B32));
/// ```
pub trait Kind: Copy + std::fmt::Debug + sealed::Sealed {
    /// The type that its instructions take.
    const TYPE: Type;
    /// The registers that hold it.
    const CLASS: Class;
    /// What it is in memory, alone or as one of two.
    const ELEMENT: Element;
}

/// A type of floats.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::{Float, Value};
///
/// fn square<T: Float>(k: &mut Kernel, x: Value<T>) -> Value<T> {
///     x.mul(k, x)
/// }
/// ```
pub trait Float: Kind {}

/// Types of values are those of registers, and these are all: the trait is out of reach for others.
mod sealed {
    /// A type of this list.
    ///
    /// ```compile_fail
    /// use layout_codegen::value::sealed::Sealed;
    /// ```
    pub trait Sealed {}
}

macro_rules! kinds {
    ($($rust:ty, $ty:ident, $class:ident, $element:ident;)*) => { $(
        impl sealed::Sealed for $rust {}

        impl Kind for $rust {
            const TYPE: Type = Type::$ty;
            const CLASS: Class = Class::$class;
            const ELEMENT: Element = Element::$element;
        }
    )* };
}

kinds! {
    f32, F32, F32, F32;
    f64, F64, F64, F64;
    i32, S32, B32, S32;
    u32, U32, B32, S32;
    HalfPair, F16x2, B32, F16;
    BrainPair, Bf16x2, B32, Bf16;
}

impl Float for f32 {}
impl Float for f64 {}
impl Float for HalfPair {}
impl Float for BrainPair {}

/// What a register or a literal holds.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::Value;
///
/// let mut k = Kernel::new("k", 32);
/// let two = Value::from(1.0f32).add(&mut k, 1.0);
/// # let _ = two;
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value<T> {
    src: Src,
    kind: PhantomData<T>,
}

/// An IEEE 754 binary32.
///
/// ```
/// use layout_codegen::value::F32;
///
/// let half: F32 = 0.5.into();
/// # let _ = half;
/// ```
pub type F32 = Value<f32>;

/// An IEEE 754 binary64.
///
/// ```
/// use layout_codegen::value::F64;
///
/// let half: F64 = 0.5.into();
/// # let _ = half;
/// ```
pub type F64 = Value<f64>;

/// A signed 32-bit integer.
///
/// ```
/// use layout_codegen::value::S32;
///
/// let minus: S32 = (-1).into();
/// # let _ = minus;
/// ```
pub type S32 = Value<i32>;

/// An unsigned 32-bit integer.
///
/// ```
/// use layout_codegen::value::U32;
///
/// let one: U32 = 1.into();
/// # let _ = one;
/// ```
pub type U32 = Value<u32>;

/// Two binary16.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::{F16x2, F32};
///
/// let mut k = Kernel::new("k", 32);
/// let ones: F16x2 = F32::from(1.0).pair_f16(&mut k, 1.0);
/// # let _ = ones;
/// ```
pub type F16x2 = Value<HalfPair>;

/// Two bfloat16.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::{Bf16x2, F32};
///
/// let mut k = Kernel::new("k", 32);
/// let ones: Bf16x2 = F32::from(1.0).pair_bf16(&mut k, 1.0);
/// # let _ = ones;
/// ```
pub type Bf16x2 = Value<BrainPair>;

macro_rules! literals {
    ($($rust:ty => $to:expr;)*) => { $(
        impl From<$rust> for Value<$rust> {
            fn from(x: $rust) -> Self {
                Self::new(($to)(x))
            }
        }
    )* };
}

literals! {
    f32 => |x: f32| Src::from(x);
    f64 => |x: f64| Src::from(x);
    i32 => |x: i32| Src::Int(x.into());
    u32 => |x: u32| Src::Int(x.into());
}

impl<T: Kind> Value<T> {
    pub(crate) fn new(src: Src) -> Self {
        Self {
            src,
            kind: PhantomData,
        }
    }

    pub(crate) fn src(self) -> Src {
        self.src
    }

    /// The value that a register holds, if the register is of this type's class.
    ///
    /// ```
    /// use layout_codegen::ir::{Class, Kernel};
    /// use layout_codegen::value::{F32, S32};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let r = k.reg(Class::F32);
    /// assert!(F32::of(r).is_some() && S32::of(r).is_none());
    /// ```
    pub fn of(register: Reg) -> Option<Self> {
        (register.class == T::CLASS).then(|| Self::new(register.into()))
    }

    /// A register that holds the value; a literal is moved to one.
    ///
    /// ```
    /// use layout_codegen::ir::{Class, Kernel};
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// assert_eq!(F32::from(1.0).register(&mut k).class, Class::F32);
    /// ```
    pub fn register(self, k: &mut Kernel) -> Reg {
        if let Src::Reg(register) = self.src {
            return register;
        }
        let to = k.reg(T::CLASS);
        k.set(moved(T::TYPE), to, self.src);
        to
    }

    /// What an instruction with one result gives.
    fn computed(k: &mut Kernel, inst: impl FnOnce(Reg) -> Inst) -> Self {
        let to = k.reg(T::CLASS);
        k.push(inst(to));
        Self::new(to.into())
    }
}

/// The type by which a value is moved and selected.
fn moved(ty: Type) -> Type {
    match ty {
        Type::F32 | Type::F64 => ty,
        _ => Type::B32,
    }
}

impl Value<i32> {
    /// The value of an index expression, such as a coordinate or a size; modulo 2³².
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::S32;
    ///
    /// // 1/n
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1000);
    /// let inverse = S32::index(&mut k, n).to_f32(&mut k).reciprocal(&mut k);
    /// # let _ = inverse;
    /// ```
    pub fn index(k: &mut Kernel, e: Expr) -> Self {
        if let Some(c) = k.pool.as_const(e) {
            return Self::new(Src::Int(c));
        }
        let wide = matches!(type_of(&k.pool, e), Ty::U64 | Ty::S64);
        let register = k.value(e);
        if !wide {
            return Self::new(register.into());
        }
        Self::computed(k, |to| Inst::Convert {
            to_ty: Type::U32,
            from_ty: Type::U64,
            to,
            from: register,
        })
    }
}

impl Kernel {
    /// A parameter of the launch, as a value: a scale, an ε. Its type says how it is passed.
    ///
    /// ```
    /// use layout_codegen::ir::{Kernel, ParamKind};
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let eps: F32 = k.argument("eps");
    /// assert_eq!(k.params()[0].kind, ParamKind::F32);
    /// # let _ = eps;
    /// ```
    pub fn argument<T: Kind + Passed>(&mut self, name: &str) -> Value<T> {
        let register = self.param_scalar(name, T::PASSED);
        Value::new(register.into())
    }
}

/// A type of values that a launch passes.
///
/// ```
/// use layout_codegen::ir::ParamKind;
/// use layout_codegen::value::Passed;
///
/// assert_eq!(f32::PASSED, ParamKind::F32);
/// ```
pub trait Passed {
    /// How it is passed.
    const PASSED: ParamKind;
}

macro_rules! passed {
    ($($rust:ty => $kind:ident;)*) => { $(
        impl Passed for $rust {
            const PASSED: ParamKind = ParamKind::$kind;
        }
    )* };
}

passed! {
    f32 => F32;
    f64 => F64;
    i32 => S32;
    u32 => U32;
}
