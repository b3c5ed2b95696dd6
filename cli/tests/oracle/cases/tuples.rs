//! Integer tuples: relations of shapes, divisions, comparisons.
//!
//! Divisions are judged element by element, and a tuple divided by an integer by how many tiles it counts.

use super::times;
use crate::model::{Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, is_bool, is_tree, judged};

use Tree::{Int, Tuple};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    for name in [
        "congruent",
        "weakly_congruent",
        "compatible",
        "evenly_divides",
    ] {
        times(300, random, cases, |random| related(random, name));
    }
    times(150, random, cases, evenly_divides_tiler);
    times(400, random, cases, ceil_div);
    times(400, random, cases, shape_div);
    for (name, _) in COMPARISONS {
        times(70, random, cases, |random| comparison(random, name));
    }
    times(200, random, cases, numbers);
}

/// A tree and one that is like it in some way.
fn two(random: &mut Random) -> (Tree, Tree) {
    let a = random.shape(36);
    let b = match random.range(0, 5) {
        0 => random.shape(36),
        1 => a.with_leaves(
            &mut a
                .leaves()
                .iter()
                .map(|_| random.range(1, 6))
                .collect::<Vec<_>>()
                .into_iter(),
        ),
        2 | 3 => refined(random, &a),
        4 => Int(*random.pick(&[a.size(), 2, 3, 4])),
        _ => a.clone(),
    };
    if random.one_in(4) { (b, a) } else { (a, b) }
}

/// Some leaves split in two.
pub(super) fn refined(random: &mut Random, tree: &Tree) -> Tree {
    match tree {
        Int(n) if n % 2 == 0 && random.one_in(2) => Tuple(vec![Int(2), Int(n / 2)]),
        Int(n) => Int(*n),
        Tuple(parts) => Tuple(parts.iter().map(|part| refined(random, part)).collect()),
    }
}

fn weakly_congruent(a: &Tree, b: &Tree) -> bool {
    match (a, b) {
        (Int(_), _) => true,
        (Tuple(_), Int(_)) => false,
        (Tuple(a), Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| weakly_congruent(a, b))
        }
    }
}

/// A tuple divides mode by mode, and not where it has more modes; an integer divides the size.
fn evenly_divides(a: &Tree, b: &Tree) -> bool {
    match b {
        Int(n) => a.size() % n == 0,
        Tuple(parts) => {
            let modes = a.modes();
            parts.len() <= modes.len()
                && parts.iter().zip(&modes).all(|(b, a)| evenly_divides(a, b))
        }
    }
}

fn related(random: &mut Random, name: &'static str) -> Case {
    let (a, b) = two(random);
    let expected = match name {
        "congruent" => a.congruent(&b),
        "weakly_congruent" => weakly_congruent(&a, &b),
        "compatible" => a.compatible(&b),
        _ => evenly_divides(&a, &b),
    };
    let class = if expected { "yes" } else { "no" };
    Case::new(name, class, format!("{name}({a}, {b})"), move |answer| {
        is_bool(answer, expected)
    })
}

/// A tiler divides where its tiles, each with its complement, have as many elements as the mode.
fn evenly_divides_tiler(random: &mut Random) -> Case {
    let rank = random.range(1, 3);
    let shape = random.flat_shape(rank, 36);
    let mut even = true;
    let tiles: Vec<String> = shape
        .leaves()
        .iter()
        .map(|n| {
            let tile = random.chain_layout(6);
            let rest = super::complement(&tile.leaves(), *n).expect("it chains");
            even &= tile.size() * Layout::of(&rest).size() == *n;
            tile.to_string()
        })
        .collect();
    let text = format!("evenly_divides({shape}, <{}>)", tiles.join(", "));
    Case::new("evenly_divides", "tiler", text, move |answer| {
        is_bool(answer, even)
    })
}

fn ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// Each mode by its own; modes of `a` beyond `b` stay.
fn each(a: &Tree, b: &Tree, by: fn(i64, i64) -> Option<i64>) -> Option<Tree> {
    match (a, b) {
        (Int(a), b) => by(*a, b.size()).map(Int),
        (Tuple(a), Tuple(b)) if b.len() <= a.len() => {
            let mut parts = Vec::new();
            for (k, part) in a.iter().enumerate() {
                parts.push(match b.get(k) {
                    Some(b) => each(part, b, by)?,
                    None => part.clone(),
                });
            }
            Some(Tuple(parts))
        }
        _ => None,
    }
}

/// Pairs for a division: elementwise, or a tuple by an integer.
fn dividend(random: &mut Random) -> (Tree, Tree) {
    let rank = random.range(1, 3);
    let a = if random.one_in(4) {
        Int(random.range(1, 36))
    } else {
        random.flat_shape(rank, 200)
    };
    let b = match &a {
        Tuple(parts) if !random.one_in(3) => {
            let n = random.range(1, parts.len() as i64) as usize;
            Tuple(parts[..n].iter().map(|_| Int(random.range(1, 6))).collect())
        }
        Int(_) if random.one_in(3) => random.flat_shape(2, 8),
        _ => Int(random.range(1, 12)),
    };
    (a, b)
}

fn ceil_div(random: &mut Random) -> Case {
    let (a, b) = dividend(random);
    let text = format!("ceil_div({a}, {b})");
    if let (Tuple(_), Int(n)) = (&a, &b) {
        // Folded over the modes; where that is exact, it counts all tiles.
        let n = *n;
        let mut covered = 1;
        let exact = a.leaves().iter().any(|s| {
            covered *= s;
            covered == n
        }) || n == 1
            || a.leaves()[0] % n == 0;
        return Case::new("ceil_div", "tuple by integer", text, move |answer| {
            judged(
                answer,
                false,
                &format!("{} tiles", ceil(a.size(), n)),
                || {
                    let found = answer.tree()?;
                    let count = found.size();
                    let enough = count >= ceil(a.size(), n);
                    let right = if exact {
                        count == ceil(a.size(), n)
                    } else {
                        enough
                    };
                    (found.congruent(&a) && right)
                        .then_some(())
                        .ok_or(format!("not {count}"))
                },
            )
        });
    }
    let expected = each(&a, &b, |a, b| Some(ceil(a, b))).expect("fits");
    Case::new("ceil_div", "elementwise", text, move |answer| {
        is_tree(answer, &expected)
    })
}

fn exact(a: i64, b: i64) -> Option<i64> {
    if a % b == 0 {
        Some(a / b)
    } else if b % a == 0 {
        Some(1)
    } else {
        None
    }
}

fn shape_div(random: &mut Random) -> Case {
    let (a, mut b) = dividend(random);
    if let (Tuple(parts), Tuple(tiles)) = (&a, &mut b) {
        while tiles.len() < parts.len() {
            tiles.push(Int(1));
        }
    }
    let text = format!("shape_div({a}, {b})");
    let expected = match (&a, &b) {
        (Tuple(_), Int(n)) => {
            let mut left = *n;
            let mut leaves = Vec::new();
            for s in a.leaves() {
                match (exact(s, left), exact(left, s)) {
                    (Some(x), Some(rest)) => {
                        leaves.push(x);
                        left = rest;
                    }
                    _ => break,
                }
            }
            (leaves.len() == a.leaves().len()).then(|| a.with_leaves(&mut leaves.into_iter()))
        }
        _ => each(&a, &b, exact),
    };
    let class = if expected.is_some() {
        "divides"
    } else {
        "does not divide"
    };
    Case::new("shape_div", class, text, move |answer| match &expected {
        Some(expected) => is_tree(answer, expected),
        None => judged(answer, true, "", || {
            Err("a refusal: no division is exact".into())
        }),
    })
}

type Compare = fn(&[i64], &[i64]) -> bool;

const COMPARISONS: &[(&str, Compare)] = &[
    ("lex_less", |a, b| a < b),
    ("lex_leq", |a, b| a <= b),
    ("lex_gtr", |a, b| a > b),
    ("lex_geq", |a, b| a >= b),
    ("colex_less", |a, b| a.iter().rev().lt(b.iter().rev())),
    ("colex_leq", |a, b| a.iter().rev().le(b.iter().rev())),
    ("colex_gtr", |a, b| a.iter().rev().gt(b.iter().rev())),
    ("colex_geq", |a, b| a.iter().rev().ge(b.iter().rev())),
    ("elem_less", |a, b| a.iter().zip(b).all(|(a, b)| a < b)),
    ("elem_leq", |a, b| a.iter().zip(b).all(|(a, b)| a <= b)),
    ("elem_gtr", |a, b| a.iter().zip(b).all(|(a, b)| a > b)),
    ("elem_geq", |a, b| a.iter().zip(b).all(|(a, b)| a >= b)),
];

fn comparison(random: &mut Random, name: &'static str) -> Case {
    let shape = random.shape(36);
    let leaves = shape.leaves();
    let a: Vec<i64> = leaves.iter().map(|_| random.range(-2, 3)).collect();
    let b: Vec<i64> = a
        .iter()
        .map(|x| {
            if random.one_in(2) {
                *x
            } else {
                x + random.range(-1, 2)
            }
        })
        .collect();
    let compare = COMPARISONS
        .iter()
        .find(|entry| entry.0 == name)
        .expect("listed")
        .1;
    let expected = compare(&a, &b);
    let (a, b) = (
        shape.with_leaves(&mut a.into_iter()),
        shape.with_leaves(&mut b.into_iter()),
    );
    Case::new(
        name,
        "congruent",
        format!("{name}({a}, {b})"),
        move |answer| is_bool(answer, expected),
    )
}

/// Numbers of a tuple or of a layout.
fn numbers(random: &mut Random) -> Case {
    let a: Layout = random.layout(36);
    let depth = |tree: &Tree| {
        fn depth(tree: &Tree) -> i64 {
            match tree {
                Int(_) => 0,
                Tuple(parts) => 1 + parts.iter().map(depth).max().unwrap_or(0),
            }
        }
        depth(tree)
    };
    let (name, expected) = match random.range(0, 3) {
        0 => ("rank", Int(a.shape.modes().len() as i64)),
        1 => ("depth", Int(depth(&a.shape))),
        2 => ("product", Int(a.size())),
        _ => (
            "product_each",
            Tuple(
                a.shape
                    .modes()
                    .iter()
                    .map(|mode| Int(mode.size()))
                    .collect(),
            ),
        ),
    };
    let operand = if name.starts_with("product") || random.one_in(2) {
        a.shape.to_string()
    } else {
        a.to_string()
    };
    Case::new(name, "tuple", format!("{name}({operand})"), move |answer| {
        // An integer has one element: a tuple of one is as good.
        judged(answer, false, &expected.to_string(), || {
            let found = answer.tree()?;
            (found.leaves() == expected.leaves())
                .then_some(())
                .ok_or(format!("not {found}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_relations() {
        let pair = |a: i64, b: i64| Tuple(vec![Int(a), Int(b)]);
        assert!(!evenly_divides(&Int(16), &pair(2, 8)));
        assert!(evenly_divides(&pair(4, 6), &Int(8)));
        let nested = Tuple(vec![Int(4), pair(2, 2)]);
        assert!(pair(4, 4).compatible(&nested) && !nested.compatible(&pair(4, 4)));
    }
}
