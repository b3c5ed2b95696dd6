//! Functions that rearrange modes and tuples, with CuTe's meaning: group, take, select, append, prepend, replace,
//! unflatten, zip, reverse, and arithmetic of tuples. Each has exactly one answer, parentheses included.

use super::times;
use crate::model::{Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, is_int, is_tree, must_be};

use Tree::{Int, Tuple};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    for name in REARRANGED {
        times(150, random, cases, |random| rearranged(random, name));
        times(80, random, cases, |random| tuple(random, name));
    }
    for name in [
        "product_like",
        "inner_product",
        "elem_scale",
        "sum",
        "round_up",
        "lcm",
    ] {
        times(120, random, cases, |random| arithmetic(random, name));
    }
    times(150, random, cases, |random| from_start(random, true));
    times(150, random, cases, |random| from_start(random, false));
    times(150, random, cases, get);
}

const REARRANGED: &[&str] = &[
    "group",
    "take",
    "select",
    "append",
    "append to rank",
    "prepend",
    "prepend to rank",
    "replace",
    "unflatten",
    "zip",
    "reverse",
];

/// From the top-level modes of both operands to the result.
type Arrange = Box<dyn Fn(&[Tree], &[Tree]) -> Tree>;

/// A rearrangement of one operand, or of two: text, and what becomes of top-level modes.
struct Change {
    text: String,
    arrange: Arrange,
}

/// The arguments after the operand `{a}`, and a second operand `{x}`.
fn change(random: &mut Random, name: &'static str, rank: usize) -> Change {
    let n = rank as i64;
    let begin = random.range(0, n - 1) as usize;
    let end = random.range(begin as i64 + 1, n) as usize;
    let make = |text: String, arrange: Arrange| Change { text, arrange };
    match name {
        "group" => make(
            format!("group({{a}}, {begin}, {end})"),
            Box::new(move |a, _| {
                let mut parts = a[..begin].to_vec();
                parts.push(Tuple(a[begin..end].to_vec()));
                parts.extend_from_slice(&a[end..]);
                Tuple(parts)
            }),
        ),
        "take" => make(
            format!("take({{a}}, {begin}, {end})"),
            Box::new(move |a, _| Tuple(a[begin..end].to_vec())),
        ),
        "select" => {
            let picks: Vec<usize> = (0..random.range(1, 3))
                .map(|_| random.range(0, n - 1) as usize)
                .collect();
            let list: Vec<String> = picks.iter().map(usize::to_string).collect();
            make(
                format!("select({{a}}, {})", list.join(", ")),
                Box::new(move |a, _| Tuple(picks.iter().map(|k| a[*k].clone()).collect())),
            )
        }
        "append" => make(
            "append({a}, {x})".into(),
            Box::new(|a, x| Tuple([a, &[whole(x)]].concat())),
        ),
        "prepend" => make(
            "prepend({a}, {x})".into(),
            Box::new(|a, x| Tuple([&[whole(x)], a].concat())),
        ),
        "append to rank" | "prepend to rank" => {
            let to = rank + random.range(1, 2) as usize;
            let after = name.starts_with('a');
            make(
                format!(
                    "{}({{a}}, {{x}}, {to})",
                    if after { "append" } else { "prepend" }
                ),
                Box::new(move |a, x| {
                    let more = vec![whole(x); to - a.len()];
                    Tuple(if after {
                        [a, &more].concat()
                    } else {
                        [&more, a].concat()
                    })
                }),
            )
        }
        "replace" => make(
            format!("replace({{a}}, {begin}, {{x}})"),
            Box::new(move |a, x| {
                let mut parts = a.to_vec();
                parts[begin] = whole(x);
                Tuple(parts)
            }),
        ),
        "zip" => make(
            "zip({a}, {b})".into(),
            Box::new(|a, b| {
                Tuple(
                    a.iter()
                        .zip(b)
                        .map(|(a, b)| Tuple(vec![a.clone(), b.clone()]))
                        .collect(),
                )
            }),
        ),
        _ => make(
            "reverse({a})".into(),
            Box::new(|a, _| Tuple(a.iter().rev().cloned().collect())),
        ),
    }
}

/// The second operand as one mode: `change` gets it as its only part.
fn whole(x: &[Tree]) -> Tree {
    x[0].clone()
}

/// A layout with parentheses.
fn tuple_layout(random: &mut Random, rank: Option<usize>) -> Layout {
    loop {
        let a = random.layout(18);
        if let Tuple(parts) = &a.shape
            && rank.is_none_or(|rank| rank == parts.len())
        {
            return a;
        }
    }
}

fn rearranged(random: &mut Random, name: &'static str) -> Case {
    let a = tuple_layout(random, None);
    if name == "unflatten" {
        let leaves = a.leaves();
        let flat = Layout::new(
            Tuple(leaves.iter().map(|leaf| Int(leaf.0)).collect()),
            Tuple(leaves.iter().map(|leaf| Int(leaf.1)).collect()),
        );
        let values = a.values();
        let text = format!("unflatten({flat}, {})", a.shape);
        return Case::new("unflatten", "layout", text, move |answer| {
            must_be(answer, &values, &a.shape, &[])
        });
    }
    let rank = a.shape.modes().len();
    let change = change(random, name, rank);
    let zipped = name == "zip";
    let x = if zipped {
        tuple_layout(random, Some(rank))
    } else {
        random.layout(4)
    };
    let text = change
        .text
        .replace("{a}", &a.to_string())
        .replace("{b}", &x.to_string())
        .replace("{x}", &x.to_string());
    let second = |tree: &Tree| {
        if zipped {
            tree.modes()
        } else {
            vec![tree.clone()]
        }
    };
    let shape = (change.arrange)(&a.shape.modes(), &second(&x.shape));
    let stride = (change.arrange)(&a.stride.modes(), &second(&x.stride));
    let values = Layout::new(shape.clone(), stride).values();
    Case::new(operation(name), "layout", text, move |answer| {
        must_be(answer, &values, &shape, &[])
    })
}

fn operation(name: &'static str) -> &'static str {
    match name {
        "append to rank" => "append",
        "prepend to rank" => "prepend",
        name => name,
    }
}

fn tuple(random: &mut Random, name: &'static str) -> Case {
    let a = tuple_layout(random, None).shape;
    if name == "unflatten" {
        let flat = Tuple(a.leaves().into_iter().map(Int).collect());
        let guide = a.with_leaves(&mut std::iter::repeat(1));
        let text = format!("unflatten({flat}, {guide})");
        return Case::new("unflatten", "tuple", text, move |answer| {
            is_tree(answer, &a)
        });
    }
    let rank = a.modes().len();
    let change = change(random, name, rank);
    let zipped = name == "zip";
    let x = if zipped {
        tuple_layout(random, Some(rank)).shape
    } else {
        random.shape(4)
    };
    let text = change
        .text
        .replace("{a}", &a.to_string())
        .replace("{b}", &x.to_string())
        .replace("{x}", &x.to_string());
    let second = if zipped { x.modes() } else { vec![x] };
    let expected = (change.arrange)(&a.modes(), &second);
    Case::new(operation(name), "tuple", text, move |answer| {
        is_tree(answer, &expected)
    })
}

/// The guide's parentheses over `a`: everything below a leaf of the guide is multiplied.
fn product_like(a: &Tree, guide: &Tree) -> Tree {
    match (a, guide) {
        (Tuple(a), Tuple(guide)) => Tuple(
            a.iter()
                .zip(guide)
                .map(|(a, guide)| product_like(a, guide))
                .collect(),
        ),
        _ => Int(a.size()),
    }
}

fn elem_scale(a: &Tree, b: &Tree) -> Tree {
    match (a, b) {
        (Tuple(a), Tuple(b)) => Tuple(a.iter().zip(b).map(|(a, b)| elem_scale(a, b)).collect()),
        _ => Int(a.size() * b.size()),
    }
}

/// Some tuples become integers.
fn coarser(random: &mut Random, tree: &Tree, top: bool) -> Tree {
    match tree {
        Tuple(parts) if top || random.one_in(2) => Tuple(
            parts
                .iter()
                .map(|part| coarser(random, part, false))
                .collect(),
        ),
        _ => Int(random.range(1, 5)),
    }
}

fn arithmetic(random: &mut Random, name: &'static str) -> Case {
    let a = tuple_layout(random, None).shape;
    let class = "tuple";
    match name {
        "product_like" => {
            let guide = coarser(random, &a, true);
            let expected = product_like(&a, &guide);
            let text = format!("product_like({a}, {guide})");
            Case::new(name, class, text, move |answer| is_tree(answer, &expected))
        }
        "inner_product" => {
            let leaves = a.leaves();
            let b: Vec<i64> = leaves.iter().map(|_| random.range(-3, 9)).collect();
            let expected = leaves.iter().zip(&b).map(|(a, b)| a * b).sum();
            let text = format!("inner_product({a}, {})", a.with_leaves(&mut b.into_iter()));
            Case::new(name, class, text, move |answer| is_int(answer, expected))
        }
        "elem_scale" => {
            let b = a.clone();
            let a = coarser(random, &b, true);
            let expected = elem_scale(&a, &b);
            let text = format!("elem_scale({a}, {b})");
            Case::new(name, class, text, move |answer| is_tree(answer, &expected))
        }
        "sum" => {
            let expected = a.leaves().iter().sum();
            Case::new(name, class, format!("sum({a})"), move |answer| {
                is_int(answer, expected)
            })
        }
        "round_up" => {
            let modes = a.modes().len() as i64;
            let extents = random.extents(modes, 200);
            let given = random.range(1, modes) as usize;
            let by: Vec<i64> = (0..given).map(|_| random.range(1, 6)).collect();
            let up = |k: usize, n: i64| by.get(k).map_or(n, |by| (n + by - 1) / by * by);
            if modes == 1 {
                let (n, by) = (extents[0], by[0]);
                let expected = up(0, n);
                let text = format!("round_up({n}, {by})");
                return Case::new(name, "integer", text, move |answer| {
                    is_int(answer, expected)
                });
            }
            let expected = Tuple(
                extents
                    .iter()
                    .enumerate()
                    .map(|(k, n)| Int(up(k, *n)))
                    .collect(),
            );
            let tuple = |leaves: &[i64]| Tuple(leaves.iter().copied().map(Int).collect());
            let text = format!("round_up({}, {})", tuple(&extents), tuple(&by));
            Case::new(name, class, text, move |answer| is_tree(answer, &expected))
        }
        _ => {
            let (x, y) = (random.range(1, 24), random.range(1, 24));
            let expected = (1..=y)
                .map(|k| k * x)
                .find(|n| n % y == 0)
                .expect("x times y");
            Case::new(name, "integer", format!("lcm({x}, {y})"), move |answer| {
                is_int(answer, expected)
            })
        }
    }
}

/// `col_major(shape, start)`, `row_major(shape, start)`: compact strides that begin at `start`.
fn from_start(random: &mut Random, column: bool) -> Case {
    let shape = random.shape(36);
    let start = random.range(1, 9);
    let extents = shape.leaves();
    let mut strides = vec![0; extents.len()];
    let mut next = start;
    let order: Vec<usize> = if column {
        (0..extents.len()).collect()
    } else {
        (0..extents.len()).rev().collect()
    };
    for k in order {
        strides[k] = next;
        next *= extents[k];
    }
    let values = Layout::new(shape.clone(), shape.with_leaves(&mut strides.into_iter())).values();
    let name = if column { "col_major" } else { "row_major" };
    Case::new(
        name,
        "from a start",
        format!("{name}({shape}, {start})"),
        move |answer| must_be(answer, &values, &shape, &[]),
    )
}

fn get(random: &mut Random) -> Case {
    let a = tuple_layout(random, None);
    let modes = a.modes();
    let k = random.range(0, modes.len() as i64 - 1) as usize;
    let values = modes[k].values();
    let shape = modes[k].shape.clone();
    Case::new("get", "layout", format!("get({a}, {k})"), move |answer| {
        must_be(answer, &values, &shape, &[])
    })
}
