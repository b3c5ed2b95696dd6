//! A brute-force judge of the algebra.
//!
//! Random expressions go to `tilewright eval --stdin --json`, and every answer is judged by the law that defines its
//! operation, at every coordinate. The judge shares no code with the algebra: its layouts are trees of integers that are
//! evaluated digit by digit (`model`), and whether an answer exists is decided by search (`exist`). So a refusal is judged
//! too: it is right only where no answer exists.
//!
//! A table shows for each operation and kind of operand how often it was asked, answered right and rightly refused. Floors
//! on the right answers keep the test from passing by refusals. A longer run has more rounds, or another seed:
//!
//! ```sh
//! TILEWRIGHT_ORACLE_ROUNDS=10 TILEWRIGHT_ORACLE_SEED=7 cargo test -p tilewright-cli --test oracle -- --nocapture
//! ```

mod answer;
mod cases;
mod command;
mod exist;
mod model;
mod random;
mod report;
mod verdict;

use std::thread;

use random::Random;
use report::Report;
use verdict::Case;

/// Parts that are asked and judged next to each other.
const SHARDS: u64 = 4;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

fn judge_shard(seed: u64, rounds: u64) -> Report {
    let mut random = Random::new(seed);
    let mut report = Report::default();
    for _ in 0..rounds {
        let cases: Vec<Case> = cases::all(&mut random);
        let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
        let answers = command::ask(&texts);
        for (case, answer) in cases.iter().zip(&answers) {
            report.add(case, answer, (case.judge)(answer));
        }
    }
    report
}

#[test]
fn every_answer_is_right_and_every_refusal_has_its_reason() {
    let rounds = setting("TILEWRIGHT_ORACLE_ROUNDS", 1);
    let seed = setting("TILEWRIGHT_ORACLE_SEED", 1);
    let mut report = Report::default();
    thread::scope(|scope| {
        let shards: Vec<_> = (0..SHARDS)
            .map(|k| scope.spawn(move || judge_shard(seed * 1000 + k, rounds)))
            .collect();
        for shard in shards {
            report.join(shard.join().expect("a shard"));
        }
    });
    println!("{}", report.table());
    assert!(
        report.failures.is_empty(),
        "{}\n{}",
        report.table(),
        report.first_failures()
    );
    report.assert_floors();
    assert!(report.asked() > 100_000 * rounds, "{}", report.asked());
    assert!(report.operations() >= 45, "{}", report.operations());
}
