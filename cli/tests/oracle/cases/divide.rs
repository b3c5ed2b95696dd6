//! Divides: `A o (B, complement(B, size(A)))`, whole or mode by mode, in four arrangements.
//!
//! A tile that does not divide reaches beyond A. There every value is right, so only elements that exist are judged, and
//! an answer exists if some layout has the right values at those.

use super::{complement, digits, kind, times, wrapped};
use crate::answer::{Answer, Names};
use crate::exist::fits_leaves;
use crate::model::{Function, Layout, Step, Tree};
use crate::random::Random;
use crate::verdict::{Case, Verdict, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(1200, random, cases, whole);
    times(300, random, cases, swizzled);
    for (operation, arrangement) in ARRANGEMENTS {
        times(500, random, cases, |random| {
            by_mode(random, operation, *arrangement)
        });
    }
    times(200, random, cases, zipped_whole);
    times(400, random, cases, complements);
    cases.push(known(
        "logical_divide((10,1):(1,64),4)",
        &[(10, 1), (1, 64)],
        4,
    ));
}

/// How tiles and rests are arranged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    Logical,
    Zipped,
    Tiled,
    Flat,
}

const ARRANGEMENTS: &[(&str, Arrangement)] = &[
    ("logical_divide", Arrangement::Logical),
    ("zipped_divide", Arrangement::Zipped),
    ("tiled_divide", Arrangement::Tiled),
    ("flat_divide", Arrangement::Flat),
];

/// One mode divided: its tile, its rest, and the value at (tile coordinate, rest coordinate) where there is one.
#[derive(Clone)]
pub(super) struct Divided {
    tile: Tree,
    pub(super) rest: i64,
    values: Vec<Option<i64>>,
    exists: bool,
}

impl Divided {
    /// `None` if the tile has no complement.
    pub(super) fn new(a: &Layout, tile: &Layout) -> Option<Divided> {
        let rest = complement(&tile.leaves(), a.size())?;
        if tile.leaves().iter().any(|leaf| leaf.1 < 0) {
            return None;
        }
        let rest = Layout::of(&rest);
        let mut values = Vec::new();
        for y in rest.values() {
            for x in tile.values() {
                values.push((x + y < a.size()).then(|| a.at(x + y)));
            }
        }
        let mut extents = tile.shape.leaves();
        // The rest keeps the modes of the complement: the predicate is a layout with the same modes.
        extents.extend(rest.shape.leaves());
        let exists = fits_leaves(&extents, &values);
        Some(Divided {
            tile: tile.shape.clone(),
            rest: rest.size(),
            values,
            exists,
        })
    }

    /// A mode that is not divided.
    fn kept(a: &Layout) -> Divided {
        Divided {
            tile: Tree::Int(1),
            rest: a.size(),
            values: a.values().into_iter().map(Some).collect(),
            exists: true,
        }
    }

    pub(super) fn at(&self, x: i64, y: i64) -> Option<i64> {
        self.values[(x + y * self.tile.size()) as usize]
    }
}

/// What a divide must answer: a profile and, where elements exist, values.
pub(super) struct Expected {
    pub(super) profile: Tree,
    pub(super) values: Vec<Option<i64>>,
    pub(super) exists: bool,
}

impl Expected {
    pub(super) fn judge(&self, answer: &Answer, names: Names<'_>) -> Verdict {
        judged(
            answer,
            !self.exists,
            &format!("{} with the elements that exist", self.profile),
            || self.check(&answer.function(names)?),
        )
    }

    fn check(&self, function: &Function) -> Result<(), String> {
        let domain = function.domain().ok_or("a layout innermost")?;
        if !self.profile.compatible(&domain.shape) {
            return Err(format!("a shape that refines {}", self.profile));
        }
        for (i, value) in self.values.iter().enumerate() {
            let found = function.at(i as i64);
            if value.is_some_and(|value| value != found) {
                return Err(format!("{value:?} at {i}, not {found}"));
            }
        }
        Ok(())
    }
}

/// Arranges modes divided by `tiled` tiles, and kept modes after them.
pub(super) fn arrange(modes: &[Divided], kept: &[Layout], arrangement: Arrangement) -> Expected {
    let kept: Vec<Divided> = kept.iter().map(Divided::kept).collect();
    let tiles: Vec<Tree> = modes.iter().map(|mode| mode.tile.clone()).collect();
    let rests: Vec<Tree> = modes
        .iter()
        .chain(&kept)
        .map(|mode| Tree::Int(mode.rest))
        .collect();
    let profile = match arrangement {
        Arrangement::Logical => Tree::Tuple(
            modes
                .iter()
                .map(|mode| Tree::Tuple(vec![mode.tile.clone(), Tree::Int(mode.rest)]))
                .chain(kept.iter().map(|mode| Tree::Int(mode.rest)))
                .collect(),
        ),
        Arrangement::Zipped => Tree::Tuple(vec![Tree::Tuple(tiles), Tree::Tuple(rests)]),
        Arrangement::Tiled => {
            Tree::Tuple(std::iter::once(Tree::Tuple(tiles)).chain(rests).collect())
        }
        Arrangement::Flat => Tree::Tuple(tiles.into_iter().chain(rests).collect()),
    };
    let all: Vec<&Divided> = modes.iter().chain(&kept).collect();
    // The parts in the order of the linear coordinate: (mode, whether it is the rest).
    let mut order: Vec<(usize, bool)> = Vec::new();
    if arrangement == Arrangement::Logical {
        order.extend((0..all.len()).flat_map(|k| [(k, false), (k, true)]));
    } else {
        order.extend((0..all.len()).map(|k| (k, false)));
        order.extend((0..all.len()).map(|k| (k, true)));
    }
    let extents: Vec<i64> = order
        .iter()
        .map(|(k, rest)| {
            if *rest {
                all[*k].rest
            } else {
                all[*k].tile.size()
            }
        })
        .collect();
    let values = digits(&extents)
        .iter()
        .map(|at| {
            let mut xy = vec![(0, 0); all.len()];
            for ((k, rest), digit) in order.iter().zip(at) {
                if *rest {
                    xy[*k].1 = *digit;
                } else {
                    xy[*k].0 = *digit;
                }
            }
            all.iter()
                .zip(&xy)
                .map(|(mode, (x, y))| mode.at(*x, *y))
                .sum()
        })
        .collect();
    Expected {
        profile,
        values,
        exists: all.iter().all(|mode| mode.exists),
    }
}

/// A tile: an integer, or a layout that mostly has a complement.
pub(super) fn tile(random: &mut Random) -> (String, Layout) {
    if random.one_in(2) {
        let n = random.range(1, 8);
        return (n.to_string(), Layout::of(&[(n, 1)]));
    }
    let tile = if random.one_in(6) {
        random.positive(8)
    } else {
        random.chain_layout(8)
    };
    (tile.to_string(), tile)
}

fn refused_without_complement(operation: &'static str, kind: &'static str, text: String) -> Case {
    Case::new(operation, kind, text, |answer| match answer {
        Answer::Error(..) => Verdict::Refused,
        _ => Verdict::Wrong("a refusal: the tile's strides do not chain".into()),
    })
}

/// The parts of a divide by one layout: its tile and its rest.
fn by_layout(a: &Layout, tile: &Layout) -> Option<Expected> {
    let divided = Divided::new(a, tile)?;
    Some(Expected {
        profile: Tree::Tuple(vec![divided.tile.clone(), Tree::Int(divided.rest)]),
        exists: divided.exists,
        values: divided.values,
    })
}

fn whole(random: &mut Random) -> Case {
    let a = random.layout(36);
    let (text, tile) = tile(random);
    let text = format!("logical_divide({a}, {text})");
    let class = if a.size() % tile.size() == 0 {
        kind(&a)
    } else {
        "ragged"
    };
    match by_layout(&a, &tile) {
        None => refused_without_complement("logical_divide", "no complement", text),
        Some(expected) => Case::new("logical_divide", class, text, move |answer| {
            expected.judge(answer, &[])
        }),
    }
}

fn zipped_whole(random: &mut Random) -> Case {
    let a = random.layout(36);
    let tile = random.chain_layout(8);
    let text = format!("zipped_divide({a}, {tile})");
    match by_layout(&a, &tile) {
        None => refused_without_complement("zipped_divide", "no complement", text),
        Some(expected) => Case::new("zipped_divide", "layout", text, move |answer| {
            expected.judge(answer, &[])
        }),
    }
}

/// A divide acts on the layout inside; swizzle and offset stay outside.
fn swizzled(random: &mut Random) -> Case {
    let a = random.composed(36);
    let (text, tile) = tile(random);
    let text = format!("logical_divide({}, {text})", wrapped(&a));
    let Some(mut expected) = by_layout(a.domain().expect("a layout"), &tile) else {
        return refused_without_complement("logical_divide", "no complement", text);
    };
    let outer = Function(a.0[..a.0.len() - 1].to_vec());
    for value in &mut expected.values {
        *value = value.map(|value| outer.at(value));
    }
    Case::new("logical_divide", "swizzled", text, move |answer| {
        expected.judge(answer, &[])
    })
}

fn by_mode(random: &mut Random, operation: &'static str, arrangement: Arrangement) -> Case {
    let rank = random.range(2, 3);
    let shape = random.flat_shape(rank, 36);
    let stride_kind = random.range(0, 3);
    let mut modes = random.layout_of(&shape, stride_kind).modes();
    if random.one_in(3) {
        modes[0] = random.chain_layout(8);
    }
    let tiled = random.range(1, rank) as usize;
    let a = Layout::join(&modes);
    let swizzle = random.one_in(4).then(|| random.swizzle());
    let mut texts = Vec::new();
    let mut divided = Vec::new();
    for mode in &modes[..tiled] {
        let (text, tile) = tile(random);
        texts.push(text);
        divided.push(Divided::new(mode, &tile));
    }
    let operand = swizzle.map_or(a.to_string(), |swizzle| format!("({swizzle} o {a})"));
    let text = format!("{operation}({operand}, <{}>)", texts.join(", "));
    let Some(divided) = divided.into_iter().collect::<Option<Vec<Divided>>>() else {
        return refused_without_complement(operation, "no complement", text);
    };
    let mut expected = arrange(&divided, &modes[tiled..], arrangement);
    if let Some(swizzle) = swizzle {
        let outer = Function(vec![Step::Swizzle(swizzle)]);
        for value in &mut expected.values {
            *value = value.map(|value| outer.at(value));
        }
    }
    Case::new(operation, "by mode", text, move |answer| {
        expected.judge(answer, &[])
    })
}

fn complements(random: &mut Random) -> Case {
    let a = if random.one_in(3) {
        random.positive(24)
    } else {
        random.chain_layout(24)
    };
    let n = random.range(1, 60);
    let text = format!("complement({a}, {n})");
    let Some(rest) = complement(&a.leaves(), n) else {
        return refused_without_complement("complement", "no complement", text);
    };
    let values = Layout::of(&rest).values();
    Case::new("complement", kind(&a), text, move |answer| {
        crate::verdict::exactly(answer, &values, &Tree::Int(values.len() as i64), &[])
    })
}

fn known(text: &str, a: &[(i64, i64)], tile: i64) -> Case {
    let expected = by_layout(&Layout::of(a), &Layout::of(&[(tile, 1)])).expect("a complement");
    assert!(expected.exists);
    Case::new("logical_divide", "known", text.to_owned(), move |answer| {
        expected.judge(answer, &[])
    })
}
