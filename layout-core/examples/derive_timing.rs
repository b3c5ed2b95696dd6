//! How long derivations take: `cargo run --release -p layout-core --example derive_timing`.

use std::time::Instant;

use layout_core::Layout;
use layout_core::derive::{Family, Pattern, Tile, derive};

fn pattern(access: &str, layout: &str) -> Pattern {
    let layout = Layout::parse(layout).expect("a layout");
    Pattern::from_layout(access.parse().expect("an access"), &layout).expect("a pattern")
}

fn time(tile: Tile, patterns: &[Pattern]) -> (f64, &'static str, &'static str, u64) {
    let mut best = f64::MAX;
    let mut result = ("", "", 0);
    for _ in 0..1 {
        let start = Instant::now();
        let found = derive(tile, patterns, Family::Any).expect("a derivation");
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        result = (
            found.status.name(),
            found.family.name(),
            found.certificate.examined().map(|e| e.count).sum(),
        );
    }
    (best, result.0, result.1, result.2)
}

fn main() {
    let bf16 = |cols| Tile {
        rows: 64,
        cols,
        elem_bytes: 2,
    };
    let f32 = |rows, cols| Tile {
        rows,
        cols,
        elem_bytes: 4,
    };
    let cases = [
        (
            "64-byte rows",
            bf16(32),
            vec![
                pattern("cp.async.16", "(4,8):(8,32)"),
                pattern("ldmatrix.x4", "(16,2):(32,8)"),
            ],
        ),
        (
            "128-byte rows",
            bf16(64),
            vec![
                pattern("cp.async.16", "(8,4):(8,64)"),
                pattern("ldmatrix.x4", "(16,2):(64,8)"),
            ],
        ),
        (
            "256-byte rows",
            bf16(128),
            vec![
                pattern("cp.async.16", "32:8"),
                pattern("ldmatrix.x4", "(16,2):(128,8)"),
            ],
        ),
        (
            "st.v4 4 lanes a row",
            bf16(64),
            vec![
                pattern("st.128", "(4,8):(8,64)"),
                pattern("ldmatrix.x4", "(16,2):(64,8)"),
            ],
        ),
        (
            "f32 transpose",
            f32(16, 32),
            vec![pattern("st.32", "32:1"), pattern("ld.32", "(16,2):(32,1)")],
        ),
        (
            "f32 epilogue",
            f32(64, 128),
            vec![pattern("st.64", "(4,8):(2,128)"), pattern("ld.128", "32:4")],
        ),
        (
            "row, column, diagonal",
            bf16(64),
            vec![
                pattern("ld.128", "(8,4):(8,64)"),
                pattern("ldmatrix.x4", "(8,4):(64,8)"),
                pattern("ld.128", "(8,4):(72,512)"),
            ],
        ),
    ];
    for (name, tile, patterns) in &cases {
        let (ms, status, family, count) = time(*tile, patterns);
        println!("{name:24} {ms:9.4} ms  {status} {family} {count}");
    }

    // Four random patterns each: lane bits on random index bits, or random linear combinations of them, or anything at all.
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut below = |n: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 16) % n as u64) as i64
    };
    for kind in ["bits", "combinations", "anything"] {
        let mut times = Vec::new();
        let mut tally = std::collections::BTreeMap::new();
        for _ in 0..1000 {
            let (rows, cols) =
                [(64, 64), (128, 32), (256, 256), (128, 128), (16, 32)][below(5) as usize];
            let tile = Tile {
                rows,
                cols,
                elem_bytes: [2, 4, 4, 8][below(4) as usize],
            };
            let patterns: Vec<Pattern> = (0..4)
                .map(|_| {
                    let access = ["ld.32", "ld.64", "ld.128", "ldmatrix.x4"][below(4) as usize]
                        .parse()
                        .expect("an access");
                    let access: layout_core::banks::Access = access;
                    let unit = (i64::from(access.bytes()) / tile.elem_bytes).max(1);
                    let units = rows * cols / unit;
                    let images: Vec<i64> = (0..5)
                        .map(|_| {
                            if kind == "bits" {
                                1 << below(i64::from(units.trailing_zeros()))
                            } else {
                                below(units)
                            }
                        })
                        .collect();
                    let elements = core::array::from_fn(|lane| {
                        unit * if kind == "anything" {
                            below(units)
                        } else {
                            (0..5)
                                .filter(|i| lane >> i & 1 == 1)
                                .fold(0, |x, i| x ^ images[i])
                        }
                    });
                    Pattern { access, elements }
                })
                .collect();
            let (ms, status, family, count) = time(tile, &patterns);
            *tally.entry((status, family)).or_insert(0) += 1;
            times.push((ms, count, status));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        println!(
            "{kind:14} median {:.4} ms, 99% {:.4} ms, worst {:.4} ms ({} nodes, {})  {tally:?}",
            times[500].0, times[990].0, times[999].0, times[999].1, times[999].2
        );
    }
}
