//! The prover: what holds of a kernel, for all threads, all trip counts and all sizes in the declared ranges.
//!
//! It reads the representation that the printer prints, register by register, in two steps.
//!
//! * `walk` follows the instructions once with exact values for every thread of a block (`algebra`). Each address must be what its place says
//!   (the buffer's layout at its coordinates) and inside the buffer under its guard; each guard must leave out nothing that is inside; barriers
//!   must be met by all threads. What is left is a tree of events in shared memory, with one address for each thread.
//! * `memory` follows that tree along every path, iteration by iteration until the state of shared memory repeats: a byte is read only after a write
//!   that a barrier or a wait orders before it, and no two threads touch a byte, one of them writing, unordered.
//!
//! `protocol` holds the asynchronous instructions to the protocols of their barriers, `cost` counts what accesses cost. Rooms use those below them: `algebra`, then `walk`, then `memory` and
//! `protocol`, then `cost`.
//!
//! A byte of shared memory belongs to the view that wrote it last: what one view wrote, another does not read.

// Loops over threads and modes index several lists by the same number.
#![allow(clippy::needless_range_loop)]

mod algebra;
mod cost;
mod error;
mod lines;
mod memory;
#[cfg(test)]
mod mutants;
mod protocol;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod tests;
mod walk;

pub use cost::costs::GlobalCost;
pub use error::ProofError;
pub use memory::access::AccessProof;
pub use walk::assumed::Assumed;

use layout_core::banks::{BankModel, NVIDIA};

use crate::ir::Entry;
use algebra::numbers::{self, Tables};
use memory::{cover, order};
use protocol::{accumulators, dependents, meant, named, operands, registers, ring};
use walk::execute::{self, Trace};
use walk::{cluster, remote};

/// What was proven of a kernel.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel};
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Swizzled};
///
/// // y = x through shared memory, an element a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1000);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let tile = k.shared("tile", Element::F32, &Swizzled::parse("128:1")?)?;
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let tile = tile.partition(&mut k, &one, thread)?;
/// k.copy(&x, &tile)?;
/// k.copy(&tile, &y)?;
/// let proof = k.build(Arch(80))?.proof;
/// assert_eq!((proof.covered, proof.shared.len(), proof.global.len()), (vec!["y".to_owned()], 2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelProof {
    /// The wavefronts of each access of shared memory.
    pub shared: Vec<AccessProof>,
    /// The sectors of each access of global memory.
    pub global: Vec<GlobalCost>,
    /// Addresses that were held against the layouts of their buffers.
    pub addresses: usize,
    /// States of shared memory that were visited.
    pub states: usize,
    /// Outputs of which every element is written exactly once.
    pub covered: Vec<String>,
    /// What the author states, which the proof takes as facts: nothing for the kernels of this crate.
    pub assumptions: Vec<Assumed>,
    /// What the proof took.
    pub effort: Effort,
}

/// What a proof took, in numbers that do not depend on the machine.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Kernel;
///
/// let mut k = Kernel::new("waits", 64);
/// k.barrier();
/// assert_eq!(k.build(Arch(80))?.proof.effort.cases, 0); // nothing to decide
/// # Ok::<(), layout_codegen::prove::ProofError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effort {
    /// Cases that the solver looked into.
    pub cases: usize,
    /// Patterns that the numbers of threads have.
    pub patterns: usize,
}

/// Proves a kernel.
///
/// # Errors
///
/// The first statement that does not hold or cannot be decided, with the access, the threads and what is missing.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_codegen::prove::prove;
/// use layout_core::Layout;
///
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let block = k.tiles(Axis::X, n, 512)?;
/// let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
/// let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// k.copy(&x, &y)?;
/// let built = k.build(Arch(80))?;
/// assert_eq!(prove(built.entry())?.covered, ["y"]); // as when it was built
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prove(entry: &Entry) -> Result<KernelProof, ProofError> {
    prove_on(entry, &NVIDIA)
}

/// As [`prove`], with shared memory that has the banks of `model`: accesses are counted for 32 threads at a time, which is a warp, or half
/// of a wavefront of 64 threads. What the model has no instruction for is not counted.
///
/// # Errors
///
/// As [`prove`].
///
/// ```
/// use layout_codegen::ir::{Axis, Element, Kernel};
/// use layout_codegen::prove::{prove, prove_on};
/// use layout_core::banks::AMD_GCN;
/// use layout_core::{Layout, Swizzled};
///
/// // y = x through shared memory, two elements of f32 a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1000);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let tile = k.shared("tile", Element::F32, &Swizzled::parse("512:1")?)?;
/// let (block, thread) = (k.tiles(Axis::X, n, 512)?, k.thread());
/// let (fours, ones) = (Layout::parse("(128,4):(4,1)")?, Layout::parse("(128,4):(1,128)")?);
/// let put = tile.partition(&mut k, &fours, thread)?.vectors(&k, 4)?;
/// let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &fours, thread)?.vectors(&k, 4)?;
/// k.copy(&x, &put)?;
/// k.barrier();
/// let take = tile.partition(&mut k, &ones, thread)?;
/// let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &ones, thread)?;
/// k.copy(&take, &y)?;
/// let built = k.build(layout_codegen::Arch(80))?;
/// let kernel = built.entry();
/// let wavefronts = |proof: &layout_codegen::prove::KernelProof| proof.shared[0].wavefronts;
/// assert_eq!((wavefronts(&prove(kernel)?), wavefronts(&prove_on(kernel, &AMD_GCN)?)), (4, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prove_on(entry: &Entry, model: &BankModel) -> Result<KernelProof, ProofError> {
    if let Some(what) = &entry.mistake {
        return Err(ProofError::Malformed { what: what.clone() });
    }
    let _tables = Tables::new();
    match execute::execute(entry) {
        Ok(trace) => judged(entry, trace, model).map_err(|e| lines::located(e, entry, None)),
        Err((error, line)) => Err(lines::located(error, entry, line)),
    }
}

/// What holds of a kernel that was followed to its end.
fn judged(entry: &Entry, mut trace: Trace, model: &BankModel) -> Result<KernelProof, ProofError> {
    meant::kept(entry)?;
    registers::kept(entry)?;
    operands::kept(entry)?;
    accumulators::settled(entry)?;
    dependents::waited(entry)?;
    cluster::kept(entry, &trace)?;
    remote::kept(entry, &trace)?;
    ring::kept(entry, &trace)?;
    named::kept(entry, &trace)?;
    let states = order::ordered(&trace)?;
    let covered = cover::covered(entry, &mut trace)?;
    let stated = entry.buffers.iter().flat_map(|b| {
        b.stated.iter().map(|stated| Assumed {
            condition: stated.elements.condition(&b.name, &entry.pool),
            reason: stated.reason.clone(),
            checked: false,
        })
    });
    trace.assumptions.extend(stated);
    Ok(KernelProof {
        shared: trace.shared_costs(model),
        global: trace.global_costs(),
        addresses: trace.addresses,
        states,
        covered,
        effort: Effort {
            cases: trace.symbols.cases,
            patterns: numbers::patterns(),
        },
        assumptions: trace.assumptions,
    })
}
