//! Products with scales.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{Problem, ScaledProduct};
use tilewright::kernels::block_scaled::{ARCH, BlockScaled, ELEMENTS, Scales, Tile};

use super::right;

const TILES: [Tile; 6] = [
    Tile {
        multicast: true,
        ..tile(128, 128, 4)
    },
    Tile {
        multicast: true,
        tma_store: true,
        ..tile(128, 128, 5)
    },
    tile(128, 128, 3),
    tile(64, 128, 4),
    tile(64, 64, 2),
    tile(128, 64, 5),
];

const fn tile(m: i64, n: i64, stages: i64) -> Tile {
    Tile {
        m,
        n,
        stages,
        multicast: false,
        tma_store: false,
    }
}

/// Few blocks, so that each has several tiles.
fn of(element: Element, scales: Scales, tile: Tile) -> BlockScaled {
    BlockScaled {
        tile,
        grid: if tile.multicast { [2, 3] } else { [3, 1] },
        ..BlockScaled::new(element, scales, [1000, 1000])
    }
}

/// Ragged sizes: less than a tile and a block of k, a tile and one more, several of each; the last block of k shorter than the others.
#[test]
fn ragged_sizes() {
    let sizes = [
        [1, 1, 16],
        [63, 130, 128],
        [129, 65, 144],
        [200, 300, 400],
        [64, 257, 1040],
        [5, 40, 0],
        [0, 8, 64],
        [8, 0, 64],
    ];
    for scales in Scales::ALL {
        for (number, size) in sizes.into_iter().enumerate() {
            for (element, tile) in [(Element::E4m3, number), (Element::E5m2, number + 1)] {
                let tile = TILES[tile % TILES.len()];
                let tile = Tile {
                    tma_store: tile.tma_store && size[1] % 8 == 0,
                    ..tile
                };
                let problem = ScaledProduct::new(of(element, scales, tile), size);
                let what = format!("{element} {scales} {tile:?} {size:?}");
                right(&problem, &problem.random(3), &what);
            }
        }
    }
}

#[test]
fn results_of_f32() {
    for scales in Scales::ALL {
        let kernel = BlockScaled {
            result: Element::F32,
            ..of(Element::E4m3, scales, TILES[0])
        };
        let problem = ScaledProduct::new(kernel, [150, 140, 272]);
        right(&problem, &problem.random(4), &format!("{scales} f32"));
    }
}

/// NaN in a row of a and in a scale of a row reach those rows alone.
#[test]
fn nan_stays_in_its_row() {
    for scales in Scales::ALL {
        let problem = ScaledProduct::new(of(Element::E4m3, scales, TILES[2]), [70, 66, 256]);
        let mut inputs = problem.random(5);
        inputs[0].set(3, 200, f64::NAN);
        let block = usize::from(scales != Scales::Rows);
        inputs[2].set(block, 65, f64::NAN);
        right(&problem, &inputs, &format!("{scales} with NaN"));
    }
}

/// The same row gives the same bits alone and among others.
#[test]
fn a_row_does_not_depend_on_the_others() {
    let kernel = of(Element::E4m3, Scales::Blocks, TILES[0]);
    let many = ScaledProduct::new(kernel, [131, 136, 272]);
    let inputs = many.random(6);
    let c = right(&many, &inputs, "many");
    let one = ScaledProduct { m: 1, ..many };
    let mut alone = inputs.clone();
    let row = 130;
    alone[0].bytes = inputs[0].bytes[row * 272..(row + 1) * 272].to_vec();
    alone[0].rows = 1;
    // Of each block of k, the scale of the row.
    let scales: Vec<u8> = (0..3)
        .flat_map(|block| {
            // Rows of the scales are whole 16 bytes.
            let at = 4 * (block * 132 + row);
            [&inputs[2].bytes[at..at + 4], &[0; 12]].concat()
        })
        .collect();
    (alone[2].bytes, alone[2].cols, alone[2].ld) = (scales, 4, 4);
    let own = right(&one, &alone, "alone");
    let (c, own) = (c.bytes("c").expect("c"), own.bytes("c").expect("c"));
    assert_eq!(&c[row * 272..(row + 1) * 272], own);
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for scales in Scales::ALL {
        for [m, n] in [[4096, 7168], [64, 24576], [64, 7168], [128, 2048]] {
            let kernel = BlockScaled::new(Element::E4m3, scales, [m, n]);
            let problem = ScaledProduct::new(kernel, [m, n, 1024]);
            let kernel = problem.kernel(ARCH).expect("proven");
            let assembly = ptxas.assemble(&kernel.ptx, "sm_90a").expect("it assembles");
            for resources in &assembly.kernels {
                assert_eq!(resources.spill_store_bytes, 0, "{scales} {m}x{n}");
            }
        }
    }
}

#[test]
fn what_there_is_no_kernel_for_is_refused() {
    let kernel = of(Element::E4m3, Scales::Blocks, TILES[0]);
    let said = |kernel: BlockScaled, arch: Arch| {
        let problem = ScaledProduct::new(kernel, [64, 64, 64]);
        problem.kernel(arch).map(|_| ()).unwrap_err().to_string()
    };
    let with = |m, n, stages| BlockScaled {
        tile: tile(m, n, stages),
        ..kernel
    };
    for (kernel, arch, expected) in [
        (
            kernel,
            Arch(80),
            "architecture of products with scales: 80 is not 90 (sm_90a)",
        ),
        (
            with(96, 128, 4),
            ARCH,
            "rows of a tile: 96 is not 64 or 128",
        ),
        (
            with(128, 256, 4),
            ARCH,
            "columns of a tile: 256 is not 64 or 128",
        ),
        (with(128, 128, 1), ARCH, "stages: 1 is not 2 to 12"),
        (
            BlockScaled {
                grid: [0, 1],
                ..kernel
            },
            ARCH,
            "blocks: 0 is not 1 to 4096",
        ),
    ] {
        assert_eq!(said(kernel, arch), expected);
    }
    for element in [Element::Bf16, Element::S8, Element::F32] {
        let other = BlockScaled { element, ..kernel };
        assert!(said(other, ARCH).contains("e4m3"), "{element}");
        assert!(!ELEMENTS.contains(&element));
    }
    // Twelve stages of 32 KB have no room.
    assert!(said(with(128, 128, 12), ARCH).contains("shared memory"));
}
