//! GPUs, and how many blocks of a launch each holds at once.
//!
//! Blocks that wait for each other need each other to run at the same time. A GPU promises that for as many as fit on its multiprocessors: by their threads, by
//! their registers, by shared memory, and by number (CUDA C++ Programming Guide, section "Technical Specifications per Compute Capability"). Example: 256 threads
//! of 64 registers and 48 KiB of shared memory. An H100 has registers for 4 such blocks on each of its 132 multiprocessors, room for 8 by threads, and shared
//! memory for 4: 528 blocks at once.

/// A GPU, as far as it decides how many blocks run at once.
///
/// # Examples
///
/// ```
/// use ptx_emulator::Device;
/// let device = Device::named("h100").expect("a device of the table");
/// assert_eq!(device, Device::default());
/// assert_eq!(device.blocks_at_once(256, 48 << 10, 64), 528);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    name: &'static str,
    multiprocessors: u32,
    /// Bytes of shared memory of a multiprocessor, and those of them that each block takes for the system.
    shared: u32,
    reserved: u32,
    threads: u32,
    blocks: u32,
}

/// Registers of a multiprocessor; the same on all devices.
const REGISTERS: u32 = 1 << 16;
/// Parts of a multiprocessor, each with a quarter of the registers.
const PARTS: u32 = 4;
/// Registers are handed to a warp, and bytes of shared memory to a block, in pieces of so many.
const REGISTER_GRAIN: u32 = 256;
const SHARED_GRAIN: u32 = 128;

const fn device(
    name: &'static str,
    multiprocessors: u32,
    [shared_kib, reserved_kib, threads, blocks]: [u32; 4],
) -> Device {
    Device {
        name,
        multiprocessors,
        shared: shared_kib << 10,
        reserved: reserved_kib << 10,
        threads,
        blocks,
    }
}

impl Device {
    /// The devices there are names for.
    pub const ALL: [Self; 12] = [
        device("h100", 132, [228, 1, 2048, 32]),
        device("h100-pcie", 114, [228, 1, 2048, 32]),
        device("h200", 132, [228, 1, 2048, 32]),
        device("b200", 148, [228, 1, 2048, 32]),
        device("a100", 108, [164, 1, 2048, 32]),
        device("a10", 72, [100, 1, 1536, 16]),
        device("l40s", 142, [100, 1, 1536, 24]),
        device("rtx3090", 82, [100, 1, 1536, 16]),
        device("rtx4090", 128, [100, 1, 1536, 24]),
        device("rtx5090", 170, [100, 1, 1536, 24]),
        device("t4", 40, [64, 0, 1024, 16]),
        device("v100", 80, [96, 0, 2048, 32]),
    ];

    /// The device called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name == name)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The blocks of `threads` threads with `registers` registers each and of `shared` bytes of shared memory that run at once; 0 if not even one does.
    pub fn blocks_at_once(&self, threads: u32, shared: u32, registers: u32) -> u64 {
        let warps = threads.div_ceil(32).max(1);
        let bytes = (shared.saturating_add(self.reserved)).next_multiple_of(SHARED_GRAIN);
        let by_shared = self.shared.checked_div(bytes).unwrap_or(u32::MAX);
        let warp = registers
            .saturating_mul(32)
            .next_multiple_of(REGISTER_GRAIN)
            .max(REGISTER_GRAIN);
        let by_registers = REGISTERS / PARTS / warp * PARTS / warps;
        let each = (self.threads / 32 / warps).min(self.blocks);
        u64::from(each.min(by_shared).min(by_registers)) * u64::from(self.multiprocessors)
    }
}

impl Default for Device {
    /// An H100 (SXM).
    fn default() -> Self {
        Self::ALL[0]
    }
}

#[cfg(test)]
mod tests {
    use super::Device;

    /// Figures of CUDA's occupancy calculator.
    #[test]
    fn occupancy() {
        let per = |name: &str, threads, shared, registers| {
            let d = Device::named(name).expect("a device");
            d.blocks_at_once(threads, shared, registers) / u64::from(d.multiprocessors())
        };
        assert_eq!(per("h100", 32, 0, 64), 32);
        assert_eq!(per("h100", 32, 0, 32), 32);
        assert_eq!(per("h100", 128, 0, 32), 16);
        assert_eq!(per("h100", 1024, 0, 64), 1);
        assert_eq!(per("h100", 1024, 0, 65), 0);
        assert_eq!(per("h100", 1024, 0, 32), 2);
        assert_eq!(per("h100", 256, 0, 64), 4);
        assert_eq!(per("h100", 384, 0, 168), 1);
        assert_eq!(per("h100", 128, 227 << 10, 64), 1);
        assert_eq!(per("h100", 128, 113 << 10, 64), 2);
        assert_eq!(per("h100", 128, 228 << 10, 64), 0);
        assert_eq!(per("a100", 128, 163 << 10, 64), 1);
        assert_eq!(per("a100", 128, 164 << 10, 64), 0);
        assert_eq!(per("t4", 256, 0, 32), 4);
        assert_eq!(per("t4", 32, 64 << 10, 32), 1);
        assert_eq!(per("rtx4090", 1024, 0, 32), 1);
        assert_eq!(per("rtx4090", 32, 0, 32), 24);
        assert!(
            Device::ALL
                .iter()
                .all(|d| Device::named(d.name()) == Some(*d))
        );
        assert!(Device::named("H100").is_none());
    }
}
