//! Composition with swizzles: on the left, on the right, on both sides, and swizzles of swizzled layouts.
//!
//! `(Sw o n o L) o B` keeps its swizzle, so that it exists where `L o B` does. Whatever stands left of a swizzle can at
//! least be kept as a chain of steps: nothing there is refused.

use super::{compose::right_hand, times, wrapped};
use crate::exist::fits_exactly;
use crate::model::{Function, Layout, Step};
use crate::random::Random;
use crate::verdict::{Case, brief, check_values, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(700, random, cases, left);
    times(700, random, cases, |random| {
        right(random, "composition", "swizzle right", false)
    });
    times(400, random, cases, |random| {
        right(random, "composition", "swizzles both", true)
    });
    times(400, random, cases, swizzle_of_swizzled);
    times(200, random, cases, offset_of_swizzled);
    times(300, random, cases, steps_in_a_row);
    times(300, random, cases, matrices);
    times(300, random, cases, back_from_matrix);
    for text in FIXED {
        let values = text.1.to_vec();
        cases.push(Case::new(
            "composition",
            "swizzle known",
            text.0.to_owned(),
            move |answer| {
                let profile = crate::model::Tree::Int(values.len() as i64);
                judged(answer, false, &brief(&values), || {
                    check_values(&answer.function(&[])?, &values, &profile)
                })
            },
        ));
    }
}

/// Known answers, by their values.
const FIXED: &[(&str, &[i64])] = &[
    ("8:1 o (Sw<1,0,1> o 4:1)", &[0, 1, 3, 2]),
    ("4:0 o (Sw<1,0,1> o 2:1)", &[0, 0]),
    ("Sw<0,0,0> o (Sw<3,3,3> o 7:1)", &[0, 1, 2, 3, 4, 5, 6]),
    (
        "Sw<2,0,2> o (Sw<2,0,2> o 16:1)",
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    ),
    (
        "8:2 o (Sw<2,0,2> o 16:1)",
        &[0, 2, 4, 6, 10, 8, 14, 12, 20, 22, 16, 18, 30, 28, 26, 24],
    ),
];

fn left(random: &mut Random) -> Case {
    let a = random.composed(36);
    let layout = a.domain().expect("a layout").clone();
    let mut b = right_hand(random, &layout);
    if b.values().iter().any(|x| *x < 0) {
        b = random.chain_layout(12);
    }
    let text = format!("{} o {b}", wrapped(&a));
    let inside: Vec<i64> = b.values().iter().map(|x| layout.at(*x)).collect();
    let values: Vec<i64> = b.values().iter().map(|x| a.at(*x)).collect();
    Case::new("composition", "swizzle left", text, move |answer| {
        let exists = fits_exactly(&b.shape.leaves(), &inside);
        judged(
            answer,
            !exists,
            &format!("{} with values {}", b.shape, brief(&values)),
            || check_values(&answer.function(&[])?, &values, &b.shape),
        )
    })
}

/// A function with a swizzle, an offset perhaps, and any layout whose values are not below zero.
fn with_swizzle(random: &mut Random, layout: Layout) -> Function {
    // The identity swizzle leaves a plain composition, which may be refused.
    let mut swizzle = random.swizzle();
    while swizzle.b == 0 {
        swizzle = random.swizzle();
    }
    let mut steps = vec![Step::Swizzle(swizzle)];
    if random.one_in(4) {
        steps.push(Step::Add(random.range(1, 9)));
    }
    steps.push(Step::Layout(layout));
    Function(steps)
}

fn right(random: &mut Random, operation: &'static str, kind: &'static str, both: bool) -> Case {
    let a = if both {
        random.composed(36)
    } else {
        random.positive(36).into()
    };
    let inner = right_hand(random, a.domain().expect("a layout"));
    let inner = if inner.values().iter().any(|x| *x < 0) {
        random.positive(16)
    } else {
        inner
    };
    let b = with_swizzle(random, inner.clone());
    let text = format!("{} o {}", wrapped(&a), wrapped(&b));
    let values: Vec<i64> = b.values().iter().map(|x| a.at(*x)).collect();
    never_refused(operation, kind, text, values, inner)
}

fn never_refused(
    operation: &'static str,
    kind: &'static str,
    text: String,
    values: Vec<i64>,
    domain: Layout,
) -> Case {
    Case::new(operation, kind, text, move |answer| {
        judged(
            answer,
            false,
            &format!("{} with values {}", domain.shape, brief(&values)),
            || check_values(&answer.function(&[])?, &values, &domain.shape),
        )
    })
}

fn swizzle_of_swizzled(random: &mut Random) -> Case {
    let inner = random.positive(36);
    let b = with_swizzle(random, inner.clone());
    let a = random.swizzle();
    let values = b.values().iter().map(|x| a.apply(*x)).collect();
    let text = format!("{a} o {}", wrapped(&b));
    never_refused("composition", "swizzle of swizzle", text, values, inner)
}

fn offset_of_swizzled(random: &mut Random) -> Case {
    let inner = random.positive(36);
    let b = with_swizzle(random, inner.clone());
    let n = random.range(1, 12);
    let values = b.values().iter().map(|x| x + n).collect();
    let text = format!("{n} o {}", wrapped(&b));
    never_refused("composition", "offset of swizzle", text, values, inner)
}

/// A function of power-of-two extents and, mostly, power-of-two strides.
fn binary(random: &mut Random) -> Function {
    let rank = random.range(1, 3);
    let leaves: Vec<(i64, i64)> = (0..rank)
        .map(|_| {
            let extent = *random.pick(&[2, 2, 4]);
            (extent, *random.pick(&[1, 1, 2, 2, 4, 4, 8, 16, 0, 3]))
        })
        .collect();
    let layout = if random.one_in(2) {
        Layout::of(&leaves)
    } else {
        // Compact in some order: these are linear.
        let shape = Layout::of(&leaves).shape;
        random.layout_of(&shape, 0)
    };
    if random.one_in(3) {
        return layout.into();
    }
    Function(vec![Step::Swizzle(random.swizzle()), Step::Layout(layout)])
}

/// Whether the values are linear over bits.
fn xor_linear(values: &[i64]) -> bool {
    values.len().is_power_of_two()
        && (0..values.len()).all(|i| {
            let sum = (0..values.len().ilog2())
                .filter(|bit| i >> bit & 1 == 1)
                .fold(0, |sum, bit| sum ^ values[1 << bit]);
            sum == values[i]
        })
}

fn matrices(random: &mut Random) -> Case {
    let f = binary(random);
    let values = f.values();
    Case::new(
        "matrix",
        "powers of two",
        format!("matrix({f})"),
        move |answer| {
            let linear = xor_linear(&values);
            judged(
                answer,
                !linear,
                if linear { "a matrix" } else { "" },
                || {
                    if !linear {
                        return Err("a refusal: not linear over bits".into());
                    }
                    let images: Vec<i64> = (0..values.len().ilog2())
                        .map(|bit| values[1 << bit])
                        .collect();
                    let found = answer.matrix()?;
                    (found == images).then_some(()).ok_or(format!("{images:?}"))
                },
            )
        },
    )
}

fn back_from_matrix(random: &mut Random) -> Case {
    let f = binary(random);
    let values = f.values();
    Case::new(
        "to_layout",
        "powers of two",
        format!("to_layout(matrix({f}))"),
        move |answer| {
            judged(answer, !xor_linear(&values), &brief(&values), || {
                let profile = crate::model::Tree::Int(values.len() as i64);
                check_values(&answer.function(&[])?, &values, &profile)
            })
        },
    )
}

/// Up to three steps of any kind left of a swizzled layout, swizzles that are undone among them. Two layouts that meet must
/// compose to a layout.
fn steps_in_a_row(random: &mut Random) -> Case {
    let mut f = random.composed(24);
    for _ in 0..random.range(1, 3) {
        let step = match random.range(0, 4) {
            0 => Step::Swizzle(random.swizzle()),
            1 | 2 => Step::Unswizzle(random.swizzle()),
            3 => Step::Add(random.range(1, 9)),
            _ => Step::Layout(random.chain_layout(24)),
        };
        f.0.insert(0, step);
    }
    let values = f.values();
    let meet =
        f.0.iter()
            .filter(|step| matches!(step, Step::Layout(_)))
            .count()
            > 1;
    let profile = f.domain().expect("a layout").shape.clone();
    Case::new(
        "composition",
        "steps in a row",
        f.to_string(),
        move |answer| {
            judged(answer, meet, &brief(&values), || {
                check_values(&answer.function(&[])?, &values, &profile)
            })
        },
    )
}
