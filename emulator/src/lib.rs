//! Runs PTX text on the CPU: an emulator with a sanitizer, a race detector and bank-conflict counters.
//!
//! [`Module::parse`] reads the text and decodes each kernel once into compact operations;
//! [`run`] executes a grid on [`GlobalMemory`], blocks in parallel, all 32 lanes of a warp together. The [`Report`] says what the kernel did wrong ([`Finding`])
//! and what it cost ([`Counters`]): instructions by line of the text, and shared-memory wavefronts by the bank model measured on an H200.
//!
//! # What it models
//!
//! - Divergence: lanes that diverge reconverge at the immediate post-dominator; divergent groups of lanes take turns, so that lanes may
//!   wait for each other, and instructions that lanes execute together (`shfl.sync`, `mma.sync`) wait for all of them. Instructions of a warp are in order, and there
//!   is no instruction-level timing.
//! - Races between lanes of one warp are seen within one instruction (different values stored to one place) and for `cp.async`;
//!   otherwise the lanes of a warp count as ordered by the order of instructions, unless [`Options::lane_races`] asks for more.
//! - Undefined values are reported where they are used, not where they are moved ([`FindingKind::UndefinedRegister`]).
//! - Memory: sequentially consistent within a block; global memory between blocks as relaxed words. Fences between threads change no value, which is
//!   enough for kernels whose blocks do not communicate; the race detector takes them, with strong accesses of shared memory and relaxed operations on mbarriers, for synchronisation.
//! - Blocks: as many as the GPU holds at once ([`Options::device`]) are resident and may wait for each other; further ones start in order as others end. One that
//!   waits for a block that cannot start waits for ever, which is found out. The outcome does not depend on the host.
//! - Clusters: the blocks of a cluster run together, in turn, and reach each other's shared memory.
//! - `cp.async`, bulk and tensor copies land at the wait, as late as the rules permit, and `wgmma` is carried out at the wait: a kernel that does
//!   not wait computes with old data and is reported. So is one that lacks a fence between the proxies, see [`FindingKind`].
//! - mbarriers count arrivals and bytes by phases. A wait suspends its lanes; if all warps wait it is a hang, reported with what each waits for.
//! - Tensor maps are those of [`TensorMap`], since the driver's encoding is not published. Not supported: interleaved maps of im2col copies.
//! - Matrix multiplication as the hardware adds, see `exec/sums.rs`: `mma.sync` and `wgmma` give the bits of an H100 on random
//!   inputs of wide range.
//! - f64 keeps the payloads of NaNs as an H100 does; where PTX leaves a field of bits beyond the number (`bfe`, `bfi`), the text of the ISA holds.
//! - Approximate instructions (`ex2.approx`, `rcp.approx`, …) are computed to nearest, within the bounds of the ISA.
//!
//! - Calls: functions, recursion and calls through pointers, with a stack of up to 512 KiB a thread; of the system's functions `vprintf`,
//!   `malloc`, `free` (a heap of [`HEAP_BYTES`]) and `__assertfail`.
//! - Textures and surfaces of one to three dimensions and layers, in unified mode ([`Texture`]); no mipmaps, cube maps or depth comparisons.
//! - `%clock`, `%clock64` and `%globaltimer` count the instructions of the block: they only grow, and every run gives the same.
//!
//! What is not PTX is a parse error. What is PTX and not supported is an error that names it when it is reached ([`RunError::Unsupported`]),
//! or at once by [`Module::parse_strict`]; never a guess.

// The hot loop is compiled twice, plainly and for AVX2 (see `exec/step.rs`): what it calls must be inlined into
// both versions to be compiled for both.
#![allow(clippy::inline_always)]
// Loops over lanes index several rows and a mask by the same lane.
#![allow(clippy::needless_range_loop)]

mod ast;
pub mod banks;
mod causes;
mod cfg;
mod clock;
mod decode;
mod device;
mod error;
mod exec;
mod fences;
mod float;
mod float64;
mod heap;
mod ir;
mod lane_order;
mod launch;
mod lexer;
mod liveness;
mod memory;
mod module;
mod parser;
mod pattern;
mod proxies;
pub mod report;
mod shared;
mod shared_conflicts;
mod shared_data;
mod shared_runs;
mod source;
mod tensor_map;
mod texture;
mod threads;
mod types;
mod variables;
mod windows;

pub use device::Device;
pub use error::{MemoryError, ParseError, ParseErrorKind, RunError};
pub use heap::HEAP_BYTES;
pub use launch::{Arg, Launch, MAX_PRINTED, MAX_SHARED_BYTES, Options, Progress, run};
pub use memory::GlobalMemory;
pub use module::{Kernel, Module, Param};
pub use report::{Counters, Finding, FindingKind, InstructionCounter, Report, Traffic};
pub use source::SourceLine;
pub use tensor_map::{
    Im2col, TENSOR_MAP_BYTES, TensorElement, TensorInterleave, TensorMap, TensorMapError,
    TensorSwizzle,
};
pub use texture::{AddressMode, Texel, Texture};
pub use types::ScalarType;
