//! The R700 write map: bijective for each group, conflict-free for every legal stride, illegal ones refused.

use std::collections::BTreeSet;

use layout_core::banks::r700::{R700Error, owned_dwords, write_map, write_place};
use layout_core::banks::{AMD_R700, Access, wavefronts};
use layout_core::proof::{bijective, injective};
use layout_core::{Layout, Swizzled};

#[test]
fn every_legal_group_and_stride_writes_apart_and_without_conflict() {
    let mut legal = 0;
    for threads in 1..=1024 {
        let owned = owned_dwords(threads).unwrap();
        assert_eq!(
            owned,
            match threads {
                1..=64 => 64,
                65..=128 => 32,
                129..=256 => 16,
                257..=512 => 8,
                _ => 4,
            }
        );
        for stride in (4..=owned).step_by(4) {
            legal += 1;
            let map = write_map(threads, stride).unwrap();
            assert!(injective(&Swizzled::plain(map)).is_ok());
            // The composed layout is the manual's formula.
            let mut written = BTreeSet::new();
            for thread in 0..threads {
                for index in (0..stride).step_by(4) {
                    let (bank, entry) = write_place(threads, stride, index, thread).unwrap();
                    assert_eq!(bank, thread % 4);
                    assert_eq!(entry, ((thread >> 2) * stride + index) / 4);
                    assert!((0..256).contains(&entry));
                    assert_eq!(map.at(&[thread, index / 4]), 16 * bank + 64 * entry);
                    assert!(
                        written.insert((bank, entry)),
                        "two writes to bank {bank}, entry {entry}"
                    );
                }
            }
            // Four threads a cycle, whatever the index.
            for first in (0..threads).step_by(32) {
                let addresses = core::array::from_fn(|lane| {
                    let thread = first + lane as i64;
                    if thread < threads {
                        map.at(&[thread, 0])
                    } else {
                        -1
                    }
                });
                let count = wavefronts(&AMD_R700, Access::St128, &addresses).unwrap();
                assert!(count.is_conflict_free());
                assert_eq!(
                    i64::from(count.wavefronts),
                    ((threads - first).min(32) + 3) / 4
                );
            }
        }
    }
    assert_eq!(legal, 64 * 16 + 64 * 8 + 128 * 4 + 256 * 2 + 512);
}

#[test]
fn full_groups_with_full_strides_fill_the_memory() {
    for threads in [64, 128, 256, 512, 1024] {
        let map = write_map(threads, owned_dwords(threads).unwrap()).unwrap();
        assert_eq!(map.size() * 16, 16 * 1024);
        // In units of 16-byte entries: a bijection onto all 1024.
        let units = Layout::new(map.shape(), map.stride()).unwrap();
        let all: BTreeSet<i64> = (0..1024).map(|i| units.index(i) / 16).collect();
        assert!(all.into_iter().eq(0..1024));
        let in_entries: Vec<(i64, i64)> = (0..map.leaves())
            .map(|i| (map.leaf(i).0, map.leaf(i).1 / 16))
            .collect();
        let flat = Layout::flat(
            &in_entries.iter().map(|l| l.0).collect::<Vec<_>>(),
            &in_entries.iter().map(|l| l.1).collect::<Vec<_>>(),
        )
        .unwrap();
        assert!(bijective(&Swizzled::plain(flat)).is_ok());
    }
}

#[test]
fn illegal_writes_are_refused() {
    assert_eq!(write_map(0, 4), Err(R700Error::Group { threads: 0 }));
    assert_eq!(write_map(1025, 4), Err(R700Error::Group { threads: 1025 }));
    for stride in [-4, 0, 1, 2, 6, 63, 68] {
        assert_eq!(
            write_map(64, stride),
            Err(R700Error::Stride { dwords: stride })
        );
    }
    assert_eq!(
        write_map(65, 64),
        Err(R700Error::BeyondOwned {
            dwords: 64,
            owned: 32,
            threads: 65
        })
    );
    assert_eq!(
        write_place(64, 16, 16, 0),
        Err(R700Error::Index {
            dwords: 16,
            stride: 16
        })
    );
    assert_eq!(
        write_place(64, 16, 6, 0),
        Err(R700Error::Index {
            dwords: 6,
            stride: 16
        })
    );
    assert_eq!(
        write_place(64, 16, 4, 64),
        Err(R700Error::Thread {
            thread: 64,
            threads: 64
        })
    );
}
