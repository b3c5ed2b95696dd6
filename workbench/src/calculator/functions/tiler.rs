//! Tilers that own their parts, made from values.

use tilewright::{IntTuple, Layout, Slicer, Tiler};

use super::super::error::{EvalError, Span};
use super::super::value::Value;

/// A tiler that owns its parts; see [`Tiler`].
pub(crate) enum OwnedTiler {
    Keep,
    Int(i64),
    Layout(Box<Layout>),
    Tuple(Box<IntTuple>),
    Modes(Vec<OwnedTiler>),
}

impl OwnedTiler {
    /// Calls `f` with the tiler as the algebra takes it.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&Tiler<'_>) -> R) -> R {
        // Modes inside modes: the inner slices must live while the outer one is used.
        let Self::Modes(modes) = self else {
            return f(&self.leaf());
        };
        let inner: Vec<Vec<Tiler<'_>>> = modes
            .iter()
            .map(|mode| match mode {
                Self::Modes(parts) => parts.iter().map(Self::leaf).collect(),
                _ => Vec::new(),
            })
            .collect();
        let outer: Vec<Tiler<'_>> = modes
            .iter()
            .zip(&inner)
            .map(|(mode, parts)| match mode {
                Self::Modes(_) => Tiler::Modes(parts),
                _ => mode.leaf(),
            })
            .collect();
        f(&Tiler::Modes(&outer))
    }

    fn leaf(&self) -> Tiler<'_> {
        match self {
            Self::Keep | Self::Modes(_) => Tiler::Keep,
            Self::Int(n) => Tiler::Int(*n),
            Self::Layout(layout) => Tiler::Layout(layout),
            Self::Tuple(tuple) => Tiler::Tuple(tuple),
        }
    }

    /// Levels of tuples of layouts.
    fn levels(&self) -> usize {
        match self {
            Self::Modes(modes) => 1 + modes.iter().map(Self::levels).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// The tiler that a value stands for.
pub(crate) fn tiler(value: &Value, span: Span) -> Result<OwnedTiler, EvalError> {
    let tiler = any_tiler(value, span)?;
    if tiler.levels() > 2 {
        let message = "a tiler of layouts nests at most two deep";
        return Err(EvalError::new("too_deep", message, span));
    }
    Ok(tiler)
}

fn any_tiler(value: &Value, span: Span) -> Result<OwnedTiler, EvalError> {
    match value {
        Value::Int(n) => Ok(OwnedTiler::Int(*n)),
        Value::Tuple(slicer) if slicer.is_closed() => {
            Ok(OwnedTiler::Tuple(Box::new(slicer.tuple())))
        }
        Value::Tuple(slicer) => Ok(holes(slicer)),
        Value::Layout(layout) if layout.as_plain().is_some() => {
            Ok(OwnedTiler::Layout(Box::new(layout.layout())))
        }
        Value::List(items) => {
            let modes: Result<_, _> = items.iter().map(|item| any_tiler(item, span)).collect();
            Ok(OwnedTiler::Modes(modes?))
        }
        other => {
            let message = format!(
                "a tiler is made of integers, layouts and `_`, not {}",
                other.kind()
            );
            Err(EvalError::kind(message, span))
        }
    }
}

/// A tuple with holes as a tiler.
fn holes(slicer: &Slicer) -> OwnedTiler {
    fn build(tuple: &IntTuple, slicer: &Slicer, leaf: &mut usize) -> OwnedTiler {
        if tuple.is_int() {
            *leaf += 1;
            return if slicer.is_open(*leaf - 1) {
                OwnedTiler::Keep
            } else {
                OwnedTiler::Int(tuple.leaf(0))
            };
        }
        let modes = (0..tuple.rank()).filter_map(|i| tuple.get(i).ok());
        OwnedTiler::Modes(modes.map(|mode| build(&mode, slicer, leaf)).collect())
    }
    build(&slicer.tuple(), slicer, &mut 0)
}
