//! Random correct programs: 150 kernels with barriers, exchanges through shared memory, shuffles, votes, atomics, `cp.async`, bulk copies and mbarriers must run without a
//! finding, in several orders of warps, and give the numbers of an interpreter that knows nothing of PTX.
//!
//! A program is a list of [`Step`]s. [`Program::text`] writes it as PTX; [`Program::results`] carries it out on arrays, a thread after the other.

#![allow(clippy::format_push_string, clippy::format_collect)] // PTX is put together piece by piece

mod common;

use common::{Random, assembles};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

/// Registers of a thread.
const REGISTERS: usize = 6;
/// Counters of a block that atomics change.
const COUNTERS: usize = 8;

/// An operation on two registers, as PTX and as a function.
type Operation = (&'static str, fn(u32, u32) -> u32);

const OPERATIONS: [Operation; 12] = [
    ("add.u32", |a, b| a.wrapping_add(b)),
    ("sub.u32", |a, b| a.wrapping_sub(b)),
    ("mul.lo.u32", |a, b| a.wrapping_mul(b)),
    ("mul.hi.u32", |a, b| {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }),
    ("xor.b32", |a, b| a ^ b),
    ("and.b32", |a, b| a & b),
    ("or.b32", |a, b| a | b),
    ("min.u32", |a, b| a.min(b)),
    ("max.s32", |a, b| (a as i32).max(b as i32) as u32),
    ("shl.b32", |a, b| if b < 32 { a << b } else { 0 }),
    ("shr.u32", |a, b| if b < 32 { a >> b } else { 0 }),
    ("shr.s32", |a, b| ((a as i32) >> b.min(31)) as u32),
];

/// How threads exchange words through shared memory.
#[derive(Clone, Copy, Debug)]
enum Sync {
    Barrier,
    /// A named barrier.
    Named,
    /// `bar.warp.sync`, for exchanges within a warp.
    Warp,
    /// An mbarrier at which all threads arrive.
    Mbarrier,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// d = op(a, b).
    Compute {
        op: usize,
        d: usize,
        a: usize,
        b: usize,
    },
    /// d = op(a, constant).
    Constant {
        op: usize,
        d: usize,
        a: usize,
        value: u32,
    },
    /// Where a < b as unsigned numbers: d = op(d, a), otherwise d = a + 1; by a branch or by predicates.
    Choose {
        op: usize,
        d: usize,
        a: usize,
        b: usize,
        branch: bool,
    },
    /// `turns` times d = d * 5 + a.
    Loop { d: usize, a: usize, turns: u32 },
    /// d of thread t = a of thread t ^ mask.
    Exchange {
        d: usize,
        a: usize,
        mask: u32,
        sync: Sync,
    },
    /// d = a of lane ^ mask, or of lane `mask`, or of the lane `mask` below.
    Shuffle {
        d: usize,
        a: usize,
        mask: u32,
        mode: usize,
    },
    /// d = the lanes with odd a, or the sum of a over the warp, or its greatest.
    Vote { d: usize, a: usize, what: usize },
    /// counter[t % 8] += a (or max), by all threads of the block; d = counter[(t + 1) % 8] afterwards.
    Atomic { d: usize, a: usize, max: bool },
    /// total[block] += a in global memory.
    Total { a: usize },
    /// d = word (t ^ mask) of row `row` of the input, by cp.async of four bytes.
    Copy { d: usize, mask: u32, row: u32 },
    /// The same by one bulk copy of the row.
    Bulk { d: usize, mask: u32, row: u32 },
    /// local[0..4] = a, b, a, b; d = local[t % 4].
    Local { d: usize, a: usize, b: usize },
}

struct Program {
    threads: u32,
    blocks: u32,
    steps: Vec<Step>,
}

/// Rows of the input.
const ROWS: u32 = 8;

impl Program {
    fn random(random: &mut Random) -> Self {
        let threads = [32, 64, 128][random.below(3) as usize];
        let mut steps = Vec::new();
        for _ in 0..6 + random.below(14) {
            let mut register = || random.below(REGISTERS as u64) as usize;
            let (d, a, b) = (register(), register(), register());
            let op = random.below(OPERATIONS.len() as u64) as usize;
            let mask = random.below(u64::from(threads)) as u32;
            steps.push(match random.below(16) {
                0 | 1 => Step::Compute { op, d, a, b },
                2 => Step::Constant {
                    op,
                    d,
                    a,
                    value: random.bits() as u32,
                },
                3 => Step::Choose {
                    op,
                    d,
                    a,
                    b,
                    branch: true,
                },
                4 => Step::Choose {
                    op,
                    d,
                    a,
                    b,
                    branch: false,
                },
                5 => Step::Loop {
                    d,
                    a,
                    turns: 1 + random.below(5) as u32,
                },
                6 => Step::Exchange {
                    d,
                    a,
                    mask,
                    sync: Sync::Barrier,
                },
                7 => Step::Exchange {
                    d,
                    a,
                    mask,
                    sync: Sync::Named,
                },
                8 => Step::Exchange {
                    d,
                    a,
                    mask: mask % 32,
                    sync: Sync::Warp,
                },
                9 => Step::Exchange {
                    d,
                    a,
                    mask,
                    sync: Sync::Mbarrier,
                },
                10 => Step::Shuffle {
                    d,
                    a,
                    mask: mask % 32,
                    mode: random.below(3) as usize,
                },
                11 => Step::Vote {
                    d,
                    a,
                    what: random.below(3) as usize,
                },
                12 => Step::Atomic {
                    d,
                    a,
                    max: random.below(2) == 0,
                },
                13 if random.below(2) == 0 => Step::Total { a },
                13 => Step::Local { d, a, b },
                14 => Step::Copy {
                    d,
                    mask,
                    row: random.below(u64::from(ROWS)) as u32,
                },
                _ => Step::Bulk {
                    d,
                    mask,
                    row: random.below(u64::from(ROWS)) as u32,
                },
            });
        }
        Self {
            threads,
            blocks: 1 + random.below(3) as u32,
            steps,
        }
    }

    /// The PTX.
    fn text(&self) -> String {
        let n = self.threads;
        let mut body = String::new();
        // Phases of the two mbarriers.
        let (mut phase, mut bulk) = (0, 0);
        for (i, step) in self.steps.iter().enumerate() {
            body += &match *step {
                Step::Compute { op, d, a, b } => format!("{} %r{d}, %r{a}, %r{b};\n", OPERATIONS[op].0),
                Step::Constant { op, d, a, value } => {
                    format!("{} %r{d}, %r{a}, {};\n", OPERATIONS[op].0, value as i32)
                }
                Step::Choose { op, d, a, b, branch: true } => format!(
                    "setp.lt.u32 %p, %r{a}, %r{b};\n@%p bra YES{i};\nadd.u32 %r{d}, %r{a}, 1;\nbra.uni DONE{i};\nYES{i}:\n{} %r{d}, %r{d}, %r{a};\nDONE{i}:\n",
                    OPERATIONS[op].0
                )
                .replace("bra.uni", "bra"),
                Step::Choose { op, d, a, b, .. } => format!(
                    "setp.lt.u32 %p, %r{a}, %r{b};\n{} %x, %r{d}, %r{a};\nadd.u32 %y, %r{a}, 1;\nselp.b32 %r{d}, %x, %y, %p;\n",
                    OPERATIONS[op].0
                ),
                Step::Loop { d, a, turns } => format!(
                    "mov.u32 %x, 0;\nLOOP{i}:\nmad.lo.u32 %r{d}, %r{d}, 5, %r{a};\nadd.u32 %x, %x, 1;\nsetp.lt.u32 %p, %x, {turns};\n@%p bra LOOP{i};\n"
                ),
                Step::Exchange { d, a, mask, sync } => {
                    let wait = match sync {
                        Sync::Barrier => "bar.sync 0;".to_owned(),
                        Sync::Named => format!("barrier.sync 3, {n};"),
                        Sync::Warp => "bar.warp.sync 0xffffffff;".to_owned(),
                        Sync::Mbarrier => {
                            let parity = phase % 2;
                            phase += 1;
                            format!(
                                "mbarrier.arrive.shared.b64 %state, [all];\nWAIT{i}:\nmbarrier.try_wait.parity.shared.b64 %p, [all], {parity};\n@!%p bra WAIT{i};"
                            )
                        }
                    };
                    let after = if matches!(sync, Sync::Warp) { "bar.warp.sync 0xffffffff;" } else { "bar.sync 0;" };
                    format!(
                        "st.shared.u32 [%mine], %r{a};\n{wait}\nxor.b32 %x, %t, {mask};\nshl.b32 %x, %x, 2;\nadd.u32 %x, %x, %base;\nld.shared.u32 %r{d}, [%x];\n{after}\n"
                    )
                }
                Step::Shuffle { d, a, mask, mode } => match mode {
                    0 => format!("shfl.sync.bfly.b32 %r{d}, %r{a}, {mask}, 31, 0xffffffff;\n"),
                    1 => format!("shfl.sync.idx.b32 %r{d}, %r{a}, {mask}, 31, 0xffffffff;\n"),
                    _ => format!("shfl.sync.up.b32 %r{d}, %r{a}, {mask}, 0, 0xffffffff;\n"),
                },
                Step::Vote { d, a, what } => match what {
                    0 => format!(
                        "and.b32 %x, %r{a}, 1;\nsetp.ne.u32 %p, %x, 0;\nvote.sync.ballot.b32 %r{d}, %p, 0xffffffff;\n"
                    ),
                    1 => format!("redux.sync.add.u32 %r{d}, %r{a}, 0xffffffff;\n"),
                    _ => format!("redux.sync.max.u32 %r{d}, %r{a}, 0xffffffff;\n"),
                },
                Step::Atomic { d, a, max } => format!(
                    "and.b32 %x, %t, 7;\nshl.b32 %x, %x, 2;\nadd.u32 %x, %x, %counters;\nred.shared.{}.u32 [%x], %r{a};\nbar.sync 0;\nadd.u32 %x, %t, 1;\nand.b32 %x, %x, 7;\nshl.b32 %x, %x, 2;\nadd.u32 %x, %x, %counters;\nld.shared.u32 %r{d}, [%x];\nbar.sync 0;\n",
                    if max { "max" } else { "add" }
                ),
                Step::Total { a } => format!("red.relaxed.gpu.global.add.u32 [%total], %r{a};\n"),
                Step::Copy { d, mask, row } => format!(
                    "cp.async.ca.shared.global [%mine], [%word+{}], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\nxor.b32 %x, %t, {mask};\nshl.b32 %x, %x, 2;\nadd.u32 %x, %x, %base;\nld.shared.u32 %r{d}, [%x];\nbar.sync 0;\n",
                    row * 512
                ),
                Step::Bulk { d, mask, row } => {
                    let parity = bulk % 2;
                    bulk += 1;
                    format!(
                        "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%first bra GO{i};\nmbarrier.arrive.expect_tx.shared.b64 _, [full], 512;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [landing], [%input+{}], 512, [full];\nGO{i}:\nmbarrier.try_wait.parity.shared.b64 %p, [full], {parity};\n@!%p bra GO{i};\nxor.b32 %x, %t, {mask};\nshl.b32 %x, %x, 2;\nmov.u32 %y, landing;\nadd.u32 %x, %x, %y;\nld.shared.u32 %r{d}, [%x];\nbar.sync 0;\n",
                        row * 512
                    )
                }
                Step::Local { d, a, b } => format!(
                    "st.local.v2.u32 [cell], {{%r{a}, %r{b}}};\nst.local.u32 [cell+8], %r{a};\nst.local.u32 [cell+12], %r{b};\nand.b32 %x, %t, 3;\nshl.b32 %x, %x, 2;\nmov.u32 %y, cell;\nadd.u32 %x, %x, %y;\nld.local.u32 %r{d}, [%x];\n"
                ),
            };
        }
        let mut start = String::new();
        for r in 0..REGISTERS {
            start += &format!(
                "mad.lo.u32 %r{r}, %t, {}, %b;\nxor.b32 %r{r}, %r{r}, {};\n",
                2 * r + 1,
                0x3c6e * r
            );
        }
        let stores: String = (0..REGISTERS)
            .map(|r| format!("st.global.u32 [%out+{}], %r{r};\n", 4 * r))
            .collect();
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 input, .param .u64 out, .param .u64 totals) .reqntid {n}, 1, 1
{{
.reg .b32 %r<{REGISTERS}>, %t, %b, %x, %y, %base, %mine, %counters; .reg .b64 %state, %input, %word, %out, %total; .reg .pred %p, %first;
.shared .align 128 .b8 landing[512]; .shared .align 16 .b8 words[512]; .shared .align 16 .b8 counters[32]; .shared .align 8 .b64 all; .shared .align 8 .b64 full;
.local .align 8 .b8 cell[16];
ld.param.u64 %input, [input];
ld.param.u64 %out, [out];
ld.param.u64 %total, [totals];
mov.u32 %t, %tid.x;
mov.u32 %b, %ctaid.x;
mul.wide.u32 %state, %b, 4;
add.u64 %total, %total, %state;
mad.lo.u32 %x, %b, {n}, %t;
mul.wide.u32 %state, %x, {row};
add.u64 %out, %out, %state;
mad.wide.u32 %word, %t, 4, %input;
mov.u32 %base, words;
mad.lo.u32 %mine, %t, 4, %base;
mov.u32 %counters, counters;
setp.eq.u32 %first, %t, 0;
setp.lt.u32 %p, %t, {COUNTERS};
mad.lo.u32 %x, %t, 4, %counters;
@%p st.shared.u32 [%x], 0;
@!%first bra MADE;
mbarrier.init.shared.b64 [all], {n};
mbarrier.init.shared.b64 [full], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
{start}{body}{stores}ret;
}}
",
            row = 4 * REGISTERS
        )
    }

    /// The registers of all threads and the totals of all blocks.
    fn results(&self, input: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let n = self.threads as usize;
        let (mut out, mut totals) = (Vec::new(), Vec::new());
        for block in 0..self.blocks {
            let mut regs: Vec<[u32; REGISTERS]> = (0..self.threads)
                .map(|t| {
                    std::array::from_fn(|r| {
                        let r = r as u32;
                        (t * (2 * r + 1) + block) ^ (0x3c6e * r)
                    })
                })
                .collect();
            let mut counters = [0u32; COUNTERS];
            let mut total = 0u32;
            for step in &self.steps {
                let old = regs.clone();
                // The same word of every thread, by thread.
                let mut each = |d: usize, f: &dyn Fn(usize, &[u32; REGISTERS]) -> u32| {
                    for (t, row) in regs.iter_mut().enumerate() {
                        row[d] = f(t, &old[t]);
                    }
                };
                match *step {
                    Step::Compute { op, d, a, b } => each(d, &|_, r| OPERATIONS[op].1(r[a], r[b])),
                    Step::Constant { op, d, a, value } => {
                        each(d, &|_, r| OPERATIONS[op].1(r[a], value));
                    }
                    Step::Choose { op, d, a, b, .. } => each(d, &|_, r| {
                        if r[a] < r[b] {
                            OPERATIONS[op].1(r[d], r[a])
                        } else {
                            r[a].wrapping_add(1)
                        }
                    }),
                    Step::Loop { d, a, turns } => each(d, &|_, r| {
                        // With d = a the addend changes from turn to turn.
                        (0..turns).fold(r[d], |x, _| {
                            x.wrapping_mul(5)
                                .wrapping_add(if a == d { x } else { r[a] })
                        })
                    }),
                    Step::Exchange { d, a, mask, .. } => each(d, &|t, _| old[t ^ mask as usize][a]),
                    Step::Shuffle { d, a, mask, mode } => each(d, &|t, r| {
                        let (lane, first) = (t % 32, t - t % 32);
                        let mask = mask as usize;
                        match mode {
                            0 => old[first + (lane ^ mask)][a],
                            1 => old[first + mask][a],
                            _ if lane >= mask => old[t - mask][a],
                            _ => r[a],
                        }
                    }),
                    Step::Vote { d, a, what } => each(d, &|t, _| {
                        let lanes = old[t - t % 32..][..32].iter().map(|r| r[a]);
                        match what {
                            0 => lanes.enumerate().fold(0, |m, (l, x)| m | (x & 1) << l),
                            1 => lanes.fold(0, u32::wrapping_add),
                            _ => lanes.max().unwrap_or(0),
                        }
                    }),
                    Step::Atomic { d, a, max } => {
                        for (t, r) in old.iter().enumerate() {
                            let c = &mut counters[t % COUNTERS];
                            *c = if max {
                                (*c).max(r[a])
                            } else {
                                c.wrapping_add(r[a])
                            };
                        }
                        each(d, &|t, _| counters[(t + 1) % COUNTERS]);
                    }
                    Step::Total { a } => {
                        total = old.iter().fold(total, |x, r| x.wrapping_add(r[a]));
                    }
                    Step::Copy { d, mask, row } | Step::Bulk { d, mask, row } => {
                        each(d, &|t, _| input[(row * 128) as usize + (t ^ mask as usize)]);
                    }
                    Step::Local { d, a, b } => {
                        each(d, &|t, r| if t % 2 == 0 { r[a] } else { r[b] });
                    }
                }
            }
            assert_eq!(regs.len(), n);
            out.extend(regs.concat());
            totals.push(total);
        }
        (out, totals)
    }
}

#[test]
fn correct_programs_run_without_a_finding() {
    let count: u64 = std::env::var("RANDOM_PROGRAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(150);
    let mut random = Random(count + 7);
    for number in 0..count {
        let program = Program::random(&mut random);
        let text = program.text();
        if number < 10 {
            assembles(&format!("random-{number}"), &text);
        }
        let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let input: Vec<u32> = (0..ROWS * 128).map(|_| random.bits() as u32).collect();
        let (want, totals) = program.results(&input);
        for schedule in [0, 1 + number, 1000 + number] {
            let mut memory = GlobalMemory::new();
            let mut buffer = |words: &[u32]| {
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                let at = memory.alloc(bytes.len() as u64, 256).expect("memory");
                memory.write(at, &bytes).expect("a write");
                at
            };
            let args = [
                buffer(&input),
                buffer(&vec![0; want.len()]),
                buffer(&vec![0; totals.len()]),
            ];
            let launch = Launch {
                grid: [program.blocks, 1, 1],
                block: [program.threads, 1, 1],
                args: args.iter().map(|a| Arg::Ptr(*a)).collect(),
                ..Launch::default()
            };
            let options = Options {
                lane_races: true,
                undefined_global: true,
                workers: 1,
                step_limit: 1 << 20,
                schedule,
                ..Options::default()
            };
            let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
            let steps = &program.steps;
            assert!(
                report.is_clean(),
                "{number}, order {schedule}: {steps:#?}\n{}\n{text}",
                report.findings[0]
            );
            let read = |at, n: usize| -> Vec<u32> {
                let bytes = memory.read(at, 4 * n).expect("a read");
                bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|b| u32::from_le_bytes(*b))
                    .collect()
            };
            assert_eq!(
                read(args[1], want.len()),
                want,
                "{number}, order {schedule}: {steps:#?}\n{text}"
            );
            assert_eq!(
                read(args[2], totals.len()),
                totals,
                "{number}, order {schedule}"
            );
        }
    }
}
