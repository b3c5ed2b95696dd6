//! Copies against the formulas of PTX ISA 9.0 (ldmatrix, stmatrix, cp.async), for all lanes and values.

use layout_core::atoms::{self, CopyAtom, Scalar, Target};
use layout_core::{Layout, LayoutError};

use crate::golden::{Place, table, tables};

fn g(lane: i64) -> i64 {
    lane >> 2
}

fn t(lane: i64) -> i64 {
    lane & 3
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
        assert!(!atom.stores && atom.target == Target::Sm(75));
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
        assert!(atom.stores && atom.target == Target::Sm(90));
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
    let golden = include_str!("../../../tests/golden/ldmatrix_x4_16x16_f16.csv");
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
    let golden = include_str!("../../../tests/golden/swizzle_2_3_2_rows.csv");
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

const BYTE_MATRICES: &str = include_str!("../../../tests/golden/atoms/byte_matrices.csv");

#[test]
fn byte_matrices_are_those_of_the_manual() {
    let golden = tables(BYTE_MATRICES);
    assert_eq!(atoms::BYTE_MATRIX_ATOMS.len(), 15);
    for atom in atoms::BYTE_MATRIX_ATOMS {
        let name = atom.name;
        let parts: Vec<&str> = name.split('.').collect();
        let (operation, shape, num) = (parts[0], parts[3], parts[4]);
        let rows = atom.matrix[0];
        assert_eq!(
            (rows, atom.matrix[1]),
            (if shape == "m16n16" { 16 } else { 8 }, 16)
        );
        assert_eq!(atom.stores, operation == "stmatrix", "{name}");
        assert_eq!(
            atom.elements(),
            16 * rows * num[1..].parse::<i64>().unwrap()
        );
        let number = |[row, byte, matrix]: Place| byte + 16 * row + 16 * rows * matrix;
        let registers = atom.registers();
        let expected = table(&golden, &format!("{operation} {shape} {num}"));
        crate::golden::compare(name, &registers, expected, number);
        crate::golden::once(name, &registers, atom.elements());
        let pointed = table(&golden, &format!("rows m{rows} {num}"));
        for (lane, places) in pointed {
            for byte in 0..16 {
                let [row, _, matrix] = places[0];
                assert_eq!(
                    atom.memory().at(&[*lane, byte]),
                    number([row, byte, matrix]),
                    "{name}: lane {lane}"
                );
            }
        }
        // The lanes above repeat the addresses of those below.
        for lane in 0..32 {
            let below = lane % pointed.len() as i64;
            assert_eq!(atom.memory().at(&[lane, 0]), atom.memory().at(&[below, 0]));
        }
        assert_eq!(
            atom.memory_bits,
            match parts.last() {
                Some(&"b4x16_p64") => 4,
                Some(&"b6x16_p32") => 6,
                _ => 8,
            }
        );
        let rebuilt = CopyAtom::new(
            name,
            8,
            atom.src,
            atom.dst,
            atom.stores,
            atom.matrix,
            atom.target,
        );
        if atom.memory_bits == 8 {
            assert_eq!(rebuilt, Ok(**atom));
        }
    }
}

#[test]
fn transposed_bytes_are_operands_of_an_8_bit_mma() {
    // B of m16n8k32 stored across k: two matrices of 16 k by 16 n give the B of two atoms side by side. Register r of matrix j is
    // k = 16j + 4t.. of column g + 8·(r & 1): register j of the B of atom r & 1.
    let b = atoms::MMA_M16N8K32_E4M3.b;
    let load = atoms::LDMATRIX_M16N16_X2.dst;
    for lane in 0..32 {
        for value in 0..16 {
            let (byte, side, matrix) = (value % 4, value / 4 % 2, value / 8);
            let element = load.at(&[lane, value]);
            let (n, k) = (element % 16, element / 16);
            assert_eq!(b.at(&[lane, 4 * matrix + byte]), (n - 8 * side) + 8 * k);
        }
    }
    // C of m16n8, packed to bytes, is what the store takes.
    let c = atoms::MMA_M16N8K32_E4M3.c;
    for lane in 0..32 {
        for value in 0..4 {
            let element = atoms::STMATRIX_M16N8_X1.src.at(&[lane, value]);
            assert_eq!(c.at(&[lane, value]), element);
        }
    }
}

#[test]
fn copies_refuse_other_widths() {
    let message = |result: Result<CopyAtom, LayoutError>| result.unwrap_err().to_string();
    assert_eq!(
        message(atoms::vector_copy(3, Scalar::F16, false)),
        "a vector copy: the width of the vector in bits is 48; use 8, 16, 32, 64 or 128"
    );
    assert_eq!(
        message(atoms::LDMATRIX_M8N16_X1_B4.recast(16)),
        "recast of a copy atom: ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 is not supported; \
         use a copy that does not widen its elements"
    );
    assert_eq!(
        atoms::addresses_for(&atoms::LDMATRIX_X2, &atoms::MMA_M16N8K16_F16.a)
            .unwrap_err()
            .to_string(),
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16: the number of values of the fragment is 8; use 4"
    );
}
