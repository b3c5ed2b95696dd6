//! Coordinate layouts: strides are multiples of unit vectors, `2@1`, and offsets are coordinates.
//!
//! The judge reads `n@k` as a large integer of axis `k`, so that every law of layouts is judged as it is for integers.

use super::divide::{Arrangement, Divided, Expected, arrange};
use super::{coalesced, digits, times};
use crate::answer::axis;
use crate::model::{Function, Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, brief, check_values, exactly, judged, must_be};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(150, random, cases, written);
    times(100, random, cases, moved);
    times(250, random, cases, compose);
    times(200, random, cases, divide);
    times(150, random, cases, coalesce);
    times(150, random, cases, slice);
    times(150, random, cases, local_tile);
    times(100, random, cases, get);
    times(100, random, cases, apply);
}

/// A layout over axes, and its text.
fn layout(random: &mut Random) -> (Layout, String) {
    let rank = random.range(1, 3);
    let shape = random.flat_shape(rank, 36);
    let (mut strides, mut texts) = (Vec::new(), Vec::new());
    for k in 0..rank {
        let at = if random.one_in(4) {
            random.range(0, rank - 1)
        } else {
            k
        };
        let n = *random.pick(&[1, 1, 1, 2, 3]);
        strides.push(n * axis(at as usize));
        texts.push(format!("{n}@{at}"));
    }
    let layout = Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter()));
    let text = format!("{shape}:({})", texts.join(","));
    (layout, text)
}

/// A mode along one axis, moved by a coordinate of more axes: what a slice prints.
fn moved(random: &mut Random) -> Case {
    let axes = random.range(1, 4);
    let along = random.range(0, axes - 1);
    let (size, n) = (random.range(2, 12), random.range(1, 3));
    let by: Vec<i64> = (0..axes).map(|_| random.range(0, 9)).collect();
    let origin: i64 = by.iter().zip(0..).map(|(b, k)| b * axis(k)).sum();
    let values: Vec<i64> = (0..size)
        .map(|i| origin + i * n * axis(along as usize))
        .collect();
    let by: Vec<String> = by.iter().map(ToString::to_string).collect();
    let comma = if axes == 1 { "," } else { "" };
    let text = format!("({}{comma}) o {size}:{n}@{along}", by.join(","));
    Case::new("basis strides", "coordinates moved", text, move |answer| {
        must_be(answer, &values, &Tree::Int(size), &[])
    })
}

/// An identity, as `make_identity_layout` writes it.
fn identity(random: &mut Random) -> (Layout, String) {
    let rank = random.range(2, 3);
    let shape = random.flat_shape(rank, 36);
    let strides: Vec<i64> = (0..rank as usize).map(axis).collect();
    let layout = Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter()));
    (layout, format!("make_identity_layout({shape})"))
}

fn operand(random: &mut Random) -> (Layout, String) {
    if random.one_in(2) {
        identity(random)
    } else {
        layout(random)
    }
}

fn written(random: &mut Random) -> Case {
    let (a, text) = layout(random);
    let values = a.values();
    Case::new("basis strides", "coordinates", text, move |answer| {
        must_be(answer, &values, &a.shape, &[])
    })
}

fn compose(random: &mut Random) -> Case {
    let (a, text) = operand(random);
    let mut b = super::compose::right_hand(random, &a);
    if b.values().iter().any(|x| *x < 0) {
        b = random.chain_layout(12);
    }
    let values: Vec<i64> = b.values().iter().map(|x| a.at(*x)).collect();
    Case::new(
        "composition",
        "coordinates",
        format!("{text} o {b}"),
        move |answer| exactly(answer, &values, &b.shape, &[]),
    )
}

fn divide(random: &mut Random) -> Case {
    let (a, text) = operand(random);
    let tiles: Vec<i64> = a.modes().iter().map(|_| random.range(1, 4)).collect();
    let (name, arrangement) = *random.pick(&[
        ("logical_divide", Arrangement::Logical),
        ("zipped_divide", Arrangement::Zipped),
        ("tiled_divide", Arrangement::Tiled),
        ("flat_divide", Arrangement::Flat),
    ]);
    let expected = arrange(&divided(&a, &tiles), &[], arrangement);
    let tiler = Tree::Tuple(tiles.into_iter().map(Tree::Int).collect());
    Case::new(
        name,
        "coordinates",
        format!("{name}({text}, {tiler})"),
        move |answer| expected.judge(answer, &[]),
    )
}

fn divided(a: &Layout, tiles: &[i64]) -> Vec<Divided> {
    a.modes()
        .iter()
        .zip(tiles)
        .map(|(mode, n)| Divided::new(mode, &Layout::of(&[(*n, 1)])).expect("an integer"))
        .collect()
}

fn coalesce(random: &mut Random) -> Case {
    let (a, text) = operand(random);
    let values = a.values();
    let modes = coalesced(&a.leaves()).len().max(1);
    Case::new(
        "coalesce",
        "coordinates",
        format!("coalesce({text})"),
        move |answer| {
            judged(answer, false, &brief(&values), || {
                let f = answer.function(&[])?;
                check_values(&f, &values, &Tree::Int(values.len() as i64))?;
                let found = f.domain().map_or(0, |layout| layout.leaves().len());
                (found == modes)
                    .then_some(())
                    .ok_or(format!("{modes} modes"))
            })
        },
    )
}

fn slice(random: &mut Random) -> Case {
    let (a, text) = identity(random);
    let leaves = a.leaves();
    let hole = random.range(0, leaves.len() as i64 - 1) as usize;
    let mut offset = 0;
    let at: Vec<String> = leaves
        .iter()
        .enumerate()
        .map(|(k, (s, d))| {
            if k == hole {
                return "_".to_owned();
            }
            let x = random.range(0, s - 1);
            offset += x * d;
            x.to_string()
        })
        .collect();
    let (s, d) = leaves[hole];
    let values: Vec<i64> = (0..s).map(|x| x * d + offset).collect();
    let text = format!("slice(({}), {text})", at.join(","));
    Case::new("slice", "coordinates", text, move |answer| {
        exactly(answer, &values, &Tree::Int(s), &[])
    })
}

fn local_tile(random: &mut Random) -> Case {
    let (a, text) = identity(random);
    let tiles: Vec<i64> = a.modes().iter().map(|_| random.range(1, 4)).collect();
    let parts = divided(&a, &tiles);
    let at: Vec<i64> = parts
        .iter()
        .map(|part| random.range(0, part.rest - 1))
        .collect();
    let values = digits(&tiles)
        .iter()
        .map(|x| (0..parts.len()).map(|k| parts[k].at(x[k], at[k])).sum())
        .collect();
    let tree = |leaves: Vec<i64>| Tree::Tuple(leaves.into_iter().map(Tree::Int).collect());
    let text = format!("local_tile({text}, {}, {})", tree(tiles.clone()), tree(at));
    let expected = Expected {
        profile: tree(tiles),
        values,
        exists: true,
    };
    Case::new("local_tile", "coordinates", text, move |answer| {
        expected.judge(answer, &[])
    })
}

fn get(random: &mut Random) -> Case {
    let (a, text) = operand(random);
    let modes = a.modes();
    let k = random.range(0, modes.len() as i64 - 1) as usize;
    let mode = modes[k].clone();
    Case::new(
        "get",
        "coordinates",
        format!("get({text}, {k})"),
        move |answer| must_be(answer, &mode.values(), &mode.shape, &[]),
    )
}

fn apply(random: &mut Random) -> Case {
    let (a, text) = identity(random);
    let i = random.range(0, a.size() - 1);
    let expected = Function::from(a.clone()).at(i);
    Case::new(
        "apply",
        "coordinates",
        format!("({text})({i})"),
        move |answer| {
            judged(answer, false, "a coordinate", || {
                let found: i64 = answer
                    .tree()?
                    .leaves()
                    .iter()
                    .enumerate()
                    .map(|(k, x)| x * axis(k))
                    .sum();
                (found == expected)
                    .then_some(())
                    .ok_or(format!("not {found}"))
            })
        },
    )
}
