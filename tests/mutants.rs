//! Mutants: a small mistake in the text of a proven kernel must be caught, and the table says by what.
//!
//! Each mutant edits the PTX of a plan as a slip of its emitter would, runs it on a problem where the slip matters, and is caught by
//! the expected detector: the emulator's sanitizer (a finding of one of the given kinds), or the comparison with the reference
//! (with no finding at all, so that each detector is shown to be needed), or a check of
//! the text for what neither can see. Edits go by what an instruction does and where it
//! stands, not by register numbers, which change with every improvement of the emitter.

mod common;

use common::mutant::{Caught, Mutant, Subject};
use tilewright::codegen::Arch;
use tilewright::emulator::FindingKind;
use tilewright::host::Inputs;
use tilewright::kernels::gemm::{Config, DataType, Gemm, Specialized};

use Caught::{Finding, Lanes, Numbers};
use FindingKind::{
    BarrierMismatch, Deadlock, Misaligned, OutOfBounds, SharedRace, UndefinedRegister,
    UndefinedShared,
};

/// Mistakes, each with the transposes of the problem: see [`problem`].
const MUTANTS: &[(&str, Mutant)] = &[
    (
        "tn",
        Mutant {
            what: "the barrier after the first tile is dropped",
            edit: |t| t.drop(&["bar.sync 0"], 0),
            caught: Finding(&[SharedRace, UndefinedShared]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "the barrier at the end of the loop is dropped",
            edit: |t| t.drop(&["bar.sync 0"], -1),
            caught: Finding(&[SharedRace]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "only half of the block comes to a barrier",
            edit: |t| {
                let half = t.operand(&["setp.lt.u32", ", 32;"], 0, 0);
                t.replace(&["bar.sync 0"], 0, "bar.sync", &format!("@{half} bar.sync"));
            },
            caught: Finding(&[BarrierMismatch, Deadlock, SharedRace]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "C is staged before the last pass has been read by all lanes",
            edit: |t| t.drop(&["bar.warp.sync"], 2),
            caught: Lanes,
        },
    ),
    (
        "tn",
        Mutant {
            what: "C is read back before all lanes have staged it",
            edit: |t| t.drop(&["bar.warp.sync"], 1),
            caught: Lanes,
        },
    ),
    (
        "tn",
        Mutant {
            what: "the reads of one operand alternate by a wrong constant",
            edit: |t| t.replace(&["xor.b32", ", 4096"], 0, "4096", "2048"),
            caught: Finding(&[SharedRace]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "the stores do not alternate: both stages are one",
            edit: |t| t.drop(&["xor.b32", ", 4096"], -1),
            caught: Finding(&[SharedRace]),
        },
    ),
    (
        "nt",
        Mutant {
            what: "the last k of a tile is off by one, where a gap and then nothing follows",
            edit: |t| {
                t.in_loop()
                    .replace(&["setp.gt.and.", ", 5, "], 0, "gt", "ge");
            },
            caught: Finding(&[OutOfBounds]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "the last k of a tile is off by one, where the matrix ends",
            edit: |t| {
                t.in_loop()
                    .replace(&["setp.gt.and.", ", 4, "], 0, "gt", "ge");
            },
            caught: Finding(&[OutOfBounds]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "the loop begins one tile late",
            edit: |t| t.replace(&["mov.u32", ", 8;"], 0, ", 8;", ", 16;"),
            caught: Numbers,
        },
    ),
    (
        "nt",
        Mutant {
            what: "the columns of C end one too late, where there is a gap between the rows",
            edit: |t| {
                t.from("// writeCs")
                    .replace(&["setp.gt.s32"], 0, "gt", "ge");
            },
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "the rows of C end one too late",
            // Row 67 is row 3 of the second tile: the first row of the last pass.
            edit: |t| {
                t.from("// writeCs")
                    .replace(&["setp.gt.and.s32", ", 3, "], 0, "gt", "ge");
            },
            caught: Finding(&[OutOfBounds]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "an element load lost its guard",
            edit: |t| t.in_loop().unguard(&["@%p", "ld.global.nc.f32"], 12),
            caught: Finding(&[OutOfBounds]),
        },
    ),
    (
        "nn",
        Mutant {
            what: "C is read although beta is 0",
            edit: |t| {
                let guard = t.from("// writeCs").operand(&["setp.gt.and.s32"], 0, 0);
                let both = t.operand(&["and.pred"], 0, 0);
                t.replace(&["ld.global.f32"], 0, &both, &guard);
            },
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "vectors are loaded from rows that are not aligned",
            edit: |t| t.replace(&["setp.eq.u32"], 1, "setp.eq", "setp.ge"),
            caught: Finding(&[Misaligned]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a store to the stage is one vector too far",
            edit: |t| t.shift(&["st.shared", "// writeS"], 1, 16),
            caught: Finding(&[SharedRace, UndefinedShared, FindingKind::WriteConflict]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a store to the stage is one float too far",
            edit: |t| t.shift(&["st.shared.v4", "// writeS"], 1, 4),
            caught: Finding(&[Misaligned]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a fragment is read from the wrong k",
            edit: |t| t.shift(&["ld.shared", "// readBs"], 2, 256),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "a fragment is read from the wrong quad",
            edit: |t| t.shift(&["ld.shared", "// readAs"], 1, -128),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "C is stored one column too far",
            edit: |t| t.shift(&["st.global.f32"], 3, 4),
            caught: Finding(&[OutOfBounds, FindingKind::GlobalRace]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "two sums exchange their operands",
            edit: |t| {
                let (a, b) = (
                    t.operand(&["fma.rn.f32"], 0, 1),
                    t.operand(&["fma.rn.f32"], 1, 1),
                );
                t.replace(&["fma.rn.f32"], 0, &a, &b);
            },
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "the distance to an edge is taken the wrong way round",
            edit: |t| t.swap_operands(&["sub.s32"], 0, 1, 2),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "alpha and beta are exchanged",
            edit: |t| {
                t.replace(&["ld.param.f32"], 0, "alpha", "beta");
                t.replace(&["ld.param.f32"], 1, "beta", "alpha");
            },
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "the leading dimensions of A and B are exchanged",
            edit: |t| {
                t.replace(&["ld.param.u32", "[lda]"], 0, "lda", "ldb");
                t.replace(&["ld.param.u32", "[ldb]"], -1, "ldb", "lda");
            },
            caught: Finding(&[OutOfBounds]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a lane's bits are cut short",
            edit: |t| t.replace(&["and.b32", ", 112"], 0, "112", "48"),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "a store to C is dropped",
            edit: |t| t.drop(&["st.global.f32"], -1),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "a store to the stage is dropped",
            edit: |t| t.drop(&["st.shared", "// writeS"], 0),
            caught: Finding(&[UndefinedShared]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a store to the staging rows of C is dropped",
            edit: |t| t.drop(&["st.shared", "// writeCs"], 4),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "a sum does not begin at zero",
            edit: |t| t.drop(&["mov.f32", "0f00000000"], 7),
            caught: Finding(&[UndefinedRegister]),
        },
    ),
    (
        "tn",
        Mutant {
            what: "a product is left out",
            edit: |t| t.drop(&["fma.rn.f32"], 100),
            caught: Numbers,
        },
    ),
    (
        "tn",
        Mutant {
            what: "too little shared memory is declared",
            edit: |t| t.replace(&[".shared", "smem[8192]"], 0, "[8192]", "[4096]"),
            caught: Finding(&[OutOfBounds]),
        },
    ),
];

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

/// Ragged everywhere, and leading dimensions that no vector fits. `tn` has no gaps between rows, so that what lies behind the last
/// row is outside; `nt` has a gap of one NaN; `nn` too, and a C of NaN that β = 0 must not read.
fn problem(trans: &str) -> Gemm {
    let operands = trans.parse().expect("nn, nt, tn or tt");
    let packed = Gemm::packed(67, 70, 21, operands);
    let gap = u64::from(trans != "tn");
    Gemm {
        lda: packed.lda + gap,
        ldb: packed.ldb + gap,
        ldc: packed.ldc + gap,
        alpha: 1.25,
        beta: if trans == "nn" { 0.0 } else { -0.75 },
        ..packed
    }
}

fn inputs(problem: &Gemm) -> Inputs {
    let inputs = Inputs::random(problem, DataType::F32, 9);
    if problem.beta != 0.0 {
        return inputs;
    }
    let c = inputs.c.filled(f64::NAN);
    Inputs { c, ..inputs }
}

/// Calls `visit` with the kernel of `trans` and its problem.
fn with_subject<T>(trans: &str, visit: impl FnOnce(&Subject) -> T) -> T {
    let problem = problem(trans);
    let kernel = named("sgemm-maxas-64").emit(problem.operands, Arch(80));
    visit(&Subject {
        plan: &named("sgemm-maxas-64"),
        kernel: &kernel.expect("the plan proves"),
        problem: &problem,
        inputs: &inputs(&problem),
    })
}

#[test]
fn every_mutant_is_caught_by_the_expected_detector() {
    let missed = |(trans, mutant): &(&str, Mutant)| with_subject(trans, |s| s.missed(mutant));
    let missed: Vec<String> = MUTANTS.iter().filter_map(missed).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The kernels themselves pass on the mutants' problems.
#[test]
fn the_kernels_themselves_pass() {
    for trans in ["nn", "nt", "tn"] {
        with_subject(trans, |subject| {
            subject.assert_passes();
        });
    }
}
