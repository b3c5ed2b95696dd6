//! Products of few rows.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{FewRows, Problem};
use tilewright::kernels::gemm::{Activation, Bias, Epilogue};
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
                let problem = FewRows::new(kernel, [m, n, k]);
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
fn results_of_every_type() {
    for element in ELEMENTS {
        for result in RESULTS {
            let kernel = Gemv {
                result,
                ..Gemv::new(element, 100)
            };
            let problem = FewRows::new(kernel, [5, 100, 300]);
            let what = format!("{element} to {result}");
            right(&problem, &problem.random(3), &what);
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    let kernel = Gemv::new(Element::Bf16, 70);
    let whole = FewRows::new(kernel, [16, 70, 900]);
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

const BIASES: [Bias; 3] = [Bias::None, Bias::Row, Bias::Column];
const ACTIVATIONS: [Activation; 3] = [Activation::Identity, Activation::Relu, Activation::Gelu];

/// Every epilogue, with and without α and β, over ragged sizes.
#[test]
fn epilogues() {
    let mut seed = 1;
    for element in ELEMENTS {
        for (bias, activation) in BIASES.into_iter().flat_map(|b| ACTIVATIONS.map(|a| (b, a))) {
            for scaled in [false, true] {
                let result = RESULTS[seed as usize % 3];
                let kernel = Gemv {
                    result,
                    epilogue: Epilogue { bias, activation },
                    scaled,
                    ..Gemv::new(element, 100)
                };
                for [m, n, k] in [[1, 1, 3], [16, 65, 200], [5, 48, 512], [3, 33, 0]] {
                    let problem = FewRows {
                        scalars: [-1.5, 0.75],
                        ..FewRows::new(kernel, [m, n, k])
                    };
                    let what = format!("{kernel:?} {m}x{n}x{k}");
                    right(&problem, &problem.random(seed), &what);
                    seed += 1;
                }
            }
        }
    }
}

/// As in BLAS: with β = 0 y is not read, with α = 0 x and w are not; other factors carry NaN on. Of an activation NaN stays NaN.
#[test]
fn factors_of_0_and_nan() {
    for activation in ACTIVATIONS {
        let kernel = Gemv {
            result: Element::F32,
            epilogue: Epilogue {
                bias: Bias::Column,
                activation,
            },
            scaled: true,
            ..Gemv::new(Element::Bf16, 40)
        };
        for scalars in [
            [0.0, 0.0],
            [1.0, 0.0],
            [0.0, -2.0],
            [f32::NAN, 0.0],
            [1.0, f32::NAN],
        ] {
            let problem = FewRows {
                scalars,
                ..FewRows::new(kernel, [3, 40, 70])
            };
            let mut inputs = problem.random(9);
            if scalars[0] == 0.0 {
                inputs[0].set(1, 5, f64::NAN);
                inputs[1].set(7, 5, f64::INFINITY);
            }
            if scalars[1] == 0.0 {
                inputs[3].set(2, 6, f64::NAN);
            }
            right(&problem, &inputs, &format!("{activation} {scalars:?}"));
        }
    }
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for element in ELEMENTS {
        for scaled in [false, true] {
            let epilogue = Epilogue {
                bias: if scaled { Bias::Column } else { Bias::None },
                activation: if scaled {
                    Activation::Gelu
                } else {
                    Activation::Identity
                },
            };
            for rows in [16, 32] {
                let kernel = Gemv {
                    rows,
                    epilogue,
                    scaled,
                    ..Gemv::new(element, 40)
                };
                for arch in [Arch(89), Arch(90), Arch(120)] {
                    let kernel = gemv(kernel, arch).expect("proven");
                    let assembly = ptxas.assemble(&kernel.ptx, &arch.to_string());
                    let assembly =
                        assembly.unwrap_or_else(|e| panic!("{} {arch}: {e}", kernel.name()));
                    // On sm_90, where ptxas widens the 8-bit operands of mma.sync, it spills a few words.
                    let most = if element == Element::E4m3 { 32 } else { 0 };
                    for resources in &assembly.kernels {
                        let spilled = resources.spill_store_bytes;
                        assert!(spilled <= most, "{} {arch}: {spilled}", kernel.name());
                    }
                }
            }
        }
    }
}

/// A plain product has no parameters that it does not need.
#[test]
fn names_and_parameters() {
    let plain = Gemv::new(Element::Bf16, 40);
    let full = Gemv {
        epilogue: Epilogue {
            bias: Bias::Row,
            activation: Activation::Gelu,
        },
        scaled: true,
        ..plain
    };
    for (what, name, params) in [
        (plain, "gemv_bf16_16", "m n k x w y"),
        (
            full,
            "gemv_bf16_16_scaled_bias_row_gelu",
            "m n k x w y bias alpha beta",
        ),
    ] {
        let kernel = gemv(what, Arch(80)).expect("proven");
        let names: Vec<&str> = kernel.params().iter().map(|p| p.name.as_str()).collect();
        assert_eq!((kernel.name(), names.join(" ").as_str()), (name, params));
    }
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
