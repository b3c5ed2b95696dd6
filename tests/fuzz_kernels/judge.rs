//! Whether a program is right: the emulator runs it, as often as it takes to meet the boundaries of its sizes and many kinds of data.
//!
//! The judge believes the contract (which sizes a launch may have, how long buffers are, how many blocks there are), and nothing else of what the builder
//! and the prover say.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright::codegen::ir::{Kernel, ParamKind};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::{Arch, Buffer, Elements, Formula, Proven, Usage};
use tilewright::emulator::{
    self, FindingKind, GlobalMemory, InstructionCounter, Launch, Module, Options, Report,
};

use crate::build::{self, Unbuildable};
use crate::program::{Float, Int, Ix, Program, Scalar};
use crate::random::Random;
use crate::visit::{self, Visitor};

thread_local! {
    /// What the last panic said, and where it was: the payload has no place.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps what panics say for the verdict, in place of printing it.
pub(crate) fn keep_panics() {
    std::panic::set_hook(Box::new(|info| PANIC.set(info.to_string())));
}

/// What became of a program.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The builder does not take it.
    Unbuildable,
    /// Proven, and nothing is found.
    Accepted,
    /// Proven, and the emulator finds this.
    Wrong(String),
    /// The builder, the prover or the emulator panics.
    Panic(String),
    /// Not proven for this reason; `right` if the emulator finds nothing.
    Refused {
        right: bool,
        code: &'static str,
        reason: String,
    },
}

/// The first with conversions of 8-bit floats.
pub(crate) const ARCH: Arch = Arch(89);

/// Why a program's author says that something holds of its sizes.
pub(crate) const STATED: &str = "a launch of the fuzz keeps it";

/// Warp instructions after which a launch says nothing.
const STEPS: u64 = 1 << 13;

/// Bytes and threads that a launch has at most.
const BYTES: u64 = 1 << 16;
const THREADS: u64 = 1 << 11;

/// Builds, proves, and runs.
pub(crate) fn judge(p: &Program, seed: u64) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| judged(p, seed))) {
        Ok(verdict) => verdict,
        Err(_) => Verdict::Panic(PANIC.take()),
    }
}

fn judged(p: &Program, seed: u64) -> Verdict {
    type Build = fn(Kernel, Arch) -> Result<Proven, ProofError>;
    let build = |prove: Build| match build::kernel(p) {
        Ok(kernel) => Ok(prove(kernel, ARCH)),
        Err(Unbuildable(_)) => Err(Verdict::Unbuildable),
    };
    let proven = match build(Kernel::build) {
        Ok(proven) => proven,
        Err(verdict) => return verdict,
    };
    match proven {
        Ok(kernel) if rests_on_launches(&kernel) => Verdict::Refused {
            right: false,
            code: "unchecked",
            reason: "what is stated of sizes in a branch or loop is not checked by launches, which may not keep it".to_owned(),
        },
        Ok(kernel) => match faults(p, &kernel, seed, 6) {
            None => Verdict::Accepted,
            Some(fault) => Verdict::Wrong(fault),
        },
        Err(error) => {
            let (code, reason) = (error.code(), error.to_string());
            let right = match build(Kernel::build_unproven) {
                Ok(Ok(kernel)) => faults(p, &kernel, seed, 4).is_none(),
                _ => false,
            };
            Verdict::Refused {
                right,
                code,
                reason,
            }
        }
    }
}

/// Whether a proof takes for a fact what its author states of sizes and no launch checks.
fn rests_on_launches(kernel: &Proven) -> bool {
    let mut stated = kernel.proof.assumptions.iter();
    stated.any(|a| !a.checked && a.reason == STATED)
}

/// One launch.
#[derive(Clone, Debug)]
struct Case {
    sizes: Vec<u32>,
    scalars: Vec<u32>,
    data: u64,
    schedule: u64,
}

/// Numbers that a program compares with, and the like.
#[derive(Default)]
struct Constants(Vec<i64>);

impl Visitor for Constants {
    fn ix(&mut self, e: &mut Ix) {
        match e {
            Ix::Const(c) | Ix::Scale(_, c) | Ix::Div(_, c) | Ix::Rem(_, c) | Ix::TilesIn(_, c) => {
                self.0.push(*c);
            }
            Ix::Linear(terms, c) => {
                self.0.extend(terms.iter().map(|(by, _)| by));
                self.0.push(*c);
            }
            _ => {}
        }
    }

    fn int(&mut self, e: &mut Int) {
        if let Int::Const(c) = e {
            self.0.push((*c).into());
        }
    }

    fn float(&mut self, e: &mut Float) {
        if let Float::Const(c) = e {
            self.0.push(c.to_bits().into());
        }
    }
}

/// What the emulator finds in launches of a kernel.
fn faults(p: &Program, kernel: &Proven, seed: u64, launches: usize) -> Option<String> {
    let module = match Module::parse(&kernel.ptx) {
        Ok(module) => module,
        Err(error) => return Some(format!("the text is not PTX: {error}")),
    };
    let mut r = Random::of(seed, 1);
    let mut constants = Constants(p.axes.iter().map(|axis| axis.tile).collect());
    visit::program(&mut p.clone(), &mut constants);
    let mut last = None;
    for number in 0..launches {
        let Some(case) = case(&mut r, p, kernel, &constants.0, number) else {
            continue;
        };
        let found = run(p, kernel, &module, &case);
        let fault = match found {
            Ok(Some((outputs, None))) => {
                last = Some((case, outputs));
                continue;
            }
            // Too long.
            Ok(None) => continue,
            Ok(Some((_, Some(fault)))) | Err(fault) => fault,
        };
        return Some(format!("{fault}\nlaunch: {case:?}"));
    }
    // In another order of warps and blocks it gives the same.
    let (case, outputs) = last?;
    let other = Case {
        schedule: 1 + r.bits() % 1000,
        ..case
    };
    match run(p, kernel, &module, &other) {
        Ok(Some((_, Some(fault)))) | Err(fault) => Some(format!("{fault}\nlaunch: {other:?}")),
        Ok(Some((again, None))) if again != outputs => Some(format!(
            "what it stores depends on the order of warps\nlaunch: {other:?}"
        )),
        Ok(_) => None,
    }
}

/// Arguments of a launch that the contract allows and that is not too large.
fn case(
    r: &mut Random,
    p: &Program,
    kernel: &Proven,
    constants: &[i64],
    number: usize,
) -> Option<Case> {
    for attempt in 0..8 {
        let sizes: Vec<u32> = p
            .sizes
            .iter()
            .map(|size| {
                let near = |r: &mut Random| match constants {
                    [] => 1,
                    all => r.pick(all).saturating_add(r.pick(&[-1, 0, 0, 1])),
                };
                let tiles = p.axes.iter().map(|axis| axis.tile).max().unwrap_or(1);
                let value = match r.below(if attempt > 3 { 6 } else { 10 }) {
                    0 if number > 0 => 0,
                    1 if size.counts => r.below(3) as i64,
                    0..=2 if size.counts => r.below(9) as i64,
                    0..=2 => r.below(2 * tiles as usize + 3) as i64,
                    3 | 4 => near(r),
                    5 => r.pick(&[1, 2, 3, 4, 5, 6, 7, 8]),
                    6 if size.counts => r.below(40) as i64,
                    6 => r.pick(&[tiles - 1, tiles, tiles + 1, 2 * tiles, 2 * tiles + 1]),
                    7 => r.pick(&[size.most, size.most - 1, size.most / 2]),
                    8 => r.pick(&[
                        1 << 31,
                        (1 << 31) - 1,
                        (1 << 31) + 1,
                        3_000_000_000,
                        4_294_967_295,
                    ]),
                    _ => near(r) * r.pick(&[1, 2]),
                };
                value.clamp(0, size.most) as u32
            })
            .collect();
        let of = |name: &str| {
            let number: usize = name.strip_prefix('n')?.parse().ok()?;
            sizes.get(number).map(|s| u64::from(*s))
        };
        let (Ok(grid), Ok(buffers)) = (kernel.grid(of), kernel.buffers(of)) else {
            continue;
        };
        // A tensor with elements that are in no range is not as stated.
        let stated = kernel.stated(of);
        let empty = stated
            .iter()
            .any(|(_, s)| matches!(s, Elements::Within(range) if range.is_empty()));
        if empty && buffers.iter().any(|b| b.bytes > 0) {
            continue;
        }
        let blocks = grid.iter().fold(1u64, |n, g| n.saturating_mul((*g).into()));
        let bytes = buffers.iter().fold(0u64, |n, b| n.saturating_add(b.bytes));
        if bytes > BYTES || blocks.saturating_mul(p.threads.into()) > THREADS {
            continue;
        }
        let scalars = p.scalars.iter().map(|scalar| match (scalar, r.below(3)) {
            (Scalar::F32, 0) => r
                .pick(&[f32::NAN, f32::INFINITY, -0.0, -1.5, 1e30])
                .to_bits(),
            (Scalar::F32, _) => (r.below(9) as f32 - 4.0).to_bits(),
            (_, 0) => r.pick(&[0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 3_000_000_000]),
            (_, 1) if !constants.is_empty() => (r.pick(constants) + r.pick(&[-1, 0, 1])) as u32,
            _ => (r.below(20) as i32 - 10) as u32,
        });
        return Some(Case {
            scalars: scalars.collect(),
            sizes,
            data: r.bits(),
            schedule: if number == 2 { 1 + r.bits() % 1000 } else { 0 },
        });
    }
    None
}

/// Bytes of a buffer: numbers of all kinds.
fn data(r: &mut Random, bytes: usize) -> Vec<u8> {
    let flavour = r.below(4);
    let word = |r: &mut Random| match flavour {
        0 => (r.below(9) as f32 - 4.0).to_bits(),
        1 => r.pick(&[
            0,
            f32::NAN.to_bits(),
            f32::INFINITY.to_bits(),
            0x8000_0000,
            1.0f32.to_bits(),
        ]),
        2 => r.below(16) as u32,
        _ => r.bits() as u32,
    };
    let words = (0..bytes.div_ceil(4)).flat_map(|_| word(r).to_le_bytes());
    words.take(bytes).collect()
}

/// The numbers below `n`, each once.
fn permutation(r: &mut Random, n: usize) -> Vec<u8> {
    let mut all: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        all.swap(i, r.below(i + 1));
    }
    all.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// `n` numbers of a range, its ends among them.
fn within(r: &mut Random, n: usize, range: &std::ops::Range<i64>) -> Vec<u8> {
    let width = (range.end - range.start).max(1) as usize;
    let mut number = || match r.below(4) {
        0 => range.start,
        1 => range.end - 1,
        _ => range.start + r.below(width) as i64,
    };
    (0..n)
        .flat_map(|_| (number() as i32).to_le_bytes())
        .collect()
}

/// What a host computes by formulas that is not what the contract says.
fn formulas(
    kernel: &Proven,
    of: impl Fn(&str) -> Option<u64>,
    grid: [u32; 3],
    buffers: &[Buffer],
) -> Option<String> {
    let found = kernel.formulas()?;
    let size = |name: &str| of(name).unwrap_or(0);
    let same = |f: &Formula, n: u64| u64::try_from(f.value(&size)) == Ok(n);
    for (f, n) in found.grid.iter().zip(grid) {
        if !same(f, n.into()) {
            return Some(format!("a formula of the grid is not {n}: {f:?}"));
        }
    }
    for ((name, f), b) in found.bytes.iter().zip(buffers) {
        if *name != b.name || !same(f, b.bytes) {
            return Some(format!("a formula of `{name}` is not {}: {f:?}", b.bytes));
        }
    }
    let outside = |range: &&tilewright::codegen::Range| {
        let n = size(&range.name);
        of(&range.name).is_some() && (n > range.most || n % range.multiple != 0)
    };
    let outside = found.sizes.iter().find(outside);
    outside.map(|range| format!("a launch is not in {range:?}"))
}

type Outputs = Vec<Vec<u8>>;

/// What a launch leaves in the outputs, and what is wrong with it; nothing of one that takes too long.
#[allow(clippy::type_complexity)] // none, or outputs and perhaps a fault
fn run(
    p: &Program,
    kernel: &Proven,
    module: &Module,
    case: &Case,
) -> Result<Option<(Outputs, Option<String>)>, String> {
    let refused = |e: &dyn std::fmt::Display| format!("the launch is refused: {e}");
    let number = |name: &str| name[1..].parse::<usize>().unwrap_or(usize::MAX);
    let of = |name: &str| case.sizes.get(number(name)).map(|s| u64::from(*s));
    let grid = kernel.grid(of).map_err(|e| refused(&e))?;
    let buffers = kernel.buffers(of).map_err(|e| refused(&e))?;
    if let Some(fault) = formulas(kernel, of, grid, &buffers) {
        return Err(fault);
    }
    let maps = kernel.tensor_maps(of).map_err(|e| refused(&e))?;
    if !maps.is_empty() || kernel.cluster() != [1, 1, 1] {
        return Err("the contract has tensor maps or a cluster that nobody asked for".to_owned());
    }
    for b in &buffers {
        let described = kernel
            .buffer(&b.name)
            .map(|(_, alignment, usage)| (alignment, usage));
        if described != Some((b.alignment, b.usage)) {
            return Err(format!("`{}` is described in two ways", b.name));
        }
    }
    let stated = kernel.stated(of);
    if let Some((name, _)) = stated.iter().find(|(n, _)| kernel.buffer(n).is_none()) {
        return Err(format!("`{name}` has stated elements and is no buffer"));
    }
    let mut memory = GlobalMemory::new();
    let mut r = Random::of(case.data, 2);
    let mut places = Vec::new();
    for buffer in &buffers {
        let address = memory
            .alloc(buffer.bytes, buffer.alignment)
            .map_err(|e| refused(&e))?;
        memory.count_stores(address).map_err(|e| refused(&e))?;
        if buffer.usage == Usage::Output {
            memory
                .poison(address, buffer.bytes)
                .map_err(|e| refused(&e))?;
        } else {
            let bytes = buffer.bytes as usize;
            let elements = stated.iter().find(|(name, _)| *name == buffer.name);
            let content = match elements.map(|(_, stated)| stated) {
                Some(Elements::Distinct) => permutation(&mut r, bytes / 4),
                Some(Elements::Within(range)) => within(&mut r, bytes / 4, range),
                None => data(&mut r, bytes),
            };
            memory.write(address, &content).map_err(|e| refused(&e))?;
        }
        places.push(address);
    }
    let args = kernel.params().iter().map(|param| {
        let scalar = || case.scalars.get(number(&param.name)).copied().unwrap_or(0);
        match param.kind {
            ParamKind::Pointer => {
                let at = buffers.iter().position(|b| b.name == param.name);
                emulator::Arg::Ptr(at.map_or(0, |i| places[i]))
            }
            ParamKind::F32 => emulator::Arg::F32(f32::from_bits(scalar())),
            ParamKind::S32 => emulator::Arg::S32(scalar() as i32),
            _ if param.name.starts_with('a') => emulator::Arg::U32(scalar()),
            _ => emulator::Arg::U32(of(&param.name).unwrap_or(0) as u32),
        }
    });
    let launch = Launch {
        grid,
        block: kernel.block(),
        dynamic_shared: kernel.shared_bytes(),
        args: args.collect(),
        ..Launch::default()
    };
    let options = Options {
        global_races: true,
        lane_races: true,
        undefined_global: true,
        workers: 1,
        step_limit: STEPS,
        schedule: case.schedule,
        ..Options::default()
    };
    let mut fault = None;
    if !grid.contains(&0) {
        let report = emulator::run(module, kernel.name(), &launch, &mut memory, &options)
            .map_err(|e| refused(&e))?;
        let limits = |kind: FindingKind| kind == FindingKind::StepLimit;
        let found = report.findings.iter().find(|f| !limits(f.kind));
        fault = found.map(ToString::to_string);
        if fault.is_none() && report.findings.iter().any(|f| limits(f.kind)) {
            return Ok(None);
        }
        fault = fault.or_else(|| wavefronts(kernel, &report));
    }
    let mut outputs = Vec::new();
    for (buffer, address) in buffers.iter().zip(&places) {
        let counts = memory.stores(*address, buffer.bytes as usize);
        let counts = counts.map_err(|e| refused(&e))?;
        let right = |n: u8| match buffer.usage {
            Usage::Input => n == 0,
            Usage::Output | Usage::InOut => n == 1,
            Usage::Partial => n <= 1,
            Usage::Combined => true,
        };
        let global = p.globals.get(number(&buffer.name));
        let each = global.map_or(1, |g| g.element.bytes() as usize);
        if let Some(at) = counts.iter().position(|n| !right(*n)) {
            fault = fault.or(Some(format!(
                "element {} of `{}` ({:?}) was stored {} times",
                at / each,
                buffer.name,
                buffer.usage,
                counts[at]
            )));
        }
        let content = memory.read(*address, buffer.bytes as usize);
        outputs.push(content.map_err(|e| refused(&e))?);
    }
    Ok(Some((outputs, fault)))
}

/// A shared access that took other wavefronts than proven, or of which nothing is proven. The proof gives the most of all accesses of a name whose lanes it knows:
/// what only some threads of a block execute is held to nothing.
fn wavefronts(kernel: &Proven, report: &Report) -> Option<String> {
    // Nothing is proven of a kernel that was refused.
    let accesses = kernel.accesses();
    if accesses.is_empty() && kernel.proof.covered.is_empty() {
        return None;
    }
    let tagged = |line| str::rsplit_once(line, "// ").map(|(_, tag)| tag.trim());
    let tags: Vec<Option<&str>> = kernel.ptx.lines().map(tagged).collect();
    let threads = u64::from(kernel.block()[0]);
    let whole = |i: &InstructionCounter| i.lanes * threads.div_ceil(32) == i.warps * threads;
    let tag = |i: &InstructionCounter| tags.get(i.line as usize - 1).copied().flatten();
    let mut executed = report.counters.shared().filter(|i| i.warps > 0 && whole(i));
    // Where a block's last warp is not full, totals do not tell all threads from some threads of several blocks.
    let full = |i: &InstructionCounter| i.lanes == 32 * i.warps;
    let known = |i: &InstructionCounter| accesses.iter().any(|a| Some(a.access.as_str()) == tag(i));
    let unproven = executed.find(|i| full(i) && !known(i));
    if let Some(i) = unproven {
        return Some(format!(
            "nothing is proven of line {}, {}",
            i.line, i.opcode
        ));
    }
    accesses.iter().find_map(|proof| {
        let name = Some(proof.access.as_str());
        let all: Vec<&InstructionCounter> = report
            .counters
            .shared()
            .filter(|i| tag(i) == name)
            .collect();
        let executed = |i: &InstructionCounter| i.warps > 0 && whole(i);
        let most = all
            .iter()
            .filter(|i| executed(i))
            .map(|i| i.max_wavefronts)
            .max()?;
        // The counters have what was executed alone.
        let lines = tags.iter().filter(|tag| **tag == name).count();
        let exact = all.len() == lines && all.iter().all(|i| executed(i));
        let exact = exact && proof.exact;
        let differs = most > proof.wavefronts || exact && most != proof.wavefronts;
        differs.then(|| {
            format!(
                "`{}` took {most} wavefronts, and {} are proven",
                proof.access, proof.wavefronts
            )
        })
    })
}
