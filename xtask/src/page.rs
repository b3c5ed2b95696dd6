//! The page in the browser: the crate `web` as WebAssembly and `web/page/`, as one file, `target/page/index.html`.
//!
//! The file has two modules: that of layouts draws the first picture; that of kernels has the code generator and the emulator, and starts when a
//! kernel is asked for. Both are text in it ([`pack`]).
//!
//! The standard library is built along, from rustup's component `rust-src` or, where rustup can't fetch it, from Debian's `rustc-web` and
//! `rust-web-src` with `wasm-ld` of `lld` as the linker. The modules are a tenth smaller for it: a panic, of which the page shows that it
//! happened, ends the instance without writing its message first, and the library's own functions are those for size. That needs unstable options
//! of cargo and of the compiler.

mod pack;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{packages, workspace_root};

/// The target of the module.
const TARGET: &str = "wasm32-unknown-unknown";
/// Where the sources of the standard library are, from a compiler's folder of libraries.
const SOURCES: &str = "src/rust/library/std";
/// Debian's compiler, and where the sources of its standard library are.
const DEBIAN: (&str, &str) = ("/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library/std");
/// Flags for the modules: a panic is a trap and nothing else.
const FLAGS: &str = "-Zunstable-options -Cpanic=immediate-abort";
/// The most bytes of the page.
const BUDGET: usize = 2_000_000;
/// What [`build`] says of a page beyond its budget.
pub(crate) const TOO_LARGE: &str = "the page is larger than 2 MB";
/// How long rustup may take to fetch the sources.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the build in Debian's way needs: a file that shows that it is there, and its package.
const NEEDED: [(&str, &str); 3] = [
    (DEBIAN.0, "rustc-web"),
    (DEBIAN.1, "rust-web-src"),
    ("/usr/bin/wasm-ld", "lld"),
];

/// What the test of the page needs besides.
const BROWSER: [(&str, &str); 2] = [
    ("/usr/bin/chromium", "chromium"),
    ("/usr/bin/chromedriver", "chromium-driver"),
];

/// Who compiles to WebAssembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Toolchain {
    /// The installed toolchain with the sources that rustup added.
    Rustup,
    /// Debian's compiler with its sources.
    Debian,
}

/// Builds the page and returns its path.
///
/// # Errors
///
/// A sentence for the developer: what is missing and what to install, what did not compile, or that the page is too large.
pub(crate) fn build() -> Result<PathBuf, String> {
    let root = workspace_root();
    let toolchain = toolchain()?;
    eprintln!(
        "the page is compiled by {}",
        match toolchain {
            Toolchain::Rustup => "the toolchain of rustup",
            Toolchain::Debian => "Debian's rustc-web",
        }
    );
    let folder = root.join("target/page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let module = |feature| pack::text(&compile(&root, toolchain, feature)?);
    let page = assemble(
        &root,
        &[
            ("/*LAYOUTS*/", &module("layouts")?),
            ("/*KERNELS*/", &module("kernels")?),
        ],
    )?;
    let path = folder.join("index.html");
    fs::write(&path, &page).map_err(|error| format!("{}: {error}", path.display()))?;
    let bytes = page.len();
    eprintln!("{}: {bytes} bytes of at most {BUDGET}", path.display());
    if bytes <= BUDGET {
        Ok(path)
    } else {
        Err(TOO_LARGE.to_owned())
    }
}

/// Makes sure that there is a compiler for the page.
///
/// # Errors
///
/// A sentence for the developer: what to install.
pub(crate) fn compiler() -> Result<(), String> {
    toolchain().map(|_| ())
}

/// Makes sure that there is a browser to test the page with.
///
/// # Errors
///
/// A sentence for the developer: what to install.
pub(crate) fn browser() -> Result<(), String> {
    packages::provide(&BROWSER)
}

/// Who compiles: what is there, else what can be had.
fn toolchain() -> Result<Toolchain, String> {
    if crate::steps::beside_compiler(SOURCES) {
        return Ok(Toolchain::Rustup);
    }
    if packages::missing(&NEEDED).is_empty() {
        return Ok(Toolchain::Debian);
    }
    if add_sources() && crate::steps::beside_compiler(SOURCES) {
        return Ok(Toolchain::Rustup);
    }
    packages::provide(&NEEDED)
        .map(|()| Toolchain::Debian)
        .map_err(|why| format!("`rustup component add rust-src` for the page, or {why}"))
}

/// Lets rustup fetch the sources; one that can't reach its server tries for minutes.
fn add_sources() -> bool {
    let started = Instant::now();
    let child = Command::new("rustup")
        .args(["component", "add", "rust-src"])
        .current_dir(workspace_root())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(200));
            }
            _ => {
                // One that has ended by itself in the meantime is no failure.
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Compiles the page's crate with one of its features; the result is the module as the linker wrote it.
fn compile(root: &Path, toolchain: Toolchain, feature: &str) -> Result<Vec<u8>, String> {
    // A folder of its own: another compiler's files would make cargo build everything anew, again and again.
    let folder = root.join("target/page-build");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Compiled beside a library for Rust, as a manifest can ask for, the module would be an eighth larger.
    command
        .args([
            "rustc",
            "--package",
            "tilewright-web",
            "--lib",
            "--crate-type",
            "cdylib",
        ])
        .args(["--profile", "page", "--no-default-features", "--features"])
        .arg(feature)
        .args(["--target", TARGET, "--target-dir"])
        .arg(&folder)
        .arg("-Zbuild-std=std,panic_abort")
        .arg("-Zbuild-std-features=optimize_for_size")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .current_dir(root);
    if toolchain == Toolchain::Debian {
        command
            .env("RUSTC", DEBIAN.0)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
            .env_remove("RUSTUP_TOOLCHAIN");
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("the page does not compile: {status}")),
        Err(error) => return Err(format!("cargo does not start: {error}")),
    }
    let path = folder.join(TARGET).join("page/tilewright_web.wasm");
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The page with its style, its scripts and its modules, each in place of a word.
fn assemble(root: &Path, modules: &[(&str, &str)]) -> Result<String, String> {
    let folder = root.join("web/page");
    let read = |path: PathBuf| {
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let script = [
        root.join("workbench/src/picture/page.js"),
        folder.join("engine.js"),
        folder.join("page.js"),
    ]
    .into_iter()
    .map(read)
    .collect::<Result<Vec<_>, _>>()?
    .join("\n");
    let page = read(folder.join("index.html"))?
        .replace("/*STYLE*/", &read(folder.join("style.css"))?)
        .replace("/*SCRIPT*/", &script);
    Ok(modules
        .iter()
        .fold(page, |page, (word, text)| page.replace(word, text)))
}
