//! What the operators do: composition, application, arithmetic, comparison. Composition and application are the library's.

use tilewright::{
    Function, IntTuple, LayoutError, LinearForm, MovedCoords, Slicer, SwizzledAffine,
};

use super::error::{EvalError, Span};
use super::form::Form;
use super::functions::{OwnedTiler, tiler};
use super::parser::Spanned;
use super::value::Value;

/// `left o right`. An integer or a tuple on the right is a tiler.
pub(crate) fn compose(left: &Spanned, right: &Spanned) -> Result<Spanned, EvalError> {
    let span = (left.1.0, right.1.1);
    let refuse = |error| EvalError::layout(error, span);
    let is_tiler = matches!(right.0, Value::Int(_) | Value::Tuple(_) | Value::List(_));
    let value = match (&left.0, &right.0) {
        (Value::Tuple(by), Value::Coords(layout)) if by.is_closed() => {
            Value::coords(layout.moved_to(&by.tuple()).map_err(refuse)?)
        }
        (Value::Form(form), Value::Layout(_) | Value::Affine(_)) if !form.has_axes() => {
            named_offset(form, &right.0, span)?
        }
        (left_value, _)
            if is_tiler
                && !matches!(
                    left_value,
                    Value::Int(_) | Value::Swizzle(_) | Value::Matrix(_)
                ) =>
        {
            let outer = match left_value.as_any() {
                Some(Ok(outer)) => outer,
                Some(Err(error)) => return Err(EvalError::layout(error, left.1)),
                None => return Err(kinds(left, right, span)),
            };
            by_mode(&outer, &tiler(&right.0, right.1)?, span)?
        }
        _ => {
            let none = || kinds(left, right, span);
            operand(left, none, |outer| {
                operand(right, none, |inner| {
                    outer.compose(inner).map(Value::function).map_err(refuse)
                })
            })?
        }
    };
    Ok((value, span))
}

/// What `then` makes of the operand of a composition.
fn operand(
    value: &Spanned,
    none: impl FnOnce() -> EvalError,
    then: impl FnOnce(&Function) -> Result<Value, EvalError>,
) -> Result<Value, EvalError> {
    match value.0.with_function(then) {
        Some(Ok(result)) => result,
        Some(Err(error)) => Err(EvalError::layout(error, value.1)),
        None => Err(none()),
    }
}

/// `3*ld o layout`: an offset with names in it.
fn named_offset(form: &Form, layout: &Value, span: Span) -> Result<Value, EvalError> {
    let layout = match layout {
        Value::Affine(layout) => **layout,
        Value::Layout(layout) => (**layout).into(),
        other => {
            let message = format!("an offset is added to a layout, not to {}", other.kind());
            return Err(EvalError::kind(message, span));
        }
    };
    let refuse = |error| EvalError::layout(error, span);
    if !layout.swizzle().is_identity() {
        return Err(refuse(LayoutError::NamedStrides {
            operation: "an offset after a swizzle",
        }));
    }
    // The library's sum: the offset at coordinate 1 of a layout with that stride.
    let by = tilewright::Affine::parse(&format!("2:{form}"))
        .map_err(|error| EvalError::notation(&error, span))?
        .checked_index(1)
        .map_err(refuse)?;
    layout.moved_by(&by).map(Value::affine).map_err(refuse)
}

fn kinds(left: &Spanned, right: &Spanned, span: Span) -> EvalError {
    let message = format!("cannot compose {} with {}", left.0.kind(), right.0.kind());
    EvalError::kind(message, span)
}

/// Does the same to a layout of any kind: `$body` is a `Result` of the same kind.
macro_rules! on_any {
    ($value:expr, $layout:ident => $body:expr) => {
        match $value {
            Value::Layout($layout) => $body.map(Value::swizzled),
            Value::Affine($layout) => $body.map(Value::affine),
            Value::Coords($layout) => $body.map(Value::coords),
            Value::Chain(chain) => match chain.inner() {
                Some(inner) => {
                    let $layout = &inner;
                    $body.map(|inner| Value::Chain(Box::new(chain.with_inner(inner))))
                }
                None => Err(tilewright::LayoutError::NoShape {
                    operation: "rearranging coordinates",
                }),
            },
            _ => Err(tilewright::LayoutError::EmptyTuple),
        }
    };
}
pub(super) use on_any;

/// `outer ∘ tiler`, mode by mode; `outer` is a layout of any kind.
pub(crate) fn by_mode(outer: &Value, tiler: &OwnedTiler, span: Span) -> Result<Value, EvalError> {
    tiler
        .with(|tiler| on_any!(outer, layout => layout.compose_by_mode(tiler)))
        .map_err(|error| EvalError::layout(error, span))
}

/// `callee(args)`.
pub(crate) fn apply(callee: &Spanned, args: &[Spanned], span: Span) -> Result<Value, EvalError> {
    let Some((first, last)) = args.first().zip(args.last()) else {
        return Err(EvalError::new(
            "wrong_arguments",
            "a coordinate is needed here",
            span,
        ));
    };
    let argument_span = (first.1.0, last.1.1);
    let refuse = |error| EvalError::layout(error, argument_span);
    let slicer = coordinate(args, argument_span)?;
    let tuple = slicer.tuple();
    match &callee.0 {
        Value::Layout(_) | Value::Affine(_) | Value::Coords(_) if !slicer.is_closed() => {
            on_any!(&callee.0, layout => layout.slice(&slicer)).map_err(refuse)
        }
        Value::Chain(chain) if !slicer.is_closed() && chain.inner().is_some() => {
            on_any!(&callee.0, layout => layout.slice(&slicer)).map_err(refuse)
        }
        Value::Layout(layout) => layout.at_coord(&tuple).map(Value::Int).map_err(refuse),
        Value::Affine(layout) => affine_at(layout, &tuple).map_err(refuse).and_then(|sum| {
            sum.ok_or_else(|| {
                let message =
                    "the layout is swizzled and its strides have names; bind them with let ld = …;";
                EvalError::new("named_strides", message, argument_span)
            })
        }),
        Value::Coords(layout) => coords_at(layout, &tuple).map_err(refuse),
        Value::Chain(chain) if slicer.is_closed() => {
            chain.at_coord(&tuple).map(Value::Int).map_err(refuse)
        }
        Value::Swizzle(_) | Value::Matrix(_) if slicer.is_closed() && tuple.is_int() => {
            let at = |function: &Function| {
                let index = function.index(tuple.leaf(0));
                index.map(Value::Int).map_err(refuse)
            };
            operand(callee, || kinds(callee, callee, span), at)
        }
        other => {
            let message = format!("{} cannot be applied to this", other.kind());
            Err(EvalError::kind(message, span))
        }
    }
}

/// The offset of a layout with named strides; none if a swizzle comes after it.
fn affine_at(layout: &SwizzledAffine, at: &IntTuple) -> Result<Option<Value>, LayoutError> {
    if !layout.swizzle().is_identity() {
        return Ok(None);
    }
    let mut sum = form(&layout.offset_form(), layout);
    let inner = form(&layout.layout().at_coord(at)?, layout);
    sum = sum.add(1, &inner).ok_or(LayoutError::Overflow {
        operation: "an offset",
    })?;
    Ok(Some(Value::form(sum)))
}

/// The library's sum as the calculator's.
fn form(value: &LinearForm, layout: &SwizzledAffine) -> Form {
    let names = (0..layout.layout().parameters()).filter_map(|p| layout.layout().parameter(p).ok());
    let terms = names.map(|name| (name.as_str().to_owned(), value.factor(&name)));
    Form {
        constant: value.constant_term(),
        terms: terms.filter(|term| term.1 != 0).collect(),
    }
}

fn coords_at(layout: &MovedCoords, at: &IntTuple) -> Result<Value, LayoutError> {
    layout.coord_at(at).map(Value::tuple)
}

/// One argument is the coordinate itself, several are its elements.
fn coordinate(args: &[Spanned], span: Span) -> Result<Slicer, EvalError> {
    let mut slicers = Vec::with_capacity(args.len());
    for (value, span) in args {
        let Some(slicer) = value.as_slicer() else {
            let message = format!(
                "a coordinate is an integer, `_` or a tuple of them, not {}",
                value.kind()
            );
            return Err(EvalError::kind(message, *span));
        };
        slicers.push(slicer);
    }
    if let [only] = slicers[..] {
        return Ok(only);
    }
    let tuples: Vec<_> = slicers.iter().map(Slicer::tuple).collect();
    let tuple =
        tilewright::IntTuple::tuple(&tuples).map_err(|error| EvalError::layout(error, span))?;
    let leaves = slicers
        .iter()
        .flat_map(|s| (0..s.tuple().leaves()).map(|i| s.is_open(i)));
    let open = leaves
        .enumerate()
        .fold(0, |mask, (i, open)| mask | u32::from(open) << i);
    Ok(Slicer::new(tuple, open))
}
/// `+ - * / %` on integers; `+ - *` also with names. Division rounds down, as coordinates do.
pub(crate) fn arithmetic(
    operator: &str,
    left: &Spanned,
    right: &Spanned,
) -> Result<Spanned, EvalError> {
    let span = (left.1.0, right.1.1);
    let overflow = || EvalError::new("overflow", "the result does not fit in 64 bits", span);
    if let (Some(a), Some(b)) = (left.0.as_int(), right.0.as_int()) {
        if matches!(operator, "/" | "%") && b == 0 {
            return Err(EvalError::new("division_by_zero", "division by zero", span));
        }
        let value = match operator {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "/" => a.checked_div_euclid(b),
            _ => a.checked_rem_euclid(b),
        };
        return Ok((Value::Int(value.ok_or_else(overflow)?), span));
    }
    let (Some(a), Some(b)) = (left.0.as_form(), right.0.as_form()) else {
        let message = format!(
            "'{operator}' needs integers, not {} and {}",
            left.0.kind(),
            right.0.kind()
        );
        return Err(EvalError::kind(message, span));
    };
    let value = match (operator, a.as_int(), b.as_int()) {
        ("+", ..) => a.add(1, &b),
        ("-", ..) => a.add(-1, &b),
        ("*", Some(n), _) => Form::constant(0).add(n, &b),
        ("*", _, Some(n)) => Form::constant(0).add(n, &a),
        _ => {
            let message = format!("'{operator}' of names is not linear; use integers");
            return Err(EvalError::kind(message, span));
        }
    };
    Ok((Value::form(value.ok_or_else(overflow)?), span))
}

/// `==`, `!=` on anything, `<` and its kin on integers.
pub(crate) fn compare(operator: &str, left: &Spanned, right: &Spanned) -> Result<bool, EvalError> {
    let span = (left.1.0, right.1.1);
    match operator {
        "==" => return equal(&left.0, &right.0, span),
        "!=" => return Ok(!equal(&left.0, &right.0, span)?),
        _ => {}
    }
    let (Some(a), Some(b)) = (left.0.as_int(), right.0.as_int()) else {
        let message = format!(
            "'{operator}' compares integers, not {} and {}; for tuples there are lex_less, colex_less and elem_less",
            left.0.kind(),
            right.0.kind()
        );
        return Err(EvalError::kind(message, span));
    };
    Ok(match operator {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    })
}

/// Element by element, where both have a shape.
fn equal_values(chain: &tilewright::Chain, other: &Value, span: Span) -> Result<bool, EvalError> {
    let refuse = |error| EvalError::layout(error, span);
    let equal = |other: &Function| {
        let size = chain.size().map_err(refuse)?;
        let other_size = match other {
            Function::Layout(layout) => layout.size(),
            Function::Chain(chain) => chain.size().map_err(refuse)?,
            _ => return Ok(false),
        };
        if size > tilewright::SEARCH_LIMIT {
            return Err(refuse(LayoutError::TooLarge {
                operation: "equal",
                size,
                limit: tilewright::SEARCH_LIMIT,
            }));
        }
        Ok(size == other_size && (0..size).all(|i| other.index(i) == chain.checked_index(i)))
    };
    match other.with_function(equal) {
        Some(Ok(result)) => result,
        _ => Ok(false),
    }
}

/// Layouts are equal as functions of the linear coordinate; everything else as it is written.
pub(crate) fn equal(left: &Value, right: &Value, span: Span) -> Result<bool, EvalError> {
    match (left, right) {
        (Value::Layout(a), Value::Layout(b)) => a
            .equal_as_functions(b)
            .map_err(|error| EvalError::layout(error, span)),
        (Value::Affine(a), Value::Affine(b)) => Ok(a.size() == b.size()
            && a.swizzle() == b.swizzle()
            && a.offset_form() == b.offset_form()
            && a.layout().equal_as_functions(&b.layout())),
        (Value::Affine(a), Value::Layout(_)) | (Value::Layout(_), Value::Affine(a)) => {
            match a.coalesce().as_static() {
                Some(a) if matches!(left, Value::Affine(_)) => {
                    equal(&Value::swizzled(a), right, span)
                }
                Some(a) => equal(left, &Value::swizzled(a), span),
                None => Ok(false),
            }
        }
        (Value::Coords(a), Value::Coords(b)) => {
            Ok(a.offset_coord() == b.offset_coord() && a.layout().equal_as_functions(&b.layout()))
        }
        (Value::Chain(a), Value::Layout(_) | Value::Chain(_))
        | (Value::Layout(_), Value::Chain(a)) => {
            if left == right {
                return Ok(true);
            }
            let other = if matches!(left, Value::Chain(_)) {
                right
            } else {
                left
            };
            equal_values(a, other, span)
        }
        (Value::Layout(a), Value::List(_)) => match right.as_layout() {
            Some(Ok(b)) => equal(&Value::Layout(a.clone()), &Value::swizzled(b), span),
            _ => Ok(false),
        },
        (Value::List(_), Value::Layout(_)) => equal(right, left, span),
        _ => match (left.as_form(), right.as_form()) {
            (Some(a), Some(b)) => Ok(a == b),
            _ if std::mem::discriminant(left) == std::mem::discriminant(right) => Ok(left == right),
            _ => {
                let message = format!("cannot compare {} with {}", left.kind(), right.kind());
                Err(EvalError::kind(message, span))
            }
        },
    }
}
