//! Outputs of which some elements are written: each at most once, or by atomic operations alone.
//!
//! Two stores are of different elements if a coordinate tells them apart. Along one mode, a coordinate is a sum of block indices and iterations of loops, each times a
//! number, of what all blocks, iterations and threads have alike, and of a number for each thread. Such sums differ if the numbers are those of a mixed radix:
//!
//! ```text
//! 128·block + thread          threads have 0 to 127 of a tile: blocks and threads are told apart
//! 100·block + thread          refused: thread 100 of a block has the element of thread 0 of the next one
//! position + 4·block + row    all blocks begin at the same position
//! position[block], block      a mode that tells no blocks apart may depend on them
//! ```
//!
//! An index from a tensor whose elements are distinct tells apart what the coordinates in that tensor tell apart.
//!
//! A scheduler that deals out tiles by one number tells iterations and blocks apart, if the stores of a tile stay inside of it ([`deals`](super::deals)).
//!
//! A tensor may say who owns an index, whatever its elements are ([`Owned`]):
//!
//! ```text
//! if owner[row] = tile: store y[row, …]      two stores of one row have found the same element of `owner`, and so are of one tile
//! ```

use std::rc::Rc;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::{Lin, Mono, Sym};
use crate::prove::walk::execute::{Dealt, Trace};
use crate::prove::walk::memory::GlobalAccess;
use crate::quick::QuickMap;

/// What a block does in an iteration along a mode.
struct Along {
    /// Block indices and iterations, each with its number: how many elements apart its neighbours are.
    axes: Vec<(Sym, i64)>,
    /// What is added to them.
    rest: Lin,
}

/// Each element is stored by one thread, once, or by atomic operations alone. `axes` are those of the grid along which a launch may have several blocks; `distinct`
/// says of which buffers no two elements are equal. Of `deals` it is known that iterations and blocks have different tiles.
pub(super) fn at_most_once(
    trace: &mut Trace,
    (loads, stores): (&[&GlobalAccess], &[&GlobalAccess]),
    (axes, deals): (&[Sym], &[Dealt]),
    distinct: &impl Fn(usize) -> bool,
) -> Result<(), String> {
    let Some(first) = stores.first() else {
        return Ok(());
    };
    match stores.iter().filter(|s| s.atomic).count() {
        0 => {}
        _ if !loads.is_empty() => {
            return Err("it is read, and atomic operations of any thread change it: read it in another kernel".to_owned());
        }
        all if all == stores.len() => return Ok(()),
        _ => {
            return Err(
                "stores and atomic operations write it: nothing orders one with the other"
                    .to_owned(),
            );
        }
    }
    if stores.iter().any(|s| s.iterations != first.iterations) {
        return Err("it is stored in several loops, or in a loop and outside of it".to_owned());
    }
    let told: Vec<Told> = stores.iter().map(|s| told_by(trace, s, distinct)).collect();
    // The elements of two tensors may be equal, and those of one may be indices that others are computed to be.
    if told.iter().any(|t| t.by != told[0].by) {
        return Err(
            "its stores are at indices from several tensors, or at some from data and others"
                .to_owned(),
        );
    }
    let by_element = told[0].by.last().is_some_and(Option::is_some);
    if by_element && stores.iter().any(|s| s.width > 1) {
        return Err("vectors begin at indices from data, and may overlap".to_owned());
    }
    let mut places: Vec<Vec<Lin>> = told.into_iter().map(|t| t.places).collect();
    // One element has one owner: so it tells apart as a coordinate does.
    let owned: Vec<_> = stores.iter().map(|s| owned(trace, s)).collect();
    if let Some(Owned { by, mode, .. }) = owned[0]
        && owned
            .iter()
            .all(|o| o.is_some_and(|o| (o.by, o.mode) == (by, mode)))
    {
        for (place, owned) in places.iter_mut().zip(&owned) {
            place.splice(0..0, owned.map(|o| o.tile));
        }
    }
    let modes = places[0].len();
    let alike = |mode: usize| {
        let terms = places[0][mode].terms;
        places.iter().all(|p| p[mode].terms == terms)
    };
    if places.iter().any(|p| p.len() != modes) || !(0..modes).all(alike) {
        return Err("stores differ by more than numbers".to_owned());
    }
    let all: Vec<Sym> = axes.iter().chain(&first.iterations).copied().collect();
    let mut counted = Vec::new();
    for mode in 0..modes {
        let along = along(trace, &places[0][mode], &all)?;
        if along.axes.is_empty() {
            continue;
        }
        if !is_fixed(trace, &along.rest) {
            return Err(format!(
                "mode {mode} depends on block indices or iterations in more than one way"
            ));
        }
        let width = |s: &GlobalAccess| if mode + 1 == modes { s.width } else { 1 };
        let ends = stores.iter().zip(&places).filter_map(|(s, place)| {
            let (least, most) = place[mode].k.range_of(s.facts.active)?;
            Some((least, most + width(s)))
        });
        let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (least, end) = ends.unwrap_or((0, 1));
        radix(trace, stores, &along.axes, end - least, mode)?;
        counted.extend(along.axes.iter().map(|(axis, _)| *axis));
    }
    if deals.iter().any(|d| is_dealt(d, stores, &places)) {
        counted.clone_from(&all);
    }
    if let Some(axis) = all.iter().find(|axis| !counted.contains(axis)) {
        let what = match axes.iter().position(|a| a == axis) {
            Some(_) => "blocks along an axis of the grid",
            None => "iterations of a loop",
        };
        return Err(format!("{what} store the same elements"));
    }
    threads_apart(trace, stores, &places)
}

/// What tells stores apart: coordinates, or those of a distinct element instead of its value.
struct Told {
    places: Vec<Lin>,
    /// For each mode of the output, the tensor whose elements its coordinates are.
    by: Vec<Option<usize>>,
}

fn told_by(trace: &mut Trace, store: &GlobalAccess, distinct: &impl Fn(usize) -> bool) -> Told {
    let (mut places, mut by) = (Vec::new(), Vec::new());
    for at in &store.coordinates {
        let at = chosen(trace, store, *at);
        match definition(trace, &at) {
            Some(Definition::Element(of, place)) if distinct(*of) => {
                places.extend(place.iter());
                by.push(Some(*of));
            }
            _ => {
                places.push(at);
                by.push(None);
            }
        }
    }
    Told { places, by }
}

/// The definition of a value that is one symbol.
fn definition<'t>(trace: &'t Trace, x: &Lin) -> Option<&'t Definition> {
    Some(&trace.symbols.info(x.single()?).definition)
}

/// What the facts at a store choose of a value.
fn chosen(trace: &mut Trace, store: &GlobalAccess, mut at: Lin) -> Lin {
    while let Some(symbol) = at.single()
        && let Definition::Ite(p, a, b) = trace.symbols.info(symbol).definition.clone()
    {
        let mut known = |f: &Rc<Formula>| {
            let parts = f.conjuncts();
            let symbols = &mut trace.symbols;
            parts.iter().all(|part| {
                store.facts.all.contains(part)
                    || matches!(&**part, Formula::Ge(x) if symbols.at_least_zero(x, &store.facts))
            })
        };
        at = match (known(&p), known(&p.not())) {
            (true, _) => a,
            (_, true) => b,
            _ => break,
        };
    }
    at
}

/// A store that is made only where an element of an input is a number: `input[coordinate] = tile`.
#[derive(Clone, Copy)]
struct Owned {
    /// The input.
    by: usize,
    /// The mode of the output whose coordinate is that in the input.
    mode: usize,
    tile: Lin,
}

/// The owner that a store asks for, if it does. Only elements of inputs are known by their place, and nothing writes an input: all threads of a launch find the same one there.
fn owned(trace: &mut Trace, store: &GlobalAccess) -> Option<Owned> {
    let facts = store.facts.all.iter();
    let parts: Vec<Rc<Formula>> = facts.flat_map(Formula::conjuncts).collect();
    let differences = parts.iter().filter_map(|f| match &**f {
        Formula::Ge(x) => Some(*x),
        _ => None,
    });
    for x in differences {
        // The difference is not negative, and not positive.
        if !parts.contains(&Rc::new(Formula::Ge(x.scale(-1)))) {
            continue;
        }
        for symbol in x.symbols() {
            let element = Lin::symbol(symbol);
            let (Some(tile), false) = (
                [x.sub(&element).scale(-1), x.add(&element)]
                    .into_iter()
                    .find(|tile| !tile.mentions(symbol)),
                x.is_far(),
            ) else {
                continue;
            };
            // What a type reads of an element depends on the element alone.
            let mut read = chosen(trace, store, element);
            while let Some(Definition::Read(of, _)) = definition(trace, &read) {
                read = chosen(trace, store, *of);
            }
            let Some(Definition::Element(by, place)) = definition(trace, &read) else {
                continue;
            };
            let &[at] = &place[..] else { continue };
            let vectors = store.coordinates.len() - usize::from(store.width > 1);
            let mut modes = store.coordinates[..vectors].iter();
            if let Some(mode) = modes.position(|c| *c == at) {
                let by = *by;
                return Some(Owned { by, mode, tile });
            }
        }
    }
    None
}

/// Whether stores are of the tile that a scheduler deals out, along two of their modes.
fn is_dealt(deal: &Dealt, stores: &[&GlobalAccess], places: &[Vec<Lin>]) -> bool {
    let modes = places[0].len();
    let within = |mode: usize, of_deal: usize| {
        let width = |s: &GlobalAccess| if mode + 1 == modes { s.width } else { 1 };
        stores.iter().zip(places).all(|(s, place)| {
            let at = place[mode].sub(&deal.origin[of_deal]);
            let range = at.as_number().map(|_| at.k.range_of(s.facts.active));
            range.is_some_and(|range| {
                range.is_none_or(|(least, most)| {
                    least >= 0 && most + width(s) <= deal.tiles[of_deal]
                })
            })
        })
    };
    let mut rows = (0..modes).filter(|&mode| within(mode, 0));
    rows.any(|row| (0..modes).any(|column| column != row && within(column, 1)))
}

/// A value is made of parameters, and so is one number in a launch.
fn is_fixed(trace: &Trace, x: &Lin) -> bool {
    x.symbols()
        .all(|s| match &trace.symbols.info(s).definition {
            Definition::Free(_) => trace.params.contains(&s),
            made => made.all(|x| is_fixed(trace, x), |f| is_decided(trace, f)),
        })
}

/// A statement is of parameters alone.
fn is_decided(trace: &Trace, f: &Formula) -> bool {
    match f {
        Formula::True | Formula::False => true,
        Formula::Ge(x) => is_fixed(trace, x),
        Formula::And(a, b) | Formula::Or(a, b) => is_decided(trace, a) && is_decided(trace, b),
        Formula::Opaque(..) | Formula::Not(..) => false,
    }
}

/// What a coordinate is along a mode.
fn along(trace: &Trace, at: &Lin, axes: &[Sym]) -> Result<Along, String> {
    let mut found = Vec::new();
    let mut rest = Lin::constant(0);
    for (product, factor) in at.terms.list().iter() {
        let Some(factor) = factor.one() else {
            return Err("threads are at distances that are not numbers".to_owned());
        };
        let axis = axes.iter().find(|&&axis| *product == Mono::of(axis));
        match axis {
            Some(&axis) if factor > 0 => found.push((axis, factor)),
            _ => {
                let term = Lin::of([(*product, Num::same(factor))], Num::ZERO);
                rest = rest.add(&term);
            }
        }
    }
    if !trace.symbols.is_uniform(&rest) || found.iter().any(|(s, _)| trace.symbols.info(*s).each) {
        return Err("an index from data may be the same for two threads: state that its elements are distinct (`Kernel::assume_distinct`), or combine by atomic operations".to_owned());
    }
    Ok(Along { axes: found, rest })
}

/// Sums of multiples of indices and of a number below `tile` are all different.
fn radix(
    trace: &Trace,
    stores: &[&GlobalAccess],
    axes: &[(Sym, i64)],
    tile: i64,
    mode: usize,
) -> Result<(), String> {
    let mut axes = axes.to_vec();
    axes.sort_unstable_by_key(|(_, factor)| *factor);
    let mut room = i128::from(tile);
    for (axis, factor) in axes {
        if i128::from(factor) < room {
            return Err(format!(
                "neighbouring blocks or iterations are {factor} elements apart along mode {mode}, and each has {room}"
            ));
        }
        let most = stores.iter().map(|s| most(trace, s, axis)).max();
        let (most, least) = (most.unwrap_or(0), trace.symbols.info(axis).lo);
        room = room.saturating_add((most - least).saturating_mul(factor.into()));
    }
    Ok(())
}

/// The largest value of a symbol where something is stored: by its range, or by a fact that bounds it by a number.
fn most(trace: &Trace, store: &GlobalAccess, symbol: Sym) -> i128 {
    let down = Lin::symbol(symbol).scale(-1);
    let bounds = store.facts.all.iter().filter_map(|f| match &**f {
        Formula::Ge(x) if x.terms == down.terms => Some(i128::from(x.k.one()?)),
        _ => None,
    });
    bounds
        .chain([trace.symbols.info(symbol).hi])
        .min()
        .unwrap_or(0)
}

/// What a path decides alike for all threads.
fn of_all(trace: &Trace, store: &GlobalAccess) -> Vec<Rc<Formula>> {
    let all = store.facts.all.iter();
    all.filter(|f| f.is_uniform(&trace.symbols))
        .cloned()
        .collect()
}

/// In one iteration of a block, no element is stored twice: stores of the same element are on different paths.
fn threads_apart(
    trace: &mut Trace,
    stores: &[&GlobalAccess],
    places: &[Vec<Lin>],
) -> Result<(), String> {
    let mut owners: QuickMap<Vec<i64>, Vec<(usize, usize)>> = QuickMap::default();
    let mut exclusive: QuickMap<(usize, usize), bool> = QuickMap::default();
    for (i, (store, place)) in stores.iter().zip(places).enumerate() {
        let active = store.facts.active.list();
        let numbers: Vec<_> = place.iter().map(|x| x.k.values()).collect();
        for thread in (0..active.len()).filter(|&t| active[t]) {
            for v in 0..store.width {
                let mut at: Vec<i64> = numbers.iter().map(|k| k.at(thread)).collect();
                if let Some(last) = at.last_mut() {
                    *last += v;
                }
                let others = owners.entry(at).or_default();
                for &(other, owner) in others.iter() {
                    let apart = *exclusive.entry((other, i)).or_insert_with(|| {
                        let mut both = of_all(trace, stores[other]);
                        both.extend(of_all(trace, store));
                        let facts = Facts {
                            all: both,
                            active: Mask::all(trace.threads),
                        };
                        other != i && trace.symbols.contradicts(&facts)
                    });
                    if !apart {
                        return Err(if owner == thread {
                            format!("thread {thread} stores an element twice")
                        } else {
                            format!("threads {owner} and {thread} store the same element")
                        });
                    }
                }
                others.push((i, thread));
            }
        }
    }
    Ok(())
}
