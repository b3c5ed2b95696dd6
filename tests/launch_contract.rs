//! The launch contract of kernels of one's own: its values, its JSON, and hosts in four languages that compile and launch what it says.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
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

/// Names of buffers and scalars that are words of a language, or differ in their case.
const NAMES: [[&str; 2]; 7] = [
    ["x", "y"],
    ["in", "lambda"],
    ["A", "a"],
    ["class", "Self"],
    ["launches", "ctypes"],
    ["for", "for_"],
    ["None", "none"],
];

/// One text launches for every size: what it passes is what the contract for that size says.
#[test]
fn hosts_take_the_sizes() -> Result {
    let sizes = [1000, 0, 1, 512, 513, 1 << 30, (1 << 30) + 1, u32::MAX];
    let given: Vec<Numbers> = (0..).zip(sizes).map(|(i, n)| (n, 0.1, i - 3)).collect();
    for names in NAMES {
        let kernel = update(names)?;
        let contract = Contract::new(&kernel, scalars(1.0, 1))?;
        let mut expected = String::new();
        for &(n, alpha, shift) in &given {
            let all = [
                ("n", Scalar::U32(n)),
                ("alpha", Scalar::F32(alpha)),
                ("shift", Scalar::I32(shift)),
            ];
            let Ok(contract) = Contract::new(&kernel, all) else {
                expected.push_str("refused\n");
                continue;
            };
            let bytes = contract.buffers[1].bytes.expect("known");
            for launch in &contract.launches {
                let (grid, bits) = (launch.step.grid[0], alpha.to_bits());
                let (x, y) = (1_u64 << 40, 1_u64 << 41);
                let _ = writeln!(
                    expected,
                    "update {grid} 1 1 128 1 1 {n} {bits} {shift} {x} {y}"
                );
            }
            let _ = writeln!(expected, "bytes {bytes}");
        }
        for (language, printed) in [
            ("c", c(&contract, &given)?),
            ("rust", rust(&contract, &given)?),
            ("python", python(&contract, &given)?),
        ] {
            assert_eq!(printed, expected, "{language}, {names:?}");
        }
    }
    Ok(())
}

/// What an author states of sizes, multiples, and buffers of several modes are checked by each text.
#[test]
fn hosts_check_what_is_stated() -> Result {
    let kernel = || -> Result<Proven> {
        let mut k = Kernel::new("update", 128);
        let n = k.size("n", 1 << 30);
        let (least, alpha): (_, F32) = (k.constant(256), k.argument("alpha"));
        let shift: S32 = k.argument("shift");
        k.assume(n, Cmp::Ge, least, "short ones go elsewhere")?;
        let (rows, tiles) = (k.scale(n, 3), k.tiles_in(n, 300)?);
        let x = k.input("x", Element::F32, &[tiles, rows]);
        let y = k.output("y", Element::F32, &[n]);
        let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
        let at = k.linear(&[(128, block), (1, thread)], 0);
        let zero = k.constant(0);
        let value = x.load::<f32>(&mut k, &[zero, at])?;
        let shift = shift.to_f32(&mut k);
        let value = value.fma(&mut k, alpha, shift);
        y.store(&mut k, &[at], value)?;
        Ok(k.build(Arch(80))?)
    };
    let kernel = kernel()?;
    let contract = Contract::new(&kernel, scalars(1.0, 1))?;
    let given = [(255, 1.0, 0), (256, 1.0, 0), (301, 1.0, 0)];
    let line = |n: u32, grid| {
        let (one, x, y) = (1.0_f32.to_bits(), 1_u64 << 40, 1_u64 << 41);
        format!(
            "update {grid} 1 1 128 1 1 {n} {one} 0 {x} {y}\nbytes {}\n",
            4 * n
        )
    };
    let expected = format!("refused\n{}{}", line(256, 2), line(301, 3));
    for printed in [
        c(&contract, &given)?,
        rust(&contract, &given)?,
        python(&contract, &given)?,
    ] {
        assert_eq!(printed, expected);
    }
    let text = contract.host(Language::Python)?;
    assert!(
        text.contains("\"x\": ((n + 299) // 300) * (3 * n) * 4,"),
        "{text}"
    );
    assert!(
        text.contains("the kernel was proven for n >= 256"),
        "{text}"
    );
    Ok(())
}

/// A kernel of which the text alone is known has hosts for one launch, with its numbers as literals.
#[test]
fn hosts_of_a_text_have_its_numbers() -> Result {
    let proven = update(["x", "y"])?;
    for (alpha, shift) in [
        (0.1, -3),
        (f32::INFINITY, i32::MIN),
        (f32::NAN, i32::MAX),
        (-1.5e-30, 0),
        (f32::NEG_INFINITY, 7),
    ] {
        let kernel = PtxKernel::new(&proven.ptx, "update")?;
        let kernel = kernel.grid([2, 1, 1]).block([128, 1, 1]);
        let contract = Contract::new(&kernel, scalars(alpha, shift))?;
        let bits = if alpha.is_nan() {
            "nan".to_owned()
        } else {
            alpha.to_bits().to_string()
        };
        let (x, y) = (1_u64 << 40, 1_u64 << 41);
        let expected = format!("update 2 1 1 128 1 1 1000 {bits} {shift} {x} {y}\n");
        for (language, printed) in [
            ("c", c(&contract, &[])?),
            ("rust", rust(&contract, &[])?),
            ("python", python(&contract, &[])?),
        ] {
            assert_eq!(printed, expected, "{language}");
        }
    }
    Ok(())
}

/// n, alpha and shift of a launch.
type Numbers = (u32, f32, i32);

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

/// What the text in C passes to each of the given launches; of a text for one launch, to that.
fn c(contract: &Contract, given: &[Numbers]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let header = contract.host(Language::C)?;
    let fields = identifiers(&header, "typedef struct {");
    let name = |i: usize| fields[i].trim_start_matches("uint64_t ").to_owned();
    let (x, y) = (name(0), name(1));
    let mut main = String::from(
        "#include \"host.h\"\n#include <stdio.h>\n#include <string.h>\n#include <math.h>\n\
         static int show(void *context, const tilewright_launch *l) {\n    (void)context;\n    float alpha; uint32_t bits; memcpy(&alpha, l->params[1], 4); memcpy(&bits, &alpha, 4);\n    \
         printf(\"%s %u %u %u %u %u %u %u \", l->kernel, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], *(uint32_t *)l->params[0]);\n    \
         if (isnan(alpha)) printf(\"nan\"); else printf(\"%u\", bits);\n    \
         printf(\" %d %llu %llu\\n\", *(int32_t *)l->params[2], (unsigned long long)*(uint64_t *)l->params[3], (unsigned long long)*(uint64_t *)l->params[4]);\n    return 0;\n}\n\
         int main(void) {\n    int status;\n",
    );
    let _ = writeln!(
        main,
        "    tilewright_buffers odd = {{.{x} = 2, .{y} = 8192}}, near = {{.{x} = 4096, .{y} = 4112}}, buffers = {{.{x} = 1ull << 40, .{y} = 1ull << 41}};"
    );
    for (n, alpha, shift) in given {
        let _ = writeln!(
            main,
            "    {{\n        tilewright_scalars s = {{{n}u, {alpha:?}f, {shift}}};\n        status = tilewright_launches(&buffers, &s, show, 0);\n        \
             if (status == TILEWRIGHT_SIZE) puts(\"refused\"); else if (status) return 1; else {{\n            \
             printf(\"bytes %llu\\n\", (unsigned long long)tilewright_bytes(&s).{y});\n            \
             if (s.n && tilewright_launches(&odd, &s, show, 0) != TILEWRIGHT_MISALIGNED) return 2;\n            \
             if (s.n > 4 && tilewright_launches(&near, &s, show, 0) != TILEWRIGHT_OVERLAP) return 3;\n        }}\n    }}"
        );
    }
    if given.is_empty() {
        main.push_str("    (void)odd, (void)near;\n    if ((status = tilewright_launches(&buffers, show, 0)) != 0) return status;\n");
    }
    main.push_str("    return 0;\n}\n");
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

fn rust(contract: &Contract, given: &[Numbers]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let text = contract.host(Language::Rust)?;
    let fields = identifiers(&text, "pub struct Buffers {");
    let name = |i: usize| fields[i].trim_end_matches(": u64").to_owned();
    let (x, y) = (name(0), name(1));
    let mut main = String::from(
        "mod host;\nuse host::{Arg, Buffers};\nfn show(all: &[host::Launch]) {\n    for l in all {\n        \
         print!(\"{}\", l.kernel);\n        for v in l.grid.iter().chain(&l.block) { print!(\" {v}\"); }\n        \
         for a in &l.args { match a { Arg::Ptr(v) | Arg::U64(v) => print!(\" {v}\"), Arg::U32(v) => print!(\" {v}\"), Arg::S32(v) => print!(\" {v}\"), \
         Arg::F32(v) if v.is_nan() => print!(\" nan\"), Arg::F32(v) => print!(\" {}\", v.to_bits()), Arg::F64(v) => print!(\" {v}\") } }\n        println!();\n    }\n}\nfn main() {\n",
    );
    let _ = writeln!(
        main,
        "    let at = |{x}, {y}| Buffers {{ {x}, {y} }};\n    let buffers = at(1 << 40, 1 << 41);"
    );
    for (n, alpha, shift) in given {
        let _ = writeln!(
            main,
            "    let s = host::Scalars {{ n: {n}, alpha: {alpha:?}, shift: {shift} }};\n    \
             match host::launches(&buffers, &s) {{ Err(_) => println!(\"refused\"), Ok(all) => {{ show(&all); println!(\"bytes {{}}\", s.bytes().{y});\n        \
             assert!(host::launches(&at(2, 8192), &s).is_err());\n        assert!(s.n < 5 || host::launches(&at(4096, 4112), &s).is_err()); }} }}"
        );
    }
    if given.is_empty() {
        main.push_str("    show(&host::launches(&buffers).unwrap());\n");
    }
    main.push_str("}\n");
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

fn python(contract: &Contract, given: &[Numbers]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("host.py"),
        contract.host(Language::Python)?,
    )?;
    let mut script = String::from(
        "import host, math, struct\n\
        def refused(x, y, **s):\n    try:\n        host.launches(x, y, **s)\n    except ValueError:\n        return True\n\
        def show(all):\n    for l in all:\n        n, alpha, shift, x, y = [a.value for a in l.args]\n        \
        bits = 'nan' if math.isnan(alpha) else struct.unpack('<I', struct.pack('<f', alpha))[0]\n        \
        print(l.kernel, *l.grid, *l.block, n, bits, shift, x, y)\n",
    );
    for (n, alpha, shift) in given {
        let _ = writeln!(
            script,
            "s = dict(n={n}, alpha={alpha}, shift={shift})\n\
             if refused(1 << 40, 1 << 41, **s):\n    print('refused')\nelse:\n    show(host.launches(1 << 40, 1 << 41, **s))\n    \
             print('bytes', list(host.buffer_bytes(**s).values())[1])\n    assert refused(2, 8192, **s) and ({n} < 5 or refused(4096, 4112, **s))"
        );
    }
    if given.is_empty() {
        script.push_str("show(host.launches(1 << 40, 1 << 41))\n");
    }
    ran(folder.path(), "python3", &["-c", &script])
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
