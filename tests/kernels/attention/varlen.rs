//! Attention over sequences of any lengths, one after another.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{Problem, Varlen};
use tilewright::host::{Matrix, On, run};
use tilewright::kernels::attention::hopper::{ARCH, Tile, varlen};
use tilewright::kernels::attention::{Align, Attention, Mask};

use super::super::right;

/// Two warpgroups in a ping-pong schedule, and one, with short steps, so that sequences have several tiles.
const TILES: [Tile; 2] = [
    Tile {
        warpgroups: 2,
        keys: 64,
        stages: 2,
        ping_pong: true,
    },
    Tile {
        warpgroups: 1,
        keys: 32,
        stages: 2,
        ping_pong: false,
    },
];

fn of(mask: Mask, tile: Tile, sequences: u64, [queries, keys]: [u64; 2]) -> Varlen {
    Varlen {
        what: Attention {
            mask,
            lse: true,
            group: 2,
            ..Attention::new(Element::Bf16, 64)
        },
        tile,
        sequences,
        kv_heads: 1,
        queries,
        keys,
    }
}

const LAST: Mask = Mask {
    align: Align::BottomRight,
    ..Mask::CAUSAL
};

const WINDOW: Mask = Mask {
    left: Some(20),
    right: Some(5),
    align: Align::TopLeft,
};

/// Random numbers, and these ends of the queries and of the keys.
fn inputs(problem: &Varlen, ends: [&[i32]; 2]) -> Vec<Matrix> {
    let mut inputs = problem.random(5);
    for (matrix, ends) in inputs.iter_mut().zip(ends) {
        assert_eq!(ends.len() as u64, problem.sequences);
        for (s, &end) in ends.iter().enumerate() {
            matrix.set(0, s, end.into());
        }
    }
    inputs
}

/// Sequences of 0, 1 and many queries, with no keys, with fewer and with more keys than queries; ends at and beside those of tiles; queries behind the last sequence.
#[test]
fn ragged_sequences() {
    let cases: [[&[i32]; 2]; 4] = [
        [&[0, 1, 130, 260], &[0, 70, 71, 300]],
        [&[64, 128, 128, 260], &[40, 40, 140, 300]],
        [&[129, 193, 258, 259], &[129, 193, 258, 280]],
        [&[0, 0, 0, 260], &[0, 0, 0, 300]],
    ];
    for tile in TILES {
        for mask in [Mask::ALL, Mask::CAUSAL, LAST, WINDOW] {
            let problem = of(mask, tile, 4, [260, 300]);
            right(&problem, &problem.random(2), &format!("{mask:?} {tile:?}"));
        }
        for (number, ends) in cases.into_iter().enumerate() {
            let mask = [Mask::ALL, LAST][number % 2];
            let problem = of(mask, tile, 4, [260, 300]);
            let what = format!("{mask:?} {tile:?} {ends:?}");
            right(&problem, &inputs(&problem, ends), &what);
        }
    }
}

#[test]
fn extreme_sizes() {
    for tile in TILES {
        for (sequences, sizes) in [(1, [1, 1]), (1, [0, 40]), (3, [40, 0]), (2, [300, 20])] {
            let problem = of(Mask::ALL, tile, sequences, sizes);
            right(&problem, &problem.random(3), &format!("{tile:?} {sizes:?}"));
        }
    }
    let many = of(LAST, TILES[1], 512, [600, 900]);
    right(&many, &many.random(4), "512 sequences");
}

/// Heads of every size, f16, sinks and a soft cap.
#[test]
fn heads_and_options() {
    for (number, dim) in [64, 96, 128, 192, 256].into_iter().enumerate() {
        let what = Attention {
            mask: LAST,
            lse: number % 2 == 0,
            sinks: number % 2 == 1,
            softcap: (number == 2).then_some(15.0),
            ..Attention::new([Element::F16, Element::Bf16][number % 2], dim)
        };
        let problem = Varlen {
            what,
            tile: Tile::of_varlen(what),
            sequences: 3,
            kv_heads: 1,
            queries: 200,
            keys: 210,
        };
        right(&problem, &problem.random(1), &format!("{what:?}"));
    }
}

/// Ends that decrease or are beyond the rows: nothing outside of the arrays is touched, and no row is stored twice.
#[test]
fn ends_that_are_none() {
    let far = [i32::MIN, 200, 100, i32::MAX];
    for tile in TILES {
        let problem = of(Mask::ALL, tile, 4, [220, 230]);
        let inputs = inputs(&problem, [&far, &far]);
        let kernels = problem.sequence(ARCH).expect("proven");
        let outcome = run(&kernels, On::Emulator, problem.args(&inputs)).expect("it runs");
        outcome.assert_clean();
    }
}

/// A sequence gives the same bits alone and among others.
#[test]
fn sequences_are_alone() {
    let many = of(LAST, TILES[0], 3, [250, 260]);
    let all = inputs(&many, [&[70, 200, 250], &[60, 210, 260]]);
    let c = right(&many, &all, "many");
    let one = Varlen {
        sequences: 1,
        queries: 130,
        keys: 150,
        ..many
    };
    let mut alone = inputs(&one, [&[130], &[150]]);
    let width = 2 * 64;
    let rows = |bytes: &[u8], first: usize, count: usize| {
        bytes[first * width..(first + count) * width].to_vec()
    };
    // Two heads of queries have one of keys.
    alone[2].bytes = rows(&all[2].bytes, 2 * 70, 2 * 130);
    alone[3].bytes = rows(&all[3].bytes, 60, 150);
    alone[4].bytes = rows(&all[4].bytes, 60, 150);
    let own = right(&one, &alone, "alone");
    let o = rows(c.bytes("o").expect("o"), 2 * 70, 2 * 130);
    assert_eq!(o, own.bytes("o").expect("o"));
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for dim in [64, 96, 128, 192, 256] {
        for mask in [Mask::ALL, LAST] {
            let what = Attention {
                mask,
                ..Attention::new(Element::Bf16, dim)
            };
            for kernel in varlen(what, Tile::of_varlen(what), ARCH).expect("proven") {
                let assembly = ptxas.assemble(&kernel.ptx, "sm_90a").expect("it assembles");
                for resources in &assembly.kernels {
                    assert_eq!(resources.spill_store_bytes, 0, "{dim} {mask:?}");
                }
            }
        }
    }
}

#[test]
fn what_there_is_no_kernel_for_is_refused() {
    let what = Attention::new(Element::Bf16, 64);
    let said = |tile, arch| varlen(what, tile, arch).unwrap_err().to_string();
    let three = Tile {
        warpgroups: 3,
        ..TILES[0]
    };
    assert_eq!(
        said(three, ARCH),
        "consumer warpgroups for sequences of any lengths: 3 is not 1 or 2"
    );
    assert_eq!(
        said(TILES[0], Arch(80)),
        "architecture of the design for Hopper: 80 is not 90 (sm_90a)"
    );
}
