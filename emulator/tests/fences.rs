//! Fences between threads make relaxed operations on mbarriers, and relaxed arrivals at the barrier of the cluster, synchronise: of the fence's own thread, in the
//! order of its program, and no farther than the scopes say.

mod common;

use common::{assembles, kinds};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// The producer stores a word into the shared memory of block 0, whose first thread loads it after `sync`. In a cluster of one block the producer is the
/// first lane of warp 1, in one of two blocks the first thread of block 1. `%produces` and `%consumes` say who a thread is, `%next` is true in the
/// lane after the producer's.
fn hand_over(blocks: u32, lane_races: bool, sync: &str) -> Report {
    let text = format!(
        ".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<4>, %t, %rank, %id, %at, %bar;
    .reg .b64 %out;
    .reg .pred %first, %produces, %consumes, %next, %done;
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 data[2];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    mad.lo.u32 %id, %rank, 32, %t;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %consumes, %id, 0;
    setp.eq.u32 %produces, %id, 32;
    setp.eq.u32 %next, %id, 33;
    mov.u32 %at, data;
    mapa.shared::cluster.u32 %at, %at, 0;
    mov.u32 %bar, bar;
    mapa.shared::cluster.u32 %bar, %bar, 0;
    @%first mbarrier.init.shared::cta.b64 [bar], 1;
    @%first fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @%produces st.shared::cluster.u32 [%at], 7;
    {sync}
    @!%consumes bra END;
    ld.shared.u32 %r0, [data];
    st.global.u32 [%out], %r0;
END:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}}
"
    );
    assembles("hand_over", &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(4, 256).expect("memory");
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [64 / blocks, 1, 1],
        cluster: [blocks, 1, 1],
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let options = Options {
        lane_races,
        ..Options::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
    assert_eq!(memory.read(out, 4).expect("a read"), [7, 0, 0, 0]);
    report
}

/// The producer arrives with `arrive` after `before`, the consumer waits with `wait` until then, and `after` comes.
fn by_mbarrier(before: &str, arrive: &str, wait: &str, after: &str) -> String {
    format!(
        "{before}
    @%produces mbarrier.arrive.{arrive}.shared::cluster.b64 _, [%bar];
    @!%consumes bra END;
WAIT:
    mbarrier.try_wait.parity.{wait}.shared::cta.b64 %done, [bar], 0;
    @!%done bra WAIT;
    {after}"
    )
}

fn check(blocks: u32, lane_races: bool, sync: &str, is_ordered: bool) {
    let report = hand_over(blocks, lane_races, sync);
    let expected = if is_ordered {
        vec![]
    } else {
        vec![FindingKind::SharedRace]
    };
    let context = format!("{blocks} blocks:\n{sync}\n{:#?}", report.findings);
    assert_eq!(kinds(&report), expected, "{context}");
}

/// Fences with the widest set of threads of a cluster, and with those of a block.
const OF_CLUSTER: [&str; 5] = [
    "fence.acq_rel.cluster;",
    "fence.sc.gpu;",
    "fence.acq_rel.sys;",
    "membar.gl;",
    "membar.sys;",
];
const OF_BLOCK: [&str; 3] = ["fence.acq_rel.cta;", "fence.sc.cta;", "membar.cta;"];

#[test]
fn a_fence_makes_a_relaxed_arrival_release() {
    for blocks in [1, 2] {
        let sync = |before: &str| by_mbarrier(before, "relaxed.cluster", "acquire.cluster", "");
        check(blocks, false, &sync(""), false);
        for fence in OF_CLUSTER {
            check(blocks, false, &sync(fence), true);
        }
        for fence in OF_BLOCK {
            check(blocks, false, &sync(fence), blocks == 1);
        }
        check(blocks, false, &sync("fence.release.cluster;"), true);
        check(blocks, false, &sync("fence.acquire.cluster;"), false);
        check(blocks, false, &sync("fence.proxy.async;"), false);
    }
}

#[test]
fn a_fence_makes_a_relaxed_wait_acquire() {
    for blocks in [1, 2] {
        let sync = |after: &str| by_mbarrier("", "release.cluster", "relaxed.cluster", after);
        check(blocks, false, &sync(""), false);
        for fence in OF_CLUSTER {
            check(blocks, false, &sync(fence), true);
        }
        for fence in OF_BLOCK {
            check(blocks, false, &sync(fence), blocks == 1);
        }
        check(blocks, false, &sync("fence.acquire.cluster;"), true);
        check(blocks, false, &sync("fence.release.cluster;"), false);
    }
}

#[test]
fn two_fences_make_two_relaxed_operations_synchronise() {
    for blocks in [1, 2] {
        let fence = "fence.acq_rel.cluster;";
        for (before, after) in [(fence, ""), ("", fence), (fence, fence)] {
            let sync = by_mbarrier(before, "relaxed.cluster", "relaxed.cluster", after);
            check(
                blocks,
                false,
                &sync,
                !before.is_empty() && !after.is_empty(),
            );
        }
    }
}

#[test]
fn the_relaxed_operation_itself_must_reach_the_other_thread() {
    let fence = "fence.acq_rel.cluster;";
    for blocks in [1, 2] {
        let is_near = blocks == 1;
        let arrival = if is_near {
            by_mbarrier(fence, "relaxed.cta", "acquire.cta", "")
                .replace("shared::cluster.b64 _, [%bar]", "shared::cta.b64 _, [bar]")
        } else {
            by_mbarrier(fence, "relaxed.cluster", "relaxed.cta", fence)
        };
        check(blocks, false, &arrival, is_near);
        let wait = by_mbarrier("", "release.cluster", "relaxed.cta", fence);
        check(blocks, false, &wait, is_near);
    }
}

#[test]
fn a_fence_is_for_what_comes_before_it_in_its_own_thread() {
    let sync = |before: &str| by_mbarrier(before, "relaxed.cluster", "acquire.cluster", "");
    for blocks in [1, 2] {
        // A fence of another lane of the warp, and a store between the fence and the arrival.
        check(blocks, false, &sync("@%next fence.acq_rel.cluster;"), false);
        let again = "fence.acq_rel.cluster;\n@%produces st.shared::cluster.u32 [%at], 7;";
        check(blocks, false, &sync(again), false);
        let twice = format!("{again}\n@%produces fence.acq_rel.cluster;");
        check(blocks, false, &sync(&twice), true);
        // A fence with the scope of the block takes nothing from an earlier, wider one.
        let narrower = "fence.acq_rel.cluster;\nfence.acq_rel.cta;";
        check(blocks, false, &sync(narrower), true);
        // A fence before the wait acquires nothing that the wait finds.
        let early = "fence.acq_rel.cluster;\n@!%consumes bra WAIT;\nWAIT:";
        let wait = by_mbarrier("", "release.cluster", "relaxed.cluster", "");
        let wait = wait.replacen("WAIT:", early, 1);
        check(blocks, false, &wait, false);
    }
}

#[test]
fn lanes_that_are_not_ordered_are_not_released_by_the_fence_of_another() {
    let other = "@%next st.shared::cluster.u32 [%at+4], 8;";
    let sync = |between: &str| {
        let before = format!("{other}\n{between}\n@%produces fence.acq_rel.cluster;");
        let load = "ld.shared.u32 %r1, [data+4];";
        by_mbarrier(&before, "relaxed.cluster", "acquire.cluster", load)
    };
    for blocks in [1, 2] {
        check(blocks, true, &sync(""), false);
        check(blocks, true, &sync("bar.warp.sync 0xffffffff;"), true);
        check(blocks, false, &sync(""), true);
    }
}

#[test]
fn a_fence_makes_a_relaxed_barrier_of_the_cluster_release() {
    let sync = |before: &str| {
        format!("{before}\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;")
    };
    for blocks in [1, 2] {
        check(blocks, false, &sync(""), false);
        for fence in OF_CLUSTER {
            check(blocks, false, &sync(fence), true);
        }
        for fence in OF_BLOCK {
            check(blocks, false, &sync(fence), blocks == 1);
        }
        // All lanes arrive at once: what the fence of one releases shows where lanes are told apart.
        check(blocks, true, &sync("@%next fence.acq_rel.cluster;"), false);
        let own = "@%produces fence.acq_rel.cluster;";
        check(blocks, true, &sync(own), true);
    }
}
