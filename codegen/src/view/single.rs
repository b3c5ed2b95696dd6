//! Single elements: what a thread loads or stores at coordinates of its own, such as those that data give.

use layout_core::Layout;

use super::partition::Owners;
use super::words::held;
use super::{Combine, Partition, View, ViewError};
use crate::index::Expr;
use crate::ir::{Binary, Class, Element, Kernel, Type};
use crate::value::{Kind, Value};

impl View {
    /// The element at coordinates from the view's first, of f32, f64 or s32 (as `i32` or `u32`): 0 where that is outside of the buffer. An element of f16 or bf16 is a pair of twice the
    /// same ([`HalfPair`](crate::value::HalfPair), [`BrainPair`](crate::value::BrainPair)).
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    ///
    /// // y = x reversed, an element a thread.
    /// let mut k = Kernel::new("reversed", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let from_end = k.linear(&[(1, n), (-1, i)], -1);
    /// let from_end = k.clamp(from_end, 0, 1 << 30); // threads beyond n have none
    /// let element = x.load::<f32>(&mut k, &[from_end])?;
    /// y.store(&mut k, &[i], element)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`], or [`ViewError::Single`] if the buffer's elements are not of that type.
    #[track_caller]
    pub fn load<T: Kind>(&self, k: &mut Kernel, at: &[Expr]) -> Result<Value<T>, ViewError> {
        k.at_line();
        let (share, element) = self.single::<T>(k, at, 2)?;
        let to = k.reg(T::CLASS);
        if element.bytes() == 2 {
            let half = k.reg(Class::B16);
            k.load_words(&share, 0, &[half], Type::B16)?;
            k.pack(to, &[half; 2]);
        } else {
            k.load_words(&share, 0, &[to], held(element).1)?;
            k.loaded_from(self.buffer, to);
        }
        Ok(Value::held(k, to))
    }

    /// Stores a value to the element at coordinates from the view's first; what is outside of the buffer is left out.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::value::S32;
    ///
    /// // y[i] = i
    /// let mut k = Kernel::new("count", 128);
    /// let n = k.size("n", 1 << 30);
    /// let y = k.output("y", Element::S32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let value = S32::index(&mut k, i);
    /// y.store(&mut k, &[i], value)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::load`].
    #[track_caller]
    pub fn store<T: Kind>(
        &self,
        k: &mut Kernel,
        at: &[Expr],
        value: impl Into<Value<T>>,
    ) -> Result<(), ViewError> {
        k.at_line();
        let (share, element) = self.single::<T>(k, at, 4)?;
        let from = value.into().register(k);
        k.store_words(&share, 0, &[from], held(element).1)
    }

    /// Combines the element at coordinates from the view's first with a value, by an atomic operation: any number of threads may combine into one element. What is
    /// outside of the buffer is left out. The buffer is in shared memory, or declared by [`Kernel::partial_output`]. Sums of floats depend on the order.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::value::U32;
    /// use layout_codegen::view::Combine;
    ///
    /// // counts[x[i]] += 1
    /// let mut k = Kernel::new("count", 128);
    /// let (n, bins) = (k.size("n", 1 << 30), k.size("bins", 1 << 20));
    /// let x = k.input("x", Element::S32, &[n]);
    /// let counts = k.partial_output("counts", Element::S32, &[bins]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let bin = x.load::<u32>(&mut k, &[i])?.to_index(&mut k);
    /// counts.atomic(&mut k, &[bin], Combine::Add, U32::from(1))?;
    /// assert!(k.build(Arch(80))?.ptx.contains("red.global.add.u32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`View::load`]. Maxima and minima of floats are a mistake that [`Kernel::build`] reports: no instruction makes them.
    #[track_caller]
    pub fn atomic<T: Kind>(
        &self,
        k: &mut Kernel,
        at: &[Expr],
        how: Combine,
        value: impl Into<Value<T>>,
    ) -> Result<(), ViewError> {
        k.at_line();
        let (share, _) = self.single::<T>(k, at, 4)?;
        let op = how.operation();
        let integers = matches!(T::TYPE, Type::S32 | Type::U32);
        let known = op == Binary::Add || integers && matches!(op, Binary::Min | Binary::Max);
        if !known {
            k.mistake("an atomic maximum or minimum of floats, or one that keeps NaN: there are sums of floats, and sums, maxima and minima of integers");
            return Ok(());
        }
        // A sum of integers is the same for both types, and is called by the unsigned one.
        let ty = match (op, T::TYPE) {
            (Binary::Add, Type::S32) => Type::U32,
            (_, ty) => ty,
        };
        let from = value.into().register(k);
        k.store_or_combine(&share, 0, &[from], ty, Some(op))
    }

    /// One element as a share that every thread has, of type `T` with at least so many bytes.
    fn single<T: Kind>(
        &self,
        k: &mut Kernel,
        at: &[Expr],
        least: u32,
    ) -> Result<(Partition, Element), ViewError> {
        let mut view = self.at(k, at)?;
        view.tile = Some(vec![1; at.len()]);
        let Some(element) = view
            .element
            .filter(|e| *e == T::ELEMENT && e.bytes() >= least)
        else {
            return Err(ViewError::Single {
                buffer: view.name(k).to_owned(),
                element: view.element,
                wanted: T::ELEMENT,
            });
        };
        let thread = k.thread();
        let threads = k.range(thread).1 + 1;
        let all = Layout::flat(&[threads, 1], &[0, 0])?;
        Ok((view.share(k, &all, thread, Owners::Some)?, element))
    }
}
