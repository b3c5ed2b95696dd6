//! What holds of a plan's kernels, with the evidence.
//!
//! Two things are proven. The prover of the representation ([`layout_codegen::prove`]) says what holds of each kernel that is printed: addresses, bounds, order, what is
//! written, what accesses cost. What it cannot see is what the numbers mean: that a thread multiplies the elements which its sums need. That follows from the
//! kernel's layouts, and is claimed of them ([`Specialized::claims`](super::Specialized::claims)) and compared value by value.

use std::fmt;

use layout_codegen::prove::{AccessProof, Assumed, KernelProof};
use layout_core::proof::bijective;
use layout_core::{Layout, Swizzled};

/// One statement that holds, with its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obligation {
    /// What is meant, in a few words.
    pub name: String,
    /// Why it holds: what was checked, with the numbers.
    pub evidence: String,
}

/// Everything proven of a plan's kernels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proof {
    /// What holds of the plan's layouts, and of each kernel.
    pub obligations: Vec<Obligation>,
    /// The wavefronts of each shared access.
    pub accesses: Vec<AccessProof>,
    /// What the author of an epilogue's function states, which the proof takes as facts. A plan's launch does not check them: the host program does.
    pub assumptions: Vec<Assumed>,
}

impl Proof {
    /// Adds what was proven of a kernel.
    pub(crate) fn add(&mut self, kernel: &str, proof: &KernelProof) {
        let mut holds = |what: &str, evidence: String| {
            self.obligations.push(Obligation {
                name: format!("{kernel}: {what}"),
                evidence,
            });
        };
        holds(
            "each access is where its layout says, aligned, and inside its buffer",
            format!(
                "{} accesses, each for all threads, iterations and sizes",
                proof.addresses
            ),
        );
        if !proof.shared.is_empty() {
            holds(
                "shared memory has no race, and each read finds the tile that it expects",
                format!("{} states on all paths", proof.states),
            );
        }
        for output in &proof.covered {
            holds(
                &format!("the grid writes each element of {output} exactly once"),
                "each element of a tile, in each case of where the tile begins".to_owned(),
            );
        }
        for stated in &proof.assumptions {
            holds(
                &format!("assumed: {}", stated.condition),
                format!("stated by the author, not proven: {}", stated.reason),
            );
        }
        for stated in &proof.assumptions {
            let stated = Assumed {
                checked: false,
                ..stated.clone()
            };
            if !self.assumptions.contains(&stated) {
                self.assumptions.push(stated);
            }
        }
        for access in &proof.shared {
            if self.accesses.iter().all(|a| a.access != access.access) {
                self.accesses.push(access.clone());
            }
        }
    }
}

/// An obligation that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The obligation.
    pub obligation: String,
    /// The counterexample.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the plan is not emitted, because this does not hold: {}. {}",
            self.obligation, self.reason
        )
    }
}

impl std::error::Error for Refusal {}

/// A claim: a thread's read of a stage fetches what its sums need, value by value.
pub(crate) fn fetches_what_is_needed(
    read: &str,
    (fetched, needed): &(Layout, Layout),
) -> Result<Obligation, Refusal> {
    let name = format!("{read} fetches the elements that the thread's accumulators need");
    if let Some(i) = (0..fetched.size()).find(|&i| fetched.index(i) != needed.index(i)) {
        let (got, wanted) = (fetched.index(i), needed.index(i));
        return Err(Refusal {
            obligation: name,
            reason: format!("at {i} byte {got} is fetched and byte {wanted} is needed"),
        });
    }
    let evidence = format!("{fetched} = {needed} at all {} coordinates", fetched.size());
    Ok(Obligation { name, evidence })
}

/// The claim that a map takes its domain to `0..n`, each element exactly once.
pub(crate) fn one_to_one(name: &str, map: &Swizzled, n: i64) -> Result<Obligation, Refusal> {
    let refuse = |reason: String| Refusal {
        obligation: name.to_owned(),
        reason,
    };
    if map.size() != n {
        let size = map.size();
        return Err(refuse(format!(
            "{map} has {size} coordinates for {n} elements"
        )));
    }
    bijective(map).map_err(|e| refuse(e.to_string()))?;
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!("{map} is a bijection onto 0..{n}"),
    })
}
