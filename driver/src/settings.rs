//! What environment variables say, read once. `docs/driver.md` lists them.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The settings of the process.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// `TILEWRIGHT_DEVICE`: names of devices with commas between; the first is device 0.
    pub(crate) devices: Vec<String>,
    /// `TILEWRIGHT_REPORT`: the file that takes the report; `%p` stands for the process.
    pub(crate) report: Option<PathBuf>,
    /// `TILEWRIGHT_KERNELS`: parts of names; other kernels run without the sanitizer.
    pub(crate) kernels: Vec<String>,
    /// `TILEWRIGHT_SKIP`: parts of names of kernels that do not run, and whose memory is poisoned instead.
    pub(crate) skipped: Vec<String>,
    /// `TILEWRIGHT_SAMPLE`: about so many blocks of a launch are run; 0 for all.
    pub(crate) sample: u64,
    /// `TILEWRIGHT_ALSO`: what is reported only if asked.
    pub(crate) lane_races: bool,
    /// `TILEWRIGHT_TRACE`: every call is printed to standard error.
    trace: bool,
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    (!value.is_empty()).then_some(value)
}

fn list(name: &str) -> Vec<String> {
    let value = variable(name).unwrap_or_default();
    let words = value.split(',').map(str::trim);
    words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// The settings.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let report = variable("TILEWRIGHT_REPORT");
        let process = std::process::id().to_string();
        Settings {
            devices: list("TILEWRIGHT_DEVICE"),
            report: report.map(|path| path.replace("%p", &process).into()),
            kernels: list("TILEWRIGHT_KERNELS"),
            skipped: list("TILEWRIGHT_SKIP"),
            sample: number("TILEWRIGHT_SAMPLE"),
            lane_races: list("TILEWRIGHT_ALSO").iter().any(|w| w == "lane-races"),
            trace: variable("TILEWRIGHT_TRACE").is_some_and(|v| v != "0"),
        }
    })
}

/// The number that a variable holds; 0, with a word about it, for what is none.
fn number(name: &str) -> u64 {
    let Some(text) = variable(name) else { return 0 };
    text.parse().unwrap_or_else(|_| {
        eprintln!("tilewright: {name}={text} is ignored: give a whole number");
        0
    })
}

/// Whether every call is printed.
pub(crate) fn trace() -> bool {
    settings().trace
}
