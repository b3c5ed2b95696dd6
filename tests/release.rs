//! What a release promises besides its interface: a light dependency, and manifests that a registry takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The crates that `cargo tree` names for the facade with these features, this workspace's and others'.
fn dependencies(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-p",
            "tilewright",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_algebra_alone_needs_no_parser_of_rust() {
    let alone = dependencies(&["--no-default-features"]);
    let expected = ["layout-core", "num-traits", "tilewright"];
    assert_eq!(alone, expected.map(str::to_owned).into());
}

#[test]
fn the_code_generator_alone_needs_no_parser_of_rust_either() {
    let alone = dependencies(&["--no-default-features", "--features", "codegen"]);
    let expected = ["layout-codegen", "layout-core", "num-traits", "tilewright"];
    assert_eq!(alone, expected.map(str::to_owned).into());
}

#[test]
fn default_features_bring_the_macros_and_no_host() {
    let all = dependencies(&[]);
    for name in ["layout-core", "layout-macros", "layout-codegen", "syn"] {
        assert!(all.contains(name), "{name}: {all:?}");
    }
    for name in [
        "cudarc",
        "ndarray",
        "serde",
        "ptx-emulator",
        "proptest",
        "opencl3",
    ] {
        assert!(
            !all.contains(name),
            "{name} comes with a feature only: {all:?}"
        );
    }
    assert!(all.len() <= 10, "{all:?}");
}

#[test]
fn every_released_manifest_has_what_a_registry_and_its_documentation_need() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "layout-core",
        "layout-macros",
        "codegen",
        "kernels",
        "emulator",
        "driver",
        "gpu",
        ".",
        "workbench",
        "cli",
    ] {
        let path = root.join(folder).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).expect("a manifest");
        for line in [
            "description = ",
            "keywords = ",
            "categories = ",
            "include = ",
            "license.workspace = true",
            "rust-version.workspace = true",
            "readme.workspace = true",
            "[package.metadata.docs.rs]",
            "all-features = true",
        ] {
            assert!(text.contains(line), "{}: {line}", path.display());
        }
        // Nothing points at an address that does not exist.
        for address in ["repository", "homepage"] {
            let named = text.lines().any(|line| line.starts_with(address));
            assert!(!named, "{}: {address}", path.display());
        }
        assert!(root.join(folder).join("LICENSE-MIT").exists(), "{folder}");
    }
}
