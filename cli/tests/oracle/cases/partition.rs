//! `local_tile` and `local_partition`: a divide by mode, sliced at the tile or at the place inside each tile.

use super::divide::{Arrangement, Divided, Expected, arrange, tile};
use super::{digits, times};
use crate::answer::Answer;
use crate::model::{Layout, Tree};
use crate::random::Random;
use crate::verdict::{Case, Verdict};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    times(600, random, cases, local_tile);
    times(500, random, cases, local_partition);
}

fn local_tile(random: &mut Random) -> Case {
    let rank = random.range(1, 3);
    let shape = random.flat_shape(rank, 36);
    let kind = random.range(0, 4);
    let a = random.layout_of(&shape, kind);
    let modes = a.modes();
    let mut texts = Vec::new();
    let mut divided = Vec::new();
    for mode in &modes {
        let (text, tile) = tile(random);
        texts.push(text);
        divided.push((Divided::new(mode, &tile), tile));
    }
    let mut coordinate: Vec<Option<i64>> = Vec::new();
    for part in &divided {
        let rest = part.0.as_ref().map_or(1, |part| part.rest);
        coordinate.push((!random.one_in(3)).then(|| random.range(0, rest - 1)));
    }
    let at: Vec<String> = coordinate
        .iter()
        .map(|c| c.map_or("_".to_owned(), |c| c.to_string()))
        .collect();
    let text = format!(
        "local_tile({a}, <{}>, ({}))",
        texts.join(", "),
        at.join(",")
    );
    let tiles: Vec<Tree> = divided.iter().map(|part| part.1.shape.clone()).collect();
    let Some(parts) = divided
        .into_iter()
        .map(|part| part.0)
        .collect::<Option<Vec<Divided>>>()
    else {
        return Case::new("local_tile", "no complement", text, |answer| match answer {
            Answer::Error(..) => Verdict::Refused,
            _ => Verdict::Wrong("a refusal: the tile's strides do not chain".into()),
        });
    };
    let class = if coordinate.iter().any(Option::is_none) {
        "open"
    } else {
        "fixed"
    };
    let exists = arrange(&parts, &[], Arrangement::Flat).exists;
    let open: Vec<usize> = (0..parts.len())
        .filter(|k| coordinate[*k].is_none())
        .collect();
    let mut extents: Vec<i64> = tiles.iter().map(Tree::size).collect();
    extents.extend(open.iter().map(|k| parts[*k].rest));
    let values = digits(&extents)
        .iter()
        .map(|at| {
            (0..parts.len())
                .map(|k| {
                    let y = coordinate[k].unwrap_or_else(|| {
                        at[parts.len() + open.iter().position(|o| *o == k).expect("open")]
                    });
                    parts[k].at(at[k], y)
                })
                .sum()
        })
        .collect();
    let profile = Tree::Tuple(
        tiles
            .into_iter()
            .chain(open.iter().map(|k| Tree::Int(parts[*k].rest)))
            .collect(),
    );
    let expected = Expected {
        profile,
        values,
        exists,
    };
    Case::new("local_tile", class, text, move |answer| {
        expected.judge(answer, &[])
    })
}

/// Thread `i` stands where the layout of the threads has the value `i`, and sees that element of each tile.
fn local_partition(random: &mut Random) -> Case {
    let rank = random.range(1, 3);
    let threads = loop {
        let shape = random.flat_shape(rank, 12);
        if shape.size() > 1 {
            break random.layout_of(&shape, 0);
        }
    };
    let extents: Vec<i64> = threads
        .shape
        .leaves()
        .iter()
        .map(|n| n * random.range(1, 3) + i64::from(random.one_in(4)))
        .collect();
    let shape = Tree::Tuple(extents.into_iter().map(Tree::Int).collect());
    let kind = random.range(0, 3);
    let a = random.layout_of(&shape, kind);
    let thread = random.range(0, threads.size() - 1);
    let text = format!("local_partition({a}, {threads}, {thread})");
    let c = threads
        .values()
        .iter()
        .position(|x| *x == thread)
        .expect("compact");
    let at = digits(&threads.shape.leaves())[c].clone();
    let parts: Vec<Divided> = a
        .modes()
        .iter()
        .zip(threads.shape.leaves())
        .map(|(mode, n)| Divided::new(mode, &Layout::of(&[(n, 1)])).expect("an integer"))
        .collect();
    let exists = arrange(&parts, &[], Arrangement::Flat).exists;
    let rests: Vec<i64> = parts.iter().map(|part| part.rest).collect();
    let values = digits(&rests)
        .iter()
        .map(|y| (0..parts.len()).map(|k| parts[k].at(at[k], y[k])).sum())
        .collect();
    let expected = Expected {
        profile: Tree::Tuple(rests.into_iter().map(Tree::Int).collect()),
        values,
        exists,
    };
    Case::new("local_partition", "compact threads", text, move |answer| {
        expected.judge(answer, &[])
    })
}
