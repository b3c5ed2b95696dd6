//! The page in the browser: the crate `web` as WebAssembly and `web/page/`, as two files in `target/page/`.
//!
//! `index.html` has the module of layouts and all that the first picture needs. `kernels.js` is the module with the code generator and the
//! emulator, which the page loads when a kernel is asked for.
//!
//! The target comes from rustup. Where rustup can't fetch it, Debian's `rustc-web` with `rust-web-src` builds the standard library along, with
//! `wasm-ld` of `lld` as the linker; that needs unstable options of cargo, which is why it is the second choice. A module is compressed and
//! written as text into a script, because a page from a disk may load scripts and nothing else. (Binaryen's `wasm-opt` makes a module smaller,
//! but not the compressed one.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{packages, workspace_root};

/// The target of the module.
const TARGET: &str = "wasm32-unknown-unknown";
/// Debian's compiler, and where the sources of its standard library are.
const DEBIAN: (&str, &str) = ("/usr/bin/rustc", "/usr/lib/rustlib/src/rust/library/std");
/// The two modules: the feature of the crate `web`, the file that it is written into, and the most bytes that this file may have, compressed as
/// a server sends it. The first is what a reader waits for.
const MODULES: [Module; 2] = [
    Module {
        feature: "layouts",
        file: "index.html",
        budget: 500_000,
    },
    Module {
        feature: "kernels",
        file: "kernels.js",
        budget: 900_000,
    },
];
/// How long rustup may take to fetch the target.
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

/// A module of the page and where it goes.
struct Module {
    feature: &'static str,
    file: &'static str,
    budget: usize,
}

/// Who compiles to WebAssembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Toolchain {
    /// The installed toolchain with the target that rustup added.
    Rustup,
    /// Debian's compiler, with the standard library built along.
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
            Toolchain::Debian => "Debian's rustc-web, with its standard library built along",
        }
    );
    let folder = root.join("target/page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut over = Vec::new();
    for module in MODULES {
        let linked = compile(&root, toolchain, module.feature)?;
        let linked = fs::read(&linked).map_err(|e| format!("{}: {e}", linked.display()))?;
        let text = base64(&gzip(&linked)?);
        let written = match module.feature {
            "layouts" => assemble(&root.join("web/page"), &root, &text)?,
            _ => format!("const KERNELS_GZIP_BASE64 = \"{text}\";\n"),
        };
        let path = folder.join(module.file);
        fs::write(&path, &written).map_err(|error| format!("{}: {error}", path.display()))?;
        let sent = gzip(written.as_bytes())?.len();
        eprintln!(
            "{}: {sent} bytes as a server sends it, of at most {}; the module has {}",
            path.display(),
            module.budget,
            linked.len()
        );
        if sent > module.budget {
            over.push(module.file);
        }
    }
    if over.is_empty() {
        Ok(folder.join(MODULES[0].file))
    } else {
        Err(format!("larger than its budget: {}", over.join(", ")))
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
    if crate::steps::installed(TARGET) {
        return Ok(Toolchain::Rustup);
    }
    if packages::missing(&NEEDED).is_empty() {
        return Ok(Toolchain::Debian);
    }
    if add_target() && crate::steps::installed(TARGET) {
        return Ok(Toolchain::Rustup);
    }
    packages::provide(&NEEDED)
        .map(|()| Toolchain::Debian)
        .map_err(|why| format!("`rustup target add {TARGET}` for the page, or {why}"))
}

/// Lets rustup fetch the target; one that can't reach its server tries for minutes.
fn add_target() -> bool {
    let started = Instant::now();
    let child = Command::new("rustup")
        .args(["target", "add", TARGET])
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

/// Compiles the crate `web` with one of its features; the result is the module as the linker wrote it.
fn compile(root: &Path, toolchain: Toolchain, feature: &str) -> Result<PathBuf, String> {
    // A folder of its own: another compiler's files would make cargo build everything anew, again and again.
    let folder = root.join("target/page-build");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--package", "tilewright-web", "--profile", "page"])
        .args(["--no-default-features", "--features", feature])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&folder)
        .current_dir(root);
    if toolchain == Toolchain::Debian {
        command
            .arg("-Zbuild-std=std,panic_abort")
            .env("RUSTC", DEBIAN.0)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
            .env_remove("RUSTUP_TOOLCHAIN");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(folder.join(TARGET).join("page/tilewright_web.wasm")),
        Ok(status) => Err(format!("the page does not compile: {status}")),
        Err(error) => Err(format!("cargo does not start: {error}")),
    }
}

/// The page with its style, its scripts and the module of layouts as text.
fn assemble(folder: &Path, root: &Path, module: &str) -> Result<String, String> {
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
    Ok(read(folder.join("index.html"))?
        .replace("/*STYLE*/", &read(folder.join("style.css"))?)
        .replace("/*SCRIPT*/", &script)
        .replace("/*LAYOUTS*/", module))
}

/// Compressed by the program `gzip`, which every system with a shell has.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    use std::io::Write as _;
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut child = Command::new("gzip")
        .args(["-9", "-n", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let input = child.stdin.take();
    // Written beside the reading: a full pipe would stop both.
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.map_or(Ok(()), |mut input| input.write_all(bytes)));
        let output = child.wait_with_output().map_err(failed);
        match writer.join() {
            Ok(Ok(())) => output,
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err("gzip: its input could not be written".to_owned()),
        }
    })?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("gzip: {}", output.status))
    }
}

/// Base 64 of RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let word = part.iter().enumerate().fold(0u32, |word, (i, &byte)| {
            word | u32::from(byte) << (16 - 8 * i)
        });
        for i in 0..4 {
            text.push(if i <= part.len() {
                char::from(LETTERS[(word >> (18 - 6 * i)) as usize & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let vectors = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (bytes, text) in vectors.into_iter().zip(expected) {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn gzip_compresses_and_is_read_back() {
        let bytes = vec![7; 1 << 20];
        let packed = gzip(&bytes).expect("gzip is there");
        assert!(packed.len() < 4096 && packed.starts_with(&[0x1f, 0x8b]));
    }
}
