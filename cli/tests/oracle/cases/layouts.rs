//! Simplifications and constructions: coalesce, filter, slices, compact layouts in an order.
//!
//! Coalesced layouts are unique, so the number of modes is judged with the values.

use super::{coalesced, kind, times, wrapped};
use crate::model::{Function, Layout, Step, Tree, distinct};
use crate::random::Random;
use crate::verdict::{Case, brief, check_values, exactly, judged, must_be};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(500, random, cases, coalesce);
    times(200, random, cases, coalesce_swizzled);
    times(300, random, cases, coalesce_by_profile);
    times(300, random, cases, filter);
    times(200, random, cases, filter_zeros);
    times(300, random, cases, flatten);
    times(50, random, cases, flatten_tuple);
    times(600, random, cases, slice_layout);
    times(200, random, cases, dice_layout);
    times(300, random, cases, ordered);
    times(300, random, cases, like);
}

/// A layout whose modes often continue each other.
fn mergeable(random: &mut Random) -> Layout {
    let shape = random.shape(36);
    if random.one_in(3) {
        return random.layout_of(&shape, 3);
    }
    let mut layout = Layout::compact(&shape);
    let mut strides = layout.stride.leaves();
    if random.one_in(2) {
        let k = random.range(0, strides.len() as i64 - 1) as usize;
        strides[k] = random.range(0, 9);
    }
    layout.stride = layout.stride.with_leaves(&mut strides.into_iter());
    layout
}

fn with_modes(f: &Function, modes: usize) -> Result<(), String> {
    let found = f.domain().map_or(0, |layout| layout.leaves().len());
    if found == modes.max(1) {
        Ok(())
    } else {
        Err(format!("{} modes", modes.max(1)))
    }
}

fn coalesce(random: &mut Random) -> Case {
    let a = mergeable(random);
    let (values, modes) = (a.values(), coalesced(&a.leaves()).len());
    Case::new(
        "coalesce",
        kind(&a),
        format!("coalesce({a})"),
        move |answer| {
            judged(answer, false, &brief(&values), || {
                let f = answer.function(&[])?;
                check_values(&f, &values, &Tree::Int(values.len() as i64))?;
                with_modes(&f, modes)
            })
        },
    )
}

fn coalesce_swizzled(random: &mut Random) -> Case {
    let f = random.composed(36);
    let values = f.values();
    let text = format!("coalesce({})", wrapped(&f));
    let modes = coalesced(&f.domain().expect("a layout").leaves()).len();
    Case::new("coalesce", "swizzled", text, move |answer| {
        judged(answer, false, &brief(&values), || {
            let f = answer.function(&[])?;
            check_values(&f, &values, &Tree::Int(values.len() as i64))?;
            with_modes(&f, modes)
        })
    })
}

/// By a profile of ones: each top-level mode for itself.
fn coalesce_by_profile(random: &mut Random) -> Case {
    let a = loop {
        let a = mergeable(random);
        if matches!(a.shape, Tree::Tuple(_)) {
            break a;
        }
    };
    let modes = a.modes();
    let ones = Tree::Tuple(modes.iter().map(|_| Tree::Int(1)).collect());
    let profile = Tree::Tuple(modes.iter().map(|mode| Tree::Int(mode.size())).collect());
    let count: usize = modes
        .iter()
        .map(|mode| coalesced(&mode.leaves()).len().max(1))
        .sum();
    let values = a.values();
    Case::new(
        "coalesce by profile",
        kind(&a),
        format!("coalesce({a}, {ones})"),
        move |answer| {
            judged(
                answer,
                false,
                &format!("{profile} with values {}", brief(&values)),
                || {
                    let f = answer.function(&[])?;
                    check_values(&f, &values, &profile)?;
                    with_modes(&f, count)
                },
            )
        },
    )
}

fn filter(random: &mut Random) -> Case {
    let a = if random.one_in(2) {
        mergeable(random)
    } else {
        random.layout(36)
    };
    let leaves: Vec<(i64, i64)> = a.leaves().into_iter().filter(|leaf| leaf.1 != 0).collect();
    let expected = coalesced(&leaves);
    let values = Layout::of(&expected).values();
    Case::new("filter", kind(&a), format!("filter({a})"), move |answer| {
        judged(answer, false, &brief(&values), || {
            let f = answer.function(&[])?;
            check_values(&f, &values, &Tree::Int(values.len() as i64))?;
            with_modes(&f, expected.len())
        })
    })
}

fn filter_zeros(random: &mut Random) -> Case {
    let a = random.layout(36);
    let mut extents = a
        .leaves()
        .into_iter()
        .map(|(s, d)| if d == 0 { 1 } else { s });
    let shape = a.shape.with_leaves(&mut extents);
    let values = Layout::new(shape.clone(), a.stride.clone()).values();
    Case::new(
        "filter_zeros",
        kind(&a),
        format!("filter_zeros({a})"),
        move |answer| must_be(answer, &values, &shape, &[]),
    )
}

fn flatten(random: &mut Random) -> Case {
    let f = if random.one_in(3) {
        random.composed(36)
    } else {
        random.layout(36).into()
    };
    let values = f.values();
    let domain = f.domain().expect("a layout");
    let shape = match &domain.shape {
        Tree::Int(n) => Tree::Int(*n),
        Tree::Tuple(_) => Tree::Tuple(domain.shape.leaves().into_iter().map(Tree::Int).collect()),
    };
    Case::new(
        "flatten",
        "layout",
        format!("flatten({})", wrapped(&f)),
        move |answer| must_be(answer, &values, &shape, &[]),
    )
}

/// A tuple of layouts, flattened: no stride is lost, whether it comes as one layout or as a list.
fn flatten_tuple(random: &mut Random) -> Case {
    let (a, b, c) = (random.layout(6), random.layout(6), random.layout(6));
    let text = format!("flatten(({a}, ({b}, {c})))");
    let values = Layout::join(&[a, b, c]).values();
    Case::new("flatten", "tuple of layouts", text, move |answer| {
        judged(answer, false, &brief(&values), || {
            let modes: Vec<Layout> = answer
                .functions()?
                .iter()
                .filter_map(|f| f.domain().cloned())
                .collect();
            (Layout::join(&modes).values() == values)
                .then_some(())
                .ok_or("all strides".into())
        })
    })
}

/// A coordinate with holes: its text, and for each leaf what it fixes.
fn holes(random: &mut Random, shape: &Tree, fixed: &mut Vec<Option<i64>>) -> String {
    match shape {
        Tree::Int(n) => {
            let at = random.one_in(2).then(|| random.range(0, n - 1));
            fixed.push(at);
            at.map_or("_".to_owned(), |at| at.to_string())
        }
        Tree::Tuple(_) if random.one_in(3) => {
            // A hole for the whole mode, or a linear coordinate.
            let open = random.one_in(2);
            let i = random.range(0, shape.size() - 1);
            let mut rest = i;
            for n in shape.leaves() {
                fixed.push((!open).then_some(rest % n));
                rest /= n;
            }
            if open { "_".to_owned() } else { i.to_string() }
        }
        Tree::Tuple(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| holes(random, part, fixed))
                .collect();
            format!("({})", parts.join(","))
        }
    }
}

/// A coordinate with at least one hole, for a shape with parentheses.
fn coordinate(random: &mut Random, shape: &Tree) -> (String, Vec<Option<i64>>) {
    loop {
        let mut fixed = Vec::new();
        let text = holes(random, shape, &mut fixed);
        if fixed.iter().any(Option::is_none) && fixed.iter().any(Option::is_some) && text != "_" {
            return (text, fixed);
        }
    }
}

fn sliceable(random: &mut Random) -> Function {
    loop {
        let f = if random.one_in(3) {
            random.composed(36)
        } else {
            random.layout(36).into()
        };
        let domain = f.domain().expect("a layout");
        if domain.leaves().len() > 1 {
            return f;
        }
    }
}

/// The leaves that stay open, and the offset of the rest.
fn split(f: &Function, fixed: &[Option<i64>]) -> (Vec<(i64, i64)>, i64) {
    let leaves = f.domain().expect("a layout").leaves();
    let open = leaves
        .iter()
        .zip(fixed)
        .filter(|part| part.1.is_none())
        .map(|part| *part.0);
    let offset = leaves
        .iter()
        .zip(fixed)
        .map(|(leaf, at)| leaf.1 * at.unwrap_or(0))
        .sum();
    (open.collect(), offset)
}

fn slice_layout(random: &mut Random) -> Case {
    let f = sliceable(random);
    let (at, fixed) = coordinate(random, &f.domain().expect("a layout").shape);
    let (open, offset) = split(&f, &fixed);
    let outer = Function(f.0[..f.0.len() - 1].to_vec());
    let values: Vec<i64> = Layout::of(&open)
        .values()
        .iter()
        .map(|x| outer.at(x + offset))
        .collect();
    let text = if random.one_in(2) {
        format!("slice({at}, {})", wrapped(&f))
    } else if at.starts_with('(') && !at.starts_with("((") {
        format!("{}{at}", wrapped(&f))
    } else {
        format!("slice({at}, {f})")
    };
    let class = if f.0.len() > 1 { "swizzled" } else { "plain" };
    Case::new("slice", class, text, move |answer| {
        exactly(answer, &values, &Tree::Int(values.len() as i64), &[])
    })
}

fn dice_layout(random: &mut Random) -> Case {
    let a = loop {
        let a = random.layout(36);
        if a.leaves().len() > 1 {
            break a;
        }
    };
    let (at, fixed) = coordinate(random, &a.shape);
    let kept: Vec<(i64, i64)> = a
        .leaves()
        .into_iter()
        .zip(&fixed)
        .filter(|part| part.1.is_some())
        .map(|part| part.0)
        .collect();
    let values = Layout::of(&kept).values();
    Case::new(
        "dice",
        "layout",
        format!("dice({at}, {a})"),
        move |answer| exactly(answer, &values, &Tree::Int(values.len() as i64), &[]),
    )
}

/// Compact strides, in the order of `keys`; equal keys from left to right, and `None` stands still.
fn compact_by(shape: &Tree, keys: &[Option<i64>]) -> Layout {
    let extents = shape.leaves();
    let mut order: Vec<usize> = (0..keys.len()).filter(|k| keys[*k].is_some()).collect();
    order.sort_by_key(|k| keys[*k]);
    let mut strides = vec![0; keys.len()];
    let mut next = 1;
    for k in order {
        strides[k] = next;
        next *= extents[k];
    }
    Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter()))
}

fn ordered(random: &mut Random) -> Case {
    let shape = random.shape(36);
    let keys: Vec<i64> = shape.leaves().iter().map(|_| random.range(0, 5)).collect();
    let text = format!(
        "make_ordered_layout({shape}, {})",
        shape.with_leaves(&mut keys.iter().copied())
    );
    let tied = if distinct(&keys) {
        "distinct orders"
    } else {
        "tied orders"
    };
    let keys: Vec<Option<i64>> = keys.into_iter().map(Some).collect();
    let values = compact_by(&shape, &keys).values();
    Case::new("make_ordered_layout", tied, text, move |answer| {
        must_be(answer, &values, &shape, &[])
    })
}

fn like(random: &mut Random) -> Case {
    let a = random.positive(36);
    let keys: Vec<Option<i64>> = a
        .leaves()
        .iter()
        .map(|(s, d)| (*d != 0 && *s > 1).then_some(*d))
        .collect();
    let values = compact_by(&a.shape, &keys).values();
    Case::new(
        "make_layout_like",
        kind(&a),
        format!("make_layout_like({a})"),
        move |answer| must_be(answer, &values, &a.shape, &[]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_layouts() {
        assert_eq!(
            coalesced(&[(2, 1), (2, 2), (1, 7), (3, 5)]),
            [(4, 1), (3, 5)]
        );
        let shape = Layout::of(&[(3, 0), (4, 0)]).shape;
        assert_eq!(
            compact_by(&shape, &[Some(2), Some(1)]).stride.leaves(),
            [4, 1]
        );
        let f = Function(vec![
            Step::Add(3),
            Step::Layout(Layout::of(&[(2, 1), (2, 8)])),
        ]);
        assert_eq!(split(&f, &[None, Some(1)]), (vec![(2, 1)], 8));
    }
}
