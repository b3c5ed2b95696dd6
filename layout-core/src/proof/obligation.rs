//! Obligations as data: what a plan must prove before it is emitted.
//!
//! A plan lists its obligations next to the layouts they are about; the list is discharged before code is emitted. For example two
//! stages of a buffer owe `Disjoint`, their distance owes `Multiple` of the swizzle's period, and each access to them owes
//! `Wavefronts`.

use crate::banks::Access;
use crate::layout::Layout;
use crate::swizzled::Swizzled;

use super::access::refusal;
use super::{
    Proof, ProofError, Region, aligned, bijective, carry_free, covers_exactly_once, disjoint,
    injective, multiple_of, prove_access,
};

/// A claim that must be proven.
///
/// ```
/// use layout_core::proof::Obligation;
/// // The distance of two stages and the period of the swizzle.
/// assert!(Obligation::Multiple { value: 8192, of: 1024 }.discharge().is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Obligation {
    /// `map`, (thread, value) to element, covers `0..tile` exactly once.
    Coverage {
        /// Elements of the tile.
        tile: i64,
        /// (thread, value) to element.
        map: Layout,
    },
    /// `map` is a bijection onto `0..size`.
    Bijective {
        /// The map.
        map: Swizzled,
    },
    /// `map` sends different indices to different offsets (padding allowed).
    Injective {
        /// The map.
        map: Swizzled,
    },
    /// Two regions of shared memory share no byte.
    Disjoint {
        /// One.
        a: Region,
        /// The other.
        b: Region,
    },
    /// A base, stage or sub-tile is a multiple of the swizzle's period, a pitch of 16 bytes, and so on.
    Multiple {
        /// The value.
        value: i64,
        /// What it is a multiple of.
        of: i64,
    },
    /// Every byte offset of `map` is a multiple of the access width.
    Aligned {
        /// The access.
        access: Access,
        /// Anything to byte offsets.
        map: Swizzled,
    },
    /// Lane, loop, warp and stage parts of an address do not carry into each other, nor into `base`.
    CarryFree {
        /// A constant part.
        base: i64,
        /// The parts, one mode each.
        parts: Layout,
    },
    /// An access costs at most `claimed` wavefronts, for every value of the rest.
    Wavefronts {
        /// The access.
        access: Access,
        /// (lane, rest) to byte offset.
        map: Swizzled,
        /// Wavefronts at most.
        claimed: u32,
    },
}

/// A claim that has been proven.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::Obligation};
/// let map = Swizzled::parse("32:4").unwrap();
/// let claim = Obligation::Wavefronts { access: Access::Ld32, map, claimed: 1 };
/// assert_eq!(claim.discharge().unwrap().proof.unwrap().wavefronts, 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Discharged {
    /// The wavefront count and how it was proven, where the claim was about one.
    pub proof: Option<Proof>,
}

impl Obligation {
    /// A short name: `coverage`, `bijective`, …
    ///
    /// ```
    /// use layout_core::proof::Obligation;
    /// assert_eq!(Obligation::Multiple { value: 8, of: 4 }.name(), "multiple");
    /// ```
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Coverage { .. } => "coverage",
            Self::Bijective { .. } => "bijective",
            Self::Injective { .. } => "injective",
            Self::Disjoint { .. } => "disjoint",
            Self::Multiple { .. } => "multiple",
            Self::Aligned { .. } => "aligned",
            Self::CarryFree { .. } => "carry_free",
            Self::Wavefronts { .. } => "wavefronts",
        }
    }

    /// Proves the claim.
    ///
    /// ```
    /// use layout_core::{Swizzled, banks::Access, proof::{Obligation, ProofError}};
    /// let map = Swizzled::parse("32:128").unwrap();
    /// let claim = Obligation::Wavefronts { access: Access::Ld32, map, claimed: 1 };
    /// assert!(matches!(
    ///     claim.discharge(),
    ///     Err(ProofError::TooManyWavefronts { wavefronts: 32, lanes: (0, 1), bank: 0, .. })
    /// ));
    /// ```
    ///
    /// # Errors
    /// The refutation: lanes, banks, values.
    pub const fn discharge(&self) -> Result<Discharged, ProofError> {
        let result = match self {
            Self::Coverage { tile, map } => covers_exactly_once(*tile, map),
            Self::Bijective { map } => bijective(map),
            Self::Injective { map } => injective(map),
            Self::Disjoint { a, b } => disjoint(*a, *b),
            Self::Multiple { value, of } => multiple_of(*value, *of),
            Self::Aligned { access, map } => aligned(*access, map),
            Self::CarryFree { base, parts } => carry_free(*base, parts),
            Self::Wavefronts {
                access,
                map,
                claimed,
            } => {
                return match prove_access(*access, map) {
                    Ok(proof) if proof.wavefronts <= *claimed => {
                        Ok(Discharged { proof: Some(proof) })
                    }
                    Ok(proof) => Err(refusal(*access, map, &proof, *claimed)),
                    Err(error) => Err(error),
                };
            }
        };
        match result {
            Ok(()) => Ok(Discharged { proof: None }),
            Err(error) => Err(error),
        }
    }
}
