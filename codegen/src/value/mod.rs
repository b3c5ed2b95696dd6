//! Typed values: arithmetic without registers.
//!
//! A [`Value`] has a type and is immutable: a method computes a new one, takes the kernel first and so
//! chains. The compiler keeps types apart, a wrong conversion is no method, and `build` refuses an architecture that lacks an instruction.
//! What changes from iteration to iteration of a loop is a [`Variable`]; what holds or does not hold is a [`Predicate`].
//!
//! A value belongs to one kernel, and to the loop body, branch or region that computed it. Methods return values and not results, so that a value that is used
//! elsewhere is recorded as a mistake, which [`Kernel::build`] reports.
//!
//! | type | holds | arithmetic |
//! |---|---|---|
//! | [`F32`], [`F64`] | one float | IEEE 754, round to nearest even |
//! | [`F16x2`], [`Bf16x2`] | two 16-bit floats, the first in the low half | on both halves at once |
//! | [`S32`], [`U32`] | an integer | modulo 2³²; bits, shifts, bytes |
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
mod bits;
mod convert;
mod functions;
mod predicate;
mod unpack;
mod variable;

use std::marker::PhantomData;

use crate::index::Expr;
use crate::index::code::{Ty, type_of};
use crate::ir::{Class, Element, Inst, Kernel, Origin, ParamKind, Reg, Src, Type};

pub(crate) use convert::byte_floats;
pub use predicate::Predicate;
pub use variable::Variable;

/// Two binary16 in a register: the type of [`F16x2`].
///
/// ```
/// use layout_codegen::value::{HalfPair, Kind};
///
/// assert_eq!(HalfPair::ELEMENT.bytes(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfPair {}

/// Two bfloat16 in a register: the type of [`Bf16x2`].
///
/// ```
/// use layout_codegen::value::{BrainPair, Kind};
///
/// assert_eq!(BrainPair::ELEMENT.bytes(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrainPair {}

/// A type of values: `f32`, `f64`, `i32`, `u32`, [`HalfPair`] or [`BrainPair`].
///
/// ```
/// use layout_codegen::ir::Element;
/// use layout_codegen::value::{HalfPair, Kind};
///
/// assert_eq!((f32::ELEMENT, HalfPair::ELEMENT), (Element::F32, Element::F16));
/// ```
#[expect(
    private_bounds,
    reason = "what an instruction calls the type is not the public's"
)]
pub trait Kind: Copy + std::fmt::Debug + sealed::Sealed {
    /// What it is in memory, alone or as one of two.
    const ELEMENT: Element;
    /// The type that its instructions take.
    const TYPE: Type;
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
    use crate::ir::Class;

    /// A type of this list.
    pub(crate) trait Sealed {
        /// The registers that hold it.
        const CLASS: Class;
    }
}

macro_rules! kinds {
    ($($rust:ty, $ty:ident, $class:ident, $element:ident;)*) => { $(
        impl sealed::Sealed for $rust {
            const CLASS: Class = Class::$class;
        }

        impl Kind for $rust {
            const ELEMENT: Element = Element::$element;
            const TYPE: Type = Type::$ty;
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

/// A number that is computed or written down. It never changes.
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
    /// Where it may be used; anywhere for a literal.
    origin: Option<Origin>,
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
                Self::literal(($to)(x))
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
    fn literal(src: Src) -> Self {
        Self {
            src,
            origin: None,
            kind: PhantomData,
        }
    }

    /// What a register of this type's class holds now.
    pub(crate) fn held(k: &Kernel, register: Reg) -> Self {
        debug_assert_eq!(register.class, T::CLASS);
        Self {
            src: register.into(),
            origin: Some(k.origin(register)),
            kind: PhantomData,
        }
    }

    /// The operand of an instruction here; 0, and a mistake on record, if the value may not be used here.
    pub(crate) fn src(self, k: &mut Kernel) -> Src {
        match (self.origin, self.src) {
            (Some(origin), Src::Reg(register)) if !k.admits(origin, register) => match T::TYPE {
                Type::F32 => 0.0f32.into(),
                Type::F64 => 0.0f64.into(),
                _ => Src::Int(0),
            },
            _ => self.src,
        }
    }

    /// A register that holds the value; a literal is moved to one.
    pub(crate) fn register(self, k: &mut Kernel) -> Reg {
        let src = self.src(k);
        if let Src::Reg(register) = src {
            return register;
        }
        let to = k.reg(T::CLASS);
        k.set(moved(T::TYPE), to, src);
        to
    }

    /// The value in a register of its own, which nothing else is set through.
    pub(crate) fn copied(self, k: &mut Kernel) -> Self {
        let (to, src) = (k.reg(T::CLASS), self.src(k));
        k.set(moved(T::TYPE), to, src);
        Self::held(k, to)
    }

    /// What an instruction with one result gives.
    fn computed(k: &mut Kernel, inst: impl FnOnce(Reg) -> Inst) -> Self {
        let to = k.reg(T::CLASS);
        k.push(inst(to));
        Self::held(k, to)
    }
}

/// The type by which a value is moved and selected.
pub fn moved(ty: Type) -> Type {
    match ty {
        Type::F32 | Type::F64 => ty,
        _ => Type::B32,
    }
}

macro_rules! of_index {
    ($($rust:ty, $name:ident, $ty:ident;)*) => { $(
        impl Value<$rust> {
            /// The value as an index expression, such as a row that was loaded: an index from data. It takes part in coordinates, guards and numbers of iterations, from
            /// here to the end of the loop, branch or region that this stands in. Views compare it with extents, so that what is outside is not touched;
            /// [`Kernel::clamp`] bounds it elsewhere. What is loaded from an input at one place is one number, which the prover knows.
            ///
            /// ```
            /// use layout_codegen::Arch;
            /// use layout_codegen::ir::{Axis, Element, Kernel};
            /// use layout_core::Layout;
            ///
            /// // y[i] = table[ids[i]]: a row of 256 elements a block, zeros for an id beyond the table.
            /// let mut k = Kernel::new("gather", 64);
            /// let (n, rows, cols) = (k.size("n", 1 << 20), k.size("rows", 1 << 20), k.constant(256));
            /// let (ids, table) = (k.input("ids", Element::S32, &[n]), k.input("table", Element::F32, &[rows, cols]));
            /// let y = k.output("y", Element::F32, &[n, cols]);
            /// let (i, zero, thread) = (k.tiles(Axis::X, n, 1)?, k.constant(0), k.thread());
            #[doc = concat!("let row = ids.load::<", stringify!($rust), ">(&mut k, &[i])?.to_index(&mut k);")]
            /// let shares = Layout::parse("(64,4):(4,1)")?;
            /// let from = table.tile(&mut k, &[1, 256], &[row, zero])?.partition(&mut k, &shares, thread)?;
            /// let to = y.tile(&mut k, &[1, 256], &[i, zero])?.partition(&mut k, &shares, thread)?;
            /// k.copy(&from, &to)?;
            /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[track_caller]
            pub fn to_index(self, k: &mut Kernel) -> Expr {
                k.at_line();
                let register = self.copied(k).register(k);
                k.index_in((register, self.src), Ty::$ty)
            }

            /// The value of an index expression, such as a coordinate or a size; modulo 2³².
            ///
            /// ```
            /// use layout_codegen::ir::Kernel;
            #[doc = concat!("use layout_codegen::value::", stringify!($name), ";")]
            ///
            /// // 1/n
            /// let mut k = Kernel::new("k", 32);
            /// let n = k.size("n", 1000);
            #[doc = concat!("let inverse = ", stringify!($name), "::index(&mut k, n).to_f32(&mut k).reciprocal(&mut k);")]
            /// # let _ = inverse;
            /// ```
            #[track_caller]
            pub fn index(k: &mut Kernel, e: Expr) -> Self {
                k.at_line();
                if let Some(c) = k.pool.as_const(e) {
                    return Self::from(c as $rust);
                }
                let wide = matches!(type_of(&k.pool, e), Ty::U64 | Ty::S64);
                let register = k.value(e);
                if !wide {
                    return Self::held(k, register);
                }
                Self::computed(k, |to| Inst::Convert {
                    to_ty: Type::U32,
                    from_ty: Type::U64,
                    to,
                    from: register,
                })
            }
        }
    )* };
}

of_index! {
    i32, S32, S32;
    u32, U32, U32;
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
    #[track_caller]
    pub fn argument<T: Kind + Passed>(&mut self, name: &str) -> Value<T> {
        self.at_line();
        let register = self.param_scalar(name, T::PASSED);
        Value::held(self, register)
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
