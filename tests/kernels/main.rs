//! The kernels that come with Tilewright: clean, right and counted as proven over ragged sizes; NaN and infinities as their pages say; quick to prove.

mod attention;
mod block_scaled;
mod cross_entropy;
mod experts;
mod gemv;
mod grouped;
mod norm_backward;
mod quantized;
mod rows;
mod transpose;
mod weight_only;

use tilewright::codegen::Arch;
use tilewright::host::kernels::{Compared, Problem};
use tilewright::host::{Matrix, On, Outcome, run};

/// Runs a problem on the emulator by the kernel for the first architecture that has one: clean, every access counted as proven, and within what rounding allows.
fn right(problem: &dyn Problem, inputs: &[Matrix], what: &str) -> Outcome {
    right_for(problem.least_arch(), problem, inputs, what)
}

/// The same by the kernel for an architecture.
fn right_for(arch: Arch, problem: &dyn Problem, inputs: &[Matrix], what: &str) -> Outcome {
    let (outcome, compared) = ran_for(arch, problem, inputs, what);
    assert!(compared.passed(), "{what}: {compared:?}");
    outcome
}

/// Runs a problem on the emulator, clean, and compares it with the reference.
fn ran(problem: &dyn Problem, inputs: &[Matrix], what: &str) -> (Outcome, Compared) {
    ran_for(problem.least_arch(), problem, inputs, what)
}

fn ran_for(
    arch: Arch,
    problem: &dyn Problem,
    inputs: &[Matrix],
    what: &str,
) -> (Outcome, Compared) {
    let kernel = problem.sequence(arch);
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let outcome = run(&kernel, On::Emulator, problem.args(inputs));
    let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
    let findings = outcome.findings();
    assert!(findings.is_empty(), "{what}: {findings:?}");
    let compared = problem.compare(inputs, &outcome).expect("the outputs");
    (outcome, compared)
}
