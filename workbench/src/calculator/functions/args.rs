//! The arguments of a call, asked for by kind: each question answers or says which argument is wrong and why.

use std::borrow::Cow;
use std::cmp::Ordering;

use tilewright as tw;
use tilewright::{IntTuple, Layout, LayoutError, Slicer, Swizzled};

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
        let plural = if n == 1 { "" } else { "s" };
        let message = format!(
            "{} got {n} argument{plural}: call {}",
            self.name,
            usage(self.name)
        );
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

    /// Where integers alone are computed with.
    pub(super) fn overflow(&self) -> EvalError {
        let message = format!(
            "{}: the result does not fit in 64 bits; use smaller numbers",
            self.name
        );
        EvalError::new("overflow", message, self.span)
    }

    /// A mode number.
    pub(super) fn mode(&self, i: usize) -> Result<usize, EvalError> {
        let number = self.int(i)?;
        usize::try_from(number).map_err(|_| {
            let message = format!(
                "argument {} of {} is {number}; mode numbers begin at 0",
                i + 1,
                self.name
            );
            EvalError::new("mode_out_of_range", message, self.items[i].1)
        })
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
            Value::Coords(layout) => Ok(layout.shape()),
            Value::Chain(chain) => match chain.inner() {
                Some(inner) => Ok(inner.shape()),
                None => self.done(Err(LayoutError::NoShape { operation: "shape" })),
            },
            Value::List(_) => match self.any(i)?.into_owned() {
                Value::List(_) => self.tuple(i),
                layout => {
                    let items = [(layout, self.items[i].1)];
                    Args {
                        items: &items,
                        ..*self
                    }
                    .shape(0)
                }
            },
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

    /// A layout of any kind.
    pub(super) fn any(&self, i: usize) -> Result<Cow<'_, Value>, EvalError> {
        match self.items[i].0.as_any() {
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
            result = f(result, self.int(i)?).ok_or_else(|| self.overflow())?;
        }
        Ok(Value::Int(result))
    }

    /// Divides a layout of any kind by a tiler.
    pub(super) fn overhang(&self) -> Answer {
        self.count(2, 2)?;
        let tiler = tiler(&self.items[1].0, self.items[1].1)?;
        let overhang = match &*self.any(0)? {
            Value::Layout(l) => tiler.with(|t| l.logical_divide(t).map(|d| d.overhang())),
            Value::Affine(l) => tiler.with(|t| l.logical_divide(t).map(|d| d.overhang())),
            Value::Coords(l) => tiler.with(|t| l.logical_divide(t).map(|d| d.overhang())),
            _ => return Err(self.wrong(0, "a layout")),
        };
        Ok(Value::Int(self.done(overhang)?))
    }
}

/// The same operation on a layout of any kind, argument `$i` of a call; `$body` gives the same kind.
macro_rules! on_argument {
    ($args:expr, $i:expr, $layout:ident => $body:expr) => {{
        let value = &*$args.any($i)?;
        $args.done(on_any!(value, $layout => $body))
    }};
}
pub(super) use on_argument;

/// A method with a tiler, argument 1, of a layout of any kind, argument 0; `$after` turns its result into the layout's kind.
macro_rules! by_tiler {
    ($args:expr, $method:ident, $result:ident => $after:expr) => {{
        $args.count(2, 2)?;
        let tiler = tiler(&$args.items[1].0, $args.items[1].1)?;
        on_argument!($args, 0, layout => tiler.with(|tiler| layout.$method(tiler).map(|$result| $after)))
    }};
}
pub(super) use by_tiler;
