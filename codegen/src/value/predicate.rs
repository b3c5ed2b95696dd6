//! What holds or does not hold: comparisons, and the choice between two values.

use super::{Kind, Value, moved};
use crate::index::Expr;
use crate::ir::{Class, Cmp, Inst, Kernel, Logic, Pred, Src, Type};

/// A statement about values or coordinates, true or false in each thread.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::F32;
///
/// // |x|
/// let mut k = Kernel::new("k", 32);
/// let x: F32 = k.argument("x");
/// let minus = x.neg(&mut k);
/// let size = x.lt(&mut k, 0.0).select(&mut k, minus, x);
/// # let _ = size;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predicate(Pred);

impl From<Predicate> for Pred {
    fn from(p: Predicate) -> Self {
        p.0
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident: $cmp:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// ```
        /// use layout_codegen::ir::Kernel;
        /// use layout_codegen::value::F32;
        ///
        /// let mut k = Kernel::new("k", 32);
        /// let x: F32 = k.argument("x");
        #[doc = concat!("let p = x.", stringify!($name), "(&mut k, 0.0);")]
        /// # let _ = p;
        /// ```
        pub fn $name(self, k: &mut Kernel, other: impl Into<Self>) -> Predicate {
            self.compared(k, $cmp, other.into())
        }
    )* };
}

impl<T: Kind> Value<T> {
    fn compared(self, k: &mut Kernel, cmp: Cmp, other: Self) -> Predicate {
        Predicate(
            k.compare_value(cmp, T::TYPE, self.src, other.src, None)
                .into(),
        )
    }
}

/// Pairs are compared as two numbers.
macro_rules! ordered {
    ($($rust:ty: $ne:ident;)*) => { $(
        impl Value<$rust> {
            comparisons! {
                /// a < b; false if one is NaN.
                lt: Cmp::Lt;
                /// a ≤ b; false if one is NaN.
                le: Cmp::Le;
                /// a > b; false if one is NaN.
                gt: Cmp::Gt;
                /// a ≥ b; false if one is NaN.
                ge: Cmp::Ge;
                /// a = b; false if one is NaN.
                eq: Cmp::Eq;
                /// a ≠ b; true if one is NaN.
                ne: Cmp::$ne;
            }
        }
    )* };
}

ordered! {
    f32: Neu;
    f64: Neu;
    i32: Ne;
    u32: Ne;
}

impl Predicate {
    /// What a predicate register holds, if it is one.
    ///
    /// ```
    /// use layout_codegen::ir::{Class, Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let inside = Predicate::held_by(k.compare(Cmp::Lt, thread, n));
    /// assert!(inside.is_some() && Predicate::held_by(k.reg(Class::F32)).is_none());
    /// ```
    pub fn held_by(register: impl Into<Pred>) -> Option<Self> {
        let p = register.into();
        (p.reg.class == Class::Pred).then_some(Self(p))
    }

    /// `a cmp b` of two index expressions, such as a coordinate and a size: what masks are made of. Expressions at a constant distance share
    /// their computation.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::{F32, Predicate};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (x, thread, n): (F32, _, _) = (k.argument("x"), k.thread(), k.size("n", 100));
    /// let masked = Predicate::of(&mut k, thread, Cmp::Lt, n).select(&mut k, x, f32::NEG_INFINITY);
    /// # let _ = masked;
    /// ```
    pub fn of(k: &mut Kernel, a: Expr, cmp: Cmp, b: Expr) -> Self {
        // What is constant stays in the comparison.
        let difference = k.pool.sub(a, b);
        let (_, constant) = k.pool.terms(difference);
        let less = k.pool.constant(constant);
        let varies = k.pool.sub(difference, less);
        Self(k.compare_here(cmp, varies, -constant, None).into())
    }

    /// The opposite.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let p = x.lt(&mut k, 0.0);
    /// assert_eq!(p.not().not(), p);
    /// ```
    #[must_use]
    #[allow(clippy::should_implement_trait)] // It is called by name, as `and` and `or` are.
    pub fn not(self) -> Self {
        Self(self.0.not())
    }

    /// Both hold.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let (p, q) = (x.gt(&mut k, 0.0), x.lt(&mut k, 1.0));
    /// let between = p.and(&mut k, q);
    /// # let _ = between;
    /// ```
    #[must_use]
    pub fn and(self, k: &mut Kernel, other: Self) -> Self {
        self.joined(k, Logic::And, other)
    }

    /// One of them holds.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let (p, q) = (x.lt(&mut k, 0.0), x.gt(&mut k, 1.0));
    /// let outside = p.or(&mut k, q);
    /// # let _ = outside;
    /// ```
    #[must_use]
    pub fn or(self, k: &mut Kernel, other: Self) -> Self {
        self.joined(k, Logic::Or, other)
    }

    fn joined(self, k: &mut Kernel, op: Logic, other: Self) -> Self {
        let [a, b] = [self, other].map(|p| p.plain(k));
        let to = k.reg(Class::Pred);
        k.push(Inst::Logic { op, to, a, b });
        Self(to.into())
    }

    /// In a register that is not negated.
    fn plain(self, k: &mut Kernel) -> crate::ir::Reg {
        if !self.0.negated {
            return self.0.reg;
        }
        let yes = k.compare_value(Cmp::Eq, Type::S32, Src::Int(0), Src::Int(0), None);
        let to = k.reg(Class::Pred);
        k.push(Inst::Logic {
            op: Logic::Xor,
            to,
            a: self.0.reg,
            b: yes,
        });
        to
    }

    /// `a` where it holds, `b` elsewhere.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x: F32 = k.argument("x");
    /// let leaky = x.mul(&mut k, 0.01);
    /// let y = x.lt(&mut k, 0.0).select(&mut k, leaky, x);
    /// # let _ = y;
    /// ```
    #[must_use]
    pub fn select<T: Kind>(self, k: &mut Kernel, a: Value<T>, b: impl Into<Value<T>>) -> Value<T> {
        let (a, b) = (a.src(), b.into().src());
        let (a, b) = if self.0.negated { (b, a) } else { (a, b) };
        let p = self.0.reg;
        Value::computed(k, |to| Inst::Select {
            ty: moved(T::TYPE),
            to,
            a,
            b,
            p,
        })
    }
}
