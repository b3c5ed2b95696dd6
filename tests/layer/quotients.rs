//! Blocks that share a part of an input by a quotient of their index, and tiles of several elements for each that the grid counts.

use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Element, Kernel};

use super::{ARCH, Result, layout};

/// How a kernel differs from a right one.
#[derive(Clone, Copy)]
struct Slip {
    /// Blocks that share a row of x.
    group: i64,
    /// Blocks for each row of x.
    blocks: i64,
    /// Elements of y for each block, which writes 64.
    width: i64,
}

const RIGHT: Slip = Slip {
    group: 6,
    blocks: 6,
    width: 64,
};

/// y[64·b..] = x[b / 6] for 6·n blocks b, x of n rows.
fn shared(slip: Slip) -> Result<Proven> {
    let mut k = Kernel::new("shared", 32);
    let (n, columns) = (k.size("n", 1 << 12), k.constant(64));
    let blocks = k.scale(n, slip.blocks);
    let elements = k.scale(blocks, slip.width);
    let x = k.input("x", Element::F32, &[n, columns]);
    let y = k.output("y", Element::F32, &[elements]);
    let b = k.tiles(Axis::X, blocks, 1)?;
    let row = k.div(b, slip.group);
    let (thread, zero, shares) = (k.thread(), k.constant(0), layout("(32,2):(1,32)"));
    let x = x.slice(&mut k, &[row])?.tile(&mut k, &[64], &[zero])?;
    let y = y.tile(&mut k, &[64], &[b])?;
    let x = x.partition(&mut k, &shares, thread)?;
    let y = y.partition(&mut k, &shares, thread)?;
    k.copy(&x, &y)?;
    Ok(k.build(ARCH)?)
}

#[test]
fn blocks_that_share_a_row_read_inside() {
    for group in [1, 2, 3, 5, 6, 8, 12, 71] {
        let slip = Slip {
            group,
            blocks: group,
            ..RIGHT
        };
        let kernel = shared(slip).unwrap_or_else(|e| panic!("{group}: {e}"));
        assert_eq!(kernel.proof.covered, ["y"]);
    }
    // Fewer blocks than the groups have.
    shared(Slip { blocks: 5, ..RIGHT }).expect("proven");
}

#[test]
fn quotients_that_may_be_outside_are_refused() {
    for slip in [
        Slip { group: 5, ..RIGHT },
        Slip {
            group: 4,
            blocks: 5,
            ..RIGHT
        },
        Slip { blocks: 7, ..RIGHT },
    ] {
        let error = shared(slip).expect_err("it reads behind x");
        assert!(error.to_string().contains("outside the buffer"), "{error}");
    }
}

#[test]
fn tiles_of_another_width_are_refused() {
    // Tiles leave elements between them, or reach into each other.
    for width in [32, 63, 65, 128] {
        let error = shared(Slip { width, ..RIGHT }).expect_err("not covered");
        assert!(
            error.to_string().contains("not written exactly once"),
            "{width}: {error}"
        );
    }
}
