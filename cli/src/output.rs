//! What the command writes: standard output and files.
//!
//! Standard output may be closed early (`tilewright plans | head -1`): that is no error of ours, so nothing here panics on
//! it as `println!` would. A file appears whole or not at all: it is written under a temporary name in the folder it will
//! live in (a rename across file systems is no rename) and renamed when it is complete, so that a failure half-way leaves
//! whatever was there before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::error::CliError;

/// Prints `text` and a line break to standard output.
pub(crate) fn print_line(text: &str) {
    let mut stdout = io::stdout().lock();
    // A reader that has gone away has seen what it wanted.
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Prints one JSON value on one line of standard output.
pub(crate) fn print_json(value: &Value) {
    print_line(&value.to_string());
}

/// Writes `bytes` to `path`: the whole file, or an error and no change.
///
/// A symbolic link is followed; a device or a pipe is written to directly, since a rename would replace it.
///
/// # Errors
///
/// Code `io` with the path and the system's reason.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    try_write(path, bytes).map_err(|error| CliError::io(path, &error))
}

fn try_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let present = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if present.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if present.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let target = if present.is_some() {
        path.canonicalize()?
    } else {
        path.to_path_buf()
    };
    let temporary = temporary_beside(&target)?;
    let result =
        fill(&temporary, bytes, present.as_ref()).and_then(|()| fs::rename(&temporary, &target));
    if result.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Creates `path`, which must not exist, with `bytes` on disk and the permissions of the file that it will replace.
fn fill(path: &Path, bytes: &[u8], replaced: Option<&fs::Metadata>) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if let Some(metadata) = replaced {
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()
}

/// A name in the folder of `path` that no other thread or process uses.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("this path has no file name"))?;
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = format!(
        ".{}.{}-{count}.tmp",
        name.to_string_lossy(),
        std::process::id()
    );
    Ok(path.with_file_name(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    #[test]
    fn a_file_is_created_then_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("kernel.ptx");
        for content in ["one", "and two"] {
            write_atomically(&path, content.as_bytes()).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), content);
        }
        assert_eq!(names(folder.path()), ["kernel.ptx"]);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inside = folder.path().join("folder");
        fs::create_dir(&inside).expect("created");
        for path in [inside.clone(), folder.path().join("missing/kernel.ptx")] {
            let error = write_atomically(&path, b"x").expect_err("must be refused");
            assert_eq!(error.code(), "io");
        }
        assert_eq!(names(folder.path()), ["folder"]);
        assert!(names(&inside).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").expect("written");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        write_atomically(&link, b"new").expect("written");
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("read"), "new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays() {
        write_atomically(Path::new("/dev/null"), b"x").expect("written");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}
