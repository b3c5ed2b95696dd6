//! What two layouts have in common, and how the offsets of one are aligned: what vector accesses are made of.
//!
//! A common layout takes `i` to a coordinate at which both layouts have the offset `i`. For injective layouts there is one
//! such coordinate, so that the largest common layout is found by listing them. Vectors of `v` elements are common if every
//! element lies in one that is in order in both layouts and begins at multiples of `v`.

use std::collections::HashSet;

use super::{kind, times};
use crate::exist::fits;
use crate::model::{Function, Layout, Step, distinct};
use crate::random::Random;
use crate::verdict::{Case, is_int, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(400, random, cases, |random| common(random, false));
    times(400, random, cases, |random| common(random, true));
    times(200, random, cases, common_swizzled);
    times(400, random, cases, max_alignment);
}

/// The most offsets `0..n` that both have at the same coordinate, if these coordinates are a layout.
fn largest_common(a: &[i64], b: &[i64]) -> i64 {
    let mut coordinates = Vec::new();
    while let Some(c) = (0..a.len().min(b.len())).find(|c| {
        let n = coordinates.len() as i64;
        a[*c] == n && b[*c] == n
    }) {
        coordinates.push(c as i64);
    }
    (1..=coordinates.len())
        .rev()
        .find(|n| fits(&coordinates[..*n], *n as i64))
        .unwrap_or(1) as i64
}

/// Two layouts with something in common: the second is a variant of the first.
fn pair(random: &mut Random) -> (Layout, Layout) {
    let a = random.positive(36);
    let mut b = a.clone();
    let mut strides = b.stride.leaves();
    if random.one_in(4) {
        return (a, random.positive(36));
    }
    for d in &mut strides {
        if *d > 2 && random.one_in(2) {
            *d += random.range(0, 4);
        }
    }
    b.stride = b.stride.with_leaves(&mut strides.into_iter());
    (a, b)
}

/// The largest vector by which the elements with offsets `x` in one layout and `y` in the other copy.
fn largest_vector(x: &[i64], y: &[i64]) -> i64 {
    let pairs: HashSet<(i64, i64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let whole = |v: i64| {
        pairs.iter().all(|(x, y)| {
            let k = x.rem_euclid(v);
            (y - k) % v == 0 && (0..v).all(|j| pairs.contains(&(x - k + j, y - k + j)))
        })
    };
    (1..=pairs.len() as i64)
        .rev()
        .find(|v| whole(*v))
        .unwrap_or(1)
}

/// Two composed layouts of one shape, often with the same swizzle.
fn common_swizzled(random: &mut Random) -> Case {
    let (a, b) = pair(random);
    let swizzle = random.swizzle();
    let f = Function(vec![Step::Swizzle(swizzle), Step::Layout(a)]);
    let g = match random.range(0, 2) {
        0 => Function(vec![Step::Layout(b)]),
        1 => Function(vec![Step::Swizzle(swizzle), Step::Layout(b)]),
        _ => Function(vec![Step::Swizzle(random.swizzle()), Step::Layout(b)]),
    };
    let v = largest_vector(&f.values(), &g.values());
    let text = format!("max_common_vector({f}, {g})");
    Case::new("max_common_vector", "swizzled", text, move |answer| {
        is_int(answer, v)
    })
}

fn common(random: &mut Random, vector: bool) -> Case {
    let (a, b) = pair(random);
    let (x, y) = (a.values(), b.values());
    let injective = distinct(&x) && distinct(&y);
    let n = largest_common(&x, &y);
    let class = if injective {
        "injective"
    } else {
        "not injective"
    };
    if vector {
        let text = format!("max_common_vector({a}, {b})");
        let v = largest_vector(&x, &y);
        return Case::new("max_common_vector", class, text, move |answer| {
            is_int(answer, v)
        });
    }
    let text = format!("max_common_layout({a}, {b})");
    Case::new("max_common_layout", class, text, move |answer| {
        judged(answer, false, &format!("{n} coordinates"), || {
            let found = answer.function(&[])?.values();
            if injective && found.len() as i64 != n {
                return Err(format!("not {}", found.len()));
            }
            for (i, c) in found.iter().enumerate() {
                let i = Some(i as i64);
                if x.get(*c as usize).copied() != i || y.get(*c as usize).copied() != i {
                    return Err(format!("both {i:?} at {c}"));
                }
            }
            Ok(())
        })
    })
}

fn max_alignment(random: &mut Random) -> Case {
    let swizzled = random.one_in(3);
    let f = if swizzled {
        random.composed(36)
    } else {
        random.layout(36).into()
    };
    let class = if swizzled {
        "swizzled"
    } else {
        kind(f.domain().expect("a layout"))
    };
    // What the layout has in common with itself without the swizzle.
    let straight = Function(
        f.0.iter()
            .filter(|step| !matches!(step, Step::Swizzle(_)))
            .cloned()
            .collect(),
    );
    let v = largest_vector(&f.values(), &straight.values());
    Case::new(
        "max_alignment",
        class,
        format!("max_alignment({f})"),
        move |answer| is_int(answer, v),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_alignments() {
        let own = |modes| {
            let values = Layout::of(modes).values();
            largest_vector(&values, &values)
        };
        assert_eq!(own(&[(9, 1), (4, 1)]), 12);
        assert_eq!(own(&[(8, 1), (4, 20)]), 4);
        let (a, b) = (
            Layout::of(&[(4, 8), (8, 1)]),
            Layout::of(&[(4, 16), (8, 1)]),
        );
        assert_eq!(largest_common(&a.values(), &b.values()), 8);
    }
}
