//! A problem on the emulator, with every check on.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tilewright::emulator::Options;
use tilewright::host::{
    GemmKernel, Inputs, Matrix, On, Outcome, RunError, RunOptions, check, run_with,
};
use tilewright::kernels::gemm::{Emitted, Gemm, Specialized};

use super::mma::Case;

/// Everything that the sanitizer can look for.
pub(crate) fn strict() -> Options {
    RunOptions::default().emulator
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

/// What a run of a plan did, and its C.
pub(crate) struct Product {
    pub(crate) outcome: Outcome,
    pub(crate) c: Matrix,
}

/// Runs a kernel of a plan on the emulator.
pub(crate) fn product(
    (plan, kernel): (&Specialized, &Emitted),
    (problem, inputs): (&Gemm, &Inputs),
    options: Options,
) -> Result<Product, RunError> {
    let kernel = GemmKernel::emitted(plan, kernel, problem)?;
    let options = RunOptions {
        emulator: options,
        ..RunOptions::default()
    };
    let outcome = run_with(&kernel, On::Emulator, kernel.args(inputs)?, &options)?;
    let c = kernel.result(inputs, &outcome).expect("it has a C");
    Ok(Product { outcome, c })
}

/// Runs a plan that is adapted to a problem: no finding, and the wavefronts that were proven.
pub(crate) fn emulated(plan: &Specialized, case: &Case, inputs: &Inputs) -> Product {
    let what = format!("{}, {case:?}", plan.name());
    let kernel = emitted(plan, case, &what);
    run(plan, &kernel, case, inputs)
}

/// Runs a kernel of a plan: no finding, and the wavefronts that were proven.
pub(crate) fn run(plan: &Specialized, kernel: &Emitted, case: &Case, inputs: &Inputs) -> Product {
    let (problem, what) = (&case.problem, format!("{}, {case:?}", plan.name()));
    let run = product((plan, kernel), (problem, inputs), strict());
    let run = run.unwrap_or_else(|e| panic!("{what}: {e}"));
    if run.outcome.report.is_none() {
        assert_eq!(problem.m * problem.n, 0, "{what}: nothing was launched");
        return run;
    }
    assert_eq!(run.outcome.clean(), Ok(()), "{what}");
    if let Some(reason) = not_as_proven(&run.outcome) {
        panic!("{what}: {reason}");
    }
    run
}

/// The first access that took other wavefronts than were proven for it.
pub(crate) fn not_as_proven(outcome: &Outcome) -> Option<String> {
    outcome.accesses.iter().find_map(|access| {
        let proven = access.proof.wavefronts;
        let counted = access.wavefronts.filter(|c| *c != (proven, proven))?;
        Some(format!(
            "{} took {counted:?} wavefronts, and {proven} are proven",
            access.proof.access
        ))
    })
}

/// Numbers and gaps, with the operands that the reference sees.
pub(crate) fn assert_right(plan: &Specialized, case: &Case, inputs: &Inputs, run: &Product) {
    let check = check(&case.problem, plan.data_type, inputs, &run.c).expect("shapes agree");
    assert!(check.passed, "{}, {case:?}: {check:?}", plan.name());
}
