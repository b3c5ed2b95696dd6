//! `host::run` on a GPU. Without a GPU this says so and runs nothing.

mod common;
#[path = "common/iota.rs"]
mod iota;

use iota::{assert_timed, iota};
use tilewright::codegen::Arch;
use tilewright::gpu::Gpu;
use tilewright::host::{Arg, GemmKernel, Inputs, On, RunOptions, check, run, run_with};
use tilewright::kernels::gemm::{Config, DataType, Gemm, Operands, Schedule};

/// Whether there is a GPU; says so if there is none.
fn gpu() -> bool {
    match Gpu::open(0) {
        Ok(_) => true,
        Err(error) if error.means_no_gpu() => {
            common::say(&format!("no GPU: not run ({error})"));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_kernel_runs_and_is_timed() {
    if !gpu() {
        return;
    }
    for on in [On::Gpu, On::Auto] {
        let outcome = run(&iota(), on, [("out", Arg::output::<u32>(32))]).expect("it runs");
        assert_timed(&outcome);
        let error = outcome.counted_as_proven().expect_err("nothing is counted");
        assert!(
            error.to_string().contains("a GPU counts no wavefronts"),
            "{error}"
        );
    }
    let options = RunOptions {
        repeats: 5,
        ..RunOptions::default()
    };
    let args = [("out", Arg::output::<u32>(40))];
    let outcome = run_with(&iota(), On::Gpu, args, &options).expect("it runs");
    // What the kernel does not write is all bits set.
    assert_eq!(
        outcome.get::<u32>("out").expect("u32")[31..34],
        [31, u32::MAX, u32::MAX]
    );
}

#[test]
fn a_write_beside_a_buffer_shows() {
    if !gpu() {
        return;
    }
    for alignment in [4, 8, 256] {
        let args = [("out", Arg::output::<u32>(31).aligned_to(alignment))];
        let outcome = run(&iota(), On::Gpu, args).expect("it runs");
        let error = outcome
            .clean()
            .expect_err("it wrote one word too many")
            .to_string();
        assert_eq!(error, "`iota` on the GPU: wrote beside the buffer `out`");
    }
    let outcome = run(&iota(), On::Gpu, [("out", Arg::input(&[0_u32; 32]))]).expect("it runs");
    let error = outcome
        .clean()
        .expect_err("it changed an input")
        .to_string();
    assert_eq!(error, "`iota` on the GPU: changed the input `out`");
}

#[test]
fn a_plan_gives_the_same_on_both() {
    if !gpu() {
        return;
    }
    let plan = "mma-f16-64x64x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("a plan");
    let problem = Gemm::packed(70, 90, 130, Operands::ALL[1]);
    let schedule = Schedule {
        split: 2,
        pack: true,
    };
    let kernel = GemmKernel::new(&plan, &problem, schedule, Arch(80)).expect("it serves");
    let inputs = Inputs::random(&problem, DataType::F16, 6);
    for on in [On::Gpu, On::Emulator] {
        let outcome = run(&kernel, on, kernel.args(&inputs).expect("they fit")).expect("it runs");
        outcome.assert_clean();
        let c = kernel.result(&inputs, &outcome).expect("C");
        let check = check(&problem, DataType::F16, &inputs, &c).expect("shapes");
        assert!(check.passed, "{on:?}: {check:?}");
    }
}
