//! Grouped products.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{GroupedProduct, Problem};
use tilewright::host::{Matrix, On, Runnable, run};
use tilewright::kernels::block_scaled::Scales;
use tilewright::kernels::grouped::{ARCH, Grouped, Kind, Tile, grouped};

use super::right;

const KINDS: [Kind; 2] = [Kind::Offsets, Kind::Masked];

const TILES: [Tile; 3] = [tile(64, 64, 3), tile(128, 128, 4), tile(64, 128, 3)];

const fn tile(m: i64, n: i64, stages: i64) -> Tile {
    Tile { m, n, stages }
}

/// Types with and without scales.
const FORMS: [(Element, Option<Scales>); 3] = [
    (Element::Bf16, None),
    (Element::E4m3, Some(Scales::Rows)),
    (Element::E4m3, Some(Scales::Blocks)),
];

/// Few blocks, so that each has several tiles.
fn of((element, scales): (Element, Option<Scales>), kind: Kind, tile: Tile) -> Grouped {
    Grouped {
        tile,
        blocks: 3,
        ..Grouped::new(element, scales, kind, [1000, 2])
    }
}

/// Random numbers, and these ends or counts.
fn inputs(problem: &GroupedProduct, given: &[i32]) -> Vec<Matrix> {
    let mut inputs = problem.random(5);
    assert_eq!(given.len() as u64, problem.groups);
    for (g, &x) in given.iter().enumerate() {
        inputs[0].set(0, g, x.into());
    }
    inputs
}

/// Ragged groups of ragged sizes: random ones, of 0, 1 and all rows, ends at and beside those of tiles.
#[test]
fn ragged_groups() {
    for kind in KINDS {
        for (form, k) in FORMS.into_iter().zip([72, 144, 272]) {
            for (tile, n) in TILES.into_iter().zip([66, 129, 170]) {
                let m = 150;
                let problem = GroupedProduct::new(of(form, kind, tile), 5, [m, n, k]);
                let what = format!("{form:?} {kind} {tile:?}");
                right(&problem, &problem.random(3), &format!("{what}, random"));
                let groups: [[i32; 5]; 2] = match kind {
                    Kind::Offsets => [[0, 1, 1, 65, 150], [128, 129, 129, 129, 140]],
                    Kind::Masked => [[0, 1, 64, 65, 150], [150, 0, 128, 0, 127]],
                };
                for given in groups {
                    right(
                        &problem,
                        &inputs(&problem, &given),
                        &format!("{what} {given:?}"),
                    );
                }
            }
        }
    }
}

/// All rows in one group, no rows, no columns, k of 0 and of many iterations, and one group.
#[test]
fn extreme_sizes() {
    for kind in KINDS {
        for (groups, m, n, k, given) in [
            (3, 130, 40, 64, vec![130, 130, 130]),
            (3, 130, 40, 64, vec![0, 0, 130]),
            (3, 130, 40, 64, vec![0, 0, 0]),
            (1, 70, 65, 1032, vec![70]),
            (2, 0, 40, 64, vec![0, 0]),
            (2, 40, 0, 64, vec![20, 40]),
            (2, 40, 10, 0, vec![20, 40]),
            (1, 1, 1, 8, vec![1]),
        ] {
            for tile in TILES {
                let problem = GroupedProduct::new(of(FORMS[0], kind, tile), groups, [m, n, k]);
                let what = format!("{kind} {tile:?} {groups} x {m}x{n}x{k} {given:?}");
                right(&problem, &inputs(&problem, &given), &what);
            }
        }
    }
}

/// Ends that decrease, or are beyond the rows, are limited as the module says; the kernel stays in its bounds.
#[test]
fn ends_that_are_none() {
    let far = [i32::MIN, -1, 90, 30, i32::MAX, 20];
    for kind in KINDS {
        for tile in TILES {
            let problem = GroupedProduct::new(of(FORMS[0], kind, tile), 6, [120, 66, 64]);
            right(
                &problem,
                &inputs(&problem, &far),
                &format!("{kind} {tile:?}"),
            );
        }
    }
}

/// As many groups as there may be.
#[test]
fn many_groups() {
    let tile = TILES[0];
    let groups = 512;
    let problem = GroupedProduct::new(of(FORMS[0], Kind::Offsets, tile), groups, [700, 16, 8]);
    right(&problem, &problem.random(2), "512 groups");
    let masked = GroupedProduct::new(of(FORMS[0], Kind::Masked, tile), groups, [3, 16, 8]);
    right(&masked, &masked.random(2), "512 groups, masked");
}

/// The tiles that are taken by themselves, and both types of results.
#[test]
fn tiles_by_default() {
    for ((element, scales), k) in FORMS.into_iter().zip([136, 272, 272]) {
        for rows in [600, 100] {
            for result in [Element::Bf16, Element::F32] {
                let kernel = Grouped {
                    result,
                    ..Grouped::new(element, scales, Kind::Offsets, [rows, 3])
                };
                let problem = GroupedProduct::new(kernel, 3, [rows, 520, k]);
                let what = format!("{element} {scales:?} {rows} {result}");
                right(&problem, &problem.random(1), &what);
            }
        }
    }
}

/// A row does not depend on how rows are spread over groups, nor on others: bit by bit, with NaN in a neighbour.
#[test]
fn rows_are_alone() {
    let problem = GroupedProduct::new(of(FORMS[0], Kind::Offsets, TILES[1]), 3, [200, 70, 320]);
    let mut first = inputs(&problem, &[60, 130, 200]);
    let n = problem.n as usize;
    // All groups have one matrix.
    for row in 0..n {
        for column in 0..problem.k as usize {
            let x = first[2].at(row, column);
            first[2].set(n + row, column, x);
            first[2].set(2 * n + row, column, x);
        }
    }
    let mut second = first.clone();
    for (g, end) in [1, 77, 200].into_iter().enumerate() {
        second[0].set(0, g, end.into());
    }
    second[1].set(78, 3, f64::NAN);
    let outcomes = [&first, &second].map(|inputs| right(&problem, inputs, "rows"));
    let [a, b] = outcomes.map(|o| o.bytes("c").expect("c").to_vec());
    for (row, (x, y)) in a.chunks(2 * n).zip(b.chunks(2 * n)).enumerate() {
        assert_eq!(x == y, row != 78, "{row}");
    }
}

/// The assembler takes every kernel, and nothing spills.
#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for kind in KINDS {
        for (element, scales) in FORMS {
            for rows in [64, 8192] {
                let kernel = Grouped::new(element, scales, kind, [rows, 1]);
                let problem = GroupedProduct::new(kernel, 1, [rows, 512, 512]);
                let kernels = problem.sequence(ARCH).expect("proven");
                let what = format!("{element} {scales:?} {kind} {rows}");
                let assembly = ptxas.assemble(kernels.ptx(), &ARCH.to_string());
                let assembly = assembly.unwrap_or_else(|e| panic!("{what}: {e}"));
                for resources in &assembly.kernels {
                    let spilled = resources.spill_store_bytes;
                    assert_eq!(spilled, 0, "{what}: {spilled} bytes are spilled");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let auto = Grouped::new(Element::Bf16, None, Kind::Offsets, [1000, 2]);
    let tile = |tile| Grouped { tile, ..auto };
    for (what, message) in [
        (
            tile(Tile { m: 96, ..auto.tile }),
            "rows of a tile: 96 is not 64 or 128",
        ),
        (
            tile(Tile { n: 72, ..auto.tile }),
            "columns of a tile: 72 is not 64, 128, 192 or 256",
        ),
        (
            tile(Tile {
                stages: 2,
                ..auto.tile
            }),
            "stages: 2 is not 3 to 8",
        ),
        (Grouped { blocks: 0, ..auto }, "blocks: 0 is not 1 to 4096"),
        (
            Grouped {
                scales: Some(Scales::Blocks),
                ..auto
            },
            "scales of groups: 1x128,128x128 of bf16 is not row,row or 1x128,128x128 of e4m3",
        ),
        (
            Grouped {
                element: Element::E4m3,
                scales: Some(Scales::Rows128),
                ..auto
            },
            "scales of groups: 1x128,1x128 of e4m3 is not row,row or 1x128,128x128 of e4m3",
        ),
        (
            Grouped {
                element: Element::E4m3,
                scales: Some(Scales::Blocks),
                ..auto
            },
            "columns of a tile with scales of blocks: 256 is not 64 or 128",
        ),
        (
            Grouped {
                element: Element::F16,
                ..auto
            },
            "there is no such kernel for elements of type f16: take bf16 or e4m3",
        ),
    ] {
        let error = grouped(what, ARCH).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let error = grouped(auto, Arch(80)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "architecture of grouped products: 80 is not 90 (sm_90a)"
    );
    // Rows of 16 bytes are what tensor maps take.
    let problem = GroupedProduct::new(auto, 2, [10, 10, 12]);
    let inputs = problem.random(1);
    let kernels = problem.sequence(ARCH).expect("proven");
    assert!(run(&kernels, On::Emulator, problem.args(&inputs)).is_err());
}

/// What passes between the kernels is in the workspace, and no parameter.
#[test]
fn the_table_is_in_the_workspace() {
    let problem = GroupedProduct::new(of(FORMS[1], Kind::Offsets, TILES[0]), 2, [9, 33, 16]);
    let kernels = problem.sequence(ARCH).expect("proven");
    let params = kernels.params();
    let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
    let expected = [
        "m", "groups", "offsets", "n", "k", "a", "b", "scale_a", "scale_b", "c",
    ];
    for name in expected {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"tile_row"), "{names:?}");
    assert_eq!(kernels.kernels()[1].proof.covered.len(), 0);
}
