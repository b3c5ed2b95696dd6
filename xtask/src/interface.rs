//! The public interface of every crate, held to that of the last release by `cargo-semver-checks`.
//!
//! rustdoc describes a crate's interface as JSON. `tests/golden/interface/CRATE.json.gz` is the description of the last release without what no
//! rule looks at: documentation, spans, and implementations that every type has. The tool compares it with today's by two hundred rules
//! of semantic versioning. Types of parameters are not among them; `tests/public_api`, which compares signatures as text, sees those.
//!
//! The format of a description belongs to a version of the compiler, and rustdoc writes it only where unstable options are allowed. So this program
//! is, to cargo, the rustdoc of that step: it allows them for rustdoc and for nothing else, so that no build script is run again, and the
//! crates' dependencies are those that lints and documentation have checked already.
//!
//! When a release may break its users, `cargo xtask interface --write` writes the descriptions anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::steps::QUICK;
use crate::workspace_root;

/// The released crates that are libraries.
const CRATES: [&str; 7] = [
    "layout-core",
    "layout-macros",
    "layout-codegen",
    "ptx-emulator",
    "tilewright-gpu",
    "tilewright",
    "tilewright-workbench",
];

/// The crate that is also compared with itself less a function: a tool that notices nothing would pass everything.
const BROKEN_ON_PURPOSE: &str = "tilewright-workbench";

/// The version of `cargo-semver-checks`.
const VERSION: &str = "0.51.0";

/// What came of a comparison that found no break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every crate is compatible with the last release.
    Compatible,
    /// This compiler describes interfaces in another format than that of the stored ones: a sentence.
    OtherFormat(String),
}

/// Where this program is rustdoc, its environment has this variable.
const AS_RUSTDOC: &str = "TILEWRIGHT_XTASK_AS_RUSTDOC";

/// What cargo gets if it takes this program for rustdoc: rustdoc, with unstable options.
pub(crate) fn as_rustdoc() -> Option<std::process::ExitCode> {
    std::env::var_os(AS_RUSTDOC)?;
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(AS_RUSTDOC)
        .status();
    Some(match status {
        Ok(status) if status.success() => std::process::ExitCode::SUCCESS,
        Ok(_) => std::process::ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: rustdoc does not start: {error}");
            std::process::ExitCode::FAILURE
        }
    })
}

/// The tool, if it was installed here.
pub(crate) fn installed() -> Option<PathBuf> {
    Some(tool()).filter(|path| path.exists())
}

fn tool() -> PathBuf {
    let folder = format!("target/tools/cargo-semver-checks-{VERSION}/bin/cargo-semver-checks");
    workspace_root().join(folder)
}

/// Compares every crate with the last release by the tool. `env` is the environment in which cargo has checked the crates, so that it does not check
/// them again.
///
/// # Errors
///
/// A description can't be had, or what breaks users.
pub(crate) fn check(tool: &Path, env: &[(&str, String)]) -> Result<Outcome, String> {
    let work = work()?;
    let mut broken = Vec::new();
    for name in CRATES {
        let current = describe(name, env)?;
        let stored = stored(name);
        let packed = fs::read(&stored).map_err(|e| format!("{}: {e}", stored.display()))?;
        let mut text = String::new();
        GzDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .map_err(|e| format!("{}: {e}", stored.display()))?;
        if let Some(why) = other_format(&text, &current)? {
            return Ok(Outcome::OtherFormat(why));
        }
        let baseline = work.join(format!("{name}.json"));
        fs::write(&baseline, text).map_err(|e| format!("{}: {e}", baseline.display()))?;
        eprintln!("{name}");
        if !compatible(tool, &baseline, &current)? {
            broken.push(name);
        }
        if name == BROKEN_ON_PURPOSE {
            let worse = work.join("worse.json");
            without_a_function(&current, &worse)?;
            eprintln!("{name} without one of its functions, which must be noticed");
            if compatible(tool, &baseline, &worse)? {
                return Err(
                    "cargo-semver-checks does not notice that a function is gone".to_owned(),
                );
            }
        }
    }
    if broken.is_empty() {
        return Ok(Outcome::Compatible);
    }
    Err(format!(
        "{} may break those who use the last release; if the next one may, write `cargo xtask interface --write` and say so in CHANGELOG.md",
        broken.join(", ")
    ))
}

/// The same with whatever it takes: a tool that can't be had, or a compiler with another format, is a failure.
///
/// # Errors
///
/// As [`provide`] and [`check`].
pub(crate) fn insist(env: &[(&str, String)]) -> Result<(), String> {
    match check(&provide()?, env)? {
        Outcome::Compatible => Ok(()),
        Outcome::OtherFormat(why) => Err(why),
    }
}

/// Whether the tool finds nothing.
fn compatible(tool: &Path, baseline: &Path, current: &Path) -> Result<bool, String> {
    let status = Command::new(tool)
        .args(["semver-checks", "--baseline-rustdoc"])
        .arg(baseline)
        .arg("--current-rustdoc")
        .arg(current)
        .current_dir(workspace_root())
        .status()
        .map_err(|e| format!("{}: {e}", tool.display()))?;
    Ok(status.success())
}

/// Writes a description in which a public function of the crate is missing.
fn without_a_function(current: &Path, to: &Path) -> Result<(), String> {
    let text = fs::read_to_string(current).map_err(|e| format!("{}: {e}", current.display()))?;
    let mut description = parse(&text, current)?;
    let index = description["index"].as_object_mut();
    let gone = index.and_then(|index| {
        let public = |item: &Value| item["visibility"] == "public" && item["crate_id"] == 0;
        let is_function = |item: &Value| item["inner"].get("function").is_some();
        // A method is not public by itself where a trait has it; any other function will do.
        let found = index
            .iter()
            .find(|(_, item)| public(item) && is_function(item));
        let id = found?.0.clone();
        index.remove(&id)
    });
    if gone.is_none() {
        return Err(format!("{}: no public function", current.display()));
    }
    fs::write(to, description.to_string()).map_err(|e| format!("{}: {e}", to.display()))
}

/// Writes the descriptions anew.
///
/// # Errors
///
/// A description that can't be had or written.
pub(crate) fn write() -> Result<(), String> {
    for name in CRATES {
        let current = describe(name, &[])?;
        let text =
            fs::read_to_string(&current).map_err(|e| format!("{}: {e}", current.display()))?;
        let mut description = parse(&text, &current)?;
        strip(&mut description);
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packer
            .write_all(description.to_string().as_bytes())
            .and_then(|()| packer.finish());
        let stored = stored(name);
        packed
            .and_then(|bytes| {
                fs::create_dir_all(stored.parent().unwrap_or(Path::new(".")))?;
                fs::write(&stored, bytes)
            })
            .map_err(|e| format!("{}: {e}", stored.display()))?;
        eprintln!("{}", stored.display());
    }
    Ok(())
}

fn stored(name: &str) -> PathBuf {
    let folder = workspace_root().join("tests/golden/interface");
    folder.join(format!("{name}.json.gz"))
}

fn work() -> Result<PathBuf, String> {
    let folder = workspace_root().join("target/interface");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root());
    command
}

/// The tool's path. It is installed if it is not there, which takes minutes; compiled without optimisation, as it runs for seconds.
///
/// # Errors
///
/// A sentence for the developer: why it can't be had.
pub(crate) fn provide() -> Result<PathBuf, String> {
    if let Some(path) = installed() {
        return Ok(path);
    }
    let root = workspace_root().join("target/tools");
    let build = root.join(format!("build-{}", std::process::id()));
    let status = cargo()
        .args(["install", "cargo-semver-checks", "--locked", "--debug"])
        .args(["--no-default-features", "--version", VERSION, "--root"])
        .arg(root.join(format!("cargo-semver-checks-{VERSION}")))
        .arg("--target-dir")
        .arg(&build)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .status();
    // Gigabytes that nobody needs again.
    let _ = fs::remove_dir_all(&build);
    match status {
        Ok(status) if status.success() => Ok(tool()),
        Ok(status) => Err(format!("cargo-semver-checks can't be had: {status}")),
        Err(error) => Err(format!("cargo does not start: {error}")),
    }
}

/// Today's description of a crate, as rustdoc writes it.
fn describe(name: &str, env: &[(&str, String)]) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), PathBuf::from);
    let output = cargo()
        .args(["rustdoc", "--quiet", "--package", name, "--lib"])
        .args(QUICK)
        .args(["--all-features", "--", "-Zunstable-options"])
        .args(["--output-format=json", "--document-hidden-items"])
        .arg("--cap-lints=allow")
        .envs(env.iter().map(|(key, value)| (key, value)))
        .env("RUSTDOC", this)
        .env(AS_RUSTDOC, "1")
        .stderr(Stdio::inherit())
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.success() {
        return Err(format!("rustdoc describes no {name}: {output}"));
    }
    Ok(target.join(format!("doc/{}.json", name.replace('-', "_"))))
}

fn parse(text: &str, path: &Path) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Two descriptions can be compared if one version of the format has both; else a sentence.
fn other_format(stored: &str, current: &Path) -> Result<Option<String>, String> {
    let text = fs::read_to_string(current).map_err(|e| format!("{}: {e}", current.display()))?;
    let [old, new] = [stored, &text].map(|text| {
        let description = parse(text, current)?;
        Ok::<_, String>(description["format_version"].clone())
    });
    let (old, new) = (old?, new?);
    if old == new {
        return Ok(None);
    }
    Ok(Some(format!(
        "rustdoc describes interfaces in format {new} here, and tests/golden/interface has format {old}: take the toolchain of `rust-version` in \
         Cargo.toml, or write them anew from the last release with `cargo xtask interface --write`"
    )))
}

/// Leaves out what no rule looks at.
fn strip(description: &mut Value) {
    let Some(index) = description["index"].as_object_mut() else {
        return;
    };
    let mut gone = BTreeSet::new();
    for (id, item) in index.iter() {
        let block = &item["inner"]["impl"];
        if !block["blanket_impl"].is_null() {
            gone.insert(id.clone());
            let items = block["items"].as_array().into_iter().flatten();
            gone.extend(items.map(Value::to_string));
        }
    }
    index.retain(|id, _| !gone.contains(id));
    let mut named = BTreeSet::new();
    for item in index.values_mut() {
        item["docs"] = Value::Null;
        item["span"] = Value::Null;
        item["links"] = Value::Object(serde_json::Map::new());
        for kind in ["struct", "enum", "union", "trait"] {
            for list in ["impls", "implementations"] {
                if let Some(Value::Array(all)) = item["inner"]
                    .get_mut(kind)
                    .and_then(|kind| kind.get_mut(list))
                {
                    all.retain(|id| !gone.contains(&id.to_string()));
                }
            }
        }
        ids(item, &mut named);
    }
    // Of other crates' items, those that a signature names, and traits: the tool looks for `Sized`, which every parameter has unnamed.
    let kept: BTreeSet<String> = index.keys().cloned().collect();
    if let Some(paths) = description["paths"].as_object_mut() {
        paths.retain(|id, path| kept.contains(id) || named.contains(id) || path["kind"] == "trait");
    }
}

/// The identities that a description names, wherever it does.
fn ids(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("id").map(Value::to_string));
            fields.values().for_each(|field| ids(field, into));
        }
        Value::Array(values) => values.iter().for_each(|value| ids(value, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_type_has_is_left_out() {
        let mut description = serde_json::json!({
            "format_version": 1,
            "index": {
                "1": {"docs": "A type.", "span": [1], "links": {"x": 3}, "inner": {"struct": {"impls": [2, 4]}}},
                "2": {"docs": null, "inner": {"impl": {"blanket_impl": {"generic": "T"}, "items": [3]}}},
                "3": {"docs": null, "inner": {"function": {}}},
                "4": {"docs": null, "inner": {"impl": {"blanket_impl": null, "items": [], "trait": {"id": 9}}}},
            },
            "paths": {"1": {}, "3": {}, "7": {"kind": "trait"}, "8": {"kind": "struct"}, "9": {}},
        });
        strip(&mut description);
        let index = description["index"].as_object().expect("an index");
        assert_eq!(index.keys().collect::<Vec<_>>(), ["1", "4"]);
        assert_eq!(index["1"]["inner"]["struct"]["impls"].to_string(), "[4]");
        assert!(index["1"]["docs"].is_null() && index["1"]["span"].is_null());
        let paths = description["paths"].as_object().expect("paths");
        assert_eq!(paths.keys().collect::<Vec<_>>(), ["1", "7", "9"]);
    }

    #[test]
    fn every_crate_has_a_description() {
        for name in CRATES {
            assert!(stored(name).exists(), "{name}");
        }
    }
}
