//! Functions that share their arguments: what tuples and layouts have in common, coordinates, construction, parts.

use tilewright as tw;
use tilewright::banks::NVIDIA;
use tilewright::{Affine, CoordLayout, Layout, LayoutError, Swizzled};

use super::super::error::EvalError;
use super::super::instructions;
use super::super::operators::{self, on_any};
use super::super::parser::{make_layout, make_swizzle};
use super::super::value::Value;
use super::args::{Answer, Args, on_argument};
use super::tiler;

/// What layouts and tuples have in common.
pub(super) fn about(args: &Args<'_>) -> Answer {
    let most = if args.name == "get" { usize::MAX } else { 1 };
    args.count(if args.name == "get" { 2 } else { 1 }, most)?;
    let value = &args.items[0].0;
    if args.name == "get" {
        let mut value = value.clone();
        for i in 1..args.items.len() {
            let mode = args.mode(i)?;
            value = match &value {
                Value::Layout(_) | Value::Affine(_) | Value::Coords(_) | Value::Chain(_) => {
                    args.done(on_any!(&value, layout => layout.get(mode)))?
                }
                Value::List(items) => {
                    let rank = items.len();
                    let item = items.get(mode).cloned();
                    args.done(item.ok_or(LayoutError::ModeOutOfRange { mode, rank }))?
                }
                other => {
                    let tuple = other.as_tuple();
                    let tuple = tuple.ok_or_else(|| args.wrong(0, "a layout or a tuple"))?;
                    Value::tuple(args.done(tuple.get(mode))?)
                }
            };
        }
        return Ok(value);
    }
    if args.name == "flatten" {
        return if let Some(tuple) = args.items[0].0.as_tuple() {
            Ok(Value::tuple(tuple.flatten()))
        } else {
            on_argument!(args, 0, layout => Ok(layout.flatten()))
        };
    }
    let shape = args.shape(0)?;
    match args.name {
        "rank" => Ok(Value::Int(shape.rank() as i64)),
        "depth" => Ok(Value::Int(shape.depth() as i64)),
        "size" | "product" => Ok(Value::Int(args.done(shape.size())?)),
        _ => Ok(Value::tuple(args.done(tw::product_each(&shape))?)),
    }
}

/// Two layouts as one kind: coordinates if one of them is, else named strides if one has any.
enum Pair {
    Layouts(Box<Swizzled>, Box<Layout>),
    Affine(Box<tw::SwizzledAffine>, Box<Affine>),
    Coords(Box<tw::MovedCoords>, Box<CoordLayout>),
}

fn pair(args: &Args<'_>, first: usize, second: usize) -> Result<Pair, EvalError> {
    let (a, b) = (args.any(first)?, args.any(second)?);
    let needed = "a layout of the same kind without swizzle and offset";
    match (&*a, &*b) {
        (Value::Coords(a), _) => {
            let b = b.plain_coords().ok_or_else(|| args.wrong(second, needed))?;
            Ok(Pair::Coords(a.clone(), Box::new(b)))
        }
        (_, Value::Coords(_)) => {
            let a = a.plain_coords().ok_or_else(|| args.wrong(first, needed))?;
            let b = b.plain_coords().ok_or_else(|| args.wrong(second, needed))?;
            Ok(Pair::Coords(Box::new(a.into()), Box::new(b)))
        }
        (Value::Affine(a), _) => {
            let b = b.plain_affine().ok_or_else(|| args.wrong(second, needed))?;
            Ok(Pair::Affine(a.clone(), Box::new(b)))
        }
        (Value::Layout(a), Value::Affine(_)) => {
            let b = b.plain_affine().ok_or_else(|| args.wrong(second, needed))?;
            Ok(Pair::Affine(Box::new((**a).into()), Box::new(b)))
        }
        (Value::Layout(a), _) => {
            let b = b.plain().ok_or_else(|| args.wrong(second, needed))?;
            Ok(Pair::Layouts(a.clone(), Box::new(b)))
        }
        _ => Err(args.wrong(first, "a layout")),
    }
}

/// The same operation on a pair of either kind.
macro_rules! on_pair {
    ($args:expr, $pair:expr, $a:ident, $b:ident => $body:expr) => {
        match $pair {
            Pair::Layouts(boxed, $b) => {
                let $a = *boxed;
                $args.done($body).map(Value::swizzled)
            }
            Pair::Affine(boxed, $b) => {
                let $a = *boxed;
                $args.done($body).map(Value::affine)
            }
            Pair::Coords(boxed, $b) => {
                let $a = *boxed;
                $args.done($body).map(Value::coords)
            }
        }
    };
}

/// Rearranging the modes of a tuple or of a layout of any kind.
pub(super) fn modes(args: &Args<'_>) -> Answer {
    let (least, most) = match args.name {
        "group" | "take" | "replace" => (3, 3),
        "select" => (2, usize::MAX),
        "append" | "prepend" => (2, 3),
        "reverse" => (1, 1),
        _ => (2, 2),
    };
    args.count(least, most)?;
    let tuple = args.items[0].0.as_tuple();
    match args.name {
        "group" | "take" => {
            let (begin, end) = (args.mode(1)?, args.mode(2)?);
            match (tuple, args.name) {
                (Some(t), "group") => Ok(Value::tuple(args.done(t.group(begin, end))?)),
                (Some(t), _) => Ok(Value::tuple(args.done(t.take(begin, end))?)),
                (None, "group") => on_argument!(args, 0, layout => layout.group(begin, end)),
                (None, _) => on_argument!(args, 0, layout => layout.take(begin, end)),
            }
        }
        "select" => {
            let numbers = if let (2, Some(t)) = (args.items.len(), args.items[1].0.as_tuple()) {
                (0..t.leaves())
                    .map(|i| usize::try_from(t.leaf(i)))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|_| args.wrong(1, "a mode number or a tuple of them"))?
            } else {
                (1..args.items.len())
                    .map(|i| args.mode(i))
                    .collect::<Result<_, _>>()?
            };
            if let Some(t) = tuple {
                Ok(Value::tuple(args.done(t.select(&numbers))?))
            } else {
                on_argument!(args, 0, layout => layout.select(&numbers))
            }
        }
        "reverse" => {
            if let Some(t) = tuple {
                Ok(Value::tuple(args.done(t.reverse())?))
            } else {
                on_argument!(args, 0, layout => layout.reverse())
            }
        }
        "unflatten" => {
            let profile = args.shape(1)?;
            if let Some(t) = tuple {
                Ok(Value::tuple(args.done(t.unflatten(&profile))?))
            } else {
                on_argument!(args, 0, layout => layout.unflatten(&profile))
            }
        }
        "zip" => match (tuple, args.items[1].0.as_tuple()) {
            (Some(a), Some(b)) => Ok(Value::tuple(args.done(a.zip(&b))?)),
            _ => on_pair!(args, pair(args, 0, 1)?, a, b => a.zip(&b)),
        },
        "replace" => {
            let i = args.mode(1)?;
            match (tuple, args.items[2].0.as_tuple()) {
                (Some(a), Some(b)) => Ok(Value::tuple(args.done(a.replace(i, &b))?)),
                _ => on_pair!(args, pair(args, 0, 2)?, a, b => a.replace(i, &b)),
            }
        }
        _ => joined(args),
    }
}

/// `append` and `prepend`, once or until there are enough modes.
fn joined(args: &Args<'_>) -> Answer {
    let front = args.name == "prepend";
    let (a, b) = (args.items[0].0.as_tuple(), args.items[1].0.as_tuple());
    let rank = args.shape(0)?.rank();
    let times = if args.items.len() == 3 {
        let wanted = args.mode(2)?;
        wanted.checked_sub(rank).ok_or_else(|| {
            let message = format!("{rank} modes already, more than {wanted}");
            EvalError::new("rank_mismatch", message, args.span)
        })?
    } else {
        1
    };
    if times > tw::MAX_MODES {
        return args.done(Err(LayoutError::TooManyModes));
    }
    if let (Some(mut a), Some(b)) = (a, b) {
        for _ in 0..times {
            a = args.done(if front { a.prepend(&b) } else { a.append(&b) })?;
        }
        return Ok(Value::tuple(a));
    }
    on_pair!(args, pair(args, 0, 1)?, a, b => {
        let mut joined = Ok(a);
        for _ in 0..times {
            joined = joined.and_then(|a| if front { a.prepend(&b) } else { a.append(&b) });
        }
        joined
    })
}

/// Whether a tuple of numbers, or a tiler, divides.
pub(super) fn evenly_divides(args: &Args<'_>) -> Answer {
    args.count(2, 2)?;
    let shape = args.shape(0)?;
    if let Some(by) = args.items[1].0.as_tuple() {
        return Ok(Value::Bool(tw::evenly_divides(&shape, &by)));
    }
    let domain = args.done(Layout::compact(shape))?;
    let tiler = tiler(&args.items[1].0, args.items[1].1)?;
    match tiler.with(|tiler| domain.logical_divide(tiler)) {
        Ok(divided) => Ok(Value::Bool(divided.is_exact())),
        Err(error)
            if matches!(
                error.code(),
                "not_chained" | "not_composable" | "rank_mismatch"
            ) =>
        {
            Ok(Value::Bool(false))
        }
        Err(error) => args.done(Err(error)),
    }
}

/// Wavefronts of one warp access to shared memory.
pub(super) fn wavefronts(args: &Args<'_>) -> Answer {
    if args.items.len() != 2 {
        args.count(4, 4)?;
    }
    let Value::Form(op) = &args.items[0].0 else {
        return Err(args.wrong(0, "the name of an access, such as ld.32 or ldmatrix.x4"));
    };
    let access = instructions::access(&op.to_string())
        .map_err(|message| EvalError::new("unknown_access", message, args.items[0].1))?;
    if args.items.len() == 4 {
        let (tile, lanes, bytes) = (args.swizzled(1)?, args.layout(2)?, args.int(3)?);
        let addresses = args.done(tw::banks::lanes_to_bytes(&tile, &lanes, bytes))?;
        return counted(args, access, &addresses);
    }
    let lanes = args.swizzled(1)?;
    let size = lanes.size();
    if size > 32 {
        let message = format!("{size} lanes; a warp has 32");
        return Err(EvalError::new("too_many_lanes", message, args.items[1].1));
    }
    let addresses: [i64; 32] = std::array::from_fn(|lane| {
        if (lane as i64) < size {
            lanes.index(lane as i64)
        } else {
            -1
        }
    });
    counted(args, access, &addresses)
}

fn counted(args: &Args<'_>, access: tw::banks::Access, addresses: &[i64; 32]) -> Answer {
    let counted = tw::banks::wavefronts(&NVIDIA, access, addresses)
        .map_err(|error| EvalError::new(error.code(), error.to_string(), args.span))?;
    Ok(Value::Int(i64::from(counted.wavefronts)))
}

/// What a layout leaves out of `0..n`, all of it or the copies of the layout that fit; `n` is the cosize if it is not given.
pub(super) fn complement(args: &Args<'_>) -> Answer {
    args.count(1, 2)?;
    let value = &*args.any(0)?;
    let n = match (args.items.len(), value) {
        (2, _) => args.done(args.shape(1)?.size())?,
        (_, Value::Layout(l)) => l.layout().cosize(),
        // Without integers there is no cosize. The gaps are filled for any n.
        _ => 1,
    };
    macro_rules! rest {
        ($layout:expr) => {
            args.done(if args.name == "complement" {
                $layout.complement(n)
            } else {
                $layout.complement_partial(n)
            })?
        };
    }
    match value {
        Value::Layout(l) => Ok(Value::swizzled(rest!(l))),
        Value::Affine(l) => Ok(Value::affine(Swizzled::plain(rest!(l.layout())))),
        Value::Coords(l) => Ok(Value::coords(rest!(l.layout()))),
        _ => Err(args.wrong(0, "a layout")),
    }
}

pub(super) fn slicing(args: &Args<'_>) -> Answer {
    args.count(2, 2)?;
    let slicer = args.slicer(0)?;
    if let Some(tuple) = args.items[1].0.as_tuple() {
        let result = if args.name == "slice" {
            tuple.slice(&slicer)
        } else {
            tuple.dice(&slicer)
        };
        return Ok(Value::tuple(args.done(result)?));
    }
    if args.name == "slice" {
        on_argument!(args, 1, layout => layout.slice(&slicer))
    } else {
        on_argument!(args, 1, layout => layout.dice(&slicer))
    }
}

pub(super) fn coordinates(args: &Args<'_>) -> Answer {
    /// Coordinates listed at most.
    const LIMIT: i64 = 64;
    match args.name {
        "crd2idx" => {
            args.count(2, 3)?;
            if args.items.len() == 2
                && matches!(
                    args.items[1].0,
                    Value::Layout(_) | Value::Affine(_) | Value::Coords(_) | Value::Chain(_)
                )
            {
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
            let layout_like = |value: &Value| {
                !matches!(value, Value::Form(_)) && !value.is_integral() && value.as_any().is_some()
            };
            if args.items.iter().any(|item| layout_like(&item.0)) {
                // One tuple of layouts is the layout with these modes, several arguments are its modes.
                let modes = match args.items {
                    [(Value::List(_), _)] => return Ok(args.any(0)?.into_owned()),
                    items => Value::List(items.iter().map(|item| item.0.clone()).collect()),
                };
                let items = [(modes, args.span)];
                let args = Args {
                    items: &items,
                    ..*args
                };
                return Ok(args.any(0)?.into_owned());
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
        "make_layout_like" => {
            args.count(1, 1)?;
            Ok(Value::layout(args.layout(0)?.compact_like()))
        }
        "make_swizzle" => {
            args.count(3, 3)?;
            make_swizzle([args.int(0)?, args.int(1)?, args.int(2)?], args.span)
        }
        "col_major" | "row_major" => {
            args.count(1, 2)?;
            let shape = args.shape(0)?;
            let start = if args.items.len() == 2 {
                args.int(1)?
            } else {
                1
            };
            let compact = if args.name == "col_major" {
                Layout::compact_col_major(shape, start)
            } else {
                Layout::compact_row_major(shape, start)
            };
            Ok(Value::layout(args.done(compact)?))
        }
        _ => {
            args.count(1, 1)?;
            Ok(Value::coords(
                args.done(CoordLayout::identity(&args.shape(0)?))?,
            ))
        }
    }
}

pub(super) fn parts(args: &Args<'_>) -> Answer {
    args.count(1, 1)?;
    match (args.name, &*args.any(0)?) {
        ("shape", _) => Ok(Value::tuple(args.shape(0)?)),
        ("coshape", Value::Coords(l)) => Ok(Value::tuple(args.done(l.layout().coshape())?)),
        ("cosize", Value::Coords(l)) => Ok(Value::Int(args.done(l.layout().cosize())?)),
        ("cosize" | "coshape", Value::Chain(chain)) => {
            let (min, max) = args.done(chain.offset_range())?;
            Ok(Value::Int(max - min.min(0) + 1))
        }
        ("offset", Value::Coords(l)) => Ok(Value::tuple(l.offset_coord())),
        ("inner", Value::Coords(l)) => Ok(Value::coords(l.layout())),
        ("inner", Value::Affine(l)) => Ok(Value::affine(Swizzled::plain(l.layout()))),
        ("swizzle", Value::Affine(l)) => Ok(Value::Swizzle(l.swizzle())),
        ("cosize" | "coshape", Value::Affine(_)) => args.done(Err(LayoutError::NamedStrides {
            operation: "cosize",
        })),
        _ => {
            let layout = args.swizzled(0)?;
            Ok(match args.name {
                "stride" => Value::tuple(layout.layout().stride()),
                "swizzle" => Value::Swizzle(layout.swizzle()),
                "offset" => Value::Int(layout.offset()),
                "inner" => Value::layout(layout.layout()),
                _ => Value::Int(layout.cosize()),
            })
        }
    }
}

pub(super) fn coalesce(args: &Args<'_>) -> Answer {
    args.count(1, 2)?;
    if args.items.len() == 1 {
        return on_argument!(args, 0, layout => Ok(layout.coalesce()));
    }
    // `_` says "this mode by itself" as any integer does.
    let profile = match args.items[1].0.as_slicer() {
        Some(slicer) => slicer.tuple(),
        None => args.tuple(1)?,
    };
    on_argument!(args, 0, layout => layout.coalesce_by_profile(&profile))
}

pub(super) fn inverse(args: &Args<'_>) -> Answer {
    if args.name == "preimage" {
        args.count(2, 2)?;
        let (layout, y) = (args.swizzled(0)?, args.int(1)?);
        return Ok(Value::Int(args.done(layout.preimage(y))?));
    }
    args.count(1, 1)?;
    if let ("inverse", Value::Matrix(matrix)) = (args.name, &args.items[0].0) {
        let inverse = matrix
            .inverse()
            .map_err(|error| EvalError::new(error.code(), error.to_string(), args.span))?;
        return Ok(Value::Matrix(Box::new(inverse)));
    }
    let left = args.name == "left_inverse";
    let layout = match &*args.any(0)? {
        Value::Layout(layout) => **layout,
        Value::Affine(l) if l.as_plain().is_some() && args.name != "inverse" => {
            let l = l.layout();
            let inverse = if left {
                l.left_inverse()
            } else {
                l.right_inverse()
            };
            return Ok(Value::layout(args.done(inverse)?));
        }
        Value::Coords(l) if l.as_plain().is_some() => {
            let l = l.layout();
            let inverse = if left {
                l.left_inverse()
            } else {
                l.right_inverse()
            };
            return Ok(Value::layout(args.done(inverse)?));
        }
        _ => args.swizzled(0)?,
    };
    if args.name == "inverse" && !args.done(layout.is_bijective())? {
        let message =
            "the offsets are not exactly 0..size, each once; use left_inverse or right_inverse";
        return Err(EvalError::new("not_invertible", message, args.span));
    }
    // Of a bijection both are the inverse, but the one on the right begins at the offset of coordinate 0.
    let inside = layout.layout();
    let from_left = match args.name {
        "inverse" => args.done(inside.right_inverse())?.size() != layout.size(),
        _ => left,
    };
    let inverse = args.done(if from_left {
        layout.left_inverse()
    } else {
        layout.right_inverse()
    })?;
    Ok(Value::function(tw::Function::Chain(inverse)))
}

pub(super) fn bits(args: &Args<'_>) -> Answer {
    args.count(1, 1)?;
    let refuse =
        |error: tw::f2::F2Error| EvalError::new(error.code(), error.to_string(), args.span);
    if args.name == "matrix" {
        let matrix = match &args.items[0].0 {
            Value::Matrix(matrix) => **matrix,
            Value::Chain(chain) => chain.matrix().map_err(refuse)?,
            _ => args.swizzled(0)?.matrix().map_err(refuse)?,
        };
        return Ok(Value::Matrix(Box::new(matrix)));
    }
    let Value::Matrix(matrix) = &args.items[0].0 else {
        return Err(args.wrong(0, "a bit matrix"));
    };
    Ok(Value::swizzled(matrix.to_layout().map_err(refuse)?))
}
