//! Random kernels of roles, rings over TMA and products of warpgroups: what is proven is run on the emulator, which must find nothing, and where the program makes no
//! mistake its product must be right.
//!
//! A program is a matrix product, or two in a row as attention has them, whose tiles, types, rings, roles and schedule are drawn, with stages held across a loop, order barriers and data that a role exchanges, and up to two mistakes of its author: a step too few,
//! a stage released too early, a tile that is loaded twice. If a mistake changes nothing of what is multiplied and the program is proven, its result must be right as well. `cargo xtask fuzz --hopper --seed N --programs M` runs as many as wanted and prints one line of JSON; `--program I` is one of
//! them. Without arguments it is a test with floors, as `tests/fuzz_kernels`.

mod attention;
mod build;
mod mistakes;
mod product;
#[path = "../fuzz_kernels/random.rs"]
#[allow(dead_code)] // The other fuzz draws more.
mod random;
mod scores;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use half::bf16;
use tilewright::codegen::ir::Kernel;
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::view::ViewError;
use tilewright::codegen::{Arch, Proven};
use tilewright::emulator::Options;
use tilewright::host::{Arg, On, RunOptions, run_with};

use mistakes::Mistake;
use product::Product;
use random::Random;
use scores::Scores;

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

/// A random launch of a program, and what it is to compute.
struct Case {
    /// Its sizes, for a reader.
    what: String,
    sizes: Vec<(&'static str, usize)>,
    inputs: Vec<(&'static str, Arg<'static>)>,
    output: &'static str,
    /// The output is bf16, and not f32.
    halves: bool,
    wanted: Vec<f32>,
}

/// An extent around that of a tile.
fn near(r: &mut Random, tile: i64) -> usize {
    let around = [1, 7, tile - 1, tile, tile, tile, tile + 1];
    r.pick(&around).clamp(1, 400) as usize
}

/// Whole numbers from -4 to 4.
fn numbers(r: &mut Random, count: usize) -> Vec<f32> {
    (0..count).map(|_| r.below(9) as f32 - 4.0).collect()
}

/// A program: a product, or a product of scores.
#[derive(Debug)]
enum Program {
    Product(Product),
    Scores(Scores),
}

impl Program {
    fn random(r: &mut Random) -> Self {
        if r.chance(30) {
            Self::Scores(scores::random(r))
        } else {
            Self::Product(product::random(r))
        }
    }

    fn kernel(&self) -> Result<Kernel, ViewError> {
        match self {
            Self::Product(p) => build::kernel(p),
            Self::Scores(p) => scores::kernel(p),
        }
    }

    fn case(&self, r: &mut Random) -> Case {
        match self {
            Self::Product(p) => p.case(r),
            Self::Scores(p) => p.case(r),
        }
    }

    fn mistakes(&self) -> &[Mistake] {
        match self {
            Self::Product(p) => &p.mistakes,
            Self::Scores(p) => &p.mistakes,
        }
    }
}

/// One launch; what is wrong with it.
fn faults(p: &Program, kernel: &Proven, r: &mut Random) -> Option<String> {
    let case = p.case(r);
    let (what, count) = (&case.what, case.wanted.len());
    let mut args = case.inputs;
    args.extend(
        case.sizes
            .iter()
            .map(|(name, n)| (*name, Arg::from(*n as u32))),
    );
    let output = if case.halves {
        Arg::output::<bf16>(count)
    } else {
        Arg::output::<f32>(count)
    };
    args.push((case.output, output));
    let mut options = RunOptions::default();
    options.emulator = Options {
        total_step_limit: STEPS,
        lane_races: true,
        schedule: if r.chance(30) { 1 + r.bits() % 1000 } else { 0 },
        ..options.emulator
    };
    let outcome = match run_with(kernel, On::Emulator, args, &options) {
        Ok(outcome) => outcome,
        Err(error) => return Some(format!("{what}: {error}")),
    };
    if let Err(error) = outcome.clean() {
        return Some(format!("{what}: {}", error.reasons.join("; ")));
    }
    if !p.mistakes().iter().all(|m| m.keeps_result()) {
        return None;
    }
    let found: Vec<f32> = if case.halves {
        let all: Vec<bf16> = outcome.get(case.output).unwrap_or_default();
        all.into_iter().map(bf16::to_f32).collect()
    } else {
        outcome.get(case.output).unwrap_or_default()
    };
    let rounded = |x: f32| {
        if case.halves {
            bf16::from_f32(x).to_f32()
        } else {
            x
        }
    };
    let mut both = found.iter().zip(&case.wanted).enumerate();
    let wrong = both.find(|(_, (found, wanted))| found.to_bits() != rounded(**wanted).to_bits());
    if found.len() != count {
        return Some(format!("{what}: {} of {count} elements", found.len()));
    }
    wrong.map(|(i, (found, wanted))| format!("{what}: element {i} is {found} instead of {wanted}"))
}

fn judged(p: &Program, seed: u64) -> Verdict {
    type Build = fn(Kernel, Arch) -> Result<Proven, ProofError>;
    let build = |prove: Build| p.kernel().map(|kernel| prove(kernel, Arch(90)));
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
        let p = Program::random(&mut r);
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
    let mut kinds: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for number in numbers {
        let (p, verdict) = program(seed, number);
        all += 1;
        for mistake in p.mistakes() {
            let tried = kinds.entry(mistake.kind()).or_default();
            let taken = matches!(verdict, Verdict::Accepted);
            *tried = [tried[0] + 1, tried[1] + u64::from(taken)];
        }
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
                    let error = p.kernel().ok().map(|k| k.build(Arch(90)).err());
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
    eprintln!("mistakes, of them accepted: {kinds:?}");
    let few = |n: u64, floor: u64| !by_hand && 100 * n < floor * all;
    if few(accepted, ACCEPTED) || few(all - accepted - wrong - panics, REFUSED) {
        eprintln!("at least {ACCEPTED} % must be accepted and {REFUSED} % refused");
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::from(wrong > 0 || panics > 0))
}
