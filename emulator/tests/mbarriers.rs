//! mbarriers, clusters and bulk copies: kernels whose results are known by arithmetic, and which the sanitizer finds clean.

mod common;

use common::{assembles, kernel};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, Report, run};

/// What every kernel here starts with. Thread 0 has `%first`; `bar0` and `bar1` are mbarriers.
const HEAD: &str = "
    .reg .b32 %r<40>, %t, %rank, %bar;
    .reg .b64 %rd<20>, %out, %in, %state;
    .reg .b16 %h<8>;
    .reg .pred %p<10>, %first, %done;
    .shared .align 1024 .b8 data[16384];
    .shared .align 8 .b64 bar0;
    .shared .align 8 .b64 bar1;
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %bar, bar0;
";

/// Words 0, 1, 2, … as input; 8192 words of output.
#[track_caller]
fn go(body: &str, blocks: u32, cluster: u32, threads: u32) -> (Vec<u32>, Report) {
    let text = kernel(".param .u64 out, .param .u64 in", &format!("{HEAD}{body}"));
    let at = std::panic::Location::caller().line();
    assembles(&format!("mbarriers-{at}"), &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let words = 8192u32;
    let (out, input) = (
        memory.alloc(4 * u64::from(words), 256).expect("memory"),
        memory.alloc(4 * u64::from(words), 256).expect("memory"),
    );
    let iota: Vec<u8> = (0..words).flat_map(u32::to_le_bytes).collect();
    memory.write(input, &iota).expect("a write");
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: [cluster, 1, 1],
        args: vec![Arg::Ptr(out), Arg::Ptr(input)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    let data = memory.read(out, 4 * words as usize).expect("a read");
    let words = data
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b));
    (words.collect(), report)
}

#[track_caller]
fn clean(body: &str, blocks: u32, cluster: u32, threads: u32) -> Vec<u32> {
    let (out, report) = go(body, blocks, cluster, threads);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
    out
}

/// Init of `bar0` for `count` arrivals, published to all.
fn init(count: u32) -> String {
    format!(
        "@%first mbarrier.init.shared::cta.b64 [bar0], {count};
    @%first fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
"
    )
}

/// Waits for parity `parity` of `[address]`.
fn wait(label: &str, address: &str, parity: &str) -> String {
    format!(
        "{label}:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [{address}], {parity};
    @!%done bra {label};
"
    )
}

#[test]
fn arrivals_order_shared_memory() {
    let out = clean(
        &format!(
            "{}
    mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 4, %r0;
    st.shared.u32 [%r1], %t;
    mbarrier.arrive.shared::cta.b64 %state, [bar0];
WAIT:
    mbarrier.test_wait.shared::cta.b64 %done, [bar0], %state;
    @!%done bra WAIT;
    xor.b32 %r2, %t, 0x60;
    mad.lo.u32 %r1, %r2, 4, %r0;
    ld.shared.u32 %r3, [%r1];
    mad.wide.u32 %rd0, %t, 4, %out;
    st.global.u32 [%rd0], %r3;",
            init(128)
        ),
        1,
        1,
        128,
    );
    for (t, x) in out.iter().enumerate().take(128) {
        assert_eq!(*x as usize, t ^ 0x60);
    }
}

#[test]
fn counts_drops_and_pending_counts() {
    // Two warps: phase 0 needs 3 + 1 arrivals; the drop leaves 3 for phase 1.
    let out = clean(
        &format!(
            "{}
    @!%first bra OTHERS;
    mbarrier.arrive.noComplete.shared::cta.b64 %state, [bar0], 2;
    mbarrier.pending_count.b64 %r0, %state;
    st.global.u32 [%out], %r0;
    mbarrier.arrive.noComplete.shared::cta.b64 %state, [bar0], 1;
    mbarrier.pending_count.b64 %r0, %state;
    st.global.u32 [%out+4], %r0;
    mbarrier.arrive_drop.shared::cta.b64 _, [bar0];
    {}
    mbarrier.arrive.shared::cta.b64 %state, [bar0], 3;
    {}
    mov.u32 %r1, 7;
    st.global.u32 [%out+8], %r1;
OTHERS:",
            init(4),
            wait("W0", "bar0", "0"),
            wait("W1", "%bar", "1")
        ),
        1,
        1,
        64,
    );
    assert_eq!(out[..3], [4, 2, 7]);
}

/// 32 lanes at an mbarrier of one arrival: 32 phases, of which a wait by parity sees none.
#[test]
fn one_instruction_does_not_complete_phases_that_nobody_waits_for() {
    let body = |arrivals: u32| {
        format!(
            "{}
    mbarrier.arrive.shared::cta.b64 _, [bar0];
    {}",
            init(arrivals),
            wait("W0", "bar0", "0")
        )
    };
    clean(&body(32), 1, 1, 32);
    clean(&body(64), 1, 1, 64);
    for arrivals in [1, 4, 11] {
        let (_, report) = go(&body(arrivals), 1, 1, 32);
        let text = report.findings.first().map(ToString::to_string);
        let phases = 32 / arrivals;
        assert!(
            text.as_ref()
                .is_some_and(|t| t.contains(&format!("complete {phases} phases"))),
            "{arrivals}: {text:?}"
        );
    }
}

#[test]
fn bulk_copies_come_and_go() {
    // In: 1024 bytes; each thread doubles its word; out by a bulk group.
    let out = clean(
        &format!(
            "{}
    @!%first bra LOADED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar0], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%in], 1024, [bar0];
LOADED:
    {}
    mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 4, %r0;
    ld.shared.u32 %r2, [%r1];
    add.u32 %r2, %r2, %r2;
    st.shared.u32 [%r1], %r2;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%first bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [data], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:",
            init(1),
            wait("W0", "bar0", "0")
        ),
        1,
        1,
        256,
    );
    for (t, x) in out.iter().enumerate().take(256) {
        assert_eq!(*x as usize, 2 * t);
    }
}

#[test]
fn bulk_reductions_to_global_memory() {
    for (op, each) in [
        ("add.u32", 3 * 5),
        ("max.s32", 5),
        ("xor.b32", 5),
        ("inc.u32", 3),
    ] {
        let out = clean(
            &format!(
                "mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 4, %r0;
    mov.u32 %r2, 5;
    st.shared.u32 [%r1], %r2;
    fence.proxy.async;
    bar.sync 0;
    @!%first bra END;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%out], [data], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
END:"
            ),
            3,
            1,
            32,
        );
        assert!(
            out[..32].iter().all(|x| *x == each),
            "{op}: {:?}",
            &out[..32]
        );
    }
    // f16 and f32 sums.
    let out = clean(
        "mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 4, %r0;
    mov.u32 %r2, 0x3c003e00;
    st.shared.u32 [%r1], %r2;
    mov.u32 %r3, 0x3fc00000;
    st.shared.u32 [%r1+128], %r3;
    fence.proxy.async;
    bar.sync 0;
    @!%first bra END;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%out], [data], 128;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%out+128], [data+128], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:",
        2,
        1,
        32,
    );
    assert!(out[..32].iter().all(|x| *x == 0x4000_4200));
    assert!(out[32..64].iter().all(|x| *x == 3.0f32.to_bits()));
}

#[test]
fn a_cluster_shares_its_memory() {
    // Block r reads word t of block (r + 1) % 4.
    let out = clean(
        "mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 4, %r0;
    mad.lo.u32 %r2, %rank, 1000, %t;
    st.shared.u32 [%r1], %r2;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r3, %rank, 1;
    and.b32 %r3, %r3, 3;
    mapa.shared::cluster.u32 %r4, %r1, %r3;
    ld.shared::cluster.u32 %r5, [%r4];
    getctarank.shared::cluster.u32 %r6, %r4;
    cvt.u64.u32 %rd1, %r1;
    cvta.shared.u64 %rd1, %rd1;
    mapa.u64 %rd2, %rd1, %r3;
    atom.add.u32 %r7, [%rd2], 0;
    add.u32 %r5, %r5, %r6;
    sub.u32 %r7, %r7, %r5;
    add.u32 %r7, %r7, %r6;
    add.u32 %r5, %r5, %r7;
    mov.u32 %r8, %ctaid.x;
    mad.lo.u32 %r8, %r8, 32, %t;
    mad.wide.u32 %rd3, %r8, 4, %out;
    st.global.u32 [%rd3], %r5;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;",
        8,
        4,
        32,
    );
    for b in 0..8u32 {
        for t in 0..32u32 {
            let other = (b % 4 + 1) % 4;
            assert_eq!(out[(b * 32 + t) as usize], other * 1000 + t + other);
        }
    }
}

/// `fence.mbarrier_init` is for what the same lane initialised: by the other lanes of the warp it publishes nothing.
#[test]
fn a_fence_by_other_lanes_publishes_nothing() {
    let copied = |fence: &str| {
        let body = format!(
            "@%first mbarrier.init.shared::cta.b64 [bar0], 1;
    {fence} fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%first bra WAITS;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar0], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%in], 512, [bar0];
WAITS:
    {}",
            wait("READY", "bar0", "0")
        );
        let report = go(&body, 1, 1, 32).1;
        assert!(report.is_clean(), "{:#?}", report.findings);
        report
            .notes
            .iter()
            .map(|f| f.kind.code())
            .collect::<Vec<_>>()
    };
    assert_eq!(copied("@%first"), Vec::<&str>::new());
    assert_eq!(copied(""), Vec::<&str>::new());
    assert_eq!(copied("@!%first"), ["missing_proxy_fence"]);
}

#[test]
fn copies_to_other_blocks_and_to_many() {
    // Block 0 multicasts 512 bytes to all; each sends 256 of them to the next block.
    let out = clean(
        &format!(
            "{}
    @%first mbarrier.init.shared::cta.b64 [bar1], 1;
    @%first fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%first bra WAITS;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar0], 512;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar1], 256;
    setp.ne.u32 %p0, %rank, 0;
    @%p0 bra WAITS;
    mov.u16 %h0, 15;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [data], [%in], 512, [bar0], %h0;
WAITS:
    {}
    @!%first bra SENT;
    mov.u32 %r0, data;
    mov.u32 %r9, bar1;
    add.u32 %r1, %rank, 1;
    and.b32 %r1, %r1, 3;
    mapa.shared::cluster.u32 %r2, %r0, %r1;
    mapa.shared::cluster.u32 %r3, %r9, %r1;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2+1024], [data+256], 256, [%r3];
SENT:
    {}
    mov.u32 %r4, data;
    mad.lo.u32 %r4, %t, 4, %r4;
    ld.shared.u32 %r5, [%r4];
    ld.shared.u32 %r6, [%r4+1024];
    mad.lo.u32 %r7, %rank, 64, %t;
    mad.wide.u32 %rd3, %r7, 8, %out;
    st.global.v2.u32 [%rd3], {{%r5, %r6}};
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;",
            init(1),
            wait("W0", "bar0", "0"),
            wait("W1", "bar1", "0")
        ),
        4,
        4,
        64,
    );
    for r in 0..4 {
        for t in 0..64 {
            let at = 2 * (64 * r + t);
            assert_eq!(out[at..at + 2], [t as u32, t as u32 + 64]);
        }
    }
}

#[test]
fn remote_arrivals_and_stores() {
    // Every block sends its rank to slot `rank` of block 0, which sums them by red.async as well.
    let out = clean(
        &format!(
            "mov.u32 %r9, 0;
    @%first st.shared.u32 [data+64], %r9;
    {}
    @!%first bra WAITS;
    mov.u32 %r0, data;
    mapa.shared::cluster.u32 %r1, %r0, 0;
    mapa.shared::cluster.u32 %r2, %bar, 0;
    mad.lo.u32 %r3, %rank, 4, %r1;
    mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r2], 8;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %rank, [%r2];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1+64], %rank, [%r2];
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
    setp.ne.u32 %p0, %rank, 0;
    @%p0 bra WAITS;
    {}
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [data];
    st.global.v4.u32 [%out], {{%r4, %r5, %r6, %r7}};
    ld.shared.u32 %r8, [data+64];
    st.global.u32 [%out+16], %r8;
WAITS:
    barrier.cluster.arrive;
    barrier.cluster.wait;",
            init(4),
            wait("W0", "bar0", "0")
        ),
        4,
        4,
        32,
    );
    assert_eq!(out[..5], [0, 1, 2, 3, 6]);
}

#[test]
fn small_copies_arrive_at_mbarriers() {
    for noinc in ["", ".noinc"] {
        let count = if noinc.is_empty() { 64 } else { 128 };
        let out = clean(
            &format!(
                "{}
    mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 16, %r0;
    mad.wide.u32 %rd0, %t, 16, %in;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
    cp.async.mbarrier.arrive{noinc}.shared.b64 [bar0];
    mbarrier.arrive.shared.b64 %state, [bar0];
WAIT:
    mbarrier.try_wait.shared.b64 %done, [bar0], %state, 1000;
    @!%done bra WAIT;
    xor.b32 %r2, %t, 63;
    mad.lo.u32 %r1, %r2, 16, %r0;
    ld.shared.u32 %r3, [%r1];
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.u32 [%rd1], %r3;",
                init(count)
            ),
            1,
            1,
            64,
        );
        for t in 0..64u32 {
            assert_eq!(out[t as usize], 4 * (t ^ 0x3f));
        }
    }
}

#[test]
fn a_ring_of_two_stages() {
    // A producer warp and a consumer warp, six rounds through two stages of 128 bytes.
    let out = clean(
        "setp.lt.u32 %p1, %t, 32;
    mov.u32 %r0, data;
    mov.u32 %r1, bar0;
    .shared .align 8 .b64 full[2];
    .shared .align 8 .b64 empty[2];
    mov.u32 %r2, full;
    mov.u32 %r3, empty;
    @!%first bra MADE;
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.init.shared.b64 [full+8], 1;
    mbarrier.init.shared.b64 [empty], 1;
    mbarrier.init.shared.b64 [empty+8], 1;
    fence.mbarrier_init.release.cluster;
MADE:
    bar.sync 0;
    mov.u32 %r4, 0;
    @%p1 bra PRODUCER;
CONSUMER:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    and.b32 %r6, %r6, 1;
    mad.lo.u32 %r7, %r5, 8, %r2;
FULL:
    mbarrier.try_wait.parity.shared.b64 %done, [%r7], %r6;
    @!%done bra FULL;
    mad.lo.u32 %r8, %r5, 128, %r0;
    sub.u32 %r9, %t, 32;
    mad.lo.u32 %r8, %r9, 4, %r8;
    ld.shared.u32 %r10, [%r8];
    mad.lo.u32 %r11, %r4, 32, %r9;
    mad.wide.u32 %rd0, %r11, 4, %out;
    st.global.u32 [%rd0], %r10;
    bar.warp.sync 0xffffffff;
    mad.lo.u32 %r12, %r5, 8, %r3;
    setp.eq.u32 %p2, %r9, 0;
    @%p2 mbarrier.arrive.shared.b64 _, [%r12];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p3, %r4, 6;
    @%p3 bra CONSUMER;
    bra END;
PRODUCER:
    @!%first bra END;
LOAD:
    and.b32 %r5, %r4, 1;
    shr.u32 %r6, %r4, 1;
    and.b32 %r6, %r6, 1;
    xor.b32 %r6, %r6, 1;
    mad.lo.u32 %r7, %r5, 8, %r3;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %done, [%r7], %r6;
    @!%done bra EMPTY;
    mad.lo.u32 %r8, %r5, 8, %r2;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 128;
    mad.lo.u32 %r9, %r5, 128, %r0;
    mad.wide.u32 %rd1, %r4, 128, %in;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 128, [%r8];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p3, %r4, 6;
    @%p3 bra LOAD;
END:",
        1,
        1,
        64,
    );
    for (i, x) in out.iter().enumerate().take(192) {
        assert_eq!(*x as usize, i);
    }
}

#[test]
fn clusters_are_what_the_kernel_allows() {
    let launch = |directive: &str, cluster: u32| {
        let text = kernel("", "").replace("k()", &format!("k() {directive}"));
        let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let launch = Launch {
            grid: [8, 1, 1],
            cluster: [cluster, 1, 1],
            ..Launch::default()
        };
        let result = run(
            &module,
            "k",
            &launch,
            &mut GlobalMemory::new(),
            &Options::default(),
        );
        result.map_err(|e| e.to_string()).map(|r| r.is_clean())
    };
    assert_eq!(launch(".maxclusterrank 4", 4), Ok(true));
    assert_eq!(
        launch(".explicitcluster .reqnctapercluster 2, 1, 1", 2),
        Ok(true)
    );
    let error = launch(".maxclusterrank 4", 8).expect_err("too large");
    assert!(
        error.contains("at most 4 blocks (.maxclusterrank)"),
        "{error}"
    );
    let error = launch(".reqnctapercluster 2, 1, 1", 4).expect_err("another");
    assert!(error.contains("requires clusters"), "{error}");
}
