//! The experts of each token and their weights: a warp has a token, and finds the largest logit that it has not taken yet, again and again.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel, Rounding};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::{MOST_TOKENS, Route};
use crate::KernelError;
use crate::online::exp;

/// Tokens of a block, a warp each.
const ROWS: i64 = 4;
const LANES: i64 = 32;

/// A logit and its expert, as a number of f32.
type Candidate = (F32, F32);

/// The kernel `route_<element>_<experts>_<top>(tokens, experts, logits, weight, expert)`.
pub(super) fn choose(what: &Route, arch: Arch) -> Result<Proven, KernelError> {
    let Route { element, top, .. } = *what;
    let softmax = if what.normalized { "" } else { "_softmax" };
    // Registers of 4 bytes are whole.
    let least = 4 / i64::from(element.bytes());
    let each = what.experts.div_ceil(LANES as u64).next_power_of_two() as i64;
    let each = each.max(least);
    let vector = each.min(16 / i64::from(element.bytes()));
    let width = LANES * each;
    let name = format!("route_{element}_{}_{top}{softmax}", what.experts);
    let mut k = Kernel::new(&name, (ROWS * LANES) as u32);
    let (tokens, experts) = (k.size("tokens", MOST_TOKENS), k.size("experts", width));
    let choices = k.constant(top);
    let logits = k.input("logits", element, &[tokens, experts]);
    let weights = k.output("weight", Element::F32, &[tokens, choices]);
    let chosen = k.output("expert", Element::S32, &[tokens, choices]);
    let (i, thread, zero) = (k.tiles(Axis::X, tokens, ROWS)?, k.thread(), k.constant(0));

    let shares = Layout::tuple(&[
        Layout::flat(&[LANES, ROWS], &[vector * ROWS, 1])?,
        Layout::flat(&[vector, each / vector], &[ROWS, LANES * vector * ROWS])?,
    ])?;
    let x = logits.tile(&mut k, &[ROWS, width], &[i, zero])?;
    let x = x.partition(&mut k, &shares, thread)?;
    let x = x.vectors(&k, vector)?.filled(&k, f32::NEG_INFINITY)?;
    let columns = (0..x.values()).map(|v| x.coordinates(&mut k, v));
    let columns: Vec<Expr> = columns
        .map(|at| at.map(|at| at[1]))
        .collect::<Result<_, _>>()?;
    let x = k.load_fragment(&x)?.convert(&mut k, Element::F32)?;
    let x: Vec<F32> = x.thread_values(&mut k)?;

    // Softmax over the experts.
    let token = Layout::flat(&[LANES, ROWS], &[0, 1])?;
    let most = folded(&mut k, &x, F32::max);
    let most = k.reduce(most, &token, Combine::Max)?;
    let powers: Vec<F32> = x.iter().map(|&x| exp(&mut k, x, most)).collect();
    let sum = folded(&mut k, &powers, F32::add);
    let sum = k.reduce(sum, &token, Combine::Add)?;
    let scale = sum.reciprocal(&mut k);

    // What is taken is −∞, below all others.
    let mut left: Vec<Candidate> = Vec::new();
    for (x, column) in x.into_iter().zip(columns) {
        let number = S32::index(&mut k, column).to_f32(&mut k);
        left.push((x.max(&mut k, f32::MIN), number));
    }
    let lane = k.lane();
    let (mut own, mut all) = ((F32::from(0.0), F32::from(0.0)), F32::from(0.0));
    for choice in 0..top {
        let (x, number) = first_of(&mut k, &left, &token)?;
        for of in &mut left {
            let taken = of.1.eq(&mut k, number);
            of.0 = taken.select(&mut k, F32::from(f32::NEG_INFINITY), of.0);
        }
        let weight = exp(&mut k, x, most).mul(&mut k, scale);
        all = all.add(&mut k, weight);
        let choice = k.constant(choice);
        let here = Predicate::of(&mut k, lane, Cmp::Eq, choice);
        own.0 = here.select(&mut k, weight, own.0);
        own.1 = here.select(&mut k, number, own.1);
    }
    if what.normalized {
        let by = all.reciprocal(&mut k);
        own.0 = own.0.mul(&mut k, by);
    }
    let warp = k.warp();
    let at = k.linear(&[(ROWS, i), (1, warp)], 0);
    weights.store(&mut k, &[at, lane], own.0)?;
    let number = own.1.to_s32(&mut k, Rounding::Nearest);
    chosen.store(&mut k, &[at, lane], number)?;
    Ok(k.build(arch)?)
}

/// Values of a thread combined in order.
fn folded(k: &mut Kernel, values: &[F32], combine: fn(F32, &mut Kernel, F32) -> F32) -> F32 {
    let mut all = values[0];
    for &value in &values[1..] {
        all = combine(all, k, value);
    }
    all
}

/// The largest of what is left of a token, of equal ones that with the lowest number.
fn first_of(k: &mut Kernel, left: &[Candidate], token: &Layout) -> Result<Candidate, ViewError> {
    let mut own = left[0];
    for &(x, number) in &left[1..] {
        let larger = x.gt(k, own.0);
        own = (larger.select(k, x, own.0), larger.select(k, number, own.1));
    }
    let most = k.reduce(own.0, token, Combine::Max)?;
    let number = own.0.eq(k, most).select(k, own.1, F32::from(f32::MAX));
    Ok((most, k.reduce(number, token, Combine::Min)?))
}
