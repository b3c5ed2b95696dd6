//! Stores of several roles, each in loops of its own.
//!
//! Loops that count the same tiles have as many iterations, whichever role iterates them. What is stored in all iterations of all roles is what one loop would store if
//! each of its iterations had the stores of every role, so that the loops of each role get the symbols of the first one's:
//!
//! ```text
//! first     for t in 0..T { rows 256·t + 0 … 127 }
//! second    for u in 0..T { rows 256·u + 128 … 255 }        u → t: an iteration has all of the 256 rows
//! ```

use std::borrow::Cow;
use std::rc::Rc;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::bulk::SentBox;
use crate::prove::walk::execute::Trace;
use crate::prove::walk::memory::GlobalAccess;

/// The stores, with the iterations of the first of them where their loops count the same tiles. Others are left as they are.
pub(super) fn in_common_iterations<'s>(
    trace: &mut Trace,
    stores: &[&'s GlobalAccess],
) -> Vec<Cow<'s, GlobalAccess>> {
    let wanted = stores.first().map_or(&[][..], |s| &s.iterations[..]);
    let renamed = stores.iter().map(|s| {
        let mut new = || renamed(trace, s, wanted).map(Cow::Owned);
        let other = if s.iterations == wanted { None } else { new() };
        other.unwrap_or(Cow::Borrowed(*s))
    });
    renamed.collect()
}

/// The coordinates of an access, with these iterations where its loops count the same tiles.
pub(super) fn coordinates_in(trace: &mut Trace, access: &GlobalAccess, to: &[Sym]) -> Vec<Lin> {
    let own = || access.coordinates.clone();
    if access.iterations == to || !count_alike(trace, &access.iterations, to) {
        return own();
    }
    let (mut all, threads) = (own(), trace.threads);
    for (from, to) in access.iterations.iter().zip(to) {
        let to = Lin::symbol(*to);
        for x in &mut all {
            *x = trace.symbols.replace(x, *from, &to, threads).unwrap_or(*x);
        }
    }
    all
}

/// Boxes of several roles, as [`in_common_iterations`].
pub(super) fn boxes_in_common_iterations<'s>(
    trace: &mut Trace,
    boxes: impl Iterator<Item = &'s SentBox>,
) -> Vec<SentBox> {
    let mut all: Vec<SentBox> = boxes.cloned().collect();
    let wanted = all.first().map_or(Vec::new(), |b| b.iterations.clone());
    for b in all.iter_mut().filter(|b| b.iterations != wanted) {
        if let Some(new) = renamed_box(trace, b, &wanted) {
            *b = new;
        }
    }
    all
}

/// A box whose iterations are called by other symbols; none if these count something else.
fn renamed_box(trace: &mut Trace, of: &SentBox, to: &[Sym]) -> Option<SentBox> {
    if !count_alike(trace, &of.iterations, to) {
        return None;
    }
    let (mut new, threads) = (of.clone(), trace.threads);
    for (from, to) in of.iterations.iter().zip(to) {
        let to = Lin::symbol(*to);
        for x in &mut new.coordinates {
            *x = trace.symbols.replace(x, *from, &to, threads)?;
        }
        for f in new.path.iter_mut().chain(&mut new.stays) {
            let said: &Rc<Formula> = f;
            *f = trace.symbols.replace_in(said, *from, &to, threads)?;
        }
    }
    new.iterations = to.to_vec();
    Some(new)
}

/// The loops of one access count the same tiles as those of another.
fn count_alike(trace: &Trace, iterations: &[Sym], to: &[Sym]) -> bool {
    let same = |(a, b): (&Sym, &Sym)| {
        let of = |iteration: Sym| trace.walks.iter().filter(move |w| w.iteration == iteration);
        let tiles = |iteration: Sym| {
            of(iteration)
                .map(|w| (w.covers, w.tile))
                .collect::<Vec<_>>()
        };
        !tiles(*a).is_empty() && tiles(*a) == tiles(*b)
    };
    iterations.len() == to.len() && iterations.iter().zip(to).all(same)
}

/// A store whose iterations are called by other symbols; none if these count something else.
fn renamed(trace: &mut Trace, store: &GlobalAccess, to: &[Sym]) -> Option<GlobalAccess> {
    if !count_alike(trace, &store.iterations, to) {
        return None;
    }
    let mut new = store.clone();
    let threads = trace.threads;
    let symbols = &mut trace.symbols;
    for (from, to) in store.iterations.iter().zip(to) {
        let to = Lin::symbol(*to);
        for x in new.coordinates.iter_mut().chain([&mut new.address]) {
            *x = symbols.replace(x, *from, &to, threads)?;
        }
        let statements = [&mut new.facts.all, &mut new.path, &mut new.stays];
        let all = statements.into_iter().flatten().chain([&mut new.guard]);
        for f in all {
            let said: &Rc<Formula> = f;
            *f = symbols.replace_in(said, *from, &to, threads)?;
        }
    }
    new.iterations = to.to_vec();
    Some(new)
}
