//! Every atom against tables of the manuals (`tests/golden/atoms`, made by formulas written apart from the layouts), for all
//! lanes and values.

mod amd;
mod constructors;
mod copy;
mod golden;
mod mma;
mod sparse;
mod tcgen05;
mod wgmma;

use layout_core::atoms;

#[test]
fn r700_writes_never_meet() {
    // Bank `thread mod 4`, dword `(thread >> 2)·dst_stride + dst_index` of the bank, entries of 4 dwords; bytes.
    for (threads, stride) in [(64, 64), (64, 16), (128, 32), (256, 8), (1024, 4)] {
        let write = atoms::r700_lds_write(threads, stride).unwrap();
        for thread in 0..threads {
            for slot in 0..stride / 4 {
                let (bank, dword) = (thread % 4, (thread >> 2) * stride + 4 * slot);
                assert_eq!(write.at(&[thread, slot]), 16 * bank + 64 * (dword / 4));
            }
        }
    }
    for (threads, stride) in [(0, 4), (2000, 4), (64, 68), (64, 3), (1024, 8)] {
        assert!(
            atoms::r700_lds_write(threads, stride).is_err(),
            "{threads} {stride}"
        );
    }
}
