//! Named barriers: barriers of some threads of the block, in roles.
//!
//! Two uses of a barrier are accepted, and told from each other by who arrives:
//!
//! ```text
//! of a role          all threads of one role wait at it, as many as it counts, and no other threads arrive      orders their accesses of shared memory
//! order barriers     role r waits at barrier r, role r − 1 arrives there without waiting; it counts both         a ping-pong schedule
//! ```
//!
//! With R roles, role r enters its section t after role r − 1 has left section t, and role 0 after role R − 1 has left section t − 1. The last role arrives once at barrier 0 before
//! everything else, so that role 0 enters its first section:
//!
//! ```text
//! role r       wait at r, …, arrive at r + 1 mod R          each section
//! role R − 1   arrive at 0                                  once, at the start
//! ```
//!
//! **No arrival is counted in another phase.** All threads of role r wait at barrier r, so each of its phases has one wait of the whole role and one arrival of every thread of role
//! r − 1. The next arrival of role r − 1 comes after its own next wait. Through all roles, that wait requires that role r has arrived once more, which it does after its wait. So one wait
//! of role r lies between two arrivals of role r − 1, and phase t of each barrier is section t. One arrival is left over at the end. Nobody waits for it.
//!
//! **No deadlock.** All roles of such a group have the same sequence of steps: waits for stages of rings, loops with the same counts, and sections. Within a section a role waits for
//! nothing else. Roles that have a ring each, such as their queries, wait for these rings at one step. The roles that fill rings fill them in the order of this sequence. So each wait
//! requires only earlier steps, or the same step of a role with a smaller number: section t of role r requires that of role r − 1 at the same step, section t of role 0 an earlier step. A full
//! stage requires fills up to that step, which require releases of earlier iterations (see [`ring`](crate::prove::protocol::ring)). In a cluster, a role that fills waits at its end until the last stages are
//! released. It fills nothing after that, so this wait is not a step.
//!
//! The proof does not use order barriers to order memory accesses: MMAs of a section may be in flight after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Entry, Side};
use crate::prove::ProofError;
use crate::prove::algebra::numbers::Mask;
use crate::prove::algebra::value::Lin;
use crate::prove::protocol::ring::drains;
use crate::prove::walk::execute::{Event, Trace};
use crate::prove::walk::hopper::{Piped, What};

/// Named barriers are numbered from 1 to this.
const LAST: u32 = 15;

/// A step of a role.
#[derive(Clone, Debug)]
enum Step {
    /// It waits for a stage of a ring.
    Stage(usize),
    /// It waits at its order barrier.
    Enter,
    /// It arrives at the order barrier of the next role.
    Leave,
    /// A loop of so many iterations.
    Loop(Option<Lin>, Vec<Step>),
}

/// Who is at a barrier.
#[derive(Default)]
struct Users {
    waits: BTreeSet<usize>,
    arrives: BTreeSet<usize>,
    counts: BTreeSet<u32>,
}

/// The order barriers at which a role waits and arrives.
#[derive(Clone, Copy)]
struct Order {
    waits: u32,
    arrives: u32,
}

/// Named barriers are those of single roles, or order barriers of groups of roles.
pub(in crate::prove) fn kept(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
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
        return Err("one is used before the first role".to_owned());
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
    // By role, its order barriers; by role, the barrier at which it waits, and the one at which it arrives.
    let mut orders: BTreeMap<usize, Order> = BTreeMap::new();
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
                    return Err("a role has several order barriers".to_owned());
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
            return Err("a role waits at an order barrier, and arrives at none".to_owned());
        };
        orders.insert(role, Order { waits, arrives });
    }
    if arrives.len() != orders.len() {
        return Err("a role arrives at an order barrier, and waits at none".to_owned());
    }
    let mut left: BTreeSet<usize> = orders.keys().copied().collect();
    while let Some(&first) = left.first() {
        let mut group = vec![first];
        loop {
            let last = group[group.len() - 1];
            left.remove(&last);
            let next = waits.iter().find(|(_, id)| **id == orders[&last].arrives);
            match next {
                Some((&next, _)) if next == first => break,
                Some((&next, _)) if left.contains(&next) => group.push(next),
                _ => return Err("the roles of an order barrier form no cycle: each arrives at the barrier of the next one, the last at that of the first".to_owned()),
            }
        }
        in_sections(entry, roles, &orders, &group)?;
    }
    Ok(())
}

/// The roles of an order barrier keep to the protocol.
fn in_sections(
    entry: &Entry,
    roles: &[(Mask, Vec<Event>)],
    orders: &BTreeMap<usize, Order>,
    group: &[usize],
) -> Result<(), String> {
    let mut all = Vec::new();
    let mut armed = 0;
    for role in group {
        let mut steps = steps(&roles[*role].1, Some(orders[role]))?;
        // One role arrives before everything else, for the first section.
        if matches!(steps.first(), Some(Step::Leave)) {
            steps.remove(0);
            armed += 1;
        }
        alternate(&steps)?;
        all.push(steps);
    }
    if armed != 1 {
        return Err(format!(
            "{armed} roles arrive at an order barrier before everything else, and one has to: without it all wait forever"
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
        return Err("the roles of an order barrier wait for stages, or at their barriers, in different orders or loops: all need the same order in the same loops".to_owned());
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
        // Stages that different roles wait for at one step are filled by one role.
        let whole = |rings: &BTreeSet<usize>| rings.is_subset(&fills) || rings.is_disjoint(&fills);
        if !apart.iter().all(whole) || !follows(&steps, &sides) {
            return Err(format!(
                "the ring `{}` and others are filled in a different order than the roles of an order barrier read them",
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

/// The steps of a role, with its order barriers if it has some.
fn steps(events: &[Event], order: Option<Order>) -> Result<Vec<Step>, String> {
    let mut all = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Piped(p) => match &p.what {
                What::Named { id, waits, .. } => all.extend(order.and_then(|order| {
                    let (enter, leave) = (*id == order.waits, *id == order.arrives);
                    match waits {
                        true => enter.then_some(Step::Enter),
                        false => leave.then_some(Step::Leave),
                    }
                })),
                What::Wait(_, Side::Order(_) | Side::Complete(_)) if order.is_some() => {
                    return Err("a role has an order barrier and a ring with a ping-pong schedule: use one of them".to_owned());
                }
                What::Wait(_, Side::Empty) if order.is_some() => {
                    return Err("a role of an order barrier fills stages".to_owned());
                }
                what if order.is_none() && drains(what, &events[at..]) => {}
                What::Wait(used, Side::Full | Side::Empty) => all.push(Step::Stage(used.ring)),
                _ => {}
            },
            Event::Loop(l) => {
                for iteration in &l.period {
                    let within = steps(&iteration.events, order)?;
                    if within.is_empty() {
                        continue;
                    }
                    if l.period.len() > 1 || l.count.is_none() {
                        return Err("an order barrier, or a wait for a stage, is in a loop that does not count from 0 by 1 to its limit".to_owned());
                    }
                    all.push(Step::Loop(l.count, within));
                }
            }
            Event::If(_, a, b) => {
                let (a, b) = (steps(a, order)?, steps(b, order)?);
                if !a.is_empty() || !b.is_empty() {
                    return Err(
                        "an order barrier, or a wait for a stage, is under a condition".to_owned(),
                    );
                }
            }
            Event::Exit(_) | Event::Leave(_) if order.is_some() => {
                return Err("a role may exit before its last section".to_owned());
            }
            _ => {}
        }
    }
    Ok(all)
}

const STAYS: &str = "a role waits at its order barrier, and does not arrive at the next one before it waits again or ends";

/// After its order barrier a role arrives at the next one, without a step between.
fn alternate(steps: &[Step]) -> Result<(), String> {
    let mut within_section = false;
    for step in steps {
        match (step, within_section) {
            (Step::Enter, false) => within_section = true,
            (Step::Leave, true) => within_section = false,
            (Step::Leave, false) => {
                return Err(
                    "a role arrives at the next order barrier without a wait at its own".to_owned(),
                );
            }
            (Step::Enter, true) => return Err(STAYS.to_owned()),
            (_, true) => {
                return Err(
                    "within its section a role waits for a stage, or runs a loop with order barriers: wait for stages before `in_order`".to_owned(),
                );
            }
            (Step::Loop(_, within), false) => alternate(within)?,
            (Step::Stage(_), false) => {}
        }
    }
    if within_section {
        return Err(STAYS.to_owned());
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
            Step::Enter => sides.iter().all(|side| matches!(side[at], Step::Enter)),
            Step::Leave => sides.iter().all(|side| matches!(side[at], Step::Leave)),
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
            Step::Loop(count, _) => {
                let within: Vec<&[Step]> = sides
                    .iter()
                    .filter_map(|side| match &side[at] {
                        Step::Loop(other, within) if other == count => Some(&within[..]),
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
        Step::Enter | Step::Leave => None,
        Step::Loop(count, within) => {
            let within = of_rings(within, rings);
            (!within.is_empty()).then_some(Step::Loop(*count, within))
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
            Step::Loop(_, within) => rings_of(within, rings),
            Step::Enter | Step::Leave => {}
        }
    }
}

/// Whether stages are filled in the order in which roles wait for them. Stages that different roles wait for at one step are filled in any order.
fn follows(filled: &[Step], sides: &[&[Step]]) -> bool {
    let mut rest = filled;
    let (length, all) = (sides[0].len(), sides.len());
    if sides.iter().any(|side| side.len() != length) {
        return false;
    }
    for at in 0..length {
        if let Step::Loop(count, _) = &sides[0][at] {
            let Some((Step::Loop(other, within), behind)) = rest.split_first() else {
                return false;
            };
            let sides: Vec<&[Step]> = sides
                .iter()
                .filter_map(|side| match &side[at] {
                    Step::Loop(_, within) => Some(&within[..]),
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
