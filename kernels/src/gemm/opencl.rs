//! A plan as OpenCL C: the same kernels as in PTX, proven on the banks of another memory, and printed by the other printer.
//!
//! What is proven is the same: addresses, bounds, order, coverage. What differs is what an access of local memory costs, which is counted on the
//! bank model of the device that it is for; a wavefront of 64 threads counts as two accesses of 32.
//!
//! ```
//! use tilewright_kernels::gemm::{Config, Operands, opencl};
//! use layout_core::banks::AMD_GCN;
//!
//! let config: Config = "sgemm-maxas-64".parse()?;
//! let nn: Operands = "nn".parse()?;
//! let emitted = opencl::emit(&config.kernel(), nn, &AMD_GCN)?;
//! assert!(emitted.source.contains("__kernel __attribute__((reqd_work_group_size(64, 1, 1)))"));
//! let read = emitted.proof.accesses.iter().find(|a| a.access == "readAs").ok_or("no read")?;
//! assert_eq!((read.wavefronts, read.ideal), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use layout_codegen::Module;
use layout_core::banks::BankModel;

use super::{Operands, PlanError, Proof, Specialized};

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
    kernel: &Specialized,
    operands: Operands,
    model: &BankModel,
) -> Result<EmittedOpenCl, PlanError> {
    let [m, n, k] = kernel.tile();
    let entry = kernel.entry_name(operands);
    let about = [
        format!("kernel {entry} of plan {}, {operands}", kernel.name()),
        format!(
            "tile {m}x{n}, {k} of k an iteration; a work-group has {} threads, and a grid has one for each tile",
            kernel.threads()
        ),
    ];
    let entries = kernel.entries(operands, kernel.min_arch())?;
    let names: Vec<String> = entries.iter().map(|e| e.name().to_owned()).collect();
    let program = Module::opencl(entries, &about, model)?;
    let mut proof = Proof {
        obligations: kernel.claims(operands)?,
        accesses: Vec::new(),
        assumptions: Vec::new(),
    };
    for (name, of_kernel) in names.iter().zip(&program.proofs) {
        proof.add(name, of_kernel);
    }
    Ok(EmittedOpenCl {
        source: program.source,
        kernel: entry,
        proof,
    })
}
