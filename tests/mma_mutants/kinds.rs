//! Other copies, other types, other ends of an element.

use crate::common::mutant::Caught::{Finding, Numbers};
use crate::common::mutant::Mutant;
use tilewright::codegen::ir::Element;
use tilewright::emulator::FindingKind::{
    Misaligned, OutOfBounds, ReadBeforeWait, SharedRace, UndefinedRegister, UndefinedShared,
};
use tilewright::kernels::gemm::{Activation, Bias, Epilogue};

use super::{LONG, NARROW, SHORT, SMALL, Setting};

/// Through registers, piece by piece, and products of half the depth: what is older than `cp.async`.
#[test]
fn copies_through_registers() {
    let old = Setting {
        plan: "mma-f16-64x64x32+sm75",
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
        plan: "mma-f16-64x64x32+sm75",
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
