//! What holds or does not hold: comparisons, and the choice between two values.

use super::{Kind, Value, moved};
use crate::index::Expr;
use crate::index::code::type_of;
use crate::ir::{Class, Cmp, Inst, Kernel, Logic, Origin, Pred, Reg, Src, Type};

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
pub struct Predicate {
    pred: Pred,
    origin: Origin,
    /// All threads of a block agree, which shows where the predicate is made; others may agree as well, which the prover finds.
    uniform: bool,
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
        #[track_caller]
        pub fn $name(self, k: &mut Kernel, other: impl Into<Self>) -> Predicate {
            k.at_line();
            self.compared(k, $cmp, other.into())
        }
    )* };
}

impl<T: Kind> Value<T> {
    fn compared(self, k: &mut Kernel, cmp: Cmp, other: Self) -> Predicate {
        let [a, b] = [self, other].map(|x| x.src(k));
        let to = k.compare_value_here(cmp, T::TYPE, a, b, None);
        Predicate::held(k, to)
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
    /// What a predicate register holds.
    fn held(k: &Kernel, register: Reg) -> Self {
        Self {
            pred: register.into(),
            origin: k.origin(register),
            uniform: false,
        }
    }

    /// The guard of an instruction or a branch here, and whether all threads of a block agree for certain; a mistake on record if the predicate may not be
    /// used here.
    pub(crate) fn guard(self, k: &mut Kernel) -> (Pred, bool) {
        if k.admits(self.origin, self.pred.reg) {
            return (self.pred, self.uniform);
        }
        let yes = k.compare_value_here(Cmp::Eq, Type::S32, Src::Int(0), Src::Int(0), None);
        (yes.into(), true)
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
    #[track_caller]
    pub fn of(k: &mut Kernel, a: Expr, cmp: Cmp, b: Expr) -> Self {
        k.at_line();
        // What is constant stays in the comparison.
        let difference = k.sub(a, b);
        let (_, constant) = k.pool.terms(difference);
        let less = k.pool.constant(constant);
        let varies = k.pool.sub(difference, less);
        let bound = constant.wrapping_neg();
        // A bound that the type of what varies does not have decides the comparison.
        let (least, most) = type_of(&k.pool, varies).range();
        let to = if (least..=most).contains(&i128::from(bound))
            || bound < 0 && least == 0 && k.range(varies).1 <= i64::from(i32::MAX)
        {
            k.compare_here(cmp, varies, bound, None)
        } else {
            let below = i128::from(bound) > most;
            let holds = match cmp {
                Cmp::Lt | Cmp::Le => below,
                Cmp::Gt | Cmp::Ge => !below,
                Cmp::Eq => false,
                Cmp::Ne | Cmp::Neu => true,
            };
            k.compare_value_here(
                Cmp::Eq,
                Type::S32,
                Src::Int(0),
                Src::Int((!holds).into()),
                None,
            )
        };
        Self {
            uniform: k.agrees(difference),
            ..Self::held(k, to)
        }
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
        Self {
            pred: self.pred.not(),
            ..self
        }
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
    #[track_caller]
    pub fn and(self, k: &mut Kernel, other: Self) -> Self {
        k.at_line();
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
    #[track_caller]
    pub fn or(self, k: &mut Kernel, other: Self) -> Self {
        k.at_line();
        self.joined(k, Logic::Or, other)
    }

    fn joined(self, k: &mut Kernel, op: Logic, other: Self) -> Self {
        let [a, b] = [self, other].map(|p| p.plain(k));
        let to = k.reg(Class::Pred);
        k.push(Inst::Logic { op, to, a, b });
        Self {
            uniform: self.uniform && other.uniform,
            ..Self::held(k, to)
        }
    }

    /// In a register that is not negated.
    pub(crate) fn plain(self, k: &mut Kernel) -> Reg {
        let (pred, _) = self.guard(k);
        if !pred.negated {
            return pred.reg;
        }
        let yes = k.compare_value_here(Cmp::Eq, Type::S32, Src::Int(0), Src::Int(0), None);
        let to = k.reg(Class::Pred);
        k.push(Inst::Logic {
            op: Logic::Xor,
            to,
            a: pred.reg,
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
    #[track_caller]
    pub fn select<T: Kind>(self, k: &mut Kernel, a: Value<T>, b: impl Into<Value<T>>) -> Value<T> {
        k.at_line();
        let (a, b) = (a.src(k), b.into().src(k));
        let (pred, _) = self.guard(k);
        let (a, b) = if pred.negated { (b, a) } else { (a, b) };
        let p = pred.reg;
        Value::computed(k, |to| Inst::Select {
            ty: moved(T::TYPE),
            to,
            a,
            b,
            p,
        })
    }
}
