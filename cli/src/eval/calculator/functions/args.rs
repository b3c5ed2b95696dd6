//! The arguments of a call, asked for by kind: each question answers or says which argument is wrong and why.

use std::cmp::Ordering;

use tilewright as tw;
use tilewright::{IntTuple, Layout, LayoutError, Slicer, Swizzled, Tiler};

use super::super::error::{EvalError, Span};
use super::super::parser::Spanned;
use super::super::value::Value;
use super::{tiler, usage};

/// The arguments of one call.
pub(super) struct Args<'a> {
    pub(super) name: &'a str,
    pub(super) items: &'a [Spanned],
    pub(super) span: Span,
}

pub(super) type Answer = Result<Value, EvalError>;

impl Args<'_> {
    pub(super) fn count(&self, least: usize, most: usize) -> Result<(), EvalError> {
        let n = self.items.len();
        if (least..=most).contains(&n) {
            return Ok(());
        }
        let message = format!("{n} arguments for {}", usage(self.name));
        Err(EvalError::new("wrong_arguments", message, self.span))
    }

    pub(super) fn wrong(&self, i: usize, needed: &str) -> EvalError {
        let (value, span) = &self.items[i];
        let message = format!(
            "argument {} of {} must be {needed}, not {}",
            i + 1,
            self.name,
            value.kind()
        );
        EvalError::kind(message, *span)
    }

    pub(super) fn int(&self, i: usize) -> Result<i64, EvalError> {
        self.items[i]
            .0
            .as_int()
            .ok_or_else(|| self.wrong(i, "an integer"))
    }

    pub(super) fn tuple(&self, i: usize) -> Result<IntTuple, EvalError> {
        let value = &self.items[i].0;
        value
            .as_tuple()
            .ok_or_else(|| self.wrong(i, "an integer or a tuple of integers"))
    }

    /// A shape: a tuple, or the shape of a layout.
    pub(super) fn shape(&self, i: usize) -> Result<IntTuple, EvalError> {
        match &self.items[i].0 {
            Value::Layout(layout) => Ok(layout.shape()),
            Value::Affine(layout) => Ok(layout.shape()),
            _ => self.tuple(i),
        }
    }

    pub(super) fn swizzled(&self, i: usize) -> Result<Swizzled, EvalError> {
        match self.items[i].0.as_layout() {
            Some(Ok(layout)) => Ok(layout),
            Some(Err(error)) => Err(EvalError::layout(error, self.items[i].1)),
            None => Err(self.wrong(i, "a layout")),
        }
    }

    pub(super) fn layout(&self, i: usize) -> Result<Layout, EvalError> {
        let layout = self.swizzled(i)?;
        layout
            .as_plain()
            .ok_or_else(|| self.wrong(i, "a layout without swizzle and offset"))
    }

    pub(super) fn slicer(&self, i: usize) -> Result<Slicer, EvalError> {
        self.items[i]
            .0
            .as_slicer()
            .ok_or_else(|| self.wrong(i, "a coordinate"))
    }

    pub(super) fn done<T>(&self, result: Result<T, LayoutError>) -> Result<T, EvalError> {
        result.map_err(|error| EvalError::layout(error, self.span))
    }

    /// A plain layout to a plain layout.
    pub(super) fn map(&self, f: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Answer {
        self.count(1, 1)?;
        Ok(Value::layout(self.done(f(&self.layout(0)?))?))
    }

    /// Something about a composed layout that only needs the layout inside.
    pub(super) fn inside(&self, f: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Answer {
        self.count(1, 1)?;
        let outer = self.swizzled(0)?;
        let inner = self.done(f(&outer.layout()))?;
        Ok(Value::swizzled(self.done(outer.with_layout(inner))?))
    }

    pub(super) fn ask(&self, f: impl FnOnce(&Swizzled) -> Result<bool, LayoutError>) -> Answer {
        Ok(Value::Bool(self.done(f(&self.swizzled(0)?))?))
    }

    pub(super) fn relation(&self, f: impl FnOnce(&IntTuple, &IntTuple) -> bool) -> Answer {
        self.count(2, 2)?;
        Ok(Value::Bool(f(&self.shape(0)?, &self.shape(1)?)))
    }

    pub(super) fn order(
        &self,
        compare: fn(&IntTuple, &IntTuple) -> Result<Ordering, LayoutError>,
        accept: fn(Ordering) -> bool,
    ) -> Answer {
        self.count(2, 2)?;
        let order = self.done(compare(&self.tuple(0)?, &self.tuple(1)?))?;
        Ok(Value::Bool(accept(order)))
    }

    /// Every leaf's order is accepted.
    pub(super) fn each(&self, accept: fn(Ordering) -> bool) -> Answer {
        self.count(2, 2)?;
        let (a, b) = (self.tuple(0)?, self.tuple(1)?);
        self.done(tw::elementwise_less(&a, &b))?;
        let all = (0..a.leaves()).all(|i| accept(a.leaf(i).cmp(&b.leaf(i))));
        Ok(Value::Bool(all))
    }

    pub(super) fn fold(&self, f: impl Fn(i64, i64) -> Option<i64>) -> Answer {
        self.count(1, usize::MAX)?;
        let mut result = self.int(0)?;
        for i in 1..self.items.len() {
            result = f(result, self.int(i)?)
                .ok_or_else(|| EvalError::new("overflow", "the result does not fit", self.span))?;
        }
        Ok(Value::Int(result))
    }

    pub(super) fn divide(
        &self,
        f: impl FnOnce(&Swizzled, &Tiler<'_>) -> Result<tw::Divided<Swizzled>, LayoutError>,
    ) -> Result<tw::Divided<Swizzled>, EvalError> {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let tiler = tiler(&self.items[1].0, self.items[1].1)?;
        self.done(tiler.with(|tiler| f(&layout, tiler)))
    }

    pub(super) fn product(
        &self,
        f: impl FnOnce(&Layout, &Tiler<'_>) -> Result<Layout, LayoutError>,
    ) -> Answer {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let tiler = tiler(&self.items[1].0, self.items[1].1)?;
        let inner = self.done(tiler.with(|tiler| f(&layout.layout(), tiler)))?;
        Ok(Value::swizzled(self.done(layout.with_layout(inner))?))
    }

    pub(super) fn ranked_product(
        &self,
        f: fn(&Layout, &Layout) -> Result<Layout, LayoutError>,
    ) -> Answer {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let inner = self.done(f(&layout.layout(), &self.layout(1)?))?;
        Ok(Value::swizzled(self.done(layout.with_layout(inner))?))
    }

    pub(super) fn cast(
        &self,
        swizzle: fn(&tw::Swizzle, i64) -> Result<tw::Swizzle, LayoutError>,
        layout: fn(&Swizzled, i64) -> Result<Swizzled, LayoutError>,
    ) -> Answer {
        self.count(2, 2)?;
        let n = self.int(1)?;
        if let Value::Swizzle(s) = self.items[0].0 {
            return Ok(Value::Swizzle(self.done(swizzle(&s, n))?));
        }
        Ok(Value::swizzled(self.done(layout(&self.swizzled(0)?, n))?))
    }
}
