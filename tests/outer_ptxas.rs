//! NVIDIA's assembler accepts the kernels of outer products for every architecture, and they spill nothing.

mod common;

use tilewright::codegen::Arch;
use tilewright::gpu::ptxas;
use tilewright::kernels::gemm::{Config, Operands};

/// Registers with which the blocks that the plan asks for fit on a multiprocessor of 65536, and bytes of its stages.
fn limits(plan: Config) -> (u32, u32) {
    if plan.to_string() == "dgemm-4x4" {
        // 2 blocks of 256 threads.
        (128, 16 << 10)
    } else {
        // 6 blocks of 64 threads.
        (168, 9 << 10)
    }
}

fn assembles(plan: Config) {
    let Some(ptxas) =
        ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1")
    else {
        common::say("no ptxas: not run");
        return;
    };
    let (registers, shared_bytes) = limits(plan);
    for arch in Arch::ALL {
        for operands in Operands::ALL {
            let kernel = plan.kernel().emit(operands, arch).expect("the plan proves");
            let assembly = ptxas
                .assemble(&kernel.ptx, &arch.to_string())
                .unwrap_or_else(|e| panic!("{plan}, {operands}, {arch}: {e}"));
            let [resources] = &assembly.kernels[..] else {
                panic!("{plan}, {operands}, {arch}: one kernel, not {assembly:?}");
            };
            let what = format!("{plan}, {operands}, {arch}: {resources:?}");
            assert_eq!(resources.kernel, kernel.kernel);
            assert!(!resources.spills() && resources.stack_bytes == 0, "{what}");
            assert!(resources.registers <= registers, "{what}");
            assert_eq!(resources.shared_bytes, shared_bytes, "{what}");
            assert!(
                assembly.warnings.is_empty(),
                "{what}: {:?}",
                assembly.warnings
            );
        }
    }
}

#[test]
fn dgemm_4x4() {
    assembles("dgemm-4x4".parse().expect("a configuration"));
}

#[test]
fn sgemm_r700_64() {
    assembles("sgemm-r700-64".parse().expect("a configuration"));
}
