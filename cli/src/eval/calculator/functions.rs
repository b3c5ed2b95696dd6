//! The operations of the algebra by their names.
//!
//! [`FUNCTIONS`] is the list that the documentation, the suggestions for misspelt names and the messages about wrong
//! arguments come from; [`call`] is the dispatch. A layout argument may also be an integer (`8` for `8:1`), a shape
//! (`(4,8)` for the compact layout) or a tuple of layouts.

use std::cmp::Ordering;

use tilewright as tw;
use tilewright::f2::LinearMap;
use tilewright::{IntTuple, Layout, LayoutError, Slicer, Swizzled, Tiler};

use super::error::{EvalError, Span};
use super::operators;
use super::parser::{Spanned, make_layout, make_swizzle};
use super::value::Value;

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
        "whether b divides a",
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
        "col_major(shape)",
        "compact, first mode fastest",
    ),
    (
        "row_major",
        "row_major(shape)",
        "compact, last mode fastest",
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
    ("inverse", "inverse(L)", "both, of a bijection"),
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
fn distance(a: &str, b: &str) -> usize {
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

/// A tiler that owns its parts; see [`Tiler`].
pub(crate) enum OwnedTiler {
    Keep,
    Int(i64),
    Layout(Layout),
    Tuple(IntTuple),
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
        Value::Tuple(slicer) if slicer.is_closed() => Ok(OwnedTiler::Tuple(slicer.tuple())),
        Value::Tuple(slicer) => Ok(holes(slicer)),
        Value::Layout(layout) if layout.as_plain().is_some() => {
            Ok(OwnedTiler::Layout(layout.layout()))
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

/// The arguments of one call.
struct Args<'a> {
    name: &'a str,
    items: &'a [Spanned],
    span: Span,
}

type Answer = Result<Value, EvalError>;

impl Args<'_> {
    fn count(&self, least: usize, most: usize) -> Result<(), EvalError> {
        let n = self.items.len();
        if (least..=most).contains(&n) {
            return Ok(());
        }
        let message = format!("{n} arguments for {}", usage(self.name));
        Err(EvalError::new("wrong_arguments", message, self.span))
    }

    fn wrong(&self, i: usize, needed: &str) -> EvalError {
        let (value, span) = &self.items[i];
        let message = format!(
            "argument {} of {} must be {needed}, not {}",
            i + 1,
            self.name,
            value.kind()
        );
        EvalError::kind(message, *span)
    }

    fn int(&self, i: usize) -> Result<i64, EvalError> {
        self.items[i]
            .0
            .as_int()
            .ok_or_else(|| self.wrong(i, "an integer"))
    }

    fn tuple(&self, i: usize) -> Result<IntTuple, EvalError> {
        let value = &self.items[i].0;
        value
            .as_tuple()
            .ok_or_else(|| self.wrong(i, "an integer or a tuple of integers"))
    }

    /// A shape: a tuple, or the shape of a layout.
    fn shape(&self, i: usize) -> Result<IntTuple, EvalError> {
        match &self.items[i].0 {
            Value::Layout(layout) => Ok(layout.shape()),
            Value::Affine(layout) => Ok(layout.shape()),
            _ => self.tuple(i),
        }
    }

    fn swizzled(&self, i: usize) -> Result<Swizzled, EvalError> {
        match self.items[i].0.as_layout() {
            Some(Ok(layout)) => Ok(layout),
            Some(Err(error)) => Err(EvalError::layout(error, self.items[i].1)),
            None => Err(self.wrong(i, "a layout")),
        }
    }

    fn layout(&self, i: usize) -> Result<Layout, EvalError> {
        let layout = self.swizzled(i)?;
        layout
            .as_plain()
            .ok_or_else(|| self.wrong(i, "a layout without swizzle and offset"))
    }

    fn slicer(&self, i: usize) -> Result<Slicer, EvalError> {
        self.items[i]
            .0
            .as_slicer()
            .ok_or_else(|| self.wrong(i, "a coordinate"))
    }

    fn done<T>(&self, result: Result<T, LayoutError>) -> Result<T, EvalError> {
        result.map_err(|error| EvalError::layout(error, self.span))
    }

    /// A plain layout to a plain layout.
    fn map(&self, f: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Answer {
        self.count(1, 1)?;
        Ok(Value::layout(self.done(f(&self.layout(0)?))?))
    }

    /// Something about a composed layout that only needs the layout inside.
    fn inside(&self, f: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Answer {
        self.count(1, 1)?;
        let outer = self.swizzled(0)?;
        let inner = self.done(f(&outer.layout()))?;
        Ok(Value::swizzled(self.done(outer.with_layout(inner))?))
    }

    fn ask(&self, f: impl FnOnce(&Swizzled) -> Result<bool, LayoutError>) -> Answer {
        Ok(Value::Bool(self.done(f(&self.swizzled(0)?))?))
    }

    fn relation(&self, f: impl FnOnce(&IntTuple, &IntTuple) -> bool) -> Answer {
        self.count(2, 2)?;
        Ok(Value::Bool(f(&self.shape(0)?, &self.shape(1)?)))
    }

    fn order(
        &self,
        compare: fn(&IntTuple, &IntTuple) -> Result<Ordering, LayoutError>,
        accept: fn(Ordering) -> bool,
    ) -> Answer {
        self.count(2, 2)?;
        let order = self.done(compare(&self.tuple(0)?, &self.tuple(1)?))?;
        Ok(Value::Bool(accept(order)))
    }

    /// Every leaf's order is accepted.
    fn each(&self, accept: fn(Ordering) -> bool) -> Answer {
        self.count(2, 2)?;
        let (a, b) = (self.tuple(0)?, self.tuple(1)?);
        self.done(tw::elementwise_less(&a, &b))?;
        let all = (0..a.leaves()).all(|i| accept(a.leaf(i).cmp(&b.leaf(i))));
        Ok(Value::Bool(all))
    }

    fn fold(&self, f: impl Fn(i64, i64) -> Option<i64>) -> Answer {
        self.count(1, usize::MAX)?;
        let mut result = self.int(0)?;
        for i in 1..self.items.len() {
            result = f(result, self.int(i)?)
                .ok_or_else(|| EvalError::new("overflow", "the result does not fit", self.span))?;
        }
        Ok(Value::Int(result))
    }

    fn divide(
        &self,
        f: impl FnOnce(&Swizzled, &Tiler<'_>) -> Result<tw::Divided<Swizzled>, LayoutError>,
    ) -> Result<tw::Divided<Swizzled>, EvalError> {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let tiler = tiler(&self.items[1].0, self.items[1].1)?;
        self.done(tiler.with(|tiler| f(&layout, tiler)))
    }

    fn product(
        &self,
        f: impl FnOnce(&Layout, &Tiler<'_>) -> Result<Layout, LayoutError>,
    ) -> Answer {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let tiler = tiler(&self.items[1].0, self.items[1].1)?;
        let inner = self.done(tiler.with(|tiler| f(&layout.layout(), tiler)))?;
        Ok(Value::swizzled(self.done(layout.with_layout(inner))?))
    }

    fn ranked_product(&self, f: fn(&Layout, &Layout) -> Result<Layout, LayoutError>) -> Answer {
        self.count(2, 2)?;
        let layout = self.swizzled(0)?;
        let inner = self.done(f(&layout.layout(), &self.layout(1)?))?;
        Ok(Value::swizzled(self.done(layout.with_layout(inner))?))
    }

    fn cast(
        &self,
        swizzle: fn(&tw::Swizzle, i64) -> Result<tw::Swizzle, LayoutError>,
        layout: fn(&Swizzled, i64) -> Result<Swizzled, LayoutError>,
    ) -> Answer {
        self.count(2, 2)?;
        let n = self.int(1)?;
        if let Value::Swizzle(s) = self.items[0].0 {
            return Ok(Value::Swizzle(self.done(swizzle(&s, n))?));
        }
        Ok(Value::swizzled(self.done(layout(&self.swizzled(0)?, n))?))
    }
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
        "evenly_divides" => args.relation(tw::evenly_divides),
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
        "slice" | "dice" => slicing(&args),
        "min" => args.fold(|a, b| Some(a.min(b))),
        "max" => args.fold(|a, b| Some(a.max(b))),
        "gcd" => args.fold(|a, b| i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).ok()),
        "abs" => {
            args.count(1, 1)?;
            args.int(0)?
                .checked_abs()
                .map(Value::Int)
                .ok_or_else(|| EvalError::new("overflow", "the result does not fit", span))
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
        "filter" => args.inside(|l| Ok(tw::filter(l))),
        "filter_zeros" => args.inside(|l| Ok(tw::filter_zeros(l))),
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
            Ok(Value::layout(args.done(tw::composition_strict(&a, &b))?))
        }
        "complement" => {
            args.count(1, 2)?;
            let layout = args.layout(0)?;
            let n = if items.len() == 2 {
                args.done(args.shape(1)?.size())?
            } else {
                1
            };
            Ok(Value::layout(args.done(tw::complement(&layout, n))?))
        }
        "right_inverse" | "left_inverse" | "inverse" | "preimage" => inverse(&args),
        "nullspace" => args.map(|l| Ok(tw::nullspace(l))),
        "max_common_layout" => {
            args.count(2, 2)?;
            let (a, b) = (args.layout(0)?, args.layout(1)?);
            Ok(Value::layout(args.done(tw::max_common_layout(&a, &b))?))
        }
        "max_common_vector" => {
            args.count(2, 2)?;
            let (a, b) = (args.layout(0)?, args.layout(1)?);
            Ok(Value::Int(args.done(tw::max_common_vector(&a, &b))?))
        }
        "max_alignment" => {
            args.count(1, 1)?;
            Ok(Value::Int(tw::max_alignment_swizzled(&args.swizzled(0)?)))
        }
        "domain_distribute" => {
            args.count(2, 2)?;
            let (shape, n) = (args.shape(0)?, args.done(args.shape(1)?.size())?);
            Ok(Value::layout(args.done(tw::domain_distribute(&shape, n))?))
        }
        "logical_divide" => args
            .divide(tw::logical_divide_swizzled)
            .map(|d| Value::swizzled(d.rounded_up())),
        "zipped_divide" => args
            .divide(tw::zipped_divide_swizzled)
            .map(|d| Value::swizzled(d.rounded_up())),
        "tiled_divide" => args
            .divide(tw::tiled_divide_swizzled)
            .map(|d| Value::swizzled(d.rounded_up())),
        "flat_divide" => args
            .divide(tw::flat_divide_swizzled)
            .map(|d| Value::swizzled(d.rounded_up())),
        "overhang" => args
            .divide(tw::logical_divide_swizzled)
            .map(|d| Value::Int(d.overhang())),
        "logical_product" => args.product(tw::logical_product),
        "zipped_product" => args.product(tw::zipped_product),
        "tiled_product" => args.product(tw::tiled_product),
        "flat_product" => args.product(tw::flat_product),
        "blocked_product" => args.ranked_product(tw::blocked_product),
        "raked_product" => args.ranked_product(tw::raked_product),
        "tile_to_shape" => {
            args.count(2, 3)?;
            let order = if items.len() == 3 {
                Some(args.tuple(2)?)
            } else {
                None
            };
            let (layout, shape) = (args.swizzled(0)?, args.shape(1)?);
            let tiled = tw::tile_to_shape_swizzled(&layout, &shape, order.as_ref());
            Ok(Value::swizzled(args.done(tiled)?))
        }
        "upcast" => args.cast(tw::upcast_swizzle, tw::upcast_swizzled),
        "downcast" => args.cast(tw::downcast_swizzle, tw::downcast_swizzled),
        "recast" => {
            args.count(3, 3)?;
            let (layout, old, new) = (args.swizzled(0)?, args.int(1)?, args.int(2)?);
            Ok(Value::swizzled(
                args.done(tw::recast_swizzled(&layout, old, new))?,
            ))
        }
        "matrix" | "to_layout" => bits(&args),
        "equal" => {
            args.count(2, 2)?;
            operators::equal(&items[0].0, &items[1].0, span).map(Value::Bool)
        }
        "same" => {
            args.count(2, 2)?;
            Ok(Value::Bool(items[0].0 == items[1].0))
        }
        "is_injective" => args
            .count(1, 1)
            .and_then(|()| args.ask(tw::is_injective_swizzled)),
        "is_surjective_onto" => {
            args.count(2, 2)?;
            let n = args.done(args.shape(1)?.size())?;
            args.ask(|l| tw::is_surjective_onto_swizzled(l, n))
        }
        "is_bijective" => args
            .count(1, 1)
            .and_then(|()| args.ask(tw::is_bijective_swizzled)),
        "is_compact" => args
            .count(1, 1)
            .and_then(|()| args.ask(tw::is_compact_swizzled)),
        _ => Err(unknown(name, span)),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What layouts and tuples have in common.
fn about(args: &Args<'_>) -> Answer {
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
                Value::Affine(l) => Value::Affine(Box::new(args.done(l.get(mode))?)),
                Value::List(items) => match items.get(mode) {
                    Some(item) => item.clone(),
                    None => {
                        let rank = items.len();
                        return args.done(Err(LayoutError::ModeOutOfRange { mode, rank }));
                    }
                },
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

fn slicing(args: &Args<'_>) -> Answer {
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

fn coordinates(args: &Args<'_>) -> Answer {
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

fn construct(args: &Args<'_>) -> Answer {
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

fn parts(args: &Args<'_>) -> Answer {
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

fn coalesce(args: &Args<'_>) -> Answer {
    args.count(1, 2)?;
    if let (Value::Affine(l), [_]) = (&args.items[0].0, args.items) {
        return Ok(Value::Affine(Box::new(l.coalesce())));
    }
    let layout = args.swizzled(0)?;
    let inner = match args.items {
        [_] => tw::coalesce(&layout.layout()),
        _ => args.done(tw::coalesce_by_profile(&layout.layout(), &args.tuple(1)?))?,
    };
    Ok(Value::swizzled(args.done(layout.with_layout(inner))?))
}

fn inverse(args: &Args<'_>) -> Answer {
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

fn bits(args: &Args<'_>) -> Answer {
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
