//! What relaxed arrivals order: no access by threads, but asynchronous operations that are complete, and mbarriers that `fence.mbarrier_init` has released.

mod common;

use common::{assembles, kinds};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// Two blocks of a warpgroup each. Block 0 copies 2048 bytes into a stage of both, `publish` comes before; all `read` the stage, and the first lane of each warp
/// arrives with `order` at the barrier that block 0 waits for before it refills the stage; `then` comes after that.
fn refill(publish: &str, read: &str, order: &str, then: &str) -> Report {
    let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
                [data], [%in], 2048, [full], %both;";
    let text = format!(
        ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in)
{{
    .reg .b32 %r<10>, %t, %lane, %rank, %at;
    .reg .b64 %d, %in;
    .reg .b16 %both;
    .reg .f32 %f<4>;
    .reg .pred %first, %second, %speaks, %fills, %done;
    .shared .align 1024 .b8 data[2048];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    .shared .align 8 .b64 other;
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    mov.u32 %lane, %laneid;
    mov.u32 %rank, %cluster_ctarank;
    mov.u16 %both, 3;
    or.b32 %r0, %t, %rank;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %second, %t, 1;
    setp.eq.u32 %speaks, %lane, 0;
    setp.eq.u32 %fills, %r0, 0;
    mov.u32 %at, data;
    @%first mbarrier.init.shared::cta.b64 [full], 1;
    @%first mbarrier.init.shared::cta.b64 [empty], 8;
    {publish}
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 2048;
    @%fills {copy}
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0;
    @!%done bra FULL;
    {read}
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 2048;
    mov.u32 %r1, empty;
    mapa.shared::cluster.u32 %r1, %r1, 0;
    @%speaks mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [%r1];
    @!%fills bra FULL1;
EMPTY:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [empty], 0;
    @!%done bra EMPTY;
    {copy}
FULL1:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 1;
    @!%done bra FULL1;
    {then}
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}}
"
    );
    assembles("refill", &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let input = memory.alloc(2048, 256).expect("memory");
    memory.write(input, &[0; 2048]).expect("a write");
    let launch = Launch {
        grid: [2, 1, 1],
        block: [128, 1, 1],
        cluster: [2, 1, 1],
        args: vec![Arg::Ptr(input)],
        ..Launch::default()
    };
    run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch")
}

const PUBLISH: &str = "@%first fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;";

/// Reads the stage by `wgmma`: two columns of 8 × 8 halves, 1024 bytes apart.
const PRODUCT: &str = "and.b32 %r2, %at, 0x3ffff;
    shr.u32 %r2, %r2, 4;
    cvt.u64.u32 %d, %r2;
    or.b64 %d, %d, 0x800400000;
    mov.f32 %f0, 0f00000000;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;";

const WAIT: &str = "wgmma.wait_group.sync.aligned 0;";

const LOAD: &str = "mad.lo.u32 %r3, %t, 16, %at;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];";

#[test]
fn a_stage_that_wgmma_has_read_is_given_back_by_a_relaxed_arrival() {
    let read = format!("{PRODUCT}\n{WAIT}");
    for order in ["relaxed", "release"] {
        let report = refill(PUBLISH, &read, order, "");
        assert!(report.is_clean(), "{order}: {:#?}", report.findings);
    }
}

#[test]
fn wgmma_must_be_waited_for_before_the_arrival() {
    for order in ["relaxed", "release"] {
        let report = refill(PUBLISH, PRODUCT, order, WAIT);
        assert_eq!(kinds(&report), [FindingKind::SharedRace], "{order}");
        let message = &report.findings[0].message;
        assert!(message.contains("the wgmma of warpgroup 0"), "{message}");
    }
}

#[test]
fn reads_by_threads_take_an_arrival_that_releases() {
    let both = format!("{PRODUCT}\n{WAIT}\n{LOAD}");
    for read in [LOAD, &both] {
        let report = refill(PUBLISH, read, "release", "");
        assert!(report.is_clean(), "{:#?}", report.findings);
        let report = refill(PUBLISH, read, "relaxed", "");
        assert_eq!(kinds(&report), [FindingKind::SharedRace]);
        let finding = &report.findings[0];
        assert!(finding.opcode.starts_with("cp.async.bulk"), "{finding}");
        assert!(finding.message.contains("read by warp"), "{finding}");
    }
}

#[test]
fn stores_by_threads_take_an_arrival_that_releases() {
    let store =
        format!("{LOAD}\nst.shared.v4.u32 [%r3], {{%r4, %r5, %r6, %r7}};\nfence.proxy.async;");
    let report = refill(PUBLISH, &store, "release", "");
    assert!(report.is_clean(), "{:#?}", report.findings);
    let report = refill(PUBLISH, &store, "relaxed", "");
    assert_eq!(kinds(&report), [FindingKind::SharedRace]);
}

#[test]
fn a_relaxed_barrier_of_the_cluster_publishes_released_mbarriers() {
    let relaxed = |before: &str| {
        let publish = format!(
            "{before}
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait.acquire;"
        );
        refill(&publish, LOAD, "release", "")
    };
    let report = relaxed("@%first fence.mbarrier_init.release.cluster;");
    assert!(report.is_clean(), "{:#?}", report.findings);
    // No fence, a fence of another thread, or one that is for proxies.
    for before in [
        "",
        "@%second fence.mbarrier_init.release.cluster;",
        "fence.proxy.async;",
    ] {
        let report = relaxed(before);
        let found = report
            .findings
            .iter()
            .find(|f| f.kind == FindingKind::Mbarrier);
        let found = found.unwrap_or_else(|| panic!("{before}: {:#?}", report.findings));
        assert!(
            found
                .message
                .contains("nothing orders this after its initialisation"),
            "{found}"
        );
    }
    // What is initialised after the fence is not released by it.
    let report = relaxed(
        "@%first fence.mbarrier_init.release.cluster;
    @%first mbarrier.init.shared::cta.b64 [other], 1;",
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    let publish = "@%first fence.mbarrier_init.release.cluster;
    @%first mbarrier.init.shared::cta.b64 [other], 128;
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait.acquire;
    mbarrier.arrive.shared::cta.b64 _, [other];";
    let report = refill(publish, LOAD, "release", "");
    assert_eq!(kinds(&report), [FindingKind::Mbarrier]);
}

#[test]
fn a_relaxed_barrier_of_the_cluster_orders_no_data() {
    for (order, found) in [
        ("release", vec![]),
        ("relaxed", vec![FindingKind::SharedRace]),
    ] {
        let publish = format!(
            "@%first fence.mbarrier_init.release.cluster;
    mad.lo.u32 %r8, %t, 4, %at;
    st.shared.u32 [%r8], %t;
    barrier.cluster.arrive.{order};
    barrier.cluster.wait.acquire;
    xor.b32 %r9, %rank, 1;
    mapa.shared::cluster.u32 %r9, %r8, %r9;
    ld.shared::cluster.u32 %r9, [%r9];
    fence.proxy.async;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;"
        );
        let report = refill(&publish, LOAD, "release", "");
        assert_eq!(kinds(&report), found, "{:#?}", report.findings);
    }
}
