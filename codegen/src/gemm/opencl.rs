//! A plan as OpenCL C: the same kernels as in PTX, proven on the banks of another memory, and printed by the other printer.
//!
//! What is proven is the same: addresses, bounds, order, coverage. What differs is what an access of local memory costs, which is counted on the
//! bank model of the device that it is for; a wavefront of 64 threads counts as two accesses of 32.
//!
//! ```
//! use layout_codegen::gemm::{Operands, opencl};
//! use layout_codegen::registry::plan_named;
//! use layout_core::banks::AMD_GCN;
//!
//! let plan = plan_named("sgemm-maxas-64")?;
//! let nn: Operands = "nn".parse()?;
//! let emitted = opencl::emit(plan.as_ref(), nn, &AMD_GCN)?;
//! assert!(emitted.source.contains("__kernel __attribute__((reqd_work_group_size(64, 1, 1)))"));
//! let read = emitted.proof.accesses.iter().find(|a| a.access == "readAs").ok_or("no read")?;
//! assert_eq!((read.wavefronts, read.ideal), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use layout_core::banks::BankModel;

use super::{Operands, Plan, PlanError, Proof};
use crate::print::opencl::program;
use crate::prove::prove_on;

/// A plan's kernels as OpenCL C.
#[derive(Clone, PartialEq, Debug)]
pub struct EmittedOpenCl {
    /// The program.
    pub source: String,
    /// The name of the kernel that multiplies.
    pub kernel: String,
    /// What was proven before it was printed; the costs of accesses are those of the model.
    pub proof: Proof,
}

/// Proves the kernels of a plan on local memory with the banks of `model`, and prints them.
///
/// # Errors
///
/// What does not prove, and [`PlanError::OpenCl`] for a kernel that has no form in OpenCL C.
pub fn emit(
    plan: &dyn Plan,
    operands: Operands,
    model: &BankModel,
) -> Result<EmittedOpenCl, PlanError> {
    let mut proof = Proof {
        obligations: plan.claims(operands)?,
        accesses: Vec::new(),
        assumptions: Vec::new(),
    };
    let mut entries = plan.entries(operands, plan.min_arch())?;
    // What has no form needs no proof.
    program(&entries, &[])?;
    for entry in &mut entries {
        let of_kernel = prove_on(entry, model).map_err(|error| PlanError::Unproven {
            kernel: entry.name.clone(),
            error,
        })?;
        entry.comments.extend(of_kernel.shared.iter().map(|a| {
            format!(
                "{:>10}   {}: {} wavefronts of 32 threads on {}, ideal {}",
                a.access, a.op, a.wavefronts, model.name, a.ideal
            )
        }));
        proof.add(&entry.name, &of_kernel);
    }
    let (m, n, k) = plan.tile();
    let kernel = plan.entry_name(operands);
    let about = [
        format!("kernel {kernel} of plan {}, {operands}", plan.name()),
        format!(
            "tile {m}x{n}, {k} of k a turn; a work-group has {} threads, and a grid has one for each tile",
            plan.threads()
        ),
    ];
    Ok(EmittedOpenCl {
        source: program(&entries, &about)?,
        kernel,
        proof,
    })
}
