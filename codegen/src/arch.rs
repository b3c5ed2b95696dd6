//! NVIDIA architectures: what a kernel is printed for, and how much shared memory its blocks can have.
//!
//! ```
//! use layout_codegen::Arch;
//!
//! let arch: Arch = "sm_90".parse()?;
//! assert_eq!((arch, arch.shared_limit()), (Arch(90), 227 * 1024));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

/// An NVIDIA architecture, as in `sm_90`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Arch(pub u32);

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

impl Arch {
    /// The architectures that kernels are checked for.
    pub const ALL: [Arch; 7] = [
        Arch(75),
        Arch(80),
        Arch(86),
        Arch(89),
        Arch(90),
        Arch(100),
        Arch(120),
    ];

    /// Bytes of shared memory that a block can have (CUDA C++ Programming Guide, technical specifications by compute capability).
    pub const fn shared_limit(self) -> u32 {
        1024 * match self.0 {
            ..80 => 64,
            80 => 163,
            90 | 100 => 227,
            _ => 99,
        }
    }

    /// The lowest PTX version that knows this architecture (PTX ISA, release history of the targets).
    pub fn ptx_version(self) -> &'static str {
        match self.0 {
            ..80 => "6.3",
            80..86 => "7.0",
            86..87 => "7.1",
            87..89 => "7.4",
            89..100 => "7.8",
            100..103 => "8.6",
            _ => "8.7",
        }
    }
}

impl Arch {
    /// This architecture, if kernels are generated for it.
    ///
    /// # Errors
    ///
    /// [`UnknownArch`] with the known ones.
    pub fn known(self) -> Result<Self, UnknownArch> {
        if Self::ALL.contains(&self) {
            Ok(self)
        } else {
            Err(UnknownArch(self.to_string()))
        }
    }
}

impl std::str::FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(s: &str) -> Result<Self, UnknownArch> {
        let number = s.strip_prefix("sm_");
        let number = number.map(|n| n.strip_suffix('a').unwrap_or(n));
        let arch = number.and_then(|n| n.parse().ok()).map(Arch);
        // `sm_90a` and later have the suffix where a kernel needs it; older architectures have no `a`.
        let known = arch.filter(|a| Arch::ALL.contains(a) && (a.0 >= 90 || !s.ends_with('a')));
        known.ok_or_else(|| UnknownArch(s.to_owned()))
    }
}

/// A name that no architecture has for which kernels are generated.
///
/// ```
/// use layout_codegen::Arch;
///
/// let error = "sm_91".parse::<Arch>().unwrap_err();
/// assert_eq!(error.code(), "unknown_arch");
/// assert!(error.to_string().starts_with("there is no architecture `sm_91` here; known are sm_75"));
/// assert_eq!("sm_90a".parse(), Ok(Arch(90)));
/// assert!("sm_80a".parse::<Arch>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownArch(pub String);

impl UnknownArch {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        "unknown_arch"
    }
}

impl fmt::Display for UnknownArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Arch::ALL.iter().map(ToString::to_string).collect();
        write!(
            f,
            "there is no architecture `{}` here; known are {}",
            self.0,
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownArch {}
