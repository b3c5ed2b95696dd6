//! Bank models: what one warp-wide access costs on which hardware, and which lanes conflict.
//!
//! **What.** On-chip memory is split into banks that each serve one word a cycle. An access of 32 lanes is cut into phases
//! of consecutive lanes; in a phase, a bank that serves `n` *different* words needs `n` cycles (wavefronts), while lanes that access
//! the same word share one. The access costs the sum over its phases.
//!
//! **Why data.** NVIDIA's shared memory, two generations of AMD's local data share and the register files of Maxwell and
//! Volta differ in numbers only: [`BankModel`] holds them, and one function, [`wavefronts`], reads them. The one rule
//! that is not a number, the pair rule of 8- and 16-byte loads, is a flag.
//!
//! **Worked example.** A warp loads one `f32` per lane down a column of a row-major tile with rows of 128 bytes. Every
//! address is a multiple of 128, so the lanes access 32 different words of bank 0:
//!
//! ```
//! use layout_core::banks::{wavefronts, Access, NVIDIA};
//! let column: [i64; 32] = core::array::from_fn(|lane| 128 * lane as i64);
//! let count = wavefronts(&NVIDIA, Access::Ld32, &column).unwrap();
//! assert_eq!((count.wavefronts, count.ideal), (32, 1));
//! assert_eq!(count.phases()[0].bank, 0);
//! ```
//!
//! The NVIDIA model agrees with the counters of an H200 on every row of `tests/golden/bank_wavefronts_h200.csv`
//! (3,520 patterns, measured on H200).

mod access;
mod count;
mod lanes;
pub mod maxas;
mod model;
pub mod r700;
pub mod registers;

pub use access::{Access, Matrices, UnknownAccess};
pub use count::{BankError, Phase, Wavefronts, effective_phase_lanes, wavefronts};
pub use lanes::lanes_to_bytes;
pub use model::{
    AMD_GCN, AMD_R700, BankModel, MAXWELL_REGISTERS, MODELS, NVIDIA, VOLTA_REGISTERS, model_named,
};

/// Lanes of a warp: the length of every address array.
///
/// ```
/// use layout_core::banks::{Access, LANES};
/// assert_eq!(Access::Ld32.lanes() as usize, LANES);
/// ```
pub const LANES: usize = 32;
