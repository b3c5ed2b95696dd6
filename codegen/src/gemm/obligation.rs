//! What a kernel relies on, and the evidence that it holds.
//!
//! An obligation is discharged for *all* threads, passes and stages at once or the plan is refused: there is no sampling.
//! Plans are small finite objects, so walking a whole domain is a proof; what the rest of the kernel adds to an address
//! (tile, stage, loop) only translates it by a multiple of all 32 banks or xors a constant in, which no wavefront count sees.

use std::fmt;

use layout_core::Swizzled;
use layout_core::banks::{self, Access, LANES, NVIDIA};

use crate::prove::AccessProof;

/// One statement that holds, with its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obligation {
    /// What is meant, in a few words.
    pub name: String,
    /// Why it holds: what was checked, with the numbers.
    pub evidence: String,
}

/// Everything proven of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proof {
    /// Coverage, ownership, meeting of stores and reads.
    pub obligations: Vec<Obligation>,
    /// Bank conflicts.
    pub accesses: Vec<AccessProof>,
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

/// `map` takes its domain to `0..n`, each element exactly once.
///
/// # Errors
///
/// An element that is missed, hit twice or outside.
pub fn prove_bijection(name: &str, map: &Swizzled, n: i64) -> Result<Obligation, Refusal> {
    let refuse = |reason: String| {
        Err(Refusal {
            obligation: name.to_owned(),
            reason,
        })
    };
    if map.size() != n {
        return refuse(format!(
            "{map} has {} coordinates for {n} elements",
            map.size()
        ));
    }
    let mut owner: Vec<Option<i64>> = vec![None; n as usize];
    for i in 0..n {
        let x = map.index(i);
        let Some(slot) = usize::try_from(x).ok().and_then(|x| owner.get_mut(x)) else {
            return refuse(format!("coordinate {i} of {map} gives {x}, outside 0..{n}"));
        };
        if let Some(other) = slot.replace(i) {
            return refuse(format!(
                "coordinates {other} and {i} of {map} both give {x}"
            ));
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!("{map} is a bijection onto 0..{n}"),
    })
}

/// `a` and `b` are the same function on `0..n`.
///
/// # Errors
///
/// The first place where they differ.
pub fn prove_equal(name: &str, a: &Swizzled, b: &Swizzled, n: i64) -> Result<Obligation, Refusal> {
    for i in 0..n {
        if a.index(i) != b.index(i) {
            let reason = format!(
                "at {i}, {a} gives {} and {b} gives {}",
                a.index(i),
                b.index(i)
            );
            return Err(Refusal {
                obligation: name.to_owned(),
                reason,
            });
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!("{a} = {b} at all {n} coordinates"),
    })
}

/// The wavefronts of a shared access whose byte address is `map(lane + 32·rest)`, the same for every `rest`.
///
/// # Errors
///
/// A misaligned address, or executions that cost differently.
pub fn prove_access(access: &str, op: Access, map: &Swizzled) -> Result<AccessProof, Refusal> {
    let refuse = |reason: String| Refusal {
        obligation: format!("wavefronts of {access}"),
        reason,
    };
    let mut proven: Option<(u32, u32)> = None;
    for rest in 0..(map.size() / LANES as i64).max(1) {
        let addresses = std::array::from_fn(|lane| map.index(lane as i64 + rest * LANES as i64));
        let w = banks::wavefronts(&NVIDIA, op, &addresses).map_err(|e| refuse(e.to_string()))?;
        match proven {
            None => proven = Some((w.wavefronts, w.ideal)),
            Some((first, _)) if first != w.wavefronts => {
                return Err(refuse(format!(
                    "the first warp takes {first} wavefronts and another {}",
                    w.wavefronts
                )));
            }
            Some(_) => {}
        }
    }
    let (wavefronts, ideal) = proven.ok_or_else(|| refuse("no lanes".to_owned()))?;
    Ok(AccessProof {
        access: access.to_owned(),
        op,
        wavefronts,
        ideal,
    })
}
