//! `tcgen05`, the fifth-generation tensor core of `sm_100a`: operands in shared memory, accumulators in tensor memory, and the
//! registers that `tcgen05.ld` and `tcgen05.st` move.
//!
//! One thread issues the instruction for the whole block (or for a pair of blocks, `cta_group::2`), so nothing here is a thread-value
//! layout of the multiplication itself:
//!
//! - [`smem_operand`]: the place of element `(m, k)` of A, or `(n, k)` of B, in shared memory;
//! - [`accumulator`]: the lane and column of tensor memory of element `(m, n)` of D;
//! - [`tmem_copy`]: the lane and column that register `r` of thread `t` is copied from or to.
//!
//! **Tensor memory** has 128 lanes and up to 512 columns of 32 bits in each block. Layouts into it give
//! `lane + 128·column`, and `65536` more for the second block of a pair ([`tmem_place`] splits such a number).
//!
//! ```
//! use layout_core::atoms::tcgen05::{CtaGroup, TmemShape, accumulator, tmem_copy, tmem_place};
//! // Row 37, column 5 of a 128x64 accumulator: lane 37, column 5 of tensor memory.
//! let d = accumulator(CtaGroup::One, 128, 64).unwrap();
//! let place = d.layout.at(&[37, 5]);
//! assert_eq!((tmem_place(place).lane, tmem_place(place).column), (37, 5));
//! // Warp 1 reaches lanes 32 to 63: its thread 5 reads that place into register 5.
//! let load = tmem_copy(TmemShape::L32x32b, 64, 0).unwrap();
//! assert_eq!(32 + load.layout.at(&[5, 5]), place);
//! ```
//!
//! Sources: PTX ISA 9.0, sections 9.7.16.1 to 9.7.16.4, 9.7.16.8 and 9.7.16.10; CuTe's `mma_traits_sm100_frag.hpp`,
//! `mma_sm100_desc.hpp` and `copy_traits_sm100.hpp`, and Triton's tiles of tensor-memory accesses, for what the manual shows
//! as figures only. Nothing here was run on the hardware.

mod smem;
mod tmem;

pub use smem::{Major, SmemOperand, SmemSwizzle, smem_operand, smem_operand_strided};
pub use tmem::{
    Accumulator, CtaGroup, TMEM_COLUMNS, TMEM_LANES, TmemCopy, TmemPlace, TmemShape, accumulator,
    tmem_copy, tmem_place,
};
