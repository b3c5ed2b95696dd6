//! The operations of the algebra by their names.
//!
//! [`FUNCTIONS`] is the list that the documentation, the suggestions for misspelt names and the messages about wrong
//! arguments come from; [`call`] is the dispatch. A layout argument may also be an integer (`8` for `8:1`), a shape
//! (`(4,8)` for the compact layout) or a tuple of layouts.

mod args;
mod groups;
mod partition;
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
pub(crate) use tiler::{OwnedTiler, tiler};

/// Name, arguments and what it gives, for every function.
pub(crate) const FUNCTIONS: &[(&str, &str, &str)] = &[
    // Integer tuples
    (
        "rank",
        "rank(x)",
        "number of top-level modes of a layout or tuple",
    ),
    ("depth", "depth(x)", "deepest nesting: 0 for an integer"),
    (
        "size",
        "size(x)",
        "number of coordinates of a layout, product of a tuple",
    ),
    ("product", "product(t)", "product of a tuple"),
    (
        "product_each",
        "product_each(t)",
        "size of each top-level element",
    ),
    (
        "flatten",
        "flatten(x)",
        "the same without inner parentheses",
    ),
    (
        "get",
        "get(x, i, ...)",
        "top-level mode i, and mode ... of that",
    ),
    (
        "group",
        "group(x, b, e)",
        "modes b..e of a layout or tuple as one mode",
    ),
    ("take", "take(x, b, e)", "modes b..e alone"),
    (
        "select",
        "select(x, i, ...)",
        "the modes with these numbers, in this order",
    ),
    (
        "append",
        "append(x, y [, n])",
        "x with y as its last mode; with n, as often as makes n modes",
    ),
    (
        "prepend",
        "prepend(x, y [, n])",
        "x with y as its first mode; with n, as often as makes n modes",
    ),
    ("replace", "replace(x, i, y)", "x with y in place of mode i"),
    (
        "unflatten",
        "unflatten(x, profile)",
        "the modes of x with the parentheses of the profile",
    ),
    ("zip", "zip(x, y)", "pairs of modes: ((x0,y0),(x1,y1),...)"),
    (
        "reverse",
        "reverse(x)",
        "the modes from the last to the first",
    ),
    ("sum", "sum(t)", "sum of a tuple"),
    (
        "product_like",
        "product_like(t, guide)",
        "sizes of the parts of t that the guide's integers stand for",
    ),
    (
        "inner_product",
        "inner_product(a, b)",
        "sum of the products of congruent tuples",
    ),
    (
        "elem_scale",
        "elem_scale(a, b)",
        "each integer of a times the size of what b has there",
    ),
    (
        "round_up",
        "round_up(a, b)",
        "least multiples of b that are not below a",
    ),
    ("congruent", "congruent(a, b)", "same parentheses"),
    (
        "weakly_congruent",
        "weakly_congruent(a, b)",
        "b refines the parentheses of a",
    ),
    (
        "compatible",
        "compatible(a, b)",
        "coordinates of a are coordinates of b",
    ),
    (
        "evenly_divides",
        "evenly_divides(a, b)",
        "whether b, a tuple or a tiler, divides a",
    ),
    ("ceil_div", "ceil_div(a, b)", "how many tiles b cover a"),
    (
        "shape_div",
        "shape_div(a, b)",
        "a with b taken away, exactly",
    ),
    (
        "lex_less",
        "lex_less(a, b)",
        "first difference decides: a < b",
    ),
    ("lex_leq", "lex_leq(a, b)", "a <= b by the first difference"),
    ("lex_gtr", "lex_gtr(a, b)", "a > b by the first difference"),
    ("lex_geq", "lex_geq(a, b)", "a >= b by the first difference"),
    (
        "colex_less",
        "colex_less(a, b)",
        "last difference decides: a < b",
    ),
    (
        "colex_leq",
        "colex_leq(a, b)",
        "a <= b by the last difference",
    ),
    (
        "colex_gtr",
        "colex_gtr(a, b)",
        "a > b by the last difference",
    ),
    (
        "colex_geq",
        "colex_geq(a, b)",
        "a >= b by the last difference",
    ),
    (
        "elem_less",
        "elem_less(a, b)",
        "every element of a is below its partner",
    ),
    (
        "elem_leq",
        "elem_leq(a, b)",
        "every element of a is at most its partner",
    ),
    (
        "elem_gtr",
        "elem_gtr(a, b)",
        "every element of a is above its partner",
    ),
    (
        "elem_geq",
        "elem_geq(a, b)",
        "every element of a is at least its partner",
    ),
    (
        "slice",
        "slice(coord, x)",
        "what `_` in the coordinate leaves open",
    ),
    ("dice", "dice(coord, x)", "what the coordinate fixes"),
    ("min", "min(a, b, ...)", "least integer"),
    ("max", "max(a, b, ...)", "greatest integer"),
    ("gcd", "gcd(a, b, ...)", "greatest common divisor"),
    ("lcm", "lcm(a, b, ...)", "least common multiple"),
    ("abs", "abs(a)", "absolute value"),
    // Coordinates
    (
        "crd2idx",
        "crd2idx(coord, shape [, stride])",
        "offset (or linear coordinate) of a coordinate",
    ),
    (
        "idx2crd",
        "idx2crd(i, shape or layout)",
        "natural coordinate of a linear one",
    ),
    (
        "crd2crd",
        "crd2crd(coord, from, to)",
        "the coordinate of another shape at the same place",
    ),
    (
        "coordinates",
        "coordinates(shape)",
        "all coordinates in order, at most 64",
    ),
    // Construction
    (
        "make_layout",
        "make_layout(shape [, stride])",
        "compact layout, or shape:stride; of layouts: their tuple",
    ),
    (
        "col_major",
        "col_major(shape [, start])",
        "compact, first mode fastest; strides from start up",
    ),
    (
        "row_major",
        "row_major(shape [, start])",
        "compact, last mode fastest; strides from start up",
    ),
    (
        "make_ordered_layout",
        "make_ordered_layout(shape, order)",
        "compact in the order of the numbers",
    ),
    (
        "make_layout_like",
        "make_layout_like(L)",
        "compact with strides in the same order",
    ),
    (
        "make_identity_layout",
        "make_identity_layout(shape)",
        "offsets are coordinates",
    ),
    (
        "identity",
        "identity(shape)",
        "the same as make_identity_layout",
    ),
    // Layouts
    ("shape", "shape(L)", "the extents"),
    ("stride", "stride(L)", "the strides"),
    ("swizzle", "swizzle(L)", "the swizzle of a composed layout"),
    ("offset", "offset(L)", "the offset inside a composed layout"),
    ("inner", "inner(L)", "the layout inside a composed layout"),
    (
        "cosize",
        "cosize(L)",
        "elements of memory that the layout reaches",
    ),
    ("coshape", "coshape(L)", "cosize along each axis"),
    (
        "coalesce",
        "coalesce(L [, profile])",
        "same function, fewest modes",
    ),
    (
        "filter",
        "filter(L)",
        "without modes of stride 0 or extent 1, coalesced",
    ),
    (
        "filter_zeros",
        "filter_zeros(L)",
        "extent 1 where the stride is 0",
    ),
    (
        "composition",
        "composition(A, B or tiler)",
        "A after B; mode by mode for a tiler",
    ),
    (
        "composition_strict",
        "composition_strict(A, B)",
        "composition that refuses offsets outside A",
    ),
    (
        "complement",
        "complement(L [, n])",
        "what L leaves out of 0..n",
    ),
    (
        "right_inverse",
        "right_inverse(L)",
        "L(R(i)) = i as far as L is contiguous",
    ),
    ("left_inverse", "left_inverse(L)", "X(L(i)) = i"),
    ("inverse", "inverse(L)", "both, of a bijection or a matrix"),
    ("preimage", "preimage(L, y)", "the i with L(i) = y"),
    (
        "nullspace",
        "nullspace(L)",
        "coordinates along which L stands still",
    ),
    (
        "max_common_layout",
        "max_common_layout(A, B)",
        "coordinates over which both count one by one",
    ),
    (
        "max_common_vector",
        "max_common_vector(A, B)",
        "its size: elements of one vector access",
    ),
    (
        "max_alignment",
        "max_alignment(L)",
        "largest aligned vector that the offsets fall into",
    ),
    (
        "domain_distribute",
        "domain_distribute(shape, n)",
        "n rising coordinates that divide the shape",
    ),
    // Divides and products
    (
        "logical_divide",
        "logical_divide(L, tiler)",
        "((tile0,rest0),(tile1,rest1),...)",
    ),
    (
        "zipped_divide",
        "zipped_divide(L, tiler)",
        "((tile0,tile1,...),(rest0,rest1,...))",
    ),
    (
        "tiled_divide",
        "tiled_divide(L, tiler)",
        "((tile0,tile1,...),rest0,rest1,...)",
    ),
    (
        "flat_divide",
        "flat_divide(L, tiler)",
        "(tile0,tile1,...,rest0,rest1,...)",
    ),
    (
        "overhang",
        "overhang(L, tiler)",
        "elements that the tiles reach beyond L: 0 if they divide",
    ),
    (
        "logical_product",
        "logical_product(L, tiler)",
        "L repeated as the tiler says",
    ),
    (
        "zipped_product",
        "zipped_product(L, tiler)",
        "((block0,block1,...),(tiles0,tiles1,...))",
    ),
    (
        "tiled_product",
        "tiled_product(L, tiler)",
        "((block0,block1,...),tiles0,tiles1,...)",
    ),
    (
        "flat_product",
        "flat_product(L, tiler)",
        "(block0,block1,...,tiles0,tiles1,...)",
    ),
    (
        "blocked_product",
        "blocked_product(L, T)",
        "blocks side by side",
    ),
    ("raked_product", "raked_product(L, T)", "blocks interleaved"),
    (
        "tile_to_shape",
        "tile_to_shape(L, shape [, order])",
        "L repeated until it fills the shape",
    ),
    // Element width
    ("upcast", "upcast(L, n)", "in units of n elements"),
    ("downcast", "downcast(L, n)", "in parts of 1/n element"),
    (
        "recast",
        "recast(L, old_bits, new_bits)",
        "in elements of another width",
    ),
    // Swizzles and bits
    (
        "make_swizzle",
        "make_swizzle(b, m, s)",
        "Sw<b,m,s> from integers",
    ),
    (
        "matrix",
        "matrix(L)",
        "images of the index bits over F2, for powers of two",
    ),
    (
        "to_layout",
        "to_layout(matrix)",
        "the layout with that bit matrix",
    ),
    // Partition
    (
        "local_tile",
        "local_tile(L, tiler, coord)",
        "the tile at a coordinate: what a block has",
    ),
    (
        "local_partition",
        "local_partition(L, threads, i)",
        "one element of each tile: what thread i has",
    ),
    (
        "thread_partition",
        "thread_partition(L, tile, tv, i)",
        "the values of thread i by a thread-value layout",
    ),
    (
        "atom_a",
        "atom_a(ATOM)",
        "(thread, value) of A of a matrix instruction",
    ),
    (
        "atom_b",
        "atom_b(ATOM)",
        "(thread, value) of B of a matrix instruction",
    ),
    (
        "atom_c",
        "atom_c(ATOM)",
        "(thread, value) of C and D of a matrix instruction",
    ),
    (
        "atom_meta",
        "atom_meta(ATOM)",
        "(provider, field) of the metadata of a sparse instruction",
    ),
    (
        "atom_src",
        "atom_src(ATOM)",
        "(thread, value) of a copy instruction's source",
    ),
    (
        "atom_dst",
        "atom_dst(ATOM)",
        "(thread, value) of a copy instruction's destination",
    ),
    (
        "layout_tv_a",
        "layout_tv_a(ATOM, atoms)",
        "(thread, value) of A of a TiledMma",
    ),
    (
        "layout_tv_b",
        "layout_tv_b(ATOM, atoms)",
        "(thread, value) of B of a TiledMma",
    ),
    (
        "layout_tv_c",
        "layout_tv_c(ATOM, atoms)",
        "(thread, value) of C of a TiledMma",
    ),
    (
        "thrfrg_a",
        "thrfrg_a(ATOM, atoms, L)",
        "tensor A by thread and fragment",
    ),
    (
        "thrfrg_b",
        "thrfrg_b(ATOM, atoms, L)",
        "tensor B by thread and fragment",
    ),
    (
        "thrfrg_c",
        "thrfrg_c(ATOM, atoms, L)",
        "tensor C by thread and fragment",
    ),
    (
        "partition_a",
        "partition_a(ATOM, atoms, L, i)",
        "the fragment of A of thread i",
    ),
    (
        "partition_b",
        "partition_b(ATOM, atoms, L, i)",
        "the fragment of B of thread i",
    ),
    (
        "partition_c",
        "partition_c(ATOM, atoms, L, i)",
        "the fragment of C of thread i",
    ),
    (
        "layout_tv",
        "layout_tv(ATOM, threads, values)",
        "(thread, value) of a TiledCopy",
    ),
    (
        "partition_s",
        "partition_s(ATOM, threads, values, L, i)",
        "what thread i reads of the source",
    ),
    (
        "partition_d",
        "partition_d(ATOM, threads, values, L, i)",
        "what thread i writes of the destination",
    ),
    (
        "retile",
        "retile(ATOM, threads, values, L)",
        "a fragment in the order of a copy's values",
    ),
    (
        "wavefronts",
        "wavefronts(OP, L)",
        "shared-memory wavefronts of an access; L maps the lane to a byte",
    ),
    // Properties
    (
        "equal",
        "equal(a, b)",
        "the same function (layouts), the same value (others)",
    ),
    ("same", "same(a, b)", "written the same"),
    ("is_injective", "is_injective(L)", "no offset twice"),
    (
        "is_surjective_onto",
        "is_surjective_onto(L, n)",
        "the offsets are exactly 0..n",
    ),
    (
        "is_bijective",
        "is_bijective(L)",
        "the offsets are exactly 0..size, each once",
    ),
    (
        "is_compact",
        "is_compact(L)",
        "no gap between the offsets, each once",
    ),
];

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
    let nearest = FUNCTIONS
        .iter()
        .map(|f| (distance(&short, f.0), f.0))
        .min()
        .filter(|(d, best)| *d <= 2.max(best.len() / 4));
    let message = match nearest {
        Some((_, best)) => format!("'{short}' is unknown; did you mean '{best}'?"),
        None => format!("'{short}' is unknown; bind it with let {short} = …;"),
    };
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
        "complement" => groups::complement(&args),
        "right_inverse" | "left_inverse" | "inverse" | "preimage" => inverse(&args),
        "nullspace" => {
            args.count(1, 1)?;
            Ok(Value::layout(match args.any(0)? {
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
            let common = match (a.as_plain(), b.as_plain()) {
                (Some(a), Some(b)) => a.max_common_vector(&b),
                _ => a.max_common_vector(&b),
            };
            Ok(Value::Int(args.done(common)?))
        }
        "max_alignment" => {
            args.count(1, 1)?;
            Ok(Value::Int(args.swizzled(0)?.max_alignment()))
        }
        "domain_distribute" => {
            args.count(2, 2)?;
            let (shape, n) = (args.shape(0)?, args.done(args.shape(1)?.size())?);
            Ok(Value::layout(args.done(tw::domain_distribute(&shape, n))?))
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
        | "atom_meta" | "atom_src" | "atom_dst" | "layout_tv_a" | "layout_tv_b" | "layout_tv_c"
        | "thrfrg_a" | "thrfrg_b" | "thrfrg_c" | "partition_a" | "partition_b" | "partition_c"
        | "layout_tv" | "partition_s" | "partition_d" | "retile" => partition::partition(&args),
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
            if let Value::Coords(layout) = args.any(0)? {
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
        _ => Err(unknown(name, span)),
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
