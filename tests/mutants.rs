//! Mutants: a small mistake in the text of a proven kernel must be caught, and the table says by what.
//!
//! Each mutant edits the PTX of a plan as a slip of its emitter would, runs it on a problem where the slip matters, and is caught by
//! the expected detector: the emulator's sanitizer (a finding of one of the given kinds), or the comparison with the reference
//! (with no finding at all, so that each detector is shown to be needed), or a check of
//! the text for what neither can see. Edits go by what an instruction does and where it
//! stands, not by register numbers, which change with every improvement of the emitter.

use tilewright::codegen::plan::{Arch, DataType, Emitted, Gemm, Plan};
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
    /// The order of the staging of C within a warp, in the text: see [`lanes_are_synchronised`].
    Lanes,
}

use Caught::{Finding, Lanes, Numbers};
use FindingKind::{
    BarrierMismatch, Deadlock, Misaligned, OutOfBounds, SharedRace, UndefinedRegister,
    UndefinedShared,
};

/// A mistake.
struct Mutant {
    what: &'static str,
    /// The transposes of the problem: see [`problem`].
    trans: &'static str,
    edit: fn(&mut Text),
    caught: Caught,
}

/// The lines of a kernel, to be edited.
struct Text {
    lines: Vec<String>,
    /// Where searches begin.
    from: usize,
}

impl Text {
    /// Searches from the main loop on.
    fn in_loop(&mut self) -> &mut Self {
        let label = |line: &String| line.starts_with("k0_");
        self.from = self.lines.iter().position(label).expect("a main loop");
        self
    }

    /// Searches from the epilogue on.
    fn in_epilogue(&mut self) -> &mut Self {
        self.from = self.find(&["// writeCs"], 0);
        self
    }

    /// The `nth` line (from 0, negative from the end) that contains all of `needles`.
    fn find(&self, needles: &[&str], nth: isize) -> usize {
        let holds = |line: &str| needles.iter().all(|needle| line.contains(needle));
        let at: Vec<usize> = (self.from..self.lines.len())
            .filter(|&i| holds(&self.lines[i]))
            .collect();
        let nth = if nth < 0 {
            at.len() as isize + nth
        } else {
            nth
        };
        let found = usize::try_from(nth).ok().and_then(|nth| at.get(nth));
        *found.unwrap_or_else(|| panic!("{needles:?} number {nth}: there are {}", at.len()))
    }

    fn line(&self, needles: &[&str], nth: isize) -> &str {
        &self.lines[self.find(needles, nth)]
    }

    fn drop(&mut self, needles: &[&str], nth: isize) {
        let at = self.find(needles, nth);
        self.lines.remove(at);
    }

    /// Replaces `from`, which the line must contain, by `to`.
    fn replace(&mut self, needles: &[&str], nth: isize, from: &str, to: &str) {
        let at = self.find(needles, nth);
        assert!(
            self.lines[at].contains(from),
            "{} has no {from}",
            self.lines[at]
        );
        self.lines[at] = self.lines[at].replacen(from, to, 1);
    }

    /// Adds `bytes` to the immediate offset of the line's memory operand.
    fn shift(&mut self, needles: &[&str], nth: isize, bytes: i64) {
        let at = self.find(needles, nth);
        let (before, rest) = self.lines[at].split_once('[').expect("a memory operand");
        let (operand, after) = rest.split_once(']').expect("a memory operand");
        let (base, offset) = operand.split_once('+').unwrap_or((operand, "0"));
        let offset = offset.parse::<i64>().expect("an offset") + bytes;
        self.lines[at] = format!("{before}[{base}+{offset}]{after}");
    }

    /// Exchanges operands `i` and `j` (from 0) of a line.
    fn swap_operands(&mut self, needles: &[&str], nth: isize, i: usize, j: usize) {
        let at = self.find(needles, nth);
        let line = self.lines[at].trim().trim_end_matches(';').to_owned();
        let (opcode, operands) = line.split_once(' ').expect("operands");
        let mut operands: Vec<&str> = operands.split(", ").collect();
        operands.swap(i, j);
        self.lines[at] = format!("    {opcode} {};", operands.join(", "));
    }

    /// Operand `i` of a line.
    fn operand(&self, needles: &[&str], nth: isize, i: usize) -> String {
        let line = self.line(needles, nth).trim().trim_end_matches(';');
        let (_, operands) = line.split_once(' ').expect("operands");
        operands.split(", ").nth(i).expect("an operand").to_owned()
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the barrier after the first tile is dropped",
        trans: "tn",
        edit: |t| t.drop(&["bar.sync 0"], 0),
        caught: Finding(&[SharedRace, UndefinedShared]),
    },
    Mutant {
        what: "the barrier at the end of the loop is dropped",
        trans: "tn",
        edit: |t| t.drop(&["bar.sync 0"], -1),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "only half of the block comes to a barrier",
        trans: "tn",
        edit: |t| {
            let half = t.operand(&["setp.lt.u32", "%p0"], 0, 0);
            t.replace(&["bar.sync 0"], 0, "bar.sync", &format!("@{half} bar.sync"));
        },
        caught: Finding(&[BarrierMismatch, Deadlock, SharedRace]),
    },
    Mutant {
        what: "C is staged before the last pass has been read by all lanes",
        trans: "tn",
        edit: |t| t.drop(&["bar.warp.sync"], 2),
        caught: Lanes,
    },
    Mutant {
        what: "C is read back before all lanes have staged it",
        trans: "tn",
        edit: |t| t.drop(&["bar.warp.sync"], 1),
        caught: Lanes,
    },
    Mutant {
        what: "the reads of one operand alternate by a wrong constant",
        trans: "tn",
        edit: |t| t.replace(&["xor.b32", ", 4096"], 0, "4096", "2048"),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "the stores do not alternate: both stages are one",
        trans: "tn",
        edit: |t| t.drop(&["xor.b32", ", 4096"], -1),
        caught: Finding(&[SharedRace]),
    },
    Mutant {
        what: "the last k of a tile is off by one, where a gap and then nothing follows",
        trans: "nt",
        edit: |t| {
            t.in_loop()
                .replace(&["setp.gt.and.", ", 5, "], 0, "gt", "ge");
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "the last k of a tile is off by one, where the matrix ends",
        trans: "tn",
        edit: |t| {
            t.in_loop()
                .replace(&["setp.gt.and.", ", 4, "], 0, "gt", "ge");
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "the loop begins one tile late",
        trans: "tn",
        edit: |t| t.replace(&["mov.u32", ", 8;"], 0, ", 8;", ", 16;"),
        caught: Numbers,
    },
    Mutant {
        what: "the columns of C end one too late, where there is a gap between the rows",
        trans: "nt",
        edit: |t| t.in_epilogue().replace(&["setp.gt.s32"], 0, "gt", "ge"),
        caught: Numbers,
    },
    Mutant {
        what: "the rows of C end one too late",
        trans: "tn",
        // Row 67 is row 3 of the second tile: the first row of the last pass.
        edit: |t| {
            t.in_epilogue()
                .replace(&["setp.gt.and.s32", ", 3, "], 0, "gt", "ge");
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "an element load lost its guard",
        trans: "tn",
        edit: |t| {
            let at = t.in_loop().find(&["@%p", "ld.global.nc.f32"], 12);
            let guarded = t.lines[at].trim();
            t.lines[at] = guarded.split_once(' ').expect("a guard").1.to_owned();
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "C is read although beta is 0",
        trans: "nn",
        edit: |t| {
            let guard = t.in_epilogue().operand(&["setp.gt.and.s32"], 0, 0);
            let both = t.operand(&["and.pred"], 0, 0);
            t.replace(&["ld.global.f32"], 0, &both, &guard);
        },
        caught: Numbers,
    },
    Mutant {
        what: "vectors are loaded from rows that are not aligned",
        trans: "tn",
        edit: |t| t.replace(&["setp.eq.u32"], 1, "setp.eq", "setp.ge"),
        caught: Finding(&[Misaligned]),
    },
    Mutant {
        what: "a store to the stage is one vector too far",
        trans: "tn",
        edit: |t| t.shift(&["st.shared", "// writeS"], 1, 16),
        caught: Finding(&[SharedRace, UndefinedShared, FindingKind::WriteConflict]),
    },
    Mutant {
        what: "a store to the stage is one float too far",
        trans: "tn",
        edit: |t| t.shift(&["st.shared.v4", "// writeS"], 1, 4),
        caught: Finding(&[Misaligned]),
    },
    Mutant {
        what: "a fragment is read from the wrong k",
        trans: "tn",
        edit: |t| t.shift(&["ld.shared", "// readBs"], 2, 256),
        caught: Numbers,
    },
    Mutant {
        what: "a fragment is read from the wrong quad",
        trans: "tn",
        edit: |t| t.shift(&["ld.shared", "// readAs"], 1, -128),
        caught: Numbers,
    },
    Mutant {
        what: "C is stored one column too far",
        trans: "tn",
        edit: |t| t.shift(&["st.global.f32"], 3, 4),
        caught: Finding(&[OutOfBounds, FindingKind::GlobalRace]),
    },
    Mutant {
        what: "two sums exchange their operands",
        trans: "tn",
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
        what: "the distance to an edge is taken the wrong way round",
        trans: "tn",
        edit: |t| t.swap_operands(&["sub.s32"], 0, 1, 2),
        caught: Numbers,
    },
    Mutant {
        what: "alpha and beta are exchanged",
        trans: "tn",
        edit: |t| {
            t.replace(&["ld.param.f32"], 0, "alpha", "beta");
            t.replace(&["ld.param.f32"], 1, "beta", "alpha");
        },
        caught: Numbers,
    },
    Mutant {
        what: "the leading dimensions of A and B are exchanged",
        trans: "tn",
        edit: |t| {
            t.replace(&["ld.param.u32", "[lda]"], 0, "lda", "ldb");
            t.replace(&["ld.param.u32", "[ldb]"], -1, "ldb", "lda");
        },
        caught: Finding(&[OutOfBounds]),
    },
    Mutant {
        what: "a lane's bits are cut short",
        trans: "tn",
        edit: |t| t.replace(&["and.b32", ", 112"], 0, "112", "48"),
        caught: Numbers,
    },
    Mutant {
        what: "a store to C is dropped",
        trans: "tn",
        edit: |t| t.drop(&["st.global.f32"], -1),
        caught: Numbers,
    },
    Mutant {
        what: "a store to the stage is dropped",
        trans: "tn",
        edit: |t| t.drop(&["st.shared", "// writeS"], 0),
        caught: Finding(&[UndefinedShared]),
    },
    Mutant {
        what: "a store to the staging rows of C is dropped",
        trans: "tn",
        edit: |t| t.drop(&["st.shared", "// writeCs"], 4),
        caught: Numbers,
    },
    Mutant {
        what: "a sum does not begin at zero",
        trans: "tn",
        edit: |t| t.drop(&["mov.f32", "0f00000000"], 7),
        caught: Finding(&[UndefinedRegister]),
    },
    Mutant {
        what: "a product is left out",
        trans: "tn",
        edit: |t| t.drop(&["fma.rn.f32"], 100),
        caught: Numbers,
    },
    Mutant {
        what: "too little shared memory is declared",
        trans: "tn",
        edit: |t| t.replace(&[".shared", "smem[8192]"], 0, "[8192]", "[4096]"),
        caught: Finding(&[OutOfBounds]),
    },
];

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

fn kernel(problem: &Gemm) -> Emitted {
    let kernel = SgemmPlan::MAXAS_64.emit(problem.operands, Arch(80));
    kernel.expect("the plan proves")
}

/// Between staging rows of C and reading them back, and the other way round, the lanes of a warp wait for each other.
///
/// On the emulator the lanes of a warp go together, so that it does not see this; on a GPU they need not. The epilogue has no
/// branches, so the order of the text is the order of execution.
fn lanes_are_synchronised(ptx: &str) -> bool {
    let mut last = None;
    ptx.lines().all(|line| {
        let this = ["// writeCs", "// readCs"]
            .into_iter()
            .find(|tag| line.ends_with(tag));
        if line.contains("bar.") {
            last = None;
        }
        let in_order = this.is_none() || last.is_none() || last == this;
        last = this.or(last);
        in_order
    })
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
    let mut missed = Vec::new();
    for mutant in MUTANTS {
        let problem = problem(mutant.trans);
        let (kernel, inputs) = (kernel(&problem), inputs(&problem));
        let mut text = Text {
            lines: kernel.ptx.lines().map(str::to_owned).collect(),
            from: 0,
        };
        (mutant.edit)(&mut text);
        let mutated = Emitted {
            ptx: text.lines.join("\n") + "\n",
            ..kernel.clone()
        };
        assert_ne!(mutated.ptx, kernel.ptx, "{}: nothing changed", mutant.what);
        let ran = run(&mutated, &problem, &inputs);
        let report = ran.report.as_ref().expect("it was launched");
        let check = check(&problem, DataType::F32, &inputs, &ran.c).expect("shapes agree");
        let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
        let as_expected = match mutant.caught {
            Finding(expected) => kinds.iter().any(|kind| expected.contains(kind)),
            Numbers => kinds.is_empty() && !check.passed,
            Lanes => !lanes_are_synchronised(&mutated.ptx),
        };
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

/// The kernels themselves pass on the mutants' problems: mutants are caught for what was changed.
#[test]
fn the_kernels_themselves_pass() {
    for trans in ["nn", "nt", "tn"] {
        let problem = problem(trans);
        let (kernel, inputs) = (kernel(&problem), inputs(&problem));
        let ran = run(&kernel, &problem, &inputs);
        assert!(ran.report.expect("launched").is_clean(), "{trans}");
        let check = check(&problem, DataType::F32, &inputs, &ran.c).expect("shapes agree");
        assert!(check.passed, "{trans}: {check:?}");
        assert!(lanes_are_synchronised(&kernel.ptx), "{trans}");
    }
}
