//! What two layouts have in common, and how the offsets of one are aligned: what vector accesses are made of.
//!
//! A common layout takes `i` to a coordinate at which both layouts have the offset `i`. For injective layouts there is one
//! such coordinate, so that the largest common layout is found by listing them.

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

/// Two composed layouts of one shape: a vector may be any run of offsets that both have at the same coordinates.
fn common_swizzled(random: &mut Random) -> Case {
    let (a, b) = pair(random);
    let swizzle = random.swizzle();
    let f = Function(vec![Step::Swizzle(swizzle), Step::Layout(a)]);
    let g = if random.one_in(2) {
        swizzle
    } else {
        random.swizzle()
    };
    let g = Function(vec![Step::Swizzle(g), Step::Layout(b)]);
    let (x, y) = (f.values(), g.values());
    let least = if distinct(&x) && distinct(&y) {
        largest_common(&x, &y)
    } else {
        1
    };
    let text = format!("max_common_vector({f}, {g})");
    Case::new("max_common_vector", "swizzled", text, move |answer| {
        judged(answer, false, &format!("{least} elements"), || {
            let found = answer.int()?;
            let both = |i: i64| x.iter().zip(&y).any(|(x, y)| *x == i && *y == i);
            ((0..found).all(both) && found >= least)
                .then_some(())
                .ok_or(format!("not {found}"))
        })
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
        return Case::new("max_common_vector", class, text, move |answer| {
            if injective {
                return is_int(answer, n);
            }
            judged(answer, false, "offsets that both have", || {
                let found = answer.int()?;
                let both = |i: i64| x.iter().zip(&y).any(|(x, y)| *x == i && *y == i);
                ((0..found).all(both) && found > 0)
                    .then_some(())
                    .ok_or(format!("not {found}"))
            })
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

/// The largest aligned run that the set of offsets consists of.
fn alignment(values: &[i64]) -> i64 {
    let mut set = values.to_vec();
    set.sort_unstable();
    set.dedup();
    (1..=set.len() as i64)
        .rev()
        .find(|v| {
            set.len() as i64 % v == 0
                && set
                    .chunks(*v as usize)
                    .all(|run| run[0].rem_euclid(*v) == 0 && run[run.len() - 1] - run[0] == v - 1)
        })
        .unwrap_or(1)
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
    let v = alignment(&f.values());
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
        assert_eq!(alignment(&Layout::of(&[(9, 1), (4, 1)]).values()), 12);
        assert_eq!(alignment(&Layout::of(&[(8, 1), (4, 20)]).values()), 4);
        let (a, b) = (
            Layout::of(&[(4, 8), (8, 1)]),
            Layout::of(&[(4, 16), (8, 1)]),
        );
        assert_eq!(largest_common(&a.values(), &b.values()), 8);
    }
}
