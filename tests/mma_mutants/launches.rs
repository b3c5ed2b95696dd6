//! More than one product, and more than one kernel.

use crate::common::mutant::Caught::{Finding, Numbers};
use crate::common::mutant::Mutant;
use crate::common::text::Text;
use tilewright::emulator::FindingKind::{
    GlobalRace, OutOfBounds, UndefinedGlobal, UndefinedRegister,
};
use tilewright::kernels::gemm::{Activation, Bias, Epilogue, Schedule};

use super::{SHORT, Setting};

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
            caught: Finding(&[UndefinedGlobal]),
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

/// Operands that are copied to rows of whole cache lines first.
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
