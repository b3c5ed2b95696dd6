//! The public interface of every crate, held to the list of the last release.
//!
//! `tests/golden/api/CRATE.txt` has a line for every public item of version 0.2.0: functions and methods with their signatures, types with their
//! public fields and variants, implementations of traits, re-exports. An item that is missing, or whose line has changed, breaks those who use
//! it, and fails here; a new one does not. When a release may break its users (0.3.0), `TILEWRIGHT_UPDATE=1 cargo test --test public_api`
//! writes the lists anew.
//!
//! `cargo xtask interface` compares the compiler's own description of the crates by `cargo-semver-checks`, which knows auto traits, what macros
//! define and which change of a signature is compatible. Types of parameters and results it does not compare; this test does, as text.

mod listing;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates that are released, with their folders.
const CRATES: [(&str, &str); 7] = [
    ("layout-core", "layout-core"),
    ("layout-macros", "layout-macros"),
    ("layout-codegen", "codegen"),
    ("ptx-emulator", "emulator"),
    ("tilewright-gpu", "gpu"),
    ("tilewright", "."),
    ("tilewright-workbench", "workbench"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn baseline(name: &str) -> PathBuf {
    root().join("tests/golden/api").join(format!("{name}.txt"))
}

/// The lines that are in `old` and no longer in `new`.
fn missing<'a>(old: &'a str, new: &BTreeSet<String>) -> Vec<&'a str> {
    old.lines().filter(|line| !new.contains(*line)).collect()
}

#[test]
fn nothing_of_the_last_release_is_gone() {
    let update = std::env::var_os("TILEWRIGHT_UPDATE").is_some_and(|v| v == "1");
    let mut broken = Vec::new();
    for (name, folder) in CRATES {
        let items = listing::of(&root().join(folder).join("src/lib.rs"));
        if update {
            let items: Vec<String> = items.into_iter().collect();
            let text = items.join(
                "
",
            ) + "
";
            std::fs::write(baseline(name), text).expect("a write");
            continue;
        }
        let old = std::fs::read_to_string(baseline(name)).expect("the list of the last release");
        assert!(old.lines().count() > 5, "{name} has an interface");
        for line in missing(&old, &items) {
            broken.push(format!("{name}: {line}"));
        }
    }
    assert!(
        broken.is_empty(),
        "{} public items are gone or changed; if the next release may break its users, write the lists anew \
         (TILEWRIGHT_UPDATE=1 cargo test --test public_api) and say so in CHANGELOG.md:\n{}",
        broken.len(),
        broken[..broken.len().min(40)].join("\n")
    );
}

#[test]
fn every_released_crate_is_held() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let members = manifest.split("members = [").nth(1).expect("members");
    for member in members.split(']').next().expect("their end").split(',') {
        let folder = member.trim().trim_matches('"');
        let path = root().join(folder).join("Cargo.toml");
        let own = std::fs::read_to_string(&path).expect("a manifest");
        let released =
            !own.contains("publish = false") && root().join(folder).join("src/lib.rs").exists();
        let held = CRATES.iter().any(|(_, known)| *known == folder);
        assert_eq!(released, held, "{folder}");
    }
}

/// What the list would not notice is no list: each kind of change is one.
#[test]
fn changes_are_seen() {
    let folder = std::env::temp_dir().join(format!("tilewright-api-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path: &Path = &folder.join("lib.rs");
    let list = |text: &str| {
        std::fs::write(path, text).expect("written");
        listing::of(path)
    };
    let before = "pub fn f(a: u32) -> u32 { a }\npub struct S { pub x: u8, y: u8 }\nimpl S { pub const fn g(&self) {} fn h(&self) {} }\n\
                  pub enum E { A, B(u8) }\npub trait T { fn t(&self); }\nimpl T for S { fn t(&self) {} }\npub mod m { pub const C: u8 = 1; }\n\
                  pub use std::fmt::Debug;\n#[cfg(test)] pub fn test_only() {}\n";
    let old = list(before);
    let text: Vec<&str> = old.iter().map(String::as_str).collect();
    assert!(text.contains(&"fn f (a : u32) -> u32"), "{text:?}");
    assert!(text.contains(&"S::fn g (& self)"), "{text:?}");
    assert!(
        !text
            .iter()
            .any(|line| line.contains(" h ") || line.contains("test_only"))
    );
    let old = text.join(
        "
",
    );
    for (from, to, gone) in [
        ("a: u32) -> u32", "a: u64) -> u32", 1),
        ("pub x: u8", "pub x: u16", 1),
        ("pub const fn g", "const fn g", 1),
        ("B(u8)", "B(u16)", 1),
        ("impl T for S { fn t(&self) {} }", "", 1),
        ("pub mod m", "mod m", 2),
        ("pub use std::fmt::Debug;", "", 1),
        ("fn t(&self);", "fn t(&self, n: u8);", 1),
        // No break: a body, a private field, a new item.
        ("{ a }", "{ a + 1 }", 0),
        ("y: u8", "y: u16", 0),
        ("pub enum E", "pub fn new() {}\npub enum E", 0),
    ] {
        let new = list(&before.replace(from, to));
        assert_eq!(missing(&old, &new).len(), gone, "{from} -> {to}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
