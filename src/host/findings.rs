//! Findings in a file: what `tilewright tune` writes and selection reads.
//!
//! ```json
//! {"format": "tilewright-findings", "version": 1, "entries": [
//!   {"device": "NVIDIA H200", "driver": "13.0", "date": "2026-11-21",
//!    "problem": {"dtype": "f16", "trans": "nn", "m": 4096, "n": 4096, "k": 4096, "batch": 1, "widths": [16, 16, 16]},
//!    "candidates": [{"plan": "mma-f16-128x256x64", "split": 1, "pack": false, "ms": 0.2834}]}]}
//! ```
//!
//! A file is read whole or refused with one error. Nothing is skipped: a plan that does not exist, a key that is unknown or given twice, a
//! time that is not a positive number each refuse the file, because a file that means something else than its reader thinks makes products
//! slow without a word. The format is described in `docs/tuning.md`.

mod error;

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tilewright_kernels::gemm::Config;
use tilewright_kernels::gemm::{DataType, Operands, Schedule};
use tilewright_kernels::select::{Finding, Findings, ProblemClass, Timed};

pub use error::{EntryError, FindingsError};

const FORMAT: &str = "tilewright-findings";
const VERSION: u64 = 1;

/// The most parts that sums can be split into.
const MOST_PARTS: u32 = 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u64,
    entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    device: String,
    driver: String,
    date: String,
    problem: Problem,
    candidates: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Problem {
    dtype: String,
    trans: String,
    m: u64,
    n: u64,
    k: u64,
    batch: u64,
    widths: [u32; 3],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    plan: String,
    split: u32,
    pack: bool,
    ms: f64,
}

/// Bytes of the largest file of findings that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Reads a file of findings of at most 64 MiB.
///
/// # Errors
///
/// [`FindingsError::Io`], [`FindingsError::TooLarge`], and as [`findings_from_json`].
pub fn load_findings(path: &Path) -> Result<Findings, FindingsError> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(FindingsError::Io)?;
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(FindingsError::Io)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(FindingsError::TooLarge { limit: MOST_BYTES });
    }
    let text = String::from_utf8(bytes).map_err(|e| FindingsError::NotJson {
        line: 1,
        column: e.utf8_error().valid_up_to() + 1,
        reason: "this is no UTF-8 text".to_owned(),
    })?;
    findings_from_json(&text)
}

/// Findings from the text of a file.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn findings_from_json(text: &str) -> Result<Findings, FindingsError> {
    // The version first: another one may have other keys.
    let value: Value = serde_json::from_str(text).map_err(|e| FindingsError::NotJson {
        line: e.line(),
        column: e.column(),
        reason: bare(&e),
    })?;
    let header = |key: &str| value.get(key).unwrap_or(&Value::Null);
    if header("format") != FORMAT {
        return Err(FindingsError::Format {
            found: header("format").to_string(),
        });
    }
    if header("version") != VERSION {
        return Err(FindingsError::Version {
            found: header("version").to_string(),
        });
    }
    let file: File = serde_json::from_str(text).map_err(|e| FindingsError::Shape {
        line: e.line(),
        column: e.column(),
        reason: bare(&e),
    })?;
    let mut findings = Findings::default();
    let mut seen: HashMap<(String, ProblemClass), usize> = HashMap::new();
    for (i, entry) in file.entries.into_iter().enumerate() {
        let refused = |error| FindingsError::Entry {
            entry: i + 1,
            error,
        };
        let finding = entry.check().map_err(refused)?;
        let key = (finding.device.clone(), finding.class);
        if let Some(of) = seen.insert(key, i + 1) {
            return Err(refused(EntryError::Duplicate { of }));
        }
        findings.insert(finding);
    }
    Ok(findings)
}

/// The message of an error of `serde_json`, without the place that it ends in.
fn bare(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The text of a file of findings: the same for the same findings.
pub fn findings_to_json(findings: &Findings) -> String {
    let entries = findings
        .all()
        .iter()
        .map(|f| Entry {
            device: f.device.clone(),
            driver: f.driver.clone(),
            date: f.date.clone(),
            problem: Problem {
                dtype: f.class.data_type.to_string(),
                trans: f.class.operands.to_string(),
                m: f.class.m,
                n: f.class.n,
                k: f.class.k,
                batch: f.class.batch,
                widths: f.class.widths,
            },
            candidates: f
                .candidates
                .iter()
                .map(|t| Row {
                    plan: t.plan.clone(),
                    split: t.schedule.split,
                    pack: t.schedule.pack,
                    ms: t.milliseconds,
                })
                .collect(),
        })
        .collect();
    let file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        entries,
    };
    // Only a map with keys that are no strings, or a writer, can fail.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

impl Entry {
    fn check(self) -> Result<Finding, EntryError> {
        for (key, value) in [
            ("device", &self.device),
            ("driver", &self.driver),
            ("date", &self.date),
        ] {
            if value.trim().is_empty() {
                return Err(EntryError::Blank { key });
            }
        }
        let class = self.problem.check()?;
        if self.candidates.is_empty() {
            return Err(EntryError::Empty);
        }
        let mut candidates: Vec<Timed> = Vec::new();
        for row in self.candidates {
            let timed = row.check(class.data_type)?;
            if candidates
                .iter()
                .any(|c| (&c.plan, c.schedule) == (&timed.plan, timed.schedule))
            {
                return Err(EntryError::Repeated { plan: timed.plan });
            }
            if candidates
                .last()
                .is_some_and(|before| timed.milliseconds < before.milliseconds)
            {
                return Err(EntryError::Order { plan: timed.plan });
            }
            candidates.push(timed);
        }
        Ok(Finding {
            device: self.device,
            driver: self.driver,
            date: self.date,
            class,
            candidates,
        })
    }
}

impl Problem {
    fn check(self) -> Result<ProblemClass, EntryError> {
        let data_type = DataType::ALL
            .into_iter()
            .find(|t| t.to_string() == self.dtype)
            .ok_or(EntryError::UnknownType(self.dtype))?;
        let operands: Operands = self
            .trans
            .parse()
            .map_err(|_| EntryError::UnknownTrans(self.trans))?;
        for (key, value) in [
            ("m", self.m),
            ("n", self.n),
            ("k", self.k),
            ("batch", self.batch),
        ] {
            if value == 0 {
                return Err(EntryError::Size { key });
            }
        }
        if let Some(&width) = self
            .widths
            .iter()
            .find(|w| !(w.is_power_of_two() && **w <= 16))
        {
            return Err(EntryError::Width(width));
        }
        Ok(ProblemClass {
            data_type,
            operands,
            m: self.m,
            n: self.n,
            k: self.k,
            batch: self.batch,
            widths: self.widths,
        })
    }
}

impl Row {
    fn check(self, data_type: DataType) -> Result<Timed, EntryError> {
        let plan = self.plan;
        match plan.parse::<Config>() {
            Err(_) => return Err(EntryError::UnknownPlan(plan)),
            Ok(p) if p.data_type != data_type => {
                let serves = p.data_type;
                return Err(EntryError::WrongType { plan, serves });
            }
            Ok(_) => {}
        }
        if !(1..=MOST_PARTS).contains(&self.split) {
            return Err(EntryError::Split {
                plan,
                split: self.split,
            });
        }
        if !(self.ms.is_finite() && self.ms > 0.0) {
            return Err(EntryError::Time { plan, ms: self.ms });
        }
        Ok(Timed {
            plan,
            schedule: Schedule {
                split: self.split,
                pack: self.pack,
            },
            milliseconds: self.ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"format":"tilewright-findings","version":1,"entries":[
{"device":"gpu","driver":"13.0","date":"2026-11-21",
"problem":{"dtype":"f16","trans":"nt","m":4096,"n":2048,"k":1024,"batch":3,"widths":[16,16,8]},
"candidates":[{"plan":"mma-f16-128x128x64","split":2,"pack":true,"ms":0.25},
{"plan":"mma-f16-64x64x64","split":1,"pack":false,"ms":0.5}]}]}"#;

    /// The error of the good text with `from` replaced by `to`.
    fn refusal(from: &str, to: &str) -> FindingsError {
        assert!(GOOD.contains(from), "{from}");
        findings_from_json(&GOOD.replacen(from, to, 1)).expect_err(to)
    }

    fn entry_error(from: &str, to: &str) -> EntryError {
        match refusal(from, to) {
            FindingsError::Entry { entry: 1, error } => error,
            other => panic!("{to}: {other}"),
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_is_lost() {
        let findings = findings_from_json(GOOD).expect("good");
        let [finding] = findings.all() else {
            panic!("one entry");
        };
        assert_eq!(
            (finding.device.as_str(), finding.driver.as_str()),
            ("gpu", "13.0")
        );
        let class = finding.class;
        assert_eq!(
            (class.m, class.n, class.k, class.batch),
            (4096, 2048, 1024, 3)
        );
        assert_eq!(class.widths, [16, 16, 8]);
        let first = &finding.candidates[0];
        let schedule = Schedule {
            split: 2,
            pack: true,
        };
        assert_eq!(
            (first.plan.as_str(), first.schedule),
            ("mma-f16-128x128x64", schedule)
        );
        let text = findings_to_json(&findings);
        assert_eq!(findings_from_json(&text).expect("its own text"), findings);
        assert_eq!(
            findings_to_json(&findings_from_json(&text).expect("again")),
            text
        );
        // Every key of the good text is needed, and no other is taken.
        let value: Value = serde_json::from_str(GOOD).expect("JSON");
        for key in ["device", "driver", "date", "problem", "candidates"] {
            let mut less = value.clone();
            let entry = less["entries"][0].as_object_mut().expect("an object");
            entry.remove(key);
            let e = findings_from_json(&less.to_string()).expect_err(key);
            assert_eq!(e.code(), "findings_shape", "{key}");
        }
    }

    #[test]
    fn times_of_any_size_survive() {
        for nanoseconds in [1u64, 999, 1_234_567, 98_765_432_109, 1_000_000_000_000] {
            let ms = nanoseconds as f64 / 1e6;
            let text = GOOD
                .replace("0.5}", &format!("{}}}", 1e9))
                .replace("0.25", &format!("{ms}"));
            let findings = findings_from_json(&text).expect("good");
            let back = findings_from_json(&findings_to_json(&findings)).expect("good");
            assert_eq!(findings, back);
            assert_eq!(
                findings.all()[0].candidates[0].milliseconds.to_bits(),
                ms.to_bits()
            );
        }
    }

    #[test]
    fn what_is_no_file_of_findings_is_refused() {
        for text in ["", "{", "nonsense", &GOOD[..GOOD.len() - 1]] {
            let e = findings_from_json(text).expect_err(text);
            assert_eq!(e.code(), "findings_not_json");
        }
        for text in ["null", "[]", "{}", r#"{"version":1,"entries":[]}"#] {
            let e = findings_from_json(text).expect_err(text);
            assert_eq!(e.code(), "findings_format", "{text}");
        }
        assert_eq!(
            refusal("tilewright-findings", "another").code(),
            "findings_format"
        );
        let missing = load_findings(Path::new("no/such/file.json"));
        assert_eq!(missing.expect_err("there is none").code(), "io");
    }

    #[test]
    fn another_version_is_refused_whatever_else_it_holds() {
        for version in ["2", "0", "1.5", "\"1\"", "null", "-1"] {
            let e = refusal(
                "\"version\":1",
                &format!("\"version\":{version},\"news\":1"),
            );
            assert_eq!(e.code(), "findings_version", "{version}: {e}");
            assert!(e.to_string().contains(version), "{e}");
        }
    }

    #[test]
    fn keys_that_are_unknown_twice_missing_or_of_another_type_are_refused() {
        for (from, to) in [
            ("\"m\":4096", "\"m\":4096,\"m\":4096"),
            ("\"split\":2", "\"split\":2,\"split\":2"),
            ("\"date\":", "\"date\":\"x\",\"date\":"),
            ("\"version\":1", "\"version\":1,\"version\":1"),
            ("\"ms\":0.25", "\"ms\":0.25,\"mean\":1"),
            ("\"ms\":0.25", "\"ms\":\"0.25\""),
            ("\"ms\":0.25", "\"ms\":null"),
            ("\"pack\":true,", ""),
            ("\"pack\":true", "\"pack\":1"),
            ("\"m\":4096", "\"m\":-1"),
            ("\"m\":4096", "\"m\":0.5"),
            ("[16,16,8]", "[16,16]"),
            ("\"device\":\"gpu\"", "\"device\":7"),
        ] {
            let e = refusal(from, to);
            assert_eq!(e.code(), "findings_shape", "{to}: {e}");
        }
        let place = refusal("\"pack\":true", "\"pack\":1").to_string();
        assert!(place.starts_with("line 4, column "), "{place}");
    }

    #[test]
    fn entries_that_say_what_cannot_be_are_refused() {
        let plan = |name: &str| name.to_owned();
        let first = plan("mma-f16-128x128x64");
        for (from, to, error) in [
            (
                "mma-f16-128x128x64",
                "mma-f16-1x1x1",
                EntryError::UnknownPlan(plan("mma-f16-1x1x1")),
            ),
            (
                "mma-f16-128x128x64",
                "sgemm-maxas-64",
                EntryError::WrongType {
                    plan: plan("sgemm-maxas-64"),
                    serves: DataType::F32,
                },
            ),
            (
                "0.25",
                "0",
                EntryError::Time {
                    plan: first.clone(),
                    ms: 0.0,
                },
            ),
            (
                "0.25",
                "-1e-3",
                EntryError::Time {
                    plan: first.clone(),
                    ms: -1e-3,
                },
            ),
            (
                "\"split\":2",
                "\"split\":0",
                EntryError::Split {
                    plan: first.clone(),
                    split: 0,
                },
            ),
            (
                "\"split\":2",
                "\"split\":1025",
                EntryError::Split {
                    plan: first.clone(),
                    split: 1025,
                },
            ),
            (
                "0.25",
                "0.75",
                EntryError::Order {
                    plan: plan("mma-f16-64x64x64"),
                },
            ),
            (
                "\"mma-f16-64x64x64\",\"split\":1,\"pack\":false",
                "\"mma-f16-128x128x64\",\"split\":2,\"pack\":true",
                EntryError::Repeated {
                    plan: first.clone(),
                },
            ),
            ("\"f16\"", "\"f17\"", EntryError::UnknownType(plan("f17"))),
            ("\"nt\"", "\"xx\"", EntryError::UnknownTrans(plan("xx"))),
            (
                "\"batch\":3",
                "\"batch\":0",
                EntryError::Size { key: "batch" },
            ),
            ("[16,16,8]", "[16,32,8]", EntryError::Width(32)),
            ("[16,16,8]", "[16,3,8]", EntryError::Width(3)),
            ("\"gpu\"", "\" \"", EntryError::Blank { key: "device" }),
        ] {
            assert_eq!(entry_error(from, to), error, "{to}");
        }
        // Beyond what a double holds: no number at all.
        assert_eq!(refusal("0.25", "1e999").code(), "findings_not_json");
        let start = GOOD.find("\"candidates\"").expect("there");
        let none = format!("{}\"candidates\":[]}}]}}", &GOOD[..start]);
        let e = findings_from_json(&none).expect_err("no candidates");
        assert!(matches!(
            e,
            FindingsError::Entry {
                entry: 1,
                error: EntryError::Empty
            }
        ));
    }

    #[test]
    fn the_same_device_and_problem_twice_is_refused_with_its_place() {
        let start = GOOD.find("{\"device\"").expect("there");
        let entry = &GOOD[start..GOOD.len() - 2];
        let both = |second: &str| {
            findings_from_json(&GOOD.replacen("]}]}", &format!("]}},{second}]}}"), 1))
        };
        let e = both(entry).expect_err("twice");
        assert!(
            matches!(
                e,
                FindingsError::Entry {
                    entry: 2,
                    error: EntryError::Duplicate { of: 1 }
                }
            ),
            "{e}"
        );
        let other = both(&entry.replacen("gpu", "another", 1)).expect("another device");
        assert_eq!(other.all().len(), 2);
    }

    #[test]
    fn the_file_in_the_documentation_is_one() {
        let page = include_str!("../../docs/tuning.md");
        let (_, rest) = page.split_once("```json\n").expect("a file");
        let (text, _) = rest.split_once("```").expect("its end");
        let findings = findings_from_json(text).expect("good");
        assert_eq!(findings.all()[0].candidates.len(), 2);
        for code in [
            "io",
            "findings_not_json",
            "findings_format",
            "findings_version",
            "findings_shape",
            "findings_entry",
        ] {
            assert!(page.contains(&format!("| `{code}` |")), "{code}");
        }
    }
}
