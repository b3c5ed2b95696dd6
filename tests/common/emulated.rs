//! A problem on the emulator, with every check on.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tilewright::emulator::Options;
use tilewright::host::{EmulatedRun, Inputs, check, emulate};
use tilewright::kernels::gemm::{Emitted, Specialized};

use super::mma::Case;

/// Everything that the sanitizer can look for.
pub(crate) fn strict() -> Options {
    Options {
        global_races: true,
        undefined_global: true,
        ..Options::default()
    }
}

/// Kernels by the name of their entry and the number of parts.
type Kernels = HashMap<(String, u32), Arc<Emitted>>;

/// The kernel of a plan that is adapted to a case, emitted and proven once for all cases that it serves: sizes, factors and numbers are parameters of the launch.
/// What makes another kernel is in the name of its entry, but for the number of parts, which is in a comment of the text.
fn emitted(plan: &Specialized, case: &Case, what: &str) -> Arc<Emitted> {
    static KERNELS: LazyLock<Mutex<Kernels>> = LazyLock::new(Mutex::default);
    let kernels = || KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    let operands = case.problem.operands;
    let key = (plan.entry_name(operands), case.schedule.split);
    if let Some(kernel) = kernels().get(&key) {
        return Arc::clone(kernel);
    }
    // Without the lock, so that other tests go on.
    let kernel = plan.emit(operands, plan.min_arch());
    let kernel = Arc::new(kernel.unwrap_or_else(|e| panic!("{what}: {e}")));
    kernels().insert(key, Arc::clone(&kernel));
    kernel
}

/// Runs a plan that is adapted to a problem: no finding, and the wavefronts that were proven.
pub(crate) fn emulated(plan: &Specialized, case: &Case, inputs: &Inputs) -> EmulatedRun {
    let what = format!("{}, {case:?}", plan.name());
    let kernel = emitted(plan, case, &what);
    run(plan, &kernel, case, inputs)
}

/// Runs a kernel of a plan: no finding, and the wavefronts that were proven.
pub(crate) fn run(
    plan: &Specialized,
    kernel: &Emitted,
    case: &Case,
    inputs: &Inputs,
) -> EmulatedRun {
    let (problem, what) = (&case.problem, format!("{}, {case:?}", plan.name()));
    let run =
        emulate(plan, kernel, problem, inputs, &strict()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let Some(report) = &run.report else {
        assert_eq!(problem.m * problem.n, 0, "{what}: nothing was launched");
        return run;
    };
    assert!(report.is_clean(), "{what}: {}", report.findings[0]);
    if let Some(reason) = not_as_proven(kernel, &run) {
        panic!("{what}: {reason}");
    }
    run
}

/// The first access that took other wavefronts than were proven for it.
pub(crate) fn not_as_proven(kernel: &Emitted, run: &EmulatedRun) -> Option<String> {
    assert_eq!(run.accesses.len(), kernel.proof.accesses.len());
    let mut accesses = kernel.proof.accesses.iter().zip(&run.accesses);
    accesses.find_map(|(proven, counted)| {
        let expected = (proven.wavefronts, proven.wavefronts);
        let counted = counted.wavefronts.filter(|&counted| counted != expected)?;
        Some(format!(
            "{} took {counted:?} wavefronts, and {} are proven",
            proven.access, proven.wavefronts
        ))
    })
}

/// Numbers and gaps, with the operands that the reference sees.
pub(crate) fn assert_right(plan: &Specialized, case: &Case, inputs: &Inputs, run: &EmulatedRun) {
    let check = check(&case.problem, plan.data_type, inputs, &run.c).expect("shapes agree");
    assert!(check.passed, "{}, {case:?}: {check:?}", plan.name());
}
