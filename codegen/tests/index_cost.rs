//! What index code costs: PTX instructions against their budgets, Rust against functions written by hand.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Command;

use layout_codegen::index::targets::program;
use layout_codegen::index::{IndexSpec, Target, function};

/// Instructions of the PTX snippet of a layout at one linear coordinate or one for each mode.
fn instructions(layout: &str, linear: bool) -> usize {
    let spec = IndexSpec::parse("address", layout).unwrap_or_else(|e| panic!("{layout}: {e}"));
    let spec = if linear { spec.linear() } else { spec };
    let program = program(&spec).unwrap_or_else(|e| panic!("{layout}: {e}"));
    let text = program.text(Target::Ptx).expect("PTX");
    let counted = text
        .lines()
        .filter(|l| l.ends_with(';') && !l.contains(".reg "))
        .count();
    assert!(!text.contains("div.") && !text.contains("rem."), "{text}");
    assert!(counted >= program.statements().len(), "{text}");
    counted
}

#[test]
fn the_swizzled_ldmatrix_address_is_within_its_budget() {
    // Bytes of a 64-element f16 row under the 128-byte swizzle; a warp's x4 block is 16 rows and two 16-byte chunks.
    // Lane -> (row, chunk), then 4 warps down the tile, then a stage of 8 KiB above a shared base.
    let lane = "Sw<3,4,3> o (16,2):(128,16)";
    let warps = "Sw<3,4,3> o (16,2,4):(128,16,2048)";
    assert!(
        instructions(lane, true) <= 7,
        "{}",
        instructions(lane, true)
    );
    assert!(
        instructions(warps, true) <= 15,
        "{}",
        instructions(warps, true)
    );
    // Transposed operands swap what the two lane bits above 3 mean.
    let transposed = "Sw<3,4,3> o (8,2,2,4):(128,16,1024,2048)";
    assert!(
        instructions(transposed, true) <= 15,
        "{}",
        instructions(transposed, true)
    );
}

#[test]
fn simple_layouts_cost_what_they_must() {
    for (layout, linear, most) in [
        // one multiply-add
        ("(32,32):(33,1)", false, 1),
        // i + (i >> 5)
        ("(32,32):(1,33)", true, 2),
        // compact: nothing but the copy
        ("((2,4),(8,8)):((1,2),(8,64))", true, 1),
        // i + 2·(i / 48): multiply, shift, shift, add
        ("(48,20):(1,50)", true, 4),
        // shift, mask, xor, shift-add (PTX has no three-input logic, so that each is an instruction)
        ("Sw<3,3,3> o (8,64):(64,1)", false, 5),
        // a run-time stride: widen, multiply-add
        ("(8,64):(ld,1)", false, 2),
    ] {
        let n = instructions(layout, linear);
        assert!(n <= most, "{layout} takes {n} instructions, not {most}");
    }
}

/// A layout, its form, the parameters of both functions, and the body of the one written by hand.
const BY_HAND: [(&str, bool, &str, &str, &str); 9] = [
    (
        "(32,32):(33,1)",
        false,
        "a: u32, b: u32",
        "u32",
        "a * 33 + b",
    ),
    (
        "(32,32):(1,33)",
        true,
        "a: u32",
        "u32",
        "(a & 31) + (a >> 5) * 33",
    ),
    (
        "Sw<3,3,3> o (8,64):(64,1)",
        false,
        "a: u32, b: u32",
        "u32",
        "(a << 6) + (b ^ (a << 3))",
    ),
    (
        "Sw<3,3,3> o (16,64):(64,1)",
        false,
        "a: u32, b: u32",
        "u32",
        "(a << 6) + (b ^ ((a & 7) << 3))",
    ),
    // The ldmatrix address of a lane, in bytes.
    (
        "Sw<3,4,3> o (16,2,4):(128,16,2048)",
        true,
        "a: u32",
        "u32",
        "{ let (row, chunk) = (a & 15 | (a >> 5 & 3) << 4, a >> 4 & 1); (row << 7) | ((chunk ^ row & 7) << 4) }",
    ),
    (
        "(8,64):(64,1)",
        true,
        "a: u32",
        "u32",
        "((a & 7) << 6) + (a >> 3)",
    ),
    (
        "(48,20):(1,50)",
        true,
        "a: u32",
        "u32",
        "a % 48 + a / 48 * 50",
    ),
    (
        "(7,5,3):(15,3,1)",
        true,
        "a: u32",
        "u32",
        "a % 7 * 15 + a / 7 % 5 * 3 + a / 35",
    ),
    (
        "(8,64):(ld,1)",
        false,
        "a: u32, b: u32, c: u32",
        "u64",
        "a as u64 * c as u64 + b as u64",
    ),
];

/// Instructions of each function in assembly text.
fn count(assembly: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let mut current: Option<String> = None;
    for line in assembly.lines() {
        if let Some(label) = line.strip_suffix(':')
            && !line.starts_with([' ', '\t'])
        {
            let label = label.trim_start_matches('_');
            if label.starts_with("export") {
                current = Some(label.to_owned());
            }
            continue;
        }
        let text = line.trim();
        if text == ".cfi_endproc" {
            current = None;
        }
        if let Some(name) = &current
            && !text.is_empty()
            && !text.starts_with(['.', '#', '/', ';'])
        {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}

/// The assembly that rustc makes of `source` at opt-level 3.
fn assembly(source: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, out) = (
        folder.path().join("functions.rs"),
        folder.path().join("functions.s"),
    );
    std::fs::write(&path, source).expect("written");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "-Copt-level=3",
            "-Cpanic=abort",
            "--emit",
            "asm",
            "-o",
        ])
        .args([&out, &path])
        .output()
        .expect("rustc starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    std::fs::read_to_string(out).expect("read")
}

#[test]
fn rust_output_costs_no_more_than_by_hand() {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        eprintln!("NOT RUN: instructions are counted on x86-64 and AArch64 only");
        return;
    }
    // Two files: in one, the compiler would merge what is equal.
    let head = "#![no_std]\n#![crate_type = \"lib\"]\n";
    let (mut generated, mut by_hand) = (head.to_owned(), head.to_owned());
    for (i, (layout, linear, parameters, result, body)) in BY_HAND.iter().enumerate() {
        let spec = IndexSpec::parse(&format!("f{i}"), layout).expect("a layout");
        let spec = if *linear { spec.linear() } else { spec };
        generated += &function(&spec, Target::Rust).expect("Rust");
        let arguments = ["a", "a, b", "a, b, c"][parameters.matches(':').count() - 1];
        let export =
            format!("#[unsafe(no_mangle)] pub extern \"C\" fn export{i}({parameters}) -> {result}");
        let _ = writeln!(generated, "{export} {{ f{i}({arguments}) }}");
        let _ = writeln!(by_hand, "{export} {{ {body} }}");
    }
    let (generated, by_hand) = (assembly(&generated), assembly(&by_hand));
    let (ours, theirs) = (count(&generated), count(&by_hand));
    for (i, (layout, ..)) in BY_HAND.iter().enumerate() {
        let name = format!("export{i}");
        let get = |counts: &HashMap<String, usize>| {
            *counts
                .get(&name)
                .unwrap_or_else(|| panic!("{name} in\n{generated}\n{by_hand}"))
        };
        let (generated, by_hand) = (get(&ours), get(&theirs));
        println!("{layout}: {generated} instructions, {by_hand} by hand");
        assert!(
            generated <= by_hand,
            "{layout}: {generated} instructions, {by_hand} by hand"
        );
    }
}
