//! What the model needs to know of a GPU.
//!
//! One product stands for each architecture. Rates are of a multiprocessor and clock, so that another product of the same
//! architecture differs in little more than the number of multiprocessors and the bandwidth of its memory, which the driver tells:
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::gemm::DataType;
//! use tilewright_kernels::select::Machine;
//!
//! let h200 = Machine::for_arch(Arch(90));
//! let half = Machine { multiprocessors: h200.multiprocessors / 2, ..h200.clone() };
//! assert_eq!(half.rate(DataType::F64), h200.rate(DataType::F64));
//! ```
//!
//! Sources, by what they tell:
//!
//! * multiprocessors, clocks, caches, memory, rates of tensor cores and FMA units: NVIDIA's architecture white papers (Turing 2018, A100
//!   2020, GA102 2020, Ada 2022, H100 2022, Blackwell 2024 and RTX Blackwell 2025), rates divided by multiprocessors and boost clock.
//!   A100: 312 TFLOP/s of f16 / (108 · 1.41 GHz) = 2048;
//! * threads, blocks, registers and shared memory of a multiprocessor: CUDA C++ Programming Guide, technical specifications by compute
//!   capability;
//! * `sm_90`: `mma.sync` does not reach the rate of `wgmma`, which is what the white paper gives (f16: 4096). The rates here are fitted to
//!   the products of `docs/performance.md`, measured on an H200, and so are the latency, the time of a launch and the bandwidth of memory
//!   (the copy of 4.26 TB/s there). 8-bit floats are widened to f16 by the assembler, 64 pairs of elements a clock (programming guide, throughput of
//!   native arithmetic instructions, conversions from 8-bit types);
//! * bytes of level 2 cache a clock: A100 white paper (5120); the H200 is taken to have as many. T4: Jia et al., "Dissecting the `NVidia`
//!   Turing T4 GPU via Microbenchmarking" (2019), 1270 GB/s. Of the others nothing is published: 2048 stands for the `GeForce` products, 5120 for
//!   `sm_100`;
//! * `sm_100`: the rates of `mma.sync` are not published either and are taken to be the A100's. Memory bandwidths are 0.88 of what the white
//!   papers say, as on the H200.

use layout_codegen::Arch;

use crate::gemm::DataType;

/// A GPU, as far as the model of time looks at it.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// The product, as the driver names it.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Clock of the multiprocessors, in Hz.
    pub clock: f64,
    /// Threads that a multiprocessor holds.
    pub threads_per_sm: u32,
    /// Blocks that a multiprocessor holds.
    pub blocks_per_sm: u32,
    /// Registers of 32 bits of a multiprocessor.
    pub registers_per_sm: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes_per_sm: u32,
    /// Bytes of shared memory that the system takes of each block.
    pub shared_bytes_reserved: u32,
    /// Floating-point (or integer) operations of a multiprocessor and clock, by type: tensor cores through `mma.sync`, except f32, which
    /// counts fused multiply-adds as two.
    pub rates: Rates,
    /// Elements of fragments that a multiprocessor widens from 8-bit floats to f16 a clock, where tensor cores do not multiply those.
    pub f8_widened: Option<f64>,
    /// Bytes that the level 2 cache delivers a clock, to all multiprocessors together.
    pub l2_bytes_per_clock: f64,
    /// Bytes of level 2 cache.
    pub l2_bytes: u64,
    /// Bytes a second that the memory moves, read and written together.
    pub memory_bandwidth: f64,
    /// Seconds from asking for an element in memory until it is there.
    pub latency: f64,
    /// Seconds that a launch adds, nothing computed.
    pub launch: f64,
}

/// Operations of a multiprocessor and clock, two for each product that is added.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// f32 by fused multiply-add.
    pub f32: f64,
    /// f16 and bf16, summed in f32.
    pub f16: f64,
    /// f16 summed in f16.
    pub f16_acc16: f64,
    /// tf32
    pub tf32: f64,
    /// f64
    pub f64: f64,
    /// 8-bit integers.
    pub s8: f64,
    /// 8-bit floats; of f16 where they are widened first.
    pub f8: f64,
}

/// The figures of one row of the table.
struct Row {
    name: &'static str,
    multiprocessors: u32,
    /// GHz
    clock: f64,
    threads: u32,
    blocks: u32,
    /// KiB
    shared: u32,
    rates: Rates,
    l2_bytes_per_clock: f64,
    /// MB
    l2: u64,
    /// GB/s by the white paper.
    memory: f64,
}

/// Rates in the order of the fields of [`Rates`].
const fn rates([f32, f16, f16_acc16, tf32, f64, s8, f8]: [f64; 7]) -> Rates {
    Rates {
        f32,
        f16,
        f16_acc16,
        tf32,
        f64,
        s8,
        f8,
    }
}

/// The share of the white paper's memory bandwidth that a copy reaches (measured on an H200: 4.26 of 4.8 TB/s).
const REACHED: f64 = 0.8875;

const TURING: Row = Row {
    name: "Tesla T4",
    multiprocessors: 40,
    clock: 1.59,
    threads: 1024,
    blocks: 16,
    shared: 64,
    // There is neither tf32 nor f64 nor f8 in these tensor cores; f64 is what its few units do.
    rates: rates([128.0, 1024.0, 1024.0, 128.0, 4.0, 2048.0, 128.0]),
    l2_bytes_per_clock: 800.0,
    l2: 4,
    memory: 320.0,
};

const AMPERE: Row = Row {
    name: "NVIDIA A100-SXM4-80GB",
    multiprocessors: 108,
    clock: 1.41,
    threads: 2048,
    blocks: 32,
    shared: 164,
    rates: rates([128.0, 2048.0, 2048.0, 1024.0, 128.0, 4096.0, 1024.0]),
    l2_bytes_per_clock: 5120.0,
    l2: 40,
    memory: 2039.0,
};

const GA102: Row = Row {
    name: "NVIDIA GeForce RTX 3090",
    multiprocessors: 82,
    clock: 1.695,
    threads: 1536,
    blocks: 16,
    shared: 100,
    rates: rates([256.0, 512.0, 1024.0, 256.0, 4.0, 2048.0, 256.0]),
    l2_bytes_per_clock: 2048.0,
    l2: 6,
    memory: 936.0,
};

const ADA: Row = Row {
    name: "NVIDIA GeForce RTX 4090",
    multiprocessors: 128,
    clock: 2.52,
    threads: 1536,
    blocks: 24,
    shared: 100,
    rates: rates([256.0, 512.0, 1024.0, 256.0, 4.0, 2048.0, 1024.0]),
    l2_bytes_per_clock: 2048.0,
    l2: 72,
    memory: 1008.0,
};

const HOPPER: Row = Row {
    name: "NVIDIA H200",
    multiprocessors: 132,
    clock: 1.98,
    threads: 2048,
    blocks: 32,
    shared: 228,
    rates: rates([256.0, 2400.0, 2400.0, 1200.0, 256.0, 4800.0, 2400.0]),
    l2_bytes_per_clock: 5120.0,
    l2: 60,
    memory: 4800.0,
};

const BLACKWELL: Row = Row {
    name: "NVIDIA B200",
    multiprocessors: 148,
    clock: 1.965,
    threads: 2048,
    blocks: 32,
    shared: 228,
    rates: rates([256.0, 2048.0, 2048.0, 1024.0, 128.0, 4096.0, 1024.0]),
    l2_bytes_per_clock: 5120.0,
    l2: 126,
    memory: 8000.0,
};

const GB202: Row = Row {
    name: "NVIDIA GeForce RTX 5090",
    multiprocessors: 170,
    clock: 2.407,
    threads: 1536,
    blocks: 24,
    shared: 100,
    rates: rates([256.0, 512.0, 1024.0, 256.0, 4.0, 2048.0, 1024.0]),
    l2_bytes_per_clock: 2048.0,
    l2: 96,
    memory: 1792.0,
};

impl Machine {
    /// The product that stands for an architecture; that of the newest known one that is no newer.
    pub fn for_arch(arch: Arch) -> Self {
        let row = match arch.0 {
            ..80 => TURING,
            80..86 => AMPERE,
            86..89 => GA102,
            89 => ADA,
            90..100 => HOPPER,
            100..120 => BLACKWELL,
            _ => GB202,
        };
        Self {
            name: row.name.to_owned(),
            arch,
            multiprocessors: row.multiprocessors,
            clock: row.clock * 1e9,
            threads_per_sm: row.threads,
            blocks_per_sm: row.blocks,
            registers_per_sm: 65_536,
            shared_bytes_per_sm: row.shared << 10,
            shared_bytes_reserved: if arch.0 < 80 { 0 } else { 1024 },
            rates: row.rates,
            f8_widened: (90..100).contains(&arch.0).then_some(128.0),
            l2_bytes_per_clock: row.l2_bytes_per_clock,
            l2_bytes: row.l2 << 20,
            memory_bandwidth: row.memory * REACHED * 1e9,
            latency: 0.6e-6,
            launch: 5.2e-6,
        }
    }

    /// Whether the model was fitted to measurements on this architecture.
    pub fn is_measured(&self) -> bool {
        self.arch.0 == 90
    }

    /// Operations of a multiprocessor and clock for products in `data_type`.
    pub fn rate(&self, data_type: DataType) -> f64 {
        match data_type {
            DataType::F32 => self.rates.f32,
            DataType::F16 | DataType::Bf16 => self.rates.f16,
            DataType::F16Acc16 => self.rates.f16_acc16,
            DataType::Tf32 => self.rates.tf32,
            DataType::F64 => self.rates.f64,
            DataType::S8 => self.rates.s8,
            DataType::E4m3 | DataType::E5m2 => self.rates.f8,
        }
    }

    /// The same for fused multiply-adds of single threads: the A100 and the H100 have half as many units for f64 beside their tensor cores (white
    /// papers: 9.7 and 33.5 TFLOP/s, and 19.5 and 67 with tensor cores); other products multiply f64 by these units either way.
    pub fn fma_rate(&self, data_type: DataType) -> f64 {
        let halved = data_type == DataType::F64 && matches!(self.arch.0, 80 | 90);
        self.rate(data_type) / if halved { 2.0 } else { 1.0 }
    }

    /// Bytes of level 2 cache that one multiprocessor gets a clock if all of them ask.
    pub fn l2_share(&self) -> f64 {
        self.l2_bytes_per_clock / f64::from(self.multiprocessors)
    }
}
