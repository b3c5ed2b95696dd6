//! Layouts as index expressions.
//!
//! A coordinate may be any expression: a thread index, a loop counter, an unrolled constant. A mode's linear coordinate is
//! taken apart into the digits of its leaves, each digit is multiplied by its stride, and the rules do the rest: digits of
//! powers of two become fields, fields on one diagonal merge, constants fold into what can be an immediate.
//!
//! For a swizzled layout there are two ways to compute `y ^ ((y & s) >> S)`: distribute it over the fields of y, so that every
//! diagonal of the composed F2 matrix is one shift and one mask, or form y first and swizzle it whole. Neither always wins;
//! both are built and the cheaper one is kept.

use layout_core::{Layout, LayoutError, Swizzle, Swizzled};

use super::code::cost;
use super::expr::{Expr, Pool};

/// The index of `layout` at one linear coordinate for each of its modes (or one for the whole layout).
///
/// # Errors
///
/// Another number of coordinates than modes.
pub fn index(pool: &mut Pool, layout: &Layout, coords: &[Expr]) -> Result<Expr, LayoutError> {
    if coords.len() == 1 {
        return Ok(mode_index(pool, layout, coords[0]));
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
        let part = mode_index(pool, &layout.get(i)?, c);
        sum = pool.add(sum, part);
    }
    Ok(sum)
}

/// A linear coordinate through the leaves of one mode; the last leaf is unbounded, as everywhere in the algebra.
fn mode_index(pool: &mut Pool, mode: &Layout, coord: Expr) -> Expr {
    let mut sum = pool.constant(0);
    let mut rest = coord;
    let leaves = mode.leaves();
    for i in 0..leaves {
        let (extent, stride) = mode.leaf(i);
        let digit = if i + 1 == leaves {
            rest
        } else {
            pool.rem(rest, extent)
        };
        if i + 1 < leaves {
            rest = pool.div(rest, extent);
        }
        let part = pool.scale(digit, stride);
        sum = pool.add(sum, part);
    }
    sum
}

/// `y ^ ((y & source) moved by −S)`: a swizzle of any expression that is never negative.
pub fn swizzle(pool: &mut Pool, sw: Swizzle, y: Expr) -> Expr {
    if sw.b() == 0 {
        return y;
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

/// The index of `Sw o offset o L`, one linear coordinate for each mode of L.
///
/// # Errors
///
/// Those of [`index`].
pub fn swizzled_index(
    pool: &mut Pool,
    layout: &Swizzled,
    coords: &[Expr],
) -> Result<Expr, LayoutError> {
    let y = index(pool, &layout.layout(), coords)?;
    let offset = pool.constant(layout.offset());
    let y = pool.add(y, offset);
    Ok(swizzle(pool, layout.swizzle(), y))
}

/// The index of a layout with run-time strides, written as a combination of static layouts of one shape: `Σ value(p)·L_p(c)`, where
/// the value of a term is an expression (none stands for 1). `(8,64):(ld,1)` is `1·(8,64):(0,1) + ld·(8,64):(1,0)`.
///
/// # Errors
///
/// Those of [`index`].
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
