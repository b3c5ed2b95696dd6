//! Selection held against measurements, and against what must hold of any model of time.

mod choices;
mod geometry;
mod laws;
mod measured;
mod refusals;

use layout_codegen::Arch;
use tilewright_kernels::gemm::{Config, DataType, Gemm, Operands, Schedule};
use tilewright_kernels::select::{Candidate, Machine, candidates};

pub(crate) fn operands(text: &str) -> Operands {
    text.parse().expect("nn, nt, tn or tt")
}

pub(crate) fn cube(size: u64) -> Gemm {
    Gemm::packed(size, size, size, operands("nn"))
}

pub(crate) fn named(name: &str) -> Config {
    name.parse::<Config>().expect("a plan of this name")
}

pub(crate) fn h200() -> Machine {
    Machine::for_arch(Arch(90))
}

/// The H100 that plans of warpgroups were measured on.
pub(crate) fn h100() -> Machine {
    Machine {
        l2_bytes: 50 << 20,
        memory_bandwidth: 2975.2e9,
        ..h200()
    }
}

pub(crate) fn split(parts: u32) -> Schedule {
    Schedule {
        split: parts,
        pack: false,
    }
}

/// Whether `a` and `b` are the same to a part in `parts`.
pub(crate) fn close(a: f64, b: f64, parts: f64) -> bool {
    (a - b).abs() <= b.abs() / parts
}

pub(crate) fn best(data_type: DataType, problem: &Gemm, arch: Arch) -> Candidate {
    candidates(data_type, problem, arch, &Machine::for_arch(arch))
        .expect("a plan")
        .swap_remove(0)
}
