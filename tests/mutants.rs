//! Mutants: a small mistake in the text of a proven kernel must be caught, and the table says by what.
//!
//! Each mutant edits the PTX of a plan as a slip of its emitter would, runs it on a problem where the slip matters, and is caught by
//! the expected detector: the emulator's sanitizer (a finding of one of the given kinds), or the comparison with the reference
//! (with no finding at all, so that each detector is shown to be needed). Edits go by what an instruction does and where it
//! stands, not by register numbers, which change with every improvement of the emitter.

use tilewright::codegen::plan::{Arch, DataType, Emitted, Gemm, Operands, Plan, Trans};
use tilewright::codegen::sgemm::SgemmPlan;
use tilewright::emulator::{FindingKind, Options};
use tilewright::host::{EmulatedRun, Inputs, check, emulate};

/// What catches a mutant.
#[derive(Debug)]
enum Caught {
    /// The sanitizer, with a finding of one of these kinds.
    Finding(&'static [FindingKind]),
    /// The reference: wrong numbers or bytes changed between the rows of C, and nothing for the sanitizer to find.
    Numbers,
}

use Caught::{Finding, Numbers};
use FindingKind::{
    BarrierMismatch, Deadlock, Misaligned, OutOfBounds, SharedRace, UndefinedRegister,
    UndefinedShared,
};

/// A mistake.
struct Mutant {
    what: &'static str,
    edit: fn(&mut Text),
    caught: Caught,
}

/// The lines of a kernel, to be edited.
struct Text(Vec<String>);

impl Text {
    /// The `nth` line (from 0, negative from the end) that contains all of `needles`.
    fn find(&self, needles: &[&str], nth: isize) -> usize {
        let holds = |line: &str| needles.iter().all(|needle| line.contains(needle));
        let at: Vec<usize> = (0..self.0.len()).filter(|&i| holds(&self.0[i])).collect();
        let nth = if nth < 0 {
            at.len() as isize + nth
        } else {
            nth
        };
        let found = usize::try_from(nth).ok().and_then(|nth| at.get(nth));
        *found.unwrap_or_else(|| panic!("{needles:?} number {nth}: there are {}", at.len()))
    }

    fn line(&self, needles: &[&str], nth: isize) -> &str {
        &self.0[self.find(needles, nth)]
    }

    fn drop(&mut self, needles: &[&str], nth: isize) {
        let at = self.find(needles, nth);
        self.0.remove(at);
    }

    /// Replaces `from`, which the line must contain, by `to`.
    fn replace(&mut self, needles: &[&str], nth: isize, from: &str, to: &str) {
        let at = self.find(needles, nth);
        assert!(self.0[at].contains(from), "{} has no {from}", self.0[at]);
        self.0[at] = self.0[at].replacen(from, to, 1);
    }

    /// Adds `bytes` to the immediate offset of the line's memory operand.
    fn shift(&mut self, needles: &[&str], nth: isize, bytes: i64) {
        let at = self.find(needles, nth);
        let (before, rest) = self.0[at].split_once('[').expect("a memory operand");
        let (operand, after) = rest.split_once(']').expect("a memory operand");
        let (base, offset) = operand.split_once('+').unwrap_or((operand, "0"));
        let offset = offset.parse::<i64>().expect("an offset") + bytes;
        self.0[at] = format!("{before}[{base}+{offset}]{after}");
    }

    /// Exchanges operands `i` and `j` (from 0) of a line.
    fn swap_operands(&mut self, needles: &[&str], nth: isize, i: usize, j: usize) {
        let at = self.find(needles, nth);
        let line = self.0[at].trim().trim_end_matches(';').to_owned();
        let (opcode, operands) = line.split_once(' ').expect("operands");
        let mut operands: Vec<&str> = operands.split(", ").collect();
        operands.swap(i, j);
        self.0[at] = format!("    {opcode} {};", operands.join(", "));
    }

    /// Operand `i` of a line.
    fn operand(&self, needles: &[&str], nth: isize, i: usize) -> String {
        let line = self.line(needles, nth).trim().trim_end_matches(';');
        let (_, operands) = line.split_once(' ').expect("operands");
        operands.split(", ").nth(i).expect("an operand").to_owned()
    }
}

/// Guards of element loads in the first tile: `setp.gt …` of the distance to an edge.
const EDGE: [&str; 2] = ["setp.gt.and.", ", 0, "];

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the barrier after the first tile is dropped",
        edit: |t| t.drop(&["bar.sync 0"], 0),
        caught: Finding(&[SharedRace, UndefinedShared]),
    },
    Mutant {
        what: "the barrier at the end of the loop is dropped",
        edit: |t| t.drop(&["bar.sync 0"], -1),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "only half of the block comes to a barrier",
        edit: |t| {
            let half = t.operand(&["setp.lt.u32", "%p0"], 0, 0);
            t.replace(&["bar.sync 0"], 0, "bar.sync", &format!("@{half} bar.sync"));
        },
        caught: Finding(&[BarrierMismatch, Deadlock, SharedRace]),
    },
    Mutant {
        what: "C is staged before the last pass has been read by all lanes",
        edit: |t| t.drop(&["bar.warp.sync"], 2),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "C is read back before all lanes have staged it",
        edit: |t| t.drop(&["bar.warp.sync"], 1),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "the reads of one operand alternate by a wrong constant",
        edit: |t| t.replace(&["xor.b32", ", 4096"], 0, "4096", "2048"),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "the stores do not alternate: both stages are one",
        edit: |t| t.drop(&["xor.b32", ", 4096"], -1),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "the last k of a tile is off by one",
        edit: |t| t.replace(&EDGE, 0, "gt", "ge"),
        caught: Numbers,
    },
    Mutant {
        what: "the loop stops one tile early",
        edit: |t| {
            let line = t.find(&["setp.lt.u32"], -1);
            t.replace(&["mov.u32", ", 8;"], 0, ", 8;", ", 16;");
            assert!(line > 0);
        },
        caught: Numbers,
    },
    Mutant {
        what: "the columns of C end one too late",
        edit: |t| {
            // In the epilogue: the first comparison after the first staging row is read.
            let read = t.find(&["// readCs"], 0);
            let at = (read..t.0.len())
                .find(|&i| t.0[i].contains("setp.gt.s32"))
                .expect("an edge");
            t.0[at] = t.0[at].replacen("setp.gt", "setp.ge", 1);
        },
        caught: Finding(&[OutOfBounds, FindingKind::GlobalRace]),
    },
    Mutant {
        what: "an element load lost its guard",
        edit: |t| {
            let at = t.find(&["@%p", "ld.global.nc.f32"], 5);
            let rest = t.0[at]
                .trim()
                .split_once(' ')
                .expect("a guard")
                .1
                .to_owned();
            t.0[at] = rest;
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "vectors are loaded from rows that are not aligned",
        edit: |t| t.replace(&["setp.eq.u32"], 1, "setp.eq", "setp.ge"),
        caught: Finding(&[Misaligned]),
    },
    Mutant {
        what: "a store to the stage is one vector too far",
        edit: |t| t.shift(&["st.shared", "// writeS"], 1, 16),
        caught: Finding(&[SharedRace, UndefinedShared, FindingKind::WriteConflict]),
    },
    Mutant {
        what: "a store to the stage is one float too far",
        edit: |t| t.shift(&["st.shared.v4", "// writeS"], 1, 4),
        caught: Finding(&[Misaligned]),
    },
    Mutant {
        what: "a fragment is read from the wrong k",
        edit: |t| t.shift(&["ld.shared", "// readBs"], 2, 256),
        caught: Numbers,
    },
    Mutant {
        what: "a fragment is read from the wrong quad",
        edit: |t| t.shift(&["ld.shared", "// readAs"], 1, -128),
        caught: Numbers,
    },
    Mutant {
        what: "C is stored one column too far",
        edit: |t| t.shift(&["st.global.f32"], 3, 4),
        caught: Finding(&[OutOfBounds, FindingKind::GlobalRace]),
    },
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
    Mutant {
        what: "alpha and beta are exchanged",
        edit: |t| {
            t.replace(&["ld.param.f32"], 0, "alpha", "beta");
            t.replace(&["ld.param.f32"], 1, "beta", "alpha");
        },
        caught: Numbers,
    },
    Mutant {
        what: "the leading dimensions of A and B are exchanged",
        edit: |t| {
            t.replace(&["ld.param.u32", "[lda]"], 0, "lda", "ldb");
            t.replace(&["ld.param.u32", "[ldb]"], -1, "ldb", "lda");
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "a lane's bits are cut short",
        edit: |t| t.replace(&["and.b32", ", 112"], 0, "112", "48"),
        caught: Numbers,
    },
    Mutant {
        what: "a store to C is dropped",
        edit: |t| t.drop(&["st.global.f32"], -1),
        caught: Numbers,
    },
    Mutant {
        what: "a store to the stage is dropped",
        edit: |t| t.drop(&["st.shared", "// writeS"], 0),
        caught: Finding(&[UndefinedShared]),
    },
    Mutant {
        what: "a store to the staging rows of C is dropped",
        edit: |t| t.drop(&["st.shared", "// writeCs"], 4),
        caught: Numbers,
    },
    Mutant {
        what: "a sum does not begin at zero",
        edit: |t| t.drop(&["mov.f32", "0f00000000"], 7),
        caught: Finding(&[UndefinedRegister]),
    },
    Mutant {
        what: "a product is left out",
        edit: |t| t.drop(&["fma.rn.f32"], 100),
        caught: Numbers,
    },
    Mutant {
        what: "too little shared memory is declared",
        edit: |t| t.replace(&[".shared", "smem[8192]"], 0, "[8192]", "[4096]"),
        caught: Finding(&[OutOfBounds]),
    },
];

/// Ragged everywhere, leading dimensions that no vector fits, and nothing that multiplies a mistake by 0.
fn problem() -> Gemm {
    Gemm {
        m: 67,
        n: 70,
        k: 21,
        operands: Operands {
            a: Trans::T,
            b: Trans::N,
        },
        lda: 67,
        ldb: 70,
        ldc: 70,
        alpha: 1.25,
        beta: -0.75,
    }
}

fn run(kernel: &Emitted, problem: &Gemm, inputs: &Inputs) -> EmulatedRun {
    let options = Options {
        global_races: true,
        undefined_global: true,
        // A mutant of the loop may never end.
        step_limit: 1 << 20,
        ..Options::default()
    };
    emulate(&SgemmPlan::MAXAS_64, kernel, problem, inputs, &options)
        .unwrap_or_else(|e| panic!("a mutant must still be PTX: {e}"))
}

#[test]
fn every_mutant_is_caught_by_the_expected_detector() {
    let problem = problem();
    let kernel = SgemmPlan::MAXAS_64.emit(problem.operands, Arch(80));
    let kernel = kernel.expect("the plan proves");
    let inputs = Inputs::random(&problem, DataType::F32, 9);
    let mut missed = Vec::new();
    for mutant in MUTANTS {
        let mut text = Text(kernel.ptx.lines().map(str::to_owned).collect());
        (mutant.edit)(&mut text);
        let mutated = Emitted {
            ptx: text.0.join("\n") + "\n",
            ..kernel.clone()
        };
        assert_ne!(mutated.ptx, kernel.ptx, "{}: nothing changed", mutant.what);
        let ran = run(&mutated, &problem, &inputs);
        let report = ran.report.as_ref().expect("it was launched");
        let check = check(&problem, &inputs, &ran.c).expect("shapes agree");
        let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
        let as_expected = match mutant.caught {
            Finding(expected) => kinds.iter().any(|kind| expected.contains(kind)),
            Numbers => kinds.is_empty() && !check.passed,
        };
        println!(
            "{}: findings {kinds:?}, numbers {}",
            mutant.what, check.passed
        );
        if !as_expected {
            missed.push(format!(
                "{}: expected {:?}, got findings {kinds:?} and numbers that {}",
                mutant.what,
                mutant.caught,
                if check.passed { "pass" } else { "are wrong" }
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The kernel itself passes on the mutants' problem: they are caught for what was changed.
#[test]
fn the_kernel_itself_passes() {
    let problem = problem();
    let kernel = SgemmPlan::MAXAS_64.emit(problem.operands, Arch(80));
    let inputs = Inputs::random(&problem, DataType::F32, 9);
    let ran = run(&kernel.expect("the plan proves"), &problem, &inputs);
    assert!(ran.report.expect("launched").is_clean());
    let check = check(&problem, &inputs, &ran.c).expect("shapes agree");
    assert!(check.passed, "{check:?}");
}
