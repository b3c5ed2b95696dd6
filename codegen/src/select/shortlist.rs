//! Which candidates are worth measuring.

use super::Candidate;

/// Splits of a plan, packed and unpacked separately.
const SPLITS_EACH: usize = 2;

/// The candidates to measure of a problem, at most `top` of them, those with the best estimates first: of each plan, packed and unpacked, the two best splits, and, if there is room for two, the best
/// of those that pack operands and the best of those that do not. Of 1,197 random products (`tests/selection.rs`) the ten that this leaves have one that reaches 0.95 of the fastest in each.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::gemm::{DataType, Gemm, Operands};
/// use layout_codegen::select::{Machine, candidates, shortlist};
///
/// // Rows of 277 halves: to pack them takes time, and to copy them as they lie takes more instructions.
/// let odd = Gemm::packed(277, 241, 25209, "tn".parse::<Operands>()?);
/// let all = candidates(DataType::F16, &odd, Arch(90), &Machine::for_arch(Arch(90)))?;
/// let some = shortlist(all, 10);
/// assert_eq!(some.len(), 10);
/// assert!(some[0].schedule.pack && some.iter().any(|c| !c.schedule.pack));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shortlist(mut candidates: Vec<Candidate>, top: usize) -> Vec<Candidate> {
    candidates.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    let mut seen: Vec<(String, bool)> = Vec::new();
    candidates.retain(|c| {
        let way = (c.plan.name(), c.schedule.pack);
        let before = seen.iter().filter(|other| **other == way).count();
        seen.push(way);
        before < SPLITS_EACH
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
