//! Products with 4-bit weights.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{Problem, Repacked, WeightOnlyProduct};
use tilewright::kernels::weight_only::repack::{Order, repack, repack_scales};
use tilewright::kernels::weight_only::scales::packed_scales;
use tilewright::kernels::weight_only::{Design, ELEMENTS, Tile, Weights, WgmmaTile, order};

use super::{right, right_for};

const fn tile(m: i64, n: i64, k: i64, warps: [i64; 2], stages: i64) -> Tile {
    Tile {
        m,
        n,
        k,
        warps,
        stages,
        cluster: 1,
    }
}

const TILES: [Tile; 5] = [
    tile(8, 32, 128, [2, 1], 3),
    tile(16, 32, 256, [1, 4], 2),
    tile(32, 64, 128, [4, 1], 3),
    tile(64, 64, 128, [2, 2], 2),
    tile(8, 64, 128, [2, 2], 4),
];

fn of(element: Element, weights: Weights, group: i64, size: [u64; 3]) -> WeightOnlyProduct {
    WeightOnlyProduct::new(element, weights, group, size)
}

/// Ragged sizes: less than a tile, a tile and one more, several of each; the last group shorter than the others, rows that are not aligned.
#[test]
fn ragged_sizes() {
    let sizes = [
        [1, 1, 32],
        [9, 40, 128],
        [16, 33, 200],
        [33, 130, 136],
        [65, 72, 1000],
        [3, 100, 77],
        [5, 24, 0],
        [0, 8, 64],
        [8, 0, 64],
    ];
    for weights in Weights::ALL {
        for (number, size) in sizes.into_iter().enumerate() {
            for (i, &group) in weights.groups().iter().enumerate() {
                let element = ELEMENTS[(number + i) % 2];
                let tile = TILES[(number + i) % TILES.len()];
                let problem = WeightOnlyProduct {
                    design: Some(Design::MmaSync(tile)),
                    zero_points: (number + i) % 3 == 0 && weights == Weights::Int4,
                    factor: 0.25,
                    ..of(element, weights, group, size)
                };
                let what = format!("{element} {weights} by {group} {tile:?} {size:?}");
                right(&problem, &problem.random(3), &what);
            }
        }
    }
}

/// Blocks of clusters share k, also more of them than there are steps.
#[test]
fn clusters() {
    for (cluster, size) in [(2, [7, 70, 600]), (4, [16, 129, 1000]), (8, [3, 64, 130])] {
        let tile = Tile {
            cluster,
            ..tile(16, 64, 128, [2, 2], 2)
        };
        let problem = WeightOnlyProduct {
            design: Some(Design::MmaSync(tile)),
            ..of(Element::Bf16, Weights::Int4, 128, size)
        };
        let what = format!("clusters of {cluster} {size:?}");
        right_for(Arch(90), &problem, &problem.random(5), &what);
    }
}

/// Weights in registers by `wgmma`: ragged sizes, no step at all, blocks of clusters beyond the last rows of w.
#[test]
fn by_wgmma() {
    let tiles = [
        (32, 128, 256, 2, 2),
        (64, 64, 128, 3, 1),
        (128, 128, 128, 2, 4),
        (256, 64, 128, 2, 1),
    ];
    let sizes = [
        [1, 1, 8],
        [33, 130, 136],
        [70, 260, 1000],
        [257, 72, 264],
        [5, 24, 0],
    ];
    for (number, size) in sizes.into_iter().enumerate() {
        for (i, (m, n, k, stages, cluster)) in tiles.into_iter().enumerate() {
            let element = ELEMENTS[(number + i) % 2];
            let group = Weights::Int4.groups()[(number + i) % 3];
            let tile = WgmmaTile {
                m,
                n,
                k,
                stages,
                cluster,
            };
            let problem = WeightOnlyProduct {
                zero_points: i % 2 == 0,
                design: Some(Design::Wgmma(tile)),
                ..of(element, Weights::Int4, group, size)
            };
            let what = format!("{element} by {group} {tile:?} {size:?}");
            right(&problem, &problem.random(9), &what);
        }
    }
}

/// The designs that are chosen for sizes.
#[test]
fn chosen_designs() {
    for m in [1, 12, 30, 64, 200] {
        for arch in [80, 90] {
            let problem = of(Element::F16, Weights::Int4, 128, [m, 136, 320]);
            right_for(
                Arch(arch),
                &problem,
                &problem.random(m),
                &format!("{m} rows for sm_{arch}"),
            );
        }
    }
}

/// Both designs, by small tiles.
fn designs() -> [Design; 2] {
    let tile = WgmmaTile {
        m: 32,
        n: 64,
        k: 128,
        stages: 2,
        cluster: 2,
    };
    [Design::MmaSync(TILES[1]), Design::Wgmma(tile)]
}

/// NaN in a row of a reaches that row alone, and NaN of a scale its column.
#[test]
fn nan_stays_in_its_row() {
    for design in designs() {
        let problem = WeightOnlyProduct {
            design: Some(design),
            ..of(Element::Bf16, Weights::Int4, 64, [9, 50, 256])
        };
        let mut inputs = problem.random(5);
        inputs[0].set(3, 200, f64::NAN);
        inputs[2].set(1, 33, f64::NAN);
        right(&problem, &inputs, &format!("{design:?} with NaN"));
    }
}

/// Scales of mxfp4 and nvfp4 at the ends of their ranges, and those that are NaN.
#[test]
fn scales_in_bytes() {
    for (weights, group) in [(Weights::Mxfp4, 32), (Weights::Nvfp4, 16)] {
        let problem = of(Element::Bf16, weights, group, [4, 40, 128]);
        let mut inputs = problem.random(8);
        for (at, byte) in [
            (3, 0),
            (40, 255),
            (50, 1),
            (60, 0x7f),
            (71, 0x80),
            (80, 0x7e),
        ] {
            inputs[2].bytes[at] = byte;
        }
        right(&problem, &inputs, &format!("scales of {weights}"));
        // The same scales from rows.
        let groups = 128 / group as usize;
        let bytes: Vec<u8> = (0..40 * groups).map(|i| (i % 251) as u8).collect();
        let words = repack_scales(&bytes, [40, 128], group as usize).expect("they are repacked");
        let place = packed_scales(40, 128, group).expect("a layout");
        for (at, byte) in bytes.iter().enumerate() {
            let to = place.at(&[(at / groups) as i64, (at % groups) as i64]);
            assert_eq!(words[to as usize / 4].to_le_bytes()[to as usize % 4], *byte);
        }
    }
}

/// The same row gives the same bits alone and among others.
#[test]
fn a_row_does_not_depend_on_the_others() {
    for design in designs() {
        let many = WeightOnlyProduct {
            design: Some(design),
            ..of(Element::Bf16, Weights::Int4, 128, [39, 72, 384])
        };
        let inputs = many.random(6);
        let c = right(&many, &inputs, "many");
        let one = WeightOnlyProduct { m: 1, ..many };
        let mut alone = inputs.clone();
        let row = 37;
        alone[0].bytes = inputs[0].bytes[row * 768..(row + 1) * 768].to_vec();
        alone[0].rows = 1;
        let own = right(&one, &alone, "alone");
        let (c, own) = (c.bytes("c").expect("c"), own.bytes("c").expect("c"));
        assert_eq!(&c[row * 144..(row + 1) * 144], own, "{design:?}");
    }
}

/// The order of a piece is a bijection by which lane l finds its operands in its own 16 bytes, in the order in which it unpacks them.
#[test]
fn the_order_is_derived() {
    let (piece, operand) = (
        order::piece().expect("a layout"),
        order::operand().expect("a layout"),
    );
    assert!(piece.is_bijective());
    assert_eq!(piece.size(), order::PIECE_ROWS * order::PIECE_K);
    for lane in 0..32 {
        for value in 0..32 {
            // Register j of an instruction has nibbles j and j + 4 of a word.
            let (word, pair, half) = (value / 8, value / 2 % 4, value % 2);
            let nibble = 32 * lane + 8 * word + pair + 4 * half;
            assert_eq!(
                piece.index(nibble),
                operand.at(&[lane, value]),
                "lane {lane}, value {value}"
            );
        }
    }
    let inverse = piece.right_inverse().expect("an inverse");
    let packed = order::packed(16, 64).expect("a layout");
    assert!((0..1024).all(|i| packed.index(i) == inverse.index(i)));
    let packed = order::packed(100, 200).expect("a layout");
    assert!(packed.is_bijective());
    assert_eq!(packed.size(), 7 * 4 * 1024);
}

/// The value of 4 bits that row j and column k have in all orders.
fn weight(j: usize, k: usize) -> u32 {
    ((j * 7 + k * 5 + j * k / 3) % 16) as u32
}

/// Words as the rules of the checkpoints say.
fn checkpoint(order: Order, [n, k]: [usize; 2]) -> Vec<u32> {
    let word = |of: &dyn Fn(usize) -> u32| (0..8).map(|i| of(i) << (4 * i)).fold(0, |a, b| a | b);
    match order {
        Order::RowMajor => (0..n)
            .flat_map(|j| (0..k / 8).map(move |w| (j, w)))
            .map(|(j, w)| word(&|i| weight(j, 8 * w + i)))
            .collect(),
        Order::Gptq => (0..k / 8)
            .flat_map(|w| (0..n).map(move |j| (j, w)))
            .map(|(j, w)| word(&|i| weight(j, 8 * w + i)))
            .collect(),
        Order::Awq => {
            let interleaved = [0, 2, 4, 6, 1, 3, 5, 7];
            (0..k)
                .flat_map(|k| (0..n / 8).map(move |w| (k, w)))
                .map(|(k, w)| word(&|i| weight(8 * w + interleaved[i], k)))
                .collect()
        }
    }
}

/// Weights of a GPTQ, an AWQ and a row-major checkpoint become the same words, by which the product is that of the weights.
#[test]
fn checkpoints_of_all_orders() {
    let [n, k] = [40, 208];
    let all = Order::ALL.map(|order| {
        let words = checkpoint(order, [n, k]);
        let packed = repack(order, &words, [n, k]).expect("it is repacked");
        let place = order::packed(n as i64, k as i64).expect("a layout");
        for (j, k) in (0..n).flat_map(|j| (0..k).map(move |k| (j, k))) {
            let at = place.at(&[j as i64, k as i64]);
            let value = packed[at as usize / 8] >> (4 * (at % 8)) & 15;
            assert_eq!(value, weight(j, k), "{order}: row {j}, column {k}");
        }
        packed
    });
    assert!(all[0] == all[1] && all[0] == all[2]);
    let problem = of(Element::F16, Weights::Int4, 32, [3, n as u64, k as u64]);
    let mut inputs = problem.random(7);
    inputs[1].bytes = all[0].iter().flat_map(|word| word.to_le_bytes()).collect();
    right(&problem, &inputs, "of a checkpoint");
}

#[test]
fn repacked_by_the_kernel() {
    for order in Order::ALL {
        for [n, k] in [[16, 64], [40, 208], [8, 520], [72, 8], [136, 256]] {
            let problem = Repacked { order, n, k };
            right(&problem, &problem.random(n), &format!("{order} {n}x{k}"));
        }
    }
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for (element, arch, target) in [(Element::Bf16, 80, "sm_80"), (Element::F16, 90, "sm_90a")] {
        for weights in Weights::ALL {
            for m in [1, 16, 32, 64, 256] {
                let problem = WeightOnlyProduct {
                    zero_points: m == 16 && weights == Weights::Int4,
                    ..of(element, weights, weights.groups()[0], [m, 8192, 8192])
                };
                let kernel = problem.kernel(Arch(arch)).expect("proven");
                let assembly = ptxas.assemble(&kernel.ptx, target).expect("it assembles");
                for resources in &assembly.kernels {
                    // A few registers, at a limit that the assembler chose itself for more blocks on a multiprocessor.
                    let spilled = resources.spill_store_bytes;
                    assert!(spilled <= 16, "{}: {spilled}", kernel.name());
                }
            }
        }
    }
}

#[test]
fn what_there_is_no_kernel_for_is_refused() {
    let problem = of(Element::Bf16, Weights::Int4, 128, [8, 64, 256]);
    let said = |problem: WeightOnlyProduct| {
        let refused = problem.kernel(Arch(80)).map(|_| ());
        refused.unwrap_err().to_string()
    };
    let with = |tile| WeightOnlyProduct {
        design: Some(Design::MmaSync(tile)),
        ..problem
    };
    let wgmma = WeightOnlyProduct {
        design: Some(Design::Wgmma(WgmmaTile::new(64, 8192))),
        ..problem
    };
    for (problem, expected) in [
        (
            WeightOnlyProduct {
                group: 48,
                ..problem
            },
            "weights of a group: 48 is not 32, 64 or 128, which int4 has",
        ),
        (
            with(tile(12, 64, 128, [2, 2], 4)),
            "rows of a in a tile: 12 is not 8, 16, 32 or 64",
        ),
        (
            with(tile(8, 48, 128, [2, 2], 4)),
            "rows of w in a tile: 48 is not 32, 64, 128 or 256",
        ),
        (
            with(tile(8, 32, 128, [4, 2], 4)),
            "warps that share the rows of w: 4 is not a divisor of the tile's rows by 16",
        ),
        (with(tile(8, 32, 128, [2, 2], 1)), "stages: 1 is not 2 to 8"),
        (
            with(Tile {
                cluster: 2,
                ..TILES[0]
            }),
            "blocks of a cluster: 2 is not 1; or 2, 4 or 8 for sm_90 and newer",
        ),
    ] {
        assert_eq!(said(problem), expected);
    }
    for (problem, expected) in [
        (
            wgmma,
            "architecture of products by wgmma: 80 is not 90 (sm_90a)",
        ),
        (
            WeightOnlyProduct {
                weights: Weights::Mxfp4,
                group: 32,
                ..wgmma
            },
            "weights of a product by wgmma: mxfp4 is not int4",
        ),
        (
            WeightOnlyProduct {
                weights: Weights::Nvfp4,
                group: 16,
                zero_points: true,
                ..problem
            },
            "weights with zero points: nvfp4 is not int4",
        ),
    ] {
        assert_eq!(said(problem), expected);
    }
    let error = repack(Order::Gptq, &[0; 4], [4, 12]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "weights of a row: 12 is not a multiple of 8, as a word has eight of them"
    );
    let error = repack(Order::RowMajor, &[0; 4], [4, 16]).unwrap_err();
    assert_eq!(error.to_string(), "words of the weights: 4 is not n·k/8");
}
