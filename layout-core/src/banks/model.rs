//! The models themselves: tables of numbers with their sources.

/// The parameters of a banked memory.
///
/// ```
/// use layout_core::banks::{BankModel, NVIDIA};
/// /// NVIDIA's memory with half of the banks.
/// const HALF: BankModel = BankModel { name: "half", banks: 16, ..NVIDIA };
/// assert_eq!(HALF.word_bytes, 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct BankModel {
    /// Name on the command line.
    pub name: &'static str,
    /// How many banks.
    pub banks: u32,
    /// Bytes of a bank's word (for register files: 1, addresses being register numbers).
    pub word_bytes: u32,
    /// Different words that one bank serves in one wavefront.
    pub ports: u32,
    /// Lanes of one phase, by access width: 1, 2, 4, 8, 16 bytes.
    pub phase_lanes: [u32; 5],
    /// Whether phases of 8- and 16-byte loads merge two by two when neighbours (`l ^ 1`, or `l ^ 2`) agree.
    pub pair_rule: bool,
    /// Whether `ldmatrix`, `stmatrix` and `cp.async` exist.
    pub matrices: bool,
    /// Whether addresses are register numbers, and `ffma` the access.
    pub registers: bool,
}

impl BankModel {
    /// A memory of `banks` banks of words of `word_bytes` bytes with one port each, which looks at 32 lanes at once and has
    /// only plain loads and stores. Set the other fields where the hardware differs.
    ///
    /// ```
    /// use layout_core::banks::{Access, BankModel, wavefronts};
    /// const MODEL: BankModel = BankModel {
    ///     ports: 2,
    ///     ..BankModel::new("two ports", 16, 4)
    /// };
    /// let rows: [i64; 32] = core::array::from_fn(|lane| 4 * lane as i64);
    /// assert_eq!(wavefronts(&MODEL, Access::Ld32, &rows).unwrap().wavefronts, 1);
    /// ```
    pub const fn new(name: &'static str, banks: u32, word_bytes: u32) -> Self {
        Self {
            name,
            banks,
            word_bytes,
            ports: 1,
            phase_lanes: [32; 5],
            pair_rule: false,
            matrices: false,
            registers: false,
        }
    }
}

/// NVIDIA shared memory, `sm_75` to `sm_90`: 32 banks of 4 bytes; phases of 32, 16 and 8 lanes for 4-, 8- and 16-byte
/// accesses, one phase for each matrix of `ldmatrix` and `stmatrix`; loads of 8 and 16 bytes follow the pair rule (measured
/// on H200). Accesses narrower than 4 bytes are taken to have one phase, like those of 4 (not measured).
///
/// ```
/// use layout_core::banks::{Access, NVIDIA, wavefronts};
/// let row = core::array::from_fn(|lane| 16 * lane as i64);
/// assert_eq!(wavefronts(&NVIDIA, Access::Ld128, &row).unwrap().wavefronts, 4);
/// ```
pub const NVIDIA: BankModel = BankModel {
    name: "nvidia",
    banks: 32,
    word_bytes: 4,
    ports: 1,
    phase_lanes: [32, 32, 32, 16, 8],
    pair_rule: true,
    matrices: true,
    registers: false,
};

/// AMD GCN local data share: 32 banks of 4 bytes, checked per half-wavefront of 32 lanes at every width, so that 8
/// bytes a lane cost at least 2 wavefronts. A 64-lane wavefront is two address arrays.
///
/// ```
/// use layout_core::banks::{AMD_GCN, Access, wavefronts};
/// let row = core::array::from_fn(|lane| 8 * lane as i64);
/// assert_eq!(wavefronts(&AMD_GCN, Access::Ld64, &row).unwrap().wavefronts, 2);
/// ```
pub const AMD_GCN: BankModel = BankModel {
    name: "amd-gcn",
    banks: 32,
    word_bytes: 4,
    ports: 1,
    phase_lanes: [32; 5],
    pair_rule: false,
    matrices: false,
    registers: false,
};

/// AMD R700 local data share: 4 banks of 256 entries of 16 bytes (R700 ISA manual, section 2.6.2); four lanes a phase, one
/// for each bank. [`super::r700`] has the write map that never conflicts.
///
/// ```
/// use layout_core::banks::{AMD_R700, Access, wavefronts};
/// let row = core::array::from_fn(|lane| 16 * lane as i64);
/// assert_eq!(wavefronts(&AMD_R700, Access::St128, &row).unwrap().phases().len(), 8);
/// ```
pub const AMD_R700: BankModel = BankModel {
    name: "amd-r700",
    banks: 4,
    word_bytes: 16,
    ports: 1,
    phase_lanes: [4; 5],
    pair_rule: false,
    matrices: false,
    registers: false,
};

/// Maxwell's register file: bank = register mod 4, one register a bank and cycle (maxas). The operand reuse cache needs
/// the instruction before: [`super::registers`].
///
/// ```
/// use layout_core::banks::{MAXWELL_REGISTERS, registers::{Ffma, stalls}};
/// // R64 and R72 share bank 0.
/// assert_eq!(stalls(&MAXWELL_REGISTERS, &[Ffma::new([64, 72, 1])]), 1);
/// ```
pub const MAXWELL_REGISTERS: BankModel = BankModel {
    name: "maxwell-registers",
    banks: 4,
    word_bytes: 1,
    ports: 1,
    phase_lanes: [32; 5],
    pair_rule: false,
    matrices: false,
    registers: true,
};

/// The register file of Volta and later: two 64-bit banks (bank = register mod 2), so that an FFMA waits only if all three
/// sources share a bank.
///
/// ```
/// use layout_core::banks::{VOLTA_REGISTERS, registers::{Ffma, stalls}};
/// assert_eq!(stalls(&VOLTA_REGISTERS, &[Ffma::new([64, 72, 1])]), 0);
/// assert_eq!(stalls(&VOLTA_REGISTERS, &[Ffma::new([64, 72, 2])]), 1);
/// ```
pub const VOLTA_REGISTERS: BankModel = BankModel {
    name: "volta-registers",
    banks: 2,
    ports: 2,
    ..MAXWELL_REGISTERS
};

/// Every model.
///
/// ```
/// use layout_core::banks::MODELS;
/// assert!(MODELS.iter().map(|model| model.name).any(|name| name == "amd-gcn"));
/// ```
pub const MODELS: [&BankModel; 5] = [
    &NVIDIA,
    &AMD_GCN,
    &AMD_R700,
    &MAXWELL_REGISTERS,
    &VOLTA_REGISTERS,
];

/// The model of that name.
///
/// ```
/// use layout_core::banks::{NVIDIA, model_named};
/// assert_eq!(model_named("nvidia"), Some(&NVIDIA));
/// assert_eq!(model_named("unknown"), None);
/// ```
pub fn model_named(name: &str) -> Option<&'static BankModel> {
    MODELS.into_iter().find(|model| model.name == name)
}
