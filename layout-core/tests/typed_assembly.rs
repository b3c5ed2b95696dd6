//! The promise of the typed layer, read off the assembly: a swizzled ldmatrix address is at most 15 instructions, without a
//! division and without a branch, at opt-level 3 and at opt-level s.
//!
//! The test compiles `assembly/address.rs` with rustc against the library that this test itself links to.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest `liblayout_core-*.rlib` beside this test.
fn library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let deps = exe.parent().unwrap();
    let mut found: Vec<PathBuf> = std::fs::read_dir(deps)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("liblayout_core-") && path.extension().is_some_and(|e| e == "rlib")
        })
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found.pop().expect("liblayout_core-*.rlib beside the test")
}

/// The assembly of the fixture.
fn assembly(opt_level: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/assembly/address.rs");
    let library = library();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("address-{opt_level}.s"));
    let result = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "asm"])
        .args([
            "-C",
            &format!("opt-level={opt_level}"),
            "-C",
            "codegen-units=1",
        ])
        .arg("--extern")
        .arg(format!("layout_core={}", library.display()))
        .arg("-L")
        .arg(format!(
            "dependency={}",
            library.parent().unwrap().display()
        ))
        .arg("-o")
        .arg(&out)
        .arg(&source)
        .output()
        .expect("rustc");
    assert!(
        result.status.success(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
    std::fs::read_to_string(out).unwrap()
}

/// The instructions of one function.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    let found: Vec<String> = assembly
        .lines()
        .map(|line| line.split('#').next().unwrap().trim_end())
        .skip_while(|line| line.trim_start_matches('_') != format!("{function}:"))
        .skip(1)
        .take_while(|line| !line.trim().starts_with(".cfi_endproc") && !line.contains(".size"))
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('.') && !line.ends_with(':'))
        .map(str::to_owned)
        .collect();
    assert!(
        found.last().is_some_and(|last| last.starts_with("ret")),
        "{function}: {found:?}"
    );
    found
}

/// Divisions, calls, jumps and conditional branches of x86-64 and aarch64.
fn is_slow(instruction: &str) -> bool {
    let name = instruction.split_whitespace().next().unwrap();
    name.contains("div")
        || name.starts_with('j')
        || name.starts_with("call")
        || name == "b"
        || name.starts_with("b.")
        || name.starts_with("bl")
        || name.starts_with("cb")
        || name.starts_with("tb")
}

#[test]
fn a_swizzled_ldmatrix_address_is_at_most_15_instructions() {
    for opt_level in ["3", "s"] {
        let assembly = assembly(opt_level);
        let ours = instructions(&assembly, "address");
        let by_hand = instructions(&assembly, "by_hand");
        assert!(
            !ours.iter().any(|instruction| is_slow(instruction)),
            "opt-level {opt_level}: {ours:#?}"
        );
        assert!(ours.len() <= 15, "opt-level {opt_level}: {ours:#?}");
        assert!(
            ours.len() <= by_hand.len() + 1,
            "opt-level {opt_level}: {ours:#?} against {by_hand:#?}"
        );
    }
}

#[test]
fn the_counter_sees_divisions_and_branches() {
    for slow in [
        "divl %ecx",
        "idivq %rcx",
        "jne .LBB0_1",
        "callq foo",
        "udiv w0, w0, w1",
        "b.ne x",
    ] {
        assert!(is_slow(slow), "{slow}");
    }
    for fast in [
        "shll $4, %eax",
        "xorl %ecx, %eax",
        "retq",
        "leal (%rdi,%rax), %eax",
        "ret",
    ] {
        assert!(!is_slow(fast), "{fast}");
    }
    let text = "\t.globl\tf\nf:\n\t.cfi_startproc\n\tmovl\t%edi, %eax\n.L1:\n\tretq\n.Lend:\n\t.size\tf, 3\n";
    assert_eq!(instructions(text, "f"), ["movl\t%edi, %eax", "retq"]);
}
