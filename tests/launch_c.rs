//! `examples/launch.c` builds without a warning and without a CUDA toolkit, passes what the launch contract says, sees a wrong result,
//! and says in one line why it can't run. Without a C compiler this says so and runs nothing.
//!
//! What it passes is seen by a driver of our own, [`launch_c/driver.c`](launch_c/driver.c), which is opened in place of the real one. On
//! a machine with a GPU the program runs there too.
#![cfg(target_os = "linux")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tilewright::gpu::Gpu;
use tilewright::kernels::gemm::{
    Argument, ArgumentValue, Config, Emitted, Gemm, Launch, Schedule, Specialized,
};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A C compiler; none on a machine without one.
fn compiler() -> Option<&'static str> {
    let works = |name: &&str| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = ["cc", "gcc", "clang"].into_iter().find(works);
    if found.is_none() {
        common::say("no C compiler: not run");
    }
    found
}

fn compile(compiler: &str, from: &Path, to: &Path, more: &[&str]) {
    let output = Command::new(compiler)
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([to, from])
        .args(more)
        .output()
        .expect("the compiler starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {log}", from.display());
    assert!(log.is_empty(), "{}: {log}", from.display());
}

/// The program, and the kernel that it is for.
struct Built {
    folder: TempDir,
    plan: Specialized,
    problem: Gemm,
    kernel: Emitted,
}

/// m, n and k that are no multiples of the tile, with sums that f16 holds.
const SIZES: [u64; 3] = [1100, 144, 208];

fn build(compiler: &str) -> Built {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("launch");
    compile(
        compiler,
        &source("examples/launch.c"),
        &program,
        &["-pedantic", "-ldl", "-lm"],
    );
    let [m, n, k] = SIZES;
    let plan = "mma-f16-128x128x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("a plan");
    let problem = Gemm {
        beta: -1.0,
        ..Gemm::packed(m, n, k, "nn".parse().expect("transposes"))
    };
    let plan = plan
        .specialize(&problem, Schedule::default())
        .expect("it serves");
    let kernel = plan
        .emit(problem.operands, plan.min_arch())
        .expect("the plan proves");
    std::fs::write(folder.path().join("kernel.ptx"), &kernel.ptx).expect("a file");
    Built {
        folder,
        plan,
        problem,
        kernel,
    }
}

impl Built {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, with m, n and k.
    fn command(&self, sizes: [u64; 3]) -> Command {
        let mut command = Command::new(self.path("launch"));
        command.arg(self.path("kernel.ptx"));
        command.args(sizes.map(|size| size.to_string()));
        command
    }

    /// A run with the driver of our own.
    fn with_driver(&self, mode: &str) -> Output {
        let mut command = self.command(SIZES);
        command
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("DRIVER_LOG", self.path("log"))
            .env("DRIVER_MODE", mode);
        command.output().expect("the program starts")
    }
}

/// Exit code 1, one line that begins as errors of this program do, nothing else.
fn refusal(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("launch: "), "{text}");
    text
}

/// The line that the driver writes for a launch.
fn line(launch: &Launch) -> String {
    let list = |all: [u32; 3]| all.map(|n| n.to_string()).join(" ");
    let named = |name: &str| -> &Argument {
        let mut all = launch.arguments.iter();
        all.find(|a| a.name == name).expect("a parameter")
    };
    let sizes = ["m", "n", "k", "lda", "ldb", "ldc"].map(|name| match named(name).value {
        ArgumentValue::Int(value) => value.to_string(),
        other => panic!("{name} is {other:?}"),
    });
    let scalars = ["alpha", "beta"].map(|name| match named(name).value {
        ArgumentValue::Float(value) => value.to_string(),
        other => panic!("{name} is {other:?}"),
    });
    format!(
        "kernel {} grid {} block {} shared {} sizes {} scalars {}",
        launch.kernel,
        list(launch.grid),
        list(launch.block),
        launch.shared_bytes,
        sizes.join(" "),
        scalars.join(" ")
    )
}

#[test]
fn it_launches_as_the_contract_says() {
    let Some(compiler) = compiler() else { return };
    let built = build(compiler);
    let driver = built.path("libcuda.so.1");
    let shared = ["-shared", "-fPIC", "-lm"];
    compile(
        compiler,
        &source("tests/launch_c/driver.c"),
        &driver,
        &shared,
    );

    let launch = built.plan.launch(&built.problem).expect("it serves");
    let launch = launch.expect("something to launch");
    let names: Vec<_> = launch.arguments.iter().map(|a| a.name.as_str()).collect();
    let order = [
        "A", "B", "C", "m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta",
    ];
    assert_eq!(names, order);
    assert!(launch.before.is_empty() && launch.after.is_empty());

    let output = built.with_driver("");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("all 158400 elements of C are right"),
        "{said}"
    );
    let log = std::fs::read_to_string(built.path("log")).expect("the driver's log");
    let expected = format!("text {}\n{}\n", built.kernel.ptx.len(), line(&launch));
    assert_eq!(log, expected);

    let wrong = refusal(&built.with_driver("wrong"));
    assert!(wrong.contains("row 1099, column 143 of C"), "{wrong}");
    let none = refusal(&built.with_driver("none"));
    assert_eq!(none, "launch: cuInit: no CUDA-capable device is detected\n");
}

#[test]
fn it_says_in_one_line_why_it_cannot_run() {
    let Some(compiler) = compiler() else { return };
    let built = build(compiler);
    let output = built.command(SIZES).output().expect("the program starts");
    match Gpu::open(0) {
        Ok(_) => assert!(output.status.success(), "{output:?}"),
        Err(error) if error.means_no_gpu() => {
            refusal(&output);
        }
        Err(error) => panic!("{error}"),
    }
    let [m, n, k] = SIZES;
    for sizes in [[m, n + 1, k], [m, n, k + 4], [0, n, k]] {
        let output = built.command(sizes).output();
        refusal(&output.expect("the program starts"));
    }
    let output = Command::new(built.path("launch")).output();
    assert_eq!(output.expect("the program starts").status.code(), Some(2));
}
