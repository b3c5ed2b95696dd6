//! The operations of the algebra by their names.
//!
//! [`FUNCTIONS`] is the list that the documentation, the suggestions for misspelt names and the messages about wrong
//! arguments come from; [`call`] is the dispatch. A layout argument may also be an integer (`8` for `8:1`), a shape
//! (`(4,8)` for the compact layout) or a tuple of layouts.

mod args;
mod devices;
mod groups;
mod partition;
mod table;
mod tiler;

use std::cmp::Ordering;

use tilewright as tw;
use tilewright::Swizzled;

use super::error::{EvalError, Span};
use super::operators;
use super::parser::Spanned;
use super::value::Value;
use args::{Answer, Args, by_tiler, on_argument};
use groups::{about, bits, coalesce, construct, coordinates, inverse, modes, parts, slicing};
use operators::on_any;
pub(crate) use table::FUNCTIONS;
pub(crate) use tiler::{OwnedTiler, tiler};

/// Whether there is a function of this name.
pub(crate) fn exists(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.0 == name)
}

/// How to call a function.
pub(crate) fn usage(name: &str) -> &'static str {
    FUNCTIONS.iter().find(|f| f.0 == name).map_or("", |f| f.1)
}

/// The error about a name that means nothing, with the nearest that does.
pub(crate) fn unknown(name: &str, span: Span) -> EvalError {
    let short: String = name.chars().take(40).collect();
    let message = match nearest(&short) {
        Some(best) => format!("'{short}' is unknown; did you mean '{best}'?"),
        None if short.contains('.') => {
            format!(
                "'{short}' is unknown here: the name of an instruction is an argument of a function"
            )
        }
        None => format!("'{short}' is unknown; bind it with let {short} = …;"),
    };
    EvalError::new("unknown_name", message, span)
}

/// The function whose name is nearest to this one, if one is near.
fn nearest(name: &str) -> Option<&'static str> {
    FUNCTIONS
        .iter()
        .map(|f| (distance(name, f.0), f.0))
        .min()
        .filter(|(d, best)| *d <= 2.max(best.len() / 4))
        .map(|(_, best)| best)
}

/// The functions that are named to those who call one that does not exist.
const FIRST: [&str; 5] = [
    "coalesce",
    "complement",
    "logical_divide",
    "right_inverse",
    "size",
];

/// The error about a call of a function that does not exist.
pub(crate) fn unknown_function(name: &str, span: Span) -> EvalError {
    let short: String = name.chars().take(40).collect();
    let message = nearest(&short).map_or_else(
        || {
            format!(
                "there is no function '{short}'; there are {}, and {} more, which the page on eval's functions lists",
                FIRST.join(", "),
                FUNCTIONS.len() - FIRST.len()
            )
        },
        |best| format!("there is no function '{short}'; did you mean '{best}'?"),
    );
    EvalError::new("unknown_name", message, span)
}

/// Edits that turn one word into the other.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The value of `name(args)`; the name must exist.
pub(crate) fn call(name: &str, items: &[Spanned], span: Span) -> Answer {
    let args = Args { name, items, span };
    let tuples = || {
        args.count(2, 2)
            .and_then(|()| Ok((args.shape(0)?, args.shape(1)?)))
    };
    match name {
        "rank" | "depth" | "size" | "product" | "product_each" | "flatten" | "get" => about(&args),
        "congruent" => args.relation(tw::congruent),
        "weakly_congruent" => args.relation(tw::weakly_congruent),
        "compatible" => args.relation(tw::compatible),
        "evenly_divides" => groups::evenly_divides(&args),
        "ceil_div" => {
            tuples().and_then(|(a, b)| Ok(Value::tuple(args.done(tw::ceil_div(&a, &b))?)))
        }
        "shape_div" => {
            tuples().and_then(|(a, b)| Ok(Value::tuple(args.done(tw::shape_div(&a, &b))?)))
        }
        "lex_less" => args.order(tw::lexicographic, Ordering::is_lt),
        "lex_leq" => args.order(tw::lexicographic, Ordering::is_le),
        "lex_gtr" => args.order(tw::lexicographic, Ordering::is_gt),
        "lex_geq" => args.order(tw::lexicographic, Ordering::is_ge),
        "colex_less" => args.order(tw::colexicographic, Ordering::is_lt),
        "colex_leq" => args.order(tw::colexicographic, Ordering::is_le),
        "colex_gtr" => args.order(tw::colexicographic, Ordering::is_gt),
        "colex_geq" => args.order(tw::colexicographic, Ordering::is_ge),
        "elem_less" => args.each(Ordering::is_lt),
        "elem_leq" => args.each(Ordering::is_le),
        "elem_gtr" => args.each(Ordering::is_gt),
        "elem_geq" => args.each(Ordering::is_ge),
        "group" | "take" | "select" | "append" | "prepend" | "replace" | "unflatten" | "zip"
        | "reverse" => modes(&args),
        "sum" => {
            args.count(1, 1)?;
            Ok(Value::Int(args.done(tw::sum(&args.tuple(0)?))?))
        }
        "inner_product" => {
            tuples().and_then(|(a, b)| Ok(Value::Int(args.done(tw::inner_product(&a, &b))?)))
        }
        "product_like" => {
            tuples().and_then(|(a, b)| Ok(Value::tuple(args.done(tw::product_like(&a, &b))?)))
        }
        "elem_scale" => {
            tuples().and_then(|(a, b)| Ok(Value::tuple(args.done(tw::elem_scale(&a, &b))?)))
        }
        "round_up" => {
            tuples().and_then(|(a, b)| Ok(Value::tuple(args.done(tw::round_up(&a, &b))?)))
        }
        "lcm" => args.fold(lcm),
        "wavefronts" => groups::wavefronts(&args),
        "slice" | "dice" => slicing(&args),
        "min" => args.fold(|a, b| Some(a.min(b))),
        "max" => args.fold(|a, b| Some(a.max(b))),
        "gcd" => args.fold(|a, b| i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).ok()),
        "abs" => {
            args.count(1, 1)?;
            args.int(0)?
                .checked_abs()
                .map(Value::Int)
                .ok_or_else(|| args.overflow())
        }
        "crd2idx" | "idx2crd" | "crd2crd" | "coordinates" => coordinates(&args),
        "make_layout"
        | "col_major"
        | "row_major"
        | "make_ordered_layout"
        | "make_layout_like"
        | "make_identity_layout"
        | "identity"
        | "make_swizzle" => construct(&args),
        "shape" | "stride" | "swizzle" | "offset" | "inner" | "cosize" | "coshape" => parts(&args),
        "coalesce" => coalesce(&args),
        "filter" => {
            args.count(1, 1)?;
            on_argument!(args, 0, layout => Ok(layout.filter()))
        }
        "filter_zeros" => {
            args.count(1, 1)?;
            on_argument!(args, 0, layout => Ok(layout.filter_zeros()))
        }
        "composition" if items.len() == 3 => super::foreign::composition_of_three(items, span),
        "composition" => {
            args.count(2, 2)?;
            let left = match &items[0] {
                // An integer on the left is a layout here, where the operator takes it for an offset.
                (Value::Int(_), span) => (Value::swizzled(args.swizzled(0)?), *span),
                other => other.clone(),
            };
            operators::compose(&left, &items[1])
                .map(|composed| composed.0)
                .map_err(|error| EvalError { span, ..error })
        }
        "composition_strict" => {
            args.count(2, 2)?;
            let (a, b) = (args.layout(0)?, args.layout(1)?);
            Ok(Value::layout(args.done(a.compose_strict(&b))?))
        }
        "complement" | "complement_partial" => groups::complement(&args),
        "right_inverse" | "left_inverse" | "inverse" | "preimage" => inverse(&args),
        "nullspace" => {
            args.count(1, 1)?;
            Ok(Value::layout(match &*args.any(0)? {
                Value::Affine(l) => l.layout().nullspace(),
                Value::Coords(l) => l.layout().nullspace(),
                _ => args.swizzled(0)?.nullspace(),
            }))
        }
        "max_common_layout" => {
            args.count(2, 2)?;
            let (a, b) = (args.swizzled(0)?, args.swizzled(1)?);
            let common = match (a.as_plain(), b.as_plain()) {
                (Some(a), Some(b)) => a.max_common_layout(&b),
                _ => a.max_common_layout(&b),
            };
            Ok(Value::layout(args.done(common)?))
        }
        "max_common_vector" => {
            args.count(2, 2)?;
            let (a, b) = (args.swizzled(0)?, args.swizzled(1)?);
            Ok(Value::Int(args.done(a.max_common_vector(&b))?))
        }
        "max_alignment" => {
            args.count(1, 1)?;
            Ok(Value::Int(args.swizzled(0)?.max_alignment()))
        }
        "domain_distribute" | "domain_distribute_partial" => {
            args.count(2, 2)?;
            let (shape, n) = (args.shape(0)?, args.done(args.shape(1)?.size())?);
            let distributed = if name == "domain_distribute" {
                tw::domain_distribute(&shape, n)
            } else {
                tw::domain_distribute_partial(&shape, n)
            };
            Ok(Value::layout(args.done(distributed)?))
        }
        "logical_divide" => by_tiler!(args, logical_divide, divided => divided.rounded_up()),
        "zipped_divide" => by_tiler!(args, zipped_divide, divided => divided.rounded_up()),
        "tiled_divide" => by_tiler!(args, tiled_divide, divided => divided.rounded_up()),
        "flat_divide" => by_tiler!(args, flat_divide, divided => divided.rounded_up()),
        "overhang" => args.overhang(),
        "logical_product" => by_tiler!(args, logical_product, product => product),
        "zipped_product" => by_tiler!(args, zipped_product, product => product),
        "tiled_product" => by_tiler!(args, tiled_product, product => product),
        "flat_product" => by_tiler!(args, flat_product, product => product),
        "blocked_product" => {
            args.count(2, 2)?;
            let tiler = args.layout(1)?;
            on_argument!(args, 0, layout => layout.blocked_product(&tiler))
        }
        "raked_product" => {
            args.count(2, 2)?;
            let tiler = args.layout(1)?;
            on_argument!(args, 0, layout => layout.raked_product(&tiler))
        }
        "tile_to_shape" => {
            args.count(2, 3)?;
            let order = if items.len() == 3 {
                Some(args.tuple(2)?)
            } else {
                None
            };
            let shape = args.shape(1)?;
            on_argument!(args, 0, layout => layout.tile_to_shape(&shape, order.as_ref()))
        }
        "upcast" | "downcast" => {
            args.count(2, 2)?;
            let (n, up) = (args.int(1)?, name == "upcast");
            if let Value::Swizzle(s) = items[0].0 {
                let cast = if up { s.upcast(n) } else { s.downcast(n) };
                return Ok(Value::Swizzle(args.done(cast)?));
            }
            let layout = args.swizzled(0)?;
            let cast = if up {
                layout.upcast(n)
            } else {
                layout.downcast(n)
            };
            Ok(Value::swizzled(args.done(cast)?))
        }
        "recast" => {
            args.count(3, 3)?;
            let (layout, old, new) = (args.swizzled(0)?, args.int(1)?, args.int(2)?);
            Ok(Value::swizzled(args.done(layout.recast(old, new))?))
        }
        "matrix" | "to_layout" => bits(&args),
        "local_tile" | "local_partition" | "thread_partition" | "atom_a" | "atom_b" | "atom_c"
        | "atom_meta" | "atom_src" | "atom_dst" | "atom_tmem" | "layout_tv_a" | "layout_tv_b"
        | "layout_tv_c" | "thrfrg_a" | "thrfrg_b" | "thrfrg_c" | "partition_a" | "partition_b"
        | "partition_c" | "layout_tv" | "partition_s" | "partition_d" | "retile" => {
            partition::partition(&args)
        }
        "distribution" | "row_shards" | "column_shards" | "grid_shards" | "replicas" | "terms"
        | "summed" | "shards" | "holders" | "redistribute" => devices::devices(&args),
        "equal" => {
            args.count(2, 2)?;
            operators::equal(&items[0].0, &items[1].0, span).map(Value::Bool)
        }
        "same" => {
            args.count(2, 2)?;
            Ok(Value::Bool(items[0].0 == items[1].0))
        }
        "is_injective" => {
            args.count(1, 1)?;
            if let Value::Coords(layout) = &*args.any(0)? {
                return Ok(Value::Bool(args.done(layout.layout().is_injective())?));
            }
            args.ask(Swizzled::is_injective)
        }
        "is_surjective_onto" => {
            args.count(2, 2)?;
            let n = args.done(args.shape(1)?.size())?;
            args.ask(|l| l.is_surjective_onto(n))
        }
        "is_bijective" => args
            .count(1, 1)
            .and_then(|()| args.ask(Swizzled::is_bijective)),
        "is_compact" => args
            .count(1, 1)
            .and_then(|()| args.ask(Swizzled::is_compact)),
        _ => Err(unknown_function(name, span)),
    }
}

/// The least common multiple; 0 of anything and 0.
fn lcm(a: i64, b: i64) -> Option<i64> {
    let common = gcd(a.unsigned_abs(), b.unsigned_abs()).max(1);
    let product = (a.unsigned_abs() / common).checked_mul(b.unsigned_abs())?;
    i64::try_from(product).ok()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
