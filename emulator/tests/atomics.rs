//! `atom` and `red` of warps whose lanes share places.

mod common;

use common::{block, launch_with, with_out};
use ptx_emulator::Options;

#[test]
fn atomics_of_all_kinds() {
    let body = "red.global.add.u32 [%out+0], %tid; red.global.max.s32 [%out+4], %tid; red.global.or.b32 [%out+8], %lane;
    atom.global.add.f32 %f1, [%out+12], 0f3f800000; red.global.add.u64 [%out+16], 3; atom.global.inc.u32 %r1, [%out+24], 10;
    .shared .align 4 .b8 s[4]; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r2, [s], 2; bar.sync 0;
    ld.shared.u32 %r3, [s]; @%p1 st.global.u32 [%out+28], %r3;";
    let (data, report) = launch_with(
        &with_out(body),
        [4, 1, 1],
        [64, 1, 1],
        8,
        &Options::default(),
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(
        data,
        [4 * 2016, 63, 31, 256f32.to_bits(), 768, 0, 256 % 11, 128]
    );
}

/// Atomics of lanes that share places in several ways, against the definition: lane after lane, each finds what the one before it left.
#[test]
fn atomics_of_lanes_at_shared_places_go_lane_by_lane() {
    type Rule = fn(u32, u32) -> u32;
    type Place = fn(u32) -> u32;
    let rules: [(&str, Rule); 6] = [
        ("add.u32", |x, v| x.wrapping_add(v)),
        ("exch.b32", |_, v| v),
        ("min.s32", |x, v| (x as i32).min(v as i32) as u32),
        ("xor.b32", |x, v| x ^ v),
        ("inc.u32", |x, v| if x >= v { 0 } else { x + 1 }),
        ("cas.b32", |x, v| if x == v { v + 4 } else { x }),
    ];
    let patterns: [(&str, Place); 4] = [
        ("mov.u32 %r1, 5", |_| 5),
        ("rem.u32 %r1, %lane, 3", |lane| lane % 3),
        ("shr.u32 %r1, %lane, 3", |lane| lane / 8),
        ("mov.u32 %r1, %lane", |lane| lane),
    ];
    for (op, rule) in rules {
        for (pattern, place) in patterns {
            for (skip, space) in [(0, "global"), (6, "global"), (0, "shared"), (6, "shared")] {
                let (address, to) = match space {
                    "global" => (
                        "mad.wide.u32 %rd1, %r1, 4, %out; add.u64 %rd1, %rd1, 128",
                        "",
                    ),
                    _ => ("mov.u64 %rd2, s; mad.wide.u32 %rd1, %r1, 4, %rd2", "s"),
                };
                let new = if op.starts_with("cas") { ", %r6" } else { "" };
                let (all, back) = match to {
                    "" => ("st.global.u32 [%mine+128], %r2", ""),
                    _ => (
                        "mov.u64 %rd2, s; mad.wide.u32 %rd3, %tid, 4, %rd2; st.shared.u32 [%rd3], %r2",
                        "ld.shared.u32 %r7, [%rd3]; st.global.u32 [%mine+128], %r7;",
                    ),
                };
                let body = format!(
                    ".shared .align 4 .b8 s[128]; mul.lo.u32 %r2, %tid, 3; {all}; bar.sync 0;
    and.b32 %r3, %tid, 7; shl.b32 %r3, %r3, 1; add.u32 %r6, %r3, 4; and.b32 %r4, %tid, {skip}; setp.eq.u32 %p1, %r4, 0;
    mov.u32 %r5, 77; {pattern}; {address}; @%p1 atom.{space}.{op} %r5, [%rd1], %r3{new}; st.global.u32 [%mine], %r5;
    bar.sync 0; {back}"
                );
                let (found, report) = block(&body, 32, 64);
                assert!(report.is_clean(), "{body}: {}", report.findings[0]);
                let mut expected: Vec<u32> =
                    [[77; 32], std::array::from_fn(|l| 3 * l as u32)].concat();
                for lane in (0..32).filter(|lane| lane & skip == 0) {
                    let at = 32 + place(lane) as usize;
                    expected[lane as usize] = expected[at];
                    expected[at] = rule(expected[at], 2 * (lane & 7));
                }
                assert_eq!(found, expected, "{op} {pattern} {skip} {space}");
            }
        }
    }
}
