//! What an expression can be: integers, tuples, layouts and their kin.

use std::borrow::Cow;
use std::fmt;

use tilewright::f2::LinearMap;
use tilewright::{
    Affine, Chain, CoordLayout, Function, IntTuple, Layout, LayoutError, MovedCoords, Slicer,
    Swizzle, Swizzled, SwizzledAffine,
};

use super::devices::Devices;
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
    /// A layout, plain or swizzled.
    Layout(Box<Swizzled>),
    /// A layout with named strides, plain or swizzled.
    Affine(Box<SwizzledAffine>),
    /// A layout whose offsets are coordinates.
    Coords(Box<MovedCoords>),
    /// A swizzle alone.
    Swizzle(Swizzle),
    /// A composition of several steps, such as the inverse of a swizzled layout.
    Chain(Box<Chain>),
    /// A bit matrix over F2.
    Matrix(Box<LinearMap>),
    /// A statement about devices that share a matrix.
    Devices(Box<Devices>),
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

    /// A layout with named strides, or a static one if no name is left.
    pub(crate) fn affine(layout: impl Into<SwizzledAffine>) -> Self {
        let layout = layout.into();
        match layout.as_static() {
            Some(layout) => Self::swizzled(layout),
            None => Self::Affine(Box::new(layout)),
        }
    }

    /// A layout whose offsets are coordinates.
    pub(crate) fn coords(layout: impl Into<MovedCoords>) -> Self {
        Self::Coords(Box::new(layout.into()))
    }

    /// Whatever a composition is.
    pub(crate) fn function(function: Function) -> Self {
        if let Some(layout) = function.as_layout() {
            return Self::swizzled(layout);
        }
        match function {
            Function::Swizzle(swizzle) => Self::Swizzle(swizzle),
            Function::Offset(offset) => Self::Int(offset),
            Function::Layout(layout) => Self::swizzled(layout),
            Function::Affine(layout) => Self::affine(layout),
            Function::Coords(layout) => Self::coords(layout),
            Function::Chain(chain) => Self::Chain(Box::new(chain)),
            Function::Matrix(matrix) => Self::Matrix(Box::new(matrix)),
            _ => Self::Bool(false),
        }
    }

    /// Hands over the operand of a composition that this is; an integer is an offset, a tuple of layouts the layout with these
    /// modes. A [`Function`] is some KiB: it is made in place and never moved.
    pub(crate) fn with_function<R>(
        &self,
        then: impl FnOnce(&Function) -> R,
    ) -> Option<Result<R, LayoutError>> {
        Some(Ok(match self {
            Self::Int(offset) => then(&Function::Offset(*offset)),
            Self::Swizzle(swizzle) => then(&Function::Swizzle(*swizzle)),
            Self::Layout(layout) => then(&Function::Layout(**layout)),
            Self::Chain(chain) => then(&Function::Chain(**chain)),
            Self::Matrix(matrix) => then(&Function::Matrix(**matrix)),
            Self::Affine(layout) => then(&Function::Affine(**layout)),
            Self::Coords(layout) => then(&Function::Coords(**layout)),
            _ => match self.as_any()? {
                Ok(layout) => match *layout {
                    Self::Layout(ref layout) => then(&Function::Layout(**layout)),
                    Self::Affine(ref layout) => then(&Function::Affine(**layout)),
                    Self::Coords(ref layout) => then(&Function::Coords(**layout)),
                    _ => return None,
                },
                Err(error) => return Some(Err(error)),
            },
        }))
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
            Self::Form(form) if form.has_axes() => "a basis stride",
            Self::Form(_) => "an integer with names",
            Self::Tuple(slicer) if slicer.is_closed() => "a tuple",
            Self::Tuple(_) => "a coordinate with holes",
            Self::Layout(layout) if layout.as_plain().is_some() => "a layout",
            Self::Layout(_) => "a swizzled layout",
            Self::Affine(_) => "a layout with named strides",
            Self::Coords(_) => "a coordinate layout",
            Self::Swizzle(_) => "a swizzle",
            Self::Chain(chain) if chain.inner().is_none() => "a function on integers",
            Self::Chain(_) => "a composition of several steps",
            Self::Matrix(_) => "a bit matrix",
            Self::Devices(devices) => devices.kind(),
            Self::List(_) if self.has_names() => "a tuple with names",
            Self::List(_) => "a tuple of layouts",
        }
    }

    /// The statement about devices.
    pub(crate) fn devices(&self) -> Option<&Devices> {
        match self {
            Self::Devices(devices) => Some(devices),
            _ => None,
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

    /// The layout of integers that this is or stands for: `8` for `8:1`, `(4,8)` for the compact one, a tuple of layouts for
    /// the one with these modes. Nothing for other kinds.
    pub(crate) fn as_layout(&self) -> Option<Result<Swizzled, LayoutError>> {
        match self.as_any()? {
            Ok(layout) => match *layout {
                Self::Layout(ref layout) => Some(Ok(**layout)),
                _ => None,
            },
            Err(error) => Some(Err(error)),
        }
    }

    /// The layout of any kind that this is or stands for.
    pub(crate) fn as_any(&self) -> Option<Result<Cow<'_, Self>, LayoutError>> {
        let made = |layout: Layout| Cow::Owned(Self::layout(layout));
        match self {
            Self::Layout(_) | Self::Affine(_) | Self::Coords(_) | Self::Chain(_) => {
                Some(Ok(Cow::Borrowed(self)))
            }
            Self::Int(n) => Some(Layout::mode(*n, 1).map(made)),
            Self::Tuple(slicer) if slicer.is_closed() => {
                Some(Layout::compact(slicer.tuple()).map(made))
            }
            Self::List(items) => {
                let mut modes = Vec::with_capacity(items.len());
                for item in items {
                    match item.as_any()? {
                        Ok(mode) => modes.push(mode.into_owned()),
                        Err(error) => return Some(Err(error)),
                    }
                }
                Self::tuple_of(&modes).map(|layout| layout.map(Cow::Owned))
            }
            _ => None,
        }
    }

    /// The layout whose modes are the given layouts, of the kind that holds them all.
    fn tuple_of(modes: &[Self]) -> Option<Result<Self, LayoutError>> {
        if modes.iter().any(|m| matches!(m, Self::Coords(_))) {
            let modes: Option<Vec<CoordLayout>> = modes.iter().map(Self::plain_coords).collect();
            return Some(CoordLayout::tuple(&modes?).map(Self::coords));
        }
        if modes.iter().any(|m| matches!(m, Self::Affine(_))) {
            let modes: Option<Vec<Affine>> = modes.iter().map(Self::plain_affine).collect();
            return Some(Affine::tuple(&modes?).map(|l| Self::affine(Swizzled::plain(l))));
        }
        let modes: Option<Vec<Layout>> = modes.iter().map(Self::plain).collect();
        Some(Layout::tuple(&modes?).map(Self::layout))
    }

    /// The layout without swizzle and offset.
    pub(crate) fn plain(&self) -> Option<Layout> {
        match self {
            Self::Layout(layout) => layout.as_plain(),
            _ => None,
        }
    }

    /// The layout as one with named strides.
    pub(crate) fn plain_affine(&self) -> Option<Affine> {
        match self {
            Self::Affine(layout) => layout.as_plain(),
            _ => self.plain().map(Affine::from),
        }
    }

    /// The layout as one of coordinates; of integers only one that does not move.
    pub(crate) fn plain_coords(&self) -> Option<CoordLayout> {
        if let Self::Coords(layout) = self {
            return layout.as_plain();
        }
        let layout = self.plain()?;
        (layout.cosize() == 1)
            .then(|| CoordLayout::parse(&layout.to_string()).ok())
            .flatten()
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

    /// Whether there is a basis stride somewhere inside.
    pub(crate) fn has_axes(&self) -> bool {
        match self {
            Self::Form(form) => form.has_axes(),
            Self::List(items) => items.iter().any(Self::has_axes),
            _ => false,
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
            Self::Chain(chain) => write!(f, "{chain}"),
            Self::Matrix(matrix) => {
                let columns: Vec<String> = matrix.columns().iter().map(u64::to_string).collect();
                write!(f, "[{}]", columns.join(","))
            }
            Self::Devices(devices) => write!(f, "{devices}"),
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
