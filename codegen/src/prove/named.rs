//! Named barriers: those of some threads of the block, in roles.
//!
//! Two uses of a barrier are followed, told apart by who arrives:
//!
//! ```text
//! of a role          all threads of one role wait at it, as many as it counts, and nobody else arrives          orders their accesses of shared memory
//! order barriers     role r waits at barrier r, role r − 1 arrives there without waiting; it counts both         roles take turns
//! ```
//!
//! Of R roles with order barriers, role 0 has its turn t behind turn t − 1 of role R − 1, which arms the first turn by an arrival ahead of all that it does; role r has it
//! behind that of role r − 1:
//!
//! ```text
//! role r       wait at r, …, arrive at r + 1 mod R          each turn
//! role R − 1   arrive at 0                                  once, at the begin
//! ```
//!
//! **No arrival is counted in another phase.** A role waits with all of its threads, so a barrier's phase ends with a wait of the whole role r, and with the arrival of
//! every thread of role r − 1, whose next arrival there is behind its next wait. That wait takes, by way of all roles, an arrival of role r behind this one's. So between two
//! arrivals of role r − 1 lies one wait of role r, and phase t of each barrier is turn t. An arrival is left over at the end: nobody waits for it.
//!
//! **Nobody waits forever.** All roles of such a group have the same sequence of steps: waits for stages of rings, loops, and turns, in the same loops of as many
//! turns. In a turn a role waits for nothing else. Stages of a ring that one of the roles reads alone stand at one step of all of them. The roles that fill those rings do so
//! in the order of this sequence. Then each wait takes what is earlier in the sequence, or at the same step of an earlier role: turn t of role r that of role r − 1 at the same
//! step, that of role 0 an earlier step; a full stage takes fills up to that step, which take arrivals of uses before (see [`ring`](super::ring)). What fills a ring in a cluster
//! waits at its end until the last stages are given back: nothing is filled behind that, and it is no step.
//!
//! Order barriers order no accesses of memory in this proof. The products of a turn may be in flight behind it.

use std::collections::{BTreeMap, BTreeSet};

use super::ProofError;
use super::execute::{Event, Trace};
use super::hopper::{Piped, What};
use super::numbers::Mask;
use super::ring::drains;
use super::value::Lin;
use crate::ir::{Entry, Side};

/// Named barriers are numbered from 1 to this.
const LAST: u32 = 15;

/// A step of a role.
#[derive(Clone, Debug)]
enum Step {
    /// It waits for a stage of a ring.
    Stage(usize),
    /// It waits for its turn.
    Take,
    /// It passes its turn on.
    Pass,
    /// A loop of so many turns.
    Turns(Option<Lin>, Vec<Step>),
}

/// Who is at a barrier.
#[derive(Default)]
struct Users {
    waits: BTreeSet<usize>,
    arrives: BTreeSet<usize>,
    counts: BTreeSet<u32>,
}

/// The barriers that a role of a group waits and arrives at.
#[derive(Clone, Copy)]
struct Turns {
    waits: u32,
    arrives: u32,
}

/// Named barriers are those of single roles, or order barriers of groups of roles.
pub(super) fn kept(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
    followed(entry, trace).map_err(|reason| ProofError::Named { reason })
}

fn followed(entry: &Entry, trace: &Trace) -> Result<(), String> {
    let mut users: BTreeMap<u32, Users> = BTreeMap::new();
    let (mut roles, mut outside) = (&Vec::new(), false);
    for event in &trace.events {
        match event {
            Event::Roles(all) => roles = all,
            event => named(std::slice::from_ref(event), &mut |_| outside = true),
        }
    }
    if outside {
        return Err("one is used before roles part".to_owned());
    }
    for (role, (_, events)) in roles.iter().enumerate() {
        named(events, &mut |p| {
            if let What::Named { id, count, waits } = p.what {
                let users = users.entry(id).or_default();
                users.counts.insert(count);
                let side = if waits {
                    &mut users.waits
                } else {
                    &mut users.arrives
                };
                side.insert(role);
            }
        });
    }
    let threads = |role: &usize| count(roles[*role].0);
    // By role, the barriers of its turns; by the barrier that it waits at, the role.
    let mut turns: BTreeMap<usize, Turns> = BTreeMap::new();
    let (mut waits, mut arrives) = (BTreeMap::new(), BTreeMap::new());
    for (&id, users) in &users {
        if !(1..=LAST).contains(&id) {
            return Err(format!(
                "one of number {id}: they are numbered from 1 to {LAST}"
            ));
        }
        let all: BTreeSet<&usize> = users.waits.union(&users.arrives).collect();
        let both: u32 = all.iter().map(|role| threads(role)).sum();
        if users.counts.len() != 1 || !users.counts.contains(&both) {
            return Err(format!(
                "barrier {id} counts {} threads, and {both} threads of {} roles arrive at it",
                users.counts.first().copied().unwrap_or(0),
                all.len()
            ));
        }
        let (one, other) = (users.waits.first(), users.arrives.first());
        match (one, other) {
            (Some(_), None) if all.len() == 1 => {}
            (Some(&one), Some(&other)) if all.len() == 2 && users.waits.len() == 1 => {
                if waits.insert(one, id).is_some() || arrives.insert(other, id).is_some() {
                    return Err("a role has turns in several groups".to_owned());
                }
            }
            _ => {
                return Err(format!(
                    "at barrier {id} {} roles wait and {} arrive: one role waits at its own, or for the arrival of one other",
                    users.waits.len(),
                    users.arrives.len()
                ));
            }
        }
    }
    for (&role, &waits) in &waits {
        let Some(&arrives) = arrives.get(&role) else {
            return Err("a role waits for turns and passes none on".to_owned());
        };
        turns.insert(role, Turns { waits, arrives });
    }
    if arrives.len() != turns.len() {
        return Err("a role passes turns on and waits for none".to_owned());
    }
    let mut left: BTreeSet<usize> = turns.keys().copied().collect();
    while let Some(&first) = left.first() {
        let mut group = vec![first];
        loop {
            let last = group[group.len() - 1];
            left.remove(&last);
            let next = waits.iter().find(|(_, id)| **id == turns[&last].arrives);
            match next {
                Some((&next, _)) if next == first => break,
                Some((&next, _)) if left.contains(&next) => group.push(next),
                _ => return Err("turns are passed on to no role that takes them".to_owned()),
            }
        }
        in_turns(entry, roles, &turns, &group)?;
    }
    Ok(())
}

/// A group of roles, each of which passes its turns on to the next, keeps to the protocol.
fn in_turns(
    entry: &Entry,
    roles: &[(Mask, Vec<Event>)],
    turns: &BTreeMap<usize, Turns>,
    group: &[usize],
) -> Result<(), String> {
    let mut all = Vec::new();
    let mut armed = 0;
    for role in group {
        let mut steps = steps(&roles[*role].1, Some(turns[role]))?;
        // Its turns begin with one that it takes, except where it arms those of the next role.
        if matches!(steps.first(), Some(Step::Pass)) {
            steps.remove(0);
            armed += 1;
        }
        alternate(&steps)?;
        all.push(steps);
    }
    if armed != 1 {
        return Err(format!(
            "{armed} roles arm the first turn by an arrival ahead of all that they do: one is to"
        ));
    }
    // By ring, how many of the roles wait for its stages.
    let mut readers: BTreeMap<usize, usize> = BTreeMap::new();
    for side in &all {
        let mut rings = BTreeSet::new();
        rings_of(side, &mut rings);
        for ring in rings {
            *readers.entry(ring).or_default() += 1;
        }
    }
    let mut apart = Vec::new();
    let sides: Vec<&[Step]> = all.iter().map(Vec::as_slice).collect();
    if !alike(&sides, &readers, &mut apart) {
        return Err("roles that take turns wait for stages or take their turns in another order or other loops: each waits for the same, in the same loops".to_owned());
    }
    for (role, (_, events)) in roles.iter().enumerate() {
        if group.contains(&role) {
            continue;
        }
        let mut fills = BTreeSet::new();
        filled(events, &mut fills);
        fills.retain(|ring| readers.contains_key(ring));
        let Some(&ring) = fills.first() else {
            continue;
        };
        let steps = of_rings(&steps(events, None)?, &fills);
        let sides: Vec<Vec<Step>> = all.iter().map(|side| of_rings(side, &fills)).collect();
        let sides: Vec<&[Step]> = sides.iter().map(Vec::as_slice).collect();
        // Stages at one step of different roles are filled by one role, or the steps of these would not stand side by side.
        let whole = |rings: &BTreeSet<usize>| rings.is_subset(&fills) || rings.is_disjoint(&fills);
        if !apart.iter().all(whole) || !follows(&steps, &sides) {
            return Err(format!(
                "the ring `{}` and others are filled in another order than roles that take turns read them",
                entry.rings[ring].name
            ));
        }
    }
    Ok(())
}

/// How many threads.
fn count(threads: Mask) -> u32 {
    threads.list().iter().filter(|t| **t).count() as u32
}

/// Each use of a named barrier among events.
fn named<'e>(events: &'e [Event], found: &mut impl FnMut(&'e Piped)) {
    for event in events {
        match event {
            Event::Piped(p) if matches!(p.what, What::Named { .. }) => found(p),
            Event::If(_, a, b) => {
                named(a, found);
                named(b, found);
            }
            Event::Loop(l) => l.period.iter().for_each(|t| named(&t.events, found)),
            _ => {}
        }
    }
}

/// The rings that a role fills.
fn filled(events: &[Event], rings: &mut BTreeSet<usize>) {
    for event in events {
        match event {
            Event::Piped(p) => {
                if let What::Expect(used, _) = &p.what {
                    rings.insert(used.ring);
                }
            }
            Event::Loop(l) => l.period.iter().for_each(|t| filled(&t.events, rings)),
            _ => {}
        }
    }
}

/// The steps of a role; without turns, of one that takes none.
fn steps(events: &[Event], turns: Option<Turns>) -> Result<Vec<Step>, String> {
    let mut all = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Piped(p) => match &p.what {
                What::Named { id, waits, .. } => all.extend(turns.and_then(|turns| {
                    let (take, pass) = (*id == turns.waits, *id == turns.arrives);
                    match waits {
                        true => take.then_some(Step::Take),
                        false => pass.then_some(Step::Pass),
                    }
                })),
                What::Wait(_, Side::Turn(_) | Side::Products(_)) if turns.is_some() => {
                    return Err("a role takes turns by the mbarriers of a ring as well".to_owned());
                }
                What::Wait(_, Side::Empty) if turns.is_some() => {
                    return Err("a role that takes turns fills stages".to_owned());
                }
                what if turns.is_none() && drains(what, &events[at..]) => {}
                What::Wait(used, Side::Full | Side::Empty) => all.push(Step::Stage(used.ring)),
                _ => {}
            },
            Event::Loop(l) => {
                for turn in &l.period {
                    let within = steps(&turn.events, turns)?;
                    if within.is_empty() {
                        continue;
                    }
                    if l.period.len() > 1 || l.count.is_none() {
                        return Err("turns are taken, or stages waited for, in a loop that does not count its turns from 0 by 1 to its limit".to_owned());
                    }
                    all.push(Step::Turns(l.count, within));
                }
            }
            Event::If(_, a, b) => {
                let (a, b) = (steps(a, turns)?, steps(b, turns)?);
                if !a.is_empty() || !b.is_empty() {
                    return Err(
                        "turns are taken, or stages waited for, under a condition".to_owned()
                    );
                }
            }
            Event::Exit(_) | Event::Leave(_) if turns.is_some() => {
                return Err("a role may leave before its turns are done".to_owned());
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Each turn that is taken is passed on by the next step.
fn alternate(steps: &[Step]) -> Result<(), String> {
    let mut taken = false;
    for step in steps {
        match (step, taken) {
            (Step::Take, false) => taken = true,
            (Step::Pass, true) => taken = false,
            (Step::Pass, false) => return Err("a turn is passed on that was not taken".to_owned()),
            (Step::Take, true) => return Err("a turn is not passed on".to_owned()),
            (_, true) => {
                return Err(
                    "in its turn a role waits for a stage, or runs a loop of turns: it is to wait before its turn".to_owned(),
                );
            }
            (Step::Turns(_, within), false) => alternate(within)?,
            (Step::Stage(_), false) => {}
        }
    }
    if taken {
        return Err("a turn is not passed on".to_owned());
    }
    Ok(())
}

/// Whether roles have the same steps, and wait for the stages of one ring at a step, or each for those of a ring that it reads alone: `apart` gets these.
fn alike(
    sides: &[&[Step]],
    readers: &BTreeMap<usize, usize>,
    apart: &mut Vec<BTreeSet<usize>>,
) -> bool {
    let length = sides[0].len();
    sides.iter().all(|side| side.len() == length)
        && (0..length).all(|at| match &sides[0][at] {
            Step::Take => sides.iter().all(|side| matches!(side[at], Step::Take)),
            Step::Pass => sides.iter().all(|side| matches!(side[at], Step::Pass)),
            Step::Stage(_) => {
                let rings = stages_at(sides, at);
                let different: BTreeSet<usize> = rings.iter().copied().collect();
                let alone = different.iter().all(|ring| readers.get(ring) == Some(&1));
                let each = different.len() == sides.len() && alone;
                if each {
                    apart.push(different.clone());
                }
                rings.len() == sides.len() && (different.len() == 1 || each)
            }
            Step::Turns(count, _) => {
                let within: Vec<&[Step]> = sides
                    .iter()
                    .filter_map(|side| match &side[at] {
                        Step::Turns(other, within) if other == count => Some(&within[..]),
                        _ => None,
                    })
                    .collect();
                within.len() == sides.len() && alike(&within, readers, apart)
            }
        })
}

/// The rings whose stages roles wait for at one step.
fn stages_at(sides: &[&[Step]], at: usize) -> Vec<usize> {
    let ring = |side: &&[Step]| match side.get(at) {
        Some(Step::Stage(ring)) => Some(*ring),
        _ => None,
    };
    sides.iter().filter_map(ring).collect()
}

/// The steps that wait for stages of some rings.
fn of_rings(steps: &[Step], rings: &BTreeSet<usize>) -> Vec<Step> {
    let of = |step: &Step| match step {
        Step::Stage(ring) => rings.contains(ring).then(|| step.clone()),
        Step::Take | Step::Pass => None,
        Step::Turns(count, within) => {
            let within = of_rings(within, rings);
            (!within.is_empty()).then_some(Step::Turns(*count, within))
        }
    };
    steps.iter().filter_map(of).collect()
}

/// The rings whose stages steps wait for.
fn rings_of(steps: &[Step], rings: &mut BTreeSet<usize>) {
    for step in steps {
        match step {
            Step::Stage(ring) => {
                rings.insert(*ring);
            }
            Step::Turns(_, within) => rings_of(within, rings),
            Step::Take | Step::Pass => {}
        }
    }
}

/// Whether stages are filled in the order in which roles wait for them; those that stand at one step of different roles in any order.
fn follows(filled: &[Step], sides: &[&[Step]]) -> bool {
    let mut rest = filled;
    let (length, all) = (sides[0].len(), sides.len());
    if sides.iter().any(|side| side.len() != length) {
        return false;
    }
    for at in 0..length {
        if let Step::Turns(count, _) = &sides[0][at] {
            let Some((Step::Turns(other, within), behind)) = rest.split_first() else {
                return false;
            };
            let sides: Vec<&[Step]> = sides
                .iter()
                .filter_map(|side| match &side[at] {
                    Step::Turns(_, within) => Some(&within[..]),
                    _ => None,
                })
                .collect();
            if other != count || sides.len() != all || !follows(within, &sides) {
                return false;
            }
            rest = behind;
            continue;
        }
        let wanted: BTreeSet<usize> = stages_at(sides, at).into_iter().collect();
        let Some((here, behind)) = rest.split_at_checked(wanted.len()) else {
            return false;
        };
        if stages_in(here) != wanted {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

fn stages_in(steps: &[Step]) -> BTreeSet<usize> {
    let mut rings = BTreeSet::new();
    for step in steps {
        if let Step::Stage(ring) = step {
            rings.insert(*ring);
        }
    }
    rings
}
