//! Proofs about layouts: claims for every lane, warp, stage and tile, proven without running a kernel.
//!
//! **What.** A kernel's plan maps (lane, rest) to byte offsets and makes claims: this access takes 4 wavefronts, these
//! threads cover the tile exactly once, those buffers do not overlap. Each claim is an [`Obligation`], a value that is *discharged*
//! or *refused* with the lanes, banks and numbers that refute it.
//!
//! **Why this way.** Wavefront counts survive translation. If adding the rest to a lane's offset never carries into the
//! lane's bits, it is an xor with a constant: banks are permuted, words that were equal stay equal. So one phase of one warp decides
//! for all of them, and that one is a rank over F2:
//!
//! ```text
//! wavefronts of a phase = 2^( rank(W L A) - rank(K L A) )
//! ```
//!
//! with `A` the lane bits of a phase and the bits inside the access, `L` the layout, `W` the offset bits from 2 up (the word), `K` the
//! offset bits 2 to 6 (the bank). Padded pitches are not linear over F2 but over Z/32: there a translation by whole words rotates the
//! banks, and one enumeration of the lanes decides. What is neither is enumerated, which is still a proof.
//!
//! **Worked example.** `ldmatrix.x4` on a bf16 tile with rows of 64 bytes, swizzled: 16 rows in lane bits 0..4, two chunks of 16 bytes in
//! bit 4, and 4 row blocks and 2 k-steps beyond.
//!
//! ```
//! use layout_core::{Swizzled, banks::Access, proof::{Method, prove_access}};
//! let swizzled = Swizzled::parse("Sw<2,4,3> o ((16,2),4,2):((64,16),1024,32)").unwrap();
//! let access: Access = "ldmatrix.x4".parse().unwrap();
//! let proof = prove_access(access, &swizzled).unwrap();
//! assert_eq!((proof.wavefronts, proof.ideal, proof.method), (4, 4, Method::Rank));
//! let plain = Swizzled::parse("((16,2),4,2):((64,16),1024,32)").unwrap();
//! assert_eq!(prove_access(access, &plain).unwrap().wavefronts, 16);
//! ```

mod access;
mod cover;
mod error;
mod obligation;
mod rank;

pub use access::{Method, Proof, prove_access, wavefronts};
pub use cover::{
    Region, aligned, bijective, carry_free, covers_exactly_once, disjoint, injective, multiple_of,
    swizzle_period,
};
pub use error::ProofError;
pub use obligation::{Discharged, Obligation};
pub use rank::wavefronts_by_rank;
