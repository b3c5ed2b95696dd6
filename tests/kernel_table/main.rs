//! No kernel is worse than the golden table says: not more instructions of any kind in a main loop, not more registers (but for the choice
//! that a launch bound leaves), no spill, not more shared memory.
//!
//! The table has a row for each kernel of the [`product`] of all plans. `cargo xtask kernels` goes through all of them: four minutes on two
//! processors if no text changed, most of an hour if all did. `cargo xtask kernels --write` writes the table anew, which it does only if
//! nothing is worse: a row that may be worse is deleted from the table by hand first. An interrupted `--write` leaves what it has: rows
//! with cells that are still empty, which the next one fills.
//!
//! In `cargo test` the same is done for a share of the rows, the same in every run: all listed plans, and one row in [`ONE_IN`] of the
//! others. Their texts are emitted and their loops counted; those that changed, and [`SAMPLE`] that did not, are assembled.

#[path = "../common/mod.rs"]
mod common;
mod loops;
mod measure;
mod product;
mod table;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tilewright::codegen::Arch;
use tilewright::gpu::ptxas::{self, Ptxas};
use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::Emitted;

use common::Random;
use product::Candidate;
use product::Layers::{One, Split};
use table::{Row, Table};

/// The share of the rows that are not listed plans: one in so many.
const ONE_IN: u64 = 8;

/// Kernels of the share that are assembled though their text did not change.
const SAMPLE: usize = 64;

/// Kernels of the share that are assembled at most because their text changed, listed plans first.
const CHANGED: usize = 120;

/// How often a table that is being written is saved: an hour's work is not lost when it is interrupted.
const SAVED_EVERY: Duration = Duration::from_mins(1);

/// Pairs of a source and an end that have no row.
const PAIRS: usize = 48;

/// A row to look at, and whether to assemble it though it did not change.
struct Job {
    plan: String,
    row: Candidate,
    sampled: bool,
}

/// What came of it.
#[derive(Default)]
struct Outcome {
    table: Table,
    worse: Vec<String>,
    /// Rows that the golden table lacks or has with another text.
    changed: usize,
    assembled: usize,
    saved: Option<Instant>,
}

/// ptxas; none if it was left out, which is said.
fn assembler() -> Option<Ptxas> {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    if found.is_none() {
        common::say("no ptxas: no kernel is assembled, only loops are counted");
    }
    found
}

/// Does each job on one of the machine's processors.
fn on_all_processors<T: Send>(jobs: Vec<T>, work: impl Fn(T) + Sync) {
    let jobs = Mutex::new(jobs.into_iter());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    let job = jobs
                        .lock()
                        .expect("no job panics while it takes one")
                        .next();
                    let Some(job) = job else { break };
                    work(job);
                }
            });
        }
    });
}

/// All rows of the product.
fn all_rows() -> Vec<Job> {
    let mut all = Vec::new();
    for plan in Config::table().map(Config::kernel) {
        for row in product::candidates(&plan) {
            all.push(Job {
                plan: plan.name(),
                row,
                sampled: false,
            });
        }
    }
    all
}

/// How much is done about a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Its text is emitted and its loops counted.
    Emit,
    /// In every test: it is assembled for two architectures if it was sampled or its text changed, the latter so many times.
    Share,
    /// It is assembled for every architecture of which the golden table does not say what comes of this text.
    Whole,
}

/// Looks at one row.
fn look(job: &Job, golden: &Table, ptxas: Option<&Ptxas>, depth: Depth, out: &Mutex<Outcome>) {
    let plan = job
        .plan
        .parse::<Config>()
        .map(Config::kernel)
        .expect("it was listed");
    let Some(variant) = product::resolve(&plan, &job.row) else {
        return;
    };
    let first = plan.min_arch();
    let kernel = measure::emit(&variant, first).expect("a plan serves its first architecture");
    let mut row = measure::unmeasured(&variant, &kernel);
    let then = golden.get(&kernel.kernel);
    let same = then.is_some_and(|t| t.text == row.text);
    let assembles = {
        let mut out = out.lock().expect("no other panicked");
        out.changed += usize::from(!same);
        match depth {
            Depth::Emit => false,
            Depth::Whole => true,
            Depth::Share => job.sampled || (!same && out.changed <= CHANGED),
        }
    };
    let (mut wrong, mut assembled) = (Vec::new(), 0);
    // The cell of an architecture: the golden one if it has the same text, or what ptxas says.
    let mut cell = |arch: Arch, kernel: &Emitted, row: &mut Row| {
        let own = Some(table::hash(&kernel.ptx)).filter(|&text| text != row.text);
        let known = then.and_then(|t| t.cells.get(&arch)).copied();
        let known = known.filter(|known| same && known.text == own && !job.sampled);
        let ptxas = ptxas.filter(|_| assembles);
        let found = known.or_else(|| {
            let result = measure::assemble(ptxas?, kernel, arch, row.text);
            assembled += 1;
            result.map_err(|e| wrong.push(e)).ok()
        });
        row.cells.extend(found.map(|c| (arch, c)));
        found
    };
    if let Some(own) = cell(first, &kernel, &mut row) {
        let mut others = measure::others(&variant, job.row.listed, &kernel, own);
        if depth == Depth::Share {
            // One of them, in turn.
            let turn = (row.text % others.len().max(1) as u64) as usize;
            others = others.into_iter().skip(turn).take(1).collect();
        }
        for arch in others {
            if let Some(kernel) = measure::emit(&variant, arch) {
                cell(arch, &kernel, &mut row);
            }
        }
    }
    match then {
        Some(then) => wrong.extend(measure::worse(&kernel.kernel, &row, then)),
        None if depth == Depth::Share => wrong.push(format!("{} has no row", kernel.kernel)),
        None => {}
    }
    for line in &wrong {
        common::say(line);
    }
    let mut out = out.lock().expect("no other panicked");
    out.assembled += assembled;
    out.worse.extend(wrong);
    // What changed is compared with its golden row when it is assembled, and not replaced before.
    if let (Depth::Emit, Some(then)) = (depth, then) {
        row = then.clone();
    }
    out.table.insert(kernel.kernel, row);
    if out.saved.is_some_and(|at| at.elapsed() > SAVED_EVERY) {
        let mut merged = golden.clone();
        merged.extend(out.table.clone());
        save(&merged);
        out.saved = Some(Instant::now());
    }
}

/// Writes the table.
fn save(table: &Table) {
    let path = table::path();
    std::fs::write(&path, table::to_text(table))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// What is assembled first: listed plans, then what comes nearest to its limit, which are 8-bit floats and split sums; then the plans in
/// turn, so that of each an interrupted table has some.
fn urgency(job: &Job) -> (u8, usize) {
    let split = matches!(job.row.source.layers, Split(_));
    let class = match (job.row.listed, job.plan.contains("-e"), split) {
        (true, ..) => 0,
        (_, true, _) => 1,
        (.., true) => 2,
        _ => 3,
    };
    (class, job.row.end)
}

/// Every row; `write` writes the table anew: first the texts and loops of all rows, then what ptxas makes of them.
fn whole(write: bool) {
    let mut golden = table::load();
    let ptxas = assembler().expect("the whole table takes ptxas");
    let passes: &[Depth] = if write {
        &[Depth::Emit, Depth::Whole]
    } else {
        &[Depth::Whole]
    };
    for &depth in passes {
        let started = Instant::now();
        let out = Mutex::new(Outcome {
            saved: write.then_some(started),
            ..Outcome::default()
        });
        let mut jobs = all_rows();
        jobs.sort_by_key(urgency);
        on_all_processors(jobs, |job| look(&job, &golden, Some(&ptxas), depth, &out));
        let out = out.into_inner().expect("no job panicked");
        let gone = golden.keys().filter(|k| !out.table.contains_key(*k));
        let gone = gone.count();
        common::say(&format!(
            "{} kernels in {:.0} s: {} new or changed, {gone} gone, {} assemblies, {} worse",
            out.table.len(),
            started.elapsed().as_secs_f64(),
            out.changed,
            out.assembled,
            out.worse.len()
        ));
        assert!(out.worse.is_empty(), "{}", out.worse.join("\n"));
        if write {
            save(&out.table);
            golden = out.table;
        } else {
            assert_eq!(gone, 0, "kernels of the table that no plan has any more");
        }
    }
}

/// The rows that `cargo test` looks at, the listed plans first.
fn share() -> Vec<Job> {
    let mut random = Random::new(7);
    let mut jobs = all_rows();
    jobs.retain(|job| job.row.listed || random.below(ONE_IN) == 0);
    jobs.sort_by_key(|job| !job.row.listed);
    let each = (jobs.len() / SAMPLE).max(1);
    for job in jobs.iter_mut().step_by(each) {
        job.sampled = true;
    }
    jobs
}

#[test]
fn no_kernel_is_worse_than_the_table_says() {
    match std::env::var("TILEWRIGHT_KERNELS").as_deref() {
        Ok("check") => return whole(false),
        Ok("write") => return whole(true),
        _ => {}
    }
    let golden = table::load();
    let ptxas = assembler();
    let out = Mutex::new(Outcome::default());
    let jobs = share();
    let rows = jobs.len();
    on_all_processors(jobs, |job| {
        look(&job, &golden, ptxas.as_ref(), Depth::Share, &out);
    });
    let out = out.into_inner().expect("no job panicked");
    println!(
        "{rows} rows asked for: {} changed, {} assemblies",
        out.changed, out.assembled
    );
    if out.changed > CHANGED && ptxas.is_some() {
        common::say(&format!(
            "{} texts changed: {CHANGED} of them were assembled, `cargo xtask kernels` takes all",
            out.changed
        ));
    }
    assert!(out.worse.is_empty(), "{}", out.worse.join("\n"));
}

/// A source with an end that is not its row's: the same main loops, and no spill.
#[test]
fn an_end_leaves_the_main_loop_as_it_is() {
    let ptxas = assembler();
    let mut random = Random::new(11);
    let names: Vec<_> = Config::table()
        .map(Config::kernel)
        .map(|plan| plan.name())
        .collect();
    let names: Vec<_> = names.iter().filter(|n| n.starts_with("mma-")).collect();
    let mut jobs = Vec::new();
    while jobs.len() < PAIRS {
        let name = names[jobs.len() % names.len()];
        let plan = name
            .parse::<Config>()
            .map(Config::kernel)
            .expect("it was listed");
        let rows = product::candidates(&plan);
        let row = rows[random.below(rows.len() as u64) as usize];
        let mut other = row;
        other.end = random.below(99) as usize;
        let both = [row, other].map(|row| product::resolve(&plan, &row));
        if let [Some(row), Some(other)] = both {
            let arches: Vec<_> = Arch::ALL.into_iter().filter(|a| plan.runs_on(*a)).collect();
            let arch = arches[random.below(arches.len() as u64) as usize];
            jobs.push((row, other, arch));
        }
    }
    on_all_processors(jobs, |(row, other, arch)| {
        let Some(kernel) = measure::emit(&other, arch) else {
            return;
        };
        let row = measure::emit(&row, arch).expect("the same tile");
        let of = |kernel: &Emitted| {
            loops::main_loops(loops::entry(&kernel.ptx, &kernel.kernel).expect("its entry"))
        };
        assert_eq!(
            of(&kernel),
            of(&row),
            "{} and {}",
            kernel.kernel,
            row.kernel
        );
        if let Some(ptxas) = &ptxas {
            let cell = measure::assemble(ptxas, &kernel, arch, 0);
            cell.unwrap_or_else(|e| panic!("{e}"));
        }
    });
}

/// Cached copies, the loads of a packing kernel and the number of parts change nothing of the main kernel but its name and `ca` for `cg`.
#[test]
fn the_sources_that_turn_change_nothing_else() {
    let plan = "mma-f16-64x64x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("it is listed");
    let end = product::ends(plan.data_type)[0];
    let text = |copies: [product::Copies; 2], layers| {
        let source = product::Source { copies, layers };
        let nn = tilewright::kernels::gemm::Operands::ALL[0];
        let variant = product::variant(&plan, nn, source, end).expect("it serves");
        let kernel = measure::emit(&variant, plan.min_arch()).expect("it fits");
        let entry = loops::entry(&kernel.ptx, &kernel.kernel).expect("its entry");
        let entry = entry.split_once('(').expect("its parameters").1;
        // What follows is another entry's.
        let entry = entry.split_once("\n}").expect("its end").0;
        entry.replace("cp.async.ca.", "cp.async.cg.")
    };
    let direct = |sectors| product::Copies::Direct { bytes: 16, sectors };
    let packed = |bytes| product::Copies::Packed { bytes };
    assert_eq!(text([direct(true); 2], One), text([direct(false); 2], One));
    assert_eq!(text([packed(8); 2], One), text([packed(2); 2], One));
    let parts = [2, 64].map(|parts| text([direct(true); 2], Split(parts)));
    assert_eq!(parts[0], parts[1]);
}
