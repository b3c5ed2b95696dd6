//! tcgen05: tensor memory and operands in shared memory.

use layout_core::LayoutError;
use layout_core::atoms::tcgen05::{
    CtaGroup, Major, SmemSwizzle, TmemShape, accumulator, smem_operand, smem_operand_strided,
    tmem_copy, tmem_place,
};

use crate::golden::{compare, covers, table, tables};

const TENSOR_MEMORY: &str = include_str!("../../../tests/golden/atoms/tensor_memory.csv");
const SHARED_MEMORY: &str = include_str!("../../../tests/golden/atoms/shared_memory.csv");

fn code<T: std::fmt::Debug>(result: Result<T, LayoutError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn registers_reach_the_lanes_and_columns_of_the_manual() {
    let golden = tables(TENSOR_MEMORY);
    for shape in TmemShape::ALL {
        let mut compared = 0;
        let mut repeat = 1;
        while repeat * shape.registers() <= 128 {
            let splits: &[i64] = match shape {
                TmemShape::L16x32bx2 => &[1, 8, 16],
                _ => &[0],
            };
            for &split in splits {
                let name = match shape {
                    TmemShape::L16x32bx2 => format!("{} x{repeat} split {split}", shape.name()),
                    _ => format!("{} x{repeat}", shape.name()),
                };
                let Some(expected) = golden.get(&name) else {
                    continue;
                };
                let copy = tmem_copy(shape, repeat, split).unwrap();
                compare(&name, &copy.layout, expected, |[lane, column, _]| {
                    lane + 128 * column
                });
                assert_eq!(copy.registers, shape.registers() * repeat);
                covers(&name, expected, 32 * copy.registers, 1);
                let columns = expected
                    .iter()
                    .flat_map(|(_, places)| places)
                    .map(|p| p[1])
                    .max();
                assert_eq!(columns, Some(copy.columns + split - 1), "{name}");
                compared += 1;
            }
            repeat *= 2;
        }
        assert_eq!(compared, 3, "{}", shape.name());
    }
}

#[test]
fn copies_refuse_other_repeats_and_splits() {
    for (shape, repeat, split) in [
        (TmemShape::L32x32b, 0, 0),
        (TmemShape::L32x32b, 3, 0),
        (TmemShape::L32x32b, 256, 0),
        (TmemShape::L16x128b, 128, 0),
        (TmemShape::L16x256b, 64, 0),
        (TmemShape::L16x64b, 1, 1),
        (TmemShape::L16x32bx2, 4, 3),
        (TmemShape::L16x32bx2, 4, 509),
    ] {
        assert_eq!(
            code(tmem_copy(shape, repeat, split)),
            "invalid_parameter",
            "{shape:?} {repeat} {split}"
        );
    }
    assert!(tmem_copy(TmemShape::L16x256b, 32, 0).is_ok());
    assert!(tmem_copy(TmemShape::L16x32bx2, 128, 384).is_ok());
}

#[test]
fn accumulators_lie_where_the_manual_says() {
    let golden = tables(TENSOR_MEMORY);
    for (group, m, n) in [
        (CtaGroup::Two, 256, 16),
        (CtaGroup::TwoSparse, 256, 16),
        (CtaGroup::Two, 128, 16),
        (CtaGroup::TwoSparse, 128, 16),
        (CtaGroup::One, 128, 16),
        (CtaGroup::OneWs, 64, 64),
        (CtaGroup::One, 64, 16),
        (CtaGroup::OneWs, 32, 64),
    ] {
        let d = accumulator(group, m, n).unwrap();
        let name = format!("{} {m}x{n}", d.letter);
        let expected = table(&golden, &name);
        compare(&name, &d.layout, expected, |[lane, column, cta]| {
            lane + 128 * column + 65536 * cta
        });
        covers(&name, expected, m * n, 1);
        for (row, places) in expected {
            for (column, place) in places.iter().enumerate() {
                let found = tmem_place(d.layout.at(&[*row, column as i64]));
                assert_eq!([found.lane, found.column, found.cta], *place);
                assert!(found.column < d.columns);
            }
        }
    }
    assert_eq!(accumulator(CtaGroup::OneWs, 128, 256).unwrap().letter, 'D');
    for (group, m, n) in [
        (CtaGroup::One, 256, 16),
        (CtaGroup::One, 32, 16),
        (CtaGroup::Two, 64, 16),
        (CtaGroup::Two, 128, 8),
        (CtaGroup::One, 128, 264),
        (CtaGroup::One, 128, 0),
        (CtaGroup::OneWs, 64, 192),
        (CtaGroup::OneWs, 64, 32),
    ] {
        assert_eq!(
            code(accumulator(group, m, n)),
            "invalid_parameter",
            "{group:?} {m} {n}"
        );
    }
}

#[test]
fn operands_in_shared_memory_are_swizzled_as_in_the_manual() {
    let golden = tables(SHARED_MEMORY);
    let mut compared = 0;
    for major in [Major::K, Major::Mn] {
        for swizzle in SmemSwizzle::ALL {
            for bits in [4, 8, 16, 32] {
                let prefix = format!(
                    "{} {} b{bits} ",
                    if major == Major::K { "K" } else { "MN" },
                    swizzle.name()
                );
                let Some((name, expected)) =
                    golden.iter().find(|(name, _)| name.starts_with(&prefix))
                else {
                    assert_eq!(
                        code(smem_operand(major, swizzle, bits, 512, 16)),
                        "unsupported",
                        "{prefix}"
                    );
                    continue;
                };
                let (rows, columns) = name.rsplit(' ').next().unwrap().split_once('x').unwrap();
                let (mn, k) = (rows.parse().unwrap(), columns.parse().unwrap());
                let operand = smem_operand(major, swizzle, bits, mn, k).unwrap();
                for (row, places) in expected {
                    for (column, [nibbles, ..]) in places.iter().enumerate() {
                        let element = operand.layout.at(&[*row, column as i64]);
                        assert_eq!(
                            element * bits / 4,
                            *nibbles,
                            "{name}: row {row}, column {column}"
                        );
                    }
                }
                assert!(operand.layout.is_bijective().unwrap(), "{name}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, golden.len());
}

#[test]
fn examples_of_the_manual_have_its_strides() {
    // Section 9.7.16.3.3: tf32 and bf16 examples with their LBO and SBO, in elements.
    for (major, swizzle, bits, mn, k, lbo, sbo, text) in [
        (
            Major::K,
            SmemSwizzle::None,
            32,
            16,
            16,
            64,
            32,
            "Sw<0,2,3> o ((8,2),(4,4)):((4,32),(1,64))",
        ),
        (
            Major::K,
            SmemSwizzle::B32,
            32,
            16,
            8,
            4,
            64,
            "Sw<1,2,3> o ((8,2),(4,2)):((8,64),(1,4))",
        ),
        (
            Major::Mn,
            SmemSwizzle::None,
            16,
            16,
            16,
            128,
            64,
            "Sw<0,3,3> o ((8,2),(8,2)):((1,64),(8,128))",
        ),
        (
            Major::Mn,
            SmemSwizzle::B32,
            16,
            32,
            16,
            128,
            256,
            "Sw<1,3,3> o ((8,2,2),(8,2)):((1,8,128),(16,256))",
        ),
        (
            Major::Mn,
            SmemSwizzle::B64,
            16,
            64,
            16,
            256,
            512,
            "Sw<2,3,3> o ((8,4,2),(8,2)):((1,8,256),(32,512))",
        ),
    ] {
        let operand =
            smem_operand_strided(major, swizzle, bits, mn, k, lbo * bits / 8, sbo * bits / 8)
                .unwrap();
        let expected = layout_core::Swizzled::parse(text).unwrap();
        assert_eq!(operand.layout.layout(), expected.layout(), "{text}");
        assert_eq!(
            operand.layout.swizzle().b(),
            expected.swizzle().b(),
            "{text}"
        );
    }
    let codes = SmemSwizzle::ALL.map(SmemSwizzle::descriptor_bits);
    assert_eq!(codes, [0, 6, 4, 2, 1]);
}

#[test]
fn operands_refuse_what_the_descriptor_cannot_say() {
    let strided = |bits, mn, k, lbo, sbo| {
        smem_operand_strided(Major::K, SmemSwizzle::B128, bits, mn, k, lbo, sbo)
    };
    assert!(strided(16, 64, 64, 16, 1024).is_ok());
    for (bits, mn, k, lbo, sbo) in [
        (6, 64, 64, 16, 1024),
        (64, 64, 64, 16, 1024),
        (16, 60, 64, 16, 1024),
        (16, 0, 64, 16, 1024),
        (16, 64, 60, 16, 1024),
        (16, 64, 128, 16, 1024),
        (16, 64, 64, 8, 1024),
        (16, 64, 64, 16, -16),
        (16, 64, 64, 16, 0x40000),
    ] {
        let code = code(strided(bits, mn, k, lbo, sbo));
        assert!(
            matches!(code, "invalid_parameter" | "not_divisible"),
            "{bits} {mn} {k} {lbo} {sbo}: {code}"
        );
    }
    assert_eq!(
        smem_operand(Major::Mn, SmemSwizzle::B128, 32, 64, 8)
            .unwrap_err()
            .to_string(),
        "a tcgen05 operand in shared memory: this swizzle of an MN-major operand of 32 bits is not supported; \
         use the 128-byte swizzle in units of 32 bytes"
    );
    assert_eq!(
        code(smem_operand(
            Major::K,
            SmemSwizzle::None,
            16,
            i64::MAX / 2 - 7,
            64
        )),
        "overflow"
    );
}
