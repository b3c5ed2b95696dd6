//! Kernels on rows.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{Problem, RowOperation, Rows};
use tilewright::kernels::norm::RmsNorm;
use tilewright::kernels::rows::{ELEMENTS, RowTile};

use super::{right, right_for};

/// Rows and columns: 1, primes, whole and ragged vectors, a tile and one more, several warps, tiles of a loop.
const SIZES: [(u64, u64); 16] = [
    (1, 1),
    (5, 1),
    (3, 2),
    (131, 3),
    (7, 4),
    (9, 8),
    (5, 17),
    (33, 31),
    (6, 64),
    (5, 97),
    (3, 1000),
    (2, 1021),
    (3, 1024),
    (2, 1025),
    (2, 2056),
    (1, 4099),
];

/// Longer rows: all of a block, and tiles of a loop or of the blocks of a cluster.
const LONG: [(u64, u64); 6] = [
    (1, 8200),
    (1, 32_768),
    (1, 32_769),
    (2, 40_001),
    (1, 98_306),
    (1, 131_072),
];

/// A norm with a residual or not, quantised or not.
const fn rms(residual: bool, quantized: Option<Element>) -> RowOperation {
    RowOperation::RmsNorm(RmsNorm {
        residual,
        quantized,
        blocks: false,
    })
}

/// A norm that is quantised with a scale for each 128 elements of a row.
const fn by_blocks(residual: bool, to: Element) -> RowOperation {
    RowOperation::RmsNorm(RmsNorm {
        residual,
        quantized: Some(to),
        blocks: true,
    })
}

/// The tests of one operation.
macro_rules! tests {
    ($room:ident, $operation:expr) => {
        mod $room {
            use super::*;

            #[test]
            fn ragged_rows() {
                ragged($operation);
            }

            #[test]
            fn long_rows() {
                for (rows, cols) in LONG {
                    for element in [Element::F32, Element::Bf16] {
                        of($operation, element, rows, cols);
                    }
                }
            }

            #[test]
            fn special_numbers() {
                special($operation);
            }

            #[test]
            fn the_assembler_takes_them() {
                assembles($operation);
            }

            #[test]
            fn proofs_are_small() {
                small_proofs($operation);
            }
        }
    };
}

tests!(softmax, RowOperation::Softmax);
tests!(layer_norm, RowOperation::LayerNorm);
tests!(row_sums, RowOperation::RowSums);
tests!(rms_norm, rms(false, None));
tests!(rms_norm_residual, rms(true, None));
tests!(rms_norm_s8, rms(false, Some(Element::S8)));
tests!(rms_norm_residual_e4m3, rms(true, Some(Element::E4m3)));
tests!(rms_norm_blocks_e4m3, by_blocks(false, Element::E4m3));
tests!(
    rms_norm_residual_blocks_e5m2,
    by_blocks(true, Element::E5m2)
);

/// Random rows are right.
fn of(operation: RowOperation, element: Element, rows: u64, cols: u64) {
    let problem = Rows::new(operation, element, rows, cols);
    let what = format!("{operation:?} {element} {rows}x{cols}");
    let inputs = problem.random(7);
    right(&problem, &inputs, &what);
    // The blocks of a cluster share a row.
    if cols > 32_768 {
        right_for(Arch(90), &problem, &inputs, &format!("{what} sm_90"));
    }
}

fn ragged(operation: RowOperation) {
    for element in ELEMENTS {
        for (rows, cols) in SIZES.into_iter().chain([(0, 10)]) {
            of(operation, element, rows, cols);
        }
    }
}

/// Rows with NaN, with infinities, with only −∞, and an ordinary one. Rows in registers, and rows that are read in a loop.
fn special(operation: RowOperation) {
    for cols in [5_usize, 97, 1025, 33_000] {
        let rows = if cols > 32_768 { 1 } else { 6 };
        for first in 0..6 {
            if rows > 1 && first > 0 {
                continue;
            }
            let problem = Rows::new(operation, Element::F32, rows, cols as u64);
            let mut inputs = problem.random(7);
            let x = &mut inputs[0];
            for r in 0..rows as usize {
                match r + first {
                    0 => x.set(r, cols / 2, f64::NAN),
                    1 => x.set(r, cols - 1, f64::INFINITY),
                    2 => x.set(r, 0, f64::NEG_INFINITY),
                    3 => (0..cols).for_each(|c| x.set(r, c, f64::NEG_INFINITY)),
                    4 => {
                        x.set(r, 0, f64::INFINITY);
                        x.set(r, cols - 1, f64::NEG_INFINITY);
                    }
                    _ => {}
                }
            }
            let what = format!("{operation:?} {cols} columns, case {first}");
            right(&problem, &inputs, &what);
            if cols > 32_768 {
                right_for(Arch(90), &problem, &inputs, &format!("{what}, sm_90"));
            }
        }
    }
}

fn assembles(operation: RowOperation) {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for arch in [Arch(80), Arch(90), Arch(120)] {
        for element in ELEMENTS {
            for cols in [1, 97, 1024, 4096, 32_768, 131_072] {
                let problem = Rows::new(operation, element, 1, cols);
                if arch < problem.least_arch() {
                    continue;
                }
                let kernel = problem.kernel(arch).expect("proven");
                let assembly = ptxas.assemble(&kernel.ptx, &arch.to_string());
                let assembly = assembly.unwrap_or_else(|e| panic!("{element} {cols} {arch}: {e}"));
                // 1024 threads have 64 registers each; on other architectures than sm_90 ptxas may spill a few bytes, and more
                // for the longest rows in variants of the RMS norm.
                let plain =
                    !matches!(operation, RowOperation::RmsNorm(v) if v != RmsNorm::default());
                let most = match (arch, plain || cols <= 4096) {
                    (Arch(90), true) => 0,
                    (_, true) => 64,
                    _ => 128,
                };
                for resources in &assembly.kernels {
                    let spilled = resources.spill_store_bytes;
                    let what = format!("{operation:?} {element} {cols} {arch}");
                    assert!(spilled <= most, "{what}: {spilled} bytes are spilled");
                }
            }
        }
    }
}

/// The time of a proof without optimisation is no measure; how much there is to prove is.
fn small_proofs(operation: RowOperation) {
    for cols in [1, 100, 1024, 4096, 32_768, 131_072] {
        let problem = Rows::new(operation, Element::Bf16, 1, cols);
        let kernel = problem.kernel(problem.least_arch()).expect("proven");
        let addresses = kernel.proof.addresses;
        assert!(addresses < 800, "{operation:?} {cols}: {addresses}");
    }
}

#[test]
fn other_types_are_refused() {
    for element in [Element::F64, Element::S8, Element::S32, Element::E5m2] {
        let error = RowTile::new(element, 10).unwrap_err();
        assert_eq!(error.code(), "element");
        let quantized = rms(false, Some(element));
        let problem = Rows::new(quantized, Element::F32, 1, 10);
        let is_one = [Element::S8, Element::E5m2].contains(&element);
        assert_eq!(problem.kernel(Arch(90)).is_ok(), is_one);
    }
}

/// The same row gives the same bits alone and among others.
#[test]
fn a_row_does_not_depend_on_the_others() {
    for operation in [RowOperation::Softmax, rms(true, Some(Element::S8))] {
        for cols in [100, 1500, 40_000] {
            let many = Rows::new(operation, Element::Bf16, 5, cols);
            let inputs = many.random(3);
            let y = right(&many, &inputs, "many");
            let one = Rows { rows: 1, ..many };
            let mut alone = inputs.clone();
            for matrix in alone.iter_mut().filter(|m| m.rows == 5) {
                let bytes = matrix.cols * matrix.element.bytes() as usize;
                (matrix.rows, matrix.bytes) = (1, matrix.bytes[3 * bytes..4 * bytes].to_vec());
            }
            let row = right(&one, &alone, "alone");
            let (y, row) = (y.bytes("y").expect("y"), row.bytes("y").expect("y"));
            assert_eq!(
                &y[3 * row.len()..4 * row.len()],
                row,
                "{operation:?} {cols}"
            );
        }
    }
}
