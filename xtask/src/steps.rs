//! The steps of `cargo xtask test`, one line each in the function `test`.
//!
//! A step is a `cargo` command, but for the tests, which are [many](binaries). All of them run, also after a failure, so that one run shows everything there is to mend;
//! the summary counts them. The tests get the assembler through `PTXAS`; with `--no-ptxas` they get
//! `TILEWRIGHT_NO_PTXAS=1` and say for themselves that they did not run it. A missing assembler is never a silent pass; nor are missing
//! tools of OpenCL, without which the tests get `TILEWRIGHT_NO_OPENCL=1`, of the page in the browser (`TILEWRIGHT_NO_PAGE=1`), or of the package for Python.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::msrv::{self, Msrv};
use crate::{binaries, opencl, page, ptxas, python, workspace_root};

/// A target without `std`: if its standard library is installed, `layout-core` is checked for it too.
const BARE_TARGET: &str = "thumbv7em-none-eabi";

/// For steps that run nothing but the macros: what the macros expand by is compiled without optimisation, which takes a quarter of the time. The
/// tests' own is of no use here, since clippy takes its place for every crate of the workspace, and documentation has other features.
pub(crate) const QUICK: [&str; 3] = [
    "--config=profile.dev.package.layout-codegen.opt-level=0",
    "--config=profile.dev.package.tilewright-kernels.opt-level=0",
    "--config=profile.dev.package.layout-core.opt-level=0",
];

/// Whether the tests that need ptxas run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ptxas {
    /// Yes: fetch it if it isn't there.
    Fetch,
    /// No: the tests are told so and say so.
    LeaveOut,
}

/// What every `cargo` of a run gets in its environment.
type Env = Vec<(&'static str, String)>;

struct Run {
    env: Env,
    passed: usize,
    failed: Vec<String>,
    /// What was not run, each in a few words with what to install.
    left_out: Vec<String>,
    started: Instant,
}

/// Runs everything CI runs.
pub(crate) fn test(ptxas: Ptxas) -> ExitCode {
    // A snapshot that differs is a failure, never a file to look at later.
    let mut env = vec![("INSTA_UPDATE", "no".to_owned())];
    if std::env::var_os("CI").is_some() {
        // A fresh clone builds once: what makes a second build faster would take gigabytes for nothing.
        env.push(("CARGO_INCREMENTAL", "0".to_owned()));
    }
    let mut run = Run {
        env,
        passed: 0,
        failed: Vec::new(),
        left_out: Vec::new(),
        started: Instant::now(),
    };

    match ptxas {
        Ptxas::Fetch => run.step("ptxas", |env| {
            let path = ptxas::provide(&workspace_root())?;
            eprintln!("{}", path.display());
            env.push(("PTXAS", path.display().to_string()));
            Ok(())
        }),
        Ptxas::LeaveOut => {
            eprintln!("\n== ptxas: left out (--no-ptxas); no kernel is assembled in this run");
            run.env.push(("TILEWRIGHT_NO_PTXAS", "1".to_owned()));
            run.left_out.push("ptxas left out".to_owned());
        }
    }
    run.opencl();
    run.page();
    run.cargo("formatting", &["fmt", "--all", "--check"]);
    run.cargo(
        "lints",
        &[
            "clippy",
            QUICK[0],
            QUICK[1],
            QUICK[2],
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ],
    );
    run.step("tests", |env| binaries::run(env));
    run.python();
    run.env.push(("RUSTDOCFLAGS", "-D warnings".to_owned()));
    run.cargo(
        "docs",
        &[
            "doc",
            QUICK[0],
            QUICK[1],
            QUICK[2],
            "--workspace",
            "--all-features",
            "--no-deps",
        ],
    );
    run.cargo("layout-core alone", &["check", "-p", "layout-core"]);
    run.cargo(
        "the algebra alone",
        &["check", "-p", "tilewright", "--no-default-features"],
    );
    run.msrv();
    // Alone, so that it has the features that it names and none of other crates.
    run.cargo("a host of its own", &["check", "-p", "host-cudarc"]);
    // Every crate in the order of its dependencies, up to the upload. Without `--no-verify` it also compiles each from its package, the
    // others taken from a registry of its own making: the work of a fresh build once more, which is done before a release.
    run.cargo(
        "packages",
        &[
            "publish",
            "--workspace",
            "--dry-run",
            "--no-verify",
            "--allow-dirty",
        ],
    );
    if installed(BARE_TARGET) {
        run.cargo(
            "layout-core without std",
            &[
                "check",
                "-p",
                "layout-core",
                "--all-features",
                "--target",
                BARE_TARGET,
            ],
        );
    } else {
        eprintln!(
            "\n== layout-core without std: not run, `rustup target add {BARE_TARGET}` for it"
        );
    }
    run.finish()
}

impl Run {
    fn step(&mut self, name: &str, action: impl FnOnce(&mut Env) -> Result<(), String>) {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let result = action(&mut self.env);
        let seconds = seconds(started.elapsed());
        match result {
            Ok(()) => {
                self.passed += 1;
                eprintln!("== {name}: passed in {seconds}");
            }
            Err(why) => {
                eprintln!("error: {why}\n== {name}: FAILED after {seconds}");
                self.failed.push(name.to_owned());
            }
        }
    }

    fn cargo(&mut self, name: &str, args: &[&str]) {
        self.step(name, |env| {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command
                .args(args)
                .current_dir(workspace_root())
                .envs(env.iter().map(|(key, value)| (key, value)));
            match command.status() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("cargo {}: {status}", args.join(" "))),
                Err(error) => Err(format!("cargo does not start: {error}")),
            }
        });
    }

    /// PoCL and clang for AMD: a step where they are there, else the tests are told to leave themselves out. CI has them.
    fn opencl(&mut self) {
        match opencl::provide() {
            Err(why) if std::env::var_os("CI").is_none() => {
                eprintln!("\n== OpenCL: not run, {why}");
                self.env.push(("TILEWRIGHT_NO_OPENCL", "1".to_owned()));
                self.left_out.push(format!("OpenCL not run: {why}"));
            }
            provided => self.step("OpenCL", |_| provided),
        }
    }

    /// The page in the browser: built and then driven by its test where there is a compiler for it and a browser. `TILEWRIGHT_PAGE=1` insists on both.
    fn page(&mut self) {
        let insists = std::env::var_os("TILEWRIGHT_PAGE").is_some_and(|v| v == "1");
        let provided = page::compiler().and_then(|()| page::browser());
        let built = provided.and_then(|()| page::build()).map(|_| ());
        match built {
            Err(why) if !insists && why != page::TOO_LARGE => {
                eprintln!("\n== page: not run, {why}");
                self.env.push(("TILEWRIGHT_NO_PAGE", "1".to_owned()));
                self.left_out.push(format!("page not run: {why}"));
            }
            built => self.step("page", |_| built),
        }
    }

    /// The package for Python, where there are a Python and maturin.
    fn python(&mut self) {
        match python::maturin() {
            Err(why) => {
                eprintln!("\n== Python: not run, {why}");
                self.left_out.push(format!("Python not run: {why}"));
            }
            Ok(maturin) => self.step("Python", |env| python::test(&maturin, env)),
        }
    }

    /// The oldest compiler that the manifests promise.
    fn msrv(&mut self) {
        match msrv::find() {
            Ok(Msrv::ThisRun(version)) => self.step("oldest compiler", |_| {
                eprintln!("rustc {version} is the one promised: every step tests it");
                Ok(())
            }),
            Ok(Msrv::Installed(toolchain)) => {
                // In a folder of its own, so that the other compiler's files stay.
                let folder = workspace_root().join("target/msrv");
                self.env
                    .push(("CARGO_TARGET_DIR", folder.display().to_string()));
                self.step("oldest compiler", |env| {
                    let status = Command::new("cargo")
                        .args([&toolchain, "check", "--workspace", "--all-features"])
                        .current_dir(workspace_root())
                        .envs(env.iter().map(|(key, value)| (key, value)))
                        .env_remove("RUSTUP_TOOLCHAIN")
                        .env_remove("CARGO")
                        .status();
                    match status {
                        Ok(status) if status.success() => Ok(()),
                        Ok(status) => Err(format!("cargo {toolchain} check: {status}")),
                        Err(error) => Err(format!("cargo does not start: {error}")),
                    }
                });
                self.env.pop();
            }
            Ok(Msrv::Missing(why)) => {
                eprintln!("\n== oldest compiler: not run, {why}");
                self.left_out
                    .push(format!("oldest compiler not run: {why}"));
            }
            Err(why) => self.step("oldest compiler", |_| Err(why)),
        }
    }

    fn finish(self) -> ExitCode {
        let mut left_out = String::new();
        for what in &self.left_out {
            left_out.push_str(", ");
            left_out.push_str(what);
        }
        let (passed, seconds) = (self.passed, seconds(self.started.elapsed()));
        if self.failed.is_empty() {
            eprintln!("\nxtask test: all {passed} steps passed in {seconds}{left_out}");
            return ExitCode::SUCCESS;
        }
        let failed = self.failed.join(", ");
        eprintln!("\nxtask test: FAILED: {failed} ({passed} steps passed) in {seconds}{left_out}");
        ExitCode::FAILURE
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Whether the standard library of `target` is installed beside the compiler.
pub(crate) fn installed(target: &str) -> bool {
    beside_compiler(Path::new(target).join("lib"))
}

/// Whether the compiler's folder of libraries has a file or folder.
pub(crate) fn beside_compiler(path: impl AsRef<Path>) -> bool {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .current_dir(workspace_root())
        .output();
    output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout);
        Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(path)
            .exists()
    })
}
