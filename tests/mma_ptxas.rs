//! NVIDIA's assembler accepts the `mma.sync` plans without a spill, for the first architecture that each claims and for the last.

mod common;

use tilewright::codegen::plan::{Arch, Operands, plans};
use tilewright::gpu::ptxas;

#[test]
fn every_plan_assembles_without_spills() {
    let Some(ptxas) =
        ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1")
    else {
        common::say("no ptxas: not run");
        return;
    };
    for plan in plans().iter().filter(|p| p.name().starts_with("mma-")) {
        let [nn, _, _, tt] = Operands::ALL;
        for (operands, arch) in [(nn, plan.min_arch()), (tt, Arch(90))] {
            let kernel = plan.emit(operands, arch).expect("the plan proves");
            let assembly = ptxas
                .assemble(&kernel.ptx, &arch.to_string())
                .unwrap_or_else(|e| panic!("{}, {operands}, {arch}: {e}", plan.name()));
            for r in &assembly.kernels {
                assert!(!r.spills(), "{}, {operands}, {arch}: {r:?}", plan.name());
            }
        }
    }
}
