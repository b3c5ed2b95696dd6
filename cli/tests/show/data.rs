//! The data of pictures against brute force, from the definitions.

use std::collections::HashMap;

use tilewright::Layout;

use crate::{cells, json, text_of};

/// Wavefronts of 16-byte rows in phases of 8 lanes, from the definition.
fn wavefronts_of_16_bytes(addresses: &[i64]) -> u32 {
    let cost = |phase: &[i64]| {
        let mut words: HashMap<i64, Vec<i64>> = HashMap::new();
        for address in phase {
            for word in address / 4..address / 4 + 4 {
                let asked = words.entry(word % 32).or_default();
                if !asked.contains(&word) {
                    asked.push(word);
                }
            }
        }
        words.values().map(Vec::len).max().unwrap_or(0) as u32
    };
    addresses.chunks(8).map(cost).sum()
}

/// `Sw<3,3,3>` on halves in rows of 64, written by hand.
fn swizzled(row: i64, col: i64) -> i64 {
    (row * 64 + col) ^ ((row & 7) << 3)
}

#[test]
fn cells_are_what_the_layout_says() {
    let (exit, value) = json(&[
        "Sw<3,3,3> o (64,64):(64,1)",
        "--access",
        "ldmatrix.x4 @ (16,2):(64,8)",
    ]);
    assert_eq!(exit, 0, "{value}");
    assert_eq!(value["elem_bytes"], 2);
    let panels = value["panels"].as_array().expect("panels");
    let offsets: [fn(i64, i64) -> i64; 2] = [|row, col| row * 64 + col, swizzled];
    assert_eq!(panels.len(), 2);
    for (panel, offset) in panels.iter().zip(offsets) {
        let cells = cells(panel);
        assert_eq!(cells.len(), 64 * 64);
        // Lane l points at row l % 16, column 8 (l / 16).
        let starts: Vec<i64> = (0..32)
            .map(|lane| 2 * offset(lane % 16, 8 * (lane / 16)))
            .collect();
        for (&(row, col), cell) in &cells {
            let at = offset(row, col);
            assert_eq!(cell["offset"], at);
            assert_eq!(cell["bank"], 2 * at / 4 % 32);
            let lanes: Vec<i64> = (0..32)
                .filter(|&lane| {
                    let start = starts[lane as usize];
                    start <= 2 * at && 2 * at < start + 16
                })
                .collect();
            assert_eq!(cell["lanes"], serde_json::json!(lanes), "({row},{col})");
            match lanes.first() {
                Some(lane) => assert_eq!(cell["phase"], lane / 8),
                None => assert!(cell["lane"].is_null() && cell["phase"].is_null()),
            }
        }
        assert_eq!(
            panel["access"]["wavefronts"],
            wavefronts_of_16_bytes(&starts)
        );
        assert_eq!(panel["access"]["ideal"], 4);
    }
}

#[test]
fn offenders_are_named() {
    let (_, value) = json(&["(64,64):(64,1)", "--access", "ldmatrix.x4 @ (16,2):(64,8)"]);
    let panel = &value["panels"][0];
    assert_eq!(value["panels"].as_array().map(Vec::len), Some(1));
    for (number, phase) in panel["access"]["phases"]
        .as_array()
        .expect("phases")
        .iter()
        .enumerate()
    {
        assert_eq!(phase["wavefronts"], 8);
        let words = phase["words"].as_array().expect("words");
        let lanes: Vec<i64> = words
            .iter()
            .map(|word| word["lanes"][0].as_i64().expect("a lane"))
            .collect();
        let expected: Vec<i64> = (8 * number as i64..8 * number as i64 + 8).collect();
        assert_eq!(lanes, expected);
    }
    let text = text_of(&["(64,64):(64,1)", "--access", "ldmatrix.x4 @ (16,2):(64,8)"]);
    assert!(text.contains("phase 2 (lanes 16–23): 8 wavefronts where 1 would do; 8 different words of bank group 1 (banks 4–7) are asked for, by lane 16 at (0,8); lane 17 at (1,8)"), "{text}");
}

#[test]
fn other_ranks_and_signs_are_drawn() {
    // Rank 3: the modes after the first are columns, the second fastest.
    let (_, value) = json(&["(4,2,3):(1,100,10)"]);
    for (&(row, col), cell) in &cells(&value["panels"][0]) {
        assert_eq!(cell["offset"], row + 100 * (col % 2) + 10 * (col / 2));
    }
    assert!(value["notes"].to_string().contains("Rank 3"));
    // Rank 1: lines of 32, the last one short.
    let (_, value) = json(&["70:-3", "--banks"]);
    let line = cells(&value["panels"][0]);
    assert_eq!(line.len(), 70);
    for (&(row, col), cell) in &line {
        let offset = -3 * (32 * row + col);
        assert_eq!(cell["offset"], offset);
        assert_eq!(cell["bank"], offset.rem_euclid(32));
    }
    // Downwards from the last row: the same banks are asked as upwards.
    let costs = |layout: &str| {
        let (exit, value) = json(&[layout, "--access", "ld.32 @ 32:32"]);
        assert_eq!(exit, 0, "{value}");
        value["panels"]
            .as_array()
            .and_then(|p| p.last().cloned())
            .expect("a panel")["access"]["wavefronts"]
            .clone()
    };
    for (pitch, expected) in [(32, 32), (33, 1), (34, 2), (36, 4)] {
        assert_eq!(costs(&format!("(32,32):({pitch},1)")), expected);
        assert_eq!(costs(&format!("(32,32):(-{pitch},1)")), expected);
    }
}

#[test]
fn a_column_major_tile_gives_lanes_the_elements_below() {
    let (exit, value) = json(&["(8,8):(1,8)", "--access", "ld.128 @ (8,2):(1,32)"]);
    assert_eq!(exit, 0, "{value}");
    for (&(row, col), cell) in &cells(&value["panels"][0]) {
        assert_eq!(cell["lane"], col + 8 * (row / 4));
    }
    let notes = value["notes"].to_string();
    assert!(notes.contains("follow in memory"), "{notes}");
}

#[test]
fn broadcasts_and_the_pair_rule_are_told() {
    let (_, value) = json(&["(8,32):(32,1)", "--access", "ld.32 @ (4,8):(0,1)"]);
    let cells_of = cells(&value["panels"][0]);
    assert_eq!(
        cells_of[&(0, 3)]["lanes"],
        serde_json::json!([12, 13, 14, 15])
    );
    assert_eq!(value["panels"][0]["access"]["wavefronts"], 1);
    let (_, value) = json(&["(8,32):(32,1)", "--access", "ld.128 @ (2,16):(0,4)"]);
    assert!(value["notes"].to_string().contains("Pair rule"));
    assert_eq!(
        value["panels"][0]["access"]["phases"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn fragments_agree_with_the_manual() {
    // A of m16n8k16: row g + 8((i>>1)&1), column 2t + (i&1) + 8(i>>2); two halves a register.
    let (_, value) = json(&["--atom", "mma.m16n8k16.f16", "--operand", "A"]);
    let a = cells(&value["panels"][0]);
    assert_eq!(a.len(), 256);
    for lane in 0..32 {
        for i in 0..8 {
            let at = (
                (lane >> 2) + 8 * ((i >> 1) & 1),
                2 * (lane & 3) + (i & 1) + 8 * (i >> 2),
            );
            assert_eq!(
                (&a[&at]["thread"], &a[&at]["value"], &a[&at]["register"]),
                (&lane.into(), &i.into(), &(i / 2).into())
            );
        }
    }
    // B: k = 2t + (i&1) + 8(i>>1), n = g.
    let (_, value) = json(&["--atom", "mma.m16n8k16.f16", "--operand", "b"]);
    let b = cells(&value["panels"][0]);
    for lane in 0..32 {
        for i in 0..4 {
            let at = (2 * (lane & 3) + (i & 1) + 8 * (i >> 1), lane >> 2);
            assert_eq!(
                (&b[&at]["thread"], &b[&at]["value"]),
                (&lane.into(), &i.into())
            );
        }
    }
    // D of wgmma: row 16w + g + 8((i>>1)&1), column 8(i>>2) + 2t + (i&1).
    let (_, value) = json(&["--atom", "wgmma.m64n32k16.bf16", "--operand", "D"]);
    let d = cells(&value["panels"][0]);
    assert_eq!(d.len(), 64 * 32);
    for thread in 0..128 {
        let (warp, lane) = (thread / 32, thread % 32);
        for i in 0..16 {
            let at = (
                16 * warp + (lane >> 2) + 8 * ((i >> 1) & 1),
                8 * (i >> 2) + 2 * (lane & 3) + (i & 1),
            );
            assert_eq!(
                (&d[&at]["thread"], &d[&at]["value"], &d[&at]["register"]),
                (&thread.into(), &i.into(), &i.into())
            );
        }
    }
    // ldmatrix.x4: lane l points at row l & 7 of matrix l >> 3; .trans: register j gets rows 2t, 2t+1 of column g.
    let (_, value) = json(&["--atom", "ldmatrix.x4.trans"]);
    let (src, dst) = (cells(&value["panels"][0]), cells(&value["panels"][1]));
    for lane in 0..32_i64 {
        for k in 0..8 {
            assert_eq!(src[&(lane & 7, 8 * (lane >> 3) + k)]["thread"], lane);
        }
        for j in 0..4 {
            for half in 0..2 {
                let cell = dst[&(2 * (lane & 3) + half, 8 * j + (lane >> 2))];
                assert_eq!(
                    (&cell["thread"], &cell["register"]),
                    (&lane.into(), &j.into())
                );
            }
        }
    }
    // Only the first 16 lanes' addresses count for .x2.
    let (_, value) = json(&["--atom", "ldmatrix.x2", "--operand", "src"]);
    assert!(
        cells(&value["panels"][0])
            .values()
            .all(|cell| cell["thread"].as_i64() < Some(16))
    );
}

/// The layout of a panel says who holds each cell; the cells must agree with it. `place` is the row and column of an index.
fn agrees(name: &str, operand: &str, threads: i64, place: impl Fn(i64) -> (i64, i64)) {
    let (status, value) = json(&["--atom", name, "--operand", operand]);
    assert_eq!(status, 0, "{name} {operand}: {value}");
    let panel = &value["panels"][0];
    assert_eq!(panel["clipped"], false, "{name} {operand}");
    let layout = Layout::parse(panel["layout"].as_str().unwrap()).unwrap();
    let drawn = cells(panel);
    let values = layout.size() / layout.get(0).unwrap().size();
    let mut seen = 0;
    for thread in 0..threads {
        for value in 0..values {
            let at = place(layout.at(&[thread, value]));
            let cell = drawn[&at];
            assert_eq!(
                cell["element"].as_i64(),
                Some(layout.at(&[thread, value])),
                "{name} {operand} {at:?}"
            );
            seen += i64::from(
                cell["thread"].as_i64() == Some(thread) && cell["value"].as_i64() == Some(value),
            );
        }
    }
    assert_eq!(seen, drawn.len() as i64, "{name} {operand}");
}

#[test]
fn new_instructions_are_drawn_as_their_layouts_say() {
    // Blocks side by side; B's one below the other.
    agrees("mma.m8n8k4.row.col.f16", "A", 32, |i| (i % 8, i / 8));
    agrees("mma.m8n8k4.row.col.f16", "B", 32, |i| (i / 8, i % 8));
    agrees("mma.m8n8k4.row.col.f32.f16.f16.f16", "C", 32, |i| {
        (i % 8, i / 8)
    });
    agrees("mma.m8n8k4.row.col.f32.f16.f16.f16", "D", 32, |i| {
        (i % 8, i / 8)
    });
    agrees("mma.m16n8k64.u4.s4", "A", 32, |i| (i % 16, i / 16));
    agrees("mma.sp.m16n8k128.s4", "A", 32, |i| (i % 16, i / 16));
    agrees("mfma_f32_4x4x1_16b_f32", "D", 64, |i| (i % 4, i / 4));
    agrees("mfma_f32_32x32x16_fp8_bf8", "B", 64, |i| (i / 32, i % 32));
    agrees("wmma_f16_16x16x16_f16.wave64", "D", 64, |i| {
        (i % 16, i / 16)
    });
    agrees("ldmatrix.m16n16.x2.trans.b8", "dst", 32, |i| {
        (i % 256 / 16, i / 256 * 16 + i % 16)
    });
    agrees("stmatrix.m16n8.x4.trans.b8", "src", 32, |i| {
        (i % 128 / 16, i / 128 * 16 + i % 16)
    });
    agrees("tcgen05.ld.16x128b.x4", "tmem", 32, |i| (i % 128, i / 128));
    // Replicated: the lowest thread is named.
    agrees("wmma_f32_16x16x16_bf16", "A", 16, |i| (i % 16, i / 16));
}

#[test]
fn metadata_names_the_thread_whose_register_is_read() {
    let (_, value) = json(&["--atom", "mma.sp.m16n8k32.f16", "--operand", "E"]);
    for ((row, chunk), cell) in cells(&value["panels"][0]) {
        // Threads 0 and 1 of each quad, four chunks each; row g in the lower half of the register, row g + 8 in the upper.
        assert_eq!(cell["thread"], 4 * (row % 8) + chunk / 4);
        assert_eq!(cell["value"], chunk % 4 + row / 8 * 4);
    }
    let (_, value) = json(&["--atom", "mma.sp.ordered.m16n8k64.e4m3", "--operand", "e"]);
    for ((row, chunk), cell) in cells(&value["panels"][0]) {
        assert_eq!(cell["thread"], 4 * (row % 8) + row / 8 + 2 * (chunk / 8));
        assert_eq!(cell["value"], chunk % 8);
    }
}

#[test]
fn accumulators_are_drawn_as_tensor_memory() {
    // Layout B: two blocks of 64 rows, each in two halves of N.
    let (_, value) = json(&["--atom", "tcgen05.mma.m128n32.cta2"]);
    let panel = &value["panels"][0];
    assert_eq!(
        (&panel["rows"]["all"], &panel["cols"]["all"]),
        (&256.into(), &16.into())
    );
    let drawn = cells(panel);
    assert_eq!(drawn.len(), 128 * 32);
    for m in 0..128 {
        for n in 0..32 {
            let lane = m % 64 + 64 * (n / 16) + 128 * (m / 64);
            assert_eq!(
                drawn[&(lane, n % 16)]["element"],
                m % 64 + 64 * (n / 16) + 128 * (n % 16) + 65536 * (m / 64)
            );
        }
    }
}
