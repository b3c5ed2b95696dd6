//! Cross entropy.

use tilewright::codegen::Arch;
use tilewright::host::kernels::{CrossEntropy, Problem};
use tilewright::kernels::rows::ELEMENTS;

use super::{ran, right, right_for};

/// Rows and classes: rows in parts of a warp, in a warp, in a block, and tile by tile.
const SIZES: [(u64, u64); 10] = [
    (1, 1),
    (9, 3),
    (33, 31),
    (7, 64),
    (5, 97),
    (11, 1000),
    (3, 1025),
    (2, 4099),
    (0, 5),
    (5, 0),
];

/// Rows that are read twice, or shared by the blocks of a cluster.
const LONG: [(u64, u64); 3] = [(7, 32_800), (1, 40_001), (2, 128_256)];

#[test]
fn ragged_rows() {
    for element in ELEMENTS {
        for (seed, (rows, cols)) in (1..).zip(SIZES) {
            let problem = CrossEntropy {
                element,
                rows,
                cols,
            };
            right(
                &problem,
                &problem.random(seed),
                &format!("{element} {rows}x{cols}"),
            );
        }
    }
}

#[test]
fn long_rows() {
    for (rows, cols) in LONG {
        let problem = CrossEntropy {
            element: ELEMENTS[2],
            rows,
            cols,
        };
        let (inputs, what) = (problem.random(2), format!("{rows}x{cols}"));
        right(&problem, &inputs, &what);
        right_for(Arch(90), &problem, &inputs, &format!("{what} sm_90"));
    }
}

#[test]
fn nan_infinities_and_targets_outside() {
    let problem = CrossEntropy {
        element: ELEMENTS[0],
        rows: 6,
        cols: 40,
    };
    let mut inputs = problem.random(1);
    let targets = [3.0, 40.0, -1.0, 2_147_483_647.0, 7.0, 8.0];
    for (row, target) in targets.into_iter().enumerate() {
        inputs[1].set(0, row, target);
    }
    inputs[0].set(0, 9, f64::NAN);
    inputs[0].set(1, 9, f64::NAN); // a row without a target
    inputs[0].set(4, 7, f64::NEG_INFINITY); // the target itself
    inputs[0].set(5, 2, f64::NEG_INFINITY);
    let (outcome, _) = ran(&problem, &inputs, "special values");
    let loss: Vec<f32> = outcome.get("loss").expect("loss");
    assert!(loss[0].is_nan() && loss[4] == f32::INFINITY && loss[5].is_finite());
    assert_eq!(loss[1..4], [0.0; 3]);
    let dx: Vec<f32> = outcome.get("dx").expect("dx");
    assert!(dx[..40].iter().all(|d| d.is_nan()));
    assert!(dx[40..160].iter().all(|&d| d == 0.0));
    assert!(dx[160..].iter().all(|d| d.is_finite()));
}
