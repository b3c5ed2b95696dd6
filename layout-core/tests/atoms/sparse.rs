//! `mma.sp`: the compressed A, B, C, and the metadata.

use std::collections::BTreeMap;

use layout_core::atoms::{self, Scalar, SparseMmaAtom};
use layout_core::{Layout, LayoutError};

use crate::golden::{compare, covers, once, table, tables};

const SPARSE: &str = include_str!("../../../tests/golden/atoms/sparse.csv");
const MMA_SYNC: &str = include_str!("../../../tests/golden/atoms/mma_sync.csv");

fn all() -> Vec<SparseMmaAtom> {
    let listed = atoms::SPARSE_MMA_ATOMS
        .iter()
        .chain(atoms::SPARSE_E2M1_ATOMS);
    listed
        .map(|atom| **atom)
        .chain(atoms::mma_sp_f8f6f4_atoms())
        .collect()
}

#[test]
fn operands_are_those_of_the_manual() {
    let (golden, dense) = (tables(SPARSE), tables(MMA_SYNC));
    assert_eq!(all().len(), 2 * 28 + 2 + 50);
    for SparseMmaAtom { mma, .. } in all() {
        let (k, bits) = (mma.k, mma.slot_bits[0]);
        compare(
            mma.name,
            &mma.a,
            table(&golden, &format!("A m16n8k{k} b{bits}")),
            |[row, column, _]| row + 16 * column,
        );
        compare(
            mma.name,
            &mma.b,
            table(&golden, &format!("B m16n8k{k} b{bits}")),
            |[n, k, _]| n + 8 * k,
        );
        compare(
            mma.name,
            &mma.c,
            table(&dense, "C m16n8"),
            |[row, column, _]| row + 16 * column,
        );
        once(mma.name, &mma.a, 16 * k / 2);
        once(mma.name, &mma.b, 8 * k);
        once(mma.name, &mma.c, 16 * 8);
    }
}

#[test]
fn metadata_is_where_the_hardware_reads_it() {
    let golden = tables(SPARSE);
    for atom in all() {
        let (name, k, bits) = (atom.mma.name, atom.mma.k, atom.mma.slot_bits[0]);
        let chunks = k / atom.chunk;
        once(name, &atom.metadata, 16 * chunks);
        assert_eq!(atom.checked().unwrap(), atom);
        assert!(!golden.contains_key(&format!(
            "metadata m16n8k{k} b{bits} selector {}",
            atom.selectors()
        )));
        for selector in 0..atom.selectors() {
            let golden = table(
                &golden,
                &format!("metadata m16n8k{k} b{bits} selector {selector}"),
            );
            covers(name, golden, 16 * chunks, 1);
            // Every field of every lane whose register is read, and no other lane's.
            let mut found: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
            for provider in 0..atom.metadata.get(0).unwrap().size() {
                let lane = atom.providers.at(&[selector, provider]);
                for field in 0..8 {
                    let index = atom.metadata.at(&[provider, field]);
                    assert!(
                        found
                            .insert((lane, field), (index % 16, index / 16))
                            .is_none()
                    );
                }
            }
            assert_eq!(found.len(), 8 * golden.len(), "{name}");
            for (lane, places) in golden {
                for (field, [row, chunk, _]) in places.iter().enumerate() {
                    let field = field as i64;
                    assert_eq!(
                        found[&(*lane, field)],
                        (*row, *chunk),
                        "{name}: lane {lane}, field {field}"
                    );
                    assert_eq!(
                        atom.metadata_of(*row, *chunk, selector).unwrap(),
                        (*lane, field)
                    );
                }
            }
        }
        for (row, chunk, selector) in [
            (16, 0, 0),
            (-1, 0, 0),
            (0, chunks, 0),
            (0, 0, atom.selectors()),
            (0, 0, -1),
        ] {
            assert_eq!(
                atom.metadata_of(row, chunk, selector).unwrap_err().code(),
                "invalid_parameter"
            );
        }
    }
}

#[test]
fn chunks_are_those_of_the_types() {
    for atom in all() {
        let expected = match (atom.mma.a_type, atom.mma.slot_bits[0]) {
            (Scalar::Tf32, _) => (2, 1),
            (_, 4) => (8, 2),
            _ => (4, 1),
        };
        assert_eq!((atom.chunk, atom.unit), expected, "{}", atom.mma.name);
        assert_eq!(atom.stored(), atom.chunk / 2);
        let values = 16 * atom.mma.k / 2 / 32;
        assert_eq!(atom.mma.values(), [values, 8 * atom.mma.k / 32, 4]);
        assert_eq!(
            atom.ordered,
            atom.mma.name.starts_with("mma.sp::ordered_metadata.")
        );
    }
    assert_eq!(atoms::MMA_SP_M16N8K32_F16.mma.registers(), [4, 4, 4]);
    assert_eq!(
        atoms::MMA_SP_ORDERED_M16N8K128_U4.mma.registers(),
        [4, 4, 4]
    );
    assert_eq!(atoms::MMA_SP_M16N8K8_TF32.mma.registers(), [2, 2, 4]);
}

#[test]
fn constructor_refuses_parts_that_do_not_fit() {
    let atom = atoms::MMA_SP_M16N8K16_F16;
    let new = |shape, metadata, providers| {
        SparseMmaAtom::new(atom.mma, false, shape, metadata, providers)
    };
    assert_eq!(new([4, 1], atom.metadata, atom.providers), Ok(atom));
    let refused = |result: Result<SparseMmaAtom, LayoutError>| result.unwrap_err().code();
    for shape in [[0, 1], [3, 1], [4, 0], [4, 4], [32, 1]] {
        assert_eq!(
            refused(new(shape, atom.metadata, atom.providers)),
            "invalid_parameter",
            "{shape:?}"
        );
    }
    let layout = |text| Layout::parse(text).unwrap();
    assert_eq!(
        refused(new([4, 1], layout("(8,8):(1,8)"), layout("(4,8):(8,4)"))),
        "unsupported"
    );
    assert_eq!(
        refused(new([4, 1], layout("(8,8):(1,4)"), atom.providers)),
        "unsupported"
    );
    assert_eq!(
        refused(new([4, 1], atom.metadata, layout("(4,4):(1,4)"))),
        "unsupported"
    );
    assert_eq!(
        refused(new([8, 1], atom.metadata, atom.providers)),
        "unsupported"
    );
    let mut wrong = atom.mma;
    wrong.a = atoms::MMA_M16N8K16_F16.a;
    assert!(SparseMmaAtom::new(wrong, false, [4, 1], atom.metadata, atom.providers).is_err());
    assert_eq!(
        atoms::mma_sp_f8f6f4(Scalar::S8, Scalar::E4m3, Scalar::F32)
            .unwrap_err()
            .code(),
        "unsupported"
    );
}
