//! The three targets against the layouts themselves: Rust compiled and run, CUDA C compiled as C and run, PTX on the emulator.

#![allow(clippy::items_after_statements, clippy::assigning_clones)]

mod targets;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use layout_codegen::index::code::Ty;
use layout_codegen::index::{Bound, IndexSpec, Target, function};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};
use targets::{Case, Random, case, cases, check, input, random_spec};

/// Random layouts beside the chosen ones.
const RANDOM: usize = 150;

fn text(case: &Case, target: Target) -> String {
    case.program
        .text(target)
        .unwrap_or_else(|e| panic!("{} in {target}: {e}", case.about))
}

/// Runs `program` with `input` on its standard input.
fn output_of(program: &Path, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).expect("the program reads all of it"));
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{}", output.status);
        output.stdout
    })
}

#[test]
fn rust_functions_agree_with_their_layouts() {
    let cases = cases(RANDOM);
    let folder = tempfile::tempdir().expect("a folder");
    // Without std, with every warning an error, with overflow checks and debug assertions.
    let mut functions = "#![no_std]\n#![deny(warnings)]\n#![crate_type = \"rlib\"]\n".to_owned();
    let mut main = "use std::io::{Read, Write};\nfn main() {\n    let (mut i, mut bytes, mut out) = (0, Vec::new(), Vec::new());\n    std::io::stdin().read_to_end(&mut bytes).unwrap();\n    let mut next = || { i += 8; i64::from_le_bytes(bytes[i - 8..i].try_into().unwrap()) };\n".to_owned();
    for case in &cases {
        functions += &text(case, Target::Rust);
        let arguments: Vec<_> = case.types().map(|ty| format!("next() as {ty}")).collect();
        let _ = writeln!(
            main,
            "    for _ in 0..{} {{ let v = functions::{}({}); out.extend((v as i64).to_le_bytes()); }}",
            case.points.len(),
            case.name,
            arguments.join(", ")
        );
    }
    main += "    std::io::stdout().write_all(&out).unwrap();\n}\n";
    let (library, program) = (
        folder.path().join("functions.rs"),
        folder.path().join("main.rs"),
    );
    std::fs::write(&library, functions).expect("written");
    std::fs::write(&program, main).expect("written");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    for arguments in [
        &["functions.rs", "-Cdebug-assertions=on"][..],
        &["main.rs", "--extern", "functions=libfunctions.rlib"],
    ] {
        let output = Command::new(&rustc)
            .args(["--edition", "2024"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("rustc starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
    check(
        &cases,
        &output_of(&folder.path().join("main"), &input(&cases)),
        "Rust",
    );
}

/// What stands for CUDA in a C compiler.
const AS_CUDA: &str =
    "#define __host__\n#define __device__\n#define __forceinline__ static inline\n";

/// What stands for OpenCL C in a C compiler.
const AS_OPENCL: &str = "typedef unsigned uint;\ntypedef unsigned long ulong;\n\
    static inline uint high_32(uint a, uint b) { return (uint)(((ulong)a * b) >> 32); }\n\
    static inline ulong high_64(ulong a, ulong b) { return (ulong)(((unsigned __int128)a * b) >> 64); }\n\
    #define mul_hi(a, b) _Generic((a), uint: high_32, ulong: high_64)(a, b)\n";

#[test]
fn cuda_functions_agree_with_their_layouts() {
    c_functions_agree(Target::Cuda, AS_CUDA);
}

#[test]
fn opencl_functions_agree_with_their_layouts() {
    c_functions_agree(Target::OpenCl, AS_OPENCL);
}

fn c_functions_agree(target: Target, dialect: &str) {
    let cases = cases(RANDOM);
    let folder = tempfile::tempdir().expect("a folder");
    let mut source = format!(
        "#include <stdio.h>\n{dialect}static long long next(void) {{ long long v; if (fread(&v, 8, 1, stdin) != 1) return 0; return v; }}\n"
    );
    let mut main = "int main(void) {\n".to_owned();
    for case in &cases {
        source += &text(case, target);
        let n = case.types().count();
        let arguments: Vec<_> = (0..n).map(|i| format!("a[{i}]")).collect();
        let _ = writeln!(
            main,
            "    for (long i = 0; i < {}; i++) {{ long long a[{n}]; for (int j = 0; j < {n}; j++) a[j] = next(); long long v = (long long){}({}); fwrite(&v, 8, 1, stdout); }}",
            case.points.len(),
            case.name,
            arguments.join(", ")
        );
    }
    let path = folder.path().join("functions.c");
    std::fs::write(&path, source + &main + "    return 0;\n}\n").expect("written");
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let program = folder.path().join("functions");
    let sanitized = ["-fsanitize=undefined", "-fno-sanitize-recover=all"];
    let compile = |more: &[&str]| {
        Command::new(&cc)
            .args([
                "-std=c11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-parentheses",
            ])
            .args(more)
            .arg("-o")
            .arg(&program)
            .arg(&path)
            .output()
    };
    let output = match compile(&sanitized) {
        // A compiler without the sanitizer's library still checks the values.
        Ok(output) if !output.status.success() => compile(&[]),
        other => other,
    };
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!(
                "NOT RUN: the functions in {target} C were generated but not compiled, for there is no C compiler ({}: {error}); set CC",
                cc.display()
            );
            return;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    check(&cases, &output_of(&program, &input(&cases)), target.name());
}

/// A kernel that reads its parameters from memory, runs the snippet, and stores the result: one thread a point.
fn kernel(case: &Case) -> String {
    let mut out = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k(\n    .param .u64 in,\n    .param .u64 out,\n    .param .u32 n\n)\n{\n    .reg .pred %go;\n    .reg .b32 %thread, %block, %size, %points;\n    .reg .b64 %from, %to;\n".to_owned();
    let name = &case.name;
    let class = |wide: bool| if wide { ".b64" } else { ".b32" };
    let _ = writeln!(
        out,
        "    .reg {} %{name};\n    .reg .b64 %{name}_stored;",
        class(case.program.result_type().wide())
    );
    let made = &case.program;
    for p in made.parameters() {
        let _ = writeln!(
            out,
            "    .reg {} %{};\n    .reg .b64 %{}_read;",
            class(p.ty.wide()),
            p.name,
            p.name
        );
    }
    let bytes = 8 * made.parameters().len();
    let _ = writeln!(
        out,
        "    mov.u32 %thread, %tid.x;\n    mov.u32 %block, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n    mad.lo.s32 %thread, %block, %size, %thread;\n    ld.param.u32 %points, [n];\n    setp.ge.u32 %go, %thread, %points;\n    @%go bra DONE;\n    ld.param.u64 %from, [in];\n    ld.param.u64 %to, [out];\n    mad.wide.u32 %from, %thread, {bytes}, %from;\n    mad.wide.u32 %to, %thread, 8, %to;"
    );
    for (i, p) in made.parameters().iter().enumerate() {
        let _ = writeln!(
            out,
            "    ld.global.u64 %{}_read, [%from+{}];",
            p.name,
            8 * i
        );
        let mnemonic = if p.ty.wide() {
            "mov.u64"
        } else {
            "cvt.u32.u64"
        };
        let _ = writeln!(out, "    {mnemonic} %{0}, %{0}_read;", p.name);
    }
    out += &text(case, Target::Ptx);
    let mnemonic = match (
        case.program.result_type().wide(),
        case.program.result_type().signed(),
    ) {
        (true, _) => "mov.u64",
        (false, true) => "cvt.s64.s32",
        (false, false) => "cvt.u64.u32",
    };
    let _ = writeln!(
        out,
        "    {mnemonic} %{name}_stored, %{name};\n    st.global.u64 [%to], %{name}_stored;\nDONE:\n    ret;\n}}"
    );
    out
}

fn on_emulator(case: &Case) -> Vec<u8> {
    let ptx = kernel(case);
    let module = Module::parse(&ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let mut memory = GlobalMemory::new();
    let data = input(std::slice::from_ref(case));
    let n = case.points.len();
    let from = memory.alloc(data.len() as u64, 256).expect("memory");
    let to = memory.alloc(8 * n as u64, 256).expect("memory");
    memory.write(from, &data).expect("written");
    let launch = Launch {
        grid: [n.div_ceil(128) as u32, 1, 1],
        block: [128, 1, 1],
        args: vec![Arg::Ptr(from), Arg::Ptr(to), Arg::U32(n as u32)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default())
        .unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    assert!(report.findings.is_empty(), "{:?}\n{ptx}", report.findings);
    memory.read(to, 8 * n).expect("read")
}

#[test]
fn ptx_snippets_agree_with_their_layouts() {
    for case in cases(RANDOM) {
        let output = on_emulator(&case);
        check(&[case], &output, "PTX");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn any_layout_agrees_on_the_emulator(seed in 1u64..) {
        let mut random = Random(seed);
        let spec = random_spec("offset", &mut random);
        let case = case(&spec, 200, &mut random);
        let output = on_emulator(&case);
        check(&[case], &output, "PTX");
    }
}

/// `ptxas`, if it is there: `PTXAS`, as `cargo xtask test` sets it.
#[test]
fn ptxas_takes_every_snippet() {
    let Some(ptxas) = std::env::var_os("PTXAS") else {
        eprintln!("NOT RUN: no snippet was assembled, for PTXAS is not set");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kernels.ptx");
    let mut all = ".version 6.3\n.target sm_75\n.address_size 64\n".to_owned();
    for case in cases(RANDOM) {
        let one = kernel(&case);
        let body = one.split_once(".visible").expect("an entry").1;
        all += ".visible";
        all += &body.replace(" k(", &format!(" k_{}(", case.name));
    }
    std::fs::write(&path, all).expect("written");
    let output = Command::new(ptxas)
        .args(["-arch=sm_75", "-o"])
        .arg(folder.path().join("out.cubin"))
        .arg(&path)
        .output()
        .expect("ptxas starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_cannot_be_a_function_is_refused_by_name() {
    let code = |spec: Result<IndexSpec, layout_codegen::index::IndexError>, target| match spec
        .and_then(|s| function(&s, target))
    {
        Ok(text) => panic!("must be refused:\n{text}"),
        Err(e) => {
            assert!(!e.to_string().is_empty());
            e.code()
        }
    };
    let parse = |text| IndexSpec::parse("f", text);
    let rust = Target::Rust;
    assert_eq!(code(parse("(4,x):(1"), rust), "syntax");
    assert_eq!(code(parse("Sw<3,4,0> o 4:1"), rust), "invalid_swizzle");
    assert_eq!(code(parse("Sw<3,4,3> o (4,4):(1,?)"), rust), "syntax");
    assert_eq!(
        code(
            parse("(4,4):(1,4)").map(|s| s.named(&["a", "b", "c"])),
            rust
        ),
        "coordinate_mismatch"
    );
    assert_eq!(
        code(parse("(4,4):(1,4)").map(|s| s.named(&["a", "a"])), rust),
        "invalid_name"
    );
    assert_eq!(
        code(parse("(4,4):(1,4)").map(|s| s.named(&["a", "fn"])), rust),
        "invalid_name"
    );
    assert_eq!(
        code(
            parse("(4,4):(1,4)").map(|s| s.named(&["int", "b"])),
            Target::Cuda
        ),
        "invalid_name"
    );
    // A place that no coordinate has, of modes and of the one linear coordinate.
    let (modes, linear) = (parse("(4,4):(1,4)"), parse("(4,4):(1,4)"));
    assert_eq!(
        code(modes.map(|s| s.bounded(2, Bound::UpTo(1))), rust),
        "coordinate_mismatch"
    );
    assert_eq!(
        code(linear.map(|s| s.linear().bounded(1, Bound::UpTo(1))), rust),
        "coordinate_mismatch"
    );
    // Macros of the headers, a keyword of the next edition, types of OpenCL C.
    for (name, target) in [
        ("NULL", Target::Cuda),
        ("gen", rust),
        ("uint", Target::OpenCl),
        ("NULL", Target::OpenCl),
    ] {
        let spec = parse("(4,4):(1,4)").map(|s| s.named(&[name, "b"]));
        assert_eq!(code(spec, target), "invalid_name", "{name}");
    }
    assert_eq!(
        code(
            parse("(4,4):(1,4)").map(|s| s.named(&["tid", "b"])),
            Target::Ptx
        ),
        "invalid_name"
    );
    assert_eq!(
        code(parse("(4,4):(1,4)").map(|s| s.named(&["a b", "b"])), rust),
        "invalid_name"
    );
    assert_eq!(
        code(parse("(4,4):(1,ld)").map(|s| s.stride("n", 0, 9)), rust),
        "unknown_name"
    );
    assert_eq!(
        code(parse("(4,4):(1,ld)").map(|s| s.stride("ld", 9, 0)), rust),
        "invalid_range"
    );
    assert_eq!(
        code(
            parse("(4,4):(1,4)").map(|s| s.bounded(0, Bound::UpTo(-1))),
            rust
        ),
        "invalid_range"
    );
    assert_eq!(
        code(parse("(4,4):(1,-4)").map(|s| s.result(Ty::U32)), rust),
        "does_not_fit"
    );
    assert_eq!(
        code(parse("(4,4):(1,4611686018427387904)"), rust),
        "overflow"
    );
    let wide = parse("(4,4):(1,4294967296)").map(|mut s| {
        s = s.bounded(1, Bound::Unbounded);
        s.coordinates[1].ty = Some(Ty::U64);
        s
    });
    assert_eq!(code(wide, rust), "too_large");
}
