//! Mutants of the tensor-core kernels: a small mistake in the text of a proven kernel must be caught, and the table says by what.
//!
//! As in `mutants`, which does the same for SGEMM, each mutant edits the PTX of a plan as a slip of its emitter would. The plans are the
//! smallest of their types; the problems are the smallest that reach the code, and each is first solved by the kernel as it is.

mod common;

use common::mutant::{Caught, Mutant, Subject};
use common::text::Text;
use tilewright::codegen::plan::{
    Activation, Alignment, Batch, Bias, Element, Epilogue, Gemm, Operands, Schedule, plan_named,
};
use tilewright::emulator::FindingKind;
use tilewright::host::Inputs;

use Caught::{Finding, Lanes, Numbers, Wavefronts};
use FindingKind::{
    BadOperand, Divergent, GlobalRace, Misaligned, MissingBarrierAfterWait, OutOfBounds,
    ReadBeforeWait, SharedRace, UndefinedGlobal, UndefinedRegister, UndefinedShared,
};

/// A plan and a problem for it.
#[derive(Clone, Copy)]
struct Setting {
    plan: &'static str,
    trans: &'static str,
    /// m, n and k.
    size: [u64; 3],
    /// α and β.
    scalars: [f64; 2],
    /// Bytes that the rows of A and B are multiples of, and what their addresses are.
    width: u32,
    /// Elements between the rows of C.
    gap: u64,
    schedule: Schedule,
    output: Option<Element>,
    epilogue: Epilogue,
    /// Products of a batch.
    count: u64,
    /// The plan as it is listed, for aligned operands and any C.
    listed: bool,
}

/// Whole tiles but for the last, which moves back by 56 in both directions; sums of less than a turn of the loop.
const SHORT: Setting = Setting {
    plan: "mma-f16-64x64x32",
    trans: "nn",
    size: [72, 72, 40],
    scalars: [0.75, -1.0],
    width: 16,
    gap: 8,
    schedule: Schedule {
        split: 1,
        pack: false,
    },
    output: None,
    epilogue: Epilogue {
        bias: Bias::None,
        activation: Activation::Identity,
    },
    count: 1,
    listed: false,
};

/// Three turns of the loop without branches and, in a fourth, one element less than that loop would need.
const LONG: Setting = Setting {
    size: [72, 72, (4 * 4 + 3) * 32 - 1],
    ..SHORT
};

/// Less than a tile in every direction, so that nothing moves and all copies are at an edge.
const SMALL: Setting = Setting {
    size: [40, 44, 21],
    gap: 1,
    ..SHORT
};

const NARROW: Setting = Setting {
    size: [72, 69, (4 * 4 + 3) * 32 + 5],
    gap: 3,
    ..SHORT
};

impl Setting {
    fn problem(&self) -> Gemm {
        let [m, n, k] = self.size;
        let operands: Operands = self.trans.parse().expect("nn, nt, tn or tt");
        let plan = plan_named(self.plan).expect("there is such a plan");
        let data_type = plan.data_type();
        let packed = Gemm::packed(m, n, k, operands);
        let whole = u64::from(self.width / data_type.bytes()).max(1);
        // Rows that are no wider aligned than that.
        let ld = |ld: u64| ld.next_multiple_of(whole) + u64::from(self.width < 16) * whole;
        let mut problem = Gemm {
            lda: ld(packed.lda),
            ldb: ld(packed.ldb),
            ldc: packed.ldc + self.gap,
            alpha: self.scalars[0],
            beta: self.scalars[1],
            output: self.output,
            epilogue: self.epilogue,
            alignment: Alignment {
                a: self.width,
                b: self.width,
                c: 16,
            },
            ..packed
        };
        if self.count > 1 {
            let matrix = |(rows, _): (u64, u64), ld: u64| rows * ld + 16;
            problem.batch = Batch {
                count: self.count,
                strides: [
                    matrix(problem.stored_a(), problem.lda),
                    matrix(problem.stored_b(), problem.ldb),
                    matrix((m, n), problem.ldc),
                ],
            };
        }
        problem
    }

    /// The kernel itself passes, and every mutant of it is caught as expected.
    fn assert_caught(&self, mutants: &[Mutant]) {
        let problem = self.problem();
        let mut plan = plan_named(self.plan).expect("there is such a plan");
        let mut inputs = Inputs::random(&problem, plan.data_type(), 9);

        if !self.listed {
            let adapted = plan.adapt(&problem, self.schedule);
            plan = adapted.unwrap_or_else(|e| panic!("{}: {e}", self.plan));
        }
        let kernel = plan.emit(problem.operands, plan.min_arch());
        // What is multiplied by 0 is not read.
        if problem.alpha == 0.0 {
            inputs.a = inputs.a.filled(f64::NAN);
            inputs.b = inputs.b.filled(f64::NAN);
        }
        if problem.beta == 0.0 {
            inputs.c = inputs.c.filled(f64::NAN);
        }
        let subject = Subject {
            plan: plan.as_ref(),
            kernel: &kernel.expect("the plan proves"),
            problem: &problem,
            inputs: &inputs,
        };
        subject.assert_passes();
        let missed = mutants.iter().filter_map(|m| subject.missed(m));
        let missed: Vec<String> = missed.collect();
        assert!(missed.is_empty(), "{}", missed.join("\n"));
    }
}

/// Stages, waits and barriers of the loop without branches.
#[test]
fn the_pipeline() {
    LONG.assert_caught(&[
        Mutant {
            what: "one group too many is left in flight in the loop",
            edit: |t| {
                t.in_loop()
                    .replace(&["cp.async.wait_group"], 0, "group 2", "group 3");
            },
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "one group too many is left in flight before the loop",
            edit: |t| t.replace(&["cp.async.wait_group"], 0, "group 2", "group 3"),
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "one group too many is left in flight in the last turn",
            edit: |t| {
                t.from("k1_")
                    .replace(&["cp.async.wait_group"], 0, "group 2", "group 3");
            },
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "a wait of the loop is dropped",
            edit: |t| t.in_loop().drop(&["cp.async.wait_group"], 2),
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "a barrier of the loop is dropped",
            edit: |t| t.in_loop().drop(&["bar.sync"], 1),
            caught: Finding(&[MissingBarrierAfterWait, SharedRace]),
        },
        Mutant {
            what: "the barrier before the loop is dropped",
            edit: |t| t.drop(&["bar.sync"], 0),
            caught: Finding(&[MissingBarrierAfterWait]),
        },
        Mutant {
            what: "a barrier comes before the wait that it belongs to",
            edit: |t| {
                t.in_loop();
                let wait = t.find(&["cp.async.wait_group"], 0);
                let barrier = t.find(&["bar.sync"], 0);
                t.lines.swap(wait, barrier);
            },
            caught: Finding(&[MissingBarrierAfterWait]),
        },
        Mutant {
            what: "the copies of a tile are no group of their own",
            edit: |t| t.in_loop().drop(&["cp.async.commit_group"], 0),
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "a copy goes to the stage that is read",
            edit: |t| t.in_loop().shift(&["copyA"], 0, -3 * 8192),
            caught: Finding(&[SharedRace, ReadBeforeWait]),
        },
        Mutant {
            what: "a fragment is read from the stage that is filled",
            edit: |t| t.in_loop().shift(&["readB"], 0, 3 * 8192),
            caught: Finding(&[SharedRace, ReadBeforeWait]),
        },
        Mutant {
            what: "a fragment is read from the stage before",
            edit: |t| t.in_loop().shift(&["readA"], 2, -8192),
            caught: Finding(&[SharedRace, ReadBeforeWait]),
        },
        Mutant {
            what: "a fragment is read from the k step before",
            edit: |t| t.in_loop().shift(&["readB"], 0, -2048),
            caught: Numbers,
        },
        Mutant {
            what: "a copy takes the tile after the one that is due",
            edit: |t| t.in_loop().replace(&["copyA"], 0, "+192]", "+256]"),
            caught: Numbers,
        },
        Mutant {
            what: "the loop without branches goes on one tile too long",
            edit: |t| t.replace(&["add.s32", ", -223"], 0, "-223", "-222"),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the last turns begin one tile early",
            edit: |t| {
                t.in_loop().replace(&["add.s32", ", 128;"], 0, "128", "96");
            },
            caught: Numbers,
        },
    ]);
}

/// What the lanes read, where it is in the stage, and what is multiplied.
#[test]
fn fragments() {
    LONG.assert_caught(&[
        Mutant {
            what: "the matrices of B are not transposed",
            edit: |t| t.in_loop().replace(&["readB"], 0, ".trans", ""),
            caught: Numbers,
        },
        Mutant {
            what: "the matrices of A are transposed",
            edit: |t| t.in_loop().replace(&["readA"], 0, ".x4", ".x4.trans"),
            caught: Numbers,
        },
        Mutant {
            what: "the rows of a matrix are one row further",
            edit: |t| t.in_loop().shift(&["readA"], 0, 64),
            caught: Numbers,
        },
        Mutant {
            what: "the rows of a matrix are half of one further",
            edit: |t| t.in_loop().shift(&["readA"], 1, 8),
            caught: Finding(&[Misaligned]),
        },
        Mutant {
            what: "two matrices of a fragment of A change places",
            edit: |t| t.in_loop().swap_operands(&["readA"], 0, 1, 2),
            caught: Numbers,
        },
        Mutant {
            what: "the halves of k of a fragment of B change places",
            edit: |t| t.in_loop().swap_operands(&["mma.sync"], 3, 8, 9),
            caught: Numbers,
        },
        Mutant {
            what: "an atom adds to the sums of its neighbour",
            edit: |t| {
                t.in_loop();
                let other = t.operand(&["mma.sync"], 1, 10);
                t.set_operand(&["mma.sync"], 0, 10, &other);
            },
            caught: Numbers,
        },
        Mutant {
            what: "a product is left out",
            edit: |t| t.in_loop().drop(&["mma.sync"], -1),
            caught: Numbers,
        },
        Mutant {
            what: "a sum does not begin at zero",
            edit: |t| t.drop(&["mov.f32", "0f00000000"], 7),
            caught: Finding(&[UndefinedRegister]),
        },
        Mutant {
            what: "the copies of A are swizzled and the reads are not",
            edit: |t| without_swizzle(t, false),
            caught: Numbers,
        },
        Mutant {
            what: "neither the copies of A nor the reads are swizzled",
            edit: |t| without_swizzle(t, true),
            caught: Wavefronts,
        },
        Mutant {
            what: "a lane's bits are cut short",
            edit: |t| t.replace(&["and.b32", ", 1920;"], 0, "1920", "896"),
            caught: Numbers,
        },
    ]);
}

/// Leaves out the swizzle of A's stages, `chunk ^ row` where the bits of the row are those of 48: of the reads, whose addresses are all
/// computed before the accumulators are set, or of the copies too.
fn without_swizzle(t: &mut Text, copies_too: bool) {
    let end = if copies_too {
        t.lines.len()
    } else {
        t.find(&["// acc:"], 0)
    };
    let mut row_bits = Vec::new();
    let mut left_out = 0;
    for line in &mut t.lines[..end] {
        let (opcode, operands) = line
            .trim()
            .trim_end_matches(';')
            .split_once(' ')
            .unwrap_or_default();
        let operands: Vec<&str> = operands.split(", ").collect();
        match (opcode, &operands[..]) {
            ("and.b32", [row, _, "48"]) => row_bits.push((*row).to_owned()),
            ("xor.b32", [to, chunk, row]) if row_bits.iter().any(|r| r == row) => {
                *line = format!("    mov.b32 {to}, {chunk};");
                left_out += 1;
            }
            _ => {}
        }
    }
    assert!(left_out >= 2, "{left_out}");
}

/// Copies of what is not whole, and what else reaches to the edges of the matrices.
#[test]
fn edges_of_a_and_b() {
    SMALL.assert_caught(&[
        Mutant {
            what: "the end of k is not filled with zeros, in the columns of A",
            edit: |t| drop_size(t, "copyA", 0),
            caught: Numbers,
        },
        Mutant {
            what: "the end of k is not filled with zeros, in the rows of B",
            edit: |t| drop_size(t, "copyB", 1),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the last k is off by one, in the columns of A",
            edit: |t| {
                t.from("edge_")
                    .replace(&["sub.s32", ", 0;"], 0, ", 0;", ", -1;");
            },
            caught: Numbers,
        },
        Mutant {
            what: "the rows of A end one too late",
            edit: |t| t.from("edge_").replace(&["setp.gt.s32"], 1, "gt", "ge"),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the bytes of a copy are not kept from below 0",
            edit: |t| t.from("edge_").drop(&["max.s32"], 0),
            caught: Finding(&[BadOperand, OutOfBounds]),
        },
        Mutant {
            what: "the bytes of a copy are not kept from above 16",
            edit: |t| t.from("edge_").drop(&["min.s32"], 0),
            caught: Finding(&[BadOperand]),
        },
        Mutant {
            what: "bytes are counted as elements",
            edit: |t| {
                let at = t.from("edge_").find(&["min.s32"], 0);
                assert!(t.lines[at + 1].contains("shl.b32"));
                t.lines.remove(at + 1);
            },
            caught: Numbers,
        },
        Mutant {
            what: "a tile at an edge is copied as if it were whole",
            edit: |t| t.drop(&["bra.uni edge_"], 0),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "only lanes whose rows are inside multiply",
            edit: |t| {
                let inside = t.from("edge_").operand(&["setp.gt.s32"], 3, 0);
                t.from("k1_")
                    .replace(&["mma.sync"], 0, "mma", &format!("@{inside} mma"));
            },
            caught: Finding(&[Divergent]),
        },
        Mutant {
            what: "only lanes whose rows are inside fetch a fragment",
            edit: |t| {
                let inside = t.from("edge_").operand(&["setp.gt.s32"], 3, 0);
                t.replace(&["ldmatrix"], 0, "ldmatrix", &format!("@{inside} ldmatrix"));
            },
            caught: Finding(&[Divergent]),
        },
    ]);
}

/// A copy of all bytes, whatever is inside.
fn drop_size(t: &mut Text, tag: &str, nth: isize) {
    let at = t.find(&[tag, ", 16, "], nth);
    let line = &t.lines[at];
    let (copy, _) = line.split_once(", 16, ").expect("a size");
    t.lines[at] = format!("{copy}, 16; // {tag}");
}

/// What is stored where: the last tiles moved back, rows and columns that end, C as it comes.
#[test]
fn c() {
    SHORT.assert_caught(&[
        Mutant {
            what: "columns that another block owns are stored",
            edit: |t| {
                t.from("wait_all");
                let at = t.find(&["// strip 0"], 0);
                let at = (0..at).rev().find(|&i| t.lines[i].contains("setp.ge.u32"));
                let line = &mut t.lines[at.expect("own columns")];
                let (setp, _) = line.rsplit_once(' ').expect("operands");
                *line = format!("{setp} 0;");
            },
            caught: Finding(&[GlobalRace]),
        },
        Mutant {
            what: "rows that another block owns are stored",
            edit: |t| t.replace(&["setp.le.and.s32"], 0, "le", "ne"),
            caught: Finding(&[GlobalRace]),
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
            what: "C is staged before all lanes have fetched the last strip",
            edit: |t| t.drop(&["bar.warp.sync"], 1),
            caught: Lanes,
        },
        Mutant {
            what: "C is fetched before all lanes have staged it",
            edit: |t| t.drop(&["bar.warp.sync"], 0),
            caught: Lanes,
        },
        Mutant {
            what: "lanes that have nothing to store pass by the next barrier of the warp",
            edit: |t| {
                let barrier = t.find(&["bar.warp.sync"], 1);
                let barrier = t.lines.remove(barrier);
                let label = t.find(&["stored_", ":"], 1);
                t.lines.insert(label, barrier);
            },
            caught: Lanes,
        },
        Mutant {
            what: "a store to the staging is dropped",
            edit: |t| t.drop(&["stageC"], 1),
            caught: Numbers,
        },
        Mutant {
            what: "a vector is staged half of one further",
            edit: |t| t.shift(&["stageC"], 2, 4),
            caught: Finding(&[Misaligned]),
        },
        Mutant {
            what: "a vector is fetched from the next row",
            edit: |t| t.shift(&["fetchC"], 0, 64),
            caught: Numbers,
        },
        Mutant {
            what: "two columns of C change places when they are rounded",
            edit: |t| t.swap_operands(&["cvt.rn.f16x2"], 0, 1, 2),
            caught: Numbers,
        },
        Mutant {
            what: "two columns of C change places when they are read",
            edit: |t| t.from("fetchC").swap_operands(&["mov.b32 {"], 0, 0, 1),
            caught: Numbers,
        },
        Mutant {
            what: "the old C is added twice",
            edit: |t| {
                let at = t.find(&["fma.rn.f32"], 0);
                let line = t.lines[at].clone();
                t.lines.insert(at, line);
            },
            caught: Numbers,
        },
    ]);
}

/// Elements one by one, and rows and columns that end.
#[test]
fn edges_of_c() {
    SMALL.assert_caught(&[
        Mutant {
            what: "C is staged while stages are still read",
            edit: |t| t.from("cp.async.wait_all").drop(&["bar.sync"], 0),
            caught: Finding(&[SharedRace]),
        },
        Mutant {
            what: "rows behind the last are stored",
            edit: |t| t.drop(&["bra stored_"], -1),
            caught: Finding(&[OutOfBounds, UndefinedRegister]),
        },
        Mutant {
            what: "the rows of C end one too late",
            edit: |t| {
                // Row 40 is row 8 of the second strip of the second row of warps.
                t.replace(&["setp.gt.and.s32", ", 8, "], 0, "gt", "ge");
            },
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "columns behind the last are stored",
            edit: |t| t.from("single_").unguard(&["st.global"], 4),
            caught: Numbers,
        },
    ]);
    // A group of rows, and a block and a piece more.
    let groups = Setting {
        size: [9 * 64 + 8, 16, 8],
        ..SHORT
    };
    groups.assert_caught(&[
        Mutant {
            what: "blocks below C do not end",
            edit: |t| t.drop(&["bra.uni done_"], 0),
            caught: Finding(&[GlobalRace]),
        },
        Mutant {
            what: "groups of rows overlap",
            edit: |t| t.replace(&["shl.b32", ", 9;"], -1, "9", "8"),
            caught: Finding(&[GlobalRace]),
        },
    ]);
    let nan = Setting {
        scalars: [0.75, 0.0],
        ..SHORT
    };
    nan.assert_caught(&[Mutant {
        what: "C is read although beta is 0",
        edit: |t| t.drop(&["bra.uni no_c_"], 0),
        caught: Numbers,
    }]);
    let listed = Setting {
        gap: 1,
        listed: true,
        ..SHORT
    };
    listed.assert_caught(&[Mutant {
        what: "vectors are stored to rows that are not aligned",
        edit: |t| {
            t.from("wait_all");
            let at = t.find(&["// strip 0"], 0);
            let at = (0..at).rev().find(|&i| t.lines[i].contains("setp.eq.u32"));
            let line = &mut t.lines[at.expect("a test of the rows' alignment")];
            *line = line.replace("setp.eq", "setp.ge");
        },
        caught: Finding(&[Misaligned]),
    }]);
}

/// Through registers, piece by piece, and products of half the depth: what is older than `cp.async`.
#[test]
fn copies_through_registers() {
    let old = Setting {
        plan: "mma-f16-64x64x32-sm75",
        ..LONG
    };
    old.assert_caught(&[
        Mutant {
            what: "a barrier of the loop is dropped",
            edit: |t| t.in_loop().drop(&["bar.sync"], 0),
            caught: Finding(&[SharedRace]),
        },
        Mutant {
            what: "what was loaded is stored to the stage that is read",
            edit: |t| t.in_loop().shift(&["st.shared", "copyA"], 0, -8192),
            caught: Finding(&[SharedRace]),
        },
        Mutant {
            what: "what was loaded is never stored",
            edit: |t| t.drop(&["st.shared", "copyB"], 0),
            caught: Finding(&[UndefinedShared]),
        },
        Mutant {
            what: "the second half of a product takes the first half of A again",
            edit: |t| {
                t.in_loop();
                for i in [4, 5] {
                    let first = t.operand(&["mma.sync"], 0, i);
                    t.set_operand(&["mma.sync"], 1, i, &first);
                }
            },
            caught: Numbers,
        },
        Mutant {
            what: "two halves of a word of C change places",
            edit: |t| {
                t.from("// strip 0")
                    .swap_operands(&["mov.b32 %r", ", {"], 0, 1, 2);
            },
            caught: Numbers,
        },
    ]);
    let small = Setting {
        plan: "mma-f16-64x64x32-sm75",
        ..SMALL
    };
    small.assert_caught(&[
        Mutant {
            what: "an element that is not inside is loaded",
            edit: |t| t.from("edge_").unguard(&["@%p", "ld.global"], 8),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "an element that is not inside is no zero",
            edit: |t| t.from("edge_").drop(&["mov.b32", ", 0;"], 5),
            caught: Finding(&[UndefinedRegister]),
        },
    ]);
}

/// Rows that allow no copies of 16 bytes.
#[test]
fn narrow_copies() {
    let eight = Setting {
        width: 8,
        trans: "tt",
        ..NARROW
    };
    eight.assert_caught(&[
        Mutant {
            what: "a copy of the loop is dropped",
            edit: |t| t.in_loop().drop(&["cp.async.ca", ", 8;"], 3),
            caught: Finding(&[UndefinedShared]),
        },
        Mutant {
            what: "a copy of the loop to a stage that was filled before is dropped",
            edit: |t| t.in_loop().drop(&["cp.async.ca", ", 8;"], 9),
            caught: Numbers,
        },
        Mutant {
            what: "a copy is twice as wide as it can be",
            edit: |t| {
                t.in_loop().replace(&["cp.async.ca"], 0, ", 8;", ", 16;");
            },
            caught: Finding(&[Misaligned]),
        },
    ]);
    let four = Setting { width: 4, ..NARROW };
    four.assert_caught(&[
        Mutant {
            what: "one group too many is left in flight",
            edit: |t| {
                t.in_loop()
                    .replace(&["cp.async.wait_group"], 1, "group 2", "group 3");
            },
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "a copy goes to the place of its neighbour",
            edit: |t| {
                let first = t.in_loop().line(&["copyA"], 0).to_owned();
                let target = |line: &str| {
                    let (_, rest) = line.split_once('[').expect("a target");
                    rest.split_once(']').expect("a target").0.to_owned()
                };
                let second = target(t.line(&["copyA"], 1));
                t.replace(&["copyA"], 0, &target(&first), &second);
            },
            caught: Finding(&[ReadBeforeWait]),
        },
    ]);
    let two = Setting { width: 2, ..NARROW };
    two.assert_caught(&[
        Mutant {
            what: "the halves of a word change places",
            edit: |t| t.in_loop().replace(&["prmt.b32"], 0, "0x5410", "0x1054"),
            caught: Numbers,
        },
        Mutant {
            what: "a word is stored before its halves are there",
            edit: |t| {
                t.in_loop();
                let load = t.find(&["ld.global.u16"], 1);
                let load = t.lines.remove(load);
                let word = t.find(&["prmt.b32"], 0);
                t.lines.insert(word + 1, load);
            },
            caught: Finding(&[UndefinedRegister]),
        },
        Mutant {
            what: "an element behind the end of k is loaded",
            edit: |t| {
                let guard = t.from("k1_").from("edge_");
                guard.replace(&["setp.gt.and.s32"], 1, "gt", "ge");
            },
            caught: Numbers,
        },
    ]);
}

/// One element of a type after the other.
#[test]
fn other_types() {
    let tf32 = Setting {
        plan: "mma-tf32-64x64x16",
        size: [72, 72, 40],
        ..SHORT
    };
    tf32.assert_caught(&[
        Mutant {
            what: "an element of a fragment is that of the k before",
            edit: |t| t.from("k1_").shift(&["ld.shared.b32", "readB"], 1, -256),
            caught: Numbers,
        },
        Mutant {
            what: "the elements of a fragment change places",
            edit: |t| t.from("k1_").swap_operands(&["mma.sync"], 0, 8, 9),
            caught: Numbers,
        },
    ]);
    let s8 = Setting {
        plan: "mma-s8-64x64x64",
        size: [80, 80, 80],
        scalars: [1.0, -1.0],
        ..SHORT
    };
    s8.assert_caught(&[
        Mutant {
            what: "the bytes of a word change places",
            edit: |t| {
                t.from("k1_")
                    .replace(&["prmt.b32", "0x6420"], 0, "0x6420", "0x6402");
            },
            caught: Numbers,
        },
        Mutant {
            what: "a byte's neighbour is taken for it",
            edit: |t| {
                t.from("k1_")
                    .replace(&["prmt.b32", "0x7531"], 0, "0x7531", "0x6420");
            },
            caught: Numbers,
        },
        Mutant {
            what: "columns of two atoms that share them are staged one atom after the other",
            edit: |t| {
                t.from("multiplied_")
                    .swap_operands(&["st.shared.v4", "stageC"], 0, 2, 3);
            },
            caught: Numbers,
        },
        Mutant {
            what: "integers are taken as unsigned",
            edit: |t| {
                t.from("k1_")
                    .replace(&["mma.sync"], 0, ".s8.s8.", ".s8.u8.");
            },
            caught: Numbers,
        },
        Mutant {
            what: "beta is not multiplied by",
            edit: |t| {
                let [sum, old] = [0, 2].map(|i| t.from("ld.global").operand(&["mad.lo.s32"], 0, i));
                let at = t.find(&["mad.lo.s32"], 0);
                t.lines[at] = format!("    add.s32 {sum}, {sum}, {old};");
            },
            caught: Numbers,
        },
    ]);
    let e4m3 = Setting {
        plan: "mma-e4m3-64x64x32",
        size: [80, 80, 48],
        ..SHORT
    };
    e4m3.assert_caught(&[
        Mutant {
            what: "one operand is taken for the other format of 8 bits",
            edit: |t| {
                t.from("k1_")
                    .replace(&["mma.sync"], 0, ".e4m3.e4m3.", ".e4m3.e5m2.");
            },
            caught: Numbers,
        },
        Mutant {
            what: "units of two bytes are not transposed",
            edit: |t| t.replace(&["ldmatrix", "readB"], 0, ".x4.trans", ".x4"),
            caught: Numbers,
        },
    ]);
    let f64 = Setting {
        plan: "mma-f64-64x64x16",
        size: [66, 66, 16 * (4 * 3 + 3) - 1],
        ..SHORT
    };
    f64.assert_caught(&[
        Mutant {
            what: "an element of a fragment is that of the next atom",
            edit: |t| t.in_loop().shift(&["ld.shared.f64", "readA"], 0, 1024),
            caught: Numbers,
        },
        Mutant {
            what: "one group too many is left in flight in the loop",
            edit: |t| {
                t.in_loop()
                    .replace(&["cp.async.wait_group"], 0, "group 1", "group 2");
            },
            caught: Finding(&[ReadBeforeWait]),
        },
        Mutant {
            what: "the last bits of a sum are lost",
            edit: |t| {
                let at = t.from("wait_all").find(&["mul.f64"], 0);
                let sum = t.operand(&["mul.f64"], 0, 0);
                t.lines.insert(at, format!("    cvt.f64.f32 {sum}, %lost;"));
                t.lines
                    .insert(at, format!("    cvt.rn.f32.f64 %lost, {sum};"));
                let at = t.lines.iter().position(|line| line.contains(".reg .f64"));
                t.lines
                    .insert(at.expect("registers"), "    .reg .f32 %lost;".to_owned());
            },
            caught: Numbers,
        },
    ]);
    let halves = Setting {
        plan: "mma-f16acc16-64x64x32",
        ..SHORT
    };
    halves.assert_caught(&[Mutant {
        what: "the two sums of a register change places",
        edit: |t| t.from("wait_all").swap_operands(&["mov.b32 {"], 0, 0, 1),
        caught: Numbers,
    }]);
}

/// The end of each element: C in 16 bits, biases, activations.
#[test]
fn epilogues() {
    let bf16 = Setting {
        plan: "mma-bf16-64x64x32",
        ..SHORT
    };
    bf16.assert_caught(&[Mutant {
        what: "bf16 is widened into the wrong half",
        edit: |t| t.from("fetchC").swap_operands(&["mov.b32", ", {"], 0, 1, 2),
        caught: Numbers,
    }]);
    // What is stored is β·C: nothing but the last rounding.
    for (plan, output) in [
        ("mma-f16-64x64x32", Element::F16),
        ("mma-bf16-64x64x32", Element::Bf16),
        ("mma-f16-64x64x32", Element::Bf16),
    ] {
        let scaled = Setting {
            plan,
            output: Some(output),
            scalars: [0.0, 0.7],
            ..SHORT
        };
        scaled.assert_caught(&[
            Mutant {
                what: "C is cut off and not rounded",
                edit: |t| t.replace(&["cvt.rn."], 0, ".rn.", ".rz."),
                caught: Numbers,
            },
            Mutant {
                what: "A and B are read although alpha is 0",
                edit: |t| {
                    let depth = t.operand(&["selp.b32"], 0, 2);
                    t.set_operand(&["selp.b32"], 0, 1, &depth);
                },
                caught: Numbers,
            },
        ]);
    }
    let by_row = Setting {
        size: [104, 72, 24],
        output: Some(Element::F32),
        epilogue: Epilogue {
            bias: Bias::Row,
            activation: Activation::Gelu,
        },
        ..SHORT
    };
    by_row.assert_caught(&[
        Mutant {
            what: "the bias of a row is that of the column",
            edit: |t| {
                // The first row and column of the tile, each times 4 bytes: the column's for C, the row's for the bias.
                t.from("// strip 0");
                let end = t.find(&["@%p", "ld.global.f32"], 0);
                let is_origin =
                    |line: &str| line.contains("mad.wide.u32") && line.contains(", 4, ");
                let origins: Vec<usize> = (0..end).filter(|&i| is_origin(&t.lines[i])).collect();
                let [.., column, row] = origins[..] else {
                    panic!("two origins");
                };
                let factor = |line: &str| line.split(", ").nth(1).expect("a factor").to_owned();
                let (of_column, of_row) = (factor(&t.lines[column]), factor(&t.lines[row]));
                assert_ne!(of_column, of_row);
                t.lines[row] = t.lines[row].replace(&of_row, &of_column);
            },
            caught: Numbers,
        },
        Mutant {
            what: "the bias is left out",
            edit: |t| t.from("fetchC").drop(&["add.f32"], 0),
            caught: Numbers,
        },
        Mutant {
            what: "GELU: the linear term has the wrong sign",
            edit: |t| t.replace(&["0fC0135761"], 0, "0fC0", "0f40"),
            caught: Numbers,
        },
        Mutant {
            what: "GELU: the cubic term is one for exp, not for a power of two",
            edit: |t| t.replace(&["0fBDD2D3E8"], 0, "0fBDD2D3E8", "0fBD922279"),
            caught: Numbers,
        },
        Mutant {
            what: "GELU: the argument is not squared",
            edit: |t| {
                let at = t.find(&["0fBDD2D3E8"], 0) - 1;
                assert!(t.lines[at].contains("mul.f32"));
                let line = t.lines[at].replace("mul.f32", "mov.f32");
                t.lines[at] = line.rsplit_once(", ").expect("factors").0.to_owned() + ";";
            },
            caught: Numbers,
        },
    ]);
    let few_rows = Setting {
        size: [40, 72, 24],
        ..by_row
    };
    few_rows.assert_caught(&[Mutant {
        what: "the bias of a row that is outside is loaded",
        edit: |t| {
            let inside = t.operand(&["setp.le.and.s32"], -1, 0);
            t.unguard(&[&format!("@{inside} ld.global")], 0);
        },
        caught: Finding(&[OutOfBounds]),
    }]);
}

/// Products of a batch, with biases by columns and max(x, 0).
#[test]
fn batches() {
    let batch = Setting {
        size: [24, 40, 24],
        count: 2,
        epilogue: Epilogue {
            bias: Bias::Column,
            activation: Activation::Relu,
        },
        ..SHORT
    };
    batch.assert_caught(&[
        Mutant {
            what: "the distances of A and B in a batch are exchanged",
            edit: |t| {
                t.replace(&["ld.param.u32", "[strideA]"], 0, "strideA", "strideB");
                t.replace(&["ld.param.u32", "[strideB]"], -1, "strideB", "strideA");
            },
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "all products have the first A",
            edit: |t| no_distance(t, "[strideA]"),
            caught: Numbers,
        },
        Mutant {
            what: "all products go to the first C",
            edit: |t| no_distance(t, "[strideC]"),
            caught: Finding(&[GlobalRace]),
        },
        Mutant {
            what: "the bias of a column that is outside is loaded",
            edit: |t| t.from("wait_all").unguard(&["@%p", "ld.global.b16"], 0),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the bias of a column is that of the next",
            edit: |t| t.from("wait_all").shift(&["@%p", "ld.global.b16"], 0, 2),
            caught: Numbers,
        },
        Mutant {
            what: "what is above 0 becomes 0",
            edit: |t| t.from("no_c_").replace(&["setp.lt.f32"], 0, "lt", "gt"),
            caught: Numbers,
        },
        Mutant {
            what: "the activation comes before the bias",
            edit: |t| {
                let bias = t.from("no_c_").find(&["add.f32"], 0);
                assert!(t.lines[bias + 2].contains("selp.f32"));
                t.lines[bias..=bias + 2].rotate_left(1);
            },
            caught: Numbers,
        },
    ]);
}

/// All matrices of a batch are the first.
fn no_distance(t: &mut Text, parameter: &str) {
    t.replace(&["ld.param.u32", parameter], 0, "ld.param", "mov");
    t.replace(&["mov.u32", parameter], 0, parameter, "0");
}

/// Split sums, their parts in the workspace, and the kernel that adds them.
#[test]
fn split_sums() {
    let split = Setting {
        size: [66, 80, 50],
        schedule: Schedule {
            split: 2,
            pack: false,
        },
        ..SHORT
    };
    split.assert_caught(&[
        Mutant {
            what: "every part begins at the first k",
            edit: |t| {
                let chunk = t.operand(&["[chunk]"], 0, 0) + ", ";
                let at = t.from("%ctaid.z").find(&["mul.wide.u32", &chunk], 0);
                let (before, _) = t.lines[at].rsplit_once(", ").expect("factors");
                t.lines[at] = format!("{before}, 0;");
            },
            caught: Numbers,
        },
        Mutant {
            what: "the last part is as long as the others",
            edit: |t| {
                t.from("[chunk]");
                let chunk = t.operand(&["selp.b32"], 0, 2);
                t.set_operand(&["selp.b32"], 0, 1, &chunk);
            },
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "partial sums are as far apart as if they had n rows",
            edit: |t| {
                let [m, n] = ["[m]", "[n]"].map(|p| t.operand(&["ld.param.u32", p], 0, 0) + ", ");
                let at = t.from("wait_all").find(&["mul.wide.u32", &m], 0);
                t.lines[at] = t.lines[at].replace(&m, &n);
            },
            caught: Finding(&[UndefinedGlobal]),
        },
        Mutant {
            what: "all partial sums go to the place of the first",
            edit: |t| {
                let layer = t.operand(&["%ctaid.z"], 0, 0) + ";";
                let at = t.from("wait_all").find(&["cvt.u64.u32", &layer], 0);
                let zero = t.lines[at].replace(&layer, "0;");
                t.lines[at] = zero.replace("cvt.u64.u32", "mov.u64");
            },
            caught: Finding(&[GlobalRace]),
        },
        Mutant {
            what: "rows of partial sums that another block owns are stored",
            edit: |t| t.replace(&["setp.le.and.s32"], 0, "le", "ne"),
            caught: Finding(&[GlobalRace]),
        },
        Mutant {
            what: "the reduction misses the first part",
            edit: |t| {
                t.from("_reduce(")
                    .replace(&["mov.u32", ", 0;"], 0, ", 0;", ", 1;");
            },
            caught: Numbers,
        },
        Mutant {
            what: "the reduction takes a part too many",
            edit: |t| t.from("_reduce(").replace(&["setp.lt.u32"], 0, "lt", "le"),
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the reduction does not begin at zero",
            edit: |t| t.from("_reduce(").drop(&["mov.f32"], 0),
            caught: Finding(&[UndefinedRegister]),
        },
        Mutant {
            what: "the reduction keeps the last part only",
            edit: |t| {
                let [sum, term] = [0, 2].map(|i| t.from("_reduce(").operand(&["add.f32"], 0, i));
                let at = t.find(&["add.f32"], 0);
                t.lines[at] = format!("    mov.f32 {sum}, {term};");
            },
            caught: Numbers,
        },
        Mutant {
            what: "alpha is multiplied by in each part as well",
            edit: |t| {
                let alpha = t.operand(&["ld.param.f32", "[alpha]"], 0, 0);
                let at = t.find(&["st.shared", "stageC"], 0);
                let sum = t.operand(&["st.shared", "stageC"], 0, 1);
                let scale = format!("    mul.f32 {sum}, {sum}, {alpha};");
                t.lines.insert(at, scale);
            },
            caught: Numbers,
        },
    ]);
}

/// Operands that are copied to rows of 16 bytes first.
#[test]
fn packed_operands() {
    let packed = Setting {
        size: [67, 69, 50],
        width: 2,
        schedule: Schedule {
            split: 1,
            pack: true,
        },
        ..SHORT
    };
    packed.assert_caught(&[
        Mutant {
            what: "what is behind the rows of B is not filled",
            edit: |t| {
                t.from("_pack_b(").from("bra copied_");
                let left = t.operand(&["setp.gt.s32"], 0, 1);
                // The guard of the first store.
                t.from("prmt.b32")
                    .set_operand(&["setp.gt.s32"], 0, 1, &left);
            },
            caught: Finding(&[UndefinedGlobal]),
        },
        Mutant {
            what: "rows of the copy are as far apart as those of the operand",
            edit: |t| {
                t.from("_pack_a(");
                let [ld, pitch] =
                    ["[ld]", "[pitch]"].map(|p| t.operand(&["ld.param.u32", p], 0, 0) + ", ");
                t.replace(&["mul.wide.u32", &pitch], 0, &pitch, &ld);
            },
            caught: Finding(&[UndefinedGlobal]),
        },
        Mutant {
            what: "the halves of a word change places",
            edit: |t| {
                t.from("_pack_a(").from("bra copied_").replace(
                    &["prmt.b32"],
                    0,
                    "0x5410",
                    "0x1054",
                );
            },
            caught: Numbers,
        },
        Mutant {
            what: "an element behind the end of a row is loaded",
            edit: |t| {
                t.from("_pack_b(").from("bra copied_");
                t.replace(&["setp.gt.s32"], 1, "gt", "ne");
            },
            caught: Finding(&[OutOfBounds]),
        },
        Mutant {
            what: "the product takes B from where the copy of A is",
            edit: |t| {
                t.from("_pack_b(").from("ret;");
                t.replace(&["ld.param.u64", "[B]"], 0, "[B]", "[A]");
            },
            caught: Finding(&[UndefinedGlobal]),
        },
    ]);
}
