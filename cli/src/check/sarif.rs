//! The findings as SARIF 2.1.0 (OASIS), the form in which code hosts take the results of checks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::report::{Checked, list, string};

/// One run of one tool, with a result a finding and one for each access with bank conflicts.
pub(super) fn sarif(checked: &Checked) -> Value {
    let mut results = Vec::new();
    let mut rules = BTreeSet::new();
    for (name, kernel) in &checked.kernels {
        for finding in list(kernel, "findings") {
            let rule = string(finding, "kind");
            rules.insert(rule);
            let message = format!("{name}: {}", string(finding, "message"));
            results.push(result("error", rule, &message, name, finding));
        }
        for conflict in list(kernel, "conflicts") {
            rules.insert("bank_conflict");
            let (found, ideal) = (&conflict["wavefronts"], &conflict["ideal"]);
            let message = format!("{name}: {found} wavefronts, {ideal} without bank conflicts");
            results.push(result("note", "bank_conflict", &message, name, conflict));
        }
    }
    let rules: Vec<Value> = rules.iter().map(|id| json!({"id": id})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tilewright check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

/// A result at its line of the source, or of the PTX if the compiler has left none.
fn result(level: &str, rule: &str, message: &str, kernel: &str, of: &Value) -> Value {
    let source = &of["source"];
    let (file, line) = if source.is_object() {
        (string(source, "file").to_owned(), &source["line"])
    } else {
        (format!("{kernel}.ptx"), &of["line"])
    };
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": line},
        }}],
    })
}
