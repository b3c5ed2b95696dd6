//! Functions that share their arguments: what tuples and layouts have in common, coordinates, construction, parts.

use tilewright as tw;
use tilewright::f2::LinearMap;
use tilewright::{Layout, LayoutError};

use super::super::error::EvalError;
use super::super::operators;
use super::super::parser::{make_layout, make_swizzle};
use super::super::value::Value;
use super::args::{Answer, Args};

/// What layouts and tuples have in common.
pub(super) fn about(args: &Args<'_>) -> Answer {
    let most = if args.name == "get" { usize::MAX } else { 1 };
    args.count(if args.name == "get" { 2 } else { 1 }, most)?;
    let value = &args.items[0].0;
    if args.name == "get" {
        let mut value = value.clone();
        for i in 1..args.items.len() {
            let mode = usize::try_from(args.int(i)?).map_err(|_| args.wrong(i, "a mode number"))?;
            value = match &value {
                Value::Layout(l) => {
                    let mode = args.done(l.layout().get(mode))?;
                    Value::swizzled(args.done(l.with_layout(mode))?)
                }
                Value::Affine(l) => Value::affine(args.done(l.get(mode))?),
                Value::List(items) => {
                    let rank = items.len();
                    let item = items.get(mode).cloned();
                    args.done(item.ok_or(LayoutError::ModeOutOfRange { mode, rank }))?
                }
                other => match other.as_tuple() {
                    Some(tuple) => Value::tuple(args.done(tuple.get(mode))?),
                    None => return Err(args.wrong(0, "a layout or a tuple")),
                },
            };
        }
        return Ok(value);
    }
    let shape = match value {
        Value::Coords(l) => l.shape(),
        Value::List(_) => args.swizzled(0)?.shape(),
        _ => args.shape(0)?,
    };
    match (args.name, value) {
        ("rank", _) => Ok(Value::Int(shape.rank() as i64)),
        ("depth", _) => Ok(Value::Int(shape.depth() as i64)),
        ("size" | "product", _) => Ok(Value::Int(args.done(shape.size())?)),
        ("product_each", _) => Ok(Value::tuple(args.done(tw::product_each(&shape))?)),
        (_, Value::Layout(l)) => {
            let stride = tw::flatten(&l.layout().stride());
            let flat = args.done(Layout::new(tw::flatten(&shape), stride))?;
            Ok(Value::swizzled(args.done(l.with_layout(flat))?))
        }
        _ => Ok(Value::tuple(tw::flatten(&shape))),
    }
}

pub(super) fn slicing(args: &Args<'_>) -> Answer {
    args.count(2, 2)?;
    let slicer = args.slicer(0)?;
    if let Some(tuple) = args.items[1].0.as_tuple() {
        let result = if args.name == "slice" {
            tw::slice_tuple(&slicer, &tuple)
        } else {
            tw::dice_tuple(&slicer, &tuple)
        };
        return Ok(Value::tuple(args.done(result)?));
    }
    let layout = args.swizzled(1)?;
    if args.name == "slice" {
        return Ok(Value::swizzled(
            args.done(tw::slice_swizzled(&slicer, &layout))?,
        ));
    }
    let fixed = args.done(tw::dice(&slicer, &layout.layout()))?;
    Ok(Value::swizzled(args.done(layout.with_layout(fixed))?))
}

pub(super) fn coordinates(args: &Args<'_>) -> Answer {
    /// Coordinates listed at most.
    const LIMIT: i64 = 64;
    match args.name {
        "crd2idx" => {
            args.count(2, 3)?;
            if args.items.len() == 2 && matches!(args.items[1].0, Value::Layout(_)) {
                return operators::apply(&args.items[1], &args.items[..1], args.span);
            }
            let (coordinate, shape) = (args.tuple(0)?, args.shape(1)?);
            let index = if args.items.len() == 3 {
                tw::crd2idx(&coordinate, &shape, &args.tuple(2)?)
            } else {
                tw::linear(&coordinate, &shape)
            };
            Ok(Value::Int(args.done(index)?))
        }
        "idx2crd" => {
            args.count(2, 2)?;
            Ok(Value::tuple(
                args.done(tw::idx2crd(args.int(0)?, &args.shape(1)?))?,
            ))
        }
        "crd2crd" => {
            args.count(3, 3)?;
            let (coordinate, from, to) = (args.tuple(0)?, args.shape(1)?, args.shape(2)?);
            Ok(Value::tuple(args.done(tw::crd2crd(
                &coordinate,
                &from,
                &to,
            ))?))
        }
        _ => {
            args.count(1, 1)?;
            let all = args.done(tw::coordinates(&args.shape(0)?))?;
            let size = all.len() as i64;
            if size > LIMIT {
                let operation = "coordinates";
                return args.done(Err(LayoutError::TooLarge {
                    operation,
                    size,
                    limit: LIMIT,
                }));
            }
            Ok(Value::List(all.map(Value::tuple).collect()))
        }
    }
}

pub(super) fn construct(args: &Args<'_>) -> Answer {
    match args.name {
        "make_layout" => {
            args.count(1, usize::MAX)?;
            if args
                .items
                .iter()
                .any(|item| matches!(item.0, Value::Layout(_)))
            {
                let modes: Result<Vec<_>, _> =
                    (0..args.items.len()).map(|i| args.layout(i)).collect();
                return Ok(Value::layout(args.done(Layout::tuple(&modes?))?));
            }
            args.count(1, 2)?;
            match args.items {
                [_] => Ok(Value::layout(args.done(Layout::compact(args.tuple(0)?))?)),
                _ => make_layout(&args.items[0], &args.items[1]),
            }
        }
        "make_ordered_layout" => {
            args.count(2, 2)?;
            let layout = tw::make_ordered_layout(&args.shape(0)?, &args.tuple(1)?);
            Ok(Value::layout(args.done(layout)?))
        }
        "make_layout_like" => args.map(|l| Ok(tw::make_layout_like(l))),
        "make_swizzle" => {
            args.count(3, 3)?;
            make_swizzle([args.int(0)?, args.int(1)?, args.int(2)?], args.span)
        }
        name => {
            args.count(1, 1)?;
            let shape = args.shape(0)?;
            match name {
                "col_major" => Ok(Value::layout(args.done(Layout::compact(shape))?)),
                "row_major" => Ok(Value::layout(args.done(Layout::compact_row_major(shape))?)),
                _ => Ok(Value::Coords(Box::new(
                    args.done(tw::make_identity_layout(&shape))?,
                ))),
            }
        }
    }
}

pub(super) fn parts(args: &Args<'_>) -> Answer {
    args.count(1, 1)?;
    match (args.name, &args.items[0].0) {
        ("shape", Value::Affine(l)) => return Ok(Value::tuple(l.shape())),
        ("shape", Value::Coords(l)) => return Ok(Value::tuple(l.shape())),
        ("coshape", Value::Coords(l)) => return Ok(Value::tuple(args.done(l.coshape())?)),
        _ => {}
    }
    let layout = args.swizzled(0)?;
    Ok(match args.name {
        "shape" => Value::tuple(layout.shape()),
        "stride" => Value::tuple(layout.layout().stride()),
        "swizzle" => Value::Swizzle(layout.swizzle()),
        "offset" => Value::Int(layout.offset()),
        "inner" => Value::layout(layout.layout()),
        _ => Value::Int(layout.cosize()),
    })
}

pub(super) fn coalesce(args: &Args<'_>) -> Answer {
    args.count(1, 2)?;
    if let (Value::Affine(l), [_]) = (&args.items[0].0, args.items) {
        return Ok(Value::affine(l.coalesce()));
    }
    let layout = args.swizzled(0)?;
    let inner = match args.items {
        [_] => tw::coalesce(&layout.layout()),
        _ => args.done(tw::coalesce_by_profile(&layout.layout(), &args.tuple(1)?))?,
    };
    Ok(Value::swizzled(args.done(layout.with_layout(inner))?))
}

pub(super) fn inverse(args: &Args<'_>) -> Answer {
    if args.name == "preimage" {
        args.count(2, 2)?;
        let (layout, y) = (args.swizzled(0)?, args.int(1)?);
        return Ok(Value::Int(args.done(tw::preimage_swizzled(&layout, y))?));
    }
    args.count(1, 1)?;
    let layout = args.swizzled(0)?;
    if args.name == "inverse" && !args.done(tw::is_bijective_swizzled(&layout))? {
        let message =
            "the offsets are not exactly 0..size, each once; use left_inverse or right_inverse";
        return Err(EvalError::new("not_invertible", message, args.span));
    }
    match (args.name, layout.as_plain()) {
        ("left_inverse", Some(plain)) => Ok(Value::layout(args.done(tw::left_inverse(&plain))?)),
        (_, Some(plain)) => Ok(Value::layout(args.done(tw::right_inverse(&plain))?)),
        (name, None) => {
            let inverse = if name == "left_inverse" {
                tw::left_inverse_swizzled(&layout)
            } else {
                tw::right_inverse_swizzled(&layout)
            };
            Ok(Value::Inverse(Box::new(args.done(inverse)?)))
        }
    }
}

pub(super) fn bits(args: &Args<'_>) -> Answer {
    args.count(1, 1)?;
    let refuse =
        |error: tw::f2::F2Error| EvalError::new(error.code(), error.to_string(), args.span);
    if args.name == "matrix" {
        let matrix = LinearMap::from_swizzled(&args.swizzled(0)?).map_err(refuse)?;
        return Ok(Value::Matrix(Box::new(matrix)));
    }
    let Value::Matrix(matrix) = &args.items[0].0 else {
        return Err(args.wrong(0, "a bit matrix"));
    };
    Ok(Value::swizzled(matrix.to_swizzled().map_err(refuse)?))
}
