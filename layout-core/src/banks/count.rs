//! Counting wavefronts, from the definition: the one function every model goes through.

use core::fmt;

use super::{Access, BankModel, LANES};

/// The most phases an access is cut into: 32 lanes in fours.
const MAX_PHASES: usize = 8;

/// What one phase of an access costs.
///
/// ```
/// use layout_core::banks::{Access, NVIDIA, wavefronts};
/// // Lanes 0 to 15 read words 0, 2, …, 30; lanes 16 to 31 meet the same banks again.
/// let every_second: [i64; 32] = core::array::from_fn(|lane| 8 * lane as i64);
/// let phase = wavefronts(&NVIDIA, Access::Ld32, &every_second).unwrap().phases()[0];
/// assert_eq!((phase.wavefronts, phase.ideal), (2, 1));
/// assert_eq!((phase.bank, phase.offenders), (0, 1 << 16 | 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Phase {
    /// The active lanes of the phase, as a mask.
    pub lanes: u32,
    /// Cycles the phase takes: the most words any bank serves, over its ports; 0 without active lanes.
    pub wavefronts: u32,
    /// Cycles it would take with its words spread evenly; 0 without active lanes.
    pub ideal: u32,
    /// The busiest bank (the lowest, if several are as busy).
    pub bank: u32,
    /// The lanes that access this bank, as a mask. They conflict where `wavefronts > ideal`.
    pub offenders: u32,
}

impl Phase {
    const EMPTY: Self = Self {
        lanes: 0,
        wavefronts: 0,
        ideal: 0,
        bank: 0,
        offenders: 0,
    };
}

/// What an access costs.
///
/// ```
/// use layout_core::banks::{Access, NVIDIA, wavefronts};
/// let row: [i64; 32] = core::array::from_fn(|lane| 16 * lane as i64);
/// let count = wavefronts(&NVIDIA, Access::Ld128, &row).unwrap();
/// assert_eq!((count.wavefronts, count.ideal), (4, 4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Wavefronts {
    /// Cycles of the access: the sum over its phases.
    pub wavefronts: u32,
    /// Cycles of the access without bank conflicts: the sum of the phases' ideals.
    pub ideal: u32,
    phases: [Phase; MAX_PHASES],
    len: u32,
}

impl Wavefronts {
    /// The phases in lane order (after merging by the pair rule), empty ones included.
    ///
    /// ```
    /// use layout_core::banks::{Access, NVIDIA, wavefronts};
    /// let row: [i64; 32] = core::array::from_fn(|lane| 16 * lane as i64);
    /// let count = wavefronts(&NVIDIA, Access::Ld128, &row).unwrap();
    /// assert_eq!(count.phases().len(), 4); // eight lanes each
    /// assert_eq!(count.phases()[1].lanes, 0xff00);
    /// ```
    pub const fn phases(&self) -> &[Phase] {
        self.phases.split_at(self.len as usize).0
    }

    /// Whether the access is conflict-free: no phase exceeds its ideal.
    ///
    /// ```
    /// use layout_core::banks::{Access, NVIDIA, wavefronts};
    /// let stride = |bytes| core::array::from_fn(|lane| bytes * lane as i64);
    /// assert!(wavefronts(&NVIDIA, Access::Ld32, &stride(132)).unwrap().is_conflict_free());
    /// assert!(!wavefronts(&NVIDIA, Access::Ld32, &stride(128)).unwrap().is_conflict_free());
    /// ```
    pub const fn is_conflict_free(&self) -> bool {
        self.wavefronts == self.ideal
    }

    /// The first phase that exceeds its ideal, and its number.
    ///
    /// ```
    /// use layout_core::banks::{Access, NVIDIA, wavefronts};
    /// let mut addresses = core::array::from_fn(|lane| 16 * lane as i64);
    /// addresses[9] = addresses[8] + 128; // the banks of lane 8
    /// let count = wavefronts(&NVIDIA, Access::Ld128, &addresses).unwrap();
    /// let (number, phase) = count.worst().unwrap();
    /// assert_eq!((number, phase.wavefronts, phase.offenders), (1, 2, 1 << 8 | 1 << 9));
    /// ```
    pub const fn worst(&self) -> Option<(usize, Phase)> {
        let mut worst: Option<(usize, Phase)> = None;
        let mut p = 0;
        while p < self.len as usize {
            let phase = self.phases[p];
            let excess = phase.wavefronts - phase.ideal;
            let so_far = match worst {
                Some((_, w)) => w.wavefronts - w.ideal,
                None => 0,
            };
            if excess > so_far {
                worst = Some((p, phase));
            }
            p += 1;
        }
        worst
    }
}

/// The errors of a wavefront count.
///
/// ```
/// use layout_core::banks::{Access, BankError, NVIDIA, wavefronts};
/// let error = wavefronts(&NVIDIA, Access::Ld64, &[4; 32]).unwrap_err();
/// assert_eq!(error, BankError::Misaligned { lane: 0, address: 4, bytes: 8 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum BankError {
    /// The model has no such access.
    Unsupported {
        /// The access.
        access: Access,
        /// The model's name.
        model: &'static str,
    },
    /// An address is not a multiple of the access width: the hardware faults.
    Misaligned {
        /// The lane.
        lane: u32,
        /// Its address in bytes.
        address: i64,
        /// The access width in bytes.
        bytes: u32,
    },
    /// An address below -1 (which alone means inactive).
    NegativeAddress {
        /// The lane.
        lane: u32,
        /// Its address.
        address: i64,
    },
}

impl BankError {
    /// A stable `snake_case` name for the kind of error.
    ///
    /// ```
    /// use layout_core::banks::{Access, NVIDIA, wavefronts};
    /// assert_eq!(wavefronts(&NVIDIA, Access::Ld64, &[4; 32]).unwrap_err().code(), "misaligned");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported_access",
            Self::Misaligned { .. } => "misaligned",
            Self::NegativeAddress { .. } => "negative_address",
        }
    }
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unsupported { access, model } => {
                write!(f, "the {model} model has no {access} access")
            }
            Self::Misaligned {
                lane,
                address,
                bytes,
            } => {
                write!(
                    f,
                    "lane {lane} asks for byte {address}, which is not a multiple of the access width {bytes}"
                )
            }
            Self::NegativeAddress { lane, address } => {
                write!(
                    f,
                    "lane {lane} has address {address}: addresses start at 0, and -1 means inactive"
                )
            }
        }
    }
}

impl core::error::Error for BankError {}

const fn supports(model: &BankModel, access: Access) -> bool {
    match access {
        Access::Ffma => model.registers,
        Access::LdMatrix { .. }
        | Access::StMatrix { .. }
        | Access::CpAsync4
        | Access::CpAsync8
        | Access::CpAsync16 => model.matrices,
        _ => !model.registers,
    }
}

/// Whether lanes `l` and `l ^ distance` have the same address wherever both are active.
const fn neighbours_agree(addresses: &[i64; LANES], distance: usize) -> bool {
    let mut lane = 0;
    while lane < LANES {
        let (a, b) = (addresses[lane], addresses[lane ^ distance]);
        if a >= 0 && b >= 0 && a != b {
            return false;
        }
        lane += 1;
    }
    true
}

/// Lanes of one phase of this access, after the pair rule has merged phases.
///
/// ```
/// use layout_core::banks::{Access, NVIDIA, effective_phase_lanes};
/// let row = core::array::from_fn(|lane| 8 * lane as i64);
/// assert_eq!(effective_phase_lanes(&NVIDIA, Access::Ld64, &row), 16);
/// // Neighbours read the same 8 bytes: two phases become one.
/// let pairs = core::array::from_fn(|lane| 8 * (lane as i64 / 2));
/// assert_eq!(effective_phase_lanes(&NVIDIA, Access::Ld64, &pairs), 32);
/// ```
pub const fn effective_phase_lanes(
    model: &BankModel,
    access: Access,
    addresses: &[i64; LANES],
) -> u32 {
    if access.matrices().is_some() {
        return 8;
    }
    let lanes = model.phase_lanes[access.bytes().trailing_zeros() as usize];
    if model.pair_rule
        && access.has_pair_rule()
        && (neighbours_agree(addresses, 1) || neighbours_agree(addresses, 2))
    {
        return 2 * lanes;
    }
    lanes
}

/// What the access costs on this model. `addresses[l]` is the byte offset of lane `l`, -1 where it is inactive; `ldmatrix.x1`
/// and `.x2` ignore the lanes that give no address. Register models take register numbers in slots 0..3 instead.
///
/// ```
/// use layout_core::banks::{AMD_GCN, Access, NVIDIA, wavefronts};
/// let column = core::array::from_fn(|lane| 64 * lane as i64);
/// assert_eq!(wavefronts(&NVIDIA, Access::Ld32, &column).unwrap().wavefronts, 16);
/// assert_eq!(wavefronts(&AMD_GCN, Access::Ld32, &column).unwrap().wavefronts, 16);
/// ```
///
/// # Errors
/// [`BankError`]: an access the model lacks, a misaligned or negative address.
pub const fn wavefronts(
    model: &BankModel,
    access: Access,
    addresses: &[i64; LANES],
) -> Result<Wavefronts, BankError> {
    if !supports(model, access) {
        return Err(BankError::Unsupported {
            access,
            model: model.name,
        });
    }
    let bytes = access.bytes() as i64;
    let count = access.lanes() as usize;
    let mut lane = 0;
    while lane < count {
        let address = addresses[lane];
        if address < -1 {
            return Err(BankError::NegativeAddress {
                lane: lane as u32,
                address,
            });
        }
        if address >= 0 && address % bytes != 0 {
            return Err(BankError::Misaligned {
                lane: lane as u32,
                address,
                bytes: access.bytes(),
            });
        }
        lane += 1;
    }
    let step = effective_phase_lanes(model, access, addresses) as usize;
    let mut total = Wavefronts {
        wavefronts: 0,
        ideal: 0,
        phases: [Phase::EMPTY; MAX_PHASES],
        len: 0,
    };
    let mut first = 0;
    while first < count {
        let last = if first + step < count {
            first + step
        } else {
            count
        };
        let phase = count_phase(model, bytes, addresses, first, last);
        total.wavefronts += phase.wavefronts;
        total.ideal += phase.ideal;
        total.phases[total.len as usize] = phase;
        total.len += 1;
        first += step;
    }
    Ok(total)
}

const fn count_phase(
    model: &BankModel,
    bytes: i64,
    addresses: &[i64; LANES],
    first: usize,
    last: usize,
) -> Phase {
    let word = model.word_bytes as i64;
    let words_each = if bytes > word { bytes / word } else { 1 };
    let mut served = [0_u32; 32]; // different words asked of each bank
    let mut asking = [0_u32; 32]; // the lanes that ask it
    let mut lanes = 0_u32;
    let mut words = 0_u32;
    let mut lane = first;
    while lane < last {
        let address = addresses[lane];
        if address < 0 {
            lane += 1;
            continue;
        }
        lanes |= 1 << lane;
        let first_word = address / word;
        // Aligned accesses of one width share all their words or none.
        let mut shared = false;
        let mut other = first;
        while other < lane {
            if addresses[other] >= 0 && addresses[other] / word == first_word {
                shared = true;
                break;
            }
            other += 1;
        }
        let mut k = 0;
        while k < words_each {
            let bank = ((first_word + k) % model.banks as i64) as usize;
            asking[bank] |= 1 << lane;
            if !shared {
                served[bank] += 1;
                words += 1;
            }
            k += 1;
        }
        lane += 1;
    }
    let mut phase = Phase {
        lanes,
        ..Phase::EMPTY
    };
    phase.ideal = words.div_ceil(model.banks * model.ports);
    let mut bank = 0;
    while bank < model.banks as usize {
        let cycles = served[bank].div_ceil(model.ports);
        if cycles > phase.wavefronts {
            phase.wavefronts = cycles;
            phase.bank = bank as u32;
            phase.offenders = asking[bank];
        }
        bank += 1;
    }
    phase
}
