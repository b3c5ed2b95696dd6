//! What orders the lanes of a warp (`lane_races`): arrivals at an mbarrier release what the arriving lanes did, not what their warp did.
//!
//! Warp 0 accesses shared memory and arrives, warp 1 waits and accesses it; or a warp alone.

mod common;

use common::kernel;
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, Report, run};

/// Runs two warps with shared words `data` (a word a lane at `%own`, lane 0's at `%zero`, lane 1's at `%one`) and a barrier `bar` of `count` arrivals. `%lane0` is
/// lane 0, `%warp1` warp 1; `WAIT` waits for phase 0.
fn report(count: u32, body: &str) -> Report {
    let wait = |label: &str| {
        format!(
            "{label}: mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0;\n    @!%done bra {label};"
        )
    };
    let body = body.replacen("WAIT;", &wait("W0"), 1);
    let text = kernel(
        ".param .u64 out",
        &format!(
            ".reg .b32 %t, %lane, %own, %zero, %one, %x; .reg .b64 %out; .reg .pred %lane0, %warp1, %first, %done;
    .shared .align 128 .b8 data[128];
    .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    mov.u32 %zero, data;
    add.u32 %one, %zero, 4;
    mad.lo.u32 %own, %lane, 4, %zero;
    setp.eq.u32 %lane0, %lane, 0;
    setp.ge.u32 %warp1, %t, 32;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [bar], {count};
    @!%warp1 st.shared.u32 [%own], %t;
    bar.sync 0;
    {body}"
        ),
    );
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(256, 256).expect("memory");
    let launch = Launch {
        block: [64, 1, 1],
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let options = Options {
        lane_races: true,
        ..Options::default()
    };
    run(&module, "k", &launch, &mut memory, &options).expect("a launch")
}

fn assert_clean(count: u32, body: &str) {
    let report = report(count, body);
    assert!(report.is_clean(), "{body}: {}", report.findings[0]);
}

fn assert_race(count: u32, body: &str) {
    let report = report(count, body);
    let found: Vec<_> = report.findings.iter().map(|f| f.kind.code()).collect();
    assert_eq!(found, ["shared_race"], "{body}: {:#?}", report.findings);
}

/// Warp 0 accesses, some lanes arrive, and warp 1 writes lane 0's or lane 1's word.
fn across(access: &str, arrive: &str, place: &str) -> String {
    format!(
        "@%warp1 bra SECOND;\n    {access}\n    {arrive}\n    bra END;
SECOND:
    WAIT;
    @%lane0 st.shared.u32 [{place}], %t;
END:"
    )
}

#[test]
fn a_lane_releases_what_it_did_itself() {
    let one = "@%lane0 mbarrier.arrive.shared::cta.b64 _, [bar];";
    for access in ["ld.shared.u32 %x, [%own];", "st.shared.u32 [%own], %t;"] {
        assert_clean(1, &across(access, one, "%zero"));
        assert_race(1, &across(access, one, "%one"));
        let synced = format!("bar.warp.sync -1;\n    {one}");
        assert_clean(1, &across(access, &synced, "%one"));
        // What lies before the last barrier is released by any lane.
        let before = format!("{access}\n    bar.warp.sync -1;\n    ld.shared.u32 %x, [%zero];");
        assert_clean(1, &across(&before, one, "%one"));
    }
}

#[test]
fn lanes_that_all_arrive_release_all() {
    let all = "mbarrier.arrive.shared::cta.b64 _, [bar];";
    assert_clean(32, &across("ld.shared.u32 %x, [%own];", all, "%one"));
    // One after the other, each after its own access.
    let apart = "@%lane0 ld.shared.u32 %x, [%own];
    @%lane0 mbarrier.arrive.shared::cta.b64 _, [bar];
    @!%lane0 ld.shared.u32 %x, [%own];
    @!%lane0 mbarrier.arrive.shared::cta.b64 _, [bar];";
    assert_clean(32, &across("", apart, "%one"));
}

#[test]
fn an_mbarrier_orders_the_lanes_of_its_own_warp() {
    let own = |arrive: &str| {
        format!(
            "@%warp1 bra END;
    st.shared.u32 [%own], %t;
    {arrive}
    WAIT;
    ld.shared.u32 %x, [%one];
END:"
        )
    };
    assert_clean(32, &own("mbarrier.arrive.shared::cta.b64 _, [bar];"));
    assert_race(1, &own("@%lane0 mbarrier.arrive.shared::cta.b64 _, [bar];"));
}

/// A bulk copy by lane 0 is ordered after its own accesses.
#[test]
fn a_bulk_copy_is_ordered_after_the_lane_that_issues_it() {
    let store = |before: &str| {
        format!(
            "@%warp1 bra END;
    st.shared.u32 [%own], %t;
    fence.proxy.async.shared::cta;
    {before}
    @!%lane0 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [data], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:"
        )
    };
    assert_clean(1, &store("bar.warp.sync -1;"));
    assert_race(1, &store(""));
    let load = |before: &str| {
        format!(
            "@%warp1 bra END;
    ld.shared.u32 %x, [%own];
    {before}
    @!%lane0 bra FILLED;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%out], 128, [bar];
FILLED:
    WAIT;
END:"
        )
    };
    assert_clean(1, &load("bar.warp.sync -1;"));
    assert_race(1, &load(""));
}

/// Another warp may hand on what one lane has released, by a fence of its own.
#[test]
fn a_fence_covers_what_one_lane_has_released() {
    let body = across(
        "@%lane0 st.shared.v4.u32 [data], {%t, %t, %t, %t};",
        "@%lane0 mbarrier.arrive.shared::cta.b64 _, [bar];",
        "%zero",
    );
    let store = "@!%lane0 bra END;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%out], [data], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;";
    assert_clean(
        1,
        &body.replace("@%lane0 st.shared.u32 [%zero], %t;", store),
    );
}

/// `bar.warp.sync` orders the lanes that it names, and no others.
#[test]
fn a_barrier_of_some_lanes_orders_these() {
    // Lanes write their own words; after the barriers of both halves, each reads the word of the lane `%x` bytes on.
    let exchange = |masks: [&str; 2], flip: u32| {
        format!(
            "@%warp1 exit; setp.ge.u32 %first, %lane, 16; st.shared.u32 [%own], %t;
    @!%first bar.warp.sync {}; @%first bar.warp.sync {};
    xor.b32 %x, %lane, {flip}; mad.lo.u32 %x, %x, 4, %zero; ld.shared.u32 %t, [%x];",
            masks[0], masks[1]
        )
    };
    let halves = ["0x0000ffff", "0xffff0000"];
    for flip in [1, 8, 15] {
        assert_clean(1, &exchange(halves, flip));
        assert_clean(1, &exchange(["-1", "-1"], flip));
    }
    for flip in [16, 31] {
        assert_race(1, &exchange(halves, flip));
        assert_clean(1, &exchange(["-1", "-1"], flip));
    }
    // Writes after reads of the other half.
    let after_reads = |mask: &str, flip: u32| {
        format!(
            "@%warp1 exit; xor.b32 %x, %lane, {flip}; mad.lo.u32 %x, %x, 4, %zero; ld.shared.u32 %x, [%x]; {mask} st.shared.u32 [%own], %t;"
        )
    };
    let by_halves = "and.b32 %x, %lane, 16; shl.b32 %x, 0xffff, %x; bar.warp.sync %x;";
    let by_eights = "and.b32 %x, %lane, 24; shl.b32 %x, 0xff, %x; bar.warp.sync %x;";
    assert_clean(1, &after_reads(by_halves, 8));
    assert_clean(1, &after_reads(by_eights, 4));
    assert_race(1, &after_reads(by_halves, 16));
    assert_race(1, &after_reads(by_eights, 8));
    assert_race(1, &after_reads("", 1));
    // What one lane knows by an earlier barrier it passes on by a later one: 0 and 1 meet, then 1 and 2.
    let pairs = |second: &str| {
        format!(
            "@%warp1 exit; st.shared.u32 [%own], %t; setp.lt.u32 %first, %lane, 2; @%first bar.warp.sync 3;
    sub.u32 %x, %lane, 1; setp.lt.u32 %first, %x, 2; @%first bar.warp.sync {second};
    setp.eq.u32 %first, %lane, 2; @%first ld.shared.u32 %t, [%zero];"
        )
    };
    assert_clean(1, &pairs("6"));
    let alone = pairs("6").replace("@%first bar.warp.sync 3;", "");
    assert_race(1, &alone);
    // Lane 0 arrives for those that it has met.
    let arrival = |mask: &str| {
        format!(
            "@%warp1 bra B; setp.lt.u32 %first, %lane, 16; st.shared.u32 [%own], %t; @%first bar.warp.sync {mask};
    @%lane0 mbarrier.arrive.shared::cta.b64 _, [bar]; bra E;
B:  WAIT; setp.lt.u32 %first, %lane, 16; @%first ld.shared.u32 %x, [%own]; E: mov.u32 %x, 0;"
        )
    };
    assert_clean(1, &arrival("0xffff"));
    assert_race(1, &arrival("0xffff").replace("@%first ld", "ld"));
}

/// Members wait for each other with the same mask: with different ones they never meet.
#[test]
fn masks_of_warp_barriers() {
    let hangs = |body: &str| {
        let report = report(1, &format!("@%warp1 exit; {body} bar.sync 1, 32;"));
        let kinds: Vec<_> = report.findings.iter().map(|f| f.kind.code()).collect();
        assert!(
            kinds.contains(&"deadlock"),
            "{body}: {:#?}",
            report.findings
        );
    };
    hangs(
        "setp.lt.u32 %first, %lane, 16; @%first bar.warp.sync -1; @!%first bar.warp.sync 0xffff0000;",
    );
    hangs("setp.lt.u32 %first, %lane, 16; selp.b32 %x, 0xffff, -1, %first; bar.warp.sync %x;");
    hangs("setp.lt.u32 %first, %lane, 16; @%first bar.warp.sync -1;");
    // A lane that is not in its own mask is a finding of its own.
    let wrong = report(
        1,
        "@%warp1 exit; setp.lt.u32 %first, %lane, 16; @!%first bar.warp.sync 0xffff;",
    );
    assert!(
        wrong
            .findings
            .iter()
            .any(|f| f.kind.code() == "member_mask"),
        "{:#?}",
        wrong.findings
    );
    // Lanes that have exited are not waited for; and a lane may meet others by one mask first, and the rest by another.
    assert_clean(
        1,
        "@%warp1 exit; setp.eq.u32 %first, %lane, 9; @%first exit; bar.warp.sync -1;",
    );
    assert_clean(
        1,
        "@%warp1 exit; setp.eq.u32 %first, %lane, 0; @%first bar.warp.sync 3; @%first bra E;
    setp.eq.u32 %first, %lane, 1; @%first bar.warp.sync 6; @%first bar.warp.sync 3; setp.eq.u32 %first, %lane, 2; @%first bar.warp.sync 6; E: mov.u32 %x, 0;",
    );
}

#[test]
fn a_proxy_fence_covers_what_lanes_know() {
    assert_clean(1, "fence.proxy.async;\n    bar.sync 0;");
}
