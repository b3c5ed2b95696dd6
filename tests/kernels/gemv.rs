//! Products of few rows.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{FewRows, Problem};
use tilewright::kernels::gemv::{ELEMENTS, Gemv, RESULTS, gemv};

use super::right;

/// m, n, k: one row and all rows, ragged sides, k that no vector divides, several blocks and steps, nothing.
const SIZES: [[u64; 3]; 12] = [
    [1, 1, 1],
    [1, 33, 64],
    [16, 65, 1000],
    [3, 32, 77],
    [8, 300, 512],
    [9, 31, 1024],
    [2, 16, 4096],
    [15, 17, 2050],
    [16, 100, 8],
    [0, 10, 10],
    [2, 0, 5],
    [2, 5, 0],
];

#[test]
fn ragged_sizes() {
    for element in ELEMENTS {
        for (seed, [m, n, k]) in (1..).zip(SIZES) {
            for rows in [16, 32] {
                let kernel = Gemv {
                    rows,
                    ..Gemv::new(element, n)
                };
                let problem = FewRows { kernel, m, n, k };
                let what = format!("{element} {m}x{n}x{k} by {rows} rows");
                let outcome = right(&problem, &problem.random(seed), &what);
                assert_eq!(outcome.launches == 0, n == 0, "{what}");
                for access in &outcome.accesses {
                    let proof = &access.proof;
                    assert_eq!(proof.wavefronts, proof.ideal, "{what}: {proof:?}");
                }
            }
        }
    }
}

#[test]
fn results_in_f32() {
    for element in ELEMENTS {
        let kernel = Gemv {
            result: Element::F32,
            ..Gemv::new(element, 100)
        };
        let problem = FewRows {
            kernel,
            m: 5,
            n: 100,
            k: 300,
        };
        right(&problem, &problem.random(3), &format!("{element} to f32"));
    }
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    let kernel = Gemv::new(Element::Bf16, 70);
    let whole = FewRows {
        kernel,
        m: 16,
        n: 70,
        k: 900,
    };
    let inputs = whole.random(5);
    let all = right(&whole, &inputs, "16 rows")
        .bytes("y")
        .expect("y")
        .to_vec();
    let one = FewRows { m: 1, ..whole };
    // The first row of x is what a problem of one row has.
    let mut first = one.random(9);
    for j in 0..900 {
        first[0].set(0, j, inputs[0].at(0, j));
    }
    first[1] = inputs[1].clone();
    let alone = right(&one, &first, "one row")
        .bytes("y")
        .expect("y")
        .to_vec();
    assert_eq!(alone[..], all[..alone.len()]);
}

#[test]
fn what_there_is_no_kernel_for() {
    let auto = Gemv::new(Element::F16, 1000);
    for (kernel, code) in [
        (Gemv { rows: 8, ..auto }, "number"),
        (
            Gemv {
                element: Element::F32,
                ..auto
            },
            "element",
        ),
        (
            Gemv {
                result: Element::Bf16,
                ..auto
            },
            "element",
        ),
        (
            Gemv {
                result: Element::S8,
                ..auto
            },
            "element",
        ),
    ] {
        assert_eq!(gemv(kernel, Arch(80)).expect_err("refused").code(), code);
    }
    assert_eq!(RESULTS.len(), 3);
    // 8-bit floats have their instruction from sm_89 on.
    let kernel = Gemv::new(Element::E4m3, 1000);
    assert!(gemv(kernel, Arch(80)).is_err() && gemv(kernel, Arch(89)).is_ok());
}
