//! What addresses cost in the main loop of the `mma.sync` kernels, counted in the text that is emitted.
//!
//! The loop is the one that runs while all tiles are whole: from the label `k0_…` to the branch back to it. Two costs are counted apart:
//!
//! * **Reads of fragments.** The instructions inside the loop that compute an address register of an `ldmatrix` inside the loop, those
//!   that compute what goes into one, and so on, and the step of the loop's counter. A stage is an immediate of the address, and
//!   all else about it is the same in every turn, so nothing is left to compute.
//! * **Copies.** Those that compute an address of a `cp.async`. They are written next to the copies, so that no register keeps them
//!   between two; most of them give the same in every turn, and the assembler moves as many out of the loop as it has
//!   registers for. What must be computed in every turn is what depends on the counter.

mod common;

use std::collections::BTreeSet;

use common::mma::plans_of;
use common::ptx::{Instruction, definitions, entries, origins};
use tilewright::kernels::gemm::{DataType, Operands};

/// What one turn of the loop has.
#[derive(Debug)]
struct Turn {
    reads: usize,
    /// Address instructions of the reads, with the step of the counter.
    of_reads: usize,
    copies: usize,
    /// Address instructions of the copies, and those among them that depend on the counter.
    of_copies: usize,
    changing: usize,
}

/// The bases of the memory operands of instructions whose opcode begins so.
fn bases<'a>(body: &[Instruction<'a>], opcode: &str) -> BTreeSet<&'a str> {
    let those = body.iter().filter(|i| i.opcode.starts_with(opcode));
    those
        .flat_map(Instruction::addresses)
        .map(|(base, _)| base)
        .collect()
}

/// The counter: the register that the last comparison of the loop compares.
fn counter<'a>(body: &[Instruction<'a>]) -> &'a str {
    let mut last = body.iter().rev();
    let compared = last.find(|i| i.opcode.starts_with("setp."));
    compared.expect("a comparison").operands[1][0]
}

fn turn(ptx: &str, entry: &str) -> Turn {
    let all = entries(ptx);
    let entry = all.iter().find(|e| e.name == entry).expect("the entry");
    let body = entry.loop_body("k0_");
    let counter = counter(body);
    let inside = definitions(body);
    let count = |opcode: &str| body.iter().filter(|i| i.opcode.starts_with(opcode)).count();
    // Instructions that write one of the registers.
    let written = |registers: &BTreeSet<&str>| {
        let those = |i: &&Instruction| i.written().iter().any(|r| registers.contains(r));
        body.iter().filter(those).count()
    };
    let (mut reads, _) = origins(&inside, bases(body, "ldmatrix."));
    reads.insert(counter);
    let (mut copies, _) = origins(&inside, bases(body, "cp.async.c"));
    copies.remove(counter);
    let changing = copies.iter().copied().filter(|register| {
        let (of, _) = origins(&inside, [*register]);
        of.contains(counter)
    });
    Turn {
        reads: count("ldmatrix."),
        of_reads: written(&reads),
        copies: count("cp.async.c") - count("cp.async.commit"),
        of_copies: written(&copies),
        changing: written(&changing.collect()),
    }
}

/// At most 0.11 address instructions for each `ldmatrix` from 3 stages on, whatever is transposed. For each `cp.async` there are at most 16
/// as written and 3.5 that give something else in every turn, of which one adds its distance from the first copy; `--nocapture` prints
/// all figures.
#[test]
fn fragments_cost_at_most_a_ninth_of_an_address_instruction() {
    let mut loops = 0;
    for data_type in [DataType::F16, DataType::F16Acc16, DataType::Bf16] {
        for plan in plans_of(data_type) {
            for operands in Operands::ALL {
                let kernel = plan.emit(operands, plan.min_arch());
                let kernel = kernel.expect("the plan proves");
                let what = format!("{}, {operands}", plan.name());
                let stages = kernel.ptx.split_once("// stages ").expect("stages").1;
                let stages = stages.split(',').next().map(str::parse::<u32>);
                let turn = turn(&kernel.ptx, &kernel.kernel);
                let per = |n: usize, each: usize| n as f64 / each as f64;
                println!(
                    "{what}: {:.3} of {} reads, {:.2} and {:.2} of {} copies",
                    per(turn.of_reads, turn.reads),
                    turn.reads,
                    per(turn.of_copies, turn.copies),
                    per(turn.changing, turn.copies),
                    turn.copies
                );
                if stages.expect("a number").expect("a number") < 3 {
                    continue;
                }
                loops += 1;
                assert!(turn.reads >= 24 && turn.copies >= 12, "{what}: {turn:?}");
                assert!(
                    turn.of_reads as f64 <= 0.11 * turn.reads as f64,
                    "{what}: {turn:?}"
                );
                assert!(turn.of_copies <= 16 * turn.copies, "{what}: {turn:?}");
                assert!(2 * turn.changing <= 7 * turn.copies, "{what}: {turn:?}");
            }
        }
    }
    assert!(loops >= 14 * 4, "{loops}");
}

/// The count sees what it is meant to see: one more instruction before a read, and one before that.
#[test]
fn an_address_that_is_computed_in_the_loop_is_counted() {
    let plan = &plans_of(DataType::F16)[0];
    let kernel = plan.emit(Operands::ALL[0], plan.min_arch());
    let kernel = kernel.expect("the plan proves");
    let before = turn(&kernel.ptx, &kernel.kernel);
    assert_eq!(before.of_reads, 1, "the counter");
    let (head, body) = kernel.ptx.split_once("\nk0_").expect("the loop");
    let (label, body) = body.split_once('\n').expect("its body");
    let base = body.split_once('[').expect("a read").1;
    let base = base.split(['+', ']']).next().expect("its base");
    let extra = format!("    shl.b32 %r9000, %tid.x, 1;\n    add.s32 {base}, %r9000, 4;\n");
    let ptx = format!("{head}\nk0_{label}\n{extra}{body}");
    let after = turn(&ptx, &kernel.kernel);
    assert_eq!(after.of_reads, before.of_reads + 2);
    assert_eq!(after.of_copies, before.of_copies);
}
