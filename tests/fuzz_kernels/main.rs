//! Random kernels through the public builder: what is proven is run on the emulator, which must find nothing.
//!
//! ```text
//! seed ─▶ generate ─▶ mutate ─▶ build ─▶ prove ─┬─ accepted ─▶ run: a finding is a fault of the prover
//!                                              └─ refused ──▶ run all the same: how often was it right?
//! ```
//!
//! `cargo xtask fuzz --seed N --programs M` runs as many as wanted and prints one line of JSON; `--program I` is one of them, and `--refused` prints those that
//! are refused and right. Without arguments it is a test: a fixed seed, and floors
//! under what is accepted and refused, so that it passes by neither refusing nor accepting everything.

mod build;
mod expressions;
mod fragments;
mod generate;
mod indices;
mod judge;
mod layouts;
mod mutate;
mod program;
mod random;
mod shrink;
mod typed;
mod visit;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use judge::{Verdict, judge};
use program::Program;
use random::Random;

/// What the test runs.
const SEED: u64 = 41;
const PROGRAMS: u64 = 3000;

/// Of a hundred programs, at least so many must be accepted, and refused.
const ACCEPTED: u64 = 25;
const REFUSED: u64 = 10;

/// Programs of a run by what became of them.
#[derive(Default, Debug)]
struct Tally {
    programs: u64,
    accepted: u64,
    wrong: u64,
    panics: u64,
    refused_right: u64,
    /// Refusals by their code: in all, and those where the emulator found nothing.
    codes: BTreeMap<&'static str, [u64; 2]>,
    /// Programs by their family: in all, and accepted.
    families: BTreeMap<&'static str, [u64; 2]>,
    slowest: (Duration, u64),
}

impl Tally {
    fn refused(&self) -> u64 {
        self.programs - self.accepted - self.wrong - self.panics
    }
}

/// Program `number` of a run, the first that the builder takes, and what became of it.
fn program(seed: u64, number: u64) -> (Program, Verdict) {
    let mut r = Random::of(seed, number);
    loop {
        let mut p = generate::program(&mut r);
        for _ in 0..r.pick(&[0, 0, 0, 1, 1, 1, 2, 3]) {
            mutate::mutate(&mut r, &mut p);
        }
        match judge(&p, seed ^ number) {
            Verdict::Unbuildable => {}
            verdict => return (p, verdict),
        }
    }
}

/// What a verdict says against a program.
fn fault(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Wrong(fault) | Verdict::Panic(fault) => Some(fault),
        _ => None,
    }
}

/// Prints what is wrong with a program, and a smaller one.
fn report(seed: u64, number: u64, p: &Program, verdict: &Verdict) {
    let judged = |p: &Program| judge(p, seed ^ number);
    let small = shrink::shrink(p, |p| fault(&judged(p)).is_some());
    let mut text = format!(
        "seed {seed}, program {number}: {}\n{p:#?}\n",
        fault(verdict).unwrap_or_default()
    );
    let again = judged(&small);
    let _ = writeln!(
        text,
        "smaller: {}\n{small:?}",
        fault(&again).unwrap_or_default()
    );
    if let Ok(kernel) = build::kernel(&small)
        && let Ok(kernel) = kernel.build_unproven(judge::ARCH)
    {
        text.push_str(&kernel.ptx);
    }
    eprintln!("{text}\n");
}

fn fuzz(seed: u64, numbers: impl Iterator<Item = u64>, refused: bool) -> Tally {
    // A panic is a verdict; its message is in the report.
    judge::keep_panics();
    let mut tally = Tally::default();
    for number in numbers {
        let start = Instant::now();
        let (p, verdict) = program(seed, number);
        let took = start.elapsed();
        if took > tally.slowest.0 {
            tally.slowest = (took, number);
        }
        tally.programs += 1;
        let family = tally.families.entry(p.family).or_default();
        family[0] += 1;
        if fault(&verdict).is_some() {
            report(seed, number, &p, &verdict);
        }
        match &verdict {
            Verdict::Accepted => {
                tally.accepted += 1;
                family[1] += 1;
            }
            Verdict::Wrong(_) => tally.wrong += 1,
            Verdict::Panic(_) => tally.panics += 1,
            Verdict::Refused {
                right,
                code,
                reason,
            } => {
                if refused && *right {
                    eprintln!("program {number}, {}: refused: {reason}\n{p:?}\n", p.family);
                }
                tally.refused_right += u64::from(*right);
                let counts = tally.codes.entry(code).or_default();
                counts[0] += 1;
                counts[1] += u64::from(*right);
            }
            Verdict::Unbuildable => {}
        }
    }
    let _ = std::panic::take_hook();
    tally
}

/// The number behind `--name`.
fn argument(args: &[String], name: &str) -> Result<Option<u64>, String> {
    let Some(at) = args.iter().position(|a| a == name) else {
        return Ok(None);
    };
    let value = args.get(at + 1).ok_or(format!("{name} needs a number"))?;
    let number = value
        .parse()
        .map_err(|_| format!("{name} is a number, not `{value}`"));
    number.map(Some)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let given = ["--seed", "--programs", "--program"].map(|name| argument(&args, name));
    let [seed, programs, only] = match given {
        [Ok(seed), Ok(programs), Ok(only)] => [seed, programs, only],
        other => {
            let said: Vec<String> = other.into_iter().filter_map(Result::err).collect();
            eprintln!("{}", said.join("\n"));
            return ExitCode::from(2);
        }
    };
    // A test runner asks what tests there are.
    if args.iter().any(|a| a == "--list") {
        println!("fuzz_kernels: test");
        return ExitCode::SUCCESS;
    }
    let by_hand = seed.is_some() || programs.is_some() || only.is_some();
    let (seed, programs) = (seed.unwrap_or(SEED), programs.unwrap_or(PROGRAMS));
    let numbers = only.map_or(0..programs, |only| only..only + 1);
    let start = Instant::now();
    let tally = fuzz(seed, numbers, args.iter().any(|a| a == "--refused"));
    let seconds = start.elapsed().as_secs_f64();
    let Tally {
        programs,
        accepted,
        wrong,
        panics,
        refused_right,
        ..
    } = tally;
    println!(
        "{{\"programs\":{programs},\"accepted\":{accepted},\"wrong\":{wrong},\"panics\":{panics},\"refused_right\":{refused_right}}}"
    );
    let (slowest, number) = tally.slowest;
    eprintln!(
        "seed {seed}: {:.0} programs a second; the slowest, {number}, took {} ms",
        programs as f64 / seconds,
        slowest.as_millis()
    );
    for (what, counts) in [
        ("refused, of them right", &tally.codes),
        ("programs, of them accepted", &tally.families),
    ] {
        let all: Vec<String> = counts
            .iter()
            .map(|(name, [all, part])| format!("{name} {all} {part}"))
            .collect();
        eprintln!("{what}: {}", all.join(", "));
    }
    let few = |n: u64, floor: u64| !by_hand && 100 * n < floor * programs;
    if few(accepted, ACCEPTED) || few(tally.refused(), REFUSED) {
        eprintln!("at least {ACCEPTED} % must be accepted and {REFUSED} % refused");
        return ExitCode::FAILURE;
    }
    if wrong > 0 || panics > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
