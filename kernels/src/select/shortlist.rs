//! Which candidates are worth measuring.

use super::Candidate;
use crate::gemm::Config;

/// The candidates to measure of a problem, those with the best estimates first: at most `splits` splits of each plan, packed and unpacked separately, and at most `top` in all. If `top` is 2 or
/// more and all of them pack operands, or none does, the last one makes room for the best of the other kind.
///
/// For each of 1,197 random products measured on an H100, one of the ten candidates that two splits leave reaches 0.94 of the fastest (`tests/selection.rs`).
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::gemm::{DataType, Gemm, Operands};
/// use tilewright_kernels::select::{Machine, candidates, shortlist};
///
/// // Rows of 277 halves: packing them takes time, and copying them as they lie takes more instructions.
/// let odd = Gemm::packed(277, 241, 25209, "tn".parse::<Operands>()?);
/// let all = candidates(DataType::F16, &odd, Arch(90), &Machine::for_arch(Arch(90)))?;
/// let some = shortlist(all, 2, 10);
/// assert_eq!(some.len(), 10);
/// assert!(some[0].schedule.pack && some.iter().any(|c| !c.schedule.pack));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shortlist(mut candidates: Vec<Candidate>, splits: usize, top: usize) -> Vec<Candidate> {
    candidates.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    let mut seen: Vec<(Config, bool)> = Vec::new();
    candidates.retain(|c| {
        let way = (c.config, c.schedule.pack);
        let before = seen.iter().filter(|other| **other == way).count();
        seen.push(way);
        before < splits
    });
    let rest = candidates.split_off(top.min(candidates.len()));
    if let (Some(first), true) = (candidates.first(), top >= 2) {
        let pack = first.schedule.pack;
        let all_alike = candidates.iter().all(|c| c.schedule.pack == pack);
        let other = rest.into_iter().find(|c| c.schedule.pack != pack);
        if let (Some(other), true) = (other, all_alike) {
            candidates.truncate(top - 1);
            candidates.push(other);
        }
    }
    candidates
}
