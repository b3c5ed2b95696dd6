//! Backward of the norms.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{NormBackward, Problem};
use tilewright::host::{Arg, On, Role, Runnable, run};
use tilewright::kernels::norm::Norm;
use tilewright::kernels::rows::{ELEMENTS, RowTile};

use super::right;

/// Rows, columns and blocks: one of each, primes, rows that no number of blocks divides, fewer rows than blocks, whole and ragged vectors, several rows a block and several warps a row.
const SIZES: [(u64, u64, u32); 20] = [
    (1, 1, 1),
    (1, 1, 3),
    (5, 1, 2),
    (600, 1, 2),
    (3, 2, 1),
    (1031, 3, 3),
    (7, 4, 5),
    (259, 8, 2),
    (37, 17, 2),
    (67, 31, 3),
    (41, 64, 2),
    (23, 97, 2),
    (17, 255, 3),
    (9, 512, 2),
    (11, 520, 3),
    (13, 1000, 2),
    (5, 1021, 2),
    (7, 1025, 3),
    (3, 2056, 2),
    (3, 4099, 2),
];

const NORMS: [Norm; 2] = [Norm::Rms, Norm::Layer];

/// Random rows are right.
fn of(norm: Norm, element: Element, (rows, cols, blocks): (u64, u64, u32)) {
    let problem = NormBackward {
        blocks,
        ..NormBackward::new(norm, element, rows, cols)
    };
    let what = format!("{norm} {element} {rows}x{cols} by {blocks} blocks");
    right(&problem, &problem.random(7), &what);
}

#[test]
fn ragged_rows() {
    for norm in NORMS {
        for element in ELEMENTS {
            for size in SIZES {
                of(norm, element, size);
            }
        }
    }
}

/// The longest rows, no rows, no columns, and the number of blocks that is taken anyway.
#[test]
fn extreme_sizes() {
    for norm in NORMS {
        for size in [
            (3, 8192, 2),
            (2, 8191, 1),
            (0, 10, 3),
            (5, 0, 3),
            (700, 70, 264),
        ] {
            for element in [Element::F32, Element::Bf16] {
                of(norm, element, size);
            }
        }
    }
}

/// Rows that are not in registers: the longest that are, and one element more; tiles of 16 rows, and several of a block.
#[test]
fn long_rows() {
    for norm in NORMS {
        for element in ELEMENTS {
            for size in [
                (3, 8193, 40),
                (17, 8200, 1),
                (0, 9000, 33),
                (1, 40_001, 264),
            ] {
                of(norm, element, size);
            }
        }
        of(norm, Element::Bf16, (97, 8208, 33));
        of(norm, Element::F16, (2, 131_072, 16));
    }
}

/// From `sm_90` on a kernel is launched while the one before it ends, and waits for its results.
#[test]
fn kernels_for_hopper_wait_for_each_other() {
    for norm in NORMS {
        for cols in [700, 8200] {
            let problem = NormBackward {
                blocks: 33,
                ..NormBackward::new(norm, Element::Bf16, 40, cols)
            };
            let inputs = problem.random(5);
            let kernels = problem.sequence(Arch(90)).expect("proven");
            let outcome = run(&kernels, On::Emulator, problem.args(&inputs)).expect("it runs");
            outcome.assert_clean();
            let compared = problem.compare(&inputs, &outcome).expect("the outputs");
            assert!(compared.passed(), "{norm} {cols}: {compared:?}");
            let waits = kernels.ptx().matches("griddepcontrol.wait;").count();
            assert_eq!(waits, kernels.kernels().len() - 1);
        }
    }
}

/// Of many blocks the last kernel adds the rows in several steps.
#[test]
fn many_blocks() {
    for blocks in [15, 16, 17, 321, 650] {
        of(Norm::Layer, Element::Bf16, (41, 33, blocks));
    }
}

/// Rows with NaN and infinities, in x and in dy, and rows of 0: alone, and among others.
#[test]
fn special_numbers() {
    for norm in NORMS {
        for cols in [5_usize, 97, 1025, 8200] {
            for case in 0..7 {
                let problem = NormBackward {
                    blocks: 2,
                    ..NormBackward::new(norm, Element::F32, 5, cols as u64)
                };
                let mut inputs = problem.random(7);
                let [x, dy, _] = &mut inputs[..] else {
                    panic!("three inputs");
                };
                match case {
                    0 => x.set(3, cols / 2, f64::NAN),
                    1 => x.set(3, cols - 1, f64::INFINITY),
                    2 => (0..cols).for_each(|c| x.set(3, c, f64::NEG_INFINITY)),
                    3 => dy.set(2, cols / 2, f64::NAN),
                    4 => dy.set(2, 0, f64::INFINITY),
                    5 => (0..cols).for_each(|c| x.set(1, c, 0.0)),
                    _ => (0..cols).for_each(|c| dy.set(1, c, 0.0)),
                }
                let what = format!("{norm}, {cols} columns, case {case}");
                right(&problem, &inputs, &what);
            }
        }
    }
}

/// With ε = 0 the factor of a row of zeros is infinite. Rows behind the last are zeros, and add nothing.
#[test]
fn rows_behind_the_last_add_nothing() {
    for norm in NORMS {
        for (rows, cols) in [(3, 40), (5, 700), (1, 1500), (5, 8200)] {
            let problem = NormBackward {
                blocks: 2,
                eps: 0.0,
                ..NormBackward::new(norm, Element::F32, rows, cols)
            };
            right(
                &problem,
                &problem.random(3),
                &format!("{norm} {rows}x{cols}"),
            );
        }
    }
}

/// The same row gives the same bits of dx alone and among others, and dw the same bits again.
#[test]
fn a_row_does_not_depend_on_the_others() {
    for norm in NORMS {
        for cols in [100, 1500, 9000] {
            let many = NormBackward {
                blocks: 2,
                ..NormBackward::new(norm, Element::Bf16, 5, cols)
            };
            let inputs = many.random(3);
            let all = right(&many, &inputs, "many");
            let again = right(&many, &inputs, "again");
            assert_eq!(all.bytes("dw").expect("dw"), again.bytes("dw").expect("dw"));
            let one = NormBackward { rows: 1, ..many };
            let mut alone = inputs.clone();
            for matrix in alone.iter_mut().filter(|m| m.rows == 5) {
                let bytes = matrix.cols * matrix.element.bytes() as usize;
                (matrix.rows, matrix.bytes) = (1, matrix.bytes[3 * bytes..4 * bytes].to_vec());
            }
            let row = right(&one, &alone, "alone");
            let (all, row) = (all.bytes("dx").expect("dx"), row.bytes("dx").expect("dx"));
            assert_eq!(&all[3 * row.len()..4 * row.len()], row, "{norm} {cols}");
        }
    }
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for arch in [Arch(80), Arch(90), Arch(120)] {
        for (norm, element) in NORMS.iter().flat_map(|n| ELEMENTS.map(|e| (*n, e))) {
            for cols in [1, 97, 1000, 1024, 4096, 4099, 8192, 8193, 16_384] {
                let problem = NormBackward::new(norm, element, 1, cols);
                let kernels = problem.sequence(arch).expect("proven");
                let assembly = ptxas.assemble(kernels.ptx(), &arch.to_string());
                let assembly =
                    assembly.unwrap_or_else(|e| panic!("{norm} {element} {cols} {arch}: {e}"));
                // 512 threads have 128 registers each: of f32, sums and the next row leave too few.
                let most = if cols > 4096 && element == Element::F32 {
                    192
                } else {
                    0
                };
                for resources in &assembly.kernels {
                    let spilled = resources.spill_store_bytes;
                    let what = format!("{norm} {element} {cols} {arch}");
                    assert!(spilled <= most, "{what}: {spilled} bytes are spilled");
                }
            }
        }
    }
}

/// The time of a proof without optimisation is no measure; how much there is to prove is.
#[test]
fn proofs_are_small() {
    for norm in NORMS {
        for cols in [1, 100, 1024, 4096, 8192, 16_384] {
            let problem = NormBackward::new(norm, Element::Bf16, 1, cols);
            let kernels = problem.sequence(Arch(80)).expect("proven");
            for kernel in kernels.kernels() {
                let addresses = kernel.proof.addresses;
                assert!(addresses < 800, "{} {cols}: {addresses}", kernel.name());
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let problem = NormBackward::new(Norm::Rms, Element::F32, 4, 10);
    for blocks in [0, 4097] {
        let error = NormBackward { blocks, ..problem }
            .sequence(Arch(80))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("blocks: {blocks} is not 1 to 4096")
        );
    }
    for element in [Element::F64, Element::S8, Element::E4m3] {
        assert_eq!(
            RowTile::backward(element, 10).unwrap_err().code(),
            "element"
        );
    }
}

/// What passes between the kernels is in the workspace, and no parameter.
#[test]
fn the_parts_are_in_the_workspace() {
    let problem = NormBackward::new(Norm::Layer, Element::Bf16, 9, 33);
    let kernels = problem.sequence(Arch(80)).expect("proven");
    let params = kernels.params();
    let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        ["rows", "cols", "x", "dy", "w", "dx", "eps", "dw", "db"]
    );
    let roles: Vec<Role> = params.iter().filter_map(|p| p.role).collect();
    let [input, output] = [Role::Input, Role::Output];
    assert_eq!(roles, [input, input, input, output, output, output]);
    let inputs = problem.random(1);
    let mut args = problem.args(&inputs);
    args.push(("dw_parts", Arg::output::<f32>(264 * 33)));
    let error = run(&kernels, On::Emulator, args).unwrap_err();
    assert_eq!(error.code(), "unknown_argument");
}
