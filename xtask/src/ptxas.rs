//! NVIDIA's PTX assembler, without a CUDA toolkit.
//!
//! ptxas is published by NVIDIA in the Python wheel `nvidia-cuda-nvcc`. A wheel is a zip file, so `python3 -m pip
//! download` and Python's own `zipfile` are all that it takes: the wheel's checksum is compared with the one pinned here,
//! `bin/ptxas` alone is unpacked (36 MB of the wheel's 110 MB), and the wheel is thrown away. The result stays in
//! `target/tools/ptxas-13.0.88/ptxas`, where the tests and the command `tilewright` look for it as well. It appears there
//! by a rename, so that an interrupted download leaves nothing that looks like a tool.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the wheel and of the assembler in it.
const VERSION: &str = "13.0.88";

/// One wheel of [`VERSION`]: the host's architecture, pip's name of the platform, the wheel's SHA-256.
const WHEELS: [(&str, &str, &str); 2] = [
    (
        "x86_64",
        "manylinux2014_x86_64",
        "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
    ),
    (
        "aarch64",
        "manylinux2014_aarch64",
        "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
    ),
];

/// Compares the SHA-256 of the one wheel in folder `argv[1]` with `argv[2]`, then writes its `bin/ptxas` to `argv[3]`.
const UNPACK: &str = "\
import glob, hashlib, sys, zipfile
folder, expected, output = sys.argv[1:]
[wheel] = glob.glob(folder + '/*.whl')
found = hashlib.sha256(open(wheel, 'rb').read()).hexdigest()
if found != expected:
    sys.exit(f'the wheel has SHA-256 {found}, expected {expected}')
archive = zipfile.ZipFile(wheel)
[member] = [name for name in archive.namelist() if name.endswith('/bin/ptxas')]
open(output, 'wb').write(archive.read(member))
";

/// The path of a ptxas that runs: `PTXAS` if set, else the cached one, else a freshly fetched one.
///
/// # Errors
///
/// A sentence for the developer: what could not be had and what to do instead.
pub(crate) fn provide(workspace: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("PTXAS").filter(|value| !value.is_empty()) {
        let path = PathBuf::from(path);
        return starts(&path)
            .map(|()| path)
            .map_err(|why| format!("PTXAS is set, but {why}"));
    }
    let home = workspace
        .join("target/tools")
        .join(format!("ptxas-{VERSION}"));
    let path = home.join("ptxas");
    if !path.exists() {
        fetch(&home).map_err(|why| {
            format!("ptxas {VERSION} can't be had: {why}\nSet PTXAS=/path/to/ptxas, or leave its tests out with --no-ptxas.")
        })?;
    }
    starts(&path).map(|()| path)
}

/// Whether `path --version` succeeds.
fn starts(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match Command::new(path).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{shown} --version fails: {}", output.status)),
        Err(error) => Err(format!("{shown} does not start: {error}")),
    }
}

/// Downloads the host's wheel and makes `home/ptxas` from it.
fn fetch(home: &Path) -> Result<(), String> {
    let host = std::env::consts::ARCH;
    let wheel = WHEELS
        .iter()
        .find(|(arch, ..)| *arch == host && cfg!(target_os = "linux"));
    let Some((_, platform, sha256)) = wheel else {
        return Err(format!(
            "no wheel is known for {host} {}",
            std::env::consts::OS
        ));
    };
    let parent = home.parent().unwrap_or(home);
    let work = parent.join(format!("fetch-{}", std::process::id()));
    let unpacked = work.join("unpacked");
    fs::create_dir_all(&unpacked).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    let result = download(&work, platform)
        .and_then(|()| {
            python(&[
                "-c",
                UNPACK,
                &text(&work)?,
                sha256,
                &text(&unpacked.join("ptxas"))?,
            ])
        })
        .and_then(|()| make_executable(&unpacked.join("ptxas")))
        .and_then(|()| match fs::rename(&unpacked, home) {
            // Somebody else fetched it in the meantime: theirs is as good.
            Err(_) if home.join("ptxas").exists() => Ok(()),
            Err(error) => Err(format!("{}: {error}", home.display())),
            Ok(()) => Ok(()),
        });
    // What is left is a temporary folder; a failure to remove it must not hide the result.
    let _ = fs::remove_dir_all(&work);
    result
}

fn download(folder: &Path, platform: &str) -> Result<(), String> {
    let requirement = format!("nvidia-cuda-nvcc=={VERSION}");
    eprintln!("fetching {requirement} for {platform}");
    let folder = text(folder)?;
    let options = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--platform",
        platform,
    ];
    python(&[&options[..], &["--dest", &folder, &requirement]].concat())
}

/// Runs `python3 ARGS`; its last line of standard error is the reason of a failure.
fn python(args: &[&str]) -> Result<(), String> {
    let output = Command::new("python3")
        .args(args)
        .output()
        .map_err(|error| format!("python3 does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let reason = log
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !line.starts_with("[notice]"));
    Err(reason
        .unwrap_or("python3 failed without a message")
        .to_owned())
}

fn text(path: &Path) -> Result<String, String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> Result<(), String> {
    Ok(())
}
