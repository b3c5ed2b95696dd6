//! The barriers of a block and of a cluster: who is waited for, and what `.aligned` promises.

mod common;

use common::{block, kernel, kinds, with_out};
use ptx_emulator::{Arg, FindingKind as Kind, GlobalMemory, Launch, Module, Options, Report, run};

fn clean(body: &str, threads: u32) -> Vec<u32> {
    let (data, report) = block(body, threads, threads as usize);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
    data
}

fn found(body: &str, threads: u32) -> Report {
    block(body, threads, threads as usize).1
}

/// Threads that have exited are not waited for, in whatever way they did.
#[test]
fn exited_threads_do_not_keep_a_barrier() {
    let leave = [
        // Lanes, warps, both, and all threads but one.
        ("setp.lt.u32 %p1, %tid, 8;", "@%p1 exit;"),
        ("setp.ge.u32 %p1, %tid, 40;", "@%p1 ret;"),
        ("setp.lt.u32 %p1, %tid, 32;", "@%p1 exit;"),
        ("setp.ge.u32 %p1, %tid, 32;", "@%p1 bra END;"),
        ("setp.ne.u32 %p1, %tid, 77;", "@%p1 ret;"),
        (
            "and.b32 %r9, %tid, 1; setp.eq.u32 %p1, %r9, 0;",
            "@!%p1 bra ON; exit; ON:",
        ),
        // After some work of their own.
        (
            "setp.ge.u32 %p1, %tid, 64;",
            "@!%p1 bra ON; st.global.u32 [%mine], 7; ret; ON:",
        ),
    ];
    let barriers = [
        "bar.sync 0;",
        "barrier.sync 3;",
        "barrier.cta.sync.aligned 1;",
        "setp.eq.u32 %p2, 0, 0; bar.red.and.pred %p3, 0, %p2; @!%p3 trap;",
        "setp.eq.u32 %p2, 0, 0; barrier.red.or.pred %p3, 0, !%p2; @%p3 trap;",
        "bar.sync 0; bar.sync 0;",
    ];
    for (who, how) in leave {
        for barrier in barriers {
            clean(
                &format!("{who} {how} {barrier} st.global.u32 [%mine], 5; END:"),
                96,
            );
        }
    }
    // Those who are left are counted.
    let body = "setp.lt.u32 %p1, %tid, 50; @%p1 exit; setp.eq.u32 %p2, 0, 0; bar.red.popc.u32 %r1, 0, %p2; st.global.u32 [%mine], %r1;";
    assert_eq!(clean(body, 96)[95], 46);
}

#[test]
fn what_exited_threads_did_is_ordered_before_the_barrier() {
    let body = |barrier: &str| {
        format!(
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r1, %lane, 4, %r1; setp.ge.u32 %p1, %tid, 32;
    @%p1 bra READ; st.shared.u32 [%r1], %lane; exit;
READ: {barrier} ld.shared.u32 %r2, [%r1]; st.global.u32 [%mine], %r2;"
        )
    };
    assert_eq!(clean(&body("bar.sync 0;"), 64)[33], 1);
    clean(&body("barrier.sync 0;"), 64);
    // A barrier of warp 1 alone orders nothing of warp 0, nor does none.
    for barrier in ["bar.sync 0, 32;", ""] {
        let report = found(&body(barrier), 64);
        assert_eq!(kinds(&report), [Kind::SharedRace], "{barrier}");
    }
    // Warp 0 reads and leaves; warp 1 stores to the same words behind the barrier.
    let reads = "st.shared.u32 [%r1], 0; bar.sync 0; ";
    let body = |barrier: &str| {
        format!(
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r1, %lane, 4, %r1; setp.ge.u32 %p1, %tid, 32;
    @%p1 {reads} @%p1 bra STORE; ld.shared.u32 %r2, [%r1]; ret;
STORE: {barrier} st.shared.u32 [%r1], %lane;"
        )
    };
    clean(&body("bar.sync 1;"), 64);
    assert_eq!(kinds(&found(&body(""), 64)), [Kind::SharedRace]);
}

#[test]
fn a_thread_count_counts_threads_that_have_exited() {
    for barrier in [
        "bar.sync 0, 64;",
        "barrier.sync 1, 64;",
        "barrier.sync.aligned 1, 64;",
    ] {
        let report = found(
            &format!("setp.ge.u32 %p1, %tid, 32; @%p1 exit; {barrier}"),
            64,
        );
        assert_eq!(kinds(&report), [Kind::Deadlock], "{barrier}");
    }
    // Lanes that have left a warp count with it.
    clean("setp.eq.u32 %p1, %lane, 5; @%p1 exit; bar.sync 0, 64;", 64);
    // A producer that has arrived may leave.
    clean(
        "setp.lt.u32 %p1, %tid, 32; @%p1 bar.arrive 1, 64; @%p1 exit; bar.sync 1, 64;",
        64,
    );
}

/// Lanes of a warp may come to one barrier over several paths.
#[test]
fn one_barrier_over_several_paths() {
    // Lane 0 of each warp, or of one warp, stores first, and all go on to `S` or to `E` together.
    for who in [
        "setp.eq.u32 %p1, %lane, 0;",
        "setp.eq.u32 %p1, %tid, 0;",
        "setp.lt.u32 %p1, %lane, 16;",
    ] {
        for barrier in [
            "bar.sync 0;",
            "barrier.sync.aligned 0;",
            "setp.eq.u32 %p3, 0, 0; bar.red.popc.u32 %r5, 0, %p3; setp.ne.u32 %p3, %r5, 96; @%p3 trap;",
            "bar.sync 0, 96;",
            "bar.arrive 1, 96; bar.sync 2, 96;",
        ] {
            let body = format!(
                "mov.u32 %r1, %nctaid.x; setp.eq.u32 %p2, %r1, 1; {who}
    @%p1 bra A; @%p2 bra S; bra.uni E;
A:  st.global.u32 [%mine], 5; @%p2 bra S; bra.uni E;
S:  {barrier} activemask.b32 %r2; st.global.u32 [%mine], %r2;
E:  mov.u32 %r1, 0;"
            );
            // Behind it they are together.
            assert_eq!(clean(&body, 96), [u32::MAX; 96], "{body}");
        }
    }
    // Nested, each lane of four by a path of its own, and in a loop.
    let body = "mov.u32 %r5, 0; mov.u32 %r1, %nctaid.x; setp.eq.u32 %p2, %r1, 1; and.b32 %r3, %lane, 1; setp.eq.u32 %p3, %r3, 0; and.b32 %r3, %lane, 2; setp.eq.u32 %p4, %r3, 0;
L:  @%p3 bra A; @%p4 bra B; @%p2 bra S; bra E;
B:  add.u32 %r5, %r5, 1; @%p2 bra S; bra E;
A:  @%p4 bra C; add.u32 %r5, %r5, 2; @%p2 bra S; bra E;
C:  add.u32 %r5, %r5, 3; @%p2 bra S; bra E;
S:  bar.sync 0; shfl.sync.idx.b32 %r6, %r5, 0, 31, -1; setp.lt.u32 %p5, %r6, 9; @%p5 bra L;
E:  st.global.u32 [%mine], %r5;";
    assert_eq!(clean(body, 64)[..4], [9, 3, 6, 0]);
    // Lanes that take a lock in turn come to the barrier one by one.
    let body = "L:  atom.global.cas.b32 %r1, [%out+256], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
    ld.volatile.global.u32 %r2, [%out+260]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%out+260], %r2;
    membar.gl; atom.global.exch.b32 %r3, [%out+256], 0; bar.sync 0; ld.volatile.global.u32 %r2, [%out+260]; st.global.u32 [%mine], %r2;";
    let (data, report) = block(body, 64, 66);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data[..64], [64; 64]);
}

/// Lanes of which some never come, or come to another one.
#[test]
fn lanes_at_different_barriers() {
    for (body, kind) in [
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bar.sync 0; @!%p1 bar.sync 0;",
            Kind::Divergent,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; bar.sync 0; bra E; L: bar.sync 0; E: mov.u32 %r1, 0;",
            Kind::Divergent,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; bar.sync 0; bra E; L: bar.sync 1; E: mov.u32 %r1, 0;",
            Kind::Divergent,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; bar.sync 0; L: mov.u32 %r1, 0;",
            Kind::Divergent,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; bar.sync 0; L: bar.warp.sync -1;",
            Kind::Divergent,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; bar.warp.sync -1; L: bar.sync 0;",
            Kind::Deadlock,
        ),
    ] {
        for threads in [32, 64] {
            let report = found(body, threads);
            assert!(
                kinds(&report).contains(&kind),
                "{body}: {:#?}",
                report.findings
            );
        }
    }
    // Without .aligned they may.
    clean(
        "setp.lt.u32 %p1, %lane, 16; @%p1 barrier.sync 0; @!%p1 barrier.sync 0;",
        64,
    );
    clean(
        "setp.lt.u32 %p1, %lane, 16; @%p1 bra L; barrier.sync 0; bra E; L: barrier.sync 0; E: mov.u32 %r1, 0;",
        64,
    );
}

/// Whole warps: an `.aligned` barrier without a count is one instruction for all of the block.
#[test]
fn warps_at_different_barriers() {
    let sides = |first: &str, second: &str| {
        format!(
            "setp.ge.u32 %p1, %tid, 32; @%p1 bra L; {first} bra E; L: {second} E: st.global.u32 [%mine], 1;"
        )
    };
    let popc = "setp.eq.u32 %p2, 0, 0; bar.red.popc.u32 %r1, 0, %p2;";
    for (first, second) in [
        ("bar.sync 0;", "bar.sync 0;"),
        ("barrier.sync.aligned 2;", "barrier.sync.aligned 2;"),
        ("bar.sync 0;", "barrier.sync 0;"),
        ("barrier.sync 0;", "bar.sync 0;"),
        ("bar.sync 0; bar.sync 0;", "bar.sync 0; bar.sync 0;"),
        (popc, popc),
    ] {
        for threads in [64, 128] {
            let report = found(&sides(first, second), threads);
            assert_eq!(
                kinds(&report),
                [Kind::Divergent],
                "{first} / {second}: {:#?}",
                report.findings
            );
            let message = &report.findings[0].message;
            assert!(
                message.contains("all threads of the block must execute the same"),
                "{message}"
            );
        }
    }
    // With a count roles may meet at barriers of their own, and without .aligned all may.
    for (first, second) in [
        ("bar.sync 0, 64;", "bar.sync 0, 64;"),
        (
            "bar.arrive 1, 64; bar.sync 2, 64;",
            "bar.sync 1, 64; bar.arrive 2, 64;",
        ),
        ("barrier.sync 0;", "barrier.sync 0;"),
        ("bar.sync 1, 32;", "bar.sync 2, 32;"),
    ] {
        clean(&sides(first, second), 64);
    }
    // One after the other, in loops, and of different numbers, by all threads.
    clean(
        "bar.sync 0; st.global.u32 [%mine], 1; bar.sync 0; bar.sync 1; bar.sync 0;",
        96,
    );
    clean(
        "mov.u32 %r1, 0; L: bar.sync 0; add.u32 %r1, %r1, 1; bar.sync 0; setp.lt.u32 %p1, %r1, 5; @%p1 bra L;",
        96,
    );
    // Warps that take different paths to one barrier.
    clean(
        "setp.ge.u32 %p1, %tid, 32; @%p1 bra L; st.global.u32 [%mine], 1; bra E; L: st.global.u32 [%mine], 2; E: bar.sync 0;",
        96,
    );
    // Warps in one barrier at different turns of a loop, which is one instruction.
    clean(
        "mov.u32 %r1, 0; mov.u32 %r2, %warp; L: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra L;",
        96,
    );
}

#[test]
fn a_barrier_in_a_function() {
    // It is one instruction wherever it is called from, by lanes as by warps.
    let module = |body: &str| {
        with_out(body).replace(
            ".visible .entry",
            ".func meet() { bar.sync 0; ret; }\n.visible .entry",
        )
    };
    let run = |body: &str| {
        let (data, report) =
            common::launch_with(&module(body), [1; 3], [64, 1, 1], 64, &Options::default());
        assert!(report.is_clean(), "{body}: {:#?}", report.findings);
        data
    };
    for who in ["%tid, 32", "%lane, 7", "%tid, 1000"] {
        let data = run(&format!(
            "setp.ge.u32 %p1, {who}; @%p1 bra L; call meet; bra E; L: call meet; E: bar.sync 0; activemask.b32 %r1; st.global.u32 [%mine], %r1;"
        ));
        assert_eq!(data, [u32::MAX; 64]);
    }
}

#[test]
fn reductions_and_other_operations_do_not_mix() {
    let body = "setp.ge.u32 %p1, %tid, 32; setp.eq.u32 %p2, 0, 0; @%p1 bra L; barrier.red.or.pred %p3, 0, 64, %p2; bra E; L: barrier.sync 0, 64; E: mov.u32 %r1, 0;";
    assert_eq!(kinds(&found(body, 64)), [Kind::BarrierMismatch]);
}

/// The barrier of a cluster: threads that have exited, in any block, and lanes that come over several paths.
#[test]
fn the_barrier_of_a_cluster() {
    let run = |body: &str| {
        let text = kernel(
            ".param .u64 out",
            &format!(
                ".reg .b32 %r<9>, %t, %rank, %lane, %s, %far; .reg .b64 %out; .reg .pred %p<9>;
    .shared .align 4 .b8 data[256];
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %lane, %laneid; mov.u32 %rank, %cluster_ctarank; mov.u32 %s, data; mad.lo.u32 %s, %t, 4, %s;
    xor.b32 %r8, %rank, 1; mapa.shared::cluster.u32 %far, %s, %r8;
    {body}"
            ),
        );
        let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut memory = GlobalMemory::new();
        let out = memory.alloc(1024, 256).expect("memory");
        let launch = Launch {
            grid: [2, 1, 1],
            block: [64, 1, 1],
            cluster: [2, 1, 1],
            args: vec![Arg::Ptr(out)],
            ..Launch::default()
        };
        run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch")
    };
    let both = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
    for who in [
        "setp.ge.u32 %p1, %t, 32;",
        "setp.ge.u32 %p1, %t, 40;",
        "setp.eq.u32 %p1, %rank, 0;",
    ] {
        let report = run(&format!("{who} @%p1 exit; {both}"));
        assert!(report.is_clean(), "{who}: {:#?}", report.findings);
    }
    // What an exited warp stored to its own block is there behind the barrier.
    let body = |barrier: &str| {
        format!(
            "setp.ge.u32 %p1, %t, 32; @%p1 st.shared.u32 [%s], %t; @%p1 exit; {barrier} ld.shared::cluster.u32 %r1, [%far+128]; {barrier}"
        )
    };
    let report = run(&body(both));
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert!(kinds(&run(&body(""))).contains(&Kind::SharedRace));
    // Lane 0 comes by a path of its own.
    let paths = "mov.u32 %r1, %nctaid.x; setp.eq.u32 %p2, %r1, 2; setp.eq.u32 %p1, %lane, 0;
    @%p1 bra A; @%p2 bra S; bra.uni E;
A:  mov.u32 %r2, 5; @%p2 bra S; bra.uni E;
S:  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; bar.warp.sync -1; activemask.b32 %r3; setp.ne.u32 %p3, %r3, -1; @%p3 trap;
E:  mov.u32 %r1, 0;";
    let report = run(paths);
    assert!(report.is_clean(), "{:#?}", report.findings);
    // Lanes at two different ones.
    let report = run(
        "setp.lt.u32 %p1, %lane, 16; @%p1 barrier.cluster.arrive.aligned; @!%p1 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    );
    assert!(
        kinds(&report).contains(&Kind::Divergent),
        "{:#?}",
        report.findings
    );
}
