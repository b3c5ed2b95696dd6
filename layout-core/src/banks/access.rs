//! The kinds of warp access, named as in captured traces: `ld.128`, `st.32`, `ldmatrix.x4.trans`, `cp.async.16`, …
//!
//! What matters to a bank model is how many bytes a lane touches, in which direction, and whether the lanes are cut by
//! width or by 8x8 matrix. `ldmatrix.x2` is two matrices: lanes 0..8 give the rows of the first, lanes 8..16 those of the
//! second, and the addresses of the other lanes are ignored (PTX ISA, section on `ldmatrix`).

use core::fmt;
use core::str::FromStr;

/// How many 8x8 matrices of 16-byte rows an `ldmatrix` or `stmatrix` moves.
///
/// ```
/// use layout_core::banks::{Access, Matrices};
/// let access: Access = "ldmatrix.x2".parse().unwrap();
/// assert_eq!(access, Access::LdMatrix { matrices: Matrices::X2, trans: false });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Matrices {
    /// One matrix; lanes 0..8 give addresses.
    X1,
    /// Two matrices; lanes 0..16 give addresses.
    X2,
    /// Four matrices; all lanes give addresses.
    X4,
}

impl Matrices {
    /// The number of matrices.
    ///
    /// ```
    /// use layout_core::banks::Matrices;
    /// assert_eq!(Matrices::X4.count(), 4);
    /// ```
    pub const fn count(self) -> u32 {
        match self {
            Self::X1 => 1,
            Self::X2 => 2,
            Self::X4 => 4,
        }
    }
}

/// A kind of warp-wide access.
///
/// ```
/// use layout_core::banks::Access;
/// assert_eq!("cp.async.16".parse(), Ok(Access::CpAsync16));
/// assert_eq!(Access::Ld128.to_string(), "ld.128");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Access {
    /// A load of 1 byte a lane.
    Ld8,
    /// A load of 2 bytes a lane.
    Ld16,
    /// A load of 4 bytes a lane.
    Ld32,
    /// A load of 8 bytes a lane (`ld.shared.v2.b32` or `ld.shared.b64`).
    Ld64,
    /// A load of 16 bytes a lane (`ld.shared.v4.b32`).
    Ld128,
    /// A store of 1 byte a lane.
    St8,
    /// A store of 2 bytes a lane.
    St16,
    /// A store of 4 bytes a lane.
    St32,
    /// A store of 8 bytes a lane.
    St64,
    /// A store of 16 bytes a lane.
    St128,
    /// The shared-memory side of `cp.async` with 4 bytes a lane.
    CpAsync4,
    /// The shared-memory side of `cp.async` with 8 bytes a lane.
    CpAsync8,
    /// The shared-memory side of `cp.async` with 16 bytes a lane.
    CpAsync16,
    /// `ldmatrix` of 16-byte rows.
    LdMatrix {
        /// How many matrices.
        matrices: Matrices,
        /// Whether registers get the transpose; the addresses are the same.
        trans: bool,
    },
    /// `stmatrix` of 16-byte rows (`sm_90`).
    StMatrix {
        /// How many matrices.
        matrices: Matrices,
        /// Whether registers hold the transpose; the addresses are the same.
        trans: bool,
    },
    /// The three source operands of a fused multiply-add: "lane" `i` is operand slot `i`, its "address" a register number.
    Ffma,
}

/// Every access and its name, in the order of the documentation.
const NAMES: [(&str, Access); 26] = [
    ("ld.8", Access::Ld8),
    ("ld.16", Access::Ld16),
    ("ld.32", Access::Ld32),
    ("ld.64", Access::Ld64),
    ("ld.128", Access::Ld128),
    ("st.8", Access::St8),
    ("st.16", Access::St16),
    ("st.32", Access::St32),
    ("st.64", Access::St64),
    ("st.128", Access::St128),
    ("cp.async.4", Access::CpAsync4),
    ("cp.async.8", Access::CpAsync8),
    ("cp.async.16", Access::CpAsync16),
    (
        "ldmatrix.x1",
        Access::LdMatrix {
            matrices: Matrices::X1,
            trans: false,
        },
    ),
    (
        "ldmatrix.x2",
        Access::LdMatrix {
            matrices: Matrices::X2,
            trans: false,
        },
    ),
    (
        "ldmatrix.x4",
        Access::LdMatrix {
            matrices: Matrices::X4,
            trans: false,
        },
    ),
    (
        "ldmatrix.x1.trans",
        Access::LdMatrix {
            matrices: Matrices::X1,
            trans: true,
        },
    ),
    (
        "ldmatrix.x2.trans",
        Access::LdMatrix {
            matrices: Matrices::X2,
            trans: true,
        },
    ),
    (
        "ldmatrix.x4.trans",
        Access::LdMatrix {
            matrices: Matrices::X4,
            trans: true,
        },
    ),
    (
        "stmatrix.x1",
        Access::StMatrix {
            matrices: Matrices::X1,
            trans: false,
        },
    ),
    (
        "stmatrix.x2",
        Access::StMatrix {
            matrices: Matrices::X2,
            trans: false,
        },
    ),
    (
        "stmatrix.x4",
        Access::StMatrix {
            matrices: Matrices::X4,
            trans: false,
        },
    ),
    (
        "stmatrix.x1.trans",
        Access::StMatrix {
            matrices: Matrices::X1,
            trans: true,
        },
    ),
    (
        "stmatrix.x2.trans",
        Access::StMatrix {
            matrices: Matrices::X2,
            trans: true,
        },
    ),
    (
        "stmatrix.x4.trans",
        Access::StMatrix {
            matrices: Matrices::X4,
            trans: true,
        },
    ),
    ("ffma", Access::Ffma),
];

impl Access {
    /// Every access, for listings and tests.
    ///
    /// ```
    /// use layout_core::banks::Access;
    /// assert!(Access::all().all(|access| access.name().parse() == Ok(access)));
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(_, access)| access)
    }

    /// Bytes that one lane touches (one matrix row for `ldmatrix` and `stmatrix`; 1 register for `ffma`).
    ///
    /// ```
    /// use layout_core::banks::{Access, Matrices};
    /// assert_eq!(Access::Ld64.bytes(), 8);
    /// assert_eq!(Access::LdMatrix { matrices: Matrices::X4, trans: true }.bytes(), 16);
    /// ```
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Ld8 | Self::St8 | Self::Ffma => 1,
            Self::Ld16 | Self::St16 => 2,
            Self::Ld32 | Self::St32 | Self::CpAsync4 => 4,
            Self::Ld64 | Self::St64 | Self::CpAsync8 => 8,
            Self::Ld128
            | Self::St128
            | Self::CpAsync16
            | Self::LdMatrix { .. }
            | Self::StMatrix { .. } => 16,
        }
    }

    /// Whether the access reads (`ld.*`, `ldmatrix`, `ffma`), rather than writes.
    ///
    /// ```
    /// use layout_core::banks::Access;
    /// assert!(Access::Ld32.is_load() && !Access::CpAsync16.is_load());
    /// ```
    pub const fn is_load(self) -> bool {
        matches!(
            self,
            Self::Ld8
                | Self::Ld16
                | Self::Ld32
                | Self::Ld64
                | Self::Ld128
                | Self::LdMatrix { .. }
                | Self::Ffma
        )
    }

    /// The number of matrices, for `ldmatrix` and `stmatrix`.
    ///
    /// ```
    /// use layout_core::banks::{Access, Matrices};
    /// let access: Access = "stmatrix.x2.trans".parse().unwrap();
    /// assert_eq!((access.matrices(), Access::Ld32.matrices()), (Some(Matrices::X2), None));
    /// ```
    pub const fn matrices(self) -> Option<Matrices> {
        match self {
            Self::LdMatrix { matrices, .. } | Self::StMatrix { matrices, .. } => Some(matrices),
            _ => None,
        }
    }

    /// How many lanes give an address: 8 for each matrix, 3 operand slots for `ffma`, else 32.
    ///
    /// ```
    /// use layout_core::banks::Access;
    /// let access: Access = "ldmatrix.x2".parse().unwrap();
    /// assert_eq!([access, Access::Ld32, Access::Ffma].map(Access::lanes), [16, 32, 3]);
    /// ```
    pub const fn lanes(self) -> u32 {
        match self {
            Self::LdMatrix { matrices, .. } | Self::StMatrix { matrices, .. } => {
                8 * matrices.count()
            }
            Self::Ffma => 3,
            _ => 32,
        }
    }

    /// Whether the pair rule applies: plain loads of 8 and 16 bytes.
    ///
    /// ```
    /// use layout_core::banks::Access;
    /// assert!(Access::Ld128.has_pair_rule());
    /// assert!(!Access::Ld32.has_pair_rule() && !Access::St128.has_pair_rule());
    /// ```
    pub const fn has_pair_rule(self) -> bool {
        matches!(self, Self::Ld64 | Self::Ld128)
    }

    /// The name in traces and on the command line.
    ///
    /// ```
    /// use layout_core::banks::{Access, Matrices};
    /// assert_eq!(Access::LdMatrix { matrices: Matrices::X4, trans: true }.name(), "ldmatrix.x4.trans");
    /// ```
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|&&(_, access)| access == self)
            .map_or("", |&(name, _)| name)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is not an access.
///
/// ```
/// use layout_core::banks::{Access, UnknownAccess};
/// assert_eq!("ld.256".parse::<Access>(), Err(UnknownAccess));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct UnknownAccess;

impl UnknownAccess {
    /// A stable `snake_case` name for the kind of error.
    ///
    /// ```
    /// use layout_core::banks::UnknownAccess;
    /// assert_eq!(UnknownAccess.code(), "unknown_access");
    /// ```
    pub const fn code(&self) -> &'static str {
        "unknown_access"
    }
}

impl fmt::Display for UnknownAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown access; known are")?;
        for (i, (name, _)) in NAMES.iter().enumerate() {
            write!(f, "{} {name}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownAccess {}

impl FromStr for Access {
    type Err = UnknownAccess;

    fn from_str(s: &str) -> Result<Self, UnknownAccess> {
        let s = s.trim();
        NAMES
            .iter()
            .find(|&&(name, _)| name == s)
            .map(|&(_, access)| access)
            .ok_or(UnknownAccess)
    }
}
