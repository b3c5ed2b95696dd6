//! Blocks that wait for each other: as many as the device holds at once make progress, however few threads the host has; what can't end is found out.

mod common;

use common::{kinds, launch_with, with_out};
use ptx_emulator::{
    Arg, Device, FindingKind as Kind, GlobalMemory, Launch, Module, Options, Report, RunError, run,
};

/// What the CLI takes as limits.
fn options(workers: usize) -> Options {
    Options {
        workers,
        step_limit: 1 << 22,
        total_step_limit: 1 << 31,
        ..Options::default()
    }
}

/// Runs `body` in `blocks` blocks of `threads` threads, on one host thread and on several, which must give the same, and in other orders of blocks and warps,
/// which must find the same.
fn grid(body: &str, blocks: u32, threads: u32, words: usize) -> (Vec<u32>, Report) {
    let text = with_out(body);
    let run =
        |options: &Options| launch_with(&text, [blocks, 1, 1], [threads, 1, 1], words, options);
    let (data, report) = run(&options(1));
    for workers in [0, 3] {
        let (other, again) = run(&options(workers));
        assert_eq!(other, data, "{workers} workers: {body}");
        assert_eq!(again.findings, report.findings, "{workers} workers: {body}");
        assert_eq!(again.counters, report.counters, "{workers} workers: {body}");
    }
    // Other orders take long turns.
    for schedule in 1..if blocks > 200 { 1 } else { 3 } {
        let (_, other) = run(&Options {
            schedule,
            ..options(1)
        });
        assert_eq!(
            kinds(&other),
            kinds(&report),
            "schedule {schedule}: {body}\n{:#?}",
            other.findings
        );
    }
    (data, report)
}

fn clean(body: &str, blocks: u32, threads: u32, words: usize) -> Vec<u32> {
    let (data, report) = grid(body, blocks, threads, words);
    assert!(
        report.is_clean(),
        "{blocks} blocks: {body}\n{}",
        report.findings[0]
    );
    data
}

/// Blocks of 32 threads with 64 registers that an H100 holds: 16 on each of its 132 multiprocessors.
const RESIDENT: u32 = 2112;

/// Each block adds 1 to word 0 and waits until all have.
const ALL: &str = "mov.u32 %r1, %nctaid.x; setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;
    atom.global.add.release.gpu.u32 %r2, [%out], 1;
WAIT: ld.global.acquire.gpu.b32 %r3, [%out]; setp.lt.u32 %p1, %r3, %r1; @%p1 bra WAIT;
DONE: bar.sync 0;";

#[test]
fn a_barrier_of_all_blocks() {
    for blocks in [1, 2, 132, RESIDENT] {
        assert_eq!(clean(ALL, blocks, 32, 1), [blocks]);
    }
    // The flag is polled by a volatile load, a plain one, an atomic that changes nothing, and one that fails.
    for load in [
        "ld.volatile.global.u32 %r3, [%out];",
        "ld.relaxed.gpu.global.u32 %r3, [%out];",
        "atom.global.or.b32 %r3, [%out], 0;",
        "atom.global.cas.b32 %r3, [%out], 9999, 0;",
        "atom.add.acquire.gpu.u32 %r3, [%out], 0;",
        "nanosleep.u32 100; ld.volatile.u32 %r3, [%out];",
        // A wait that counts, or looks at the clock, is never as it was.
        "add.u32 %r9, %r4, 1; mov.u32 %r4, %r9; ld.volatile.global.u32 %r3, [%out];",
        "mov.u32 %r9, %clock; ld.volatile.global.u32 %r3, [%out];",
    ] {
        let body = format!("mov.u32 %r4, 0; {ALL}")
            .replace("ld.global.acquire.gpu.b32 %r3, [%out];", load);
        assert_eq!(clean(&body, 40, 64, 1), [40], "{load}");
    }
}

#[test]
fn a_plain_load_waits_too() {
    // Nothing says here that blocks communicate: block 0 goes round until the others have started.
    let body = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 2; @%p1 st.global.u32 [%out], 1; @%p1 bra END;
WAIT: ld.global.u32 %r3, [%out]; setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;
END: mov.u32 %r1, 0;";
    for workers in [1, 2] {
        let text = with_out(body);
        let (data, report) = launch_with(&text, [3, 1, 1], [32, 1, 1], 1, &options(workers));
        assert!(report.is_clean(), "{}", report.findings[0]);
        assert_eq!(data, [1]);
    }
}

#[test]
fn all_threads_of_a_block_wait_together() {
    // Thread 0 looks, and tells the others through shared memory; or by the barrier itself.
    let shared = ".shared .align 4 .b8 s[4]; mov.u32 %r1, %nctaid.x; setp.eq.u32 %p1, %tid, 0;
    @%p1 atom.global.add.u32 %r2, [%out], 1;
WAIT: @%p1 ld.volatile.global.u32 %r3, [%out]; @%p1 st.shared.u32 [s], %r3; bar.sync 0;
    ld.shared.u32 %r4, [s]; bar.sync 0; setp.lt.u32 %p2, %r4, %r1; @%p2 bra WAIT;";
    let reduced = "mov.u32 %r1, %nctaid.x; setp.eq.u32 %p1, %tid, 0; mov.u32 %r3, 0;
    @%p1 atom.global.add.u32 %r2, [%out], 1;
WAIT: @%p1 ld.volatile.global.u32 %r3, [%out]; setp.ge.u32 %p2, %r3, %r1;
    bar.red.or.pred %p3, 0, %p2; @!%p3 bra WAIT;";
    for body in [shared, reduced] {
        assert_eq!(clean(body, 12, 64, 1), [12]);
    }
}

#[test]
fn more_blocks_than_the_device_holds_cannot_all_wait() {
    let text = with_out(ALL);
    let (_, report) = launch_with(&text, [133, 1, 1], [1024, 1, 1], 1, &options(1));
    assert_eq!(kinds(&report), [Kind::EndlessLoop]);
    let message = &report.findings[0].message;
    assert!(
        message.contains("1 blocks have not started, since h100 holds 132 at once"),
        "{message}"
    );
}

#[test]
fn chains_of_blocks() {
    // Each waits for the one before it, however many there are.
    let next = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;
WAIT: ld.global.acquire.gpu.u32 %r3, [%out]; setp.ne.u32 %p1, %r3, %r1; @%p1 bra WAIT;
    add.u32 %r3, %r3, 1; st.global.release.gpu.u32 [%out], %r3;
DONE: bar.sync 0;";
    assert_eq!(clean(next, 2500, 32, 1), [2500]);
    // Each waits for the one behind it.
    let back = next.replace(
        "mov.u32 %r1, %ctaid.x;",
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; sub.u32 %r1, %r2, %r1; sub.u32 %r1, %r1, 1;",
    );
    assert_eq!(clean(&back, 66, 64, 1), [66]);
    let back = with_out(&back);
    let (_, report) = launch_with(&back, [133, 1, 1], [1024, 1, 1], 1, &options(1));
    assert_eq!(kinds(&report), [Kind::EndlessLoop]);
}

#[test]
fn locks_among_blocks() {
    // By compare-and-swap, by tickets, and in order of the blocks as Marlin has it.
    let swap = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;
L:  atom.acquire.gpu.global.cas.b32 %r2, [%out], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
    ld.volatile.global.u32 %r3, [%out+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%out+4], %r3;
    fence.acq_rel.gpu; atom.release.gpu.global.exch.b32 %r4, [%out], 0;
DONE: bar.sync 0;";
    let all = swap.replace("setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;", "");
    let ticket = "setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;
    atom.global.add.u32 %r1, [%out], 1;
L:  ld.acquire.gpu.global.u32 %r2, [%out+8]; setp.ne.u32 %p1, %r2, %r1; @%p1 bra L;
    ld.volatile.global.u32 %r3, [%out+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%out+4], %r3;
    add.u32 %r2, %r2, 1; st.release.gpu.global.u32 [%out+8], %r2;
DONE: bar.sync 0;";
    let marlin = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %tid, 0; mov.u32 %r2, -1; @%p1 bra MEET;
L:  ld.global.acquire.gpu.b32 %r2, [%out]; setp.ne.s32 %p2, %r2, %r1; @%p2 bra L;
MEET: bar.sync 0; @%p1 bra DONE;
    ld.global.u32 %r3, [%out+4]; add.u32 %r3, %r3, 1; st.global.u32 [%out+4], %r3;
DONE: bar.sync 0; @%p1 bra END; fence.acq_rel.gpu; red.relaxed.gpu.global.add.s32 [%out], 1;
END: mov.u32 %r1, 0;";
    for (body, blocks, each) in [
        (swap, 20, 1),
        (&all, 2, 64),
        (ticket, 20, 1),
        (marlin, 20, 1),
    ] {
        assert_eq!(clean(body, blocks, 64, 3)[1], blocks * each, "{body}");
    }
}

#[test]
fn decoupled_look_back() {
    // Word b of the status: 0 nothing, 1 | sum << 2 of block b alone, 2 | sum << 2 of all up to it. Each block sums its threads and looks back.
    let body = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %out, %rd1; setp.ne.u32 %p1, %tid, 0; @%p1 bra DONE;
    add.u32 %r2, %r1, 1; mov.u32 %r3, 0; shl.b32 %r4, %r2, 2; or.b32 %r4, %r4, 1; st.relaxed.gpu.global.u32 [%rd1], %r4;
    mov.u64 %rd2, %rd1; setp.eq.u32 %p2, %r1, 0; @%p2 bra SUM;
BACK: sub.u64 %rd2, %rd2, 4;
SPIN: ld.relaxed.gpu.global.u32 %r5, [%rd2]; and.b32 %r6, %r5, 3; setp.eq.u32 %p3, %r6, 0; @%p3 bra SPIN;
    shr.u32 %r7, %r5, 2; add.u32 %r3, %r3, %r7; setp.eq.u32 %p4, %r6, 1; @%p4 bra BACK;
SUM: add.u32 %r3, %r3, %r2; shl.b32 %r3, %r3, 2; or.b32 %r3, %r3, 2; st.relaxed.gpu.global.u32 [%rd1], %r3;
DONE: bar.sync 0;";
    let sums = clean(body, 1000, 32, 1000);
    let expected: Vec<u32> = (1..=1000).map(|b| (b * (b + 1) / 2) << 2 | 2).collect();
    assert_eq!(sums, expected);
}

#[test]
fn a_warp_that_works_is_not_held_up_by_one_that_waits() {
    // Warp 1 of each block has a long loop to go before it tells block 0, where warp 0 waits for all.
    let body = "mov.u32 %r1, %nctaid.x; setp.ne.u32 %p1, %lane, 0; @%p1 bra DONE; setp.eq.u32 %p2, %warp, 1; @%p2 bra WORK;
WAIT: ld.acquire.gpu.global.u32 %r3, [%out]; setp.lt.u32 %p3, %r3, %r1; @%p3 bra WAIT; bra DONE;
WORK: mov.u32 %r4, 0;
LOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 30000; @%p3 bra LOOP;
    red.release.gpu.global.add.u32 [%out], 1;
DONE: bar.sync 0;";
    assert_eq!(clean(body, 20, 64, 1), [20]);
}

#[test]
fn deadlocks_of_blocks_end() {
    // Two blocks, each of which waits for the other first.
    let body = "mov.u32 %r1, %ctaid.x; xor.b32 %r2, %r1, 1; mul.wide.u32 %rd1, %r1, 4; mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %out; add.u64 %rd2, %rd2, %out; mov.u32 %r5, 0;
L:  ld.acquire.gpu.global.u32 %r3, [%rd2]; add.u32 %r5, %r5, 0; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;
    st.release.gpu.global.u32 [%rd1], 1;";
    let (_, report) = grid(body, 2, 32, 2);
    assert_eq!(
        kinds(&report),
        [Kind::EndlessLoop],
        "{:#?}",
        report.findings
    );
    let (_, report) = grid(body, 400, 64, 400);
    assert_eq!(
        kinds(&report),
        [Kind::EndlessLoop],
        "{:#?}",
        report.findings
    );
    // The same with loops that count.
    let (_, report) = grid(&body.replace("%r5, %r5, 0", "%r5, %r5, 1"), 30, 64, 30);
    assert_eq!(kinds(&report), [Kind::StepLimit], "{:#?}", report.findings);
    let message = &report.findings[0].message;
    assert!(
        message.contains("all 30 blocks that run wait for others"),
        "{message}"
    );
    // A lock that nobody gives back, and one whose holder takes it again.
    let lock = "L:  atom.global.cas.b32 %r2, [%out], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;";
    for threads in [1, 32] {
        let (_, report) = grid(lock, 3, threads, 1);
        assert_eq!(
            kinds(&report),
            [Kind::EndlessLoop],
            "{:#?}",
            report.findings
        );
    }
}

#[test]
fn what_others_change_late_ends_a_loop() {
    // Block 0 waits so long that it has been seen in its loop many times.
    let body = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra WORK;
L:  ld.volatile.global.u32 %r3, [%out]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L; bra END;
WORK: mov.u32 %r4, 0;
LOOP: ld.volatile.global.u32 %r5, [%out+4]; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 400000; @%p3 bra LOOP;
    st.volatile.global.u32 [%out], 1;
END: mov.u32 %r1, 0;";
    assert_eq!(clean(body, 2, 32, 2)[0], 1);
}

/// Blocks that add floats, or take numbers, in the order in which they come.
#[test]
fn the_order_is_the_same_on_every_host() {
    let sum = "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 64, %tid; cvt.rn.f32.u32 %f1, %r1; rcp.approx.f32 %f1, %f1; setp.eq.u32 %p1, %r1, 0;
    @!%p1 red.global.add.f32 [%out], %f1;";
    let ticket = "mov.u32 %r1, %ctaid.x; atom.global.add.u32 %r2, [%out], 1; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd1, %out;
    st.global.u32 [%rd1+4], %r1;";
    clean(sum, 64, 64, 1);
    clean(ticket, 64, 64, 64 * 64 + 1);
}

fn cooperative(
    body: &str,
    blocks: u32,
    cooperative: bool,
    device: &str,
) -> Result<(Vec<u32>, Report), RunError> {
    let module = Module::parse(&with_out(body)).expect("PTX");
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(4 * u64::from(blocks), 256)?;
    memory.write(out, &vec![0; 4 * blocks as usize])?;
    let launch = Launch {
        grid: [blocks, 1, 1],
        block: [64, 1, 1],
        cooperative,
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let options = Options {
        device: Device::named(device).expect("a device"),
        ..options(0)
    };
    let report = run(&module, "k", &launch, &mut memory, &options)?;
    let data = memory.read(out, 4 * blocks as usize)?;
    let words = data
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b));
    Ok((words.collect(), report))
}

/// The barrier of the grid as cooperative groups have it: a word at byte 4 of the workspace whose highest bit flips when all blocks have come.
#[test]
fn cooperative_launches() {
    let body = "mov.u32 %r1, %envreg2; mov.u32 %r2, %envreg1; cvt.u64.u32 %rd1, %r1; cvt.u64.u32 %rd2, %r2; bfi.b64 %rd1, %rd2, %rd1, 32, 32;
    setp.eq.u64 %p1, %rd1, 0; @%p1 trap;
    mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; setp.eq.u32 %p2, %r4, 0; mov.u32 %r5, 1; sub.u32 %r6, 0x80000001, %r3; @%p2 mov.u32 %r5, %r6;
    mov.u32 %r10, 0; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd3, %out;
ROUND: st.global.u32 [%rd3], %r10; bar.sync 0; setp.ne.u32 %p3, %tid, 0; @%p3 bra MEET;
    atom.add.release.gpu.u32 %r7, [%rd1+4], %r5;
SPIN: ld.acquire.gpu.u32 %r8, [%rd1+4]; xor.b32 %r9, %r8, %r7; setp.gt.s32 %p4, %r9, -1; @%p4 bra SPIN;
MEET: bar.sync 0; add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 3; @%p5 bra ROUND;";
    for blocks in [1, 7, 300] {
        let (data, report) = cooperative(body, blocks, true, "h100").expect("a launch");
        assert!(report.is_clean(), "{}", report.findings[0]);
        assert!(data.iter().all(|x| *x == 2), "{blocks}");
    }
    // As many as fit of 64 threads with 64 registers: 16 on a multiprocessor.
    let error = cooperative(body, 2113, true, "h100").expect_err("too many");
    let message = error.to_string();
    assert!(
        message.contains("a cooperative launch of 2113 blocks")
            && message.contains("h100 holds 2112 blocks of 64 threads"),
        "{message}"
    );
    assert!(cooperative(body, 641, true, "t4").is_err());
    assert!(cooperative(body, 320, true, "t4").is_ok());
    // Without the workspace of a cooperative launch `grid.sync()` traps.
    let (_, report) = cooperative(body, 2, false, "h100").expect("a launch");
    assert_eq!(kinds(&report), [Kind::Trap]);
}

#[test]
fn what_fits_depends_on_the_device_and_the_block() {
    let run = |blocks: u32, threads: u32, shared: u32, device: &str, registers: u32| {
        let module = Module::parse(&with_out(ALL)).expect("PTX");
        let mut memory = GlobalMemory::new();
        let out = memory.alloc(4, 256).expect("memory");
        memory.write(out, &[0; 4]).expect("a write");
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared: shared,
            args: vec![Arg::Ptr(out)],
            ..Launch::default()
        };
        let options = Options {
            device: Device::named(device).expect("a device"),
            registers,
            ..options(0)
        };
        ptx_emulator::run(&module, "k", &launch, &mut memory, &options)
    };
    let most = [
        (132, 128, 200 << 10, "h100", 64),
        (264, 128, 100 << 10, "h100", 64),
        (132, 1024, 0, "h100", 64),
        (264, 1024, 0, "h100", 32),
        (108, 128, 100 << 10, "a100", 64),
        (40, 1024, 0, "t4", 64),
        (80, 512, 0, "t4", 32),
    ];
    for (blocks, threads, shared, device, registers) in most {
        let report = run(blocks, threads, shared, device, registers).expect("a launch");
        assert!(
            report.is_clean(),
            "{blocks} on {device}: {}",
            report.findings[0]
        );
        let report = run(blocks + 1, threads, shared, device, registers).expect("a launch");
        assert_eq!(
            kinds(&report),
            [Kind::EndlessLoop],
            "{} on {device}",
            blocks + 1
        );
    }
    for (threads, shared, device, registers) in
        [(1024, 0, "h100", 128), (32, 200 << 10, "a100", 64)]
    {
        let error = run(1, threads, shared, device, registers).expect_err("too much");
        assert!(
            error
                .to_string()
                .contains("does not fit on a multiprocessor of"),
            "{error}"
        );
    }
}

#[test]
fn clusters_wait_for_clusters() {
    let text = with_out(&ALL.replace(
        "DONE:",
        "DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    ));
    let module = Module::parse(&text).expect("PTX");
    for (size, blocks) in [(2, 264), (4, 132), (16, 128)] {
        let mut memory = GlobalMemory::new();
        let out = memory.alloc(4, 256).expect("memory");
        memory.write(out, &[0; 4]).expect("a write");
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [64, 1, 1],
            cluster: [size, 1, 1],
            args: vec![Arg::Ptr(out)],
            ..Launch::default()
        };
        let report = run(&module, "k", &launch, &mut memory, &options(0)).expect("a launch");
        assert!(report.is_clean(), "{}", report.findings[0]);
    }
}
