//! Roles use several rings in one order, so that none waits for a stage of one ring while the role that it waits for waits for a stage of another.
//!
//! ```text
//! producer    fill q(0), fill k(0), for j { fill k(j + 1), fill v(j) }, fill v(n)          the sequence: q(0), k(0), k(1), v(0), k(2), v(1), …
//! consumer    wait q(0), wait k(0), for j { wait k(j + 1), wait v(j) }, wait v(n)          the same
//! ```
//!
//! Let all roles use stages in one sequence. To fill use i of a ring takes the arrivals in an earlier use of that ring. A consumer arrives in a use before it waits for the
//! next one of the ring, so before use i: all that its waits up to there need is earlier in the sequence. By induction along the sequence nobody waits forever, however
//! long a stage is held.
//!
//! In one iteration of a loop the order may differ, if both rings are used there once: a role that fills waits for arrivals of earlier iterations, and a consumer releases what it
//! read in the same iteration. The induction is then along the iterations.

use super::{Protocol, drains};
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::Event;
use crate::prove::walk::hopper::What;

use crate::ir::Side;

/// A step of a role.
#[derive(PartialEq)]
enum Step {
    /// It waits for a stage of a ring.
    Use(usize),
    /// Steps in a loop, so many times.
    Repeat(Option<Lin>, Vec<Step>),
}

/// Whether roles that use both of two rings do so in one order: what each has found of them, and its events.
pub(super) fn in_one_order(
    rings: [usize; 2],
    roles: &[([Protocol; 2], &[Event])],
) -> Result<bool, String> {
    let in_same_iterations = |[a, b]: &[Protocol; 2]| match (&a.places[..], &b.places[..]) {
        ([a], [b]) => a.loops == b.loops && !a.loops.is_empty(),
        _ => false,
    };
    let mut all = Vec::new();
    for (_, events) in roles {
        let mut drained = false;
        all.push(steps(events, rings, &mut drained)?);
    }
    let same = all.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(same || roles.iter().all(|(found, _)| in_same_iterations(found)))
}

/// The steps of a role. `drained` says whether stages were waited for that nothing fills: behind such a wait none is filled.
fn steps(events: &[Event], rings: [usize; 2], drained: &mut bool) -> Result<Vec<Step>, String> {
    let mut all = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Piped(p) => match &p.what {
                What::Wait(used, Side::Full | Side::Empty) if rings.contains(&used.ring) => {
                    if drains(&p.what, &events[at..]) {
                        *drained = true;
                        continue;
                    }
                    if *drained {
                        return Err("a role waits until the stages of a ring are empty before it has filled those of another: roles could wait for each other forever".to_owned());
                    }
                    all.push(Step::Use(used.ring));
                }
                _ => {}
            },
            Event::Loop(l) => {
                for iteration in &l.period {
                    let within = steps(&iteration.events, rings, drained)?;
                    if !within.is_empty() {
                        all.push(Step::Repeat(l.count, within));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(all)
}
