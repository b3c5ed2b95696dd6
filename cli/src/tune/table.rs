//! What was measured of one problem, as text, JSON, CSV and a finding.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::kernels::gemm::{DataType, Gemm, Schedule};
use tilewright::kernels::select::{Finding, ProblemClass, Timed};

use crate::error::CliError;

/// The columns of a table in CSV.
pub(super) const CSV_COLUMNS: &str =
    "dtype,trans,m,n,k,lda,ldb,ldc,plan,split,pack,estimate,median,low,high";

/// One candidate, measured.
pub(super) struct Row {
    pub(super) plan: String,
    pub(super) schedule: Schedule,
    /// What the model said, in milliseconds.
    pub(super) estimated: f64,
    pub(super) outcome: Result<Measured, CliError>,
}

/// What a measurement gave.
pub(super) struct Measured {
    /// The median.
    pub(super) milliseconds: f64,
    /// The first and the third quartile.
    pub(super) quartiles: [f64; 2],
    pub(super) max_rel_err: f64,
    pub(super) tolerance: f64,
    pub(super) passed: bool,
}

/// All candidates of one problem.
pub(super) struct Table {
    data_type: DataType,
    problem: Gemm,
    /// Those that are right in the order of their times, the others behind them.
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn new(data_type: DataType, problem: Gemm, mut rows: Vec<Row>) -> Self {
        let time = |row: &Row| row.time().unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
        Self {
            data_type,
            problem,
            rows,
        }
    }

    /// The type and the problem in a few words.
    pub(super) fn title(&self) -> String {
        let p = &self.problem;
        format!("{} {} {}x{}x{}", self.data_type, p.operands, p.m, p.n, p.k)
    }

    /// Every candidate that was measured was right.
    pub(super) fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.time().is_some())
    }

    /// What there is to keep; nothing if no candidate was right.
    pub(super) fn finding(&self, device: &str, driver: &str, date: &str) -> Option<Finding> {
        let timed = self.rows.iter().filter_map(|row| {
            Some(Timed {
                plan: row.plan.clone(),
                schedule: row.schedule,
                milliseconds: row.time()?,
            })
        });
        let candidates: Vec<_> = timed.collect();
        (!candidates.is_empty()).then(|| Finding {
            device: device.to_owned(),
            driver: driver.to_owned(),
            date: date.to_owned(),
            class: ProblemClass::of(self.data_type, &self.problem),
            candidates,
        })
    }

    fn tflops(&self, ms: f64) -> f64 {
        let p = &self.problem;
        2.0 * p.m as f64 * p.n as f64 * p.k as f64 / ms / 1e9
    }

    pub(super) fn to_text(&self) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.plan.len())
            .max()
            .unwrap_or(0)
            .max(26);
        let mut text = format!(
            "\n{}\n  {:<width$} {:>5} {:>4} {:>10} {:>10} {:>9}\n",
            self.title(),
            "plan",
            "split",
            "pack",
            "estimated",
            "measured",
            "TFLOP/s"
        );
        for row in &self.rows {
            let result = match &row.outcome {
                Ok(m) if m.passed => {
                    format!(
                        "{:>10.4} {:>9.1}",
                        m.milliseconds,
                        self.tflops(m.milliseconds)
                    )
                }
                Ok(m) => format!(
                    "     WRONG: error {:.2e} > {:.2e}, not kept",
                    m.max_rel_err, m.tolerance
                ),
                Err(e) => format!("     not run: {}", e.message()),
            };
            let pack = if row.schedule.pack { "yes" } else { "-" };
            let _ = writeln!(
                text,
                "  {:<width$} {:>5} {pack:>4} {:>10.4} {result}",
                row.plan, row.schedule.split, row.estimated
            );
        }
        text
    }

    /// One line a candidate; no times of one that was wrong or did not run.
    pub(super) fn to_csv(&self) -> String {
        let p = &self.problem;
        let mut text = String::new();
        for row in &self.rows {
            let _ = write!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{:.3}",
                self.data_type,
                p.operands,
                p.m,
                p.n,
                p.k,
                p.lda,
                p.ldb,
                p.ldc,
                row.plan,
                row.schedule.split,
                u8::from(row.schedule.pack),
                row.estimated * 1e3
            );
            let _ = match (row.time(), &row.outcome) {
                (Some(ms), Ok(m)) => {
                    let [low, high] = m.quartiles.map(|ms| ms * 1e3);
                    writeln!(text, ",{:.3},{low:.3},{high:.3}", ms * 1e3)
                }
                _ => writeln!(text, ",,,"),
            };
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let p = &self.problem;
        let rows: Vec<Value> = self.rows.iter().map(|row| row.to_json(self)).collect();
        json!({
            "dtype": self.data_type.to_string(),
            "trans": p.operands.to_string(),
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "lda": p.lda,
            "ldb": p.ldb,
            "ldc": p.ldc,
            "widths": p.widths(self.data_type),
            "passed": self.passed(),
            "candidates": rows,
        })
    }
}

impl Row {
    /// Milliseconds, if the result was right, to the nanosecond.
    fn time(&self) -> Option<f64> {
        let measured = self.outcome.as_ref().ok().filter(|m| m.passed)?;
        let ms = (measured.milliseconds * 1e6).round() / 1e6;
        (ms.is_finite() && ms > 0.0).then_some(ms)
    }

    fn to_json(&self, table: &Table) -> Value {
        let measured = self.outcome.as_ref().ok().filter(|m| m.passed);
        let quartiles = measured.map(|m| m.quartiles.map(finite));
        let mut value = json!({
            "plan": self.plan,
            "split": self.schedule.split,
            "pack": self.schedule.pack,
            "estimated_ms": self.estimated,
            "ms": self.time(),
            "quartiles_ms": quartiles,
            "tflops": self.time().map(|ms| table.tflops(ms)),
            "passed": self.time().is_some(),
        });
        let more = match &self.outcome {
            Ok(m) => json!({"max_rel_err": finite(m.max_rel_err), "tolerance": m.tolerance}),
            Err(e) => e.to_json(),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    }
}

/// A number, or null: JSON has no infinity.
fn finite(v: f64) -> Value {
    if v.is_finite() { json!(v) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::codegen::Arch;
    use tilewright::host::findings_to_json;
    use tilewright::kernels::gemm::Operands;
    use tilewright::kernels::select::{Candidate, Findings, Machine, candidates};

    fn table(outcomes: Vec<Result<Measured, CliError>>) -> Table {
        let operands: Operands = "nn".parse().expect("nn");
        let problem = Gemm::packed(1024, 1024, 1024, operands);
        let machine = Machine::for_arch(Arch(90));
        let all = candidates(DataType::F16, &problem, Arch(90), &machine).expect("plans");
        let row = |(c, outcome): (Candidate, _)| Row {
            plan: c.config.to_string(),
            schedule: c.schedule,
            estimated: c.estimate.seconds * 1e3,
            outcome,
        };
        let rows = all.into_iter().zip(outcomes).map(row).collect();
        Table::new(DataType::F16, problem, rows)
    }

    fn measured(milliseconds: f64, passed: bool) -> Measured {
        Measured {
            milliseconds,
            quartiles: [milliseconds; 2],
            max_rel_err: if passed { 0.0 } else { f64::INFINITY },
            tolerance: 1e-3,
            passed,
        }
    }

    #[test]
    fn only_right_results_are_kept_and_the_fastest_comes_first() {
        let table = table(vec![
            Ok(measured(0.5, true)),
            Ok(measured(0.1, false)),
            Err(CliError::new("gpu", "lost")),
            Ok(measured(0.25, true)),
        ]);
        assert!(!table.passed());
        let finding = table
            .finding("gpu", "13.0", "2026-11-21")
            .expect("two are right");
        let times: Vec<_> = finding
            .candidates
            .iter()
            .map(|c| c.milliseconds.to_bits())
            .collect();
        assert_eq!(times, [0.25_f64.to_bits(), 0.5_f64.to_bits()]);
        assert!(table.to_text().contains("WRONG") && table.to_text().contains("not run: lost"));
        let json = table.to_json();
        assert_eq!(json["candidates"][0]["ms"], 0.25);
        assert!(json["candidates"][2]["ms"].is_null(), "{json}");
        let csv = table.to_csv();
        let lines: Vec<_> = csv.lines().collect();
        let columns = CSV_COLUMNS.split(',').count();
        assert!(
            lines.iter().all(|l| l.split(',').count() == columns),
            "{csv}"
        );
        assert!(lines[0].ends_with(",250.000,250.000,250.000"), "{csv}");
        assert!(lines[2..].iter().all(|l| l.ends_with(",,,")), "{csv}");
        // What is kept is what is read.
        let mut findings = Findings::default();
        findings.insert(finding);
        let text = findings_to_json(&findings);
        assert_eq!(
            tilewright::host::findings_from_json(&text).expect("its own text"),
            findings
        );
    }

    #[test]
    fn nothing_is_kept_if_nothing_was_right() {
        for (milliseconds, passed) in [(0.1, false), (0.0, true), (f64::NAN, true)] {
            let table = table(vec![Ok(measured(milliseconds, passed))]);
            assert!(table.finding("gpu", "13.0", "2026-11-21").is_none());
            assert!(!table.passed());
        }
    }
}
