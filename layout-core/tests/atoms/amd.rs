//! MFMA and WMMA against the tables of AMD's matrix instruction calculator.

use layout_core::atoms::{self, MmaAtom, Scalar, Target};

use crate::golden::{compare, covers, once, table, tables};

const MFMA: &str = include_str!("../../../tests/golden/atoms/mfma.csv");
const WMMA: &str = include_str!("../../../tests/golden/atoms/wmma.csv");

#[test]
fn mfma_is_as_the_calculator_says() {
    let golden = tables(MFMA);
    let mut used = std::collections::BTreeSet::new();
    assert_eq!(atoms::MFMA_ATOMS.len(), 39);
    assert_eq!(atoms::MFMA_CDNA2_NAMES.len(), atoms::MFMA_ATOMS.len());
    for (atom, other) in atoms::MFMA_ATOMS.iter().zip(atoms::MFMA_CDNA2_NAMES) {
        assert_eq!((atom.threads, atom.m), (64, atom.n));
        assert_eq!(atom.checked().unwrap(), **atom);
        for name in [atom.name, other] {
            if name.is_empty() {
                continue;
            }
            for (operand, layout, rows, columns) in [
                ("A", &atom.a, atom.m, atom.k),
                ("B", &atom.b, atom.n, atom.k),
                ("D", &atom.d, atom.m, atom.n),
            ] {
                let key = format!("{operand} {name}");
                compare(
                    &key,
                    layout,
                    table(&golden, &key),
                    |[row, column, block]| row + rows * column + rows * columns * block,
                );
                once(&key, layout, rows * columns * atom.blocks);
                used.insert(key);
            }
        }
        let both = matches!(atom.target, Target::Gfx("gfx90a, gfx942"));
        assert_eq!(both, !other.is_empty(), "{}", atom.name);
    }
    // Every MFMA that the calculator knows of the two chips is there.
    let unused: Vec<&String> = golden.keys().filter(|key| !used.contains(*key)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn wmma_is_as_the_calculator_says() {
    let golden = tables(WMMA);
    assert_eq!(atoms::WMMA_ATOMS.len(), 12);
    for atom in atoms::WMMA_ATOMS {
        let key = |operand: &str| format!("{operand} {} wave{}", atom.name, atom.threads);
        for (operand, layout) in [("A", &atom.a), ("B", &atom.b)] {
            let expected = table(&golden, &key(operand));
            compare(&key(operand), layout, expected, |[row, k, _]| row + 16 * k);
            // Each group of 16 lanes holds everything.
            covers(&key(operand), expected, 256, atom.threads as usize / 16);
        }
        compare(
            &key("D"),
            &atom.d,
            table(&golden, &key("D")),
            |[row, column, _]| row + 16 * column,
        );
        once(&key("D"), &atom.d, 256);
        assert_eq!(atom.checked().unwrap(), **atom);
    }
    assert_eq!(golden.len(), 3 * 12);
}

#[test]
fn registers_are_those_of_the_calculator() {
    let registers = |atom: MmaAtom| atom.registers();
    assert_eq!(registers(atoms::MFMA_F32_32X32X8_F16), [2, 2, 16]);
    assert_eq!(registers(atoms::MFMA_F32_32X32X1_2B_F32), [1, 1, 32]);
    assert_eq!(registers(atoms::MFMA_F64_16X16X4_F64), [2, 2, 8]);
    assert_eq!(registers(atoms::MFMA_I32_16X16X32_I8), [2, 2, 4]);
    assert_eq!(registers(atoms::MFMA_F32_32X32X16_FP8_BF8), [2, 2, 16]);
    // One half of each register for a C of 16 bits.
    assert_eq!(registers(atoms::WMMA_F16_F16), [8, 8, 8]);
    assert_eq!(registers(atoms::WMMA_F32_F16_W64), [8, 8, 4]);
    assert_eq!(registers(atoms::WMMA_I32_IU4), [2, 2, 8]);
    assert_eq!(atoms::WMMA_I32_IU8.a_type, Scalar::Iu8);
}
