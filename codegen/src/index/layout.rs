//! Layouts as index expressions.
//!
//! A coordinate may be any expression: a thread index, a loop counter, an unrolled constant. A mode's linear coordinate is
//! taken apart into the digits of its leaves, each digit is multiplied by its stride, and the rules do the rest: digits of
//! powers of two become fields, fields on one diagonal merge, constants fold into what can be an immediate.
//!
//! Where no one form always wins, several are built and the cheapest is kept:
//!
//! * A digit `r = q − n·q'` (q' the quotient that goes on to the next leaf) either stays a digit, `s·r + s'·q'`, or is written
//!   out, `s·q + (s' − n·s)·q'`. With `i` in `0..1024`, the padded rows `(32,32):(1,33)` are `(i & 31) + 33·(i >> 5)` in the first form
//!   and `i + (i >> 5)` in the second.
//! * A swizzle `y ^ ((y & s) >> S)` is either distributed over the fields of y, so that every diagonal of the composed F2 matrix is
//!   one shift and one mask, or y is formed first and swizzled whole.

use layout_core::{Layout, LayoutError, Swizzle, Swizzled};

use super::code::cost;
use super::expr::{Asked, Expr, Pool};

/// Boundaries between leaves up to which every combination of forms is tried.
const TRIED_BOUNDARIES: usize = 3;

/// The index of `layout` at one linear coordinate for each of its modes (or one for the whole layout).
///
/// # Errors
///
/// Neither one coordinate nor one for each mode.
pub fn index(pool: &mut Pool, layout: &Layout, coords: &[Expr]) -> Result<Expr, LayoutError> {
    index_in(pool, layout, coords, Forms::All)
}

fn index_in(
    pool: &mut Pool,
    layout: &Layout,
    coords: &[Expr],
    forms: Forms,
) -> Result<Expr, LayoutError> {
    if coords.len() == 1 {
        let leaves = constant_leaves(pool, layout);
        return Ok(strided(pool, &leaves, coords[0], forms));
    }
    if coords.len() != layout.rank() {
        return Err(LayoutError::RankMismatch {
            operation: "index",
            left: layout.rank(),
            right: coords.len(),
        });
    }
    let mut sum = pool.constant(0);
    for (i, &c) in coords.iter().enumerate() {
        let leaves = constant_leaves(pool, &layout.get(i)?);
        let part = strided(pool, &leaves, c, forms);
        sum = pool.add(sum, part);
    }
    Ok(sum)
}

fn constant_leaves(pool: &mut Pool, mode: &Layout) -> Vec<(i64, Expr)> {
    (0..mode.leaves())
        .map(|i| {
            let (extent, stride) = mode.leaf(i);
            (extent, pool.constant(stride))
        })
        .collect()
}

/// Which forms of a mode are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forms {
    /// Digits only: what a swizzle distributes over.
    Digits,
    /// Each digit kept or written out.
    All,
}

/// `Σ strideᵢ·digitᵢ(coord)` through the leaves of one mode; the last leaf is unbounded, as everywhere in the algebra. Strides are
/// expressions, so that they may be known at run time only.
pub(super) fn strided(pool: &mut Pool, leaves: &[(i64, Expr)], coord: Expr, forms: Forms) -> Expr {
    let asked = match forms {
        Forms::Digits => Asked::Digits,
        Forms::All => Asked::Index,
    };
    let terms = leaves.iter().copied().chain([(1, coord)]).collect();
    pool.once(asked, terms, |pool| cheapest(pool, leaves, coord, forms))
}

/// The cheapest form of a mode's index.
fn cheapest(pool: &mut Pool, leaves: &[(i64, Expr)], coord: Expr, forms: Forms) -> Expr {
    let leaves = merged(pool, leaves);
    let boundaries = leaves.len() - 1;
    let digits = with_digits(pool, &leaves, coord, 0);
    if forms == Forms::Digits || boundaries == 0 || pool.as_const(coord).is_some() {
        return digits;
    }
    let choices: Vec<u32> = if boundaries <= TRIED_BOUNDARIES {
        (1..1 << boundaries).collect()
    } else {
        vec![u32::MAX]
    };
    let (mut best, mut least) = (digits, cost(pool, &[digits]));
    for written_out in choices {
        let e = with_digits(pool, &leaves, coord, written_out);
        let c = cost(pool, &[e]);
        if c < least {
            (best, least) = (e, c);
        }
    }
    best
}

/// The same mode with as few leaves as possible: `(a,b):(s,a·s) = (a·b):(s)`, and an extent of 1 that is not the last has no digit.
fn merged(pool: &mut Pool, leaves: &[(i64, Expr)]) -> Vec<(i64, Expr)> {
    let mut out: Vec<(i64, Expr)> = Vec::new();
    for (i, &(extent, stride)) in leaves.iter().enumerate() {
        if extent == 1 && i + 1 < leaves.len() {
            continue;
        }
        if let Some((n, s)) = out.last_mut()
            && let Some(product) = n.checked_mul(extent)
            && pool.scale(*s, *n) == stride
        {
            *n = product;
        } else {
            out.push((extent, stride));
        }
    }
    out
}

/// The mode's index; digit `i` is written out as `q − n·q'` if bit `i` of `written_out` is set.
fn with_digits(pool: &mut Pool, leaves: &[(i64, Expr)], coord: Expr, written_out: u32) -> Expr {
    let mut sum = pool.constant(0);
    let mut rest = coord;
    // The stride that the current quotient carries on top of its own: −n·s of the digit before.
    let mut carried = pool.constant(0);
    let (mut lo, mut hi) = (0i128, 0i128);
    for (i, &(extent, stride)) in leaves.iter().enumerate() {
        let last = i + 1 == leaves.len();
        let f = pool.facts(rest);
        let most = if last {
            f.hi
        } else {
            f.hi.min(i128::from(extent) - 1)
        };
        let least = if last { f.lo } else { 0 };
        let s = pool.facts(stride);
        let corners = [s.lo * least, s.lo * most, s.hi * least, s.hi * most];
        lo += corners.into_iter().min().unwrap_or(0);
        hi += corners.into_iter().max().unwrap_or(0);

        let quotient = if last { rest } else { pool.div(rest, extent) };
        let write_out = !last && i < 32 && written_out >> i & 1 == 1;
        if last || write_out {
            let factor = pool.add(stride, carried);
            let part = pool.mul(rest, factor);
            sum = pool.add(sum, part);
        } else {
            let part = pool.mul(rest, carried);
            sum = pool.add(sum, part);
            let digit = pool.rem(rest, extent);
            let part = pool.mul(digit, stride);
            sum = pool.add(sum, part);
        }
        carried = if write_out {
            pool.scale(stride, -extent)
        } else {
            pool.constant(0)
        };
        rest = quotient;
    }
    if written_out == 0 {
        sum
    } else {
        // The terms no longer show the range of a sum of digits.
        pool.clamp(sum, lo, hi)
    }
}

/// `y ^ ((y & source) moved by −S)`: a swizzle of any expression.
///
/// A swizzle looks at its low `B + M + |S|` bits only, so that `Sw(y + K) = Sw(y) + K` for multiples K of that power of two: what may be
/// negative is moved up by such a K and back.
pub fn swizzle(pool: &mut Pool, sw: Swizzle, y: Expr) -> Expr {
    if sw.b() == 0 {
        return y;
    }
    let terms = [sw.b(), sw.m()].map(|n| (i64::from(n), y));
    let terms = terms.into_iter().chain([(sw.s().into(), y)]).collect();
    pool.once(Asked::Swizzle, terms, |pool| cheapest_swizzle(pool, sw, y))
}

/// The cheaper of the swizzle distributed over fields and the swizzle of the whole value.
fn cheapest_swizzle(pool: &mut Pool, sw: Swizzle, y: Expr) -> Expr {
    let least = pool.facts(y).lo;
    if least < 0 {
        let unit = 1i128 << sw.width();
        let up = (-least + unit - 1) / unit * unit;
        // Beyond 64 bits the index itself does not fit, which the caller sees from its range.
        let up = pool.constant(i64::try_from(up).unwrap_or(i64::MAX & !(unit as i64 - 1)));
        let raised = pool.add(y, up);
        let raised = pool.clamp(raised, 0, i128::from(i64::MAX));
        let swizzled = swizzle(pool, sw, raised);
        return pool.sub(swizzled, up);
    }
    let bits = ((1u64 << sw.b()) - 1) << sw.m();
    let (target, shift) = if sw.s() >= 0 {
        (bits, -sw.s())
    } else {
        (bits << -sw.s(), -sw.s())
    };
    let distributed = {
        let moved = pool.field(y, shift, target);
        pool.xor(y, moved)
    };
    let whole = {
        let (_, k) = pool.terms(y);
        let bare = pool.constant(-k);
        let bare = pool.add(y, bare);
        let pinned = pool.pin(bare);
        let k = pool.constant(k);
        let y = pool.add(pinned, k);
        let moved = pool.field(y, shift, target);
        pool.xor(y, moved)
    };
    if cost(pool, &[whole]) < cost(pool, &[distributed]) {
        whole
    } else {
        distributed
    }
}

/// The inverse of a swizzle `1 + N`: over F2, `(1 + N)` to the power `2^k` is `1 + N` to the power `2^k`, which is 1 once `N`
/// has moved everything out. So the swizzle `2^k − 1` times undoes it.
pub fn unswizzle(pool: &mut Pool, s: Swizzle, y: Expr) -> Expr {
    if s.is_identity() {
        return y;
    }
    let vanishes = s.b().div_ceil(s.s().unsigned_abs()) + 1;
    let mut e = y;
    for _ in 1..vanishes.next_power_of_two() {
        e = swizzle(pool, s, e);
    }
    e
}

/// The index of `Sw o offset o L`, one linear coordinate for each mode of L.
///
/// # Errors
///
/// As [`index`].
pub fn swizzled_index(
    pool: &mut Pool,
    layout: &Swizzled,
    coords: &[Expr],
) -> Result<Expr, LayoutError> {
    let mut found: Option<(usize, Expr)> = None;
    for forms in [Forms::Digits, Forms::All] {
        let y = index_in(pool, &layout.layout(), coords, forms)?;
        let offset = pool.constant(layout.offset());
        let y = pool.add(y, offset);
        let e = swizzle(pool, layout.swizzle(), y);
        let c = cost(pool, &[e]);
        if found.is_none_or(|(least, _)| c < least) {
            found = Some((c, e));
        }
    }
    Ok(found.map_or_else(|| pool.constant(0), |(_, e)| e))
}

/// The index of a layout with run-time strides, written as a combination of static layouts of one shape: `Σ value(p)·L_p(c)`, where
/// the value of a term is an expression (none stands for 1). `(8,64):(ld,1)` is `1·(8,64):(0,1) + ld·(8,64):(1,0)`.
///
/// # Errors
///
/// As [`index`].
pub fn combined_index(
    pool: &mut Pool,
    terms: &[(Option<Expr>, Layout)],
    coords: &[Expr],
) -> Result<Expr, LayoutError> {
    let mut sum = pool.constant(0);
    for (value, term) in terms {
        let part = index(pool, term, coords)?;
        let part = match value {
            None => part,
            Some(value) => pool.mul(part, *value),
        };
        sum = pool.add(sum, part);
    }
    Ok(sum)
}
