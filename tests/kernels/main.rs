//! The kernels that come with Tilewright: clean, right and counted as proven over ragged sizes; NaN and infinities as their pages say; quick to prove.

mod attention;
mod cross_entropy;
mod gemv;
mod grouped;
mod norm_backward;
mod rows;
mod transpose;

use tilewright::host::kernels::{Compared, Problem};
use tilewright::host::{Matrix, On, Outcome, run};

/// Runs a problem on the emulator: clean, every access counted as proven, and within what rounding allows.
fn right(problem: &dyn Problem, inputs: &[Matrix], what: &str) -> Outcome {
    let (outcome, compared) = ran(problem, inputs, what);
    assert!(compared.passed(), "{what}: {compared:?}");
    outcome
}

/// Runs a problem on the emulator, clean, and compares it with the reference.
fn ran(problem: &dyn Problem, inputs: &[Matrix], what: &str) -> (Outcome, Compared) {
    let kernel = problem.sequence(problem.least_arch());
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let outcome = run(&kernel, On::Emulator, problem.args(inputs));
    let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
    let findings = outcome.findings();
    assert!(findings.is_empty(), "{what}: {findings:?}");
    let compared = problem.compare(inputs, &outcome).expect("the outputs");
    (outcome, compared)
}
