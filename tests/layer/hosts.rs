//! The natural kernels launch from C, by cudarc and from Python, by their generated stubs: one stub a kernel, for all the sizes that its test runs it with.
//!
//! The tests of the kernels are run again, and each launch is recorded: its numbers, what its buffers hold before, and after. What they hold after was compared
//! with the reference by the test itself. Of the records this writes programs that launch the same and compare:
//!
//! ```text
//! host.c, c/NAME.h, c/unit_NAME.c     C: one program           ┐
//! src/main.rs, src/cases/NAME.rs      Rust: one crate          ├─ data.bin, NAME.ptx, run.sh
//! launch.py, python/NAME.py           Python, cases.json       ┘
//! ```
//!
//! Here they are compiled and launch through a driver of our own ([`hosts/driver.c`](hosts/driver.c)), which holds each launch to the contract of its sizes and
//! answers with what the kernel computes. With `TILEWRIGHT_HOSTS=FOLDER` they stay in that folder, with the programs built; `sh run.sh` there launches them
//! on a GPU.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Result, alike, indices, natural, shared_by_counter};
use serde_json::json;
use tilewright::codegen::Proven;
use tilewright::host::{
    Arg, BufferType, Contract, ContractBuffer, Language, Outcome, Role, Scalar, StepArg,
};

/// A kernel's launch on the emulator.
struct Launched {
    ptx: String,
    contract: Contract,
    scalars: Vec<(String, Scalar)>,
    /// By the buffers of the contract: what it holds before, if that matters, and after.
    buffers: Vec<(Option<Vec<u8>>, Vec<u8>)>,
}

thread_local! {
    static RECORDED: RefCell<Option<Vec<Launched>>> = const { RefCell::new(None) };
}

/// Records a launch, if this thread records.
pub(super) fn record(kernel: &Proven, args: &[(&str, Arg<'_>)], outcome: &Outcome) -> Result {
    RECORDED.with_borrow_mut(|recorded| {
        let Some(all) = recorded else { return Ok(()) };
        let scalars = args.iter().filter_map(|(name, arg)| match arg {
            Arg::Scalar(scalar) => Some(((*name).to_owned(), scalar.clone())),
            Arg::Buffer(_) => None,
        });
        let scalars: Vec<(String, Scalar)> = scalars.collect();
        let given = scalars.iter().map(|(name, s)| (name.as_str(), s.clone()));
        let contract = Contract::new(kernel, given)?;
        let buffers = contract.buffers.iter().map(|b| {
            let arg = args.iter().find(|(name, _)| *name == b.name);
            let before = match arg {
                Some((_, Arg::Buffer(buffer))) => buffer.content().map(<[u8]>::to_vec),
                _ => None,
            };
            Ok((before, outcome.bytes(&b.name)?.to_vec()))
        });
        let buffers = buffers.collect::<Result<_>>()?;
        let ptx = kernel.ptx.clone();
        all.push(Launched {
            ptx,
            contract,
            scalars,
            buffers,
        });
        Ok(())
    })
}

/// A name, the test that runs the kernel, and a tolerance.
type Named = (&'static str, fn() -> Result, f64);

/// The kernels: the test that runs them, and how far results may be from those of the emulator where an instruction is an approximation.
const KERNELS: [Named; 21] = [
    (
        "norm_to_e4m3",
        natural::residual_norm_and_e4m3_with_a_scale_a_row,
        1e-5,
    ),
    ("gemv", natural::split_k_gemv_in_two_kernels, 0.0),
    ("gather", indices::rows_of_a_table, 0.0),
    ("histogram", indices::a_histogram_with_atomics, 0.0),
    ("prefix_sums", natural::prefix_sums, 0.0),
    ("argmax", natural::argmax_and_the_two_largest, 0.0),
    ("top_8", natural::the_eight_largest_of_rows, 0.0),
    ("rope", natural::rotary_embedding, 0.0),
    ("stencil_2d", natural::stencil_of_two_dimensions, 0.0),
    ("int4_weights", natural::int4_weights_to_bf16, 0.0),
    ("block_sparse", indices::a_product_of_sparse_blocks, 0.0),
    ("paged", indices::keys_of_pages, 0.0),
    ("grouped", indices::products_of_groups_of_rows, 0.0),
    (
        "double_buffer",
        shared_by_counter::double_buffer_by_parity,
        0.0,
    ),
    ("lu", shared_by_counter::lu_of_a_tile, 1e-4),
    ("append", indices::rows_are_appended, 0.0),
    ("scatter", indices::a_permutation_scatters, 0.0),
    ("grid_stride", natural::grid_stride, 0.0),
    ("row_sums", indices::rows_of_any_length, 0.0),
    // A product and a sum may be one instruction, by which another iteration is the last.
    ("jacobi", alike::iterations_until_the_error_is_small, 1e-3),
    ("dropout", natural::dropout_by_philox, 0.0),
];

/// A kernel and its launches.
struct Case {
    name: String,
    tolerance: f64,
    launches: Vec<Launched>,
}

/// Every kernel with its launches, in order.
fn recorded() -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for (name, test, tolerance) in KERNELS {
        RECORDED.set(Some(Vec::new()));
        test()?;
        let launches = RECORDED.take().unwrap_or_default();
        assert!(!launches.is_empty(), "{name} has no launch");
        let first = cases.len();
        for launch in launches {
            let mut own = cases[first..].iter_mut();
            let known = own.find(|case| case.launches[0].ptx == launch.ptx);
            match known {
                Some(case) => case.launches.push(launch),
                None => cases.push(Case {
                    name: name.to_owned(),
                    tolerance,
                    launches: vec![launch],
                }),
            }
        }
        // A test of several kernels.
        if cases.len() > first + 1 {
            for (i, case) in cases[first..].iter_mut().enumerate() {
                case.name = format!("{name}_{i}");
            }
        }
    }
    Ok(cases)
}

/// What all buffers hold, one after the other.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    fn add(&mut self, bytes: &[u8]) -> usize {
        let at = self.0.len().next_multiple_of(16);
        self.0.resize(at, 0);
        self.0.extend(bytes);
        at
    }
}

/// A buffer of a launch, with its places in the data.
struct Placed<'c> {
    buffer: &'c ContractBuffer,
    before: Option<usize>,
    after: usize,
    bytes: usize,
}

impl Placed<'_> {
    fn written(&self) -> bool {
        self.buffer.role != Role::Input
    }

    /// Its element in C and in Rust.
    fn element(&self) -> (&'static str, &'static str) {
        match self.buffer.element.expect("typed") {
            BufferType::F32 => ("F32", "f32"),
            BufferType::I32 => ("S32", "i32"),
            BufferType::F16 => ("F16", "f16"),
            BufferType::Bf16 => ("BF16", "bf16"),
            BufferType::E4m3 => ("E4M3", "u8"),
            other => panic!("{other}"),
        }
    }

    /// Its name in C, which is one of C++ too.
    fn c(&self) -> &str {
        match self.buffer.name.as_str() {
            "new" => "new_",
            name => name,
        }
    }

    /// Its name in Rust.
    fn rust(&self) -> &str {
        match self.buffer.name.as_str() {
            "where" => "where_",
            name => name,
        }
    }
}

fn number(scalar: &Scalar) -> String {
    match scalar {
        Scalar::U32(v) => v.to_string(),
        Scalar::F32(v) => format!("{v:?}"),
        other => panic!("{other}"),
    }
}

/// The texts of a kernel's launches, and the answers of the driver.
#[derive(Default)]
struct Texts {
    c: String,
    rust: String,
    cases: Vec<serde_json::Value>,
    answers: String,
}

impl Texts {
    fn add(&mut self, name: &str, launch: &Launched, placed: &[Placed<'_>], tolerance: f64) {
        let joined = |f: &dyn Fn(usize, &Placed<'_>) -> String, by: &str| {
            let all = placed.iter().enumerate().map(|(i, b)| f(i, b));
            all.collect::<Vec<_>>().join(by)
        };
        let before = |b: &Placed<'_>| b.before.map_or("~0ull".to_owned(), |at| format!("{at}ull"));
        let scalars = launch.scalars.iter();
        let scalars: Vec<(&str, String)> = scalars.map(|(n, s)| (n.as_str(), number(s))).collect();
        let fields = scalars.iter().map(|(name, value)| {
            let suffix = if value.contains(['.', 'e']) { "f" } else { "u" };
            format!(".{name} = {value}{suffix}")
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            self.c,
            "static int case{}(void)\n{{\n    tilewright_scalars scalars = {{{}}};\n    host_buffer b[] = {{{}}};\n    host_upload(b, {count});\n    \
             tilewright_buffers at = {{{}}}, needed = tilewright_bytes(&scalars);\n    int wrong = {};\n    \
             wrong |= tilewright_launches(&at, &scalars, launch, 0) != 0;\n    return wrong | host_compare(b, {count}, {tolerance:?});\n}}\n",
            self.cases.len(),
            if fields.is_empty() { "0" } else { &fields },
            joined(
                &|_, b| format!(
                    "{{{:?}, {}, {}, {}, {}ull, {}ull, 0}}",
                    b.buffer.name,
                    b.element().0,
                    u8::from(b.written()),
                    before(b),
                    b.after,
                    b.bytes
                ),
                ", "
            ),
            joined(&|i, b| format!(".{} = b[{i}].device", b.c()), ", "),
            joined(&|i, b| format!("needed.{} > b[{i}].bytes", b.c()), " || "),
            count = placed.len(),
        );
        let fields = scalars
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        let _ = writeln!(
            self.rust,
            "    let scalars = {name}::Scalars {{ {} }};\n    let needed = scalars.bytes();\n    if {} {{\n        return Ok(false);\n    }}\n{}\n    \
             {name}::launch(&module, &host.stream, {name}::Buffers {{ {} }}, scalars)?;\n    if !({}) {{\n        return Ok(false);\n    }}",
            fields.collect::<Vec<_>>().join(", "),
            joined(&|_, b| format!("needed.{} > {}", b.rust(), b.bytes), " || "),
            joined(
                &|i, b| format!(
                    "    let {}b{i} = host.upload::<{}>({:?}, {})?;",
                    if b.written() { "mut " } else { "" },
                    b.element().1,
                    b.before,
                    b.bytes
                ),
                "\n"
            ),
            joined(
                &|i, b| format!(
                    "{}: &{}b{i}",
                    b.rust(),
                    if b.written() { "mut " } else { "" }
                ),
                ", "
            ),
            joined(
                &|i, b| format!(
                    "host.compare({:?}, &b{i}, {}, {}, {tolerance:?})?",
                    b.buffer.name, b.after, b.bytes
                ),
                " && "
            ),
        );
        let scalars: serde_json::Map<_, _> = launch
            .scalars
            .iter()
            .map(|(name, s)| {
                let value = s
                    .integer()
                    .map_or_else(|| json!(s.float()), |v| json!(v as u64));
                (name.clone(), value)
            })
            .collect();
        let buffers: Vec<_> = placed
            .iter()
            .map(|b| {
                json!({
                    "name": b.buffer.name, "bytes": b.bytes, "before": b.before, "after": b.after,
                    "written": b.written(), "element": b.element().0.to_lowercase(),
                })
            })
            .collect();
        self.cases
            .push(json!({"scalars": scalars, "buffers": buffers, "tolerance": tolerance}));
        for one in &launch.contract.launches {
            let ([gx, gy, gz], [bx, by, bz]) = (one.step.grid, one.step.block);
            let (shared, count) = (one.step.shared_bytes, one.step.args.len());
            let entry = &one.step.entry;
            let _ = writeln!(
                self.answers,
                "{entry} {gx} {gy} {gz} {bx} {by} {bz} {shared} {count}"
            );
            for arg in &one.step.args {
                let _ = match arg {
                    StepArg::Value(Scalar::U32(v)) => writeln!(self.answers, "n {v}"),
                    StepArg::Value(Scalar::F32(v)) => writeln!(self.answers, "n {}", v.to_bits()),
                    StepArg::Argument(name) => {
                        let b = placed.iter().find(|b| b.buffer.name == *name);
                        let b = b.expect("a buffer");
                        let bytes = if b.written() { b.bytes } else { 0 };
                        writeln!(self.answers, "b {} {bytes}", b.after)
                    }
                    other => panic!("{other:?}"),
                };
            }
        }
    }
}

/// Writes the programs.
fn written(folder: &Path, cases: &[Case]) -> Result {
    for sub in ["c", "python", "src/cases"] {
        fs::create_dir_all(folder.join(sub))?;
    }
    let put = |name: &str, text: &str| fs::write(folder.join(name), text);
    let (mut data, mut kernels, mut answers) = (Data::default(), Vec::new(), String::new());
    let (mut units, mut calls) = (String::new(), String::new());
    let mut modules = "//! The kernels and their launches.\n#![allow(dead_code, clippy::all)]\n\nuse super::{Host, Result, tried};\nuse half::{bf16, f16};\n".to_owned();
    let mut all = String::new();
    for Case {
        name,
        tolerance,
        launches,
    } in cases
    {
        let mut texts = Texts::default();
        for launch in launches {
            let buffers = launch.contract.buffers.iter().zip(&launch.buffers);
            let placed: Vec<Placed<'_>> = buffers
                .map(|(buffer, (before, after))| {
                    let at = data.add(after);
                    let before = before.as_ref().map(|before| {
                        if before == after {
                            at
                        } else {
                            data.add(before)
                        }
                    });
                    Placed {
                        buffer,
                        before,
                        after: at,
                        bytes: after.len(),
                    }
                })
                .collect();
            texts.add(name, launch, &placed, *tolerance);
        }
        let contract = &launches[0].contract;
        put(&format!("{name}.ptx"), &launches[0].ptx)?;
        put(&format!("c/{name}.h"), &contract.host(Language::C)?)?;
        put(
            &format!("src/cases/{name}.rs"),
            &contract.host(Language::Cudarc)?,
        )?;
        put(
            &format!("python/{name}.py"),
            &contract.host(Language::Python)?,
        )?;
        let each: Vec<String> = (0..launches.len()).map(|i| format!("case{i}()")).collect();
        let unit = format!(
            "#include \"../host.h\"\n#include \"{name}.h\"\n#include <stdio.h>\n\nstatic int launch(void *context, const tilewright_launch *l)\n{{\n    \
             return host_launch(context, l->kernel, l->grid, l->block, l->shared_bytes, l->params);\n}}\n\n{}int {name}(void);\n\nint {name}(void)\n{{\n    \
             host_module(\"{name}.ptx\");\n    int wrong = {};\n    printf(\"%s C {name}\\n\", wrong ? \"FAIL\" : \"PASS\");\n    return wrong;\n}}\n",
            texts.c,
            each.join(" || ")
        );
        put(&format!("c/unit_{name}.c"), &unit)?;
        let _ = writeln!(units, "int {name}(void);");
        let _ = writeln!(calls, "    wrong += {name}();");
        let _ = writeln!(
            modules,
            "\nmod {name};\n\nfn run_{name}(host: &Host) -> Result<bool> {{\n    let module = host.module(\"{name}.ptx\")?;\n{}    Ok(true)\n}}",
            texts.rust
        );
        let _ = writeln!(all, "    right &= tried({name:?}, run_{name}(host));");
        kernels.push(json!({"name": name, "cases": texts.cases}));
        answers.push_str(&texts.answers);
    }
    let _ = write!(
        modules,
        "\n/// Runs them all.\npub(super) fn all(host: &Host) -> bool {{\n    let mut right = true;\n{all}    right\n}}\n"
    );
    put(
        "c/units.c",
        &format!(
            "{units}int units(void);\n\nint units(void)\n{{\n    int wrong = 0;\n{calls}    return wrong;\n}}\n"
        ),
    )?;
    put("src/cases.rs", &modules)?;
    put("cases.json", &serde_json::to_string(&kernels)?)?;
    put("answers", &answers)?;
    fs::write(folder.join("data.bin"), &data.0)?;
    put("host.h", include_str!("hosts/host.h"))?;
    put("host.c", include_str!("hosts/host.c"))?;
    put("src/main.rs", include_str!("hosts/main.rs"))?;
    put("launch.py", include_str!("hosts/launch.py"))?;
    put("run.sh", include_str!("hosts/run.sh"))?;
    // The crate depends on what the example of a host depends on.
    let own = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let example = own("examples/hosts/cudarc/Cargo.toml")?;
    let (_, rest) = example
        .split_once("[dependencies]")
        .ok_or("no dependencies")?;
    let dependencies = rest.split("[lints]").next().unwrap_or_default();
    put(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"of_cudarc\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[profile.release]\nstrip = true\nopt-level = 1\n\n[dependencies]{dependencies}"
        ),
    )?;
    put("Cargo.lock", &own("Cargo.lock")?)?;
    Ok(())
}

/// What a program said, which ends well.
fn said(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The strictest C: no warning.
const FLAGS: [&str; 7] = [
    "-std=c11",
    "-D_DEFAULT_SOURCE",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-o",
];

#[test]
fn natural_kernels_launch_from_every_host() -> Result {
    let cases = recorded()?;
    let (temporary, kept) = (tempfile::tempdir()?, std::env::var_os("TILEWRIGHT_HOSTS"));
    let folder = kept
        .as_ref()
        .map_or(temporary.path().to_owned(), PathBuf::from);
    written(&folder, &cases)?;
    let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    let units = cases.iter().map(|case| format!("c/unit_{}.c", case.name));
    compile
        .args(FLAGS)
        .args(["of_c", "host.c", "c/units.c"])
        .args(units);
    said(compile.args(["-ldl", "-lm"]).current_dir(&folder));
    // One crate for all, built beside this test's own files.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("natural_hosts");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet"]).current_dir(&folder);
    build.env("CARGO_TARGET_DIR", &target);
    let profile = if kept.is_some() { "release" } else { "debug" };
    if kept.is_some() {
        build.arg("--release");
    }
    said(&mut build);
    fs::copy(
        target.join(profile).join("of_cudarc"),
        folder.join("of_cudarc"),
    )?;
    let driver = temporary.path().join("driver");
    fs::create_dir_all(&driver)?;
    let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compile.args(FLAGS).arg(driver.join("libcuda.so.1"));
    compile.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/layer/hosts/driver.c"
    ));
    said(compile.args(["-shared", "-fPIC"]));
    for (host, program, more) in [
        ("C", "./of_c", None),
        ("cudarc", "./of_cudarc", None),
        ("Python", "python3", Some("launch.py")),
    ] {
        let run = |mode: &str| {
            let mut command = Command::new(program);
            command.args(more).current_dir(&folder);
            command
                .env("LD_LIBRARY_PATH", &driver)
                .env("DRIVER_MODE", mode);
            command.output().expect("it starts")
        };
        let output = run("");
        assert!(output.status.success(), "{host}: {output:?}");
        let expected = cases
            .iter()
            .map(|case| format!("PASS {host} {}", case.name));
        let expected: Vec<String> = expected.collect();
        assert_eq!(text(&output).lines().collect::<Vec<_>>(), expected);
        // A driver that computes nothing.
        let idle = text(&run("idle"));
        let failed = idle.lines().filter(|line| line.starts_with("FAIL"));
        assert_eq!(failed.count(), cases.len(), "{host}: {idle}");
        let none = run("none");
        assert_eq!(none.status.code(), Some(77), "{none:?}");
        assert!(text(&none).contains(": no GPU: not run"), "{none:?}");
    }
    Ok(())
}
