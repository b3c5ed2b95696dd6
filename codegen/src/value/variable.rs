//! What changes: values that loops carry from iteration to iteration.

use super::{Kind, Value, moved};
use crate::ir::{Kernel, Origin, Reg, Src};
use std::marker::PhantomData;

/// A place that holds a value, and another one later.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::value::F32;
///
/// // The sum of n ones.
/// let mut k = Kernel::new("k", 32);
/// let n = k.size("n", 100);
/// let sum = k.variable(F32::from(0.0));
/// k.for_loop("i", 0, 1, n, |k, _| {
///     let more = sum.get(k).add(k, 1.0);
///     sum.set(k, more);
///     Ok::<(), layout_codegen::view::ViewError>(())
/// })?;
/// let all = sum.get(&mut k);
/// # let _ = all;
/// # Ok::<(), layout_codegen::view::ViewError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable<T> {
    register: Reg,
    origin: Origin,
    kind: PhantomData<T>,
}

impl Kernel {
    /// A new variable that holds `value`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let most = k.variable(F32::from(f32::NEG_INFINITY));
    /// # let _ = most;
    /// ```
    #[track_caller]
    pub fn variable<T: Kind>(&mut self, value: Value<T>) -> Variable<T> {
        self.at_line();
        let register = self.reg(T::CLASS);
        let value = value.src(self);
        self.set(moved(T::TYPE), register, value);
        Variable {
            register,
            origin: self.origin(register),
            kind: PhantomData,
        }
    }
}

impl<T: Kind> Variable<T> {
    /// What it holds now. The value stays what it is when the variable is set again.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x = k.variable(F32::from(1.0));
    /// let one = x.get(&mut k);
    /// x.set(&mut k, 2.0);
    /// assert_ne!(x.get(&mut k), one);
    /// ```
    #[track_caller]
    pub fn get(self, k: &mut Kernel) -> Value<T> {
        k.at_line();
        if !k.admits(self.origin, self.register) {
            return Value::literal(Src::Int(0)).copied(k);
        }
        // The assembler sees through the copy.
        let to = k.reg(T::CLASS);
        k.set(moved(T::TYPE), to, self.register);
        Value::held(k, to)
    }

    /// Lets it hold another value.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let x = k.variable(F32::from(1.0));
    /// x.set(&mut k, 2.0);
    /// ```
    #[track_caller]
    pub fn set(self, k: &mut Kernel, value: impl Into<Value<T>>) {
        k.at_line();
        if k.admits(self.origin, self.register) {
            let value = value.into().src(k);
            k.set(moved(T::TYPE), self.register, value);
        }
    }
}
