//! What two threads may do to one place without harm: stores of one value, and sums that differ in the last bits; and what is only not promised, which is a note.

mod common;

use common::{block, kinds, launch_with, with_out};
use ptx_emulator::{FindingKind as Kind, Options};

const SHARED: &str = ".shared .align 16 .b8 s[256]; mov.u32 %r1, s;\n";

/// Two warps that store the same bytes to shared memory, in whatever widths, do not race; other bytes do, and so do reads.
#[test]
fn two_warps_store_one_value_to_shared_memory() {
    let reads = "bar.sync 0; ld.shared.u32 %r5, [s]; st.global.u32 [%mine], %r5;";
    for (store, good) in [
        ("st.shared.u32 [s], 1;", true),
        (
            "st.shared.u8 [s], 1; st.shared.u8 [s+1], 2; st.shared.u16 [s+2], 3;",
            true,
        ),
        ("st.shared.v2.u32 [s], {1, 2};", true),
        (
            "mov.u64 %rd1, 77; st.shared.v2.u64 [s], {%rd1, %rd1};",
            true,
        ),
        // Parts of a value by one warp, all of it by the other.
        (
            "setp.lt.u32 %p1, %tid, 32; mov.u32 %r2, 0x04030201; @%p1 st.shared.u32 [s], %r2; @!%p1 st.shared.u8 [s+2], 3; @!%p1 st.shared.u16 [s], 0x201;",
            true,
        ),
        (
            "setp.lt.u32 %p1, %tid, 32; @%p1 st.shared.v4.u32 [s], {5, 6, 7, 8}; @!%p1 st.shared.v2.u32 [s+8], {7, 8};",
            true,
        ),
        ("cvta.shared.u64 %rd1, s; st.u32 [%rd1], 9;", true),
        ("st.volatile.shared.u32 [s], 9;", true),
        (
            "setp.lt.u32 %p1, %tid, 32; mov.u32 %r2, 0x04030201; @%p1 st.shared.u32 [s], %r2; @!%p1 st.shared.u8 [s+2], 4;",
            false,
        ),
        ("shr.u32 %r2, %tid, 5; st.shared.u32 [s], %r2;", false),
        (
            "shr.u32 %r2, %tid, 5; st.shared.v2.u32 [s], {1, %r2};",
            false,
        ),
        (
            "setp.lt.u32 %p1, %tid, 32; @%p1 st.shared.v4.u32 [s], {5, 6, 7, 8}; @!%p1 st.shared.v2.u32 [s+8], {7, 9};",
            false,
        ),
        // A read in between sees the value or not.
        (
            "mov.u32 %r6, 0; setp.lt.u32 %p1, %tid, 32; @%p1 st.shared.u32 [s], 1; @!%p1 ld.shared.u32 %r6, [s]; @%p1 st.shared.u32 [s], 1;",
            false,
        ),
    ] {
        let body = format!("{SHARED}{store}\n{reads}");
        let (_, report) = block(&body, 64, 64);
        let expected: &[Kind] = if good { &[] } else { &[Kind::SharedRace] };
        assert_eq!(kinds(&report), expected, "{store}\n{:#?}", report.findings);
    }
}

/// `any = 1` by some lanes of some warps, as a compiler makes it of `if (x > 20) any = 1;`.
#[test]
fn a_flag_that_several_set() {
    let body = |value: &str| {
        format!(
            "{SHARED}setp.eq.u32 %p2, %tid, 0; @%p2 st.shared.u32 [s], 0; bar.sync 0;
setp.gt.u32 %p1, %tid, 20; @%p1 st.shared.u32 [s], {value}; bar.sync 0;
ld.shared.u32 %r5, [s]; st.global.u32 [%mine], %r5;"
        )
    };
    let (data, report) = block(&body("1"), 128, 128);
    assert!(
        report.is_clean() && report.notes.is_empty(),
        "{:#?}",
        report.findings
    );
    assert_eq!(data, [1; 128]);
    let (_, report) = block(&body("%warp"), 128, 128);
    assert_eq!(kinds(&report), [Kind::SharedRace]);
}

/// Two blocks that store the same bytes to global memory, with the check for races between blocks.
#[test]
fn two_blocks_store_one_value_to_global_memory() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    for (store, good) in [
        ("st.global.u32 [%out], 5;", true),
        (
            "st.global.v2.u32 [%out], {5, 6}; st.global.u8 [%out+8], 7;",
            true,
        ),
        (
            "mov.u32 %r1, %ctaid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 0x02020202; @%p1 st.global.u32 [%out], %r3; @!%p1 st.global.u8 [%out+1], 2;",
            true,
        ),
        ("mov.u32 %r1, %ctaid.x; st.global.u32 [%out], %r1;", false),
        (
            "mov.u32 %r1, %ctaid.x; st.global.v2.u32 [%out], {5, %r1};",
            false,
        ),
        ("st.global.u32 [%out], 5; ld.global.u32 %r1, [%out];", false),
    ] {
        for seed in 0..3 {
            let options = Options {
                schedule: seed,
                ..options.clone()
            };
            let (_, report) = launch_with(&with_out(store), [8, 1, 1], [32, 1, 1], 64, &options);
            let expected: &[Kind] = if good { &[] } else { &[Kind::GlobalRace] };
            assert_eq!(kinds(&report), expected, "{store}\n{:#?}", report.findings);
        }
    }
}

/// Sums by all lanes, each in its own order: what differs in the last bits is a note; what is no sum is a finding.
#[test]
fn sums_that_differ_in_the_last_bits() {
    for (address, space) in [("[s]", "shared"), ("[%out]", "global")] {
        for (ty, value, is_note) in [
            // 1 + lane % 2 units in the last place, of 1.0.
            (
                "f32",
                "and.b32 %r2, %tid, 1; add.u32 %r2, %r2, 0x3f800000; mov.b32 %f1, %r2;",
                true,
            ),
            (
                "b32",
                "and.b32 %r2, %tid, 3; add.u32 %r2, %r2, 0x3f800000; mov.b32 %f1, %r2;",
                true,
            ),
            (
                "f32",
                "and.b32 %r2, %tid, 1; shl.b32 %r2, %r2, 12; add.u32 %r2, %r2, 0x3f800000; mov.b32 %f1, %r2;",
                false,
            ),
            ("f32", "cvt.rn.f32.u32 %f1, %tid;", false),
            (
                "f32",
                "and.b32 %r2, %tid, 1; shl.b32 %r2, %r2, 31; or.b32 %r2, %r2, 0x3f800000; mov.b32 %f1, %r2;",
                false,
            ),
            ("b32", "mov.b32 %f1, %tid;", false),
            (
                "u32",
                "add.u32 %r2, %tid, 0x3f800000; mov.b32 %r3, %r2;",
                false,
            ),
        ] {
            let reg = if ty == "u32" { "%r3" } else { "%f1" };
            let body = format!("{SHARED}{value}\nst.{space}.{ty} {address}, {reg};");
            let (_, report) = block(&body, 32, 64);
            let notes: Vec<Kind> = report.notes.iter().map(|n| n.kind).collect();
            let expected: (&[Kind], &[Kind]) = if is_note {
                (&[], &[Kind::WriteConflict])
            } else {
                (&[Kind::WriteConflict], &[])
            };
            assert_eq!((&kinds(&report)[..], &notes[..]), expected, "{body}");
        }
    }
}

/// A parity beyond 0 and 1 counts by its lowest bit.
#[test]
fn a_parity_of_minus_one_is_a_note() {
    let body = |parity: &str| {
        format!(
            ".shared .align 8 .b64 bar; setp.eq.u32 %p1, %tid, 0;
@%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], {parity}; @!%p2 bra WAIT;
st.global.u32 [%mine], 4;"
        )
    };
    for (parity, notes) in [("1", 0), ("-1", 1), ("3", 1)] {
        let (data, report) = block(&body(parity), 32, 32);
        assert!(report.is_clean(), "{parity}: {:#?}", report.findings);
        assert_eq!(report.notes.len(), notes, "{parity}");
        assert!(report.notes.iter().all(|n| n.kind == Kind::BadOperand));
        assert_eq!(data, [4; 32]);
    }
}

/// The initialisation of an mbarrier that another thread than the one that fences it has made.
#[test]
fn a_fence_by_another_thread_than_the_initialisation_is_a_note() {
    let body = |fence: &str| {
        format!(
            ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[256]; setp.eq.u32 %p1, %tid, 0;
@%p1 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
{fence}
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%out], 128, [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
ld.shared.u32 %r2, [s]; st.global.u32 [%mine+128], %r2;"
        )
    };
    for (fence, findings, notes) in [
        ("@%p1 fence.mbarrier_init.release.cluster;", 0, 0),
        ("fence.mbarrier_init.release.cluster;", 0, 0),
        (
            "setp.eq.u32 %p3, %tid, 32; @%p3 fence.mbarrier_init.release.cluster;",
            0,
            1,
        ),
        ("", 1, 0),
    ] {
        let (_, report) = block(&body(fence), 64, 128);
        let found = (report.findings.len(), report.notes.len());
        assert_eq!(found, (findings, notes), "{fence}: {report:#?}");
        let mut all = report.findings.iter().chain(&report.notes);
        assert!(all.all(|f| f.kind == Kind::MissingProxyFence));
    }
}

/// `wgmma` that reads what `cp.async` has brought, without a fence between the proxies: kernels of Triton do so. What threads store themselves needs the fence.
#[test]
fn wgmma_behind_copies_without_a_proxy_fence_is_a_note() {
    let copy = "cp.async.cg.shared.global [%r1], [%rd1], 16;";
    let small = "cp.async.ca.shared.global [%r1], [%rd1], 8; add.u32 %r9, %r1, 8; add.u64 %rd4, %rd1, 8; cp.async.ca.shared.global [%r9], [%rd4], 8;";
    let store = "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1]; st.shared.v4.u32 [%r1], {%r4, %r5, %r6, %r7};";
    let some = "setp.lt.u32 %p2, %tid, 32; @%p2 st.shared.u32 [%r0], 0; bar.sync 0;";
    let body = |fill: &str, wait: &str, more: &str, fence: &str| {
        format!(
            ".reg .b64 %da; .shared .align 1024 .b8 s[8192]; mov.u32 %r0, s; mad.lo.u32 %r1, %tid, 16, %r0; mad.wide.u32 %rd1, %tid, 16, %out; mov.u32 %r2, 0;
FILL: {fill}
    add.u32 %r1, %r1, 2048; add.u64 %rd1, %rd1, 2048; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 4; @%p1 bra FILL;
    {wait}
    {more}
    {fence} bar.sync 0;
    cvt.u64.u32 %rd2, %r0; and.b64 %rd2, %rd2, 0x3ffff; shr.u64 %rd2, %rd2, 4; or.b64 %da, %rd2, 0x4000004000010000;
    mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %da, %da, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mad.wide.u32 %rd0, %tid, 16, %out; st.global.v4.f32 [%rd0+8192], {{%f0, %f1, %f2, %f3}};"
        )
    };
    let fence = "fence.proxy.async.shared::cta;";
    let wait = "cp.async.wait_all; bar.sync 0;";
    for (fill, wait, more, fence, findings, notes) in [
        (copy, wait, "", fence, vec![], 0),
        (copy, wait, "", "", vec![], 1),
        (small, wait, "", "", vec![], 1),
        (store, "", "", fence, vec![], 0),
        (store, "", "", "", vec![Kind::MissingProxyFence], 0),
        // A word is stored besides what is copied, or not waited for.
        (copy, wait, some, "", vec![Kind::MissingProxyFence], 0),
        (copy, wait, some, fence, vec![], 0),
        (copy, "bar.sync 0;", "", "", vec![Kind::ReadBeforeWait], 0),
        (copy, "cp.async.wait_all;", "", "", vec![], 1),
    ] {
        let text = with_out(&body(fill, wait, more, fence)).replace("sm_90\n", "sm_90a\n");
        let (_, report) = launch_with(&text, [1; 3], [128, 1, 1], 4096, &Options::default());
        assert_eq!(
            (kinds(&report), report.notes.len()),
            (findings, notes),
            "{fill} {wait} {more} {fence}: {report:#?}"
        );
    }
}
