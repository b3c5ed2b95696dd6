//! Spin locks for which lanes of one warp compete with each other and with other blocks: since Volta each lane makes progress, and so does it here, in few steps.
//! And instructions that lanes execute together when they come to them one by one, as they do behind a lock.

mod common;

use common::{Random, block, kinds, launch_with, with_out};
use ptx_emulator::{FindingKind as Kind, Options, Report};

/// How lanes get a lock and give it back: word 0 is the lock, or the next ticket; word 2 is the ticket that is served. `PAUSE` stands in the loop.
const LOCKS: [(&str, &str, &str); 5] = [
    (
        "ticket",
        "atom.global.add.u32 %r1, [%out], 1;
L:  PAUSE ld.acquire.gpu.global.u32 %r2, [%out+8]; setp.ne.u32 %p1, %r2, %r1; @%p1 bra L;",
        "red.release.gpu.global.add.u32 [%out+8], 1;",
    ),
    (
        "compare and swap",
        "L: PAUSE atom.acquire.gpu.global.cas.b32 %r2, [%out], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;",
        "st.release.gpu.global.u32 [%out], 0;",
    ),
    (
        "exchange",
        "L: PAUSE atom.acquire.gpu.global.exch.b32 %r2, [%out], 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;",
        "atom.release.gpu.global.exch.b32 %r2, [%out], 0;",
    ),
    (
        "look, then swap",
        "L: PAUSE ld.relaxed.gpu.global.u32 %r2, [%out]; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;
    atom.acquire.gpu.global.cas.b32 %r2, [%out], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L;",
        "membar.gl; st.volatile.global.u32 [%out], 0;",
    ),
    (
        "fences around relaxed accesses",
        "L: PAUSE atom.relaxed.gpu.global.cas.b32 %r2, [%out], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L; fence.acq_rel.gpu;",
        "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%out], 0;",
    ),
];

/// What the lock protects: word 1 counts.
const COUNT: &str = "ld.volatile.global.u32 %r3, [%out+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%out+4], %r3;";

/// PTX of `body`, where `LOCK` and `UNLOCK` are these instructions, or calls of functions that have them.
fn text(body: &str, lock: &str, unlock: &str, functions: bool) -> String {
    if !functions {
        return with_out(&body.replace("UNLOCK", unlock).replacen("LOCK", lock, 1));
    }
    let function = |name: &str, body: &str| {
        format!(
            ".func {name}(.param .u64 p) {{ .reg .b64 %out; .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u64 %out, [p];\n{body}\n    ret; }}\n"
        )
    };
    let call =
        |name: &str| format!("{{ .param .u64 x; st.param.u64 [x], %out; call {name}, (x); }}");
    let functions = function("lock", lock) + &function("unlock", unlock);
    let body = body
        .replace("UNLOCK", &call("unlock"))
        .replace("LOCK", &call("lock"));
    with_out(&body).replacen(".visible", &(functions + ".visible"), 1)
}

/// Runs `text` with limits that only programs reach that make no progress, or very slow one.
fn run(text: &str, blocks: u32, threads: u32, steps: u64, schedule: u64) -> (Vec<u32>, Report) {
    let options = Options {
        step_limit: steps,
        total_step_limit: steps,
        workers: 1,
        schedule,
        ..Options::default()
    };
    launch_with(text, [blocks, 1, 1], [threads, 1, 1], 64, &options)
}

#[test]
fn lanes_of_many_warps_take_a_lock() {
    for (name, lock, unlock) in LOCKS {
        for (pause, functions) in [("", false), ("nanosleep.u32 40;", false), ("", true)] {
            let lock = lock.replace("PAUSE", pause);
            for (blocks, threads, schedule) in [(1, 32, 0), (1, 64, 0), (5, 40, 0), (3, 32, 1)] {
                let text = text(&format!("LOCK {COUNT} UNLOCK"), &lock, unlock, functions);
                let (data, report) = run(&text, blocks, threads, 200_000, schedule);
                let case =
                    format!("{name}, {pause} {functions}, {blocks} of {threads}, {schedule}");
                assert!(report.is_clean(), "{case}: {}", report.findings[0]);
                assert_eq!(data[1], blocks * threads, "{case}");
            }
        }
    }
}

/// Lanes come back for the lock again and again, so that those of all blocks mix.
#[test]
fn lanes_take_a_lock_several_times() {
    for (name, lock, unlock) in LOCKS {
        for functions in [false, true] {
            let body = format!(
                "mov.u32 %r9, 0;\nN: LOCK {COUNT} UNLOCK add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra N;"
            );
            let text = text(&body, &lock.replace("PAUSE", ""), unlock, functions);
            let (data, report) = run(&text, 4, 32, 1_000_000, 0);
            assert!(
                report.is_clean(),
                "{name} {functions}: {}",
                report.findings[0]
            );
            assert_eq!(data[1], 4 * 32 * 3, "{name} {functions}");
        }
    }
}

/// Each release lets one of 2,048 lanes go on, and all others look again.
#[test]
fn as_many_tickets_as_a_grid_has_lanes() {
    let (_, lock, unlock) = LOCKS[0];
    let lock = lock.replace("PAUSE", "");
    let once = format!("LOCK {COUNT} UNLOCK");
    let often = format!(
        "mov.u32 %r9, 0;\nN: {once} add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra N;"
    );
    for (body, times) in [(once, 1), (often, 3)] {
        for functions in [false, true] {
            let text = text(&body, &lock, unlock, functions);
            let (data, report) = run(&text, 64, 32, 250_000 * times * times, 0);
            assert!(report.is_clean(), "{times}: {}", report.findings[0]);
            assert_eq!(u64::from(data[1]), 64 * 32 * times);
        }
    }
}

#[test]
fn locks_in_shared_memory() {
    for (name, lock, unlock) in LOCKS {
        let shared = |text: &str| {
            text.replace(".global", ".shared")
                .replace(".gpu", ".cta")
                .replace("%out", "s")
        };
        let body = format!(
            ".shared .align 4 .b32 s[4]; setp.lt.u32 %p3, %tid, 4; mul.lo.u32 %r8, %tid, 4; mov.u32 %r7, s; add.u32 %r8, %r8, %r7; @%p3 st.shared.u32 [%r8], 0; bar.sync 0;
    mov.u32 %r9, 0;\nN: {} {} {} add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 2; @%p2 bra N;
    bar.sync 0; ld.shared.u32 %r1, [s+4]; st.global.u32 [%out], %r1;",
            shared(&lock.replace("PAUSE", "")),
            shared(COUNT),
            shared(unlock)
        );
        let (data, report) = run(&with_out(&body), 1, 128, 4_000_000, 0);
        assert!(report.is_clean(), "{name}: {}", report.findings[0]);
        assert_eq!(data[0], 256, "{name}");
    }
}

/// Behind a lock, lanes come one by one to what they execute together: it waits for all of them, as on hardware.
#[test]
fn instructions_of_a_warp_behind_a_lock() {
    let matrix = "mov.b32 %r10, 0x3c003c00; mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r10, %r10, %r10}, {%r10, %r10}, {%f1, %f1, %f1, %f1};
    cvt.rzi.u32.f32 %r5, %f2;";
    let rows = ".shared .align 16 .b8 s[512]; mov.u32 %r10, s; mad.lo.u32 %r10, %lane, 16, %r10; st.shared.v4.b32 [%r10], {%lane, %lane, %lane, %lane}; bar.warp.sync -1;
    LOCK COUNT UNLOCK ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r10]; mov.u32 %r5, 7;";
    for (together, expected) in [
        ("shfl.sync.idx.b32 %r5, %lane, 9, 31, -1;", 9),
        (
            "bar.warp.sync -1; shfl.sync.idx.b32 %r5, %lane, 9, 31, -1;",
            9,
        ),
        (
            "setp.eq.u32 %p6, 0, 0; vote.sync.ballot.b32 %r5, %p6, -1; popc.b32 %r5, %r5;",
            32,
        ),
        ("redux.sync.add.u32 %r5, 2, -1;", 64),
        ("match.any.sync.b32 %r5, 3, -1; popc.b32 %r5, %r5;", 32),
        ("elect.sync %r5|%p5, -1; add.u32 %r5, %r5, 5;", 5),
        (
            "mov.u32 %r6, 0xffff; setp.lt.u32 %p5, %lane, 16; selp.b32 %r6, 0xffff, 0xffff0000, %p5; shfl.sync.idx.b32 %r5, 4, 0, 0x101f, %r6;",
            4,
        ),
        (
            "barrier.sync.aligned 0; activemask.b32 %r5; popc.b32 %r5, %r5;",
            32,
        ),
        (matrix, 16),
        (rows, 7),
    ] {
        for (name, lock, unlock) in LOCKS {
            let body = if together.contains("LOCK") {
                together.replace("COUNT", COUNT)
            } else {
                format!("LOCK {COUNT} UNLOCK {together}")
            };
            let body = format!("{body} st.global.u32 [%mine+16], %r5;");
            let text = text(&body, &lock.replace("PAUSE", ""), unlock, false);
            for schedule in 0..4 {
                let (data, report) = run(&text, 1, 32, 200_000, schedule);
                assert!(
                    report.is_clean(),
                    "{name}, {schedule}: {together}: {}",
                    report.findings[0]
                );
                assert_eq!(data[1], 32);
                assert_eq!(data[4..36], [expected; 32], "{name}: {together}");
            }
        }
    }
}

/// After they have executed one instruction together, lanes come one by one to the next.
#[test]
fn lanes_part_again() {
    let matrix = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r10, %r10, %r10}, {%r10, %r10}, {%f1, %f1, %f1, %f1};
    cvt.rzi.u32.f32 %r5, %f2;";
    let all = [
        (matrix, 16),
        ("shfl.sync.idx.b32 %r5, %lane, 9, 31, -1;", 9),
        ("redux.sync.add.u32 %r5, 2, -1;", 64),
        ("bar.warp.sync -1; mov.u32 %r5, 3;", 3),
        ("barrier.sync.aligned 0; mov.u32 %r5, 4;", 4),
        (
            "shfl.sync.idx.b32 %r5, 5, 0, 0x101f, %r11; add.u32 %r5, %r5, 1;",
            6,
        ),
    ];
    let (_, lock, unlock) = LOCKS[1];
    for (first, one) in all {
        for (second, two) in all {
            let body = format!(
                "mov.b32 %r10, 0x3c003c00; mov.f32 %f1, 0f00000000; and.b32 %r11, %lane, 16; shl.b32 %r11, 0xffff, %r11;
    LOCK {COUNT} UNLOCK {first} mov.u32 %r12, %r5; LOCK {COUNT} UNLOCK {second} mad.lo.u32 %r5, %r5, 1000, %r12; st.global.u32 [%mine+16], %r5;"
            );
            let text = text(&body, &lock.replace("PAUSE", ""), unlock, true);
            let (data, report) = run(&text, 1, 32, 200_000, 0);
            assert!(
                report.is_clean(),
                "{first} {second}: {}",
                report.findings[0]
            );
            assert_eq!(data[4..36], [1000 * two + one; 32], "{first} {second}");
        }
    }
}

/// Random programs of locks, waits, loops and instructions that lanes execute together: every lane computes the same number. With a fault one lane goes around
/// an exchange, and that is found.
#[test]
fn random_programs_of_locks_and_exchanges() {
    let chain = "C#: ld.acquire.gpu.global.u32 %r2, [%rd1+OFFSET]; setp.ne.u32 %p1, %r2, %lane; @%p1 bra C#; add.u32 %r2, %r2, 1; st.release.gpu.global.u32 [%rd1+OFFSET], %r2;";
    let loops =
        "mov.u32 %r3, 0;\nD#: add.u32 %r3, %r3, 1; setp.le.u32 %p1, %r3, %lane; @%p1 bra D#;";
    // With what each adds to the number.
    let steps = [
        ("LOCK COUNT UNLOCK", 0),
        (chain, 0),
        (loops, 0),
        (
            "shfl.sync.idx.b32 %r5, %lane, 9, 31, -1; add.u32 %r12, %r12, %r5;",
            9,
        ),
        (
            "redux.sync.add.u32 %r5, 2, -1; add.u32 %r12, %r12, %r5;",
            64,
        ),
        (
            "setp.eq.u32 %p6, 0, 0; vote.sync.ballot.b32 %r5, %p6, -1; popc.b32 %r5, %r5; add.u32 %r12, %r12, %r5;",
            32,
        ),
        (
            "match.any.sync.b32 %r5, 3, %r11; popc.b32 %r5, %r5; add.u32 %r12, %r12, %r5;",
            16,
        ),
        ("bar.warp.sync -1;", 0),
        ("bar.warp.sync %r11;", 0),
        ("bar.sync 0;", 0),
        ("barrier.sync 1;", 0),
    ];
    let mut random = Random(5);
    for case in 0..60 {
        let (name, lock, unlock) = LOCKS[random.below(5) as usize];
        let [blocks, warps] = [1 + random.below(3) as u32, 1 + random.below(2) as u32];
        let (mut body, mut sum, mut locked) = (String::new(), 0u32, 0);
        let mut is_faulty = case % 4 == 0;
        for k in 0..8 {
            let (step, value) = steps[random.below(steps.len() as u64) as usize];
            let goes_around = is_faulty && value > 0;
            is_faulty &= !goes_around;
            let step = step
                .replace('#', &k.to_string())
                .replace("OFFSET", &(4 * k).to_string())
                .replace("COUNT", COUNT);
            let [before, behind] = if goes_around {
                [
                    format!("setp.eq.u32 %p7, %lane, 5; @%p7 bra S{k}; "),
                    format!("\nS{k}:"),
                ]
            } else {
                [String::new(), String::new()]
            };
            body += &[before, step.clone(), behind].concat();
            body += " mad.lo.u32 %r12, %r12, 31, 1;\n";
            sum = (sum + value).wrapping_mul(31) + 1;
            locked += u32::from(step.contains("LOCK"));
        }
        // The flags of a warp's chains lie behind the numbers of all threads.
        let body = format!(
            "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, {warps}, %warp; mad.wide.u32 %rd1, %r4, 32, %out; add.u64 %rd1, %rd1, 1024;
    mad.wide.u32 %rd2, %r4, 128, %out; mad.wide.u32 %rd2, %lane, 4, %rd2; and.b32 %r11, %lane, 16; shl.b32 %r11, 0xffff, %r11; mov.u32 %r12, 0;
{body}    st.global.u32 [%rd2+64], %r12; bar.sync 0;"
        );
        let text = text(&body, &lock.replace("PAUSE", ""), unlock, true);
        for schedule in 0..4 {
            let options = Options {
                step_limit: 1_000_000,
                total_step_limit: 1_000_000,
                workers: 1,
                schedule,
                ..Options::default()
            };
            let (data, report) =
                launch_with(&text, [blocks, 1, 1], [32 * warps, 1, 1], 512, &options);
            let case = format!("{case}, {name}, {blocks} blocks of {warps}, {schedule}: {body}");
            if body.contains("\nS") {
                // Or it waits further on for those that wait for it, which is not always seen in random orders of parted lanes.
                let found = kinds(&report);
                assert!(
                    found.contains(&Kind::MemberMask)
                        || found == [Kind::EndlessLoop]
                        || schedule > 0 && found == [Kind::StepLimit],
                    "{case}\n{:#?}",
                    report.findings
                );
                continue;
            }
            assert!(report.is_clean(), "{case}\n{}", report.findings[0]);
            let threads = 32 * (blocks * warps) as usize;
            assert_eq!(data[1], locked * threads as u32, "{case}");
            assert!(data[16..16 + threads].iter().all(|x| *x == sum), "{case}");
        }
    }
}

/// Lanes wait at `shfl.sync` for others that wait for another warp, at a barrier of their own or once at an mbarrier.
#[test]
fn lanes_that_come_after_a_barrier() {
    for wait in [
        "barrier.sync 1, 32;",
        "mbarrier.try_wait.parity.shared.b64 %p5, [m], 0;",
    ] {
        let body = format!(
            ".shared .align 8 .b64 m; setp.ne.u32 %p1, %tid, 0; @!%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0;
    setp.ge.u32 %p2, %lane, 16; setp.eq.u32 %p3, %warp, 0; mov.u32 %r1, 0; @%p2 bra S; @%p3 bra W;
I:  add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 3000; @%p4 bra I; st.release.gpu.global.u32 [%out+252], 1;
J:  add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 300000; @%p4 bra J; bra B;
W:  ld.acquire.gpu.global.u32 %r2, [%out+252]; setp.eq.u32 %p4, %r2, 0; @%p4 bra W;
B:  {wait}
S:  shfl.sync.bfly.b32 %r3, %lane, 31, 31, -1; st.global.u32 [%mine], %r3; bar.sync 0; @!%p1 mbarrier.arrive.shared.b64 _, [m];"
        );
        let (data, report) = block(&body, 64, 64);
        assert!(report.is_clean(), "{wait}: {}", report.findings[0]);
        let expected: Vec<u32> = (0..63).map(|l| 31 - l % 32).collect();
        assert_eq!(data[..63], expected);
    }
}

/// Lanes that have exited are not waited for, whether they do so before or after the others have come.
#[test]
fn lanes_that_exit() {
    for (_, lock, unlock) in LOCKS {
        let body = format!(
            "LOCK {COUNT} UNLOCK setp.eq.u32 %p4, %r3, LAST; @%p4 exit; vote.sync.ballot.b32 %r5, %p4, -1; st.global.u32 [%mine+16], 1;"
        );
        for last in [1, 9, 32] {
            let body = body.replace("LAST", &last.to_string());
            let text = text(&body, &lock.replace("PAUSE", ""), unlock, false);
            let (data, report) = run(&text, 1, 32, 200_000, 0);
            assert!(report.is_clean(), "{body}: {}", report.findings[0]);
            assert_eq!(data[4..36].iter().sum::<u32>(), 31);
        }
    }
}

/// Each lane waits for a flag of its own, and the flags come late.
#[test]
fn lanes_that_have_waited_for_long_exchange_values() {
    let body = "setp.ge.u32 %p2, %tid, 32; @%p2 bra P;
W: ld.acquire.gpu.global.u32 %r1, [%mine+256]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;
    shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; st.global.u32 [%mine], %r3; bra E;
P: setp.ne.u32 %p3, %lane, 0; @%p3 bra E; mov.u32 %r4, 0;
O: mov.u32 %r5, 0;
I: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 2000; @%p3 bra I;
    mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd1, %out; add.u32 %r6, %r4, 1; st.release.gpu.global.u32 [%rd1+256], %r6; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 32; @%p3 bra O;
E: mov.u32 %r1, 0;";
    let (data, report) = block(body, 64, 128);
    assert!(report.is_clean(), "{}", report.findings[0]);
    let expected: Vec<u32> = (0..32).map(|l| (l ^ 1) + 1).collect();
    assert_eq!(data[..32], expected);
}

/// Neighbours with one fault.
#[test]
fn lanes_that_never_come() {
    let (_, lock, unlock) = LOCKS[1];
    let lock = lock.replace("PAUSE", "");
    for (body, kind) in [
        // One lane goes around.
        (
            "LOCK COUNT UNLOCK setp.eq.u32 %p4, %lane, 5; @!%p4 shfl.sync.idx.b32 %r5, %lane, 0, 31, -1; barrier.sync 0;",
            Kind::MemberMask,
        ),
        (
            "setp.eq.u32 %p4, %lane, 5; @%p4 bra E; LOCK COUNT UNLOCK setp.eq.u32 %p6, 0, 0; vote.sync.ballot.b32 %r5, %p6, -1;\nE: barrier.sync 0;",
            Kind::MemberMask,
        ),
        // The holder waits for those that wait for the lock.
        (
            "LOCK COUNT shfl.sync.idx.b32 %r5, %lane, 0, 31, -1; UNLOCK",
            Kind::EndlessLoop,
        ),
        ("LOCK COUNT bar.warp.sync -1; UNLOCK", Kind::EndlessLoop),
        // A lane that does not give it back.
        (
            "LOCK COUNT setp.eq.u32 %p4, %lane, 5; @%p4 bra E; UNLOCK\nE: mov.u32 %r1, 0;",
            Kind::EndlessLoop,
        ),
    ] {
        let body = body.replace("COUNT", COUNT);
        let (_, report) = run(&text(&body, &lock, unlock, false), 2, 32, 4_000_000, 0);
        assert_eq!(kinds(&report), [kind], "{body}\n{:#?}", report.findings);
    }
}

/// The others wait for something else, for ever: what they do is found, and that they do not come.
#[test]
fn lanes_that_wait_elsewhere() {
    for (elsewhere, expected) in [
        ("A: bra A;", vec![Kind::EndlessLoop]),
        (
            "A: ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p2, %r1, 0; @%p2 bra A;",
            vec![Kind::EndlessLoop],
        ),
        (
            "A: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra A;",
            vec![Kind::Deadlock, Kind::MemberMask],
        ),
        ("A: barrier.sync 0;", vec![Kind::Deadlock, Kind::MemberMask]),
        (
            "A: bar.warp.sync -1;",
            vec![Kind::Deadlock, Kind::MemberMask],
        ),
        (
            "A: vote.sync.any.pred %p2, %p1, -1;",
            vec![Kind::MemberMask],
        ),
        ("A: exit;", vec![]),
    ] {
        let body = format!(
            ".shared .align 8 .b64 m; setp.eq.u32 %p3, %tid, 0; @%p3 mbarrier.init.shared.b64 [m], 1; bar.sync 0;
    setp.lt.u32 %p1, %lane, 16; @%p1 bra A; redux.sync.add.u32 %r1, 1, -1; bra E;
    {elsewhere}\nE: bar.sync 0;"
        );
        for schedule in 0..4 {
            let (_, report) = run(&with_out(&body), 1, 64, 8_000_000, schedule);
            assert_eq!(
                kinds(&report),
                expected,
                "{schedule}: {body}\n{:#?}",
                report.findings
            );
        }
    }
}
