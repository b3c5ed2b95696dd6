//! The tests, several binaries at a time.
//!
//! `cargo test` runs one test binary after the other. Most of them end with one test that is longer than the others, so that all cores but one
//! wait for it, a hundred times in a run. Here cargo builds the binaries and says where they are, and they run as many at a time as
//! [`at_a_time`] says, each in the folder and with the variables that cargo gives it. The documentation's tests are one job among them.
//!
//! What a binary writes is printed when it has ended, in one piece: two at a time never mix their lines.

use std::ffi::{OsStr, OsString};
use std::io::{PipeReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::workspace_root;

/// What every build of the tests is given.
const BUILD: [&str; 3] = ["test", "--workspace", "--all-features"];

/// Those that take longest, which begin first: one that began last would have the machine to itself.
const LONGEST: [&str; 9] = [
    "mma_emulator",
    "messages",
    "run_anything",
    "documentation",
    "kernel_mutants",
    "layout_codegen",
    "addresses",
    "wgmma_emulator",
    "devices",
];

/// What takes the time of what it does runs with nothing beside it.
const ALONE: &str = "proof_times";

/// The tests of the compiler's messages, which trybuild compiles, the crates that they need along with them.
const MESSAGES: &str = "messages";

/// The flags of trybuild, separated as cargo has them. By itself it compiles the needed crates without the last flag and then with it once more,
/// since other flags make another crate. cargo takes this variable before any other source of flags: the first build serves.
const MESSAGES_FLAGS: (&str, &str) = (
    "CARGO_ENCODED_RUSTFLAGS",
    "--cfg\x1ftrybuild\x1f--verbose\x1f-A\x1fdead_code\x1f--diagnostic-width=140",
);

/// Where the loader of programs looks for shared libraries.
const SEARCH_PATH: &str = if cfg!(target_os = "macos") {
    "DYLD_FALLBACK_LIBRARY_PATH"
} else if cfg!(windows) {
    "PATH"
} else {
    "LD_LIBRARY_PATH"
};

/// What runs as one process.
struct Job {
    /// As the list of what failed names it.
    name: String,
    /// Where its source is, for the names in [`LONGEST`].
    target: String,
    command: Command,
}

/// What came of it.
struct Ended {
    name: String,
    passed: bool,
    tests: usize,
}

/// Builds all tests and runs them.
///
/// # Errors
///
/// They do not build, or which of them failed.
pub(crate) fn run(env: &[(&str, String)]) -> Result<(), String> {
    let mut jobs = vec![documentation(env)];
    jobs.extend(build(env)?);
    // From the end: the last are the first to run.
    jobs.sort_by_key(|job| LONGEST.iter().rev().position(|name| *name == job.target));
    let count = jobs.len();
    let (alone, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.target == ALONE);
    let mut ended = run_all(jobs, at_a_time());
    ended.extend(run_all(alone, 1));
    let failed: Vec<&str> = ended
        .iter()
        .filter(|job| !job.passed)
        .map(|job| job.name.as_str())
        .collect();
    let tests: usize = ended.iter().map(|job| job.tests).sum();
    eprintln!("{tests} tests passed in {count} processes");
    if failed.is_empty() && ended.len() == count {
        return Ok(());
    }
    Err(format!(
        "{} of {count} failed, see above:\n    {}",
        failed.len(),
        failed.join("\n    ")
    ))
}

/// Runs jobs from the last to the first, and prints what each wrote when it has ended.
fn run_all(jobs: Vec<Job>, at_a_time: usize) -> Vec<Ended> {
    let jobs = Mutex::new(jobs);
    let ended = Mutex::new(Vec::new());
    let next = || jobs.lock().ok()?.pop();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let (done, text) = job.run();
                    // Locked while it is printed, so that no other comes in between.
                    let mut ended = ended.lock().expect("no thread panics with it");
                    let mut out = std::io::stdout().lock();
                    // Who reads the output has gone: the result still counts.
                    let _ = out.write_all(&text).and_then(|()| out.flush());
                    ended.push(done);
                }
            });
        }
    });
    ended.into_inner().expect("no thread panicked with it")
}

/// How many run at the same time. Each has as many threads of tests as there are cores, but seldom uses them all; memory is why they are no more
/// than four.
fn at_a_time() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.clamp(1, 4)
}

fn cargo(env: &[(&str, String)]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace_root())
        .envs(env.iter().map(|(key, value)| (key, value)));
    command
}

/// The tests in the documentation, which rustdoc compiles and runs.
fn documentation(env: &[(&str, String)]) -> Job {
    let mut command = cargo(env);
    command.args(BUILD).args(["--doc", "--no-fail-fast"]);
    Job {
        name: "documentation: cargo test --workspace --all-features --doc".to_owned(),
        target: "documentation".to_owned(),
        command,
    }
}

/// Builds the test binaries; the result is what runs them.
fn build(env: &[(&str, String)]) -> Result<Vec<Job>, String> {
    let output = cargo(env)
        .args(BUILD)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not build: {}", output.status));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| format!("cargo: {error}"))?;
    let folders = libraries(env)?;
    let (mut jobs, mut generators) = (Vec::new(), 0);
    for line in text.lines() {
        let message: Value =
            serde_json::from_str(line).map_err(|error| format!("cargo says {line}: {error}"))?;
        jobs.extend(binary(&message, env, &folders));
        generators += usize::from(is_generator(&message));
    }
    if generators > 1 {
        eprintln!(
            "warning: layout-codegen is compiled {generators} times; layout-macros/Cargo.toml says why once is enough"
        );
    }
    if jobs.is_empty() {
        return Err("cargo names no test binary".to_owned());
    }
    Ok(jobs)
}

/// Whether a message is about the library `layout-codegen`, which takes a minute to compile.
fn is_generator(message: &Value) -> bool {
    message["reason"] == "compiler-artifact"
        && message["target"]["name"] == "layout_codegen"
        && message["profile"]["test"] == false
}

/// The search path for shared libraries as cargo extends it: the tests of procedural macros link the compiler's.
fn libraries(env: &[(&str, String)]) -> Result<OsString, String> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .current_dir(workspace_root())
        .envs(env.iter().map(|(key, value)| (key, value)))
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    let own = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let given = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&given)))
        .map_err(|error| format!("{SEARCH_PATH}: {error}"))
}

/// The job of a message of cargo, if it is about a test binary.
fn binary(message: &Value, env: &[(&str, String)], libraries: &OsStr) -> Option<Job> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let package = manifest.parent()?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let shown = source.strip_prefix(workspace_root()).unwrap_or(source);
    let mut command = Command::new(&executable);
    command
        .current_dir(package)
        .envs(env.iter().map(|(key, value)| (key, value)))
        // Those that describe the package to the process: xtask has its own from cargo.
        .env("CARGO_MANIFEST_DIR", package)
        .env("CARGO_MANIFEST_PATH", manifest)
        .env(SEARCH_PATH, libraries);
    let target = message["target"]["name"].as_str()?;
    if target == MESSAGES {
        let (variable, flags) = MESSAGES_FLAGS;
        command
            .env(variable, flags)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
    }
    Some(Job {
        name: format!("{} ({})", shown.display(), executable.display()),
        target: target.to_owned(),
        command,
    })
}

impl Job {
    /// Runs it to its end; the result comes with what it wrote.
    fn run(mut self) -> (Ended, Vec<u8>) {
        let started = Instant::now();
        let mut text = format!("\n     Running {}\n", self.name).into_bytes();
        let result = together(&mut self.command).and_then(|(mut reader, mut child)| {
            // The command holds the pipe's other end, which must close before an end can be read.
            drop(self.command);
            reader.read_to_end(&mut text)?;
            child.wait()
        });
        let passed = result.as_ref().is_ok_and(ExitStatus::success);
        let outcome = match result {
            Ok(_) if passed => "passed".to_owned(),
            Ok(status) => format!("FAILED, {status}"),
            Err(error) => format!("FAILED, it does not run: {error}"),
        };
        let tests = passed_tests(&String::from_utf8_lossy(&text));
        let seconds = started.elapsed().as_secs_f64();
        text.extend(format!("     {outcome} in {seconds:.1} s\n").into_bytes());
        let name = self.name;
        (
            Ended {
                name,
                passed,
                tests,
            },
            text,
        )
    }
}

/// Starts a command whose output and errors are one stream, in the order in which they are written.
fn together(command: &mut Command) -> std::io::Result<(PipeReader, std::process::Child)> {
    let (reader, writer) = std::io::pipe()?;
    let child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    Ok((reader, child))
}

/// How many tests passed by the lines `test result: ok. 3 passed; …`.
fn passed_tests(text: &str) -> usize {
    let count = |line: &str| {
        let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        rest.split_once(" passed")?.0.parse::<usize>().ok()
    };
    text.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_counted() {
        let text = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\nx\n\
                    test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured\n";
        assert_eq!(passed_tests(text), 7);
    }

    #[test]
    fn a_job_says_what_it_wrote_and_how_it_ended() {
        let job = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let (name, target) = (script.to_owned(), String::new());
            let (ended, text) = Job {
                name,
                target,
                command,
            }
            .run();
            (ended.passed, String::from_utf8(text).expect("text"))
        };
        let (passed, text) = job("echo one; echo two >&2; echo three");
        assert!(passed && text.contains("one\ntwo\nthree\n"), "{text}");
        let (passed, text) = job("echo one; exit 3");
        assert!(
            !passed && text.contains("one\n     FAILED, exit status: 3"),
            "{text}"
        );
        let (passed, text) = job("kill -9 $$");
        assert!(!passed && text.contains("FAILED, signal: 9"), "{text}");
    }

    #[test]
    fn only_test_binaries_are_jobs() {
        let message = |test: bool, executable: Value| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "manifest_path": workspace_root().join("cli/Cargo.toml"),
                "target": {"name": "eval", "src_path": workspace_root().join("cli/tests/eval.rs")},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        let job =
            binary(&message(true, "/x/eval-1".into()), &[], OsStr::new("/lib")).expect("a job");
        assert_eq!(job.name, "cli/tests/eval.rs (/x/eval-1)");
        let folder = workspace_root().join("cli");
        assert_eq!(job.command.get_current_dir(), Some(folder.as_path()));
        assert!(
            binary(
                &message(false, "/x/example".into()),
                &[],
                OsStr::new("/lib")
            )
            .is_none()
        );
        assert!(binary(&message(true, Value::Null), &[], OsStr::new("/lib")).is_none());
    }
}
