//! The loop without branches: its stages, and what is read and multiplied.

use crate::common::mutant::Caught::{Finding, Numbers, Wavefronts};
use crate::common::mutant::Mutant;
use crate::common::text::Text;
use tilewright::emulator::FindingKind::{
    Misaligned, MissingBarrierAfterWait, OutOfBounds, ReadBeforeWait, SharedRace, UndefinedRegister,
};

use super::LONG;

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
