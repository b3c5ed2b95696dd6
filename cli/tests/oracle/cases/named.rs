//! Strides with names: an answer must hold for every value of the names, so each is judged for several values.
//!
//! Existence is decided for large values without common factors, for which nothing holds by chance.

use super::{coalesced, times};
use crate::answer::{Answer, Names};
use crate::exist::fits_exactly;
use crate::model::{Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, Verdict, brief, check_values, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(500, random, cases, compose);
    times(200, random, cases, coalesce);
    times(200, random, cases, flatten);
    times(250, random, cases, divide);
    times(200, random, cases, slice);
    times(200, random, cases, right_inverse);
    times(200, random, cases, apply);
}

const VALUES: &[[(&str, i64); 2]] = &[
    [("ld", 1_000_003), ("n", 900_000_011)],
    [("ld", 17), ("n", 100)],
    [("ld", 8), ("n", 5)],
    [("ld", 0), ("n", -3)],
];

/// `a·ld + b·n + c` as a stride.
#[derive(Clone, Copy)]
struct Stride(i64, i64, i64);

impl Stride {
    fn text(self) -> String {
        let mut parts = Vec::new();
        for (n, name) in [(self.0, "ld"), (self.1, "n")] {
            match n {
                0 => {}
                1 => parts.push(name.to_owned()),
                n => parts.push(format!("{n}*{name}")),
            }
        }
        if self.2 != 0 || parts.is_empty() {
            parts.push(self.2.to_string());
        }
        parts.join("+")
    }

    fn bound(self, names: Names<'_>) -> i64 {
        self.0 * names[0].1 + self.1 * names[1].1 + self.2
    }
}

/// A layout whose strides have names.
#[derive(Clone)]
struct Named {
    shape: Tree,
    strides: Vec<Stride>,
}

impl Named {
    fn random(random: &mut Random) -> Named {
        loop {
            let shape = random.shape(36);
            let strides: Vec<Stride> = shape
                .leaves()
                .iter()
                .map(|_| match random.range(0, 5) {
                    0 | 1 => Stride(*random.pick(&[1, 1, 2, 4]), 0, 0),
                    2 => Stride(1, 0, 1),
                    3 => Stride(0, 1, 0),
                    _ => Stride(0, 0, *random.pick(&[1, 1, 2, 4, 0])),
                })
                .collect();
            let leaves = shape.leaves();
            if strides
                .iter()
                .zip(&leaves)
                .any(|(d, s)| *s > 1 && d.0 + d.1 > 0)
            {
                return Named { shape, strides };
            }
        }
    }

    fn bound(&self, names: Names<'_>) -> Layout {
        let mut strides = self.strides.iter().map(|d| d.bound(names));
        Layout::new(self.shape.clone(), self.shape.with_leaves(&mut strides))
    }

    fn text(&self) -> String {
        fn put(tree: &Tree, strides: &mut impl Iterator<Item = String>) -> String {
            match tree {
                Tree::Int(_) => strides.next().expect("one a leaf"),
                Tree::Tuple(parts) => {
                    let parts: Vec<String> = parts.iter().map(|part| put(part, strides)).collect();
                    format!("({})", parts.join(","))
                }
            }
        }
        let stride = put(&self.shape, &mut self.strides.iter().map(|d| d.text()));
        // Arithmetic binds tighter than the colon.
        format!("{}:{stride}", self.shape)
    }
}

/// For each value of the names: the expected values, with this profile.
fn for_all(answer: &Answer, profile: &Tree, values: impl Fn(Names<'_>) -> Vec<i64>) -> Verdict {
    let generic = values(&VALUES[0]);
    let exists = matches!(answer, Answer::Error(..)) && fits_exactly(&profile.leaves(), &generic);
    let refused = matches!(answer, Answer::Error(..));
    let expected = format!(
        "{profile} with values {} where ld is 17 and n 100",
        brief(&values(&VALUES[1]))
    );
    judged(answer, refused && !exists, &expected, || {
        for names in VALUES {
            check_values(&answer.function(names)?, &values(names), profile)?;
        }
        Ok(())
    })
}

fn compose(random: &mut Random) -> Case {
    let a = Named::random(random);
    let mut b = super::compose::right_hand(random, &a.bound(&VALUES[1]));
    if b.values().iter().any(|x| *x < 0) {
        b = random.chain_layout(12);
    }
    let text = format!("({}) o {b}", a.text());
    Case::new("composition", "named strides", text, move |answer| {
        for_all(answer, &b.shape, |names| {
            let a = a.bound(names);
            b.values().iter().map(|x| a.at(*x)).collect()
        })
    })
}

fn coalesce(random: &mut Random) -> Case {
    let a = Named::random(random);
    let text = format!("coalesce({})", a.text());
    let modes = coalesced(&a.bound(&VALUES[0]).leaves()).len().max(1);
    let profile = Tree::Int(a.shape.size());
    Case::new(
        "coalesce",
        "named strides",
        text,
        move |answer| match for_all(answer, &profile, |names| a.bound(names).values()) {
            Verdict::Right => judged(answer, false, "the fewest modes", || {
                let f = answer.function(&VALUES[0])?;
                let found = f.domain().map_or(0, |layout| layout.leaves().len());
                (found == modes)
                    .then_some(())
                    .ok_or(format!("{modes} modes"))
            }),
            other => other,
        },
    )
}

fn flatten(random: &mut Random) -> Case {
    let a = Named::random(random);
    let flat = match &a.shape {
        Tree::Int(n) => Tree::Int(*n),
        shape @ Tree::Tuple(_) => Tree::Tuple(shape.leaves().into_iter().map(Tree::Int).collect()),
    };
    let text = format!("flatten({})", a.text());
    Case::new("flatten", "named strides", text, move |answer| {
        for_all(answer, &flat, |names| a.bound(names).values())
    })
}

/// By one integer that divides; ragged tiles are judged without names.
fn divide(random: &mut Random) -> Case {
    let a = Named::random(random);
    let size = a.shape.size();
    let divisors: Vec<i64> = (1..=size).filter(|n| size % n == 0).collect();
    let n = *random.pick(&divisors);
    let text = format!("logical_divide({}, {n})", a.text());
    let profile = Tree::Tuple(vec![Tree::Int(n), Tree::Int(size / n)]);
    Case::new("logical_divide", "named strides", text, move |answer| {
        for_all(answer, &profile, |names| a.bound(names).values())
    })
}

fn slice(random: &mut Random) -> Case {
    let a = loop {
        let a = Named::random(random);
        if a.shape.modes().len() > 1 {
            break a;
        }
    };
    let modes = a.shape.modes();
    let hole = random.range(0, modes.len() as i64 - 1) as usize;
    let at: Vec<i64> = modes
        .iter()
        .map(|mode| random.range(0, mode.size() - 1))
        .collect();
    let shown: Vec<String> = at
        .iter()
        .enumerate()
        .map(|(k, x)| {
            if k == hole {
                "_".to_owned()
            } else {
                x.to_string()
            }
        })
        .collect();
    let text = format!("(({}))({})", a.text(), shown.join(","));
    let profile = Tree::Int(modes[hole].size());
    Case::new("slice", "named strides", text, move |answer| {
        for_all(answer, &profile, |names| {
            let modes = a.bound(names).modes();
            let offset: i64 = (0..modes.len())
                .filter(|k| *k != hole)
                .map(|k| modes[k].at(at[k]))
                .sum();
            modes[hole].values().iter().map(|x| x + offset).collect()
        })
    })
}

/// As far as offsets are contiguous whatever the names are.
fn right_inverse(random: &mut Random) -> Case {
    let a = Named::random(random);
    let text = format!("right_inverse({})", a.text());
    let least = super::inverse::contiguous(&a.bound(&VALUES[0]).leaves());
    Case::new("right_inverse", "named strides", text, move |answer| {
        judged(
            answer,
            false,
            &format!("R of {least} with L(R(i)) = i"),
            || {
                let inverse = answer.function(&[])?;
                for names in VALUES {
                    let a = a.bound(names);
                    for (i, x) in inverse.values().iter().enumerate() {
                        if a.at(*x) != i as i64 {
                            return Err(format!("L({x}) = {i}"));
                        }
                    }
                }
                (inverse.size() >= least)
                    .then_some(())
                    .ok_or(format!("{least} of them"))
            },
        )
    })
}

fn apply(random: &mut Random) -> Case {
    let a = Named::random(random);
    let i = random.range(0, a.shape.size() - 1);
    let text = format!("(({}))({i})", a.text());
    Case::new("apply", "named strides", text, move |answer| {
        judged(answer, false, "an integer with names", || {
            for names in VALUES {
                let text = match answer {
                    Answer::Value(value) => match value["text"].as_str() {
                        Some(text) => text.to_owned(),
                        None => value["value"].to_string(),
                    },
                    _ => String::new(),
                };
                let (found, right) = (
                    crate::answer::expression(&text, names)?,
                    a.bound(names).at(i),
                );
                if found != right {
                    return Err(format!("{right}, not {found}"));
                }
            }
            Ok(())
        })
    })
}
