//! Composition of layouts: R(i) = A(B(i)) for every i, with the parentheses of B. A's last mode is unbounded.
//!
//! B's values may not be below zero, where A has no coordinate. Everything else exists if some layout has the values.

use super::{kind, times, wrapped};
use crate::model::{Function, Layout, Step, Tree};
use crate::random::Random;
use crate::verdict::{Case, check_values, exactly, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(1800, random, cases, plain);
    times(500, random, cases, strict);
    times(600, random, cases, by_mode);
    times(600, random, cases, offset_right);
}

/// A right-hand side for A: its strides are often products of A's first extents.
pub(super) fn right_hand(random: &mut Random, a: &Layout) -> Layout {
    let b = random.layout(24);
    if random.one_in(3) {
        return b;
    }
    let mut places = vec![1];
    for n in a.shape.leaves() {
        places.push(places[places.len() - 1] * n);
    }
    let strides: Vec<i64> = b
        .stride
        .leaves()
        .iter()
        .map(|d| {
            if random.one_in(4) {
                *d
            } else {
                *random.pick(&places) * *random.pick(&[1, 1, 1, 2, 3])
            }
        })
        .collect();
    Layout::new(
        b.shape.clone(),
        b.shape.with_leaves(&mut strides.into_iter()),
    )
}

fn plain(random: &mut Random) -> Case {
    let a = random.layout(36);
    let b = right_hand(random, &a);
    let text = if random.one_in(2) {
        format!("{a} o {b}")
    } else {
        format!("composition({a}, {b})")
    };
    compose("composition", kind(&b), text, &a.into(), &b.into())
}

/// Judges `a o b` for an `a` without swizzle.
fn compose(
    operation: &'static str,
    kind: &'static str,
    text: String,
    a: &Function,
    b: &Function,
) -> Case {
    let inside = b.values();
    let below = inside.iter().any(|x| *x < 0);
    let values: Vec<i64> = inside.iter().map(|x| a.at(*x)).collect();
    let profile = b.domain().expect("a layout").shape.clone();
    Case::new(operation, kind, text, move |answer| {
        if below {
            judged(answer, true, "", || {
                check_values(&answer.function(&[])?, &values, &profile)
            })
        } else {
            exactly(answer, &values, &profile, &[])
        }
    })
}

fn strict(random: &mut Random) -> Case {
    let a = random.positive(36);
    let b = right_hand(random, &a);
    let text = format!("composition_strict({a}, {b})");
    let inside = b.values();
    let outside = inside.iter().any(|x| *x < 0 || *x >= a.size());
    let values: Vec<i64> = inside.iter().map(|x| a.at(*x)).collect();
    let class = if outside { "out of domain" } else { "inside" };
    if outside {
        return Case::new(
            "composition_strict",
            class,
            text,
            move |answer| match answer {
                crate::answer::Answer::Error(..) => crate::verdict::Verdict::Refused,
                _ => crate::verdict::Verdict::Wrong("a refusal: outside the left-hand side".into()),
            },
        );
    }
    Case::new("composition_strict", class, text, move |answer| {
        exactly(answer, &values, &b.shape, &[])
    })
}

/// By mode: each mode of A with its own right-hand side, `_` and what lies beyond the tiler kept.
fn by_mode(random: &mut Random) -> Case {
    let rank = random.range(2, 3);
    let shape = random.flat_shape(rank, 36);
    let stride_kind = random.range(0, 4);
    let mut modes = random.layout_of(&shape, stride_kind).modes();
    if random.one_in(3) {
        let nested = random.chain_layout(8);
        modes[0] = nested;
    }
    let a = Layout::join(&modes);
    let given = random.range(1, rank) as usize;
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for mode in &modes[..given] {
        if random.one_in(4) {
            texts.push("_".to_owned());
            parts.push((mode.shape.clone(), mode.values()));
        } else {
            let b = if random.one_in(3) {
                Layout::of(&[(random.range(1, 6), 1)])
            } else {
                let b = right_hand(random, mode);
                if b.values().iter().any(|x| *x < 0) {
                    Layout::of(&[(2, 1)])
                } else {
                    b
                }
            };
            texts.push(b.to_string());
            parts.push((
                b.shape.clone(),
                b.values().iter().map(|x| mode.at(*x)).collect(),
            ));
        }
    }
    for mode in &modes[given..] {
        parts.push((mode.shape.clone(), mode.values()));
    }
    let profile = Tree::Tuple(parts.iter().map(|part| part.0.clone()).collect());
    let extents: Vec<i64> = parts.iter().map(|part| part.1.len() as i64).collect();
    let values: Vec<i64> = super::digits(&extents)
        .iter()
        .map(|at| {
            at.iter()
                .zip(&parts)
                .map(|(x, part)| part.1[*x as usize])
                .sum()
        })
        .collect();
    let text = format!("composition({a}, <{}>)", texts.join(", "));
    Case::new("composition by mode", "tiler", text, move |answer| {
        exactly(answer, &values, &profile, &[])
    })
}

fn offset_right(random: &mut Random) -> Case {
    let a = random.layout(36);
    let b = right_hand(random, &a);
    let low = b.values().into_iter().min().unwrap_or(0).min(0);
    let b = Function(vec![Step::Add(random.range(1, 8) - low), Step::Layout(b)]);
    let text = format!("{a} o {}", wrapped(&b));
    compose("composition", "offset right", text, &a.into(), &b)
}
