//! Inverses, preimages, the coordinates along which a layout stands still, and those that divide a shape.
//!
//! An inverse is judged by its law and never by its form. It may be refused only if no chain of radices with any strides
//! takes the offsets back, which `exist::interpolates` decides.

use super::{kind, times, wrapped};
use crate::answer::Answer;
use crate::exist::interpolates;
use crate::model::{Function, Layout, Step, Tree, distinct};
use crate::random::Random;
use crate::verdict::{Case, Verdict, brief, check_values, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(900, random, cases, left_inverse);
    times(300, random, cases, left_inverse_swizzled);
    times(500, random, cases, right_inverse);
    times(400, random, cases, inverse);
    times(200, random, cases, inverse_swizzled);
    times(200, random, cases, inverse_falling);
    times(500, random, cases, preimage);
    times(300, random, cases, nullspace);
    times(300, random, cases, domain_distribute);
}

fn left_inverse(random: &mut Random) -> Case {
    let a = random.layout(36);
    let values = a.values();
    // Without the modes of stride 0 the layout must be injective.
    let leaves: Vec<(i64, i64)> = a
        .leaves()
        .into_iter()
        .map(|(s, d)| (if d == 0 { 1 } else { s }, d))
        .collect();
    let moving = Layout::of(&leaves).values();
    let injective = distinct(&moving);
    let class = kind(&a);
    let text = format!("left_inverse({a})");
    Case::new("left_inverse", class, text, move |answer| {
        let refused = matches!(answer, Answer::Error(..));
        let exists = injective && refused && {
            let mut seen = Vec::new();
            let mut points = Vec::new();
            for (i, x) in values.iter().enumerate() {
                if !seen.contains(x) {
                    seen.push(*x);
                    points.push((*x, i as i64));
                }
            }
            interpolates(&points)
        };
        judged(answer, refused && !exists, "X with X(L(i)) = i", || {
            let inverse = answer.function(&[])?;
            for (i, x) in values.iter().enumerate() {
                let back = inverse.at(*x);
                let again = a.at(back);
                if again != *x || (distinct(&values) && back != i as i64) {
                    return Err(format!("X({x}) = {i}, not {back}"));
                }
            }
            Ok(())
        })
    })
}

/// Positions where a composed layout has its values: the law of its left inverse.
fn takes_back(answer: &Answer, f: &Function) -> Result<(), String> {
    let inverse = answer.function(&[])?;
    for (i, x) in f.values().iter().enumerate() {
        let back = inverse.at(*x);
        if back != i as i64 {
            return Err(format!("X({x}) = {i}, not {back}"));
        }
    }
    Ok(())
}

fn left_inverse_swizzled(random: &mut Random) -> Case {
    let f = loop {
        let f = random.composed(36);
        if distinct(&f.values()) {
            break f;
        }
    };
    let text = format!("left_inverse({f})");
    Case::new("left_inverse", "swizzled", text, move |answer| {
        let exists = matches!(answer, Answer::Error(..)) && {
            let inner = f.domain().expect("a layout").values();
            let points: Vec<(i64, i64)> = inner
                .into_iter()
                .enumerate()
                .map(|(i, x)| (x, i as i64))
                .collect();
            interpolates(&points)
        };
        judged(answer, !exists, "X with X(L(i)) = i", || {
            takes_back(answer, &f)
        })
    })
}

fn inverse(random: &mut Random) -> Case {
    let shape = random.shape(36);
    let stride_kind = *random.pick(&[0, 0, 0, 1, 4]);
    let a = random.layout_of(&shape, stride_kind);
    bijection(a.into(), "plain")
}

fn inverse_swizzled(random: &mut Random) -> Case {
    let mut f = random.composed(32);
    let last = f.0.len() - 1;
    let shape = f.domain().expect("a layout").shape.clone();
    f.0[last] = Step::Layout(random.layout_of(&shape, 0));
    bijection(f, "swizzled")
}

/// Compact modes of which some fall, moved up so that the offsets begin at 0.
fn inverse_falling(random: &mut Random) -> Case {
    let shape = random.shape(36);
    let mut layout = random.layout_of(&shape, 0);
    let extents = layout.shape.leaves();
    let mut offset = 0;
    let mut strides = Vec::new();
    for (n, d) in extents.iter().zip(layout.stride.leaves()) {
        let falls = random.one_in(2);
        offset += if falls { d * (n - 1) } else { 0 };
        strides.push(if falls { -d } else { d });
    }
    layout = Layout::new(
        layout.shape.clone(),
        shape.with_leaves(&mut strides.into_iter()),
    );
    bijection(
        Function(vec![Step::Add(offset), Step::Layout(layout)]),
        "falling",
    )
}

fn bijection(f: Function, class: &'static str) -> Case {
    let text = format!("inverse({f})");
    let values = f.values();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let bijective = sorted.iter().enumerate().all(|(i, x)| i as i64 == *x);
    // A swizzled inverse exists wherever the layout inside has one; compact layouts have, unless strides fall.
    Case::new("inverse", class, text, move |answer| {
        let expected = if bijective { "the inverse" } else { "" };
        let inner = f.domain().expect("a layout").values();
        let points: Vec<(i64, i64)> = inner.into_iter().zip(0..).collect();
        let exists = matches!(answer, Answer::Error(..)) && bijective && interpolates(&points);
        judged(answer, !exists, expected, || takes_back(answer, &f))
    })
}

/// As far as offsets are contiguous from 0: strides, sorted, continue each other.
pub(super) fn contiguous(leaves: &[(i64, i64)]) -> i64 {
    let mut modes: Vec<(i64, i64)> = leaves
        .iter()
        .filter(|(s, d)| *s > 1 && *d != 0)
        .map(|(s, d)| (*d, *s))
        .collect();
    modes.sort_unstable();
    let mut covered = 1;
    for (d, s) in modes.into_iter().filter(|mode| mode.0 > 0) {
        if d != covered {
            break;
        }
        covered *= s;
    }
    covered
}

/// The most offsets from 0 on to which some layout of coordinates goes back: by trying every coordinate for every stride.
fn longest_inverse(values: &[i64]) -> i64 {
    let size = values.len() as i64;
    let count = (0..size).take_while(|n| values.contains(n)).count();
    (1..=count as i64)
        .rev()
        .find(|n| goes_back(values, *n, &[0]))
        .unwrap_or(1)
}

/// Whether the table of a right inverse can be made longer, by whole multiples, up to `n` coordinates.
fn goes_back(values: &[i64], n: i64, table: &[i64]) -> bool {
    let len = table.len() as i64;
    if len == n {
        return true;
    }
    (2..=n / len)
        .filter(|extent| n % (len * extent) == 0)
        .any(|extent| {
            (0..values.len() as i64)
                .filter(|c| values[*c as usize] == len)
                .any(|stride| {
                    let longer: Vec<i64> = (0..extent)
                        .flat_map(|k| table.iter().map(move |c| c + k * stride))
                        .collect();
                    let counts = (0..)
                        .zip(&longer)
                        .all(|(i, c)| values.get(*c as usize) == Some(&i));
                    counts && goes_back(values, n, &longer)
                })
        })
}

fn right_inverse(random: &mut Random) -> Case {
    let a = random.layout(36);
    let values = a.values();
    let least = longest_inverse(&values);
    let text = format!("right_inverse({a})");
    Case::new("right_inverse", kind(&a), text, move |answer| {
        judged(answer, false, "R with L(R(i)) = i", || {
            let inverse = answer.function(&[])?;
            let found = inverse.values();
            if (found.len() as i64) < least {
                return Err(format!("{least} coordinates"));
            }
            for (i, x) in found.iter().enumerate() {
                if values.get(*x as usize) != Some(&(i as i64)) {
                    return Err(format!("L({x}) = {i}"));
                }
            }
            Ok(())
        })
    })
}

fn preimage(random: &mut Random) -> Case {
    let f = if random.one_in(3) {
        random.composed(36)
    } else {
        random.layout(36).into()
    };
    let values = f.values();
    let y = if random.one_in(3) {
        random.range(0, 40)
    } else {
        *random.pick(&values)
    };
    let text = format!("preimage({}, {y})", wrapped(&f));
    let exists = values.contains(&y);
    let class = if exists { "in image" } else { "not in image" };
    Case::new("preimage", class, text, move |answer| {
        judged(
            answer,
            !exists,
            if exists { "i with L(i) = y" } else { "" },
            || {
                let i = answer.int()?;
                (values.get(i as usize) == Some(&y))
                    .then_some(())
                    .ok_or(format!("not {i}"))
            },
        )
    })
}

fn nullspace(random: &mut Random) -> Case {
    let shape = random.shape(36);
    let stride_kind = *random.pick(&[0, 3, 4, 4]);
    let a = random.layout_of(&shape, stride_kind);
    let mut place = 1;
    let mut still = Vec::new();
    for (s, d) in a.leaves() {
        if d == 0 && s > 1 {
            still.push((s, place));
        }
        place *= s;
    }
    let values = Layout::of(&still).values();
    Case::new(
        "nullspace",
        kind(&a),
        format!("nullspace({a})"),
        move |answer| {
            judged(answer, false, &brief(&values), || {
                check_values(
                    &answer.function(&[])?,
                    &values,
                    &Tree::Int(values.len() as i64),
                )
            })
        },
    )
}

/// `n` rising coordinates that divide the shape: each mode gives a factor of `n`, and all of the modes before it.
fn domain_distribute(random: &mut Random) -> Case {
    let rank = random.range(1, 3);
    let shape = random.flat_shape(rank, 36);
    let divisors: Vec<i64> = (1..=shape.size())
        .filter(|n| shape.size() % n == 0)
        .collect();
    let n = if random.one_in(4) {
        random.range(1, 12)
    } else {
        *random.pick(&divisors)
    };
    let text = format!("domain_distribute({shape}, {n})");
    let exists = shape.size() % n == 0;
    let class = if exists { "divides" } else { "does not divide" };
    Case::new(
        "domain_distribute",
        class,
        text,
        move |answer| match answer {
            Answer::Error(..) if !exists => Verdict::Refused,
            _ => judged(answer, false, "rising coordinates", || {
                let found = answer.function(&[])?.values();
                let rising = found.windows(2).all(|pair| pair[0] < pair[1]);
                let inside = found.iter().all(|c| *c < shape.size());
                (found.len() as i64 == n && rising && inside)
                    .then_some(())
                    .ok_or(format!("{n} of them, not {}", brief(&found)))
            }),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_contiguity() {
        assert_eq!(contiguous(&[(4, 8), (8, 1)]), 32);
        assert_eq!(contiguous(&[(4, 1), (2, 5)]), 4);
    }
}
