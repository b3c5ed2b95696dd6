//! An asynchronous copy reads global memory until it is waited for: a store there before that is a finding. And stores are counted, byte by byte.

mod common;

use common::{block, kernel, kinds, launch_with, with_out};
use ptx_emulator::{Arg, FindingKind as Kind, GlobalMemory, Launch, Module, Options, Report, run};

/// Thread t copies word t of the buffer (as many bytes as `copy` says); `behind` follows.
fn copies(copy: &str, behind: &str) -> String {
    format!(
        ".shared .align 16 .b8 s[4096]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1; mov.u32 %r9, 7;
    and.b32 %r3, %tid, 31; setp.eq.u32 %p1, %r3, 0; setp.eq.u32 %p2, %warp, 0; setp.eq.u32 %p3, %tid, 0;
    {copy}
    cp.async.commit_group;
    {behind}"
    )
}

const WORD: &str = "cp.async.ca.shared.global [%r2], [%mine], 4;";

#[track_caller]
fn found(body: &str, threads: u32, at: &str) {
    let (_, report) = block(body, threads, 512);
    assert_eq!(
        kinds(&report),
        [Kind::SourceOverwritten],
        "{body}\n{:#?}",
        report.findings
    );
    let text = with_out(body);
    let line = text.lines().nth(report.findings[0].line as usize - 1);
    assert!(line.expect("a line").contains(at), "{}", report.findings[0]);
}

#[track_caller]
fn clean(body: &str, threads: u32) {
    let (_, report) = block(body, threads, 512);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
}

#[test]
fn a_store_to_the_source_comes_after_the_wait() {
    let store = "st.global.u32 [%mine], %r9;";
    found(&copies(WORD, store), 64, "st.global");
    found(
        &copies(WORD, &format!("{store}\ncp.async.wait_all;")),
        64,
        "st.global",
    );
    // A wait for older groups, and one of other lanes.
    found(
        &copies(WORD, &format!("cp.async.wait_group 1;\n{store}")),
        64,
        "st.global",
    );
    found(
        &copies(
            WORD,
            &format!("setp.lt.u32 %p4, %tid, 8; @!%p4 bra S;\ncp.async.wait_all;\nS: {store}"),
        ),
        32,
        "st.global",
    );
    for wait in [
        "cp.async.wait_group 0;",
        "cp.async.wait_all;",
        "cp.async.commit_group; cp.async.wait_group 1;",
    ] {
        clean(&copies(WORD, &format!("{wait}\n{store}")), 64);
    }
    // Before the copy it is what the copy reads.
    clean(
        &format!(
            "mov.u32 %r9, 7; {store}\n{}",
            copies(WORD, "cp.async.wait_all;")
        ),
        64,
    );
    // Every fourth word, by whole groups.
    let wide = "shl.b32 %r4, %tid, 4; add.u32 %r2, %r1, %r4; mad.wide.u32 %mine, %tid, 12, %mine;\ncp.async.cg.shared.global [%r2], [%mine], 16;";
    for offset in [0, 4, 8, 12] {
        found(
            &copies(wide, &format!("st.global.u32 [%mine+{offset}], %r9;")),
            16,
            "st.global",
        );
    }
    clean(&copies(wide, "st.global.u32 [%mine+1024], %r9;"), 16);
    found(
        &copies(wide, "st.global.u8 [%mine+15], %r9;"),
        16,
        "st.global",
    );
    found(
        &copies(wide, "st.global.v2.u32 [%mine+8], {%r9, %r9};"),
        16,
        "st.global",
    );
}

#[test]
fn what_a_copy_does_not_read_may_be_stored_to() {
    let store = "st.global.u32 [%mine], %r9;";
    let none = "mov.u32 %r5, 0; cp.async.ca.shared.global [%r2], [%mine], 4, %r5;";
    clean(&copies(none, store), 64);
    let part = "mov.u32 %r5, 2; cp.async.ca.shared.global [%r2], [%mine], 4, %r5;";
    found(
        &copies(part, "st.global.u16 [%mine], %r9;"),
        64,
        "st.global",
    );
    clean(&copies(part, "st.global.u16 [%mine+2], %r9;"), 64);
    let ignored = "setp.eq.u32 %p5, %r9, 7; cp.async.ca.shared.global [%r2], [%mine], 4, %p5;";
    clean(&copies(ignored, store), 64);
    let guarded = "@%p3 cp.async.ca.shared.global [%r2], [%mine], 4;";
    found(&copies(guarded, store), 64, "st.global");
    clean(&copies(guarded, "@!%p3 st.global.u32 [%mine], %r9;"), 64);
}

#[test]
fn other_threads_store_too() {
    // Thread 0 stores to what the last thread copies, of its warp and of another one; each waits for its own copies alone.
    for threads in [32, 64, 128] {
        let store = format!("@%p3 st.global.u32 [%out+{}], %r9;", 4 * (threads - 1));
        let (store, met) = (format!("bar.sync 0;\n{store}"), store);
        found(&copies(WORD, &store), threads, "st.global");
        found(
            &copies(WORD, &format!("@%p3 cp.async.wait_all;\n{store}")),
            threads,
            "st.global",
        );
        let met = format!("cp.async.wait_all;\nbar.sync 0;\n{met}");
        clean(&copies(WORD, &met), threads);
    }
    // By an atomic operation, if it changes something.
    found(
        &copies(WORD, "red.global.add.u32 [%mine], %r9;"),
        64,
        "red.global",
    );
    found(
        &copies(WORD, "atom.global.exch.b32 %r8, [%mine], %r9;"),
        64,
        "atom.global",
    );
    clean(
        &copies(WORD, "cp.async.wait_all; red.global.add.u32 [%mine], %r9;"),
        64,
    );
}

#[test]
fn an_mbarrier_is_a_wait() {
    let body = |wait: &str| {
        format!(
            ".shared .align 8 .b64 bar; .shared .align 16 .b8 s[4096]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1; setp.eq.u32 %p3, %tid, 0;
    @%p3 mbarrier.init.shared.b64 [bar], 64;
    bar.sync 0;
    {WORD}
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
    {wait}
    st.global.u32 [%mine], %r2;"
        )
    };
    found(&body(""), 64, "st.global");
    let wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra W;";
    clean(&body(wait), 64);
}

/// One thread copies 64 bytes of the buffer by a bulk copy.
fn bulk(behind: &str) -> String {
    format!(
        ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[64]; setp.eq.u32 %p3, %tid, 0;
    @%p3 mbarrier.init.shared.b64 [bar], 1;
    @%p3 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%p3 bra W;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd5, [bar], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%out], 64, [bar];
{behind}"
    )
}

#[test]
fn bulk_copies_read_until_their_phase_is_waited_for() {
    let wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0; @!%p4 bra W;";
    let store = |byte: u32| format!("st.global.u32 [%out+{byte}], %tid;");
    for byte in [0, 60] {
        let early = format!("{}\n{wait}", store(byte));
        found(&bulk(&early), 32, "st.global");
        clean(&bulk(&format!("{wait}\n@%p3 {}", store(byte))), 32);
    }
    clean(&bulk(&format!("{}\n{wait}", store(64))), 32);
}

#[test]
fn a_block_that_ends_forgets_its_copies() {
    // Each block copies the same word, and waits; the second one stores to it first.
    let body = ".shared .align 16 .b8 s[64]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 st.global.u32 [%out], %r1;
    cp.async.ca.shared.global [s], [%out], 4;";
    let options = Options {
        workers: 1,
        ..Options::default()
    };
    let (_, report) = launch_with(&with_out(body), [2, 1, 1], [1, 1, 1], 64, &options);
    assert!(report.is_clean(), "{:#?}", report.findings);
    // Without the sanitizer nobody looks.
    let quiet = Options {
        sanitize: false,
        ..options
    };
    let early = copies(WORD, "st.global.u32 [%mine], %r9;");
    let (_, report) = launch_with(&with_out(&early), [1; 3], [64, 1, 1], 512, &quiet);
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// Runs `body` with a buffer of 64 words whose stores are counted; returns the counts of its bytes.
fn counts(body: &str, grid: u32, threads: u32, times: usize) -> (Vec<u8>, Report) {
    let text = kernel(
        ".param .u64 out",
        &format!(
            ".reg .b32 %r<10>, %t; .reg .b64 %rd<10>, %out, %mine; .reg .b16 %h<4>; .reg .pred %p<4>;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %mine, %t, 4, %out;
    {body}"
        ),
    );
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let other = memory.alloc(16, 256).expect("memory");
    let out = memory.alloc(256, 256).expect("memory");
    memory.count_stores(out).expect("an allocation");
    assert!(memory.count_stores(out + 4).is_err());
    memory.write(out, &[0; 256]).expect("a write");
    let launch = Launch {
        grid: [grid, 1, 1],
        block: [threads, 1, 1],
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let options = Options {
        sanitize: times != 1,
        ..Options::default()
    };
    let mut last = None;
    for _ in 0..times {
        last = Some(run(&module, "k", &launch, &mut memory, &options).expect("a launch"));
    }
    assert_eq!(memory.stores(other, 16).expect("bytes"), [0; 16]);
    assert!(memory.stores(out, 257).is_err());
    (
        memory.stores(out, 256).expect("bytes"),
        last.expect("a run"),
    )
}

#[test]
fn stores_are_counted_by_byte() {
    let words = |counts: &[u8]| -> Vec<u8> { counts.chunks(4).map(|c| c[0]).collect() };
    // Once by each of 32 threads; the words behind them never.
    let (once, _) = counts("st.global.u32 [%mine], %t;", 1, 32, 1);
    assert_eq!(once[..128], [1; 128]);
    assert_eq!(once[128..], [0; 128]);
    // By two blocks, by two launches, and of equal values by one instruction.
    assert_eq!(
        words(&counts("st.global.u32 [%mine], %t;", 2, 32, 1).0)[..32],
        [2; 32]
    );
    assert_eq!(
        words(&counts("st.global.u32 [%mine], %t;", 2, 32, 3).0)[..32],
        [6; 32]
    );
    assert_eq!(
        counts("mov.u32 %r1, 5; st.global.u32 [%out], %r1;", 1, 64, 1).0[..4],
        [64; 4]
    );
    assert_eq!(
        counts("mov.u32 %r1, 5; st.global.u32 [%out], %r1;", 1, 512, 1).0[0],
        255
    );
    // Widths, vectors and guards.
    let mixed = "setp.eq.u32 %p1, %t, 0; mov.u32 %r1, 1; mov.u64 %rd1, 0; mov.u16 %h1, 3;
    @%p1 st.global.u8 [%out+3], %r1; @%p1 st.global.u16 [%out+8], %h1; @%p1 st.global.u64 [%out+16], %rd1;
    @%p1 st.global.v4.u32 [%out+32], {%r1, %r1, %r1, %r1};";
    let (bytes, _) = counts(mixed, 1, 32, 1);
    let stored = |i: usize| matches!(i, 3 | 8 | 9 | 16..=23 | 32..=47);
    assert!(
        (0..256).all(|i| bytes[i] == u8::from(stored(i))),
        "{bytes:?}"
    );
    // Atomics that change something; loads never.
    assert_eq!(
        counts("red.global.add.u32 [%mine], 1;", 1, 32, 1).0[..128],
        [1; 128]
    );
    assert_eq!(
        counts("red.global.add.u32 [%mine], 0;", 1, 32, 1).0,
        [0; 256]
    );
    assert_eq!(counts("ld.global.u32 %r1, [%mine];", 1, 32, 1).0, [0; 256]);
    // What lies outside is not stored.
    let (outside, report) = counts("st.global.u32 [%mine+192], %t;", 1, 32, 2);
    assert!(!report.is_clean());
    assert_eq!(words(&outside)[48..], [2; 16]);
}
