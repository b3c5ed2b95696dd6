//! The launch contract of kernels of one's own: its values, its JSON, and hosts in four languages that compile and launch what it says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::value::{F32, S32};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Contract, Language, PtxKernel, Role, Scalar};
use tilewright::layout;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// y = alpha x + y + shift, of which buffers have these names.
fn update([x, y]: [&str; 2]) -> Result<Proven> {
    let mut k = Kernel::new("update", 128);
    let n = k.size("n", 1 << 30);
    let (alpha, shift): (F32, S32) = (k.argument("alpha"), k.argument("shift"));
    let (x, y) = (
        k.input(x, Element::F32, &[n]),
        k.output(y, Element::F32, &[n]),
    );
    let (block, thread, share) = (
        k.tiles(Axis::X, n, 512)?,
        k.thread(),
        layout!((128,4):(1,128)),
    );
    let x = x
        .tile(&mut k, &[512], &[block])?
        .partition(&mut k, &share, thread)?;
    let y = y
        .tile(&mut k, &[512], &[block])?
        .partition(&mut k, &share, thread)?;
    let (new, old) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
    let sum = new.zip(&mut k, &old, |k, x, y| {
        let shift = shift.to_f32(k);
        x.mul(k, alpha).add(k, y).add(k, shift)
    })?;
    k.store_fragment(&y, &sum)?;
    Ok(k.build(Arch(80))?)
}

type Given = Vec<(&'static str, Scalar)>;

fn scalars(alpha: f32, shift: i32) -> [(&'static str, Scalar); 3] {
    [
        ("n", Scalar::U32(1000)),
        ("alpha", Scalar::F32(alpha)),
        ("shift", Scalar::I32(shift)),
    ]
}

#[test]
fn the_contract_says_what_a_launch_passes() -> Result {
    let kernel = update(["x", "y"])?;
    let contract = Contract::new(&kernel, scalars(0.1, -3))?;
    let [launch] = &contract.launches[..] else {
        panic!("one launch")
    };
    assert_eq!(
        (launch.step.grid, launch.step.block),
        ([2, 1, 1], [128, 1, 1])
    );
    let roles = contract
        .buffers
        .iter()
        .map(|b| (b.name.as_str(), b.bytes, b.role));
    let expected = [
        ("x", Some(4000), Role::Input),
        ("y", Some(4000), Role::InOut),
    ];
    assert_eq!(roles.collect::<Vec<_>>(), expected);
    let json = contract.to_json();
    let value = |name: &str| {
        let mut params = json["params"].as_array().into_iter().flatten();
        params
            .find(|p| p["name"] == name)
            .map(|p| (p["type"].clone(), p["value"].clone()))
    };
    assert_eq!(value("n"), Some(("u32".into(), 1000.into())));
    assert_eq!(value("alpha"), Some(("f32".into(), 0.1.into())));
    assert_eq!(value("shift"), Some(("s32".into(), (-3).into())));
    let y = serde_json::json!({"buffer": "y", "element": "f32", "elements": 1000});
    assert_eq!(value("y"), Some(("ptr".into(), y)));
    assert_eq!(json["memory"]["buffers"][1]["usage"], "in_out");

    // Nothing to do is nothing to launch.
    let none = Contract::new(
        &kernel,
        [
            ("n", Scalar::U32(0)),
            ("alpha", Scalar::F32(1.0)),
            ("shift", Scalar::I32(0)),
        ],
    )?;
    assert!(none.launches.is_empty() && none.to_json().is_null());
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_refused() -> Result {
    let kernel = update(["x", "y"])?;
    let with = |change: &dyn Fn(&mut Given)| {
        let mut all = scalars(1.0, 1).to_vec();
        change(&mut all);
        Contract::new(&kernel, all)
            .map_or_else(|e| (e.code(), e.to_string()), |_| ("", String::new()))
    };
    assert_eq!(with(&|_| {}).0, "");
    assert_eq!(with(&|all| all[0].1 = Scalar::U32(1 << 31)).0, "too_large");
    let (code, message) = with(&|all| all[1].1 = Scalar::F64(1.0));
    assert_eq!(
        (code, message.as_str()),
        ("argument_type", "`alpha` takes an f32, and an f64 is given")
    );
    assert_eq!(with(&|all| drop(all.pop())).0, "missing_argument");
    assert_eq!(
        with(&|all| all.push(("m", Scalar::U32(1)))).0,
        "unknown_argument"
    );
    assert_eq!(
        with(&|all| all.push(("n", Scalar::U32(1)))).0,
        "argument_twice"
    );
    Ok(())
}

/// In each language alignments are checked, and names may be words of the language.
#[test]
fn hosts_compile_and_pass_what_the_contract_says() -> Result {
    for (names, alpha, shift) in [
        (["x", "y"], 0.1, -3),
        (["in", "lambda"], f32::INFINITY, i32::MIN),
        (["A", "a"], f32::NAN, i32::MAX),
        (["class", "Self"], -1.5e-30, 0),
        (["launches", "ctypes"], f32::NEG_INFINITY, 7),
        (["for", "for_"], 1.0, 1),
        (["None", "none"], 1.0, 1),
    ] {
        let contract = Contract::new(&update(names)?, scalars(alpha, shift))?;
        let expected = format!(
            "update 2 1 1 128 1 1 1000 {:?} {shift} 4096 8192",
            alpha.to_bits()
        );
        let expected = if alpha.is_nan() {
            expected.replace(&alpha.to_bits().to_string(), "nan")
        } else {
            expected
        };
        for (language, printed) in [
            ("c", c(&contract)?),
            ("rust", rust(&contract)?),
            ("python", python(&contract)?),
        ] {
            assert_eq!(printed.trim(), expected, "{language}, {names:?}");
        }
    }
    Ok(())
}

#[test]
fn cudarc_has_no_tensor_maps() -> Result {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry pair(.param .u64 x) { ret; }";
    let pair = PtxKernel::new(text, "pair")?.cluster([2, 1, 1]);
    let contract = Contract::new(&pair, [])?;
    let error = contract.host(Language::Cudarc).unwrap_err();
    assert!(error.to_string().contains("no clusters"), "{error}");
    assert!(contract.host(Language::C)?.contains("{2, 1, 1}"));
    // A structure has no text.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one(.param .align 4 .b8 s[12]) { ret; }";
    let error = Contract::new(
        &PtxKernel::new(text, "one")?,
        [("s", Scalar::Bytes(vec![0; 12]))],
    )
    .unwrap_err();
    assert!(error.to_string().contains("a structure"), "{error}");
    Ok(())
}

/// The members of a structure that are addresses.
fn identifiers(text: &str, open: &str) -> Vec<String> {
    let inside = text
        .split_once(open)
        .and_then(|(_, rest)| rest.split_once('}'))
        .expect("fields")
        .0;
    let line = |line: &str| {
        let member = line.trim().trim_start_matches("pub ");
        member.split([',', ';']).next().unwrap_or(member).to_owned()
    };
    inside
        .lines()
        .map(line)
        .filter(|l| l.contains("u64") || l.contains("uint64_t"))
        .collect()
}

fn c(contract: &Contract) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let header = contract.host(Language::C)?;
    let fields = identifiers(&header, "typedef struct {");
    let name = |i: usize| fields[i].trim_start_matches("uint64_t ").to_owned();
    let main = format!(
        "#include \"host.h\"\n#include <stdio.h>\n#include <string.h>\n#include <math.h>\n\
         static int show(void *context, const tilewright_launch *l) {{\n    (void)context;\n    float alpha; uint32_t bits; memcpy(&alpha, l->params[1], 4); memcpy(&bits, &alpha, 4);\n    \
         printf(\"%s %u %u %u %u %u %u %u \", l->kernel, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], *(uint32_t *)l->params[0]);\n    \
         if (isnan(alpha)) printf(\"nan\"); else printf(\"%u\", bits);\n    \
         printf(\" %d %llu %llu\\n\", *(int32_t *)l->params[2], (unsigned long long)*(uint64_t *)l->params[3], (unsigned long long)*(uint64_t *)l->params[4]);\n    return 0;\n}}\n\
         int main(void) {{\n    tilewright_buffers odd = {{.{} = 2, .{} = 8192}};\n    if (tilewright_launches(&odd, show, 0) != TILEWRIGHT_MISALIGNED) return 1;\n    \
         tilewright_buffers buffers = {{.{} = 4096, .{} = 8192}};\n    return tilewright_launches(&buffers, show, 0);\n}}\n",
        name(0),
        name(1),
        name(0),
        name(1)
    );
    std::fs::write(folder.path().join("host.h"), header)?;
    std::fs::write(folder.path().join("main.c"), main)?;
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    ran(
        folder.path(),
        &cc,
        &[
            "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main",
        ],
    )?;
    ran(folder.path(), "./main", &[])
}

fn rust(contract: &Contract) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let text = contract.host(Language::Rust)?;
    let fields = identifiers(&text, "pub struct Buffers {");
    let name = |i: usize| fields[i].trim_end_matches(": u64").to_owned();
    let mut main = String::from("mod host;\nuse host::Arg;\nfn main() {\n");
    let _ = write!(
        main,
        "    let odd = host::Buffers {{ {}: 2, {}: 8192 }};\n    assert!(host::launches(&odd).is_err());\n    \
         for l in host::launches(&host::Buffers {{ {}: 4096, {}: 8192 }}).unwrap() {{\n        \
         print!(\"{{}}\", l.kernel);\n        for v in l.grid.iter().chain(&l.block) {{ print!(\" {{v}}\"); }}\n        \
         for a in &l.args {{ match a {{ Arg::Ptr(v) | Arg::U64(v) => print!(\" {{v}}\"), Arg::U32(v) => print!(\" {{v}}\"), Arg::S32(v) => print!(\" {{v}}\"), \
         Arg::F32(v) if v.is_nan() => print!(\" nan\"), Arg::F32(v) => print!(\" {{}}\", v.to_bits()), Arg::F64(v) => print!(\" {{v}}\") }} }}\n        println!();\n    }}\n}}\n",
        name(0),
        name(1),
        name(0),
        name(1)
    );
    std::fs::write(folder.path().join("host.rs"), text)?;
    std::fs::write(folder.path().join("main.rs"), main)?;
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    ran(
        folder.path(),
        &rustc,
        &["--edition", "2024", "-Adead_code", "-Dwarnings", "main.rs"],
    )?;
    ran(folder.path(), "./main", &[])
}

fn python(contract: &Contract) -> Result<String> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("host.py"),
        contract.host(Language::Python)?,
    )?;
    let script = "import host, math, struct\n\
        try:\n    host.launches(2, 8192)\n    raise SystemExit('misaligned buffers are taken')\nexcept ValueError:\n    pass\n\
        for l in host.launches(4096, 8192):\n    n, alpha, shift, x, y = [a.value for a in l.args]\n    \
        bits = 'nan' if math.isnan(alpha) else struct.unpack('<I', struct.pack('<f', alpha))[0]\n    \
        print(l.kernel, *l.grid, *l.block, n, bits, shift, x, y)\n";
    ran(folder.path(), "python3", &["-c", script])
}

fn ran(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
