//! What the operators do: composition, application, arithmetic, comparison.

use tilewright::f2::LinearMap;
use tilewright::{
    Affine, Layout, LayoutError, SEARCH_LIMIT, Slicer, Swizzled, composition, composition_swizzled,
    equal_as_functions_swizzled, slice, slice_swizzled,
};

use super::error::{EvalError, Span};
use super::form::Form;
use super::functions::{OwnedTiler, tiler};
use super::parser::Spanned;
use super::value::Value;

/// `left o right`.
pub(crate) fn compose(left: &Spanned, right: &Spanned) -> Result<Spanned, EvalError> {
    let span = (left.1.0, right.1.1);
    let refuse = |error| EvalError::layout(error, span);
    let value = match (&left.0, &right.0) {
        (Value::Swizzle(swizzle), Value::Layout(inner)) if inner.swizzle().is_identity() => {
            Value::swizzled(
                Swizzled::new(*swizzle, inner.offset(), inner.layout()).map_err(refuse)?,
            )
        }
        (Value::Swizzle(_), Value::Layout(_)) => {
            return Err(not_composable(
                "two swizzles do not make one; keep them apart",
                span,
            ));
        }
        (Value::Int(offset), Value::Layout(inner)) if inner.swizzle().is_identity() => {
            let Some(sum) = offset.checked_add(inner.offset()) else {
                return Err(refuse(LayoutError::Overflow {
                    operation: "an offset",
                }));
            };
            Value::swizzled(Swizzled::new(inner.swizzle(), sum, inner.layout()).map_err(refuse)?)
        }
        (Value::Int(_), Value::Layout(_)) => {
            let message = "an offset belongs inside the swizzle: Sw<..> o offset o layout";
            return Err(not_composable(message, span));
        }
        (Value::Layout(outer), Value::Layout(inner)) => {
            Value::swizzled(compose_layouts(outer, inner, span)?)
        }
        (Value::Affine(outer), inner) => {
            let inner = plain(inner, right.1)?;
            Value::affine(outer.composition(&inner).map_err(refuse)?)
        }
        (Value::Coords(outer), inner) => {
            let inner = plain(inner, right.1)?;
            Value::Coords(Box::new(outer.composition(&inner).map_err(refuse)?))
        }
        (left_value, Value::Int(_) | Value::Tuple(_) | Value::List(_)) => {
            let Some(outer) = left_value
                .as_layout()
                .filter(|_| !matches!(left_value, Value::Int(_)))
            else {
                return Err(kinds(left, right, span));
            };
            let outer = outer.map_err(|error| EvalError::layout(error, left.1))?;
            by_mode(&outer, &tiler(&right.0, right.1)?, span)?
        }
        (Value::Tuple(_) | Value::List(_), Value::Layout(inner)) => {
            let Some(outer) = left.0.as_layout() else {
                return Err(kinds(left, right, span));
            };
            let outer = outer.map_err(|error| EvalError::layout(error, left.1))?;
            Value::swizzled(compose_layouts(&outer, inner, span)?)
        }
        _ => return Err(kinds(left, right, span)),
    };
    Ok((value, span))
}

fn not_composable(message: &'static str, span: Span) -> EvalError {
    EvalError::new("not_composable", message, span)
}

fn kinds(left: &Spanned, right: &Spanned, span: Span) -> EvalError {
    let message = format!("cannot compose {} with {}", left.0.kind(), right.0.kind());
    EvalError::kind(message, span)
}

/// The layout without swizzle and offset that a value stands for.
fn plain(value: &Value, span: Span) -> Result<Layout, EvalError> {
    match value.as_layout() {
        Some(Ok(layout)) => layout.as_plain().ok_or_else(|| {
            EvalError::kind("a layout without swizzle and offset is needed here", span)
        }),
        Some(Err(error)) => Err(EvalError::layout(error, span)),
        None => {
            let message = format!("a layout is needed here, not {}", value.kind());
            Err(EvalError::kind(message, span))
        }
    }
}

/// `outer ∘ tiler`, mode by mode.
pub(crate) fn by_mode(
    outer: &Swizzled,
    tiler: &OwnedTiler,
    span: Span,
) -> Result<Value, EvalError> {
    tiler
        .with(|tiler| tilewright::composition_by_mode_swizzled(outer, tiler))
        .map(Value::swizzled)
        .map_err(|error| EvalError::layout(error, span))
}

/// `outer ∘ inner`, where `inner` may be composed too.
pub(crate) fn compose_layouts(
    outer: &Swizzled,
    inner: &Swizzled,
    span: Span,
) -> Result<Swizzled, EvalError> {
    let refuse = |error| EvalError::layout(error, span);
    if let Some(plain) = inner.as_plain() {
        return composition_swizzled(outer, &plain).map_err(refuse);
    }
    if inner.swizzle().is_identity() {
        // L(offset + B(c)) = L(offset) + L(B(c)) if they do not carry: then B and a mode 2:offset compose together.
        let offset = Layout::mode(2, inner.offset()).map_err(refuse)?;
        let both = Layout::tuple(&[inner.layout(), offset]).map_err(refuse)?;
        let both = composition(&outer.layout(), &both).map_err(refuse)?;
        let (rest, start) = (both.get(0).map_err(refuse)?, both.at(&[0, 1]));
        let Some(offset) = outer.offset().checked_add(start) else {
            return Err(refuse(LayoutError::Overflow {
                operation: "an offset",
            }));
        };
        return Swizzled::new(outer.swizzle(), offset, rest).map_err(refuse);
    }
    through_bits(outer, inner).ok_or_else(|| {
        let message = "no layout is this layout after a swizzle; put the swizzle leftmost";
        not_composable(message, span)
    })
}

/// The composition as a product of bit matrices, where there are such and the product is a layout again. Checked element
/// by element.
fn through_bits(outer: &Swizzled, inner: &Swizzled) -> Option<Swizzled> {
    if inner.size() > SEARCH_LIMIT {
        return None;
    }
    let a = LinearMap::from_swizzled(outer).ok()?;
    let b = LinearMap::from_swizzled(inner).ok()?;
    let flat = a.product(&b).ok()?.to_swizzled().ok()?;
    let nested = tilewright::Layout::compact(inner.shape()).ok()?;
    let result = composition_swizzled(&flat, &nested).ok()?;
    let law = (0..inner.size()).all(|i| result.index(i) == outer.index(inner.index(i)));
    law.then_some(result)
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
    if let (Value::Swizzle(swizzle), [(x, _)]) = (&callee.0, args)
        && let Some(x) = x.as_int()
    {
        return Ok(Value::Int(swizzle.apply(x)));
    }
    let slicer = coordinate(args, argument_span)?;
    match &callee.0 {
        Value::Layout(layout) => apply_layout(layout, &slicer).map_err(refuse),
        Value::Affine(layout) => apply_affine(layout, &slicer, argument_span),
        Value::Coords(layout) if slicer.is_closed() => layout
            .at_coord(&slicer.tuple())
            .map(Value::tuple)
            .map_err(refuse),
        Value::Inverse(inverse) if slicer.is_closed() && slicer.tuple().is_int() => inverse
            .checked_index(slicer.tuple().leaf(0))
            .map(Value::Int)
            .map_err(refuse),
        Value::Matrix(matrix) if slicer.is_closed() && slicer.tuple().is_int() => {
            let x = slicer.tuple().leaf(0);
            match u64::try_from(x) {
                Ok(index) if matrix.in_bits() >= 64 || index >> matrix.in_bits() == 0 => {
                    Ok(Value::Int(matrix.apply(index) as i64))
                }
                _ => Err(refuse(LayoutError::CoordinateOutOfRange {
                    mode: 0,
                    coordinate: x,
                    extent: 1i64.checked_shl(matrix.in_bits()).unwrap_or(i64::MAX),
                })),
            }
        }
        other => {
            let message = format!("{} cannot be applied to this", other.kind());
            Err(EvalError::kind(message, span))
        }
    }
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

fn apply_layout(layout: &Swizzled, slicer: &Slicer) -> Result<Value, LayoutError> {
    if slicer.is_closed() {
        layout.at_coord(&slicer.tuple()).map(Value::Int)
    } else {
        slice_swizzled(slicer, layout).map(Value::swizzled)
    }
}

fn apply_affine(layout: &Affine, slicer: &Slicer, span: Span) -> Result<Value, EvalError> {
    let refuse = |error| EvalError::layout(error, span);
    let constant = layout.constant_term().map_err(refuse)?;
    let mut kept = constant;
    let mut offset = Form::constant(0);
    let overflow = || {
        refuse(LayoutError::Overflow {
            operation: "an offset",
        })
    };
    for p in 0..=layout.parameters() {
        let (term, unit) = if p == 0 {
            (constant, Form::constant(1))
        } else {
            let name = layout.parameter(p - 1).map_err(refuse)?;
            (
                layout.named_term(p - 1).map_err(refuse)?,
                Form::name(name.as_str()),
            )
        };
        let at = if slicer.is_closed() {
            term.at_coord(&slicer.tuple()).map_err(refuse)?
        } else {
            let (part, at) = slice(slicer, &term).map_err(refuse)?;
            if p == 0 {
                kept = part;
            }
            at
        };
        offset = offset.add(at, &unit).ok_or_else(overflow)?;
    }
    if slicer.is_closed() {
        return Ok(Value::form(offset));
    }
    if offset != Form::constant(0) {
        let message = format!(
            "the slice starts at {offset}, and a layout with named strides has no offset; fix coordinates at 0"
        );
        return Err(EvalError::new("not_supported", message, span));
    }
    // The modes that are left, taken by composition: that keeps the named strides.
    let domain = Layout::compact(layout.shape()).map_err(refuse)?;
    let (modes, _) = slice(slicer, &domain).map_err(refuse)?;
    debug_assert_eq!(modes.shape(), kept.shape());
    layout
        .composition(&modes)
        .map(Value::affine)
        .map_err(refuse)
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

/// Layouts are equal as functions of the linear coordinate; everything else as it is written.
pub(crate) fn equal(left: &Value, right: &Value, span: Span) -> Result<bool, EvalError> {
    match (left, right) {
        (Value::Layout(a), Value::Layout(b)) => {
            equal_as_functions_swizzled(a, b).map_err(|error| EvalError::layout(error, span))
        }
        (Value::Affine(a), Value::Affine(b)) => {
            Ok(a.size() == b.size() && a.coalesce() == b.coalesce())
        }
        (Value::Affine(a), Value::Layout(b)) | (Value::Layout(b), Value::Affine(a)) => {
            match (a.coalesce().as_static(), b.as_plain()) {
                (Some(a), Some(b)) => Ok(tilewright::equal_as_functions(&a, &b)),
                _ => Ok(false),
            }
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
