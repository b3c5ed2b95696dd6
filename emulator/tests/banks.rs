//! The bank model against hardware counters: every row of `bank_wavefronts_h200.csv`, and a brute-force count by definition.

mod common;

use common::Random;
use ptx_emulator::banks::{SharedAccess, wavefronts};
use std::collections::BTreeSet;

#[test]
fn agrees_with_every_measured_row() {
    let text = include_str!("../../tests/golden/bank_wavefronts_h200.csv");
    let mut rows = 0;
    for (n, line) in text.lines().enumerate().skip(1) {
        let mut fields = line.split(',');
        let op = fields.next().expect("an operation");
        let measured: u32 = fields
            .next()
            .and_then(|f| f.parse().ok())
            .expect("wavefronts");
        let (mut addresses, mut mask) = ([0u32; 32], 0u32);
        for (lane, field) in fields.enumerate().take(32) {
            let a: i64 = field.parse().expect("an address");
            if a >= 0 {
                addresses[lane] = a as u32;
                mask |= 1 << lane;
            }
        }
        let access = match op {
            "ld.32" => SharedAccess::Load { bytes: 4 },
            "ld.64" => SharedAccess::Load { bytes: 8 },
            "ld.128" => SharedAccess::Load { bytes: 16 },
            "st.32" => SharedAccess::Store { bytes: 4 },
            "st.64" => SharedAccess::Store { bytes: 8 },
            "st.128" => SharedAccess::Store { bytes: 16 },
            "ldmatrix.x1" => SharedAccess::Matrix { matrices: 1 },
            "ldmatrix.x2" => SharedAccess::Matrix { matrices: 2 },
            _ => SharedAccess::Matrix { matrices: 4 },
        };
        assert_eq!(
            wavefronts(access, &addresses, mask).taken,
            measured,
            "row {n}: {line}"
        );
        rows += 1;
    }
    assert_eq!(rows, 3520);
}

/// Word by word and bank by bank, with no pair rule.
fn brute_force_store(bytes: u32, addresses: &[u32; 32], mask: u32) -> u32 {
    let lanes = 128 / bytes.max(4) as usize;
    let mut total = 0;
    for first in (0..32).step_by(lanes) {
        let mut words = vec![BTreeSet::new(); 32];
        for (l, address) in addresses.iter().enumerate().skip(first).take(lanes) {
            if mask >> l & 1 == 1 {
                for b in 0..bytes {
                    let word = (address + b) / 4;
                    words[word as usize % 32].insert(word);
                }
            }
        }
        total += words.iter().map(BTreeSet::len).max().unwrap_or(0) as u32;
    }
    total
}

#[test]
fn stores_agree_with_the_definition() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let bytes = 1 << random.below(5);
        let range = [4, 32, 256][random.below(3) as usize];
        let mut addresses = [0u32; 32];
        for a in &mut addresses {
            *a = random.below(range) as u32 * bytes;
        }
        let mask = if random.below(2) == 0 {
            u32::MAX
        } else {
            random.bits() as u32
        };
        let expected = brute_force_store(bytes, &addresses, mask);
        assert_eq!(
            wavefronts(SharedAccess::Store { bytes }, &addresses, mask).taken,
            expected,
            "{bytes} {addresses:?} {mask:x}"
        );
    }
}

#[test]
fn moving_a_pattern_by_128_bytes_changes_nothing() {
    let mut random = Random(8);
    for _ in 0..500 {
        let mut addresses = [0u32; 32];
        for a in &mut addresses {
            *a = random.below(64) as u32 * 16;
        }
        let moved = addresses.map(|a| a + 128 * 5);
        let access = SharedAccess::Load { bytes: 16 };
        assert_eq!(
            wavefronts(access, &addresses, u32::MAX),
            wavefronts(access, &moved, u32::MAX)
        );
    }
}

/// The counters of a run are those of the model, through the cache of patterns.
#[test]
fn counters_of_a_kernel() {
    // Lane l reads word l * stride; three strides in one loop, the third time round the first pattern moved by 128 bytes.
    let body = ".shared .align 16 .b8 s[16384];
    mov.u32 %r0, 0;
    mov.u32 %r1, s;
L0: mad.lo.u32 %r2, %tid, 4, %r1;
    mad.lo.u32 %r3, %r0, 128, %r2;
    st.shared.u32 [%r3], %tid;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p0, %r0, 32;
    @%p0 bra L0;
    mad.lo.u32 %r4, %tid, 128, %r1;
    ld.shared.u32 %r5, [%r4];
    mad.lo.u32 %r4, %tid, 8, %r1;
    ld.shared.u32 %r6, [%r4];
    ld.shared.u32 %r7, [s];
    @%p0 ld.shared.u32 %r8, [s];";
    let (_, report) = common::block(body, 32, 1);
    assert!(report.is_clean(), "{}", report.findings[0]);
    let shared: Vec<_> = report
        .counters
        .shared()
        .map(|c| {
            (
                c.wavefronts,
                c.ideal_wavefronts,
                c.min_wavefronts,
                c.max_wavefronts,
            )
        })
        .collect();
    assert_eq!(
        shared,
        [(32, 32, 1, 1), (32, 1, 32, 32), (2, 1, 2, 2), (1, 1, 1, 1)]
    );
}
