//! Coordinates of shapes: to linear ones and back, between shapes, and what holes in them leave open.

use super::times;
use super::tuples::refined;
use crate::model::Tree;
use crate::random::Random;
use crate::verdict::{Case, is_int, is_tree, judged};

use Tree::{Int, Tuple};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(400, random, cases, crd2idx);
    times(300, random, cases, idx2crd);
    times(300, random, cases, crd2crd);
    times(200, random, cases, |random| cut(random, true));
    times(200, random, cases, |random| cut(random, false));
}

/// A coordinate of a shape: integers may stand for tuples. Its text and its linear coordinate.
fn coordinate(random: &mut Random, shape: &Tree) -> (Tree, i64) {
    match shape {
        Tuple(parts) if !random.one_in(4) => {
            let mut at = Vec::new();
            let (mut sum, mut place) = (0, 1);
            for part in parts {
                let (c, i) = coordinate(random, part);
                at.push(c);
                sum += i * place;
                place *= part.size();
            }
            (Tuple(at), sum)
        }
        _ => {
            let i = random.range(0, shape.size() - 1);
            (Int(i), i)
        }
    }
}

/// The natural coordinate of a linear one; the last leaf is unbounded.
fn natural(shape: &Tree, i: i64) -> Tree {
    let extents = shape.leaves();
    let mut rest = i;
    let mut leaves = Vec::new();
    for (k, n) in extents.iter().enumerate() {
        leaves.push(if k + 1 == extents.len() {
            rest
        } else {
            rest % n
        });
        rest /= n;
    }
    shape.with_leaves(&mut leaves.into_iter())
}

fn crd2idx(random: &mut Random) -> Case {
    let a = random.layout(36);
    let (at, i) = coordinate(random, &a.shape);
    if random.one_in(2) {
        let text = format!("crd2idx({at}, {})", a.shape);
        return Case::new("crd2idx", "shape", text, move |answer| is_int(answer, i));
    }
    let expected = a.at(i);
    let text = format!("crd2idx({at}, {}, {})", a.shape, a.stride);
    Case::new("crd2idx", "shape and stride", text, move |answer| {
        is_int(answer, expected)
    })
}

fn idx2crd(random: &mut Random) -> Case {
    let a = random.layout(36);
    let i = random.range(0, a.size() + 4);
    let expected = natural(&a.shape, i);
    let over = if random.one_in(2) {
        a.shape.to_string()
    } else {
        a.to_string()
    };
    let class = if i < a.size() { "inside" } else { "beyond" };
    Case::new(
        "idx2crd",
        class,
        format!("idx2crd({i}, {over})"),
        move |answer| is_tree(answer, &expected),
    )
}

fn crd2crd(random: &mut Random) -> Case {
    let from = random.shape(36);
    let to = if random.one_in(2) {
        refined(random, &from)
    } else {
        Int(from.size())
    };
    let (from, to) = if random.one_in(2) {
        (to, from)
    } else {
        (from, to)
    };
    let (at, i) = coordinate(random, &from);
    let expected = natural(&to, i);
    Case::new(
        "crd2crd",
        "same size",
        format!("crd2crd({at}, {from}, {to})"),
        move |answer| is_tree(answer, &expected),
    )
}

/// `slice` and `dice` of a tuple: what holes leave open, or what is fixed. Judged by its leaves.
fn cut(random: &mut Random, open: bool) -> Case {
    let shape = loop {
        let shape = random.shape(36);
        if shape.leaves().len() > 1 {
            break shape;
        }
    };
    let leaves = shape.leaves();
    let mut kept: Vec<bool> = leaves.iter().map(|_| random.one_in(2)).collect();
    kept[0] = true;
    let coordinate = shape.with_leaves(&mut kept.iter().map(|kept| i64::from(*kept == open)));
    let coordinate = coordinate.to_string().replace('1', "_");
    let expected: Vec<i64> = leaves
        .iter()
        .zip(&kept)
        .filter(|part| *part.1)
        .map(|part| *part.0)
        .collect();
    let name = if open { "slice" } else { "dice" };
    Case::new(
        name,
        "tuple",
        format!("{name}({coordinate}, {shape})"),
        move |answer| {
            judged(answer, false, &format!("{expected:?}"), || {
                let found = answer.tree()?.leaves();
                (found == expected)
                    .then_some(())
                    .ok_or(format!("not {found:?}"))
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_coordinates() {
        let pair = |a: i64, b: i64| Tuple(vec![Int(a), Int(b)]);
        let nested = Tuple(vec![Int(4), pair(2, 2)]);
        assert_eq!(natural(&nested, 7), Tuple(vec![Int(3), pair(1, 0)]));
        assert_eq!(
            natural(&Tuple(vec![Int(3), pair(2, 3)]), 40),
            Tuple(vec![Int(1), pair(1, 6)])
        );
    }
}
