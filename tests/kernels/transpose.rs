//! The transpose.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::Contract;
use tilewright::host::kernels::{Problem, Transposed};
use tilewright::kernels::transpose::{ELEMENTS, transpose};

use super::right;

/// A problem of these sizes.
fn transposed(element: Element, rows: u64, cols: u64) -> Transposed {
    Transposed {
        element,
        rows,
        cols,
    }
}

#[test]
fn ragged_sizes_are_exact_clean_and_counted_as_proven() {
    let sizes = [
        (1, 1),
        (1, 200),
        (200, 1),
        (2, 2),
        (63, 65),
        (64, 64),
        (65, 63),
        (128, 128),
        (130, 260),
        (129, 131),
        (252, 36),
        (0, 7),
        (7, 0),
        (0, 0),
    ];
    for element in ELEMENTS {
        for (seed, (rows, cols)) in (1..).zip(sizes) {
            let problem = transposed(element, rows, cols);
            let what = format!("{element} {rows}x{cols}");
            let outcome = right(&problem, &problem.random(seed), &what);
            assert_eq!(outcome.launches == 0, rows * cols == 0, "{what}");
            assert_eq!(outcome.accesses.len(), 2, "{what}");
            for access in &outcome.accesses {
                let proof = &access.proof;
                assert_eq!((proof.wavefronts, proof.ideal), (1, 1), "{what}");
            }
        }
    }
}

#[test]
fn long_sides_go_along_x() {
    for (rows, cols) in [(1 << 30, 1), (1, 1 << 30), (131_072, 1024), (1024, 131_072)] {
        let problem = transposed(Element::F32, rows, cols);
        let kernel = problem.kernel(Arch(75)).expect("proven");
        let contract = Contract::new(&kernel, problem.scalars()).expect("a launch");
        let blocks = |n: u64| n.div_ceil(64) as u32;
        let wanted = [blocks(rows.max(cols)), blocks(rows.min(cols)), 1];
        assert_eq!(contract.launches[0].step.grid, wanted);
    }
}

#[test]
fn every_output_is_covered_for_both_grids() {
    for element in ELEMENTS {
        for tall in [false, true] {
            let kernel = transpose(element, tall, Arch(75)).expect("proven");
            assert_eq!(kernel.proof.covered, ["y"]);
        }
    }
    let error = transpose(Element::F64, true, Arch(80)).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().contains("f32, f16 or s8")),
        ("element", true)
    );
}
