//! NVIDIA's assembler as an independent judge of PTX.
//!
//! ptxas needs no GPU: it says whether a text is PTX that a given architecture accepts, and what each kernel costs there in
//! registers, shared memory and spills. [`find`] looks for it in `PTXAS`, in `target/tools` (where `cargo xtask ptxas` puts
//! it), in `PATH` and in `/usr/local/cuda/bin`; [`assemble`] runs it in a temporary folder and reads what `-v` prints:
//!
//! ```text
//! ptxas info    : Compiling entry function 'gemm' for 'sm_90'
//! ptxas info    : Function properties for gemm
//!     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used 80 registers, used 1 barriers, 16384 bytes smem
//! ```
//!
//! Tests start with [`for_tests`]: a missing assembler is an error there, unless `TILEWRIGHT_NO_PTXAS=1` says that it is
//! meant to be missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, fs, io};

/// Where `cargo xtask ptxas` puts the assembler, below the workspace's target folder.
const CACHED: &str = "tools/ptxas-13.0.88/ptxas";

/// An assembler that has been started once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    path: PathBuf,
    version: String,
}

/// What a text became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// One entry a kernel, in the order of the assembler's report.
    pub kernels: Vec<Resources>,
    /// Warnings, one a line.
    pub warnings: Vec<String>,
    /// The machine code (an ELF file).
    pub cubin: Vec<u8>,
}

/// What one kernel needs on one architecture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Resources {
    /// The kernel's name.
    pub kernel: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Bytes of shared memory that the kernel declares itself (dynamic shared memory is not in it).
    pub shared_bytes: u32,
    /// Bytes of local memory of a thread, spills and arrays.
    pub stack_bytes: u32,
    /// Bytes stored by spills, over the instructions of the kernel.
    pub spill_store_bytes: u32,
    /// Bytes loaded by spills, over the instructions of the kernel.
    pub spill_load_bytes: u32,
    /// Bytes of constant memory, parameters included; 0 where the assembler does not say.
    pub const_bytes: u32,
}

impl Resources {
    /// Whether registers are spilled to memory.
    pub fn spills(&self) -> bool {
        self.spill_store_bytes + self.spill_load_bytes > 0
    }
}

/// Why a text was not assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PtxasError {
    /// There is no assembler.
    NotFound {
        /// Where it was looked for.
        tried: Vec<String>,
    },
    /// The file that `PTXAS` names is not an assembler.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// A temporary file could not be written or read.
    Io {
        /// The system's reason.
        reason: String,
    },
    /// The assembler refused the text.
    Rejected {
        /// The architecture.
        arch: String,
        /// Its messages, with the lines of the text.
        log: String,
    },
    /// The assembler's report could not be understood.
    Report {
        /// The report.
        log: String,
    },
}

impl PtxasError {
    /// A stable name of the kind of error, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "no_ptxas",
            Self::Unusable { .. } => "unusable_ptxas",
            Self::Io { .. } => "io",
            Self::Rejected { .. } => "ptx_rejected",
            Self::Report { .. } => "ptxas_report",
        }
    }
}

impl fmt::Display for PtxasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { tried } => write!(
                f,
                "there is no ptxas here; `cargo xtask ptxas` fetches it, or set PTXAS to its path (tried: {})",
                tried.join(", ")
            ),
            Self::Unusable { path, reason } => {
                write!(f, "{} can't be used as ptxas: {reason}", path.display())
            }
            Self::Io { reason } => write!(f, "ptxas could not be given its files: {reason}"),
            Self::Rejected { arch, log } => write!(f, "ptxas refuses the PTX for {arch}:\n{log}"),
            Self::Report { log } => {
                write!(f, "the report of ptxas could not be understood:\n{log}")
            }
        }
    }
}

impl std::error::Error for PtxasError {}

impl From<io::Error> for PtxasError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            reason: error.to_string(),
        }
    }
}

/// The first assembler of: `PTXAS`, `target/tools`, `PATH`, `/usr/local/cuda/bin`.
///
/// # Errors
///
/// [`PtxasError::NotFound`], or [`PtxasError::Unusable`] if `PTXAS` is set to something else.
pub fn find() -> Result<Ptxas, PtxasError> {
    if let Some(path) = env::var_os("PTXAS").filter(|value| !value.is_empty()) {
        let path = PathBuf::from(path);
        return start(&path).map_err(|reason| PtxasError::Unusable { path, reason });
    }
    let places = places();
    let found = places
        .iter()
        .filter(|path| path.is_file())
        .find_map(|path| start(path).ok());
    found.ok_or_else(|| PtxasError::NotFound {
        tried: std::iter::once("PTXAS".to_owned())
            .chain(places.iter().map(|path| path.display().to_string()))
            .collect(),
    })
}

/// What a test does first: `None` if `TILEWRIGHT_NO_PTXAS=1` leaves the assembler out, which the test then says.
///
/// # Errors
///
/// As [`find`], for the test to fail with.
pub fn for_tests() -> Result<Option<Ptxas>, PtxasError> {
    if env::var_os("TILEWRIGHT_NO_PTXAS").as_deref() == Some(OsStr::new("1")) {
        return Ok(None);
    }
    find().map(Some)
}

/// Assembles `ptx` for `arch` (such as `sm_90` or `sm_90a`) with the assembler that [`find`] finds.
///
/// # Errors
///
/// As [`find`] and [`Ptxas::assemble`].
pub fn assemble(ptx: &str, arch: &str) -> Result<Assembly, PtxasError> {
    find()?.assemble(ptx, arch)
}

impl Ptxas {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The release, such as `13.0, V13.0.88`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Assembles `ptx` for `arch` (such as `sm_90` or `sm_90a`).
    ///
    /// # Errors
    ///
    /// [`PtxasError::Rejected`] with the assembler's messages, [`PtxasError::Io`] or [`PtxasError::Report`].
    pub fn assemble(&self, ptx: &str, arch: &str) -> Result<Assembly, PtxasError> {
        // A text for one architecture's own instructions is assembled for those.
        let own = format!("{arch}a");
        let target = format!(".target {own}");
        let arch = if ptx.lines().any(|line| line.trim() == target) {
            &own
        } else {
            arch
        };
        let folder = tempfile::tempdir()?;
        // A relative name, so that messages show the text's line and not the temporary folder.
        fs::write(folder.path().join("kernel.ptx"), ptx)?;
        let output = Command::new(&self.path)
            .args(["-v", "-arch", arch, "kernel.ptx", "-o", "kernel.cubin"])
            .current_dir(folder.path())
            .output()?;
        let mut log = String::from_utf8_lossy(&output.stderr).into_owned();
        log.push_str(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            return Err(PtxasError::Rejected {
                arch: arch.to_owned(),
                log: log.trim_end().to_owned(),
            });
        }
        let kernels = read_report(&log).ok_or_else(|| PtxasError::Report { log: log.clone() })?;
        let warnings = log
            .lines()
            .filter(|line| line.contains("warning"))
            .map(str::to_owned)
            .collect();
        Ok(Assembly {
            kernels,
            warnings,
            cubin: fs::read(folder.path().join("kernel.cubin"))?,
        })
    }
}

/// Runs `path --version` and reads the release from its last lines but one: `Cuda compilation tools, release 13.0, V…`.
fn start(path: &Path) -> Result<Ptxas, String> {
    // A relative PTXAS would be looked up anew from the temporary folder.
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let output = Command::new(&path)
        .arg("--version")
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let release = text
        .lines()
        .find_map(|line| line.split_once("release "))
        .map(|(_, release)| release.trim().to_owned());
    match release {
        Some(version) if output.status.success() && text.contains("assembler") => {
            Ok(Ptxas { path, version })
        }
        _ => Err(format!(
            "`--version` does not answer as an assembler would ({})",
            output.status
        )),
    }
}

/// Where an assembler may lie, `PTXAS` apart.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    // Tests and the command lie in target/PROFILE or below; under cargo, the crate's folder lies in the workspace.
    for start in [
        env::current_exe().ok(),
        env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
    ]
    .into_iter()
    .flatten()
    {
        for folder in start.ancestors() {
            for place in [folder.join(CACHED), folder.join("target").join(CACHED)] {
                if place.is_file() && !places.contains(&place) {
                    places.push(place);
                }
            }
        }
    }
    if places.is_empty() {
        places.push(Path::new("target").join(CACHED));
    }
    let name = format!("ptxas{}", env::consts::EXE_SUFFIX);
    if let Some(path) = env::var_os("PATH") {
        places.extend(
            env::split_paths(&path)
                .map(|folder| folder.join(&name))
                .filter(|place| place.is_file()),
        );
    }
    places.push(Path::new("/usr/local/cuda/bin").join(&name));
    places
}

/// The kernels of a `-v` report; `None` if a line that must hold numbers does not.
fn read_report(log: &str) -> Option<Vec<Resources>> {
    let mut kernels: Vec<Resources> = Vec::new();
    // Whether the properties that follow are those of the last kernel, or of a function that it calls.
    let mut of_kernel = false;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next()?.to_owned();
            kernels.push(Resources {
                kernel,
                ..Resources::default()
            });
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            of_kernel = kernels
                .last()
                .is_some_and(|kernel| kernel.kernel == name.trim());
        } else if line.contains("bytes stack frame") {
            if let Some(kernel) = kernels.last_mut().filter(|_| of_kernel) {
                kernel.stack_bytes = number_before(line, " bytes stack frame")?;
                kernel.spill_store_bytes = number_before(line, " bytes spill stores")?;
                kernel.spill_load_bytes = number_before(line, " bytes spill loads")?;
            }
        } else if line.contains(": Used ") {
            let kernel = kernels.last_mut()?;
            kernel.registers = number_before(line, " registers")?;
            kernel.barriers = number_before(line, " barriers").unwrap_or(0);
            kernel.shared_bytes = number_before(line, " bytes smem").unwrap_or(0);
            let constants = line
                .split(", ")
                .filter(|part| part.contains(" bytes cmem["));
            kernel.const_bytes = constants
                .filter_map(|part| number_before(part, " bytes cmem["))
                .sum();
        }
    }
    Some(kernels)
}

/// The number that ends where `unit` begins.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let before = line.split_once(unit)?.0;
    let digits = before
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |i| i + 1);
    before[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for helper
    96 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for one
    40 bytes stack frame, 36 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 16384 bytes smem, 400 bytes cmem[0], 16 bytes cmem[2]
ptxas info    : Compile time = 11.510 ms
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
";

    #[test]
    fn a_report_is_read() {
        let kernels = read_report(REPORT).expect("readable");
        let one = Resources {
            kernel: "one".to_owned(),
            registers: 255,
            barriers: 2,
            shared_bytes: 16384,
            stack_bytes: 40,
            spill_store_bytes: 36,
            spill_load_bytes: 44,
            const_bytes: 416,
        };
        let two = Resources {
            kernel: "two".to_owned(),
            registers: 12,
            ..Resources::default()
        };
        assert_eq!(kernels, [one, two]);
        assert!(kernels[0].spills() && !kernels[1].spills());
    }

    #[test]
    fn the_assembler_accepts_and_refuses() {
        let Some(ptxas) =
            for_tests().expect("ptxas is here or is left out by TILEWRIGHT_NO_PTXAS=1")
        else {
            println!("no ptxas: not run");
            return;
        };
        let ptx = include_str!("vector_add.ptx");
        for arch in ["sm_75", "sm_90a", "sm_120"] {
            let assembly = ptxas.assemble(ptx, arch).expect("accepted");
            assert_eq!(assembly.kernels.len(), 1, "{assembly:?}");
            let kernel = &assembly.kernels[0];
            assert_eq!(kernel.kernel, "vector_add");
            assert!(
                (4..=32).contains(&kernel.registers) && !kernel.spills(),
                "{kernel:?}"
            );
            assert_eq!(&assembly.cubin[..4], b"\x7fELF");
        }
        match ptxas.assemble(&ptx.replace("fma.rn", "fmad.rn"), "sm_90") {
            Err(PtxasError::Rejected { log, .. }) => assert!(
                log.contains("'fmad'") && log.contains("kernel.ptx, line"),
                "{log}"
            ),
            other => panic!("must be refused: {other:?}"),
        }
    }
}
