//! The row kernels of the examples: clean, right and counted as proven over ragged sizes, NaN and infinities as PyTorch has them, quick to prove.

#![allow(clippy::duplicate_mod)] // Each example is a program of its own, with what they share.

#[path = "../../examples/layer_norm.rs"]
#[allow(dead_code)]
mod layer_norm;
#[path = "../../examples/rms_norm.rs"]
#[allow(dead_code)]
mod rms_norm;
#[path = "../../examples/row_sums.rs"]
#[allow(dead_code)]
mod row_sums;
#[path = "../../examples/softmax.rs"]
#[allow(dead_code)]
mod softmax;

use half::{bf16, f16};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::{On, run};

/// Rows and columns: 1, primes, whole and ragged vectors, a tile and one more, several warps, tiles of a loop.
const SIZES: [(usize, usize); 16] = [
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

/// Longer rows: all of a block, and tiles of a loop.
const LONG: [(usize, usize); 4] = [(1, 8200), (1, 32_768), (1, 32_769), (1, 40_001)];

/// Tests of one example; each has its own copy of what they share.
macro_rules! tests {
    ($room:ident, $kernel:ident) => {
        mod $room {
            use super::*;
            use crate::$room::{
                $kernel as K,
                common::Number,
                common::rows::{RowKernel, arguments, compared, kernel, vectors},
            };

            fn right<T: Number>(
                element: Element,
                (rows, cols): (usize, usize),
                change: impl Fn(&mut [T]),
            ) -> Vec<f64> {
                let built = kernel::<K>(element, cols as u64, Arch(80));
                let built = built.unwrap_or_else(|e| panic!("{element} {rows}x{cols}: {e}"));
                assert_eq!(built.proof.covered, ["y"]);
                let mut x = T::random(rows * cols, 7);
                change(&mut x);
                let vectors = vectors::<K, T>(cols, 7);
                let args = arguments::<K, T>(rows, cols, &x, &vectors);
                let outcome = run(&built, On::Emulator, args).expect("runs");
                outcome.assert_clean();
                outcome.assert_counted_as_proven();
                let found = compared::<K, T>(&outcome, cols, &x, &vectors);
                let (worst, ratio) = found.unwrap_or_else(|e| panic!("{}", e.message));
                assert!(
                    ratio <= 1.0,
                    "{element} {rows}x{cols}: an error of {worst} is {ratio} of what rounding allows"
                );
                if K::SUMS {
                    let y: Vec<f32> = outcome.get("y").expect("y");
                    return y.into_iter().map(f64::from).collect();
                }
                let y: Vec<T> = outcome.get("y").expect("y");
                y.into_iter().map(Into::into).collect()
            }

            #[test]
            fn ragged_f32() {
                for size in SIZES {
                    right::<f32>(Element::F32, size, |_| {});
                }
            }

            #[test]
            fn ragged_f16() {
                for size in SIZES {
                    right::<f16>(Element::F16, size, |_| {});
                }
            }

            #[test]
            fn ragged_bf16() {
                for size in SIZES {
                    right::<bf16>(Element::Bf16, size, |_| {});
                }
            }

            #[test]
            fn long_rows() {
                for size in LONG {
                    right::<f32>(Element::F32, size, |_| {});
                    right::<bf16>(Element::Bf16, size, |_| {});
                }
            }

            #[test]
            fn no_rows() {
                right::<f32>(Element::F32, (0, 10), |_| {});
            }

            /// Rows with NaN, with infinities, with nothing but −∞, and a plain one: in registers and in a loop.
            #[test]
            fn special_numbers() {
                for cols in [5, 97, 1025, 33_000] {
                    let rows = if cols > 32_768 { 1 } else { 6 };
                    for first in 0..6 {
                        if rows > 1 && first > 0 {
                            continue;
                        }
                        right::<f32>(Element::F32, (rows, cols), |x| {
                            for (r, row) in x.chunks_mut(cols).enumerate() {
                                match r + first {
                                    0 => row[cols / 2] = f32::NAN,
                                    1 => row[cols - 1] = f32::INFINITY,
                                    2 => row[0] = f32::NEG_INFINITY,
                                    3 => row.fill(f32::NEG_INFINITY),
                                    4 => (row[0], row[cols - 1]) = (f32::INFINITY, f32::NEG_INFINITY),
                                    _ => {}
                                }
                            }
                        });
                    }
                }
            }

            #[test]
            fn the_command_line_reports() {
                use clap::Parser;
                let words = ["f16", "bf16", "f32"].map(|dtype| {
                    ["example", "--dtype", dtype, "--rows", "3", "--cols", "77", "--on", "emulator"]
                });
                for words in words {
                    let command = crate::$room::Command::try_parse_from(words).expect("flags");
                    let report = command.on.run::<K>().unwrap_or_else(|e| panic!("{}", e.message));
                    assert_eq!((&report["passed"], &report["findings"]), (&true.into(), &0.into()));
                    assert_eq!(report["launch"]["params"][1]["name"], "cols");
                    let params = report["launch"]["params"].as_array();
                    let mut values = params.into_iter().flatten().map(|p| &p["value"]);
                    assert!(values.all(|value| !value.is_null()), "{report}");
                }
                let command = crate::$room::Command::try_parse_from(["example", "--cols", "131073"]);
                let failure = command.expect("flags").on.run::<K>().expect_err("too long");
                assert_eq!(failure.code, "too_large", "{}", failure.message);
            }

            #[test]
            fn the_assembler_takes_them() {
                let Some(ptxas) = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1") else {
                    return;
                };
                for arch in [Arch(80), Arch(90), Arch(120)] {
                    for element in [Element::F32, Element::F16, Element::Bf16] {
                        for cols in [1, 97, 1024, 4096, 32_768, 131_072] {
                            let built = kernel::<K>(element, cols, arch).expect("proven");
                            let assembly = ptxas.assemble(&built.ptx, &arch.to_string());
                            let assembly = assembly.unwrap_or_else(|e| panic!("{element} {cols} {arch}: {e}"));
                            // 1024 threads have 64 registers each; beside sm_90, a few bytes may not fit.
                            let most = if arch == Arch(90) { 0 } else { 64 };
                            for resources in &assembly.kernels {
                                let spilled = resources.spill_store_bytes;
                                assert!(
                                    spilled <= most,
                                    "{element} {cols} {arch}: {spilled} bytes are spilled"
                                );
                            }
                        }
                    }
                }
            }

            /// The time of a proof without optimization is no measure; how much there is to prove is.
            #[test]
            fn proofs_are_small() {
                for cols in [1, 100, 1024, 4096, 32_768, 131_072] {
                    let built = kernel::<K>(Element::Bf16, cols, Arch(80)).expect("proven");
                    assert!(built.proof.addresses < 400, "{}", built.proof.addresses);
                }
            }
        }
    };
}

mod of {
    use super::*;
    tests!(layer_norm, LayerNorm);
    tests!(rms_norm, RmsNorm);
    tests!(row_sums, RowSums);
    tests!(softmax, Softmax);
}
