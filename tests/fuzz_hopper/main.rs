//! Random kernels of roles, rings over TMA and products of warpgroups: what is proven is run on the emulator, which must find nothing, and where the program makes no
//! mistake its product must be right.
//!
//! A program is a matrix product whose tiles, types, rings, roles and schedule are drawn, and up to two mistakes of its author: a step too few, a stage given
//! back too early, a tile that is loaded twice. `cargo xtask fuzz --hopper --seed N --programs M` runs as many as wanted and prints one line of JSON; `--program I` is one of
//! them. Without arguments it is a test with floors, as `tests/fuzz_kernels`.

mod build;
#[path = "../fuzz_kernels/random.rs"]
#[allow(dead_code)] // The other fuzz draws more.
mod random;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use half::{bf16, f16};
use tilewright::codegen::ir::Kernel;
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::{Arch, Proven};
use tilewright::emulator::Options;
use tilewright::host::{Arg, On, Outcome, RunOptions, run_with};

use build::{Form, Program};
use random::Random;

/// What the test runs.
const SEED: u64 = 7;
const PROGRAMS: u64 = 250;

/// Of a hundred programs, at least so many must be accepted, and refused.
const ACCEPTED: u64 = 25;
const REFUSED: u64 = 10;

/// Warp instructions of a launch.
const STEPS: u64 = 1 << 20;

/// What became of a program.
enum Verdict {
    /// The builder does not take it.
    Unbuildable,
    Accepted,
    Wrong(String),
    Panic,
    /// Not proven; whether the emulator finds nothing.
    Refused {
        right: bool,
        code: &'static str,
    },
}

/// One launch; what is wrong with it.
fn faults(p: &Program, kernel: &Proven, r: &mut Random) -> Option<String> {
    let [tm, tn, tk] = p.tile();
    let near = |r: &mut Random, tile: i64| {
        let around = [1, 7, tile - 1, tile, tile, tile, tile + 1];
        r.pick(&around).clamp(1, 400) as usize
    };
    let (m, n) = (near(r, tm), near(r, tn));
    // Rows of c that boxes are stored to are multiples of 16 bytes.
    let n = if p.boxes { n.next_multiple_of(8) } else { n };
    let steps = r.below(p.stages as usize + 3);
    let k = (steps * tk as usize).saturating_sub(r.pick(&[0, 0, 1, 9]));
    let align = p.form.align();
    // What is contiguous in a and b, and how far its rows are apart.
    let (columns_a, rows_a) = if p.transposed[0] { (m, k) } else { (k, m) };
    let (columns_b, rows_b) = if p.transposed[1] { (n, k) } else { (k, n) };
    let [lda, ldb] = [columns_a, columns_b].map(|c| c.max(1).next_multiple_of(align));
    let values = |r: &mut Random, count: usize| -> Vec<f32> {
        (0..count).map(|_| r.below(9) as f32 - 4.0).collect()
    };
    let (a, b) = (values(r, rows_a * lda), values(r, rows_b * ldb));
    let arg = |all: &[f32]| match p.form {
        Form::F16 => Arg::input(&all.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()),
        Form::Bf16 => Arg::input(&all.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>()),
        Form::Tf32 => Arg::input(all),
        Form::E4m3 => {
            let all: Vec<_> = all.iter().map(|&x| float8::F8E4M3::from_f32(x)).collect();
            Arg::input(&all)
        }
    };
    let output = if p.boxes {
        Arg::output::<bf16>(m * n)
    } else {
        Arg::output::<f32>(m * n)
    };
    let size = |n: usize| Arg::from(n as u32);
    let args = [
        ("m", size(m)),
        ("n", size(n)),
        ("k", size(k)),
        ("lda", size(lda)),
        ("ldb", size(ldb)),
        ("a", arg(&a)),
        ("b", arg(&b)),
        ("c", output),
    ];
    let mut options = RunOptions::default();
    options.emulator = Options {
        total_step_limit: STEPS,
        lane_races: true,
        schedule: if r.chance(30) { 1 + r.bits() % 1000 } else { 0 },
        ..options.emulator
    };
    let outcome = match run_with(kernel, On::Emulator, args, &options) {
        Ok(outcome) => outcome,
        Err(error) => return Some(format!("{m} x {n} x {k}: {error}")),
    };
    if let Err(error) = outcome.clean() {
        return Some(format!("{m} x {n} x {k}: {}", error.reasons.join("; ")));
    }
    if !p.mistakes.is_empty() {
        return None;
    }
    let at = |all: &[f32], ld: usize, transposed: bool, row: usize, k: usize| {
        if transposed {
            all[k * ld + row]
        } else {
            all[row * ld + k]
        }
    };
    let c = sums(p, &outcome);
    for (i, &found) in c.iter().enumerate() {
        let terms = (0..k).map(|t| {
            at(&a, lda, p.transposed[0], i / n, t) * at(&b, ldb, p.transposed[1], i % n, t)
        });
        // Whole numbers below 2^24: exact.
        let sum: f32 = terms.fold(0.0, |s, x| s + x);
        let wanted = if p.boxes {
            bf16::from_f32(sum).to_f32()
        } else {
            sum
        };
        if found.to_bits() != wanted.to_bits() {
            return Some(format!(
                "{m} x {n} x {k}: element {i} is {found} instead of {wanted}"
            ));
        }
    }
    None
}

fn sums(p: &Program, outcome: &Outcome) -> Vec<f32> {
    if p.boxes {
        let c: Vec<bf16> = outcome.get("c").unwrap_or_default();
        c.into_iter().map(bf16::to_f32).collect()
    } else {
        outcome.get("c").unwrap_or_default()
    }
}

fn judged(p: &Program, seed: u64) -> Verdict {
    type Build = fn(Kernel, Arch) -> Result<Proven, ProofError>;
    let build = |prove: Build| build::kernel(p).map(|kernel| prove(kernel, Arch(90)));
    let several = |kernel: &Proven, launches: u64| {
        (0..launches).find_map(|i| faults(p, kernel, &mut Random::of(seed, i + 1)))
    };
    match build(Kernel::build) {
        Err(_) => Verdict::Unbuildable,
        Ok(Ok(kernel)) => match several(&kernel, 2) {
            None => Verdict::Accepted,
            Some(fault) => Verdict::Wrong(fault),
        },
        Ok(Err(error)) => Verdict::Refused {
            code: error.code(),
            right: match build(Kernel::build_unproven) {
                Ok(Ok(kernel)) => several(&kernel, 1).is_none(),
                _ => false,
            },
        },
    }
}

/// Program `number` of a run, the first that the builder takes, and what became of it.
fn program(seed: u64, number: u64) -> (Program, Verdict) {
    let mut r = Random::of(seed, number);
    loop {
        let p = build::program(&mut r);
        let verdict = catch_unwind(AssertUnwindSafe(|| judged(&p, seed ^ number)));
        match verdict.unwrap_or(Verdict::Panic) {
            Verdict::Unbuildable => {}
            verdict => return (p, verdict),
        }
    }
}

/// The number behind `--name`.
fn argument(args: &[String], name: &str) -> Result<Option<u64>, String> {
    let Some(at) = args.iter().position(|a| a == name) else {
        return Ok(None);
    };
    let value = args.get(at + 1).ok_or(format!("{name} needs a number"))?;
    let number = value.parse();
    number
        .map(Some)
        .map_err(|_| format!("{name} is a number, not `{value}`"))
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
        println!("fuzz_hopper: test");
        return ExitCode::SUCCESS;
    }
    let by_hand = seed.is_some() || programs.is_some() || only.is_some();
    let (seed, programs) = (seed.unwrap_or(SEED), programs.unwrap_or(PROGRAMS));
    let numbers = only.map_or(0..programs, |only| only..only + 1);
    let refused_too = args.iter().any(|a| a == "--refused");
    let start = Instant::now();
    let [
        mut all,
        mut accepted,
        mut wrong,
        mut panics,
        mut refused_right,
    ] = [0u64; 5];
    let mut codes: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for number in numbers {
        let (p, verdict) = program(seed, number);
        all += 1;
        match verdict {
            Verdict::Unbuildable => {}
            Verdict::Accepted => accepted += 1,
            Verdict::Panic => {
                panics += 1;
                eprintln!("seed {seed}, program {number} panics\n{p:#?}\n");
            }
            Verdict::Wrong(fault) => {
                wrong += 1;
                eprintln!("seed {seed}, program {number}: {fault}\n{p:#?}\n");
            }
            Verdict::Refused { right, code } => {
                refused_right += u64::from(right);
                let counts = codes.entry(code).or_default();
                *counts = [counts[0] + 1, counts[1] + u64::from(right)];
                if refused_too && right {
                    let error = build::kernel(&p).ok().map(|k| k.build(Arch(90)).err());
                    eprintln!(
                        "program {number} is refused: {:?}\n{p:#?}\n",
                        error.flatten()
                    );
                }
            }
        }
    }
    println!(
        "{{\"programs\":{all},\"accepted\":{accepted},\"wrong\":{wrong},\"panics\":{panics},\"refused_right\":{refused_right}}}"
    );
    let rate = all as f64 / start.elapsed().as_secs_f64();
    eprintln!("seed {seed}: {rate:.0} programs a second; refused, of them right: {codes:?}");
    let few = |n: u64, floor: u64| !by_hand && 100 * n < floor * all;
    if few(accepted, ACCEPTED) || few(all - accepted - wrong - panics, REFUSED) {
        eprintln!("at least {ACCEPTED} % must be accepted and {REFUSED} % refused");
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::from(wrong > 0 || panics > 0))
}
