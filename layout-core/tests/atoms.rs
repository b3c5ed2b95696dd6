//! Every atom against the formulas of the PTX ISA (and of the R700 manual), for all lanes and values. The formulas are
//! written out here, apart from the layouts.

use layout_core::Layout;
use layout_core::atoms::{self, CopyAtom, MmaAtom, Scalar};

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

// (row, column) of A and C, (n, k) of B, as in the PTX ISA.
fn c_16x8(lane: i64, i: i64) -> (i64, i64) {
    (
        if i < 2 { g(lane) } else { g(lane) + 8 },
        t(lane) * 2 + (i & 1),
    )
}

fn c_8x8(lane: i64, i: i64) -> (i64, i64) {
    (g(lane), t(lane) * 2 + (i & 1))
}

fn a_one_neighbour(lane: i64, i: i64) -> (i64, i64) {
    (g(lane) + 8 * (i & 1), t(lane) + 4 * (i >> 1))
}

fn a_8x4(lane: i64, _: i64) -> (i64, i64) {
    (lane >> 2, lane % 4)
}

fn b_one_neighbour(lane: i64, i: i64) -> (i64, i64) {
    (g(lane), t(lane) + 4 * i)
}

fn a_16x8_f16(lane: i64, i: i64) -> (i64, i64) {
    (
        if i < 2 { g(lane) } else { g(lane) + 8 },
        t(lane) * 2 + (i & 1),
    )
}

fn a_16x16_f16(lane: i64, i: i64) -> (i64, i64) {
    (
        g(lane) + 8 * ((i >> 1) & 1),
        2 * t(lane) + (i & 1) + 8 * (i >> 2),
    )
}

fn b_f16(lane: i64, i: i64) -> (i64, i64) {
    (g(lane), 2 * t(lane) + (i & 1) + 8 * (i >> 1))
}

fn a_8x16_s8(lane: i64, i: i64) -> (i64, i64) {
    (g(lane), t(lane) * 4 + i)
}

fn a_16x16_s8(lane: i64, i: i64) -> (i64, i64) {
    (
        if i < 4 { g(lane) } else { g(lane) + 8 },
        t(lane) * 4 + (i & 3),
    )
}

fn a_16x32_s8(lane: i64, i: i64) -> (i64, i64) {
    (
        g(lane) + 8 * ((i >> 2) & 1),
        4 * t(lane) + (i & 3) + 16 * (i >> 3),
    )
}

fn b_s8(lane: i64, i: i64) -> (i64, i64) {
    (g(lane), 4 * t(lane) + (i & 3) + 16 * (i >> 2))
}

/// The formulas for A, B and C of an atom, by its shape and the width of its operands.
fn formulas(atom: &MmaAtom) -> [Formula; 3] {
    match (atom.m, atom.k, atom.a_type.bits()) {
        (8, 4, 64) => [a_8x4, b_one_neighbour, c_8x8],
        (16, 4 | 8, 64 | 32) | (16, 16, 64) => [a_one_neighbour, b_one_neighbour, c_16x8],
        (16, 8, 16) => [a_16x8_f16, b_f16, c_16x8],
        (16, 16, 16) => [a_16x16_f16, b_f16, c_16x8],
        (8, 16, 8) => [a_8x16_s8, b_s8, c_8x8],
        (16, 16, 8) => [a_16x16_s8, b_s8, c_16x8],
        (16, 32, 8) => [a_16x32_s8, b_s8, c_16x8],
        other => panic!("no formula for {other:?}"),
    }
}

#[test]
fn mma_fragments_are_those_of_the_manual() {
    assert_eq!(atoms::MMA_ATOMS.len(), 20);
    for atom in atoms::MMA_ATOMS {
        let [a, b, c] = formulas(atom);
        check(atom.name, &atom.a, 32, (atom.m, atom.k), a);
        check(atom.name, &atom.b, 32, (atom.n, atom.k), b);
        check(atom.name, &atom.c, 32, (atom.m, atom.n), c);
    }
}

#[test]
fn mma_names_say_what_the_atoms_are() {
    for atom in atoms::MMA_ATOMS {
        let name = format!(
            "mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}",
            atom.m,
            atom.n,
            atom.k,
            atom.c_type.name(),
            atom.a_type.name(),
            atom.b_type.name(),
            atom.c_type.name()
        );
        assert_eq!(atom.name, name);
    }
    // Register counts, from the fragment tables of the PTX ISA.
    assert_eq!(atoms::MMA_M16N8K16_F16.registers(), [4, 2, 4]);
    assert_eq!(atoms::MMA_M16N8K16_F16_F16.registers(), [4, 2, 2]);
    assert_eq!(atoms::MMA_M16N8K8_TF32.registers(), [4, 2, 4]);
    assert_eq!(atoms::MMA_M16N8K32_S8.registers(), [4, 2, 4]);
    assert_eq!(atoms::MMA_M16N8K16_F64.registers(), [8, 4, 4]);
    assert_eq!(atoms::MMA_M8N8K4_F64.registers(), [1, 1, 2]);
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

#[test]
fn ldmatrix_points_and_gets_as_in_the_manual() {
    for (atom, matrices, trans) in [
        (&atoms::LDMATRIX_X1, 1, false),
        (&atoms::LDMATRIX_X2, 2, false),
        (&atoms::LDMATRIX_X4, 4, false),
        (&atoms::LDMATRIX_X1_TRANS, 1, true),
        (&atoms::LDMATRIX_X2_TRANS, 2, true),
        (&atoms::LDMATRIX_X4_TRANS, 4, true),
    ] {
        check_matrix(atom, &atom.src, &atom.dst, matrices, trans);
        assert!(!atom.stores && atom.min_arch == 75);
    }
    for (atom, matrices, trans) in [
        (&atoms::STMATRIX_X1, 1, false),
        (&atoms::STMATRIX_X2, 2, false),
        (&atoms::STMATRIX_X4, 4, false),
        (&atoms::STMATRIX_X1_TRANS, 1, true),
        (&atoms::STMATRIX_X2_TRANS, 2, true),
        (&atoms::STMATRIX_X4_TRANS, 4, true),
    ] {
        check_matrix(atom, &atom.dst, &atom.src, matrices, trans);
        assert!(atom.stores && atom.min_arch == 90);
    }
}

fn check_matrix(atom: &CopyAtom, memory: &Layout, registers: &Layout, matrices: i64, trans: bool) {
    assert!(
        atom.name.contains(&format!(".x{matrices}.")),
        "{}",
        atom.name
    );
    assert_eq!(atom.name.contains(".trans."), trans);
    assert_eq!(atom.elements(), 64 * matrices);
    for lane in 0..32 {
        for position in 0..8 {
            // Upper lanes repeat the lower ones when there are fewer than four matrices.
            let (row, matrix) = (lane & 7, (lane >> 3) % matrices);
            assert_eq!(
                memory.at(&[lane, position]),
                64 * matrix + 8 * row + position
            );
        }
        for register in 0..matrices {
            for half in 0..2 {
                let (row, column) = if trans {
                    (2 * t(lane) + half, g(lane))
                } else {
                    (g(lane), 2 * t(lane) + half)
                };
                assert_eq!(
                    registers.at(&[lane, 2 * register + half]),
                    64 * register + 8 * row + column
                );
            }
        }
    }
    assert!(registers.is_bijective());
}

#[test]
fn golden_ldmatrix_x4_of_a_16x16_half_matrix() {
    let golden = include_str!("../../tests/golden/ldmatrix_x4_16x16_f16.csv");
    let mut rows = 0;
    for line in golden.lines().skip(1) {
        let mut fields = line.split(',');
        let atom = match fields.next().unwrap() {
            "ldmatrix.x4" => atoms::LDMATRIX_X4,
            "ldmatrix.x4.trans" => atoms::LDMATRIX_X4_TRANS,
            other => panic!("{other}"),
        };
        let lane: i64 = fields.next().unwrap().parse().unwrap();
        for (value, expected) in fields.enumerate() {
            // Element `e` of the block is position e % 8 of what some lane points at: lane address row `lane % 16`,
            // column `8·(lane / 16)` of a matrix numbered 16·row + column.
            let element = atom.dst.at(&[lane, value as i64]);
            let pointing = (0..32)
                .find(|&l| atom.src.at(&[l, 0]) == element / 8 * 8)
                .unwrap();
            let number = 16 * (pointing % 16) + 8 * (pointing / 16) + element % 8;
            assert_eq!(number, expected.parse::<i64>().unwrap(), "{line}");
        }
        rows += 1;
    }
    assert_eq!(rows, 64);
}

#[test]
fn golden_swizzle_2_3_2_on_rows_of_32_halves() {
    let golden = include_str!("../../tests/golden/swizzle_2_3_2_rows.csv");
    let tile = layout_core::Swizzled::parse("Sw<2,3,2> o (4,32):(32,1)").unwrap();
    let mut rows = 0;
    for line in golden.lines().skip(1) {
        let mut fields = line.split(',').map(|f| f.parse::<i64>().unwrap());
        let row = fields.next().unwrap();
        for (column, expected) in fields.enumerate() {
            // The swizzle moves elements within a row.
            assert_eq!(
                tile.at(&[row, column as i64]),
                32 * row + expected,
                "{line}"
            );
        }
        rows += 1;
    }
    assert_eq!(rows, 4);
}

#[test]
fn addresses_of_operands_by_ldmatrix() {
    // A of m16n8k16: row (l&7) + 8((l>>3)&1), 16-byte column l >> 4.
    let a = atoms::addresses_for(&atoms::LDMATRIX_X4, &atoms::MMA_M16N8K16_F16.a).unwrap();
    // B of m16n8k16, k contiguous in shared memory: matrix j is columns 8j..8j+8 of k.
    let b = atoms::addresses_for(&atoms::LDMATRIX_X2, &atoms::MMA_M16N8K16_F16.b).unwrap();
    // B of m16n8k16, n contiguous: the rows of the stored matrix run along n, one k each.
    let b_trans =
        atoms::addresses_for(&atoms::LDMATRIX_X2_TRANS, &atoms::MMA_M16N8K16_F16.b).unwrap();
    for lane in 0..32 {
        for position in 0..8 {
            let (row, column) = (
                (lane & 7) + 8 * ((lane >> 3) & 1),
                8 * (lane >> 4) + position,
            );
            assert_eq!(a.at(&[lane, position]), row + 16 * column);
            let (n, k) = (lane & 7, 8 * ((lane >> 3) & 1) + position);
            assert_eq!(b.at(&[lane, position]), n + 8 * k);
            let (n, k) = (position, (lane & 7) + 8 * ((lane >> 3) & 1));
            assert_eq!(b_trans.at(&[lane, position]), n + 8 * k);
        }
    }
    assert!(atoms::addresses_for(&atoms::LDMATRIX_X2, &atoms::MMA_M16N8K16_F16.a).is_err());
    assert!(atoms::addresses_for(&atoms::CP_ASYNC_16, &atoms::MMA_M16N8K16_F16.a).is_err());
}

#[test]
fn cp_async_and_vectors_are_contiguous_by_one_thread() {
    for (atom, bytes) in [
        (atoms::CP_ASYNC_4, 4),
        (atoms::CP_ASYNC_8, 8),
        (atoms::CP_ASYNC_16, 16),
        (atoms::vector_copy(8, Scalar::F16, false).unwrap(), 16),
        (atoms::vector_copy(1, Scalar::F64, true).unwrap(), 8),
        (atoms::vector_copy(1, Scalar::S8, true).unwrap(), 1),
    ] {
        assert_eq!(atom.threads, 1);
        assert_eq!(atom.elements() * atom.element_bits, 8 * bytes);
        for i in 0..atom.elements() {
            assert_eq!((atom.src.at(&[0, i]), atom.dst.at(&[0, i])), (i, i));
        }
    }
    for values in [0, -1, 3, 16] {
        assert!(atoms::vector_copy(values, Scalar::F16, false).is_err());
    }
}

#[test]
fn r700_writes_never_meet() {
    // Bank `thread mod 4`, dword `(thread >> 2)·dst_stride + dst_index` of the bank, entries of 4 dwords; bytes.
    for (threads, stride) in [(64, 64), (64, 16), (128, 32), (256, 8), (1024, 4)] {
        let write = atoms::r700_lds_write(threads, stride).unwrap();
        for thread in 0..threads {
            for slot in 0..stride / 4 {
                let (bank, dword) = (thread % 4, (thread >> 2) * stride + 4 * slot);
                assert_eq!(write.at(&[thread, slot]), 16 * bank + 64 * (dword / 4));
            }
        }
    }
    for (threads, stride) in [(0, 4), (2000, 4), (64, 68), (64, 3), (1024, 8)] {
        assert!(
            atoms::r700_lds_write(threads, stride).is_err(),
            "{threads} {stride}"
        );
    }
}
