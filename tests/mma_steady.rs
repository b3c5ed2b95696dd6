//! Sums that are long enough for the loop without branches: every `mma.sync` plan runs it for several turns, through all of its stages,
//! and leaves it for the general loop in the middle of a tile, on the emulator with every check on.
//!
//! The random problems of `mma_emulator` are short, and most of them never enter that loop. Here it is counted that every instruction of
//! it is executed.

mod common;

use common::emulated::{Product, assert_right, run};
use common::mma::{Case, TYPES, plans_of};
use tilewright::host::Inputs;
use tilewright::kernels::gemm::{Alignment, Emitted, Gemm, Operands, Schedule, Specialized};

/// Stages of a kernel, from the comment above it.
fn stages(kernel: &Emitted) -> u64 {
    let after = kernel.ptx.split_once("// stages ").expect("the comment").1;
    let number = after.split(',').next().map(str::parse);
    number.expect("a number").expect("a number")
}

/// How often each instruction of the loop without branches was executed, by all warps together: all alike, and at least `turns` times by
/// each warp.
fn assert_steady(what: &str, kernel: &Emitted, run: &Product, warps: u64, turns: u64) {
    let lines = || kernel.ptx.lines().zip(1u32..);
    let is_label = |line: &str| line.starts_with("k0_") && !line.ends_with("_end:");
    let (label, first) = lines().find(|(l, _)| is_label(l)).expect("the loop");
    let back = format!("bra.uni {};", label.trim_end_matches(':'));
    let (_, last) = lines()
        .find(|&(line, at)| at > first && line.ends_with(&back))
        .expect("the branch back");
    let report = run.outcome.report.as_ref().expect("it was launched");
    let counted = report.counters.instructions.iter();
    let executed: Vec<u64> = counted
        .filter(|i| (first..last).contains(&i.line))
        .map(|i| i.warps)
        .collect();
    let range = (executed.iter().min(), executed.iter().max());
    assert!(
        executed.len() > 20,
        "{what}: {} instructions",
        executed.len()
    );
    assert!(range.0 == range.1, "{what}: executed {range:?} times");
    assert!(
        executed[0] >= warps * turns,
        "{what}: executed {range:?} times"
    );
}

/// A plan, adapted to a problem of `m`×`n` with sums that take `3·stages` tiles and more than end with them.
fn long_sums(
    plan: &Specialized,
    operands: Operands,
    (m, n): (u64, u64),
    width: u32,
    schedule: Schedule,
) {
    let data_type = plan.data_type;
    let kernel = plan.emit(operands, plan.min_arch());
    let stages = stages(&kernel.expect("the plan proves"));
    let [tile_m, tile_n, depth] = plan.tile();
    // Enough for each part of split sums.
    let k = (4 * stages + 3) * u64::from(depth * schedule.split) + 5;
    let packed = Gemm::packed(m, n, k, operands);
    let whole = u64::from(width / data_type.bytes()).max(1);
    let ld = |ld: u64| ld.next_multiple_of(whole) + u64::from(width < 16) * whole;
    let problem = Gemm {
        lda: ld(packed.lda),
        ldb: ld(packed.ldb),
        alpha: if data_type.bytes() == 1 { 1.0 } else { 0.75 },
        beta: -1.0,
        alignment: Alignment {
            a: width,
            b: width,
            c: 16,
        },
        ..packed
    };
    let case = Case {
        problem,
        schedule,
        seed: 11,
    };
    let what = format!("{}, {case:?}", plan.name());
    let adapted = plan.specialize(&problem, schedule);
    let adapted = adapted.unwrap_or_else(|e| panic!("{what}: {e}"));
    let kernel = adapted.emit(operands, plan.min_arch());
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let inputs = Inputs::random(&problem, data_type, case.seed);
    let run = run(&adapted, &kernel, &case, &inputs);
    assert_right(&adapted, &case, &inputs, &run);
    let blocks = m.div_ceil(tile_m.into()) * n.div_ceil(tile_n.into());
    let warps = blocks * u64::from(schedule.split * plan.threads() / 32);
    assert_steady(&what, &kernel, &run, warps, 2);
}

const PLAIN: Schedule = Schedule {
    split: 1,
    pack: false,
};

/// Every plan, every transpose. C is a little more than a tile, so that the last tile moves back in both directions.
fn every_plan_of(turn: usize) {
    let plans: Vec<_> = TYPES.into_iter().flat_map(plans_of).collect();
    for plan in plans.iter().skip(turn).step_by(TURNS) {
        let [m, n, _] = plan.tile();
        let (m, n) = (u64::from(m), u64::from(n));
        let more = u64::from(16 / plan.data_type.bytes()).max(8);
        for operands in Operands::ALL {
            long_sums(plan, operands, (m + more, n + more), 16, PLAIN);
        }
    }
}

/// Tests that the plans are shared out between, so that they run side by side.
const TURNS: usize = 4;

#[test]
fn every_plan_first_quarter() {
    every_plan_of(0);
}

#[test]
fn every_plan_second_quarter() {
    every_plan_of(1);
}

#[test]
fn every_plan_third_quarter() {
    every_plan_of(2);
}

#[test]
fn every_plan_last_quarter() {
    every_plan_of(3);
}

/// The smallest plan of each type with every copy that is narrower than 16 bytes, for operands as they lie.
#[test]
fn narrow_copies() {
    for data_type in TYPES {
        let mut plans = plans_of(data_type);
        plans.retain(|p| p.tile()[..2] == [64, 64]);
        let plan = plans.last().expect("there is a small one");
        let [nn, _, _, tt] = Operands::ALL;
        for width in [8, 4, 2, 1] {
            if width >= data_type.bytes() && width < 16 {
                for operands in [nn, tt] {
                    long_sums(plan, operands, (72, 69), width, PLAIN);
                }
            }
        }
    }
}

/// Split sums, each part long enough, and operands that are packed first.
#[test]
fn split_sums_and_packed_operands() {
    for data_type in TYPES {
        let mut plans = plans_of(data_type);
        plans.retain(|p| p.tile()[..2] == [64, 64]);
        let plan = plans.last().expect("there is a small one");
        let split = Schedule { split: 2, ..PLAIN };
        let pack = Schedule {
            pack: true,
            ..split
        };
        let [nn, nt, tn, tt] = Operands::ALL;
        long_sums(plan, nt, (80, 80), 16, split);
        long_sums(plan, tn, (80, 80), 16, split);
        long_sums(plan, nn, (71, 69), data_type.bytes(), pack);
        // C's columns end where vectors of it end, or else the last tile stays where it is.
        long_sums(plan, tt, (71, 80), data_type.bytes(), pack);
    }
}
