//! `mma.sync`: fragments of one product per warp, of quad pairs, and of the types of `sm_120a`.

use layout_core::atoms::{self, MmaAtom, Scalar, Target};

use crate::golden::{compare, once, table, tables};

const MMA_SYNC: &str = include_str!("../../../tests/golden/atoms/mma_sync.csv");
const QUAD_PAIR: &str = include_str!("../../../tests/golden/atoms/quad_pair.csv");

/// Every dense atom of one product per warp.
fn dense() -> Vec<MmaAtom> {
    let listed = atoms::MMA_ATOMS.iter().chain(atoms::E2M1_ATOMS);
    listed
        .map(|atom| **atom)
        .chain(atoms::mma_f8f6f4_atoms())
        .collect()
}

#[test]
fn fragments_are_those_of_the_manual() {
    let golden = tables(MMA_SYNC);
    let mut used = std::collections::BTreeSet::new();
    let atoms = dense();
    assert_eq!(atoms.len(), 58 + 2 + 50);
    for atom in &atoms {
        let (m, n, k) = (atom.m, atom.n, atom.k);
        let bits = atom.slot_bits[0];
        for (operand, layout, rows) in [("A", &atom.a, m), ("B", &atom.b, n)] {
            let name = format!("{operand} m{m}n8k{k} b{bits}");
            compare(
                atom.name,
                layout,
                table(&golden, &name),
                |[row, column, _]| row + rows * column,
            );
            once(atom.name, layout, rows * k);
            used.insert(name);
        }
        let name = format!("C m{m}n8");
        compare(
            atom.name,
            &atom.c,
            table(&golden, &name),
            |[row, column, _]| row + m * column,
        );
        once(atom.name, &atom.c, m * n);
        assert_eq!(atom.d, atom.c);
        assert_eq!(atom.checked().unwrap(), *atom);
        used.insert(name);
    }
    let unused: Vec<&String> = golden.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn quad_pairs_are_those_of_the_manual() {
    let golden = tables(QUAD_PAIR);
    assert_eq!(atoms::QUAD_PAIR_ATOMS.len(), 12);
    for atom in atoms::QUAD_PAIR_ATOMS {
        let mut parts = atom.name.split('.').skip(4);
        let [a, b, d, _, _, c] = std::array::from_fn(|_| parts.next().unwrap());
        for (layout, name, rows, columns) in [
            (&atom.a, format!("A m8n8k4 {a}"), 8, 4),
            (&atom.b, format!("B m8n8k4 {b}"), 8, 4),
            (&atom.c, format!("C m8n8k4 {c}"), 8, 8),
            (&atom.d, format!("C m8n8k4 {d}"), 8, 8),
        ] {
            compare(
                atom.name,
                layout,
                table(&golden, &name),
                |[row, column, block]| row + rows * column + rows * columns * block,
            );
            once(atom.name, layout, rows * columns * 4);
        }
        assert_eq!((atom.c_type.name(), atom.d_type.name()), (c, d));
        assert_eq!((atom.blocks, atom.target), (4, Target::Sm(70)));
        assert_eq!(atom.checked().unwrap(), **atom);
        assert_eq!(atom.values(), [4, 4, 8]);
        assert_eq!(atom.registers(), [2, 2, if c == "f16" { 4 } else { 8 }]);
    }
}

#[test]
fn names_say_what_the_atoms_are() {
    for atom in atoms::MMA_ATOMS {
        let plain = format!(
            "mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}",
            atom.m,
            atom.n,
            atom.k,
            atom.d_type.name(),
            atom.a_type.name(),
            atom.b_type.name(),
            atom.c_type.name()
        );
        let expected = match atom.name.strip_prefix(plain.as_str()) {
            Some(bits @ (".xor.popc" | ".and.popc")) if atom.a_type == Scalar::B1 => {
                plain.clone() + bits
            }
            _ => plain,
        };
        assert_eq!(atom.name, expected);
    }
    let mut names: Vec<&str> = dense().iter().map(|atom| atom.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), dense().len());
}

#[test]
fn registers_are_those_of_the_fragment_tables() {
    let expected: &[(&MmaAtom, [i64; 3])] = &[
        (&atoms::MMA_M16N8K16_F16, [4, 2, 4]),
        (&atoms::MMA_M16N8K16_F16_F16, [4, 2, 2]),
        (&atoms::MMA_M16N8K8_TF32, [4, 2, 4]),
        (&atoms::MMA_M16N8K32_S8, [4, 2, 4]),
        (&atoms::MMA_M16N8K16_F64, [8, 4, 4]),
        (&atoms::MMA_M8N8K4_F64, [1, 1, 2]),
        (&atoms::MMA_M8N8K32_S4, [1, 1, 2]),
        (&atoms::MMA_M16N8K64_U4_S4, [4, 2, 4]),
        (&atoms::MMA_M8N8K128_B1_XOR, [1, 1, 2]),
        (&atoms::MMA_M16N8K256_B1_AND, [4, 2, 4]),
        (&atoms::MMA_M16N8K16_E5M2_E4M3, [2, 1, 4]),
        (&atoms::MMA_M16N8K32_E4M3_E5M2_F16, [4, 2, 2]),
        (&atoms::MMA_M16N8K64_MXF4, [4, 2, 4]),
    ];
    for (atom, registers) in expected {
        assert_eq!(atom.registers(), *registers, "{}", atom.name);
    }
    // Six- and four-bit values lie in bytes.
    let mixed = atoms::mma_f8f6f4(Scalar::E2m1, Scalar::E3m2, Scalar::F16).unwrap();
    assert_eq!(
        (mixed.registers(), mixed.slot_bits),
        ([4, 2, 2], [8, 8, 16, 16])
    );
}

#[test]
fn kinds_refuse_other_types() {
    let message =
        |result: Result<MmaAtom, layout_core::LayoutError>| result.unwrap_err().to_string();
    assert_eq!(
        message(atoms::mma_f8f6f4(Scalar::F16, Scalar::E4m3, Scalar::F32)),
        "mma.sync of kind::f8f6f4: f16 is not supported; use e4m3, e5m2, e3m2, e2m3 or e2m1"
    );
    assert_eq!(
        message(atoms::mma_f8f6f4(Scalar::E2m1, Scalar::E4m3, Scalar::S32)),
        "mma.sync of kind::f8f6f4: s32 is not supported; use f32 or f16 as accumulator"
    );
}
