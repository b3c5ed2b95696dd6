//! NVIDIA's assembler accepts both SGEMM kernels for every architecture, and they spill nothing.

mod common;

use tilewright::codegen::Arch;
use tilewright::gpu::ptxas;
use tilewright::kernels::gemm::{Config, Operands};

/// Registers with which the blocks that the plan asks for fit on a multiprocessor of 65536: 6 × 64 and 2 × 256 threads.
fn most_registers(plan: Config) -> u32 {
    if plan.to_string() == "sgemm-maxas-64" {
        168
    } else {
        128
    }
}

fn assembles(plan: Config) {
    let Some(ptxas) =
        ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1")
    else {
        common::say("no ptxas: not run");
        return;
    };
    for arch in Arch::ALL {
        for operands in Operands::ALL {
            let kernel = plan.kernel().emit(operands, arch).expect("the plan proves");
            let assembly = ptxas
                .assemble(&kernel.ptx, &arch.to_string())
                .unwrap_or_else(|e| panic!("{plan}, {operands}, {arch}: {e}"));
            let [resources] = &assembly.kernels[..] else {
                panic!("{plan}, {operands}, {arch}: one kernel, not {assembly:?}");
            };
            assert_eq!(resources.kernel, kernel.kernel);
            assert!(
                !resources.spills() && resources.stack_bytes == 0,
                "{plan}, {operands}, {arch}: {resources:?}"
            );
            assert!(
                resources.registers <= most_registers(plan),
                "{plan}, {operands}, {arch}: {resources:?}"
            );
            let [w, _, k_step] = plan.tile;
            let two_stages = 2 * 2 * w * k_step * plan.data_type.bytes();
            assert_eq!(resources.shared_bytes, two_stages);
            assert!(
                assembly.warnings.is_empty(),
                "{plan}, {operands}, {arch}: {:?}",
                assembly.warnings
            );
        }
    }
}

#[test]
fn sgemm_maxas_64() {
    assembles("sgemm-maxas-64".parse().expect("a configuration"));
}

#[test]
fn sgemm_maxas_128() {
    assembles("sgemm-maxas-128".parse().expect("a configuration"));
}
