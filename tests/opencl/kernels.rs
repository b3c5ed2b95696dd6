//! Kernels that come with Tilewright on an OpenCL device, as they run elsewhere, and what has no form in OpenCL C.

use tilewright::banks::AMD_GCN;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{NormBackward, Problem, RowOperation, Rows, Transposed};
use tilewright::host::{GemmKernel, Inputs, On, PtxKernel, RunOptions, check, run_with};
use tilewright::kernels::gemm::{Config, Gemm, Operands, Schedule, opencl};
use tilewright::kernels::norm::Norm;

use super::left_out;
use super::run::on_device;

/// Runs a problem and compares its outputs; without a form in OpenCL C, the error's code.
fn ran(options: &RunOptions, problem: &dyn Problem, what: &str) -> Result<(), &'static str> {
    let kernel = problem.sequence(Arch(80));
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let inputs = problem.random(3);
    let outcome = run_with(&kernel, On::OpenCl, problem.args(&inputs), options);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) if error.code() == "no_opencl_form" => {
            eprintln!("{what}: {error}");
            return Err(error.code());
        }
        Err(error) => panic!("{what}: {error}"),
    };
    assert_eq!(outcome.clean(), Ok(()), "{what}");
    assert!(outcome.time_ms.is_some() && outcome.launches > 0, "{what}");
    let compared = problem.compare(&inputs, &outcome).expect("outputs");
    assert!(compared.passed(), "{what}: {compared:?}");
    Ok(())
}

#[test]
fn kernels_of_the_layer_run_or_say_why_not() {
    if left_out() {
        return;
    }
    let options = on_device();
    let rows = |operation| Rows::new(operation, Element::F32, 17, 260);
    let transposed = Transposed {
        element: Element::F32,
        rows: 68,
        cols: 132,
    };
    let problems: [(&str, &dyn Problem, bool); 4] = [
        ("transpose", &transposed, true),
        ("softmax", &rows(RowOperation::Softmax), false),
        ("row_sums", &rows(RowOperation::RowSums), false),
        (
            "rms_norm backward",
            &NormBackward::new(Norm::Rms, Element::F32, 33, 256),
            false,
        ),
    ];
    // Sums of rows go through shuffles of a warp, which OpenCL C does not have.
    for (what, problem, has_a_form) in problems {
        assert_eq!(ran(&options, problem, what).is_ok(), has_a_form, "{what}");
    }
}

/// A plan prints its OpenCL C when it is asked to run there; products of tensor cores and PTX text have none.
#[test]
fn plans_run_without_more_and_others_are_refused() {
    if left_out() {
        return;
    }
    let options = RunOptions {
        repeats: 3,
        ..on_device()
    };
    let problem = Gemm::packed(70, 50, 30, Operands::ALL[2]);
    let plan = |name: &str| name.parse::<Config>().expect("a plan");
    let kernel = |name: &str, problem: &Gemm| {
        let plan = plan(name);
        let kernel = GemmKernel::new(plan, problem, Schedule::default(), plan.min_arch());
        kernel.expect("it serves")
    };
    for name in ["sgemm-maxas-64", "dgemm-4x4"] {
        let (kernel, data_type) = (kernel(name, &problem), plan(name).data_type);
        let inputs = Inputs::random(&problem, data_type, 1);
        let args = kernel.args(&inputs).expect("they fit");
        let outcome = run_with(&kernel, On::OpenCl, args, &options).expect("it runs");
        assert_eq!(outcome.clean(), Ok(()), "{name}");
        let c = kernel.result(&inputs, &outcome).expect("C");
        let check = check(&problem, data_type, &inputs, &c).expect("shapes agree");
        assert!(check.passed, "{name}: {check:?}");
    }
    let problem = Gemm::packed(64, 64, 64, Operands::ALL[0]);
    let kernel = kernel("mma-f16-64x64x32", &problem);
    let inputs = Inputs::random(&problem, plan("mma-f16-64x64x32").data_type, 1);
    let args = kernel.args(&inputs).expect("they fit");
    let error = run_with(&kernel, On::OpenCl, args, &options).expect_err("tensor cores");
    assert_eq!(error.code(), "no_opencl_form");
    assert!(
        error.to_string().contains("has no OpenCL C form"),
        "{error}"
    );

    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }";
    let nothing = PtxKernel::new(text, "nothing").expect("an entry");
    let error = run_with(&nothing, On::OpenCl, [], &options).expect_err("PTX");
    assert_eq!(error.code(), "no_opencl_form");

    // And the other way round.
    let emitted = opencl::emit(&plan("sgemm-maxas-64").kernel(), problem.operands, &AMD_GCN);
    let emitted = emitted.expect("it has a form");
    let kernel = GemmKernel::opencl(&plan("sgemm-maxas-64").kernel(), &emitted, &problem);
    let kernel = kernel.expect("it serves");
    let inputs = Inputs::random(&problem, plan("sgemm-maxas-64").data_type, 1);
    let args = kernel.args(&inputs).expect("they fit");
    let error = run_with(&kernel, On::Emulator, args, &options).expect_err("no PTX");
    assert_eq!(error.code(), "invalid_text");
    assert!(error.to_string().contains("On::OpenCl"), "{error}");
}
