//! Element width: upcast, downcast, recast. A mode keeps its place; what counts elements of the old width counts the new.
//!
//! Upcast by n: a stride that n divides is divided; a stride that divides n takes that many of its elements together,
//! which must divide the extent. Where that fails mode by mode, several modes may make up one wide element together: then
//! some leading factor of each mode lies inside one element, and the rest steps by whole elements.
//! Downcast by n: a stride of 1 has n times the elements, other strides are n times as long.

use super::{kind, times};
use crate::model::{Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, check_values, judged, must_be};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    for name in ["upcast", "downcast", "recast"] {
        times(400, random, cases, |random| cast(random, name));
    }
    times(400, random, cases, swizzled);
}

fn upcast(s: i64, d: i64, n: i64) -> Option<(i64, i64)> {
    if s == 1 || d == 0 {
        Some((s, 0))
    } else if d % n == 0 {
        Some((s, d / n))
    } else if n % d == 0 && s % (n / d.abs()) == 0 {
        Some((s / (n / d.abs()), d.signum()))
    } else {
        None
    }
}

/// The mode of stride 1 is split; if none moves, the first of extent 1.
fn downcast(leaves: &[(i64, i64)], n: i64) -> Vec<(i64, i64)> {
    let split = leaves
        .iter()
        .position(|(s, d)| d.abs() == 1 && *s > 1)
        .or_else(|| leaves.iter().position(|(_, d)| *d == 1));
    leaves
        .iter()
        .enumerate()
        .map(|(k, (s, d))| {
            if Some(k) == split {
                (s * n, *d)
            } else {
                (*s, d * n)
            }
        })
        .collect()
}

fn rebuilt(a: &Layout, leaves: &[(i64, i64)]) -> Layout {
    let shape: Tree = a.shape.with_leaves(&mut leaves.iter().map(|leaf| leaf.0));
    let stride = a.stride.with_leaves(&mut leaves.iter().map(|leaf| leaf.1));
    Layout::new(shape, stride)
}

fn cast(random: &mut Random, name: &'static str) -> Case {
    let mut a = random.layout(36);
    if random.one_in(2) {
        // Strides that a power of two divides, but for the unit.
        let mut strides = a.stride.leaves();
        for d in &mut strides {
            if *d != 1 {
                *d *= 2;
            }
        }
        a.stride = a.stride.with_leaves(&mut strides.into_iter());
    }
    let n = *random.pick(&[1, 2, 2, 3, 4]);
    let up = name == "upcast" || (name == "recast" && random.one_in(2));
    let leaves = if n == 1 {
        Some(a.leaves())
    } else if up {
        a.leaves()
            .into_iter()
            .map(|(s, d)| upcast(s, d, n))
            .collect()
    } else {
        Some(downcast(&a.leaves(), n))
    };
    let text = match name {
        "recast" if up => format!("recast({a}, 8, {})", 8 * n),
        "recast" => format!("recast({a}, {}, 8)", 8 * n),
        _ => format!("{name}({a}, {n})"),
    };
    // A unit of a size-1 mode, or a backward mode, has no fixed rule in CuTe: a refusal stands.
    let backward = a.leaves().iter().any(|(s, d)| *s > 1 && *d < 0);
    let class = kind(&a);
    match leaves {
        None => across(name, text, a, n),
        Some(leaves) => {
            let layout = rebuilt(&a, &leaves);
            let values = layout.values();
            // Of two modes of stride 1 neither can be split alone: what CuTe answers overlaps.
            let units = a
                .leaves()
                .iter()
                .filter(|(s, d)| *s > 1 && d.abs() == 1)
                .count();
            // Modes that overlap within one wide element: no digits can be left out, whatever CuTe answers.
            let within: i64 = a
                .leaves()
                .iter()
                .filter(|(s, d)| up && *s > 1 && *d > 0 && *d < n)
                .map(|(s, d)| ((*s).min(n / d) - 1) * d)
                .sum();
            let backward = backward || units > 1 || within >= n;
            Case::new(name, class, text, move |answer| {
                if backward && matches!(answer, crate::answer::Answer::Error(..)) {
                    return crate::verdict::Verdict::Refused;
                }
                must_be(answer, &values, &layout.shape, &[])
            })
        }
    }
}

/// `floor(f(i) / n)` of a swizzled layout, at what is left of each coordinate once wide elements are taken together.
///
/// A swizzle upwards may read bits inside the wide element; then nothing exists.
fn swizzled(random: &mut Random) -> Case {
    let (layout, n, rest) = loop {
        let layout = random.chain_layout(36);
        let n = *random.pick(&[2, 4]);
        let rest: Option<Vec<(i64, i64)>> = layout
            .leaves()
            .into_iter()
            .map(|(s, d)| upcast(s, d, n))
            .collect();
        if let Some(rest) = rest {
            break (layout, n, rest);
        }
    };
    let swizzle = random.swizzle();
    let wide = rebuilt(&layout, &rest);
    let places: Vec<Vec<i64>> = super::digits(&layout.shape.leaves());
    let values = layout.values();
    let mut expected = vec![None; wide.size() as usize];
    let mut uniform = true;
    for (at, value) in places.iter().zip(&values) {
        let (mut i, mut place) = (0, 1);
        for ((x, whole), part) in at.iter().zip(layout.shape.leaves()).zip(&rest) {
            i += x / (whole / part.0) * place;
            place *= part.0;
        }
        let value = swizzle.apply(*value).div_euclid(n);
        uniform &= expected[i as usize].is_none_or(|seen| seen == value);
        expected[i as usize] = Some(value);
    }
    let expected: Vec<i64> = expected.into_iter().flatten().collect();
    let may_refuse = !uniform || swizzle.s < 0;
    let text = if random.one_in(2) {
        format!("upcast({swizzle} o {layout}, {n})")
    } else {
        format!("recast({swizzle} o {layout}, 8, {})", 8 * n)
    };
    let name = if text.starts_with('u') {
        "upcast"
    } else {
        "recast"
    };
    Case::new(name, "swizzled", text, move |answer| {
        let values = crate::verdict::brief(&expected);
        judged(
            answer,
            may_refuse,
            &format!("{} with values {values}", wide.shape),
            || {
                if !uniform {
                    return Err("a refusal: a swizzle reads inside the wide element".into());
                }
                check_values(&answer.function(&[])?, &expected, &wide.shape)
            },
        )
    })
}

/// What several modes make up together: `floor(L(i) / n)` is the answer at the rest of each coordinate.
fn across(name: &'static str, text: String, a: Layout, n: i64) -> Case {
    let leaves = a.leaves();
    let forward = leaves.iter().all(|leaf| leaf.1 >= 0);
    let how = if forward {
        together(&leaves, n, &mut Vec::new())
    } else {
        Together::No
    };
    let class = match how {
        Together::No => "does not divide",
        Together::WithGaps => "modes with gaps",
        Together::Whole => "modes together",
    };
    let may_refuse = how != Together::Whole;
    Case::new(name, class, text, move |answer| {
        judged(answer, may_refuse, "wide elements, each once", || {
            let found = answer.function(&[])?.values();
            let mut wide: Vec<i64> = a.values().iter().map(|x| x.div_euclid(n)).collect();
            wide.sort_unstable();
            wide.dedup();
            let mut once = found.clone();
            once.sort_unstable();
            once.dedup();
            (once == wide && (how != Together::No || !forward))
                .then_some(())
                .ok_or(format!("{wide:?}, not {found:?}"))
        })
    })
}

/// How wide elements can be made of several modes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    No,
    /// The part of each mode inside a wide element has gaps: a refusal stands, and so does an answer.
    WithGaps,
    /// That part counts through the wide element.
    Whole,
}

/// Tries all leading factors of the leaves: `taken` of them lie inside one wide element, all other steps are whole ones.
fn together(leaves: &[(i64, i64)], n: i64, taken: &mut Vec<(i64, i64)>) -> Together {
    let Some(((s, d), rest)) = leaves.split_first() else {
        let mut inside = taken.clone();
        inside.sort_unstable();
        let (mut covered, mut whole) = (inside.first().map_or(1, |mode| mode.0), true);
        for (d, f) in inside {
            if d % covered != 0 {
                return Together::No;
            }
            whole &= d == covered;
            covered = d * f;
        }
        return match (covered == n, whole) {
            (false, _) => Together::No,
            (true, false) => Together::WithGaps,
            (true, true) => Together::Whole,
        };
    };
    let mut best = Together::No;
    for f in (1..=*s).filter(|f| s % f == 0) {
        if f == *s || (f * d) % n == 0 {
            if f > 1 && *d != 0 {
                taken.push((*d, f));
            }
            best = best.max(together(rest, n, taken));
            if f > 1 && *d != 0 {
                taken.pop();
            }
        }
    }
    best
}
