//! Instruction text exists in printers alone, and no public function beside `ir::instructions` takes or makes an address.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may write instruction text: the printer of kernels, and those of index functions.
const PRINTERS: [&str; 2] = ["print/", "index/targets/"];

/// How text of PTX begins.
const MNEMONICS: [&str; 26] = [
    "ld.", "st.", "mov.", "add.", "sub.", "mul.", "mad.", "fma.", "setp.", "selp.", "cvt.",
    "cvta.", "shl.", "shr.", "and.b", "or.b", "xor.b", "bra", "bar.", "cp.async", "ldmatrix",
    "mma.sync", "prmt.", "shfl.", "ret;", "@%p",
];

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// The sources of the crate, by their paths in it.
fn crate_sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    all.into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).expect("inside");
            let text = fs::read_to_string(&path).expect("text");
            (name.to_string_lossy().replace('\\', "/"), text)
        })
        .collect()
}

/// The string literals of a line of code, without its comment.
fn literals(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or("");
    code.split('"').skip(1).step_by(2).collect()
}

#[test]
fn only_printers_write_instructions() {
    let mut found = Vec::new();
    let mut printed = 0;
    for (name, text) in crate_sources() {
        let printer = PRINTERS.iter().any(|p| name.starts_with(p));
        // Names of accesses in the bank model, such as `ld.128`, are no instructions; tests may look for text.
        for (i, line) in text.lines().enumerate() {
            let instruction = literals(line)
                .into_iter()
                .any(|l| MNEMONICS.iter().any(|m| l.trim_start().starts_with(m)));
            if instruction && printer {
                printed += 1;
            } else if instruction {
                found.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    assert!(printed > 20, "the printers are looked at: {printed} lines");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_public_function_takes_an_address() {
    let mut found = Vec::new();
    let mut looked_at = 0;
    for (name, text) in crate_sources() {
        // `Choice` belongs to `ir::instructions`, whose traits are the level of addresses.
        let of_instructions = name == "view/choice.rs";
        if of_instructions || !["ir/", "view/"].iter().any(|room| name.starts_with(room)) {
            continue;
        }
        for (at, _) in text.match_indices("pub fn ") {
            let rest = &text[at..];
            let end = rest.find('{').unwrap_or(rest.len());
            let signature = &rest[..end];
            looked_at += 1;
            let arguments = signature.split("->").next().unwrap_or(signature);
            if arguments.contains("Address") || signature.contains("-> Address") {
                found.push(format!("{name}: {}", signature.trim()));
            }
        }
    }
    assert!(looked_at > 50, "{looked_at} functions");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
