//! Matrices quantised with scales.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::Matrix;
use tilewright::host::kernels::{Problem, Quantized, RowOperation, Rows};
use tilewright::kernels::norm::RmsNorm;
use tilewright::kernels::quantize::{Quantize, RESULTS, Scales, Source};
use tilewright::kernels::rows::ELEMENTS;

use super::right;

/// Every kernel for some types.
fn kernels(element: Element, to: Element) -> [Quantize; 5] {
    let [a, b, c] = Scales::ALL.map(|scales| Quantize::new(element, to, scales));
    let of = |source| Quantize { source, ..a };
    [a, b, c, of(Source::Swiglu), of(Source::Gathered)]
}

/// Less than a block and a vector, whole blocks and tiles, and one more; rows that are not aligned.
const SIZES: [[u64; 2]; 10] = [
    [1, 1],
    [1, 16],
    [63, 130],
    [64, 128],
    [65, 129],
    [127, 40],
    [130, 264],
    [3, 400],
    [0, 64],
    [4, 0],
];

#[test]
fn ragged_sizes() {
    for (number, size) in SIZES.into_iter().enumerate() {
        for (which, element) in ELEMENTS.into_iter().enumerate() {
            for kernel in kernels(element, RESULTS[(number + which) % 2]) {
                let problem = Quantized::new(kernel, size);
                right(&problem, &problem.random(3), &format!("{problem:?}"));
            }
        }
    }
}

/// What is between two rows of scales is left as it is.
#[test]
fn scales_with_a_pitch() {
    for kernel in kernels(Element::Bf16, Element::E4m3) {
        if kernel.scales == Scales::Rows {
            continue;
        }
        let packed = Quantized::new(kernel, [70, 300]);
        let problem = Quantized {
            ld_scale: packed.ld_scale + 5,
            ..packed
        };
        let outcome = right(&problem, &problem.random(3), &format!("{problem:?}"));
        let scale = outcome.bytes("scale").expect("scale");
        let tensors = problem.tensors();
        let rows = tensors.last().map_or(0, |t| t.shape[0]) as usize;
        assert_eq!(scale.len(), 4 * rows * problem.ld_scale as usize);
    }
}

/// Blocks of zeros, with NaN, with infinities, and with magnitudes whose scales are subnormal or infinite.
#[test]
fn special_numbers() {
    for to in RESULTS {
        for kernel in kernels(Element::F32, to) {
            let problem = Quantized::new(kernel, [140, 300]);
            let mut inputs = problem.random(4);
            let x = &mut inputs[0];
            let all = |x: &mut Matrix, row: usize, value: f64| {
                (0..x.cols).for_each(|column| x.set(row, column, value));
            };
            // Rows 128 and on are in squares of their own.
            (128..140).for_each(|row| all(x, row, 0.0));
            all(x, 0, 0.0);
            // A product of small gates would be subnormal or 0.
            if kernel.source != Source::Swiglu {
                all(x, 1, f64::powi(0.5, 140));
                all(x, 2, f64::powi(0.5, 122));
                all(x, 3, f64::from(f32::MAX));
                x.set(4, 200, f64::INFINITY);
            }
            x.set(5, 7, f64::NAN);
            x.set(129, 270, f64::NAN);
            right(&problem, &inputs, &format!("{problem:?}"));
        }
    }
}

/// Rows of x that there are not are zeros.
#[test]
fn rows_that_are_none() {
    let kernel = Quantize {
        source: Source::Gathered,
        ..Quantize::new(Element::Bf16, Element::E4m3, Scales::Rows128)
    };
    let problem = Quantized {
        tokens: 9,
        ..Quantized::new(kernel, [70, 200])
    };
    let mut inputs = problem.random(2);
    for (row, number) in [(0, -1), (1, 9), (69, i32::MAX), (33, i32::MIN)] {
        inputs[1].set(0, row, number.into());
    }
    right(&problem, &inputs, "no such tokens");
}

/// A block depends on its elements alone: a row of blocks is the same bits wherever it is, as part of a longer row as well.
#[test]
fn blocks_are_alone() {
    let kernel = Quantize::new(Element::Bf16, Element::E4m3, Scales::Rows128);
    let long = Quantized::new(kernel, [80, 384]);
    let inputs = long.random(6);
    let mut middle = inputs.clone();
    let x = Matrix::random(Element::Bf16, 1, 128, 128, 1);
    middle[0] = x;
    (0..128).for_each(|j| middle[0].set(0, j, inputs[0].at(70, 128 + j)));
    let short = Quantized::new(kernel, [1, 128]);
    let (long, short) = (
        right(&long, &inputs, "long rows"),
        right(&short, &middle, "one block"),
    );
    let (y, block) = (long.bytes("y").expect("y"), short.bytes("y").expect("y"));
    assert_eq!(&y[70 * 384 + 128..70 * 384 + 256], block);
    let (all, one) = (long.bytes("scale"), short.bytes("scale"));
    let (all, one) = (all.expect("scale"), one.expect("scale"));
    assert_eq!(&all[4 * (80 + 70)..4 * (80 + 71)], one);
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for arch in [Arch(89), Arch(90), Arch(120)] {
        for element in ELEMENTS {
            for to in RESULTS {
                for kernel in kernels(element, to) {
                    let problem = Quantized::new(kernel, [4096, 7168]);
                    let kernel = problem.kernel(arch).expect("proven");
                    let assembly = ptxas.assemble(&kernel.ptx, &arch.to_string());
                    for resources in &assembly.expect("it assembles").kernels {
                        assert_eq!(resources.spill_store_bytes, 0, "{problem:?} {arch}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_there_is_no_kernel_for_is_refused() {
    let kernel = Quantize::new(Element::Bf16, Element::E4m3, Scales::Squares);
    let refused = |kernel: Quantize| {
        let problem = Quantized::new(kernel, [64, 64]);
        problem.kernel(Arch(90)).map(|_| ()).unwrap_err()
    };
    for (kernel, expected) in [
        (
            Quantize {
                source: Source::Swiglu,
                ..kernel
            },
            "scales of SwiGLU or of gathered rows: 128x128 is not 1x128",
        ),
        (
            Quantize {
                element: Element::S32,
                ..kernel
            },
            "there is no such kernel for elements of type s32: take f32, f16 or bf16",
        ),
        (
            Quantize {
                to: Element::S8,
                ..kernel
            },
            "there is no such kernel for elements of type s8: take e4m3 or e5m2",
        ),
    ] {
        assert_eq!(refused(kernel).to_string(), expected);
    }
    // 8-bit floats are from sm_89 on.
    let problem = Quantized::new(kernel, [64, 64]);
    assert_eq!(problem.kernel(Arch(80)).unwrap_err().code(), "not_proven");
    let norm = |quantized, cols, arch| {
        let norm = RmsNorm {
            quantized,
            blocks: true,
            residual: false,
        };
        let problem = Rows::new(RowOperation::RmsNorm(norm), Element::F32, 1, cols);
        problem.kernel(arch).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        norm(None, 100, Arch(90)),
        "scales of 1x128: no type to quantise to is not e4m3, e5m2 or s8"
    );
    let long = norm(Some(Element::E4m3), 40_000, Arch(89));
    assert!(
        long.ends_with("a row that is kept: up to 32,768 elements, from sm_90 on up to 131,072")
    );
}
