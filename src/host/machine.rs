//! The machine of the model, with what the driver says about the GPU at hand.

use layout_codegen::Arch;
use tilewright_gpu::DeviceInfo;
use tilewright_kernels::select::Machine;

/// The share of the bandwidth on paper that a copy reaches: 4.26 of 4.8 TB/s, measured on an H200.
const REACHED: f64 = 0.8875;

/// The machine that a GPU is: the table's row for its architecture, with its own name, multiprocessors, caches and memory.
pub fn machine(info: &DeviceInfo) -> Machine {
    let (major, minor) = info.compute_capability;
    let number = 10 * major + minor;
    let known = Arch::ALL.into_iter().rev().find(|a| a.0 <= number);
    let table = Machine::for_arch(known.unwrap_or(Arch::ALL[0]));
    // Two transfers a clock.
    let memory =
        f64::from(info.memory_clock_khz) * 1e3 * f64::from(info.memory_bus_bits) / 8.0 * 2.0;
    let or = |told: u32, otherwise: u32| if told > 0 { told } else { otherwise };
    Machine {
        name: info.name.clone(),
        multiprocessors: or(info.sm_count, table.multiprocessors),
        shared_bytes_per_sm: or(info.shared_bytes_per_sm, table.shared_bytes_per_sm),
        registers_per_sm: or(info.registers_per_sm, table.registers_per_sm),
        clock: if info.clock_khz > 0 {
            f64::from(info.clock_khz) * 1e3
        } else {
            table.clock
        },
        l2_bytes: if info.l2_bytes > 0 {
            info.l2_bytes
        } else {
            table.l2_bytes
        },
        memory_bandwidth: if memory > 0.0 {
            REACHED * memory
        } else {
            table.memory_bandwidth
        },
        ..table
    }
}
