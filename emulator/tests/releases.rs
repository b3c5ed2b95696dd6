//! Release and acquire by loads, stores and atomics: patterns with fences, release sequences, locks, and the order between blocks.

mod common;

use common::{block, kinds, launch_with, with_out};
use ptx_emulator::{FindingKind as Kind, Options};

/// Two warps: each thread stores a word, warp 0 releases, warp 1 acquires and reads what warp 0 stored. `release` and `acquire` use `[flag]`.
fn message(release: &str, acquire: &str) -> Vec<Kind> {
    let body = format!(
        ".shared .align 16 .b32 data[64]; .shared .b32 flag; .reg .b32 %at;
setp.ne.u32 %p1, %tid, 0; @!%p1 st.shared.u32 [flag], 0;
bar.sync 0;
mov.u32 %at, data; mad.lo.u32 %at, %tid, 4, %at; st.shared.u32 [%at], %tid;
setp.lt.u32 %p2, %tid, 32; @!%p2 bra WAIT;
bar.warp.sync -1;
setp.ne.u32 %p3, %lane, 0; @%p3 bra END;
{release}
bra END;
WAIT:
{acquire}
setp.eq.u32 %p4, %r5, 0; @%p4 bra WAIT;
AFTER:
ld.shared.u32 %r6, [%at+-128]; st.global.u32 [%mine], %r6;
END:"
    );
    let (data, report) = block(&body, 64, 64);
    if report.is_clean() {
        let expected: Vec<u32> = (0..64).map(|t: u32| t.saturating_sub(32)).collect();
        assert_eq!(data, expected);
    }
    kinds(&report)
}

#[test]
fn message_passing() {
    let fence = "fence.acq_rel.cta;";
    let relaxed = "st.relaxed.cta.shared.u32 [flag], 1;";
    let load = "ld.relaxed.cta.shared.u32 %r5, [flag];";
    let good = [
        (
            "st.release.cta.shared.u32 [flag], 1;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
        (
            "st.release.gpu.shared.u32 [flag], 1;",
            "ld.acquire.sys.shared.u32 %r5, [flag];",
        ),
        (
            "atom.add.release.cta.shared.u32 %r1, [flag], 1;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
        (
            "red.add.release.cta.shared.u32 [flag], 1;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
        (
            "atom.exch.acq_rel.cta.shared.b32 %r1, [flag], 1;",
            "atom.or.acquire.cta.shared.b32 %r5, [flag], 0;",
        ),
        (
            "fence.acq_rel.cta;\nst.relaxed.cta.shared.u32 [flag], 1;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
        (
            "membar.cta; st.volatile.shared.u32 [flag], 1;",
            "ld.volatile.shared.u32 %r5, [flag]; membar.cta;",
        ),
        (
            "membar.gl; atom.shared.add.u32 %r1, [flag], 1;",
            "ld.volatile.shared.u32 %r5, [flag]; membar.gl;",
        ),
        (
            "fence.sc.gpu; red.shared.add.u32 [flag], 1;",
            "atom.shared.add.u32 %r5, [flag], 0; fence.acq_rel.cta;",
        ),
        (
            "st.release.cta.shared.u32 [flag], 1;",
            "ld.relaxed.cta.shared.u32 %r5, [flag]; fence.acquire.cta;",
        ),
        // Generic addresses.
        (
            "mov.u64 %rd1, flag; cvta.shared.u64 %rd1, %rd1; st.release.cta.u32 [%rd1], 1;",
            "mov.u64 %rd1, flag; cvta.shared.u64 %rd1, %rd1; ld.acquire.cta.u32 %r5, [%rd1];",
        ),
        // A release sequence: relaxed updates behind a release.
        (
            "atom.add.release.cta.shared.u32 %r1, [flag], 0; atom.add.relaxed.cta.shared.u32 %r1, [flag], 1;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
        (
            "fence.acq_rel.cta; atom.shared.add.u32 %r1, [flag], 0; atom.shared.inc.u32 %r1, [flag], 9; atom.shared.cas.b32 %r1, [flag], 1, 7;",
            "ld.acquire.cta.shared.u32 %r5, [flag];",
        ),
    ];
    for (release, acquire) in good {
        assert_eq!(message(release, acquire), [], "{release}\n{acquire}");
    }
    let bad = [
        (relaxed.to_owned(), load.to_owned()),
        (
            "st.volatile.shared.u32 [flag], 1;".to_owned(),
            "ld.volatile.shared.u32 %r5, [flag];".to_owned(),
        ),
        (
            relaxed.to_owned(),
            "ld.acquire.cta.shared.u32 %r5, [flag];".to_owned(),
        ),
        (
            "st.release.cta.shared.u32 [flag], 1;".to_owned(),
            load.to_owned(),
        ),
        (format!("{relaxed} {fence}"), format!("{load} {fence}")),
        (format!("{fence} {relaxed}"), format!("{fence} {load}")),
        (
            "atom.add.acquire.cta.shared.u32 %r1, [flag], 1;".to_owned(),
            "ld.acquire.cta.shared.u32 %r5, [flag];".to_owned(),
        ),
        // A store ends the sequence.
        (
            "atom.add.release.cta.shared.u32 %r1, [flag], 0; st.relaxed.cta.shared.u32 [flag], 1;"
                .to_owned(),
            "ld.acquire.cta.shared.u32 %r5, [flag];".to_owned(),
        ),
    ];
    for (release, acquire) in bad {
        assert_eq!(
            message(&release, &acquire),
            [Kind::SharedRace],
            "{release}\n{acquire}"
        );
    }
}

/// Below `sm_80`, libcu++'s barrier: all arrive by `acq_rel`, the last also adds relaxed.
fn barrier(arrive: &str, last: &str) -> (Vec<u32>, Vec<Kind>) {
    let body = format!(
        ".shared .align 16 .b32 data[64]; .shared .b32 bar; .reg .b32 %at;
setp.ne.u32 %p1, %tid, 0; @!%p1 st.shared.u32 [bar], 0;
bar.sync 0;
mov.u32 %at, data; mad.lo.u32 %r9, %tid, 4, %at; st.shared.u32 [%r9], %tid;
bar.warp.sync -1;
setp.ne.u32 %p2, %lane, 0; @%p2 bra W;
atom.add.{arrive}.cta.shared.u32 %r1, [bar], 1;
setp.ne.u32 %p3, %r1, 1; @%p3 bra W;
atom.add.{last}.cta.shared.u32 %r1, [bar], 100;
W: ld.acquire.cta.shared.b32 %r2, [bar]; setp.lt.u32 %p4, %r2, 100; @%p4 bra W;
sub.u32 %r3, 63, %tid; mad.lo.u32 %r3, %r3, 4, %at; ld.shared.u32 %r4, [%r3];
st.global.u32 [%mine], %r4;"
    );
    let (data, report) = block(&body, 64, 64);
    (data, kinds(&report))
}

#[test]
fn a_barrier_made_of_atomics() {
    let expected: Vec<u32> = (0..64).rev().collect();
    for (arrive, last) in [
        ("acq_rel", "relaxed"),
        ("release", "relaxed"),
        ("acq_rel", "acq_rel"),
    ] {
        assert_eq!(
            barrier(arrive, last),
            (expected.clone(), vec![]),
            "{arrive}"
        );
    }
    for (arrive, last) in [("relaxed", "relaxed"), ("acquire", "relaxed")] {
        assert_eq!(barrier(arrive, last).1, [Kind::SharedRace], "{arrive}");
    }
    // The last one releases what it did itself, and what the other did only if that released.
    assert_eq!(barrier("relaxed", "release").1, [Kind::SharedRace]);
}

/// Threads add to one word under a lock.
#[test]
fn locks() {
    let body = |take: &str, give: &str| {
        format!(
            ".shared .b32 lock; .shared .b32 sum;
setp.ne.u32 %p1, %tid, 0; @%p1 bra START; st.shared.u32 [lock], 0; st.shared.u32 [sum], 0;
START: bar.sync 0;
setp.ne.u32 %p2, %lane, 0; @%p2 bra OUT;
TRY: {take}
setp.ne.u32 %p3, %r1, 0; @%p3 bra TRY;
ld.shared.u32 %r2, [sum]; add.u32 %r2, %r2, 1; st.shared.u32 [sum], %r2;
{give}
OUT: bar.sync 0;
ld.shared.u32 %r2, [sum]; st.global.u32 [%mine], %r2;"
        )
    };
    for (take, give, good) in [
        (
            "atom.acquire.cta.shared.cas.b32 %r1, [lock], 0, 1;",
            "st.release.cta.shared.b32 [lock], 0;",
            true,
        ),
        (
            "atom.acquire.cta.shared.cas.b32 %r1, [lock], 0, 1;",
            "atom.release.cta.shared.exch.b32 %r1, [lock], 0;",
            true,
        ),
        (
            "atom.shared.cas.b32 %r1, [lock], 0, 1; membar.cta;",
            "membar.cta; atom.shared.exch.b32 %r1, [lock], 0;",
            true,
        ),
        (
            "atom.shared.cas.b32 %r1, [lock], 0, 1; fence.acq_rel.gpu;",
            "fence.acq_rel.gpu; st.volatile.shared.b32 [lock], 0;",
            true,
        ),
        (
            "atom.shared.cas.b32 %r1, [lock], 0, 1;",
            "atom.shared.exch.b32 %r1, [lock], 0;",
            false,
        ),
        (
            "atom.shared.cas.b32 %r1, [lock], 0, 1; membar.cta;",
            "atom.shared.exch.b32 %r1, [lock], 0;",
            false,
        ),
    ] {
        let (data, report) = block(&body(take, give), 128, 128);
        let expected: &[Kind] = if good { &[] } else { &[Kind::SharedRace] };
        assert_eq!(
            kinds(&report),
            expected,
            "{take} {give}: {:#?}",
            report.findings
        );
        assert_eq!(data, [4; 128], "{take}");
    }
}

/// The block that counts last adds the sums of all blocks.
#[test]
fn the_last_block_reads_what_all_stored() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    let run = |fence: &str, count: &str, load: &str| {
        let body = format!(
            ".shared .b32 last; .reg .b64 %sum;
mov.u32 %r1, %ctaid.x; mad.wide.u32 %sum, %r1, 4, %out; add.u32 %r2, %r1, 1;
setp.ne.u32 %p1, %tid, 0; @%p1 bra COUNTED;
st.global.u32 [%sum+64], %r2;
{fence}
{count}
setp.eq.u32 %p2, %r3, 7; selp.u32 %r4, 1, 0, %p2; st.shared.u32 [last], %r4;
COUNTED: bar.sync 0;
ld.shared.u32 %r4, [last]; setp.eq.u32 %p2, %r4, 0; @%p2 bra END;
setp.ge.u32 %p3, %tid, 8; @%p3 bra END;
{load} %r5, [%mine+64];
redux.sync.add.u32 %r6, %r5, 255; st.global.u32 [%out+4], %r6;
END:"
        );
        let (data, report) = launch_with(&with_out(&body), [8, 1, 1], [64, 1, 1], 64, &options);
        assert_eq!(data[1], 36, "{body}");
        kinds(&report)
    };
    let inc = "atom.global.inc.u32 %r3, [%out], 100;";
    for (fence, count, load) in [
        ("membar.gl;", inc, "ld.volatile.global.u32"),
        ("membar.gl;", inc, "ld.global.u32"),
        (
            "fence.acq_rel.gpu;",
            "atom.add.relaxed.gpu.global.u32 %r3, [%out], 1;",
            "ld.global.u32",
        ),
        ("membar.sys;", inc, "ld.relaxed.gpu.global.u32"),
        (
            "",
            "atom.add.acq_rel.gpu.global.u32 %r3, [%out], 1;",
            "ld.global.u32",
        ),
        (
            "",
            "atom.add.release.gpu.global.u32 %r3, [%out], 1;",
            "ld.global.u32",
        ),
    ] {
        assert_eq!(run(fence, count, load), [], "{fence} {count} {load}");
    }
    for (fence, count, load) in [
        ("", inc, "ld.volatile.global.u32"),
        ("", inc, "ld.global.u32"),
        ("membar.cta;", inc, "ld.volatile.global.u32"),
        (
            "",
            "atom.add.relaxed.gpu.global.u32 %r3, [%out], 1;",
            "ld.global.u32",
        ),
        (
            "",
            "atom.add.acquire.gpu.global.u32 %r3, [%out], 1;",
            "ld.global.u32",
        ),
        (
            "",
            "atom.global.inc.u32 %r3, [%out], 100; membar.gl;",
            "ld.global.u32",
        ),
    ] {
        assert_eq!(
            run(fence, count, load),
            [Kind::GlobalRace],
            "{fence} {count} {load}"
        );
    }
}

/// A word that many blocks have read may be overwritten by one that comes after all of them.
#[test]
fn what_many_blocks_have_read_is_overwritten() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    let kinds_of = |body: &str, blocks: u32| {
        let (data, report) =
            launch_with(&with_out(body), [blocks, 1, 1], [64, 1, 1], 128, &options);
        (data, kinds(&report))
    };
    // Blocks run one after the other. The last one resets the counter with a plain store, for the next launch.
    let turns = |take: &str, give: &str| {
        format!(
            ".reg .b32 %last; mov.u32 %r1, %ctaid.x; mov.u32 %last, %nctaid.x; sub.u32 %last, %last, 1; setp.ne.u32 %p1, %tid, 0; @%p1 bra GO;
W:  {take} setp.ne.u32 %p2, %r2, %r1; @%p2 bra W;
GO: bar.sync 0; ld.global.u32 %r3, [%mine+16]; add.u32 %r3, %r3, 1; setp.ge.u32 %p3, %tid, 8; @!%p3 st.global.u32 [%mine+16], %r3; bar.sync 0; @%p1 bra END;
    setp.eq.u32 %p2, %r1, %last; @%p2 bra RESET; {give} bra END;
RESET: st.global.u32 [%out], 0;
END:"
        )
    };
    let take = "ld.acquire.gpu.global.u32 %r2, [%out];";
    let give = "fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%out], 1;";
    for blocks in [2, 3, 12] {
        let (data, found) = kinds_of(&turns(take, give), blocks);
        assert_eq!((&data[..1], found), (&[0][..], vec![]), "{blocks}");
        assert_eq!(data[4..12], [blocks; 8]);
        let without = give.replace("fence.acq_rel.gpu;", "");
        let (_, found) = kinds_of(&turns(take, &without), blocks);
        assert!(!found.is_empty(), "{blocks}");
        assert!(found.iter().all(|k| *k == Kind::GlobalRace), "{found:?}");
    }
    // All blocks read all words, wait for each other, and each stores its word anew.
    let rounds = |barrier: &str| {
        format!(
            ".reg .b32 %n, %goal, %k; mov.u32 %n, %nctaid.x; mov.u32 %goal, 0; mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd1, %r1, 4, %out; mov.u32 %k, 0;
R:  mov.u32 %r2, 0; setp.ge.u32 %p1, %tid, %n; @!%p1 ld.global.u32 %r2, [%mine+64]; redux.sync.add.u32 %r3, %r2, -1;
    {barrier}
    setp.eq.u32 %p2, %tid, 0; add.u32 %r3, %r3, 1; @%p2 st.global.u32 [%rd1+64], %r3;
    {barrier}
    add.u32 %k, %k, 1; setp.lt.u32 %p3, %k, 3; @%p3 bra R;"
        )
    };
    // Labels of the two barriers differ.
    let barrier = |fence: &str| {
        format!(
            "{{ bar.sync 0; add.u32 %goal, %goal, %n; setp.ne.u32 %p4, %tid, 0; @%p4 bra GO; {fence} red.relaxed.gpu.global.add.u32 [%out], 1;
W: ld.relaxed.gpu.global.u32 %r4, [%out]; setp.lt.u32 %p5, %r4, %goal; @%p5 bra W; {fence}\nGO: bar.sync 0; }}"
        )
    };
    for blocks in [2, 5, 32] {
        let (data, found) = kinds_of(&rounds(&barrier("fence.acq_rel.gpu;")), blocks);
        assert_eq!(found, [], "{blocks}");
        // x becomes the sum of all plus 1: 1, then n + 1, then n (n + 1) + 1.
        assert_eq!(data[16], blocks * (blocks + 1) + 1);
        for wrong in [barrier(""), "bar.sync 0;".to_owned()] {
            let (_, found) = kinds_of(&rounds(&wrong), blocks);
            assert!(!found.is_empty(), "{blocks} {wrong}");
            assert!(found.iter().all(|k| *k == Kind::GlobalRace), "{found:?}");
        }
    }
}

/// Memory that one block has freed and another has got is new to it.
#[test]
fn memory_of_malloc_comes_back() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    let run = |free: &str, from: &str| {
        let body = format!(
            ".reg .b64 %m; setp.ne.u32 %p1, %tid, 0; @%p1 bra END; mov.u32 %r1, %ctaid.x;
{{ .param .b64 a; .param .b64 r; st.param.b64 [a], 40; call (r), malloc, (a); ld.param.b64 %m, [r]; }}
st.u32 [%m], %r1; st.u32 [%m+36], %r1; ld.u32 %r2, [%m]; {from}
{free}
END:"
        );
        let text = with_out(&body).replace(
            ".visible .entry",
            ".extern .func (.param .b64 r) malloc(.param .b64 a);\n.extern .func free(.param .b64 a);\n.visible .entry",
        );
        kinds(&launch_with(&text, [6, 1, 1], [32, 1, 1], 64, &options).1)
    };
    let free = "{ .param .b64 a; st.param.b64 [a], %m; call free, (a); }";
    assert_eq!(run(free, ""), []);
    assert_eq!(run("", ""), []);
    // What the blocks share still races.
    assert_eq!(run(free, "st.global.u32 [%out], %r2;"), [Kind::GlobalRace]);
}

/// The last block again, with stores and loads that are strong, which are no race by themselves: without a fence the loads may find old values. Loads that wait for
/// a value, or choose by it, are meant.
#[test]
fn strong_loads_behind_a_message_without_a_fence() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    let run = |store: &str, fence: &str, count: &str, rest: &str| {
        let body = format!(
            ".shared .b32 last; .reg .b64 %sum;
mov.u32 %r1, %ctaid.x; mad.wide.u32 %sum, %r1, 4, %out; add.u32 %r2, %r1, 1;
setp.ne.u32 %p1, %tid, 0; @%p1 bra COUNTED;
{store} [%sum+64], %r2;
{fence}
{count}
setp.eq.u32 %p2, %r3, 7; selp.u32 %r4, 1, 0, %p2; st.shared.u32 [last], %r4;
COUNTED: bar.sync 0;
ld.shared.u32 %r4, [last]; setp.eq.u32 %p2, %r4, 0; @%p2 bra END;
setp.ge.u32 %p3, %tid, 8; @%p3 bra END;
{rest}
END:"
        );
        kinds(&launch_with(&with_out(&body), [8, 1, 1], [64, 1, 1], 64, &options).1)
    };
    let add = "ld.volatile.global.u32 %r5, [%mine+64]; redux.sync.add.u32 %r6, %r5, 255; st.global.u32 [%out+4], %r6;";
    let add_twice = "ld.relaxed.gpu.global.u32 %r5, [%mine+64]; ld.relaxed.gpu.global.u32 %r7, [%mine+64]; add.u32 %r5, %r5, %r7; redux.sync.add.u32 %r6, %r5, 255; st.global.u32 [%out+4], %r6;";
    let wait = "W: ld.volatile.global.u32 %r5, [%mine+64]; setp.eq.u32 %p4, %r5, 0; @%p4 bra W;";
    let choose = "ld.volatile.global.u32 %r5, [%mine+64]; max.u32 %r6, %r5, 3; setp.eq.u32 %p4, %r6, 5; @%p4 st.global.u32 [%out+4], 5;";
    let swap = "ld.volatile.global.u32 %r5, [%mine+64]; add.u32 %r6, %r5, 1; atom.global.cas.b32 %r7, [%mine+64], %r5, %r6;";
    let inc = "atom.global.inc.u32 %r3, [%out], 100;";
    let acquire = "atom.add.acq_rel.gpu.global.u32 %r3, [%out], 1;";
    let [volatile, relaxed] = ["st.volatile.global.u32", "st.relaxed.gpu.global.u32"];
    for (store, fence, count, rest, good) in [
        (volatile, "membar.gl;", inc, add, true),
        (volatile, "", inc, add, false),
        (volatile, "membar.cta;", inc, add, false),
        (relaxed, "", inc, add_twice, false),
        (relaxed, "fence.acq_rel.gpu;", inc, add_twice, true),
        (relaxed, "", acquire, add, true),
        (volatile, "", inc, wait, true),
        (volatile, "", inc, choose, true),
        (volatile, "", inc, swap, true),
        // The store comes after the message.
        (
            "prefetch.global.L2 [%sum]; //",
            "",
            &format!("{inc} {volatile} [%sum+64], %r2;"),
            add,
            true,
        ),
    ] {
        let found = run(store, fence, count, rest);
        let expected: &[Kind] = if good { &[] } else { &[Kind::GlobalRace] };
        assert_eq!(found, expected, "{store} {fence} {count} {rest}");
    }
}
