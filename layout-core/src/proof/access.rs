//! The cost of an access, for every value of all modes except the lane.

use crate::banks::{self, Access, LANES, NVIDIA, Phase, Wavefronts};
use crate::f2::LinearMap;
use crate::swizzled::Swizzled;

use super::{ProofError, wavefronts_by_rank};

/// The most cases that [`prove_access`] enumerates.
const CASE_LIMIT: i64 = 1 << 20;

/// How a count was proven.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::{Method, prove_access}};
/// // Rows padded to 36 words: not linear over F2.
/// let padded = Swizzled::parse("(32,4):(144,4)").unwrap();
/// assert_eq!(prove_access(Access::Ld32, &padded).unwrap().method, Method::Translation);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Method {
    /// By rank over F2: the other modes are an xor with a constant.
    Rank,
    /// The other modes add whole words above the bits of the swizzle, which rotates the banks: the lanes were counted once.
    Translation,
    /// All remaining cases were counted.
    Enumeration {
        /// How many.
        cases: i64,
    },
}

/// A proven wavefront count.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::prove_access};
/// let column = Swizzled::parse("(32,8):(128,4)").unwrap();
/// let proof = prove_access(Access::Ld32, &column).unwrap();
/// assert_eq!((proof.wavefronts, proof.least, proof.ideal), (32, 32, 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Proof {
    /// Wavefronts of the access in the worst case.
    pub wavefronts: u32,
    /// Wavefronts of the access in the best case: equal to `wavefronts` where the count does not depend on the rest.
    pub least: u32,
    /// Wavefronts without bank conflicts.
    pub ideal: u32,
    /// How it was proven.
    pub method: Method,
    /// The coordinate of the rest (linear, over the modes after the first) where the worst count was met first.
    pub worst_at: i64,
}

impl Proof {
    /// Whether the access is conflict-free for every value of the rest.
    ///
    /// ```
    /// use layout_core::{Swizzled, banks::Access, proof::prove_access};
    /// let free = |text| {
    ///     prove_access(Access::Ld32, &Swizzled::parse(text).unwrap()).unwrap().is_conflict_free()
    /// };
    /// assert!(free("(32,8):(132,4)") && !free("(32,8):(128,4)"));
    /// ```
    pub const fn is_conflict_free(&self) -> bool {
        self.wavefronts == self.ideal
    }
}

/// Byte offsets of the first `lanes` indices, shifted by `shift` inside the swizzle; the other lanes are inactive.
const fn addresses(map: &Swizzled, lanes: i64, shift: i64) -> Result<[i64; LANES], ProofError> {
    let mut addresses = [-1_i64; LANES];
    let layout = map.layout();
    let mut lane = 0;
    while lane < lanes && lane < LANES as i64 {
        let at = map
            .swizzle()
            .apply(map.offset() + shift + layout.index(lane));
        if at < 0 {
            return Err(ProofError::NegativeOffset {
                index: lane,
                offset: at,
            });
        }
        addresses[lane as usize] = at;
        lane += 1;
    }
    Ok(addresses)
}

/// Wavefronts of one access on NVIDIA shared memory; `map` sends the lane to its byte offset. A map of fewer than 32 lanes leaves
/// the others inactive; of a larger one the first 32 indices count.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::wavefronts};
/// let column = Swizzled::parse("32:128").unwrap();
/// assert_eq!(wavefronts(Access::Ld32, &column).unwrap().wavefronts, 32);
/// ```
///
/// # Errors
/// Misaligned or negative offsets; an access that is not a shared-memory access.
pub const fn wavefronts(access: Access, map: &Swizzled) -> Result<Wavefronts, ProofError> {
    let addresses = match addresses(map, map.size(), 0) {
        Ok(addresses) => addresses,
        Err(error) => return Err(error),
    };
    match banks::wavefronts(&NVIDIA, access, &addresses) {
        Ok(count) => Ok(count),
        Err(error) => Err(ProofError::Bank(error)),
    }
}

/// Two lanes of a phase that need different words of its busiest bank.
const fn offending_pair(access: Access, addresses: &[i64; LANES], phase: &Phase) -> (u32, u32) {
    let unit = if access.bytes() > 4 {
        access.bytes() as i64
    } else {
        4
    };
    let first = if phase.offenders == 0 {
        0
    } else {
        phase.offenders.trailing_zeros()
    };
    let mut lane = first;
    while lane < LANES as u32 {
        if phase.offenders >> lane & 1 == 1
            && addresses[lane as usize] / unit != addresses[first as usize] / unit
        {
            return (first, lane);
        }
        lane += 1;
    }
    (first, first)
}

/// The refusal of a claim: the worst phase at the proof's worst coordinate.
pub(super) const fn refusal(
    access: Access,
    map: &Swizzled,
    proof: &Proof,
    claimed: u32,
) -> ProofError {
    let addresses = match addresses(map, first_mode_size(map), rest_offset(map, proof.worst_at)) {
        Ok(addresses) => addresses,
        Err(error) => return error,
    };
    let count = match banks::wavefronts(&NVIDIA, access, &addresses) {
        Ok(count) => count,
        Err(error) => return ProofError::Bank(error),
    };
    let (phase, worst) = match count.worst() {
        Some(worst) => worst,
        None => (0, count.phases()[0]),
    };
    ProofError::TooManyWavefronts {
        access,
        wavefronts: proof.wavefronts,
        claimed,
        phase: phase as u32,
        lanes: offending_pair(access, &addresses, &worst),
        bank: worst.bank,
        rest: proof.worst_at,
    }
}

const fn first_mode_leaves(map: &Swizzled) -> usize {
    match map.layout().get(0) {
        Ok(mode) if map.layout().depth() > 0 => mode.leaves(),
        _ => map.layout().leaves(),
    }
}

const fn first_mode_size(map: &Swizzled) -> i64 {
    let layout = map.layout();
    let mut size = 1;
    let mut leaf = 0;
    while leaf < first_mode_leaves(map) {
        size *= layout.leaf(leaf).0;
        leaf += 1;
    }
    size
}

/// The offset that the modes after the first add at linear coordinate `rest`.
const fn rest_offset(map: &Swizzled, rest: i64) -> i64 {
    let layout = map.layout();
    let mut left = rest;
    let mut offset = 0;
    let mut leaf = first_mode_leaves(map);
    while leaf < layout.leaves() {
        let (extent, stride) = layout.leaf(leaf);
        offset += left % extent * stride;
        left /= extent;
        leaf += 1;
    }
    offset
}

/// Proves the cost of an access on NVIDIA shared memory for every value of all other modes. `map` sends (lane, rest) to a byte
/// offset. Its first mode is the lane (its size is the lanes of the access: 32, or for `ldmatrix.x1` and `.x2` also 8 and 16);
/// all other modes are warps, registers, loop steps, stages.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::{Method, prove_access}};
/// // 8 rows of 128 bytes, 4 chunks of 16 bytes each; the second mode is the other 4 chunks.
/// let map = Swizzled::parse("Sw<3,4,3> o ((8,4),2):((128,16),64)").unwrap();
/// let proof = prove_access(Access::Ld128, &map).unwrap();
/// assert_eq!((proof.wavefronts, proof.ideal, proof.method), (4, 4, Method::Rank));
/// ```
///
/// # Errors
/// A first mode of another size; offsets that are negative or misaligned for some value; more than 2^20 cases that neither the rank
/// nor a translation covers.
pub const fn prove_access(access: Access, map: &Swizzled) -> Result<Proof, ProofError> {
    let lanes = first_mode_size(map);
    if lanes != LANES as i64 && lanes != access.lanes() as i64 {
        return Err(ProofError::LaneMode {
            access,
            size: lanes,
        });
    }
    if let Some(proof) = by_rank(access, map) {
        return Ok(proof);
    }
    // Modes that add multiples of this commute with the swizzle, rotate the banks by whole words and keep the alignment.
    let mut unit = 1_i64 << map.swizzle().width();
    if unit < 4 {
        unit = 4;
    }
    if unit < access.bytes() as i64 {
        unit = access.bytes() as i64;
    }
    let layout = map.layout();
    let first = first_mode_leaves(map);
    let mut cases = 1_i64;
    let mut leaf = first;
    while leaf < layout.leaves() {
        let (extent, stride) = layout.leaf(leaf);
        if !translates(stride, unit) {
            cases = cases.saturating_mul(extent);
        }
        leaf += 1;
    }
    if cases > CASE_LIMIT {
        return Err(ProofError::TooManyCases {
            cases,
            limit: CASE_LIMIT,
        });
    }
    let method = if cases == 1 {
        Method::Translation
    } else {
        Method::Enumeration { cases }
    };
    let mut proof = Proof {
        wavefronts: 0,
        least: u32::MAX,
        ideal: u32::MAX,
        method,
        worst_at: 0,
    };
    let mut case = 0;
    while case < cases {
        // The case's digits, over the modes that are not translations; `at` is its coordinate over all of them.
        let (mut left, mut shift, mut at, mut scale) = (case, 0, 0, 1_i64);
        let mut leaf = first;
        while leaf < layout.leaves() {
            let (extent, stride) = layout.leaf(leaf);
            if !translates(stride, unit) {
                shift += left % extent * stride;
                at += left % extent * scale;
                left /= extent;
            }
            scale = scale.saturating_mul(extent);
            leaf += 1;
        }
        let addresses = match addresses(map, lanes, shift) {
            Ok(addresses) => addresses,
            Err(error) => return Err(error),
        };
        let count = match banks::wavefronts(&NVIDIA, access, &addresses) {
            Ok(count) => count,
            Err(error) => return Err(ProofError::Bank(error)),
        };
        if count.wavefronts > proof.wavefronts {
            proof.wavefronts = count.wavefronts;
            proof.worst_at = at;
        }
        if count.wavefronts < proof.least {
            proof.least = count.wavefronts;
        }
        if count.ideal < proof.ideal {
            proof.ideal = count.ideal;
        }
        case += 1;
    }
    Ok(proof)
}

/// Whether multiples of this stride leave every count alone. Negative ones are enumerated, since they may leave the buffer.
const fn translates(stride: i64, unit: i64) -> bool {
    stride >= 0 && stride % unit == 0
}

/// The proof by rank, if lanes are linear and the rest never carries into their bits.
const fn by_rank(access: Access, map: &Swizzled) -> Option<Proof> {
    let layout = map.layout();
    let first = first_mode_leaves(map);
    if map.offset() < 0 || matches!(access, Access::Ffma) {
        return None;
    }
    let mut columns = [0_u64; 5];
    let mut count = 0;
    let mut lane_mask = 0_i64;
    // What the offset and the other modes can reach: their own bits while those are apart, else all from the lowest up.
    let mut rest_mask = map.offset();
    let mut rest_sum = map.offset();
    let mut apart = true;
    let mut leaf = 0;
    while leaf < layout.leaves() {
        let (extent, stride) = layout.leaf(leaf);
        if extent == 1 || (stride == 0 && leaf >= first) {
            leaf += 1;
            continue;
        }
        if stride < 0 || stride > 1 << 32 || extent > 1 << 20 {
            return None;
        }
        if leaf < first {
            if !(extent as u64).is_power_of_two() {
                return None;
            }
            let mut bit = 0;
            while bit < extent.trailing_zeros() {
                let image = stride << bit;
                if lane_mask & image != 0 || count == 5 {
                    return None;
                }
                lane_mask |= image;
                columns[count] = map.swizzle().apply(image) as u64;
                count += 1;
                bit += 1;
            }
        } else {
            let reach = (extent - 1) * stride;
            let mask = low_bits(reach) & !((stride & -stride) - 1);
            apart = apart && rest_mask & mask == 0;
            rest_mask |= mask;
            rest_sum += reach;
        }
        leaf += 1;
    }
    if !apart {
        rest_mask = low_bits(rest_sum) & !((rest_mask & -rest_mask) - 1);
    }
    // Aligned for every value: no bit below the access width, before or after the swizzle.
    let low = access.bytes() as i64 - 1;
    if rest_mask & lane_mask != 0
        || (lane_mask | rest_mask | map.swizzle().target_mask()) & low != 0
    {
        return None;
    }
    // ldmatrix.x1 and .x2 read the first lanes' addresses only.
    let mut used = count;
    if access.matrices().is_some() && (access.lanes().trailing_zeros() as usize) < count {
        used = access.lanes().trailing_zeros() as usize;
    }
    let Ok(lanes) = LinearMap::from_columns(columns.split_at(used).0, 63) else {
        return None;
    };
    let (wavefronts, ideal) = wavefronts_by_rank(access, &lanes);
    Some(Proof {
        wavefronts,
        least: wavefronts,
        ideal,
        method: Method::Rank,
        worst_at: 0,
    })
}

/// All bits up to the highest of `x`.
const fn low_bits(x: i64) -> i64 {
    if x <= 0 {
        0
    } else {
        (u64::MAX >> x.leading_zeros()) as i64
    }
}
