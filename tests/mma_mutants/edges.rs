//! Where matrices and tiles end.

use crate::common::mutant::Caught::{Finding, Lanes, Numbers};
use crate::common::mutant::Mutant;
use crate::common::text::Text;
use tilewright::emulator::FindingKind::{
    BadOperand, Divergent, GlobalRace, Misaligned, OutOfBounds, SharedRace, UndefinedRegister,
};

use super::{SHORT, SMALL, Setting};

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
                // The end of the second vector, where whole vectors come together with single elements.
                let label = t.find(&["stored_", ":"], 2);
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
            edit: |t| t.from("fetchC").unguard(&["st.global"], 4),
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
