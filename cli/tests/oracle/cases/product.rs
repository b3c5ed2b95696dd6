//! Products: `(A, complement(A, size(A)·cosize(B)) o B)`, in several arrangements.
//!
//! Where the strides of A chain and that is a layout, it is the answer. Otherwise, and for a padded block, whose gaps are no
//! multiple of what lies below them, the repetition is judged by laws: the first copy is the block, every copy is the block
//! moved by an offset, copies do not meet, and their offsets rise as the tiler's do.

use super::{chained, digits, kind, padded, times};
use crate::answer::Answer;
use crate::exist::fits_exactly;
use crate::model::{Function, Layout, Step, Tree};
use crate::random::Random;
use crate::verdict::{Case, Verdict, brief, judged};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    for (operation, arrangement) in ARRANGEMENTS {
        let n = if *arrangement == Arrangement::Logical {
            800
        } else {
            350
        };
        times(n, random, cases, |random| {
            product(random, operation, *arrangement)
        });
    }
    times(500, random, cases, tile_to_shape);
    for (text, values) in [
        ("logical_product((64,64):(72,1),3)", None),
        (
            "logical_product((2,2):(1,4),3)",
            Some(Layout::of(&[(2, 1), (2, 4), (3, 8)])),
        ),
        (
            "tile_to_shape((64,32):(64,1),(64,32,3))",
            Some(Layout::of(&[(64, 64), (32, 1), (3, 4096)])),
        ),
        (
            "blocked_product((4,3):(1,12),(1,5):(0,1))",
            Some(Layout::of(&[(4, 1), (3, 12), (5, 36)])),
        ),
        (
            "logical_product((4,4):(5,1),2)",
            Some(Layout::of(&[(4, 5), (4, 1), (2, 20)])),
        ),
        (
            "logical_product(((4,6)):((1,6)),3)",
            Some(Layout::of(&[(4, 1), (6, 6), (3, 36)])),
        ),
        ("logical_product((4,8):(20,2),(3,2):(2,1))", None),
        (
            "blocked_product((8):(2),4:1)",
            Some(Layout::of(&[(8, 2), (2, 1), (2, 16)])),
        ),
        (
            "tile_to_shape((8):(2),32)",
            Some(Layout::of(&[(8, 2), (2, 1), (2, 16)])),
        ),
        ("blocked_product((64,64):(72,1),(2,3))", None),
        ("tile_to_shape((8,8):(9,1),(16,24))", None),
    ] {
        cases.push(known(text, values));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrangement {
    Logical,
    Zipped,
    Tiled,
    Flat,
    Blocked,
    Raked,
}

const ARRANGEMENTS: &[(&str, Arrangement)] = &[
    ("logical_product", Arrangement::Logical),
    ("zipped_product", Arrangement::Zipped),
    ("tiled_product", Arrangement::Tiled),
    ("flat_product", Arrangement::Flat),
    ("blocked_product", Arrangement::Blocked),
    ("raked_product", Arrangement::Raked),
];

/// What a product must be: a profile, and for each linear coordinate the coordinate in the block and in the tiler.
struct Product {
    /// What stands outside: a swizzle, an offset. It stays outside.
    outer: Function,
    a: Layout,
    b: Layout,
    profile: Tree,
    places: Vec<(i64, i64)>,
}

/// Whether strides, sorted, never overlap: each gap is at least what lies below.
fn blocks_apart(a: &Layout) -> bool {
    let mut covered = 1;
    let mut modes: Vec<(i64, i64)> = a
        .leaves()
        .iter()
        .filter(|(s, d)| *s > 1 && *d != 0)
        .map(|(s, d)| (*d, *s))
        .collect();
    modes.sort_unstable();
    modes.iter().all(|(d, s)| {
        let apart = *d >= covered;
        covered = d * s;
        apart
    })
}

impl Product {
    fn judge(&self, answer: &Answer) -> Verdict {
        let (a, b) = (self.a.values(), self.b.values());
        let below = b.iter().chain(&a).any(|x| *x < 0);
        let n = self.a.size() * crate::model::cosize(&b);
        let moved = chained(&self.a.leaves(), n).map(|rest| {
            let rest = Layout::of(&rest);
            b.iter().map(|y| rest.at(*y)).collect::<Vec<i64>>()
        });
        let exists =
            |moved: &Vec<i64>| fits_exactly(&self.b.shape.leaves(), moved) && moved[0] == 0;
        if let (Some(moved), false) = (moved.filter(exists), below) {
            let values: Vec<i64> = self
                .places
                .iter()
                .map(|(x, y)| self.outer.at(a[*x as usize] + moved[*y as usize]))
                .collect();
            return judged(
                answer,
                false,
                &format!("{} with values {}", self.profile, brief(&values)),
                || {
                    let function = answer.function(&[])?;
                    crate::verdict::check_values(&function, &values, &self.profile)
                },
            );
        }
        let may_refuse = below || !blocks_apart(&self.a);
        judged(
            answer,
            may_refuse,
            "copies of the block that do not meet",
            || {
                // The laws are about the layout inside.
                let found = answer.function(&[])?;
                let inside = found.0.strip_prefix(self.outer.0.as_slice());
                let inside = Function(inside.unwrap_or(&found.0).to_vec());
                self.laws(&inside, &a, &b)
            },
        )
    }

    fn laws(&self, function: &Function, a: &[i64], b: &[i64]) -> Result<(), String> {
        let domain = function.domain().ok_or("a layout innermost")?;
        if !self.profile.compatible(&domain.shape) {
            return Err(format!("a shape that refines {}", self.profile));
        }
        let values = function.values();
        let mut moved = vec![0; b.len()];
        for (i, (x, y)) in self.places.iter().enumerate() {
            if *x == 0 {
                moved[*y as usize] = values[i] - a[0];
            }
        }
        for (i, (x, y)) in self.places.iter().enumerate() {
            if values[i] != a[*x as usize] + moved[*y as usize] {
                return Err(format!(
                    "a copy of the block at {y}, not {} at {i}",
                    values[i]
                ));
            }
        }
        if moved[0] != 0 {
            return Err("the block itself first".into());
        }
        // In the order of the tiler's offsets, copies rise and do not meet.
        let mut order: Vec<usize> = (0..b.len()).collect();
        order.sort_by_key(|y| b[*y]);
        let mut taken: Vec<i64> = Vec::new();
        for pair in order.windows(2) {
            let rises = (b[pair[0]] < b[pair[1]]) == (moved[pair[0]] < moved[pair[1]])
                && (b[pair[0]] == b[pair[1]]) == (moved[pair[0]] == moved[pair[1]]);
            if !rises {
                return Err(format!("copies in the order of {}", brief(b)));
            }
        }
        let mut block = a.to_vec();
        block.sort_unstable();
        block.dedup();
        let mut copies = moved.clone();
        copies.sort_unstable();
        copies.dedup();
        for copy in copies {
            taken.extend(block.iter().map(|x| x + copy));
        }
        if crate::model::distinct(&taken) {
            Ok(())
        } else {
            Err("copies that do not meet".into())
        }
    }
}

fn product(random: &mut Random, operation: &'static str, arrangement: Arrangement) -> Case {
    if random.one_in(6) {
        return swizzled(random, operation, arrangement);
    }
    let a = match random.range(0, 3) {
        0 | 1 => random.chain_layout(16),
        2 => {
            let shape = random.shape(16);
            random.layout_of(&shape, 2)
        }
        _ => random.layout(16),
    };
    let b = if random.one_in(8) {
        random.layout(6)
    } else {
        random.positive(6)
    };
    let text = format!("{operation}({a}, {b})");
    let class = kind(&a);
    let expected = arranged(a, b, arrangement);
    Case::new(operation, class, text, move |answer| expected.judge(answer))
}

/// A swizzled block: the layout inside is repeated. Its strides chain, so that the values are known.
fn swizzled(random: &mut Random, operation: &'static str, arrangement: Arrangement) -> Case {
    let (a, b) = (random.chain_layout(16), random.positive(6));
    let swizzle = random.swizzle();
    let text = format!("{operation}({swizzle} o {a}, {b})");
    let mut expected = arranged(a, b, arrangement);
    expected.outer = Function(vec![Step::Swizzle(swizzle)]);
    Case::new(operation, "swizzled", text, move |answer| {
        expected.judge(answer)
    })
}

fn arranged(a: Layout, b: Layout, arrangement: Arrangement) -> Product {
    let rank = a.modes().len().max(b.modes().len());
    let (m, n) = (padded(&a, rank), padded(&b, rank));
    let profile = match arrangement {
        Arrangement::Logical | Arrangement::Zipped => {
            Tree::Tuple(vec![a.shape.clone(), b.shape.clone()])
        }
        // An integer that is split becomes several modes, as in CuTe: only the values are judged then.
        Arrangement::Tiled | Arrangement::Flat if matches!(b.shape, Tree::Int(_)) => {
            Tree::Int(a.size() * b.size())
        }
        // Of two integers the result is a pair, and of tuples of one a tuple of that pair.
        Arrangement::Blocked | Arrangement::Raked if rank == 1 => Tree::Int(a.size() * b.size()),
        Arrangement::Tiled => Tree::Tuple(
            std::iter::once(a.shape.clone())
                .chain(b.shape.modes())
                .collect(),
        ),
        Arrangement::Flat => {
            Tree::Tuple(a.shape.modes().into_iter().chain(b.shape.modes()).collect())
        }
        Arrangement::Blocked | Arrangement::Raked => Tree::Tuple(
            m.iter()
                .zip(&n)
                .map(|(m, n)| {
                    let (m, n) = (m.shape.clone(), n.shape.clone());
                    let raked = arrangement == Arrangement::Raked;
                    Tree::Tuple(if raked { vec![n, m] } else { vec![m, n] })
                })
                .collect(),
        ),
    };
    let sizes = |modes: &[Layout]| modes.iter().map(Layout::size).collect::<Vec<i64>>();
    let (m, n) = (sizes(&m), sizes(&n));
    let places = match arrangement {
        Arrangement::Blocked | Arrangement::Raked => {
            let raked = arrangement == Arrangement::Raked;
            let extents: Vec<i64> = m
                .iter()
                .zip(&n)
                .flat_map(|(m, n)| if raked { [*n, *m] } else { [*m, *n] })
                .collect();
            digits(&extents)
                .iter()
                .map(|at| {
                    let (mut x, mut y) = (0, 0);
                    for k in (0..m.len()).rev() {
                        let (inner, outer) =
                            (2 * k + usize::from(raked), 2 * k + usize::from(!raked));
                        x = x * m[k] + at[inner];
                        y = y * n[k] + at[outer];
                    }
                    (x, y)
                })
                .collect()
        }
        _ => (0..b.size())
            .flat_map(|y| (0..a.size()).map(move |x| (x, y)))
            .collect(),
    };
    Product {
        outer: Function(Vec::new()),
        a,
        b,
        profile,
        places,
    }
}

/// A block repeated until it fills a shape: a blocked product with a compact tiler in some order.
fn tile_to_shape(random: &mut Random) -> Case {
    let rank = random.range(1, 3);
    let shape = if rank == 1 && random.one_in(2) {
        Tree::Int(random.range(1, 8))
    } else {
        random.flat_shape(rank, 16)
    };
    let stride_kind = *random.pick(&[0, 0, 1, 2, 2]);
    let a = random.layout_of(&shape, stride_kind);
    let times: Vec<i64> = a
        .shape
        .leaves()
        .iter()
        .map(|_| random.range(1, 4))
        .collect();
    let target = a.shape.with_leaves(
        &mut a
            .shape
            .leaves()
            .iter()
            .zip(&times)
            .map(|(n, k)| n * k)
            .collect::<Vec<_>>()
            .into_iter(),
    );
    let mut order: Vec<i64> = (1..=rank).collect();
    let ordered = rank > 1 && random.one_in(2);
    if ordered && random.one_in(2) {
        order.reverse();
    } else if ordered {
        order.swap(0, rank as usize - 1);
    }
    let mut strides = vec![0; times.len()];
    let mut next = 1;
    for rank in 1..=rank {
        let k = order
            .iter()
            .position(|o| *o == rank)
            .expect("a permutation");
        strides[k] = next;
        next *= times[k];
    }
    let b = Layout::of(&times.iter().copied().zip(strides).collect::<Vec<_>>());
    // An integer fills a shape of one mode as well.
    let target = match target {
        Tree::Tuple(modes) if modes.len() == 1 && random.one_in(2) => modes[0].clone(),
        target => target,
    };
    let text = if ordered {
        let order = Tree::Tuple(order.into_iter().map(Tree::Int).collect());
        format!("tile_to_shape({a}, {target}, {order})")
    } else {
        format!("tile_to_shape({a}, {target})")
    };
    let class = kind(&a);
    let expected = arranged(a, b, Arrangement::Blocked);
    Case::new("tile_to_shape", class, text, move |answer| {
        expected.judge(answer)
    })
}

/// Products that were once refused or wrong; where a layout is given, with its values.
fn known(text: &str, layout: Option<Layout>) -> Case {
    let values = layout.map(|layout| layout.values());
    Case::new("products", "known", text.to_owned(), move |answer| {
        judged(answer, false, "a layout with distinct values", || {
            let found = answer.function(&[])?.values();
            match &values {
                Some(values) if *values != found => Err(brief(values)),
                None if !crate::model::distinct(&found) => Err("distinct values".into()),
                _ => Ok(()),
            }
        })
    })
}
