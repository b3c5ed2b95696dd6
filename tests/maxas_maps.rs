//! The maps of the SGEMM plans are made by composing layouts; the maxas walk-through gives them as bit formulas of the thread index.
//! Here those formulas are written out, as its authors did, and compared with the layouts for every thread.
//!
//! maxas calls the operand along x `A` and the one along y `B` (it is column-major); bytes throughout, f32 elements, tile side W.

use tilewright::Layout;
use tilewright::kernels::sources::maxas::Maxas;
use tilewright::kernels::sources::maxas::maps::{K_STEP, Maps, Side};

fn maps(kernel: Maxas) -> Maps {
    kernel.maps().expect("the maps compose")
}

/// The formulas of one tile size, each from a thread index.
struct Formulas {
    threads: i64,
    w: i64,
    /// Threads from here on load the y operand.
    loads_y_from: i64,
    /// First load: float4 along the side, and row along k; rows from one load to the next.
    load_side: fn(i64) -> i64,
    load_row: fn(i64) -> i64,
    load_rows: i64,
    write_s: fn(i64) -> i64,
    y_base: i64,
    read_as: fn(i64) -> i64,
    read_bs: fn(i64) -> i64,
    second_quad: i64,
    double_buffer: i64,
    write_cs: fn(read_as: i64, read_bs: i64) -> i64,
    read_cs: fn(i64) -> i64,
    c_x: fn(i64) -> i64,
    c_y: fn(i64) -> i64,
}

const MAXAS_64: Formulas = Formulas {
    threads: 64,
    w: 64,
    loads_y_from: 32,
    load_side: |tid| tid & 15,
    load_row: |tid| (tid >> 4) & 1,
    load_rows: 2,
    write_s: |tid| (tid & 15) * 16 + ((tid >> 4) & 1) * 256,
    y_base: 2048,
    read_as: |tid| ((tid >> 1) & 7) << 4,
    read_bs: |tid| (((tid & 0x30) >> 3) | (tid & 1)) << 4,
    second_quad: 128,
    double_buffer: 4096,
    write_cs: |read_as, read_bs| read_bs * 16 + read_as,
    read_cs: |tid| (((tid & 32) << 3) + (tid & 31)) << 2,
    c_x: |tid| tid & 31,
    c_y: |tid| (tid & 32) >> 1,
};

const MAXAS_128: Formulas = Formulas {
    threads: 256,
    w: 128,
    loads_y_from: 128,
    load_side: |tid| tid & 31,
    load_row: |tid| (tid >> 5) & 3,
    load_rows: 4,
    write_s: |tid| (tid & 31) * 16 + ((tid >> 5) & 3) * 512,
    y_base: 4096,
    read_as: |tid| (((tid & 0x80) >> 4) | ((tid >> 1) & 7)) << 4,
    read_bs: |tid| (((tid & 0x70) >> 3) | (tid & 1)) << 4,
    second_quad: 256,
    double_buffer: 8192,
    write_cs: |read_as, read_bs| read_bs * 32 + read_as,
    read_cs: |tid| (((tid & 0x60) << 4) | (tid & 31) | ((tid & 0x80) >> 2)) << 2,
    c_x: |tid| (tid & 31) | ((tid & 0x80) >> 2),
    c_y: |tid| (tid & 0x60) >> 1,
};

fn both() -> Vec<(Maps, Formulas)> {
    vec![
        (maps(Maxas::SGEMM_64), MAXAS_64),
        (maps(Maxas::SGEMM_128), MAXAS_128),
    ]
}

#[test]
fn the_block_and_its_halves() {
    for (maps, f) in both() {
        assert_eq!((maps.threads(), maps.w), (f.threads, f.w));
        assert_eq!(maps.half_stage(), f.y_base);
        for side in [Side::X, Side::Y] {
            let threads = maps.load(side, true).tv.get(0).expect("threads").size();
            assert_eq!(
                threads, f.loads_y_from,
                "half of the block loads {side}, the other half begins there"
            );
        }
    }
}

#[test]
fn load() {
    for (maps, f) in both() {
        for side in [Side::X, Side::Y] {
            let tv = maps.load(side, true).tv;
            // The second half of the block loads y with the same low bits of tid.
            for tid in 0..f.threads {
                for v in 0..K_STEP / f.load_rows {
                    for element in 0..4 {
                        let x = 4 * (f.load_side)(tid) + element;
                        let k = (f.load_row)(tid) + v * f.load_rows;
                        assert_eq!(
                            tv.at(&[tid % f.loads_y_from, 4 * v + element]),
                            x + f.w * k,
                            "{side}, tid {tid}, load {v}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn write_s() {
    for (maps, f) in both() {
        for side in [Side::X, Side::Y] {
            let store = maps.load(side, true).store;
            for tid in 0..f.threads {
                for v in 0..K_STEP / f.load_rows {
                    let rows_further = v * f.load_rows * 4 * f.w;
                    assert_eq!(
                        store.at(&[tid % f.loads_y_from, 4 * v]),
                        (f.write_s)(tid) + rows_further,
                        "{side}, tid {tid}, load {v}"
                    );
                }
            }
        }
    }
}

#[test]
fn read_as_and_read_bs() {
    for (maps, f) in both() {
        for tid in 0..f.threads {
            assert_eq!(
                maps.read_x.index(tid),
                (f.read_as)(tid),
                "readAs, tid {tid}"
            );
            assert_eq!(
                maps.read_y.index(tid),
                (f.read_bs)(tid),
                "readBs, tid {tid}"
            );
        }
        // (thread, (vector element, quad, k)) → byte: the second quad and the k rows are immediates.
        for (side, first) in [(Side::X, f.read_as), (Side::Y, f.read_bs)] {
            let (read, _) = maps.fragment_read(side).expect("it composes");
            for tid in 0..f.threads {
                for (quad, k) in (0..K_STEP).flat_map(|k| [(0, k), (1, k)]) {
                    let byte = first(tid) + quad * f.second_quad + k * 4 * f.w;
                    assert_eq!(
                        read.at(&[tid, 4 * (quad + 2 * k)]),
                        byte,
                        "{side}, tid {tid}, quad {quad}, k {k}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_double_buffer_is_one_exclusive_or() {
    for (maps, f) in both() {
        let stages = maps.both_stages().expect("it composes");
        let side = maps.w * K_STEP;
        for element in 0..side {
            for half in 0..2 {
                let [first, second] = [0, 1].map(|stage| 4 * stages.at(&[element, half, stage]));
                assert_eq!(first, 4 * element + half * f.y_base);
                assert_eq!(second, first ^ f.double_buffer);
            }
        }
    }
}

#[test]
fn write_cs() {
    for (maps, f) in both() {
        for tid in 0..f.threads {
            let expected = (f.write_cs)((f.read_as)(tid), (f.read_bs)(tid));
            assert_eq!(maps.write_c.index(tid), expected, "tid {tid}");
        }
    }
}

#[test]
fn read_cs() {
    for (maps, f) in both() {
        for tid in 0..f.threads {
            for (row, half) in (0..4).flat_map(|row| [(row, 0), (row, 1)]) {
                let byte = (f.read_cs)(tid) + row * 4 * f.w + half * f.second_quad;
                assert_eq!(
                    maps.read_c.at(&[tid, row + 4 * half]),
                    byte,
                    "tid {tid}, row {row}, half {half}"
                );
            }
        }
    }
}

#[test]
fn c_x_and_c_y() {
    for (maps, f) in both() {
        for tid in 0..f.threads {
            for i in 0..64 {
                // Row of the pass, half along x, pass, half along y.
                let (r, half_x, it, half_y) = (i & 3, (i >> 2) & 1, (i >> 3) & 3, i >> 5);
                let x = (f.c_x)(tid) + half_x * f.w / 2;
                let y = (f.c_y)(tid) + 4 * r + it + half_y * f.w / 2;
                let thread = tid + f.threads * (r + 4 * half_x);
                assert_eq!(
                    maps.c_out.at(&[thread, it + 4 * half_y]),
                    x + f.w * y,
                    "tid {tid}, ({r}, {half_x}, {it}, {half_y})"
                );
            }
        }
    }
}

/// What a thread owns follows from what it reads: 4×4 elements at its quads, four times.
#[test]
fn the_accumulators_are_the_quads_that_a_thread_reads() {
    for (maps, f) in both() {
        let owned: Layout = maps.accumulators().expect("it composes");
        for tid in 0..f.threads {
            let (x, y) = ((f.read_as)(tid) / 4, (f.read_bs)(tid) / 4);
            for i in 0..8 {
                for j in 0..8 {
                    let (dx, dy) = (i % 4 + i / 4 * f.w / 2, j % 4 + j / 4 * f.w / 2);
                    assert_eq!(owned.at(&[tid, i, j]), x + dx + f.w * (y + dy));
                }
            }
        }
    }
}
