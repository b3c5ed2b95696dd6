//! The fragments of wgmma against the formulas of PTX ISA 9.0, section 9.7.15.5, for all threads and values.

use layout_core::atoms::{self, Scalar};
use layout_core::{Layout, LayoutError};

type Formula = fn(lane: i64, i: i64) -> (i64, i64);

fn g(lane: i64) -> i64 {
    lane >> 2
}

fn t(lane: i64) -> i64 {
    lane & 3
}

/// Compares a fragment of `rows` rows and `columns` columns with a formula for (row, column).
fn check(name: &str, fragment: &Layout, threads: i64, shape: (i64, i64), formula: Formula) {
    let values = shape.0 * shape.1 / threads;
    assert_eq!(fragment.get(0).unwrap().size(), threads, "{name}: threads");
    assert_eq!(fragment.get(1).unwrap().size(), values, "{name}: values");
    for lane in 0..threads {
        for i in 0..values {
            let (row, column) = formula(lane, i);
            assert!(row < shape.0 && column < shape.1, "{name}: formula");
            assert_eq!(
                fragment.at(&[lane, i]),
                row + shape.0 * column,
                "{name}: lane {lane}, value {i}"
            );
        }
    }
    assert!(
        fragment.is_bijective(),
        "{name}: every element exactly once"
    );
}

// (row, column) of A and C, as in the PTX ISA.
fn a_one_neighbour(lane: i64, i: i64) -> (i64, i64) {
    (g(lane) + 8 * (i & 1), t(lane) + 4 * (i >> 1))
}

fn a_16x32_s8(lane: i64, i: i64) -> (i64, i64) {
    (
        g(lane) + 8 * ((i >> 2) & 1),
        4 * t(lane) + (i & 3) + 16 * (i >> 3),
    )
}

/// Thread of the warpgroup to (warp, lane).
fn warp(thread: i64) -> (i64, i64) {
    (thread / 32, thread % 32)
}

fn wgmma_d(thread: i64, i: i64) -> (i64, i64) {
    let (w, lane) = warp(thread);
    (
        16 * w + g(lane) + 8 * ((i >> 1) & 1),
        8 * (i >> 2) + 2 * t(lane) + (i & 1),
    )
}

fn wgmma_a_8(thread: i64, i: i64) -> (i64, i64) {
    let (w, lane) = warp(thread);
    let (row, column) = a_16x32_s8(lane, i);
    (16 * w + row, column)
}

fn wgmma_a_32(thread: i64, i: i64) -> (i64, i64) {
    let (w, lane) = warp(thread);
    let (row, column) = a_one_neighbour(lane, i);
    (16 * w + row, column)
}

#[test]
fn wgmma_fragments_are_those_of_the_manual() {
    for n in (8..=256).step_by(8) {
        let d = atoms::wgmma_d(n).unwrap();
        check("wgmma D", &d, 128, (64, n), wgmma_d);
    }
    check(
        "wgmma A, 16 bits",
        &atoms::wgmma_a(Scalar::Bf16),
        128,
        (64, 16),
        wgmma_d,
    );
    check(
        "wgmma A, 8 bits",
        &atoms::wgmma_a(Scalar::E4m3),
        128,
        (64, 32),
        wgmma_a_8,
    );
    check(
        "wgmma A, tf32",
        &atoms::wgmma_a(Scalar::Tf32),
        128,
        (64, 8),
        wgmma_a_32,
    );
}

#[test]
fn wgmma_refuses_what_the_instruction_does() {
    for n in [0, -8, 4, 12, 257, 264] {
        assert!(atoms::wgmma(n, Scalar::F16, Scalar::F32).is_err(), "{n}");
    }
    assert!(atoms::wgmma(24, Scalar::S8, Scalar::S32).is_ok());
    assert!(atoms::wgmma(40, Scalar::S8, Scalar::S32).is_err());
    assert!(atoms::wgmma(64, Scalar::F64, Scalar::F64).is_err());
    assert!(atoms::wgmma(64, Scalar::Bf16, Scalar::F16).is_err());
    let message = |result: Result<_, LayoutError>| {
        result.map(|_: atoms::MmaAtom| ()).unwrap_err().to_string()
    };
    assert_eq!(
        message(atoms::wgmma(264, Scalar::F16, Scalar::F32)),
        "wgmma: n is 264; use a multiple of 8 from 8 to 256"
    );
    assert_eq!(
        message(atoms::wgmma(40, Scalar::S8, Scalar::S32)),
        "wgmma of s8 or u8: n is 40; use 8, 16, 24, 32 or a multiple of 16 up to 256"
    );
    assert_eq!(
        message(atoms::wgmma(64, Scalar::Bf16, Scalar::F16)),
        "wgmma: bf16 into a type other than f32 is not supported; use f16 into f16 or f32; bf16 or tf32 into f32; \
         e4m3 or e5m2 into f16 or f32; s8 or u8 into s32"
    );
    let atom = atoms::wgmma(128, Scalar::Bf16, Scalar::F32).unwrap();
    assert_eq!((atom.k, atom.registers()), (16, [4, 0, 64]));
}

#[test]
fn eight_values_of_wgmma_d_are_one_stmatrix_x4() {
    // Within a warp, registers 8j..8j+7 of D cover 16 rows and 16 columns like the four matrices of stmatrix.x4.
    let d = atoms::wgmma_d(64).unwrap();
    let source = atoms::STMATRIX_X4.src;
    for lane in 0..32 {
        for j in 0..4 {
            for i in 0..8 {
                let element = d.at(&[lane, 8 * j + i]);
                let (row, column) = (element % 64, element / 64 - 16 * j);
                let matrix = row / 8 + 2 * (column / 8);
                let within = 8 * (row % 8) + column % 8;
                assert_eq!(source.at(&[lane, i]), within + 64 * matrix);
            }
        }
    }
}
