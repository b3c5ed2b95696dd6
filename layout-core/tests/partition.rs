//! Partitions against their definitions, written out with divisions and remainders: every element exactly once, and the
//! values of a thread where the atom's formulas put them.

use std::collections::HashSet;

use layout_core::atoms::{self, CopyAtom, MmaAtom, Scalar};
use layout_core::{IntTuple, Layout, Operand, Slicer, Swizzled, TiledCopy, TiledMma, Tiler};

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

fn swizzled(text: &str) -> Swizzled {
    Swizzled::parse(text).unwrap()
}

/// Tensors of 12x20, plain, padded, nested and swizzled.
const TENSORS: [&str; 5] = [
    "(12,20):(1,12)",
    "(12,20):(24,1)",
    "((4,3),(2,10)):((1,64),(4,192))",
    "Sw<2,0,3> o 5 o (12,20):(32,1)",
    "Sw<3,2,-3> o (12,20):(1,16)",
];

#[test]
fn local_tile_is_the_tile_at_its_coordinate() {
    for text in TENSORS {
        let tensor = swizzled(text);
        for (m, n) in [(4, 4), (2, 10), (12, 5), (6, 2), (5, 7), (1, 20)] {
            let tiler = [Tiler::Int(m), Tiler::Int(n)];
            for i in 0..(12 + m - 1) / m {
                for j in 0..(20 + n - 1) / n {
                    let at = Slicer::new(IntTuple::flat(&[i, j]).unwrap(), 0);
                    let Ok(tile) = tensor.local_tile(&Tiler::Modes(&tiler), &at) else {
                        // Only a nested mode may refuse a tile: 5 of (4,3):(1,64) is no layout.
                        assert!(text.contains("(4,3)") && (m == 5 || n == 7 || n == 5 || m == 6));
                        continue;
                    };
                    let part = tile.rounded_up();
                    assert_eq!(part.size(), m * n);
                    let mut inside = 0;
                    for r in 0..m {
                        for c in 0..n {
                            let (row, column) = (i * m + r, j * n + c);
                            assert_eq!(tile.contains(r + m * c), row < 12 && column < 20);
                            if row < 12 && column < 20 {
                                inside += 1;
                                assert_eq!(part.at(&[r, c]), tensor.at(&[row, column]));
                            }
                        }
                    }
                    assert_eq!(tile.exact().is_ok(), inside == m * n);
                }
            }
        }
    }
}

#[test]
fn open_tile_coordinates_stay_as_modes() {
    let tensor = swizzled("Sw<2,0,3> o (12,20):(32,1)");
    let tiler = [Tiler::Int(4), Tiler::Int(5)];
    let tile = tensor.local_tile(&Tiler::Modes(&tiler), &Slicer::parse("(2,_)").unwrap());
    let part = tile.unwrap().exact().unwrap();
    assert_eq!(part.rank(), 3);
    for (r, c, j) in (0..4).flat_map(|r| (0..5).flat_map(move |c| (0..4).map(move |j| (r, c, j)))) {
        assert_eq!(part.at(&[r, c, j]), tensor.at(&[8 + r, 5 * j + c]));
    }
}

#[test]
fn local_partition_gives_each_thread_its_place_in_each_tile() {
    for text in ["(12,20):(1,12)", "Sw<2,0,3> o 5 o (12,20):(32,1)"] {
        let tensor = swizzled(text);
        for threads in [
            "(4,5):(1,4)",
            "(4,5):(5,1)",
            "((2,3),4):((1,8),2)",
            "(5,3):(3,1)",
        ] {
            let threads = layout(threads);
            let (m, n) = (
                threads.get(0).unwrap().size(),
                threads.get(1).unwrap().size(),
            );
            let mut seen = HashSet::new();
            for r in 0..m {
                for c in 0..n {
                    let tile = tensor
                        .local_partition(&threads, threads.at(&[r, c]))
                        .unwrap();
                    let part = tile.rounded_up();
                    let (rows, columns) = ((12 + m - 1) / m, (20 + n - 1) / n);
                    assert_eq!(part.size(), rows * columns);
                    for i in 0..rows {
                        for j in 0..columns {
                            let (row, column) = (i * m + r, j * n + c);
                            let inside = row < 12 && column < 20;
                            assert_eq!(tile.contains(i + rows * j), inside);
                            if inside {
                                assert_eq!(part.at(&[i, j]), tensor.at(&[row, column]));
                                assert!(seen.insert((row, column)));
                            }
                        }
                    }
                }
            }
            assert_eq!(seen.len(), 240, "every element exactly once");
            assert!(tensor.local_partition(&threads, threads.cosize()).is_err());
        }
    }
}

#[test]
fn thread_partition_follows_its_thread_value_layout() {
    // 8 threads of a 4x4 tile, two rows each.
    let tv = layout("((4,2),2):((4,2),1)");
    let tensor = swizzled("Sw<2,0,3> o (12,20):(32,1)");
    let tile = IntTuple::parse("(4,4)").unwrap();
    let mut seen = HashSet::new();
    for thread in 0..8 {
        let part = tensor.thread_partition(&tile, &tv, thread).unwrap();
        for value in 0..2 {
            let place = tv.at(&[thread, value]);
            for i in 0..3 {
                for j in 0..5 {
                    let (row, column) = (4 * i + place % 4, 4 * j + place / 4);
                    assert_eq!(part.at(&[value, i + 3 * j]), tensor.at(&[row, column]));
                    assert!(seen.insert((row, column)));
                }
            }
        }
    }
    assert_eq!(seen.len(), 240);
    assert!(tensor.thread_partition(&tile, &tv, 8).is_err());
    assert!(
        tensor
            .thread_partition(&IntTuple::parse("(5,4)").unwrap(), &tv, 0)
            .is_err()
    );
}

/// A tiling to check, with the extents of a problem along M, N, K.
struct Tiling {
    atom: MmaAtom,
    /// Atoms along M, N, K and their strides.
    counts: [i64; 3],
    strides: [i64; 3],
    /// The tile's permutations.
    tile: [Layout; 3],
    problem: [i64; 3],
}

fn tilings() -> Vec<Tiling> {
    let mut tilings = Vec::new();
    for atom in atoms::MMA_ATOMS {
        let unit = [2 * atom.m, 2 * atom.n, atom.k];
        tilings.push(Tiling {
            atom: **atom,
            counts: [2, 2, 1],
            strides: [1, 2, 0],
            tile: unit.map(|n| Layout::mode(n, 1).unwrap()),
            problem: [2 * unit[0], 3 * unit[1], 2 * unit[2]],
        });
    }
    let f16 = atoms::MMA_M16N8K16_F16;
    // Two n8 atoms of a warp side by side, so that one ldmatrix.x4 serves both.
    tilings.push(Tiling {
        atom: f16,
        counts: [4, 1, 1],
        strides: [1, 0, 0],
        tile: [layout("64:1"), layout("16:1"), layout("16:1")],
        problem: [128, 48, 32],
    });
    // A permuted N, and warps numbered along N first.
    tilings.push(Tiling {
        atom: f16,
        counts: [2, 2, 1],
        strides: [2, 1, 0],
        tile: [layout("32:1"), layout("(8,2,2):(1,16,8)"), layout("16:1")],
        problem: [64, 64, 16],
    });
    // Warps along K.
    tilings.push(Tiling {
        atom: f16,
        counts: [1, 2, 2],
        strides: [0, 1, 2],
        tile: [layout("16:1"), layout("16:1"), layout("32:1")],
        problem: [16, 32, 64],
    });
    tilings
}

fn tiled(tiling: &Tiling) -> TiledMma {
    let atoms = Layout::flat(&tiling.counts, &tiling.strides).unwrap();
    TiledMma::with_tile(tiling.atom, &atoms, &tiling.tile).unwrap()
}

/// The coordinate along an axis of place `p` in the order of the tiles: the permuted place in the tile, then the tile.
fn unpermuted(tile: &Layout, p: i64) -> i64 {
    tile.index(p % tile.size()) + p / tile.size() * tile.size()
}

#[test]
fn a_tiled_mma_gives_every_element_to_the_lanes_of_the_atom() {
    for tiling in tilings() {
        let (atom, mma) = (tiling.atom, tiled(&tiling));
        for (operand, i, j, fragment) in [
            (Operand::A, 0, 2, atom.a),
            (Operand::B, 1, 2, atom.b),
            (Operand::C, 0, 1, atom.c),
        ] {
            let extents = [atom.m, atom.n, atom.k];
            let (rows, columns) = (tiling.problem[i], tiling.problem[j]);
            let tensor = swizzled(&format!("Sw<2,1,3> o 3 o ({rows},{columns}):({columns},1)"));
            let (ci, cj) = (tiling.counts[i], tiling.counts[j]);
            let (ri, rj) = (rows / (extents[i] * ci), columns / (extents[j] * cj));
            let values = fragment.get(1).unwrap().size();
            let mut held = vec![0; (rows * columns) as usize];
            for thread in 0..mma.threads() {
                let part = mma
                    .get_slice(thread)
                    .unwrap()
                    .partition(operand, &tensor)
                    .unwrap();
                assert_eq!(part.size(), values * ri * rj);
                let (lane, number) = (thread % 32, thread / 32);
                // The atom's place along the two axes.
                let place = |axis: usize| match tiling.strides[axis] {
                    0 => 0,
                    stride => number / stride % tiling.counts[axis],
                };
                for v in 0..values {
                    let within = fragment.at(&[lane, v]);
                    let (r, c) = (within % extents[i], within / extents[i]);
                    for x in 0..ri {
                        for y in 0..rj {
                            let row =
                                unpermuted(&tiling.tile[i], (place(i) + ci * x) * extents[i] + r);
                            let column =
                                unpermuted(&tiling.tile[j], (place(j) + cj * y) * extents[j] + c);
                            assert_eq!(part.at(&[v, x, y]), tensor.at(&[row, column]));
                            held[(row * columns + column) as usize] += 1;
                        }
                    }
                }
            }
            // Atoms along the third axis hold the same elements again.
            let copies = tiling.counts[3 - i - j];
            assert!(
                held.iter().all(|&n| n == copies),
                "{operand:?} of {}",
                atom.name
            );
        }
    }
}

#[test]
fn layout_tv_is_the_partition_of_one_tile() {
    for tiling in tilings() {
        let mma = tiled(&tiling);
        for operand in [Operand::A, Operand::B, Operand::C] {
            let tv = mma.layout_tv(operand).unwrap();
            let (rows, columns) = mma.operand_shape(operand);
            let tile = Swizzled::plain(Layout::col_major(&[rows, columns]).unwrap());
            assert_eq!(tv.get(0).unwrap().size(), mma.threads());
            for thread in 0..mma.threads() {
                let part = mma
                    .get_slice(thread)
                    .unwrap()
                    .partition(operand, &tile)
                    .unwrap();
                for value in 0..part.size() {
                    assert_eq!(tv.at(&[thread, value]), part.index(value));
                }
            }
        }
    }
}

#[test]
fn a_warpgroup_tiles_like_a_warp() {
    let atom = atoms::wgmma(128, Scalar::Bf16, Scalar::F32).unwrap();
    let mma = TiledMma::new(atom, &layout("(2,1,1):(1,0,0)")).unwrap();
    assert_eq!((mma.threads(), mma.tile_shape()), (256, [128, 128, 16]));
    let tensor = swizzled("(128,256):(256,1)");
    let mut seen = HashSet::new();
    for thread in 0..256 {
        let part = mma.get_slice(thread).unwrap().partition_c(&tensor).unwrap();
        assert_eq!(part.size(), 128);
        for i in 0..part.size() {
            assert!(seen.insert(part.index(i)));
        }
    }
    assert_eq!(seen.len(), 128 * 256);
    // B comes from shared memory: every thread stands for all of it.
    let b = swizzled("(128,64):(64,1)");
    let part = mma.get_slice(37).unwrap().partition_b(&b).unwrap();
    assert_eq!(part.size(), 128 * 64);
}

#[test]
fn a_tiled_mma_refuses_what_does_not_fit() {
    let atom = atoms::MMA_M16N8K16_F16;
    assert!(TiledMma::new(atom, &layout("(2,2):(1,2)")).is_err());
    let mma = TiledMma::new(atom, &layout("(2,2,1):(1,2,0)")).unwrap();
    assert_eq!(
        mma.get_slice(128).unwrap_err().code(),
        "coordinate_out_of_range"
    );
    assert_eq!(
        mma.get_slice(-1).unwrap_err().code(),
        "coordinate_out_of_range"
    );
    // 48 rows are one and a half tiles of 32.
    let error = mma.thrfrg_c(&layout("(48,16):(1,48)")).unwrap_err();
    assert_eq!(error.code(), "overhang");
    let tile = [layout("48:1"), layout("16:1"), layout("16:1")];
    let error = TiledMma::with_tile(atom, &layout("(2,2,1):(1,2,0)"), &tile).unwrap_err();
    assert_eq!(error.code(), "not_divisible");
}

#[test]
fn a_tiled_copy_moves_every_element_once_and_in_vectors() {
    for (threads, values, shape) in [
        ("(32,8):(8,1)", "(1,8):(0,1)", (32, 64)),
        ("(16,4):(4,1)", "(2,8):(8,1)", (32, 32)),
        ("(8,8):(1,8)", "(8,2):(1,8)", (64, 16)),
    ] {
        let atom = atoms::vector_copy(8, Scalar::F16, false).unwrap();
        let (threads, values) = (layout(threads), layout(values));
        let copy = TiledCopy::new(atom, &threads, &values).unwrap();
        assert_eq!(copy.tile(), IntTuple::flat(&[shape.0, shape.1]).unwrap());
        let (rows, columns) = (2 * shape.0, 3 * shape.1);
        let tensor = swizzled(&format!("Sw<3,3,3> o ({rows},{columns}):({columns},1)"));
        let mut seen = HashSet::new();
        for thread in 0..copy.threads() {
            let slice = copy.get_slice(thread).unwrap();
            let part = slice.partition_s(&tensor).unwrap();
            assert_eq!(part, slice.partition_d(&tensor).unwrap());
            // Where the thread stands in the tile, by the definition of the raked product.
            let (tr, tc) = (
                threads.get(0).unwrap().size(),
                threads.get(1).unwrap().size(),
            );
            let (vr, vc) = (values.get(0).unwrap().size(), values.get(1).unwrap().size());
            let at = (0..tr)
                .flat_map(|r| (0..tc).map(move |c| (r, c)))
                .find(|&(r, c)| threads.at(&[r, c]) == thread)
                .unwrap();
            for r in 0..vr {
                for c in 0..vc {
                    let value = values.at(&[r, c]);
                    for x in 0..2 {
                        for y in 0..3 {
                            let row = x * shape.0 + at.0 * vr + r;
                            let column = y * shape.1 + at.1 * vc + c;
                            let place = part.at(&[value, x, y]);
                            assert_eq!(place, tensor.at(&[row, column]));
                            assert!(seen.insert(place));
                        }
                    }
                }
            }
        }
        assert_eq!(seen.len() as i64, rows * columns);
    }
}

/// Executes a copy into registers, instruction by instruction, from what the partitions say: `memory` holds at each offset the
/// number of the coordinate stored there. Returns each thread's registers.
fn execute(
    atom: &CopyAtom,
    copy: &TiledCopy,
    tensor: &Swizzled,
    fragment: &Layout,
    memory: &[i64],
) -> Vec<Vec<i64>> {
    let threads = copy.threads();
    let mut registers = vec![vec![-1; fragment.cosize() as usize]; threads as usize];
    let view = copy.retile(fragment).unwrap();
    let instructions = view.get(0).unwrap().get(1).unwrap().size();
    let values = view.get(0).unwrap().get(0).unwrap().size();
    let (rest0, rest1) = (view.get(1).unwrap().size(), view.get(2).unwrap().size());
    let points = atom.src.get(1).unwrap().size();
    for warp in 0..threads / 32 {
        for (instruction, x, y) in (0..instructions)
            .flat_map(|i| (0..rest0).flat_map(move |x| (0..rest1).map(move |y| (i, x, y))))
        {
            // Every element of the block, from what some lane points at.
            let mut block = vec![-1; atom.elements() as usize];
            for lane in 0..32 {
                let thread = 32 * warp + lane;
                let part = copy.get_slice(thread).unwrap().partition_s(tensor).unwrap();
                for p in 0..points {
                    let address = part.at(&[p + points * instruction, x, y]);
                    block[atom.src.at(&[lane, p]) as usize] = memory[address as usize];
                }
            }
            for lane in 0..32 {
                for v in 0..values {
                    let register = view.at(&[v + values * instruction, x, y]);
                    registers[(32 * warp + lane) as usize][register as usize] =
                        block[atom.dst.at(&[lane, v]) as usize];
                }
            }
        }
    }
    registers
}

#[test]
fn ldmatrix_fills_what_the_mma_reads() {
    let f16 = atoms::MMA_M16N8K16_F16;
    let warps = layout("(2,2,1):(1,2,0)");
    let plain = TiledMma::new(f16, &warps).unwrap();
    let wide = [layout("32:1"), layout("32:1"), layout("16:1")];
    let wide = TiledMma::with_tile(f16, &warps, &wide).unwrap();
    let s8 = TiledMma::new(atoms::MMA_M16N8K32_S8, &warps).unwrap();
    let x4_bytes = atoms::LDMATRIX_X4.recast(8).unwrap();
    let x2_bytes = atoms::LDMATRIX_X2.recast(8).unwrap();
    let row_major = "Sw<3,3,3> o (64,64):(64,1)";
    let column_major = "Sw<3,3,3> o (64,64):(1,64)";
    for &(atom, mma, operand, tensor) in &[
        (atoms::LDMATRIX_X4, &plain, Operand::A, row_major),
        (atoms::LDMATRIX_X4_TRANS, &plain, Operand::A, column_major),
        (atoms::LDMATRIX_X2, &plain, Operand::B, row_major),
        (atoms::LDMATRIX_X2_TRANS, &plain, Operand::B, column_major),
        (atoms::LDMATRIX_X1, &plain, Operand::B, row_major),
        (atoms::LDMATRIX_X4, &wide, Operand::B, row_major),
        (atoms::LDMATRIX_X4_TRANS, &wide, Operand::B, column_major),
        (x4_bytes, &s8, Operand::A, row_major),
        (x2_bytes, &s8, Operand::B, row_major),
    ] {
        let tensor = swizzled(tensor);
        let copy = TiledCopy::for_operand(atom, mma, operand).unwrap();
        // Memory holds at each offset the number of its coordinate.
        let mut memory = vec![-1; tensor.cosize() as usize];
        for i in 0..tensor.size() {
            memory[tensor.index(i) as usize] = i;
        }
        let fragment = mma
            .get_slice(0)
            .unwrap()
            .fragment(operand, &tensor)
            .unwrap();
        let registers = execute(&atom, &copy, &tensor, &fragment, &memory);
        for (thread, held) in registers.iter().enumerate() {
            let part = mma
                .get_slice(thread as i64)
                .unwrap()
                .partition(operand, &tensor)
                .unwrap();
            for i in 0..part.size() {
                let wanted = memory[part.index(i) as usize];
                assert_eq!(
                    held[fragment.index(i) as usize],
                    wanted,
                    "{} thread {thread} value {i}",
                    atom.name
                );
            }
        }
    }
}

#[test]
fn a_tiled_copy_refuses_an_atom_that_does_not_fit() {
    let warps = layout("(2,2,1):(1,2,0)");
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &warps).unwrap();
    // B of one n8 atom has 4 values; x4 moves 8.
    let error = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::B).unwrap_err();
    assert!(matches!(error.code(), "overhang" | "not_divisible"));
    let atom = atoms::vector_copy(8, Scalar::F16, false).unwrap();
    assert!(TiledCopy::new(atom, &layout("(4,4):(1,4)"), &layout("(1,4):(0,1)")).is_err());
    // Threads with a gap.
    assert!(TiledCopy::new(atom, &layout("(4,4):(1,8)"), &layout("(1,8):(0,1)")).is_err());
}
