//! The emulator's speed: lane instructions a second on a 256×256×256 SGEMM with the sanitizer on, on one core and on all.
//!
//! `cargo bench --features host,emulator --bench emulator`; the figures are in `docs/performance.md`.

use divan::Bencher;
use divan::counter::ItemsCount;
use tilewright::codegen::Arch;
use tilewright::emulator::Options;
use tilewright::host::{GemmKernel, Inputs, On, RunOptions, run_with};
use tilewright::kernels::gemm::{Config, DataType, Gemm, Operands, Schedule};

fn main() {
    divan::main();
    if let Some(peak) = peak_memory() {
        println!("peak memory of the process: {} MiB", peak >> 20);
    }
}

/// Items are lane instructions: an instruction executed by a warp with n active lanes counts n.
#[divan::bench(args = ["sgemm-maxas-64", "sgemm-maxas-128"], consts = [1, 0], sample_count = 20)]
fn sgemm_256<const WORKERS: usize>(bencher: Bencher, name: &str) {
    let plan = name.parse::<Config>().expect("one of two");
    let problem = Gemm::packed(256, 256, 256, Operands::ALL[0]);
    let kernel = GemmKernel::new(plan, &problem, Schedule::default(), Arch(80));
    let kernel = kernel.expect("the plan proves");
    let inputs = Inputs::random(&problem, DataType::F32, 1);
    let options = RunOptions {
        emulator: Options {
            workers: WORKERS,
            ..Options::default()
        },
        ..RunOptions::default()
    };
    let run = || {
        let args = kernel.args(&inputs).expect("they fit");
        run_with(&kernel, On::Emulator, args, &options).expect("it runs")
    };
    let lanes = run()
        .report
        .map_or(0, |report| report.counters.lane_instructions);
    bencher.counter(ItemsCount::new(lanes)).bench(run);
}

/// Bytes of the most memory that this process ever held, where the system tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes << 10)
}
