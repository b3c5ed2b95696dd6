//! That no kernel is left out: every family and type of the registry, every kernel that stands beside a product, and every example has a subject.
//!
//! A family is what a plan's name says beside the sizes: of `mma-f16-64x64x32` that is `mma-f16`. Persistent plans are one family, whatever their type, and so are those with a
//! ping-pong schedule, those with clusters, and those with swapped operands but in tf32, where B goes through registers. The kernels beside a product (packing, transposing, the sums of split products) are found by the names of entries.

use std::collections::BTreeSet;
use std::path::Path;
use tilewright::kernels::gemm::Config;

/// What a plan's name says beside the sizes.
fn family(plan: &str) -> String {
    if plan.contains("+cluster") {
        return "cluster".to_owned();
    }
    // Another number of stages is no other family.
    let plan = plan.split_once("+stages").map_or(plan, |(plan, _)| plan);
    let through_registers = plan.ends_with("swapab") && plan.contains("-tf32-");
    for family in ["persistent", "pingpong", "swapab", "linear"] {
        if plan.ends_with(family) && !through_registers {
            return family.to_owned();
        }
    }
    let sizes = |part: &&str| part.chars().next().is_some_and(|c| c.is_ascii_digit());
    let parts = plan.split(['-', '+']).filter(|part| !sizes(part));
    parts.collect::<Vec<_>>().join("-")
}

/// Fails with what has no subject; `entries` are the lines that declare the subjects' entries.
pub(crate) fn check(names: &BTreeSet<&str>, entries: &str) {
    // A subject is named by its plan, its operands and the schedule.
    let listed: Vec<String> = Config::table().map(|config| config.to_string()).collect();
    let plan_of = |name: &&str| {
        let begins = |plan: &&String| {
            let rest = name.strip_prefix(plan.as_str());
            rest.is_some_and(|rest| rest.starts_with(['-', '+']))
        };
        listed.iter().filter(begins).max_by_key(|plan| plan.len())
    };
    let tried: BTreeSet<String> = names
        .iter()
        .filter_map(plan_of)
        .map(|p| family(p))
        .collect();
    let wanted: BTreeSet<String> = listed.iter().map(|p| family(p)).collect();
    let missing: Vec<_> = wanted.difference(&tried).collect();
    assert!(
        missing.is_empty(),
        "families without a subject: {missing:?}"
    );

    for beside in [
        "_pack_a(",
        "_pack_b(",
        "_transpose_a(",
        "_transpose_b(",
        "_reduce(",
    ] {
        assert!(
            entries.contains(beside),
            "no subject has an entry *{beside}"
        );
    }

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for file in folder.read_dir().expect("the examples") {
        let path = file.expect("an entry").path();
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
        let rust = path.extension().is_some_and(|e| e == "rs");
        assert!(
            !rust || names.contains(stem),
            "the example {stem} has no subject"
        );
    }
}
