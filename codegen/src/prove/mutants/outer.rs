//! Mutants of the plans of outer products: their main loop, the rest, and both ways of loading a tile.

use super::judged;
use super::mma::Case;
use crate::gemm::Operands;

/// m, n, k, and what leading dimensions have beyond their rows: several iterations of the main loop with aligned rows, ragged tiles, few k, one row.
const SIZES: &[[u64; 4]] = &[
    [64, 64, 40, 0],
    [67, 66, 19, 1],
    [128, 65, 8, 4],
    [1, 70, 25, 2],
];

#[test]
fn mutants_of_outer() {
    let [nn, nt, tn, tt] = Operands::ALL;
    let mut all = 0;
    for (plan, operands) in [
        ("dgemm-4x4", tn),
        ("dgemm-4x4", nt),
        ("sgemm-r700-64", nn),
        ("sgemm-r700-64", tt),
    ] {
        let case = Case::plain(plan, operands, SIZES);
        let (made, refuted) = judged(&case.subject(), 6);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 500, "{all} mutants");
}
