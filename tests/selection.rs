//! What the model of time chooses, held against measurements: of 200 random problems of each type, every plausible candidate was timed on one GPU
//! (`tests/golden/selection`), and the choice must reach 0.95 of the fastest.
//!
//! A line of the tables is a problem and the times of its candidates in microseconds; the header says which letter stands for which plan. A candidate is
//! written `plan[*][/parts]`: packed operands have a star, split sums the number of their parts.
//!
//! ```text
//! trans,m,n,k,lda,ldb,ldc,times
//! nn,512,512,8192,8192,512,512,a 20.4;a/4 13.1;b* 31.0;b*/2 19.9
//! ```

use std::collections::BTreeMap;
use std::fmt;

use tilewright::codegen::Arch;
use tilewright::codegen::gemm::{DataType, Gemm, Operands, Schedule};
use tilewright::codegen::select::{Machine, choose};

/// The least share of the fastest candidate's speed.
const BAR: f64 = 0.95;

/// A candidate: plan, parts of the sums, packed.
type Way = (String, Schedule);

/// One problem and what was measured of it.
struct Measured {
    data_type: DataType,
    problem: Gemm,
    microseconds: Vec<(Way, f64)>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &self.problem;
        let (lda, ldb, ldc) = (p.lda, p.ldb, p.ldc);
        write!(
            f,
            "{} {} {}x{}x{}",
            self.data_type, p.operands, p.m, p.n, p.k
        )?;
        write!(f, " by {lda}, {ldb}, {ldc}")
    }
}

/// A table, and the machine that it was measured on.
fn table(data_type: DataType, text: &str) -> (Machine, Vec<Measured>) {
    let mut machine = Machine::for_arch(Arch(90));
    let mut plans = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("# ") else {
            if !line.starts_with("trans,") {
                all.push(problem(data_type, &plans, line));
            }
            continue;
        };
        let words: Vec<&str> = line.split(',').collect();
        match words[..] {
            ["plan", letter, name] => {
                plans.insert(letter, name);
            }
            ["machine", name, multiprocessors, megahertz, cache, memory] => {
                let number = |text: &str| text.parse::<f64>().expect("a number");
                machine = Machine {
                    name: name.to_owned(),
                    multiprocessors: number(multiprocessors) as u32,
                    clock: number(megahertz) * 1e6,
                    l2_bytes: number(cache) as u64,
                    memory_bandwidth: number(memory) * 1e9,
                    ..machine
                };
            }
            _ => {}
        }
    }
    (machine, all)
}

fn problem(data_type: DataType, plans: &BTreeMap<&str, &str>, line: &str) -> Measured {
    let columns: Vec<&str> = line.split(',').collect();
    let operands: Operands = columns[0].parse().expect("nn, nt, tn or tt");
    let size = |i: usize| columns[i].parse::<u64>().expect("a size");
    let mut problem = Gemm::packed(size(1), size(2), size(3), operands);
    (problem.lda, problem.ldb, problem.ldc) = (size(4), size(5), size(6));
    let microseconds = columns[7].split(';').map(|entry| {
        let (way, time) = entry.split_once(' ').expect("a candidate and its time");
        let (plan, parts) = way.split_once('/').unwrap_or((way, "1"));
        let letter = plan.trim_end_matches('*');
        let schedule = Schedule {
            split: parts.parse().expect("a number of parts"),
            pack: plan != letter,
        };
        let name = plans.get(letter).expect("a letter of the header");
        (
            ((*name).to_owned(), schedule),
            time.parse().expect("a time"),
        )
    });
    Measured {
        data_type,
        problem,
        microseconds: microseconds.collect(),
    }
}
