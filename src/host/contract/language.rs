//! The languages of a host's source text, and how names are written in each.

use std::fmt;
use std::str::FromStr;

use super::Contract;

/// A language that a launch contract is written in.
///
/// ```text
/// Rust      launches(&Buffers { x, y }, &Scalars { n })?                    a list of Launch { kernel, grid, …, args: vec![Arg::Ptr(x), …] }
/// Cudarc    launch(&module, &stream, Buffers { x, y }, Scalars { n })?      x: &CudaSlice<f32>, y: &mut CudaSlice<f32>
/// C         tilewright_launches(&buffers, &scalars, launch, context)        calls `launch` with what cuLaunchKernel takes
/// Python    launches(x, y, n=n)                                             a list of Launch, args as ctypes values
/// ```
///
/// A text that is for the sizes of one problem, such as that of a product, takes no scalars.
///
/// Each checks the sizes first, by what the kernel was proven for, and then the addresses: alignments, and that what is written overlaps nothing else. Rust returns an error, C a status, Python raises one. Cudarc's
/// buffers have types and lengths too, so that a wrong order of arguments does not compile. A text with tensor maps has one more type, or in C one more function: a host that does not encode them does not compile, or stops at the first one.
///
/// ```
/// use tilewright::host::Language;
///
/// assert_eq!("python".parse(), Ok(Language::Python));
/// let error = "java".parse::<Language>().unwrap_err();
/// assert_eq!(error.to_string(), "a host is written in cudarc, rust, c or python, not in `java`");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// Rust without dependencies.
    Rust,
    /// Rust that launches by the crate cudarc.
    Cudarc,
    /// A header of C99 and C++.
    C,
    /// Python with `ctypes`.
    Python,
}

/// No language of hosts has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownLanguage(pub String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0;
        write!(
            f,
            "a host is written in cudarc, rust, c or python, not in `{name}`"
        )
    }
}

impl std::error::Error for UnknownLanguage {}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        match name {
            "rust" => Ok(Self::Rust),
            "cudarc" => Ok(Self::Cudarc),
            "c" => Ok(Self::C),
            "python" => Ok(Self::Python),
            _ => Err(UnknownLanguage(name.to_owned())),
        }
    }
}

/// Words that name nothing else, and what the Python text itself uses.
const RUST: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop macro match \
    mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe unsized use virtual where while yield";
const C: &str = "alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue decltype default delete do double else \
    enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not nullptr operator or private protected public \
    register restrict return short signed sizeof static struct switch template this throw true try typedef typeid typename typeof union unsigned using virtual \
    void volatile while xor";
const PYTHON: &str = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or \
    pass raise return try while with yield ctypes launches float buffer_bytes grid blocks needed any max zip";

impl Language {
    /// The name of a buffer or a scalar argument as an identifier: in lower case, with underscores behind it where a reserved word or an earlier one has that name.
    pub(super) fn identifier(self, contract: &Contract, name: &str) -> String {
        let reserved = match self {
            Self::Rust | Self::Cudarc => RUST,
            Self::C => C,
            Self::Python => PYTHON,
        };
        let letter = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        };
        let mut taken: Vec<String> = Vec::new();
        let scalars = contract.any_size.iter().flat_map(|any| &any.scalars);
        let scalars = scalars.map(|(name, _)| name);
        for known in contract.buffers.iter().map(|b| &b.name).chain(scalars) {
            let mut own: String = known.chars().map(letter).collect();
            while taken.contains(&own) || reserved.split_whitespace().any(|word| word == own) {
                own.push('_');
            }
            if known == name {
                return own;
            }
            taken.push(own);
        }
        name.to_owned()
    }
}
