//! `cargo check` sees what does not compose: the macros emit constants that are evaluated without generating code.
//!
//! Each case is compiled by rustc as `cargo check` does it, to metadata only, against the facade that this test links to.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest library of that name beside this test.
fn library(name: &str) -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let mut found: Vec<PathBuf> = std::fs::read_dir(exe.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            file.starts_with(&format!("lib{name}-"))
                && path.extension().is_some_and(|e| e == "rlib")
        })
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found
        .pop()
        .unwrap_or_else(|| panic!("lib{name}-*.rlib beside the test"))
}

/// What `cargo check` says about a library of this text.
fn check(name: &str, text: &str) -> Result<(), String> {
    let facade = library("tilewright");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = out.join(format!("{name}.rs"));
    std::fs::write(&source, text).unwrap();
    let result = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ])
        .arg("--extern")
        .arg(format!("tilewright={}", facade.display()))
        .arg("-L")
        .arg(format!("dependency={}", facade.parent().unwrap().display()))
        .arg("--out-dir")
        .arg(out)
        .arg(&source)
        .output()
        .expect("rustc");
    if result.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&result.stderr).into_owned())
    }
}

#[test]
fn what_composes_checks() {
    let text = "
        use tilewright::{Layout, Swizzled, layout, typed::{C, Compose, Layout as L, check}};
        pub const ROWS: Layout = layout!((4,6):(1,10));
        pub const PART: Swizzled = layout!(ROWS o 4:1);
        const _: () = check::<Compose<L<(C<4>, C<6>), (C<1>, C<10>)>, L<C<4>, C<1>>>>();
    ";
    check("composes", text).unwrap();
}

#[test]
fn what_does_not_compose_does_not_check() {
    let cases = [
        // In the macro itself.
        (
            "literal",
            "pub fn f() -> Layout { layout!((4,6):(1,10) o 4:3) }",
        ),
        // With a constant, in a function that nobody calls.
        (
            "constant",
            "const ROWS: Layout = layout!((4,6):(1,10)); pub fn f() -> Swizzled { layout!(ROWS o 4:3) }",
        ),
        // With an expression in braces.
        (
            "expression",
            "pub fn f() -> Swizzled { layout!({ Layout::UNIT } o { layout!((4,6):(1,10)) } o 4:3) }",
        ),
        // Types, by `check`.
        (
            "types",
            "const _: () = check::<Compose<L<(C<4>, C<6>), (C<1>, C<10>)>, L<C<4>, C<3>>>>();",
        ),
    ];
    for (name, text) in cases {
        let text = format!(
            "#![allow(unused_imports)]
             use tilewright::{{Layout, Swizzled, layout, typed::{{C, Compose, Layout as L, check}}}};
             {text}"
        );
        let error = check(name, &text).expect_err(name);
        assert!(error.contains("4:3, does not compose"), "{name}: {error}");
    }
}
