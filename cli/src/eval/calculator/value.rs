//! What an expression can be: integers, tuples, layouts and their kin.

use std::fmt;

use tilewright::f2::LinearMap;
use tilewright::{
    Affine, CoordLayout, IntTuple, Layout, LayoutError, Slicer, Swizzle, Swizzled, SwizzledInverse,
};

use super::form::Form;

/// A value of the calculator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// An integer with names in it.
    Form(Form),
    /// A tuple of integers, some of which may be open (`_`); `_` alone too.
    Tuple(Box<Slicer>),
    /// A layout, plain or composed.
    Layout(Box<Swizzled>),
    /// A layout with named strides.
    Affine(Box<Affine>),
    /// A layout whose offsets are coordinates.
    Coords(Box<CoordLayout>),
    /// A swizzle alone.
    Swizzle(Swizzle),
    /// The inverse of a composed layout.
    Inverse(Box<SwizzledInverse>),
    /// A bit matrix over F2.
    Matrix(Box<LinearMap>),
    /// A tuple of anything else, such as a tiler `(4:1, _)`.
    List(Vec<Value>),
}

impl Value {
    /// A tuple of integers without holes.
    pub(crate) fn tuple(tuple: IntTuple) -> Self {
        if tuple.is_int() {
            Self::Int(tuple.leaf(0))
        } else {
            Self::Tuple(Box::new(Slicer::new(tuple, 0)))
        }
    }

    /// `_`.
    pub(crate) fn hole() -> Self {
        Self::Tuple(Box::new(Slicer::new(IntTuple::int(0), 1)))
    }

    /// A plain layout.
    pub(crate) fn layout(layout: Layout) -> Self {
        Self::Layout(Box::new(Swizzled::plain(layout)))
    }

    /// A plain or composed layout.
    pub(crate) fn swizzled(layout: Swizzled) -> Self {
        Self::Layout(Box::new(layout))
    }

    /// A layout with named strides, or a plain one if no name is left.
    pub(crate) fn affine(layout: Affine) -> Self {
        match layout.as_static() {
            Some(layout) => Self::layout(layout),
            None => Self::Affine(Box::new(layout)),
        }
    }

    /// An integer with names, or without.
    pub(crate) fn form(form: Form) -> Self {
        match form.as_int() {
            Some(value) => Self::Int(value),
            None => Self::Form(form),
        }
    }

    /// What kind of value this is, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Bool(_) => "a truth value",
            Self::Form(_) => "an integer with names",
            Self::Tuple(slicer) if slicer.is_closed() => "a tuple",
            Self::Tuple(_) => "a coordinate with holes",
            Self::Layout(layout) if layout.as_plain().is_some() => "a layout",
            Self::Layout(_) => "a composed layout",
            Self::Affine(_) => "a layout with named strides",
            Self::Coords(_) => "a coordinate layout",
            Self::Swizzle(_) => "a swizzle",
            Self::Inverse(_) => "the inverse of a composed layout",
            Self::Matrix(_) => "a bit matrix",
            Self::List(_) => "a tuple of layouts",
        }
    }

    /// The integer, also that of `(3)`.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Tuple(slicer) if slicer.is_closed() && slicer.tuple().leaves() == 1 => {
                Some(slicer.tuple().leaf(0))
            }
            _ => None,
        }
    }

    /// The integer with or without names.
    pub(crate) fn as_form(&self) -> Option<Form> {
        match self {
            Self::Form(form) => Some(form.clone()),
            Self::List(items) if items.len() == 1 => items[0].as_form(),
            _ => self.as_int().map(Form::constant),
        }
    }

    /// The integer or tuple without holes.
    pub(crate) fn as_tuple(&self) -> Option<IntTuple> {
        match self {
            Self::Int(value) => Some(IntTuple::int(*value)),
            Self::Tuple(slicer) if slicer.is_closed() => Some(slicer.tuple()),
            _ => None,
        }
    }

    /// The coordinate, with or without holes.
    pub(crate) fn as_slicer(&self) -> Option<Slicer> {
        match self {
            Self::Int(value) => Some(Slicer::new(IntTuple::int(*value), 0)),
            Self::Tuple(slicer) => Some(**slicer),
            _ => None,
        }
    }

    /// The layout that this is or stands for: `8` for `8:1`, `(4,8)` for the compact one, a tuple of layouts for the one
    /// with these modes. Nothing for other kinds.
    pub(crate) fn as_layout(&self) -> Option<Result<Swizzled, LayoutError>> {
        match self {
            Self::Layout(layout) => Some(Ok(**layout)),
            Self::Int(n) => Some(Layout::mode(*n, 1).map(Swizzled::plain)),
            Self::Tuple(slicer) if slicer.is_closed() => {
                Some(Layout::compact(slicer.tuple()).map(Swizzled::plain))
            }
            Self::List(items) => {
                let mut modes = Vec::with_capacity(items.len());
                for item in items {
                    match item.as_layout()? {
                        Ok(mode) => modes.push(mode.as_plain()?),
                        Err(error) => return Some(Err(error)),
                    }
                }
                Some(Layout::tuple(&modes).map(Swizzled::plain))
            }
            _ => None,
        }
    }

    /// How many values a tuple holds in all, and how deep it nests.
    pub(crate) fn extent(&self) -> (usize, usize) {
        match self {
            Self::List(items) => items
                .iter()
                .map(Self::extent)
                .fold((1, 1), |(n, depth), (m, d)| {
                    (n.saturating_add(m), depth.max(d + 1))
                }),
            _ => (1, 0),
        }
    }

    /// Whether this is made of integers, with names or without.
    pub(crate) fn is_integral(&self) -> bool {
        match self {
            Self::List(items) => items.iter().all(Self::is_integral),
            Self::Form(_) => true,
            other => other.as_tuple().is_some(),
        }
    }

    /// Whether there is an unknown integer somewhere inside.
    pub(crate) fn has_names(&self) -> bool {
        match self {
            Self::Form(_) => true,
            Self::List(items) => items.iter().any(Self::has_names),
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Form(form) => write!(f, "{form}"),
            Self::Tuple(slicer) => write!(f, "{slicer}"),
            Self::Layout(layout) => write!(f, "{layout}"),
            Self::Affine(layout) => write!(f, "{layout}"),
            Self::Coords(layout) => write!(f, "{layout}"),
            Self::Swizzle(swizzle) => write!(f, "{swizzle}"),
            Self::Inverse(inverse) => write!(f, "{inverse}"),
            Self::Matrix(matrix) => {
                let columns: Vec<String> = matrix.columns().iter().map(u64::to_string).collect();
                write!(f, "[{}]", columns.join(","))
            }
            Self::List(items) => {
                f.write_str("(")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str(")")
            }
        }
    }
}
