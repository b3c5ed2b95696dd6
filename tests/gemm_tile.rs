//! The matrix product of `examples/gemm_tile.rs`: clean, right and counted as proven over ragged sizes.

#[path = "../examples/gemm_tile.rs"]
#[allow(dead_code)]
mod example;

use example::{error, gemm, numbers, product};
use tilewright::codegen::plan::Arch;

#[test]
fn ragged_sizes_are_right_clean_and_counted_as_proven() {
    let kernel = gemm(Arch(80)).expect("proven");
    assert_eq!(kernel.proof.covered, ["c"]);
    for sizes in [
        [1, 1, 1],
        [128, 128, 32],
        [128, 128, 64],
        [129, 127, 33],
        [64, 200, 96],
        [130, 136, 40],
        [136, 130, 41],
        [257, 8, 7],
        [8, 257, 200],
        [5, 9, 0],
    ] {
        let [m, n, k] = sizes;
        let (a, b) = (numbers(1, m * k), numbers(2, k * n));
        let (outcome, c) = product(&kernel, sizes, &a, &b).expect("runs");
        outcome.assert_clean();
        if k > 0 {
            // Without a term, no stage is touched.
            outcome.assert_counted_as_proven();
        }
        let worst = error(sizes, &a, &b, &c);
        assert!(worst <= 1.0, "{sizes:?}: {worst} of what rounding allows");
    }
}

#[test]
fn the_derived_tiles_are_ideal() {
    let kernel = gemm(Arch(80)).expect("proven");
    let costs = kernel.accesses();
    assert_eq!(costs.len(), 8); // each of four tiles is written and read
    for a in costs {
        assert_eq!(a.wavefronts, a.ideal, "{a:?}");
    }
}
