//! What the command writes: standard output and files.
//!
//! Standard output may be closed early (`tilewright plans | head -1`). That is not an error of the command, and nothing here
//! panics on it as `println!` would. Any other failure, such as a full disk, is kept, and [`verdict`] applies it to the exit
//! code when the command is done, so that subcommands need not check. A file appears whole or not at all: it is written under
//! a temporary name in its own folder (a rename across file systems is a copy) and renamed when it is complete. After a
//! failure the old content is still there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::error::{CliError, report};

/// What first went wrong with standard output.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Prints `text` and a line break to standard output.
pub(crate) fn print_line(text: &str) {
    let mut stdout = io::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Keeps the error of a write to standard output, if there is one, for [`verdict`].
pub(crate) fn written(result: io::Result<()>) {
    match result {
        // A reader that has gone away has seen what it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            FAILURE.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// How the command exits: with `code`, unless standard output did not take what was printed.
pub(crate) fn verdict(code: ExitCode) -> ExitCode {
    match FAILURE.get() {
        None => code,
        // Even under `--json`: standard output is what does not work.
        Some(error) => report(
            &CliError::new("io", format!("standard output: {error}")),
            false,
        ),
    }
}

/// Prints one JSON value on one line of standard output.
pub(crate) fn print_json(value: &Value) {
    print_line(&value.to_string());
}

/// Writes `bytes` to `path`: the whole file, or an error and no change.
///
/// A symbolic link is followed; a device or a pipe is written to directly, since a rename would replace it. `-`, which elsewhere is
/// standard output, is refused: what a command prints there has a form of its own.
///
/// # Errors
///
/// Code `io` with the path and the system's reason.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write_together(&[(path, bytes)])
}

/// As [`write_atomically`] for several files: all of them, or an error and no change to any.
///
/// # Errors
///
/// Code `io` with the path at fault and the system's reason.
pub(crate) fn write_together(files: &[(&Path, &[u8])]) -> Result<(), CliError> {
    let paths: Vec<&Path> = files.iter().map(|(path, _)| *path).collect();
    distinct(&paths)?;
    let mut pending = Vec::new();
    for &(path, bytes) in files {
        let prepared = Pending::prepare(path, bytes).map_err(|error| CliError::io(path, &error))?;
        pending.push((path, prepared));
    }
    // A write to a device may fail, a rename in its own folder hardly.
    pending.sort_by_key(|(_, prepared)| prepared.temporary.is_some());
    for (path, prepared) in pending {
        prepared
            .finish()
            .map_err(|error| CliError::io(path, &error))?;
    }
    Ok(())
}

/// Checks that outputs have names, and that each is a file of its own.
///
/// # Errors
///
/// Code `same_file` with both paths, or that of [`named`].
pub(crate) fn distinct(paths: &[&Path]) -> Result<(), CliError> {
    for (i, path) in paths.iter().enumerate() {
        named(path)?;
        let same = paths[..i].iter().find(|other| is_same(other, path));
        if let Some(other) = same {
            let message = format!(
                "{} and {} are the same file; give each output its own",
                other.display(),
                path.display()
            );
            return Err(CliError::usage("same_file", message));
        }
    }
    Ok(())
}

/// Whether two paths name one file, however they are spelled: relative or absolute, through `.`, `..` or links.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((place(one), place(other)), (Ok(a), Ok(b)) if a == b)
}

/// The file that a path leads to, which need not be there: also behind a link to a file that is still to be made.
fn place(path: &Path) -> io::Result<PathBuf> {
    /// Links that are followed, as many as the system follows.
    const LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::canonicalize(&path) {
            Ok(there) => return Ok(there),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let Ok(target) = fs::read_link(&path) else {
            let name = path
                .file_name()
                .ok_or_else(|| io::Error::other("this path has no file name"))?;
            return Ok(fs::canonicalize(folder)?.join(name));
        };
        path = folder.join(target);
    }
    Err(io::Error::other("too many links"))
}

/// Refuses `-` as the name of a file to write.
///
/// # Errors
///
/// Bad usage.
pub(crate) fn named(path: &Path) -> Result<(), CliError> {
    if path.as_os_str() == "-" {
        let message = "`-` is no file to write to, and standard output is for the report: name a file (`./-` for one called so)";
        return Err(CliError::usage("usage", message));
    }
    Ok(())
}

/// A file that is complete but for its name, or a device that is still to be written to.
struct Pending<'a> {
    bytes: &'a [u8],
    target: PathBuf,
    /// The file under its temporary name.
    temporary: Option<PathBuf>,
}

impl<'a> Pending<'a> {
    fn prepare(path: &Path, bytes: &'a [u8]) -> io::Result<Self> {
        let present = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if present.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let mut pending = Self {
            bytes,
            target: path.to_path_buf(),
            temporary: None,
        };
        if present.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Ok(pending);
        }
        pending.target = place(path)?;
        let temporary = temporary_beside(&pending.target)?;
        // Dropped with what there is of the file, should it not become complete.
        fill(pending.temporary.insert(temporary), bytes, present.as_ref())?;
        Ok(pending)
    }

    fn finish(mut self) -> io::Result<()> {
        match &self.temporary {
            Some(temporary) => {
                fs::rename(temporary, &self.target)?;
                self.temporary = None;
                Ok(())
            }
            None => OpenOptions::new()
                .write(true)
                .open(&self.target)?
                .write_all(self.bytes),
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The first error is the one to report.
            let _ = fs::remove_file(temporary);
        }
    }
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

    #[test]
    fn several_files_are_written_or_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        let missing = folder.path().join("missing/two");
        let error = write_together(&[(&one, b"1"), (&missing, b"2")]).expect_err("no such folder");
        assert_eq!(error.code(), "io");
        assert!(names(folder.path()).is_empty());
        write_together(&[(&one, b"1"), (&two, b"2")]).expect("written");
        assert_eq!(fs::read(&two).expect("read"), b"2");
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn one_file_is_not_two_outputs_however_it_is_spelled() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plain = folder.path().join("s.x");
        let dotted = folder.path().join(".").join("s.x");
        for round in 0..2 {
            let error = write_together(&[(&plain, b"1"), (&dotted, b"2")]).expect_err("one file");
            assert_eq!(error.code(), "same_file", "{round}");
            // Then the file is there.
            fs::write(&plain, "old").expect("written");
        }
        assert_eq!(fs::read_to_string(&plain).expect("read"), "old");
        let other = folder.path().join("t.x");
        write_together(&[(&plain, b"1"), (&other, b"2")]).expect("two files");
    }

    #[test]
    fn a_dash_is_no_file() {
        let error = write_atomically(Path::new("-"), b"x").expect_err("must be refused");
        assert_eq!(error.code(), "usage");
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
        // A link to a file that is still to be made, by a path of its own folder; and that file by its name.
        let ahead = folder.path().join("ahead");
        std::os::unix::fs::symlink("later", &ahead).expect("linked");
        let later = folder.path().join("later");
        let error = write_together(&[(&ahead, b"1"), (&later, b"2")]).expect_err("one file");
        assert_eq!(error.code(), "same_file");
        write_atomically(&ahead, b"made").expect("written");
        assert!(ahead.is_symlink());
        assert_eq!(fs::read_to_string(&later).expect("read"), "made");
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).expect("linked");
        assert_eq!(
            write_atomically(&circle, b"x").expect_err("no end").code(),
            "io"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_stays() {
        write_atomically(Path::new("/dev/null"), b"x").expect("written");
        assert!(!fs::metadata("/dev/null").expect("still there").is_file());
    }
}
