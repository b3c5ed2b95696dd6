//! What changes: values that loops carry from turn to turn.

use super::{Kind, Value, moved};
use crate::ir::{Kernel, Reg};
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
/// let turn = k.open_loop("i", 0, 1, 100);
/// let more = sum.get(&mut k).add(&mut k, 1.0);
/// sum.set(&mut k, more);
/// k.close_loop(&turn, n);
/// let all = sum.get(&mut k);
/// # let _ = all;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable<T> {
    register: Reg,
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
    pub fn variable<T: Kind>(&mut self, value: Value<T>) -> Variable<T> {
        let register = self.reg(T::CLASS);
        self.set(moved(T::TYPE), register, value.src());
        Variable {
            register,
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
    pub fn get(self, k: &mut Kernel) -> Value<T> {
        // The assembler sees through the copy.
        let to = k.reg(T::CLASS);
        k.set(moved(T::TYPE), to, self.register);
        Value::new(to.into())
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
    pub fn set(self, k: &mut Kernel, value: impl Into<Value<T>>) {
        k.set(moved(T::TYPE), self.register, value.into().src());
    }
}
